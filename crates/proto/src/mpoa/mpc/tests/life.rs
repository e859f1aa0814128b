//! Start, end, crash, Keep-Alives, discovery: all events outside the caches.

use super::*;
use crate::Cause;
use aerostat_wire::mpoa::{Tag, op};
use aerostat_wire::nhrp::{self, Extension};

fn device_tlv() -> Vec<Tlv> {
    vec![DeviceType::Mpc { control: CONTROL }.to_tlv()]
}

fn listens(out: &[Output]) -> Vec<AtmAddress> {
    out.iter()
        .filter_map(|output| match output {
            Output::Atm(AtmRequest::Listen {
                address,
                sap: Sap::LLC,
                ..
            }) => Some(*address),
            _ => None,
        })
        .collect()
}

fn tlvs(out: &[Output]) -> Vec<(usize, Vec<Tlv>)> {
    out.iter()
        .filter_map(|output| match output {
            Output::SetTlvs { itf, tlvs } => Some((*itf, tlvs.clone())),
            _ => None,
        })
        .collect()
}

fn flat(out: Vec<(u64, Output)>) -> Vec<Output> {
    out.into_iter().map(|(_, output)| output).collect()
}

#[test]
fn start_listens_and_announces() {
    let mut config = MpcConfig::new(CONTROL, DATA);
    config.itfs = vec![0];
    let mut rig = Rig::new(config);
    assert_eq!(
        to_lane(&rig.send(TARGET)),
        1,
        "before the start everything is LANE"
    );
    let out = rig.input(Input::Start);
    assert_eq!(listens(&out), [CONTROL, DATA]);
    assert_eq!(tlvs(&out), [(0, device_tlv())]);
    assert_eq!(tlvs(&out)[0].1[0].value.len(), 22);
    // An interface that was not listed gets its TLVs when it comes up; a listed interface has them already.
    let up = |itf| Input::LecUp {
        itf,
        elan_id: ELAN,
        mtu: 1500,
    };
    assert!(tlvs(&rig.input(up(0))).is_empty());
    assert_eq!(tlvs(&rig.input(up(4))), [(4, device_tlv())]);
    assert!(rig.mpc.is_running());
}

#[test]
fn discovery_by_le_arp() {
    let mut rig = Rig::ready_with(MpcConfig::new(CONTROL, DATA));
    let macs = vec![MacAddr([4; 6]), MacAddr([6; 6])];
    let both = DeviceType::Both {
        mps: MPS_2,
        mpc: address(0x22, 0x50),
        macs,
    };
    let tlv = vec![both.to_tlv()];
    let out = rig.associate(MacAddr([8; 6]), tlv.clone());
    assert_eq!(story(&out), ["mpc.mps.discovered"]);
    assert!(
        story(&rig.associate(MacAddr([8; 6]), tlv)).is_empty(),
        "once"
    );
    let rows = rig.mpc.snapshot(rig.now).mps;
    assert_eq!(rows.iter().filter(|row| row.control == MPS_2).count(), 3);
    // Devices without the TLV, with other types or with invalid TLVs change nothing.
    let mpc = vec![DeviceType::Mpc { control: PEER }.to_tlv()];
    for tlvs in [vec![], mpc, vec![Tlv::new(TlvType::DEVICE_TYPE, vec![1])]] {
        assert!(rig.associate(MacAddr([10; 6]), tlvs).is_empty());
    }
    assert_eq!(rig.mpc.snapshot(rig.now).mps.len(), 4);
    assert_eq!(rig.counters().malformed, 1);
}

#[test]
fn unannounced_mps_by_configuration() {
    let mut config = MpcConfig::new(CONTROL, DATA);
    config.static_mps = vec![StaticMps {
        itf: 0,
        mac: MPS_MAC,
        control: MPS,
    }];
    let mut rig = Rig::new(config);
    rig.lec_up(0);
    assert_eq!(story(&rig.input(Input::Start)), ["mpc.mps.discovered"]);
    rig.shortcut();
}

