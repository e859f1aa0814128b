//! The results of all labs against the published schema, and the accounts of their connections.

use super::{root, run};
use aerostat_testing::schema::{balance, violations};
use serde_json::Value;
use std::collections::BTreeSet;

/// Labs run for a short time here: their start, which is the fast part, produces every table.
#[test]
fn the_results_of_every_lab_are_as_the_published_schema_says_and_their_books_balance() {
    let schema = std::fs::read_to_string(root().join("docs/results.schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    assert_eq!(run(&["run", "--schema"]).out, format!("{schema:#}\n"));
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let labs = std::fs::read_dir(root().join("labs")).unwrap();
    let labs = labs.map(|entry| format!("labs/{}", entry.unwrap().file_name().to_string_lossy()));
    let labs = labs.filter(|lab| lab.ends_with(".atm.yml"));
    // No lab has a client with selected groups.
    let groups = "hosts.urku.lec={groups: [239.1.1.1]}";
    let more = ("labs/two-hosts.atm.yml".to_owned(), vec!["--set", groups]);
    for (lab, set) in labs.map(|lab| (lab, Vec::new())).chain([more]) {
        let args = ["run", &lab, "-q", "-o", "json", "--until", "2200ms"];
        let ran = run(&[&args[..], &set].concat());
        let document: Value = serde_json::from_str(&ran.out)
            .unwrap_or_else(|error| panic!("{lab}: {error}\n{}", ran.err));
        let mut found = Vec::new();
        violations(&schema, &document, "", &mut found);
        assert!(
            found.is_empty(),
            "{lab}: what is new belongs into crates/lab/src/results\n{}",
            found[..found.len().min(20)].join("\n")
        );
        balance(&lab, &document);
        for (node, kinds) in document["nodes"].as_object().unwrap() {
            for (kind, tables) in kinds.as_object().unwrap_or_else(|| panic!("{node}")) {
                seen.extend(
                    tables
                        .as_object()
                        .unwrap()
                        .keys()
                        .map(|title| format!("{kind}.{title}")),
                );
            }
        }
    }
    // Programs of the machine exist in real time only.
    seen.extend(["open", "resolving", "counters"].map(|title| format!("sockets.{title}")));
    // And conversely: the schema contains nothing that no lab has.
    let kinds = &schema["properties"]["nodes"]["additionalProperties"]["properties"];
    for (kind, tables) in kinds.as_object().unwrap() {
        for title in tables["properties"].as_object().unwrap().keys() {
            assert!(
                seen.contains(&format!("{kind}.{title}")),
                "no lab has {kind}.{title}"
            );
        }
    }
}

/// One table per file: a line of names, the same number of fields in every line, and the values of JSON, not rounded.
#[test]
fn csv_has_one_table_per_file_with_all_columns_and_all_digits() {
    let dir = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("results-csv");
    let _ = std::fs::remove_dir_all(&dir);
    let (lab, out) = ("labs/sockets.atm.yml", dir.to_str().unwrap());
    let ran = run(&["run", lab, "-q", "-o", "csv", "--out", out]);
    assert_eq!((ran.code, ran.out.as_str()), (0, ""), "{}", ran.err);
    let json = run(&["run", lab, "-q", "-o", "json"]);
    let document: Value = serde_json::from_str(&json.out).unwrap();
    let programs = document["nodes"]["urku"]["sockets"]["programs"].as_array();
    let mut programs = programs.expect("programs").iter();
    let writer = programs.find(|row| row["name"] == "writer").expect("it");
    assert_eq!(writer["does"], "write", "it has no 'listen:'");
    for name in ["flows", "vcs", "losses", "queues", "links", "sockets.calls"] {
        let text = std::fs::read_to_string(dir.join(format!("{name}.csv"))).unwrap();
        let mut lines = text.lines();
        let fields = lines.next().expect("names").split(',').count();
        assert!(
            lines.all(|line| line.split(',').count() == fields),
            "{name}:\n{text}"
        );
        let one = run(&["run", lab, "-q", "-o", "csv", "--table", name]);
        assert_eq!(one.out, text, "--table {name}");
    }
    let vcs = std::fs::read_to_string(dir.join("vcs.csv")).unwrap();
    let names: Vec<&str> = vcs.lines().next().unwrap().split(',').collect();
    let column = names
        .iter()
        .position(|name| *name == "ctd_us_mean")
        .expect("ctd_us_mean");
    let rows = document["vcs"].as_array().unwrap();
    for (line, row) in vcs.lines().skip(1).zip(rows) {
        let field = line.split(',').nth(column).unwrap();
        let wanted = &row["ctd_us"]["mean"];
        let wanted = if wanted.is_null() {
            String::new()
        } else {
            wanted.to_string()
        };
        assert_eq!(field, wanted);
    }
    assert_eq!(vcs.lines().count(), rows.len() + 1);
    let links = std::fs::read_to_string(dir.join("links.csv")).unwrap();
    let line = links.lines().nth(1).expect("a link");
    let utilisation = line.rsplit(',').next().unwrap();
    assert!(utilisation.len() > 12, "{utilisation} looks rounded");
    let head: Value =
        serde_json::from_str(&std::fs::read_to_string(dir.join("run.json")).unwrap()).unwrap();
    assert_eq!(head["lab_sha256"], document["lab_sha256"]);
}

#[test]
fn results_say_what_they_are_of() {
    let document = |more: &[&str]| -> Value {
        let mut args = vec![
            "run",
            "labs/two-hosts.atm.yml",
            "-q",
            "-o",
            "json",
            "--until",
            "100ms",
        ];
        args.extend(more);
        run(&args).json()
    };
    let (plain, changed) = (
        document(&[]),
        document(&["--set", "hosts.urku.link={rate: ds3}"]),
    );
    assert_eq!(plain["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(plain["overrides"], serde_json::json!(["until=100ms"]));
    assert_ne!(plain["lab_sha256"], changed["lab_sha256"]);
    assert_eq!(plain["settings"]["links"]["urku-s1"]["delay_s"], 5e-6);
    assert_eq!(
        changed["settings"]["links"]["urku-s1"]["rate_cps"],
        96_000.0
    );
    // Defaults are effective parameters, too.
    assert_eq!(
        plain["settings"]["nodes"]["urku"]["tcp"]["congestion"],
        "cubic"
    );
}

#[test]
fn a_table_that_results_do_not_have_is_refused_with_those_that_they_have() {
    let ran = run(&["run", "labs/two-hosts.atm.yml", "--table", "vc"]);
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    assert!(
        ran.err.contains("no table 'vc'") && ran.err.contains("vcs"),
        "{}",
        ran.err
    );
    let ran = run(&["run", "labs/two-hosts.atm.yml", "--out", "x"]);
    ran.ends(2, "-o csv");
}
