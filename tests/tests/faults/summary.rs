//! What a run has met, so that nobody takes a run that met nothing for a proof.

use crate::caller::Told;
use crate::fault::{Cut, Fault};
use crate::lane::Record;
use crate::proxy::Did;
use std::collections::BTreeMap;
use std::fmt;

const CONTENDED: &str = "counted: contended";

/// How often each thing happened, by name.
#[derive(Debug, Default)]
pub struct Summary(BTreeMap<String, u64>);

impl Summary {
    pub fn add(&mut self, record: &Record) {
        self.count("schedules", 1);
        for call in record.calls.iter().flatten() {
            let counted = &call.counted;
            self.count("calls", 1);
            if let Some(cut) = call.planned.cut {
                self.count(&format!("fault: network cut, {cut:?}"), 1);
            }
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
                ("counted: throttled", counted.throttled),
                ("counted: store failures", counted.store_failures),
                ("counted: hot keys", counted.hot_keys),
                (CONTENDED, counted.contended),
                ("counted: suspended", counted.suspended),
                ("counted: refunds", counted.refunded),
                ("counted: refunds lost", counted.refunds_lost),
                ("counted: breaker opened", counted.breaker_opened),
                ("counted: breaker closed", counted.breaker_closed),
            ] {
                self.count(name, n);
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

    /// What a run should have met and has not. How often calls are in each other's way is for the machine to say.
    pub fn missing(&self) -> Vec<String> {
        let faults = Fault::KINDS.iter().map(|(fault, _)| fault.kind());
        let cuts = [Cut::Silent, Cut::Refused].iter().map(|cut| format!("network cut, {cut:?}"));
        let never = |name: &String| self.0.get(name).is_none_or(|n| *n == 0) && name != CONTENDED;
        let faults = faults.chain(cuts).map(|name| format!("fault: {name}"));
        self.0.keys().cloned().chain(faults).filter(never).collect()
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(name, n)| writeln!(f, "{n:>8} {name}"))
    }
}
