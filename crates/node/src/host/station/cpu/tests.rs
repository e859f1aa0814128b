use super::*;
use crate::atm::Pdu;
use proptest::prelude::*;

/// A TCP segment with these octets of payload, as an IPv4 packet.
fn segment(payload: usize) -> Vec<u8> {
    let mut packet = vec![0; 40 + payload];
    packet[0] = 0x45;
    packet[2..4].copy_from_slice(&(40 + payload as u16).to_be_bytes());
    packet[9] = 6;
    packet[32] = 5 << 4;
    packet
}

fn framed(packet: &[u8]) -> Vec<u8> {
    let header = [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0];
    [&header, packet].concat()
}

#[test]
fn the_packet_counts_and_not_its_encapsulation_or_padding() {
    for (payload, empty) in [(0, true), (1, false), (1460, false)] {
        let packet = segment(payload);
        // LAN emulation: the client's LECID, the Ethernet header, and padding.
        let mut lane = [&[0, 9], &framed(&packet)[..]].concat();
        lane.resize(lane.len().max(62), 0);
        // LLC-multiplexed LAN emulation: AA AA 03, 00 A0 3E, 00 0C, ELAN, LECID. Source: LANE v2 §4.1.1.
        let llc = [0xaa, 0xaa, 3, 0, 0xa0, 0x3e, 0, 0x0c, 0, 0, 0, 1, 0, 9];
        let several = [&llc, &framed(&packet)[..]].concat();
        // RFC 2684: AA AA 03, 00 00 00, 08 00; a tagged shortcut: 88 4C and the tag.
        let clip = [&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0], &packet[..]].concat();
        let tagged = [
            &[0xaa, 0xaa, 3, 0, 0, 0, 0x88, 0x4c, 0, 0, 0, 7],
            &packet[..],
        ]
        .concat();
        for sdu in [lane, several, clip, tagged, packet] {
            assert_eq!(size_of(&sdu), (40 + payload, empty), "{sdu:?}");
        }
    }
}

#[test]
fn what_is_no_ip_packet_counts_as_a_whole() {
    // LE_ARP, and a fragment of a segment.
    let control = [&[0xff, 0, 1, 1], &[0; 104][..]].concat();
    assert_eq!(size_of(&control), (108, false));
    let mut fragment = segment(0);
    fragment[6] = 0x20;
    assert_eq!(size_of(&fragment), (40, false));
}

proptest! {
    #[test]
    fn any_sdu_has_a_size_of_at_most_its_own(sdu in proptest::collection::vec(any::<u8>(), 1..200)) {
        let (octets, _) = size_of(&sdu);
        prop_assert!(octets <= sdu.len());
    }
}

fn config(order: Order, queue: usize) -> CpuConfig {
    let cost = Cost {
        packet: 1_000_000,
        octet: 0,
    };
    let costs = Costs {
        send: cost,
        receive: cost,
        ack: None,
    };
    CpuConfig {
        costs: [costs; Encapsulation::ALL.len()],
        calls: None,
        order,
        jitter: 0,
        queue,
        manager: None,
        interruptions: None,
        seed: 1,
    }
}

fn pdu(vc: u16) -> Job {
    Job::Receive(Vc { vpi: 0, vci: vc }, Pdu::new(vec![0; 40]).into())
}

#[test]
fn messages_of_signalling_keep_their_turn_cost_nothing_and_have_a_bound_of_their_own() {
    let mut cpu = Cpu::new(config(Order::Class, 2), Instant::ZERO);
    let now = Instant::ZERO;
    let over = Some(Encapsulation::Lane);
    // One packet is in service, two wait, the next is lost.
    let taken = [100, 101, 102, 103].map(|vc| cpu.offer(pdu(vc), over, now).is_ok());
    assert_eq!(taken, [true, true, true, false]);
    let signalling = Vc::SIGNALLING.vci;
    let taken = [(); 3].map(|()| cpu.offer(pdu(signalling), None, now).is_ok());
    assert_eq!(taken, [true, true, false]);
    let out: Vec<(u16, u64)> = std::iter::from_fn(|| {
        let through = cpu.deadline()?;
        Some((cpu.take(through)?.vc().vci, through.as_nanos()))
    })
    .collect();
    let expected = [
        (100, 1000),
        (101, 2000),
        (102, 3000),
        (signalling, 3000),
        (signalling, 3000),
    ];
    assert_eq!(out, expected);
    assert_eq!(
        (cpu.lost.received, cpu.lost.control, cpu.control[RECEIVED]),
        (1, 1, 0)
    );
    // There is room again.
    assert!(
        cpu.offer(pdu(signalling), None, Instant::from_nanos(9000))
            .is_ok()
    );
}

#[test]
fn a_closed_label_takes_its_packets_along_in_both_directions() {
    let mut cpu = Cpu::new(config(Order::Arrival, 10), Instant::ZERO);
    let (one, other) = (Vc { vpi: 0, vci: 50 }, Vc { vpi: 0, vci: 51 });
    for vc in [one, other, one] {
        let sdu: Sdu = vec![0; 40].into();
        assert!(cpu.offer(Job::Send(vc, sdu), None, Instant::ZERO).is_ok());
        assert!(cpu.offer(pdu(vc.vci), None, Instant::ZERO).is_ok());
    }
    assert_eq!(cpu.withdraw(one).len(), 4);
    assert_eq!(cpu.held().count(), 2);
    while let Some(through) = cpu.deadline() {
        if let Some(job) = cpu.take(through) {
            assert_eq!(job.vc(), other);
        }
    }
}
