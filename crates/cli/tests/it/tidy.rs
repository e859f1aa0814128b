//! What no compiler checks: who may depend on whom, and how long a file may be.

use crate::root;
use std::collections::BTreeMap;
use std::process::Command;

/// `wire ← proto ← node ← lab ← {sim, live} ← cli`, and nothing else.
#[test]
fn dependencies_point_one_way() {
    let allowed: BTreeMap<&str, &[&str]> = BTreeMap::from([
        ("aerostat-wire", &[][..]),
        ("aerostat-proto", &["aerostat-wire"][..]),
        ("aerostat-node", &["aerostat-wire", "aerostat-proto"][..]),
        (
            "aerostat-lab",
            &["aerostat-wire", "aerostat-proto", "aerostat-node"][..],
        ),
        (
            "aerostat-sim",
            &[
                "aerostat-wire",
                "aerostat-proto",
                "aerostat-node",
                "aerostat-lab",
            ][..],
        ),
        (
            "aerostat-live",
            &[
                "aerostat-wire",
                "aerostat-proto",
                "aerostat-node",
                "aerostat-lab",
            ][..],
        ),
    ]);
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let out = Command::new(cargo)
        .args([
            "metadata",
            "--format-version",
            "1",
            "--no-deps",
            "--offline",
        ])
        .current_dir(root())
        .output()
        .expect("cargo metadata");
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
    let metadata: serde_json::Value = serde_json::from_slice(&out.stdout).expect("JSON");
    let mut seen = 0;
    for package in metadata["packages"].as_array().expect("packages") {
        let name = package["name"].as_str().expect("name");
        let Some(may) = allowed.get(name) else {
            continue;
        };
        seen += 1;
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            let on = dependency["name"].as_str().expect("name");
            // A development dependency shapes tests only.
            if dependency["kind"].as_str() == Some("dev") || !on.starts_with("aerostat-") {
                continue;
            }
            assert!(may.contains(&on), "{name} must not depend on {on}");
        }
    }
    assert_eq!(
        seen,
        allowed.len(),
        "a crate of the table is missing from the workspace"
    );
}

#[test]
fn files_stay_readable() {
    let mut stack = vec![root().join("crates")];
    let mut long = Vec::new();
    while let Some(dir) = stack.pop() {
        for entry in std::fs::read_dir(dir).expect("read directory").flatten() {
            let path = entry.path();
            if path.is_dir() {
                stack.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let lines = std::fs::read_to_string(&path)
                    .expect("read file")
                    .lines()
                    .count();
                if lines > 1000 {
                    long.push(format!("{}: {lines} lines", path.display()));
                }
            }
        }
    }
    assert!(long.is_empty(), "split these files:\n{}", long.join("\n"));
}

/// What a user of a library crate reads first, and what a package has to carry.
#[test]
fn library_crates_have_a_front_page_an_example_a_readme_and_licences() {
    for name in ["wire", "proto", "node", "lab", "sim"] {
        let folder = root().join("crates").join(name);
        let text = std::fs::read_to_string(folder.join("src/lib.rs")).expect("lib.rs");
        let page: Vec<&str> = text
            .lines()
            .take_while(|line| line.starts_with("//!"))
            .collect();
        assert!(
            page.len() >= 20,
            "{name}: front page of {} lines",
            page.len()
        );
        assert!(page.contains(&"//! # Example"), "{name}: no example");
        assert!(page.contains(&"//! ```"), "{name}: no example that runs");
        for file in ["README.md", "LICENSE-MIT", "LICENSE-APACHE"] {
            assert!(folder.join(file).exists(), "{name}: no {file}");
        }
    }
}
