//! The control socket of a running lab: one JSON line asks, one answers, then perhaps a stream.
//!
//! The socket is private to its user: it lies in a directory of mode 0700 and the peer's credentials are
//! checked on every connection. One thread accepts; each connection has a thread of its own, which hands requests
//! to the lab's loop and waits. The loop itself never blocks on a client: streams go through bounded
//! channels, and what a slow client does not take is dropped and counted.

use crate::programs::Program;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fd::{AsFd, OwnedFd};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use serde::{Deserialize, Serialize};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::io::{self, BufRead, BufReader, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::net::{IpAddr, Shutdown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

/// Connections served at once.
const MAX_CONNECTIONS: usize = 64;
/// How often a quiet stream looks whether its client is still there.
const LOOK_AFTER_CLIENT: Duration = Duration::from_secs(1);
/// Longest request line, octets.
const MAX_REQUEST: u64 = 64 * 1024;
/// Chunks that may wait for a slow reader of a stream.
pub const STREAM_DEPTH: usize = 4096;

/// What a client asks of a lab.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Request {
    /// Is it ready, and for how long?
    Status,
    /// End the lab.
    Stop,
    /// State of one node, or of all.
    Inspect {
        /// Node name; `None` for all nodes that have such state.
        node: Option<String>,
        /// `vc`, `call`, `lec`, `les`, `bus`, `mpc`, `mps`, `nhrp`, `port`, `qos`, `route`.
        what: String,
    },
    /// Why there is, or is not, a shortcut.
    Why {
        /// Node name; `None` for all nodes with an MPOA client or server.
        node: Option<String>,
        /// The destination.
        address: IpAddr,
    },
    /// State as the text of the file under Linux' `/proc` that shows it.
    Proc {
        /// Node name; `None` for all nodes that have such state.
        node: Option<String>,
        /// `lec`, `mpc`.
        what: String,
    },
    /// Set up a permanent connection through one switch. The answer is its table, as `Inspect` of `pvc` gives it.
    PvcAdd {
        /// Switch name.
        node: String,
        /// Both ends: `PORT.VPI.VCI`, or `PORT.VPI` of a path; a port is a number or the name of the node behind it.
        ends: [String; 2],
        /// Traffic in the words of `qos(7)`, `tx` from the first end to the second.
        qos: String,
        /// Whole paths.
        path: bool,
        /// Discard what exceeds the contract.
        police: bool,
    },
    /// Take a permanent connection down. The answer is its table, for the last time.
    PvcDel {
        /// Switch name.
        node: String,
        /// One of its ends, as in `PvcAdd`.
        end: String,
    },
    /// Give packets of a host's MPOA client shortcuts of their own with guaranteed traffic. The answer is its table of
    /// such entries, as `Inspect` of `qos` gives it.
    QosAdd {
        /// Node name.
        node: String,
        /// `[SOURCE[:PORT]] DESTINATION[:PORT] [PROTOCOL] tx=PCR,SDU rx=tx`.
        entry: String,
    },
    /// Take an entry away. The answer is the table without it.
    QosDel {
        /// Node name.
        node: String,
        /// Its packets, as in `QosAdd` before `tx=`.
        filter: String,
    },
    /// Break something, or mend it.
    Fault {
        /// What to do.
        action: FaultAction,
        /// `NODE`, `NODE/SERVICE` or the name of a link.
        target: String,
    },
    /// Plug a station into another bridging host. Both are kernel hosts.
    Move {
        /// Name of the station.
        station: String,
        /// Name of the host.
        host: String,
    },
    /// Namespaces of a kernel host; descriptors come with the answer.
    Exec {
        /// Node name.
        node: String,
    },
    /// All hosts, with their kinds and addresses.
    Hosts,
    /// Start a program on an embedded host. The answer is its number.
    ProgramStart {
        /// Host name, also of one on a segment.
        node: String,
        /// What it does.
        program: Program,
    },
    /// What a program that `ProgramStart` began has found so far.
    ProgramReport {
        /// As in `ProgramStart`.
        node: String,
        /// The number that was answered.
        id: u32,
        /// End it if it runs, and forget it.
        forget: bool,
    },
    /// A pcapng stream of links, until the client closes.
    Capture {
        /// Link names; empty for all.
        links: Vec<String>,
    },
    /// A ladder: one JSON line for each message that passes from now on, until the client closes.
    Trace {
        /// Link names; empty for all.
        links: Vec<String>,
        /// What users send too, not only the messages of protocols.
        data: bool,
        /// The main steps of the story in between, as events.
        story: bool,
    },
    /// The events so far, one JSON line each, and those to come if `follow`.
    Events {
        /// Go on until the client closes.
        follow: bool,
    },
}

/// What can be done to a node, a service or a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultAction {
    /// Stop a node or a service.
    Crash,
    /// Start it again.
    Restart,
    /// Let a link lose everything.
    LinkDown,
    /// Let it work again.
    LinkUp,
}

