//! One day of a seed, event by event, in simulated time.
//!
//! Invariants: the same seed asks for the same messages whatever the defence is; nothing waits for the wall clock.

use super::traffic::{Attack, DAY, Person, people};
use super::world::{Answer, Caller, Defence, World};
use crate::error::{CliError, Result};
use fastrand::Rng;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::time::Duration;
use tollgate::{Policy, Timestamp};
use tollgate_otp::Destination;
use tollgate_otp::pumping::Rung;

/// The day that is played: 2026-01-01.
const START: Timestamp = Timestamp::from_secs(1_767_225_600);
const MINUTE: Duration = Duration::from_secs(60);
/// How long a person needs for a CAPTCHA, and waits after a refusal.
const SOLVES: Duration = Duration::from_secs(15);
const COMES_BACK: Duration = Duration::from_secs(300);
/// How often he comes back.
const PATIENCE: u32 = 3;

/// Minutes that a point of the charts stands for.
pub(super) const POINT: u64 = 10;

/// What a day came to.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct Day {
    /// The seed.
    pub seed: u64,
    /// What the attack does.
    pub attack: String,
    /// Minutes from its first message until it is asked for CAPTCHAs; none if it never was.
    pub detected_after_min: Option<f64>,
    /// Messages that it asked for.
    pub asked: u64,
    /// Messages that it got.
    pub lost_messages: u64,
    /// What these cost, in the unit of the policy's prices.
    pub lost: u64,
    /// What all that it wanted would have cost.
    pub undefended: u64,
    /// `lost` of `undefended`, percent.
    pub loss_percent: f64,
    /// People who wanted to sign in.
    pub people: u64,
    /// Those who had to solve a CAPTCHA.
    pub challenged: u64,
    /// Those who were sent nothing, however often they came back.
    pub blocked: u64,
    /// `blocked` of `people`, percent.
    pub blocked_percent: f64,
    /// Prefixes and countries that were suspected before there was an attack.
    pub false_alarms: u64,
    /// What people's messages cost.
    pub usual: u64,
    /// By ten minutes: messages that the attack asked for, that it got, and that people got.
    pub series: Vec<[u64; 3]>,
}

/// What happens.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Judge,
    Person { index: usize, tries: u32, is_human: bool },
    Robot { n: u64 },
    Typed { index: Option<usize>, robot: u64, made_at: Timestamp },
}

struct Play<'a> {
    policy: &'a Arc<Policy>,
    world: World,
    queue: BinaryHeap<Reverse<(Timestamp, u64, Event)>>,
    pushed: u64,
    people: Vec<Person>,
    attack: Attack,
    /// Where robots' messages went whose codes they type.
    typed: Vec<Destination>,
    /// What the attack does follows from this alone.
    robots: Rng,
    day: Day,
}

/// Plays the day of a seed.
pub(super) async fn play(policy: &Arc<Policy>, seed: u64, defence: Defence) -> Result<Day> {
    let no_rules = || CliError::Input("the policy has no [otp.pumping], so that nobody is watched".to_owned());
    let rules = policy.otp().ok_or_else(no_rules)?;
    let pumping = rules.pumping.as_ref().ok_or_else(no_rules)?;
    let mut rng = Rng::with_seed(seed);
    let people = people(rules, &mut rng, START)?;
    let usual = people.iter().filter_map(|person| pumping.price(person.caller.to.country())).sum();
    let attack = Attack::new(rules, pumping, &mut rng, START, usual)?;
    let price = pumping.price(attack.country).unwrap_or(1);
    let day = Day {
        seed,
        attack: attack.told(),
        people: people.len() as u64,
        undefended: attack.messages * price,
        series: vec![[0; 3]; usize::try_from(DAY.as_secs() / (60 * POINT)).unwrap_or(0)],
        ..Day::default()
    };
    let world = World::new(Arc::clone(policy), defence, START);
    let (queue, robots) = (BinaryHeap::new(), Rng::with_seed(rng.u64(..)));
    let mut play = Play { policy, world, queue, pushed: 0, people, attack, typed: Vec::new(), robots, day };
    play.run().await?;
    Ok(play.told(price))
}

