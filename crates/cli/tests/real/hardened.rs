//! Disturbances from outside: killed processes, early signals, files with control characters.

use crate::lab_file;
use crate::live::{Runtime, can_run, signal, wait_for, wait_for_end};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

const EMBEDDED: &str = "labs/two-hosts.atm.yml";

/// The child of a process whose command line contains this word.
fn child_with(parent: &str, word: &str) -> Option<String> {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let mut ids = all.filter_map(|entry| entry.file_name().into_string().ok());
    ids.find(|id| {
        let read = |file: &str| fs::read_to_string(format!("/proc/{id}/{file}"));
        let is_child =
            read("status").is_ok_and(|text| text.contains(&format!("\nPPid:\t{parent}\n")));
        is_child && read("cmdline").is_ok_and(|text| text.contains(word))
    })
}

#[test]
fn the_death_of_the_supervisor_is_told_and_shown_and_programs_say_why_they_do_not_start() {
    if !can_run() {
        return;
    }
    let lab = Runtime::new("supervisor");
    lab.ok(&["up", "-d", "-q", EMBEDDED]);
    let shown = lab.ok(&["ls", "-o", "json"]);
    assert!(shown.contains("\"state\": \"ready\""), "{shown}");
    let process = child_with(&lab.process(), "__lab-supervisor").expect("a supervisor");
    signal(&process, "KILL");
    let words = format!("the lab's supervisor (process {process}) has died");
    wait_for("the event", || {
        lab.ok(&["events"]).contains("lab.process-gone")
    });
    assert!(lab.ok(&["events"]).contains(&words));
    assert!(lab.ok(&["ls", "-o", "csv"]).contains(&words));
    let inspected = lab.ok(&["inspect", "lab", "--wide"]);
    assert!(
        inspected.contains("gone: programs in its hosts have ended"),
        "{inspected}"
    );
    let ran = lab.run(&["exec", "urku", "true"]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert!(
        ran.err.contains(&words) && !ran.err.contains("os error"),
        "{}",
        ran.err
    );
    lab.down_with_warnings();
    lab.nothing_is_left();
}

#[test]
fn signals_leave_nothing_behind_however_early_they_come() {
    let lab = Runtime::new("early");
    let made = lab.directory.join("aerostat");
    let is_made = || fs::read_dir(&made).is_ok_and(|mut all| all.next().is_some());
    // The last signals come as soon as there is something to leave, however slow the machine is.
    for pause in [Some(4), Some(12), Some(30), Some(60), Some(200), None] {
        for name in ["INT", "TERM", "HUP", "QUIT"] {
            let up = lab.command(&["up", "-q", "--embedded", EMBEDDED]);
            // In the background of a shell, or under `nohup`, this test may have been started with ignored signals.
            let mut command = Command::new("env");
            command.arg("--default-signal").arg(up.get_program());
            command.args(up.get_args());
            for (key, value) in up.get_envs() {
                match value {
                    Some(value) => command.env(key, value),
                    None => command.env_remove(key),
                };
            }
            if let Some(directory) = up.get_current_dir() {
                command.current_dir(directory);
            }
            let command = command.stdout(Stdio::null()).stderr(Stdio::null());
            let mut child = command.process_group(0).spawn().unwrap();
            match pause {
                Some(pause) => std::thread::sleep(Duration::from_millis(pause)),
                None => {
                    while !is_made() {
                        assert_eq!(child.try_wait().unwrap(), None, "{name}: no directory");
                        std::thread::sleep(Duration::from_millis(1));
                    }
                }
            }
            signal(&child.id().to_string(), name);
            wait_for_end(&mut child);
            let left = fs::read_dir(&made).map_or(0, Iterator::count);
            assert_eq!(left, 0, "{name} after {pause:?} ms");
        }
    }
    lab.nothing_is_left();
}

#[test]
fn down_stops_each_lab_once_and_those_that_run_although_another_does_not() {
    let lab = Runtime::new("down-twice");
    lab.ok(&["up", "-d", "-q", "--embedded", EMBEDDED]);
    let name = "two-hosts";
    let ran = lab.run(&["down", "nosuch", name, name]);
    assert_eq!(ran.err.matches("error:").count(), 1, "{}", ran.err);
    ran.ends(4, "no lab 'nosuch' is running");
    lab.nothing_is_left();
}

#[test]
fn a_link_that_this_user_may_not_open_is_a_missing_privilege_and_names_itself() {
    if !can_run() || fs::metadata("/proc/self").unwrap().uid() != 0 {
        return;
    }
    let lab = Runtime::new("ethernet");
    std::os::unix::fs::chown(&lab.directory, Some(65_534), Some(65_534)).unwrap();
    let text = "switches: {s1: {}}\nlinks:\n  - [s1, { name: out, ethernet: { interface: lo, peer: \"02:00:00:00:00:0b\" } }]\n";
    let file = lab.directory.join("e.atm.yml");
    fs::write(&file, text).unwrap();
    let mut command = lab.command(&["up", "--embedded", file.to_str().unwrap()]);
    let ran = command.uid(65_534).gid(65_534).output().unwrap();
    let told = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(5), "{told}");
    assert!(
        told.contains("error: link out-s1 cannot be opened"),
        "{told}"
    );
}

#[test]
fn a_lab_file_cannot_write_to_the_terminal() {
    let text = "name: \"\\e[31mx\\e]0;pwn\\a\"\nswitches: {s1: {}}\nhosts: { \"a\\u202eb\": {on: \"\\e[2J\"} }\n";
    let file = lab_file("escape.atm.yml", text);
    let ran = crate::run(&["validate", &file]);
    assert_eq!(ran.code, 2);
    let bad = |c: char| c != '\n' && (c.is_control() || c == '\u{202e}');
    assert!(!ran.err.contains(bad), "{:?}", ran.err);
    ran.says(r"'\u{1b}[31mx\u{1b}]0;pwn\u{7}'");
}

#[test]
fn times_and_seeds_below_zero_say_what_is_expected() {
    let lab = "labs/two-hosts.atm.yml";
    for (option, value, words) in [
        ("--until", "-5s", "-5s"),
        (
            "--seed",
            "-1",
            "a whole number of 0 to 18446744073709551615",
        ),
        ("--seed", "x", "a whole number of 0 to 18446744073709551615"),
    ] {
        let ran = crate::run(&["run", option, value, lab]);
        assert_eq!(ran.code, 2, "{}", ran.err);
        assert!(
            ran.err.contains(words) && !ran.err.contains("-- -"),
            "{}",
            ran.err
        );
    }
}
