//! The seat of a daemon in a process of its own, in the process of the data plane.
//!
//! What the operating system does for a process stands here: its listeners and connections are remembered, so that
//! they end with it, and what arrives on a shortcut before it is attached waits. Nothing that the daemon says is
//! believed beyond what is its own: its two addresses, its connections, as many of them as the limits allow.

use super::api::{Bus, Output};
use super::egress::header_supported;
use super::{Mpc, MpcConfig};
use crate::mix::{STEP, mix};
use crate::mpoa::messages::ToKernel;
use crate::mpoa::split::{FromMpcd, ToMpcd};
use crate::{AtmEvent, AtmRequest, Cause, ConnId, Instant, Refused};
use aerostat_wire::prefix::width;
use aerostat_wire::{AtmAddress, Sap};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// SDUs that wait for their connection to be attached, on each connection.
const WAITING: usize = 64;

/// A connection of the daemon.
#[derive(Debug)]
struct Conn {
    /// With the data address; else with the control address.
    shortcut: bool,
    peer: AtmAddress,
    opened: bool,
    /// What arrived before the daemon attached it.
    waiting: VecDeque<Vec<u8>>,
}

/// The seat.
#[derive(Debug, Default)]
pub(super) struct Away {
    present: bool,
    /// It was told to run and has not ended for good.
    told: bool,
    /// It runs and is not ending.
    running: bool,
    /// How often one was told to run: each gets numbers of its own.
    starts: u64,
    listens: BTreeSet<AtmAddress>,
    conns: BTreeMap<ConnId, Conn>,
    watched: Vec<(AtmAddress, Instant)>,
}

impl Away {
    pub(super) const fn is_running(&self) -> bool {
        self.running
    }
    /// True if what concerns a daemon goes to it.
    pub(super) const fn is_told(&self) -> bool {
        self.told
    }
    /// Until when an MPS is trusted without a sign of life.
    pub(super) fn trusted_until(&self, mps: AtmAddress) -> Option<Instant> {
        let mut all = self.watched.iter();
        all.find(|(known, _)| *known == mps).map(|(_, at)| *at)
    }
    /// Its shortcuts, up or not: connection, other end, whether this end opened it.
    pub(super) fn shortcuts(&self) -> impl Iterator<Item = (ConnId, AtmAddress, bool)> {
        let all = self.conns.iter().filter(|(_, conn)| conn.shortcut);
        all.map(|(id, conn)| (*id, conn.peer, conn.opened))
    }
    /// What the operating system does when a process is gone: its sockets close.
    fn close_all(&mut self, bus: &mut Bus) {
        for (conn, _) in core::mem::take(&mut self.conns) {
            let cause = Cause::NORMAL;
            bus.atm(AtmRequest::Release { conn, cause });
        }
        for address in core::mem::take(&mut self.listens) {
            let sap = Sap::LLC;
            bus.atm(AtmRequest::Unlisten { address, sap });
        }
        self.watched.clear();
        self.running = false;
    }
}

impl Mpc {
    /// The daemon's process is there.
    pub(super) fn away_came(&mut self) {
        if let Some(away) = &mut self.away {
            away.present = true;
        }
        self.start_away();
    }

    /// Tells the daemon to run, if it should and was not told.
    pub(super) fn start_away(&mut self) {
        let Some(away) = &mut self.away else {
            return;
        };
        if !away.present || away.told || !self.started || !self.config.enabled {
            return;
        }
        away.told = true;
        away.starts += 1;
        let seed = mix(self.config.seed ^ away.starts.wrapping_mul(STEP));
        let elans = self.elans.iter().map(|(itf, elan)| elan.info(*itf));
        self.bus.mpcd(ToMpcd::Start {
            config: Box::new(MpcConfig {
                seed,
                // The data plane's alone; a long list would not fit a frame.
                qos: Vec::new(),
                ..self.config.clone()
            }),
            params: self.params.clone(),
            elans: elans.collect(),
        });
    }

