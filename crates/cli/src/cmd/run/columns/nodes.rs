//! Tables of the state of nodes: the rows that `aerostat inspect` shows ([`aerostat_node::inspect`]), with their
//! columns and meanings.

use super::{Column, Kind, TableInfo};
use aerostat_lab::report::SHOWN;
use aerostat_node::inspect;
use std::borrow::Cow;
use std::sync::LazyLock;

/// The tables, by name. Hosts and switches may have a table in common; then it has the columns of both.
pub(super) static TABLES: LazyLock<Vec<TableInfo>> = LazyLock::new(|| {
    let mut all: Vec<TableInfo> = Vec::new();
    let shown = inspect::tables().filter(|info| SHOWN.contains(&info.kind()));
    for info in shown {
        let at = all.iter().position(|known| known.name == info.name);
        let at = at.unwrap_or_else(|| {
            all.push(TableInfo {
                name: info.name,
                what: Cow::Borrowed(info.what()),
                columns: Cow::Borrowed(&[]),
            });
            all.len() - 1
        });
        let columns = all[at].columns.to_mut();
        for column in info.columns {
            if columns.iter().all(|known| known.name != column.name) {
                columns.push(of_row(column));
            }
        }
    }
    for info in &mut all {
        if let Some((_, leading)) = LEADING.iter().find(|(name, _)| *name == info.name) {
            let rank = |column: &Column| leading.iter().position(|name| *name == column.name);
            let columns = info.columns.to_mut();
            columns.sort_by_key(|column| rank(column).unwrap_or(leading.len()));
        }
    }
    all.sort_by_key(|info| info.name);
    all
});

fn of_row(column: &inspect::Column) -> Column {
    Column {
        name: column.name,
        kind: match column.kind {
            inspect::Kind::Text => Kind::Text,
            inspect::Kind::Count => Kind::Count,
        },
        null: false,
        rare: false,
        what: Cow::Owned(column.what()),
    }
}

/// Tables whose CSV has other columns first than `aerostat inspect`: scripts may know columns by their numbers. The
/// columns that are not listed follow in the order of the row.
const LEADING: [(&str, &[&str]); 11] = [
    ("bus.clients", &["elan", "lecid", "address", "vc"]),
    (
        "call.calls",
        &[
            "user",
            "phase",
            "vc",
            "direction",
            "parties",
            "call",
            "in_port",
            "in_vc",
            "out",
            "multipoint",
            "accepted",
        ],
    ),
    ("lec.client", &["interface", "elan", "elan_id"]),
    ("lec.connections", &["role", "peer", "vc"]),
    ("lec.le_arp", &["mac", "address", "vc"]),
    (
        "les.clients",
        &["lecid", "state", "address", "macs", "proxy"],
    ),
    (
        "nhrp.cache",
        &[
            "destination",
            "reason",
            "nbma",
            "next_hop",
            "mtu_octets",
            "holding_s",
            "requesters",
        ],
    ),
    (
        "port.ports",
        &[
            "port",
            "name",
            "link",
            "kind",
            "signalling",
            "calls",
            "pending",
            "labels",
            "reserved_tx_cps",
            "reserved_rx_cps",
        ],
    ),
    ("saal.error codes", &["port", "code", "count"]),
    (
        "saal.signalling links",
        &[
            "port",
            "state",
            "edition",
            "established",
            "released",
            "retransmitted",
            "errors",
        ],
    ),
    ("sockets.calls", &["name", "state"]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_that_csv_has_first_is_a_column_of_its_table() {
        for (name, leading) in LEADING {
            let info = TABLES.iter().find(|info| info.name == name).expect(name);
            let first = info.columns.iter().map(|column| column.name);
            let first: Vec<_> = first.take(leading.len()).collect();
            assert_eq!(first, leading, "{name}");
        }
    }

    /// A column that hosts and switches have in common is explained once.
    #[test]
    fn rows_that_share_a_table_agree_about_the_columns_that_they_share() {
        let shared = inspect::tables().flat_map(|info| {
            let columns = info.columns.iter();
            columns.map(move |column| (info.name, column))
        });
        for (table, column) in shared.filter(|(name, _)| !name.starts_with("vc.")) {
            let known = TABLES.iter().find(|info| info.name == table);
            let Some(known) = known else { continue };
            let mut columns = known.columns.iter();
            let known = columns.find(|known| known.name == column.name);
            let known = known.expect("all columns are known");
            assert_eq!(known.what, column.what(), "{table} {}", column.name);
        }
    }
}
