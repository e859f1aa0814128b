//! The ingress states of MPOA 1.1 appendix I.2, event by event.

use super::*;
use crate::Cause;
use aerostat_wire::mpoa::op;
use aerostat_wire::nhrp;
use core::slice;

#[test]
fn only_candidates_are_counted() {
    let mut rig = Rig::ready();
    let good = packet(OWN, TARGET, 64, 100);
    let mut options = good.clone();
    options[0] = 0x46;
    let mut damaged = good.clone();
    damaged[11] ^= 1;
    let mut arp = ethernet(MPS_MAC, &good);
    arp[13] = 6;
    let frames = [
        ethernet(OWN_MAC, &good),
        ethernet(MacAddr::BROADCAST, &good),
        ethernet(MPS_MAC, &packet(OWN, TARGET, 1, 100)),
        ethernet(
            MPS_MAC,
            &packet(OWN, IpAddr::V4(Ipv4Addr::new(224, 0, 0, 5)), 64, 100),
        ),
        ethernet(MPS_MAC, &options),
        ethernet(MPS_MAC, &damaged),
        ethernet(MPS_MAC, &good[..60]),
        arp,
        vec![2; 9],
        vec![],
    ];
    for frame in frames {
        for itf in [0, 1] {
            let sent = rig.outbound(itf, frame.clone());
            assert_eq!(sent.lane, slice::from_ref(&frame), "as it came");
            assert!(sent.out.is_empty());
        }
    }
    assert!(rig.mpc.snapshot(rig.now).ingress.is_empty());
    // A frame in 802.3 format with SNAP is a candidate, too.
    let mut snap = DllHeader::ethernet_ipv4(MPS_MAC, OWN_MAC);
    snap.truncate(12);
    snap.extend((good.len() as u16 + 8).to_be_bytes());
    snap.extend([0xaa, 0xaa, 3, 0, 0, 0, 8, 0]);
    snap.extend(&good);
    rig.outbound(0, snap);
    assert_eq!(rig.state(), IngressState::Cached);
}

#[test]
fn cached_needs_p1_frames_within_p2() {
    let mut rig = Rig::ready();
    for second in 0..5 {
        rig.until(second);
        let out: Sent = (0..9).map(|_| rig.send(TARGET)).collect();
        assert_eq!((to_lane(&out), connects(&out).len()), (9, 0));
    }
    rig.until(5);
    let out = rig.flow(TARGET);
    assert_eq!(
        to_lane(&out),
        10,
        "frames go to LANE until the shortcut is up"
    );
    assert_eq!(connects(&out)[0].1, MPS);
    assert_eq!(story(&out), ["mpc.flow.detected", "mpc.resolution.sent"]);
    assert_eq!(rig.state(), IngressState::Query);
}

#[test]
fn request_is_the_one_of_linux() {
    let mut rig = Rig::ready();
    let (_, request) = rig.asked(TARGET);
    let id = request.common().unwrap().request_id;
    assert_eq!(request, mpoa::resolution_request(id, DATA, OWN, TARGET));
    assert_eq!(request.encode().len(), 76);
}

