//! The helper's process.

use super::cables::{Cables, Host, Station};
use super::messages::{Ended, REQUEST_MAX, Reply, Request, Setup};
use super::stat;
use super::wire::Wire;
use crate::confine::keep_only;
use crate::daemons::DAEMON_ARGUMENT;
use crate::namespace::{NetNs, leave_network_by_right};
use crate::supervisor::die_with_parent;
use crate::threads::spawn_named;
use aerostat_proto::split::Role;
use aerostat_proto::split::codec::Message as _;
use rustix::fd::{AsFd as _, OwnedFd};
use rustix::thread::CapabilitySet;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStderr, Command, Stdio};

/// Longest name of an interface, octets.
const INTERFACE_MAX: usize = 15;
/// Limit of octets kept of a dead daemon's output on standard error.
const WORDS: u64 = 400;

/// The command's action under [`super::HELPER_ARGUMENT`]: it serves the lab that started it, over its standard input,
/// until the lab ends.
///
/// # Errors
/// If standard input is not such a socket.
pub fn run_helper() -> io::Result<()> {
    let socket = io::stdin().as_fd().try_clone_to_owned()?;
    let nothing = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&nothing)?;
    serve(&socket.into(), &|cables, daemons| {
        if daemons {
            // They inherit it: one empty network for all of them.
            leave_network_by_right();
        }
        let keep = rights(cables, daemons);
        // `ip` and the daemons are programs; they get no more rights than these.
        keep_only(keep, keep);
        let _ = rustix::thread::set_no_new_privs(true);
    })
}

/// The capabilities that are needed to move cables, and to start and end daemons.
fn rights(cables: bool, daemons: bool) -> CapabilitySet {
    let mut rights = CapabilitySet::empty();
    if cables {
        // To enter namespaces, and to move interfaces.
        rights |= CapabilitySet::SYS_ADMIN | CapabilitySet::NET_ADMIN;
    }
    if daemons {
        // Daemons become another user, and the helper has to be able to kill them.
        rights |= CapabilitySet::SETUID | CapabilitySet::SETGID | CapabilitySet::KILL;
    }
    rights
}

/// Serves until the lab closes the socket. This must run on the process's main thread, because daemons end with the
/// thread that started them. `seal` is called before the first request with two values: whether there are cables, and
/// whether there are daemons.
///
/// # Errors
/// If the lab sends an invalid message before `Seal`.
pub(super) fn serve(lab: &Wire, seal: &dyn Fn(bool, bool)) -> io::Result<()> {
    let mut setting_up = SettingUp::default();
    loop {
        let Some((octets, fd)) = lab.receive()? else {
            return Ok(());
        };
        let said = Setup::decode(&octets).map_err(|error| io::Error::other(error.to_string()))?;
        if said == Setup::Seal {
            break;
        }
        setting_up.own(said, fd)?;
    }
    let SettingUp {
        cables,
        plug,
        mut daemons,
    } = setting_up;
    seal(plug.is_some(), !daemons.seats.is_empty());
    if let Some(wire) = plug {
        spawn_named("cables", move || serve_cables(&wire, cables))?;
    }
    lab.send(&Reply::Done.encode(), None)?;
    while let Some((octets, _)) = lab.receive()? {
        let reply = understood(&octets, |request| daemons.answer(request));
        lab.send(&reply.encode(), None)?;
    }
    Ok(())
}

fn serve_cables(wire: &Wire, mut cables: Cables) {
    while let Ok(Some((octets, _))) = wire.receive() {
        let reply = understood(&octets, |request| cables.answer(request));
        if wire.send(&reply.encode(), None).is_err() {
            return;
        }
    }
}

/// The answer to a packet. A descriptor that came with it has been closed.
pub(super) fn understood(octets: &[u8], answer: impl FnOnce(Request) -> Reply) -> Reply {
    match Request::decode(octets) {
        Ok(request) if octets.len() <= REQUEST_MAX => answer(request),
        _ => refused("that is no request"),
    }
}

fn refused(why: impl Into<String>) -> Reply {
    Reply::Refused { why: why.into() }
}

/// Property of the lab, as far as it has told it.
#[derive(Default)]
struct SettingUp {
    cables: Cables,
    plug: Option<Wire>,
    daemons: Daemons,
}

