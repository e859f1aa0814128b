//! Broadcast and unknown server: copies group frames to all members of the ELAN, and sends unicast frames to their
//! owner.
//!
//! **Objects and owners.** [`Bus`] owns a multicast send connection per client and the multicast forward connection.
//! The owner of the LES tells it who is a member ([`Input::Member`]); other callers cannot connect.
//!
//! **States of a client**: member (may call), connected (its leaf of multicast forward is being added or is up).
//!
//! **Timers**: retry of a refused leaf.
//!
//! **Paths of a frame.** A frame keeps its LECID. Group frames go to all members, the sender included: clients drop
//! their own echo. A unicast frame for an address that a client registered goes to that client alone, on its multicast
//! send connection (`owners.rs`): the standard lets a BUS use either connection, and a client accepts frames on both.
//! The path depends on the receiving client alone. A client that must register all its unicast addresses gets unicast
//! frames directly. A proxy, and a client that joined without an address, gets them as all members do, because the BUS
//! does not know all their addresses. An LE_FLUSH_REQUEST names an ATM address and no LAN destination, so it takes the
//! path of the data frames for that client and cannot overtake them. Frames for clients without a connection go to all
//! members. Frames wait in the host's queues, not in the BUS; nothing discards them for their age (S5,
//! [`super::ServerParams::max_frame_age`]).
//!
//! **Quota**. The BUS accepts from one end system [`super::Quotas::broadcast`] broadcast frames a second,
//! [`super::Quotas::unknown`] unknown and flush frames, and [`super::Quotas::multicast`]
//! multicast frames (`quota.rs`); further frames are dropped, counted and traced. The standard leaves open whether the
//! BUS limits its clients.
//!
//! **Standards**: LUNI 2.0 clauses 4.5 and 5.5.
//!
//! **Selective multicast** (`groups.rs`). The BUS is also the selective multicast server of its ELAN. A client that
//! registers the groups that it wants gets the frames of these groups, broadcast and unknown unicast; the other clients
//! get all frames. For this there are further multicast forward connections: one to all clients that did not choose
//! groups, and one for each group that a client registered. A frame of a group goes on these two connections; while one
//! of the two does not reach all its clients, the frame goes to all.
//!
//! **Not implemented**: a multicast forward connection to proxies alone, LNNI.
//!
//! **Deviations**: a data frame whose LECID is neither 0 nor the sender's own is dropped and counted. A frame for an
//! address that a client registers while the address is already in use can overtake a frame that went to all members
//! just before.

mod groups;
mod owners;

use super::quota::{Quota, Verdict};
use super::tree::{Tree, TreeEvent};
use super::{Member, ServerParams};
use crate::atm::within;
use crate::discard::{Discard, Discards};
use crate::{AtmEvent, AtmRequest, Cause, ConnId, Instant, Machine, Trace};
use aerostat_wire::lane::{Control, DataFrame, ElanName, MaxFrameSize, OpCode, is_control};
use aerostat_wire::{AtmAddress, MacAddr, Qos, Sap, Vc};
use core::convert::Infallible;
use groups::Groups;
use owners::Owners;
use std::collections::{BTreeMap, VecDeque};

crate::split_record! {
    /// Configuration of a BUS before its start.
    #[derive(Clone, Debug, PartialEq)]
    pub struct BusConfig {
        /// Name of the ELAN, for display.
        pub elan: ElanName,
        /// S6: own ATM address.
        pub address: AtmAddress,
        /// S3.
        pub max_frame: MaxFrameSize,
        /// Variables and bounds.
        pub params: ServerParams,
    }
}

impl BusConfig {
    /// A BUS for 1516-octet frames.
    #[must_use]
    pub fn new(elan: ElanName, address: AtmAddress) -> Self {
        Self {
            elan,
            address,
            max_frame: MaxFrameSize::S1516,
            params: ServerParams::default(),
        }
    }
}