#[test]
fn from_flow_to_shortcut() {
    let mut rig = Rig::ready();
    let (control, request) = rig.asked(TARGET);
    let out = rig.control(control, &answer(&request, PEER, 1200, Some(TAG)));
    assert_eq!(story(&out), ["mpc.resolution.answered"]);
    let (data, called) = connects(&out)[0];
    assert_eq!(called, PEER);
    let Some(Output::Atm(AtmRequest::Connect {
        calling, sap, qos, ..
    })) = out
        .iter()
        .find(|o| matches!(o, Output::Atm(AtmRequest::Connect { .. })))
    else {
        panic!("no call");
    };
    assert_eq!((*calling, *sap, *qos), (DATA, Sap::LLC, Qos::ubr(1536)));
    assert_eq!(rig.state(), IngressState::Resolved);
    assert_eq!(
        to_lane(&rig.send(TARGET)),
        1,
        "LANE while the call is being set up"
    );
    assert_eq!(story(&rig.connected(data, 60)), ["mpc.shortcut.up"]);

    let out = rig.send(TARGET);
    assert_eq!(story(&out), ["mpc.shortcut.first"]);
    let sent = sdus(&out);
    let expected = mpoa::shortcut_sdu(Some(TAG), &packet(OWN, TARGET, 63, 100));
    assert_eq!(
        sent,
        [(data, expected)],
        "tag, no LAN header, TTL decremented, checksum right"
    );
    assert_eq!(to_lane(&out), 0);
    assert!(story(&rig.send(TARGET)).is_empty());
    let row = rig.row(TARGET).unwrap();
    assert_eq!(
        (row.packets, row.vc, row.holding_s),
        (2, Some(Vc::new(0, 60)), Some(1200))
    );
    // Packets that the shortcut cannot carry still go by LANE.
    for (ttl, payload) in [(1, 100), (64, 1481)] {
        let frame = ethernet(MPS_MAC, &packet(OWN, TARGET, ttl, payload));
        assert_eq!(to_lane(&rig.outbound(0, frame)), 1);
    }
}

/// Calls of an ELAN with large frames must still fit the listeners of other clients: 1536 octets for control
/// connections, and for shortcuts the size that a packet of that ELAN needs. (The MTU of the far ELAN, the largest
/// packet on the shortcut, the SDU of the shortcut.)
#[test]
fn sdus_fit_the_smaller_of_two_elans() {
    let qos_of = |out: &[Output]| {
        out.iter().find_map(|output| match output {
            Output::Atm(AtmRequest::Connect { qos, .. }) => Some(*qos),
            _ => None,
        })
    };
    for (mtu, largest, sdu) in [
        (1500, 1500, 1536),
        (9218, 9218, 9230),
        (18174, 9218, 9230),
        (0, 1524, 1536),
        (56325, 1524, 1536),
    ] {
        let mut rig = Rig::new(MpcConfig::new(CONTROL, DATA));
        let out = rig.input(Input::Start);
        let (itf, elan_id, mtu_own) = (0, ELAN, 9218);
        rig.input(Input::LecUp {
            itf,
            elan_id,
            mtu: mtu_own,
        });
        for address in [CONTROL, DATA] {
            let (sap, max_sdu) = (Sap::LLC, u16::MAX);
            assert!(out.contains(&Output::Atm(AtmRequest::listen(address, sap, max_sdu))));
        }
        rig.associate(MPS_MAC, mps_tlv(MPS));
        let out = rig.flow(TARGET);
        assert_eq!(qos_of(&out), Some(Qos::ubr(1536)), "control connection");
        let control = connects(&out)[0].0;
        let sent = control_packets(&rig.connected(control, 50));
        let reply = sent[0]
            .1
            .reply(vec![mpoa::reply_entry(32, mtu, 1200, PEER)]);
        let out = rig.control(control, &reply.expect("request"));
        assert_eq!(qos_of(&out), Some(Qos::ubr(sdu)), "shortcut, {mtu}");
        let data = connects(&out)[0].0;
        rig.connected(data, 60);
        // The stack sends nothing above its own MTU.
        let too_long = (largest < mtu_own).then_some((usize::from(largest) + 1, 1));
        for (len, lane) in [(largest.into(), 0)].into_iter().chain(too_long) {
            let frame = ethernet(MPS_MAC, &packet(OWN, TARGET, 64, len - 20));
            let out = rig.outbound(0, frame);
            assert_eq!(to_lane(&out), lane, "{len} octets, {mtu}");
        }
    }
}

#[test]
fn untagged_reply_gives_the_routed_form() {
    for tag in [None, Some(0)] {
        let mut rig = Rig::ready();
        let (control, request) = rig.asked(TARGET);
        let out = rig.control(control, &answer(&request, PEER, 1200, tag));
        let data = connects(&out)[0].0;
        rig.connected(data, 60);
        let expected = mpoa::shortcut_sdu(None, &packet(OWN, TARGET, 63, 100));
        assert_eq!(sdus(&rig.send(TARGET)), [(data, expected)]);
    }
}

