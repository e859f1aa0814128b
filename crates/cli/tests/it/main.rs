//! The command from the users' point of view: its outputs and exit codes.

mod atp;
mod books;
mod chapters;
mod check;
mod contracts;
mod drawings;
mod explain;
mod follow;
mod limits;
mod locale;
mod overhead;
mod questions;
mod queues;
mod recordings;
mod releases;
mod reproduce;
mod results;
mod running;
mod schema;
mod several;
mod shaping;
mod shipped;
mod site;
mod stream;
mod sweep;
mod verify;
mod wireshark;
mod words;

use aerostat_testing::command::{Ran, command, json, lab_file, ok, piped, rest_of, root, run};
use std::path::PathBuf;

#[test]
fn virtual_time_ends_at_the_edge_of_the_lab() {
    let lab = "interop/labs/outside.atm.yml";
    assert_eq!(run(&["validate", lab]).code, 0);
    let refused = run(&["run", lab]);
    assert_eq!((refused.code, refused.out.as_str()), (2, ""));
    refused.says("linux is outside the lab");
    refused.says("hint: 'aerostat up'");
}

#[test]
fn help_tells_the_exit_codes_and_every_subcommand_has_help() {
    let help = run(&["--help"]);
    assert_eq!(help.code, 0);
    for line in [
        "4  no such lab is running",
        "5  missing privilege",
        "NO_COLOR",
    ] {
        help.shows(line);
    }
    for sub in [
        "run",
        "follow",
        "labs",
        "up",
        "host",
        "down",
        "ls",
        "inspect",
        "pvc",
        "atmarp",
        "atmaddr",
        "atmdiag",
        "qos",
        "capture",
        "trace",
        "events",
        "validate",
        "exec",
        "shell",
        "doctor",
        "completion",
        "man",
        "graph",
        "overhead",
        "explain",
    ] {
        assert!(help.out.contains(&format!("\n  {sub} ")), "{sub}");
        let help = ok(&[sub, "--help"]);
        assert!(help.contains("Examples:\n  aerostat "), "{sub}");
        assert!(!help.contains('\x1b'), "colours in a pipe");
    }
}

#[test]
fn wrong_usage_is_2() {
    assert_eq!(run(&[]).code, 2);
    assert_eq!(run(&["fly"]).code, 2);
    assert_eq!(run(&["inspect", "--fly"]).code, 2);
    assert_eq!(run(&["trace", "--no-follow", "--data"]).code, 2);
    assert_eq!(run(&["down", "--all", "campus"]).code, 2);
    let missing = run(&["validate", "labs/nowhere.atm.yml"]);
    missing.ends(2, "labs/nowhere.atm.yml");
    assert!(missing.out.is_empty());
    let lab = ["rfc2544", "labs/rfc2544.atm.yml"];
    let unknown = run(&[&lab[..], &["--traffic", "nope"]].concat());
    assert_eq!(unknown.code, 2);
    let says = "the lab has no traffic 'nope' of kind load\n  hint: of kind load: switch, router";
    unknown.says(says);
    let short = run(&[&lab[..], &["--traffic", "switch", "--frames", "63"]].concat());
    assert_ne!(short.code, 0);
    short.says("--frames");
    for wrong in [["--mtu", "4"], ["--loss", "1.5"], ["--octets", "0"]] {
        let refused = run(&["atptest", wrong[0], wrong[1]]);
        refused.ends(2, wrong[0]);
    }
}

