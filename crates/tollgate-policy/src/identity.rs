//! Where the value of each key dimension comes from, and which of its spellings are one.
//!
//! Invariant: the built-in dimensions always have a source, and every other one is declared.

use crate::canonical::Fold;
use crate::device::Device;
use crate::network::Network;
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;

/// Where the value of a dimension comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Source {
    /// `claims.NAME`: a claim of the caller's verified token.
    Claim(String),
    /// `header.NAME`: a request header; the name is in lower case.
    Header(String),
    /// `query.NAME`: a parameter of the query string.
    Query(String),
    /// `path.NAME`: a parameter of the route's path, as in `/orders/{id}`.
    Path(String),
    /// `{ body = "NAME" }`: a top-level field of a JSON or form body.
    Body(String),
    /// `context.NAME`: a field of the gateway's request context.
    Context(String),
    /// `api_key`: the API key that the gateway accepted.
    ApiKey,
    /// A table with `trusted_hops` or `trusted_proxies`: the client's address.
    ClientIp(ClientIp),
    /// `{ cookie = "NAME", bound_to = "DIMENSION" }`: a device that is known by its token.
    Device(Device),
    /// `everyone`: the same value for every caller, [`Identity::EVERYONE`].
    Everyone,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Claim(name) => write!(f, "claims.{name}"),
            Self::Header(name) => write!(f, "header.{name}"),
            Self::Query(name) => write!(f, "query.{name}"),
            Self::Path(name) => write!(f, "path.{name}"),
            Self::Body(name) => write!(f, "body.{name}"),
            Self::Context(name) => write!(f, "context.{name}"),
            Self::ApiKey => f.write_str("api_key"),
            Self::ClientIp(_) => f.write_str("client_ip"),
            Self::Device(device) => write!(f, "cookie.{}", device.cookie),
            Self::Everyone => f.write_str("built in"),
        }
    }
}

/// A declared dimension.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Dimension {
    /// Where its value comes from.
    pub source: Source,
    /// Which spellings of a value are one.
    pub fold: Fold,
    /// Whether a value is about a person and goes into keys as a keyed hash only.
    pub personal: bool,
    /// How a line about a denial tells it; `None`: not at all.
    pub log: Option<Logged>,
}

/// How a line about a denial tells the value of a dimension: see [`Policy::logged`](crate::Policy::logged).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Logged {
    /// `plain`: as it is.
    Plain,
    /// `hashed`: as a reference that nobody can read without the key secrets.
    Hashed,
}

impl Logged {
    /// The dimensions that lines have room for, and no others: who buys, and not who is a person.
    pub const DIMENSIONS: [&str; 2] = ["tenant", "api_key"];
}

impl From<Source> for Dimension {
    fn from(source: Source) -> Self {
        Self { source, fold: Fold::None, personal: false, log: None }
    }
}

/// How the client's address is found and counted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientIp {
    /// Whose entries in a forwarding header are believed.
    pub trust: Trust,
    /// The header that those write; `None` is `X-Forwarded-For`, and `Forwarded` where there is only that.
    pub header: Option<AddressHeader>,
    /// IPv6 addresses with the same first `ipv6_prefix` bits, 1 to 128, are one client.
    pub ipv6_prefix: u8,
}

impl ClientIp {
    /// Bits of an IPv6 address that one subscriber gets at least: 64 (RFC 6177).
    pub const DEFAULT_IPV6_PREFIX: u8 = 64;
}

impl Default for ClientIp {
    fn default() -> Self {
        Self { trust: Trust::Hops(0), header: None, ipv6_prefix: Self::DEFAULT_IPV6_PREFIX }
    }
}

/// A header in which proxies tell who asked them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AddressHeader {
    /// `X-Forwarded-For`: a list that each proxy appends the address of its own client to.
    XForwardedFor,
    /// `Forwarded` (RFC 7239): the same with other facts about the hop.
    Forwarded,
    /// Any other, in lower case, like `cloudfront-viewer-address`: one address, which the proxy in front overwrites.
    Single(String),
}

/// Whose entries in a forwarding header are believed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trust {
    /// That many proxies before the gateway append to the header, 0 to 16; 0 trusts the gateway's own source address only.
    Hops(u8),
    /// Proxies with these addresses.
    Proxies(Vec<Cidr>),
}

