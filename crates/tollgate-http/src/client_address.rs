//! The address that a request is counted by. Pure.
//!
//! Each hop of a request knows one thing for sure: who asked it. The gateway's is the source address of the event, a
//! proxy's is the entry that it appended to the forwarding header. Read from the gateway outwards, that is a chain, and
//! the policy says how far it is believed.
//!
//! Invariant: an entry is taken only if somebody whom the policy trusts wrote it. Where such an entry is not there, or is
//! no address, there is no address, and never the next one, which is the sender's own.

use crate::facts::{Facts, Gateway};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use std::iter;
use std::net::IpAddr;
use tollgate_dynamodb::Event;
use tollgate_policy::{AddressHeader, Cidr, ClientIp, Trust, is_internal, parse_address};

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
/// CloudFront's, on every request to an origin.
const CLOUDFRONT_ID: HeaderName = HeaderName::from_static("x-amz-cf-id");
/// CloudFront's, too: address and port, without brackets around IPv6.
const CLOUDFRONT_VIEWER: &str = "cloudfront-viewer-address";

/// Entries that are looked at to tell whether a header says more than it was asked.
const MANY_HOPS: usize = 32;

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Found {
    /// The address, if there is one.
    pub(crate) address: Option<IpAddr>,
    /// What is odd about it.
    pub(crate) doubt: Option<Doubt>,
}

/// What a policy that does not fit its topology looks like in a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// The policy trusts proxies whose entry is not there, or is no address.
    Unproven,
    /// The address is a proxy's that stands in front, so that all its clients are counted as one.
    Shared,
}

impl Doubt {
    /// The name of its counter, in the singular.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Unproven => "unproven_address",
            Self::Shared => "shared_address",
        }
    }

    pub(crate) fn event(self) -> Event<'static> {
        match self {
            Self::Unproven => Event::UnprovenAddress,
            Self::Shared => Event::SharedAddress,
        }
    }
}

/// Who asked a hop; `None` if that cannot be read.
type Hop = Option<IpAddr>;

/// The address that a request with these facts and headers is counted by.
pub(crate) fn find(rule: &ClientIp, facts: &Facts, headers: &HeaderMap) -> Found {
    let list = match &rule.header {
        Some(AddressHeader::Single(name)) => return single(rule, facts, headers, name),
        Some(AddressHeader::Forwarded) => List::Forwarded,
        Some(AddressHeader::XForwardedFor) => List::XForwardedFor,
        Some(_) => List::Unreadable,
        None => List::usual(facts.gateway(), headers),
    };
    let told = list.told(facts, headers);
    let chain: Box<dyn Iterator<Item = Hop>> = match facts.gateway() {
        // It has no field for who asked it, and appends that to the header.
        Gateway::LoadBalancer => Box::new(told.entries),
        _ => Box::new(iter::once(facts.source_address()).chain(told.entries)),
    };
    let behind_edge =
        !told.has_managed_edge && facts.gateway() != Gateway::Other && headers.contains_key(CLOUDFRONT_ID);
    match &rule.trust {
        Trust::Hops(hops) => by_number(*hops, chain, facts, behind_edge),
        Trust::Proxies(blocks) => by_address(blocks, chain),
        _ => Found::default(),
    }
}

/// The entry that the last of `hops` proxies wrote.
fn by_number(hops: u8, mut chain: impl Iterator<Item = Hop>, facts: &Facts, behind_edge: bool) -> Found {
    for hop in 0..hops {
        let trusted = chain.next().flatten();
        // An application may not know who asks it: that is the first proxy, as the policy says.
        let may_be_unknown = hop == 0 && facts.gateway() == Gateway::Other;
        if trusted.is_none() && !may_be_unknown {
            return UNPROVEN;
        }
    }
    let Some(address) = chain.next().flatten() else {
        return if hops > 0 { UNPROVEN } else { Found::default() };
    };
    let mut told_more = || chain.by_ref().take(MANY_HOPS).any(|hop| hop.is_some());
    let shared = (is_internal(address) && told_more()) || (hops == 0 && behind_edge);
    Found { address: Some(address), doubt: shared.then_some(Doubt::Shared) }
}

/// The first address from the gateway outwards that is no trusted proxy's.
fn by_address(blocks: &[Cidr], chain: impl Iterator<Item = Hop>) -> Found {
    let mut last = None;
    for hop in chain {
        // Somebody trusted wrote it, and it is no address: or there is nobody known who could be trusted.
        let Some(address) = hop else { return UNPROVEN };
        if !blocks.iter().any(|block| block.contains(address)) {
            return Found { address: Some(address), doubt: None };
        }
        last = Some(address);
    }
    // All of them are proxies, so the outermost did not say who asked it.
    Found { address: last, doubt: last.map(|_| Doubt::Shared) }
}

const UNPROVEN: Found = Found { address: None, doubt: Some(Doubt::Unproven) };

/// The address in a header that the proxy in front overwrites.
fn single(rule: &ClientIp, facts: &Facts, headers: &HeaderMap, name: &str) -> Found {
    if let Trust::Proxies(blocks) = &rule.trust {
        let peer = match facts.gateway() {
            Gateway::LoadBalancer => List::XForwardedFor.told(facts, headers).entries.next().flatten(),
            _ => facts.source_address(),
        };
        match peer {
            None => return UNPROVEN,
            Some(peer) if !blocks.iter().any(|block| block.contains(peer)) => {
                return Found { address: Some(peer), doubt: None };
            }
            Some(_) => {}
        }
    }
    let mut lines = headers.get_all(name).iter();
    let address = match (lines.next(), lines.next()) {
        (Some(line), None) => line.to_str().ok().and_then(|text| match name {
            CLOUDFRONT_VIEWER => with_port(text),
            _ => parse_address(text),
        }),
        _ => None,
    };
    address.map_or(UNPROVEN, |address| Found { address: Some(address), doubt: None })
}