#[test]
fn atptest_has_its_values_beside_those_of_the_report() {
    let found = run(&[
        "atptest",
        "--test",
        "throughput,latency",
        "--octets",
        "1048576,9000",
        "-o",
        "json",
        "-q",
    ]);
    assert_eq!((found.code, &*found.err), (0, ""));
    let all: serde_json::Value = serde_json::from_str(&found.out).unwrap();
    assert_eq!(all["schema"], "aerostat.atptest.v1");
    let rows = all["rows"].as_array().unwrap();
    let of = |row: usize, names: [&str; 5]| names.map(|name| rows[row][name].clone());
    let names = ["test", "octets", "report_min", "report_max", "correct"];
    assert_eq!(
        of(0, names),
        [
            serde_json::json!("throughput"),
            serde_json::json!(1_048_576),
            serde_json::json!(73.05),
            serde_json::json!(76.103),
            serde_json::json!(true)
        ]
    );
    assert_eq!(
        of(3, names),
        [
            serde_json::json!("latency"),
            serde_json::json!(9000),
            serde_json::json!(2270.0),
            serde_json::json!(2350.0),
            serde_json::json!(true)
        ]
    );
    assert!((rows[0]["mbps"].as_f64().unwrap() - 135.04).abs() < 0.01);
    assert!(rows[1]["report_min"].is_null() && rows[0]["latency_us"].is_null());
}

