//! The tables for people: fewer columns than those for programs, with fewer digits.

use crate::Rows;
use aerostat_lab::Lab;
use aerostat_lab::dialogues::Tested;
use aerostat_lab::model::Flow;
use aerostat_lab::occupancy::Port;
use aerostat_lab::report::RunReport;
use aerostat_lab::results::{
    self, AtpRow, Document, ProgramRow, ShortcutRow, answered, rounded, throughput,
};
use aerostat_node::distribution::Summary;
use aerostat_node::host::sockets::programs::Measured;
use aerostat_node::inspect::{Name, Rare};
use aerostat_node::ip::flow_stats::{FlowReport, PathReport};
use aerostat_node::rows;
use serde_json::json;

rows! {
    /// One row for each flow and phase.
    pub struct FlowLine: "flows" for (report: &RunReport, lab: &Lab, flow: &FlowReport, model: &Flow, path: &PathReport) {
        /// Name of the flow.
        flow: String as Lead(1) = flow.name.clone(),
        /// Sending host.
        from: String as Detail(13) = lab.ends_of(model)[0].to_owned(),
        /// Receiving host.
        to: String as Detail(14) = lab.ends_of(model)[1].to_owned(),
        /// The way that packets took.
        phase: Name as Lead(3) = lab.phase(flow.flow.0, path.path).into(),
        /// Time in this phase.
        seconds: f64 as Detail(10) = rounded(path.duration.as_secs_f64(), 3),
        /// Payload received.
        throughput_mbps: Option<f64> as Lead(4) = throughput(path).map(|mbps| significant(mbps, 2)),
        /// Packets made.
        offered: u64 as Lead(6) = path.offered,
        /// Packets that the stack did not take.
        refused: u64 as Detail(11) = path.refused_packets(),
        /// Packets that it took.
        sent: u64 as Detail(12) = path.sent_packets,
        /// Packets received.
        delivered: u64 as Lead(7) = path.received_packets,
        /// Echo requests whose answer came back; only in labs with pings.
        answered: Rare<u64> as Lead(10) = Rare(answered(model, path)),
        /// Packets that did not arrive.
        lost: u64 as Lead(5) = path.lost,
        /// Packets on their way at the end.
        under_way: u64 as Detail(8) = path.in_flight,
        /// Places of losses and refusals, in words.
        lost_by: Option<String> as Lead(12) = places(lab, path),
        /// Packets that were overtaken.
        out_of_sequence: u64 as Detail(5) = path.out_of_sequence,
        /// Mean delay.
        delay_mean_us: Option<f64> as Lead(8) = shown(&path.delay, path.delay.mean_us),
        /// 99th percentile of the delay.
        delay_p99_us: Option<f64> as Detail(7) = shown(&path.delay, path.delay.p99_us),
        /// Mean jitter.
        jitter_mean_us: Option<f64> as Detail(4) = shown(&path.variation, path.variation.mean_us),
        /// Standard deviation of the jitter.
        jitter_std_us: Option<f64> as Detail(0) = shown(&path.variation, path.variation.std_dev_us),
        /// Largest jitter.
        jitter_max_us: Option<f64> as Detail(1) = shown(&path.variation, path.variation.max_us),
        /// Mean round trip of echoes.
        rtt_mean_us: Option<f64> as Detail(6) = shown(&path.round_trip, path.round_trip.mean_us),
        /// Mean time from a request to the whole response; only in labs with `rr` flows.
        response_mean_us: Rare<f64> as Detail(6) = Rare(response(report, flow)),
        /// TCP segments sent again.
        retransmitted: u64 as Detail(2) = path.retransmitted,
        /// Rating of a telephone call.
        r_factor: Option<f64> as Detail(3) = path.quality.map(|quality| rounded(quality.r, 1)),
        /// TCP of the sender; only in labs that say something of it.
        tcp: Rare<String> as Lead(11) = Rare(lab.tcp_of(model)),
    }

    /// One row for each port and buffer that ever held a cell.
    pub(crate) struct BufferLine: "occupancy" {
        /// The switch.
        node: String,
        /// The link behind the port.
        link: String,
        /// The classes of the buffer.
        buffer: Name,
        /// Samples taken.
        samples: u64,
        /// Mean level.
        mean_cells: f64,
        /// Highest level.
        most_cells: u32,
    }

    /// One row for each tester that cells have reached.
    pub(crate) struct TesterLine: "cells" for (tested: &Tested, seen: &Measured) {
        /// Node of the tester.
        node: String = tested.at.0.clone(),
        /// The tester.
        program: String = tested.at.1.clone(),
        /// Cells that came in order and undamaged.
        received: u64 = seen.received,
        /// Cells that did not come.
        lost: u64 = seen.lost,
        /// Cells that came damaged.
        errored: u64 = seen.errored,
        /// Cells that did not belong there.
        misinserted: u64 = seen.misinserted,
        /// Cell loss ratio.
        clr: f64 = rounded(seen.loss_ratio().unwrap_or(0.0), 9),
        /// Mean transfer delay.
        ctd_mean_us: f64 = rounded(seen.delay.mean_us, 3),
        /// Cell delay variation, peak to peak.
        cdv_peak_us: f64 = rounded(seen.delay.max_us - seen.delay.min_us, 3),
    }
}

