//! The data plane of a client: everything that happens per packet, and the ageing of both caches.
//!
//! The only control packet that it reads is a purge on a shortcut (`purge`). Without a daemon the data plane forwards
//! all frames to LANE, and keeps only what it learned from LE_ARP about MPSs.

mod elans;

use super::api::{Bus, MpcConfig, MpcLimits, Outbound, Output};
use super::egress::{self, Egress, EgressState};
use super::flows::QosTable;
use super::ingress::{self, Back, Frames, Ingress, IngressState, Path};
use super::packet::{self, IpPacket};
use super::purge::forgot;
use super::returns::{Noted, Returns};
use super::shortcuts::{Shortcut, Shortcuts};
use crate::discard::Discard;
use crate::mpoa::messages::{EgressInfo, IngressInfo, ToDaemon, ToKernel};
use crate::mpoa::params::{ENCAPSULATION, MpcParams};
use crate::nhrp::auth;
use crate::{ConnId, Instant, Refused, Sdu, Several, SharedHeader, Trace};
use aerostat_wire::counted;
use aerostat_wire::mpoa::{FlowFilter, SHORTCUT_HEADER_MAX, ShortcutSdu, shortcut_header};
use aerostat_wire::{AtmAddress, Qos};
use core::net::IpAddr;
use core::ops::Range;
pub(super) use elans::Lec;
use std::collections::{BTreeMap, BTreeSet};

/// The shortcut that a frame takes.
struct Taken {
    key: ingress::Key,
    conn: ConnId,
    tag: Option<u32>,
    /// True for the first packet of its flow over this shortcut.
    first: bool,
    ipv6: bool,
    /// Place of the packet in the frame.
    packet: Range<usize>,
}

impl Taken {
    /// The frame as an SDU of the shortcut. Every LAN header is longer than the header that replaces it.
    fn sdu(&self, mut frame: Vec<u8>) -> Sdu {
        frame.truncate(self.packet.end);
        let mut space = [0; SHORTCUT_HEADER_MAX];
        Sdu::behind(self.header(&mut space), frame, self.packet.start)
    }
    /// The header that replaces the LAN header.
    fn header<'s>(&self, space: &'s mut [u8; SHORTCUT_HEADER_MAX]) -> &'s [u8] {
        shortcut_header(space, self.tag, self.ipv6)
    }
}

/// Packets from a shortcut that have an egress entry.
struct Arrived<'a> {
    peer: AtmAddress,
    itf: usize,
    /// The data link header, and its length.
    header: ([u8; egress::HEADER_MAX], usize),
    packet: &'a [u8],
    /// True if a way back begins, so that another connection with the sender may not be needed any more.
    way_back: bool,
}

impl Arrived<'_> {
    fn header(&self) -> &[u8] {
        self.header.0.get(..self.header.1).unwrap_or_default()
    }
}

/// Why an SDU on a shortcut is not delivered.
enum Missed<'a> {
    NoShortcut,
    Control(&'a [u8]),
    Bad,
    NoEntry(IpAddr),
}

/// The way back of a packet of `flow` to `egress`.
fn back(
    returns: &Returns,
    shortcuts: &Shortcuts,
    (flow, egress): (FlowFilter, AtmAddress),
    now: Instant,
) -> Back {
    let conn = (!returns.is_empty())
        .then(|| returns.way(flow, now))
        .flatten();
    let known = conn.and_then(|conn| Some((conn, shortcuts.get(&conn)?)));
    let known = known.filter(|(_, shortcut)| shortcut.peer == egress);
    let over = known.and_then(|(conn, shortcut)| Some(Back::Over(conn, shortcut.room_back()?)));
    over.unwrap_or(match shortcuts.expects(egress, now) {
        true => Back::Expected,
        false => Back::Elsewhere,
    })
}

/// Both caches, the interfaces, and the shortcuts.
#[derive(Debug)]
pub(super) struct DataPlane {
    /// The client's own data address.
    pub(super) data: AtmAddress,
    /// The client's own control address while a daemon runs.
    pub(super) control: Option<AtmAddress>,
    pub(super) params: MpcParams,
    limits: MpcLimits,
    /// MTU, octets, for a destination that does not tell its MTU: the largest packet of any shortcut.
    unknown_mtu: u16,
    /// Interfaces that are given TLVs before they are up.
    itfs: BTreeSet<usize>,
    pub(super) lecs: BTreeMap<usize, Lec>,
    pub(super) ingress: Ingress,
    pub(super) egress: Egress,
    pub(super) shortcuts: Shortcuts,
    /// Flows that arrive over guaranteed connections of other clients.
    pub(super) returns: Returns,
    pub(super) qos: QosTable,
    pub(super) keys: auth::Keys,
    /// MPSs with information in a cache.
    pub(super) active: BTreeSet<AtmAddress>,
    /// A daemon died: its caches are kept for the next daemon until this time.
    pub(super) orphan_until: Option<Instant>,
    /// Not later than the earliest deadline; may be earlier.
    pub(super) wake: Option<Instant>,
}

