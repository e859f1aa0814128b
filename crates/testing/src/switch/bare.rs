//! Switches in a row whose hosts are only call control over a signalling link. Tests make each request themselves, see
//! each message, and can send any message.

use std::collections::BTreeMap;

use aerostat_proto::machine::settle;
use aerostat_proto::saal::{self, Saal};
use aerostat_proto::uni::{CallId, Indication, Params, Request, SetupInfo, Side, Uni, Version};
use aerostat_proto::{Duration, Instant, Machine, Refused, uni};
use aerostat_wire::q2931::{Message, MessageType};
use aerostat_wire::{AtmAddress, MacAddr, Qos, Sap, Vc};

use super::net::prefix;
use aerostat_node::atm::{CellRate, CellRun, Pdu, RunReassembler};
use aerostat_node::switch::{Input, PortConfig, PortKind, PortNo, StaticRoutes, Switch};
use aerostat_proto::interface;

const DELAY: Duration = Duration::from_micros(5);

/// One end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    Host(usize),
    Switch(usize, PortNo),
}

/// A host at the first switch or further down the row.
pub struct Host {
    /// Call control.
    pub uni: Uni,
    /// The signalling link.
    pub saal: Saal,
    /// Indications of call control since the test last looked, without `Up` and those of restarts.
    pub heard: Vec<Indication>,
    /// Messages from the switch since the test last looked.
    pub got: Vec<Message>,
    /// True if its call control receives nothing, and so answers nothing.
    pub deaf: bool,
    receiver: RunReassembler,
    switch: usize,
}

impl Host {
    /// The call that was offered last, with its SETUP.
    pub fn offer(&self) -> Option<(CallId, &SetupInfo)> {
        self.heard.iter().rev().find_map(|heard| match heard {
            Indication::Setup { call, info, .. } => Some((*call, info)),
            _ => None,
        })
    }
    /// The last message of a kind from the switch.
    pub fn last(&self, kind: MessageType) -> Option<&Message> {
        self.got.iter().rev().find(|message| message.kind == kind)
    }
    /// Messages to the switch that are waiting or unacknowledged.
    pub fn unsent(&self) -> usize {
        self.saal.outstanding()
    }
    /// The number of messages of a kind that came from the switch.
    pub fn count(&self, kind: MessageType) -> usize {
        self.got.iter().filter(|m| m.kind == kind).count()
    }
    /// Causes of calls that ended, in order.
    pub fn released(&self) -> Vec<u8> {
        let ends = self.heard.iter().filter_map(|heard| match heard {
            Indication::Released { cause, .. } => Some(cause.cause.0),
            _ => None,
        });
        ends.collect()
    }
}

/// A row of switches and their hosts.
pub struct Bare {
    /// Virtual time.
    pub now: Instant,
    /// The switches, in the order of the row.
    pub switches: Vec<Switch>,
    /// The hosts.
    pub hosts: Vec<Host>,
    links: BTreeMap<End, End>,
    wire: BTreeMap<(Instant, usize), (End, CellRun)>,
    frames: usize,
}

