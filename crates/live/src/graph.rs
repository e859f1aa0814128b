//! The current network of a running lab: its [`Picture`] with nodes and links that are down, and the present
//! connections.

use crate::control::Answer;
use crate::driver::Driver;
use aerostat_lab::model::LinkId;
use aerostat_lab::picture::{Calls, Picture, Shortcut};
use aerostat_lab::plant::LabNode;
use aerostat_node::inspect::mpoa::MpcIngress;
use aerostat_node::inspect::words::Direction;
use aerostat_node::inspect::{Row, Table, host, nhrp};
use aerostat_node::signalling::Phase;
use aerostat_proto::Instant;
use aerostat_wire::Vc;
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
    for (id, _, node) in driver.world.nodes() {
        let here = id.0;
        if let Some(drawn) = picture.machines.get_mut(here) {
            drawn.down = node.is_none();
        }
        let Some(station) = node.and_then(LabNode::as_station) else {
            continue;
        };
        for call in rows::<host::Call>(&station.inspect("call", now).unwrap_or_default()) {
            if call.direction != Direction::Out || call.phase != Phase::Connected {
                continue;
            }
            let called = call.called.map(|called| called.to_string());
            if let Some(there) = called.and_then(|called| picture.owner(&called)) {
                let what = call.blli.or(call.user).unwrap_or_default();
                *calls.entry(([here, there], what)).or_default() += 1;
            }
        }
        let of_mpoa = station.inspect("mpc", now).unwrap_or_default();
        let of_nhrp = station.inspect("nhrp", now).unwrap_or_default();
        let of_mpoa = rows::<MpcIngress>(&of_mpoa).map(|row| {
            let vc = row.vpi.zip(row.vci).map(|(vpi, vci)| Vc { vpi, vci });
            (row.destination.to_string(), row.egress, vc)
        });
        let of_nhrp = rows::<nhrp::Way>(&of_nhrp).map(|row| (row.destination, row.atm, row.vc));
        shortcuts.extend(of_mpoa.chain(of_nhrp).filter_map(|(to, egress, vc)| {
            // A shortcut that has a connection and whose other end is in the lab.
            let there = picture.owner(&egress?.to_string())?;
            Some(Shortcut {
                ends: [here, there],
                to,
                vc: vc?.to_string(),
            })
        }));
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

/// The rows of this kind in all tables.
fn rows<R: Row>(tables: &[Table]) -> impl Iterator<Item = R> {
    // What this program has put into a table it can read.
    tables
        .iter()
        .flat_map(|table| table.rows().unwrap_or_default())
}
