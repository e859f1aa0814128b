//! Connections of the daemon: control connections with MPSs, shortcuts with other MPCs.

use super::super::api::{Bus, Numbers};
use super::{Carries, Conn, Daemon, Ending, Link, beyond_best_effort};
use crate::atm::within;
use crate::mpoa::messages::{IngressInfo, ToKernel};
use crate::mpoa::params::SHORTCUT_SDU;
use crate::nhrp::Fault;
use crate::retry::Backoff;
use crate::vcc::{Bounds, Call, Offered};
use crate::{AtmEvent, AtmRequest, Cause, ConnId, Instant, Trace};
use aerostat_wire::nhrp::{self, Packet};
use aerostat_wire::{AtmAddress, Qos, Sap, Vc};

/// Shortcuts that one peer may open: one for best effort, and one for each flow with a QoS entry.
const SHORTCUTS_PER_PEER: usize = 64;

impl Daemon {
    /// 209: opens a shortcut unless one is being opened.
    pub(super) fn open_shortcut(
        &mut self,
        info: &IngressInfo,
        qos: Option<Qos>,
        now: Instant,
        bus: &mut Bus,
    ) {
        let flow = qos.map(|_| info.flow());
        let same = |c: &Conn| {
            let calling = c.outgoing() && !c.is_open() && c.carries() == Carries::Shortcut;
            calling && (c.info.flow, c.info.qos) == (flow, qos)
        };
        let mut there = self.conns.with(info.egress);
        if self.ending != Ending::No || there.any(|(_, c)| same(c)) {
            return;
        }
        drop(there);
        if self.conns.count(Carries::Shortcut) >= self.config.limits.shortcuts {
            bus.counters.connection_limit += 1;
            let cause = Cause::RESOURCES;
            return bus.kernel(ToKernel::OpenFailed {
                egress: info.egress,
                qos,
                flow,
                cause,
            });
        }
        let sdu = self.sdu_for(info.mtu);
        let mut traffic = qos.unwrap_or(Qos::ubr(sdu));
        for way in [&mut traffic.tx, &mut traffic.rx] {
            if way.category.is_some() && way.max_sdu == 0 {
                way.max_sdu = sdu;
            }
        }
        let call = Call {
            calling: self.config.data,
            called: info.egress,
            sap: Sap::LLC,
            qos: traffic,
        };
        let link = Link { qos, flow };
        let (_, connect) = self.conns.dial(call, Carries::Shortcut, link, now);
        bus.atm(connect);
    }

    /// Sends a packet to an MPS over any control connection; opens a connection if it has none yet.
    pub(in crate::mpoa::mpc) fn send(
        &mut self,
        mps: AtmAddress,
        packet: &Packet,
        now: Instant,
        bus: &mut Bus,
    ) {
        let known = self.mps.contains_key(&mps);
        let bounds = Bounds {
            held: if known { self.config.limits.queue } else { 0 },
            dial: self.may_call_control(),
        };
        let to = (mps, Carries::Control);
        let mut packet = packet.clone();
        self.config.keys.sign(mps, &mut packet);
        match self.conns.offer(to, packet.to_sdu(), bounds, now) {
            Offered::Send(send) => bus.atm(send),
            Offered::Held => {}
            Offered::Dial => self.open_control(mps, now, bus),
            Offered::Full => bus.counters.control_dropped += 1,
        }
    }

    fn may_call_control(&self) -> bool {
        self.conns.count(Carries::Control) < self.config.limits.control
    }

    fn call_of(&self, mps: AtmAddress) -> Call {
        Call {
            calling: self.config.control,
            called: mps,
            sap: Sap::LLC,
            qos: Qos::ubr(self.config.max_sdu),
        }
    }

    fn open_control(&mut self, mps: AtmAddress, now: Instant, bus: &mut Bus) {
        let call = self.call_of(mps);
        let (_, connect) = (self.conns).dial(call, Carries::Control, Link::default(), now);
        bus.atm(connect);
    }

    /// Calls the MPSs again whose wait is over.
    pub(super) fn call_again(&mut self, now: Instant, bus: &mut Bus) {
        for conn in self.conns.calls_due(now) {
            let Some(mps) = self.conns.get(conn).map(Conn::peer) else {
                continue;
            };
            let control = |c: &Conn| c.carries() == Carries::Control;
            let mut there = self.conns.with(mps);
            let other = there.any(|(id, c)| id != conn && control(c));
            drop(there);
            if other {
                // A call from the MPS is under way, and takes what waits.
                self.conns.remove(conn);
            } else {
                bus.atm(self.call_of(mps).request(conn));
            }
        }
    }

    /// A call to an MPS has failed. If the cause may pass by itself, the waiting packets stay for as long as requests
    /// are sent again (MPC-p5), and the next call is made soon, later as often as requests (MPC-p4). Returns true in
    /// this case.
    fn calls_again(&mut self, conn: ConnId, mps: AtmAddress, cause: Cause, now: Instant) -> bool {
        let to = (mps, Carries::Control);
        let limit = self.params.retry_max;
        let fresh = |since: Instant| now.since(since) < limit;
        let passes = self.ending == Ending::No && cause.is_temporary();
        if !passes || !self.conns.waits_since(to).is_some_and(fresh) {
            return false;
        }
        let backoff = Backoff::of(&self.config.control);
        let most = self.params.initial_retry;
        self.conns.call_later(conn, backoff, (cause, most), now)
    }

