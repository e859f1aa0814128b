//! Finding the lab that a word of the command line names.
//!
//! | word | lab |
//! |---|---|
//! | `-` | that on standard input |
//! | a file | this file |
//! | `NAME`, and the current directory has `NAME.atm.yml` | that file |
//! | the name of a lab of the program | this lab ([`mod@shipped`]) |
//! | a directory | its only lab file |
//!
//! A file comes before a lab of the program with the same name, and standard error says so.

use crate::exit::{Failure, say};
use aerostat_lab::diag::nearest;
use aerostat_lab::shipped::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Hint to the names of labs.
pub(crate) const NAMES: &str =
    "a lab file is called NAME.atm.yml; 'aerostat labs' lists the labs of the program";
/// End of the name of a lab file.
pub(crate) const ENDING: &str = ".atm.yml";
/// Most names in a message.
const FEW: usize = 4;

/// The lab that `given` names: a file, `-`, or the name of a lab of the program.
///
/// # Errors
/// If there is no such lab, or if a directory does not have exactly one.
pub(crate) fn find(given: &Path) -> Result<PathBuf, Failure> {
    if let Some(file) = file(given) {
        return Ok(file);
    }
    if shipped(given).is_some() {
        return Ok(given.to_owned());
    }
    if given.is_dir() {
        return only_one(given);
    }
    Err(unknown(given, ""))
}

/// The file that `given` names, or standard input.
pub(crate) fn file(given: &Path) -> Option<PathBuf> {
    let lab = named(given);
    if given == Path::new("-") {
        return Some(given.to_owned());
    }
    // A file that cannot be looked at gives its error where it is read.
    let nothing = |error: &std::io::Error| error.kind() == ErrorKind::NotFound;
    if std::fs::metadata(given).map_or_else(|error| !nothing(&error), |found| !found.is_dir()) {
        // A path is never taken for a name.
        return Some(match lab {
            Some((name, _)) => told(name, Path::new(".").join(given)),
            None => given.to_owned(),
        });
    }
    let mut longer = given.to_owned().into_os_string();
    longer.push(ENDING);
    let longer = PathBuf::from(longer);
    let is_name = given.file_name().is_some();
    (is_name && longer.is_file()).then(|| told(&given.to_string_lossy(), longer))
}

/// Says that the name means this file.
fn told(name: &str, file: PathBuf) -> PathBuf {
    let instead = match shipped::lab(name) {
        Some(_) => ", and not the lab of the program",
        None => "",
    };
    say(format_args!(
        "note: '{name}' is the file {}{instead}",
        file.display()
    ));
    file
}

/// The lab of the program that a found path names: no file has this name.
pub(crate) fn shipped(found: &Path) -> Option<File> {
    named(found).filter(|_| !found.is_file())
}

fn named(word: &Path) -> Option<File> {
    let name = word.to_str()?;
    shipped::labs().find(|lab| lab.0 == name)
}

/// The only lab file of a directory.
fn only_one(directory: &Path) -> Result<PathBuf, Failure> {
    let entries = std::fs::read_dir(directory);
    let entries = entries.map_err(|error| super::unreadable(directory, &error))?;
    let is_lab = |name: &std::ffi::OsString| name.to_string_lossy().ends_with(ENDING);
    let names = entries.flatten().map(|entry| entry.file_name());
    let mut names: Vec<_> = names.filter(is_lab).collect();
    names.sort();
    let place = match directory == Path::new(".") {
        true => "this directory".to_owned(),
        false => directory.display().to_string(),
    };
    match &names[..] {
        [] => {
            let text = format!("no lab is named, and {place} has no lab file (NAME.atm.yml)");
            Err(Failure::usage(text)
                .hint("'aerostat labs' lists the labs of the program, such as 'campus'"))
        }
        [only] => {
            say(format_args!("note: the lab is {}", only.display()));
            Ok(match directory == Path::new(".") {
                true => only.into(),
                false => directory.join(only),
            })
        }
        several => {
            let shown = several.iter().take(FEW);
            let shown: Vec<_> = shown.map(|name| name.display().to_string()).collect();
            let more = match several.len().saturating_sub(FEW) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let (number, shown) = (several.len(), shown.join(", "));
            let text = format!("no lab is named, and {place} has {number}: {shown}{more}");
            Err(Failure::usage(text).hint("name one of them"))
        }
    }
}

/// The failure for a word that names no lab; `also` says what else it does not name.
pub(crate) fn unknown(given: &Path, also: &str) -> Failure {
    let text = given.to_string_lossy();
    if text.contains('/') || text.ends_with(".yml") || text.ends_with(".yaml") {
        let failure = Failure::usage(format!("{text}: there is no such file"));
        let file = text.rsplit('/').next().unwrap_or_default();
        let stem = file.strip_suffix(ENDING).unwrap_or(file);
        return failure.hint(match shipped::lab(stem) {
            Some(_) => format!("the program has a lab '{stem}': leave out directory and ending"),
            None => NAMES.to_owned(),
        });
    }
    let failure = Failure::usage(format!(
        "there is no file '{text}'{also}, and the program has no lab of this name"
    ));
    match &like(&text)[..] {
        [] => failure.hint(NAMES),
        names => failure.hint(format!(
            "did you mean {}? 'aerostat labs' lists all",
            names.join(" or ")
        )),
    }
}

/// Names of labs that are nearly `word`, or have it as a part, in quotes.
pub(crate) fn like(word: &str) -> Vec<String> {
    let all: Vec<&str> = shipped::labs().map(|lab| lab.0).collect();
    let near = nearest(word, &all);
    let part = |name: &&&str| word.len() >= 3 && name.contains(word) && Some(**name) != near;
    let parts = all.iter().filter(part).copied();
    let names = near.into_iter().chain(parts).take(FEW);
    names.map(|name| format!("'{name}'")).collect()
}
