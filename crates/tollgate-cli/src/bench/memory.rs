//! What a process grows by that is asked for ever new keys.
//!
//! Invariant: the table is left out, so that what grows is the limiter: each write is applied to an item that is not there.

use super::charges;
use crate::error::Result;
use serde::Serialize;
use std::sync::Arc;
use tollgate::{Clock, Counters, Limiter, Meter, Store, SystemClock};
use tollgate_core::take::Moment;
use tollgate_core::{Item, ItemKey, LimitName, Write};
use tollgate_dynamodb::{Transacted, Written};

/// What became of so many keys.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Memory {
    /// Keys that were asked for, each once.
    pub keys: u64,
    /// Bytes that the process has more in memory afterwards (resident set); `None` where the system does not tell.
    pub grew_by: Option<u64>,
}

/// A table that forgets.
#[derive(Debug, Default)]
struct Forgetful {
    counters: Arc<Counters>,
}

impl Store for Forgetful {
    fn moment(&self) -> Moment {
        Moment { now: SystemClock.now(), clock_agrees: true }
    }

    fn meter(&self) -> &dyn Meter {
        &*self.counters
    }

    async fn read(&self, _: &ItemKey, _: &[&LimitName]) -> tollgate_dynamodb::Result<Option<Item>> {
        Ok(None)
    }

    async fn write(&self, _: &ItemKey, write: &Write) -> tollgate_dynamodb::Result<Written> {
        Ok(write.apply(None).map_or(Written::Refused(None), Written::Applied))
    }

    async fn transact(&self, _: &[(&ItemKey, &Write)]) -> tollgate_dynamodb::Result<Transacted> {
        Ok(Transacted::Applied)
    }
}

/// Asks for so many keys, and tells what is left of them.
pub(super) async fn measure(keys: u64) -> Result<Memory> {
    let limiter = Limiter::new(Forgetful::default());
    let before = resident();
    for _ in 0..keys {
        limiter.take(&charges(&[("orders", 50, 3600)])?).await?;
    }
    let grew_by = before.zip(resident()).map(|(before, after)| after.saturating_sub(before));
    Ok(Memory { keys, grew_by })
}

/// The resident set of this process, in bytes (proc(5), `statm`).
pub(super) fn resident() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_whitespace().nth(1)?.parse().ok()?;
    pages.checked_mul(4096)
}
