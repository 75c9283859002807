//! Addresses in blocks, and addresses that a header tells (Developer Guide, "Using forwarded IP addresses").

use super::Request;
use std::net::IpAddr;

/// What a header tells.
pub(super) enum Told {
    /// The request has no such header: WAF does not apply the rule at all.
    Absent,
    /// What is there is no address.
    Invalid,
    /// The addresses, in order.
    Addresses(Vec<IpAddr>),
}

/// What a header of the request tells.
pub(super) fn told(request: &Request, header: &str) -> Told {
    let mut values = request.values(header).peekable();
    if values.peek().is_none() {
        return Told::Absent;
    }
    let entries = values.flat_map(|value| value.split(',')).map(|entry| entry.trim().parse().ok());
    // One entry that is no address makes it all invalid.
    entries.collect::<Option<Vec<IpAddr>>>().map_or(Told::Invalid, Told::Addresses)
}

/// Whether an address is in a block like `192.0.2.0/24`; `None` if that is no block.
pub(super) fn is_in(address: IpAddr, block: &str) -> Option<bool> {
    let (network, prefix) = block.split_once('/')?;
    let (network, prefix): (IpAddr, u32) = (network.parse().ok()?, prefix.parse().ok()?);
    let differ = match (network, address) {
        (IpAddr::V4(network), IpAddr::V4(address)) => u128::from(network.to_bits() ^ address.to_bits()) << 96,
        (IpAddr::V6(network), IpAddr::V6(address)) => network.to_bits() ^ address.to_bits(),
        _ => return Some(false),
    };
    Some(differ.leading_zeros() >= prefix)
}
