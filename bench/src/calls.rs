//! Calls from host to host over a chain of switches: full signalling, in cells, on OC-3 links of 5 µs.

use aerostat_node::atm::{CellRate, CellRun, Nic, NicEvent, OutputPort, Pdu};
use aerostat_node::signalling::{Config, Input, Output, Signalling, UserId};
use aerostat_node::switch::{PortConfig, PortKind, PortNo, StaticRoutes, Switch};
use aerostat_proto::interface;
use aerostat_proto::uni::{Side, Version};
use aerostat_proto::{AtmEvent, AtmRequest, Cause, ConnId, Duration, Instant, Machine};
use aerostat_sim::{LabNode, LinkConfig, LinkEnd, Node, NodeId, NodeOutput, Observer, World};
use aerostat_wire::{AtmAddress, MacAddr, Qos, Sap, Vc};
use std::collections::VecDeque;

const USER: UserId = UserId(1);
const RATE: CellRate = CellRate::OC3;
const DELAY: Duration = Duration::from_micros(5);

fn prefix(switch: usize) -> [u8; 13] {
    [
        0x47,
        0,
        5,
        0x80,
        0xff,
        0xe1,
        0,
        0,
        0,
        0xf2,
        0x1a,
        switch as u8,
        0,
    ]
}

/// A host that makes or takes calls, or a switch.
pub enum Party {
    /// A host.
    Host(Box<Host>),
    /// A switch.
    Switch(LabNode),
}

/// Signalling and adapter of a host; it accepts every call.
pub struct Host {
    signalling: Signalling,
    nic: Nic,
    address: AtmAddress,
    out: VecDeque<NodeOutput<Told, ()>>,
}

/// News for the user of a host.
#[derive(Clone, Copy, Debug)]
pub enum Told {
    /// Signalling is up.
    Up,
    /// A call can be used.
    Connected(ConnId),
    /// A call is gone.
    Released(ConnId),
}

impl Host {
    fn new(address: AtmAddress) -> Self {
        Self {
            signalling: Signalling::new(Config::new(Version::Uni31)),
            nic: Nic::new(RATE),
            address,
            out: VecDeque::new(),
        }
    }
    fn feed(&mut self, input: Input<'_>, now: Instant) {
        // A request that came too late: the event that tells so is under way.
        let _ = self.signalling.handle_input(input, now);
        self.drain(now);
    }
    /// Asks for something as the user of this host.
    pub fn ask(&mut self, request: AtmRequest, now: Instant) {
        self.feed(Input::request(USER, request), now);
    }
    fn drain(&mut self, now: Instant) {
        while let Some(output) = self.signalling.poll_output() {
            match output {
                Output::Send { vc, sdu } => {
                    self.nic.send(vc, Pdu::new(sdu), now);
                    self.out.push_back(NodeOutput::Touched(0));
                }
                Output::OpenVc { vc, tx, rx, .. } => {
                    self.nic.open(vc, tx, rx.max_sdu);
                }
                Output::ChangeVc { vc, tx } => {
                    self.nic.change(vc, tx, None, now);
                }
                Output::CloseVc { vc } => {
                    self.nic.close(vc);
                }
                Output::Event(_, AtmEvent::Incoming { conn, .. }, _) => {
                    self.ask(AtmRequest::Accept { conn, terms: None }, now);
                }
                Output::Event(_, event, _) => {
                    let told = match event {
                        AtmEvent::Up => Told::Up,
                        AtmEvent::Connected { conn, .. } => Told::Connected(conn),
                        AtmEvent::Released { conn, .. } => Told::Released(conn),
                        _ => continue,
                    };
                    self.out.push_back(NodeOutput::Event(told));
                }
                Output::Received { .. }
                | Output::Undelivered(_)
                | Output::Joined { .. }
                | Output::Manage(_)
                | Output::Trace(_)
                | Output::Daemon(_) => {}
            }
        }
    }
}

