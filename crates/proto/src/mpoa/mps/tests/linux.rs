//! Packets of two Linux hosts (mpcd 2.5.1, kernel 5.10), recorded with another server, replayed to this one.

use aerostat_wire::mpoa::{DllHeader, Imposition, Tag, op as mop};
use aerostat_wire::nhrp::Packet;
use aerostat_wire::{AtmAddress, MacAddr};

use super::world::{Mood, World};
use crate::Duration;
use crate::mpoa::mps::RouteResult;

/// The control packets of the recording, in order, without the second copy of each on another link.
fn recorded(op: u8) -> Vec<(Vec<u8>, Packet)> {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../wire/tests/vectors/linux-atm/g-mpoa.jsonl"
    );
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let mut found: Vec<(Vec<u8>, Packet)> = Vec::new();
    for line in text.lines() {
        let hex = line
            .split("\"hex\"")
            .nth(1)
            .and_then(|rest| rest.split('"').nth(1));
        let Some(hex) = hex else { continue };
        let sdu: Vec<u8> = (0..hex.len() / 2)
            .map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap())
            .collect();
        if let Ok(packet) = Packet::from_sdu(&sdu)
            && packet.op == op
            && !found.iter().any(|(known, _)| *known == sdu)
        {
            found.push((sdu, packet));
        }
    }
    found
}

fn atm(last: u8, selector: u8) -> AtmAddress {
    let prefix = [
        0x47, 0, 5, 0x80, 0xff, 0xe1, 0, 0, 0, 0xf2, 0x1a, 0x26, 0xd8,
    ];
    AtmAddress::from_parts(prefix, MacAddr([0, 0x20, 0xea, 0, 0, last]), selector)
}

#[test]
fn recorded_clients_get_their_shortcut() {
    // As in the recording: client B asks for a network behind client A, which routes on the same ELAN.
    let server = [10, 8, 0, 99].into();
    let mut world = World::empty();
    world.add_router(0x99, &[(1, server)]);
    world.add_mpc_at(atm(0xb0, 1), atm(0xb0, 2), [10, 8, 0, 2].into());
    world.add_mpc_at(atm(0xc0, 1), atm(0xc0, 2), [10, 8, 0, 1].into());
    let mac_of_a = MacAddr([0, 0x20, 0xea, 0, 0, 0xc0]);
    world.host_behind(1, [10, 8, 0, 1].into(), mac_of_a);
    world.mpcs[1].mood = Mood::Silent;
    world.routers[0].routes.push((
        [10, 7, 0, 0].into(),
        24,
        RouteResult::Via {
            itf: 1,
            next_hop: [10, 8, 0, 1].into(),
        },
    ));
    // The recorded imposition has id 1 and Cache ID 0x65; the NHRP question before it takes id 0.
    world.routers[0].config.first_request_id = 0;
    world.routers[0].config.first_cache_id = 0x65;
    world.start();

    let (request, _) = recorded(mop::RESOLUTION_REQUEST).remove(0);
    world.mpc_sends_sdu(0, 0, request);
    world.run(Duration::from_millis(100));
    let ours = world.mpcs[1].last(mop::IMPOSITION_REQUEST).clone();
    let (_, theirs) = recorded(mop::IMPOSITION_REQUEST).remove(0);
    let (ours, mut theirs) = (
        Imposition::of(&ours).unwrap().unwrap(),
        Imposition::of(&theirs).unwrap().unwrap(),
    );
    assert_eq!(
        theirs.dll.header,
        DllHeader::ethernet_ipv4(mac_of_a, MacAddr([2, 0, 0, 0, 0, 0x99]))
    );
    // The recorded server left the client's address in the request; the standard requires the server's own.
    theirs.mps = server;
    assert_eq!(ours, theirs);

    let (reply, _) = recorded(mop::IMPOSITION_REPLY).remove(0);
    world.mpc_sends_sdu(1, 0, reply);
    world.run(Duration::from_millis(100));
    let ours = world.mpcs[0].last(mop::RESOLUTION_REPLY);
    let (_, theirs) = recorded(mop::RESOLUTION_REPLY).remove(0);
    let (cie, mut known) = (
        ours.common().unwrap().cies[0].clone(),
        theirs.common().unwrap().cies[0].clone(),
    );
    // An MPOA reply has no client protocol address (packet 6 of the worked sequence); the recorded server sent one.
    known.protocol = cie.protocol.clone();
    assert_eq!(cie, known);
    assert_eq!(Tag::of(ours), Ok(Some(Tag::Value(0x0100_0000))));
    assert_eq!(ours.extensions, theirs.extensions);
    // Both clients get Keep-Alives with the recorded lifetime.
    let (_, alive) = recorded(mop::KEEP_ALIVE).remove(0);
    for mpc in 0..2 {
        let ours = world.mpcs[mpc].last(mop::KEEP_ALIVE);
        assert_eq!(ours.extensions, alive.extensions);
    }
}
