//! The LE_ARP cache: who owns which MAC address, and the requests that find out.
//!
//! Source: LUNI 2.0 clause 7.

use super::control::{Control, Role, Timer};
use super::devices::{is_device, is_server};
use super::messages::ToData;
use super::{ArpStatus, News};
use crate::{ConnId, Duration, Instant, Trace};
use aerostat_wire::lane::{ControlFrame, Flags, LanDestination, OpCode, Status, Tlv};
use aerostat_wire::{AtmAddress, MacAddr};

/// Without an answer after this time, the data plane is asked again when it last used a destination.
const USE_PATIENCE: Duration = Duration::from_secs(1);
/// If the TLVs of an owner do not say what device it is, the user may ask again, but not more often than this.
const SILENT: Duration = Duration::from_secs(1);

/// Where frames for an entry go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Path {
    /// The BUS is used, or no connection at all.
    None,
    /// A call is under way.
    Calling,
    /// The data plane was told to switch and has not answered yet whether a flush is needed.
    Switching,
    /// LE_FLUSH_REQUEST is out.
    Flushing {
        transaction: u32,
        to: ConnId,
        /// The old path.
        via: ConnId,
        /// Time of the last frame on the old path.
        last: Instant,
        /// The end of C21.
        until: Instant,
        /// The request is repeated, or the wait ends.
        at: Instant,
    },
    /// A data direct connection.
    Direct(ConnId),
    /// The call was refused; no new call is made before this time.
    Refused(Instant),
}

/// LE_ARP under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asking {
    pub(super) transaction: u32,
    pub(super) tries: u16,
    pub(super) at: Instant,
}

/// One MAC address.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// Owner.
    pub(super) atm: Option<AtmAddress>,
    pub(super) remote: bool,
    pub(super) from_data: bool,
    pub(super) tlvs: Vec<Tlv>,
    /// The user was told of this association and must be told of its end, too.
    pub(super) associated: bool,
    pub(super) asking: Option<Asking>,
    pub(super) path: Path,
    /// Number of the last flush that ended. Its request may have been repeated, so more answers to it may come.
    pub(super) flushed: Option<u32>,
    /// The data plane wants a path.
    pub(super) wanted: bool,
    /// The user waits for [`News::Resolved`].
    user_waits: bool,
    /// Last sign that the binding holds.
    pub(super) verified: Instant,
    /// Last information from LE_ARP about the owner, or the time when the entry was made.
    told: Instant,
    /// The data plane was asked for its last use of the destination; its answer is awaited until then.
    use_asked: Option<Instant>,
}

impl Entry {
    pub(super) const fn new(now: Instant) -> Self {
        Self {
            atm: None,
            remote: false,
            from_data: false,
            tlvs: Vec::new(),
            associated: false,
            asking: None,
            path: Path::None,
            flushed: None,
            wanted: false,
            user_waits: false,
            verified: now,
            told: now,
            use_asked: None,
        }
    }
    pub(super) fn status(&self) -> ArpStatus {
        match self.path {
            Path::Direct(_) => ArpStatus::ForwardDirect,
            Path::Flushing { .. } | Path::Switching => ArpStatus::FlushPending,
            Path::Calling | Path::Refused(_) => ArpStatus::VcPending,
            Path::None if self.asking.is_some() => ArpStatus::ArpPending,
            Path::None => ArpStatus::Unknown,
        }
    }
}

/// How long entries live.
#[derive(Clone, Copy, Debug)]
struct Ageing {
    aging_time: Duration,
    forward_delay: Duration,
    topology_change: bool,
}

impl Ageing {
    const fn of(self, entry: &Entry) -> Duration {
        if entry.remote && self.topology_change {
            self.forward_delay
        } else {
            self.aging_time
        }
    }
    /// When the next step for an entry is due.
    fn due(self, entry: &Entry) -> Instant {
        let path = match entry.path {
            Path::Flushing { at, .. } | Path::Refused(at) => Some(at),
            Path::None | Path::Calling | Path::Switching | Path::Direct(_) => None,
        };
        let arp = match entry.asking {
            Some(asking) => asking.at,
            None => {
                let old = entry.verified + self.of(entry);
                entry.use_asked.map_or(old, |at| at.max(old))
            }
        };
        path.map_or(arp, |at| at.min(arp))
    }
}

