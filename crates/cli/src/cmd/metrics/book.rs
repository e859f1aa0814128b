//! Metrics by their names, and their text.

use crate::args::MetricsFormat;
use prometheus_client::encoding::{prometheus_text, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;

/// Limit of series of one reading.
const MOST: usize = 100_000;

/// End of the names of counters, which the encoders add by themselves.
const TOTAL: &str = "_total";

/// A metric.
#[derive(Clone, Copy, Debug)]
pub(super) struct Metric {
    /// Its name as Prometheus has it.
    pub(super) name: &'static str,
    /// Names of its labels, in the order of their values.
    pub(super) labels: &'static [&'static str],
    /// One sentence, without a point.
    pub(super) help: &'static str,
}

impl Metric {
    /// True for a counter, by its name.
    pub(super) fn is_counter(&self) -> bool {
        self.name.ends_with(TOTAL)
    }
}

/// Makes the list of metrics, and a constant for each.
macro_rules! metrics {
    ($($constant:ident = $name:literal [$($label:literal),*] $help:literal;)+) => {
        $( pub(super) const $constant: Metric = Metric { name: $name, labels: &[$($label),*], help: $help }; )+
        /// All metrics.
        pub(super) const ALL: &[Metric] = &[$($constant),+];
    };
}

metrics! {
    UP = "aerostat_lab_up" ["lab"] "1 if the lab runs and answers, otherwise 0";
    READY = "aerostat_lab_ready" ["lab"] "1 if all clients have joined, otherwise 0";
    INFO = "aerostat_lab_info" ["lab", "version", "seed"] "Always 1; the version of the program and the seed of the lab";
    UPTIME = "aerostat_lab_uptime_seconds" ["lab"] "Time since the start of the lab";
    READING = "aerostat_lab_reading_seconds" ["lab"] "Time that the lab took to answer this reading";
    LEFT_OUT = "aerostat_left_out_series" [] "Series that this reading leaves out, because there are more than 100000";
    FRAMES_BAD = "aerostat_lab_bad_frames_total" ["lab"] "Frames of kernel hosts with a bad offload header";
    FRAMES_REFUSED = "aerostat_lab_refused_frames_total" ["lab"] "Frames that kernels of hosts refused";
    CAPTURE_DROPPED = "aerostat_lab_capture_dropped_packets_total" ["lab"] "Packets that slow captures missed";
    EVENTS_MISSED = "aerostat_lab_missed_events_total" ["lab"] "Events that slow followers missed";
    NODE_UP = "aerostat_node_up" ["lab", "node", "kind"] "1 if the node runs, 0 after a crash";
    LINK_UP = "aerostat_link_up" ["lab", "link"] "1 if the link works, 0 if it is cut or trains";
    LINK_RATE = "aerostat_link_rate_cells_per_second" ["lab", "link", "from", "to"] "Rate of the direction in the lab file";
    LINK_SENT = "aerostat_link_sent_cells_total" ["lab", "link", "from", "to"] "Cells that the first end sent to the second";
    LINK_LOST = "aerostat_link_lost_cells_total" ["lab", "link"] "Cells lost on the link, both directions together";
    PORT_RECEIVED = "aerostat_port_received_cells_total" ["lab", "node", "port", "name"] "Cells that a port of a switch received";
    PORT_SENT = "aerostat_port_sent_cells_total" ["lab", "node", "port", "name"] "Cells that a port of a switch sent";
    PORT_DROPPED = "aerostat_port_dropped_cells_total" ["lab", "node", "port", "name"] "Cells that a port of a switch dropped";
    PORT_QUEUED = "aerostat_port_queued_cells" ["lab", "node", "port", "name"] "Cells that wait at a port of a switch";
    PORT_CALLS = "aerostat_port_calls" ["lab", "node", "port", "name"] "Calls through a port of a switch";
    FLOW_SENT = "aerostat_flow_sent_packets_total" ["lab", "flow", "from", "to"] "Packets that the flow sent";
    FLOW_RECEIVED = "aerostat_flow_received_packets_total" ["lab", "flow", "from", "to"] "Packets that the flow received";
    FLOW_LOST = "aerostat_flow_lost_packets_total" ["lab", "flow", "from", "to"] "Packets that the flow lost";
    FLOW_SENT_BYTES = "aerostat_flow_sent_bytes_total" ["lab", "flow", "from", "to"] "Octets that the flow sent";
    FLOW_RECEIVED_BYTES = "aerostat_flow_received_bytes_total" ["lab", "flow", "from", "to"] "Octets that the flow received";
    FLOW_DELAY = "aerostat_flow_delay_seconds_total" ["lab", "flow", "from", "to"] "Sum of the delays of received packets";
    CALLS = "aerostat_calls" ["lab", "purpose", "state"] "Calls, as their callers see them";
    MEMBERS = "aerostat_members" ["lab", "network", "by", "state"] "Members of ELANs and subnets";
    SHORTCUTS = "aerostat_shortcuts" ["lab", "by", "state"] "Shortcuts of MPOA and NHRP, where they begin";
    FAULTS = "aerostat_faults" ["lab", "what"] "Links that do not work, nodes and services that are off";
    COUNTER = "aerostat_inspect_total" ["lab", "node", "kind", "table", "name"] "A row of a table of counters of inspect, with --counters";
}

