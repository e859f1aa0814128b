//! Parts that are not there: the preload library, a device, the service that a program wants, a thread.

use crate::live::Runtime;
use crate::{lab_file, root};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// A folder with the command alone, as after `cargo install`.
fn alone() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("alone/bin");
    std::fs::create_dir_all(&folder).unwrap();
    let command = folder.join("aerostat");
    if !command.exists() {
        std::fs::hard_link(env!("CARGO_BIN_EXE_aerostat"), &command).unwrap();
    }
    command
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_command_without_the_preload_library_says_so_and_tells_where_to_put_it() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("alone");
    let _ = std::fs::remove_dir_all(&folder);
    let command = alone();
    let runtime = Runtime::new("alone");
    let run = |args: &[&str]| {
        let mut command = Command::new(&command);
        command.args(args).current_dir(root());
        command
            .env("XDG_RUNTIME_DIR", &runtime.directory)
            .output()
            .unwrap()
    };
    let row = || {
        let doctor = run(&["doctor", "-o", "csv"]);
        let rows = String::from_utf8(doctor.stdout).unwrap();
        let mut rows = rows.lines().map(str::to_owned);
        rows.find(|row| row.starts_with("libaerostat_preload.so,"))
            .expect("a row")
    };
    assert!(
        row().contains(",optional,") && row().contains("cargo build --release -p aerostat-preload"),
        "{}",
        row()
    );
    let up = run(&["up", "-d", "-q", "labs/two-subnets.atm.yml"]);
    if up.status.code() == Some(5) {
        return println!("skipped: {}", said(&up));
    }
    let told = "libaerostat_preload.so is not installed, so programs for the ATM sockets of Linux find none here";
    let exec = run(&["exec", "urku", "--", "true"]);
    assert_eq!(exec.status.code(), Some(0));
    assert!(
        said(&exec).contains(told) && said(&exec).lines().count() == 1,
        "{}",
        said(&exec)
    );
    // Wherever the documents put it, it is found.
    for place in ["bin", "lib", "lib/aerostat"] {
        let library = folder.join(place).join("libaerostat_preload.so");
        std::fs::create_dir_all(library.parent().unwrap()).unwrap();
        std::fs::hard_link(crate::preload::library(), &library).unwrap();
        let exec = run(&["exec", "urku", "--", "sh", "-c", "echo $LD_PRELOAD"]);
        assert_eq!(said(&exec), "", "{place}");
        assert!(String::from_utf8_lossy(&exec.stdout).contains("libaerostat_preload.so"));
        assert!(row().contains(",ok,"), "{}", row());
        std::fs::remove_file(library).unwrap();
    }
    assert_eq!(run(&["down", "-q"]).status.code(), Some(0));
}

const SERVED: &str = "
switches: { s: {} }
lane: { on: s, elans: { a: { subnet: 10.1.0.0/24 } } }
hosts:
  x: { on: s, elan: a, ip: 10.1.0.10 }
  y: { on: s, elan: a, ip: 10.1.0.20, sockets: [{ name: sink, listen: sink }] }
";

/// A program for the ATM sockets of Linux that listens at all addresses of its host; its errno, or 0 once it listens.
fn listens(runtime: &Runtime, lab: &str, host: &str, and_then: &str) -> Command {
    let text = format!(
        "import socket, sys, time\ns = socket.socket(20, socket.SOCK_DGRAM)\ntry: s.listen(5)\nexcept OSError as e: \
         print(e.errno); sys.exit()\nprint(0, flush=True)\n{and_then}"
    );
    let mut command = Command::new("python3");
    let service = runtime
        .directory
        .join(format!("aerostat/{lab}/atm/{host}.sock"));
    command.args(["-c", &text]).env("AEROSTAT_ATM", service);
    command.env("LD_PRELOAD", crate::preload::library());
    command
}

#[test]
fn a_program_that_listens_for_what_another_has_is_told_so() {
    if Command::new("python3").arg("--version").output().is_err() {
        return println!("skipped: there is no python3");
    }
    let runtime = Runtime::new("served");
    let lab = lab_file("served.atm.yml", SERVED);
    runtime.ok(&["up", "-d", "-q", "--embedded", &lab]);
    let errno = |host| {
        let out = listens(&runtime, "served", host, "").output().unwrap();
        assert!(out.status.success(), "{}", said(&out));
        String::from_utf8(out.stdout).unwrap().trim().to_owned()
    };
    // The lab file's program has it.
    assert_eq!(errno("y"), "98");
    // No program has it; then another program of the machine has it.
    assert_eq!(errno("x"), "0");
    let mut first = listens(&runtime, "served", "x", "time.sleep(60)");
    let mut first = first.stdout(std::process::Stdio::piped()).spawn().unwrap();
    crate::preload::until_there_are_of(&runtime, "x", "listening", 1);
    assert_eq!(errno("x"), "98");
    first.kill().unwrap();
    first.wait().unwrap();
    // A program that knows its address may listen beside it, and one that names an address has that.
    let python = root().join("python");
    let text = "import aerostat_socket, sys\ns = aerostat_socket.Service(sys.argv[1])\n\
                t = s.socket(); print(t.bind('y/e1')[-2:]); t.listen()\ntry: s.listen()\nexcept OSError as e: print(e.errno, e)";
    let service = runtime.directory.join("aerostat/served/atm/y.sock");
    let out = Command::new("python3")
        .args(["-c", text])
        .arg(service)
        .env("PYTHONPATH", python)
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(shown.starts_with("e1\n98 "), "{shown}{}", said(&out));
    assert!(
        shown.contains("a program of the lab file listens for this at y/e0"),
        "{shown}"
    );
    runtime.ok(&["down"]);
}

