//! A network in virtual time for tests: a chain of switches with hosts, links that can lose frames.

mod daemons;
mod ilmid;

use std::collections::{BTreeMap, BTreeSet};

use aerostat_proto::ilmi::{self, Ilmid};
use aerostat_proto::machine::settle;
use aerostat_proto::split::codec::Message as _;
use aerostat_proto::split::{Numbered, Process};
use aerostat_proto::uni::{Side, Version};
use aerostat_proto::{
    AtmEvent, AtmRequest, Cause, ConnId, Duration, Instant, Machine, PartyId, Refused,
};
use aerostat_wire::{AtmAddress, MacAddr, Qos, Sap, Vc};

use aerostat_node::atm::{CellRate, CellRun, Pdu, RunReassembler};
use aerostat_node::signalling::{self, Config, Sigd, Signalling, UserId};
use aerostat_node::switch::{Input, Output, PortConfig, PortKind, PortNo, Switch, Way};
use aerostat_proto::interface::Interface;
use aerostat_proto::interface::Params;

/// The only user of the ATM service of each host.
pub const USER: UserId = UserId(1);
const DELAY: Duration = Duration::from_micros(50);

/// One end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    Host(usize),
    Switch(usize, PortNo),
}

pub struct Host {
    pub signalling: Signalling,
    /// The daemon half in a process of its own, and how many there were before.
    pub daemon: Option<Process<Sigd>>,
    /// It neither reads nor says anything now (SIGSTOP); what it has not read.
    pub hangs: bool,
    unread: Vec<Vec<u8>>,
    daemons: usize,
    pub events: Vec<AtmEvent<&'static [u8]>>,
    pub data: Vec<(ConnId, Vec<u8>)>,
    /// SDUs that were held for a call that did not come up.
    pub unheard: Vec<Vec<u8>>,
    /// VCs that the adapter has open.
    pub open: BTreeSet<Vc>,
    /// Accept offered calls.
    pub auto: bool,
    /// Signalling SDUs that reached the host.
    pub signalled: Vec<Vec<u8>>,
    receivers: BTreeMap<Vc, RunReassembler>,
    switch: usize,
}

impl Host {
    fn new(switch: usize, version: Version) -> Self {
        Self {
            signalling: Signalling::new(Config::new(version)),
            daemon: None,
            hangs: false,
            unread: Vec::new(),
            daemons: 0,
            events: Vec::new(),
            data: Vec::new(),
            unheard: Vec::new(),
            open: BTreeSet::new(),
            auto: true,
            signalled: Vec::new(),
            receivers: BTreeMap::new(),
            switch,
        }
    }
    /// Its signalling interface, wherever that is; none while there is no daemon.
    pub fn interface(&self) -> Option<&Interface> {
        let elsewhere = || self.daemon.as_ref()?.daemon(0);
        self.signalling.daemon().or_else(elsewhere)?.interface()
    }
    /// The connection that was offered last.
    pub fn offered(&self) -> Option<ConnId> {
        self.events.iter().rev().find_map(|event| match event {
            AtmEvent::Incoming { conn, .. } => Some(*conn),
            _ => None,
        })
    }
    pub fn released(&self, conn: ConnId) -> Option<Cause> {
        self.events.iter().rev().find_map(|event| match event {
            AtmEvent::Released { conn: c, cause } if *c == conn => Some(*cause),
            _ => None,
        })
    }
    pub fn connected(&self, conn: ConnId) -> bool {
        self.events
            .iter()
            .any(|event| matches!(event, AtmEvent::Connected { conn: c, .. } if *c == conn))
    }
}

/// A frame between a host and its daemon.
enum Crossing {
    ToDaemon(Vec<u8>),
    ToHost(Vec<u8>),
}

/// Decides whether a frame is lost, given its running number.
type Fate = Box<dyn FnMut(usize) -> bool>;

