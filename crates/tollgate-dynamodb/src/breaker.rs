//! The circuit breaker: where the table keeps failing nobody waits for it any longer, and now and then one decision asks whether it is
//! back.
//!
//! Invariants: only a run of outages opens it; while it is open no decision goes to the table but one probe at a time, and a probe
//! that is answered closes it. Nothing runs in the background: a process that was frozen goes on where it was.

use crate::error::{Error, Result};
use crate::meter::{Event, Meter};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Outages in a row that open it.
const RUN: u32 = 5;
/// The first pause, and the longest: each probe that fails doubles it.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(8);

/// Whether decisions go to the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BreakerState {
    /// They do.
    Closed,
    /// They do not.
    Open,
    /// One does, to find out.
    HalfOpen,
}

impl BreakerState {
    /// The name used in JSON and metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half_open",
        }
    }
}

/// The rule, by instants that are handed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Rule {
    Closed {
        /// Outages since the table last answered.
        run: u32,
    },
    Open {
        until: Instant,
        pause: Duration,
    },
    Probing {
        pause: Duration,
    },
}

/// How a decision goes to the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Way {
    Plain,
    Probe,
}

/// What became of a decision that went to the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Health {
    /// The table answered, whatever it said.
    Answers,
    /// It counts as gone.
    Gone,
}

impl Health {
    /// What the answer to a request says.
    pub(crate) fn of<T>(answer: &Result<T>) -> Self {
        if answer.as_ref().is_err_and(Error::is_outage) { Self::Gone } else { Self::Answers }
    }
}

impl Rule {
    /// How a decision may go to the table at `now`, if it may.
    fn admit(&mut self, now: Instant) -> Option<Way> {
        match *self {
            Self::Closed { .. } => Some(Way::Plain),
            Self::Open { until, pause } if now >= until => {
                *self = Self::Probing { pause };
                Some(Way::Probe)
            }
            Self::Open { .. } | Self::Probing { .. } => None,
        }
    }

    /// What became of a decision; whether that opens or closes it. `jitter` is from 0 to 1. Those that were under way when it
    /// opened say nothing that the probe will not say better.
    fn report(&mut self, way: Way, health: Health, now: Instant, jitter: f64) -> Option<BreakerState> {
        let open = |pause: Duration| Self::Open { until: now + pause.mul_f64(0.5 + jitter / 2.0), pause };
        let (next, change) = match (*self, way, health) {
            (Self::Closed { .. }, Way::Plain, Health::Answers) => (Self::Closed { run: 0 }, None),
            (Self::Closed { run }, Way::Plain, Health::Gone) if run + 1 < RUN => (Self::Closed { run: run + 1 }, None),
            (Self::Closed { .. }, Way::Plain, Health::Gone) => (open(FIRST_PAUSE), Some(BreakerState::Open)),
            (Self::Probing { .. }, Way::Probe, Health::Answers) => {
                (Self::Closed { run: 0 }, Some(BreakerState::Closed))
            }
            (Self::Probing { pause }, Way::Probe, Health::Gone) => (open((pause * 2).min(LONGEST_PAUSE)), None),
            (same, _, _) => (same, None),
        };
        *self = next;
        change
    }

    /// A decision was dropped before anything became of it: if it was the probe, the next one is.
    fn abandon(&mut self, way: Way, now: Instant) {
        if let (Self::Probing { pause }, Way::Probe) = (*self, way) {
            *self = Self::Open { until: now, pause };
        }
    }

    fn state(&self) -> BreakerState {
        match self {
            Self::Closed { .. } => BreakerState::Closed,
            Self::Open { .. } => BreakerState::Open,
            Self::Probing { .. } => BreakerState::HalfOpen,
        }
    }
}

/// One a limiter.
#[derive(Debug)]
pub(crate) struct Breaker(Mutex<Rule>);

impl Breaker {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(Rule::Closed { run: 0 }))
    }

    /// Leave to go to the table; `None` while it is to be spared.
    pub(crate) fn admit(&self) -> Option<Leave<'_>> {
        let way = self.rule().admit(Instant::now())?;
        Some(Leave { breaker: self, way: Some(way) })
    }

    pub(crate) fn state(&self) -> BreakerState {
        self.rule().state()
    }

    /// What became of a request that went for several decisions, each of which was admitted by itself.
    pub(crate) fn hear(&self, health: Health, meter: &dyn Meter) {
        Leave { breaker: self, way: Some(Way::Plain) }.report(health, meter);
    }

    fn rule(&self) -> MutexGuard<'_, Rule> {
        // Nothing that holds it can panic half way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Leave to go to the table. Dropped without a report, by a caller who hung up, it says nothing.
#[derive(Debug)]
pub(crate) struct Leave<'b> {
    breaker: &'b Breaker,
    way: Option<Way>,
}