impl Node for Party {
    type Event = Told;
    type Management = ();
    type Report = ();
    fn report((): &mut (), _from: NodeId, (): ()) -> bool {
        false
    }
    fn managed(&mut self, _me: NodeId, (): &(), _now: Instant) {}
    fn start(&mut self, now: Instant) {
        match self {
            Self::Host(host) => {
                host.feed(Input::AddUser(USER), now);
                let address = host.address;
                let sap = Sap::LLC;
                host.ask(AtmRequest::listen(address, sap, 1536), now);
                host.feed(Input::Start, now);
            }
            Self::Switch(switch) => switch.start(now),
        }
    }
    fn forward(
        &mut self,
        port: u16,
        run: CellRun,
        now: Instant,
        touched: &mut Vec<u16>,
    ) -> Option<CellRun> {
        match self {
            Self::Host(_) => Some(run),
            Self::Switch(switch) => switch.forward(port, run, now, touched),
        }
    }
    fn cells(&mut self, port: u16, run: CellRun, now: Instant) {
        match self {
            Self::Host(host) => {
                if let NicEvent::Sdu {
                    vc: Vc::SIGNALLING,
                    sdu,
                } = host.nic.receive(run, now)
                {
                    host.feed(Input::Signalling(sdu.pdu.sdu()), now);
                }
            }
            Self::Switch(switch) => switch.cells(port, run, now),
        }
    }
    fn link(&mut self, port: u16, up: bool, now: Instant) {
        if let Self::Switch(switch) = self {
            switch.link(port, up, now);
        }
    }
    fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::Host(host) => {
                host.signalling.handle_timeout(now);
                host.drain(now);
            }
            Self::Switch(switch) => switch.handle_timeout(now),
        }
    }
    fn poll_output(&mut self) -> Option<NodeOutput<Told, ()>> {
        match self {
            Self::Host(host) => host.out.pop_front(),
            Self::Switch(switch) => loop {
                return Some(match switch.poll_output()? {
                    NodeOutput::Touched(port) => NodeOutput::Touched(port),
                    // All links are up for good.
                    NodeOutput::Report(_) => continue,
                    NodeOutput::Trace(_) | NodeOutput::Event(_) => continue,
                });
            },
        }
    }
    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Host(host) => host.signalling.poll_timeout(),
            Self::Switch(switch) => switch.poll_timeout(),
        }
    }
    fn output_port(&mut self, port: u16) -> Option<&mut OutputPort> {
        match self {
            Self::Host(host) => Some(host.nic.output_mut()),
            Self::Switch(switch) => switch.output_port(port),
        }
    }
}

#[derive(Default)]
struct Watch {
    up: usize,
    connected: Option<(ConnId, Instant)>,
    released: bool,
}

impl Observer<Told> for Watch {
    fn event(&mut self, node: NodeId, event: Told, now: Instant) {
        match event {
            Told::Up => self.up += 1,
            Told::Connected(conn) if node == CALLER => self.connected = Some((conn, now)),
            Told::Released(_) if node == CALLED => self.released = true,
            Told::Connected(_) | Told::Released(_) => {}
        }
    }
}

const CALLER: NodeId = NodeId(0);
const CALLED: NodeId = NodeId(1);

/// Two hosts at the ends of a chain of switches, signalling up.
pub struct Chain {
    world: World<Party>,
    watch: Watch,
    addresses: [AtmAddress; 2],
    next: u32,
}

