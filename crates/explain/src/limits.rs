//! Bounds of the memory that a file can fill. Each bound that is met is counted and told.

use aerostat_wire::named;
use std::collections::BTreeMap;

/// Bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Messages that the report has.
    pub messages: usize,
    /// Sentences of the story.
    pub story: usize,
    /// Places that the report has for each rule; all are counted.
    pub places: usize,
    /// Requests, calls and other things that wait for their end, of each protocol.
    pub open: usize,
    /// Links, by interface or by pair of addresses.
    pub links: usize,
    /// VCs with cells that are put together.
    pub vcs: usize,
    /// Interfaces of a file.
    pub interfaces: usize,
    /// Octets of a block of a file.
    pub block: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            messages: 10_000,
            story: 10_000,
            places: 20,
            open: 65_536,
            links: 4096,
            vcs: 1024,
            interfaces: 4096,
            block: 1 << 24,
        }
    }
}

named! {
    /// Parts that were left out, and why.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Limit {
        /// Messages beyond the limit.
        Messages = "messages that are not shown",
        /// Sentences beyond the limit.
        Story = "sentences of the story that are not shown",
        /// Requests, calls and bindings beyond the limit.
        Open = "requests, calls and bindings that were not followed",
        /// Names beyond the limit.
        Names = "callers whose addresses got no names",
        /// Notes beyond the limit.
        Notes = "notes that are not shown",
        /// Packets beyond the limit that may be raw cells.
        Held = "packets that were read before the kind of their interface was known",
        /// Links beyond the limit.
        Links = "packets of further links that were not read",
        /// VCs beyond the limit.
        Vcs = "cells of further VCs that were not put together",
        /// Packets that are missing from the file, by its own statistics.
        Missing = "packets that the capture itself lost",
        /// Packets whose end is not in the file.
        Cut = "packets that the capture cut off",
        /// Packets of a link type that is not read.
        LinkTypes = "packets of a link type that is not read",
        /// Records of ERF of other types.
        Records = "ERF records of other types",
        /// Packets with headers that are not whole.
        Headers = "packets with a bad header below ATM, GRE or MPLS",
        /// Extension headers of IPv6.
        Extensions = "packets with extension headers of IPv6 that were not read",
        /// Fragments of IP.
        Fragments = "fragments of IP that were not put together",
        /// Packets behind MPLS or L2TPv3 that are of no pseudowire of ATM.
        Pseudowires = "packets of MPLS or L2TPv3 without ATM",
        /// Encrypted packets.
        Encrypted = "packets that IPsec encrypts",
        /// Blocks of pcapng without packets.
        OtherBlocks = "blocks without packets",
    }
}

impl Limit {
    /// True if a rule may be broken that is not named because of it. Messages that are not shown were read;
    /// fragments, encrypted packets and blocks without packets are usual.
    #[must_use]
    pub const fn is_loss(self) -> bool {
        !matches!(
            self,
            Self::Messages
                | Self::Story
                | Self::Names
                | Self::Notes
                | Self::Extensions
                | Self::Fragments
                | Self::Encrypted
                | Self::OtherBlocks
                | Self::Pseudowires
        )
    }
}

/// Limits that were met, with their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Met(BTreeMap<Limit, u64>);

impl Met {
    pub(crate) fn note(&mut self, limit: Limit) {
        *self.0.entry(limit).or_default() += 1;
    }
    pub(crate) fn count(&mut self, limit: Limit, more: u64) {
        if more > 0 {
            *self.0.entry(limit).or_default() += more;
        }
    }
    pub(crate) fn add(&mut self, other: &Self) {
        for (limit, count) in other.iter() {
            self.count(limit, count);
        }
    }
    /// The limits, and how often each was met.
    pub fn iter(&self) -> impl Iterator<Item = (Limit, u64)> + '_ {
        self.0.iter().map(|(limit, count)| (*limit, *count))
    }
    /// True if the report is not complete.
    #[must_use]
    pub fn has_loss(&self) -> bool {
        self.iter().any(|(limit, _)| limit.is_loss())
    }
}
