//! The path of cells through a switch: find the connection, police, copy to the leaves, queue.
//!
//! A connection is one direction, from one (port, VC) to one or more leaves; a bidirectional call has two connections.
//! A path connection switches a whole VPI and keeps the VCIs. Labels that end at the switch itself (signalling, ILMI)
//! are *local*: their cells go to the control plane. Loopback cells of the F5 segment flow end at the port, which
//! answers for the switch; end-to-end OAM passes like user cells.
//!
//! Source of the rules: I.361, I.610 §10.2.3, Traffic Management 4.0 §4 and §5. Not implemented: AIS and RDI
//! generation on link failure, performance management, ABR feedback.

mod ahead;
mod connection;
mod policing;
mod table;
mod through;

pub use through::Through;

use self::connection::{Connection, Leaf};
use self::policing::{Policed, admit, police};
use super::counters::{CellCounters, DropReason, UpcCounters};
use super::pdu::{CellRun, Content, Pdu};
use super::police::{DEFAULT_CDVT, Policer, Policing, Verdict};
use super::port::{Admission, DroppedPdu, OutputPort, PortLimits, QueueConfig, QueueId, Tuning};
use super::rate::CellRate;
use super::table::VcTable;
use aerostat_proto::{Changes, Duration, Instant};
use aerostat_wire::cell::Pti;
use aerostat_wire::oam::{Loopback, LoopbackAction, LoopbackPoint, Oam, OamFlow};
use aerostat_wire::{TrafficParams, Vc};
use slab::Slab;
use std::collections::VecDeque;
pub use table::{FabricError, FabricOp, PortVc};

#[derive(Debug)]
struct Port {
    input: VcTable,
    output: OutputPort,
    counters: CellCounters,
    up: bool,
    /// Cell delay variation tolerance of contracts that do not give a tolerance.
    tolerance: Duration,
    /// The same for all contracts: cells come from inside the network.
    inside: bool,
    /// Rate of the line on which cells come in.
    line: CellRate,
}

/// The destination of cells that came in.
#[derive(Debug)]
pub enum Switched {
    /// Output queues. A queue may have refused cells; then the queue counts them.
    Queued,
    /// The control plane.
    Local(CellRun),
    /// None of the queues: the cells were dropped before.
    Dropped(DropReason),
}

/// A connection, for display.
#[derive(Clone, Debug)]
pub struct ConnectionView {
    /// Incoming label.
    pub from: PortVc,
    /// Outgoing labels.
    pub to: Vec<PortVc>,
    /// True if a whole path is switched.
    pub whole_path: bool,
    /// True if the label ends at the control plane.
    pub local: bool,
    /// The contract.
    pub traffic: TrafficParams,
    /// True if the cells are policed.
    pub policed: bool,
    /// Cells received and cells policed; the queues count the rest.
    pub counters: CellCounters,
    /// Cells that the policer discarded or tagged, by reason.
    pub upc: UpcCounters,
}

/// Cells that did not cross the fabric from one port to one other port. Over all ports and any time: `cells in -
/// dropped at inputs - local + own + copies = cells offered to output queues`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passage {
    /// Cells to the control plane, including loopback requests to the switch itself.
    pub local: u64,
    /// Cells from the control plane, including answers to loopback requests.
    pub own: u64,
    /// Copies made for the second and further leaves of point-to-multipoint connections.
    pub copies: u64,
}

/// The switching fabric with its ports. See the documentation of this module.
#[derive(Debug)]
pub struct Fabric {
    ports: Vec<Port>,
    passage: Passage,
    connections: Slab<Connection>,
    /// Loopback location id of this switch.
    location: [u8; 16],
    /// Log of PDUs that lost cells before any queue; `None` if it is not kept.
    discards: Option<VecDeque<(u16, DroppedPdu)>>,
    /// Incoming labels whose connections may have changed, for display.
    changes: Changes<PortVc>,
    /// Counts changes of [`Self::through`].
    ways: u64,
}

