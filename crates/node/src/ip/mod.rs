//! TCP/IP in a node: the embedded host stack, its programs, the embedded router, and the
//! measurements.
//!
//! Everything here stands above an Ethernet interface and knows nothing of ATM. [`stack::Stack`] is
//! a host, [`router::Router`] a router with one interface per emulated LAN; both are machines whose
//! frames the node carries to and from its LAN emulation clients. Both find their [`neighbours`] alike. [`meter`] looks at the same
//! frames from outside and [`flow_stats`] turns what it saw into the figures of an experiment.
//! [`emodel`] rates telephone calls by them. [`offload`] finishes frames that a kernel left to its network card.

pub mod apps;
mod arp;
pub mod books;
pub mod emodel;
pub mod flow_stats;
pub mod meter;
pub mod neighbours;
pub mod offload;
mod packet;
pub mod random;
pub mod router;
mod routes;
pub mod stack;
pub mod stats;

#[cfg(test)]
mod tests;
