//! Messages between an MPOA client and its daemon.
//!
//! **Purpose.** The two halves of a client ([`mpc`](crate::mpoa::mpc)) talk by typed messages: those of
//! [`messages`](crate::mpoa::messages), and the few that start and end a daemon. They are the same in one process and
//! over a socket between two.
//!
//! ```text
//!   Mpc: data plane, both caches   ── ToMpcd, AtmEvent ────► Mpcd: all that reads a peer's packets
//!   signalling of the host         ◄── FromMpcd, AtmRequest ──
//! ```
//!
//! **Objects and owners.** [`Mpc`](crate::mpoa::Mpc) has the [`Seat`](crate::split::Seat) of the daemon;
//! [`Mpcd`](crate::mpoa::mpc::Mpcd) is the daemon with its timers. How messages become octets, and what all daemons
//! have in common, is [`crate::split`]'s. A request about something that is not the daemon's is refused and counted.
//!
//! **Standards.** None. The messages of Tables 4.1 and 4.2 of the thesis keep the numbers of the Linux client; the
//! encoding is this project's own, and both ends have the same version.

mod codec;
#[cfg(test)]
mod tests;

use crate::Duration;
use crate::mpoa::messages::{ToDaemon, ToKernel};
use crate::mpoa::mpc::{MpcConfig, MpcCounters};
use crate::mpoa::params::MpcParams;
use aerostat_wire::{AtmAddress, MacAddr};

crate::split_record! {
    /// An ELAN of which the host is a member.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ElanInfo {
        /// The LANE interface.
        pub itf: usize,
        /// Number of the ELAN; 0 if it has none.
        pub elan_id: u32,
        /// Largest IP packet, octets.
        pub mtu: u16,
    }
}

/// To the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToMpcd {
    /// Start the daemon.
    Start {
        /// Addresses, bounds and other settings, with a seed that no earlier daemon had.
        config: Box<MpcConfig>,
        /// Parameters in force.
        params: MpcParams,
        /// ELANs joined so far.
        elans: Vec<ElanInfo>,
    },
    /// End regularly; with `reload`, start again after five seconds.
    Stop {
        /// True as after SIGHUP.
        reload: bool,
    },
    /// An ELAN was joined.
    ElanUp(ElanInfo),
    /// An ELAN was left.
    ElanDown {
        /// The LANE interface.
        itf: usize,
    },
    /// The LECS changed the parameters.
    Params(MpcParams),
    /// A message of the data plane.
    Message(ToDaemon),
}

/// From the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromMpcd {
    /// A message for the data plane.
    Message(ToKernel),
    /// LE_ARP may know who owns this address.
    Discover {
        /// The LANE interface.
        itf: usize,
        /// The MAC address.
        mac: MacAddr,
    },
    /// Events counted since the last message of this kind.
    Counted(Box<MpcCounters>),
    /// The MPSs that are watched, and how long each is still trusted.
    Watched(Vec<(AtmAddress, Duration)>),
}
