//! Facts about the build for reports: the commit of the source, its time, and the compiler.

use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let is = |name: &str| std::env::var(name).unwrap_or_default();
    let (mut commit, mut committed) = (String::new(), String::new());
    // Builds for development would be repeated at each commit.
    if is("PROFILE") == "release" {
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
    let rustc = said(&is("RUSTC"), &["--version"]).unwrap_or_default();
    println!("cargo:rustc-env=AEROSTAT_RUSTC={rustc}");
}

/// The first line that a command says; `None` if it fails.
fn said(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let line = text.lines().next().unwrap_or_default().to_owned();
    output.status.success().then_some(line)
}
