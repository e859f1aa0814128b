//! Rows of cells: connections end to end, losses, queues, policers, links and levels of buffers.

use crate::circuits::{Circuit, Circuits, LinkWay, Loss, PolicerState, Queue};
use crate::model::{Lab, NodeId};
use crate::occupancy::Sample;
use aerostat_node::atm::{CellCounters, DropReason, UpcReason};
use aerostat_node::distribution::Summary;
use aerostat_node::inspect::{Flag, Name};
use aerostat_node::{group, rows};
use aerostat_wire::Vc;

group! {
    /// Times of a distribution of cells.
    pub struct Ctd for (transfer: &Summary) {
        /// Cells measured: the last ones of PDUs.
        pub cells: u64 = transfer.count,
        /// Smallest.
        pub min: f64 = transfer.min_us,
        /// Arithmetic mean.
        pub mean: f64 = transfer.mean_us,
        /// Median.
        pub p50: f64 = transfer.p50_us,
        /// 99th percentile.
        pub p99: f64 = transfer.p99_us,
        /// 99.9th percentile.
        pub p99_9: f64 = transfer.p999_us,
        /// Largest.
        pub max: f64 = transfer.max_us,
        /// Standard deviation of the values measured.
        pub standard_deviation: f64 = transfer.std_dev_us,
    }

    /// Times above the smallest one of a distribution of cells.
    pub struct Cdv for (transfer: &Summary) {
        /// Arithmetic mean.
        pub mean: f64 = transfer.mean_us - transfer.min_us,
        /// Median.
        pub p50: f64 = transfer.p50_us - transfer.min_us,
        /// 99th percentile.
        pub p99: f64 = transfer.p99_us - transfer.min_us,
        /// 99.9th percentile.
        pub p99_9: f64 = transfer.p999_us - transfer.min_us,
        /// Largest: the peak-to-peak CDV.
        pub max: f64 = transfer.max_us - transfer.min_us,
    }
}

