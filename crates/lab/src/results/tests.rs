//! The published schema and the page must agree with this program.

use super::{columns, schema, tables};
use aerostat_node::inspect::{self, Column, Kind, TableInfo};
use std::fmt::Write as _;

const SCHEMA: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../docs/results.schema.json"
);
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results.md");

/// Compares with a file, or writes it with `UPDATE_EXPECTED=1`.
fn expect(file: &str, text: &str) {
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        std::fs::write(file, text).expect("the file can be written");
    }
    let published = std::fs::read_to_string(file).unwrap_or_default();
    assert!(
        published == text,
        "{file} is not what the program says: run this test with UPDATE_EXPECTED=1 and look at the difference"
    );
}

#[test]
fn the_published_schema_is_that_of_the_program() {
    expect(SCHEMA, &format!("{:#}\n", schema()));
}

fn rows(text: &mut String, columns: &[Column], open: bool, before: &str) {
    for column in columns {
        let name = format!("{before}{}", column.name);
        if let Kind::Group(inner) = column.kind {
            let _ = writeln!(text, "| `{name}` | object | {} |", column.what());
            rows(text, inner, open, &format!("{name}."));
            continue;
        }
        let kind = match column.kind {
            Kind::Text => "text",
            Kind::Count => "count",
            Kind::Flag => "true, false",
            Kind::Counts => "counts by name",
            _ => "number",
        };
        let kind = if column.null && !open {
            format!("{kind}, null")
        } else {
            kind.into()
        };
        let _ = writeln!(text, "| `{name}` | {kind} | {} |", column.what());
    }
}

fn section(info: &TableInfo) -> String {
    let mut text = format!(
        "\n### `{}`\n\n{}\n\n| column | values | meaning |\n|---|---|---|\n",
        info.flat_name(),
        info.what()
    );
    rows(&mut text, info.columns, info.of_nodes(), "");
    text
}

#[test]
fn the_page_explains_every_column_of_every_table() {
    let (begin, end) = ("<!-- tables -->\n", "<!-- end -->\n");
    let page = std::fs::read_to_string(PAGE).expect("docs/results.md");
    let (before, rest) = page.split_once(begin).expect("the page has tables");
    let (_, after) = rest.split_once(end).expect("the tables have an end");
    let sections: String = tables().map(section).collect();
    expect(PAGE, &format!("{before}{begin}{sections}\n{end}{after}"));
}

#[test]
fn no_two_tables_and_no_two_columns_of_a_table_have_the_same_name() {
    let mut names: Vec<String> = tables().map(TableInfo::flat_name).collect();
    names.sort();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]));
    for info in tables() {
        let columns = columns(info).into_iter();
        let mut columns: Vec<String> = columns.map(|column| column.name).collect();
        columns.sort();
        assert!(
            columns.windows(2).all(|pair| pair[0] != pair[1]),
            "{}",
            info.name
        );
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
        let known = tables().find(|info| info.name == table);
        let Some(known) = known else { continue };
        let mut columns = known.columns.iter();
        let known = columns.find(|known| known.name == column.name);
        let known = known.expect("all columns are known");
        assert_eq!(known.what(), column.what(), "{table} {}", column.name);
    }
}
