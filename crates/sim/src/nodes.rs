//! The nodes of a lab as nodes of a world: end systems and switches.

use crate::node::{Node, NodeOutput};
use crate::world::NodeId;
use aerostat_lab::model;
use aerostat_lab::routing::Routing;
use aerostat_node::atm::{CellRun, DataUnit, DataUnitBuf, DroppedPdu, OutputPort, Pdu, PortVc};
use aerostat_node::host::{HostCommand, HostInput, Station, StationEvent};
use aerostat_node::inspect::Table;
use aerostat_node::ip::apps::{AppId, AppResult};
use aerostat_node::ip::books::{Cause, SocketEvent};
use aerostat_node::ip::meter::Sample;
use aerostat_node::switch::{self, PortNo, Switch};
use aerostat_proto::{Instant, Machine};
use aerostat_wire::{AtmAddress, Vc};

/// A report of a switch: whether it can send calls out at a port.
#[derive(Clone, Copy, Debug)]
pub struct Usable(PortNo, bool);

/// Events of a lab's nodes for the experimenter.
#[derive(Debug)]
pub enum LabEvent {
    /// A measured packet left or reached an IP stack.
    Sample(Sample),
    /// A program ended.
    Finished(AppId, AppResult),
    /// An end system lost a packet, a frame or an SDU, of which this may be the head.
    Lost(Cause, DataUnitBuf),
    /// A PDU of a program was sent or received, or a call of a program is forgotten.
    Socket(SocketEvent),
    /// An interface of an end system has become a member of its network, or is no longer a member.
    Joined {
        /// N of `lecN`.
        itf: usize,
        /// True if the interface is a member.
        joined: bool,
    },
    /// A BUS of an end system reaches a LANE client, or no longer reaches it.
    Reaches {
        /// ATM address of the client.
        address: AtmAddress,
        /// True if the client is reached.
        reached: bool,
    },
}

/// An end system in the world.
pub struct StationNode {
    station: Station,
    /// True if the adapter may have new departures.
    touched: bool,
    /// Frames for a kernel that does not exist in virtual time.
    kernel_frames: u64,
}

/// A node of a lab.
pub enum LabNode {
    /// A host, a router or the LANE server.
    Station(Box<StationNode>),
    /// A switch.
    Switch(Box<Switch>),
}

impl LabNode {
    /// An end system.
    #[must_use]
    pub fn station(station: Station) -> Self {
        Self::Station(Box::new(StationNode {
            station,
            touched: false,
            kernel_frames: 0,
        }))
    }
    /// A switch.
    #[must_use]
    pub fn switch(switch: Switch) -> Self {
        Self::Switch(Box::new(switch))
    }
    /// The station; `None` for a switch.
    #[must_use]
    pub fn as_station(&self) -> Option<&Station> {
        match self {
            Self::Station(node) => Some(&node.station),
            Self::Switch(_) => None,
        }
    }
    /// The switch; `None` for a station.
    #[must_use]
    pub fn as_switch(&self) -> Option<&Switch> {
        match self {
            Self::Station(_) => None,
            Self::Switch(switch) => Some(switch),
        }
    }
    /// State of kind `what`; `None` if this node has no such state.
    #[must_use]
    pub fn inspect(&self, what: &str, now: Instant) -> Option<Vec<Table>> {
        match self {
            Self::Station(node) => node.station.inspect(what, now),
            Self::Switch(switch) => switch.inspect(what),
        }
    }
    /// Passes a command to an end system; switches have no commands. Call this through
    /// [`World::with_node`](crate::World::with_node).
    pub fn command(&mut self, command: HostCommand, now: Instant) {
        if let Self::Station(node) = self {
            node.input(HostInput::Command(command), now);
        }
    }
    /// Puts an SDU on a connection of an end system, bypassing the protocols of its host like an untrusted program;
    /// false if there is no such connection. Call this through [`World::with_node`](crate::World::with_node).
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
    /// Makes an end system send a frame on its interface `itf`, as if its own stack had made the frame.
    pub fn frame(&mut self, itf: usize, frame: Vec<u8>, now: Instant) {
        if let Self::Station(node) = self {
            node.input(HostInput::Frame { itf, frame }, now);
        }
    }
    /// Frames for a Linux kernel, which does not exist in virtual time.
    #[must_use]
    pub fn kernel_frames(&self) -> u64 {
        match self {
            Self::Station(node) => node.kernel_frames,
            Self::Switch(_) => 0,
        }
    }
}

impl StationNode {
    fn input(&mut self, input: HostInput<'_>, now: Instant) {
        self.station.handle_input(input, now);
        self.touched = true;
    }

