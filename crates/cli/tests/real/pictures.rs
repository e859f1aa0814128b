//! The stream of a running lab (`events --initial-state --follow`): complete, in order, and no burden for the lab.

use crate::live::{Runtime, signal, wait_for, wait_for_end};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Stdio};

const FOLLOW: [&str; 5] = ["events", "--initial-state", "--follow", "--stats", "50ms"];

/// A reader whose lines go to a file.
struct Reader {
    child: Child,
    file: PathBuf,
}

impl Reader {
    fn new(runtime: &Runtime, name: &str) -> Self {
        let file = runtime.directory.join(name);
        let out = File::create(&file).unwrap();
        let child = runtime.command(&FOLLOW).stdout(out).spawn().unwrap();
        let reader = Self { child, file };
        wait_for("the first line", || !reader.lines().is_empty());
        reader
    }

    /// The whole lines so far.
    fn lines(&self) -> Vec<Value> {
        let text = fs::read_to_string(&self.file).unwrap();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let lines = whole.lines().map(serde_json::from_str);
        lines.collect::<Result<_, _>>().unwrap()
    }
}

/// The kinds of lines: fields, and fields that are always there.
fn kinds(schema: &Value) -> BTreeMap<String, (Vec<String>, Vec<String>)> {
    let kinds = schema["oneOf"].as_array().unwrap().iter();
    let of = |one: &Value| {
        let kind = one["properties"]["is"]["const"].as_str().unwrap();
        let name = one["$ref"].as_str().unwrap().trim_start_matches("#/$defs/");
        let def = &schema["$defs"][name];
        let all = def["properties"].as_object().unwrap().keys().cloned();
        let required = def["required"].as_array().into_iter().flatten();
        let required = required.map(|key| key.as_str().unwrap().to_owned());
        (kind.to_owned(), (all.collect(), required.collect()))
    };
    kinds.map(of).collect()
}

const STATES: [&str; 4] = ["call", "member", "shortcut", "fault"];

fn is_state(line: &Value) -> bool {
    STATES.iter().any(|kind| line["is"] == *kind)
}

/// The states after all lines, by kind and id; no line of them may come twice or for nothing.
fn folded(lines: &[Value]) -> BTreeMap<(String, u64), BTreeMap<String, Value>> {
    let mut all: BTreeMap<(String, u64), BTreeMap<String, Value>> = BTreeMap::new();
    for line in lines.iter().filter(|line| is_state(line)) {
        let key = (
            line["is"].as_str().unwrap().to_owned(),
            line["id"].as_u64().unwrap(),
        );
        if line["gone"] == true {
            assert!(all.remove(&key).is_some(), "{line}: it was not there");
            continue;
        }
        let mut fields: BTreeMap<String, Value> =
            line.as_object().unwrap().clone().into_iter().collect();
        fields.retain(|key, _| key != "t");
        let state = all.entry(key).or_default();
        let before = state.clone();
        state.extend(fields);
        assert!(*state != before, "{line}: nothing has changed");
    }
    all
}

#[test]
fn a_stream_has_each_line_once_and_ends_with_the_lab_whatever_other_readers_do() {
    let runtime = Runtime::new("pictures");
    runtime.ok(&["up", "-d", "-q", "--embedded", "labs/two-subnets.atm.yml"]);
    let mut first = Reader::new(&runtime, "first");
    // One reader never reads, and one dies.
    let mut hung = runtime
        .command(&FOLLOW)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let dying = Reader::new(&runtime, "dying");
    wait_for("a shortcut", || {
        first
            .lines()
            .iter()
            .any(|line| line["is"] == "shortcut" && line["state"] == "open")
    });
    let mut second = Reader::new(&runtime, "second");
    let mut dying = dying.child;
    signal(&dying.id().to_string(), "KILL");
    dying.wait().unwrap();
    for fault in [
        ["link-down", "s1-s2"],
        ["link-up", "s1-s2"],
        ["crash", "urku"],
        ["restart", "urku"],
    ] {
        runtime.ok(&[&["fault"][..], &fault].concat());
    }
    // The lab goes on: its members join again.
    wait_for("urku to join again", || {
        let all = folded(&second.lines());
        let mut members = all.iter().filter(|((kind, _), _)| kind == "member");
        members.any(|(_, state)| state["node"] == "urku" && state["state"] == "joined")
    });
    let samples = |lines: &[Value]| lines.iter().filter(|line| line["is"] == "sample").count();
    wait_for("samples", || {
        samples(&first.lines()) > 5 && samples(&second.lines()) > 5
    });
    signal(&hung.id().to_string(), "STOP");
    let down = std::time::Instant::now();
    runtime.down_with_warnings();
    assert!(down.elapsed().as_secs() < 20, "{:?}", down.elapsed());
    // Both readers end with the lab.
    assert_eq!(wait_for_end(&mut first.child), 0);
    assert_eq!(wait_for_end(&mut second.child), 0);
    signal(&hung.id().to_string(), "KILL");
    hung.wait().unwrap();

    let schema: Value = serde_json::from_str(&runtime.ok(&["events", "--schema"])).unwrap();
    let kinds = kinds(&schema);
    let all = [first.lines(), second.lines()];
    for lines in &all {
        assert_eq!(
            (&lines[0]["is"], &lines[0]["time"]),
            (&"head".into(), &"real".into())
        );
        assert!(lines.iter().skip(1).all(|line| line["is"] != "head"));
        let mut last = 0;
        for line in lines {
            let (fields, required) = &kinds[line["is"].as_str().unwrap()];
            let object = line.as_object().unwrap();
            let known = |key: &String| key == "is" || fields.contains(key);
            assert!(
                object.keys().all(known),
                "{line}: a field is not in the schema"
            );
            assert!(
                required.iter().all(|key| object.contains_key(key)),
                "{line}: a field is missing"
            );
            if is_state(line) {
                let t = line["t"].as_u64().unwrap();
                assert!(t >= last, "{line}: not in the order of time");
                last = t;
            }
        }
    }
    // Both were told the same changes since the second one came, each once and in the same order.
    let changes = |lines: &[Value]| -> Vec<Value> {
        let cut = |line: &Value| line["is"] == "fault" && line["name"] == "s1-s2";
        let from = lines.iter().position(cut).expect("the fault");
        let rest = lines[from..].iter().filter(|line| is_state(line));
        rest.cloned().collect()
    };
    let [one, other] = all.each_ref().map(|lines| changes(lines));
    assert!(one.len() > 20, "{} changes", one.len());
    assert_eq!(one, other);
    let [one, other] = all.each_ref().map(|lines| folded(lines));
    assert_eq!(one, other);
    runtime.nothing_is_left();
}
