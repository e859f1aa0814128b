//! The nodes of a lab: end systems, switches, and the far ends of links out of the lab.

use super::node::{Node, NodeOutput};
use crate::build::Builder;
use crate::model::{Host, NodeId, NodeKind, Router};
use crate::routing::Routing;
use aerostat_node::atm::{
    Alone, CellRate, CellRun, DataUnit, DroppedPdu, OutputPort, Pdu, PortVc, Through,
};
use aerostat_node::host::sockets::SocketLayer;
use aerostat_node::host::{DaemonMessage, HostCommand, HostEvent, HostInput, Station};
use aerostat_node::inspect::{StateKind, Table};
use aerostat_node::ip::books::SocketEvent;
use aerostat_node::offload::SuperFrame;
use aerostat_node::switch::{self, PortNo, Switch};
use aerostat_proto::split::{ProcessEvent, Role};
use aerostat_proto::{Instant, Machine, Refused};
use aerostat_wire::Vc;
use std::collections::VecDeque;

/// A report of a switch: whether it can send calls out at a port.
#[derive(Clone, Copy, Debug)]
pub struct Usable {
    port: PortNo,
    trunk: bool,
    usable: bool,
}

/// Events of a lab's nodes for the driver.
#[derive(Debug)]
pub enum LabEvent {
    /// Of an end system; that for a daemon may be of a switch.
    Host(HostEvent),
    /// Cells for the far end of a link out of the lab.
    Outside(CellRun),
}

/// An end system.
pub struct StationNode {
    station: Station,
    /// True if the adapter may have new departures.
    touched: bool,
}

/// The far end of a link out of the lab.
#[derive(Default)]
pub struct OutsideNode {
    connected: bool,
    events: VecDeque<LabEvent>,
}

/// A node of a lab.
pub enum LabNode {
    /// A host, a router or the LANE server.
    Station(Box<StationNode>),
    /// A switch.
    Switch(Box<Switch>),
    /// The far end of a link out of the lab.
    Outside(Box<OutsideNode>),
}