impl Fabric {
    /// A fabric without ports; it answers loopback requests that name `location`.
    #[must_use]
    pub const fn new(location: [u8; 16]) -> Self {
        Self {
            ports: Vec::new(),
            passage: Passage {
                local: 0,
                own: 0,
                copies: 0,
            },
            connections: Slab::new(),
            location,
            discards: None,
            changes: Changes::All,
            ways: 0,
        }
    }

    /// Starts the log of PDUs that lose cells before any queue. It has no limit; its reader takes it after each arrival
    /// of cells.
    pub fn log_discards(&mut self) {
        self.discards.get_or_insert_default();
    }

    /// The next entry of this log: the input port, and the PDU. A PDU may have several entries.
    pub fn take_discard(&mut self) -> Option<(u16, DroppedPdu)> {
        self.discards.as_mut()?.pop_front()
    }

    /// Adds a port with the next free number.
    pub fn add_port(&mut self, rate: CellRate, limits: PortLimits) -> u16 {
        self.ports.push(Port {
            input: VcTable::default(),
            output: OutputPort::new(rate, limits),
            counters: CellCounters::default(),
            up: true,
            tolerance: DEFAULT_CDVT,
            inside: false,
            line: rate,
        });
        self.ports.len() as u16 - 1
    }

    /// Sets the rate of the line on which cells come in at `port`; it is that of the port unless the other end sends at
    /// another one. Policers take it for the distance of cells without times of their own.
    pub fn set_input_rate(&mut self, port: u16, rate: CellRate) {
        if let Some(port) = self.ports.get_mut(usize::from(port)) {
            port.line = rate;
        }
    }

    /// Sets the tolerance of contracts that do not give a cell delay variation tolerance, for connections from `port`
    /// that are opened later. The default is [`DEFAULT_CDVT`].
    pub fn tolerate(&mut self, port: u16, tolerance: Duration) {
        if let Some(port) = self.ports.get_mut(usize::from(port)) {
            port.tolerance = tolerance;
        }
    }

    /// Makes the tolerance of a port hold for all contracts of connections that are opened later: their own ones hold
    /// where cells enter the network, and queues on the way to this port have changed the distances of cells.
    pub fn inside(&mut self, port: u16) {
        if let Some(port) = self.ports.get_mut(usize::from(port)) {
            port.inside = true;
        }
    }

    /// Gives the queue of one leaf of a connection, through which no cell has gone yet, what it has for itself.
    pub fn tune(&mut self, from: PortVc, to: PortVc, tuning: &Tuning) {
        let connection = self
            .find(from)
            .and_then(|index| self.connections.get(index));
        let Some(connection) = connection else {
            return;
        };
        if let Some(leaf) = connection.leaves().find(|leaf| leaf.to == to)
            && let Some(port) = self.ports.get_mut(usize::from(to.port))
        {
            port.output.tune(leaf.queue, &connection.traffic, tuning);
        }
    }

    /// Number of ports.
    #[must_use]
    pub fn ports(&self) -> u16 {
        self.ports.len() as u16
    }

    /// A port's transmitter, for inspection.
    #[must_use]
    pub fn output(&self, port: u16) -> Option<&OutputPort> {
        self.ports.get(usize::from(port)).map(|port| &port.output)
    }

    /// A port's transmitter, from which the driver pops departures.
    pub fn output_mut(&mut self, port: u16) -> Option<&mut OutputPort> {
        self.ports
            .get_mut(usize::from(port))
            .map(|port| &mut port.output)
    }

    /// Cells that did not cross the fabric from one port to one other port.
    #[must_use]
    pub const fn passage(&self) -> Passage {
        self.passage
    }

    /// Cells received at a port, and cells dropped there before any queue. Policed cells are included, also those of
    /// connections that have been closed since.
    #[must_use]
    pub fn input_counters(&self, port: u16) -> Option<CellCounters> {
        self.ports.get(usize::from(port)).map(|port| port.counters)
    }

