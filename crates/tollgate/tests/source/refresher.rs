//! Which policy is in force, whatever happens to its source. Nothing here sleeps: the clock is moved.

use crate::harness::{Service, at, parameter, policy, serve};
use axum::Router;
use axum::http::StatusCode;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Semaphore;
use tollgate::source::{Error, PolicySource, RefreshOptions, Refreshed, Refresher};
use tollgate::testing::ManualClock;
use tollgate::{Counters, Timestamp};

/// What this thread logs.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn start() -> (Self, tracing::subscriber::DefaultGuard) {
        let log = Self::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone()).finish();
        (log, tracing::subscriber::set_default(subscriber))
    }

    /// The lines since the last call.
    fn lines(&self) -> Vec<String> {
        let bytes = std::mem::take(&mut *self.0.lock().unwrap());
        String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

struct Running {
    refresher: Refresher,
    clock: ManualClock,
    counters: Arc<Counters>,
}

impl Running {
    async fn start(source: PolicySource, options: RefreshOptions) -> Result<Self, Error> {
        let clock = ManualClock::new(Timestamp::from_secs(1));
        let counters = Arc::new(Counters::default());
        let options = options.clock(Arc::new(clock.clone()));
        let refresher = Refresher::start(source, counters.clone(), options).await?;
        Ok(Self { refresher, clock, counters })
    }

    async fn on_file(path: &Path) -> Self {
        Self::start(PolicySource::File(path.to_owned()), RefreshOptions::default()).await.unwrap()
    }

    /// An invocation 60 s after the last: what came of the refresh, and the revision it is served with.
    async fn later(&self) -> (Refreshed, u64) {
        self.clock.advance(Duration::from_secs(60));
        (self.refresher.refresh_if_due().await, self.revision())
    }

    fn revision(&self) -> u64 {
        self.refresher.live().current().revision()
    }

    fn counted(&self) -> (u64, u64) {
        let counts = self.counters.counts();
        (counts.policies_loaded, counts.policies_rejected)
    }
}

#[tokio::test]
async fn a_newer_policy_is_in_force_at_the_next_invocation_after_the_interval() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, policy(1, "5/s")).unwrap();
    let running = Running::on_file(file.path()).await;
    let live = running.refresher.live().clone();
    std::fs::write(&file, policy(2, "9/s")).unwrap();
    running.clock.advance(Duration::from_nanos(59_999_999_999));
    assert_eq!(running.refresher.refresh_if_due().await, Refreshed::NotDue);
    assert_eq!(live.current().revision(), 1);
    running.clock.advance(Duration::from_nanos(1));
    assert_eq!(running.refresher.refresh_if_due().await, Refreshed::Replaced);
    assert_eq!(live.current().revision(), 2, "for everybody who holds the policy in force");
    assert_eq!(running.refresher.refresh_if_due().await, Refreshed::NotDue);
    assert_eq!(running.later().await, (Refreshed::Unchanged, 2));
    assert_eq!(running.counted(), (2, 0));
}

#[tokio::test]
async fn a_bad_policy_leaves_the_last_good_one_and_is_counted_for_as_long_as_it_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tollgate.toml");
    std::fs::write(&path, policy(1, "5/s")).unwrap();
    let running = Running::on_file(&path).await;
    let (log, _guard) = Log::start();
    std::fs::write(&path, policy(2, "0/s").replace("'user'", "'usr'")).unwrap();
    assert_eq!(running.later().await, (Refreshed::Rejected, 1));
    let lines = log.lines();
    assert!(matches!(&lines[..], [one] if one.contains("`usr`") && one.contains("rate must be")), "{lines:?}");
    assert_eq!(running.later().await, (Refreshed::Rejected, 1), "unchanged and still bad");
    std::fs::remove_file(&path).unwrap();
    assert_eq!(running.later().await, (Refreshed::Rejected, 1));
    assert_eq!(running.counted(), (1, 3));
    std::fs::write(&path, policy(1, "5/s")).unwrap();
    assert_eq!(running.later().await, (Refreshed::Unchanged, 1), "the good one is back");
    std::fs::write(&path, policy(2, "9/s")).unwrap();
    assert_eq!(running.later().await, (Refreshed::Replaced, 2));
    assert_eq!(running.counted(), (2, 3));
}