/// A chain of switches with hosts.
pub struct Net {
    /// Virtual time.
    pub now: Instant,
    /// The hosts.
    pub hosts: Vec<Host>,
    /// The switches, in the order of the chain.
    pub switches: Vec<Switch>,
    /// Says which signalling frames are lost.
    pub lose: Fate,
    version: Version,
    links: BTreeMap<End, End>,
    wire: BTreeMap<(Instant, usize), (End, CellRun)>,
    /// Frames between a host and one of its daemons, with the daemon's number.
    pipes: BTreeMap<(Instant, usize), (usize, usize, Crossing)>,
    /// Delay of such a frame.
    pub crossing: Duration,
    /// A host whose frames take a hundred times as long.
    pub slow: Option<usize>,
    frames: usize,
    /// A switch's end of a link on which no signalling passes until this time.
    deaf: Option<((usize, PortNo), Instant)>,
    lives: u8,
    /// Trunks find out by ILMI which end plays the network side.
    find_out: bool,
    /// The ILMI daemons of switches are processes of their own.
    split: bool,
    ilmids: BTreeMap<usize, Process<Ilmid>>,
    /// The limit of calls at ports of hosts, if it is not the default.
    max_calls: Option<usize>,
    /// Trunks between switches that are no chain: two switches, and what calls may reserve there, cells/s.
    trunks: Vec<(usize, usize, u32)>,
}

/// The prefix of the addresses at a switch.
pub fn prefix(switch: usize) -> [u8; 13] {
    let k = switch as u8;
    [0x47, 0, 5, 0x80, 0xff, 0xe1, 0, 0, 0, 0xf2, 0x1a, k, 0]
}