impl Control {
    // ---- asking ----

    /// The data plane has frames for `mac` and no path.
    pub(super) fn resolve_for_frames(&mut self, mac: MacAddr, now: Instant) {
        // A v1 client sends the frames of all groups to the BUS and need not ask.
        if mac.is_group() && !self.state.v2() {
            return;
        }
        if !self.state.has_bus() || !self.entry(mac, now, true) {
            let asked = false;
            self.to_data.push_back(ToData::Unresolved { mac, asked });
            return;
        }
        let Some(entry) = self.cache.get_mut(&mac) else {
            return;
        };
        entry.wanted = true;
        let known = entry.atm.is_some();
        // What a data frame taught is enough for a path, but it says nothing about the owner's TLVs.
        let ask = entry.asking.is_none() && (!known || entry.from_data);
        if known {
            self.connect_path(mac, now);
        }
        if ask {
            self.ask_for(mac, 0, now);
        }
    }

    /// The user wants to know the owner of `mac`.
    pub(super) fn resolve_for_user(&mut self, mac: MacAddr, now: Instant) {
        if self.is_local(mac) && self.state.lecid() != 0 {
            let owner = Some((self.config.address, self.config.tlvs.clone()));
            self.tell_user(News::Resolved { mac, owner });
            return;
        }
        if !self.state.is_operational() || mac.is_group() || !self.entry(mac, now, true) {
            let owner = None;
            self.tell_user(News::Resolved { mac, owner });
            return;
        }
        let Some(entry) = self.cache.get_mut(&mac) else {
            return;
        };
        // Clients do not announce their device type when they join: a client that has joined again may have new TLVs.
        let silent = self.state.v2() && !is_device(&entry.tlvs) && now.since(entry.told) >= SILENT;
        match entry.atm {
            Some(atm) if !entry.from_data && entry.asking.is_none() && !silent => {
                let owner = Some((atm, entry.tlvs.clone()));
                self.tell_user(News::Resolved { mac, owner });
            }
            _ => {
                entry.user_waits = true;
                if entry.asking.is_none() {
                    self.ask_for(mac, 0, now);
                }
            }
        }
    }

    /// Sends LE_ARP_REQUEST number `tries` + 1.
    pub(super) fn ask_for(&mut self, mac: MacAddr, tries: u16, now: Instant) {
        let mut frame = self.frame(OpCode::ARP);
        frame.source = LanDestination::mac(self.config.mac);
        frame.target = LanDestination::mac(mac);
        frame.tlvs = self.own_tlvs().into();
        let at = now + self.params.expected_arp_time;
        if let Some(entry) = self.cache.get_mut(&mac) {
            entry.asking = Some(Asking {
                transaction: frame.transaction,
                tries,
                at,
            });
            self.send_control(&frame);
        }
    }

    // ---- learning ----

    pub(super) fn arp_response(&mut self, frame: &ControlFrame, now: Instant) {
        if frame.lecid != self.state.lecid() {
            return; // The response to another client, on control distribute.
        }
        let Some(mac) = frame.target.as_mac() else {
            self.counters.bad += 1;
            return;
        };
        if mac == MacAddr::BROADCAST {
            return self.bus_found(frame, now);
        }
        let asked = self.cache.get(&mac).and_then(|entry| entry.asking);
        if asked.is_none_or(|asking| asking.transaction != frame.transaction) {
            self.counters.unasked += 1;
            return;
        }
        // An address that this client asks for is never its own: a response with its own address dates from an earlier
        // life of this client.
        let nobody = frame.target_atm.is_zero() || frame.target_atm == self.config.address;
        if frame.status != Status::SUCCESS || nobody {
            return self.arp_failed(mac);
        }
        let remote = frame.flags.contains(Flags::REMOTE);
        let mut tlvs = frame.tlvs.list.clone();
        // The Linux LES counts the TLVs of the request and sends none: that says nothing about the owner.
        if tlvs.is_empty()
            && frame.tlvs.missing > 0
            && let Some(entry) = self.cache.get(&mac)
            && entry.atm == Some(frame.target_atm)
        {
            tlvs.clone_from(&entry.tlvs);
        }
        self.learn(mac, frame.target_atm, remote, tlvs, now);
    }