impl Play<'_> {
    fn push(&mut self, at: Timestamp, event: Event) {
        self.pushed += 1;
        self.queue.push(Reverse((at, self.pushed, event)));
    }

    async fn run(&mut self) -> Result<()> {
        let end = START + DAY;
        self.push(START + MINUTE, Event::Judge);
        for index in 0..self.people.len() {
            self.push(self.people[index].at, Event::Person { index, tries: 0, is_human: false });
        }
        self.push(self.attack.begins, Event::Robot { n: 0 });
        while let Some(Reverse((at, _, event))) = self.queue.pop().filter(|Reverse((at, ..))| *at < end) {
            self.world.set(at);
            match event {
                Event::Judge => self.judge(at)?,
                Event::Person { index, tries, is_human } => self.person(at, index, tries, is_human).await?,
                Event::Robot { n } => self.robot(at, n, end).await?,
                Event::Typed { index: Some(index), made_at, .. } => {
                    let to = self.people[index].caller.to.clone();
                    self.world.verified(&to, made_at);
                }
                Event::Typed { robot, made_at, .. } => {
                    let to = usize::try_from(robot).ok().and_then(|robot| self.typed.get(robot)).cloned();
                    to.iter().for_each(|to| self.world.verified(to, made_at));
                }
            }
        }
        Ok(())
    }

    fn judge(&mut self, at: Timestamp) -> Result<()> {
        for step in self.world.judge()? {
            if step.from == Rung::Observe && at < self.attack.begins {
                self.day.false_alarms += 1;
            }
        }
        self.push(at + MINUTE, Event::Judge);
        Ok(())
    }

    fn point(&mut self, at: Timestamp, which: usize) {
        let minutes = (at.as_secs() - START.as_secs()) / 60;
        let point = usize::try_from(minutes / POINT).ok().and_then(|point| self.day.series.get_mut(point));
        if let Some(count) = point.and_then(|point| point.get_mut(which)) {
            *count += 1;
        }
    }

    async fn person(&mut self, at: Timestamp, index: usize, tries: u32, is_human: bool) -> Result<()> {
        let Person { caller, types_after, fails_captchas, .. } = self.people[index].clone();
        match self.world.send(&caller, is_human).await? {
            Answer::Sent(made_at) => {
                self.point(at, 2);
                self.day.usual += self.price(&caller);
                if let Some(after) = types_after {
                    self.push(at + Duration::from_secs(after), Event::Typed { index: Some(index), robot: 0, made_at });
                }
            }
            Answer::Captcha => {
                self.day.challenged += u64::from(tries == 0);
                // Nobody tries four of them.
                if fails_captchas > PATIENCE {
                    self.day.blocked += 1;
                } else {
                    let solved = at + SOLVES * (fails_captchas + 1);
                    self.push(solved, Event::Person { index, tries: tries.max(1), is_human: true });
                }
            }
            Answer::Refused if tries >= PATIENCE => self.day.blocked += 1,
            Answer::Refused => {
                self.push(at + COMES_BACK, Event::Person { index, tries: tries + 1, is_human: false });
            }
        }
        Ok(())
    }

    async fn robot(&mut self, at: Timestamp, n: u64, end: Timestamp) -> Result<()> {
        let pause = self.attack.pause(&mut self.robots, end);
        self.push(at + pause, Event::Robot { n: n + 1 });
        let (solves, types) =
            (self.robots.u64(..1000) < self.attack.solves, self.robots.u64(..1000) < self.attack.types);
        let Some(rules) = self.policy.otp() else { return Ok(()) };
        let Some(caller) = self.attack.next(rules, &mut self.robots, n) else { return Ok(()) };
        self.day.asked += 1;
        self.point(at, 0);
        match self.world.send(&caller, solves).await? {
            Answer::Sent(made_at) => {
                self.day.lost_messages += 1;
                self.point(at, 1);
                if types {
                    let robot = self.typed.len() as u64;
                    self.typed.push(caller.to);
                    self.push(at + SOLVES, Event::Typed { index: None, robot, made_at });
                }
            }
            Answer::Captcha if self.day.detected_after_min.is_none() => {
                let seconds = at.as_secs().saturating_sub(self.attack.begins.as_secs());
                self.day.detected_after_min = Some(f64::from(u32::try_from(seconds).unwrap_or(u32::MAX)) / 60.0);
            }
            Answer::Captcha | Answer::Refused => {}
        }
        Ok(())
    }

    fn price(&self, caller: &Caller) -> u64 {
        let pumping = self.policy.otp().and_then(|rules| rules.pumping.as_ref());
        pumping.and_then(|pumping| pumping.price(caller.to.country())).unwrap_or(0)
    }

    fn told(mut self, price: u64) -> Day {
        self.day.lost = self.day.lost_messages * price;
        self.day.loss_percent = percent(self.day.lost, self.day.undefended);
        self.day.blocked_percent = percent(self.day.blocked, self.day.people);
        self.day
    }
}

#[allow(clippy::cast_precision_loss, reason = "far below 2^52")]
pub(super) fn percent(part: u64, of: u64) -> f64 {
    100.0 * part as f64 / of.max(1) as f64
}
