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
