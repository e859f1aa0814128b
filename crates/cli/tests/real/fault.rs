//! `aerostat fault` with a running lab.

use crate::lab_file;
use crate::live::Runtime;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

const LAB: &str = "
mpoa: { flow_detect: 3 frames per 1s, keepalive_time: 1s, keepalive_lifetime: 3s }
switches: { s1: {}, s2: {} }
links: [[s1, s2]]
lane:
  on: s1
  elans: { a: { subnet: 10.1.0.0/24 }, b: { subnet: 10.2.0.0/24 } }
routers: { r: { on: s1, elans: { a: 10.1.0.1, b: 10.2.0.1 } } }
hosts:
  x: { on: s1, elan: a, ip: 10.1.0.10 }
  y: { on: s2, elan: b, ip: 10.2.0.10 }
  w: { on: s2, elan: b, ip: 10.2.0.11, mpoa: false }
traffic: [{ from: x, to: y, kind: ping, rate: 20pps }]
";

/// Waits until the state of a node contains a text, or does not.
fn until(lab: &Runtime, inspect: &[&str], text: &str, there: bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let shown = lab.ok(&[&["inspect"], inspect].concat());
        if shown.contains(text) == there {
            return;
        }
        assert!(Instant::now() < deadline, "{text} ({there}) in {shown}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn what_breaks_is_mended() {
    let lab = Runtime::embedded("fault", LAB);
    let shortcut = (&["x", "mpc"][..], "10.2.0.10    resolved");
    until(&lab, shortcut.0, shortcut.1, true);
    // Without keep-alives its clients drop the server's bindings.
    lab.ok(&["fault", "crash", "r/mps"]);
    until(&lab, shortcut.0, shortcut.1, false);
    lab.ok(&["fault", "restart", "r/mps"]);
    until(&lab, shortcut.0, shortcut.1, true);

    lab.ok(&["fault", "link-down", "s1-s2"]);
    until(&lab, &["y", "lec"], "operational", false);
    lab.ok(&["fault", "link-up", "s1-s2"]);
    until(&lab, &["y", "lec"], "operational", true);

    for (args, says, hint) in [
        (["crash", "z"], "there is no node 'z'", "nodes: s1, s2"),
        (["crash", "r/mpc"], "r has no service 'mpc'", "r: mps"),
        (["crash", "w/mpc"], "w has no service 'mpc'", "a whole"),
        (["restart", "w/mpc"], "w has no service 'mpc'", "a whole"),
        (["restart", "s1/les"], "s1 has no service 'les'", "a whole"),
        (["link-up", "x"], "there is no link 'x'", "known: s1-s2"),
    ] {
        let ran = lab.run(&[&["fault"], &args[..]].concat());
        ran.refused(1, &[says, hint]);
    }
    lab.down_with_warnings();
    lab.nothing_is_left();
}

/// Nothing brings back the far end of a link out of the lab, so neither a lab file nor the command may end it.
#[test]
fn the_far_end_of_a_link_out_of_the_lab_is_no_victim() {
    let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
    let free = UdpSocket::bind("127.0.0.1:0").unwrap();
    let ends = [&free, &peer].map(|end| end.local_addr().unwrap().to_string());
    drop(free);
    let text = format!(
        "switches: {{ s: {{}} }}
links: [[s, {{ name: peer, rate: oc3, udp: {{ local: '{}', peer: '{}' }} }}]]
",
        ends[0], ends[1]
    );
    let words = "'peer' is the far end of a link out of the lab, not a node";
    let lab = Runtime::new("far-end");
    let refused = text.clone() + "faults: [{ at: 1s, crash: peer }]\n";
    let ran = lab.run(&["validate", &lab_file("far-end-fault.atm.yml", &refused)]);
    ran.ends(2, words);

    lab.ok(&[
        "up",
        "-d",
        "-q",
        "--embedded",
        &lab_file("far-end.atm.yml", &text),
    ]);
    for action in ["crash", "restart"] {
        let ran = lab.run(&["fault", action, "peer"]);
        assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{action}");
        assert!(ran.err.contains(words), "{action}: {}", ran.err);
        assert!(ran.err.contains("nodes: s\n"), "{action}: {}", ran.err);
    }
    // Its link may still fail, under the name of its far end.
    lab.ok(&["fault", "link-down", "peer"]);
    lab.ok(&["fault", "link-up", "peer"]);
    lab.down_with_warnings();
    lab.nothing_is_left();
}