    /// LE_ARP taught the owner of `mac`; there is an entry for it.
    fn learn(&mut self, mac: MacAddr, atm: AtmAddress, remote: bool, tlvs: Vec<Tlv>, now: Instant) {
        let Some(entry) = self.cache.get_mut(&mac) else {
            return;
        };
        let moved = entry.atm.is_some_and(|old| old != atm);
        entry.atm = Some(atm);
        entry.remote = remote;
        entry.from_data = false;
        (entry.verified, entry.told) = (now, now);
        entry.asking = None;
        if mac.is_group() {
            // The server of a group: nothing more need be known of it.
            if moved {
                entry.path = Path::None;
                let asked = true;
                self.to_data.push_back(ToData::Unresolved { mac, asked });
            }
            return self.connect_group(mac, now);
        }
        entry.tlvs.clone_from(&tlvs);
        entry.associated = true;
        if core::mem::take(&mut entry.user_waits) {
            let owner = Some((atm, tlvs.clone()));
            self.tell_user(News::Resolved { mac, owner });
        }
        self.tell_user(News::Associate { mac, atm, tlvs });
        if moved {
            self.lose_path(mac);
        }
        self.connect_path(mac, now);
    }

    fn arp_failed(&mut self, mac: MacAddr) {
        self.trace(
            Trace::detail("lane.unresolved", format!("nobody answers for {mac}")).with("mac", mac),
        );
        self.forget(mac);
    }

    /// Removes an entry; the next frame starts anew.
    pub(super) fn forget(&mut self, mac: MacAddr) {
        let Some(entry) = self.cache.remove(&mac) else {
            return;
        };
        if entry.user_waits {
            let owner = None;
            self.tell_user(News::Resolved { mac, owner });
        }
        if entry.associated {
            self.tell_user(News::Dissociate { mac });
        }
        let asked = false;
        self.to_data.push_back(ToData::Unresolved { mac, asked });
    }

    pub(super) fn clear_cache(&mut self) {
        for mac in self.cache.keys().copied().collect::<Vec<_>>() {
            self.forget(mac);
        }
    }

    /// Makes sure that there is an entry. `evict`: an entry without path and TLVs may give way.
    fn entry(&mut self, mac: MacAddr, now: Instant, evict: bool) -> bool {
        if self.cache.contains_key(&mac) {
            return true;
        }
        if self.cache.len() >= self.config.limits.cache {
            self.counters.cache_full += 1;
            let idle = |entry: &Entry| {
                entry.path == Path::None && entry.asking.is_none() && entry.tlvs.is_empty()
            };
            let victim = (self.cache.iter())
                .filter(|(_, entry)| evict && idle(entry))
                .min_by_key(|(_, entry)| entry.verified)
                .map(|(mac, _)| *mac);
            let Some(victim) = victim else {
                return false;
            };
            self.forget(victim);
        }
        self.cache.insert(mac, Entry::new(now));
        true
    }

    /// LE_ARP_REQUEST: for this client, or targetless.
    pub(super) fn arp_request(&mut self, frame: &ControlFrame, now: Instant) {
        if frame.lecid == self.state.lecid() || frame.source_atm == self.config.address {
            return;
        }
        if let Some(mac) = frame.target.as_mac() {
            let remote = self.remote.contains(&mac);
            if self.is_local(mac) || remote {
                let mut answer = frame.response(Status::SUCCESS);
                answer.target_atm = self.config.address;
                answer.tlvs = self.own_tlvs().into();
                if remote {
                    answer.flags = answer.flags.with(Flags::REMOTE);
                }
                self.send_control(&answer);
            }
        }
        self.learn_from_request(frame, now);
    }

