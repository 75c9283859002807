//! Addresses as text, and the headers that proxies write them into.
//!
//! Lines: choices (gateway, trust, header, whether CloudFront's id is there), the source address, what a client sent before
//! anything was appended, and the header's lines, each `x` (X-Forwarded-For), `f` (Forwarded) or `c`
//! (CloudFront-Viewer-Address) and its value; or `h`, what one proxy says in Forwarded: a choice of spelling, who asked it,
//! and after a blank the host that it was asked for, which is the sender's.
//!
//! What is read of Forwarded is known by how it was written (`h`), and nothing here takes one apart.

use crate::app::{counted_by, counting};
use crate::input::Input;
use lambda_http::Body;
use lambda_http::http::request::Parts;
use lambda_http::http::{HeaderMap, HeaderName, HeaderValue, Request};
use serde_json::json;
use std::net::{IpAddr, SocketAddr};
use std::sync::LazyLock;
use tollgate::LivePolicy;
use tollgate::http::Facts;
use tollgate::tollgate_policy::parse_address;

/// Checks that an address is read in one way, and that nobody left of the trusted part of a header chooses it.
///
/// # Panics
///
/// If one of these does not hold.
pub fn check(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let gateway = GATEWAYS[input.choice(GATEWAYS.len())];
    let (trust, listed) = (input.choice(TRUSTS.len()), input.choice(HEADERS.len()));
    let listed = if TRUSTS[trust] == Some(0) { 0 } else { listed };
    let behind_edge = input.choice(2) == 1;
    let source = input.text();
    let sent = input.line();
    let mut headers = HeaderMap::new();
    let mut forwarded = Forwarded::default();
    if behind_edge {
        headers.insert("x-amz-cf-id", HeaderValue::from_static("bPgA=="));
    }
    for line in input.lines() {
        if let Some((b'h', hop)) = line.split_first() {
            forwarded.append(hop);
            continue;
        }
        let Some((name, value)) = line.split_first().and_then(|(name, value)| Some((header(*name)?, value))) else {
            continue;
        };
        // A header has nothing around its value (RFC 9110 section 5.5).
        if let Ok(value) = HeaderValue::from_bytes(value.trim_ascii()) {
            spelling(&String::from_utf8_lossy(value.as_bytes()));
            headers.append(name, value);
        }
    }
    spelling(&source);
    forwarded.add_to(&mut headers);
    let request = Asked { gateway, trust, listed, source: &source, headers, forwarded };
    let found = request.address();
    if request.is_known() {
        assert_eq!(found, request.expected(), "{request:?}");
    }
    request.sender_chooses_nothing(sent, found);
}

