//! The two halves of a server: their messages survive encoding, each half enforces its bounds, and a daemon that dies,
//! hangs or ends is replaced.

mod lies;

use super::world::{TARGET, Who, World, atm, ip};
use crate::discard::Discard;
use crate::mpoa::mps::report::{Part, Reports, State, parts};
use crate::mpoa::mps::split::{FromMpsd, ToMpsd};
use crate::mpoa::mps::{
    Absent, FromRouter, Input, Interface, Limits, MAX_SDU, Mps, MpsConfig, Mpsd, Output,
    RouteResult, ToRouter,
};
use crate::nhrp::auth;
use crate::split::codec::Message as _;
use crate::split::tests::sample;
use crate::split::{
    FRAME_MAX, FromDaemon, Numbered, Process, ProcessEvent, ProcessInput, ProcessOutput, Signal,
    ToDaemon, names,
};
use crate::{AtmEvent, AtmRequest, Cause, ConnId, Duration, Instant, Machine as _, PartyId};
use aerostat_testing::messages::Random;
use aerostat_wire::mpoa::{op as mop, shortcut_sdu};
use aerostat_wire::{AtmAddress, Qos, Sap, Vc};
use proptest::prelude::*;

type To = Numbered<ToDaemon<ToMpsd>>;
type From = Numbered<FromDaemon<FromMpsd>>;

const SECOND: Duration = Duration::from_secs(1);
const NOW: Instant = Instant::from_secs(1);

aerostat_testing::message_properties!(To, From);

#[test]
fn every_name_that_the_daemon_uses_is_known() {
    let sources = [
        include_str!("../changes.rs"),
        include_str!("../clients.rs"),
        include_str!("../conns.rs"),
        include_str!("../egress.rs"),
        include_str!("../ingress.rs"),
        include_str!("../kept.rs"),
        include_str!("../lookup.rs"),
        include_str!("../mod.rs"),
        include_str!("../nhs.rs"),
        include_str!("../process.rs"),
        include_str!("../register.rs"),
        include_str!("../resolve.rs"),
    ];
    let (count, strangers) = aerostat_testing::messages::strangers(&sources, "mps.");
    assert!(count > 25, "{count}");
    assert!(strangers.is_empty(), "{strangers:?}");
    for kind in ["resolution", "imposition", "removal", "purge"] {
        assert_eq!(names::known(kind), Some(kind));
    }
}

/// Course of events at two routers and two clients from a request on: with a process of its own for each server, too.
fn story(split: bool) -> World {
    let mut world = World::two_routers();
    world.split = split;
    world.routers[0].config.trigger = true;
    world.start();
    world.ask(0x11, TARGET);
    world.run(SECOND * 30);
    // A flow of a client that has asked, and of one that has not.
    let packet = |target: [u8; 4]| {
        let mut packet = vec![0x45, 0, 0, 20, 0, 0, 0, 0, 63, 17, 0, 0, 10, 1, 0, 11];
        packet.extend(target);
        packet
    };
    for target in [[10, 2, 0, 20], [10, 2, 0, 12], [10, 2, 0, 12]] {
        let packet = &packet(target);
        world.input(0, Input::Routed { itf: 1, packet });
        world.run(SECOND);
    }
    world.routers[0].routes.clear();
    world.input(0, Input::Router(FromRouter::RoutesChanged));
    world.run(SECOND * 300);
    for router in 0..2 {
        world.input(router, Input::Stop);
    }
    world.run(SECOND);
    world.input(0, Input::Start);
    world.run(SECOND);
    world
}

#[test]
fn a_daemon_in_a_process_of_its_own_does_what_it_does_in_this_process() {
    let (here, apart) = (story(false), story(true));
    assert!(here.log.len() > 30, "{}", here.log.len());
    assert!(here.mpcs[0].count(mop::TRIGGER) == 1);
    assert_eq!(here.log, apart.log);
    for router in 0..2 {
        assert_eq!(here.routers[router].traces, apart.routers[router].traces);
        assert_eq!(here.snapshot(router), apart.snapshot(router));
        apart.assert_idle(router);
    }
    assert_eq!(here.listening, apart.listening);
}

