//! Stations of Classical IP subnets that register with next hop servers and ask them: packets, forged NHRP, failures,
//! time.
//!
//! Two servers in a row, a station at each end, a sink behind each station's data address, and a stranger. The first
//! octet of an input says whether events of the ATM service may be forged (bit 0), whether stations and servers share
//! keys (bit 1), and whether all is left alone for a day before it stops (bits 2 and 3): then the stations must have
//! forgotten everything except their registration. In the end no connection and no timer is left.

use crate::feed::Feed;
use aerostat_proto::mpoa::mps::{self, Interface, Mps, MpsConfig, RouteResult};
use aerostat_proto::nhrp::auth::{Key, Keys, Neighbour};
use aerostat_proto::nhrp::client::{self, Nhc};
use aerostat_proto::{
    AtmEvent, AtmRequest, AtmUser, Cause, ConnId, Duration, Instant, Machine, UserOutput,
};
use aerostat_testing::World;
use aerostat_wire::nhrp::{Body, Cie, Common, Extension, Packet, internet_checksum};
use aerostat_wire::{AtmAddress, MacAddr, Qos, Sap, Vc};
use core::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr};

/// Stations are users 0 and 1, servers 2 and 3, sinks 4 and 5, the stranger is user 6.
enum User {
    Station(Box<Nhc>),
    Server(Box<Server>),
    /// Takes calls; what it has to ask for.
    Sink(Vec<AtmRequest>),
    Stranger,
}

struct Server {
    n: u8,
    mps: Mps,
    /// A route that leads to the other server, and back.
    looped: bool,
    requests: Vec<AtmRequest>,
}

const SERVER0: usize = 2;
const SINK0: usize = 4;
const STRANGER: usize = 6;

const fn address(id: u8, selector: u8) -> AtmAddress {
    let mut octets = [0; 20];
    octets[0] = 0x47;
    (octets[13], octets[18], octets[19]) = (2, id, selector);
    AtmAddress(octets)
}
const fn ip(network: u8, n: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, network, 0, n)
}
/// Between the servers.
const MID: u8 = 9;

fn key(n: u8) -> Key {
    let (spi, secret) = (3, vec![b'k', n]);
    Key {
        spi,
        secret,
        clear_text: false,
    }
}

/// The keys of a party that signs as `own`: the address, key and signature of each neighbour.
fn keys(own: Ipv4Addr, neighbours: &[(AtmAddress, Key, Ipv4Addr)]) -> Keys {
    let neighbours = neighbours.iter().map(|(address, key, signs_as)| {
        let (key, signs_as) = (key.clone(), *signs_as);
        (*address, Neighbour { key, signs_as })
    });
    Keys {
        signs_as: own,
        neighbours: neighbours.collect(),
        shortcuts: None,
        unsigned: false,
    }
}

/// Station `n` (0 or 1) of network `n`.
fn station(n: u8, keyed: bool, life: u32) -> User {
    let (own, data) = (address(0x30 + n, 0x54), address(0x30 + n, 0));
    let server = (ip(n, 1), address(0x20 + n, 0x52));
    let mut config = client::Config::new(own, data, ip(n, 10), server);
    if keyed {
        config.keys = keys(ip(n, 10), &[(server.1, key(n), server.0)]);
    }
    config.first_request_id = life;
    config.params.holding = Duration::from_secs(7200);
    (
        config.limits.entries,
        config.limits.conns,
        config.limits.queue,
    ) = (6, 6, 3);
    User::Station(Box::new(Nhc::new(config)))
}

