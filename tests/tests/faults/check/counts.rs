//! Every fault is counted, once, under its name: what the limiter counted of a call against the ledger, and the circuit breaker against a
//! model of it.

use super::Seen;
use crate::caller::{Answer, Told};
use crate::fault::{Cut, Fault};
use crate::proxy::Did;
use std::time::Duration;

pub fn check(seen: &Seen<'_>) -> Vec<String> {
    let (counted, is_late) = (&seen.call.counted, seen.is_late());
    let mut wrong = Vec::new();
    let mut expect = |name: &str, counted: u64, least: usize, most: usize| {
        if counted < least as u64 || counted > most as u64 {
            wrong.push(format!("counted {counted} {name} of {least} to {most}"));
        }
    };
    let refused = seen.call.planned.cut == Some(Cut::Refused);
    let sent = seen.requests.len();
    // What goes nowhere is sent, too; and so is what nobody has read yet when its sender gives up.
    let unseen = if refused || is_late { 64 } else { 0 };
    expect("round trips", counted.round_trips, sent, sent + unseen);
    let throttled = seen.requests.iter().filter(|r| r.is_write() && r.fault.throttles()).count();
    expect("throttled", counted.throttled, if is_late { 0 } else { throttled }, throttled);
    let unavailable = usize::from(seen.call.told == Told::Unavailable);
    expect("unavailable", counted.unavailable, unavailable, unavailable);
    let any = |is_so: fn(&Answer) -> bool| {
        usize::from(matches!(&seen.call.told, Told::Answers(answers) if answers.iter().any(is_so)))
    };
    // Where one item denies the others may not have been asked: then they are told with what would have decided.
    let from_memory = any(|a| a.source == "cache" && a.in_the_way);
    expect("decided from memory", counted.from_memory, from_memory, any(|a| a.source == "cache"));
    let locally = any(|a| a.source == "local" && (a.allowed || a.in_the_way));
    expect("decided locally", counted.local, locally, any(|a| a.source == "local"));
    let denied = any(|a| a.source == "local" && a.in_the_way);
    expect("denied locally", counted.local_denied, denied, denied);
    let asked = counted.suspended == 0 && !(counted.from_memory > 0 && counted.round_trips == 0);
    let (least, most) = if asked { failures(seen, refused) } else { (0, 0) };
    expect("failures", counted.store_failures + counted.hot_keys + counted.contended, least, most);
    let degraded = counted.store_failures + counted.hot_keys + counted.suspended > 0;
    expect("degraded", counted.degraded, usize::from(degraded), usize::from(degraded));
    let hot: Vec<_> = seen.items.iter().filter(|part| part.takes.iter().any(|r| r.fault == Fault::HotKey)).collect();
    // The time of a call that ends while it is told to come back went to the hot key, unless others were in its way, too.
    let ended = hot.iter().filter(|part| part.takes.last().is_some_and(|r| r.fault.throttles())).count();
    let least = if is_late || counted.contended > 0 || seen.is_atomic() { 0 } else { ended };
    expect("hot keys", counted.hot_keys, least, hot.len());
    let kept = seen.items.iter().filter(|part| part.is_kept()).count();
    let given = |part: &&super::Part<'_>| part.gives.iter().any(|r| r.did == Did::Applied);
    let given = seen.items.iter().filter(given).count();
    // Refused means that others were in the way until the time was over, or that nothing was left to give back.
    let open = seen.items.iter().filter(|part| is_late && part.applied().0 > 0 || was_refused(part)).count();
    expect("refunds lost", counted.refunds_lost, kept.min(if is_late { 0 } else { kept }), kept + open);
    expect("refunds", counted.refunded, 0, given + open);
    expect("refunds and refunds lost", counted.refunded + counted.refunds_lost, kept.max(given), kept + given + open);
    wrong
}

fn was_refused(part: &super::Part<'_>) -> bool {
    part.gives.last().is_some_and(|r| r.did == Did::Refused)
}

/// How many parts of the decision have failed, at least and at most.
fn failures(seen: &Seen<'_>, refused: bool) -> (usize, usize) {
    let parts = if seen.is_atomic() { 1 } else { seen.items.len() };
    if refused {
        return (parts, parts);
    }
    let failed = seen.items.iter().filter(|part| part.has_failed()).count().min(parts);
    let contended = usize::try_from(seen.call.counted.contended).unwrap_or(parts);
    (failed, if seen.is_late() { parts } else { (failed + contended).min(parts) })
}

/// The circuit breaker as README has it: five outages in a row open it; it stays so for half a pause at least, which doubles with each
/// probe that fails; an answer closes it.
#[derive(Debug, Default)]
pub struct Breaker {
    run: u32,
    open: Option<Open>,
}

#[derive(Debug, Clone, Copy)]
struct Open {
    /// Not later than it opened, in nanoseconds of the wall clock.
    since: u64,
    pause: Duration,
}

const RUN: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(8);

/// What a call says of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Health {
    Answers,
    Gone,
}

impl Breaker {
    /// Follows a call; what it did that the breaker should not have let it do.
    pub fn follow(&mut self, seen: &Seen<'_>) -> Vec<String> {
        let (call, counted) = (seen.call, &seen.call.counted);
        let mut wrong = Vec::new();
        if counted.from_memory > 0 && counted.round_trips == 0 {
            return wrong;
        }
        let health = health(seen);
        let was_open = self.open;
        let rests = was_open.is_some_and(|open| {
            call.received < open.since + u64::try_from(open.pause.as_nanos() / 2).unwrap_or(u64::MAX)
        });
        let (mut opens, mut closes) = (0, 0);
        match (health, was_open) {
            (None, None) => wrong.push("the table was not asked, though the breaker is closed".to_owned()),
            (None, Some(_)) if counted.round_trips > 0 || counted.suspended != seen.items.len() as u64 => {
                wrong.push("the table was spared for a part of the decision only".to_owned());
            }
            (None, Some(_)) => {}
            (Some(_), Some(_)) if rests => wrong.push("the table was asked, though the breaker is open".to_owned()),
            (Some(Health::Gone), Some(open)) => {
                self.open = Some(Open { since: call.sent, pause: (open.pause * 2).min(LONGEST_PAUSE) });
            }
            (Some(Health::Answers), _) => (self.open, self.run, closes) = (None, 0, u64::from(was_open.is_some())),
            (Some(Health::Gone), None) => {
                self.run += 1;
                if self.run == RUN {
                    (self.open, opens) = (Some(Open { since: call.sent, pause: FIRST_PAUSE }), 1);
                }
            }
        }
        if (counted.breaker_opened, counted.breaker_closed) != (opens, closes) {
            wrong.push(format!("the breaker should have opened {opens} times and closed {closes} times"));
        }
        wrong
    }
}

/// What the call says of the table; `None` if it did not ask.
fn health(seen: &Seen<'_>) -> Option<Health> {
    let counted = &seen.call.counted;
    if counted.suspended > 0 {
        return None;
    }
    let parts = if seen.is_atomic() { 1 } else { seen.items.len() as u64 };
    let is_gone = counted.store_failures >= parts && counted.hot_keys + counted.contended == 0;
    Some(if is_gone { Health::Gone } else { Health::Answers })
}
