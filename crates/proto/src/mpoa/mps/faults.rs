//! Packets that were recently refused with an Error Indication, here or by others: for people who ask why there is no
//! shortcut.

use std::net::IpAddr;

use aerostat_wire::AtmAddress;
use aerostat_wire::nhrp::Packet;

use super::Server;
use crate::Instant;

/// Largest number of stored rows.
pub(super) const LIMIT: usize = 64;

/// A packet that was refused with an Error Indication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultRow {
    /// Time of the last refusal.
    pub at: Instant,
    /// The type of the packet.
    pub op: u8,
    /// The destination that it was about.
    pub destination: Option<IpAddr>,
    /// Error code.
    pub code: u16,
    /// If the packet was refused here: the peer that sent it. Else: the station that refused it, as the indication
    /// says.
    pub peer: Option<AtmAddress>,
    /// True if the packet was refused here.
    pub here: bool,
    /// Number of refusals.
    pub times: u64,
}

impl Server {
    /// Stores a refusal; a repeated refusal replaces the earlier row.
    pub(super) fn note_fault(
        &mut self,
        (packet, code): (&Packet, u16),
        peer: Option<AtmAddress>,
        here: bool,
        now: Instant,
    ) {
        let mut row = FaultRow {
            at: now,
            op: packet.op,
            destination: packet.common().and_then(|common| common.destination.ip()),
            code,
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
