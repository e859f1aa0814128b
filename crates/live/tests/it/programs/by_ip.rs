//! Calls to IP addresses: who is asked, what a program is told, and every death on the way.

use super::*;
use aerostat_node::host::sockets::{QUESTIONS, WAITING};

const LAB: &str = "
switches: { s: {}, t: {} }
links: [ [s, t, { rate: oc3 }] ]
lane: { on: s, elans: { lan: { subnet: 10.1.0.0/24 } } }
clip:
  a: { subnet: 10.5.0.0/24, server: hub, nhrp: true }
  b: { subnet: 10.6.0.0/24, server: hub, nhrp: true }
  c: { subnet: 10.7.0.0/24, server: hub }
  d: { subnet: 10.8.0.0/24, next_hops: { 10.8.0.20: { address: y } } }
routers:
  hub: { on: s, elans: { a: 10.5.0.1, b: 10.6.0.1, c: 10.7.0.1 } }
hosts:
  x: { on: s, elan: a, ip: 10.5.0.10 }
  y: { on: t, elan: a, ip: 10.5.0.20, elans: { d: 10.8.0.20 } }
  z: { on: t, elan: b, ip: 10.6.0.20 }
  p: { on: t, elan: c, ip: 10.7.0.10, elans: { d: 10.8.0.10 } }
  l: { on: s, elan: lan, ip: 10.1.0.10 }
";

fn lab() -> Lab {
    aerostat_lab::parse("i.atm.yml", LAB, &[]).unwrap().lab
}

/// The layer of a host that is on.
fn questions(net: &Net<'_>, node: NodeId) -> Vec<usize> {
    let layer = net.layer(node).into_iter();
    layer
        .flat_map(SocketLayer::questions)
        .map(|(_, waiting)| waiting)
        .collect()
}

/// A call of `from` to this text arrives at `to`, which accepts it. The caller then knows the ATM address.
fn arrives(net: &mut Net<'_>, from: &str, called: &str, to: &str) {
    let (from, to) = (net.node(from), net.node(to));
    net.told.clear();
    let (listener, address) = net.listener(to);
    let caller = net.connect(from, 1, called, "ubr:sdu=1000");
    net.until(net.now + Duration::from_secs(2));
    let offer = net
        .offer(to)
        .unwrap_or_else(|| panic!("{called}: {:?}", net.failure(from, 1)));
    let socket = listener;
    net.ask(to, 2, accept(socket, offer, "", silent()));
    net.until(net.now + Duration::from_secs(1));
    assert!(
        matches!(net.answer(from, 1), Some(Answer::Connected { .. })),
        "{called}"
    );
    let status = net.status(from, 3, caller);
    assert_eq!((&*status.state, &status.peer), ("connected", &address));
    for (node, socket) in [(from, caller), (to, listener)] {
        net.give(node, Input::Closed { socket });
    }
    net.until(net.now + Duration::from_secs(1));
}

/// The failure of a call to this text, and how long it took.
fn fails(net: &mut Net<'_>, from: &str, called: &str) -> (Failure, Duration) {
    let (from, began) = (net.node(from), net.now);
    net.told.clear();
    net.connect(from, 1, called, "ubr");
    net.until(began + Duration::from_secs(25));
    let (failure, at) = net.failure(from, 1).expect("the call fails");
    (failure.clone(), at.since(began))
}

#[test]
fn the_map_atmarp_and_nhrp_tell_where_an_ip_address_is() {
    let mut net = Net::of(lab());
    net.until(Instant::from_secs(5));
    arrives(&mut net, "x", "10.5.0.20", "y");
    // By now the answer is known.
    arrives(&mut net, "x", "10.5.0.20/e0", "y");
    arrives(&mut net, "x", "10.6.0.20", "z");
    arrives(&mut net, "p", "10.8.0.20", "y");
    // The host itself: the call does not leave it.
    arrives(&mut net, "x", "10.5.0.10", "x");
    assert!(questions(&net, net.node("x")).is_empty());
    let x = net.layer(net.node("x")).unwrap().counters();
    assert_eq!((x.resolved, x.unresolved), (4, 0));
}

