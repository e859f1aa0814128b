//! Exercises with checks: answers pass, tasks and wrong answers fail, each with words that say where to look. The list
//! for teachers and students has each folder once.

use aerostat_lab::Override;
use aerostat_lab::checks::Verdict;
use aerostat_sim::check::check;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../labs/exercises")
}

fn folders() -> Vec<PathBuf> {
    let all = fs::read_dir(root()).unwrap().flatten();
    let mut all: Vec<PathBuf> = all
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    all.sort();
    all
}

/// Failures in a lab: verdict and words; or what is wrong with the lab file.
fn fails(folder: &Path, lab: &str, changes: &str) -> Result<Vec<String>, String> {
    let mut overrides: Vec<String> = Vec::new();
    // A change begins with a path and '=', and may have blanks.
    for word in changes.split_whitespace() {
        let path = word.split_once('=').map_or("", |(path, _)| path);
        let begins = !path.is_empty()
            && path
                .chars()
                .all(|c| c.is_alphanumeric() || ".-_".contains(c));
        match overrides.last_mut() {
            Some(last) if !begins => last.push_str(&format!(" {word}")),
            _ => overrides.push(word.to_owned()),
        }
    }
    let overrides: Vec<Override> = overrides.into_iter().map(Override::from).collect();
    let checks = fs::read_to_string(folder.join("checks.yml")).unwrap();
    let checked = aerostat_lab::parse_with_checks(
        "lab.atm.yml",
        lab,
        &overrides,
        aerostat_lab::ChecksText {
            name: "checks.yml",
            text: &checks,
        },
    );
    let checked = checked.map_err(|findings| findings.to_string())?;
    let verdicts = check(&checked, &|| false);
    let bad = verdicts
        .judged
        .iter()
        .filter(|one| one.verdict != Verdict::Passed);
    Ok(bad
        .map(|one| {
            format!(
                "{}: {}: {} ({})",
                one.verdict, one.check.title, one.text, one.details
            )
        })
        .collect())
}

#[test]
fn answers_pass() {
    let folders = folders();
    for folder in folders {
        let answer = fs::read_to_string(folder.join("answer.atm.yml")).unwrap();
        assert_eq!(
            fails(&folder, &answer, ""),
            Ok(Vec::new()),
            "{}",
            folder.display()
        );
    }
}

#[test]
fn tasks_and_empty_files_fail() {
    for folder in folders() {
        let empty = fails(&folder, "", "");
        assert!(
            empty.is_err_and(|why| why.contains("at least one switch")),
            "{}",
            folder.display()
        );
        let Ok(task) = fs::read_to_string(folder.join("task.atm.yml")) else {
            continue;
        };
        let bad = fails(&folder, &task, "").unwrap();
        assert!(
            bad.iter().any(|text| text.starts_with("fail: ")),
            "{}: {bad:?}",
            folder.display()
        );
    }
}

#[test]
fn five_wrong_answers_of_each_exercise_fail_with_the_words_for_them() {
    let mut failures = Vec::new();
    for folder in folders() {
        let answer = fs::read_to_string(folder.join("answer.atm.yml")).unwrap();
        let wrong = fs::read_to_string(folder.join("wrong.txt")).unwrap();
        assert_eq!(wrong.lines().count(), 5, "{}", folder.display());
        for line in wrong.lines() {
            let (changes, words) = line.split_once(" | ").unwrap();
            let bad = fails(&folder, &answer, changes);
            let told = bad.as_ref().is_ok_and(|bad| {
                bad.iter()
                    .any(|text| text.starts_with("fail: ") && text.contains(words.trim()))
            });
            if !told {
                failures.push(format!("{}: {line}: {bad:?}", folder.display()));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Kind of an exercise, as the text for the student begins: that of the task, or of the checks in its place.
fn kind(folder: &Path) -> &'static str {
    let begins = |file: &str, words: &str| {
        fs::read_to_string(folder.join(file)).is_ok_and(|text| text.starts_with(words))
    };
    if begins("task.atm.yml", "# Find the fault: ") {
        "find"
    } else if begins("task.atm.yml", "# Predict ") {
        "predict"
    } else if begins("checks.yml", "# Build it: ") && !folder.join("task.atm.yml").exists() {
        "build"
    } else {
        panic!("{}: no kind", folder.display())
    }
}

#[test]
fn the_list_has_each_exercise_once_and_one_of_each_kind_in_a_chapter() {
    let list = fs::read_to_string(root().join("README.md")).unwrap();
    let mut listed = Vec::new();
    let mut chapters: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    let rows = list.lines().filter(|line| line.contains(" | ["));
    for row in rows {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [_, chapter, link, kind, about, _] = cells[..] else {
            panic!("{row}");
        };
        let name = link.trim_start_matches('[').split(']').next().unwrap();
        assert_eq!(link, format!("[{name}]({name})"));
        assert!(about.ends_with(['.', '?']), "{row}");
        listed.push((name.to_owned(), kind.to_owned()));
        let number = chapter.split(' ').next().unwrap().parse().unwrap();
        chapters.entry(number).or_default().push(kind.to_owned());
    }
    let mut there: Vec<(String, String)> = folders()
        .iter()
        .map(|folder| {
            let name = folder.file_name().unwrap().to_str().unwrap();
            (name.to_owned(), kind(folder).to_owned())
        })
        .collect();
    there.sort();
    listed.sort();
    assert_eq!(listed, there);
    assert!(chapters.keys().copied().eq(1..=12), "{chapters:?}");
    for (chapter, mut kinds) in chapters {
        kinds.sort();
        assert_eq!(kinds, ["build", "find", "predict"], "chapter {chapter}");
    }
}
