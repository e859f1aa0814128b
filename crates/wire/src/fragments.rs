//! IPv4 packets that are too big for the next network: fragments, and the ICMP message that names the MTU.
//!
//! Source: RFC 791 §3.2 (fragmentation), RFC 792 and RFC 1191 §4 (destination unreachable, fragmentation needed), RFC
//! 1812 §4.3.2 (about which packets an error may be sent, and how much of them it quotes).

use crate::ipv4::{self, HEADER_LEN, Ipv4View};
use crate::nhrp::internet_checksum;
use core::net::Ipv4Addr;

/// Smallest MTU that a network may have: a header of 60 octets and 8 octets of payload. Source: RFC 791 §3.2.
pub const LEAST_MTU: u16 = 68;
/// Octets of a payload that a fragment counts its offset in.
const UNIT: usize = 8;
/// Largest ICMP error, octets. Source: RFC 1812 §4.3.2.3.
const MOST_ERROR: usize = 576;
const ICMP_HEADER: usize = 8;

/// True if the sender does not allow fragments of this packet (DF).
#[must_use]
pub fn must_stay_whole(packet: &[u8]) -> bool {
    packet.get(6).is_some_and(|octet| octet & 0x40 != 0)
}

/// The options that each fragment carries: those whose copied flag is set. The result is a multiple of 4 octets long.
fn copied_options(options: &[u8]) -> Vec<u8> {
    const END: u8 = 0;
    const NOP: u8 = 1;
    let mut copied = Vec::new();
    let mut rest = options;
    while let [kind, ..] = *rest {
        let length = match (kind, rest.get(1)) {
            (END, _) => break,
            (NOP, _) => 1,
            (_, Some(length)) if (2..=rest.len()).contains(&usize::from(*length)) => {
                usize::from(*length)
            }
            _ => break,
        };
        let (option, behind) = rest.split_at(length);
        if kind & 0x80 != 0 {
            copied.extend(option);
        }
        rest = behind;
    }
    copied.resize(copied.len().next_multiple_of(4), END);
    copied
}

/// Cuts a packet into fragments of at most `mtu` octets, in order. A packet that fits is its own only fragment.
///
/// `None` if the packet is not whole ([`Ipv4View::new`]), must not be fragmented (DF), or would have fragments without
/// payload: `mtu` is below [`LEAST_MTU`].
#[must_use]
pub fn fragment(packet: &[u8], mtu: u16) -> Option<Vec<Vec<u8>>> {
    let view = Ipv4View::new(packet)?;
    let (packet, mtu) = (view.packet(), usize::from(mtu));
    if packet.len() <= mtu {
        return Some(vec![packet.to_vec()]);
    }
    if must_stay_whole(packet) || mtu < LEAST_MTU.into() {
        return None;
    }
    let (header, payload) = packet.split_at(view.header_len());
    let mut later = header.get(..HEADER_LEN)?.to_vec();
    later.extend(copied_options(header.get(HEADER_LEN..)?));
    let mut fragments = Vec::new();
    let mut rest = payload;
    let mut offset = usize::from(view.fragment_offset());
    while !rest.is_empty() {
        let header = if fragments.is_empty() { header } else { &later };
        let room = (mtu - header.len()) / UNIT * UNIT;
        let (piece, behind) = match rest.len() <= mtu - header.len() {
            true => (rest, &[][..]),
            false => rest.split_at(room),
        };
        let more = !behind.is_empty() || view.more_fragments();
        fragments.push(piece_of(header, piece, (offset, more)));
        offset += piece.len();
        rest = behind;
    }
    Some(fragments)
}

/// One fragment; `offset` in octets.
fn piece_of(header: &[u8], piece: &[u8], (offset, more): (usize, bool)) -> Vec<u8> {
    let mut out = [header, piece].concat();
    let total = out.len() as u16;
    let place = (offset / UNIT) as u16 & 0x1fff | u16::from(more) << 13;
    let words = (header.len() / 4) as u8;
    if let Some(head) = out.first_chunk_mut::<HEADER_LEN>() {
        head[0] = 0x40 | words;
        head[2..4].copy_from_slice(&total.to_be_bytes());
        head[6..8].copy_from_slice(&place.to_be_bytes());
    }
    seal(&mut out, header.len());
    out
}

/// Writes the checksum of a header of `length` octets.
fn seal(packet: &mut [u8], length: usize) {
    if let Some(sum) = packet.get_mut(10..12) {
        sum.fill(0);
    }
    let sum = internet_checksum(packet.get(..length).unwrap_or_default());
    if let Some(place) = packet.get_mut(10..12) {
        place.copy_from_slice(&sum.to_be_bytes());
    }
}