impl Chain {
    /// A chain of `switches` (at least one).
    ///
    /// # Panics
    /// If signalling does not come up within five seconds of virtual time.
    #[must_use]
    pub fn new(switches: usize) -> Self {
        let mut world = World::new(1);
        let last = switches - 1;
        let esi = |n| MacAddr([0, 0x20, 0xea, 0, 0, n]);
        let addresses = [(0, 1), (last, 2)]
            .map(|(switch, n)| AtmAddress::from_parts(prefix(switch), esi(n), 0));
        world.add_host("caller");
        world.add_host("called");
        for k in 0..switches {
            world.add_switch(&format!("sw{k}"), 4);
        }
        let switch = |k: usize| NodeId(2 + k);
        let mut plug = |name: &str, a: (NodeId, u16), b: (NodeId, u16)| {
            let ends = [a, b].map(|(node, port)| LinkEnd { node, port });
            world.connect(name, ends, LinkConfig::new(DELAY));
        };
        plug("caller", (CALLER, 0), (switch(0), 2));
        plug("called", (CALLED, 0), (switch(last), 3));
        for k in 0..last {
            plug(&format!("trunk{k}"), (switch(k), 1), (switch(k + 1), 0));
        }
        let mut machines: Vec<(NodeId, Party)> = (addresses.iter().enumerate())
            .map(|(n, address)| (NodeId(n), Party::Host(Box::new(Host::new(*address)))))
            .collect();
        for k in 0..switches {
            let machine = LabNode::switch(build(k, switches, addresses));
            machines.push((switch(k), Party::Switch(machine)));
        }
        let mut watch = Watch::default();
        world.power_on_all(machines, &mut watch);
        world.run_until(Instant::from_secs(5), &mut watch);
        assert_eq!(watch.up, 2, "signalling is up");
        Self {
            world,
            watch,
            addresses,
            next: 0,
        }
    }

    /// One call: set up and released, without data. The time from request to `Connected` at the caller.
    ///
    /// # Panics
    /// If the call fails.
    pub fn call(&mut self) -> Duration {
        self.next += 1;
        let conn = ConnId(self.next);
        let [calling, called] = self.addresses;
        let (sap, qos) = (Sap::LLC, Qos::ubr(1536));
        self.watch.connected = None;
        self.watch.released = false;
        let asked = self.world.now();
        let request = AtmRequest::Connect {
            conn,
            calling,
            called,
            sap,
            qos,
            multipoint: false,
        };
        self.ask(request);
        while self.watch.connected.is_none() {
            self.step();
        }
        let at = self.watch.connected.map_or(asked, |(_, at)| at);
        let cause = Cause::NORMAL;
        self.ask(AtmRequest::Release { conn, cause });
        while !self.watch.released {
            self.step();
        }
        at - asked
    }
    /// Lets virtual time pass.
    pub fn rest(&mut self, time: Duration) {
        let until = self.world.now() + time;
        self.world.run_until(until, &mut self.watch);
    }
    fn ask(&mut self, request: AtmRequest) {
        self.world.with_node(CALLER, &mut self.watch, |party, now| {
            if let Party::Host(host) = party {
                host.ask(request, now);
            }
        });
    }
    fn step(&mut self) {
        let next = self.world.next_at().expect("timers of the link never end");
        assert!(
            next < self.world.now() + Duration::from_secs(60),
            "the call hangs"
        );
        self.world.run_until(next, &mut self.watch);
    }
}

/// Ports: 0 to the switch before, 1 to the next one, 2 the caller, 3 the called host.
fn build(k: usize, switches: usize, addresses: [AtmAddress; 2]) -> Switch {
    let mut switch = Switch::new([k as u8; 16], StaticRoutes::new());
    let params = |side| interface::Params::new(side, Version::Uni31);
    let ports = [
        ("before", PortKind::Trunk, Side::User),
        ("after", PortKind::Trunk, Side::Network),
        ("caller", PortKind::Host, Side::Network),
        ("called", PortKind::Host, Side::Network),
    ]
    .map(|(name, kind, side)| switch.add_port(PortConfig::new(name, kind, params(side), RATE)));
    for other in 0..switches {
        if other != k {
            let way: PortNo = ports[usize::from(other > k)];
            switch.routes_mut().add_prefix(&prefix(other), way);
        }
    }
    if k == 0 {
        switch.register(ports[2], addresses[0]);
    }
    if k + 1 == switches {
        switch.register(ports[3], addresses[1]);
    }
    switch
}