impl SettingUp {
    fn own(&mut self, said: Setup, fd: Option<OwnedFd>) -> io::Result<()> {
        let fd = || fd.ok_or(io::Error::other("a descriptor is missing"));
        match said {
            Setup::Cables => self.plug = Some(fd()?.into()),
            Setup::Daemons { program, socket } => {
                self.daemons.program = OsString::from_vec(program);
                self.daemons.socket = OsString::from_vec(socket);
            }
            Setup::Seat { role, node } => self.daemons.seats.push(Seat {
                role,
                node,
                child: None,
            }),
            Setup::Host { elan } => self.cables.hosts.push(Host {
                namespace: NetNs::from(fd()?),
                elan,
            }),
            Setup::Station { port, mac, host } => {
                let known = self.cables.hosts.len();
                if port.is_empty() || port.len() > INTERFACE_MAX || host as usize >= known {
                    return Err(io::Error::other(format!(
                        "station '{port}' is no such thing"
                    )));
                }
                self.cables.stations.push(Station {
                    namespace: NetNs::from(fd()?),
                    port,
                    mac,
                    host,
                });
            }
            Setup::Seal => {}
        }
        Ok(())
    }
}

/// The seat of a daemon.
struct Seat {
    role: Role,
    node: String,
    child: Option<Child>,
}

/// The daemons that were started.
#[derive(Default)]
struct Daemons {
    program: OsString,
    socket: OsString,
    seats: Vec<Seat>,
}

impl Daemons {
    fn answer(&mut self, request: Request) -> Reply {
        let (Request::Start { seat } | Request::Kill { seat } | Request::Look { seat }) = request
        else {
            return refused("this socket is for daemons");
        };
        let (program, socket) = (&self.program, &self.socket);
        let Some(seat) = self.seats.get_mut(seat as usize) else {
            return refused("no such seat");
        };
        match request {
            Request::Start { .. } => match seat.start(program, socket) {
                Ok(pid) => Reply::Process { pid },
                Err(error) => refused(format!("cannot be started: {error}")),
            },
            Request::Kill { .. } => {
                // Only `Look` reaps the process, so its id still belongs to it.
                if let Some(child) = &mut seat.child {
                    let _ = child.kill();
                }
                Reply::Done
            }
            _ => seat.look(),
        }
    }
}

impl Seat {
    fn start(&mut self, program: &OsString, socket: &OsString) -> io::Result<u32> {
        if self.child.is_some() {
            return Err(io::Error::other("it runs"));
        }
        let mut command = Command::new(program);
        command.arg0("aerostat");
        command.arg(DAEMON_ARGUMENT).arg(self.role.name());
        command.arg(socket).arg(&self.node);
        // The daemon has a process group of its own, because Ctrl-C is for the lab, which ends in order.
        let command = die_with_parent(command.stdin(Stdio::null()).process_group(0));
        // Its last output is read when it has died. It must not share our standard error, which it would keep open
        // after `up -d`.
        let child = command.stdout(Stdio::null()).stderr(Stdio::piped());
        let child = child.env_clear();
        let child = child.spawn()?;
        let pid = child.id();
        self.child = Some(child);
        Ok(pid)
    }

    fn look(&mut self) -> Reply {
        let Some(child) = &mut self.child else {
            return Reply::Runs {
                state: 0,
                cpu_ms: 0,
            };
        };
        match child.try_wait() {
            Ok(None) => stat::of(child.id()),
            Ok(Some(status)) => {
                let words = last_words(child.stderr.take());
                self.child = None;
                Ended { status, words }.reply()
            }
            Err(error) => refused(error.to_string()),
        }
    }
}

/// Processes do not outlive the lab.
impl Drop for Daemons {
    fn drop(&mut self) {
        for child in self.seats.iter_mut().filter_map(|seat| seat.child.as_mut()) {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The output on standard error of a process that has ended, in one line.
fn last_words(from: Option<ChildStderr>) -> String {
    let mut octets = Vec::new();
    if let Some(from) = from {
        // No other process has the other end.
        let _ = from.take(WORDS).read_to_end(&mut octets);
    }
    let text = String::from_utf8_lossy(&octets);
    match text.split_whitespace().collect::<Vec<_>>().join(" ") {
        words if words.is_empty() => words,
        words => format!(": {words}"),
    }
}