impl Bare {
    /// `switches` in a row with trunks of version `trunk`; each host at a switch, with its version. All links up.
    pub fn new(switches: usize, trunk: Version, hosts: &[(usize, Version)]) -> Self {
        Self::configured(switches, trunk, hosts, |_, _| {})
    }
    /// Like [`Self::new`], with changed ports: `change(switch, port config)`.
    pub fn configured(
        switches: usize,
        trunk: Version,
        hosts: &[(usize, Version)],
        change: impl Fn(usize, &mut PortConfig),
    ) -> Self {
        let mut net = Self {
            now: Instant::ZERO,
            switches: Vec::new(),
            hosts: Vec::new(),
            links: BTreeMap::new(),
            wire: BTreeMap::new(),
            frames: 0,
        };
        for k in 0..switches {
            let mut switch = Switch::new([k as u8; 16], StaticRoutes::new());
            let add = |switch: &mut Switch, name: &str, kind, side, version| {
                let params = interface::Params::new(side, version);
                let mut config = PortConfig::new(name, kind, params, CellRate::OC3);
                change(k, &mut config);
                switch.add_port(config)
            };
            let before = add(&mut switch, "before", PortKind::Trunk, Side::User, trunk);
            let after = add(&mut switch, "after", PortKind::Trunk, Side::Network, trunk);
            for other in 0..switches {
                let port = if other < k { before } else { after };
                if other != k {
                    switch.routes_mut().add_prefix(&prefix(other), port);
                }
            }
            if k + 1 < switches {
                net.link(End::Switch(k, after), End::Switch(k + 1, before));
            }
            for (i, (at, version)) in hosts.iter().enumerate() {
                if *at == k {
                    let kind = PortKind::Host;
                    let port = add(&mut switch, &format!("h{i}"), kind, Side::Network, *version);
                    switch.register(port, address(k, i));
                    net.link(End::Switch(k, port), End::Host(i));
                }
            }
            net.switches.push(switch);
        }
        for (switch, version) in hosts {
            let params = interface::Params::new(Side::User, *version);
            net.hosts.push(Host {
                uni: Uni::new(Params::new(Side::User, *version)),
                saal: Saal::new(params.sscop),
                heard: Vec::new(),
                got: Vec::new(),
                deaf: false,
                receiver: RunReassembler::new(0),
                switch: *switch,
            });
        }
        let now = net.now;
        for k in 0..switches {
            net.switches[k].handle_input(Input::Start, now).unwrap();
            net.drain_switch(k);
        }
        net.run_ms(500);
        net.forget();
        net
    }
    fn link(&mut self, a: End, b: End) {
        self.links.insert(a, b);
        self.links.insert(b, a);
    }
    /// The address of a host.
    pub fn address(&self, i: usize) -> AtmAddress {
        address(self.hosts[i].switch, i)
    }
    /// A call between two hosts.
    pub fn info(&self, from: usize, to: usize, qos: Qos) -> SetupInfo {
        SetupInfo::new(self.address(to), Some(self.address(from)), Sap::LLC, qos)
    }
    /// Gives a request to the call control of host `i`, and delivers what it sends.
    pub fn ask(&mut self, i: usize, request: Request) -> Result<(), Refused> {
        let now = self.now;
        let done = self.hosts[i]
            .uni
            .handle_input(uni::Input::Request(request), now);
        self.drain_host(i);
        done
    }
    /// Host `i` starts call `call`.
    pub fn set_up(&mut self, i: usize, call: u32, info: SetupInfo) {
        let party = info.multipoint.then_some(aerostat_proto::PartyId(0));
        let request = Request::Setup {
            call: CallId(call),
            info,
            vc: None,
            party,
        };
        self.ask(i, request).unwrap();
    }
    /// Host `i` accepts the call that was offered to it last, unchanged.
    pub fn accept(&mut self, i: usize) -> CallId {
        let (call, _) = self.hosts[i].offer().expect("an offer");
        let info = uni::ConnectInfo::default();
        self.ask(
            i,
            Request::Accept {
                call,
                info,
                vc: None,
            },
        )
        .unwrap();
        call
    }
    /// Releases a call of host `i` with cause 16.
    pub fn release(&mut self, i: usize, call: CallId) {
        let cause = uni::Reason::NORMAL;
        self.ask(i, Request::Release { call, cause }).unwrap();
    }
    /// Host `i` sends a message that bypasses its call control.
    pub fn say(&mut self, i: usize, message: &Message) {
        let (now, data) = (self.now, saal::Request::Data(message.encode()));
        let saal = &mut self.hosts[i].saal;
        saal.handle_input(saal::Input::Upper(data), now).unwrap();
        self.drain_host(i);
    }
    /// Forgets everything received so far.
    pub fn forget(&mut self) {
        for host in &mut self.hosts {
            host.heard.clear();
            host.got.clear();
        }
    }

