//! Whatever peers send: no panic, bounded tables, the rules of a machine (checked by `settle`).

use super::*;
use crate::Cause;
use aerostat_wire::nhrp::Extension;
use proptest::prelude::*;

/// One event of a hostile world.
#[derive(Clone, Debug)]
enum Blow {
    /// Octets on one of the connections.
    Raw(u8, Vec<u8>),
    /// A well-formed packet with damage at some octet and a correct checksum.
    Damaged(u8, u8, prop::sample::Index, u8),
    /// A well-formed packet.
    Packet(u8, u8),
    /// A call.
    Call(u32, u8, bool),
    Connected(u32),
    Released(u32),
    Frame(Vec<u8>),
    Flow(u8),
    /// A QoS entry for some of the flows.
    Entry(u8, bool),
    /// The answer to an outstanding request, if a request is outstanding.
    Answer,
    Tlv(u8, Vec<u8>),
    Lec(bool),
    Daemon(u8),
    Wait(u16),
}

fn blow() -> impl Strategy<Value = Blow> {
    let octets = || prop::collection::vec(any::<u8>(), 0..90);
    prop_oneof![
        (0..4_u8, octets()).prop_map(|(c, o)| Blow::Raw(c, o)),
        (
            0..4_u8,
            any::<u8>(),
            any::<prop::sample::Index>(),
            any::<u8>()
        )
            .prop_map(|(c, p, at, v)| Blow::Damaged(c, p, at, v)),
        (0..4_u8, any::<u8>()).prop_map(|(c, p)| Blow::Packet(c, p)),
        (0..12_u32, 0..6_u8, any::<bool>()).prop_map(|(id, p, d)| Blow::Call(id, p, d)),
        (0..24_u32).prop_map(Blow::Connected),
        (0..24_u32).prop_map(Blow::Released),
        octets().prop_map(Blow::Frame),
        any::<u8>().prop_map(Blow::Flow),
        (0..4_u8).prop_map(Blow::Flow),
        (0..4_u8, any::<bool>()).prop_map(|(e, on)| Blow::Entry(e, on)),
        Just(Blow::Answer),
        (0..4_u8, octets()).prop_map(|(mac, o)| Blow::Tlv(mac, o)),
        any::<bool>().prop_map(Blow::Lec),
        any::<u8>().prop_map(Blow::Daemon),
        (0..400_u16).prop_map(Blow::Wait),
    ]
}

/// A packet with contents, chosen by `which`.
fn some_packet(which: u8, id: u32) -> Packet {
    let request = mpoa::resolution_request(id, DATA, OWN, TARGET);
    match which % 10 {
        0 => imposition(u32::from(which), u16::from(which)).packet(),
        1 => imposition(u32::from(which % 3), 0).packet(),
        2 => answer(&request, PEER, u16::from(which), Some(TAG)),
        3 => refusal(&request, which),
        4 => mpoa::keep_alive(u32::from(which), MPS, u32::MAX >> (which % 32)),
        5 => mpoa::trigger(MPS, MPS_IP, IpAddr::V4(Ipv4Addr::new(10, 2, 0, which))),
        6 => mpoa::purge_request(id, MPS, MPS_IP, OWN, TARGET, which),
        7 => mpoa::data_plane_purge(PEER, None, TARGET, which),
        8 => request.with(Extension::compulsory(0x1300, vec![which])),
        _ => {
            let wish = imposition(1, 1).packet();
            let error = Packet::error_about(&wish.encode(), 7, 0, MPS, MPS_IP.into());
            error.unwrap_or(wish)
        }
    }
}

/// Connections of both kinds and directions, known to the client or not.
fn conn(which: u8) -> ConnId {
    ConnId([1, 2, ConnId::INCOMING, ConnId::INCOMING + 1][usize::from(which % 4)])
}

fn some_qos(which: u8) -> Qos {
    Qos::cbr(100 * (1 + u32::from(which % 2)), 1536)
}

