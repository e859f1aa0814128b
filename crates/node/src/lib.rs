//! Aerostat: hosts, switches, servers and routers built from protocol machines.

pub mod atm;
pub mod ip;
