//! What has happened since the metrics were written last.
//!
//! Invariant: what is told is told once; it grows with the policy's limits and routes and never with callers.

use super::emf::{Line, MOST_VALUES, Unit, as_dimension_value};
use super::names::{
    BEYOND_DEBT, COUNTS, LATENCY, LIMIT_DECISIONS, MISSING_DIMENSION, PENALISED, PULLED_BACK, REVISION_CONFLICT,
    STEP_UP_REQUIRED, STEP_UP_UNAVAILABLE,
};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;
use tollgate_core::take::Notice;
use tollgate_core::{Charges, Decision, LimitName, Source};
use tollgate_dynamodb::Event;
use tollgate_dynamodb::meter::Counts;

/// What a limit said, and where that came from.
type Said = (LimitName, &'static str, &'static str);

/// A metric, and what of the policy it is told of: names and values of dimensions.
type Apart = (&'static str, Vec<(&'static str, String)>);

/// Everything but the counts, which are kept from the start.
#[derive(Debug, Default)]
pub(super) struct Window {
    /// The counts that are told already.
    told: Counts,
    said: BTreeMap<Said, u64>,
    apart: BTreeMap<Apart, u64>,
    latencies: Sample,
}

impl Window {
    pub(super) fn record(&mut self, event: Event<'_>) {
        match event {
            Event::Decision(decision) => self.decided(decision),
            Event::Unavailable(charges) => {
                let limits = charges.iter().flat_map(Charges::charges).map(|charge| &charge.limit);
                limits.for_each(|limit| self.said(limit, "closed", Source::Closed));
            }
            Event::Took(took) => self.latencies.add(took),
            Event::Notice(Notice::RevisionConflict(limit)) => self.of_limit(limit.as_str(), REVISION_CONFLICT, 1),
            Event::Notice(Notice::PulledBack(limit)) => self.of_limit(limit.as_str(), PULLED_BACK, 1),
            Event::Notice(Notice::Penalised(limit)) => self.of_limit(limit.as_str(), PENALISED, 1),
            Event::MissingDimension(limit) => self.of_limit(limit, MISSING_DIMENSION, 1),
            Event::BeyondDebt { limit, tokens } => self.of_limit(limit, BEYOND_DEBT, tokens),
            Event::StepUpRequired { route, reason } => {
                self.apart(
                    STEP_UP_REQUIRED,
                    vec![("Route", as_dimension_value(route)), ("Reason", reason.to_owned())],
                    1,
                );
            }
            Event::StepUpUnavailable(route) => {
                self.apart(STEP_UP_UNAVAILABLE, vec![("Route", as_dimension_value(route))], 1);
            }
            // The rest are counts of the process alone.
            _ => {}
        }
    }

    fn decided(&mut self, decision: &Decision) {
        for limit in &decision.limits {
            self.said(&limit.limit, limit.said(), limit.source);
        }
        for limit in &decision.unasked {
            limit.said().into_iter().for_each(|said| self.said(&limit.charge.limit, said, limit.source));
        }
    }

    fn said(&mut self, limit: &LimitName, outcome: &'static str, source: Source) {
        *self.said.entry((limit.clone(), outcome, source.as_str())).or_default() += 1;
    }

    fn of_limit(&mut self, limit: &str, name: &'static str, n: u64) {
        self.apart(name, vec![("Limit", limit.to_owned())], n);
    }

    fn apart(&mut self, name: &'static str, of: Vec<(&'static str, String)>, n: u64) {
        *self.apart.entry((name, of)).or_default() += n;
    }

    /// The lines about what is not told yet, `counts` being all that was counted so far; nothing if nothing has happened.
    pub(super) fn tell(&mut self, counts: Counts, namespace: &str, service: &str, timestamp_ms: u64) -> String {
        let told = std::mem::replace(&mut self.told, counts);
        let new = COUNTS.iter().map(|(name, count)| (*name, count(&counts).saturating_sub(count(&told))));
        let counted = new.filter(|(_, n)| *n > 0).map(|(name, n)| (name, Unit::Count, n.into()));
        let service = ("Service", service);
        let latencies = self.latencies.take().map(|values| (LATENCY, Unit::Milliseconds, values));
        let mut line = Line::default();
        line.add(namespace, &[service], counted.chain(latencies));
        let mut lines = String::new();
        for ((limit, outcome, source), n) in std::mem::take(&mut self.said) {
            // The first goes along with the counts: mostly it is the only one, and a line is paid for.
            let dimensions = [service, ("Limit", limit.as_str()), ("Outcome", outcome), ("Source", source)];
            line.add(namespace, &dimensions, [(LIMIT_DECISIONS, Unit::Count, n.into())]);
            lines.extend(std::mem::take(&mut line).finish(timestamp_ms));
        }
        lines.extend(line.finish(timestamp_ms));
        for ((name, of), n) in std::mem::take(&mut self.apart) {
            let dimensions: Vec<_> =
                std::iter::once(service).chain(of.iter().map(|(name, value)| (*name, value.as_str()))).collect();
            let mut line = Line::default();
            line.add(namespace, &dimensions, [(name, Unit::Count, n.into())]);
            lines.extend(line.finish(timestamp_ms));
        }
        lines
    }
}

/// Up to [`MOST_VALUES`] of the times that decisions took, each as likely to be among them as any other: all of a function's
/// invocation, and a fair sample of what a server does in an interval.
#[derive(Debug, Default)]
struct Sample {
    seen: u64,
    kept: Vec<Duration>,
}

impl Sample {
    fn add(&mut self, took: Duration) {
        self.seen += 1;
        if self.kept.len() < MOST_VALUES {
            self.kept.push(took);
        } else if let Some(place) = usize::try_from(fastrand::u64(..self.seen)).ok().and_then(|i| self.kept.get_mut(i))
        {
            *place = took;
        }
    }

    /// In milliseconds, to the microsecond: one number, or a list.
    fn take(&mut self) -> Option<Value> {
        self.seen = 0;
        #[allow(clippy::cast_precision_loss, reason = "a float has microseconds exactly for three centuries")]
        let millis = |took: &Duration| took.as_micros() as f64 / 1000.0;
        let mut values: Vec<Value> = self.kept.drain(..).map(|took| millis(&took).into()).collect();
        if values.len() == 1 { values.pop() } else { (!values.is_empty()).then_some(Value::Array(values)) }
    }
}
