//! `[mfa]`: issuer, classes and age of second factors, how long a recovery waits; `tenants` is a room of its own.

use super::fields::{self, Fields, Node};
use super::keys;
use super::lock::RangedDuration;
use super::passkeys;
use super::step_up;
use super::tenants;
use crate::identity::Identity;
use crate::mfa::MfaRules;
use crate::report::{Report, Span};
use std::time::Duration;

const ISSUER_EXAMPLE: &str = "\"Example Ltd\"";

/// What is the case where the policy does not say.
const ACR: &str = "mfa";
const ENROL_ACR: &str = "mfa-enrol";
const MAX_AGE: Duration = Duration::from_secs(300);

const COOLDOWN: RangedDuration = RangedDuration {
    what: "cooldown",
    least: MfaRules::SHORTEST_COOLDOWN,
    most: MfaRules::LONGEST_COOLDOWN,
    example: "\"24h\"",
};

const RECOVERY_WAIT: RangedDuration = RangedDuration {
    what: "wait",
    least: MfaRules::SHORTEST_RECOVERY_WAIT,
    most: MfaRules::LONGEST_RECOVERY_WAIT,
    example: "\"24h\"",
};

const CANCEL_EXAMPLE: &str = "\"https://login.example.com/cancel#{token}\"";
const RETENTION: RangedDuration = RangedDuration {
    what: "audit_retention",
    least: MfaRules::SHORTEST_RETENTION,
    most: MfaRules::LONGEST_RETENTION,
    example: "\"400day\"",
};

/// `Some(None)` if there is no `[mfa]`, `None` if it has a mistake.
#[allow(clippy::option_option)]
pub(super) fn decode(report: &mut Report<'_>, node: Option<Node<'_>>, identity: &Identity) -> Option<Option<MfaRules>> {
    let Some(node) = node else { return Some(None) };
    let fields = Fields::open(report, node, "[mfa]", &keys::MFA)?;
    let help = format!("say what authenticator apps show: `issuer = {ISSUER_EXAMPLE}`");
    let issuer = fields.required(report, "issuer", &help).and_then(|node| issuer(report, node));
    let acr = match fields.get("acr") {
        Some(node) => step_up::class(report, node),
        None => Some(ACR.to_owned()),
    };
    let max_age = match fields.get("max_age") {
        Some(node) => step_up::AGE.read(report, node),
        None => Some(MAX_AGE),
    };
    let enrol_acr = match fields.get("enrol_acr") {
        Some(node) => step_up::class(report, node),
        None => Some(ENROL_ACR.to_owned()),
    };
    let first_factor = match fields.get("first_factor") {
        Some(node) => step_up::methods(report, node, "first_factor"),
        None => Some(vec![MfaRules::FIRST_FACTOR.to_owned()]),
    };
    let cooldown = match fields.get("cooldown") {
        Some(node) => COOLDOWN.read(report, node),
        None => Some(MfaRules::SHORTEST_COOLDOWN),
    };
    let cancel_url = match fields.get("cancel_url") {
        Some(node) => cancel_url(report, node).map(Some),
        None => Some(None),
    };
    let audit_retention = match fields.get("audit_retention") {
        Some(node) => RETENTION.read(report, node),
        None => Some(MfaRules::RETENTION),
    };
    let recovery_wait = recovery_wait(report, fields.get("recovery"));
    let passkeys = passkeys::decode(report, fields.get("passkeys"));
    let tenants = tenants::decode(report, fields.get("tenants"));
    has_lasting_accounts(report, &fields.span(), identity);
    let (acr, enrol_acr) = (acr?, enrol_acr?);
    if acr == enrol_acr {
        let message = "`enrol_acr` is the same as `acr`: what is good for enrolling only would be good for everything";
        let at = fields.get("enrol_acr").or(fields.get("acr")).map_or_else(|| fields.span(), |node| node.span());
        report.error(&at, message, format!("write another class, like {ENROL_ACR:?}"));
    }
    Some(Some(MfaRules {
        issuer: issuer?,
        acr,
        max_age: max_age?,
        enrol_acr,
        first_factor: first_factor?,
        cooldown: cooldown?,
        cancel_url: cancel_url?,
        audit_retention: audit_retention?,
        recovery_wait: recovery_wait?,
        passkeys: passkeys?,
        tenants: tenants?,
    }))
}

fn recovery_wait(report: &mut Report<'_>, node: Option<Node<'_>>) -> Option<Duration> {
    let Some(node) = node else { return Some(MfaRules::SHORTEST_RECOVERY_WAIT) };
    match Fields::open(report, node, "[mfa.recovery]", &keys::RECOVERY)?.get("wait") {
        Some(node) => RECOVERY_WAIT.read(report, node),
        None => Some(MfaRules::SHORTEST_RECOVERY_WAIT),
    }
}

/// Factors last for years, secrets do not: an account that is known by a hash would be without its factors once that rotates, and
/// whoever has its password could enrol his own.
fn has_lasting_accounts(report: &mut Report<'_>, at: &Span, identity: &Identity) {
    for dimension in ["user", "tenant"] {
        if identity.dimension(dimension).is_some_and(|known| known.personal) {
            let message =
                format!("[mfa] needs a `{dimension}` that is no personal value: factors outlive the secrets of these");
            report.error(at, message, format!("take an id that says nothing, like `{dimension} = \"claims.sub\"`"));
        }
    }
}

fn issuer(report: &mut Report<'_>, node: Node<'_>) -> Option<String> {
    let text = fields::text(report, node, "issuer", ISSUER_EXAMPLE)?;
    let is_fine = (1..=MfaRules::LONGEST_ISSUER).contains(&text.len())
        && text.trim() == text
        && !text.chars().any(|c| c == ':' || c.is_control());
    if !is_fine {
        let message = format!("issuer must be 1 to {} bytes without colon, not {text:?}", MfaRules::LONGEST_ISSUER);
        report.error(&node.span(), message, format!("write it like {ISSUER_EXAMPLE}"));
        return None;
    }
    Some(text.to_owned())
}

/// A link in a message is followed by people: a page, over TLS unless it is on this machine, and the token in it once.
fn cancel_url(report: &mut Report<'_>, node: Node<'_>) -> Option<String> {
    let text = fields::text(report, node, "cancel_url", CANCEL_EXAMPLE)?;
    let host = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://localhost"));
    let is_fine = host.is_some_and(|rest| !rest.is_empty())
        && text.matches(MfaRules::TOKEN).count() == 1
        && text.len() <= MfaRules::LONGEST_CANCEL_URL
        && !text.chars().any(|c| c.is_whitespace() || c.is_control());
    if !is_fine {
        let message = format!(
            "cancel_url must be a page at https://, with {} once and {} bytes at most, not {text:?}",
            MfaRules::TOKEN,
            MfaRules::LONGEST_CANCEL_URL
        );
        report.error(&node.span(), message, format!("write it like {CANCEL_EXAMPLE}"));
        return None;
    }
    Some(text.to_owned())
}