fn server(n: u8, keyed: bool) -> User {
    let interface = |itf: u8, host: u8| Interface {
        itf: itf.into(),
        ip: ip(itf, host),
        prefix_len: 24,
        ip6: None,
        mac: MacAddr([2, 0, 0, 0, 0, n]),
        elan_id: 0,
        lane: false,
    };
    let interfaces = vec![interface(n, 1), interface(MID, n + 1)];
    let (own, data) = (address(0x20 + n, 0x52), address(0x20 + n, 0x53));
    let mut config = MpsConfig::new(own, data, interfaces, n.into());
    (config.register, config.terminate) = (true, n == 1);
    let other = address(0x21 - n, 0x52);
    config.servers.insert(ip(MID, 2 - n), other);
    if keyed {
        let of_station = (address(0x30 + n, 0x54), key(n), ip(n, 10));
        config.keys = keys(ip(n, 1), &[of_station, (other, key(7), ip(1 - n, 1))]);
    }
    (config.first_request_id, config.first_cache_id) = (0, 1);
    config.limits = mps::Limits {
        ingress: 12,
        ingress_per_mpc: 8,
        egress: 12,
        router_bindings: 8,
        registrations: 4,
        waiting: 4,
        kept: 4,
        requesters: 4,
        requests: 12,
        queries: 12,
        connections: 12,
        connections_per_peer: 3,
        queue: 4,
        devices: 6,
    };
    User::Server(Box::new(Server {
        n,
        mps: Mps::new(config),
        looped: false,
        requests: Vec::new(),
    }))
}

impl Server {
    fn input(&mut self, input: mps::Input<'_>, now: Instant) {
        self.mps
            .handle_input(input, now)
            .expect("the server takes every input");
    }
    fn route(&self, to: IpAddr) -> Option<RouteResult> {
        let IpAddr::V4(to) = to else { return None };
        let [_, network, _, host] = to.octets();
        let itf = network.into();
        let other = RouteResult::Via {
            itf: MID.into(),
            next_hop: ip(MID, 2 - self.n).into(),
        };
        match network {
            _ if network == self.n && host == 1 => Some(RouteResult::Local),
            _ if network == self.n && host < 100 => Some(RouteResult::Connected { itf }),
            _ if network == self.n => self.looped.then_some(other),
            MID if host == self.n + 1 => Some(RouteResult::Local),
            MID => Some(RouteResult::Connected { itf }),
            5 => Some(RouteResult::Outside),
            0..=2 => Some(other),
            _ => None,
        }
    }
    fn answer(&mut self, now: Instant) {
        let mut asked = 0;
        while let Some(output) = self.mps.poll_output() {
            let input = match output {
                mps::Output::Atm(request) => {
                    self.requests.push(request);
                    continue;
                }
                mps::Output::Router(mps::ToRouter::LookupRoute { query, dst }) => {
                    let (result, covers) = (self.route(dst), 32);
                    mps::Input::Router(mps::FromRouter::Route {
                        query,
                        result,
                        covers,
                    })
                }
                mps::Output::Router(mps::ToRouter::ResolveL2 { query, .. }) => {
                    mps::Input::Router(mps::FromRouter::L2 {
                        query,
                        answer: Err(mps::Absent::Unheard),
                    })
                }
                _ => continue,
            };
            asked += 1;
            assert!(asked < 10_000, "the server never stops asking");
            self.input(input, now);
        }
    }
}

impl Machine for User {
    type Input<'a> = AtmEvent<&'a [u8]>;
    type Output = UserOutput<()>;
    type Refusal = Infallible;

    fn handle_input(&mut self, event: AtmEvent<&[u8]>, now: Instant) -> Result<(), Infallible> {
        self.event(event, now);
        Ok(())
    }
    fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::Station(nhc) => nhc.handle_timeout(now),
            Self::Server(server) => {
                server.mps.handle_timeout(now);
                server.answer(now);
            }
            Self::Sink(_) | Self::Stranger => {}
        }
    }
    fn poll_output(&mut self) -> Option<UserOutput<()>> {
        let requests = match self {
            Self::Station(nhc) => loop {
                if let client::Output::Atm(request) = nhc.poll_output()? {
                    return Some(UserOutput::Atm(request));
                }
            },
            Self::Server(server) => &mut server.requests,
            Self::Sink(requests) => requests,
            Self::Stranger => return None,
        };
        (!requests.is_empty()).then(|| UserOutput::Atm(requests.remove(0)))
    }
    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Station(nhc) => nhc.poll_timeout(),
            Self::Server(server) => server.mps.poll_timeout(),
            Self::Sink(_) | Self::Stranger => None,
        }
    }
}

