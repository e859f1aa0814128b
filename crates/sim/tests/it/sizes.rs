//! Calls to servers with SDUs that are longer than the servers need. Source: RFC 2225 §7.2, Q.2931 §4.5.5: the called
//! side answers with its own size.

use crate::bench::Bench;
use crate::sockets::calls;
use aerostat_proto::Duration;

/// All kinds of servers, and a stranger with these programs.
fn lab(programs: &str) -> String {
    format!(
        "
mpoa: true
switches: {{ s: {{}} }}
lane: {{ on: s, elans: {{ a: {{ subnet: 10.1.0.0/24 }}, b: {{ subnet: 10.2.0.0/24 }} }} }}
clip: {{ w: {{ subnet: 10.7.0.0/24, server: c, nhrp: true }}, other: {{ subnet: 10.9.0.0/24 }} }}
routers: {{ r: {{ on: s, elans: {{ a: 10.1.0.1, b: 10.2.0.1, w: 10.7.0.1 }} }} }}
hosts:
  h: {{ on: s, elan: a, ip: 10.1.0.10 }}
  c: {{ on: s, elan: w, ip: 10.7.0.10 }}
  n: {{ on: s, elan: w, ip: 10.7.0.11 }}
  x: {{ on: s, elan: other, ip: 10.9.0.10, sockets: [{programs}] }}
until: 8s
"
    )
}

fn run(programs: &str) -> Bench {
    let lab = aerostat_lab::parse("sizes.atm.yml", &lab(programs), &[]);
    let lab = lab.unwrap_or_else(|wrong| panic!("{wrong}")).lab;
    let mut bench = Bench::new(lab, 1);
    bench.run(Duration::from_secs(8));
    bench
}

/// No caller is refused with cause 88 (incompatible destination) because the SDUs may be long; the connection has the
/// size that the server gives.
#[test]
fn servers_answer_with_their_own_sizes() {
    let mut bench = run("");
    let nodes: Vec<_> = bench.lab.nodes().map(|(id, _)| id).collect();
    let mut servers = Vec::new();
    for id in nodes {
        let node = bench.world.node(aerostat_sim::NodeId(id.0)).expect("on");
        let Some(station) = node.as_station() else {
            continue;
        };
        let host = station.host();
        for one in host.signalling().listeners() {
            let name = host.user_name(one.user.0.into()).expect("a service");
            let kind = name
                .trim_end_matches(|c: char| c.is_ascii_digit())
                .to_owned();
            // A LANE client takes data of its own ELAN, whose size it knows.
            servers.extend((kind != "lec").then_some((kind, one.address, one.sap)));
        }
    }
    let kinds: std::collections::BTreeSet<_> =
        servers.iter().map(|(kind, ..)| kind.as_str()).collect();
    let wanted = ["bus", "clip", "lecs", "les", "mpc", "mps", "nhc"];
    assert!(wanted.iter().all(|kind| kinds.contains(kind)), "{kinds:?}");
    let programs: Vec<String> = servers
        .iter()
        .zip(0..)
        .map(|((_, address, sap), n)| {
            let sap = match sap.to_string() {
                none if none.is_empty() => "any".to_owned(),
                text => text,
            };
            format!("{{ name: p{n}, call: '{address}', sap: '{sap}', qos: 'ubr:sdu=40000', pdus: 1, size: 40, start: 6s }}")
        })
        .collect();
    bench = run(&programs.join(", "));
    let rows = calls(&bench, "x");
    for ((kind, address, _), n) in servers.iter().zip(0..) {
        let row = &rows[&format!("p{n}")][0];
        let cause = &*row["cause"];
        assert_ne!(cause, "88", "{kind} at {address}: {row:?}");
        // The BUS takes members only, and an NHRP client only its server.
        let strict = ["bus", "nhc"].contains(&kind.as_str());
        assert_eq!(cause == "21", strict, "{kind} at {address}: {row:?}");
    }
}
