//! The lab's side of the control socket.
//!
//! **Many clients.** [`MAX_CONNECTIONS`] are served at once, each by a thread. When there is no room, the connection
//! that has been idle for longest is closed: a request that comes on it at this moment is not done. If all are busy,
//! or the process has no descriptor or thread left, the accepting thread itself serves the new client: a few short
//! requests ([`is_short`]) and no stream, so that `aerostat down` always works. A client that sends nothing at all for
//! [`FIRST_WORD`] is closed. All of these events are counted ([`Counters`]).

use super::descriptors::{WithDescriptors, send_with};
use super::{Answer, MAX_REQUEST, Pending, Reply, Request, STREAM_DEPTH};
use crate::outside::atmtcp::door::is_exhausted;
use crate::threads::spawn_named;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fd::OwnedFd;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, ErrorKind, Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Connections served at once.
const MAX_CONNECTIONS: usize = 64;
/// Time after which a connection without a request is closed.
const FIRST_WORD: Duration = Duration::from_secs(10);
/// The same for a connection that the accepting thread serves itself.
const SHORT_WORD: Duration = Duration::from_secs(1);
/// Limit of requests on such a connection.
const SHORT_REQUESTS: usize = 4;
/// Time within which a client must read an answer.
const READING: Duration = Duration::from_secs(10);
/// How often a stream checks whether its client is still connected and wants more.
const LOOK_AFTER_CLIENT: Duration = Duration::from_millis(100);
/// Pause of the accepting thread when the operating system has no resources left.
const BREATH: Duration = Duration::from_millis(100);

/// Counters of the socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Connections that were accepted.
    pub accepted: u64,
    /// Connections of other users, which were refused.
    pub strangers: u64,
    /// Idle connections that were closed to make room.
    pub gave_way: u64,
    /// Connections that were closed because no request came.
    pub silent: u64,
    /// Connections that the accepting thread served because there was no room.
    pub in_reserve: u64,
    /// How often the process had no descriptor for a connection.
    pub exhausted: u64,
}

/// The activity of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    /// It has no outstanding request.
    Idle,
    /// It waits for an answer.
    Asking,
    /// It receives a stream.
    Streaming,
}

struct Place {
    stream: Arc<UnixStream>,
    doing: Doing,
    since: Instant,
}

#[derive(Default)]
struct Table {
    places: BTreeMap<u64, Place>,
    next: u64,
    /// True while the accepting thread serves a client.
    at_the_door: bool,
    counters: Counters,
}

impl Table {
    /// Closes the connection that has been idle for longest, and at least for `at_least`; false if there is no such
    /// connection.
    fn give_way(&mut self, at_least: Duration) -> bool {
        let idle = self
            .places
            .iter()
            .filter(|(_, p)| p.doing == Doing::Idle && p.since.elapsed() >= at_least);
        let longest = idle.min_by_key(|(_, place)| place.since).map(|(id, _)| *id);
        let Some(gone) = longest.and_then(|id| self.places.remove(&id)) else {
            return false;
        };
        // The thread of the connection wakes up and ends.
        let _ = gone.stream.shutdown(Shutdown::Both);
        self.counters.gave_way += 1;
        true
    }
}

/// All connections of the socket.
#[derive(Clone, Default)]
pub struct Connections(Arc<(Mutex<Table>, Condvar)>);

impl std::fmt::Debug for Connections {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.counters())
    }
}

impl Connections {
    /// The counters.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.table().counters
    }

    /// Number of open connections.
    #[must_use]
    pub fn open(&self) -> usize {
        self.table().places.len()
    }

    /// Waits until all answers have been written, at most for `patience`.
    pub fn settle(&self, patience: Duration) {
        let busy = |table: &mut Table| {
            table.at_the_door || table.places.values().any(|p| p.doing == Doing::Asking)
        };
        let (_, changed) = &*self.0;
        // In time or not, the lab ends.
        let _ = changed.wait_timeout_while(self.table(), patience, busy);
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        // No code panics while it holds the table. If it did, the numbers would still be valid.
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, what: impl FnOnce(&mut Counters)) {
        what(&mut self.table().counters);
    }

    /// Gives a place to a connection, if necessary that of the connection that has been idle for longest; `None` if all
    /// are busy.
    fn enter(&self, stream: &Arc<UnixStream>) -> Option<u64> {
        let mut table = self.table();
        if table.places.len() >= MAX_CONNECTIONS && !table.give_way(Duration::ZERO) {
            return None;
        }
        let id = table.next;
        table.next += 1;
        table.counters.accepted += 1;
        let place = Place {
            stream: Arc::clone(stream),
            doing: Doing::Idle,
            since: Instant::now(),
        };
        table.places.insert(id, place);
        Some(id)
    }

    /// Notes what a connection does; false if it has given way.
    fn set(&self, id: u64, doing: Doing) -> bool {
        let here = self.table().places.get_mut(&id).map(|place| {
            (place.doing, place.since) = (doing, Instant::now());
        });
        self.0.1.notify_all();
        here.is_some()
    }

    fn leave(&self, id: u64) {
        self.table().places.remove(&id);
        self.0.1.notify_all();
    }
}

