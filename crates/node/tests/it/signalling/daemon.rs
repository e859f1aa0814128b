//! The daemon half in a process of its own: whenever it dies, nothing is left of it, and the next one serves.

mod lies;

use aerostat_node::inspect::Value;
use aerostat_node::signalling::{
    Config, DaemonCounters, Heard, Input, Limits, Output, Phase, Sigd, Signalling, UserId,
};
use aerostat_proto::machine::settle;
use aerostat_proto::sigd::{FromSigd, Offer, SDU_MAX, SIGNALLING, ToSigd};
use aerostat_proto::split::{Daemon as _, Ended, FromDaemon, ProcessEvent, Signal, ToDaemon};
use aerostat_proto::sscop::Mode;
use aerostat_proto::uni::{CallId, Version};
use aerostat_proto::{AtmEvent, AtmRequest, Cause, ConnId, Duration, Instant, Machine, PartyId};
use aerostat_testing::switch::{Net, USER};
use aerostat_wire::q2931::UserData;
use aerostat_wire::{AtmAddress, Blli, Qos, Sap, Vc};
use proptest::prelude::*;

const PVC: Vc = Vc { vpi: 0, vci: 500 };

fn open_permanent(net: &mut Net, host: usize, conn: u32) {
    let request = AtmRequest::OpenPermanent {
        conn: ConnId(conn),
        vc: PVC,
        qos: Qos::ubr(1536),
    };
    net.ask(host, request).unwrap();
}

fn two() -> Net {
    let mut net = Net::chain_split(2, &[0, 1]);
    net.listen(0);
    net.listen(1);
    net
}

/// A call to an address without a listener in the nets of these tests.
fn offer(call: u32) -> Box<Offer> {
    Box::new(Offer {
        call: CallId(call),
        calling: None,
        called: AtmAddress::LECS,
        bllis: vec![Blli::LLC],
        bhli: None,
        qos: Qos::ubr(1536),
        multipoint: false,
        aal: Default::default(),
        vc: None,
        data: UserData::default(),
    })
}

/// Counters of host `host` about its daemon.
fn counted(net: &Net, host: usize) -> DaemonCounters {
    net.hosts[host].signalling.daemon_counters()
}

/// The basic function of a host: a call with data in both directions, and no state left after it.
fn works(net: &mut Net, conn: u32) {
    for (from, to, conn) in [(0, 1, ConnId(conn)), (1, 0, ConnId(conn + 1))] {
        net.call(from, to, conn.0);
        net.run_s(2);
        assert!(
            net.hosts[from].connected(conn),
            "{:?}",
            net.hosts[from].events
        );
        let got = net.hosts[to].data.len();
        net.send(from, conn, b"data").unwrap();
        net.run_ms(10);
        assert_eq!(net.hosts[to].data.len(), got + 1);
        net.release(from, conn);
        net.run_s(1);
    }
}

#[test]
fn calls_and_data_go_as_without() {
    for version in [Version::Uni30, Version::Uni31, Version::Uni40] {
        let mut net = Net::chain_split_of(version, 2, &[0, 1, 1]);
        for host in 0..3 {
            net.listen(host);
            assert!(net.hosts[host].signalling.is_up());
            assert_eq!(net.hosts[host].events, [AtmEvent::Up]);
        }
        works(&mut net, 1);
        net.call_with(0, 1, 10, Qos::ubr_multipoint(1536), true);
        net.run_s(1);
        net.add_party(0, 10, 7, 2);
        net.run_s(1);
        let added = AtmEvent::PartyAdded {
            conn: ConnId(10),
            party: PartyId(7),
        };
        assert!(net.hosts[0].events.contains(&added));
        net.send(0, ConnId(10), b"to both").unwrap();
        net.run_s(1);
        assert_eq!(net.hosts[2].data.len(), 1);
        for party in [0, 7] {
            let request = AtmRequest::DropParty {
                conn: ConnId(10),
                party: PartyId(party),
            };
            net.ask(0, request).unwrap();
        }
        net.run_s(1);
        assert!(net.hosts[0].released(ConnId(10)).is_some());
        net.assert_clean();
        let nothing = DaemonCounters {
            started: 1,
            ..DaemonCounters::default()
        };
        assert_eq!(counted(&net, 0), nothing);
    }
}