/// The LAN header has room for every header of a shortcut, so no part of the host copies the payload.
#[test]
fn the_payload_of_a_frame_does_not_move_when_the_frame_takes_a_shortcut() {
    for (tag, header) in [(Some(TAG), 12), (None, 8)] {
        let mut rig = Rig::ready();
        let (control, request) = rig.asked(TARGET);
        let out = rig.control(control, &answer(&request, PEER, 1200, tag));
        let data = connects(&out)[0].0;
        rig.connected(data, 60);
        let mut frame = ethernet(MPS_MAC, &packet(OWN, TARGET, 64, 100));
        // Padding of the LAN does not enter the shortcut.
        frame.resize(frame.len() + 6, 0);
        let payload = frame.as_ptr().wrapping_add(14 + 20);
        let Outbound::Shortcut { conn, sdu } = rig.mpc.mpc.outbound(0, frame, rig.now) else {
            panic!("the shortcut is open");
        };
        assert_eq!(conn, data);
        assert_eq!(sdu.as_ptr().wrapping_add(header + 20), payload);
        let expected = mpoa::shortcut_sdu(tag, &packet(OWN, TARGET, 63, 100));
        assert_eq!(sdu.into_vec(), expected);
    }
}

#[test]
fn query_is_retried_at_0_5_15_35_and_fails_at_40() {
    let mut rig = Rig::ready();
    let (_, request) = rig.asked(TARGET);
    let out = rig.until(100);
    let sent: Vec<u64> = out
        .iter()
        .flat_map(|(at, output)| {
            let same = control_packets(slice::from_ref(output));
            same.into_iter().map(|(_, packet)| (*at, packet))
        })
        .map(|(at, packet)| {
            assert_eq!(packet, request, "with the same id");
            at
        })
        .collect();
    assert_eq!(sent, [5, 15, 35]);
    let failed = out
        .iter()
        .find(|(_, o)| !story(slice::from_ref(o)).is_empty())
        .unwrap();
    assert_eq!(
        (failed.0, story(slice::from_ref(&failed.1))[0]),
        (40, "mpc.resolution.failed")
    );
    assert_eq!(rig.state(), IngressState::HoldDown);
    assert_eq!(rig.counters().resolution_requests_sent, 4);
    // A late answer has no effect.
    let conn = ConnId(1);
    assert!(connects(&rig.control(conn, &answer(&request, PEER, 1200, Some(TAG)))).is_empty());
    assert_eq!(rig.state(), IngressState::HoldDown);
}

#[test]
fn hold_down_lasts_p6_then_the_count_starts_again() {
    let mut rig = Rig::ready();
    let (control, request) = rig.asked(TARGET);
    let out = rig.control(control, &refusal(&request, nhrp::code::NO_BINDING));
    assert_eq!(story(&out), ["mpc.resolution.refused"]);
    assert_eq!(rig.counters().resolution_replies[&12], 1);
    for second in [1, 100, 159] {
        rig.until(second);
        let out = rig.flow(TARGET);
        assert_eq!((to_lane(&out), sdus(&out).len()), (10, 0));
        let trigger = mpoa::trigger(MPS, MPS_IP, TARGET);
        assert!(
            control_packets(&rig.control(control, &trigger)).is_empty(),
            "nor by trigger"
        );
        assert_eq!(rig.state(), IngressState::HoldDown);
    }
    rig.until(160);
    assert_eq!(rig.state(), IngressState::Cached);
    assert!(control_packets(&rig.send(TARGET)).is_empty(), "count 0");
    let sent = control_packets(&rig.flow(TARGET));
    assert_eq!(sent.len(), 1);
    assert_ne!(
        sent[0].1.common().unwrap().request_id,
        request.common().unwrap().request_id
    );
}

