//! Signalling managers that cost time and shaped paths under the driver of a lab in real time. The tests read the clock
//! of the network, so they do not depend on the machine.

use super::{Run, seconds};
use aerostat_lab::Lab;
use aerostat_lab::build::{Builder, Flavour};
use aerostat_lab::report::RunReport;
use aerostat_node::inspect::Value;
use aerostat_proto::Duration;
use std::path::Path;

/// The results after four seconds, by a punctual driver and by one that wakes up every five milliseconds.
fn results(lab: &Lab) -> [RunReport; 2] {
    let builder = Builder::new(lab, 7, Flavour::Embedded);
    [0, 5].map(|late| {
        let mut run = Run::start(lab, &builder, Duration::from_millis(late));
        run.until(seconds(4));
        run.world.settle_books();
        run.world.report(run.now, false)
    })
}

/// The time to set up the call of a host's program, in milliseconds.
fn set_up(report: &RunReport, host: &str) -> f64 {
    let states = report.nodes.iter().find(|node| node.0 == host);
    let kinds = &states.expect("the host").1;
    for table in kinds.iter().flat_map(|(_, tables)| tables) {
        let Some(column) = table.columns.iter().position(|name| *name == "setup_us") else {
            continue;
        };
        match table.rows.first().map(|row| &row[column]) {
            Some(Value::Number(micros)) => return *micros as f64 / 1000.0,
            other => panic!("{other:?}"),
        }
    }
    panic!("{host} has made no call: {kinds:?}")
}

/// Source: Black and Crosby (1993), Table 1: 20.4 ms over a link, 42.1 ms over a switch.
#[test]
fn managers_take_their_time_whether_the_driver_is_late_or_not() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../labs/managers.atm.yml");
    let lab = aerostat_lab::read(&path, &[])
        .expect("a lab of the repository")
        .lab;
    for report in results(&lab) {
        let [direct, switched] = ["one", "three"].map(|host| set_up(&report, host));
        assert!((direct / 20.4 - 1.0).abs() < 0.005, "{direct}");
        assert!((switched / 42.1 - 1.0).abs() < 0.03, "{switched}");
    }
}

/// Two connections inside a shaped path send a burst of 100 cells each at once: all leave 50 us apart at least, so the
/// last of 200 cells leaves 199 times 50 us after the first one, and nothing is lost.
#[test]
fn a_shaped_path_takes_the_time_of_its_cells_whether_the_driver_is_late_or_not() {
    let text = "
switches: { s: {} }
clip: { w: { subnet: 10.7.0.0/24 } }
hosts:
  x: { on: s, elan: w, ip: 10.7.0.1, adapter: { paths: { 7: { pcr: 20000 } } }, sockets: [
    { vc: 7.50, name: one, size: 4792, pdus: 1, start: 1s }, { vc: 7.51, name: two, size: 4792, pdus: 1, start: 1s }] }
  y: { on: s, elan: w, ip: 10.7.0.2, sockets: [
    { vc: 0.50, listen: sink, name: in1 }, { vc: 0.51, listen: sink, name: in2 }] }
pvcs:
  - { from: x, vc: 7.50, to: y, to_vc: 0.50 }
  - { from: x, vc: 7.51, to: y, to_vc: 0.51 }
";
    let checked = aerostat_lab::parse("paths.atm.yml", text, &[]);
    let lab = checked.unwrap_or_else(|found| panic!("{found}")).lab;
    let both = results(&lab).map(|report| {
        let sent = report.dialogues.iter().filter(|one| one.sent > 0);
        let all: Vec<_> = sent
            .map(|one| {
                (
                    one.from.1.clone(),
                    one.sent,
                    one.delivered,
                    one.delay.max_us,
                )
            })
            .collect();
        assert_eq!(all.len(), 2);
        assert!(
            all.iter().all(|one| (one.1, one.2) == (1, Some(1))),
            "{all:?}"
        );
        let last = all.iter().map(|one| one.3).fold(0.0, f64::max);
        // Two cells on lines of an OC-3 and two propagations come on top, and less than a cell of the path.
        assert!((9_950.0..10_020.0).contains(&last), "{all:?}");
        all
    });
    assert_eq!(both[0], both[1]);
}
