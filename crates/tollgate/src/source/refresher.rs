//! The policy in force, never older than it may be when an invocation starts.
//!
//! Invariants: at most one refresh runs at a time, and nobody waits for somebody else's; a policy that cannot be read
//! or has mistakes leaves the one in force, whole; text that was judged once is not judged again.

use super::age::AgeClock;
use super::changes::{Change, between};
use super::error::one_line;
use super::{Error, Loaded, PolicySource, Reader, ReaderOptions, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Mutex;
use tollgate_core::Clock;
use tollgate_dynamodb::{Event, Meter};
use tollgate_policy::{KeySecrets, LivePolicy, Parsed, Policy};

/// How often, and how, a policy is looked for.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RefreshOptions {
    /// The age at which the next invocation looks for a newer policy (`TOLLGATE_POLICY_REFRESH_S`). Default 60 s.
    pub every: Duration,
    /// How the place is read.
    pub reader: ReaderOptions,
    /// The clock that ages are taken from. Default: one that counts frozen time.
    pub clock: Arc<dyn Clock>,
    /// What personal values are hashed under. Default: none, so that a policy with limits on such values is refused.
    pub secrets: KeySecrets,
}

impl Default for RefreshOptions {
    fn default() -> Self {
        Self {
            every: Duration::from_secs(60),
            reader: ReaderOptions::default(),
            clock: Arc::new(AgeClock::default()),
            secrets: KeySecrets::default(),
        }
    }
}

impl RefreshOptions {
    /// Sets the age at which a newer policy is looked for.
    #[must_use]
    pub fn every(mut self, every: Duration) -> Self {
        self.every = every;
        self
    }

    /// Sets how the place is read.
    #[must_use]
    pub fn reader(mut self, reader: ReaderOptions) -> Self {
        self.reader = reader;
        self
    }

    /// Sets what personal values are hashed under.
    #[must_use]
    pub fn secrets(mut self, secrets: KeySecrets) -> Self {
        self.secrets = secrets;
        self
    }

    /// Sets the clock that ages are taken from.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }
}

/// What came of a call of [`Refresher::refresh_if_due`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refreshed {
    /// The policy in force is young enough; the source was not asked.
    NotDue,
    /// Another invocation is asking; this one goes on with the policy in force.
    UnderWay,
    /// The source has the policy that is in force.
    Unchanged,
    /// Another policy is in force.
    Replaced,
    /// The source has no good policy; the one in force stays.
    Rejected,
}

/// Keeps a [`LivePolicy`] up to date. Cheap to share behind an [`Arc`]; one a process.
#[derive(Debug)]
pub struct Refresher {
    live: LivePolicy,
    every: Duration,
    meter: Arc<dyn Meter>,
    clock: Arc<dyn Clock>,
    /// Nanoseconds of `clock` from which on the source is asked again.
    due: AtomicU64,
    source: Mutex<Source>,
}

#[derive(Debug)]
struct Source {
    reader: Reader,
    seen: Option<Seen>,
}

/// The text that the source had last, and what is wrong with it.
#[derive(Debug)]
struct Seen {
    text: String,
    mistakes: Option<String>,
}

impl Refresher {
    /// Loads the first policy.
    ///
    /// # Errors
    ///
    /// There is no good policy: see [`Error`]. Its message is one line that says what to do.
    pub async fn start(source: PolicySource, meter: Arc<dyn Meter>, options: RefreshOptions) -> Result<Self> {
        let RefreshOptions { every, reader, clock, secrets } = options;
        let mut reader = Reader::open(source, &reader).await?;
        let Loaded { text, version, poll_after } = reader.load().await?;
        let place = reader.place().to_string();
        let text = text.ok_or_else(|| Error::NoAnswer { place: place.clone(), cause: "it is empty".to_owned() })?;
        let Parsed { policy, warnings, .. } =
            Policy::parse(&text).map_err(|diagnostics| Error::Invalid { place: place.clone(), diagnostics })?;
        let policy = policy.with_secrets(secrets);
        policy.check_secrets().map_err(|cause| Error::NoSecrets { place: place.clone(), cause })?;
        let revision = policy.revision();
        tracing::info!(place, revision, version, warnings = one_line(&warnings), "the policy is in force");
        meter.record(Event::PolicyLoaded { revision });
        let source = Mutex::new(Source { reader, seen: Some(Seen { text, mistakes: None }) });
        let refresher = Self { live: policy.into(), every, meter, clock, due: AtomicU64::new(0), source };
        refresher.wait(poll_after);
        Ok(refresher)
    }