/// `192.0.2.1:5123` and `2001:db8::1:5123`: what is behind the last colon is always a port.
fn with_port(text: &str) -> Hop {
    let (address, port) = text.trim().rsplit_once(':')?;
    port.parse::<u16>().ok()?;
    parse_address(address)
}

/// A header that is a list, to whose end each proxy appends who asked it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum List {
    XForwardedFor,
    Forwarded,
    /// One of which nothing can be believed.
    Unreadable,
}

/// What a list tells.
struct Told<'a> {
    /// Who asked the proxies in front of the gateway, the nearest first; without what the gateway itself appended.
    entries: Box<dyn Iterator<Item = Hop> + 'a>,
    /// Whether an edge that belongs to the gateway stands between it and its client.
    has_managed_edge: bool,
}

impl List {
    /// The list that the proxies write, if the policy does not say. AWS writes `X-Forwarded-For`; elsewhere two lists
    /// mean that one of them is the sender's, and nobody knows which.
    fn usual(gateway: Gateway, headers: &HeaderMap) -> Self {
        let has = |name: &HeaderName| headers.contains_key(name);
        match (gateway, has(&X_FORWARDED_FOR), has(&header::FORWARDED)) {
            (Gateway::Other, true, true) => Self::Unreadable,
            (Gateway::Other, false, true) => Self::Forwarded,
            _ => Self::XForwardedFor,
        }
    }

    fn told<'a>(self, facts: &Facts, headers: &'a HeaderMap) -> Told<'a> {
        // Of a list in front of a function URL Lambda leaves the first entry, which is the sender's.
        if self == Self::Unreadable || facts.gateway() == Gateway::FunctionUrl {
            return Told { entries: Box::new(iter::once(None)), has_managed_edge: false };
        }
        let source = facts.source_address();
        let is_source = |at: usize| source.is_some() && self.entries(headers).nth(at) == Some(source);
        let (own, has_managed_edge) = match facts.gateway() {
            _ if self != Self::XForwardedFor => (0, false),
            Gateway::HttpApi | Gateway::RestApi if is_source(0) => (1, false),
            // An edge-optimised API appends its edge as well, behind the client that the edge names.
            Gateway::RestApi if is_source(1) => (2, true),
            _ => (0, false),
        };
        Told { entries: Box::new(self.entries(headers).skip(own)), has_managed_edge }
    }

    /// All entries, the last first. Several lines are one list (RFC 9110 section 5.3).
    fn entries(self, headers: &HeaderMap) -> Box<dyn Iterator<Item = Hop> + '_> {
        let lines = |name: HeaderName| headers.get_all(name).iter().rev();
        match self {
            Self::XForwardedFor => Box::new(lines(X_FORWARDED_FOR).flat_map(addresses)),
            Self::Forwarded => {
                Box::new(lines(header::FORWARDED).flat_map(|line| Elements(line.as_bytes()).map(forwarded_for)))
            }
            Self::Unreadable => Box::new(iter::once(None)),
        }
    }
}

fn addresses(line: &HeaderValue) -> impl Iterator<Item = Hop> {
    line.as_bytes().rsplit(|byte| *byte == b',').map(|entry| parse_address(std::str::from_utf8(entry).ok()?))
}

/// The parts of a line between commas that are not quoted, from the right: what trusted proxies wrote is read before
/// anything that a sender may have left open.
struct Elements<'a>(&'a [u8]);

impl<'a> Iterator for Elements<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.0.is_empty() {
            return None;
        }
        let mut quoted = false;
        for (at, byte) in self.0.iter().enumerate().rev() {
            match byte {
                b'"' if !is_escaped(self.0, at) => quoted = !quoted,
                b',' if !quoted => {
                    let (before, element) = (&self.0[..at], &self.0[at + 1..]);
                    self.0 = before;
                    return Some(element);
                }
                _ => {}
            }
        }
        Some(std::mem::take(&mut self.0))
    }
}

fn is_escaped(line: &[u8], at: usize) -> bool {
    line[..at].iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
}

/// The node of `for=` in one element (RFC 7239 sections 4 and 6): an address with or without port, quoted if it has a
/// colon. `unknown` and identifiers of the proxy's own making are no addresses.
fn forwarded_for(element: &[u8]) -> Hop {
    // A `;` in quotes separates nothing: a sender's `Host` may be in there, in bytes that are no text.
    let (mut quoted, mut escaped) = (false, false);
    let pairs = element.split(|byte| {
        quoted ^= *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && quoted && !escaped;
        *byte == b';' && !quoted
    });
    let mut nodes = pairs.filter_map(|pair| {
        let (name, value) = pair.split_at(pair.iter().position(|byte| *byte == b'=')?);
        name.trim_ascii().eq_ignore_ascii_case(b"for").then_some(value)
    });
    let (Some(node), None) = (nodes.next(), nodes.next()) else { return None };
    let node = std::str::from_utf8(node).ok()?.strip_prefix('=')?.trim();
    parse_address(node.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(node))
}
