//! A daemon in a process of its own: signals, a process that lies, one that comes late.

use super::*;
use crate::Cause;
use crate::mpoa::messages::ToKernel;
use aerostat_wire::mpoa::op;

fn split() -> Rig {
    SPLIT.set(true);
    let rig = Rig::ready();
    SPLIT.set(false);
    rig
}

impl Rig {
    fn signal(&mut self, input: MpcdInput) -> Vec<Output> {
        self.mpc.signal(input, self.now);
        settle(&mut self.mpc, self.now)
    }
    fn lie(&mut self, message: FromMpcd) -> Vec<Output> {
        let before = self.counters().daemon_refused;
        let out = self.input(Input::Mpcd(message));
        assert_eq!(self.counters().daemon_refused, before + 1);
        out
    }
}

#[test]
fn sigterm_clears_the_egress_cache_at_the_servers_first() {
    let mut rig = split();
    let (control, data) = rig.shortcut();
    rig.control(control, &imposition(7, 1200).packet());
    let out = rig.signal(MpcdInput::Terminate);
    let purge = control_packets(&out)[0].1.clone();
    assert_eq!(purge.op, op::EGRESS_PURGE_REQUEST);
    assert!(rig.mpc.mpcd.is_some(), "it waits for the reply");
    let reply = purge.reply(purge.common().unwrap().cies.clone()).unwrap();
    let out = rig.control(control, &reply);
    let mut gone = releases(&out);
    gone.sort_unstable();
    assert_eq!(gone, [control, data]);
    let ends = story(&out)
        .iter()
        .filter(|name| **name == "mpc.down")
        .count();
    assert_eq!(ends, 1, "an end, and not a death too");
    assert!(rig.mpc.mpcd.is_none() && !rig.mpc.is_running());
    let state = rig.mpc.snapshot(rig.now);
    assert_eq!((state.ingress.len(), state.egress.len()), (0, 0));
    assert_eq!(to_lane(&rig.flow(TARGET)), 10);
    assert_eq!(rig.mpc.poll_timeout(), None);
    // Started by hand, it goes on.
    rig.input(Input::StartDaemon);
    rig.asked(TARGET);
}

#[test]
fn sigterm_waits_two_seconds_at_most() {
    let mut rig = split();
    let (control, _) = rig.shortcut();
    rig.control(control, &imposition(7, 1200).packet());
    rig.signal(MpcdInput::Terminate);
    // A second signal changes nothing.
    rig.signal(MpcdInput::Terminate);
    rig.until(1);
    assert!(rig.mpc.mpcd.is_some());
    rig.until(2);
    assert!(rig.mpc.mpcd.is_none());
}

#[test]
fn sighup_starts_again_in_the_same_process() {
    let mut rig = split();
    rig.shortcut();
    assert!(story(&rig.signal(MpcdInput::Reload)).contains(&"mpc.down"));
    assert!(!rig.mpc.is_running() && rig.mpc.mpcd.is_some());
    rig.until(4);
    assert!(!rig.mpc.is_running());
    rig.until(5);
    assert!(rig.mpc.is_running());
    rig.shortcut();
    // And an end during the pause is an end.
    rig.signal(MpcdInput::Reload);
    rig.signal(MpcdInput::Terminate);
    assert!(rig.mpc.mpcd.is_none());
    rig.until(20);
    assert!(!rig.mpc.is_running());
}

#[test]
fn the_client_waits_for_its_process() {
    let mut rig = split();
    rig.input(Input::KillDaemon);
    rig.input(Input::Stop);
    rig.input(Input::StartDaemon);
    assert!(!rig.mpc.is_running(), "it is there, but MPOA is off");
    rig.input(Input::Start);
    assert!(rig.mpc.is_running());
    rig.shortcut();
}

#[test]
fn packets_that_are_faster_than_the_daemon_wait() {
    let mut rig = split();
    let (control, _) = rig.shortcut();
    let tag = match mpoa::Tag::of(
        &control_packets(&rig.control(control, &imposition(7, 1200).packet()))[0].1,
    ) {
        Ok(Some(mpoa::Tag::Value(tag))) => tag,
        other => panic!("no tag: {other:?}"),
    };
    let conn = ConnId(ConnId::INCOMING + 9);
    rig.offer(conn, Some(PEER), DATA);
    let sdu = mpoa::shortcut_sdu(Some(tag), &packet(TARGET, OWN, 63, 10));
    for n in 0..70 {
        let out = rig.atm(AtmEvent::Received { conn, sdu: &sdu });
        assert!(delivered(&out).is_empty(), "{n}");
    }
    assert_eq!(delivered(&rig.connected(conn, 70)).len(), 64);
    assert_eq!(rig.counters().stray_events, 6);
    let out = rig.atm(AtmEvent::Received { conn, sdu: &sdu });
    assert_eq!(delivered(&out).len(), 1);
}

#[test]
fn a_daemon_gets_nothing_that_is_not_its_own() {
    let mut rig = split();
    let (control, data) = rig.shortcut();
    let (stranger, conn) = (address(0x77, 0x50), ConnId(77));
    let (qos, sap) = (Qos::ubr(1500), Sap::LLC);
    let connect = |conn, calling| AtmRequest::Connect {
        conn,
        calling,
        called: PEER,
        sap,
        qos,
        multipoint: false,
    };
    for request in [
        AtmRequest::Listen {
            address: stranger,
            sap,
            max_sdu: 1500,
        },
        AtmRequest::Listen {
            address: CONTROL,
            sap: Sap::LANE_CONTROL,
            max_sdu: 1500,
        },
        AtmRequest::OpenPermanent {
            conn,
            vc: Vc::new(0, 500),
            qos,
        },
        connect(conn, stranger),
        connect(control, CONTROL),
        connect(ConnId(ConnId::INCOMING), CONTROL),
        AtmRequest::Accept { conn: data },
        AtmRequest::Send { conn, sdu: vec![1] },
        AtmRequest::Release {
            conn,
            cause: Cause::NORMAL,
        },
    ] {
        assert!(rig.lie(FromMpcd::Atm(request)).is_empty());
    }
    let attach = |conn, peer| ToKernel::Attach {
        conn,
        peer,
        vc: None,
        qos: None,
        opened: true,
        flow: None,
    };
    for message in [
        ToKernel::SetMpcControlAddress(stranger),
        attach(control, MPS),
        attach(data, MPS),
        attach(conn, PEER),
        // An interface that this host has not: each would be an entry.
        ToKernel::SetMpsMacAddress {
            itf: 77,
            mac: MPS_MAC,
            mps: MPS,
        },
    ] {
        assert!(rig.lie(FromMpcd::Message(message)).is_empty());
    }
    // It has as many connections as the limits allow, and no more.
    let limits = MpcLimits::default();
    for n in 0..limits.control + limits.shortcuts - 2 {
        let conn = ConnId(1000 + n as u32);
        rig.input(Input::Mpcd(FromMpcd::Atm(connect(conn, CONTROL))));
    }
    rig.lie(FromMpcd::Atm(connect(ConnId(999), CONTROL)));
    // One that is gone says nothing any more.
    rig.input(Input::KillDaemon);
    rig.lie(FromMpcd::Message(ToKernel::CleanUpAndExit));
}

#[test]
fn only_a_split_client_has_a_process() {
    let mut rig = Rig::ready();
    let message = FromMpcd::Message(ToKernel::Reload);
    assert!(rig.mpc.handle_input(Input::Mpcd(message), rig.now).is_err());
}
