//! The daemon of a client (mpcd): signalling, request ids, tags, keep-alive; all that reads a peer's packets.
//!
//! It owns every connection. Control connections carry packets to and from MPSs; shortcuts it opens or accepts,
//! then attaches them to the data plane.

use super::api::{Bus, MpcConfig, Numbers, STOP_WAIT};
use crate::mpoa::messages::{EgressInfo, IngressInfo, ToDaemon, ToKernel};
use crate::mpoa::params::{INITIAL_KEEP_ALIVE_LIFETIME, MpcParams, Retry};
use crate::{AtmEvent, AtmRequest, Cause, ConnId, Duration, Instant, Trace};
use aerostat_wire::mpoa::{self, EgressPurge, category, service_category_extension};
use aerostat_wire::nhrp::{self, Packet};
use aerostat_wire::{AtmAddress, Blli, Qos, ServiceCategory, Vc};
use core::net::Ipv4Addr;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A request id is remembered this long.
const ID_LIFETIME: Duration = Duration::from_secs(600);

/// LLC header and tag, octets.
pub(super) const ENCAPSULATION: u16 = 12;
/// Shortcuts that one peer may open.
const SHORTCUTS_PER_PEER: usize = 8;

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Control packets to and from an MPS.
    Control,
    /// Data to and from an MPC; the traffic if more than best effort.
    Shortcut(Option<Qos>),
}

/// A connection of the daemon.
#[derive(Clone, Debug)]
pub(super) struct Conn {
    pub(super) purpose: Purpose,
    pub(super) peer: AtmAddress,
    pub(super) opened: bool,
    pub(super) up: bool,
}

/// The keep-alive check of one MPS. Source: facts book "MPOA" §12.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeepAlive {
    pub(super) deadline: Instant,
    pub(super) sequence: Option<u32>,
}

/// A known MPS.
#[derive(Debug, Default)]
pub(super) struct Mps {
    pub(super) itfs: BTreeSet<usize>,
    pub(super) keep_alive: Option<KeepAlive>,
    /// Packets that wait for a control connection.
    pub(super) queue: VecDeque<Packet>,
}

/// An outstanding resolution.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    pub(super) id: u32,
    pub(super) since: Instant,
    pub(super) packet: Packet,
}

/// What was imposed, as far as the daemon must know it to answer the next imposition.
#[derive(Clone, Debug)]
pub(super) struct Imposed {
    pub(super) tag: Option<u32>,
    pub(super) ingress: AtmAddress,
    pub(super) destination: Ipv4Addr,
    pub(super) prefix: u8,
    pub(super) header: Vec<u8>,
}

/// An outstanding Egress Cache Purge Request.
#[derive(Clone, Debug)]
pub(super) struct Purge {
    pub(super) id: u32,
    packet: Packet,
    retry: Retry,
}

/// An ELAN as the daemon knows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Elan {
    pub(super) elan_id: u32,
    pub(super) mtu: u16,
}

/// Name of an egress entry: MPS, cache id.
pub(super) type EgressKey = (AtmAddress, u32);

/// Whether the daemon is about to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    No,
    /// Waiting for replies to purges; then ended, and with `reload` to be started again.
    Wait {
        until: Instant,
        reload: bool,
    },
    Done {
        reload: bool,
    },
}

/// The daemon.
#[derive(Debug)]
pub(super) struct Daemon {
    pub(super) config: MpcConfig,
    params: MpcParams,
    pub(super) elans: BTreeMap<usize, Elan>,
    pub(super) mps: BTreeMap<AtmAddress, Mps>,
    pub(super) conns: BTreeMap<ConnId, Conn>,
    pub(super) pending: BTreeMap<(AtmAddress, Ipv4Addr), Pending>,
    pub(super) imposed: BTreeMap<EgressKey, Imposed>,
    pub(super) tags: BTreeSet<u32>,
    pub(super) purges: BTreeMap<EgressKey, Purge>,
    pub(super) ending: Ending,
    /// Own protocol address, learned from the flows that leave.
    pub(super) own_ip: Option<Ipv4Addr>,
}

