//! Tables of `inspect` about a host: which service has which rows. The rows are in [`inspect`](crate::inspect).

use crate::atm::PathKey;
use crate::host::{Client, Host, Ip, Service, ServiceKind, Station, Waits};
use crate::inspect::words::Aal;
use crate::inspect::{self, StateKind, Table, counters, host, linux, saal as links, switch, why};
use crate::ip::apps::AppResult;
use crate::ip::neighbours::NeighbourCounters;
use crate::signalling::CallInfo;
use aerostat_proto::Instant;
use aerostat_proto::lane::lec::LecSnapshot;
use aerostat_proto::lane::server::ServerSnapshot;
use aerostat_wire::mpoa::QosEntry;
use aerostat_wire::{AtmAddress, MacAddr, Vc};
use std::collections::BTreeMap;
use std::net::IpAddr;

impl Station {
    /// The tables of kind `what`; `None` if this node has no such state.
    #[must_use]
    pub fn inspect(&self, what: StateKind, now: Instant) -> Option<Vec<Table>> {
        match what {
            StateKind::Vc => Some(vec![Table::of(self.vc_rows())]),
            StateKind::Port => {
                let interfaces = Table::of(self.host().interface_rows());
                let intake = self.intake().map(|intake| Table::of([intake.row(now)]));
                let port = Table::of([self.port_row()]);
                Some([port, interfaces].into_iter().chain(intake).collect())
            }
            StateKind::Cpu => {
                let cpu = self.cpu().map(|cpu| cpu.tables(now));
                let tables = cpu.into_iter().flatten().chain(self.host().measured());
                Some(tables.collect()).filter(|tables: &Vec<_>| !tables.is_empty())
            }
            StateKind::Queue => self.queue_tables(),
            StateKind::Atmdiag => Some(vec![Table::of(self.diag_rows())]),
            _ => self.host().inspect(what, now),
        }
    }

    fn vc_rows(&self) -> impl Iterator<Item = host::Connection> {
        let signalling = &self.host().signalling;
        self.nic().vcs().map(|view| {
            let call = signalling.calls().find(|call| call.vc == Some(view.vc));
            let call = call.as_ref();
            let user = match call {
                Some(call) => self.host().owner_name(call),
                None => Some("signalling".to_owned()),
            };
            host::Connection::of(&view, user, call)
        })
    }

    /// The shaped paths and the rate queues of the adapter; `None` if it has no paths and no rate queues.
    fn queue_tables(&self) -> Option<Vec<Table>> {
        let (mut paths, mut rate_queues) = (Vec::new(), Vec::new());
        for view in self.nic().output().paths() {
            match view.key {
                PathKey::Vpi(vpi) => paths.push(switch::Tunnel::of((0, "adapter"), vpi, &view, 0)),
                PathKey::RateQueue(number) => {
                    let queue = self.nic().config().rate_queues.get(usize::from(number));
                    let name = queue.map_or("", |queue| &queue.name);
                    rate_queues.push(host::RateQueue::of(name, &view));
                }
            }
        }
        let paths = (!paths.is_empty()).then(|| Table::of(paths));
        let rate_queues = (!rate_queues.is_empty()).then(|| Table::of(rate_queues));
        let all: Vec<_> = paths.into_iter().chain(rate_queues).collect();
        (!all.is_empty()).then_some(all)
    }

    fn port_row(&self) -> host::Port {
        let sent = self.nic().output().totals();
        let received = &self.nic().counters;
        host::Port {
            port: 0,
            link: self.host().signalling.is_up().into(),
            cells_in: received.cells_in,
            cells_out: sent.cells_out,
            cells_dropped: received.dropped.total() + sent.dropped.total(),
            queued_cells: self.nic().output().queued_total().into(),
        }
    }