#[test]
fn every_lab_of_the_repository_validates() {
    for folder in ["labs", "labs/host", "labs/papers"] {
        for entry in std::fs::read_dir(root().join(folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if !name.ends_with(".atm.yml") {
                continue;
            }
            let ran = run(&["validate", &format!("{folder}/{name}")]);
            // Rows of `reproduce` start the flows that they need; the others are for after the end of the lab.
            let mut warnings = ran.err.lines().filter(|line| line.contains(": warning: "));
            let is_for_rows = |line: &str| line.ends_with("this flow starts when the run is over");
            if folder == "labs/papers" && ran.code == 3 && warnings.all(is_for_rows) {
                continue;
            }
            assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{name}");
        }
    }
    let ran = run(&["validate", "labs/campus.atm.yml"]);
    assert_eq!(
        ran.out,
        "campus: 3 switches, 5 ELANs, 2 routers, 4 hosts, 4 flows\n"
    );
}

#[test]
fn broken_labs_say_why_and_end_with_2() {
    let dir = root().join("crates/lab/tests/broken");
    let mut count = 0;
    for entry in std::fs::read_dir(&dir).unwrap() {
        let path = entry.unwrap().path();
        let Some(name) = path.to_str().filter(|path| path.ends_with(".atm.yml")) else {
            continue;
        };
        count += 1;
        let ran = run(&["validate", name]);
        assert_eq!(ran.code, 2, "{name}");
        assert!(ran.out.is_empty(), "{name}: talk on standard output");
        let expected = std::fs::read_to_string(path.with_extension("txt")).unwrap();
        let short = path.file_name().unwrap().to_str().unwrap();
        let said = ran.err.replace(name, short);
        let (findings, last) = said.split_at(expected.len());
        assert_eq!(findings, expected);
        assert!(last.starts_with(&format!("error: {short}: ")), "{last}");
        // All commands that read the file refuse it.
        assert_eq!(run(&["run", name]).code, 2);
        assert_eq!(run(&["graph", name]).code, 2);
    }
    assert!(count >= 6);
}

#[test]
fn findings_as_json_and_csv() {
    let path = "crates/lab/tests/broken/references.atm.yml";
    let ran = run(&["validate", path, "-o", "json"]);
    assert_eq!(ran.code, 2);
    let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(json["schema"], "aerostat.validate.v1");
    assert_eq!(json["rows"][0]["line"], 3);
    assert_eq!(json["rows"][0]["hint"], "did you mean 'asx200'?");
    let csv = run(&["validate", path, "-o", "csv"]).out;
    assert!(csv.starts_with("severity,source,line,column,message,hint\nerror,"));
    let jsonl = run(&["validate", path, "-o", "jsonl"]).out;
    assert!(jsonl.lines().count() > 3);
    for line in jsonl.lines() {
        let _: serde_json::Value = serde_json::from_str(line).unwrap();
    }
}

#[test]
fn warnings_alone_are_3() {
    let text = std::fs::read_to_string(root().join("labs/two-hosts.atm.yml")).unwrap();
    let path = lab_file("warning.atm.yml", &format!("{text}until: 1s\n"));
    let ran = run(&["validate", &path]);
    ran.ends(3, "this flow starts when the run is over");
    assert!(ran.out.starts_with("two-hosts: "));
}

#[test]
fn runs_with_warnings_end_with_3_as_validate_does() {
    let text = std::fs::read_to_string(root().join("labs/two-hosts.atm.yml")).unwrap();
    let early = lab_file("early.atm.yml", &format!("{text}until: 0s\n"));
    for verb in ["validate", "run"] {
        let ran = run(&[verb, &early]);
        ran.ends(3, "the run ends before anything happens");
    }
    let text = text
        .replacen("kernel: false", "", 9)
        .replacen("ip: 10", "kernel: true, ip: 10", 1);
    let kernel = lab_file("kernel.atm.yml", &text);
    assert_eq!(run(&["validate", &kernel]).code, 0);
    let ran = run(&["run", "-q", &kernel, "--until", "10ms"]);
    ran.ends(3, "is no Linux kernel");
    ran.says("'aerostat up' runs it as it is");
}

#[test]
fn what_writes_without_end_is_not_read_without_end() {
    let ran = run(&["validate", "/dev/zero"]);
    assert_eq!(ran.code, 2, "{}", ran.err);
    let says = "more than 4194304 octets: too large for a lab file";
    ran.says(says);
}

#[test]
fn a_lab_whose_name_no_command_could_take_is_refused() {
    let text = std::fs::read_to_string(root().join("labs/two-hosts.atm.yml")).unwrap();
    let text = text.replace("name: two-hosts\n", "");
    for file in ["..atm.yml", &format!("{}.atm.yml", "long".repeat(30))] {
        let ran = run(&["up", "--embedded", &lab_file(file, &text)]);
        ran.ends(2, "a lab's name has");
        ran.says(":2:1: error: the lab is called after its file");
    }
}

#[test]
fn set_is_checked_like_the_file() {
    let lab = "labs/campus.atm.yml";
    assert_eq!(run(&["validate", lab, "--set", "mpoa=false"]).code, 0);
    let ran = run(&["validate", lab, "--set", "routers.c4700.forwarding=fast"]);
    ran.ends(2, "--set routers.c4700.forwarding=fast: error:");
    ran.says("\n   |                          ^^^^\n");
    let ran = run(&["run", lab, "--until", "soon"]);
    ran.ends(2, "--until soon: error:");
}

#[test]
fn the_schema_is_json() {
    let ran = run(&["validate", "--schema"]);
    let schema: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert!(schema["properties"]["hosts"].is_object());
    let published = std::fs::read_to_string(root().join("docs/lab.schema.json")).unwrap();
    assert!(
        ran.out == published,
        "docs/lab.schema.json is not what `aerostat validate --schema` prints"
    );
}

#[test]
fn no_lab_running_is_4() {
    for args in [
        &["down"][..],
        &["down", "--all"],
        &["inspect", "lec"],
        &["atmarp", "-a"],
        &["atmaddr", "-n", "urku"],
        &["atmdiag"],
        &["events"],
        &["trace"],
        &["capture", "-w", "x.pcapng"],
        &["exec", "urku", "--", "true"],
        &["shell", "urku"],
    ] {
        let ran = run(args);
        ran.ends(4, "no lab is running");
        assert!(ran.out.is_empty());
    }
    let ran = run(&["ls"]);
    assert_eq!((ran.code, ran.out.as_str()), (0, ""));
    let json = json(&["ls", "-o", "json"]);
    assert_eq!(json["rows"].as_array().unwrap().len(), 0);
}

#[test]
fn graph_shows_every_node() {
    let text = run(&["graph", "labs/campus.atm.yml"]).out;
    let drawn = |form| run(&["graph", "labs/campus.atm.yml", "-o", form]).out;
    let dot = drawn("dot");
    assert_eq!(
        run(&["graph", "labs/campus.atm.yml", "--format", "dot"]).out,
        dot
    );
    let (mermaid, svg) = (drawn("mermaid"), drawn("svg"));
    for node in [
        "ls1010", "lane", "asn9000", "c4700", "urku", "jaarli", "sello", "basso",
    ] {
        assert!(
            text.contains(node) && dot.contains(&format!("\"{node}\"")),
            "{node}"
        );
        assert!(svg.contains(&format!(">{node}<")), "{node}");
        assert!(mermaid.contains(&format!("\"{node}")), "{node}");
    }
    assert!(text.contains("10.9.0.2 (core)"));
    assert!(dot.starts_with("graph \"campus\" {") && dot.ends_with("}\n"));
    assert_eq!(dot.matches(" -- ").count(), 2 + 7);
    assert_eq!(mermaid.matches(" ---|").count(), 2 + 7);
    assert_eq!(svg.matches("class=\"link\"").count(), 2 + 7);
    assert!(svg.contains(">urku-asx200<") && mermaid.contains("urku-asx200"));
}

#[test]
fn graph_shows_stations_and_permanent_connections_in_every_form() {
    for (lab, texts) in [
        ("labs/bridges.atm.yml", &["anna", "10.1.0.20"][..]),
        ("labs/clip.atm.yml", &["PVC", "0.100", "bulk1"]),
    ] {
        for form in ["text", "svg", "mermaid", "dot"] {
            let ran = ok(&["graph", lab, "-o", form]);
            for text in texts {
                assert!(ran.contains(text), "{lab} {form}: {text}\n{}", ran);
            }
        }
    }
}

#[test]
fn graph_says_what_is_neither_a_file_nor_a_running_lab() {
    let ran = run(&["graph", "labs/nothing.atm.yml"]);
    ran.ends(2, "there is no such file");
    let ran = run(&["graph", "nothing"]);
    assert_eq!(ran.code, 2);
    let said = "there is no file 'nothing', no lab 'nothing' is running, and the program has no lab of this name";
    ran.says(said);
    assert_eq!(run(&["graph"]).code, 4);
}

#[test]
fn completion_and_manual_pages() {
    for shell in ["bash", "zsh", "fish"] {
        let ran = ok(&["completion", shell]);
        assert!(ran.contains("AEROSTAT_COMPLETE"), "{shell}");
    }
    assert!(run(&["man"]).out.contains(".TH aerostat 1"));
    assert!(run(&["man", "inspect"]).out.contains("aerostat-inspect"));
    assert_eq!(run(&["man", "nothing"]).code, 2);
    assert!(run(&["man", "pvc", "add"]).out.contains("aerostat-pvc-add"));
    assert!(run(&["man", "lab"]).out.contains("aerostat-lab 5"));
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("man");
    assert_eq!(run(&["man", "--dir", dir.to_str().unwrap()]).code, 0);
    for page in [
        "aerostat.1",
        "aerostat-run.1",
        "aerostat-pvc-add.1",
        "aerostat-lab.5",
    ] {
        assert!(dir.join(page).exists(), "{page}");
    }
    assert!(!dir.join("aerostat-help.1").exists());
}

#[test]
fn doctor_says_what_is_missing() {
    let ran = run(&["doctor", "-o", "json"]);
    assert!([0, 3, 5].contains(&ran.code));
    let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    let rows = json["rows"].as_array().unwrap();
    assert_eq!(rows[0]["check"], "/dev/net/tun");
    // Without a path only administrators' programs are found; each missing program has its package.
    let poor = command(&["doctor", "-o", "json"])
        .env("PATH", "/nowhere")
        .output()
        .unwrap();
    let json: serde_json::Value = serde_json::from_slice(&poor.stdout).unwrap();
    let row = json["rows"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["check"] == "iperf3")
        .unwrap();
    assert_eq!(
        (&row["state"], &row["advice"]),
        (&"optional".into(), &"apt install iperf3".into())
    );
    assert_ne!(poor.status.code(), Some(0));
}

#[test]
fn a_closed_pipe_is_no_failure() {
    for args in [
        &["completion", "bash"][..],
        &["validate", "--schema"],
        &["man", "run"],
        &["graph", "labs/campus.atm.yml"],
    ] {
        let mut child = piped(command(args));
        drop(child.stdout.take());
        let ran = rest_of(child);
        assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{args:?}");
    }
}