    /// True if cells with this label go to the control plane.
    #[must_use]
    pub fn is_local(&self, at: PortVc) -> bool {
        let connection = self.find(at).and_then(|index| self.connections.get(index));
        connection.is_some_and(|connection| connection.local)
    }

    /// All connections, in order of creation of their table entries.
    pub fn connections(&self) -> impl Iterator<Item = ConnectionView> {
        self.connections.iter().map(|(_, one)| one.view())
    }

    /// The connection whose table entry has this label; `None` without such an entry.
    #[must_use]
    pub fn connection(&self, from: PortVc) -> Option<ConnectionView> {
        let one = self.connections.get(self.find(from)?)?;
        (one.from == from).then(|| one.view())
    }

    /// Sets the state of a port's link. On a link that is down, waiting cells are dropped, and so are arriving ones.
    pub fn set_link(&mut self, port: u16, up: bool) {
        self.ways += 1;
        if let Some(port) = self.ports.get_mut(usize::from(port)) {
            port.up = up;
            port.output.set_link(up);
        }
    }

    /// True if the link of a port is up.
    #[must_use]
    pub fn link_is_up(&self, port: u16) -> bool {
        self.ports
            .get(usize::from(port))
            .is_some_and(|port| port.up)
    }

    /// Opens a label that ends at the control plane, in both directions.
    ///
    /// # Errors
    /// If the label is in use.
    pub fn open_local(&mut self, at: PortVc, traffic: TrafficParams) -> Result<(), FabricError> {
        self.ways += 1;
        self.check_input(at, false)?;
        let config = QueueConfig::switch(traffic);
        let queue = self.open_output(at, config)?;
        let mut connection = Connection::new(at, Leaf { to: at, queue }, traffic);
        connection.local = true;
        self.insert(connection);
        Ok(())
    }

    /// Sends a PDU of the control plane on a local label. `None` if the label is not local.
    pub fn send_local(&mut self, at: PortVc, pdu: Pdu, now: Instant) -> Option<Admission> {
        let connection = self
            .find(at)
            .and_then(|index| self.connections.get(index))?;
        let queue = connection.leaf.filter(|_| connection.local)?.queue;
        let port = self.ports.get_mut(usize::from(at.port))?;
        let run = CellRun::whole(pdu, at.vc);
        self.passage.own += u64::from(run.count);
        Some(port.output.enqueue(queue, run, now))
    }

    /// Executes a request of the control plane.
    ///
    /// # Errors
    /// See [`FabricError`]; the fabric is unchanged after an error.
    pub fn apply(&mut self, op: FabricOp) -> Result<(), FabricError> {
        self.ways += 1;
        self.note(&op);
        match op {
            FabricOp::Connect {
                from,
                to,
                traffic,
                police,
            } => {
                self.check_input(from, false)?;
                let queue = self.open_output(to, QueueConfig::switch(traffic))?;
                let mut connection = Connection::new(from, Leaf { to, queue }, traffic);
                connection.policer = self.policer(from, &traffic, police);
                self.insert(connection);
                Ok(())
            }
            FabricOp::ConnectPath {
                from,
                to,
                traffic,
                police,
            } => {
                self.check_input(from, true)?;
                let config = QueueConfig {
                    whole_path: true,
                    frame_discard: false,
                    ..QueueConfig::switch(traffic)
                };
                let queue = self.open_output(to, config)?;
                let mut connection = Connection::new(from, Leaf { to, queue }, traffic);
                connection.whole_path = true;
                connection.policer = self.policer(from, &traffic, police);
                self.insert(connection);
                Ok(())
            }
            FabricOp::AddLeaf { from, to } => {
                let index = self.switched(from)?;
                let traffic = self.connections.get(index).map(|c| c.traffic);
                let traffic = traffic.ok_or(FabricError::NoConnection(from))?;
                let queue = self.open_output(to, QueueConfig::switch(traffic))?;
                if let Some(connection) = self.connections.get_mut(index) {
                    connection.add_leaf(Leaf { to, queue });
                }
                Ok(())
            }
            FabricOp::DropLeaf { from, to } => {
                let index = self.switched(from)?;
                let connection = self.connections.get_mut(index);
                let leaf = connection.and_then(|connection| connection.remove_leaf(to));
                let leaf = leaf.ok_or(FabricError::NoLeaf(to))?;
                self.close_output(leaf);
                Ok(())
            }
            FabricOp::Disconnect { from } => self.disconnect(from),
        }
    }

