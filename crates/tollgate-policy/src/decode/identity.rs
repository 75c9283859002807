//! `[identity]`: where each dimension comes from, and which spellings of it are one.

use super::chosen;
use super::device;
use super::fields::{self, Fields, Node};
use super::keys;
use crate::canonical::{Fold, Region};
use crate::identity::{AddressHeader, Cidr, ClientIp, Dimension, Identity, Logged, Source, Trust};
use crate::rate::Problem;
use crate::report::{Report, Span};
use crate::suggest;
use std::collections::{BTreeMap, BTreeSet};

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
    spans: BTreeMap<String, Span>,
}

impl Declared {
    /// Where the file declares a dimension; its start for one that it does not.
    pub(super) fn at(&self, dimension: &str) -> Span {
        self.spans.get(dimension).cloned().unwrap_or_default()
    }

    /// All dimensions that a key may use.
    pub(super) fn names(&self) -> BTreeSet<&str> {
        self.identity.dimensions().map(|(name, _)| name).chain(self.broken.iter().map(String::as_str)).collect()
    }
}

pub(super) fn decode(report: &mut Report<'_>, node: Option<Node<'_>>) -> Declared {
    let mut declared = Declared { identity: Identity::default(), broken: BTreeSet::new(), spans: BTreeMap::new() };
    let Some(table) = node.and_then(|node| fields::table(report, node, "[identity]", "user = \"claims.sub\"")) else {
        return declared;
    };
    let mut bonds = BTreeMap::new();
    for (key, node) in fields::entries(table) {
        let dimension: &str = key.get_ref();
        declared.spans.insert(dimension.to_owned(), node.span());
        let valid = fields::name(report, &key.span(), "dimension", dimension);
        let decoded = if dimension == "everyone" {
            let help = "give yours another name";
            report.error(&key.span(), "`everyone` is built in, and the same for every caller", help);
            continue;
        } else if dimension == "client_ip" {
            client_ip(report, node).map(|rule| Source::ClientIp(rule).into())
        } else if device::is_meant(node) {
            device::decode(report, node, dimension).map(|(device, at)| {
                bonds.insert(dimension.to_owned(), at);
                Source::Device(device).into()
            })
        } else if node.get_ref().is_table() {
            declaration(report, node, dimension)
        } else {
            written(report, node, dimension).map(Dimension::from)
        };
        match decoded {
            Some(decoded) if valid => declared.identity.declare(dimension, decoded),
            _ => drop(declared.broken.insert(dimension.to_owned())),
        }
    }
    device::check(report, &declared, &bonds);
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
    let all = "write \"claims.NAME\", \"header.NAME\", \"query.NAME\", \"path.NAME\", \"context.NAME\", \"api_key\", \
               { body = \"NAME\" } or { cookie = \"NAME\", bound_to = \"DIMENSION\" }";
    let (kind, name) = text.split_once('.').unwrap_or((text, ""));
    let Some((_, build)) = KINDS.iter().find(|(known, _)| *known == kind) else {
        let nearest = suggest::nearest(kind, KINDS.iter().map(|(known, _)| *known).chain(["api_key"]));
        let nearest = nearest.map(|kind| format!("did you mean `{kind}`? ")).unwrap_or_default();
        return Err(Problem::new(format!("{text:?} is not a source of a dimension"), format!("{nearest}{all}")));
    };
    match kind {
        _ if name.is_empty() => Err(Problem::new(format!("{text:?} has no name after `{kind}.`"), all)),
        "header" if !is_field_name(name) => {
            Err(Problem::new(format!("{name:?} is not a header name"), "write it like \"header.x-tenant\""))
        }
        "header" => Ok(build(name.to_ascii_lowercase())),
        _ => Ok(build(name.to_owned())),
    }
}

