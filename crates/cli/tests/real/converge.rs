//! `aerostat up` on a lab that runs.

use crate::live::Runtime;
use crate::{lab_file, root};

/// The lab without its transfers, which fill queues, so that these discard some of the packets.
fn campus() -> String {
    let text = std::fs::read_to_string(root().join("labs/campus.atm.yml")).unwrap();
    let lines = text.split_inclusive('\n');
    lines.filter(|line| !line.contains("kind: tcp")).collect()
}

/// A file of the test, and its text.
fn file(name: &str, text: &str) -> String {
    lab_file(name, text)
}

#[test]
fn a_lab_becomes_what_its_changed_file_says_and_tells_what_it_cannot() {
    let lab = Runtime::new("converge");
    let name = "converge-campus.atm.yml";
    let first = campus().replace("start: 2s, duration: 10s", "start: 0s");
    let path = file(name, &first);
    let dry = lab.run(&["up", "--dry-run", &path]);
    dry.ends(4, "no lab 'campus' is running");
    lab.ok(&["up", "-d", "-q", "--embedded", &path]);
    // Nothing has changed.
    for options in [&["up", &path][..], &["up", "-d", "--dry-run", &path]] {
        let same = lab.run(options);
        assert_eq!((same.code, same.out.as_str()), (0, ""), "{}", same.err);
        same.says("lab 'campus' is as its file says");
    }
    let host = "hosts:\n  nina: { on: asx1000, elan: a, ip: 10.1.0.77 }";
    let more = first
        .replacen("hosts:", host, 1)
        .replacen("delay: 5us", "delay: 9us", 1);
    // The changed file has another name, and a value was set by hand where it sets one.
    let path = file("converge-campus-later.atm.yml", &more);
    lab.ok(&["link", "set", "ls1010-asx200", "delay=3ms"]);
    let dry = lab.ok(&["up", "--dry-run", &path]);
    assert!(dry.contains("+ host nina: on asx1000"), "{dry}");
    assert!(
        dry.contains("~ link ls1010-asx200: delay_s 5e-6 -> 9e-6"),
        "{dry}"
    );
    assert!(!lab.ok(&["inspect", "ls1010", "port"]).contains("nina"));
    // Options of another start are refused before anything is done.
    let other = lab.run(&["up", "--split", &path]);
    assert_eq!(other.code, 2, "{}{}", other.out, other.err);
    assert_eq!(lab.ok(&["up", "--dry-run", &path]), dry);
    let done = lab.run(&["up", &path]);
    assert_eq!(done.code, 0, "{}{}", done.out, done.err);
    assert!(
        done.out.ends_with("ready\n") && done.out.starts_with(&dry),
        "{}",
        done.out
    );
    let told = "values that 'aerostat link set' gave ls1010-asx200 gave way to those of the file";
    done.says(told);
    let listed = lab.ok(&["ls", "-o", "csv"]);
    assert!(listed.contains("converge-campus-later"), "{listed}");
    let shown = lab.ok(&["inspect", "nina", "lec", "-o", "csv", "--table", "client"]);
    assert!(shown.contains("operational"), "{shown}");
    assert!(lab.ok(&["link", "show", "ls1010-asx200"]).contains('9'));
    needs_are_told(&lab, name, &more);
    // What is removed is gone, and the lab ends as others do.
    let path = file(name, &first);
    let back = lab.ok(&["up", "--restart", "all", "-o", "json", &path]);
    let rows: serde_json::Value = serde_json::from_str(&back).unwrap();
    assert_eq!(rows["schema"], "aerostat.up.v1");
    let rows = rows["rows"].as_array().unwrap();
    assert!(
        rows.iter()
            .any(|row| row["act"] == "remove" && row["name"] == "nina"),
        "{}",
        back
    );
    let gone = lab.run(&["inspect", "nina", "lec"]);
    gone.says("there is no node 'nina'");
    assert!(!lab.ok(&["inspect", "asx1000", "port"]).contains("nina"));
    assert!(!lab.ok(&["graph", "--lab", "campus"]).contains("nina"));
    lab.down_with_warnings();
}

/// Nothing is done without leave.
fn needs_are_told(lab: &Runtime, name: &str, text: &str) {
    let moved = text.replace("ip: 10.1.0.77", "ip: 10.1.0.78");
    let path = file(name, &moved);
    for options in [
        &["up", &path][..],
        &["up", "--dry-run", &path],
        &["up", "--restart", "urku", &path],
    ] {
        let refused = lab.run(options);
        assert_eq!(refused.code, 1, "{}{}", refused.out, refused.err);
        refused.shows("needs a restart of nina");
        refused.says("--restart nina");
    }
    let done = lab.run(&["up", "--restart", "nina", &path]);
    done.ends(0, "started again: nina");
    // Another address of the station is one of its port, too, and the key `kernel` counts in labs of kernels only.
    let other = moved.replace(
        "ip: 10.1.0.78",
        "ip: 10.1.0.78, mac: '02:00:00:00:00:77', kernel: true",
    );
    let done = lab.run(&["up", "--restart", "nina", &file(name, &other)]);
    done.ends(0, "nodes with 'kernel: true' are embedded");
    let reached = lab.json(&["ping", "--lab", "campus", "nina", "urku", "-o", "json"]);
    assert_eq!(reached["rows"][0]["received"], 3, "{reached}");
    lab.ok(&["up", "--restart", "nina", &file(name, &moved)]);
    let kernel = moved.replace("ip: 10.1.0.78", "ip: 10.1.0.78, kernel: true");
    lab.ok(&["up", &file(name, &kernel)]);
    let path = file(name, &moved);
    lab.ok(&["up", &path]);
    let seed = format!("{moved}\nseed: 9\n");
    let whole = lab.run(&["up", &file(name, &seed)]);
    whole.ends(1, "the lab has to be started again");
    let wrong = lab.run(&["up", &file(name, &moved.replace("elan: a", "elan: zz"))]);
    assert_eq!(wrong.code, 2, "{}", wrong.err);
    let path = file(name, &moved);
    let unknown = lab.run(&["up", "--restart", "someone", &path]);
    unknown.ends(1, "there is no node 'someone'");
    let split = lab.run(&["up", "--split", &path]);
    assert_eq!(split.code, 2, "{}", split.err);
    // Two at once: each makes the lab what it says, or is told of the other.
    let paths = [
        file("converge-one.atm.yml", &moved),
        file("converge-two.atm.yml", text),
    ];
    let both = paths.map(|path| {
        let mut command = lab.command(&["up", "--restart", "all", &path]);
        std::thread::spawn(move || command.output().unwrap().status.code())
    });
    for one in both {
        assert!(matches!(one.join().unwrap(), Some(0 | 1)));
    }
    lab.ok(&["up", "--restart", "all", &path]);
    lab.ok(&["up", &path]);
}