#[test]
fn tables_tell_states_and_times_apart_that_linux_shows_as_one() {
    let mut rig = Rig::ready();
    let shown = |rig: &Rig| {
        let row = rig.row(TARGET).unwrap();
        let text = rig.mpc.snapshot(rig.now).proc_text();
        let line = text.lines().find(|line| line.starts_with("10.2.0.20 "));
        let linux: Vec<String> = (line.unwrap().split_whitespace().skip(1).take(2))
            .map(str::to_owned)
            .collect();
        (row.state.name(), row.holding_s, linux.join(" "))
    };
    rig.send(TARGET);
    rig.until(1);
    // No server has given a time; Linux counts its default down.
    assert_eq!(shown(&rig), ("not asked", None, "invalid 1199".to_owned()));
    let (control, request) = rig.asked(TARGET);
    assert_eq!(shown(&rig), ("resolving", None, "resolving 0".to_owned()));
    rig.control(control, &refusal(&request, nhrp::code::NO_BINDING));
    rig.until(61);
    let told = ("hold down", Some(100), "resolving 100".to_owned());
    assert_eq!(shown(&rig), told);
}

#[test]
fn every_refusal_code_holds_down() {
    for code in [
        4, 5, 12, 13, 0x81, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0xee,
    ] {
        let mut rig = Rig::ready();
        let (control, request) = rig.asked(TARGET);
        rig.control(control, &refusal(&request, code));
        assert_eq!(rig.state(), IngressState::HoldDown);
        assert_eq!(rig.row(TARGET).unwrap().last_code, code);
        assert_eq!(rig.counters().resolution_replies[&u16::from(code)], 1);
    }
}

#[test]
fn unusable_success_is_a_refusal() {
    for (egress, holding) in [(DATA, 1200), (PEER, 0)] {
        let mut rig = Rig::ready();
        let (control, request) = rig.asked(TARGET);
        rig.control(control, &answer(&request, egress, holding, Some(TAG)));
        assert_eq!(rig.state(), IngressState::HoldDown);
    }
    let mut rig = Rig::ready();
    let (control, request) = rig.asked(TARGET);
    let no_address = request.reply(vec![Cie::brief(32, 1200)]).unwrap();
    rig.control(control, &no_address);
    assert_eq!(rig.state(), IngressState::HoldDown);
}

#[test]
fn trigger_resolves_without_a_flow() {
    let mut rig = Rig::ready();
    let conn = rig.call_in(0, MPS, CONTROL);
    let out = rig.control(conn, &mpoa::trigger(MPS, MPS_IP, TARGET));
    let sent = control_packets(&out);
    assert_eq!((sent[0].0, sent[0].1.op), (conn, op::RESOLUTION_REQUEST));
    assert_eq!(rig.state(), IngressState::Query);
    assert!(control_packets(&rig.control(conn, &mpoa::trigger(MPS, MPS_IP, TARGET))).is_empty());
    assert_eq!(rig.counters().triggers, 2);
}

#[test]
fn refresh_at_two_thirds_keeps_the_shortcut() {
    let mut rig = Rig::ready();
    let (control, data) = rig.shortcut();
    keep_alive(&mut rig, control, 1, 3000);
    rig.until(799);
    assert_eq!(rig.state(), IngressState::Resolved);
    rig.until(800);
    assert_eq!(rig.state(), IngressState::Refresh);
    let out: Sent = (0..9).map(|_| rig.send(TARGET)).collect();
    assert!(
        control_packets(&out).is_empty(),
        "below p1 nothing is asked"
    );
    let out = rig.send(TARGET);
    let request = control_packets(&out)[0].1.clone();
    assert_eq!(
        sdus(&out).iter().filter(|(conn, _)| *conn == data).count(),
        1
    );
    assert_eq!(rig.state(), IngressState::Query);
    assert_eq!(
        sdus(&rig.send(TARGET))[0].0,
        data,
        "the shortcut stays in use"
    );
    let out = rig.control(control, &answer(&request, PEER, 1200, Some(TAG + 1)));
    assert!(connects(&out).is_empty(), "and so does its connection");
    assert_eq!(rig.state(), IngressState::Resolved);
    let expected = mpoa::shortcut_sdu(Some(TAG + 1), &packet(OWN, TARGET, 63, 100));
    assert_eq!(sdus(&rig.send(TARGET)), [(data, expected)]);
    rig.until(1599);
    assert_eq!(
        rig.state(),
        IngressState::Resolved,
        "two thirds from the refresh"
    );
}