    fn disconnect(&mut self, from: PortVc) -> Result<(), FabricError> {
        let index = self.find(from).ok_or(FabricError::NoConnection(from))?;
        let connection = self.connections.try_remove(index);
        let connection = connection.ok_or(FabricError::NoConnection(from))?;
        let from = connection.from;
        if let Some(port) = self.ports.get_mut(usize::from(from.port)) {
            if connection.whole_path {
                port.input.set_path(from.vc.vpi, None);
            } else {
                port.input.set_channel(from.vc, None);
            }
        }
        for leaf in connection.leaves() {
            self.close_output(leaf);
        }
        Ok(())
    }

    fn policer(&self, from: PortVc, traffic: &TrafficParams, what: Policing) -> Option<Policer> {
        let port = self.ports.get(usize::from(from.port))?;
        let own = TrafficParams {
            max_cdv: Duration::ZERO,
            second_cdv: Duration::ZERO,
            ..*traffic
        };
        let traffic = if port.inside { &own } else { traffic };
        Policer::new(traffic, what, port.tolerance)
    }

    fn find(&self, from: PortVc) -> Option<usize> {
        self.ports.get(usize::from(from.port))?.input.get(from.vc)
    }

    /// The connection from a label, which must not be local.
    fn switched(&self, from: PortVc) -> Result<usize, FabricError> {
        self.find(from)
            .filter(|index| self.connections.get(*index).is_some_and(|c| !c.local))
            .ok_or(FabricError::NoConnection(from))
    }

    fn check_input(&self, from: PortVc, whole_path: bool) -> Result<(), FabricError> {
        let port = self
            .ports
            .get(usize::from(from.port))
            .ok_or(FabricError::NoPort(from.port))?;
        let busy = port.input.get(from.vc).is_some()
            || whole_path && port.input.path_has_channels(from.vc.vpi);
        if busy {
            return Err(FabricError::InputBusy(from));
        }
        Ok(())
    }

    fn open_output(&mut self, to: PortVc, config: QueueConfig) -> Result<QueueId, FabricError> {
        let output = &mut self
            .ports
            .get_mut(usize::from(to.port))
            .ok_or(FabricError::NoPort(to.port))?
            .output;
        let whole_path = config.whole_path;
        let opened = output.open(to.vc, config);
        opened.ok_or_else(|| match output.full() {
            Some(most) if !output.is_taken(to.vc, whole_path) => FabricError::NoQueue(to, most),
            _ => FabricError::OutputBusy(to),
        })
    }

    fn close_output(&mut self, leaf: Leaf) {
        if let Some(port) = self.ports.get_mut(usize::from(leaf.to.port)) {
            port.output.close(leaf.queue);
        }
    }

    fn insert(&mut self, connection: Connection) {
        let (from, whole_path) = (connection.from, connection.whole_path);
        let index = self.connections.insert(connection);
        if let Some(port) = self.ports.get_mut(usize::from(from.port)) {
            if whole_path {
                port.input.set_path(from.vc.vpi, Some(index));
            } else {
                port.input.set_channel(from.vc, Some(index));
            }
        }
    }

    /// Receives cells from the link of `port`. `touched` is called with each port whose output queues accepted cells,
    /// because the next departure of that port may have changed.
    #[inline]
    pub fn receive(
        &mut self,
        port: u16,
        mut run: CellRun,
        now: Instant,
        touched: impl FnMut(u16),
    ) -> Switched {
        self.take(port, &mut run, now, touched)
    }

