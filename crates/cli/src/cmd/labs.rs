//! `aerostat labs`: the labs that are part of the program.

use crate::args::LabsArgs;
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

/// Lists the labs, or copies one.
pub(crate) fn run(args: &LabsArgs) -> Outcome {
    match &args.copy {
        Some(name) => copy(name, args),
        None => {
            let form = args.output.form();
            let whole = form.format != Format::Table;
            output::write(form, SCHEMA, &[list(whole)])?;
            Ok(Exit::Ok)
        }
    }
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
