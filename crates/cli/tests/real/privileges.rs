//! The rights of a running lab's process, as the kernel reports them.

use crate::live::{Runtime, can_run, signal, wait_for, wait_for_end};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::Stdio;

const NOBODY: u32 = 65_534;
/// CAP_NET_ADMIN and CAP_SYS_ADMIN.
const CABLES: &str = "0000000000201000";
/// CAP_KILL, CAP_SETGID and CAP_SETUID.
const DAEMONS: &str = "00000000000000e0";
const NONE: &str = "0000000000000000";

/// `/proc/…/status` of a process or a thread.
fn status(of: &str) -> BTreeMap<String, String> {
    let text = fs::read_to_string(format!("/proc/{of}/status")).unwrap_or_default();
    let lines = text.lines().filter_map(|line| line.split_once(":\t"));
    lines
        .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
        .collect()
}

/// The sets of capabilities, in the kernel's order: inheritable, permitted, effective, bounding, ambient.
fn capabilities(of: &str) -> [String; 5] {
    let status = status(of);
    ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"].map(|name| status[name].clone())
}

fn is_confined(process: &str) {
    let threads = fs::read_dir(format!("/proc/{process}/task"))
        .unwrap()
        .flatten();
    let threads: Vec<_> = threads
        .map(|thread| thread.file_name().into_string().unwrap())
        .collect();
    assert!(
        threads.len() > 1,
        "the threads of clients were started before"
    );
    for thread in threads {
        let status = status(&format!("{process}/task/{thread}"));
        assert_eq!(
            (status["NoNewPrivs"].as_str(), status["Seccomp"].as_str()),
            ("1", "2"),
            "{thread}"
        );
    }
}

impl Runtime {
    /// The rows of `inspect lab` about the confinement.
    fn in_force(&self) -> BTreeMap<String, String> {
        let rows = self.inspect(&["lab"]).into_iter();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        rows.filter(|row| row["in_force"].is_string())
            .map(|row| (text(&row["what"]), text(&row["in_force"])))
            .collect()
    }
    /// The process of the helper.
    fn helper(&self) -> String {
        let told = self.in_force()["privileged helper"].clone();
        told.strip_prefix("process ").expect("a helper").to_owned()
    }
}

#[test]
fn a_lab_of_kernel_hosts_has_no_capability_left_and_says_so() {
    if !can_run() {
        return;
    }
    let lab = Runtime::new("confined");
    lab.ok(&["up", "-d", "-q", "labs/two-subnets.atm.yml"]);
    let process = lab.process();
    assert_eq!(capabilities(&process), [NONE; 5]);
    is_confined(&process);
    let told = lab.in_force();
    assert_eq!(told["capabilities"], "none");
    assert_eq!(told["bounding set"], "none");
    assert_eq!(told["no new privileges"], "on");
    assert_eq!(told["system calls (seccomp)"], "on");
    assert_eq!(told["privileged helper"], "not needed");
    // The two processes that hold the lab's namespaces do nothing else.
    let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap();
    let supervisor = children.trim();
    let init =
        fs::read_to_string(format!("/proc/{supervisor}/task/{supervisor}/children")).unwrap();
    for of in [supervisor, init.trim()] {
        assert_eq!(capabilities(of), [NONE; 5], "{of}");
    }
    lab.ok(&["exec", "urku", "--", "ping", "-c", "1", "10.2.0.10"]);
    lab.ends();
}

#[test]
fn without_privilege_a_lab_of_embedded_hosts_confines_itself_too() {
    let lab = Runtime::new("confined-embedded");
    let mut command = lab.command(&["up", "-q", "--embedded", "labs/two-hosts.atm.yml"]);
    if rustix_root() {
        std::os::unix::fs::chown(&lab.directory, Some(NOBODY), Some(NOBODY)).unwrap();
        command.uid(NOBODY).gid(NOBODY);
    }
    let started = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let Ok(mut up) = started else {
        println!("skipped: nobody may not run this program here");
        return;
    };
    let mut line = String::new();
    BufReader::new(up.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line, "ready\n");
    let process = up.id().to_string();
    // Changing the bounding set needs a privilege; with no_new_privs it has no effect.
    let [inheritable, permitted, effective, _, ambient] = capabilities(&process);
    assert_eq!([inheritable, permitted, effective, ambient], [NONE; 4]);
    is_confined(&process);
    signal(&process, "TERM");
    assert_eq!(wait_for_end(&mut up), 0);
    let left = fs::read_dir(lab.directory.join("aerostat")).unwrap();
    assert_eq!(
        left.count(),
        0,
        "the confined process removes its directory"
    );
}

fn rustix_root() -> bool {
    status("self")["Uid"].starts_with("0\t")
}

