//! The events of a run: cells that were events of their own, beside counters that the network keeps anyway.

use crate::bench::lab_of;
use aerostat_lab::Lab;
use aerostat_lab::report::{RunReport, Work};
use aerostat_node::atm::Alone;
use aerostat_sim::run::LabRun;

/// Two permanent connections between two hosts at a switch, with programs that send PDUs of 19 cells.
fn text(switch: &str, link: &str) -> String {
    let program = |vc: &str| {
        format!(
            "{{ vc: {vc}, name: p{}, size: 900, pdus: 360, rate: 200pps, start: 100ms }}",
            &vc[2..]
        )
    };
    format!(
        "switches: {{ s: {{ {switch} }} }}\n\
         clip: {{ n: {{ subnet: 10.1.0.0/24, server: y }} }}\n\
         pvcs: [{{ from: x, vc: \"0.50\", to: y, qos: \"cbr:pcr=8000,cdvt=10000\" }}, {{ from: x, vc: \"0.51\", to: y }}]\n\
         hosts:\n  x: {{ on: s, elan: n, ip: 10.1.0.1, link: {{ {link} }}, sockets: [{}, {}] }}\n  \
         y: {{ on: s, elan: n, ip: 10.1.0.2, sockets: [{{ vc: 0.50, listen: sink, name: e50 }}, {{ vc: 0.51, listen: sink, name: e51 }}] }}\n\
         until: 2s\n",
        program("0.50"),
        program("0.51")
    )
}

/// The lab with its results, and its work.
fn run(text: &str, cell_by_cell: bool) -> (Lab, RunReport, Work) {
    let lab = lab_of("work", text, &[]);
    let mut watcher = ();
    let mut run = LabRun::new(&lab, &mut watcher);
    if cell_by_cell {
        run.cell_by_cell();
    }
    run.start();
    run.run_to_end();
    let work = run.work();
    let report = run.finish().expect("nothing is captured");
    (lab, report, work)
}

#[test]
fn cells_that_policers_judge_are_counted_and_only_these() {
    let (_, report, work) = run(&text("police: true", ""), false);
    let judged: u64 = (report.circuits.policers.iter())
        .map(|policer| policer.counters.cells_in)
        .sum();
    assert!(judged >= 360 * 19, "{judged} cells at policers");
    assert_eq!(work.alone.of(Alone::Policed), judged);
    // Both programs cross two lines.
    assert!(work.crossings >= 4 * 360 * 19, "{work:?}");
    let (_, _, work) = run(&text("", ""), false);
    assert_eq!(work.alone.of(Alone::Policed), 0);
}

#[test]
fn cells_of_a_line_with_errors_are_counted_and_only_these() {
    let (lab, report, work) = run(&text("", "loss: 0.001"), false);
    let link = (lab.links.iter().position(|link| link.name == "x-s")).expect("the link");
    let ways = report
        .circuits
        .links
        .iter()
        .filter(|way| way.link.0 == link);
    let sent: u64 = ways.map(|way| way.counters.sent).sum();
    assert!(sent >= 2 * 360 * 19, "{sent} cells on the line");
    assert_eq!(work.alone.of(Alone::Errors), sent);
}

#[test]
fn cell_by_cell_each_cell_is_an_event() {
    let (_, _, work) = run(&text("", ""), true);
    assert!(work.crossings >= 4 * 360 * 19, "{work:?}");
    assert_eq!(work.alone.of(Alone::Recorded), work.crossings);
}