#[test]
fn parameters_of_the_lecs() {
    let mut rig = Rig::ready();
    let p1 = Tlv::u16(TlvType::MPC_P1, 3);
    let bad = Tlv::u16(TlvType::MPC_P2, 61);
    rig.input(Input::ConfigTlvs(vec![p1, bad]));
    let out: Sent = (0..3).map(|_| rig.send(TARGET)).collect();
    assert_eq!(story(&out), ["mpc.flow.detected", "mpc.resolution.sent"]);
}

#[test]
fn keep_alives_postpone_death() {
    let mut rig = Rig::ready();
    let (control, data) = rig.shortcut();
    rig.until(50);
    rig.control(control, &mpoa::keep_alive(1, MPS, 35));
    assert!(releases(&flat(rig.until(84))).is_empty());
    rig.control(control, &mpoa::keep_alive(1, MPS, 35));
    rig.until(100);
    rig.control(control, &mpoa::keep_alive(2, MPS, 35));
    assert!(releases(&flat(rig.until(134))).is_empty());
    let out = flat(rig.until(135));
    assert!(story(&out).contains(&"mpc.keepalive.dead"));
    assert_eq!(
        releases(&out),
        [control, data],
        "the control connection is tried anew"
    );
    assert!(rig.row(TARGET).is_none());
    assert_eq!(
        (rig.counters().keep_alives, rig.counters().mps_deaths),
        (3, 1)
    );
    assert_eq!(connects(&rig.flow(TARGET))[0].1, MPS);
}

#[test]
fn first_keep_alive_within_60_seconds() {
    let mut rig = Rig::ready();
    rig.shortcut();
    assert!(story(&flat(rig.until(59))).is_empty());
    assert!(story(&flat(rig.until(60))).contains(&"mpc.keepalive.dead"));
}

#[test]
fn smaller_sequence_is_a_restart() {
    let mut rig = Rig::ready();
    let (control, data) = rig.shortcut();
    rig.control(control, &mpoa::keep_alive(7, MPS, 35));
    assert!(releases(&rig.control(control, &mpoa::keep_alive(7, MPS, 35))).is_empty());
    let out = rig.control(control, &mpoa::keep_alive(6, MPS, 35));
    assert_eq!(story(&out)[0], "mpc.keepalive.dead");
    assert_eq!(releases(&out), [data]);
    assert!(rig.row(TARGET).is_none());
}

#[test]
fn keep_alive_without_lifetime_or_of_another_counts_for_nothing() {
    let mut rig = Rig::ready();
    let (control, _) = rig.shortcut();
    rig.until(30);
    let mut bare = mpoa::keep_alive(1, MPS, 1000);
    bare.extensions = None;
    rig.control(control, &bare);
    rig.control(control, &mpoa::keep_alive(1, MPS_2, 1000));
    assert!(story(&flat(rig.until(60))).contains(&"mpc.keepalive.dead"));
    assert_eq!(
        (rig.counters().malformed, rig.counters().unknown_sender),
        (1, 1)
    );
}

#[test]
fn death_purges_what_was_imposed_over_the_data_plane() {
    let mut rig = Rig::ready();
    let control = rig.call_in(0, MPS, CONTROL);
    let reply = control_packets(&rig.control(control, &imposition(1, 1200).packet()));
    assert!(matches!(Tag::of(&reply[0].1), Ok(Some(Tag::Value(_)))));
    let data = rig.call_in(1, PEER, DATA);
    let out = flat(rig.until(60));
    assert_eq!(
        control_packets(&out),
        [(data, mpoa::data_plane_purge(DATA, None, OWN, 32))]
    );
    assert!(rig.mpc.snapshot(rig.now).egress.is_empty());
}

#[test]
fn death_purges_over_every_shortcut_with_the_ingress_and_leaves_them_open_for_that() {
    let mut rig = Rig::ready();
    // Both ends have opened a shortcut: the two cross, and the peer sends on its own.
    let (control, ours) = rig.shortcut();
    rig.control(control, &imposition(1, 1200).packet());
    let theirs = rig.call_in(1, PEER, DATA);
    let out = rig.until(60);
    let purge = mpoa::data_plane_purge(DATA, Some(OWN), OWN, 32);
    let at = |second| {
        let of = out.iter().filter(move |(at, _)| *at == second);
        of.map(|(_, output)| output.clone()).collect::<Vec<_>>()
    };
    assert_eq!(
        control_packets(&at(60)),
        [(ours, purge.clone()), (theirs, purge)]
    );
    assert!(rig.mpc.snapshot(rig.now).egress.is_empty() && rig.row(TARGET).is_none());
    // An earlier release would clear the call before the purge has left the adapter.
    assert_eq!(releases(&at(60)), [control]);
    assert_eq!(releases(&flat(rig.until(79))), []);
    assert_eq!(releases(&flat(rig.until(80))), [ours, theirs]);
}

