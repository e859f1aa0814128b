//! Programs of the machine at the socket service, with the network in virtual time: every event of a call × every
//! death.

mod answers;
mod by_ip;
mod cells;
mod deaths;
mod interface;
mod local;
mod managers;
mod of_the_lab;
mod requests;
mod trains;
mod user_data;

use aerostat_lab::Lab;
use aerostat_lab::build::{Builder, Flavour};
use aerostat_lab::model::{FaultKind, NodeId};
use aerostat_live::world::{Output, World};
use aerostat_node::atm::Sdus;
use aerostat_node::host::sockets::{ENDED, Input, OFFER, SOCKETS, SocketLayer, State, ToPrograms};
use aerostat_node::host::{HostCommand, HostEvent, ServiceKind};
use aerostat_node::signalling::Sigd;
use aerostat_proto::socket::{Answer, Failure, Request, SocketRef, Status, UserData};
use aerostat_proto::split::{Process, Role};
use aerostat_proto::{Duration, Instant};
use aerostat_wire::aal0::UserCell;
use aerostat_wire::cell::Pti;
use aerostat_wire::{ConnectionQos, Qos, Vc};
use deaths::{DEATHS, Death, die};
use requests::{
    accept, add_party, bind, connect, first_leaf, listen, refuse, release, silent, within,
};
use std::collections::BTreeMap;

const LAB: &str = "
switches: { s: {}, t: {} }
links: [ [s, t, { rate: oc3 }] ]
lane: { on: s, elans: { a: { subnet: 10.1.0.0/24 } } }
hosts:
  x: { on: s, elan: a, ip: 10.1.0.10 }
  y: { on: t, elan: a, ip: 10.1.0.20, sockets: [{ listen: sink, sap: ttcp }] }
pvcs:
  - { from: x, vc: 0.100, to: y, to_vc: 0.101 }
";

fn lab() -> Lab {
    aerostat_lab::parse("p.atm.yml", LAB, &[]).unwrap().lab
}

struct Net<'a> {
    world: World,
    builder: &'a Builder<'a>,
    now: Instant,
    /// Events that programs were told, and when.
    told: Vec<(Instant, NodeId, ToPrograms)>,
    /// Managers as processes of their own, with their host.
    managers: BTreeMap<NodeId, Process<Sigd>>,
    /// Messages of a host for a manager that is not there.
    for_managers: Vec<(NodeId, Vec<u8>)>,
}

/// The session of each program has the number of its node.
fn session(node: NodeId) -> u32 {
    node.0 as u32
}

impl Net<'static> {
    /// The network of a lab that lives as long as the test program.
    fn of(lab: Lab) -> Self {
        let lab = Box::leak(Box::new(lab));
        let builder = Builder::new(lab, 1, Flavour::Embedded).with_programs();
        Self::new(Box::leak(Box::new(builder)))
    }
}