/// A resolved destination whose shortcut ends at the second router, over which client 0 has called.
fn on_the_router() -> World {
    let mut world = World::two_routers();
    world.split = true;
    world.arp.remove(&TARGET);
    world.absent = Absent::Unheard;
    let outside = RouteResult::Outside;
    world.routers[1].routes.push((ip(77, 0), 24, outside));
    let next_hop = ip(9, 2);
    let via = RouteResult::Via { itf: 9, next_hop };
    world.routers[0].routes.push((ip(77, 0), 24, via));
    world.start();
    world.ask(0x11, ip(77, 5));
    world.run(SECOND);
    world.call((Who::Mpc(0), SHORTCUT), atm(0x11, 0x51), atm(0x22, 0x53));
    world.run(SECOND);
    world
}

const SHORTCUT: ConnId = ConnId(50);

fn packet() -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 24, 0, 0, 0, 0, 63, 17, 0, 0];
    packet.extend([10, 1, 0, 11, 10, 77, 0, 5, 1, 2, 3, 4]);
    packet
}

#[test]
fn a_daemon_that_hangs_stops_no_packet_of_a_shortcut() {
    let mut world = on_the_router();
    // The process is there, but takes no messages and sends no messages.
    let stopped = world.routers[1].process.take();
    assert!(stopped.is_some());
    for _ in 0..3 {
        world.transmit((Who::Mpc(0), SHORTCUT), shortcut_sdu(Some(1), &packet()));
    }
    world.run(SECOND);
    assert_eq!(world.routers[1].ip_packets.len(), 3);
    let server = world.snapshot(1);
    assert_eq!(server.counters.shortcut_packets, 3);
    let received = server.connections.iter().map(|row| row.received);
    assert!(received.into_iter().any(|received| received == 3));
}

#[test]
fn a_daemon_that_dies_takes_its_connections_along_and_the_next_daemon_begins_without_state() {
    let mut world = on_the_router();
    let before = world.snapshot(1);
    assert!(before.counters.nhrp_requests_received > 0 && !before.connections.is_empty());
    world.process_dies(1);
    assert!(!world.listening.contains(&atm(0x22, 0x52)));
    let gone = world.snapshot(1);
    assert!(!gone.up && gone.connections.is_empty());
    assert_eq!(gone.counters.nhrp_requests_received, 0, "as after a crash");
    world.run(SECOND);
    world.process_starts(1);
    world.run(SECOND);
    world.assert_idle(1);
    assert!(world.listening.contains(&atm(0x22, 0x52)));
    // The other server asks again when its client does.
    world.ask(0x12, ip(77, 5));
    world.run(SECOND * 6);
    let reply = world.mpcs[0].last(mop::RESOLUTION_REPLY);
    let common = reply.common().unwrap();
    assert_eq!((common.request_id, common.cies[0].code), (0x12, 0));
    assert!(world.snapshot(1).up);
}

#[test]
fn an_sdu_on_a_shortcut_that_ended_with_its_daemon_is_counted_and_noted() {
    let mut world = on_the_router();
    world.process_dies(1);
    let sdu = shortcut_sdu(Some(1), &packet());
    let event = AtmEvent::Received {
        conn: SHORTCUT,
        sdu: &*sdu,
    };
    world.input(1, Input::Atm(event));
    assert!(world.routers[1].ip_packets.is_empty());
    assert_eq!(world.snapshot(1).counters.unexpected, 1);
    let server = world.routers[1].mps.as_mut().unwrap();
    assert_eq!(server.take_discard(), Some((Discard::NoEntry, sdu)));
}