    /// Like [`Self::receive`]; the run is taken from its place, and what is left there has no meaning.
    #[inline]
    pub fn take(
        &mut self,
        port: u16,
        run: &mut CellRun,
        now: Instant,
        mut touched: impl FnMut(u16),
    ) -> Switched {
        let Some(input) = self.ports.get_mut(usize::from(port)) else {
            return Switched::Dropped(DropReason::LinkDown);
        };
        input.counters.cells_in += u64::from(run.count);
        if !input.up {
            return self.discard(port, run, DropReason::LinkDown, now);
        }
        let index = input.input.get(run.vc);
        let connection = index.and_then(|index| self.connections.get_mut(index));
        let (Some(index), Some(connection)) = (index, connection) else {
            return self.discard(port, run, DropReason::UnknownVc, now);
        };
        connection.cells_in += u64::from(run.count);
        if let Some(policer) = &mut connection.policer {
            let line = input.line;
            match admit(policer, run, now, line) {
                Some(Verdict::Pass) => {}
                Some(Verdict::Tag(why)) => {
                    run.clp = true;
                    connection.tagged(why, run.count.into());
                }
                Some(Verdict::Discard(why)) => {
                    connection.policed(why, 1);
                    return self.discard(port, run, DropReason::Policed, now);
                }
                None => {
                    let run = core::mem::take(run);
                    return self.receive_parts(index, run, now, &mut touched);
                }
            }
        }
        // The common case: user data from one port to one other port.
        if let Some(leaf) = connection.leaf
            && connection.more.is_none()
            && !connection.local
            && run.is_user()
            && let Some(port) = self.ports.get_mut(usize::from(leaf.to.port))
        {
            connection.cells_out += u64::from(run.count);
            if port.output.offer(leaf.queue, run, now).accepted > 0 {
                touched(leaf.to.port);
            }
            return Switched::Queued;
        }
        self.forward(index, core::mem::take(run), now, touched)
    }

    /// Receives a run of which perhaps not all cells conform.
    fn receive_parts(
        &mut self,
        index: usize,
        run: CellRun,
        now: Instant,
        touched: &mut dyn FnMut(u16),
    ) -> Switched {
        let Some(connection) = self.connections.get_mut(index) else {
            return Switched::Dropped(DropReason::UnknownVc);
        };
        let (port, pdu) = (connection.from.port, run.pdu().cloned());
        let Policed {
            front,
            last,
            dropped,
        } = police(connection, run);
        if dropped > 0 {
            let reason = DropReason::Policed;
            self.count_discard(port, pdu.as_ref(), dropped, reason, now);
        }
        for part in front {
            self.forward(index, part, now, &mut *touched);
        }
        match last {
            Some(part) => self.forward(index, part, now, touched),
            None => Switched::Dropped(DropReason::Policed),
        }
    }

    /// Counts cells that are dropped at an input.
    #[cold]
    fn discard(&mut self, port: u16, run: &CellRun, reason: DropReason, now: Instant) -> Switched {
        self.count_discard(port, run.pdu(), run.count.into(), reason, now);
        Switched::Dropped(reason)
    }

    fn count_discard(
        &mut self,
        port: u16,
        pdu: Option<&Pdu>,
        cells: u64,
        reason: DropReason,
        now: Instant,
    ) {
        if let Some(input) = self.ports.get_mut(usize::from(port)) {
            input.counters.dropped.add(reason, cells);
        }
        log(&mut self.discards, port, pdu, reason, now);
    }