#[test]
fn death_of_one_mps_leaves_the_other() {
    let mut rig = Rig::ready();
    rig.shortcut();
    rig.associate(MacAddr([2, 0, 0, 0, 0, 0x22]), mps_tlv(MPS_2));
    let second = rig.call_in(3, MPS_2, CONTROL);
    rig.control(second, &imposition(1, 1200).packet());
    rig.control(second, &mpoa::keep_alive(1, MPS_2, 500));
    rig.until(60);
    assert!(rig.row(TARGET).is_none());
    assert_eq!(rig.mpc.snapshot(rig.now).egress.len(), 1);
}

#[test]
fn stop_purges_and_waits_for_the_replies() {
    let mut rig = Rig::ready();
    let (control, data) = rig.shortcut();
    let reply = control_packets(&rig.control(control, &imposition(1, 1200).packet()));
    let Ok(Some(Tag::Value(tag))) = Tag::of(&reply[0].1) else {
        panic!("no tag")
    };
    let out = rig.input(Input::Stop);
    assert_eq!(tlvs(&out), [(0, vec![])], "no MPC any more");
    let purge = control_packets(&out)[0].1.clone();
    assert_eq!(purge.op, op::EGRESS_PURGE_REQUEST);
    assert!(!rig.mpc.is_running());
    assert_eq!(to_lane(&rig.send(TARGET)), 1);
    // Packets that are under way are still delivered, as the header is valid.
    let sdu = mpoa::shortcut_sdu(Some(tag), &packet(TARGET, OWN, 63, 10));
    assert_eq!(
        delivered(&rig.atm(AtmEvent::Received {
            conn: data,
            sdu: &sdu
        }))
        .len(),
        1
    );
    let refused = control_packets(&rig.control(control, &imposition(2, 1200).packet()));
    assert_eq!(code_of(&refused[0].1), mpoa::code::OTHER);
    let out = rig.control(
        control,
        &purge.reply(purge.common().unwrap().cies.clone()).unwrap(),
    );
    assert_eq!(story(&out).last(), Some(&"mpc.down"));
    let mut gone = releases(&out);
    gone.sort_unstable();
    assert_eq!(gone, [control, data]);
    let unlisten = out
        .iter()
        .filter(|o| matches!(o, Output::Atm(AtmRequest::Unlisten { .. })));
    assert_eq!(unlisten.count(), 2);
    assert_eq!(rig.mpc.poll_timeout(), None);
}

#[test]
fn stop_does_not_wait_for_ever() {
    let mut rig = Rig::ready();
    let (control, _) = rig.shortcut();
    rig.control(control, &imposition(1, 1200).packet());
    assert!(!story(&rig.input(Input::Stop)).contains(&"mpc.down"));
    assert_eq!(story(&flat(rig.until(2))).last(), Some(&"mpc.down"));
    assert_eq!(rig.mpc.poll_timeout(), None);
    // Without entries to purge the client ends at once.
    let mut idle = Rig::ready();
    assert_eq!(story(&idle.input(Input::Stop)), ["mpc.down"]);
}

#[test]
fn reload_comes_back_after_five_seconds() {
    let mut rig = Rig::ready();
    rig.shortcut();
    assert!(story(&rig.input(Input::Reload)).contains(&"mpc.down"));
    assert!(listens(&flat(rig.until(4))).is_empty());
    assert_eq!(listens(&flat(rig.until(5))), [CONTROL, DATA]);
    rig.shortcut();
}

