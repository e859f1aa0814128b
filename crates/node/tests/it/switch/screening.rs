//! Calling numbers screened by the network, and simultaneous calls for the same labels.

use aerostat_proto::uni::{CallId, SetupInfo, Version};
use aerostat_wire::q2931::{
    CallRef, ConnectionId, Ie, Message, MessageType, Number, Screening, id, ie,
};
use aerostat_wire::{Qos, Vc};

use aerostat_testing::switch::bare::Bare;

const A: CallId = CallId(1);

/// The calling number in the last SETUP that a host got.
fn calling(net: &Bare, host: usize) -> Number {
    let setup = net.hosts[host].last(MessageType::SETUP).expect("a SETUP");
    let element = setup.find(id::CALLING_NUMBER).expect("a calling number");
    match ie::decode(element).unwrap() {
        Ie::CallingNumber(number) => number,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_screening_indicator_says_what_the_network_found() {
    for version in [Version::Uni30, Version::Uni31, Version::Uni40] {
        let mut net = Bare::new(2, version, &[(0, version), (1, version)]);
        let own = net.address(0);
        let given = |number: Number| {
            let element = Ie::CallingNumber(number).encode();
            let calling = ie::decode(&element).ok().and_then(|ie| match ie {
                Ie::CallingNumber(number) => number.address(),
                _ => None,
            });
            (calling, vec![element])
        };
        let restricted = Number {
            presentation: Some(0xa0),
            ..Number::called(own)
        };
        let claims_more = Number {
            presentation: Some(0x83),
            ..Number::called(own)
        };
        let telephone = Number {
            ton: 1,
            plan: 1,
            presentation: None,
            digits: b"358401234"[..].into(),
        };
        for ((calling_address, elements), screening, shown) in [
            ((Some(own), Vec::new()), Screening::Passed, 0),
            ((None, Vec::new()), Screening::Network, 0),
            (given(Number::called(own)), Screening::Passed, 0),
            (given(restricted), Screening::Passed, 1),
            // The caller's own screening indicator is ignored.
            (given(claims_more), Screening::Passed, 0),
            // The network cannot verify this number.
            (given(telephone), Screening::Network, 0),
        ] {
            let info = SetupInfo {
                calling: calling_address,
                elements,
                ..net.info(0, 1, Qos::ubr(1536))
            };
            net.set_up(0, 1, info);
            net.run_ms(20);
            let number = calling(&net, 1);
            assert_eq!(number.address(), Some(own), "{version:?}");
            assert_eq!(number.screening(), Some(screening));
            assert_eq!(number.presentation.unwrap() >> 5 & 3, shown);
            net.release(0, A);
            net.run_ms(50);
            net.forget();
        }
        net.assert_clean();
    }
}

/// Calls from both ends want the last label of a trunk at the same time: one gets it, the other cause 45.
#[test]
fn the_last_label_of_a_trunk() {
    let v = Version::Uni31;
    let mut net = Bare::configured(2, v, &[(0, v), (1, v)], |_, config| {
        if config.name == "after" {
            config.max_vci = 32;
        }
    });
    for round in 0..4 {
        net.set_up(0, 1, net.info(0, 1, Qos::ubr(1536)));
        net.set_up(1, 1, net.info(1, 0, Qos::ubr(1536)));
        net.run_ms(20);
        let refused: Vec<_> = (0..2)
            .filter(|i| net.hosts[*i].released() == [45])
            .collect();
        let &[loser] = &refused[..] else {
            panic!("round {round}: {refused:?}")
        };
        net.accept(loser);
        net.run_ms(20);
        let winner = &net.hosts[1 - loser];
        assert_eq!(
            winner.last(MessageType::CONNECT).map(|m| m.kind),
            Some(MessageType::CONNECT)
        );
        net.release(1 - loser, A);
        net.run_ms(50);
        net.forget();
        net.assert_clean();
    }
}

/// Twenty calls each way at the same instant, over one trunk and two UNIs, released by both ends at the same instant.
#[test]
fn many_calls_from_both_ends_at_once() {
    let v = Version::Uni40;
    let mut net = Bare::new(2, v, &[(0, v), (1, v)]);
    for call in 1..=20 {
        net.set_up(0, call, net.info(0, 1, Qos::ubr(1536)));
        net.set_up(1, call, net.info(1, 0, Qos::ubr(1536)));
    }
    net.run_ms(20);
    for host in 0..2 {
        for call in 0..20 {
            let call = CallId(CallId::INCOMING + call);
            let (info, vc) = (Default::default(), None);
            net.ask(
                host,
                aerostat_proto::uni::Request::Accept { call, info, vc },
            )
            .unwrap();
        }
    }
    net.run_ms(20);
    for host in 0..2 {
        let mut labels: Vec<Option<Vc>> = net.hosts[host].uni.calls().map(|c| c.vc).collect();
        labels.sort_unstable();
        labels.dedup();
        assert_eq!(labels.len(), 40, "forty calls on forty labels");
        assert!(labels[0].is_some());
    }
    assert_eq!(net.switches[0].calls().count(), 40);
    for call in 1..=20 {
        net.release(0, CallId(call));
        net.release(1, CallId(CallId::INCOMING + call - 1));
    }
    net.run_ms(20);
    for call in 1..=20 {
        // Calls that the other end released have ended already.
        let request = aerostat_proto::uni::Request::Release {
            call: CallId(call),
            cause: aerostat_proto::uni::Reason::NORMAL,
        };
        let _ = net.ask(1, request);
    }
    net.run_ms(100);
    net.assert_clean();
}

/// A SETUP of a user that names its label gets that label or is refused.
#[test]
fn a_user_that_names_its_label() {
    let v = Version::Uni31;
    let mut net = Bare::new(1, v, &[(0, v), (0, v)]);
    net.set_up(0, 1, net.info(0, 1, Qos::ubr(1536)));
    net.run_ms(20);
    let elements = net.hosts[1]
        .last(MessageType::SETUP)
        .unwrap()
        .elements
        .clone();
    let taken = net.hosts[0].uni.calls().next().unwrap().vc.unwrap();
    net.hosts[0].deaf = true;
    for (reference, label, answer) in [
        (70, Vc::new(0, 77), MessageType::CALL_PROCEEDING),
        (71, taken, MessageType::RELEASE_COMPLETE),
        (72, Vc::new(0, 31), MessageType::RELEASE_COMPLETE),
        (73, Vc::new(1, 40), MessageType::RELEASE_COMPLETE),
    ] {
        let call = CallRef {
            flag: false,
            value: reference,
        };
        let named = Ie::ConnectionId(ConnectionId::exact(label));
        let mut setup = Message::new(call, MessageType::SETUP).with_elements(elements.clone());
        setup.elements.retain(|e| e.id != id::CONNECTION_ID);
        net.forget();
        net.say(0, &setup.with(&named));
        net.run_ms(20);
        let got = net.hosts[0].got.iter().find(|m| m.call == call.answer());
        let got = got.expect("an answer");
        assert_eq!(got.kind, answer, "{label}");
        if answer == MessageType::CALL_PROCEEDING {
            assert_eq!(got.find(id::CONNECTION_ID), Some(&named.encode()));
        } else {
            assert_eq!(got.find(id::CAUSE).unwrap().contents[1], 0x80 | 35);
        }
    }
}