#[test]
fn an_ip_address_that_cannot_be_resolved_is_an_error_with_cause_and_hint() {
    let mut net = Net::of(lab());
    net.until(Instant::from_secs(5));
    let soon = Duration::from_secs(1);
    for (from, called, errno, cause, words) in [
        (
            "x",
            "10.5.0.99",
            101,
            1,
            "the ATMARP server of 10.5.0.0/24 knows no 10.5.0.99",
        ),
        (
            "x",
            "10.66.0.1",
            101,
            1,
            "the NHRP server knows no 10.66.0.1: refused with code",
        ),
        (
            "p",
            "10.8.0.99",
            101,
            3,
            "10.8.0.99 is not among the next hops of 10.8.0.0/24, which has no ATMARP server",
        ),
        (
            "p",
            "10.5.0.20",
            101,
            3,
            "outside the Classical IP subnets of p (10.7.0.0/24, 10.8.0.0/24)",
        ),
        (
            "l",
            "10.1.0.20",
            101,
            3,
            "l has no Classical IP interface to resolve 10.1.0.20: call the ATM address or",
        ),
    ] {
        let (failure, took) = fails(&mut net, from, called);
        assert_eq!(
            (failure.errno, failure.cause),
            (errno, cause),
            "{failure:?}"
        );
        assert!(failure.text.contains(words), "{failure:?}");
        assert!(took < soon, "{called}: {took:?}");
        // The reason stays with the socket.
        let node = net.node(from);
        let (_, socket) = net.layer(node).unwrap().sockets().last().unwrap();
        let status = socket.status();
        assert_eq!((&*status.state, &*status.peer), ("ended", called));
        assert!(status.why.contains(words), "{status:?}");
    }
    for (called, offset, words) in [
        ("224.0.0.1", 0, "224.0.0.1 is not the address of a host"),
        ("127.0.0.1", 0, "127.0.0.1 is not the address of a host"),
        ("0.0.0.0", 0, "0.0.0.0 is not the address of a host"),
        ("fe80::1", 0, "IPv4 addresses only"),
        ("10.5.0.20/1", 10, "a selector has two hex digits"),
        ("10.5.0.256", 0, "nor an IPv4 address"),
    ] {
        let (failure, _) = fails(&mut net, "x", called);
        assert_eq!(
            (failure.errno, &*failure.field, failure.offset),
            (22, "called", offset)
        );
        assert!(failure.text.contains(words), "{failure:?}");
    }
    arrives(&mut net, "x", "10.5.0.20", "y");
    // The server is off: its members ask four times, in 15 s. The next call within 5 s is refused at once.
    let hub = net.node("hub");
    net.fault(FaultKind::Crash(hub, None));
    let (failure, took) = fails(&mut net, "x", "10.5.0.98");
    assert_eq!((failure.errno, failure.cause), (110, 102), "{failure:?}");
    assert_eq!(
        failure.text,
        "no ATMARP server of 10.5.0.0/24 has answered about 10.5.0.98"
    );
    assert_eq!(took, Duration::from_secs(15));
    // What is known stays known.
    arrives(&mut net, "x", "10.5.0.20", "y");
    // It comes back.
    net.fault(FaultKind::Restart(hub, None));
    net.until(net.now + Duration::from_secs(10));
    let (failure, _) = fails(&mut net, "x", "10.5.0.97");
    assert_eq!(failure.cause, 1);
}

/// The time that a program gives to its call counts from the request.
#[test]
fn a_call_waits_for_its_address_no_longer_than_its_program_says() {
    let mut net = Net::of(lab());
    net.until(Instant::from_secs(5));
    let (x, hub) = (net.node("x"), net.node("hub"));
    net.fault(FaultKind::Crash(hub, None));
    let socket = net.open(x, 1);
    let connect = within(700, connect(socket, "10.5.0.98", "ubr", silent()));
    let began = net.now;
    net.ask(x, 2, connect);
    let status = net.status(x, 3, socket);
    assert_eq!((&*status.state, &*status.peer), ("resolving", "10.5.0.98"));
    net.until(began + Duration::from_secs(1));
    let (failure, at) = net.failure(x, 2).unwrap();
    assert_eq!(at.since(began), Duration::from_millis(700));
    assert_eq!((failure.errno, failure.cause), (110, 102));
    assert_eq!(
        failure.text,
        "no answer about 10.5.0.98 in the time of the call"
    );
    assert!(questions(&net, x).is_empty());
    net.until(began + Duration::from_secs(20));
    assert!(net.told.iter().all(
        |(_, _, what)| !matches!(what, ToPrograms::Answer { number: 2, answer, .. }
        if !matches!(answer, Answer::Failed(_)))
    ));
}

