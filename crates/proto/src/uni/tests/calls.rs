//! Successful calls, in every version and both directions, and their collisions.

use super::*;
use aerostat_wire::q2931::Version;

const VERSIONS: [Version; 3] = [Version::Uni30, Version::Uni31, Version::Uni40];

#[test]
fn a_user_calls() {
    for version in VERSIONS {
        let mut p = Pair::new(version);
        p.ask(USER, setup(info(1), None));
        let [_, net] = p.take();
        let [
            Indication::Setup {
                call,
                info: offered,
                vc: None,
                party: None,
            },
        ] = &net[..]
        else {
            panic!("{net:?}")
        };
        assert_eq!(*call, IN1);
        assert_eq!(
            (offered.called, offered.calling),
            (addr(1), Some(addr(200)))
        );
        assert_eq!(
            (offered.blli, offered.qos),
            (Some(Blli::LLC), Qos::ubr(1516))
        );
        p.ask(NET, proceeding(IN1, Some(VC1)));
        assert_eq!(p.ends[USER].state(C1), Some(CallState::ProceedingReceived));
        p.ask(NET, accept(IN1, None));
        let [user, net] = p.take();
        assert_eq!(net, [Indication::Active { call: IN1, vc: VC1 }]);
        let info = ConnectInfo::default();
        assert_eq!(
            user,
            [
                Indication::Proceeding {
                    call: C1,
                    vc: Some(VC1)
                },
                Indication::Connected {
                    call: C1,
                    info,
                    vc: VC1
                },
            ]
        );
        p.ask(USER, release(C1));
        assert_eq!(
            p.take(),
            [
                vec![released(C1, Cause::NORMAL)],
                vec![released(IN1, Cause::NORMAL)]
            ]
        );
        p.clean();
        use MessageType as M;
        assert_eq!(p.ends[USER].kinds(), [M::SETUP, M::CONNECT_ACK, M::RELEASE]);
        assert_eq!(
            p.ends[NET].kinds(),
            [M::CALL_PROCEEDING, M::CONNECT, M::RELEASE_COMPLETE]
        );
    }
}

/// Like the recorded Linux hosts: CONNECT at once, without a label; the network side must have given it.
#[test]
fn a_user_is_called() {
    for version in VERSIONS {
        let mut p = Pair::new(version);
        p.ask(NET, setup(info(1), Some(VC1)));
        let [user, _] = p.take();
        let [
            Indication::Setup {
                call: IN1,
                vc: Some(VC1),
                ..
            },
        ] = &user[..]
        else {
            panic!("{user:?}")
        };
        let max_sdu = Some((1516, 1516));
        let info = ConnectInfo {
            max_sdu,
            ..ConnectInfo::default()
        };
        p.ask(
            USER,
            Request::Accept {
                call: IN1,
                info,
                vc: None,
            },
        );
        assert_eq!(p.ends[USER].last().find(id::CONNECTION_ID), None);
        let [user, net] = p.take();
        assert_eq!(user, [Indication::Active { call: IN1, vc: VC1 }]);
        let [
            Indication::Connected {
                call: C1,
                info,
                vc: VC1,
            },
        ] = &net[..]
        else {
            panic!("{net:?}")
        };
        assert_eq!(info.max_sdu, max_sdu);
        p.ask(USER, release(IN1));
        p.clean();
        use MessageType as M;
        assert_eq!(p.ends[USER].kinds(), [M::CONNECT, M::RELEASE]);
        assert_eq!(
            p.ends[NET].kinds(),
            [M::SETUP, M::CONNECT_ACK, M::RELEASE_COMPLETE]
        );
    }
}

#[test]
fn alerting_is_sent_in_4_0_only() {
    for (version, want) in [(Version::Uni31, false), (Version::Uni40, true)] {
        let mut p = Pair::new(version);
        p.ask(USER, setup(info(1), None));
        p.ask(
            NET,
            Request::Alerting {
                call: IN1,
                vc: Some(VC1),
                elements: Vec::new(),
            },
        );
        let [user, _] = p.take();
        assert_eq!(
            user.contains(&Indication::Alerting {
                call: C1,
                vc: Some(VC1),
                elements: Vec::new(),
            }),
            want
        );
        p.ask(NET, accept(IN1, None));
        assert_eq!(p.ends[USER].state(C1), Some(CallState::Active));
        assert_eq!(p.ends[USER].uni.timers.next(), None, "T301 stopped");
    }
}

/// A switch forwards a received SETUP. Elements that the switch does not know but the standard defines survive, and the
/// version of the next interface is respected.
#[test]
fn a_setup_is_relayed_unchanged() {
    let mut first = Pair::new(Version::Uni31);
    let mut offer = info(1);
    offer.elements = vec![
        Ie::Bhli {
            kind: 1,
            info: b"FORE_ATM".to_vec(),
        }
        .encode(),
        Ie::CalledSubaddress(aerostat_wire::q2931::Subaddress {
            kind: 0x90,
            octets: addr(7).0.to_vec(),
        })
        .encode(),
    ];
    first.ask(USER, setup(offer, None));
    let sent = first.ends[USER].last().clone();
    let [_, heard] = first.take();
    let Some(Indication::Setup { info: relay, .. }) = heard.into_iter().next() else {
        panic!()
    };
    let mut same = Pair::new(Version::Uni31);
    same.ask(NET, setup(relay.clone(), Some(VC1)));
    let mut onward = same.ends[NET].last().clone();
    onward.elements.retain(|e| e.id != id::CONNECTION_ID);
    assert_eq!(onward.elements, sent.elements);
    let mut old = Pair::new(Version::Uni30);
    old.ask(NET, setup(relay, Some(VC1)));
    let [user, _] = old.take();
    let [Indication::Setup { info: at_last, .. }] = &user[..] else {
        panic!("{user:?}")
    };
    assert_eq!((at_last.called, at_last.qos), (addr(1), Qos::ubr(1516)));
    let aal = old.ends[NET]
        .last()
        .find(id::AAL_PARAMETERS)
        .expect("AAL")
        .contents
        .clone();
    assert_eq!(aal[7..9], [0x83, 1], "UNI 3.0 has the mode");
}

