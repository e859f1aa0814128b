//! Tables of `inspect` about MPOA clients and servers, and NHRP.

use super::lane::with_seat;
use super::seconds_left;
use crate::inspect::{Table, Value, text};
use aerostat_proto::Instant;
use aerostat_proto::mpoa::{mpc, mps};
use aerostat_proto::nhrp::{Key, Reason};
use aerostat_wire::AtmAddress;
use aerostat_wire::mpoa::{QosEntry, op_name};
use aerostat_wire::nhrp::error;
use aerostat_wire::prefix::width;
use std::net::IpAddr;

pub(super) fn mpc_tables(mpc: &mpc::MpcSnapshot) -> Vec<Table> {
    let columns = &[
        "destination",
        "state",
        "holding_s",
        "packets",
        "vpi",
        "vci",
        "egress",
        "tag",
        "mps",
        "last_code",
        "last_cause",
        "protocol",
        "port",
        "traffic",
        "fallback",
    ];
    let mut ingress = Table::new("ingress", columns);
    for row in &mpc.ingress {
        ingress.row(vec![
            text(row.destination),
            row.state.linux_name().into(),
            row.holding_s.into(),
            row.packets.into(),
            row.vc.map(|vc| vc.vpi).into(),
            row.vc.map(|vc| vc.vci).into(),
            row.egress.map(text).into(),
            row.tag.map(|tag| format!("{tag:#x}")).into(),
            text(row.mps),
            row.last_code.into(),
            row.last_cause.map(|cause| cause.0).into(),
            row.filter.map(|filter| filter.protocol_name()).into(),
            row.filter.map(|filter| filter.destination_port).into(),
            row.qos
                .map_or_else(|| "ubr".to_owned(), |qos| qos.tx.to_string())
                .into(),
            if row.fallback { "yes" } else { "no" }.into(),
        ]);
    }
    let columns = &[
        "ingress_mpc",
        "cache_id",
        "state",
        "holding_s",
        "packets",
        "latest_source",
        "vpi",
        "vci",
        "destination",
        "tag",
        "interface",
    ];
    let mut egress = Table::new("egress", columns);
    for row in &mpc.egress {
        egress.row(vec![
            text(row.ingress),
            row.cache_id.into(),
            row.state.linux_name().into(),
            row.holding_s.into(),
            row.packets.into(),
            row.latest_source.map(text).into(),
            row.vc.map(|vc| vc.vpi).into(),
            row.vc.map(|vc| vc.vci).into(),
            text(format_args!("{}/{}", row.destination, row.prefix)),
            row.tag.map(|tag| format!("{tag:#x}")).into(),
            text(format_args!("lec{}", row.itf)),
        ]);
    }
    let mut servers = Table::new("servers", &["interface", "mac", "control", "keep_alive_s"]);
    for row in &mpc.mps {
        servers.row(vec![
            text(format_args!("lec{}", row.itf)),
            text(row.mac),
            text(row.control),
            row.keep_alive_s.into(),
        ]);
    }
    let counters = with_seat("counters", mpc.counters.rows(), mpc.seat);
    vec![ingress, egress, servers, counters]
}

/// The QoS entries of a client in the order in which packets are matched, and how many flows match each.
pub(super) fn qos_table(mpc: &mpc::MpcSnapshot) -> Table {
    let columns = &[
        "source",
        "source_port",
        "destination",
        "port",
        "protocol",
        "tx",
        "rx",
        "flows",
        "fallbacks",
        "packets",
    ];
    let mut table = Table::new("qos", columns);
    for (QosEntry { filter, qos }, packets) in mpc.qos.iter().zip(&mpc.qos_packets) {
        let flows = mpc.ingress.iter();
        let flows = flows.filter(|row| row.filter == Some(*filter));
        table.row(vec![
            text(filter.source),
            filter.source_port.into(),
            text(filter.destination),
            filter.destination_port.into(),
            filter.protocol_name().into(),
            text(qos.tx),
            text(qos.rx),
            flows.clone().count().into(),
            flows.filter(|row| row.fallback).count().into(),
            (*packets).into(),
        ]);
    }
    table
}

