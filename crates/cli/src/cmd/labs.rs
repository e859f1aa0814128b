//! `aerostat labs`: the labs and exercises that are part of the program.

use crate::args::LabsArgs;
use crate::exercises::{self, Exercise};
use crate::exit::{Exit, Failure, Outcome, say};
use crate::labs::find;
use crate::output::{self, Format, Rows};
use aerostat_lab::files::{Named, write_whole};
use aerostat_lab::shipped;
use serde_json::Value;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Name and version of the document.
const SCHEMA: &str = "aerostat.labs.v1";
/// The same for exercises.
const EXERCISES_SCHEMA: &str = "aerostat.exercises.v1";

/// Lists the labs, or copies one.
pub(crate) fn run(args: &LabsArgs) -> Outcome {
    match &args.copy {
        Some(name) if args.exercises => copy_exercises(name, args),
        Some(name) => copy(name, args),
        None => {
            let form = args.output.form();
            let whole = form.format != Format::Table;
            match args.exercises {
                true => output::write(form, EXERCISES_SCHEMA, &[list_exercises()])?,
                false => output::write(form, SCHEMA, &[list(whole)])?,
            }
            Ok(Exit::Ok)
        }
    }
}

/// Exercises with the number of their chapter and what is to be done.
fn list_exercises() -> Rows {
    let mut rows = Rows::new(&["chapter", "name", "kind", "description"]);
    for one in exercises::all() {
        let chapter: Value = one.number().parse::<u64>().map_or(Value::Null, Value::from);
        let (kind, about) = (one.kind.into(), one.about.into());
        rows.push(vec![chapter, one.name.into(), kind, about]);
    }
    rows
}

/// Writes exercises into folders of their names: one, those of a chapter, or all.
fn copy_exercises(wanted: &str, args: &LabsArgs) -> Outcome {
    let is_wanted = |one: &Exercise| [one.name, one.number(), "all"].contains(&wanted);
    let chosen: Vec<Exercise> = exercises::all().filter(is_wanted).collect();
    if chosen.is_empty() {
        let text = format!("the program has no exercise '{wanted}'");
        return Err(Failure::usage(text).hint("'aerostat labs --exercises' lists them"));
    }
    let to = args.to.as_deref().unwrap_or(Path::new(""));
    let there = |one: &&Exercise| std::fs::symlink_metadata(to.join(one.name)).is_ok();
    if let Some(one) = chosen.iter().find(there).filter(|_| !args.force) {
        let shown = to.join(one.name);
        return Err(
            Failure::failed(format!("{} is there already", shown.display()))
                .hint("--force replaces its files; or name another directory"),
        );
    }
    for one in chosen {
        let folder = to.join(one.name);
        let failed = |path: &Path, error| Failure::failed(format!("{}: {error}", path.display()));
        std::fs::create_dir_all(&folder).map_err(|error| failed(&folder, error))?;
        for (name, text) in one.files() {
            let file = folder.join(name);
            let written = write_whole(&file, Named::ByUser, |out| out.write_all(text.as_bytes()));
            written.map_err(|error| failed(&file, error))?;
        }
        say(format_args!("wrote {}: {}", folder.display(), one.work()));
    }
    Ok(Exit::Ok)
}

/// Names and descriptions, in whole or only the beginning of each.
fn list(whole: bool) -> Rows {
    let mut rows = Rows::new(&["name", "description"]);
    for (name, text) in shipped::alone() {
        let checked = aerostat_lab::parse(name, text, &[]).ok();
        let description = checked.and_then(|checked| checked.lab.description);
        let shown = description.map(|text| match whole {
            true => text,
            false => beginning(&text).to_owned(),
        });
        rows.push(vec![name.into(), shown.map_or(Value::Null, Value::from)]);
    }
    rows
}

/// The first part of a description.
fn beginning(text: &str) -> &str {
    let ends = [". ", "; ", ": ", " - "];
    let end = ends.iter().filter_map(|end| text.find(end)).min();
    text.get(..end.unwrap_or(text.len())).unwrap_or(text)
}

/// Writes a lab of the program into a file.
fn copy(name: &str, args: &LabsArgs) -> Outcome {
    let Some(text) = shipped::lab(name) else {
        let failure = Failure::usage(format!("the program has no lab '{name}'"));
        return Err(failure.hint(match &find::like(name)[..] {
            [] => "'aerostat labs' lists them".to_owned(),
            names => format!("did you mean {}?", names.join(" or ")),
        }));
    };
    let to = args.to.as_deref().unwrap_or(Path::new("."));
    if to == Path::new("-") {
        std::io::stdout().lock().write_all(text.as_bytes())?;
        return Ok(Exit::Ok);
    }
    let file = place(name, to);
    let shown = file.display();
    // A file that is no regular one, such as a pipe, is written to.
    if !args.force && std::fs::symlink_metadata(&file).is_ok_and(|found| !is_device(&found)) {
        return Err(Failure::failed(format!("{shown} is there already"))
            .hint("--force replaces it; or name another file or directory"));
    }
    let written = write_whole(&file, Named::ByUser, |out| out.write_all(text.as_bytes()));
    written.map_err(|error| Failure::failed(format!("{shown}: {error}")))?;
    say(format_args!("wrote {shown}"));
    Ok(Exit::Ok)
}

/// The file that a copy becomes: `to` itself, or a file in the directory `to`.
fn place(name: &str, to: &Path) -> PathBuf {
    let last = name.rsplit('/').next().unwrap_or(name);
    let file = format!("{last}{}", find::ENDING);
    match to == Path::new(".") {
        true => file.into(),
        false if to.is_dir() => to.join(file),
        false => to.to_owned(),
    }
}

fn is_device(found: &std::fs::Metadata) -> bool {
    let kind = found.file_type();
    !(kind.is_file() || kind.is_dir() || kind.is_symlink())
}
