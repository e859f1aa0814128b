//! Links: throughput of a saturated link, of programs from memory to memory, and delays over several links.

use super::{OC3_CELL, PROPAGATION, Probe, Section, cells};
use crate::losses::run;

const OC3_BITS: f64 = 149.76e6;
/// Seconds of a cell on a link `25.6`: 59111 cells/s.
const ATM25_CELL: f64 = 1.0 / 59_111.0;

/// Overhead around the payload of a datagram besides IP and UDP (28 octets): name, the rest of the lab, octets.
const OVERHEADS: [(&str, &str, usize); 3] = [
    (
        "Classical IP, LLC/SNAP",
        "clip: { net: { subnet: 10.1.0.0/24 } }\npvcs: [{ from: a, vc: 0.100, to: b }]\n",
        8,
    ),
    (
        "Classical IP, VC multiplexed",
        "clip: { net: { subnet: 10.1.0.0/24 } }\npvcs: [{ from: a, vc: 0.100, to: b, mux: true }]\n",
        0,
    ),
    // LE header and Ethernet header; the frame check sequence of Ethernet is not carried.
    (
        "emulated LAN",
        "lane: { on: s1, elans: { net: { subnet: 10.1.0.0/24 } } }\n",
        2 + 14,
    ),
];

/// More is offered than the link carries; the far end gets a packet every so many cell times, exactly.
#[test]
fn a_saturated_link_carries_its_rate_less_the_overhead_of_headers_padding_and_cells() {
    let mut section = Section::new("saturated");
    for (name, rest, overhead) in OVERHEADS {
        for size in [64, 512, 1472] {
            let count = cells(size + 28 + overhead);
            let limit = 1.0 / (count as f64 * OC3_CELL);
            let rate = (1.1 * limit).ceil();
            let text = format!(
                "switches: {{ s1: {{}} }}\n{rest}hosts:\n\
                 \x20 a: {{ on: s1, elan: net, ip: 10.1.0.1 }}\n\
                 \x20 b: {{ on: s1, elan: net, ip: 10.1.0.2 }}\n\
                 traffic: [{{ from: a, to: b, kind: udp, size: {size}, rate: {rate}pps, start: 2s, duration: 200ms }}]\n"
            );
            let probe = Probe::new("saturated", &text).all();
            let arrivals: Vec<f64> = probe.heard.arrived[0]
                .iter()
                .map(|(sent, delay)| sent.as_secs_f64() + delay)
                // Earlier packets wait for addresses, or go over the BUS.
                .filter(|at| *at > 2.05 && *at < 2.2)
                .collect();
            let gaps = (arrivals.len() - 1) as f64;
            let per_second = gaps / (arrivals[arrivals.len() - 1] - arrivals[0]);
            section.exact(
                format!("{name}, {size} octets in {count} cells"),
                "goodput",
                "Mbit/s",
                [limit, per_second].map(|rate| rate * size as f64 * 8.0 / 1e6),
            );
        }
    }
    // The link itself carries 149.76 Mbit/s of cells.
    assert!((OC3_CELL * OC3_BITS - 424.0).abs() < 1e-9);
    section.check();
}

/// The delay of a PDU over consecutive links, in seconds: each sender takes a cell when it has arrived completely.
fn one_way(count: usize, links: &[(f64, f64)]) -> f64 {
    // When each cell is available; at the host all are at once.
    let mut there = vec![0.0_f64; count];
    for (cell, delay) in links {
        let mut free = 0.0_f64;
        for at in &mut there {
            free = at.max(free) + cell;
            *at = free + delay;
        }
    }
    there.last().copied().unwrap_or_default()
}