/// The answer line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// What was asked for.
    Ok(serde_json::Value),
    /// Why not: a sentence, and a hint.
    Error {
        /// What is wrong.
        message: String,
        /// What to do about it; may be empty.
        hint: String,
    },
}

impl Answer {
    /// An error with a hint.
    #[must_use]
    pub fn error(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Error {
            message: message.into(),
            hint: hint.into(),
        }
    }
}

/// What the lab's loop gives back for a request.
#[derive(Debug)]
pub enum Reply {
    /// The answer, and nothing more.
    Answer(Answer),
    /// The answer with descriptors.
    Descriptors(Answer, Vec<OwnedFd>),
    /// The answer, then chunks until either side ends.
    Stream(Answer, Receiver<Vec<u8>>),
}

/// A request on its way to the loop.
#[derive(Debug)]
pub struct Pending {
    /// What is asked.
    pub request: Request,
    /// Where the reply goes.
    pub reply: SyncSender<Reply>,
}

/// Listens on `path`; requests come out of the returned channel, and `wake` is called for each.
///
/// # Errors
/// If the socket cannot be made.
pub fn serve(
    path: &Path,
    wake: impl Fn() + Send + Clone + 'static,
) -> io::Result<Receiver<Pending>> {
    let listener = UnixListener::bind(path)?;
    let (to_loop, requests) = sync_channel(MAX_CONNECTIONS);
    let live = Arc::new(());
    std::thread::Builder::new()
        .name("control".into())
        .spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { continue };
                if Arc::strong_count(&live) > MAX_CONNECTIONS || !same_user(&stream) {
                    continue;
                }
                let (to_loop, wake, token) = (to_loop.clone(), wake.clone(), live.clone());
                let _ = std::thread::Builder::new()
                    .name("control-client".into())
                    .spawn(move || {
                        let _ = converse(stream, &to_loop, wake);
                        drop(token);
                    });
            }
        })?;
    Ok(requests)
}

fn same_user(stream: &UnixStream) -> bool {
    // Inside a user namespace the peer's uid is seen through the same map as our own.
    rustix::net::sockopt::socket_peercred(stream)
        .is_ok_and(|peer| peer.uid == rustix::process::geteuid())
}

fn converse(stream: UnixStream, to_loop: &SyncSender<Pending>, wake: impl Fn()) -> io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?);
    loop {
        let mut line = String::new();
        if (&mut lines).take(MAX_REQUEST).read_line(&mut line)? == 0 {
            return Ok(());
        }
        let request = match serde_json::from_str(&line) {
            Ok(request) => request,
            Err(error) => {
                send_line(
                    &stream,
                    &Answer::error(format!("bad request: {error}"), ""),
                    &[],
                )?;
                continue;
            }
        };
        let (reply, answer) = sync_channel(1);
        if to_loop.send(Pending { request, reply }).is_err() {
            return Ok(());
        }
        wake();
        match answer.recv() {
            Ok(Reply::Answer(answer)) => send_line(&stream, &answer, &[])?,
            Ok(Reply::Descriptors(answer, fds)) => send_line(&stream, &answer, &fds)?,
            Ok(Reply::Stream(answer, chunks)) => {
                send_line(&stream, &answer, &[])?;
                return pass_on(&stream, &chunks);
            }
            Err(_) => return Ok(()),
        }
    }
}

/// Writes chunks until either side ends. A client that goes away while nothing happens is noticed too: it
/// would keep one of the connections otherwise.
fn pass_on(mut stream: &UnixStream, chunks: &Receiver<Vec<u8>>) -> io::Result<()> {
    loop {
        match chunks.recv_timeout(LOOK_AFTER_CLIENT) {
            Ok(chunk) => stream.write_all(&chunk)?,
            Err(RecvTimeoutError::Disconnected) => return Ok(()),
            Err(RecvTimeoutError::Timeout) => {
                let mut fds = [PollFd::new(stream, PollFlags::empty())];
                rustix::event::poll(&mut fds, Some(&Timespec::default()))?;
                if fds[0].revents().intersects(PollFlags::HUP | PollFlags::ERR) {
                    return Ok(());
                }
            }
        }
    }
}

fn send_line(stream: &UnixStream, answer: &Answer, fds: &[OwnedFd]) -> io::Result<()> {
    let mut line = serde_json::to_vec(answer).map_err(io::Error::other)?;
    line.push(b'\n');
    if fds.is_empty() {
        return (&mut &*stream).write_all(&line);
    }
    let borrowed: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(&borrowed)) {
        return Err(io::Error::other("too many descriptors"));
    }
    let sent = rustix::net::sendmsg(
        stream,
        &[IoSlice::new(&line)],
        &mut control,
        SendFlags::NOSIGNAL,
    )?;
    (&mut &*stream).write_all(line.get(sent..).unwrap_or_default())
}

/// A client's connection to a running lab.
#[derive(Debug)]
pub struct Client {
    stream: UnixStream,
}

