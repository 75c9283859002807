//! `[http]`: how answers are spoken.

use super::fields::{self, Fields, Node};
use super::keys;
use crate::http::{Cors, Http, LegacyHeaders};
use crate::report::Report;

const ORIGINS_EXAMPLE: &str = "[\"https://app.example.com\"]";
const FAMILIES: [(&str, LegacyHeaders); 2] =
    [("RateLimit", LegacyHeaders::RateLimit), ("X-RateLimit", LegacyHeaders::XRateLimit)];

pub(super) fn decode(report: &mut Report<'_>, node: Option<Node<'_>>) -> Http {
    let fields = node.and_then(|node| Fields::open(report, node, "[http]", &keys::HTTP));
    let Some(fields) = fields else { return Http::default() };
    let legacy_headers = fields.get("legacy_headers").map(|node| legacy_headers(report, node)).unwrap_or_default();
    Http { legacy_headers, cors: fields.get("cors").and_then(|node| cors(report, node)) }
}

fn legacy_headers(report: &mut Report<'_>, node: Node<'_>) -> Vec<LegacyHeaders> {
    let mut families = Vec::new();
    let list = fields::list(report, node, "legacy_headers", "[\"X-RateLimit\"]");
    for node in list.into_iter().flat_map(|list| list.iter()) {
        let Some(family) = fields::word(report, node, "a family of headers", &FAMILIES) else { continue };
        if families.contains(&family) {
            report.error(&node.span(), "this family of headers is given twice", "write each family once");
        }
        families.push(family);
    }
    families
}

fn cors(report: &mut Report<'_>, node: Node<'_>) -> Option<Cors> {
    let fields = Fields::open(report, node, "`cors`", &keys::CORS)?;
    let help = format!("say whose pages may read answers: `origins = {ORIGINS_EXAMPLE}`");
    let origins = fields.required(report, "origins", &help).and_then(|node| origins(report, node));
    let credentials = match fields.get("credentials") {
        Some(node) => fields::boolean(report, node, "credentials", "false").map(|value| (node, value)),
        None => None,
    };
    let origins = origins?;
    if let (None, Some((node, true))) = (&origins, credentials) {
        let help = "name the origins, or write `credentials = false`";
        report.error(&node.span(), "browsers refuse credentials where any origin is allowed", help);
    }
    Some(Cors { origins, credentials: credentials.is_some_and(|(_, value)| value) })
}

/// The inner `None` is any origin.
fn origins(report: &mut Report<'_>, node: Node<'_>) -> Option<Option<Vec<String>>> {
    let list = fields::list(report, node, "origins", ORIGINS_EXAMPLE)?;
    if list.is_empty() {
        report.error(&node.span(), "`origins` is empty", format!("write `origins = {ORIGINS_EXAMPLE}`"));
    }
    let mut origins = Vec::with_capacity(list.len());
    for node in list.iter() {
        let text = fields::text(report, node, "an origin", "\"https://app.example.com\"")?;
        match text {
            "*" if list.len() == 1 => return Some(None),
            "*" => report.error(&node.span(), "\"*\" allows the other origins, too", "write `[\"*\"]` or name them"),
            _ if is_origin(text) => origins.push(text.to_owned()),
            _ => {
                let help = "write scheme and host in lower case, without a path, like \"https://app.example.com\"";
                report.error(&node.span(), format!("{text:?} is not an origin"), help);
            }
        }
    }
    Some(Some(origins))
}

/// RFC 6454 section 6.2: scheme, host and a port that is not the scheme's own, compared byte by byte.
fn is_origin(text: &str) -> bool {
    let Some((scheme, host)) = text.split_once("://") else { return false };
    let scheme_valid = scheme.starts_with(|c: char| c.is_ascii_lowercase())
        && scheme.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"+.-".contains(&b));
    let host_valid = host.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-._:[]".contains(&b));
    scheme_valid && !host.is_empty() && host_valid
}
