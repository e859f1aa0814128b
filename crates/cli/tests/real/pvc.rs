//! `aerostat pvc` with a running lab.

use crate::lab_file;
use crate::live::Runtime;
use std::time::{Duration, Instant};

/// Two hosts whose only path is their permanent connection.
const LAB: &str = "
switches: { sw: {} }
lane: { on: sw, elans: { unused: { subnet: 10.1.0.0/24 } } }
clip: { wan: { subnet: 10.7.0.0/24 } }
hosts:
  x: { on: sw, elan: wan, ip: 10.7.0.1 }
  y: { on: sw, elan: wan, ip: 10.7.0.2 }
pvcs: [{ from: x, vc: 0.100, to: y, to_vc: 0.200 }]
traffic: [{ from: x, to: y, kind: ping, rate: 20pps }]
";

fn rows(text: &str) -> Vec<serde_json::Value> {
    let document: serde_json::Value = serde_json::from_str(text).unwrap();
    assert_eq!(document["schema"], "aerostat.pvc.v1");
    document["rows"].as_array().unwrap().clone()
}

/// Waits until cells arrive at both ends of the only connection.
fn both_ways(lab: &Runtime) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let rows = rows(&lab.ok(&["pvc", "show", "-o", "json"]));
        let cells = |end| rows[0][end].as_u64().unwrap();
        if rows.len() == 1 && cells("cells_a") > 20 && cells("cells_b") > 20 {
            return;
        }
        assert!(Instant::now() < deadline, "{rows:?}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn permanent_connections_come_and_go() {
    let lab = Runtime::embedded("pvc", LAB);
    both_ways(&lab);
    let gone = rows(&lab.ok(&["pvc", "del", "sw", "y.0.200", "-o", "json"]));
    assert_eq!(
        (&gone[0]["a"], &gone[0]["b"]),
        (&"x.0.100".into(), &"y.0.200".into())
    );
    assert!(rows(&lab.ok(&["pvc", "show", "sw", "-o", "json"])).is_empty());
    // The hosts have kept their ends, so a new connection carries their packets again.
    let qos = "cbr:tx:max_pcr=5000,rx:max_pcr=6000";
    let new = ["pvc", "add", "sw", "x.0.100", "y.0.200", "--qos", qos];
    let new = rows(&lab.ok(&[&new[..], &["-o", "json"]].concat()));
    assert_eq!(new[0]["qos"], "cbr,aal5:tx:max_pcr=5000,rx:max_pcr=6000");
    assert_eq!(
        (&new[0]["kind"], &new[0]["policed"]),
        (&"channel".into(), &"no".into())
    );
    both_ways(&lab);
    let rate = ["--qos", "cbr:max_pcr=100"];
    let path = ["pvc", "add", "sw", "x.5", "y.6", "--vp", "--police"];
    let path = rows(&lab.ok(&[&path[..], &rate, &["-o", "json"]].concat()));
    assert_eq!(
        (&path[0]["a"], &path[0]["kind"], &path[0]["policed"]),
        (&"x.5".into(), &"path".into(), &"yes".into())
    );
    assert!(lab.ok(&["pvc", "show"]).contains("y.6"));
    // A link that is cut carries nothing, whatever connections the switch has.
    let states = |command: &[&str]| {
        let rows = lab.rows(command).into_iter();
        let states = rows.map(|row| row["state"].as_str().unwrap().to_owned());
        states.collect::<Vec<_>>()
    };
    let inspected = ["inspect", "sw", "pvc"];
    assert_eq!(states(&inspected), ["up", "up"]);
    lab.ok(&["fault", "link-down", "y-sw"]);
    assert_eq!(states(&inspected), ["down: y-sw", "down: y-sw"]);
    assert_eq!(states(&["pvc", "show"]), ["down: y-sw", "down: y-sw"]);
    assert!(lab.ok(&["pvc", "show", "sw"]).contains("down: y-sw"));
    lab.ok(&["fault", "link-up", "y-sw"]);
    assert_eq!(states(&inspected), ["up", "up"]);
    lab.ok(&["pvc", "del", "sw", "x.5"]);

    for (args, says, hint) in [
        (
            &["add", "sw", "x.0.100", "y.0.201"][..],
            "0.100 is in use at port",
            "inspect sw vc",
        ),
        (
            &["add", "sw", "x.0.5", "y.0.201"],
            "0.5 is reserved",
            "VCIs from 32",
        ),
        (
            &["add", "sw", "x.0.101", "z.0.201"],
            "there is no port 'z'",
            "ports: 0 (lane), 1 (x), 2 (y)",
        ),
        (
            &["add", "sw", "x.0.101", "9.0.201"],
            "there is no port 9",
            "ports: 0",
        ),
        (
            &["add", "sw", "x.101", "y.0.201"],
            "'x.101': expected PORT.VPI.VCI",
            "ports: 0",
        ),
        (
            &["add", "sw", "x.0.99999", "y.0.201"],
            "99999 is too large: VPIs go to 255, VCIs to 65535",
            "",
        ),
        (
            &["add", "sw", "x.0.101", "y.0.201", "--qos", "fast"],
            "fast",
            "cbr:max_pcr",
        ),
        (
            &[
                "add",
                "sw",
                "x.0.101",
                "y.0.201",
                "--qos",
                "cbr:max_pcr=350000",
            ],
            "bandwidth",
            "inspect sw port",
        ),
        (
            &["add", "x", "x.0.101", "y.0.201"],
            "x is no switch",
            "switches: sw",
        ),
        (
            &["del", "sw", "x.0.101"],
            "no permanent connection at x.0.101",
            "pvc show sw",
        ),
        (
            &["show", "nobody"],
            "there is no node 'nobody'",
            "nodes: sw",
        ),
    ] {
        let ran = lab.run(&[&["pvc"], args].concat());
        let code = if args.contains(&"fast") { 2 } else { 1 };
        ran.refused(code, &[says, hint]);
    }
    // A lab without calls may end before it has answered.
    lab.run(&["down"]);
    lab.nothing_is_left();
}

