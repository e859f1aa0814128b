//! Messages between the two halves of a client.
//!
//! The data plane ([`super::forward::Forwarder`]) moves frames and knows connections by id; it never reads a control
//! frame. The control part ([`super::control::Control`]) speaks with servers and peers and never touches a frame. Times
//! are sent as elapsed time: the halves may be in processes with clocks of their own ([`super::split`]).

use crate::{ConnId, Duration};
use aerostat_wire::MacAddr;

/// Control part to data plane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToData {
    /// The client is a member.
    Joined {
        /// Its LECID.
        lecid: u16,
        /// The largest SDU, octets.
        max_sdu: u16,
    },
    /// Quota for unresolved destinations.
    Quota {
        /// C10, frames.
        count: u16,
        /// C11.
        time: Duration,
    },
    /// The multicast send connection, or none.
    Bus(Option<ConnId>),
    /// Frames may come on this connection.
    Open {
        /// The connection.
        conn: ConnId,
        /// Report when the connection carried no frame for this time.
        idle: Option<Duration>,
        /// The frames are LLC-multiplexed, with this ELAN-ID.
        mux: Option<u32>,
    },
    /// The connection is gone.
    Close(ConnId),
    /// Send frames for `mac` on `to`. If the old path carried a frame within `fresh`, hold the frames and ask for a
    /// flush.
    Switch {
        /// The destination.
        mac: MacAddr,
        /// Its new path.
        to: ConnId,
        /// C22.
        fresh: Duration,
    },
    /// The flush is over: send the held frames, and all further ones, on `to`.
    Proceed {
        /// The destination.
        mac: MacAddr,
        /// Its new path.
        to: ConnId,
    },
    /// No path: use the BUS within the quota.
    Unresolved {
        /// The destination.
        mac: MacAddr,
        /// Do not ask for a path until told otherwise.
        asked: bool,
    },
    /// Forget the destination.
    Forget(MacAddr),
    /// When was this destination last used?
    AskUse(MacAddr),
    /// The client is no member any more: drop everything.
    Reset,
}

/// Data plane to control part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToControl {
    /// A path for this destination is wanted.
    Resolve(MacAddr),
    /// A control SDU came on a data connection.
    Control {
        /// The connection.
        conn: ConnId,
        /// The SDU, without LLC/SNAP.
        sdu: Vec<u8>,
    },
    /// A frame of `mac` came on `conn`: the first one, or the first one for some time.
    Heard {
        /// Its source.
        mac: MacAddr,
        /// The connection.
        conn: ConnId,
    },
    /// The connection carried no frame for its idle time.
    Idle(ConnId),
    /// The destination was switched at once: no frame is under way on the old path.
    Switched {
        /// The destination.
        mac: MacAddr,
        /// Its path.
        to: ConnId,
    },
    /// Frames for `mac` are held.
    MustFlush {
        /// The destination.
        mac: MacAddr,
        /// Its new path.
        to: ConnId,
        /// Its old path.
        via: ConnId,
        /// How long ago the last frame went on the old path.
        ago: Duration,
    },
    /// The control part asked to switch a destination that the data plane does not know (any more).
    Unwanted(MacAddr),
    /// Answer to `AskUse`.
    Use {
        /// The destination.
        mac: MacAddr,
        /// How long ago it was last used; `None` if it is unknown.
        ago: Option<Duration>,
    },
}
