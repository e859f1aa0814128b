//! The socket service: programs of the machine use the ATM service of hosts.
//!
//! **Purpose.** Each host of a running lab has a Unix socket, `RUNTIME/LAB/atm/HOST.sock`, to which programs connect.
//! [`aerostat_proto::socket`] has the messages, [`aerostat_node::host::sockets`] decides about them. This module
//! has what belongs to the operating system: connections, descriptors, and the moving of PDUs.
//!
//! **Objects and owners.** [`SocketService`] owns one [`Door`] for each host, one [`Session`] for each connection, and
//! one [`Pipe`] for each ATM socket. A pipe is a pair of connected `SOCK_SEQPACKET` sockets: the program has one end,
//! the lab has the other, and one packet is one PDU. So `read`, `write`, `poll`, `dup`, `fork` and the passing of
//! descriptors are those of the kernel. The machine knows a pipe by the reference of its socket.
//!
//! **Order of a turn.** Connections are accepted, then requests are read, then PDUs: a bounded number from each
//! descriptor, those with more in the next turn. PDUs are read only while the adapter takes them
//! ([`SocketLayer::asks_to_write`](aerostat_node::host::sockets::SocketLayer::asks_to_write)); otherwise the
//! program's `write` blocks. Several PDUs are read with one call, and those of one length go through the network as a
//! train ([`Sdus`]).
//!
//! **Ends.** The lab closes its end of a pipe when the call has ended, after it has written what had arrived and read
//! what the program had written, because a close with unread packets would cost the program the last PDUs. A program
//! that does not read keeps at most [`KEPT_PDUS`] PDUs or [`KEPT_OCTETS`] octets here beyond what its descriptor holds;
//! further PDUs are dropped and counted.
//!
//! **Who may connect.** The user of the lab, and members of the group that the lab file names (`group.rs`). The
//! directories above the sockets are closed to others. Each connection is checked, too, as at the control socket,
//! because a descriptor of the directory, or a mode that was changed by hand, passes the directories.
//!
//! **Trust.** A program is not trusted. A message that cannot be decoded is answered and counted; the session is closed
//! after [`BAD`] of them. Answers that a program does not read stop the reading of its requests. A reference is used
//! only by sessions that own it, which the machine checks.
//!
//! **Bounds.** [`HOSTS`] hosts with a socket, [`SESSIONS`] sessions, descriptors as the process may have; each limit is
//! an error with its number. If all sessions are taken, a process with many of them loses an idle one to a process that
//! has fewer, so no program keeps the others out.

mod group;
mod packets;
mod pipe;
mod session;
#[cfg(test)]
mod tests;

use crate::seqpacket::{Door, Frames};
use crate::source::{self, Turn};
use crate::world::World;
use aerostat_lab::model::{Lab, NodeId, NodeKind};
use aerostat_node::atm::Sdus;
use aerostat_node::host::sockets::{Input, ToPrograms};
use aerostat_proto::socket::{Errno, SocketRef};
use aerostat_proto::{Duration, Instant};
use aerostat_wire::counted;
pub use group::exists as has_group;
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use nix::unistd::Gid;
use packets::{Batch, SocketId};
use pipe::{Delivered, Pipe};
use rustix::fd::{AsFd as _, AsRawFd as _};
use rustix::process::{Resource, getrlimit};
use session::Session;
use slab::Slab;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;

/// Limit of hosts whose service has a socket: each costs a descriptor.
pub(crate) const HOSTS: usize = 1000;
/// Limit of sessions of a lab.
const SESSIONS: usize = 256;
/// Connections accepted in one turn from one door.
const TAKEN: usize = 16;
/// Requests read in one turn from one session.
const REQUESTS: usize = 64;
/// PDUs read in one turn from one socket.
const PDUS: usize = 64;
/// Messages that cannot be decoded, after which a session is closed.
const BAD: u32 = 16;
/// PDUs that are kept for a program that does not read.
const KEPT_PDUS: usize = 512;
/// Octets of such PDUs.
const KEPT_OCTETS: usize = 256 * 1024;
/// Pause after the operating system had no descriptor for a connection.
const AGAIN: Duration = Duration::from_millis(250);
/// Directory of the sockets in the lab's directory.
pub(crate) const DIRECTORY: &str = "atm";

/// The socket of a host.
#[derive(Debug)]
struct HostDoor {
    node: NodeId,
    door: Door,
    /// How often the service of the host had started when the sessions began; `None` while it does not run.
    life: Option<u32>,
}

