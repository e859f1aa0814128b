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
    let text = aerostat_lab::schema_text() + "\n";
    expect(&root().join("docs/lab.schema.json"), &text);
}

/// Calls `see` for each object in a schema, with the path to it.
fn objects(value: &serde_json::Value, at: &str, see: &mut impl FnMut(&str, &serde_json::Value)) {
    see(at, value);
    let members = value.as_object().into_iter().flatten();
    let members = members.map(|(key, member)| (key.clone(), member));
    let items = value.as_array().into_iter().flatten().enumerate();
    let items = items.map(|(at, item)| (at.to_string(), item));
    for (key, inner) in members.chain(items) {
        objects(inner, &format!("{at}/{key}"), see);
    }
}

#[test]
fn the_schema_asks_for_no_more_than_the_reader_and_refuses_names_that_it_refuses() {
    let (schema, mut tables) = (aerostat_lab::schema(), 0);
    objects(&schema, "", &mut |at, part| {
        // A word of a list may be null.
        if !at.contains("/enum/") && !at.ends_with("/default") {
            assert!(!part.is_null(), "{at} is no schema");
        }
        let required = part["required"].as_array().into_iter().flatten();
        for key in required.filter_map(serde_json::Value::as_str) {
            // The reader takes a table that is missing for an empty one.
            let kinds = part["properties"][key]["type"].as_array();
            let null = kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind == "null"));
            assert!(!null, "{at}: {key}");
        }
        // Tables whose keys are the names of what stands in them.
        let named = ["hosts", "switches", "routers", "bridge", "rate_queues"];
        if named
            .iter()
            .any(|name| at.ends_with(&format!("/properties/{name}")))
            && part.get("additionalProperties").is_some()
        {
            let pattern = &part["propertyNames"]["pattern"];
            assert_eq!(pattern, "^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$", "{at}");
            tables += 1;
        }
    });
    assert!(tables >= 5, "{tables}");
    // The same names at the reader.
    let lab = |name: &str| format!("switches: {{ {name:?}: {{}} }}\nhosts: {{}}\n");
    for (name, good) in [
        ("a", true),
        ("7-up_x", true),
        (&*"x".repeat(32), true),
        (&*"x".repeat(33), false),
        ("", false),
        ("_a", false),
        ("srl1:/=-[]", false),
        ("ä", false),
    ] {
        let read = aerostat_lab::parse("t", &lab(name), &[]);
        assert_eq!(read.is_ok(), good, "{name}");
    }
}

/// A tool for YAML 1.1 takes the keys `on` for true and writes them so. Texts in quotes it leaves alone.
#[test]
fn a_lab_that_a_tool_for_yaml_1_1_has_written_is_the_same_lab() {
    for path in labs_in(&root().join("labs")) {
        let text = std::fs::read_to_string(&path).unwrap();
        let changed = text
            .replace("{ on: ", "{ true: ")
            .replace(" on: ", " true: ");
        let name = path.to_string_lossy();
        let read = |text: &str| {
            let read = aerostat_lab::parse(&name, text, &[]);
            read.unwrap_or_else(|found| panic!("{found}"))
        };
        let (mut before, mut after) = (read(&text), read(&changed));
        (before.lab.description, after.lab.description) = (None, None);
        assert_eq!(before.lab, after.lab, "{name}");
        let warnings: Vec<_> = after.warnings.iter().map(|found| &found.message).collect();
        let [one] = &warnings[..] else {
            assert_eq!(text, changed, "{name}: {warnings:?}");
            continue;
        };
        assert!(one.starts_with("'true' is read as 'on'"), "{name}: {one}");
    }
}

