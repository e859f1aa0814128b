//! Calls inside a host: without the switch and without the link, but never without the manager.

use super::*;
use aerostat_node::host::DaemonMessage;
use aerostat_proto::sigd::ToSigd;
use aerostat_proto::split::codec::Message as _;
use aerostat_proto::split::{Numbered, ProcessEvent, ProcessInput, ProcessOutput, ToDaemon};
use aerostat_proto::{Cause, Machine as _};

fn offer_of(net: &Net<'_>, node: NodeId) -> Option<(u32, String, String)> {
    net.told.iter().rev().find_map(|(_, at, what)| match what {
        ToPrograms::Offer { offer, .. } if *at == node => {
            Some((offer.offer, offer.caller.clone(), offer.qos.clone()))
        }
        _ => None,
    })
}

/// The link of x is cut, and nothing of the network happens: the call, its answer with another contract, and PDUs need
/// no time at all. What the reader does not read holds the writer, and nothing is lost.
#[test]
fn a_local_call_needs_no_link_and_no_time_and_loses_nothing() {
    let mut net = Net::of(lab());
    let x = net.node("x");
    let cut = FaultKind::LinkDown(net.builder.lab().node(x).attachment().unwrap().link);
    net.fault(cut);
    net.until(net.now + Duration::from_secs(30));
    let nic = |net: &Net<'_>| {
        let station = net.world.node(x).unwrap().as_station().unwrap();
        station.nic().output().totals().cells_out
    };
    assert!(
        !net.world
            .node(x)
            .unwrap()
            .as_station()
            .unwrap()
            .host()
            .signalling()
            .is_up()
    );
    let (cells, began) = (nic(&net), net.now);
    let (listener, address) = net.listener(x);
    let caller = net.open(x, 1);
    net.ask(
        x,
        2,
        connect(caller, &address, "ubr:tx:sdu=9180,rx:sdu=4000", silent()),
    );
    let (offer, from, qos) = offer_of(&net, x).expect("an offer at once");
    let own = net.builder.lab().node(x).attachment().unwrap().address;
    assert_eq!(from, format!("{:x}", own.with_selector(0xe0)));
    assert_eq!(qos, "ubr,aal5:tx:sdu=4000,rx:sdu=9180");
    assert!(net.answer(x, 2).is_none(), "the listener has not answered");
    let accept = accept(listener, offer, "ubr:tx:sdu=4000,rx:sdu=2000", silent());
    net.ask(x, 3, accept);
    let Some(Answer::Connected { label, qos, .. }) = net.answer(x, 2).cloned() else {
        panic!("{:?}", net.failure(x, 2));
    };
    assert_eq!(
        (&*label, &*qos),
        ("local", "ubr,aal5:tx:sdu=2000,rx:sdu=4000")
    );
    let Some(Answer::Opened { socket: callee }) = net.answer(x, 3).cloned() else {
        panic!("{:?}", net.failure(x, 3));
    };
    // The other end has a descriptor before the caller may write.
    let order = net.told.iter().filter_map(|(_, _, what)| match what {
        ToPrograms::Answer { number, .. } if [2, 3].contains(number) => Some(*number),
        _ => None,
    });
    let order = order.collect::<Vec<_>>();
    assert_eq!(order, [3, 2]);
    window(&mut net, x, caller, callee);
    assert_eq!((net.now, nic(&net)), (began, cells), "no time, no cell");
    // The reader takes nothing more, so PDUs wait in the writer's descriptor.
    while net.world.asks_to_write(x, caller) {
        net.write(x, caller, vec![0; 2000]);
    }
    // A PDU that the contract forbids ends the call, as everywhere.
    net.write(x, callee, vec![0; 4001]);
    for (number, socket) in [(20, caller), (21, callee)] {
        let status = net.status(x, number, socket);
        assert_eq!((&*status.state, status.cause), ("ended", 111), "{status:?}");
    }
    // What waited there is read, and counted.
    let before = net.status(x, 22, caller);
    assert!(net.world.asks_to_write(x, caller));
    net.write(x, caller, vec![0; 2000]);
    let after = net.status(x, 23, caller);
    let of = |status: &Status| (status.sent.0, status.unsent, status.refused);
    let (sent, unsent, refused) = of(&before);
    assert_eq!(of(&after), (sent + 1, unsent + 1, refused), "{after:?}");
}