impl<'a> Net<'a> {
    fn new(builder: &'a Builder<'a>) -> Self {
        let mut net = Self {
            world: World::new(builder, Instant::ZERO),
            builder,
            now: Instant::ZERO,
            told: Vec::new(),
            managers: BTreeMap::new(),
            for_managers: Vec::new(),
        };
        net.world.start(builder, Instant::ZERO);
        net.until(Instant::from_secs(2));
        net
    }
    fn node(&self, name: &str) -> NodeId {
        self.builder.lab().find(name).unwrap()
    }
    fn drain(&mut self) {
        while let Some(output) = self.world.poll_output() {
            match output {
                Output::Host(node, HostEvent::Program(what)) => {
                    self.told.push((self.now, node, what));
                }
                Output::Host(node, HostEvent::Daemon(Role::Sigd, frame)) => {
                    self.tell_manager(node, frame);
                }
                _ => {}
            }
        }
    }
    /// The next event of the network, if there is one before `end`.
    fn event(&mut self, end: Instant) -> bool {
        self.drain();
        let world = self.world.poll_timeout();
        let next = world.into_iter().chain(self.manager_timeout()).min();
        let Some(next) = next.filter(|at| *at <= end) else {
            self.now = end;
            return false;
        };
        self.now = self.now.max(next);
        self.managers_act();
        if world.is_some_and(|at| at <= self.now) {
            self.world.step(self.now, 1);
        }
        self.drain();
        true
    }
    fn until(&mut self, end: Instant) {
        while self.event(end) {}
    }
    fn fault(&mut self, what: FaultKind) {
        self.world.fault(self.builder, what, self.now);
    }
    fn give(&mut self, node: NodeId, input: Input<'_>) {
        self.world.program(node, input, self.now);
        self.drain();
    }
    fn ask(&mut self, node: NodeId, number: u16, request: Request) {
        let input = Input::Request {
            session: session(node),
            number,
            request,
            shown: None,
        };
        self.give(node, input);
    }
    /// The answer to a request, if it has come.
    fn answer(&self, node: NodeId, asked: u16) -> Option<&Answer> {
        self.told.iter().find_map(|(_, at, what)| match what {
            ToPrograms::Answer { number, answer, .. } if *at == node && *number == asked => {
                Some(answer)
            }
            _ => None,
        })
    }
    /// Asks, and has the answer at once.
    fn done(&mut self, node: NodeId, number: u16, request: Request) -> Answer {
        self.ask(node, number, request);
        self.answer(node, number)
            .cloned()
            .expect("an answer at once")
    }
    fn open(&mut self, node: NodeId, number: u16) -> SocketRef {
        match self.done(node, number, Request::Open) {
            Answer::Opened { socket } => socket,
            other => panic!("{other:?}"),
        }
    }
    fn status(&mut self, node: NodeId, number: u16, socket: SocketRef) -> Status {
        match self.done(node, number, Request::Status { socket }) {
            Answer::Status(status) => *status,
            other => panic!("{other:?}"),
        }
    }
    /// Opens a permanent connection, with its contract, by requests with this number and the next one.
    fn permanent(
        &mut self,
        node: NodeId,
        number: u16,
        label: &str,
        qos: &str,
    ) -> (SocketRef, String) {
        let socket = self.open(node, number);
        let (label, qos) = (label.to_owned(), qos.to_owned());
        let open = Request::OpenPermanent { socket, label, qos };
        match self.done(node, number + 1, open) {
            Answer::Connected { qos, .. } => (socket, qos),
            other => panic!("{other:?}"),
        }
    }
    fn write(&mut self, node: NodeId, socket: SocketRef, sdus: impl Into<Sdus>) {
        let sdus = sdus.into();
        self.give(node, Input::Write { socket, sdus });
    }
    /// The program has read so many PDUs, of so many octets.
    fn taken(&mut self, node: NodeId, socket: SocketRef, pdus: usize, octets: usize) {
        let taken = Input::Taken {
            socket,
            pdus,
            octets,
        };
        self.give(node, taken);
    }
    fn listener(&mut self, node: NodeId) -> (SocketRef, String) {
        let socket = self.open(node, 100);
        let Answer::Bound { address } = self.done(node, 101, bind(socket, "", "")) else {
            panic!("no address")
        };
        assert_eq!(self.done(node, 102, listen(socket, 2)), Answer::Done);
        (socket, address)
    }
    fn connect(&mut self, node: NodeId, number: u16, called: &str, qos: &str) -> SocketRef {
        let socket = self.open(node, number + 1000);
        self.ask(
            node,
            number,
            within(20_000, connect(socket, called, qos, silent())),
        );
        socket
    }
    /// Offers to a node that it has not been told before number `from`.
    fn offer(&self, node: NodeId) -> Option<u32> {
        self.told.iter().find_map(|(_, at, what)| match what {
            ToPrograms::Offer { offer, .. } if *at == node => Some(offer.offer),
            _ => None,
        })
    }
    fn layer(&self, node: NodeId) -> Option<&SocketLayer> {
        let station = self.world.node(node)?.as_station()?;
        station.host().sockets()
    }
    fn states(&self, node: NodeId) -> Vec<State> {
        let all = self.layer(node).into_iter().flat_map(SocketLayer::sockets);
        all.map(|(_, socket)| socket.state()).collect()
    }
    /// Until the program is told that it may write again.
    fn until_room(&mut self, node: NodeId, socket: SocketRef) {
        let told = self.told.len();
        let room = ToPrograms::Room { socket };
        let is = |(_, at, what): &(Instant, NodeId, ToPrograms)| *at == node && *what == room;
        while !self.told[told..].iter().any(is) {
            assert!(self.event(self.now + Duration::from_secs(1)), "no room");
        }
    }
    fn ended(&self, node: NodeId, of: SocketRef) -> Option<Instant> {
        self.told.iter().find_map(|(at, from, what)| {
            let is = *from == node && *what == ToPrograms::End { socket: of };
            is.then_some(*at)
        })
    }
    fn failure(&self, node: NodeId, number: u16) -> Option<(&Failure, Instant)> {
        self.told.iter().find_map(|(at, from, what)| match what {
            ToPrograms::Answer {
                number: n,
                answer: Answer::Failed(failure),
                ..
            } if *from == node && *n == number => Some((failure, *at)),
            _ => None,
        })
    }
}

