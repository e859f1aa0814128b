//! Messages of a running lab to its caller: notices, the final report, and why it does not run.

use crate::detach::Ties;
use crate::namespace::Unprivileged;
use crate::runtime_dir::LabState;
use crate::story::Step;
use aerostat_lab::event::Names;
use aerostat_lab::report::RunReport;
use aerostat_lab::{Checked, Override};
use aerostat_proto::Instant;
use aerostat_wire::some_of;
use std::io;
use std::path::PathBuf;

/// Notices of a running lab for its caller.
#[derive(Debug)]
pub enum Notice<'a> {
    /// Information.
    Note(String),
    /// The interfaces, the sockets and the links are there, and the lab runs: its clients begin to join.
    Started,
    /// Not ready yet. The missing conditions have changed, or are still missing after a while.
    Waiting(&'a [String]),
    /// All interfaces are up, all clients have joined.
    Ready {
        /// The ties with the parent process, for a lab that has depended on it until now.
        ties: Option<&'a Ties>,
    },
    /// An event of the story, with the names for ATM addresses in its text.
    Event(&'a Step, &'a Names),
    /// The lab is releasing this number of calls.
    Stopping(usize),
    /// The loop begins a turn at this time of the lab: for measurements.
    Turn(Instant),
    /// The network has done the work of this turn, and everything for the kernel, for daemons and for peers is sent.
    /// The events of the turn follow.
    Served,
}

/// The final report of a lab.
#[derive(Debug)]
pub struct Report {
    /// The results at the time of the request to end.
    pub run: RunReport,
    /// Calls that could not be released in time.
    pub calls_left: usize,
    /// Of a lab with `capture:`, the octets of its recording, or why it is not complete.
    pub recording: Option<Result<u64, String>>,
    /// The lab at its end: it may have become that of another file.
    pub file: File,
}

/// Turns a report into the answer for clients.
pub type ToAnswer = fn(&Report) -> serde_json::Value;

/// A checked lab file, and the changes of its values that are part of it.
#[derive(Clone, Debug)]
pub struct File {
    /// The file as its user names it, for `ls`.
    pub name: String,
    /// The lab.
    pub checked: Checked,
    /// The changes by `--set`.
    pub set: Vec<Override>,
}

/// Why a lab does not run.
#[derive(Debug)]
pub enum UpError {
    /// The lab runs already.
    Running(Option<LabState>),
    /// Namespaces and TAPs are not available.
    Unprivileged(Unprivileged),
    /// Not ready in time; the list has the missing conditions.
    NotReady(Vec<String>),
    /// A link out of the lab cannot be opened, with the reason.
    Link(io::Error),
    /// A kernel host cannot follow a key of the lab file, with the place of the key and the reason.
    Key(io::Error),
    /// An interface of the node has a name that is taken, with the names of both.
    Taken(io::Error),
    /// The file for the links of `capture:` cannot be written.
    Recording(PathBuf, io::Error),
    /// The directory for the results cannot be made.
    Results(PathBuf, io::Error),
    /// The operating system refused an operation.
    Io(String, io::Error),
}

impl std::fmt::Display for UpError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Running(Some(state)) => {
                write!(
                    f,
                    "lab '{}' is running already (process {})",
                    state.name, state.pid
                )
            }
            Self::Running(None) => write!(f, "this lab is running already"),
            Self::Unprivileged(error) => write!(f, "no privilege for kernel hosts: {error}"),
            Self::NotReady(missing) => {
                write!(
                    f,
                    "the lab does not get ready: still waiting for {}",
                    some_of(missing)
                )
            }
            Self::Link(error) | Self::Key(error) | Self::Taken(error) => error.fmt(f),
            Self::Recording(file, error) => {
                write!(
                    f,
                    "the recording of 'capture:', {}: {error}",
                    file.display()
                )
            }
            Self::Results(directory, error) => write!(f, "--out {}: {error}", directory.display()),
            Self::Io(what, error) => write!(f, "{what}: {error}"),
        }
    }
}
impl std::error::Error for UpError {}

impl UpError {
    /// True if the system does not give this user the right.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::Unprivileged(_) => true,
            Self::Link(error) | Self::Io(_, error) => {
                error.kind() == io::ErrorKind::PermissionDenied
            }
            Self::Running(_)
            | Self::NotReady(_)
            | Self::Key(_)
            | Self::Taken(_)
            | Self::Recording(..)
            | Self::Results(..) => false,
        }
    }
}

impl From<io::Error> for UpError {
    fn from(error: io::Error) -> Self {
        Self::Io("the lab's loop".into(), error)
    }
}
