//! Codes that are guessed, codes that are raced, and passwords that are sprayed, beside people who sign in.
//!
//! Invariant: time is the server's, which is moved; the same seed makes the same guesses.

use super::target::{Answer, Target};
use crate::args::GuessArgs;
use crate::error::{CliError, Result};
use crate::output;
use crate::page::{self, BLUE, GREY, RED};
use fastrand::Rng;
use futures_util::future::join_all;
use serde::Serialize;
use serde_json::{Value, json};
use std::time::Duration;

const SEND: (&str, &str) = ("POST", "/api/auth/otp/send");
const VERIFY: (&str, &str) = ("POST", "/api/auth/otp/verify");
const LOGIN: (&str, &str) = ("POST", "/api/auth/login");
/// Somebody whose password the attacker has, and somebody who has nothing to do with it.
const VICTIM: &str = "alice";
const BYSTANDER: &str = "bob";
/// Where the attacker and people are.
const ROBOT: &str = "203.0.113.66";
const HOME: &str = "198.51.100.7";
const PASSWORD: &str = "correct horse";

const HOUR: Duration = Duration::from_secs(3600);
/// Hours that guessing is played for.
const HOURS: u64 = 24;
/// Callers of a race.
const CALLERS: usize = 50;
const ROUNDS: u64 = 20;
/// A spray: passwords, over how many accounts, from how many addresses, within an hour.
const SPRAYED: u32 = 3000;
const ACCOUNTS: u32 = 1000;
const ADDRESSES: u32 = 300;
/// Guesses at one instant.
const STEP: u32 = 10;
/// People who sign in within that hour, half of them on a device that they have used before.
const PEOPLE: u32 = 60;

/// What became of guesses.
#[derive(Debug, Default, Serialize)]
struct Guessing {
    attack: &'static str,
    seed: u64,
    simulated_hours: u64,
    /// Messages that the attack caused.
    messages: u64,
    /// Guesses that were made.
    guesses: u64,
    /// Those that were compared with anything.
    compared: u64,
    /// Those that were right.
    right: u64,
    /// Seconds until the first guess was refused.
    refused_after_s: Option<u64>,
    /// Sign-ins of people that the attack was not on.
    honest: u64,
    /// Those that failed.
    honest_blocked: u64,
    /// Guesses that have an even chance of being right, at this pace, after so many years.
    years_for_even_odds: Option<f64>,
    /// What there was so far, from time to time.
    series: Vec<Point>,
}

/// What there was at one time of an attack.
#[derive(Debug, Serialize)]
struct Point {
    /// Simulated hours since it began.
    hour: f64,
    guesses: u64,
    compared: u64,
    messages: u64,
}

impl Guessing {
    /// Counts a guess by the status of its answer, at `seconds` since the attack began.
    fn tally(&mut self, status: u16, seconds: u64) {
        self.guesses += 1;
        self.compared += u64::from(matches!(status, 200 | 401));
        self.right += u64::from(status == 200);
        if !matches!(status, 200 | 401) {
            self.refused_after_s.get_or_insert(seconds);
        }
    }

    /// So far at `seconds` since the attack began.
    fn mark(&mut self, seconds: u64) {
        let Self { guesses, compared, messages, .. } = *self;
        let hour = Duration::from_secs(seconds).as_secs_f64() / HOUR.as_secs_f64();
        self.series.push(Point { hour, guesses, compared, messages });
    }

    /// In a sentence or two.
    fn text(&self) -> String {
        let refused = self.refused_after_s.map_or("never".to_owned(), |s| format!("after {s} s"));
        let years = self.years_for_even_odds.map(|years| format!("; even odds take {years:.0} years at this pace"));
        format!(
            "{} in {} simulated h: {} messages, {} guesses, {} compared, {} right; first refused {refused}\n\
             people: {} sign-ins, {} failed{}",
            self.attack,
            self.simulated_hours,
            self.messages,
            self.guesses,
            self.compared,
            self.right,
            self.honest,
            self.honest_blocked,
            years.unwrap_or_default(),
        )
    }