/// The ICMP message "fragmentation needed" with this MTU about a packet, from the address `from` to the packet's
/// source.
///
/// `None` if no error may be sent about the packet: it is not whole, a later fragment, an ICMP message other than an
/// echo, or from or to no single host.
#[must_use]
pub fn fragmentation_needed(packet: &[u8], mtu: u16, from: Ipv4Addr) -> Option<Vec<u8>> {
    let view = Ipv4View::new(packet)?;
    let single = |ip: Ipv4Addr| {
        !(ip.is_unspecified() || ip.is_multicast() || ip.is_broadcast() || ip.is_loopback())
    };
    let payload = view.packet().get(view.header_len()..)?;
    let is_error = view.protocol() == ipv4::ICMP && !matches!(payload.first(), Some(0 | 8));
    if view.fragment_offset() > 0 || is_error || !single(view.source()) {
        return None;
    }
    if !single(view.destination()) {
        return None;
    }
    let most = MOST_ERROR - HEADER_LEN - ICMP_HEADER;
    let quoted = view.packet().get(..most).unwrap_or(view.packet());
    let total = (HEADER_LEN + ICMP_HEADER + quoted.len()) as u16;
    let mut out = vec![0x45, 0, 0, 0, 0, 0, 0, 0, 64, ipv4::ICMP, 0, 0];
    out.extend(from.octets());
    out.extend(view.source().octets());
    if let Some(length) = out.get_mut(2..4) {
        length.copy_from_slice(&total.to_be_bytes());
    }
    seal(&mut out, HEADER_LEN);
    // Type 3, code 4, checksum, unused, MTU of the next network.
    out.extend([3, 4, 0, 0, 0, 0]);
    out.extend(mtu.to_be_bytes());
    out.extend(quoted);
    let sum = internet_checksum(out.get(HEADER_LEN..).unwrap_or_default());
    if let Some(place) = out.get_mut(HEADER_LEN + 2..HEADER_LEN + 4) {
        place.copy_from_slice(&sum.to_be_bytes());
    }
    Some(out)
}