type Labels = Vec<(&'static str, String)>;

/// The metrics of a reading.
#[derive(Debug, Default)]
pub(super) struct Book {
    values: BTreeMap<&'static str, BTreeMap<Vec<String>, f64>>,
    count: usize,
    left: u64,
}

impl Book {
    /// Sets the value of a metric with these values of its labels.
    pub(super) fn set(&mut self, metric: Metric, labels: &[&str], value: f64) {
        debug_assert_eq!(labels.len(), metric.labels.len(), "{}", metric.name);
        let labels: Vec<String> = labels.iter().map(|label| (*label).to_owned()).collect();
        let of = self.values.entry(metric.name).or_default();
        if let Some(known) = of.get_mut(&labels) {
            *known = value;
        } else if self.count >= MOST {
            self.left += 1;
        } else {
            of.insert(labels, value);
            self.count += 1;
        }
    }

    /// Adds to the value.
    pub(super) fn add(&mut self, metric: Metric, labels: &[&str], value: f64) {
        let key: Vec<String> = labels.iter().map(|label| (*label).to_owned()).collect();
        let before = self.values.get(metric.name).and_then(|of| of.get(&key));
        self.set(metric, labels, before.copied().unwrap_or_default() + value);
    }

    /// Notes that a node of a lab is off, whatever its kind.
    pub(super) fn put_down(&mut self, lab: &str, node: &str) {
        let nodes = self.values.entry(NODE_UP.name).or_default();
        let its = nodes.iter_mut();
        for (_, value) in its.filter(|(labels, _)| labels[0] == lab && labels[1] == node) {
            *value = 0.0;
        }
    }

    /// The text of all metrics that have a value.
    pub(super) fn text(mut self, format: MetricsFormat) -> String {
        let left = self.left as f64;
        self.count = 0;
        self.set(LEFT_OUT, &[], left);
        let mut registry = Registry::default();
        for metric in ALL {
            let Some(values) = self.values.get(metric.name) else {
                continue;
            };
            let named = |values: &Vec<String>| -> Labels {
                metric
                    .labels
                    .iter()
                    .copied()
                    .zip(values.iter().cloned())
                    .collect()
            };
            if metric.is_counter() {
                let name = metric.name.trim_end_matches(TOTAL);
                let family = Family::<Labels, Counter<f64, AtomicU64>>::default();
                for (labels, value) in values {
                    family.get_or_create(&named(labels)).inc_by(*value);
                }
                registry.register(name, metric.help, family);
            } else {
                let family = Family::<Labels, Gauge<f64, AtomicU64>>::default();
                for (labels, value) in values {
                    family.get_or_create(&named(labels)).set(*value);
                }
                registry.register(metric.name, metric.help, family);
            }
        }
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = match format {
            MetricsFormat::Prometheus => prometheus_text::encode(&mut text, &registry),
            MetricsFormat::Openmetrics => text::encode(&mut text, &registry),
        };
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_has_a_limit_that_is_told() {
        let mut book = Book::default();
        for number in 0..MOST + 7 {
            book.set(UP, &[&number.to_string()], 1.0);
        }
        // What has a place changes still.
        book.set(UP, &["3"], 0.0);
        book.add(UP, &["4"], 1.0);
        let text = book.text(MetricsFormat::Prometheus);
        assert!(
            text.contains("aerostat_left_out_series 7.0\n"),
            "{}",
            &text[..200]
        );
        assert!(text.contains("aerostat_lab_up{lab=\"3\"} 0.0\n"));
        assert!(text.contains("aerostat_lab_up{lab=\"4\"} 2.0\n"));
    }

    #[test]
    fn names_of_labs_are_text() {
        let mut book = Book::default();
        book.set(UP, &["a\"b\\c\nd"], 1.0);
        let text = book.text(MetricsFormat::Prometheus);
        assert!(
            text.contains(r#"aerostat_lab_up{lab="a\"b\\c\nd"} 1"#),
            "{text}"
        );
    }

    #[test]
    fn the_page_has_every_metric_and_the_dashboard_asks_for_no_other() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/");
        let read = |name: &str| std::fs::read_to_string(format!("{folder}{name}")).unwrap();
        let page = read("metrics.md");
        for metric in ALL {
            let labels: Vec<String> = metric
                .labels
                .iter()
                .map(|label| format!("`{label}`"))
                .collect();
            let kind = if metric.is_counter() {
                "counter"
            } else {
                "gauge"
            };
            let row = format!(
                "| `{}` | {kind} | {} | {} |",
                metric.name,
                labels.join(", "),
                metric.help
            );
            assert!(page.contains(&row), "docs/metrics.md lacks\n{row}");
        }
        let dashboard: serde_json::Value =
            serde_json::from_str(&read("metrics-dashboard.json")).unwrap();
        let panels = dashboard["panels"].as_array().unwrap();
        let targets = panels
            .iter()
            .flat_map(|panel| panel["targets"].as_array().unwrap());
        let mut asked = 0;
        for target in targets {
            let query = target["expr"].as_str().unwrap();
            let words = query.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let names: Vec<&str> = words.filter(|word| word.starts_with("aerostat_")).collect();
            assert!(!names.is_empty(), "{query}");
            for name in names {
                let metric = ALL.iter().find(|metric| metric.name == name);
                let metric = metric.unwrap_or_else(|| panic!("{query}: no metric {name}"));
                // Labels in braces, in 'by (...)', and in the legend.
                let legend = target["legendFormat"].as_str().unwrap_or_default();
                for label in labels_of(query, legend) {
                    assert!(
                        metric.labels.contains(&&*label),
                        "{query}: {name} has no label {label}"
                    );
                }
            }
            asked += 1;
        }
        assert!(asked >= 10, "{asked} queries");
    }

    /// The labels that a query and its legend name.
    fn labels_of(query: &str, legend: &str) -> Vec<String> {
        let mut labels = Vec::new();
        for part in query.split('{').skip(1) {
            let inner = part.split('}').next().unwrap_or_default();
            let pairs = inner.split(',').filter(|pair| !pair.is_empty());
            labels.extend(
                pairs.filter_map(|pair| Some(pair.split(['=', '!']).next()?.trim().to_owned())),
            );
        }
        for part in query.split("by (").skip(1) {
            let inner = part.split(')').next().unwrap_or_default();
            labels.extend(inner.split(',').map(|label| label.trim().to_owned()));
        }
        for part in legend.split("{{").skip(1) {
            labels.push(
                part.split("}}")
                    .next()
                    .unwrap_or_default()
                    .trim()
                    .to_owned(),
            );
        }
        labels
    }
}
