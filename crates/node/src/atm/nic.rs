//! A host's adapter: shaped queues towards the link, and one receiver per VC, of AAL5 or of single cells (AAL0).
//!
//! As the end point of both flows, the adapter answers loopback requests on its open VCs. OAM cells never reach the
//! receivers. A VC may be open for sending, for receiving or for both.

mod write;

pub use write::Written;

use super::counters::{CellCounters, DropReason};
use super::fabric::{answer_loopback, loopback_request};
use super::pdu::{CellRun, Pdu};
use super::pdu_train::{PduTrain, TrainPart};
use super::port::{Admission, OutputPort, PathConfig, PathKey, PortLimits, QueueConfig, QueueId};
use super::rate::CellRate;
use super::reassembly::{Received, RunReassembler};
use super::table::VcTable;
use crate::distribution::Distribution;
use aerostat_proto::{Duration, Instant};
use aerostat_wire::aal5::{PduError, ReassemblyCounters};
use aerostat_wire::oam::{LoopbackPoint, Oam};
use aerostat_wire::{AalType, TrafficParams, Vc};
use slab::Slab;
use std::collections::{BTreeMap, VecDeque};

#[derive(Debug)]
struct OpenVc {
    vc: Vc,
    queue: Option<QueueId>,
    receiver: Receiver,
    /// Cells received, including OAM.
    cells: u64,
    /// Of these, cells with the mark of congestion.
    marked: u64,
    /// Transfer delays of last cells, where the driver knows them.
    transfer: Option<Box<Distribution>>,
}

/// Receiver of the cells of user data on an open VC.
#[derive(Debug)]
enum Receiver {
    /// Puts PDUs together.
    Aal5(RunReassembler),
    /// Passes them on one by one, and counts them.
    Aal0(u64),
}

impl Receiver {
    /// The link went down: what has come so far is no PDU any more.
    fn reset(&mut self) {
        match self {
            Self::Aal5(receiver) => receiver.reset(),
            Self::Aal0(_) => {}
        }
    }
    fn counters(&self) -> ReassemblyCounters {
        match self {
            Self::Aal5(receiver) => receiver.counters,
            Self::Aal0(cells) => ReassemblyCounters {
                cells: *cells,
                sdus: *cells,
                whole: *cells,
                ..ReassemblyCounters::default()
            },
        }
    }
}

/// Cells of all VCs that carry single cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SingleCells {
    /// Cells that the adapter has taken from programs.
    pub sent: u64,
    /// Cells received.
    pub received: u64,
}

/// The result of received cells.
#[derive(Debug)]
pub enum NicEvent {
    /// No event yet.
    Nothing,
    /// An SDU is complete.
    Sdu {
        /// Its VC.
        vc: Vc,
        /// The SDU.
        sdu: Received,
    },
    /// PDUs of a train are complete.
    Train {
        /// Their VC.
        vc: Vc,
        /// The PDUs.
        part: TrainPart,
        /// True if their cells had congestion indicated.
        congested: bool,
    },
    /// Cells of a VC that carries single cells.
    Cells {
        /// The cells.
        run: CellRun,
    },
    /// A PDU was lost.
    Lost {
        /// Its VC.
        vc: Vc,
        /// The reason.
        error: PduError,
    },
    /// A loopback request was answered, so the output queues have changed.
    Answered,
    /// The answer to a loopback request of this host.
    LoopbackReturned {
        /// Its VC.
        vc: Vc,
        /// The tag of the request.
        tag: u32,
    },
    /// The cells were dropped: the VC is not in use, or cells of this kind have no receiver.
    Dropped(DropReason),
}

/// Why an adapter lost an arriving PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NicDiscard {
    /// Its VC is not open.
    UnknownVc,
    /// Its cells were mixed with those of another PDU, or the PDU was too long.
    Reassembly,
}

/// Records lost PDUs, if the log is kept.
fn log(
    discards: &mut Option<VecDeque<(NicDiscard, Pdu)>>,
    why: NicDiscard,
    pdus: impl IntoIterator<Item = Pdu>,
) {
    if let Some(log) = discards {
        log.extend(pdus.into_iter().map(|pdu| (why, pdu)));
    }
}

