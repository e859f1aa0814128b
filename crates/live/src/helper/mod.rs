//! The privileged helper: a small process that keeps the few rights which a lab needs while it runs.
//!
//! ```text
//!  aerostat up ── starts it before it gives up its own rights ──> helper ── starts ──> daemons (`--split`)
//!    cells, frames, clients: no rights ── requests: numbers ──>     └─ `ip`, inside namespaces of this lab
//! ```
//!
//! **Why.** A lab that runs moves stations and starts daemons again: both need rights that whatever parses outside traffic
//! must not have. The helper has them and parses no traffic. It hears its lab alone, on two sockets of its own.
//!
//! **Objects and owners.** First the lab says what it owns (`messages::Setup`): namespaces (as descriptors), the far ends
//! of cables, seats of daemons. `Seal` ends that for good. From then on a request holds numbers of these things and nothing
//! else (`messages::Request`): no name, no path, no address, no descriptor. Each number is looked up in what is owned, and what
//! is not there is refused. `Helper` is the lab's end of it.
//!
//! **Sockets.** One for the processes of daemons, which the lab's loop asks and which answers at once; one for cables, which
//! takes as long as the kernel does and which threads ask.
//!
//! **Life.** The helper ends with the lab: by end of file on its sockets, and by the parent death signal when it cannot read.
//! Its daemons end with it. If it dies alone the lab goes on without moves and without new daemons, and says so.

mod cables;
mod client;
mod messages;
mod process;
#[cfg(test)]
mod tests;
mod wire;

pub(crate) use client::Helper;
pub(crate) use messages::Ended;
pub use process::run_helper;

use crate::namespace::NetNs;
use aerostat_proto::split::Role;
use aerostat_wire::MacAddr;
use std::path::Path;

/// Hidden first argument under which the command becomes the helper.
pub const HELPER_ARGUMENT: &str = "__lab-helper";

/// A bridging host: stations can be plugged in there.
#[derive(Debug)]
pub(crate) struct BridgeHost<'a> {
    /// Its network namespace.
    pub(crate) namespace: &'a NetNs,
    /// Number of its ELAN: stations stay within theirs.
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
    /// The host where it is plugged in: its place in [`Owned::hosts`].
    pub(crate) host: u32,
}

/// What the helper may touch; requests name these by their places.
#[derive(Debug, Default)]
pub(crate) struct Owned<'a> {
    /// Bridging hosts.
    pub(crate) hosts: Vec<BridgeHost<'a>>,
    /// Stations behind them.
    pub(crate) stations: Vec<Cabled<'a>>,
    /// Program and socket of the daemons, if there are any.
    pub(crate) daemons: Option<(&'a Path, &'a Path)>,
    /// Their seats: role and node.
    pub(crate) seats: Vec<(Role, &'a str)>,
}

impl Owned<'_> {
    /// True if a lab that owns no more needs no helper.
    pub(crate) fn is_empty(&self) -> bool {
        self.stations.is_empty() && self.seats.is_empty()
    }
}
