//! The seat of a control part in a process of its own, in the process of the data plane. See [`super::split`].
//!
//! What the operating system does for a process stands here: its listeners and calls are remembered, so that they end
//! with it, and what arrives on a connection before the data plane knows it waits. Nothing that the daemon says is
//! believed beyond what is its own: the client's address, its calls, as many of them as the limits allow.

mod hear;

use super::control::Role;
use super::split::{MACS, ToControl, ToData, ToLecd};
use super::{Control, Input, Lec, LecState, Output};
use crate::mix::{STEP, mix};
use crate::split::{ProcessEvent, ToDaemon};
use crate::{AtmEvent, AtmRequest, Cause, ConnId, Duration, Instant, Refused, Trace};
use aerostat_wire::lane::Tlv;
use aerostat_wire::{AtmAddress, MacAddr, Sap};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// How long a member whose daemon has died stays one without another daemon.
pub const GRACE: Duration = Duration::from_secs(10);
/// A daemon that took over and died within this time gets no successor that takes over.
const DOUBT: Duration = Duration::from_secs(5);
/// SDUs that wait on a connection for the data plane to know it; messages that wait for a daemon.
const WAITING: usize = 64;
/// Calls beside data direct connections.
const SERVER_CALLS: usize = 16;
/// Shortest time that a daemon may set.
const SHORTEST: Duration = Duration::from_millis(1);

/// A call of the daemon.
#[derive(Debug)]
struct Call {
    outgoing: bool,
    accepted: bool,
    up: bool,
    sap: Sap,
    /// What arrived before the data plane knew it.
    waiting: VecDeque<Vec<u8>>,
}

/// There is no daemon, and one may start.
#[derive(Debug)]
struct Absence {
    until: Instant,
    waiting: VecDeque<ToDaemon<ToLecd>>,
}

/// The seat.
#[derive(Debug, Default)]
pub(super) struct Away {
    /// The daemon's process is there.
    present: bool,
    /// The client is to run.
    wanted: bool,
    /// A daemon was told of it and has not ended.
    told: bool,
    /// It was told to stop.
    stopping: bool,
    starts: u64,
    /// Id of the last call that a daemon made.
    last_conn: ConnId,
    listens: BTreeSet<(AtmAddress, Sap)>,
    calls: BTreeMap<ConnId, Call>,
    /// What the user was told and what it waits for.
    joined: bool,
    associated: BTreeSet<MacAddr>,
    asked: BTreeSet<MacAddr>,
    absence: Option<Absence>,
    adopted: Option<Instant>,
}

impl Away {
    pub(super) fn next(&self) -> Option<Instant> {
        self.absence.as_ref().map(|absence| absence.until)
    }
    /// Keeps a message for the next daemon; false if there will be none, or no room.
    fn keep(&mut self, message: ToDaemon<ToLecd>) -> bool {
        let absence = self.absence.as_mut();
        let absence = absence.filter(|absence| absence.waiting.len() < WAITING);
        absence.is_some_and(|absence| {
            absence.waiting.push_back(message);
            true
        })
    }
}

impl Lec {
    fn tell(&mut self, message: ToLecd) {
        self.pass(ToDaemon::Message(message));
    }

    fn pass(&mut self, message: ToDaemon<ToLecd>) {
        self.out.push_back(Output::Lecd(message));
    }

    /// For the daemon, or for the next one.
    fn tell_or_keep(&mut self, message: ToLecd) {
        match &mut self.away {
            Some(away) if away.told => self.tell(message),
            Some(away) => {
                away.keep(ToDaemon::Message(message));
            }
            None => {}
        }
    }

