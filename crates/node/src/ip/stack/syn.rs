//! Options of segments with SYN that a host sends or receives, changed on their way to and from smoltcp.
//!
//! smoltcp takes its maximum segment size from the MTU, and always offers window scaling and selective
//! acknowledgements. A host that is to do without has them removed in both directions, so that neither end believes
//! that the other one agreed. The checksum is changed by the difference (RFC 1624), so a segment that was damaged stays
//! damaged. A SYN without the option of the MSS stays without it, so such a peer gets segments of 536 octets (RFC 9293
//! §3.7.1) also from a host whose `mss` is less; every host of a lab sends the option.
//!
//! **Standards**: RFC 9293 §3.1 (options), 6691 (MSS), 7323 §2.2 (window scale), 2018 §2 (SACK permitted).

use crate::ip::tcp::TcpOptions;

/// What a host changes in segments with SYN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Syn {
    mss: Option<u16>,
    window_scaling: bool,
    sack: bool,
}

const END: u8 = 0;
const NOP: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;

impl Syn {
    /// What a host with these options changes; `None` if there is nothing to change.
    /// `mtu` is that of an interface with a smaller one than smoltcp knows.
    pub(super) fn of(options: &TcpOptions, mtu: Option<usize>) -> Option<Self> {
        /// Octets of the headers of IP and TCP without options (RFC 6691).
        const HEADERS: usize = 40;
        let &TcpOptions {
            mss,
            window_scaling,
            sack,
            ..
        } = options;
        let fits = mtu.map(|mtu| u16::try_from(mtu.saturating_sub(HEADERS)).unwrap_or(u16::MAX));
        let mss = [mss, fits].into_iter().flatten().min();
        let changes = mss.is_some() || !window_scaling || !sack;
        changes.then_some(Self {
            mss,
            window_scaling,
            sack,
        })
    }

    /// Changes the options of an IPv4 packet, if it is a TCP segment with SYN. What is not well formed stays as it is
    /// from there on.
    pub(super) fn apply(self, packet: &mut [u8]) {
        let Some(segment) = segment_with_syn(packet) else {
            return;
        };
        let end = usize::from(segment[12] >> 4) * 4;
        let mut at = 20;
        while let Some(&kind) = segment.get(at).filter(|_| at < end) {
            let length = match kind {
                END => return,
                NOP => 1,
                _ => match segment.get(at + 1) {
                    Some(&length) if length >= 2 && at + usize::from(length) <= end => {
                        usize::from(length)
                    }
                    _ => return,
                },
            };
            match (kind, length) {
                (MSS, 4) => {
                    let given = u16::from_be_bytes([segment[at + 2], segment[at + 3]]);
                    if let Some(most) = self.mss.filter(|most| *most < given) {
                        change(segment, at + 2, &most.to_be_bytes());
                    }
                }
                (WINDOW_SCALE, 3) if !self.window_scaling => change(segment, at, &[NOP; 3]),
                (SACK_PERMITTED, 2) if !self.sack => change(segment, at, &[NOP; 2]),
                _ => {}
            }
            at += length;
        }
    }
}

/// The TCP segment of an IPv4 packet, if it has SYN and its header is complete.
fn segment_with_syn(packet: &mut [u8]) -> Option<&mut [u8]> {
    const TCP: u8 = 6;
    const SYN: u8 = 0x02;
    let header = usize::from(*packet.first()? & 0x0f) * 4;
    let total = usize::from(u16::from_be_bytes([*packet.get(2)?, *packet.get(3)?]));
    // More fragments, or an offset: no whole segment.
    let fragment = u16::from_be_bytes([*packet.get(6)?, *packet.get(7)?]) & 0x3fff;
    if packet[0] >> 4 != 4 || header < 20 || *packet.get(9)? != TCP || fragment != 0 {
        return None;
    }
    let segment = packet.get_mut(header..total)?;
    let length = usize::from(*segment.get(12)? >> 4) * 4;
    let whole = length >= 20 && length <= segment.len();
    (whole && segment[13] & SYN != 0).then_some(segment)
}