#[test]
fn a_policer_has_the_scope_that_somebody_asks_for() {
    let lab = Runtime::embedded("pvc-scope", LAB);
    // Ports of this switch police nothing.
    let (ubr, cbr) = ("ubr:max_pcr=100", "cbr:max_pcr=100");
    for (vc, qos, police, policed) in [
        ("300", ubr, &[][..], "no"),
        ("301", ubr, &["--police"], "no"),
        ("302", ubr, &["--police=true"], "no"),
        ("303", ubr, &["--police=all"], "yes"),
        ("304", cbr, &["--police"], "yes"),
        ("305", cbr, &["--police=all"], "yes"),
        ("306", cbr, &["--police=false"], "no"),
    ] {
        let ends = [format!("x.0.{vc}"), format!("y.0.{vc}")];
        // The option may stand anywhere: it takes no word that follows it.
        let add = [&["pvc", "add"][..], police, &["sw", &ends[0], &ends[1]]].concat();
        let row = rows(&lab.ok(&[&add[..], &["--qos", qos, "-o", "json"]].concat()));
        assert_eq!(row[0]["policed"], policed, "{qos} {police:?}");
    }
    let wrong = ["pvc", "add", "sw", "x.0.400", "y.0.400", "--police=some"];
    let refused = lab.run(&wrong);
    refused.ends(2, "true, all, false");
    lab.ok(&["down"]);
}

#[test]
fn a_policer_that_somebody_asks_for_is_no_weaker_than_that_of_the_port() {
    let lab = Runtime::new("pvc-all");
    let file = lab_file("pvc-all.atm.yml", LAB);
    let all = ["--set", "switches.sw.police=all"];
    lab.ok(&[&["up", "-d", "-q", "--embedded", &file][..], &all].concat());
    // The peak rate of best effort is policed by such ports only.
    let qos = ["--qos", "ubr:max_pcr=100", "-o", "json"];
    for (vc, police, policed) in [("300", &["--police"][..], "yes"), ("301", &[], "yes")] {
        let ends = [format!("x.0.{vc}"), format!("y.0.{vc}")];
        let add = ["pvc", "add", "sw", &ends[0], &ends[1]];
        let row = rows(&lab.ok(&[&add[..], &qos, police].concat()));
        assert_eq!(row[0]["policed"], policed, "{vc}");
    }
    let add = ["pvc", "add", "sw", "x.0.302", "y.0.302", "--police=false"];
    let row = rows(&lab.ok(&[&add[..], &qos].concat()));
    assert_eq!(row[0]["policed"], "no", "whoever asks for none has none");
    // There is no rate to which a policer could hold it.
    let path = ["pvc", "add", "sw", "x.5", "y.6", "--vp", "--police"];
    let row = rows(&lab.ok(&[&path[..], &["-o", "json"]].concat()));
    assert_eq!(row[0]["policed"], "no");
    lab.ok(&["down"]);
}

/// A shaped program that always has a cell, over a connection that is policed without a tolerance.
const SHAPED: &str = "
switches: { sw: { police: true } }
clip: { wan: { subnet: 10.7.0.0/24 } }
hosts:
  x: { on: sw, elan: wan, ip: 10.7.0.1, link: { cdvt: 0us }, sockets: [{ name: p, vc: 0.100, pdus: 1000000, size: 40, rate: line }] }
  y: { on: sw, elan: wan, ip: 10.7.0.2, sockets: [{ name: q, vc: 0.100, listen: sink }] }
pvcs: [{ from: x, vc: 0.100, to: y, qos: 'cbr:tx:max_pcr=3000,rx:none' }]
";

/// The host that shapes follows the contract that `pvc` gives to its connection, in the class of the first one and in
/// another: nothing is policed away, and the rate is the new one.
#[test]
fn a_host_shapes_to_the_contract_that_its_connection_has_now() {
    let lab = Runtime::embedded("pvc-contract", SHAPED);
    for (contract, rate) in [
        ("cbr:tx:max_pcr=700,rx:none", 700.0),
        ("nrt-vbr:tx:max_pcr=2000,scr=1100,mbs=10,rx:none", 1100.0),
        ("cbr:tx:max_pcr=1887,rx:none", 1887.0),
    ] {
        lab.ok(&["pvc", "del", "sw", "x.0.100"]);
        let began = Instant::now();
        lab.ok(&[
            "pvc", "add", "sw", "x.0.100", "y.0.100", "--police", "--qos", contract,
        ]);
        std::thread::sleep(Duration::from_millis(1500));
        let row = &rows(&lab.ok(&["pvc", "show", "sw", "-o", "json"]))[0];
        let seconds = began.elapsed().as_secs_f64();
        assert_eq!(
            (&row["policed"], &row["cells_dropped"]),
            (&"yes".into(), &0.into()),
            "{row}"
        );
        let cells = row["cells_a"].as_f64().unwrap();
        // A machine with much other work may be late, and then the rate is lower.
        let most = rate * (seconds + 0.1);
        assert!(
            cells > rate / 4.0 && cells < most,
            "{contract}: {cells} in {seconds} s"
        );
        let shown = lab.ok(&["inspect", "x", "vc", "-o", "json"]);
        let class = &contract[..contract.find(':').unwrap()];
        assert!(shown.contains(class), "{shown}");
    }
    lab.down_with_warnings();
}
