//! What the daemon says, and how much of it is believed.

use super::{Call, SERVER_CALLS, SHORTEST};
use crate::lane::lec::split::{FromLecd, ToData};
use crate::lane::lec::{Lec, Output};
use crate::split::{Ended, FromDaemon};
use crate::{AtmRequest, ConnId, Instant};
use aerostat_wire::{Qos, Sap};
use std::collections::VecDeque;

impl Lec {
    const fn refuse(&mut self) {
        let refused = &mut self.control.counters.daemon_refused;
        *refused = refused.saturating_add(1);
    }

    pub(super) fn hear(&mut self, message: FromDaemon<FromLecd>, now: Instant) {
        let Some(away) = self.away.as_mut().filter(|away| away.told) else {
            // It was on its way when all was over.
            return match message {
                FromDaemon::Ended(_) => {}
                _ => self.refuse(),
            };
        };
        let message = match message {
            FromDaemon::Atm(request) => return self.hear_request(request, now),
            FromDaemon::Trace(trace) => return self.out.push_back(Output::Trace(trace)),
            FromDaemon::Ended(ended) => {
                (away.told, away.stopping) = (false, false);
                away.present &= ended != Ended::Exits;
                self.drop_all(now);
                // It may have been wanted again meanwhile.
                return self.start_away(now);
            }
            FromDaemon::Message(message) => message,
        };
        let limit = self.control.config.limits.cache;
        match message {
            FromLecd::Data(message) => self.hear_data(message, now),
            FromLecd::Associate { mac, atm, tlvs } => {
                if !away.associated.contains(&mac) && away.associated.len() >= limit {
                    return self.refuse();
                }
                away.associated.insert(mac);
                self.out.push_back(Output::Associate { mac, atm, tlvs });
            }
            FromLecd::Dissociate { mac } if away.associated.remove(&mac) => {
                self.out.push_back(Output::Dissociate { mac });
            }
            // One that it stood for until the user took it back is no news.
            FromLecd::RemoteMoved { mac } => {
                if self.control.remote.remove(&mac) {
                    self.out.push_back(Output::RemoteMoved { mac });
                }
            }
            FromLecd::Resolved { mac, owner } => {
                if away.asked.remove(&mac) {
                    self.out.push_back(Output::Resolved { mac, owner });
                }
            }
            FromLecd::Joined {
                lecid,
                elan,
                max_frame,
                elan_id,
                tlvs,
            } if !away.joined => {
                away.joined = true;
                self.out.push_back(Output::Joined {
                    lecid,
                    elan,
                    max_frame,
                    elan_id,
                    tlvs,
                });
            }
            FromLecd::Left if away.joined => self.leave_user(),
            FromLecd::Dissociate { .. } | FromLecd::Joined { .. } | FromLecd::Left => self.refuse(),
            FromLecd::Counted(counted) => self.control.counters.add(&counted),
            FromLecd::Standing(standing) => self.control.stand(*standing),
            // One that it has not heard to be gone is no mistake of its.
            FromLecd::Conn(row) if !away.calls.contains_key(&row.conn) => {}
            FromLecd::Conn(row) => {
                self.control.conns.insert(row.conn, row.known());
            }
            FromLecd::ConnGone(conn) => {
                self.control.conns.remove(&conn);
            }
            FromLecd::Entry(row) => {
                let cache = &mut self.control.cache;
                if !cache.contains_key(&row.mac) && cache.len() >= limit {
                    return self.refuse();
                }
                cache.insert(row.mac, row.mirrored(now));
            }
            FromLecd::EntryGone(mac) => {
                self.control.cache.remove(&mac);
            }
        }
    }

