//! What the two halves of a client tell each other.
//!
//! The data plane ([`super::forward::Forwarder`]) moves frames and knows connections by id; it never reads a control
//! frame. The control part ([`super::control::Control`]) speaks with servers and peers and never touches a frame.

use crate::{ConnId, Duration, Instant};
use aerostat_wire::MacAddr;

/// Control part to data plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ToData {
    /// The client is a member: its LECID and the largest SDU, octets.
    Joined { lecid: u16, max_sdu: u16 },
    /// Quota for unresolved destinations: C10 frames in C11.
    Quota { count: u16, time: Duration },
    /// The multicast send connection, or none.
    Bus(Option<ConnId>),
    /// Frames may come on this connection; say so when it was idle for `idle`.
    /// `mux`: they are LLC-multiplexed, with this ELAN-ID.
    Open {
        conn: ConnId,
        idle: Option<Duration>,
        mux: Option<u32>,
    },
    /// The connection is gone.
    Close(ConnId),
    /// Send frames for `mac` on `to`. If the old path carried one within `fresh`, hold them and ask for a flush.
    Switch {
        mac: MacAddr,
        to: ConnId,
        fresh: Duration,
    },
    /// The flush is over: send what is held, and all that follows, on `to`.
    Proceed { mac: MacAddr, to: ConnId },
    /// No path: use the BUS within the quota. `asked`: do not ask for a path until told otherwise.
    Unresolved { mac: MacAddr, asked: bool },
    /// Forget the destination.
    Forget(MacAddr),
    /// When was this destination last used?
    AskUse(MacAddr),
    /// The client is no member any more: drop everything.
    Reset,
}

/// Data plane to control part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ToControl {
    /// A destination without a path is wanted.
    Resolve(MacAddr),
    /// A control SDU came on a data connection.
    Control { conn: ConnId, sdu: Vec<u8> },
    /// A frame of `mac` came on `conn`: first time, or first for a while.
    Heard { mac: MacAddr, conn: ConnId },
    /// The connection carried nothing for its idle time.
    Idle(ConnId),
    /// Switched at once: nothing is under way on the old path.
    Switched { mac: MacAddr, to: ConnId },
    /// Frames for `mac` are held; the last went on `via` at `last`.
    MustFlush {
        mac: MacAddr,
        to: ConnId,
        via: ConnId,
        last: Instant,
    },
    /// Asked to switch a destination that it does not know (any more).
    Unwanted(MacAddr),
    /// Answer to `AskUse`.
    Use { mac: MacAddr, last: Option<Instant> },
}
