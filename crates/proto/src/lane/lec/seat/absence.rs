//! A member whose control part has died: frames continue for a while, and the next control part takes over.

use super::WAITING;
use crate::lane::lec::control::Role;
use crate::lane::lec::split::{ToControl, ToData, ToLecd};
use crate::lane::lec::{Lec, LecState, News, Output};
use crate::split::ToDaemon;
use crate::{AtmRequest, Cause, ConnId, Duration, Instant, Trace};
use aerostat_wire::MacAddr;
use std::collections::VecDeque;

/// How long a client remains a member after its daemon has died, if no other daemon comes.
pub const GRACE: Duration = Duration::from_secs(10);
/// If a daemon took over and died within this time, the next daemon does not take over: the state may be the reason.
const DOUBT: Duration = Duration::from_secs(5);

/// The time without a daemon in which the next daemon may take over.
#[derive(Debug)]
pub(in crate::lane::lec) struct Absence {
    until: Instant,
    waiting: VecDeque<ToDaemon<ToLecd>>,
}

impl Absence {
    pub(super) const fn until(&self) -> Instant {
        self.until
    }
    /// Keeps a message; false if there is no room.
    pub(super) fn keep(&mut self, message: ToDaemon<ToLecd>) -> bool {
        let room = self.waiting.len() < WAITING;
        if room {
            self.waiting.push_back(message);
        }
        room
    }
    /// Drops the messages about a connection that is gone.
    pub(super) fn forget(&mut self, conn: ConnId) {
        self.waiting.retain(|message| about(message) != Some(conn));
    }
}

/// The connection that a waiting message is about.
const fn about(message: &ToDaemon<ToLecd>) -> Option<ConnId> {
    match message {
        ToDaemon::Atm(event) => event.conn(),
        ToDaemon::Message(ToLecd::Data(ToControl::Control { conn, .. })) => Some(*conn),
        ToDaemon::Message(_) => None,
    }
}

impl Lec {
    /// Leaves the ELAN if no daemon has come in time.
    pub(in crate::lane::lec) fn absence_timeout(&mut self, now: Instant) {
        let absence = self.control.absence.as_ref();
        if absence.is_some_and(|absence| absence.until <= now) {
            self.give_up("no LANE daemon came", now);
        }
    }

    /// Gives the state to a daemon that continues where its predecessor was a member.
    pub(super) fn hand_over(&mut self, absence: Absence, now: Instant) {
        self.reconcile(now);
        let control = &mut self.control;
        for row in control.mirror.conns.values() {
            control.seat.tell(ToLecd::Conn(*row), now);
        }
        for row in control.mirror.entries(now) {
            control.seat.tell(ToLecd::Entry(row), now);
        }
        let standing = control.mirror.standing.clone();
        control.seat.tell(ToLecd::Go(standing), now);
        for message in absence.waiting {
            control.seat.forward(message, now);
        }
        for mac in control.asked.iter().copied().collect::<Vec<_>>() {
            control.seat.tell(ToLecd::Resolve(mac), now);
        }
    }

    /// Ends what the dead daemon had begun: it may have reported only a part of a change.
    fn reconcile(&mut self, now: Instant) {
        let control = &mut self.control;
        let (mirror, out) = (&control.mirror, &mut self.out);
        control.associated.retain(|mac| {
            let stays = mirror.is_associated(mac);
            if !stays {
                out.push_back(Output::News(News::Dissociate { mac: *mac }));
            }
            stays
        });
        let macs: Vec<MacAddr> = self.data.destinations().collect();
        for mac in macs.into_iter().filter(|mac| !mirror.knows(mac)) {
            let asked = false;
            self.data.handle(ToData::Unresolved { mac, asked }, now);
        }
    }

    /// The daemon's process is gone.
    pub(super) fn control_gone(&mut self, now: Instant) {
        let control = &mut self.control;
        if !control.seat.gone() {
            return;
        }
        let young = control.adopted.is_some_and(|at| now < at + DOUBT);
        self.release_all_but_established();
        let control = &mut self.control;
        let mirror = &control.mirror;
        let lecid = mirror.standing.as_ref().map(|standing| standing.lecid);
        let member = mirror.state() == LecState::Operational
            && control.joined
            && lecid == Some(self.data.lecid())
            && mirror.has_servers()
            && self.data.bus().is_some()
            && self.data.bus() == mirror.bus_conn();
        if member && control.seat.is_wanted() && !control.stopping && !young {
            let (until, waiting) = (now + GRACE, VecDeque::new());
            control.absence = Some(Absence { until, waiting });
            let seconds = GRACE.as_secs();
            let text = format!("the LANE daemon died; frames go on for {seconds} s");
            let trace = Trace::milestone("lane.unattended", text).with("seconds", seconds);
            self.out.push_back(Output::Trace(trace));
        } else {
            self.give_up("the LANE daemon died", now);
        }
    }

    /// Releases calls that were being set up, and connections that only one half knows.
    fn release_all_but_established(&mut self) {
        let control = &mut self.control;
        let (known, data) = (&control.mirror.conns, &mut self.data);
        let established = |conn: &ConnId| {
            let row = known.get(conn).filter(|row| row.vc.is_some());
            row.is_some_and(|row| match row.role {
                Role::ControlDirect | Role::Distribute => true,
                Role::ConfigDirect => false,
                Role::MulticastSend
                | Role::MulticastForward
                | Role::SelectiveSend
                | Role::DataDirect => data.owns(*conn),
            })
        };
        let all = control.seat.conns().iter();
        let gone = all.filter(|(conn, call)| !(call.up && established(conn)));
        for conn in gone.map(|(conn, _)| *conn).collect::<Vec<_>>() {
            control.seat.released(conn);
            let cause = Cause::NORMAL;
            let request = AtmRequest::Release { conn, cause };
            self.out.push_back(Output::Atm(request));
        }
        let calls = control.seat.conns();
        control
            .mirror
            .conns
            .retain(|conn, _| calls.contains_key(conn));
        let closed = data.connections().filter(|conn| !calls.contains_key(conn));
        for conn in closed.collect::<Vec<_>>() {
            data.handle(ToData::Close(conn), Instant::ZERO);
        }
    }

    /// The client leaves its ELAN.
    pub(super) fn give_up(&mut self, why: &str, now: Instant) {
        let standing = self.control.mirror.standing.as_ref();
        let elan = standing.map_or(self.config.elan, |standing| standing.elan);
        let (name, text) = match self.control.joined {
            true => ("lane.lost", format!("leaves ELAN {elan}: {why}")),
            false => ("lane.failed", why.to_owned()),
        };
        let trace = Trace::milestone(name, text);
        self.out.push_back(Output::Trace(trace));
        self.drop_all(now);
    }
}
