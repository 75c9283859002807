//! Who asks for messages within a day: people as they come, and somebody who shares in what messages cost.
//!
//! Invariant: all of it follows from one seed. Volumes, countries, ranges, how numbers are chosen, how many addresses there are, whether
//! CAPTCHAs are solved and codes typed, whose devices are known, and when it moves on: every seed has others, so that no figure of the
//! defence can be fitted to them.

use super::play::percent;
use super::world::Caller;
use crate::error::{CliError, Result};
use ::otp::device;
use fastrand::Rng;
use std::collections::HashMap;
use std::ops::RangeInclusive;
use std::time::Duration;
use tollgate::{Policy, Timestamp};
use tollgate_otp::Destination;
use tollgate_policy::{Channel, OtpRules, PumpingRules};

/// How long is played.
pub(super) const DAY: Duration = Duration::from_secs(86_400);

/// How many times the usual bill is paid where nobody is stopped, people's messages included: "SMS bill x40".
pub(super) const TIMES: u64 = 40;

/// People who ask within a day, of the middle seed.
const PEOPLE: f64 = 2000.0;

/// Of a hundred people, those who sign in again on a device that is known: an assumption, and every seed has another.
pub(super) const KNOWN: RangeInclusive<u32> = 50..=90;

/// Most accounts, of a thousand, that an attacker who has CAPTCHAs solved has prepared: a code was typed for each before he begins, on a
/// device whose cookie is kept.
const PREPARED: u64 = 50;

/// For how many days before they ask devices have been known.
const KNOWN_FOR: RangeInclusive<u64> = 1..=60;

/// Tries for a number that its country's plan has.
const TRIES: u32 = 1000;

/// What numbers of persons begin with, by country; and how many digits follow.
const PLANS: [(&str, &[&str], u32); 2] = [
    ("RO", &["+4072", "+4073", "+4074", "+4075", "+4076", "+4078"], 7),
    ("VN", &["+8490", "+8491", "+8494", "+8496", "+8497", "+8498", "+8470", "+8439"], 7),
];

/// One who wants to sign in.
#[derive(Debug, Clone)]
pub(super) struct Person {
    pub(super) at: Timestamp,
    pub(super) caller: Caller,
    /// Seconds until he types the code, if he does.
    pub(super) types_after: Option<u64>,
    /// Whether a CAPTCHA stops him, this often.
    pub(super) fails_captchas: u32,
}

/// A message that the attack asks for.
#[derive(Debug, Clone)]
pub(super) struct Wish {
    pub(super) at: Timestamp,
    pub(super) caller: Caller,
    /// Whether a CAPTCHA is solved for it.
    pub(super) solves: bool,
    /// Whether its code is typed.
    pub(super) types: bool,
}

/// A day of a seed.
#[derive(Debug)]
pub(super) struct Traffic {
    pub(super) seed: u64,
    pub(super) people: Vec<Person>,
    /// Of a hundred people, those whose device is known.
    pub(super) known: u32,
    pub(super) attack: Attack,
    pub(super) wishes: Vec<Wish>,
}

impl Traffic {
    /// The day that begins at `start`.
    pub(super) fn of(
        policy: &Policy,
        rules: &OtpRules,
        pumping: &PumpingRules,
        seed: u64,
        start: Timestamp,
    ) -> Result<Self> {
        let mut rng = Rng::with_seed(seed);
        let mut people = people(rules, &mut rng, start)?;
        let usual = people.iter().filter_map(|person| pumping.price(person.caller.to.country())).sum();
        let mut attack = Attack::new(rules, pumping, &mut rng, start, usual)?;
        let mut wishes = attack.wishes(rules, &mut rng, start + DAY);
        let known = rng.u32(KNOWN);
        for Person { caller, .. } in &mut people {
            if rng.u32(..100) < known {
                caller.cookie = cookie(policy, &mut rng, &caller.user, start)?;
            }
        }
        attack.prepare(policy, &mut rng, &mut wishes, start)?;
        Ok(Self { seed, people, known, attack, wishes })
    }
}

