//! Hosts and routers in virtual time, joined by wires that lose, delay and reorder.

mod arp;
mod hosts;
mod routers;
mod wire;
