//! The part of IPv4 that a forwarding data plane needs: a view of the header, and the TTL.
//!
//! Source: RFC 791 §3.1; RFC 1624 for the incremental checksum.

use crate::nhrp::internet_checksum;
use core::net::Ipv4Addr;

/// Smallest header, octets.
pub const HEADER_LEN: usize = 20;
/// IP protocol number of ICMP.
pub const ICMP: u8 = 1;
/// IP protocol number of TCP.
pub const TCP: u8 = 6;
/// IP protocol number of UDP.
pub const UDP: u8 = 17;

/// An IPv4 packet whose header is known to be complete.
#[derive(Clone, Copy, Debug)]
pub struct Ipv4View<'a> {
    header: [u8; HEADER_LEN],
    packet: &'a [u8],
}

impl<'a> Ipv4View<'a> {
    /// A view of `packet`; octets behind its total length (padding of a short frame) are left out.
    ///
    /// `None` if the packet is not version 4, or is shorter than its header length or its total length. The checksum is
    /// not verified here: see [`Self::checksum_ok`].
    #[must_use]
    pub fn new(packet: &'a [u8]) -> Option<Self> {
        let header = *packet.first_chunk::<HEADER_LEN>()?;
        let view = Self { header, packet };
        let total = usize::from(view.total_len());
        if header[0] >> 4 != 4 || view.header_len() < HEADER_LEN || total < view.header_len() {
            return None;
        }
        Some(Self {
            header,
            packet: packet.get(..total)?,
        })
    }
    /// The packet: header and payload, without padding.
    #[must_use]
    pub const fn packet(&self) -> &'a [u8] {
        self.packet
    }
    /// Header length, octets; more than 20 if there are options.
    #[must_use]
    pub fn header_len(&self) -> usize {
        usize::from(self.header[0] & 0x0f) * 4
    }
    /// True if the header carries options.
    #[must_use]
    pub fn has_options(&self) -> bool {
        self.header_len() > HEADER_LEN
    }
    /// Total length, octets.
    #[must_use]
    pub fn total_len(&self) -> u16 {
        u16::from_be_bytes([self.header[2], self.header[3]])
    }
    /// Time to live.
    #[must_use]
    pub fn ttl(&self) -> u8 {
        self.header[8]
    }
    /// IP protocol number.
    #[must_use]
    pub fn protocol(&self) -> u8 {
        self.header[9]
    }
    /// Offset of this fragment, octets; 0 in a whole packet and in a first fragment.
    #[must_use]
    pub fn fragment_offset(&self) -> u16 {
        (u16::from_be_bytes([self.header[6], self.header[7]]) & 0x1fff) * 8
    }
    /// True if more fragments follow.
    #[must_use]
    pub fn more_fragments(&self) -> bool {
        self.header[6] & 0x20 != 0
    }
    /// Source address.
    #[must_use]
    pub fn source(&self) -> Ipv4Addr {
        let [.., a, b, c, d, _, _, _, _] = self.header;
        Ipv4Addr::new(a, b, c, d)
    }
    /// Destination address.
    #[must_use]
    pub fn destination(&self) -> Ipv4Addr {
        let [.., a, b, c, d] = self.header;
        Ipv4Addr::new(a, b, c, d)
    }
    /// True if the header checksum is right.
    #[must_use]
    pub fn checksum_ok(&self) -> bool {
        self.packet
            .get(..self.header_len())
            .is_some_and(|h| internet_checksum(h) == 0)
    }
    /// The ECN field: 0, the sender cannot hear of congestion; 1 or 2, it can; 3, there was some. Source: RFC 3168 §5.
    #[must_use]
    pub fn ecn(&self) -> u8 {
        self.header[1] & CONGESTION_EXPERIENCED
    }
    /// Source and destination port of TCP and UDP; `None` in other protocols and in later fragments.
    #[must_use]
    pub fn ports(&self) -> Option<(u16, u16)> {
        if !matches!(self.protocol(), TCP | UDP) || self.fragment_offset() > 0 {
            return None;
        }
        let [a, b, c, d] = *self.packet.get(self.header_len()..)?.first_chunk::<4>()?;
        Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
    }
}

/// Decrements the TTL of an IPv4 packet and mends its checksum; `false` (and no change) if the TTL is 0 or 1
/// or the header is not there.
#[must_use]
pub fn decrement_ttl(packet: &mut [u8]) -> bool {
    let Some(header) = packet.first_chunk_mut::<HEADER_LEN>() else {
        return false;
    };
    if header[8] <= 1 {
        return false;
    }
    let old = u16::from_be_bytes([header[8], header[9]]);
    replace(header, 8, old - 0x100);
    true
}

/// The ECN field of a packet that met congestion. Source: RFC 3168 §5.
pub const CONGESTION_EXPERIENCED: u8 = 3;

