//! Unicast frames and flush requests that the BUS sends only to the destination's owner.

use super::*;
use aerostat_proto::lane::lec::LecState;
use aerostat_wire::Sap;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Clients 0 to 2 register all their addresses; client 3 is a proxy, with two stations behind it.
const CLIENTS: u8 = 4;
const PROXY: usize = LEC0 + 3;
const STATIONS: [u8; 2] = [0x51, 0x52];

fn proxied(n: u8) -> LecConfig {
    LecConfig {
        proxy: LEC0 + usize::from(n) == PROXY,
        ..lec_config(n)
    }
}

fn mixed() -> World<Node> {
    let mut w = world((0..CLIENTS).map(proxied).collect());
    for who in LEC0..=PROXY {
        start(&mut w, who);
    }
    w.run_for(Duration::from_secs(1));
    tell(
        &mut w,
        PROXY,
        lec::Input::SetRemote(STATIONS.map(mac).to_vec()),
    );
    w.run_for(Duration::from_secs(1));
    w.take_notes();
    w
}

/// Numbers in the order in which they were delivered, by receiver, and destination and source.
type Arrivals = BTreeMap<(usize, [u8; 12]), Vec<u32>>;

fn arrivals(w: &mut World<Node>) -> Arrivals {
    let mut all = Arrivals::new();
    for (_, who, note) in w.take_notes() {
        if let Note::Lec(lec::Output::Deliver(frame)) = note {
            let pair = frame[..12].try_into().unwrap();
            let number = u32::from_be_bytes(frame[14..18].try_into().unwrap());
            all.entry((who, pair)).or_default().push(number);
        }
    }
    all
}

/// Frames that reached a client which they did not concern.
fn strays(w: &World<Node>) -> u64 {
    let clients = (LEC0..LEC0 + usize::from(CLIENTS)).map(|who| lec_of(w, who).snapshot().data);
    clients.map(|data| data.not_for_us + data.echoes).sum()
}

fn send(w: &mut World<Node>, from: usize, to: MacAddr, number: u32) {
    tell(w, from, lec::Input::Transmit(frame(from, to, number)));
}

/// Multicast forward takes up to 20 ms longer than multicast send, so the order of frames shows their path.
#[test]
fn no_frame_overtakes_another_on_either_way() {
    for multipoint_delay in [0, 2, 20] {
        let mut w = mixed();
        w.net.multipoint_delay = Duration::from_millis(multipoint_delay);
        let destinations = [mac(2), mac(3), mac(4), mac(0x51), mac(0x52)];
        for number in 0..200 {
            for to in destinations {
                send(&mut w, LEC0, to, number);
            }
            w.run_for(Duration::from_micros(300));
        }
        w.run_for(Duration::from_secs(6));
        let arrived = arrivals(&mut w);
        assert!(arrived.len() >= destinations.len());
        for (way, numbers) in arrived {
            assert!(
                numbers.is_sorted(),
                "{way:?}, {multipoint_delay} ms: {numbers:?}"
            );
        }
        let bus = bus_of(&w).snapshot().counters;
        assert!(
            bus.directed > 0 && bus.directed < bus.unicast + bus.flushes,
            "{bus:?}"
        );
        finish(w);
    }
}

#[test]
fn who_is_not_concerned_hears_nothing_and_a_proxys_stations_are_found() {
    let mut w = mixed();
    for who in [1, 2] {
        send(&mut w, LEC0, mac(who + 1), who.into());
    }
    w.run_for(Duration::from_secs(1));
    assert_eq!(strays(&w), 0);
    let arrived: Vec<_> = arrivals(&mut w).into_keys().map(|(who, _)| who).collect();
    assert_eq!(arrived, [LEC0 + 1, LEC0 + 2]);
    let before = bus_of(&w).snapshot().counters;
    assert_eq!(
        (before.unicast, before.directed),
        (2, before.unicast + before.flushes)
    );
    for station in STATIONS {
        send(&mut w, LEC0, mac(station), 7);
    }
    w.run_for(Duration::from_secs(1));
    assert_eq!(arrivals(&mut w).values().flatten().count(), 2);
    let after = bus_of(&w).snapshot().counters;
    assert_eq!((after.unicast, after.directed), (4, before.directed));
    assert!(strays(&w) > 0, "the others drop what is for a proxy");
    finish(w);
}

