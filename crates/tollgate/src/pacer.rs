//! Pacing calls that go out, to a partner who allows so many a second: each is told when it may go, whoever makes it.
//!
//! Invariant: a reservation that was granted keeps its start; one that is denied has taken nothing.
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//! use tollgate::testing::{ManualClock, MemoryStore};
//! use tollgate::{Limiter, Pacer, Policy, Reserved, Timestamp};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
//! let policy = Policy::parse(
//!     r#"
//!     version = 1
//!     [limits.partner]
//!     algorithm = "pacer"
//!     key       = ["tenant"]
//!     rate      = "10/s"
//!     burst     = 5
//!     max_wait  = "200ms"
//!     "#,
//! )?;
//! let clock = ManualClock::new(Timestamp::from_secs(1_767_225_600));
//! let limiter = Arc::new(Limiter::new(MemoryStore::new(clock.clone())));
//! let pacer = Pacer::new(policy.policy, limiter, "partner");
//!
//! for wait in [0, 100, 200] {
//!     let Reserved::Granted(reservation) = pacer.reserve(&[("tenant", "acme")], 1).await? else { panic!("no room") };
//!     assert_eq!(reservation.wait(), Duration::from_millis(wait));
//!     reservation.ready().await; // and then the call
//! }
//! // The fourth would have to wait 300 ms.
//! let Reserved::Denied { retry_after } = pacer.reserve(&[("tenant", "acme")], 1).await? else { panic!("in time") };
//! assert_eq!(retry_after, Some(Duration::from_millis(100)));
//! # Ok(())
//! # })
//! # }
//! ```

use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};
use tollgate_core::{Charges, Decision};
use tollgate_dynamodb::{Limiter, Store, Taken};
use tollgate_policy::{Algorithm, LivePolicy, Wanted};

/// A result of this module.
pub type Result<T> = std::result::Result<T, Error>;

