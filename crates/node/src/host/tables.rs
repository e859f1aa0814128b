//! What `inspect` shows of a host.

use super::sockets::{Answer, Role, Sockets};
use super::{Host, Ip, Service, ServiceKind, Station};
use crate::inspect::{Table, Value, text};
use crate::interface::Interface;
use aerostat_proto::Instant;
use aerostat_proto::clip;
use aerostat_proto::lane::{bus, lec, les};
use aerostat_proto::mpoa::{mpc, mps};
use aerostat_proto::nhrp::{Key, Reason};
use aerostat_wire::AtmAddress;
use std::net::Ipv4Addr;

/// Names and values of counter fields.
macro_rules! counts {
    ($of:expr; $($name:ident),* $(,)?) => {
        &[$((stringify!($name), $of.$name)),*]
    };
}

/// Seconds until `at`; 0 if it has passed.
fn seconds_left(at: Instant, now: Instant) -> u64 {
    at.since(now).as_secs()
}

impl Station {
    /// The tables of kind `what`; `None` if this node has no such state.
    #[must_use]
    pub fn inspect(&self, what: &str, now: Instant) -> Option<Vec<Table>> {
        match what {
            "vc" => Some(vec![self.vc_table()]),
            "port" => Some(vec![self.port_table(), self.host().interface_table()]),
            _ => self.host().inspect(what, now),
        }
    }

    fn vc_table(&self) -> Table {
        let columns = &[
            "vc",
            "user",
            "role",
            "peer",
            "blli",
            "qos",
            "queued_cells",
            "cells_sent",
            "pdus_received",
            "pdus_lost",
        ];
        let mut table = Table::new("connections", columns);
        for view in self.nic().vcs() {
            let call = self
                .host()
                .signalling
                .calls()
                .find(|call| call.vc == Some(view.vc));
            let lost = &view.received;
            let lost = lost.crc + lost.length + lost.cpi + lost.too_long + lost.aborted;
            let mut row = vec![text(view.vc)];
            match call {
                Some(call) => {
                    let user = call
                        .owner
                        .and_then(|(user, _)| self.host().user_name(user.0.into()));
                    let peer = if call.outgoing {
                        Some(call.called)
                    } else {
                        call.calling
                    };
                    row.extend([
                        user.into(),
                        if call.multipoint {
                            "multipoint"
                        } else {
                            "point-to-point"
                        }
                        .into(),
                        peer.map(text).into(),
                        call.blli.map(|blli| text(format_args!("{blli:?}"))).into(),
                        text(call.qos),
                    ]);
                }
                None => row.extend([
                    "signalling".into(),
                    Value::None,
                    Value::None,
                    Value::None,
                    Value::None,
                ]),
            }
            row.extend([
                view.queued.into(),
                view.sent.cells_out.into(),
                view.received.sdus.into(),
                lost.into(),
            ]);
            table.row(row);
        }
        table
    }

    fn port_table(&self) -> Table {
        let mut table = Table::new(
            "ports",
            &[
                "port",
                "link",
                "cells_in",
                "cells_out",
                "cells_dropped",
                "queued_cells",
            ],
        );
        let sent = self.nic().output().totals();
        let received = &self.nic().counters;
        table.row(vec![
            0_u16.into(),
            if self.host().signalling.is_up() {
                "up"
            } else {
                "down"
            }
            .into(),
            received.cells_in.into(),
            sent.cells_out.into(),
            (received.dropped.total() + sent.dropped.total()).into(),
            self.nic().output().queued_total().into(),
        ]);
        table
    }
}

impl Host {
    fn user_name(&self, slot: usize) -> Option<String> {
        let kind = self.slots.get(slot)?.kind;
        Some(match self.interface_of(slot) {
            Some(itf) => format!("{kind}{itf}"),
            None => kind.to_string(),
        })
    }

    /// State as the text of the file under Linux' `/proc` that shows it: `mpc` as `/proc/atm/mpc`. `None` if this
    /// host has no such state, or Linux no such file.
    #[must_use]
    pub fn proc_text(&self, what: &str, now: Instant) -> Option<String> {
        let mut services = self.slots.iter().filter_map(|slot| slot.service.as_ref());
        services.find_map(|service| match (what, service) {
            ("mpc", Service::Mpc(mpc)) => Some(mpc.snapshot(now).proc_text()),
            _ => None,
        })
    }

