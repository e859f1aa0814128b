//! Peers that break the rules: wrong formats, unsolicited replies, floods.

use std::net::{Ipv4Addr, Ipv6Addr};

use aerostat_wire::mpoa::{self, EgressPurge, op as mop};
use aerostat_wire::nhrp::{Body, Extension, Packet, code, error, op};
use aerostat_wire::{Qos, Sap, Vc};
use proptest::prelude::*;

use super::world::{Mood, TARGET, World, atm, ip};
use crate::machine::settle;
use crate::mpoa::mps::{Absent, FromRouter, Input, MAX_SDU, Mps, Output, RouteResult};
use crate::{AtmEvent, AtmRequest, Cause, ConnId, Duration, Instant, Machine};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn replies_that_nobody_asked_for_change_nothing() {
    let mut world = World::two_routers();
    world.mpcs[1].mood = Mood::Silent;
    world.start();
    world.ask(0x11, TARGET);
    world.run(SECOND);
    // A forged imposition reply from the wrong client, with the right id.
    let mut forged = world.mpcs[1].last(mop::IMPOSITION_REQUEST).clone();
    forged.op = mop::IMPOSITION_REPLY;
    if let Body::Common(common) = &mut forged.body {
        common.cies = vec![mpoa::reply_entry(32, 1500, 1200, atm(0x66, 0x51))];
    }
    world.mpc_sends(0, 1, &forged);
    // A forged NHRP reply with the right id for another destination, and one with an unknown id.
    for (id, target) in [(0x2001, ip(2, 99)), (0x7777, TARGET)] {
        let mut reply = mpoa::resolution_request(id, atm(0x11, 0x51), ip(1, 1), target);
        reply.op = op::RESOLUTION_REPLY;
        if let Body::Common(common) = &mut reply.body {
            common.cies = vec![mpoa::reply_entry(32, 1500, 1200, atm(0x66, 0x51))];
        }
        world.mpc_sends(1, 0, &reply);
    }
    world.run(SECOND);
    assert_eq!(world.mpcs[0].count(mop::RESOLUTION_REPLY), 0);
    assert_eq!(world.snapshot(1).counters.unexpected, 1);
    let errors = world.snapshot(0).counters.errors_sent;
    assert_eq!(errors.get(&error::UNSOLICITED_REPLY), Some(&1));
}

#[test]
fn a_client_cannot_purge_what_another_holds() {
    let mut world = World::two_routers();
    world.start();
    world.ask(0x11, TARGET);
    world.run(SECOND);
    let purge = EgressPurge {
        id: 1,
        mpc_control: atm(0x12, 0x50),
        mpc_data: atm(0x12, 0x51),
        mpc: ip(2, 12),
        mps: ip(2, 1),
        target: TARGET,
        prefix: 32,
        cache_id: 0x101,
        elan_id: 2,
    };
    world.mpc_sends(0, 1, &purge.packet());
    world.run(SECOND);
    assert_eq!(
        world.mpcs[0].count(mop::EGRESS_PURGE_REPLY),
        1,
        "answered, as a repeated one"
    );
    assert_eq!(world.snapshot(1).egress.len(), 1);
}

#[test]
fn compulsory_extensions_that_are_unknown_are_refused_with_their_offset() {
    let mut world = World::two_routers();
    world.start();
    let request = mpoa::resolution_request(1, atm(0x11, 0x51), ip(1, 11), TARGET);
    let strange = Extension::compulsory(0x3800, vec![1, 2, 3]);
    let harmless = Extension::new(0x3801, vec![1]);
    world.mpc_sends(0, 0, &request.clone().with(harmless.clone()).with(strange));
    world.run(SECOND);
    let Body::Error(indication) = &world.mpcs[0].last(op::ERROR_INDICATION).body else {
        panic!("an error has an error body");
    };
    // 68 octets, tag extension (4), the harmless one (5).
    assert_eq!((indication.code, indication.offset), (1, 77));
    assert_eq!(indication.offending[77..79], [0xb8, 0]);
    // An unknown extension that is not compulsory comes back in the reply.
    world.mpc_sends(0, 0, &request.with(harmless.clone()));
    world.run(SECOND);
    let reply = world.mpcs[0].last(mop::RESOLUTION_REPLY);
    assert_eq!(reply.extension(0x3801), Some(&harmless));
    let imposed = world.mpcs[1].last(mop::IMPOSITION_REQUEST);
    assert_eq!(
        imposed.extension(0x3801),
        None,
        "clients in the field cannot step over it"
    );
}

