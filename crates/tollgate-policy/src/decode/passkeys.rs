//! `[mfa.passkeys]`: domain and origins of passkeys.
//!
//! A browser refuses what does not fit here with a message that no server sees, so all of it is said where the file is checked.

use super::fields::{self, Fields, Node};
use super::keys;
use super::lock::RangedDuration;
use crate::mfa::{PasskeyRules, UserVerification};
use crate::report::Report;
use std::time::Duration;
use url::{Host, Url};

const RP_ID_EXAMPLE: &str = "\"example.com\"";
const ORIGINS_EXAMPLE: &str = "[\"https://login.example.com\"]";
/// The only domain whose pages are secure contexts without TLS.
const LOCAL: &str = "localhost";

/// What is the case where the policy does not say: as long as WebAuthn's own default.
const TIMEOUT: Duration = Duration::from_secs(300);
const TIMEOUTS: RangedDuration = RangedDuration {
    what: "timeout",
    least: PasskeyRules::SHORTEST_TIMEOUT,
    most: PasskeyRules::LONGEST_TIMEOUT,
    example: "\"5min\"",
};
const VERIFICATIONS: [(&str, UserVerification); 2] =
    [("required", UserVerification::Required), ("preferred", UserVerification::Preferred)];

/// `Some(None)` if there is no `[mfa.passkeys]`, `None` if it has a mistake.
#[allow(clippy::option_option)]
pub(super) fn decode(report: &mut Report<'_>, node: Option<Node<'_>>) -> Option<Option<PasskeyRules>> {
    let Some(node) = node else { return Some(None) };
    let fields = Fields::open(report, node, "[mfa.passkeys]", &keys::PASSKEYS)?;
    let help = format!(
        "say which domain they are made for, like `rp_id = {RP_ID_EXAMPLE}`; another one later makes them useless"
    );
    let rp_id = fields.required(report, "rp_id", &help).and_then(|node| rp_id(report, node));
    let help = format!("say whose pages may use them: `origins = {ORIGINS_EXAMPLE}`");
    let origins = fields.required(report, "origins", &help).and_then(|node| origins(report, node, rp_id));
    let user_verification = match fields.get("user_verification") {
        Some(node) => fields::word(report, node, "user_verification", &VERIFICATIONS),
        None => Some(UserVerification::Required),
    };
    let timeout = match fields.get("timeout") {
        Some(node) => TIMEOUTS.read(report, node),
        None => Some(TIMEOUT),
    };
    Some(Some(PasskeyRules {
        rp_id: rp_id?.to_owned(),
        origins: origins?,
        user_verification: user_verification?,
        timeout: timeout?,
    }))
}

/// A domain (WebAuthn section 5.1.3 takes no address), as browsers write it.
fn rp_id<'a>(report: &mut Report<'_>, node: Node<'a>) -> Option<&'a str> {
    let text = fields::text(report, node, "rp_id", RP_ID_EXAMPLE)?;
    let (why, help) = match Host::parse(text) {
        Ok(Host::Domain(domain)) if domain == text => return Some(text),
        Ok(Host::Domain(domain)) => ("is not how browsers write it", format!("write {domain:?}")),
        Ok(Host::Ipv4(_) | Host::Ipv6(_)) => {
            ("is an address, which browsers refuse", "take a domain; on your own machine \"localhost\"".to_owned())
        }
        Err(_) => ("is no domain", format!("write it like {RP_ID_EXAMPLE}, without scheme and port")),
    };
    report.error(&node.span(), format!("rp_id {text:?} {why}"), help);
    None
}

fn origins(report: &mut Report<'_>, node: Node<'_>, rp_id: Option<&str>) -> Option<Vec<String>> {
    let list = fields::list(report, node, "origins", ORIGINS_EXAMPLE)?;
    if !(1..=PasskeyRules::MOST_ORIGINS).contains(&list.len()) {
        let message = format!("origins must be 1 to {}, not {}", PasskeyRules::MOST_ORIGINS, list.len());
        report.error(&node.span(), message, format!("write them like {ORIGINS_EXAMPLE}"));
        return None;
    }
    let read: Vec<_> = list.iter().map(|node| origin(report, node, rp_id)).collect();
    read.into_iter().collect()
}

fn origin(report: &mut Report<'_>, node: Node<'_>, rp_id: Option<&str>) -> Option<String> {
    let text = fields::text(report, node, "origins", "\"https://login.example.com\"")?;
    let parsed = Url::parse(text).ok();
    let written = parsed.as_ref().map(|url| url.origin().ascii_serialization());
    let domain = parsed.as_ref().and_then(Url::domain);
    let is_below = |domain: &str, parent: &str| {
        domain == parent || domain.strip_suffix(parent).is_some_and(|rest| rest.ends_with('.'))
    };
    let (why, help) = match (parsed.as_ref().map(Url::scheme), domain) {
        (Some("https" | "http"), None) => {
            ("is of an address, which browsers give no passkeys to".to_owned(), "take its domain".to_owned())
        }
        (Some("http"), Some(domain)) if !is_below(domain, LOCAL) => (
            "is no secure context, so that browsers give it no passkeys".to_owned(),
            format!("write \"https://{domain}\""),
        ),
        (Some("https" | "http"), Some(domain)) => match (written, rp_id) {
            (Some(written), _) if written != text => {
                ("is not how browsers write it".to_owned(), format!("write {written:?}"))
            }
            (_, Some(rp_id)) if !is_below(domain, rp_id) => (
                format!("is not of {rp_id:?} or below it"),
                "passkeys are for one domain: take `rp_id` of it".to_owned(),
            ),
            _ => return Some(text.to_owned()),
        },
        _ => ("is no origin of a page".to_owned(), "write it like \"https://login.example.com\"".to_owned()),
    };
    report.error(&node.span(), format!("origin {text:?} {why}"), help);
    None
}
