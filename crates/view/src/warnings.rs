//! Reasons for warnings at the end of a run.

use aerostat_lab::Lab;
use aerostat_lab::event::Names;
use aerostat_lab::model::NodeKind;
use aerostat_lab::report::{RunReport, Trouble};
use aerostat_lab::results::{Time, rows as rows_of};
use aerostat_node::host::Waits;
use aerostat_node::inspect::StateKind;
use aerostat_node::inspect::mpoa::QosRow;
use aerostat_node::ip::flow_stats::FlowReport;
use aerostat_proto::{Duration, Instant};
use aerostat_wire::some_of;
use std::net::Ipv4Addr;

/// A line for each node that has not joined, with the reason of its last attempt, or one line for many nodes. NHRP
/// clients that have not registered follow.
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
#[must_use]
pub fn warnings(report: &RunReport, lab: &Lab, time: Time) -> Vec<String> {
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
    for (name, states) in report.nodes.iter() {
        let of_lab = lab.find(name).is_some_and(|id| match &lab.node(id).kind {
            NodeKind::Host(host) => host.mpoa.as_ref().is_some_and(|mpc| mpc.shared_qos),
            _ => false,
        });
        let of_qos = states.iter().filter(|(what, _)| *what == StateKind::Qos);
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

#[cfg(test)]
mod tests {
    use super::*;

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