/// The cookie of a device on which a user has typed a right code some time ago; `None` if the policy knows no devices.
fn cookie(policy: &Policy, rng: &mut Rng, user: &str, start: Timestamp) -> Result<Option<String>> {
    let since = Timestamp::from_secs(start.as_secs().saturating_sub(rng.u64(KNOWN_FOR) * DAY.as_secs()));
    let cookie = device::cookie(policy, user, since).map_err(|e| CliError::Input(e.to_string()))?;
    // What a browser sends back of it.
    Ok(cookie.and_then(|cookie| cookie.set_cookie().split(';').next().map(str::to_owned)))
}

/// The attack of a seed.
#[derive(Debug, Clone)]
pub(super) struct Attack {
    pub(super) begins: Timestamp,
    pub(super) messages: u64,
    pub(super) country: &'static str,
    /// Messages whose CAPTCHA is solved, of a thousand.
    pub(super) solves: u64,
    /// Messages whose code is typed, of a thousand.
    pub(super) types: u64,
    /// Accounts that were prepared, of a thousand.
    prepared: u64,
    ranges: Vec<Range>,
    addresses: u32,
    /// Of a hundred numbers, those that come right behind the last one.
    runs: u32,
}

/// Numbers that the attacker shares in.
#[derive(Debug, Clone)]
struct Range {
    prefix: String,
    digits: u32,
    next: u64,
}

/// The people of a day.
fn people(rules: &OtpRules, rng: &mut Rng, start: Timestamp) -> Result<Vec<Person>> {
    let volume = PEOPLE * 2_f64.powf(rng.f64() * 2.0 - 1.0);
    let (first, conversion) = (0.6 + 0.35 * rng.f64(), 0.72 + 0.2 * rng.f64());
    let peak = rng.f64();
    let mut people = Vec::new();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some thousands")]
    for n in 0..volume as u64 {
        // Twice as many in the busiest hours as in the quietest.
        let share = loop {
            let share = rng.f64();
            let busy = 1.0 + ((share - peak) * std::f64::consts::TAU).cos() / 3.0;
            if rng.f64() * 4.0 / 3.0 < busy {
                break share;
            }
        };
        let plan = usize::from(rng.f64() >= first);
        let caller = Caller {
            user: format!("person-{n}"),
            address: format!("198.18.{}.{}", rng.u8(..), rng.u8(..)),
            to: number(rules, rng, PLANS.get(plan).unwrap_or(&PLANS[0]))?,
            cookie: None,
        };
        let types_after = (rng.f64() < conversion).then(|| rng.u64(8..150));
        let fails_captchas = (0..9).take_while(|_| rng.f64() < 0.08).count();
        let fails_captchas = u32::try_from(fails_captchas).unwrap_or(u32::MAX);
        people.push(Person { at: start + DAY.mul_f64(share), caller, types_after, fails_captchas });
    }
    people.sort_by_key(|person| person.at);
    Ok(people)
}

fn number(rules: &OtpRules, rng: &mut Rng, plan: &(&str, &[&str], u32)) -> Result<Destination> {
    let (_, prefixes, digits) = plan;
    for _ in 0..TRIES {
        let prefix = rng.choice(*prefixes).copied().unwrap_or_default();
        let text = format!("{prefix}{:0width$}", rng.u64(..10_u64.pow(*digits)), width = *digits as usize);
        if let Ok(to) = Destination::phone(&text, Channel::Sms, rules) {
            return Ok(to);
        }
    }
    Err(CliError::Input(format!("the policy sends no codes to {}; name it in [otp] `countries`", plan.0)))
}

impl Attack {
    /// The attack of a seed, on a service that sends people messages for `bill` a day.
    pub(super) fn new(
        rules: &OtpRules,
        pumping: &PumpingRules,
        rng: &mut Rng,
        start: Timestamp,
        bill: u64,
    ) -> Result<Self> {
        let (country, prefixes, digits) = PLANS[usize::from(rng.f64() < 0.5)];
        let price = pumping.price(country).unwrap_or(1);
        let mut ranges = Vec::new();
        for _ in 0..rng.usize(1..=5) {
            let free = rng.u32(5..=6);
            let seen = number(rules, rng, &(country, prefixes, digits))?;
            let kept = seen.address().len().saturating_sub(free as usize);
            let prefix = seen.address().get(..kept).unwrap_or_default().to_owned();
            ranges.push(Range { prefix, digits: free, next: rng.u64(..10_u64.pow(free)) });
        }
        Ok(Self {
            begins: start + DAY.mul_f64(0.08 + 0.17 * rng.f64()),
            messages: bill * (TIMES - 1) / price,
            country,
            solves: if rng.bool() { rng.u64(0..150) } else { 0 },
            types: rng.u64(0..30),
            prepared: 0,
            ranges,
            addresses: rng.u32(50..5000),
            runs: rng.u32(0..=100),
        })
    }

