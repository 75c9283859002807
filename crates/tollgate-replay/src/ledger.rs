//! Theoretical arrival times and counts of every limit and key, and the decisions that move them.
//!
//! Invariant: a decision charges all its limits or none, as the limiter does: verdicts are taken on the state before
//! it, and state moves only if each of them allows. Limits that only report are in nobody's way, and are not charged where
//! they have no room.

use crate::report::{DeniedKey, LimitReport};
use crate::rules::Resolved;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;
use tollgate_core::time::millis_rounded_up;
use tollgate_core::{
    Actual, Charge, Demand, Entry, Figures, Key, LimitName, Mode, Penalty, PenaltyRule, State, Ticks, Timestamp,
    Verdict,
};

/// The number of a [`Plan`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PlanId(usize);

/// What a limit said of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Said {
    /// It was charged.
    Allowed,
    /// It has room, and another has none.
    NotCharged,
    /// It has none.
    Denied,
}

/// What each request of one caller on one route is charged.
struct Plan {
    costs: Vec<Cost>,
    /// Numbers of the limits that cannot be charged, and what is missing for that: the place in [`Ledger::entries`].
    missing: Vec<(usize, usize)>,
}

#[derive(Clone, Copy)]
struct Cost {
    slot: usize,
    demand: Demand,
    only_reports: bool,
    /// Whether the answer changes what it counts as.
    by_answer: bool,
    penalty: Option<PenaltyRule>,
}

/// One limit's state for one key.
struct Slot {
    limit: usize,
    key: usize,
    figures: Figures,
    state: Option<State>,
    /// How many charges there were.
    charges: u64,
    /// Its last lock.
    penalty: Option<Penalty>,
    allowed: u64,
    denied: u64,
    longest_wait: Option<Duration>,
}

/// The state of a replay.
pub(crate) struct Ledger {
    limits: Vec<(LimitName, LimitReport)>,
    slots: Vec<Slot>,
    /// Every key once, whatever it is charged on, and its number.
    keys: HashMap<Key, usize>,
    /// By limit and key.
    slot_ids: HashMap<(usize, usize), usize>,
    plans: Vec<Plan>,
    /// Entries of keys that nothing gives a value for, and how many requests that left uncounted, by limit.
    entries: Vec<(usize, String, u64)>,
    denied: u64,
    verdicts: Vec<Verdict>,
    said: Vec<(usize, Said)>,
}

impl Ledger {
    pub(crate) fn new(limits: Vec<LimitName>) -> Self {
        Self {
            limits: limits.into_iter().map(|limit| (limit, LimitReport::default())).collect(),
            slots: Vec::new(),
            keys: HashMap::new(),
            slot_ids: HashMap::new(),
            plans: Vec::new(),
            entries: Vec::new(),
            denied: 0,
            verdicts: Vec::new(),
            said: Vec::new(),
        }
    }

    /// Keeps what a caller is charged on a route.
    pub(crate) fn plan(&mut self, resolved: &Resolved, counts_by_answer: impl Fn(&LimitName) -> bool) -> PlanId {
        let missing = resolved.missing.iter().map(|(limit, entry)| self.missing(limit, entry)).collect();
        let mut costs: Vec<Cost> = Vec::new();
        for charges in &resolved.charges {
            let next = self.keys.len();
            let key = *self.keys.entry(charges.key().clone()).or_insert(next);
            for charge in charges.charges() {
                let slot = self.slot(charge, key);
                // Two charges of one limit and key are one of their sum, or the second would not see the first.
                match costs.iter_mut().find(|cost| cost.slot == slot) {
                    Some(cost) => cost.demand.cost = cost.demand.cost.saturating_add(charge.cost),
                    None => {
                        let (demand, only_reports) = (charge.demand(), charge.mode == Mode::Shadow);
                        let by_answer = counts_by_answer(&charge.limit);
                        costs.push(Cost { slot, demand, only_reports, by_answer, penalty: charge.penalty });
                    }
                }
            }
        }
        self.plans.push(Plan { costs, missing });
        PlanId(self.plans.len() - 1)
    }

