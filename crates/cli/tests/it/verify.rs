//! `aerostat verify`: kept results beside a new run.

use super::{command, ok, run};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// A new directory with this name, and the results of a run in it.
fn results(name: &str, form: &str, more: &[&str]) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&path);
    let out = path.to_str().unwrap();
    let words = ["run", "two-hosts", "-q", "-o", form, "--out", out];
    let ran = run(&[&words[..], more].concat());
    assert_eq!((ran.code, &*ran.err), (0, ""));
    path
}

/// Exit code, and the state of each file that is not the same.
fn verify(directory: &Path, more: &[&str]) -> (i32, Vec<(String, String, String)>) {
    let directory = directory.to_str().unwrap();
    let ran = run(&[&["verify", directory, "-o", "json"], more].concat());
    let all: Value = serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{}", ran.err));
    assert_eq!(all["schema"], "aerostat.verify.v1");
    let rows = all["rows"].as_array().unwrap().iter();
    let text = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
    let rows = rows.map(|row| {
        let [file, state, difference] =
            ["file", "state", "first_difference"].map(|key| text(row, key));
        (file, state, difference)
    });
    (ran.code, rows.filter(|row| row.1 != "same").collect())
}

#[test]
fn one_changed_octet_is_found_in_each_file() {
    let directory = results("verify-octet", "csv", &["--set", "traffic.0.size=90"]);
    assert_eq!(verify(&directory, &[]), (0, vec![]));
    for name in ["flows.csv", "run.json"] {
        let file = directory.join(name);
        let good = fs::read(&file).unwrap();
        let mut bad = good.clone();
        let at = bad.iter().rposition(u8::is_ascii_digit).unwrap();
        bad[at] = if bad[at] == b'7' { b'8' } else { b'7' };
        fs::write(&file, &bad).unwrap();
        let (code, found) = verify(&directory, &[]);
        let [(file_name, state, difference)] = &found[..] else {
            panic!("{found:?}");
        };
        assert_eq!((code, &**file_name, &**state), (1, name, "changed"));
        let line = good[..at].iter().filter(|octet| **octet == b'\n').count() + 1;
        assert!(
            difference.starts_with(&format!("line {line}: ")),
            "{difference}"
        );
        let (code, found) = verify(&directory, &["--no-run"]);
        assert_eq!((code, found.len()), (1, 1));
        fs::write(&file, &good).unwrap();
    }
    fs::remove_file(directory.join("flows.csv")).unwrap();
    let (code, found) = verify(&directory, &[]);
    assert_eq!((code, &*found[0].1), (1, "missing"));
}

#[test]
fn a_new_run_that_differs_is_no_change_of_the_file() {
    let directory = results("verify-differs", "json", &[]);
    let file = directory.join("manifest.json");
    let mut manifest: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let options = manifest["options"].as_array_mut().unwrap();
    options.push(serde_json::json!({ "option": "until", "value": "1500ms" }));
    fs::write(&file, manifest.to_string()).unwrap();
    let (code, found) = verify(&directory, &[]);
    assert_eq!(code, 1);
    assert_eq!((&*found[0].0, &*found[0].1), ("results.json", "differs"));
}

#[test]
fn runs_with_seeds_and_tables_of_sweeps_are_verified() {
    let directory = results("verify-seeds", "jsonl", &["--seeds", "1-2"]);
    assert_eq!(verify(&directory, &[]), (0, vec![]));
    let sweep = directory.with_file_name("verify-sweep");
    let _ = fs::remove_dir_all(&sweep);
    let out = sweep.to_str().unwrap();
    let set = ["--set", "traffic.0.size=100,200", "--seeds", "3-4"];
    ok(&[&["sweep", "two-hosts", "-q", "--out", out][..], &set].concat());
    assert_eq!(verify(&sweep, &[]), (0, vec![]));
    // An interrupted or failed command leaves no manifest of what was there before.
    fs::write(sweep.join("runs"), "no runs\n").unwrap();
    let ran = run(&[&["sweep", "two-hosts", "-q", "--out", out][..], &set].concat());
    assert_ne!(ran.code, 0);
    assert!(!sweep.join("manifest.json").exists());
}

