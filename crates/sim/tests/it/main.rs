//! Whole networks in virtual time: labs, faults, leaks, random schedules of faults.
//!
//! The checkers look at samples, cells and tables from outside; they share no code with the protocols.

#![allow(
    clippy::disallowed_methods,
    reason = "closed forms beside results need no digit that is the same everywhere"
)]

mod atm_lines;
mod atp;
mod atptest;
mod back_pressure;
mod benchmark;
mod books;
mod both_ways;
mod bridges;
mod captures;
mod clip;
mod crankback;
mod cuts;
mod direct;
mod exact;
mod exercises;
mod faults;
mod follow;
mod gateways;
mod hostile;
mod interrupted;
mod joins;
mod keys;
mod labs;
mod lane;
mod line_ports;

mod lines;
mod load;
mod losses;
mod managers;
mod nhrp;
mod occupancy;
mod paces;
mod places;
mod policing;
mod ports;
mod random;
mod rates;
mod registering;
mod rejoin;
mod restarts;
mod scale;
mod schedules;
mod seats;
mod sizes;
mod slow_hosts;
mod slow_nodes;
mod sockets;
mod starts;
mod stream;
mod tcp;
mod testers;
mod theory;
mod versions;
mod vlans;
mod work;
mod worlds;

use aerostat_testing::labs::{bench, check};
