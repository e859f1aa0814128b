//! User data in calls: in the offer before it is answered, in the answer, in the refusal, in the release; and links
//! that do not carry them.

use super::*;
use aerostat_proto::socket::Offer;

fn said(text: &str) -> UserData {
    UserData::new(text.as_bytes().to_vec()).unwrap()
}

/// A lab whose hosts speak these versions, and a call inside a host if both ends are x.
fn with_versions(x: &str, y: &str, test: impl FnOnce(&mut Net<'_>, NodeId, NodeId)) {
    let text = LAB
        .replace("x: { on", &format!("x: {{ uni: {x}, on"))
        .replace("y: { on", &format!("y: {{ uni: {y}, on"));
    let mut net = Net::of(aerostat_lab::parse("p.atm.yml", &text, &[]).unwrap().lab);
    let (x, y) = (net.node("x"), net.node("y"));
    test(&mut net, x, y);
}

fn call(net: &mut Net<'_>, node: NodeId, number: u16, called: &str, data: &str) -> SocketRef {
    let socket = net.open(node, number + 1000);
    let request = connect(
        socket,
        called,
        "cbr:max_pcr=1000,min_pcr=10,sdu=1000",
        said(data),
    );
    net.ask(node, number, request);
    socket
}

/// The offer that a node has got last.
fn offer(net: &mut Net<'_>, node: NodeId) -> Offer {
    net.until(net.now + Duration::from_millis(500));
    let found = net.told.iter().rev().find_map(|(_, at, what)| match what {
        ToPrograms::Offer { offer, .. } if *at == node => Some(offer.clone()),
        _ => None,
    });
    found.expect("an offer")
}

fn heard(
    net: &mut Net<'_>,
    node: NodeId,
    number: u16,
    socket: SocketRef,
) -> (String, u8, UserData) {
    let status = net.status(node, number, socket);
    (status.state, status.cause, status.user_data)
}

/// A call that is refused, one that is accepted and released by the callee, one that the caller releases.
fn conversation(net: &mut Net<'_>, caller: NodeId, callee: NodeId) {
    let (listener, address) = net.listener(callee);
    // Refused, for what the caller says, and with the reason.
    call(net, caller, 1, &address, "who are you?");
    let seen = offer(net, callee);
    assert_eq!(seen.user_data, said("who are you?"));
    assert!(
        net.answer(caller, 1).is_none(),
        "it is seen before the answer"
    );
    let refuse = refuse(listener, seen.offer, 21, said("not to you"));
    assert_eq!(net.done(callee, 2, refuse), Answer::Done);
    net.until(net.now + Duration::from_millis(500));
    let (failure, _) = net.failure(caller, 1).expect("refused");
    assert_eq!(
        (failure.cause, &failure.user_data),
        (21, &said("not to you"))
    );
    // Accepted with less, and with the longest answer; then each end releases once, with a word.
    for (number, by_caller) in [(10, true), (20, false)] {
        let made = call(net, caller, number, &address, "hello");
        let seen = offer(net, callee);
        assert!(seen.qos.contains("min_pcr=10"), "{}", seen.qos);
        let longest = UserData::new(vec![7; 128]).unwrap();
        let accept = accept(listener, seen.offer, "cbr:max_pcr=20", longest.clone());
        net.ask(callee, number + 1, accept);
        net.until(net.now + Duration::from_millis(500));
        let Some(Answer::Connected { qos, user_data, .. }) = net.answer(caller, number) else {
            panic!("{:?}", net.failure(caller, number));
        };
        assert!(qos.contains("max_pcr=20,"), "{qos}");
        assert_eq!(*user_data, longest);
        let Some(Answer::Opened { socket: taken }) = net.answer(callee, number + 1).cloned() else {
            panic!("{:?}", net.failure(callee, number + 1));
        };
        assert_eq!(heard(net, callee, number + 2, taken).2, said("hello"));
        let ends = [(caller, made), (callee, taken)];
        let [(one, says), (other, hears)] = if by_caller { ends } else { [ends[1], ends[0]] };
        let release = release(says, 31, said("bye"));
        assert_eq!(net.done(one, number + 3, release), Answer::Done);
        net.until(net.now + Duration::from_millis(500));
        let end = heard(net, other, number + 4, hears);
        assert_eq!(end, ("ended".to_owned(), 31, said("bye")));
    }
}

#[test]
fn user_data_go_with_a_call_its_answer_and_its_end() {
    with_versions("4.0", "4.0", conversation);
}

/// A call inside the host carries them whatever its link speaks.
#[test]
fn user_data_inside_a_host() {
    with_versions("3.1", "3.1", |net, x, _| conversation(net, x, x));
}

/// UNI 3.x has no such element: the caller is told at once, an answer is refused and its offer waits on, and a switch
/// leaves the element out on its way to such a host.
#[test]
fn links_that_carry_no_user_data_say_so() {
    with_versions("3.0", "4.0", |net, x, y| {
        let (listener, address) = net.listener(y);
        call(net, x, 1, &address, "hello");
        let (failure, at) = net.failure(x, 1).expect("refused");
        assert_eq!((failure.errno, failure.cause, at), (95, 29, net.now));
        assert!(failure.text.contains("UNI 4.0"), "{}", failure.text);
        // Without user data it is a call as every other. The answer goes by a link that carries what the next does not.
        let made = call(net, x, 2, &address, "");
        let seen = offer(net, y);
        let accept = accept(listener, seen.offer, "", said("lost on the way"));
        net.ask(y, 3, accept);
        net.until(net.now + Duration::from_millis(500));
        assert!(
            matches!(net.answer(x, 2), Some(Answer::Connected { user_data, .. }) if user_data.is_empty())
        );
        let release = release(made, 16, said("bye"));
        let answer = net.done(x, 4, release);
        assert!(
            matches!(&answer, Answer::Failed(f) if f.errno == 95 && f.field == "user_data"),
            "{answer:?}"
        );
        assert_eq!(heard(net, x, 5, made).0, "connected");
    });
    with_versions("4.0", "3.1", |net, x, y| {
        let (listener, address) = net.listener(y);
        call(net, x, 1, &address, "lost on the way");
        let seen = offer(net, y);
        assert!(seen.user_data.is_empty());
        let offer = seen.offer;
        let answers = [
            accept(listener, offer, "", said("no")),
            refuse(listener, offer, 21, said("no")),
        ];
        for (number, request) in (2..).zip(answers) {
            let answer = net.done(y, number, request);
            assert!(
                matches!(&answer, Answer::Failed(f) if f.errno == 95 && f.field == "user_data"),
                "{answer:?}"
            );
        }
        let plain = refuse(listener, offer, 21, silent());
        assert_eq!(net.done(y, 9, plain), Answer::Done, "the offer waits on");
    });
}

/// The kill matrix of a call with user data: whatever dies between any two events of the network, nothing is left.
#[test]
fn whatever_dies_in_a_call_with_user_data_leaves_nothing() {
    for death in DEATHS {
        for after in [0, 1, 2, 3, 5, 8, 13, 21, 34, 55] {
            with_versions("4.0", "4.0", |net, x, y| {
                let (listener, address) = net.listener(y);
                let made = call(net, x, 1, &address, "hello");
                let (mut events, mut answered, mut died) = (0, false, false);
                let end = net.now + Duration::from_secs(1);
                loop {
                    if events == after {
                        died = true;
                        die(net, death, (x, made), (y, listener));
                    }
                    let callee = !died
                        || !matches!(
                            death,
                            Death::Callee | Death::CalleesService | Death::CalleesHost
                        );
                    let caller = !died
                        || !matches!(
                            death,
                            Death::Caller | Death::CallersService | Death::CallersHost
                        );
                    if let Some(offer) = net.offer(y).filter(|_| !answered && callee) {
                        answered = true;
                        let accept = accept(listener, offer, "", said("welcome"));
                        net.ask(y, 2, accept);
                    }
                    if caller && matches!(net.answer(x, 1), Some(Answer::Connected { .. })) {
                        let release = release(made, 16, said("bye"));
                        net.ask(x, 3, release);
                    }
                    if !net.event(end) {
                        break;
                    }
                    events += 1;
                }
                net.until(net.now + Duration::from_secs(20));
                for node in [x, y] {
                    let mut left = net.states(node);
                    left.retain(|state| !matches!(state, State::Ended | State::Listening));
                    assert_eq!(
                        left,
                        [],
                        "{death:?} after event {after}: sockets of {node:?}"
                    );
                }
            });
        }
    }
}

/// Each leaf sees what was said to it, and its root hears what it answers, refuses with, or leaves with. The first leaf
/// was told something else.
#[test]
fn a_root_and_its_leaves_say_something_to_each_other() {
    with_versions("4.0", "4.0", |net, x, y| {
        let (listener, address) = net.listener(y);
        let socket = net.open(x, 1);
        let connect = first_leaf(
            socket,
            &address,
            "ubr:sdu=1000",
            false,
            said("to the first"),
        );
        net.ask(x, 2, connect);
        let first = offer(net, y);
        assert_eq!(
            (first.multipoint, first.user_data),
            (true, said("to the first"))
        );
        let answer = |offer, user_data| accept(listener, offer, "", user_data);
        net.ask(y, 3, answer(first.offer, said("from the first")));
        net.until(net.now + Duration::from_millis(500));
        let Some(Answer::Connected { user_data, .. }) = net.answer(x, 2) else {
            panic!("{:?}", net.failure(x, 2));
        };
        assert_eq!(*user_data, said("from the first"));
        for (number, says, answers) in [(10, "to the second", "from it"), (20, "", "")] {
            net.ask(x, number, add_party(socket, &address, said(says)));
            let seen = offer(net, y);
            assert_eq!(seen.user_data, said(says));
            net.ask(y, number, answer(seen.offer, said(answers)));
            net.until(net.now + Duration::from_millis(500));
            let Some(Answer::PartyAdded { user_data, .. }) = net.answer(x, number) else {
                panic!("{:?}", net.failure(x, number));
            };
            assert_eq!(*user_data, said(answers));
        }
        net.ask(x, 30, add_party(socket, &address, said("and you?")));
        let seen = offer(net, y);
        let refuse = refuse(listener, seen.offer, 21, said("no"));
        assert_eq!(net.done(y, 31, refuse), Answer::Done);
        net.until(net.now + Duration::from_millis(500));
        let (failure, _) = net.failure(x, 30).expect("refused");
        assert_eq!((failure.cause, &failure.user_data), (21, &said("no")));
        // The root has heard that last; the tree has three leaves.
        assert_eq!(
            heard(net, x, 32, socket),
            ("connected".to_owned(), 0, said("no"))
        );
    });
    // A link that carries no user data: the leaf is refused at once, and the tree lives on.
    with_versions("3.1", "4.0", |net, x, y| {
        let (listener, address) = net.listener(y);
        let socket = net.open(x, 1);
        let connect = first_leaf(socket, &address, "ubr:sdu=1000", false, silent());
        net.ask(x, 2, connect);
        let first = offer(net, y).offer;
        let accept = accept(listener, first, "", silent());
        net.ask(y, 3, accept);
        net.until(net.now + Duration::from_millis(500));
        net.ask(x, 4, add_party(socket, &address, said("hello")));
        let (failure, at) = net.failure(x, 4).expect("refused at once");
        assert_eq!((failure.errno, failure.cause, at), (95, 29, net.now));
        assert_eq!(heard(net, x, 5, socket).0, "connected");
    });
}
