//! Rows of programs with ATM sockets, and of shortcuts.

use super::flows::Times;
use super::rounded;
use crate::dialogues::{Dialogue, Tested, WindowStep};
use crate::report::RunReport;
use aerostat_node::host::sockets::programs::{Amount, Figures, Measured};
use aerostat_node::inspect::mpoa::MpcIngress;
use aerostat_node::inspect::nhrp::Way;
use aerostat_node::inspect::{Counts, Name, Rare, Row, Table, Tag};
use aerostat_node::rows;
use aerostat_proto::Duration;
use aerostat_proto::mpoa::mpc::IngressState;
use aerostat_wire::{AtmAddress, Vc};

rows! {
    /// Tables of this module, in the order of the results.
    pub(super) const TABLES;

    /// One row for each destination for which a client asked: the ingress caches of MPOA clients and the ways of NHRP
    /// clients.
    pub struct ShortcutRow: "shortcuts" {
        /// The host.
        pub from: String,
        /// `mpoa` or `nhrp`: whose client it is.
        pub by: Name,
        /// IP address, or network.
        pub destination: String,
        /// State of the entry.
        pub state: Name,
        /// Seconds for which the entry still holds.
        pub holding_s: Option<u64>,
        /// Packets sent by the shortcut.
        pub packets: u64,
        /// VPI of the shortcut at the host.
        pub vpi: Option<u16>,
        /// VCI of the shortcut at the host.
        pub vci: Option<u16>,
        /// ATM address at the other end.
        pub egress: Option<AtmAddress>,
        /// MPOA tag that the egress asked for.
        pub tag: Option<Tag> as Detail(4),
        /// Control address of the MPOA server.
        pub mps: Option<AtmAddress> as Detail(5),
        /// Code of the last answer that was no success.
        pub last_code: Option<u16> as Detail(7),
        /// Cause of the last call that failed, or of a release that was not normal.
        pub last_cause: Option<u8> as Detail(6),
        /// Protocol of a flow with QoS of its own.
        pub protocol: Option<Name> as Detail(3),
        /// Destination port of a flow with QoS of its own.
        pub port: Option<u16> as Detail(2),
        /// Contract of a flow with QoS of its own.
        pub traffic: Option<Name> as Detail(1),
        /// The network had no bandwidth for that contract.
        pub fallback: Option<bool> as Detail(0),
    }

    /// One row for each call between programs with ATM sockets, and for each permanent connection over all lives of its
    /// hosts, and direction in which PDUs were offered. `offered = sent + refused + waiting`, `sent = delivered + lost
    /// + under_way`.
    pub struct ProgramRow: "programs" for (dialogue: &Dialogue) {
        /// Node of the program that writes.
        pub from: String = dialogue.from.0.clone(),
        /// That program.
        pub program: String = dialogue.from.1.clone(),
        /// Node of the program that reads; nothing if the connection leads out of the lab or to a user that is no
        /// program, and for answers to a caller that is not known.
        pub to: Option<String> = dialogue.to.as_ref().map(|to| to.0.clone()),
        /// That program.
        pub reader: Option<String> as Detail(14) = dialogue.to.as_ref().map(|to| to.1.clone()),
        /// Last state of the connection at the end that writes: `calling`, `accepted`, `open` or `ended`; `ended` if
        /// its host was switched off.
        pub state: Name = dialogue.state.of_call().into(),
        /// PDUs that the program began to write, or had to send back.
        pub offered: u64 = dialogue.offered,
        /// Of these, PDUs that were never sent, also because the host was switched off.
        pub refused: u64 as Detail(13) = dialogue.refused,
        /// PDUs that wait for room in the adapter.
        pub waiting: u64 as Detail(10) = dialogue.waiting,
        /// PDUs that were written after their time.
        pub late: u64 as Detail(11) = dialogue.late,
        /// PDUs that the adapter took.
        pub sent: u64 as Detail(12) = dialogue.sent,
        /// PDUs that reached a program; nothing if the connection leads out of the lab, or to a user that is no
        /// program.
        pub delivered: Option<u64> = dialogue.delivered,
        /// PDUs that were lost; nothing if `delivered` is nothing.
        pub lost: Option<u64> = dialogue.delivered.map(|_| dialogue.lost()),
        /// Lost PDUs by node, port or link, and reason, as in `flows`.
        pub lost_by: Counts as Detail(15) = dialogue.lost_by.clone(),
        /// PDUs that are in queues, on links or in hosts at the end.
        pub under_way: Option<u64> as Detail(8) = dialogue.delivered.map(|_| dialogue.under_way),
        /// Octets of the PDUs delivered; nothing if `delivered` is nothing.
        pub delivered_octets: Option<u64> as Detail(6) = dialogue.delivered.map(|_| dialogue.delivered_octets),
        /// Time from the first to the last PDU that the adapter took; of a permanent connection the sum over all lives
        /// of its host.
        pub duration_s: f64 as Detail(7) = dialogue.duration.as_secs_f64(),
        /// `delivered_octets` over the time from the first PDU that the adapter took to the last one taken or
        /// delivered, or that of `offered` PDUs at the rate of the program until the end of the run, if that is longer,
        /// Mbit/s; in the last life of the host with PDUs; null if nothing was delivered, and for a single PDU of a
        /// program without a rate.
        pub throughput_mbps: Option<f64> as Detail(17) = dialogue.delivered.and(dialogue.throughput_mbps),
        /// Time from the writer's adapter to the reading program, in the last life of the host with PDUs; its values
        /// are null if no PDU was delivered.
        pub delay_us: Times as Detail(16) = Times::of(&dialogue.delay),
        /// Cause of the release (Q.2610) that cut the connection off before the program had begun its last PDU.
        pub cause: Rare<String> = Rare(dialogue.cut.and_then(|cut| cut.cause).map(|cause| cause.to_string())),
    }

    /// One row for each end of a connection whose programs use ATP, if PDUs were offered there; only in labs with such
    /// programs. The figures are those of the last life of the host.
    pub struct AtpRow: "atp" for (dialogue: &Dialogue, seen: &Figures) {
        /// Node of the program.
        pub node: String = dialogue.from.0.clone(),
        /// The program.
        pub program: String = dialogue.from.1.clone(),
        /// Rules: `report` or `adaptive`.
        pub profile: Name = format!("{:?}", seen.profile).to_lowercase().into(),
        /// `open`, `complete`, or why it ended.
        pub outcome: String = seen.outcome.text(),
        /// `octets_sent` over `send_s`, Mbit/s.
        pub send_mbps: Option<f64> = mbps(seen.sent),
        /// `octets_received` without those of the first packet, over `receive_s`, Mbit/s; nothing if that is 0.
        pub receive_mbps: Option<f64> = mbps(seen.received),
        /// Octets of these.
        pub octets_sent: u64 as Detail(16) = seen.sent.octets,
        /// Octets of these.
        pub octets_received: u64 as Detail(17) = seen.received.octets,
        /// Octets that the program had not given to ATP.
        pub left: u64 as Detail(21) = seen.left,
        /// Time from the first message given until everything was acknowledged; nothing before.
        pub send_s: Option<f64> as Detail(13) = seconds(seen.sent.time),
        /// Time from the first packet to the last packet of the last complete message.
        pub receive_s: f64 as Detail(14) = seen.received.time.as_secs_f64(),
        /// Messages given to ATP.
        pub messages_sent: u64 as Detail(10) = seen.sent.messages,
        /// Complete messages received.
        pub messages_received: u64 as Detail(11) = seen.received.messages,
        /// Messages that an echo could not send back.
        pub refused: u64 as Detail(9) = seen.refused,
        /// Time from the first message given to the last complete message that came back; nothing if no message came
        /// back.
        pub turn_s: Option<f64> as Detail(15) = seconds(seen.turn),
        /// Packets sent for the first time.
        pub packets_sent: u64 as Detail(23) = seen.counters.packets_sent,
        /// Packets sent again.
        pub packets_repeated: u64 as Detail(24) = seen.counters.packets_repeated,
        /// Packets received for the first time.
        pub packets_received: u64 as Detail(12) = seen.counters.packets_received,
        /// Packets received that were there already.
        pub duplicates: u64 as Detail(5) = seen.counters.duplicates,
        /// Packets dropped: the user did not read.
        pub no_room: u64 as Detail(7) = seen.counters.no_room,
        /// Packets dropped: their number was too far ahead.
        pub out_of_window: u64 as Detail(8) = seen.counters.out_of_window,
        /// SDUs that are no PDU of ATP, or are longer than the MTU.
        pub malformed: u64 as Detail(6) = seen.counters.malformed,
        /// ACKs sent.
        pub acks_sent: u64 as Detail(2) = seen.counters.acks_sent,
        /// NAKs sent.
        pub naks_sent: u64 as Detail(3) = seen.counters.naks_sent,
        /// NAKs received.
        pub naks_received: u64 as Detail(4) = seen.counters.naks_received,
        /// Expired retransmission timers.
        pub timeouts: u64 as Detail(22) = seen.counters.timeouts,
        /// Smallest window, packets.
        pub window_min: f64 as Detail(1) = packets(seen.window[0]),
        /// Largest window, packets.
        pub window_max: f64 as Detail(19) = packets(seen.window[1]),
        /// Last window, packets.
        pub window_last: f64 as Detail(18) = packets(seen.window[2]),
        /// Smoothed round trip at the end.
        pub round_trip_us: f64 as Detail(20) = seen.round_trip.as_secs_f64() * 1e6,
        /// Changes of the window that `atp_window` does not have, because it has 10 000 of the connection.
        pub steps_left_out: u64 as Detail(0) = seen.steps_left_out,
    }

    /// One row for each change of the window of a program with `series: true` in `atp:`; only in labs with such
    /// programs. Those of the last life of the host, by its clock.
    pub struct WindowRow: "atp_window" for (change: &WindowStep) {
        /// When.
        pub time_s: f64 = change.step.at.as_nanos() as f64 / 1e9,
        /// Node of the program.
        pub node: String = change.at.0.clone(),
        /// The program.
        pub program: String = change.at.1.clone(),
        /// Number of its connection on the host, from 0.
        pub connection: u64 = change.connection,
        /// Window since then, packets.
        pub window: f64 = packets(change.step.window),
        /// Smoothed round trip then, µs; before the first measurement the one that ATP begins with.
        pub round_trip_us: f64 = rounded(change.step.round_trip.as_secs_f64() * 1e6, 3),
    }

    /// One row for each tester of cells (after ITU-T O.191): what it has measured in the last life of its host; only in
    /// labs with testers. Cells that are lost behind the last received one are in `programs` only.
    pub struct TesterRow: "cells" for (tested: &Tested, seen: &Measured) {
        /// Node of the tester.
        pub node: String = tested.at.0.clone(),
        /// The tester.
        pub program: String = tested.at.1.clone(),
        /// VPI.VCI of its connection there.
        pub vc: Vc = tested.vc,
        /// Cells that came in order and undamaged.
        pub received: u64 = seen.received,
        /// Cells that came damaged.
        pub errored: u64 = seen.errored,
        /// Cells that did not come.
        pub lost: u64 = seen.lost,
        /// Cells that came and did not belong there.
        pub misinserted: u64 = seen.misinserted,
        /// Times that the sender began again.
        pub restarts: u64 = seen.restarts,
        /// Time from the first to the last cell.
        pub time_s: f64 = seen.time.as_secs_f64(),
        /// Cell loss ratio: lost / (received + errored + lost).
        pub clr: Option<f64> = seen.loss_ratio(),
        /// Cell error ratio: errored / (received + errored).
        pub cer: Option<f64> = seen.error_ratio(),
        /// Cell misinsertion rate: misinserted / `time_s`.
        pub cmr_per_s: Option<f64> = seen.misinsertion_rate(),
        /// Cell transfer delay, from the program's write to the arrival, µs.
        pub ctd_us: Times = Times::of(&seen.delay),
        /// Largest less smallest transfer delay: the 2-point cell delay variation, peak to peak, µs.
        pub cdv_peak_us: Option<f64> =
            (seen.delay.count > 0) .then(|| rounded(seen.delay.max_us - seen.delay.min_us, 3)),
        /// 1-point cell delay variation: how early cells came by the peak cell rate of the contract, µs; nothing
        /// without such a rate.
        pub early_us: Option<Times> = seen.early.as_ref().map(Times::of),
    }
}

