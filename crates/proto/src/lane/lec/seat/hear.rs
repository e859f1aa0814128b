//! Messages of the control part, and the checks that each must pass.

use super::SHORTEST;
use crate::lane::lec::split::{FromLecd, ToData};
use crate::lane::lec::{Lec, Output};
use crate::split::{Ended, FromDaemon};
use crate::{AtmRequest, ConnId, Instant};
use aerostat_wire::Sap;

impl Lec {
    pub(in crate::lane::lec) fn hear(&mut self, message: FromDaemon<FromLecd>, now: Instant) {
        let control = &mut self.control;
        if !control.told {
            return control.seat.late(&message);
        }
        let message = match message {
            FromDaemon::Atm(request) => return self.requested(request, now),
            FromDaemon::Trace(trace) => return self.out.push_back(Output::Trace(trace)),
            FromDaemon::Message(message) => message,
            FromDaemon::Ended(ended) => {
                (control.told, control.stopping) = (false, false);
                control.lives.end();
                if ended == Ended::Exits {
                    control.seat.leaves();
                }
                self.drop_all(now);
                // The user may have started the client again meanwhile.
                return self.start_control(now);
            }
        };
        let limit = self.config.limits.cache;
        match message {
            FromLecd::Data(message) => self.data_message(message, now),
            FromLecd::Associate { mac, atm, tlvs } => {
                if !control.associated.contains(&mac) && control.associated.len() >= limit {
                    return control.seat.refuse();
                }
                control.associated.insert(mac);
                self.out.push_back(Output::Associate { mac, atm, tlvs });
            }
            FromLecd::Dissociate { mac } if control.associated.remove(&mac) => {
                self.out.push_back(Output::Dissociate { mac });
            }
            // The user may have taken the station back meanwhile, and then needs no message.
            FromLecd::RemoteMoved { mac } => {
                if control.remote.remove(&mac) {
                    self.out.push_back(Output::RemoteMoved { mac });
                }
            }
            FromLecd::Resolved { mac, owner } => {
                if control.asked.remove(&mac) {
                    self.out.push_back(Output::Resolved { mac, owner });
                }
            }
            FromLecd::Joined {
                lecid,
                elan,
                max_frame,
                elan_id,
                tlvs,
            } if !control.joined => {
                control.joined = true;
                self.out.push_back(Output::Joined {
                    lecid,
                    elan,
                    max_frame,
                    elan_id,
                    tlvs,
                });
            }
            FromLecd::Left if control.joined => self.leave_user(),
            FromLecd::Dissociate { .. } | FromLecd::Joined { .. } | FromLecd::Left => {
                control.seat.refuse();
            }
            FromLecd::Counted(counted) => control.mirror.counters.add(&counted),
            FromLecd::Standing(standing) => control.mirror.standing = Some(standing),
            FromLecd::Conn(row) => {
                // The daemon may name a connection that is gone and of which it has not heard yet.
                if control.seat.conns().contains_key(&row.conn) {
                    control.mirror.conns.insert(row.conn, row);
                }
            }
            FromLecd::ConnGone(conn) => {
                control.mirror.conns.remove(&conn);
            }
            FromLecd::Entry(row) => {
                if !control.mirror.keep(row, limit, now) {
                    control.seat.refuse();
                }
            }
            FromLecd::EntryGone(mac) => control.mirror.forget(&mac),
        }
    }

    /// Passes on a message for the data plane, if the daemon may send it.
    fn data_message(&mut self, message: ToData, now: Instant) {
        let control = &mut self.control;
        let calls = control.seat.conns();
        // The daemon may name a connection that is gone and of which it has not heard yet.
        let late = |conn: &ConnId| !calls.contains_key(conn);
        let carries = |conn: &ConnId| {
            let call = calls.get(conn);
            call.is_some_and(|call| call.up && call.own.sap != Sap::LANE_CONTROL)
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
            return control.seat.refuse();
        }
        let opened = match &message {
            ToData::Open { conn, .. } => Some(*conn),
            _ => None,
        };
        self.data.handle(message, now);
        if let Some(conn) = opened {
            for sdu in control.seat.take_early(conn) {
                self.data.receive(conn, &sdu, now);
            }
        }
    }

    /// Passes on a request to the ATM service, if the daemon may make it.
    fn requested(&mut self, request: AtmRequest, now: Instant) {
        let control = &mut self.control;
        if !control.seat.grants(&request, &self.config) {
            return;
        }
        match &request {
            AtmRequest::Connect { conn, .. } => control.last_conn = *conn,
            // The data plane must not send a frame on the connection any more.
            AtmRequest::Release { conn, .. } => self.data.handle(ToData::Close(*conn), now),
            _ => {}
        }
        self.out.push_back(Output::Atm(request));
    }
}