#[test]
fn a_death_in_each_state_of_a_call_leaves_nothing() {
    // A call takes some milliseconds: the daemon dies at each 120 microseconds of it, at either end.
    for victim in 0..2 {
        for step in 0..30 {
            let mut net = two();
            net.call(0, 1, 1);
            net.call_with(1, 0, 1, Qos::ubr_multipoint(1536), true);
            let until = net.now + Duration::from_micros(120 * step);
            net.run_to(until);
            net.kill_daemon(victim);
            let own = net.hosts[victim].released(ConnId(1));
            assert_eq!(own, Some(Cause::TEMPORARY), "at once, at step {step}");
            assert_eq!(net.hosts[victim].signalling.calls().count(), 0);
            assert!(net.hosts[victim].open.is_empty());
            assert!(!net.hosts[victim].signalling.is_up());
            // The switch tells the other end, at the latest when the next daemon restarts the link.
            net.run_ms(100);
            net.start_daemon(victim);
            net.run_s(1);
            assert!(net.hosts[victim].signalling.is_up());
            assert_eq!(
                net.hosts[1 - victim].signalling.calls().count(),
                0,
                "step {step}"
            );
            net.assert_clean();
            works(&mut net, 2);
            net.assert_clean();
        }
    }
}

#[test]
fn without_a_daemon_calls_are_refused_at_once_and_permanent_connections_go_on() {
    let mut net = two();
    open_permanent(&mut net, 0, 100);
    net.call(0, 1, 1);
    net.run_s(1);
    let events = net.hosts[0].events.len();
    net.kill_daemon(0);
    assert_eq!(net.hosts[0].events[events], AtmEvent::Down);
    assert_eq!(net.hosts[0].open.iter().collect::<Vec<_>>(), [&PVC]);
    net.send(0, ConnId(100), b"goes on").unwrap();
    assert!(net.send(0, ConnId(1), b"nowhere").is_err());
    // A new call does not wait; a new listener and a new permanent connection need no daemon.
    let request = AtmRequest::Connect {
        conn: ConnId(1),
        calling: net.address(0),
        called: net.address(1),
        sap: Sap::LLC,
        qos: Qos::ubr(1536),
        multipoint: false,
    };
    let refused = net.ask(0, request).unwrap_err();
    assert_eq!(refused.to_string(), "the signalling daemon does not run");
    assert_eq!(net.hosts[0].released(ConnId(1)), Some(Cause::TEMPORARY));
    net.listen_for(0, Sap::IP);
    // The switch abandons the link by itself.
    net.run_s(60);
    assert_eq!(net.switches[0].calls().count(), 0);
    assert_eq!(
        net.hosts[1].signalling.calls().count(),
        0,
        "its end is told"
    );
    assert!(counted(&net, 0).unread > 0);
    net.start_daemon(0);
    net.run_s(3);
    works(&mut net, 2);
    assert_eq!(
        net.hosts[0].signalling.calls().count(),
        1,
        "the permanent one"
    );
    let conn = ConnId(100);
    let cause = Cause::NORMAL;
    net.ask(0, AtmRequest::Release { conn, cause }).unwrap();
    net.assert_clean();
}

#[test]
fn before_the_first_daemon_calls_wait() {
    let mut manager = Signalling::split(Config::new(Version::Uni31));
    let at = Instant::from_secs(1);
    manager.handle_input(Input::AddUser(USER), at).unwrap();
    let connect = AtmRequest::Connect {
        conn: ConnId(1),
        calling: AtmAddress::ZERO,
        called: AtmAddress::LECS,
        sap: Sap::LLC,
        qos: Qos::ubr(1536),
        multipoint: false,
    };
    let ask =
        |manager: &mut Signalling| manager.handle_input(Input::request(USER, connect.clone()), at);
    ask(&mut manager).unwrap();
    assert_eq!(settle(&mut manager, at), []);
    let end = Instant::from_secs(9);
    assert_eq!(manager.poll_timeout(), Some(end));
    let released = AtmEvent::Released {
        conn: ConnId(1),
        cause: Cause::NETWORK_OUT_OF_ORDER,
    };
    assert_eq!(
        settle(&mut manager, end),
        [Output::Event(USER, released, Heard::default())]
    );
    // A daemon whose link comes up in time gets the call.
    ask(&mut manager).unwrap();
    let said = |manager: &mut Signalling, event| {
        manager.handle_input(Input::Daemon(event), at).unwrap();
        settle(manager, at)
    };
    let message = |message| ProcessEvent::Said(FromDaemon::Message(message));
    assert!(matches!(
        said(&mut manager, ProcessEvent::Came)[..],
        [Output::Daemon(ToDaemon::Message(ToSigd::Start(_)))]
    ));
    assert_eq!(said(&mut manager, message(FromSigd::Begun { life: 1 })), []);
    assert!(matches!(
        said(&mut manager, message(FromSigd::Link { up: true }))[..],
        [
            Output::Event(USER, AtmEvent::Up, _),
            Output::Daemon(ToDaemon::Message(ToSigd::Setup(_)))
        ]
    ));
}

