//! Round trips of a decision, and what 40 callers at once are admitted, counted before the table.
//!
//! Invariant: a decision is what its column says; one that comes out otherwise ends the comparison.

use crate::child::Child;
use crate::error::{Error, Result};
use crate::note;
use crate::protocol::{Answer, Order};
use crate::server::Told;
use crate::settings::{Contestant, MOST_APART, Peers, Program, SETTINGS};
use serde::Serialize;

/// Keys that each kind of decision is made on.
const KEYS: usize = 10;
/// What `scarce` has, and how many callers come for it at once.
const CAPACITY: u64 = 10;
const CALLERS: usize = 40;
/// How often they do, each time for a new key.
const TIMES: usize = 5;

/// Callers of a hot key, and how long they ask.
const HOT_CALLERS: usize = 32;
const HOT_SECONDS: f64 = 0.5;

/// What a row costs.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Line {
    pub(crate) contestant: Contestant,
    /// Round trips of the first decision on a key.
    pub(crate) new_key: f64,
    /// Of the next one, allowed too.
    pub(crate) known_key: f64,
    /// Of a denial by a process that knows nothing of the key.
    pub(crate) denial: f64,
    /// Of the same process's next one, at once.
    pub(crate) next_denial: f64,
    /// 40 callers at once on a new key of 10, that share a client.
    pub(crate) together: Crowd,
    /// 40 callers at once on a new key of 10, that share nothing.
    pub(crate) apart: Crowd,
    /// Of a decision on a key far from its limit that 32 callers of one client keep asking for.
    pub(crate) hot_key: f64,
}

/// What 40 callers got.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Crowd {
    /// Round trips of all of them.
    pub(crate) round_trips: f64,
    /// The fewest that were admitted in any of the tries.
    pub(crate) fewest: u64,
    /// The most.
    pub(crate) most: u64,
    /// Calls that got no decision, of all tries.
    pub(crate) failed: u64,
}

/// Counts for every row that is counted.
pub(crate) async fn measure(peers: &Peers, rows: &[Contestant], server: &mut Child, told: &Told) -> Result<Vec<Line>> {
    let mut lines = Vec::new();
    for row in rows.iter().filter(|row| row.is_counted) {
        note(format_args!("counting: {}", row.title));
        let mut counting = Counting {
            contestant: row,
            server,
            first: peers.start(row, &told.counted)?,
            second: peers.start(row, &told.counted)?,
        };
        lines.push(counting.line().await?);
    }
    Ok(lines)
}

/// Two processes of one row.
struct Counting<'a> {
    contestant: &'a Contestant,
    server: &'a mut Child,
    first: Child,
    second: Child,
}

impl Counting<'_> {
    async fn line(&mut self) -> Result<Line> {
        let setting = self.contestant.setting;
        let keys = |name: &str| (0..KEYS).map(|i| format!("{setting}-{name}-{i}")).collect::<Vec<_>>();
        for process in [&mut self.first, &mut self.second] {
            let _: Answer = process.ask(&Order::Open { clients: 1 }).await?;
        }
        // What a process asks once, and not for each key, is not counted.
        for (second, name) in [(false, "first"), (true, "second")] {
            self.decide(second, keys(name), true).await?;
            self.decide(second, keys(name), true).await?;
        }
        let counted = keys("counted");
        let new_key = self.decide(false, counted.clone(), true).await?;
        let known_key = self.decide(false, counted.clone(), true).await?;
        for _ in 2..CAPACITY {
            self.decide(false, counted.clone(), true).await?;
        }
        let denial = self.decide(true, counted.clone(), false).await?;
        let next_denial = self.decide(true, counted, false).await?;
        let together = self.crowd("together").await?;
        let hot_key = self.hot_key().await?;
        let _: Answer = self.first.ask(&Order::Open { clients: CALLERS }).await?;
        let apart = self.crowd("apart").await?;
        let contestant = self.contestant.clone();
        Ok(Line { contestant, new_key, known_key, denial, next_denial, together, apart, hot_key })
    }

    async fn hot_key(&mut self) -> Result<f64> {
        let prefix = format!("{}-hot-", self.contestant.setting);
        let before = requests(self.server).await?;
        let load = Order::Load { prefix, keys: 1, callers: HOT_CALLERS, seconds: HOT_SECONDS };
        let answer: Answer = self.first.ask(&load).await?;
        Ok(per(requests(self.server).await? - before, usize::try_from(answer.decisions()).unwrap_or(usize::MAX)))
    }

    /// Round trips of a decision on each key; all must be as `allowed` says.
    async fn decide(&mut self, by_second: bool, keys: Vec<String>, allowed: bool) -> Result<f64> {
        let number = keys.len();
        let process = if by_second { &mut self.second } else { &mut self.first };
        let before = requests(self.server).await?;
        let answer: Answer = process.ask(&Order::Decide { keys, at_once: false }).await?;
        let made = requests(self.server).await? - before;
        let fitting = if allowed { answer.allowed } else { answer.denied };
        if fitting != number as u64 {
            let problem =
                format!("of {number} decisions each should have been allowed: {allowed}, but there were {answer:?}");
            return Err(Error::Contestant { contestant: self.contestant.title.clone(), problem });
        }
        Ok(per(made, number))
    }

    async fn crowd(&mut self, name: &str) -> Result<Crowd> {
        let mut crowd = Crowd { round_trips: 0.0, fewest: u64::MAX, most: 0, failed: 0 };
        let before = requests(self.server).await?;
        for time in 0..TIMES {
            let keys = vec![format!("{}-{name}-{time}", self.contestant.setting); CALLERS];
            let answer: Answer = self.first.ask(&Order::Decide { keys, at_once: true }).await?;
            crowd.fewest = crowd.fewest.min(answer.allowed);
            crowd.most = crowd.most.max(answer.allowed);
            crowd.failed += answer.failed;
        }
        crowd.round_trips = per(requests(self.server).await? - before, TIMES);
        Ok(crowd)
    }
}

async fn requests(server: &mut Child) -> Result<u64> {
    Ok(server.ask::<Told>(&"requests").await?.requests)
}

#[allow(clippy::cast_precision_loss, reason = "some thousand requests")]
fn per(requests: u64, decisions: usize) -> f64 {
    requests as f64 / decisions as f64
}

/// Two at most, as of any decision.
const MOST_HOT: f64 = 2.0;

/// What must hold of tollgate's rows, whatever the machine is doing.
pub(crate) fn check(lines: &[Line]) -> Result<()> {
    for line in lines.iter().filter(|line| line.contestant.program == Program::Tollgate) {
        let Some(setting) = SETTINGS.iter().find(|setting| setting.id == line.contestant.setting) else { continue };
        let crowds = [(&line.together, setting.most_for_forty), (&line.apart, MOST_APART)];
        let is_exact = |(crowd, most): &(&Crowd, f64)| {
            (crowd.fewest, crowd.most, crowd.failed) == (CAPACITY, CAPACITY, 0) && crowd.round_trips <= *most
        };
        let each = [line.new_key, line.known_key, line.denial, line.next_denial];
        let is_cheap = each.iter().zip(setting.most).all(|(made, most)| *made <= most) && line.hot_key <= MOST_HOT;
        if !is_cheap || !crowds.iter().all(is_exact) {
            return Err(Error::Check(format!("tollgate does not cost or admit what it should: {line:#?}")));
        }
    }
    Ok(())
}