impl Net {
    /// A chain of `switches` switches; host `i` is at switch `at[i]`. All links are up, signalling is ready.
    pub fn chain(switches: usize, at: &[usize]) -> Self {
        Self::chain_of(Version::Uni31, switches, at)
    }
    /// The same with another version of the UNI everywhere.
    pub fn chain_of(version: Version, switches: usize, at: &[usize]) -> Self {
        Self::built(version, switches, at, false, None).with_hosts()
    }
    /// The same with at most `max_calls` calls at each port of a host.
    pub fn chain_limited(switches: usize, at: &[usize], max_calls: usize) -> Self {
        Self::built(Version::Uni31, switches, at, false, Some(max_calls)).with_hosts()
    }
    /// The same, but trunks find out by ILMI which end plays the network side.
    pub fn chain_that_finds_out(switches: usize, at: &[usize]) -> Self {
        Self::built(Version::Uni31, switches, at, true, None).with_hosts()
    }
    /// The same, with the signalling daemon of each host in a process of its own.
    pub fn chain_split(switches: usize, at: &[usize]) -> Self {
        Self::chain_split_of(Version::Uni31, switches, at)
    }
    /// A chain whose hosts have their signalling daemon in a process of its own.
    pub fn chain_split_of(version: Version, switches: usize, at: &[usize]) -> Self {
        let mut net = Self::built(version, switches, at, false, None);
        for host in &mut net.hosts {
            host.signalling = Signalling::split(Config::new(version));
        }
        for i in 0..at.len() {
            net.start_daemon(i);
        }
        net.with_hosts()
    }
    fn with_hosts(mut self) -> Self {
        let net = &mut self;
        for host in 0..net.hosts.len() {
            net.start_host(host);
        }
        net.run_ms(500);
        self
    }
    /// Switches with these trunks: two switches each, and what calls may reserve there, cells/s. At a switch they have
    /// port numbers in this order.
    pub fn with_links(switches: usize, trunks: &[(usize, usize, u32)], at: &[usize]) -> Self {
        Self::of_trunks(
            (Version::Uni31, switches, at),
            (false, false),
            None,
            trunks.to_vec(),
        )
        .with_hosts()
    }
    /// A chain with hosts that have not been started yet.
    pub fn unstarted(switches: usize, at: &[usize]) -> Self {
        Self::built(Version::Uni31, switches, at, false, None)
    }
    fn built(
        version: Version,
        switches: usize,
        at: &[usize],
        find_out: bool,
        max_calls: Option<usize>,
    ) -> Self {
        Self::with_trunks(version, switches, at, (find_out, false), max_calls)
    }
    fn with_trunks(
        version: Version,
        switches: usize,
        at: &[usize],
        modes: (bool, bool),
        max_calls: Option<usize>,
    ) -> Self {
        Self::of_trunks((version, switches, at), modes, max_calls, Vec::new())
    }
    fn of_trunks(
        (version, switches, at): (Version, usize, &[usize]),
        (find_out, split): (bool, bool),
        max_calls: Option<usize>,
        trunks: Vec<(usize, usize, u32)>,
    ) -> Self {
        let mut net = Self {
            version,
            now: Instant::ZERO,
            hosts: at
                .iter()
                .map(|switch| Host::new(*switch, version))
                .collect(),
            switches: Vec::new(),
            lose: Box::new(|_| false),
            links: BTreeMap::new(),
            wire: BTreeMap::new(),
            pipes: BTreeMap::new(),
            crossing: Duration::from_micros(120),
            slow: None,
            frames: 0,
            deaf: None,
            lives: 0,
            find_out,
            split,
            ilmids: BTreeMap::new(),
            max_calls,
            trunks,
        };
        for k in 0..switches {
            let switch = net.new_switch(k, switches);
            net.switches.push(switch);
        }
        for k in 0..switches {
            net.start_switch(k);
        }
        net
    }
    /// A switch and its links: port 0 to the previous switch, port 1 to the next, then the hosts.
    fn new_switch(&mut self, k: usize, count: usize) -> Switch {
        let rate = CellRate::OC3;
        let mut switch = Switch::new([k as u8; 16], aerostat_node::switch::StaticRoutes::new());
        let lives = self.lives;
        let version = self.version;
        let params = |side| Params::new(side, version).incarnation(lives);
        let ilmi = |number| {
            let (side, system) = (ilmi::Side::Network, MacAddr([2, 0, 0, 0, 0, k as u8]));
            let mut config = ilmi::Config::new(side, system, version);
            (config.detect, config.number) = (true, number);
            self.find_out.then_some(config)
        };
        if !self.trunks.is_empty() {
            self.add_trunks(&mut switch, (k, count), params);
            self.add_hosts(&mut switch, k, params);
            return switch;
        }
        let mut config = PortConfig::new("before", PortKind::Trunk, params(Side::User), rate);
        (config.ilmi, config.split) = (ilmi(0), self.split);
        let before = switch.add_port(config);
        let mut config = PortConfig::new("after", PortKind::Trunk, params(Side::Network), rate);
        (config.ilmi, config.split) = (ilmi(1), self.split);
        let after = switch.add_port(config);
        for other in 0..count {
            match other.cmp(&k) {
                core::cmp::Ordering::Less => {
                    switch.routes_mut().add_prefix(&prefix(other), before);
                }
                core::cmp::Ordering::Greater => {
                    switch.routes_mut().add_prefix(&prefix(other), after);
                }
                core::cmp::Ordering::Equal => {}
            }
        }
        if k + 1 < count {
            let (a, b) = (End::Switch(k, after), End::Switch(k + 1, before));
            self.links.insert(a, b);
            self.links.insert(b, a);
        }
        self.add_hosts(&mut switch, k, params);
        switch
    }
    fn add_hosts(&mut self, switch: &mut Switch, k: usize, params: impl Fn(Side) -> Params) {
        for i in 0..self.hosts.len() {
            if self.hosts[i].switch == k {
                let (side, rate) = (params(Side::Network), CellRate::OC3);
                let mut config = PortConfig::new("host", PortKind::Host, side, rate);
                config.max_calls = self.max_calls.unwrap_or(config.max_calls);
                let port = switch.add_port(config);
                switch.register(port, self.address(i));
                let (a, b) = (End::Switch(k, port), End::Host(i));
                self.links.insert(a, b);
                self.links.insert(b, a);
            }
        }
    }
    /// The port of a trunk at one of its switches: trunks come first.
    pub fn trunk_port(&self, k: usize, trunk: usize) -> PortNo {
        let before = self.trunks[..trunk].iter();
        let here = before.filter(|(a, b, _)| [*a, *b].contains(&k));
        PortNo(here.count() as u16)
    }
    fn add_trunks(
        &mut self,
        switch: &mut Switch,
        (k, count): (usize, usize),
        params: impl Fn(Side) -> Params,
    ) {
        let mut neighbours = Vec::new();
        for (number, (a, b, admit)) in self.trunks.clone().into_iter().enumerate() {
            let (peer, side) = match k {
                _ if k == a => (b, Side::Network),
                _ if k == b => (a, Side::User),
                _ => continue,
            };
            let name = format!("s{peer}");
            let rate = CellRate::OC3;
            let mut config = PortConfig::new(&name, PortKind::Trunk, params(side), rate);
            (config.admit, config.admit_in) = (admit, admit);
            let port = switch.add_port(config);
            let (own, other) = (
                End::Switch(k, port),
                End::Switch(peer, self.trunk_port(peer, number)),
            );
            self.links.insert(own, other);
            self.links.insert(other, own);
            neighbours.push((port, peer));
        }
        for to in (0..count).filter(|to| *to != k) {
            let hops = self.hops(to, count);
            let way = |(port, peer): &(PortNo, usize)| Way {
                port: *port,
                hops: hops[*peer].map(|hops| hops + 1),
            };
            let ways = neighbours.iter().map(way).collect();
            switch.routes_mut().set_prefix(&prefix(to), ways);
        }
    }
    /// Links from each switch to switch `to`.
    fn hops(&self, to: usize, count: usize) -> Vec<Option<u16>> {
        let mut hops = vec![None; count];
        hops[to] = Some(0);
        for _ in 0..count {
            for (a, b, _) in &self.trunks {
                for (a, b) in [(*a, *b), (*b, *a)] {
                    let by = hops[b].map(|hops: u16| hops + 1);
                    hops[a] = hops[a].into_iter().chain(by).min();
                }
            }
        }
        hops
    }
    fn start_switch(&mut self, k: usize) {
        let now = self.now;
        self.switches[k].handle_input(Input::Start, now).unwrap();
        self.drain_switch(k);
        if self.split {
            self.start_ilmid(k);
        }
    }
    /// The switch loses its state.
    pub fn restart_switch(&mut self, k: usize) {
        self.lives += 1;
        self.switches[k] = self.new_switch(k, self.switches.len());
        self.start_switch(k);
    }
    /// Starts the signalling of host `i`, with its user.
    pub fn start_host(&mut self, i: usize) {
        self.tell(i, signalling::Input::AddUser(USER)).unwrap();
        self.tell(i, signalling::Input::Start).unwrap();
    }
    /// The host loses its state.
    pub fn restart_host(&mut self, i: usize) {
        self.lives += 1;
        self.hosts[i] = Host::new(self.hosts[i].switch, self.version);
        let mut config = Config::new(self.version);
        config.interface = config.interface.incarnation(self.lives);
        self.hosts[i].signalling = Signalling::new(config);
        self.start_host(i);
    }
    /// The same, and the host listens.
    pub fn restart_host_and_listen(&mut self, i: usize) {
        self.restart_host(i);
        self.listen(i);
    }
    /// An SDU on VPI 0 VCI 5 that no sender sent, for host `i` or for its port of the switch.
    pub fn inject(&mut self, i: usize, to_host: bool, sdu: Vec<u8>) {
        let host = End::Host(i);
        let to = if to_host { host } else { self.links[&host] };
        self.arrive(to, CellRun::whole(Pdu::new(sdu), Vc::SIGNALLING));
    }
    /// The address of a host.
    pub fn address(&self, i: usize) -> AtmAddress {
        let esi = MacAddr([0, 0x20, 0xea, 0, 0, i as u8]);
        AtmAddress::from_parts(prefix(self.hosts[i].switch), esi, 0)
    }
    /// The port of the switch to which host `i` is connected.
    pub fn port_of(&self, i: usize) -> PortNo {
        match self.links[&End::Host(i)] {
            End::Switch(_, port) => port,
            End::Host(_) => unreachable!("hosts are at switches"),
        }
    }