    /// All that it asks for in a day that ends `until`.
    pub(super) fn wishes(&mut self, rules: &OtpRules, rng: &mut Rng, until: Timestamp) -> Vec<Wish> {
        let (mut at, mut wishes) = (self.begins, Vec::new());
        let pause = Duration::from_nanos(until.as_nanos().saturating_sub(at.as_nanos()) / self.messages.max(1));
        for n in 0.. {
            let (solves, types) = (rng.u64(..1000) < self.solves, rng.u64(..1000) < self.types);
            let next = self.next(rules, rng, n).filter(|_| at < until);
            let Some(caller) = next else { break };
            wishes.push(Wish { at, caller, solves, types });
            // As calls that know nothing of each other come.
            at = at + pause.mul_f64(-(1.0 - rng.f64()).ln());
        }
        wishes
    }

    /// Gives some accounts the cookie of a device. Of no use where no CAPTCHA is solved, so whoever solves none prepares none.
    fn prepare(&mut self, policy: &Policy, rng: &mut Rng, wishes: &mut [Wish], start: Timestamp) -> Result<()> {
        if self.solves == 0 {
            return Ok(());
        }
        self.prepared = rng.u64(0..=PREPARED);
        let mut accounts: HashMap<String, Option<String>> = HashMap::new();
        for Wish { caller, .. } in wishes {
            caller.cookie = match accounts.get(&caller.user) {
                Some(known) => known.clone(),
                None => {
                    let is_prepared = rng.u64(..1000) < self.prepared;
                    let new = if is_prepared { cookie(policy, rng, &caller.user, start)? } else { None };
                    accounts.entry(caller.user.clone()).or_insert(new).clone()
                }
            };
        }
        Ok(())
    }

    /// Who asks for the next message: the range that is used changes through the day.
    fn next(&mut self, rules: &OtpRules, rng: &mut Rng, n: u64) -> Option<Caller> {
        let ranges = u64::try_from(self.ranges.len()).unwrap_or(1).max(1);
        let turn = usize::try_from(n * ranges / self.messages.max(1)).unwrap_or(0).min(self.ranges.len() - 1);
        // Mostly the one whose turn it is, and others beside it.
        let turn = if rng.u8(..4) > 0 { turn } else { rng.usize(..self.ranges.len()) };
        let (runs, address) = (self.runs, rng.u32(..self.addresses));
        let range = self.ranges.get_mut(turn)?;
        let size = 10_u64.pow(range.digits);
        for _ in 0..TRIES {
            range.next = if rng.u32(..100) < runs { (range.next + 1) % size } else { rng.u64(..size) };
            let text = format!("{}{:0width$}", range.prefix, range.next, width = range.digits as usize);
            if let Ok(to) = Destination::phone(&text, Channel::Sms, rules) {
                let address = format!("203.{}.{}.7", address / 256, address % 256);
                return Some(Caller { user: format!("robot-{text}"), address, to, cookie: None });
            }
        }
        None
    }

    /// What it does, in a line.
    pub(super) fn told(&self) -> String {
        let ranges: Vec<_> =
            self.ranges.iter().map(|r| format!("{}{}", r.prefix, "x".repeat(r.digits as usize))).collect();
        format!(
            "{} messages to {} ({}); {}% in runs, {} addresses, {:.1}% of CAPTCHAs solved, {:.1}% of codes typed, {:.1}% of accounts prepared",
            self.messages,
            self.country,
            ranges.join(", "),
            self.runs,
            self.addresses,
            percent(self.solves, 1000),
            percent(self.types, 1000),
            percent(self.prepared, 1000),
        )
    }
}