#[test]
fn what_tools_for_yaml_change_has_a_hint_where_it_is_seen() {
    const LAB: &str = "switches: { s1: {} }\nclip: { lis: { subnet: 10.2.0.0/24, server: b } }\n\
        pvcs: [{ from: a, vc: LABEL, to: b }]\n\
        hosts:\n  a: { on: s1, elan: lis, ip: 10.2.0.1 }\n  b: { on: s1, elan: lis, ip: 10.2.0.2 }\n";
    let told = |text: &str| match aerostat_lab::parse("t", text, &[]) {
        Ok(checked) => checked.warnings.to_string(),
        Err(findings) => findings.to_string(),
    };
    let good = LAB.replace("LABEL", "\"0.320\"");
    assert_eq!(told(&good), "");
    let replaced = |from: &str, to: &str| {
        assert!(good.contains(from), "{from}");
        told(&good.replace(from, to))
    };
    for (from, to, says) in [
        (
            "\"0.320\"",
            "0.3",
            "may have taken 0.30 or 0.300 for a number",
        ),
        (
            "\"0.320\"",
            "620",
            "as 0.320 for 0.32, 010 for 8 or 10:20 for 620",
        ),
        (
            "hosts:\n  a:",
            "hosts:\n  no:",
            "take the name 'no' for true or false",
        ),
        (
            "hosts:\n  a:",
            "hosts:\n  010:",
            "take the name '010' for a number",
        ),
        (
            "hosts:\n  a:",
            "hosts:\n  ~:",
            "null or ~ cannot be used without quotes",
        ),
        ("server: b", "server: true", "'true'"),
        (
            "on: s1, elan: lis, ip: 10.2.0.1 ",
            "on: s1, elan: lis, ip: 10.2.0.1, mac: true",
            "put such a text in quotes",
        ),
        (
            "on: s1, elan: lis, ip: 10.2.0.1 ",
            "on: s1, elan: lis, ip: 10.2.0.1, link: { police: yes }",
            "write true",
        ),
        (
            "switches: { s1: {} }",
            "switches: { on: {}, s1: {} }",
            "take the name 'on' for true or false",
        ),
    ] {
        let said = replaced(from, to);
        assert!(said.contains(says), "{to}: {said}");
    }
    let said = told(&format!("seed: 010\n{good}"));
    assert!(said.contains("take it for an octal one"), "{said}");
    // A name in quotes is left alone by tools.
    let quoted = good
        .replace("hosts:\n  a:", "hosts:\n  \"no\":")
        .replace("from: a", "from: \"no\"");
    assert_eq!(told(&quoted), "");
    // A reference that a tool has changed, beside a name that stood in quotes.
    let said = told(&quoted.replace("from: \"no\"", "from: false"));
    assert!(
        said.contains("did you mean 'no'? A tool for YAML 1.1"),
        "{said}"
    );
    // --set changes a key that a tool has written.
    let changed = good.replace(" on: s1", " true: s1");
    let set = aerostat_lab::Override::from("hosts.a.on=s2");
    let said = aerostat_lab::parse("t", &changed, &[set])
        .unwrap_err()
        .to_string();
    assert!(said.contains("'s2'"), "{said}");
}

#[test]
fn labels_are_texts_in_all_labs_and_documents() {
    let mut files = labs_in(&root().join("labs"));
    files.extend(labs_in(&root().join("interop/labs")));
    let documents = std::fs::read_dir(root().join("docs")).unwrap();
    let documents = documents.map(|entry| entry.unwrap().path());
    files.extend(documents.filter(|path| path.is_file()));
    files.push(root().join("README.md"));
    let mut labels = 0;
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        for (at, _) in text.match_indices("vc: ") {
            let value = text[at + 4..]
                .split([',', ' ', '}', '\n'])
                .next()
                .unwrap_or_default();
            let is_label = |text: &str| {
                let parts = text.split_once('.');
                parts.is_some_and(|(vpi, vci)| {
                    vpi.parse::<u16>().is_ok() && vci.parse::<u16>().is_ok()
                })
            };
            assert!(!is_label(value), "{}: vc: {value}", path.display());
            labels += usize::from(is_label(value.trim_matches(['"', '\''])));
        }
    }
    assert!(labels > 100, "{labels}");
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
