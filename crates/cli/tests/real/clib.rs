//! The C library: its header names what it has, and a program finds it by pkg-config.

use crate::atm_sockets::Net;
use crate::root;
use std::collections::BTreeSet;
use std::fs::read_to_string;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Functions that are declared in the header, and those that the library exports.
#[test]
fn the_header_of_the_c_library_names_all_its_functions() {
    let source = |name: &str| read_to_string(root().join("crates/clib").join(name)).unwrap();
    let names = |text: &str, before: &str| {
        let parts = text.match_indices("aerostat_").filter_map(|(at, _)| {
            let rest = &text[at..];
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')?;
            let declares = rest[end..].starts_with(['(', ' ']) && text[..at].ends_with(before);
            (declares
                && rest[end..]
                    .trim_start()
                    .starts_with(['(', '0', '1', '2', '3']))
            .then(|| rest[..end].to_owned())
        });
        parts.collect::<BTreeSet<_>>()
    };
    let code: String = [
        "src/lib.rs",
        "src/calls.rs",
        "src/error.rs",
        "src/atp.rs",
        "src/user_data.rs",
    ]
    .map(source)
    .concat();
    let mut exported = names(&code, "fn ");
    exported.extend(
        names(&code, "    ")
            .into_iter()
            .filter(|name| name.contains("_offer_")),
    );
    let header = ["include/aerostat.h", "include/aerostat_atp.h"]
        .map(source)
        .concat();
    let lines = header
        .lines()
        .filter(|line| !line.starts_with([' ', '/', '*', '#']));
    let declared: BTreeSet<String> = lines
        .filter_map(|line| {
            let (before, _) = line.split_once('(')?;
            let name = before.rsplit([' ', '*']).next()?;
            name.starts_with("aerostat_").then(|| name.to_owned())
        })
        .collect();
    assert!(declared.len() > 30, "{declared:?}");
    assert_eq!(declared, exported);
}

/// The flags of a program that uses the library, as installed below a directory of its own.
fn installed(prefix: &Path) -> Option<Vec<String>> {
    let built = Path::new(env!("CARGO_BIN_EXE_aerostat"))
        .parent()
        .unwrap()
        .join("deps");
    let done = Command::new(root().join("crates/clib/install"))
        .args([prefix, &built])
        .output()
        .unwrap();
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
    let flags = Command::new("pkg-config")
        .args(["--cflags", "--libs", "aerostat"])
        .env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"))
        .output();
    match flags {
        Err(error) => {
            eprintln!("SKIPPED: pkg-config: {error}");
            None
        }
        Ok(out) => {
            assert!(
                out.status.success(),
                "{}",
                String::from_utf8_lossy(&out.stderr)
            );
            let text = String::from_utf8(out.stdout).unwrap();
            Some(text.split_whitespace().map(str::to_owned).collect())
        }
    }
}

/// An example, built against the library as installed; `None` if a tool for that is missing.
pub(crate) fn built(prefix: &Path, example: &str) -> Option<PathBuf> {
    let _ = std::fs::remove_dir_all(prefix);
    let flags = installed(prefix)?;
    let program = prefix.join(example);
    let built = Command::new("cc")
        .args(["-Wall", "-Wextra", "-Werror", "-o"])
        .arg(&program)
        .arg(root().join(format!("crates/clib/examples/{example}.c")))
        .args(&flags)
        .output();
    match built {
        Err(error) => {
            eprintln!("SKIPPED: cc: {error}");
            None
        }
        Ok(out) => {
            let told = String::from_utf8_lossy(&out.stderr);
            assert!(out.status.success(), "{told}");
            Some(program)
        }
    }
}

/// The example of ATP's report, under its names, in both profiles.
#[test]
fn the_example_of_atp_in_c_has_the_names_of_the_report() {
    let prefix = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("clib-atp");
    let Some(program) = built(&prefix, "atp") else {
        return;
    };
    let net = Net::up("clibatp");
    for profile in ["report", "adaptive"] {
        let run = |host: &str, arguments: &[&str]| {
            let mut command = Command::new("timeout");
            let command = command.arg("60").arg(&program).args(arguments);
            let command = command.env("AEROSTAT_ATM", net.path(host));
            let command = command.env("LD_LIBRARY_PATH", prefix.join("lib"));
            let command = command.env("PROFILE", profile).stdout(Stdio::piped());
            command.stderr(Stdio::piped()).spawn().unwrap()
        };
        let mut receiver = run("y", &[]);
        let mut line = [0; 41];
        let out = receiver.stdout.as_mut().unwrap();
        out.read_exact(&mut line).unwrap();
        let address = str::from_utf8(&line[..40]).unwrap();
        let sent = run("x", &[address, "300000"]).wait_with_output().unwrap();
        let told = String::from_utf8_lossy(&sent.stdout);
        assert_eq!(told, "33 packets of at most 9180 octets\n", "{sent:?}");
        let came = receiver.wait_with_output().unwrap();
        let told = String::from_utf8_lossy(&came.stdout);
        assert_eq!(told, "300000 octets: right\n", "{came:?}");
        assert!(sent.status.success() && came.status.success());
    }
    net.runtime.ok(&["down"]);
}

#[test]
fn the_example_in_c_is_built_with_pkg_config_and_vets_its_callers() {
    let prefix = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("clib");
    let Some(program) = built(&prefix, "echo") else {
        return;
    };
    let net = Net::up("clib");
    let run = |host: &str, arguments: &[&str]| {
        let mut command = Command::new("timeout");
        command
            .arg("60")
            .arg(&program)
            .args(arguments)
            .env("AEROSTAT_ATM", net.path(host))
            .env("LD_LIBRARY_PATH", prefix.join("lib"))
            .env("AVOID", &net.service("y").address()[..38])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let text = |child: std::process::Child| {
        let out = child.wait_with_output().unwrap();
        let all = [out.stdout, out.stderr].concat();
        (out.status.code(), String::from_utf8(all).unwrap())
    };
    let mut server = run("y", &[]);
    let mut line = [0; 41];
    server
        .stdout
        .as_mut()
        .unwrap()
        .read_exact(&mut line)
        .unwrap();
    let address = str::from_utf8(&line[..40]).unwrap();
    // By its contract, by its caller, by a wrong text; and then a call on smaller terms.
    let refused = "connect: cause 21 (call rejected) (cause 21)\n".to_owned();
    assert_eq!(
        text(run("x", &[address, "cbr:max_pcr=1000,sdu=48", "no"])),
        (Some(1), refused.clone())
    );
    assert_eq!(text(run("y", &[address, "ubr", "no"])), (Some(1), refused));
    let (code, told) = text(run("x", &[address, "ubr:pcr=fast", "no"]));
    assert!(
        code == Some(1) && told.starts_with("connect: qos, character 9: "),
        "{told}"
    );
    let (code, told) = text(run("x", &[address, "ubr:sdu=9180", "hello"]));
    assert_eq!(
        (code, &*told),
        (Some(0), "agreed: ubr,aal5:sdu=1000\nhello\n")
    );
    let (code, told) = text(server);
    assert_eq!(code, Some(0), "{told}");
    let end = "echoed 1 PDUs; ended by the other side, cause 16 (normal call clearing)\n";
    assert!(told.ends_with(end), "{told}");
    net.runtime.ok(&["down"]);
}