/// The shortcuts that exist at the end: the ingress caches of MPOA clients, and the entries of NHRP clients.
pub(super) fn shortcuts(report: &RunReport) -> Vec<ShortcutRow> {
    let mut all = Vec::new();
    for (node, states) in report.nodes.iter() {
        let tables = || states.iter().flat_map(|(_, tables)| tables);
        let entries = tables().flat_map(rows::<MpcIngress>).filter(was_asked_for);
        all.extend(entries.map(|entry| of_entry(node, entry)));
        let ways = tables().flat_map(rows::<Way>);
        all.extend(ways.map(|way| of_way(node, way)));
    }
    all
}

/// The rows of this kind; what a node of this program has put into a table can be read.
#[must_use]
pub fn rows<R: Row>(table: &Table) -> Vec<R> {
    table.rows().unwrap_or_default()
}

/// False for a destination with so few packets that no shortcut was requested.
fn was_asked_for(row: &MpcIngress) -> bool {
    row.state != IngressState::Cached.name()
        || row.last_code > 0
        || row.last_cause.is_some_and(|cause| cause > 0)
}

/// An MPOA client's entry.
fn of_entry(node: &str, entry: MpcIngress) -> ShortcutRow {
    ShortcutRow {
        from: node.to_owned(),
        by: "mpoa".into(),
        destination: entry.destination.to_string(),
        state: entry.state,
        holding_s: entry.holding_s,
        packets: entry.packets,
        vpi: entry.vpi,
        vci: entry.vci,
        egress: entry.egress,
        tag: entry.tag,
        mps: Some(entry.mps),
        last_code: Some(entry.last_code.into()),
        last_cause: entry.last_cause,
        protocol: entry.protocol,
        port: entry.port,
        traffic: Some(entry.traffic),
        fallback: Some(entry.fallback),
    }
}