    /// Gives an input to the signalling of host `i`, and delivers the outputs.
    pub fn tell(&mut self, i: usize, input: signalling::Input<'_>) -> Result<(), Refused> {
        let now = self.now;
        let done = self.hosts[i].signalling.handle_input(input, now);
        self.drain_host(i);
        done
    }
    /// Gives a request of the user of host `i` to its signalling.
    pub fn ask(&mut self, i: usize, request: AtmRequest) -> Result<(), Refused> {
        self.tell(i, signalling::Input::request(USER, request))
    }
    /// Host `i` listens for calls with LLC encapsulation.
    pub fn listen(&mut self, i: usize) {
        self.listen_for(i, Sap::LLC);
    }
    /// Host `i` listens for calls with this service access point.
    pub fn listen_for(&mut self, i: usize, sap: Sap) {
        let request = AtmRequest::listen(self.address(i), sap, 1536);
        self.ask(i, request).unwrap();
    }
    /// A best-effort call between two hosts.
    pub fn call(&mut self, from: usize, to: usize, conn: u32) {
        self.call_with(from, to, conn, Qos::ubr(1536), false);
    }
    /// A call with a contract; `multipoint` for a call to leaves.
    pub fn call_with(&mut self, from: usize, to: usize, conn: u32, qos: Qos, multipoint: bool) {
        let request = AtmRequest::Connect {
            conn: ConnId(conn),
            calling: self.address(from),
            called: self.address(to),
            sap: Sap::LLC,
            qos,
            multipoint,
        };
        self.ask(from, request).unwrap();
    }
    /// Sends an SDU on a connection of host `i`.
    pub fn send(&mut self, i: usize, conn: ConnId, text: &[u8]) -> Result<(), Refused> {
        let sdu = text.to_vec();
        self.ask(i, AtmRequest::Send { conn, sdu })
    }
    /// Releases a connection of host `i` with cause 16.
    pub fn release(&mut self, i: usize, conn: ConnId) {
        let cause = Cause::NORMAL;
        self.ask(i, AtmRequest::Release { conn, cause }).unwrap();
    }
    /// Adds host `leaf` to a point-to-multipoint call.
    pub fn add_party(&mut self, root: usize, conn: u32, party: u16, leaf: usize) {
        let request = AtmRequest::AddParty {
            conn: ConnId(conn),
            party: PartyId(party),
            called: self.address(leaf),
        };
        self.ask(root, request).unwrap();
    }