#[test]
fn a_call_is_refused() {
    let mut p = Pair::new(Version::Uni31);
    p.ask(NET, setup(info(1), Some(VC1)));
    let cause = Cause::INCOMPATIBLE;
    p.ask(
        USER,
        Request::Release {
            call: IN1,
            cause: cause.into(),
        },
    );
    assert_eq!(p.ends[USER].kinds(), [MessageType::RELEASE_COMPLETE]);
    let [user, net] = p.take();
    assert_eq!(user.last(), Some(&released(IN1, cause)));
    assert_eq!(net, [released(C1, cause)]);
    p.clean();
}

#[test]
fn normal_clearing_has_its_own_number_in_3_0() {
    let mut p = Pair::new(Version::Uni30);
    p.call_from_user();
    p.ask(USER, release(C1));
    assert_eq!(causes(p.ends[USER].last()), [31]);
    let [_, net] = p.take();
    assert_eq!(net, [released(IN1, Cause::NORMAL)]);
}

#[test]
fn both_release_at_once() {
    let mut p = Pair::new(Version::Uni31);
    p.call_from_user();
    for (end, call) in [(USER, C1), (NET, IN1)] {
        let request = Input::Request(release(call));
        p.ends[end].uni.handle_input(request, p.now).unwrap();
    }
    p.drain();
    p.clean();
    assert_eq!(p.ends[USER].kinds(), [MessageType::RELEASE]);
    assert_eq!(p.ends[NET].kinds(), [MessageType::RELEASE]);
    let [user, net] = p.take();
    assert_eq!(user, [released(C1, Cause::NORMAL)]);
    assert_eq!(net, [released(IN1, Cause::NORMAL)]);
}

/// The caller releases while CONNECT is on its way.
#[test]
fn connect_crosses_release() {
    let mut p = Pair::new(Version::Uni31);
    p.ask(NET, setup(info(1), Some(VC1)));
    let requests = [(USER, accept(IN1, None)), (NET, release(C1))];
    for (end, request) in requests {
        let input = Input::Request(request);
        p.ends[end].uni.handle_input(input, p.now).unwrap();
    }
    p.drain();
    p.clean();
}

#[test]
fn both_sides_call_with_the_same_reference() {
    let mut p = Pair::new(Version::Uni31);
    p.call_from_user();
    p.ask(NET, setup(info(2), Some(VC2)));
    let in1 = CallId(CallId::INCOMING);
    p.ask(USER, accept(in1, None));
    let references: Vec<_> = p.ends[USER]
        .uni
        .calls()
        .map(|c| (c.ours, c.reference))
        .collect();
    assert_eq!(references, [(false, 1), (true, 1)]);
    p.ask(NET, release(C1));
    assert_eq!(
        p.ends[USER].state(C1),
        Some(CallState::Active),
        "the other call lives"
    );
    p.ask(USER, release(C1));
    p.clean();
}

#[test]
fn a_duplicate_setup_is_ignored() {
    let mut p = Pair::new(Version::Uni31);
    p.ask(NET, setup(info(1), Some(VC1)));
    let again = p.ends[NET].last().encode();
    p.forget();
    p.inject(USER, &again);
    assert_eq!(p.take(), [vec![], vec![]]);
    assert_eq!(p.ends[USER].kinds(), []);
    assert_eq!(p.ends[USER].uni.counters().ignored, 1);
}

#[test]
fn requests_that_make_no_sense_are_refused() {
    let mut p = Pair::new(Version::Uni31);
    assert!(p.try_ask(USER, release(C1)).is_err(), "unknown call");
    assert!(p.try_ask(NET, setup(info(1), None)).is_err(), "no label");
    let reserved = Some(Vc::new(0, 31));
    assert!(
        p.try_ask(NET, setup(info(1), reserved)).is_err(),
        "reserved label"
    );
    p.call_from_user();
    assert!(p.try_ask(USER, setup(info(1), None)).is_err(), "id in use");
    assert!(
        p.try_ask(NET, setup(info(1), Some(VC1))).is_err(),
        "label in use"
    );
    assert!(
        p.try_ask(NET, accept(IN1, None)).is_err(),
        "accepted already"
    );
    assert!(p.try_ask(NET, proceeding(IN1, None)).is_err());
    p.lossy.push(MessageType::RELEASE);
    p.ask(USER, release(C1));
    assert!(p.try_ask(USER, release(C1)).is_err(), "released already");
    assert_eq!(p.ends[USER].uni.counters().refused_requests, 3);
    let mut p = Pair::new(Version::Uni31);
    p.ask(USER, setup(info(1), None));
    assert!(
        p.try_ask(NET, accept(IN1, None)).is_err(),
        "no label at all"
    );
}

#[test]
fn snapshots_show_calls() {
    let mut p = Pair::new(Version::Uni31);
    p.call_from_user();
    let snapshots: Vec<_> = p.ends[NET].uni.calls().collect();
    let [call] = &snapshots[..] else { panic!() };
    assert_eq!((call.called, call.calling), (addr(1), Some(addr(200))));
    assert_eq!((call.vc, call.blli), (Some(VC1), Some(Blli::LLC)));
    assert_eq!((call.state, call.ours), (CallState::Active, false));
    assert_eq!(call.state.name(Side::Network), "N10");
    assert_eq!(CallState::SetupSent.name(Side::User), "U1");
}
