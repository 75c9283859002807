//! `[otp]`: purposes, digits, lifetime, attempts, budget and cooldown of one-time codes.

use super::fields::{self, Fields, Node};
use super::identity;
use super::keys;
use super::lock::{Escalation, RangedDuration};
use super::step_up;
use crate::canonical::Region;
use crate::otp::{OtpRules, Purpose};
use crate::rate;
use crate::report::Report;
use std::ops::RangeInclusive;
use std::time::Duration;

const PURPOSES_EXAMPLE: &str = "[\"login\", \"change-phone\"]";
const COUNTRIES_EXAMPLE: &str = "[\"RO\", \"VN\"]";
const BUDGET_EXAMPLE: &str = "\"10/h\"";

/// What is the case where the policy does not say.
const DIGITS: u8 = 6;
const TTL: Duration = Duration::from_secs(300);
const ATTEMPTS: u32 = 5;
const BUDGET: (u32, Duration) = (10, Duration::from_secs(3600));
const FIRST_COOLDOWN: Duration = Duration::from_secs(60);

const TTLS: RangedDuration =
    RangedDuration { what: "ttl", least: OtpRules::SHORTEST_TTL, most: OtpRules::LONGEST_TTL, example: "\"5min\"" };

/// Cooldowns are twice as long each time, an hour at most, and a step shorter for ten minutes without one.
const COOLDOWN: Escalation = Escalation {
    what: "cooldown",
    keys: &keys::COOLDOWN,
    of_first: "say how long after a code the next one can be sent: `first = \"60s\"`",
    forget: Duration::from_secs(600),
};

/// `Some(None)` if there is no `[otp]`, `None` if it has a mistake.
#[allow(clippy::option_option)]
pub(super) fn decode(report: &mut Report<'_>, node: Option<Node<'_>>) -> Option<Option<OtpRules>> {
    let Some(node) = node else { return Some(None) };
    let fields = Fields::open(report, node, "[otp]", &keys::OTP)?;
    let purposes = purposes(report, &fields);
    let countries = fields.get("countries").map(|node| countries(report, node));
    let region = fields.get("region").map(|node| country(report, node, "region").and_then(Region::parse));
    let digits = number(report, &fields, "digits", OtpRules::DIGITS, "6");
    let ttl = fields.get("ttl").map(|node| TTLS.read(report, node));
    let attempts = number(report, &fields, "attempts", OtpRules::ATTEMPTS, "5");
    let budget = fields.get("budget").map(|node| budget(report, node));
    let cooldown = fields.get("cooldown").map(|node| COOLDOWN.read(report, node));
    let cooldown = match cooldown {
        Some(rule) => rule,
        None => COOLDOWN.usual(FIRST_COOLDOWN),
    };
    let acr = fields.get("acr").map(|node| step_up::class(report, node));
    let (budget, window) = budget.unwrap_or(Some(BUDGET))?;
    Some(Some(OtpRules {
        purposes: purposes?,
        countries: countries.unwrap_or_else(|| Some(Vec::new()))?,
        region: region.map_or(Some(None), |region| region.map(Some))?,
        digits: digits.unwrap_or(Some(DIGITS))?,
        ttl: ttl.unwrap_or(Some(TTL))?,
        attempts: attempts.unwrap_or(Some(ATTEMPTS))?,
        budget,
        window,
        cooldown: cooldown?,
        acr: acr.map_or(Some(None), |acr| acr.map(Some))?,
    }))
}

fn purposes(report: &mut Report<'_>, fields: &Fields<'_>) -> Option<Vec<Purpose>> {
    let help = format!("say what codes are for: `purposes = {PURPOSES_EXAMPLE}`");
    let node = fields.required(report, "purposes", &help)?;
    let list = fields::list(report, node, "purposes", PURPOSES_EXAMPLE)?;
    let mut purposes: Vec<Purpose> = Vec::new();
    let mut complete = true;
    for node in list {
        let name = fields::text(report, node, "a purpose", "\"login\"");
        let Some(name) = name.filter(|name| fields::name(report, &node.span(), "purpose", name)) else {
            complete = false;
            continue;
        };
        if purposes.iter().any(|earlier| earlier.as_str() == name) {
            report.error(&node.span(), format!("purpose `{name}` is given twice"), "write each purpose once");
            complete = false;
        }
        purposes.push(Purpose::new(name));
    }
    if list.is_empty() {
        report.error(&node.span(), "`purposes` has no purpose", format!("write it like {PURPOSES_EXAMPLE}"));
        return None;
    }
    complete.then_some(purposes)
}

/// Two letters that have a numbering plan.
fn country<'a>(report: &mut Report<'_>, node: Node<'a>, what: &str) -> Option<&'a str> {
    let code = fields::text(report, node, what, "\"RO\"")?;
    identity::region(report, node, code).map(|_| code)
}

fn countries(report: &mut Report<'_>, node: Node<'_>) -> Option<Vec<String>> {
    let list = fields::list(report, node, "countries", COUNTRIES_EXAMPLE)?;
    let mut countries = Vec::new();
    let mut complete = true;
    for node in list {
        match country(report, node, "a country") {
            Some(code) => countries.push(code.to_owned()),
            None => complete = false,
        }
    }
    complete.then_some(countries)
}

/// A whole number, if it is given.
#[allow(clippy::option_option)]
fn number<T: TryFrom<u64>>(
    report: &mut Report<'_>,
    fields: &Fields<'_>,
    key: &str,
    range: RangeInclusive<u64>,
    example: &str,
) -> Option<Option<T>> {
    let node = fields.get(key)?;
    Some(fields::integer(report, node, key, range, example).and_then(|n| T::try_from(n).ok()))
}

/// `"10/h"`: so many guesses in a window of that length.
fn budget(report: &mut Report<'_>, node: Node<'_>) -> Option<(u32, Duration)> {
    let text = fields::text(report, node, "budget", BUDGET_EXAMPLE)?;
    let rate = rate::parse(text).map_err(|problem| report.error(&node.span(), problem.message, problem.help)).ok()?;
    let window = Duration::from_nanos(rate.period_ns);
    let (windows, guesses) = (OtpRules::SHORTEST_WINDOW..=OtpRules::LONGEST_WINDOW, OtpRules::BUDGET);
    if !windows.contains(&window) || !guesses.contains(&rate.n) {
        let message = format!("budget must be 1 to 100 guesses in 1min to 30day, not {text:?}");
        report.error(&node.span(), message, format!("write it like {BUDGET_EXAMPLE}"));
        return None;
    }
    Some((u32::try_from(rate.n).ok()?, window))
}