    /// Forwards conforming cells to the control plane, or to the queues of the leaves.
    fn forward(
        &mut self,
        index: usize,
        run: CellRun,
        now: Instant,
        mut touched: impl FnMut(u16),
    ) -> Switched {
        let Some(connection) = self.connections.get_mut(index) else {
            return Switched::Dropped(DropReason::UnknownVc);
        };
        // Inside a path, segment OAM cells of its channels pass, because those segments end elsewhere.
        if !connection.whole_path && matches!(run.content, Content::Raw(_)) && is_segment_oam(&run)
        {
            let port = connection.from.port;
            return self.segment_oam(port, &run, now, touched);
        }
        let cells = u64::from(run.count);
        if connection.local {
            connection.cells_out += cells;
            self.passage.local += cells;
            return Switched::Local(run);
        }
        let (first, more) = (connection.leaf, connection.more());
        // A point-to-multipoint connection may be without leaves for a while.
        let Some(last) = more.last().copied().or(first) else {
            let port = connection.from.port;
            connection.dropped(DropReason::UnknownVc, cells);
            return self.discard(port, &run, DropReason::UnknownVc, now);
        };
        self.passage.copies += cells * more.len() as u64;
        let others = first.into_iter().chain(more.iter().copied());
        for leaf in others.take(more.len()) {
            let output = &mut self.ports[usize::from(leaf.to.port)].output;
            if output.enqueue(leaf.queue, run.clone(), now).accepted > 0 {
                touched(leaf.to.port);
            }
        }
        let output = &mut self.ports[usize::from(last.to.port)].output;
        if output.enqueue(last.queue, run, now).accepted > 0 {
            touched(last.to.port);
        }
        connection.cells_out += cells;
        Switched::Queued
    }

    /// The port is the end point of the F5 segment flow of its link.
    fn segment_oam(
        &mut self,
        port: u16,
        run: &CellRun,
        now: Instant,
        mut touched: impl FnMut(u16),
    ) -> Switched {
        let answer = answer_loopback(run, LoopbackPoint::EndPoint, self.location);
        let output = &mut self.ports[usize::from(port)].output;
        let (Some(answer), Some(queue)) = (answer, output.queue_of(run.vc)) else {
            let counters = &mut self.ports[usize::from(port)].counters;
            counters.dropped.add(DropReason::NotForUs, 1);
            return Switched::Dropped(DropReason::NotForUs);
        };
        self.passage.local += 1;
        self.passage.own += 1;
        if output.enqueue(queue, answer, now).accepted > 0 {
            touched(port);
        }
        Switched::Queued
    }
}

/// Records a PDU that loses cells, if the log is kept.
fn log(
    discards: &mut Option<VecDeque<(u16, DroppedPdu)>>,
    port: u16,
    pdu: Option<&Pdu>,
    reason: DropReason,
    at: Instant,
) {
    if let (Some(log), Some(pdu)) = (discards, pdu) {
        let (pdu, vc) = (pdu.clone(), Vc::default());
        log.push_back((
            port,
            DroppedPdu {
                at,
                pdu,
                vc,
                reason,
            },
        ));
    }
}

fn is_segment_oam(run: &CellRun) -> bool {
    OamFlow::of(&run.header(0)).is_some_and(|flow| flow.segment && !flow.path)
}

/// The cell that answers a loopback request; `None` if this point does not answer.
pub(super) fn answer_loopback(
    run: &CellRun,
    point: LoopbackPoint,
    location: [u8; 16],
) -> Option<CellRun> {
    let [cell] = run.raw_cells()? else {
        return None;
    };
    let Ok(Oam::Loopback(loopback)) = Oam::decode(&cell.payload) else {
        return None;
    };
    let segment = cell.pti == Pti::OAM_SEGMENT;
    let answer = match loopback.action(segment, point, location) {
        LoopbackAction::Answer(answer) | LoopbackAction::AnswerAndPass(answer) => answer,
        LoopbackAction::Pass | LoopbackAction::Returned | LoopbackAction::Discard => return None,
    };
    let payload = Oam::Loopback(answer).encode();
    Some(CellRun::raw(run.vc, cell.pti, payload))
}

/// A loopback request to the end of a connection, or to the end of its first segment.
#[must_use]
pub fn loopback_request(vc: Vc, segment: bool, tag: u32) -> CellRun {
    let pti = if segment {
        Pti::OAM_SEGMENT
    } else {
        Pti::OAM_END_TO_END
    };
    CellRun::raw(vc, pti, Oam::Loopback(Loopback::request(tag)).encode())
}
