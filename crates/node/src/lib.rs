//! Aerostat: hosts, switches, servers and routers built from protocol machines.

pub mod atm;
pub mod host;
mod ilmi;
pub mod inspect;
pub mod interface;
pub mod ip;
pub mod rate;
pub mod signalling;
pub mod switch;