    /// Signalling on the link of a port of a switch is lost until `until`.
    pub fn cut_signalling(&mut self, end: (usize, PortNo), until: Instant) {
        self.deaf = Some((end, until));
    }

    fn carry(&mut self, from: End, run: CellRun, at: Instant) {
        let Some(to) = self.links.get(&from).copied() else {
            return;
        };
        self.frames += 1;
        if run.vc == Vc::SIGNALLING && (self.lose)(self.frames) {
            return;
        }
        self.wire.insert((at + DELAY, self.frames), (to, run));
    }

    fn drain_host(&mut self, i: usize) {
        for output in settle(&mut self.hosts[i].signalling, self.now) {
            match output {
                signalling::Output::Send { vc, sdu } => {
                    assert!(vc == Vc::SIGNALLING || self.hosts[i].open.contains(&vc));
                    let run = CellRun::whole(Pdu::new(sdu), vc);
                    self.carry(End::Host(i), run, self.now);
                }
                signalling::Output::OpenVc { vc, .. } => {
                    assert!(self.hosts[i].open.insert(vc), "{vc} opened twice");
                }
                signalling::Output::ChangeVc { vc, .. } => {
                    assert!(self.hosts[i].open.contains(&vc), "{vc} is not open");
                }
                signalling::Output::CloseVc { vc } => {
                    assert!(self.hosts[i].open.remove(&vc), "{vc} was not open");
                    self.hosts[i].receivers.remove(&vc);
                }
                signalling::Output::Event(_, event, _) => {
                    let offered = match &event {
                        AtmEvent::Incoming { conn, .. } => Some(*conn),
                        _ => None,
                    };
                    self.hosts[i].events.push(event);
                    if let Some(conn) = offered.filter(|_| self.hosts[i].auto) {
                        // The request is refused if the caller has released the call meanwhile: its release follows.
                        let _ = self.ask(i, AtmRequest::Accept { conn, terms: None });
                    }
                }
                signalling::Output::Received { conn, sdu, .. } => {
                    self.hosts[i].data.push((conn, sdu.octets));
                }
                // No user of this net has calls inside its host.
                signalling::Output::Joined { .. } | signalling::Output::Manage(_) => {}
                signalling::Output::Undelivered(sdu) => self.hosts[i].unheard.push(sdu.octets),
                signalling::Output::Trace(_) => {}
                signalling::Output::Daemon(message) => {
                    let frame = Numbered { number: 0, message };
                    self.cross(i, Crossing::ToDaemon(frame.encode()));
                }
            }
        }
    }

    fn drain_switch(&mut self, k: usize) {
        for output in settle(&mut self.switches[k], self.now) {
            match output {
                Output::Daemon(_, frame) => self.tell_ilmid(k, &frame),
                Output::Touched(_) | Output::Usable { .. } | Output::Trace(_) => {}
            }
        }
        let now = self.now;
        for port in 0..self.switches[k].fabric().ports() {
            while let Some(output) = self.switches[k].fabric_mut().output_mut(port)
                && let Some(departure) = output.pop(now, u16::MAX)
            {
                let end = End::Switch(k, PortNo(port));
                self.carry(end, departure.run, departure.finish);
            }
        }
    }

