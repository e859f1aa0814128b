//! Reports of the control part about its state, and how another control part continues from that state. See
//! [`super::split`].

use super::arp::{Asking, Entry, Path};
use super::conns::Conn;
use super::control::{Control, Link, Role};
use super::split::{FromLecd, KnownConn, KnownEntry, Standing};
use super::state::{Joining, Member, Phase, State};
use super::{ArpStatus, ControlCounters, Input};
use crate::split::FromDaemon;
use crate::{ConnId, Duration, Instant, Trace};
use aerostat_wire::MacAddr;
use std::collections::{BTreeMap, VecDeque};

/// An entry that only became younger is reported again if it was verified this long after the last report.
const VERIFIED_AGAIN: Duration = Duration::from_secs(30);

impl KnownConn {
    const fn of(conn: ConnId, known: &Conn) -> Self {
        Self {
            conn,
            role: known.carries(),
            peer: known.peer(),
            outgoing: known.outgoing(),
            vc: known.vc(),
            mux: known.info.mux,
            traffic: known.info.traffic,
            ready: known.info.ready,
        }
    }
    const fn known(&self, now: Instant) -> Conn {
        let link = Link {
            mux: self.mux,
            traffic: self.traffic,
            ready: self.ready,
        };
        Conn::new((self.peer, self.role), self.outgoing, self.vc, link, now)
    }
}

impl KnownEntry {
    fn of(mac: MacAddr, entry: &Entry, now: Instant) -> Self {
        Self {
            mac,
            atm: entry.atm,
            status: entry.status(),
            remote: entry.remote,
            from_data: entry.from_data,
            associated: entry.associated,
            tlvs: entry.tlvs.clone(),
            age: now.since(entry.verified),
        }
    }
    /// True if the row has the state of `entry`, except for its age.
    fn describes(&self, entry: &Entry) -> bool {
        self.atm == entry.atm
            && self.status == entry.status()
            && self.remote == entry.remote
            && self.from_data == entry.from_data
            && self.associated == entry.associated
            && self.tlvs == entry.tlvs
    }
    /// The entry of a control part that continues from this row.
    fn taken_over(self, now: Instant) -> Entry {
        let mut entry = Entry::new(now.before(self.age));
        entry.path = match self.status {
            ArpStatus::ForwardDirect => Path::Direct(ConnId(0)),
            ArpStatus::FlushPending => Path::Switching,
            ArpStatus::VcPending => Path::Calling,
            ArpStatus::ArpPending | ArpStatus::Unknown => Path::None,
        };
        let asking = Asking {
            transaction: 0,
            tries: 0,
            at: now,
        };
        entry.asking = (self.status == ArpStatus::ArpPending).then_some(asking);
        entry.wanted = matches!(
            self.status,
            ArpStatus::ForwardDirect | ArpStatus::FlushPending
        );
        entry.atm = self.atm;
        entry.remote = self.remote;
        entry.from_data = self.from_data;
        entry.associated = self.associated;
        entry.tlvs = self.tlvs;
        entry
    }
}

/// The state that was reported, so that only changes are reported.
#[derive(Debug, Default)]
pub(super) struct Told {
    standing: Option<Box<Standing>>,
    conns: BTreeMap<ConnId, KnownConn>,
    entries: BTreeMap<MacAddr, (KnownEntry, Instant)>,
}

impl Told {
    /// Reports the changes of `control`.
    pub(super) fn tell(
        &mut self,
        control: &mut Control,
        now: Instant,
        say: &mut impl FnMut(FromLecd),
    ) {
        let counted = core::mem::take(&mut control.counters);
        if counted != ControlCounters::default() {
            say(FromLecd::Counted(counted));
        }
        // What is gone comes first, so that the other half has room for what is new.
        let changed = control.conns.changes();
        for conn in &changed {
            if control.conns.get(*conn).is_none() && self.conns.remove(conn).is_some() {
                say(FromLecd::ConnGone(*conn));
            }
        }
        for conn in changed {
            let Some(known) = control.conns.get(conn) else {
                continue;
            };
            let row = KnownConn::of(conn, known);
            if self.conns.insert(conn, row) != Some(row) {
                say(FromLecd::Conn(row));
            }
        }
        let changed = control.cache.changes();
        for mac in &changed {
            if !control.cache.contains_key(mac) && self.entries.remove(mac).is_some() {
                say(FromLecd::EntryGone(*mac));
            }
        }
        for mac in changed {
            let Some(entry) = control.cache.get(&mac) else {
                continue;
            };
            let told = self.entries.get(&mac);
            let current = told.is_some_and(|(row, verified)| {
                row.describes(entry) && entry.verified.since(*verified) < VERIFIED_AGAIN
            });
            if !current {
                let row = KnownEntry::of(mac, entry, now);
                self.entries.insert(mac, (row.clone(), entry.verified));
                say(FromLecd::Entry(row));
            }
        }
        let standing = Box::new(control.standing());
        if self.standing.as_ref() != Some(&standing) {
            self.standing = Some(standing.clone());
            say(FromLecd::Standing(standing));
        }
    }
}

