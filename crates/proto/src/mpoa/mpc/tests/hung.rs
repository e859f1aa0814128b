//! Shortcuts while their daemon hangs or is away.

use super::*;

/// A client with a shortcut in use, whose daemon hangs from now on. Returns the shortcut.
fn hung() -> (Rig, ConnId) {
    SPLIT.set(true);
    let mut rig = Rig::ready();
    SPLIT.set(false);
    let (_, data) = rig.shortcut();
    assert_eq!(sdus(&rig.send(TARGET)).len(), 1, "over the shortcut");
    rig.mpc.hangs = true;
    (rig, data)
}

#[test]
fn a_purge_over_a_shortcut_moves_its_flow_to_lane_at_once_although_the_daemon_hangs() {
    let (mut rig, data) = hung();
    let out = rig.control(data, &mpoa::data_plane_purge(PEER, None, TARGET, 32));
    assert_eq!(story(&out), ["mpc.purge.received", "mpc.shortcut.down"]);
    assert_eq!(rig.row(TARGET), None);
    let next = rig.send(TARGET);
    assert_eq!((to_lane(&next), sdus(&next).len()), (1, 0));
    assert_eq!(rig.counters().data_plane_purges, 1);
    // The daemon wakes up and closes the shortcut, which nothing uses any more.
    let now = rig.now;
    rig.mpc.wake(now);
    let out = settle(&mut rig.mpc, now);
    assert_eq!(releases(&out), [data]);
}

#[test]
fn a_purge_that_asks_for_a_reply_gets_it_although_the_daemon_hangs() {
    let (mut rig, data) = hung();
    let mut purge = mpoa::data_plane_purge(PEER, None, TARGET, 32);
    if let aerostat_wire::nhrp::Body::Common(common) = &mut purge.body {
        common.flags &= !aerostat_wire::nhrp::flag::NO_REPLY;
    }
    let sent = control_packets(&rig.control(data, &purge));
    assert_eq!(sent.len(), 1);
    assert_eq!(
        (sent[0].0, sent[0].1.op),
        (data, aerostat_wire::nhrp::op::PURGE_REPLY)
    );
    assert_eq!(rig.counters().purge_replies_sent, 1);
}

#[test]
fn a_packet_without_an_entry_stops_its_ingress_although_the_daemon_hangs() {
    let (mut rig, data) = hung();
    let stray = packet(TARGET, IpAddr::V4(Ipv4Addr::new(10, 1, 0, 77)), 64, 100);
    let sdu = mpoa::shortcut_sdu(None, &stray);
    let out = rig.atm(AtmEvent::Received {
        conn: data,
        sdu: &sdu,
    });
    let sent = control_packets(&out);
    let missing = IpAddr::V4(Ipv4Addr::new(10, 1, 0, 77));
    let purge = mpoa::data_plane_purge(DATA, Some(OWN), missing, 32);
    assert_eq!(sent, [(data, purge)]);
    assert_eq!(rig.counters().data_plane_purges_sent, 1);
}

#[test]
fn a_daemon_that_hung_and_was_killed_leaves_its_flows_to_lane_and_a_purged_one_is_not_taken_over() {
    let (mut rig, data) = hung();
    rig.control(data, &mpoa::data_plane_purge(PEER, None, TARGET, 32));
    let out = rig.input(Input::Mpcd(ProcessEvent::Gone));
    assert!(releases(&out).contains(&data));
    rig.mpc.unread.clear();
    rig.mpc.hangs = false;
    assert_eq!(to_lane(&rig.send(TARGET)), 1);
    rig.input(Input::Mpcd(ProcessEvent::Came));
    let next = rig.send(TARGET);
    assert_eq!((to_lane(&next), connects(&next).len()), (1, 0));
}
