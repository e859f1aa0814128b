//! The examples of the crate `aerostat-socket`, run as a reader would run them.

use crate::atm_sockets::Net;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

/// An example, which is built with all tests of the workspace.
fn example(name: &str) -> Option<PathBuf> {
    let directory = Path::new(env!("CARGO_BIN_EXE_aerostat")).parent()?;
    let path = directory.join("examples").join(name);
    if !path.exists() {
        eprintln!("SKIPPED: {} is not built", path.display());
        return None;
    }
    Some(path)
}

fn run(program: &Path, net: &Net, host: &str, arguments: &[&str]) -> Child {
    Command::new("timeout")
        .arg("60")
        .arg(program)
        .args(arguments)
        .env("AEROSTAT_ATM", net.path(host))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Child process with its output, and the line that names its address.
struct Server(Child, BufReader<ChildStdout>, String);

fn server(program: &Path, net: &Net, host: &str, arguments: &[&str]) -> Server {
    let mut child = run(program, net, host, arguments);
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    let address = line.trim().rsplit(' ').next().unwrap().to_owned();
    assert_eq!(address.len(), 40, "{line}");
    Server(child, out, address)
}

impl Server {
    fn rest(mut self) -> String {
        let mut text = String::new();
        self.1.read_to_string(&mut text).unwrap();
        self.0.wait().unwrap();
        text
    }
}

fn output(child: Child) -> String {
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success());
    String::from_utf8(out.stdout).unwrap()
}

#[test]
fn the_example_of_a_multicast_tree() {
    let Some(program) = example("tree") else {
        return;
    };
    let net = Net::up("exampletree");
    let leaves = ["x", "y", "y"].map(|host| server(&program, &net, host, &[]));
    let to: Vec<&str> = leaves.iter().map(|leaf| leaf.2.as_str()).collect();
    let mut root = run(&program, &net, "x", &to);
    root.stdin.take().unwrap().write_all(b"one\ntwo\n").unwrap();
    let told = output(root);
    let added = format!("{} is leaf 1\n{} is leaf 2\n", to[1], to[2]);
    assert_eq!(told, added);
    for leaf in leaves {
        let said = leaf.rest();
        let lines: Vec<&str> = said.lines().collect();
        assert!(lines[0].starts_with("call from 47"), "{said}");
        let end = "ended by the other side, cause 16 (normal call clearing)";
        assert_eq!(lines[1..], ["one", "two", end]);
    }
    net.runtime.ok(&["down"]);
}

#[test]
fn the_examples_of_a_file_and_of_a_video_source() {
    let (Some(transfer), Some(video)) = (example("transfer"), example("video")) else {
        return;
    };
    let net = Net::up("examplefile");
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (from, to) = (directory.join("original"), directory.join("copy"));
    let octets: Vec<u8> = (0..300_000_u32)
        .map(|n| (n.wrapping_mul(n) >> 7) as u8)
        .collect();
    std::fs::write(&from, &octets).unwrap();
    let receiver = server(&transfer, &net, "y", &[to.to_str().unwrap()]);
    let file = from.to_str().unwrap();
    let sender = run(&transfer, &net, "x", &[&receiver.2, file, "50000"]);
    assert_eq!(output(sender), "300000 octets sent\n");
    assert_eq!(receiver.rest(), "300000 of 300000 octets: whole\n");
    assert!(std::fs::read(&to).unwrap() == octets);

    let receiver = server(&video, &net, "y", &[]);
    let source = run(&video, &net, "x", &[&receiver.2, "25"]);
    assert_eq!(output(source), "25 frames sent\n");
    let said = receiver.rest();
    assert!(said.starts_with("25 frames, 0 lost, at most "), "{said}");
    net.runtime.ok(&["down"]);
}

/// Messages there and answers back; and what a sender learns when the receiver is killed.
#[test]
fn the_example_of_atp_and_a_receiver_that_is_killed() {
    let Some(program) = example("atp") else {
        return;
    };
    let net = Net::up("exampleatp");
    // By itself: a signal to `timeout` would leave the receiver alive.
    let mut receiver = Command::new(&program)
        .env("AEROSTAT_ATM", net.path("y"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut out = BufReader::new(receiver.stdout.take().unwrap());
    out.read_line(&mut line).unwrap();
    let address = line.trim().rsplit(' ').next().unwrap();
    let sent = output(run(&program, &net, "x", &[address, "1", "1000", "300000"]));
    let mut lines = sent.lines();
    for octets in ["1", "1000", "300000"] {
        assert_eq!(lines.next(), Some(&*format!("{octets} octets arrived")));
    }
    assert!(
        lines
            .next()
            .is_some_and(|last| last.starts_with("35 packets, "))
    );
    let options = aerostat_socket::atp::Options::adaptive();
    let service = net.service("x");
    let connection =
        aerostat_socket::atp::Connection::connect(&service, address, &options).unwrap();
    connection.send(b"it answers").unwrap();
    assert_eq!(connection.recv().unwrap().as_deref(), Some(&b"10"[..]));
    receiver.kill().unwrap();
    receiver.wait().unwrap();
    // The network releases the call of a program that has gone.
    assert_eq!(connection.recv().unwrap(), None);
    let gone = connection.send(b"nobody hears this").unwrap_err();
    assert_eq!((gone.errno(), gone.cause()), (32, Some(16)), "{gone}");
    net.runtime.ok(&["down"]);
}
