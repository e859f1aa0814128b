//! `up -d`: a lab that continues when the command returns.
//!
//! ```text
//! aerostat up -d ── spawns ──> the same command, a session of its own ── "ready" on standard output ──> returns
//! ```
//!
//! Until it is ready the child shares the parent's standard error, reports its own failures there, and dies with the
//! parent (Ctrl-C). After that it is independent: its output goes to the file `log` of the lab.

use aerostat_lab::files::{self, Named};
use rustix::process::{Signal, set_parent_process_death_signal, setsid};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

/// The line that the child writes to standard output once the lab is ready.
const READY: &str = "ready";
/// The same, for a lab file with warnings.
const READY_WITH_WARNINGS: &str = "ready with warnings";

/// The outcome of starting the child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detached {
    /// The lab is ready and continues as this process.
    Ready {
        /// The process id.
        process: u32,
        /// True if the lab file has warnings.
        warnings: bool,
    },
    /// It ended with this exit code and has reported why.
    Ended(i32),
}

/// Runs `command` as the child and waits until it is ready or has ended.
///
/// # Errors
/// If it cannot be started.
pub fn start(command: &mut Command) -> io::Result<Detached> {
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    if let Some(out) = child.stdout.take() {
        BufReader::new(out).read_line(&mut line)?;
    }
    let warnings = line.trim_end() == READY_WITH_WARNINGS;
    if line.trim_end() == READY || warnings {
        let process = child.id();
        return Ok(Detached::Ready { process, warnings });
    }
    Ok(Detached::Ended(child.wait()?.code().unwrap_or(1)))
}

/// The first action of the child: it starts a session of its own, so that no terminal ends it.
pub fn leave_session() {
    // This fails only for the leader of a process group, which does not need it.
    let _ = setsid();
}

/// Makes the process end with its parent. Call this after every change of credentials, which cancels the setting.
pub fn end_with_parent() {
    let _ = set_parent_process_death_signal(Some(Signal::TERM));
}

/// The log file to which the child writes once it is independent. It is opened while the process may still open files.
#[derive(Debug)]
pub struct Ties {
    log: File,
    nothing: File,
}

impl Ties {
    /// Makes the file `log` in the lab's directory.
    ///
    /// # Errors
    /// If it cannot be made.
    pub(crate) fn new(directory: &Path) -> io::Result<Self> {
        let nothing = File::options().read(true).write(true).open("/dev/null")?;
        let log = files::begin(&directory.join("log"), Named::ByProgram)?;
        Ok(Self { log, nothing })
    }

    /// Called when the lab is ready, perhaps with warnings: makes the child independent of the parent and informs the
    /// parent.
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn cut(&self, warnings: bool) -> io::Result<()> {
        set_parent_process_death_signal(None)?;
        rustix::stdio::dup2_stderr(&self.log)?;
        let mut out = io::stdout().lock();
        // The parent may have ended.
        let word = if warnings { READY_WITH_WARNINGS } else { READY };
        let _ = writeln!(out, "{word}");
        let _ = out.flush();
        rustix::stdio::dup2_stdout(&self.nothing)?;
        Ok(())
    }
}