/// The data that every conversation needs.
#[derive(Clone)]
struct Desk<W> {
    connections: Connections,
    to_loop: SyncSender<Pending>,
    wake: W,
}

/// Creates the socket at `path`.
///
/// # Errors
/// If it cannot be created.
pub fn listen(path: &Path) -> io::Result<UnixListener> {
    UnixListener::bind(path)
}

/// Serves the socket. Requests come out of the returned channel, and `wake` is called for each.
///
/// # Errors
/// If no thread can be started.
pub fn serve(
    listener: UnixListener,
    wake: impl Fn() + Send + Clone + 'static,
) -> io::Result<(Receiver<Pending>, Connections)> {
    let (to_loop, requests) = sync_channel(MAX_CONNECTIONS);
    let connections = Connections::default();
    let desk = Desk {
        connections: connections.clone(),
        to_loop,
        wake,
    };
    spawn_named("control", move || accept(&listener, &desk))?;
    Ok((requests, connections))
}

/// Accepts connections for ever. One descriptor is held in reserve, because `accept` without a free descriptor fails at
/// once, again and again.
fn accept(listener: &UnixListener, desk: &Desk<impl Fn() + Send + Clone + 'static>) {
    let spare = || File::open("/dev/null").ok();
    let mut reserve = spare();
    let mut exhausted = false;
    loop {
        match listener.accept() {
            Ok((stream, _)) if exhausted => {
                desk.serve_at_the_door(&Arc::new(stream));
                reserve = spare();
                exhausted = reserve.is_none();
            }
            Ok((stream, _)) => desk.admit(stream),
            Err(error) if is_exhausted(&error) => {
                let made_room = {
                    let mut table = desk.connections.table();
                    table.counters.exhausted += 1;
                    // The most recent client is about to send its request.
                    table.give_way(SHORT_WORD)
                };
                // The thread of the closed connection will free its descriptor in a moment. If all are busy, the
                // reserve is used for the next client.
                if made_room || reserve.take().is_none() {
                    std::thread::sleep(BREATH);
                } else {
                    exhausted = true;
                }
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
            Err(_) => std::thread::sleep(BREATH),
        }
    }
}

impl<W: Fn() + Send + Clone + 'static> Desk<W> {
    /// Starts a thread for the connection; without one, the accepting thread serves it.
    fn admit(&self, stream: UnixStream) {
        if !same_user(&stream) {
            return self.connections.count(|all| all.strangers += 1);
        }
        let stream = Arc::new(stream);
        let Some(id) = self.connections.enter(&stream) else {
            return self.serve_at_the_door(&stream);
        };
        let (desk, its) = (self.clone(), Arc::clone(&stream));
        let started = spawn_named("control-client", move || {
            let _ = desk.converse(&its, id);
            desk.connections.leave(id);
        });
        if started.is_err() {
            self.connections.leave(id);
            self.serve_at_the_door(&stream);
        }
    }

    /// Serves a few short requests on the accepting thread.
    fn serve_at_the_door(&self, stream: &UnixStream) {
        if !same_user(stream) {
            return self.connections.count(|all| all.strangers += 1);
        }
        {
            let mut table = self.connections.table();
            table.counters.in_reserve += 1;
            table.at_the_door = true;
        }
        // A client that is too slow for this loses its turn.
        let _ = self.short_requests(stream);
        self.connections.table().at_the_door = false;
        self.connections.0.1.notify_all();
    }

    fn short_requests(&self, stream: &UnixStream) -> io::Result<()> {
        stream.set_write_timeout(Some(SHORT_WORD))?;
        let mut lines = BufReader::new(Until(stream, Instant::now()));
        for _ in 0..SHORT_REQUESTS {
            lines.get_mut().1 = Instant::now() + SHORT_WORD;
            let mut line = Vec::new();
            if (&mut lines)
                .take(MAX_REQUEST)
                .read_until(b'\n', &mut line)?
                == 0
            {
                return Ok(());
            }
            let request = match serde_json::from_slice(&line) {
                Ok(request) if is_short(&request) => request,
                _ => {
                    let text = format!(
                        "the lab serves {MAX_CONNECTIONS} clients at once and has no room for this request"
                    );
                    let hint =
                        "end some of the commands that follow the lab (capture, trace, events)";
                    return send_line(stream, &Answer::error(text, hint), &[]);
                }
            };
            match self.ask(request, Vec::new()) {
                Some(Reply::Answer(answer)) => send_line(stream, &answer, &[])?,
                _ => return Ok(()),
            }
        }
        Ok(())
    }

    /// Passes a request to the loop and waits for its reply; `None` if the lab ends.
    fn ask(&self, request: Request, descriptors: Vec<OwnedFd>) -> Option<Reply> {
        let (reply, answer) = sync_channel(1);
        let pending = Pending {
            request,
            descriptors,
            reply,
        };
        self.to_loop.send(pending).ok()?;
        (self.wake)();
        answer.recv().ok()
    }

    fn converse(&self, stream: &UnixStream, id: u64) -> io::Result<()> {
        stream.set_read_timeout(Some(FIRST_WORD))?;
        stream.set_write_timeout(Some(READING))?;
        let mut lines = BufReader::new(WithDescriptors::of(stream));
        loop {
            let mut line = Vec::new();
            match (&mut lines).take(MAX_REQUEST).read_until(b'\n', &mut line) {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(error) => {
                    let late = matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
                    self.connections.count(|all| all.silent += u64::from(late));
                    return Err(error);
                }
            }
            // They go with this line alone, also if it is no request.
            let descriptors = std::mem::take(&mut lines.get_mut().come);
            let request = match serde_json::from_slice(&line) {
                Ok(request) => request,
                Err(error) => {
                    let answer = Answer::error(format!("bad request: {error}"), "");
                    send_line(stream, &answer, &[])?;
                    continue;
                }
            };
            // After its first request a client may take its time; it can only be closed to make room.
            stream.set_read_timeout(None)?;
            // A client whose connection gave way to another one asks again on a new one, so nothing is done twice.
            if !self.connections.set(id, Doing::Asking) {
                return Ok(());
            }
            match self.ask(request, descriptors) {
                Some(Reply::Answer(answer)) => send_line(stream, &answer, &[])?,
                Some(Reply::Descriptors(answer, fds)) => send_line(stream, &answer, &fds)?,
                Some(Reply::Stream(answer, chunks)) => {
                    send_line(stream, &answer, &[])?;
                    self.connections.set(id, Doing::Streaming);
                    return pass_on(stream, &chunks);
                }
                Some(Reply::Story(answer, steps)) => {
                    send_line(stream, &answer, &[])?;
                    self.connections.set(id, Doing::Streaming);
                    return pass_on(stream, &steps);
                }
                None => return Ok(()),
            }
            self.connections.set(id, Doing::Idle);
        }
    }
}