impl LabNode {
    /// A node of a lab at its power-up number `life`, from 0; `None` if the lab has no such node.
    #[must_use]
    pub fn make(builder: &Builder<'_>, id: NodeId, life: u32, now: Instant) -> Option<Self> {
        let lab = builder.lab();
        let node = lab.nodes.get(id.0)?;
        match &node.kind {
            NodeKind::Switch(model) => {
                let switch = builder.switch(id, life)?;
                Some(Self::switch(match model.manager {
                    Some(manager) => switch.with_manager(manager, now),
                    None => switch,
                }))
            }
            NodeKind::Outside(_) => Some(Self::Outside(Box::default())),
            _ => {
                let rate = lab.own_rate(id)?;
                let host = builder.host(id, life)?;
                let mut station = Station::new(host, rate);
                if let Some(intake) = builder.intake(id) {
                    station = station.with_intake(intake, now);
                }
                if let Some(cpu) = builder.cpu(id, life) {
                    station = station.with_cpu(cpu, now);
                }
                if let NodeKind::Host(Host { nic, .. }) | NodeKind::Router(Router { nic, .. }) =
                    &node.kind
                {
                    station.nic_mut().configure(nic.clone());
                }
                Some(Self::station(station))
            }
        }
    }
    /// An end system.
    #[must_use]
    pub fn station(station: Station) -> Self {
        Self::Station(Box::new(StationNode {
            station,
            touched: false,
        }))
    }
    /// A switch.
    #[must_use]
    pub fn switch(switch: Switch) -> Self {
        Self::Switch(Box::new(switch))
    }
    /// The station; `None` for another node.
    #[must_use]
    pub fn as_station(&self) -> Option<&Station> {
        match self {
            Self::Station(node) => Some(&node.station),
            Self::Switch(_) | Self::Outside(_) => None,
        }
    }
    /// The station, to take what has changed; `None` for another node.
    pub fn as_station_mut(&mut self) -> Option<&mut Station> {
        match self {
            Self::Station(node) => Some(&mut node.station),
            Self::Switch(_) | Self::Outside(_) => None,
        }
    }
    /// Calls the host of an end system, for changes while it runs; other nodes are left alone. Call this through
    /// [`Driver::with_node`](super::Driver::with_node).
    pub fn with_host(&mut self, act: impl FnOnce(&mut aerostat_node::host::Host), now: Instant) {
        if let Self::Station(node) = self {
            node.station.change(act, now);
            node.touched = true;
        }
    }
    /// The switch; `None` for another node.
    #[must_use]
    pub fn as_switch(&self) -> Option<&Switch> {
        match self {
            Self::Switch(switch) => Some(switch),
            Self::Station(_) | Self::Outside(_) => None,
        }
    }
    /// The switch, to change its permanent connections; `None` for another node.
    pub fn as_switch_mut(&mut self) -> Option<&mut Switch> {
        match self {
            Self::Switch(switch) => Some(switch),
            Self::Station(_) | Self::Outside(_) => None,
        }
    }
    /// State of kind `what`; `None` if this node has no such state.
    #[must_use]
    pub fn inspect(&self, what: StateKind, now: Instant) -> Option<Vec<Table>> {
        match self {
            Self::Station(node) => node.station.inspect(what, now),
            Self::Switch(switch) => switch.inspect(what, now),
            Self::Outside(_) => None,
        }
    }
    /// Calls `see` with every transmitter.
    pub fn outputs<'a>(&'a self, mut see: impl FnMut(&'a OutputPort)) {
        match self {
            Self::Station(node) => see(node.station.nic().output()),
            Self::Switch(switch) => {
                let fabric = switch.fabric();
                let ports = 0..fabric.ports();
                ports.filter_map(|port| fabric.output(port)).for_each(see);
            }
            Self::Outside(_) => {}
        }
    }
    /// Passes an input to an end system; other nodes ignore it. Call this through
    /// [`Driver::with_node`](super::Driver::with_node).
    pub fn input(&mut self, input: HostInput<'_>, now: Instant) {
        if let Self::Station(node) = self {
            node.input(input, now);
        }
    }
    /// Passes a message or an event of a daemon's process to an end system or a switch, like [`Self::input`].
    pub fn daemon(&mut self, role: Role, event: ProcessEvent<DaemonMessage>, now: Instant) {
        match self {
            Self::Station(node) => node.input(HostInput::Daemon(role, event), now),
            Self::Switch(switch) => {
                let Ok(()) = switch.handle_input(switch::Input::Daemon(role, event), now);
            }
            // The far end of a link has no daemons of the lab.
            Self::Outside(_) => {}
        }
    }
    /// The socket service of an end system, while it runs.
    pub fn sockets_mut(&mut self) -> Option<&mut SocketLayer> {
        match self {
            Self::Station(node) => node.station.host_mut().sockets_mut(),
            Self::Switch(_) | Self::Outside(_) => None,
        }
    }
    /// Passes a command to an end system, like [`Self::input`].
    pub fn command(&mut self, command: HostCommand, now: Instant) {
        self.input(HostInput::Command(command), now);
    }
    /// Makes an end system send a frame on its interface `itf`, as if its own stack had made the frame.
    pub fn frame(&mut self, itf: usize, frame: Vec<u8>, now: Instant) {
        self.input(HostInput::Frame { itf, frame }, now);
    }
    /// Makes an end system send many frames on its interface `itf`, as segments of a super frame of its kernel.
    pub fn super_frame(&mut self, itf: usize, frame: SuperFrame, now: Instant) {
        self.input(HostInput::SuperFrame { itf, frame }, now);
    }
    /// Puts an SDU on a connection of an end system, bypassing the protocols of its host like an untrusted program;
    /// false if there is no such connection. Call this through [`Driver::with_node`](super::Driver::with_node).
    pub fn send_raw(&mut self, vc: Vc, sdu: Vec<u8>, now: Instant) -> bool {
        let Self::Station(node) = self else {
            return false;
        };
        node.touched = true;
        node.station
            .nic_mut()
            .send(vc, Pdu::new(sdu), now)
            .is_some()
    }
    /// Makes an end system send a loopback request, as [`Station::loopback`]; `None` for other nodes. Call this through
    /// [`Driver::with_node`](super::Driver::with_node).
    pub fn loopback(
        &mut self,
        vc: Vc,
        segment: bool,
        now: Instant,
    ) -> Option<Result<u32, Refused>> {
        let Self::Station(node) = self else {
            return None;
        };
        node.touched = true;
        Some(node.station.loopback(vc, segment, now))
    }
    /// Makes a switch release its calls; other nodes ignore this. Call this through
    /// [`Driver::with_node`](super::Driver::with_node).
    pub fn clear_calls(&mut self, now: Instant) {
        if let Self::Switch(switch) = self {
            let Ok(()) = switch.handle_input(switch::Input::Clear, now);
        }
    }
    /// The peer at the far end of a link out of the lab has connected or disconnected.
    /// [`Driver::refresh_links`](super::Driver::refresh_links) looks at the consequences.
    pub fn connect(&mut self, connected: bool) {
        if let Self::Outside(outside) = self {
            outside.connected = connected;
        }
    }
}

