//! Work of the fuzz targets.
//!
//! Each module has a function `run` that takes one input and panics if something is wrong. The targets in
//! `fuzz_targets` only call it, so that any input can also be run, and debugged, by other means.

pub mod atp;
pub mod decode;
pub mod explain;
pub mod feed;
pub mod ilmi;
pub mod lane;
pub mod mpoa;
pub mod mutants;
pub mod nhrp;
pub mod split;
pub mod sscop;
pub mod tcp;
pub mod uni;

/// Two hosts and their switch under a sequence of calls, loss, restarts and forged SSCOP PDUs and messages.
pub fn sequences(input: &[u8]) {
    aerostat_testing::switch::sequences::run(input);
}
