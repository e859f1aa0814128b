//! The results as one JSON value, written row by row: as a tree of values the results of a large lab take more memory
//! than the lab itself.

use super::Document;
use aerostat_node::inspect::{Table, TableInfo, Value as Cell};
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A document as JSON.
pub(super) struct Whole<'a>(pub(super) &'a Document);

/// A member of the document.
enum Member<'a> {
    Head(&'a Value),
    Table(&'a Table),
    Nodes(&'a Document),
}

impl Serialize for Whole<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let head = self.0.head.iter();
        let head = head.map(|(name, value)| (&**name, Member::Head(value)));
        let tables = self.0.tables.iter();
        let tables = tables.map(|table| (table.info.name, Member::Table(table)));
        let all = head.chain(tables).chain([("nodes", Member::Nodes(self.0))]);
        // Members stand in the order of their names.
        serializer.collect_map(all.collect::<BTreeMap<&str, Member<'_>>>())
    }
}

impl Serialize for Member<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Head(value) => value.serialize(serializer),
            Self::Table(table) => Rows(vec![table]).serialize(serializer),
            Self::Nodes(document) => {
                let nodes = document.nodes();
                serializer.collect_map(nodes.map(|(name, kinds)| {
                    let kinds = kinds.iter();
                    let kinds = kinds.map(|(kind, tables)| (kind.to_string(), Titles(tables)));
                    (name, kinds.collect::<BTreeMap<_, _>>())
                }))
            }
        }
    }
}

/// Tables by their titles. Those with the same title, for example one for each LANE client, are one list.
struct Titles<'a>(&'a [Table]);

impl Serialize for Titles<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut all: BTreeMap<&str, Rows<'_>> = BTreeMap::new();
        for table in self.0 {
            let rows = all.entry(table.title).or_insert(Rows(Vec::new()));
            rows.0.push(table);
        }
        serializer.collect_map(all)
    }
}

/// The rows of some tables as objects with the names of columns as keys.
struct Rows<'a>(Vec<&'a Table>);

impl Serialize for Rows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().flat_map(|table| {
            let order = by_name(table.info);
            let rows = table.rows.iter();
            rows.map(move |row| Row {
                table,
                order: order.clone(),
                row,
            })
        }))
    }
}

/// The numbers of the columns of a table in the order of their names.
fn by_name(info: &TableInfo) -> Rc<[usize]> {
    let mut order: Vec<usize> = (0..info.columns.len()).collect();
    order.sort_unstable_by_key(|at| info.columns[*at].name);
    order.into()
}

/// A row as an object.
struct Row<'a> {
    table: &'a Table,
    /// Numbers of columns in the order of their names.
    order: Rc<[usize]>,
    row: &'a [Cell],
}

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(None)?;
        for at in &*self.order {
            let column = &self.table.info.columns[*at];
            if let Some(cell) = self.row.get(*at).filter(|cell| column.shows(cell)) {
                object.serialize_entry(column.name, cell)?;
            }
        }
        object.end()
    }
}
