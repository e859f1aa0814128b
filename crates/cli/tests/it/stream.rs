//! The stream of events and the page of a run, from the users' point of view.

use super::{ok, root, run};
use serde_json::Value;
use std::path::PathBuf;

fn scratch(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_file(&path);
    path
}

/// The published schema of a line.
fn schema() -> Value {
    let path = root().join("docs/events.schema.json");
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        std::fs::write(&path, run(&["events", "--schema"]).out).expect("written");
    }
    let text = std::fs::read_to_string(&path).expect("the schema");
    serde_json::from_str(&text).expect("JSON")
}

/// The fields of a kind of line: all of them, and those that are always there.
fn fields(schema: &Value, kind: &str) -> (Vec<String>, Vec<String>) {
    let kinds = schema["oneOf"].as_array().expect("kinds").iter();
    let mut of = kinds.filter(|one| one["properties"]["is"]["const"] == kind);
    let of = of.next().unwrap_or_else(|| panic!("no kind {kind}"));
    let name = of["$ref"]
        .as_str()
        .expect("a reference")
        .trim_start_matches("#/$defs/");
    let def = &schema["$defs"][name];
    let all = def["properties"]
        .as_object()
        .expect("fields")
        .keys()
        .cloned();
    let required = def["required"].as_array().into_iter().flatten();
    let required = required.map(|key| key.as_str().expect("a name").to_owned());
    (all.collect(), required.collect())
}

#[test]
fn the_lines_of_a_run_are_those_of_the_published_schema() {
    let schema = schema();
    assert_eq!(run(&["events", "--schema"]).out, format!("{schema:#}\n"));
    let path = scratch("nhrp.jsonl");
    ok(&[
        "run",
        "labs/campus.atm.yml",
        "-q",
        "--until",
        "6500ms",
        "--events",
        path.to_str().unwrap(),
    ]);
    let text = std::fs::read_to_string(&path).expect("the events");
    let mut last = 0;
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).expect("JSON");
        let (all, required) = fields(&schema, line["is"].as_str().expect("a kind"));
        let object = line.as_object().expect("an object");
        for key in object.keys().filter(|key| *key != "is") {
            assert!(all.contains(key), "{line}: {key} is not in the schema");
        }
        for key in required {
            assert!(object.contains_key(&key), "{line}: {key} is missing");
        }
        let t = line["t"].as_u64().unwrap_or(last);
        assert!(t >= last, "{line}: not in the order of time");
        last = t;
    }
    assert!(text.starts_with("{\"is\":\"head\",\"schema\":\"aerostat.events.v1\""));
    assert!(
        text.lines()
            .last()
            .is_some_and(|line| line.starts_with("{\"is\":\"end\""))
    );
}

#[test]
fn options_that_make_no_sense_together_are_refused_with_a_hint() {
    let lab = "labs/two-hosts.atm.yml";
    for (args, says) in [
        (
            &["--events", "x.jsonl", "--seeds", "1-2"][..],
            "--events is for one run",
        ),
        (
            &["--view", "x.html", "--sweep", "mpoa=true,false"],
            "--view is for one run",
        ),
        (&["--events", "-"], "cannot both go to standard output"),
        (&["--view", "x.svg"], "a page is a file .html"),
        (&["--sample", "1s"], "--sample is for"),
        (&["--events", "x", "--sample", "1ns"], "a microsecond"),
    ] {
        let ran = run(&[&["run", lab][..], args].concat());
        ran.ends(2, says);
    }
    // A full disk.
    let ran = run(&["run", lab, "-q", "--until", "1s", "--events", "/dev/full"]);
    ran.ends(1, "/dev/full cannot be written");
    // A file in the place of a directory is refused before the run, and so before the events are there.
    let (file, events) = (scratch("a-file"), scratch("not-begun.jsonl"));
    std::fs::write(&file, "").expect("written");
    let [file, path] = [&file, &events].map(|path| path.to_str().expect("a name"));
    let out = ["-o", "json", "--out", file, "--events", path];
    let ran = run(&[&["run", lab][..], &out].concat());
    ran.ends(1, "--out takes a directory");
    assert!(!events.exists());
}

/// A lab whose texts are made to leave their places. Names have no such characters, but descriptions and comments may.
const HOSTILE: &str = "
name: hostile # </script> \u{2028} --> &lt;
description: \"</script><script>alert(2)</script> <!-- <img src=x onerror=alert(1)> &lt;\"
switches: { s1: {} }
lane: { on: s1, elans: { a: { subnet: 10.1.0.0/24 } } }
hosts:
  anna: { on: s1, elan: a, ip: 10.1.0.10 }
  bert: { on: s1, elan: a, ip: 10.1.0.20 }
traffic:
  - { name: ping, from: anna, to: bert, kind: ping, rate: 10pps, start: 1s, duration: 1s }
";

#[test]
fn names_are_text_in_the_page_whatever_they_contain() {
    let (lab, page) = (scratch("hostile.atm.yml"), scratch("hostile.html"));
    std::fs::write(&lab, HOSTILE).expect("written");
    ok(&[
        "run",
        lab.to_str().unwrap(),
        "-q",
        "--view",
        page.to_str().unwrap(),
    ]);
    let text = std::fs::read_to_string(&page).expect("the page");
    assert!(!text.contains("<img"), "markup of a name");
    assert!(!text.contains("alert(2)</script>"));
    assert!(!text.contains(['\u{2028}', '\u{1b}']));
    let name = "\\u003cimg src=x onerror=alert(1)\\u003e \\u0026lt;";
    assert!(text.contains(name), "the description in the stream");
    // One script in the head, the signs, that of the page, and the stream.
    assert_eq!(text.matches("</script>").count(), 4);
}

#[test]
fn the_page_of_the_campus_has_all_in_itself() {
    let (page, events) = (scratch("campus.html"), scratch("campus.jsonl"));
    let [view, events_too] = [&page, &events].map(|path| path.to_str().unwrap());
    ok(&[
        "run",
        "labs/campus.atm.yml",
        "-q",
        "--view",
        view,
        "--events",
        events_too,
    ]);
    let page = std::fs::read_to_string(&page).expect("the page");
    let events = std::fs::read_to_string(&events).expect("the events");
    let escapes = [("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026")];
    let escaped = |text: String, (sign, escape): (&str, &str)| text.replace(sign, escape);
    let embedded = escapes.into_iter().fold(events, escaped);
    assert!(page.contains(&embedded), "the stream is the same");
    assert!(page.len() <= 1_000_000, "{} octets", page.len());
    for markers in ["<!--TITLE-->", "/*SCRIPT*/", "/*STREAM*/", "<!--LADDER-->"] {
        assert!(!page.contains(markers), "{markers}");
    }
    let outside = [
        "src=\"http",
        "href=\"http",
        "url(http",
        "@import",
        "fetch(",
        "XMLHttpRequest",
        "EventSource",
    ];
    for way in outside {
        assert!(!page.contains(way), "{way}");
    }
    assert!(page.contains("joined ELAN a as LECID") && page.contains("<h3>flows</h3>"));
}
