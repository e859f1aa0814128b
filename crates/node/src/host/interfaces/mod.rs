//! Interfaces of a host: the IP side; LANE, Classical IP and ATM lines below it; the segment behind a host that
//! bridges.

pub(super) mod clip;
mod embedded;
mod filtering;
pub(super) mod ip;
mod line;
pub(super) mod segment;
pub(super) mod super_frames;