#[test]
fn enable_switches_on_and_off() {
    let mut config = MpcConfig::new(CONTROL, DATA);
    config.enabled = false;
    let mut rig = Rig::ready_with(config);
    assert_eq!(to_lane(&rig.flow(TARGET)), 10);
    // A daemon may be there before it is needed.
    rig.input(Input::Mpcd(ProcessEvent::Came));
    let out = rig.input(Input::Enable(true));
    assert_eq!(
        (listens(&out).len(), tlvs(&out)),
        (2, vec![(0, device_tlv())])
    );
    let (control, _) = rig.shortcut();
    rig.control(control, &imposition(1, 1200).packet());
    rig.input(Input::Enable(false));
    assert!(!rig.mpc.is_running());
    // Enabled again before the end is complete: the client ends, then starts.
    rig.input(Input::Enable(true));
    assert_eq!(listens(&flat(rig.until(2))).len(), 2);
    assert!(rig.mpc.is_running());
    rig.shortcut();
}

#[test]
fn killed_daemon_takes_its_connections_but_not_lane() {
    let mut rig = Rig::ready();
    let (control, data) = rig.shortcut();
    rig.control(control, &imposition(1, 1200).packet());
    let out = rig.input(Input::Mpcd(ProcessEvent::Gone));
    assert!(control_packets(&out).is_empty(), "no farewell");
    let mut gone = releases(&out);
    gone.sort_unstable();
    assert_eq!(gone, [control, data]);
    assert_eq!(tlvs(&out), [(0, vec![])]);
    assert_eq!(to_lane(&rig.flow(TARGET)), 10);
    let snapshot = rig.mpc.snapshot(rig.now);
    assert!(snapshot.shortcuts.is_empty() && !snapshot.running);
    assert_eq!(
        (snapshot.egress[0].vc, snapshot.ingress[0].vc),
        (None, None)
    );
    // Late events of dead connections, and calls, have no effect.
    rig.atm(AtmEvent::Received {
        conn: data,
        sdu: &[1],
    });
    rig.atm(AtmEvent::Released {
        conn: control,
        cause: Cause::NORMAL,
    });
    let conn = ConnId(ConnId::INCOMING + 5);
    let out = rig.offer(conn, Some(PEER), DATA);
    assert_eq!(
        out,
        [Output::Atm(AtmRequest::Release {
            conn,
            cause: Cause::INCOMPATIBLE
        })]
    );

    let out = rig.input(Input::Mpcd(ProcessEvent::Came));
    assert_eq!(listens(&out).len(), 2);
    assert_eq!(tlvs(&out), [(0, device_tlv())]);
    assert!(
        connects(&out).is_empty(),
        "nothing is opened before somebody uses it"
    );
}

#[test]
fn the_next_daemon_takes_over_from_the_caches() {
    let mut rig = Rig::ready();
    let (control, _) = rig.shortcut();
    let accepted = rig.control(control, &imposition(7, 1200).packet());
    let tag = tag_of(&accepted);
    rig.input(Input::Mpcd(ProcessEvent::Gone));
    rig.until(9);
    rig.input(Input::Mpcd(ProcessEvent::Came));

    // The binding is still valid: the next packet opens the shortcut, and no request is sent.
    let (data, called) = connects(&rig.send(TARGET))[0];
    assert_eq!(called, PEER);
    rig.connected(data, 61);
    assert_eq!(to_lane(&rig.send(TARGET)), 0);
    assert_eq!(rig.counters().resolution_requests_sent, 1);

    // Packets with the previous tag are delivered, over any connection.
    let sdu = mpoa::shortcut_sdu(Some(tag), &packet(TARGET, OWN, 63, 10));
    let there = rig.call_in(3, PEER, DATA);
    for conn in [data, there] {
        assert_eq!(
            delivered(&rig.atm(AtmEvent::Received { conn, sdu: &sdu })).len(),
            1
        );
    }

    // A refresh keeps the tag, another entry gets another tag.
    let control = rig.call_in(4, MPS, CONTROL);
    assert_eq!(
        tag_of(&rig.control(control, &imposition(7, 1200).packet())),
        tag
    );
    assert_ne!(
        tag_of(&rig.control(control, &imposition(8, 1200).packet())),
        tag
    );

    // Entries that were taken over are purged at the end like all others.
    let purged = control_packets(&rig.input(Input::Stop));
    let ids: Vec<u32> = purged
        .iter()
        .map(|(_, p)| DllHeader::of(p).unwrap().unwrap().cache_id)
        .collect();
    assert_eq!(ids, [7, 8]);
}

