//! `[edge]`: scope, names, egress sets, bodies, headers and logging; its rules are in [`rules`](super::edge_rules).

use super::edge_rules;
use super::fields::{self, Entry, Fields, Node};
use super::identity::{block, is_field_name};
use super::keys;
use super::layers::{self, Behind};
use super::routes::Matched;
use crate::edge::{BodyKind, Edge, EdgeBody, EdgeLogging, EdgeScope, EgressSet, ForwardedAddress, Stage};
use crate::report::{Report, Span};
use crate::route::Exemption;
use std::collections::BTreeMap;
use std::num::NonZeroU64;

const SCOPES: [(&str, EdgeScope); 2] = [("regional", EdgeScope::Regional), ("cloudfront", EdgeScope::CloudFront)];
const KINDS: [(&str, BodyKind); 3] = [("json", BodyKind::Json), ("text", BodyKind::Text), ("html", BodyKind::Html)];
pub(super) const STAGES: [(&str, Stage); 4] =
    [("count", Stage::Count), ("block", Stage::Block), ("captcha", Stage::Captcha), ("challenge", Stage::Challenge)];

const NAME: &str = "tollgate";
const PREFIX: &str = "tollgate-";
const EGRESS_EXAMPLE: &str = "{ hq = [\"203.0.113.0/24\"] }";
const BLOCKS_EXAMPLE: &str = "[\"203.0.113.0/24\"]";
const BODIES_EXAMPLE: &str = "{ slow = { type = \"json\", content = '{\"error\":\"rate_limited\"}' } }";
const HEADERS_EXAMPLE: &str = "{ x-limited-by = \"edge\" }";

/// Header fields that are ours to set, and the one that WAF sets by the body's type (Developer Guide, "Customizing responses
/// for Block actions").
const NOT_OURS_TO_GIVE: [&str; 3] = ["content-type", "retry-after", "cache-control"];

/// `Some(None)` if there is no `[edge]`, `None` if it has a mistake.
#[allow(clippy::option_option)]
pub(super) fn decode(
    report: &mut Report<'_>,
    node: Option<Node<'_>>,
    exemptions: &[Matched<Exemption>],
    behind: Behind<'_>,
) -> Option<Option<Edge>> {
    let Some(node) = node else { return Some(None) };
    let fields = Fields::open(report, node, "[edge]", &keys::EDGE)?;
    let scope = fields.get("scope").map(|node| fields::word(report, node, "scope", &SCOPES));
    let web_acl = fields.get("web_acl").map(|node| entity(report, node, "web_acl", "\"tollgate\""));
    let prefix = fields.get("prefix").map(|node| entity(report, node, "prefix", "\"tollgate-\""));
    let base_paths = fields.get("base_paths").map(|node| edge_rules::base_paths(report, node));
    let egress = fields.get("egress").map(|node| egress(report, node));
    let forwarded = fields.get("forwarded").map(|node| forwarded(report, node));
    let bodies = fields.get("bodies").map(|node| bodies(report, node));
    let headers = fields.get("headers").map(|node| headers(report, node));
    let logging = fields.get("logging").map(|node| logging(report, node));
    let users_per_address = fields.get("users_per_address").map(|node| {
        fields::integer(report, node, "users_per_address", 1..=Edge::MOST_USERS, "200").and_then(NonZeroU64::new)
    });
    let (rules, keeps_out) = edge_rules::decode(report, &fields);
    if let Some(wide) = exemptions.iter().find(|exemption| exemption.value.pattern.is_catch_all()) {
        let help = "name the requests that are exempt, or remove [edge]";
        report.error(&wide.at, "this exemption leaves the rules of [edge] nothing to count", help);
    }
    let edge = Edge {
        scope: scope.unwrap_or(Some(EdgeScope::Regional))?,
        web_acl: web_acl.unwrap_or_else(|| Some(NAME.to_owned()))?,
        prefix: prefix.unwrap_or_else(|| Some(PREFIX.to_owned()))?,
        base_paths: base_paths.unwrap_or_else(|| Some(Vec::new()))?,
        egress: egress.unwrap_or_else(|| Some(Vec::new()))?,
        forwarded: forwarded.map_or(Some(None), |forwarded| forwarded.map(Some))?,
        bodies: bodies.unwrap_or_else(|| Some(BTreeMap::new()))?,
        headers: headers.unwrap_or_else(|| Some(BTreeMap::new()))?,
        logging: logging.map_or(Some(None), |logging| logging.map(Some))?,
        users_per_address: users_per_address.map_or(Some(None), |users| users.map(Some))?,
        rules: rules?,
        keeps_out: keeps_out?,
    };
    let rules = fields.get("rules").and_then(|node| node.get_ref().as_array());
    let at: Vec<Span> = rules.into_iter().flatten().map(|rule| rule.span()).collect();
    layers::advise(report, &edge, &at, behind);
    Some(Some(edge))
}