impl Control {
    /// The state of the client.
    pub(super) fn standing(&self) -> Standing {
        Standing {
            state: self.state.name(),
            lecid: self.state.lecid(),
            v2: self.state.v2(),
            elan: self.elan,
            elan_id: self.state.elan_id(),
            lan_type: self.lan_type,
            max_frame: self.max_frame,
            les: self.state.les(),
            bus: self.state.bus(),
            topology_change: self.topology_change,
            lecs_tlvs: self.state.lecs_tlvs().to_vec(),
            groups: self.groups.standing(),
            params: self.params.clone(),
        }
    }

    /// Takes over this state as a member with this control direct connection; nothing else changes.
    fn stand(&mut self, at: Standing, control_direct: ConnId) {
        let Standing {
            state: _,
            lecid,
            v2,
            elan,
            elan_id,
            lan_type,
            max_frame,
            les,
            bus,
            topology_change,
            lecs_tlvs,
            groups,
            params,
        } = at;
        let joining = Joining {
            les,
            control_direct,
            lecs_tlvs,
            told: Vec::new(),
        };
        let member = Member {
            phase: Phase::Operational,
            joined: true,
            bus,
            ..Member::admitted(joining, lecid, v2, elan_id)
        };
        self.state = State::Member(Box::new(member));
        (self.elan, self.lan_type, self.max_frame) = (elan, lan_type, max_frame);
        self.topology_change = topology_change;
        self.groups.stand(groups, &self.config.limits);
        self.params = params;
        self.cache.touch_all();
    }

    /// All connections and entries, as they would be reported.
    pub(super) fn rows(&self, now: Instant) -> (Vec<KnownConn>, Vec<KnownEntry>) {
        let conns = self.conns.iter();
        let conns = conns.map(|(conn, known)| KnownConn::of(conn, known));
        let entries = self.cache.iter();
        let entries = entries.map(|(mac, entry)| KnownEntry::of(*mac, entry, now));
        (conns.collect(), entries.collect())
    }

    /// Continues as a member where another control part was a member. Its connections are up, and the data plane knows
    /// them. Without a control direct connection there is no member to continue: the client joins anew.
    pub(super) fn adopt(
        &mut self,
        standing: Standing,
        conns: Vec<KnownConn>,
        entries: Vec<KnownEntry>,
        now: Instant,
    ) {
        let mut control = conns.iter().rev();
        let control = control.find(|row| row.role == Role::ControlDirect);
        let Some(control) = control.map(|row| row.conn) else {
            return self.handle(Input::Start, now);
        };
        self.stand(standing, control);
        for row in conns {
            self.conns.adopt(row.conn, row.known(now));
            if row.role == Role::DataDirect && !row.ready {
                let at = now + self.params.connection_completion;
                self.conns.query_at(row.conn, Some(at));
            } else if row.role == Role::MulticastSend
                && let Some(member) = self.state.member_mut()
            {
                member.multicast_send = Some(row.conn);
            }
        }
        let room = self.config.limits.cache;
        for row in entries.into_iter().take(room) {
            let mac = row.mac;
            let mut entry = row.taken_over(now);
            // `order_path` finds out below whether there is a path.
            (entry.path, entry.asking) = (Path::None, None);
            self.cache.insert(mac, entry);
        }
        for mac in self.cache.keys().copied().collect::<Vec<_>>() {
            self.order_path(mac, now);
        }
        if self.topology_change {
            self.start_topology_timer(now);
        }
        self.forward_lost(now);
        let lecid = self.state.lecid();
        let text = format!("goes on in ELAN {} as LECID {lecid}", self.elan);
        let trace = Trace::milestone("lane.adopted", text);
        self.trace(trace.with("elan", self.elan).with("lecid", lecid));
        // The previous control part may have died before it announced the TLVs.
        if self.state.v2() {
            self.announce(now);
        }
        self.reckon();
    }

    /// Sets the data plane to the state of this entry: to its path if there is a path, else to a request at the next
    /// frame.
    fn order_path(&mut self, mac: MacAddr, now: Instant) {
        let entry = self.cache.get(&mac);
        let has = entry.is_some_and(|entry| {
            entry.wanted && entry.atm.is_some_and(|atm| self.best(atm).is_some())
        });
        if has {
            self.connect_path(mac, now);
        } else {
            self.lose_path(mac);
        }
    }
}

/// Messages of one step, in the order in which they must be handled: requests and outputs for the user come first,
/// since the data plane's reaction to its messages comes after them.
pub(super) fn drain(control: &mut Control, out: &mut VecDeque<FromDaemon<FromLecd>>) {
    out.append(&mut control.out);
    while let Some(message) = control.to_data.pop_front() {
        out.push_back(FromDaemon::Message(FromLecd::Data(message)));
    }
}