/// Replaces octets of a segment, and changes its checksum by the difference: RFC 1624 equation 3.
fn change(segment: &mut [u8], at: usize, to: &[u8]) {
    const CHECKSUM: usize = 16;
    let mut sum = u32::from(!u16::from_be_bytes([
        segment[CHECKSUM],
        segment[CHECKSUM + 1],
    ]));
    // Octets at an even offset are the upper half of a 16-bit word.
    let weight =
        |at: usize, octet: u8| u32::from(octet) << if at.is_multiple_of(2) { 8 } else { 0 };
    for (index, &octet) in to.iter().enumerate() {
        let at = at + index;
        let old = core::mem::replace(&mut segment[at], octet);
        sum += 0xffff - weight(at, old) + weight(at, octet);
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    segment[CHECKSUM..CHECKSUM + 2].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use smoltcp::phy::ChecksumCapabilities;
    use smoltcp::wire::{
        IpAddress, IpProtocol, Ipv4Address, Ipv4Packet, Ipv4Repr, TcpControl, TcpPacket, TcpRepr,
        TcpSeqNumber, TcpTimestampRepr,
    };

    const A: Ipv4Address = Ipv4Address::new(10, 1, 0, 1);
    const B: Ipv4Address = Ipv4Address::new(10, 1, 0, 2);
    const PLAIN: Syn = Syn {
        mss: None,
        window_scaling: true,
        sack: true,
    };

    /// A segment as smoltcp makes it; with SYN it has all options.
    fn packet(control: TcpControl, mss: u16, stamped: bool) -> Vec<u8> {
        let syn = control == TcpControl::Syn;
        let tcp = TcpRepr {
            src_port: 7,
            dst_port: 8,
            control,
            seq_number: TcpSeqNumber(0x1234_5678),
            ack_number: None,
            window_len: 17,
            window_scale: syn.then_some(3),
            max_seg_size: syn.then_some(mss),
            sack_permitted: syn,
            sack_ranges: [None; 3],
            timestamp: stamped.then_some(TcpTimestampRepr::new(1, 2)),
            payload: &[],
        };
        let ip = Ipv4Repr {
            src_addr: A,
            dst_addr: B,
            next_header: IpProtocol::Tcp,
            payload_len: tcp.buffer_len(),
            hop_limit: 64,
        };
        let mut octets = vec![0; 20 + tcp.buffer_len()];
        let sums = ChecksumCapabilities::default();
        ip.emit(&mut Ipv4Packet::new_unchecked(&mut octets), &sums);
        let mut segment = TcpPacket::new_unchecked(&mut octets[20..]);
        tcp.emit(&mut segment, &A.into(), &B.into(), &sums);
        octets
    }

    /// MSS, window scale and SACK permitted, as smoltcp reads them; `None` if the checksum is wrong.
    fn read(octets: &[u8]) -> Option<(Option<u16>, Option<u8>, bool)> {
        let packet = Ipv4Packet::new_checked(octets).ok()?;
        let segment = TcpPacket::new_checked(packet.payload()).ok()?;
        let (a, b) = (IpAddress::Ipv4(A), IpAddress::Ipv4(B));
        let repr = TcpRepr::parse(&segment, &a, &b, &ChecksumCapabilities::default()).ok()?;
        Some((repr.max_seg_size, repr.window_scale, repr.sack_permitted))
    }

    #[test]
    fn options_are_changed_as_asked_and_the_checksum_stays_right() {
        for stamped in [false, true] {
            for (syn, expected) in [
                (PLAIN, (Some(1460), Some(3), true)),
                (
                    Syn {
                        mss: Some(536),
                        ..PLAIN
                    },
                    (Some(536), Some(3), true),
                ),
                (
                    Syn {
                        mss: Some(9000),
                        ..PLAIN
                    },
                    (Some(1460), Some(3), true),
                ),
                (
                    Syn {
                        window_scaling: false,
                        ..PLAIN
                    },
                    (Some(1460), None, true),
                ),
                (
                    Syn {
                        sack: false,
                        ..PLAIN
                    },
                    (Some(1460), Some(3), false),
                ),
            ] {
                let mut octets = packet(TcpControl::Syn, 1460, stamped);
                syn.apply(&mut octets);
                assert_eq!(read(&octets), Some(expected), "{syn:?}");
            }
        }
        let all = Syn {
            mss: Some(100),
            window_scaling: false,
            sack: false,
        };
        let mut data = packet(TcpControl::Psh, 1460, true);
        let before = data.clone();
        all.apply(&mut data);
        assert_eq!(data, before, "only segments with SYN have such options");
        let mut bad = packet(TcpControl::Syn, 1460, false);
        bad[20 + 4] ^= 1;
        all.apply(&mut bad);
        assert_eq!(read(&bad), None, "a damaged segment stays damaged");
    }

    proptest! {
        #[test]
        fn any_octets_are_taken(mut octets in proptest::collection::vec(any::<u8>(), 0..120), syn: bool) {
            let all = Syn { mss: Some(100), window_scaling: false, sack: false };
            if syn && octets.len() > 40 {
                octets[0] = 0x45;
                let len = octets.len() as u16;
                octets[2..4].copy_from_slice(&len.to_be_bytes());
                octets[6..8].fill(0);
                octets[9] = 6;
                octets[33] |= 2;
            }
            let len = octets.len();
            all.apply(&mut octets);
            prop_assert_eq!(octets.len(), len);
        }

        #[test]
        fn any_mss_is_limited_with_a_right_checksum(mss in 1u16.., most in 48u16..) {
            let mut octets = packet(TcpControl::Syn, mss, false);
            Syn { mss: Some(most), ..PLAIN }.apply(&mut octets);
            prop_assert_eq!(read(&octets).map(|read| read.0), Some(Some(mss.min(most))));
        }
    }
}