/// Source behind a token of the poller.
#[derive(Debug)]
enum Source {
    Session(Session),
    Pipe(Pipe),
}

/// Counts of the service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    /// Sessions that have begun.
    pub(crate) sessions: u64,
    /// Sessions that were refused, because there were too many.
    pub(crate) refused: u64,
    /// Connections of other users, which were refused.
    pub(crate) strangers: u64,
    /// Idle sessions of a process with many that were closed for another process.
    pub(crate) displaced: u64,
    /// Requests of all sessions.
    pub(crate) requests: u64,
    /// Messages that could not be decoded.
    pub(crate) bad: u64,
    /// How often the operating system had no descriptor.
    pub(crate) exhausted: u64,
}

/// The socket service of all hosts of a lab. See the documentation of this module.
#[derive(Debug)]
pub(crate) struct SocketService {
    doors: Vec<HostDoor>,
    /// The group whose members may connect, too.
    group: Option<u32>,
    sources: Slab<Source>,
    /// Sources of sessions, by their number.
    sessions: BTreeMap<u32, usize>,
    next_session: u32,
    /// Sources of pipes, by host and socket.
    pipes: BTreeMap<(NodeId, SocketRef), usize>,
    /// Sockets by the program's end.
    shown: BTreeMap<SocketId, (NodeId, SocketRef)>,
    /// Doors and sources that may have something.
    knocked: BTreeSet<usize>,
    ready: BTreeSet<usize>,
    /// Doors with a connection for which there was no descriptor, and when they are tried again.
    turned_away: BTreeSet<usize>,
    again_at: Option<Instant>,
    first_token: usize,
    pub(crate) counters: Counters,
    /// For messages of sessions.
    buffer: Vec<u8>,
    /// For PDUs.
    batch: Batch,
}

impl source::Source for SocketService {
    fn takes_part(&self) -> bool {
        !self.sources.is_empty()
    }

    fn ready(&mut self, distance: usize) {
        match distance.checked_sub(self.doors.len()) {
            None => self.knocked.insert(distance),
            Some(source) => self.ready.insert(source),
        };
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.again_at
    }

    /// Moves everything that may be moved.
    fn turn(&mut self, turn: &mut Turn<'_>) -> bool {
        let (registry, world, now) = (turn.registry, &mut *turn.world, turn.now);
        if !self.sources.is_empty() {
            self.look_for_crashes(world);
        }
        if self.again_at.take_if(|at| *at <= now).is_some() {
            self.knocked.append(&mut self.turned_away);
        }
        let mut more = self.accept(registry, world, now);
        let ready = std::mem::take(&mut self.ready);
        for at in ready {
            let again = match self.sources.get(at) {
                Some(Source::Session(_)) => self.serve(registry, at, world, now),
                Some(Source::Pipe(_)) => self.pump(at, world, now),
                _ => false,
            };
            if again {
                self.ready.insert(at);
            }
            more |= again;
        }
        more
    }
}

impl SocketService {
    /// Opens the sockets of all hosts in the lab's directory; the tokens begin with `first`. The second value tells
    /// what is left out.
    ///
    /// # Errors
    /// If a socket cannot be opened.
    pub(crate) fn open(
        lab: &Lab,
        directory: &Path,
        registry: &Registry,
        first: Token,
    ) -> io::Result<(Self, Option<String>)> {
        let given = lab.sockets_group.as_deref();
        let given = given.map(|name| Ok::<_, io::Error>((group::find(name)?, name)));
        let given = given.transpose()?;
        let (doors, note) = open_doors(lab, &directory.join(DIRECTORY), given, registry, first)?;
        let service = Self {
            group: given.map(|(group, _)| group.as_raw()),
            sources: Slab::new(),
            sessions: BTreeMap::new(),
            next_session: 0,
            pipes: BTreeMap::new(),
            shown: BTreeMap::new(),
            knocked: BTreeSet::new(),
            ready: BTreeSet::new(),
            turned_away: BTreeSet::new(),
            again_at: None,
            first_token: first.0 + doors.len(),
            counters: Counters::default(),
            buffer: vec![0; 1 << 16],
            batch: Batch::new(),
            doors,
        };
        Ok((service, note))
    }

    /// True if a turn has something to do.
    pub(crate) fn is_ready(&self) -> bool {
        !self.ready.is_empty() || !self.knocked.is_empty()
    }

