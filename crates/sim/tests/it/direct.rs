//! Two hosts on one link without a switch.

use crate::bench::{Bench, lab_of, repository_lab};
use crate::losses::books;
use crate::sockets::calls;
use aerostat_node::ip::meter::Side;
use aerostat_proto::Duration;
use aerostat_testing::labs::check;

/// Both ends without a permanent connection for IP; the rest as given.
fn pair(link: &str, rest: &str) -> String {
    format!(
        "switches: {{}}\nlinks: [[a, b, {{ {link} }}]]\n\
         clip: {{ wire: {{ subnet: 10.1.0.0/24, server: a }} }}\n{rest}"
    )
}

const HOSTS: &str = "hosts:
  a: { elan: wire, ip: 10.1.0.1 }
  b: { elan: wire, ip: 10.1.0.2 }
";

#[test]
fn the_lab_carries_ip_and_programs_over_permanent_connections_and_calls() {
    let lab = repository_lab("back-to-back", &["traffic.bulk.duration=100ms"]);
    let end = lab.end();
    let mut bench = Bench::new(lab, 1);
    bench.run(end);
    check::order(&bench).unwrap_or_else(|why| bench.fail(&why));
    check::cells(&bench).unwrap_or_else(|why| bench.fail(&why));
    let (wisk, frac) = (calls(&bench, "wisk"), calls(&bench, "frac"));
    let (talk, echo) = (&wisk["talk"][0], &frac["echo"][0]);
    for (count, pdus) in [("sent_pdus", "50"), ("received_pdus", "50")] {
        assert_eq!((&*talk[count], &*echo[count]), (pdus, pdus));
    }
    assert_eq!(talk["cause"], "16");
    assert_eq!(frac["sink"][0]["received_pdus"], "100");
}

/// An echo of 56 octets has 3 cells: twice their time and the delay of the link.
#[test]
fn a_round_trip_is_that_of_the_cells_and_nothing_else() {
    for (rate, cell) in [
        ("taxi", 4320.0),
        ("oc3", 424.0e9 / 149.76e6),
        ("ds3-plcp", 125_000.0 / 12.0),
        ("ds3-hec", 424.0e9 * 85.0 / (44.736e6 * 84.0)),
        ("e3", 12_500.0),
    ] {
        let flow =
            "traffic: [{ from: a, to: b, kind: ping, rate: 10pps, start: 5s, duration: 1s }]\n";
        let pvcs = "pvcs: [{ from: a, vc: 0.100, to: b }]\n";
        let text = pair(
            &format!("rate: {rate}, delay: 1us"),
            &format!("{pvcs}{HOSTS}{flow}"),
        );
        let mut bench = Bench::new(lab_of("direct.atm.yml", &text, &[]), 1);
        bench.run(Duration::from_secs(7));
        let times = |side| {
            let samples = bench.log.samples.iter().filter(move |s| s.side == side);
            samples.map(|s| s.at).collect::<Vec<_>>()
        };
        let (sent, answered) = (times(Side::Sent), times(Side::Answered));
        assert_eq!((sent.len(), answered.len()), (10, 10), "{rate}");
        // The host at the other end answers at once.
        let trip = answered[9].since(sent[9]).as_nanos() as f64;
        let theory = 2.0 * (3.0 * cell + 1000.0);
        assert!(
            (trip - theory).abs() < 4.0,
            "{rate}: {trip} ns, not {theory}"
        );
    }
}

/// With a server at the end that plays the network side, and with one at the other end.
#[test]
fn calls_are_made_from_both_ends() {
    for server in ["a", "b"] {
        let text = pair("rate: oc3", HOSTS).replace("server: a", &format!("server: {server}"));
        let text = format!(
            "{text}traffic:\n  - {{ name: there, from: a, to: b, kind: ping, rate: 10pps, start: 3s, duration: 1s }}\n  \
             - {{ name: back, from: b, to: a, kind: ping, rate: 10pps, start: 3s, duration: 1s }}\n"
        );
        for flow in 0..2 {
            let books = books(&text, flow);
            assert_eq!(
                (books.delivered, books.lost.len()),
                (10, 0),
                "{server} {flow}"
            );
        }
    }
}

/// Restarts of either end, and a cut: calls end and are made again, and the labels are free again.
#[test]
fn an_end_that_restarts_is_called_again() {
    for node in ["a", "b"] {
        let sockets = "hosts:
  a: { elan: wire, ip: 10.1.0.1, sockets: [{ name: c, call: b, pdus: 5, rate: 50pps, every: 100ms }, { name: l, listen: sink, selector: e1 }] }
  b: { elan: wire, ip: 10.1.0.2, sockets: [{ name: c, call: a/e1, pdus: 5, rate: 50pps, every: 100ms, selector: e2 }, { name: l, listen: sink }] }
";
        let faults = format!(
            "faults: [{{ at: 4s, crash: {node} }}, {{ at: 6s, restart: {node} }}, {{ at: 9s, link_down: a-b }}, {{ at: 10s, link_up: a-b }}]\n"
        );
        let text = pair("rate: oc3", &format!("{sockets}{faults}"));
        let mut bench = Bench::new(lab_of("direct.atm.yml", &text, &[]), 1);
        bench.run(Duration::from_secs(20));
        check::cells(&bench).unwrap_or_else(|why| bench.fail(&why));
        for host in ["a", "b"] {
            let calls = &calls(&bench, host)["c"];
            let last = calls.iter().filter(|call| call["cause"] == "16").count();
            assert!(last > 0, "{node} {host}: {calls:?}");
            let labels: Vec<u32> = calls
                .iter()
                .filter_map(|call| call["vc"].strip_prefix("0.")?.parse().ok())
                .collect();
            assert!(labels.iter().all(|vci| *vci >= 1024), "{labels:?}");
        }
    }
}
