//! Packets that a machine dropped, for the accounts of a run.
//!
//! A counter tells how many packets were dropped; this tells which. The owner of a machine takes them after each call,
//! like outputs. Only the head of a packet is kept, which identifies its flow. There is no limit, because each entry
//! becomes a result: what one call drops came with it, or waited in a queue that has a limit.

use core::fmt;
use std::collections::VecDeque;

/// Octets of a packet that are kept: more than all headers of any encapsulation, plus the stamp of a measured datagram.
pub const HEAD: usize = 192;

/// Why a machine dropped a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Discard {
    /// Too many packets wait for the same destination.
    QueueFull,
    /// The table of destinations is full.
    TableFull,
    /// Longer or shorter than the network allows.
    BadLength,
    /// The client is not a member of its network, or has no way to it.
    NotJoined,
    /// The destination is unknown, or cannot be called.
    Unreachable,
    /// The connection was closed in the meantime.
    Closed,
    /// No entry tells what to do with a packet from this connection.
    NoEntry,
    /// The packet is not valid on this connection.
    Malformed,
    /// A frame flooded by the BUS, at a member for which it is not meant, or at its sender.
    NotForUs,
    /// Its sender has used up its quota at the server.
    OverQuota,
    /// The service has crashed or was stopped.
    Stopped,
}

impl Discard {
    /// The reason in a few words, for people.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::QueueFull => "too many packets wait for the destination",
            Self::TableFull => "table of destinations full",
            Self::BadLength => "wrong length",
            Self::NotJoined => "not joined",
            Self::Unreachable => "destination unreachable",
            Self::Closed => "connection closed",
            Self::NoEntry => "no egress entry",
            Self::Malformed => "malformed",
            Self::NotForUs => "flooded, and for nobody here",
            Self::OverQuota => "over the quota of its sender",
            Self::Stopped => "service down",
        }
    }
}

impl fmt::Display for Discard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
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