    /// The policy in force. Clones of it follow.
    #[must_use]
    pub fn live(&self) -> &LivePolicy {
        &self.live
    }

    /// Looks for a newer policy if the one in force is old enough and nobody else is looking. Call it at the start of
    /// an invocation. It takes no longer than [`ReaderOptions::timeout`], and never fails: what went wrong is logged
    /// and counted, and tried again when the policy is due the next time.
    pub async fn refresh_if_due(&self) -> Refreshed {
        if !self.is_due() {
            return Refreshed::NotDue;
        }
        let Ok(mut source) = self.source.try_lock() else {
            return Refreshed::UnderWay;
        };
        // Whoever held the lock until now may have refreshed.
        if !self.is_due() {
            return Refreshed::NotDue;
        }
        let loaded = source.reader.load().await;
        self.wait(loaded.as_ref().ok().and_then(|loaded| loaded.poll_after));
        match loaded {
            Ok(loaded) => self.judge(&mut source, loaded),
            Err(error) => self.reject(&error.to_string()),
        }
    }

    fn is_due(&self) -> bool {
        self.clock.now().as_nanos() >= self.due.load(Ordering::Relaxed)
    }

    fn wait(&self, poll_after: Option<Duration>) {
        let due = self.clock.now() + self.every.max(poll_after.unwrap_or_default());
        self.due.store(due.as_nanos(), Ordering::Relaxed);
    }

    fn judge(&self, source: &mut Source, loaded: Loaded) -> Refreshed {
        let known = source.seen.as_ref().filter(|seen| loaded.text.as_ref().is_none_or(|text| *text == seen.text));
        match (known, loaded.text) {
            // A mistake that stays is reported each time, so that an alarm on it stays, too.
            (Some(Seen { mistakes: Some(mistakes), .. }), _) => self.reject(mistakes),
            (Some(_), _) | (None, None) => Refreshed::Unchanged,
            (None, Some(text)) => match self.parse(&text, source.reader.place()) {
                Ok(parsed) => {
                    source.seen = Some(Seen { text, mistakes: None });
                    self.replace(source.reader.place(), loaded.version.as_deref(), parsed)
                }
                Err(error) => {
                    let mistakes = error.to_string();
                    let refreshed = self.reject(&mistakes);
                    source.seen = Some(Seen { text, mistakes: Some(mistakes) });
                    refreshed
                }
            },
        }
    }

    /// A policy that can take the place of the one in force, with its secrets.
    fn parse(&self, text: &str, place: &PolicySource) -> Result<Parsed> {
        let mut parsed =
            Policy::parse(text).map_err(|diagnostics| Error::Invalid { place: place.to_string(), diagnostics })?;
        parsed.policy = parsed.policy.or_secrets_of(&self.live.current());
        let checked = parsed.policy.check_secrets();
        checked.map_err(|cause| Error::NoSecrets { place: place.to_string(), cause })?;
        Ok(parsed)
    }

    fn replace(&self, place: &PolicySource, version: Option<&str>, parsed: Parsed) -> Refreshed {
        let Parsed { policy, warnings, .. } = parsed;
        let old = self.live.current();
        if policy == *old {
            return Refreshed::Unchanged;
        }
        let (was, revision) = (old.revision(), policy.revision());
        match between(&old, &policy) {
            Change::Forward => {}
            Change::Back => tracing::warn!(
                %place, was, revision,
                "the policy goes back to a lower revision: keys that have newer figures keep them; to roll figures \
                 back, publish the old ones under a higher revision"
            ),
            Change::ForgottenBump(limits) => tracing::warn!(
                %place, revision, limits,
                "limits have other figures under the same revision: their debt moves in tokens; raise `revision`"
            ),
        }
        tracing::info!(%place, was, revision, version, warnings = one_line(&warnings), "another policy is in force");
        self.live.replace(policy);
        self.meter.record(Event::PolicyLoaded { revision });
        Refreshed::Replaced
    }

    fn reject(&self, error: &str) -> Refreshed {
        tracing::error!(error, revision = self.live.current().revision(), "the policy in force stays");
        self.meter.record(Event::PolicyRejected);
        Refreshed::Rejected
    }
}
