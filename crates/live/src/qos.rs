//! QoS entries of MPOA clients in a running lab.
//!
//! Entries that are set here are lost when the client restarts; the entries of the lab file come back then.

use crate::control::Answer;
use crate::site::Site;
use aerostat_lab::model::NodeId;
use aerostat_node::host::{HostCommand, Station};
use aerostat_node::inspect::{StateKind, Table};
use aerostat_proto::Instant;
use aerostat_proto::mpoa::mpc::MpcLimits;
use aerostat_wire::mpoa::{FlowFilter, QosEntry};
use aerostat_wire::qos_text::QosError;

/// Sets or changes an entry.
pub(crate) fn add(
    site: &mut Site<'_>,
    at: (NodeId, &str),
    text: &str,
    now: Instant,
) -> Result<Table, Answer> {
    let station = station(site, at)?;
    let QosEntry { filter, qos } = text.parse().map_err(|error| wrong(text, &error))?;
    let most = MpcLimits::default().qos;
    let known = entries(station, at)?;
    if known.len() >= most && known.iter().all(|entry| entry.filter != filter) {
        return Err(Answer::error(
            format!("{} has {most} QoS entries, and takes no more", at.1),
            "'aerostat qos del' makes room",
        ));
    }
    let command = HostCommand::ShortcutQos(filter, Some(qos));
    site.world.command(at.0, command, now);
    table(site, at, now)
}

/// Removes an entry.
pub(crate) fn remove(
    site: &mut Site<'_>,
    at: (NodeId, &str),
    text: &str,
    now: Instant,
) -> Result<Table, Answer> {
    let known = entries(station(site, at)?, at)?;
    let filter: FlowFilter = text.parse().map_err(|error| wrong(text, &error))?;
    if known.iter().all(|entry| entry.filter != filter) {
        return Err(Answer::error(
            format!("{} has no QoS entry {filter}", at.1),
            format!("'aerostat qos show {}' lists them", at.1),
        ));
    }
    let command = HostCommand::ShortcutQos(filter, None);
    site.world.command(at.0, command, now);
    table(site, at, now)
}

fn station<'d>(site: &'d Site<'_>, at: (NodeId, &str)) -> Result<&'d Station, Answer> {
    let node = site.world.node(at.0);
    let node = node.ok_or_else(|| Answer::error(format!("{} is down", at.1), ""))?;
    node.as_station().ok_or_else(|| no_client(at))
}

fn entries(station: &Station, at: (NodeId, &str)) -> Result<Vec<QosEntry>, Answer> {
    station.host().shortcut_qos().ok_or_else(|| no_client(at))
}

fn table(site: &Site<'_>, at: (NodeId, &str), now: Instant) -> Result<Table, Answer> {
    let tables = station(site, at)?.inspect(StateKind::Qos, now);
    let first = tables.and_then(|all| all.into_iter().next());
    first.ok_or_else(|| no_client(at))
}

fn no_client((_, name): (NodeId, &str)) -> Answer {
    Answer::error(
        format!("{name} has no MPOA client"),
        "'aerostat qos show' shows the hosts that have",
    )
}

fn wrong(text: &str, error: &QosError) -> Answer {
    Answer::error(
        format!("'{text}': {error}"),
        "for example 10.2.0.10:5004 udp tx=240,300 rx=tx",
    )
}
