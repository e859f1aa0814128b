//! Labs in virtual time.
//!
//! | part | modules |
//! |---|---|
//! | a lab from start to end: what `aerostat run` does | [`run`] |
//! | its nodes and links as a world | [`lab_world`] |
//! | any nodes and links: every cell, every deadline | [`world`], [`link`], [`observer`] |
//! | what both drivers share: nodes, power, faults, the order of events | [`aerostat_lab::plant`] |
//! | what passes a link end, as pcapng | [`capture`] |
//! | the way of one packet, with all its times | [`follow`] |
//! | what a lab should do, and whether it does | [`check`] |
//! | connections end to end, queues, policers and links at the end | [`circuits`] |
//!
//! # The loop
//!
//! A [`World`] owns its nodes and links. [`World::run_until`] takes what is due next, cells that arrive at a node or
//! the deadline of a node, gives it to the node, and then looks at the node's ports for cells that may leave. An
//! [`Observer`] hears what nodes tell. Events of one instant have a fixed order ([`aerostat_lab::plant`]), and each
//! link draws from a random stream of its own: the same world with the same seed gives the same outputs, byte for byte.
//!
//! # Example
//!
//! ```
//! let text = "
//! switches: { s1: {} }
//! lane: { on: s1, elans: { a: { subnet: 10.1.0.0/24 } } }
//! hosts:
//!   anna: { on: s1, elan: a, ip: 10.1.0.10 }
//!   bert: { on: s1, elan: a, ip: 10.1.0.20 }
//! traffic:
//!   - { name: ping, from: anna, to: bert, kind: ping, rate: 10pps, start: 1s, duration: 1s }
//! ";
//! let lab = aerostat_lab::parse("garden", text, &[])?.lab;
//! let report = aerostat_sim::run::run(&lab, None, &mut ())?;
//! let ping = &report.flows[0];
//! assert_eq!((ping.sum(|path| path.sent_packets), ping.sum(|path| path.received_packets)), (10, 10));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `examples/by_hand.rs` puts a world together without a lab file. Read [`world`] first.

pub mod atptest;
pub mod benchmark;
pub mod capture;
pub mod check;
pub mod follow;
pub mod lab_world;
pub mod link;
pub mod observer;
pub mod run;
pub mod world;

pub use aerostat_lab::circuits::{self, LinkCounters};
pub use aerostat_lab::plant::{
    LabEvent, LabNode, LinkConfig, LinkEnd, LinkId, Node, NodeId, NodeOutput,
};
pub use capture::Capture;
pub use observer::{Observer, Packet, PassedCell};
pub use world::World;

#[cfg(test)]
mod tests;