fn keep_alive(rig: &mut Rig, conn: ConnId, sequence: u32, lifetime: u32) -> Vec<Output> {
    rig.control(conn, &mpoa::keep_alive(sequence, MPS, lifetime))
}

#[test]
fn holding_time_ends_an_idle_shortcut() {
    let mut rig = Rig::ready();
    let (control, data) = rig.shortcut();
    keep_alive(&mut rig, control, 1, 3000);
    let out: Vec<Output> = rig.until(1199).into_iter().map(|(_, o)| o).collect();
    assert!(releases(&out).is_empty());
    let out: Vec<Output> = rig.until(1200).into_iter().map(|(_, o)| o).collect();
    assert_eq!(
        releases(&out),
        [data],
        "the last entry releases the connection"
    );
    assert!(rig.row(TARGET).is_none());
    assert_eq!(
        rig.mpc.snapshot(rig.now).mps[0].keep_alive_s,
        None,
        "the check has stopped"
    );
}

#[test]
fn refused_refresh_ends_the_shortcut() {
    let mut rig = Rig::ready();
    let (control, data) = rig.shortcut();
    keep_alive(&mut rig, control, 1, 3000);
    rig.until(900);
    let request = control_packets(&rig.flow(TARGET))[0].1.clone();
    let out = rig.control(control, &refusal(&request, nhrp::code::NO_BINDING));
    assert_eq!(releases(&out), [data]);
    assert_eq!(
        (rig.state(), to_lane(&rig.send(TARGET))),
        (IngressState::HoldDown, 1)
    );
}

#[test]
fn purge_of_the_mps_matches_by_prefix() {
    for (prefix, network, gone) in [
        (32, TARGET, true),
        (0, TARGET, true),
        (24, IpAddr::V4(Ipv4Addr::new(10, 2, 0, 0)), true),
        (24, IpAddr::V4(Ipv4Addr::new(10, 3, 0, 0)), false),
        (32, IpAddr::V4(Ipv4Addr::new(10, 2, 0, 21)), false),
        (255, IpAddr::V4(Ipv4Addr::new(10, 2, 0, 21)), false),
    ] {
        let mut rig = Rig::ready();
        let (control, data) = rig.shortcut();
        let purge = mpoa::purge_request(9, MPS, MPS_IP, OWN, network, prefix);
        let out = rig.control(control, &purge);
        let reply = control_packets(&out);
        assert_eq!(reply.len(), 1, "a purge is answered, match or not");
        assert_eq!(
            reply[0].1,
            purge.reply(purge.common().unwrap().cies.clone()).unwrap()
        );
        assert_eq!(rig.row(TARGET).is_none(), gone, "{network}/{prefix}");
        assert_eq!(releases(&out) == [data], gone);
    }
}

#[test]
fn data_plane_purge_comes_over_the_shortcut() {
    let mut rig = Rig::ready();
    let (_, data) = rig.shortcut();
    let purge = mpoa::data_plane_purge(PEER, None, TARGET, 32);
    let out = rig.control(data, &purge);
    assert!(control_packets(&out).is_empty(), "N flag: no reply");
    assert_eq!((releases(&out), rig.row(TARGET)), (vec![data], None));
    assert_eq!(rig.counters().data_plane_purges, 1);
    assert_eq!(rig.counters().purge_requests, 0);
    assert_eq!(to_lane(&rig.send(TARGET)), 1);
    assert_eq!(
        rig.state(),
        IngressState::Cached,
        "the flow is watched again at once"
    );
}

#[test]
fn a_stranger_cannot_purge_over_its_own_shortcut() {
    let mut rig = Rig::ready();
    rig.shortcut();
    let stranger = rig.call_in(1, address(0x66, 0x51), DATA);
    rig.control(stranger, &mpoa::data_plane_purge(PEER, None, TARGET, 32));
    assert_eq!(rig.state(), IngressState::Resolved);
    // Control traffic other than purges is not counted there, either.
    rig.control(
        stranger,
        &mpoa::trigger(MPS, MPS_IP, IpAddr::V4(Ipv4Addr::new(10, 9, 9, 9))),
    );
    assert!(rig.row(IpAddr::V4(Ipv4Addr::new(10, 9, 9, 9))).is_none());
    assert_eq!(rig.counters().unknown_sender, 1);
}

