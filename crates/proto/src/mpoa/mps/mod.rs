//! MPOA server: the part of a router that answers "how do I reach this address directly over ATM?".
//!
//! **Purpose.** A client (MPC) that detects a flow through this router asks the router for a shortcut. As *ingress*
//! server it turns the question into NHRP and sends it along the routed path. The server on whose ELAN the destination
//! lives, as *egress* server, tells the destination's client how packets from the shortcut will leave (Cache
//! Imposition), and answers with that client's data ATM address. Both roles are one machine; a router between two ELANs
//! plays both for one question.
//!
//! **Objects and owners.** The machine owns its control connections, an *ingress cache* by (client, destination), an
//! *egress cache* by Cache ID, and the NHRP tables of [`crate::nhrp`]: outstanding requests, and bindings with the
//! stations that must be purged. Routes, ARP and LE_ARP belong to the router: [`ToRouter::LookupRoute`] and
//! [`ToRouter::ResolveL2`] ask the router, [`FromRouter::Route`] and [`FromRouter::L2`] answer. Clients and other
//! servers are found through the Device Type TLV in LE_ARP answers; nothing is configured.
//!
//! ```text
//!  ingress client    ingress server              egress server     egress client
//!        │ 134 resolution  │                            │                │
//!        │ request ───────>│ 1 NHRP resolution request  │                │
//!        │                 │ ──────────(servers)───────>│ 128 imposition │
//!        │                 │                            │ request ──────>│
//!        │                 │ 2 NHRP resolution reply    │<────── 129     │
//!        │<───────── 135   │<───────────────────────────│                │
//! ```
//!
//! **States.** Ingress: resolving, resolved, refreshing (NHRP asked again while the client uses the
//! binding). Egress: imposing, imposed, clearing (holding time 0 was sent). An entry ends with its holding
//! time, a purge, a change of route or neighbour, or the loss of its client.
//!
//! **Where no client can be the end of the shortcut** (host without MPOA, destination outside the ATM network), the
//! server answers with its own data address, accepts the shortcut there and hands the packets to the router
//! ([`Output::ForwardIp`]); [`MpsConfig::terminate`] turns that off, and the answer is code 12.
//!
//! **A negative answer is definite** (code 12): the client leaves the destination alone for its hold-down. So the
//! server gives it only in two cases: there is no route, or the neighbour has not been heard for long. A server that
//! does not know just now (an interface is no member of its ELAN, or a neighbour that was there less than [`RETURN`]
//! ago does not answer) gives no answer, and is asked again: by the ingress server and the client after p4, and at once
//! when the path of the ingress server comes back.
//!
//! **Answers that pass through** are kept, and are given to requesters that accept a non-authoritative answer
//! (`kept.rs`).
//!
//! **Stations without MPOA** may register their addresses ([`MpsConfig::register`]; off by default): requests for these
//! addresses are answered with the registered data.
//!
//! **Timers.** Requests: p4 doubling up to p5; resolutions are refused after p6. Keep-Alives every p1 to each client
//! with state. Holding times p7. Questions to the router 10 s. Idle control connections 20 min. Calls that failed with
//! a cause that may pass are repeated soon, later every p4, up to p5 (`conns.rs`).
//!
//! **Standards.** MPOA 1.1 (af-mpoa-0114; appendices I.3 and I.4 for the states, annex F for parameters); RFC 2332.
//! `docs/protocols/mpoa.md` says where each fact comes from.
//!
//! **Not implemented.** Protocols other than IP (code 0x84); token-ring headers; bindings for prefixes on clients
//! (every imposed binding is for one address); MPS parameters from the LECS; Hop Count and Original Error Code
//! extensions are passed on but not made.
//!
//! **Deviations.** IPv6 is resolved like IPv4 on interfaces with an IPv6 address. This is our own addition, with
//! protocol type 0x86DD; triggers are for IPv4 only. Only the first entry of an NHRP reply goes to the client, with
//! MPOA's extensions and the client's own: existing clients cannot decode more. A client that no Keep-Alive can reach
//! for p2 counts as dead. An MTU above 18174 is passed on as "unknown". A packet on a shortcut that ends here passes
//! the router as any other, so its TTL is decremented twice: by the client and by the router.