#[test]
fn a_daemon_is_asked_about_a_flow_that_it_serves_once_a_second() {
    let mut alone = Alone::new(MpsConfig {
        trigger: true,
        ..config()
    });
    let mut ip_packet = vec![0x45, 0, 0, 20, 0, 0, 0, 0, 64, 17, 0, 0, 10, 1, 0, 11];
    ip_packet.extend([10, 2, 0, 20]);
    let (mut now, mut asked) = (NOW, 0);
    // 100 packets a second for 10 s.
    for _ in 0..1000 {
        alone.0.handle_timeout(now);
        let packet = &ip_packet;
        alone
            .0
            .handle_input(Input::Routed { itf: 1, packet }, now)
            .unwrap();
        while let Some(output) = alone.0.poll_output() {
            let Output::Process(message) = output else {
                continue;
            };
            if let ToDaemon::Message(ToMpsd::Flow { source, target, .. }) = message {
                asked += 1;
                let served = FromDaemon::Message(FromMpsd::Served { source, target });
                let said = Input::Process(ProcessEvent::Said(served));
                alone.0.handle_input(said, now).unwrap();
            }
        }
        now += Duration::from_millis(10);
    }
    assert_eq!(asked, 10);
}

#[test]
fn a_successor_uses_other_numbers() {
    let mut world = World::two_routers();
    world.split = true;
    world.start();
    let mut ids = Vec::new();
    for id in 0..3 {
        world.ask(0x20 + id, TARGET);
        world.run(SECOND);
        let row = &world.snapshot(1).egress[0];
        ids.push(row.cache_id);
        world.process_dies(1);
        world.process_starts(1);
        world.run(SECOND);
    }
    assert_eq!(
        ids[0], 0x101,
        "the first daemon has the numbers of the configuration"
    );
    ids.dedup_by_key(|id| *id >> 8);
    assert_eq!(ids.len(), 3, "{ids:?}");
}

#[test]
fn sigterm_ends_in_good_order_and_sighup_begins_anew() {
    let mut world = on_the_router();
    world.signal(1, Signal::Reload);
    world.run(SECOND);
    world.assert_idle(1);
    let told = |world: &World| {
        world
            .story(1)
            .iter()
            .filter(|n| **n == "mps.started")
            .count()
    };
    assert_eq!(told(&world), 2);
    assert!(world.snapshot(1).up);
    world.signal(1, Signal::Terminate);
    assert!(world.routers[1].process.is_none(), "it has ended");
    assert!(!world.listening.contains(&atm(0x22, 0x52)));
    world.run(SECOND);
    assert!(!world.snapshot(1).up);
    let refused = world.routers[1].mps.as_ref().unwrap().seat_counters();
    assert_eq!((refused.refused, refused.stale), (0, 0));
    world.process_starts(1);
    assert_eq!(told(&world), 3);
}

/// A server whose daemon is elsewhere, and whatever its daemon may say.
struct Alone(Mps);

impl Alone {
    fn new(config: MpsConfig) -> Self {
        let mut alone = Self(Mps::split(config));
        alone.tell(Input::Start);
        alone.tell(Input::Process(ProcessEvent::Came));
        alone
    }
    fn tell(&mut self, input: Input<'_>) -> Vec<Output> {
        self.0.handle_input(input, NOW).unwrap();
        core::iter::from_fn(|| self.0.poll_output()).collect()
    }
    fn said(&mut self, message: FromDaemon<FromMpsd>) -> Vec<Output> {
        self.tell(Input::Process(ProcessEvent::Said(message)))
    }
    fn lie(&mut self, message: FromDaemon<FromMpsd>) {
        let count = |alone: &Self| {
            let counters = alone.0.seat_counters();
            counters.refused + counters.stale
        };
        let before = count(self);
        assert_eq!(self.said(message.clone()), [], "{message:?}");
        assert_eq!(count(self), before + 1, "{message:?}");
    }
    fn offer(&mut self, n: u32, called: AtmAddress) -> Vec<Output> {
        self.tell(Input::Atm(AtmEvent::Incoming {
            conn: ConnId(ConnId::INCOMING + n),
            calling: Some(atm(0x11, 0x50)),
            called,
            sap: Sap::LLC,
            qos: Qos::ubr(MAX_SDU),
            multipoint: false,
        }))
    }
}

