//! Packets that a machine dropped, for the accounts of a run.
//!
//! A counter tells how many packets were dropped; this tells which. The owner of a machine takes them after each call,
//! like outputs. Only the head of a packet is kept, which identifies its flow. There is no limit, because each entry
//! becomes a result: what one call drops came with it, or waited in a queue that has a limit.

use std::collections::VecDeque;

/// Octets of a packet that are kept: more than all headers of any encapsulation, plus the stamp of a measured datagram.
pub const HEAD: usize = 192;

aerostat_wire::named! {
    /// Why a machine dropped a packet.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Discard {
        /// Too many packets wait for the same destination.
        QueueFull = "too many packets wait for the destination",
        /// The table of destinations is full.
        TableFull = "table of destinations full",
        /// Longer or shorter than the network allows.
        BadLength = "wrong length",
        /// The client is not a member of its network, or has no way to it.
        NotJoined = "not joined",
        /// The destination is unknown, or cannot be called.
        Unreachable = "destination unreachable",
        /// The connection was closed in the meantime.
        Closed = "connection closed",
        /// No entry tells what to do with a packet from this connection.
        NoEntry = "no egress entry",
        /// The packet is not valid on this connection.
        Malformed = "malformed",
        /// A frame flooded by the BUS, at a member for which it is not meant, or at its sender.
        NotForUs = "flooded, and for nobody here",
        /// Its sender has used up its quota at the server.
        OverQuota = "over the quota of its sender",
        /// The service has crashed or was stopped.
        Stopped = "service down",
    }
}

/// The heads of dropped packets, in order.
#[derive(Clone, Debug, Default)]
pub struct Discards(VecDeque<(Discard, Vec<u8>)>);

impl Discards {
    /// Records a packet, frame or SDU.
    pub fn note(&mut self, why: Discard, octets: &[u8]) {
        let head = octets.get(..HEAD).unwrap_or(octets);
        self.0.push_back((why, head.to_vec()));
    }
    /// The next entry.
    pub fn take(&mut self) -> Option<(Discard, Vec<u8>)> {
        self.0.pop_front()
    }
}
