//! Frames are built by etherparse, changed as a kernel does for offload, completed here, and checked by etherparse
//! again.

use super::*;
use etherparse::{NetSlice, PacketBuilder, SlicedPacket, TransportSlice};
use proptest::prelude::*;

const MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];

fn tcp_v4(payload: &[u8]) -> Vec<u8> {
    let builder = PacketBuilder::ethernet2(MAC, MAC)
        .ipv4([10, 1, 0, 1], [10, 1, 0, 2], 64)
        .tcp(40_000, 5001, 0xffff_fff0, 8192)
        .ack(7)
        .psh()
        .fin()
        .cwr();
    let mut frame = Vec::new();
    builder.write(&mut frame, payload).expect("fits");
    frame
}

fn udp_v6(payload: &[u8]) -> Vec<u8> {
    let builder = PacketBuilder::ethernet2(MAC, MAC)
        .ipv6([0xfd; 16], [0xfe; 16], 64)
        .udp(9000, 9001);
    let mut frame = Vec::new();
    builder.write(&mut frame, payload).expect("fits");
    frame
}

fn udp_v4(payload: &[u8]) -> Vec<u8> {
    let builder = PacketBuilder::ethernet2(MAC, MAC)
        .ipv4([10, 1, 0, 1], [10, 1, 0, 2], 64)
        .udp(9000, 9001);
    let mut frame = Vec::new();
    builder.write(&mut frame, payload).expect("fits");
    frame
}

/// Sequence number, and PSH, FIN, CWR.
type TcpPart = (u32, [bool; 3]);

/// The fields that etherparse finds: payload, IPv4 identification, and fields of TCP. All checksums are verified.
fn judge(frame: &[u8]) -> (Vec<u8>, Option<u16>, Option<TcpPart>) {
    let sliced = SlicedPacket::from_ethernet(frame).expect("well formed");
    let transport = sliced.transport.expect("a transport");
    match sliced.net.expect("an IP header") {
        NetSlice::Ipv4(ip) => {
            let header = ip.header().to_header();
            assert_eq!(header.header_checksum, header.calc_header_checksum());
            assert_eq!(usize::from(header.total_len), frame.len() - 14);
            let ident = Some(header.identification);
            match transport {
                TransportSlice::Tcp(tcp) => {
                    let t = tcp.to_header();
                    assert_eq!(Ok(t.checksum), t.calc_checksum_ipv4(&header, tcp.payload()));
                    let flags = [t.psh, t.fin, t.cwr];
                    (
                        tcp.payload().to_vec(),
                        ident,
                        Some((t.sequence_number, flags)),
                    )
                }
                TransportSlice::Udp(udp) => {
                    let t = udp.to_header();
                    assert_eq!(Ok(t.checksum), t.calc_checksum_ipv4(&header, udp.payload()));
                    assert_eq!(usize::from(t.length), udp.payload().len() + 8);
                    (udp.payload().to_vec(), ident, None)
                }
                other => panic!("{other:?}"),
            }
        }
        NetSlice::Ipv6(ip) => {
            let header = ip.header().to_header();
            match transport {
                TransportSlice::Tcp(tcp) => {
                    let t = tcp.to_header();
                    assert_eq!(Ok(t.checksum), t.calc_checksum_ipv6(&header, tcp.payload()));
                    let flags = [t.psh, t.fin, t.cwr];
                    (
                        tcp.payload().to_vec(),
                        None,
                        Some((t.sequence_number, flags)),
                    )
                }
                TransportSlice::Udp(udp) => {
                    let t = udp.to_header();
                    assert_eq!(Ok(t.checksum), t.calc_checksum_ipv6(&header, udp.payload()));
                    (udp.payload().to_vec(), None, None)
                }
                other => panic!("{other:?}"),
            }
        }
        NetSlice::Arp(_) => panic!("not IP"),
    }
}

/// Stores the sum of the pseudo header where a kernel leaves it.
fn leave_pseudo_header(frame: &mut [u8], start: usize, offset: usize, protocol: u8) {
    let addresses = if start == 34 { 26..34 } else { 22..54 };
    let length = (frame.len() - start) as u32;
    let sum = add(add(0, &frame[addresses]), &length.to_be_bytes()) + u64::from(protocol);
    write_u16(frame, start + offset, fold(sum)).expect("inside");
}