    fn diag_rows(&self) -> [linux::Diag; 2] {
        let [aal0, aal5] = self.pdu_counts();
        let of = linux::Diag::of;
        [of(Aal::Aal0, aal0), of(Aal::Aal5, aal5)]
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
                user: self.host().owner_name(&call),
                peer: call.peer(),
                multipoint: call.multipoint,
            };
            Some((call.vc?, user))
        });
        users.collect()
    }
}

impl Host {
    /// Measurements of receivers by the host's own clock; `None` if it is the clock of the lab.
    fn measured(&self) -> Option<Table> {
        let stack = self
            .ip
            .stack()
            .filter(|stack| !stack.clock().is_the_labs())?;
        let rows = stack.reports().filter_map(|(app, result)| {
            let AppResult::UdpSink(sink) = result else {
                return None;
            };
            let nanos = |micros: f64| (micros * 1e3).round() as u64;
            Some(host::Measured {
                flow: app.0 as usize / 2,
                datagrams: sink.delay.count,
                min_ns: nanos(sink.delay.min_us),
                mean_ns: nanos(sink.delay.mean_us),
                max_ns: nanos(sink.delay.max_us),
            })
        });
        Some(Table::of(rows))
    }

    /// The name of an interface: `atmN` on a Classical IP subnet, `nasN` on a line, `lecN` otherwise.
    fn interface_name(&self, number: usize) -> String {
        match self.interfaces.get(number).map(|itf| itf.client) {
            Some(Client::Clip(_)) => format!("atm{number}"),
            Some(Client::Line(_)) => format!("nas{number}"),
            Some(Client::Lec(_)) | None => host::interface(number),
        }
    }

    /// The name of the service that owns a call; `None` if it has gone.
    fn owner_name(&self, call: &CallInfo) -> Option<String> {
        let (user, _) = call.owner?;
        self.user_name(user.0.into())
    }

    /// The name of the service in a slot, which is the number of a user of signalling: `les`, `lec0` with its
    /// interface.
    #[must_use]
    pub fn user_name(&self, slot: usize) -> Option<String> {
        let kind = self.slots.get(slot)?.kind;
        Some(match self.interface_of(slot) {
            Some(itf) => format!("{kind}{itf}"),
            None => kind.to_string(),
        })
    }

