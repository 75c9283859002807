//! `tollgate dev`: the sample API and the limiter function on this machine, on the embedded DynamoDB or the one that is named.
//!
//! Each request becomes an API Gateway event (format 2.0) for the handlers that are deployed. Invariant: decisions run
//! through the same handlers, limiter, store and SDK as in production; only where time and the table come from differs.

mod console;
pub(crate) mod event;
mod feed;
mod gateway;
mod outbox;
mod pages;
mod routes;

use crate::args::{ClockKind, DevArgs};
use crate::embedded::{Embedded, Fault, Faults, Faulty};
use crate::error::{CliError, Result};
use crate::open::{self, Place};
use crate::secrets::Keys;
use crate::{output, secrets};
use ::authorizer::Authorizer;
use ::authorizer::https::Https;
use ::authorizer::settings;
use ::mfa::notices::Notices;
use ::otp::Service;
use ::otp::profiles::{self, Profiles};
use feed::{Edge, Feed};
use outbox::Outbox;
use sample_api::Api;
use sample_api::passwords::OneForAll;
use serde_json::json;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tollgate::testing::ManualClock;
use tollgate::{Counters, DynamoStore, Limiter, LivePolicy, Meter, Policy, SystemClock};
use tollgate_core::Clock;
use tollgate_dynamodb::Items;
use tollgate_mfa::Sessions;
use tollgate_mfa::factors::{Factors, LocalVault};
use tollgate_mfa::token::{Issuer, Verifier};
use tollgate_otp::pumping::{Watched, guard};
use tollgate_otp::{Otp, WafCaptcha};

pub use routes::router;

/// Debug builds on small machines take their time; here an answer is worth more than a fast refusal.
const DEADLINE: Duration = Duration::from_secs(5);

/// Limits that no route is charged on.
const SCENARIOS: &str = include_str!("../../assets/scenarios.toml");

/// How often the sentinel runs.
const MINUTE: Duration = Duration::from_secs(60);

/// What requests under way get when the server is told to stop.
const GRACE: Duration = Duration::from_secs(1);

/// A running development server's parts.
#[derive(Debug)]
pub struct Dev {
    policy: LivePolicy,
    limiter: Arc<Limiter<DynamoStore>>,
    api: Api<DynamoStore>,
    otp: Service<DynamoStore, Profiles, Outbox>,
    mfa: ::mfa::Service<DynamoStore, LocalVault>,
    sessions: Arc<Sessions>,
    authorizer: Option<Authorizer<Https, DynamoStore>>,
    outbox: Arc<Outbox>,
    /// What WAF would insert for who has solved a CAPTCHA.
    captcha: String,
    counters: Arc<Counters>,
    feed: Arc<Feed>,
    /// For whoever looks at the table: its requests are not among those that are counted.
    looking: DynamoStore,
    manual: Option<ManualClock>,
    faults: Faults,
    embedded: Option<Embedded>,
    endpoint: String,
}