#[test]
fn header_layout() {
    // flags NEEDS_CSUM, TCPv4 with ECN, hdr_len 54, gso_size 1448, csum_start 34, csum_offset 16.
    let octets = [1, 0x81, 54, 0, 0xa8, 0x05, 34, 0, 16, 0, 1, 0];
    let expected = VnetHeader {
        needs_csum: true,
        gso_type: GsoType::TcpV4,
        gso_size: 1448,
        csum_start: 34,
        csum_offset: 16,
        hdr_len: 54,
    };
    assert_eq!(VnetHeader::decode(&octets), Ok(expected));
    assert_eq!(expected.encode(true), octets[..10]);
    assert_eq!(VnetHeader::decode(&octets[..9]), Err(OffloadError::Header));
    assert_eq!(
        VnetHeader::decode(&[0, 3, 0, 0, 0, 0, 0, 0, 0, 0]),
        Err(OffloadError::Header)
    );
}

#[test]
fn partial_checksums_are_finished() {
    for (mut frame, start, offset, protocol) in [
        (tcp_v4(b"odd"), 34, 16, 6),
        (udp_v4(b"even"), 34, 6, 17),
        (udp_v6(b"odd"), 54, 6, 17),
    ] {
        let whole = frame.clone();
        leave_pseudo_header(&mut frame, start, offset, protocol);
        assert_ne!(frame, whole);
        let header = VnetHeader {
            needs_csum: true,
            csum_start: start as u16,
            csum_offset: offset as u16,
            ..VnetHeader::default()
        };
        assert_eq!(complete(&header, &frame), Ok(vec![whole]));
    }
}

#[test]
fn ordinary_frames_pass_unchanged() {
    let frame = udp_v4(b"as it is");
    assert_eq!(
        complete(&VnetHeader::default(), &frame),
        Ok(vec![frame.clone()])
    );
}

#[test]
fn tcp_is_cut_into_segments() {
    let payload: Vec<u8> = (0..10_001u32).map(|n| (n % 251) as u8).collect();
    let frame = tcp_v4(&payload);
    let header = VnetHeader {
        gso_type: GsoType::TcpV4,
        gso_size: 1448,
        needs_csum: true,
        ..Default::default()
    };
    let segments = complete(&header, &frame).expect("a super frame");
    assert_eq!(segments.len(), 7);
    let mut together = Vec::new();
    for (number, segment) in segments.iter().enumerate() {
        let (part, ident, tcp) = judge(segment);
        let (sequence, [psh, fin, cwr]) = tcp.expect("TCP");
        assert_eq!(
            sequence,
            0xffff_fff0u32.wrapping_add(together.len() as u32),
            "across the wrap"
        );
        let (first, last) = (number == 0, number == 6);
        assert_eq!((psh, fin, cwr), (last, last, first));
        assert_eq!(
            ident,
            judge(&segments[0]).1.map(|i| i.wrapping_add(number as u16))
        );
        together.extend(part);
    }
    assert_eq!(together, payload);
}

#[test]
fn frames_that_are_not_what_the_header_says_are_refused() {
    let tcp = tcp_v4(&[0; 3000]);
    let header = |gso_type, gso_size| VnetHeader {
        gso_type,
        gso_size,
        ..Default::default()
    };
    for (header, frame) in [
        (header(GsoType::TcpV6, 1000), &tcp[..]),
        (header(GsoType::UdpL4, 1000), &tcp[..]),
        (header(GsoType::TcpV4, 0), &tcp[..]),
        (header(GsoType::TcpV4, 1000), &tcp[..40]),
        (header(GsoType::TcpV4, 1000), &tcp[..1000]),
        (header(GsoType::None, 0), &tcp[..5]),
        (
            VnetHeader {
                needs_csum: true,
                csum_start: 5000,
                ..Default::default()
            },
            &tcp[..],
        ),
    ] {
        assert_eq!(
            complete(&header, frame),
            Err(OffloadError::Frame),
            "{header:?}"
        );
    }
}