#[test]
fn an_offer_that_nobody_answers_is_refused_and_a_listener_has_its_backlog() {
    let mut net = Net::of(lab());
    let (x, y) = (net.node("x"), net.node("y"));
    let (listener, address) = net.listener(y);
    for number in 1..=3 {
        net.connect(x, number, &address, "ubr");
    }
    net.until(net.now + Duration::from_millis(500));
    // The backlog is 2: the third caller is told at once.
    let (busy, _) = net.failure(x, 3).expect("the third call fails");
    assert_eq!((busy.errno, busy.cause), (111, 17));
    assert!(net.answer(x, 1).is_none() && net.answer(x, 2).is_none());
    net.until(net.now + OFFER);
    let (unanswered, _) = net.failure(x, 1).expect("the first call fails");
    assert_eq!((unanswered.errno, unanswered.cause), (110, 18));
    let status = net.status(y, 9, listener);
    assert_eq!((status.missed, status.offers), (3, 0));
    let late = net.done(y, 10, accept(listener, 1, "", silent()));
    assert!(matches!(late, Answer::Failed(f) if f.errno == 9 && f.field == "offer"));
}

/// The adapter has room for some PDUs; the rest waits in the program, and nothing is lost.
#[test]
fn a_slow_contract_holds_the_program_and_a_permanent_connection_carries_on_without_calls() {
    let mut net = Net::of(lab());
    let (x, y) = (net.node("x"), net.node("y"));
    let mut ends = Vec::new();
    for (node, label) in [(x, "0.100"), (y, "0.101")] {
        let (socket, _) = net.permanent(node, 1, label, "ubr:sdu=9180");
        ends.push(socket);
    }
    let mut written = 0;
    let mut held = 0;
    while written < 500 {
        if net.world.asks_to_write(x, ends[0]) {
            written += 1;
            net.write(x, ends[0], vec![7; 9180]);
            continue;
        }
        held += 1;
        net.until_room(x, ends[0]);
    }
    assert!(held > 10, "the adapter never was full");
    net.give(x, Input::Closed { socket: ends[0] });
    net.until(net.now + Duration::from_secs(2));
    let status = net.status(y, 9, ends[1]);
    assert_eq!(status.received, (500, 500 * 9180));
    let status = net.status(x, 9, ends[0]);
    assert_eq!((status.sent.0, status.refused, status.unsent), (500, 0, 0));
}

