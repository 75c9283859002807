//! What a run has met, so that nobody takes a run that met nothing for a proof.

use crate::caller::Told;
use crate::fault::Fault;
use crate::lane::Record;
use crate::proxy::Did;
use std::collections::BTreeMap;
use std::fmt;

/// How often each thing happened, by name.
#[derive(Debug, Default)]
pub struct Summary(BTreeMap<String, u64>);

impl Summary {
    pub fn add(&mut self, record: &Record) {
        self.count("schedules", 1);
        for call in record.calls.iter().flatten() {
            let counted = &call.counted;
            self.count("calls", 1);
            self.count("calls with the network cut", u64::from(call.planned.cut.is_some()));
            match &call.told {
                Told::Unavailable => self.count("told: no decision", 1),
                Told::Answers(answers) => {
                    let verb = if answers[0].allowed { "allowed" } else { "denied" };
                    let sources = ["table", "cache", "local", "open"].into_iter();
                    for source in sources.filter(|source| answers.iter().any(|answer| answer.source == *source)) {
                        self.count(&format!("told: {verb}, by {source}"), 1);
                    }
                }
            }
            for (name, n) in [
                ("throttled", counted.throttled),
                ("store failures", counted.store_failures),
                ("hot keys", counted.hot_keys),
                ("contended", counted.contended),
                ("suspended", counted.suspended),
                ("refunds", counted.refunded),
                ("refunds lost", counted.refunds_lost),
                ("breaker opened", counted.breaker_opened),
                ("breaker closed", counted.breaker_closed),
            ] {
                self.count(&format!("counted: {name}"), n);
            }
        }
        for request in record.requests.iter().flatten() {
            self.count("requests", 1);
            self.count(&format!("fault: {}", request.fault.kind()), 1);
            let is_unknown = request.is_write() && request.is_lost() && request.did == Did::Applied;
            self.count("writes applied whose reply was lost", u64::from(is_unknown));
        }
    }

    fn count(&mut self, name: &str, n: u64) {
        *self.0.entry(name.to_owned()).or_default() += n;
    }

    /// What a run should have met and has not.
    pub fn missing(&self) -> Vec<String> {
        let faults = Fault::KINDS.iter().map(|(fault, _)| format!("fault: {}", fault.kind()));
        let never = |name: &String| self.0.get(name).is_none_or(|n| *n == 0);
        self.0.keys().cloned().chain(faults).filter(never).collect()
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(name, n)| writeln!(f, "{n:>8} {name}"))
    }
}
