//! The labs of the repository, broken labs with their messages, and the schema.
//!
//! `UPDATE_EXPECTED=1 cargo test -p aerostat-lab --test it` rewrites the expected files.

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn labs_in(dir: &Path) -> Vec<PathBuf> {
    let mut labs: Vec<PathBuf> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().ends_with(".atm.yml"))
        .collect();
    labs.sort();
    assert!(!labs.is_empty(), "no labs in {}", dir.display());
    labs
}

/// Compares `text` with a file, or writes the file if asked to.
fn expect(file: &Path, text: &str) {
    if std::env::var_os("UPDATE_EXPECTED").is_some() {
        std::fs::write(file, text).unwrap();
    }
    let expected = std::fs::read_to_string(file).unwrap_or_default();
    assert!(
        text == expected,
        "{} differs; run with UPDATE_EXPECTED=1 and look at the difference\n--- is\n{text}--- should be\n{expected}",
        file.display()
    );
}

#[test]
fn every_lab_is_good() {
    for path in labs_in(&root().join("labs")) {
        let checked = aerostat_lab::read(&path, &[]).unwrap_or_else(|e| panic!("{e}"));
        let warnings = checked.warnings.to_string();
        assert!(warnings.is_empty(), "{warnings}");
        let file = path.file_name().unwrap().to_string_lossy().into_owned();
        assert_eq!(format!("{}.atm.yml", checked.lab.name), file);
        assert!(
            checked.lab.description.is_some(),
            "{file} says what it shows"
        );
    }
}

#[test]
fn every_broken_lab_says_why() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/broken");
    for path in labs_in(&dir) {
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let said = aerostat_lab::parse(&name, &text, &[]).expect_err(&name);
        expect(&path.with_extension("txt"), &said.to_string());
    }
}

#[test]
fn the_published_schema_is_current() {
    let text = serde_json::to_string_pretty(&aerostat_lab::schema()).unwrap() + "\n";
    expect(&root().join("docs/lab.schema.json"), &text);
}

#[test]
fn the_campus_gets_its_addresses() {
    let path = root().join("labs/campus.atm.yml");
    let lab = aerostat_lab::read(&path, &[]).unwrap().lab;
    let names: Vec<&str> = lab.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(
        names.join(" "),
        "ls1010 asx200 asx1000 lane asn9000 c4700 urku jaarli sello basso"
    );
    let (_, _, sello) = lab.hosts().nth(2).unwrap();
    assert_eq!(
        sello.lec().address.to_string(),
        "47.0091.81.000000.02a7.0000.0300.02a703000300.00"
    );
    let mpc = sello.mpoa.as_ref().unwrap();
    assert!(mpc.tag && mpc.params.flow_frames == 10 && mpc.start.as_secs() == 6);
    assert!(mpc.control.same_end_system(&sello.lec().address));
    assert_eq!(sello.routes[0].via.to_string(), "10.3.0.1");
    let mut macs: Vec<_> = lab
        .nodes
        .iter()
        .flat_map(|n| n.lecs())
        .map(|lec| lec.mac)
        .collect();
    macs.sort();
    macs.dedup();
    assert_eq!(macs.len(), 3 + 3 + 4);
    assert_eq!(lab.end().as_secs(), 14);
    // A block of parameters does not turn MPOA on again.
    let off = aerostat_lab::read(&path, &["mpoa=false".into()])
        .unwrap()
        .lab;
    assert!(off.hosts().all(|(_, _, host)| host.mpoa.is_none()));
    assert!(off.routers().all(|(_, _, router)| router.mpoa.is_none()));
}

#[test]
fn no_slip_of_the_fingers_panics() {
    let text = std::fs::read_to_string(root().join("labs/two-hosts.atm.yml")).unwrap();
    let mut bad = 0;
    for (at, c) in text
        .char_indices()
        .skip_while(|(at, _)| *at < text.find("switches").unwrap())
    {
        for replacement in ["", "9", "{", ": ", "é"] {
            let mut mangled = text.clone();
            mangled.replace_range(at..at + c.len_utf8(), replacement);
            if let Err(said) = aerostat_lab::parse("x.atm.yml", &mangled, &[]) {
                assert!(!said.to_string().is_empty());
                bad += 1;
            }
        }
    }
    assert!(bad > 500, "only {bad} mistakes were found");
}

#[test]
fn the_documented_example_is_good_and_complete() {
    let page = std::fs::read_to_string(root().join("docs/lab-file.md")).unwrap();
    let (_, rest) = page.split_once("```yaml\n").unwrap();
    let (text, _) = rest.split_once("```").unwrap();
    let checked = aerostat_lab::parse("x.atm.yml", text, &[]).unwrap_or_else(|d| panic!("{d}"));
    assert_eq!(checked.warnings.to_string(), "");
    // Every key of the schema is shown, here or in the tables of parameters.
    let schema = aerostat_lab::schema();
    let sections = schema["$defs"]
        .as_object()
        .unwrap()
        .values()
        .chain([&schema]);
    for key in sections
        .filter_map(|s| s["properties"].as_object())
        .flat_map(|p| p.keys())
    {
        let shown = text.contains(&format!("{key}:")) || page.contains(&format!("\n| `{key}` | "));
        assert!(shown, "'{key}' is not documented");
    }
}

#[test]
fn the_page_of_lab_files_has_the_limits_of_a_lane_client() {
    let page = std::fs::read_to_string(root().join("docs/lab-file.md")).unwrap();
    let aerostat_proto::lane::LecLimits {
        cache,
        servers,
        queue,
        vccs,
        groups,
    } = aerostat_proto::lane::LecLimits::default();
    for (limit, number) in [
        (
            "destinations, and entries of the LE_ARP cache",
            format!("{cache}; "),
        ),
        (
            "MPOA servers whose announcements are kept",
            servers.to_string(),
        ),
        ("frames that wait for one destination", queue.to_string()),
        ("data direct connections", format!("{vccs}; ")),
        ("`groups:`", groups.to_string()),
    ] {
        let mut lines = page.lines();
        let line = lines.find(|line| line.starts_with(&format!("| {limit}")));
        let line = line.unwrap_or_else(|| panic!("{limit} has no line"));
        let shown = line.split('|').nth(2).unwrap().trim();
        assert!(shown.starts_with(&number), "{limit}: {shown}, not {number}");
    }
}

#[test]
fn a_number_where_a_section_belongs_is_called_a_number() {
    let text = "switches: { s1: {} }\nhosts: 1.5\ntraffic: [7, -3e2, seven, 1.2.3]\n";
    let said = aerostat_lab::parse("t", text, &[])
        .expect_err("mistakes")
        .to_string();
    assert_eq!(said.matches("not a number").count(), 3, "{said}");
    assert_eq!(said.matches("not a text").count(), 2, "{said}");
}
