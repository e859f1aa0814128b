//! Limits that all nodes of a kind have in common.

use aerostat_node::switch::PortParams;
use aerostat_proto::mpoa::mps;
use aerostat_proto::nhrp::client;
use std::collections::BTreeSet;

/// Limits: the defaults, or those of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Ports of switches.
    pub port: PortParams,
    /// MPOA servers.
    pub mps: mps::Limits,
    /// NHRP clients.
    pub nhrp: client::Limits,
    /// Limits that the file gives, by section and key. The others grow with the lab when its nodes are made.
    pub given: BTreeSet<(&'static str, &'static str)>,
}

impl Limits {
    /// True if the file gives this limit, even with the value that it has anyway.
    #[must_use]
    pub fn gives(&self, section: &'static str, key: &'static str) -> bool {
        self.given.contains(&(section, key))
    }
}
