//! One suite for every algorithm on every store: in memory, the embedded DynamoDB or the endpoint that is named, and two
//! other implementations of the DynamoDB API where they are installed: dynalite (npm; without TTL and transactions) and moto
//! (PyPI; not atomic under its threads, so one call after the other only). A store that is not there is skipped, with a word.

use crate::harness::{PATIENCE, TABLE, charge, connected, endpoint, key};
use lambda_http::tower::ServiceExt;
use serde_json::json;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tollgate::http::{Facts, TollgateLayer};
use tollgate::testing::{ManualClock, MemoryStore};
use tollgate::{Clock, Counters, DynamoStore, Limiter, Outcome, Policy, Store, SystemClock, Timestamp};
use tollgate_core::{
    Actual, Charge, Charges, Entry, Figures, ItemKey, Log, Period, Span, State, Terms, Ticks, TokenBucket, Verdict,
    Window, Zone,
};
use tollgate_dynamodb::admin;
use tollgate_dynamodb::table::{CreateOptions, create};

const MINUTE: u64 = 60_000_000_000;

/// A store, the clock of those who use it, and what it can do.
struct Place<S> {
    name: &'static str,
    store: S,
    clock: ManualClock,
    /// Whether writes that come at once are each atomic.
    concurrent: bool,
    /// Whether it knows transactions.
    transacts: bool,
}

fn clock() -> ManualClock {
    // Ahead of the real time, so that no table deletes what the test wrote.
    ManualClock::new(Timestamp::from_nanos((SystemClock.now().as_nanos() / MINUTE + 2) * MINUTE))
}

fn figures() -> [Figures; 5] {
    let zone = Zone::get("Europe/Bucharest").unwrap();
    let window = |span, sliding| Window::new(7, span, sliding).unwrap().into();
    [
        TokenBucket::new(7, MINUTE, 7).unwrap().into(),
        window(Span::Every(MINUTE), false),
        window(Span::Calendar(Period::Day, zone), false),
        window(Span::Every(MINUTE), true),
        Log::new(7, MINUTE).unwrap().into(),
    ]
}

fn costing(item: &ItemKey, revision: u64, figures: Figures, cost: u64) -> Charges {
    Charges::new(item.clone(), vec![charge("limit", Terms::new(revision, figures), cost)]).unwrap()
}

/// A charge that will be settled.
fn reserving(item: &ItemKey, figures: Figures, cost: u64) -> Charges {
    let charge = charge("limit", Terms::new(1, figures), cost);
    let charge = Charge { settled_within: Some(Duration::from_secs(60)), ..charge };
    Charges::new(item.clone(), vec![charge]).unwrap()
}

