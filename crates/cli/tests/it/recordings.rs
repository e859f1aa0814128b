//! `bench/record`: two binaries with the same behaviour give the same records; a difference is found and named.

use super::root;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Runs the script; `None` where Python is missing.
fn record(arguments: &[&Path]) -> Option<(i32, String)> {
    let done = Command::new("python3")
        .arg(root().join("bench/record"))
        .args(arguments)
        .stdin(Stdio::null())
        .output();
    let Ok(done) = done else {
        println!("skipped: python3 is not installed");
        return None;
    };
    let text = [done.stdout, done.stderr].concat();
    Some((done.status.code()?, String::from_utf8(text).ok()?))
}

#[test]
fn a_record_repeats_to_the_byte_and_a_link_that_is_slower_shows_in_each_kind_of_file() {
    let top = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("recordings");
    let _ = std::fs::remove_dir_all(&top);
    let lab = root().join("labs/two-hosts.atm.yml");
    let text = std::fs::read_to_string(lab).expect("the lab");
    // The delay of a link is 5 µs if the lab names no other.
    let slower = text.replacen("{ on: s1, elan", "{ link: { delay: 6us }, on: s1, elan", 1);
    assert_ne!(text, slower, "the lab has hosts");
    for (folder, text) in [("labs", &text), ("slower", &slower)] {
        std::fs::create_dir_all(top.join(folder)).expect("a folder");
        std::fs::write(top.join(folder).join("two-hosts.atm.yml"), text).expect("a lab");
    }
    let binary = Path::new(env!("CARGO_BIN_EXE_aerostat"));
    for (labs, into) in [("labs", "a"), ("labs", "b"), ("slower", "c")] {
        let labs = top.join(labs);
        let into = top.join(into);
        let arguments = [
            binary,
            &into,
            "--labs".as_ref(),
            &labs,
            "--seeds".as_ref(),
            "1".as_ref(),
        ];
        let Some((code, text)) = record(&arguments) else {
            return;
        };
        assert_eq!(code, 0, "{text}");
    }

    let compare = Path::new("compare");
    let (code, text) = record(&[compare, &top.join("a"), &top.join("b")]).expect("python3");
    assert_eq!(code, 0, "{text}");
    assert!(text.ends_with("files that differ: 0\n"), "{text}");

    let (code, text) = record(&[compare, &top.join("a"), &top.join("c")]).expect("python3");
    assert_eq!(code, 1, "{text}");
    for part in [
        "two-hosts/1/captures/urku.txt: at line ",
        "two-hosts/1/ladder.txt: at line ",
        "two-hosts/1/people.txt: at line ",
        "two-hosts/1/results.json: at $.",
        "two-hosts/1/tables/flows.csv: at line 2 ",
    ] {
        assert!(text.contains(part), "{part:?} is missing in:\n{text}");
    }
}
