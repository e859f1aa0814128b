//! Requests that the helper refuses, and arbitrary octets.

use super::cables::{Cables, Host, Station};
use super::messages::{REQUEST_MAX, Reply, Request, Setup};
use super::process::understood;
use super::wire::Wire;
use super::{Helper, Looked, Owned};
use crate::namespace::NetNs;
use aerostat_proto::split::Role;
use aerostat_proto::split::codec::Message as _;
use aerostat_testing::messages::canonical;
use aerostat_wire::MacAddr;
use proptest::prelude::*;
use rustix::fd::{AsFd as _, OwnedFd};
use std::fs::File;
use std::path::Path;

/// A descriptor that is not a namespace: every operation in it fails.
fn no_namespace() -> NetNs {
    OwnedFd::from(File::open("/dev/null").unwrap()).into()
}

/// Two hosts of one ELAN, one of another, and a station at the first.
fn cables() -> Cables {
    let host = |elan| Host {
        namespace: no_namespace(),
        elan,
    };
    Cables {
        hosts: vec![host(1), host(1), host(2)],
        stations: vec![Station {
            namespace: no_namespace(),
            port: "anna".into(),
            mac: MacAddr([2, 0, 0, 0, 0, 1]),
            host: 0,
        }],
    }
}

fn why(reply: Reply) -> String {
    match reply {
        Reply::Refused { why } => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_cable_moves_between_hosts_of_this_lab_and_this_elan_alone() {
    let mut cables = cables();
    let mut plug = |station, host| why(cables.answer(Request::Plug { station, host }));
    assert_eq!(plug(1, 0), "no such station");
    assert_eq!(
        plug(u32::MAX, u32::MAX),
        "no such host".replace("host", "station")
    );
    assert_eq!(plug(0, 3), "no such host");
    assert_eq!(plug(0, u32::MAX), "no such host");
    assert_eq!(plug(0, 0), "it is plugged in there");
    assert_eq!(plug(0, 2), "that host is a member of another ELAN");
    // An allowed request is tried; it fails in the kernel, because there is no real namespace.
    assert!(!plug(0, 1).contains("no such"));
    assert_eq!(cables.stations[0].host, 0);
    let speak = Request::Speak { station: 1 };
    assert_eq!(why(cables.answer(speak)), "no such station");
    for seat in [0, 1, u32::MAX] {
        let start = cables.answer(Request::Start { seat });
        assert_eq!(why(start), "this socket is for cables");
    }
}

fn two_seats(program: &Path) -> Helper {
    let socket = Path::new("/nonexistent/daemons.sock");
    let owned = Owned {
        daemons: Some((program, socket)),
        seats: vec![(Role::Mpcd, "urku"), (Role::Sigd, "urku")],
        ..Owned::default()
    };
    Helper::in_thread(&owned).unwrap()
}

#[test]
fn daemons_are_those_of_the_lab_and_one_for_each_seat() {
    let helper = two_seats(Path::new("/bin/cat"));
    for seat in [2, 3, u32::MAX] {
        let refused = helper.start_daemon(seat).unwrap_err().to_string();
        assert_eq!(refused, "no such seat");
        assert!(helper.look_at_daemon(seat).is_err());
        helper.kill_daemon(seat);
    }
    // `cat` is started with the arguments of a daemon, and does not find such files.
    let first = helper.start_daemon(1).unwrap();
    assert_eq!(
        helper.start_daemon(1).unwrap_err().to_string(),
        "cannot be started: it runs"
    );
    let ended = loop {
        if let Looked::Ended(ended) = helper.look_at_daemon(1).unwrap() {
            break ended;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    };
    assert_eq!(ended.status.code(), Some(1));
    assert!(ended.words.starts_with(": "), "{}", ended.words);
    assert!(ended.words.contains("sigd"), "{}", ended.words);
    assert_ne!(helper.start_daemon(1).unwrap(), first);
    // This helper has no socket for cables, so a request to plug one fails.
    assert!(helper.plug(0, 0).1.is_err());
    assert!(helper.serves());
}

#[test]
fn who_goes_on_after_a_helper_has_died_is_told_so() {
    let (here, there) = Wire::pair().unwrap();
    let dies = std::thread::spawn(move || {
        // The other end takes what the lab owns, and ends at the first request.
        let (said, _) = there.receive().unwrap().unwrap();
        assert_eq!(Setup::decode(&said), Ok(Setup::Seal));
        there.send(&Reply::Done.encode(), None).unwrap();
        there.receive().unwrap();
    });
    let helper = Helper::with(here, None, &Owned::default()).unwrap();
    let told = helper.start_daemon(0).unwrap_err().to_string();
    assert!(
        told.contains("the lab's privileged helper is gone"),
        "{told}"
    );
    assert!(!helper.serves());
    assert!(helper.start_daemon(0).is_err());
    dies.join().unwrap();
}

#[test]
fn descriptors_and_setup_after_the_seal_change_nothing() {
    let (here, there) = Wire::pair().unwrap();
    let serves = std::thread::spawn(move || super::process::serve(&there, &|_, _| {}));
    here.send(&Setup::Seal.encode(), None).unwrap();
    assert_eq!(here.receive().unwrap().unwrap().0, Reply::Done.encode());
    let null = File::open("/dev/null").unwrap();
    let late = [
        Setup::Daemons {
            program: b"/bin/sh".to_vec(),
            socket: vec![],
        },
        Setup::Seat {
            role: Role::Les,
            node: "x".into(),
        },
        Setup::Host { elan: 0 },
        Setup::Seal,
    ];
    let answer = |octets: &[u8]| {
        here.send(octets, Some(null.as_fd())).unwrap();
        let (octets, fd) = here.receive().unwrap().unwrap();
        assert!(fd.is_none());
        why(Reply::decode(&octets).unwrap())
    };
    for said in late {
        assert_eq!(answer(&said.encode()), "that is no request");
    }
    assert_eq!(answer(&[0; 5000]), "that is no request");
    assert_eq!(answer(&Request::Start { seat: 0 }.encode()), "no such seat");
    drop(here);
    serves.join().unwrap().unwrap();
}

#[test]
fn requests_are_no_longer_than_their_bound() {
    let longest = Request::Plug {
        station: 7,
        host: 9,
    };
    assert_eq!(longest.encode().len(), REQUEST_MAX);
}

aerostat_testing::message_properties!(Setup, Request, Reply);

proptest! {
    /// Whatever octets come, only numbers of this lab's objects reach the kernel.
    #[test]
    fn any_octets_are_answered_and_move_nothing_of_others(
        packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..16), 0..40),
        numbers in prop::collection::vec((17_u16..23, 0_u32..5, 0_u32..5), 0..40),
    ) {
        let mut cables = cables();
        // Only a move to the other host of its ELAN would be tried; that takes a thread and is not tested here.
        let allowed = |request| matches!(request, Request::Plug { station: 0, host: 1 } | Request::Speak { station: 0 });
        let made = numbers.into_iter().map(|(kind, a, b)| {
            [&kind.to_be_bytes()[..], &a.to_be_bytes(), &b.to_be_bytes()].concat()
        });
        for octets in packets.into_iter().chain(made) {
            canonical(&octets, Setup::encode, Setup::decode);
            canonical(&octets, Request::encode, Request::decode);
            let mut asked = None;
            let reply = understood(&octets, |request| {
                asked = Some(request);
                if allowed(request) { Reply::Done } else { cables.answer(request) }
            });
            if !asked.is_some_and(allowed) {
                prop_assert!(matches!(reply, Reply::Refused { .. }), "{:?}: {:?}", asked, reply);
            }
            prop_assert_eq!(cables.stations[0].host, 0);
        }
    }
}
