//! `aerostat check`: verdicts, reports, exit codes, and classes with bad files.

use crate::{ok, run};
use aerostat_testing::command::scratch;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

const LAB: &str = "switches: { s1: {} }
lane: { on: s1, elans: { a: { subnet: 10.1.0.0/24 } } }
hosts:
  anna: { on: s1, elan: a, ip: 10.1.0.10 }
  bert: { on: s1, elan: a, ip: 10.1.0.20 }
";
const CHECKS: &str = "until: 3s
checks:
  - { stage: parts, count: switches, is: 1, points: 2, pass: 'one <switch>', fail: 'another \"number\" of switches' }
  - { stage: reach, reach: anna -> bert within 2s, fail: anna does not reach bert }
";

/// An empty directory.
fn fresh(name: &str) -> PathBuf {
    let directory = scratch().join(name);
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap();
    directory
}

/// Writes files into a directory.
fn write(directory: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let file = directory.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
}

#[test]
fn verdicts_have_their_exit_codes_and_forms() {
    let directory = fresh("check");
    let lab = directory.join("x.atm.yml");
    let checks = directory.join("c.yml");
    let (lab, checks) = (lab.to_str().unwrap(), checks.to_str().unwrap());
    write(&directory, &[("x.atm.yml", LAB), ("c.yml", CHECKS)]);
    let ran = ok(&["check", lab, "--checks", checks]);
    assert!(ran.ends_with("3 of 3 points: 2 passed\n"), "{}", ran);

    let broken = LAB.replace(
        "10.1.0.10 }",
        "10.1.0.10, neighbours: { 10.1.0.20: '02:a7:00:00:00:99' } }",
    );
    write(&directory, &[("x.atm.yml", &broken)]);
    let form = |form: &str| run(&["check", lab, "--checks", checks, "-o", form]);
    let json = form("json");
    assert_eq!(json.code, 1, "{}", json.err);
    let json: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(
        (&json["verdict"], &json["points"], &json["of"]),
        (&"fail".into(), &2.into(), &3.into())
    );
    assert_eq!(json["checks"][1]["text"], "anna does not reach bert");
    assert!(json["checks"][1].get("details").is_none());
    let told = run(&["check", lab, "--checks", checks, "--details"]);
    told.shows("anna does not reach bert (found 0 answers, wanted >=1)");
    let tap = form("tap").out;
    assert!(
        tap.starts_with("TAP version 14\n1..2\nok 1 - count switches 1\n"),
        "{tap}"
    );
    assert!(
        tap.contains("\nnot ok 2 - reach anna -> bert within 2s\n"),
        "{tap}"
    );
    let junit = form("junit").out;
    assert!(junit.contains("tests=\"2\" failures=\"1\""), "{junit}");
    assert!(
        junit.contains("<system-out>one &lt;switch&gt;</system-out>"),
        "{junit}"
    );
    assert!(
        junit.contains("<failure message=\"anna does not reach bert\"/>"),
        "{junit}"
    );
    let csv = form("csv").out;
    assert_eq!(csv.lines().count(), 3, "{csv}");

    // A command cannot be judged here; a warning alone is a warning; mistakes and no checks are wrong usage.
    for (own, code) in [
        ("checks: [{ run: ls, in: anna }]\n", 6),
        (
            "checks: [{ run: ls, in: anna }, { count: hosts, is: 9 }]\n",
            1,
        ),
        ("checks: [{ count: hosts, is: 9, level: warning }]\n", 3),
        ("checks: [{ count: cows }]\n", 2),
        // A switch sends no echo requests, and gives no points for that.
        ("checks: [{ reach: anna -> s1, is: 0 }]\n", 6),
        ("checks: [{ reach: anna -> zoe, is: 0 }]\n", 1),
        ("", 2),
    ] {
        write(&directory, &[("x.atm.yml", &format!("{LAB}{own}"))]);
        assert_eq!(run(&["check", lab]).code, code, "{own}");
    }
    for option in [&["--time", "1s"], &["--jobs", "2"]] {
        let ran = run(&[&["check", lab][..], option].concat());
        ran.ends(2, "is for --all");
    }
}