rows! {
    /// Tables of this module, in the order of the results.
    pub(super) const TABLES;

    /// One row for each direction of a connection that stands at the end and each receiver of it.
    pub struct VcRow: "vcs" for (lab: &Lab, circuit: &Circuit, transfer: &Summary) {
        /// Node whose adapter sends.
        pub from: String = name(lab, circuit.from.node),
        /// VPI.VCI on its link.
        pub from_vc: Vc = circuit.from.vc,
        /// Node at the receiving end: an end system, or a switch for signalling and ILMI.
        pub to: Option<String> = circuit.to.map(|to| name(lab, to.node)),
        /// VPI.VCI there.
        pub to_vc: Option<Vc> as Detail(4) = circuit.to.map(|to| to.vc),
        /// User of the connection at the sender, such as `lec0`; `signalling` for signalling and ILMI.
        pub user: Option<String> = user(circuit),
        /// Point-to-multipoint: there is a row for each leaf.
        pub multipoint: Flag as Detail(2) = Flag(circuit.user.as_ref().is_some_and(|user| user.multipoint)),
        /// Service class: `cbr`, `rt-vbr`, `nrt-vbr`, `abr` or `ubr`; `control` for signalling and ILMI, which have no
        /// contract.
        pub class: Name = circuit.class.into(),
        /// Switches on the way.
        pub switches: usize as Detail(3) = circuit.switches,
        /// Cells given to the sending adapter, except those sent before the row began.
        pub cells_offered: u64 as Detail(6) = circuit.offered,
        /// Of these, cells for which its queue had no room, or which went with its link.
        pub cells_refused: u64 as Detail(1) = circuit.refused,
        /// Of these, cells that wait there at the end.
        pub cells_waiting: u64 as Detail(0) = circuit.waiting,
        /// Of these, cells that left the adapter, for a leaf since it was added: offered = refused + waiting + sent.
        pub cells_sent: u64 as Detail(7) = circuit.sent,
        /// Cells that the receiving end took.
        pub cells_delivered: u64 = circuit.delivered,
        /// Cells lost between; table `losses` says where.
        pub cells_lost: u64 = circuit.lost_cells(),
        /// Cells in queues of switches and on links at the end: sent = delivered + lost + under way.
        pub cells_under_way: u64 as Detail(5) = circuit.under_way,
        /// Cell loss ratio: lost / (lost + delivered).
        pub clr: Option<f64> = circuit.loss_ratio(),
        /// AAL5 PDUs put together at the receiver.
        pub pdus_delivered: u64 = circuit.sdus,
        /// AAL5 PDUs that it threw away, because cells were missing or damaged.
        pub pdus_bad: u64 = circuit.bad_pdus,
        /// Of the delivered cells, those of no PDU that was put together: of a PDU that lost other cells, of a PDU that
        /// has not ended, or of OAM.
        pub cells_wasted: Option<u64> as Detail(8) = circuit.wasted,
        /// Cell transfer delay, µs: from the first bit's leaving the sending adapter to the last bit's arrival.
        pub ctd_us: Option<Ctd> = (transfer.count > 0).then(|| Ctd::of(transfer)),
        /// Cell delay variation, µs: the transfer delay less the smallest one.
        pub cdv_us: Option<Cdv> = (transfer.count > 0).then(|| Cdv::of(transfer)),
    }

    /// One row for each place where a connection of `vcs` lost cells.
    pub struct LossRow: "losses" for (lab: &Lab, circuit: &Circuit, loss: &Loss) {
        /// As in `vcs`.
        pub from: String = name(lab, circuit.from.node),
        /// As in `vcs`.
        pub from_vc: Vc = circuit.from.vc,
        /// As in `vcs`.
        pub to: Option<String> = circuit.to.map(|to| name(lab, to.node)),
        /// As in `vcs`.
        pub to_vc: Option<Vc> = circuit.to.map(|to| to.vc),
        /// Node that dropped the cells, or from which the link leads that lost them.
        pub node: String = name(lab, loss.node),
        /// Port of the node: that of the policer, the queue or the link.
        pub port: u16 = loss.port,
        /// `link`, or why the node dropped them.
        pub reason: Name = loss.reason.map_or("link", DropReason::name).into(),
        /// Cells lost.
        pub cells: u64 = loss.cells,
    }

    /// One row for each queue that is open at the end: one per VC at each output port of end systems and switches.
    pub struct QueueRow: "queues" for (lab: &Lab, queue: &Queue) {
        /// The node.
        pub node: String = name(lab, queue.place.node),
        /// Its port; 0 on an end system.
        pub port: u16 = queue.place.port,
        /// VPI.VCI on the outgoing link.
        pub vc: Vc = queue.place.vc,
        /// Service class, which decides the order of service; `control` for signalling and ILMI: in switches before
        /// best effort, in adapters as best effort.
        pub class: Name = queue.class.into(),
        /// Cells offered to the queue.
        pub cells_in: u64 = queue.counters.cells_in,
        /// Cells sent.
        pub cells_out: u64 = queue.counters.cells_out,
        /// AAL5 PDUs of which the last cell was sent.
        pub pdus_out: u64 = queue.counters.pdus_out,
        /// Cells that wait at the end.
        pub cells_waiting: u32 = queue.waiting,
        /// Most cells that waited at a time.
        pub cells_peak: u32 = queue.peak,
        /// Most cells that the queue holds, except the last cell of a frame, which may be one more.
        pub cells_limit: u32 = queue.limit,
        /// Cells dropped because the queue or the port's buffer was full.
        pub dropped_overflow: u64 = queue.counters.dropped.of(DropReason::Overflow),
        /// Cells of whole frames dropped because the queue was long when the frame began.
        pub dropped_early_discard: u64 = queue.counters.dropped.of(DropReason::EarlyDiscard),
        /// The other cells of frames that had lost one.
        pub dropped_partial_discard: u64 = queue.counters.dropped.of(DropReason::PartialDiscard),
        /// Cells with CLP 1 dropped above the threshold.
        pub dropped_low_priority: u64 = queue.counters.dropped.of(DropReason::LowPriority),
        /// Cells that waited when the link failed, or came while it was down.
        pub dropped_link_down: u64 = queue.counters.dropped.of(DropReason::LinkDown),
        /// Dropped / (dropped + sent).
        pub clr: Option<f64> = ratio(&queue.counters),
    }

    /// One row for each direction of a connection that a switch holds to its contract.
    pub struct PolicerRow: "policers" for (lab: &Lab, policer: &PolicerState) {
        /// The switch.
        pub node: String = name(lab, policer.place.node),
        /// Port where the cells come in.
        pub port: u16 = policer.place.port,
        /// VPI.VCI there.
        pub vc: Vc = policer.place.vc,
        /// The contract, in the words of qos(7).
        pub contract: String = policer.traffic.to_string(),
        /// Cells that came.
        pub cells_in: u64 = policer.counters.cells_in,
        /// Cells that went on, tagged ones too.
        pub cells_passed: u64 = policer.counters.cells_in - policer.counters.dropped.of(DropReason::Policed),
        /// Of these, cells that were given CLP 1.
        pub cells_tagged: u64 = policer.counters.tagged,
        /// Cells that did not conform.
        pub cells_discarded: u64 = policer.counters.dropped.of(DropReason::Policed),
        /// Conformance definition, CBR.1 to UBR.2.
        pub conformance: Option<String> = policer.traffic.conformance().map(|name| name.to_string()),
        /// Cells above the peak rate, discarded.
        pub over_peak: u64 = policer.upc.of(UpcReason::Peak),
        /// Cells with CLP 0 above their own peak rate, discarded or tagged.
        pub over_peak_clp0: u64 = policer.upc.of(UpcReason::PeakClp0),
        /// Cells above the sustainable rate and its bursts, discarded or tagged.
        pub over_sustained: u64 = policer.upc.of(UpcReason::Sustained),
    }

    /// One row for each direction of a link.
    pub struct LinkRow: "links" for (lab: &Lab, way: &LinkWay) {
        /// Name of the link.
        pub link: String = lab.link(way.link).name.clone(),
        /// Sending node.
        pub from: String = name(lab, way.ends[0].node),
        /// Receiving node.
        pub to: String = name(lab, way.ends[1].node),
        /// Cells per second that the line carries, at the end if they changed.
        pub rate_cps: f64 = way.rate.numerator() as f64 / way.rate.denominator() as f64,
        /// Delay of the line, at the end if it changed.
        pub delay_us: f64 = way.delay.as_nanos() as f64 / 1e3,
        /// Cells put on the line: sent = delivered + lost + discarded + down + under way.
        pub cells_sent: u64 = way.counters.sent,
        /// Cells given to the receiving node.
        pub cells_delivered: u64 = way.counters.delivered,
        /// Cells lost at random (`loss:`, `block_errors:`).
        pub cells_lost: u64 = way.counters.lost,
        /// Of these, cells of blocks that were lost whole (`block_errors:`).
        pub cells_lost_in_blocks: u64 = way.counters.in_blocks,
        /// Cells whose header had errors that could not be corrected.
        pub cells_discarded: u64 = way.counters.discarded,
        /// Cells sent or on the way while the link was down.
        pub cells_down: u64 = way.counters.down,
        /// Cells on the line at the end.
        pub cells_under_way: u64 = way.on_the_way,
        /// Cells with wrong bits (`bit_errors:`), discarded ones too.
        pub cells_damaged: u64 = way.counters.damaged,
        /// Of these, cells whose header was corrected.
        pub headers_corrected: u64 = way.counters.corrected,
        /// Frames of Ethernet that carried the cells; null if the line carries cells one by one.
        pub frames: Option<u64> = lab.link(way.link).framing.map(|_| way.counters.frames),
        /// Share of the run in which the line was busy, 0 to 1.
        pub utilisation: f64 = way.utilisation,
    }

    /// One row for each sample of `occupancy:` and port of a switch in front of its links; only labs with that key have
    /// it. A cell that has begun to leave does not count.
    pub struct OccupancyRow: "occupancy" for (lab: &Lab, sample: &Sample) {
        /// Time of the sample.
        pub time_s: f64 = sample.at.as_nanos() as f64 / 1e9,
        /// The switch.
        pub node: String = name(lab, sample.port.node),
        /// The link.
        pub link: String = lab.link(sample.port.link).name.clone(),
        /// Cells in the buffer of CBR and VBR.
        pub guaranteed: u32 = sample.cells[0],
        /// Cells in the buffer of ABR, GFR and UBR.
        pub best_effort: u32 = sample.cells[1],
    }
}

