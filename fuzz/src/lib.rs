//! What the fuzz targets do with their input.
//!
//! Each module has a function `run` that takes one input and panics if something is wrong. The targets in
//! `fuzz_targets` only call it, so that any input can also be run, and debugged, by other means.

pub mod decode;
pub mod feed;
pub mod lane;
pub mod mpoa;
pub mod mutants;
pub mod nhrp;
pub mod split;
pub mod sscop;
mod switch;
#[path = "../../crates/proto/src/testing/mod.rs"]
#[allow(dead_code, reason = "the crate's own tests use more of it")]
mod testing;
pub mod uni;

// The network of the protocol machines' own tests names these by `crate::`.
use aerostat_proto::{AtmEvent, AtmRequest, Cause, ConnId, Duration, Instant, PartyId};
// So does the network of the switch's own tests.
use aerostat_node::{atm, interface, signalling};

/// Two hosts and their switch under a sequence of calls, loss, restarts and forged SSCOP PDUs and messages.
pub fn sequences(input: &[u8]) {
    switch::sequences::run(input);
}