impl AtmUser for User {
    type Other = ();

    fn event(&mut self, event: AtmEvent<&[u8]>, now: Instant) {
        match self {
            Self::Station(nhc) => {
                let Ok(()) = nhc.handle_input(client::Input::Atm(event), now);
            }
            Self::Server(server) => {
                server
                    .mps
                    .handle_input(mps::Input::Atm(event), now)
                    .expect("events are taken");
            }
            Self::Sink(requests) => {
                if let AtmEvent::Incoming { conn, .. } = event {
                    requests.push(AtmRequest::Accept { conn, terms: None });
                }
            }
            Self::Stranger => {}
        }
    }
    fn sort(output: UserOutput<()>) -> UserOutput<()> {
        output
    }
}

/// Starts or stops a user.
fn turn(w: &mut World<User>, who: usize, on: bool) {
    w.with(who, |user, now| match (user, on) {
        (User::Station(nhc), true) => {
            let Ok(()) = nhc.handle_input(client::Input::Start, now);
        }
        (User::Station(nhc), false) => {
            let Ok(()) = nhc.handle_input(client::Input::Stop, now);
        }
        (User::Server(server), true) => server.input(mps::Input::Start, now),
        (User::Server(server), false) => server.input(mps::Input::Stop, now),
        (User::Sink(requests), true) => requests.push(AtmRequest::listen(
            address(0x30 + (who - SINK0) as u8, 0),
            Sap::LLC,
            9188,
        )),
        (User::Sink(_) | User::Stranger, _) => {}
    });
}

fn some_ip(feed: &mut Feed<'_>) -> Ipv4Addr {
    match feed.below(8) {
        0 => Ipv4Addr::from(feed.u32()),
        1 => ip(MID, feed.u8() % 4),
        2 => ip(5, feed.u8()),
        3 => ip(feed.u8() & 1, 100),
        n => ip(n as u8 & 1, feed.pick(&[1, 10, 11, 12])),
    }
}

fn some_atm(feed: &mut Feed<'_>) -> AtmAddress {
    let id = feed.pick(&[0x20, 0x21, 0x30, 0x31, 0x40]);
    address(id, feed.pick(&[0, 0x52, 0x53, 0x54]))
}

fn entry(feed: &mut Feed<'_>) -> Cie {
    let what = feed.u8();
    Cie {
        code: if what & 1 == 1 { feed.u8() & 15 } else { 0 },
        prefix: if what & 2 == 2 { feed.u8() } else { 32 },
        mtu: if what & 4 == 4 { feed.u16() } else { 0 },
        holding_s: if what & 8 == 8 { feed.u16() } else { 60 },
        nbma: some_atm(feed).into(),
        protocol: some_ip(feed).into(),
        preference: what,
        ..Cie::default()
    }
}

/// A packet whose numbers are near those in use.
fn packet(feed: &mut Feed<'_>) -> Packet {
    let op = feed.u8() % 7 + 1;
    let mut packet = Packet::new(
        op.min(6),
        Common {
            flags: if feed.coin() { feed.u16() } else { 0 },
            request_id: u32::from(feed.u8() & 15),
            source_nbma: some_atm(feed).into(),
            source: some_ip(feed).into(),
            destination: some_ip(feed).into(),
            cies: (0..feed.below(4)).map(|_| entry(feed)).collect(),
            ..Common::default()
        },
    );
    let what = feed.u8();
    if what & 1 == 1 {
        packet.hop_count = feed.u8();
    }
    for _ in 0..(what >> 1) % 4 {
        let kind = feed.pick(&[3, 4, 5, 7, 8, 0x3800]);
        let value = feed.octets(40).to_vec();
        packet = packet.with(match feed.coin() {
            true => Extension::compulsory(kind, value),
            false => Extension::new(kind, value),
        });
    }
    if what & 16 == 16 {
        key(feed.pick(&[0, 1, 7])).sign(&mut packet, some_ip(feed));
    }
    if op == 7 && matches!(packet.body, Body::Common(_)) {
        let (octets, by) = (packet.encode(), some_atm(feed));
        let code = u16::from(feed.u8() & 15);
        return Packet::error_about(&octets, code, 0, by, some_ip(feed).into()).unwrap_or(packet);
    }
    packet
}

