//! The form in which a lab in real time sends its results to another process of this program: rows without the names of
//! their columns.

use super::{Document, tables};
use aerostat_node::inspect::{self, StateKind, Table, TableInfo, Value};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::Map;
use std::borrow::Cow;
use std::sync::Arc;

/// A document on its way.
#[derive(Serialize, Deserialize)]
struct Sent<'a> {
    head: Cow<'a, Map<String, serde_json::Value>>,
    tables: Vec<SentTable<'a>>,
    nodes: Vec<(Cow<'a, str>, Vec<SentKind<'a>>)>,
}

/// The tables of one kind of a node.
type SentKind<'a> = (StateKind, Vec<SentTable<'a>>);

/// A table on its way. Its columns must be those of this program.
#[derive(Serialize, Deserialize)]
struct SentTable<'a> {
    name: Cow<'a, str>,
    columns: Vec<Cow<'a, str>>,
    rows: Cow<'a, [Vec<Value>]>,
}

impl<'a> From<&'a Table> for SentTable<'a> {
    fn from(table: &'a Table) -> Self {
        Self {
            name: table.info.name.into(),
            columns: table
                .columns
                .iter()
                .map(|name| Cow::Borrowed(*name))
                .collect(),
            rows: Cow::Borrowed(&table.rows),
        }
    }
}

impl SentTable<'_> {
    fn read<E: de::Error>(self) -> Result<Table, E> {
        let is_this = |info: &&TableInfo| {
            let names = info.columns.iter().map(|column| column.name);
            info.name == self.name && names.eq(self.columns.iter().map(|name| &**name))
        };
        let mut known = tables::of_lab().chain(inspect::tables());
        let info = known.find(is_this);
        let info = info.ok_or_else(|| E::custom(format_args!("no table '{}'", self.name)))?;
        Ok(Table::read(info, self.rows.into_owned()))
    }
}

fn sent(tables: &[Table]) -> Vec<SentTable<'_>> {
    tables.iter().map(SentTable::from).collect()
}

fn read<E: de::Error>(tables: Vec<SentTable<'_>>) -> Result<Vec<Table>, E> {
    tables.into_iter().map(SentTable::read).collect()
}

impl Serialize for Document {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let nodes = self.nodes().map(|(name, kinds)| {
            let kinds = kinds.iter();
            let kinds = kinds.map(|(kind, tables)| (*kind, sent(tables)));
            (Cow::Borrowed(&**name), kinds.collect())
        });
        let document = Sent {
            head: Cow::Borrowed(&self.head),
            tables: sent(&self.tables),
            nodes: nodes.collect(),
        };
        document.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let sent = Sent::deserialize(deserializer)?;
        let nodes = sent.nodes.into_iter().map(|(name, kinds)| {
            let kinds = kinds.into_iter();
            let kinds = kinds.map(|(kind, tables)| Ok((kind, read(tables)?)));
            Ok((name.into_owned(), kinds.collect::<Result<_, _>>()?))
        });
        Ok(Self {
            head: sent.head.into_owned(),
            tables: read(sent.tables)?,
            nodes: Arc::new(nodes.collect::<Result<_, _>>()?),
        })
    }
}
