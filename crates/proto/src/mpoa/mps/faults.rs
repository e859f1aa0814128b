//! Packets that were recently refused, here or by others, with an Error Indication or with the code of a reply: for
//! people who ask why there is no shortcut.

use std::net::IpAddr;

use aerostat_wire::AtmAddress;
use aerostat_wire::nhrp::{Packet, op};

use super::Server;
use crate::Instant;

/// Largest number of stored rows.
pub(super) const LIMIT: usize = 64;

crate::split_record! {
    /// A packet that was refused.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct FaultRow {
        /// Time of the last refusal.
        pub at: Instant,
        /// The type of the packet.
        pub op: u8,
        /// The address that it was about: the destination, or the address to be registered.
        pub destination: Option<IpAddr>,
        /// Code and kind of the refusal.
        pub with: RefusedWith,
        /// If the packet was refused here: the station that sent it. Else: the station that refused it, as the
        /// indication says.
        pub peer: Option<AtmAddress>,
        /// True if the packet was refused here.
        pub here: bool,
        /// Number of refusals.
        pub times: u64,
    }
}

/// A refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefusedWith {
    /// Error Indication with this code. Source: RFC 2332 §5.2.7.
    Error(u16),
    /// Negative reply with this code, of NHRP or MPOA.
    Code(u8),
}

impl Server {
    /// Stores a refusal; a repeated refusal replaces the earlier row.
    pub(super) fn note_fault(
        &mut self,
        (packet, with): (&Packet, RefusedWith),
        peer: Option<AtmAddress>,
        here: bool,
        now: Instant,
    ) {
        let mut row = FaultRow {
            at: now,
            op: packet.op,
            destination: packet.common().and_then(|common| match packet.op {
                op::REGISTRATION_REQUEST | op::REGISTRATION_REPLY => common.source.ip(),
                _ => common.destination.ip(),
            }),
            with,
            peer,
            here,
            times: 1,
        };
        let same = |known: &FaultRow| {
            FaultRow {
                at: now,
                times: 1,
                ..known.clone()
            } == row
        };
        let known = self.faults.iter().position(same);
        match known.and_then(|at| self.faults.remove(at)) {
            Some(known) => row.times += known.times,
            None if self.faults.len() >= LIMIT => drop(self.faults.pop_front()),
            None => {}
        }
        self.faults.push_back(row);
    }
}