/// Inputs of a BUS.
#[derive(Clone, Debug)]
pub enum Input<'a> {
    /// Starts to serve.
    Start,
    /// Release everything and stop.
    Stop,
    /// From the ATM service.
    Atm(AtmEvent<&'a [u8]>),
    /// The LES reports a member: fields of [`super::les::Output::Member`].
    Member {
        /// ATM address of the client.
        address: AtmAddress,
        /// The client's data if it joined or its data changed; `None` if it left.
        member: Option<Member>,
    },
}

/// Outputs of a BUS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// For the ATM service.
    Atm(AtmRequest),
    /// Multicast forward reaches a client, because each switch on the path has its leaf; or no longer reaches it.
    Reaches {
        /// ATM address of the client.
        address: AtmAddress,
        /// True if the client is reached.
        reached: bool,
    },
    /// An observation.
    Trace(Trace),
}

crate::counters! {
    /// Counters of a BUS.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct BusCounters {
        /// Clients and groups beyond those that a report of a server in a process of its own can show.
        pub not_shown: u64,
        /// Group frames copied to all.
        pub group: u64,
        /// Of these, the frames that went only to the clients that want them.
        pub selective: u64,
        /// Unicast frames.
        pub unicast: u64,
        /// Flush requests.
        pub flushes: u64,
        /// Of the unicast frames and flush requests, those that went only to the destination's owner.
        pub directed: u64,
        /// Octets of data frames received.
        pub octets: u64,
        /// Frames with another client's LECID, and control frames that do not belong here.
        pub forged: u64,
        /// Frames too short or too long.
        pub bad_length: u64,
        /// Calls refused: the caller is no member, has a connection already, or a bound is reached.
        pub calls_refused: u64,
        /// Broadcast frames dropped because their sender had used up its quota.
        pub over_broadcast: u64,
        /// Frames for unknown destinations and flush requests that were dropped for the same reason.
        pub over_unknown: u64,
        /// Multicast frames that were dropped for the same reason.
        pub over_multicast: u64,
    }
}

struct Client {
    address: AtmAddress,
    lecid: u16,
    vc: Option<Vc>,
}

/// A broadcast and unknown server.
pub struct Bus {
    config: BusConfig,
    running: bool,
    members: BTreeMap<AtmAddress, Member>,
    owners: Owners,
    clients: BTreeMap<ConnId, Client>,
    /// Connections of the clients, by address.
    by_address: BTreeMap<AtmAddress, ConnId>,
    /// Members that want frames of some groups only.
    selective: usize,
    broadcast: Quota,
    unknown: Quota,
    multicast: Quota,
    /// Multicast forward to all.
    tree: Tree,
    /// Multicast forward by group.
    groups: Groups,
    deadline: Option<Instant>,
    counters: BusCounters,
    discards: Discards,
    out: VecDeque<Output>,
}

crate::split_record! {
    /// One row of `inspect bus`.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct BusRow {
        /// LECID.
        pub lecid: u16,
        /// ATM address.
        pub address: AtmAddress,
        /// Label of multicast send.
        pub vc: Option<Vc>,
        /// Multicast forward reaches the client.
        pub forward: bool,
        /// The client is reached by a point-to-point copy of its own.
        pub copy: bool,
        /// Frames of its end system dropped because they exceeded a quota.
        pub dropped: u64,
    }
}

crate::split_record! {
    /// A BUS, seen from outside.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct BusSnapshot {
        /// Name of the ELAN.
        pub elan: ElanName,
        /// Own address.
        pub address: AtmAddress,
        /// Members that the LES named.
        pub members: usize,
        /// Connected clients.
        pub clients: Vec<BusRow>,
        /// Groups that only some clients want, with the number of these clients.
        pub groups: Vec<(MacAddr, usize)>,
        /// Counters.
        pub counters: BusCounters,
    }
}

