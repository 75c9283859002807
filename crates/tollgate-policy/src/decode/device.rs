//! `{ cookie = "NAME", bound_to = "DIMENSION", max_age = "90day" }`: a device that is known by its token.

use super::fields::{self, Fields, Node};
use super::identity::{Declared, is_field_name};
use super::keys;
use crate::device::Device;
use crate::identity::Source;
use crate::rate;
use crate::report::{Report, Span};
use crate::suggest;
use std::collections::BTreeMap;
use std::time::Duration;

const BOUND_EXAMPLE: &str = "\"account\"";

/// Whether a declaration is meant to be a device's.
pub(super) fn is_meant(node: Node<'_>) -> bool {
    let table = node.get_ref().as_table();
    table.is_some_and(|table| keys::DEVICE.keys.iter().any(|key| table.contains_key(*key)))
}

/// The device, and where the file says what it is bound to.
pub(super) fn decode(report: &mut Report<'_>, node: Node<'_>, dimension: &str) -> Option<(Device, Span)> {
    let fields = Fields::open(report, node, &format!("`{dimension}`"), &keys::DEVICE)?;
    if dimension == "plan" {
        let help = "write it like `plan = \"claims.plan\"`";
        report.error(&fields.span(), "`plan` is compared with the names under [plans], not counted", help);
    }
    let help = "name the cookie that has the token: `cookie = \"tollgate-device\"`";
    let cookie = fields.required(report, "cookie", help).and_then(|node| cookie(report, node));
    let help = format!("say whose device it is to be: `bound_to = {BOUND_EXAMPLE}`");
    let bound = fields.required(report, "bound_to", &help);
    let bound_to = bound.and_then(|node| Some((fields::text(report, node, "bound_to", BOUND_EXAMPLE)?, node.span())));
    let max_age = match fields.get("max_age") {
        Some(node) => max_age(report, node),
        None => Some(Device::DEFAULT_AGE),
    };
    let (bound_to, at) = bound_to?;
    Some((Device { cookie: cookie?, bound_to: bound_to.to_owned(), max_age: max_age? }, at))
}

/// RFC 6265 section 4.1.1: names of cookies are tokens.
fn cookie(report: &mut Report<'_>, node: Node<'_>) -> Option<String> {
    let name = fields::text(report, node, "cookie", "\"tollgate-device\"")?;
    if !is_field_name(name) {
        let help = "write it like \"tollgate-device\", or \"__Host-device\", which no subdomain can set";
        report.error(&node.span(), format!("{name:?} is not the name of a cookie"), help);
        return None;
    }
    Some(name.to_owned())
}

fn max_age(report: &mut Report<'_>, node: Node<'_>) -> Option<Duration> {
    let text = fields::text(report, node, "max_age", "\"90day\"")?;
    let read = rate::read_duration(text).map_err(|problem| report.error(&node.span(), problem.message, problem.help));
    let age = read.ok()?;
    if !(Device::LEAST_AGE..=Device::MOST_AGE).contains(&age) {
        let help = "write it like \"90day\"; browsers keep no cookie for longer than 400 days";
        report.error(&node.span(), format!("max_age must be from 1h to 400day, not {text}"), help);
        return None;
    }
    Some(age)
}

/// Reports what only the whole table tells: devices that are bound to nothing, and two that have one cookie.
pub(super) fn check(report: &mut Report<'_>, declared: &Declared, bonds: &BTreeMap<String, Span>) {
    let device = |name: &str| match declared.identity.source(name) {
        Some(Source::Device(device)) => Some(device),
        _ => None,
    };
    let names = declared.names();
    for (name, at) in bonds {
        let Some(Device { cookie, bound_to, .. }) = device(name) else { continue };
        let can_be = |dimension: &&str| *dimension != "everyone" && device(dimension).is_none();
        if !names.iter().any(|known| known == bound_to) {
            let help = suggest::help(bound_to, "dimension", names.iter().copied().filter(can_be));
            report.absent(at, bound_to, format!("`{name}` is bound to `{bound_to}`, which is not declared"), help);
        } else if !can_be(&bound_to.as_str()) {
            let help = "bind it to what says whose device it is, like the account that is signed in to";
            report.error(at, format!("`{name}` is bound to `{bound_to}`, which is nobody's name"), help);
        }
        let twin = bonds
            .keys()
            .take_while(|other| *other != name)
            .find(|other| device(other).is_some_and(|d| d.cookie == *cookie));
        if let Some(twin) = twin {
            let message = format!("`{name}` has the cookie of `{twin}`: each would overwrite the other's token");
            report.error(at, message, "give it another cookie");
        }
    }
}