fn config() -> MpsConfig {
    World::two_routers().routers[0].config.clone()
}

/// The answers to a daemon's questions bear the daemon's numbers, and those to its predecessor are dropped.
#[test]
fn an_answer_to_a_daemon_that_died_does_not_reach_the_next_daemon() {
    let mut alone = Alone::new(config());
    let question = || {
        FromDaemon::Message(FromMpsd::Router(ToRouter::LookupRoute {
            query: 1,
            dst: TARGET,
        }))
    };
    let number = |asked: &[Output]| match asked {
        [Output::Router(ToRouter::LookupRoute { query, .. })] => *query,
        other => panic!("{other:?}"),
    };
    let answer = |query| {
        Input::Router(FromRouter::Route {
            query,
            result: Some(RouteResult::Local),
            covers: 32,
        })
    };
    let first = number(&alone.said(question()));
    alone.tell(Input::Process(ProcessEvent::Gone));
    alone.tell(Input::Process(ProcessEvent::Came));
    let second = number(&alone.said(question()));
    assert_ne!(first, second);
    assert_eq!(alone.tell(answer(first)), []);
    let told = alone.tell(answer(second));
    assert!(
        matches!(
            told[..],
            [Output::Process(ToDaemon::Message(ToMpsd::Router(
                FromRouter::Route { query: 1, .. }
            )))]
        ),
        "{told:?}"
    );
    assert_eq!(alone.tell(answer(second)), [], "only once");
}

#[test]
fn only_a_split_server_has_a_process() {
    let mut here = Mps::new(config());
    here.handle_input(Input::Start, NOW).unwrap();
    let outputs = |here: &mut Mps| core::iter::from_fn(|| here.poll_output()).count();
    assert_eq!(outputs(&mut here), 5, "two listeners, two TLVs and a trace");
    let said = ProcessEvent::Said(FromDaemon::Ended(crate::split::Ended::Stops));
    for event in [ProcessEvent::Came, ProcessEvent::Gone, said] {
        assert!(here.handle_input(Input::Process(event), NOW).is_err());
        assert_eq!(outputs(&mut here), 0);
        assert!(here.snapshot().up);
    }
}

/// However many interfaces, keys and next hop servers there are.
#[test]
fn the_settings_of_a_server_fit_frames() {
    let mut config = config();
    let some = config.interfaces[0];
    for n in 0..2000_u32 {
        let own = std::net::Ipv4Addr::from_bits(0x0b00_0000 + n);
        config.interfaces.push(Interface {
            itf: 100 + n,
            ip: own,
            ..some
        });
        config.servers.insert(own, atm(0x33, 0x52));
        let mut peer = atm(0x44, 0x52);
        peer.0[1..3].copy_from_slice(&(n as u16).to_be_bytes());
        let secret = vec![7; 64];
        let key = auth::Key {
            spi: 1,
            secret,
            clear_text: false,
        };
        let neighbour = auth::Neighbour { key, signs_as: own };
        config.keys.neighbours.insert(peer, neighbour);
    }
    let mut mps = Mps::split(config.clone());
    let mut process: Process<Mpsd> = Process::default();
    mps.handle_input(Input::Start, NOW).unwrap();
    let came = Input::Process(ProcessEvent::Came);
    mps.handle_input(came, NOW).unwrap();
    while let Some(Output::Process(message)) = mps.poll_output() {
        let frame = Numbered { number: 0, message }.encode();
        assert!(frame.len() <= FRAME_MAX);
        let frame = ProcessInput::Frame(To::decode(&frame).unwrap());
        process.handle_input(frame, NOW).unwrap();
    }
    let server = process.daemon(0).unwrap().server.as_ref().unwrap();
    assert_eq!(server.config, config);
}