impl Bus {
    /// A BUS that does not serve yet.
    #[must_use]
    pub fn new(config: BusConfig) -> Self {
        let sdu = config.max_frame.sdu();
        let sap = Sap::LANE_MULTICAST_ETHERNET;
        let params = &config.params;
        let broadcast = Quota::new(params.quota.broadcast, params.clients);
        let unknown = Quota::new(params.quota.unknown, params.clients);
        let multicast = Quota::new(params.quota.multicast, params.clients);
        Self {
            tree: Tree::new(config.address, sap, sdu, &config.params),
            groups: Groups::new(config.address, sdu, &config.params),
            deadline: None,
            running: false,
            members: BTreeMap::new(),
            owners: Owners::new(config.params.registrations),
            clients: BTreeMap::new(),
            by_address: BTreeMap::new(),
            selective: 0,
            broadcast,
            unknown,
            multicast,
            counters: BusCounters::default(),
            discards: Discards::default(),
            out: VecDeque::new(),
            config,
        }
    }
    /// The next frame that was discarded.
    pub fn take_discard(&mut self) -> Option<(Discard, Vec<u8>)> {
        self.discards.take()
    }
    /// The state of the BUS for display.
    #[must_use]
    pub fn snapshot(&self) -> BusSnapshot {
        let clients = self.clients.values().map(|client| BusRow {
            lecid: client.lecid,
            address: client.address,
            vc: client.vc,
            forward: self.tree.reaches(client.address),
            copy: self.tree.copies(client.address),
            dropped: [&self.broadcast, &self.unknown, &self.multicast]
                .map(|quota| quota.dropped(client.address))
                .iter()
                .sum(),
        });
        BusSnapshot {
            elan: self.config.elan,
            address: self.config.address,
            members: self.members.len(),
            clients: clients.collect(),
            groups: self.groups.rows(),
            counters: self.counters,
        }
    }

    fn tell_reached(&mut self, address: AtmAddress, reached: bool) {
        self.out.push_back(Output::Reaches { address, reached });
    }

    fn start(&mut self) {
        if !core::mem::replace(&mut self.running, true) {
            self.request(AtmRequest::listen(
                self.config.address,
                Sap::LANE_MULTICAST_ETHERNET,
                u16::MAX,
            ));
        }
    }

    fn stop(&mut self, now: Instant) {
        if !core::mem::replace(&mut self.running, false) {
            return;
        }
        for conn in self.clients.keys().copied().collect::<Vec<_>>() {
            self.drop_client(conn, true, now);
        }
        self.tree.clear(now);
        self.members.clear();
        self.owners.clear();
        self.selective = 0;
        self.plan(now);
        self.request(AtmRequest::Unlisten {
            address: self.config.address,
            sap: Sap::LANE_MULTICAST_ETHERNET,
        });
    }

    fn joined(&mut self, address: AtmAddress, member: Member, now: Instant) {
        let known = self.members.contains_key(&address);
        if known || self.members.len() < self.config.params.clients {
            if let Some(conn) = self.conn_of(address)
                && let Some(client) = self.clients.get_mut(&conn)
            {
                client.lecid = member.lecid;
            }
            self.selective += usize::from(member.groups.is_some());
            let before = self.members.get(&address);
            self.owners.change(address, before, Some(&member));
            let before = self.members.insert(address, member);
            self.forget_choice(before.as_ref());
        }
        self.plan(now);
    }

    fn left(&mut self, address: AtmAddress, now: Instant) {
        let before = self.members.remove(&address);
        self.owners.change(address, before.as_ref(), None);
        self.forget_choice(before.as_ref());
        if let Some(conn) = self.conn_of(address) {
            self.drop_client(conn, true, now);
        }
    }

    fn conn_of(&self, address: AtmAddress) -> Option<ConnId> {
        self.by_address.get(&address).copied()
    }

    fn forget_choice(&mut self, gone: Option<&Member>) {
        self.selective -= usize::from(gone.is_some_and(|member| member.groups.is_some()));
    }

    fn atm(&mut self, event: AtmEvent<&[u8]>, now: Instant) {
        match event {
            AtmEvent::Incoming {
                conn,
                calling,
                sap,
                qos,
                ..
            } => self.incoming((conn, &qos), calling, sap),
            AtmEvent::Received { conn, sdu } if self.clients.contains_key(&conn) => {
                self.sdu(conn, sdu, now);
            }
            AtmEvent::Connected { conn, vc, .. } if self.clients.contains_key(&conn) => {
                if let Some(client) = self.clients.get_mut(&conn) {
                    client.vc = Some(vc);
                    let address = client.address;
                    self.tree.add(address, now);
                    self.plan(now);
                }
            }
            AtmEvent::Released { conn, .. } if self.clients.contains_key(&conn) => {
                self.drop_client(conn, false, now);
            }
            other if !self.groups.handle(&other, now) => {
                self.tree.handle(&other, now);
            }
            _ => {}
        }
    }

