//! The first pages for users: every command of their `sh` blocks is run, in order, as a reader would.
//!
//! A line that ends in `# fails: exit code N` must have that exit code. Commands that install the program are left out:
//! the one under test is first in the path. Runs in virtual time are limited to five seconds, because the program under
//! test is not optimised. Pages with live labs need the privilege for kernel hosts.

use crate::live::{Runtime, can_run, has};
use crate::root;
use std::path::Path;
use std::process::{Command, Stdio};

/// The commands of a page, each with the exit code that it announces.
fn commands(page: &str) -> Vec<(String, i32)> {
    let text = std::fs::read_to_string(root().join(page)).unwrap();
    let mut commands = Vec::new();
    let mut blocks = text.split("```");
    // Blocks have odd indices.
    while let (Some(_), Some(block)) = (blocks.next(), blocks.next()) {
        let Some(block) = block.strip_prefix("sh\n") else {
            continue;
        };
        let mut open = String::new();
        for line in block.lines() {
            open.push_str(line);
            open.push('\n');
            let goes_on = line.starts_with(' ') || line.trim_end().ends_with(';');
            let begins = line.starts_with("for ");
            if begins || (goes_on && open.starts_with("for ")) {
                continue;
            }
            let code = line.split_once("# fails: exit code ");
            let code = code.map_or(0, |(_, code)| code.trim().parse().unwrap());
            commands.push((std::mem::take(&mut open), code));
        }
        assert!(open.is_empty(), "{page}: a loop without an end: {open}");
    }
    commands
}

/// The command with less virtual time.
fn shortened(command: &str) -> String {
    const SHORT: &str = " --until 5s";
    if let Some(at) = command.find(" --until ") {
        let value = &command[at + " --until ".len()..];
        let end = value.find([' ', '\n']).unwrap_or(value.len());
        return [&command[..at], SHORT, &value[end..]].concat();
    }
    match command.strip_prefix("aerostat run ") {
        Some(_) => format!("{}{SHORT}\n", command.trim_end()),
        None => command.to_owned(),
    }
}

/// Runs all commands of a page in a directory that contains `labs`.
fn follow(page: &str, name: &str) {
    let lab = Runtime::new(name);
    let place = lab.directory.join("reader");
    std::fs::create_dir_all(&place).unwrap();
    for folder in ["labs", "interop"] {
        std::os::unix::fs::symlink(root().join(folder), place.join(folder)).unwrap();
    }
    let program = Path::new(env!("CARGO_BIN_EXE_aerostat"));
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", program.parent().unwrap().display());
    let all = commands(page);
    assert!(all.len() > 2, "{page} has commands");
    for (command, code) in all {
        if command.starts_with("cargo ") || command.starts_with("install ") {
            continue;
        }
        let command = shortened(&command);
        let mut shell = Command::new("bash");
        shell.args(["-o", "pipefail", "-c", &command]);
        shell.current_dir(&place).env("PATH", &path);
        shell.env("XDG_RUNTIME_DIR", &lab.directory);
        let output = shell.stdin(Stdio::null()).output().unwrap();
        assert_eq!(
            output.status.code(),
            Some(code),
            "{page}: {command}{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }
    std::fs::remove_dir_all(&place).unwrap();
}

#[test]
fn the_commands_of_the_tutorial_do_what_it_says() {
    if can_run() && has("ping") {
        follow("docs/tutorial.md", "tutorial");
    }
}

#[test]
fn the_loops_of_the_page_on_sweeps_run() {
    follow("docs/sweeps.md", "sweeps");
}

#[test]
fn loops_are_commands_of_several_lines() {
    let sweeps = commands("docs/sweeps.md");
    let mut loops = sweeps
        .iter()
        .filter(|(command, _)| command.starts_with("for "));
    assert!(loops.any(|(command, _)| command.contains("$delay.csv")));
    let tutorial = commands("docs/tutorial.md");
    assert!(tutorial.iter().any(|(_, code)| *code == 2));
    assert!(
        tutorial
            .iter()
            .all(|(command, _)| command.lines().count() == 1)
    );
}
