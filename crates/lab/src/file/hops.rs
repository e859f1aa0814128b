//! Next hops that are known beforehand: a table of the lab file, or a file of their own.

use super::{Ip, NextHopFile};
use crate::diag::Diagnostics;
use crate::field::{At, FromTree, Table};
use crate::tree::{Tree, Value};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;

/// Next hops by IP address, or the name of a file with them.
#[derive(Clone, Debug)]
pub(crate) enum NextHopsFile {
    /// Next hops in the lab file itself.
    Table(Table<Ip, NextHopFile>),
    /// A file beside the lab file, which is read again when it changes.
    File(At<String>),
}

impl FromTree for NextHopsFile {
    fn from_tree(tree: &Tree, d: &mut Diagnostics) -> Option<Self> {
        let named = |text: &str| {
            let file = text.strip_prefix("file ").map(str::trim)?;
            (!file.is_empty()).then(|| file.to_owned())
        };
        match &tree.value {
            Value::Text(text) => {
                let file = named(text);
                if file.is_none() {
                    d.error(tree.at, "expected 'file PATH', or next hops by IP address");
                }
                let at = tree.at;
                file.map(|value| Self::File(At { value, at }))
            }
            _ => Some(Self::Table(Table::from_tree(tree, d)?)),
        }
    }
}

impl JsonSchema for NextHopsFile {
    fn schema_name() -> Cow<'static, str> {
        "NextHops".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let table = generator.subschema_for::<Table<Ip, NextHopFile>>();
        json_schema!({
            "description": "next hops by IP address, or the name of a file with them",
            "anyOf": [
                { "type": "string", "pattern": "^file .+", "examples": ["file next-hops.txt"] },
                table
            ]
        })
    }
}
