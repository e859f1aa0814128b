//! `aerostat sweep`: one table of many runs, which are done once.

use super::{Ran, command, lab_file, ok, rest_of, run};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const LAB: &str = "labs/two-hosts.atm.yml";
const UNTIL: [&str; 2] = ["--until", "2300ms"];

/// A new directory with this name.
fn directory(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    if path.exists() {
        fs::remove_dir_all(&path).unwrap();
    }
    fs::create_dir_all(&path).unwrap();
    path
}

fn sweep(lab: &str, more: &[&str]) -> Ran {
    run(&[&["sweep", lab], &UNTIL[..], more].concat())
}

/// The rows of a CSV file by its columns.
fn rows(text: &str) -> Vec<BTreeMap<String, String>> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    reader.deserialize().map(|row| row.unwrap()).collect()
}

fn number(row: &BTreeMap<String, String>, column: &str) -> f64 {
    row[column]
        .parse()
        .unwrap_or_else(|_| panic!("{column}: {row:?}"))
}

#[test]
fn a_table_has_a_row_for_each_run_and_flow_with_the_numbers_of_run() {
    let set = [
        "--set",
        "traffic.ping.size=56,1000",
        "--seeds",
        "1-2",
        "-o",
        "csv",
    ];
    let table = sweep(LAB, &set);
    assert_eq!((table.code, table.err.as_str()), (0, ""));
    let found = rows(&table.out);
    let keys: Vec<_> = found
        .iter()
        .map(|row| (row["traffic.ping.size"].as_str(), row["seed"].as_str()))
        .collect();
    assert_eq!(
        keys,
        [("56", "1"), ("56", "2"), ("1000", "1"), ("1000", "2")]
    );
    let set = [
        "--set",
        "traffic.ping.size=1000",
        "--seed",
        "2",
        "-o",
        "csv",
    ];
    let alone = run(&[&["run", LAB, "-q"], &UNTIL[..], &set].concat());
    for (column, value) in &rows(&alone.out)[0] {
        assert_eq!(found[3][column], *value, "{column}");
    }
    // The same points from files, and as lines of JSON.
    let folder = directory("sweep-points");
    let (csv, json) = (folder.join("p.csv"), folder.join("p.json"));
    fs::write(&csv, "traffic.ping.size,seed\n56,1\n56,2\n1000,1\n1000,2\n").unwrap();
    fs::write(
        &json,
        r#"[{"traffic.ping.size": 56}, {"traffic.ping.size": "1000"}]"#,
    )
    .unwrap();
    let listed = sweep(LAB, &["--points", csv.to_str().unwrap(), "-o", "csv"]);
    assert_eq!(listed.out, table.out, "{}", listed.err);
    let words = [
        "--points",
        json.to_str().unwrap(),
        "--seeds",
        "1-2",
        "-o",
        "jsonl",
    ];
    let lines = sweep(LAB, &words).out;
    let last: Value = serde_json::from_str(lines.lines().next_back().unwrap()).unwrap();
    assert_eq!(last["traffic.ping.size"], 1000);
    assert_eq!(last["delay_us_mean"].to_string(), found[3]["delay_us_mean"]);
}

#[test]
fn runs_that_are_done_are_not_done_again_unless_the_lab_has_changed() {
    let text = fs::read_to_string(super::root().join(LAB)).unwrap();
    let lab = lab_file("sweep-kept.atm.yml", &text);
    let lab = lab.as_str();
    let out = directory("sweep-kept").join("table.csv");
    let words = [
        "--set",
        "traffic.ping.size=56,1000",
        "--out",
        out.to_str().unwrap(),
    ];
    let first = sweep(lab, &words);
    assert_eq!(first.code, 0, "{}", first.err);
    assert!(!first.err.contains("already"), "{}", first.err);
    let table = fs::read_to_string(&out).unwrap();
    fs::remove_file(&out).unwrap();
    let second = sweep(lab, &words);
    second.says("2 of 2 runs are in ");
    assert_eq!(fs::read_to_string(&out).unwrap(), table);
    // A point more, and rows per run instead of per flow: nothing is done twice.
    let more = [
        "--set",
        "traffic.ping.size=56,1000,64",
        "--per",
        "run",
        words[2],
        words[3],
    ];
    let third = sweep(lab, &more);
    third.says("2 of 3 runs are in ");
    fs::write(lab, format!("{text}# changed\n")).unwrap();
    let changed = sweep(lab, &words);
    assert!(
        changed.err.contains("2 runs are of another lab file") && changed.err.contains("done anew"),
        "{}",
        changed.err
    );
    assert!(!changed.err.contains("already"), "{}", changed.err);
    assert_eq!(fs::read_to_string(&out).unwrap(), table);
    let again = sweep(lab, &[&words[..], &["--again"]].concat());
    assert!(!again.err.contains("anew"), "{}", again.err);
}