fn sdu(feed: &mut Feed<'_>) -> Vec<u8> {
    if feed.below(8) == 0 {
        return feed.octets(120).to_vec();
    }
    let packet = packet(feed);
    damaged(feed, &packet)
}

/// The SDU of a packet that was damaged, except for its checksum.
pub(crate) fn damaged(feed: &mut Feed<'_>, packet: &Packet) -> Vec<u8> {
    let mut octets = packet.encode();
    feed.damage(&mut octets);
    sum_up(&mut octets);
    [&aerostat_wire::nhrp::LLC[..], &octets].concat()
}

/// Gives the octets of a packet their checksum, if they reach so far.
pub(crate) fn sum_up(octets: &mut [u8]) {
    if octets.len() > 14 {
        octets[12..14].fill(0);
        let sum = internet_checksum(octets);
        octets[12..14].copy_from_slice(&sum.to_be_bytes());
    }
}

fn call_of_a_stranger(feed: &mut Feed<'_>, w: &mut World<User>, life: &mut u32) {
    *life += 1;
    let conn = ConnId(*life);
    let (calling, called) = (some_atm(feed), some_atm(feed));
    let (sap, qos, multipoint) = (Sap::LLC, Qos::ubr(1536), false);
    let call = AtmRequest::Connect {
        conn,
        calling,
        called,
        sap,
        qos,
        multipoint,
    };
    let now = w.now;
    w.net.request(STRANGER, call, now);
    w.run_for(Duration::from_millis(5));
    for _ in 0..feed.below(4) {
        let sdu = sdu(feed);
        if !sdu.is_empty() {
            let now = w.now;
            w.net.request(STRANGER, AtmRequest::Send { conn, sdu }, now);
        }
    }
}

fn trouble(feed: &mut Feed<'_>, w: &mut World<User>, who: usize) {
    let now = w.now;
    match feed.below(4) {
        0 => w.net.break_calls(who, Sap::LLC, now),
        1 => {
            let (called, cause) = (some_atm(feed), Cause::TEMPORARY);
            w.net.refuse(called, None, cause, 2);
        }
        2 => w.net.loss = None,
        _ => {
            let (mut state, loss) = (feed.u32(), u32::from(feed.u8() / 2));
            w.net.loss = Some(Box::new(move |_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                state >> 24 < loss
            }));
        }
    }
}

/// Settings of an input for the whole run, and counts of lives and calls.
struct Run {
    forging: bool,
    keyed: bool,
    life: u32,
}

