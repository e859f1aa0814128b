//! Calls inside a host, with real programs: without the switch, without the link, but not without the manager.

use crate::lab_file;
use crate::live::{Runtime, signal, wait_for};
use aerostat_socket::{Call, REJECTED, Service, Socket};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const LAB: &str = "
switches: { s: {} }
lane: { on: s, elans: { a: { subnet: 10.1.0.0/24 } } }
hosts:
  x: { on: s, elan: a, ip: 10.1.0.10 }
  y: { on: s, elan: a, ip: 10.1.0.20 }
";

/// Process id of the manager of host x, once it runs.
fn manager(lab: &Runtime) -> Option<String> {
    let rows = lab.inspect(&["x", "processes"]);
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
    let seen = lab.inspect(&["x", "sockets"]);
    let local = seen.iter().filter(|row| row["vc"] == "local");
    assert_eq!(local.count(), 2, "{seen:?}");
    caller.release(21).unwrap();
    let (got, callee) = reader.join().unwrap();
    println!(
        "local call with the link cut: set-up {setup:?}, 500 PDUs of 9 KB in {:?}",
        began.elapsed()
    );
    assert!(got == sent, "{} of {} PDUs", got.len(), sent.len());
    let status = callee.status().unwrap();
    assert_eq!(
        (status.cause, status.unread, &*status.label),
        (21, 0, "local")
    );
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
    wait_for("another manager", || {
        manager(&lab).is_some_and(|pid| pid != before)
    });
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

/// Programs that call and close at once, flood ends that never read, and refuse or take what they do not use: at
/// another host, and inside one. Nothing is left of them, and a call beside them goes on.
#[test]
fn calls_that_are_closed_in_every_state_leave_nothing() {
    let lab = Runtime::embedded("careless", LAB);
    let at = |host: &str| {
        lab.directory
            .join(format!("aerostat/careless/atm/{host}.sock"))
    };
    let (x, y) = (
        Service::connect(&at("x")).unwrap(),
        Service::connect(&at("y")).unwrap(),
    );
    let (beside, its_end, _) = pair(&x);
    for called in [&y, &x] {
        let listener = called.listen("").unwrap();
        let address = listener.address().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let serves = thread::spawn(move || {
            let (mut unread, mut number) = (Vec::new(), 0);
            listener.set_nonblocking(true).unwrap();
            while !flag.load(Ordering::Relaxed) {
                let Ok(offer) = listener.offer() else {
                    thread::sleep(Duration::from_millis(1));
                    continue;
                };
                number += 1;
                match number % 3 {
                    0 => drop(offer.accept()),
                    1 => unread.extend(offer.accept()),
                    // It may have been withdrawn.
                    _ => drop(offer.refuse(REJECTED)),
                }
            }
            unread
        });
        for number in 0..30 {
            let socket = x.socket().unwrap();
            let call = Call::to(&address);
            match number % 3 {
                // Gone before the answer.
                0 => drop(socket.start_connect(&call)),
                // As many PDUs as the descriptor takes without a reader.
                1 => {
                    if socket.make(&call).is_ok() {
                        socket.set_nonblocking(true).unwrap();
                        while socket.send(&[1; 4000]).is_ok() {}
                    }
                }
                _ => {
                    let timeout = Some(Duration::from_millis(20));
                    drop(socket.make(&Call { timeout, ..call }));
                }
            }
        }
        // Offers that still wait end with their listener.
        stop.store(true, Ordering::Relaxed);
        drop(serves.join().unwrap());
    }
    let left = || -> Vec<Value> {
        let of = |host| lab.inspect(&[host, "sockets"]);
        let all = of("x").into_iter().chain(of("y"));
        all.filter(|row| row["state"] != "ended" && row["state"] != "idle")
            .collect()
    };
    wait_for("the ends of all calls but one", || left().len() == 2);
    beside.send(b"unharmed").unwrap();
    assert_eq!(its_end.recv(&mut [0; 9]).unwrap(), 8);
    lab.down_with_warnings();
}