/// A command for which no thread can be made ends with words, and in time. The stack of a thread is larger than memory.
#[test]
fn without_threads_no_command_panics() {
    let runtime = Runtime::new("threadless");
    let lab = "labs/two-hosts.atm.yml";
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("threadless");
    std::fs::create_dir_all(&folder).unwrap();
    let out = folder.join("runs").display().to_string();
    let commands: [&[&str]; 16] = [
        &["run", lab, "-q"],
        &["run", lab, "-q", "--seeds", "1-2"],
        &["sweep", lab, "-q", "--seeds", "1-2", "--until", "1s"],
        &[
            "sweep", lab, "-q", "--seeds", "1-2", "--until", "1s", "--out", &out, "--again",
        ],
        &[
            "rfc2544",
            "labs/rfc2544.atm.yml",
            "--traffic",
            "switch",
            "--frames",
            "64",
            "--duration",
            "100ms",
        ],
        &["reproduce", "cambridge/1", "-q", "--seeds", "1"],
        &["doctor"],
        &["up", "-d", "-q", "--embedded", lab],
        &["up", "-d", "-q", lab],
        &["up", "-d", "-q", "--split", "--embedded", lab],
        &["capture", "-w", "-"],
        &["trace", "--no-follow"],
        &["events"],
        &["inspect"],
        &["pingall"],
        &["mount", &out],
    ];
    let tried = |threads: bool, args: &[&str]| {
        let mut command = runtime.command(args);
        if !threads {
            command.env("RUST_MIN_STACK", (1_u64 << 46).to_string());
        }
        let began = Instant::now();
        let ran = command.output().unwrap();
        let text = said(&ran);
        assert!(!text.contains("panicked"), "{args:?}: {text}");
        assert!(
            ran.status.code().is_some_and(|code| code < 100),
            "{args:?}: {:?}: {text}",
            ran.status
        );
        assert!(began.elapsed() < Duration::from_secs(60), "{args:?}");
        text
    };
    for args in commands {
        let said = tried(false, args);
        if ["sweep", "up"].contains(&args[0]) {
            assert!(said.contains("no thread can be made"), "{args:?}: {said}");
        }
    }
    // The same commands beside a lab that runs.
    tried(true, &["up", "-d", "-q", "--embedded", lab]);
    for args in &commands[10..] {
        tried(false, args);
    }
    tried(true, &["down", "-q"]);
    let _ = std::fs::remove_dir_all(folder);
}

/// A plain file in the place of a device, as a program leaves it that writes there before the device exists.
#[test]
fn a_plain_file_in_the_place_of_a_device_is_found_by_doctor() {
    let file = lab_file("no-device", "");
    let covered = |device: &str, args: &str| {
        let command = env!("CARGO_BIN_EXE_aerostat");
        let line = format!("mount --bind {file} {device} && exec {command} {args}");
        Command::new("unshare")
            .args(["--mount", "sh", "-c", &line])
            .current_dir(root())
            .output()
            .unwrap()
    };
    if !Path::new("/dev/net/tun").exists()
        || !said(&covered("/dev/net/tun", "--version")).is_empty()
    {
        return println!("skipped: no privilege for mounts, or no /dev/net/tun");
    }
    let up = covered("/dev/net/tun", "up labs/two-hosts.atm.yml");
    let text = said(&up);
    assert_eq!(up.status.code(), Some(5), "{text}");
    assert!(
        text.contains("/dev/net/tun is not the device of the kernel"),
        "{text}"
    );
    assert!(text.contains("'aerostat doctor'"), "{text}");
    for device in ["/dev/net/tun", "/dev/fuse"] {
        let doctor = covered(device, "doctor -o csv");
        let rows = String::from_utf8(doctor.stdout).unwrap();
        let row = rows
            .lines()
            .find(|row| row.starts_with(device))
            .expect("a row");
        assert!(!row.contains(",ok,") && row.contains("mknod"), "{row}");
    }
}