impl Dev {
    /// Starts or reaches the table and builds the limiter.
    ///
    /// # Errors
    ///
    /// The policy has errors, or the table cannot be reached.
    pub async fn start(args: &DevArgs) -> Result<Self> {
        let own = args.target.endpoint_url.is_none() || open::is_new(&args.target).await?;
        let keys = if own { Keys::OfOnesOwn } else { Keys::Of(&args.target) };
        let policy = secrets::attach(policy(&args.policy.policy)?, keys).await?;
        let manual = (args.clock == ClockKind::Manual).then(|| ManualClock::new(SystemClock.now()));
        let faults = Faults::default();
        let Place { target, connected, embedded } = Place::of(&args.target, manual.as_ref(), Some(&faults)).await?;
        if own {
            secrets::sign(&policy, &connected, &target.table).await?;
        }
        let feed = Arc::new(Feed::new(Edge::of(&policy)));
        let vault = LocalVault::new(policy.secrets().clone());
        let policy = LivePolicy::new(policy);
        if manual.is_some() && embedded.is_none() {
            // That table deletes by its own clock, which has nothing to do with ours.
            tollgate_dynamodb::table::disable_ttl(&connected, &target.table).await?;
        }
        let counters = Arc::<Counters>::default();
        let at = async |meter: Arc<dyn Meter>| open::store_at(&connected, &target.table, manual.as_ref(), meter).await;
        let store = at(Arc::new((Arc::clone(&counters), Arc::clone(&feed)))).await?;
        let looking = at(Arc::<Counters>::default()).await?;
        let items = || Items::new(store.clone()).with_deadline(DEADLINE);
        let (otp, sessions) = (Otp::new(items()), Arc::new(Sessions::new(items())));
        let factors = Factors::new(items(), vault);
        let limiter = Arc::new(Limiter::new(store).with_deadline(DEADLINE));
        let api = Api::new(policy.clone(), Arc::clone(&limiter), OneForAll::new(Some(OneForAll::DEVELOPMENT)));
        let api = api.with_sessions(Arc::clone(&sessions));
        let authorizer = authorizer(args, &policy, &limiter)?;
        let (profiles, outbox) = (profiles_of(args)?, Arc::<Outbox>::default());
        let notices = Arc::new(Notices::new(profiles.clone(), Arc::clone(&outbox)));
        let otp = Service::new(policy.clone(), Arc::clone(&limiter), otp, profiles, Arc::clone(&outbox));
        let captcha = format!("{:032x}", fastrand::u128(..));
        let otp = otp.with_captcha(Box::new(WafCaptcha::new(&captcha))).with_sessions(Arc::clone(&sessions));
        let mfa =
            ::mfa::Service::new(policy.clone(), Arc::clone(&limiter), factors, Arc::clone(&sessions), Some(notices));
        let endpoint = connected.endpoint().to_owned();
        Ok(Self {
            policy,
            limiter,
            api,
            otp,
            mfa,
            sessions,
            authorizer,
            outbox,
            captcha,
            counters,
            feed,
            looking,
            manual,
            faults,
            embedded,
            endpoint,
        })
    }

    /// Judges who is suspected, as the sentinel does every minute. What the courier would have counted long since is counted before.
    async fn judge(&self) -> tollgate_otp::Result<Option<Watched>> {
        let (items, mut credits) = (self.otp.otp().items(), self.outbox.take_credits());
        let uncounted = guard::credit(items, &credits).await;
        uncounted.values().for_each(|error| tracing::warn!(%error, "verified codes are counted a minute later"));
        credits.retain(|credit| uncounted.contains_key(credit));
        self.outbox.give(&credits);
        let watched = sentinel::judge(items, &self.policy.current()).await?;
        if let Some(watched) = &watched {
            self.otp.guard().learn(watched.ladder.clone());
        }
        Ok(watched)
    }

    /// The sentinel's schedule. A manual clock has none: `POST /dev/sentinel` is its minute.
    async fn judge_every_minute(&self) {
        let mut minute = tokio::time::interval_at(tokio::time::Instant::now() + MINUTE, MINUTE);
        loop {
            minute.tick().await;
            if let Err(error) = self.judge().await {
                tracing::warn!(%error, "nobody is judged");
            }
        }
    }

    /// Makes the table do so from now on. While something is wrong with it, decisions and codes have no more time than in production.
    fn fail(&self, faulty: Faulty) {
        self.faults.set(faulty);
        let is_sound = faulty.store == Fault::Ok;
        self.limiter.set_deadline(if is_sound { DEADLINE } else { Limiter::<DynamoStore>::DEADLINE });
        for items in [self.otp.otp().items(), self.sessions.items(), self.mfa.factors().items()] {
            items.set_deadline(if is_sound { DEADLINE } else { Items::DEADLINE });
        }
    }
}

/// The policy of a file, and the limits that the console's scenarios are played on. A file that has such names itself, or writes its limits as
/// one value, goes without them; those scenarios tell.
fn policy(path: &Path) -> Result<Policy> {
    let policy = open::policy(path)?;
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let with_scenarios = Policy::parse(&format!("{text}\n{SCENARIOS}"));
    Ok(with_scenarios.map_or(policy, |parsed| parsed.policy))
}