    pub(super) fn away_input(&mut self, input: Input<'_>, now: Instant) {
        let Some(away) = &mut self.away else {
            return;
        };
        match input {
            Input::Start => {
                away.wanted = true;
                self.start_away(now);
            }
            Input::Stop => {
                away.wanted = false;
                if !away.told {
                    self.drop_all(now);
                } else if !core::mem::replace(&mut away.stopping, true) {
                    self.tell(ToLecd::Stop);
                }
            }
            Input::Atm(event) => self.away_atm(event, now),
            Input::SetTlvs(tlvs) => self.away_tlvs(tlvs),
            Input::SetRemote(macs) => {
                self.control.remote = macs.into_iter().take(MACS).collect();
                if away.told {
                    self.tell_remote();
                }
            }
            Input::SetGroups(macs) => {
                let macs: Vec<MacAddr> = macs.into_iter().take(MACS).collect();
                self.control.want_groups(&macs);
                if away.told {
                    self.tell(ToLecd::SetGroups(macs));
                }
            }
            Input::TopologyChange(on) => self.tell_or_keep(ToLecd::TopologyChange(on)),
            Input::Resolve { mac } => {
                let served = away.told || away.absence.is_some();
                let room = away.asked.len() < self.control.config.limits.cache;
                if served && (room || away.asked.contains(&mac)) {
                    away.asked.insert(mac);
                    if away.told {
                        self.tell(ToLecd::Resolve(mac));
                    }
                } else {
                    let owner = None;
                    self.out.push_back(Output::Resolved { mac, owner });
                }
            }
            Input::Lecd(ProcessEvent::Came) => {
                away.present = true;
                self.start_away(now);
            }
            Input::Lecd(ProcessEvent::Gone) => self.away_gone(now),
            Input::Lecd(ProcessEvent::Said(message)) => self.hear(message, now),
            Input::Transmit(_) => {} // Goes to the data plane.
        }
    }

    pub(super) fn away_timeout(&mut self, now: Instant) {
        let absence = self.away.as_ref().and_then(|away| away.absence.as_ref());
        if absence.is_some_and(|absence| absence.until <= now) {
            self.give_up("no LANE daemon came", now);
        }
    }

    /// What the data plane says while the control part is away.
    pub(super) fn away_data(&mut self, message: ToControl) {
        let Some(away) = &mut self.away else {
            return;
        };
        if away.told {
            self.tell(ToLecd::Data(message));
        } else if matches!(message, ToControl::Control { .. }) {
            // Everything else is asked again.
            away.keep(ToDaemon::Message(ToLecd::Data(message)));
        }
    }

    fn away_tlvs(&mut self, tlvs: Vec<Tlv>) {
        if self.control.config.tlvs != tlvs {
            self.control.config.tlvs.clone_from(&tlvs);
            if self.away.as_ref().is_some_and(|away| away.told) {
                self.tell(ToLecd::SetTlvs(tlvs));
            }
        }
    }

    fn tell_remote(&mut self) {
        let remote = self.control.remote.iter().copied().collect();
        self.tell(ToLecd::SetRemote(remote));
    }

    // ---- life ----

    /// Tells the daemon to run, or to go on, if it should and was not told.
    fn start_away(&mut self, now: Instant) {
        let Some(away) = &mut self.away else {
            return;
        };
        if !away.present || away.told || !away.wanted {
            return;
        }
        (away.told, away.stopping) = (true, false);
        away.starts += 1;
        let seed = mix(self.control.config.seed ^ away.starts.wrapping_mul(STEP));
        let absence = away.absence.take();
        away.adopted = absence.as_ref().map(|_| now);
        let asked: Vec<MacAddr> = away.asked.iter().copied().collect();
        let start = ToLecd::Start {
            config: Box::new(super::LecConfig {
                seed,
                ..self.control.config.clone()
            }),
            // Answers to the previous daemon's requests must not match.
            transaction: (seed >> 32) as u32,
            conn: away.last_conn,
        };
        self.tell(start);
        self.tell_remote();
        let Some(absence) = absence else {
            self.tell(ToLecd::Go(None));
            return;
        };
        self.reconcile(now);
        let (conns, entries) = self.control.rows(now);
        for row in conns {
            self.tell(ToLecd::Conn(row));
        }
        for row in entries {
            self.tell(ToLecd::Entry(row));
        }
        let standing = Box::new(self.control.standing());
        self.tell(ToLecd::Go(Some(standing)));
        for message in absence.waiting {
            self.pass(message);
        }
        for mac in asked {
            self.tell(ToLecd::Resolve(mac));
        }
    }