    /// An event of the ATM service other than data on an attached shortcut.
    pub(in crate::mpoa::mpc) fn atm(
        &mut self,
        event: AtmEvent<&[u8]>,
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
                self.incoming(conn, caller, (called, qos), now, bus);
            }
            AtmEvent::Connected { conn, vc, .. } => self.connected(conn, vc, now, bus),
            AtmEvent::Released { conn, cause } => self.released(conn, cause, now, bus),
            AtmEvent::Received { conn, sdu } => match self.conns.get(conn).map(Conn::carries) {
                Some(Carries::Control) => self.on_control(conn, sdu, numbers, now, bus),
                Some(Carries::Shortcut) | None => bus.counters.stray_events += 1,
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
        (called, qos): (AtmAddress, Qos),
        now: Instant,
        bus: &mut Bus,
    ) {
        let refuse = |cause| AtmRequest::Release { conn, cause };
        let (Some(peer), Ending::No) = (calling, self.ending) else {
            return bus.atm(refuse(Cause::REJECTED));
        };
        let limits = &self.config.limits;
        let controls = self.conns.count(Carries::Control);
        let mut link = Link::default();
        let (carries, full) = if called == self.config.data {
            link.qos = beyond_best_effort(&qos);
            let with = self.conns.with(peer);
            let data = with.filter(|(_, c)| c.carries() == Carries::Shortcut);
            let hog = data.count() >= SHORTCUTS_PER_PEER;
            let full = self.conns.count(Carries::Shortcut) >= limits.shortcuts;
            (Carries::Shortcut, hog || full)
        } else if called == self.config.control {
            // Unknown callers are accepted, as the call of an MPS may arrive before the answer to LE_ARP; but they do
            // not get all the room.
            let known = self.mps.contains_key(&peer);
            let room = if known {
                limits.control
            } else {
                limits.control / 2
            };
            (Carries::Control, controls >= room)
        } else {
            return bus.atm(refuse(Cause::INCOMPATIBLE));
        };
        if full {
            bus.counters.connection_limit += 1;
            return bus.atm(refuse(Cause::RESOURCES));
        }
        let longest = match carries {
            Carries::Shortcut => SHORTCUT_SDU,
            Carries::Control => self.config.max_sdu,
        };
        let terms = within(&qos, longest);
        self.conns.accept(conn, peer, carries, link, now);
        bus.atm(AtmRequest::Accept { conn, terms });
    }

    fn connected(&mut self, conn: ConnId, vc: Vc, now: Instant, bus: &mut Bus) {
        let Some((known, sends)) = self.conns.opened(conn, vc, now) else {
            bus.counters.stray_events += 1;
            return;
        };
        let (peer, opened) = (known.peer(), known.outgoing());
        let Link { qos, flow } = known.info;
        match known.carries() {
            Carries::Shortcut => {
                bus.kernel(ToKernel::Attach {
                    conn,
                    peer,
                    vc: Some(vc),
                    qos,
                    opened,
                    flow,
                });
            }
            Carries::Control => {
                let text = format!("control connection with {peer} is up on {vc}");
                let trace = Trace::detail("mpc.control.up", text);
                bus.trace(trace.with("peer", peer).with("vc", vc));
                for send in sends {
                    bus.atm(send);
                }
            }
        }
    }

    fn released(&mut self, conn: ConnId, cause: Cause, now: Instant, bus: &mut Bus) {
        let Some(gone) = self.conns.get(conn) else {
            bus.counters.stray_events += 1;
            return;
        };
        let (peer, Link { qos, flow }) = (gone.peer(), gone.info);
        let failed = gone.outgoing() && !gone.is_open();
        let carries = gone.carries();
        if carries == Carries::Shortcut {
            self.conns.remove(conn);
        }
        match carries {
            Carries::Shortcut if failed => {
                bus.kernel(ToKernel::OpenFailed {
                    egress: peer,
                    qos,
                    flow,
                    cause,
                });
            }
            Carries::Shortcut => bus.kernel(ToKernel::Detach { conn, cause }),
            Carries::Control => {
                let text = format!("control connection with {peer} is down: {cause}");
                bus.trace(Trace::detail("mpc.control.down", text).with("peer", peer));
                if !(failed && self.calls_again(conn, peer, cause, now)) {
                    self.conns.remove(conn);
                    self.forget_waiting(peer, bus);
                }
            }
        }
    }

    /// Closes the control connections to a silent MPS: the next request uses a new connection.
    pub(super) fn close_control(&mut self, mps: AtmAddress, bus: &mut Bus) {
        let ours = |c: &Conn| c.carries() == Carries::Control && c.outgoing();
        let ours = self.conns.with(mps).filter(|(_, c)| ours(c));
        for conn in ours.map(|(conn, _)| conn).collect::<Vec<_>>() {
            if let Some(release) = self.conns.release(conn) {
                bus.atm(release);
            }
        }
        self.forget_waiting(mps, bus);
    }

    /// Drops what waits for an MPS, unless a connection is under way: the retries of the waiting requests will open the
    /// next connection.
    fn forget_waiting(&mut self, mps: AtmAddress, bus: &mut Bus) {
        let dropped = self.conns.forget((mps, Carries::Control));
        bus.counters.control_dropped += dropped as u64;
    }

    /// Sends an Error Indication about a packet, once.
    pub(in crate::mpoa::mpc) fn send_error(
        &self,
        conn: ConnId,
        offending: &[u8],
        fault: Fault,
        bus: &mut Bus,
    ) {
        let own = self.own.v4.map_or(nhrp::ProtocolAddress::NONE, Into::into);
        bus.refuse(conn, offending, fault, (self.config.control, own));
    }
}
