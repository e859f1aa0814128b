//! `run --seeds` and `--sweep`: several runs at the same time.

use super::{Ran, command, lab_file, piped, rest_of, root, run};
use aerostat_testing::command::signal;
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

const LAB: &str = "labs/one-elan.atm.yml";
const COMMON: [&str; 6] = [
    "--until",
    "2050ms",
    "--set",
    "links.s1-s2.loss=1e-4",
    "-q",
    "-o",
];

/// `run` of [`LAB`] with [`COMMON`] and these words.
fn words<'a>(form: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["run", LAB][..], &COMMON, &[form], more].concat()
}

/// A new directory with this name.
fn directory(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    if path.exists() {
        fs::remove_dir_all(&path).unwrap();
    }
    path
}

#[test]
fn runs_side_by_side_give_the_bytes_of_runs_one_after_the_other_in_every_form() {
    let sweep = ["--seeds", "1-2", "--sweep", "links.s1-s2.delay=5us,1ms"];
    let one_by_one = run(&words("json", &[&sweep[..], &["--jobs", "1"]].concat()));
    let at_once = run(&words("json", &[&sweep[..], &["--jobs", "4"]].concat()));
    assert_eq!((at_once.code, at_once.err.as_str()), (0, ""));
    assert_eq!(at_once.out, one_by_one.out);
    let all: Value = serde_json::from_str(&at_once.out).expect("JSON");
    assert_eq!(all["schema"], "aerostat.runs.v1");
    let names = [("5us", 1), ("5us", 2), ("1ms", 1), ("1ms", 2)];
    let (mut from, out) = (0, directory("several"));
    for (number, (delay, seed)) in names.into_iter().enumerate() {
        let entry = &all["runs"][number];
        assert_eq!(
            entry["run"],
            serde_json::json!({ "links.s1-s2.delay": delay, "seed": seed })
        );
        assert_eq!(entry["exit"], 0);
        let (set, seed) = (format!("links.s1-s2.delay={delay}"), seed.to_string());
        let alone = run(&words("json", &["--set", &set, "--seed", &seed]));
        let found = at_once.out[from..].find(alone.out.trim_end());
        from += found.unwrap_or_else(|| panic!("run {number} differs from a run alone"));
        // A directory of its own has the same files.
        let text = out.join(format!("links.s1-s2.delay={delay},seed={seed}"));
        let many = [&sweep[..], &["--out", out.to_str().unwrap()]].concat();
        if number == 0 {
            let index = run(&words("csv", &many));
            assert_eq!((index.code, index.out.as_str()), (0, ""), "{}", index.err);
        }
        let flows = fs::read_to_string(text.join("flows.csv")).unwrap();
        let alone = run(&words("csv", &["--set", &set, "--seed", &seed]));
        assert_eq!(flows, alone.out);
    }
    let index = fs::read_to_string(out.join("runs.json")).unwrap();
    let index: Value = serde_json::from_str(&index).unwrap();
    assert_eq!(
        index["runs"][3]["directory"],
        "links.s1-s2.delay=1ms,seed=2"
    );
}

#[test]
fn rows_of_several_runs_have_columns_for_what_differs() {
    let csv = run(&words(
        "csv",
        &[
            "--seeds",
            "1-2",
            "--sweep",
            "mpoa=false",
            "--table",
            "flows",
        ],
    ));
    let lines: Vec<&str> = csv.out.lines().collect();
    assert!(
        lines[0].starts_with("mpoa,seed,name,from,to,"),
        "{}",
        lines[0]
    );
    assert!(lines[1].starts_with("false,1,") && lines[lines.len() - 1].starts_with("false,2,"));
    let headers = lines
        .iter()
        .filter(|line| line.starts_with("mpoa,"))
        .count();
    assert_eq!(headers, 1, "{}", csv.out);
    let jsonl = run(&words("jsonl", &["--seeds", "7", "--table", "flows"]));
    let row: Value = serde_json::from_str(jsonl.out.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&row["run"]["seed"], &row["table"]),
        (&7.into(), &"flows".into())
    );
    let table = run(&words("table", &["--seeds", "1,2"]));
    assert!(table.out.contains("run seed=1\n") && table.out.contains("\nrun seed=2\n"));
}

#[test]
fn wrong_values_are_found_before_the_first_run_and_named() {
    let refused = run(&[
        "run",
        LAB,
        "-q",
        "-o",
        "csv",
        "--sweep",
        "links.s1-s2.loss=0,2",
    ]);
    refused.ends(2, "run links.s1-s2.loss=2: ");
    // The finding names the option that the user gave.
    assert!(
        refused
            .err
            .starts_with("--sweep links.s1-s2.loss=2: error: "),
        "{}",
        refused.err
    );
    assert_eq!(refused.out, "");
    let refused = run(&["run", LAB, "--until", "soon"]);
    assert!(refused.err.starts_with("--until soon: error: "));
    for (bad, says) in [
        (
            vec!["--seeds", "0-20000"],
            "20001 runs: 10000 are the limit",
        ),
        (vec!["--seeds", "1", "--seed", "2"], "cannot be used with"),
        (vec!["--seeds", "1", "--jobs", "0"], "1..=1024"),
        (vec!["--seeds", "1", "--trace"], "cannot be used with"),
    ] {
        let refused = run(&words("csv", &bad));
        assert_eq!(refused.code, 2, "{bad:?}");
        assert!(refused.err.contains(says), "{bad:?}: {}", refused.err);
    }
}