/// The entries of a table with free names, each of which decodes.
fn named<'a, T>(
    report: &mut Report<'_>,
    node: Node<'a>,
    what: &str,
    example: &str,
    mut of: impl FnMut(&mut Report<'_>, Entry<'a>) -> Option<T>,
) -> Option<Vec<T>> {
    let table = fields::table(report, node, what, example)?;
    fields::entries(table).into_iter().map(|entry| of(report, entry)).collect::<Vec<_>>().into_iter().collect()
}

/// The name of something of WAF's (API Reference, `EntityName`).
fn entity(report: &mut Report<'_>, node: Node<'_>, what: &str, example: &str) -> Option<String> {
    let name = fields::text(report, node, what, example)?;
    let valid = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    // Room for what follows a prefix.
    if name.is_empty() || name.len() > Edge::MOST_NAME / 2 || !name.bytes().all(valid) {
        let message = format!("{what} {name:?} is not 1 to 64 letters, digits, `_` and `-`");
        report.error(&node.span(), message, format!("write it like {example}"));
        return None;
    }
    // Names of AWS's own rule groups, which the console hides.
    if name.to_ascii_lowercase().starts_with("aws") {
        report.error(&node.span(), format!("{what} begins with `aws`, which is reserved"), "choose another name");
        return None;
    }
    Some(name.to_owned())
}

fn egress(report: &mut Report<'_>, node: Node<'_>) -> Option<Vec<EgressSet>> {
    named(report, node, "egress", EGRESS_EXAMPLE, |report, (key, node)| {
        let name: &str = key.get_ref();
        let is_named = fields::name(report, &key.span(), "egress set", name);
        let list = fields::list(report, node, "an egress set", BLOCKS_EXAMPLE)?;
        if list.is_empty() || list.len() > Edge::MOST_BLOCKS {
            let message = format!("egress set `{name}` has {} blocks, not 1 to {}", list.len(), Edge::MOST_BLOCKS);
            report.error(&node.span(), message, format!("write it like {EGRESS_EXAMPLE}"));
        }
        let mut blocks = Vec::with_capacity(list.len());
        for node in list.iter() {
            let block = block(report, node, "a block of an egress set");
            if let Some(block) = block.filter(|block| block.prefix() == 0) {
                let message = format!("{}/0 is everybody", block.addr());
                report.error(&node.span(), message, "name the blocks that the office goes out by");
            }
            // Twice the same is once; WAF keeps it once, too.
            if block.is_none_or(|block| !blocks.contains(&Some(block))) {
                blocks.push(block);
            }
        }
        let blocks = blocks.into_iter().collect::<Option<Vec<_>>>()?;
        is_named.then(|| EgressSet { name: name.to_owned(), blocks })
    })
}

fn forwarded(report: &mut Report<'_>, node: Node<'_>) -> Option<ForwardedAddress> {
    const INVALID: [(&str, bool); 2] = [("match", true), ("no-match", false)];
    let fields = Fields::open(report, node, "`forwarded`", &keys::FORWARDED)?;
    let node = fields.required(report, "header", "name the header: `header = \"X-Real-IP\"`")?;
    let header = fields::text(report, node, "header", "\"X-Real-IP\"")?;
    if !is_field_name(header) {
        report.error(&node.span(), format!("{header:?} is not a header name"), "write it like \"X-Real-IP\"");
        return None;
    }
    if header.eq_ignore_ascii_case("x-forwarded-for") {
        // WAF takes the first address of the header (Developer Guide, "Forwarded IP address").
        let message =
            "WAF counts by the first address of X-Forwarded-For, which callers choose where a proxy only appends";
        let help = "name a header that the proxy overwrites, like \"X-Real-IP\" or \"True-Client-IP\"; it is fine if it \
                    overwrites this one and nobody gets past it";
        report.warning(&node.span(), message, help);
    }
    let counts_invalid = fields.get("if_invalid").map(|node| fields::word(report, node, "if_invalid", &INVALID));
    Some(ForwardedAddress { header: header.to_owned(), counts_invalid: counts_invalid.unwrap_or(Some(true))? })
}

