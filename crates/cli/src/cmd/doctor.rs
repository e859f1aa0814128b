//! `aerostat doctor`: what is missing on this system for live labs, and how to get it.

use crate::args::DoctorArgs;
use crate::exit::{Exit, Outcome, say};
use crate::output::{self, Rows};
use crate::preload;
use aerostat_live::namespace::{Device, FUSE, TUN};
use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A check of one property.
struct Check {
    /// The property.
    name: &'static str,
    /// True if it is present.
    ok: bool,
    /// True if live labs cannot run without it.
    vital: bool,
    /// Its use.
    used_for: &'static str,
    /// The result of the check, or how to get the missing part.
    advice: String,
}

/// Programs: name, use, Debian package.
const PROGRAMS: [(&str, &str, &str); 5] = [
    ("ip", "addresses and routes of kernel hosts", "iproute2"),
    ("ping", "trying out a lab", "iputils-ping"),
    ("iperf3", "measuring a lab", "iperf3"),
    ("tshark", "reading captures", "tshark"),
    ("tc", "queueing of kernel hosts", "iproute2"),
];

/// Number of CAP_NET_ADMIN in the kernel's capability sets.
const CAP_NET_ADMIN: u32 = 12;
/// Number of CAP_SYS_ADMIN.
const CAP_SYS_ADMIN: u32 = 21;

/// Runs all checks and shows the results.
pub(crate) fn run(args: &DoctorArgs) -> Outcome {
    for directory in aerostat_live::mount::sweep() {
        say(format_args!("took away a dead mount at {directory}"));
    }
    let mut checks = vec![
        tun(),
        privilege(),
        interfaces(),
        bridges(),
        fuse(),
        library(),
    ];
    checks.extend(PROGRAMS.into_iter().map(program));
    checks.extend(confinement());
    let mut rows = Rows::new(&["check", "state", "used_for", "advice"]);
    for check in &checks {
        let state = match (check.ok, check.vital) {
            (true, _) => "ok",
            (false, true) => "missing",
            (false, false) => "optional",
        };
        rows.push(vec![
            check.name.into(),
            state.into(),
            check.used_for.into(),
            check.advice.clone().into(),
        ]);
    }
    output::write(args.output.form(), "aerostat.doctor.v1", &[rows])?;
    Ok(if checks.iter().any(|check| check.vital && !check.ok) {
        Exit::Privilege
    } else if checks.iter().any(|check| !check.ok) {
        Exit::Warnings
    } else {
        Exit::Ok
    })
}

/// The rights that a lab's process could give up on this system. Labs also run if it cannot.
fn confinement() -> Vec<Check> {
    let names = [
        ("capabilities", "none", "capabilities left to a running lab"),
        ("bounding set", "", "capabilities that it can get back"),
        (
            "no new privileges",
            "on",
            "programs give a running lab no rights",
        ),
        ("seccomp", "on", "system calls of a running lab"),
        ("landlock", "on", "files and ports of a running lab"),
    ];
    let tried = aerostat_live::confine::tried();
    let found = names.into_iter().zip(tried);
    let checks = found.map(|((name, wanted, used_for), (_, advice))| Check {
        name,
        ok: advice.starts_with(wanted),
        vital: false,
        used_for,
        advice,
    });
    checks.collect()
}

fn tun() -> Check {
    let ok = TUN.try_to_open();
    Check {
        name: TUN.path,
        ok: ok.is_ok(),
        vital: true,
        used_for: "network interfaces of kernel hosts",
        advice: advice(TUN, "tun", ok),
    }
}

/// The fault of a device, and the way to get the device.
fn advice(device: Device, module: &str, opened: io::Result<()>) -> String {
    let Device { path, minor } = device;
    match opened {
        Ok(()) => "can be opened".to_owned(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            format!("load the module: sudo modprobe {module} (in a container: --device {path})")
        }
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            format!("{error}: sudo rm {path} && sudo mknod -m 0666 {path} c 10 {minor}")
        }
        Err(error) => format!("{error}: sudo chmod 0666 {path}, or run as root"),
    }
}