impl StationNode {
    fn input(&mut self, input: HostInput<'_>, now: Instant) {
        self.station.handle_input(input, now);
        self.touched = true;
    }

    #[inline]
    fn poll_output(&mut self) -> Option<NodeOutput<LabEvent, Usable>> {
        let Some(event) = self.station.poll_event() else {
            // This comes last: the first cell of a packet leaves at once if the line is free and can be lost, so the
            // packet must be in the books before.
            let touched = std::mem::take(&mut self.touched);
            return touched.then_some(NodeOutput::Touched(0));
        };
        Some(match event {
            HostEvent::Trace(trace) => NodeOutput::Trace(trace),
            event => NodeOutput::Event(LabEvent::Host(event)),
        })
    }
}

impl OutsideNode {
    fn cells(&mut self, run: CellRun) {
        if let Some(mark) = run.pdu().and_then(Pdu::mark) {
            let left = HostEvent::Socket(SocketEvent::Left(mark));
            self.events.push_back(LabEvent::Host(left));
        }
        // A link out of the lab takes the PDUs of a train one by one, and cells as they come.
        if run.train().is_some() {
            self.events.extend(run.singles().map(LabEvent::Outside));
        } else {
            self.events.push_back(LabEvent::Outside(run));
        }
    }
}

impl Node for LabNode {
    type Event = LabEvent;
    type Management = Routing;
    type Report = Usable;

    fn report(routing: &mut Routing, from: NodeId, report: Usable) -> bool {
        report.trunk && routing.report(from, report.port, report.usable)
    }

    fn usable(report: &Usable) -> Option<u16> {
        report.usable.then_some(report.port.0)
    }

    fn managed(&mut self, me: NodeId, routing: &Routing, now: Instant) {
        if let Self::Switch(switch) = self {
            switch.routes_mut().follow(routing.plan(me));
            let Ok(()) = switch.handle_input(switch::Input::Rerouted, now);
        }
    }

    fn start(&mut self, now: Instant) {
        match self {
            Self::Station(node) => node.input(HostInput::Start, now),
            Self::Switch(switch) => {
                let Ok(()) = switch.handle_input(switch::Input::Start, now);
            }
            Self::Outside(_) => {}
        }
    }

    // Drivers are in other crates, and call this and the next methods for every cell or event.
    #[inline]
    fn forward(
        &mut self,
        port: u16,
        mut run: CellRun,
        now: Instant,
        touched: &mut Vec<u16>,
    ) -> Option<CellRun> {
        match self {
            Self::Station(node) if node.station.only_wait(&run) => {
                node.station.receive_middle(run, now);
                None
            }
            Self::Station(_) | Self::Outside(_) => Some(run),
            // Only local labels concern the control plane.
            Self::Switch(switch) if switch.fabric().is_local(PortVc::new(port, run.vc)) => {
                Some(run)
            }
            Self::Switch(switch) => {
                let fabric = switch.fabric_mut();
                fabric.take(port, &mut run, now, |port| touched.push(port));
                None
            }
        }
    }

    fn through(&self, port: u16, vc: Vc) -> Result<Through, Alone> {
        let switch = self.as_switch().ok_or(Alone::Local)?;
        switch.fabric().through(PortVc::new(port, vc))
    }

