//! Rows of flows.

use super::rounded;
use crate::fairness::Fairness;
use crate::model::{Flow, FlowKind, Lab};
use crate::report::RunReport;
use aerostat_node::distribution::Summary;
use aerostat_node::inspect::{Counts, Name, Rare};
use aerostat_node::ip::emodel::Quality;
use aerostat_node::ip::flow_stats::{Delta, FlowReport, PathReport, Series};
use aerostat_node::{group, rows};

group! {
    /// Times of a distribution, or none of them.
    pub struct Times for (of: &Summary) {
        /// Smallest.
        pub min: Option<f64> as Detail(4) = (of.count > 0).then_some(of.min_us),
        /// Arithmetic mean.
        pub mean: Option<f64> = (of.count > 0).then_some(of.mean_us),
        /// Median.
        pub p50: Option<f64> as Detail(3) = (of.count > 0).then_some(of.p50_us),
        /// 99th percentile.
        pub p99: Option<f64> as Detail(9) = (of.count > 0).then_some(of.p99_us),
        /// 99.9th percentile.
        pub p99_9: Option<f64> as Detail(2) = (of.count > 0).then_some(of.p999_us),
        /// Largest.
        pub max: Option<f64> as Detail(5) = (of.count > 0).then_some(of.max_us),
        /// Variance of the values measured, µs².
        pub variance: Option<f64> as Detail(0) = (of.count > 0).then_some(of.variance_us2),
        /// Square root of the variance.
        pub standard_deviation: Option<f64> as Detail(1) = (of.count > 0).then_some(of.std_dev_us),
    }

    /// Rating of a telephone call.
    pub struct Call for (quality: &Quality) {
        /// Rating R of the E-model (ITU-T G.107), 0 to 93.2.
        pub r_factor: f64 = quality.r,
        /// Mean opinion score that follows from it, 1 to 4.5.
        pub mos: f64 = quality.mos,
        /// Delay from mouth to ear, with packets and play-out buffer.
        pub mouth_to_ear_ms: f64 = quality.delay.as_secs_f64() * 1e3,
        /// Packets that did not come, or came too late to be played.
        pub lost_or_late_percent: f64 = quality.loss_percent,
    }
}