/// The address comes back at another ATM address: after a regular end, and after a crash.
#[test]
fn a_station_that_moves_to_another_client_is_found_again() {
    for crash in [false, true] {
        let mut w = mixed();
        send(&mut w, LEC0, mac(2), 1);
        w.run_for(Duration::from_secs(1));
        assert_eq!(arrivals(&mut w).len(), 1);
        if crash {
            w.replace(LEC0 + 1, Node::Lec(Box::new(Lec::new(lec_config(1)))));
        } else {
            stop(&mut w, LEC0 + 1);
        }
        w.run_for(Duration::from_secs(1));
        let moved = LecConfig {
            seed: 77,
            ..LecConfig::new(elan(), address(0x66), mac(2))
        };
        let there = w.add(Node::Lec(Box::new(Lec::new(moved))));
        start(&mut w, there);
        w.run_for(Duration::from_secs(1));
        assert_eq!(lec_of(&w, there).state(), LecState::Operational);
        let directed = bus_of(&w).snapshot().counters.directed;
        for number in 2..5 {
            send(&mut w, LEC0 + 2, mac(2), number);
            w.run_for(Duration::from_millis(1));
        }
        w.run_for(Duration::from_secs(1));
        let arrived = arrivals(&mut w);
        let (way, numbers) = arrived.first_key_value().expect("it is found");
        assert_eq!((way.0, numbers.as_slice()), (there, &[2, 3, 4][..]));
        assert!(bus_of(&w).snapshot().counters.directed > directed);
        // The client that knew its old ATM address finds it, too.
        for number in 5..40 {
            send(&mut w, LEC0, mac(2), number);
            w.run_for(Duration::from_secs(10));
        }
        let arrived = arrivals(&mut w);
        let numbers = arrived.first_key_value().expect("it is found").1;
        assert_eq!(numbers.last(), Some(&39), "{numbers:?}");
        finish(w);
    }
}

/// A client that registers one more address, and unregisters it.
#[test]
fn registrations_after_the_join_change_the_way() {
    let mut w = mixed();
    let told = |w: &mut World<Node>| -> Vec<_> {
        let notes = w.take_notes().into_iter();
        let told = notes.filter_map(|(_, _, note)| match note {
            Note::Member(_, member) => Some(member.and_then(|member| member.macs)),
            _ => None,
        });
        told.collect()
    };
    let more = LecConfig {
        more_macs: vec![mac(0x61), mac(0x62)],
        ..lec_config(5)
    };
    let late = w.add(Node::Lec(Box::new(Lec::new(more))));
    start(&mut w, late);
    w.run_for(Duration::from_secs(1));
    let own = [mac(6), mac(0x61), mac(0x62)];
    let grown: Vec<_> = (1..=3).map(|n| Some(own[..n].to_vec())).collect();
    assert_eq!(told(&mut w), grown);
    let before = bus_of(&w).snapshot().counters;
    for to in own {
        send(&mut w, LEC0, to, 1);
    }
    w.run_for(Duration::from_secs(1));
    assert_eq!(arrivals(&mut w).len(), 3);
    let after = bus_of(&w).snapshot().counters;
    let new = after.unicast + after.flushes - before.unicast - before.flushes;
    assert_eq!(after.directed - before.directed, new);
    finish(w);
}

// ---- the same frames arrive as without ----

#[derive(Clone, Copy, Debug)]
enum Step {
    Send(usize, u8),
    Stop(usize),
    Start(usize),
    Crash(usize),
    BreakBus(usize),
    RestartBus,
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let client = || LEC0..LEC0 + usize::from(CLIENTS);
    let to = prop_oneof![1..=CLIENTS + 1, Just(0x51), Just(0x52), Just(0xff)];
    prop_oneof![
        12 => (client(), to).prop_map(|(from, to)| Step::Send(from, to)),
        1 => client().prop_map(Step::Stop),
        1 => client().prop_map(Step::Start),
        1 => client().prop_map(Step::Crash),
        1 => client().prop_map(Step::BreakBus),
        1 => Just(Step::RestartBus),
        4 => (1_u64..40).prop_map(Step::Wait),
        1 => (500_u64..6000).prop_map(Step::Wait),
    ]
}

/// The same LES, whose BUS is not told the registered addresses.
fn relay_without(who: usize, note: &Note, users: &mut [Node], now: Instant) -> Option<usize> {
    let Note::Member(address, member) = note else {
        return None;
    };
    let member = member.clone().map(|member| Member {
        macs: None,
        ..member
    });
    relay(who, &Note::Member(*address, member), users, now)
}

