//! An MPOA daemon in a process of its own: its messages to and from the client in the lab's process.
//!
//! **Purpose.** The two halves of a client ([`mpc`](crate::mpoa::mpc)) talk by typed messages. Here they get a form
//! for a socket between two processes, together with what else a daemon needs from the operating system: calls.
//!
//! ```text
//!   lab's process                                        mpcd
//!   Mpc: data plane, both caches   ── ToMpcd ──────────► Mpcd: all that reads a peer's packets
//!   signalling manager             ◄───────── FromMpcd ──
//! ```
//!
//! **Objects and owners.** [`Mpc`](crate::mpoa::Mpc) with [`split`](crate::mpoa::MpcConfig::split) keeps the seat of
//! the daemon; [`Mpcd`](crate::mpoa::mpc::Mpcd) is the daemon with its timers. How messages become octets, and what all
//! daemons have in common, is [`crate::split`]'s. A request about something that is not the daemon's is refused and
//! counted.
//!
//! **Standards.** None. The messages of Tables 4.1 and 4.2 of the thesis keep the numbers of the Linux client; the
//! encoding is this project's own, and both ends have the same version.

mod codec;
#[cfg(test)]
mod tests;

use crate::mpoa::messages::{ToDaemon, ToKernel};
use crate::mpoa::mpc::{MpcConfig, MpcCounters};
use crate::mpoa::params::MpcParams;
use crate::{AtmEvent, AtmRequest, Duration, Trace};
use aerostat_wire::{AtmAddress, MacAddr};

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
    /// From the ATM service.
    Atm(AtmEvent<Vec<u8>>),
}

/// From the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FromMpcd {
    /// A message for the data plane.
    Message(ToKernel),
    /// To the ATM service.
    Atm(AtmRequest),
    /// LE_ARP may know who owns this address.
    Discover {
        /// The LANE interface.
        itf: usize,
        /// The MAC address.
        mac: MacAddr,
    },
    /// An observation.
    Trace(Trace),
    /// The counters since the last message of this kind.
    Counted(Box<MpcCounters>),
    /// The MPSs that are watched, and how long each is still trusted.
    Watched(Vec<(AtmAddress, Duration)>),
    /// Everything is purged and released.
    Ended {
        /// It will start again by itself.
        restarts: bool,
        /// Its process ends.
        exits: bool,
    },
}