    /// A request describes its sender. A known entry is updated from it. A new entry is made from a request with TLVs
    /// if the request asks for this client, or if its sender is a server that this client must know without asking.
    fn learn_from_request(&mut self, frame: &ControlFrame, now: Instant) {
        let Some(mac) = frame.source.as_mac() else {
            return;
        };
        let says = self.state.v2() && !frame.tlvs.list.is_empty();
        if frame.source_atm.is_zero() || mac.is_group() || self.is_local(mac) {
            return;
        }
        let known = self.cache.contains_key(&mac);
        let targetless = frame.target.as_mac().is_none();
        if targetless {
            self.claimed(mac);
        }
        let for_us = |asked: MacAddr| self.is_local(asked) || self.remote.contains(&asked);
        let keep = if known {
            targetless || says
        } else {
            let asks = frame.target.as_mac().is_some_and(for_us);
            says && (asks || self.takes_server(&frame.tlvs.list)) && self.entry(mac, now, false)
        };
        if !keep {
            return;
        }
        let remote = frame.flags.contains(Flags::REMOTE);
        self.learn(mac, frame.source_atm, remote, frame.tlvs.list.clone(), now);
    }

    /// Another client claims `mac` now.
    fn claimed(&mut self, mac: MacAddr) {
        if self.remote.remove(&mac) {
            self.tell_user(News::RemoteMoved { mac });
        }
    }

    /// A MAC address left its old ATM address.
    pub(super) fn narp(&mut self, frame: &ControlFrame, now: Instant) {
        let own = frame.lecid == self.state.lecid() || frame.source_atm == self.config.address;
        if own || !self.state.v2() {
            return;
        }
        // Implementations differ in the field that holds the MAC address.
        let mac = frame.target.as_mac().or(frame.source.as_mac());
        // For a group, only the LES can say which server it has.
        let mac = mac.filter(|mac| !mac.is_group());
        if let Some(mac) = mac.filter(|_| !frame.source_atm.is_zero()) {
            self.claimed(mac);
        }
        let Some(mac) = mac.filter(|mac| self.cache.contains_key(mac)) else {
            return;
        };
        if frame.source_atm.is_zero() {
            self.forget(mac);
        } else {
            self.learn(mac, frame.source_atm, true, frame.tlvs.list.clone(), now);
        }
    }

    pub(super) fn topology(&mut self, frame: &ControlFrame, now: Instant) {
        if frame.lecid == self.state.lecid() {
            return;
        }
        self.set_topology(frame.flags.contains(Flags::TOPOLOGY_CHANGE));
        if self.topology_change {
            self.start_topology_timer(now);
        } else {
            self.timers.stop(Timer::Topology);
        }
    }

    /// The frame that ends a topology change may be lost; no change lasts longer than C17.
    pub(super) fn start_topology_timer(&mut self, now: Instant) {
        let longest = self.params.aging_time;
        self.timers.start(Timer::Topology, now, longest);
    }

    pub(super) fn send_topology(&mut self, on: bool) {
        self.set_topology(on);
        let mut frame = self.frame(OpCode::TOPOLOGY);
        if on {
            frame.flags = Flags::TOPOLOGY_CHANGE;
        }
        self.send_control(&frame);
    }

    /// MAC addresses behind a proxy. An address that another client had before moves here: LE_NARP tells all members,
    /// or a targetless LE_ARP if the previous owner is not known.
    pub(super) fn set_remote(&mut self, macs: Vec<MacAddr>) {
        let before = core::mem::replace(&mut self.remote, macs.into_iter().collect());
        for mac in self.remote.clone() {
            let Some(old) = self.cache.get(&mac).and_then(|entry| entry.atm) else {
                let joined = self.state.v2() && self.state.is_operational();
                if joined && !before.contains(&mac) {
                    self.claim(mac);
                }
                continue;
            };
            self.forget(mac);
            let mut frame = self.frame(OpCode::NARP);
            frame.source = LanDestination::mac(mac);
            frame.target = LanDestination::mac(mac);
            frame.flags = Flags::REMOTE;
            frame.target_atm = old;
            frame.tlvs = self.own_tlvs().into();
            self.send_control(&frame);
        }
    }