impl<S: Store + Clone + 'static> Place<S> {
    /// As another process would be: without memory.
    fn limiter(&self) -> Limiter<S> {
        Limiter::new(self.store.clone()).with_deadline(PATIENCE)
    }

    async fn conforms(&self) {
        for figures in figures() {
            self.decides_by_the_arithmetic(figures).await;
            self.follows_a_newer_revision(figures).await;
            self.survives_a_clock_that_steps_back(figures).await;
            self.remembers_for_as_long_as_it_must(figures).await;
            self.gives_back_and_holds(figures).await;
            self.settles_what_it_has_come_to(figures).await;
            self.tells_in_headers(figures).await;
            if self.concurrent {
                self.is_exact_at_once(figures).await;
                self.settles_at_once(figures).await;
            }
            if self.transacts {
                self.charges_all_or_none(figures).await;
            }
        }
        println!("{}: conforms", self.name);
    }

    /// Whoever decides, knowing the key or not, the table's word is that of the arithmetic on one state.
    async fn decides_by_the_arithmetic(&self, figures: Figures) {
        let (item, mut state, mut rng) = (key(), None::<State>, fastrand::Rng::with_seed(7));
        let knowing = self.limiter().denying_from_memory_for(Duration::ZERO);
        for step in 0..40 {
            let wait = [0, 0, 900, 8_571, 31_000, 70_000, 200_000][rng.usize(0..7)];
            self.clock.advance(Duration::from_millis(wait));
            let (cost, now) = (rng.u64(1..=8), self.clock.now());
            let decision =
                [&knowing, &self.limiter()][rng.usize(0..2)].take(&[costing(&item, 1, figures, cost)]).await.unwrap();
            let at = format!("{}, {figures}, step {step}: {decision:?}", self.name);
            let expected = match figures.take(state.as_ref(), now, cost) {
                Verdict::Allowed { tat } => {
                    let entry = figures.log().map(|_| Entry::new(now, step, cost));
                    state = Some(figures.charged(state.as_ref(), now, tat, entry));
                    (Outcome::Allowed, None)
                }
                Verdict::Denied { retry_after } => (Outcome::Denied, Some(retry_after)),
                Verdict::NeverFits => (Outcome::NeverFits, None),
            };
            assert_eq!((decision.outcome(), decision.retry_after()), expected, "{at}");
            let told = &decision.limits[0];
            assert_eq!(told.remaining, figures.remaining(state.as_ref(), now), "{at}");
            assert_eq!(told.reset_after, figures.reset_after(state.as_ref(), now), "{at}");
        }
    }

    async fn is_exact_at_once(&self, figures: Figures) {
        let item = key();
        let calls = (0..20).map(|_| {
            let (limiter, charges) = (self.limiter(), costing(&item, 1, figures, 1));
            tokio::spawn(async move { limiter.take(&[charges]).await.unwrap().is_allowed() })
        });
        let mut allowed = 0;
        for call in calls.collect::<Vec<_>>() {
            allowed += u64::from(call.await.unwrap());
        }
        assert_eq!(allowed, figures.most(), "{}, {figures}", self.name);
    }

    async fn follows_a_newer_revision(&self, figures: Figures) {
        let item = key();
        let newer: Figures = match figures {
            Figures::Window(window) => Window::new(14, window.span(), window.is_sliding()).unwrap().into(),
            Figures::Log(log) => Log::new(14, log.window_ns()).unwrap().into(),
            _ => TokenBucket::new(14, MINUTE, 14).unwrap().into(),
        };
        // Debt is scaled; a log knows what happened.
        let then = if figures.log().is_some() { 10 } else { 8 };
        let [old, new] = [(1, figures), (2, newer)].map(|(revision, figures)| costing(&item, revision, figures, 2));
        let left = async |charges: &Charges| {
            let decision = self.limiter().take(std::slice::from_ref(charges)).await.unwrap();
            (decision.limits[0].terms.revision, decision.limits[0].remaining)
        };
        assert_eq!(left(&old).await, (1, 5));
        assert_eq!(left(&new).await, (2, then), "{}, {figures}: 2 of 7 are 4 of 14", self.name);
        assert_eq!(left(&old).await, (2, then - 2), "the older one follows");
    }

    /// MediaWiki-MCP#557: after a step back nobody is locked out for longer than the limit says.
    async fn survives_a_clock_that_steps_back(&self, figures: Figures) {
        let (item, now) = (key(), self.clock.now());
        for back in [11, 3600] {
            self.clock.set(now + Duration::from_secs(back));
            assert!(self.limiter().take(&[costing(&item, 1, figures, 1)]).await.unwrap().is_allowed());
            self.clock.set(now);
            let decision = self.limiter().take(&[costing(&item, 1, figures, 7)]).await.unwrap();
            let most = figures.reset_after(&full_use(figures, now), now);
            assert!(decision.retry_after().is_none_or(|wait| wait <= most), "{}, {figures}: {decision:?}", self.name);
        }
    }

    /// ddb-token-bucket, parse-server#10624: an item is kept until forgetting it changes nothing.
    async fn remembers_for_as_long_as_it_must(&self, figures: Figures) {
        let item = key();
        let decision = self.limiter().take(&[costing(&item, 1, figures, 7)]).await.unwrap();
        let kept = self.store.read(&item, &[]).await.unwrap().unwrap().expires_at.unwrap();
        let full = self.clock.now() + decision.limits[0].reset_after;
        assert!(kept >= full.as_secs(), "{}, {figures}: {kept} {full}", self.name);
        assert!(kept < full.as_secs() + 3 * 86_400, "in seconds, and not for ever");
    }

    /// What the layer answers is what the arithmetic says: the limit, what is left, when one more is, when to come back.
    async fn tells_in_headers(&self, figures: Figures) {
        let (algorithm, rate) = match figures {
            Figures::Window(window) if window.is_sliding() => ("sliding-window", "7/min"),
            Figures::Window(window) if window.span() == Span::Every(MINUTE) => ("fixed-window", "7/min"),
            Figures::Window(_) => ("quota", "7/day"),
            Figures::Log(_) => ("sliding-log", "7/min"),
            _ => ("token-bucket", "7/min"),
        };
        let zone = if algorithm == "quota" { "zone = 'Europe/Bucharest'" } else { "" };
        let policy = format!(
            "version = 1\n[limits.limit]\nkey = ['user']\nrate = '{rate}'\nalgorithm = '{algorithm}'\n{zone}\n\
             [[routes]]\nmatch = '* /'\ncharge = ['limit']\n"
        );
        let layer = TollgateLayer::new(Policy::parse(&policy).unwrap().policy, Arc::new(self.limiter()));
        let app = axum::Router::new().fallback(async || "ok").layer(layer);
        let user = key().key.to_string();
        let facts = Facts::default().with_claims(json!({ "sub": user }).as_object().unwrap().clone());
        let (mut state, window) = (None::<State>, if algorithm == "quota" { 86_400 } else { 60 });
        let secs = |wait: Duration| wait.as_nanos().div_ceil(1_000_000_000);
        for step in 0..9 {
            let now = self.clock.now();
            let verdict = figures.take(state.as_ref(), now, 1);
            if let Verdict::Allowed { tat } = verdict {
                let entry = figures.log().map(|_| Entry::new(now, step, 1));
                state = Some(figures.charged(state.as_ref(), now, tat, entry));
            }
            let request =
                axum::extract::Request::builder().uri("/").extension(facts.clone()).body(axum::body::Body::empty());
            let response = app.clone().oneshot(request.unwrap()).await.unwrap();
            let header = |name: &str| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
            let at = format!("{}, {figures}, step {step}", self.name);
            assert_eq!(header("ratelimit-policy"), Some(format!("\"limit\";q=7;w={window}")), "{at}");
            let left = figures.remaining(state.as_ref(), now);
            let next = secs(figures.next_after(state.as_ref(), now));
            assert_eq!(header("ratelimit"), Some(format!("\"limit\";r={left};t={next}")), "{at}");
            match verdict {
                Verdict::Denied { retry_after } => {
                    assert_eq!(response.status(), 429, "{at}");
                    assert_eq!(header("retry-after"), Some(secs(retry_after).max(1).to_string()), "{at}");
                }
                _ => assert_eq!((response.status().as_u16(), header("retry-after")), (200, None), "{at}"),
            }
            self.clock.advance(Duration::from_millis(700));
        }
    }

    /// Less is given back, more is charged as far as there is room, and what is beyond that is told.
    async fn settles_what_it_has_come_to(&self, figures: Figures) {
        let item = key();
        let limiter = self.limiter();
        let mut told = Vec::new();
        for (estimate, actual) in [(4, 1), (2, 4), (1, 10)] {
            let charges = [reserving(&item, figures, estimate)];
            let (decision, taken) = limiter.take_unsettled(&charges).await.unwrap();
            let settled = limiter.settle(&charges, taken, |_| Some(Actual::Cost(actual))).await;
            let left = self.limiter().take(&[costing(&item, 1, figures, 0)]).await.unwrap().limits[0].remaining;
            told.push((decision.limits[0].remaining, left, settled.beyond.iter().map(|b| b.1).sum::<u64>()));
        }
        assert_eq!(told, [(3, 6, 0), (4, 2, 0), (1, 0, 8)], "{}, {figures}", self.name);
        let kept = &self.store.read(&item, &[]).await.unwrap().unwrap().buckets["limit"].entries;
        assert_eq!(kept.iter().filter(|entry| entry.is_reservation()).count(), 0, "all are settled");
    }

    async fn settles_at_once(&self, figures: Figures) {
        let item = key();
        let calls = (0..7).map(|_| {
            let (limiter, charges) = (self.limiter(), [reserving(&item, figures, 1)]);
            tokio::spawn(async move {
                let (decision, taken) = limiter.take_unsettled(&charges).await.unwrap();
                assert!(decision.is_allowed());
                limiter.settle(&charges, taken, |_| Some(Actual::Cost(0))).await
            })
        });
        for call in calls.collect::<Vec<_>>() {
            assert_eq!(call.await.unwrap().lost, 0);
        }
        let all = self.limiter().take(&[costing(&item, 1, figures, 7)]).await.unwrap();
        assert!(all.is_allowed(), "{}, {figures}: {all:?}", self.name);
    }

    async fn charges_all_or_none(&self, figures: Figures) {
        let items = [key(), key()];
        let both =
            [(&items[0], 1), (&items[1], 3)].map(|(item, cost)| costing(item, 1, figures, cost).atomically(true));
        let mut left = Vec::new();
        for _ in 0..3 {
            let decision = self.limiter().take(&both).await.unwrap();
            left.push((decision.is_allowed(), decision.limits.iter().map(|l| l.remaining).collect::<Vec<_>>()));
        }
        let expected = [(true, vec![6, 4]), (true, vec![5, 1]), (false, vec![5, 1])];
        assert_eq!(left, expected, "{}, {figures}", self.name);
    }

    async fn gives_back_and_holds(&self, figures: Figures) {
        let (item, other) = (key(), key());
        let both = [costing(&item, 1, figures, 1), costing(&other, 1, figures, 6)];
        assert!(self.limiter().take(&both).await.unwrap().is_allowed());
        let denied = self.limiter().take(&both).await.unwrap();
        let told: Vec<_> = denied.limits.iter().map(|l| (l.outcome, l.remaining)).collect();
        assert_eq!(told, [(Outcome::Allowed, 6), (Outcome::Denied, 1)], "{}, {figures}", self.name);
        let until = self.clock.now() + Duration::from_secs(5);
        admin::order(&self.store, std::slice::from_ref(&item), &admin::Order::Ban(until)).await.unwrap();
        let banned = self.limiter().take(&both[..1]).await.unwrap();
        assert_eq!(banned.retry_after(), Some(Duration::from_secs(5)), "{}, {figures}", self.name);
        admin::order(&self.store, std::slice::from_ref(&item), &admin::Order::Allow(None)).await.unwrap();
        admin::reset(&self.store, &item, None).await.unwrap();
        let decision = self.limiter().take(&both[..1]).await.unwrap();
        assert_eq!((decision.outcome(), decision.limits[0].remaining), (Outcome::Allowed, 6));
    }
}