/// A VC of an adapter, for display.
#[derive(Clone, Copy, Debug)]
pub struct NicVcView {
    /// The VC.
    pub vc: Vc,
    /// Cells that wait to be sent.
    pub queued: u32,
    /// Sending time that its shaper lost because the driver was late; `None` if it is not shaped.
    pub lost_time: Option<Duration>,
    /// Sending side.
    pub sent: CellCounters,
    /// True if the VC is open for sending.
    pub sends: bool,
    /// Receiving side.
    pub received: ReassemblyCounters,
    /// Cells received, including OAM.
    pub cells_received: u64,
    /// Of these, cells with the mark of congestion (EFCI).
    pub cells_marked: u64,
}

/// How an adapter sends what a VC has to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shaping {
    /// At the rates of its contract.
    Contract,
    /// At the rate of the link.
    Line,
    /// In this rate queue of the adapter, which has one rate for all its VCs together.
    RateQueue(u16),
}

impl Shaping {
    /// Shaping by the contract, or not.
    #[must_use]
    pub const fn by_contract(shapes: bool) -> Self {
        match shapes {
            true => Self::Contract,
            false => Self::Line,
        }
    }
}

/// A rate queue of an adapter: VCs of any labels that leave at a peak rate together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateQueue {
    /// Its name.
    pub name: String,
    /// Peak rate, cells/s.
    pub pcr: u32,
    /// Cell delay variation tolerance of who polices them together.
    pub cdvt: Duration,
}

/// Settings of an adapter for VCs, beside their contracts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NicConfig {
    /// True: VCs are shaped to their contracts. False: cells leave at the rate of the link.
    pub shapes: bool,
    /// How single labels are sent, which differ from `shapes`.
    pub shapes_of: BTreeMap<Vc, Shaping>,
    /// Shaped paths. VCs in them are not shaped by themselves.
    pub paths: Vec<PathConfig>,
    /// Rate queues, by their numbers. VCs in them are not shaped by themselves.
    pub rate_queues: Vec<RateQueue>,
}

impl Default for NicConfig {
    fn default() -> Self {
        Self {
            shapes: true,
            shapes_of: BTreeMap::new(),
            paths: Vec::new(),
            rate_queues: Vec::new(),
        }
    }
}

impl NicConfig {
    /// How a VC is sent: what its user says counts, then what is said of its label, then what is said of the adapter.
    fn shaping_of(&self, vc: Vc, of_user: Option<Shaping>) -> Shaping {
        let of_label = || self.shapes_of.get(&vc).copied();
        let of_adapter = Shaping::by_contract(self.shapes);
        of_user.or_else(of_label).unwrap_or(of_adapter)
    }

    /// The queue of a VC that sends with `traffic`.
    fn queue(&self, vc: Vc, traffic: TrafficParams, of_user: Option<Shaping>) -> QueueConfig {
        let shaping = self.shaping_of(vc, of_user);
        QueueConfig {
            shaped: shaping == Shaping::Contract,
            rate_queue: match shaping {
                Shaping::RateQueue(number) => Some(number),
                Shaping::Contract | Shaping::Line => None,
            },
            ..QueueConfig::host(traffic)
        }
    }

    /// The number of the rate queue of this name.
    #[must_use]
    pub fn rate_queue(&self, name: &str) -> Option<u16> {
        let at = self.rate_queues.iter().position(|one| one.name == name)?;
        u16::try_from(at).ok()
    }
}

/// A host's adapter. See the documentation of this module.
#[derive(Debug)]
pub struct Nic {
    output: OutputPort,
    table: VcTable,
    open: Slab<OpenVc>,
    /// Cells received, and cells dropped before any receiver.
    pub counters: CellCounters,
    /// Bad PDUs received, on all VCs that are or were open.
    pub pdus_bad: u64,
    /// Cells of VCs that carry single cells.
    pub single: SingleCells,
    /// Open VCs that carry single cells.
    singles: usize,
    up: bool,
    config: NicConfig,
    /// Log of PDUs that were lost here; `None` if it is not kept.
    discards: Option<VecDeque<(NicDiscard, Pdu)>>,
}

