//! Links of running labs as Wireshark sees them.

use crate::live::{Runtime, signal, wait_for};
use std::path::PathBuf;
use std::process::{Command, Stdio};

const LAB: &str = "labs/two-hosts.atm.yml";

#[test]
fn links_of_a_running_lab_are_interfaces_with_types_and_options() {
    let lab = Runtime::new("extcap");
    let none = lab.ok(&["extcap", "--extcap-interfaces"]);
    assert_eq!(none.lines().count(), 1, "{none}");
    lab.ok(&["up", "-d", "-q", "--embedded", LAB]);
    let listed = lab.ok(&["extcap", "--extcap-interfaces", "--extcap-version=4.0"]);
    assert!(
        listed.contains("interface {value=aerostat.two-hosts}{display="),
        "{listed}"
    );
    let link = "aerostat.two-hosts.urku-s1";
    assert!(listed.contains(&format!("{{value={link}}}")), "{listed}");
    let types = lab.ok(&["extcap", "--extcap-dlts", "--extcap-interface", link]);
    assert!(types.starts_with("dlt {number=123}"), "{types}");
    let options = lab.ok(&["extcap", "--extcap-config", "--extcap-interface", link]);
    assert!(options.contains("{call=--both-ends}") && options.contains("{call=--cells}"));
    let fifo = lab.directory.join("fifo");
    let capture = |interface: &str, more: &[&str]| {
        let words = [
            "extcap",
            "--capture",
            "--fifo",
            fifo.to_str().unwrap(),
            "--extcap-interface",
            interface,
        ];
        lab.run(&[&words[..], more].concat())
    };
    let gone = capture("aerostat.two-hosts.nowhere", &[]);
    gone.ends(4, "aerostat.two-hosts.nowhere");
    let filtered = capture(link, &["--extcap-capture-filter", "tcp"]);
    assert_eq!(filtered.code, 2);
    assert_eq!(lab.run(&["extcap"]).code, 2);
    lab.down_with_warnings();
}

/// A named pipe without a reader, as when Wireshark has gone: signals end the wait.
#[test]
fn a_pipe_without_a_reader_is_left_at_a_signal() {
    let lab = Runtime::new("extcap-pipe");
    lab.ok(&["up", "-d", "-q", "--embedded", LAB]);
    let pipe = lab.directory.join("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        0o600.into(),
        0,
    )
    .unwrap();
    let path = pipe.to_str().unwrap();
    let interface = "--extcap-interface=aerostat.two-hosts";
    for words in [
        &["capture", "-w", path][..],
        &["extcap", "--capture", interface, "--fifo", path],
    ] {
        for name in ["INT", "TERM"] {
            let mut child = lab.command(words).stderr(Stdio::null()).spawn().unwrap();
            let state = format!("/proc/{}/wchan", child.id());
            // Its wait is that for the other end of the pipe.
            wait_for("the wait", || {
                std::fs::read_to_string(&state).is_ok_and(|at| at == "wait_for_partner")
            });
            signal(&child.id().to_string(), name);
            wait_for("the end", || child.try_wait().unwrap().is_some());
        }
    }
    lab.down_with_warnings();
}

#[test]
fn tshark_lists_a_link_and_reads_it_without_malformed_packets() {
    let folders = match Command::new("tshark").args(["-G", "folders"]).output() {
        Ok(output) => String::from_utf8_lossy(&output.stdout).into_owned(),
        Err(error) => return println!("skipped: tshark: {error}"),
    };
    let folder = folders
        .lines()
        .find_map(|line| line.strip_prefix("Extcap path:"));
    let Some(folder) = folder.map(|folder| PathBuf::from(folder.trim())) else {
        return println!("skipped: this tshark has no extcap folder");
    };
    // The name is the test's own, so that a package is not in its way.
    let link = folder.join("aerostat-extcap");
    if link.exists() || std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_aerostat"), &link).is_err() {
        return println!("skipped: {} is taken or not to be made", link.display());
    }
    let lab = Runtime::new("tshark");
    let tshark = |words: &[&str]| {
        let mut command = Command::new("tshark");
        command.args(words).env("XDG_RUNTIME_DIR", &lab.directory);
        command.output().expect("tshark runs")
    };
    let up = lab.run(&["up", "-d", "-q", "--embedded", LAB]);
    let listed = tshark(&["-D"]);
    // Wireshark asks for at most some seconds; ILMI and SSCOP poll more often.
    let read = tshark(&[
        "-l",
        "-i",
        "aerostat.two-hosts",
        "-a",
        "duration:4",
        "-T",
        "fields",
        "-e",
        "atm.vci",
        "-e",
        "_ws.malformed",
    ]);
    std::fs::remove_file(&link).unwrap();
    assert_eq!(up.code, 0, "{}", up.err);
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(listed.contains("aerostat.two-hosts.urku-s1"), "{listed}");
    let (out, err) = (
        String::from_utf8_lossy(&read.stdout),
        String::from_utf8_lossy(&read.stderr),
    );
    let rows: Vec<&str> = out.lines().collect();
    assert!(!rows.is_empty(), "{err}");
    assert!(
        rows.iter().all(|row| row.split('\t').nth(1) == Some("")),
        "{out}"
    );
    assert!(rows.iter().any(|row| row.starts_with('5')), "{out}");
    lab.down_with_warnings();
}
