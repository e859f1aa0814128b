//! IPv4 and IPv6 addresses and their prefixes.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Length of an address, bits: 32 or 128.
#[must_use]
pub const fn width(address: IpAddr) -> u8 {
    match address {
        IpAddr::V4(_) => 32,
        IpAddr::V6(_) => 128,
    }
}

/// An address with all bits behind its first `prefix` set to zero; unchanged if it has no more bits.
#[must_use]
pub fn masked(address: IpAddr, prefix: u8) -> IpAddr {
    let rest = u32::from(width(address).saturating_sub(prefix));
    match address {
        IpAddr::V4(ip) => {
            let mask = u32::MAX.checked_shl(rest).unwrap_or(0);
            Ipv4Addr::from_bits(ip.to_bits() & mask).into()
        }
        IpAddr::V6(ip) => {
            let mask = u128::MAX.checked_shl(rest).unwrap_or(0);
            Ipv6Addr::from_bits(ip.to_bits() & mask).into()
        }
    }
}

/// True if the first `prefix` bits of `address` and `network` agree; always false between IPv4 and IPv6.
#[must_use]
pub fn within(address: IpAddr, network: IpAddr, prefix: u8) -> bool {
    masked(address, prefix) == masked(network, prefix)
}

/// True for an address that a host on this network can have: it is in the network, and is neither the address of the
/// network itself nor its broadcast address. Networks of one or two addresses have only hosts.
///
/// Source: RFC 1122 §3.2.1.3, RFC 3021 (31 bits); RFC 4291 §2.6.1, RFC 6164 (IPv6: the first address is that of any
/// router).
#[must_use]
pub fn is_host_on(address: IpAddr, network: IpAddr, prefix: u8) -> bool {
    let whole = width(address);
    if !within(address, network, prefix) || prefix.saturating_add(1) >= whole {
        return within(address, network, prefix);
    }
    let last = match address {
        IpAddr::V4(ip) => ip.to_bits() | (u32::MAX >> prefix) == ip.to_bits(),
        IpAddr::V6(_) => false,
    };
    !last && masked(address, prefix) != address
}

/// True for a unicast address beyond the link: not unspecified, not loopback, not link-local for IPv6, not a group, not
/// the broadcast address.
#[must_use]
pub fn is_ordinary(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(ip) => !ip.is_multicast() && !ip.is_broadcast(),
        IpAddr::V6(ip) => {
            let special = ip.is_unspecified() || ip.is_loopback() || ip.is_multicast();
            !special && !ip.is_unicast_link_local()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect(text)
    }

    #[test]
    fn prefixes() {
        let [a, b] = [ip("10.2.0.20"), ip("10.2.0.21")];
        assert!(within(a, a, 32) && !within(a, b, 32));
        assert!(within(a, b, 31) && within(a, ip("255.255.255.255"), 0));
        assert!(!within(a, ip("10.3.0.0"), 16));
        assert!(within(a, a, 255) && !within(a, b, 255));
        let [a, b] = [ip("2001:db8:1::20"), ip("2001:db8:1::21")];
        assert!(within(a, a, 128) && !within(a, b, 128) && within(a, b, 127));
        assert!(within(a, ip("2001:db8:1::"), 64) && !within(a, ip("2001:db8:2::"), 64));
        assert!(within(a, ip("::"), 0) && !within(a, ip("0.0.0.0"), 0));
        assert_eq!(masked(a, 64), ip("2001:db8:1::"));
        assert_eq!(masked(ip("10.2.3.4"), 0), ip("0.0.0.0"));
    }

    #[test]
    fn hosts_of_networks() {
        for (address, network, prefix, can) in [
            ("10.5.0.77", "10.5.0.1", 24, true),
            ("10.5.0.0", "10.5.0.1", 24, false),
            ("10.5.0.255", "10.5.0.1", 24, false),
            ("10.5.1.1", "10.5.0.1", 24, false),
            ("10.5.0.255", "10.5.0.1", 16, true),
            ("10.5.255.255", "10.5.0.1", 16, false),
            ("10.5.0.0", "10.5.0.1", 31, true),
            ("10.5.0.2", "10.5.0.1", 31, false),
            ("10.5.0.1", "10.5.0.1", 32, true),
            ("10.5.0.2", "10.5.0.1", 32, false),
            ("255.255.255.255", "10.5.0.1", 0, false),
            ("0.0.0.0", "10.5.0.1", 0, false),
            ("2001:db8::1", "2001:db8::2", 64, true),
            ("2001:db8::", "2001:db8::2", 64, false),
            ("2001:db8::ffff:ffff:ffff:ffff", "2001:db8::2", 64, true),
            ("10.5.0.1", "2001:db8::2", 0, false),
        ] {
            let told = is_host_on(ip(address), ip(network), prefix);
            assert_eq!(told, can, "{address} on {network}/{prefix}");
        }
    }

    #[test]
    fn addresses_of_stations() {
        for text in ["10.2.0.20", "2001:db8::1", "fd00::1"] {
            assert!(is_ordinary(ip(text)), "{text}");
        }
        for text in [
            "224.0.0.1",
            "255.255.255.255",
            "ff02::1",
            "fe80::1",
            "::",
            "::1",
        ] {
            assert!(!is_ordinary(ip(text)), "{text}");
        }
    }
}
