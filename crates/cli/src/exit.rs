//! Exit codes and failures of the command.

use aerostat_lab::printable;
use aerostat_live::charset;
pub(crate) use aerostat_live::charset::say;
use aerostat_sweep::failure::{self as sweep, Kind};
use std::fmt;
use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;

/// Exit codes; `aerostat --help` lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done.
    Ok = 0,
    /// Something failed during the run.
    Failed = 1,
    /// Wrong usage, or a lab file with errors.
    Usage = 2,
    /// Done, with warnings.
    Warnings = 3,
    /// The lab does not run.
    NotRunning = 4,
    /// The system does not give this user the right.
    Privilege = 5,
    /// No check fails, and one cannot be judged here.
    Unjudged = 6,
}

/// Why a subcommand failed.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The exit code.
    pub(crate) exit: Exit,
    /// The error; may have several lines. Empty if it has been reported already.
    pub(crate) message: String,
    /// How to correct it.
    pub(crate) hint: Option<String>,
}

impl Failure {
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self {
            exit,
            message: message.into(),
            hint: None,
        }
    }
    pub(crate) fn failed(message: impl Into<String>) -> Self {
        Self::new(Exit::Failed, message)
    }
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, message)
    }
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into()).filter(|hint: &String| !hint.is_empty());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<sweep::Failure> for Failure {
    fn from(failure: sweep::Failure) -> Self {
        let exit = match failure.kind {
            Kind::Usage => Exit::Usage,
            Kind::Failed => Exit::Failed,
            Kind::Privilege => Exit::Privilege,
            // A reader that closes the pipe has read enough: that is success.
            Kind::Closed => return Self::new(Exit::Ok, ""),
        };
        Self {
            exit,
            message: failure.message,
            hint: failure.hint,
        }
    }
}

impl From<Failure> for sweep::Failure {
    fn from(failure: Failure) -> Self {
        let kind = match failure.exit {
            Exit::Usage => Kind::Usage,
            Exit::Privilege => Kind::Privilege,
            Exit::Ok => Kind::Closed,
            _ => Kind::Failed,
        };
        Self {
            kind,
            message: failure.message,
            hint: failure.hint,
        }
    }
}

impl From<io::Error> for Failure {
    /// A reader that closes the pipe has read enough: that is success.
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::new(Exit::Ok, "");
        }
        let exit = if error.kind() == io::ErrorKind::PermissionDenied {
            Exit::Privilege
        } else {
            Exit::Failed
        };
        // An error of a file has its name; the one without is that of standard output.
        let full = error.kind() == io::ErrorKind::StorageFull && error.raw_os_error().is_some();
        let place = if full { "standard output: " } else { "" };
        Self::new(exit, format!("{place}{error}"))
    }
}

impl Exit {
    /// The same exit code, or that for warnings.
    pub(crate) fn with_warnings(self, warnings: bool) -> Self {
        match self {
            Self::Ok if warnings => Self::Warnings,
            other => other,
        }
    }
}

/// The result of every subcommand.
pub(crate) type Outcome = Result<Exit, Failure>;

/// Reports a failure and returns the exit code.
pub(crate) fn report(outcome: Outcome) -> ExitCode {
    let exit = outcome.unwrap_or_else(|failure| {
        complain(&failure);
        failure.exit
    });
    ExitCode::from(exit as u8)
}

/// Reports a failure and its hint, unless it has been reported already.
pub(crate) fn complain(failure: &Failure) {
    if failure.message.is_empty() {
        return;
    }
    let mut err = charset::stderr();
    let (on, off) = if colours(io::stderr().is_terminal()) {
        ("\x1b[1;31m", "\x1b[0m")
    } else {
        ("", "")
    };
    let _ = writeln!(
        err,
        "{on}error:{off} {}",
        printable::lines(failure.message.trim_end())
    );
    if let Some(hint) = &failure.hint {
        let _ = writeln!(err, "  hint: {}", printable::lines(hint));
    }
    if failure.exit == Exit::Privilege {
        let _ = writeln!(
            err,
            "  hint: 'aerostat doctor' says what is missing and how to get it"
        );
    }
}

/// True for colours: only on a terminal, and never if `NO_COLOR` is set.
fn colours(terminal: bool) -> bool {
    terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Shows help, the version, or what is wrong with the words of the command line, and returns the exit code.
pub(crate) fn parsed(error: &clap::Error) -> ExitCode {
    let text = error.render();
    let shown = |terminal| match colours(terminal) {
        true => text.ansi().to_string(),
        false => text.to_string(),
    };
    // The reader may have gone: that is success.
    let _ = match error.use_stderr() {
        true => charset::stderr().write_all(shown(io::stderr().is_terminal()).as_bytes()),
        false => charset::stdout().write_all(shown(io::stdout().is_terminal()).as_bytes()),
    };
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(Exit::Usage as u8))
}
