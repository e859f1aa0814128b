//! Unmodified programs that add addresses to a host (`atmaddr -a`), and that find addresses by the names of the lab.

use crate::atm_sockets::Net;
use crate::preload::{has, on, output, until_there_are};
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// Result of Debian's `atmaddr` at host x: its exit code, and its output.
fn atmaddr(net: &Net, arguments: &[&str]) -> (bool, String) {
    let out = on(net, "x", "atmaddr", arguments).output().unwrap();
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    println!("$ atmaddr {}\n{said}", arguments.join(" "));
    (
        out.status.success(),
        said + &String::from_utf8_lossy(&out.stderr),
    )
}

/// The lines of a list, whatever their order.
fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

#[test]
fn debians_atmaddr_adds_an_address_that_the_switch_gets_to_know() {
    if !has("atmaddr") {
        return;
    }
    let net = Net::with_ilmi("addresses");
    let own = net.service("x").address().to_uppercase();
    let added = format!("{}02000000777700", &own[..26]);
    assert_eq!(atmaddr(&net, &["-a", "0", &added]), (true, String::new()));
    let again = atmaddr(&net, &["-a", "0", &added]);
    assert!(!again.0 && again.1.contains("File exists"), "{again:?}");
    let (_, shown) = atmaddr(&net, &["-n"]);
    assert_eq!(shown.lines().count(), 2, "{shown}");
    crate::live::wait_for("the registration", || {
        sorted(&net.runtime.ok(&["atmaddr", "-n", "x"])) == sorted(&shown)
    });
    // A program of another host calls a program that listens there.
    let listener = net.service("x").socket().unwrap();
    listener.bind(&added.to_lowercase(), "").unwrap();
    let listener = listener.listen(1).unwrap();
    let accepts = thread::spawn(move || listener.accept().unwrap());
    let end = Instant::now() + Duration::from_secs(20);
    let caller = loop {
        match net.service("y").call(&added, "", "ubr") {
            Ok(caller) => break caller,
            // The registration takes a moment.
            Err(error) => assert!(Instant::now() < end, "{error}"),
        }
        thread::sleep(Duration::from_millis(50));
    };
    let callee = accepts.join().unwrap();
    caller.send(b"found").unwrap();
    assert_eq!(callee.recv(&mut [0; 9]).unwrap(), 5);
    assert_eq!(callee.status().unwrap().local, added.to_lowercase());
    // Removed, it is unknown; `-r` removes the others.
    drop((caller, callee));
    assert_eq!(atmaddr(&net, &["-d", "0", &added]), (true, String::new()));
    let gone = atmaddr(&net, &["-d", "0", &added]);
    assert!(!gone.0 && gone.1.contains("No such file"), "{gone:?}");
    assert_eq!(atmaddr(&net, &["-a", "0", &added]), (true, String::new()));
    assert_eq!(atmaddr(&net, &["-r"]), (true, String::new()));
    let (_, shown) = atmaddr(&net, &["-n"]);
    assert_eq!(shown.lines().count(), 1, "{shown}");
    net.runtime.ok(&["down"]);
}

const CELLS: &str = r#"
#include <atm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/atmdev.h>

#define CHECK(x) do { if (!(x)) { fprintf(stderr, "line %d: %s\n", __LINE__, #x); perror("errno"); exit(1); } } while (0)

/* Both ends of a call of single cells; the called side is found by its name. */
int main(int argc, char **argv)
{
    struct sockaddr_atmsvc address;
    struct atm_qos qos;
    unsigned char cell[52];
    unsigned head;
    int s = socket(PF_ATMSVC, SOCK_DGRAM, 0), c;

    CHECK(s >= 0);
    memset(&qos, 0, sizeof qos);
    qos.aal = ATM_AAL0;
    qos.txtp.traffic_class = qos.rxtp.traffic_class = ATM_UBR;
    qos.txtp.max_sdu = qos.rxtp.max_sdu = 52;
    CHECK(setsockopt(s, SOL_ATM, SO_ATMQOS, &qos, sizeof qos) == 0);
    memset(&address, 0, sizeof address);
    if (argc < 2) {
        address.sas_family = AF_ATMSVC;
        CHECK(bind(s, (struct sockaddr *) &address, sizeof address) == 0 && listen(s, 1) == 0);
        printf("ready\n"); fflush(stdout);
        CHECK((c = accept(s, NULL, NULL)) >= 0);
        CHECK(read(c, cell, sizeof cell) == 52);
        memcpy(&head, cell, 4);
        /* Payload type 1; CLP as it was sent; the label of this end. */
        CHECK((head & 0xf) == 2 && (head >> 4 & 0xffff) >= 32 && cell[51] == 7);
        CHECK(write(c, cell, 52) == 52);
        CHECK(read(c, cell, sizeof cell) == 0);
        return 0;
    }
    CHECK(text2atm(argv[1], (struct sockaddr *) &address, sizeof address, T2A_SVC | T2A_NAME) >= 0);
    CHECK(connect(s, (struct sockaddr *) &address, sizeof address) == 0);
    head = 2; memcpy(cell, &head, 4); memset(cell + 4, 7, 48);
    CHECK(write(s, cell, 52) == 52);
    memset(cell, 0, sizeof cell);
    CHECK(read(s, cell, sizeof cell) == 52 && cell[51] == 7);
    printf("cells\n");
    return 0;
}
"#;

/// Names of the lab are those of `/etc/hosts.atm` for programs with `text2atm`; calls with AAL0 in C.
#[test]
fn programs_in_c_find_hosts_by_name_and_call_with_single_cells() {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (source, program) = (directory.join("cells.c"), directory.join("atm-cells"));
    std::fs::write(&source, CELLS).unwrap();
    let built = Command::new("cc")
        .arg("-o")
        .args([&program, &source])
        .arg("-latm")
        .output();
    match built {
        Err(error) => return eprintln!("SKIPPED: cc: {error}"),
        Ok(out) if String::from_utf8_lossy(&out.stderr).contains("atm.h") => {
            return eprintln!("SKIPPED: <atm.h> is missing (Debian's package libatm1-dev)");
        }
        Ok(out) => assert!(
            out.status.success(),
            "{}",
            String::from_utf8_lossy(&out.stderr)
        ),
    }
    let net = Net::up("named");
    let program = program.to_str().unwrap();
    let server = on(&net, "y", program, &[]).spawn().unwrap();
    until_there_are(&net, "y", "listening", 1);
    let client = output(on(&net, "x", program, &["y"]).spawn().unwrap());
    assert_eq!(client, "cells\n");
    assert_eq!(output(server), "ready\n");
    // A listener that does not ask for cells does not get the call.
    if has("ttcp_atm") {
        let mut receiver = on(&net, "y", "ttcp_atm", &["-r", "-a", "-s"])
            .spawn()
            .unwrap();
        until_there_are(&net, "y", "listening", 1);
        let sent = output(
            on(&net, "x", "ttcp_atm", &["-t", "-a", "-s", "-n", "5", "y"])
                .spawn()
                .unwrap(),
        );
        assert!(sent.contains("40960 bytes in"), "by name: {sent}");
        receiver.wait().unwrap();
    }
    net.runtime.ok(&["down"]);
}
