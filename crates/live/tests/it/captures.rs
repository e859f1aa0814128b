//! A recording in real time contains the packets of the link, like one in virtual time.

use super::Run;
use aerostat_lab::build::{Builder, Flavour};
use aerostat_lab::model::LinkId;
use aerostat_live::capture::Form;
use aerostat_proto::{Duration, Instant};
use aerostat_wire::aal5::cells_for;

const BOTTLE: &str = "\
switches: { s1: {}, s2: {} }
links: [[s1, s2, { rate: 5Mbps, delay: 5us }]]
clip: { n: { subnet: 10.1.0.0/24, server: x } }
hosts:
  a: { on: s1, elan: n, ip: 10.1.0.1 }
  x: { on: s2, elan: n, ip: 10.1.0.3 }
traffic: [{ from: a, to: x, kind: udp, rate: 1500pps, size: 1472, start: 3s, duration: 1s, expect: loss }]
until: 6s
";

/// For each packet of a pcapng file: whether the first end sent it, its time in nanoseconds, its octets.
pub(super) fn packets(file: &[u8]) -> Vec<(bool, u64, usize)> {
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
    let (mut at, mut seen) = (0, Vec::new());
    while at < file.len() {
        let (kind, length) = (word(at), word(at + 4) as usize);
        if kind == 6 {
            let octets = word(at + 20) as usize;
            let time = u64::from(word(at + 12)) << 32 | u64::from(word(at + 16));
            let flags = word(at + 28 + octets.next_multiple_of(4) + 4);
            seen.push((flags == 2, time, octets));
        }
        at += length;
    }
    seen
}

/// The packets on link `link` of the lab, which has traffic of all forms, and the link's own counts.
fn recorded(link: usize, cells: bool) -> ([u64; 2], [u64; 2]) {
    let lab = match aerostat_lab::parse("bottle.atm.yml", BOTTLE, &[]) {
        Ok(checked) => checked.lab,
        Err(wrong) => panic!("{wrong}"),
    };
    let builder = Builder::new(&lab, 7, Flavour::Embedded);
    let mut run = Run::off(&lab, &builder, Duration::ZERO);
    let form = Form {
        both_ends: false,
        cells,
    };
    let link = LinkId(link);
    let chunks = run.world.captures.start(&lab, &[link], form, 0).unwrap();
    run.world.start(&builder, Instant::ZERO);
    let mut file = Vec::new();
    for step in 1..=6_000 {
        run.until(Instant::from_millis(step));
        file.extend(chunks.try_iter().flatten());
    }
    assert_eq!(run.world.captures.dropped(), 0, "the recording is whole");
    let mut seen = [0; 2];
    let mut last = [None; 2];
    let cell = lab.link(link).lines[0].rate.time_of(1).as_nanos() as u64;
    for (sent, time, octets) in packets(&file) {
        let side = usize::from(!sent);
        seen[side] += if cells {
            1
        } else {
            cells_for(octets - 4) as u64
        };
        let next = last[side].map_or(0, |last| last + cell);
        assert!(time + 1 >= next, "{time}, but the line is free at {next}");
        last[side] = Some(time);
    }
    (seen, run.world.counters_of(link).map(|way| way.sent))
}

#[test]
fn a_recording_of_a_crowded_link_has_the_cells_that_the_link_has_counted() {
    for cells in [false, true] {
        for link in 0..3 {
            let (seen, counted) = recorded(link, cells);
            assert_eq!(seen, counted, "link {link}, cells: {cells}");
            assert!(counted[0] > 0 && counted[1] > 0);
        }
    }
}
