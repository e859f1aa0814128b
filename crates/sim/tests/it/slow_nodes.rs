//! Routers whose packets cost time, beside the limits that follow from the costs.

use crate::losses::{books, only_at};

/// A host on each side of a router.
fn routed(router: &str, traffic: &str) -> String {
    format!(
        "switches: {{ s: {{}} }}\n\
         lane: {{ on: s, elans: {{ a: {{ subnet: 10.1.0.0/24 }}, b: {{ subnet: 10.2.0.0/24 }} }} }}\n\
         routers: {{ r: {{ on: s, elans: {{ a: 10.1.0.1, b: 10.2.0.1 }}, {router} }} }}\n\
         hosts:\n  a: {{ on: s, elan: a, ip: 10.1.0.10 }}\n  b: {{ on: s, elan: b, ip: 10.2.0.10 }}\n\
         traffic:\n  - {{ name: warm, from: a, to: b, kind: ping, rate: 10pps, start: 500ms, duration: 1s }}\n  \
         - {{ name: load, from: a, to: b, kind: udp, start: 2s, {traffic} }}\n"
    )
}

#[test]
fn a_router_of_65000_frames_a_second_is_overloaded_from_the_load_where_more_arrive() {
    // Fast Ethernet carries 148 810 frames of 64 octets a second, and 84 459 of 128. Source of the router's rate:
    // Detken 2001, Figures 6 and 7.
    for (frames, percent, size) in [
        (148_810, 40, 24),
        (148_810, 50, 24),
        (84_459, 70, 82),
        (84_459, 80, 82),
    ] {
        let rate = frames * percent / 100;
        let text = routed(
            "forwarding: 65000pps",
            &format!("rate: {rate}pps, size: {size}, duration: 50ms, expect: loss"),
        );
        let books = books(&text, 1);
        let lost: u64 = books.lost.values().sum();
        if rate <= 65_000 {
            assert_eq!(lost, 0, "{percent} % of {size}: {:?}", books.lost);
            continue;
        }
        only_at(&books, "r: router queue full");
        // 3250 packets are forwarded in that time, 100 wait, and 1 is being forwarded at its end.
        let passed = books.delivered + books.under_way;
        assert!((3349..=3352).contains(&passed), "{passed}");
    }
}
