//! Tables of `inspect` about a host.

use super::{Host, Ip, Service, ServiceKind, Station};
use crate::inspect::{Table, Value, text};
use aerostat_proto::Instant;
use aerostat_proto::lane::server::ServerSnapshot;
use aerostat_wire::mpoa::QosEntry;
use aerostat_wire::{AtmAddress, Vc};
use std::collections::BTreeMap;
use std::net::IpAddr;

mod arp;
mod clip;
mod lane;
mod linux;
mod mpoa;
mod nhrp;
mod sockets;

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
            "atmdiag" => Some(vec![self.atmdiag_table()]),
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
                        // The ends of a permanent connection have no addresses.
                        peer.filter(|peer| !peer.is_zero()).map(text).into(),
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

/// The owner of a VC of an end system.
#[derive(Clone, Debug)]
pub struct VcUser {
    /// The service that uses the VC, such as `lec0`; `None` if the owner has gone.
    pub user: Option<String>,
    /// The other end system, as far as this end system knows it.
    pub peer: Option<AtmAddress>,
    /// True if the call is a point-to-multipoint call.
    pub multipoint: bool,
}

impl Station {
    /// The user of each VC of calls and permanent connections. Signalling and ILMI are not included.
    #[must_use]
    pub fn vc_users(&self) -> BTreeMap<Vc, VcUser> {
        let calls = self.host().signalling.calls();
        let users = calls.filter_map(|call| {
            let user = VcUser {
                user: call
                    .owner
                    .and_then(|(user, _)| self.host().user_name(user.0.into())),
                peer: if call.outgoing {
                    Some(call.called)
                } else {
                    call.calling
                },
                multipoint: call.multipoint,
            };
            Some((call.vc?, user))
        });
        users.collect()
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

    /// State as the text of the file under Linux' `/proc` that shows it: `mpc` as `/proc/net/atm/mpc`, `lec` as
    /// `/proc/net/atm/lec`. `None` if this host has no such state, or Linux has no such file.
    #[must_use]
    pub fn proc_text(&self, what: &str, now: Instant) -> Option<String> {
        if what == "lec" {
            return self.lec_proc_text();
        }
        let mut services = self.slots.iter().filter_map(|slot| slot.service.as_ref());
        services.find_map(|service| match (what, service) {
            ("mpc", Service::Mpc(mpc)) => Some(mpc.snapshot(now).proc_text()),
            _ => None,
        })
    }

    /// The QoS entries of the MPOA client; `None` without an MPOA client.
    #[must_use]
    pub fn shortcut_qos(&self) -> Option<Vec<QosEntry>> {
        let mut services = self.slots.iter().filter_map(|slot| slot.service.as_ref());
        services.find_map(|service| match service {
            Service::Mpc(mpc) => Some(mpc.qos_entries().collect()),
            _ => None,
        })
    }

    /// The tables of kind `what`; `None` if this host has no such state.
    #[must_use]
    pub fn inspect(&self, what: &str, now: Instant) -> Option<Vec<Table>> {
        let mut tables = Vec::new();
        match what {
            "call" => tables.extend([self.call_table(), self.signalling.counter_table()]),
            "saal" => tables.extend(self.signalling.saal_tables()),
            "route" => tables.extend(self.route_table()),
            "arp" => tables.extend(self.arp_tables(now)),
            "bridge" => {
                tables.extend((self.segment.iter()).flat_map(|segment| segment.tables(now)))
            }
            "ilmi" => tables.extend(self.ilmi_tables()),
            "atmarp" => tables.extend(self.atmarp_tables(now)),
            "atmaddr" => tables.extend(self.atmaddr_table()),
            _ => {}
        }
        for (slot, state) in self.slots.iter().enumerate() {
            let Some(service) = &state.service else {
                continue;
            };
            match (what, service) {
                ("lec", Service::Lec(m)) => {
                    tables.extend(lane::lec_tables(self.interface_of(slot), &m.snapshot()));
                }
                ("les" | "bus", Service::LaneServer(m)) => match (what, m.snapshot()) {
                    ("les", Some(ServerSnapshot::Les(les))) => {
                        tables.extend(lane::les_tables(&les, m.seat_counters()))
                    }
                    ("bus", Some(ServerSnapshot::Bus(bus))) => {
                        tables.extend(lane::bus_tables(&bus, m.seat_counters()))
                    }
                    _ => {}
                },
                ("mpc", Service::Mpc(m)) => tables.extend(mpoa::mpc_tables(&m.snapshot(now))),
                ("qos", Service::Mpc(m)) => tables.push(mpoa::qos_table(&m.snapshot(now))),
                ("mps", Service::Mps(m)) => tables.extend(mpoa::mps_tables(&m.snapshot(), now)),
                ("clip", Service::Clip(m)) => {
                    tables.extend(clip::tables(self.interface_of(slot), &m.snapshot(now)));
                }
                ("sockets", Service::Sockets(m)) => tables.extend(sockets::tables(m)),
                ("nhrp", Service::Nhc(m)) => tables.extend(nhrp::client_tables(&m.snapshot(), now)),
                ("nhrp", Service::Mps(m)) => {
                    tables.extend(mpoa::nhrp_tables(&m.nhrp_snapshot(), now))
                }
                _ => {}
            }
        }
        (!tables.is_empty()).then_some(tables)
    }

    /// Why packets for `target` take a shortcut or not, according to this host's MPOA or NHRP client and server; `None`
    /// if the host has neither.
    #[must_use]
    pub fn why(&self, target: IpAddr, now: Instant) -> Option<Table> {
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
                Service::Nhc(nhc) => {
                    if let IpAddr::V4(target) = target {
                        nhrp::why_client(&mut table, &nhc.snapshot(), target, now);
                    }
                }
                Service::Mps(mps) => mpoa::why_server(&mut table, mps, target, now),
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

    /// True while a service of this kind runs, which means that it has not crashed.
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
            let clip = itf.client.clip();
            let name = if clip.is_some() { "atm" } else { "lec" };
            let mtu = clip.and_then(|clip| self.machine(clip));
            let mtu = mtu.map_or(itf.mtu, |client| client.config().mtu);
            table.row(vec![
                text(format_args!("{name}{number}")),
                // Classical IP has no MAC addresses.
                if clip.is_some() {
                    Value::None
                } else {
                    text(itf.mac)
                },
                if itf.up { "yes" } else { "no" }.into(),
                mtu.into(),
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
