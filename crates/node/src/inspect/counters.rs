//! Tables of counters. Their rows come from the `rows()` of each set of counters, which `counters!` makes, so a new
//! counter needs no line here.

use super::TableInfo;
use aerostat_proto::counters::CounterRow;
use aerostat_proto::split::SeatCounters;

crate::rows! {
    /// The form of all tables of counters.
    const FORM;

    /// One row for each counter.
    pub struct Counter: "any.counters" {
        /// Name of the counter.
        pub counter: String,
        /// Events since the node started.
        pub value: u64,
    }
}

/// Tables of counters by name, each with its meaning.
macro_rules! counter_tables {
    ($($(#[doc = $what:literal])+ $table:ident = $name:literal,)+) => {
        $(
            $(#[doc = $what])+
            pub const $table: TableInfo = TableInfo {
                name: $name,
                doc: concat!($($what),+),
                columns: FORM[0].columns,
                names: FORM[0].names,
            };
        )+
        /// Tables of counters.
        pub const TABLES: &[TableInfo] = &[$($table),+];
    };
}

counter_tables! {
    /// One row for each counter of the neighbours of all interfaces.
    ARP = "arp.counters",
    /// One row for each counter of the segment.
    SEGMENT = "bridge.counters",
    /// One row for each counter of a BUS. `daemon_refused`: messages of the control half (a process with `--split`)
    /// that were not allowed. `daemon_stale`: its messages about connections that had ended. `daemon_dropped`: SDUs and
    /// messages for which there was no room.
    BUS = "bus.counters",
    /// One row for each counter of an end system's signalling that is not zero. Names that begin with `daemon_` are
    /// about its daemon, a process with `--split`: `daemon_stale` counts its messages about calls that are unknown or
    /// over, and `daemon_refused` its messages that it must not send.
    SIGNALLING = "call.counters",
    /// One row for each counter of a Classical IP interface.
    CLIP = "clip.counters",
    /// One row for each counter of the ILMI daemon, all interfaces of a node together; only with `--split`.
    /// `daemon_stale`: messages of an earlier start, or about a line that is down. `daemon_refused`: messages that it
    /// must not send. `daemon_unread`: SDUs that arrived while there was no daemon.
    ILMI = "ilmi.counters",
    /// One row for each counter of a LANE client's control. Rows that begin with `daemon_` have the same meaning as for
    /// a LES (`les.counters`).
    LEC_CONTROL = "lec.control counters",
    /// One row for each counter of a LANE client's forwarding.
    LEC_DATA = "lec.data counters",
    /// One row for each counter of a LES. `daemon_refused`: messages of the control half (a process with `--split`)
    /// that were not allowed. `daemon_stale`: its messages about connections that had ended. `daemon_dropped`: SDUs and
    /// messages for which there was no room.
    LES = "les.counters",
    /// One row for each counter of one end of an ATM line.
    LINE = "line.counters",
    /// One row for each counter of an MPOA client. Rows that begin with `daemon_` have the same meaning as for a LES
    /// (`les.counters`).
    MPC = "mpc.counters",
    /// One row for each counter of an MPOA server. Rows that begin with `daemon_` have the same meaning as for a LES
    /// (`les.counters`).
    MPS = "mps.counters",
    /// One row for each counter of an NHRP client or server.
    NHRP = "nhrp.counters",
    /// One row for each counter of the service of a host for programs of the machine that is not zero.
    SOCKETS = "sockets.counters",
    /// One row for each counter of an embedded host's TCP that is not zero: of all its connections together, those that
    /// have ended included, and of the host.
    TCP = "tcp.counters",
}

/// Counters of a service, and after them those of its daemon or of its daemon's seat, whose names begin with `daemon_`.
#[must_use]
pub fn with_daemon(mut own: Vec<CounterRow>, daemon: Vec<CounterRow>) -> Vec<CounterRow> {
    let daemon = daemon.into_iter();
    own.extend(daemon.map(|(name, value)| (format!("daemon_{name}"), value)));
    own
}

/// The same for a service whose daemon has a seat.
#[must_use]
pub fn with_seat(own: Vec<CounterRow>, seat: SeatCounters) -> Vec<CounterRow> {
    with_daemon(own, seat.rows())
}
