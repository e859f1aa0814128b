//! The seat of the control part beside the data plane. See [`super::split`].
//!
//! The client accepts from the control part only messages about the control part's own objects: the client's address,
//! and its calls, as many as the limits allow. An SDU that arrives on a connection before the data plane knows the
//! connection waits in the seat.

mod absence;
mod hear;

use absence::Absence;
pub use absence::GRACE;

use super::mirror::Mirror;
use super::split::{MACS, ToControl, ToData, ToLecd};
use super::{Input, Lec, LecConfig, LecDaemon, News, Output};
use crate::split::{Handle, ProcessEvent, Rights, Seat, ToDaemon};
use crate::{AtmEvent, AtmRequest, Cause, ConnId, Duration, Instant, Refused};
use aerostat_wire::{AtmAddress, MacAddr, Sap};
use std::collections::{BTreeMap, BTreeSet};

/// Messages that wait for a daemon.
const WAITING: usize = 64;
/// Calls beside data direct connections.
const SERVER_CALLS: usize = 16;
/// Shortest time that a daemon may set.
const SHORTEST: Duration = Duration::from_millis(1);

/// Knowledge of the client about a call of its control part.
#[derive(Debug)]
pub(super) struct Call {
    sap: Sap,
}

/// The seat, the state of its daemon, and what the client's user was told.
#[derive(Debug)]
pub(super) struct ControlSeat {
    pub(super) seat: Seat<LecDaemon, Call>,
    /// The daemon was told to stop.
    stopping: bool,
    /// Id of the last call that a daemon made. The next daemon uses higher ids.
    last_conn: ConnId,
    /// The user was told that the client has joined.
    joined: bool,
    /// The user was told of these associations.
    associated: BTreeSet<MacAddr>,
    /// The user waits for the owners of these addresses.
    asked: BTreeSet<MacAddr>,
    /// C27: the addresses that the user represents.
    remote: BTreeSet<MacAddr>,
    pub(super) mirror: Mirror,
    absence: Option<Absence>,
    adopted: Option<Instant>,
}

impl ControlSeat {
    pub(super) fn new(seat: Seat<LecDaemon, Call>) -> Self {
        Self {
            seat,
            stopping: false,
            last_conn: ConnId(0),
            joined: false,
            associated: BTreeSet::new(),
            asked: BTreeSet::new(),
            remote: BTreeSet::new(),
            mirror: Mirror::default(),
            absence: None,
            adopted: None,
        }
    }
    pub(super) fn next(&self) -> Option<Instant> {
        let absence = self.absence.as_ref().map(Absence::until);
        absence.into_iter().chain(self.seat.poll_timeout()).min()
    }
    /// Keeps a message for the next daemon; false if no daemon will continue from here, or if there is no room.
    fn keep(&mut self, message: ToDaemon<ToLecd>) -> bool {
        let absence = self.absence.as_mut();
        absence.is_some_and(|absence| absence.keep(message))
    }
    /// The same. Without room for the message, a daemon that continues from here will miss it.
    fn keep_or_drop(&mut self, message: ToDaemon<ToLecd>) {
        if !self.keep(message) && self.absence.is_some() {
            self.seat.drop_one();
        }
    }
    /// Sends a message to the daemon, or keeps it for the next daemon.
    fn tell_or_keep(&mut self, message: ToLecd, now: Instant) {
        match self.seat.is_told() {
            true => self.seat.tell(message, now),
            false => self.keep_or_drop(ToDaemon::Message(message)),
        }
    }
    fn tell_remote(&mut self, now: Instant) {
        let remote = self.remote.iter().copied().collect();
        self.seat.tell(ToLecd::SetRemote(remote), now);
    }
}

impl Rights<Call> for LecConfig {
    fn owns(&self, address: AtmAddress, _: Sap) -> bool {
        address == self.address
    }
    fn open(&self, connect: &AtmRequest, conns: &BTreeMap<ConnId, Handle<Call>>) -> Option<Call> {
        match connect {
            AtmRequest::Connect { sap, qos, .. } if self.may_ask_for(*sap, qos) => {
                self.has_room(conns).then(|| Call::new(*sap))
            }
            _ => None,
        }
    }
}