/// A report of many rows is the state, on the clock of the data half.
#[test]
fn a_long_report_is_shown_whole_and_its_times_are_those_of_this_clock() {
    let mut random = Random::new(7);
    let mut state = State::idle(&config());
    state.mps.up = true;
    state.mps.ingress = many(&mut random);
    state.mps.egress = many(&mut random);
    state.nhrp.cache = many(&mut random);
    // Samples have times of all centuries; those of a server are near.
    let theirs = Instant::from_secs(5000);
    let ours = Instant::from_secs(100);
    for (n, row) in (0..).zip(&mut state.mps.ingress) {
        row.until = Some(theirs + SECOND * n);
    }
    let mut reports = Reports::default();
    let all = parts(state.clone(), theirs);
    assert!(all.len() > 10, "{}", all.len());
    for part in all {
        let message = FromDaemon::Message(FromMpsd::Shown(part));
        let frame = Numbered { number: 0, message }.encode();
        assert!(frame.len() <= FRAME_MAX);
        let FromDaemon::Message(FromMpsd::Shown(part)) = From::decode(&frame).unwrap().message
        else {
            panic!("another message")
        };
        assert!(reports.take(part, &config(), ours));
    }
    let shown = reports.last.unwrap();
    assert_eq!(shown.mps.egress.len(), state.mps.egress.len());
    assert_eq!(shown.nhrp.cache.len(), state.nhrp.cache.len());
    for (n, row) in (0..).zip(&shown.mps.ingress) {
        assert_eq!(row.until, Some(ours + SECOND * n));
    }
}

fn many<T: crate::split::codec::Field>(random: &mut Random) -> Vec<T> {
    (0..2000).map(|_| sample(random)).collect()
}

#[derive(Clone, Debug)]
enum Step {
    /// A message of the daemon, as it may be, or a forged one.
    From(u64),
    /// A message to the daemon.
    To(u64),
    Wait(u16),
    Dies,
    Starts,
    Signal(bool),
    Offer(u8, bool),
    Connected(u8),
    Received(u8, Vec<u8>),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => any::<u64>().prop_map(Step::From),
        6 => any::<u64>().prop_map(Step::To),
        2 => any::<u16>().prop_map(Step::Wait),
        1 => Just(Step::Dies),
        1 => Just(Step::Starts),
        1 => any::<bool>().prop_map(Step::Signal),
        2 => (any::<u8>(), any::<bool>()).prop_map(|(n, data)| Step::Offer(n % 8, data)),
        2 => any::<u8>().prop_map(|n| Step::Connected(n % 8)),
        3 => (any::<u8>(), prop::collection::vec(any::<u8>(), 0..80))
            .prop_map(|(n, sdu)| Step::Received(n % 8, sdu)),
    ]
}