rows! {
    /// Tables of this module, in the order of the results.
    pub(super) const TABLES;

    /// One row for each flow of `traffic:` and phase in which it had packets; a flow that never sent has one, too.
    /// `offered = sent + refused`, `sent = delivered + lost + under_way`.
    pub struct FlowRow: "flows" for (lab: &Lab, flow: &FlowReport, model: &Flow, path: &PathReport, response: Option<&Summary>) {
        /// Name of the flow.
        pub name: String as Lead(2) = flow.name.clone(),
        /// Sending host.
        pub from: String as Detail(13) = lab.ends_of(model)[0].to_owned(),
        /// Receiving host.
        pub to: String as Detail(14) = lab.ends_of(model)[1].to_owned(),
        /// The way that packets took: `direct` inside one subnet, `routed` or `shortcut`.
        pub phase: Name as Lead(3) = lab.phase(flow.flow.0, path.path).into(),
        /// Time in this phase: from the start of the flow, or the change to the phase, to the change to another, or the
        /// end of the flow or of the run; the sum of such stretches. A flow with `bytes:`, or of programs on a kernel,
        /// has no end of its own: from the first packet offered to the last one.
        pub duration_s: f64 = path.duration.as_secs_f64(),
        /// Time from the end of the flow to the last packet received, the same in all its phases.
        pub tail_s: f64 = flow.tail.as_secs_f64(),
        /// Payload received, over `duration_s` and the time after each such stretch to the last packet of the phase
        /// that was received before the next one, Mbit/s; null if `duration_s` is 0.
        pub throughput_mbps: Option<f64> as Lead(4) = throughput(path),
        /// Packets that the sending program made; of TCP, segments with data that its host made.
        pub offered: u64 as Lead(6) = path.offered,
        /// Of these, packets that the sender's stack did not take.
        pub refused: u64 as Detail(11) = path.refused_packets(),
        /// Of these, by the reason.
        pub refused_by: Counts = refused_by(path),
        /// Packets that the sender's stack took.
        pub sent: u64 as Detail(12) = path.sent_packets,
        /// Packets that reached the receiver's stack.
        pub delivered: u64 as Lead(7) = path.received_packets,
        /// Packets in queues, on links and in hosts at the end.
        pub under_way: u64 as Detail(8) = path.in_flight,
        /// Packets lost, by the place where they, or their first cells, were discarded.
        pub lost_by: Counts as Lead(12) = lab.lost_by(path),
        /// Packets lost at no known place.
        pub unexplained: u64 = path.unexplained,
        /// Octets of payload sent.
        pub sent_octets: u64 = path.sent_octets,
        /// Octets of payload that the receiver did not have yet.
        pub delivered_octets: u64 = path.received_octets,
        /// Echo requests whose answer came back; null of a flow that is no ping.
        pub answered: Option<u64> as Lead(10) = answered(model, path),
        /// Echo requests delivered whose answers are neither back nor under way; null of a flow that is no ping.
        pub unanswered: Option<u64> = answered(model, path).map(|_| path.unanswered),
        /// As `sent`.
        pub sent_packets: u64 = path.sent_packets,
        /// As `delivered`.
        pub received_packets: u64 = path.received_packets,
        /// Of those sent, TCP segments sent before.
        pub retransmitted: u64 as Detail(2) = path.retransmitted,
        /// Packets that did not arrive.
        pub lost: u64 as Lead(5) = path.lost,
        /// As `under_way`.
        pub in_flight: u64 as Detail(9) = path.in_flight,
        /// Packets that were overtaken.
        pub out_of_sequence: u64 as Detail(5) = path.out_of_sequence,
        /// One-way delay, from stack to stack; its values are null if no packet was delivered.
        pub delay_us: Times as Lead(9) = Times::of(&path.delay),
        /// Difference of the delays of a packet and the one before; its values are null if fewer than two packets were
        /// delivered.
        pub jitter_us: Times = Times::of(&path.variation),
        /// Round trips of echoes.
        pub rtt_us: Option<Times> = (path.round_trip.count > 0).then(|| Times::of(&path.round_trip)),
        /// Time from a request to the whole response, of all phases together; only of `rr` flows that had a response.
        pub response_us: Rare<Times> = Rare(response.map(Times::of)),
        /// Rating of a telephone call.
        pub call: Option<Call> = path.quality.as_ref().map(Call::of),
        /// Packets that arrived and that `flow_deltas` does not have, because it has 100 000 of the flow; only of flows
        /// with `series: true`.
        pub deltas_left_out: Rare<u64> = Rare(flow.series.as_ref().map(|series| series.left_out)),
        /// Implementation and congestion control of the sender's TCP; only of flows of TCP.
        pub tcp: Rare<String> as Lead(11) = Rare(lab.tcp_of(model)),
    }

    /// One row for each place at which packets of a flow were lost, or refused, in a phase: `lost_by` and `refused_by`
    /// of table `flows`, and what is unexplained.
    pub struct FlowLossRow: "flow_losses" {
        /// Name of the flow.
        pub flow: String,
        /// The way that packets took, as in `flows`.
        pub phase: Name,
        /// `lost`, `refused` or `unexplained`.
        pub what: Name,
        /// Where packets were lost, or why they were refused; nothing if that is not known.
        pub place: Option<String>,
        /// Packets.
        pub packets: u64,
    }

    /// One row for each `group:` of flows, and one for all flows of the lab; only if a flow has a group.
    pub struct FairnessRow: "fairness" for (row: &Fairness) {
        /// The group; null: all flows.
        pub group: Option<String> = row.group.clone(),
        /// Flows, also those that never sent.
        pub flows: usize = row.flows,
        /// Fairness index of Jain for the throughputs, above 0 and at most 1; null if nothing was received.
        pub jain_index: Option<f64> = row.index.map(|index| rounded(index, 6)),
        /// Sum of the throughputs of payload, each over `duration_s` of all phases of the flow and `tail_s`, Mbit/s.
        pub throughput_mbps: f64 = rounded(row.throughput_mbps[0], 6),
        /// Smallest throughput of a flow.
        pub smallest_mbps: f64 = rounded(row.throughput_mbps[1], 6),
        /// Largest throughput of a flow.
        pub largest_mbps: f64 = rounded(row.throughput_mbps[2], 6),
    }

    /// One row for each packet of a flow with `series: true` that arrived after another one by the same way, in the
    /// order of arrival: the time between the two (the "delta time" of Figures 5.3 to 5.7 of the thesis) at both ends.
    /// At most the first 100 000 packets of a flow.
    pub struct FlowDeltaRow: "flow_deltas" for (lab: &Lab, flow: &FlowReport, delta: &Delta) {
        /// Name of the flow.
        pub flow: String = flow.name.clone(),
        /// The way that both packets took, as in `flows`.
        pub phase: Name = lab.phase(flow.flow.0, delta.path).into(),
        /// Number of the packet in the order of sending, from 0.
        pub packet: u64 = delta.number,
        /// Time from the sending of the packet that arrived before it to its own; negative if the two changed their
        /// order.
        pub sent_delta_us: f64 = rounded(delta.sent_us, 3),
        /// Time from the arrival of that packet to its own.
        pub received_delta_us: f64 = rounded(delta.received_us, 3),
    }
}

