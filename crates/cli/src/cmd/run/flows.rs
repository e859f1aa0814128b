//! The results of flows: rows for people and CSV, objects for JSON.

use super::document::{Time, rows as rows_of};
use super::rounded;
use crate::output::Rows;
use aerostat_lab::Lab;
use aerostat_lab::event::Names;
use aerostat_lab::model::{Flow, FlowKind, NodeKind};
use aerostat_lab::report::{RunReport, Trouble};
use aerostat_live::run::some_of;
use aerostat_node::host::Waits;
use aerostat_node::inspect::mpoa::QosRow;
use aerostat_node::ip::flow_stats::{FlowReport, PathReport, Series};
use aerostat_node::ip::stats::Summary;
use aerostat_proto::{Duration, Instant};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// One row per flow and path, for people and CSV.
pub(crate) fn rows(flows: &[FlowReport], lab: &Lab) -> Rows {
    let mut rows = Rows::new(&[
        "flow",
        "from",
        "to",
        "phase",
        "seconds",
        "throughput_mbps",
        "offered",
        "refused",
        "sent",
        "delivered",
        "answered",
        "lost",
        "under_way",
        "lost_by",
        "out_of_sequence",
        "delay_mean_us",
        "delay_p99_us",
        "jitter_mean_us",
        "jitter_std_us",
        "jitter_max_us",
        "rtt_mean_us",
        "r_factor",
        "tcp",
    ]);
    rows.title = "flows".into();
    let of_ping = |flow: &Flow| matches!(flow.kind, FlowKind::Ping { .. });
    let of = |what: &Summary, us| (what.count > 0).then(|| rounded(us, 1)).into();
    for (flow, model) in flows.iter().zip(&lab.traffic) {
        for path in &flow.paths {
            rows.push(vec![
                flow.name.clone().into(),
                lab.ends_of(model)[0].into(),
                lab.ends_of(model)[1].into(),
                lab.phase(flow.flow.0, path.path).into(),
                rounded(path.duration.as_secs_f64(), 3),
                throughput(path).map(|mbps| significant(mbps, 2)).into(),
                path.offered.into(),
                path.refused_packets().into(),
                path.sent_packets.into(),
                path.received_packets.into(),
                answered(model, path).into(),
                path.lost.into(),
                path.in_flight.into(),
                places(lab, path).into(),
                path.out_of_sequence.into(),
                of(&path.delay, path.delay.mean_us),
                of(&path.delay, path.delay.p99_us),
                of(&path.variation, path.variation.mean_us),
                of(&path.variation, path.variation.std_dev_us),
                of(&path.variation, path.variation.max_us),
                of(&path.round_trip, path.round_trip.mean_us),
                path.quality.map(|quality| rounded(quality.r, 1)).into(),
                lab.tcp_of(model).into(),
            ]);
        }
    }
    if !lab.traffic.iter().any(of_ping) {
        rows.drop_column("answered");
    }
    if !lab.traffic.iter().any(|flow| lab.tcp_of(flow).is_some()) {
        rows.drop_column("tcp");
    }
    rows
}

/// Payload received per time; `None` for a path without a time.
fn throughput(path: &PathReport) -> Option<f64> {
    (!path.duration.is_zero()).then_some(path.throughput_mbps)
}

/// Answered echo requests; `None` for a flow that is not a ping.
fn answered(flow: &Flow, path: &PathReport) -> Option<u64> {
    matches!(flow.kind, FlowKind::Ping { .. }).then_some(path.round_trip.count)
}

/// A number for people, with this many decimals, or with more if these would all be zero.
fn significant(value: f64, decimals: i32) -> Value {
    let needed = match value > 0.0 {
        true => 1 - value.log10().floor() as i32,
        false => 0,
    };
    rounded(value, decimals.max(needed.min(9)))
}

/// One object per flow and path, for JSON.
pub(crate) fn objects(flows: &[FlowReport], lab: &Lab) -> Vec<Value> {
    let mut objects = Vec::new();
    for (flow, model) in flows.iter().zip(&lab.traffic) {
        let paths = flow.paths.iter();
        objects.extend(paths.map(|path| object(lab, flow, model, path)));
    }
    objects
}

