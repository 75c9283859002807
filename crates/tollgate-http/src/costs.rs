//! What an admitted request has come to: told by its handler, by its status, or as it was charged.
//!
//! Invariant: what depends on the answer is settled before the answer goes out, since a function may be frozen right after it. A
//! handler that is dropped before it answers leaves the request counted as it was charged.

use crate::answer::{Additions, Decided};
use http::StatusCode;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tollgate_core::{Actual, Charge, Charges, LimitName};
use tollgate_dynamodb::{Limiter, Store, Taken};
use tollgate_policy::Policy;

/// The true costs of a request whose route says `settle_within`, for its handler to tell. An extension of the request.
///
/// ```
/// use tollgate_http::Costs;
/// # fn complete(_prompt: &str) -> (String, u64) { (String::new(), 57) }
/// # fn handler(request: http::Request<String>) -> Result<String, tollgate_http::NotSettled> {
/// let (text, tokens) = complete(request.body());
/// if let Some(costs) = request.extensions().get::<Costs>() {
///     costs.settle("tokens", tokens)?;
/// }
/// # Ok(text)
/// # }
/// ```
///
/// Less than was charged is given back, more is charged up to the limit's `debt`, both before the answer goes out; 0 is a request
/// that does not count. What is not told is what was charged. It has to be told before the handler answers; what a body costs that
/// is streamed after that is settled with `Limiter::take_unsettled` and `Limiter::settle`, by whoever streams it.
#[derive(Debug, Clone)]
pub struct Costs(Arc<Mutex<Told>>);

#[derive(Debug)]
struct Told {
    costs: BTreeMap<LimitName, Option<u64>>,
    is_settled: bool,
}

/// Why a cost that was told does not count.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotSettled {
    /// The request is not charged on that limit with `settle_within`.
    #[error(
        "this request has nothing to settle on limit {limit:?}: the route charges it with `settle_within` on: {known}"
    )]
    NotCharged {
        /// The limit.
        limit: String,
        /// Those that it is charged on so.
        known: String,
    },
    /// The handler has answered, and the request is settled: a body that is streamed comes after that.
    #[error("this request was settled when its handler answered; tell what it has cost before")]
    TooLate,
}

impl Costs {
    fn of<'a>(charges: impl Iterator<Item = &'a Charge>) -> Option<Self> {
        let open: BTreeMap<_, _> =
            charges.filter(|c| c.settled_within.is_some()).map(|c| (c.limit.clone(), None)).collect();
        (!open.is_empty()).then(|| Self(Arc::new(Mutex::new(Told { costs: open, is_settled: false }))))
    }

    /// Tells what the request has cost on a limit, in tokens. The last word counts.
    ///
    /// # Errors
    ///
    /// [`NotSettled`].
    pub fn settle(&self, limit: &str, cost: u64) -> Result<(), NotSettled> {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if told.is_settled {
            return Err(NotSettled::TooLate);
        }
        match told.costs.get_mut(limit) {
            Some(told) => *told = Some(cost),
            None => {
                let known: Vec<_> = told.costs.keys().map(LimitName::as_str).collect();
                return Err(NotSettled::NotCharged { limit: limit.to_owned(), known: known.join(", ") });
            }
        }
        Ok(())
    }

    /// What was told until now; nothing can be told any more.
    fn close(&self) -> BTreeMap<LimitName, Option<u64>> {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        told.is_settled = true;
        std::mem::take(&mut told.costs)
    }
}

/// What an admitted request was charged that its answer can change.
#[derive(Debug)]
pub(crate) struct Unsettled {
    policy: Arc<Policy>,
    decided: Decided,
    charges: Vec<Charges>,
    taken: Taken,
    /// For the handler, if it can tell.
    pub(crate) costs: Option<Costs>,
}

impl Unsettled {
    /// `None` if the answer changes nothing.
    pub(crate) fn new(policy: &Arc<Policy>, decided: &Decided, charges: Vec<Charges>, taken: Taken) -> Option<Self> {
        let all = || charges.iter().flat_map(Charges::charges);
        let costs = Costs::of(all());
        let by_answer = |charge: &Charge| policy.limit(charge.limit.as_str()).is_ok_and(|l| l.counts_by_answer());
        let changes = costs.is_some() || all().any(by_answer);
        changes.then(|| Self { policy: Arc::clone(policy), decided: decided.clone(), charges, taken, costs })
    }

    /// Settles it for an answer with this status, and tells the fields of the answer as it is then.
    pub(crate) async fn settle<S: Store>(self, limiter: &Limiter<S>, status: StatusCode, told: Additions) -> Additions {
        let Self { policy, mut decided, charges, taken, costs } = self;
        let costs = costs.map(|costs| costs.close()).unwrap_or_default();
        let actual = |limit: &LimitName| {
            let told = costs.get(limit).copied().flatten().map(Actual::Cost);
            let answered = || policy.limit(limit.as_str()).ok()?.answered(status.as_u16());
            // What nobody says anything of is settled as it was charged, which ends the reservation.
            let charged = || charges.iter().flat_map(Charges::charges).find(|charge| charge.limit == *limit);
            let reserved = || charged().filter(|charge| charge.settled_within.is_some());
            told.or_else(answered).or_else(|| reserved().map(|charge| Actual::Cost(charge.cost)))
        };
        let settled = limiter.settle(&charges, taken, actual).await;
        decided.updated(settled.limits);
        told.settled(&decided, &policy)
    }
}
