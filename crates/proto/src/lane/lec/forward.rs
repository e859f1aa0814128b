//! Data plane of a client: which connection carries a frame, and the quota for destinations without one.

use super::messages::{ToControl, ToData};
use super::{LecConfig, Output, groups};
use crate::discard::{Discard, Discards};
use crate::lane::LecLimits;
use crate::{AtmRequest, ConnId, Duration, Instant, Several, SharedHeader};
use aerostat_wire::MacAddr;
use aerostat_wire::lane::{DataFrame, MIN_DATA_SDU, is_control};
use aerostat_wire::llc::LlcSnap;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A source that goes on sending is reported again after this time.
const HEARD_AGAIN: Duration = Duration::from_secs(5);
/// Sources remembered per connection.
const HEARD_MAX: usize = 64;

crate::counters! {
    /// Counters of the data plane; they count frames unless said otherwise.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct DataCounters {
        /// Sent on data direct connections.
        pub sent_direct: u64,
        /// Sent to the BUS: group frames, and unicast frames within the quota.
        pub sent_bus: u64,
        /// Delivered to the user.
        pub delivered: u64,
        /// Own frames that came back from the BUS.
        pub echoes: u64,
        /// Unicast frames for other stations (the BUS sends unknown unicast to all), and frames of groups that are not
        /// wanted.
        pub not_for_us: u64,
        /// Dropped: the destination's queue was full.
        pub queue_full: u64,
        /// Dropped: no BUS connection, not a member, or sent to an own MAC address.
        pub no_path: u64,
        /// Dropped: shorter than an Ethernet header or longer than the ELAN allows, in either direction.
        pub bad_length: u64,
        /// Dropped: the table of destinations was full.
        pub table_full: u64,
        /// Dropped: on an LLC-multiplexed connection, of another ELAN or no data frame.
        pub bad_mux: u64,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Path {
    /// The BUS is used, within the quota.
    Unresolved,
    /// Frames wait for the end of a flush.
    Held,
    /// A data direct connection is used.
    Direct(ConnId),
}

struct Destination {
    path: Path,
    asked: bool,
    window_end: Instant,
    window_count: u16,
    queue: VecDeque<Vec<u8>>,
    /// Connection and time of the last frame.
    last: Option<(ConnId, Instant)>,
    used: Instant,
}

struct Usage {
    last: Instant,
    idle: Option<Duration>,
    /// The connection is LLC-multiplexed, with this ELAN-ID.
    mux: Option<u32>,
    heard: BTreeMap<MacAddr, Instant>,
}

/// Why an SDU is not delivered as a frame; with its octets without a multiplexing header.
enum Refusal<'a> {
    /// The connection is not one of the data connections.
    NoConnection,
    /// It is a control frame.
    Control(&'a [u8]),
    BadMux,
    BadLength(&'a [u8]),
    Echo(&'a [u8]),
    NotForUs(&'a [u8]),
}

/// Forwards frames; see [`super::messages`].
pub(super) struct Forwarder {
    own: BTreeSet<MacAddr>,
    /// Groups whose frames are delivered; `None`: all groups.
    groups: Option<BTreeSet<MacAddr>>,
    promiscuous: bool,
    limits: LecLimits,
    lecid: u16,
    max_sdu: usize,
    count: u16,
    time: Duration,
    bus: Option<ConnId>,
    destinations: BTreeMap<MacAddr, Destination>,
    connections: BTreeMap<ConnId, Usage>,
    /// No timer is due before this.
    next: Option<Instant>,
    pub(super) counters: DataCounters,
    pub(super) discards: Discards,
    pub(super) to_control: VecDeque<ToControl>,
    pub(super) out: VecDeque<Output>,
}

impl Forwarder {
    pub(super) fn new(config: &LecConfig) -> Self {
        let wanted = || groups::wanted(config, &config.groups);
        Self {
            own: config.macs().collect(),
            groups: (config.selective && !config.proxy).then(wanted),
            promiscuous: config.proxy,
            limits: config.limits,
            lecid: 0,
            max_sdu: 0,
            count: 1,
            time: Duration::from_secs(1),
            bus: None,
            destinations: BTreeMap::new(),
            connections: BTreeMap::new(),
            next: None,
            counters: DataCounters::default(),
            discards: Discards::default(),
            to_control: VecDeque::new(),
            out: VecDeque::new(),
        }
    }

    /// C15 has changed.
    pub(super) fn want(&mut self, macs: &[MacAddr]) {
        let limit = self.limits.groups;
        if let Some(groups) = &mut self.groups {
            *groups = groups::some(macs, limit);
        }
    }
    /// True if `conn` is a connection for data frames.
    pub(super) fn owns(&self, conn: ConnId) -> bool {
        self.connections.contains_key(&conn)
    }
    pub(super) const fn next(&self) -> Option<Instant> {
        self.next
    }
    /// Destination's path for display: `None` while it uses the BUS.
    pub(super) fn direct(&self, mac: MacAddr) -> Option<ConnId> {
        match self.destinations.get(&mac)?.path {
            Path::Direct(conn) => Some(conn),
            Path::Unresolved | Path::Held => None,
        }
    }

    /// The client's LECID; 0 while the client is no member.
    pub(super) const fn lecid(&self) -> u16 {
        self.lecid
    }
    /// The multicast send connection.
    pub(super) const fn bus(&self) -> Option<ConnId> {
        self.bus
    }
    /// All connections.
    pub(super) fn connections(&self) -> impl Iterator<Item = ConnId> {
        self.connections.keys().copied()
    }
    /// The frames that wait.
    pub(super) fn held(&self) -> impl Iterator<Item = &[u8]> {
        let queues = self.destinations.values().flat_map(|d| &d.queue);
        queues.map(Vec::as_slice)
    }
    /// All destinations.
    pub(super) fn destinations(&self) -> impl Iterator<Item = MacAddr> {
        self.destinations.keys().copied()
    }

    /// A message of the control part.
    pub(super) fn handle(&mut self, message: ToData, now: Instant) {
        match message {
            ToData::Joined { lecid, max_sdu } => {
                self.lecid = lecid;
                self.max_sdu = max_sdu.into();
            }
            ToData::Quota { count, time } => (self.count, self.time) = (count, time),
            ToData::Bus(conn) => self.bus = conn,
            ToData::Open { conn, idle, mux } => self.open(conn, idle, mux, now),
            ToData::Close(conn) => self.close(conn),
            ToData::Switch { mac, to, fresh } => self.switch(mac, to, fresh, now),
            ToData::Proceed { mac, to } => self.proceed(mac, to, now),
            ToData::Unresolved { mac, asked } => {
                if let Some(destination) = self.destinations.get_mut(&mac) {
                    destination.path = Path::Unresolved;
                    destination.asked = asked;
                    self.drain(mac, now);
                }
            }
            ToData::Forget(mac) => {
                let gone = self.destinations.remove(&mac);
                for frame in gone.iter().flat_map(|gone| &gone.queue) {
                    self.discards.note(Discard::Unreachable, frame);
                }
            }
            ToData::AskUse(mac) => {
                let ago = self.destinations.get(&mac).map(|d| now.since(d.used));
                self.to_control.push_back(ToControl::Use { mac, ago });
            }
            ToData::Reset => {
                for frame in self.destinations.values().flat_map(|d| &d.queue) {
                    self.discards.note(Discard::NotJoined, frame);
                }
                self.destinations.clear();
                self.connections.clear();
                self.bus = None;
                self.lecid = 0;
                self.max_sdu = 0;
                self.next = None;
            }
        }
    }

    /// An Ethernet frame of the user.
    pub(super) fn transmit(&mut self, frame: Vec<u8>, now: Instant) {
        if frame.len() < 14 || frame.len() + 2 > self.max_sdu {
            let member = self.max_sdu > 0;
            let (counter, why) = if member {
                (&mut self.counters.bad_length, Discard::BadLength)
            } else {
                (&mut self.counters.no_path, Discard::NotJoined)
            };
            *counter += 1;
            self.discards.note(why, &frame);
            return;
        }
        let mut octets = [0; 6];
        octets.copy_from_slice(&frame[..6]); // The frame has at least 14 octets: checked above.
        let mac = MacAddr(octets);
        if mac.is_group() {
            self.transmit_group(mac, &frame, now);
            return;
        }
        if self.own.contains(&mac) {
            self.counters.no_path += 1;
            self.discards.note(Discard::Unreachable, &frame);
            return;
        }
        if !self.destinations.contains_key(&mac) && !self.make_room(now, mac) {
            self.counters.table_full += 1;
            self.discards.note(Discard::TableFull, &frame);
            return;
        }
        let Some(destination) = self.destinations.get_mut(&mac) else {
            return;
        };
        destination.used = now;
        match destination.path {
            Path::Direct(conn) if destination.queue.is_empty() => {
                destination.last = Some((conn, now));
                self.send_direct(conn, &frame, now);
                return;
            }
            Path::Unresolved if !destination.asked => {
                destination.asked = true;
                self.to_control.push_back(ToControl::Resolve(mac));
            }
            Path::Direct(_) | Path::Held | Path::Unresolved => {}
        }
        if destination.queue.len() >= self.limits.queue {
            self.counters.queue_full += 1;
            self.discards.note(Discard::QueueFull, &frame);
            return;
        }
        destination.queue.push_back(frame);
        self.drain(mac, now);
    }

    /// Groups have no quota: the BUS carries their frames until a selective multicast server is known, or permanently.
    fn transmit_group(&mut self, mac: MacAddr, frame: &[u8], now: Instant) {
        let known = mac == MacAddr::BROADCAST || self.destinations.contains_key(&mac);
        if !known {
            self.make_room(now, mac);
        }
        if let Some(destination) = self.destinations.get_mut(&mac) {
            destination.used = now;
            if let Path::Direct(conn) = destination.path {
                return self.send_direct(conn, frame, now);
            }
            if !core::mem::replace(&mut destination.asked, true) {
                self.to_control.push_back(ToControl::Resolve(mac));
            }
        }
        self.send_bus(frame, now);
    }

    /// Several frames of the user for one destination; `frame` is the first of them, or its headers. `None`
    /// if they need something else than a header, because no connection to the destination exists, or frames wait for
    /// it. Then nothing has happened, and the frames are to be sent one by one.
    pub(super) fn transmit_several(
        &mut self,
        frame: &[u8],
        several: Several,
        now: Instant,
    ) -> Option<SharedHeader> {
        let mac = MacAddr(*frame.first_chunk()?);
        let fits = several.longest + 2 <= self.max_sdu;
        if !fits || mac.is_group() || self.own.contains(&mac) {
            return None;
        }
        let destination = self.destinations.get_mut(&mac)?;
        let Path::Direct(conn) = destination.path else {
            return None;
        };
        let usage = self.connections.get_mut(&conn)?;
        if !destination.queue.is_empty() {
            return None;
        }
        usage.last = now;
        destination.used = now;
        destination.last = Some((conn, now));
        self.counters.sent_direct += u64::from(several.count);
        let header = self.lecid.to_be_bytes();
        let header = match usage.mux {
            Some(elan_id) => LlcSnap::LaneData { elan_id }.wrap(&header),
            None => header.to_vec(),
        };
        Some(SharedHeader {
            conn,
            least: MIN_DATA_SDU - self.lecid.to_be_bytes().len() + header.len(),
            header,
            replaces: 0,
        })
    }

    /// Several SDUs with equal headers on one of the data connections; `sdu` is the first of them, or its headers.
    /// Gives the octets in front of each frame, if all frames are for the user. Otherwise nothing has been counted, and
    /// the SDUs are to be received one by one.
    pub(super) fn receive_several(
        &mut self,
        conn: ConnId,
        sdu: &[u8],
        several: Several,
        now: Instant,
    ) -> Option<usize> {
        let (_, front) = self.accept(conn, sdu, several.longest, now).ok()?;
        self.counters.delivered += u64::from(several.count);
        Some(front)
    }

    /// An SDU on one of the data connections.
    pub(super) fn receive(&mut self, conn: ConnId, sdu: &[u8], now: Instant) {
        match self.accept(conn, sdu, sdu.len(), now) {
            Ok((data, _)) => {
                self.counters.delivered += 1;
                self.out.push_back(Output::Deliver(data.frame.to_vec()));
            }
            Err(Refusal::NoConnection) => {}
            Err(Refusal::Control(sdu)) => {
                let sdu = sdu.to_vec();
                self.to_control.push_back(ToControl::Control { conn, sdu });
            }
            Err(Refusal::BadMux) => {
                self.counters.bad_mux += 1;
                self.discards.note(Discard::Malformed, sdu);
            }
            Err(Refusal::BadLength(sdu)) => {
                self.counters.bad_length += 1;
                self.discards.note(Discard::BadLength, sdu);
            }
            Err(Refusal::Echo(sdu)) => {
                self.counters.echoes += 1;
                self.discards.note(Discard::NotForUs, sdu);
            }
            Err(Refusal::NotForUs(sdu)) => {
                self.counters.not_for_us += 1;
                self.discards.note(Discard::NotForUs, sdu);
            }
        }
    }

    /// The data frame of an SDU for the user, and the number of octets in front of the frame. `longest` is the length
    /// of the longest SDU with these headers.
    fn accept<'a>(
        &mut self,
        conn: ConnId,
        sdu: &'a [u8],
        longest: usize,
        now: Instant,
    ) -> Result<(DataFrame<'a>, usize), Refusal<'a>> {
        let length = sdu.len();
        let usage = self.connections.get_mut(&conn);
        let usage = usage.ok_or(Refusal::NoConnection)?;
        let sdu = match usage.mux {
            None => sdu,
            Some(elan_id) => match LlcSnap::decode(sdu) {
                Ok((LlcSnap::LaneData { elan_id: found }, data))
                    if found == elan_id && !is_control(data) =>
                {
                    data
                }
                // A flush request.
                Ok((LlcSnap::LnniControl { elan_id: found }, data))
                    if found == elan_id && is_control(data) =>
                {
                    data
                }
                Ok(_) | Err(_) => return Err(Refusal::BadMux),
            },
        };
        if is_control(sdu) {
            return Err(Refusal::Control(sdu));
        }
        usage.last = now;
        let data = DataFrame::decode(sdu).map_err(|_| Refusal::BadLength(sdu))?;
        let before = length - sdu.len();
        if longest.saturating_sub(before) > self.max_sdu.max(MIN_DATA_SDU) {
            return Err(Refusal::BadLength(sdu));
        }
        if data.lecid == self.lecid && self.lecid != 0 {
            return Err(Refusal::Echo(sdu));
        }
        let old = usage.heard.get(&data.source);
        let room = old.is_some() || usage.heard.len() < HEARD_MAX;
        if room && old.is_none_or(|at| now.since(*at) >= HEARD_AGAIN) {
            usage.heard.insert(data.source, now);
            let mac = data.source;
            self.to_control.push_back(ToControl::Heard { mac, conn });
        }
        let to = data.destination;
        let group = || self.groups.as_ref().is_none_or(|some| some.contains(&to));
        let ours = match to.is_group() {
            true => to == MacAddr::BROADCAST || group(),
            false => self.own.contains(&to),
        };
        if !ours && !self.promiscuous {
            return Err(Refusal::NotForUs(sdu));
        }
        Ok((data, length - data.frame.len()))
    }

    /// Handles what is due: idle connections, and queues whose quota is renewed.
    pub(super) fn timeout(&mut self, now: Instant) {
        if self.next.is_none_or(|at| at > now) {
            return;
        }
        for (conn, usage) in &mut self.connections {
            let Some(idle) = usage.idle else { continue };
            if usage.last + idle <= now {
                self.to_control.push_back(ToControl::Idle(*conn));
                usage.last = now; // The control part may decide to keep it.
            }
        }
        let waiting = |d: &&Destination| d.path == Path::Unresolved && !d.queue.is_empty();
        let due: Vec<MacAddr> = (self.destinations.iter())
            .filter(|(_, d)| waiting(d) && d.window_end <= now)
            .map(|(mac, _)| *mac)
            .collect();
        for mac in due {
            self.drain(mac, now);
        }
        let idle = self.connections.values();
        let idle = idle.filter_map(|usage| usage.idle.map(|idle| usage.last + idle));
        let queues = self.destinations.values().filter(waiting);
        self.next = idle.chain(queues.map(|d| d.window_end)).min();
    }

    fn wake(&mut self, at: Instant) {
        self.next = Some(self.next.map_or(at, |next| next.min(at)));
    }

    fn open(&mut self, conn: ConnId, idle: Option<Duration>, mux: Option<u32>, now: Instant) {
        let usage = self.connections.entry(conn).or_insert_with(|| Usage {
            last: now,
            idle: None,
            mux,
            heard: BTreeMap::new(),
        });
        usage.idle = idle;
        if let Some(idle) = idle {
            let at = usage.last + idle;
            self.wake(at.max(now + Duration::from_nanos(1)));
        }
    }

    fn close(&mut self, conn: ConnId) {
        self.connections.remove(&conn);
        if self.bus == Some(conn) {
            self.bus = None;
        }
        for destination in self.destinations.values_mut() {
            if destination.path == Path::Direct(conn) {
                destination.path = Path::Unresolved;
                destination.asked = false;
            }
            if destination.last.is_some_and(|(last, _)| last == conn) {
                destination.last = None;
            }
        }
    }

    fn switch(&mut self, mac: MacAddr, to: ConnId, fresh: Duration, now: Instant) {
        let Some(destination) = self.destinations.get_mut(&mac) else {
            self.to_control.push_back(ToControl::Unwanted(mac));
            return;
        };
        match destination.last {
            Some((via, last)) if via != to && last + fresh > now => {
                destination.path = Path::Held;
                let ago = now.since(last);
                self.to_control
                    .push_back(ToControl::MustFlush { mac, to, via, ago });
            }
            _ => {
                self.to_control.push_back(ToControl::Switched { mac, to });
                self.proceed(mac, to, now);
            }
        }
    }

    fn proceed(&mut self, mac: MacAddr, to: ConnId, now: Instant) {
        if let Some(destination) = self.destinations.get_mut(&mac) {
            destination.path = Path::Direct(to);
            self.drain(mac, now);
        }
    }

    /// Sends the waiting frames for `mac`, as far as path and quota allow.
    fn drain(&mut self, mac: MacAddr, now: Instant) {
        loop {
            let Some(destination) = self.destinations.get_mut(&mac) else {
                return;
            };
            if destination.queue.is_empty() {
                return;
            }
            match destination.path {
                Path::Held => return,
                Path::Direct(conn) => {
                    let Some(frame) = destination.queue.pop_front() else {
                        return;
                    };
                    destination.last = Some((conn, now));
                    self.send_direct(conn, &frame, now);
                }
                Path::Unresolved => {
                    if destination.window_end <= now {
                        destination.window_end = now + self.time;
                        destination.window_count = 0;
                    }
                    if destination.window_count >= self.count {
                        let at = destination.window_end;
                        self.wake(at);
                        return;
                    }
                    destination.window_count += 1;
                    destination.last = self.bus.map(|bus| (bus, now));
                    let Some(frame) = destination.queue.pop_front() else {
                        return;
                    };
                    self.send_bus(&frame, now);
                }
            }
        }
    }

    fn send_direct(&mut self, conn: ConnId, frame: &[u8], now: Instant) {
        self.counters.sent_direct += 1;
        self.send(conn, frame, now);
    }
    fn send_bus(&mut self, frame: &[u8], now: Instant) {
        let Some(bus) = self.bus else {
            self.counters.no_path += 1;
            self.discards.note(Discard::NotJoined, frame);
            return;
        };
        self.counters.sent_bus += 1;
        self.send(bus, frame, now);
    }
    fn send(&mut self, conn: ConnId, frame: &[u8], now: Instant) {
        let mut sdu = DataFrame::encode(self.lecid, frame);
        if let Some(usage) = self.connections.get_mut(&conn) {
            usage.last = now;
            if let Some(elan_id) = usage.mux {
                sdu = LlcSnap::LaneData { elan_id }.wrap(&sdu);
            }
        }
        let request = AtmRequest::Send { conn, sdu };
        self.out.push_back(Output::Atm(request));
    }

    /// Makes an entry for `mac`; if necessary, the entry without a path that was unused longest is replaced.
    fn make_room(&mut self, now: Instant, mac: MacAddr) -> bool {
        if self.destinations.len() >= self.limits.cache {
            let candidates = self.destinations.iter();
            let victim = candidates
                .filter(|(_, d)| d.path == Path::Unresolved && d.queue.is_empty())
                .min_by_key(|(_, d)| d.used)
                .map(|(mac, _)| *mac);
            let Some(victim) = victim else {
                return false;
            };
            self.destinations.remove(&victim);
        }
        let destination = Destination {
            path: Path::Unresolved,
            asked: false,
            window_end: now,
            window_count: 0,
            queue: VecDeque::new(),
            last: None,
            used: now,
        };
        self.destinations.insert(mac, destination);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_multiplexed_connection_carries_its_own_elan_only() {
        let own = MacAddr([2, 0, 0, 0, 0, 1]);
        let (elan, address) = (Default::default(), Default::default());
        let mut data = Forwarder::new(&LecConfig::new(elan, address, own));
        let now = Instant::ZERO;
        let (lecid, max_sdu, conn) = (5, 1516, ConnId(1));
        data.handle(ToData::Joined { lecid, max_sdu }, now);
        let (idle, mux) = (None, Some(7));
        data.handle(ToData::Open { conn, idle, mux }, now);
        let mut frame = own.0.to_vec();
        frame.extend([2, 0, 0, 0, 0, 9, 8, 0]);
        frame.resize(1514, 1);
        let plain = DataFrame::encode(9, &frame);
        let of = |elan_id| LlcSnap::LaneData { elan_id }.wrap(&plain);
        data.receive(conn, &of(7), now);
        assert_eq!((data.counters.delivered, data.counters.bad_mux), (1, 0));
        assert_eq!(data.out.pop_front(), Some(Output::Deliver(frame)));
        let control = LlcSnap::LaneData { elan_id: 7 }.wrap(&[0xff, 0, 1, 1, 0, 7]);
        let lnni = LlcSnap::LnniControl { elan_id: 7 }.wrap(&plain);
        for bad in [of(8), plain.clone(), control, lnni, of(7)[..11].to_vec()] {
            data.receive(conn, &bad, now);
        }
        assert_eq!((data.counters.delivered, data.counters.bad_mux), (1, 5));
    }
}
