//! The part of IPv6 that a forwarding data plane needs: a view of the header, and the hop limit.
//!
//! Source: RFC 8200 §3, §4.

use core::net::Ipv6Addr;

/// Length of the fixed header, octets.
pub const HEADER_LEN: usize = 40;
/// Next header: hop-by-hop options.
pub const HOP_BY_HOP: u8 = 0;
/// Next header: routing.
pub const ROUTING: u8 = 43;
/// Next header: fragment.
pub const FRAGMENT: u8 = 44;
/// Next header: ICMPv6.
pub const ICMPV6: u8 = 58;
/// Next header: destination options.
pub const DESTINATION_OPTIONS: u8 = 60;

/// An IPv6 packet whose fixed header is known to be complete.
#[derive(Clone, Copy, Debug)]
pub struct Ipv6View<'a> {
    header: [u8; HEADER_LEN],
    packet: &'a [u8],
}

impl<'a> Ipv6View<'a> {
    /// A view of `packet`; octets behind its payload length (padding of a short frame) are left out.
    ///
    /// `None` if the packet is not version 6, or is shorter than its header or its payload length. A jumbogram (payload
    /// length 0 with an option) counts as a header without payload here.
    #[must_use]
    pub fn new(packet: &'a [u8]) -> Option<Self> {
        let header = *packet.first_chunk::<HEADER_LEN>()?;
        if header[0] >> 4 != 6 {
            return None;
        }
        let payload = usize::from(u16::from_be_bytes([header[4], header[5]]));
        Some(Self {
            header,
            packet: packet.get(..HEADER_LEN + payload)?,
        })
    }
    /// The packet: header and payload, without padding.
    #[must_use]
    pub const fn packet(&self) -> &'a [u8] {
        self.packet
    }
    /// The octets behind the fixed header.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        self.packet.get(HEADER_LEN..).unwrap_or_default()
    }
    /// Hop limit.
    #[must_use]
    pub fn hop_limit(&self) -> u8 {
        self.header[7]
    }
    /// Kind of the header that follows.
    #[must_use]
    pub fn next_header(&self) -> u8 {
        self.header[6]
    }
    /// True in a fragment, and if the next header is one that routers look at or that may hide such a header.
    #[must_use]
    pub fn has_extensions(&self) -> bool {
        matches!(
            self.next_header(),
            HOP_BY_HOP | ROUTING | FRAGMENT | DESTINATION_OPTIONS
        )
    }
    /// Source address.
    #[must_use]
    pub fn source(&self) -> Ipv6Addr {
        self.address(8)
    }
    /// Destination address.
    #[must_use]
    pub fn destination(&self) -> Ipv6Addr {
        self.address(24)
    }
    fn address(&self, at: usize) -> Ipv6Addr {
        let octets = self.header.get(at..).and_then(|rest| rest.first_chunk());
        octets.map_or(Ipv6Addr::UNSPECIFIED, |octets: &[u8; 16]| {
            Ipv6Addr::from(*octets)
        })
    }
}

/// Decrements the hop limit of an IPv6 packet; `false` (and no change) if it is 0 or 1 or the header is not there.
#[must_use]
pub fn decrement_hop_limit(packet: &mut [u8]) -> bool {
    let Some(header) = packet.first_chunk_mut::<HEADER_LEN>() else {
        return false;
    };
    if header[7] <= 1 {
        return false;
    }
    header[7] -= 1;
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Hop limit 64, UDP, 2001:db8:1::10 to 2001:db8:2::20, four octets of payload.
    fn sample() -> Vec<u8> {
        let mut packet = vec![0x60, 0, 0, 0, 0, 4, 17, 64];
        for net in [1, 2] {
            packet.extend([0x20, 0x01, 0x0d, 0xb8, 0, net, 0, 0]);
            packet.extend([0, 0, 0, 0, 0, 0, 0, net * 0x10]);
        }
        packet.extend(*b"MPOA");
        packet
    }

    #[test]
    fn header_fields() {
        let mut padded = sample();
        padded.extend([0; 9]);
        let view = Ipv6View::new(&padded).unwrap();
        assert_eq!(view.packet(), sample());
        assert_eq!(view.payload(), b"MPOA");
        assert_eq!(view.source().to_string(), "2001:db8:1::10");
        assert_eq!(view.destination().to_string(), "2001:db8:2::20");
        assert_eq!((view.hop_limit(), view.next_header()), (64, 17));
        assert!(!view.has_extensions());
        for len in 0..sample().len() {
            assert!(Ipv6View::new(&sample()[..len]).is_none());
        }
        for next in [HOP_BY_HOP, ROUTING, FRAGMENT, DESTINATION_OPTIONS] {
            let mut packet = sample();
            packet[6] = next;
            assert!(Ipv6View::new(&packet).unwrap().has_extensions());
        }
        padded[0] = 0x45;
        assert!(Ipv6View::new(&padded).is_none());
    }

    #[test]
    fn hop_limit_ends_at_one() {
        let mut packet = sample();
        assert!(decrement_hop_limit(&mut packet));
        assert_eq!(packet[7], 63);
        for left in [0, 1] {
            packet[7] = left;
            assert!(!decrement_hop_limit(&mut packet));
            assert_eq!(packet[7], left);
        }
        assert!(!decrement_hop_limit(&mut []));
    }

    proptest! {
        #[test]
        fn never_panics(mut bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            if let Some(view) = Ipv6View::new(&bytes) {
                let _ = (view.payload(), view.source(), view.destination(), view.has_extensions());
            }
            let _ = decrement_hop_limit(&mut bytes);
        }
    }
}