#[test]
fn registrations_are_refused_with_4_and_other_protocols_with_84() {
    let mut world = World::two_routers();
    world.start();
    let mut packet = mpoa::resolution_request(1, atm(0x11, 0x51), ip(1, 11), ip(1, 1));
    packet.op = op::REGISTRATION_REQUEST;
    world.mpc_sends(0, 0, &packet);
    let mut ipx = mpoa::resolution_request(2, atm(0x11, 0x51), ip(1, 11), TARGET);
    ipx.protocol = 0x8137;
    world.mpc_sends(0, 0, &ipx);
    world.run(SECOND);
    let code_of = |op| world.mpcs[0].last(op).common().unwrap().cies[0].code;
    assert_eq!(code_of(op::REGISTRATION_REPLY), code::PROHIBITED);
    assert_eq!(code_of(mop::RESOLUTION_REPLY), mpoa::code::PROTOCOL);
}

#[test]
fn tables_have_limits() {
    let mut world = World::two_routers();
    world.mpcs[1].mood = Mood::Silent;
    for router in &mut world.routers {
        router.config.limits.ingress_per_mpc = 20;
        router.config.limits.egress = 10;
    }
    world.start();
    for host in 100..150 {
        world.host_behind(
            1,
            ip(2, host),
            aerostat_wire::MacAddr([2, 0, 0, 0, 3, host]),
        );
        world.ask(host.into(), ip(2, host));
        world.run(Duration::from_millis(100));
    }
    assert_eq!(
        world.snapshot(0).ingress.len(),
        10,
        "ten wait for the silent client"
    );
    assert_eq!(world.snapshot(1).egress.len(), 10);
    let refused = world.snapshot(0).counters.mpoa_replies_sent;
    assert_eq!(refused.get(&code::RESOURCES), Some(&40));
    assert!(world.snapshot(1).counters.limits_met >= 10);
    world.run(120 * SECOND);
    world.assert_idle(0);
    world.assert_idle(1);
}

fn offer(mps: &mut Mps, conn: u32, called: aerostat_wire::AtmAddress, known: bool) -> Output {
    let event = AtmEvent::Incoming {
        conn: ConnId(ConnId::INCOMING + conn),
        calling: known.then_some(atm(0x11, 0x50)),
        called,
        sap: Sap::LLC,
        qos: Qos::ubr(MAX_SDU),
        multipoint: false,
    };
    mps.handle_input(Input::Atm(event), Instant::ZERO).unwrap();
    settle(mps, Instant::ZERO).remove(0)
}

#[test]
fn calls_are_screened() {
    let world = World::two_routers();
    let mut mps = Mps::new(world.routers[0].config.clone());
    mps.handle_input(Input::Start, Instant::ZERO).unwrap();
    settle(&mut mps, Instant::ZERO);
    mps.handle_input(Input::Start, Instant::ZERO).unwrap();
    assert_eq!(
        settle(&mut mps, Instant::ZERO),
        [],
        "it has started already"
    );
    let refused = |output| match output {
        Output::Atm(AtmRequest::Release { cause, .. }) => Some(cause),
        _ => None,
    };
    let control = atm(0x21, 0x52);
    assert_eq!(
        refused(offer(&mut mps, 0, control, false)),
        Some(Cause::REJECTED)
    );
    assert_eq!(
        refused(offer(&mut mps, 1, atm(0x21, 9), true)),
        Some(Cause::INCOMPATIBLE)
    );
    for conn in 2..10 {
        assert_eq!(refused(offer(&mut mps, conn, control, true)), None);
    }
    assert_eq!(
        refused(offer(&mut mps, 10, control, true)),
        Some(Cause::RESOURCES)
    );
    assert_eq!(mps.counters().calls_refused, 3);
}

