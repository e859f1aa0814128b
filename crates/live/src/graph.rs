//! The current network of a running lab: its [`Picture`] with nodes and links that are down, and the present
//! connections.

use crate::control::Answer;
use crate::driver::Driver;
use crate::world::Machine;
use aerostat_lab::model::LinkId;
use aerostat_lab::picture::{Calls, Picture, Shortcut};
use aerostat_node::inspect::{Table, Value};
use aerostat_proto::Instant;
use std::collections::BTreeMap;

/// Answers with the picture.
pub(crate) fn picture(driver: &Driver<'_>, now: Instant) -> Answer {
    let mut picture = Picture::of(driver.lab);
    picture.running = true;
    for (number, cable) in picture.cables.iter_mut().enumerate() {
        cable.down = driver.world.is_cut(LinkId(number));
    }
    let mut calls: BTreeMap<([usize; 2], String), usize> = BTreeMap::new();
    let mut shortcuts = Vec::new();
    for (id, _, machine) in driver.world.machines() {
        let here = id.0;
        if let Some(drawn) = picture.machines.get_mut(here) {
            drawn.down = machine.is_none();
        }
        let Some(Machine::Station(station)) = machine else {
            continue;
        };
        for row in rows(&station.inspect("call", now).unwrap_or_default(), "calls") {
            if row.text("direction") != "out" || row.text("phase") != "Connected" {
                continue;
            }
            if let Some(there) = picture.owner(row.text("called")) {
                let what = match row.text("blli") {
                    "" => row.text("user"),
                    blli => blli,
                };
                *calls.entry(([here, there], what.to_owned())).or_default() += 1;
            }
        }
        let of_mpoa = station.inspect("mpc", now).unwrap_or_default();
        let of_nhrp = station.inspect("nhrp", now).unwrap_or_default();
        for row in rows(&of_mpoa, "ingress") {
            let vc = row.number("vpi").zip(row.number("vci"));
            let vc = vc.map(|(vpi, vci)| format!("{vpi}.{vci}"));
            shortcuts.extend(shortcut(&picture, here, row.text("egress"), &row, vc));
        }
        for row in rows(&of_nhrp, "ways") {
            let vc = Some(row.text("vc").to_owned()).filter(|vc| vc.contains('.'));
            shortcuts.extend(shortcut(&picture, here, row.text("atm"), &row, vc));
        }
    }
    let calls = calls.into_iter();
    picture.calls = calls
        .map(|((ends, what), count)| Calls { ends, what, count })
        .collect();
    picture.shortcuts = shortcuts;
    serde_json::to_value(&picture).map_or_else(
        |error| Answer::error(format!("the picture cannot be sent: {error}"), ""),
        Answer::Ok,
    )
}

/// A shortcut that has a connection and whose other end is in the lab.
fn shortcut(
    picture: &Picture,
    here: usize,
    egress: &str,
    row: &Row<'_>,
    vc: Option<String>,
) -> Option<Shortcut> {
    Some(Shortcut {
        ends: [here, picture.owner(egress)?],
        to: row.text("destination").to_owned(),
        vc: vc?,
    })
}

/// A row with the names of its columns.
struct Row<'a> {
    columns: &'a [&'static str],
    values: &'a [Value],
}

impl Row<'_> {
    fn value(&self, column: &str) -> Option<&Value> {
        let at = self.columns.iter().position(|name| *name == column)?;
        self.values.get(at)
    }
    /// The text of a column, or an empty text if the row lacks the column.
    fn text(&self, column: &str) -> &str {
        match self.value(column) {
            Some(Value::Text(text)) => text,
            _ => "",
        }
    }
    fn number(&self, column: &str) -> Option<u64> {
        match self.value(column) {
            Some(Value::Number(number)) => Some(*number),
            _ => None,
        }
    }
}

/// The rows of all tables with this title.
fn rows<'a>(tables: &'a [Table], title: &str) -> impl Iterator<Item = Row<'a>> {
    let tables = tables.iter().filter(move |table| table.title == title);
    tables.flat_map(|table| {
        let columns = table.columns;
        table.rows.iter().map(move |values| Row { columns, values })
    })
}
