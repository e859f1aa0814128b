//! A small internetwork: routers with an MPOA server, clients that answer as configured, an ATM network between them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

use aerostat_wire::lane::TlvType;
use aerostat_wire::mpoa::{self, DeviceType, Imposition};
use aerostat_wire::nhrp::{Packet, op};
use aerostat_wire::prefix;
use aerostat_wire::{AtmAddress, MacAddr, Qos, Sap, Vc};

use crate::machine::settle;
use crate::mpoa::mps::split::{FromMpsd, ToMpsd};
use crate::mpoa::mps::{
    Absent, FromRouter, Input, Interface, L2Answer, MAX_SDU, Mps, MpsConfig, MpsSnapshot, Mpsd,
    Output, RouteResult, ToRouter,
};
use crate::split::codec::Message;
use crate::split::{
    FromDaemon, Numbered, Process, ProcessEvent, ProcessInput, ProcessOutput, Signal, ToDaemon,
};
use crate::{AtmEvent, AtmRequest, Cause, ConnId, Duration, Instant, Machine, Trace};

/// ESI 02:00:00:00:00:`id` on the network of the worked sequence.
pub(super) fn atm(id: u8, selector: u8) -> AtmAddress {
    let prefix = [0x47, 0, 5, 0x80, 0xff, 0xde, 0, 0, 0, 0, 0, 1, 1];
    AtmAddress::from_parts(prefix, MacAddr([2, 0, 0, 0, 0, id]), selector)
}

pub(super) fn ip(a: u8, b: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, a, 0, b))
}

pub(super) const TARGET: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 2, 0, 20));
pub(super) const TAG: u32 = 0x8000_0001;

/// How a client answers impositions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mood {
    Accept,
    /// As Linux does: holding time 0, and a tag in any case.
    Linux,
    Refuse(u8),
    Silent,
    /// Its host is down: calls to the client fail.
    Dead,
}

pub(super) struct Mpc {
    pub(super) control: AtmAddress,
    pub(super) data: AtmAddress,
    pub(super) ip: IpAddr,
    pub(super) mood: Mood,
    pub(super) received: Vec<(Instant, Packet)>,
    conns: BTreeMap<AtmAddress, ConnId>,
}

impl Mpc {
    pub(super) fn count(&self, op: u8) -> usize {
        self.received.iter().filter(|(_, p)| p.op == op).count()
    }
    pub(super) fn last(&self, op: u8) -> &Packet {
        let found = self.received.iter().rev().find(|(_, p)| p.op == op);
        &found.unwrap_or_else(|| panic!("no packet of type {op}")).1
    }
}

