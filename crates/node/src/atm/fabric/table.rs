//! Changes of the table of connections, and why one is refused.

use crate::atm::police::Policing;
use aerostat_wire::{TrafficParams, Vc};
use core::fmt;

/// A label at a port of a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PortVc {
    /// The port, from 0.
    pub port: u16,
    /// The VC on the port's link.
    pub vc: Vc,
}

impl PortVc {
    /// A label from its parts.
    #[must_use]
    pub const fn new(port: u16, vc: Vc) -> Self {
        Self { port, vc }
    }
}

impl fmt::Display for PortVc {
    /// `port.vpi.vci`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.port, self.vc)
    }
}

/// A request of the control plane to the fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FabricOp {
    /// Open one direction of a connection; leaves may be added.
    Connect {
        /// Source of the cells.
        from: PortVc,
        /// Destination of the cells.
        to: PortVc,
        /// The contract of this direction.
        traffic: TrafficParams,
        /// Policing of its cells.
        police: Policing,
    },
    /// Open one direction of a path connection; the VCIs of both labels have no meaning.
    ConnectPath {
        /// Source of the cells.
        from: PortVc,
        /// Destination of the cells.
        to: PortVc,
        /// The contract of this direction.
        traffic: TrafficParams,
        /// Policing of its cells.
        police: Policing,
    },
    /// Add a leaf.
    AddLeaf {
        /// The connection.
        from: PortVc,
        /// The new leaf.
        to: PortVc,
    },
    /// Drop a leaf. The connection stays open, even without leaves.
    DropLeaf {
        /// The connection.
        from: PortVc,
        /// The leaf.
        to: PortVc,
    },
    /// Close a connection with all its leaves.
    Disconnect {
        /// The connection.
        from: PortVc,
    },
}

/// Why a [`FabricOp`] was refused. The fabric is unchanged after an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FabricError {
    /// There is no such port.
    NoPort(u16),
    /// The incoming label is in use.
    InputBusy(PortVc),
    /// The outgoing label is in use.
    OutputBusy(PortVc),
    /// The port has no free queue for this outgoing label: it has as many as its limit.
    NoQueue(PortVc, usize),
    /// No connection has this incoming label.
    NoConnection(PortVc),
    /// The connection has no such leaf.
    NoLeaf(PortVc),
}

impl fmt::Display for FabricError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPort(port) => write!(f, "no port {port}"),
            Self::InputBusy(at) => write!(f, "incoming label {at} is in use"),
            Self::OutputBusy(at) => write!(f, "outgoing label {at} is in use"),
            Self::NoQueue(at, most) => {
                write!(
                    f,
                    "no queue for {at}: port {} has {most}, its limit",
                    at.port
                )
            }
            Self::NoConnection(at) => write!(f, "no connection from {at}"),
            Self::NoLeaf(at) => write!(f, "no leaf {at}"),
        }
    }
}

impl std::error::Error for FabricError {}
