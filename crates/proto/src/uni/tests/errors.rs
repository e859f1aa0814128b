//! Mistakes of a peer, and the answers to them. Source: Q.2931 §5.6–5.7.

use super::*;
use aerostat_wire::q2931::{Action, CauseIe, ConnectionId, Element};

const FROM_CALLER: CallRef = reference(false, 1);

fn good_setup() -> Message {
    let uni = Uni::new(Params::new(Side::User, Version::Uni31));
    let elements = uni.setup_elements(MessageType::SETUP, &info(1), None, None);
    Message::new(FROM_CALLER, MessageType::SETUP).with_elements(elements)
}

/// The network side's answer to a message, if it sent one.
fn answer(p: &mut Pair, message: &Message) -> Option<Message> {
    p.ends[NET].sent.clear();
    p.inject_message(NET, message);
    p.ends[NET].sent.pop()
}

fn diagnostics(message: &Message) -> Vec<u8> {
    message.find(id::CAUSE).expect("cause").contents[2..].to_vec()
}

#[test]
fn setup_without_a_mandatory_element() {
    for (missing, fatal) in [
        (id::TRAFFIC_DESCRIPTOR, true),
        (id::BEARER_CAPABILITY, true),
        (id::CALLED_NUMBER, true),
        (id::QOS_PARAMETER, true),
        (id::AAL_PARAMETERS, false),
        (id::CALLING_NUMBER, false),
    ] {
        let mut p = Pair::new(Version::Uni31);
        let mut setup = good_setup();
        setup.elements.retain(|e| e.id != missing);
        let got = answer(&mut p, &setup);
        if !fatal {
            assert_eq!(got, None);
            assert_eq!(p.take()[NET].len(), 1);
            continue;
        }
        let got = got.expect("an answer");
        assert_eq!(got.kind, MessageType::RELEASE_COMPLETE);
        assert_eq!((causes(&got), diagnostics(&got)), (vec![96], vec![missing]));
        assert_eq!(p.take()[NET], []);
        assert!(p.ends[NET].is_clean());
    }
}

#[test]
fn setup_with_a_bad_element() {
    for (bad, fatal) in [(id::BEARER_CAPABILITY, true), (id::BLLI, false)] {
        let mut p = Pair::new(Version::Uni31);
        let mut setup = good_setup();
        let hit = setup.elements.iter_mut().find(|e| e.id == bad);
        hit.expect("element").contents = vec![0].into();
        let got = answer(&mut p, &setup).expect("an answer");
        assert_eq!((causes(&got), diagnostics(&got)), (vec![100], vec![bad]));
        let kind = if fatal {
            MessageType::RELEASE_COMPLETE
        } else {
            MessageType::STATUS
        };
        assert_eq!(got.kind, kind);
        assert_eq!(p.take()[NET].is_empty(), fatal);
    }
}

#[test]
fn unknown_elements_go_by_their_action() {
    let unknown = |action: Option<Action>| {
        let mut element = Element::new(0x33, vec![1, 2, 3]);
        if let Some(action) = action {
            element.instruction = element.instruction.with_action(action);
        }
        good_setup().with_elements([element])
    };
    let cases = [
        (None, Some((MessageType::STATUS, 99)), true),
        (
            Some(Action::ClearCall),
            Some((MessageType::RELEASE_COMPLETE, 99)),
            false,
        ),
        (Some(Action::DiscardElement), None, true),
        (
            Some(Action::DiscardElementReport),
            Some((MessageType::STATUS, 99)),
            true,
        ),
        (Some(Action::DiscardMessage), None, false),
    ];
    for (action, want, taken) in cases {
        let mut p = Pair::new(Version::Uni31);
        let got = answer(&mut p, &unknown(action)).map(|m| (m.kind, causes(&m)[0]));
        assert_eq!(got, want, "{action:?}");
        let heard = p.take()[NET].clone();
        let setups = heard
            .iter()
            .filter(|i| matches!(i, Indication::Setup { .. }))
            .count();
        assert_eq!(setups == 1, taken, "{action:?}");
    }
}

#[test]
fn setups_that_cannot_be_served() {
    let with = |element: Ie| {
        let element = element.encode();
        let mut setup = good_setup();
        setup.elements.retain(|e| e.id != element.id);
        setup.with_elements([element])
    };
    let digits = aerostat_wire::q2931::Number {
        ton: 1,
        plan: 1,
        presentation: None,
        digits: b"358401234"[..].into(),
    };
    let vbr_and_best_effort = aerostat_wire::q2931::Fields::new()
        .with(0x84, 9)
        .with(0x85, 9)
        .with(0x90, 5)
        .with(0xb0, 5)
        .with(0xbe, 0);
    let bearer = aerostat_wire::q2931::Bearer {
        class: 0x10,
        atc: None,
        clipping: 0,
        multipoint: true,
    };
    for (element, cause) in [
        (Ie::CalledNumber(digits), 28),
        (Ie::Traffic(vbr_and_best_effort), 73),
        (Ie::Bearer(bearer), 96),
    ] {
        let mut p = Pair::new(Version::Uni31);
        let got = answer(&mut p, &with(element)).expect("an answer");
        assert_eq!(
            (got.kind, causes(&got)),
            (MessageType::RELEASE_COMPLETE, vec![cause])
        );
        assert!(p.ends[NET].is_clean());
    }
}

