//! Labs in virtual time.
//!
//! | part | modules |
//! |---|---|
//! | a lab from start to end: what `aerostat run` does | [`run`] |
//! | its nodes and links as a world | [`lab_world`], [`nodes`] |
//! | any nodes and links: every cell, every deadline | [`world`], [`node`], [`link`] |
//! | what is due next | [`event`] |
//! | what passes a link end, as pcapng | [`capture`] |
//! | connections end to end, queues, policers and links at the end | [`circuits`] |
//!
//! # The loop
//!
//! A [`World`] owns its nodes and links. [`World::run_until`] takes what is due next, cells that arrive at a node or
//! the deadline of a node, gives it to the node, and then looks at the node's ports for cells that may leave. An
//! [`Observer`] hears what nodes tell. Events of one instant have a fixed order ([`event`]), and each link draws from
//! a random stream of its own: the same world with the same seed gives the same outputs, byte for byte.
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
mod tests;