/// Echoes over three switches and four links: serialisation once on the slowest link, one cell more for each other
/// link, and all propagation delays, in both directions. The echoes start when no signalling cell is on its way.
#[test]
fn round_trips_over_three_switches_are_the_sum_of_their_parts() {
    let mut section = Section::new("round-trip");
    let oc12 = 424.0 / 599.04e6;
    let cases: [(&str, [(&str, f64); 4]); 3] = [
        ("all oc3", [("oc3", OC3_CELL); 4]),
        (
            "25.6 at the first host",
            [
                ("25.6", ATM25_CELL),
                ("oc3", OC3_CELL),
                ("oc3", OC3_CELL),
                ("oc3", OC3_CELL),
            ],
        ),
        (
            "oc3, oc12, 25.6, oc3",
            [
                ("oc3", OC3_CELL),
                ("oc12", oc12),
                ("25.6", ATM25_CELL),
                ("oc3", OC3_CELL),
            ],
        ),
    ];
    for (name, links) in cases {
        for size in [56, 1472] {
            let [a, b, c, d] = links;
            let text = format!(
                "switches: {{ s1: {{}}, s2: {{}}, s3: {{}} }}\n\
                 links: [[s1, s2, {{ rate: {}, delay: 1ms }}], [s2, s3, {{ rate: {}, delay: 50us }}]]\n\
                 clip: {{ net: {{ subnet: 10.1.0.0/24 }} }}\n\
                 pvcs: [{{ from: a, vc: 0.100, to: b }}]\nhosts:\n\
                 \x20 a: {{ on: s1, elan: net, ip: 10.1.0.1, link: {{ rate: {} }} }}\n\
                 \x20 b: {{ on: s3, elan: net, ip: 10.1.0.2, link: {{ rate: {} }} }}\n\
                 traffic: [{{ from: a, to: b, kind: ping, size: {size}, rate: 10pps, start: 533ms, duration: 2s }}]\n",
                b.0, c.0, a.0, d.0
            );
            let probe = Probe::new("round-trip", &text).all();
            let trips = probe.delays(0);
            assert!(trips.len() >= 19, "{} echoes", trips.len());
            let count = cells(size + 8 + 20 + 8);
            let delays = [PROPAGATION, 1e-3, 50e-6, PROPAGATION];
            let mut way: Vec<(f64, f64)> = links.iter().map(|link| link.1).zip(delays).collect();
            let forth = one_way(count, &way);
            way.reverse();
            let theory = forth + one_way(count, &way);
            for trip in &trips {
                // Each sender rounds up to a nanosecond: in all less than a hundredth of a cell.
                let error = (trip - theory).abs();
                assert!(error < 25e-9, "{name}, {size} octets: {trip}, not {theory}");
            }
            let mean = trips.iter().sum::<f64>() / trips.len() as f64;
            section.exact(
                format!("{name}, {size} octets in {count} cells"),
                "round trip",
                "µs",
                [theory * 1e6, mean * 1e6],
            );
        }
    }
    section.check();
}

/// Programs of `labs/native.atm.yml`, and transfers of the sizes that the report on ATP (1999) measured. The clock runs
/// from the first PDU that the adapter took to the last one that reached the reader.
#[test]
fn programs_from_memory_to_memory_have_the_link_or_their_contract() {
    const NATIVE: &str = include_str!("../../../../../labs/native.atm.yml");
    const SIZE: f64 = 8192.0;
    let cells_of_pdu = cells(8192) as f64;
    let mut section = Section::new("native");
    let cbr = |pdus: f64| {
        // The last cell leaves by the contract, and crosses two links.
        let spaced = (pdus * cells_of_pdu - 1.0) / 50_000.0;
        pdus * SIZE * 8.0 / (spaced + 2.0 * (OC3_CELL + PROPAGATION)) / 1e6
    };
    let ubr = |pdus: f64| {
        // The last cell crosses a further link. The cells of CONNECT ACKNOWLEDGE in front of the first PDU are left
        // out.
        let all = pdus * cells_of_pdu + 1.0;
        pdus * SIZE * 8.0 / (all * OC3_CELL + 2.0 * PROPAGATION) / 1e6
    };
    for megabytes in [1_u32, 4, 16] {
        let pdus = megabytes * 128;
        let text = NATIVE.replace("pdus: 2048", &format!("pdus: {pdus}"));
        let (_, report) = run(&text);
        let carried = |program: &str| {
            let mut all = report.dialogues.iter();
            let one = all.find(|one| one.from.1 == program).expect("a row");
            assert_eq!((one.lost(), one.late, one.refused), (0, 0, 0), "{program}");
            one.throughput_mbps.expect("a rate")
        };
        let name = format!("best effort, {megabytes} MiB in PDUs of 8192 octets");
        let both = [ubr(f64::from(pdus)), carried("bulk")];
        section.exact(name, "goodput", "Mbit/s", both);
        if megabytes == 1 {
            let both = [cbr(256.0), carried("held")];
            let name = "CBR of 50000 cells/s, 2 MiB in PDUs of 8192 octets".to_owned();
            section.exact(name, "goodput", "Mbit/s", both);
        }
    }
    section.check();
}
