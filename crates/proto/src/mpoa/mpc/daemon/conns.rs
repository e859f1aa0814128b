//! Connections of the daemon: control connections with MPSs, shortcuts with other MPCs.

use super::super::api::{Bus, Numbers, tally};
use super::{Again, Conn, Daemon, Ending, Purpose};
use crate::mpoa::messages::{IngressInfo, ToKernel};
use crate::retry::Backoff;
use crate::{AtmEvent, AtmRequest, Cause, ConnId, Duration, Instant, Trace};
use aerostat_wire::nhrp::{self, Packet};
use aerostat_wire::{AtmAddress, Qos, Sap, ServiceCategory, Vc};

/// Shortcuts that one peer may open: one for best effort, and one for each flow with a QoS entry.
const SHORTCUTS_PER_PEER: usize = 64;

impl Daemon {
    /// 209: opens a shortcut unless one is being opened.
    pub(super) fn open_shortcut(
        &mut self,
        info: &IngressInfo,
        qos: Option<Qos>,
        numbers: &mut Numbers,
        bus: &mut Bus,
    ) {
        let flow = qos.map(|_| info.flow());
        let same = |c: &Conn| {
            let to = c.peer == info.egress && c.flow == flow;
            c.opened && !c.up && to && c.purpose == Purpose::Shortcut(qos)
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
        let new = Conn {
            purpose: Purpose::Shortcut(qos),
            peer: info.egress,
            opened: true,
            up: false,
            flow,
        };
        self.connect(new, self.config.data, traffic, numbers, bus);
    }

    pub(in crate::mpoa::mpc) fn shortcuts(&self) -> usize {
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
        new: Conn,
        calling: AtmAddress,
        qos: Qos,
        numbers: &mut Numbers,
        bus: &mut Bus,
    ) {
        let conn = numbers.conn(|id| self.conns.contains_key(&id));
        let called = new.peer;
        self.conns.insert(conn, new);
        let sap = Sap::LLC;
        bus.atm(AtmRequest::Connect {
            conn,
            calling,
            called,
            sap,
            qos,
            multipoint: false,
        });
    }

    /// Sends a packet to an MPS over any control connection; opens one if there is none.
    pub(in crate::mpoa::mpc) fn send(
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
        let waits = known.again.is_some_and(|again| again.at.is_some());
        if !opening && !waits {
            self.open_control(mps, numbers, bus);
        }
    }

    fn open_control(&mut self, mps: AtmAddress, numbers: &mut Numbers, bus: &mut Bus) {
        let (from, qos) = (self.config.control, Qos::ubr(self.config.max_sdu));
        let new = Conn {
            purpose: Purpose::Control,
            peer: mps,
            opened: true,
            up: false,
            flow: None,
        };
        self.connect(new, from, qos, numbers, bus);
    }

    /// Calls the MPSs again whose wait is over.
    pub(super) fn call_again(&mut self, numbers: &mut Numbers, now: Instant, bus: &mut Bus) {
        let mut due = Vec::new();
        for (address, mps) in &mut self.mps {
            if let Some(again) = &mut mps.again
                && again.at.is_some_and(|at| at <= now)
            {
                again.at = None;
                due.push(*address);
            }
        }
        for mps in due {
            let mut conns = self.conns.values();
            // A call from the MPS may be under way.
            let called = conns.any(|c| c.purpose == Purpose::Control && c.peer == mps);
            if !called && self.controls() < self.config.limits.control {
                self.open_control(mps, numbers, bus);
            }
        }
    }

    /// A call to an MPS has failed. If the cause may pass by itself, the waiting packets stay for as long as requests
    /// are sent again (MPC-p5), and the next call is made soon, later as often as requests (MPC-p4). Returns true in
    /// this case.
    fn calls_again(&mut self, mps: AtmAddress, cause: Cause, now: Instant) -> bool {
        let (own, params) = (self.config.control, &self.params);
        let ended = self.ending != Ending::No || !cause.is_temporary();
        let Some(known) = self.mps.get_mut(&mps) else {
            return false;
        };
        let again = known.again.get_or_insert_with(|| Again {
            since: now,
            backoff: Backoff::of(&own),
            at: None,
        });
        if ended || now.since(again.since) >= params.retry_max || known.queue.is_empty() {
            known.again = None;
            return false;
        }
        let wait = again
            .backoff
            .wait(Some(cause), Duration::ZERO, params.initial_retry);
        again.at = Some(now + wait);
        true
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
                self.incoming(conn, caller, called, qos, bus);
            }
            AtmEvent::Connected { conn, vc } => self.connected(conn, vc, bus),
            AtmEvent::Released { conn, cause } => self.released(conn, cause, now, bus),
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
            // Unknown callers are accepted, as the call of an MPS may arrive before the answer to LE_ARP; but they do
            // not get all the room.
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
                flow: None,
            },
        );
        bus.atm(AtmRequest::Accept { conn });
    }

    fn connected(&mut self, conn: ConnId, vc: Vc, bus: &mut Bus) {
        let Some(known) = self.conns.get_mut(&conn) else {
            bus.counters.stray_events += 1;
            return;
        };
        known.up = true;
        let (peer, opened, flow) = (known.peer, known.opened, known.flow);
        match known.purpose {
            Purpose::Shortcut(qos) => {
                bus.kernel(ToKernel::Attach {
                    conn,
                    peer,
                    vc: Some(vc),
                    qos,
                    opened,
                    flow,
                });
            }
            Purpose::Control => {
                let text = format!("control connection with {peer} is up on {vc}");
                let trace = Trace::detail("mpc.control.up", text);
                bus.trace(trace.with("peer", peer).with("vc", vc));
                let waiting = self.mps.get_mut(&peer).map(|mps| {
                    mps.again = None;
                    core::mem::take(&mut mps.queue)
                });
                for packet in waiting.unwrap_or_default() {
                    bus.atm(AtmRequest::Send {
                        conn,
                        sdu: packet.to_sdu(),
                    });
                }
            }
        }
    }

    fn released(&mut self, conn: ConnId, cause: Cause, now: Instant, bus: &mut Bus) {
        let Some(gone) = self.conns.remove(&conn) else {
            bus.counters.stray_events += 1;
            return;
        };
        match gone.purpose {
            Purpose::Shortcut(qos) if gone.opened && !gone.up => {
                bus.kernel(ToKernel::OpenFailed {
                    egress: gone.peer,
                    qos,
                    flow: gone.flow,
                    cause,
                });
            }
            Purpose::Shortcut(_) => bus.kernel(ToKernel::Detach { conn, cause }),
            Purpose::Control => {
                let text = format!("control connection with {} is down: {cause}", gone.peer);
                bus.trace(Trace::detail("mpc.control.down", text).with("peer", gone.peer));
                if !gone.up && gone.opened && self.calls_again(gone.peer, cause, now) {
                    return;
                }
                // The retries of the waiting requests will open the next connection.
                if let Some(mps) = self.mps.get_mut(&gone.peer) {
                    bus.counters.control_dropped += mps.queue.len() as u64;
                    mps.queue.clear();
                    mps.again = None;
                }
            }
        }
    }

    /// Closes the control connections to a silent MPS: the next request uses a new connection.
    pub(super) fn close_control(&mut self, mps: AtmAddress, bus: &mut Bus) {
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
            known.again = None;
        }
    }

    /// Sends an Error Indication about a packet, once.
    pub(in crate::mpoa::mpc) fn send_error(
        &self,
        conn: ConnId,
        offending: &[u8],
        code: u16,
        bus: &mut Bus,
    ) {
        let own = self.own_ip.map_or(nhrp::ProtocolAddress::NONE, Into::into);
        let packet = Packet::error_about(offending, code, 0, self.config.control, own);
        if let Some(packet) = packet {
            tally(&mut bus.counters.errors_sent, code);
            bus.atm(AtmRequest::Send {
                conn,
                sdu: packet.to_sdu(),
            });
        }
    }
}