    /// The page with its chart.
    fn page(&self) -> Result<String> {
        #[allow(clippy::cast_precision_loss, reason = "far below 2^52")]
        let of = |value: fn(&Point) -> u64| self.series.iter().map(|at| (at.hour, value(at) as f64)).collect();
        let series = [
            ("guesses", GREY, of(|at| at.guesses)),
            ("compared", RED, of(|at| at.compared)),
            ("messages", BLUE, of(|at| at.messages)),
        ];
        let hours = self.series.iter().map(|at| at.hour).fold(f64::MIN_POSITIVE, f64::max);
        let chart = page::lines("so far", ("hour", hours), &series)?;
        let title = format!("{}, seed {}", self.attack, self.seed);
        Ok(page::page(&title, &format!("<p>{}</p>{chart}", self.text().replace('\n', "<br>"))))
    }
}

fn told(args: &GuessArgs, done: &Guessing) -> Result<()> {
    if let Some(path) = &args.html {
        page::write(path, &done.page()?)?;
    }
    output::result(args.json, done, || done.text())
}

async fn send(target: &Target, who: &str, from: &str) -> Result<Answer> {
    let said = target.ask(SEND, (Some(who), from), None, &json!({ "purpose": "login" })).await?;
    answered(SEND.1, said, &[202, 429])
}

async fn verify(target: &Target, who: &str, from: &str, challenge: &Value, code: &str) -> Result<Answer> {
    let body = json!({ "challenge": challenge, "purpose": "login", "code": code });
    let said = target.ask(VERIFY, (Some(who), from), None, &body).await?;
    answered(VERIFY.1, said, &[200, 401, 410, 429])
}

/// An answer that guesses can have. By any other nothing was guessed, and figures of it would say that nothing can be.
fn answered(path: &str, said: Answer, expected: &[u16]) -> Result<Answer> {
    if expected.contains(&said.status) {
        return Ok(said);
    }
    let Answer { status, body, .. } = said;
    let why = body["message"].as_str().or(body["detail"].as_str()).unwrap_or("without a reason");
    Err(CliError::Check(format!("{path} answers {status}, so nothing is attacked: {why}")))
}

/// A guess among the codes of so many digits.
fn any_code(rng: &mut Rng, digits: usize) -> String {
    format!("{:0digits$}", rng.u64(..codes(digits)))
}

/// How many codes of so many digits there are.
fn codes(digits: usize) -> u64 {
    (0..digits).fold(1_u64, |codes, _| codes.saturating_mul(10))
}

/// The code of the last message.
async fn code(target: &Target) -> Result<String> {
    let outbox = target.dev("GET", "/dev/outbox", &Value::Null).await?.body;
    let code = outbox.as_array().and_then(|all| all.last()).and_then(|last| last["code"].as_str());
    code.map(str::to_owned).ok_or_else(|| CliError::Check("the outbox has no message".to_owned()))
}

/// Somebody signs in as he should.
async fn signs_in(target: &Target, who: &str) -> Result<bool> {
    let sent = send(target, who, HOME).await?;
    if sent.status != 202 {
        return Ok(false);
    }
    let code = code(target).await?;
    Ok(verify(target, who, HOME, &sent.body["challenge"], &code).await?.status == 200)
}

/// A day of guesses of an account's codes, by somebody who has its password.
pub(super) async fn bruteforce(args: &GuessArgs) -> Result<()> {
    let (target, mut rng) = (Target::of(args).await?, Rng::with_seed(args.seed));
    let mut done =
        Guessing { attack: "otp-bruteforce", seed: args.seed, simulated_hours: HOURS, ..Guessing::default() };
    let (mut now, end, mut next_person, mut digits) = (0, HOURS * HOUR.as_secs(), 0, 0);
    while now < end {
        if now >= next_person {
            done.honest += 1;
            done.honest_blocked += u64::from(!signs_in(&target, BYSTANDER).await?);
            next_person += HOUR.as_secs();
        }
        let sent = send(&target, VICTIM, ROBOT).await?;
        let mut wait = sent.body["retryAfter"].as_u64().or(sent.body["resend_after"].as_u64()).unwrap_or(60);
        if sent.status == 202 {
            done.messages += 1;
            // As a message to the attacker's own number tells him.
            digits = code(&target).await?.len();
            wait = wait.max(guess(&target, &mut rng, digits, &sent.body["challenge"], now, &mut done).await?);
        }
        // No longer than until somebody else comes.
        let wait = wait.clamp(1, next_person.saturating_sub(now).max(1));
        target.advance(Duration::from_secs(wait)).await?;
        now += wait;
        done.mark(now);
    }
    #[allow(clippy::cast_precision_loss, reason = "ten digits at most, and some hundreds of guesses")]
    let (codes, a_year) = (codes(digits) as f64, done.compared as f64 * 365.0 * 24.0 / HOURS as f64);
    done.years_for_even_odds = Some(codes * std::f64::consts::LN_2 / a_year.max(1.0));
    told(args, &done)
}

