//! `[mfa]`: issuer, class and age of second factors.

use super::fields::{self, Fields, Node};
use super::keys;
use super::passkeys;
use super::step_up;
use crate::identity::Identity;
use crate::mfa::MfaRules;
use crate::report::{Report, Span};
use std::time::Duration;

const ISSUER_EXAMPLE: &str = "\"Example Ltd\"";

/// What is the case where the policy does not say.
const ACR: &str = "mfa";
const MAX_AGE: Duration = Duration::from_secs(300);

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
    let passkeys = passkeys::decode(report, fields.get("passkeys"));
    has_lasting_accounts(report, &fields.span(), identity);
    Some(Some(MfaRules { issuer: issuer?, acr: acr?, max_age: max_age?, passkeys: passkeys? }))
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