impl Daemon {
    /// A daemon starts: it listens, and makes itself known to the data plane.
    pub(super) fn start(
        config: &MpcConfig,
        params: &MpcParams,
        elans: BTreeMap<usize, Elan>,
        bus: &mut Bus,
    ) -> Self {
        let daemon = Self {
            config: config.clone(),
            params: params.clone(),
            elans,
            mps: BTreeMap::new(),
            conns: BTreeMap::new(),
            pending: BTreeMap::new(),
            imposed: BTreeMap::new(),
            tags: BTreeSet::new(),
            purges: BTreeMap::new(),
            ending: Ending::No,
            own_ip: None,
        };
        daemon.listen(bus);
        bus.kernel(ToKernel::SetMpcControlAddress(config.control));
        for known in &config.static_mps {
            let (itf, mac, mps) = (known.itf, known.mac, known.control);
            bus.kernel(ToKernel::SetMpsMacAddress { itf, mac, mps });
        }
        daemon
    }

    /// What the operating system does when the process is gone: its sockets close.
    pub(super) fn close_all(&self, bus: &mut Bus) {
        for conn in self.conns.keys() {
            bus.atm(AtmRequest::Release {
                conn: *conn,
                cause: Cause::NORMAL,
            });
        }
        for address in [self.config.control, self.config.data] {
            bus.atm(AtmRequest::Unlisten {
                address,
                blli: Blli::LLC,
            });
        }
    }

    /// SIGTERM, or SIGHUP if `reload`.
    pub(super) fn end(&mut self, reload: bool, now: Instant, bus: &mut Bus) {
        if self.ending == Ending::No {
            self.ending = Ending::Wait {
                until: now + STOP_WAIT,
                reload,
            };
            bus.kernel(if reload {
                ToKernel::Reload
            } else {
                ToKernel::CleanUpAndExit
            });
        }
    }

    pub(super) fn set_params(&mut self, params: MpcParams, bus: &mut Bus) {
        self.params = params.clone();
        bus.kernel(ToKernel::SetParams(params));
    }

    /// Listens at both addresses; again when an ELAN with larger frames is joined.
    fn listen(&self, bus: &mut Bus) {
        let data = self.sdu_for(u16::MAX);
        for (address, max_sdu) in [
            (self.config.control, self.config.max_sdu),
            (self.config.data, data),
        ] {
            bus.atm(AtmRequest::Listen {
                address,
                blli: Blli::LLC,
                max_sdu,
            });
        }
    }

    pub(super) fn lec_up(&mut self, itf: usize, elan: Elan, bus: &mut Bus) {
        let before = self.sdu_for(u16::MAX);
        self.elans.insert(itf, elan);
        if self.sdu_for(u16::MAX) != before && self.ending == Ending::No {
            self.listen(bus);
        }
    }

    /// SDU of a shortcut to an ELAN of this MTU (0: unknown). No packet on it is larger than the smaller of the
    /// MTUs at its two ends, either way.
    fn sdu_for(&self, mtu: u16) -> u16 {
        let own = self.elans.values().map(|elan| elan.mtu).max().unwrap_or(0);
        let sdu = own.min(mtu).saturating_add(ENCAPSULATION);
        self.config.max_sdu.max(sdu)
    }

    /// A message of the data plane.
    pub(super) fn handle(
        &mut self,
        message: ToDaemon,
        numbers: &mut Numbers,
        now: Instant,
        bus: &mut Bus,
    ) {
        match message {
            ToDaemon::SendResolutionRequest { info, qos } => {
                self.resolve(&info, qos, numbers, now, bus);
            }
            ToDaemon::SendResolutionRetry(info) => {
                if let Some(pending) = self.pending.get(&(info.mps, info.destination)) {
                    let packet = pending.packet.clone();
                    bus.counters.resolution_requests_sent += 1;
                    let text = format!("resolution request for {} repeated", info.destination);
                    bus.trace(Trace::detail("mpc.resolution.retry", text));
                    self.send(info.mps, packet, numbers, bus);
                }
            }
            ToDaemon::SetMpsControlAddress { itf, mps } => {
                let full = self.mps.len() >= self.config.limits.mps;
                if full && !self.mps.contains_key(&mps) {
                    bus.counters.mps_limit += 1;
                    return;
                }
                self.mps.entry(mps).or_default().itfs.insert(itf);
            }
            ToDaemon::StopKeepAlive { mps } => {
                if let Some(mps) = self.mps.get_mut(&mps) {
                    mps.keep_alive = None;
                }
            }
            ToDaemon::EgressEntryRemoved { mps, cache_id } => {
                self.purges.remove(&(mps, cache_id));
                let gone = self.imposed.remove(&(mps, cache_id));
                if let Some(tag) = gone.and_then(|entry| entry.tag) {
                    self.tags.remove(&tag);
                }
                self.settle_end();
            }
            ToDaemon::SendEgressPurge(info) => self.purge_egress(&info, numbers, now, bus),
            ToDaemon::Die | ToDaemon::Reload => self.settle_end(),
            ToDaemon::DataPlanePurge {
                conn,
                destination,
                prefix,
            } => {
                self.purge_over_shortcut(conn, destination, prefix, bus);
            }
            ToDaemon::OpenIngressSvc { info, qos } => self.open_shortcut(&info, qos, numbers, bus),
            ToDaemon::CloseShortcut { conn } => {
                self.conns.remove(&conn);
                bus.atm(AtmRequest::Release {
                    conn,
                    cause: Cause::NORMAL,
                });
            }
            ToDaemon::Control { conn, packet } => self.on_shortcut_control(conn, &packet, bus),
        }
    }

