//! Cells of several connections on one link: the same order under both clocks.

use super::Run;
use aerostat_lab::Lab;
use aerostat_lab::build::{Builder, Flavour};
use aerostat_lab::model::LinkId;
use aerostat_live::capture::Form;
use aerostat_proto::{Duration, Instant};
use aerostat_sim::run::{Recording, run_and_record};
use std::collections::BTreeMap;

/// Two connections of one host, one of them of constant bit rate, and one of another host meet on a trunk. Each sends
/// all of its PDUs at once, and nothing is lost.
const LAB: &str = "
switches: { s1: {}, s2: {} }
links: [[s1, s2, { name: trunk, rate: 20Mbps, delay: 5us }]]
clip: { w: { subnet: 10.0.0.0/24, server: b } }
hosts:
  a:
    on: s1
    elan: w
    ip: 10.0.0.1
    sockets:
      - { name: bulk, vc: 0.100, size: 9180, pdus: 8, rate: 100000pps, start: 2s }
      - { name: steady, vc: 0.101, size: 2000, pdus: 4, rate: 100000pps, start: 2s }
  c:
    on: s1
    elan: w
    ip: 10.0.0.3
    sockets: [{ name: other, vc: 0.102, size: 9180, pdus: 8, rate: 100000pps, start: 2s }]
  b: { on: s2, elan: w, ip: 10.0.0.2, sockets: [{ name: sink, vc: 0.100, listen: sink }] }
pvcs:
  - { from: a, vc: 0.100, to: b }
  - { from: a, vc: 0.101, to: b, qos: 'cbr:max_pcr=10000' }
  - { from: c, vc: 0.102, to: b }
capture: [trunk]
until: 3s
";

/// Cells of the three connections: 8 PDUs of 192, 4 of 42.
const CELLS: [(u16, usize); 3] = [(100, 1536), (101, 168), (102, 1536)];

/// The connection of each cell that the first end of the link sent in a recording of cells, by its socket's VCI. The
/// trunk has labels of its own, so a connection is known by its number of cells and its first label.
fn order(file: &[u8]) -> Vec<u16> {
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
    let (mut at, mut all) = (0, Vec::new());
    while at < file.len() {
        if word(at) == 6 {
            // An enhanced packet block: a header of 28 octets, then a record header of 16 octets and the cell.
            let cell = u32::from_be_bytes(file[at + 44..at + 48].try_into().unwrap());
            let octets = (word(at + 20) as usize).next_multiple_of(4);
            let vci = (cell >> 4) as u16;
            if word(at + 28 + octets + 4) == 2 && vci >= 32 {
                all.push(vci);
            }
        }
        at += word(at + 4) as usize;
    }
    // Other connections, such as those of signalling, have fewer cells.
    let mut counts = BTreeMap::<u16, usize>::new();
    all.iter()
        .for_each(|vci| *counts.entry(*vci).or_default() += 1);
    counts.retain(|_, cells| CELLS.iter().any(|(_, all)| cells == all));
    let known: BTreeMap<u16, u16> = counts.into_keys().zip(CELLS.map(|(vci, _)| vci)).collect();
    let cells = all.iter().filter_map(|vci| known.get(vci).copied());
    cells.collect()
}

fn in_virtual_time(lab: &Lab) -> Vec<u16> {
    let path = std::env::temp_dir().join(format!("aerostat-cells-{}.pcapng", std::process::id()));
    let recording = Recording {
        links: Some(&path),
        cells: true,
        ..Recording::default()
    };
    run_and_record(lab, recording, &mut ()).unwrap().1.unwrap();
    let file = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    order(&file)
}

fn in_real_time(lab: &Lab) -> Vec<u16> {
    let builder = Builder::new(lab, lab.seed, Flavour::Embedded);
    let mut run = Run::off(lab, &builder, Duration::ZERO);
    let form = Form {
        both_ends: false,
        cells: true,
    };
    let link = (0..lab.links.len()).map(LinkId);
    let trunk: Vec<LinkId> = link.filter(|id| lab.link(*id).name == "trunk").collect();
    let chunks = run.world.captures.start(lab, &trunk, form, 0).unwrap();
    run.world.start(&builder, Instant::ZERO);
    let mut file = Vec::new();
    for step in 1..=3000 {
        run.until(Instant::from_millis(step));
        file.extend(chunks.try_iter().flatten());
    }
    assert_eq!(run.world.captures.dropped(), 0, "the recording is whole");
    order(&file)
}

/// For each cell, by connection and number: its place in the order.
fn places(order: &[u16]) -> BTreeMap<(u16, usize), usize> {
    let mut count = BTreeMap::<u16, usize>::new();
    let each = order.iter().enumerate().map(|(place, vci)| {
        let number = count.entry(*vci).or_default();
        *number += 1;
        ((*vci, *number), place)
    });
    each.collect()
}

/// Virtual time decides cell by cell. In real time the first turn of the trunk has two cells, the cells of 50 us, and a
/// cell may come a turn of its access line earlier; from there on cells compete.
#[test]
fn cells_of_connections_that_meet_on_a_link_leave_in_the_same_order_under_both_clocks() {
    let lab = match aerostat_lab::parse("cells.atm.yml", LAB, &[]) {
        Ok(checked) => checked.lab,
        Err(wrong) => panic!("{wrong}"),
    };
    let (sim, live) = (in_virtual_time(&lab), in_real_time(&lab));
    for (vci, cells) in CELLS {
        for order in [&sim, &live] {
            assert_eq!(
                order.iter().filter(|cell| **cell == vci).count(),
                cells,
                "{vci}"
            );
        }
    }
    let (was, is) = (places(&sim), places(&live));
    let moved = was.iter().map(|(cell, place)| place.abs_diff(is[cell]));
    let most = moved.max().unwrap();
    assert!(most <= 4, "a cell has moved by {most} places");
    // The longest run of cells of one connection while both of best effort wait.
    let both = live[..2 * 1500].chunk_by(|a, b| a == b).map(<[u16]>::len);
    assert!(both.max() <= Some(2));
}