#[test]
fn a_user_needs_a_free_label() {
    for (vc, cause) in [
        (None, Some(96)),
        (Some(VC1), Some(35)),
        (Some(Vc::new(0, 5)), Some(35)),
        (Some(Vc::new(300, 50)), Some(35)),
        (Some(VC2), None),
    ] {
        let mut p = Pair::new(Version::Uni31);
        p.call_from_user();
        let mut setup = good_setup();
        if let Some(vc) = vc {
            setup = setup.with(&Ie::ConnectionId(ConnectionId::exact(vc)));
        }
        p.inject_message(USER, &setup);
        let got = p.ends[USER].sent.last().map(|m| causes(m)[0]);
        assert_eq!(got, cause, "{vc:?}");
    }
}

#[test]
fn the_call_table_is_bounded() {
    let mut p = Pair::new(Version::Uni31);
    p.ends[NET].uni.params.limits.calls = 3;
    for value in 1..=5 {
        let mut setup = good_setup();
        setup.call.value = value;
        p.inject_message(NET, &setup);
    }
    assert_eq!(p.ends[NET].uni.calls().count(), 3);
    assert_eq!(p.ends[NET].uni.counters().calls_refused, 2);
    assert_eq!(causes(p.ends[NET].last()), [47]);
    assert!(p.try_ask(NET, setup(info(1), Some(VC1))).is_err());
}

#[test]
fn messages_for_no_call() {
    let mut p = Pair::new(Version::Uni31);
    let state = |n| Ie::CallState(n);
    let cause = Ie::Cause(CauseIe::new(0, 16));
    let new = |kind| Message::new(reference(true, 77), kind);
    use MessageType as M;
    for (message, want) in [
        (
            new(M::RELEASE).with(&cause),
            Some((M::RELEASE_COMPLETE, 81)),
        ),
        (new(M::CONNECT), Some((M::RELEASE_COMPLETE, 81))),
        (new(M(0x33)), Some((M::RELEASE_COMPLETE, 81))),
        (new(M::RELEASE_COMPLETE), None),
        (new(M::SETUP), None),
        (new(M::STATUS).with(&state(0)).with(&cause), None),
        (
            new(M::STATUS).with(&state(10)).with(&cause),
            Some((M::RELEASE_COMPLETE, 101)),
        ),
        (new(M::STATUS_ENQUIRY), Some((M::STATUS, 30))),
    ] {
        let got = answer(&mut p, &message);
        assert_eq!(got.as_ref().map(|m| (m.kind, causes(m)[0])), want);
        if let Some(got) = got {
            assert!(
                !got.call.flag,
                "the answer goes to the side that did not choose 77"
            );
        }
    }
    assert!(p.ends[NET].is_clean());
}

#[test]
fn messages_that_do_not_fit() {
    let mut p = Pair::new(Version::Uni31);
    p.call_from_user();
    let message = |kind| Message::new(FROM_CALLER, kind);
    let got = answer(&mut p, &message(MessageType::CALL_PROCEEDING)).expect("STATUS");
    assert_eq!(
        (got.kind, causes(&got), diagnostics(&got)),
        (MessageType::STATUS, vec![101], vec![2])
    );
    let got = answer(&mut p, &message(MessageType(0x33))).expect("STATUS");
    assert_eq!((causes(&got), diagnostics(&got)), (vec![97], vec![0x33]));
    assert_eq!(
        answer(&mut p, &message(MessageType::CONNECT_ACK)),
        None,
        "harmless"
    );
    let mut silent = message(MessageType(0x33));
    silent.instruction = 0x91;
    assert_eq!(answer(&mut p, &silent), None);
    let mut fatal = message(MessageType(0x33));
    fatal.instruction = 0x90;
    let got = answer(&mut p, &fatal).expect("RELEASE");
    assert_eq!((got.kind, causes(&got)), (MessageType::RELEASE, vec![97]));
    p.clean();
}

#[test]
fn clearing_messages_with_a_bad_cause() {
    for (cause, want) in [(None, 96), (Some(vec![0x80]), 100)] {
        let mut p = Pair::new(Version::Uni31);
        p.call_from_user();
        let release = Message::new(FROM_CALLER, MessageType::RELEASE);
        let release = release.with_elements(cause.map(|c| Element::new(id::CAUSE, c)));
        let got = answer(&mut p, &release).expect("RELEASE COMPLETE");
        assert_eq!(
            (got.kind, causes(&got)),
            (MessageType::RELEASE_COMPLETE, vec![want])
        );
        assert_eq!(p.take()[NET], [released(IN1, Cause(31))]);
    }
    let mut p = Pair::new(Version::Uni31);
    p.call_from_user();
    let complete = Message::new(FROM_CALLER, MessageType::RELEASE_COMPLETE);
    assert_eq!(answer(&mut p, &complete), None);
    assert_eq!(p.take()[NET], [released(IN1, Cause(31))]);
}