    /// The tables of kind `what`; `None` if this host has no such state.
    #[must_use]
    pub fn inspect(&self, what: &str, now: Instant) -> Option<Vec<Table>> {
        let mut tables = Vec::new();
        match what {
            "call" => tables.push(self.call_table()),
            "saal" => {
                let (mut links, mut errors) = Interface::saal_tables();
                let interface = self.signalling.interface();
                interface.saal_rows("atm0", &mut links, &mut errors);
                tables.extend([links, errors]);
            }
            "route" => tables.extend(self.route_table()),
            "ilmi" => tables.extend(self.ilmi_tables()),
            _ => {}
        }
        for (slot, state) in self.slots.iter().enumerate() {
            let Some(service) = &state.service else {
                continue;
            };
            match (what, service) {
                ("lec", Service::Lec(m)) => {
                    tables.extend(lec_tables(self.interface_of(slot), &m.snapshot()));
                }
                ("les", Service::Les(m)) => tables.extend(les_tables(&m.snapshot())),
                ("bus", Service::Bus(m)) => tables.extend(bus_tables(&m.snapshot())),
                ("mpc", Service::Mpc(m)) => tables.extend(mpc_tables(&m.snapshot(now))),
                ("mps", Service::Mps(m)) => tables.extend(mps_tables(&m.snapshot(), now)),
                ("clip", Service::Clip(m)) => {
                    tables.extend(clip_tables(self.interface_of(slot), &m.snapshot(now)));
                }
                ("sockets", Service::Sockets(m)) => tables.extend(socket_tables(m)),
                ("nhrp", Service::Mps(m)) => tables.extend(nhrp_tables(&m.nhrp_snapshot(), now)),
                _ => {}
            }
        }
        (!tables.is_empty()).then_some(tables)
    }

    /// Why packets for `target` take a shortcut or not, as this host's MPOA client and server know; `None` if it
    /// has neither.
    #[must_use]
    pub fn why(&self, target: Ipv4Addr, now: Instant) -> Option<Table> {
        let columns = &["destination", "role", "reason", "text", "left_s", "peer"];
        let mut table = Table::new("why", columns);
        for service in self.slots.iter().filter_map(|slot| slot.service.as_ref()) {
            match service {
                Service::Mpc(mpc) => {
                    for why in mpc.why(target, now) {
                        table.row(vec![
                            text(target),
                            "client".into(),
                            why.reason.name().into(),
                            why.text.into(),
                            why.left_s.into(),
                            why.mps.map(text).into(),
                        ]);
                    }
                }
                Service::Mps(mps) => why_server(&mut table, mps, target, now),
                _ => {}
            }
        }
        (!table.rows.is_empty()).then_some(table)
    }

    /// Connections of the ATM service that exist or are being set up, over all users.
    #[must_use]
    pub fn open_calls(&self) -> usize {
        self.signalling.calls().count()
    }

    /// True while every LANE client is a member of its ELAN.
    #[must_use]
    pub fn joined(&self) -> bool {
        self.interfaces.iter().all(|itf| itf.up)
    }

    /// True while a service of this kind runs (is not crashed).
    #[must_use]
    pub fn runs(&self, kind: ServiceKind) -> bool {
        self.slots
            .iter()
            .any(|slot| slot.kind == kind && slot.service.is_some())
    }

    fn call_table(&self) -> Table {
        let columns = &[
            "user",
            "phase",
            "vc",
            "direction",
            "calling",
            "called",
            "blli",
            "bhli",
            "parties",
        ];
        let mut table = Table::new("calls", columns);
        for call in self.signalling.calls() {
            table.row(vec![
                call.owner
                    .and_then(|(user, _)| self.user_name(user.0.into()))
                    .into(),
                text(format_args!("{:?}", call.phase)),
                call.vc.map(text).into(),
                if call.outgoing { "out" } else { "in" }.into(),
                call.calling.map(text).into(),
                text(call.called),
                call.blli.map(|blli| text(format_args!("{blli:?}"))).into(),
                call.bhli.map(|bhli| text(format_args!("{bhli:?}"))).into(),
                call.parties.into(),
            ]);
        }
        table
    }

