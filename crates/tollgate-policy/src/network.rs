//! A client's address as a limiter counts it: IPv4 whole, IPv6 by its prefix, since one subscriber holds a whole prefix.
//!
//! Invariant: two addresses are the same network exactly if their texts are the same.

use crate::address::parse as parse_address;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The value of the dimension `client_ip`: `192.0.2.1`, or a network like `2001:db8::/64`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Network(Kind);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Kind {
    V4(Ipv4Addr),
    V6(Ipv6Addr, u8),
}

impl Network {
    /// The network of `address`. An IPv4-mapped address (`::ffff:192.0.2.1`) is that IPv4 address. `ipv6_prefix` is in
    /// bits; more than 128 counts as 128.
    #[must_use]
    pub fn of(address: IpAddr, ipv6_prefix: u8) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self(Kind::V4(address)),
            IpAddr::V6(address) => {
                let prefix = ipv6_prefix.min(128);
                // Shifting by the whole width is not defined, so a prefix of 0 has a mask of its own.
                let mask = u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0);
                Self(Kind::V6(Ipv6Addr::from_bits(address.to_bits() & mask), prefix))
            }
        }
    }

    /// The network of an address in any way of writing it (see [`parse_address`]), or of a network that was shown. `None`
    /// if the text is neither, or names a network that is larger than `ipv6_prefix` bits make it.
    #[must_use]
    pub fn read(text: &str, ipv6_prefix: u8) -> Option<Self> {
        let Some((address, given)) = text.split_once('/') else {
            return parse_address(text).map(|address| Self::of(address, ipv6_prefix));
        };
        let given = given.parse::<u8>().ok().filter(|given| (ipv6_prefix..=128).contains(given));
        let address: Ipv6Addr = address.parse().ok()?;
        given.map(|_| Self::of(IpAddr::V6(address), ipv6_prefix))
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Kind::V4(address) => address.fmt(f),
            Kind::V6(address, prefix) => write!(f, "{address}/{prefix}"),
        }
    }
}