/// The writer goes on while the other descriptor takes PDUs, in both directions at once.
fn window(net: &mut Net<'_>, x: NodeId, caller: SocketRef, callee: SocketRef) {
    for (from, to, most) in [(caller, callee, 2000), (callee, caller, 4000)] {
        let (mut written, mut taken) = (0, 0);
        for _ in 0..5 {
            while net.world.asks_to_write(x, from) {
                net.write(x, from, vec![written as u8; most]);
                written += 1;
            }
            assert!(written - taken >= 32, "{written} {taken}");
            let (pdus, octets) = (written - taken, (written - taken) * most);
            taken = written;
            net.told.clear();
            net.taken(x, to, pdus, octets);
            assert!(
                net.told
                    .iter()
                    .any(|(_, _, what)| *what == ToPrograms::Room { socket: from })
            );
        }
        let (sent, got) = (
            net.status(x, 10 + from.index() as u16, from),
            net.status(x, 10 + to.index() as u16, to),
        );
        let all = (written as u64, (written * most) as u64);
        assert_eq!((sent.sent, got.received, got.unread), (all, all, 0));
        assert_eq!(&*sent.label, "local");
        net.told.clear();
    }
}

/// The manager of a host as a process of its own, which the test can kill.
#[derive(Default)]
struct Manager(Option<Process<Sigd>>);

impl Manager {
    /// Passes messages both ways until there are no more.
    fn settle(&mut self, net: &mut Net<'_>, x: NodeId) {
        loop {
            net.drain();
            let frames = std::mem::take(&mut net.for_managers).into_iter();
            let frames: Vec<_> = frames.filter(|(node, _)| *node == x).collect();
            let Some(process) = self.0.as_mut().filter(|_| !frames.is_empty()) else {
                return;
            };
            for (_, frame) in frames {
                let frame = Numbered::<ToDaemon<ToSigd>>::decode(&frame).unwrap();
                let Ok(()) = process.handle_input(ProcessInput::Frame(frame), net.now);
                while let Some(ProcessOutput::Frame(frame)) = process.poll_output() {
                    let said = ProcessEvent::Said(DaemonMessage::Sigd(frame));
                    net.world.daemon(x, (Role::Sigd, said), net.now);
                }
            }
        }
    }
    fn comes(&mut self, net: &mut Net<'_>, x: NodeId) {
        self.0 = Some(Process::default());
        net.world
            .daemon(x, (Role::Sigd, ProcessEvent::Came), net.now);
        self.settle(net, x);
    }
    fn dies(&mut self, net: &mut Net<'_>, x: NodeId) {
        self.0 = None;
        net.world
            .daemon(x, (Role::Sigd, ProcessEvent::Gone), net.now);
        self.settle(net, x);
    }
}

/// End that is killed between two messages of a local call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Killed {
    Nobody,
    Caller,
    Callee,
    Manager,
    Service,
    Host,
}

/// The messages of a local call: listen, request to the manager, its word, accept, data, release.
const MESSAGES: usize = 7;

/// A call, and a kill before message `at`. Checks that the parts that live have been told, and that nothing is left.
fn killed(builder: &Builder<'_>, what: Killed, at: usize) -> (usize, Option<u8>) {
    let mut net = Net::new(builder);
    let x = net.node("x");
    let mut manager = Manager::default();
    manager.comes(&mut net, x);
    let mut sockets = Ends {
        listener: None,
        caller: None,
        callee: None,
    };
    for message in 0..MESSAGES {
        if message == at {
            kill(&mut net, &mut manager, x, what, sockets);
        }
        // A program that has died asks for nothing more.
        let (caller_lives, callee_lives) = match what {
            _ if message < at => (true, true),
            Killed::Caller => (false, true),
            Killed::Callee => (true, false),
            Killed::Nobody | Killed::Manager => (true, true),
            Killed::Service | Killed::Host => (false, false),
        };
        step(
            &mut net,
            &mut manager,
            x,
            message,
            (caller_lives, callee_lives),
            &mut sockets,
        );
    }
    let case = format!("{what:?} before message {at}");
    let failed = net.failure(x, 2).map(|(failure, _)| failure.cause);
    let status = |net: &mut Net<'_>, socket: Option<SocketRef>, number| {
        let request = Request::Status { socket: socket? };
        let answer = match number {
            90 => ask_as_caller(net, x, number, request)?,
            _ => net.done(x, number, request),
        };
        match answer {
            Answer::Status(status) => Some(*status),
            _ => None,
        }
    };
    let mut cause = failed;
    if !matches!(what, Killed::Service | Killed::Host) {
        for (number, socket) in [(90, sockets.caller), (91, sockets.callee)] {
            if let Some(status) = status(&mut net, socket, number) {
                assert!(
                    ["ended", "idle"].contains(&&*status.state),
                    "{case}: {status:?}"
                );
                cause = cause.or(Some(status.cause).filter(|cause| *cause > 0));
            }
        }
    }
    let signalling = net.world.node(x).and_then(|node| node.as_station());
    let calls = signalling.map_or(0, |station| station.host().signalling().calls().count());
    assert_eq!(calls, 0, "{case}: calls are left");
    let data = net.told.iter();
    let data = data.filter(|(_, _, what)| matches!(what, ToPrograms::Deliver { .. }));
    (data.count(), cause)
}

