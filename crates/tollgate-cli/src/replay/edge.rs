//! What the rules in front would have caught of the log, by the evaluator of `tollgate-waf`.
//!
//! Each rule is told by itself: what one of them would have stopped is seen by the others all the same, and limits of the application
//! too, since nobody knows whether its sender would have come back.

use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::net::IpAddr;
use std::time::Duration;
use tollgate_core::Timestamp;
use tollgate_policy::Policy;
use tollgate_replay::Entry;
use tollgate_waf::evaluate::{Caught, Request, RuleOutcome, Traffic};
use tollgate_waf::{Catches, Rule, WebAcl, offline, render};

/// The requests of a log that the rules may count.
pub(super) struct Ahead {
    acl: WebAcl,
    /// The header that addresses are told by, if they are.
    header: Option<String>,
    seen: Vec<(Timestamp, usize, IpAddr)>,
    requests: HashMap<(String, String), usize>,
}

/// What a rule would have done.
#[derive(Debug, Serialize)]
pub(super) struct RuleReport {
    rule: String,
    /// Requests of one address in a window, like `100/300s`.
    rate: String,
    /// Requests that it counts.
    counted: u64,
    /// Requests beyond the limit, as far as WAF has looked by then.
    over: u64,
    /// Those of them that it catches even if it looks as late as it usually does at most.
    over_surely: u64,
    /// Addresses that went over the limit.
    addresses: usize,
    /// The addresses with the most requests beyond the limit.
    top_over: Vec<Over>,
}

#[derive(Debug, Serialize)]
struct Over {
    address: String,
    over: u64,
}

impl Ahead {
    /// `None` if the policy has no rules in front.
    pub(super) fn of(policy: &Policy) -> Option<Self> {
        let acl = render::web_acl(policy)?;
        let header = policy.edge().and_then(|edge| edge.forwarded.as_ref()).map(|forwarded| forwarded.header.clone());
        Some(Self { acl, header, seen: Vec::new(), requests: HashMap::new() })
    }

    /// Remembers a request. One without an address, or that is none of HTTP, is counted by nobody.
    pub(super) fn see(&mut self, entry: &Entry<'_>) {
        let (Some(request), Some(address)) = (&entry.request, entry.client_ip) else { return };
        let next = self.requests.len();
        let asked = (request.method.to_owned(), request.path().to_owned());
        self.seen.push((entry.time, *self.requests.entry(asked).or_insert(next), address));
    }

    /// What each rule would have done, in the order of times; those of one second in the order of the log.
    pub(super) fn report(mut self, top: usize) -> Vec<RuleReport> {
        self.seen.sort_by_key(|(time, ..)| *time);
        let mut requests: Vec<_> = self.requests.iter().collect();
        requests.sort_by_key(|(_, number)| **number);
        let first = self.seen.first().map_or(Timestamp::from_secs(0), |(time, ..)| *time);
        let mut tallies: Vec<Tally> = self.acl.rules.iter().map(|_| Tally::default()).collect();
        // Rules that only count let the next one look.
        let mut counting = self.acl.clone();
        counting.rules.iter_mut().for_each(Rule::count_only);
        let mut traffic = Traffic::new(offline(&counting));
        for (time, number, address) in &self.seen {
            let Some(((method, path), _)) = requests.get(*number) else { continue };
            let mut request = Request::new(method, path, *address);
            if let Some(header) = &self.header {
                request = request.header(header, &address.to_string());
            }
            let at = Duration::from_nanos(time.as_nanos().saturating_sub(first.as_nanos()));
            let outcome = traffic.take(&request, at);
            tallies.iter_mut().zip(&outcome.rules).for_each(|(tally, rule)| tally.add(rule));
        }
        self.acl.rules.iter().zip(tallies).filter_map(|(rule, tally)| tally.report(rule, top)).collect()
    }
}

#[derive(Default)]
struct Tally {
    counted: u64,
    over_surely: u64,
    over: BTreeMap<String, u64>,
}

impl Tally {
    fn add(&mut self, outcome: &RuleOutcome) {
        let Some(counted) = &outcome.counted else { return };
        self.counted += 1;
        self.over_surely += u64::from(outcome.caught == Caught::Surely);
        if counted.in_window > counted.limit {
            *self.over.entry(counted.key.clone()).or_default() += 1;
        }
    }

    /// `None` of a rule that limits nobody: whom it keeps out a log does not tell.
    fn report(self, rule: &Rule, top: usize) -> Option<RuleReport> {
        let Catches::Over(rate) = &rule.catches else { return None };
        let mut over: Vec<Over> = self.over.into_iter().map(|(address, over)| Over { address, over }).collect();
        over.sort_by_key(|of| std::cmp::Reverse(of.over));
        let (all, addresses) = (over.iter().map(|of| of.over).sum(), over.len());
        over.truncate(top);
        Some(RuleReport {
            rule: rule.name.clone(),
            rate: format!("{}/{}s", rate.limit, rate.window_secs),
            counted: self.counted,
            over: all,
            over_surely: self.over_surely,
            addresses,
            top_over: over,
        })
    }
}

impl RuleReport {
    pub(super) fn text(&self) -> String {
        let Self { rule, rate, counted, over, over_surely, addresses, top_over } = self;
        let mut out = format!(
            "\nin front, {rule} ({rate} of one address)\n  {counted} counted, {over} over the limit of {addresses} address(es), \
             {over_surely} of them surely seen by WAF\n"
        );
        for Over { address, over } in top_over {
            let _ = writeln!(out, "  {over:>8}  {address}");
        }
        out
    }
}
