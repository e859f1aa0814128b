//! NOTIFY, and forwarding: the elements that go in on one interface come out on another.

use super::*;
use aerostat_wire::q2931::{Action, Element, Instruction, table};
use proptest::prelude::*;

fn notification(octet: u8) -> Element {
    Ie::Notification(vec![octet]).encode()
}

fn notify(call: CallId, party: Option<PartyId>) -> Request {
    let elements = vec![notification(0xf1)];
    Request::Notify {
        call,
        party,
        elements,
    }
}

#[test]
fn notify_in_the_states_that_allow_it() {
    let mut p = Pair::new(Version::Uni40);
    p.ask(USER, setup(info(1), None));
    assert!(p.try_ask(USER, notify(C1, None)).is_err(), "U1");
    assert!(p.try_ask(NET, notify(IN1, None)).is_err(), "N1");
    p.ask(NET, proceeding(IN1, Some(VC1)));
    p.ask(USER, notify(C1, None));
    p.ask(NET, accept(IN1, None));
    p.forget();
    p.ask(NET, notify(IN1, None));
    let heard = Indication::Notify {
        call: C1,
        party: None,
        elements: vec![notification(0xf1)],
    };
    assert_eq!(p.take()[USER], [heard]);
    assert_eq!(p.ends[USER].uni.counters().notifications, 1);
    assert!(p.try_ask(NET, notify(IN1, Some(PartyId(0)))).is_err());
    let empty = Request::Notify {
        call: IN1,
        party: None,
        elements: Vec::new(),
    };
    assert!(p.try_ask(NET, empty).is_err());
    p.lossy = vec![MessageType::RELEASE];
    p.ask(USER, release(C1));
    assert!(p.try_ask(USER, notify(C1, None)).is_err(), "U11");
    p.forget();
    p.ask(NET, notify(IN1, None));
    assert_eq!(p.take()[USER], [], "it crossed our RELEASE");
    assert_eq!(p.ends[USER].sent, []);
}

#[test]
fn versions_without_notify() {
    for version in [Version::Uni30, Version::Uni31] {
        let mut p = Pair::new(version);
        p.call_from_user();
        p.ask(USER, notify(C1, None));
        assert_eq!(p.ends[USER].sent, []);
        assert_eq!(p.ends[USER].uni.counters().notifications_unsent, 1);
        let call = reference(false, 1);
        let message = Message::new(call, MessageType::NOTIFY).with_elements([notification(1)]);
        p.inject_message(NET, &message);
        assert_eq!(causes(p.ends[NET].last()), [97]);
        assert_eq!(p.take()[NET], []);
    }
}

#[test]
fn notify_about_an_unknown_party() {
    let mut p = Pair::new(Version::Uni40);
    p.ask(USER, setup(multipoint(1), None));
    p.ask(NET, accept(IN1, Some(VC1)));
    p.forget();
    p.ask(USER, notify(C1, Some(PartyId(0))));
    let [_, heard] = p.take();
    assert!(matches!(
        heard[..],
        [Indication::Notify {
            party: Some(PartyId(0)),
            ..
        }]
    ));
    assert!(p.try_ask(USER, notify(C1, Some(PartyId(4)))).is_err());
    let call = reference(false, 1);
    let message = Message::new(call, MessageType::NOTIFY)
        .with_elements([notification(1)])
        .with(&Ie::EndpointReference {
            flag: false,
            value: 4,
        });
    p.inject_message(NET, &message);
    let answer = p.ends[NET].last();
    assert_eq!(
        (answer.kind, causes(answer)),
        (MessageType::DROP_PARTY_ACK, vec![89])
    );
    assert_eq!(p.take()[NET], []);
}

/// An undefined element, with the pass-along request or without.
fn nobodys() -> impl Strategy<Value = Element> {
    let ids: Vec<u8> = (0..=255)
        .filter(|id| table::definition(*id).is_none())
        .collect();
    let contents = prop::collection::vec(any::<u8>(), 0..40);
    (prop::sample::select(ids), any::<u8>(), contents).prop_map(|(id, octet, contents)| Element {
        id,
        instruction: Instruction(octet | 0x80),
        contents: contents.into(),
    })
}

proptest! {
    /// Between two interfaces of a switch: all elements with the pass-along request come out unchanged and in order on
    /// an interface of 4.0. On an older one none does, and the strictest action requested by their senders is known.
    #[test]
    fn what_nobody_defined(elements in prop::collection::vec(nobodys(), 0..6), old: bool) {
        let passing: Vec<_> = elements
            .iter()
            .filter(|e| e.instruction.pass_along())
            .cloned()
            .collect();
        let mut first = Pair::new(Version::Uni40);
        first.ends[NET].uni.params.passes_along = true;
        let mut uni = Uni::new(Params::new(Side::User, Version::Uni40));
        uni.handle_input(Input::SaalUp, Instant::ZERO).unwrap();
        let plain = uni.setup_elements(MessageType::SETUP, &info(1), None, None);
        let call = reference(false, 9);
        let message = Message::new(call, MessageType::SETUP).with_elements(plain);
        let fatal = |e: &Element| {
            let action = e.instruction.action();
            let not_taken = [Action::ClearCall, Action::DiscardMessage, Action::DiscardMessageReport];
            action.is_some_and(|action| not_taken.contains(&action))
        };
        first.inject_message(NET, &message.with_elements(elements.clone()));
        // A user that never sent this answers a STATUS about it by clearing; the SETUP came first.
        let mut heard = first.take()[NET].clone().into_iter();
        let heard = heard.find(|i| matches!(i, Indication::Setup { .. }));
        // Elements without the pass-along request are judged as usual.
        if elements.iter().any(|e| !e.instruction.pass_along() && fatal(e)) {
            prop_assert_eq!(heard, None);
            return Ok(());
        }
        let Some(Indication::Setup { info: offer, .. }) = heard else {
            panic!("{heard:?}")
        };
        let undefined = |e: &&Element| table::definition(e.id).is_none();
        let told: Vec<_> = offer.elements.iter().filter(undefined).cloned().collect();
        prop_assert_eq!(&told, &passing);
        let version = if old { Version::Uni31 } else { Version::Uni40 };
        let mut second = Pair::new(version);
        second.ask(NET, setup(offer.clone(), Some(VC1)));
        let sent = second.ends[NET].sent[0].elements.iter().filter(undefined).cloned();
        let sent: Vec<_> = sent.collect();
        let obstacle = version.obstacle(&offer.elements).map(|(action, _)| action);
        if old {
            prop_assert_eq!(sent, []);
            let worst = passing.iter().filter(|e| fatal(e)).count();
            let fatal = matches!(
                obstacle,
                Some(Action::ClearCall | Action::DiscardMessage | Action::DiscardMessageReport)
            );
            prop_assert_eq!(fatal, worst > 0);
            prop_assert_eq!(obstacle.is_none(), passing.is_empty());
        } else {
            prop_assert_eq!(sent, passing);
            prop_assert_eq!(obstacle, None);
        }
    }
}
