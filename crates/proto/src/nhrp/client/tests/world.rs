//! A row of routers with next hop servers between logical IP subnets; a client at each end; an ATM network for all.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

use aerostat_wire::nhrp::Packet;
use aerostat_wire::{AtmAddress, MacAddr, Qos, Sap, Vc};

use crate::machine::settle;
use crate::mpoa::mps::{self, Interface, Mps, MpsConfig, RouteResult};
use crate::nhrp::client::{self, Nhc, Output, Unresolved};
use crate::{AtmEvent, AtmRequest, Cause, ConnId, Duration, Instant, Machine};

pub(super) fn atm(id: u8, selector: u8) -> AtmAddress {
    let prefix = [0x47, 0, 5, 0x80, 0xff, 0xde, 0, 0, 0, 0, 0, 1, 1];
    AtmAddress::from_parts(prefix, MacAddr([2, 0, 0, 0, 0, id]), selector)
}

/// Subnet `net`, host `host`.
pub(super) fn ip(net: u8, host: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, net, 0, host)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Who {
    Router(usize),
    Client(usize),
    /// Address at which a station receives packets.
    Sink(AtmAddress),
}

type End = (Who, ConnId);

enum Event {
    Sdu(End, Vec<u8>),
    Connected(End),
    Released(End, Cause),
}

pub(super) struct Router {
    pub(super) mps: Mps,
    pub(super) routes: Vec<(Ipv4Addr, u8, RouteResult)>,
}

pub(super) struct Client {
    pub(super) nhc: Nhc,
    pub(super) routed: Vec<Vec<u8>>,
    pub(super) story: Vec<&'static str>,
    /// Answers to questions, by token.
    pub(super) resolved: Vec<(u64, Result<AtmAddress, Unresolved>)>,
}

pub(super) struct World {
    pub(super) now: Instant,
    pub(super) routers: Vec<Router>,
    pub(super) clients: Vec<Client>,
    /// SDUs that reached stations.
    pub(super) sinks: BTreeMap<AtmAddress, Vec<Vec<u8>>>,
    /// Stations that accept no calls.
    pub(super) dead: BTreeSet<AtmAddress>,
    /// NHRP packets: from, to, packet.
    pub(super) log: Vec<(Who, Who, Packet)>,
    /// Percentage of lost SDUs.
    pub(super) loss: u64,
    calls: BTreeMap<End, End>,
    events: BTreeMap<(Instant, u64), Event>,
    number: u64,
    random: u64,
    next_incoming: u32,
}

impl World {
    /// `count` routers in a row: router N is host 1 of subnet N and host 2 of subnet N + 1. Client 0 is host 10 of the
    /// first subnet, client 1 host 10 of the last, client 2 host 11 of the first.
    pub(super) fn row(
        count: u8,
        servers: impl Fn(usize, &mut MpsConfig),
        clients: impl Fn(usize, &mut client::Config),
    ) -> Self {
        let router = |n: u8| {
            let interface = |itf: u32, ip: Ipv4Addr| Interface {
                itf,
                ip,
                prefix_len: 24,
                ip6: None,
                mac: MacAddr([2, 0, 0, 0, 0, n]),
                elan_id: 0,
                lane: false,
            };
            let interfaces = vec![interface(0, ip(n, 1)), interface(1, ip(n + 1, 2))];
            let mut config = MpsConfig::new(atm(n, 0x52), atm(n, 0x53), interfaces, n.into());
            config.register = true;
            let mut routes = vec![
                (ip(n, 1), 32, RouteResult::Local),
                (ip(n + 1, 2), 32, RouteResult::Local),
            ];
            for net in 0..=count {
                let (left, right) = (ip(n, 2), ip(n + 1, 1));
                let way = match net {
                    _ if net == n => RouteResult::Connected { itf: 0 },
                    _ if net == n + 1 => RouteResult::Connected { itf: 1 },
                    _ if net < n => RouteResult::Via {
                        itf: 0,
                        next_hop: left.into(),
                    },
                    _ => RouteResult::Via {
                        itf: 1,
                        next_hop: right.into(),
                    },
                };
                routes.push((ip(net, 0), 24, way));
            }
            if n > 0 {
                config.servers.insert(ip(n, 2), atm(n - 1, 0x52));
            }
            if n + 1 < count {
                config.servers.insert(ip(n + 1, 1), atm(n + 1, 0x52));
            }
            servers(n.into(), &mut config);
            let mps = Mps::new(config);
            Router { mps, routes }
        };
        let client = |n: usize| {
            let (id, net, host, server) = match n {
                1 => (0x81, count, 10, (ip(count, 2), atm(count - 1, 0x52))),
                0 => (0x80, 0, 10, (ip(0, 1), atm(0, 0x52))),
                _ => (0x82, 0, 11, (ip(0, 1), atm(0, 0x52))),
            };
            let (own, data) = (atm(id, 0x54), atm(id, 0));
            let mut config = client::Config::new(own, data, ip(net, host), server);
            clients(n, &mut config);
            Client {
                nhc: Nhc::new(config),
                routed: Vec::new(),
                story: Vec::new(),
                resolved: Vec::new(),
            }
        };
        let mut world = Self {
            now: Instant::from_secs(1),
            routers: (0..count).map(router).collect(),
            clients: (0..3).map(client).collect(),
            sinks: [0x80, 0x81, 0x82].map(|id| (atm(id, 0), Vec::new())).into(),
            dead: BTreeSet::new(),
            log: Vec::new(),
            loss: 0,
            calls: BTreeMap::new(),
            events: BTreeMap::new(),
            number: 0,
            random: 1,
            next_incoming: ConnId::INCOMING,
        };
        for router in 0..world.routers.len() {
            world.server(router, mps::Input::Start);
        }
        for client in 0..3 {
            world.client(client, client::Input::Start);
        }
        world.run(Duration::from_secs(2));
        world
    }