#[test]
fn the_helper_has_what_it_takes_to_move_cables_and_its_death_costs_no_more_than_that() {
    if !crate::bridges::can_bridge() {
        return;
    }
    let lab = Runtime::new("helper");
    lab.ok(&["up", "-d", "-q", "labs/bridges.atm.yml"]);
    assert_eq!(capabilities(&lab.process()), [NONE; 5]);
    let helper = lab.helper();
    assert_eq!(capabilities(&helper), [NONE, CABLES, CABLES, CABLES, NONE]);
    assert_eq!(status(&helper)["NoNewPrivs"], "1");
    lab.ok(&["move", "anna", "pc2"]);
    let again = lab.run(&["move", "anna", "pc2"]);
    again.says("anna is behind pc2");
    signal(&helper, "KILL");
    let mut told = String::new();
    wait_for("the lab to know", || {
        told = lab.in_force()["privileged helper"].clone();
        !told.starts_with("process")
    });
    assert!(told.starts_with("gone: stations do not move"), "{told}");
    let refused = lab.run(&["move", "anna", "pc1"]);
    refused.ends(1, "privileged helper is gone");
    lab.ok(&["exec", "anna", "--", "ping", "-c", "1", "10.1.0.21"]);
    lab.ends();
}

#[test]
fn daemons_end_with_the_helper_and_the_lab_says_that_nobody_starts_them_again() {
    let lab = Runtime::new("helper-split");
    lab.ok(&[
        "up",
        "-d",
        "-q",
        "--embedded",
        "--split",
        "labs/two-subnets.atm.yml",
    ]);
    let helper = lab.helper();
    if rustix_root() {
        assert_eq!(capabilities(&lab.process()), [NONE; 5]);
        assert_eq!(
            capabilities(&helper),
            [NONE, DAEMONS, DAEMONS, DAEMONS, NONE]
        );
    }
    signal(&helper, "KILL");
    wait_for("the daemons to be gone", || {
        let rows = lab.inspect(&["processes"]);
        rows.iter().all(|row| row["state"] == "ended")
    });
    let events = lab.ok(&["events"]);
    assert!(events.contains("privileged helper is gone"), "{events}");
    // Without its daemons the network does not carry all of its traffic.
    lab.down_with_warnings();
    lab.nothing_is_left();
}

#[test]
fn daemons_are_confined_and_tell_what_they_may_still_do() {
    let lab = Runtime::new("confined-daemons");
    let file = "labs/two-subnets.atm.yml";
    lab.ok(&["up", "-d", "-q", "--embedded", "--split", file]);
    let mut rows = Vec::new();
    wait_for("the daemons", || {
        rows = lab.inspect(&["processes"]);
        rows.iter().all(|row| row["may_still"].is_string())
    });
    let mut users = Vec::new();
    for row in &rows {
        let (pid, may) = (row["pid"].to_string(), row["may_still"].as_str().unwrap());
        println!("{} of {} may still do {may}", row["process"], row["node"]);
        let status = status(&pid);
        let [inheritable, permitted, effective, _, ambient] = capabilities(&pid);
        assert_eq!(
            [inheritable, permitted, effective, ambient],
            [NONE; 4],
            "{row}"
        );
        assert_eq!(status["NoNewPrivs"], "1", "{row}");
        assert_eq!(status["Seccomp"] == "2", !may.contains("seccomp"), "{row}");
        users.push(status["Uid"].clone());
        if !may.contains("network") {
            let interfaces = fs::read_to_string(format!("/proc/{pid}/net/dev")).unwrap();
            let own = fs::read_link(format!("/proc/{pid}/ns/net"));
            let ours = fs::read_link("/proc/self/ns/net").unwrap();
            assert!(own.is_err() || own.is_ok_and(|own| own != ours), "{row}");
            assert!(interfaces.contains("lo:"), "{row}: {interfaces}");
        }
        if let Ok(environment) = fs::read(format!("/proc/{pid}/environ")) {
            assert_eq!(environment, b"", "{row}");
        }
    }
    // Root can give each daemon a user of its own.
    if rustix_root() {
        users.sort();
        users.dedup();
        assert_eq!(users.len(), rows.len());
    }
    lab.down_with_warnings();
    lab.nothing_is_left();
}

#[test]
fn a_lab_that_is_killed_takes_its_helper_along() {
    let lab = Runtime::new("helper-killed");
    lab.ok(&[
        "up",
        "-d",
        "-q",
        "--embedded",
        "--split",
        "labs/two-subnets.atm.yml",
    ]);
    lab.helper();
    signal(&lab.process(), "KILL");
    lab.nothing_is_left();
}

#[test]
fn doctor_tells_what_would_be_in_force_here() {
    let shown = crate::run(&["doctor", "-o", "json"]).json();
    let rows = shown["rows"].as_array().unwrap();
    for (check, advice) in [
        ("capabilities", "none"),
        ("no new privileges", "on"),
        ("seccomp", "on"),
    ] {
        let row = rows.iter().find(|row| row["check"] == check).unwrap();
        assert_eq!(
            (&row["state"], &row["advice"]),
            (&"ok".into(), &advice.into())
        );
    }
    let landlock = rows.iter().find(|row| row["check"] == "landlock").unwrap();
    let told = landlock["advice"].as_str().unwrap();
    assert!(
        told.starts_with("on, ABI ") || told.starts_with("off: "),
        "{told}"
    );
}
