//! Facts about the build for `--version` and reports: the commit of the source, its time, the compiler, the target and
//! the profile. The date is that of the commit, so that two builds of one commit have the same bytes.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is = |name: &str| std::env::var(name).unwrap_or_default();
    let (mut commit, mut committed) = (String::new(), String::new());
    // Builds for development would be repeated at each commit. An archive of the crate may be unpacked inside another
    // repository, whose commit says nothing about it.
    if is("PROFILE") == "release"
        && said("git", &["ls-files", "--error-unmatch", "build.rs"]).is_some()
    {
        if let Some(log) = said("git", &["rev-parse", "--git-path", "logs/HEAD"]) {
            println!("cargo:rerun-if-changed={log}");
        }
        commit = said("git", &["rev-parse", "--short=12", "HEAD"]).unwrap_or_default();
        committed = said("git", &["log", "-1", "--format=%cI"]).unwrap_or_default();
        let changes = said("git", &["status", "--porcelain", "--untracked-files=no"]);
        if !commit.is_empty() && changes.is_some_and(|changes| !changes.is_empty()) {
            commit += "+";
        }
    }
    println!("cargo:rustc-env=AEROSTAT_COMMIT={commit}");
    println!("cargo:rustc-env=AEROSTAT_COMMITTED={committed}");
    let shown = match (&commit[..], committed.split('T').next()) {
        ("", _) | (_, None) => "commit unknown".to_owned(),
        (commit, Some(day)) => format!("commit {commit} of {day}"),
    };
    println!("cargo:rustc-env=AEROSTAT_SOURCE={shown}");
    println!("cargo:rustc-env=AEROSTAT_TARGET={}", is("TARGET"));
    println!(
        "cargo:rustc-env=AEROSTAT_PROFILE={}",
        profile(&is("OUT_DIR"))
    );
    // A static program cannot bring the library that `exec` preloads into others. Programs for musl are static.
    let linked = match &is("CARGO_CFG_TARGET_ENV")[..] {
        "musl" => "static",
        _ => "preload",
    };
    println!("cargo:rustc-env=AEROSTAT_FEATURES=virtual-time real-time split extcap {linked}");
    let rustc = said(&is("RUSTC"), &["--version"]).unwrap_or_default();
    println!("cargo:rustc-env=AEROSTAT_RUSTC={rustc}");
}

/// The name of the profile. Cargo tells only what it inherits from, but the directory of a build has the name:
/// `target/PROFILE/build/aerostat-cli-HASH/out`.
fn profile(out: &str) -> &str {
    let mut parts = out.rsplit('/');
    parts.nth(3).unwrap_or("unknown")
}

/// The first line that a command says; `None` if it fails.
fn said(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let line = text.lines().next().unwrap_or_default().to_owned();
    output.status.success().then_some(line)
}