/// A request of the caller, which has a session of its own.
fn ask_as_caller(net: &mut Net<'_>, x: NodeId, number: u16, request: Request) -> Option<Answer> {
    let input = Input::Request {
        session: session(x) + 1,
        number,
        request,
        shown: None,
    };
    net.give(x, input);
    net.answer(x, number).cloned()
}

/// The sockets of a local call.
#[derive(Clone, Copy)]
struct Ends {
    listener: Option<(SocketRef, u32)>,
    caller: Option<SocketRef>,
    callee: Option<SocketRef>,
}

fn step(
    net: &mut Net<'_>,
    manager: &mut Manager,
    x: NodeId,
    message: usize,
    (caller_lives, callee_lives): (bool, bool),
    ends: &mut Ends,
) {
    match message {
        0 if callee_lives => {
            let (listener, _) = net.listener(x);
            ends.listener = Some((listener, 0));
        }
        1 if caller_lives => {
            let Some(Answer::Opened { socket }) = ask_as_caller(net, x, 1, Request::Open) else {
                panic!("no socket")
            };
            ends.caller = Some(socket);
            let called = net.builder.lab().node(x).attachment().unwrap().address;
            let called = format!("{:x}", called.with_selector(0xe0));
            // The manager does not hear of it before the next step.
            net.world.program(
                x,
                Input::Request {
                    session: session(x) + 1,
                    number: 2,
                    request: connect(socket, &called, "ubr:sdu=1000", silent()),
                    shown: None,
                },
                net.now,
            );
            return;
        }
        2 => manager.settle(net, x),
        3 if callee_lives => {
            if let (Some((socket, _)), Some((offer, ..))) = (ends.listener, offer_of(net, x)) {
                net.ask(x, 3, accept(socket, offer, "", silent()));
                if let Some(Answer::Opened { socket }) = net.answer(x, 3) {
                    ends.callee = Some(*socket);
                }
            }
        }
        4 | 5 => {
            let from = if message == 4 {
                ends.caller.filter(|_| caller_lives)
            } else {
                ends.callee.filter(|_| callee_lives)
            };
            if let Some(socket) = from.filter(|_| ends.callee.is_some()) {
                let sdu = vec![message as u8; 1000];
                net.write(x, socket, sdu);
            }
        }
        6 => {
            if let Some(socket) = ends.caller.filter(|_| caller_lives) {
                net.give(x, Input::Closed { socket });
            }
        }
        _ => {}
    }
    net.drain();
}

fn kill(net: &mut Net<'_>, manager: &mut Manager, x: NodeId, what: Killed, ends: Ends) {
    let now = net.now;
    match what {
        Killed::Nobody => {}
        Killed::Caller => {
            let session = session(x) + 1;
            net.give(x, Input::Gone { session });
            if let Some(socket) = ends.caller {
                net.give(x, Input::Closed { socket });
            }
        }
        Killed::Callee => {
            let session = session(x);
            net.give(x, Input::Gone { session });
            let listener = ends.listener.map(|(socket, _)| socket);
            for socket in listener.into_iter().chain(ends.callee) {
                net.give(x, Input::Closed { socket });
            }
        }
        Killed::Manager => manager.dies(net, x),
        Killed::Service => {
            let crash = HostCommand::Crash(ServiceKind::Sockets);
            net.world.command(x, crash, now);
        }
        Killed::Host => {
            net.fault(FaultKind::Crash(x, None));
        }
    }
    net.drain();
}

