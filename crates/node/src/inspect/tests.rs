//! Rows, tables, and what both say in JSON.

use super::*;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

crate::rows! {
    /// Tables of these tests.
    const TABLES;

    /// One row for each
    /// ship.
    struct Ship: "port.ships" {
        /// Its name.
        name: String,
        /// IP address of its
        /// wireless.
        ip: Option<IpAddr>,
        /// Seconds until it leaves.
        leaves_s: u64,
        /// `yes` if it is full.
        full: bool,
    }
}

fn ship() -> Ship {
    Ship {
        name: "urku".to_owned(),
        ip: Some(IpAddr::V4(Ipv4Addr::new(10, 1, 0, 7))),
        leaves_s: 20,
        full: false,
    }
}

#[test]
fn names_headings_units_and_meanings_of_columns_come_from_the_row() {
    let [info] = TABLES else { panic!("one table") };
    assert_eq!((info.kind(), info.title()), ("port", "ships"));
    assert_eq!(info.what(), "One row for each ship.");
    let columns = info.columns.iter();
    let columns: Vec<_> = columns
        .map(|column| (column.name, column.kind, column.what()))
        .collect();
    let column = |name, kind, what: &str| (name, kind, what.to_owned());
    assert_eq!(
        columns,
        [
            column("name", Kind::Text, "its name"),
            column("ip", Kind::Text, "IP address of its wireless"),
            column("leaves_s", Kind::Count, "seconds until it leaves"),
            column("full", Kind::Text, "`yes` if it is full"),
        ]
    );
}

#[test]
fn a_row_that_was_read_from_a_table_is_the_row_that_was_put_in() {
    let empty = Ship { ip: None, ..ship() };
    let table = Table::of([ship(), empty.clone()]);
    assert_eq!((table.title, table.columns), ("ships", Ship::NAMES));
    assert_eq!(table.rows::<Ship>(), Ok(vec![ship(), empty]));
    // Rows of another table are not taken for ships.
    assert_eq!(table.rows::<counters::Counter>(), Ok(Vec::new()));
    let mut table = table;
    table.rows[0][2] = "soon".into();
    assert_eq!(table.rows::<Ship>(), Err(Unreadable("leaves_s")));
}

/// Every table of nodes has a kind, its columns have meanings, and no two columns have the same name.
#[test]
fn every_table_says_what_its_rows_and_columns_are() {
    for info in tables() {
        assert!(info.name.contains('.'), "{}", info.name);
        assert!(info.what().starts_with("One row for each"), "{}", info.name);
        let names: BTreeSet<_> = info.columns.iter().map(|column| column.name).collect();
        assert_eq!(names.len(), info.columns.len(), "{}", info.name);
        for column in info.columns {
            let what = column.what();
            assert!(!what.is_empty(), "{} {}", info.name, column.name);
        }
    }
}

#[test]
fn every_word_of_a_type_is_another_word_and_is_read_as_its_state() {
    fn check<S: Cell + PartialEq + std::fmt::Debug + std::fmt::Display>(all: &[S]) {
        let words: BTreeSet<_> = all.iter().map(S::to_string).collect();
        assert_eq!(words.len(), all.len(), "{words:?}");
        for state in all {
            assert_eq!(S::read(&state.cell()).as_ref(), Some(state));
        }
    }
    check(&words::Direction::ALL);
    check(&words::AtmarpState::ALL);
    check(&words::AtmarpEnd::ALL);
    check(&words::Aal::ALL);
    check(&words::WayState::ALL);
    check(&crate::signalling::Phase::ALL);
    check(&aerostat_proto::interface::Phase::ALL);
    check(&aerostat_proto::saal::State::ALL);
}
