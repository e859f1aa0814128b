//! Hosts with several versions of the UNI in one lab, and requests that only the newest supports.

use crate::bench::{Bench, lab_of};
use aerostat_node::inspect::StateKind;
use aerostat_node::ip::apps::AppResult;
use aerostat_proto::Duration;
use aerostat_proto::uni::Version;
use aerostat_sim::NodeId;

const LAB: &str = "
name: versions
switches: { s1: {}, s2: {} }
links: [[s1, s2, { rate: 10Mbps }]]
lane: { on: s1, uni: 3.0, elans: { a: { subnet: 10.1.0.0/24 } } }
hosts:
  h30: { on: s1, elan: a, ip: 10.1.0.30, uni: 3.0, sockets: [{ call: h31/e1, qos: 'cbr,aal5:max_pcr=20000', start: 2s, hold: 9s }] }
  h31: { on: s2, elan: a, ip: 10.1.0.31, sockets: [{ listen: sink, selector: e1 }] }
  h40: { on: s1, elan: a, ip: 10.1.0.40, uni: 4.0, sockets: [
    { name: flexible, call: k40/e1, qos: 'cbr,aal5:max_pcr=10000,min_pcr=1000', start: 3s, hold: 8s },
    { name: rigid, call: k40/e1, qos: 'cbr,aal5:max_pcr=10000', start: 3s, hold: 8s } ] }
  k40: { on: s2, elan: a, ip: 10.1.0.41, uni: 4.0, ilmi: true, sockets: [{ listen: sink, selector: e1 }] }
traffic:
  - { name: old-to-new, from: h30, to: k40, kind: ping, start: 4s, duration: 2s }
  - { name: new-to-old, from: h40, to: h30, kind: ping, start: 4s, duration: 2s }
  - { name: middle, from: h31, to: h40, kind: ping, start: 4s, duration: 2s }
";

#[test]
fn hosts_of_three_versions_in_one_elan() {
    let mut bench = Bench::new(lab_of("versions.atm.yml", LAB, &[]), 1);
    bench.run(Duration::from_secs(8));
    let find = |name: &str| NodeId(bench.lab.find(name).expect("a node").0);
    let node = |name: &str| bench.world.node(find(name)).expect("on");
    for (name, version) in [
        ("lane", Version::Uni30),
        ("h30", Version::Uni30),
        ("h31", Version::Uni31),
        ("h40", Version::Uni40),
        ("k40", Version::Uni40),
    ] {
        let host = node(name).as_station().expect("a host").host();
        assert_eq!(host.signalling().version(), version, "{name}");
    }
    // 10 Mbit/s are 23 584 cells/s, of which 95 % can be reserved; 20 000 are taken.
    let left = 23_584 * 95 / 100 - 20_000;
    let host = node("h40").as_station().expect("a host").host();
    let calls = host.signalling().calls();
    let rates: Vec<_> = calls
        .filter(|call| call.called.selector() == 0xe1)
        .map(|call| call.qos.tx.max_pcr)
        .collect();
    assert_eq!(
        rates,
        [Some(left)],
        "the flexible one; the rigid one failed"
    );
    let tables = node("h40")
        .inspect(StateKind::Sockets, bench.now())
        .expect("sockets");
    let text = format!("{tables:?}");
    assert!(text.contains("37"), "cell rate not available: {text}");
    let results = &bench.log.results;
    let pings = results.values().filter_map(|result| match result {
        AppResult::Ping(ping) => Some((ping.sent, ping.received)),
        _ => None,
    });
    let pings: Vec<_> = pings.collect();
    assert_eq!(pings.len(), 3);
    assert!(
        pings.iter().all(|(sent, got)| *sent > 0 && sent == got),
        "{pings:?}"
    );
}