#[test]
fn calls_to_one_address_share_a_question_and_questions_have_a_limit() {
    let mut net = Net::of(lab());
    net.until(Instant::from_secs(5));
    let (x, hub) = (net.node("x"), net.node("hub"));
    let (_, _) = net.listener(net.node("y"));
    for number in 1..=20 {
        net.connect(x, number, "10.5.0.20", "ubr");
    }
    assert_eq!(questions(&net, x), [20]);
    net.until(net.now + Duration::from_secs(1));
    assert_eq!(net.layer(x).unwrap().counters().resolved, 1);
    assert!(!net.states(x).contains(&State::Resolving));
    // No host answers: the limit of addresses, then that of calls.
    net.fault(FaultKind::Crash(hub, None));
    for n in 0..QUESTIONS + 1 {
        let called = format!("10.5.0.{}", 100 + n % 150);
        let called = if n < 150 {
            called
        } else {
            format!("10.66.0.{}", n - 149)
        };
        net.connect(x, 2000 + n as u16, &called, "ubr");
    }
    let failure = net
        .failure(x, 2000 + QUESTIONS as u16)
        .expect("one too many")
        .0;
    assert_eq!(
        (failure.errno, failure.cause, &*failure.field),
        (12, 0, "called")
    );
    assert!(
        failure
            .text
            .contains("256 calls wait for the ATM addresses of 256"),
        "{failure:?}"
    );
    for n in QUESTIONS..=WAITING {
        net.connect(x, 4000 + n as u16, "10.5.0.100", "ubr");
    }
    let failure = net
        .failure(x, 4000 + WAITING as u16)
        .expect("one too many")
        .0;
    assert!(failure.text.contains("1024 calls wait"), "{failure:?}");
    assert!(net.failure(x, 4000 + WAITING as u16 - 1).is_none());
    assert_eq!(net.layer(x).unwrap().counters().resolutions_refused, 2);
    // The packets of the host have the other half of the tables, and nothing is left in the end.
    net.until(net.now + Duration::from_secs(31));
    assert!(questions(&net, x).is_empty());
    assert!(!net.states(x).contains(&State::Resolving));
}

/// A root and a leaf by IP address; a leaf without an owner; a leaf that is dropped while its address is resolved.
#[test]
fn leaves_are_called_by_ip_address() {
    let mut net = Net::of(lab());
    net.until(Instant::from_secs(5));
    let (x, y, z) = (net.node("x"), net.node("y"), net.node("z"));
    let listeners = [y, z].map(|node| net.listener(node));
    let socket = net.open(x, 1);
    let connect = first_leaf(socket, "10.5.0.20", "ubr:sdu=100", false, silent());
    net.ask(x, 2, connect);
    accept_next(&mut net, y, listeners[0].0);
    assert!(
        matches!(net.answer(x, 2), Some(Answer::Connected { .. })),
        "{:?}",
        net.failure(x, 2)
    );
    net.ask(x, 3, add_party(socket, "10.6.0.20", silent()));
    accept_next(&mut net, z, listeners[1].0);
    assert_eq!(
        net.answer(x, 3),
        Some(&Answer::PartyAdded {
            party: 1,
            user_data: UserData::default()
        })
    );
    net.ask(x, 4, add_party(socket, "10.5.0.99", silent()));
    net.until(net.now + Duration::from_secs(1));
    assert_eq!(net.failure(x, 4).unwrap().0.cause, 1);
    net.ask(x, 5, add_party(socket, "10.5.0.98", silent()));
    assert_eq!(questions(&net, x), [1]);
    let Answer::Parties { parties, .. } = net.done(x, 6, Request::Parties { socket, from: 2 })
    else {
        panic!("no parties")
    };
    assert_eq!(
        (parties.len(), &*parties[0].called, parties[0].active),
        (1, "10.5.0.98", false)
    );
    let party = parties[0].party;
    assert_eq!(
        net.done(x, 7, Request::DropParty { socket, party }),
        Answer::Done
    );
    assert_eq!(net.failure(x, 5).unwrap().0.cause, 16);
    assert!(questions(&net, x).is_empty());
    net.until(net.now + Duration::from_secs(1));
    let status = net.status(x, 8, socket);
    assert_eq!((&*status.state, status.leaves), ("connected", 2));
}

fn accept_next(net: &mut Net<'_>, node: NodeId, socket: SocketRef) {
    net.until(net.now + Duration::from_secs(1));
    let offer = net.offer(node).expect("an offer");
    net.ask(node, 200, accept(socket, offer, "", silent()));
    net.until(net.now + Duration::from_secs(1));
}

/// Node that dies while an address is resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Nothing,
    Program,
    Service,
    Member,
    MemberReturns,
    Host,
    Server,
    ServerReturns,
    Link,
}

