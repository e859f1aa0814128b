//! Two MPOA clients and two servers: flows, forged packets, calls of strangers, failures, time.
//!
//! LANE is a wire here, and routers answer their servers' questions at once. The first octet of an input says
//! whether events of the ATM service may be forged (bit 0), and whether all is left alone for a day before it
//! stops (bit 1): then the tables must have emptied themselves. In the end no connection and no timer is left.

mod forge;

use crate::feed::Feed;
use aerostat_proto::mpoa::mps::{self, Interface, Mps, MpsConfig, RouteResult};
use aerostat_proto::mpoa::{Mpc, MpcConfig, mpc};
use aerostat_proto::split::ProcessEvent;
use aerostat_proto::{
    AtmEvent, AtmRequest, AtmUser, Cause, ConnId, Duration, Instant, Machine, UserOutput,
};
use aerostat_testing::World;
use aerostat_wire::lane::{Tlv, TlvType};
use aerostat_wire::mpoa::{DeviceType, DllHeader, FlowFilter};
use aerostat_wire::{AtmAddress, MacAddr, Qos, Sap, Vc};
use core::convert::Infallible;
pub(crate) use forge::sdu;
use forge::{ip_packet, some_address, some_atm, some_ip};
use std::net::{IpAddr, Ipv4Addr};

/// Hosts 1 and 2 are users 0 and 1, routers 1 and 2 are users 2 and 3, a stranger is user 4.
enum User {
    Host(Box<Mpc>),
    Router(Box<Router>),
    Stranger,
}

struct Router {
    n: u8,
    mps: Mps,
    /// Outputs for the ATM service.
    requests: Vec<AtmRequest>,
    /// Bits: neighbours do not answer, no route, another route.
    mood: u8,
}

const ROUTER1: usize = 2;
const STRANGER: usize = 4;
/// The ELAN between the routers.
const BETWEEN: u8 = 9;

const fn address(id: u8, selector: u8) -> AtmAddress {
    let mut octets = [0; 20];
    octets[0] = 0x47;
    (octets[13], octets[18], octets[19]) = (2, id, selector);
    AtmAddress(octets)
}
const fn control(n: u8) -> AtmAddress {
    address(0x10_u8.wrapping_add(n), 0x50)
}
const fn server(n: u8) -> AtmAddress {
    address(0x20_u8.wrapping_add(n), 0x52)
}
const fn mac(n: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, 0x10_u8.wrapping_add(n)])
}
const fn router_mac(n: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, 0x20_u8.wrapping_add(n)])
}
const fn ip(network: u8, n: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, network, 0, n)
}

