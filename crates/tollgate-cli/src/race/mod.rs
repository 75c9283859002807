//! A race: many clients that share nothing ask for one new key at once, and the table must admit exactly its capacity.
//!
//! Every client has a connection and a memory of its own; with `--processes` they are spread over processes that share
//! nothing but the table. All ask at one instant, the one at which the race began, so that only the table is raced for
//! and one write a client is all there is. With running clocks a client whose clock was read a few microseconds before
//! that of the first to be served may find the last token not there yet, and need a second write. With `--keys` each
//! decision is on several keys, of which only the first is scarce: whoever it denies gives the others their tokens back.
//!
//! Invariant: the verdict does not rest on what clients report, but on what the table says was charged.

mod processes;
pub mod worker;

use crate::args::{RaceArgs, Target};
use crate::error::{CliError, Result};
use crate::open::{self, Place};
use crate::output;
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Barrier, mpsc};
use tollgate::testing::ManualClock;
use tollgate::{Clock, Counters, DynamoStore, Limiter, SystemClock, Timestamp};
use tollgate_core::{Charge, Charges, ItemKey, Key, LimitName, Terms, TokenBucket};

/// Long enough that no client gives up on a slow machine: a race counts answers.
const DEADLINE: Duration = Duration::from_secs(30);

/// What one client got.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Answer {
    /// `None`: no answer.
    pub(crate) allowed: Option<bool>,
    pub(crate) round_trips: u64,
    pub(crate) write_units: u64,
    /// Charges that it could not give back.
    pub(crate) refunds_lost: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// What came out.
#[derive(Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// Clients that started.
    pub clients: u32,
    /// Processes that they were spread over.
    pub processes: u32,
    /// Tokens of the key.
    pub capacity: u64,
    /// Clients that were allowed.
    pub allowed: u64,
    /// Clients that were denied.
    pub denied: u64,
    /// Clients that got no answer from the table.
    pub failed: u64,
    /// Clients whose process was killed before they told.
    pub lost: u64,
    /// Requests to the table, by clients that told.
    pub round_trips: u64,
    /// Write units, by clients that told.
    pub write_units: u64,
    /// Charges that clients could not give back, since others overtook them too often.
    pub refunds_lost: u64,
    /// Tokens that the table says were taken.
    pub charged: u64,
    /// The same of each of the other keys.
    pub charged_elsewhere: Vec<u64>,
}

/// Runs the race and prints what came out.
///
/// # Errors
///
/// [`CliError::Check`] if more was admitted than the key had, or the table's account differs from the clients'.
pub async fn run(args: RaceArgs) -> Result<()> {
    let report = race(&args).await?;
    output::result(args.json, &report, || text(&report))?;
    check(&report)
}

async fn race(args: &RaceArgs) -> Result<Report> {
    if args.kill && args.processes < 2 {
        return Err(CliError::Input("--kill needs --processes 2 or more: one has to survive".to_owned()));
    }
    if args.processes > args.clients {
        return Err(CliError::Input(format!("{} processes need as many clients; raise --clients", args.processes)));
    }
    let place = Place::of(&args.target, None, None).await?;
    let race = Race::new(&place.target, args.keys, args.capacity, args.clients.into(), !args.running_clocks)?;
    let mut report =
        Report { clients: args.clients, processes: args.processes, capacity: args.capacity, ..Report::default() };
    if args.processes == 1 {
        let (answers, mut received) = mpsc::unbounded_channel();
        race.clients(args.clients, answers, std::future::ready(())).await?;
        while let Some(answer) = received.recv().await {
            report.count(&answer);
        }
    } else {
        processes::run(args, &race, &mut report).await?;
    }
    let mut charged = race.charged().await?;
    report.charged_elsewhere = charged.split_off(1);
    report.charged = charged.into_iter().sum();
    Ok(report)
}

/// The charges of every client: one token of each key, of buckets that gain one a day, so that nothing refills meanwhile.
/// The first has `capacity` tokens, the others `plenty`.
fn charges(keys: &[String], capacity: u64, plenty: u64) -> Result<Vec<Charges>> {
    let of = |(i, key): (usize, &String)| {
        let bucket = TokenBucket::new(1, 86_400_000_000_000, if i == 0 { capacity } else { plenty })?;
        let charge = Charge::new(LimitName::new("race")?, Terms::new(1, bucket), 1);
        Ok(Charges::new(ItemKey::shared(Key::new([("race", key)])?), vec![charge])?)
    };
    keys.iter().enumerate().map(of).collect()
}

/// What all clients know: the table, the charge, and the instant.
pub(crate) struct Race {
    target: Target,
    charges: Vec<Charges>,
    at: Option<Timestamp>,
}

impl Race {
    /// A race for a new key of `capacity` tokens, beside others of `plenty`; at one instant, or by running clocks.
    pub(crate) fn new(target: &Target, keys: u32, capacity: u64, plenty: u64, at_one_instant: bool) -> Result<Self> {
        let keys: Vec<_> = (0..keys).map(|_| format!("{:016x}", fastrand::u64(..))).collect();
        let at = at_one_instant.then(|| SystemClock.now());
        Ok(Self { target: target.clone(), charges: charges(&keys, capacity, plenty)?, at })
    }

