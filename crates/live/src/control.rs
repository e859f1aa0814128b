//! The control socket of a running lab: a request is one JSON line, and so is its answer, which a stream may follow.
//! Descriptors may come with both (`descriptors`); the client waits for an answer before its next request.
//!
//! The socket is private to its user: it is in a directory of mode 0700, and the peer's credentials are checked on
//! every connection. One thread accepts connections (`server`). Each connection has a thread of its own, which passes
//! requests to the lab's loop and waits for the answers. The loop itself never blocks on a client: streams go through
//! bounded channels, and data that a slow client does not take are dropped and counted. A client ends a stream by any
//! line, and still receives what was recorded before; or it closes the connection.

mod client;
mod descriptors;
mod server;

pub use client::{Client, Interrupted, PATIENCE};
pub use server::{Connections, Counters, listen, serve};

pub use crate::kernel::brought::{Brought, BroughtNode, MOST, Wanted, bring};
use crate::programs::Program;
use crate::story::Steps;
use aerostat_lab::Override;
use aerostat_lab::converge::Plan;
use aerostat_node::inspect::StateKind;
use rustix::fd::OwnedFd;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::sync::mpsc::{Receiver, SyncSender};

/// A client's word that ends a stream: all that was passed on before still comes.
const END_OF_STREAM: &[u8] = b"\n";
/// Longest request line, octets: room for the text of a lab file as JSON.
const MAX_REQUEST: u64 = 9 << 20;
/// Limit of chunks that wait for a slow reader of a stream.
pub const STREAM_DEPTH: usize = 4096;

/// A client's request to a lab.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Request {
    /// Asks whether the lab is ready, and how long it has been running.
    Status,
    /// End the lab.
    Stop,
    /// State of one node, or of all.
    Inspect {
        /// Node name; `None` for all nodes that have such state.
        node: Option<String>,
        /// Kind of state.
        what: StateKind,
    },
    /// Asks why a shortcut exists or is missing.
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
        what: StateKind,
    },
    /// Sets up a permanent connection through one switch. The answer is its table, as `Inspect` of `pvc` gives it.
    PvcAdd {
        /// Switch name.
        node: String,
        /// Both ends: `PORT.VPI.VCI`, or `PORT.VPI` of a path; a port is a number or the name of the node behind it.
        ends: [String; 2],
        /// Traffic in the syntax of `qos(7)`, `tx` from the first end to the second.
        qos: String,
        /// True for a whole path.
        path: bool,
        /// Scope of its policers; `None`: that of the ports.
        #[serde(default)]
        police: Option<PvcPolice>,
    },
    /// Removes a permanent connection. The answer is its last table.
    PvcDel {
        /// Switch name.
        node: String,
        /// One of its ends, as in `PvcAdd`.
        end: String,
    },
    /// Sends a loopback request on a connection of a host or router. The answer has its tag.
    Loopback {
        /// Node name.
        node: String,
        /// VPI of its label there.
        vpi: u16,
        /// VCI of its label there.
        vci: u16,
        /// True for the segment: the other end of the link answers.
        segment: bool,
    },
    /// Asks for the answer to a loopback request. It has the round-trip time in ns, or null until the cell is back.
    LoopbackTime {
        /// Node name.
        node: String,
        /// As in the answer to `Loopback`.
        tag: u32,
    },
    /// Gives packets of a host's MPOA client shortcuts of their own with guaranteed traffic. The answer is the table of
    /// these entries, as `Inspect` of `qos` gives it.
    QosAdd {
        /// Node name.
        node: String,
        /// `[SOURCE[:PORT]] DESTINATION[:PORT] [PROTOCOL] tx=PCR,SDU rx=tx`.
        entry: String,
    },
    /// Removes an entry. The answer is the table without it.
    QosDel {
        /// Node name.
        node: String,
        /// The filter of the entry, as in `QosAdd` before `tx=`.
        filter: String,
    },
    /// Causes a fault, or ends it.
    Fault {
        /// The action.
        action: FaultAction,
        /// `NODE`, `NODE/SERVICE` or the name of a link.
        target: String,
    },
    /// Compares the lab with another file, and brings it there. The answer is a [`Converged`].
    Converge(Converge),
    /// Values of links, or a change of them. The answer is a table of the directions of these links.
    Link(LinkRequest),
    /// The results so far, as [`Request::Stop`] gives them, with the text of the lab file, its changes (`set`) and the
    /// time of the lab (`up_s`).
    Results,
    /// Plugs a station into another bridging host. Both are kernel hosts.
    Move {
        /// Name of the station.
        station: String,
        /// Name of the host.
        host: String,
    },
    /// The namespaces of a kernel host; descriptors come with the answer.
    Exec {
        /// Node name.
        node: String,
    },
    /// All hosts, with their kinds and addresses.
    Hosts,
    /// The current network. The answer is an [`aerostat_lab::picture::Picture`].
    Graph,
    /// Starts a program on an embedded host. The answer is its number.
    ProgramStart {
        /// Host name; the host may be on a segment.
        node: String,
        /// The program.
        program: Program,
    },
    /// The results so far of a program that `ProgramStart` began.
    ProgramReport {
        /// As in `ProgramStart`.
        node: String,
        /// The number in the answer to `ProgramStart`.
        id: u32,
        /// True to end the program if it runs, and to forget it.
        forget: bool,
    },
    /// A pcapng stream of links, until the client closes the connection.
    Capture {
        /// Link names; empty for all.
        links: Vec<String>,
        /// See [`crate::capture::Form`].
        #[serde(default)]
        both_ends: bool,
        /// See [`crate::capture::Form`].
        #[serde(default)]
        cells: bool,
    },
    /// A ladder: one JSON line for each message from now on, until the client closes the connection.
    Trace {
        /// Link names; empty for all.
        links: Vec<String>,
        /// True to include users' data, not only messages of protocols.
        data: bool,
        /// True to include the main steps of the story, as events.
        story: bool,
        /// True for the messages sent before, as far as they are kept, and no others. Users' data are never included.
        #[serde(default)]
        past: bool,
    },
    /// Steps of packets on their ways, as lines of [`aerostat_lab::way`], until the client closes the connection.
    Ways {
        /// Names of an end system, or an address; `None` for packets of all senders.
        from: Option<String>,
        /// The same for the receiver.
        to: Option<String>,
        /// One packet in so many is marked; at least 1.
        one_in: u64,
    },
    /// The parts and the present state of the lab as lines of [`aerostat_lab::stream`], and what changes from now on if
    /// `follow` is set.
    Stream {
        /// True to continue until the client closes the connection.
        follow: bool,
        /// Time between samples of counters and levels, ns; `None` for no samples.
        #[serde(default)]
        stats_ns: Option<u64>,
        /// A gathered stream instead of one that is exact at each instant.
        #[serde(default)]
        gather: Option<Gather>,
    },
    /// The events so far, one JSON line each, and later ones if `follow` is set.
    Events {
        /// True to continue until the client closes the connection.
        follow: bool,
    },
}