#[tokio::test]
async fn a_lower_revision_and_a_forgotten_bump_come_into_force_all_the_same() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, policy(2, "9/s")).unwrap();
    let running = Running::on_file(file.path()).await;
    let (log, _guard) = Log::start();
    std::fs::write(&file, policy(1, "5/s")).unwrap();
    assert_eq!(running.later().await, (Refreshed::Replaced, 1));
    let lines = log.lines();
    assert!(lines[0].contains("goes back to a lower revision") && lines[0].contains("was=2 revision=1"), "{lines:?}");
    std::fs::write(&file, policy(1, "6/s")).unwrap();
    assert_eq!(running.later().await, (Refreshed::Replaced, 1));
    let lines = log.lines();
    assert!(lines[0].contains("raise `revision`") && lines[0].contains("limits=\"orders\""), "{lines:?}");
    assert_eq!(running.refresher.live().current().limit("orders").unwrap().figures(None).rate(), "6/s");
}

#[tokio::test]
async fn without_a_good_policy_there_is_no_start_and_one_line_says_why() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, "version = 1\n[limits.orders]\nkey = ['usr']\nrate = '0/h'\n").unwrap();
    let started = Running::start(PolicySource::File(file.path().to_owned()), RefreshOptions::default()).await;
    let Err(error) = started else { panic!("a policy with mistakes is in force") };
    let line = error.to_string();
    assert!(line.contains("3:8: error: key dimension `usr`") && line.contains("; 4:8: error: rate"), "{line}");
    assert!(!line.contains('\n'), "{line}");
    let missing = Running::start(PolicySource::File("/nonexistent/tollgate.toml".into()), RefreshOptions::default());
    assert!(matches!(missing.await, Err(Error::Read { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_fails_is_asked_again_when_the_policy_is_due_again() {
    let service = Service::start().await;
    service.then(parameter(&policy(1, "5/s"), 1));
    let options = RefreshOptions::default().reader(at(&service.url));
    let running = Running::start("ssm:/tollgate/policy".parse().unwrap(), options).await.unwrap();
    let gone = || (StatusCode::BAD_REQUEST, r#"{"__type":"ParameterNotFound"}"#);
    service.then(gone()).then(parameter(&policy(1, "5/s"), 2)).then(parameter(&policy(2, "9/s"), 3));
    assert_eq!(running.later().await, (Refreshed::Rejected, 1));
    assert_eq!(running.refresher.refresh_if_due().await, Refreshed::NotDue, "a failing source is not asked each time");
    assert_eq!(running.later().await, (Refreshed::Unchanged, 1), "another version of the same text");
    assert_eq!(running.later().await, (Refreshed::Replaced, 2));
    assert_eq!((running.counted(), service.asked().len()), ((2, 1), 4));
}

/// A source that says when it is asked, and answers the first request; each further one waits for a permit of the gate.
async fn gated() -> (Arc<Semaphore>, Arc<Semaphore>, String) {
    let (arrived, gate) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(1)));
    let answer = {
        let (arrived, gate) = (arrived.clone(), gate.clone());
        move || async move {
            arrived.add_permits(1);
            gate.acquire().await.unwrap().forget();
            parameter(&policy(1, "5/s"), 1)
        }
    };
    let url = serve(Router::new().fallback(answer)).await;
    (arrived, gate, url)
}

#[tokio::test(flavor = "multi_thread")]
async fn one_refresh_at_a_time_and_nobody_waits_for_it() {
    let (arrived, gate, url) = gated().await;
    let options = RefreshOptions::default().reader(at(&url));
    let running = Arc::new(Running::start("ssm:/p".parse().unwrap(), options).await.unwrap());
    arrived.acquire().await.unwrap().forget();
    running.clock.advance(Duration::from_secs(60));
    let first = tokio::spawn({
        let running = running.clone();
        async move { running.refresher.refresh_if_due().await }
    });
    arrived.acquire().await.unwrap().forget();
    assert_eq!(running.refresher.refresh_if_due().await, Refreshed::UnderWay);
    gate.add_permits(1);
    assert_eq!(first.await.unwrap(), Refreshed::Unchanged);
    assert_eq!(running.refresher.refresh_if_due().await, Refreshed::NotDue);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refresh_that_was_dropped_half_way_does_not_keep_others_from_it() {
    let (arrived, gate, url) = gated().await;
    let options = RefreshOptions::default().reader(at(&url));
    let running = Running::start("ssm:/p".parse().unwrap(), options).await.unwrap();
    arrived.acquire().await.unwrap().forget();
    running.clock.advance(Duration::from_secs(60));
    tokio::select! {
        _ = running.refresher.refresh_if_due() => panic!("the source has not answered"),
        asked = arrived.acquire() => asked.unwrap().forget(),
    }
    gate.add_permits(2);
    assert_eq!(running.refresher.refresh_if_due().await, Refreshed::Unchanged);
}