#[test]
fn status_is_compared() {
    let status = |state| {
        Message::new(FROM_CALLER, MessageType::STATUS)
            .with(&Ie::CallState(state))
            .with(&Ie::Cause(CauseIe::new(0, 101)))
    };
    for (state, lives) in [(0, false), (10, true), (4, true), (6, false), (11, true)] {
        let mut p = Pair::new(Version::Uni31);
        p.call_from_user();
        let got = answer(&mut p, &status(state));
        assert_eq!(p.ends[NET].uni.calls().count() == 1, lives, "{state}");
        assert_ne!(
            got.map(|m| m.kind),
            Some(MessageType::STATUS),
            "never in answer to a STATUS"
        );
    }
    let mut p = Pair::new(Version::Uni31);
    p.call_from_user();
    let empty = Message::new(FROM_CALLER, MessageType::STATUS);
    assert_eq!(answer(&mut p, &empty), None);
}

#[test]
fn the_global_reference() {
    let mut p = Pair::new(Version::Uni31);
    let global = reference(false, CallRef::GLOBAL);
    let new = |kind| Message::new(global, kind);
    let got = answer(&mut p, &new(MessageType::CONNECT)).expect("STATUS");
    assert_eq!((got.kind, causes(&got)), (MessageType::STATUS, vec![81]));
    let got = answer(&mut p, &new(MessageType::RESTART)).expect("STATUS");
    assert_eq!(causes(&got), [96]);
    let channel = Ie::Restart(aerostat_wire::q2931::RestartClass::Channel);
    let restart = new(MessageType::RESTART).with(&channel);
    let got = answer(&mut p, &restart).expect("STATUS");
    assert_eq!(
        (causes(&got), diagnostics(&got)),
        (vec![96], vec![id::CONNECTION_ID])
    );
    let far = Ie::ConnectionId(ConnectionId::exact(Vc::new(999, 40)));
    let got = answer(&mut p, &restart.clone().with(&far)).expect("STATUS");
    assert_eq!(causes(&got), [82]);
    let near = Ie::ConnectionId(ConnectionId::exact(VC1));
    let got = answer(&mut p, &restart.with(&near)).expect("RESTART ACK");
    assert_eq!(
        (got.kind, got.call),
        (MessageType::RESTART_ACK, global.answer())
    );
    assert_eq!(
        got.elements,
        [channel.encode(), near.encode()],
        "idle channels are restarted too"
    );
    assert_eq!(answer(&mut p, &new(MessageType::STATUS)), None);
}

#[test]
fn a_first_answer_without_label_is_not_taken() {
    let mut p = Pair::new(Version::Uni31);
    p.ask(USER, setup(info(1), None));
    let answer = Message::new(FROM_CALLER.answer(), MessageType::CONNECT);
    p.inject_message(USER, &answer);
    let status = p.ends[USER].last();
    assert_eq!(
        (causes(status), diagnostics(status)),
        (vec![96], vec![id::CONNECTION_ID])
    );
    assert_eq!(p.ends[USER].state(C1), Some(CallState::SetupSent));
}

/// Octets that are not a message, and messages to the dummy reference.
#[test]
fn what_is_not_understood_is_ignored() {
    let mut p = Pair::new(Version::Uni31);
    for octets in [
        &[][..],
        &[9],
        &[8, 3, 0, 0, 1, 5, 0x80, 0, 0],
        &[9, 1, 1, 5, 0x80, 0, 0, 0, 0],
    ] {
        p.inject(NET, octets);
    }
    let dummy = reference(false, CallRef::DUMMY);
    p.inject_message(NET, &Message::new(dummy, MessageType::LEAF_SETUP_REQUEST));
    assert_eq!(p.ends[NET].uni.counters().ignored, 5);
    assert_eq!(p.ends[NET].sent, []);
}

/// The length of a message disagrees with the received octets: those within both count.
#[test]
fn messages_of_a_wrong_length() {
    let whole = good_setup().encode();
    // The message is longer than its length field: the rest is ignored.
    let mut p = Pair::new(Version::Uni31);
    let mut longer = whole.clone();
    longer.extend([0x33, 0x80, 0, 1, 1]);
    p.inject(NET, &longer);
    assert_eq!(p.take()[NET].len(), 1);
    assert_eq!(p.ends[NET].sent, []);
    // The message is shorter: its last element is cut, and it is a mandatory one.
    let mut p = Pair::new(Version::Uni31);
    let mut message = good_setup();
    let at = message
        .elements
        .iter()
        .position(|e| e.id == id::CALLED_NUMBER);
    let called = message.elements.remove(at.expect("a called number"));
    let octets = message.with_elements([called]).encode();
    p.inject(NET, &octets[..octets.len() - 3]);
    let got = p.ends[NET].last();
    assert_eq!(
        (got.kind, causes(got), diagnostics(got)),
        (
            MessageType::RELEASE_COMPLETE,
            vec![100],
            vec![id::CALLED_NUMBER]
        )
    );
    assert!(p.ends[NET].is_clean());
}
