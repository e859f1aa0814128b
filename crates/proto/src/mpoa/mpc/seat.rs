//! The seat of the daemon beside its data plane.
//!
//! The client accepts from the daemon only messages about the daemon's own objects: its two addresses, and its
//! connections, as many of each kind as the limits allow. The client does not wait for the daemon in two cases: it
//! takes packets on an accepted call before the daemon learns that the call is up, and it forgets a shortcut that is
//! released.

use super::api::{Bus, Output};
use super::daemon::beyond_best_effort;
use super::egress::header_supported;
use super::process::Mpcd;
use super::{Mpc, MpcConfig};
use crate::mpoa::messages::ToKernel;
use crate::mpoa::split::{FromMpcd, ToMpcd};
use crate::split::{Ended, FromDaemon, Handle, Rights, Seat};
use crate::{AtmEvent, AtmRequest, Cause, ConnId, Instant};
use aerostat_wire::prefix::width;
use aerostat_wire::{AtmAddress, Qos, Sap};
use std::collections::BTreeMap;

/// The client's state of a connection of the daemon.
#[derive(Debug)]
pub(super) struct Conn {
    /// True if the connection uses the data address; else the control address.
    pub(super) shortcut: bool,
    pub(super) peer: AtmAddress,
    /// Its traffic, if more than best effort.
    pub(super) qos: Option<Qos>,
}

/// The seat, and the state of its daemon.
#[derive(Debug)]
pub(super) struct DaemonSeat {
    pub(super) seat: Seat<Mpcd, Conn>,
    /// The daemon runs and is not ending.
    running: bool,
    /// The daemon has ended, and starts again by itself.
    restarting: bool,
    watched: Vec<(AtmAddress, Instant)>,
}

impl DaemonSeat {
    pub(super) fn new(seat: Seat<Mpcd, Conn>) -> Self {
        Self {
            seat,
            running: false,
            restarting: false,
            watched: Vec::new(),
        }
    }
    pub(super) const fn is_running(&self) -> bool {
        self.running
    }
    /// Until when an MPS is trusted without a Keep-Alive.
    pub(super) fn trusted_until(&self, mps: AtmAddress) -> Option<Instant> {
        let mut all = self.watched.iter();
        all.find(|(known, _)| *known == mps).map(|(_, at)| *at)
    }
    /// The daemon's shortcuts, up or not.
    pub(super) fn shortcuts(&self) -> impl Iterator<Item = (ConnId, &Handle<Conn>)> {
        let all = self.seat.conns().iter();
        let shortcuts = all.filter(|(_, handle)| handle.own.shortcut);
        shortcuts.map(|(conn, handle)| (*conn, handle))
    }
    /// Closes all sockets, as the operating system does when the process ends.
    fn close_all(&mut self, bus: &mut Bus) {
        for request in self.seat.close_all() {
            bus.atm(request);
        }
        self.watched.clear();
        self.running = false;
    }
}

impl Rights<Conn> for MpcConfig {
    fn owns(&self, address: AtmAddress, sap: Sap) -> bool {
        sap == Sap::LLC && (address == self.control || address == self.data)
    }
    fn open(&self, connect: &AtmRequest, conns: &BTreeMap<ConnId, Handle<Conn>>) -> Option<Conn> {
        let AtmRequest::Connect {
            calling,
            called,
            qos,
            ..
        } = connect
        else {
            return None;
        };
        let new = Conn::new(*calling == self.data, *called, qos);
        self.has_room(new.shortcut, conns).then_some(new)
    }
}

impl MpcConfig {
    /// True if the daemon may have one more connection of this kind.
    fn has_room(&self, shortcut: bool, conns: &BTreeMap<ConnId, Handle<Conn>>) -> bool {
        let limit = match shortcut {
            true => self.limits.shortcuts,
            false => self.limits.control,
        };
        let same = conns
            .values()
            .filter(|known| known.own.shortcut == shortcut);
        same.count() < limit
    }
}

impl Mpc {
    /// The daemon is present.
    pub(super) fn daemon_came(&mut self, now: Instant) {
        self.daemon.seat.came();
        self.start_daemon(now);
    }