    fn incoming(&mut self, (conn, qos): (ConnId, &Qos), calling: Option<AtmAddress>, sap: Sap) {
        let address = calling.unwrap_or_default();
        let fits = self.running && sap == Sap::LANE_MULTICAST_ETHERNET;
        let member = self.members.get(&address).map(|member| member.lecid);
        match member.filter(|_| fits && self.conn_of(address).is_none()) {
            Some(lecid) => {
                let vc = None;
                self.clients.insert(conn, Client { address, lecid, vc });
                self.by_address.insert(address, conn);
                let terms = within(qos, self.config.max_frame.sdu());
                self.request(AtmRequest::Accept { conn, terms });
            }
            None => {
                self.counters.calls_refused += 1;
                let cause = Cause::REJECTED;
                self.request(AtmRequest::Release { conn, cause });
            }
        }
    }

    fn drop_client(&mut self, conn: ConnId, release: bool, now: Instant) {
        let Some(client) = self.clients.remove(&conn) else {
            return;
        };
        if release {
            let cause = Cause::NORMAL;
            self.request(AtmRequest::Release { conn, cause });
        }
        self.by_address.remove(&client.address);
        if self.tree.reaches(client.address) {
            self.tell_reached(client.address, false);
        }
        self.tree.remove(client.address, now);
        self.plan(now);
    }

    /// Plans anew which client gets which frames. As long as no client chooses groups, all clients get all frames.
    fn plan(&mut self, now: Instant) {
        if self.selective == 0 && !self.groups.is_selective() {
            return;
        }
        let connected = self.clients.values().filter(|client| client.vc.is_some());
        let wants = connected.filter_map(|client| {
            let member = self.members.get(&client.address)?;
            Some((client.address, member.groups.as_deref()))
        });
        self.groups.plan(wants, now);
    }

    /// True if a frame is within the quota of its sender; `to` is `None` for a flush request.
    fn may_send(&mut self, sender: AtmAddress, to: Option<MacAddr>, now: Instant) -> bool {
        let counters = &mut self.counters;
        let (quota, counter, kind) = match to {
            Some(MacAddr::BROADCAST) => (
                &mut self.broadcast,
                &mut counters.over_broadcast,
                "broadcast",
            ),
            Some(to) if to.is_group() => (
                &mut self.multicast,
                &mut counters.over_multicast,
                "multicast",
            ),
            _ => (&mut self.unknown, &mut counters.over_unknown, "unknown"),
        };
        let verdict = quota.take(sender, now);
        if verdict == Verdict::Pass {
            return true;
        }
        *counter += 1;
        if verdict == Verdict::Tell {
            let text =
                format!("{sender} sends more {kind} frames than its quota: the rest is dropped");
            let trace = Trace::milestone("bus.over-quota", text).with("address", sender);
            self.out.push_back(Output::Trace(trace.with("kind", kind)));
        }
        false
    }

