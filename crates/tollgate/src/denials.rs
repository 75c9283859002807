//! A line in the log for each denial, that answers "why 429?".
//!
//! Invariant: a line has names that the policy declares and numbers, and of the caller only a reference that nobody can read
//! without the key secrets ([`KeySecrets::reference`]): never a value of a key, but for a tenant and the id of an API key where the
//! policy says `log` of them.
//!
//! The event is at level INFO with the target `tollgate::denials`; whoever logs it adds what the spans around it say (the
//! route, and `tenant` and `api_key` as [`Policy::logged`](tollgate_policy::Policy::logged) tells them; on Lambda the ids of request
//! and trace).
//!
//! | field | what it is |
//! | --- | --- |
//! | `limit` | the limit that is in the way; of several the one that answers name |
//! | `also` | the others, with commas |
//! | `key` | the names of the key's dimensions, with commas |
//! | `key_ref` | what stands for the key: `tollgate inspect KEY` tells it. Only with key secrets |
//! | `outcome` | `denied` or `never_fits` |
//! | `plan`, `revision` | the terms that it was decided under |
//! | `cost`, `remaining` | what was asked for, and what is left |
//! | `retry_after_ms` | the wait, before jitter |
//! | `source` | `table`, `cache`, or `open` for a cost that never fits while the store is gone |
//! | `held` | `ban`, `override` or `penalty`, if it was decided by one |
//! | `store_time_ms` | when, by the table's clock, in milliseconds since 1970 |

use tollgate_core::time::millis_rounded_up;
use tollgate_core::{Decision, Held, Key, LimitDecision, Outcome, Unasked};
use tollgate_dynamodb::{Event, Meter};
use tollgate_policy::KeySecrets;

/// The target of the events.
const TARGET: &str = "tollgate::denials";

/// Logs denials. A [`Meter`]: `(metrics, denials)` is one that does both.
#[derive(Debug, Clone, Default)]
pub struct Denials {
    secrets: KeySecrets,
}

impl Denials {
    /// With references to keys under `secrets`, which may be none.
    #[must_use]
    pub fn new(secrets: KeySecrets) -> Self {
        Self { secrets }
    }

    fn tell(&self, decision: &Decision) {
        let in_the_way = || decision.limits.iter().filter(|limit| limit.is_in_the_way());
        if let Some(limit) = in_the_way().max_by_key(|limit| limit.urgency()) {
            let others = in_the_way().filter(|other| !std::ptr::eq(*other, limit)).map(|other| other.limit.as_str());
            self.tell_denied(limit, &others.collect::<Vec<_>>().join(","));
        } else if let Some(limit) = decision.unasked.iter().find(|limit| limit.never_fits()) {
            self.tell_unasked(limit);
        }
    }

    fn tell_denied(&self, limit: &LimitDecision, also: &str) {
        tracing::info!(
            target: TARGET,
            limit = limit.limit.as_str(),
            also = some(also),
            key = names(&limit.key),
            key_ref = self.secrets.reference(&limit.key),
            outcome = limit.said(),
            plan = some(&limit.terms.plan),
            revision = limit.terms.revision,
            cost = limit.cost,
            remaining = limit.remaining,
            retry_after_ms = limit.retry_after.map(millis_rounded_up),
            source = limit.source.as_str(),
            held = limit.held.map(Held::as_str),
            store_time_ms = limit.decided_at.as_millis(),
            "denied"
        );
    }

    fn tell_unasked(&self, limit: &Unasked) {
        tracing::info!(
            target: TARGET,
            limit = limit.charge.limit.as_str(),
            key = names(&limit.key),
            key_ref = self.secrets.reference(&limit.key),
            outcome = Outcome::NeverFits.as_str(),
            plan = some(&limit.charge.terms.plan),
            revision = limit.charge.terms.revision,
            cost = limit.charge.cost,
            source = limit.source.as_str(),
            "denied"
        );
    }
}

impl Meter for Denials {
    fn record(&self, event: Event<'_>) {
        if let Event::Decision(decision) = event
            && !decision.is_allowed()
            && tracing::enabled!(target: TARGET, tracing::Level::INFO)
        {
            self.tell(decision);
        }
    }
}

fn names(key: &Key) -> String {
    key.dimensions().map(|(name, _)| name).collect::<Vec<_>>().join(",")
}

fn some(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}