    /// Tells the daemon to run, if it should and has not been told.
    pub(super) fn start_daemon(&mut self, now: Instant) {
        let daemon = &mut self.daemon;
        daemon.seat.want(self.started && self.config.enabled);
        let Some(seed) = daemon.seat.begin(self.config.seed) else {
            return;
        };
        daemon.restarting = false;
        let elans = self.elans.iter().map(|(itf, elan)| elan.info(*itf));
        let start = ToMpcd::Start {
            config: Box::new(MpcConfig {
                seed,
                // Only the data plane uses the list; a long list would not fit a frame.
                qos: Vec::new(),
                ..self.config.clone()
            }),
            params: self.params.clone(),
            elans: elans.collect(),
        };
        daemon.seat.tell(start, now);
    }

    /// SIGTERM or SIGHUP.
    pub(super) fn end_daemon(&mut self, reload: bool, now: Instant) {
        if self.daemon.seat.is_told() {
            self.daemon.seat.tell(ToMpcd::Stop { reload }, now);
        } else if !reload {
            // The daemon died, and no other one will take over its caches.
            self.data.reset(&mut self.bus);
        }
    }

    /// The daemon died without a message: its connections close, the caches wait for the next daemon.
    pub(super) fn daemon_gone(&mut self, now: Instant) {
        let daemon = &mut self.daemon;
        let ran = daemon.running;
        let told = daemon.seat.gone();
        daemon.close_all(&mut self.bus);
        daemon.restarting = false;
        match (ran, told) {
            (true, _) => self.data.orphan(now, &mut self.bus),
            // The daemon was about to forget everything.
            (false, true) => self.data.reset(&mut self.bus),
            (false, false) => return,
        }
        self.nobody_listens("the MPOA daemon died; LANE goes on");
    }

    /// The daemon has purged and released everything.
    fn daemon_ended(&mut self, ended: Ended, now: Instant) {
        let daemon = &mut self.daemon;
        daemon.close_all(&mut self.bus);
        let restarts = ended == Ended::Restarts;
        let again = core::mem::replace(&mut daemon.restarting, restarts);
        if restarts {
            daemon.seat.begin_anew();
        }
        self.data.reset(&mut self.bus);
        if !again {
            self.nobody_listens("the MPOA client has ended");
        }
        // The client may have been enabled again while it was ending.
        self.start_daemon(now);
    }

    /// A message from the daemon.
    pub(super) fn said(&mut self, message: FromDaemon<FromMpcd>, now: Instant) {
        let daemon = &mut self.daemon;
        let Some(message) = daemon.seat.hear(message, &self.config) else {
            return;
        };
        match message {
            FromDaemon::Atm(request) => self.requested(request, now),
            FromDaemon::Trace(trace) => self.bus.trace(trace),
            FromDaemon::Ended(ended) => self.daemon_ended(ended, now),
            FromDaemon::Message(FromMpcd::Message(message)) => self.kernel_message(message, now),
            FromDaemon::Message(FromMpcd::Discover { itf, mac }) => {
                self.bus.out.push_back(Output::Discover { itf, mac });
            }
            FromDaemon::Message(FromMpcd::Counted(counted)) => self.bus.counters.add(&counted),
            FromDaemon::Message(FromMpcd::Watched(all)) => {
                let all = all.into_iter().take(self.config.limits.mps);
                daemon.watched = all.map(|(mps, left)| (mps, now + left)).collect();
            }
        }
    }

    /// A message of Table 4.2, if the daemon may send it.
    fn kernel_message(&mut self, message: ToKernel, now: Instant) {
        let daemon = &mut self.daemon;
        let limits = &self.config.limits;
        let egress = &self.data.egress.entries;
        let proper = match &message {
            ToKernel::SetMpcControlAddress(address) => *address == self.config.control,
            ToKernel::CacheImposition(info) if info.holding_s > 0 => {
                let room =
                    egress.contains_key(&(info.mps, info.cache_id)) || egress.len() < limits.egress;
                room && header_supported(&info.header, info.destination)
                    && (1..=width(info.destination)).contains(&info.prefix)
            }
            ToKernel::SetMpsMacAddress { itf, .. } => self.data.has_interface(*itf),
            ToKernel::Attach {
                conn, peer, opened, ..
            } => (daemon.seat.conns().get(conn)).is_some_and(|known| {
                known.own.shortcut && known.own.peer == *peer && known.outgoing == *opened
            }),
            ToKernel::TriggerReceived { .. }
            | ToKernel::ResolutionReply(_)
            | ToKernel::IngressPurge { .. }
            | ToKernel::EgressPurged { .. }
            | ToKernel::MpsDeath { .. }
            | ToKernel::CacheImposition(_)
            | ToKernel::CleanUpAndExit
            | ToKernel::SetParams(_)
            | ToKernel::Reload
            | ToKernel::Detach { .. }
            | ToKernel::OpenFailed { .. } => true,
        };
        if !proper {
            return daemon.seat.refuse();
        }
        let mut attached = None;
        match &message {
            ToKernel::SetMpcControlAddress(_) => {
                (daemon.running, daemon.restarting) = (true, false);
            }
            ToKernel::CleanUpAndExit | ToKernel::Reload => daemon.running = false,
            ToKernel::Attach { conn, .. } => attached = Some(*conn),
            _ => {}
        }
        self.data.handle(message, now, &mut self.bus);
        if let Some(conn) = attached {
            for sdu in self.daemon.seat.take_early(conn) {
                self.data.received(conn, &sdu, now, &mut self.bus);
            }
        }
    }

