//! What is counted: a list of events that the limiter, the stores and whoever loads the policy report, and a trait for whoever exports them.
//!
//! Invariant: an event carries no key and no personal value, only names and routes that the policy declares.

use crate::breaker::BreakerState;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tollgate_core::take::Notice;
use tollgate_core::{Charges, Decision, Held, LimitDecision, Mode, Outcome, Source, StoreFailure};

/// Something worth counting.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A request was sent to the table.
    RoundTrip,
    /// Write units that the table bills for a write, refused ones included.
    WriteUnits(u64),
    /// Read units that the table bills for a read.
    ReadUnits(u64),
    /// A decision was made.
    Decision(&'a Decision),
    /// No decision on these charges could be made, and the call is to be refused: the limiter failed, nobody is limited.
    Unavailable(&'a [Charges]),
    /// How long a decision took, made or not.
    Took(Duration),
    /// Something happened on the way to a decision.
    Notice(&'a Notice),
    /// So many calls shared the write of another.
    Coalesced(u64),
    /// So many tokens were taken ahead of the calls that are expected.
    TakenAhead(u64),
    /// The table throttled a request, which will be sent again if there is time.
    Throttled,
    /// What a call had been charged was given back, since another of its keys refused it.
    Refunded,
    /// A charge could not be given back: its tokens come back as the bucket refills.
    RefundLost,
    /// What a call had been charged was made what it has come to.
    Settled,
    /// A charge could not be settled: it is what was estimated, or what it has come to.
    SettlementLost,
    /// A call was settled when its limit did not know of it any more.
    SettledLate,
    /// A call cost more than the limit's room and debt.
    BeyondDebt {
        /// Which limit.
        limit: &'a str,
        /// By how many tokens.
        tokens: u64,
    },
    /// A part of a decision failed: the store gave no answer or was not asked for that, or the key was too contended or hot.
    StoreFailure(&'a crate::Error),
    /// A decision, or a part of it, was made without the store, by this rule, the strictest of the parts': the limiter is degraded.
    Degraded(StoreFailure),
    /// The circuit breaker opened, so that decisions skip the table, or closed again.
    Breaker(BreakerState),
    /// The local clock is this many milliseconds ahead of the table's (behind, if negative) and is being corrected.
    ClockSkew(i64),
    /// A policy came into force.
    PolicyLoaded {
        /// Its revision.
        revision: u64,
    },
    /// A newer policy could not be read or has mistakes; the one in force stays.
    PolicyRejected,
    /// A call had no value for the key of this limit, and went on the bucket that such calls share.
    MissingDimension(&'a str),
    /// The policy trusts proxies to tell the client's address, and they did not, or told no address: the call has none.
    UnprovenAddress,
    /// The client's address is probably that of a proxy in front, which the policy does not know of: its clients share a
    /// bucket.
    SharedAddress,
    /// A caller named a plan that the policy does not have, and was counted on the default plan.
    UnknownPlan,
    /// A caller has to prove again who he is before a route lets him through.
    StepUpRequired {
        /// The route, as the policy writes it.
        route: &'a str,
        /// What he falls short of, a word of few.
        reason: &'static str,
    },
    /// Nobody knows whether a caller of this route, as the policy writes it, has proved who he is; the call is refused.
    StepUpUnavailable(&'a str),
    /// What became of messages was judged.
    Judged {
        /// How many prefixes and countries are suspected, those that are blocked included.
        suspected: u64,
        /// How many are blocked.
        blocked: u64,
    },
    /// A message was refused, since its number is suspected.
    Suspected,
}

/// Takes events, for instance to export them. Called on the path of a decision: it must not block.
pub trait Meter: Send + Sync + fmt::Debug {
    /// Takes one event.
    fn record(&self, event: Event<'_>);
}

impl<M: Meter + ?Sized> Meter for Arc<M> {
    fn record(&self, event: Event<'_>) {
        (**self).record(event);
    }
}

/// Takes events if there is one.
impl<M: Meter> Meter for Option<M> {
    fn record(&self, event: Event<'_>) {
        if let Some(meter) = self {
            meter.record(event);
        }
    }
}

/// Both take every event.
impl<A: Meter, B: Meter> Meter for (A, B) {
    fn record(&self, event: Event<'_>) {
        self.0.record(event);
        self.1.record(event);
    }
}

/// Counts every event in memory.
#[derive(Debug, Default)]
pub struct Counters {
    round_trips: AtomicU64,
    write_units: AtomicU64,
    read_units: AtomicU64,
    decisions: AtomicU64,
    allowed: AtomicU64,
    denied: AtomicU64,
    never_fits: AtomicU64,
    unavailable: AtomicU64,
    from_memory: AtomicU64,
    banned: AtomicU64,
    shadow_denied: AtomicU64,
    refunded: AtomicU64,
    refunds_lost: AtomicU64,
    settled: AtomicU64,
    settlements_lost: AtomicU64,
    settled_late: AtomicU64,
    tokens_beyond_debt: AtomicU64,
    mispredicted: AtomicU64,
    revision_conflicts: AtomicU64,
    pulled_back: AtomicU64,
    penalised: AtomicU64,
    kept_out: AtomicU64,
    coalesced: AtomicU64,
    leased: AtomicU64,
    tokens_ahead: AtomicU64,
    throttled: AtomicU64,
    store_failures: AtomicU64,
    contended: AtomicU64,
    hot_keys: AtomicU64,
    suspended: AtomicU64,
    degraded: AtomicU64,
    local: AtomicU64,
    local_denied: AtomicU64,
    breaker_opened: AtomicU64,
    breaker_closed: AtomicU64,
    clock_skews: AtomicU64,
    policies_loaded: AtomicU64,
    policies_rejected: AtomicU64,
    missing_dimensions: AtomicU64,
    unproven_addresses: AtomicU64,
    shared_addresses: AtomicU64,
    unknown_plans: AtomicU64,
    step_ups_required: AtomicU64,
    step_ups_unavailable: AtomicU64,
    judged: AtomicU64,
    pumping_suspected: AtomicU64,
    pumping_blocked: AtomicU64,
    messages_refused: AtomicU64,
}

/// The counts of [`Counters`] at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[allow(missing_docs, reason = "each is the count of the event of its name")]
#[non_exhaustive]
pub struct Counts {
    pub round_trips: u64,
    pub write_units: u64,
    pub read_units: u64,
    pub decisions: u64,
    pub allowed: u64,
    pub denied: u64,
    pub never_fits: u64,
    pub unavailable: u64,
    pub from_memory: u64,
    pub banned: u64,
    pub shadow_denied: u64,
    pub refunded: u64,
    pub refunds_lost: u64,
    pub settled: u64,
    pub settlements_lost: u64,
    pub settled_late: u64,
    pub tokens_beyond_debt: u64,
    pub mispredicted: u64,
    pub revision_conflicts: u64,
    pub pulled_back: u64,
    pub penalised: u64,
    /// Locks whose address was to be kept out in front.
    pub kept_out: u64,
    pub coalesced: u64,
    pub leased: u64,
    pub tokens_ahead: u64,
    pub throttled: u64,
    pub store_failures: u64,
    pub contended: u64,
    pub hot_keys: u64,
    pub suspended: u64,
    pub degraded: u64,
    pub local: u64,
    pub local_denied: u64,
    pub breaker_opened: u64,
    pub breaker_closed: u64,
    pub clock_skews: u64,
    pub policies_loaded: u64,
    pub policies_rejected: u64,
    pub missing_dimensions: u64,
    pub unproven_addresses: u64,
    pub shared_addresses: u64,
    pub unknown_plans: u64,
    pub step_ups_required: u64,
    pub step_ups_unavailable: u64,
    pub judged: u64,
    pub pumping_suspected: u64,
    pub pumping_blocked: u64,
    pub messages_refused: u64,
}

impl Counters {
    /// The counts so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            round_trips: get(&self.round_trips),
            write_units: get(&self.write_units),
            read_units: get(&self.read_units),
            decisions: get(&self.decisions),
            allowed: get(&self.allowed),
            denied: get(&self.denied),
            never_fits: get(&self.never_fits),
            unavailable: get(&self.unavailable),
            from_memory: get(&self.from_memory),
            banned: get(&self.banned),
            shadow_denied: get(&self.shadow_denied),
            refunded: get(&self.refunded),
            refunds_lost: get(&self.refunds_lost),
            settled: get(&self.settled),
            settlements_lost: get(&self.settlements_lost),
            settled_late: get(&self.settled_late),
            tokens_beyond_debt: get(&self.tokens_beyond_debt),
            mispredicted: get(&self.mispredicted),
            revision_conflicts: get(&self.revision_conflicts),
            pulled_back: get(&self.pulled_back),
            penalised: get(&self.penalised),
            kept_out: get(&self.kept_out),
            coalesced: get(&self.coalesced),
            leased: get(&self.leased),
            tokens_ahead: get(&self.tokens_ahead),
            throttled: get(&self.throttled),
            store_failures: get(&self.store_failures),
            contended: get(&self.contended),
            hot_keys: get(&self.hot_keys),
            suspended: get(&self.suspended),
            degraded: get(&self.degraded),
            local: get(&self.local),
            local_denied: get(&self.local_denied),
            breaker_opened: get(&self.breaker_opened),
            breaker_closed: get(&self.breaker_closed),
            clock_skews: get(&self.clock_skews),
            policies_loaded: get(&self.policies_loaded),
            policies_rejected: get(&self.policies_rejected),
            missing_dimensions: get(&self.missing_dimensions),
            unproven_addresses: get(&self.unproven_addresses),
            shared_addresses: get(&self.shared_addresses),
            unknown_plans: get(&self.unknown_plans),
            step_ups_required: get(&self.step_ups_required),
            step_ups_unavailable: get(&self.step_ups_unavailable),
            judged: get(&self.judged),
            pumping_suspected: get(&self.pumping_suspected),
            pumping_blocked: get(&self.pumping_blocked),
            messages_refused: get(&self.messages_refused),
        }
    }
}

impl Meter for Counters {
    fn record(&self, event: Event<'_>) {
        let add = |counter: &AtomicU64, n: u64| {
            if n > 0 {
                counter.fetch_add(n, Ordering::Relaxed);
            }
        };
        match event {
            Event::RoundTrip => add(&self.round_trips, 1),
            Event::WriteUnits(units) => add(&self.write_units, units),
            Event::ReadUnits(units) => add(&self.read_units, units),
            Event::Decision(decision) => {
                add(&self.decisions, 1);
                match decision.outcome() {
                    Outcome::Allowed => add(&self.allowed, 1),
                    Outcome::NeverFits => add(&self.never_fits, 1),
                    _ => add(&self.denied, 1),
                }
                let any = |is: fn(&LimitDecision) -> bool| u64::from(decision.limits.iter().any(is));
                add(&self.from_memory, any(|l| l.source == Source::Cache));
                add(&self.leased, any(|l| l.source == Source::Lease));
                add(&self.local, any(|l| l.source == Source::Local));
                add(&self.local_denied, any(|l| l.source == Source::Local && l.is_in_the_way()));
                add(&self.banned, any(|l| l.is_in_the_way() && matches!(l.held, Some(Held::Ban { .. }))));
                add(&self.shadow_denied, any(|l| l.mode == Mode::Shadow && l.outcome != Outcome::Allowed));
            }
            Event::Unavailable(_) => add(&self.unavailable, 1),
            Event::Took(_) => {}
            Event::Refunded => add(&self.refunded, 1),
            Event::RefundLost => add(&self.refunds_lost, 1),
            Event::Settled => add(&self.settled, 1),
            Event::SettlementLost => add(&self.settlements_lost, 1),
            Event::SettledLate => add(&self.settled_late, 1),
            Event::BeyondDebt { tokens, .. } => add(&self.tokens_beyond_debt, tokens),
            Event::Notice(Notice::Mispredicted) => add(&self.mispredicted, 1),
            Event::Notice(Notice::RevisionConflict(_)) => add(&self.revision_conflicts, 1),
            Event::Notice(Notice::PulledBack(_)) => add(&self.pulled_back, 1),
            Event::Notice(Notice::Penalised(_)) => add(&self.penalised, 1),
            Event::Notice(Notice::KeptOut { .. }) => add(&self.kept_out, 1),
            Event::Notice(_) => {}
            Event::Coalesced(calls) => add(&self.coalesced, calls),
            Event::TakenAhead(tokens) => add(&self.tokens_ahead, tokens),
            Event::Throttled => add(&self.throttled, 1),
            Event::StoreFailure(crate::Error::Contended { .. }) => add(&self.contended, 1),
            Event::StoreFailure(crate::Error::HotKey(_)) => add(&self.hot_keys, 1),
            Event::StoreFailure(crate::Error::Suspended) => add(&self.suspended, 1),
            Event::StoreFailure(_) => add(&self.store_failures, 1),
            Event::Degraded(_) => add(&self.degraded, 1),
            Event::Breaker(BreakerState::Closed) => add(&self.breaker_closed, 1),
            Event::Breaker(_) => add(&self.breaker_opened, 1),
            Event::ClockSkew(_) => add(&self.clock_skews, 1),
            Event::PolicyLoaded { .. } => add(&self.policies_loaded, 1),
            Event::PolicyRejected => add(&self.policies_rejected, 1),
            Event::MissingDimension(_) => add(&self.missing_dimensions, 1),
            Event::UnprovenAddress => add(&self.unproven_addresses, 1),
            Event::SharedAddress => add(&self.shared_addresses, 1),
            Event::UnknownPlan => add(&self.unknown_plans, 1),
            Event::StepUpRequired { .. } => add(&self.step_ups_required, 1),
            Event::StepUpUnavailable(_) => add(&self.step_ups_unavailable, 1),
            Event::Judged { suspected, blocked } => {
                add(&self.judged, 1);
                add(&self.pumping_suspected, suspected);
                add(&self.pumping_blocked, blocked);
            }
            Event::Suspected => add(&self.messages_refused, 1),
        }
    }
}
