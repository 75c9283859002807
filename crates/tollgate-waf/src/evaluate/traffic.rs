//! Requests in time: what rate-based rules have counted, and what becomes of a request.
//!
//! WAF does not count exactly (Developer Guide, "Rate-based rule caveats"): it looks back at the evaluation window from time to time,
//! "usually" less than 30 seconds late, sometimes minutes, gives recent requests more weight, and by that limits near the limit. So a
//! request over the limit is [`Caught::Surely`] only where the window has been over it for all of these 30 seconds, and
//! [`Caught::Perhaps`] where it is or was within them. Weights and minutes are not modelled: nobody says what they are.

use super::address::{self, Told};
use super::{Request, Rules, Truth};
use serde_json::Value;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// How late WAF notices, usually at most (Developer Guide, "Rate-based rule caveats").
const USUAL_DELAY: Duration = Duration::from_secs(30);

/// The window where a rule names none (API Reference, `RateBasedStatement`).
const USUAL_WINDOW: u64 = 300;

/// Whether a rule catches a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Caught {
    /// It does not.
    No,
    /// It depends on when WAF looks, or on what only WAF knows.
    Perhaps,
    /// It does, unless WAF is later than usual.
    Surely,
}

/// What a rate-based rule has counted for a request's key.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counted {
    /// The address that is counted by.
    pub key: String,
    /// Requests of it in the window, this one among them.
    pub in_window: u64,
    /// The limit.
    pub limit: u64,
}

/// What a rule says of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleOutcome {
    /// Its name.
    pub rule: String,
    /// Whether it looks at such a request; of a rate-based rule, whether it counts it.
    pub looks_at: Truth,
    /// What it has counted; `None` if it counts nothing, or not this request.
    pub counted: Option<Counted>,
    /// Whether it catches it.
    pub caught: Caught,
    /// What it does with what it catches: `Allow`, `Block`, `Count`, `Captcha`, `Challenge`; of a rule group, `Group`.
    pub action: String,
}

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Decided {
    /// It passes.
    Passes,
    /// It is stopped, or has to solve something first.
    Stopped,
    /// It depends on what only WAF knows.
    Unknown,
}

/// What all rules say.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outcome {
    /// The rules that were asked, in order: none after one that surely ends it.
    pub rules: Vec<RuleOutcome>,
    /// What becomes of the request.
    pub decided: Decided,
}

/// Rules, and what they have counted.
#[derive(Debug, Clone)]
pub struct Traffic {
    rules: Rules,
    /// By rule and key.
    seen: BTreeMap<(usize, String), Window>,
}

impl Traffic {
    /// Rules that have counted nothing yet.
    #[must_use]
    pub fn new(rules: Rules) -> Self {
        Self { rules, seen: BTreeMap::new() }
    }

    /// Takes a request at an instant, told from any beginning; never earlier than the one before.
    pub fn take(&mut self, request: &Request, at: Duration) -> Outcome {
        let mut asked = Vec::new();
        let mut decided = None;
        let mut is_certain = true;
        for place in 0..self.rules.rules.len() {
            let outcome = self.ask(place, request, at);
            let ends = matches!(outcome.action.as_str(), "Allow" | "Block" | "Captcha" | "Challenge" | "Group");
            let caught = outcome.caught;
            let stops = if outcome.action == "Allow" { Decided::Passes } else { Decided::Stopped };
            let is_group = outcome.action == "Group";
            asked.push(outcome);
            match caught {
                Caught::Surely if ends && !is_group => {
                    decided = Some(stops);
                    break;
                }
                Caught::No => {}
                _ => is_certain &= !ends,
            }
        }
        let last = decided.unwrap_or(if self.rules.default_blocks { Decided::Stopped } else { Decided::Passes });
        Outcome { rules: asked, decided: if is_certain { last } else { Decided::Unknown } }
    }

    fn ask(&mut self, place: usize, request: &Request, at: Duration) -> RuleOutcome {
        let Some(rule) = self.rules.rules.get(place).cloned() else { return RuleOutcome::nothing() };
        let looks_at = self.rules.looks_at(&rule, request);
        let outcome = RuleOutcome {
            rule: rule["Name"].as_str().unwrap_or_default().to_owned(),
            looks_at,
            counted: None,
            caught: match looks_at {
                Truth::No => Caught::No,
                Truth::Unknown => Caught::Perhaps,
                Truth::Yes => Caught::Surely,
            },
            action: action(&rule).to_owned(),
        };
        let rate = &rule["Statement"]["RateBasedStatement"];
        if !rate.is_object() || looks_at != Truth::Yes {
            return outcome;
        }
        let Some(key) = key(rate, request) else {
            // A header without an address is taken for one over the limit; whose connection it is, is not known.
            let caught = if rate["AggregateKeyType"] == "FORWARDED_IP" { Caught::Surely } else { Caught::Perhaps };
            return RuleOutcome { caught, ..outcome };
        };
        let (counted, caught) = self.count(place, key, rate, at);
        RuleOutcome { counted: Some(counted), caught, ..outcome }
    }