    /// Client `from` has a packet for `destination`; its contents are `mark`.
    pub(super) fn send(&mut self, from: usize, destination: Ipv4Addr, mark: &[u8]) {
        let packet = mark.to_vec();
        let input = client::Input::Send {
            destination,
            packet,
        };
        self.client(from, input);
    }

    pub(super) fn client(&mut self, client: usize, input: client::Input<'_>) {
        let machine = &mut self.clients[client].nhc;
        machine.handle_input(input, self.now).unwrap();
        self.drain_client(client);
    }

    pub(super) fn server(&mut self, router: usize, input: mps::Input<'_>) {
        let machine = &mut self.routers[router].mps;
        machine.handle_input(input, self.now).unwrap();
        self.drain_router(router);
    }

    /// Packets that reached the station of client `n` over shortcuts.
    pub(super) fn arrived(&self, n: u8) -> usize {
        self.sinks[&atm(0x80 + n, 0)].len()
    }

    pub(super) fn entry(&self, client: usize, destination: Ipv4Addr) -> Option<client::EntryRow> {
        let rows = self.clients[client].nhc.snapshot().entries;
        rows.into_iter().find(|row| row.destination == destination)
    }

    /// Packets of this type on the network.
    pub(super) fn count(&self, op: u8) -> usize {
        self.log
            .iter()
            .filter(|(_, _, packet)| packet.op == op)
            .count()
    }

    fn later(&mut self, event: Event) {
        self.number += 1;
        let at = self.now + Duration::from_millis(1);
        self.events.insert((at, self.number), event);
    }

    fn drain_client(&mut self, client: usize) {
        for output in settle(&mut self.clients[client].nhc, self.now) {
            match output {
                Output::Atm(request) => self.request(Who::Client(client), request),
                Output::Routed(packet) => self.clients[client].routed.push(packet),
                Output::Deliver(_) => {}
                Output::Resolved { token, answer } => {
                    self.clients[client].resolved.push((token, answer));
                }
                Output::Trace(trace) => self.clients[client].story.push(trace.name),
            }
        }
    }

    fn drain_router(&mut self, router: usize) {
        for output in settle(&mut self.routers[router].mps, self.now) {
            match output {
                mps::Output::Atm(request) => self.request(Who::Router(router), request),
                mps::Output::Router(mps::ToRouter::LookupRoute { query, dst }) => {
                    let result = self.route(router, dst);
                    let routes = self.routers[router].routes.iter();
                    let all: Vec<(IpAddr, u8)> =
                        routes.map(|(net, len, _)| ((*net).into(), *len)).collect();
                    let covers = crate::nhrp::cache::covers(dst, &all);
                    let answer = mps::Input::Router(mps::FromRouter::Route {
                        query,
                        result,
                        covers,
                    });
                    self.server(router, answer);
                }
                mps::Output::Router(mps::ToRouter::ResolveL2 { .. })
                | mps::Output::Router(mps::ToRouter::SetTlvs { .. }) => {
                    panic!("there is no LANE client here");
                }
                mps::Output::ForwardIp(_) | mps::Output::Trace(_) | mps::Output::Process(_) => {}
            }
        }
    }

    fn route(&self, router: usize, dst: IpAddr) -> Option<RouteResult> {
        let covers =
            |net: &Ipv4Addr, len: u8| aerostat_wire::prefix::within(dst, (*net).into(), len);
        let routes = self.routers[router].routes.iter();
        let fitting = routes.filter(|(net, len, _)| covers(net, *len));
        fitting.max_by_key(|(_, len, _)| *len).map(|route| route.2)
    }