    /// 201: a Resolution Request under a new id.
    fn resolve(
        &mut self,
        info: &IngressInfo,
        qos: Option<Qos>,
        numbers: &mut Numbers,
        now: Instant,
        bus: &mut Bus,
    ) {
        if self.ending != Ending::No {
            return;
        }
        if !info.source.is_unspecified() {
            self.own_ip = Some(info.source);
        }
        let id = numbers.request();
        let source = self.own_ip.unwrap_or(Ipv4Addr::UNSPECIFIED);
        let mut packet = mpoa::resolution_request(id, self.config.data, source, info.destination);
        if let Some(bits) = qos.and_then(|qos| category_bits(&qos)) {
            packet = packet.with(service_category_extension(bits));
        }
        self.pending.retain(|_, p| now.since(p.since) < ID_LIFETIME);
        let pending = Pending {
            id,
            since: now,
            packet: packet.clone(),
        };
        self.pending.insert((info.mps, info.destination), pending);
        bus.counters.resolution_requests_sent += 1;
        let text = format!(
            "resolution request for {} to {}",
            info.destination, info.mps
        );
        bus.trace(
            Trace::milestone("mpc.resolution.sent", text)
                .with("destination", info.destination)
                .with("mps", info.mps)
                .with("id", id),
        );
        self.send(info.mps, packet, numbers, bus);
    }

    /// 206: an Egress Cache Purge Request, repeated until it is answered.
    fn purge_egress(
        &mut self,
        info: &EgressInfo,
        numbers: &mut Numbers,
        now: Instant,
        bus: &mut Bus,
    ) {
        let id = numbers.request();
        let purge = EgressPurge {
            id,
            mpc_control: self.config.control,
            mpc_data: self.config.data,
            mpc: self.own_ip.unwrap_or(Ipv4Addr::UNSPECIFIED),
            mps: info.mps_ip,
            target: info.destination,
            prefix: info.prefix,
            cache_id: info.cache_id,
            elan_id: info.elan_id,
        };
        let packet = purge.packet();
        let retry = Retry::first(now, &self.params);
        self.purges.insert(
            (info.mps, info.cache_id),
            Purge {
                id,
                packet: packet.clone(),
                retry,
            },
        );
        bus.counters.egress_purges_sent += 1;
        let text = format!(
            "egress entry {} for {} purged",
            info.cache_id, info.destination
        );
        bus.trace(
            Trace::milestone("mpc.purge.sent", text)
                .with("destination", info.destination)
                .with("cache_id", info.cache_id),
        );
        self.send(info.mps, packet, numbers, bus);
    }

    /// 208: tells the MPC at the other end of a shortcut to stop.
    fn purge_over_shortcut(
        &mut self,
        conn: ConnId,
        destination: Ipv4Addr,
        prefix: u8,
        bus: &mut Bus,
    ) {
        if !self.conns.get(&conn).is_some_and(|c| c.up) {
            return;
        }
        let packet = mpoa::data_plane_purge(self.config.data, self.own_ip, destination, prefix);
        bus.counters.data_plane_purges_sent += 1;
        let text = format!("data-plane purge of {destination}/{prefix}");
        bus.trace(Trace::milestone("mpc.purge.data_plane", text).with("destination", destination));
        bus.atm(AtmRequest::Send {
            conn,
            sdu: packet.to_sdu(),
        });
    }