#[test]
fn data_of_a_caller_that_is_quicker_than_the_called_sides_daemon_arrive() {
    let mut net = two();
    net.slow = Some(1);
    net.call(0, 1, 1);
    while !net.hosts[0].connected(ConnId(1)) {
        net.run_ms(1);
    }
    for n in 0..70 {
        net.send(0, ConnId(1), &[n]).unwrap();
    }
    net.run_ms(2);
    let conn = net.hosts[1].offered().expect("the call");
    // The called side has not heard yet that the call is connected, and may not send.
    assert!(!net.hosts[1].connected(conn) && net.hosts[1].data.is_empty());
    assert!(net.send(1, conn, b"back").is_err());
    net.run_s(1);
    assert!(net.hosts[1].connected(conn));
    let held: Vec<(ConnId, Vec<u8>)> = (0..64).map(|n| (conn, vec![n])).collect();
    assert_eq!(net.hosts[1].data, held);
    net.send(1, conn, b"back").unwrap();
    net.run_ms(10);
    assert_eq!(net.hosts[0].data, [(ConnId(1), b"back".to_vec())]);
    net.release(0, ConnId(1));
    net.run_s(1);
    net.assert_clean();
}

#[test]
fn data_that_wait_for_a_daemon_are_seen_and_are_reported_when_their_call_ends_before_it_is_up() {
    let mut net = two();
    net.slow = Some(1);
    net.call(0, 1, 1);
    while !net.hosts[0].connected(ConnId(1)) {
        net.run_ms(1);
    }
    for n in 0..5 {
        net.send(0, ConnId(1), &[n]).unwrap();
    }
    net.run_ms(2);
    let waiting: Vec<_> = (0..5).map(|n| vec![n]).collect();
    let early = net.hosts[1].signalling.early();
    assert_eq!(
        early.map(|sdu| sdu.octets.clone()).collect::<Vec<_>>(),
        waiting
    );
    net.kill_daemon(1);
    net.run_s(1);
    assert_eq!(net.hosts[1].unheard, waiting);
    assert!(net.hosts[1].data.is_empty());
    assert_eq!(net.hosts[1].signalling.early().count(), 0);
}

#[test]
fn one_that_is_asked_to_end_releases_everything_and_one_that_reloads_begins_anew() {
    let mut net = two();
    net.call(0, 1, 1);
    net.run_s(1);
    net.signal(0, Signal::Terminate);
    net.run_ms(20);
    // This did not need a restart.
    assert!(net.hosts[0].daemon.is_none(), "it has exited");
    assert_eq!(net.hosts[0].released(ConnId(1)), Some(Cause::TEMPORARY));
    // The answers to its releases are no surprise.
    let ended = counted(&net, 0);
    assert_eq!((ended.ended, ended.lost_calls), (1, 1));
    assert_eq!((ended.stale, ended.refused), (0, 0));
    assert_eq!(net.hosts[1].signalling.calls().count(), 0);
    net.assert_clean();
    net.start_daemon(0);
    net.run_s(1);
    works(&mut net, 2);

    net.call(0, 1, 1);
    net.run_s(1);
    let came = counted(&net, 0).started;
    net.signal(0, Signal::Reload);
    net.run_s(1);
    assert_eq!(counted(&net, 0).started, came + 1);
    net.assert_clean();
    works(&mut net, 4);
}

/// The answers to the releases of a regular end come after its announcement, and are no surprise.
#[test]
fn answers_to_a_farewell_are_not_stale() {
    let mut net = two();
    net.call(0, 1, 0);
    net.run_s(1);
    net.lie(0, FromSigd::Ending);
    let (call, cause) = (CallId(0), Cause::NORMAL);
    net.lie(
        0,
        FromSigd::Released {
            call,
            cause,
            data: UserData::default(),
        },
    );
    net.lie(0, FromSigd::Link { up: false });
    assert_eq!(counted(&net, 0).stale, 0);
    // Nothing else is expected of a daemon that ends.
    net.lie(0, FromSigd::Offered(offer(CallId::INCOMING)));
    assert_eq!(counted(&net, 0).stale, 1);
}

