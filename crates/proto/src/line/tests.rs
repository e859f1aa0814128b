//! Lines between two ends, and one line beside a service and a peer that do anything they may.

use super::*;
use crate::machine::settle;
use aerostat_wire::MacAddr;
use proptest::prelude::*;

const NOW: Instant = Instant::ZERO;
const LABEL: Vc = Vc::new(8, 35);

fn address(number: u8) -> AtmAddress {
    let mut address = AtmAddress([0x47; 20]);
    address.0[18] = number;
    address
}

fn config(encapsulation: Encapsulation) -> Config {
    Config {
        session: Session {
            peer: MacAddr([2, 0, 0, 0, 0, 9]),
            own: MacAddr([2, 0, 0, 0, 0, 7]),
            id: 1,
        },
        ..Config::permanent(LABEL, encapsulation)
    }
}

/// The other end of a line.
fn other_end(config: &Config) -> Config {
    let Session { peer, own, id } = config.session;
    Config {
        session: Session {
            peer: own,
            own: peer,
            id,
        },
        ..config.clone()
    }
}

fn give(line: &mut Line, input: Input<'_>, now: Instant) -> Vec<Output> {
    let Ok(()) = line.handle_input(input, now);
    settle(line, now)
}

fn event(line: &mut Line, event: AtmEvent<&[u8]>, now: Instant) -> Vec<Output> {
    give(line, Input::Atm(event), now)
}

/// A line whose permanent connection is open, with connection 1.
fn open(config: Config) -> Line {
    let qos = Qos::ubr(u16::MAX);
    let mut line = Line::new(config);
    let out = give(&mut line, Input::Start, NOW);
    let conn = ConnId(1);
    let asked = AtmRequest::OpenPermanent {
        conn,
        vc: LABEL,
        qos,
    };
    assert_eq!(out, [Output::Atm(asked)]);
    let connected = AtmEvent::Connected {
        conn,
        vc: LABEL,
        qos,
    };
    let out = event(&mut line, connected, NOW);
    assert!(matches!(out[..], [Output::Trace(_), Output::Ready(true)]));
    assert_eq!(line.vc(), Some(LABEL));
    line
}

fn sdus(out: &[Output]) -> Vec<Vec<u8>> {
    let sdus = out.iter().filter_map(|output| match output {
        Output::Atm(AtmRequest::Send { sdu, .. }) => Some(sdu.clone()),
        _ => None,
    });
    sdus.collect()
}

fn hear(line: &mut Line, sdu: &[u8]) -> Vec<Output> {
    let conn = ConnId(1);
    event(line, AtmEvent::Received { conn, sdu }, NOW)
}

/// A frame or a packet for a line, with `length` octets of IP.
fn sample(encapsulation: Encapsulation, length: usize) -> Vec<u8> {
    let mut packet = vec![0x45; length];
    packet[1] = length as u8;
    match encapsulation.is_bridged() {
        true => [&[2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 7, 8, 0][..], &packet].concat(),
        false => packet,
    }
}

#[test]
fn what_one_end_sends_the_other_end_hands_over() {
    for encapsulation in Encapsulation::lines() {
        let config = config(encapsulation);
        let (mut a, mut b) = (open(config.clone()), open(other_end(&config)));
        for length in [20, 46, 576, usize::from(config.mtu)] {
            let octets = sample(encapsulation, length);
            let sent = give(&mut a, Input::Send(&octets), NOW);
            let [sdu] = &sdus(&sent)[..] else {
                panic!("{encapsulation} {length}: {sent:?}");
            };
            let heard = hear(&mut b, sdu);
            let [Output::Deliver(delivered)] = &heard[..] else {
                panic!("{encapsulation} {length}: {heard:?}");
            };
            assert!(delivered.starts_with(&octets), "{encapsulation} {length}");
        }
        assert_eq!((a.counters().sent, b.counters().delivered), (4, 4));
    }
}

