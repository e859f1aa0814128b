//! `sockets: { group: NAME }`: members of a group of the system may use the ATM service of the hosts of a lab.

use crate::lab_file;
use crate::live::Runtime;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

const LAB: &str = "
sockets: { group: GROUP }
switches: { s: {} }
lane: { on: s, elans: { a: { subnet: 10.1.0.0/24 } } }
hosts: { x: { on: s, elan: a, ip: 10.1.0.10 } }
";

fn lab(name: &str, group: &str) -> String {
    lab_file(&format!("{name}.atm.yml"), &LAB.replace("GROUP", group))
}

/// True if a program of this user and this group may connect.
fn may_connect(socket: &Path, group: u32) -> bool {
    let python = "
import os, socket, sys
os.setgroups([]); os.setgid(int(sys.argv[2])); os.setuid(65534)
socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET).connect(sys.argv[1])
";
    let out = Command::new("python3")
        .args(["-c", python])
        .arg(socket)
        .arg(group.to_string())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(
        out.status.success() || said.contains("Permission denied"),
        "{said}"
    );
    out.status.success()
}

#[test]
fn members_of_the_group_connect_and_others_do_not() {
    let root = is_root();
    let python = Command::new("python3").arg("--version").output();
    if !root || python.is_err() {
        return eprintln!("SKIPPED: this needs root and python3: programs of other users");
    }
    let runtime = Runtime::new("grouped");
    std::fs::set_permissions(&runtime.directory, PermissionsExt::from_mode(0o711)).unwrap();
    let file = lab("grouped", "games");
    runtime.ok(&["up", "-d", "-q", "--embedded", &file]);
    let here = runtime.directory.join("aerostat/grouped");
    let socket: PathBuf = here.join("atm/x.sock");
    let games = std::fs::metadata(&socket).unwrap().gid();
    assert_ne!(games, 0);
    for (path, mode) in [
        (here.join("atm"), 0o710),
        (socket.clone(), 0o660),
        (here.clone(), 0o710),
    ] {
        let found = std::fs::metadata(&path).unwrap();
        assert_eq!(
            (found.gid(), found.mode() & 0o777),
            (games, mode),
            "{}",
            path.display()
        );
    }
    // The control socket is the owner's.
    let control = std::fs::metadata(here.join("control.sock")).unwrap();
    assert_ne!(control.gid(), games);
    assert!(may_connect(&socket, games), "a member");
    assert!(!may_connect(&socket, 65534), "nobody");
    assert!(
        !may_connect(&here.join("control.sock"), games),
        "the control socket"
    );
    runtime.ok(&["down"]);
    // A lab without the key is closed again; so is a lab whose group cannot pass the directories above.
    let file = lab("grouped", "nosuchgroup");
    let up = runtime.run(&["up", "-d", "-q", "--embedded", &file]);
    assert_ne!(up.code, 0);
    up.says("no group 'nosuchgroup'");
    std::fs::set_permissions(&runtime.directory, PermissionsExt::from_mode(0o700)).unwrap();
    let file = lab("grouped", "games");
    let up = runtime.run(&["up", "-d", "-q", "--embedded", &file]);
    assert_ne!(up.code, 0);
    up.says("is closed to them (mode 700)");
}

/// Answer that a program of this user, with these groups, gets when it says hello at a socket.
fn hears(socket: &Path, user: u32, group: u32, others: &str) -> Vec<u8> {
    let python = "
import os, socket, sys
user, group = int(sys.argv[2]), int(sys.argv[3])
os.setgroups([int(g) for g in sys.argv[4].split(',') if g]); os.setgid(group); os.setuid(user)
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); s.settimeout(10); s.connect(sys.argv[1])
try: s.send(bytes([0, 1, 0, 1, 0, 4]))
except BrokenPipeError: pass    # it has been refused already
try: said = s.recv(8192)
except ConnectionResetError: said = s.recv(8192)    # it was closed before it read; what it said is still there
sys.stdout.buffer.write(said)
";
    let out = Command::new("python3")
        .args(["-c", python])
        .arg(socket)
        .args([user.to_string(), group.to_string(), others.to_owned()])
        .output()
        .unwrap();
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    out.stdout
}

/// The service knows who connects, whatever the modes of files and directories are.
#[test]
fn the_service_itself_refuses_other_users() {
    let python = Command::new("python3").arg("--version").output();
    if !is_root() || python.is_err() {
        return eprintln!("SKIPPED: this needs root and python3: programs of other users");
    }
    for given in ["", "sockets: { group: games }"] {
        let runtime = Runtime::new("opened");
        let text = LAB.replace("sockets: { group: GROUP }", given);
        let file = lab_file("opened.atm.yml", &text);
        runtime.ok(&["up", "-d", "-q", "--embedded", &file]);
        let here = runtime.directory.join("aerostat/opened");
        let socket = here.join("atm/x.sock");
        let games = 60;
        // Somebody has opened all doors.
        for path in [
            &runtime.directory,
            &runtime.directory.join("aerostat"),
            &here,
            &here.join("atm"),
            &socket,
        ] {
            std::fs::set_permissions(path, PermissionsExt::from_mode(0o777)).unwrap();
        }
        const WELCOME: u8 = 0x01;
        let welcomed = |user, group, others| {
            let said = hears(&socket, user, group, others);
            let text = String::from_utf8_lossy(&said).into_owned();
            assert_eq!(said[2], WELCOME, "{said:?}");
            let refused = text.contains("the lab belongs to another user");
            assert!(!refused || said[2..4] == [0x01, 0x08], "{said:?}");
            !refused
        };
        assert!(welcomed(0, 0, ""), "the owner");
        assert!(!welcomed(65_534, 65_534, ""), "another user");
        let member = !given.is_empty();
        assert_eq!(welcomed(65_534, games, ""), member, "by its group");
        assert_eq!(
            welcomed(65_534, 65_534, "7,60"),
            member,
            "by a supplementary group"
        );
        let counted = runtime.ok(&["inspect", "lab", "-o", "csv", "--table", "lab.lab"]);
        let strangers = if member { 1 } else { 3 };
        let line = format!("programs with ATM sockets of other users,{strangers}\n");
        assert!(counted.contains(&line), "{counted}");
        runtime.ok(&["down"]);
    }
}

fn is_root() -> bool {
    Command::new("id")
        .arg("-u")
        .output()
        .is_ok_and(|out| out.stdout == b"0\n")
}