    fn arrive(&mut self, end: End, run: CellRun) {
        if run.vc == Vc::SIGNALLING
            && let Some(((k, port), until)) = self.deaf
            && self.now < until
            && [Some(&end), self.links.get(&end)].contains(&Some(&End::Switch(k, port)))
        {
            return;
        }
        match end {
            End::Switch(k, port) => {
                let now = self.now;
                self.switches[k]
                    .handle_input(Input::Cells(port, run), now)
                    .unwrap();
                self.drain_switch(k);
            }
            End::Host(i) => {
                let vc = run.vc;
                let receivers = &mut self.hosts[i].receivers;
                let receiver = receivers
                    .entry(vc)
                    .or_insert_with(|| RunReassembler::new(0));
                let Some(Ok(received)) = receiver.push(run) else {
                    return;
                };
                let sdu = received.pdu.sdu();
                if vc == Vc::SIGNALLING {
                    self.hosts[i].signalled.push(sdu.to_vec());
                    self.tell(i, signalling::Input::Signalling(sdu)).unwrap();
                } else if let Some((user, conn)) = self.hosts[i].signalling.receiver(vc) {
                    assert_eq!(user, USER);
                    self.hosts[i].data.push((conn, sdu.to_vec()));
                } else {
                    self.hosts[i].signalling.hold(vc, sdu.into());
                }
            }
        }
    }

    fn next(&self) -> Option<Instant> {
        let wire = self.wire.keys().next().map(|(at, _)| *at);
        let pipes = self.pipes.keys().next().map(|(at, _)| *at);
        let hosts = self
            .hosts
            .iter()
            .filter_map(|h| h.signalling.poll_timeout());
        let awake = self.hosts.iter().filter(|h| !h.hangs);
        let daemons = awake.filter_map(|h| h.daemon.as_ref()?.poll_timeout());
        let switches = self.switches.iter().filter_map(Machine::poll_timeout);
        let departures = self.switches.iter().flat_map(|switch| {
            (0..switch.fabric().ports())
                .filter_map(|port| switch.fabric().output(port)?.next_departure())
        });
        wire.into_iter()
            .chain(pipes)
            .chain(hosts)
            .chain(daemons)
            .chain(switches)
            .chain(departures)
            .chain(self.next_of_ilmids())
            .min()
    }

    /// Runs for `ms` milliseconds.
    pub fn run_ms(&mut self, ms: u64) {
        self.run_to(self.now + Duration::from_millis(ms));
    }
    /// Runs until this time.
    pub fn run_to(&mut self, until: Instant) {
        while let Some(next) = self.next().filter(|at| *at <= until) {
            self.now = self.now.max(next);
            while let Some(entry) = self.wire.first_entry()
                && entry.key().0 <= self.now
            {
                let (end, run) = entry.remove();
                self.arrive(end, run);
            }
            while let Some(entry) = self.pipes.first_entry()
                && entry.key().0 <= self.now
            {
                let crossed = entry.remove();
                self.crossed(crossed);
            }
            for i in 0..self.hosts.len() {
                self.drain_host(i);
                self.drain_daemon(i);
            }
            for k in 0..self.switches.len() {
                self.drain_switch(k);
                self.drain_ilmid(k);
            }
        }
        self.now = until;
    }
    /// Runs for `seconds`.
    pub fn run_s(&mut self, seconds: u64) {
        self.run_ms(seconds * 1000);
    }

    /// No call, no label, no reservation, no connection anywhere.
    pub fn assert_clean(&self) {
        for (i, host) in self.hosts.iter().enumerate() {
            let calls: Vec<_> = host.signalling.calls().collect();
            assert!(calls.is_empty(), "host {i}: {calls:?}");
            assert!(host.open.is_empty(), "host {i}: {:?}", host.open);
            let calls = host.interface().map(|i| i.uni().calls().count());
            assert_eq!(calls.unwrap_or(0), 0, "host {i}");
        }
        for (k, switch) in self.switches.iter().enumerate() {
            assert_eq!(switch.calls().count(), 0, "switch {k}");
            for port in switch.port_infos() {
                assert_eq!(
                    (port.calls, port.pending, port.labels, port.reserved),
                    (0, 0, 0, (0, 0)),
                    "switch {k} port {}",
                    port.port
                );
            }
            let connections: Vec<_> = switch.fabric().connections().filter(|c| !c.local).collect();
            assert!(connections.is_empty(), "switch {k}: {connections:?}");
        }
    }
    /// Connections in the fabric of a switch, without the local ones.
    pub fn connections(&self, k: usize) -> usize {
        let fabric = self.switches[k].fabric();
        fabric.connections().filter(|c| !c.local).count()
    }
}
