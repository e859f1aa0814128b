//! Tables for people fit a terminal of 80 columns: which columns are shown, and how wide columns of prose are.

use super::{Rows, plain};

/// Columns of the terminal for which tables are made.
pub(crate) const NARROW: usize = 80;
/// Blanks between two columns.
pub(super) const GAP: usize = 2;
/// Prose is broken into lines only where it is longer than this, and never into shorter ones.
const PROSE: usize = 24;

/// Columns of tables that cannot do with what the tables' own order says, the least important one first. A table is
/// known by a column that no other one has. Columns that are not listed here are dropped last, the rightmost first.
pub(crate) const ORDERS: &[(&str, &[&str])] = &[
    // Flows, for people: what was sent, what came, how fast.
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
    // Connections: what came and what was lost at the far end.
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
        ],
    ),
    // Ingress cache of an MPOA client.
    (
        "last_code",
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
            "mtu_octets",
            "requesters",
            "servers",
            "responder",
            "next_hop",
        ],
    ),
    // Permanent connections: what is lost matters most.
    ("cells_b", &["policed", "kind", "qos"]),
    // Frames of an interface over LANE and over shortcuts.
    ("shortcut_out_frames", &["mtu_octets", "mac", "up"]),
];

/// Which columns of a table are shown, in the table's order, with the widths to which those of prose are limited.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Choice {
    /// Numbers of the columns.
    pub(super) shown: Vec<usize>,
    /// For each of them the most characters in a line; `None` if its values stay whole.
    pub(super) limits: Vec<Option<usize>>,
}

impl Choice {
    /// All columns as wide as they are.
    pub(super) fn all(rows: &Rows) -> Self {
        let count = rows.columns.len();
        Self {
            shown: (0..count).collect(),
            limits: vec![None; count],
        }
    }

    /// What fits [`NARROW`]. The most important column is shown even if it does not fit.
    pub(super) fn narrow(rows: &Rows) -> Self {
        let widths: Vec<Width> = (0..rows.columns.len())
            .map(|at| Width::of(rows, at))
            .collect();
        let total = |shown: &[usize]| -> usize {
            let least: usize = shown.iter().map(|&at| widths[at].least).sum();
            least + GAP * shown.len().saturating_sub(1)
        };
        let mut shown = Vec::new();
        // A column that does not fit may be followed by one that does.
        for at in by_importance(rows) {
            shown.push(at);
            if shown.len() > 1 && total(&shown) > NARROW {
                shown.pop();
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

/// Numbers of the columns, the most important one first.
fn by_importance(rows: &Rows) -> Vec<usize> {
    let has = |name: &str| rows.columns.iter().any(|column| column == name);
    let order = ORDERS.iter().find(|(mark, _)| has(mark));
    let order = order.map_or(&[][..], |(_, order)| *order);
    let mut columns: Vec<usize> = (0..rows.columns.len()).collect();
    columns.sort_by_key(|&at| {
        let rank = order.iter().position(|name| *name == rows.columns[at]);
        let detail = rank.is_some();
        // A detail of which there is nothing to tell goes before all others; a key column never goes for that.
        let empty = rank != Some(0) && (detail || at > 0) && is_empty(rows, at, detail);
        (empty, detail, std::cmp::Reverse(rank), at)
    });
    columns
}

/// True if no row has a value here. The zeros of a detail are no news.
fn is_empty(rows: &Rows, at: usize, zeros: bool) -> bool {
    let mut values = rows.rows.iter().filter_map(|row| row.get(at));
    !rows.rows.is_empty()
        && values
            .all(|value| value.is_null() || value == "" || (zeros && value.as_f64() == Some(0.0)))
}

/// Widths of a column in characters.
struct Width {
    /// Of its longest value, or its name.
    natural: usize,
    /// With prose broken into lines.
    least: usize,
}

impl Width {
    fn of(rows: &Rows, at: usize) -> Self {
        let length = |text: &str| text.chars().count();
        let header = length(&rows.columns[at]);
        let (mut natural, mut word) = (header, header);
        for value in rows.rows.iter().filter_map(|row| row.get(at)) {
            let text = plain(value);
            natural = natural.max(text.lines().map(length).max().unwrap_or(0));
            word = word.max(text.split_whitespace().map(length).max().unwrap_or(0));
        }
        let least = natural.min(word.max(PROSE));
        Self { natural, least }
    }
}

/// The line below a table that lacks columns, broken to fit.
pub(super) fn left_out(rows: &Rows, choice: &Choice) -> Option<String> {
    let all = rows.columns.iter().enumerate();
    let missing = all.filter(|(at, _)| !choice.shown.contains(at));
    let mut text = String::new();
    let mut length = 0;
    for (_, name) in missing {
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