#[test]
fn one_octet_more_than_the_mtu_is_dropped_at_both_ends() {
    for encapsulation in Encapsulation::lines() {
        let config = config(encapsulation);
        let (mut a, mut b) = (open(config.clone()), open(other_end(&config)));
        let octets = sample(encapsulation, usize::from(config.mtu) + 1);
        assert_eq!(give(&mut a, Input::Send(&octets), NOW), []);
        assert_eq!(a.counters().too_long, 1);
        let sdu = encapsulation.encode(&octets, &config.session);
        assert_eq!(hear(&mut b, &sdu), []);
        assert_eq!(b.counters().too_long, 1);
        assert_eq!(
            a.take_discard().map(|(why, _)| why),
            Some(Discard::BadLength)
        );
        assert_eq!(
            b.take_discard().map(|(why, _)| why),
            Some(Discard::BadLength)
        );
    }
    // The tag of a VLAN is allowed besides.
    let mut line = open(config(Encapsulation::BridgedLlc));
    let mut tagged = sample(Encapsulation::BridgedLlc, 1504);
    tagged[12..14].copy_from_slice(&[0x81, 0]);
    assert_eq!(sdus(&give(&mut line, Input::Send(&tagged), NOW)).len(), 1);
}

/// PDUs of a peer with another encapsulation are counted so, and named once for each connection.
#[test]
fn another_encapsulation_of_the_peer_is_named() {
    for own in Encapsulation::lines() {
        for peer in Encapsulation::lines() {
            // A receiver with LLC takes frames with and without FCS, and one with VC multiplexing cannot tell.
            let frames = [own, peer].map(|one| (one.is_ethernet(), one.is_pppoe(), one.is_llc()));
            if frames[0] == frames[1] && own.is_ethernet() || own == peer {
                continue;
            }
            // A bridge carries frames of PPPoE like any others.
            if own.is_bridged() && peer.is_pppoe() && own.is_llc() == peer.is_llc() {
                continue;
            }
            let mut line = open(config(own));
            let octets = sample(peer, 100);
            let sdu = peer.encode(&octets, &config(peer).session);
            let out = hear(&mut line, &sdu);
            let [Output::Trace(told)] = &out[..] else {
                panic!("{own} hears {peer}: {out:?}");
            };
            let text = &told.text;
            // An FCS that is not there looks like a wrong one.
            let both = !own.is_llc() && peer.is_ethernet() && !peer.is_llc();
            if both && own.has_fcs() && !peer.has_fcs() {
                assert!(text.read().contains("does the peer send one?"), "{text}");
                continue;
            }
            assert!(
                text.read()
                    .contains(&format!("sends {peer} on a line that is {own}")),
                "{text}"
            );
            assert_eq!(hear(&mut line, &sdu), [], "told once");
            assert_eq!(line.counters().other_encapsulation, 2, "{own} hears {peer}");
            assert!(line.take_discard().is_some());
        }
    }
}

#[test]
fn wrong_pdus_have_counters_of_their_own() {
    let mut line = open(config(Encapsulation::BridgedLlc));
    let session = config(Encapsulation::BridgedLlc).session;
    let frame = sample(Encapsulation::BridgedLlc, 100);
    let mut bad_fcs = Encapsulation::BridgedLlcFcs.encode(&frame, &session);
    bad_fcs[50] ^= 1;
    // A frame below 60 octets whose FCS is right: this one was never padded.
    let whole = Encapsulation::BridgedLlcFcs.encode(&frame[..46], &session);
    let padded = hear(&mut line, &whole);
    assert!(matches!(&padded[..], [Output::Deliver(frame)] if frame.len() == 60));
    let runt = {
        let sum = crc(&frame[..46]);
        [&whole[..10], &frame[..46], &sum].concat()
    };
    let llc = [0xaa, 0xaa, 3];
    let unknown = [&llc[..], &[0, 0x80, 0xc2, 0, 3, 0, 0], &frame].concat();
    let oui = [&llc[..], &[0, 0, 0x0c, 0x20, 0], &frame].concat();
    for sdu in [
        &bad_fcs,
        &runt,
        &unknown,
        &oui,
        &whole[..20].to_vec(),
        &vec![7; 50],
    ] {
        assert_eq!(hear(&mut line, sdu), [], "{sdu:02x?}");
    }
    let counters = line.counters();
    let seen = (
        counters.fcs_errors,
        counters.too_short,
        counters.other_protocol,
        counters.malformed,
    );
    assert_eq!(seen, (1, 2, 2, 1), "{counters:?}");
    assert_eq!(std::iter::from_fn(|| line.take_discard()).count(), 6);
}