#[test]
fn a_class_has_a_row_for_each_student_whatever_the_others_send() {
    let directory = fresh("class");
    let own = format!("{LAB}checks: [{{ count: hosts, is: 2 }}]\n");
    // A host is missing, and the student's checks want no more.
    let cheat = own
        .replace("  bert: { on: s1, elan: a, ip: 10.1.0.20 }\n", "")
        .replace("is: 2", "is: 1");
    let endless = "switches: { s1: {} }
lane: { on: s1, elans: { a: { subnet: 10.1.0.0/24 } } }
hosts:
  anna: { on: s1, elan: a, ip: 10.1.0.10, sockets: [{ vc: 0.200, pdus: 900000000, size: 40, rate: line }] }
  bert: { on: s1, elan: a, ip: 10.1.0.20, sockets: [{ vc: 0.200, listen: sink }] }
pvcs: [{ from: anna, vc: 0.200, to: bert, to_vc: 0.200 }]
until: 100h
";
    let spy =
        format!("{LAB}clip: {{ c: {{ subnet: 10.9.0.0/24, next_hops: file /etc/passwd }} }}\n");
    write(
        &directory,
        &[
            ("c.yml", CHECKS),
            (
                "class/Anna Muster_1234_assignsubmission_file/x.atm.yml",
                &own,
            ),
            ("class/cheat/x.yml", &cheat),
            ("class/=2+3/x.yml", ": ["),
            ("class/spy/x.yml", &spy),
            ("class/two/x.yml", LAB),
            ("class/two/y.yml", LAB),
            ("class/alone.atm.yml", LAB),
        ],
    );
    fs::create_dir_all(directory.join("class/none")).unwrap();
    fs::create_dir_all(directory.join("class/linked")).unwrap();
    std::os::unix::fs::symlink(
        directory.join("class/alone.atm.yml"),
        directory.join("class/linked/x.yml"),
    )
    .unwrap();
    std::os::unix::fs::symlink(&directory, directory.join("class/abroad")).unwrap();
    let (class, checks) = (directory.join("class"), directory.join("c.yml"));
    let (class, checks) = (class.to_str().unwrap(), checks.to_str().unwrap());
    let ran = run(&[
        "check", "--all", class, "--checks", checks, "-o", "json", "--time", "120s",
    ]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    let json: Value = serde_json::from_str(&ran.out).unwrap();
    let rows = json["rows"].as_array().unwrap();
    let of = |student: &str| {
        let row = rows.iter().find(|row| row["student"] == student);
        let row = row.unwrap_or_else(|| panic!("{student}: {}", ran.out));
        (
            row["verdict"].as_str().unwrap().to_owned(),
            row["points"].as_u64().unwrap(),
            row,
        )
    };
    let (verdict, points, row) = of("Anna Muster_1234_assignsubmission_file");
    assert_eq!((&*verdict, points), ("pass", 3));
    assert_eq!(row["identifier"], "Participant 1234");
    assert_eq!(of("alone").0, "pass");
    let (verdict, points, row) = of("cheat");
    assert_eq!((&*verdict, points), ("fail", 2));
    assert!(
        row["feedback"]
            .as_str()
            .unwrap()
            .contains("anna does not reach bert")
    );
    let (verdict, _, row) = of("'=2+3");
    assert_eq!(verdict, "broken");
    let feedback = row["feedback"].as_str().unwrap();
    assert!(feedback.contains(".yml:1:"), "{feedback}");
    assert_eq!(of("none").0, "no lab");
    assert_eq!(of("two").0, "no lab");
    assert!(
        of("linked").2["feedback"]
            .as_str()
            .unwrap()
            .contains("links are not followed")
    );
    assert!(
        of("abroad").2["feedback"]
            .as_str()
            .unwrap()
            .contains("the directory is a link")
    );
    let (verdict, _, row) = of("spy");
    assert_eq!(verdict, "broken");
    assert!(
        row["feedback"].as_str().unwrap().contains("open files"),
        "{row}"
    );
    assert!(rows.iter().all(|row| row["of"] == 3), "{}", ran.out);

    // An endless lab is ended by the clock, and another one has its mark.
    write(
        &directory,
        &[
            ("more/endless/x.yml", endless),
            ("more/good/x.yml", LAB),
            ("e.yml", "[{ table: flows }, { count: hosts, is: 2 }]"),
        ],
    );
    let (more, checks) = (directory.join("more"), directory.join("e.yml"));
    let (more, checks) = (more.to_str().unwrap(), checks.to_str().unwrap());
    let ran = run(&[
        "check", "--all", more, "--checks", checks, "-o", "csv", "--time", "3s",
    ]);
    ran.shows("\nendless,,time,0,2,0");
    ran.shows("\ngood,,");
    let ran = run(&[
        "check", "--all", more, "--checks", checks, "-o", "csv", "--memory", "20MiB",
    ]);
    // A lab that needs less has its mark.
    let died = ["\nendless,,memory,", "\nendless,,broken,"];
    assert!(
        died.iter().any(|row| ran.out.contains(row)),
        "{}{}",
        ran.out,
        ran.err
    );
}

/// Mistakes in checks have their file, line and column, for a lab as for a class.
#[test]
fn mistakes_in_checks_read_the_same_for_a_lab_and_for_a_class() {
    let directory = fresh("check-mistakes");
    write(
        &directory,
        &[
            ("x.atm.yml", LAB),
            ("c.yml", "checks:\n  - { count: cows }\n"),
        ],
    );
    let path = |name: &str| directory.join(name).to_str().unwrap().to_owned();
    let (lab, checks, class) = (path("x.atm.yml"), path("c.yml"), path(""));
    let one = run(&["check", &lab, "--checks", &checks]);
    let all = run(&["check", "--all", &class, "--checks", &checks]);
    assert_eq!((one.code, all.code), (2, 2));
    one.says("c.yml:2:14: error: 'cows'");
    assert_eq!(one.err, all.err);
}

/// Moodle's import wants one line of names, as many fields in each line, whole numbers as points, and directories named
/// by an identifier of the student. Exercises of the program are checks by name, and may lie beside the lab.
#[test]
fn a_gradebook_can_read_the_rows_of_a_class() {
    let directory = fresh("gradebook");
    let wrong = "# \"Zürich\", =1+1\nswitches: { s1: {} }\nhosts: { x: { on: s9 } }\n";
    write(
        &directory,
        &[
            ("anna@example.org/mine.atm.yml", LAB),
            ("anna@example.org/checks.yml", CHECKS),
            ("00471100/mine.yml", wrong),
            ("müller/mine.yml", LAB),
        ],
    );
    let class = directory.to_str().unwrap();
    let ran = run(&["check", "--all", class, "--checks", "padding", "-o", "csv"]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    let mut reader = csv::ReaderBuilder::new().from_reader(ran.out.as_bytes());
    let names = reader.headers().unwrap().clone();
    let of = |name: &str| names.iter().position(|one| one == name).expect("a column");
    let (student, points, most, feedback) = (of("student"), of("points"), of("of"), of("feedback"));
    // The reader refuses lines of other lengths.
    let rows: Vec<csv::StringRecord> = reader.records().map(|row| row.unwrap()).collect();
    let students: Vec<&str> = rows.iter().map(|row| &row[student]).collect();
    assert_eq!(students, ["00471100", "anna@example.org", "müller"]);
    for row in &rows {
        let (got, of): (u64, u64) = (row[points].parse().unwrap(), row[most].parse().unwrap());
        assert!(got < of, "{row:?}");
        assert!(
            !row[feedback].is_empty() && !row[feedback].contains('\n'),
            "{row:?}"
        );
    }
    let missing = run(&["check", "--all", class, "--checks", "no-such", "-o", "csv"]);
    missing.ends(2, "aerostat labs --exercises");
}