/// Conditions that always hold between flows and their connections.
fn check_connections(rig: &Rig) -> Result<(), TestCaseError> {
    let data = &rig.mpc.data;
    let mut alone = std::collections::BTreeSet::new();
    for (key, entry) in data.ingress.entries.iter() {
        let Some(binding) = &entry.binding else {
            continue;
        };
        prop_assert_eq!(binding.qos, data.qos.qos(key.2), "the traffic of its entry");
        if let Some(conn) = binding.conn {
            let shortcut = &data.shortcuts[&conn];
            prop_assert_eq!(shortcut.peer, binding.egress);
            if binding.qos.is_some() {
                prop_assert_eq!(shortcut.qos, binding.qos);
                prop_assert!(alone.insert(conn), "one flow to a connection");
            }
        }
        if let Some(conn) = binding.spare.and_then(|spare| spare.conn) {
            prop_assert!(binding.qos.is_some() && data.shortcuts.contains_key(&conn));
        }
    }
    let opened = data
        .shortcuts
        .iter()
        .filter(|(_, s)| s.opened && s.qos.is_some());
    for (conn, _) in opened {
        prop_assert!(alone.contains(conn), "none without its flow");
    }
    Ok(())
}

fn strike(rig: &mut Rig, blow: &Blow) {
    let id_of = |id: u32| {
        if id < 12 {
            ConnId(id)
        } else {
            ConnId(ConnId::INCOMING + id - 12)
        }
    };
    match blow {
        Blow::Raw(c, sdu) => {
            rig.atm(AtmEvent::Received {
                conn: conn(*c),
                sdu,
            });
        }
        Blow::Packet(c, which) => {
            rig.control(conn(*c), &some_packet(*which, 1));
        }
        Blow::Damaged(c, which, at, value) => {
            let mut octets = some_packet(*which, 1).encode();
            let at = at.index(octets.len());
            octets[at] = *value;
            octets[12..14].fill(0);
            let sum = aerostat_wire::nhrp::internet_checksum(&octets);
            octets[12..14].copy_from_slice(&sum.to_be_bytes());
            let sdu = [&aerostat_wire::nhrp::LLC[..], &octets].concat();
            rig.atm(AtmEvent::Received {
                conn: conn(*c),
                sdu: &sdu,
            });
        }
        Blow::Call(id, peer, data) => {
            let calling = [MPS, MPS_2, PEER, DATA, CONTROL][usize::from(peer % 5)];
            let called = if *data { DATA } else { CONTROL };
            let conn = ConnId(ConnId::INCOMING + id);
            // The service never offers an id that is in use.
            let known = rig.mpc.daemon.seat.conns().contains_key(&conn);
            if !known {
                let calling = (*peer < 5).then_some(calling);
                let (sap, multipoint) = (Sap::LLC, false);
                let qos = [Qos::ubr(1536), some_qos(1)][*id as usize % 2];
                rig.atm(AtmEvent::Incoming {
                    conn,
                    calling,
                    called,
                    sap,
                    qos,
                    multipoint,
                });
            }
        }
        Blow::Connected(id) => {
            rig.atm(AtmEvent::Connected {
                conn: id_of(*id),
                vc: Vc::new(0, 99),
                qos: Qos::ubr(0),
            });
        }
        Blow::Released(id) => {
            rig.atm(AtmEvent::Released {
                conn: id_of(*id),
                cause: Cause::NORMAL,
            });
        }
        Blow::Frame(frame) => {
            rig.outbound(0, frame.clone());
        }
        Blow::Flow(host) => {
            rig.flow(IpAddr::V4(Ipv4Addr::new(10, 2, 0, *host)));
        }
        Blow::Entry(which, on) => {
            let filter: mpoa::FlowFilter = ["10.2.0.0", "10.2.0.1", "10.2.0.2 udp", "0.0.0.0 udp"]
                [usize::from(*which)]
            .parse()
            .expect("a filter");
            let qos = on.then(|| some_qos(*which));
            let _ = rig.mpc.handle_input(Input::SetQos { filter, qos }, rig.now);
            settle(&mut rig.mpc, rig.now);
        }
        Blow::Answer => {
            let Some(daemon) = rig.mpc.daemon() else {
                return;
            };
            let asked = daemon.pending.iter().next();
            let conns = daemon.conns.iter();
            let found = asked.and_then(|(key, pending)| {
                let mut conns = conns.filter(|(_, c)| c.is_open() && c.peer() == key.0);
                Some((conns.next()?.0, pending.packet.clone()))
            });
            if let Some((conn, request)) = found {
                rig.control(conn, &answer(&request, PEER, 600, Some(TAG)));
            }
        }
        Blow::Tlv(mac, value) => {
            let tlvs = vec![Tlv::new(TlvType::DEVICE_TYPE, value.clone())];
            rig.associate(MacAddr([2, 0, 0, 0, 0, 0x20 + mac]), tlvs);
        }
        Blow::Lec(true) => {
            rig.lec_up(0);
            rig.associate(MPS_MAC, mps_tlv(MPS));
        }
        Blow::Lec(false) => {
            rig.input(Input::LecDown { itf: 0 });
        }
        Blow::Daemon(what) => {
            let input = match what % 8 {
                0 => Input::Mpcd(ProcessEvent::Gone),
                1 => Input::Stop,
                2 => Input::Reload,
                3 => Input::Enable(false),
                4 => Input::Enable(true),
                _ => Input::Start,
            };
            rig.input(input);
        }
        Blow::Wait(s) => {
            let at = rig.now.as_nanos() / 1_000_000_000 + u64::from(*s);
            rig.until(at);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn stays_within_its_bounds(blows in prop::collection::vec(blow(), 0..60), split: bool) {
        SPLIT.set(split);
        let mut config = MpcConfig::new(CONTROL, DATA);
        config.limits = MpcLimits {
            ingress: 5, egress: 4, shortcuts: 3, control: 4, mps: 3, queue: 3, qos: 3,
        };
        let limits = config.limits;
        let mut rig = Rig::ready_with(config);
        for blow in &blows {
            strike(&mut rig, blow);
            let snapshot = rig.mpc.snapshot(rig.now);
            prop_assert!(snapshot.ingress.len() <= limits.ingress);
            prop_assert!(snapshot.egress.len() <= limits.egress);
            prop_assert!(snapshot.shortcuts.len() <= limits.shortcuts);
            prop_assert!(snapshot.mps.len() <= limits.mps);
            if let Some(daemon) = rig.mpc.daemon() {
                prop_assert!(daemon.conns.len() <= limits.control + limits.shortcuts);
                // The two halves agree about the egress cache.
                prop_assert_eq!(daemon.imposed.len(), snapshot.egress.len());
                prop_assert_eq!(
                    daemon.tags.len(),
                    snapshot.egress.iter().filter(|row| row.tag.is_some()).count()
                );
                prop_assert!(daemon.purges.len() <= limits.egress);
                prop_assert!(daemon.pending.len() <= 600);
            }
            prop_assert!(snapshot.qos.len() <= limits.qos);
            check_connections(&rig)?;
            let _ = snapshot.proc_text();
        }
        // After the end, no state is left and no timer is due.
        rig.input(Input::Stop);
        let end = rig.now.as_nanos() / 1_000_000_000 + 3;
        rig.until(end);
        prop_assert!(rig.mpc.idle());
        prop_assert_eq!(rig.mpc.poll_timeout(), None);
    }

    #[test]
    fn control_packets_never_panic(packets in prop::collection::vec((any::<u8>(), any::<u32>()), 1..40)) {
        let mut rig = Rig::ready();
        let (control, data) = rig.shortcut();
        for (which, id) in packets {
            rig.control(control, &some_packet(which, id));
            rig.control(data, &some_packet(which, id));
        }
    }
}

/// A client that is stopped during the end for a reload does not start again.
#[test]
fn stopped_during_a_reload() {
    let mut rig = Rig::ready();
    strike(&mut rig, &Blow::Flow(0));
    strike(&mut rig, &Blow::Packet(0, 70));
    rig.input(Input::Reload);
    assert!(!rig.mpc.idle(), "purges are not answered yet");
    rig.input(Input::Stop);
    let end = rig.now.as_nanos() / 1_000_000_000 + 3;
    rig.until(end);
    assert!(rig.mpc.idle());
    assert_eq!(rig.mpc.poll_timeout(), None);
}

/// A member of the ELAN claims that the MAC address of the router belongs to its own MPS: the member gets none of the
/// router's flows, whether the router was heard before it or after.
#[test]
fn a_tlv_cannot_take_the_router_away() {
    let thief = MacAddr([2, 0, 0, 0, 0, 0x66]);
    let claim = |macs| {
        let control = MPS_2;
        vec![DeviceType::Mps { control, macs }.to_tlv()]
    };
    let mut rig = Rig::ready();
    let (_, data) = rig.shortcut();
    rig.associate(thief, claim(vec![MPS_MAC, thief]));
    assert_eq!(rig.counters().mps_limit, 1);
    assert_eq!(sdus(&rig.send(TARGET))[0].0, data);
    // The false claim comes first: the router's own TLV replaces it when it comes.
    let mut rig = Rig::new(MpcConfig::new(CONTROL, DATA));
    rig.lec_up(0);
    rig.input(Input::Start);
    rig.associate(thief, claim(vec![MPS_MAC]));
    rig.associate(MPS_MAC, mps_tlv(MPS));
    rig.associate(thief, claim(vec![MPS_MAC]));
    rig.shortcut();
    // A list as long as the table leaves room for MAC addresses with TLVs of their own.
    let limits = MpcLimits {
        mps: 4,
        ..MpcLimits::default()
    };
    let mut rig = Rig::new(MpcConfig {
        limits,
        ..MpcConfig::new(CONTROL, DATA)
    });
    rig.lec_up(0);
    rig.input(Input::Start);
    let many = (0..40).map(|n| MacAddr([2, 0, 0, 0, 9, n])).collect();
    rig.associate(thief, claim(many));
    rig.associate(MPS_MAC, mps_tlv(MPS));
    rig.shortcut();
}

/// Replies that were valid once: to the previous request, for a binding that has been purged since, for another
/// destination.
#[test]
fn old_replies_bring_nothing_back() {
    let mut rig = Rig::ready();
    let (control, request) = rig.asked(TARGET);
    let reply = answer(&request, PEER, 600, Some(TAG));
    rig.control(control, &reply);
    assert!(rig.row(TARGET).is_some_and(|row| row.egress.is_some()));
    let purge = mpoa::purge_request(9, MPS, MPS_IP, OWN, TARGET, 32);
    rig.control(control, &purge);
    assert!(rig.row(TARGET).is_none());
    let before = rig.counters().unsolicited;
    for again in [&reply, &answer(&request, MPS_2, 600, Some(TAG))] {
        rig.control(control, again);
        assert!(rig.row(TARGET).is_none(), "purged is purged");
    }
    // A new request is outstanding: the old reply does not match it, nor does a reply for another destination, nor a
    // reply from an unknown peer.
    let (_, request) = control_packets(&rig.flow(TARGET)).remove(0);
    rig.control(control, &reply);
    let mut other = answer(&request, PEER, 600, Some(TAG));
    if let aerostat_wire::nhrp::Body::Common(common) = &mut other.body {
        common.destination = Ipv4Addr::new(10, 2, 0, 99).into();
    }
    rig.control(control, &other);
    assert_eq!(rig.counters().unsolicited, before + 4);
    let stranger = rig.call_in(7, PEER, CONTROL);
    rig.control(stranger, &answer(&request, PEER, 600, Some(TAG)));
    assert_eq!(rig.counters().unknown_sender, 1);
    assert!(rig.row(TARGET).is_some_and(|row| row.egress.is_none()));
    // A duplicate of a valid reply has no effect.
    let good = answer(&request, PEER, 600, Some(TAG));
    rig.control(control, &good);
    rig.control(control, &good);
    assert_eq!(rig.counters().unsolicited, before + 5);
}

/// Extreme holding times: 0 makes no binding, 65535 s is the longest value, and is kept.
#[test]
fn holding_times_of_nothing_and_of_the_longest() {
    let mut rig = Rig::ready();
    let (control, request) = rig.asked(TARGET);
    rig.control(control, &answer(&request, PEER, 0, Some(TAG)));
    assert_eq!(rig.counters().malformed, 1);
    assert_eq!(to_lane(&rig.flow(TARGET)), 10, "refused, so held down");
    let mut rig = Rig::ready();
    let (control, request) = rig.asked(TARGET);
    let out = rig.control(control, &answer(&request, PEER, u16::MAX, Some(TAG)));
    assert!(
        rig.row(TARGET).is_some_and(|row| row.egress.is_some()),
        "{out:?}"
    );
    let accepted = |out: &[Output]| {
        let packets = control_packets(out);
        let reply = packets
            .iter()
            .find(|(_, packet)| packet.op == mpoa::op::IMPOSITION_REPLY);
        reply.and_then(|(_, packet)| Some(packet.common()?.cies.first()?.code)) == Some(0)
    };
    // Removed before it was imposed; imposed for the longest time; removed.
    assert!(accepted(&rig.control(control, &imposition(7, 0).packet())));
    assert!(accepted(
        &rig.control(control, &imposition(7, u16::MAX).packet())
    ));
    assert_eq!(rig.mpc.snapshot(rig.now).egress.len(), 1);
    assert!(accepted(&rig.control(control, &imposition(7, 0).packet())));
    assert_eq!(rig.mpc.snapshot(rig.now).egress.len(), 0);
}

/// Packets on a shortcut with a tag that was never assigned, or was assigned to another ingress, or for an address that
/// the entry does not cover, are not delivered; they are counted, and few of them are answered with a purge.
#[test]
fn foreign_tags_deliver_nothing() {
    let mut rig = Rig::ready();
    let (control, _) = rig.shortcut();
    let reply = control_packets(&rig.control(control, &imposition(7, 1200).packet()));
    let Ok(Some(mpoa::Tag::Value(tag))) = mpoa::Tag::of(&reply[0].1) else {
        panic!("no tag")
    };
    let own = rig.call_in(3, PEER, DATA);
    let stranger = rig.call_in(4, MPS_2, DATA);
    let good = mpoa::shortcut_sdu(Some(tag), &packet(TARGET, OWN, 63, 10));
    let received = |rig: &mut Rig, conn, sdu: &[u8]| rig.atm(AtmEvent::Received { conn, sdu });
    assert_eq!(delivered(&received(&mut rig, own, &good)).len(), 1);
    let mut purges = 0;
    for n in 0..200_u32 {
        let wrong = mpoa::shortcut_sdu(Some(tag ^ (n + 1)), &packet(TARGET, OWN, 63, 10));
        let untagged = mpoa::shortcut_sdu(None, &packet(TARGET, OWN, 63, 10));
        let past = mpoa::shortcut_sdu(Some(tag), &packet(TARGET, MPS_IP, 63, 10));
        for (conn, sdu) in [
            (own, &wrong),
            (own, &past),
            (stranger, &good),
            (stranger, &untagged),
        ] {
            let out = received(&mut rig, conn, sdu);
            assert!(delivered(&out).is_empty());
            purges += control_packets(&out).len();
        }
    }
    assert_eq!(rig.counters().egress_misses, 800);
    assert!(purges <= 4, "{purges} purges in one instant");
}

#[test]
fn purge_with_many_entries_is_bounded() {
    let mut rig = Rig::ready();
    let (control, _) = rig.shortcut();
    let mut purge = mpoa::purge_request(1, MPS, MPS_IP, OWN, TARGET, 32);
    if let aerostat_wire::nhrp::Body::Common(common) = &mut purge.body {
        let cie = common.cies[0].clone();
        common.cies = vec![cie; 3000];
    }
    let out = rig.control(control, &purge);
    assert!(out.len() < 300 && rig.row(TARGET).is_none());
}