#[test]
fn mps_mac_gone_deletes_the_entry() {
    let mut rig = Rig::ready();
    let (_, data) = rig.shortcut();
    let other = vec![DeviceType::Mpc { control: MPS }.to_tlv()];
    let out = rig.associate(MPS_MAC, other);
    assert_eq!((releases(&out), rig.row(TARGET)), (vec![data], None));

    let mut rig = Rig::ready();
    let (_, data) = rig.shortcut();
    assert_eq!(releases(&rig.input(Input::LecDown { itf: 0 })), [data]);
    assert_eq!(to_lane(&rig.send(TARGET)), 1);

    let mut rig = Rig::ready();
    let (_, data) = rig.shortcut();
    assert_eq!(
        releases(&rig.associate(MPS_MAC, mps_tlv(MPS_2))),
        [data],
        "another MPS"
    );
}

#[test]
fn ageing_of_le_arp_stops_new_flows_only() {
    let mut rig = Rig::ready();
    let (_, data) = rig.shortcut();
    rig.input(Input::Dissociate {
        itf: 0,
        mac: MPS_MAC,
    });
    assert_eq!(sdus(&rig.send(TARGET))[0].0, data);
    let other = IpAddr::V4(Ipv4Addr::new(10, 2, 0, 99));
    assert_eq!(to_lane(&rig.flow(other)), 10);
    assert!(rig.row(other).is_none());
    assert!(
        story(&rig.associate(MPS_MAC, mps_tlv(MPS))).is_empty(),
        "known already"
    );
    rig.send(other);
    assert!(rig.row(other).is_some());
}

#[test]
fn refused_call_keeps_the_entry_and_waits_for_hold_down() {
    let mut rig = Rig::ready();
    let (control, request) = rig.asked(TARGET);
    let out = rig.control(control, &answer(&request, PEER, 1200, Some(TAG)));
    keep_alive(&mut rig, control, 1, 3000);
    let conn = connects(&out)[0].0;
    let out = rig.atm(AtmEvent::Released {
        conn,
        cause: Cause::RATE_UNAVAILABLE,
    });
    assert_eq!(story(&out), ["mpc.shortcut.failed"]);
    assert_eq!(rig.state(), IngressState::Resolved);
    assert_eq!(
        rig.row(TARGET).unwrap().last_cause,
        Some(Cause::RATE_UNAVAILABLE)
    );
    rig.until(159);
    let out = rig.flow(TARGET);
    assert_eq!((to_lane(&out), connects(&out).len()), (10, 0));
    rig.until(160);
    assert_eq!(
        connects(&rig.flow(TARGET)).len(),
        1,
        "one call for the whole flow"
    );
}

#[test]
fn cleared_shortcut_is_opened_again_by_traffic() {
    let mut rig = Rig::ready();
    let (_, data) = rig.shortcut();
    let out = rig.atm(AtmEvent::Released {
        conn: data,
        cause: Cause::NORMAL,
    });
    assert_eq!(story(&out), ["mpc.shortcut.down"]);
    assert_eq!(rig.state(), IngressState::Resolved);
    let out = rig.flow(TARGET);
    assert_eq!(
        (to_lane(&out), connects(&out).len()),
        (10, 0),
        "not at once"
    );
    rig.until(5);
    let conn = connects(&rig.send(TARGET))[0].0;
    rig.connected(conn, 61);
    assert_eq!(sdus(&rig.send(TARGET))[0].0, conn);
}

#[test]
fn one_connection_serves_all_destinations_behind_it() {
    let mut rig = Rig::ready();
    let (control, data) = rig.shortcut();
    let other = IpAddr::V4(Ipv4Addr::new(10, 2, 0, 21));
    let request = control_packets(&rig.flow(other))[0].1.clone();
    let out = rig.control(control, &answer(&request, PEER, 1200, Some(TAG + 1)));
    assert!(connects(&out).is_empty());
    assert_eq!(sdus(&rig.send(other))[0].0, data);
    // The connection stays while one of the two flows needs it.
    let purge = |ip| mpoa::purge_request(9, MPS, MPS_IP, OWN, ip, 32);
    assert!(releases(&rig.control(control, &purge(other))).is_empty());
    assert_eq!(releases(&rig.control(control, &purge(TARGET))), [data]);
}

