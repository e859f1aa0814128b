//! The manager of each host as a process of its own, in virtual time: its death between any two events of a call.

use super::*;
use aerostat_node::host::DaemonMessage;
use aerostat_proto::Machine as _;
use aerostat_proto::sigd::ToSigd;
use aerostat_proto::split::codec::Message as _;
use aerostat_proto::split::{Numbered, ProcessEvent, ProcessInput, ProcessOutput, ToDaemon};

impl<'a> Net<'a> {
    /// A network of hosts whose daemons are processes; the managers of x and y run.
    fn with_managers(builder: &'a Builder<'a>) -> Self {
        let mut net = Self::new(builder);
        for node in [net.node("x"), net.node("y")] {
            net.manager_comes(node);
        }
        net.until(net.now + Duration::from_secs(10));
        net
    }
    fn manager_comes(&mut self, node: NodeId) {
        self.managers.insert(node, Process::default());
        let came = (Role::Sigd, ProcessEvent::Came);
        self.world.daemon(node, came, self.now);
        self.drain();
    }
    fn manager_dies(&mut self, node: NodeId) {
        self.managers.remove(&node);
        let gone = (Role::Sigd, ProcessEvent::Gone);
        self.world.daemon(node, gone, self.now);
        self.drain();
    }
    /// A frame of a host for its manager.
    pub(super) fn tell_manager(&mut self, node: NodeId, frame: Vec<u8>) {
        let Some(process) = self.managers.get_mut(&node) else {
            self.for_managers.push((node, frame));
            return;
        };
        let frame = Numbered::<ToDaemon<ToSigd>>::decode(&frame).unwrap();
        let Ok(()) = process.handle_input(ProcessInput::Frame(frame), self.now);
        self.hear_manager(node);
    }
    fn hear_manager(&mut self, node: NodeId) {
        while let Some(process) = self.managers.get_mut(&node)
            && let Some(ProcessOutput::Frame(frame)) = process.poll_output()
        {
            let said = ProcessEvent::Said(DaemonMessage::Sigd(frame));
            self.world.daemon(node, (Role::Sigd, said), self.now);
        }
    }
    pub(super) fn manager_timeout(&self) -> Option<Instant> {
        let all = self.managers.values();
        all.filter_map(|process| process.poll_timeout()).min()
    }
    /// Gives the managers the time.
    pub(super) fn managers_act(&mut self) {
        for node in self.managers.keys().copied().collect::<Vec<_>>() {
            if let Some(process) = self.managers.get_mut(&node) {
                process.handle_timeout(self.now);
            }
            self.hear_manager(node);
        }
    }
}

/// Outcome of a call: its events, and the causes at the caller and at the callee.
type Outcome = (usize, [Option<u8>; 2]);

/// A call with user data, three PDUs and a release; after event `at` the manager of a host dies.
fn call(builder: &Builder<'_>, dies: Option<&str>, at: usize) -> Outcome {
    let mut net = Net::with_managers(builder);
    let (x, y) = (net.node("x"), net.node("y"));
    let dies = dies.map(|name| net.node(name));
    let (listener, address) = net.listener(y);
    let caller = net.open(x, 1001);
    let connect = connect(
        caller,
        &address,
        "ubr:sdu=1000",
        UserData::new(b"hello".to_vec()).unwrap(),
    );
    net.ask(x, 1, connect);
    let (mut accepted, mut written, mut events) = (false, 0, 0);
    let mut died = None;
    let end = net.now + Duration::from_secs(1);
    loop {
        if events == at
            && let Some(node) = dies
        {
            net.manager_dies(node);
            died = Some(net.now);
        }
        if let Some(offer) = net.offer(y).filter(|_| !accepted) {
            accepted = true;
            let accept = accept(
                listener,
                offer,
                "",
                UserData::new(b"welcome".to_vec()).unwrap(),
            );
            net.ask(y, 2, accept);
        }
        let open = matches!(net.answer(x, 1), Some(Answer::Connected { .. }));
        if open && written < 3 && net.world.asks_to_write(x, caller) {
            written += 1;
            net.write(x, caller, vec![written; 1000]);
        } else if open && written == 3 {
            written = 4;
            let release = release(caller, 16, UserData::new(b"bye".to_vec()).unwrap());
            net.ask(x, 3, release);
        }
        if !net.event(end) {
            break;
        }
        events += 1;
    }
    let callee = match net.answer(y, 2) {
        Some(Answer::Opened { socket }) => Some(*socket),
        _ => None,
    };
    // The side whose manager has died is told at once; the other one when its link or a timer tells the network.
    let case = format!("{dies:?} after event {at}");
    if let (Some(died), Some(node)) = (died, dies) {
        let told = match (node == x, callee) {
            (true, _) => net.failure(x, 1).map(|(_, at)| at).or(net.ended(x, caller)),
            (false, Some(socket)) => net.ended(y, socket),
            (false, None) => Some(died),
        };
        let soon = died + Duration::from_secs(1);
        assert!(told.is_some_and(|at| at <= soon), "{case}: {told:?}");
    }
    net.until(net.now + Duration::from_secs(120));
    for node in [x, y] {
        let mut left = net.states(node);
        left.retain(|state| !matches!(state, State::Ended | State::Listening));
        assert_eq!(left, [], "{case}: sockets of {node:?}");
    }
    let cause = |net: &mut Net<'_>, node, number, socket: Option<SocketRef>| {
        let socket = socket?;
        match net.done(node, number, Request::Status { socket }) {
            Answer::Status(status) => Some(status.cause),
            _ => None,
        }
    };
    let causes = [
        cause(&mut net, x, 90, Some(caller)),
        cause(&mut net, y, 91, callee),
    ];
    (events, causes)
}

/// The kill matrix of managers: each event of a call × the manager of either host.
#[test]
fn whichever_manager_dies_in_a_call_its_host_is_told_at_once_and_nothing_is_left() {
    let text = LAB
        .replace("x: { on", "x: { uni: 4.0, on")
        .replace("y: { on", "y: { uni: 4.0, on");
    let lab = aerostat_lab::parse("p.atm.yml", &text, &[]).unwrap().lab;
    let builder = Builder::new(&lab, 1, Flavour::Embedded).with_programs();
    let builder = builder.split(true);
    let (events, causes) = call(&builder, None, 0);
    assert_eq!(causes, [Some(16), Some(16)]);
    assert!((20..400).contains(&events), "{events}");
    for dies in ["x", "y"] {
        let mut seen = BTreeMap::<[Option<u8>; 2], usize>::new();
        for at in 0..events {
            let (_, causes) = call(&builder, Some(dies), at);
            *seen.entry(causes).or_default() += 1;
        }
        println!(
            "manager of {dies} killed after each of {events} events: causes at caller and callee: {seen:?}"
        );
    }
}