    fn interface_table(&self) -> Table {
        let columns = &[
            "interface",
            "mac",
            "up",
            "mtu_octets",
            "lane_out_frames",
            "shortcut_out_frames",
            "lane_in_frames",
            "shortcut_in_frames",
            "forwarded_packets",
            "forward_drops",
        ];
        let mut table = Table::new("interfaces", columns);
        for (number, itf) in self.interfaces.iter().enumerate() {
            let counters = itf.counters;
            let routed = match &self.ip {
                Ip::Router(router) => router
                    .interfaces()
                    .nth(number)
                    .map(|(_, counters)| counters),
                _ => None,
            };
            table.row(vec![
                text(format_args!("lec{number}")),
                text(itf.mac),
                if itf.up { "yes" } else { "no" }.into(),
                itf.mtu.into(),
                counters.lane_out.into(),
                counters.shortcut_out.into(),
                counters.lane_in.into(),
                counters.shortcut_in.into(),
                routed.map(|counters| counters.forwarded_packets).into(),
                routed
                    .map(|counters| counters.dropped.values().sum::<u64>())
                    .into(),
            ]);
        }
        table
    }

    fn route_table(&self) -> Option<Table> {
        let router = self.ip.router()?;
        let mut table = Table::new("neighbours", &["interface", "address", "mac"]);
        for (number, _) in router.interfaces().enumerate() {
            for (address, mac) in router.neighbours(number) {
                table.row(vec![
                    text(format_args!("lec{number}")),
                    text(address),
                    text(aerostat_wire::MacAddr(mac)),
                ]);
            }
        }
        Some(table)
    }
}

fn lec_tables(itf: Option<usize>, lec: &lec::LecSnapshot) -> Vec<Table> {
    let columns = &[
        "interface",
        "state",
        "elan",
        "lecid",
        "elan_id",
        "version",
        "mac",
        "address",
        "les",
        "bus",
    ];
    let mut client = Table::new("client", columns);
    client.row(vec![
        itf.map(|itf| format!("lec{itf}")).into(),
        text(lec.state),
        text(lec.elan),
        lec.lecid.into(),
        lec.elan_id.into(),
        if lec.v2 { 2_u8 } else { 1 }.into(),
        text(lec.mac),
        text(lec.address),
        text(lec.les),
        text(lec.bus),
    ]);
    let mut cache = Table::new("le_arp", &["mac", "address", "status", "remote", "vc"]);
    for row in &lec.cache {
        cache.row(vec![
            text(row.mac),
            row.atm.map(text).into(),
            text(row.status),
            if row.remote { "yes" } else { "no" }.into(),
            row.vc.map(text).into(),
        ]);
    }
    let mut conns = Table::new("connections", &["role", "peer", "direction", "vc"]);
    for row in &lec.connections {
        conns.row(vec![
            row.role.into(),
            text(row.peer),
            if row.outgoing { "out" } else { "in" }.into(),
            row.vc.map(text).into(),
        ]);
    }
    let control = counts!(lec.control; sent, received, bad, unasked, calls_refused, cache_full, joins, losses);
    let data = counts!(lec.data; sent_direct, sent_bus, delivered, echoes, not_for_us, queue_full, no_path,
        bad_length, table_full);
    vec![
        client,
        cache,
        conns,
        Table::counters("control counters", control),
        Table::counters("data counters", data),
    ]
}

