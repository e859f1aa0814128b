//! Drawings of a running lab, and completion of its names.

use crate::live::{Runtime, wait_for};
use crate::run;

#[test]
fn graph_of_a_running_lab_shows_its_shortcuts_its_connections_and_what_is_cut() {
    let runtime = Runtime::new("graph");
    runtime.ok(&["up", "-d", "-q", "--embedded", "labs/two-subnets.atm.yml"]);
    let drawn = |form| runtime.ok(&["graph", "two-subnets", "-o", form]);
    wait_for("the shortcut", || drawn("text").contains("shortcut  urku"));
    let text = drawn("text");
    let shortcut = text.lines().find(|line| line.starts_with("shortcut  urku"));
    let shortcut = shortcut.unwrap();
    assert!(shortcut.contains("sello") && shortcut.contains("to 10.2.0.10 on 0."));
    // All clients of an ELAN have their connections to its servers.
    let control = |line: &&str| line.starts_with("VCs") && line.contains("lane-control");
    assert!(text.lines().filter(control).count() >= 4, "{text}");
    let svg = drawn("svg");
    assert!(
        svg.contains("class=\"shortcut\"") && svg.contains(">shortcut "),
        "{svg}"
    );
    assert!(drawn("mermaid").contains("shortcut to 10.2.0.10"));
    assert!(drawn("dot").contains("shortcut to 10.2.0.10"));

    runtime.ok(&["fault", "link-down", "sello-s2"]);
    let text = runtime.ok(&["graph", "--lab", "two-subnets"]);
    let cut = text.lines().find(|line| line.contains("link is cut"));
    assert!(cut.is_some_and(|line| line.contains("sello-s2")), "{text}");
    runtime.ok(&["fault", "crash", "urku"]);
    // The only running lab needs no name.
    let svg = runtime.ok(&["graph", "-o", "svg"]);
    assert!(svg.contains(">down<") && svg.contains("class=\"cut\""));
    runtime.down_with_warnings();
    runtime.nothing_is_left();
}

/// The completions that bash offers for the last of these words.
fn completed(runtime: &Runtime, words: &[&str]) -> Vec<String> {
    let mut command = runtime.command(&["--"]);
    let last = words.len().to_string();
    command.args([&["aerostat"], words].concat());
    command.envs([
        ("AEROSTAT_COMPLETE", "bash"),
        ("_CLAP_COMPLETE_INDEX", last.as_str()),
        ("_CLAP_IFS", "\n"),
        ("_CLAP_COMPLETE_COMP_TYPE", "9"),
        ("_CLAP_COMPLETE_SPACE", "true"),
    ]);
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(str::to_owned).collect()
}

#[test]
fn the_shell_completes_names_of_the_running_lab_and_words_of_the_program() {
    let runtime = Runtime::new("completion");
    let nothing = completed(&runtime, &["exec", ""]);
    assert!(
        nothing.iter().all(|word| word.starts_with('-')),
        "{nothing:?}"
    );
    runtime.ok(&["up", "-d", "-q", "--embedded", "labs/two-subnets.atm.yml"]);
    for (words, offered) in [
        (&["fault", "link-down", "s"][..], &["s1-s2", "sello-s2"][..]),
        (&["fault", "crash", "r1"], &["r1", "r1/mps"]),
        (&["inspect", "s"], &["s1", "s2", "saal", "sello", "sockets"]),
        (&["ping", "urku", "s"], &["sello"]),
        (&["pvc", "show", ""], &["s1", "s2"]),
        (&["down", ""], &["two-subnets"]),
        (&["capture", "urku"], &["urku-s1"]),
        (&["run", "--table", "short"], &["shortcuts"]),
        (&["run", "labs/two-h"], &["labs/two-hosts.atm.yml"]),
        (&["run", "two-"], &["two-hosts", "two-subnets"]),
        (&["labs", "--copy", "host/"], &["host/worker"]),
        (&["graph", "two-sub"], &["two-subnets"]),
        (&["man", "valid"], &["validate"]),
        (&["inspect", "--lab", "tw"], &["two-subnets"]),
    ] {
        let found = completed(&runtime, words);
        for name in offered {
            assert!(found.iter().any(|f| f == name), "{words:?}: {found:?}");
        }
        let given = words.last().unwrap();
        assert!(
            found.iter().all(|f| f.starts_with(given)),
            "{words:?}: {found:?}"
        );
    }
    runtime.ends();
}

#[test]
fn the_progress_of_a_run_is_told_if_it_is_wanted_and_never_when_quiet() {
    let lab = "labs/two-hosts.atm.yml";
    let told = run(&["run", lab, "--progress", "--until", "3s"]);
    let mut lines = told.err.lines();
    let line = lines.find(|line| line.starts_with("progress: "));
    assert!(
        line.is_some_and(|line| line.contains(" of 3.0 s of virtual time")),
        "{}",
        told.err
    );
    assert!(!run(&["run", lab, "--until", "1s"]).err.contains("progress"));
    assert_eq!(run(&["run", lab, "-q", "--progress"]).code, 2);
}
