//! LANE servers of Debian's `atm-tools` as programs at the sockets of a host: `lecs`, `les` and `bus` of linux-atm
//! serve an ELAN of a lab, unmodified, on a kernel that may have no ATM.

use crate::lab_file;
use crate::live::{Killed, Runtime, wait_for, wait_for_end};
use crate::preload::{has, library};
use serde_json::Value;
use std::fs::{File, write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const SERVER: &str = "4700918100000002a70000010002a703000100";

const LAB: &str = "
switches: { s: {} }
hosts:
  server: { on: s, elan: own, ip: 10.2.0.10 }
  a: { on: s, elan: e, ip: 10.1.0.10 }
  b: { on: s, elan: e, ip: 10.1.0.20 }
lane:
  on: s
  elans:
    own: { subnet: 10.2.0.0/24 }
    e: { subnet: 10.1.0.0/24, lecs: SERVERe0, name: elan1 }
traffic:
  - { name: ping, from: a, to: b, kind: ping, rate: 50pps, duration: 1s, size: 1400 }
  - { name: bulk, from: b, to: a, kind: tcp, duration: 1s }
";

fn start(program: &str, arguments: &[&str], socket: &Path, log: &Path) -> Killed {
    let log = File::create(log).unwrap();
    let child = Command::new(program)
        .args(arguments)
        .env("AEROSTAT_ATM", socket)
        .env("LD_PRELOAD", library())
        .stdin(Stdio::null())
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn();
    Killed(child.unwrap())
}

/// The files of the servers: that of the LECS, and that of LES and BUS; and where a program writes its log.
fn configuration() -> impl Fn(&str) -> PathBuf {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let path = move |name: &str| directory.join(format!("lane-{name}"));
    // `lecs` serves who names an ELAN only if its file has a pattern for the client's address there.
    write(
        path("lecs.conf"),
        format!(
            "{SERVER}e0\n[elan1]\nLES:={SERVER}e1\nType:=802_3\nMax_Frame:=1516\n{:x<40}\n",
            &SERVER[..18],
        ),
    )
    .unwrap();
    let colons: String = (0..38)
        .step_by(2)
        .map(|at| format!(":{}", &SERVER[at..at + 2]))
        .collect();
    write(
        path("vars"),
        format!(
            "[main]\ndebug=True\n[conn]\ndebug=True\nS1={colons}:e1\nS2=\"802.3\"\nS3=1516\nS4=15\nS5=6\nS6={colons}:e2\n"
        ),
    )
    .unwrap();
    path
}

#[test]
fn linux_atms_lecs_les_and_bus_serve_an_elan_of_a_lab() {
    if !["lecs", "les", "bus"].into_iter().all(has) {
        return;
    }
    let runtime = Runtime::new("laneprograms");
    let file = lab_file("laneprograms.atm.yml", &LAB.replace("SERVER", SERVER));
    // Such programs live in real time only.
    let refused = runtime.run(&["run", &file]);
    assert_eq!(refused.code, 2, "{}", refused.err);
    let told = "the LANE servers of e are programs of the machine";
    refused.says(told);

    let path = configuration();
    let mut up = runtime
        .command(&["up", "--embedded", &file])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let socket = runtime
        .directory
        .join("aerostat/laneprograms/atm/server.sock");
    wait_for("the socket service", || socket.exists());
    let listening = |count: usize| {
        wait_for("a listener", || {
            let shown = runtime.run(&["inspect", "server", "sockets", "-o", "jsonl"]);
            shown.out.matches("listening").count() == count
        });
    };
    let text = |path: &Path| path.to_str().unwrap().to_owned();
    let (conf, vars, at) = (
        text(&path("lecs.conf")),
        text(&path("vars")),
        format!("{SERVER}e0"),
    );
    let lecs = start(
        "lecs",
        &["-f", &conf, "-l", &at],
        &socket,
        &path("lecs.log"),
    );
    listening(1);
    let les = start("les", &["-f", &vars], &socket, &path("les.log"));
    listening(2);
    let bus = start("bus", &["-f", &vars], &socket, &path("bus.log"));
    listening(3);
    let joined = |host: &str| {
        let shown = runtime.run(&["inspect", host, "lec"]).out;
        shown.contains("operational") && shown.contains("elan1")
    };
    wait_for("both clients", || joined("a") && joined("b"));
    wait_for("the traffic", || {
        runtime
            .run(&["events"])
            .out
            .matches("traffic.ended")
            .count()
            == 2
    });
    let down = runtime.run(&["down", "-o", "json"]);
    let results: Value = serde_json::from_str(&down.out).unwrap();
    let flow = |name: &str| {
        let rows = results["flows"].as_array().unwrap();
        rows.iter().find(|row| row["name"] == name).unwrap().clone()
    };
    let (ping, bulk) = (flow("ping"), flow("bulk"));
    let seen = (&ping["sent"], &ping["delivered"], &ping["lost"]);
    assert_eq!(seen, (&50.into(), &50.into(), &0.into()), "{ping}");
    assert!(bulk["throughput_mbps"].as_f64().unwrap() > 1.0, "{bulk}");
    wait_for_end(&mut up);
    drop((lecs, les, bus));
}