impl Nic {
    /// An adapter on a link of this rate. The VCs of signalling and ILMI are open.
    #[must_use]
    pub fn new(rate: CellRate) -> Self {
        let mut nic = Self {
            output: OutputPort::new(rate, PortLimits::HOST),
            table: VcTable::default(),
            open: Slab::new(),
            counters: CellCounters::default(),
            pdus_bad: 0,
            single: SingleCells::default(),
            singles: 0,
            up: true,
            config: NicConfig::default(),
            discards: None,
        };
        for vc in [Vc::SIGNALLING, Vc::ILMI] {
            nic.open(vc, TrafficParams::ubr(0), 0);
        }
        nic
    }

    /// Sets what the adapter does with the VCs that it opens from now on. Its paths are new ones, with VPIs in which no
    /// VC is open, and so are its rate queues.
    pub fn configure(&mut self, config: NicConfig) {
        for path in &config.paths {
            self.output.shape_path(*path);
        }
        for (queue, number) in config.rate_queues.iter().zip(0..) {
            let key = PathKey::RateQueue(number);
            self.output.shape_queues(key, queue.pcr, queue.cdvt);
        }
        self.config = config;
    }

    /// Opens a VC that sends with `traffic` (without a category: does not send) and receives SDUs of up to `max_sdu`
    /// octets (0: any size). False if the VC is open already, or if no further VC is possible.
    pub fn open(&mut self, vc: Vc, traffic: TrafficParams, max_sdu: u16) -> bool {
        self.open_as(vc, traffic, (AalType::Aal5, max_sdu), None)
    }

    /// As [`Self::open`], with the AAL. `shaping` says how the VC is sent, where its user has said so.
    pub fn open_as(
        &mut self,
        vc: Vc,
        traffic: TrafficParams,
        (aal, max_sdu): (AalType, u16),
        shaping: Option<Shaping>,
    ) -> bool {
        if self.table.get(vc).is_some() {
            return false;
        }
        let sends = traffic.category.is_some();
        let config = self.config.queue(vc, traffic, shaping);
        let queue = sends.then(|| self.output.open(vc, config)).flatten();
        if sends && queue.is_none() {
            return false;
        }
        let entry = OpenVc {
            vc,
            queue,
            receiver: match aal {
                AalType::Aal5 => Receiver::Aal5(RunReassembler::new(max_sdu)),
                AalType::Aal0 => Receiver::Aal0(0),
            },
            cells: 0,
            marked: 0,
            transfer: None,
        };
        let index = self.open.insert(entry);
        self.table.set_channel(vc, Some(index));
        self.singles += usize::from(aal == AalType::Aal0);
        true
    }

    /// Opens a VC for SDUs of any size as [`Self::open_as`] does, or changes one that is open.
    pub fn open_or_change(
        &mut self,
        vc: Vc,
        traffic: TrafficParams,
        aal: AalType,
        shaping: Option<Shaping>,
        now: Instant,
    ) {
        if !self.open_as(vc, traffic, (aal, 0), shaping) {
            self.change(vc, traffic, shaping, now);
        }
    }

    /// Changes what an open VC sends; `shaping` as in [`Self::open_as`]. Cells that wait go on waiting, unless it sends
    /// nothing any more. False if the VC is not open, or if there is no room for its queue.
    pub fn change(
        &mut self,
        vc: Vc,
        traffic: TrafficParams,
        shaping: Option<Shaping>,
        now: Instant,
    ) -> bool {
        let index = self.table.get(vc);
        let Some(open) = index.and_then(|index| self.open.get_mut(index)) else {
            return false;
        };
        let config = self.config.queue(vc, traffic, shaping);
        match (open.queue, traffic.category) {
            (Some(queue), Some(_)) => self.output.change(queue, &config, now),
            (Some(queue), None) => {
                self.output.close(queue);
                open.queue = None;
            }
            (None, Some(_)) => open.queue = self.output.open(vc, config),
            (None, None) => {}
        }
        open.queue.is_some() == traffic.category.is_some()
    }

    /// Closes a VC; its waiting cells are dropped. False if the VC was not open.
    pub fn close(&mut self, vc: Vc) -> bool {
        let Some(index) = self.table.get(vc) else {
            return false;
        };
        self.singles -= usize::from(self.is_single(vc));
        self.table.set_channel(vc, None);
        if let Some(queue) = self.open.try_remove(index).and_then(|open| open.queue) {
            self.output.close(queue);
        }
        true
    }

