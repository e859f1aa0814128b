use super::super::{Layout, render};
use super::*;
use crate::cmd::reproduce::ScoreLine;
use aerostat_lab::results;
use aerostat_node::inspect::{FlatColumn, Row as _};
use aerostat_view::people::FlowLine;
use serde_json::Value;

const ADDRESS: &str = "47.0005.80.ffe100.0000.f21a.0102.0020480a1b2c.00";

/// A table without rows.
fn shape(name: &str, columns: &[FlatColumn]) -> Rows {
    Rows {
        title: name.to_owned(),
        importance: columns.iter().map(|column| column.importance).collect(),
        columns: columns.iter().map(|column| column.name.clone()).collect(),
        ..Rows::default()
    }
}

/// All tables with important columns: those of the results, those of `inspect`, and the rows of papers.
fn tables() -> Vec<Rows> {
    let results = results::tables().map(|info| shape(info.name, &results::columns(info)));
    let inspected = aerostat_node::inspect::tables().map(|info| shape(info.name, &info.flat()));
    let own = [
        ("flows for people", FlowLine::TABLE.flat()),
        ("reproduce", ScoreLine::TABLE.flat()),
    ];
    let own = own.map(|(name, columns): (_, Vec<_>)| shape(name, &columns));
    results.chain(inspected).chain(own).collect()
}

/// A table with values as long as in a real network.
fn filled(rows: &Rows) -> Rows {
    let mut rows = rows.clone();
    rows.title.clear();
    let value = |name: &String| -> Value {
        match name.as_str() {
            "address" | "les" | "bus" | "egress" | "mps" | "ingress_mpc" | "peer" | "calling"
            | "called" | "nbma" | "atm" | "server" | "control" | "client" => ADDRESS.into(),
            "meaning" | "lost_by" => "a text of many words that goes on beyond the line "
                .repeat(2)
                .into(),
            name if name.contains("cells") || name.ends_with("_us") => 1_234_567.into(),
            _ => "c4700-east-17".into(),
        }
    };
    rows.push(rows.columns.iter().map(value).collect());
    rows
}

fn widest(text: &str) -> usize {
    text.lines()
        .map(|line| line.chars().count())
        .max()
        .unwrap_or(0)
}

#[test]
fn every_table_of_the_results_fits_80_columns_and_its_first_column_stays() {
    for shape in tables() {
        let (rows, name, columns) = (filled(&shape), &shape.title, &shape.columns);
        let text = render(&rows, Layout::Narrow);
        assert!(widest(&text) <= NARROW, "{name}: {}\n{text}", widest(&text));
        let first = columns[0].to_uppercase();
        // Whose rows `inspect` shows stands above the table.
        let inspected = aerostat_node::inspect::tables().any(|info| info.name == *name);
        let begins = text.starts_with(&first);
        assert!(begins || inspected, "{name} without {first}:\n{text}");
        let wide = render(&rows, Layout::Wide);
        for column in columns {
            assert!(wide.contains(&column.to_uppercase()), "{name}: {column}");
            // A column is shown, or the line below the table names it.
            let told = text.contains(&column.to_uppercase()) || text.contains(column.as_str());
            assert!(told, "{name}: nothing tells of {column}\n{text}");
        }
    }
}

#[test]
fn prose_is_broken_and_what_is_whole_stays_whole() {
    let mut rows = filled(&Rows::new(&["check", "state", "advice"]));
    rows.rows[0][2] = "load the module with modprobe and give the program the right to open it "
        .repeat(3)
        .into();
    let text = render(&rows, Layout::Narrow);
    assert!(widest(&text) <= NARROW, "{text}");
    assert!(text.lines().count() > 3, "{text}");
    assert!(!text.contains("--wide"), "{text}");
    let one = Rows {
        columns: vec!["address".into()],
        rows: vec![vec![ADDRESS.repeat(2).into()]],
        ..Rows::default()
    };
    assert!(render(&one, Layout::Narrow).contains(&ADDRESS.repeat(2)));
}

/// Columns about losses are never dropped in favour of jitter, whatever the names of the flows.
#[test]
fn flows_keep_what_was_lost_when_columns_must_go() {
    let text = render(&filled(&shape("", &FlowLine::TABLE.flat())), Layout::Narrow);
    let header = text.lines().next().expect("a header");
    for column in ["FLOW", "PHASE", "LOST"] {
        assert!(
            header.split_whitespace().any(|word| word == column),
            "{header}"
        );
    }
    assert!(!header.contains("JITTER"), "{header}");
}

/// Whatever the lab: the table of flows has the most important columns that fit, in one order, and none instead of
/// them.
#[test]
fn the_columns_of_flows_are_the_first_of_one_list() {
    let empty = shape("", &FlowLine::TABLE.flat());
    let columns = &empty.columns;
    let importance = empty.importance.iter().zip(columns);
    let mut list: Vec<(u8, &str)> = importance
        .filter_map(|(importance, name)| match importance {
            Importance::Lead(place) => Some((*place, name.as_str())),
            _ => None,
        })
        .collect();
    list.sort_unstable();
    let list: Vec<&str> = list.into_iter().map(|(_, name)| name).collect();
    assert!(list.len() >= 8, "{columns:?}");
    for case in 0..64_u32 {
        let mut rows = empty.clone();
        let value = |(at, name): (usize, &String)| -> Value {
            match name.as_str() {
                "flow" => "x".repeat(1 + (case as usize % 33)).into(),
                "lost_by" if case % 3 == 0 => "link s1-s2: cell lost 12".into(),
                // Some columns have nothing, as where no packet came.
                _ if (case >> (at % 6)) & 1 == 0 => Value::Null,
                _ => 10_u64.pow(case % 8).into(),
            }
        };
        rows.push(columns.iter().enumerate().map(value).collect());
        let shown = Choice::narrow(&rows).shown.into_iter();
        let shown: Vec<&str> = shown.map(|at| columns[at].as_str()).collect();
        let wanted = &list[..shown.len().min(list.len())];
        let missing: Vec<_> = wanted.iter().filter(|name| !shown.contains(name)).collect();
        assert!(missing.is_empty(), "{case}: {shown:?} without {missing:?}");
        assert!(widest(&render(&rows, Layout::Narrow)) <= NARROW, "{case}");
    }
}