pub(super) struct Router {
    pub(super) config: MpsConfig,
    pub(super) mps: Option<Mps>,
    /// The daemon of the server, if it is in a process of its own that runs.
    pub(super) process: Option<Process<Mpsd>>,
    pub(super) routes: Vec<(IpAddr, u8, RouteResult)>,
    pub(super) ip_packets: Vec<Vec<u8>>,
    pub(super) traces: Vec<Trace>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Who {
    Router(usize),
    Mpc(usize),
}

type End = (Who, ConnId);

enum Event {
    Sdu(End, Vec<u8>),
    Connected(End),
    Released(End, Cause),
    Route(usize, u32, IpAddr),
    L2(usize, u32, IpAddr),
}

pub(super) struct World {
    pub(super) now: Instant,
    /// Daemons of servers are in processes of their own.
    pub(super) split: bool,
    pub(super) routers: Vec<Router>,
    pub(super) mpcs: Vec<Mpc>,
    pub(super) arp: BTreeMap<IpAddr, L2Answer>,
    /// The reason that is reported for neighbours that are not in `arp`.
    pub(super) absent: Absent,
    /// Per cent of SDUs that are lost.
    pub(super) loss: u64,
    /// All calls fail.
    pub(super) cut: bool,
    pub(super) log: Vec<(Who, Who, Vec<u8>)>,
    pub(super) listening: BTreeSet<AtmAddress>,
    calls: BTreeMap<End, End>,
    events: BTreeMap<(Instant, u64), Event>,
    number: u64,
    random: u64,
    next_incoming: u32,
}

const DELAY: Duration = Duration::from_millis(1);

impl World {
    /// Two routers, 21 on ELAN 1 and 22 on ELAN 2, joined by ELAN 9; client 11 on ELAN 1, client 12 on
    /// ELAN 2 with the target behind it. Ids are those of the worked sequence.
    pub(super) fn two_routers() -> Self {
        let mut world = Self::empty();
        world.add_router(0x21, &[(1, ip(1, 1)), (9, ip(9, 1))]);
        world.add_router(0x22, &[(2, ip(2, 1)), (9, ip(9, 2))]);
        let via = |next_hop| RouteResult::Via { itf: 9, next_hop };
        world.routers[0].routes.push((ip(2, 0), 24, via(ip(9, 2))));
        world.routers[1].routes.push((ip(1, 0), 24, via(ip(9, 1))));
        world.routers[0].config.first_request_id = 0x2001;
        world.routers[1].config.first_request_id = 0x3001;
        world.routers[1].config.first_cache_id = 0x101;
        world.add_mpc(0x11, ip(1, 11));
        world.add_mpc(0x12, ip(2, 12));
        world.host_behind(1, TARGET, MacAddr([2, 0, 0, 0, 2, 0x20]));
        world
    }

    pub(super) fn empty() -> Self {
        Self {
            now: Instant::from_secs(1),
            split: false,
            routers: Vec::new(),
            mpcs: Vec::new(),
            arp: BTreeMap::new(),
            absent: Absent::Unheard,
            loss: 0,
            cut: false,
            log: Vec::new(),
            listening: BTreeSet::new(),
            calls: BTreeMap::new(),
            events: BTreeMap::new(),
            number: 0,
            random: 1,
            next_incoming: ConnId::INCOMING,
        }
    }

    pub(super) fn add_router(&mut self, id: u8, interfaces: &[(u32, IpAddr)]) {
        let control = atm(id, 0x52);
        let device = DeviceType::Mps {
            control,
            macs: vec![],
        };
        let interfaces: Vec<Interface> = interfaces
            .iter()
            .map(|(itf, ip)| Interface {
                itf: *itf,
                ip: ipv4(*ip),
                prefix_len: 24,
                ip6: None,
                mac: MacAddr([2, 0, 0, 0, 0, id]),
                elan_id: *itf,
                lane: true,
            })
            .collect();
        let mut routes = Vec::new();
        for interface in &interfaces {
            let network = prefix::masked(interface.ip.into(), 24);
            let itf = interface.itf;
            routes.push((network, 24, RouteResult::Connected { itf }));
            routes.push((interface.ip.into(), 32, RouteResult::Local));
            let lec = atm(id, itf as u8);
            let tlvs = vec![device.to_tlv()];
            self.arp
                .insert(interface.ip.into(), (interface.mac, lec, tlvs));
        }
        self.routers.push(Router {
            config: MpsConfig::new(control, atm(id, 0x53), interfaces, 1),
            mps: None,
            process: None,
            routes,
            ip_packets: Vec::new(),
            traces: Vec::new(),
        });
    }

    pub(super) fn add_mpc(&mut self, id: u8, ip: IpAddr) {
        self.add_mpc_at(atm(id, 0x50), atm(id, 0x51), ip);
        self.host_behind(self.mpcs.len() - 1, ip, MacAddr([2, 0, 0, 0, 0, id]));
    }

    pub(super) fn add_mpc_at(&mut self, control: AtmAddress, data: AtmAddress, ip: IpAddr) {
        self.mpcs.push(Mpc {
            control,
            data,
            ip,
            mood: Mood::Accept,
            received: Vec::new(),
            conns: BTreeMap::new(),
        });
    }