fn name(lab: &Lab, node: NodeId) -> String {
    lab.node(node).name.clone()
}

fn user(circuit: &Circuit) -> Option<String> {
    match &circuit.user {
        Some(user) => user.user.clone(),
        None => Some("signalling".to_owned()),
    }
}

/// Share of lost cells among the cells whose fate is known; `None` without cells.
fn ratio(counters: &CellCounters) -> Option<f64> {
    let lost = counters.dropped.total();
    let known = counters.cells_out + lost;
    (known > 0).then(|| lost as f64 / known as f64)
}

/// Samples of the buffers of ports.
pub(super) fn occupancy(lab: &Lab, samples: &[Sample]) -> Vec<OccupancyRow> {
    let samples = samples.iter();
    samples
        .map(|sample| OccupancyRow::of(lab, sample))
        .collect()
}

/// Directions of connections, each by its receivers.
pub(super) fn vcs(lab: &Lab, circuits: &Circuits) -> Vec<VcRow> {
    let all = circuits.circuits.iter();
    all.map(|circuit| VcRow::of(lab, circuit, &circuit.transfer.summary()))
        .collect()
}

/// Places where connections lost cells.
pub(super) fn losses(lab: &Lab, circuits: &Circuits) -> Vec<LossRow> {
    let all = circuits.circuits.iter();
    let all = all.flat_map(|circuit| circuit.lost.iter().map(move |loss| (circuit, loss)));
    all.map(|(circuit, loss)| LossRow::of(lab, circuit, loss))
        .collect()
}

/// Queues of output ports.
pub(super) fn queues(lab: &Lab, circuits: &Circuits) -> Vec<QueueRow> {
    let all = circuits.queues.iter();
    all.map(|queue| QueueRow::of(lab, queue)).collect()
}

/// Policers of switches.
pub(super) fn policers(lab: &Lab, circuits: &Circuits) -> Vec<PolicerRow> {
    let all = circuits.policers.iter();
    all.map(|policer| PolicerRow::of(lab, policer)).collect()
}

/// Directions of links.
pub(super) fn links(lab: &Lab, circuits: &Circuits) -> Vec<LinkRow> {
    let all = circuits.links.iter();
    all.map(|way| LinkRow::of(lab, way)).collect()
}
