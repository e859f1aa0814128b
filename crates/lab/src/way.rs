//! Steps of a packet on its way through a running lab, one JSON line each.
//!
//! A packet is marked at its entrance: where an end system sends it first, or where it comes in from outside the lab.
//! From then on each link tells when it is sent and when it arrives. Nothing is put into the packet: it is known by its
//! headers, which stay as they are on the whole way.

use crate::picture::Kind;
use serde::{Deserialize, Serialize};

/// Limit of marked packets that are under way at a time, for each client.
pub const MOST_MARKED: usize = 1024;
/// Limit of steps that wait for a slow client. Only packets with many copies have so many.
pub const MOST_WAITING: usize = 1 << 16;
/// Time without a step after which nothing more is expected of a packet, ns.
pub const SILENCE: u64 = 1_000_000_000;

/// Kinds of steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Act {
    /// A node sends it on a link.
    Sent,
    /// A link has brought it to a node.
    Received,
    /// It is lost at a node: in front of the link on which it would have left, or on arrival.
    Dropped,
}

/// One step.
///
/// ```text
/// {"packet":7,"t":2003412000,"act":"sent","node":"urku","kind":"host","link":"urku-s1","peer":"s1","vc":"0.40",
///  "octets":196}
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Number of the packet: the marked ones count from 1.
    pub packet: u64,
    /// Nanoseconds since the start of the lab.
    pub t: u64,
    /// Kind of the step.
    pub act: Act,
    /// The node.
    pub node: String,
    /// Kind of the node.
    pub kind: Kind,
    /// The link.
    pub link: String,
    /// Node at the other end of the link.
    pub peer: String,
    /// VPI.VCI on the link.
    pub vc: String,
    /// Octets of the PDU, without padding and trailer.
    pub octets: u64,
    /// Why it was dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The packet in words, at its first step: `udp 10.1.0.10:5004 > 10.2.0.10:5004, 188 octets`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// True if the node is where the packet goes, or if it leaves the lab there.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub last: bool,
    /// At the first step of a packet: packets that were left out since the marked one before, although it was their
    /// turn. The client was too slow for their steps, or [`MOST_MARKED`] others were under way.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u64,
    /// Steps, of this packet or of others, that a slow client has not got so far.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missed: u64,
}

const fn is_zero(count: &u64) -> bool {
    *count == 0
}