#[test]
fn requests_that_cannot_be_served_are_refused_with_their_field() {
    let mut net = Net::of(lab());
    let (x, y) = (net.node("x"), net.node("y"));
    let socket = net.open(x, 1);
    let taken = format!("{}e0", "0".repeat(38));
    let bind = |address: &str, sap: &str| bind(socket, address, sap);
    let call = |called: &str, qos: &str| connect(socket, called, qos, silent());
    let listen = listen(socket, 129);
    let stranger = SocketRef::of(5, 1);
    let cases = [
        (bind(&taken, ""), 99, "address"),
        (bind("xyz", ""), 22, "address"),
        (bind("", "bhli"), 22, "sap"),
        (call("nobody", "ubr"), 22, "called"),
        (call("y/e", "ubr"), 22, "called"),
        (call("y", "ubr:pcr=fast"), 22, "qos"),
        (listen, 22, "backlog"),
        (Request::Status { socket: stranger }, 9, "socket"),
        (release(socket, 16, silent()), 107, "socket"),
        (release(socket, 0, silent()), 22, "cause"),
        (Request::Hello { version: 9 }, 95, "version"),
        (Request::Adopt, 9, ""),
    ];
    for (number, (request, errno, field)) in (10..).zip(cases) {
        match net.done(x, number, request.clone()) {
            Answer::Failed(failure) => {
                assert_eq!(
                    (failure.errno, &*failure.field),
                    (errno, field),
                    "{request:?}"
                );
                assert!(!failure.text.is_empty());
            }
            other => panic!("{request:?}: {other:?}"),
        }
    }
    // A reference of a session is of no use to another session, here that of `y` at host x.
    let input = Input::Request {
        session: session(y) + 100,
        number: 99,
        request: Request::Status { socket },
        shown: None,
    };
    net.give(x, input);
    assert!(matches!(net.answer(x, 99), Some(Answer::Failed(f)) if f.errno == 9));
    assert_eq!(net.layer(x).unwrap().counters().strangers, 2);
    // The program of the lab file listens for this already.
    let address = net.builder.lab().node(y).attachment().unwrap().address;
    let address = format!("{:x}", address.with_selector(0xe0));
    let socket = net.open(y, 1);
    let sap = "bhli:iso=010000".to_owned();
    let ttcp = aerostat_wire::Sap {
        bhli: Some(aerostat_wire::Bhli::TTCP),
        ..Default::default()
    };
    let of_lab = requests::bind(socket, &address, &ttcp.to_string());
    let answer = net.done(y, 2, of_lab);
    assert!(
        matches!(&answer, Answer::Failed(f) if f.errno == 98),
        "{answer:?} {sap}"
    );
}

/// The bound is that of the table of sockets; the error has its number, and the calls that are open go on.
#[test]
fn one_socket_more_than_a_host_may_have_is_refused_with_the_number() {
    let mut net = Net::of(lab());
    let (x, y) = (net.node("x"), net.node("y"));
    let most = SOCKETS;
    for number in 0..most as u16 {
        net.connect(x, number, "y/ee", "ubr");
    }
    let Answer::Failed(failure) = net.done(x, 9500, Request::Open) else {
        panic!("one socket too many")
    };
    assert_eq!(failure.errno, 12);
    let told = format!("the host has {most} sockets");
    assert!(failure.text.contains(&told), "{}", failure.text);
    // No program listens there: all of them fail with a cause, and none is left.
    net.until(net.now + Duration::from_secs(30));
    let told = net.told.iter().filter(|(_, at, what)| {
        let failed =
            matches!(what, ToPrograms::Answer { answer: Answer::Failed(f), .. } if f.cause > 0);
        *at == x && failed
    });
    assert_eq!(told.count(), most);
    assert!(net.states(x).iter().all(|state| *state == State::Ended));
    assert_eq!(net.states(y), []);
}