    /// State as the text of the file under Linux' `/proc` that shows it: `mpc` as `/proc/net/atm/mpc`, `lec` as
    /// `/proc/net/atm/lec`. `None` if this host has no such state, or Linux has no such file.
    #[must_use]
    pub fn proc_text(&self, what: StateKind, now: Instant) -> Option<String> {
        if what == StateKind::Lec {
            return self.lec_proc_text();
        }
        let mut services = self.slots.iter().filter_map(|slot| slot.service.as_ref());
        services.find_map(|service| match (what, service) {
            (StateKind::Mpc, Service::Mpc(mpc)) => Some(mpc.snapshot(now).proc_text()),
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
    pub fn inspect(&self, what: StateKind, now: Instant) -> Option<Vec<Table>> {
        let mut tables = Vec::new();
        match what {
            StateKind::Call => {
                tables.push(Table::of(self.call_rows()));
                tables.push(self.signalling.counter_table());
            }
            StateKind::Saal => tables.extend(self.saal_tables()),
            StateKind::Route => tables.extend(self.next_hops().map(Table::of)),
            StateKind::Arp => tables.extend(self.arp_tables(now)),
            StateKind::Tcp => tables.extend(self.tcp_tables()),
            StateKind::Bridge => {
                tables.extend((self.segment.iter()).flat_map(|segment| segment.tables(now)))
            }
            StateKind::Ilmi => tables.extend(self.ilmi_tables()),
            StateKind::Atmarp => tables.extend(self.atmarp_tables(now)),
            // A LANE server or router without addresses has no table; a host that waits for ILMI has an empty one.
            StateKind::Atmaddr if !self.slots.is_empty() => {
                tables.push(Table::of(self.local_addresses()))
            }
            _ => {}
        }
        for (slot, state) in self.slots.iter().enumerate() {
            let Some(service) = &state.service else {
                continue;
            };
            match (what, service) {
                (StateKind::Lec, Service::Lec(m)) => {
                    let itf = self.interface_of(slot);
                    let attempts = itf.map(|itf| self.attempts(Waits::Elan(itf)));
                    let attempts = attempts.unwrap_or_default();
                    tables.extend(inspect::lane::client(itf, &m.snapshot(), attempts));
                }
                (StateKind::Les | StateKind::Bus, Service::LaneServer(m)) => {
                    match (what, m.snapshot()) {
                        (StateKind::Les, Some(ServerSnapshot::Les(les))) => {
                            tables.extend(inspect::lane::les(&les, m.seat_counters()));
                        }
                        (StateKind::Bus, Some(ServerSnapshot::Bus(bus))) => {
                            tables.extend(inspect::lane::bus(&bus, m.seat_counters()));
                        }
                        // A LECS has no table of its own: only what its seat has refused.
                        (StateKind::Les, None) => {
                            tables.extend(inspect::lane::lecs(m.seat_counters()))
                        }
                        _ => {}
                    }
                }
                (StateKind::Mpc, Service::Mpc(m)) => {
                    tables.extend(inspect::mpoa::client(&m.snapshot(now)))
                }
                (StateKind::Qos, Service::Mpc(m)) => {
                    tables.push(inspect::mpoa::qos(&m.snapshot(now)))
                }
                (StateKind::Mps, Service::Mps(m)) => {
                    let seat = m.seat_counters();
                    tables.extend(inspect::mpoa::server(&m.snapshot(), seat, now));
                }
                (StateKind::Clip, Service::Clip(m)) => {
                    let itf = self.interface_of(slot);
                    let attempts = itf.map(|itf| self.attempts(Waits::Clip(itf)));
                    let attempts = attempts.unwrap_or_default();
                    tables.extend(inspect::clip::tables(itf, &m.snapshot(now), attempts));
                }
                (StateKind::Line, Service::Line(m)) => {
                    let itf = self.interface_of(slot);
                    let attempts = itf.map(|itf| self.attempts(Waits::Line(itf)));
                    tables.extend(inspect::line::tables(itf, m, attempts.unwrap_or_default()));
                }
                (StateKind::Sockets, Service::Sockets(m)) => {
                    tables.extend(inspect::sockets::tables(m))
                }
                (StateKind::Nhrp, Service::Nhc(m)) => {
                    let attempts = self.attempts(Waits::Nhrp);
                    tables.extend(inspect::nhrp::client(&m.snapshot(), attempts, now));
                }
                (StateKind::Nhrp, Service::Mps(m)) => {
                    tables.extend(inspect::nhrp::server(&m.nhrp_snapshot(), now));
                }
                _ => {}
            }
        }
        (!tables.is_empty()).then_some(tables)
    }

    /// Messages of the daemons of kind `what` that their seats have refused.
    #[must_use]
    pub fn daemons_refused(&self, what: StateKind) -> u64 {
        let own = match what {
            StateKind::Call => self.signalling.daemon_counters().refused,
            StateKind::Ilmi => self.ilmi_refused(),
            _ => 0,
        };
        let services = self
            .slots
            .iter()
            .filter_map(|slot| slot.service.as_ref().map(|service| (slot.kind, service)));
        let refused = services.map(|(kind, service)| match (what, service) {
            (StateKind::Lec, Service::Lec(m)) => m.seat_counters().refused,
            (StateKind::Mpc, Service::Mpc(m)) => m.seat_counters().refused,
            (StateKind::Mps, Service::Mps(m)) => m.seat_counters().refused,
            (StateKind::Bus, Service::LaneServer(m)) if kind == ServiceKind::Bus => {
                m.seat_counters().refused
            }
            // Refusals of a LECS stand with those of a LES.
            (StateKind::Les, Service::LaneServer(m)) if kind != ServiceKind::Bus => {
                m.seat_counters().refused
            }
            _ => 0,
        });
        own + refused.sum::<u64>()
    }

    /// Why packets for `target` take a shortcut or not, according to this host's MPOA or NHRP client and server; `None`
    /// if the host has neither.
    #[must_use]
    pub fn why(&self, target: IpAddr, now: Instant) -> Option<Table> {
        let mut rows = Vec::new();
        for service in self.slots.iter().filter_map(|slot| slot.service.as_ref()) {
            match service {
                Service::Mpc(mpc) => rows.extend(why::mpoa_client(mpc, target, now)),
                Service::Nhc(nhc) => {
                    if let IpAddr::V4(target) = target {
                        let attempts = self.attempts(Waits::Nhrp);
                        rows.push(why::nhrp_client(&nhc.snapshot(), &attempts, target, now));
                    }
                }
                Service::Mps(mps) => rows.extend(why::mpoa_server(mps, target, now)),
                _ => {}
            }
        }
        (!rows.is_empty()).then(|| Table::of(rows))
    }

    /// Calls that exist or are being set up, over all users. Permanent connections are not calls.
    #[must_use]
    pub fn open_calls(&self) -> usize {
        let calls = self.signalling.calls();
        calls.filter(|call| !call.permanent).count()
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

    fn call_rows(&self) -> impl Iterator<Item = host::Call> {
        self.signalling.calls().map(|call| self.call_row(&call))
    }

    pub(in crate::host) fn call_row(&self, call: &CallInfo) -> host::Call {
        host::Call::of(call, self.owner_name(call))
    }

    fn interface_rows(&self) -> impl Iterator<Item = host::Interface> {
        let all = self.interfaces.iter().enumerate();
        all.map(|(number, itf)| {
            let routed = match &self.ip {
                Ip::Router(router) => router
                    .interfaces()
                    .nth(number)
                    .map(|(_, counters)| counters),
                _ => None,
            };
            let clip = itf.client.clip();
            let of_clip = clip.and_then(|clip| self.machine(clip));
            let of_line = itf.client.line().and_then(|line| self.machine(line));
            let mtu = of_clip.map(|clip| clip.config().mtu);
            let mtu = mtu.or(of_line.map(|line| line.config().mtu));
            host::Interface {
                interface: self.interface_name(number),
                // Classical IP has no MAC addresses.
                mac: clip.is_none().then_some(itf.mac),
                up: itf.up,
                mtu_octets: mtu.unwrap_or(itf.mtu),
                lane_out_frames: itf.counters.lane_out,
                shortcut_out_frames: itf.counters.shortcut_out,
                lane_in_frames: itf.counters.lane_in,
                shortcut_in_frames: itf.counters.shortcut_in,
                forwarded_packets: routed.map(|counters| counters.forwarded_packets),
                forward_drops: routed.map(|counters| counters.dropped.values().sum()),
            }
        })
    }

    /// The neighbours that a router has resolved; `None` for other hosts.
    fn next_hops(&self) -> Option<impl Iterator<Item = host::NextHop>> {
        let router = self.ip.router()?;
        let all = router.interfaces().enumerate();
        Some(all.flat_map(move |(number, _)| {
            let neighbours = router.neighbours(number);
            neighbours.map(move |(address, mac)| host::NextHop {
                interface: self.interface_name(number),
                address: address.to_string(),
                mac: MacAddr(mac),
            })
        }))
    }

    /// The TCP connections of an embedded host, and of those on its segment.
    fn tcp_tables(&self) -> Vec<Table> {
        let own = match &self.ip {
            Ip::Stack(stack) => Some(&**stack),
            Ip::Router(_) | Ip::KernelRouter(_) | Ip::None | Ip::Kernel => None,
        };
        let segment = self.segment.iter().flat_map(|segment| segment.hosts());
        let stacks = own.into_iter().chain(segment.map(|host| &*host.stack));
        let stacks: Vec<_> = stacks.collect();
        let rows = stacks.iter().flat_map(|stack| stack.connections());
        let rows: Vec<_> = rows.map(|view| host::TcpConnection::of(&view)).collect();
        if own.is_none() && rows.is_empty() {
            return Vec::new();
        }
        let (mut of_connections, mut of_hosts) = Default::default();
        for stack in &stacks {
            stack.add_tcp_counters(&mut of_connections, &mut of_hosts);
        }
        let sums = [of_connections.rows(), of_hosts.rows()].concat();
        let sums: Vec<_> = sums.into_iter().filter(|(_, value)| *value > 0).collect();
        vec![Table::of(rows), Table::counters(&counters::TCP, sums)]
    }

    /// The neighbours on every interface, and those of the embedded hosts on the segment; empty if a kernel has the
    /// tables.
    fn arp_tables(&self, now: Instant) -> Vec<Table> {
        let mut all = Vec::new();
        match &self.ip {
            Ip::Stack(stack) => {
                let numbers = 0..self.interfaces.len().max(1);
                all.extend(numbers.filter_map(|n| Some((self.interface_name(n), stack.arp(n)?))));
            }
            Ip::Router(router) | Ip::KernelRouter(router) => {
                let numbers = router.interfaces().enumerate().map(|(number, _)| number);
                all.extend(numbers.filter_map(|n| Some((self.interface_name(n), router.arp(n)?))));
            }
            Ip::None | Ip::Kernel => {}
        }
        let segment = self.segment.iter().flat_map(|segment| segment.hosts());
        all.extend(segment.filter_map(|host| Some((host.name.clone(), host.stack.arp(0)?))));
        if all.is_empty() {
            return Vec::new();
        }
        let mut sum = NeighbourCounters::default();
        let mut rows = Vec::new();
        for (interface, (views, counters)) in &all {
            let views = views.iter();
            rows.extend(views.map(|view| host::Neighbour::of(interface, view, now)));
            sum.add(counters);
        }
        vec![Table::of(rows), Table::counters(&counters::ARP, sum.rows())]
    }

    /// The link of signalling, and the error codes that have occurred on it.
    fn saal_tables(&self) -> [Table; 2] {
        let link = self.signalling.link_info();
        let port = "atm0";
        let codes = link.codes.iter();
        let codes = codes.map(|(code, count)| links::ErrorCode::of(port, (*code).into(), *count));
        let row = links::Link::of(port, &link, self.signalling.sscop_mode());
        [Table::of([row]), Table::of(codes)]
    }

    /// The addresses under which this host can be called.
    fn local_addresses(&self) -> impl Iterator<Item = linux::LocalAddress> {
        let all = self.called_addresses().into_iter();
        all.map(|address| linux::LocalAddress { itf: 0, address })
    }

    /// The ATMARP table of each interface: the interface itself, its entries, its connections.
    fn atmarp_tables(&self, now: Instant) -> Vec<Table> {
        let mut tables = Vec::new();
        for (slot, state) in self.slots.iter().enumerate() {
            if let (Some(Service::Clip(clip)), Some(itf)) =
                (&state.service, self.interface_of(slot))
            {
                let (interface, entries, conns) = linux::atmarp(itf, &clip.snapshot(now));
                tables.extend([Table::of([interface]), Table::of(entries), Table::of(conns)]);
            }
        }
        tables
    }

    /// The text of `/proc/net/atm/lec`: all LANE clients under one header line. `None` without LANE clients.
    fn lec_proc_text(&self) -> Option<String> {
        let slots = self.slots.iter().enumerate();
        let clients = slots.filter_map(|(slot, state)| match &state.service {
            Some(Service::Lec(lec)) => Some(lec.snapshot().proc_lines(self.interface_of(slot)?)),
            _ => None,
        });
        let clients: Vec<String> = clients.collect();
        let header = LecSnapshot::PROC_HEADER;
        (!clients.is_empty()).then(|| header.to_owned() + &clients.concat())
    }
}
