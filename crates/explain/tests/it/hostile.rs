//! Any octets: no panic, and every limit is counted.

use crate::captures::{Sdu, explained, file, recorded};
use crate::links::legacy;
use aerostat_explain::{Limit, Limits, Report, explain};
use proptest::prelude::*;

/// Link types that are read, and one that is not.
const LINK_TYPES: [u32; 11] = [1, 11, 19, 100, 101, 113, 123, 197, 228, 276, 147];

fn any_report(octets: &[u8]) -> Option<Report> {
    explain(octets, Limits::default(), Some(&mut |_| {})).ok()
}

proptest! {
    #[test]
    fn any_octets_are_no_panic(octets: Vec<u8>) {
        let _ = any_report(&octets);
    }
    #[test]
    fn any_packets_of_any_link_type_are_no_panic(
        link in 0..LINK_TYPES.len(),
        packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..120), 1..20),
    ) {
        let file = legacy(LINK_TYPES[link], &packets);
        prop_assert_eq!(explained(&file).packets, packets.len() as u64);
    }
    #[test]
    fn damaged_recordings_are_no_panic(
        which in 0_usize..6,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
        cut: prop::sample::Index,
    ) {
        let names = ["c-svc", "d-clip-svc", "e-ilmi", "f-lane", "g-mpoa", "p-p2mp"];
        let mut octets = file(&recorded(names[which]));
        for (place, value) in damage {
            let at = place.index(octets.len());
            octets[at] = value;
        }
        let _ = any_report(&octets);
        octets.truncate(cut.index(octets.len()));
        let _ = any_report(&octets);
    }
}

#[test]
fn limits_are_counted() {
    let sdus: Vec<Sdu> = recorded("f-lane");
    let limits = Limits {
        messages: 3,
        story: 2,
        places: 1,
        open: 1,
        links: 1,
        ..Limits::default()
    };
    let report = explain(&file(&sdus)[..], limits, None).expect("a capture");
    assert_eq!((report.messages.len(), report.story.len()), (3, 2));
    let met: Vec<Limit> = report.met.iter().map(|(limit, _)| limit).collect();
    assert_eq!(
        met,
        [Limit::Messages, Limit::Story, Limit::Open, Limit::Links]
    );
    assert!(report.met.has_loss());
    assert!(report.met.iter().all(|(_, count)| count > 0));
}