/// Why there is neither a reservation nor a denial.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The limit, or the key, is not one of the policy's.
    #[error(transparent)]
    Policy(#[from] tollgate_policy::Error),
    /// The limit does not pace.
    #[error("limit {limit:?} counts by `{algorithm}`, which keeps nobody waiting; write `algorithm = \"pacer\"`")]
    NoPacer {
        /// The limit.
        limit: Arc<str>,
        /// How it counts.
        algorithm: &'static str,
    },
    /// The store gave no answer, and the policy says `on_store_failure = "closed"`.
    #[error(transparent)]
    Store(#[from] tollgate_dynamodb::Error),
}

/// A limit with `algorithm = "pacer"`, on a limiter. Clones share both.
#[derive(Debug)]
pub struct Pacer<S> {
    policy: LivePolicy,
    limiter: Arc<Limiter<S>>,
    limit: Arc<str>,
    plan: Option<Arc<str>>,
    max_wait: Option<Duration>,
}

impl<S> Clone for Pacer<S> {
    fn clone(&self) -> Self {
        let (policy, limiter, limit) = (self.policy.clone(), Arc::clone(&self.limiter), Arc::clone(&self.limit));
        Self { policy, limiter, limit, plan: self.plan.clone(), max_wait: self.max_wait }
    }
}

impl<S: Store> Pacer<S> {
    /// A pacer by the limit `limit` of the policy in force.
    #[must_use]
    pub fn new(policy: impl Into<LivePolicy>, limiter: Arc<Limiter<S>>, limit: &str) -> Self {
        Self { policy: policy.into(), limiter, limit: Arc::from(limit), plan: None, max_wait: None }
    }

    /// The same by the figures of a plan.
    #[must_use]
    pub fn on_plan(self, plan: &str) -> Self {
        Self { plan: Some(Arc::from(plan)), ..self }
    }

    /// The same for callers who would wait no longer than `longest`; the policy's `max_wait` holds beside it.
    #[must_use]
    pub fn waiting_at_most(self, longest: Duration) -> Self {
        Self { max_wait: Some(longest), ..self }
    }

    /// Takes the next slot of `key`, dimensions and values, for a call of `cost`. One write, one round trip. A cost of 0 takes
    /// none, reads, and tells when the next would go.
    ///
    /// Where the store gives no answer, this process tells slots of its share of the rate; if `on_store_failure` is `"open"`, the call
    /// may go at once, without a slot ([`Decision::unasked`] tells). A partner who must not see more than the rate even if there
    /// are more processes than `instances` says wants `"closed"`.
    ///
    /// # Errors
    ///
    /// [`Error`]. A denial is none.
    pub async fn reserve(&self, key: &[(&str, &str)], cost: u64) -> Result<Reserved<S>> {
        let policy = self.policy.current();
        let algorithm = policy.limit(&self.limit)?.algorithm();
        if !matches!(algorithm, Algorithm::Pacer { .. }) {
            return Err(Error::NoPacer { limit: Arc::clone(&self.limit), algorithm: algorithm.as_str() });
        }
        let wanted = Wanted { limit: &self.limit, key, plan: self.plan.as_deref(), cost };
        let charges = policy.charges(&[wanted])?.into_iter();
        let charges: Vec<_> = match self.max_wait {
            Some(longest) => charges.map(|charges| charges.waiting_at_most(longest)).collect(),
            None => charges.collect(),
        };
        let (decision, taken) = self.limiter.take_unsettled(&charges).await?;
        if !decision.is_allowed() {
            return Ok(Reserved::Denied { retry_after: decision.retry_after() });
        }
        let limiter = Arc::clone(&self.limiter);
        // The answer took its time, which is a part of the wait.
        let (now, made) = (limiter.store().moment().now.as_nanos(), Instant::now());
        let left = decision.starts_at().map_or(0, |start| start.as_nanos().saturating_sub(now));
        let wait = Duration::from_nanos(left).min(decision.starts_after());
        Ok(Reserved::Granted(Reservation { limiter, charges, decision, taken, wait, made }))
    }
}

/// What became of a wish for a slot.
#[derive(Debug)]
pub enum Reserved<S> {
    /// There is one.
    Granted(Reservation<S>),
    /// There is none in time, and nothing was taken.
    Denied {
        /// How long to wait before asking again, if nobody else comes; `None` if the cost is above what the queue holds.
        retry_after: Option<Duration>,
    },
}

/// A slot: when a call may go. It stays taken unless it is [cancelled](Self::cancel).
#[derive(Debug)]
#[must_use = "the slot is taken, and the call is to wait for it"]
pub struct Reservation<S> {
    limiter: Arc<Limiter<S>>,
    charges: Vec<Charges>,
    decision: Decision,
    taken: Taken,
    wait: Duration,
    made: Instant,
}

impl<S: Store> Reservation<S> {
    /// How long to wait before the call may go, from when this was made; zero if it may at once.
    #[must_use]
    pub fn wait(&self) -> Duration {
        self.wait
    }

    /// What was decided.
    #[must_use]
    pub fn decision(&self) -> &Decision {
        &self.decision
    }

    /// Sleeps until the call may go, what has passed since this was made included.
    pub async fn ready(&self) {
        match self.made.checked_add(self.wait) {
            Some(start) => sleep_until(start).await,
            // Later than the clock can tell.
            None => std::future::pending().await,
        }
    }

    /// Gives the slot back, of a call that has not gone and will not. Only the last of a queue can be, since whoever is behind
    /// was told when to go; any other passes unused.
    pub async fn cancel(self) {
        self.limiter.cancel(&self.charges, self.taken).await;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::{Pacer, Reservation, Reserved};
    use crate::testing::{ManualClock, MemoryStore};
    use std::sync::Arc;
    use std::time::Duration;
    use tollgate_core::take::Moment;
    use tollgate_core::{Item, ItemKey, LimitName, Timestamp, Write};
    use tollgate_dynamodb::{Limiter, Meter, Result, Store, Transacted, Written};
    use tollgate_policy::Policy;

    /// A table whose answers take 30 ms.
    struct Slow {
        table: MemoryStore,
        clock: ManualClock,
    }

    impl Store for Slow {
        fn moment(&self) -> Moment {
            self.table.moment()
        }

        fn meter(&self) -> &dyn Meter {
            self.table.meter()
        }

        async fn read(&self, key: &ItemKey, limits: &[&LimitName]) -> Result<Option<Item>> {
            self.table.read(key, limits).await
        }

        async fn write(&self, key: &ItemKey, write: &Write) -> Result<Written> {
            let written = self.table.write(key, write).await;
            self.clock.advance(Duration::from_millis(30));
            written
        }

        async fn transact(&self, writes: &[(&ItemKey, &Write)]) -> Result<Transacted> {
            self.table.transact(writes).await
        }
    }

    async fn reserve(pacer: &Pacer<Slow>) -> Reservation<Slow> {
        match pacer.reserve(&[("tenant", "acme")], 1).await.unwrap() {
            Reserved::Granted(reservation) => reservation,
            Reserved::Denied { retry_after } => panic!("come back in {retry_after:?}"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_that_an_answer_took_is_a_part_of_the_wait() {
        let clock = ManualClock::new(Timestamp::from_secs(1_767_225_600));
        let limiter = Limiter::new(Slow { table: MemoryStore::new(clock.clone()), clock });
        let policy = "version = 1\n[limits.a]\nkey = ['tenant']\nrate = '10/s'\nalgorithm = 'pacer'\nburst = 3\n";
        let pacer = Pacer::new(Policy::parse(policy).unwrap().policy, Arc::new(limiter), "a");
        let mut waits = Vec::new();
        for _ in 0..2 {
            waits.push(reserve(&pacer).await.wait().as_millis());
        }
        assert_eq!(waits, [0, 40], "the second slot is 100 ms after the first, which was asked for 60 ms ago");
        let (before, last) = (tokio::time::Instant::now(), reserve(&pacer).await);
        // What else is done in the meantime is, too.
        tokio::time::sleep(Duration::from_millis(50)).await;
        last.ready().await;
        assert_eq!((last.wait().as_millis(), before.elapsed().as_millis()), (110, 110));
        last.ready().await;
        assert_eq!(before.elapsed().as_millis(), 110, "its time has come");
    }
}