    /// A host whose MAC address belongs to the ELAN client of an MPOA client.
    pub(super) fn host_behind(&mut self, mpc: usize, ip: IpAddr, mac: MacAddr) {
        let control = self.mpcs[mpc].control;
        let tlvs = vec![DeviceType::Mpc { control }.to_tlv()];
        self.arp.insert(ip, (mac, control.with_selector(0), tlvs));
    }

    pub(super) fn start(&mut self) {
        for router in 0..self.routers.len() {
            self.boot(router);
        }
    }

    /// A router starts with no state.
    pub(super) fn boot(&mut self, router: usize) {
        let config = self.routers[router].config.clone();
        let new = if self.split { Mps::split } else { Mps::new };
        self.routers[router].mps = Some(new(config));
        self.input(router, Input::Start);
        if self.split {
            self.process_starts(router);
        }
    }

    pub(super) fn process_starts(&mut self, router: usize) {
        self.routers[router].process = Some(Process::default());
        self.input(router, Input::Process(ProcessEvent::Came));
    }

    /// SIGKILL.
    pub(super) fn process_dies(&mut self, router: usize) {
        self.routers[router].process = None;
        self.input(router, Input::Process(ProcessEvent::Gone));
    }

    pub(super) fn signal(&mut self, router: usize, signal: Signal) {
        let process = self.routers[router].process.as_mut().unwrap();
        let Ok(()) = process.handle_input(ProcessInput::Signal(signal), self.now);
        self.drain(router);
    }

    /// A router crashes: the network releases its calls.
    pub(super) fn crash(&mut self, router: usize) {
        self.routers[router].mps = None;
        let config = &self.routers[router].config;
        let (control, data) = (config.control, config.data);
        self.listening.retain(|a| *a != control && *a != data);
        self.drop_calls(Who::Router(router));
    }

    pub(super) fn kill_mpc(&mut self, mpc: usize) {
        self.mpcs[mpc].mood = Mood::Dead;
        self.drop_calls(Who::Mpc(mpc));
        self.mpcs[mpc].conns.clear();
    }

    fn drop_calls(&mut self, who: Who) {
        let ends: Vec<(End, End)> = self
            .calls
            .iter()
            .filter(|((of, _), _)| *of == who)
            .map(|(a, b)| (*a, *b))
            .collect();
        for (here, there) in ends {
            self.calls.remove(&here);
            self.calls.remove(&there);
            self.later(Event::Released(there, Cause::OUT_OF_ORDER));
        }
    }

    pub(super) fn input(&mut self, router: usize, input: Input<'_>) {
        let now = self.now;
        if let Some(mps) = self.routers[router].mps.as_mut() {
            mps.handle_input(input, now)
                .expect("the server takes every input");
        }
        self.drain(router);
    }

    pub(super) fn snapshot(&self, router: usize) -> MpsSnapshot {
        self.routers[router].mps.as_ref().unwrap().snapshot()
    }

    /// Milestones of a router, by name.
    pub(super) fn story(&self, router: usize) -> Vec<&'static str> {
        let traces = self.routers[router].traces.iter();
        traces.filter(|t| t.milestone).map(|t| t.name).collect()
    }

    /// No state of any flow is left.
    pub(super) fn assert_idle(&self, router: usize) {
        let mps = self.routers[router].mps.as_ref().unwrap();
        let (snapshot, nhrp) = (mps.snapshot(), mps.nhrp_snapshot());
        assert_eq!(snapshot.ingress, []);
        assert_eq!(snapshot.egress, []);
        assert_eq!(snapshot.clients, []);
        assert_eq!(nhrp.cache, []);
        assert_eq!(nhrp.pending, []);
        assert_eq!((nhrp.collecting, nhrp.lookups), (0, 0));
        let (server, flows) = mps.parts();
        assert!(server.is_none_or(|mps| mps.exits.is_empty() && mps.egress_index.is_empty()));
        assert!(server.is_none_or(|mps| mps.waits_in.is_empty() && mps.waits_out.is_empty()));
        assert!(flows.is_empty());
    }

