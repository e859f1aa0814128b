//! Benchmarks of the crates; see `bench/README.md`.
//!
//! [`anchors`] are limits of the machine; [`assured`], [`calls`], [`cells`], [`fabric`], [`labs`] and [`setup`] are
//! scenarios.

pub mod anchors;
pub mod assured;
pub mod calls;
pub mod cells;
pub mod fabric;
pub mod labs;
pub mod setup;
pub mod soak;
