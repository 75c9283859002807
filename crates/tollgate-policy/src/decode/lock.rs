//! Times in a range, and locks that are longer each time: `penalty` of a limit, `cooldown` of one-time codes.

use super::fields::{self, Fields, Node};
use super::keys::KeyList;
use crate::rate;
use crate::report::Report;
use std::time::Duration;
use tollgate_core::PenaltyRule;

/// What is the case where the policy does not say: twice as long each time, an hour at most.
const FACTOR: u64 = 2;
const MOST_LOCK: Duration = Duration::from_secs(3600);

/// A duration between two others, as text.
pub(super) struct RangedDuration {
    pub(super) what: &'static str,
    pub(super) least: Duration,
    pub(super) most: Duration,
    pub(super) example: &'static str,
}

impl RangedDuration {
    pub(super) fn read(&self, report: &mut Report<'_>, node: Node<'_>) -> Option<Duration> {
        let text = fields::text(report, node, self.what, self.example)?;
        let read = rate::read_duration(text);
        let found = read.map_err(|problem| report.error(&node.span(), problem.message, problem.help)).ok()?;
        if (self.least..=self.most).contains(&found) {
            return Some(found);
        }
        let bound = if found < self.least { ("at least", self.least) } else { ("at most", self.most) };
        let message = format!("{} must be {} {} s, not {text:?}", self.what, bound.0, bound.1.as_secs());
        report.error(&node.span(), message, format!("write it like {}", self.example));
        None
    }
}

/// A table `{ first, factor, most, forget }`, and `extend` where its keys have that.
pub(super) struct Escalation {
    pub(super) what: &'static str,
    pub(super) keys: &'static KeyList,
    /// What to write where `first` is missing.
    pub(super) of_first: &'static str,
    /// `forget`, where it is not given.
    pub(super) forget: Duration,
}

impl Escalation {
    /// The rule of which only the first lock is given.
    pub(super) fn usual(&self, first: Duration) -> Option<PenaltyRule> {
        PenaltyRule::new(first, FACTOR, first.max(MOST_LOCK), self.forget).ok()
    }

    pub(super) fn read(&self, report: &mut Report<'_>, node: Node<'_>) -> Option<PenaltyRule> {
        let fields = Fields::open(report, node, self.what, self.keys)?;
        let (least, longest) = (PenaltyRule::SHORTEST, PenaltyRule::LONGEST);
        let mut time = |key: &'static str, least, most, example| {
            let range = RangedDuration { what: key, least, most, example };
            fields.get(key).map(|node| range.read(report, node))
        };
        let first = time("first", least, longest, "\"1min\"");
        let most = time("most", least, longest, "\"1h\"");
        let forget = time("forget", Duration::ZERO, PenaltyRule::LONGEST_MEMORY, "\"24h\"");
        let whole = 1..=PenaltyRule::MAX_FACTOR;
        let factor = fields.get("factor").map(|node| fields::integer(report, node, "factor", whole, "2"));
        let extend = fields.get("extend").map(|node| fields::boolean(report, node, "extend", "false"));
        if first.is_none() {
            fields.required(report, "first", self.of_first);
        }
        let (first, forget) = (first??, forget.unwrap_or(Some(self.forget))?);
        // What is written wins; a first lock that is longer than the usual most is the longest as well.
        let longest = most.unwrap_or(Some(first.max(MOST_LOCK)))?;
        if let Some(node) = fields.get("most").filter(|_| longest < first) {
            let message = "most is shorter than first, and a lock is never longer than most";
            report.error(&node.span(), message, "write a longer `most`, or a shorter `first`");
            return None;
        }
        let rule = PenaltyRule::new(first, factor.unwrap_or(Some(FACTOR))?, longest, forget);
        let rule =
            rule.map_err(|error| report.error(&node.span(), error.to_string(), "write it like { first = \"1min\" }"));
        let rule = rule.ok()?.extending(extend.unwrap_or(Some(false))?);
        let Some(node) = fields.get("edge_after") else { return Some(rule) };
        let locks = fields::integer(report, node, "edge_after", 1..=u64::from(u8::MAX), "3")?;
        let kept_out = rule.at_the_edge_after(u8::try_from(locks).ok()?);
        let help = "count the locks up to the one that is as long as `most`, or write a longer `most` and a `factor` of 2 or more";
        kept_out.map_err(|error| report.error(&node.span(), error.to_string(), help)).ok()
    }
}