proptest! {
    #[test]
    fn datagrams_of_any_size_come_out_whole(
        payload in proptest::collection::vec(any::<u8>(), 1..5000),
        size in 4u16..2000,
        v6 in any::<bool>(),
    ) {
        let frame = if v6 { udp_v6(&payload) } else { udp_v4(&payload) };
        let header = VnetHeader { gso_type: GsoType::UdpL4, gso_size: size, ..Default::default() };
        let segments = complete(&header, &frame).expect("a super frame");
        let mut together = Vec::new();
        for segment in &segments {
            together.extend(judge(segment).0);
        }
        prop_assert_eq!(together, payload);
    }

    /// Any consecutive segments given to a kernel as one frame stand for the same segments.
    #[test]
    fn parts_of_a_super_frame_have_the_same_segments(
        payload in proptest::collection::vec(any::<u8>(), 1..5000),
        size in 4u16..2000,
        kind in 0usize..3,
        (a, b) in any::<(u16, u16)>(),
    ) {
        let (frame, gso_type) = [
            (tcp_v4(&payload), GsoType::TcpV4),
            (udp_v4(&payload), GsoType::UdpL4),
            (udp_v6(&payload), GsoType::UdpL4),
        ][kind].clone();
        let header = VnetHeader { gso_type, gso_size: size, ..Default::default() };
        let whole = SuperFrame::new(&header, frame.clone(), 0).expect("a super frame");
        let all: Vec<Vec<u8>> = whole.segments().collect();
        prop_assert_eq!(all.len(), whole.count());
        let cut = [usize::from(a) % all.len(), usize::from(b) % all.len()];
        let (first, last) = (cut[0].min(cut[1]), cut[0].max(cut[1]));
        let part = whole.part(&frame[..14], first..last + 1);
        let vnet = VnetHeader::decode(&part.vnet).expect("good");
        prop_assert!(vnet.needs_csum);
        let again = complete(&vnet, &[&part.headers[..], part.payload].concat());
        prop_assert_eq!(again.expect("a frame"), &all[first..=last]);
        prop_assert_eq!(whole.length_of(first..last + 1), all[first..=last].iter().map(Vec::len).sum());
    }

    #[test]
    fn an_encapsulated_super_frame_has_the_same_segments_behind_its_header(
        payload in proptest::collection::vec(any::<u8>(), 1..5000),
        size in 4u16..2000,
        header in proptest::collection::vec(any::<u8>(), 0..40),
        ethernet in any::<bool>(),
    ) {
        let vnet = VnetHeader { gso_type: GsoType::TcpV4, gso_size: size, ..Default::default() };
        let frame = tcp_v4(&payload);
        let plain: Vec<Vec<u8>> = SuperFrame::new(&vnet, frame.clone(), 0).expect("good").segments().collect();
        let mut whole = SuperFrame::new(&vnet, [vec![0; 20], frame].concat(), 20).expect("good");
        let at = if ethernet { 14 } else { 0 };
        let room = header.len() <= 20 + at;
        prop_assert_eq!(whole.encapsulate(&header, at, 70), room);
        for (index, (sdu, frame)) in whole.segments().zip(plain).enumerate().filter(|_| room) {
            let mut want = [&header[..], &frame[at..]].concat();
            want.resize(want.len().max(70), 0);
            prop_assert_eq!(whole.length(index), want.len());
            prop_assert_eq!(sdu, want);
        }
    }

    /// Headers that lie about a TCP segment are refused, or give no more octets than one header for each segment.
    #[test]
    fn lying_headers_are_bounded(
        octets in proptest::collection::vec(any::<u8>(), 10),
        payload in 0usize..3000,
        flips in proptest::collection::vec((0usize..60, any::<u8>()), 0..4),
    ) {
        let mut frame = tcp_v4(&vec![7; payload]);
        for (at, value) in flips {
            frame[at % 54] = value;
        }
        if let Ok(header) = VnetHeader::decode(&octets)
            && let Ok(frames) = complete(&header, &frame)
        {
            prop_assert!(frames.len() <= 1366);
        }
    }

    #[test]
    fn no_octets_panic(
        header in proptest::collection::vec(any::<u8>(), 0..14),
        mut frame in proptest::collection::vec(any::<u8>(), 0..200),
        kind in 0usize..3,
    ) {
        if frame.len() > 24 {
            let ethertype = [[8, 0], [0x86, 0xdd], [8, 6]][kind];
            frame[12..14].copy_from_slice(&ethertype);
            frame[14] = 0x45;
            frame[23] = 6;
        }
        if let Ok(header) = VnetHeader::decode(&header) {
            let _ = complete(&header, &frame);
        }
    }
}
