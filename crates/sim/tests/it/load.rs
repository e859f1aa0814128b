//! Load in per cent of a link: frames, cells and books of each process of arrivals.

use aerostat_lab::model::{FlowKind, Lab};
use aerostat_lab::report::RunReport;
use aerostat_sim::run::run;
use std::path::PathBuf;

const LAB: &str = "
switches: { s1: {}, s2: {} }
links: [[s1, s2, { rate: 25.6 }]]
lane: { on: s1, elans: { a: { subnet: 10.1.0.0/24 } } }
hosts:
  x: { on: s1, elan: a, ip: 10.1.0.10 }
  y: { on: s1, elan: a, ip: 10.1.0.11 }
  z: { on: s2, elan: a, ip: 10.1.0.20 }
";

fn of(flows: &str) -> (Lab, RunReport) {
    let text = format!(
        "{LAB}traffic:\n  - {{ name: warm, from: x, to: z, kind: ping, rate: 10pps, start: 2s, duration: 500ms }}\n{flows}"
    );
    let lab = aerostat_lab::parse("t.atm.yml", &text, &[])
        .unwrap_or_else(|d| panic!("{d}"))
        .lab;
    let report = run(&lab, None, &mut ()).expect("no captures");
    for flow in &report.flows {
        assert!(flow.paths.iter().all(|path| path.balances()), "{flow:?}");
    }
    (lab, report)
}

/// Packets that a flow offered, delivered and lost.
fn sums(report: &RunReport, flow: usize) -> [u64; 3] {
    let flow = &report.flows[flow];
    [
        flow.sum(|path| path.offered),
        flow.sum(|path| path.received_packets),
        flow.sum(|path| path.lost),
    ]
}

#[test]
fn a_load_offers_its_share_of_the_cells_of_a_link() {
    let (lab, report) = of(
        "  - { name: l, from: x, to: z, kind: load, load: 99.9%, link: s1-s2, frames: [64, 512, 1518], start: 3s, duration: 1s }\n",
    );
    // 59 111 cells/s; 2, 11 and 32 cells a frame. The frames of one second, rounded up.
    for (index, cells) in [(1, 2.0), (2, 11.0), (3, 32.0)] {
        let frames = (59_111.0_f64 * 0.999 / cells).ceil() as u64;
        assert_eq!(
            sums(&report, index),
            [frames, frames, 0],
            "{}",
            lab.traffic[index].name
        );
    }
}

