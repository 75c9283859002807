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
    let proof = proof(report, &fields, purposes.as_deref());
    let message = fields.get("message").map(|node| message(report, node));
    let subject = fields.get("subject").map(|node| SUBJECT.read(report, node));
    let domain = fields.get("domain").map(|node| domain(report, node));
    let captcha = fields.get("captcha").map(|node| fields::boolean(report, node, "captcha", "true"));
    let (budget, window) = budget.unwrap_or(Some(BUDGET))?;
    let countries = countries.unwrap_or_else(|| Some(Vec::new()))?;
    let pumping = pumping::decode(report, fields.get("pumping"), &countries, limits)?;
    let Proof { acr, factors, sign_in } = proof?;
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
        acr,
        factors,
        sign_in,
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
    let channels = fields::words(report, node, "channels", "channel", &Channel::ALL.map(|c| (c.as_str(), c)))?;
    if channels.is_empty() {
        report.error(&node.span(), "`channels` has no channel", format!("write it like {CHANNELS_EXAMPLE}"));
        return None;
    }
    Some(channels)
}

/// What right codes prove: the class, the purposes that are second factors, and those by which people sign in.
fn proof(report: &mut Report<'_>, fields: &Fields<'_>, purposes: Option<&[Purpose]>) -> Option<Proof> {
    let acr = fields.get("acr").map(|node| step_up::class(report, node));
    let some = |report: &mut Report<'_>, key: &str| {
        let Some(node) = fields.get(key) else { return Some(Vec::new()) };
        let known: Vec<_> = purposes?.iter().enumerate().map(|(n, purpose)| (purpose.as_str(), n)).collect();
        let found = fields::words(report, node, key, "purpose", &known)?;
        Some(found.into_iter().filter_map(|n| purposes?.get(n).cloned()).collect::<Vec<_>>())
    };
    let (factors, sign_in) = (some(report, "factors"), some(report, "sign_in"));
    let (factors, sign_in) = (factors?, sign_in?);
    match (fields.get("acr"), fields.get("factors")) {
        (Some(node), None) => {
            let help = "say which purposes are second factors: `factors = [\"payout\"]`; or remove `acr`";
            report.error(&node.span(), "`acr` is proved by no code without `factors`", help);
        }
        (None, Some(node)) => {
            report.error(
                &node.span(),
                "`factors` prove nothing without `acr`",
                "write the class, like `acr = \"mfa\"`",
            );
        }
        _ => {}
    }
    if let (Some(both), Some(node)) = (factors.iter().find(|purpose| sign_in.contains(purpose)), fields.get("sign_in"))
    {
        let message = format!("purpose `{both}` is one to sign in by and a second factor as well");
        report.error(&node.span(), message, "two of its codes would be two factors: write it in one of the lists");
    }
    Some(Proof { acr: acr.map_or(Some(None), |acr| acr.map(Some))?, factors, sign_in })
}

struct Proof {
    acr: Option<String>,
    factors: Vec<Purpose>,
    sign_in: Vec<Purpose>,
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
