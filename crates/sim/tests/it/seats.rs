//! Seats refuse what a daemon must not do. The daemons are this program's own, so no seat has anything to refuse, in
//! whatever lab: `labs` holds it for all labs of the repository, this file for mixtures of networks and for the labs of
//! the papers.

use crate::bench::{Bench, lab_of, repository_lab};
use crate::check;
use aerostat_node::ip::meter::Path;
use aerostat_proto::Duration;

/// An ELAN and two Classical IP subnets, with NHRP and without, behind two routers.
const MIXED: &str = "
mpoa: true
switches: { s1: {} }
lane: { on: s1, elans: { a: { subnet: 10.1.0.0/24 }, core: { subnet: 10.9.0.0/24 } } }
clip:
  wan: { subnet: 10.20.0.0/24, server: w }
  far: { subnet: 10.30.0.0/24, server: r2, nhrp: true }
routers:
  r1: { on: s1, elans: { a: 10.1.0.1, core: 10.9.0.1 } }
  r2: { on: s1, elans: { core: 10.9.0.2, wan: 10.20.0.1, far: 10.30.0.1 } }
hosts:
  e: { on: s1, elan: a, ip: 10.1.0.10 }
  f: { on: s1, elan: core, ip: 10.9.0.10 }
  w: { on: s1, elan: wan, ip: 10.20.0.10 }
  x: { on: s1, elan: far, ip: 10.30.0.10 }
traffic:
  - { name: e-w, from: e, to: w, kind: ping, rate: 20pps, start: 1s, duration: 5s }
  - { name: w-e, from: w, to: e, kind: udp, rate: 20pps, size: 100, start: 1s, duration: 5s }
  - { name: w-x, from: w, to: x, kind: udp, rate: 20pps, size: 100, start: 1s, duration: 5s }
  - { name: x-e, from: x, to: e, kind: ping, rate: 20pps, start: 1s, duration: 5s }
  - { name: f-w, from: f, to: w, kind: udp, rate: 20pps, size: 100, start: 1s, duration: 5s }
  - { name: f-x, from: f, to: x, kind: udp, rate: 20pps, size: 100, start: 1s, duration: 5s }
";

fn ran(text: &str, set: &[&str]) -> Bench {
    let mut bench = Bench::new(lab_of("mixed", text, set), 1);
    bench.run(Duration::from_secs(7));
    check::seats(&bench).unwrap_or_else(|why| bench.fail(&why));
    bench
}

#[test]
fn no_seat_refuses_anything_where_elans_and_classical_ip_meet() {
    let without: &[&str] = &["clip.far.nhrp=false"];
    for trigger in [&[][..], &["mpoa.trigger=true"]] {
        for nhrp in [&[][..], without] {
            ran(MIXED, &[trigger, nhrp].concat());
        }
    }
}

/// The request for a station of a Classical IP subnet without NHRP is answered: with code 12, and at once. Formerly
/// the seat of the last router's server refused its question, and the client waited 40 s for an answer.
#[test]
fn a_request_for_a_station_of_classical_ip_is_answered_at_once() {
    let bench = ran(MIXED, &[]);
    let refused = "10.20.0.10 is not resolved: the destination is not reachable";
    let story = |part: &str| {
        bench
            .log
            .story
            .iter()
            .filter(|line| line.contains(part))
            .count()
    };
    let told = bench
        .log
        .story
        .iter()
        .find(|line| line.contains("e mpc.resolution.refused"));
    let told = told.unwrap_or_else(|| bench.fail("nobody answered"));
    assert!(
        told.contains("code=12") && told.contains("10.20.0.10"),
        "{told}, not {refused}"
    );
    let time: f64 = told.split(['s', ' ']).next().unwrap().parse().unwrap();
    assert!((1.45..1.46).contains(&time), "{told}");
    assert_eq!(story("e mpc.resolution.retry"), 0);
    // The flow goes on over the routers.
    let flow = bench.flow("e-w");
    let all = bench.log.samples.iter();
    let mut all = all.filter(|sample| sample.flow.0 == flow);
    assert!(all.all(|sample| sample.path == Path::Lane));
}

#[test]
fn no_seat_refuses_anything_while_the_labs_of_the_papers_come_up() {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../labs/papers");
    let mut labs = 0;
    for entry in std::fs::read_dir(dir).unwrap() {
        let file = entry.unwrap().file_name().to_string_lossy().into_owned();
        let Some(name) = file.strip_suffix(".atm.yml") else {
            continue;
        };
        let mut lab = repository_lab(&format!("papers/{name}"), &[]);
        // The QoS of the thesis needs its traffic; the streams of the others cost time and say nothing more.
        let length = match name {
            "thesis-qos" => Duration::from_secs(3),
            _ => {
                lab.traffic.clear();
                Duration::from_secs(3)
            }
        };
        let mut bench = Bench::new(lab, 1);
        bench.run(length);
        check::seats(&bench).unwrap_or_else(|why| bench.fail(&format!("{name}: {why}")));
        labs += 1;
    }
    assert!(labs > 10, "{labs} labs");
}
