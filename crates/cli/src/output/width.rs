//! Tables for people on a terminal of 80 columns: which columns are shown, and how wide columns of prose are.

use super::{Rows, readable};

/// Columns of the terminal for which tables are made.
pub(crate) const NARROW: usize = 80;
/// Blanks between two columns.
pub(super) const GAP: usize = 2;
/// Prose is broken into lines only if it is longer than this; its lines are not made shorter than this.
const PROSE: usize = 24;

/// Orders of columns for tables whose own order is not suitable, the least important column first. A table is
/// recognised by a column that no other table has. Columns that are not listed are dropped last, the rightmost first.
pub(crate) const ORDERS: &[(&str, &[&str])] = &[
    // Flows, for people: packets sent and received, and throughput.
    (
        "out_of_sequence",
        &[
            "jitter_std_us",
            "jitter_max_us",
            "retransmitted",
            "r_factor",
            "jitter_mean_us",
            "out_of_sequence",
            "rtt_mean_us",
            "delay_p99_us",
            "under_way",
            "in_flight",
            "seconds",
            "refused",
            "sent",
            "from",
            "to",
            "delivered",
            "offered",
            "answered",
            "lost_by",
        ],
    ),
    // Connections between programs: PDUs, and how fast they were.
    (
        "reader",
        &[
            "delay_us_variance",
            "delay_us_standard_deviation",
            "delay_us_p99_9",
            "delay_us_p50",
            "delay_us_min",
            "delay_us_max",
            "delivered_octets",
            "duration_s",
            "under_way",
            "delay_us_p99",
            "waiting",
            "late",
            "sent",
            "refused",
            "reader",
            "lost_by",
            "delay_us_mean",
            "throughput_mbps",
        ],
    ),
    // Ends of ATP.
    (
        "naks_sent",
        &[
            "steps_left_out",
            "window_min",
            "acks_sent",
            "naks_sent",
            "naks_received",
            "duplicates",
            "malformed",
            "no_room",
            "out_of_window",
            "refused",
            "messages_sent",
            "messages_received",
            "packets_received",
            "send_s",
            "receive_s",
            "turn_s",
            "octets_sent",
            "octets_received",
            "window_last",
            "window_max",
            "round_trip_us",
            "left",
            "timeouts",
            "packets_sent",
            "packets_repeated",
        ],
    ),
    // Rows of papers that ran in real time, too.
    (
        "live_wait_us",
        &[
            "live_late",
            "live_wait_us",
            "live_retransmitted",
            "tcp",
            "where",
            "says",
            "seeds",
            "live_runs",
            "rule",
            "low",
            "high",
            "live_timeouts",
            "live_low",
            "live_high",
            "tier",
            "unit",
            "live_error_%",
            "error_%",
        ],
    ),
    // Connections: cells received and lost at the far end.
    (
        "pdus_bad",
        &[
            "cells_waiting",
            "cells_refused",
            "multipoint",
            "switches",
            "to_vc",
            "cells_under_way",
            "cells_offered",
            "cells_sent",
            "cells_wasted",
        ],
    ),
    // Ingress cache of an MPOA client.
    (
        "fallback",
        &[
            "fallback",
            "traffic",
            "port",
            "protocol",
            "tag",
            "mps",
            "last_cause",
            "last_code",
        ],
    ),
    // Egress cache.
    (
        "latest_source",
        &["tag", "interface", "latest_source", "ingress_mpc"],
    ),
    // LANE clients.
    (
        "elan_id",
        &[
            "elan_id", "version", "bus", "les", "lecid", "mac", "address",
        ],
    ),
    // Calls of programs.
    (
        "sent_crc32",
        &[
            "sent_crc32",
            "received_crc32",
            "sent_octets",
            "received_octets",
            "peer",
        ],
    ),
    // Neighbours in NHRP.
    (
        "authoritative",
        &[
            "authoritative",
            "last_code",
            "last_cause",
            "mtu_octets",
            "requesters",
            "servers",
            "responder",
            "next_hop",
        ],
    ),
    // Ways of calls: where they lead, and what becomes of them.
    ("length_octets", &["length_octets", "port"]),
    // Permanent connections: losses matter most.
    ("cells_b", &["policed", "kind", "qos"]),
    // Frames of an interface over LANE and over shortcuts.
    ("shortcut_out_frames", &["mtu_octets", "mac", "up"]),
];

/// Tables whose most important columns are listed, the most important one first. Columns in front of all of these are more
/// important; the others follow as above. As many of these as fit are shown, whatever is in them, and no column stands in
/// for one that is more important: readers find the same columns in every lab.
const LEADING: &[(&str, &[&str])] = &[
    // Means over the seeds of a sweep.
    (
        "throughput_mbps_ci95",
        &[
            "name",
            "phase",
            "n",
            "throughput_mbps",
            "throughput_mbps_ci95",
            "lost",
            "delay_us_mean",
            "delay_us_mean_ci95",
            "lost_ci95",
            "delivered",
        ],
    ),
    // Flows.
    (
        "out_of_sequence",
        &[
            "flow",
            "name",
            "phase",
            "throughput_mbps",
            "lost",
            "offered",
            "delivered",
            "delay_mean_us",
            "delay_us_mean",
            "answered",
            "tcp",
            "lost_by",
        ],
    ),
];

