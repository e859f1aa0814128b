//! Forwarding through a switch: elements in every message of a call, undefined elements, and NOTIFY.

use aerostat_proto::uni::{CallId, Indication, Reason, Request, SetupInfo, Version};
use aerostat_proto::{Cause, Machine, PartyId};
use aerostat_wire::Qos;
use aerostat_wire::q2931::{Action, Element, Ie, Instruction, MessageType, id};

use aerostat_node::switch::Input;
use aerostat_testing::switch::bare::{Bare, Host};

const A: CallId = CallId(1);
const NOBODYS: u8 = 0x33;

/// An undefined element with the pass-along request.
fn nobodys(action: Option<Action>) -> Element {
    let plain = Instruction::ITU.with_pass_along();
    Element {
        id: NOBODYS,
        instruction: action.map_or(plain, |action| plain.with_action(action)),
        contents: vec![1, 2, 3].into(),
    }
}
fn user_user(text: &[u8]) -> Element {
    Ie::UserUser(text.to_vec()).encode()
}
fn notification(octet: u8) -> Element {
    Ie::Notification(vec![octet]).encode()
}
fn with(mut info: SetupInfo, elements: impl IntoIterator<Item = Element>) -> SetupInfo {
    info.elements.extend(elements);
    info
}
fn notify(call: CallId, party: Option<PartyId>, elements: &[Element]) -> Request {
    let elements = elements.to_vec();
    Request::Notify {
        call,
        party,
        elements,
    }
}
/// The notifications that a host got: party and elements.
fn notified(net: &Bare, host: usize) -> Vec<(Option<PartyId>, Vec<Element>)> {
    let heard = net.hosts[host].heard.iter();
    let news = heard.filter_map(|heard| match heard {
        Indication::Notify {
            party, elements, ..
        } => Some((*party, elements.clone())),
        _ => None,
    });
    news.collect()
}
fn diagnostics(message: &aerostat_wire::q2931::Message) -> Vec<u8> {
    message.find(id::CAUSE).expect("a cause").contents[1..].to_vec()
}

#[test]
fn elements_nobody_defined_cross_two_switches_unchanged() {
    for action in [None, Some(Action::ClearCall), Some(Action::DiscardMessage)] {
        let v = Version::Uni40;
        let mut net = Bare::new(2, v, &[(0, v), (1, v)]);
        let element = nobodys(action);
        let info = with(net.info(0, 1, Qos::ubr(1536)), [element.clone()]);
        net.set_up(0, 1, info);
        net.run_ms(100);
        // The element is forwarded octet for octet; what a user does with it is not tested here.
        let setup = net.hosts[1].last(MessageType::SETUP).expect("a SETUP");
        assert_eq!(setup.find(NOBODYS), Some(&element));
        let taken = net.hosts[1].offer().is_some();
        assert_eq!(taken, action.is_none(), "a host has nowhere to pass it to");
        let port = net.switches[0].port_infos().nth(2).unwrap();
        assert_eq!(port.signalling.passed_along, 1);
        assert_eq!(port.signalling.unknown_elements, 0);
        if !taken {
            let released = net.hosts[0].released();
            let want: &[u8] = if action == Some(Action::ClearCall) {
                &[99]
            } else {
                &[]
            };
            assert_eq!(released, want, "{action:?}");
        }
    }
}

#[test]
fn without_the_indicator_a_switch_goes_by_the_action() {
    let v = Version::Uni40;
    let mut net = Bare::new(1, v, &[(0, v), (0, v)]);
    net.set_up(0, 1, net.info(0, 1, Qos::ubr(1536)));
    net.run_ms(20);
    let mut message = net.hosts[1]
        .last(MessageType::SETUP)
        .expect("a SETUP")
        .clone();
    message.elements.retain(|e| e.id != id::CONNECTION_ID);
    message.call.value = 77;
    let mut element = nobodys(None);
    element.instruction = Instruction::ITU;
    net.forget();
    net.say(0, &message.with_elements([element]));
    net.run_ms(20);
    let setup = net.hosts[1].last(MessageType::SETUP).expect("a SETUP");
    assert_eq!(setup.find(NOBODYS), None);
    let status = net.hosts[0].last(MessageType::STATUS).expect("a STATUS");
    assert_eq!(diagnostics(status), [0x80 | 99, NOBODYS]);
}

