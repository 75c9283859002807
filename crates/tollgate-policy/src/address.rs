//! The text of a client's address, as gateways, proxies and sockets write it.
//!
//! Invariant: any text is an address or none; IPv4 has one form, whether it came mapped into IPv6 or not.

use std::net::IpAddr;

/// Longest text that can be an address: 45 characters of IPv6, a zone id, brackets and a port.
const MAX_BYTES: usize = 128;

/// The address in `192.0.2.1`, `192.0.2.1:5123`, `2001:db8::1`, `[2001:db8::1]:443` or `fe80::1%eth0`: port and brackets
/// are stripped, a zone id (RFC 4007, of meaning to one host only) is dropped, `::ffff:192.0.2.1` is `192.0.2.1`.
#[must_use]
pub fn parse(text: &str) -> Option<IpAddr> {
    if text.len() > MAX_BYTES {
        return None;
    }
    let text = text.trim();
    let (host, port) = match (text.strip_prefix('['), text.split_once(':')) {
        (Some(rest), _) => {
            rest.split_once(']').map(|(host, port)| (host, port.strip_prefix(':').or_else(|| no(port))))?
        }
        // IPv6 has two colons at least.
        (None, Some((host, port))) if !port.contains(':') => (host, Some(port)),
        (None, _) => (text, Some("0")),
    };
    port?.parse::<u16>().ok()?;
    let address = host.split_once('%').filter(|(v6, _)| v6.contains(':')).map_or(host, |(v6, _zone)| v6);
    address.parse().ok().map(|address: IpAddr| address.to_canonical())
}

/// The port of an address that has none.
fn no(port: &str) -> Option<&str> {
    port.is_empty().then_some("0")
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn an_address_is_found_in_any_way_of_writing_it() {
        let shown = |text: &str| parse(text).map(|address| address.to_string());
        for text in ["192.0.2.1", " 192.0.2.1 ", "192.0.2.1:5123", "::ffff:192.0.2.1", "[::ffff:c000:201]:80"] {
            assert_eq!(shown(text).as_deref(), Some("192.0.2.1"), "{text}");
        }
        for text in ["2001:db8::1", "2001:DB8:0:0::1", "[2001:db8::1]", "[2001:db8::1]:443", "2001:db8::1%eth0.100"] {
            assert_eq!(shown(text).as_deref(), Some("2001:db8::1"), "{text}");
        }
        let long = "1".repeat(65_536);
        for text in
            ["", "IP", "'{${print(1)}}'", "192.0.2.1:x", "192.0.2.1:70000", "[::1", "[::1]x", "1.2.3.4%e", &long]
        {
            assert_eq!(shown(text), None, "{text}");
        }
    }
}