fn step(feed: &mut Feed<'_>, w: &mut World<User>, run: &mut Run) {
    let op = feed.u8();
    let who = feed.below(SINK0);
    match op & 15 {
        0..=3 => {
            let n = feed.u8();
            let base = if n & 0x80 == 0 {
                0
            } else {
                w.net.incoming_base(who)
            };
            let conn = ConnId(base + u32::from(n & 15));
            let sdu = sdu(feed);
            if !sdu.is_empty() {
                w.with(who, |user, now| {
                    user.event(
                        AtmEvent::Received {
                            conn,
                            sdu: &sdu[..],
                        },
                        now,
                    );
                });
            }
        }
        4..=7 => {
            let (destination, count) = (some_ip(feed), feed.below(6));
            for _ in 0..count {
                let packet = vec![0x45; 20 + feed.below(200)];
                let input = client::Input::Send {
                    destination,
                    packet,
                };
                w.with(who % SERVER0, |user, now| {
                    if let User::Station(nhc) = user {
                        let Ok(()) = nhc.handle_input(input, now);
                    }
                });
                w.run_for(Duration::from_millis(20));
            }
        }
        8 => turn(w, who, feed.coin()),
        9 => {
            run.life += 1;
            let n = (who & 1) as u8;
            let fresh = match who {
                0 | 1 => station(n, run.keyed, run.life),
                _ => server(n, run.keyed),
            };
            w.replace(who, fresh);
            turn(w, who, true);
        }
        10 => call_of_a_stranger(feed, w, &mut run.life),
        11 => trouble(feed, w, who),
        12 if run.forging => {
            let high = if feed.coin() { ConnId::INCOMING } else { 0 };
            let conn = ConnId(u32::from(feed.u8() & 31) | high);
            let event = match feed.below(3) {
                0 => AtmEvent::Connected {
                    conn,
                    vc: Vc::new(0, 99),
                    qos: Qos::ubr(0),
                },
                1 => AtmEvent::Up,
                _ => AtmEvent::Down,
            };
            w.with(who, |user, now| user.event(event, now));
        }
        12 => w.with(SERVER0 + who % 2, |user, now| {
            if let User::Server(server) = user {
                server.looped = !server.looped;
                server.input(mps::Input::Router(mps::FromRouter::RoutesChanged), now);
            }
        }),
        13 => w.run_for(Duration::from_secs(u64::from(feed.u8()) * 8)),
        14 => w.run_for(Duration::from_secs(feed.u8().into())),
        _ => w.run_for(Duration::from_millis(u64::from(feed.u8()) * 8)),
    }
    check(w);
}

fn check(w: &World<User>) {
    for user in &w.users {
        match user {
            User::Station(nhc) => assert!(nhc.snapshot().entries.len() <= 6),
            User::Server(server) => {
                let s = server.mps.snapshot();
                assert!(s.ingress.len() <= 12 && s.egress.len() <= 12 && s.connections.len() <= 12);
                let s = server.mps.nhrp_snapshot();
                assert!(s.pending.len() <= 12 && s.lookups <= 12 && s.cache.len() <= 40);
            }
            User::Sink(_) | User::Stranger => {}
        }
    }
}

/// Runs one input.
pub fn run(input: &[u8]) {
    let mut feed = Feed::new(input);
    let mode = feed.u8();
    let mut run = Run {
        forging: mode & 1 == 1,
        keyed: mode & 2 == 2,
        life: 1,
    };
    let patient = mode & 12 == 12;
    let mut w = World::new(Duration::from_millis(1));
    for n in 0..2 {
        w.add(station(n, run.keyed, 1));
    }
    for n in 0..2 {
        w.add(server(n, run.keyed));
    }
    for user in [User::Sink(vec![]), User::Sink(vec![]), User::Stranger] {
        w.add(user);
    }
    for who in (0..STRANGER).rev() {
        turn(&mut w, who, true);
    }
    w.run_for(Duration::from_secs(1));
    for _ in 0..80 {
        if feed.is_empty() {
            break;
        }
        step(&mut feed, &mut w, &mut run);
    }
    w.net.loss = None;
    let now = w.now;
    w.net.forget(STRANGER, now);
    if patient {
        w.run_for(Duration::from_secs(90_000));
        for user in &w.users[..SERVER0] {
            if let User::Station(nhc) = user {
                let left = nhc.snapshot().entries;
                assert!(run.forging || left.is_empty(), "{left:?}");
            }
        }
    }
    for who in 0..SINK0 {
        turn(&mut w, who, false);
    }
    w.run_for(Duration::from_secs(60));
    for (who, user) in w.users.iter().enumerate() {
        assert_eq!(
            user.poll_timeout(),
            None,
            "user {who} stopped, but has a timer"
        );
    }
    if !run.forging {
        assert_eq!(w.net.calls(), 0, "connections left over");
    }
}