    /// The daemon's process is gone.
    pub(super) fn away_gone(&mut self, now: Instant) {
        let Some(away) = &mut self.away else {
            return;
        };
        let ran = away.running;
        away.close_all(&mut self.bus);
        let told = core::mem::take(&mut away.told);
        away.present = false;
        match (ran, told) {
            (true, _) => self.data.orphan(now, &mut self.bus),
            // It was about to forget everything.
            (false, true) => self.data.reset(&mut self.bus),
            (false, false) => return,
        }
        self.nobody_listens("the MPOA daemon died; LANE goes on");
    }

    /// The daemon has purged and released everything.
    fn away_ended(&mut self, restarts: bool, exits: bool) {
        let Some(away) = &mut self.away else {
            return;
        };
        away.close_all(&mut self.bus);
        away.told = restarts;
        away.present &= !exits;
        self.data.reset(&mut self.bus);
        self.nobody_listens("the MPOA client has ended");
        // It may have been turned on again while it was ending.
        self.start_away();
    }

    /// A message of the daemon.
    pub(super) fn hear_mpcd(&mut self, message: FromMpcd, now: Instant) -> Result<(), Refused> {
        let Some(away) = &mut self.away else {
            return Err(Refused(
                "the daemon of this client is no process of its own",
            ));
        };
        if !away.told {
            // On its way when it was all over.
            self.bus.counters.daemon_refused += 1;
            return Ok(());
        }
        match message {
            FromMpcd::Message(message) => self.hear_message(message, now),
            FromMpcd::Atm(request) => self.hear_request(request, now),
            FromMpcd::Discover { itf, mac } => {
                self.bus.out.push_back(Output::Discover { itf, mac });
            }
            FromMpcd::Trace(trace) => self.bus.trace(trace),
            FromMpcd::Counted(counted) => self.bus.counters.add(&counted),
            FromMpcd::Watched(all) => {
                let all = all.into_iter().take(self.config.limits.mps);
                away.watched = all.map(|(mps, left)| (mps, now + left)).collect();
            }
            FromMpcd::Ended { restarts, exits } => self.away_ended(restarts, exits),
        }
        Ok(())
    }