    /// Resets the adapter for a restart of the host: closes every VC except signalling and ILMI and drops waiting
    /// cells.
    pub fn reset(&mut self) {
        let open: Vec<Vc> = self.open.iter().map(|(_, open)| open.vc).collect();
        for vc in open {
            self.close(vc);
        }
        for vc in [Vc::SIGNALLING, Vc::ILMI] {
            self.open(vc, TrafficParams::ubr(0), 0);
        }
    }

    /// Starts the log of PDUs that are lost on arrival. It has no limit; its reader takes it after each arrival of
    /// cells.
    pub fn log_discards(&mut self) {
        self.discards.get_or_insert_default();
    }

    /// The next entry of this log.
    pub fn take_discard(&mut self) -> Option<(NicDiscard, Pdu)> {
        self.discards.as_mut()?.pop_front()
    }

    fn vc(&self, vc: Vc) -> Option<&OpenVc> {
        self.open.get(self.table.get(vc)?)
    }

    /// True if a VC carries single cells. Drivers ask this for every cell, and hardly any adapter has such a VC.
    #[inline]
    #[must_use]
    pub fn is_single(&self, vc: Vc) -> bool {
        self.singles > 0 && self.aal(vc) == AalType::Aal0
    }

    /// The AAL of a VC; AAL5 if the VC is not open.
    #[must_use]
    pub fn aal(&self, vc: Vc) -> AalType {
        match self.vc(vc).map(|open| &open.receiver) {
            Some(Receiver::Aal0(_)) => AalType::Aal0,
            Some(Receiver::Aal5(_)) | None => AalType::Aal5,
        }
    }

    /// Sends a PDU. `None` if the VC is not open for sending.
    pub fn send(&mut self, vc: Vc, pdu: Pdu, now: Instant) -> Option<Admission> {
        let queue = self.vc(vc)?.queue?;
        self.up
            .then(|| self.output.enqueue(queue, CellRun::whole(pdu, vc), now))
    }

    /// Sends the PDUs of a train. `None` if the VC is not open for sending.
    pub fn send_train(&mut self, vc: Vc, train: PduTrain, now: Instant) -> Option<Admission> {
        let queue = self.vc(vc)?.queue?;
        let run = CellRun::of_train(train, vc);
        self.up.then(|| self.output.enqueue(queue, run, now))
    }

    /// Sends a loopback request. `None` if the VC is not open for sending.
    pub fn ping(&mut self, vc: Vc, segment: bool, tag: u32, now: Instant) -> Option<Admission> {
        let queue = self.vc(vc)?.queue?;
        Some(
            self.output
                .enqueue(queue, loopback_request(vc, segment, tag), now),
        )
    }

    /// Cells of a VC that wait to be sent.
    #[must_use]
    pub fn queued(&self, vc: Vc) -> u32 {
        self.vc(vc)
            .and_then(|open| open.queue)
            .map_or(0, |queue| self.output.queued(queue))
    }

    /// Settings of the adapter for VCs.
    #[must_use]
    pub const fn config(&self) -> &NicConfig {
        &self.config
    }

    /// The transmitter, for inspection.
    #[must_use]
    pub const fn output(&self) -> &OutputPort {
        &self.output
    }

    /// The transmitter, from which the driver pops departures.
    pub const fn output_mut(&mut self) -> &mut OutputPort {
        &mut self.output
    }

    /// Sets the state of the link.
    pub fn set_link(&mut self, up: bool) {
        self.up = up;
        self.output.set_link(up);
        if !up {
            for (_, open) in &mut self.open {
                open.receiver.reset();
            }
        }
    }