/// A block of addresses, like `10.0.0.0/8`. No bit is set beyond the prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cidr {
    addr: IpAddr,
    prefix: u8,
}

impl Cidr {
    /// What counts as one client: an address by itself, or a block of them.
    #[must_use]
    pub fn of_client(text: &str) -> Option<Self> {
        let alone = |addr: IpAddr| Self { addr, prefix: if addr.is_ipv4() { 32 } else { 128 } };
        text.parse().ok().map(alone).or_else(|| Self::parse(text))
    }

    /// Parses `ADDRESS/PREFIX`; `None` if it is not that, the prefix is too long, or bits are set beyond it.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (addr, prefix) = text.split_once('/')?;
        let addr: IpAddr = addr.parse().ok()?;
        let prefix = prefix.bytes().all(|b| b.is_ascii_digit()).then(|| prefix.parse().ok())??;
        let cidr = Self { addr, prefix };
        (prefix <= cidr.width() && cidr.host_bits(addr) == Some(0)).then_some(cidr)
    }

    /// First address of the block.
    #[must_use]
    pub fn addr(&self) -> IpAddr {
        self.addr
    }

    /// Length of the prefix in bits: 0 to 32 for IPv4, 0 to 128 for IPv6.
    #[must_use]
    pub fn prefix(&self) -> u8 {
        self.prefix
    }

    /// Whether `ip` lies in the block. IPv4 and IPv6 never match each other.
    #[must_use]
    pub fn contains(&self, ip: IpAddr) -> bool {
        let network = |ip| Some(bits(ip) ^ self.host_bits(ip)?);
        self.addr.is_ipv4() == ip.is_ipv4() && network(ip) == network(self.addr)
    }

    /// Whether an address lies in both blocks.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.contains(other.addr) || other.contains(self.addr)
    }

    /// Whether every address of the block is of a kind that never crosses the internet.
    #[must_use]
    pub fn is_internal(&self) -> bool {
        let within = |block: &Self| block.prefix <= self.prefix && block.contains(self.addr);
        INTERNAL.iter().filter_map(|text| Self::parse(text)).any(|block| within(&block))
    }

    fn width(&self) -> u8 {
        if self.addr.is_ipv4() { 32 } else { 128 }
    }

    /// The bits of `ip` beyond the prefix.
    fn host_bits(&self, ip: IpAddr) -> Option<u128> {
        let free = u32::from(self.width().checked_sub(self.prefix)?);
        // A shift by 128 is no shift: then every bit is free.
        Some(bits(ip) & !u128::MAX.checked_shl(free).unwrap_or(0))
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.addr, self.prefix)
    }
}

/// Loopback, private (RFC 1918), shared by a carrier's NAT (RFC 6598), link-local (RFC 3927); loopback, unique local
/// (RFC 4193) and link-local (RFC 4291 section 2.5.6) of IPv6.
const INTERNAL: [&str; 9] = [
    "127.0.0.0/8",
    "10.0.0.0/8",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "100.64.0.0/10",
    "169.254.0.0/16",
    "::1/128",
    "fc00::/7",
    "fe80::/10",
];

/// Whether an address is of a kind that never crosses the internet, so that it is a proxy's, or a caller's of one's own
/// network: loopback, private, shared by a carrier's NAT, link-local, unique local.
#[must_use]
pub fn is_internal(address: IpAddr) -> bool {
    INTERNAL.iter().filter_map(|text| Cidr::parse(text)).any(|block| block.contains(address))
}

fn bits(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(v4) => u128::from(v4.to_bits()),
        IpAddr::V6(v6) => v6.to_bits(),
    }
}

/// All dimensions, by name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity(BTreeMap<String, Dimension>);

impl Identity {
    /// The value of the dimension `everyone`.
    pub const EVERYONE: &str = "all";

    pub(crate) fn declare(&mut self, name: &str, dimension: Dimension) {
        self.0.insert(name.to_owned(), dimension);
    }

    /// A dimension by name; `None` if the policy does not know it.
    #[must_use]
    pub fn dimension(&self, name: &str) -> Option<&Dimension> {
        self.0.get(name)
    }

    /// Where the value of a dimension comes from; `None` if the policy does not know it.
    #[must_use]
    pub fn source(&self, dimension: &str) -> Option<&Source> {
        Some(&self.dimension(dimension)?.source)
    }