    fn limit(&mut self, name: &LimitName) -> usize {
        self.limits.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
            self.limits.push((name.clone(), LimitReport::default()));
            self.limits.len() - 1
        })
    }

    fn missing(&mut self, limit: &LimitName, entry: &str) -> (usize, usize) {
        let limit = self.limit(limit);
        let known = self.entries.iter().position(|(of, known, _)| *of == limit && known == entry);
        let place = known.unwrap_or_else(|| {
            self.entries.push((limit, entry.to_owned(), 0));
            self.entries.len() - 1
        });
        (limit, place)
    }

    fn slot(&mut self, charge: &Charge, key: usize) -> usize {
        let limit = self.limit(&charge.limit);
        let slots = &mut self.slots;
        *self.slot_ids.entry((limit, key)).or_insert_with(|| {
            slots.push(Slot::new(limit, key, charge.terms.figures));
            slots.len() - 1
        })
    }

    /// Decides one request, which counts as what `answered` says, and tells whether it passes. Requests must come in the order of
    /// their times; each is answered before the next.
    pub(crate) fn decide(
        &mut self,
        plan: PlanId,
        at: Timestamp,
        answered: impl Fn(&LimitName) -> Option<Actual>,
    ) -> bool {
        self.said.clear();
        let Some(plan) = self.plans.get(plan.0) else { return true };
        for (limit, entry) in &plan.missing {
            self.limits[*limit].1.missing_dimension += 1;
            self.entries[*entry].2 += 1;
        }
        self.verdicts.clear();
        self.verdicts.extend(plan.costs.iter().map(|cost| self.slots[cost.slot].judge(cost, at)));
        let passes =
            |(cost, verdict): (&Cost, &Verdict)| cost.only_reports || matches!(verdict, Verdict::Allowed { .. });
        let allowed = plan.costs.iter().zip(&self.verdicts).all(passes);
        self.denied += u64::from(!allowed);
        for (cost, verdict) in plan.costs.iter().zip(&self.verdicts) {
            let slot = &mut self.slots[cost.slot];
            let said = match *verdict {
                Verdict::Allowed { tat } if allowed => {
                    let actual = if cost.by_answer { answered(&self.limits[slot.limit].0) } else { None };
                    slot.charge(cost, at, tat, actual);
                    slot.allowed += 1;
                    Said::Allowed
                }
                Verdict::Allowed { .. } => {
                    self.limits[slot.limit].1.not_charged += 1;
                    Said::NotCharged
                }
                Verdict::Denied { retry_after } => {
                    slot.denied += 1;
                    slot.longest_wait = slot.longest_wait.max(Some(retry_after));
                    Said::Denied
                }
                Verdict::NeverFits => {
                    slot.denied += 1;
                    Said::Denied
                }
            };
            self.said.push((slot.limit, said));
        }
        allowed
    }

    /// What each limit said of the last request, by number, in the order of its charges.
    pub(crate) fn said(&self) -> &[(usize, Said)] {
        &self.said
    }

    /// The names of the limits, by number.
    pub(crate) fn names(&self) -> impl Iterator<Item = &LimitName> {
        self.limits.iter().map(|(name, _)| name)
    }

    /// The limit of each slot, by number.
    pub(crate) fn limits_of_slots(&self) -> impl Iterator<Item = usize> {
        self.slots.iter().map(|slot| slot.limit)
    }

    /// The slots that a caller is charged on, with the limit, the cost, and whether the answer changes that.
    pub(crate) fn costs(&self, plan: PlanId) -> impl Iterator<Item = (usize, &LimitName, u64, bool)> {
        let costs = self.plans.get(plan.0).into_iter().flat_map(|plan| &plan.costs);
        costs.map(|cost| (cost.slot, &self.limits[self.slots[cost.slot].limit].0, cost.demand.cost, cost.by_answer))
    }

    /// Forgets what was decided, and keeps what each caller is charged.
    pub(crate) fn restart(&mut self) {
        self.denied = 0;
        self.limits.iter_mut().for_each(|(_, report)| *report = LimitReport::default());
        self.entries.iter_mut().for_each(|(.., count)| *count = 0);
        self.slots.iter_mut().for_each(Slot::restart);
    }

    /// Requests that at least one limit denied.
    pub(crate) fn denied(&self) -> u64 {
        self.denied
    }

    /// What became of each limit, with its `top` most denied keys.
    pub(crate) fn limits(&self, top: usize) -> BTreeMap<String, LimitReport> {
        let mut limits = self.limits.clone();
        for (limit, entry, count) in &self.entries {
            limits[*limit].1.missing.insert(entry.clone(), *count);
        }
        let mut keys: Vec<(usize, &Key)> = self.keys.iter().map(|(key, number)| (*number, key)).collect();
        keys.sort_unstable_by_key(|(number, _)| *number);
        let mut denied: Vec<Vec<(&Slot, &Key)>> = limits.iter().map(|_| Vec::new()).collect();
        for slot in &self.slots {
            let (_, report) = &mut limits[slot.limit];
            report.keys += 1;
            report.allowed += slot.allowed;
            report.denied += slot.denied;
            if slot.denied > 0 {
                // Numbers were given in turn, so a key's number is its place.
                denied[slot.limit].push((slot, keys[slot.key].1));
            }
        }
        for ((_, report), mut slots) in limits.iter_mut().zip(denied) {
            slots.sort_by_key(|(slot, key)| (Reverse(slot.denied), *key));
            report.top_denied = slots.into_iter().take(top).map(|(slot, key)| slot.denied_key(key)).collect();
        }
        limits.into_iter().map(|(name, report)| (name.to_string(), report)).collect()
    }
}

impl Slot {
    fn new(limit: usize, key: usize, figures: Figures) -> Self {
        Self { limit, key, figures, state: None, charges: 0, penalty: None, allowed: 0, denied: 0, longest_wait: None }
    }

    fn restart(&mut self) {
        *self = Self::new(self.limit, self.key, self.figures);
    }

    /// What the limit says of a call, by its lock or its arithmetic. A denial locks, or moves the lock.
    fn judge(&mut self, cost: &Cost, at: Timestamp) -> Verdict {
        let verdict = self.figures.take(self.state.as_ref(), at, cost.demand);
        let Some(rule) = cost.penalty else { return verdict };
        let (next, verdict) = rule.judge(self.penalty.as_ref(), verdict, at);
        self.penalty = next;
        verdict
    }

    /// Charges a call that fits, unless its answer says otherwise.
    fn charge(&mut self, cost: &Cost, at: Timestamp, tat: Ticks, actual: Option<Actual>) {
        match actual {
            Some(Actual::Clear) => self.state = None,
            Some(Actual::Cost(0)) => {}
            _ => {
                self.charges += 1;
                let entry = self.figures.log().map(|_| Entry::new(at, self.charges, cost.demand.cost));
                self.state = Some(self.figures.charged(self.state.as_ref(), at, tat, entry));
            }
        }
    }

    fn denied_key(&self, key: &Key) -> DeniedKey {
        let max_wait_ms = self.longest_wait.map(millis_rounded_up);
        DeniedKey { key: key.to_string(), denied: self.denied, allowed: self.allowed, max_wait_ms }
    }
}