    /// 209: opens a shortcut unless one is being opened.
    fn open_shortcut(
        &mut self,
        info: &IngressInfo,
        qos: Option<Qos>,
        numbers: &mut Numbers,
        bus: &mut Bus,
    ) {
        let same = |c: &Conn| {
            c.opened && !c.up && c.peer == info.egress && c.purpose == Purpose::Shortcut(qos)
        };
        if self.ending != Ending::No || self.conns.values().any(same) {
            return;
        }
        if self.shortcuts() >= self.config.limits.shortcuts {
            bus.counters.connection_limit += 1;
            let cause = Cause::RESOURCES;
            return bus.kernel(ToKernel::OpenFailed {
                egress: info.egress,
                qos,
                cause,
            });
        }
        let traffic = qos.unwrap_or(Qos::ubr(self.sdu_for(info.mtu)));
        let from = self.config.data;
        self.connect(
            Purpose::Shortcut(qos),
            from,
            info.egress,
            traffic,
            numbers,
            bus,
        );
    }

    pub(super) fn shortcuts(&self) -> usize {
        self.conns
            .values()
            .filter(|c| c.purpose != Purpose::Control)
            .count()
    }
    fn controls(&self) -> usize {
        self.conns
            .values()
            .filter(|c| c.purpose == Purpose::Control)
            .count()
    }

    fn connect(
        &mut self,
        purpose: Purpose,
        calling: AtmAddress,
        called: AtmAddress,
        qos: Qos,
        numbers: &mut Numbers,
        bus: &mut Bus,
    ) {
        let conn = numbers.conn(|id| self.conns.contains_key(&id));
        self.conns.insert(
            conn,
            Conn {
                purpose,
                peer: called,
                opened: true,
                up: false,
            },
        );
        let blli = Blli::LLC;
        bus.atm(AtmRequest::Connect {
            conn,
            calling,
            called,
            blli,
            qos,
            multipoint: false,
        });
    }

    /// Sends a packet to an MPS over any control connection; opens one if there is none.
    pub(super) fn send(
        &mut self,
        mps: AtmAddress,
        packet: Packet,
        numbers: &mut Numbers,
        bus: &mut Bus,
    ) {
        let mut to_mps = self
            .conns
            .iter()
            .filter(|(_, c)| c.purpose == Purpose::Control && c.peer == mps);
        if let Some((conn, _)) = to_mps.clone().find(|(_, c)| c.up) {
            bus.atm(AtmRequest::Send {
                conn: *conn,
                sdu: packet.to_sdu(),
            });
            return;
        }
        let opening = to_mps.next().is_some();
        let limits = self.config.limits;
        let room = opening || self.controls() < limits.control;
        let Some(known) = self
            .mps
            .get_mut(&mps)
            .filter(|m| room && m.queue.len() < limits.queue)
        else {
            bus.counters.control_dropped += 1;
            return;
        };
        known.queue.push_back(packet);
        if !opening {
            let (from, qos) = (self.config.control, Qos::ubr(self.config.max_sdu));
            self.connect(Purpose::Control, from, mps, qos, numbers, bus);
        }
    }

    // ---- Connections ----

    /// An event of the ATM service that is no data on an attached shortcut.
    pub(super) fn atm(
        &mut self,
        event: AtmEvent<'_>,
        numbers: &mut Numbers,
        now: Instant,
        bus: &mut Bus,
    ) {
        match event {
            AtmEvent::Incoming {
                conn,
                calling,
                called,
                qos,
                multipoint,
                ..
            } => {
                let caller = calling.filter(|_| !multipoint);
                self.incoming(conn, caller, called, qos, bus);
            }
            AtmEvent::Connected { conn, vc } => self.connected(conn, vc, bus),
            AtmEvent::Released { conn, cause } => self.released(conn, cause, bus),
            AtmEvent::Received { conn, sdu } => match self.conns.get(&conn).map(|c| c.purpose) {
                Some(Purpose::Control) => self.on_control(conn, sdu, numbers, now, bus),
                Some(Purpose::Shortcut(_)) | None => bus.counters.stray_events += 1,
            },
            AtmEvent::Up | AtmEvent::Down => {}
            AtmEvent::PartyAdded { .. } | AtmEvent::PartyGone { .. } => {
                bus.counters.stray_events += 1;
            }
        }
    }

