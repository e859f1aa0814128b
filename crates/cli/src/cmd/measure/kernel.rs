//! The system's programs inside kernel hosts, with a time limit.

use crate::exit::Failure;
use aerostat_live::force;
use aerostat_live::threads;
use std::fmt;
use std::io::{self, Read as _};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Fails with a hint if a program is not installed.
pub(super) fn need(program: &str, package: &str) -> Result<(), Failure> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|dir| dir.join(program).is_file());
    if found || Path::new("/usr/sbin").join(program).is_file() {
        return Ok(());
    }
    Err(Failure::failed(format!(
        "kernel hosts run the system's {program}, which is not installed"
    ))
    .hint(format!(
        "Debian package {package}; or start the lab with --embedded"
    )))
}

/// A program that runs inside a kernel host.
pub(crate) struct Inside {
    child: Child,
    out: Option<JoinHandle<String>>,
    err: Option<JoinHandle<String>>,
    deadline: Instant,
    longest: Duration,
    /// True once it has written more than [`MOST_TEXT`] on one of its outputs.
    full: Arc<AtomicBool>,
}

/// The result of a program.
pub(crate) struct Ended {
    /// Its exit code, or what ended it.
    pub(crate) code: Result<i32, End>,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// End of a program without an exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// A signal of others.
    Signal,
    /// This time was over.
    Time(Duration),
    /// It has written more than [`MOST_TEXT`].
    Output,
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Signal => write!(f, "a signal"),
            Self::Time(limit) => write!(f, "its limit of {} s", limit.as_secs_f64()),
            Self::Output => write!(f, "its limit of {} MiB of output", MOST_TEXT >> 20),
        }
    }
}

/// Limit of octets on one output of a program.
pub(crate) const MOST_TEXT: u64 = 1 << 20;

/// Reads the text of a pipe up to the limit, and notes when that is reached.
fn text_of(
    mut pipe: impl io::Read + Send + 'static,
    full: &Arc<AtomicBool>,
) -> io::Result<JoinHandle<String>> {
    let full = Arc::clone(full);
    threads::spawn(move || {
        let mut text = Vec::new();
        let _ = pipe.by_ref().take(MOST_TEXT).read_to_end(&mut text);
        // A program whose output is not read would wait until it is ended.
        if io::copy(&mut pipe.take(1), &mut io::sink()).is_ok_and(|more| more > 0) {
            full.store(true, Ordering::Relaxed);
        }
        String::from_utf8_lossy(&text).into_owned()
    })
}

impl Inside {
    /// Starts `argv` inside `node` of the lab; it ends after `longest` at the latest.
    pub(crate) fn start(
        lab: &str,
        node: &str,
        argv: &[String],
        longest: Duration,
    ) -> io::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["exec", "--lab", lab, node, "--"])
            .args(argv)
            // Ctrl-C goes to this command first: see `interrupt`.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let (out, err) = (child.stdout.take(), child.stderr.take());
        let full = Arc::<AtomicBool>::default();
        let readers = out.map(|out| text_of(out, &full)).transpose();
        let readers =
            readers.and_then(|out| Ok((out, err.map(|err| text_of(err, &full)).transpose()?)));
        let (out, err) = readers.inspect_err(|_| {
            // Without readers it might wait for ever.
            let _ = force::kill_group(child.id()).and_then(|()| child.wait());
        })?;
        let deadline = Instant::now() + longest;
        Ok(Self {
            child,
            out,
            err,
            deadline,
            longest,
            full,
        })
    }

    /// Asks the program to end with its results so far, within `longest`.
    pub(super) fn interrupt(&mut self, longest: Duration) {
        // The program may have ended.
        let _ = force::interrupt_group(self.child.id());
        self.deadline = self.deadline.min(Instant::now() + longest);
    }

    /// The result; `None` while the program runs.
    pub(crate) fn poll(&mut self) -> io::Result<Option<Ended>> {
        let full = self.full.load(Ordering::Relaxed);
        let code = match self.child.try_wait()? {
            Some(_) if full => Err(End::Output),
            Some(status) => status.code().ok_or(End::Signal),
            None if Instant::now() < self.deadline && !full => return Ok(None),
            None => {
                force::kill_group(self.child.id())?;
                self.child.wait()?;
                // Its children may keep the pipes open, so do not wait for end of file.
                (self.out, self.err) = (None, None);
                Err(match full {
                    true => End::Output,
                    false => End::Time(self.longest),
                })
            }
        };
        let text = |reader: Option<JoinHandle<String>>| {
            reader
                .and_then(|reader| reader.join().ok())
                .unwrap_or_default()
        };
        let (out, err) = (text(self.out.take()), text(self.err.take()));
        Ok(Some(Ended { code, out, err }))
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            // The program goes with the command that has entered the host.
            let _ = force::kill_group(self.child.id());
            let _ = self.child.wait();
        }
    }
}