    /// What the daemon that died had said in part only.
    fn reconcile(&mut self, now: Instant) {
        let Some(away) = &mut self.away else {
            return;
        };
        let cache = &self.control.cache;
        let known = |mac: &MacAddr| cache.get(mac).is_some_and(|entry| entry.associated);
        away.associated.retain(|mac| {
            let stays = known(mac);
            if !stays {
                self.out.push_back(Output::Dissociate { mac: *mac });
            }
            stays
        });
        let macs: Vec<MacAddr> = self.data.destinations().collect();
        for mac in macs.into_iter().filter(|mac| !cache.contains_key(mac)) {
            let asked = false;
            self.data.handle(ToData::Unresolved { mac, asked }, now);
        }
    }

    /// The daemon's process is gone.
    fn away_gone(&mut self, now: Instant) {
        let Some(away) = &mut self.away else {
            return;
        };
        away.present = false;
        if !core::mem::take(&mut away.told) {
            return;
        }
        let young = away.adopted.is_some_and(|at| now < at + DOUBT);
        self.release_all_but_established();
        let Some(away) = &mut self.away else {
            return;
        };
        let member = self.control.state == LecState::Operational
            && away.joined
            && self.data.lecid() == self.control.lecid
            && self.control.has_servers()
            && self.data.bus().is_some()
            && self.data.bus() == self.control.bus_conn();
        if member && away.wanted && !away.stopping && !young {
            let (until, waiting) = (now + GRACE, VecDeque::new());
            away.absence = Some(Absence { until, waiting });
            let seconds = GRACE.as_secs();
            let text = format!("the LANE daemon died; frames go on for {seconds} s");
            let trace = Trace::milestone("lane.unattended", text).with("seconds", seconds);
            self.out.push_back(Output::Trace(trace));
        } else {
            self.give_up("the LANE daemon died", now);
        }
    }

    /// Calls that were being set up end; so do those of which only one half knows.
    fn release_all_but_established(&mut self) {
        let Some(away) = &mut self.away else {
            return;
        };
        let (conns, data, out) = (&mut self.control.conns, &mut self.data, &mut self.out);
        away.calls.retain(|conn, call| {
            let known = conns.get(conn).filter(|known| known.vc.is_some());
            let stays = call.up
                && known.is_some_and(|known| match known.role {
                    Role::ControlDirect | Role::Distribute => true,
                    Role::ConfigDirect => false,
                    Role::MulticastSend
                    | Role::MulticastForward
                    | Role::SelectiveSend
                    | Role::DataDirect => data.owns(*conn),
                });
            if !stays {
                let (conn, cause) = (*conn, Cause::NORMAL);
                out.push_back(Output::Atm(AtmRequest::Release { conn, cause }));
            }
            stays
        });
        conns.retain(|conn| away.calls.contains_key(conn));
        let closed = data.connections();
        let closed = closed.filter(|conn| !away.calls.contains_key(conn));
        for conn in closed.collect::<Vec<_>>() {
            data.handle(ToData::Close(conn), Instant::ZERO);
        }
    }

    /// The client is no member any more.
    fn give_up(&mut self, why: &str, now: Instant) {
        let (name, text) = if self.away.as_ref().is_some_and(|away| away.joined) {
            (
                "lane.lost",
                format!("leaves ELAN {}: {why}", self.control.elan),
            )
        } else {
            ("lane.failed", why.to_owned())
        };
        self.out
            .push_back(Output::Trace(Trace::milestone(name, text)));
        self.drop_all(now);
    }

    /// What the operating system does when a process is gone: its sockets close. The user hears what that means.
    fn drop_all(&mut self, now: Instant) {
        let Some(away) = &mut self.away else {
            return;
        };
        self.data.handle(ToData::Reset, now);
        for (conn, _) in core::mem::take(&mut away.calls) {
            let cause = Cause::NORMAL;
            let request = AtmRequest::Release { conn, cause };
            self.out.push_back(Output::Atm(request));
        }
        for (address, sap) in core::mem::take(&mut away.listens) {
            let request = AtmRequest::Unlisten { address, sap };
            self.out.push_back(Output::Atm(request));
        }
        (away.absence, away.adopted) = (None, None);
        for mac in core::mem::take(&mut away.asked) {
            let owner = None;
            self.out.push_back(Output::Resolved { mac, owner });
        }
        let lost = away.joined;
        self.leave_user();
        let fresh = Control::new(self.control.config.clone());
        let old = core::mem::replace(&mut self.control, fresh);
        self.control.counters = old.counters;
        let losses = &mut self.control.counters.losses;
        *losses = losses.saturating_add(lost.into());
        self.control.remote = old.remote;
    }