#[test]
fn a_sweep_that_is_killed_goes_on_where_it_was() {
    let folder = directory("sweep-killed");
    let out = folder.join("table.jsonl");
    let runs = folder.join("table.jsonl.runs");
    let words = |out: &Path| -> Vec<String> {
        let words = ["sweep", LAB, "--seeds", "1-12", "--jobs", "1", "--out"];
        let words = words.iter().chain(&UNTIL).map(|word| (*word).to_owned());
        let mut words: Vec<String> = words.collect();
        words.insert(7, out.to_str().unwrap().to_owned());
        words
    };
    let mine = words(&out);
    let mine: Vec<&str> = mine.iter().map(String::as_str).collect();
    let mut child = command(&mine).stderr(Stdio::null()).spawn().unwrap();
    let done = || fs::read_to_string(&runs).map_or(0, |text| text.lines().count());
    while done() < 4 {
        assert!(
            child.try_wait().unwrap().is_none(),
            "it ended before it was killed"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!out.exists());
    let went_on = run(&mine);
    assert_eq!(went_on.code, 0, "{}", went_on.err);
    let kept = went_on.err.split(" of 12 runs are in ").next().unwrap();
    assert!(kept.parse::<u32>().unwrap() >= 3, "{}", went_on.err);
    // The table is that of a sweep that ran to its end.
    let other = words(&folder.join("other.jsonl"));
    ok(&other.iter().map(String::as_str).collect::<Vec<_>>());
    let text = |path: PathBuf| fs::read_to_string(path).unwrap();
    assert_eq!(text(out), text(folder.join("other.jsonl")));
}

#[test]
fn means_are_those_of_the_rows_with_students_intervals() {
    let lab = "labs/one-elan.atm.yml";
    let set = [
        "--set",
        "links.s1-s2.loss=1e-3",
        "--seeds",
        "1-4",
        "-o",
        "csv",
    ];
    let all = sweep(lab, &set);
    let means = sweep(lab, &[&set[..], &["--mean"]].concat());
    assert!([0, 3].contains(&means.code), "{}", means.err);
    let means = rows(&means.out);
    let bulk = means.iter().find(|row| row["name"] == "bulk").unwrap();
    let all = rows(&all.out);
    let values = all
        .iter()
        .filter(|row| row["name"] == "bulk" && row["phase"] == bulk["phase"]);
    let values: Vec<f64> = values.map(|row| number(row, "throughput_mbps")).collect();
    assert_eq!((number(bulk, "n"), values.len()), (4.0, 4));
    let mean = values.iter().sum::<f64>() / 4.0;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    // Student's t for 3 degrees of freedom, from a table.
    let half = 3.182_446 * (squares / 3.0 / 4.0).sqrt();
    assert!((number(bulk, "throughput_mbps") - mean).abs() < 1e-9 * mean);
    assert!(half > 0.0 && (number(bulk, "throughput_mbps_ci95") - half).abs() < 1e-4 * half);
}

#[test]
fn parquet_has_the_rows_of_csv_also_for_another_reader() {
    use parquet::file::reader::{FileReader as _, SerializedFileReader};
    let folder = directory("sweep-parquet");
    let (parquet, csv) = (folder.join("t.parquet"), folder.join("t.csv"));
    for out in [&parquet, &csv] {
        let set = [
            "--set",
            "traffic.ping.size=56,1000",
            "--out",
            out.to_str().unwrap(),
        ];
        let done = sweep(LAB, &set);
        assert_eq!(done.code, 0, "{}", done.err);
    }
    let wanted = rows(&fs::read_to_string(&csv).unwrap());
    let reader = SerializedFileReader::new(fs::File::open(&parquet).unwrap()).unwrap();
    let found: Vec<_> = reader
        .get_row_iter(None)
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(found.len(), wanted.len());
    for (row, wanted) in found.iter().zip(&wanted) {
        let cells: BTreeMap<_, _> = row.get_column_iter().collect();
        assert_eq!(cells.len(), wanted.len());
        for (name, cell) in cells {
            let text = cell.to_string().trim_matches('"').replace("null", "");
            let same = match (text.parse::<f64>(), wanted[name].parse::<f64>()) {
                (Ok(one), Ok(other)) => one == other,
                _ => text == wanted[name].replace('"', "\\\"") || wanted[name].contains('"'),
            };
            assert!(same, "{name}: {text} {}", wanted[name]);
        }
    }
    let script = "import sys, pyarrow.parquet as p\nt = p.read_table(sys.argv[1])\n\
        print(t.num_rows, t.column('seed').type, t.column('delay_us_mean').type, t.column('delay_us_mean')[1].as_py())";
    let mut python = Command::new("python3");
    let read = python.args(["-c", script]).arg(&parquet).output();
    match read {
        Ok(read) if read.status.success() => {
            let wanted = format!("2 uint64 double {}\n", wanted[1]["delay_us_mean"]);
            assert_eq!(String::from_utf8_lossy(&read.stdout), wanted);
        }
        _ => println!("not read by pyarrow, which is not installed"),
    }
}

#[test]
fn mistakes_are_told_before_the_first_run() {
    let folder = directory("sweep-wrong");
    let points = folder.join("points.csv");
    fs::write(&points, "traffic.ping.size\n56\n-1\n").unwrap();
    let out = folder.join("out");
    let out = out.to_str().unwrap();
    let points = points.to_str().unwrap();
    for (words, says) in [
        (&["--set", "no.such=1"][..], "run no.such=1: "),
        (
            &["--points", points],
            "--points traffic.ping.size=-1: error",
        ),
        (
            &["--points", points, "--set", "traffic.ping.size=1"],
            "varies already",
        ),
        (&["--points", "missing.csv"], "missing.csv: "),
        (&["--seeds", "1-100001"], "are the limit"),
        (&["--set", "mpoa=true,true"], "stands twice"),
        (&["-o", "parquet"], "needs a file"),
        (&["--out", "x.csv", "-o", "jsonl"], "contradict"),
        (&["--out", "x.txt"], "a table is no .txt"),
        (&["--table", "nothing"], "no table 'nothing'"),
        (&["--again"], "--out"),
        (&["--plot", "x.png"], "a drawing is a file .svg"),
        (&["--plot", "x.svg", "--y", "name"], "no such number"),
        (&["--plot", "x.svg", "--x", "a.b"], "no such key"),
        (&["--plot", "x.svg", "--map"], "two keys"),
    ] {
        let out: &[&str] =
            if words.contains(&"--out") || words.contains(&"-o") || words.contains(&"--again") {
                &[]
            } else {
                &["--out", out]
            };
        let refused = sweep(LAB, &[words, out].concat());
        refused.ends(2, says);
    }
    assert!(!Path::new(out).exists());
    let file = folder.join("results.csv.runs");
    fs::write(&file, "something else\n").unwrap();
    let table = folder.join("results.csv");
    let refused = sweep(LAB, &["--out", table.to_str().unwrap()]);
    refused.ends(2, "no file of a sweep");
    assert_eq!(fs::read_to_string(&file).unwrap(), "something else\n");
}

#[test]
fn ctrl_c_keeps_what_is_done_and_writes_no_half_table() {
    let folder = directory("sweep-stopped");
    let out = folder.join("table.csv");
    let words = [
        "sweep",
        "labs/campus.atm.yml",
        "--until",
        "100000s",
        "--seeds",
        "1-9",
        "--out",
    ];
    let words = [&words[..], &[out.to_str().unwrap()]].concat();
    let child = command(&words).stderr(Stdio::piped()).spawn().unwrap();
    let runs = folder.join("table.csv.runs");
    while !runs.exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    aerostat_testing::command::signal(&child.id().to_string(), "INT");
    let stopped = rest_of(child);
    stopped.ends(3, "no table is written");
    assert!(!out.exists());
}

#[test]
fn drawings_have_a_line_for_each_flow_and_the_values_of_the_key() {
    let folder = directory("sweep-drawn");
    let file = folder.join("delay.svg");
    let set = ["--set", "links.s1-s2.delay=5us,1ms", "--seeds", "1-2", "-q"];
    let lab = "labs/one-elan.atm.yml";
    let words = [
        "--plot",
        file.to_str().unwrap(),
        "--y",
        "delay_us_mean",
        "-o",
        "csv",
    ];
    let drawn = sweep(lab, &[&set[..], &words].concat());
    assert_eq!(drawn.code, 0, "{}", drawn.err);
    let svg = fs::read_to_string(&file).unwrap();
    for text in [
        "ping",
        "bulk",
        "voice",
        "Delay mean (µs) over links.s1-s2.delay",
        "links.s1-s2.delay (ms)",
    ] {
        assert!(svg.contains(text), "{text}");
    }
    let (charts, table) = (folder.join("charts"), folder.join("table"));
    let words = [
        "--plot",
        charts.to_str().unwrap(),
        "--out",
        table.to_str().unwrap(),
    ];
    let two = ["--set", "traffic.voice.size=100,200"];
    let drawn = sweep(lab, &[&set[..], &two, &words].concat());
    assert_eq!(drawn.code, 0, "{}", drawn.err);
    for name in [
        "throughput_mbps.svg",
        "throughput_mbps-map-1.svg",
        "delay_us_p99.svg",
        "lost.svg",
    ] {
        assert!(
            fs::read_to_string(charts.join(name))
                .unwrap()
                .ends_with("</svg>\n"),
            "{name}"
        );
    }
    assert_eq!(
        rows(&fs::read_to_string(table.join("flows.csv")).unwrap()).len(),
        24
    );
}
