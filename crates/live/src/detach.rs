//! `up -d`: a lab that goes on when the command returns.
//!
//! ```text
//! aerostat up -d ── spawns ──> the same command, a session of its own ── "ready" on standard output ──> returns
//! ```
//!
//! Until it is ready the child shares the parent's standard error, tells its own failures there, and dies with the
//! parent (Ctrl-C). Afterwards it has no tie left: what it would still print goes to the file `log` of the lab.

use rustix::process::{Signal, set_parent_process_death_signal, setsid};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

/// What the child says on standard output once the lab is ready.
const READY: &str = "ready";
/// The same, of a lab file with warnings.
const READY_WITH_WARNINGS: &str = "ready with warnings";

/// How the child did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detached {
    /// The lab is ready and goes on as this process.
    Ready {
        /// Its number.
        process: u32,
        /// Its file has warnings.
        warnings: bool,
    },
    /// It ended with this exit code and has said why.
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

/// First thing of the child: a session of its own, so that no terminal ends it.
pub fn leave_session() {
    // Fails only for the leader of a process group, which needs it no more.
    let _ = setsid();
}

/// Ends with the parent from now on. To be called after every change of credentials: that forgets it.
pub fn end_with_parent() {
    let _ = set_parent_process_death_signal(Some(Signal::TERM));
}

/// What the child writes to once it is on its own. Opened while it may open files.
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
        let log = File::create(directory.join("log"))?;
        Ok(Self { log, nothing })
    }

    /// Ready, perhaps with warnings: cuts the ties with the parent and tells it.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn cut(&self, warnings: bool) -> io::Result<()> {
        set_parent_process_death_signal(None)?;
        rustix::stdio::dup2_stderr(&self.log)?;
        let mut out = io::stdout().lock();
        // A parent that is gone does not want to know.
        let word = if warnings { READY_WITH_WARNINGS } else { READY };
        let _ = writeln!(out, "{word}");
        let _ = out.flush();
        rustix::stdio::dup2_stdout(&self.nothing)?;
        Ok(())
    }
}