    fn ways(&self) -> Option<u64> {
        Some(self.as_switch()?.fabric().ways())
    }

    fn pass(&mut self, port: u16, connection: u32, cells: u64) {
        if let Self::Switch(switch) = self {
            switch.fabric_mut().pass(port, connection, cells);
        }
    }

    #[inline]
    fn cells(&mut self, port: u16, run: CellRun, now: Instant) {
        match self {
            Self::Station(node) => {
                node.station.receive(run, now);
                node.touched = true;
            }
            Self::Switch(switch) => {
                let Ok(()) = switch.handle_input(switch::Input::Cells(PortNo(port), run), now);
            }
            Self::Outside(outside) => outside.cells(run),
        }
    }

    fn link(&mut self, port: u16, up: bool, now: Instant) {
        match self {
            Self::Station(node) => {
                node.station.set_link(up, now);
                node.touched = true;
            }
            Self::Switch(switch) => {
                let Ok(()) = switch.handle_input(switch::Input::Link(PortNo(port), up), now);
            }
            Self::Outside(_) => {}
        }
    }

    fn rates(&mut self, port: u16, rates: [CellRate; 2], now: Instant) {
        match self {
            Self::Station(node) => node.station.nic_mut().output_mut().set_rate(rates[0]),
            Self::Switch(switch) => {
                let Ok(()) = switch.handle_input(switch::Input::Rates(PortNo(port), rates), now);
            }
            Self::Outside(_) => {}
        }
    }

    #[inline]
    fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::Station(node) => {
                node.station.handle_timeout(now);
                node.touched = true;
            }
            Self::Switch(switch) => switch.handle_timeout(now),
            Self::Outside(_) => {}
        }
    }

    #[inline]
    fn poll_output(&mut self) -> Option<NodeOutput<LabEvent, Usable>> {
        match self {
            Self::Station(node) => node.poll_output(),
            Self::Switch(switch) => Some(match switch.poll_output()? {
                switch::Output::Touched(PortNo(port)) => NodeOutput::Touched(port),
                switch::Output::Usable {
                    port,
                    trunk,
                    usable,
                } => NodeOutput::Report(Usable {
                    port,
                    trunk,
                    usable,
                }),
                switch::Output::Daemon(role, frame) => {
                    let event = HostEvent::Daemon(role, frame);
                    NodeOutput::Event(LabEvent::Host(event))
                }
                switch::Output::Trace(trace) => NodeOutput::Trace(trace),
            }),
            Self::Outside(outside) => outside.events.pop_front().map(NodeOutput::Event),
        }
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Station(node) => node.station.poll_timeout(),
            Self::Switch(switch) => switch.poll_timeout(),
            Self::Outside(_) => None,
        }
    }

    fn is_connected(&self) -> bool {
        match self {
            Self::Outside(outside) => outside.connected,
            Self::Station(_) | Self::Switch(_) => true,
        }
    }

    #[inline]
    fn is_outlet(&self) -> bool {
        matches!(self, Self::Outside(_))
    }

    fn keep_books(&mut self) {
        match self {
            Self::Station(node) => node.station.keep_books(),
            Self::Switch(switch) => switch.fabric_mut().log_discards(),
            Self::Outside(_) => {}
        }
    }

    fn show_steps(&mut self) {
        if let Self::Station(node) = self {
            node.station.show_steps();
        }
    }

    fn poll_discard(&mut self) -> Option<(u16, DroppedPdu)> {
        match self {
            Self::Station(_) | Self::Outside(_) => None,
            Self::Switch(switch) => switch.fabric_mut().take_discard(),
        }
    }

    fn held(&self, see: &mut dyn FnMut(DataUnit<'_>)) {
        if let Self::Station(node) = self {
            node.station.held(see);
        }
    }

    #[inline]
    fn output_port(&mut self, port: u16) -> Option<&mut OutputPort> {
        match self {
            Self::Station(node) => (port == 0).then(|| node.station.nic_mut().output_mut()),
            Self::Switch(switch) => switch.fabric_mut().output_mut(port),
            Self::Outside(_) => None,
        }
    }
}