impl DataPlane {
    pub(super) fn new(params: MpcParams, config: &MpcConfig) -> Self {
        let mut qos = QosTable::default();
        for entry in &config.qos {
            // A message has told the user that entries beyond the limit are left out.
            let _ = qos.set(entry.filter, Some(entry.qos), config.limits.qos);
        }
        Self {
            data: config.data,
            control: None,
            params: params.in_range(),
            limits: config.limits,
            unknown_mtu: config.max_sdu.saturating_sub(ENCAPSULATION),
            itfs: config.itfs.iter().copied().collect(),
            lecs: BTreeMap::new(),
            ingress: Ingress::default(),
            egress: Egress::default(),
            shortcuts: Shortcuts::default(),
            returns: Returns::default(),
            qos,
            keys: config.keys.clone(),
            active: BTreeSet::new(),
            orphan_until: None,
            wake: None,
        }
    }

    /// A frame from the IP stack: it goes over its shortcut, or to LANE if it has none.
    pub(super) fn outbound(
        &mut self,
        itf: usize,
        mut frame: Vec<u8>,
        now: Instant,
        bus: &mut Bus,
    ) -> Outbound {
        let one = Several {
            count: 1,
            longest: frame.len(),
            octets: frame.len(),
        };
        let taken = self.shortcut_of(itf, &frame, one, now, bus);
        let over =
            taken.filter(|taken| frame.get_mut(taken.packet.clone()).is_some_and(packet::hop));
        let Some(taken) = over else {
            bus.counters.frames_to_lane += 1;
            return Outbound::Lane(frame);
        };
        if taken.first {
            self.tell_first(&taken, bus);
        }
        let conn = taken.conn;
        let sdu = taken.sdu(frame);
        bus.counters.packets_sent += 1;
        bus.counters.octets_sent += sdu.len() as u64;
        Outbound::Shortcut { conn, sdu }
    }

    /// Several frames from the IP stack with equal headers; `frame` has these headers, with the lengths of the whole.
    /// `None` if the frames go to LANE.
    pub(super) fn outbound_several(
        &mut self,
        itf: usize,
        frame: &mut [u8],
        several: Several,
        now: Instant,
        bus: &mut Bus,
    ) -> Option<SharedHeader> {
        let taken = self.shortcut_of(itf, frame, several, now, bus);
        let over =
            taken.filter(|taken| frame.get_mut(taken.packet.clone()).is_some_and(packet::hop));
        let count = u64::from(several.count);
        let Some(taken) = over else {
            bus.counters.frames_to_lane += count;
            return None;
        };
        if taken.first {
            self.tell_first(&taken, bus);
        }
        let mut space = [0; SHORTCUT_HEADER_MAX];
        let header = taken.header(&mut space).to_vec();
        let replaces = taken.packet.start;
        bus.counters.packets_sent += count;
        bus.counters.octets_sent += several.octets as u64 + count * header.len() as u64;
        bus.counters.octets_sent -= count * replaces as u64;
        Some(SharedHeader {
            conn: taken.conn,
            header,
            replaces,
            least: 0,
        })
    }

    fn tell_first(&self, taken: &Taken, bus: &mut Bus) {
        let text = format!(
            "first packet to {} over the shortcut",
            ingress::name(&taken.key)
        );
        let shortcut = self.shortcuts.get(&taken.conn);
        let vc = shortcut.and_then(|shortcut| shortcut.vc);
        let trace = Trace::milestone("mpc.shortcut.first", text)
            .with("destination", taken.key.1)
            .with("vc", vc.map_or_else(String::new, |vc| vc.to_string()));
        bus.trace(match shortcut {
            Some(shortcut) => trace.with("peer", shortcut.peer),
            None => trace,
        });
    }

