//! Messages between the lab and its helper, as octets: one message in each packet.

use aerostat_proto::split::Role;
use aerostat_proto::{split_choice, split_messages};
use aerostat_wire::MacAddr;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

/// Octets of the longest message.
pub(super) const MESSAGE_MAX: usize = 4096;
/// Octets of the longest request: its kind and two numbers.
pub(super) const REQUEST_MAX: usize = 10;

/// Property of the lab; sent before `Seal`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Setup {
    /// The descriptor that comes with this message is the socket for cables.
    Cables,
    /// The program of the daemons, and their socket, as octets of paths.
    Daemons { program: Vec<u8>, socket: Vec<u8> },
    /// The next seat.
    Seat { role: Role, node: String },
    /// The next bridging host; its namespace comes with this message.
    Host { elan: u32 },
    /// The next station; its namespace comes with this message.
    Station {
        port: String,
        mac: MacAddr,
        host: u32,
    },
    /// The end of the list: from now on only requests are accepted.
    Seal,
}

/// A request of the lab. The numbers are indices into what the lab owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// Start the daemon of a seat.
    Start { seat: u32 },
    /// Kill the daemon of a seat.
    Kill { seat: u32 },
    /// Ask whether the daemon of a seat has ended, and how.
    Look { seat: u32 },
    /// Plug a station into a host.
    Plug { station: u32, host: u32 },
    /// Make a station announce its place.
    Speak { station: u32 },
}

/// An answer of the helper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// The request is done.
    Done,
    /// The daemon is this process.
    Process { pid: u32 },
    /// The daemon runs, or the seat has no daemon: the letter of its state, or 0 if it cannot be seen; its CPU time,
    /// ms.
    Runs { state: u8, cpu_ms: u64 },
    /// The daemon has ended: its status as encoded by the kernel, and its last output.
    Ended { status: u32, words: String },
    /// The station is plugged in. The cable had no carrier for this time, ms.
    Plugged { ms: u32 },
    /// The request was not done, with the reason.
    Refused { why: String },
    /// The cable is plugged in at the new host, but a later step failed.
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
    35 Runs { state, cpu_ms };
    36 Ended { status, words };
    37 Plugged { ms };
    38 Refused { why };
    39 Stuck { why };
});

/// How a daemon ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    /// The signal or the exit code.
    pub(crate) status: ExitStatus,
    /// The daemon's output on standard error, in one line behind a colon; empty without output.
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