#[test]
fn a_second_answer_to_a_flush_that_was_repeated_is_no_fault() {
    // The peer receives both requests: the way by the BUS takes longer than C20, and less than C21.
    let mut w = world((0..2).map(lec_config).collect());
    w.relay = Some(relay_without);
    for who in [LEC0, LEC0 + 1] {
        start(&mut w, who);
    }
    w.run_for(Duration::from_secs(1));
    w.net.multipoint_delay = Duration::from_millis(1500);
    for number in 0..5 {
        send(&mut w, LEC0, mac(2), number);
    }
    w.run_for(Duration::from_secs(10));
    assert!(bus_of(&w).snapshot().counters.flushes >= 2);
    let control = lec_of(&w, LEC0).snapshot().control;
    assert_eq!((control.unasked, control.bad), (0, 0), "{control:?}");
}

/// The delivered frames, and how many frames reached a client which they did not concern.
fn play(steps: &[Step], owners: bool, loss: u32) -> (Arrivals, u64) {
    let mut w = world((0..CLIENTS).map(proxied).collect());
    if !owners {
        w.relay = Some(relay_without);
    }
    for who in LEC0..=PROXY {
        start(&mut w, who);
    }
    w.run_for(Duration::from_secs(1));
    tell(
        &mut w,
        PROXY,
        lec::Input::SetRemote(STATIONS.map(mac).to_vec()),
    );
    w.run_for(Duration::from_secs(1));
    w.take_notes();
    // Which frame is lost depends on its octets alone, so the same ones are lost both times.
    w.net.loss = Some(Box::new(move |sdu| {
        let sum = sdu.iter().fold(5381_u32, |sum, octet| {
            sum.wrapping_mul(33) ^ u32::from(*octet)
        });
        sum % 100 < loss
    }));
    for (number, step) in steps.iter().enumerate() {
        match *step {
            Step::Send(from, 0xff) => send(&mut w, from, MacAddr::BROADCAST, number as u32),
            Step::Send(from, to) => send(&mut w, from, mac(to), number as u32),
            Step::Stop(who) => stop(&mut w, who),
            Step::Start(who) => start(&mut w, who),
            Step::Crash(who) => {
                let config = proxied((who - LEC0) as u8);
                w.replace(who, Node::Lec(Box::new(Lec::new(config))));
                start(&mut w, who);
            }
            Step::BreakBus(who) => {
                let now = w.now;
                w.net.break_calls(who, Sap::LANE_MULTICAST_ETHERNET, now);
            }
            Step::RestartBus => {
                w.replace(BUS, new_bus());
                start(&mut w, BUS);
            }
            Step::Wait(ms) => w.run_for(Duration::from_millis(ms)),
        }
    }
    w.run_for(Duration::from_secs(20));
    let strays = strays(&w);
    let mut arrived = arrivals(&mut w);
    // A proxy delivers all frames that it receives; frames for registered addresses of others are not for it.
    let others = |to: &[u8]| (1..CLIENTS).any(|n| mac(n).0 == to);
    arrived.retain(|(who, pair), _| *who != PROXY || !others(&pair[..6]));
    (arrived, strays)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Over joins, leaves, crashes and losses, each client delivers the same frames in the same order whether its BUS
    /// knows the owners or not. If the BUS knows them, no client receives more frames that do not concern it. There is
    /// one exception: if multicast forward breaks, or a new BUS has not opened it yet, frames to all are lost, and more
    /// frames may arrive on the other path.
    #[test]
    fn the_same_frames_arrive_as_if_all_went_to_all(
        steps in proptest::collection::vec(step(), 1..120),
        loss in prop_oneof![Just(0_u32), 1_u32..20],
    ) {
        let (with, few) = play(&steps, true, loss);
        let (without, many) = play(&steps, false, loss);
        let breaks = |step: &Step| matches!(step, Step::BreakBus(_) | Step::RestartBus);
        let breaks = steps.iter().any(breaks);
        for (way, numbers) in &without {
            let found = with.get(way).map_or(&[][..], Vec::as_slice);
            let mut rest = found.iter();
            let all = numbers.iter().all(|number| rest.any(|other| other == number));
            prop_assert!(all, "{:?}: {:?}, not {:?}", way, found, numbers);
        }
        prop_assert!(breaks || with == without, "{:?}, not {:?}", with, without);
        prop_assert!(few <= many, "{} > {}", few, many);
    }
}