/// An NHRP client's entry, which has fewer columns.
fn of_way(node: &str, way: Way) -> ShortcutRow {
    ShortcutRow {
        from: node.to_owned(),
        by: "nhrp".into(),
        destination: way.destination,
        state: way.state,
        holding_s: way.left_s,
        packets: way.packets,
        vpi: way.vc.map(|vc| vc.vpi),
        vci: way.vc.map(|vc| vc.vci),
        egress: way.atm,
        tag: None,
        mps: None,
        last_code: way.last_code,
        last_cause: way.last_cause,
        protocol: None,
        port: None,
        traffic: None,
        fallback: None,
    }
}

fn packets(eighths: u32) -> f64 {
    f64::from(eighths) / 8.0
}

fn mbps(amount: Amount) -> Option<f64> {
    amount.mbps().map(|rate| rounded(rate, 6))
}

fn seconds(time: Duration) -> Option<f64> {
    (!time.is_zero()).then_some(time.as_secs_f64())
}

/// Directions of connections between programs.
pub(super) fn programs(all: &[Dialogue]) -> Vec<ProgramRow> {
    all.iter().map(ProgramRow::of).collect()
}

/// Changes of windows of ATP.
pub(super) fn windows(all: &[WindowStep]) -> Vec<WindowRow> {
    all.iter().map(WindowRow::of).collect()
}

/// Testers of cells.
pub(super) fn testers(all: &[Tested]) -> Vec<TesterRow> {
    let all = all.iter();
    all.map(|tested| TesterRow::of(tested, &tested.measured))
        .collect()
}

/// Ends of connections with ATP.
pub(super) fn atp(all: &[Dialogue]) -> Vec<AtpRow> {
    let ends = all.iter();
    ends.filter_map(|dialogue| Some(AtpRow::of(dialogue, dialogue.atp.as_ref()?)))
        .collect()
}
