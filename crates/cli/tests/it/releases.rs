//! Lab files of earlier releases are read.

use super::{root, run};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The releases, with their commits.
const RELEASES: [(&str, &str); 2] = [("0.1.0", "bb831a2a"), ("0.2.0", "324f2186")];

/// The labs of a commit in a directory of their own; `None` if this clone does not have it.
fn labs(release: &str, commit: &str) -> Option<PathBuf> {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("labs-{release}"));
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).unwrap();
    let archive = Command::new("git")
        .args(["archive", commit, "labs"])
        .current_dir(root())
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let file = directory.join("labs.tar");
    std::fs::write(&file, archive.stdout).unwrap();
    let tar = Command::new("tar")
        .args(["-xf", "labs.tar"])
        .current_dir(&directory)
        .status();
    tar.is_ok_and(|status| status.success())
        .then_some(directory)
}

fn files(directory: &Path, all: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, all);
        } else if path.to_string_lossy().ends_with(".atm.yml") {
            all.push(path);
        }
    }
}

#[test]
fn labs_of_every_release_are_read() {
    for (release, commit) in RELEASES {
        let Some(directory) = labs(release, commit) else {
            println!("skipped: this clone does not have the commit of {release}");
            continue;
        };
        let mut all = Vec::new();
        files(&directory, &mut all);
        assert!(all.len() >= 15, "{release}: {}", all.len());
        for file in all {
            let ran = run(&["validate", file.to_str().unwrap()]);
            // Newer versions may warn.
            assert!(
                [0, 3].contains(&ran.code),
                "{release}: {}: {}",
                file.display(),
                ran.err
            );
        }
    }
}
