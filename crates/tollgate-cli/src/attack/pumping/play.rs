//! One day of a seed, event by event, in simulated time.
//!
//! Invariants: the same seed asks for the same messages whatever the defence is; nothing waits for the wall clock.

use super::traffic::{DAY, Person, Traffic, Wish};
use super::world::{Answer, Caller, Defence, World};
use crate::error::{CliError, Result};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::time::Duration;
use tollgate::{Policy, Timestamp};
use tollgate_otp::pumping::Rung;

/// The day that is played: 2026-01-01.
const START: Timestamp = Timestamp::from_secs(1_767_225_600);
const MINUTE: Duration = Duration::from_secs(60);
/// How long a person needs for a CAPTCHA, and waits after a refusal.
const SOLVES: Duration = Duration::from_secs(15);
const COMES_BACK: Duration = Duration::from_secs(300);
/// How long a verified code waits until it is counted, at worst: the table has refused the courier once.
const COUNTED: Duration = Duration::from_secs(22);
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
    /// Those of a hundred who have signed in before, on the device that they ask with: assumed, by seed.
    pub known_percent: u32,
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
    /// What the ladder did.
    pub steps: Vec<Climb>,
    /// By ten minutes: messages that the attack asked for, that it got, and that people got.
    pub series: Vec<[u64; 3]>,
}

/// A prefix or country that went up or down.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct Climb {
    /// Minutes since the day began.
    pub minute: u64,
    /// Which.
    pub scope: String,
    /// Where it was.
    pub from: &'static str,
    /// Where it is.
    pub to: &'static str,
    /// Why.
    pub why: &'static str,
}

/// What happens.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Judge,
    Person { index: usize, tries: u32, is_human: bool },
    Robot { index: usize },
    TypedByPerson { index: usize, made_at: Timestamp },
    TypedByRobot { index: usize, made_at: Timestamp },
}

struct Play<'a> {
    policy: &'a Policy,
    traffic: &'a Traffic,
    world: World,
    queue: BinaryHeap<Reverse<(Timestamp, u64, Event)>>,
    pushed: u64,
    day: Day,
}

/// What a seed asks for.
pub(super) fn traffic(policy: &Policy, seed: u64) -> Result<Traffic> {
    let no_rules = || CliError::Input("the policy has no [otp.pumping], so that nobody is watched".to_owned());
    let rules = policy.otp().ok_or_else(no_rules)?;
    Traffic::of(policy, rules, rules.pumping.as_ref().ok_or_else(no_rules)?, seed, START)
}

/// Plays a day.
pub(super) async fn play(policy: &Arc<Policy>, traffic: &Traffic, defence: Defence) -> Result<Day> {
    let day = Day {
        seed: traffic.seed,
        attack: traffic.attack.told(),
        people: traffic.people.len() as u64,
        known_percent: traffic.known,
        series: vec![[0; 3]; usize::try_from(DAY.as_secs() / (60 * POINT)).unwrap_or(0)],
        ..Day::default()
    };
    let world = World::new(Arc::clone(policy), defence, START);
    let mut play = Play { policy, traffic, world, queue: BinaryHeap::new(), pushed: 0, day };
    play.run().await?;
    Ok(play.told())
}

impl Play<'_> {
    fn push(&mut self, at: Timestamp, event: Event) {
        self.pushed += 1;
        self.queue.push(Reverse((at, self.pushed, event)));
    }

    async fn run(&mut self) -> Result<()> {
        let end = START + DAY;
        self.push(START + MINUTE, Event::Judge);
        for (index, person) in self.traffic.people.iter().enumerate() {
            self.push(person.at, Event::Person { index, tries: 0, is_human: false });
        }
        for (index, wish) in self.traffic.wishes.iter().enumerate() {
            self.push(wish.at, Event::Robot { index });
        }
        while let Some(Reverse((at, _, event))) = self.queue.pop().filter(|Reverse((at, ..))| *at < end) {
            self.world.set(at);
            match event {
                Event::Judge => self.judge(at)?,
                Event::Person { index, tries, is_human } => self.person(at, index, tries, is_human).await?,
                Event::Robot { index } => self.robot(at, index).await?,
                Event::TypedByPerson { index, made_at } => {
                    self.world.verified(&self.traffic.people[index].caller.to, made_at);
                }
                Event::TypedByRobot { index, made_at } => {
                    self.world.verified(&self.traffic.wishes[index].caller.to, made_at);
                }
            }
        }
        Ok(())
    }

    fn judge(&mut self, at: Timestamp) -> Result<()> {
        for step in self.world.judge()? {
            if step.from == Rung::Observe && at < self.traffic.attack.begins {
                self.day.false_alarms += 1;
            }
            self.day.steps.push(Climb {
                minute: (at.as_secs() - START.as_secs()) / 60,
                scope: step.scope.to_string(),
                from: step.from.as_str(),
                to: step.to.as_str(),
                why: step.why.as_str(),
            });
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
        let Person { caller, types_after, fails_captchas, .. } = &self.traffic.people[index];
        match self.world.send(caller, is_human).await? {
            Answer::Sent(made_at) => {
                self.point(at, 2);
                self.day.usual += self.price(caller);
                if let Some(after) = types_after {
                    self.push(at + Duration::from_secs(*after) + COUNTED, Event::TypedByPerson { index, made_at });
                }
            }
            Answer::Captcha => {
                self.day.challenged += u64::from(tries == 0);
                // Nobody tries four of them.
                if *fails_captchas > PATIENCE {
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

    async fn robot(&mut self, at: Timestamp, index: usize) -> Result<()> {
        let Wish { caller, solves, types, .. } = &self.traffic.wishes[index];
        self.day.asked += 1;
        self.day.undefended += self.price(caller);
        self.point(at, 0);
        match self.world.send(caller, *solves).await? {
            Answer::Sent(made_at) => {
                self.day.lost_messages += 1;
                self.day.lost += self.price(caller);
                self.point(at, 1);
                if *types {
                    self.push(at + SOLVES + COUNTED, Event::TypedByRobot { index, made_at });
                }
            }
            Answer::Captcha if self.day.detected_after_min.is_none() => {
                let seconds = at.as_secs().saturating_sub(self.traffic.attack.begins.as_secs());
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

    fn told(mut self) -> Day {
        self.day.loss_percent = percent(self.day.lost, self.day.undefended);
        self.day.blocked_percent = percent(self.day.blocked, self.day.people);
        self.day
    }
}

#[allow(clippy::cast_precision_loss, reason = "far below 2^52")]
pub(super) fn percent(part: u64, of: u64) -> f64 {
    100.0 * part as f64 / of.max(1) as f64
}