/// The FCS of IEEE 802.3, bit by bit, as octets on the wire.
fn crc(octets: &[u8]) -> [u8; 4] {
    let mut sum = u32::MAX;
    for octet in octets {
        sum ^= u32::from(*octet);
        for _ in 0..8 {
            let carry = sum & 1 == 1;
            sum = sum >> 1 ^ if carry { 0xedb8_8320 } else { 0 };
        }
    }
    (!sum).to_le_bytes()
}

/// A BPDU with a PID of its own becomes the frame that a bridge sends on an Ethernet.
#[test]
fn bpdus_come_in_both_forms() {
    let mut line = open(config(Encapsulation::BridgedLlc));
    let bpdu = [0u8; 35];
    let sdu = [&[0xaa, 0xaa, 3, 0, 0x80, 0xc2, 0, 0x0e][..], &bpdu].concat();
    let out = hear(&mut line, &sdu);
    let [Output::Deliver(frame)] = &out[..] else {
        panic!("{out:?}");
    };
    assert_eq!(frame[..6], BRIDGES);
    assert_eq!(frame[12..17], [0, 38, 0x42, 0x42, 3]);
    assert_eq!((frame.len(), line.counters().bpdus), (52, 1));
}

#[test]
fn nobody_answers_a_peer_that_negotiates() {
    for (encapsulation, sdu) in [
        (Encapsulation::PppoaVc, vec![0xc0, 0x21, 1, 1, 0, 4]),
        (
            Encapsulation::PppoaLlc,
            vec![0xfe, 0xfe, 3, 0xcf, 0x80, 0x21, 1, 1, 0, 4],
        ),
        (
            Encapsulation::PppoeVc,
            [
                &[0, 0][..],
                &[0xff; 6],
                &[2, 0, 0, 0, 0, 9, 0x88, 0x63, 0x11, 9, 0, 0, 0, 0],
            ]
            .concat(),
        ),
    ] {
        let mut line = open(config(encapsulation));
        let out = hear(&mut line, &sdu);
        let told = |trace: &Trace| trace.name == "line.negotiation" && trace.milestone;
        assert!(
            matches!(&out[..], [Output::Trace(trace)] if told(trace)),
            "{out:?}"
        );
        assert_eq!(hear(&mut line, &sdu), []);
        assert_eq!(line.counters().negotiation, 2);
    }
}

fn calls(peer: u8) -> Config {
    Config {
        address: address(1),
        way: Way::Calls {
            peer: address(peer),
            qos: Qos::ubr(1),
        },
        ..config(Encapsulation::PppoaLlc)
    }
}

#[test]
fn a_refused_call_is_made_again_less_and_less_often() {
    let mut line = Line::new(calls(2));
    let mut out = give(&mut line, Input::Start, NOW);
    let (mut now, mut waits) = (NOW, Vec::new());
    for number in 1..=12 {
        let [
            Output::Atm(AtmRequest::Connect {
                conn,
                sap: with,
                qos,
                ..
            }),
        ] = out[..]
        else {
            panic!("{out:?}");
        };
        assert_eq!((conn, with), (ConnId(number), sap(Encapsulation::PppoaLlc)));
        // The packet of the MTU, with its headers.
        assert_eq!(qos.tx.max_sdu, 1506);
        let cause = Cause::NO_ROUTE;
        let told = event(&mut line, AtmEvent::Released { conn, cause }, now);
        assert_eq!(told.len(), usize::from(number == 1), "{told:?}");
        let due = line.poll_timeout().expect("another attempt");
        waits.push(due.since(now));
        now = due;
        out = settle(&mut line, now);
    }
    assert!(waits[0] <= Backoff::FIRST && waits[11] >= s(1) && waits[11] <= s(2));
    assert_eq!((line.counters().attempts, line.counters().failed), (13, 12));
    assert_eq!(line.ended(), Some(Cause::NO_ROUTE));
    // The network is back: the next attempt need not wait.
    let conn = ConnId(13);
    let cause = Cause::NO_ROUTE;
    event(&mut line, AtmEvent::Released { conn, cause }, now);
    assert_eq!(give(&mut line, Input::AskAgain, now).len(), 1);
}

