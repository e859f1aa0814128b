//! Drawings of runs, sweeps, reports and networks: each has a title, all names are whole, and no two are the same.

use crate::{lab_file, ok, root, run};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Text elements of a drawing: attributes and text.
fn texts(svg: &str) -> Vec<(&str, &str)> {
    let parts = svg.split("<text").skip(1);
    let texts = parts.filter_map(|part| {
        let (attributes, rest) = part.split_once('>')?;
        Some((attributes, rest.split("</text>").next()?.trim()))
    });
    texts.collect()
}

/// Rules for every drawing.
fn is_whole(name: &str, svg: &str) {
    let (_, inside) = svg.split_once('>').unwrap();
    let title = inside.trim_start().strip_prefix("<title>");
    let title = title.and_then(|title| title.split("</title>").next());
    assert!(
        title.is_some_and(|title| !title.is_empty()),
        "{name}: no title"
    );
    for (_, text) in texts(svg) {
        assert!(
            !text.contains(['…']) && !text.contains("..."),
            "{name}: {text}"
        );
    }
}

/// The names in the legend of a drawing of results: all texts that begin at a place, but title and note.
fn legend(svg: &str) -> Vec<String> {
    let texts = texts(svg).into_iter();
    let legend = texts.filter(|(attributes, _)| {
        attributes.contains("text-anchor=\"start\"") && !attributes.contains(" x=\"20\"")
    });
    legend.map(|(_, text)| text.to_owned()).collect()
}

/// All drawings of a directory by their names.
fn drawings(folder: &Path) -> Vec<(String, String)> {
    let files = fs::read_dir(folder).unwrap().flatten();
    let mut all: Vec<(String, String)> = files
        .map(|file| {
            let name = file.file_name().into_string().unwrap();
            (name, fs::read_to_string(file.path()).unwrap())
        })
        .collect();
    all.sort();
    all
}

fn folder(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&path);
    path
}

/// The names of the lines of a column in all parts of its drawing, which must differ.
fn lines(all: &[(String, String)], column: &str) -> Vec<String> {
    let parts = all.iter().filter(|(name, _)| {
        let rest = name
            .strip_prefix(column)
            .and_then(|rest| rest.strip_suffix(".svg"));
        rest.is_some_and(|rest| rest.is_empty() || rest[1..].parse::<u32>().is_ok())
    });
    let names: Vec<String> = parts.flat_map(|(_, svg)| legend(svg)).collect();
    let different: BTreeSet<&String> = names.iter().collect();
    assert_eq!(different.len(), names.len(), "{names:?}");
    names
}

/// Two flows whose names differ at their ends only, over links with long names.
const LAB: &str = "
switches: { s1: {}, s2: {} }
links: [[s1, s2, { name: the-trunk-between-both-buildings, rate: oc3 }]]
lane: { on: s1, elans: { a: { subnet: 10.1.0.0/24 } } }
hosts:
  x: { on: s1, elan: a, ip: 10.1.0.10 }
  y: { on: s2, elan: a, ip: 10.1.0.20 }
traffic:
  - { name: measured-transfer-in-the-mornin1, from: x, to: y, kind: udp, rate: 100pps, start: 1s, duration: 200ms }
  - { name: measured-transfer-in-the-mornin2, from: y, to: x, kind: udp, rate: 50pps, start: 1s, duration: 200ms }
";

#[test]
fn lines_of_a_sweep_of_two_keys_have_names_that_differ_and_are_whole() {
    let file = lab_file("long-names.atm.yml", LAB);
    let place = folder("drawn-sweep");
    let trunk = "links.the-trunk-between-both-buildings";
    ok(&[
        "sweep",
        &file,
        "--until",
        "1300ms",
        "-q",
        "-o",
        "csv",
        "--set",
        &format!("{trunk}.delay=5us,1ms"),
        "--set",
        &format!("{trunk}.loss=0,1e-6"),
        "--set",
        "lane.elans.a.mtu=1516,4544",
        "--plot",
        place.to_str().unwrap(),
    ]);
    let all = drawings(&place);
    all.iter().for_each(|(name, svg)| is_whole(name, svg));
    // Two flows, two values of each key beyond the axis.
    let names = lines(&all, "throughput_mbps");
    assert_eq!(names.len(), 8, "{names:?}");
    for name in &names {
        assert!(name.contains("loss=") && name.contains("mtu="), "{name}");
        assert!(name.contains("in-the-morni"), "{name}");
    }
    assert!(all.iter().any(|(_, svg)| svg.contains("(1 of 2)")));
}