    /// A client of its own: connection, memory, counters.
    async fn limiter(&self) -> Result<(Limiter<DynamoStore>, Arc<Counters>)> {
        let clock = self.at.map(ManualClock::new);
        let connected = open::connection(&self.target).await?;
        let counters = Arc::new(Counters::default());
        let store = open::store_at(&connected, &self.target.table, clock.as_ref(), counters.clone()).await?;
        Ok((Limiter::new(store).with_deadline(DEADLINE), counters))
    }

    /// Runs clients in this process: all are warmed up, then `go`, then all ask at once.
    pub(crate) async fn clients(
        &self,
        count: u32,
        answers: mpsc::UnboundedSender<Answer>,
        go: impl Future<Output = ()>,
    ) -> Result<()> {
        let line = Arc::new(Barrier::new(count as usize + 1));
        let mut running = Vec::new();
        for _ in 0..count {
            let (limiter, counters) = self.limiter().await?;
            let (line, charges, answers) = (line.clone(), self.charges.clone(), answers.clone());
            running.push(tokio::spawn(async move {
                let before = counters.counts();
                line.wait().await;
                let result = limiter.take(&charges).await;
                let after = counters.counts();
                let _ = answers.send(Answer {
                    allowed: result.as_ref().ok().map(tollgate::Decision::is_allowed),
                    round_trips: after.round_trips - before.round_trips,
                    write_units: after.write_units - before.write_units,
                    refunds_lost: after.refunds_lost - before.refunds_lost,
                    error: result.err().map(|e| e.to_string()),
                });
            }));
        }
        go.await;
        line.wait().await;
        for client in running {
            client.await.map_err(|e| CliError::System(format!("a client stopped: {e}")))?;
        }
        Ok(())
    }

    /// Tokens of each key that the table says were taken.
    async fn charged(&self) -> Result<Vec<u64>> {
        let free = |charges: &Charges| {
            let observe = charges.charges().iter().map(|c| Charge { cost: 0, ..c.clone() }).collect();
            Charges::new(charges.item().clone(), observe)
        };
        let observe = self.charges.iter().map(free).collect::<tollgate_core::Result<Vec<_>>>()?;
        let seen = self.limiter().await?.0.take(&observe).await?;
        Ok(seen.limits.iter().map(|l| l.terms.figures.most() - l.remaining).collect())
    }
}

impl Report {
    fn count(&mut self, answer: &Answer) {
        match answer.allowed {
            Some(true) => self.allowed += 1,
            Some(false) => self.denied += 1,
            None => {
                self.failed += 1;
                output::note(format!("a client got no answer: {}", answer.error.as_deref().unwrap_or("unknown")));
            }
        }
        self.round_trips += answer.round_trips;
        self.write_units += answer.write_units;
        self.refunds_lost += answer.refunds_lost;
    }
}

fn text(report: &Report) -> String {
    let Report { clients, processes, capacity, allowed, denied, round_trips, write_units, charged, .. } = report;
    let others = report.charged_elsewhere.len();
    // With one key there is nothing to tell apart.
    let (of_all, of_the_first, of_the_others) = match others {
        0 => (String::new(), "", String::new()),
        _ => (format!(" of all {} keys", others + 1), " of key 1", format!(", {clients} of each other key")),
    };
    let mut text = format!(
        "clients      {clients} in {processes} process{}, each asking once for a token{of_all}\n\
         capacity     {capacity}{of_the_first}{of_the_others}\nallowed      {allowed}\ndenied       {denied}\n\
         round_trips  {round_trips}\nwrite_units  {write_units}\n\
         charged      {charged} of {capacity}{of_the_first}, by the table's account",
        if *processes == 1 { "" } else { "es" },
    );
    for (i, charged) in report.charged_elsewhere.iter().enumerate() {
        let _ = write!(text, "\n             {charged} of {clients} of key {}", i + 2);
    }
    let lost = if others == 0 { "" } else { "  charges of denied clients that could not be given back" };
    for (name, count, told) in
        [("failed", report.failed, ""), ("lost", report.lost, ""), ("refunds_lost", report.refunds_lost, lost)]
    {
        if count > 0 || !told.is_empty() {
            let _ = write!(text, "\n{name:<12} {count}{told}");
        }
    }
    text
}

fn check(report: &Report) -> Result<()> {
    let Report { clients, capacity, allowed, denied, failed, lost, charged, refunds_lost, .. } = *report;
    let told = allowed..=allowed + failed + lost;
    // Whoever was denied found the key empty; and without a denial nobody went without.
    let is_exact = if denied > 0 { charged == capacity } else { u64::from(clients) == allowed + failed + lost };
    if allowed > capacity || !told.contains(&charged) || !is_exact {
        let unknown = failed + lost;
        let what = format!("{allowed} allowed, {denied} denied and {charged} charged of {capacity}");
        return Err(CliError::Check(format!("the race was not exact: {what} (clients without an answer: {unknown})")));
    }
    // Whoever was denied has given back what it took of the other keys, unless it could not, or was killed.
    let given_back = allowed..=allowed + failed + lost + refunds_lost;
    if let Some(charged) = report.charged_elsewhere.iter().find(|charged| !given_back.contains(charged)) {
        let what = format!("{charged} charged of another key for {allowed} allowed");
        return Err(CliError::Check(format!("the race was not all or nothing: {what}")));
    }
    if failed > 0 {
        return Err(CliError::Check(format!("{failed} clients got no answer from the table")));
    }
    Ok(())
}
