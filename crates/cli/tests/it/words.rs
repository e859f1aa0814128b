//! Messages of a run about itself: warnings about settings without effect, and names of objects.

use crate::{json, lab_file, run};

/// Two subnets and a router. The packets from x to y are too few for a flow of MPOA.
const LAB: &str = "
mpoa: { flow_detect: 10 frames per 1s }
switches: { s1: {} }
lane: { on: s1, elans: { a: { subnet: 10.1.0.0/24 }, b: { subnet: 10.2.0.0/24 } } }
routers: { r: { on: s1, elans: { a: 10.1.0.1, b: 10.2.0.1 } } }
hosts:
  x: { on: s1, elan: a, ip: 10.1.0.10 }
  y: { on: s1, elan: b, ip: 10.2.0.10 }
traffic: [{ from: x, to: y, kind: ping, rate: 2pps, start: 3s, duration: 2s }]
";

#[test]
fn a_qos_entry_that_no_packet_fitted_is_a_warning_and_one_that_some_fitted_is_none() {
    let with = |entries: &str| {
        let text = LAB.replace(
            "ip: 10.1.0.10",
            &format!("ip: 10.1.0.10, mpoa: {{ qos: [{entries}] }}"),
        );
        let file = lab_file("entries.atm.yml", &text);
        run(&["run", "-q", &file, "-o", "json"])
    };
    let fitted = "'10.2.0.10 icmp tx=100,1600 rx=tx'";
    let ran = with(fitted);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(json["nodes"]["x"]["qos"]["qos"][0]["packets"], 4);

    let idle = "'10.1.0.10 10.2.0.10:5004 udp tx=100,1600 rx=tx'";
    let ran = with(&format!("{fitted}, {idle}"));
    assert_eq!(ran.code, 3);
    assert_eq!(
        ran.err,
        "warning: x: no packet fitted the QoS entry 10.1.0.10 10.2.0.10:5004 udp\n"
    );
}

#[test]
fn a_qos_entry_for_all_hosts_is_told_once_and_only_if_it_fitted_on_no_host() {
    let with = |entries: &str| {
        let all = format!("mpoa: {{ qos: [{entries}], flow");
        let file = lab_file("shared.atm.yml", &LAB.replace("mpoa: { flow", &all));
        run(&["run", "-q", &file])
    };
    let fitted = "'10.2.0.10 icmp tx=100,1600 rx=tx'";
    let ran = with(fitted);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""));
    let ran = with(&format!("{fitted}, '10.2.0.10:5004 udp tx=100,1600 rx=tx'"));
    assert_eq!(ran.code, 3);
    assert_eq!(
        ran.err,
        "warning: no packet of any host fitted the QoS entry 10.2.0.10:5004 udp\n"
    );
}

#[test]
fn a_destination_for_which_nobody_was_asked_is_no_shortcut() {
    let few = lab_file("few.atm.yml", LAB);
    let seen = json(&["run", "-q", &few, "-o", "json"]);
    assert_eq!(seen["shortcuts"], serde_json::json!([]));
    // The client's own table has the entry nevertheless.
    assert_eq!(
        seen["nodes"]["x"]["mpc"]["ingress"][0]["destination"],
        "10.2.0.10"
    );
    let many = lab_file("many.atm.yml", &LAB.replace("2pps", "20pps"));
    let seen = json(&["run", "-q", &many, "-o", "json"]);
    assert_eq!(seen["shortcuts"][0]["state"], "resolved");
    assert!(seen["shortcuts"][0]["holding_s"].as_u64().unwrap() > 0);
}

#[test]
fn people_see_the_tables_that_a_lab_has() {
    let labs = [("atp", &["programs", "atp"][..]), ("two-hosts", &["flows"])];
    for (lab, tables) in labs {
        let out = run(&["run", "-q", &format!("labs/{lab}.atm.yml")]).out;
        let parts = out.split("\n\n").filter_map(|part| part.lines().next());
        assert_eq!(parts.collect::<Vec<_>>(), tables, "{out}");
    }
}

#[test]
fn a_server_is_named_after_what_it_serves() {
    let ran = run(&["run", "labs/nhrp.atm.yml", "--until", "2s"]);
    let says = |name: &str, what: &str| {
        let mut lines = ran.err.lines();
        lines.any(|line| line.contains(name) && line.ends_with(what))
    };
    assert!(says("r1", " NHRP server of 2 interfaces"), "{}", ran.err);
    // The router has an emulated LAN beside its subnets.
    let both = " NHRP and MPOA server of 3 interfaces";
    assert!(says("r2", both), "{}", ran.err);
    let ran = run(&["run", "labs/two-subnets.atm.yml", "--until", "2s"]);
    ran.says("MPOA server of 2 interfaces");
}