impl LecConfig {
    fn has_room(&self, conns: &BTreeMap<ConnId, Handle<Call>>) -> bool {
        conns.len() < self.limits.vccs + SERVER_CALLS
    }
}

impl Call {
    const fn new(sap: Sap) -> Self {
        Self { sap }
    }
}

impl Lec {
    /// Handles an input for the control part, a message of its daemon, or an event of the daemon's process.
    pub(super) fn control_input(&mut self, input: Input<'_>, now: Instant) -> Result<(), Refused> {
        let control = &mut self.control;
        match input {
            Input::Start => {
                control.seat.want(true);
                self.start_control(now);
            }
            Input::Stop => {
                control.seat.want(false);
                if !control.seat.is_told() {
                    self.drop_all(now);
                } else if !core::mem::replace(&mut control.stopping, true) {
                    control.seat.tell(ToLecd::Stop, now);
                }
            }
            Input::Atm(event) => self.atm(event, now),
            Input::SetTlvs(tlvs) => {
                if self.config.tlvs != tlvs {
                    self.config.tlvs.clone_from(&tlvs);
                    control.seat.tell(ToLecd::SetTlvs(tlvs), now);
                }
            }
            Input::SetRemote(macs) => {
                control.remote = macs.into_iter().take(MACS).collect();
                control.tell_remote(now);
            }
            Input::SetGroups(macs) => {
                let macs: Vec<MacAddr> = macs.into_iter().take(MACS).collect();
                self.config.want_groups(&macs);
                control.seat.tell(ToLecd::SetGroups(macs), now);
            }
            Input::TopologyChange(on) => control.tell_or_keep(ToLecd::TopologyChange(on), now),
            Input::Resolve { mac } => self.resolve(mac, now),
            Input::Lecd(_) if control.seat.daemon().is_some() => {
                return Err(Refused(
                    "the control part of this client runs in this process",
                ));
            }
            Input::Lecd(ProcessEvent::Came) => {
                control.seat.came();
                self.start_control(now);
            }
            Input::Lecd(ProcessEvent::Gone) => self.control_gone(now),
            Input::Lecd(ProcessEvent::Said(message)) => self.hear(message, now),
            Input::Transmit(_) => {} // Goes to the data plane.
        }
        Ok(())
    }

    fn resolve(&mut self, mac: MacAddr, now: Instant) {
        let control = &mut self.control;
        let served = control.seat.is_told() || control.absence.is_some();
        let room = control.asked.len() < self.config.limits.cache;
        if served && (room || control.asked.contains(&mac)) {
            control.asked.insert(mac);
            control.seat.tell(ToLecd::Resolve(mac), now);
        } else {
            let owner = None;
            self.out
                .push_back(Output::News(News::Resolved { mac, owner }));
        }
    }

    /// Passes on a message of the data plane.
    pub(super) fn data_said(&mut self, message: ToControl, now: Instant) {
        if self.control.seat.is_told() {
            self.control.seat.tell(ToLecd::Data(message), now);
        } else if matches!(message, ToControl::Control { .. }) {
            // The data plane sends every other message again when it needs to.
            let message = ToLecd::Data(message);
            self.control.keep_or_drop(ToDaemon::Message(message));
        }
    }

    // ---- life ----

    /// Tells the daemon to run, or to continue for its predecessor, if the client is wanted and the daemon was not
    /// told.
    pub(super) fn start_control(&mut self, now: Instant) {
        let control = &mut self.control;
        let Some(seed) = control.seat.begin(self.config.seed) else {
            return;
        };
        control.stopping = false;
        // An answer to a request of the previous daemon must match no request of this one.
        let transaction = match control.seat.is_first_life() {
            true => 0,
            false => (seed >> 32) as u32,
        };
        let absence = control.absence.take();
        control.adopted = absence.as_ref().map(|_| now);
        let start = ToLecd::Start {
            config: Box::new(LecConfig {
                seed,
                ..self.config.clone()
            }),
            transaction,
            conn: control.last_conn,
        };
        control.seat.tell(start, now);
        control.tell_remote(now);
        match absence {
            Some(absence) => self.hand_over(absence, now),
            None => control.seat.tell(ToLecd::Go(None), now),
        }
    }

