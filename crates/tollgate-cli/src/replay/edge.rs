//! What the rules in front would have caught of the log, by the evaluator of `tollgate-waf`.
//!
//! Each rule is told by itself: what one of them would have stopped is seen by the others all the same, and limits of the application
//! too, since nobody knows whether its sender would have come back.
//!
//! Invariant: these counts are approximate and labelled so, since WAF estimates and looks now and then. Memory is for the
//! distinct addresses, and methods and paths.

use crate::error::{CliError, Result};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::io;
use std::net::IpAddr;
use std::time::Duration;
use tollgate_core::Timestamp;
use tollgate_policy::Policy;
use tollgate_replay::report::{WafReport, WafRuleReport};
use tollgate_replay::spool::{RECORD, Record};
use tollgate_replay::{Entry, Options, Spool};
use tollgate_waf::evaluate::{Caught, Request, RuleOutcome, Traffic};
use tollgate_waf::{Catches, Rule, WebAcl, offline, render};

/// The requests of a log that the rules may count.
pub(super) struct Ahead {
    acl: WebAcl,
    /// The header that addresses are told by, if they are.
    header: Option<String>,
    seen: Spool<Seen>,
    requests: HashMap<(String, String), u32>,
    addresses: HashMap<IpAddr, u32>,
    /// Why not all are remembered.
    failed: Option<io::Error>,
}

/// A request, its method and path and its address by number.
#[derive(Clone, Copy)]
struct Seen {
    at: Timestamp,
    request: u32,
    address: u32,
}

impl Record for Seen {
    fn at(&self) -> u64 {
        self.at.as_nanos()
    }

    fn to_bytes(&self) -> [u8; RECORD] {
        let numbers = u128::from(self.request) << 32 | u128::from(self.address);
        (u128::from(self.at.as_nanos()) << 64 | numbers).to_le_bytes()
    }

    fn of_bytes(bytes: [u8; RECORD]) -> Self {
        let [a0, a1, a2, a3, r0, r1, r2, r3, t0, t1, t2, t3, t4, t5, t6, t7] = bytes;
        Self {
            at: Timestamp::from_nanos(u64::from_le_bytes([t0, t1, t2, t3, t4, t5, t6, t7])),
            request: u32::from_le_bytes([r0, r1, r2, r3]),
            address: u32::from_le_bytes([a0, a1, a2, a3]),
        }
    }
}

/// What a rule would have done.
#[derive(Debug, Serialize)]
pub(super) struct RuleReport {
    rule: String,
    /// That WAF would have counted a little otherwise.
    approximate: bool,
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
    /// What AWS WAF did by a rule of this name, if the log is its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    waf: Option<WafRuleReport>,
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
        let seen = Spool::new(Options::default().held);
        Some(Self { acl, header, seen, requests: HashMap::new(), addresses: HashMap::new(), failed: None })
    }

    /// Remembers a request. One without an address, or that is none of HTTP, is counted by nobody.
    pub(super) fn see(&mut self, entry: &Entry<'_>) {
        let (Some(request), Some(address)) = (&entry.request, entry.client_ip) else { return };
        let asked = (request.method.to_string(), request.path().to_owned());
        let request = number(&mut self.requests, asked);
        let address = number(&mut self.addresses, address);
        if let Err(error) = self.seen.push(Seen { at: entry.time, request, address }) {
            self.failed.get_or_insert(error);
        }
    }

    /// What each rule would have done, in the order of times; those of one instant in the order of the log. What WAF itself did by
    /// rules of the same names is put beside.
    pub(super) fn report(mut self, top: usize, waf: Option<&WafReport>) -> Result<Vec<RuleReport>> {
        let failed = |error: io::Error| CliError::System(tollgate_replay::Error::from(error).to_string());
        if let Some(error) = self.failed {
            return Err(failed(error));
        }
        let (requests, addresses) = (by_number(self.requests), by_number(self.addresses));
        let mut tallies: Vec<Tally> = self.acl.rules.iter().map(|_| Tally::default()).collect();
        // Rules that only count let the next one look.
        let mut counting = self.acl.clone();
        counting.rules.iter_mut().for_each(Rule::count_only);
        let mut traffic = Traffic::new(offline(&counting));
        let mut first = None;
        let header = self.header.as_deref();
        self.seen
            .each(|seen: Seen| {
                let (request, address) = (requests.get(seen.request as usize), addresses.get(seen.address as usize));
                let (Some((method, path)), Some(address)) = (request, address) else { return Ok(()) };
                let mut request = Request::new(method, path, *address);
                if let Some(header) = header {
                    request = request.header(header, &address.to_string());
                }
                let first = first.get_or_insert(seen.at);
                let at = Duration::from_nanos(seen.at.as_nanos().saturating_sub(first.as_nanos()));
                let outcome = traffic.take(&request, at);
                tallies.iter_mut().zip(&outcome.rules).for_each(|(tally, rule)| tally.add(rule));
                Ok(())
            })
            .map_err(failed)?;
        let did = |rule: &Rule| waf.map(|waf| waf.rules.get(&rule.name).cloned().unwrap_or_default());
        Ok(self.acl.rules.iter().zip(tallies).filter_map(|(rule, tally)| tally.report(rule, top, did(rule))).collect())
    }
}

fn number<T: Eq + std::hash::Hash>(known: &mut HashMap<T, u32>, one: T) -> u32 {
    let next = u32::try_from(known.len()).unwrap_or(u32::MAX);
    *known.entry(one).or_insert(next)
}

fn by_number<T>(known: HashMap<T, u32>) -> Vec<T> {
    let mut all: Vec<_> = known.into_iter().collect();
    all.sort_unstable_by_key(|(_, number)| *number);
    all.into_iter().map(|(one, _)| one).collect()
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
    fn report(self, rule: &Rule, top: usize, waf: Option<WafRuleReport>) -> Option<RuleReport> {
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
            approximate: true,
            waf,
        })
    }
}

impl RuleReport {
    pub(super) fn text(&self) -> String {
        let Self { rule, rate, counted, over, over_surely, addresses, top_over, waf, .. } = self;
        let mut out = format!(
            "\nin front, {rule} ({rate} of one address), approximate\n  {counted} counted, {over} over the limit of {addresses} address(es), \
             {over_surely} of them surely seen by WAF\n"
        );
        if let Some(WafRuleReport { ended, counted, .. }) = waf {
            let _ = writeln!(out, "  by the log, WAF ended {ended} requests by it and counted {counted}");
        }
        for Over { address, over } in top_over {
            let _ = writeln!(out, "  {over:>8}  {address}");
        }
        out
    }
}