/// Who has verified which number: what the file says, or the profiles that everybody knows.
fn profiles_of(args: &DevArgs) -> Result<Profiles> {
    let path = args.profiles.as_deref();
    let wrong = |why: &dyn std::fmt::Display| {
        let (at, shape) =
            (path.unwrap_or(Path::new("profiles")), r#"{"alice":{"phone":"+40721234567","verified":true}}"#);
        CliError::Input(format!("{}: {why}; write {shape}", at.display()))
    };
    let text = path.map_or_else(|| Ok(profiles::DEVELOPMENT.to_owned()), std::fs::read_to_string);
    Profiles::parse(&text.map_err(|error| wrong(&error))?).map_err(|error| wrong(&error))
}

/// The authorizer's function, where an issuer is named.
fn authorizer(
    args: &DevArgs,
    policy: &LivePolicy,
    limiter: &Arc<Limiter<DynamoStore>>,
) -> Result<Option<Authorizer<Https, DynamoStore>>> {
    let Some(url) = &args.issuer else { return Ok(None) };
    let mut issuer = Issuer::new(url, args.audience.iter().cloned());
    let pinned = args.algorithm.iter().map(|name| settings::algorithm(name)).collect::<std::result::Result<_, _>>();
    issuer.algorithms = pinned.map_err(|error| CliError::Input(format!("--algorithm: {error}")))?;
    let verifier = Verifier::new(issuer, Https::default());
    Ok(Some(Authorizer::new(policy.clone(), Arc::clone(limiter), verifier)))
}

/// Serves until interrupted.
///
/// # Errors
///
/// The policy has errors, the table cannot be reached, or the address is taken.
pub async fn run(args: DevArgs) -> Result<()> {
    let interruption = interruption()?;
    let dev = Box::pin(Dev::start(&args)).await?;
    let taken = |e| CliError::System(format!("cannot listen on {}: {e}; choose another with --addr", args.addr));
    let listener = TcpListener::bind(args.addr).await.map_err(taken)?;
    let address = listener.local_addr().map_err(taken)?;
    dev.mfa.let_pages_at(address.port());
    let url = format!("http://{address}");
    let (endpoint, table, passkeys) = (&dev.endpoint, dev.limiter.store().table(), dev.mfa.local_origin());
    let ready = json!({ "listening": url, "dynamodb_endpoint": endpoint, "table": table, "passkeys_at": passkeys });
    if args.json.json {
        output::say(&ready);
    } else {
        let passkeys = passkeys.map_or_else(String::new, |origin| format!("; passkeys work at {origin}"));
        output::say(format!("tollgate dev is listening on {url} (DynamoDB at {endpoint}, table {table}){passkeys}"));
    }
    let (stopping, mut stop) = watch::channel(false);
    let mut stopped = stop.clone();
    tokio::spawn(async move {
        interruption.await;
        let _ = stopping.send(true);
    });
    let graceful = async move { drop(stop.wait_for(|stop| *stop).await) };
    let dev = Arc::new(dev);
    if dev.manual.is_none() {
        let watching = Arc::clone(&dev);
        tokio::spawn(async move { watching.judge_every_minute().await });
    }
    let served = axum::serve(listener, router(dev).into_make_service_with_connect_info::<SocketAddr>())
        .with_graceful_shutdown(graceful);
    tokio::select! {
        served = served => served.map_err(|e| CliError::System(format!("the server failed: {e}"))),
        // A request that never ends must not keep the server from ending.
        () = async { drop(stopped.wait_for(|stop| *stop).await); tokio::time::sleep(GRACE).await } => Ok(()),
    }
}

/// Resolves when the process is told to stop. What it listens for, it hears from now on.
fn interruption() -> Result<impl Future<Output = ()>> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let listen = |kind| signal(kind).map_err(|e| CliError::System(format!("cannot listen for signals: {e}")));
        let (mut interrupted, mut terminated) = (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
        Ok(async move {
            tokio::select! {
                _ = interrupted.recv() => {}
                _ = terminated.recv() => {}
            }
        })
    }
    #[cfg(not(unix))]
    Ok(async { drop(tokio::signal::ctrl_c().await) })
}