    /// The user hears that the client has left.
    fn leave_user(&mut self) {
        let Some(away) = &mut self.away else {
            return;
        };
        for mac in core::mem::take(&mut away.associated) {
            self.out.push_back(Output::Dissociate { mac });
        }
        if core::mem::take(&mut away.joined) {
            self.out.push_back(Output::Left);
        }
    }

    // ---- the ATM service ----

    fn away_atm(&mut self, event: AtmEvent<&[u8]>, now: Instant) {
        let Some(away) = &mut self.away else {
            return;
        };
        match event {
            AtmEvent::Up => {}
            AtmEvent::Received { conn, sdu } => match away.calls.get_mut(&conn) {
                Some(call) if call.sap != Sap::LANE_CONTROL => {
                    if call.waiting.len() < WAITING {
                        call.waiting.push_back(sdu.to_vec());
                    }
                    return;
                }
                Some(_) => {}
                None => return,
            },
            AtmEvent::Incoming { conn, sap, .. } => {
                let room = away.calls.len() < self.control.config.limits.vccs + SERVER_CALLS;
                let message = ToDaemon::Atm(event.into_owned());
                if room && (away.told || away.keep(message.clone())) {
                    away.calls.insert(conn, Call::new(false, sap));
                    if away.told {
                        self.pass(message);
                    }
                } else {
                    let refused = &mut self.control.counters.calls_refused;
                    *refused = refused.saturating_add(1);
                    let cause = Cause::RESOURCES;
                    let request = AtmRequest::Release { conn, cause };
                    self.out.push_back(Output::Atm(request));
                }
                return;
            }
            AtmEvent::Connected { conn, .. } => match away.calls.get_mut(&conn) {
                Some(call) => call.up = true,
                None => return,
            },
            AtmEvent::Released { conn, cause } => {
                if away.calls.remove(&conn).is_none() {
                    return;
                }
                return self.away_released(conn, cause, now);
            }
            AtmEvent::Down | AtmEvent::PartyAdded { .. } | AtmEvent::PartyGone { .. } => return,
        }
        if away.told {
            self.pass(ToDaemon::Atm(event.into_owned()));
        } else if !matches!(event, AtmEvent::Up) {
            away.keep(ToDaemon::Atm(event.into_owned()));
        }
    }

    /// A call is gone. The daemon will say so too; frames need not wait for it.
    fn away_released(&mut self, conn: ConnId, cause: Cause, now: Instant) {
        self.data.handle(ToData::Close(conn), now);
        let essential = self.control.is_essential(conn);
        self.control.conns.remove(&conn);
        let Some(away) = &mut self.away else {
            return;
        };
        if away.told {
            return self.pass(ToDaemon::Atm(AtmEvent::Released { conn, cause }));
        }
        if let Some(absence) = &mut away.absence {
            absence
                .waiting
                .retain(|message| about(message) != Some(conn));
            if essential {
                self.give_up("a server's connection is gone, and the LANE daemon", now);
            }
        }
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

impl Call {
    const fn new(outgoing: bool, sap: Sap) -> Self {
        Self {
            outgoing,
            accepted: outgoing,
            up: false,
            sap,
            waiting: VecDeque::new(),
        }
    }
}

/// For the machine: whether this input makes sense for a client that is, or is not, split.
pub(super) const fn concerns_daemon(input: &Input<'_>) -> bool {
    matches!(input, Input::Lecd(_))
}

/// See [`Lec::handle_input`](crate::Machine::handle_input).
pub(super) const NOT_SPLIT: Refused = Refused("the daemon of this client is no process of its own");