/// Undefined elements cannot be sent to an interface of UNI 3.1, so the sender's action is taken.
#[test]
fn where_it_cannot_go_the_action_counts() {
    for (action, status, released) in [
        (None, 1, &[][..]),
        (Some(Action::DiscardElement), 0, &[]),
        (Some(Action::DiscardElementReport), 1, &[]),
        (Some(Action::ClearCall), 0, &[99]),
        (Some(Action::DiscardMessage), 0, &[99]),
        (Some(Action::DiscardMessageReport), 0, &[99]),
    ] {
        let mut net = Bare::new(
            1,
            Version::Uni40,
            &[(0, Version::Uni40), (0, Version::Uni31)],
        );
        let info = with(net.info(0, 1, Qos::ubr(1536)), [nobodys(action)]);
        net.set_up(0, 1, info);
        net.run_ms(100);
        assert_eq!(
            net.hosts[0].count(MessageType::STATUS),
            status,
            "{action:?}"
        );
        assert_eq!(net.hosts[0].released(), released, "{action:?}");
        assert_eq!(net.hosts[1].offer().is_some(), released.is_empty());
        if let Some(setup) = net.hosts[1].last(MessageType::SETUP) {
            assert_eq!(setup.find(NOBODYS), None);
        }
        if released.is_empty() {
            net.accept(1);
            net.run_ms(10);
            net.release(0, A);
        }
        net.run_ms(100);
        net.assert_clean();
    }
}

#[test]
fn every_message_of_a_call_carries_its_elements() {
    let v = Version::Uni40;
    let mut net = Bare::new(2, v, &[(0, v), (1, v)]);
    let info = net.info(0, 1, Qos::ubr(1536));
    net.set_up(0, 1, with(info, [user_user(b"setup")]));
    net.run_ms(20);
    let (there, offer) = net.hosts[1].offer().expect("an offer");
    assert!(offer.elements.contains(&user_user(b"setup")));
    let alerting = Request::Alerting {
        call: there,
        vc: None,
        elements: vec![user_user(b"ringing"), nobodys(None)],
    };
    net.ask(1, alerting).unwrap();
    net.run_ms(20);
    let got = net.hosts[0].last(MessageType::ALERTING).expect("ALERTING");
    assert_eq!(got.find(id::USER_USER), Some(&user_user(b"ringing")));
    assert_eq!(got.find(NOBODYS), Some(&nobodys(None)));
    let info = aerostat_proto::uni::ConnectInfo {
        elements: vec![user_user(b"hello"), nobodys(None)],
        ..Default::default()
    };
    let (call, vc) = (there, None);
    net.ask(1, Request::Accept { call, info, vc }).unwrap();
    net.run_ms(20);
    let got = net.hosts[0].last(MessageType::CONNECT).expect("CONNECT");
    assert_eq!(got.find(id::USER_USER), Some(&user_user(b"hello")));
    assert_eq!(got.find(NOBODYS), Some(&nobodys(None)));
    let cause = Reason {
        elements: vec![user_user(b"bye"), nobodys(None)],
        ..Cause::NORMAL.into()
    };
    net.ask(0, Request::Release { call: A, cause }).unwrap();
    net.run_ms(20);
    let got = net.hosts[1].last(MessageType::RELEASE).expect("RELEASE");
    assert_eq!(got.find(id::USER_USER), Some(&user_user(b"bye")));
    assert_eq!(got.find(NOBODYS), Some(&nobodys(None)));
    net.run_ms(100);
    net.assert_clean();
}

#[test]
fn notify_crosses_both_ways() {
    let v = Version::Uni40;
    let mut net = Bare::new(2, v, &[(0, v), (1, v)]);
    net.set_up(0, 1, net.info(0, 1, Qos::ubr(1536)));
    assert!(
        net.ask(0, notify(A, None, &[notification(0xf1)])).is_err(),
        "nobody has answered yet"
    );
    net.run_ms(20);
    // Before the called user answers, notifications of the caller have no destination.
    net.ask(0, notify(A, None, &[notification(0xf1)])).unwrap();
    net.run_ms(20);
    assert_eq!(net.switches[1].counters().notifications_dropped, 1);
    let there = net.accept(1);
    net.run_ms(20);
    net.forget();
    let two = [notification(0xf2), notification(0xf3), nobodys(None)];
    net.ask(0, notify(A, None, &two)).unwrap();
    net.ask(1, notify(there, None, &[notification(0xf4)]))
        .unwrap();
    assert!(
        net.ask(0, notify(A, None, &[nobodys(None)])).is_err(),
        "empty"
    );
    let party = Some(PartyId(0));
    assert!(
        net.ask(0, notify(A, party, &two)).is_err(),
        "no parties here"
    );
    net.run_ms(20);
    // The called host is not a switch: an undefined element does not reach its owner, and causes a STATUS.
    assert_eq!(notified(&net, 1), [(None, two[..2].to_vec())]);
    let got = net.hosts[1].last(MessageType::NOTIFY).expect("NOTIFY");
    assert_eq!(got.elements, two);
    assert_eq!(notified(&net, 0), [(None, vec![notification(0xf4)])]);
    assert_eq!(net.switches[0].counters().notifications, 3);
    // A NOTIFY without its mandatory element.
    let empty = aerostat_wire::q2931::Message::new(
        aerostat_wire::q2931::CallRef {
            flag: false,
            value: 1,
        },
        MessageType::NOTIFY,
    );
    net.say(0, &empty);
    net.run_ms(20);
    let status = net.hosts[0].last(MessageType::STATUS).expect("a STATUS");
    assert_eq!(diagnostics(status), [0x80 | 96, id::NOTIFICATION]);
    net.release(0, A);
    net.run_ms(100);
    net.assert_clean();
}

