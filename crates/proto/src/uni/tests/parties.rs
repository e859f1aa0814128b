//! Point-to-multipoint calls.

use super::*;

const S: fn(u64) -> Duration = Duration::from_secs;
const P0: PartyId = PartyId(0);
const P1: PartyId = PartyId(1);

fn add(call: CallId, party: PartyId, n: u8) -> Request {
    let info = multipoint(n);
    Request::AddParty { call, party, info }
}
fn accept_party(call: CallId, party: PartyId) -> Request {
    let info = ConnectInfo::default();
    Request::AcceptParty { call, party, info }
}
fn drop_party(call: CallId, party: PartyId) -> Request {
    drop_for(call, party, Cause::NORMAL)
}
fn drop_for(call: CallId, party: PartyId, cause: Cause) -> Request {
    let cause = cause.into();
    Request::DropParty { call, party, cause }
}
fn reject_party(call: CallId, party: PartyId, cause: Cause) -> Request {
    let cause = cause.into();
    Request::RejectParty { call, party, cause }
}
fn dropped(call: CallId, party: PartyId, cause: Cause) -> Indication {
    let cause = cause.into();
    Indication::PartyDropped { call, party, cause }
}
fn rejected(call: CallId, party: PartyId, cause: Cause) -> Indication {
    let cause = cause.into();
    Indication::PartyRejected { call, party, cause }
}

/// A multipoint call of the user (root) with party 0 active.
fn root(version: Version) -> Pair {
    let mut p = Pair::new(version);
    p.ask(USER, setup(multipoint(1), None));
    p.ask(NET, proceeding(IN1, Some(VC1)));
    p.ask(NET, accept(IN1, None));
    assert_eq!(p.ends[USER].state(C1), Some(CallState::Active));
    p.forget();
    p
}

fn parties(end: &End) -> Vec<(u16, PartyState)> {
    let calls = end.uni.calls();
    calls
        .flat_map(|c| c.parties.into_iter().map(|(id, s, _)| (id.0, s)))
        .collect()
}

fn flag(message: &Message) -> bool {
    let element = message
        .find(id::ENDPOINT_REFERENCE)
        .expect("endpoint reference");
    element.contents[1] & 0x80 != 0
}

#[test]
fn parties_come_and_go() {
    for version in [Version::Uni30, Version::Uni31, Version::Uni40] {
        let mut p = root(version);
        p.ask(USER, add(C1, P1, 2));
        assert!(!flag(p.ends[USER].last()));
        let [_, net] = p.take();
        let [
            Indication::AddParty {
                call: IN1,
                party: P1,
                info,
            },
        ] = &net[..]
        else {
            panic!("{net:?}")
        };
        assert_eq!((info.called, info.multipoint), (addr(2), true));
        assert_eq!(info.qos, Qos::ubr_multipoint(1516), "from the SETUP");
        assert!(info.elements.iter().any(|e| e.id == id::TRAFFIC_DESCRIPTOR));
        p.ask(NET, accept_party(IN1, P1));
        assert_eq!(flag(p.ends[NET].last()), version != Version::Uni30);
        let [user, _] = p.take();
        assert!(matches!(
            user[..],
            [Indication::PartyAdded {
                call: C1,
                party: P1,
                ..
            }]
        ));
        let active = [(0, PartyState::Active), (1, PartyState::Active)];
        assert_eq!(parties(&p.ends[USER]), active);
        assert_eq!(parties(&p.ends[NET]), active);
        p.ask(USER, drop_party(C1, P0));
        let [user, net] = p.take();
        let cause = Cause::NORMAL;
        assert_eq!(user, [dropped(C1, P0, cause)]);
        assert_eq!(net, [dropped(IN1, P0, cause)]);
        p.ask(USER, drop_party(C1, P1));
        assert_eq!(
            p.ends[USER].kinds().last(),
            Some(&MessageType::RELEASE),
            "the last one"
        );
        assert_eq!(p.take()[NET], [released(IN1, cause)]);
        p.clean();
    }
}

#[test]
fn the_setup_of_a_leaf_is_built_from_what_the_root_said() {
    let mut p = root(Version::Uni31);
    p.ask(USER, add(C1, P1, 2));
    let [_, net] = p.take();
    let Some(Indication::AddParty { info, .. }) = net.into_iter().next() else {
        panic!()
    };
    let mut leaf = Pair::new(Version::Uni31);
    leaf.ask(NET, setup(info, Some(VC1)));
    let [user, _] = leaf.take();
    let [
        Indication::Setup {
            info,
            party: Some(P0),
            vc: Some(VC1),
            ..
        },
    ] = &user[..]
    else {
        panic!("{user:?}")
    };
    assert_eq!(
        (info.called, info.qos),
        (addr(2), Qos::ubr_multipoint(1516))
    );
    leaf.ask(USER, accept(IN1, None));
    assert!(flag(&leaf.ends[USER].sent[0]));
    assert_eq!(parties(&leaf.ends[NET]), [(0, PartyState::Active)]);
}