/// A message that a daemon that has been taken over may send: the times of a sample are of no use here.
fn forged(seed: u64) -> FromDaemon<FromMpsd> {
    sample(&mut Random::new(seed))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Whatever the two halves hear: they do not panic, what they have stays within its bounds, and a stopped server
    /// has nothing left.
    #[test]
    fn random_messages_do_no_harm(steps in prop::collection::vec(step(), 1..60)) {
        let mut world = World::two_routers();
        world.split = true;
        world.start();
        let conn = |n: u8| ConnId(ConnId::INCOMING + 1000 + u32::from(n));
        for step in steps {
            let there = world.routers[0].process.is_some();
            match step {
                Step::From(seed) if there => {
                    // Frames of a process that has not ended.
                    match forged(seed) {
                        FromDaemon::Ended(_) | FromDaemon::Atm(_) => {}
                        message => world.input(0, Input::Process(ProcessEvent::Said(message))),
                    }
                }
                Step::From(seed) => {
                    world.input(0, Input::Process(ProcessEvent::Said(forged(seed))));
                }
                Step::To(seed) => world.tell_process(0, sample(&mut Random::new(seed))),
                Step::Wait(ms) => world.run(Duration::from_millis(ms.into())),
                Step::Dies => world.process_dies(0),
                Step::Starts if there => {}
                Step::Starts => world.process_starts(0),
                Step::Signal(reload) if there => {
                    world.signal(0, if reload { Signal::Reload } else { Signal::Terminate });
                }
                Step::Signal(_) => {}
                Step::Offer(n, data) => world.input(0, Input::Atm(AtmEvent::Incoming {
                    conn: conn(n),
                    calling: Some(atm(0x11, 0x50)),
                    called: atm(0x21, if data { 0x53 } else { 0x52 }),
                    sap: Sap::LLC,
                    qos: Qos::ubr(MAX_SDU),
                    multipoint: false,
                })),
                Step::Connected(n) => {
                    let (conn, vc) = (conn(n), Vc::new(0, 40));
                    world.input(0, Input::Atm(AtmEvent::Connected { conn, vc, qos: Qos::ubr(0) }));
                }
                Step::Received(n, sdu) => {
                    let (conn, sdu) = (conn(n), &sdu);
                    world.input(0, Input::Atm(AtmEvent::Received { conn, sdu }));
                }
            }
            let limits = Limits::default();
            prop_assert!(world.snapshot(0).connections.len() <= limits.connections);
        }
        world.process_dies(0);
        world.input(0, Input::Stop);
        world.run(SECOND * 200);
        world.assert_idle(0);
        let mps = world.routers[0].mps.as_ref().unwrap();
        prop_assert_eq!(mps.poll_timeout(), None);
        prop_assert!(!world.listening.contains(&atm(0x21, 0x52)));
    }

    /// Servers whose daemons die at random times, on a network that loses packets: when the deaths end, a client gets
    /// its shortcut, and nothing is left at the end.
    #[test]
    fn daemons_that_die_at_random_times_only_delay(
        deaths in prop::collection::vec((0..2_usize, 0..8000_u64, 0..500_u64), 1..12),
        loss in 0..30_u64,
    ) {
        let mut world = World::two_routers();
        world.split = true;
        world.loss = loss;
        world.start();
        for (id, (router, after, away)) in (0x100..).zip(deaths) {
            world.ask(id, TARGET);
            world.run(Duration::from_millis(after));
            world.process_dies(router);
            world.run(Duration::from_millis(away));
            world.process_starts(router);
        }
        world.loss = 0;
        // Clients notice the death of a server by its Keep-Alives, and requests of before have ended.
        world.run(SECOND * 60);
        world.ask(0x999, TARGET);
        world.run(SECOND * 6);
        let reply = world.mpcs[0].last(mop::RESOLUTION_REPLY);
        let common = reply.common().unwrap();
        prop_assert_eq!((common.request_id, common.cies[0].code), (0x999, 0));
        for router in 0..2 {
            world.input(router, Input::Stop);
        }
        world.run(SECOND);
        for router in 0..2 {
            world.assert_idle(router);
        }
    }
}

#[test]
fn a_process_sends_long_reports_in_bursts_and_none_without_a_change() {
    let mut world = World::two_routers();
    world.split = true;
    world.start();
    for n in 0..200 {
        world.ask(n, ip(2, n as u8));
    }
    world.run(Duration::from_millis(150));
    let process = world.routers[0].process.as_mut().unwrap();
    let mut shown = 0;
    let mut at = world.now;
    let end = at + Duration::from_secs(2);
    while let Some(next) = process.poll_timeout().filter(|next| *next <= end) {
        at = next.max(at);
        process.handle_timeout(at);
        let said = core::iter::from_fn(|| process.poll_output());
        let burst = said.filter(|output| {
            matches!(
                output,
                ProcessOutput::Frame(Numbered {
                    message: FromDaemon::Message(FromMpsd::Shown(_)),
                    ..
                })
            )
        });
        let burst = burst.count();
        assert!(burst <= 4, "{burst}");
        shown += burst;
    }
    assert!(shown > 4, "{shown}");
}
