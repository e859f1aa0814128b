//! The results of flows: rows for people and CSV, objects for JSON.

use super::rounded;
use crate::output::Rows;
use aerostat_lab::Lab;
use aerostat_node::ip::flow_stats::{FlowReport, PathReport};
use aerostat_node::ip::stats::Summary;
use serde_json::{Value, json};

/// One row per flow and path, for people and CSV.
pub(crate) fn rows(flows: &[FlowReport], lab: &Lab) -> Rows {
    let mut rows = Rows::new(&[
        "flow",
        "from",
        "to",
        "phase",
        "seconds",
        "throughput_mbps",
        "lost",
        "out_of_sequence",
        "delay_mean_us",
        "delay_p99_us",
        "jitter_mean_us",
        "jitter_std_us",
        "jitter_max_us",
        "rtt_mean_us",
        "r_factor",
    ]);
    rows.title = "flows".into();
    for (flow, model) in flows.iter().zip(&lab.traffic) {
        for path in &flow.paths {
            rows.push(vec![
                flow.name.clone().into(),
                lab.ends_of(model)[0].into(),
                lab.ends_of(model)[1].into(),
                path.path.as_str().into(),
                rounded(path.duration.as_secs_f64(), 3),
                rounded(path.throughput_mbps, 2),
                path.lost.into(),
                path.out_of_sequence.into(),
                rounded(path.delay.mean_us, 1),
                rounded(path.delay.p99_us, 1),
                rounded(path.variation.mean_us, 1),
                rounded(path.variation.std_dev_us, 1),
                rounded(path.variation.max_us, 1),
                (path.round_trip.count > 0)
                    .then(|| rounded(path.round_trip.mean_us, 1))
                    .into(),
                path.quality.map(|quality| rounded(quality.r, 1)).into(),
            ]);
        }
    }
    rows
}

/// One object per flow and path, for JSON.
pub(crate) fn objects(flows: &[FlowReport], lab: &Lab) -> Vec<Value> {
    let mut objects = Vec::new();
    for (flow, model) in flows.iter().zip(&lab.traffic) {
        let [from, to] = lab.ends_of(model);
        let paths = flow.paths.iter();
        objects.extend(paths.map(|path| object(&flow.name, from, to, path)));
    }
    objects
}

fn object(name: &str, from: &str, to: &str, path: &PathReport) -> Value {
    json!({
        "name": name,
        "from": from,
        "to": to,
        "phase": path.path.as_str(),
        "duration_s": rounded(path.duration.as_secs_f64(), 6),
        "throughput_mbps": rounded(path.throughput_mbps, 3),
        "sent_packets": path.sent_packets,
        "received_packets": path.received_packets,
        "retransmitted": path.retransmitted,
        "lost": path.lost,
        "in_flight": path.in_flight,
        "out_of_sequence": path.out_of_sequence,
        "delay_us": summary(&path.delay),
        "jitter_us": summary(&path.variation),
        "rtt_us": (path.round_trip.count > 0).then(|| summary(&path.round_trip)),
        "call": path.quality.map(|quality| json!({
            "r_factor": rounded(quality.r, 2),
            "mos": rounded(quality.mos, 2),
            "mouth_to_ear_ms": rounded(quality.delay.as_secs_f64() * 1e3, 3),
            "lost_or_late_percent": rounded(quality.loss_percent, 3),
        })),
    })
}

fn summary(of: &Summary) -> Value {
    json!({
        "min": rounded(of.min_us, 3),
        "mean": rounded(of.mean_us, 3),
        "p50": rounded(of.p50_us, 3),
        "p99": rounded(of.p99_us, 3),
        "max": rounded(of.max_us, 3),
        "variance": rounded(of.variance_us2, 3),
        "standard_deviation": rounded(of.std_dev_us, 3),
    })
}