#[test]
fn qos_asks_for_its_own_shortcut() {
    let mut rig = Rig::ready();
    let cbr = Qos::cbr(80_000, 1600);
    let voice = Ipv4Addr::new(10, 2, 0, 30);
    rig.input(Input::SetQos {
        filter: mpoa::FlowFilter::to(voice),
        qos: Some(cbr),
    });
    let voice = IpAddr::V4(voice);
    let (control, data) = rig.shortcut();
    let request = control_packets(&rig.flow(voice))[0].1.clone();
    assert_eq!(
        mpoa::service_category(&request),
        Ok(Some(mpoa::category::CBR))
    );
    let out = rig.control(control, &answer(&request, PEER, 1200, Some(TAG)));
    let conn = connects(&out)[0].0;
    assert!(
        out.iter()
            .any(|o| matches!(o, Output::Atm(AtmRequest::Connect { qos, .. })
        if *qos == cbr))
    );
    assert_eq!(
        to_lane(&rig.send(voice)),
        1,
        "best effort is not good enough meanwhile"
    );
    rig.connected(conn, 61);
    assert_eq!(sdus(&rig.send(voice))[0].0, conn);
    assert_eq!(sdus(&rig.send(TARGET))[0].0, data);
    let text = rig.mpc.snapshot(rig.now).proc_text();
    assert!(
        text.contains("10.2.0.30\n     80000   0       0       0       1600   \n"),
        "{text}"
    );
}

#[test]
fn full_cache_sends_the_rest_to_lane() {
    let mut config = MpcConfig::new(CONTROL, DATA);
    config.limits.ingress = 4;
    let mut rig = Rig::ready_with(config);
    for host in 1..=6 {
        assert_eq!(
            to_lane(&rig.send(IpAddr::V4(Ipv4Addr::new(10, 2, 0, host)))),
            1
        );
    }
    assert_eq!(rig.mpc.snapshot(rig.now).ingress.len(), 4);
    assert_eq!(rig.counters().ingress_limit, 2);
    rig.until(1);
    rig.send(IpAddr::V4(Ipv4Addr::new(10, 2, 0, 5)));
    assert!(
        rig.row(IpAddr::V4(Ipv4Addr::new(10, 2, 0, 5))).is_some(),
        "stale counters make room"
    );
}

#[test]
fn the_same_with_the_daemon_in_a_process_of_its_own() {
    across_a_boundary(&[
        only_candidates_are_counted,
        cached_needs_p1_frames_within_p2,
        request_is_the_one_of_linux,
        from_flow_to_shortcut,
        sdus_fit_the_smaller_of_two_elans,
        untagged_reply_gives_the_routed_form,
        query_is_retried_at_0_5_15_35_and_fails_at_40,
        hold_down_lasts_p6_then_the_count_starts_again,
        tables_tell_states_and_times_apart_that_linux_shows_as_one,
        every_refusal_code_holds_down,
        unusable_success_is_a_refusal,
        trigger_resolves_without_a_flow,
        refresh_at_two_thirds_keeps_the_shortcut,
        holding_time_ends_an_idle_shortcut,
        refused_refresh_ends_the_shortcut,
        purge_of_the_mps_matches_by_prefix,
        data_plane_purge_comes_over_the_shortcut,
        a_stranger_cannot_purge_over_its_own_shortcut,
        mps_mac_gone_deletes_the_entry,
        ageing_of_le_arp_stops_new_flows_only,
        refused_call_keeps_the_entry_and_waits_for_hold_down,
        cleared_shortcut_is_opened_again_by_traffic,
        one_connection_serves_all_destinations_behind_it,
        qos_asks_for_its_own_shortcut,
        full_cache_sends_the_rest_to_lane,
    ]);
}