    fn sdu(&mut self, conn: ConnId, sdu: &[u8], now: Instant) {
        let client = self.clients.get(&conn);
        let (sender, lecid) = client.map_or((AtmAddress::ZERO, 0), |client| {
            (client.address, client.lecid)
        });
        if is_control(sdu) {
            let flushed = match Control::decode(sdu) {
                Ok(Control::Frame(frame)) if frame.op == OpCode::FLUSH && frame.lecid == lecid => {
                    frame.target_atm
                }
                Ok(_) | Err(_) => {
                    self.counters.forged += 1;
                    return;
                }
            };
            if self.may_send(sender, None, now) {
                self.counters.flushes += 1;
                self.pass_on(self.way_to(flushed), sdu);
            }
            return;
        }
        let Ok(data) = DataFrame::decode(sdu) else {
            self.counters.bad_length += 1;
            self.discards.note(Discard::BadLength, sdu);
            return;
        };
        if sdu.len() > self.config.max_frame.sdu().into() {
            self.counters.bad_length += 1;
            self.discards.note(Discard::BadLength, sdu);
        } else if data.lecid != lecid && data.lecid != 0 {
            self.counters.forged += 1;
            self.discards.note(Discard::Malformed, sdu);
        } else {
            if !self.may_send(sender, Some(data.destination), now) {
                self.discards.note(Discard::OverQuota, sdu);
                return;
            }
            self.counters.octets += sdu.len() as u64;
            if data.destination.is_group() {
                self.counters.group += 1;
                if self.groups.send(data.destination, sdu) {
                    self.counters.selective += 1;
                    return;
                }
                self.tree.send(sdu);
            } else {
                self.counters.unicast += 1;
                let owner = self.owners.of(data.destination);
                self.pass_on(owner.and_then(|owner| self.way_to(owner)), sdu);
            }
        }
    }

    /// The connection on which a client gets all its unicast frames and flush requests, if they are sent to it alone.
    fn way_to(&self, client: AtmAddress) -> Option<ConnId> {
        self.members.get(&client)?.macs.as_ref()?;
        let conn = self.conn_of(client)?;
        let up = self.clients.get(&conn)?.vc.is_some();
        up.then_some(conn)
    }

    /// Sends to one client, or to all.
    fn pass_on(&mut self, conn: Option<ConnId>, sdu: &[u8]) {
        match conn {
            Some(conn) => {
                self.counters.directed += 1;
                let sdu = sdu.to_vec();
                self.request(AtmRequest::Send { conn, sdu });
            }
            None => self.tree.send(sdu),
        }
    }

    fn request(&mut self, request: AtmRequest) {
        self.out.push_back(Output::Atm(request));
    }

    fn settle(&mut self, now: Instant) {
        loop {
            while let Some(request) = self.tree.out.pop_front() {
                self.out.push_back(Output::Atm(request));
            }
            while let Some(request) = self.groups.request() {
                self.out.push_back(Output::Atm(request));
            }
            let Some(event) = self.tree.events.pop_front() else {
                let next = [self.tree.next(), self.groups.next()];
                self.deadline = next.into_iter().flatten().min();
                return;
            };
            match event {
                TreeEvent::Up(address) => {
                    self.tell_reached(address, true);
                    let text = format!("multicast forward reaches {address}");
                    let trace = Trace::detail("bus.forward", text);
                    self.out
                        .push_back(Output::Trace(trace.with("address", address)));
                }
                // The client will call again, or leave.
                TreeEvent::Down(address) => {
                    self.tell_reached(address, false);
                    if let Some(conn) = self.conn_of(address) {
                        self.drop_client(conn, true, now);
                    }
                }
            }
        }
    }
}

impl Machine for Bus {
    type Input<'a> = Input<'a>;
    type Output = Output;
    type Refusal = Infallible;

    fn handle_input(&mut self, input: Input<'_>, now: Instant) -> Result<(), Infallible> {
        match input {
            Input::Start => self.start(),
            Input::Stop => self.stop(now),
            Input::Atm(event) => self.atm(event, now),
            Input::Member { address, member } => match member {
                Some(member) => self.joined(address, member, now),
                None => self.left(address, now),
            },
        }
        self.settle(now);
        Ok(())
    }
    fn handle_timeout(&mut self, now: Instant) {
        if self.deadline.is_some_and(|at| at <= now) {
            self.tree.timeout(now);
            self.groups.timeout(now);
            self.settle(now);
        }
    }
    fn poll_output(&mut self) -> Option<Output> {
        self.out.pop_front()
    }
    fn poll_timeout(&self) -> Option<Instant> {
        self.deadline
    }
}

crate::atm_user!(Bus {
    fn take_discard(&mut self) -> Option<(Discard, Vec<u8>)> {
        self.take_discard()
    }
});
