//! `labs/cell-gateway.atm.yml`: cells in Ethernet frames to a gateway, and beyond it in ATM.

use crate::losses::run;

const LAB: &str = include_str!("../../../../labs/cell-gateway.atm.yml");

/// Megabits a second of TCP in packets of 9180 octets, which are 192 cells, if the slowest line has so many cells a
/// second.
fn goodput(cells: f64) -> f64 {
    cells / 192.0 * (9180.0 - 40.0) * 8.0 / 1e6
}

/// The books of all flows and programs balance ([`run`] checks those of flows), and TCP has what the slowest line
/// carries.
#[test]
fn tcp_calls_and_a_permanent_connection_go_through_a_gateway() {
    // Half of the time makes the same point sooner.
    let text = LAB.replace("duration: 4s", "duration: 2s");
    assert_ne!(text, LAB);
    let (lab, report) = run(&text);
    // Full frames: 28 cells of 52 octets, and 38 octets around them. The way to the camera is as fast as TAXI.
    let ethernet = 28.0 * 10e6 / ((38.0 + 28.0 * 52.0) * 8.0);
    let taxi = 100e6 / 432.0;
    for (name, cells) in [("bulk", ethernet), ("back", taxi)] {
        let flow = report
            .flows
            .iter()
            .find(|flow| flow.name == name)
            .expect("a flow");
        let [path] = &flow.paths[..] else {
            panic!("{flow:#?}");
        };
        assert_eq!((path.lost, path.in_flight), (0, 0), "{path:#?}");
        let off = path.throughput_mbps / goodput(cells) - 1.0;
        assert!(
            off.abs() < 0.02,
            "{name}: {} Mb/s, {off}",
            path.throughput_mbps
        );
    }
    for (program, pdus) in [("talk", 200), ("pictures", 150)] {
        let mut all = report.dialogues.iter();
        let one = all.find(|one| one.from.1 == program).expect("a program");
        let counts = (one.sent, one.delivered, one.lost(), one.under_way);
        assert_eq!(counts, (pdus, Some(pdus), 0, 0), "{program}");
    }
    for way in &report.circuits.links {
        let link = lab.link(way.link);
        let counters = way.counters;
        let gone = counters.delivered + counters.down + way.on_the_way;
        assert_eq!(counters.sent, gone, "{}: {counters:?}", link.name);
        let most = link.framing.map_or(0, |framing| framing.cells());
        let full = counters.frames * u64::from(most);
        match most {
            0 => assert_eq!(counters.frames, 0, "{}", link.name),
            _ => assert!(
                counters.frames > 0 && counters.frames <= counters.sent && counters.sent <= full,
                "{}: {counters:?}",
                link.name
            ),
        }
    }
}