    fn incoming(
        &mut self,
        conn: ConnId,
        calling: Option<AtmAddress>,
        called: AtmAddress,
        qos: Qos,
        bus: &mut Bus,
    ) {
        let refuse = |cause| AtmRequest::Release { conn, cause };
        let (Some(peer), Ending::No) = (calling, self.ending) else {
            return bus.atm(refuse(Cause::REJECTED));
        };
        let limits = &self.config.limits;
        let (purpose, full) = if called == self.config.data {
            let best_effort = qos.tx.category.is_none_or(|c| c == ServiceCategory::Ubr);
            let purpose = Purpose::Shortcut((!best_effort).then_some(qos));
            let data = |c: &&Conn| c.peer == peer && c.purpose != Purpose::Control;
            let hog = self.conns.values().filter(data).count() >= SHORTCUTS_PER_PEER;
            (purpose, hog || self.shortcuts() >= limits.shortcuts)
        } else if called == self.config.control {
            // Strangers may call, as an MPS may be faster than LE_ARP; but they do not get all the room.
            let known = self.mps.contains_key(&peer);
            let room = if known {
                limits.control
            } else {
                limits.control / 2
            };
            (Purpose::Control, self.controls() >= room)
        } else {
            return bus.atm(refuse(Cause::INCOMPATIBLE));
        };
        if full {
            bus.counters.connection_limit += 1;
            return bus.atm(refuse(Cause::RESOURCES));
        }
        self.conns.insert(
            conn,
            Conn {
                purpose,
                peer,
                opened: false,
                up: false,
            },
        );
        bus.atm(AtmRequest::Accept { conn });
    }

    /// Data on an accepted shortcut may overtake the news that it is up.
    pub(super) fn attach_early(&self, conn: ConnId, bus: &mut Bus) {
        if let Some(Conn {
            purpose: Purpose::Shortcut(qos),
            peer,
            opened: false,
            ..
        }) = self.conns.get(&conn)
        {
            let (peer, qos, vc) = (*peer, *qos, None);
            bus.kernel(ToKernel::Attach {
                conn,
                peer,
                vc,
                qos,
                opened: false,
            });
        }
    }

    fn connected(&mut self, conn: ConnId, vc: Vc, bus: &mut Bus) {
        let Some(known) = self.conns.get_mut(&conn) else {
            bus.counters.stray_events += 1;
            return;
        };
        known.up = true;
        let (peer, opened) = (known.peer, known.opened);
        match known.purpose {
            Purpose::Shortcut(qos) => {
                bus.kernel(ToKernel::Attach {
                    conn,
                    peer,
                    vc: Some(vc),
                    qos,
                    opened,
                });
            }
            Purpose::Control => {
                let text = format!("control connection with {peer} is up on {vc}");
                let trace = Trace::detail("mpc.control.up", text);
                bus.trace(trace.with("peer", peer).with("vc", vc));
                let waiting = self
                    .mps
                    .get_mut(&peer)
                    .map(|mps| core::mem::take(&mut mps.queue));
                for packet in waiting.unwrap_or_default() {
                    bus.atm(AtmRequest::Send {
                        conn,
                        sdu: packet.to_sdu(),
                    });
                }
            }
        }
    }

    fn released(&mut self, conn: ConnId, cause: Cause, bus: &mut Bus) {
        let Some(gone) = self.conns.remove(&conn) else {
            bus.counters.stray_events += 1;
            return;
        };
        match gone.purpose {
            Purpose::Shortcut(qos) if gone.opened && !gone.up => {
                bus.kernel(ToKernel::OpenFailed {
                    egress: gone.peer,
                    qos,
                    cause,
                });
            }
            Purpose::Shortcut(_) => bus.kernel(ToKernel::Detach { conn, cause }),
            Purpose::Control => {
                // The retries of whatever waited will open the next connection.
                if let Some(mps) = self.mps.get_mut(&gone.peer) {
                    bus.counters.control_dropped += mps.queue.len() as u64;
                    mps.queue.clear();
                }
                let text = format!("control connection with {} is down: {cause}", gone.peer);
                bus.trace(Trace::detail("mpc.control.down", text).with("peer", gone.peer));
            }
        }
    }

    // ---- Keep-alive ----

    /// Something that `mps` said is in a cache from now on: watch it.
    pub(super) fn watch(&mut self, mps: AtmAddress, now: Instant) {
        if let Some(known) = self.mps.get_mut(&mps) {
            let deadline = now + INITIAL_KEEP_ALIVE_LIFETIME;
            known.keep_alive.get_or_insert(KeepAlive {
                deadline,
                sequence: None,
            });
        }
    }

