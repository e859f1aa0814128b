//! Shortcuts after members of ELANs were absent. A request for a member that has not come back yet costs a retry
//! (MPC-p4: 5 s, doubling, until MPC-p5: 40 s), not the hold-down after a definite refusal (MPC-p6: 160 s).
//!
//! The times of MPOA are those of the standard, unlike in `faults`, whose hold-down is short. Members are absent for
//! less than MPC-p5, because a longer unanswered request leads to a hold-down of MPC-p6.

use crate::bench::{Bench, lab_of};
use crate::faults::{SMALL, far};
use aerostat_node::host::ServiceKind::{self, Bus, Lec, Les, Mpc, Mps};
use aerostat_node::ip::meter::Path;
use aerostat_proto::Duration;

/// Waits of a client between its requests: 5, 10 and 20 s. The value is the longest, plus time to detect the flow and
/// for ARP.
const RETRY: f64 = 20.0 + 5.0;

/// The lab of `faults` with the default times of MPOA, and shortcuts for all flows.
fn settled(seed: u64) -> Bench {
    let (_, rest) = SMALL.split_once("switches:").expect("a lab");
    let text = format!("mpoa: {{ start: 6s, flow_detect: 5 frames per 1s }}\nswitches:{rest}");
    let mut bench = Bench::new(lab_of("small", &text, &[]), seed);
    let far = far(&bench);
    bench.until("shortcuts at first", 60.0, |bench| {
        bench.all_joined()?;
        bench.all_by(&far, Path::Shortcut)
    });
    bench
}

/// Makes a service, or a whole node, absent for some time. Returns how long after all have joined again the shortcuts
/// exist.
#[track_caller]
fn returns(name: &str, kind: Option<ServiceKind>, away: Duration, seed: u64) -> Duration {
    let mut bench = settled(seed);
    let node = bench.node(name);
    match kind {
        Some(kind) => bench.crash(node, kind),
        None => bench.power_off(node),
    }
    bench.run(away);
    match kind {
        Some(kind) => bench.restart(node, kind),
        None => bench.power_on(node),
    }
    let what = kind.map_or_else(|| name.to_owned(), |kind| format!("{kind} of {name}"));
    let what = format!("after {what} was away for {away:?}");
    bench.until(&format!("members {what}"), 15.0, Bench::all_joined);
    let far = far(&bench);
    let time = bench.until(&format!("shortcuts {what}"), RETRY, |bench| {
        bench.all_by(&far, Path::Shortcut)
    });
    // A refusal would have put a flow on hold, unless another request of the flow was outstanding.
    let told = |line: &&String| line.contains(" mpc.resolution.refused:");
    if let Some(refusal) = bench.log.story.iter().find(told) {
        bench.fail(&format!("{what}: {refusal}"));
    }
    time
}

/// Makes each service or node absent for each of these times, in milliseconds.
fn all_return(who: &[(&str, Option<ServiceKind>)], times: &[u64]) {
    for (name, kind) in who {
        for (number, ms) in times.iter().enumerate() {
            let away = Duration::from_millis(*ms);
            let time = returns(name, *kind, away, 70 + number as u64);
            println!("{name} {kind:?} away for {away:?}: shortcuts {time:?} after the last joined");
        }
    }
}

#[test]
fn a_flow_has_its_shortcut_soon_after_a_lane_server_or_its_node_came_back() {
    all_return(
        &[("lane", Some(Les)), ("lane", Some(Bus)), ("lane", None)],
        &[400, 700, 2000, 8000, 20_000],
    );
}

#[test]
fn a_flow_has_its_shortcut_soon_after_a_lane_client_came_back() {
    all_return(
        &[("r1", Some(Lec)), ("r2", Some(Lec)), ("h2", Some(Lec))],
        &[0, 400, 1000, 2500, 7000, 30_000],
    );
}

#[test]
fn a_flow_has_its_shortcut_soon_after_a_router_or_host_came_back() {
    all_return(
        &[
            ("r1", None),
            ("r2", None),
            ("h2", None),
            ("r1", Some(Mps)),
            ("r2", Some(Mps)),
            ("h2", Some(Mpc)),
        ],
        &[500, 5000, 30_000],
    );
}
