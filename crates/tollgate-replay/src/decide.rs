//! What was read, decided in the order of time.

use crate::compare::Tally;
use crate::error::{Error, Result};
use crate::intake::{Record, Replay, Side};
use crate::ledger::Said;
use crate::report::{Part, Report};
use crate::rules::Rules;
use tollgate_core::Timestamp;

impl Replay<'_> {
    /// What the policy would have done with all that was read, and what the other one would have done otherwise, if there is one.
    /// Can be asked again, also after more was read.
    ///
    /// # Errors
    ///
    /// [`Error::Spool`].
    pub fn report(&mut self) -> Result<Report> {
        self.sides.iter_mut().for_each(|side| side.ledger.restart());
        let mut parts = Parts::new(self.seen.first.zip(self.seen.last), self.options.parts);
        let mut tally = match self.sides.as_slice() {
            [before, after, ..] => Some(Tally::new([&before.ledger, &after.ledger])),
            _ => None,
        };
        let (judges, sides, clients) = (&self.judges, &mut self.sides, &self.clients);
        self.spool.each::<Error>(|record| {
            let mut passes = [None; 2];
            for ((judge, side), passes) in judges.iter().zip(sides.iter_mut()).zip(&mut passes) {
                *passes = side.decide(judge.rules, &record);
            }
            if let (Some(tally), [before, after, ..]) = (&mut tally, sides.as_slice()) {
                let said = [before.said(passes[0]), after.said(passes[1])];
                let client = clients.get(record.caller as usize).copied().unwrap_or_default();
                tally.add(client, said, passes.map(|passes| passes.unwrap_or(true)));
            }
            if let (Some(parts), Some(side)) = (&mut parts, sides.first()) {
                parts.add(record.at, passes, side.said(passes[0]));
            }
            Ok(())
        })?;
        let Some(side) = self.sides.first() else { return Ok(Report::default()) };
        let mut report = self.counted(side);
        report.denied = side.ledger.denied();
        report.limits = side.ledger.limits(self.options.top_denied);
        report.parts = parts.map(|parts| parts.finish(side)).unwrap_or_default();
        report.compare = tally.map(|tally| tally.finish(&self.names, self.options.top_denied));
        if let (Some(compare), Some(other)) = (&mut report.compare, self.sides.get(1)) {
            let other = self.counted(other);
            (compare.exempt, compare.unmatched) = (other.exempt, other.unmatched);
        }
        Ok(report)
    }
}

impl Side {
    /// Whether a request passes; `None` if it is on no route of this policy.
    fn decide(&mut self, rules: &dyn Rules, record: &Record) -> Option<bool> {
        let plan = self.plans.get(record.caller as usize).copied().flatten()?;
        let status = Some(record.status).filter(|status| *status > 0);
        Some(self.ledger.decide(plan, record.at, |limit| rules.answered(limit, status?)))
    }

    /// What the limits said of the last request, if it was decided.
    fn said(&self, passes: Option<bool>) -> &[(usize, Said)] {
        if passes.is_some() { self.ledger.said() } else { &[] }
    }
}

/// Counts by parts of the time.
struct Parts {
    from: u64,
    each: u64,
    parts: Vec<(Part, Vec<u64>)>,
}

impl Parts {
    /// `None` if none are asked, or nothing was read.
    fn new(between: Option<(Timestamp, Timestamp)>, parts: usize) -> Option<Self> {
        let (first, last) = between.filter(|_| parts > 0)?;
        let (from, span) = (first.as_nanos(), last.as_nanos() - first.as_nanos() + 1);
        // No shorter than the second to which most logs tell the time.
        let each = span.div_ceil(parts as u64).max(1_000_000_000);
        let begins = |part: u64| Timestamp::from_nanos(from + part * each);
        let part = |number| (Part { from: Some(begins(number)), ..Part::default() }, Vec::new());
        Some(Self { from, each, parts: (0..span.div_ceil(each)).map(part).collect() })
    }

    fn add(&mut self, at: Timestamp, passes: [Option<bool>; 2], said: &[(usize, Said)]) {
        let place = usize::try_from((at.as_nanos() - self.from) / self.each).unwrap_or(usize::MAX);
        let Some((part, limits)) = self.parts.get_mut(place) else { return };
        part.allowed += u64::from(passes[0] == Some(true));
        part.denied += u64::from(passes[0] == Some(false));
        part.denied_by_other += u64::from(passes[1] == Some(false));
        for (limit, _) in said.iter().filter(|(_, said)| *said == Said::Denied) {
            if limits.len() <= *limit {
                limits.resize(limit + 1, 0);
            }
            limits[*limit] += 1;
        }
    }

    fn finish(self, side: &Side) -> Vec<Part> {
        let named = |(mut part, limits): (Part, Vec<u64>)| {
            let denials = side.ledger.names().zip(limits).filter(|(_, denied)| *denied > 0);
            part.limits = denials.map(|(name, denied)| (name.to_string(), denied)).collect();
            part
        };
        self.parts.into_iter().map(named).collect()
    }
}
