//! Hosts and routers in virtual time, joined by wires that lose, delay and reorder frames.

use crate::rate::PacketRate;
use aerostat_proto::Duration;

mod arp;
mod hosts;
mod restarts;
mod routers;
mod tcp;
mod wire;

fn every(interval: Duration) -> PacketRate {
    PacketRate::every(interval).expect("not zero")
}
