//! Hosts and routers in virtual time, joined by wires that lose, delay and reorder frames.

use crate::ip::apps::AppKind;
use crate::rate::PacketRate;
use aerostat_proto::Duration;
use std::net::Ipv4Addr;

mod arp;
mod hosts;
mod restarts;
mod routers;
mod tcp;
mod wire;

fn every(interval: Duration) -> PacketRate {
    PacketRate::every(interval).expect("not zero")
}

fn ping(to: Ipv4Addr, count: Option<u32>, interval_ms: u64, size: usize) -> AppKind {
    AppKind::Ping {
        to,
        count,
        rate: every(Duration::from_millis(interval_ms)),
        size,
        ttl: None,
    }
}