    pub(super) fn mpc_sends(&mut self, mpc: usize, router: usize, packet: &Packet) {
        self.mpc_sends_sdu(mpc, router, packet.to_sdu());
    }

    pub(super) fn mpc_sends_sdu(&mut self, mpc: usize, router: usize, sdu: Vec<u8>) {
        let (from, to) = (self.mpcs[mpc].control, self.routers[router].config.control);
        let conn = match self.mpcs[mpc].conns.get(&to) {
            Some(conn) => *conn,
            None => {
                let conn = ConnId(router as u32 + 1);
                self.mpcs[mpc].conns.insert(to, conn);
                self.call((Who::Mpc(mpc), conn), from, to);
                conn
            }
        };
        self.transmit((Who::Mpc(mpc), conn), sdu);
    }

    /// Packet 1 of the worked sequence: client 0 asks for a shortcut.
    pub(super) fn ask(&mut self, id: u32, target: IpAddr) {
        let packet = mpoa::resolution_request(id, self.mpcs[0].data, self.mpcs[0].ip, target);
        self.mpc_sends(0, 0, &packet);
    }

    /// A call to `called`; it is connected at once if there is a listener.
    pub(super) fn call(&mut self, here: End, calling: AtmAddress, called: AtmAddress) {
        if self.cut {
            return self.later(Event::Released(here, Cause::NETWORK_OUT_OF_ORDER));
        }
        let incoming = ConnId(self.next_incoming);
        self.next_incoming += 1;
        let router = self.routers.iter().position(|r| {
            let own = r.config.control == called || r.config.data == called;
            own && self.listening.contains(&called)
        });
        let client = self
            .mpcs
            .iter()
            .position(|m| m.control == called && m.mood != Mood::Dead);
        if let Some(router) = router {
            let there = (Who::Router(router), incoming);
            self.calls.insert(here, there);
            self.calls.insert(there, here);
            self.input(
                router,
                Input::Atm(AtmEvent::Incoming {
                    conn: incoming,
                    calling: Some(calling),
                    called,
                    sap: Sap::LLC,
                    qos: Qos::ubr(MAX_SDU),
                    multipoint: false,
                }),
            );
        } else if let Some(mpc) = client {
            let there = (Who::Mpc(mpc), incoming);
            self.calls.insert(here, there);
            self.calls.insert(there, here);
            self.mpcs[mpc].conns.insert(calling, incoming);
            self.later(Event::Connected(here));
        } else {
            self.later(Event::Released(here, Cause::NO_ROUTE));
        }
    }

    pub(super) fn transmit(&mut self, here: End, sdu: Vec<u8>) {
        let Some(there) = self.calls.get(&here).copied() else {
            return;
        };
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        self.log.push((here.0, there.0, sdu.clone()));
        if (self.random >> 33) % 100 >= self.loss {
            self.later(Event::Sdu(there, sdu));
        }
    }

    fn later(&mut self, event: Event) {
        self.number += 1;
        self.events.insert((self.now + DELAY, self.number), event);
    }

    fn drain(&mut self, router: usize) {
        while let Some(mps) = self.routers[router].mps.as_mut() {
            let outputs = settle(mps, self.now);
            self.outputs(router, outputs);
            if !self.hear_process(router) {
                return;
            }
        }
    }

    /// A message for the process of the daemon, wherever it comes from.
    pub(super) fn tell_process(&mut self, router: usize, message: ToDaemon<ToMpsd>) {
        self.outputs(router, vec![Output::Process(message)]);
        self.drain(router);
    }

