//! What the lab says to its helper, and the answers, as octets: one message in each packet.

use aerostat_proto::split::Role;
use aerostat_proto::{split_choice, split_messages};
use aerostat_wire::MacAddr;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

/// Octets of the longest message.
pub(super) const MESSAGE_MAX: usize = 4096;
/// Octets of the longest request: its kind and two numbers.
pub(super) const REQUEST_MAX: usize = 10;

/// What the lab owns, before `Seal`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Setup {
    /// The descriptor that comes along is the socket for cables.
    Cables,
    /// The program that daemons are, and their socket, as octets of paths.
    Daemons { program: Vec<u8>, socket: Vec<u8> },
    /// The next seat.
    Seat { role: Role, node: String },
    /// The next bridging host; its namespace comes along.
    Host { elan: u32 },
    /// The next station; its namespace comes along.
    Station {
        port: String,
        mac: MacAddr,
        host: u32,
    },
    /// That is all: only requests are understood from now on.
    Seal,
}

/// What the lab wants. The numbers are places in what it owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// Start the daemon of a seat.
    Start { seat: u32 },
    /// Kill it.
    Kill { seat: u32 },
    /// Whether it has ended, and how.
    Look { seat: u32 },
    /// Plug a station into a host.
    Plug { station: u32, host: u32 },
    /// Let a station say where it is.
    Speak { station: u32 },
}

/// What the helper answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// It is done.
    Done,
    /// The daemon is this process.
    Process { pid: u32 },
    /// The daemon runs, or the seat has no daemon.
    Runs,
    /// It has ended: its status as the kernel codes it, and its last words.
    Ended { status: u32, words: String },
    /// Plugged in; for so long nothing could pass, ms.
    Plugged { ms: u32 },
    /// It is not done, and why.
    Refused { why: String },
    /// The cable is plugged in there, and then something failed.
    Stuck { why: String },
}

split_messages!(Setup, Request, Reply);
split_choice!(Setup {
    1 Cables;
    2 Daemons { program, socket };
    3 Seat { role, node };
    4 Host { elan };
    5 Station { port, mac, host };
    6 Seal;
});
split_choice!(Request {
    17 Start { seat };
    18 Kill { seat };
    19 Look { seat };
    20 Plug { station, host };
    21 Speak { station };
});
split_choice!(Reply {
    33 Done;
    34 Process { pid };
    35 Runs;
    36 Ended { status, words };
    37 Plugged { ms };
    38 Refused { why };
    39 Stuck { why };
});

/// How a daemon ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    /// By which signal, or with which code.
    pub(crate) status: ExitStatus,
    /// What it left on its standard error, in one line behind a colon; or nothing.
    pub(crate) words: String,
}

impl Ended {
    pub(super) fn of(status: u32, words: String) -> Self {
        let status = ExitStatus::from_raw(status.cast_signed());
        Self { status, words }
    }
    pub(super) fn reply(self) -> Reply {
        Reply::Ended {
            status: self.status.into_raw().cast_unsigned(),
            words: self.words,
        }
    }
}