#[test]
fn a_line_stands_for_one_thing_in_tables_without_names() {
    let file = lab_file("long-names-links.atm.yml", LAB);
    for (table, column) in [("links", "utilisation"), ("vcs", "cells_sent")] {
        let place = folder(&format!("drawn-{table}"));
        let words = [
            "sweep", &file, "--until", "1300ms", "-q", "-o", "csv", "--table", table,
        ];
        let plot = ["--y", column, "--plot", place.to_str().unwrap()];
        let set = ["--set", "lane.elans.a.mtu=1516,4544"];
        let ran = run(&[&words[..], &plot, &set].concat());
        assert_eq!(ran.code, 0, "{}", ran.err);
        let all = drawings(&place);
        all.iter().for_each(|(name, svg)| is_whole(name, svg));
        let rows = ran
            .out
            .lines()
            .filter(|line| line.starts_with("1516,"))
            .count();
        assert_eq!(
            lines(&all, column).len(),
            rows,
            "{table}: a line for each row of a run"
        );
    }
}

#[test]
fn drawings_of_a_run_have_whole_names() {
    let file = lab_file("long-names-run.atm.yml", LAB);
    let place = folder("drawn-run");
    ok(&["run", &file, "-q", "--plot", place.to_str().unwrap()]);
    let all = drawings(&place);
    assert!(!all.is_empty());
    for (name, svg) in &all {
        is_whole(name, svg);
    }
    assert_eq!(lines(&all, "delays").len(), 2);
}

#[test]
fn networks_have_a_title_and_a_label_for_each_line() {
    let mut count = 0;
    for entry in fs::read_dir(root().join("labs")).unwrap().flatten() {
        let file = entry.file_name().into_string().unwrap();
        if !file.ends_with(".atm.yml") {
            continue;
        }
        let svg = run(&["graph", &format!("labs/{file}"), "-o", "svg"]).out;
        is_whole(&file, &svg);
        let of_class = |class: &str| -> Vec<&str> {
            let class = format!("class=\"{class}\"");
            let texts = texts(&svg).into_iter();
            let texts = texts.filter(|(attributes, _)| attributes.contains(&class));
            texts.map(|(_, text)| text).collect()
        };
        let mut names = of_class("name");
        let labels = of_class("label");
        // The second line of a link's label is what it is, which links share.
        names.extend(labels.into_iter().filter(|label| label.starts_with("PVC ")));
        let different: BTreeSet<&&str> = names.iter().collect();
        assert_eq!(different.len(), names.len(), "{file}: {names:?}");
        count += 1;
    }
    assert!(count > 30, "{count} labs");
}

#[test]
fn the_pictures_of_the_readme_are_those_that_the_program_draws() {
    for at in ["5.9s", "6.9s"] {
        let drawn = ok(&["graph", "campus", "--at", at, "-o", "svg"]);
        is_whole(at, &drawn);
        let name = format!("docs/campus-{at}.svg");
        let path = root().join(&name);
        if std::env::var_os("UPDATE_EXPECTED").is_some() {
            fs::write(&path, &drawn).unwrap();
        }
        let kept = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            kept == drawn,
            "{name}: run the tests with UPDATE_EXPECTED=1"
        );
        assert!(kept.len() < 40_000, "{name}: {} octets", kept.len());
        let readme = fs::read_to_string(root().join("README.md")).unwrap();
        assert!(readme.contains(&format!("({name})")), "{name}");
        // Before second 6 there is no shortcut, afterwards there are several.
        let shortcuts = kept.matches("class=\"plate\"").count();
        assert_eq!(shortcuts > 0, at == "6.9s", "{name}: {shortcuts} shortcuts");
    }
    for (args, says) in [
        (&["campus", "--at", "1h"][..], "the run ends at"),
        (&["labs/campus.atm.yml", "--at", "soon"], "--at"),
    ] {
        let ran = run(&[&["graph"][..], args].concat());
        ran.ends(2, says);
    }
}