/// The tables for people; empty ones of those that not every lab has are left out.
#[must_use]
pub fn short(report: &RunReport, lab: &Lab, document: &Document) -> Vec<Rows> {
    let mut tables = vec![Rows::of(flows(report, lab)), shortcuts(document)];
    tables.extend(document.table::<ProgramRow>().map(Rows::table));
    tables.extend(document.table::<AtpRow>().map(Rows::table));
    let rare = [
        fairness(report, lab),
        Rows::of(buffers(report, lab)),
        Rows::of(testers(report)),
    ];
    tables.extend(rare.into_iter().filter(|table| !table.rows.is_empty()));
    tables
}

/// A time of a distribution that has any.
fn shown(of: &Summary, us: f64) -> Option<f64> {
    (of.count > 0).then(|| rounded(us, 1))
}

/// Mean time from a request to the whole response, µs.
fn response(report: &RunReport, flow: &FlowReport) -> Option<f64> {
    let times = report.response_of(flow.flow.0);
    times.map(|times| rounded(times.mean_us, 1))
}

/// One row per flow and path.
fn flows<'a>(report: &'a RunReport, lab: &'a Lab) -> impl Iterator<Item = FlowLine> + 'a {
    let flows = report.flows.iter().zip(&lab.traffic);
    let paths =
        flows.flat_map(|(flow, model)| flow.paths.iter().map(move |path| (flow, model, path)));
    paths.map(move |(flow, model, path)| FlowLine::of(report, lab, flow, model, path))
}

/// A number for people, with this many decimals, or with more if these would all be zero.
fn significant(value: f64, decimals: i32) -> f64 {
    let needed = match value > 0.0 {
        true => 1 - libm::log10(value).floor() as i32,
        false => 0,
    };
    rounded(value, decimals.max(needed.min(9)))
}

/// Places where packets were lost or refused, in words: `link a-s1: cell lost 12, refused (size) 3`.
fn places(lab: &Lab, path: &PathReport) -> Option<String> {
    let lost = lab.lost_by(path).into_iter();
    let lost = lost.map(|(place, packets)| format!("{place} {packets}"));
    let refused = path.refused.iter();
    let refused = refused.map(|(why, packets)| format!("refused ({why}) {packets}"));
    let all: Vec<String> = lost.chain(refused).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

/// The shortcuts: some of their columns.
fn shortcuts(document: &Document) -> Rows {
    const SHOWN: [&str; 7] = [
        "from",
        "destination",
        "state",
        "vpi",
        "vci",
        "packets",
        "holding_s",
    ];
    let mut rows = Rows::new(&SHOWN);
    rows.title = "shortcuts".into();
    let Some(table) = document.table::<ShortcutRow>() else {
        return rows;
    };
    for row in &table.rows {
        rows.push(
            SHOWN
                .map(|name| json!(table.cell(row, (name, None))))
                .into(),
        );
    }
    rows
}

/// The groups of flows; the row of all flows says so.
fn fairness(report: &RunReport, lab: &Lab) -> Rows {
    let groups = results::fairness(lab, &report.flows).into_iter();
    Rows::of(groups.map(|mut row| {
        row.group.get_or_insert_with(|| "(all)".to_owned());
        row
    }))
}

/// The buffers of all ports that have samples.
fn buffers<'a>(report: &'a RunReport, lab: &'a Lab) -> impl Iterator<Item = BufferLine> + 'a {
    const BUFFERS: [&str; 2] = ["guaranteed", "best effort"];
    let samples = &report.occupancy;
    let mut ports: Vec<Port> = Vec::new();
    for sample in samples {
        if !ports.contains(&sample.port) {
            ports.push(sample.port);
        }
    }
    let buffers = ports
        .into_iter()
        .flat_map(|port| (0..BUFFERS.len()).map(move |pool| (port, pool)));
    buffers.map(move |(port, pool)| {
        let levels = samples.iter().filter(|sample| sample.port == port);
        let (count, sum, most) = levels.fold((0_u64, 0_u64, 0), |(count, sum, most), sample| {
            let cells = sample.cells[pool];
            (count + 1, sum + u64::from(cells), cells.max(most))
        });
        BufferLine {
            node: lab.node(port.node).name.clone(),
            link: lab.link(port.link).name.clone(),
            buffer: BUFFERS[pool].into(),
            samples: count,
            mean_cells: rounded(sum as f64 / count.max(1) as f64, 3),
            most_cells: most,
        }
    })
}

/// The testers that cells have reached.
fn testers(report: &RunReport) -> impl Iterator<Item = TesterLine> {
    let reached = report
        .tested
        .iter()
        .filter(|tested| !tested.measured.time.is_zero());
    reached.map(|tested| TesterLine::of(tested, &tested.measured))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_numbers_are_not_shown_as_nothing() {
        for (mbps, shown) in [
            (0.0, "0.0"),
            (0.005_6, "0.0056"),
            (0.000_448, "0.00045"),
            (1e-12, "0.0"),
            (0.056, "0.056"),
            (35.127, "35.13"),
            (155.0, "155.0"),
        ] {
            assert_eq!(format!("{:?}", significant(mbps, 2)), shown);
        }
    }
}