impl Client {
    /// Connects to the lab's socket.
    ///
    /// # Errors
    /// If nobody listens there.
    pub fn connect(path: &Path) -> io::Result<Self> {
        Ok(Self {
            stream: UnixStream::connect(path)?,
        })
    }

    /// Asks; returns the answer and the descriptors that came with it.
    ///
    /// # Errors
    /// If the lab ends or answers nonsense.
    pub fn ask(&mut self, request: &Request) -> io::Result<(Answer, Vec<OwnedFd>)> {
        let mut line = serde_json::to_vec(request).map_err(io::Error::other)?;
        line.push(b'\n');
        self.stream.write_all(&line)?;
        let (mut got, mut fds) = (Vec::new(), Vec::new());
        // One octet at a time: what follows the line belongs to the stream, not to us.
        loop {
            let mut octet = [0_u8];
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
            let mut control = RecvAncillaryBuffer::new(&mut space);
            let read = rustix::net::recvmsg(
                &self.stream,
                &mut [IoSliceMut::new(&mut octet)],
                &mut control,
                RecvFlags::CMSG_CLOEXEC,
            )?;
            for message in control.drain() {
                if let RecvAncillaryMessage::ScmRights(rights) = message {
                    fds.extend(rights);
                }
            }
            if read.bytes == 0 {
                return Err(io::Error::new(
                    io::ErrorKind::UnexpectedEof,
                    "the lab ended",
                ));
            }
            if octet == *b"\n" {
                break;
            }
            got.extend(octet);
        }
        Ok((serde_json::from_slice(&got).map_err(io::Error::other)?, fds))
    }

    /// What follows a streaming answer.
    #[must_use]
    pub fn into_stream(self) -> UnixStream {
        self.stream
    }

    /// The same, until SIGINT or SIGTERM: then the stream ends behind what has come. A shell's background command
    /// ignores SIGINT from birth; who asks for a stream means to be able to end it.
    ///
    /// # Errors
    /// The operating system's, when the signals cannot be caught.
    pub fn into_stream_until_signal(self) -> io::Result<(UnixStream, Interrupted)> {
        let (mut caught, signal) = UnixStream::pair()?;
        for number in [SIGINT, SIGTERM] {
            signal_hook::low_level::pipe::register(number, signal.try_clone()?)?;
        }
        let stream = self.stream.try_clone()?;
        let interrupted = Interrupted::default();
        let told = Arc::clone(&interrupted.0);
        std::thread::spawn(move || {
            if caught.read_exact(&mut [0]).is_ok() {
                told.store(true, Ordering::Relaxed);
                let _ = stream.shutdown(Shutdown::Both);
            }
        });
        Ok((self.stream, interrupted))
    }
}

/// Whether a signal ended a stream.
#[derive(Debug, Default)]
pub struct Interrupted(Arc<AtomicBool>);

impl Interrupted {
    /// It did.
    #[must_use]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asks_answers_descriptors_and_streams() {
        let path = std::env::temp_dir().join(format!("aerostat-control-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let requests = serve(&path, || {}).unwrap();
        std::thread::spawn(move || {
            for Pending { request, reply } in requests {
                let ok = Answer::Ok(serde_json::json!({"heard": request}));
                let answer = match request {
                    Request::Exec { .. } => {
                        let file = std::fs::File::open("/dev/null").unwrap();
                        Reply::Descriptors(ok, vec![file.into()])
                    }
                    Request::Events { .. } => {
                        let (to, chunks) = sync_channel(2);
                        to.send(b"one\n".to_vec()).unwrap();
                        to.send(b"two\n".to_vec()).unwrap();
                        Reply::Stream(ok, chunks)
                    }
                    _ => Reply::Answer(ok),
                };
                reply.send(answer).unwrap();
            }
        });
        let mut client = Client::connect(&path).unwrap();
        let (answer, fds) = client
            .ask(&Request::Exec {
                node: "urku".into(),
            })
            .unwrap();
        assert!(matches!(answer, Answer::Ok(_)));
        assert_eq!(fds.len(), 1);
        let (_, none) = client.ask(&Request::Status).unwrap();
        assert!(none.is_empty());
        client
            .stream
            .write_all(b"{\"ask\":\"nonsense\"}\n")
            .unwrap();
        let (answer, _) = client.ask(&Request::Status).unwrap();
        assert!(matches!(answer, Answer::Error { .. }), "{answer:?}");
        let mut client = Client::connect(&path).unwrap();
        client.ask(&Request::Events { follow: false }).unwrap();
        let mut text = String::new();
        client.into_stream().read_to_string(&mut text).unwrap();
        assert_eq!(text, "one\ntwo\n");
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_client_that_leaves_a_quiet_stream_is_noticed() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (_to, chunks) = sync_channel::<Vec<u8>>(1);
        let writer = std::thread::spawn(move || pass_on(&ours, &chunks));
        drop(theirs);
        // `_to` is still there: only the client's end can end it.
        writer.join().unwrap().unwrap();
    }
}
