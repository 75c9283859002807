//! What the counts of a process are called in CloudWatch.
//!
//! Invariant: every count has a name. They are singular where the counts of [`Counts`] are plural: a metric is the sum of events.

use tollgate_dynamodb::meter::Counts;

/// How long decisions took.
pub(super) const LATENCY: &str = "DecisionLatency";

/// What limits said, by limit, outcome and source.
pub(super) const LIMIT_DECISIONS: &str = "LimitDecisions";

/// Told of the whole and of a limit.
pub(super) const BEYOND_DEBT: &str = "TokensBeyondDebt";
pub(super) const REVISION_CONFLICT: &str = "RevisionConflict";
pub(super) const PULLED_BACK: &str = "PulledBack";
pub(super) const PENALISED: &str = "Penalised";
pub(super) const MISSING_DIMENSION: &str = "MissingDimension";

/// Told of the whole and of a route.
pub(super) const STEP_UP_REQUIRED: &str = "StepUpRequired";
pub(super) const STEP_UP_UNAVAILABLE: &str = "StepUpUnavailable";

/// A metric's name, and its count.
type Named = (&'static str, fn(&Counts) -> u64);

/// The counts of a process.
pub(super) const COUNTS: &[Named] = &[
    ("Decisions", |c| c.decisions),
    ("Allowed", |c| c.allowed),
    ("Denied", |c| c.denied),
    ("NeverFits", |c| c.never_fits),
    ("Unavailable", |c| c.unavailable),
    ("LimiterDegraded", |c| c.degraded),
    ("StoreFailure", |c| c.store_failures),
    ("HotKey", |c| c.hot_keys),
    ("Suspended", |c| c.suspended),
    ("BreakerOpened", |c| c.breaker_opened),
    ("BreakerClosed", |c| c.breaker_closed),
    ("DecidedLocally", |c| c.local),
    ("DeniedLocally", |c| c.local_denied),
    ("RoundTrips", |c| c.round_trips),
    ("WriteUnits", |c| c.write_units),
    ("ReadUnits", |c| c.read_units),
    ("DeniedFromMemory", |c| c.from_memory),
    ("ShadowDenied", |c| c.shadow_denied),
    ("Banned", |c| c.banned),
    (PENALISED, |c| c.penalised),
    ("KeptOut", |c| c.kept_out),
    ("Refunded", |c| c.refunded),
    ("RefundLost", |c| c.refunds_lost),
    ("Settled", |c| c.settled),
    ("SettlementLost", |c| c.settlements_lost),
    ("SettledLate", |c| c.settled_late),
    (BEYOND_DEBT, |c| c.tokens_beyond_debt),
    ("Mispredicted", |c| c.mispredicted),
    (REVISION_CONFLICT, |c| c.revision_conflicts),
    (PULLED_BACK, |c| c.pulled_back),
    ("Coalesced", |c| c.coalesced),
    ("Leased", |c| c.leased),
    ("TokensAhead", |c| c.tokens_ahead),
    ("Throttled", |c| c.throttled),
    ("Contended", |c| c.contended),
    ("ClockSkew", |c| c.clock_skews),
    ("PolicyLoaded", |c| c.policies_loaded),
    ("PolicyRejected", |c| c.policies_rejected),
    (MISSING_DIMENSION, |c| c.missing_dimensions),
    ("UnprovenAddress", |c| c.unproven_addresses),
    ("SharedAddress", |c| c.shared_addresses),
    ("UnknownPlan", |c| c.unknown_plans),
    (STEP_UP_REQUIRED, |c| c.step_ups_required),
    (STEP_UP_UNAVAILABLE, |c| c.step_ups_unavailable),
    ("PumpingJudged", |c| c.judged),
    ("PumpingSuspected", |c| c.pumping_suspected),
    ("PumpingBlocked", |c| c.pumping_blocked),
    ("MessageRefused", |c| c.messages_refused),
];

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::{COUNTS, Counts};
    use std::collections::BTreeSet;

    #[test]
    fn every_count_has_a_metric_of_its_own() {
        let mut numbered = serde_json::to_value(Counts::default()).unwrap();
        for (i, count) in numbered.as_object_mut().unwrap().values_mut().enumerate() {
            *count = (i + 1).into();
        }
        let of_all = numbered.as_object().unwrap().len();
        let counts: Counts = serde_json::from_value(numbered).unwrap();
        let told: BTreeSet<_> = COUNTS.iter().map(|(_, count)| usize::try_from(count(&counts)).unwrap()).collect();
        assert_eq!(told, (1..=of_all).collect());
        let names: BTreeSet<_> = COUNTS.iter().map(|(name, _)| name).collect();
        assert_eq!(names.len(), of_all);
    }
}
