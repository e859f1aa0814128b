//! Sessions: connections of programs, with their requests and answers.

use super::packets::{self, Message, Sent, SocketId};
use super::{BAD, Pipe, REQUESTS, SESSIONS, SocketService, Source};
use crate::seqpacket::Frames;
use crate::world::World;
use aerostat_lab::model::NodeId;
use aerostat_node::host::sockets::Input;
use aerostat_proto::Instant;
use aerostat_proto::socket::{Answer, Errno, Failure, MESSAGE_MAX, Request, SocketRef, UserData};
use aerostat_proto::split::Numbered;
use aerostat_proto::split::codec::Message as _;
use aerostat_wire::DecodeError;
use aerostat_wire::counted;
use mio::Registry;
use rustix::fd::{AsFd as _, OwnedFd};
use std::collections::{BTreeMap, VecDeque};

/// An answer that waits, with its descriptor.
type Waiting = (Vec<u8>, Option<OwnedFd>);

/// A connection of a program.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) number: u32,
    pub(super) node: NodeId,
    frames: Frames,
    /// Answers for which there was no room. While there are any, no request is read.
    answers: VecDeque<Waiting>,
    /// Requests that have no answer yet.
    open: usize,
    bad: u32,
    /// The process that has connected.
    process: u32,
    /// Its requests so far, among those of all sessions: a session that was idle for long has a small number.
    used: u64,
}

/// Requests of a session without an answer, above which no further request is read.
const OPEN: usize = 1024;

impl Session {
    pub(super) fn new(number: u32, node: NodeId, frames: Frames, used: u64) -> Self {
        Self {
            process: frames.process(),
            used,
            number,
            node,
            frames,
            answers: VecDeque::new(),
            open: 0,
            bad: 0,
        }
    }

    /// Sends an answer, or keeps it; false if the program has gone.
    fn say(&mut self, packet: Vec<u8>, with: Option<OwnedFd>) -> bool {
        self.answers.push_back((packet, with));
        self.go_on()
    }

    /// Sends what waits; false if the program has gone.
    fn go_on(&mut self) -> bool {
        while let Some((packet, with)) = self.answers.front() {
            let with = with.as_ref().map(OwnedFd::as_fd);
            match packets::write_with(&self.frames, packet, with) {
                Sent::Gone => drop(self.answers.pop_front()),
                Sent::Full => break,
                Sent::Closed => return false,
            }
        }
        true
    }
}

/// Use of a session, for the choice of the one that makes room: its source, its process, when it was used last; whether
/// it waits for an answer.
pub(super) type Used = (usize, u32, u64, bool);

/// The session that is closed for a program of this process, if there is no room for another one: that which was idle
/// for the longest time, of the process with most sessions, if this process has at least two more than the other one.
/// So no program keeps others out, and a process with one session never loses it.
pub(super) fn makes_room(all: &[Used], newcomer: u32) -> Option<usize> {
    let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
    for (_, process, ..) in all {
        *counts.entry(*process).or_default() += 1;
    }
    let own = counts.get(&newcomer).copied().unwrap_or_default();
    let (greedy, most) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    if most < own + 2 {
        return None;
    }
    let idle = all
        .iter()
        .filter(|(_, process, _, waits)| *process == greedy && !waits);
    idle.min_by_key(|(_, _, used, _)| *used).map(|(at, ..)| *at)
}

/// Tells a program that it cannot have a session.
pub(super) fn turn_away(frames: &Frames, errno: Errno, why: String) {
    let failure = failed(errno, "", 0, why);
    let _ = packets::write(frames, &packet(0, failure));
}

fn packet(number: u16, message: Answer) -> Vec<u8> {
    Numbered { number, message }.encode()
}

fn failed(errno: Errno, field: &str, offset: usize, text: impl Into<String>) -> Answer {
    Answer::Failed(Failure {
        errno: errno as u16,
        cause: 0,
        field: field.to_owned(),
        offset: u16::try_from(offset).unwrap_or(u16::MAX),
        text: text.into(),
        user_data: UserData::default(),
    })
}

/// The number of a message that cannot be decoded, as far as it has one.
fn number_of(packet: &[u8]) -> u16 {
    packet
        .first_chunk()
        .map_or(0, |octets| u16::from_be_bytes(*octets))
}

impl SocketService {
    /// Reads requests of a session; true if it may have more.
    pub(super) fn serve(
        &mut self,
        registry: &Registry,
        at: usize,
        world: &mut World,
        now: Instant,
    ) -> bool {
        for _ in 0..REQUESTS {
            let Some(Source::Session(session)) = self.sources.get_mut(at) else {
                return false;
            };
            if !session.go_on() {
                self.end_session(at, world, now);
                return false;
            }
            if !session.answers.is_empty() || session.open >= OPEN {
                return false;
            }
            let (number, node) = (session.number, session.node);
            let (read, shown) =
                packets::read_with(&session.frames, &mut self.buffer[..=MESSAGE_MAX]);
            let length = match read {
                Message::Octets(length) => length,
                Message::Nothing => return false,
                Message::End => {
                    self.end_session(at, world, now);
                    return false;
                }
            };
            session.open += 1;
            session.used = self.counters.requests;
            self.counters.requests += 1;
            if !self.request(registry, at, (node, number), (length, shown), world, now) {
                return false;
            }
        }
        true
    }

