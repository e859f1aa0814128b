//! Reading the lab file that a subcommand was given.

use crate::args::LabArgs;
use crate::exit::{Exit, Failure, say};
use aerostat_lab::diag::Severity;
use aerostat_lab::{Checked, Diagnostics, ReadError};
use std::path::Path;

/// Reads and checks; findings go to standard error.
pub(crate) fn read(args: &LabArgs) -> Result<Checked, Failure> {
    let read = aerostat_lab::read(&args.lab, &args.set);
    told(&args.lab, read)
}

/// The same for a run in virtual time, with overrides that do not all come from `--set`.
pub(crate) fn read_for_run(path: &Path, overrides: &[String]) -> Result<Checked, Failure> {
    let read = aerostat_lab::read(path, overrides);
    told(path, read.map(Checked::in_virtual_time))
}

fn told(path: &Path, read: Result<Checked, ReadError>) -> Result<Checked, Failure> {
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

/// A file that cannot be read at all.
pub(crate) fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    let failure = Failure::usage(format!("{}: {error}", path.display()));
    if error.kind() == std::io::ErrorKind::NotFound {
        return failure.hint("a lab file is called NAME.atm.yml; see the folder 'labs'");
    }
    failure
}

/// How a command ends that would end with `exit`, if there were these warnings.
pub(crate) fn exit(exit: Exit, warnings: &Diagnostics) -> Exit {
    match warnings.count(Severity::Warning) {
        0 => exit,
        _ if exit == Exit::Ok => Exit::Warnings,
        _ => exit,
    }
}

/// Shows findings.
pub(crate) fn tell(findings: &Diagnostics) {
    if findings.iter().next().is_some() {
        say(findings.to_string().trim_end());
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
    format!("{}: {}", path.display(), parts.join(", "))
}