/// A SETUP that crosses the daemon's farewell: its caller is told at once, and does not wait for timers.
#[test]
fn a_call_for_a_daemon_that_ends_is_refused_at_once() {
    let mut net = two();
    net.call(0, 1, 1);
    net.run_s(1);
    // Host 1's daemon hears of the call after 5 ms and the network after 10 ms; host 0's daemon reads the SETUP after
    // 15 ms, and the answer to its own RELEASE after 23 ms.
    net.crossing = Duration::from_millis(5);
    net.call(1, 0, 1);
    net.run_ms(13);
    net.signal(0, Signal::Terminate);
    net.run_ms(7);
    assert!(net.hosts[0].daemon.is_some(), "it waits for the answer");
    net.run_ms(30);
    assert_eq!(net.hosts[1].released(ConnId(1)), Some(Cause::TEMPORARY));
    assert!(net.hosts[0].daemon.is_none(), "and for nothing else");
    assert_eq!(net.hosts[0].offered(), None);
    assert_eq!(counted(&net, 0).stale, 0);
    net.crossing = Duration::ZERO;
    net.assert_clean();
}

/// Its host could take the daemon for its successor otherwise.
#[test]
fn one_that_ends_cannot_be_started_again() {
    let mut manager = Signalling::split(Config::new(Version::Uni31));
    let now = Instant::ZERO;
    let came = Input::Daemon(ProcessEvent::Came);
    manager.handle_input(came, now).unwrap();
    let said = settle(&mut manager, now);
    let [Output::Daemon(ToDaemon::Message(start))] = &said[..] else {
        panic!("{said:?}");
    };
    let mut daemon = Sigd::default();
    daemon.signal(Signal::Terminate, now);
    daemon.message(start.clone(), now);
    assert!(daemon.interface().is_none());
    let said: Vec<_> = core::iter::from_fn(|| daemon.poll_output()).collect();
    let end = FromDaemon::Message(FromSigd::Ending);
    assert_eq!(said, [end, FromDaemon::Ended(Ended::Exits)]);
}

/// The live driver finds a daemon that hangs, and kills it; this test is about the time until then.
#[test]
fn one_that_hangs_keeps_its_calls_and_serves_again_when_it_wakes() {
    let mut net = two();
    open_permanent(&mut net, 0, 100);
    net.call(0, 1, 1);
    net.run_s(1);
    net.hosts[0].hangs = true;
    net.run_s(2);
    assert!(net.hosts[0].connected(ConnId(1)));
    assert_eq!(net.hosts[0].released(ConnId(1)), None);
    net.wake(0);
    net.run_s(5);
    assert_eq!(counted(&net, 0).started, 1);
    assert_eq!(counted(&net, 0).refused, 0);
    net.release(0, ConnId(1));
    net.run_s(1);
    works(&mut net, 2);
    assert_eq!(
        net.hosts[0].signalling.calls().count(),
        1,
        "the permanent one"
    );
}

/// Ids that a user releases and uses again while the answers about the former calls are under way.
#[test]
fn answers_about_the_former_are_not_taken_for_the_new() {
    let mut net = two();
    net.crossing = Duration::from_millis(5);
    // A frame takes 5 ms, and a call eight frames: request, SETUP, offer, acceptance, CONNECT, event.
    for wait in 0..40 {
        net.call(0, 1, 1);
        net.run_ms(wait);
        net.release(0, ConnId(1));
    }
    let connected = |net: &Net| {
        let events = net.hosts[0].events.iter();
        events
            .filter(|event| matches!(event, AtmEvent::Connected { .. }))
            .count()
    };
    assert_eq!(connected(&net), 0);
    net.call(0, 1, 1);
    net.run_s(1);
    assert_eq!(connected(&net), 1);
    // A user that leaves and comes back is another user: a call that was offered to the former is not offered to it.
    net.tell(1, Input::DropUser(USER)).unwrap();
    net.tell(1, Input::AddUser(USER)).unwrap();
    net.listen(1);
    net.run_s(1);
    assert_eq!(net.hosts[0].signalling.calls().count(), 0);
    assert!(counted(&net, 0).stale > 0);
    net.assert_clean();
    works(&mut net, 2);
}