/// A stream whose lines come together, for readers who look at it some times a second: states as they are then, the
/// latest messages, and the steps of the story. What comes and goes in between is left out, and costs nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gather {
    /// Time between two tellings, ns.
    pub every_ns: u64,
    /// Messages, details and main steps of the story of one telling in the long run, of each. After a quiet time a
    /// telling may have 200 of each.
    pub messages: u32,
}

/// A file for a running lab.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Converge {
    /// The file as its user names it, for `ls`; a client of version 0.2.0 names none.
    #[serde(default)]
    pub name: Option<String>,
    /// Text of the file.
    pub text: String,
    /// Changes of its values, in the notation of `--set`.
    pub set: Vec<String>,
    /// Nodes that may start again.
    pub restart: Vec<String>,
    /// True to start those nodes again that have to.
    #[serde(default)]
    pub restart_needed: bool,
    /// True to compare only.
    pub dry_run: bool,
    /// True if the client makes interfaces of new kernel hosts when the answer asks for them.
    #[serde(default)]
    pub makes: bool,
    /// The interfaces that the client has made; their descriptors come with the request.
    #[serde(default)]
    pub brought: Option<Brought>,
}

impl Converge {
    /// The changes of [`Self::set`].
    #[must_use]
    pub fn overrides(&self) -> Vec<Override> {
        self.set
            .iter()
            .map(|change| change.as_str().into())
            .collect()
    }
}

/// The answer to [`Converge`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Converged {
    /// The changes.
    pub plan: Plan,
    /// True if they were made.
    pub done: bool,
    /// Nodes that were started again.
    pub restarted: Vec<String>,
    /// Changes that could not be made, each with its reason.
    pub left: Vec<String>,
    /// Links whose values, set by hand, gave way to those of the file.
    #[serde(default)]
    pub replaced: Vec<String>,
    /// Interfaces for which the lab asks before it does anything; a descriptor of its user namespace comes with the
    /// answer.
    #[serde(default)]
    pub wanted: Option<Wanted>,
    /// True if the lab has kernel hosts.
    pub kernel: bool,
    /// True if its daemons are processes of their own.
    pub split: bool,
}