    /// Passes on what the process of the daemon says; false if it says nothing.
    fn hear_process(&mut self, router: usize) -> bool {
        let now = self.now;
        let router = &mut self.routers[router];
        let (Some(process), Some(mps)) = (&mut router.process, &mut router.mps) else {
            return false;
        };
        let said = settle(process, now);
        for output in &said {
            let event = match output {
                ProcessOutput::Frame(frame) => {
                    let frame: Numbered<FromDaemon<FromMpsd>> = over_a_socket(frame);
                    ProcessEvent::Said(frame.message)
                }
                ProcessOutput::Exit => {
                    router.process = None;
                    ProcessEvent::Gone
                }
            };
            mps.handle_input(Input::Process(event), now)
                .expect("the server takes every input");
        }
        !said.is_empty()
    }

    fn outputs(&mut self, router: usize, outputs: Vec<Output>) {
        let now = self.now;
        for output in outputs {
            match output {
                Output::Process(message) => {
                    let frame = over_a_socket(&Numbered { number: 0, message });
                    if let Some(process) = &mut self.routers[router].process {
                        let Ok(()) = process.handle_input(ProcessInput::Frame(frame), now);
                    }
                }
                Output::Atm(request) => self.request(router, request),
                Output::Router(ToRouter::LookupRoute { query, dst }) => {
                    self.later(Event::Route(router, query, dst))
                }
                Output::Router(ToRouter::ResolveL2 { query, ip, .. }) => {
                    self.later(Event::L2(router, query, ip))
                }
                Output::ForwardIp(packet) => self.routers[router].ip_packets.push(packet),
                Output::Trace(trace) => self.routers[router].traces.push(trace),
                Output::Router(ToRouter::SetTlvs { tlvs, .. }) => {
                    assert_eq!(tlvs[0].kind, TlvType::DEVICE_TYPE)
                }
            }
        }
    }

    fn request(&mut self, router: usize, request: AtmRequest) {
        let who = Who::Router(router);
        match request {
            AtmRequest::Listen { address, .. } => {
                self.listening.insert(address);
            }
            AtmRequest::Unlisten { address, .. } => {
                self.listening.remove(&address);
            }
            AtmRequest::Connect {
                conn,
                calling,
                called,
                ..
            } => self.call((who, conn), calling, called),
            AtmRequest::Accept { conn, .. } => {
                self.later(Event::Connected((who, conn)));
                if let Some(there) = self.calls.get(&(who, conn)).copied() {
                    self.later(Event::Connected(there));
                }
            }
            AtmRequest::Release { conn, cause } => {
                if let Some(there) = self.calls.remove(&(who, conn)) {
                    self.calls.remove(&there);
                    self.later(Event::Released(there, cause));
                }
            }
            AtmRequest::Send { conn, sdu } => self.transmit((who, conn), sdu),
            AtmRequest::AddParty { .. }
            | AtmRequest::DropParty { .. }
            | AtmRequest::OpenPermanent { .. } => unreachable!(),
        }
    }