fn bodies(report: &mut Report<'_>, node: Node<'_>) -> Option<BTreeMap<String, EdgeBody>> {
    let bodies = named(report, node, "bodies", BODIES_EXAMPLE, |report, (key, node)| {
        let name: &str = key.get_ref();
        let is_named = fields::name(report, &key.span(), "body", name);
        let body = body(report, node)?;
        is_named.then(|| (name.to_owned(), body))
    })?;
    // One of ours is there besides.
    if bodies.len() >= Edge::MOST_BODIES {
        let message = format!("{} bodies are more than an ACL has, with ours {}", bodies.len(), Edge::MOST_BODIES);
        report.error(&node.span(), message, "have rules share bodies");
    }
    Some(bodies.into_iter().collect())
}

fn body(report: &mut Report<'_>, node: Node<'_>) -> Option<EdgeBody> {
    let fields = Fields::open(report, node, "a body", &keys::BODY)?;
    let kind = fields.required(report, "type", "say what it is: `type = \"json\"`");
    let kind = kind.and_then(|node| fields::word(report, node, "type", &KINDS));
    let node = fields.required(report, "content", "write what is answered: `content = \"...\"`")?;
    let content = fields::text(report, node, "content", "\"Too many requests.\"")?;
    if content.is_empty() || content.len() > Edge::MOST_BODY_BYTES {
        let message = format!("the body has {} bytes, not 1 to {}", content.len(), Edge::MOST_BODY_BYTES);
        report.error(&node.span(), message, "write a shorter one, and link to the rest");
        return None;
    }
    Some(EdgeBody { kind: kind?, content: content.to_owned() })
}

fn headers(report: &mut Report<'_>, node: Node<'_>) -> Option<BTreeMap<String, String>> {
    let headers = named(report, node, "headers", HEADERS_EXAMPLE, |report, (key, node)| {
        let name: &str = key.get_ref();
        let is_named = header_name(report, &key.span(), name);
        let value = fields::text(report, node, "a header field", "\"edge\"")?;
        // API Reference, `CustomHTTPHeader`: 1 to 255 characters; RFC 9110 section 5.5: visible ones and blanks.
        if !(1..=255).contains(&value.len()) || !value.bytes().all(|b| b == b' ' || b.is_ascii_graphic()) {
            let message = format!("header field `{name}` is not 1 to 255 printable ASCII characters");
            report.error(&node.span(), message, format!("write it like {HEADERS_EXAMPLE}"));
            return None;
        }
        is_named.then(|| (name.to_ascii_lowercase(), value.to_owned()))
    })?;
    let most = Edge::MOST_HEADERS - 2;
    if headers.len() > most {
        let message = format!("{} header fields are more than {most}, which an answer has beside ours", headers.len());
        report.error(&node.span(), message, "remove some");
    }
    Some(headers.into_iter().collect())
}

fn header_name(report: &mut Report<'_>, at: &Span, name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    if NOT_OURS_TO_GIVE.contains(&lower.as_str()) {
        let help = "remove it: the type of a body says `content-type`, a rule's `retry_after` the rest";
        report.error(at, format!("`{name}` cannot be given here"), help);
        return false;
    }
    // API Reference, `CustomHTTPHeader`.
    let valid = |b: u8| b.is_ascii_alphanumeric() || b"._$-".contains(&b);
    if !(1..=64).contains(&name.len()) || !name.bytes().all(valid) {
        report.error(at, format!("{name:?} is not a header name"), format!("write it like {HEADERS_EXAMPLE}"));
        return false;
    }
    true
}

fn logging(report: &mut Report<'_>, node: Node<'_>) -> Option<EdgeLogging> {
    const KEEP: [(&str, bool); 2] = [("limited", false), ("all", true)];
    const EXAMPLE: &str = "\"arn:aws:logs:eu-central-1:111122223333:log-group:aws-waf-logs-tollgate\"";
    let fields = Fields::open(report, node, "`logging`", &keys::LOGGING)?;
    let keep = fields.get("keep").map(|node| fields::word(report, node, "keep", &KEEP));
    let node = fields.required(report, "destination", &format!("say where to: `destination = {EXAMPLE}`"))?;
    let destination = fields::text(report, node, "destination", EXAMPLE)?;
    // Developer Guide, "Logging destinations": WAF takes nothing whose name begins otherwise.
    let name = destination.rsplit([':', '/']).next().unwrap_or_default();
    if !destination.starts_with("arn:") || !name.starts_with("aws-waf-logs-") {
        let message = format!("{destination:?} is not the ARN of something that is named `aws-waf-logs-...`");
        report.error(&node.span(), message, format!("write it like {EXAMPLE}"));
        return None;
    }
    Some(EdgeLogging { destination: destination.to_owned(), keeps_all: keep.unwrap_or(Some(false))? })
}