mod api;
mod changes;
mod clients;
mod conns;
mod data;
mod egress;
mod faults;
mod ingress;
mod kept;
mod lookup;
mod nhs;
mod params;
mod process;
mod register;
mod report;
mod resolve;
mod seat;
mod snapshot;
pub mod split;
mod state;
#[cfg(test)]
mod tests;
mod waiting;
mod ways;

use aerostat_wire::counted;
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr};

use aerostat_wire::lane::Tlv;
use aerostat_wire::mpoa::DeviceType;
use aerostat_wire::{AtmAddress, MacAddr, Qos, Sap};

pub use api::{Absent, FromRouter, Input, L2Answer, Output, RETURN, RouteResult, ToRouter};
pub use conns::{ConnState, ConnUse, IDLE, MAX_SDU};
pub use faults::{FaultRow, RefusedWith};
pub use params::{Interface, Limits, MpsConfig, MpsParams, MpsRanges};
pub use process::{Mpsd, SHOW};
pub use seat::Mps;
pub use snapshot::{
    ClientRow, ConnRow, EgressRow, IngressRow, IngressState, MpsSnapshot, NhrpRow, NhrpSnapshot,
    PendingRow,
};
pub use state::{Counters, EgressState};

use crate::atm::within;
use crate::nhrp::{Cache, Expired, Key, Reason, RequestTable, Station};
use crate::{AtmEvent, AtmRequest, Cause, ConnId, Instant, Trace};
use conns::Conns;
use kept::Passing;
use state::{
    Asked, Client, Collect, CollectKey, Egress, Ingress, IngressKey, Query, Reach, RouterExit,
};
use waiting::Waiting;
use ways::Ways;

/// Tag of shortcuts that end at this router: all of them are treated alike.
const TAG_ROUTER: u32 = 1;

/// The server's control half: the state machine of its daemon, [`Mpsd`].
#[derive(Debug)]
struct Server {
    config: MpsConfig,
    station: Station,
    up: bool,
    conns: Conns,
    ingress: BTreeMap<IngressKey, Ingress>,
    egress: BTreeMap<u32, Egress>,
    /// Cache ID by ingress data address and destination; entries that are being cleared are not in this map.
    egress_index: BTreeMap<(AtmAddress, IpAddr), u32>,
    /// Destinations whose shortcuts end at this router.
    exits: BTreeMap<Key, RouterExit>,
    cache: Cache,
    requests: RequestTable<Asked>,
    queries: RequestTable<Query>,
    collects: BTreeMap<CollectKey, Collect>,
    clients: BTreeMap<AtmAddress, Client>,
    devices: BTreeMap<(u32, MacAddr), (AtmAddress, DeviceType)>,
    keep_alive_at: Option<Instant>,
    sequence: u32,
    next_cache_id: u32,
    counters: Counters,
    /// The end system that each registration came from, by registered address.
    stations: BTreeMap<IpAddr, AtmAddress>,
    ways_back: Ways,
    /// Requests that were forwarded from here.
    passing: Passing,
    /// Requests of clients that wait, by client (control address) and destination.
    waits_in: Waiting,
    /// Requests of NHRP that wait for an imposition, by ingress client (data address) and destination.
    waits_out: Waiting,
    /// Bindings kept from replies that passed through, with the path of their requests.
    kept: BTreeMap<Key, Reach>,
    faults: VecDeque<FaultRow>,
    out: VecDeque<Output>,
}