#[test]
fn a_purge_that_a_dead_daemon_left_is_finished_by_the_next() {
    let mut rig = Rig::ready();
    let (control, _) = rig.shortcut();
    rig.control(control, &imposition(7, 1200).packet());
    // The ELAN is gone, so the entry's header is not right any more.
    rig.input(Input::LecDown { itf: 0 });
    rig.input(Input::Mpcd(ProcessEvent::Gone));
    rig.lec_up(0);
    rig.associate(MPS_MAC, mps_tlv(MPS));
    let out = rig.input(Input::Mpcd(ProcessEvent::Came));
    let control = connects(&out)[0].0;
    let sent = control_packets(&rig.connected(control, 51));
    assert_eq!(sent[0].1.op, op::EGRESS_PURGE_REQUEST);
    let reply = sent[0].1.reply(sent[0].1.common().unwrap().cies.clone());
    rig.control(control, &reply.unwrap());
    assert!(rig.mpc.snapshot(rig.now).egress.is_empty());
}

#[test]
fn caches_do_not_wait_for_ever_for_a_daemon() {
    let mut rig = Rig::ready();
    let (control, _) = rig.shortcut();
    rig.control(control, &imposition(7, 1200).packet());
    rig.input(Input::Mpcd(ProcessEvent::Gone));
    let holds = |rig: &Rig| {
        let state = rig.mpc.snapshot(rig.now);
        (state.ingress.len(), state.egress.len())
    };
    rig.until(59);
    assert_eq!(holds(&rig), (1, 1));
    rig.until(60);
    assert_eq!(holds(&rig), (0, 0));
    assert_eq!(rig.mpc.poll_timeout(), None);
    // The data plane still knows the MPS, so a flow is enough.
    rig.input(Input::Mpcd(ProcessEvent::Came));
    let (_, request) = rig.asked(TARGET);
    assert_eq!(request.op, op::RESOLUTION_REQUEST);
}

#[test]
fn an_mps_that_is_silent_after_a_take_over_is_dead() {
    let mut rig = Rig::ready();
    rig.shortcut();
    rig.input(Input::Mpcd(ProcessEvent::Gone));
    rig.until(10);
    rig.input(Input::Mpcd(ProcessEvent::Came));
    assert!(story(&flat(rig.until(69))).is_empty());
    assert!(story(&flat(rig.until(70))).contains(&"mpc.keepalive.dead"));
    assert!(rig.row(TARGET).is_none());
}

/// The tag that an imposition was answered with.
fn tag_of(out: &[Output]) -> u32 {
    match Tag::of(&control_packets(out)[0].1) {
        Ok(Some(Tag::Value(tag))) => tag,
        other => panic!("no tag: {other:?}"),
    }
}

#[test]
fn answers_to_the_daemon_before_do_not_match() {
    let mut rig = Rig::ready();
    let (_, old) = rig.asked(TARGET);
    rig.input(Input::Mpcd(ProcessEvent::Gone));
    rig.input(Input::Mpcd(ProcessEvent::Came));
    let (control, new) = rig.asked(TARGET);
    assert_ne!(
        old.common().unwrap().request_id,
        new.common().unwrap().request_id
    );
    rig.control(control, &answer(&old, PEER, 1200, Some(TAG)));
    assert_eq!(
        (rig.state(), rig.counters().unsolicited),
        (IngressState::Query, 1)
    );
}

/// The call to the MPS fails with this cause again and again until `end`, s; returns the times of the calls, ms.
fn calls_in_vain(rig: &mut Rig, cause: Cause, end: u64) -> Vec<u64> {
    let mut out = rig.flow(TARGET).out;
    let mut calls = Vec::new();
    loop {
        for (conn, _) in connects(&out) {
            calls.push(rig.now.as_nanos() / 1_000_000);
            rig.atm(AtmEvent::Released { conn, cause });
        }
        let end = Instant::from_secs(end);
        let Some(at) = rig.mpc.poll_timeout().filter(|at| *at <= end) else {
            return calls;
        };
        rig.now = at;
        out = settle(&mut rig.mpc, at);
    }
}