/// A called line takes the calls of its peer, the newest of several, and no other.
#[test]
fn a_called_line_hears_its_peer_alone() {
    let mut line = Line::new(Config {
        address: address(2),
        way: Way::Called { peer: address(1) },
        ..config(Encapsulation::BridgedVc)
    });
    let out = give(&mut line, Input::Start, NOW);
    assert!(matches!(out[..], [Output::Atm(AtmRequest::Listen { .. })]));
    let incoming = |conn, calling| AtmEvent::Incoming {
        conn: ConnId(ConnId::INCOMING + conn),
        calling,
        called: address(2),
        sap: sap(Encapsulation::BridgedVc),
        qos: Qos::ubr(1518),
        multipoint: false,
    };
    for (number, caller) in [(0, None), (1, Some(address(3)))] {
        let out = event(&mut line, incoming(number, caller), NOW);
        assert!(matches!(out[..], [Output::Atm(AtmRequest::Release { .. })]));
    }
    assert_eq!(line.counters().refused, 2);
    let peer = Some(address(1));
    let out = event(&mut line, incoming(2, peer), NOW);
    assert!(matches!(out[..], [Output::Atm(AtmRequest::Accept { .. })]));
    let conn = ConnId(ConnId::INCOMING + 2);
    let (vc, qos) = (LABEL, Qos::ubr(1518));
    event(&mut line, AtmEvent::Connected { conn, vc, qos }, NOW);
    assert_eq!(line.vc(), Some(LABEL));
    // The peer starts anew, and its new call comes before the old one ends.
    let out = event(&mut line, incoming(3, peer), NOW);
    let release = AtmRequest::Release {
        conn,
        cause: Cause::NORMAL,
    };
    assert_eq!(out[..2], [Output::Atm(release), Output::Ready(false)]);
    assert_eq!(out.len(), 3);
    // The old call ends, which changes nothing.
    let cause = Cause::NORMAL;
    assert_eq!(
        event(&mut line, AtmEvent::Released { conn, cause }, NOW),
        []
    );
    let out = give(&mut line, Input::Stop, NOW);
    assert_eq!(out.len(), 2, "unlisten, release");
    assert_eq!(line.poll_timeout(), None);
}

/// Each encapsulation is called by a description of its own, except that of LLC, which covers four.
#[test]
fn descriptions_of_calls() {
    for (encapsulation, octets) in [
        (Encapsulation::RoutedLlc, &[0xcc][..]),
        (Encapsulation::BridgedLlcFcs, &[0xcc]),
        (Encapsulation::RoutedVc, &[0x6b, 0x66, 0x80]),
        (Encapsulation::PppoaVc, &[0x6b, 0x67, 0xc0]),
        (Encapsulation::PppoaLlc, &[0xcc, 0x6b, 0x67, 0xc0]),
        (
            Encapsulation::BridgedVc,
            &[0x6b, 0x40, 0x80, 0x80, 0, 0x80, 0xc2, 0, 7],
        ),
        (
            Encapsulation::BridgedVcFcs,
            &[0x6b, 0x40, 0x80, 0x80, 0, 0x80, 0xc2, 0, 1],
        ),
    ] {
        let blli = sap(encapsulation).blli.expect("a description");
        assert_eq!(blli.octets(), octets, "{encapsulation}");
    }
}