    /// A data frame of `mac` came on `conn`.
    pub(super) fn heard(&mut self, mac: MacAddr, conn: ConnId, now: Instant) {
        let Some(known) = self.conns.get(conn) else {
            return;
        };
        if known.carries() != Role::DataDirect {
            return;
        }
        let peer = known.peer();
        self.direct_ready(conn, now);
        if mac.is_group() || self.is_local(mac) || peer.is_zero() {
            return;
        }
        if !self.cache.contains_key(&mac) {
            if !self.entry(mac, now, false) {
                return;
            }
            if let Some(entry) = self.cache.get_mut(&mac) {
                entry.atm = Some(peer);
                entry.from_data = true;
            }
        }
        if let Some(entry) = self.cache.get_mut(&mac)
            && entry.atm == Some(peer)
        {
            entry.verified = now;
        }
    }

    // ---- time ----

    fn lifetime(&self, entry: &Entry) -> Duration {
        self.ageing().of(entry)
    }

    const fn ageing(&self) -> Ageing {
        Ageing {
            aging_time: self.params.aging_time,
            forward_delay: self.params.forward_delay,
            topology_change: self.topology_change,
        }
    }

    /// Computes the cache's next deadline anew; the deadline is exact after this.
    pub(super) fn cache_reckon(&mut self) {
        let ageing = self.ageing();
        self.cache.reckon(|entry| ageing.due(entry));
    }

    /// A topology change begins or is over: remote entries age faster or slower.
    pub(super) fn set_topology(&mut self, change: bool) {
        if core::mem::replace(&mut self.topology_change, change) != change {
            self.cache.touch_all();
        }
    }

    pub(super) fn cache_timeout(&mut self, now: Instant) {
        self.cache_reckon();
        for mac in self.cache.due(now) {
            self.path_timeout(mac, now);
            let Some(entry) = self.cache.get(&mac) else {
                continue;
            };
            match entry.asking {
                Some(asking) if asking.at > now => {}
                Some(asking) if asking.tries < self.params.max_retry_count => {
                    self.ask_for(mac, asking.tries + 1, now);
                }
                // Received frames prove the binding even if LE_ARP is not answered.
                Some(_) if entry.from_data && entry.verified + self.lifetime(entry) > now => {
                    self.stop_asking(mac);
                }
                Some(_) => self.arp_failed(mac),
                None if self.ageing().due(entry) > now => {}
                None => self.ask_use(mac, now),
            }
        }
    }

    fn ask_use(&mut self, mac: MacAddr, now: Instant) {
        if let Some(entry) = self.cache.get_mut(&mac) {
            // The answer may come from another process.
            entry.use_asked = Some(now + USE_PATIENCE);
            self.to_data.push_back(ToData::AskUse(mac));
        }
    }

    fn stop_asking(&mut self, mac: MacAddr) {
        let Some(entry) = self.cache.get_mut(&mac) else {
            return;
        };
        entry.asking = None;
        if core::mem::take(&mut entry.user_waits) {
            let owner = None;
            self.tell_user(News::Resolved { mac, owner });
        }
    }

    /// The entry has reached its age; `ago` says how long ago a frame last went to it.
    pub(super) fn aged(&mut self, mac: MacAddr, ago: Option<Duration>, now: Instant) {
        if let Some(entry) = self.cache.get_mut(&mac) {
            entry.use_asked = None;
        }
        let Some(entry) = self.cache.get(&mac) else {
            return;
        };
        let lifetime = self.lifetime(entry);
        if entry.asking.is_some() || entry.verified + lifetime > now {
            return;
        }
        let used = ago.is_some_and(|ago| ago < lifetime);
        if used || is_server(&entry.tlvs) {
            if let Some(entry) = self.cache.get_mut(&mac) {
                entry.from_data = false;
            }
            self.ask_for(mac, 0, now);
        } else {
            self.forget(mac);
            self.to_data.push_back(ToData::Forget(mac));
        }
    }
}