#[test]
fn a_run_that_fails_is_named_and_costs_no_other_run_its_results() {
    let out = directory("several-full");
    fs::create_dir_all(&out).unwrap();
    // The second run finds a file where its directory belongs.
    fs::write(out.join("seed=2"), "").unwrap();
    let words = words("json", &["--seeds", "1-3", "--out", out.to_str().unwrap()]);
    let failed = run(&words);
    failed.ends(1, "error: run seed=2: exit code 1");
    for seed in [1, 3] {
        let path = out.join(format!("seed={seed}/results.json"));
        assert!(path.exists(), "{}", failed.err);
    }
    let index = fs::read_to_string(out.join("runs.json")).unwrap();
    let index: Value = serde_json::from_str(&index).unwrap();
    let codes: Vec<_> = (0..3)
        .map(|run| index["runs"][run]["exit"].clone())
        .collect();
    assert_eq!(codes, [0, 1, 0]);
}

#[test]
fn a_reader_that_goes_away_does_not_hide_a_run_that_failed() {
    let pcap = directory("several-closed");
    fs::create_dir_all(&pcap).unwrap();
    // The first run finds a file where its directory belongs.
    fs::write(pcap.join("seed=1"), "").unwrap();
    let code_of = |seeds: &str| {
        let more = ["--seeds", seeds, "--jobs", "1"];
        let pcap = ["--pcap", pcap.to_str().unwrap()];
        let words = words("json", &[&more[..], &pcap].concat());
        let mut child = piped(command(&words));
        drop(child.stdout.take());
        rest_of(child).code
    };
    assert_eq!(code_of("1-3"), 1);
    // A closed pipe alone is no failure.
    assert_eq!(code_of("2-3"), 0);
}

#[test]
fn a_lab_on_standard_input_reaches_every_run() {
    let text = fs::read_to_string(root().join(LAB)).unwrap();
    let path = lab_file("several-input.atm.yml", &text);
    let mut all = words("csv", &["--seeds", "1-3"]);
    all[1] = "-";
    let input = fs::File::open(path).unwrap();
    let Ran { code, out, err, .. } = command(&all).stdin(input).output().unwrap().into();
    assert_eq!(code, 0, "{err}");
    for seed in 1..=3 {
        assert!(
            out.lines()
                .any(|line| line.starts_with(&format!("{seed},"))),
            "{out}"
        );
    }
}

#[test]
fn ctrl_c_ends_all_runs_with_their_results_and_names_those_that_did_not_begin() {
    let words = [
        "run",
        "labs/campus.atm.yml",
        "--until",
        "100000s",
        "--seeds",
        "1-50",
        "--jobs",
        "2",
        "-o",
        "json",
    ];
    let child = piped(command(&words));
    // Both runs have begun by then; a run that has not yet taken over the signal ends without results.
    std::thread::sleep(Duration::from_secs(3));
    signal(&child.id().to_string(), "INT");
    let Ran { code, out, err, .. } = rest_of(child);
    assert_eq!(code, 3, "{err}");
    assert!(err.contains("seed=1: warning: interrupted at"), "{err}");
    assert!(
        err.contains("interrupted before 48 runs began: seed=3 to seed=50"),
        "{err}"
    );
    let all: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(all["runs"].as_array().map(Vec::len), Some(2));
    assert_eq!(all["runs"][1]["results"]["interrupted"], true);
}

#[test]
fn columns_come_in_the_order_of_the_command_and_the_end_is_said_in_one_place() {
    let sweep = [
        "--sweep",
        "until=2050ms,2060ms",
        "--sweep",
        "links.s1-s2.delay=5us",
    ];
    let words = [&["run", LAB, "-q", "-o", "csv", "--seeds", "1"], &sweep[..]].concat();
    let done = run(&words);
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    assert!(done.out.starts_with("until,links.s1-s2.delay,seed,"));
    let refused = run(&[&words[..], &["--until", "1s"]].concat());
    refused.ends(2, "leave out --until");
}

#[test]
fn options_that_contradict_each_other_are_refused_before_the_first_run() {
    let long = format!("description={},b", "x".repeat(300));
    for (words, says) in [
        (
            &["--sweep", "mpoa=true,false", "--set", "mpoa=false"][..],
            "leave out --set",
        ),
        (&["--jobs", "2"], "--jobs is for several runs"),
        (&["--seeds", "8-1"], "runs backwards"),
        (
            &["--sweep", &long, "-o", "csv", "--out", "unused"],
            "255 are the limit",
        ),
        (
            &["--sweep", "description=a/b,a_b"],
            "two runs would have the name",
        ),
    ] {
        let refused = run(&[&["run", LAB, "-q"], words].concat());
        refused.ends(2, says);
    }
}