/// One object per flow, phase and place at which packets were lost or refused.
pub(crate) fn losses(flows: &[FlowReport], lab: &Lab) -> Vec<Value> {
    let mut rows = Vec::new();
    for flow in flows {
        for path in &flow.paths {
            let mut push = |what: &str, place: Option<String>, packets: u64| {
                rows.push(json!({
                    "flow": flow.name,
                    "phase": lab.phase(flow.flow.0, path.path),
                    "what": what,
                    "place": place,
                    "packets": packets,
                }));
            };
            let mut places: BTreeMap<String, u64> = BTreeMap::new();
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

/// One object per packet of a flow whose packets are kept one by one, beside the packet before it.
pub(crate) fn deltas(flows: &[FlowReport], lab: &Lab) -> Vec<Value> {
    let mut rows = Vec::new();
    for flow in flows {
        let deltas = flow.series.iter().flat_map(Series::deltas);
        rows.extend(deltas.map(|delta| {
            json!({
                "flow": flow.name,
                "phase": lab.phase(flow.flow.0, delta.path),
                "packet": delta.number,
                "sent_delta_us": rounded(delta.sent_us, 3),
                "received_delta_us": rounded(delta.received_us, 3),
            })
        }));
    }
    rows
}

/// One object per group of flows, and one for all flows if there is a group.
pub(crate) fn fairness(flows: &[FlowReport], lab: &Lab) -> Vec<Value> {
    let rows = aerostat_lab::fairness::of(lab, flows);
    rows.into_iter()
        .map(|row| {
            let [sum, least, most] = row.throughput_mbps;
            json!({
                "group": row.group,
                "flows": row.flows,
                "jain_index": row.index.map(|index| rounded(index, 6)),
                "throughput_mbps": rounded(sum, 6),
                "smallest_mbps": rounded(least, 6),
                "largest_mbps": rounded(most, 6),
            })
        })
        .collect()
}

/// The same for people; `None` if no flow has a group.
pub(crate) fn fairness_rows(flows: &[FlowReport], lab: &Lab) -> Option<Rows> {
    let objects = fairness(flows, lab);
    let mut rows = Rows::new(&[
        "group",
        "flows",
        "jain_index",
        "throughput_mbps",
        "smallest_mbps",
        "largest_mbps",
    ]);
    rows.title = super::columns::FAIRNESS.into();
    for object in &objects {
        let field = |name: &String| object.get(name).cloned().unwrap_or(Value::Null);
        let mut row: Vec<Value> = rows.columns.iter().map(field).collect();
        if row[0].is_null() {
            row[0] = "(all)".into();
        }
        rows.push(row);
    }
    (!objects.is_empty()).then_some(rows)
}

/// Places where packets were lost or refused, in words: `link a-s1: cell lost 12, refused (socket full) 3`.
fn places(lab: &Lab, path: &PathReport) -> Option<String> {
    let lost = lab.lost_by(path).into_iter();
    let lost = lost.map(|(place, packets)| format!("{place} {packets}"));
    let refused = path.refused.iter();
    let refused = refused.map(|(why, packets)| format!("refused ({why}) {packets}"));
    let all: Vec<String> = lost.chain(refused).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

/// A line for each node that has not joined, with the reason of its last attempt, or one line for many nodes. NHRP clients
/// that have not registered follow.
fn not_joined(report: &RunReport, lab: &Lab) -> Vec<String> {
    /// If there are more nodes than this, they are not named individually.
    const NAMED: usize = 8;
    /// A client whose first request is lost repeats it after 5 s.
    const USUAL: Duration = Duration::from_secs(10);
    let (nodes, end) = (&report.not_joined, report.end);
    let names = Names::new(lab);
    let of = |node: &str, nhrp: bool| {
        let all = report.troubles.iter();
        let all = all.filter(move |trouble| (trouble.waits == Waits::Nhrp) == nhrp);
        let node = node.to_owned();
        all.filter(move |trouble| trouble.node == node)
    };
    let why = |trouble: &Trouble| Some(names.in_text(&trouble.attempts.text()?));
    let reason = |node: &str, nhrp: bool| of(node, nhrp).find_map(why);
    let told = |node: &str, what: &str, nhrp: bool| {
        let lines = of(node, nhrp).map(|trouble| {
            let which = trouble.network.iter().map(|name| format!(" {name}"));
            let why = why(trouble).into_iter().map(|why| format!(": {why}"));
            format!("{node} {what}{}", which.chain(why).collect::<String>())
        });
        let mut lines: Vec<String> = lines.collect();
        if lines.is_empty() {
            lines.push(format!("{node} {what}"));
        }
        lines
    };
    let mut lines: Vec<String> = if nodes.len() > NAMED {
        let (count, some) = (nodes.len(), some_of(nodes));
        let why = nodes.iter().find_map(|node| reason(node, false));
        let why = why.map_or_else(String::new, |why| format!("; of the first one: {why}"));
        vec![format!(
            "{count} nodes have not joined their networks: {some}{why}"
        )]
    } else {
        let each = nodes.iter();
        each.flat_map(|node| told(node, "has not joined its network", false))
            .collect()
    };
    if let Some(last) = lines.last_mut()
        && end.since(Instant::ZERO) < USUAL
    {
        let microseconds = end.since(Instant::ZERO).as_secs_f64() * 1e6;
        let seconds = microseconds.round() / 1e6;
        *last += &format!(
            " (until the end at {seconds} s; a first request that is lost is repeated after 5 s)"
        );
    }
    let clients = report.troubles.iter();
    let clients: Vec<String> = clients
        .filter(|trouble| trouble.waits == Waits::Nhrp && !nodes.contains(&trouble.node))
        .map(|trouble| trouble.node.clone())
        .collect();
    let what = "has not registered with its NHRP server";
    if clients.len() > NAMED {
        let (count, some) = (clients.len(), some_of(&clients));
        let why = clients.iter().find_map(|node| reason(node, true));
        let why = why.map_or_else(String::new, |why| format!("; of the first one: {why}"));
        lines.push(format!(
            "{count} nodes have not registered with their NHRP servers: {some}{why}"
        ));
    } else {
        lines.extend(clients.iter().flat_map(|node| told(node, what, true)));
    }
    lines
}

/// Reasons for warnings: flows and programs that failed, hosts that never joined, and bounds that were met.
pub(crate) fn warnings(report: &RunReport, lab: &Lab, time: Time) -> Vec<String> {
    let joined = not_joined(report, lab);
    let limits = first_of(report.limits.clone(), "bounds refused something");
    let due = |flow: &&FlowReport| !report.not_due.contains(&flow.flow.0);
    let flows = report.flows.iter().filter(due).filter_map(|flow| {
        let began = report.began.get(flow.flow.0).copied().flatten();
        lab.complaint(flow, began, report.end)
    });
    let flows = first_of(flows.collect(), "flows have such warnings");
    let idle = first_of(idle_entries(report, lab), "such entries");
    let told = report.dialogues.iter().filter_map(|dialogue| {
        let mut dialogue = dialogue.clone();
        // In real time a PDU may also be late because of the machine's timers.
        if matches!(time, Time::Real) && dialogue.expect.is_none() {
            dialogue.late = 0;
        }
        dialogue.complaint()
    });
    let programs = report.failed_programs.iter().cloned().chain(told);
    let programs = first_of(programs.collect(), "programs have such warnings");
    let refusals = first_of(report.refusals.clone(), "such refusals");
    [joined, limits, refusals, flows, programs, idle].concat()
}

/// The first of many warnings of one kind, and the number of the others: `... and 42 more {what}`.
fn first_of(mut all: Vec<String>, what: &str) -> Vec<String> {
    const SHOWN: usize = 20;
    let more = all.len().saturating_sub(SHOWN);
    if more > 0 {
        all.truncate(SHOWN);
        all.push(format!("... and {more} more {what}"));
    }
    all
}

/// QoS entries of MPOA clients that no packet has matched. An entry for all hosts is told once, if it has matched on
/// no host.
fn idle_entries(report: &RunReport, lab: &Lab) -> Vec<String> {
    let mut own = Vec::new();
    // Packets of each entry for all hosts, in the order of the file.
    let mut shared: Vec<(String, u64)> = Vec::new();
    for (name, states) in &report.nodes {
        let of_lab = lab.find(name).is_some_and(|id| match &lab.node(id).kind {
            NodeKind::Host(host) => host.mpoa.as_ref().is_some_and(|mpc| mpc.shared_qos),
            _ => false,
        });
        let of_qos = states.iter().filter(|(what, _)| *what == "qos");
        for table in of_qos.flat_map(|(_, tables)| tables) {
            for row in rows_of::<QosRow>(table) {
                let (entry, packets) = (entry(&row), row.packets);
                match shared.iter_mut().find(|(known, _)| *known == entry) {
                    Some((_, sum)) if of_lab => *sum += packets,
                    None if of_lab => shared.push((entry, packets)),
                    _ if packets == 0 => {
                        own.push(format!("{name}: no packet fitted the QoS entry {entry}"));
                    }
                    _ => {}
                }
            }
        }
    }
    let idle = shared.into_iter().filter(|(_, packets)| *packets == 0);
    let idle = idle.map(|(entry, _)| format!("no packet of any host fitted the QoS entry {entry}"));
    idle.chain(own).collect()
}

/// A QoS entry in words: the ends of its flows, and the protocol.
fn entry(row: &QosRow) -> String {
    let end = |ip: Ipv4Addr, port: u16| match port {
        0 => ip.to_string(),
        port => format!("{ip}:{port}"),
    };
    let from = end(row.source, row.source_port);
    let from = if from == "0.0.0.0" {
        String::new()
    } else {
        from + " "
    };
    let protocol = match &*row.protocol {
        "any" => String::new(),
        protocol => format!(" {protocol}"),
    };
    let to = end(row.destination, row.port);
    format!("{from}{to}{protocol}")
}

fn object(lab: &Lab, flow: &FlowReport, model: &Flow, path: &PathReport) -> Value {
    let [from, to] = lab.ends_of(model);
    let answered = answered(model, path);
    let refused = path.refused.iter();
    let refused: Map<String, Value> = refused
        .map(|(why, packets)| (why.to_string(), (*packets).into()))
        .collect();
    let mut object = json!({
        "name": flow.name,
        "from": from,
        "to": to,
        "phase": lab.phase(flow.flow.0, path.path),
        "duration_s": path.duration.as_secs_f64(),
        "tail_s": flow.tail.as_secs_f64(),
        "throughput_mbps": throughput(path),
        "offered": path.offered,
        "refused": path.refused_packets(),
        "refused_by": refused,
        "sent": path.sent_packets,
        "delivered": path.received_packets,
        "under_way": path.in_flight,
        "lost_by": lab.lost_by(path),
        "unexplained": path.unexplained,
        "sent_octets": path.sent_octets,
        "delivered_octets": path.received_octets,
        "sent_packets": path.sent_packets,
        "received_packets": path.received_packets,
        "retransmitted": path.retransmitted,
        "lost": path.lost,
        "in_flight": path.in_flight,
        "out_of_sequence": path.out_of_sequence,
        "delay_us": summary(&path.delay),
        "jitter_us": summary(&path.variation),
        "answered": answered,
        "unanswered": answered.map(|_| path.unanswered),
        "rtt_us": (path.round_trip.count > 0).then(|| summary(&path.round_trip)),
        "call": path.quality.map(|quality| json!({
            "r_factor": quality.r,
            "mos": quality.mos,
            "mouth_to_ear_ms": quality.delay.as_secs_f64() * 1e3,
            "lost_or_late_percent": quality.loss_percent,
        })),
    });
    if let Some(tcp) = lab.tcp_of(model) {
        object["tcp"] = tcp.into();
    }
    if let Some(series) = &flow.series {
        object["deltas_left_out"] = series.left_out.into();
    }
    object
}

pub(super) fn summary(of: &Summary) -> Value {
    let value = |us: f64| (of.count > 0).then_some(us);
    json!({
        "min": value(of.min_us),
        "mean": value(of.mean_us),
        "p50": value(of.p50_us),
        "p99": value(of.p99_us),
        "p99_9": value(of.p999_us),
        "max": value(of.max_us),
        "variance": value(of.variance_us2),
        "standard_deviation": value(of.std_dev_us),
    })
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
            assert_eq!(significant(mbps, 2).to_string(), shown);
        }
    }

    #[test]
    fn thousands_of_warnings_of_one_kind_are_a_few_and_a_count() {
        let all = |count: usize| (0..count).map(|n| n.to_string()).collect::<Vec<_>>();
        assert_eq!(first_of(all(20), "x"), all(20));
        let shown = first_of(all(7952), "hosts");
        assert_eq!(
            (shown.len(), shown[20].as_str()),
            (21, "... and 7932 more hosts")
        );
    }
}
