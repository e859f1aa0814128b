//! How the command ends.

use aerostat_lab::printable;
use std::fmt;
use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;

/// Exit codes; `aerostat --help` lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done.
    Ok = 0,
    /// Something failed while it ran.
    Failed = 1,
    /// Wrong usage, or a lab file with errors.
    Usage = 2,
    /// Done, with warnings.
    Warnings = 3,
    /// No such lab runs.
    NotRunning = 4,
    /// The system does not let this user do it.
    Privilege = 5,
}

/// Why a subcommand did not do its work.
#[derive(Debug)]
pub(crate) struct Failure {
    /// How the command ends.
    pub(crate) exit: Exit,
    /// What is wrong; may have several lines. Empty if it has been told already.
    pub(crate) message: String,
    /// What to do about it.
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

impl From<io::Error> for Failure {
    /// Whoever closes our pipe has seen enough: that is success.
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::new(Exit::Ok, "");
        }
        let exit = if error.kind() == io::ErrorKind::PermissionDenied {
            Exit::Privilege
        } else {
            Exit::Failed
        };
        Self::new(exit, error.to_string())
    }
}

impl Exit {
    /// The same, but with warnings if there were some.
    pub(crate) fn with_warnings(self, warnings: bool) -> Self {
        match self {
            Self::Ok if warnings => Self::Warnings,
            other => other,
        }
    }
}

/// What every subcommand returns.
pub(crate) type Outcome = Result<Exit, Failure>;

/// Tells a failure and gives the exit code.
pub(crate) fn report(outcome: Outcome) -> ExitCode {
    let exit = outcome.unwrap_or_else(|failure| {
        complain(&failure);
        failure.exit
    });
    ExitCode::from(exit as u8)
}

/// Tells a failure, and what to do about it, unless it has been told already.
pub(crate) fn complain(failure: &Failure) {
    if failure.message.is_empty() {
        return;
    }
    let mut err = io::stderr().lock();
    let (on, off) = if colours() {
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

/// Colours on standard error: only on a terminal, and never against `NO_COLOR`.
fn colours() -> bool {
    io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// One line of talk for people, on standard error. Whatever it repeats of a lab file, a terminal does not obey it.
pub(crate) fn say(text: impl fmt::Display) {
    let text = text.to_string();
    let text = printable::lines(&text);
    // Nobody may be listening any more; that is no reason to stop the work.
    let _ = writeln!(io::stderr().lock(), "{text}");
}
