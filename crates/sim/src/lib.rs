//! Aerostat: labs in virtual time.
//!
//! - [`event`]: the one queue of events, ordered by time and then by insertion.
//! - [`link`]: what a link does to cells: delay, loss, bit errors, header error control.
//! - [`node`]: what the world asks of a node; [`world`] moves every cell and drives every deadline.
//! - [`nodes`]: the hosts, routers, servers and switches of a lab as such nodes.
//! - [`lab_world`]: the world of a lab.
//! - [`run`]: a lab from start to end.
//! - [`circuits`]: connections end to end, queues, policers and links at the end of a run.
//! - [`capture`]: what passes a link end, as pcapng.
//!
//! The same world with the same seed gives the same outputs, byte for byte.

pub mod capture;
pub mod event;
pub mod lab_world;
pub mod link;
pub mod node;
pub mod nodes;
pub mod run;
pub mod world;

pub use aerostat_lab::circuits::{self, LinkCounters};
pub use capture::Capture;
pub use link::LinkConfig;
pub use node::{Node, NodeOutput, Observer, Packet, PassedCell};
pub use nodes::{LabEvent, LabNode};
pub use world::{LinkEnd, LinkId, NodeId, World};

#[cfg(test)]
mod lab_tests;
#[cfg(test)]
mod tests;