    /// Handles the request in the buffer; false if the session ends.
    fn request(
        &mut self,
        registry: &Registry,
        at: usize,
        (node, session): (NodeId, u32),
        (length, shown): (usize, Option<OwnedFd>),
        world: &mut World,
        now: Instant,
    ) -> bool {
        let got = self.buffer.get(..length.min(MESSAGE_MAX));
        let got = got.unwrap_or_default();
        let request = match length {
            ..=MESSAGE_MAX => Numbered::<Request>::decode(got),
            _ => Err(DecodeError::value("length", 0, length as u32)),
        };
        let error = match request {
            Ok(Numbered { number, message }) => {
                let shown = shown.and_then(SocketId::of);
                let shown = shown.and_then(|id| self.shown.get(&id));
                let shown = shown.filter(|(of, _)| *of == node);
                let input = Input::Request {
                    session,
                    number,
                    request: message,
                    shown: shown.map(|(_, socket)| *socket),
                };
                world.program(node, input, now);
                return true;
            }
            Err(error) => error,
        };
        let (tag, field, offset) = (number_of(got), error.field, error.offset);
        let answer = failed(Errno::Invalid, field, offset, error.to_string());
        self.counters.bad += 1;
        self.answer(registry, (session, tag), answer, None, world, now);
        let Some(Source::Session(session)) = self.sources.get_mut(at) else {
            return false;
        };
        session.bad += 1;
        let ends = session.bad >= BAD;
        if ends {
            self.end_session(at, world, now);
        }
        !ends
    }

    /// Closes a session if there is no room for one of this process, and another process has too many; true if there is
    /// room then.
    pub(super) fn make_room(&mut self, process: u32, world: &mut World, now: Instant) -> bool {
        if self.sessions.len() < SESSIONS {
            return true;
        }
        let all = self
            .sessions
            .values()
            .filter_map(|at| match self.sources.get(*at) {
                Some(Source::Session(session)) => {
                    Some((*at, session.process, session.used, session.open > 0))
                }
                _ => None,
            });
        let all: Vec<Used> = all.collect();
        let Some(at) = makes_room(&all, process) else {
            return false;
        };
        if let Some(Source::Session(session)) = self.sources.get(at) {
            let why = format!(
                "the lab has {SESSIONS} sessions, which is its limit, and this process most of them"
            );
            turn_away(&session.frames, Errno::TooManyFiles, why);
        }
        self.counters.displaced += 1;
        self.end_session(at, world, now);
        true
    }

    fn end_session(&mut self, at: usize, world: &mut World, now: Instant) {
        if let Some(Source::Session(session)) = self.sources.get(at) {
            let (node, session) = (session.node, session.number);
            self.remove(at);
            world.program(node, Input::Gone { session }, now);
        }
    }

    /// Answers a request; `with` is the socket whose descriptor goes along.
    pub(super) fn answer(
        &mut self,
        registry: &Registry,
        (session, number): (u32, u16),
        mut answer: Answer,
        with: Option<(NodeId, SocketRef)>,
        world: &mut World,
        now: Instant,
    ) {
        let at = self.sessions.get(&session).copied();
        let mut theirs = None;
        if let Some((node, socket)) = with {
            match at.map(|_| self.open_pipe(registry, node, socket)) {
                Some(Ok(fd)) => theirs = Some(fd),
                failure => {
                    // There is no program to take the socket, or no descriptor for it.
                    world.program(node, Input::Closed { socket }, now);
                    if let Some(Err(error)) = failure {
                        self.counters.exhausted += 1;
                        let text = format!(
                            "the lab's process has no descriptor left ({error}; 'ulimit -n' when it starts is the \
                             limit; {} open)",
                            counted(self.pipes.len(), "socket is", "sockets are")
                        );
                        answer = failed(Errno::TooManyFiles, "", 0, text);
                    }
                }
            }
        }
        let Some(at) = at else {
            return;
        };
        let Some(Source::Session(session)) = self.sources.get_mut(at) else {
            return;
        };
        let was_full = session.open >= OPEN;
        session.open = session.open.saturating_sub(1);
        if !session.say(packet(number, answer), theirs) {
            self.end_session(at, world, now);
        } else if was_full {
            self.ready.insert(at);
        }
    }

    /// Makes the pipe of a socket; returns the program's end.
    fn open_pipe(
        &mut self,
        registry: &Registry,
        node: NodeId,
        socket: SocketRef,
    ) -> std::io::Result<OwnedFd> {
        use rustix::fd::AsRawFd as _;
        let (ours, theirs) = packets::pair()?;
        let id = SocketId::of(&theirs).ok_or(std::io::ErrorKind::Other)?;
        let fd = ours.as_raw_fd();
        let at = self
            .sources
            .insert(Source::Pipe(Pipe::new((node, socket), ours, id)));
        self.register(registry, at, fd).inspect_err(|_| {
            self.sources.try_remove(at);
        })?;
        self.pipes.insert((node, socket), at);
        self.shown.insert(id, (node, socket));
        Ok(theirs)
    }
}