#[test]
fn two_loads_above_the_rate_of_a_link_lose_what_it_does_not_carry() {
    let (_, report) = of("  - { name: a, from: x, to: z, kind: load, load: 80%, link: s1-s2, frames: 64, start: 3s, duration: 1s, expect: loss }
  - { name: b, from: y, to: z, kind: load, load: 80%, link: s1-s2, frames: 64, arrivals: poisson, start: 3s, duration: 1s, expect: loss }
");
    let [[offered_a, got_a, lost_a], [offered_b, got_b, lost_b]] =
        [1, 2].map(|flow| sums(&report, flow));
    assert_eq!(offered_a, (59_111.0_f64 * 0.8 / 2.0).ceil() as u64);
    // A Poisson process: four standard deviations.
    assert!(offered_b.abs_diff(offered_a) < 4 * 154, "{offered_b}");
    // The link carries a second of frames and what waits at the end: at most 8192 cells.
    let carried = got_a + got_b;
    assert!(
        (29_555..=29_555 + 4096 + 10).contains(&carried),
        "{carried}"
    );
    assert_eq!(offered_a + offered_b, carried + lost_a + lost_b);
}

#[test]
fn periods_offer_their_mean_and_ticks_their_bursts() {
    let (lab, report) = of("  - { name: o, from: x, to: z, kind: load, load: 20%, link: s1-s2, frames: 64, arrivals: onoff, on: 2ms, off: 6ms, start: 3s, duration: 8s }
  - { name: t, from: y, to: z, kind: load, load: 30%, link: s1-s2, frames: 512, arrivals: ticks, spacing: 76us, start: 12s, duration: 1s }
");
    let [offered, ..] = sums(&report, 1);
    let mean = 59_111.0 * 0.2 / 2.0 * 8.0;
    // 1000 cycles: the time on has a standard deviation of √(2 · 1000) · 2 ms · 6/8 within 2 s on.
    assert!(
        (offered as f64 / mean - 1.0).abs() < 4.0 * 0.067 / 2.0,
        "{offered} {mean}"
    );
    // All that has become due at a tick: 1612 frames a second, 16 or 17 each 10 ms.
    let FlowKind::Udp { rate, .. } = lab.traffic[2].kind else {
        panic!("{:?}", lab.traffic);
    };
    assert!((1e9 / rate.packets.mean_gap() - 1612.1).abs() < 0.1);
    let [offered, got, lost] = sums(&report, 2);
    assert!(
        (1595..=1613).contains(&offered) && got == offered && lost == 0,
        "{offered} {got}"
    );
    // A burst of 16 frames of 11 cells waits for the slow link: its last frame 16 × 11 cells, less the time of spacing.
    let longest = report.flows[2].paths[0].delay.max_us;
    let burst = 16.0 * (11.0 * 1e6 / 59_111.0 - 76.0);
    assert!(
        (burst..burst + 400.0).contains(&longest),
        "{longest} {burst}"
    );
}

/// A directory that goes away.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_trace_beside_the_lab_file_is_sent_as_it_is() {
    let directory = Scratch(PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("trace-of-a-load"));
    std::fs::create_dir_all(directory.0.join("traces")).unwrap();
    std::fs::write(
        directory.0.join("traces/t.txt"),
        "# t\n0 64\n0.000001 1518\n0.25 512\n0.25 512\n",
    )
    .unwrap();
    let path = directory.0.join("t.atm.yml");
    let flow = "traffic: [{ from: x, to: z, kind: load, arrivals: trace, trace: traces/t.txt, start: 3s }]\n";
    std::fs::write(&path, format!("{LAB}{flow}")).unwrap();
    let lab = aerostat_lab::read(&path, &[]).unwrap().lab;
    let report = run(&lab, None, &mut ()).expect("no captures");
    let path_report = &report.flows[0].paths[0];
    assert_eq!(sums(&report, 0), [4, 4, 0]);
    assert_eq!(path_report.sent_octets, 18 + 1472 + 2 * 466);
    assert_eq!(
        report.flows[0].last_offered.unwrap().as_nanos(),
        3_250_000_000
    );
    // A mistake in the trace is one of the lab, at the key, with line and field.
    std::fs::write(directory.0.join("traces/t.txt"), "1 64\n0 64\n").unwrap();
    let said = aerostat_lab::read(&path, &[]).unwrap_err().to_string();
    assert!(
        said.contains("traces/t.txt: line 2, field 1 (time): it is before"),
        "{said}"
    );
    assert!(said.contains(":9:65: error"), "{said}");
}

#[test]
fn groups_have_jains_index() {
    let (lab, report) = of("  - { name: a, from: x, to: z, kind: load, load: 40%, link: s1-s2, frames: 64, start: 3s, duration: 1s, group: g }
  - { name: b, from: y, to: z, kind: load, load: 20%, link: s1-s2, frames: 64, start: 3s, duration: 1s, group: g }
");
    let rows = aerostat_lab::fairness::of(&lab, &report.flows);
    let [group, all] = &rows[..] else {
        panic!("{rows:?}");
    };
    assert_eq!(
        (group.group.as_deref(), group.flows, all.flows),
        (Some("g"), 2, 3)
    );
    // 2 : 1 gives 9 / 10, except for the delay of the last frame.
    assert!((group.index.unwrap() - 0.9).abs() < 1e-3, "{group:?}");
}
