//! Programs that call IP addresses, over a Classical IP subnet whose ATMARP server is another host.

use crate::atm_sockets::{Net, until};
use crate::clib;
use crate::live::Killed;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

const LAB: &str = "
switches: { s: {} }
clip: { a: { subnet: 10.5.0.0/24, server: hub } }
hosts:
  hub: { on: s, elan: a, ip: 10.5.0.1 }
  x: { on: s, elan: a, ip: 10.5.0.10 }
  y: { on: s, elan: a, ip: 10.5.0.20 }
";

/// The server of the Python example at a host, once it listens.
fn server(net: &Net, host: &str) -> Option<Killed> {
    let mut command = python(net, host, &[]);
    let mut child = match command.stdout(Stdio::piped()).spawn() {
        Ok(child) => Killed(child),
        Err(error) => {
            eprintln!("SKIPPED: python3: {error}");
            return None;
        }
    };
    let mut line = String::new();
    let mut said = BufReader::new(child.0.stdout.take().unwrap());
    said.read_line(&mut line).unwrap();
    assert!(line.starts_with("listening at "), "{line}");
    Some(child)
}

fn python(net: &Net, host: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("python3");
    command.arg("python/echo.py").args(arguments);
    command.current_dir(crate::root());
    command.env("AEROSTAT_ATM", net.path(host));
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    command.stdin(Stdio::null());
    command
}

fn said(out: &Output) -> (String, String) {
    let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
    (text(&out.stdout), text(&out.stderr))
}

/// The value of a counter of the socket service of x.
fn counter(net: &Net, name: &str) -> u64 {
    let mut rows = net.runtime.inspect(&["x", "sockets"]).into_iter();
    let row = rows.find(|row| row["counter"] == name);
    row.map_or(0, |row| row["value"].as_u64().unwrap())
}

#[test]
fn programs_in_c_and_python_call_an_ip_address() {
    let prefix = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("clib-ip");
    let net = Net::of("byip", LAB);
    // A host that no program uses has an empty table; among all hosts it is left out.
    let empty = net.runtime.ok(&["inspect", "hub", "sockets"]);
    assert!(empty.starts_with("hub: open\nSOCKET "), "{empty}");
    let none = net.runtime.run(&["inspect", "sockets"]);
    assert_eq!((none.code, &*none.out), (1, ""), "{}", none.err);
    let Some(_server) = server(&net, "y") else {
        return;
    };
    // The subnet is ready some time after the lab.
    until("the address is resolved", || {
        let out = python(&net, "x", &["10.5.0.20", "hello", "world"])
            .output()
            .unwrap();
        said(&out).0 == "hello\nworld\n"
    });
    assert!(counter(&net, "resolved") >= 1);
    if let Some(program) = clib::built(&prefix, "echo") {
        let echo = |called: &str| {
            let mut command = Command::new(&program);
            command.args([called, "ubr:sdu=100", "hi"]);
            command.env("AEROSTAT_ATM", net.path("x"));
            command.env("LD_LIBRARY_PATH", prefix.join("lib"));
            said(&command.output().unwrap())
        };
        let (out, error) = echo("10.5.0.20/e0");
        assert!(out.contains("hi"), "{out}{error}");
        let (_, error) = echo("10.5.0.99");
        let told = "the ATMARP server of 10.5.0.0/24 knows no 10.5.0.99 (cause 1)";
        assert!(error.contains(told), "{error}");
    }
    let service = net.service("x");
    let outside = service.call("10.6.0.1", "", "ubr").unwrap_err();
    assert_eq!(
        (outside.errno(), outside.cause()),
        (101, Some(3)),
        "{outside}"
    );
    // Its server dies: what is known stays known.
    net.runtime.ok(&["fault", "crash", "hub"]);
    let call = service.call("10.5.0.20", "", "ubr:sdu=100").unwrap();
    call.send(b"still").unwrap();
    assert_eq!(call.recv(&mut [0; 100]).unwrap(), 5);
    drop(call);
    assert!(counter(&net, "unresolved") >= 1);
    net.runtime.down_with_warnings();
}