impl Converged {
    /// A sentence about [`Self::replaced`].
    #[must_use]
    pub fn replacements(&self) -> String {
        let links = aerostat_wire::some_of(&self.replaced);
        format!("values that 'aerostat link set' gave {links} gave way to those of the file")
    }
}

/// Requests about links.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "act", rename_all = "snake_case")]
pub enum LinkRequest {
    /// Values and states now.
    Show {
        /// Link names; empty for all.
        links: Vec<String>,
    },
    /// New values.
    Set {
        /// Link name.
        link: String,
        /// The values, with the names and the notation of a lab file: `loss=1%`, `rate.up=512kbps`.
        values: Vec<String>,
        /// How long the link is down before it has them, in the notation of a lab file.
        #[serde(default)]
        retrain: Option<String>,
    },
    /// The values of the lab file.
    Reset {
        /// Link name.
        link: String,
    },
}

/// Scope of the policers of a permanent connection, in the words of the key `police` of a lab file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PvcPolice {
    /// Nothing, also where the port polices.
    False,
    /// CBR and VBR, and no less than the port polices.
    True,
    /// Best effort to its peak rate, too.
    All,
}

/// An action on a node, a service or a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultAction {
    /// Stop a node or a service.
    Crash,
    /// Start it again.
    Restart,
    /// Makes a link lose everything.
    LinkDown,
    /// Restores a link.
    LinkUp,
}

/// The answer line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The result.
    Ok(serde_json::Value),
    /// An error: a sentence, and a hint.
    Error {
        /// The error.
        message: String,
        /// How to correct it; may be empty.
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

/// The reply of the lab's loop to a request.
#[derive(Debug)]
pub enum Reply {
    /// The answer only.
    Answer(Answer),
    /// The answer with descriptors.
    Descriptors(Answer, Vec<OwnedFd>),
    /// The answer, followed by chunks until either side ends.
    Stream(Answer, Receiver<Vec<u8>>),
    /// The answer, followed by events until either side ends.
    Story(Answer, Receiver<Steps>),
}

/// A request on its way to the loop.
#[derive(Debug)]
pub struct Pending {
    /// The request.
    pub request: Request,
    /// Descriptors that came with it.
    pub descriptors: Vec<OwnedFd>,
    /// The channel for the reply.
    pub reply: SyncSender<Reply>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;
    use std::sync::mpsc::sync_channel;

    #[test]
    fn asks_answers_descriptors_and_streams() {
        let path = std::env::temp_dir().join(format!("aerostat-control-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let (requests, _) = serve(listen(&path).unwrap(), || {}).unwrap();
        std::thread::spawn(move || {
            for pending in requests {
                let Pending {
                    request,
                    descriptors,
                    reply,
                } = pending;
                let value = serde_json::json!({"heard": request, "came": descriptors.len()});
                let ok = Answer::Ok(value);
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
        // The descriptors of one request, in several parts, and none of them with the next one.
        let null = || OwnedFd::from(std::fs::File::open("/dev/null").unwrap());
        let room = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        for (sent, came) in [(1, 1), (300, 300), (0, 0), (MOST + 100, MOST)] {
            if room.is_some_and(|room| room < 1000 + 2 * sent as u64) {
                println!("left out: {sent} descriptors of {room:?}");
                continue;
            }
            let all: Vec<OwnedFd> = (0..sent).map(|_| null()).collect();
            let (answer, _) = client.ask_with(&Request::Status, &all).unwrap();
            let Answer::Ok(answer) = answer else {
                panic!("{answer:?}")
            };
            assert_eq!(answer["came"], came);
        }
        let nonsense = b"{\"ask\":\"nonsense\"}\n";
        let (answer, _) = client.exchange(nonsense, &[null(), null()]).unwrap();
        assert!(matches!(answer, Answer::Error { .. }), "{answer:?}");
        let (answer, _) = client.ask(&Request::Status).unwrap();
        assert!(matches!(answer, Answer::Ok(ok) if ok["came"] == 0));
        let mut client = Client::connect(&path).unwrap();
        client.ask(&Request::Events { follow: false }).unwrap();
        let mut text = String::new();
        client.into_stream().read_to_string(&mut text).unwrap();
        assert_eq!(text, "one\ntwo\n");
        std::fs::remove_file(&path).unwrap();
    }
}