    /// Open sessions, sockets.
    pub(crate) fn open_now(&self) -> (usize, usize) {
        (self.sessions.len(), self.pipes.len())
    }

    /// Hosts whose service has crashed, was restarted, or that are off: their descriptors are closed.
    fn look_for_crashes(&mut self, world: &World) {
        for place in 0..self.doors.len() {
            let HostDoor { node, life, .. } = self.doors[place];
            if life.is_some() && life != life_of(world, node) {
                self.doors[place].life = None;
                self.close_all(node);
            }
        }
    }

    fn close_all(&mut self, node: NodeId) {
        let of = |source: &Source| match source {
            Source::Session(session) => session.node,
            Source::Pipe(pipe) => pipe.node,
        };
        let all = self.sources.iter();
        let all = all.filter(|(_, source)| of(source) == node);
        let all: Vec<usize> = all.map(|(at, _)| at).collect();
        all.into_iter().for_each(|at| self.remove(at));
    }

    fn accept(&mut self, registry: &Registry, world: &mut World, now: Instant) -> bool {
        let mut more = false;
        for place in std::mem::take(&mut self.knocked) {
            for taken in 0..=TAKEN {
                if taken == TAKEN {
                    self.knocked.insert(place);
                    more = true;
                    break;
                }
                match self.doors[place].door.accept() {
                    Ok(Some(frames)) => self.begin(registry, place, frames, world, now),
                    Ok(None) => break,
                    Err(_) => {
                        // The connection still waits, and the poller does not report it again.
                        self.counters.exhausted += 1;
                        self.turned_away.insert(place);
                        self.again_at.get_or_insert(now + AGAIN);
                        break;
                    }
                }
            }
        }
        more
    }

    /// A program has connected.
    fn begin(
        &mut self,
        registry: &Registry,
        place: usize,
        frames: Frames,
        world: &mut World,
        now: Instant,
    ) {
        if !frames.may_use(self.group) {
            self.counters.strangers += 1;
            let why = "the lab belongs to another user, who may let a group use it: sockets: { group: NAME }";
            return session::turn_away(&frames, Errno::NotAllowed, why.to_owned());
        }
        let node = self.doors[place].node;
        let running = life_of(world, node);
        if running.is_none() || !self.make_room(frames.process(), world, now) {
            let why = match running {
                None => "the host is off, or its socket service has crashed".to_owned(),
                Some(_) => format!("the lab has {SESSIONS} sessions, which is its limit"),
            };
            self.counters.refused += 1;
            return session::turn_away(&frames, Errno::TooManyFiles, why);
        }
        self.doors[place].life = running;
        let number = self.next_session;
        self.next_session = self.next_session.wrapping_add(1);
        let fd = frames.as_fd().as_raw_fd();
        let session = Session::new(number, node, frames, self.counters.requests);
        let at = self.sources.insert(Source::Session(session));
        if self.register(registry, at, fd).is_err() {
            self.counters.exhausted += 1;
            self.remove(at);
            return;
        }
        self.counters.sessions += 1;
        self.sessions.insert(number, at);
        self.ready.insert(at);
    }

    fn register(&self, registry: &Registry, at: usize, fd: i32) -> io::Result<()> {
        let token = Token(self.first_token + at);
        registry.register(
            &mut SourceFd(&fd),
            token,
            Interest::READABLE | Interest::WRITABLE,
        )
    }

    /// Closes the descriptor of a source, and forgets it. A closed descriptor leaves the poller by itself.
    fn remove(&mut self, at: usize) {
        match self.sources.try_remove(at) {
            Some(Source::Session(session)) => {
                self.sessions.remove(&session.number);
            }
            Some(Source::Pipe(pipe)) => {
                self.pipes.remove(&(pipe.node, pipe.socket));
                self.shown.remove(&pipe.id);
            }
            None => return,
        }
        self.ready.remove(&at);
    }