/// Root with the needed capabilities, or user namespaces.
fn privilege() -> Check {
    let capable = [CAP_NET_ADMIN, CAP_SYS_ADMIN]
        .into_iter()
        .all(has_capability);
    let (ok, advice) = if capable {
        (true, "CAP_NET_ADMIN and CAP_SYS_ADMIN are there".to_owned())
    } else {
        match user_namespaces() {
            Ok(()) => (true, "user namespaces work: no root needed".to_owned()),
            Err(why) => (false, why),
        }
    };
    Check {
        name: "privilege",
        ok,
        vital: true,
        used_for: "network namespaces of kernel hosts",
        advice,
    }
}

/// The right to make interfaces in its own network namespace, which no user namespace gives.
fn interfaces() -> Check {
    let ok = has_capability(CAP_NET_ADMIN);
    Check {
        name: "CAP_NET_ADMIN",
        ok,
        vital: false,
        used_for: "aerostat host",
        advice: match ok {
            true => "this machine can be a host",
            false => "run it as root, or as a service: docs/host.md",
        }
        .to_owned(),
    }
}

fn fuse() -> Check {
    let ok = FUSE.try_to_open();
    Check {
        name: FUSE.path,
        ok: ok.is_ok(),
        vital: false,
        used_for: "aerostat mount",
        advice: advice(FUSE, "fuse", ok),
    }
}

/// The library that `exec` preloads.
fn library() -> Check {
    let found = preload::find();
    Check {
        name: preload::NAME,
        ok: found.is_some(),
        vital: false,
        used_for: "exec: programs for the ATM sockets of Linux",
        advice: found.map_or_else(
            || preload::advice().to_owned(),
            |path| path.display().to_string(),
        ),
    }
}

/// The kernel's bridges and virtual cables, tested in a namespace that ends with the test.
fn bridges() -> Check {
    let trial = "ip link add name br0 type bridge && ip link add name v0 type veth peer name v1";
    let root = ["--net"];
    let user = ["--user", "--map-root-user", "--net"];
    let tried = [&root[..], &user[..]].into_iter().map(|namespaces| {
        let out = Command::new("unshare")
            .args(namespaces)
            .args(["sh", "-c", trial])
            .stdin(Stdio::null())
            .output();
        out.is_ok_and(|out| out.status.success())
    });
    let ok = tried.into_iter().any(|ok| ok);
    Check {
        name: "bridge",
        ok,
        vital: false,
        used_for: "stations behind kernel hosts that bridge",
        advice: if ok {
            "bridges and veth cables can be made".to_owned()
        } else {
            "load the modules: sudo modprobe bridge veth (with user namespaces beforehand)"
                .to_owned()
        },
    }
}

fn has_capability(number: u32) -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask >> number & 1 == 1)
}

/// Checks whether this user may make a user namespace; the error is the reason if not.
fn user_namespaces() -> Result<(), String> {
    let setting = |path: &str| {
        fs::read_to_string(path)
            .map(|text| text.trim().to_owned())
            .ok()
    };
    if setting("/proc/sys/user/max_user_namespaces").as_deref() == Some("0") {
        return Err("sudo sysctl user.max_user_namespaces=15000, or run as root".to_owned());
    }
    if setting("/proc/sys/kernel/unprivileged_userns_clone").as_deref() == Some("0") {
        return Err("sudo sysctl kernel.unprivileged_userns_clone=1, or run as root".to_owned());
    }
    if setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns").as_deref() == Some("1") {
        return Err(
            "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0, or run as root".to_owned(),
        );
    }
    // A container may forbid what the settings allow, so try it.
    let tried = Command::new("unshare")
        .args(["--user", "--map-root-user", "--net", "true"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    match tried {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err("user namespaces are refused here: run as root".to_owned()),
        Err(_) => Err("cannot try: apt install util-linux, or run as root".to_owned()),
    }
}

fn program((name, used_for, package): (&'static str, &'static str, &'static str)) -> Check {
    let found = find(name);
    Check {
        name,
        ok: found.is_some(),
        // Without `ip` a kernel host gets no address.
        vital: name == "ip",
        used_for,
        advice: found.map_or_else(
            || format!("apt install {package}"),
            |path| path.display().to_string(),
        ),
    }
}

/// Looks for a program on the path, and in the directories of administrators' programs.
fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .map(|dir| dir.join(name))
        .find(|file| file.is_file())
}