    /// The MPS is silent or has started again: nothing that it said holds.
    pub(super) fn dead(&mut self, mps: AtmAddress, why: &str, bus: &mut Bus) {
        if let Some(known) = self.mps.get_mut(&mps) {
            known.keep_alive = None;
        }
        self.pending.retain(|key, _| key.0 != mps);
        bus.counters.mps_deaths += 1;
        let text = format!("MPS {mps}: {why}");
        bus.trace(Trace::milestone("mpc.keepalive.dead", text).with("mps", mps));
        bus.kernel(ToKernel::MpsDeath { mps });
    }

    /// Closes the control connections to an MPS that is silent: the next request tries a fresh one.
    fn close_control(&mut self, mps: AtmAddress, bus: &mut Bus) {
        self.conns.retain(|conn, c| {
            let close = c.purpose == Purpose::Control && c.peer == mps && c.opened;
            if close {
                bus.atm(AtmRequest::Release {
                    conn: *conn,
                    cause: Cause::NORMAL,
                });
            }
            !close
        });
        if let Some(known) = self.mps.get_mut(&mps) {
            bus.counters.control_dropped += known.queue.len() as u64;
            known.queue.clear();
        }
    }

    // ---- Time ----

    /// Ends once the purges are answered.
    fn settle_end(&mut self) {
        if let Ending::Wait { reload, .. } = self.ending
            && self.purges.is_empty()
        {
            self.ending = Ending::Done { reload };
        }
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        let alive = self
            .mps
            .values()
            .filter_map(|mps| mps.keep_alive.map(|k| k.deadline));
        let purges = self.purges.values().map(|purge| purge.retry.at);
        let end = match self.ending {
            Ending::Wait { until, .. } => Some(until),
            Ending::No | Ending::Done { .. } => None,
        };
        alive.chain(purges).chain(end).min()
    }

    pub(super) fn handle_timeout(&mut self, numbers: &mut Numbers, now: Instant, bus: &mut Bus) {
        let silent = |mps: &Mps| mps.keep_alive.is_some_and(|k| k.deadline <= now);
        let dead: Vec<AtmAddress> = self
            .mps
            .iter()
            .filter(|(_, mps)| silent(mps))
            .map(|(address, _)| *address)
            .collect();
        for mps in dead {
            self.dead(mps, "no keep-alive within its lifetime", bus);
            self.close_control(mps, bus);
        }
        let due: Vec<EgressKey> = self
            .purges
            .iter()
            .filter(|(_, p)| p.retry.at <= now)
            .map(|(key, _)| *key)
            .collect();
        for key in due {
            let Some(purge) = self.purges.get_mut(&key) else {
                continue;
            };
            if purge.retry.step(now) {
                let packet = purge.packet.clone();
                bus.counters.egress_purges_sent += 1;
                self.send(key.0, packet, numbers, bus);
            } else {
                self.purges.remove(&key);
                bus.kernel(ToKernel::EgressPurged {
                    mps: key.0,
                    cache_id: key.1,
                });
            }
        }
        if let Ending::Wait { until, reload } = self.ending
            && until <= now
        {
            self.ending = Ending::Done { reload };
        }
    }

    /// Answers an Error Indication's worth of trouble, once.
    pub(super) fn send_error(&self, conn: ConnId, offending: &[u8], code: u16, bus: &mut Bus) {
        let own = self.own_ip.map_or(nhrp::ProtocolAddress::NONE, Into::into);
        let packet = Packet::error_about(offending, code, 0, self.config.control, own);
        if let Some(packet) = packet {
            super::api::tally(&mut bus.counters.errors_sent, code);
            bus.atm(AtmRequest::Send {
                conn,
                sdu: packet.to_sdu(),
            });
        }
    }
}

/// Bits of the ATM Service Category extension for what a flow wants; none for best effort.
fn category_bits(qos: &Qos) -> Option<u16> {
    match qos.tx.category? {
        ServiceCategory::Cbr => Some(category::CBR),
        ServiceCategory::RtVbr => Some(category::RT_VBR),
        ServiceCategory::NrtVbr => Some(category::NRT_VBR),
        ServiceCategory::Abr => Some(category::ABR),
        ServiceCategory::Gfr | ServiceCategory::Ubr => None,
    }
}
