//! A recording contains the packets of the link: as many cells as the link has counted, each PDU with its own time.

use aerostat_lab::Lab;
use aerostat_lab::report::RunReport;
use aerostat_sim::run::{Recording, run_and_record};
use aerostat_wire::aal5::cells_for;
use std::collections::BTreeMap;
use std::path::Path;

/// Two flows over a line that is too slow for them: whole frames are discarded in front of it.
const BOTTLE: &str = "\
switches: { s1: {}, s2: {} }
links: [[s1, s2, { rate: 25.6, delay: 5us }]]
clip: { net: { subnet: 10.1.0.0/24, server: x } }
hosts:
  a: { on: s1, elan: net, ip: 10.1.0.1 }
  b: { on: s1, elan: net, ip: 10.1.0.2 }
  x: { on: s2, elan: net, ip: 10.1.0.3 }
  y: { on: s2, elan: net, ip: 10.1.0.4 }
traffic:
  - { from: a, to: x, kind: udp, rate: 1500pps, size: 1472, start: 1s, duration: 1s }
  - { from: b, to: y, kind: udp, rate: 1500pps, size: 1472, start: 1s, duration: 1s }
capture: [a-s1, b-s1, s1-s2, x-s2, y-s2]
until: 3s
";

/// A host that sends more than its adapter can: cells that its queue refuses never leave it.
const GREEDY: &str = "\
switches: { s1: {} }
clip: { net: { subnet: 10.1.0.0/24, server: b } }
hosts:
  a: { on: s1, elan: net, ip: 10.1.0.1, link: { rate: 25.6 } }
  b: { on: s1, elan: net, ip: 10.1.0.2 }
traffic: [{ from: a, to: b, kind: udp, rate: 4000pps, size: 1472, start: 1s, duration: 1s }]
capture: [a-s1, b-s1]
until: 4s
";

/// A link that is cut with packets in front of it and on it.
const CUT: &str = "\
switches: { s1: {}, s2: {} }
links: [[s1, s2, { rate: 25.6, delay: 20ms }]]
pvcs: [{ from: a, vc: 0.100, to: b }]
clip: { net: { subnet: 10.1.0.0/24 } }
hosts: { a: { on: s1, elan: net, ip: 10.1.0.1 }, b: { on: s2, elan: net, ip: 10.1.0.2 } }
traffic: [{ from: a, to: b, kind: udp, rate: 1900pps, size: 1472, start: 1s, duration: 1s }]
faults: [{ at: 1400ms, link_down: s1-s2 }, { at: 1600ms, link_up: s1-s2 }]
capture: [s1-s2]
until: 3s
";

/// By interface and direction (2 is sent by the first end): time in nanoseconds and cells of each PDU.
type Seen = BTreeMap<(u32, u32), Vec<(u64, u64)>>;

/// Reads pcapng blocks of SUNATM packets. Source: draft-ietf-opsawg-pcapng.
fn packets(file: &[u8]) -> Seen {
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
    let (mut at, mut seen) = (0, Seen::new());
    while at < file.len() {
        let (kind, length) = (word(at), word(at + 4) as usize);
        if kind == 6 {
            let (interface, octets) = (word(at + 8), word(at + 20) as usize);
            let time = u64::from(word(at + 12)) << 32 | u64::from(word(at + 16));
            let options = at + 28 + octets.next_multiple_of(4);
            assert_eq!(word(options), 2 | 4 << 16, "flags come first");
            let cells = cells_for(octets - 4) as u64;
            let direction = word(options + 4);
            seen.entry((interface, direction))
                .or_default()
                .push((time, cells));
        }
        at += length;
    }
    seen
}

fn recorded(name: &str, text: &str) -> (Lab, RunReport, Seen) {
    let lab = match aerostat_lab::parse(&format!("{name}.atm.yml"), text, &[]) {
        Ok(checked) => checked.lab,
        Err(wrong) => panic!("{wrong}"),
    };
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.pcapng"));
    let recording = Recording {
        links: Some(&path),
        ..Recording::default()
    };
    let (report, captured) = run_and_record(&lab, recording, &mut ()).unwrap();
    captured.unwrap();
    let seen = packets(&std::fs::read(&path).unwrap());
    (lab, report, seen)
}

/// Compares the cells in the recording with those in the table of links, by link and direction. In all, `broken` cells
/// may have left that no receiver on the link could reassemble.
fn agree(lab: &Lab, report: &RunReport, seen: &Seen, mut broken: u64) {
    for (interface, link) in lab.capture.iter().enumerate() {
        let model = lab.link(*link);
        for (side, end) in model.ends.iter().enumerate() {
            let way = report.circuits.links.iter();
            let mut way = way.filter(|way| way.link == *link && way.ends[0].node == end.node);
            let counters = way.next().unwrap().counters;
            let direction = if side == 0 { 2 } else { 1 };
            let here = seen.get(&(interface as u32, direction));
            let here = here.map(Vec::as_slice).unwrap_or_default();
            let cells: u64 = here.iter().map(|packet| packet.1).sum();
            let which = format!("{}, direction {direction}", model.name);
            let missing = counters.sent.checked_sub(cells);
            let missing = missing.unwrap_or_else(|| panic!("{which}: {cells} cells"));
            assert!(missing <= broken, "{which}: {missing} of {cells}");
            broken -= missing;
            assert!(counters.delivered <= counters.sent, "{which}");
            // Nothing leaves faster than the line rate: between two last cells there is at least one cell time.
            let cell = model.lines[0].rate.time_of(1).as_nanos() as u64;
            let mut times: Vec<u64> = here.iter().map(|packet| packet.0).collect();
            times.sort_unstable();
            let close = times.windows(2).find(|two| two[1] - two[0] + 1 < cell);
            assert_eq!(close, None, "{which}: a cell takes {cell} ns");
        }
    }
}

#[test]
fn a_recording_of_a_crowded_link_has_its_cells_and_not_those_discarded_in_front_of_it() {
    let (lab, report, seen) = recorded("capture-bottle", BOTTLE);
    agree(&lab, &report, &seen, 0);
    let lost: u64 = report.flows.iter().map(|flow| flow.paths[0].lost).sum();
    assert!(lost > 500, "{lost}");
}

#[test]
fn a_recording_of_a_hosts_link_has_what_its_adapter_has_sent() {
    let (lab, report, seen) = recorded("capture-greedy", GREEDY);
    agree(&lab, &report, &seen, 0);
    let sent = seen.get(&(0, 2)).unwrap().len();
    assert!((1000..3900).contains(&sent), "{sent} of 4000 packets");
}

#[test]
fn a_recording_of_a_link_that_was_cut_has_what_left_for_it() {
    let (lab, report, seen) = recorded("capture-cut", CUT);
    // The cut emptied the queue with a PDU half sent, whose cells damage the next PDU, too.
    agree(&lab, &report, &seen, 2 * 32);
    let lost = report.flows[0].paths[0].lost;
    assert!(lost > 100, "{lost}");
}