    fn shortcut_of(
        &mut self,
        itf: usize,
        frame: &[u8],
        several: Several,
        now: Instant,
        bus: &mut Bus,
    ) -> Option<Taken> {
        self.control?;
        let lan = packet::of_frame(frame)?;
        let (header, view) = (lan.header, lan.packet);
        let lec = self.lecs.get(&itf).filter(|lec| lec.up)?;
        let known = *lec.macs.get(&lan.destination)?;
        let destination = view.destination();
        if !self.params.detects(destination) || !view.may_take_shortcut() {
            return None;
        }
        let class = view.class(&self.qos);
        self.qos.count(&class, several.count);
        let (filter, qos) = class;
        let key = (known.mps, destination, filter);
        if known.stale && !self.ingress.entries.contains_key(&key) {
            return None;
        }
        let packet = view.octets();
        // A frame alone may have padding behind its packet.
        let longest = packet.len().min(several.longest.saturating_sub(header));
        let frames = Frames {
            source: view.source(),
            longest,
            count: several.count,
        };
        let bounds = (&self.params, &self.limits);
        // Packets that fit an entry have a path of their own.
        let flow = view.flow().filter(|_| filter.is_none());
        let (returns, shortcuts) = (&self.returns, &self.shortcuts);
        let back = |egress| match flow {
            Some(flow) => back(returns, shortcuts, (flow, egress), now),
            None => Back::Elsewhere,
        };
        let path = self
            .ingress
            .frames(key, frames, (qos, back), now, bounds, bus);
        self.note_deadline();
        let Path::Shortcut { conn, tag, first } = path else {
            return None;
        };
        Some(Taken {
            key,
            conn,
            tag,
            first,
            ipv6: matches!(view, IpPacket::V6(_)),
            packet: header..header + packet.len(),
        })
    }

    /// An SDU on a shortcut.
    pub(super) fn received(&mut self, conn: ConnId, sdu: &[u8], now: Instant, bus: &mut Bus) {
        let one = Several {
            count: 1,
            longest: sdu.len(),
            octets: sdu.len(),
        };
        let arrived = match self.arrive(conn, sdu, (one, true), now, bus) {
            Ok(arrived) => arrived,
            Err(Missed::NoShortcut) => return bus.discards.note(Discard::NoEntry, sdu),
            Err(Missed::Control(packet)) => return self.control(conn, packet, now, bus),
            Err(Missed::Bad) => {
                bus.counters.bad_packets += 1;
                return bus.discards.note(Discard::Malformed, sdu);
            }
            Err(Missed::NoEntry(destination)) => {
                bus.counters.egress_misses += 1;
                bus.discards.note(Discard::NoEntry, sdu);
                return self.purge_back(conn, destination, now, bus);
            }
        };
        bus.out.push_back(Output::Deliver {
            itf: arrived.itf,
            frame: egress::frame(arrived.header(), arrived.packet),
        });
        if arrived.way_back {
            self.unite(arrived.peer, now);
        }
    }

    /// Several SDUs with equal headers on a shortcut; `sdu` has these headers, with the lengths of the whole. Gives the
    /// interface and the Ethernet header of the frames. With `None` nothing has been counted, and the SDUs are to be
    /// received one by one.
    pub(super) fn received_several(
        &mut self,
        conn: ConnId,
        sdu: &[u8],
        several: Several,
        now: Instant,
        bus: &mut Bus,
    ) -> Option<(usize, Vec<u8>)> {
        let arrived = self.arrive(conn, sdu, (several, false), now, bus).ok()?;
        let header = arrived.header().to_vec();
        if arrived.way_back {
            self.unite(arrived.peer, now);
        }
        Some((arrived.itf, header))
    }