impl Server {
    /// A server that has not started.
    fn new(config: MpsConfig) -> Self {
        let limits = config.limits;
        let own = limits.router_bindings + limits.registrations + limits.kept;
        let bindings = limits.ingress + limits.egress + own;
        let first = config.interfaces.first().map(|interface| interface.ip);
        Self {
            station: Station {
                nbma: config.control,
                protocol: first.unwrap_or(Ipv4Addr::UNSPECIFIED),
                protocol6: config
                    .interfaces
                    .iter()
                    .find_map(|i| i.ip6)
                    .map(|own| own.0),
                own: config
                    .interfaces
                    .iter()
                    .flat_map(Interface::addresses)
                    .collect(),
            },
            up: false,
            conns: Conns::new(limits),
            ingress: BTreeMap::new(),
            egress: BTreeMap::new(),
            egress_index: BTreeMap::new(),
            exits: BTreeMap::new(),
            cache: Cache::new(bindings, limits.requesters),
            requests: RequestTable::new(config.first_request_id, limits.requests),
            queries: RequestTable::new(1, limits.queries),
            collects: BTreeMap::new(),
            clients: BTreeMap::new(),
            devices: BTreeMap::new(),
            keep_alive_at: None,
            sequence: config.first_sequence,
            next_cache_id: config.first_cache_id,
            counters: Counters::default(),
            stations: BTreeMap::new(),
            ways_back: Ways::default(),
            passing: Passing::new(limits.kept),
            waits_in: Waiting::default(),
            waits_out: Waiting::default(),
            kept: BTreeMap::new(),
            faults: VecDeque::new(),
            out: VecDeque::new(),
            config,
        }
    }

    fn trace(&mut self, trace: Trace) {
        self.out.push_back(Output::Trace(trace));
    }

    fn addresses(&self) -> Vec<AtmAddress> {
        let mut listening = vec![self.config.control];
        listening.extend(self.config.terminate.then_some(self.config.data));
        listening
    }

    fn start(&mut self) {
        self.up = true;
        self.sequence = self.config.first_sequence;
        for address in self.addresses() {
            self.out
                .push_back(Output::Atm(AtmRequest::listen(address, Sap::LLC, u16::MAX)));
        }
        for interface in self.config.interfaces.iter().filter(|i| i.lane) {
            self.out.push_back(Output::Router(ToRouter::SetTlvs {
                itf: interface.itf,
                tlvs: self.config.announces(interface),
            }));
        }
        let text = format!(
            "{} of {}",
            self.what(),
            counted(self.config.interfaces.len(), "interface", "interfaces")
        );
        self.trace(Trace::milestone("mps.started", text).with("control", self.config.control));
    }

    fn stop(&mut self) {
        self.up = false;
        for address in self.addresses() {
            self.out.push_back(Output::Atm(AtmRequest::Unlisten {
                address,
                sap: Sap::LLC,
            }));
        }
        self.conns.release_all(&mut self.out);
        self.ingress.clear();
        self.egress.clear();
        self.egress_index.clear();
        self.exits.clear();
        self.cache.clear();
        self.requests.clear();
        self.queries.clear();
        self.collects.clear();
        self.clients.clear();
        self.devices.clear();
        self.stations.clear();
        self.ways_back.clear();
        self.passing.clear();
        self.waits_in.clear();
        self.waits_out.clear();
        self.kept.clear();
        self.faults.clear();
        self.keep_alive_at = None;
        let text = format!("{} stopped", self.what());
        self.trace(Trace::milestone("mps.stopped", text));
    }

