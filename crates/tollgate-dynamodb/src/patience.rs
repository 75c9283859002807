//! How long a decision waits, how it makes way for others, and what it means that its time is over.
//!
//! Invariants: nothing is sent, and nobody sleeps, past the end; a write is sent again only if it was not applied; once
//! others were seen to be in the way, running out of time is contention and no outage, so it never lets a call pass; nor is it
//! one once the key was seen to be hot.

use crate::error::{Error, Fate, Result};
use crate::meter::{Event, Meter};
use std::future::Future;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout_at};

/// The time that a decision has, and what it has met so far. Shared by the parts that succeed or fail as one.
#[derive(Debug)]
pub(crate) struct Patience {
    until: Instant,
    within: Duration,
    writes: AtomicU32,
    is_contended: AtomicBool,
    is_hot: AtomicBool,
}

impl Patience {
    pub(crate) fn new(within: Duration) -> Self {
        let (is_contended, is_hot) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { until: Instant::now() + within, within, writes: AtomicU32::new(0), is_contended, is_hot }
    }

    /// Sends a request that only reads.
    pub(crate) async fn read<T>(&self, request: impl Future<Output = Result<T>>) -> Result<T> {
        if Instant::now() >= self.until {
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
        loop {
            if Instant::now() >= self.until {
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
                            self.is_hot.store(true, Ordering::Relaxed);
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

    /// Waits for another call to tell; `None` if it is gone. Time that runs out in line is no outage: others were in the way.
    pub(crate) async fn turn<T>(&self, told: oneshot::Receiver<T>) -> Result<Option<T>> {
        Ok(timeout_at(self.until, told).await.map_err(|_| self.contended(Fate::Unknown))?.ok())
    }

    /// Others were in the way of a write.
    pub(crate) fn met_others(&self) {
        self.is_contended.store(true, Ordering::Relaxed);
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

    /// The end, as contention or a hot key if that is what the time went to.
    fn over(&self, error: Error) -> Error {
        if self.is_contended.load(Ordering::Relaxed) {
            self.contended(error.fate())
        } else if self.is_hot.load(Ordering::Relaxed) {
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
