//! `[otp]`: purposes, digits, lifetime, attempts, budget and cooldown of one-time codes; `pumping` is a room of its own.

use super::fields::{self, Fields, Node};
use super::identity;
use super::keys;
use super::limits::LimitEntry;
use super::lock::{Escalation, RangedDuration};
use super::pumping;
use super::step_up;
use super::texts::Texts;
use crate::canonical::Region;
use crate::message::{Messages, OF_CODE, OF_SUBJECT, Placeholder};
use crate::otp::{Channel, OtpRules, Purpose};
use crate::rate;
use crate::report::Report;
use std::ops::RangeInclusive;
use std::time::Duration;

const PURPOSES_EXAMPLE: &str = "[\"login\", \"change-phone\"]";
const CHANNELS_EXAMPLE: &str = "[\"sms\", \"email\"]";
const COUNTRIES_EXAMPLE: &str = "[\"RO\", \"VN\"]";
const DOMAIN_EXAMPLE: &str = "\"example.com\"";
const BUDGET_EXAMPLE: &str = "\"10/h\"";

/// What is the case where the policy does not say.
const DIGITS: u8 = 6;
const TTL: Duration = Duration::from_secs(300);
const ATTEMPTS: u32 = 5;
const BUDGET: (u32, Duration) = (10, Duration::from_secs(3600));
const FIRST_COOLDOWN: Duration = Duration::from_secs(60);

const TTLS: RangedDuration =
    RangedDuration { what: "ttl", least: OtpRules::SHORTEST_TTL, most: OtpRules::LONGEST_TTL, example: "\"5min\"" };

const MESSAGE: Texts = Texts { what: "message", known: OF_CODE, example: "{code} is your code for {purpose}." };
const SUBJECT: Texts = Texts { what: "subject", known: OF_SUBJECT, example: "Your code for {purpose}" };

/// Cooldowns are twice as long each time, an hour at most, and a step shorter for ten minutes without one.
const COOLDOWN: Escalation = Escalation {
    what: "cooldown",
    keys: &keys::COOLDOWN,
    of_first: "say how long after a code the next one can be sent: `first = \"60s\"`",
    forget: Duration::from_secs(600),
};

/// `Some(None)` if there is no `[otp]`, `None` if it has a mistake.
#[allow(clippy::option_option)]
pub(super) fn decode(
    report: &mut Report<'_>,
    node: Option<Node<'_>>,
    limits: &[LimitEntry],
) -> Option<Option<OtpRules>> {
    let Some(node) = node else { return Some(None) };
    let fields = Fields::open(report, node, "[otp]", &keys::OTP)?;
    let purposes = purposes(report, &fields);
    let channels = fields.get("channels").map(|node| channels(report, node));
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
    let message = fields.get("message").map(|node| message(report, node));
    let subject = fields.get("subject").map(|node| SUBJECT.read(report, node));
    let domain = fields.get("domain").map(|node| domain(report, node));
    let captcha = fields.get("captcha").map(|node| fields::boolean(report, node, "captcha", "true"));
    let (budget, window) = budget.unwrap_or(Some(BUDGET))?;
    let countries = countries.unwrap_or_else(|| Some(Vec::new()))?;
    let pumping = pumping::decode(report, fields.get("pumping"), &countries, limits)?;
    Some(Some(OtpRules {
        purposes: purposes?,
        channels: channels.unwrap_or_else(|| Some(vec![Channel::Sms]))?,
        countries,
        region: region.map_or(Some(None), |region| region.map(Some))?,
        digits: digits.unwrap_or(Some(DIGITS))?,
        ttl: ttl.unwrap_or(Some(TTL))?,
        attempts: attempts.unwrap_or(Some(ATTEMPTS))?,
        budget,
        window,
        cooldown: cooldown?,
        acr: acr.map_or(Some(None), |acr| acr.map(Some))?,
        message: message.map_or(Some(None), |message| message.map(Some))?,
        subject: subject.map_or(Some(None), |subject| subject.map(Some))?,
        domain: domain.map_or(Some(None), |domain| domain.map(Some))?,
        captcha: captcha.unwrap_or(Some(false))?,
        pumping,
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

fn channels(report: &mut Report<'_>, node: Node<'_>) -> Option<Vec<Channel>> {
    let list = fields::list(report, node, "channels", CHANNELS_EXAMPLE)?;
    let words = Channel::ALL.map(|channel| (channel.as_str(), channel));
    let mut channels = Vec::new();
    let mut complete = true;
    for node in list {
        match fields::word(report, node, "a channel", &words) {
            Some(channel) if channels.contains(&channel) => {
                report.error(&node.span(), format!("channel `{channel}` is given twice"), "write each channel once");
                complete = false;
            }
            Some(channel) => channels.push(channel),
            None => complete = false,
        }
    }
    if list.is_empty() {
        report.error(&node.span(), "`channels` has no channel", format!("write it like {CHANNELS_EXAMPLE}"));
        return None;
    }
    complete.then_some(channels)
}

/// A text without its code would be a message that says nothing.
fn message(report: &mut Report<'_>, node: Node<'_>) -> Option<Messages> {
    let messages = MESSAGE.read(report, node)?;
    let Some((without, _)) = messages.iter().find(|(_, message)| !message.has(Placeholder::Code)) else {
        return Some(messages);
    };
    let which = if without == Messages::ANY_LANGUAGE { String::new() } else { format!(" in {without:?}") };
    report.error(&node.span(), format!("the message{which} has no code"), "write {code} where the code goes");
    None
}

/// A host, as browsers compare it with that of the page.
fn domain(report: &mut Report<'_>, node: Node<'_>) -> Option<String> {
    let host = fields::text(report, node, "domain", DOMAIN_EXAMPLE)?;
    let label = |label: &str| {
        let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        (1..=63).contains(&label.len()) && label.bytes().all(inner) && !label.starts_with('-') && !label.ends_with('-')
    };
    if host.len() > 253 || !host.contains('.') || !host.split('.').all(label) {
        let message = format!("domain {host:?} is no host in small letters");
        report.error(&node.span(), message, format!("write it like {DOMAIN_EXAMPLE}; other alphabets as xn--..."));
        return None;
    }
    Some(host.to_owned())
}

/// Two letters that have a numbering plan.
fn country<'a>(report: &mut Report<'_>, node: Node<'a>, what: &str) -> Option<&'a str> {
    let code = fields::text(report, node, what, "\"RO\"")?;
    identity::region(report, node, code).map(|_| code)
}

fn countries(report: &mut Report<'_>, node: Node<'_>) -> Option<Vec<String>> {
    let list = fields::list(report, node, "countries", COUNTRIES_EXAMPLE)?;
    let mut countries: Vec<String> = Vec::new();
    let mut complete = true;
    for node in list {
        match country(report, node, "a country") {
            Some(code) if countries.iter().any(|known| known == code) => {
                report.error(&node.span(), format!("country {code} is given twice"), "write each country once");
                complete = false;
            }
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
