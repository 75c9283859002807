//! How long a decision waits, how it makes way for others, and what it means that its time is over.
//!
//! Invariants: nothing is sent, and nobody sleeps, past the end; a write is sent again only if it was not applied; once
//! others were seen to be in the way, running out of time is contention and no outage, so it never lets a call pass; nor is it
//! one once the key was seen to be hot. Whoever waits for another's request has met what that has met.

use crate::error::{Error, Fate, Result};
use crate::meter::{Event, Meter};
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::sync::oneshot::error::RecvError;
use tokio::time::{Instant, sleep, timeout_at};

/// The time that a request has, its repetitions included, and what it has met so far. Shared by the parts that succeed or fail as one.
#[derive(Debug)]
pub(crate) struct Patience {
    until: Instant,
    within: Duration,
    writes: AtomicU32,
    is_begun: AtomicBool,
    is_spent: AtomicBool,
    met: Met,
    /// What those who wait had met before.
    met_before: Met,
}

/// What time goes to that is no outage.
#[derive(Debug, Default)]
struct Met {
    others: AtomicBool,
    a_hot_key: AtomicBool,
}

impl Met {
    /// The same and `other`.
    fn and(&self, other: &Self) -> Self {
        let either = |one: &AtomicBool, other: &AtomicBool| {
            AtomicBool::new(one.load(Ordering::Relaxed) || other.load(Ordering::Relaxed))
        };
        Self { others: either(&self.others, &other.others), a_hot_key: either(&self.a_hot_key, &other.a_hot_key) }
    }
}

impl Patience {
    pub(crate) fn new(within: Duration) -> Self {
        let (is_begun, is_spent) = (AtomicBool::new(false), AtomicBool::new(false));
        let (met, met_before) = (Met::default(), Met::default());
        Self { until: Instant::now() + within, within, writes: AtomicU32::new(0), is_begun, is_spent, met, met_before }
    }

    /// The same, of a request for those who have waited for another one.
    pub(crate) fn after(self, other: &Self) -> Self {
        Self { met_before: other.met.and(&Met::default()), ..self }
    }

    /// Whether all of the time is left: nothing was asked yet, and nobody waited for.
    pub(crate) fn is_whole(&self) -> bool {
        !self.is_begun.load(Ordering::Relaxed)
    }

    /// Whether the time was not enough.
    pub(crate) fn is_spent(&self) -> bool {
        self.is_spent.load(Ordering::Relaxed)
    }

    /// Whether the end has passed by as long again, which none that goes on is late by.
    pub(crate) fn is_held_up(&self) -> bool {
        Instant::now() >= self.until + self.within
    }

    fn is_over(&self) -> bool {
        Instant::now() >= self.until
    }

    fn begin(&self) {
        self.is_begun.store(true, Ordering::Relaxed);
    }

    /// Sends a request that only reads.
    pub(crate) async fn read<T>(&self, request: impl Future<Output = Result<T>>) -> Result<T> {
        self.begin();
        if self.is_over() {
            return Err(self.over(Error::Deadline(self.within)));
        }
        timeout_at(self.until, request).await.unwrap_or_else(|_| Err(self.over(Error::Deadline(self.within))))
    }

    /// Sends a request that writes, again only while the table says that it was not applied.
    pub(crate) async fn write<T, F>(&self, meter: &dyn Meter, request: impl Fn() -> F) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        let mut backoff = Backoff::new(Duration::from_millis(5));
        self.begin();
        loop {
            if self.is_over() {
                return Err(self.over(Error::Deadline(self.within)));
            }
            self.writes.fetch_add(1, Ordering::Relaxed);
            let Ok(answer) = timeout_at(self.until, request()).await else {
                return Err(self.over(Error::Ambiguous(format!("no answer within {:?}", self.within))));
            };
            match answer {
                Err(error) if error.may_be_retried() => {
                    match error {
                        Error::Conflict => self.met_others(),
                        Error::HotKey(_) => {
                            self.met.a_hot_key.store(true, Ordering::Relaxed);
                            meter.record(Event::Throttled);
                        }
                        _ => meter.record(Event::Throttled),
                    }
                    self.pause(&mut backoff, error).await?;
                }
                answer => return answer,
            }
        }
    }

    /// Waits for what another's request tells; `None` if the time ends before.
    pub(crate) async fn turn<T>(&self, told: oneshot::Receiver<T>) -> Option<std::result::Result<T, RecvError>> {
        self.begin();
        timeout_at(self.until, told).await.ok()
    }

    /// The end of waiting for another's request: what that has met, or else that the table is silent.
    pub(crate) fn over_in_line(&self, other: Option<&Self>) -> Error {
        let error = Error::Ambiguous(format!("no answer within {:?} to a request for several calls", self.within));
        match other {
            Some(other) => self.name(&self.met.and(&other.met).and(&other.met_before), error),
            None => self.name(&self.met, error),
        }
    }

    /// Others were in the way of a write.
    pub(crate) fn met_others(&self) {
        self.met.others.store(true, Ordering::Relaxed);
    }

    /// Others were in the way of a write: lets them pass.
    pub(crate) async fn make_way(&self, backoff: &mut Backoff) -> Result<()> {
        self.met_others();
        self.pause(backoff, Error::Deadline(self.within)).await
    }

    /// Waits, unless that would be too long: then the end is told as `error`.
    async fn pause(&self, backoff: &mut Backoff, error: Error) -> Result<()> {
        let wait = backoff.next();
        if Instant::now() + wait >= self.until {
            return Err(self.over(error));
        }
        sleep(wait).await;
        Ok(())
    }

    fn over(&self, error: Error) -> Error {
        self.is_spent.store(true, Ordering::Relaxed);
        self.name(&self.met, error)
    }

    /// The end, as contention or a hot key if that is what the time went to.
    fn name(&self, met: &Met, error: Error) -> Error {
        if met.others.load(Ordering::Relaxed) {
            self.contended(error.fate())
        } else if met.a_hot_key.load(Ordering::Relaxed) {
            Error::HotKey(error.fate())
        } else {
            error
        }
    }

    /// The end because of others.
    pub(crate) fn contended(&self, fate: Fate) -> Error {
        Error::Contended { writes: self.writes.load(Ordering::Relaxed), fate }
    }
}

/// Waits that double, with full jitter, so that callers who were in each other's way do not come back together.
#[derive(Debug)]
pub(crate) struct Backoff {
    most: Duration,
    doublings: u32,
}

impl Backoff {
    /// The longest of the first waits is doubled at most this often.
    const MOST_DOUBLINGS: u32 = 6;

    /// At most `first` the first time.
    pub(crate) fn new(first: Duration) -> Self {
        Self { most: first, doublings: 0 }
    }

    pub(crate) fn next(&mut self) -> Duration {
        let wait = self.most.mul_f64(fastrand::f64());
        if self.doublings < Self::MOST_DOUBLINGS {
            self.doublings += 1;
            self.most *= 2;
        }
        wait
    }
}
