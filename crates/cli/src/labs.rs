//! Reading the lab of a subcommand: a file, or a lab that is part of the program.

pub(crate) mod find;

use crate::args::LabArgs;
use crate::exit::{Exit, Failure, say};
use aerostat_lab::diag::Severity;
use aerostat_lab::printable;
use aerostat_lab::{Checked, Diagnostics, Override, ReadError};
use aerostat_live::charset;
use std::io::Read as _;
use std::path::Path;

/// Reads and checks a lab file; findings go to standard error.
pub(crate) fn read(args: &LabArgs) -> Result<Checked, Failure> {
    let read = load(&args.lab, &args.set);
    told(&args.lab, read)
}

/// Like [`read`], for a run in virtual time, with overrides that need not come from `--set`.
pub(crate) fn read_for_run(path: &Path, overrides: &[Override]) -> Result<Checked, Failure> {
    let read = load(path, overrides);
    told(path, read.map(Checked::in_virtual_time))
}

/// Like [`read`], for a lab whose one node is this machine itself.
pub(crate) fn read_for_machine(args: &LabArgs) -> Result<Checked, Failure> {
    let read = load(&args.lab, &args.set);
    let own = read.and_then(|checked| checked.as_machine().map_err(ReadError::Bad));
    told(&args.lab, own)
}

/// The lab that was read, with its findings told.
pub(crate) fn told(path: &Path, read: Result<Checked, ReadError>) -> Result<Checked, Failure> {
    match read {
        Ok(checked) => {
            tell(&checked.warnings);
            Ok(checked)
        }
        Err(ReadError::Bad(findings)) => {
            tell(&findings);
            Err(Failure::new(Exit::Usage, summary(path, &findings)))
        }
        Err(ReadError::Io(error)) => Err(unreadable(path, &error)),
    }
}

/// Longest lab on standard input, octets.
const MAX_INPUT: u64 = 4 << 20;

/// Reads and checks a lab that [`find::find`] has found; `-` is standard input, whose lab is called `stdin` unless the
/// file gives a name.
pub(crate) fn load(path: &Path, overrides: &[Override]) -> Result<Checked, ReadError> {
    if path == Path::new("-") {
        return parse(&standard_input().map_err(ReadError::Io)?, overrides);
    }
    match find::shipped(path) {
        // Files that a change names are looked for in the current directory.
        Some((name, text)) => {
            let file = format!("{}.atm.yml", name.rsplit('/').next().unwrap_or(name));
            aerostat_lab::parse(&file, text, overrides).map_err(ReadError::Bad)
        }
        None => aerostat_lab::read(path, overrides),
    }
}

/// A lab that is not read yet.
pub(crate) struct LabText {
    /// Name for messages.
    pub(crate) name: String,
    /// Text, at most [`MAX_INPUT`] octets.
    pub(crate) text: String,
}

/// The text of a lab that [`find::find`] has found.
pub(crate) fn named_text(path: &Path) -> Result<LabText, Failure> {
    if path == Path::new("-") {
        let text = standard_input().map_err(|error| unreadable(path, &error))?;
        let name = "stdin".to_owned();
        return Ok(LabText { name, text });
    }
    if let Some((name, text)) = find::shipped(path) {
        let name = format!("{}.atm.yml", name.rsplit('/').next().unwrap_or(name));
        let text = text.to_owned();
        return Ok(LabText { name, text });
    }
    let read = aerostat_lab::files::text(path, MAX_INPUT, "a lab file");
    let text = read.map_err(|why| Failure::usage(format!("{}: {why}", path.display())))?;
    let name = path.display().to_string();
    Ok(LabText { name, text })
}

/// The text of a lab that [`find::find`] has found, except on standard input.
pub(crate) fn text(path: &Path) -> Result<String, Failure> {
    match find::shipped(path) {
        Some((_, text)) => Ok(text.to_owned()),
        None => std::fs::read_to_string(path).map_err(|error| unreadable(path, &error)),
    }
}

/// The text of a lab on standard input.
pub(crate) fn standard_input() -> std::io::Result<String> {
    let mut text = String::new();
    let input = std::io::stdin().lock().take(MAX_INPUT + 1);
    let read = { input }.read_to_string(&mut text);
    let read = read.map_err(|error| match error.kind() {
        std::io::ErrorKind::InvalidData => std::io::Error::other("this is no UTF-8 text"),
        _ => error,
    })?;
    if read as u64 > MAX_INPUT {
        let text = format!("more than {MAX_INPUT} octets are too large for a lab file");
        return Err(std::io::Error::other(text));
    }
    Ok(text)
}

/// Checks the text of a lab on standard input.
pub(crate) fn parse(text: &str, overrides: &[Override]) -> Result<Checked, ReadError> {
    aerostat_lab::parse("stdin", text, overrides).map_err(ReadError::Bad)
}

/// The failure for a file that cannot be read.
pub(crate) fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    let failure = Failure::usage(format!("{}: {error}", path.display()));
    if error.kind() == std::io::ErrorKind::NotFound {
        return failure.hint(find::NAMES);
    }
    failure
}

/// The exit code of a command that would end with `exit`, given these warnings.
pub(crate) fn exit(exit: Exit, warnings: &Diagnostics) -> Exit {
    exit.with_warnings(warnings.count(Severity::Warning) > 0)
}

/// The exit code of a command that has done all its work on this lab.
pub(crate) fn done(checked: &Checked) -> Exit {
    exit(Exit::Ok, &checked.warnings)
}

/// Shows findings.
pub(crate) fn tell(findings: &Diagnostics) {
    if findings.iter().next().is_some() {
        let text = match charset::is_utf8() {
            true => findings.to_string(),
            // The carets stand below what is shown.
            false => format!("{findings:#}"),
        };
        say(text.trim_end());
    }
}

/// `x.atm.yml: 3 errors, 1 warning`.
pub(crate) fn summary(path: &Path, findings: &Diagnostics) -> String {
    let count = |severity, word: &str| match findings.count(severity) {
        0 => None,
        1 => Some(format!("1 {word}")),
        n => Some(format!("{n} {word}s")),
    };
    let parts: Vec<String> = [
        count(Severity::Error, "error"),
        count(Severity::Warning, "warning"),
    ]
    .into_iter()
    .flatten()
    .collect();
    let file = match findings.wrong_file() {
        Some(file) => printable::line(file).into_owned(),
        None => path.display().to_string(),
    };
    format!("{file}: {}", parts.join(", "))
}
