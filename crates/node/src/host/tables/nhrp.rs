//! The tables of `inspect nhrp` for a client without MPOA.

use super::mpoa::error_name;
use super::seconds_left;
use crate::inspect::{Table, text};
use aerostat_proto::Instant;
use aerostat_proto::nhrp::client::{EntryRow, EntryState, NhcSnapshot, Refusal};
use aerostat_wire::prefix;
use std::net::Ipv4Addr;

pub(super) fn client_tables(nhc: &NhcSnapshot, now: Instant) -> Vec<Table> {
    let columns = &["ip", "server", "server_atm", "registered_s"];
    let mut client = Table::new("client", columns);
    client.row(vec![
        text(nhc.ip),
        text(nhc.server.0),
        text(nhc.server.1),
        nhc.registered.map(|until| seconds_left(until, now)).into(),
    ]);
    let columns = &[
        "destination",
        "state",
        "atm",
        "mtu_octets",
        "left_s",
        "responder",
        "servers",
        "vc",
        "packets",
        "authoritative",
        "last_code",
        "last_cause",
    ];
    let mut ways = Table::new("ways", columns);
    for row in &nhc.entries {
        ways.row(vec![
            if row.prefix_len < 32 {
                text(format_args!("{}/{}", row.destination, row.prefix_len))
            } else {
                text(row.destination)
            },
            row.state.name().into(),
            row.nbma.map(text).into(),
            row.mtu.into(),
            row.until.map(|until| seconds_left(until, now)).into(),
            row.responder.map(text).into(),
            row.servers.into(),
            row.vc.map(text).into(),
            row.packets.into(),
            row.nbma
                .map(|_| if row.authoritative { "yes" } else { "no" })
                .into(),
            row.last_code.into(),
            row.last_cause.map(|cause| cause.0).into(),
        ]);
    }
    let counters = Table::counters("counters", nhc.counters.rows());
    vec![client, ways, counters]
}

/// Why packets for an address take a shortcut or not.
pub(super) fn why_client(table: &mut Table, nhc: &NhcSnapshot, target: Ipv4Addr, now: Instant) {
    let serving =
        |row: &&EntryRow| prefix::within(target.into(), row.destination.into(), row.prefix_len);
    let own = nhc.entries.iter().find(|row| row.destination == target);
    let around = || {
        let all = nhc.entries.iter().filter(serving);
        all.max_by_key(|row| row.prefix_len)
    };
    let entry = own.or_else(around);
    let (reason, told) = match entry.map(|entry| entry.state) {
        None if nhc.registered.is_none() => ("unregistered", "not registered".to_owned()),
        None => ("unseen", "no packet for it lately".to_owned()),
        Some(EntryState::Asking) => ("asking", "the server was asked".to_owned()),
        Some(EntryState::Known) => ("opening", "the way is known, not open".to_owned()),
        Some(EntryState::Direct) => ("shortcut", "packets go directly".to_owned()),
        Some(EntryState::Void) => ("void", "what was known is void".to_owned()),
        Some(EntryState::Refused(why)) => {
            let named = match why {
                Refusal::Error(code) => format!("{} ({})", why.text(), error_name(code)),
                _ => why.text(),
            };
            let reason = match why {
                Refusal::Code(_) | Refusal::Error(_) => "refused",
                Refusal::Unanswered => "unanswered",
                Refusal::Call(_) => "call-failed",
            };
            (reason, named)
        }
    };
    let left = entry.and_then(|entry| entry.until);
    table.row(vec![
        text(target),
        "client".into(),
        reason.into(),
        told.into(),
        left.map(|until| seconds_left(until, now)).into(),
        text(nhc.server.1),
    ]);
}
