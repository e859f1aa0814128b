//! The privileged helper: a small process that keeps the few rights that a lab needs while it runs.
//!
//! ```text
//!  aerostat up ── starts it before it gives up its own rights ──> helper ── starts ──> daemons (`--split`)
//!    cells, frames, clients: no rights ── requests: numbers ──>     └─ `ip`, inside namespaces of this lab
//! ```
//!
//! **Why.** A running lab moves stations and restarts daemons. Both need rights that a process which parses outside
//! traffic must not have. The helper has these rights and parses no traffic. It accepts messages only from its lab, on
//! two sockets of its own.
//!
//! **Objects and owners.** First the lab tells what it owns (`messages::Setup`): namespaces (as descriptors), the far
//! ends of cables, seats of daemons. `Seal` ends this phase for good. From then on a request contains only numbers of
//! these objects (`messages::Request`): no name, no path, no address, no descriptor. Each number is looked up, and an
//! unknown number is refused. `Helper` is the lab's end of the connection.
//!
//! **Sockets.** One is for the processes of daemons; the lab's loop uses it, and answers come at once. The other is for
//! cables; threads use it, and answers take as long as the kernel needs.
//!
//! **Life.** The helper ends with the lab: by end of file on its sockets, and by the parent death signal when it cannot
//! read. Its daemons end with it. If it dies alone, the lab continues without moves and without new daemons, and
//! reports that.

mod cables;
mod client;
mod messages;
mod process;
mod stat;
#[cfg(test)]
mod tests;
mod wire;

pub(crate) use client::{Helper, Looked};
pub(crate) use messages::Ended;
pub use process::run_helper;

use crate::namespace::NetNs;
use aerostat_proto::split::Role;
use aerostat_wire::MacAddr;
use std::path::Path;

/// Hidden first argument under which the command becomes the helper.
pub const HELPER_ARGUMENT: &str = "__lab-helper";

/// A bridging host, into which stations can be plugged.
#[derive(Debug)]
pub(crate) struct BridgeHost<'a> {
    /// Its network namespace.
    pub(crate) namespace: &'a NetNs,
    /// Number of its ELAN: a station stays within its ELAN.
    pub(crate) elan: u32,
}

/// A station behind a bridging host.
#[derive(Debug)]
pub(crate) struct Cabled<'a> {
    /// Its network namespace.
    pub(crate) namespace: &'a NetNs,
    /// Name of the far end of its cable.
    pub(crate) port: &'a str,
    /// Its address.
    pub(crate) mac: MacAddr,
    /// The host where it is plugged in: its index in [`Owned::hosts`].
    pub(crate) host: u32,
}

/// The objects that the helper may touch; requests name them by their indices.
#[derive(Debug, Default)]
pub(crate) struct Owned<'a> {
    /// Bridging hosts.
    pub(crate) hosts: Vec<BridgeHost<'a>>,
    /// Stations behind them.
    pub(crate) stations: Vec<Cabled<'a>>,
    /// Program and socket of the daemons, if there are daemons.
    pub(crate) daemons: Option<(&'a Path, &'a Path)>,
    /// Seats of daemons: role and node.
    pub(crate) seats: Vec<(Role, &'a str)>,
}

impl Owned<'_> {
    /// True if there is nothing for which a helper is needed.
    pub(crate) fn is_empty(&self) -> bool {
        self.stations.is_empty() && self.seats.is_empty()
    }
}