/// True for requests whose answer is short and comes soon.
fn is_short(request: &Request) -> bool {
    matches!(
        request,
        Request::Status | Request::Stop | Request::Inspect { .. } | Request::Fault { .. }
    )
}

/// A reader with a deadline, however little arrives at once.
struct Until<'a>(&'a UnixStream, Instant);

impl io::Read for Until<'_> {
    fn read(&mut self, octets: &mut [u8]) -> io::Result<usize> {
        let left = self.1.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        self.0.set_read_timeout(Some(left))?;
        let mut stream = self.0;
        stream.read(octets)
    }
}

fn same_user(stream: &UnixStream) -> bool {
    // Inside a user namespace the peer's uid is seen through the same map as our own.
    rustix::net::sockopt::socket_peercred(stream)
        .is_ok_and(|peer| peer.uid == rustix::process::geteuid())
}

/// Writes chunks until either side ends. A client that disconnects while the stream is quiet is noticed, too, because
/// it would occupy a connection. A client that only pauses loses no more than what does not fit. A client that has had
/// enough says so, and then receives the chunks that wait.
fn pass_on<C: Into<Vec<u8>>>(mut stream: &UnixStream, chunks: &Receiver<C>) -> io::Result<()> {
    stream.set_write_timeout(None)?;
    let mut looked = Instant::now();
    loop {
        match chunks.recv_timeout(LOOK_AFTER_CLIENT) {
            Ok(chunk) => stream.write_all(&chunk.into())?,
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if looked.elapsed() < LOOK_AFTER_CLIENT {
            continue;
        }
        looked = Instant::now();
        let mut fds = [PollFd::new(stream, PollFlags::IN)];
        rustix::event::poll(&mut fds, Some(&Timespec::default()))?;
        let seen = fds[0].revents();
        if seen.intersects(PollFlags::HUP | PollFlags::ERR) {
            return Ok(());
        }
        // A client may close its sending side and read on: that is no word.
        if seen.contains(PollFlags::IN) && stream.read(&mut [0])? > 0 {
            for chunk in chunks.try_iter().take(STREAM_DEPTH) {
                stream.write_all(&chunk.into())?;
            }
            return Ok(());
        }
    }
}

fn send_line(stream: &UnixStream, answer: &Answer, fds: &[OwnedFd]) -> io::Result<()> {
    let mut line = serde_json::to_vec(answer).map_err(io::Error::other)?;
    line.push(b'\n');
    send_with(stream, &line, fds)
}

#[cfg(test)]
mod tests;