    /// Where that comes from which decides whether a dimension has a value: of a device, the source of what it is bound to.
    /// `None` if the policy does not know the dimension.
    #[must_use]
    pub fn origin(&self, dimension: &str) -> Option<&Source> {
        match self.source(dimension)? {
            Source::Device(device) => self.source(&device.bound_to),
            source => Some(source),
        }
    }

    /// All dimensions, sorted by name.
    pub fn dimensions(&self) -> impl Iterator<Item = (&str, &Dimension)> + Clone {
        self.0.iter().map(|(name, dimension)| (name.as_str(), dimension))
    }

    /// How the client's address is found.
    #[must_use]
    pub fn client_ip(&self) -> ClientIp {
        match self.source("client_ip") {
            Some(Source::ClientIp(client_ip)) => client_ip.clone(),
            _ => ClientIp::default(),
        }
    }

    /// The one spelling of a dimension's value, whoever gives it: a request, a caller of the JSON API, an operator. An
    /// address is its network; a dimension that folds is folded; of everyone there is one; all else is as it is. Empty if nothing
    /// of the value counts.
    #[must_use]
    pub fn canonical(&self, dimension: &str, value: &str) -> String {
        match self.dimension(dimension) {
            Some(Dimension { source: Source::ClientIp(rule), .. }) => {
                Network::read(value, rule.ipv6_prefix).map_or_else(|| value.to_owned(), |network| network.to_string())
            }
            Some(Dimension { source: Source::Everyone, .. }) => Self::EVERYONE.to_owned(),
            Some(Dimension { fold, .. }) => fold.apply(value),
            None => value.to_owned(),
        }
    }
}

impl Default for Identity {
    fn default() -> Self {
        let claim = |name: &str| Source::Claim(name.to_owned());
        let built_in = [
            ("user", claim("sub")),
            ("tenant", claim("tenant")),
            ("plan", claim("plan")),
            ("session", claim("origin_jti")),
            ("api_key", Source::ApiKey),
            ("client_ip", Source::ClientIp(ClientIp::default())),
            ("everyone", Source::Everyone),
        ];
        Self(built_in.into_iter().map(|(name, source)| (name.to_owned(), source.into())).collect())
    }
}

#[cfg(test)]
#[allow(clippy::expect_used)]
mod tests {
    use super::{Cidr, is_internal};

    #[test]
    fn internal_addresses_are_those_that_never_cross_the_internet() {
        for ip in ["127.0.0.1", "10.1.2.3", "172.31.0.1", "192.168.1.1", "100.64.0.1", "169.254.1.1", "::1", "fd00::1"]
        {
            assert!(is_internal(ip.parse().expect(ip)), "{ip}");
        }
        for ip in ["8.8.8.8", "172.32.0.1", "100.128.0.1", "2001:db8::1", "::2"] {
            assert!(!is_internal(ip.parse().expect(ip)), "{ip}");
        }
        let internal = |block: &str| Cidr::parse(block).expect(block).is_internal();
        assert!(internal("10.0.0.0/8") && internal("10.9.0.0/16") && internal("fc00::/7") && internal("::1/128"));
        assert!(
            !internal("8.0.0.0/7") && !internal("0.0.0.0/0") && !internal("fc00::/6") && !internal("13.224.0.0/14")
        );
    }

    #[test]
    fn blocks_contain_their_addresses_and_no_others() {
        let holds = |block: &str, ip: &str| Cidr::parse(block).expect(block).contains(ip.parse().expect(ip));
        assert!(holds("10.0.0.0/8", "10.255.0.1"));
        assert!(!holds("10.0.0.0/8", "11.0.0.1"));
        assert!(holds("0.0.0.0/0", "203.0.113.9"));
        assert!(holds("::/0", "2001:db8::1"));
        assert!(holds("2001:db8::/32", "2001:db8:1::1"));
        assert!(holds("192.0.2.7/32", "192.0.2.7"));
        assert!(!holds("::/0", "203.0.113.9"));
        for wrong in ["10.0.0.1/8", "10.0.0.0", "10.0.0.0/33", "10.0.0.0/+8", "10.0.0.0/", "x/8", "::1/64", "::/129"] {
            assert_eq!(Cidr::parse(wrong), None, "{wrong}");
        }
    }
}