#[test]
fn a_leaf_leaves() {
    let mut p = root(Version::Uni31);
    p.ask(USER, add(C1, P1, 2));
    p.ask(NET, accept_party(IN1, P1));
    p.forget();
    let cause = Cause::OUT_OF_ORDER;
    p.ask(NET, drop_for(IN1, P1, cause));
    let [user, net] = p.take();
    assert_eq!(user, [dropped(C1, P1, cause)]);
    assert_eq!(net, [dropped(IN1, P1, cause)]);
    p.ask(NET, drop_for(IN1, P0, cause));
    assert_eq!(p.take()[USER], [released(C1, cause)]);
    p.clean();
}

#[test]
fn a_party_is_rejected() {
    let mut p = root(Version::Uni31);
    p.ask(USER, add(C1, P1, 2));
    p.forget();
    let cause = Cause::BUSY;
    p.ask(NET, reject_party(IN1, P1, cause));
    let [user, net] = p.take();
    assert_eq!(user, [rejected(C1, P1, cause)]);
    assert_eq!(net, []);
    assert_eq!(parties(&p.ends[USER]), [(0, PartyState::Active)]);
}

/// The first party is dropped, the second is refused: no party is left.
#[test]
fn a_call_without_parties_is_released() {
    let mut p = root(Version::Uni31);
    p.ask(USER, add(C1, P1, 2));
    p.ask(USER, drop_party(C1, P0));
    p.forget();
    let cause = Cause::BUSY;
    p.ask(NET, reject_party(IN1, P1, cause));
    let [user, net] = p.take();
    assert_eq!(user[0], rejected(C1, P1, cause));
    assert_eq!(user.last(), Some(&released(C1, cause)));
    assert_eq!(
        net,
        [
            Indication::Clearing {
                call: IN1,
                cause: cause.into()
            },
            released(IN1, cause)
        ]
    );
    p.clean();
}

#[test]
fn both_drop_a_party_at_once() {
    let mut p = root(Version::Uni31);
    p.ask(USER, add(C1, P1, 2));
    p.ask(NET, accept_party(IN1, P1));
    p.forget();
    for (end, call) in [(USER, C1), (NET, IN1)] {
        let request = Input::Request(drop_party(call, P1));
        p.ends[end].uni.handle_input(request, p.now).unwrap();
    }
    p.drain();
    assert_eq!(p.ends[USER].kinds(), [MessageType::DROP_PARTY]);
    let cause = Cause::NORMAL;
    let [user, net] = p.take();
    assert_eq!(user, [dropped(C1, P1, cause)]);
    assert_eq!(net, [dropped(IN1, P1, cause)]);
    assert_eq!(p.ends[USER].uni.timers.next(), None);
}

#[test]
fn t399_gives_up_on_a_party() {
    let mut p = root(Version::Uni31);
    p.ask(USER, add(C1, P1, 2));
    p.forget();
    p.run(S(34));
    let [user, net] = p.take();
    let cause = Cause::TIMER;
    assert_eq!(user, [rejected(C1, P1, cause)]);
    assert_eq!(net, [dropped(IN1, P1, cause)]);
    assert_eq!(p.ends[USER].uni.timers.next(), None);
}

#[test]
fn t397_limits_party_alerting() {
    let mut p = root(Version::Uni40);
    p.ask(USER, add(C1, P1, 2));
    p.ask(
        NET,
        Request::AlertParty {
            call: IN1,
            party: P1,
            elements: Vec::new(),
        },
    );
    assert_eq!(
        p.take()[USER],
        [Indication::PartyAlerting {
            call: C1,
            party: P1,
            elements: Vec::new(),
        }]
    );
    p.run(S(180));
    let cause = Cause(19);
    assert_eq!(p.take()[USER], [rejected(C1, P1, cause)]);
}