/// `{ body = "NAME" }` or `{ from = "SOURCE" }`, and how its values are counted.
fn declaration(report: &mut Report<'_>, node: Node<'_>, dimension: &str) -> Option<Dimension> {
    let fields = Fields::open(report, node, &format!("`{dimension}`"), &keys::DIMENSION)?;
    let source = match (fields.get("body"), fields.get("from")) {
        (Some(_), Some(from)) => {
            report.error(&from.span(), format!("`{dimension}` has both `body` and `from`"), "keep one of the two");
            None
        }
        (Some(node), None) => body(report, node),
        (None, Some(node)) => written(report, node, dimension),
        (None, None) => {
            let help = "write `{ body = \"username\" }` or `{ from = \"claims.email\" }`";
            report.absent(&node.span(), "from", format!("`{dimension}` has neither `body` nor `from`"), help);
            None
        }
    };
    let fold = fold(report, &fields);
    let personal = match fields.get("personal") {
        Some(node) => fields::boolean(report, node, "personal", "true").map(|personal| (Some(node), personal)),
        None => Some((None, fold.is_some_and(Fold::is_personal))),
    };
    let ((node, personal), fold) = (personal?, fold?);
    if let (Some(node), true, false) = (node, fold.is_personal(), personal) {
        let help = "remove `personal = false`: addresses and numbers of people are kept as keyed hashes only";
        report.error(&node.span(), format!("`{dimension}` folds personal values, and says that it has none"), help);
    }
    if dimension == "plan" && (personal || fold != Fold::None) {
        let help = "write it like `plan = \"claims.plan\"`";
        report.error(&fields.span(), "`plan` is compared with the names under [plans], not counted", help);
    }
    let log = match fields.get("log") {
        Some(node) => Some(log(report, node, dimension, source.as_ref(), personal)?),
        None => None,
    };
    Some(Dimension { source: source?, fold, personal, log })
}

/// How lines about denials tell the dimension: of whoever buys only, and in plain only what somebody has vouched for.
fn log(
    report: &mut Report<'_>,
    node: Node<'_>,
    dimension: &str,
    source: Option<&Source>,
    personal: bool,
) -> Option<Logged> {
    let log = fields::word(report, node, "log", &[("plain", Logged::Plain), ("hashed", Logged::Hashed)])?;
    let hashed = "write `log = \"hashed\"`";
    if !Logged::DIMENSIONS.contains(&dimension) {
        let help = "remove `log`: of others, lines have the names, and a reference to the whole key";
        report.error(&node.span(), format!("`log` is for `tenant` and `api_key`, not for `{dimension}`"), help);
    } else if log == Logged::Plain && personal {
        report.error(&node.span(), format!("`{dimension}` is personal, and is not logged in plain"), hashed);
    } else if log == Logged::Plain
        && matches!(source, Some(Source::Header(_) | Source::Query(_) | Source::Path(_) | Source::Body(_)))
    {
        let message = format!("`{dimension}` is what callers write themselves, which can be anything");
        report.error(&node.span(), message, hashed);
    }
    Some(log)
}

fn fold(report: &mut Report<'_>, fields: &Fields<'_>) -> Option<Fold> {
    let words = [
        ("none", Fold::None),
        ("lower", Fold::Lower),
        ("email", Fold::Email),
        ("mailbox", Fold::Mailbox),
        ("phone", Fold::Phone(None)),
    ];
    let fold = match fields.get("fold") {
        Some(node) => fields::word(report, node, "fold", &words)?,
        None => Fold::None,
    };
    let Some(node) = fields.get("region") else { return Some(fold) };
    let code = fields::text(report, node, "region", "\"IN\"")?;
    let region = region(report, node, code)?;
    if fold != Fold::Phone(None) {
        report.error(&node.span(), "`region` is for numbers", "write `fold = \"phone\"`, or remove `region`");
    }
    Some(Fold::Phone(Some(region)))
}

/// The region of a code.
pub(super) fn region(report: &mut Report<'_>, node: Node<'_>, code: &str) -> Option<Region> {
    let region = Region::parse(code);
    if region.is_none() {
        let help = "write the two letters of ISO 3166-1 in upper case, like \"IN\"";
        report.error(&node.span(), format!("{code:?} is no region with a numbering plan"), help);
    }
    region
}