#[derive(Clone, Debug)]
enum Step {
    Start,
    Stop,
    AskAgain,
    Up,
    Down,
    Send(usize),
    Sdu(u32, Vec<u8>),
    Connected(u32),
    Released(u32, u8),
    Incoming(u32, u8),
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let id = prop_oneof![0u32..4, Just(ConnId::INCOMING), Just(ConnId::INCOMING + 1)];
    let octets = proptest::collection::vec(any::<u8>(), 0..80);
    let step = prop_oneof![
        Just(Step::Start),
        Just(Step::Stop),
        Just(Step::AskAgain),
        Just(Step::Up),
        Just(Step::Down),
        (0usize..2000).prop_map(Step::Send),
        (id.clone(), octets).prop_map(|(id, octets)| Step::Sdu(id, octets)),
        id.clone().prop_map(Step::Connected),
        (id.clone(), any::<u8>()).prop_map(|(id, cause)| Step::Released(id, cause)),
        (id, 0u8..4).prop_map(|(id, caller)| Step::Incoming(id, caller)),
        (0u64..3000).prop_map(Step::Wait),
    ];
    proptest::collection::vec(step, 0..60)
}

proptest! {
    /// The laws of machines hold, everything that was to be sent is sent or accounted for, and there is one connection
    /// at a time.
    #[test]
    fn whatever_happens(steps in steps(), which in 0usize..12, way in 0u8..3) {
        let encapsulation = Encapsulation::lines().nth(which).expect("12");
        let peer = address(2);
        let qos = Qos::ubr(1500);
        let way = match way {
            0 => Way::Permanent { vc: LABEL, qos },
            1 => Way::Calls { peer, qos },
            _ => Way::Called { peer },
        };
        let mut line = Line::new(Config { address: address(1), way, ..config(encapsulation) });
        let (mut now, mut offered, mut held) = (NOW, 0, Vec::new());
        for step in steps {
            let octets;
            let input = match &step {
                Step::Start => Input::Start,
                Step::Stop => Input::Stop,
                Step::AskAgain => Input::AskAgain,
                Step::Up => Input::Atm(AtmEvent::Up),
                Step::Down => Input::Atm(AtmEvent::Down),
                Step::Send(length) => {
                    offered += 1;
                    octets = vec![0x45; *length];
                    Input::Send(&octets)
                }
                Step::Sdu(id, sdu) => Input::Atm(AtmEvent::Received { conn: ConnId(*id), sdu }),
                Step::Connected(id) => {
                    Input::Atm(AtmEvent::Connected { conn: ConnId(*id), vc: LABEL, qos })
                }
                Step::Released(id, cause) => {
                    Input::Atm(AtmEvent::Released { conn: ConnId(*id), cause: Cause(*cause) })
                }
                Step::Incoming(id, caller) => Input::Atm(AtmEvent::Incoming {
                    conn: ConnId(ConnId::INCOMING | *id),
                    calling: Some(address(*caller)),
                    called: address(1),
                    sap: sap(encapsulation),
                    qos,
                    multipoint: false,
                }),
                Step::Wait(time) => {
                    now += crate::time::ms(*time);
                    Input::AskAgain
                }
            };
            let gone = match &step {
                Step::Released(id, _) => Some(ConnId(*id)),
                _ => None,
            };
            for output in give(&mut line, input, now) {
                match output {
                    Output::Atm(AtmRequest::Connect { conn, .. }
                        | AtmRequest::OpenPermanent { conn, .. }
                        | AtmRequest::Accept { conn, .. }) => held.push(conn),
                    Output::Atm(AtmRequest::Release { conn, .. }) => held.retain(|one| *one != conn),
                    _ => {}
                }
            }
            held.retain(|conn| Some(*conn) != gone);
            prop_assert!(held.len() <= 1, "{:?}", held);
        }
        let counters = line.counters();
        let dropped = std::iter::from_fn(|| line.take_discard()).count() as u64;
        prop_assert!(counters.sent <= offered);
        prop_assert!(offered - counters.sent <= dropped);
    }
}