/// Any packet of the protocol, with addresses and ids that often match stored ones.
fn packets() -> impl Strategy<Value = Packet> {
    let ops = prop_oneof![1..=7_u8, 128..=135_u8];
    let addresses = prop_oneof![
        Just(ip(1, 1)),
        Just(ip(2, 1)),
        Just(ip(1, 11)),
        Just(TARGET),
        any::<u32>().prop_map(|bits| Ipv4Addr::from_bits(bits).into()),
        any::<u128>().prop_map(|bits| Ipv6Addr::from_bits(bits).into()),
    ];
    let ids = prop_oneof![0x2000..0x2008_u32, 0x3000..0x3008_u32, any::<u32>()];
    let extensions = prop::collection::vec(
        (
            prop_oneof![0..9_u16, 0x1000..0x1007_u16, 0x3800..0x3802_u16],
            any::<bool>(),
            prop::collection::vec(any::<u8>(), 0..24),
        ),
        0..4,
    );
    let head = (ops, any::<u8>(), any::<u16>(), ids);
    (
        head,
        addresses.clone(),
        addresses,
        0..5_u8,
        any::<u16>(),
        extensions,
    )
        .prop_map(
            |((op, hop_count, flags, id), source, destination, what, holding, extensions)| {
                let mut packet = mpoa::resolution_request(id, atm(0x11, 0x51), source, destination);
                packet.hop_count = hop_count;
                packet.op = if op == 7 { 1 } else { op };
                if let Body::Common(common) = &mut packet.body {
                    common.flags = flags;
                    common.cies = match what {
                        0 => vec![],
                        1 => vec![mpoa::refusal_entry(hop_count, flags as u8)],
                        _ => vec![mpoa::reply_entry(
                            hop_count,
                            holding,
                            holding,
                            atm(what, 0x51),
                        )],
                    };
                    if what == 4 {
                        common.cies[0].protocol = TARGET.into();
                    }
                }
                for (kind, compulsory, value) in extensions {
                    if kind != 0 {
                        let mut extension = Extension::new(kind, value);
                        extension.type_field |= if compulsory { 0x8000 } else { 0 };
                        packet = packet.with(extension);
                    }
                }
                packet
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever packets peers send, the server neither panics nor keeps state for ever.
    #[test]
    fn any_packets_leave_nothing_behind(
        list in prop::collection::vec((packets(), 0..2_usize, 0..2_usize, 0..3000_u64), 1..40),
    ) {
        let mut world = World::two_routers();
        world.start();
        world.ask(0x11, TARGET);
        for (packet, mpc, router, pause) in list {
            world.mpc_sends(mpc, router, &packet);
            world.run(Duration::from_millis(pause));
        }
        // Longest holding time of an entry, then idle connections.
        world.run(Duration::from_secs(65_535 + 3000));
        world.assert_idle(0);
        world.assert_idle(1);
    }

    /// Whatever happens in the network, all state ends with the holding times, and once the network is quiet a shortcut
    /// can be set up again.
    #[test]
    fn any_events_leave_nothing_behind(
        list in prop::collection::vec((0..10_u8, 0..8000_u64), 1..60),
        loss in 0..40_u64,
    ) {
        let mut world = World::two_routers();
        world.loss = loss;
        world.start();
        let neighbour = world.arp[&TARGET].clone();
        for (step, (event, pause)) in (0_u32..).zip(list) {
            match event {
                0..=2 => world.ask(step, TARGET),
                3 => world.mpcs[1].mood = Mood::Silent,
                4 => world.mpcs[1].mood = Mood::Linux,
                5 => world.kill_mpc((step % 2) as usize),
                6 => {
                    if world.arp.remove(&TARGET).is_none() {
                        world.arp.insert(TARGET, neighbour.clone());
                    }
                    world.input(1, Input::Router(FromRouter::NeighbourChanged { itf: 2, ip: TARGET }));
                }
                7 => {
                    let way = RouteResult::Outside;
                    world.routers[1].routes.push((ip(2, 0), 24 + (step % 3) as u8, way));
                    world.input(1, Input::Router(FromRouter::RoutesChanged));
                }
                8 => {
                    world.crash(0);
                    world.boot(0);
                }
                _ => {
                    world.routers[1].routes.truncate(5);
                    world.input(1, Input::Router(FromRouter::RoutesChanged));
                    world.mpcs.iter_mut().for_each(|mpc| mpc.mood = Mood::Accept);
                }
            }
            world.run(Duration::from_millis(pause));
        }
        world.loss = 0;
        world.routers[1].routes.truncate(5);
        world.arp.insert(TARGET, neighbour);
        world.mpcs.iter_mut().for_each(|mpc| mpc.mood = Mood::Accept);
        world.run(45 * 60 * SECOND);
        world.assert_idle(0);
        world.assert_idle(1);
        world.ask(9999, TARGET);
        world.run(SECOND);
        prop_assert_eq!(world.snapshot(1).egress.len(), 1);
        let reply = world.mpcs[0].last(mop::RESOLUTION_REPLY).common().unwrap();
        prop_assert_eq!((reply.request_id, reply.cies[0].code), (9999, 0));
    }

    #[test]
    fn any_octets_are_survived(
        list in prop::collection::vec(
            (prop::collection::vec(any::<u8>(), 0..120), any::<bool>(), any::<u8>()),
            1..40,
        ),
    ) {
        let world = World::two_routers();
        let mut mps = Mps::new(world.routers[1].config.clone());
        let now = Instant::from_secs(1);
        mps.handle_input(Input::Start, now).unwrap();
        offer(&mut mps, 0, atm(0x22, 0x52), true);
        let conn = ConnId(ConnId::INCOMING);
        let vc = Vc::new(0, 40);
        mps.handle_input(Input::Atm(AtmEvent::Connected { conn, vc, qos: Qos::ubr(0) }), now).unwrap();
        for (mut octets, repaired, query) in list {
            if repaired {
                // A packet with a correct frame, so that its contents are checked.
                octets = damaged(&octets);
            }
            let sdu = &octets;
            mps.handle_input(Input::Atm(AtmEvent::Received { conn, sdu }), now).unwrap();
            let result = Some(RouteResult::Connected { itf: query.into() });
            let query = world.routers[1].config.first_request_id + u32::from(query) % 8;
            mps.handle_input(Input::Router(FromRouter::Route { query, result, covers: 32 }), now).unwrap();
            mps.handle_input(Input::Router(FromRouter::L2 { query, answer: Err(Absent::Unheard) }), now).unwrap();
            settle(&mut mps, now);
        }
    }
}

/// A valid packet whose middle is overwritten with these octets and whose checksum is corrected.
fn damaged(octets: &[u8]) -> Vec<u8> {
    let packet = mpoa::resolution_request(1, atm(0x11, 0x51), ip(1, 11), TARGET);
    let mut sdu = packet.to_sdu();
    for (slot, octet) in sdu[8 + 17..].iter_mut().zip(octets) {
        *slot = *octet;
    }
    sdu[8 + 12..8 + 14].fill(0);
    let sum = aerostat_wire::nhrp::internet_checksum(&sdu[8..]);
    sdu[8 + 12..8 + 14].copy_from_slice(&sum.to_be_bytes());
    sdu
}