impl Router {
    fn boxed(n: u8) -> User {
        let interface = |itf: u8, host: u8| Interface {
            itf: itf.into(),
            ip: ip(itf, host),
            prefix_len: 24,
            ip6: None,
            mac: router_mac(n),
            elan_id: itf.into(),
            lane: true,
        };
        let interfaces = vec![interface(n, 1), interface(BETWEEN, n)];
        let data = address(0x20 + n, 0x53);
        let mut config = MpsConfig::new(server(n), data, interfaces, n.into());
        config.terminate = n == 1;
        config.trigger = n == 2;
        // Numbers that forged packets can guess.
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
        User::Router(Box::new(Self {
            n,
            mps: Mps::new(config),
            requests: Vec::new(),
            mood: 0,
        }))
    }
    fn input(&mut self, input: mps::Input<'_>, now: Instant) {
        self.mps
            .handle_input(input, now)
            .expect("the server takes every input");
    }
    fn route(&self, to: IpAddr) -> Option<RouteResult> {
        let IpAddr::V4(to) = to else { return None };
        let [_, network, _, host] = to.octets();
        let (own, other) = (self.n, 3 - self.n);
        match (self.mood & 6, network) {
            (2, _) => None,
            (4, n) if n == other => Some(RouteResult::Outside),
            (_, n) if n == own && host == 1 => Some(RouteResult::Local),
            (_, n) if n == own => Some(RouteResult::Connected { itf: n.into() }),
            (_, BETWEEN) => Some(RouteResult::Connected {
                itf: BETWEEN.into(),
            }),
            _ => Some(RouteResult::Via {
                itf: BETWEEN.into(),
                next_hop: ip(BETWEEN, other).into(),
            }),
        }
    }
    fn neighbour(&self, itf: u32, to: IpAddr) -> Option<mps::L2Answer> {
        let IpAddr::V4(to) = to else { return None };
        let n = to.octets()[3];
        if self.mood & 1 == 1 {
            return None;
        }
        let (mac, lec, device) = if itf == u32::from(BETWEEN) {
            let control = server(n & 3);
            (
                router_mac(n),
                address(n.wrapping_add(0x20), 9),
                DeviceType::Mps {
                    control,
                    macs: vec![],
                },
            )
        } else {
            // Hosts with odd numbers are behind the network's client, the others have none.
            let control = control(self.n);
            let mac = MacAddr([2, 0, 0, 0, self.n, n]);
            if n & 1 == 0 {
                return Some((mac, address(0x10 + self.n, 0), vec![]));
            }
            (mac, address(0x10 + self.n, 0), DeviceType::Mpc { control })
        };
        Some((mac, lec, vec![device.to_tlv()]))
    }
    /// Answers the server's questions until it has none.
    fn answer(&mut self, now: Instant) {
        let mut asked = 0;
        while let Some(output) = self.mps.poll_output() {
            let input = match output {
                mps::Output::Atm(request) => {
                    self.requests.push(request);
                    continue;
                }
                mps::Output::Router(mps::ToRouter::LookupRoute { query, dst }) => {
                    mps::Input::Router(mps::FromRouter::Route {
                        query,
                        result: self.route(dst),
                        covers: self.mood.wrapping_mul(5),
                    })
                }
                mps::Output::Router(mps::ToRouter::ResolveL2 { query, itf, ip }) => {
                    mps::Input::Router(mps::FromRouter::L2 {
                        query,
                        answer: self.neighbour(itf, ip).ok_or(mps::Absent::ForNow),
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
            Self::Host(mpc) => mpc.handle_timeout(now),
            Self::Router(router) => {
                router.mps.handle_timeout(now);
                router.answer(now);
            }
            Self::Stranger => {}
        }
    }
    fn poll_output(&mut self) -> Option<UserOutput<()>> {
        match self {
            Self::Host(mpc) => loop {
                if let mpc::Output::Atm(request) = mpc.poll_output()? {
                    return Some(UserOutput::Atm(request));
                }
            },
            Self::Router(router) if router.requests.is_empty() => None,
            Self::Router(router) => Some(UserOutput::Atm(router.requests.remove(0))),
            Self::Stranger => None,
        }
    }
    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Host(mpc) => mpc.poll_timeout(),
            Self::Router(router) => router.mps.poll_timeout(),
            Self::Stranger => None,
        }
    }
}

impl AtmUser for User {
    type Other = ();

    fn event(&mut self, event: AtmEvent<&[u8]>, now: Instant) {
        match self {
            Self::Host(mpc) => {
                let taken = mpc.handle_input(mpc::Input::Atm(event), now);
                taken.expect("events are never refused");
            }
            Self::Router(router) => {
                router
                    .mps
                    .handle_input(mps::Input::Atm(event), now)
                    .expect("events are taken");
            }
            Self::Stranger => {}
        }
    }
    fn sort(output: UserOutput<()>) -> UserOutput<()> {
        output
    }
}

const HOST_LIMITS: mpc::MpcLimits = mpc::MpcLimits {
    ingress: 6,
    egress: 6,
    shortcuts: 4,
    control: 4,
    mps: 3,
    queue: 4,
    qos: 4,
};

fn host(n: u8, life: u64) -> User {
    let mut config = MpcConfig::new(control(n), address(0x10 + n, 0x51));
    (config.tag, config.seed, config.limits) = (n == 1, life, HOST_LIMITS);
    User::Host(Box::new(Mpc::new(config)))
}

/// Starts a user: a host also joins its ELAN and hears of its router.
fn boot(w: &mut World<User>, who: usize) {
    w.with(who, |user, now| match user {
        User::Host(mpc) => {
            let n = who as u8 + 1;
            let device = DeviceType::Mps {
                control: server(n),
                macs: vec![router_mac(n)],
            };
            let tlvs = vec![device.to_tlv()];
            let (mac, atm) = (router_mac(n), address(0x20 + n, n));
            for input in [
                mpc::Input::Start,
                mpc::Input::LecUp {
                    itf: 0,
                    elan_id: n.into(),
                    mtu: 1500,
                },
                mpc::Input::Associate {
                    itf: 0,
                    mac,
                    atm,
                    tlvs,
                },
            ] {
                let _ = mpc.handle_input(input, now);
            }
        }
        User::Router(router) => router.input(mps::Input::Start, now),
        User::Stranger => {}
    });
}

/// Packets of host `who` to one destination.
fn flow(feed: &mut Feed<'_>, w: &mut World<User>, who: usize) {
    let n = who as u8 + 1;
    let to = some_ip(feed);
    let count = feed.below(32);
    let len = u16::from(feed.u8()) * 6;
    for _ in 0..count {
        let packet = ip_packet(ip(n, 11), to, 64, len);
        let frame = [
            &DllHeader::ethernet_ipv4(router_mac(n), mac(n))[..],
            &packet,
        ]
        .concat();
        let path = w.with(who, |user, now| match user {
            User::Host(mpc) => Some(mpc.outbound(0, frame, now)),
            User::Router(_) | User::Stranger => None,
        });
        if let Some(mpc::Outbound::Shortcut { conn, sdu }) = path {
            let sdu = sdu.into_vec();
            let send = AtmRequest::Send { conn, sdu };
            w.net.request(who, send, w.now);
        }
        w.run_for(Duration::from_millis(20));
    }
}

fn manage_host(feed: &mut Feed<'_>, mpc: &mut Mpc, n: u8, now: Instant) {
    let itf = feed.below(2);
    let mac = if feed.coin() {
        router_mac(n)
    } else {
        mac(feed.u8() & 7)
    };
    let input = match feed.below(12) {
        0 => mpc::Input::Stop,
        1 => mpc::Input::Start,
        2 => mpc::Input::Reload,
        3 => mpc::Input::Mpcd(ProcessEvent::Gone),
        4 => mpc::Input::Mpcd(ProcessEvent::Came),
        5 => mpc::Input::Enable(feed.coin()),
        6 => mpc::Input::LecUp {
            itf,
            elan_id: feed.u8().into(),
            mtu: u16::from(feed.u8()) * 40,
        },
        7 => mpc::Input::LecDown { itf },
        8 => mpc::Input::Dissociate { itf, mac },
        9 => {
            let qos = feed.coin().then(|| Qos::cbr(feed.u16().into(), 1536));
            let mut filter = FlowFilter::to(some_ip(feed));
            if feed.coin() {
                (filter.protocol, filter.destination_port) = (17, feed.u8().into());
            }
            mpc::Input::SetQos { filter, qos }
        }
        10 => {
            let kind = TlvType(0x00a0_3e2a + u32::from(feed.u8() % 8));
            mpc::Input::ConfigTlvs(vec![Tlv::new(kind, feed.octets(4))])
        }
        _ => {
            let value = device(feed);
            let tlvs = vec![Tlv::new(TlvType::DEVICE_TYPE, value)];
            mpc::Input::Associate {
                itf,
                mac,
                atm: some_atm(feed),
                tlvs,
            }
        }
    };
    let _ = mpc.handle_input(input, now);
}

fn device(feed: &mut Feed<'_>) -> Vec<u8> {
    let control = some_atm(feed);
    match feed.below(4) {
        0 => DeviceType::Mpc { control }.encode(),
        1 | 2 => {
            let macs = (0..feed.below(4))
                .map(|_| router_mac(feed.u8() & 7))
                .collect();
            DeviceType::Mps { control, macs }.encode()
        }
        _ => feed.octets(60).to_vec(),
    }
}

fn manage_router(feed: &mut Feed<'_>, router: &mut Router, now: Instant) {
    let itf = u32::from(feed.pick(&[1, 2, BETWEEN, 3]));
    match feed.below(7) {
        0 => router.input(mps::Input::Stop, now),
        1 => router.input(mps::Input::Start, now),
        2 => {
            router.mood = feed.u8() & 7;
            router.input(mps::Input::Router(mps::FromRouter::RoutesChanged), now);
        }
        3 => {
            router.mood ^= feed.u8() & 1;
            router.input(
                mps::Input::Router(mps::FromRouter::NeighbourChanged {
                    itf,
                    ip: some_address(feed),
                }),
                now,
            );
        }
        4 => {
            let (mac, atm) = (mac(feed.u8() & 7), some_atm(feed));
            let tlvs = vec![Tlv::new(TlvType::DEVICE_TYPE, device(feed))];
            router.input(
                mps::Input::Router(mps::FromRouter::Associate {
                    itf,
                    mac,
                    atm,
                    tlvs,
                }),
                now,
            );
        }
        5 => {
            let packet = ip_packet(some_ip(feed), some_ip(feed), 60, 40);
            router.input(
                mps::Input::Routed {
                    itf,
                    packet: &packet,
                },
                now,
            );
        }
        _ => router.input(
            mps::Input::Router(mps::FromRouter::Route {
                query: feed.u8().into(),
                result: None,
                covers: 32,
            }),
            now,
        ),
    }
}

fn check(w: &World<User>) {
    for user in &w.users {
        match user {
            User::Host(mpc) => {
                let s = mpc.snapshot(w.now);
                assert!(
                    s.ingress.len() <= HOST_LIMITS.ingress && s.egress.len() <= HOST_LIMITS.egress
                );
                assert!(s.shortcuts.len() <= HOST_LIMITS.shortcuts);
                // The limit is of servers, and of addresses of servers on each interface.
                assert!(s.mps.len() <= HOST_LIMITS.mps * HOST_LIMITS.mps);
            }
            User::Router(router) => {
                let s = router.mps.snapshot();
                assert!(s.ingress.len() <= 12 && s.egress.len() <= 12 && s.connections.len() <= 12);
                let s = router.mps.nhrp_snapshot();
                assert!(s.pending.len() <= 12 && s.lookups <= 12 && s.cache.len() <= 32);
            }
            User::Stranger => {}
        }
    }
}

fn check_empty(w: &World<User>) {
    for (who, user) in w.users.iter().enumerate() {
        match user {
            User::Host(mpc) => {
                let s = mpc.snapshot(w.now);
                assert_eq!(
                    (s.ingress.len(), s.egress.len(), s.shortcuts.len()),
                    (0, 0, 0),
                    "{who}: {s:?}"
                );
            }
            User::Router(router) => {
                let s = router.mps.snapshot();
                assert_eq!(
                    (s.ingress.len(), s.egress.len(), s.clients.len()),
                    (0, 0, 0),
                    "{who}: {s:?}"
                );
            }
            User::Stranger => {}
        }
    }
}

/// One step of a run.
fn step(feed: &mut Feed<'_>, w: &mut World<User>, forging: bool, life: &mut u32) {
    let op = feed.u8();
    let who = feed.below(STRANGER);
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
                let event = AtmEvent::Received {
                    conn,
                    sdu: &sdu[..],
                };
                w.with(who, |user, now| user.event(event, now));
            }
        }
        4..=6 => flow(feed, w, who % ROUTER1),
        7 | 8 => w.with(who, |user, now| match user {
            User::Host(mpc) => manage_host(feed, mpc, who as u8 + 1, now),
            User::Router(router) => manage_router(feed, router, now),
            User::Stranger => {}
        }),
        9 => {
            *life += 1;
            let n = who as u8 & 1;
            let user = if who < ROUTER1 {
                host(n + 1, (*life).into())
            } else {
                Router::boxed(n + 1)
            };
            w.replace(who, user);
            boot(w, who);
        }
        10 => stranger(feed, w, life),
        11 => trouble(feed, w, who),
        12 if forging => {
            let conn =
                ConnId(u32::from(feed.u8() & 31) | if feed.coin() { ConnId::INCOMING } else { 0 });
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
        13 => w.run_for(Duration::from_secs(u64::from(feed.u8()) * 16)),
        14 => w.run_for(Duration::from_secs(feed.u8().into())),
        _ => w.run_for(Duration::from_millis(u64::from(feed.u8()) * 8)),
    }
    check(w);
}

