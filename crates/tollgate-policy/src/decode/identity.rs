//! `[identity]`: where each dimension comes from.

use super::fields::{self, Fields, Node};
use super::keys;
use crate::identity::{Cidr, ClientIp, Identity, Source, Trust};
use crate::rate::Problem;
use crate::report::Report;
use crate::suggest;
use std::collections::BTreeSet;

/// Most proxies in front of the gateway that can be trusted by number.
const MAX_TRUSTED_HOPS: u64 = 16;

const EXAMPLE: &str = "\"claims.sub\"";

/// Makes a source of the name in it.
type Kind = fn(String) -> Source;

/// Sources that are written `kind.NAME`.
const KINDS: [(&str, Kind); 5] = [
    ("claims", Source::Claim),
    ("header", Source::Header),
    ("query", Source::Query),
    ("path", Source::Path),
    ("context", Source::Context),
];

/// The identity, and the dimensions that are declared but whose source is wrong.
pub(super) struct Declared {
    pub(super) identity: Identity,
    broken: BTreeSet<String>,
}

impl Declared {
    /// All dimensions that a key may use.
    pub(super) fn names(&self) -> BTreeSet<&str> {
        self.identity.dimensions().map(|(name, _)| name).chain(self.broken.iter().map(String::as_str)).collect()
    }
}

pub(super) fn decode(report: &mut Report<'_>, node: Option<Node<'_>>) -> Declared {
    let mut declared = Declared { identity: Identity::default(), broken: BTreeSet::new() };
    let Some(table) = node.and_then(|node| fields::table(report, node, "[identity]", "user = \"claims.sub\"")) else {
        return declared;
    };
    for (key, node) in fields::entries(table) {
        let dimension: &str = key.get_ref();
        let valid = fields::name(report, &key.span(), "dimension", dimension);
        let source = if dimension == "client_ip" {
            client_ip(report, node).map(Source::ClientIp)
        } else if node.get_ref().is_table() {
            body(report, node, dimension)
        } else {
            written(report, node, dimension)
        };
        match source {
            Some(source) if valid => declared.identity.declare(dimension, source),
            _ => drop(declared.broken.insert(dimension.to_owned())),
        }
    }
    declared
}

fn written(report: &mut Report<'_>, node: Node<'_>, dimension: &str) -> Option<Source> {
    let text = fields::text(report, node, &format!("`{dimension}`"), EXAMPLE)?;
    source(text).map_err(|problem| report.error(&node.span(), problem.message, problem.help)).ok()
}

fn source(text: &str) -> Result<Source, Problem> {
    if text == "api_key" {
        return Ok(Source::ApiKey);
    }
    let all = "write \"claims.NAME\", \"header.NAME\", \"query.NAME\", \"path.NAME\", \"context.NAME\", \"api_key\" \
               or { body = \"NAME\" }";
    let (kind, name) = text.split_once('.').unwrap_or((text, ""));
    let Some((_, build)) = KINDS.iter().find(|(known, _)| *known == kind) else {
        let nearest = suggest::nearest(kind, KINDS.iter().map(|(known, _)| *known).chain(["api_key"]));
        let nearest = nearest.map(|kind| format!("did you mean `{kind}`? ")).unwrap_or_default();
        return Err(Problem::new(format!("{text:?} is not a source of a dimension"), format!("{nearest}{all}")));
    };
    // RFC 9110 section 5.1: field names are tokens and case-insensitive.
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    match kind {
        _ if name.is_empty() => Err(Problem::new(format!("{text:?} has no name after `{kind}.`"), all)),
        "header" if !name.bytes().all(token) => {
            Err(Problem::new(format!("{name:?} is not a header name"), "write it like \"header.x-tenant\""))
        }
        "header" => Ok(build(name.to_ascii_lowercase())),
        _ => Ok(build(name.to_owned())),
    }
}

fn body(report: &mut Report<'_>, node: Node<'_>, dimension: &str) -> Option<Source> {
    let fields = Fields::open(report, node, &format!("`{dimension}`"), &keys::BODY)?;
    let help = "write `{ body = \"username\" }` with the name of a field of the body";
    let node = fields.required(report, "body", help)?;
    let field = fields::text(report, node, "body", "\"username\"")?;
    if field.is_empty() {
        report.error(&node.span(), "body has no field name", help);
        return None;
    }
    Some(Source::Body(field.to_owned()))
}

fn client_ip(report: &mut Report<'_>, node: Node<'_>) -> Option<ClientIp> {
    let example = "{ trusted_hops = 0, ipv6_prefix = 64 }";
    fields::table(report, node, "`client_ip`", example)?;
    let fields = Fields::open(report, node, "`client_ip`", &keys::CLIENT_IP)?;
    let ipv6_prefix = match fields.get("ipv6_prefix") {
        Some(node) => fields::integer(report, node, "ipv6_prefix", 1..=128, "64").and_then(|n| u8::try_from(n).ok()),
        None => Some(ClientIp::DEFAULT_IPV6_PREFIX),
    };
    let trust = match (fields.get("trusted_hops"), fields.get("trusted_proxies")) {
        (Some(_), Some(proxies)) => {
            let help = "keep the one that describes what stands in front of the gateway";
            report.error(&proxies.span(), "`client_ip` has both `trusted_hops` and `trusted_proxies`", help);
            None
        }
        (Some(hops), None) => {
            let hops = fields::integer(report, hops, "trusted_hops", 0..=MAX_TRUSTED_HOPS, "1");
            hops.and_then(|n| u8::try_from(n).ok()).map(Trust::Hops)
        }
        (None, Some(proxies)) => trusted_proxies(report, proxies).map(Trust::Proxies),
        (None, None) => Some(Trust::Hops(0)),
    };
    Some(ClientIp { trust: trust?, ipv6_prefix: ipv6_prefix? })
}

fn trusted_proxies(report: &mut Report<'_>, node: Node<'_>) -> Option<Vec<Cidr>> {
    let example = "[\"10.0.0.0/8\"]";
    let list = fields::list(report, node, "trusted_proxies", example)?;
    if list.is_empty() {
        report.error(&node.span(), "trusted_proxies is empty", format!("write `trusted_proxies = {example}`"));
    }
    let mut blocks = Vec::with_capacity(list.len());
    for node in list.iter() {
        let text = fields::text(report, node, "a trusted proxy", "\"10.0.0.0/8\"");
        let block = text.and_then(Cidr::parse);
        if let (Some(text), None) = (text, block) {
            let help = "write the first address and the length of the prefix, like \"10.0.0.0/8\" or \"192.0.2.7/32\"";
            report.error(&node.span(), format!("{text:?} is not a block of addresses"), help);
        }
        blocks.push(block);
    }
    blocks.into_iter().collect()
}
