//! Messages of the control part, and the checks that each must pass.

use super::SHORTEST;
use crate::lane::lec::split::{FromLecd, ToData};
use crate::lane::lec::{Lec, News, Output};
use crate::split::FromDaemon;
use crate::{AtmRequest, ConnId, Instant};
use aerostat_wire::Sap;

impl Lec {
    pub(in crate::lane::lec) fn hear(&mut self, message: FromDaemon<FromLecd>, now: Instant) {
        let control = &mut self.control;
        let Some(message) = control.seat.hear(message, &self.config) else {
            return;
        };
        let message = match message {
            FromDaemon::Atm(request) => return self.requested(request, now),
            FromDaemon::Trace(trace) => return self.out.push_back(Output::Trace(trace)),
            FromDaemon::Message(message) => message,
            FromDaemon::Ended(_) => {
                control.stopping = false;
                control.seat.end_life();
                self.drop_all(now);
                // The user may have started the client again meanwhile.
                return self.start_control(now);
            }
        };
        let limit = self.config.limits.cache;
        match message {
            FromLecd::Data(message) => self.data_message(message, now),
            FromLecd::News(news) => self.news(news),
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

    /// Passes on news for the user, if they are news and within the limits.
    fn news(&mut self, news: News) {
        let control = &mut self.control;
        let room = control.associated.len() < self.config.limits.cache;
        let proper = match &news {
            News::Associate { mac, .. } if room || control.associated.contains(mac) => {
                control.associated.insert(*mac);
                true
            }
            News::Associate { .. } => false,
            News::Dissociate { mac } => control.associated.remove(mac),
            News::Joined { .. } => !core::mem::replace(&mut control.joined, true),
            News::Left if control.joined => return self.leave_user(),
            News::Left => false,
            // The user may have taken the station back meanwhile, and then needs no message.
            News::RemoteMoved { mac } if !control.remote.remove(mac) => return,
            News::Resolved { mac, .. } if !control.asked.remove(mac) => return,
            News::RemoteMoved { .. } | News::Resolved { .. } => true,
        };
        match proper {
            true => self.out.push_back(Output::News(news)),
            false => control.seat.refuse(),
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

    /// Passes on a request to the ATM service that the daemon may make.
    fn requested(&mut self, request: AtmRequest, now: Instant) {
        match &request {
            AtmRequest::Connect { conn, .. } => self.control.last_conn = *conn,
            // The data plane must not send a frame on the connection any more.
            AtmRequest::Release { conn, .. } => self.data.handle(ToData::Close(*conn), now),
            _ => {}
        }
        self.out.push_back(Output::Atm(request));
    }
}