/// A program whose calls fail does not cost another one the cause of its call.
#[test]
fn ends_are_forgotten_of_the_session_that_has_most_of_them() {
    let mut net = Net::of(lab());
    let x = net.node("x");
    let quiet = net.connect(x, 1, "y/ee", "ubr");
    net.until(net.now + Duration::from_secs(5));
    let noisy = session(x) + 100;
    for number in 0..(ENDED + 50) as u16 {
        let opened = Input::Request {
            session: noisy,
            number,
            request: Request::Open,
            shown: None,
        };
        net.give(x, opened);
        let Some(Answer::Opened { socket }) = net.answer(x, number).cloned() else {
            panic!("{number}")
        };
        let request = connect(socket, "y/ee", "ubr", silent());
        net.give(
            x,
            Input::Request {
                session: noisy,
                number,
                request,
                shown: None,
            },
        );
        net.told.clear();
    }
    net.until(net.now + Duration::from_secs(30));
    assert_eq!(net.states(x).len(), ENDED);
    let Answer::Status(status) = net.done(x, 9500, Request::Status { socket: quiet }) else {
        panic!("forgotten: {:?}", net.failure(x, 9500))
    };
    assert!(status.state == "ended" && status.cause > 0, "{status:?}");
}

/// The interface of a host is what its adapter and its ILMI know; counts that a program sets to 0 begin anew for all.
#[test]
fn a_program_sees_the_interface_of_its_host() {
    let text = LAB.replace(
        "  y: {",
        "  z: { on: s, elan: a, ip: 10.1.0.30, ilmi: true }\n  y: {",
    );
    let lab = aerostat_lab::parse("p.atm.yml", &text, &[]).unwrap().lab;
    let builder = Builder::new(&lab, 1, Flavour::Embedded).with_programs();
    let mut net = Net::new(&builder);
    let mut number = 0;
    let mut seen = |net: &mut Net<'_>, node: NodeId, zero_pdus, zero_cells| {
        number += 1;
        let request = Request::Interface {
            zero_pdus,
            zero_cells,
        };
        match net.done(node, number, request) {
            Answer::Interface(interface) => interface,
            other => panic!("{other:?}"),
        }
    };
    let (x, z) = (net.node("x"), net.node("z"));
    let own = |net: &Net<'_>, node: NodeId| {
        let lab = net.builder.lab();
        let at = lab.node(node).attachment().unwrap().address;
        (at.esi().0, format!("{:x}", at.with_selector(0)))
    };
    for (node, services) in [(x, 0), (z, 1)] {
        let (esi, address) = own(&net, node);
        let interface = seen(&mut net, node, false, false);
        assert_eq!(interface.esi, esi);
        assert_eq!(interface.addresses.first(), Some(&address));
        assert_eq!((interface.lecs.len(), interface.more), (services, 0));
        assert_eq!((interface.rate, interface.label_bits), (353_207, (8, 16)));
        assert!(interface.up);
        let nic = net.world.node(node).unwrap().as_station().unwrap().nic();
        let sent = nic.output().totals();
        assert_eq!(interface.aal5.sent, sent.pdus_out);
        assert_eq!(interface.cells_sent, sent.cells_out);
        assert!(interface.aal5.received > 0 && interface.cells_received > 0);
    }
    // Each count is set to 0 on its own. The answer has what was counted before.
    let before = seen(&mut net, x, true, false);
    assert!(before.aal5.sent > 0);
    let after = seen(&mut net, x, false, true);
    assert_eq!((after.aal5.sent, after.aal5.received), (0, 0));
    assert_eq!(after.cells_sent, before.cells_sent);
    let after = seen(&mut net, x, false, false);
    assert_eq!((after.cells_sent, after.cells_received), (0, 0));
    // Seven cells of a program, each an SDU.
    let (socket, _) = net.permanent(x, 500, "0.100", "aal0,ubr");
    let (pti, clp, payload) = (Pti::new(0), false, [0; 48]);
    for _ in 0..7 {
        let sdu = UserCell { pti, clp, payload }
            .encode(Vc::new(0, 0))
            .to_vec();
        net.write(x, socket, sdu);
    }
    net.until(net.now + Duration::from_millis(10));
    let interface = seen(&mut net, x, false, false);
    assert_eq!((interface.aal0.sent, interface.aal0.received), (7, 0));
    assert!(interface.cells_sent >= 7);
}
