//! Calls inside a host, with real programs: without the switch, without the link, but not without the manager.

use crate::lab_file;
use crate::live::{Runtime, signal, wait_for};
use aerostat_socket::{Service, Socket};
use serde_json::Value;
use std::thread;
use std::time::{Duration, Instant};

const LAB: &str = "
switches: { s: {} }
hosts: { x: { on: s }, y: { on: s } }
";

fn rows(lab: &Runtime, args: &[&str]) -> Vec<Value> {
    let all = [&["inspect"], args, &["-o", "json"]].concat();
    let shown: Value = serde_json::from_str(&lab.ok(&all)).unwrap();
    shown["rows"].as_array().unwrap().clone()
}

/// Process id of the manager of host x, once it runs.
fn manager(lab: &Runtime) -> Option<String> {
    let rows = rows(lab, &["x", "processes"]);
    let row = rows.iter().find(|row| row["process"] == "sigd")?;
    (row["state"] == "running").then(|| row["pid"].to_string())
}

/// A program calls another one, on its own host.
fn pair(x: &Service) -> (Socket, Socket, Duration) {
    let listener = x.listen("").unwrap();
    let address = listener.address().unwrap();
    let accepts = thread::spawn(move || listener.accept().unwrap());
    let began = Instant::now();
    let caller = x.call(&address, "", "ubr:sdu=9180").unwrap();
    (caller, accepts.join().unwrap(), began.elapsed())
}

#[test]
fn programs_of_one_host_are_connected_while_its_link_is_cut_and_its_manager_lives() {
    let lab = Runtime::new("locally");
    let file = lab_file("locally.atm.yml", LAB);
    lab.ok(&["up", "-d", "-q", "--split", "--embedded", &file]);
    wait_for("the manager", || manager(&lab).is_some());
    lab.ok(&["fault", "link-down", "x-s"]);
    let x = Service::connect(&lab.directory.join("aerostat/locally/atm/x.sock")).unwrap();
    let (caller, callee, setup) = pair(&x);
    // More than any descriptor holds: the writer waits for the reader, and nothing is lost.
    let reader = thread::spawn(move || {
        let (mut pdu, mut got) = (vec![0; 9180], Vec::new());
        thread::sleep(Duration::from_millis(200));
        while let octets @ 1.. = callee.recv(&mut pdu).unwrap() {
            got.push((octets, pdu[0]));
        }
        (got, callee)
    });
    let began = Instant::now();
    let sent: Vec<(usize, u8)> = (0..500).map(|n| (9180 - n, n as u8)).collect();
    for (octets, first) in &sent {
        caller.send(&vec![*first; *octets]).unwrap();
    }
    let seen = rows(&lab, &["x", "sockets"]);
    let local = seen.iter().filter(|row| row["vc"] == "local");
    assert_eq!(local.count(), 2, "{seen:?}");
    caller.release(21).unwrap();
    let (got, callee) = reader.join().unwrap();
    println!("local call with the link cut: set-up {setup:?}, 500 PDUs of 9 KB in {:?}", began.elapsed());
    assert!(got == sent, "{} of {} PDUs", got.len(), sent.len());
    let status = callee.status().unwrap();
    assert_eq!((status.cause, status.unread, &*status.label), (21, 0, "local"));
    let nobody = x.call("x/ee", "", "ubr").unwrap_err();
    assert_eq!(nobody.cause(), Some(88), "{nobody}");

    // The manager dies: what there is ends. Its successor lets calls be made again.
    let (caller, callee, _) = pair(&x);
    let before = manager(&lab).unwrap();
    signal(&before, "KILL");
    for end in [&caller, &callee] {
        assert_eq!(end.recv(&mut [0]).unwrap(), 0);
        assert_eq!(end.status().unwrap().cause, 41);
    }
    wait_for("another manager", || manager(&lab).is_some_and(|pid| pid != before));
    let (caller, callee, _) = pair(&x);
    caller.send(b"again").unwrap();
    assert_eq!(callee.recv(&mut [0; 9]).unwrap(), 5);
    // The link comes back; other hosts are called as before.
    lab.ok(&["fault", "link-up", "x-s"]);
    let y = Service::connect(&lab.directory.join("aerostat/locally/atm/y.sock")).unwrap();
    let listener = y.listen("").unwrap();
    let address = listener.address().unwrap();
    let accepts = thread::spawn(move || listener.accept().unwrap());
    let outside = x.call(&address, "", "ubr").unwrap();
    let _far = accepts.join().unwrap();
    assert_ne!(outside.status().unwrap().label, "local");
    lab.down_with_warnings();
}
