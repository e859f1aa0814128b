//! What was refused with an Error Indication lately, here or by others: for people who ask why there is no shortcut.

use std::net::IpAddr;

use aerostat_wire::AtmAddress;
use aerostat_wire::nhrp::Packet;

use super::Mps;
use crate::Instant;

/// So many are remembered.
const LIMIT: usize = 64;

/// A packet that was refused with an Error Indication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultRow {
    /// When last.
    pub at: Instant,
    /// The type of the packet.
    pub op: u8,
    /// The destination that it was about.
    pub destination: Option<IpAddr>,
    /// Error code.
    pub code: u16,
    /// Refused here: who brought it. Else: who refused it, as the indication says.
    pub peer: Option<AtmAddress>,
    /// Refused here.
    pub here: bool,
    /// How often.
    pub times: u64,
}

impl Mps {
    /// Remembers a refusal; the same again takes the place of the one before.
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
