//! How fast the API is asked, and how long is waited for it.
//!
//! Invariant: between two writes lies what [`Patience`] says, whatever they are about.

use super::{Error, Failure, Operation, Result, Waf};
use serde_json::Value;
use std::sync::Mutex;
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until};

/// How long is waited for what.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Patience {
    /// Between two writes: the API takes one a second (Developer Guide, "AWS WAF quotas").
    pub between_writes: Duration,
    /// Before the first time that something is tried again which is not there yet; twice as long each time, 30 s at most.
    pub first_wait: Duration,
    /// For how long it is tried: what is new can take minutes to be known everywhere.
    pub longest: Duration,
    /// How often a write is made from a new reading when others have written meanwhile.
    pub tries: u32,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            between_writes: Duration::from_secs(1),
            first_wait: Duration::from_secs(2),
            longest: Duration::from_secs(600),
            tries: 8,
        }
    }
}

/// The longest wait between two tries.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Who is told, a line each, while something takes long.
pub type Progress<'a> = &'a (dyn Fn(&str) + Sync);

/// The API, asked at a pace.
pub(super) struct Paced<'a, W> {
    waf: &'a W,
    pub(super) patience: Patience,
    progress: Progress<'a>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    last_write: Option<Instant>,
    writes: u64,
}

impl<'a, W: Waf> Paced<'a, W> {
    pub(super) fn new(waf: &'a W, patience: Patience, progress: Progress<'a>) -> Self {
        Self { waf, patience, progress, state: Mutex::new(State::default()) }
    }

    /// How many writes were made.
    pub(super) fn writes(&self) -> u64 {
        self.state.lock().map_or(0, |state| state.writes)
    }

    pub(super) fn tell(&self, line: &str) {
        (self.progress)(line);
    }

    /// Makes a call, after what a write has to wait.
    pub(super) async fn call(&self, operation: Operation, input: Value) -> std::result::Result<Value, Failure> {
        if operation.is_write() {
            let last = self.state.lock().ok().and_then(|state| state.last_write);
            if let Some(last) = last {
                sleep_until(last + self.patience.between_writes).await;
            }
        }
        let answer = self.waf.call(operation, input).await;
        if operation.is_write()
            && let Ok(mut state) = self.state.lock()
        {
            state.last_write = Some(Instant::now());
            state.writes += 1;
        }
        answer
    }

    /// Makes a call until the API no longer says that something in it is not there yet, or still in use.
    pub(super) async fn settle(&self, operation: Operation, input: &Value, what: &str) -> Result<Value> {
        let since = Instant::now();
        let mut wait = self.patience.first_wait;
        loop {
            let failure = match self.call(operation, input.clone()).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            let waited = since.elapsed();
            if !is_passing(&failure) || waited + wait > self.patience.longest {
                return Err(Error::Call(failure));
            }
            let (code, secs) = (failure.code.as_deref().unwrap_or_default(), waited.as_secs());
            self.tell(&format!("{what}: {code}, waiting ({secs} s so far)"));
            sleep(wait).await;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    }

    /// All entries of a list that comes in pages.
    pub(super) async fn pages(&self, operation: Operation, mut input: Value, list: &str) -> Result<Vec<Value>> {
        let mut all = Vec::new();
        loop {
            let page = self.call(operation, input.clone()).await?;
            let found = page[list].as_array().cloned().unwrap_or_default();
            let is_empty = found.is_empty();
            all.extend(found);
            match page["NextMarker"].as_str() {
                // A marker can come with the last page, too.
                Some(marker) if !marker.is_empty() && !is_empty => input["NextMarker"] = marker.into(),
                _ => return Ok(all),
            }
        }
    }
}

/// What goes by itself: something new that is not known everywhere yet, something in use that was just let go, too many calls
/// (API Reference, "Errors" of each action). A conflict does not: it takes a new reading.
fn is_passing(failure: &Failure) -> bool {
    const PASSING: [&str; 5] = [
        "WAFUnavailableEntityException",
        "WAFAssociatedItemException",
        "WAFInternalErrorException",
        "ThrottlingException",
        "TooManyRequestsException",
    ];
    PASSING.iter().any(|code| failure.is(code))
}
