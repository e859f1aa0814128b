//! Flows that stop before their end.

use crate::model::{Flow, FlowKind, Lab};
use aerostat_node::ip::flow_stats::FlowReport;
use aerostat_proto::{Duration, Instant};

/// A TCP connection that delivers nothing for this long, and twice its longest delay more, has lost its last segment
/// and at least one retransmission of it: the first retransmission comes after a second or more (RFC 6298), the next
/// one after twice that time.
const SILENCE: Duration = Duration::from_secs(3);

/// How a flow that has delivered something stopped before `until`, in words; `None` if the flow went on.
pub(super) fn of(lab: &Lab, flow: &Flow, report: &FlowReport, until: Instant) -> Option<String> {
    let elastic = matches!(flow.kind, FlowKind::Tcp | FlowKind::Rr { .. });
    // The distance of packets: without a packet in this time the flow has not stopped yet.
    let distance = match flow.kind {
        FlowKind::Udp { rate, .. } | FlowKind::Ping { rate, .. } => 2.0 * rate.packets.mean_gap(),
        FlowKind::Tcp | FlowKind::Rr { .. } => 0.0,
    };
    // A transfer that has arrived is over, whenever the run ends.
    let arrived = report.sum(|path| path.received_octets);
    if flow.octets.is_some_and(|octets| arrived >= octets) {
        return None;
    }
    let [source, destination] = report.off;
    let ends = [
        (source, report.last_offered),
        (destination.filter(|_| elastic), report.last_received),
    ];
    for (off, last) in ends {
        let (Some((off, place)), Some(last)) = (off, last) else {
            continue;
        };
        if last <= off && off < until && (until - last).as_nanos() as f64 > distance {
            return Some(format!("{} ({})", stopped(last, until), lab.place(&place)));
        }
    }
    let last = report.last_received?;
    let delays = report.paths.iter().map(|path| path.delay.max_us);
    let patience = SILENCE.as_secs_f64() + 2e-6 * delays.fold(0.0, f64::max);
    (elastic && until > last && (until - last).as_secs_f64() > patience)
        .then(|| stopped(last, until))
}

fn stopped(last: Instant, until: Instant) -> String {
    let at = last.as_nanos() as f64 / 1e9;
    let before = (until - last).as_secs_f64();
    format!("stopped at {at:.3} s, {before:.3} s before its end")
}
