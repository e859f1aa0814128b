//! The lab's end of the helper.

use super::messages::{Ended, Reply, Request, Setup};
use super::wire::Wire;
use super::{HELPER_ARGUMENT, Owned, cables};
use crate::daemons::Sight;
use crate::supervisor::{die_with_parent, ends_within};
use aerostat_proto::split::codec::Message as _;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A helper that does not answer a request about a process within this time has died or is stopped, and gets no further
/// requests.
const PATIENCE: Duration = Duration::from_secs(5);
/// The same for cables; each of the two ends may take its time.
const CABLES: Duration = cables::PATIENCE.saturating_mul(3);
/// How long the helper may take to end.
const ENDING: Duration = Duration::from_secs(2);

/// A daemon at which the helper has looked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Looked {
    /// The process runs, or there is no process.
    Runs(Option<Sight>),
    /// The process has ended.
    Ended(Ended),
}

/// A running helper.
#[derive(Debug)]
pub(crate) struct Helper {
    child: Option<Mutex<Child>>,
    daemons: Mutex<Wire>,
    cables: Mutex<Wire>,
}

impl Helper {
    /// Starts the helper; `program` is this command itself. Call it from the main thread, because the parent death
    /// signal belongs to the thread that spawned.
    ///
    /// # Errors
    /// If it cannot be started, or does not accept what the lab owns.
    pub(crate) fn start(program: &Path, owned: &Owned<'_>) -> io::Result<Self> {
        let (here, there) = Wire::pair()?;
        let mut command = Command::new(program);
        // The helper has a process group of its own, because Ctrl-C is for the lab, which ends in order.
        let command = die_with_parent(command.arg(HELPER_ARGUMENT).process_group(0));
        let command = command.stdin(Stdio::from(OwnedFd::from(there)));
        let child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Self::with(here, Some(child), owned)
    }

    /// A helper that is a thread of this process.
    #[cfg(test)]
    pub(crate) fn in_thread(owned: &Owned<'_>) -> io::Result<Self> {
        let (here, there) = Wire::pair()?;
        std::thread::spawn(move || super::process::serve(&there, &|_, _| {}));
        Self::with(here, None, owned)
    }

    /// Tells the helper at the other end of `daemons` what the lab owns.
    pub(super) fn with(daemons: Wire, child: Option<Child>, owned: &Owned<'_>) -> io::Result<Self> {
        let (cables, theirs) = Wire::pair()?;
        daemons.set_patience(PATIENCE)?;
        cables.set_patience(CABLES)?;
        let helper = Self {
            child: child.map(Mutex::new),
            daemons: Mutex::new(daemons),
            cables: Mutex::new(cables),
        };
        helper.set_up(owned, &theirs)?;
        Ok(helper)
    }

    fn set_up(&self, owned: &Owned<'_>, cables: &Wire) -> io::Result<()> {
        let wire = locked(&self.daemons);
        let say = |what: Setup, fd: Option<BorrowedFd<'_>>| wire.send(&what.encode(), fd);
        if !owned.stations.is_empty() {
            say(Setup::Cables, Some(cables.as_fd()))?;
        }
        for host in &owned.hosts {
            let elan = host.elan;
            say(Setup::Host { elan }, Some(host.namespace.as_fd()))?;
        }
        for station in &owned.stations {
            let (port, mac, host) = (station.port.to_owned(), station.mac, station.host);
            let namespace = Some(station.namespace.as_fd());
            say(Setup::Station { port, mac, host }, namespace)?;
        }
        if let Some((program, socket)) = owned.daemons {
            let [program, socket] =
                [program, socket].map(|path| path.as_os_str().as_bytes().into());
            say(Setup::Daemons { program, socket }, None)?;
        }
        for &(role, node) in &owned.seats {
            let node = node.to_owned();
            say(Setup::Seat { role, node }, None)?;
        }
        say(Setup::Seal, None)?;
        match answer(&wire)? {
            Reply::Done => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    /// Process id of the helper.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(|child| locked(child).id())
    }

    /// False once the helper has ended or has been abandoned.
    pub(crate) fn serves(&self) -> bool {
        let wire = locked(&self.daemons);
        let mut ends = [PollFd::new(&*wire, PollFlags::empty())];
        let now = Timespec::default();
        poll(&mut ends, Some(&now)) == Ok(0)
    }

    /// Starts the daemon of a seat; returns its process id.
    ///
    /// # Errors
    /// Why the daemon cannot be started.
    pub(crate) fn start_daemon(&self, seat: u32) -> io::Result<u32> {
        match ask(&self.daemons, Request::Start { seat })? {
            Reply::Process { pid } => Ok(pid),
            other => Err(unexpected(&other)),
        }
    }

    /// Kills the daemon of a seat, if it runs.
    pub(crate) fn kill_daemon(&self, seat: u32) {
        let _ = ask(&self.daemons, Request::Kill { seat });
    }

    /// How the daemon of a seat has ended, or what it does; `Runs(None)` if it cannot be seen.
    ///
    /// # Errors
    /// If the helper has ended.
    pub(crate) fn look_at_daemon(&self, seat: u32) -> io::Result<Looked> {
        match ask(&self.daemons, Request::Look { seat })? {
            Reply::Runs { state: 0, .. } => Ok(Looked::Runs(None)),
            Reply::Runs { state, cpu_ms } => {
                let cpu = Duration::from_millis(cpu_ms);
                Ok(Looked::Runs(Some(Sight { state, cpu })))
            }
            Reply::Ended { status, words } => Ok(Looked::Ended(Ended::of(status, words))),
            other => Err(unexpected(&other)),
        }
    }

    /// Plugs a station into a host. Returns whether its cable is there now, and how long the cable was without carrier,
    /// or the error.
    pub(crate) fn plug(&self, station: u32, host: u32) -> (bool, io::Result<Duration>) {
        match ask(&self.cables, Request::Plug { station, host }) {
            Ok(Reply::Plugged { ms }) => (true, Ok(Duration::from_millis(ms.into()))),
            Ok(Reply::Stuck { why }) => (true, Err(io::Error::other(why))),
            Ok(other) => (false, Err(unexpected(&other))),
            Err(error) => (false, Err(error)),
        }
    }

    /// Makes a station announce its place.
    pub(crate) fn speak(&self, station: u32) {
        let _ = ask(&self.cables, Request::Speak { station });
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        locked(&self.cables).close();
        locked(&self.daemons).close();
        if let Some(child) = &self.child {
            // A stopped helper ends with this process.
            ends_within(&mut locked(child), ENDING);
        }
    }
}

fn locked<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    // The locked values have no state that a panic could leave inconsistent.
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sends a request and waits for the reply. After an error the connection is closed: a late answer must not be taken
/// for the next one.
fn ask(wire: &Mutex<Wire>, request: Request) -> io::Result<Reply> {
    let wire = locked(wire);
    let reply = (wire.send(&request.encode(), None)).and_then(|()| answer(&wire));
    reply.map_err(|error| {
        wire.close();
        let text = format!("the lab's privileged helper is gone ({error}): start the lab again");
        io::Error::new(error.kind(), text)
    })
}

fn answer(wire: &Wire) -> io::Result<Reply> {
    let (octets, _) = (wire.receive()?).ok_or(io::Error::from(io::ErrorKind::UnexpectedEof))?;
    Reply::decode(&octets).map_err(|error| io::Error::other(error.to_string()))
}

fn unexpected(reply: &Reply) -> io::Error {
    match reply {
        Reply::Refused { why } => io::Error::other(why.clone()),
        other => io::Error::other(format!("the helper answered {other:?}")),
    }
}
