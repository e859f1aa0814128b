//! Policers in virtual time, where cells move one by one.

use crate::bench::Bench;

/// Thirty CBR connections over the same links, all in phase, beside best effort. The distances of their cells at the
/// second switch vary more than any tolerance.
fn lab() -> String {
    let mut programs = String::new();
    let mut ends = String::new();
    let mut pvcs = String::new();
    for n in 0..30 {
        let vci = 100 + n;
        programs +=
            &format!("      - {{ vc: 0.{vci}, name: p{n}, size: 1000, pdus: 60, rate: 50pps }}\n");
        ends += &format!("      - {{ vc: 0.{vci}, name: e{n}, listen: sink }}\n");
        pvcs += &format!("  - {{ from: x, vc: 0.{vci}, to: y, pcr: 1800, police: true }}\n");
    }
    format!(
        "
switches: {{ s1: {{}}, s2: {{}}, s3: {{}} }}
links: [[s1, s2, {{ rate: 25.6 }}], [s2, s3, {{ rate: 25.6 }}]]
clip: {{ w: {{ subnet: 10.7.0.0/24, server: y }} }}
hosts:
  x:
    on: s1
    elan: w
    ip: 10.7.0.1
    sockets:
{programs}  y:
    on: s3
    elan: w
    ip: 10.7.0.2
    sockets:
{ends}pvcs:
{pvcs}until: 3s
"
    )
}

#[test]
fn many_contracts_that_are_kept_lose_nothing_behind_any_number_of_switches() {
    let lab = aerostat_lab::parse("policing.atm.yml", &lab(), &[]);
    let lab = lab.unwrap_or_else(|wrong| panic!("{wrong}")).lab;
    let end = lab.end();
    let switches: Vec<_> = lab.switches().map(|(id, ..)| id).collect();
    let mut bench = Bench::new(lab, 1);
    bench.run(end);
    for id in switches {
        let node = bench.world.node(aerostat_sim::NodeId(id.0)).expect("on");
        let switch = node.as_switch().expect("a switch");
        let permanent: Vec<_> = switch.permanent().collect();
        assert_eq!(permanent.len(), 30);
        for info in permanent {
            // 60 PDUs of 21 cells.
            assert_eq!((info.cells, info.policed), ([1260, 0], [0, 0]));
        }
    }
}

/// Three hosts' worth of contracts with no tolerance to speak of. They hold where cells enter the network; between the
/// switches, where queues have changed the distances of cells, the tolerance of the link counts.
#[test]
fn the_tolerance_of_a_contract_holds_where_cells_enter_the_network() {
    let text = |cdvt: &str| {
        let mut text = format!(
            "
switches: {{ s1: {{ police: true }}, s2: {{}} }}
links: [[s1, s2, {{ police: true, cdvt: {cdvt} }}]]
clip: {{ w: {{ subnet: 10.7.0.0/24 }} }}
hosts:
  y: {{ on: s2, elan: w, ip: 10.7.0.9, sockets: [{{ vc: 0.50, listen: sink, name: a }}, {{ vc: 0.51, listen: sink, name: b }}, {{ vc: 0.52, listen: sink, name: c }}] }}
"
        );
        let mut pvcs = String::from("pvcs:\n");
        for n in 0..3 {
            let (vc, rate) = (format!("0.{}", 50 + n), 100 + n);
            text += &format!(
                "  x{n}: {{ on: s1, elan: w, ip: 10.7.0.{}, sockets: [{{ vc: {vc}, name: p, size: 1000, pdus: 200, rate: {rate}pps, start: 1s }}] }}\n",
                n + 1
            );
            pvcs += &format!(
                "  - {{ from: x{n}, vc: {vc}, to: y, qos: 'cbr:pcr={},cdvt=0.1' }}\n",
                30_000 + 1000 * n
            );
        }
        format!("{text}{pvcs}until: 4s\n")
    };
    for (cdvt, discards) in [("10ms", false), ("0us", true)] {
        let lab = aerostat_lab::parse("policing.atm.yml", &text(cdvt), &[]);
        let lab = lab.unwrap_or_else(|wrong| panic!("{wrong}")).lab;
        let end = lab.end();
        let switches: Vec<_> = lab.switches().map(|(id, ..)| id).collect();
        let mut bench = Bench::new(lab, 1);
        bench.run(end);
        let policed = switches.iter().map(|id| {
            let node = bench.world.node(aerostat_sim::NodeId(id.0)).expect("on");
            let switch = node.as_switch().expect("a switch");
            switch
                .permanent()
                .map(|info| info.policed[0] + info.policed[1])
                .sum::<u64>()
        });
        let policed: Vec<u64> = policed.collect();
        assert_eq!(
            (policed[0], policed[1] > 0),
            (0, discards),
            "{cdvt}: {policed:?}"
        );
    }
}
