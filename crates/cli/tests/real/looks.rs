//! How long TAPs and links out of the lab wait for the rest of a running lab, in events of the network.

use crate::lab_file;
use crate::live::Runtime;
use std::fmt::Write as _;

#[test]
fn tap_and_outside_links_have_a_look_at_least_every_768_events_while_100_hosts_join() {
    let runtime = Runtime::new("looks");
    let mut lab = String::from(
        "switches: { s: {} }\nlane: { on: s, elans: { a: { subnet: 10.1.0.0/24 } } }\nhosts:\n",
    );
    for host in 1..=100 {
        writeln!(lab, "  h{host}: {{ on: s, elan: a, ip: 10.1.0.{host} }}").unwrap();
    }
    let file = lab_file("looks.atm.yml", &lab);
    runtime.ok(&["up", "-d", "-q", "--embedded", &file]);
    runtime.ok(&["fault", "restart", "s"]);
    runtime.ok(&["ping", "h1", "h100"]);
    let rows = runtime.inspect(&["lab"]);
    let what = "most events between two looks at TAPs and links";
    let row = rows.iter().find(|row| row["what"] == what).unwrap();
    let most = row["count"].as_u64().unwrap();
    assert!((1..=3 * 256).contains(&most), "{most} events");
    runtime.ok(&["down", "looks"]);
    runtime.nothing_is_left();
}