    fn count(&mut self, place: usize, key: String, rate: &Value, at: Duration) -> (Counted, Caught) {
        let length = Duration::from_secs(rate["EvaluationWindowSec"].as_u64().unwrap_or(USUAL_WINDOW));
        let limit = rate["Limit"].as_u64().unwrap_or(u64::MAX);
        let window = self.seen.entry((place, key.clone())).or_default();
        let caught = window.take(at, length, usize::try_from(limit).unwrap_or(usize::MAX));
        let in_window = u64::try_from(window.seen.len()).unwrap_or(u64::MAX);
        (Counted { key, in_window, limit }, caught)
    }
}

/// The requests of one key in the window that ends with the last of them, and when it was over the limit.
#[derive(Debug, Clone, Default)]
struct Window {
    seen: VecDeque<Duration>,
    /// Since when it has been over the limit, and until when; `None`: it still is.
    over: Option<(Duration, Option<Duration>)>,
}

impl Window {
    fn take(&mut self, at: Duration, length: Duration, limit: usize) -> Caught {
        // It is over the limit until so many have fallen out that those that are left are the limit.
        let last_over = self.seen.len().checked_sub(limit + 1).and_then(|excess| self.seen.get(excess));
        let until = last_over.map(|last| *last + length);
        while self.seen.front().is_some_and(|first| *first + length <= at) {
            self.seen.pop_front();
        }
        self.seen.push_back(at);
        let is_over = self.seen.len() > limit;
        self.over = match (self.over, until) {
            // What falls out while others come at the same instant is no break.
            (Some((since, None)), Some(until)) if until < at || !is_over => Some((since, Some(until))),
            (over, _) => over,
        };
        self.over = match self.over {
            Some((since, Some(until))) if is_over && until == at => Some((since, None)),
            Some((_, Some(_))) | None if is_over => Some((at, None)),
            over => over,
        };
        match self.over {
            Some((since, None)) if since + USUAL_DELAY <= at => Caught::Surely,
            Some((_, None)) => Caught::Perhaps,
            Some((_, Some(until))) if until + USUAL_DELAY > at => Caught::Perhaps,
            _ => Caught::No,
        }
    }
}

/// What a rule does with what it catches. A group's rules have actions of their own, unless it only counts.
fn action(rule: &Value) -> &str {
    let given = rule["Action"].as_object().into_iter().flatten().find(|(_, of)| !of.is_null());
    match given {
        Some((kind, _)) => kind,
        None if rule["OverrideAction"]["Count"].is_object() => "Count",
        None => "Group",
    }
}

impl RuleOutcome {
    fn nothing() -> Self {
        let (rule, action) = (String::new(), String::new());
        Self { rule, looks_at: Truth::No, counted: None, caught: Caught::No, action }
    }
}

/// Whether a rate-based rule finds what it counts the request by, or takes the lack of it for a match.
pub(super) fn keyed(rate: &Value, request: &Request) -> Truth {
    match rate["AggregateKeyType"].as_str() {
        Some("IP" | "CONSTANT") => Truth::Yes,
        Some("FORWARDED_IP") => {
            let config = &rate["ForwardedIPConfig"];
            match address::told(request, config["HeaderName"].as_str().unwrap_or_default()) {
                Told::Absent => Truth::No,
                Told::Invalid => Truth::of(config["FallbackBehavior"] == "MATCH"),
                Told::Addresses(_) => Truth::Yes,
            }
        }
        _ => Truth::Unknown,
    }
}

/// What a rate-based rule counts the request by.
fn key(rate: &Value, request: &Request) -> Option<String> {
    match rate["AggregateKeyType"].as_str()? {
        "FORWARDED_IP" => match address::told(request, rate["ForwardedIPConfig"]["HeaderName"].as_str()?) {
            Told::Addresses(addresses) => addresses.first().map(ToString::to_string),
            _ => None,
        },
        "CONSTANT" => Some(String::new()),
        _ => request.source.map(|source| source.to_string()),
    }
}