/// A stranger calls, under a name of its choice, and says something.
fn stranger(feed: &mut Feed<'_>, w: &mut World<User>, life: &mut u32) {
    *life += 1;
    let conn = ConnId(*life);
    let (calling, called) = (some_atm(feed), some_atm(feed));
    let (sap, qos, multipoint) = (Sap::LLC, Qos::ubr(1536), false);
    let now = w.now;
    w.net.request(
        STRANGER,
        AtmRequest::Connect {
            conn,
            calling,
            called,
            sap,
            qos,
            multipoint,
        },
        now,
    );
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

/// Runs one input.
pub fn run(input: &[u8]) {
    let mut feed = Feed::new(input);
    let mode = feed.u8();
    let (forging, patient) = (mode & 1 == 1, mode & 2 == 2);
    let mut w = World::new(Duration::from_millis(1));
    for user in [
        host(1, 0),
        host(2, 0),
        Router::boxed(1),
        Router::boxed(2),
        User::Stranger,
    ] {
        w.add(user);
    }
    for who in 0..STRANGER {
        boot(&mut w, who);
    }
    let mut life = 0;
    for _ in 0..80 {
        if feed.is_empty() {
            break;
        }
        step(&mut feed, &mut w, forging, &mut life);
    }
    w.net.loss = None;
    let now = w.now;
    w.net.forget(STRANGER, now);
    if patient {
        // More than any holding time (65535 s) and the time after which an idle connection goes.
        w.run_for(Duration::from_secs(90_000));
        check(&w);
        if !forging {
            check_empty(&w);
        }
    }
    w.run_for(Duration::from_secs(10));
    for who in 0..STRANGER {
        w.with(who, |user, now| match user {
            User::Host(mpc) => {
                let _ = mpc.handle_input(mpc::Input::Stop, now);
            }
            User::Router(router) => router.input(mps::Input::Stop, now),
            User::Stranger => {}
        });
    }
    w.run_for(Duration::from_secs(60));
    for (who, user) in w.users.iter().enumerate() {
        assert_eq!(
            user.poll_timeout(),
            None,
            "user {who} stopped, but has a timer"
        );
    }
    if !forging {
        assert_eq!(w.net.calls(), 0, "connections left over");
    }
}