    /// Runs the world for `time`.
    pub(super) fn run(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            let event = self.events.keys().next().map(|(at, _)| *at);
            let timers = self.routers.iter().flat_map(|router| {
                let process = router.process.as_ref().and_then(Machine::poll_timeout);
                let server = router.mps.as_ref().and_then(Machine::poll_timeout);
                process.into_iter().chain(server)
            });
            let Some(at) = timers.chain(event).min().filter(|at| *at <= end) else {
                break;
            };
            self.now = at.max(self.now);
            while let Some(entry) = self.events.first_entry().filter(|e| e.key().0 <= self.now) {
                let event = entry.remove();
                self.happen(event);
            }
            for router in 0..self.routers.len() {
                self.drain(router);
            }
        }
        self.now = end;
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Sdu((Who::Router(router), conn), sdu) => {
                let sdu = &sdu;
                self.input(router, Input::Atm(AtmEvent::Received { conn, sdu }));
            }
            Event::Sdu((Who::Mpc(mpc), conn), sdu) => self.mpc_receives(mpc, conn, &sdu),
            Event::Connected((Who::Router(router), conn)) => {
                let vc = Vc::new(0, 100);
                self.input(
                    router,
                    Input::Atm(AtmEvent::Connected {
                        conn,
                        vc,
                        qos: Qos::ubr(0),
                    }),
                );
            }
            Event::Released((Who::Router(router), conn), cause) => {
                self.input(router, Input::Atm(AtmEvent::Released { conn, cause }));
            }
            Event::Released((Who::Mpc(mpc), conn), _) => {
                self.mpcs[mpc].conns.retain(|_, known| *known != conn);
            }
            Event::Connected((Who::Mpc(_), _)) => {}
            Event::Route(router, query, dst) => {
                let result = self.route(router, dst);
                let covers = crate::nhrp::cache::covers(dst, &self.prefixes(router));
                let answer = Input::Router(FromRouter::Route {
                    query,
                    result,
                    covers,
                });
                self.input(router, answer);
            }
            Event::L2(router, query, ip) => {
                let answer = self.arp.get(&ip).cloned().ok_or(self.absent);
                self.input(router, Input::Router(FromRouter::L2 { query, answer }));
            }
        }
    }

    fn prefixes(&self, router: usize) -> Vec<(IpAddr, u8)> {
        let routes = self.routers[router].routes.iter();
        routes.map(|(net, len, _)| (*net, *len)).collect()
    }

    fn route(&self, router: usize, dst: IpAddr) -> Option<RouteResult> {
        let covers = |net: &IpAddr, len: u8| prefix::within(dst, *net, len);
        let routes = self.routers[router].routes.iter();
        routes
            .filter(|(net, len, _)| covers(net, *len))
            .max_by_key(|(_, len, _)| *len)
            .map(|(_, _, result)| *result)
    }

    fn mpc_receives(&mut self, mpc: usize, conn: ConnId, sdu: &[u8]) {
        let packet = Packet::from_sdu(sdu).expect("the server sends well-formed packets");
        let now = self.now;
        let client = &mut self.mpcs[mpc];
        client.received.push((now, packet.clone()));
        let reply = match packet.op {
            mpoa::op::IMPOSITION_REQUEST => imposition_reply(client, &packet),
            op::PURGE_REQUEST if client.mood != Mood::Silent => Some(Packet {
                op: op::PURGE_REPLY,
                ..packet
            }),
            _ => None,
        };
        if let Some(reply) = reply {
            self.transmit((Who::Mpc(mpc), conn), reply.to_sdu());
        }
    }
}

fn imposition_reply(client: &Mpc, packet: &Packet) -> Option<Packet> {
    let wanted = Imposition::of(packet).unwrap().expect("a whole imposition");
    let holding = wanted.holding_s;
    let cie = match client.mood {
        Mood::Accept => mpoa::reply_entry(32, 1500, holding, client.data),
        Mood::Linux => mpoa::reply_entry(32, 0xdc05, 0, client.data),
        Mood::Refuse(code) => mpoa::refusal_entry(32, code),
        Mood::Silent | Mood::Dead => return None,
    };
    let mut reply = packet.clone();
    reply.op = mpoa::op::IMPOSITION_REPLY;
    if let aerostat_wire::nhrp::Body::Common(common) = &mut reply.body {
        common.cies = vec![cie];
    }
    let accepts = matches!(client.mood, Mood::Accept) && wanted.want_tag && holding > 0;
    if accepts || client.mood == Mood::Linux {
        reply = mpoa::with_tag(reply, TAG);
    }
    Some(reply)
}

/// The message as the other process gets it.
fn over_a_socket<M: Message>(message: &M) -> M {
    M::decode(&message.encode()).expect("own frames decode")
}

fn ipv4(address: IpAddr) -> Ipv4Addr {
    match address {
        IpAddr::V4(address) => address,
        IpAddr::V6(address) => panic!("{address} is not IPv4"),
    }
}