/// The state of a limit of which all is used at `now`.
fn full_use(figures: Figures, now: Timestamp) -> State {
    let most = figures.most();
    match figures.take(None::<Ticks>, now, most) {
        Verdict::Allowed { tat } => figures.charged(None::<Ticks>, now, tat, Some(Entry::new(now, 1, most))),
        verdict => panic!("{verdict:?}"),
    }
}

/// A server of somebody else's, ended with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts `program` on a free port; `None`, and a word, if it is not installed.
async fn start(program: &str, args: &[&str]) -> Option<(Server, String)> {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let args = args.iter().map(|arg| arg.replace("PORT", &port));
    let spawned = Command::new(program).args(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let Ok(child) = spawned else {
        println!("skipped: `{program}` is not installed");
        return None;
    };
    let server = Server(child);
    for _ in 0..600 {
        if tokio::net::TcpStream::connect(format!("127.0.0.1:{port}")).await.is_ok() {
            return Some((server, format!("http://127.0.0.1:{port}")));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("{program} does not listen");
}

async fn table(name: &'static str, url: &str, concurrent: bool, transacts: bool) -> Place<DynamoStore> {
    let (connected, clock) = (connected(url).await, clock());
    let store = DynamoStore::with_trusted_clock(&connected, TABLE, Arc::new(clock.clone()), Arc::<Counters>::default());
    Place { name, store, clock, concurrent, transacts }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_store_in_memory_conforms() {
    let clock = clock();
    let store = MemoryStore::new(clock.clone());
    Place { name: "memory", store, clock, concurrent: true, transacts: true }.conforms().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_endpoint_conforms() {
    table("endpoint", &endpoint().await, true, true).await.conforms().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn dynalite_conforms() {
    let args = ["--port", "PORT", "--createTableMs", "0"];
    let Some((_server, url)) = start("dynalite", &args).await else { return };
    let made = create(&connected(&url).await, TABLE, CreateOptions::default()).await;
    assert!(matches!(made, Err(tollgate_dynamodb::Error::Incomplete { .. })), "it has no TTL: {made:?}");
    table("dynalite", &url, true, false).await.conforms().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn moto_conforms() {
    let Some((_server, url)) = start("moto_server", &["-H", "127.0.0.1", "-p", "PORT"]).await else { return };
    create(&connected(&url).await, TABLE, CreateOptions::default()).await.unwrap();
    table("moto", &url, false, true).await.conforms().await;
}
