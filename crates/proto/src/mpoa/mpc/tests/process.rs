//! A daemon in a process of its own: signals, false messages, a late start.

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
    fn signal(&mut self, signal: Signal) -> Vec<Output> {
        self.mpc.signal(signal, self.now);
        settle(&mut self.mpc, self.now)
    }
    fn say(&mut self, message: FromDaemon<FromMpcd>) -> Vec<Output> {
        self.input(Input::Mpcd(ProcessEvent::Said(message)))
    }
    fn lie(&mut self, message: FromDaemon<FromMpcd>) -> Vec<Output> {
        let before = self.mpc.snapshot(self.now).seat.refused;
        let out = self.say(message);
        assert_eq!(self.mpc.snapshot(self.now).seat.refused, before + 1);
        out
    }
    /// A message that crossed the end of what it is about: it has no effect, and is no lie.
    fn late(&mut self, message: FromDaemon<FromMpcd>) {
        let before = self.mpc.snapshot(self.now).seat.refused;
        assert!(self.say(message).is_empty());
        assert_eq!(self.mpc.snapshot(self.now).seat.refused, before);
    }
}

#[test]
fn sigterm_clears_the_egress_cache_at_the_servers_first() {
    let mut rig = split();
    let (control, data) = rig.shortcut();
    rig.control(control, &imposition(7, 1200).packet());
    let out = rig.signal(Signal::Terminate);
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
    // A daemon that the user starts takes over.
    rig.input(Input::Mpcd(ProcessEvent::Came));
    rig.asked(TARGET);
}

#[test]
fn sigterm_waits_two_seconds_at_most() {
    let mut rig = split();
    let (control, _) = rig.shortcut();
    rig.control(control, &imposition(7, 1200).packet());
    rig.signal(Signal::Terminate);
    // A second signal changes nothing.
    rig.signal(Signal::Terminate);
    rig.until(1);
    assert!(rig.mpc.mpcd.is_some());
    rig.until(2);
    assert!(rig.mpc.mpcd.is_none());
}

#[test]
fn sighup_starts_again_in_the_same_process() {
    let mut rig = split();
    rig.shortcut();
    assert!(story(&rig.signal(Signal::Reload)).contains(&"mpc.down"));
    assert!(!rig.mpc.is_running() && rig.mpc.mpcd.is_some());
    rig.until(4);
    assert!(!rig.mpc.is_running());
    rig.until(5);
    assert!(rig.mpc.is_running());
    rig.shortcut();
    // An end during the pause is final.
    rig.signal(Signal::Reload);
    rig.signal(Signal::Terminate);
    assert!(rig.mpc.mpcd.is_none());
    rig.until(20);
    assert!(!rig.mpc.is_running());
}

#[test]
fn the_client_waits_for_its_process() {
    let mut rig = split();
    rig.input(Input::Mpcd(ProcessEvent::Gone));
    rig.input(Input::Stop);
    rig.input(Input::Mpcd(ProcessEvent::Came));
    assert!(!rig.mpc.is_running(), "it is there, but MPOA is off");
    rig.input(Input::Start);
    assert!(rig.mpc.is_running());
    rig.shortcut();
}

#[test]
fn packets_that_are_faster_than_the_daemon_wait_or_go_at_once() {
    let mut rig = split();
    let (control, _) = rig.shortcut();
    let tag = match mpoa::Tag::of(
        &control_packets(&rig.control(control, &imposition(7, 1200).packet()))[0].1,
    ) {
        Ok(Some(mpoa::Tag::Value(tag))) => tag,
        other => panic!("no tag: {other:?}"),
    };
    let sdu = mpoa::shortcut_sdu(Some(tag), &packet(TARGET, OWN, 63, 10));
    // An accepted call needs no more of the daemon.
    let conn = ConnId(ConnId::INCOMING + 9);
    rig.offer(conn, Some(PEER), DATA);
    let out = rig.atm(AtmEvent::Received { conn, sdu: &sdu });
    assert_eq!(delivered(&out).len(), 1);
    rig.connected(conn, 70);
    // A call that the daemon has made must be attached by the daemon.
    let conn = ConnId(500);
    let (calling, sap, qos, multipoint) = (DATA, Sap::LLC, Qos::ubr(1536), false);
    rig.say(FromDaemon::Atm(AtmRequest::Connect {
        conn,
        calling,
        called: PEER,
        sap,
        qos,
        multipoint,
    }));
    for n in 0..70 {
        let out = rig.atm(AtmEvent::Received { conn, sdu: &sdu });
        assert!(delivered(&out).is_empty(), "{n}");
    }
    assert_eq!(rig.mpc.snapshot(rig.now).seat.dropped, 70 - 64);
    let attach = ToKernel::Attach {
        conn,
        peer: PEER,
        vc: None,
        qos: None,
        opened: true,
        flow: None,
    };
    let out = rig.say(FromDaemon::Message(FromMpcd::Message(attach)));
    assert_eq!(delivered(&out).len(), 64);
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
        AtmRequest::listen(stranger, sap, 1500),
        AtmRequest::listen(CONTROL, Sap::LANE_CONTROL, 1500),
        AtmRequest::OpenPermanent {
            conn,
            vc: Vc::new(0, 500),
            qos,
        },
        connect(conn, stranger),
        connect(control, CONTROL),
        connect(ConnId(ConnId::INCOMING), CONTROL),
        AtmRequest::Accept {
            conn: data,
            terms: None,
        },
    ] {
        assert!(rig.lie(FromDaemon::Atm(request)).is_empty());
    }
    // Of a connection that is gone an honest daemon may not have heard yet.
    let cause = Cause::NORMAL;
    for request in [
        AtmRequest::Send { conn, sdu: vec![1] },
        AtmRequest::Release { conn, cause },
    ] {
        rig.late(FromDaemon::Atm(request));
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
        // An interface that this host does not have: each would make an entry.
        ToKernel::SetMpsMacAddress {
            itf: 77,
            mac: MPS_MAC,
            mps: MPS,
        },
    ] {
        let message = FromDaemon::Message(FromMpcd::Message(message));
        assert!(rig.lie(message).is_empty());
    }
    // The daemon has as many connections of each kind as the limits allow, and no more.
    let limits = MpcLimits::default();
    for (calling, most) in [(CONTROL, limits.control), (DATA, limits.shortcuts)] {
        let first = if calling == DATA { 100_000 } else { 1000 };
        for n in 0..most - 1 {
            let conn = ConnId(first + n as u32);
            rig.say(FromDaemon::Atm(connect(conn, calling)));
        }
        rig.lie(FromDaemon::Atm(connect(ConnId(first - 1), calling)));
    }
    // A message of a daemon that is gone is ignored.
    rig.input(Input::Mpcd(ProcessEvent::Gone));
    let message = FromMpcd::Message(ToKernel::CleanUpAndExit);
    rig.late(FromDaemon::Message(message));
}

#[test]
fn only_a_split_client_has_a_process() {
    let mut rig = Rig::ready();
    let message = FromDaemon::Message(FromMpcd::Message(ToKernel::Reload));
    let said = Input::Mpcd(ProcessEvent::Said(message));
    assert!(rig.mpc.handle_input(said, rig.now).is_err());
}
