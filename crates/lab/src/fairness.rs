//! How fairly the flows of a group share.
//!
//! Jain's index of the throughputs x of n flows is (Σx)² / (n Σx²): 1 if all are equal, k/n if k flows share equally
//! and the others get nothing. Source: Jain, Chiu, Hawe, "A Quantitative Measure of Fairness and Discrimination for
//! Resource Allocation in Shared Computer Systems", DEC-TR-301, 1984.

use crate::model::Lab;
use aerostat_node::ip::flow_stats::FlowReport;
use std::collections::BTreeMap;

/// The fairness of one group of flows.
#[derive(Clone, Debug, PartialEq)]
pub struct Fairness {
    /// `group:` of the flows; `None`: all flows of the lab.
    pub group: Option<String>,
    /// Flows of the group, also those that never sent.
    pub flows: usize,
    /// Jain's index, above 0 and at most 1; `None` if no flow of the group has received anything.
    pub index: Option<f64>,
    /// Sum, smallest and largest of the throughputs, 10⁶ bit/s of payload.
    pub throughput_mbps: [f64; 3],
}

/// Each group of a lab in the order of names, and at last all flows; empty if no flow has a group.
#[must_use]
pub fn of(lab: &Lab, reports: &[FlowReport]) -> Vec<Fairness> {
    let mut groups: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    let mut all = Vec::new();
    for (flow, report) in lab.traffic.iter().zip(reports) {
        let rate = throughput(report);
        all.push(rate);
        if let Some(group) = &flow.group {
            groups.entry(group).or_default().push(rate);
        }
    }
    if groups.is_empty() {
        return Vec::new();
    }
    let groups = groups
        .into_iter()
        .map(|(group, rates)| row(Some(group.to_owned()), &rates));
    groups.chain([row(None, &all)]).collect()
}

fn row(group: Option<String>, rates: &[f64]) -> Fairness {
    Fairness {
        group,
        flows: rates.len(),
        index: jain(rates),
        throughput_mbps: [
            rates.iter().sum(),
            rates.iter().copied().fold(f64::INFINITY, f64::min),
            rates.iter().copied().fold(0.0, f64::max),
        ],
    }
}

/// Payload that a flow delivered on all its paths, over its time; 0 for a flow without a time.
fn throughput(report: &FlowReport) -> f64 {
    let durations = report.paths.iter().map(|path| path.duration.as_secs_f64());
    let seconds: f64 = durations.sum();
    let bits = report.sum(|path| path.received_octets) as f64 * 8.0;
    if seconds > 0.0 {
        bits / (seconds + report.tail.as_secs_f64()) / 1e6
    } else {
        0.0
    }
}

/// Jain's index; `None` without a value above 0.
#[must_use]
pub fn jain(values: &[f64]) -> Option<f64> {
    let sum: f64 = values.iter().sum();
    let squares: f64 = values.iter().map(|value| value * value).sum();
    (squares > 0.0).then(|| sum * sum / (values.len() as f64 * squares))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jains_index() {
        assert_eq!(jain(&[5.0; 7]), Some(1.0));
        // One of four gets all; two of four share; the example with 1, 2, 3: 36 / 42.
        assert_eq!(jain(&[9.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!(jain(&[3.0, 0.0, 3.0, 0.0]), Some(0.5));
        assert!((jain(&[1.0, 2.0, 3.0]).unwrap() - 36.0 / 42.0).abs() < 1e-15);
        assert_eq!((jain(&[]), jain(&[0.0, 0.0])), (None, None));
    }
}
