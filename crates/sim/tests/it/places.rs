//! Every lost packet has its place in the books: packets that are lost at the instant at which they leave, and packets
//! that are lost on purpose.

use crate::losses::{books, only_at, run};

/// The cell of a packet of one cell leaves an idle adapter at once, and a link decides about a cell when it leaves. The
/// first link's loss precedes every other event of the packet, and yet the packet must be in the books.
#[test]
fn a_packet_of_one_cell_that_its_own_link_loses_at_once_is_lost_there() {
    let text = "switches: { s: {} }\n\
         clip: { n: { subnet: 10.0.0.0/24, server: r } }\n\
         routers: { r: { on: s, elans: { n: 10.0.0.1 } } }\n\
         hosts:\n  a: { on: s, elan: n, ip: 10.0.0.2, link: { loss: 0.05 } }\n  \
         b: { on: s, elan: n, ip: 10.0.0.3 }\n\
         traffic:\n\
         - { from: a, to: b, kind: ping, rate: 200pps, size: 0, start: 2s, duration: 5s }\n\
         - { from: b, to: a, kind: ping, rate: 200pps, size: 0, start: 2s, duration: 5s }\n";
    for flow in [0, 1] {
        let lost = only_at(&books(text, flow), "link a-s: cell lost");
        // 50 of 1000 expected, standard deviation 7.
        assert!((20..85).contains(&lost), "{lost}");
    }
}

/// A TCP segment is in the books when it leaves its host: the bridge that cannot forward it is its place. For other
/// packets, the books know the offered packets before.
#[test]
fn what_a_station_sends_while_its_bridge_is_no_member_is_lost_at_the_bridge() {
    let text = "switches: { s: {} }\n\
         lane: { on: s, elans: { a: { subnet: 10.1.0.0/24 } } }\n\
         hosts:\n  h: { on: s, elan: a, ip: 10.1.0.1, bridge: { st: 10.1.0.50 } }\n  \
         b: { on: s, elan: a, ip: 10.1.0.2 }\n\
         traffic: [{ from: st, to: b, kind: tcp, start: 2s, duration: 6s }]\n\
         faults: [{ at: 3s, crash: s }]\nuntil: 9s\n";
    let books = books(text, 0);
    assert_eq!(
        books.sent,
        books.delivered + books.under_way + books.lost.values().sum::<u64>()
    );
    assert!(books.lost["h: not joined"] > 0, "{:?}", books.lost);
}

/// After the crash of an MPS, the ingress of a shortcut that its own MPS resolved is told by the egress alone, by a
/// purge over the shortcut. In this test the answers use such a shortcut, and both hosts have opened a shortcut to the
/// other.
#[test]
fn the_crash_of_an_mps_costs_no_packet() {
    let text = "mpoa: true\nswitches: { s1: {}, s2: {} }\nlinks: [[s1, s2, { rate: oc3 }]]\n\
         lane: { on: s1, elans: { a: { subnet: 10.1.0.0/24 }, b: { subnet: 10.2.0.0/24 }, \
         core: { subnet: 10.9.0.0/24 } } }\n\
         routers:\n  r1: { on: s1, elans: { a: 10.1.0.1, core: 10.9.0.1 } }\n  \
         r2: { on: s2, elans: { b: 10.2.0.1, core: 10.9.0.2 } }\n\
         hosts:\n  urku: { on: s1, elan: a, ip: 10.1.0.10 }\n  \
         sello: { on: s2, elan: b, ip: 10.2.0.10 }\n\
         traffic:\n\
         - { name: open, from: urku, to: sello, kind: ping, rate: 50pps, start: 2s, duration: 1s }\n\
         - { name: pings, from: urku, to: sello, kind: ping, rate: 5pps, start: 3s, duration: 60s }\n\
         faults: [{ at: 5s, crash: r1/mps }, { at: 7s, restart: r1/mps }]\n";
    let (_, report) = run(text);
    let pings = &report.flows[1];
    let shortcut = pings.sum(|path| u64::from(path.path.name() == "shortcut") * path.offered);
    // The shortcut is trusted until the last keep-alive is 35 s old; then the routers carry the rest.
    assert!((130..200).contains(&shortcut), "{shortcut}");
    assert_eq!(pings.sum(|path| path.offered), 300);
    assert_eq!(pings.sum(|path| path.round_trip.count), 300, "answered");
}