/// An address is one whatever is around it, and what is read is an address to others, too.
fn spelling(text: &str) {
    let known = text.trim().parse::<IpAddr>().ok().or_else(|| Some(text.trim().parse::<SocketAddr>().ok()?.ip()));
    let Some(address) = parse_address(text) else {
        assert_eq!(known, None, "{text:?} is an address");
        return;
    };
    assert_eq!(address, address.to_canonical(), "{text:?}");
    if let Some(known) = known {
        assert_eq!(address, known.to_canonical(), "{text:?}");
    }
    let mut spellings = vec![format!(" {address}\t"), format!("[{address}]"), format!("[{address}]:443")];
    match address {
        IpAddr::V4(v4) => spellings.extend([format!("{v4}:5123"), format!("::ffff:{v4}"), format!("[::ffff:{v4}]:1")]),
        IpAddr::V6(v6) => spellings.extend([format!("{v6}%eth0"), v6.to_string().to_uppercase()]),
    }
    for spelling in spellings {
        assert_eq!(parse_address(&spelling), Some(address), "{spelling:?}");
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gateway {
    Rest,
    Http,
    Url,
    Balancer,
    Own,
}

const GATEWAYS: [Gateway; 5] = [Gateway::Rest, Gateway::Http, Gateway::Url, Gateway::Balancer, Gateway::Own];

/// Hops, or proxies where that is `None`.
const TRUSTS: [Option<usize>; 5] = [Some(0), Some(1), Some(2), Some(3), None];
/// The first is where the policy says none, as it must where it trusts nobody.
const HEADERS: [&str; 4] = ["", "X-Forwarded-For", "Forwarded", "CloudFront-Viewer-Address"];

static POLICIES: LazyLock<Vec<LivePolicy>> = LazyLock::new(|| {
    let one = |trust: &Option<usize>, header: &str| {
        let trust = trust.map_or_else(
            || "trusted_proxies = [\"10.0.0.0/8\", \"2001:db8::/32\"]".to_owned(),
            |hops| format!("trusted_hops = {hops}"),
        );
        let header = if header.is_empty() { String::new() } else { format!(", header = \"{header}\"") };
        counting(&format!("client_ip = {{ {trust}{header}, ipv6_prefix = 128 }}"), "client_ip")
    };
    let any = |trust: &Option<usize>| HEADERS.map(|header| one(trust, if *trust == Some(0) { "" } else { header }));
    TRUSTS.iter().flat_map(any).collect()
});

fn header(letter: u8) -> Option<HeaderName> {
    let name = match letter {
        b'x' => "x-forwarded-for",
        b'f' => "forwarded",
        b'c' => "cloudfront-viewer-address",
        _ => return None,
    };
    Some(HeaderName::from_static(name))
}

fn is_proxy(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.octets()[0] == 10,
        IpAddr::V6(v6) => v6.segments()[..2] == [0x2001, 0xdb8],
    }
}

/// A `Forwarded` header (RFC 7239) as proxies write it, and what it says.
#[derive(Debug, Clone, Default)]
struct Forwarded {
    lines: Vec<Vec<u8>>,
    /// Who asked each proxy, from the left.
    says: Vec<Option<IpAddr>>,
}

impl Forwarded {
    /// Another proxy's element, on a line of its own or on the last one.
    fn append(&mut self, hop: &[u8]) {
        let Some((style, rest)) = hop.split_first() else { return };
        let has = |bit: u8| style & (1 << bit) != 0;
        let (node, host) = rest.split_at(rest.iter().position(|byte| *byte == b' ').unwrap_or(rest.len()));
        let address = std::str::from_utf8(node).ok().and_then(|node| node.parse::<IpAddr>().ok());
        let port = if has(0) { ":4711" } else { "" };
        let node = match address {
            Some(IpAddr::V4(v4)) if port.is_empty() => v4.to_string(),
            Some(IpAddr::V4(v4)) => format!("\"{v4}{port}\""),
            Some(IpAddr::V6(v6)) => format!("\"[{v6}]{port}\""),
            None if has(0) => "_hidden".to_owned(),
            None => "unknown".to_owned(),
        };
        let node = format!("{}={node}", if has(1) { "For" } else { "for" }).into_bytes();
        // A quoted string (RFC 9110 section 5.6.4).
        let escaped = host.iter().flat_map(|byte| match byte {
            b'"' | b'\\' => vec![b'\\', *byte],
            _ => vec![*byte],
        });
        let host: Vec<u8> = b"host=\"".iter().copied().chain(escaped).chain(*b"\"").collect();
        let element = if has(2) { [host, node].join(&b';') } else { [node, b"proto=http".to_vec(), host].join(&b';') };
        // What no header can hold is no element.
        if HeaderValue::from_bytes(&element).is_err() {
            return;
        }
        match self.lines.last_mut().filter(|_| has(3)) {
            Some(line) => line.extend([b", ".as_slice(), &element].concat()),
            None => self.lines.push(element),
        }
        self.says.push(address.map(|address| address.to_canonical()));
    }

    fn add_to(&self, headers: &mut HeaderMap) {
        for line in self.lines.iter().filter_map(|line| HeaderValue::from_bytes(line).ok()) {
            headers.append("forwarded", line);
        }
    }
}

/// A request, and how the policy has its client's address found.
#[derive(Debug, Clone)]
struct Asked<'a> {
    gateway: Gateway,
    trust: usize,
    listed: usize,
    source: &'a str,
    headers: HeaderMap,
    forwarded: Forwarded,
}