#[test]
fn an_mps_that_is_cut_off_is_called_again_soon_and_hears_the_first_request() {
    let mut rig = Rig::ready();
    let calls = calls_in_vain(&mut rig, Cause::NETWORK_OUT_OF_ORDER, 1);
    for (pair, window) in calls.windows(2).zip([20, 40, 80, 160, 320]) {
        let waits = pair[1] - pair[0];
        assert!((window / 2 - 1..=window + 1).contains(&waits), "{calls:?}");
    }
    assert!((5..=8).contains(&calls.len()), "{calls:?}");
    // Calls succeed again: the waiting request is sent, one time.
    let out = flat(rig.until(4));
    let conn = connects(&out)[0].0;
    assert_eq!(control_packets(&rig.connected(conn, 50)).len(), 1);
    assert_eq!(rig.counters().control_dropped, 0);
    assert_eq!(rig.counters().resolution_requests_sent, 1);
}

#[test]
fn an_mps_that_is_never_reached_is_not_called_after_the_last_retry() {
    let mut rig = Rig::ready();
    let calls = calls_in_vain(&mut rig, Cause::NETWORK_OUT_OF_ORDER, 100);
    let last = *calls.last().unwrap();
    assert!((35_000..=46_000).contains(&last), "{calls:?}");
    assert!(calls.len() < 30, "{calls:?}");
    assert_eq!(rig.state(), IngressState::HoldDown);
    // The request, and its retries after 5, 15 and 35 s.
    assert_eq!(rig.counters().control_dropped, 4);
}

#[test]
fn an_mps_that_refuses_is_tried_with_each_retry() {
    let mut rig = Rig::ready();
    let mut conn = connects(&rig.flow(TARGET))[0].0;
    for at in [5, 15, 35] {
        rig.atm(AtmEvent::Released {
            conn,
            cause: Cause::REJECTED,
        });
        let out = rig.until(at);
        conn = connects(&flat(out))[0].0;
        assert_eq!(rig.now, Instant::ZERO + seconds(at));
    }
    rig.until(40);
    assert_eq!(rig.state(), IngressState::HoldDown);
    assert_eq!(rig.counters().control_dropped, 3);
}

#[test]
fn own_connection_or_theirs_carries_control() {
    let mut rig = Rig::ready();
    let conn = rig.call_in(0, MPS, CONTROL);
    let out = rig.flow(TARGET);
    assert_eq!(
        (connects(&out).len(), control_packets(&out)[0].0),
        (0, conn)
    );
}

#[test]
fn strangers_are_not_heard() {
    let mut rig = Rig::ready();
    let stranger = rig.call_in(0, address(0x66, 0x52), CONTROL);
    // The sender may be an MPS that is not known yet: LE_ARP looks up its address, and nothing else happens.
    let asked = rig.control(stranger, &imposition(1, 1200).packet());
    let discover = Output::Discover {
        itf: 0,
        mac: MPS_MAC,
    };
    assert_eq!(asked, [discover]);
    for packet in [
        mpoa::keep_alive(1, MPS, 35),
        mpoa::trigger(MPS, MPS_IP, TARGET),
        mpoa::purge_request(1, MPS, MPS_IP, OWN, TARGET, 0),
    ] {
        assert!(rig.control(stranger, &packet).is_empty());
    }
    assert_eq!(rig.counters().unknown_sender, 4);
    assert!(rig.mpc.snapshot(rig.now).egress.is_empty());
}

#[test]
fn strangers_do_not_take_all_control_connections() {
    let mut config = MpcConfig::new(CONTROL, DATA);
    config.limits.control = 4;
    let mut rig = Rig::ready_with(config);
    for id in 0..8 {
        let conn = ConnId(ConnId::INCOMING + id);
        let out = rig.offer(conn, Some(address(0x60 + id as u8, 0x52)), CONTROL);
        assert_eq!(releases(&out).len(), usize::from(id >= 2));
    }
    assert_eq!(rig.counters().connection_limit, 6);
    rig.call_in(20, MPS, CONTROL);
}