/// The kill matrix of local calls: each message × each part.
#[test]
fn whatever_dies_in_a_local_call_leaves_nothing_and_the_other_end_is_told() {
    let lab = lab();
    let builder = Builder::new(&lab, 1, Flavour::Embedded)
        .with_programs()
        .split(true);
    assert_eq!(killed(&builder, Killed::Nobody, 0), (2, Some(16)));
    println!(
        "message      Caller Callee Manager Service Host   (PDUs delivered, cause at the end)"
    );
    let messages = [
        "listen", "connect", "manager", "accept", "data", "answer", "release",
    ];
    for (at, name) in messages.iter().enumerate() {
        let all = [
            Killed::Caller,
            Killed::Callee,
            Killed::Manager,
            Killed::Service,
            Killed::Host,
        ];
        let found = all.map(|what| killed(&builder, what, at));
        let texts = found.map(|(pdus, cause)| {
            format!(
                "{pdus}/{:<5}",
                cause.map_or("-".into(), |cause| cause.to_string())
            )
        });
        println!("{name:<12} {}", texts.join(""));
        let [(_, caller), (_, callee), (_, manager), ..] = found;
        // The manager decides: without it no call is made, and those that there are end.
        assert_eq!(manager, Some(Cause::TEMPORARY.0), "before {name}");
        // Without its listener a call is refused; without its program a call ends as usual.
        let [from_caller, from_callee] = match at {
            0..=2 => [None, Some(88)],
            3 => [None, Some(18)],
            _ => [Some(16), Some(16)],
        };
        assert_eq!(
            (caller, callee),
            (from_caller, from_callee),
            "before {name}"
        );
    }
}

/// No program listens: the caller is told at once, and the network is not asked. A listener that refuses gives its
/// cause.
#[test]
fn a_local_call_is_refused_with_the_cause_of_its_listener() {
    let mut net = Net::of(lab());
    let x = net.node("x");
    let socket = net.open(x, 1);
    net.ask(x, 2, connect(socket, "x/ee", "ubr", silent()));
    let (failure, at) = net.failure(x, 2).expect("refused at once");
    assert_eq!((failure.errno, failure.cause, at), (111, 88, net.now));
    let (listener, address) = net.listener(x);
    let socket = net.open(x, 3);
    net.ask(
        x,
        4,
        connect(socket, &address, "cbr:max_pcr=1000", silent()),
    );
    let (offer, _, qos) = offer_of(&net, x).unwrap();
    assert!(qos.starts_with("cbr"), "{qos}");
    let (socket, cause) = (listener, 21);
    let refuse = refuse(socket, offer, cause, silent());
    assert_eq!(net.done(x, 5, refuse), Answer::Done);
    let (failure, _) = net.failure(x, 4).expect("refused");
    assert_eq!((failure.errno, failure.cause), (111, 21));
    // An offer without an answer, and a caller that gives up.
    let socket = net.open(x, 6);
    net.ask(x, 7, connect(socket, &address, "ubr", silent()));
    net.until(net.now + OFFER + Duration::from_millis(1));
    let (failure, _) = net.failure(x, 7).expect("nobody has answered");
    assert_eq!((failure.errno, failure.cause), (110, 18));
    let left = net.status(x, 8, listener);
    assert_eq!((left.offers, left.missed), (0, 1));
}

/// The other end dies while the writer has more than the connection takes: what it has written is sent, or sent and
/// then dropped here, whether the call leaves the host or not. A PDU that the contract forbids is neither.
#[test]
fn the_books_of_a_writer_balance_when_the_other_end_dies() {
    let lab = lab();
    let builder = Builder::new(&lab, 1, Flavour::Embedded).with_programs();
    for to in ["x", "y"] {
        let mut net = Net::new(&builder);
        let (x, to) = (net.node("x"), net.node(to));
        let (listener, address) = net.listener(to);
        let caller = net.open(x, 1);
        net.ask(x, 2, connect(caller, &address, "ubr:sdu=9180", silent()));
        net.until(net.now + Duration::from_millis(100));
        let (offer, ..) = offer_of(&net, to).unwrap();
        let accept = accept(listener, offer, "", silent());
        net.ask(to, 3, accept);
        net.until(net.now + Duration::from_millis(100));
        let Some(Answer::Opened { socket: callee }) = net.answer(to, 3).cloned() else {
            panic!("not accepted")
        };
        // As much as the connection takes at once.
        let mut written = 0_u64;
        while net.world.asks_to_write(x, caller) {
            net.write(x, caller, vec![0; 9180]);
            written += 1;
        }
        net.give(to, Input::Closed { socket: callee });
        net.until(net.now + Duration::from_secs(1));
        assert!(net.ended(x, caller).is_some());
        let before = net.status(x, 4, caller);
        // What waits in the descriptor of the writer meanwhile.
        for _ in 0..5 {
            net.write(x, caller, vec![0; 9180]);
            written += 1;
        }
        net.write(x, caller, vec![0; 9181]);
        let after = net.status(x, 5, caller);
        assert_eq!(after.sent, (written, written * 9180), "{after:?}");
        assert_eq!((after.unsent, after.refused), (before.unsent + 5, 1));
    }
}