#[test]
fn a_daemon_gets_the_parameters_of_its_host_and_the_version_of_its_link() {
    let mut config = Config::new(Version::Uni40);
    config.interface.uni.timers.t303 = Duration::from_secs(60);
    config.interface.sscop.timer_poll = Duration::from_secs(2);
    config.interface.uni.limits.calls = 7;
    let mut manager = Signalling::split(config);
    let now = Instant::ZERO;
    for input in [
        Input::Version(Version::Uni30),
        Input::Daemon(ProcessEvent::Came),
    ] {
        manager.handle_input(input, now).unwrap();
    }
    let said = settle(&mut manager, now);
    let [Output::Daemon(ToDaemon::Message(ToSigd::Start(start)))] = &said[..] else {
        panic!("{said:?}");
    };
    let (mut uni, mut sscop) = (config.interface.uni, config.interface.sscop);
    (uni.version, sscop.mode) = (Version::Uni30, Mode::Qsaal1);
    assert_eq!((start.uni, start.sscop), (uni, sscop));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Whatever users do, whatever is lost, and whenever the daemons die: once all daemons have come back and all calls
    /// are released, no state is left, and a new call succeeds.
    #[test]
    fn deaths_at_any_time(
        losses in prop::collection::vec(0_u8..100, 97),
        rate in 0_u8..20,
        steps in prop::collection::vec((0_u8..9, 0_u64..900), 1..30),
        crossing in 0_u64..3000,
    ) {
        let mut net = Net::chain_split(2, &[0, 1, 1]);
        net.crossing = Duration::from_micros(crossing);
        for host in 0..3 {
            net.listen(host);
        }
        net.lose = Box::new(move |n| losses[n % losses.len()] < rate);
        let mut next = 0;
        for (kind, wait) in steps {
            next += 1;
            let (from, to) = (next as usize % 3, (next as usize / 2 + 1) % 3);
            let calls: Vec<_> = net.hosts[from].signalling.calls().collect();
            let owned = calls.iter().filter_map(|call| Some((call, call.owner?.1)));
            match kind {
                0 | 1 => {
                    // The request is refused while there is no daemon.
                    let request = AtmRequest::Connect {
                        conn: ConnId(next % 6),
                        calling: net.address(from),
                        called: net.address(to),
                        sap: Sap::LLC,
                        qos: [Qos::ubr(1536), Qos::ubr_multipoint(1536)][usize::from(kind)],
                        multipoint: kind == 1,
                    };
                    let _ = net.ask(from, request);
                }
                2 => for (call, conn) in owned {
                    if call.outgoing && call.multipoint {
                        let party = PartyId(next as u16 % 5 + 1);
                        let called = net.address(to);
                        let _ = net.ask(from, AtmRequest::AddParty { conn, party, called });
                    }
                },
                3 => for (call, conn) in owned {
                    if call.parties > 1 {
                        let party = PartyId(next as u16 % 5 + 1);
                        let _ = net.ask(from, AtmRequest::DropParty { conn, party });
                    }
                },
                4 => if let Some((_, conn)) = owned.into_iter().next_back() {
                    net.release(from, conn);
                },
                5 | 6 => net.kill_daemon(from),
                7 => net.start_daemon(from),
                _ => net.signal(from, [Signal::Reload, Signal::Terminate][next as usize % 2]),
            }
            net.run_ms(wait);
        }
        net.lose = Box::new(|_| false);
        for host in 0..3 {
            if net.hosts[host].daemon.is_none() {
                net.start_daemon(host);
            }
        }
        net.run_s(30);
        for host in 0..3 {
            if net.hosts[host].daemon.is_none() {
                net.start_daemon(host);
            }
            for call in net.hosts[host].signalling.calls().collect::<Vec<_>>() {
                net.release(host, call.owner.expect("the user's").1);
            }
        }
        net.run_s(200);
        net.assert_clean();
        for host in 0..3 {
            prop_assert_eq!(counted(&net, host).refused, 0);
        }
        net.call(0, 2, 1000);
        net.run_s(1);
        prop_assert!(net.hosts[0].connected(ConnId(1000)));
    }
}

/// A trace of the daemon with a name that is not in the list would lose its name.
#[test]
fn every_name_of_a_trace_is_known() {
    let sources = [
        include_str!("../../../src/signalling/sigd/mod.rs"),
        include_str!("../../../src/signalling/sigd/calls.rs"),
        include_str!("../../../../proto/src/interface.rs"),
    ];
    let (count, strangers) = aerostat_testing::messages::strangers(&sources, "uni.");
    assert!(count > 1);
    assert_eq!(strangers, [""; 0]);
}