/// UNI 3.1 has no NOTIFY: no NOTIFY is sent there, and a NOTIFY from there is an unknown message.
#[test]
fn notify_stops_at_an_interface_without_it() {
    let mut net = Bare::new(
        1,
        Version::Uni40,
        &[(0, Version::Uni40), (0, Version::Uni31)],
    );
    net.set_up(0, 1, net.info(0, 1, Qos::ubr(1536)));
    net.run_ms(20);
    net.accept(1);
    net.run_ms(20);
    net.forget();
    net.ask(0, notify(A, None, &[notification(0xf1)])).unwrap();
    net.run_ms(20);
    assert_eq!(net.hosts[1].got, []);
    let port = net.switches[0].port_infos().nth(3).unwrap();
    assert_eq!(port.signalling.notifications_unsent, 1);
    let reference = aerostat_wire::q2931::CallRef {
        flag: true,
        value: 1,
    };
    let notify = aerostat_wire::q2931::Message::new(reference, MessageType::NOTIFY);
    net.say(1, &notify.with_elements([notification(0xf1)]));
    net.run_ms(20);
    let status = net.hosts[1].last(MessageType::STATUS).expect("a STATUS");
    assert_eq!(diagnostics(status), [0x80 | 97, MessageType::NOTIFY.0]);
    assert_eq!(notified(&net, 0), []);
    net.release(0, A);
    net.run_ms(100);
    net.assert_clean();
}

/// Root at switch 0; one leaf there, two at switch 1 behind one trunk.
#[test]
fn notify_finds_the_party_that_it_names() {
    let v = Version::Uni40;
    let mut net = Bare::new(2, v, &[(0, v), (0, v), (1, v), (1, v)]);
    let multipoint = |net: &Bare, to| SetupInfo {
        multipoint: true,
        ..net.info(0, to, Qos::ubr_multipoint(1536))
    };
    net.set_up(0, 1, multipoint(&net, 1));
    net.run_ms(20);
    net.accept(1);
    net.run_ms(20);
    for (party, leaf) in [(5, 2), (6, 3)] {
        let info = multipoint(&net, leaf);
        let party = PartyId(party);
        net.ask(
            0,
            Request::AddParty {
                call: A,
                party,
                info,
            },
        )
        .unwrap();
        net.run_ms(20);
        net.accept(leaf);
        net.run_ms(20);
    }
    net.forget();
    net.ask(0, notify(A, Some(PartyId(6)), &[notification(1)]))
        .unwrap();
    net.run_ms(20);
    let count = |net: &Bare| [1, 2, 3].map(|leaf| notified(net, leaf).len());
    assert_eq!(count(&net), [0, 0, 1]);
    net.ask(0, notify(A, None, &[notification(2)])).unwrap();
    net.run_ms(20);
    assert_eq!(count(&net), [1, 1, 2], "without a party: to all");
    for (leaf, party) in [(1, 0), (2, 5), (3, 6)] {
        let (call, news) = (CallId(CallId::INCOMING), [notification(leaf as u8)]);
        net.hosts[0].heard.clear();
        net.ask(leaf, notify(call, None, &news)).unwrap();
        net.run_ms(20);
        let want = (Some(PartyId(party)), news.to_vec());
        assert_eq!(
            notified(&net, 0),
            [want],
            "the root hears which leaf it was"
        );
    }
    assert!(
        net.ask(0, notify(A, Some(PartyId(9)), &[notification(1)]))
            .is_err()
    );
    net.release(0, A);
    net.run_ms(100);
    net.assert_clean();
}

#[test]
fn a_switch_that_stops_releases_its_calls() {
    let version = Version::Uni40;
    let mut net = Bare::new(2, version, &[(0, version), (1, version), (1, version)]);
    for (call, to) in [(1, 1), (2, 2)] {
        net.set_up(0, call, net.info(0, to, Qos::ubr(1536)));
        net.run_ms(20);
    }
    // One branch is connected, the other has not been answered.
    net.accept(1);
    net.run_ms(20);
    net.switches[0].handle_input(Input::Clear, net.now).unwrap();
    assert_eq!(net.switches[0].calls().count(), 0);
    net.run_ms(50);
    let causes: Vec<_> = net.hosts.iter().map(Host::released).collect();
    assert_eq!(causes, [vec![38, 38], vec![38], vec![38]]);
    net.assert_clean();
}
