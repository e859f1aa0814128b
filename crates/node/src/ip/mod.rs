//! TCP/IP in a node: the embedded host stack, its programs, the embedded router, and the
//! measurements.
//!
//! All of this is above an Ethernet interface and independent of ATM. [`stack::Stack`] is a host, [`router::Router`] a
//! router with one interface per emulated LAN. Both are machines; the node carries their frames to and from its LAN
//! emulation clients. Both use the same [`neighbours`]. [`meter`] observes these frames from outside, and
//! [`flow_stats`] turns its samples into the figures of an experiment. [`emodel`] rates telephone calls from these
//! figures.

pub mod apps;
mod arp;
pub mod books;
pub mod clock;
pub mod emodel;
pub mod flow_stats;
pub mod fragments;
mod icmp;
pub mod meter;
pub mod neighbours;
mod packet;
pub mod router;
mod routes;
pub mod source_ports;
pub mod stack;
pub mod tcp;
mod udp;

#[cfg(test)]
mod tests;
