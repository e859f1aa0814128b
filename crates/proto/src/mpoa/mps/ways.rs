//! Ways back to requesters for which another server spoke.
//!
//! A subnet of Classical IP may have several NHRP servers, and a station registers with one of them. The station takes
//! calls from that server alone. So what this server has for the station (replies and purges) goes back over the server
//! that forwarded the request. Source: RFC 2332 §5.2.1 leaves the path of a reply to the routed path, which ends at the
//! station here.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use aerostat_wire::AtmAddress;
use aerostat_wire::nhrp::Packet;

use super::Server;
use crate::{Duration, Instant};

/// Servers by the station for which they spoke, each for as long as an answer may hold.
#[derive(Debug, Default)]
pub(super) struct Ways {
    back: BTreeMap<IpAddr, (AtmAddress, Instant)>,
    ends: BTreeSet<(Instant, IpAddr)>,
}

impl Ways {
    /// The server to which a packet for `station` goes.
    pub(super) fn to(&self, station: IpAddr, now: Instant) -> Option<AtmAddress> {
        let way = self.back.get(&station).filter(|(_, until)| *until > now);
        way.map(|(server, _)| *server)
    }

    /// Notes a way of at most `limit`; ways whose time is over make room. False without room.
    #[must_use]
    fn note(&mut self, station: IpAddr, way: (AtmAddress, Instant), limit: usize) -> bool {
        self.forget(station);
        if self.back.len() >= limit {
            return false;
        }
        self.ends.insert((way.1, station));
        self.back.insert(station, way);
        true
    }

    fn forget(&mut self, station: IpAddr) {
        if let Some((_, until)) = self.back.remove(&station) {
            self.ends.remove(&(until, station));
        }
    }

    fn expire(&mut self, now: Instant) {
        while let Some((_, station)) = self.ends.first().copied().filter(|(at, _)| *at <= now) {
            self.forget(station);
        }
    }

    pub(super) fn clear(&mut self) {
        self.back.clear();
        self.ends.clear();
    }
}

impl Server {
    /// Notes which neighbour brought a Resolution Request, unless the station itself did.
    pub(super) fn note_way_back(&mut self, request: &Packet, from: AtmAddress, now: Instant) {
        let common = request.common();
        let Some(station) = common.and_then(|common| common.source.ip()) else {
            return;
        };
        self.ways_back.expire(now);
        if common.and_then(|common| common.source_nbma.atm()) == Some(from) {
            return self.ways_back.forget(station);
        }
        let until = now + Duration::from_secs(self.config.params.holding_s().into());
        let limit = self.config.limits.devices;
        if !self.ways_back.note(station, (from, until), limit) {
            self.counters.limits_met += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn station(last: u8) -> IpAddr {
        IpAddr::from([10, 3, 0, last])
    }

    /// Servers that speak for ever more stations meet the limit; ways that are over make room, and a way may change.
    #[test]
    fn ways_have_a_limit_and_end() {
        let mut ways = Ways::default();
        let start = Instant::ZERO;
        let server = |last| AtmAddress([last; 20]);
        assert!(ways.note(station(1), (server(1), start + SECOND), 2));
        assert!(ways.note(station(2), (server(1), start + SECOND * 5), 2));
        assert!(!ways.note(station(3), (server(1), start + SECOND * 5), 2));
        assert!(ways.note(station(1), (server(2), start + SECOND * 2), 2));
        assert_eq!(ways.to(station(1), start), Some(server(2)));
        assert_eq!(ways.to(station(1), start + SECOND * 2), None);
        ways.expire(start + SECOND * 2);
        assert!(ways.note(station(3), (server(3), start + SECOND * 9), 2));
        assert_eq!(ways.ends.len(), ways.back.len());
        ways.forget(station(3));
        assert_eq!(ways.to(station(3), start), None);
    }
}