    /// A message of Table 4.2, as far as the daemon may say it.
    fn hear_message(&mut self, message: ToKernel, now: Instant) {
        let Some(away) = &mut self.away else {
            return;
        };
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
            } => (away.conns.get(conn))
                .is_some_and(|c| c.shortcut && c.peer == *peer && c.opened == *opened),
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
            self.bus.counters.daemon_refused += 1;
            return;
        }
        let mut waiting = None;
        match &message {
            ToKernel::SetMpcControlAddress(_) => away.running = true,
            ToKernel::CleanUpAndExit | ToKernel::Reload => away.running = false,
            ToKernel::Attach { conn, .. } => {
                let conn_of = away.conns.get_mut(conn);
                waiting = conn_of.map(|c| (*conn, core::mem::take(&mut c.waiting)));
            }
            _ => {}
        }
        self.data.handle(message, now, &mut self.bus);
        let (conn, sdus) = waiting.unwrap_or((ConnId(0), VecDeque::new()));
        for sdu in sdus {
            self.data.received(conn, &sdu, now, &mut self.bus);
        }
    }

    /// A request to the ATM service, as far as the daemon may make it.
    fn hear_request(&mut self, request: AtmRequest, now: Instant) {
        let Some(away) = &mut self.away else {
            return;
        };
        let MpcConfig {
            control,
            data,
            limits,
            ..
        } = &self.config;
        let own = |address: &AtmAddress| address == control || address == data;
        let proper = match &request {
            AtmRequest::Listen { address, sap, .. } | AtmRequest::Unlisten { address, sap } => {
                own(address) && *sap == Sap::LLC
            }
            AtmRequest::Connect {
                conn,
                calling,
                sap: Sap::LLC,
                multipoint: false,
                ..
            } => {
                let room = away.conns.len() < limits.control + limits.shortcuts;
                room && own(calling) && conn.0 < ConnId::INCOMING && !away.conns.contains_key(conn)
            }
            AtmRequest::Accept { conn } => away.conns.get(conn).is_some_and(|c| !c.opened),
            AtmRequest::Release { conn, .. } | AtmRequest::Send { conn, .. } => {
                away.conns.contains_key(conn)
            }
            // Point-to-multipoint is not for an MPOA client.
            AtmRequest::Connect { .. }
            | AtmRequest::OpenPermanent { .. }
            | AtmRequest::AddParty { .. }
            | AtmRequest::DropParty { .. } => false,
        };
        if !proper {
            self.bus.counters.daemon_refused += 1;
            return;
        }
        match &request {
            AtmRequest::Listen { address, .. } => {
                away.listens.insert(*address);
            }
            AtmRequest::Unlisten { address, .. } => {
                away.listens.remove(address);
            }
            AtmRequest::Connect {
                conn,
                calling,
                called,
                ..
            } => {
                let made = Conn::new(calling == data, *called, true);
                away.conns.insert(*conn, made);
            }
            AtmRequest::Release { conn, cause } => {
                away.conns.remove(conn);
                let (conn, cause) = (*conn, *cause);
                let detach = ToKernel::Detach { conn, cause };
                self.data.handle(detach, now, &mut self.bus);
            }
            _ => {}
        }
        self.bus.atm(request);
    }

    /// An event of the ATM service.
    pub(super) fn atm_away(&mut self, event: AtmEvent<&[u8]>, now: Instant) {
        let Some(away) = &mut self.away else {
            return;
        };
        match event {
            AtmEvent::Received { conn, sdu } if self.data.shortcuts.contains_key(&conn) => {
                return self.data.received(conn, sdu, now, &mut self.bus);
            }
            AtmEvent::Received { conn, sdu } => match away.conns.get_mut(&conn) {
                Some(c) if !c.shortcut => {}
                Some(c) if c.waiting.len() < WAITING => {
                    return c.waiting.push_back(sdu.to_vec());
                }
                Some(_) | None => return self.stray(),
            },
            AtmEvent::Incoming {
                conn,
                calling: Some(peer),
                called,
                multipoint: false,
                ..
            } if away.running => {
                let limits = &self.config.limits;
                if away.conns.len() >= limits.control + limits.shortcuts {
                    self.bus.counters.connection_limit += 1;
                    let cause = Cause::RESOURCES;
                    return self.bus.atm(AtmRequest::Release { conn, cause });
                }
                let offered = Conn::new(called == self.config.data, peer, false);
                away.conns.insert(conn, offered);
            }
            AtmEvent::Incoming { conn, .. } => {
                let cause = if away.running {
                    Cause::REJECTED
                } else {
                    Cause::INCOMPATIBLE
                };
                self.bus.atm(AtmRequest::Release { conn, cause });
                return self.stray();
            }
            AtmEvent::Connected { conn, .. } if away.conns.contains_key(&conn) => {}
            AtmEvent::Released { conn, cause } if away.conns.remove(&conn).is_some() => {
                // The daemon will say so too; packets need not wait for it.
                let detach = ToKernel::Detach { conn, cause };
                self.data.handle(detach, now, &mut self.bus);
            }
            AtmEvent::Up | AtmEvent::Down => return,
            AtmEvent::Connected { .. }
            | AtmEvent::Released { .. }
            | AtmEvent::PartyAdded { .. }
            | AtmEvent::PartyGone { .. } => return self.stray(),
        }
        self.bus.mpcd(ToMpcd::Atm(event.into_owned()));
    }

    fn stray(&mut self) {
        self.bus.counters.stray_events += 1;
    }
}

impl Conn {
    const fn new(shortcut: bool, peer: AtmAddress, opened: bool) -> Self {
        let waiting = VecDeque::new();
        Self {
            shortcut,
            peer,
            opened,
            waiting,
        }
    }
}