/// Guesses a code until that is refused; returns how long to wait then, seconds.
async fn guess(
    target: &Target,
    rng: &mut Rng,
    digits: usize,
    challenge: &Value,
    now: u64,
    done: &mut Guessing,
) -> Result<u64> {
    loop {
        let said = verify(target, VICTIM, ROBOT, challenge, &any_code(rng, digits)).await?;
        done.tally(said.status, now);
        match said.status {
            401 => {}
            200 => return Ok(0),
            _ => return Ok(said.body["retryAfter"].as_u64().unwrap_or(0)),
        }
    }
}

/// Many right codes at once, and many wrong ones.
pub(super) async fn race(args: &GuessArgs) -> Result<()> {
    let (target, mut rng) = (Target::of(args).await?, Rng::with_seed(args.seed));
    let mut done = Guessing { attack: "otp-race", seed: args.seed, ..Guessing::default() };
    let mut most = 0;
    for round in 0..ROUNDS {
        let sent = send(&target, VICTIM, ROBOT).await?;
        if sent.status == 202 {
            done.messages += 1;
            let right = code(&target).await?;
            // In every other round all are wrong.
            let codes: Vec<String> = (0..CALLERS)
                .map(|_| if round % 2 == 0 { right.clone() } else { any_code(&mut rng, right.len()) })
                .collect();
            let calls = codes.iter().map(|code| verify(&target, VICTIM, ROBOT, &sent.body["challenge"], code));
            let said: Vec<u16> =
                join_all(calls).await.into_iter().map(|said| said.map(|said| said.status)).collect::<Result<_>>()?;
            said.iter().for_each(|status| done.tally(*status, round * HOUR.as_secs()));
            most = most.max(said.iter().filter(|status| **status == 200).count());
        }
        done.honest += 1;
        done.honest_blocked += u64::from(!signs_in(&target, BYSTANDER).await?);
        target.advance(HOUR).await?;
        done.simulated_hours += 1;
        done.mark(done.simulated_hours * HOUR.as_secs());
    }
    told(args, &done)?;
    if most > 1 {
        return Err(CliError::Check(format!("{most} of {CALLERS} callers at once were verified by one code")));
    }
    Ok(())
}

/// A few passwords on many accounts, from many addresses.
pub(super) async fn spray(args: &GuessArgs) -> Result<()> {
    let (target, mut rng) = (Target::of(args).await?, Rng::with_seed(args.seed));
    let mut done = Guessing { attack: "password-spray", seed: args.seed, simulated_hours: 1, ..Guessing::default() };
    let mut devices = Vec::new();
    for person in 0..PEOPLE / 2 {
        devices.push(login(&target, person, None).await?.cookie);
    }
    target.advance(HOUR).await?;
    let pause = HOUR / SPRAYED;
    for n in 0..SPRAYED {
        if n % (SPRAYED / PEOPLE) == 0 {
            let person = n / (SPRAYED / PEOPLE);
            let cookie = devices.get(person as usize).and_then(Option::as_deref);
            done.honest += 1;
            done.honest_blocked += u64::from(login(&target, person, cookie).await?.status != 200);
        }
        let (account, from) = (rng.u32(..ACCOUNTS), rng.u32(..ADDRESSES));
        let body = json!({ "username": format!("account-{account}@example.com"), "password": "Winter2026!" });
        let from = format!("203.0.{}.{}", from / 256, from % 256);
        let said = answered(LOGIN.1, target.ask(LOGIN, (None, &from), None, &body).await?, &[200, 401, 429])?;
        done.tally(said.status, (pause * n).as_secs());
        // In steps, since each is a request.
        if n % STEP == STEP - 1 {
            target.advance(pause * STEP).await?;
            done.mark((pause * (n + 1)).as_secs());
        }
    }
    told(args, &done)
}

async fn login(target: &Target, person: u32, cookie: Option<&str>) -> Result<Answer> {
    let body = json!({ "username": format!("person-{person}@example.com"), "password": PASSWORD });
    let from = format!("198.51.100.{}", person % 250 + 1);
    answered(LOGIN.1, target.ask(LOGIN, (None, &from), cookie, &body).await?, &[200, 401, 429])
}