#[test]
fn t398_frees_a_party_without_an_answer() {
    let mut p = root(Version::Uni31);
    p.ask(USER, add(C1, P1, 2));
    p.ask(NET, accept_party(IN1, P1));
    p.forget();
    p.lossy = vec![MessageType::DROP_PARTY];
    p.ask(USER, drop_party(C1, P1));
    p.run(S(4));
    let cause = Cause::NORMAL;
    assert_eq!(p.take()[USER], [dropped(C1, P1, cause)]);
    assert_eq!(
        p.ends[USER].kinds().last(),
        Some(&MessageType::DROP_PARTY_ACK)
    );
}

/// Recorded: Linux leaves answer ADD PARTY with STATUS 97 (linux-atm 2.5.1, point to multipoint).
#[test]
fn a_leaf_that_knows_no_parties_is_noticed_at_once() {
    let mut p = Pair::new(Version::Uni31);
    p.ask(NET, setup(multipoint(1), Some(VC1)));
    p.ask(USER, accept(IN1, None));
    p.forget();
    p.lossy = vec![MessageType::ADD_PARTY, MessageType::DROP_PARTY];
    p.ask(NET, add(C1, P1, 2));
    p.inject(
        NET,
        &[
            9, 3, 0x80, 0, 1, 0x7d, 0x80, 0, 12, 0x14, 0x80, 0, 1, 10, 8, 0x80, 0, 3, 0x80, 0xe1,
            0x80,
        ],
    );
    let cause = Cause(97);
    assert_eq!(p.take()[NET], [rejected(C1, P1, cause)]);
    assert_eq!(p.ends[NET].state(C1), Some(CallState::Active));
    assert_eq!(p.ends[NET].uni.timers.next(), None);
}

#[test]
fn unknown_parties_are_answered() {
    let mut p = root(Version::Uni31);
    let reference = reference(false, 1);
    let party = Ie::EndpointReference {
        flag: false,
        value: 9,
    };
    for kind in [MessageType::ADD_PARTY_ACK, MessageType::DROP_PARTY] {
        let message = Message::new(reference, kind).with(&party);
        let message = match kind {
            MessageType::DROP_PARTY => message.with(&Ie::Cause(CauseIe::new(0, 16))),
            _ => message,
        };
        p.inject_message(NET, &message);
        assert_eq!(p.ends[NET].last().kind, MessageType::DROP_PARTY_ACK);
        assert_eq!(causes(p.ends[NET].last()), [89]);
    }
    assert_eq!(parties(&p.ends[NET]), [(0, PartyState::Active)]);
}

#[test]
fn party_requests_that_make_no_sense_are_refused() {
    let mut p = root(Version::Uni31);
    assert!(p.try_ask(USER, add(C1, P0, 2)).is_err(), "party in use");
    assert!(p.try_ask(NET, add(IN1, P1, 2)).is_err(), "not the root");
    assert!(
        p.try_ask(USER, drop_party(C1, P1)).is_err(),
        "no such party"
    );
    assert!(
        p.try_ask(NET, accept_party(IN1, P0)).is_err(),
        "not offered"
    );
    let mut p = Pair::new(Version::Uni31);
    p.call_from_user();
    assert!(p.try_ask(USER, add(C1, P1, 2)).is_err(), "point to point");
    p.ask(USER, release(C1));
    p.ask(USER, setup(multipoint(1), None));
    assert!(p.try_ask(USER, add(C1, P1, 2)).is_err(), "no leaf yet");
}

#[test]
fn too_many_parties() {
    let mut p = root(Version::Uni31);
    p.ends[NET].uni.params.limits.parties = 2;
    p.ask(USER, add(C1, P1, 2));
    p.ask(USER, add(C1, PartyId(2), 3));
    let cause = Cause(92);
    assert_eq!(p.take()[USER], [rejected(C1, PartyId(2), cause)]);
    assert_eq!(p.ends[NET].uni.counters().parties_refused, 1);
}

/// Sends `end` a STATUS about a party; the user started the call.
fn status(p: &mut Pair, end: usize, party: u16, state: u8) {
    let reference = reference(end == USER, 1);
    let flag = end == USER;
    let endpoint = Ie::EndpointReference { flag, value: party };
    let message = Message::new(reference, MessageType::STATUS)
        .with(&Ie::CallState(10))
        .with(&Ie::Cause(CauseIe::new(0, 30)))
        .with(&endpoint)
        .with(&Ie::EndpointState(state));
    p.inject_message(end, &message);
}

/// A root with two active parties, at both ends.
fn two_parties() -> Pair {
    let mut p = root(Version::Uni31);
    p.ask(USER, add(C1, P1, 2));
    p.ask(NET, accept_party(IN1, P1));
    p.forget();
    p
}