/// RFC 9110 section 5.1: field names are tokens.
pub(super) fn is_field_name(name: &str) -> bool {
    let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    !name.is_empty() && name.bytes().all(token)
}

fn body(report: &mut Report<'_>, node: Node<'_>) -> Option<Source> {
    let help = "write `{ body = \"username\" }` with the name of a field of the body";
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
        Some(node) => {
            let prefix = fields::integer(report, node, "ipv6_prefix", 1..=128, "64").and_then(|n| u8::try_from(n).ok());
            prefix.inspect(|prefix| chosen::warn_of_prefix(report, &node.span(), *prefix))
        }
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
    let header = match fields.get("header") {
        Some(node) => address_header(report, node, trust.as_ref()).map(Some),
        None => Some(None),
    };
    Some(ClientIp { trust: trust?, header: header?, ipv6_prefix: ipv6_prefix? })
}

fn address_header(report: &mut Report<'_>, node: Node<'_>, trust: Option<&Trust>) -> Option<AddressHeader> {
    let name = fields::text(report, node, "header", "\"X-Forwarded-For\"")?;
    if !is_field_name(name) {
        report.error(&node.span(), format!("{name:?} is not a header name"), "write it like \"X-Forwarded-For\"");
        return None;
    }
    if trust == Some(&Trust::Hops(0)) {
        let help = "say who writes it, `trusted_proxies = [...]` or `trusted_hops = 1`, or remove `header`";
        report.error(&node.span(), "`header` is not looked at where no proxy is trusted", help);
    }
    Some(match name.to_ascii_lowercase().as_str() {
        "x-forwarded-for" => AddressHeader::XForwardedFor,
        "forwarded" => AddressHeader::Forwarded,
        other => AddressHeader::Single(other.to_owned()),
    })
}

fn trusted_proxies(report: &mut Report<'_>, node: Node<'_>) -> Option<Vec<Cidr>> {
    let example = "[\"10.0.0.0/8\"]";
    let list = fields::list(report, node, "trusted_proxies", example)?;
    if list.is_empty() {
        report.error(&node.span(), "trusted_proxies is empty", format!("write `trusted_proxies = {example}`"));
    }
    let mut blocks = Vec::with_capacity(list.len());
    for node in list.iter() {
        let block = block(report, node, "a trusted proxy");
        if let Some(block) = block {
            judge_width(report, node, block);
        }
        blocks.push(block);
    }
    blocks.into_iter().collect()
}

/// A block of addresses.
pub(super) fn block(report: &mut Report<'_>, node: Node<'_>, what: &str) -> Option<Cidr> {
    let text = fields::text(report, node, what, "\"10.0.0.0/8\"")?;
    let block = Cidr::parse(text);
    if block.is_none() {
        let help = "write the first address and the length of the prefix, like \"10.0.0.0/8\" or \"192.0.2.7/32\"";
        report.error(&node.span(), format!("{text:?} is not a block of addresses"), help);
    }
    block
}

/// Whoever is trusted can claim any address. Whole regions of the internet are no proxies of anybody; a block as large as
/// the largest of a content network (CloudFront has a /14, a /28) may be.
fn judge_width(report: &mut Report<'_>, node: Node<'_>, block: Cidr) {
    let (absurd, wide) = if block.addr().is_ipv4() { (8, 12) } else { (16, 24) };
    if block.is_internal() || block.prefix() >= wide {
        return;
    }
    let help =
        "name the blocks that your proxies have, like \"10.0.0.0/8\" or those that your content network publishes";
    let message = format!("{block} is not the block of a proxy: everybody in it may claim any address");
    if block.prefix() < absurd {
        report.error(&node.span(), message, help);
    } else {
        report.warning(&node.span(), message, help);
    }
}
