//! The program of a running lab is replaced or removed, as packages do.

use crate::live::Runtime;
use crate::{command, run};
use aerostat_testing::command::signal;
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

/// A copy of the command, which the test may remove.
fn copy() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("upgrade");
    std::fs::create_dir_all(&folder).unwrap();
    let copy = folder.join("aerostat");
    let _ = std::fs::remove_file(&copy);
    std::fs::copy(env!("CARGO_BIN_EXE_aerostat"), &copy).unwrap();
    copy
}

#[test]
fn a_lab_whose_program_is_gone_starts_its_daemons_again_and_ends_in_order() {
    let lab = Runtime::new("upgrade");
    let program = copy();
    let up = Command::new(&program)
        .args([
            "up",
            "-d",
            "-q",
            "--split",
            "--embedded",
            "labs/two-hosts.atm.yml",
        ])
        .current_dir(crate::root())
        .env("XDG_RUNTIME_DIR", &lab.directory)
        .output()
        .unwrap();
    let err = String::from_utf8_lossy(&up.stderr);
    assert!(up.status.success(), "{err}");
    std::fs::remove_file(&program).unwrap();
    let daemon = || {
        let rows = lab.json(&["inspect", "processes", "-o", "json"]);
        let all = rows
            .as_object()
            .unwrap()
            .values()
            .filter_map(Value::as_array)
            .flatten();
        let mut all = all.filter(|row| row["process"] == "les");
        all.next().cloned().unwrap_or_else(|| panic!("{rows}"))
    };
    let first = daemon()["pid"].clone();
    signal(&first.to_string(), "KILL");
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        let row = daemon();
        if row["restarts"] == 1 && row["state"] == "running" && row["pid"] != first {
            break;
        }
        assert!(Instant::now() < until, "{row}");
        std::thread::sleep(Duration::from_millis(20));
    }
    lab.down_with_warnings();
    lab.nothing_is_left();
}

#[test]
fn a_lab_of_another_version_is_listed_and_told_and_ends() {
    let lab = Runtime::new("versions");
    lab.ok(&["up", "-d", "-q", "--embedded", "labs/two-hosts.atm.yml"]);
    let version = |expected: &str| {
        let rows = lab.json(&["ls", "-o", "json"]);
        assert_eq!(rows["rows"][0]["version"], expected);
    };
    version(env!("CARGO_PKG_VERSION"));
    assert_eq!(lab.run(&["inspect", "lec"]).err, "");
    let file = lab.directory.join("aerostat/two-hosts/state.json");
    let mut state: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    for (said, shown, told) in [
        (Some("9.9.9"), "9.9.9", "runs version 9.9.9, and this is"),
        (None, "older", "runs an older version, and this is"),
    ] {
        match said {
            Some(said) => state["version"] = said.into(),
            None => drop(state.as_object_mut().unwrap().remove("version")),
        }
        std::fs::write(&file, state.to_string()).unwrap();
        version(shown);
        let inspect = lab.run(&["inspect", "lec"]);
        inspect.ends(0, told);
    }
    lab.down_with_warnings();
}

#[test]
fn neither_home_nor_terminal_nor_a_writable_directory_is_needed() {
    let plain = run(&["run", "two-hosts", "-q", "-o", "json"]);
    let bare = command(&["run", "two-hosts", "-q", "-o", "json"])
        .env_clear()
        .current_dir("/proc")
        .output()
        .unwrap();
    assert_eq!(bare.status.code(), Some(plain.code));
    assert_eq!(String::from_utf8_lossy(&bare.stdout), plain.out);
    let out = command(&[
        "run",
        "two-hosts",
        "-q",
        "-o",
        "csv",
        "--out",
        "/proc/results",
    ])
    .env_remove("HOME")
    .output()
    .unwrap();
    let err = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(1), "{err}");
    assert!(err.contains("/proc/results"), "{err}");
}
