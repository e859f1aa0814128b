//! Interfaces of a host: the IP side, LANE and Classical IP below it, the segment behind a host that bridges.

pub(super) mod clip;
mod embedded;
mod filtering;
pub(super) mod ip;
pub(super) mod segment;
pub(super) mod super_frames;