    /// Closes all connections, as the operating system does when a process ends, and tells the user the consequences.
    fn drop_all(&mut self, now: Instant) {
        self.data.handle(ToData::Reset, now);
        let control = &mut self.control;
        let requests = control.seat.close_all().into_iter();
        self.out.extend(requests.map(Output::Atm));
        (control.absence, control.adopted) = (None, None);
        for mac in core::mem::take(&mut control.asked) {
            let owner = None;
            self.out
                .push_back(Output::News(News::Resolved { mac, owner }));
        }
        let losses = &mut control.mirror.counters.losses;
        *losses = losses.saturating_add(control.joined.into());
        control.mirror.clear();
        self.leave_user();
    }

    /// Tells the user that the client has left its ELAN.
    fn leave_user(&mut self) {
        let control = &mut self.control;
        for mac in core::mem::take(&mut control.associated) {
            self.out.push_back(Output::News(News::Dissociate { mac }));
        }
        if core::mem::take(&mut control.joined) {
            self.out.push_back(Output::News(News::Left));
        }
    }

    // ---- the ATM service ----

    fn atm(&mut self, event: AtmEvent<&[u8]>, now: Instant) {
        let control = &mut self.control;
        match event {
            AtmEvent::Up => {}
            AtmEvent::Received { conn, sdu } => match control.seat.conn_mut(conn) {
                Some(call) if call.up && call.own.sap != Sap::LANE_CONTROL => {
                    return control.seat.hold(conn, sdu);
                }
                Some(_) => {}
                None => {
                    let bad = &mut control.mirror.counters.bad;
                    *bad = bad.saturating_add(1);
                    return;
                }
            },
            AtmEvent::Incoming { conn, sap, .. } => {
                let room = self.config.has_room(control.seat.conns());
                let kept =
                    |control: &mut ControlSeat| control.keep(ToDaemon::Atm(event.into_owned()));
                if !room || !(control.seat.is_told() || kept(control)) {
                    let refused = &mut control.mirror.counters.calls_refused;
                    *refused = refused.saturating_add(1);
                    let cause = Cause::RESOURCES;
                    let request = AtmRequest::Release { conn, cause };
                    return self.out.push_back(Output::Atm(request));
                }
                control.seat.offered(conn, Call::new(sap));
                return control.seat.tell_atm(event, now);
            }
            AtmEvent::Connected { conn, .. } => {
                if !control.seat.connected(conn) {
                    return;
                }
            }
            AtmEvent::Released { conn, cause } => {
                if control.seat.released(conn).is_some() {
                    self.released(conn, cause, now);
                }
                return;
            }
            AtmEvent::Down | AtmEvent::PartyAdded { .. } | AtmEvent::PartyGone { .. } => return,
        }
        if control.seat.is_told() {
            control.seat.tell_atm(event, now);
        } else if !matches!(event, AtmEvent::Up) {
            control.keep_or_drop(ToDaemon::Atm(event.into_owned()));
        }
    }

    /// A call is gone. The daemon will report this, too; frames need not wait for the report.
    fn released(&mut self, conn: ConnId, cause: Cause, now: Instant) {
        self.data.handle(ToData::Close(conn), now);
        let control = &mut self.control;
        let essential = control.mirror.is_essential(conn);
        control.mirror.conns.remove(&conn);
        if control.seat.is_told() {
            return control
                .seat
                .tell_atm(AtmEvent::Released { conn, cause }, now);
        }
        if let Some(absence) = &mut control.absence {
            absence.forget(conn);
            if essential {
                self.give_up("a server's connection is gone, and the LANE daemon", now);
            }
        }
    }
}