    /// Name of the server in texts: MPOA is for clients of LANE; NHRP alone serves those of Classical IP.
    fn what(&self) -> &'static str {
        let is_lane = |wanted: bool| self.config.interfaces.iter().any(|i| i.lane == wanted);
        match (is_lane(true), is_lane(false)) {
            (false, true) => "NHRP server",
            (true, true) => "NHRP and MPOA server",
            (_, false) => "MPOA server",
        }
    }

    fn atm(&mut self, event: AtmEvent<&[u8]>, now: Instant) {
        match event {
            AtmEvent::Received { conn, sdu } => self.received(conn, sdu, now),
            AtmEvent::Connected { conn, vc, .. } => {
                if !self.conns.opened(conn, vc, now, &mut self.out) {
                    self.counters.unexpected += 1;
                }
            }
            AtmEvent::Released { conn, cause } => {
                let again = self.config.params.call_again();
                let lost = self.conns.released(conn, cause, again, now);
                if let Some(lost) = lost {
                    self.counters.connections_lost += 1;
                    let text = format!("connection gone: {cause}");
                    self.trace(Trace::detail("mps.vcc.lost", text).with("peer", lost.peer()));
                }
            }
            AtmEvent::Incoming {
                conn,
                calling,
                called,
                sap,
                multipoint,
                qos,
            } => {
                let usable = sap == Sap::LLC && !multipoint;
                self.incoming((conn, &qos), calling.filter(|_| usable), called, now);
            }
            // Failed calls are made again, and requests are sent again by their retries; lost connections are reported
            // one by one.
            AtmEvent::Up | AtmEvent::Down => {}
            AtmEvent::PartyAdded { .. } | AtmEvent::PartyGone { .. } => {
                self.counters.unexpected += 1;
            }
        }
    }

    /// A call is offered. The called address decides its use; without the caller's address, clients cannot be
    /// distinguished.
    fn incoming(
        &mut self,
        (conn, qos): (ConnId, &Qos),
        calling: Option<AtmAddress>,
        called: AtmAddress,
        now: Instant,
    ) {
        let carries = if called == self.config.control {
            Some(ConnUse::Control)
        } else if called == self.config.data && self.config.terminate {
            Some(ConnUse::Shortcut)
        } else {
            None
        };
        let cause = match (calling, carries) {
            (None, _) => Cause::REJECTED,
            (_, None) => Cause::INCOMPATIBLE,
            (Some(peer), Some(carries)) => {
                if self.conns.accept(conn, peer, carries, now) {
                    let longest = match carries {
                        ConnUse::Shortcut => crate::mpoa::params::SHORTCUT_SDU,
                        ConnUse::Control => MAX_SDU,
                    };
                    let terms = within(qos, longest);
                    self.out
                        .push_back(Output::Atm(AtmRequest::Accept { conn, terms }));
                    return;
                }
                self.counters.limits_met += 1;
                Cause::RESOURCES
            }
        };
        self.counters.calls_refused += 1;
        self.out
            .push_back(Output::Atm(AtmRequest::Release { conn, cause }));
    }

    fn associate(&mut self, itf: u32, mac: MacAddr, atm: AtmAddress, tlvs: &[Tlv], now: Instant) {
        let before = self.devices.get(&(itf, mac)).cloned();
        let device = self.learn(itf, mac, atm, tlvs).map(|device| (atm, device));
        // This applies also to a neighbour that was not known as a device: for that reason shortcuts to it may end at
        // this router.
        if before != device {
            let over = |reach: &Reach| matches!(reach, Reach::Neighbour { itf: i, mac: m, .. } if (*i, *m) == (itf, mac));
            self.recheck_all(over, now);
        }
    }

    fn expire_bindings(&mut self, now: Instant) {
        while let Some((key, _)) = self.cache.expire(now) {
            match key.reason {
                Reason::Learned => self.expire_ingress(key.destination, key.scope),
                Reason::Imposed => self.expire_egress(&key),
                // No requester was given a longer holding time.
                Reason::Registered => {
                    self.stations.remove(&key.destination);
                }
                Reason::Transit => {
                    self.kept.remove(&key);
                }
                Reason::Router => {
                    self.exits.remove(&key);
                }
            }
        }
    }
}

impl Server {
    /// News of the router, while the server serves.
    fn told(&mut self, event: FromRouter, now: Instant) {
        match event {
            FromRouter::Associate {
                itf,
                mac,
                atm,
                tlvs,
            } => self.associate(itf, mac, atm, &tlvs, now),
            FromRouter::Route {
                query,
                result,
                covers,
            } => self.route_answer(query, (result, covers), now),
            FromRouter::L2 { query, answer } => self.l2_answer(query, answer, now),
            FromRouter::RoutesChanged => self.recheck_all(|_| true, now),
            FromRouter::NeighbourChanged { itf, ip } => {
                self.recheck_all(|reach| reach.is_over(itf, ip), now);
            }
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(expired) = self.queries.expire(now) {
            if let Expired::GivenUp(_, question) = expired {
                self.query_expired(question, now);
            }
        }
        // Holding times come before retries: an expired binding must not be sent any more.
        self.expire_bindings(now);
        self.passing.expire(now);
        while let Some(expired) = self.requests.expire(now) {
            self.request_expired(expired, now);
        }
        self.keep_alive_round(now);
        self.conns.release_idle(now, &mut self.out);
        let own = self.config.control;
        self.conns.call_again(own, now, &mut self.out);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        [
            self.queries.deadline(),
            self.requests.deadline(),
            self.cache.deadline(),
            self.passing.deadline(),
            self.keep_alive_at,
            self.conns.deadline(),
        ]
        .into_iter()
        .flatten()
        .min()
    }
}
