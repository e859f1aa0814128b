//! Limits that all nodes of a kind have in common.

use aerostat_node::switch::PortParams;
use aerostat_proto::mpoa::mps;
use aerostat_proto::nhrp::client;

/// Limits: the defaults, or those of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Ports of switches. A limit that has its default grows with the lab when the switches are made.
    pub port: PortParams,
    /// MPOA servers.
    pub mps: mps::Limits,
    /// NHRP clients.
    pub nhrp: client::Limits,
}
