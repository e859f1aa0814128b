//! The network of the switch's own tests, and what it is put through.

pub(crate) use aerostat_node::switch::*;

#[path = "../../crates/node/src/switch/sequences.rs"]
pub(crate) mod sequences;
#[path = "../../crates/node/src/switch/testnet.rs"]
#[allow(dead_code, reason = "the switch's own tests use more of it")]
pub(crate) mod testnet;
