//! NHRP without MPOA in real time: kernel hosts get shortcuts past two routers, and `inspect` shows how.
//!
//! Without /dev/net/tun or the privilege for namespaces this test is skipped with a message.

use crate::live::{Runtime, can_run, signal, wait_for, wait_for_end};
use crate::wireshark::{malformed_filter, tshark};
use serde_json::Value;
use std::fs;

const LAB: &str = "labs/nhrp.atm.yml";

/// Rows of a table of `inspect NODE nhrp`.
fn rows(lab: &Runtime, node: &str, table: &str) -> Vec<Value> {
    lab.table(node, "nhrp", table)
}

fn direct(lab: &Runtime, node: &str, destination: &str) -> Option<Value> {
    let rows = rows(lab, node, "ways").into_iter();
    let mut ours = rows.filter(|row| row["destination"] == destination);
    ours.find(|row| row["state"] == "shortcut")
}

#[test]
fn kernel_hosts_cut_through_two_routers() {
    if !can_run() {
        return;
    }
    let lab = Runtime::new("nhrp");
    lab.ok(&["up", "-d", "-q", LAB]);
    let file = lab.directory.join("r1.pcapng");
    let mut capture = lab
        .command(&["capture", "r1-west", "-w", file.to_str().unwrap()])
        .spawn()
        .unwrap();
    wait_for("the capture to begin", || {
        fs::metadata(&file).is_ok_and(|file| file.len() > 0)
    });
    fn words(target: &str) -> [&str; 8] {
        ["-q", "-c", "5", "-i", "0.05", "-W", "1", target]
    }
    let ping = |node: &str, target: &str| {
        lab.run(&[&["exec", node, "--", "ping"], &words(target)[..]].concat());
    };
    for node in ["x", "z", "y"] {
        wait_for("a registration", || {
            !rows(&lab, node, "client")[0]["registered_s"].is_null()
        });
    }
    // A shortcut past two routers; the second one answered, and the first is in the record.
    wait_for("a direct way", || {
        ping("x", "10.6.0.10");
        direct(&lab, "x", "10.6.0.10").is_some()
    });
    let way = direct(&lab, "x", "10.6.0.10").unwrap();
    assert_eq!(way["responder"], "10.7.0.2");
    assert_eq!(way["authoritative"], "yes");
    lab.pings(&["x"], &words("10.6.0.10"));
    // The first server answers the other host of the subnet.
    wait_for("a direct way from what was kept", || {
        ping("z", "10.6.0.10");
        direct(&lab, "z", "10.6.0.10").is_some()
    });
    let way = direct(&lab, "z", "10.6.0.10").unwrap();
    assert_eq!(way["responder"], "10.5.0.1");
    assert_eq!(way["authoritative"], "no");
    // One answer covers a network behind a router without NHRP.
    wait_for("a way to the network behind", || {
        ping("x", "10.9.0.10");
        direct(&lab, "x", "10.9.0.10/24").is_some()
    });
    lab.pings(&["x"], &words("10.9.0.10"));
    let why = |node: &str, target: &str| -> String {
        lab.ok(&["inspect", node, "nhrp", "--why", target])
    };
    for target in ["10.6.0.10", "10.9.0.10", "10.9.0.77"] {
        assert!(
            why("x", target).contains("packets take the shortcut"),
            "{target}"
        );
    }
    assert!(why("r1", "10.6.0.10").contains("transit"));
    assert!(why("r2", "10.6.0.10").contains("registered"));
    assert!(why("x", "10.6.0.99").contains("unseen"));
    wait_for("a refusal", || {
        ping("x", "10.6.0.99");
        why("x", "10.6.0.99").contains("refused with code 12")
    });
    signal(&capture.id().to_string(), "INT");
    assert_eq!(wait_for_end(&mut capture), 0);
    if let Some(malformed) = tshark(&file, &["-Y", &malformed_filter()]) {
        assert!(malformed.is_empty(), "{malformed:#?}");
        let fields = ["-Y", "nhrp", "-T", "fields", "-e", "_ws.col.Info"];
        let names = tshark(&file, &fields).unwrap_or_default();
        for wanted in ["Resolution Request", "Resolution Reply"] {
            let found = names.iter().any(|name| name.contains(wanted));
            assert!(found, "no packet is a {wanted}: {names:#?}");
        }
    }
    lab.ends();
}