    /// The packets of SDUs on a shortcut, which are counted if they can be delivered. With `apart` each frame is made
    /// by itself; otherwise all get the same header.
    fn arrive<'a>(
        &mut self,
        conn: ConnId,
        sdu: &'a [u8],
        (several, apart): (Several, bool),
        now: Instant,
        bus: &mut Bus,
    ) -> Result<Arrived<'a>, Missed<'a>> {
        let shortcut = self.shortcuts.get_mut(&conn).ok_or(Missed::NoShortcut)?;
        let peer = shortcut.peer;
        let (tag, packet) = match ShortcutSdu::of(sdu) {
            ShortcutSdu::Tagged { tag, packet } => (Some(tag), packet),
            ShortcutSdu::Routed(packet) => (None, packet),
            ShortcutSdu::Control(packet) => return Err(Missed::Control(packet)),
            ShortcutSdu::Unknown => return Err(Missed::Bad),
        };
        let view = IpPacket::new(packet).ok_or(Missed::Bad)?;
        let entry = match tag {
            Some(tag) => self.egress.tagged(tag, peer, view.destination()),
            None => self.egress.untagged(peer, view.destination()),
        };
        let entry = entry.ok_or(Missed::NoEntry(view.destination()))?;
        let header = &entry.info.header;
        let mut space = [0; egress::HEADER_MAX];
        let place = space.get_mut(..header.len()).ok_or(Missed::Bad)?;
        place.copy_from_slice(header);
        // An 802.3 header has a length, which is not the same for all packets.
        if !apart && header.len() != egress::ETHERNET_HEADER {
            return Err(Missed::Bad);
        }
        let arrived = (entry.info.itf, (space, header.len()));
        entry.packets += u64::from(several.count);
        (entry.latest_source, entry.conn) = (Some(view.source()), Some(conn));
        bus.counters.packets_received += u64::from(several.count);
        bus.counters.octets_received += several.octets as u64;
        let mut way_back = shortcut.note_arrival(now);
        match view.flow() {
            Some(flow) if shortcut.leads_back() => match self.returns.note(flow, conn, now) {
                Noted::Known => {}
                Noted::New => way_back = true,
                Noted::Full => bus.counters.way_back_limit += u64::from(several.count),
            },
            Some(flow) if !self.returns.is_empty() => self.returns.note_otherwise(flow, now),
            Some(_) | None => {}
        }
        Ok(Arrived {
            peer,
            itf: arrived.0,
            header: arrived.1,
            packet: view.octets(),
            way_back,
        })
    }

    /// A message from the daemon.
    pub(super) fn handle(&mut self, message: ToKernel, now: Instant, bus: &mut Bus) {
        match message {
            ToKernel::TriggerReceived { mps, destination } => {
                // Of the packets, a Trigger tells only the destination.
                let (filter, qos) = match destination {
                    IpAddr::V4(ip) => self.qos.class(FlowFilter::to(ip)),
                    IpAddr::V6(_) => (None, None),
                };
                let key = (mps, destination, filter);
                if self.params.detects(destination) {
                    self.ingress
                        .trigger(key, qos, now, (&self.params, &self.limits), bus);
                    self.note_deadline();
                }
            }
            ToKernel::ResolutionReply(info) => self.resolved(&info, now, bus),
            ToKernel::IngressPurge {
                mps,
                destination,
                prefix,
            } => {
                let gone = self.ingress.purge_mps(mps, destination, prefix);
                forgot(destination, prefix, gone, bus);
                if gone > 0 {
                    self.collect(now, bus);
                }
            }
            ToKernel::EgressPurged { mps, cache_id } => self.drop_egress((mps, cache_id), now, bus),
            ToKernel::MpsDeath { mps } => self.mps_death(mps, now, bus),
            ToKernel::CacheImposition(info) if info.holding_s == 0 => {
                self.drop_egress((info.mps, info.cache_id), now, bus);
            }
            ToKernel::CacheImposition(info) => {
                self.active.insert(info.mps);
                self.egress.impose(info, now);
                self.note(self.egress.deadline());
                self.collect(now, bus);
            }
            ToKernel::SetMpcControlAddress(address) => self.start(address, now, bus),
            ToKernel::SetMpsMacAddress { itf, mac, mps } => {
                self.learn(itf, (mac, true), mps, now, bus)
            }
            ToKernel::CleanUpAndExit => self.clean_up(ToDaemon::Die, now, bus),
            ToKernel::Reload => self.clean_up(ToDaemon::Reload, now, bus),
            ToKernel::SetParams(params) => self.params = params.in_range(),
            ToKernel::Attach {
                conn,
                peer,
                vc,
                qos,
                opened,
                flow,
            } => {
                let new = Shortcut::new(peer, qos, (opened, flow), now);
                self.attach(conn, new, vc, now, bus);
            }
            ToKernel::Detach { conn, cause } => self.detach(conn, cause, now, bus),
            ToKernel::OpenFailed {
                egress,
                qos,
                flow,
                cause,
            } => self.open_failed((egress, qos), flow, cause, now, bus),
        }
    }

    /// 102: a binding or a refusal.
    fn resolved(&mut self, info: &IngressInfo, now: Instant, bus: &mut Bus) {
        let key = info.flow();
        let qos = self.qos.qos(info.filter);
        let mut info = info.clone();
        if info.mtu == 0 {
            info.mtu = self.unknown_mtu;
        }
        let changed = self.ingress.reply(&info, qos, now, &self.params, bus);
        self.note_deadline();
        let bound = self
            .ingress
            .entries
            .get(&key)
            .and_then(|e| e.binding.as_ref());
        if let Some(egress) = bound.map(|binding| binding.egress) {
            self.active.insert(info.mps);
            self.adopt(egress);
            // Where the other end has a guaranteed connection, the next packet shows whether it goes back over that.
            if !(key.2.is_none() && self.shortcuts.lead_back(egress)) {
                self.ingress.open(key, now, bus);
            }
        }
        if changed {
            self.collect(now, bus);
        }
    }

    /// 105: all information from this MPS is void.
    fn mps_death(&mut self, mps: AtmAddress, now: Instant, bus: &mut Bus) {
        // Entries that only count, or are held down, contain no information from the MPS.
        let own = |state| matches!(state, IngressState::Cached | IngressState::HoldDown);
        self.ingress
            .remove(|key, entry| key.0 == mps && !own(entry.state));
        let dead = self.egress.entries.values().filter(|e| e.info.mps == mps);
        let dead: Vec<EgressInfo> = dead.map(|e| e.info.clone()).collect();
        for info in dead {
            // Over all shortcuts with the ingress: which one the ingress will use next is unknown.
            for conn in self.shortcuts.of(info.ingress).collect::<Vec<_>>() {
                self.purge_over(conn, (info.destination, info.prefix), now, bus);
            }
            self.remove_egress((info.mps, info.cache_id), bus);
        }
        self.collect(now, bus);
    }

    /// 109 and 301: forget ingress entries, purge egress entries, then send `then`.
    fn clean_up(&mut self, then: ToDaemon, now: Instant, bus: &mut Bus) {
        self.set_tlvs(bus, &[]);
        self.ingress.remove(|_, _| true);
        let usable = EgressState::Purging { usable: true };
        for info in self.egress.start_purge(usable, |_| true) {
            bus.daemon(ToDaemon::SendEgressPurge(info));
        }
        self.collect(now, bus);
        bus.daemon(then);
    }

    fn drop_egress(&mut self, key: egress::Key, now: Instant, bus: &mut Bus) {
        self.remove_egress(key, bus);
        self.collect(now, bus);
    }

    fn remove_egress(&mut self, (mps, cache_id): egress::Key, bus: &mut Bus) {
        if self.egress.remove((mps, cache_id)).is_some() {
            bus.daemon(ToDaemon::EgressEntryRemoved { mps, cache_id });
        }
    }

    /// Marks egress entries as purging because their header is not valid any more.
    fn purge_egress(&mut self, bus: &mut Bus, which: impl Fn(&egress::Entry) -> bool) {
        let state = EgressState::Purging { usable: false };
        for info in self.egress.start_purge(state, which) {
            bus.daemon(ToDaemon::SendEgressPurge(info));
        }
    }

    /// Sets, changes or removes a QoS entry. Its flows end, and their shortcuts with them.
    pub(super) fn set_qos(
        &mut self,
        filter: FlowFilter,
        qos: Option<Qos>,
        now: Instant,
        bus: &mut Bus,
    ) -> Result<(), Refused> {
        if self.qos.set(filter, qos, self.limits.qos)? {
            let gone = self.ingress.remove(|key, _| key.2 == Some(filter));
            let what = match qos {
                Some(qos) => format!("QoS entry {filter}: {}", qos.tx),
                None => format!("QoS entry {filter} removed"),
            };
            let text = format!("{what}; {}", counted(gone, "flow ends", "flows end"));
            bus.trace(Trace::detail("mpc.qos.set", text).with("entry", filter));
            self.collect(now, bus);
        }
        Ok(())
    }

    // ---- Interfaces and discovery ----

    // ---- Time ----

    pub(super) fn note(&mut self, at: Option<Instant>) {
        self.wake = [self.wake, at].into_iter().flatten().min();
    }
    fn note_deadline(&mut self) {
        let next = self.ingress.entries.next();
        self.note(next);
    }
    pub(super) const fn next_timeout(&self) -> Option<Instant> {
        self.wake
    }

    pub(super) fn handle_timeout(&mut self, now: Instant, bus: &mut Bus) {
        if self.wake.is_none_or(|at| at > now) {
            return;
        }
        if self.orphan_until.is_some_and(|at| at <= now) {
            return self.reset(bus);
        }
        let mut changed = self.ingress.expire(now, &self.params, bus);
        let over = self
            .egress
            .expire(EgressState::Purging { usable: false }, now);
        changed |= !over.is_empty() | self.shortcuts.expire(now);
        for info in over {
            bus.daemon(ToDaemon::SendEgressPurge(info));
        }
        if changed {
            self.collect(now, bus);
        }
        self.wake = None;
        self.note_deadline();
        self.note(self.egress.deadline());
        self.note(self.shortcuts.lingers_until());
        self.note(self.orphan_until);
    }
}
