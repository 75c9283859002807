//! `step_up` of a route: age, classes and methods of the authentication, and what it is bound to.

use super::fields::{self, Fields, Node};
use super::keys;
use super::lock::RangedDuration;
use crate::identity::{Identity, Source};
use crate::report::{Report, Span};
use crate::step_up::StepUp;

pub(super) const AGE: RangedDuration =
    RangedDuration { what: "max_age", least: StepUp::SHORTEST_AGE, most: StepUp::LONGEST_AGE, example: "\"5min\"" };

/// The dimensions that say whose authentication it is.
const WHO: [&str; 3] = ["user", "tenant", "session"];

pub(super) fn decode(report: &mut Report<'_>, node: Node<'_>, identity: &Identity) -> Option<StepUp> {
    let fields = Fields::open(report, node, "step_up", &keys::STEP_UP)?;
    let help = "say how long ago somebody may have proved who he is: `step_up = { max_age = \"5min\" }`";
    let max_age = fields.required(report, "max_age", help).and_then(|node| AGE.read(report, node));
    let values = "[\"mfa\"]";
    let acr = fields.get("acr").map(|node| list(report, node, "acr", values, &is_value));
    let amr = fields.get("amr").map(|node| methods(report, node, "amr"));
    let bind = fields.get("bind").map(|node| names(report, node));
    vouched_for(report, &fields.span(), identity);
    Some(StepUp {
        max_age: max_age?,
        acr: acr.unwrap_or_else(|| Some(Vec::new()))?,
        amr: amr.unwrap_or_else(|| Some(Vec::new()))?,
        bind: bind.map_or(Some(None), |bind| bind.map(Some))?,
    })
}

/// One class.
pub(super) fn class(report: &mut Report<'_>, node: Node<'_>) -> Option<String> {
    let example = "\"mfa\"";
    let text = fields::text(report, node, "acr", example)?;
    if !is_value(text) {
        report.error(
            &node.span(),
            format!("`acr`: {text:?} cannot be a value of it"),
            format!("write it like {example}"),
        );
        return None;
    }
    Some(text.to_owned())
}

/// Some methods.
pub(super) fn methods(report: &mut Report<'_>, node: Node<'_>, what: &str) -> Option<Vec<String>> {
    list(report, node, what, "[\"hwk\", \"otp\"]", &is_value)
}

/// What can stand in a list with spaces between, within a quoted string.
fn is_value(text: &str) -> bool {
    (1..=128).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_graphic() && b != b'"' && b != b'\\')
}

fn names(report: &mut Report<'_>, node: Node<'_>) -> Option<Vec<String>> {
    let example = "[\"iban\"]";
    // An action without fields is one, too.
    if fields::list(report, node, "bind", example)?.is_empty() {
        return Some(Vec::new());
    }
    list(report, node, "bind", example, &|name| (1..=128).contains(&name.len()))
}

/// Some texts, each once.
fn list(
    report: &mut Report<'_>,
    node: Node<'_>,
    what: &str,
    example: &str,
    is_fine: &dyn Fn(&str) -> bool,
) -> Option<Vec<String>> {
    let list = fields::list(report, node, what, example)?;
    let help = format!("write it like {example}");
    if list.is_empty() || list.len() > StepUp::MOST_VALUES {
        let message = format!("`{what}` must have 1 to {} values, not {}", StepUp::MOST_VALUES, list.len());
        report.error(&node.span(), message, help);
        return None;
    }
    let mut values: Vec<String> = Vec::with_capacity(list.len());
    let mut complete = true;
    for node in list {
        let Some(value) = fields::text(report, node, what, example) else {
            complete = false;
            continue;
        };
        if !is_fine(value) || values.iter().any(|earlier| earlier == value) {
            let why = if is_fine(value) { "is given twice" } else { "cannot be a value of it" };
            report.error(&node.span(), format!("`{what}`: {value:?} {why}"), help.clone());
            complete = false;
        }
        values.push(value.to_owned());
    }
    complete.then_some(values)
}

/// Whoever could choose whose authentication counts would choose one that is fresh.
fn vouched_for(report: &mut Report<'_>, at: &Span, identity: &Identity) {
    for dimension in WHO {
        let source = identity.origin(dimension);
        if source.is_none_or(|source| matches!(source, Source::Claim(_) | Source::Context(_))) {
            continue;
        }
        let message = format!("`step_up` needs `{dimension}` from whoever vouches for the caller");
        report.error(at, message, format!("take it from a claim in [identity], like `{dimension} = \"claims.sub\"`"));
    }
}