/// Payload received per time, Mbit/s; `None` for a path without a time.
#[must_use]
pub fn throughput(path: &PathReport) -> Option<f64> {
    (!path.duration.is_zero()).then_some(path.throughput_mbps)
}

/// Answered echo requests; `None` for a flow that is not a ping.
#[must_use]
pub fn answered(flow: &Flow, path: &PathReport) -> Option<u64> {
    matches!(flow.kind, FlowKind::Ping { .. }).then_some(path.round_trip.count)
}

/// All flows, each by its phases.
pub(super) fn flows(lab: &Lab, report: &RunReport) -> Vec<FlowRow> {
    let all = report.flows.iter().zip(&lab.traffic);
    let rows = all.flat_map(|(flow, model)| {
        let response = report.response_of(flow.flow.0);
        (flow.paths.iter()).map(move |path| FlowRow::of(lab, flow, model, path, response))
    });
    rows.collect()
}

fn refused_by(path: &PathReport) -> Counts {
    let refused = path.refused.iter();
    refused
        .map(|(why, packets)| (why.to_string(), *packets))
        .collect()
}

/// Losses and refusals of all flows by their places.
pub(super) fn losses(lab: &Lab, flows: &[FlowReport]) -> Vec<FlowLossRow> {
    let mut rows = Vec::new();
    for flow in flows {
        for path in &flow.paths {
            let mut push = |what: &'static str, place: Option<String>, packets: u64| {
                rows.push(FlowLossRow {
                    flow: flow.name.clone(),
                    phase: lab.phase(flow.flow.0, path.path).into(),
                    what: what.into(),
                    place,
                    packets,
                });
            };
            let mut places = Counts::new();
            for (place, packets) in &path.lost_by {
                *places.entry(lab.place(place)).or_default() += packets;
            }
            for (place, packets) in places {
                push("lost", Some(place), packets);
            }
            for (why, packets) in &path.refused {
                push("refused", Some(why.to_string()), *packets);
            }
            if path.unexplained > 0 {
                push("unexplained", None, path.unexplained);
            }
        }
    }
    rows
}

/// Packets of flows whose packets are kept one by one, each beside the packet before it.
pub(super) fn deltas(lab: &Lab, flows: &[FlowReport]) -> Vec<FlowDeltaRow> {
    let of_flow = |flow: &FlowReport| {
        let deltas = flow.series.iter().flat_map(Series::deltas);
        let rows = deltas.map(|delta| FlowDeltaRow::of(lab, flow, &delta));
        rows.collect::<Vec<_>>()
    };
    flows.iter().flat_map(of_flow).collect()
}

/// Groups of flows, and all flows if there is a group.
#[must_use]
pub fn fairness(lab: &Lab, flows: &[FlowReport]) -> Vec<FairnessRow> {
    let rows = crate::fairness::of(lab, flows);
    rows.iter().map(FairnessRow::of).collect()
}
