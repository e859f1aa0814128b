//! A few of the random schedules of faults, and those that once failed. The example `schedules` runs ranges of seeds.

use aerostat_testing::labs::schedules::{NETWORKS, Schedule, WIDE, What};
use std::collections::BTreeSet;

#[test]
fn the_first_wide_schedules() {
    for seed in WIDE..WIDE + 8 {
        Schedule::of(seed).run();
    }
}

#[test]
fn the_first_schedules() {
    for seed in 0..12 {
        Schedule::of(seed).run();
    }
}

/// Once a shortcut ended at a router for ever, because the router did not learn, or learned too late, that a host had
/// become an MPOA client (142 to 925). Once the check of the order took a packet from before a restart for a later one
/// (554).
#[test]
fn schedules_that_failed() {
    for seed in [142, 148, 180, 512, 554, 788, 925] {
        Schedule::of(seed).run();
    }
}

/// Every kind of network, of fault and of end occurs.
#[test]
fn schedules_differ() {
    let wide = (WIDE..WIDE + 100).map(Schedule::of);
    let all: Vec<_> = (0..300).map(Schedule::of).chain(wide).collect();
    for network in 0..=NETWORKS.len() {
        assert!(all.iter().any(|schedule| schedule.network == network));
    }
    let has = |what: fn(&What) -> bool| {
        let mut faults = all.iter().flat_map(|schedule| &schedule.faults);
        faults.any(|fault| what(&fault.what))
    };
    assert!(has(|what| matches!(what, What::Cut(_))));
    assert!(has(|what| matches!(what, What::Loss(..))));
    assert!(has(|what| matches!(what, What::Power(_))));
    assert!(has(|what| matches!(what, What::Service(..))));
    assert!(has(|what| *what == What::Mpoa));
    assert!(has(|what| matches!(what, What::Burst(_))));
    assert!(has(|what| matches!(what, What::Routes(_))));
    assert!(all.iter().any(|schedule| schedule.in_good_order));
    assert!(all.iter().any(|schedule| !schedule.settled));
    let one = Schedule::of(7);
    let text = one.to_string();
    assert_eq!(text, Schedule::of(7).to_string());
    assert_eq!(one.only(&BTreeSet::new()).count(), 0);
}
