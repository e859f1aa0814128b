//! The state of a lab as files: `cat` and `echo` as in the thesis.
//!
//! Without /dev/fuse, or the right to mount, this is skipped with a message.

use crate::live::{Runtime, signal, wait_for, wait_for_end};
use std::fs;
use std::io::BufRead as _;
use std::process::{Child, Command, Stdio};

const LAB: &str = "labs/two-subnets.atm.yml";

/// `sh -c`: exit code and output of both kinds.
fn shell(line: &str) -> (Option<i32>, String) {
    let line = format!("{{ {line}; }} 2>&1");
    let out = Command::new("sh").args(["-c", &line]).output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    (out.status.code(), text)
}

fn mounted(directory: &str) -> bool {
    let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
    table.contains(&format!(" {directory} "))
}

/// Mounts; `None` with the reason printed if that fails.
fn mount(lab: &Runtime, directory: &str) -> Option<Child> {
    let mut child = lab.command(&["mount", directory]);
    let mut child = child.stderr(Stdio::piped()).spawn().unwrap();
    let mut ended = false;
    wait_for("the mount", || {
        ended = child.try_wait().unwrap().is_some();
        ended || mounted(directory)
    });
    if ended {
        let why = std::io::read_to_string(child.stderr.take().unwrap()).unwrap();
        println!("skipped: {why}");
        return None;
    }
    Some(child)
}

#[test]
fn files_show_the_lab_and_take_qos_entries() {
    let lab = Runtime::new("mount");
    let directory = lab.directory.join("files");
    fs::create_dir(&directory).unwrap();
    let at = directory.to_str().unwrap();
    lab.ok(&["up", "-d", "-q", "--embedded", LAB]);
    let Some(mut files) = mount(&lab, at) else {
        return;
    };
    let (code, names) = shell(&format!("ls {at} {at}/urku {at}/urku/net/atm"));
    assert_eq!(code, Some(0), "{names}");
    for name in ["urku", "sello", "atm", "net", "lec", "mpc"] {
        assert!(names.lines().any(|line| line == name), "{name}: {names}");
    }
    let linux = lab.ok(&["inspect", "urku", "lec", "-o", "proc"]);
    let (_, lec) = shell(&format!("cat {at}/urku/net/atm/lec"));
    let head = |text: &str| text.lines().next().unwrap_or_default().to_owned();
    assert_eq!(head(&lec), head(&linux), "{lec}");
    let mpc = format!("{at}/urku/atm/mpc");
    let add = "add 130.230.54.146 tx=80000,0,1600 rx=tx";
    let (code, said) = shell(&format!("echo '{add}' > {mpc}"));
    assert_eq!((code, said.as_str()), (Some(0), ""));
    let (_, text) = shell(&format!("cat {mpc}"));
    assert!(text.contains("130.230.54.146"), "{text}");
    assert!(lab.ok(&["qos", "show", "urku"]).contains("130.230.54.146"));
    for (line, file) in [("add nonsense", "mpc"), ("hello", "mpc"), ("x y", "lec")] {
        let (code, said) = shell(&format!("/bin/echo '{line}' > {at}/urku/atm/{file}"));
        assert_ne!(code, Some(0), "{line}: {said}");
    }
    let (code, _) = shell(&format!("echo 'del 130.230.54.146' > {mpc}"));
    assert_eq!(code, Some(0));
    assert!(!lab.ok(&["qos", "show", "urku"]).contains("130.230.54.146"));
    // Ctrl-C works although a file is open.
    let held = fs::File::open(&mpc).unwrap();
    signal(&files.id().to_string(), "INT");
    assert_eq!(wait_for_end(&mut files), 0);
    assert!(!mounted(at));
    drop(held);
    // If the process is killed, its watcher takes the mount away.
    let mut killed = mount(&lab, at).expect("a second mount");
    signal(&killed.id().to_string(), "KILL");
    wait_for_end(&mut killed);
    wait_for("the watcher", || !mounted(at));
    // If both are killed, the next one says what it found.
    let mut killed = mount(&lab, at).expect("a third mount");
    let watcher = || {
        lab.processes().into_iter().find(|process| {
            let line = fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains("__mount-watcher")
        })
    };
    wait_for("the watcher to start", || watcher().is_some());
    for process in [watcher().unwrap(), killed.id()] {
        signal(&process.to_string(), "KILL");
    }
    wait_for_end(&mut killed);
    assert!(
        !lab.ok(&["inspect", "urku", "mpc"]).is_empty(),
        "the lab goes on"
    );
    let again = lab.command(&["mount", at]).stderr(Stdio::piped()).spawn();
    let mut again = again.unwrap();
    let mut said = std::io::BufReader::new(again.stderr.take().unwrap()).lines();
    let first = said.next().unwrap().unwrap();
    // A 'doctor' or 'down' of another test may have found it before.
    let found = format!("took away a dead mount at {at}: its process was killed");
    assert!(first == found || first.contains("until Ctrl-C"), "{first}");
    wait_for("the fourth mount", || mounted(at));
    signal(&again.id().to_string(), "INT");
    assert_eq!(wait_for_end(&mut again), 0);
    // The mount ends with the lab.
    let mut files = mount(&lab, at).expect("a fifth mount");
    lab.ok(&["down"]);
    assert_eq!(wait_for_end(&mut files), 0);
    assert!(!mounted(at));
    lab.nothing_is_left();
}