    fn drain_host(&mut self, i: usize) {
        let now = self.now;
        loop {
            let mut idle = true;
            for output in settle(&mut self.hosts[i].saal, now) {
                idle = false;
                match output {
                    saal::Output::Lower(sdu) => {
                        let run = CellRun::whole(Pdu::new(sdu), Vc::SIGNALLING);
                        self.carry(End::Host(i), run, now);
                    }
                    saal::Output::Upper(up) => self.arrived(i, up),
                    saal::Output::Trace(_) => {}
                }
            }
            let host = &mut self.hosts[i];
            for output in settle(&mut host.uni, now) {
                idle = false;
                match output {
                    // The link refuses this while it is down: the message is lost.
                    uni::Output::SaalData(octets) => {
                        let data = saal::Request::Data(octets);
                        let _ = host.saal.handle_input(saal::Input::Upper(data), now);
                    }
                    uni::Output::SaalEstablish => {
                        let establish = saal::Input::Upper(saal::Request::Establish);
                        let _ = host.saal.handle_input(establish, now);
                    }
                    uni::Output::Indication(Indication::Restarted { what }) => {
                        let cleared = uni::Input::Request(Request::RestartCleared { what });
                        host.uni.handle_input(cleared, now).unwrap();
                    }
                    uni::Output::Indication(heard) => host.heard.push(heard),
                    uni::Output::Trace(_) => {}
                }
            }
            if idle {
                return;
            }
        }
    }
    fn arrived(&mut self, i: usize, indication: saal::Indication) {
        let (now, host) = (self.now, &mut self.hosts[i]);
        let done = match indication {
            saal::Indication::Data(octets) => {
                let decoded = Message::decode(&octets).expect("a message");
                host.got.push(decoded.message);
                if host.deaf {
                    return;
                }
                host.uni.handle_input(uni::Input::SaalData(&octets), now)
            }
            saal::Indication::Established => host.uni.handle_input(uni::Input::SaalUp, now),
            saal::Indication::Released => host.uni.handle_input(uni::Input::SaalDown, now),
            saal::Indication::UnitData(_) => Ok(()),
        };
        done.expect("the link is never refused");
    }
    fn drain_switch(&mut self, k: usize) {
        settle(&mut self.switches[k], self.now);
        for port in 0..self.switches[k].fabric().ports() {
            while let Some(output) = self.switches[k].fabric_mut().output_mut(port)
                && let Some(departure) = output.pop(self.now, u16::MAX)
            {
                let end = End::Switch(k, PortNo(port));
                self.carry(end, departure.run, departure.finish);
            }
        }
    }
    fn carry(&mut self, from: End, run: CellRun, at: Instant) {
        if let Some(to) = self.links.get(&from) {
            self.frames += 1;
            self.wire.insert((at + DELAY, self.frames), (*to, run));
        }
    }
    fn arrive(&mut self, end: End, run: CellRun) {
        let now = self.now;
        match end {
            End::Switch(k, port) => {
                let input = Input::Cells(port, run);
                self.switches[k].handle_input(input, now).unwrap();
                self.drain_switch(k);
            }
            End::Host(i) => {
                if run.vc == Vc::SIGNALLING
                    && let Some(Ok(received)) = self.hosts[i].receiver.push(run)
                {
                    let input = saal::Input::Lower(received.pdu.sdu());
                    self.hosts[i].saal.handle_input(input, now).unwrap();
                    self.drain_host(i);
                }
            }
        }
    }
    fn next(&self) -> Option<Instant> {
        let wire = self.wire.keys().next().map(|(at, _)| *at);
        let hosts = self.hosts.iter();
        let hosts = hosts.flat_map(|h| [h.saal.poll_timeout(), h.uni.poll_timeout()]);
        let switches = self.switches.iter().filter_map(Machine::poll_timeout);
        let departures = self.switches.iter().flat_map(|switch| {
            (0..switch.fabric().ports())
                .filter_map(|port| switch.fabric().output(port)?.next_departure())
        });
        wire.into_iter()
            .chain(hosts.flatten())
            .chain(switches)
            .chain(departures)
            .min()
    }
    /// Runs for `ms` milliseconds.
    pub fn run_ms(&mut self, ms: u64) {
        let until = self.now + Duration::from_millis(ms);
        while let Some(next) = self.next().filter(|at| *at <= until) {
            self.now = self.now.max(next);
            while let Some(entry) = self.wire.first_entry()
                && entry.key().0 <= self.now
            {
                let (end, run) = entry.remove();
                self.arrive(end, run);
            }
            for i in 0..self.hosts.len() {
                self.drain_host(i);
            }
            for k in 0..self.switches.len() {
                self.drain_switch(k);
            }
        }
        self.now = until;
    }
    /// Asserts that there is no call, label, reservation or connection anywhere.
    pub fn assert_clean(&self) {
        for (i, host) in self.hosts.iter().enumerate() {
            assert_eq!(host.uni.calls().count(), 0, "host {i}");
        }
        for (k, switch) in self.switches.iter().enumerate() {
            assert_eq!(switch.calls().count(), 0, "switch {k}");
            for port in switch.port_infos() {
                let held = (port.calls, port.pending, port.labels, port.reserved);
                let paths = port.tunnels.values().map(|(pcr, _)| u64::from(*pcr)).sum();
                let idle = (0, 0, 0, (paths, paths));
                assert_eq!(held, idle, "switch {k} port {}", port.port);
                for (vpi, (_, inside)) in port.tunnels {
                    assert_eq!(inside, (0, 0), "switch {k} port {} VPI {vpi}", port.port);
                }
            }
            let connections = switch.fabric().connections().filter(|c| !c.local);
            assert_eq!(connections.count(), 0, "switch {k}");
        }
    }
}

fn address(switch: usize, i: usize) -> AtmAddress {
    let esi = MacAddr([0, 0x20, 0xea, 0, 0, i as u8]);
    AtmAddress::from_parts(prefix(switch), esi, 0)
}