/// The destination and the MTU that a message of [`fragmentation_needed`] is about, if `packet` is such a message and
/// quotes a packet of `own`. An MTU below [`LEAST_MTU`] is raised to it; 0, of a router before RFC 1191, counts as 576.
#[must_use]
pub fn needs_fragments(packet: &[u8], own: impl Fn(Ipv4Addr) -> bool) -> Option<(Ipv4Addr, u16)> {
    let view = Ipv4View::new(packet)?;
    let message = view.packet().get(view.header_len()..)?;
    let head = message.first_chunk::<ICMP_HEADER>()?;
    let whole = view.fragment_offset() == 0 && !view.more_fragments();
    let is_this = view.protocol() == ipv4::ICMP && head[..2] == [3, 4];
    if !whole || !is_this || internet_checksum(message) != 0 {
        return None;
    }
    let quoted = message
        .get(ICMP_HEADER..)?
        .first_chunk::<HEADER_LEN>()
        .filter(|quoted| quoted[0] >> 4 == 4)?;
    let [.., a, b, c, d, e, f, g, h] = *quoted;
    if !own(Ipv4Addr::new(a, b, c, d)) {
        return None;
    }
    let mtu = match u16::from_be_bytes([head[6], head[7]]) {
        0 => 576,
        given => given.max(LEAST_MTU),
    };
    Some((Ipv4Addr::new(e, f, g, h), mtu))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A UDP packet with these options and payload.
    fn packet(options: &[u8], payload: &[u8], df: bool) -> Vec<u8> {
        let header = HEADER_LEN + options.len();
        let total = ((header + payload.len()) as u16).to_be_bytes();
        let mut out = vec![0x40 | (header / 4) as u8, 0, total[0], total[1], 0x12, 0x34];
        out.extend([u8::from(df) << 6, 0, 63, ipv4::UDP, 0, 0]);
        out.extend([10, 1, 0, 10, 10, 2, 0, 20]);
        out.extend(options);
        seal(&mut out, header);
        out.extend(payload);
        out
    }

    /// The example of RFC 791 §3.2 and appendix A (example 2): 472 octets of data over a network that takes 280.
    #[test]
    fn the_example_of_rfc_791() {
        let data: Vec<u8> = (0..452).map(|n| n as u8).collect();
        let whole = packet(&[], &data, false);
        assert_eq!(whole.len(), 472);
        let parts = fragment(&whole, 280).unwrap();
        let views: Vec<_> = parts.iter().map(|p| Ipv4View::new(p).unwrap()).collect();
        let told = views.iter().map(|view| {
            let offset = view.fragment_offset() / 8;
            (view.total_len(), view.more_fragments(), offset)
        });
        assert_eq!(told.collect::<Vec<_>>(), [(276, true, 0), (216, false, 32)]);
        assert!(views.iter().all(Ipv4View::checksum_ok));
    }

    #[test]
    fn options_with_the_copied_flag_are_in_all_fragments() {
        // Router alert (copied) and record route (not copied).
        let options = [0x94, 4, 0, 0, 7, 7, 4, 0, 0, 0, 0, 0];
        let parts = fragment(&packet(&options, &[9; 100], false), 92).unwrap();
        let lengths = parts.iter().map(|p| Ipv4View::new(p).unwrap().header_len());
        assert_eq!(lengths.collect::<Vec<_>>(), [32, 24]);
        assert_eq!(parts[1][20..24], [0x94, 4, 0, 0]);
    }

    #[test]
    fn what_must_stay_whole_does() {
        let whole = packet(&[], &[1; 600], true);
        assert!(must_stay_whole(&whole));
        assert_eq!(fragment(&whole, 576), None);
        assert_eq!(fragment(&whole, 620).unwrap(), std::slice::from_ref(&whole));
        assert_eq!(fragment(&packet(&[], &[1; 600], false), 67), None);
    }

    #[test]
    fn the_message_names_the_mtu_and_the_packet() {
        let hop = Ipv4Addr::new(10, 1, 0, 1);
        let whole = packet(&[], &[1; 1400], true);
        let told = fragmentation_needed(&whole, 576, hop).unwrap();
        let view = Ipv4View::new(&told).unwrap();
        assert!(view.checksum_ok() && told.len() == 576);
        assert_eq!(
            (view.source(), view.destination()),
            (hop, Ipv4Addr::new(10, 1, 0, 10))
        );
        assert_eq!(told[20..22], [3, 4]);
        assert_eq!(told[26..28], 576_u16.to_be_bytes());
        assert_eq!(internet_checksum(&told[20..]), 0);
        assert_eq!(told[28..], whole[..548]);
        let far = Ipv4Addr::new(10, 2, 0, 20);
        let own = |ip: Ipv4Addr| ip == Ipv4Addr::new(10, 1, 0, 10);
        assert_eq!(needs_fragments(&told, own), Some((far, 576)));
        assert_eq!(
            needs_fragments(&told, |ip| ip == far),
            None,
            "not of this host"
        );
        // No error about an error, or about a later fragment.
        assert_eq!(fragmentation_needed(&told, 100, hop), None);
        let mut later = whole;
        later[7] = 1;
        assert_eq!(fragmentation_needed(&later, 576, hop), None);
    }

    proptest! {
        #[test]
        fn fragments_of_fragments_make_the_packet_again(
            payload in prop::collection::vec(any::<u8>(), 1..3000),
            words in 0..4_usize,
            mtus in prop::collection::vec(LEAST_MTU..2000, 1..4),
        ) {
            let whole = packet(&vec![1; words * 4], &payload, false);
            let mut parts = vec![whole.clone()];
            for mtu in mtus {
                let cut = parts.iter().flat_map(|part| fragment(part, mtu).unwrap());
                let cut: Vec<_> = cut.collect();
                prop_assert!(cut.iter().all(|part| part.len() <= mtu.into()));
                parts = cut;
            }
            let mut got: Vec<u8> = Vec::new();
            for (n, part) in parts.iter().enumerate() {
                let view = Ipv4View::new(part).unwrap();
                prop_assert!(view.checksum_ok());
                prop_assert_eq!(usize::from(view.fragment_offset()), got.len());
                prop_assert_eq!(view.more_fragments(), n + 1 < parts.len());
                got.extend(&part[view.header_len()..]);
            }
            prop_assert_eq!(got, payload);
        }
        #[test]
        fn never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200), mtu in any::<u16>()) {
            let _ = fragmentation_needed(&bytes, mtu, Ipv4Addr::LOCALHOST);
            let _ = needs_fragments(&bytes, |_| true);
            for part in fragment(&bytes, mtu).unwrap_or_default() {
                prop_assert!(Ipv4View::new(&part).is_some());
            }
        }
    }
}