    /// Handles what the machine of a host has for programs.
    pub(crate) fn take(
        &mut self,
        registry: &Registry,
        (node, what): (NodeId, ToPrograms),
        world: &mut World,
        now: Instant,
    ) {
        match what {
            ToPrograms::Answer {
                session,
                number,
                answer,
                descriptor,
            } => {
                let with = descriptor.map(|socket| (node, socket));
                self.answer(registry, (session, number), answer, with, world, now);
            }
            ToPrograms::Offer { socket, offer } => {
                use aerostat_proto::split::codec::Message as _;
                if let Some(pipe) = self.pipe((node, socket)) {
                    // A program that does not read its offers lets them pass.
                    let _ = packets::write(&pipe.ours, &offer.encode());
                }
            }
            ToPrograms::Deliver {
                socket,
                sdus,
                local,
            } => self.deliver((node, socket), sdus, local, world, now),
            ToPrograms::Room { socket } => {
                self.ready.extend(self.pipes.get(&(node, socket)));
            }
            ToPrograms::End { socket } => {
                if let Some(pipe) = self.pipe((node, socket)) {
                    pipe.ends = true;
                }
                self.ready.extend(self.pipes.get(&(node, socket)));
            }
        }
    }

    /// Gives PDUs to a program, and tells the machine how many are lost; of PDUs that were written inside the host,
    /// also that there is room for the next ones.
    fn deliver(
        &mut self,
        (node, socket): (NodeId, SocketRef),
        sdus: Sdus,
        local: bool,
        world: &mut World,
        now: Instant,
    ) {
        let at = self.pipes.get(&(node, socket));
        let source = at.and_then(|at| self.sources.get_mut(*at));
        let Delivered { taken, lost } = match source {
            Some(Source::Pipe(pipe)) => pipe.deliver(&sdus, &mut self.batch),
            _ => Delivered {
                lost: (sdus.count(), sdus.octets()),
                ..Delivered::default()
            },
        };
        self.batch.recycle(sdus);
        if lost.0 > 0 {
            let pdus = lost.0 as u64;
            world.program(node, Input::Unread { socket, pdus }, now);
        }
        let (pdus, octets) = (taken.0 + lost.0, taken.1 + lost.1);
        if local && pdus > 0 {
            let taken = Input::Taken {
                socket,
                pdus,
                octets,
            };
            world.program(node, taken, now);
        }
    }

    fn pipe(&mut self, of: (NodeId, SocketRef)) -> Option<&mut Pipe> {
        match self.sources.get_mut(*self.pipes.get(&of)?)? {
            Source::Pipe(pipe) => Some(pipe),
            Source::Session(_) => None,
        }
    }
}

/// Opens the doors of as many hosts as may have one, and tells how many have none.
fn open_doors(
    lab: &Lab,
    directory: &Path,
    given: Option<(Gid, &str)>,
    registry: &Registry,
    first: Token,
) -> io::Result<(Vec<HostDoor>, Option<String>)> {
    let hosts = lab.nodes();
    let hosts = hosts.filter(|(_, node)| matches!(node.kind, NodeKind::Host(_)));
    let (mut doors, mut missing, mut why) = (Vec::new(), 0_usize, String::new());
    // Most descriptors are for the sockets of programs, and for the lab's other clients.
    let descriptors = getrlimit(Resource::Nofile).current;
    let descriptors = descriptors.and_then(|most| usize::try_from(most).ok());
    let most = descriptors.map_or(HOSTS, |most| (most / 4).min(HOSTS));
    for (node, model) in hosts {
        if doors.is_empty() {
            let _ = std::fs::remove_dir_all(directory);
            std::fs::create_dir(directory)?;
            if let (Some((gid, name)), Some(lab)) = (given, directory.parent()) {
                group::open_way(lab, directory, gid, name)?;
            }
        }
        let path = directory.join(format!("{}.sock", model.name));
        let door = match doors.len() < most {
            true => Door::open(&path).map_err(|error| error.to_string()),
            false => Err(format!(
                "{most} have one, which is the limit: {HOSTS}, or a quarter of 'ulimit -n'"
            )),
        };
        match door {
            Ok(door) => {
                if let Some((gid, name)) = given {
                    group::give_socket(&path, gid, name)?;
                }
                let token = Token(first.0 + doors.len());
                let fd = door.as_fd().as_raw_fd();
                registry.register(&mut SourceFd(&fd), token, Interest::READABLE)?;
                doors.push(HostDoor {
                    node,
                    door,
                    life: None,
                });
            }
            Err(error) => {
                missing += 1;
                why = error;
            }
        }
    }
    let note = (missing > 0).then(|| {
        let hosts = counted(missing, "host has", "hosts have");
        format!("{hosts} no socket service for programs: {why}")
    });
    Ok((doors, note))
}

/// How often the service of a host has started; `None` while it does not run.
fn life_of(world: &World, node: NodeId) -> Option<u32> {
    let station = world.node(node)?.as_station()?;
    station.host().sockets_life()
}