    fn poll_output(&mut self) -> Option<NodeOutput<LabEvent, Usable>> {
        loop {
            let Some(event) = self.station.poll_event() else {
                // This comes last: the first cell of a packet leaves at once if the line is free and can be lost, so
                // the packet must be in the books before.
                let touched = std::mem::take(&mut self.touched);
                return touched.then_some(NodeOutput::Touched(0));
            };
            return Some(match event {
                StationEvent::Frame { .. } => {
                    self.kernel_frames += 1;
                    continue;
                }
                // There are no daemon processes in virtual time.
                StationEvent::Daemon(..) => continue,
                StationEvent::Sample(sample) => NodeOutput::Event(LabEvent::Sample(sample)),
                StationEvent::Finished(app, result) => {
                    NodeOutput::Event(LabEvent::Finished(app, result))
                }
                StationEvent::Lost(cause, head) => NodeOutput::Event(LabEvent::Lost(cause, head)),
                StationEvent::Socket(event) => NodeOutput::Event(LabEvent::Socket(event)),
                StationEvent::Joined { itf, joined } => {
                    NodeOutput::Event(LabEvent::Joined { itf, joined })
                }
                StationEvent::Reaches { address, reached } => {
                    NodeOutput::Event(LabEvent::Reaches { address, reached })
                }
                StationEvent::Trace(trace) => NodeOutput::Trace(trace),
            });
        }
    }
}

impl Node for LabNode {
    type Event = LabEvent;
    type Plant = Routing;
    type Report = Usable;

    fn report(plant: &mut Routing, from: NodeId, Usable(port, usable): Usable) -> bool {
        plant.report(model::NodeId(from.0), port, usable)
    }

    fn managed(&mut self, me: NodeId, plant: &Routing, now: Instant) {
        if let Self::Switch(switch) = self {
            for (prefix, ways) in plant.routes(model::NodeId(me.0)) {
                switch.routes_mut().set_prefix(&prefix, ways);
            }
            let Ok(()) = switch.handle_input(switch::Input::Rerouted, now);
        }
    }

    fn start(&mut self, now: Instant) {
        match self {
            Self::Station(node) => node.input(HostInput::Start, now),
            Self::Switch(switch) => {
                let Ok(()) = switch.handle_input(switch::Input::Start, now);
            }
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
            // Cells that neither end a PDU nor are OAM only wait in the adapter; the host is not concerned.
            Self::Station(node) if run.is_user() && !run.ends_pdu() => {
                node.station.receive_middle(run, now);
                None
            }
            Self::Station(_) => Some(run),
            // Only local labels concern the control plane.
            Self::Switch(switch) if switch.fabric().is_local(PortVc::new(port, run.vc)) => {
                Some(run)
            }
            Self::Switch(switch) => {
                let fabric = switch.fabric_mut();
                fabric.receive(port, run, now, |port| touched.push(port));
                None
            }
        }
    }

    fn cells(&mut self, port: u16, run: CellRun, now: Instant) {
        match self {
            Self::Station(node) => {
                node.station.receive(run, now);
                node.touched = true;
            }
            Self::Switch(switch) => {
                let Ok(()) = switch.handle_input(switch::Input::Cells(PortNo(port), run), now);
            }
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
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::Station(node) => {
                node.station.handle_timeout(now);
                node.touched = true;
            }
            Self::Switch(switch) => switch.handle_timeout(now),
        }
    }

    fn poll_output(&mut self) -> Option<NodeOutput<LabEvent, Usable>> {
        match self {
            Self::Station(node) => node.poll_output(),
            Self::Switch(switch) => Some(match switch.poll_output()? {
                switch::Output::Touched(PortNo(port)) => NodeOutput::Touched(port),
                switch::Output::Usable(port, usable) => NodeOutput::Report(Usable(port, usable)),
                switch::Output::Trace(trace) => NodeOutput::Trace(trace),
            }),
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Station(node) => node.station.poll_timeout(),
            Self::Switch(switch) => switch.poll_timeout(),
        }
    }

    fn keep_books(&mut self) {
        match self {
            Self::Station(node) => node.station.keep_books(),
            Self::Switch(switch) => switch.fabric_mut().log_discards(),
        }
    }

    fn poll_discard(&mut self) -> Option<(u16, DroppedPdu)> {
        match self {
            Self::Station(_) => None,
            Self::Switch(switch) => switch.fabric_mut().take_discard(),
        }
    }

    fn held(&self, see: &mut dyn FnMut(DataUnit<'_>)) {
        if let Self::Station(node) = self {
            node.station.host().held(see);
        }
    }

    fn output_port(&mut self, port: u16) -> Option<&mut OutputPort> {
        match self {
            Self::Station(node) => (port == 0).then(|| node.station.nic_mut().output_mut()),
            Self::Switch(switch) => switch.fabric_mut().output_mut(port),
        }
    }
}
