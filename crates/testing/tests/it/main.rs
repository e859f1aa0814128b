//! The sources and the documents as a whole: what no compiler checks.

mod documents;
mod english;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Cargo's description of the workspace and its packages.
fn metadata() -> serde_json::Value {
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
    let errors = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{errors}");
    serde_json::from_slice(&out.stdout).expect("JSON")
}

/// Every file of the repository with this extension, by its path from the root, with its text.
fn files(extension: &str) -> Vec<(PathBuf, String)> {
    let mut folders = vec![root()];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)
            .expect("read directory")
            .flatten()
        {
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            let kind = entry.file_type().expect("kind of a file");
            if kind.is_dir() && !name.starts_with('.') && name != "target" && name != "corpus" {
                folders.push(path);
            } else if kind.is_file() && path.extension().is_some_and(|e| e == extension) {
                let text = std::fs::read_to_string(&path).expect("read file");
                let path = path.strip_prefix(root()).expect("a path below the root");
                found.push((path.to_owned(), text));
            }
        }
    }
    found.sort();
    found
}
