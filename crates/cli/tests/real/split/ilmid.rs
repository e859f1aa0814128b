//! The ILMI daemons of a switch and of a host: killed, stopped, asked to end, started by hand.

use super::LAB;
use crate::live::{Runtime, signal, wait_for, wait_for_end};
use serde_json::Value;

const REGISTERS: [&str; 4] = [
    "--set",
    "hosts.urku.ilmi=true",
    "--set",
    "hosts.sello.ilmi=true",
];

impl Runtime {
    /// The row of a node's ILMI daemon.
    fn ilmid(&self, node: &str) -> Value {
        let rows = self.inspect(&[node, "processes"]);
        let row = rows.iter().find(|row| row["process"] == "ilmid");
        row.expect("a seat").clone()
    }
    /// The addresses that ILMI has at a node.
    fn addresses(&self, node: &str) -> Vec<String> {
        let rows = self.inspect(&[node, "ilmi"]);
        let rows = rows.iter().filter(|row| row["table"] == "addresses");
        rows.map(|row| row["address"].to_string()).collect()
    }
    /// True if ILMI has found the other side everywhere at a node.
    fn verifies(&self, node: &str) -> bool {
        let rows = self.inspect(&[node, "ilmi"]);
        let mut ends = rows.iter().filter(|row| row["table"] == "ilmi");
        ends.all(|row| row["state"] == "verifying")
    }
    /// Losses of connections and memberships.
    fn losses(&self) -> usize {
        let of = |node| self.told(node, "lane.lost") + self.told(node, "signalling.gone");
        ["urku", "sello"].into_iter().map(of).sum()
    }
}

#[test]
fn a_stopped_ilmid_is_replaced_and_calls_and_addresses_stay() {
    let lab = Runtime::new("split-ilmid");
    let up = ["up", "-d", "-q", "--split", "--embedded", LAB];
    lab.ok(&[&up[..], &REGISTERS].concat());
    // The LANE servers and routers of this lab do not register, so they have no such daemon.
    let rows = lab.inspect(&["lane", "processes"]);
    assert!(rows.iter().all(|row| row["process"] != "ilmid"));
    wait_for("the shortcut", || lab.resolved("urku", "10.2.0.10"));
    for (node, how) in [
        ("s1", "STOP"),
        ("urku", "STOP"),
        ("s2", "KILL"),
        ("sello", "KILL"),
    ] {
        wait_for("ILMI to be up", || lab.verifies(node));
        let (addresses, losses) = (lab.addresses(node), lab.losses());
        assert_eq!(addresses.len(), 1, "{node}");
        let pid = lab.process_runs(node, "ilmid", "");
        signal(&pid, how);
        let next = lab.process_runs(node, "ilmid", &pid);
        assert_eq!(lab.addresses(node), addresses, "{node}");
        if how == "STOP" {
            let after = lab.replaced_after(node, "ilmid", &next);
            println!("ilmid of {node}: replaced after {after:.2} s");
            assert!(after < 2.0, "{node}: {after} s");
        }
        wait_for("ILMI to be up again", || lab.verifies(node));
        assert_eq!(lab.addresses(node), addresses, "{node}");
        assert!(lab.resolved("urku", "10.2.0.10"), "{node}: the shortcut");
        assert_eq!(lab.losses(), losses, "{node}");
        // The refusals are those of the boundary: an honest daemon has none.
        let rows = lab.inspect(&[node, "ilmi"]);
        let refused = |row: &&Value| row["counter"] == "daemon_refused" && row["value"] != 0;
        assert!(rows.iter().find(refused).is_none(), "{rows:?}");
    }

    // SIGTERM withdraws the address. A daemon that a user starts registers again; a router of this lab has no seat.
    signal(&lab.process_runs("urku", "ilmid", ""), "TERM");
    wait_for("its end", || lab.ilmid("urku")["state"] == "ended");
    wait_for("the switch to know", || lab.addresses("s1").is_empty());
    assert!(lab.addresses("urku").is_empty());
    let mut hand = lab.start(&["ilmid", "urku"]);
    let pid = lab.process_runs("urku", "ilmid", "");
    assert_eq!(pid, hand.id().to_string());
    wait_for("the address", || lab.addresses("s1").len() == 1);
    let refused = lab.run(&["ilmid", "r1"]);
    let why = "r1 has no seat for ilmid";
    refused.says(why);
    // SIGHUP: the same process begins anew.
    let cold = lab.told("s1", "ilmi.lost");
    signal(&pid, "HUP");
    wait_for("the cold start", || lab.told("s1", "ilmi.lost") > cold);
    wait_for("the address", || lab.addresses("s1").len() == 1);
    assert_eq!(lab.process_runs("urku", "ilmid", ""), pid);
    assert_eq!(lab.losses(), 0);
    lab.down_with_warnings();
    assert_eq!(wait_for_end(&mut hand), 0);
    lab.nothing_is_left();
}
