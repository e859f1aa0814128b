//! Rows of a switch: `inspect vc`, `call`, `port`, `route` and `pvc`. `switch/tables.rs` makes them.

use super::microseconds;
use super::words::{Permanence, WayState};
use crate::atm::fabric::ConnectionView;
use crate::atm::{CellCounters, DropReason, Limits, PathView, QueueView, UpcReason};
use crate::switch::{CallInfo, PermanentInfo, PortInfo, PortKind, PortNo, Way};
use aerostat_proto::Cause;
use aerostat_proto::interface::Phase;
use aerostat_wire::{AtmAddress, Qos, Vc};

crate::rows! {
    /// Tables about switches.
    pub const TABLES;

    /// One row for each ATM port of the node.
    pub struct Port: "port.ports" for (port: PortInfo, input: CellCounters, sent: CellCounters, queued: u32) {
        /// Number of the port; 0 on an end system.
        pub port: u16 = port.port.0,
        /// System at the port (switches).
        pub name: String = port.name,
        /// `Host`, or what kind of switch port it is (switches).
        pub kind: PortKind = port.kind,
        /// State of the signalling link (switches).
        pub signalling: Phase = port.phase,
        /// Calls that use the port.
        pub calls: usize = port.calls,
        /// Calls that are being set up.
        pub pending: usize = port.pending,
        /// VCs in use.
        pub labels: usize = port.labels,
        /// Cells per second that contracts reserve towards the link.
        pub reserved_tx_cps: u64 = port.reserved.0,
        /// Cells per second that contracts reserve from the link.
        pub reserved_rx_cps: u64 = port.reserved.1,
        /// Cells that came from the link.
        pub cells_in: u64 = input.cells_in,
        /// Cells sent to the link.
        pub cells_out: u64 = sent.cells_out,
        /// Cells dropped, both ways.
        pub cells_dropped: u64 = input.dropped.total() + sent.dropped.total(),
        /// Cells that wait in the queues of the port.
        pub queued_cells: u64 = queued.into(),
    }

    /// One row for each VC that comes in at a port.
    pub struct Connection: "vc.connections" for (view: ConnectionView, name: &str, out: String, call: Option<&(Option<AtmAddress>, AtmAddress)>) {
        /// Port at which cells come in.
        pub in_port: u16 = view.from.port,
        /// Neighbour at that port.
        pub name: String = name.to_owned(),
        /// VPI.VCI there.
        pub in_vc: Vc = view.from.vc,
        /// Neighbours at the ports at which cells go out, each with its VPI.VCI; or `control plane`.
        pub out: String = out,
        /// ATM address of the caller; empty for a permanent connection.
        pub calling: Option<AtmAddress> = call.and_then(|(calling, _)| *calling),
        /// ATM address of the called party, of the first one if there are several; empty for a permanent connection.
        pub called: Option<AtmAddress> = call.map(|(_, called)| *called),
        /// The contract; `control` for signalling and ILMI, which have none.
        pub traffic: String = if view.local { "control".to_owned() } else { view.traffic.to_string() },
        /// Cells that came in.
        pub cells_in: u64 = view.counters.cells_in,
        /// Cells that went out; a cell for several leaves counts for each.
        pub cells_out: u64 = view.counters.cells_out,
        /// Cells dropped.
        pub cells_dropped: u64 = view.counters.dropped.total(),
        /// Conformance definition to which the switch holds the cells, such as VBR.3; empty if it lets all of them
        /// pass.
        pub policed: Option<String> = view.traffic.conformance().filter(|_| view.policed).map(|name| name.to_string()),
        /// Cells above the peak rate, which were dropped.
        pub over_peak: u64 = view.upc.of(UpcReason::Peak),
        /// Cells with CLP 0 above their own peak rate, dropped or tagged.
        pub over_peak_clp0: u64 = view.upc.of(UpcReason::PeakClp0),
        /// Cells above the sustainable rate and its bursts, dropped or tagged.
        pub over_sustained: u64 = view.upc.of(UpcReason::Sustained),
        /// Cells that were given CLP 1.
        pub cells_tagged: u64 = view.counters.tagged,
    }

    /// One row for each queue of the ports of a switch.
    pub struct Queue: "queue.queues" for (at: (u16, &str), view: &QueueView) {
        /// The port.
        pub port: u16 = at.0,
        /// Neighbour at the port.
        pub name: String = at.1.to_owned(),
        /// VPI.VCI on the outgoing link.
        pub vc: Vc = view.vc,
        /// Service class; `control` for signalling and ILMI, which are served before best effort.
        pub class: String = view.class.to_owned(),
        /// Weight at a port that serves by weight.
        pub weight: Option<u16> = view.weight,
        /// Cells per second that such a port gives it at least.
        pub least_cps: Option<u32> = Some(view.least).filter(|rate| *rate > 0),
        /// Shaped path that it is in.
        pub tunnel: Option<u16> = view.path,
        /// `yes` if it is shaped to its contract.
        pub shaped: bool = view.shaped,
        /// Cells that wait.
        pub waiting: u32 = view.waiting,
        /// Largest number of cells that waited at a time.
        pub peak: u32 = view.peak,
        /// Cells that it holds at most.
        pub limit: u32 = view.limits.max,
        /// Cells from which new frames are discarded; empty if it does not discard frames.
        pub epd: Option<u32> = view.frame_discard.then_some(view.limits.early),
        /// Cells from which cells with CLP 1 are discarded.
        pub clp: u32 = view.limits.low_priority,
        /// Cells from which user cells are marked; empty if they never are.
        pub efci: Option<u32> = reached(view.limits.mark),
        /// Cells that came.
        pub cells_in: u64 = view.counters.cells_in,
        /// Cells that left.
        pub cells_out: u64 = view.counters.cells_out,
        /// Cells that were marked here.
        pub marked: u64 = view.marked,
        /// Cells for which the queue, or the buffer of the port, had no room.
        pub overflow: u64 = view.counters.dropped.of(DropReason::Overflow),
        /// Cells of frames that were discarded whole.
        pub early: u64 = view.counters.dropped.of(DropReason::EarlyDiscard),
        /// Further cells of frames that had lost a cell.
        pub partial: u64 = view.counters.dropped.of(DropReason::PartialDiscard),
        /// Cells with CLP 1 that were discarded above the threshold.
        pub low_priority: u64 = view.counters.dropped.of(DropReason::LowPriority),
        /// Cells that waited when the link failed, or came while it was down.
        pub link_down: u64 = view.counters.dropped.of(DropReason::LinkDown),
    }

    /// One row for each of the two buffers that the queues of a port share.
    pub struct Buffer: "queue.buffers" {
        /// The port.
        pub port: u16,
        /// Neighbour at the port.
        pub name: String,
        /// Order of service: `round-robin`, `weighted` or `per-class`.
        pub scheduler: String,
        /// `guaranteed` (CBR and VBR) or `best effort`.
        pub buffer: String,
        /// Cells that wait.
        pub waiting: u32,
        /// Cells that it holds at most.
        pub limit: u32,
        /// Cells from which new frames are discarded.
        pub epd: u32,
        /// Cells from which cells with CLP 1 are discarded.
        pub clp: u32,
        /// Cells from which user cells are marked; empty if they never are.
        pub efci: Option<u32>,
    }

    /// One row for each shaped path of a port.
    pub struct Tunnel: "queue.tunnels" for (at: (u16, &str), vpi: u16, view: &PathView, reserved: u64) {
        /// The port.
        pub port: u16 = at.0,
        /// Neighbour at the port.
        pub name: String = at.1.to_owned(),
        /// VPI on the outgoing link.
        pub vpi: u16 = vpi,
        /// Peak rate, cells per second.
        pub pcr_cps: u32 = view.pcr,
        /// Tolerance, µs.
        pub cdvt_us: u64 = microseconds(view.cdvt),
        /// Cells per second that its connections reserve towards the link.
        pub reserved_cps: u64 = reserved,
        /// Queues in it.
        pub queues: u32 = view.queues,
        /// Cells that wait in them.
        pub waiting: u32 = view.waiting,
        /// Cells that have left.
        pub cells_out: u64 = view.cells_out,
    }

    /// One row for each call of a switch.
    pub struct Call: "call.calls" for (call: CallInfo, name: &str, out: String, tried: String) {
        /// Number of the call (switches).
        pub call: u64 = call.id.0,
        /// Port of the caller (switches).
        pub in_port: u16 = call.root.port.0,
        /// Neighbour at that port (switches).
        pub name: String = name.to_owned(),
        /// VPI.VCI there (switches).
        pub in_vc: Option<Vc> = call.root.vc,
        /// Neighbours at the ports of the called parties, each with its VPI.VCI (switches).
        pub out: String = out,
        /// ATM address of the caller.
        pub calling: Option<AtmAddress> = call.calling,
        /// ATM address of the called party.
        pub called: AtmAddress = call.called,
        /// Purpose of the call: B-LLI.
        pub blli: Option<String> = call.blli.map(|blli| format!("{blli:?}")),
        /// Purpose of the call: B-HLI.
        pub bhli: Option<String> = call.bhli.map(|bhli| format!("{bhli:?}")),
        /// `yes` or `no` (switches).
        pub multipoint: bool = call.multipoint,
        /// `yes` if the called party has answered (switches).
        pub accepted: bool = call.accepted,
        /// Neighbours at the ports by which the call was tried in vain, each with the cause (switches).
        pub tried: Option<String> = (!tried.is_empty()).then_some(tried),
    }

    /// One row for each cause with which calls ended at a port of a switch.
    pub struct CauseCount: "call.causes" for (port: PortNo, name: &str, cause: Cause, calls: u64) {
        /// The port.
        pub port: u16 = port.0,
        /// Neighbour at the port.
        pub name: String = name.to_owned(),
        /// The cause, Q.2610.
        pub cause: String = cause.to_string(),
        /// Calls that ended with it.
        pub calls: u64 = calls,
    }

    /// One row for each counter of a port's signalling that is not zero.
    pub struct PortCounter: "call.signalling" for (port: PortNo, name: &str, counter: String, value: u64) {
        /// The port.
        pub port: u16 = port.0,
        /// Neighbour at the port.
        pub name: String = name.to_owned(),
        /// Name of the counter.
        pub counter: String = counter,
        /// Events since the node started.
        pub value: u64 = value,
    }

    /// One row for each permanent connection at a switch.
    pub struct Permanent: "pvc.permanent" for (info: PermanentInfo, ends: [String; 2], state: String) {
        /// Port and label of one end.
        pub a: String = ends[0].clone(),
        /// Port and label of the other.
        pub b: String = ends[1].clone(),
        /// `channel` or `path`.
        pub kind: Permanence as Detail(1) = if info.connection.path { Permanence::Path } else { Permanence::Channel },
        /// The contract, as in qos(7).
        pub qos: Qos as Detail(2) = info.connection.qos,
        /// `yes` if the switch holds the cells of an end, or of both, to it.
        pub policed: bool as Detail(0) = info.held.contains(&true),
        /// Cells that came from end a.
        pub cells_a: u64 = info.cells[0],
        /// Cells that came from end b.
        pub cells_b: u64 = info.cells[1],
        /// Cells that did not conform.
        pub cells_dropped: u64 = info.policed[0] + info.policed[1],
        /// Cells that were given CLP 1.
        pub cells_tagged: u64 = info.tagged[0] + info.tagged[1],
        /// `up`, or `down: ` and the links of this switch that carry nothing.
        pub state: String = state,
    }

    /// One row for each way to a prefix of addresses.
    pub struct Route: "route.routes" for (prefix: &[u8], way: &Way, name: &str, order: u64, state: WayState) {
        /// Leading octets of the addresses.
        pub prefix: String = AtmAddress::leading(prefix),
        /// Number of these octets.
        pub length_octets: usize as Detail(0) = prefix.len(),
        /// Port over which calls leave.
        pub port: u16 as Detail(1) = way.port.0,
        /// Neighbour at the port.
        pub name: String = name.to_owned(),
        /// 1 for the best ways, 2 for the next best.
        pub order: u64 = order,
        /// Switches on the way; empty if no path is left.
        pub hops: Option<u16> = way.hops,
        /// State of the way for calls now.
        pub state: WayState = state,
    }
}

/// A threshold, unless no level reaches it.
pub(crate) fn reached(threshold: u32) -> Option<u32> {
    (threshold != Limits::NEVER).then_some(threshold)
}
