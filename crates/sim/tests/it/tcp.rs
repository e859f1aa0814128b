//! The lab with small TCP buffers beside its closed forms.

use aerostat_lab::report::RunReport;
use aerostat_node::ip::apps::AppResult;
use aerostat_sim::run::LabRun;

fn run() -> (aerostat_lab::Lab, RunReport) {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../labs/tcp-windows.atm.yml"
    );
    let lab = aerostat_lab::read(path.as_ref(), &[]).expect("the lab").lab;
    let mut watcher = ();
    let mut running = LabRun::new(&lab, &mut watcher);
    running.start();
    running.run_to_end();
    let report = running.finish().expect("no captures");
    (lab, report)
}

#[test]
fn one_segment_waits_for_the_acknowledgement_and_three_cross_in_a_round_trip() {
    let (lab, report) = run();
    let mbps = |name: &str| {
        let index = lab.traffic.iter().position(|flow| flow.name == name);
        let of = |(flow, role, result): &(usize, &str, AppResult)| match result {
            AppResult::TcpSource(source) if Some(*flow) == index && *role == "from" => {
                Some(source.throughput_mbps)
            }
            _ => None,
        };
        report.programs.iter().find_map(of).expect(name)
    };
    // A segment of 9136 octets is a PDU of 192 cells, an acknowledgement has 2. TAXI: 54 octets in 80 ns steps for each
    // cell. Three lines one way, all cells except the first ones of a PDU cross them together.
    let cell = 54.0 * 80e-9;
    let way = 0.005 + 2.0 * 0.000_005;
    let round_trip = 2.0 * way + (192.0 + 2.0 + 4.0 * 1.0) * cell;
    let segment = 9136.0 * 8.0 / 1e6;
    for (name, form) in [
        ("interval", segment / (0.2 + round_trip)),
        ("tick", segment / 0.2),
        ("window", 3.0 * segment / round_trip),
    ] {
        let got = mbps(name);
        // Slow start costs some round trips.
        assert!(
            (got / form - 1.0).abs() < 0.03,
            "{name}: {got}, {form} in theory"
        );
    }
    let stacks: Vec<_> = lab.traffic.iter().map(|flow| lab.tcp_of(flow)).collect();
    let [none, reno] = ["reno none", "reno"].map(|name| Some(name.to_owned()));
    assert_eq!(stacks, [none.clone(), none, reno]);
}
