//! The exercises that are part of the program: tasks and checks, and never answers.
//!
//! The list is the table of `labs/exercises/README.md`. Students get the task and the checks, except for numbers that
//! are to be predicted: their checks have the number, so they stay in the program, and `check --checks NAME` uses them.

use aerostat_lab::embedded;
use aerostat_lab::shipped::File;
use std::fmt::Write as _;

const LIST: &str = include_str!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/labs/exercises/README.md"
));
const CHECKS: &[File] = embedded!("exercises/" "/checks.yml":
    "address" "atmarp-server" "bursts" "call" "cells" "classical-ip" "crossed-labels" "cut-through" "detection"
    "distance" "early-discard" "first-elan" "full-buffer" "full-line" "goodput" "ilmi" "key" "lossy" "mesh"
    "neighbour" "padding" "permanent" "pppoe" "renewal" "sap" "set-up" "short-queue" "shortcut" "threshold"
    "transactions" "unshaped" "vccs" "voice" "weights" "window" "wrong-elan");
const TASKS: &[File] = embedded!("exercises/" "/task.atm.yml":
    "address" "atmarp-server" "bursts" "cells" "crossed-labels" "detection" "distance" "early-discard" "full-buffer"
    "goodput" "key" "lossy" "mesh" "neighbour" "pppoe" "renewal" "sap" "set-up" "threshold" "transactions" "unshaped"
    "vccs" "weights" "wrong-elan");

/// An exercise.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exercise {
    pub(crate) name: &'static str,
    /// Number and title of its chapter.
    pub(crate) chapter: &'static str,
    /// Kind: `find`, `build` or `predict`.
    pub(crate) kind: &'static str,
    /// The subject in a sentence.
    pub(crate) about: &'static str,
}

/// All exercises in the order of their chapters.
pub(crate) fn all() -> impl Iterator<Item = Exercise> {
    LIST.lines().filter_map(|line| {
        let row = line.strip_prefix("| ")?.strip_suffix(" |")?;
        let mut cells = row.split(" | ");
        let mut cell = || cells.next();
        let (chapter, link, kind, about) = (cell()?, cell()?, cell()?, cell()?);
        let name = link.strip_prefix('[')?.split(']').next()?;
        Some(Exercise {
            name,
            chapter,
            kind,
            about,
        })
    })
}

fn of(files: &'static [File], name: &str) -> Option<&'static str> {
    let file = |(path, _): &&File| path.strip_prefix("exercises/") == Some(name);
    files.iter().find(file).map(|(_, text)| *text)
}

/// The checks of the exercise with this name.
pub(crate) fn checks(name: &str) -> Option<&'static str> {
    of(CHECKS, name)
}

impl Exercise {
    /// The number of its chapter.
    pub(crate) fn number(&self) -> &'static str {
        self.chapter.split(' ').next().unwrap_or_default()
    }
    /// The work in three words at most.
    pub(crate) fn work(&self) -> &'static str {
        match self.kind {
            "find" => "find the fault",
            "build" => "build it",
            _ => "predict the number",
        }
    }
    /// The files that a student gets: name and text.
    pub(crate) fn files(&self) -> Vec<(&'static str, String)> {
        let (task, checks) = (of(TASKS, self.name), checks(self.name));
        let mut files = vec![("README.md", self.page(task.or(checks).unwrap_or_default()))];
        files.extend(task.map(|task| ("task.atm.yml", task.to_owned())));
        let shown = checks.filter(|_| self.kind != "predict");
        files.extend(shown.map(|checks| ("checks.yml", checks.to_owned())));
        files
    }
    /// The page with the task, which is the comment in front of `text`.
    fn page(&self, text: &str) -> String {
        let task = text.lines().map_while(|line| line.strip_prefix('#'));
        let task: Vec<&str> = task.map(str::trim).collect();
        let task = task.join("\n");
        let (name, chapter) = (self.name, self.chapter);
        let mut page = format!("# {name}\n\nChapter {chapter}.\n\n{task}\n\n");
        let (lab, begin) = match self.kind {
            "build" => ("mine.atm.yml", "Write `mine.atm.yml`, and check it:"),
            _ => ("task.atm.yml", "Change `task.atm.yml`, and check it:"),
        };
        let _ = write!(
            page,
            "{begin}\n\n```sh\naerostat check {lab} --checks {name}\n```\n"
        );
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    /// Folders of the repository with a file of this name.
    fn folders(file: &str) -> BTreeSet<String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("labs/exercises");
        let all = std::fs::read_dir(root).unwrap().flatten();
        all.filter(|entry| entry.path().join(file).is_file())
            .map(|entry| entry.file_name().into_string().unwrap())
            .collect()
    }

    #[test]
    fn every_exercise_of_the_repository_is_in_the_program() {
        let names = |files: &[File]| -> BTreeSet<String> {
            let names = files.iter().map(|(path, _)| &path["exercises/".len()..]);
            names.map(str::to_owned).collect()
        };
        assert_eq!(names(CHECKS), folders("checks.yml"));
        assert_eq!(names(TASKS), folders("task.atm.yml"));
        let listed: BTreeSet<String> = all().map(|one| one.name.to_owned()).collect();
        assert_eq!(listed, folders("checks.yml"));
        assert_eq!(all().count(), listed.len());
    }

    /// No line of an answer that the task lacks, no wrong answer, and no number that is to be predicted.
    #[test]
    fn no_answer_is_given_to_a_student() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("labs/exercises");
        for one in all() {
            let files = one.files();
            let answer =
                std::fs::read_to_string(root.join(one.name).join("answer.atm.yml")).unwrap();
            let given: Vec<&str> = files.iter().map(|(_, text)| text.trim()).collect();
            assert!(!given.contains(&answer.trim()), "{}", one.name);
            let names: BTreeSet<&str> = files.iter().map(|(name, _)| *name).collect();
            let wanted: &[&str] = match one.kind {
                "find" => &["README.md", "checks.yml", "task.atm.yml"],
                "build" => &["README.md", "checks.yml"],
                "predict" => &["README.md", "task.atm.yml"],
                other => panic!("{}: {other}", one.name),
            };
            assert_eq!(names, wanted.iter().copied().collect(), "{}", one.name);
            let page = &files[0].1;
            let task = page.lines().nth(4).unwrap_or_default();
            let begin = ["Find the fault", "Build it", "Predict "];
            assert!(begin.iter().any(|begin| task.starts_with(begin)), "{page}");
        }
    }
}