#[test]
fn reported_party_states_are_compared() {
    for end in [USER, NET] {
        // Compatible states, given messages on their way.
        let agreeing: &[u8] = if end == USER {
            &[10, 11, 12]
        } else {
            &[1, 4, 10, 11, 12]
        };
        for state in agreeing {
            let mut p = two_parties();
            status(&mut p, end, 1, *state);
            assert_eq!(p.ends[end].kinds(), [], "{state}");
            assert_eq!(parties(&p.ends[end]).len(), 2);
        }
        // The other states drop the party, and only this party.
        let differing: &[u8] = if end == USER { &[1, 4, 6, 7] } else { &[6, 7] };
        for state in differing {
            let mut p = two_parties();
            status(&mut p, end, 1, *state);
            let [user, net] = p.take();
            for (heard, call) in [(user, C1), (net, IN1)] {
                assert_eq!(heard, [dropped(call, P1, Cause(101))]);
            }
            assert_eq!(parties(&p.ends[end]), [(0, PartyState::Active)]);
        }
    }
}

#[test]
fn parties_that_only_one_end_has_go() {
    // The peer does not have the party: it ends here without a message.
    let mut p = two_parties();
    status(&mut p, USER, 1, 0);
    assert_eq!(p.ends[USER].kinds(), []);
    assert_eq!(p.take()[USER], [dropped(C1, P1, Cause(101))]);
    // This end does not have the party: the peer is told, and both agree again.
    status(&mut p, USER, 1, 10);
    assert_eq!(p.ends[USER].kinds(), [MessageType::DROP_PARTY]);
    assert_eq!(p.take()[NET], [dropped(IN1, P1, Cause(101))]);
    assert_eq!(parties(&p.ends[NET]), parties(&p.ends[USER]));
    // The last party takes the call with it.
    status(&mut p, USER, 0, 0);
    assert_eq!(p.take()[NET], [released(IN1, Cause(101))]);
    assert!(p.ends.iter().all(End::is_clean));
}

#[test]
fn leaves_that_join_by_themselves_are_refused() {
    let request = || {
        let calling = aerostat_wire::q2931::Number::calling(addr(9));
        let called = aerostat_wire::q2931::Number::called(addr(1));
        let reference = reference(false, CallRef::DUMMY);
        Message::new(reference, MessageType::LEAF_SETUP_REQUEST)
            .with(&Ie::CallingNumber(calling))
            .with(&Ie::CalledNumber(called))
            .with(&Ie::LijCallId(5))
    };
    let whole = || request().with(&Ie::LeafSequence(0x0102_0304));
    let mut p = Pair::new(Version::Uni40);
    // Without a sequence number there is nothing to refer to.
    p.inject_message(NET, &request());
    assert_eq!(p.ends[NET].kinds(), []);
    p.inject_message(NET, &whole());
    let answer = p.ends[NET].last();
    assert_eq!(answer.kind, MessageType::LEAF_SETUP_FAILURE);
    assert_eq!(
        (answer.call.value, causes(answer)),
        (CallRef::DUMMY, vec![63])
    );
    let sequence = answer.find(id::LEAF_SEQUENCE).expect("sequence number");
    assert_eq!(sequence.contents[..], [1, 2, 3, 4]);
    assert_eq!(p.ends[NET].uni.counters().leaf_requests, 1);
    // Without the identifier of the call the request is refused for that reason.
    let mut poor = whole();
    poor.elements.retain(|e| e.id != id::LIJ_CALL_ID);
    p.inject_message(NET, &poor);
    assert_eq!(causes(p.ends[NET].last()), [96]);
    assert!(p.ends[NET].is_clean());
    // UNI 3.1 has no such message.
    let mut p = Pair::new(Version::Uni31);
    p.inject_message(NET, &whole());
    assert_eq!(p.ends[NET].kinds(), []);
}

#[test]
fn an_enquiry_about_a_party_is_answered() {
    for (party, wanted) in [(0, 10), (1, 10), (9, 0)] {
        let mut p = two_parties();
        p.forget();
        let call = reference(false, 1);
        let enquiry = Message::new(call, MessageType::STATUS_ENQUIRY);
        let endpoint = Ie::EndpointReference {
            flag: false,
            value: party,
        };
        p.inject_message(NET, &enquiry.with(&endpoint));
        let status = &p.ends[NET].sent[0];
        assert_eq!(
            (status.kind, causes(status)),
            (MessageType::STATUS, vec![30])
        );
        let state = status.find(id::ENDPOINT_STATE).expect("a state");
        assert_eq!(state.contents[..], [wanted], "party {party}");
    }
}