impl Leave<'_> {
    pub(crate) fn report(mut self, health: Health, meter: &dyn Meter) {
        let Some(way) = self.way.take() else { return };
        let change = self.breaker.rule().report(way, health, Instant::now(), fastrand::f64());
        let Some(state) = change else { return };
        meter.record(Event::Breaker(state));
        match state {
            BreakerState::Closed => tracing::info!("the table answers again"),
            _ => tracing::warn!("the table has given no answer several times in a row; decisions go on without it"),
        }
    }
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        if let Some(way) = self.way.take() {
            self.breaker.rule().abandon(way, Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Everything that can be told of a breaker, and of the decisions that are under way.
    #[derive(Debug, Clone, PartialEq, Eq, Hash)]
    struct World {
        rule: Rule,
        now: Instant,
        plain: u32,
        probes: u32,
        /// Outages since the last answer, as they were reported while it was closed.
        run: u32,
    }

    /// Most decisions under way that came before it opened.
    const PLAIN: u32 = 6;

    impl World {
        /// All that can happen next.
        fn next(&self) -> Vec<Self> {
            let mut all = Vec::new();
            for ahead in [Duration::ZERO, FIRST_PAUSE / 2, LONGEST_PAUSE] {
                all.push(Self { now: self.now + ahead, ..self.clone() });
            }
            let mut asked = self.clone();
            match asked.rule.admit(self.now) {
                Some(Way::Plain) if asked.plain < PLAIN => {
                    asked.plain += 1;
                    all.push(asked);
                }
                Some(Way::Probe) => {
                    asked.probes += 1;
                    all.push(asked);
                }
                _ => {}
            }
            for way in [Way::Plain, Way::Probe] {
                if (if way == Way::Plain { self.plain } else { self.probes }) == 0 {
                    continue;
                }
                for health in [Some(Health::Answers), Some(Health::Gone), None] {
                    let mut ended = self.clone();
                    let under_way = if way == Way::Plain { &mut ended.plain } else { &mut ended.probes };
                    *under_way -= 1;
                    match health {
                        Some(health) => {
                            let was_closed = matches!(self.rule, Rule::Closed { .. });
                            ended.run = match health {
                                Health::Answers if was_closed || way == Way::Probe => 0,
                                Health::Gone if was_closed => self.run + 1,
                                _ => self.run,
                            };
                            let change = ended.rule.report(way, health, self.now, 1.0);
                            let opens = change == Some(BreakerState::Open);
                            assert_eq!(opens, was_closed && ended.run >= RUN, "only a run of outages opens: {self:?}");
                            if opens {
                                ended.run = 0;
                            }
                            assert!(
                                change != Some(BreakerState::Closed) || (way, health) == (Way::Probe, Health::Answers)
                            );
                        }
                        None => ended.rule.abandon(way, self.now),
                    }
                    all.push(ended);
                }
            }
            all
        }
    }

    #[test]
    fn whatever_happens_one_probe_at_a_time_goes_and_one_will_go() {
        let start = Instant::now();
        let first = World { rule: Rule::Closed { run: 0 }, now: start, plain: 0, probes: 0, run: 0 };
        let (mut seen, mut left) = (HashSet::from([first.clone()]), vec![first]);
        let mut opened = 0;
        while let Some(world) = left.pop() {
            assert!(world.probes <= 1, "{world:?}");
            assert_eq!(world.probes == 1, world.rule.state() == BreakerState::HalfOpen, "{world:?}");
            if let Rule::Open { until, pause } = world.rule {
                opened += 1;
                assert!(FIRST_PAUSE <= pause && pause <= LONGEST_PAUSE && until <= world.now + LONGEST_PAUSE);
                let mut early = world.rule;
                assert!(world.now >= until || early.admit(world.now).is_none(), "not before its time: {world:?}");
                let mut later = world.rule;
                assert_eq!(later.admit(world.now + LONGEST_PAUSE), Some(Way::Probe), "it is not forgotten: {world:?}");
            }
            // Time is told from the beginning, and ends.
            let in_time = |world: &World| world.now <= start + LONGEST_PAUSE * 4;
            for next in world.next().into_iter().filter(in_time) {
                if seen.insert(next.clone()) {
                    left.push(next);
                }
            }
        }
        assert!(seen.len() > 10_000 && opened > 1_000, "{} worlds, {opened} of them open", seen.len());
    }

    #[test]
    fn a_pause_is_half_of_it_to_all_of_it() {
        for (jitter, share) in [(0.0, 0.5), (1.0, 1.0)] {
            let (mut rule, now) = (Rule::Closed { run: RUN - 1 }, Instant::now());
            assert_eq!(rule.report(Way::Plain, Health::Gone, now, jitter), Some(BreakerState::Open));
            assert_eq!(rule, Rule::Open { until: now + FIRST_PAUSE.mul_f64(share), pause: FIRST_PAUSE });
        }
    }
}
