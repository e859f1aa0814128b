//! Questions to the router: which path leads to an address, and who the neighbour on it is. All purposes use the same
//! code.

use std::net::IpAddr;

use aerostat_wire::lane::Tlv;
use aerostat_wire::mpoa::DeviceType;
use aerostat_wire::nhrp::code;
use aerostat_wire::{AtmAddress, MacAddr};

use super::state::{Purpose, Query, Reach};
use super::{Absent, L2Answer, Output, RouteResult, Server, ToRouter};
use crate::nhrp::RetryRule;
use crate::{Duration, Instant};

/// A question that the router has not answered within this time counts as answered with "not known now".
pub(super) const PATIENCE: RetryRule = RetryRule::once(Duration::from_secs(10));

/// The prefix length of a single address, for either version.
const ALONE: u8 = 128;

impl Server {
    /// Asks for the path to `target`; [`Self::reached`] continues with the answer.
    pub(super) fn find(&mut self, target: IpAddr, purpose: Purpose, now: Instant) {
        self.ask(Query::Route(target, purpose), now);
    }

    /// Asks for the MAC and ATM addresses of `hop`.
    pub(super) fn find_neighbour(&mut self, itf: u32, hop: IpAddr, purpose: Purpose, now: Instant) {
        let covers = ALONE;
        let question = Query::L2 {
            itf,
            hop,
            purpose,
            covers,
        };
        self.ask(question, now);
    }

    fn ask(&mut self, question: Query, now: Instant) {
        if self.queries.len() >= self.config.limits.queries {
            self.counters.limits_met += 1;
            let (Query::Route(_, purpose) | Query::L2 { purpose, .. }) = question;
            if let Purpose::Resolve { packet, .. } = purpose {
                self.refuse(&packet, code::RESOURCES, now);
            }
            return;
        }
        let output = match &question {
            Query::Route(dst, _) => (None, *dst),
            Query::L2 { itf, hop, .. } => (Some(*itf), *hop),
        };
        let Some(query) = self.queries.open(question, PATIENCE, now) else {
            return;
        };
        self.out.push_back(match output {
            (None, dst) => Output::Router(ToRouter::LookupRoute { query, dst }),
            (Some(itf), ip) => Output::Router(ToRouter::ResolveL2 { query, itf, ip }),
        });
    }

    pub(super) fn route_answer(
        &mut self,
        query: u32,
        (result, covers): (Option<RouteResult>, u8),
        now: Instant,
    ) {
        // The answer is late or of the other kind: the purpose was served without it.
        if !matches!(self.queries.get(query), Some(Query::Route(..))) {
            return;
        }
        let Some(Query::Route(dst, purpose)) = self.queries.close(query) else {
            return;
        };
        match result {
            None => self.reached(purpose, (&Reach::Nothing, ALONE), now),
            Some(RouteResult::Local) => self.reached(purpose, (&Reach::Own, ALONE), now),
            Some(RouteResult::Down) => self.reached(purpose, (&Reach::Down, ALONE), now),
            Some(RouteResult::Outside) => self.reached(purpose, (&Reach::Outside, covers), now),
            Some(RouteResult::Connected { itf }) => self.neighbour((itf, dst), purpose, ALONE, now),
            Some(RouteResult::Via { itf, next_hop }) => {
                self.neighbour((itf, next_hop), purpose, covers, now);
            }
        }
    }

    /// A neighbour on a LAN is resolved with LE_ARP. A neighbour on a Classical IP subnet is configured, or known only
    /// by its registrations. A neighbour on a network that this server does not serve is not known.
    fn neighbour(&mut self, (itf, hop): (u32, IpAddr), purpose: Purpose, covers: u8, now: Instant) {
        if self.has_lane(itf) {
            let question = Query::L2 {
                itf,
                hop,
                purpose,
                covers,
            };
            return self.ask(question, now);
        }
        let server = match hop {
            IpAddr::V4(hop) => self.config.servers.get(&hop),
            IpAddr::V6(_) => None,
        };
        let server = server.filter(|server| self.config.keys.admits(**server));
        let reach = match server {
            Some(server) => Reach::Neighbour {
                itf,
                hop,
                mac: MacAddr([0; 6]),
                mps: Some(*server),
                mpc: None,
            },
            None => Reach::Silent {
                itf,
                hop,
                absent: Absent::Unheard,
            },
        };
        self.reached(purpose, (&reach, covers), now);
    }

