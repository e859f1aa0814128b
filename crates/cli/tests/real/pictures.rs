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
        Self::with(runtime, name, &[])
    }

    /// A reader with further options.
    fn with(runtime: &Runtime, name: &str, options: &[&str]) -> Self {
        let file = runtime.directory.join(name);
        let out = File::create(&file).unwrap();
        let args = [&FOLLOW[..], options].concat();
        let child = runtime.command(&args).stdout(out).spawn().unwrap();
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

/// A gathered stream tells messages and the story, both at most as many as it may, and says until when it has told.
fn told_together(lines: &[Value]) {
    let count = |kind: &str| lines.iter().filter(|line| line["is"] == kind).count();
    let counts = ["now", "message", "story"].map(count);
    let enough = counts
        .iter()
        .zip([5, 50, 5])
        .all(|(count, least)| *count > least);
    assert!(enough, "{counts:?}");
    let tellings = lines.split(|line| line["is"] == "now");
    for telling in tellings {
        let messages = telling.iter().filter(|line| line["is"] == "message");
        assert!(messages.count() <= 200);
    }
    let times = lines.iter().filter(|line| line["is"] == "now");
    let times: Vec<u64> = times.map(|line| line["t"].as_u64().unwrap()).collect();
    assert!(times.is_sorted(), "{times:?}");
    // A network without events is told, too: the longest pause is about the interval.
    let pauses = times.windows(2).map(|pair| pair[1] - pair[0]);
    let longest = pauses.max().unwrap();
    assert!(
        (90_000_000..2_000_000_000).contains(&longest),
        "{longest} ns"
    );
    let milestones = lines.iter().filter(|line| line["milestone"] == true);
    assert!(
        milestones
            .clone()
            .any(|line| line["event"] == "fault.link-down")
    );
    assert!(milestones.count() > 5);
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
    let mut gathered = Reader::with(&runtime, "gathered", &["--every", "100ms"]);
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
    let told = |lines: &[Value]| lines.iter().filter(|line| line["is"] == "now").count();
    wait_for("tellings", || told(&gathered.lines()) > 5);
    // What is gathered leads to the same state, with the story and messages, and says until when it is told.
    wait_for("the gathered state to be the same", || {
        folded(&gathered.lines()) == folded(&first.lines())
    });
    signal(&hung.id().to_string(), "STOP");
    let down = std::time::Instant::now();
    runtime.down_with_warnings();
    assert!(down.elapsed().as_secs() < 20, "{:?}", down.elapsed());
    // Both readers end with the lab.
    assert_eq!(wait_for_end(&mut first.child), 0);
    assert_eq!(wait_for_end(&mut second.child), 0);
    assert_eq!(wait_for_end(&mut gathered.child), 0);
    signal(&hung.id().to_string(), "KILL");
    hung.wait().unwrap();

    let schema = runtime.json(&["events", "--schema"]);
    let kinds = kinds(&schema);
    let all = [first.lines(), second.lines()];
    let gathered = gathered.lines();
    told_together(&gathered);
    for lines in all.iter().chain([&gathered]) {
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