    /// A request to the ATM service that the daemon may make.
    fn requested(&mut self, request: AtmRequest, now: Instant) {
        // A daemon that is ending has told the data plane already.
        if let (AtmRequest::Release { conn, cause }, true) = (&request, self.daemon.running) {
            let (conn, cause) = (*conn, *cause);
            let detach = ToKernel::Detach { conn, cause };
            self.data.handle(detach, now, &mut self.bus);
        }
        self.bus.atm(request);
    }

    /// An event of the ATM service.
    pub(super) fn atm(&mut self, event: AtmEvent<&[u8]>, now: Instant) {
        let daemon = &mut self.daemon;
        match event {
            AtmEvent::Up | AtmEvent::Down => return,
            AtmEvent::Received { conn, sdu } if self.data.shortcuts.contains_key(&conn) => {
                return self.data.received(conn, sdu, now, &mut self.bus);
            }
            AtmEvent::Received { conn, sdu } => match daemon.seat.conn_mut(conn) {
                Some(known) if !known.own.shortcut => {}
                Some(known) if known.accepted && !known.outgoing => {
                    let attach = ToKernel::Attach {
                        conn,
                        peer: known.own.peer,
                        vc: None,
                        qos: known.own.qos,
                        opened: false,
                        flow: None,
                    };
                    self.data.handle(attach, now, &mut self.bus);
                    self.pump(now);
                    return self.data.received(conn, sdu, now, &mut self.bus);
                }
                // The daemon has not attached the connection yet.
                Some(known) if known.outgoing => return daemon.seat.hold(conn, sdu),
                Some(_) | None => return self.stray(),
            },
            AtmEvent::Incoming {
                conn,
                calling,
                called,
                qos,
                ..
            } => {
                if !daemon.seat.is_told() || daemon.restarting {
                    let cause = Cause::INCOMPATIBLE;
                    self.bus.atm(AtmRequest::Release { conn, cause });
                    return self.stray();
                }
                let offered = Conn::new(
                    called == self.config.data,
                    calling.unwrap_or_default(),
                    &qos,
                );
                if !self.config.has_room(offered.shortcut, daemon.seat.conns()) {
                    self.bus.counters.connection_limit += 1;
                    let cause = Cause::RESOURCES;
                    return self.bus.atm(AtmRequest::Release { conn, cause });
                }
                daemon.seat.offered(conn, offered);
            }
            AtmEvent::Connected { conn, .. } => {
                if !daemon.seat.connected(conn) {
                    return self.stray();
                }
            }
            AtmEvent::Released { conn, cause } => {
                if daemon.seat.released(conn).is_none() {
                    return self.stray();
                }
                // The daemon will report this, too; packets need not wait for the report.
                let detach = ToKernel::Detach { conn, cause };
                self.data.handle(detach, now, &mut self.bus);
            }
            AtmEvent::PartyAdded { .. } | AtmEvent::PartyGone { .. } => return self.stray(),
        }
        self.daemon.seat.tell_atm(event, now);
    }

    const fn stray(&mut self) {
        self.bus.counters.stray_events += 1;
    }
}

impl Conn {
    fn new(shortcut: bool, peer: AtmAddress, qos: &Qos) -> Self {
        Self {
            shortcut,
            peer,
            qos: beyond_best_effort(qos),
        }
    }
}
