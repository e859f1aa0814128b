//! `aerostat reproduce`: rows of the papers, and that no printed number reaches a model.

use crate::command;
use serde_json::Value;
use std::process::Output;

fn reproduce(words: &[&str]) -> Output {
    let mut all = vec!["reproduce"];
    all.extend(words);
    command(&all).output().expect("aerostat runs")
}

fn rows(output: &Output) -> Vec<Value> {
    let document: Value = serde_json::from_slice(&output.stdout).expect("a document");
    let rows = document["rows"].as_array().expect("rows").iter();
    rows.filter(|row| row["table"] == "rows").cloned().collect()
}

/// Some quick rows of each paper.
const QUICK: [&str; 9] = [
    "sara/1: 1 segments",
    "sara/1: 3 segments",
    "sara/1: 6 segments",
    "sara/2: 3 segments",
    "sara/3: 3 segments",
    "sara/3: 6 segments",
    "sara/4: 2 Mb/s",
    "cambridge/1",
    "atp/2: 2 MB",
];

/// The rows of these that the model does not have as the paper has them; docs/reproduce.md gives the reasons.
const MISSES: [(&str, &str); 2] = [("sara/1", "1 segments"), ("sara/2", "3 segments")];

#[test]
fn scored_rows_stay_in_their_tiers() {
    let mut words = QUICK.to_vec();
    words.extend(["-q", "-o", "json"]);
    let output = reproduce(&words);
    let rows = rows(&output);
    assert!(rows.len() >= QUICK.len(), "{rows:?}");
    let misses: Vec<(&str, &str)> = rows
        .iter()
        .filter(|row| row["result"] == "miss")
        .map(|row| (row["entry"].as_str().unwrap(), row["row"].as_str().unwrap()))
        .collect();
    assert_eq!(misses, MISSES);
    assert_eq!(output.status.code(), Some(3), "two rows are misses");
}

#[test]
fn models_do_not_know_what_is_printed() {
    let entries = ["cambridge/1", "detken/6: 64 octets", "-q", "-o", "json"];
    let plain = rows(&reproduce(&entries));
    let dir = tempfile();
    let noise = dir.join("noise.yml");
    let printed = "cambridge/1: { ATM: { value: 3, where: noise }, ATM (switched): { value: 7, where: noise } }\n\
        detken/6: { 64 octets: { value: 11, where: noise } }\n";
    std::fs::write(&noise, printed).unwrap();
    let mut words = entries.to_vec();
    words.extend(["--printed", noise.to_str().unwrap()]);
    let noisy = rows(&reproduce(&words));
    std::fs::remove_dir_all(&dir).unwrap();
    let models = |rows: &[Value]| -> Vec<String> {
        rows.iter().map(|row| row["model"].to_string()).collect()
    };
    assert_eq!(models(&plain), models(&noisy));
    assert_ne!(plain, noisy);
}

#[test]
fn a_moved_calibration_moves_its_rows_and_no_other() {
    let dir = tempfile();
    let (printed, parameters) = (dir.join("printed.yml"), dir.join("parameters.yml"));
    // The row of the direct link is printed as 1.5 times what it is: the predicted row follows it.
    std::fs::write(&printed, "cambridge/1: { ATM: { value: 30.6, where: moved }, ATM (switched): { value: 42.1, where: Table 1 } }\n").unwrap();
    let (from, to) = (printed.to_str().unwrap(), parameters.to_str().unwrap());
    let fit = reproduce(&["cambridge", "--printed", from, "--calibrate", to, "-q"]);
    assert!(fit.status.success(), "{fit:?}");
    let entries = ["cambridge/1", "detken/6: 64 octets", "-q", "-o", "json"];
    let mut words = entries.to_vec();
    words.extend(["--parameters", to]);
    let (before, after) = (rows(&reproduce(&entries)), rows(&reproduce(&words)));
    std::fs::remove_dir_all(&dir).unwrap();
    for (before, after) in before.iter().zip(&after) {
        let share = after["model"].as_f64().unwrap() / before["model"].as_f64().unwrap();
        let moved = before["entry"] == "cambridge/1";
        let wanted = if moved { 1.5 } else { 1.0 };
        assert!((share - wanted).abs() < 0.01, "{before} {after}");
    }
}

#[test]
fn wrong_words_are_told_with_a_hint() {
    let output = reproduce(&["sarah"]);
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("there is no entry 'sarah'"), "{text}");
    assert!(text.contains("reproduce list"), "{text}");
    let output = reproduce(&["sara/4", "--parameters", "/dev/null"]);
    assert_ne!(output.status.code(), Some(0));
    let list = reproduce(&["list"]);
    assert!(String::from_utf8_lossy(&list.stdout).contains("sara/4"));
}

#[test]
fn a_report_is_one_page_without_anything_from_elsewhere() {
    let dir = tempfile();
    let words = ["cambridge", "-q", "-o", "csv", "--report"];
    let done = reproduce(&[&words[..], &[dir.to_str().unwrap()]].concat());
    assert!(done.status.success(), "{done:?}");
    let page = std::fs::read_to_string(dir.join("index.html")).unwrap();
    let drawn = std::fs::read_to_string(dir.join("cambridge-1-1.svg")).unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
    // The drawings are in the page; the name of the space of SVG is no address that a browser asks.
    assert!(page.contains(&drawn) && page.matches("<svg").count() == 1);
    let bare = page.replace("http://www.w3.org/2000/svg", "");
    for foreign in ["http", "<script", "src=", "@import", "url(", "<link"] {
        assert!(!bare.contains(foreign), "{foreign}");
    }
    for text in [
        "ATM (switched)",
        "42.1",
        "cambridge.manager",
        "fitted from cambridge/1, ATM",
        "labs/papers/managers.atm.yml",
        "within 10 %",
        "No row is a miss.",
        "aerostat reproduce cambridge/1",
    ] {
        assert!(page.contains(text), "{text}");
    }
    // Every element that is opened is closed.
    for element in [
        "table", "section", "figure", "tr", "td", "pre", "code", "svg",
    ] {
        let opened = page.matches(&format!("<{element}>")).count()
            + page.matches(&format!("<{element} ")).count();
        assert_eq!(
            opened,
            page.matches(&format!("</{element}>")).count(),
            "{element}"
        );
    }
}

fn tempfile() -> std::path::PathBuf {
    let name = format!(
        "reproduce-{}-{:?}",
        std::process::id(),
        std::thread::current().id()
    );
    let dir = std::env::temp_dir().join(name.replace(['(', ')'], ""));
    std::fs::create_dir_all(&dir).unwrap();
    dir
}