    fn owner(&self, address: AtmAddress) -> Option<Who> {
        let router = |n: &usize| [0x52, 0x53].map(|s| atm(*n as u8, s)).contains(&address);
        let client = |n: &usize| self.clients[*n].nhc.config().address == address;
        let (mut routers, mut clients) = (0..self.routers.len(), 0..self.clients.len());
        if let Some(router) = routers.find(router) {
            return Some(Who::Router(router));
        }
        if let Some(client) = clients.find(client) {
            return Some(Who::Client(client));
        }
        let listens = self.sinks.contains_key(&address) && !self.dead.contains(&address);
        listens.then_some(Who::Sink(address))
    }

    fn request(&mut self, who: Who, request: AtmRequest) {
        match request {
            AtmRequest::Connect {
                conn,
                calling,
                called,
                ..
            } => self.call((who, conn), calling, called),
            AtmRequest::Accept { conn, terms: None } => {
                let other = self.calls[&(who, conn)];
                self.later(Event::Connected((who, conn)));
                self.later(Event::Connected(other));
            }
            AtmRequest::Release { conn, cause } => {
                if let Some(other) = self.calls.remove(&(who, conn)) {
                    self.calls.remove(&other);
                    self.later(Event::Released(other, cause));
                }
            }
            AtmRequest::Send { conn, sdu } => self.transmit((who, conn), sdu),
            AtmRequest::Listen { .. } | AtmRequest::Unlisten { .. } => {}
            other => panic!("{other:?}"),
        }
    }

    /// Makes a call; the called side is offered the call at once.
    pub(super) fn call(&mut self, here: End, calling: AtmAddress, called: AtmAddress) {
        let Some(other) = self.owner(called) else {
            return self.later(Event::Released(here, Cause::INCOMPATIBLE));
        };
        self.next_incoming += 1;
        let conn = ConnId(self.next_incoming);
        let there = (other, conn);
        self.calls.insert(here, there);
        self.calls.insert(there, here);
        let event = AtmEvent::Incoming {
            conn,
            calling: Some(calling),
            called,
            sap: Sap::LLC,
            qos: Qos::ubr(1536),
            multipoint: false,
        };
        match other {
            Who::Router(router) => self.server(router, mps::Input::Atm(event)),
            Who::Client(client) => self.client(client, client::Input::Atm(event)),
            Who::Sink(_) => self.later(Event::Connected(here)),
        }
    }

    pub(super) fn transmit(&mut self, here: End, sdu: Vec<u8>) {
        let Some(there) = self.calls.get(&here).copied() else {
            return;
        };
        if let Ok(packet) = Packet::from_sdu(&sdu) {
            self.log.push((here.0, there.0, packet));
        }
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        if (self.random >> 33) % 100 >= self.loss {
            self.later(Event::Sdu(there, sdu));
        }
    }

    /// A station releases all its calls, and accepts no others.
    pub(super) fn kill(&mut self, sink: AtmAddress) {
        self.dead.insert(sink);
        let of = |end: &&End| end.0 == Who::Sink(sink);
        let ends: Vec<End> = self.calls.keys().filter(of).copied().collect();
        for end in ends {
            self.request(
                end.0,
                AtmRequest::Release {
                    conn: end.1,
                    cause: Cause::NORMAL,
                },
            );
        }
    }

    /// Runs for a time.
    pub(super) fn run(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            let event = self.events.keys().next().map(|(at, _)| *at);
            let routers = self.routers.iter().filter_map(|r| r.mps.poll_timeout());
            let clients = self.clients.iter().filter_map(|c| c.nhc.poll_timeout());
            let next = routers.chain(clients).chain(event).min();
            let Some(at) = next.filter(|at| *at <= end) else {
                break;
            };
            self.now = at.max(self.now);
            while let Some(entry) = self.events.first_entry().filter(|e| e.key().0 <= self.now) {
                let event = entry.remove();
                self.happen(event);
            }
            for router in 0..self.routers.len() {
                self.drain_router(router);
            }
            for client in 0..self.clients.len() {
                self.drain_client(client);
            }
        }
        self.now = end;
    }

    fn happen(&mut self, event: Event) {
        let ((who, conn), event) = match &event {
            Event::Sdu(end, sdu) => (
                *end,
                AtmEvent::Received {
                    conn: end.1,
                    sdu: &sdu[..],
                },
            ),
            Event::Connected(end) => {
                let vc = Vc::new(0, 100);
                (
                    *end,
                    AtmEvent::Connected {
                        conn: end.1,
                        vc,
                        qos: Qos::ubr(0),
                    },
                )
            }
            Event::Released(end, cause) => {
                let (conn, cause) = (end.1, *cause);
                (*end, AtmEvent::Released { conn, cause })
            }
        };
        let known = self.calls.contains_key(&(who, conn));
        match (who, event) {
            (Who::Router(router), event) => self.server(router, mps::Input::Atm(event)),
            (Who::Client(client), event) => self.client(client, client::Input::Atm(event)),
            (Who::Sink(address), AtmEvent::Received { sdu, .. }) if known => {
                self.sinks.get_mut(&address).unwrap().push(sdu.to_vec());
            }
            (Who::Sink(_), _) => {}
        }
    }
}
