//! Labs of the program: found by name in any directory, listed, and copied.

use aerostat_testing::command::{Ran, command};
use std::fs;
use std::path::{Path, PathBuf};

/// An empty directory.
fn empty(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

/// The command in this directory.
fn run_in(directory: &Path, args: &[&str]) -> Ran {
    let output = command(args).current_dir(directory).output();
    output.expect("the command runs").into()
}

fn good(directory: &Path, args: &[&str]) -> Ran {
    let ran = run_in(directory, args);
    assert!(matches!(ran.code, 0 | 3), "{args:?}: {}", ran.err);
    ran
}

#[test]
fn every_command_that_takes_a_lab_finds_it_by_name_in_an_empty_directory() {
    let here = empty("by-name");
    let run = good(&here, &["run", "two-hosts", "-q", "--until", "2s"]);
    run.shows("ping");
    let file = ["run", "labs/two-hosts.atm.yml", "-q", "--until", "2s"];
    assert_eq!(run.out, aerostat_testing::command::run(&file).out);
    let valid = good(&here, &["validate", "campus", "host/worker", "papers/sara"]);
    assert_eq!(valid.out.lines().count(), 3, "{}", valid.out);
    assert!(good(&here, &["graph", "campus"]).out.contains("urku"));
    let sweep = [
        "sweep",
        "two-hosts",
        "-q",
        "--until",
        "2s",
        "--seeds",
        "1-2",
    ];
    assert!(good(&here, &sweep).out.contains("ping"));
    let rfc2544 = [
        "rfc2544",
        "rfc2544",
        "--traffic",
        "switch",
        "--test",
        "throughput",
    ];
    let few = [
        "--frames",
        "1518",
        "--duration",
        "10ms",
        "--resolution",
        "10",
    ];
    good(&here, &[&rfc2544[..], &few].concat());
    // The lab is known, and what is missing is a right.
    let host = run_in(&here, &["host", "campus"]);
    host.says("campus.atm.yml:");
    assert_eq!(fs::read_dir(&here).unwrap().count(), 0);
}

#[test]
fn a_file_comes_before_a_lab_of_the_program_and_that_is_said() {
    let here = empty("file-first");
    fs::write(
        here.join("campus.atm.yml"),
        "switches: { s1: {} }\nnope: 1\n",
    )
    .unwrap();
    let bad = run_in(&here, &["validate", "campus"]);
    assert_eq!(bad.code, 2);
    let note = "note: 'campus' is the file campus.atm.yml, and not the lab of the program\n";
    assert!(bad.err.starts_with(note), "{}", bad.err);
    bad.says("campus.atm.yml:2:1: error");
    fs::remove_file(here.join("campus.atm.yml")).unwrap();
    fs::write(here.join("campus"), "switches: { s1: {} }\nnope: 1\n").unwrap();
    let bad = run_in(&here, &["run", "campus", "--seeds", "1-2"]);
    assert_eq!(
        bad.err
            .matches("note: 'campus' is the file ./campus,")
            .count(),
        1,
        "{}",
        bad.err
    );
    assert_eq!(bad.code, 2);
    // A directory is no file.
    fs::remove_file(here.join("campus")).unwrap();
    fs::create_dir(here.join("campus")).unwrap();
    assert_eq!(good(&here, &["validate", "campus"]).err, "");
}

#[test]
fn without_a_name_the_only_lab_of_the_directory_is_taken() {
    let here = empty("only-one");
    for verb in ["run", "up"] {
        let none = run_in(&here, &[verb]);
        let said = "no lab is named, and this directory has no lab file (NAME.atm.yml)\n  hint: 'aerostat labs'";
        none.ends(2, said);
    }
    good(&here, &["labs", "--copy", "two-hosts"]);
    let ran = good(&here, &["run", "-q", "--until", "2s"]);
    assert!(
        ran.err.starts_with("note: the lab is two-hosts.atm.yml\n"),
        "{}",
        ran.err
    );
    let whole = here.display().to_string();
    assert_eq!(
        good(Path::new("/"), &["run", &whole, "-q", "--until", "2s"]).out,
        ran.out
    );
    for name in ["campus", "clip", "atp", "load"] {
        good(&here, &["labs", "--copy", name]);
    }
    let several = run_in(&here, &["run"]);
    let said = "this directory has 5: atp.atm.yml, campus.atm.yml, clip.atm.yml, load.atm.yml and 1 more\n";
    several.ends(2, said);
    // The schema needs no lab.
    assert!(good(&here, &["run", "--schema"]).out.contains("$schema"));
}

#[test]
fn a_wrong_name_gets_the_nearest_ones() {
    let here = empty("wrong-name");
    let near = run_in(&here, &["run", "campos"]);
    let said = "there is no file 'campos', and the program has no lab of this name\n  hint: did you mean 'campus'?";
    near.ends(2, said);
    let part = run_in(&here, &["validate", "subnets", "campus"]);
    part.says("did you mean 'two-subnets'?");
    part.shows("campus: 3 switches");
    let far = run_in(&here, &["graph", "zzzzzz"]);
    far.says("no lab 'zzzzzz' is running");
    far.says("'aerostat labs' lists");
    let path = run_in(&here, &["run", "labs/campus.atm.yml"]);
    path.says("the program has a lab 'campus': leave out");
    let copy = run_in(&here, &["labs", "--copy", "campos"]);
    copy.says("did you mean 'campus'?");
    let markup = run_in(&here, &["run", "\u{1b}[31mx"]);
    assert!(!markup.err.contains('\u{1b}'), "{}", markup.err);
}

#[test]
fn labs_are_listed_with_a_line_each() {
    let here = empty("listed");
    let list = good(&here, &["labs", "-o", "json"]).out;
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    assert_eq!(list["schema"], "aerostat.labs.v1");
    let rows = list["rows"].as_array().unwrap();
    assert!(rows.len() > 50, "{}", rows.len());
    for row in rows {
        let description = row["description"].as_str();
        assert!(description.is_some_and(|text| text.len() > 10), "{row}");
    }
    let table = good(&here, &["labs"]).out;
    let campus = table.lines().find(|line| line.starts_with("campus "));
    let first = "Four host ELANs and one for routing only";
    assert!(campus.is_some_and(|line| line.ends_with(first)), "{table}");
    assert!(
        table.contains("campus  ") && table.contains("host/worker"),
        "{table}"
    );
    assert!(
        table.lines().all(|line| line.chars().count() <= 80),
        "{table}"
    );
}

#[test]
fn a_copy_replaces_nothing_without_force() {
    let here = empty("copies");
    let first = good(&here, &["labs", "--copy", "host/worker"]);
    assert_eq!(first.err, "wrote worker.atm.yml\n");
    let copy = here.join("worker.atm.yml");
    let text = fs::read_to_string(&copy).unwrap();
    let root = aerostat_testing::command::root();
    assert_eq!(
        text,
        fs::read_to_string(root.join("labs/host/worker.atm.yml")).unwrap()
    );
    fs::write(&copy, "mine").unwrap();
    let second = run_in(&here, &["labs", "--copy", "host/worker"]);
    second.ends(1, "worker.atm.yml is there already");
    assert_eq!(fs::read_to_string(&copy).unwrap(), "mine");
    good(&here, &["labs", "--copy", "host/worker", "--force"]);
    assert_eq!(fs::read_to_string(&copy).unwrap(), text);
    fs::create_dir(here.join("more")).unwrap();
    let into = good(&here, &["labs", "--copy", "campus", "more"]);
    assert_eq!(into.err, "wrote more/campus.atm.yml\n");
    let named = good(&here, &["labs", "--copy", "campus", "more/mine.atm.yml"]);
    assert_eq!(named.err, "wrote more/mine.atm.yml\n");
    // A link may lead anywhere: it is there already.
    std::os::unix::fs::symlink("/nowhere", here.join("campus.atm.yml")).unwrap();
    assert_eq!(run_in(&here, &["labs", "--copy", "campus"]).code, 1);
    let out = good(&here, &["labs", "--copy", "campus", "-"]).out;
    assert!(out.contains("name: campus"), "{out}");
    assert_eq!(
        run_in(&here, &["labs", "--copy", "campus", "missing/x"]).code,
        1
    );
    assert_eq!(run_in(&here, &["labs", "somewhere"]).code, 2);
}

#[test]
fn exercises_are_listed_and_copied_without_answers() {
    let here = empty("exercises");
    let list = good(&here, &["labs", "--exercises", "-o", "json"]).out;
    let list: serde_json::Value = serde_json::from_str(&list).unwrap();
    assert_eq!(list["schema"], "aerostat.exercises.v1");
    assert_eq!(list["rows"].as_array().map(Vec::len), Some(36));
    let table = good(&here, &["labs", "--exercises"]).out;
    assert!(table.lines().all(|line| line.chars().count() <= 80));
    // One by name, those of a chapter, and all.
    let one = good(&here, &["labs", "--exercises", "--copy", "mesh"]);
    assert_eq!(one.err, "wrote mesh: predict the number\n");
    let again = run_in(&here, &["labs", "--exercises", "--copy", "6"]);
    again.ends(1, "mesh is there already");
    assert!(!here.join("classical-ip").exists(), "nothing is written");
    good(&here, &["labs", "--exercises", "--copy", "6", "--force"]);
    assert!(here.join("classical-ip/checks.yml").is_file());
    good(&here, &["labs", "--exercises", "--copy", "all", "tasks"]);
    let folders = fs::read_dir(here.join("tasks")).unwrap().flatten();
    let mut files = 0;
    for folder in folders {
        for file in fs::read_dir(folder.path()).unwrap().flatten() {
            let name = file.file_name().into_string().unwrap();
            assert!(["README.md", "checks.yml", "task.atm.yml"].contains(&&*name));
            files += 1;
        }
    }
    assert_eq!(files, 36 + 24 + 24);
    // The check has the number, which no file has.
    assert!(!here.join("mesh/checks.yml").exists());
    let task = run_in(&here, &["check", "mesh/task.atm.yml", "--checks", "mesh"]);
    assert_eq!(task.code, 1, "{}", task.err);
    task.shows("0 of 3 points");
    let answer = ["--set", "answers.connections=10"];
    let right = ["check", "mesh/task.atm.yml", "--checks", "mesh"];
    good(&here, &[&right[..], &answer[..]].concat());
    let unknown = run_in(&here, &["labs", "--exercises", "--copy", "nix"]);
    assert_eq!(unknown.code, 2);
}