impl Asked<'_> {
    fn facts(&self) -> Facts {
        let context = match self.gateway {
            Gateway::Rest => json!({ "identity": { "sourceIp": self.source } }),
            Gateway::Http => json!({ "http": { "sourceIp": self.source }, "domainName": "api.example.com" }),
            Gateway::Url => json!({ "http": { "sourceIp": self.source }, "domainName": "a.lambda-url.eu-x-1.on.aws" }),
            Gateway::Balancer => json!({ "elb": { "targetGroupArn": "arn:aws:elasticloadbalancing:x" } }),
            Gateway::Own => return Facts::default().with_source_address(self.source),
        };
        Facts::from_request_context(context.as_object().cloned().unwrap_or_default())
    }

    fn parts(&self) -> Parts {
        let request = Request::get("/counted").extension(self.facts()).body(()).expect("a request");
        let mut parts = request.into_parts().0;
        parts.headers = self.headers.clone();
        parts
    }

    /// What the layer counts the request by.
    fn address(&self) -> Option<IpAddr> {
        let policy = &POLICIES[self.trust * HEADERS.len() + self.listed];
        let counted = counted_by(policy, self.parts(), Body::Empty)?;
        Some(counted.trim_end_matches("/128").parse().expect("an address"))
    }

    fn source(&self) -> Option<IpAddr> {
        parse_address(self.source).filter(|_| self.gateway != Gateway::Balancer)
    }

    /// All lines of a header, as one list from the left.
    fn list(&self, name: &str) -> Vec<Option<IpAddr>> {
        if name == "forwarded" {
            return self.forwarded.says.clone();
        }
        let text = |entry: &[u8]| parse_address(std::str::from_utf8(entry).ok()?);
        let lines = self.headers.get_all(name).iter();
        lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b',').map(text)).collect()
    }

    /// Whether it is known by construction what the header says that the policy reads.
    fn is_known(&self) -> bool {
        let lines = self.headers.get_all("forwarded").iter().map(HeaderValue::as_bytes);
        self.read() != Some("forwarded") || lines.eq(self.forwarded.lines.iter().map(Vec::as_slice))
    }

    /// Which header the policy has read, by its lower-case name; `None` if nothing in any is believed.
    fn read(&self) -> Option<&'static str> {
        match (self.listed, self.headers.contains_key("x-forwarded-for"), self.headers.contains_key("forwarded")) {
            (0, true, true) if self.gateway == Gateway::Own => None,
            (0, false, true) if self.gateway == Gateway::Own => Some("forwarded"),
            (0 | 1, ..) => Some("x-forwarded-for"),
            (2, ..) => Some("forwarded"),
            _ => Some("cloudfront-viewer-address"),
        }
    }

    /// The same, in the words of the documentation and with everything in a vector.
    fn expected(&self) -> Option<IpAddr> {
        let source = self.source();
        let forwarded_for = self.list("x-forwarded-for");
        if self.read() == Some("cloudfront-viewer-address") {
            let peer = if self.gateway == Gateway::Balancer { forwarded_for.last().copied().flatten() } else { source };
            if TRUSTS[self.trust].is_none() && !is_proxy(peer?) {
                return peer;
            }
            let mut lines = self.headers.get_all("cloudfront-viewer-address").iter();
            let (line, None) = (lines.next()?, lines.next()) else { return None };
            let (address, port) = line.to_str().ok()?.trim().rsplit_once(':')?;
            port.parse::<u16>().ok()?;
            return parse_address(address);
        }
        let mut chain = match self.read() {
            Some("x-forwarded-for") => forwarded_for,
            Some(name) => self.list(name),
            None => vec![None],
        };
        chain.reverse();
        if self.read() == Some("x-forwarded-for") && source.is_some() {
            // What the gateway appended itself.
            match (self.gateway, chain.as_slice()) {
                (Gateway::Rest | Gateway::Http, [first, ..]) if *first == source => drop(chain.drain(..1)),
                (Gateway::Rest, [_, second, ..]) if *second == source => drop(chain.drain(..2)),
                _ => {}
            }
        }
        if self.gateway == Gateway::Url {
            chain = vec![None];
        }
        if self.gateway != Gateway::Balancer {
            chain.insert(0, source);
        }
        match TRUSTS[self.trust] {
            Some(hops) => {
                let written_by = chain.get(..hops)?;
                let unknown_peer = usize::from(self.gateway == Gateway::Own);
                written_by.iter().skip(unknown_peer).all(Option::is_some).then(|| chain.get(hops).copied())??
            }
            None => match chain.iter().find(|hop| hop.is_none_or(|address| !is_proxy(address))) {
                Some(hop) => *hop,
                None => chain.last().copied().flatten(),
            },
        }
    }

    /// Whatever a client sends is in front of what is appended behind it, and does not change who it is.
    fn sender_chooses_nothing(&self, sent: &[u8], found: Option<IpAddr>) {
        let Some(address) = found else { return };
        // Where all are proxies, the outermost did not say who asked it.
        if TRUSTS[self.trust].is_none() && is_proxy(address) {
            return;
        }
        let Some(name @ ("x-forwarded-for" | "forwarded")) = self.read() else { return };
        // A REST API always appends who asked it; without that, what looks like it may be the client's.
        let nearest: Vec<_> = self.list(name).into_iter().rev().take(2).collect();
        if self.gateway == Gateway::Rest && !nearest.contains(&self.source()) {
            return;
        }
        let lines: Vec<HeaderValue> = self.headers.get_all(name).iter().cloned().collect();
        let first = lines.first().map(HeaderValue::as_bytes).unwrap_or_default();
        let joined = HeaderValue::from_bytes(&[sent, b", ", first].concat());
        let apart = HeaderValue::from_bytes(sent);
        for (front, rest) in [(joined, lines.get(1..)), (apart, lines.get(..))] {
            let Ok(front) = front else { continue };
            let mut forged = self.clone();
            forged.headers.insert(name, front);
            for line in rest.unwrap_or_default() {
                forged.headers.append(name, line.clone());
            }
            let told = forged.address();
            // What a proxy leaves open is its own fault; the rest of the list then says nothing.
            assert!(told == found || (told.is_none() && !self.is_known()), "{told:?} instead of {found:?}: {forged:?}");
        }
    }
}