pub(super) fn mps_tables(mps: &mps::MpsSnapshot, now: Instant) -> Vec<Table> {
    let left = |until: Option<Instant>| Value::from(until.map(|until| seconds_left(until, now)));
    let columns = &[
        "destination",
        "state",
        "source",
        "client",
        "resolved",
        "holding_s",
        "mpoa_id",
        "nhrp_id",
    ];
    let mut ingress = Table::new("ingress", columns);
    for row in &mps.ingress {
        ingress.row(vec![
            text(format_args!("{}/{}", row.destination, row.prefix_len)),
            text(format_args!("{:?}", row.state)),
            text(row.source),
            text(row.mpc_control),
            row.resolved.map(text).into(),
            left(row.until),
            row.mpoa_id.into(),
            row.nhrp_id.into(),
        ]);
    }
    let columns = &[
        "cache_id",
        "destination",
        "state",
        "holding_s",
        "client",
        "ingress_mpc",
        "elan_id",
        "tag",
        "next_hop",
    ];
    let mut egress = Table::new("egress", columns);
    for row in &mps.egress {
        egress.row(vec![
            row.cache_id.into(),
            text(format_args!("{}/{}", row.destination, row.prefix_len)),
            text(format_args!("{:?}", row.state)),
            left(row.until),
            text(row.mpc_control),
            text(row.ingress_data),
            row.elan_id.into(),
            row.tag.map(|tag| format!("{tag:#x}")).into(),
            text(row.next_hop),
        ]);
    }
    let mut conns = Table::new(
        "connections",
        &["peer", "carries", "state", "vc", "pdus_received"],
    );
    for row in &mps.connections {
        conns.row(vec![
            text(row.peer),
            text(format_args!("{:?}", row.carries)),
            text(format_args!("{:?}", row.state)),
            row.vc.map(text).into(),
            row.received.into(),
        ]);
    }
    let counters = Table::counters("counters", mps.counters.rows());
    vec![ingress, egress, conns, counters]
}

/// What an MPOA server has done about an address, for its clients and for others.
pub(super) fn why_server(table: &mut Table, mps: &mps::Mps, target: IpAddr, now: Instant) {
    let (snapshot, nhrp) = (mps.snapshot(), mps.nhrp_snapshot());
    let mut row =
        |reason: &'static str, told: String, left: Option<u64>, peer: Option<AtmAddress>| {
            table.row(vec![
                text(target),
                "server".into(),
                reason.into(),
                told.into(),
                left.into(),
                peer.map(text).into(),
            ]);
        };
    for entry in snapshot.ingress.iter().filter(|e| e.destination == target) {
        let left = entry.until.map(|until| seconds_left(until, now));
        let peer = Some(entry.mpc_control);
        match entry.resolved {
            Some(exit) => row("told", format!("the client was told {exit}"), left, peer),
            None => row(
                "asking",
                "asked over NHRP, no answer yet".into(),
                left,
                peer,
            ),
        }
    }
    for binding in &nhrp.cache {
        let key = Key {
            destination: binding.destination,
            prefix_len: binding.prefix_len,
            scope: binding.scope,
            reason: binding.reason,
        };
        if key.overlaps(target, width(target)) && binding.reason != Reason::Learned {
            let told = binding.requesters.len();
            let what = format!("answered with {}; {told} stations were told", binding.nbma);
            let left = Some(seconds_left(binding.until, now));
            row(binding.reason.name(), what, left, binding.scope);
        }
    }
    for fault in nhrp.faults.iter().filter(|f| f.destination == Some(target)) {
        let error = format_args!("error {} ({})", fault.code, error_name(fault.code)).to_string();
        let (what, ago) = (op_name(fault.op), now.since(fault.at).as_secs());
        let (reason, who) = if fault.here {
            ("refused", format!("{what} of the peer was refused here"))
        } else {
            ("error", format!("{what} was refused by the peer"))
        };
        let told = format!(
            "{who} with {error}, {} times, last {ago} s ago",
            fault.times
        );
        row(reason, told, None, fault.peer);
    }
    for entry in snapshot.egress.iter().filter(|e| e.destination == target) {
        if entry.state == mps::EgressState::Imposing {
            let what = "the destination's client was asked to accept the binding";
            row("imposing", what.into(), None, Some(entry.mpc_control));
        }
    }
}

/// An error code in words.
pub(super) const fn error_name(code: u16) -> &'static str {
    match code {
        error::UNRECOGNIZED_EXTENSION => "unrecognized extension",
        error::LOOP => "loop",
        error::UNREACHABLE => "unreachable",
        error::PROTOCOL => "protocol error",
        error::SDU_SIZE => "too long",
        error::INVALID_EXTENSION => "invalid extension",
        error::UNSOLICITED_REPLY => "nobody waits for it",
        error::AUTHENTICATION => "authentication failed",
        error::HOP_COUNT => "too many hops",
        _ => "unknown",
    }
}

pub(super) fn nhrp_tables(nhrp: &mps::NhrpSnapshot, now: Instant) -> Vec<Table> {
    let columns = &[
        "destination",
        "reason",
        "authoritative",
        "nbma",
        "next_hop",
        "mtu_octets",
        "holding_s",
        "requesters",
    ];
    let mut cache = Table::new("cache", columns);
    for row in &nhrp.cache {
        cache.row(vec![
            text(format_args!("{}/{}", row.destination, row.prefix_len)),
            row.reason.name().into(),
            if row.authoritative { "yes" } else { "no" }.into(),
            text(row.nbma),
            row.next_hop.map(text).into(),
            row.mtu.into(),
            seconds_left(row.until, now).into(),
            row.requesters.len().into(),
        ]);
    }
    let mut pending = Table::new(
        "pending",
        &["id", "kind", "destination", "sent", "deadline_s"],
    );
    for row in &nhrp.pending {
        pending.row(vec![
            row.id.into(),
            row.kind.into(),
            row.destination.map(text).into(),
            row.sent.into(),
            seconds_left(row.deadline, now).into(),
        ]);
    }
    vec![cache, pending]
}