    /// A message for the data plane, as far as the daemon may say it.
    fn hear_data(&mut self, message: ToData, now: Instant) {
        let Some(away) = &mut self.away else {
            return;
        };
        // One that is gone, which it has not heard yet, is no mistake of its.
        let late = |conn: &ConnId| !away.calls.contains_key(conn);
        let carries = |conn: &ConnId| {
            let call = away.calls.get(conn);
            call.is_some_and(|call| call.up && call.sap != Sap::LANE_CONTROL)
        };
        let proper = match &message {
            ToData::Joined { lecid, .. } => matches!(lecid, 1..=0xfeff),
            ToData::Quota { count, time } => *count > 0 && *time >= SHORTEST,
            ToData::Bus(Some(conn)) | ToData::Open { conn, .. } if late(conn) => return,
            ToData::Switch { to, .. } | ToData::Proceed { to, .. } if late(to) => return,
            ToData::Bus(Some(conn)) => self.data.owns(*conn),
            ToData::Open { conn, idle, .. } => {
                carries(conn) && idle.is_none_or(|idle| idle >= SHORTEST)
            }
            ToData::Switch { to, .. } | ToData::Proceed { to, .. } => self.data.owns(*to),
            ToData::Bus(None)
            | ToData::Close(_)
            | ToData::Unresolved { .. }
            | ToData::Forget(_)
            | ToData::AskUse(_)
            | ToData::Reset => true,
        };
        if !proper {
            return self.refuse();
        }
        let mut waiting = VecDeque::new();
        let mut on = ConnId(0);
        if let ToData::Open { conn, .. } = &message
            && let Some(call) = away.calls.get_mut(conn)
        {
            on = *conn;
            waiting = core::mem::take(&mut call.waiting);
        }
        self.data.handle(message, now);
        for sdu in waiting {
            self.data.receive(on, &sdu, now);
        }
    }

    /// A request to the ATM service, as far as the daemon may make it.
    fn hear_request(&mut self, request: AtmRequest, now: Instant) {
        let Some(away) = &mut self.away else {
            return;
        };
        let own = self.control.config.address;
        let room = away.calls.len() < self.control.config.limits.vccs + SERVER_CALLS;
        let proper = match &request {
            // The daemon may name a call that is gone and of which it has not heard yet.
            AtmRequest::Accept { conn }
            | AtmRequest::Release { conn, .. }
            | AtmRequest::Send { conn, .. }
                if !away.calls.contains_key(conn) =>
            {
                return;
            }
            AtmRequest::Listen { address, sap, .. } if *address == own => {
                away.listens.insert((*address, *sap));
                true
            }
            AtmRequest::Unlisten { address, sap } => away.listens.remove(&(*address, *sap)),
            AtmRequest::Connect {
                conn,
                calling,
                sap,
                qos,
                multipoint: false,
                ..
            } if *calling == own && *qos == Qos::ubr(qos.tx.max_sdu) => {
                let fresh = conn.0 < ConnId::INCOMING && !away.calls.contains_key(conn);
                if room && fresh {
                    away.last_conn = *conn;
                    away.calls.insert(*conn, Call::new(true, *sap));
                }
                room && fresh
            }
            AtmRequest::Accept { conn } => match away.calls.get_mut(conn) {
                Some(call) if !call.outgoing => !core::mem::replace(&mut call.accepted, true),
                _ => false,
            },
            AtmRequest::Release { conn, .. } => {
                away.calls.remove(conn);
                // Before a frame is sent on it.
                self.data.handle(ToData::Close(*conn), now);
                true
            }
            AtmRequest::Send { conn, sdu } => {
                !sdu.is_empty() && away.calls.get(conn).is_some_and(|call| call.up)
            }
            // Point-to-multipoint and permanent connections are not for a LANE client.
            AtmRequest::Listen { .. }
            | AtmRequest::Connect { .. }
            | AtmRequest::OpenPermanent { .. }
            | AtmRequest::AddParty { .. }
            | AtmRequest::DropParty { .. } => false,
        };
        if proper {
            self.out.push_back(Output::Atm(request));
        } else {
            self.refuse();
        }
    }
}