/// Sets CE in an IPv4 packet whose sender can hear of it (ECT or CE), and mends its checksum; `false` (and no change)
/// for other packets, and for headers that are not whole or whose checksum is wrong. Source: RFC 3168 §5.
#[must_use]
pub fn mark_congestion(packet: &mut [u8]) -> bool {
    let marked = Ipv4View::new(packet).is_some_and(|view| view.ecn() != 0 && view.checksum_ok());
    let header = packet.first_chunk_mut::<HEADER_LEN>();
    let Some(header) = header.filter(|_| marked) else {
        return false;
    };
    let old = u16::from_be_bytes([header[0], header[1]]);
    replace(header, 0, old | u16::from(CONGESTION_EXPERIENCED));
    true
}

/// Replaces a word of a header and mends the checksum. Source: RFC 1624 equation 3: HC' = ~(~HC + ~m + m').
fn replace(header: &mut [u8; HEADER_LEN], at: usize, new: u16) {
    let old = u16::from_be_bytes([header[at], header[at + 1]]);
    [header[at], header[at + 1]] = new.to_be_bytes();
    let checksum = u16::from_be_bytes([header[10], header[11]]);
    let mut sum = u32::from(!checksum) + u32::from(!old) + u32::from(new);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    [header[10], header[11]] = (!(sum as u16)).to_be_bytes();
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The IP packet of packet 17 in `tests/vectors/mpoa/worked-sequence.hex`, before its TTL was decremented.
    fn sample() -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 0x20, 0x12, 0x34, 0, 0, 0x40, 0x11, 0x54, 0x79];
        packet.extend([10, 1, 0, 10, 10, 2, 0, 20]);
        packet.extend([0x0f, 0xa0, 0x0f, 0xa1, 0, 12, 0, 0, b'M', b'P', b'O', b'A']);
        packet
    }

    #[test]
    fn header_fields() {
        let mut padded = sample();
        padded.extend([0; 14]);
        let view = Ipv4View::new(&padded).unwrap();
        assert_eq!(view.packet(), sample());
        assert_eq!(view.source(), Ipv4Addr::new(10, 1, 0, 10));
        assert_eq!(view.destination(), Ipv4Addr::new(10, 2, 0, 20));
        assert_eq!(
            (view.ttl(), view.protocol(), view.ports()),
            (64, UDP, Some((4000, 4001)))
        );
        assert!(view.checksum_ok() && !view.has_options());
        assert!((view.fragment_offset(), view.more_fragments()) == (0, false));
        for len in 0..sample().len() {
            assert!(Ipv4View::new(&sample()[..len]).is_none());
        }
    }

    #[test]
    fn ttl_of_the_worked_sequence() {
        let mut packet = sample();
        assert!(decrement_ttl(&mut packet));
        assert_eq!(packet[8..12], [0x3f, 0x11, 0x55, 0x79]);
        packet[8] = 1;
        assert!(!decrement_ttl(&mut packet));
        assert_eq!(packet[8], 1);
        assert!(!decrement_ttl(&mut []));
    }

    #[test]
    fn a_damaged_header_is_not_marked() {
        let mut packet = sample();
        packet[1] = 2;
        let before = packet.clone();
        assert!(!mark_congestion(&mut packet) && packet == before);
        assert!(!mark_congestion(&mut packet[..12]));
    }

    proptest! {
        #[test]
        fn incremental_checksum_stays_right(mut header in prop::array::uniform20(any::<u8>())) {
            header[0] = 0x45;
            [header[2], header[3]] = [0, 20];
            [header[10], header[11]] = [0, 0];
            let sum = internet_checksum(&header);
            [header[10], header[11]] = sum.to_be_bytes();
            let before = header;
            if decrement_ttl(&mut header) {
                prop_assert_eq!(header[8], before[8] - 1);
                prop_assert_eq!(internet_checksum(&header), 0);
            } else {
                prop_assert!(before[8] <= 1);
                prop_assert_eq!(header, before);
            }
            let (before, ecn) = (header, header[1] & 3);
            prop_assert_eq!(mark_congestion(&mut header), ecn != 0);
            prop_assert_eq!(header[1], before[1] | if ecn == 0 { 0 } else { 3 });
            prop_assert_eq!((header[0], &header[2..10]), (before[0], &before[2..10]));
            prop_assert_eq!(internet_checksum(&header), 0);
        }
        #[test]
        fn never_panics(mut bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            if let Some(view) = Ipv4View::new(&bytes) {
                let _ = (view.ports(), view.checksum_ok(), view.source(), view.ttl());
            }
            let _ = decrement_ttl(&mut bytes);
            let _ = mark_congestion(&mut bytes);
        }
    }
}