#[test]
fn errors_are_counted_and_unknown_compulsory_extensions_refused() {
    let mut rig = Rig::ready();
    let conn = rig.call_in(0, MPS, CONTROL);
    let wish = imposition(1, 1200).packet();
    let unknown = wish.clone().with(Extension::compulsory(0x1200, vec![1]));
    let sent = control_packets(&rig.control(conn, &unknown));
    let nhrp::Body::Error(error) = &sent[0].1.body else {
        panic!("no error")
    };
    assert_eq!((error.code, &error.offending), (1, &unknown.encode()));
    assert_eq!(rig.counters().errors_sent[&1], 1);
    // An error is counted and not answered.
    assert!(control_packets(&rig.control(conn, &sent[0].1)).is_empty());
    assert_eq!(rig.counters().errors[&1], 1);
    // Requests that only servers handle.
    let not_ours = mpoa::resolution_request(1, PEER, TARGET, OWN);
    assert!(control_packets(&rig.control(conn, &not_ours)).is_empty());
    assert_eq!(rig.counters().unsolicited, 1);
}

#[test]
fn proc_text_is_the_one_of_the_thesis() {
    let mut rig = Rig::ready();
    let (control, data) = rig.shortcut();
    let reply = control_packets(&rig.control(control, &imposition(13, 1200).packet()));
    let Ok(Some(Tag::Value(tag))) = Tag::of(&reply[0].1) else {
        panic!("no tag")
    };
    rig.control(control, &mpoa::keep_alive(1, MPS, 1000));
    for _ in 0..151 {
        rig.send(TARGET);
        let sdu = mpoa::shortcut_sdu(Some(tag), &packet(TARGET, OWN, 63, 10));
        rig.atm(AtmEvent::Received {
            conn: data,
            sdu: &sdu,
        });
    }
    rig.until(7);
    let peer: String = PEER.0.iter().map(|octet| format!("{octet:02x}")).collect();
    let expected = format!(
        "QoS entries for shortcuts:\n\
         IP address\n  \
           TX:max_pcr pcr     min_pcr max_cdv max_sdu\n  \
           RX:max_pcr pcr     min_pcr max_cdv max_sdu\n\
         \n\
         Interface 0:\n\
         \n\
         Ingress Entries:\n\
         IP address      State      Holding time  Packets fwded  VPI  VCI\n\
         10.2.0.20       resolved   1193          151            0    60 \n\
         \n\
         Egress Entries:\n\
         Ingress MPC ATM addr\n\
         Cache-id        State      Holding time  Packets recvd  Latest IP addr   VPI VCI\n\
         {peer}\n\
         13              resolved   1193          151            10.2.0.20        0   60 \n"
    );
    assert_eq!(rig.mpc.snapshot(rig.now).proc_text(), expected);
}

#[test]
fn the_same_with_the_daemon_in_a_process_of_its_own() {
    across_a_boundary(&[
        start_listens_and_announces,
        discovery_by_le_arp,
        unannounced_mps_by_configuration,
        parameters_of_the_lecs,
        keep_alives_postpone_death,
        first_keep_alive_within_60_seconds,
        smaller_sequence_is_a_restart,
        keep_alive_without_lifetime_or_of_another_counts_for_nothing,
        death_purges_what_was_imposed_over_the_data_plane,
        death_of_one_mps_leaves_the_other,
        stop_purges_and_waits_for_the_replies,
        stop_does_not_wait_for_ever,
        reload_comes_back_after_five_seconds,
        enable_switches_on_and_off,
        killed_daemon_takes_its_connections_but_not_lane,
        the_next_daemon_takes_over_from_the_caches,
        a_purge_that_a_dead_daemon_left_is_finished_by_the_next,
        caches_do_not_wait_for_ever_for_a_daemon,
        an_mps_that_is_silent_after_a_take_over_is_dead,
        answers_to_the_daemon_before_do_not_match,
        an_mps_that_refuses_is_tried_with_each_retry,
        own_connection_or_theirs_carries_control,
        strangers_are_not_heard,
        strangers_do_not_take_all_control_connections,
        errors_are_counted_and_unknown_compulsory_extensions_refused,
        proc_text_is_the_one_of_the_thesis,
    ]);
}
