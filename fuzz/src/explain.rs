//! `aerostat explain` with any file: no panic, bounded tables, and a report whose parts agree.
//!
//! The first octet chooses: 0 to 11 make the rest the packets of a pcap of one link type (each behind a length of one
//! octet), so that a fuzzer need not find the form of a file first; others take the rest as a file.

use aerostat_explain::{Limits, Report, explain};

/// Link types that are read, and one that is not.
const LINK_TYPES: [u32; 12] = [1, 11, 12, 19, 100, 101, 113, 123, 197, 228, 276, 147];

/// Runs one input.
pub fn run(input: &[u8]) {
    let Some((&which, octets)) = input.split_first() else {
        return;
    };
    let file = match LINK_TYPES.get(usize::from(which)) {
        Some(link_type) => pcap(*link_type, octets),
        None => octets.to_vec(),
    };
    let limits = Limits {
        messages: 50,
        story: 50,
        places: 3,
        open: 64,
        links: 16,
        vcs: 8,
        ..Limits::default()
    };
    let mut sdus = 0;
    let report = explain(
        &file[..],
        limits,
        Some(&mut |repair| {
            if matches!(repair, aerostat_explain::Repair::Sdu { .. }) {
                sdus += 1;
            }
        }),
    );
    if let Ok(report) = report {
        check(&report, &limits, file.len() as u64);
        assert_eq!(report.repaired.sdus, sdus);
    }
}

fn check(report: &Report, limits: &Limits, length: u64) {
    assert!(report.messages.len() <= limits.messages && report.story.len() <= limits.story);
    assert!(report.octets <= length);
    for (rule, count) in &report.broken {
        let places = report
            .findings
            .iter()
            .filter(|one| one.rule == *rule)
            .count();
        assert_eq!(places, limits.places.min(*count as usize), "{rule}");
    }
    assert!(
        report
            .findings
            .iter()
            .all(|one| (1..=report.packets).contains(&one.packet))
    );
}

fn pcap(link_type: u32, mut octets: &[u8]) -> Vec<u8> {
    let words =
        |words: &[u32]| -> Vec<u8> { words.iter().flat_map(|word| word.to_le_bytes()).collect() };
    let mut file = words(&[0xa1b2_c3d4, 0x0004_0002, 0, 0, 65535, link_type]);
    let mut second = 0;
    while let Some((&length, rest)) = octets.split_first() {
        let (packet, rest) = rest.split_at(usize::from(length).min(rest.len()));
        second += 3;
        let length = packet.len() as u32;
        file.extend(words(&[second, 0, length, length]));
        file.extend_from_slice(packet);
        octets = rest;
    }
    file
}
