//! Output for people in a locale without UTF-8 has ASCII alone; output for programs is UTF-8 in every locale. What a
//! terminal shows first: a bar that is empty.

use crate::{command, lab_file, root};
use aerostat_testing::command::{BEYOND_ASCII, says_ascii};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

#[test]
fn commands_without_a_running_lab_speak_ascii_in_the_c_locale() {
    let lab = lab_file("locale.atm.yml", BEYOND_ASCII);
    let bad = BEYOND_ASCII.replace("subnet: 10.1.0.0/24", "größe: 3 µs – 東");
    let bad = lab_file("locale-bad.atm.yml", &bad);
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("locale-ü");
    let file = folder.join("fehlt-é.atm.yml").display().to_string();
    let plot = folder.join("ü.svg").display().to_string();
    let commands: &[&[&str]] = &[
        &["--help"],
        &["-h"],
        &["run", "--é"],
        &["run", &file],
        &["run", &lab],
        &["run", &lab, "--trace", "--progress"],
        &["run", &lab, "--wide", "--seeds", "1-2"],
        &["run", &lab, "--plot", &plot],
        &["run", &lab, "--until", "bald – µ"],
        &["sweep", &lab, "--set", "links.s1-s2.delay=5us,1ms"],
        &["sweep", &lab, "--set", "links.s1-s2.delay=5µs,1ms"],
        &["validate", &lab, &bad, &file],
        &["graph", &lab],
        &["graph", "é"],
        &["rfc2544", &lab],
        &["atptest", "--octets", "100"],
        &["reproduce", "list"],
        &["reproduce", "list", "--wide"],
        &["reproduce", "é"],
        &["doctor"],
        &["man", "run"],
        &["man", "lab"],
        &["completion", "bash"],
        &["ls"],
        &["inspect", "é"],
    ];
    for words in commands {
        says_ascii(command(words));
    }
    // A caret stands below the mistake, whatever the characters in front of it have become.
    let shown = says_ascii(command(&["validate", &bad]));
    let shown = String::from_utf8(shown.stderr).unwrap();
    let lines: Vec<&str> = shown.lines().collect();
    let named = lines.iter().position(|line| line.contains("unknown key"));
    let [_, text, carets] = lines[named.unwrap()..][..3] else {
        panic!("{shown}");
    };
    let place = carets.find('^').unwrap();
    assert!(text[place..].starts_with("gr\\u{f6}\\u{df}e: 3"), "{shown}");
    assert_eq!(carets.matches('^').count(), "gr\\u{f6}\\u{df}e".len());
    // A drawing is for programs.
    let drawn = |locale: &str| {
        let mut graph = command(&["graph", "labs/clip.atm.yml", "-o", "svg"]);
        graph.env("LC_ALL", locale).output().unwrap().stdout
    };
    assert!(drawn("C") == drawn("C.UTF-8") && !drawn("C").is_ascii());
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn every_help_is_ascii_and_has_80_columns() {
    let help = String::from_utf8(command(&["--help"]).output().unwrap().stdout).unwrap();
    let verbs = help.lines().filter_map(|line| {
        let name = line.strip_prefix("  ")?.split_once("  ")?.0.trim();
        let is_name = |name: &str| {
            name.chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
        };
        (is_name(name) && name.len() > 1 && name != "help").then(|| name.to_owned())
    });
    let mut verbs: Vec<String> = verbs.collect();
    assert!(verbs.len() >= 30, "{verbs:?}");
    let daemons = [
        "mpcd", "lecd", "lecs", "les", "bus", "sigd", "ilmid", "mpsd",
    ];
    verbs.extend(daemons.map(str::to_owned));
    for nested in [
        ["pvc", "add"],
        ["pvc", "del"],
        ["qos", "add"],
        ["fault", "crash"],
    ] {
        verbs.push(nested.join(" "));
    }
    for verb in verbs {
        for option in ["-h", "--help"] {
            let words: Vec<&str> = verb.split(' ').chain([option]).collect();
            let output = says_ascii(command(&words));
            assert_eq!(output.status.code(), Some(0), "{words:?}");
            let text = String::from_utf8(output.stdout).unwrap();
            for line in text.lines() {
                assert!(
                    line.len() <= 80,
                    "{words:?}: {} columns: {line}",
                    line.len()
                );
            }
        }
    }
}

/// Output of a command on a terminal of 80 columns; `None` without the program that makes a terminal.
fn on_a_terminal(locale: &str, words: &[&str]) -> Option<String> {
    Command::new("script").arg("--version").output().ok()?;
    let program = env!("CARGO_BIN_EXE_aerostat");
    let words: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let line = format!("{program} {} 2>&1 >/dev/null", words.join(" "));
    let mut script = Command::new("script");
    script
        .args(["-qec", &line, "/dev/null"])
        .stdin(Stdio::null());
    script.env("TERM", "xterm");
    script.current_dir(root()).env("LC_ALL", locale);
    let output = script.output().unwrap();
    assert!(output.status.success(), "{words:?}");
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn a_bar_begins_empty_and_has_signs_of_the_locale() {
    let out = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("locale-bars");
    let _ = fs::remove_dir_all(&out);
    let out = out.display().to_string();
    let lab = lab_file("locale-bar.atm.yml", BEYOND_ASCII);
    let commands: &[&[&str]] = &[
        &["run", &lab],
        &["sweep", &lab, "--seeds", "1-3", "--jobs", "1"],
        &["sweep", &lab, "--seeds", "1-3", "--out", &out],
        // All runs are there: there is nothing to do, and nothing is shown as done.
        &["sweep", &lab, "--seeds", "1-3", "--out", &out],
        &["reproduce", "cambridge/1"],
    ];
    for (locale, full, empty) in [("C.UTF-8", '█', '░'), ("C", '#', '.')] {
        for words in commands {
            let Some(shown) = on_a_terminal(locale, words) else {
                return println!("skipped: no program script");
            };
            let bars = shown.split(['\r', '\n']).filter_map(|frame| {
                // A bar is thirty signs long.
                let at = frame.find([full, empty])?;
                let bar: Vec<char> = frame[at..].chars().take(30).collect();
                let is_bar = bar.len() == 30 && bar.iter().all(|c| [full, empty].contains(c));
                is_bar.then(|| bar.iter().filter(|c| **c == full).count())
            });
            let first = { bars }.next();
            assert!(
                first.is_none_or(|done| done <= 10),
                "{words:?}: {first:?} of 30\n{shown}"
            );
            assert!(locale != "C" || shown.is_ascii(), "{words:?}: {shown}");
        }
    }
}