    /// True if a LANE client of this server is on the interface: only such an interface has LE_ARP.
    pub(super) fn has_lane(&self, itf: u32) -> bool {
        self.config.interface(itf).is_some_and(|known| known.lane)
    }

    pub(super) fn l2_answer(&mut self, query: u32, answer: Result<L2Answer, Absent>, now: Instant) {
        if !matches!(self.queries.get(query), Some(Query::L2 { .. })) {
            return;
        }
        let Some(Query::L2 {
            itf,
            hop,
            purpose,
            covers,
        }) = self.queries.close(query)
        else {
            return;
        };
        let reach = match answer {
            Err(absent) => Reach::Silent { itf, hop, absent },
            Ok((mac, atm, tlvs)) => {
                let device = self.learn(itf, mac, atm, &tlvs);
                // The answers of a device that must sign and cannot would be refused: it counts as a plain station.
                let admitted = |control: &AtmAddress| self.config.keys.admits(*control);
                let mps = device.as_ref().and_then(|d| d.mps(Some(mac)));
                let mpc = device.as_ref().and_then(DeviceType::mpc);
                Reach::Neighbour {
                    itf,
                    hop,
                    mac,
                    mps: mps.map(|d| d.0).filter(admitted),
                    mpc: mpc.filter(admitted),
                }
            }
        };
        self.reached(purpose, (&reach, covers), now);
    }

    /// The router did not answer in time.
    pub(super) fn query_expired(&mut self, question: Query, now: Instant) {
        match question {
            Query::Route(_, purpose) => self.reached(purpose, (&Reach::Down, ALONE), now),
            Query::L2 {
                itf, hop, purpose, ..
            } => {
                let absent = Absent::ForNow;
                self.reached(purpose, (&Reach::Silent { itf, hop, absent }, ALONE), now);
            }
        }
    }

    fn reached(&mut self, purpose: Purpose, (reach, covers): (&Reach, u8), now: Instant) {
        match purpose {
            Purpose::Resolve { packet, from } => self.resolve(packet, from, (reach, covers), now),
            Purpose::Forward(packet) => {
                let to = match reach {
                    Reach::Neighbour { mps: Some(mps), .. } => Some(*mps),
                    _ => self.station_of(&packet, reach, now),
                };
                match to {
                    Some(to) => self.send(to, &packet, now),
                    None => self.counters.undeliverable += 1,
                }
            }
            Purpose::Recheck(subject) => self.recheck(subject, (reach, covers), now),
            Purpose::Trigger { source, target } => {
                if let Reach::Neighbour { mpc: Some(mpc), .. } = reach {
                    self.send_trigger(*mpc, source, target, now);
                }
            }
        }
    }

    /// Remembers the information of a neighbour's TLVs, or returns the remembered information if the TLVs are missing
    /// this time.
    pub(super) fn learn(
        &mut self,
        itf: u32,
        mac: MacAddr,
        atm: AtmAddress,
        tlvs: &[Tlv],
    ) -> Option<DeviceType> {
        let Some(device) = DeviceType::find(tlvs) else {
            let known = self.devices.get(&(itf, mac));
            return known.filter(|(of, _)| *of == atm).map(|(_, d)| d.clone());
        };
        let Ok(device) = device else {
            self.counters.malformed += 1;
            return None;
        };
        if self.devices.len() >= self.config.limits.devices
            && !self.devices.contains_key(&(itf, mac))
        {
            self.counters.limits_met += 1;
        } else {
            self.devices.insert((itf, mac), (atm, device.clone()));
        }
        Some(device)
    }
}
