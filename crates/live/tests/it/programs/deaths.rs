//! Whatever dies in a call: the other side is told, and nothing is left.

use super::*;

/// End that dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Death {
    Nobody,
    Caller,
    Callee,
    CallersService,
    CalleesService,
    CallersHost,
    CalleesHost,
}

pub(super) const DEATHS: [Death; 6] = [
    Death::Caller,
    Death::Callee,
    Death::CallersService,
    Death::CalleesService,
    Death::CallersHost,
    Death::CalleesHost,
];

/// Outcome of a call.
struct Outcome {
    events: usize,
    received: usize,
}

/// A call with an accept, three PDUs and a release; after event `at` one of the parts dies. Checks what must hold then.
fn call(builder: &Builder<'_>, death: Death, at: usize, others: usize) -> Outcome {
    let mut net = Net::new(builder);
    let (x, y) = (net.node("x"), net.node("y"));
    let (listener, address) = net.listener(y);
    let caller = net.connect(x, 1, &address, "ubr:sdu=1000");
    let (mut accepted, mut written, mut released) = (false, 0, false);
    let mut events = 0;
    let mut died: Option<Instant> = None;
    let end = net.now + Duration::from_secs(1);
    loop {
        if events == at && death != Death::Nobody {
            die(&mut net, death, (x, caller), (y, listener));
            died = Some(net.now);
        }
        let (x_lives, y_lives) = match (died, death) {
            (None, _) => (true, true),
            (_, Death::Caller | Death::CallersService | Death::CallersHost) => (false, true),
            _ => (true, false),
        };
        if let Some(offer) = net.offer(y).filter(|_| !accepted && y_lives) {
            accepted = true;
            let socket = listener;
            net.ask(y, 2, accept(socket, offer, "", silent()));
        }
        let open = matches!(net.answer(x, 1), Some(Answer::Connected { .. }));
        if open && x_lives && written < 3 && net.world.asks_to_write(x, caller) {
            written += 1;
            net.write(x, caller, vec![written as u8; 1000]);
        } else if open && x_lives && written == 3 && !released {
            released = true;
            net.give(x, Input::Closed { socket: caller });
        }
        if !net.event(end) {
            break;
        }
        events += 1;
    }
    check(&mut net, (x, caller), y, (death, died, at));
    let calls = net.world.calls();
    assert_eq!(calls, others, "{death:?} after event {at}: calls");
    let received = net.told.iter();
    let received = received.filter(|(_, node, what)| {
        *node == y && matches!(what, ToPrograms::Deliver { sdus, .. } if sdus.octets() == 1000)
    });
    Outcome {
        events,
        received: received.count(),
    }
}

pub(super) fn die(
    net: &mut Net<'_>,
    death: Death,
    (x, caller): (NodeId, SocketRef),
    (y, listener): (NodeId, SocketRef),
) {
    let now = net.now;
    match death {
        Death::Nobody => {}
        // The kernel closes the descriptors of a process that dies.
        Death::Caller => {
            net.give(
                x,
                Input::Gone {
                    session: session(x),
                },
            );
            net.give(x, Input::Closed { socket: caller });
        }
        Death::Callee => {
            let sockets: Vec<SocketRef> = net
                .told
                .iter()
                .filter_map(|(_, node, what)| match what {
                    ToPrograms::Answer {
                        descriptor: Some(socket),
                        ..
                    } if *node == y => Some(*socket),
                    _ => None,
                })
                .collect();
            net.give(
                y,
                Input::Gone {
                    session: session(y),
                },
            );
            net.give(y, Input::Closed { socket: listener });
            for socket in sockets {
                net.give(y, Input::Closed { socket });
            }
        }
        Death::CallersService | Death::CalleesService => {
            let node = if death == Death::CallersService { x } else { y };
            net.world
                .command(node, HostCommand::Crash(ServiceKind::Sockets), now);
        }
        Death::CallersHost | Death::CalleesHost => {
            let node = if death == Death::CallersHost { x } else { y };
            net.fault(FaultKind::Crash(node, None));
        }
    }
    net.drain();
}

/// Nothing is left, and the side that lives has been told within a second.
fn check(
    net: &mut Net<'_>,
    (x, caller): (NodeId, SocketRef),
    y: NodeId,
    (death, died, at): (Death, Option<Instant>, usize),
) {
    let case = format!("{death:?} after event {at}");
    let soon = died.unwrap_or(net.now) + Duration::from_secs(1);
    let caller_lives = !matches!(
        death,
        Death::Caller | Death::CallersService | Death::CallersHost
    );
    let open = matches!(net.answer(x, 1), Some(Answer::Connected { .. }));
    if caller_lives {
        let told = match open {
            true => net.ended(x, caller),
            false => net.failure(x, 1).map(|(_, at)| at),
        };
        assert!(
            told.is_some_and(|at| at <= soon),
            "{case}: the caller is told"
        );
    }
    let accepted = net.told.iter().find_map(|(_, node, what)| match what {
        ToPrograms::Answer {
            number: 2,
            answer: Answer::Opened { socket },
            ..
        } if *node == y => Some(*socket),
        _ => None,
    });
    let callee_lives = !matches!(
        death,
        Death::Callee | Death::CalleesService | Death::CalleesHost
    );
    if callee_lives {
        let told = match (accepted, net.offer(y)) {
            (Some(socket), _) => net.ended(y, socket).is_some_and(|at| at <= soon),
            // The offer has been withdrawn: an answer to it fails.
            (None, Some(_)) => net.failure(y, 2).is_some_and(|(_, at)| at <= soon),
            (None, None) => true,
        };
        assert!(told, "{case}: the callee is told");
    }
    net.until(net.now + Duration::from_secs(20));
    for node in [x, y] {
        let mut left = net.states(node);
        left.retain(|state| !matches!(state, State::Ended | State::Listening));
        assert_eq!(left, [], "{case}: sockets of {node:?}");
    }
}

/// The kill matrix: each event from the request to the end of the release × each part that can die.
#[test]
fn whatever_dies_in_a_call_leaves_nothing_and_the_other_side_is_told_within_a_second() {
    let lab = lab();
    let builder = Builder::new(&lab, 1, Flavour::Embedded).with_programs();
    // Calls of the LANE clients, which a host that is off does not have.
    let others = |death| {
        let mut net = Net::new(&builder);
        let (x, y) = (net.node("x"), net.node("y"));
        let nothing = SocketRef::of(0, 0);
        die(&mut net, death, (x, nothing), (y, nothing));
        net.until(net.now + Duration::from_secs(21));
        net.world.calls()
    };
    let Outcome { events, received } = call(&builder, Death::Nobody, 0, others(Death::Nobody));
    assert_eq!(received, 3);
    // The messages of a call over three links and two switches, and three PDUs.
    assert!((30..400).contains(&events), "{events}");
    for death in DEATHS {
        let others = others(death);
        for at in 0..events {
            call(&builder, death, at, others);
        }
    }
}