/// A change of a manifest.
type Change<'a> = &'a dyn Fn(&mut Value);

#[test]
fn a_manifest_starts_no_other_command_and_names_no_file_outside() {
    let directory = results("verify-hostile", "json", &[]);
    let file = directory.join("manifest.json");
    let good: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let hostile: [(&str, Change<'_>); 8] = [
        ("has no option 'view'", &|all| {
            let view = serde_json::json!({ "option": "view", "value": "/tmp/x.html" });
            all["options"].as_array_mut().unwrap().push(view);
        }),
        ("unknown variant `exec`", &|all| all["verb"] = "exec".into()),
        ("is no name of a file", &|all| {
            all["files"][0]["file"] = "../x".into()
        }),
        ("is no name of a file", &|all| {
            all["inputs"][0]["file"] = "/etc/x".into()
        }),
        ("does not have its SHA-256", &|all| {
            all["inputs"][0]["text"] = "x".into()
        }),
        ("not exactly one lab", &|all| {
            all["words"] = serde_json::json!([])
        }),
        ("the lab '/etc/passwd' is not among the inputs", &|all| {
            all["words"] = serde_json::json!(["/etc/passwd"])
        }),
        ("the schema is", &|all| {
            all["schema"] = "aerostat.manifest.v9".into()
        }),
    ];
    for (told, change) in hostile {
        let mut bad = good.clone();
        change(&mut bad);
        fs::write(&file, bad.to_string()).unwrap();
        let ran = run(&["verify", directory.to_str().unwrap()]);
        assert_eq!((ran.code, &*ran.out), (2, ""), "{told}");
        ran.says(told);
    }
    // A result that is a link out of the directory is not read, even if it leads to what the manifest wants.
    let mut one = good.clone();
    one["files"].as_array_mut().unwrap().truncate(1);
    fs::write(&file, one.to_string()).unwrap();
    let name = directory.join(one["files"][0]["file"].as_str().unwrap());
    let elsewhere = directory.with_extension("elsewhere");
    fs::rename(&name, &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &name).unwrap();
    let ran = run(&["verify", "--no-run", directory.to_str().unwrap()]);
    assert_eq!(ran.code, 1, "{}{}", ran.out, ran.err);
    ran.shows("this is no regular file");
    let ran = run(&["verify", elsewhere.to_str().unwrap()]);
    ran.says("this is no directory");
    fs::remove_file(&elsewhere).unwrap();
    fs::remove_file(&file).unwrap();
    let ran = run(&["verify", directory.to_str().unwrap()]);
    ran.ends(2, "has no manifest.json");
}

#[test]
fn a_place_that_cannot_be_written_is_named() {
    let directory = results("verify-place", "json", &[]);
    let ran = command(&["verify", directory.to_str().unwrap()])
        .env("TMPDIR", "/proc/nowhere")
        .env_remove("HOME")
        .output()
        .unwrap();
    let err = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(1));
    assert!(
        err.contains("/proc/nowhere") && err.contains("TMPDIR"),
        "{err}"
    );
}

#[test]
fn the_version_says_source_target_and_features() {
    let short = run(&["-V"]);
    assert_eq!(
        short.out,
        concat!("aerostat ", env!("CARGO_PKG_VERSION"), "\n")
    );
    let long = run(&["--version"]).out;
    let begin = |line: usize| {
        long.lines()
            .nth(line)
            .and_then(|line| line.split(':').next())
    };
    assert!(long.starts_with(short.out.trim_end()), "{long}");
    assert_eq!(
        [1, 2, 3, 4].map(begin),
        [
            Some("source"),
            Some("compiler"),
            Some("target"),
            Some("features")
        ]
    );
}