    /// Receives cells from the link.
    pub fn receive(&mut self, run: CellRun, now: Instant) -> NicEvent {
        self.counters.cells_in += u64::from(run.count);
        let vc = run.vc;
        let open = self
            .table
            .get(vc)
            .and_then(|index| self.open.get_mut(index));
        let Some(open) = open else {
            self.counters
                .dropped
                .add(DropReason::UnknownVc, run.count.into());
            log(
                &mut self.discards,
                NicDiscard::UnknownVc,
                run.pdu().cloned(),
            );
            return NicEvent::Dropped(DropReason::UnknownVc);
        };
        open.cells += u64::from(run.count);
        if run.congested {
            open.marked += u64::from(run.count);
        }
        if !run.is_user() {
            return self.oam(&run, now);
        }
        if run.ends_pdu()
            && let Some(left) = run.pdu().and_then(Pdu::last_cell_left)
        {
            let transfer = open.transfer.get_or_insert_default();
            transfer.record(now.since(left));
        }
        self.counters.cells_out += u64::from(run.count);
        let receiver = match &mut open.receiver {
            Receiver::Aal5(receiver) => receiver,
            Receiver::Aal0(cells) => {
                *cells += u64::from(run.count);
                self.single.received += u64::from(run.count);
                return NicEvent::Cells { run };
            }
        };
        let outcome = receiver.push(run);
        let failed = receiver.take_failed();
        log(&mut self.discards, NicDiscard::Reassembly, failed);
        match outcome {
            None => NicEvent::Nothing,
            Some(Ok(sdu)) => {
                self.counters.pdus_out += 1;
                NicEvent::Sdu { vc, sdu }
            }
            Some(Err(error)) => {
                self.pdus_bad += 1;
                NicEvent::Lost { vc, error }
            }
        }
    }

    /// Receives the next part of cells from the link that may be cells of a train: its whole PDUs together, or a single
    /// PDU. Call this until there is no rest.
    pub fn receive_next(&mut self, rest: &mut Option<CellRun>, now: Instant) -> NicEvent {
        let Some(run) = rest else {
            return NicEvent::Nothing;
        };
        let (vc, before, congested) = (run.vc, run.count, run.congested);
        let index = self.table.get(vc);
        let open = index.and_then(|index| self.open.get_mut(index));
        if let Some(open) = open
            && let Receiver::Aal5(receiver) = &mut open.receiver
            && let Some(part) = receiver.take_train(rest)
        {
            let cells = u64::from(before - rest.as_ref().map_or(0, |run| run.count));
            open.cells += cells;
            open.marked += if congested { cells } else { 0 };
            self.counters.cells_in += cells;
            self.counters.cells_out += cells;
            self.counters.pdus_out += u64::from(part.count());
            return NicEvent::Train {
                vc,
                part,
                congested,
            };
        }
        match CellRun::next_single(rest) {
            Some(run) => self.receive(run, now),
            None => NicEvent::Nothing,
        }
    }

    fn oam(&mut self, run: &CellRun, now: Instant) -> NicEvent {
        let queue = self.vc(run.vc).and_then(|open| open.queue);
        if let Some(answer) = answer_loopback(run, LoopbackPoint::EndPoint, [0x6a; 16])
            && let Some(queue) = queue
        {
            self.output.enqueue(queue, answer, now);
            return NicEvent::Answered;
        }
        if let Some([cell]) = run.raw_cells()
            && let Ok(Oam::Loopback(loopback)) = Oam::decode(&cell.payload)
            && !loopback.is_request()
        {
            return NicEvent::LoopbackReturned {
                vc: run.vc,
                tag: u32::from_be_bytes(loopback.tag),
            };
        }
        self.counters.dropped.add(DropReason::NotForUs, 1);
        NicEvent::Dropped(DropReason::NotForUs)
    }

    /// All open VCs.
    pub fn vcs(&self) -> impl Iterator<Item = NicVcView> {
        self.open.iter().map(|(_, open)| self.view(open))
    }

    /// An open VC; `None` if it is not open.
    #[must_use]
    pub fn view_of(&self, vc: Vc) -> Option<NicVcView> {
        let open = self.vc(vc).filter(|open| open.vc == vc)?;
        Some(self.view(open))
    }

    fn view(&self, open: &OpenVc) -> NicVcView {
        let queue = open.queue;
        NicVcView {
            vc: open.vc,
            queued: queue.map_or(0, |queue| self.output.queued(queue)),
            lost_time: queue.and_then(|queue| self.output.lost_time(queue)),
            sent: queue
                .and_then(|queue| self.output.counters(queue))
                .unwrap_or_default(),
            sends: queue.is_some(),
            received: open.receiver.counters(),
            cells_received: open.cells,
            cells_marked: open.marked,
        }
    }

    /// Transfer delays of the last cells of PDUs that arrived on a VC; `None` if no PDU arrived, or the driver does not
    /// know the times.
    #[must_use]
    pub fn transfer(&self, vc: Vc) -> Option<&Distribution> {
        self.vc(vc)?.transfer.as_deref()
    }
}
