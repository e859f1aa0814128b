//! The cell plane: adapters of hosts and fabrics of switches, without any protocol.
//!
//! - [`pdu`]: PDUs and runs of cells; [`raw`]: cells with their own octets; [`reassembly`] turns runs back into PDUs.
//! - [`pdu_train`]: the PDUs of one super frame of a kernel, or of programs' [`sdus`], which mostly move as one run.
//! - [`rate`], [`police`], [`shaper`]: exact cell times, GCRA, leaky buckets; [`timing`]: times of cells that move as
//!   one run.
//! - [`port`]: an output port with its queues and scheduler; [`queue`] has the discard rules.
//! - [`framing`]: lines that carry cells in Ethernet frames.
//! - [`cell_trains`]: cells on a line whose arrival is no event.
//! - [`mark`]: data units as the accounts of a run see them.
//! - [`fabric`]: the path of cells through a switch; [`nic`]: a host's adapter.
//!
//! This module does not know signalling: a control plane opens and closes connections, and sends and receives PDUs on
//! the few labels that end at the node.
//!
//! Standards: I.361, I.363.5, I.610 (loopback), Traffic Management 4.0 (contracts, GCRA, frame discard).

pub mod cell_trains;
mod counters;
pub mod fabric;
pub mod framing;
pub mod mark;
pub mod nic;
pub mod pdu;
pub mod pdu_train;
pub mod police;
pub mod port;
pub mod queue;
pub mod rate;
pub mod raw;
pub mod reassembly;
mod runs;
pub mod sdus;
pub mod shaper;
pub mod table;
pub mod timing;

pub use cell_trains::{Alone, AloneCells, Bound, Ended, Key, Trains};
pub use counters::{CellCounters, DropReason, Drops, UpcCounters, UpcReason};
pub use fabric::{Fabric, FabricOp, Passage, PortVc, Through};
pub use framing::{Framing, InFrame};
pub use mark::{DataUnit, DataUnitBuf, Mark, SocketId};
pub use nic::{Nic, NicConfig, NicDiscard, NicEvent, RateQueue, Shaping, Written};
pub use pdu::{CellRun, Content, Pdu};
pub use pdu_train::{PduTrain, TrainPart, TrainSource};
pub use police::Policing;
pub use port::{
    Admission, Departure, Discipline, DroppedPdu, Limits, MAX_WEIGHT, OutputPort, PathConfig,
    PathKey, PathView, PortLimits, QueueConfig, QueueId, QueueView, Tuning,
};
pub use rate::{CellRate, Pacer};
pub use raw::{RawCell, RawCells, RawPool};
pub use reassembly::{Received, RunReassembler};
pub use sdus::Sdus;
pub use timing::{Arrivals, Timing};

#[cfg(test)]
mod tests;