/// The columns of a table that are shown, in the table's order, with width limits for columns of prose.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Choice {
    /// Numbers of the columns.
    pub(super) shown: Vec<usize>,
    /// For each of them the largest number of characters in a line; `None` if values are not broken.
    pub(super) limits: Vec<Option<usize>>,
}

impl Choice {
    /// All columns in their natural width.
    pub(super) fn all(rows: &Rows) -> Self {
        let count = rows.columns.len();
        Self {
            shown: (0..count).collect(),
            limits: vec![None; count],
        }
    }

    /// The columns that fit [`NARROW`]. The most important column is shown even if it does not fit.
    pub(super) fn narrow(rows: &Rows) -> Self {
        let widths: Vec<Width> = (0..rows.columns.len())
            .map(|at| Width::of(rows, at))
            .collect();
        let total = |shown: &[usize]| -> usize {
            let least: usize = shown.iter().map(|&at| widths[at].least).sum();
            least + GAP * shown.len().saturating_sub(1)
        };
        let mut shown = Vec::new();
        let fixed = !leading(rows).is_empty();
        // A narrower column may follow one that does not fit.
        for at in by_importance(rows) {
            shown.push(at);
            if shown.len() > 1 && total(&shown) > NARROW {
                shown.pop();
                if fixed {
                    break;
                }
            }
        }
        shown.sort_unstable();
        let mut spare = NARROW.saturating_sub(total(&shown));
        let limits = shown.iter().map(|&at| {
            let width = &widths[at];
            let more = (width.natural - width.least).min(spare);
            spare -= more;
            let limit = width.least + more;
            (limit < width.natural).then_some(limit)
        });
        let limits = limits.collect();
        Self { shown, limits }
    }
}

/// The most important columns, if they are listed.
fn leading(rows: &Rows) -> &'static [&'static str] {
    let has = |name: &str| rows.columns.iter().any(|column| column == name);
    let leading = LEADING.iter().find(|(mark, _)| has(mark));
    leading.map_or(&[][..], |(_, leading)| *leading)
}

/// Numbers of the columns, the most important one first.
fn by_importance(rows: &Rows) -> Vec<usize> {
    let has = |name: &str| rows.columns.iter().any(|column| column == name);
    let order = ORDERS.iter().find(|(mark, _)| has(mark));
    let order = order.map_or(&[][..], |(_, order)| *order);
    let leading = leading(rows);
    let place = |name: &str| leading.iter().position(|leading| *leading == name);
    let first = (rows.columns.iter()).position(|column| place(column).is_some());
    let mut columns: Vec<usize> = (0..rows.columns.len()).collect();
    columns.sort_by_key(|&at| {
        let rank = order.iter().position(|name| *name == rows.columns[at]);
        let detail = rank.is_some();
        // A detail column without information is dropped before all others; a key column is never dropped for that.
        let empty = rank != Some(0) && (detail || at > 0) && is_empty(rows, at, detail);
        let lead = match first {
            Some(first) if at < first => 0,
            Some(_) => place(&rows.columns[at]).map_or(usize::MAX, |place| place + 1),
            None => 0,
        };
        (lead, empty, detail, std::cmp::Reverse(rank), at)
    });
    columns
}

/// True if no row has a value in this column. With `zeros`, zeros count as no value.
fn is_empty(rows: &Rows, at: usize, zeros: bool) -> bool {
    let mut values = rows.rows.iter().filter_map(|row| row.get(at));
    !rows.rows.is_empty()
        && values
            .all(|value| value.is_null() || value == "" || (zeros && value.as_f64() == Some(0.0)))
}

/// Widths of a column in characters.
struct Width {
    /// Width of its longest value, or of its name.
    natural: usize,
    /// Width with prose broken into lines.
    least: usize,
}

impl Width {
    fn of(rows: &Rows, at: usize) -> Self {
        let length = |text: &str| text.chars().count();
        let header = length(&rows.columns[at]);
        let (mut natural, mut word) = (header, header);
        for value in rows.rows.iter().filter_map(|row| row.get(at)) {
            let text = readable(value);
            natural = natural.max(text.lines().map(length).max().unwrap_or(0));
            word = word.max(text.split_whitespace().map(length).max().unwrap_or(0));
        }
        let least = natural.min(word.max(PROSE));
        Self { natural, least }
    }
}

/// The line below a table with the names of the missing columns, broken to fit. Of very many, as of the means of a sweep,
/// the first ones are named, and the others are counted.
pub(super) fn left_out(rows: &Rows, choice: &Choice) -> Option<String> {
    const MOST: usize = 64;
    const NAMED: usize = 16;
    let all = rows.columns.iter().enumerate();
    let missing = all.filter(|(at, _)| !choice.shown.contains(at));
    let mut missing: Vec<String> = missing.map(|(_, name)| name.clone()).collect();
    if missing.len() > MOST {
        let more = missing.len() - NAMED;
        missing.truncate(NAMED);
        missing.push(format!("and {more} more"));
    }
    let mut text = String::new();
    let mut length = 0;
    for name in &missing {
        let word = if text.is_empty() {
            format!("(--wide adds {name}")
        } else if length + name.len() + 3 > NARROW {
            text.push_str(",\n ");
            length = 1;
            text.push_str(name);
            length += name.len();
            continue;
        } else {
            format!(", {name}")
        };
        length += word.len();
        text.push_str(&word);
    }
    (!text.is_empty()).then(|| text + ")")
}

#[cfg(test)]
mod tests;
