//! Trials after RFC 2544 beside closed forms: `labs/rfc2544.atm.yml`.

use crate::bench::lab_of;
use aerostat_lab::Lab;
use aerostat_lab::model::Share;
use aerostat_proto::Duration;
use aerostat_sim::benchmark::{Bench, Failure, sizes_of};

const TEXT: &str = include_str!("../../../../labs/rfc2544.atm.yml");
const TRIAL: Duration = Duration::from_millis(100);
/// Steps of a tenth of a per cent.
const STEPS: u64 = 1000;

fn lab(frames: &str) -> Lab {
    lab_of(
        "rfc2544",
        &TEXT.replace("frames: 512", &format!("frames: {frames}")),
        &[],
    )
}

fn bench<'a>(lab: &'a Lab, name: &str) -> Bench<'a> {
    Bench {
        lab,
        flow: sizes_of(lab, name).expect("a load")[0],
        duration: TRIAL,
        steps: STEPS,
    }
}

/// A queue with room for `room` that is served at `service` a second takes (service × time + room) within a trial; the
/// highest load without a loss is that over `full` × time, in steps.
fn highest(full: f64, service: f64, room: f64) -> f64 {
    let time = TRIAL.as_secs_f64();
    (service * time + room) / (full * time) * STEPS as f64
}

#[test]
fn a_switch_carries_what_its_line_and_its_buffer_take() {
    let lab = lab("512");
    let bench = bench(&lab, "switch");
    let found = bench
        .throughput(&|_| false)
        .expect("a search")
        .expect("a load without a loss");
    // Cells: 80 000 come at 100 %, 40 000 leave; new PDUs find room up to three quarters of a connection's 4096 cells.
    let theory = highest(80_000.0, 40_000.0, 3072.0);
    // A frame of 11 cells is 1.4 steps.
    let step = found.share.numerator as f64;
    assert!((step - theory).abs() < 2.5, "{step} {theory}");
    assert_eq!((found.lost(), found.lost_by.len()), (0, 0));
    // The last cell waits for the whole queue; the trial before it ends with cells on three lines.
    let longest = found.delay.max_us;
    assert!((longest - 3072.0 * 25.0).abs() < 1000.0, "{longest}");
    // A burst of n frames at 80 000 cells/s leaves half of its cells in the queue: 2 × 3072 cells.
    let burst = bench.back_to_back(&|_| false).expect("a search");
    assert!(
        !burst.at_limit && burst.frames.abs_diff(2 * 3072 / 11) <= 2,
        "{burst:?}"
    );
}

#[test]
fn a_router_carries_its_packets_and_its_queue() {
    let lab = lab("64");
    let bench = bench(&lab, "router");
    let found = bench
        .throughput(&|_| false)
        .expect("a search")
        .expect("a load without a loss");
    // Frames: 40 000 come at 100 %, 20 000 are forwarded, 50 wait, and one is being forwarded.
    let theory = highest(40_000.0, 20_000.0, 51.0);
    let step = found.share.numerator as f64;
    assert!((step - theory).abs() < 2.0, "{step} {theory}");
    // Above that, what is lost is what comes less what is forwarded and what waits.
    let trials = bench.loss_rates(&|_| false).expect("trials");
    for trial in &trials {
        let carried = (2000.0_f64 + 51.0).min(trial.offered as f64);
        let lost = trial.offered as f64 - carried;
        assert!(
            (trial.lost() as f64 - lost).abs() <= 5.0,
            "{trial:?} {lost}"
        );
        let places: Vec<&str> = trial.lost_by.keys().map(String::as_str).collect();
        assert!(
            trial.lost() == 0 || places == ["r: router queue full"],
            "{places:?}"
        );
    }
    // 100 % to 60 % lose frames; 50 % and 40 % do not.
    assert_eq!(trials.len(), 7);
    assert_eq!(trials.iter().filter(|trial| trial.lost() == 0).count(), 2);
}

#[test]
fn what_cannot_be_tested_is_told() {
    let lab = lab("512");
    assert!(matches!(sizes_of(&lab, "no-such"), Err(Failure::Unfit(_))));
    let poisson = TEXT.replace("frames: 512, ", "frames: 512, arrivals: poisson, ");
    let poisson = lab_of("rfc2544", &poisson, &[]);
    assert!(
        matches!(sizes_of(&poisson, "switch"), Err(Failure::Unfit(why)) if why.contains("poisson"))
    );
    let bench = bench(&lab, "switch");
    assert_eq!(bench.throughput(&|_| true), Err(Failure::Interrupted));
}

#[test]
fn a_trial_is_as_long_by_the_clock_of_its_sender() {
    let by = |clock: &str| {
        let text = TEXT.replace("frames: 512", "frames: 1518");
        let text = text.replacen("  sender: {", &format!("  sender: {{ {clock}"), 1);
        let lab = lab_of("rfc2544", &text, &[]);
        let bench = bench(&lab, "switch");
        bench.trial(Share::ALL, TRIAL, &|_| false).expect("a trial")
    };
    let known = by("");
    assert!(known.offered > 100 && known.lost() > 0, "{known:?}");
    for clock in [
        "clock: { phase: 2100ms }, ",
        "clock: { phase: 2900ms }, ",
        "clock: { phase: 10s, ppm: -1000 }, ",
    ] {
        let found = by(clock);
        assert_eq!(found.offered, known.offered, "{clock}");
        // Other phases of the sender against the line, and 0.1 % less load.
        let frames = found.delivered.abs_diff(known.delivered);
        assert!(frames <= 1, "{clock}: {found:?} {known:?}");
    }
}

#[test]
fn a_trial_whose_sender_stops_is_no_result() {
    let text = TEXT.replace("frames: 512", "frames: 1518");
    let lab = lab_of("rfc2544", &text, &[]);
    let start = lab.traffic[sizes_of(&lab, "switch").expect("a load")[0]].start;
    let at = start.as_millis() + 50;
    let fault = format!("{text}\nfaults: [{{ at: {at}ms, crash: sender }}]\n");
    let lab = lab_of("rfc2544", &fault, &[]);
    let found = bench(&lab, "switch").trial(Share::ALL, TRIAL, &|_| false);
    assert!(
        matches!(found, Err(Failure::Short { sent, planned }) if sent < planned),
        "{found:?}"
    );
}