fn socket_tables(sockets: &Sockets) -> Vec<Table> {
    let columns = &["name", "does", "local", "peer", "sap"];
    let mut programs = Table::new("programs", columns);
    for program in sockets.programs() {
        let (does, peer) = match program.role {
            Role::Listen { answer, .. } => (
                match answer {
                    Answer::Sink => "sink",
                    Answer::Echo => "echo",
                    Answer::Read => "read",
                },
                None,
            ),
            Role::Call { to, .. } => ("call", Some(to)),
        };
        programs.row(vec![
            program.name.as_str().into(),
            does.into(),
            text(program.local),
            peer.map(text).into(),
            text(format_args!("{:?}", program.sap)),
        ]);
    }
    let columns = &[
        "name",
        "peer",
        "state",
        "vc",
        "setup_us",
        "sent_pdus",
        "sent_octets",
        "sent_crc32",
        "received_pdus",
        "received_octets",
        "received_crc32",
        "cause",
        "released_by",
    ];
    let mut calls = Table::new("calls", columns);
    for call in sockets.calls() {
        let name = sockets.programs().get(call.program).map(|p| p.name.clone());
        let by = if call.by_us { "us" } else { "peer" };
        let sums = [call.sent, call.received].map(|sum| {
            let crc = (sum.pdus > 0).then(|| format!("{:08x}", sum.crc32));
            [sum.pdus.into(), sum.octets.into(), crc.into()]
        });
        let mut row = vec![
            name.into(),
            call.peer.map(text).into(),
            call.state.name().into(),
            call.vc.map(text).into(),
            call.setup
                .map(|time| u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
                .into(),
        ];
        row.extend(sums.into_iter().flatten());
        row.push(call.cause.map(|cause| cause.0).into());
        row.push(call.cause.map(|_| by).into());
        calls.row(row);
    }
    vec![programs, calls]
}

fn les_tables(les: &les::LesSnapshot) -> Vec<Table> {
    let mut server = Table::new("server", &["elan", "address", "bus"]);
    server.row(vec![text(les.elan), text(les.address), text(les.bus)]);
    let mut clients = Table::new(
        "clients",
        &["lecid", "address", "state", "v2", "proxy", "macs", "vc"],
    );
    for row in &les.clients {
        let macs: Vec<_> = row.macs.iter().map(ToString::to_string).collect();
        clients.row(vec![
            row.lecid.into(),
            text(row.address),
            row.state.into(),
            if row.v2 { "yes" } else { "no" }.into(),
            if row.proxy { "yes" } else { "no" }.into(),
            macs.join(" ").into(),
            row.vc.map(text).into(),
        ]);
    }
    let counters = counts!(les.counters; received, bad, forged, joins, joins_refused,
        registrations_refused, arp_requests, arp_unknown, forwarded, calls_refused, join_timeouts);
    vec![server, clients, Table::counters("counters", counters)]
}

fn clip_tables(itf: Option<usize>, clip: &clip::Snapshot) -> Vec<Table> {
    let yes_no = |yes: bool| if yes { "yes" } else { "no" };
    let columns = &["interface", "ip", "address", "mtu", "server", "ready"];
    let mut member = Table::new("interface", columns);
    member.row(vec![
        itf.map(|itf| format!("atm{itf}")).into(),
        text(clip.ip),
        text(clip.address),
        clip.mtu.into(),
        yes_no(clip.serves).into(),
        yes_no(clip.ready).into(),
    ]);
    let columns = &["ip", "address", "state", "expires_s", "vc", "waiting"];
    let mut entries = Table::new("atmarp", columns);
    for row in &clip.entries {
        entries.row(vec![
            text(row.ip),
            row.atm.map(text).into(),
            row.state.into(),
            row.expires_s.into(),
            row.vc.map(text).into(),
            row.waiting.into(),
        ]);
    }
    let columns = &[
        "vc",
        "role",
        "peer",
        "encapsulation",
        "packets_sent",
        "packets_received",
    ];
    let mut conns = Table::new("connections", columns);
    for row in &clip.conns {
        conns.row(vec![
            row.vc.map(text).into(),
            row.role.into(),
            row.peer.map(text).into(),
            row.encapsulation.into(),
            row.packets.0.into(),
            row.packets.1.into(),
        ]);
    }
    let counters = counts!(clip.counters; sent, delivered, unreachable, queue_full, too_long, calls,
        calls_failed, full, idle, arp_in, arp_out, naks, bad, duplicates, repeated);
    vec![
        member,
        entries,
        conns,
        Table::counters("counters", counters),
    ]
}

fn bus_tables(bus: &bus::BusSnapshot) -> Vec<Table> {
    let mut clients = Table::new("clients", &["elan", "lecid", "address", "forward", "vc"]);
    for row in &bus.clients {
        clients.row(vec![
            text(bus.elan),
            row.lecid.into(),
            text(row.address),
            if row.forward { "yes" } else { "no" }.into(),
            row.vc.map(text).into(),
        ]);
    }
    let counters =
        counts!(bus.counters; group, unicast, flushes, octets, forged, bad_length, calls_refused);
    vec![clients, Table::counters("counters", counters)]
}

fn mpc_tables(mpc: &mpc::MpcSnapshot) -> Vec<Table> {
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
    let counters = counts!(mpc.counters; resolution_requests_sent, imposition_requests,
        egress_purges_sent, egress_purge_replies, keep_alives, triggers, purge_requests,
        purge_replies_sent, data_plane_purges, data_plane_purges_sent, malformed, unknown_sender,
        unsolicited, mps_deaths, packets_received, octets_received, packets_sent, octets_sent,
        frames_to_lane, egress_misses, bad_packets, ingress_limit, egress_limit, connection_limit,
        mps_limit, control_dropped, stray_events);
    let mut counters = Table::counters("counters", counters);
    by_code(
        &mut counters,
        "resolution_replies",
        &mpc.counters.resolution_replies,
    );
    by_code(
        &mut counters,
        "imposition_replies",
        &mpc.counters.imposition_replies,
    );
    by_code(&mut counters, "errors", &mpc.counters.errors);
    by_code(&mut counters, "errors_sent", &mpc.counters.errors_sent);
    vec![ingress, egress, servers, counters]
}

/// Counts by code as rows `name[code]`.
fn by_code<C: core::fmt::Display>(
    table: &mut Table,
    name: &str,
    counts: &std::collections::BTreeMap<C, u64>,
) {
    for (code, count) in counts {
        table.row(vec![text(format_args!("{name}[{code}]")), (*count).into()]);
    }
}

fn mps_tables(mps: &mps::MpsSnapshot, now: Instant) -> Vec<Table> {
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
    let counters = counts!(mps.counters; mpoa_requests_received, give_ups, impositions_sent,
        impositions_unanswered, egress_purges_received, egress_purge_replies_sent, keep_alives_sent,
        triggers_sent, nhrp_requests_sent, nhrp_requests_received, purges_sent, purges_received,
        purge_replies_sent, purge_replies_received, purges_unanswered, forwarded, undeliverable, loops,
        malformed, unexpected, duplicates, calls_refused, connections_lost, limits_met, clients_lost,
        shortcut_packets, shortcut_octets);
    let mut counters = Table::counters("counters", counters);
    by_code(
        &mut counters,
        "mpoa_replies_sent",
        &mps.counters.mpoa_replies_sent,
    );
    by_code(
        &mut counters,
        "imposition_replies_received",
        &mps.counters.imposition_replies_received,
    );
    by_code(
        &mut counters,
        "nhrp_replies_sent",
        &mps.counters.nhrp_replies_sent,
    );
    by_code(
        &mut counters,
        "nhrp_replies_received",
        &mps.counters.nhrp_replies_received,
    );
    by_code(&mut counters, "errors_sent", &mps.counters.errors_sent);
    by_code(
        &mut counters,
        "errors_received",
        &mps.counters.errors_received,
    );
    vec![ingress, egress, conns, counters]
}

/// What an MPOA server did about an address, for its clients and for others.
fn why_server(table: &mut Table, mps: &mps::Mps, target: Ipv4Addr, now: Instant) {
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
        if key.overlaps(target, 32) && binding.reason != Reason::Learned {
            let told = binding.requesters.len();
            let what = format!("answered with {}; {told} stations were told", binding.nbma);
            let left = Some(seconds_left(binding.until, now));
            row(binding.reason.name(), what, left, binding.scope);
        }
    }
    for entry in snapshot.egress.iter().filter(|e| e.destination == target) {
        if entry.state == mps::EgressState::Imposing {
            let what = "the destination's client was asked to accept the binding";
            row("imposing", what.into(), None, Some(entry.mpc_control));
        }
    }
}

fn nhrp_tables(nhrp: &mps::NhrpSnapshot, now: Instant) -> Vec<Table> {
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
