//! Files of the catalogue: those of the program, or those of a folder that the user names.

use super::{ENTRIES, LARGEST, wrong};
use crate::exit::Failure;
use aerostat_lab::shipped;
use serde::de::DeserializeOwned;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

/// Ending of the names of labs.
const LAB: &str = ".atm.yml";
/// Files that are no entries.
const OTHERS: [&str; 4] = ["claims.yml", "labs.yml", "parameters.yml", "printed.yml"];
/// The document that gives the reasons of misses.
const DOCUMENT: &str = "reproduce.md";
/// Most files of a folder.
const MOST: usize = 1000;

/// Texts of the catalogue by the names of their files.
#[derive(Clone, Debug)]
pub(in crate::cmd::reproduce) struct Files(BTreeMap<String, Cow<'static, str>>);

impl Files {
    /// The files of a folder; without a folder, those of the program.
    ///
    /// # Errors
    /// The folder cannot be read, or has too many files or too large ones.
    pub(in crate::cmd::reproduce) fn new(folder: Option<&Path>) -> Result<Self, Failure> {
        folder.map_or_else(|| Ok(Self::shipped()), Self::of_folder)
    }

    fn shipped() -> Self {
        let name = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
        let entries = ENTRIES
            .iter()
            .map(|(path, text)| (name(path) + ".yml", *text));
        let labs = shipped::labs().filter(|(path, _)| path.starts_with("papers/"));
        let labs = labs.map(|(path, text)| (name(path) + LAB, text));
        let others = [
            ("labs.yml", include_str!("../../../../labs/papers/labs.yml")),
            (
                "parameters.yml",
                include_str!("../../../../labs/papers/parameters.yml"),
            ),
            (
                "printed.yml",
                include_str!("../../../../labs/papers/printed.yml"),
            ),
            (
                "claims.yml",
                include_str!("../../../../labs/papers/claims.yml"),
            ),
            (
                DOCUMENT,
                include_str!("../../../../labs/papers/reproduce.md"),
            ),
        ];
        let others = others.map(|(name, text)| (name.to_owned(), text));
        let all = entries.chain(labs).chain(others);
        Self(all.map(|(name, text)| (name, Cow::from(text))).collect())
    }

    fn of_folder(folder: &Path) -> Result<Self, Failure> {
        let failed = |error| Failure::usage(format!("{}: {error}", folder.display()));
        let mut all = BTreeMap::new();
        for found in std::fs::read_dir(folder).map_err(failed)? {
            let path = found.map_err(failed)?.path();
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
                continue;
            };
            if name.ends_with(".yml") || name == DOCUMENT {
                all.insert(name.to_owned(), Cow::from(text(&path)?));
            }
            if all.len() > MOST {
                return Err(wrong(folder, &format!("there are more than {MOST} files")));
            }
        }
        let missing = OTHERS[1..].iter().find(|name| !all.contains_key(**name));
        match missing {
            Some(name) => Err(wrong(folder, &format!("there is no {name}"))
                .hint("a catalogue has the files of labs/papers")),
            None => Ok(Self(all)),
        }
    }

    /// Contents of a file.
    pub(super) fn read<T: DeserializeOwned>(&self, name: &str) -> Result<T, Failure> {
        let text = self.0.get(name).map_or("", |text| text);
        super::yaml(name, text)
    }

    /// Names of the files of entries, in the order of the papers; those that the program does not have come last.
    pub(super) fn entries(&self) -> Vec<&str> {
        let known = |name: &str| {
            let mut all = ENTRIES.iter();
            let stem = name.trim_end_matches(".yml");
            all.position(|(path, _)| path.rsplit('/').next() == Some(stem))
                .unwrap_or(usize::MAX)
        };
        let is_entry = |name: &&str| {
            let is_other = name.ends_with(LAB) || OTHERS.contains(name);
            name.ends_with(".yml") && !is_other
        };
        let mut all: Vec<&str> = self.0.keys().map(String::as_str).filter(is_entry).collect();
        all.sort_by_key(|name| known(name));
        all
    }

    /// The text of a lab.
    pub(in crate::cmd::reproduce) fn lab(&self, name: &str) -> Result<&str, Failure> {
        let text = self.0.get(&format!("{name}{LAB}"));
        let text = text.map(|text| &**text);
        text.ok_or_else(|| Failure::failed(format!("the catalogue has no lab '{name}'")))
    }

    /// The document that gives the reasons of misses; empty if the folder has none.
    pub(in crate::cmd::reproduce) fn document(&self) -> &str {
        self.0.get(DOCUMENT).map_or("", |text| text)
    }
}

/// The text of a regular file of at most [`LARGEST`] octets.
pub(super) fn text(path: &Path) -> Result<String, Failure> {
    let failed = |error| Failure::usage(format!("{}: {error}", path.display()));
    let found = std::fs::metadata(path).map_err(failed)?;
    if !found.is_file() {
        return Err(wrong(path, "this is no regular file"));
    }
    if found.len() > LARGEST {
        let text = format!("{} octets are too many, at most {LARGEST}", found.len());
        return Err(wrong(path, &text));
    }
    std::fs::read_to_string(path).map_err(failed)
}
