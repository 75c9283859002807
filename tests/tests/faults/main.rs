//! The network between three processes and their table fails in every way, by schedules that follow from seeds; what callers were told is
//! checked against what the table did, limit by limit and request by request.
//!
//! The processes are the limiter function's executable. `TOLLGATE_FAULTS_LIMITER` names another one than that which the tests have built, for
//! instance the release build; `TOLLGATE_FAULTS_SEEDS` says how many schedules to go through, and `TOLLGATE_FAULTS_SEED` goes through one of
//! them again and prints it.
//!
//! A seed determines what is asked, when the network is cut and which requests meet which fault. It does not determine how the callers
//! interleave, so a seed that failed may need to run more than once; the checks hold for every interleaving.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, missing_docs, unreachable_pub)]

mod caller;
mod check;
mod fault;
mod lane;
mod limits;
mod naive;
mod proxy;
mod schedule;
mod summary;
#[path = "../wire.rs"]
mod wire;

use caller::{Function, Here, TABLE};
use check::check;
use lane::{Lane, Observer, Record, Stuck};
use naive::Mistake;
use schedule::Schedule;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use summary::Summary;
use tokio::sync::mpsc;
use tollgate::Connection;
use tollgate_cli::embedded::Embedded;
use tollgate_dynamodb::table::{CreateOptions, create};

/// Schedules at once.
const LANES: usize = 10;
/// Schedules, if nothing else is said.
const SEEDS: u64 = 120;

async fn table() -> (Embedded, Arc<Observer>) {
    let embedded = Embedded::start(None).await.unwrap();
    let connection = Connection::from_environment().endpoint_url(embedded.endpoint());
    create(&tollgate::connect(&connection).await.unwrap(), TABLE, CreateOptions::default()).await.unwrap();
    let observer = Observer::new(embedded.endpoint()).await;
    (embedded, Arc::new(observer))
}

fn number(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is {text:?}; give it a whole number")))
}

fn executable() -> PathBuf {
    let named = std::env::var_os("TOLLGATE_FAULTS_LIMITER").map(PathBuf::from);
    // Tests run in the folder of their package; a path is of the repository, as in the commands that are shown.
    let named = named.map(|path| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").join(path));
    named.unwrap_or_else(|| env!("CARGO_BIN_EXE_limiter-under-test").into())
}

/// Goes through the schedules of `seeds`, several at once, and hands each record on.
async fn go_through(observer: &Arc<Observer>, seeds: Range<u64>) -> mpsc::UnboundedReceiver<Result<Record, Stuck>> {
    let (told, records) = mpsc::unbounded_channel();
    let next = Arc::new(AtomicU64::new(seeds.start));
    for _ in (0..LANES as u64).take_while(|lane| seeds.start + lane < seeds.end) {
        let (observer, next, end, told) = (observer.clone(), next.clone(), seeds.end, told.clone());
        tokio::spawn(async move {
            let program = executable();
            let mut lane = Lane::new(&observer, async |url| Function::start(&program, &url).await).await;
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= end || told.send(lane.run(&Schedule::new("s", seed)).await).is_err() {
                    return;
                }
            }
        });
    }
    records
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_the_network_does_nothing_is_over_admitted_stuck_or_uncounted() {
    let (_embedded, observer) = table().await;
    let one = number("TOLLGATE_FAULTS_SEED");
    let count = number("TOLLGATE_FAULTS_SEEDS").unwrap_or(SEEDS);
    let seeds = one.map_or(0..count, |seed| seed..seed + 1);
    let mut records = go_through(&observer, seeds.clone()).await;
    let (mut wrong, mut summary, mut ended) = (Vec::new(), Summary::default(), 0);
    while let Some(record) = records.recv().await {
        let record = record.unwrap_or_else(|Stuck(why)| panic!("{why}"));
        wrong.extend(check(&record));
        summary.add(&record);
        ended += 1;
        if one.is_some() {
            println!("{record:#?}");
        }
    }
    println!("{summary}");
    assert!(wrong.is_empty(), "{} findings:\n{}\n{AGAIN}", wrong.len(), wrong.join("\n"));
    assert_eq!(ended, seeds.end - seeds.start, "a lane has stopped");
    assert!(ended < SEEDS || summary.missing().is_empty(), "never met: {:?}", summary.missing());
}

const AGAIN: &str = "One seed again, with all that happens: TOLLGATE_FAULTS_SEED=N cargo test -p tollgate-tests --test faults whatever -- --nocapture";

/// Seeds that a limiter with a mistake may get through before it is found out.
const MOST_SEEDS: u64 = 300;

/// The seed that a limiter with a mistake is found out by.
async fn found_out(observer: Arc<Observer>, mistake: Mistake) -> Option<u64> {
    let mut lane = Lane::new(&observer, async |url| Here::start(&url, mistake).await).await;
    for seed in 0..if mistake == Mistake::None { 20 } else { MOST_SEEDS } {
        let record = lane.run(&Schedule::new(&format!("{mistake:?}"), seed)).await;
        let wrong = check(&record.unwrap_or_else(|Stuck(why)| panic!("{why}")));
        assert!(mistake != Mistake::None || wrong.is_empty(), "{}", wrong.join("\n"));
        if let Some(wrong) = wrong.iter().find(|wrong| wrong.contains(mistake.shows())) {
            println!("{mistake:?}: {wrong}");
            return Some(seed);
        }
    }
    None
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limiter_with_a_mistake_is_found_out_and_one_without_is_not() {
    let (_embedded, observer) = table().await;
    let all = Mistake::ALL.map(|mistake| (mistake, tokio::spawn(found_out(observer.clone(), mistake))));
    for (mistake, found) in all {
        assert_eq!(found.await.unwrap().is_some(), mistake != Mistake::None, "{mistake:?}");
    }
}
