//! Knowledge that a host gives to others: accounts of packets, tables, and what changes in time.

pub(super) mod attempts;
mod books;
pub(super) mod present;
pub(super) mod tables;