fn strike(net: &mut Net<'_>, fault: Fault, (x, caller): (NodeId, SocketRef)) {
    let (builder, now) = (net.builder, net.now);
    let hub = net.node("hub");
    let command = |net: &mut Net<'_>, command| net.world.command(x, command, now);
    match fault {
        Fault::Nothing => {}
        Fault::Program => {
            let session = session(x);
            net.give(x, Input::Gone { session });
            net.give(x, Input::Closed { socket: caller });
        }
        Fault::Service => command(net, HostCommand::Crash(ServiceKind::Sockets)),
        Fault::Member => command(net, HostCommand::Crash(ServiceKind::Clip)),
        Fault::MemberReturns => command(net, HostCommand::Restart(ServiceKind::Clip)),
        Fault::Host => net.fault(FaultKind::Crash(x, None)),
        Fault::Server => net.fault(FaultKind::Crash(hub, None)),
        Fault::ServerReturns => {
            net.fault(FaultKind::Crash(hub, None));
            net.fault(FaultKind::Restart(hub, None));
        }
        Fault::Link => {
            let link = builder.lab().node(hub).attachment().unwrap().link;
            net.fault(FaultKind::LinkDown(link));
        }
    }
    net.drain();
}

/// Each event from the request to the offer × each part that can die: the caller has its offer or an error within the
/// time of the resolver, and nothing is left.
#[test]
fn whatever_dies_while_an_address_is_resolved_leaves_nothing() {
    let lab = lab();
    let builder = Builder::new(&lab, 1, Flavour::Embedded).with_programs();
    let run = |fault: Fault, at: usize| {
        let mut net = Net::new(&builder);
        net.until(Instant::from_secs(5));
        let (x, y) = (net.node("x"), net.node("y"));
        net.listener(y);
        let caller = net.connect(x, 1, "10.5.0.20", "ubr");
        let began = net.now;
        let mut events = 0;
        while events < at && net.offer(y).is_none() && net.event(began + Duration::from_secs(1)) {
            events += 1;
        }
        strike(&mut net, fault, (x, caller));
        net.until(began + Duration::from_secs(16));
        let case = format!("{fault:?} after event {at}");
        assert!(questions(&net, x).is_empty(), "{case}");
        assert!(!net.states(x).contains(&State::Resolving), "{case}");
        let lives = !matches!(fault, Fault::Program | Fault::Service | Fault::Host);
        let told = net.offer(y).is_some() || net.failure(x, 1).is_some();
        assert!(told || !lives, "{case}");
        if fault == Fault::Member && net.offer(y).is_none() {
            let (failure, _) = net.failure(x, 1).unwrap();
            assert_eq!(
                (failure.errno, failure.cause),
                (100, 41),
                "{case}: {failure:?}"
            );
        }
        // An offer without an answer ends, too.
        let resolved = net.offer(y).is_some();
        let failure = net.failure(x, 1).filter(|_| !resolved);
        let cause = failure.map(|(failure, _)| failure.cause);
        match fault {
            Fault::MemberReturns => assert!(resolved, "{case}: {cause:?}"),
            // The called host may not have registered with the new server yet.
            Fault::ServerReturns => {
                assert!(cause.is_none_or(|cause| cause == 1), "{case}: {cause:?}")
            }
            _ => {}
        }
        net.until(began + Duration::from_secs(60));
        let mut left = net.states(x);
        left.retain(|state| *state != State::Ended);
        assert_eq!(left, [], "{case}");
        events
    };
    let events = run(Fault::Nothing, usize::MAX);
    assert!((10..200).contains(&events), "{events}");
    for fault in [
        Fault::Program,
        Fault::Service,
        Fault::Member,
        Fault::MemberReturns,
        Fault::Host,
        Fault::Server,
        Fault::ServerReturns,
        Fault::Link,
    ] {
        for at in 0..events {
            run(fault, at);
        }
    }
}

/// A next hop that the lab file gives wrongly keeps the host with this IP address from getting ready: the check of the
/// file warns, and what the lab waits for names the entry.
#[test]
fn a_wrong_next_hop_is_named_by_the_check_and_by_what_the_lab_waits_for() {
    let other = lab();
    let z = other.node(other.find("z").unwrap()).lecs()[0].address;
    let wrong = format!(
        "a: {{ subnet: 10.5.0.0/24, next_hops: {{ 10.5.0.20: {{ address: \"{z:x}\" }} }}, server: hub,"
    );
    let text = LAB.replace("a: { subnet: 10.5.0.0/24, server: hub,", &wrong);
    let checked = aerostat_lab::parse("i.atm.yml", &text, &[]).unwrap();
    let warned = checked.warnings.to_string();
    assert!(
        warned.contains("10.5.0.20 is y, which has another ATM address"),
        "{warned}"
    );
    let builder = Builder::new(&checked.lab, 1, Flavour::Embedded).with_programs();
    let mut net = Net::new(&builder);
    net.until(Instant::from_secs(5));
    let waits = net.world.waits_for();
    let told = "lec0 of y to register with its ATMARP server (which has 10.5.0.20 at z: z has the same IP address, or \
                the entry 10.5.0.20 of 'next_hops:' is wrong)";
    assert!(waits.iter().any(|wait| wait == told), "{waits:?}");
}
