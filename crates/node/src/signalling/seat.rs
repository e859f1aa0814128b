//! The seat of the signalling daemon beside the host half: the daemon's starts and ends, and its messages.

use super::connections::{Conn, Party};
use super::user_data::{AAL_UNSUPPORTED, End};
use super::{Output, Phase, Signalling};
use aerostat_proto::interface;
use aerostat_proto::sigd::{FromSigd, LinkInfo, Offer, SDU_MAX, SIGNALLING, Start, ToSigd};
use aerostat_proto::split::{FromDaemon, ProcessEvent};
use aerostat_proto::uni::{self, CallId};
use aerostat_proto::{AtmEvent, AtmRequest, Cause, Instant, PartyId, Refused, Trace, sscop};
use aerostat_wire::counted;
use aerostat_wire::q2931::UserData;
use aerostat_wire::{AalType, Qos, Sap, TrafficParams, Vc};

/// Cause of connections that end with the daemon, and of calls without a daemon.
pub(super) const NO_DAEMON: Cause = Cause::TEMPORARY;
pub(super) const ABSENT: Refused = Refused("the signalling daemon does not run");

/// A message from a daemon in a process of its own, or an event of this process.
pub type DaemonEvent = ProcessEvent<FromDaemon<FromSigd>>;

/// Presence of a daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Presence {
    /// No daemon has started yet: calls wait.
    Awaited,
    /// The daemon was told to start, and has not answered: its messages belong to an earlier start.
    Starts,
    /// The daemon serves.
    Serves,
    /// The daemon releases its calls.
    Ending,
    /// The daemon is gone: calls are refused.
    Gone,
}

impl Presence {
    /// True if the daemon decides about calls.
    pub(super) const fn serves(self) -> bool {
        matches!(self, Self::Serves)
    }
    /// True if calls are refused.
    pub(super) const fn is_absent(self) -> bool {
        matches!(self, Self::Ending | Self::Gone)
    }
}

aerostat_proto::counters! {
    /// Counters of the boundary between the two halves.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct DaemonCounters {
        /// Daemons that started in a process of their own.
        pub started: u64,
        /// Daemons that ended, including daemons that began anew.
        pub ended: u64,
        /// Connections that ended with a daemon.
        pub lost_calls: u64,
        /// Requests refused because there was no daemon.
        pub absent: u64,
        /// Signalling SDUs of the network that arrived while there was no daemon.
        pub unread: u64,
        /// Messages about calls and leaves that are unknown or over: most of these messages crossed another message.
        pub stale: u64,
        /// Messages that a daemon must not send.
        pub refused: u64,
    }
}

impl Signalling {
    /// A message from a daemon in a process of its own, or an event of this process.
    pub(super) fn daemon_event(&mut self, event: DaemonEvent, now: Instant) -> Result<(), Refused> {
        if self.seat.daemon().is_some() {
            return Err(Refused("the signalling daemon is no process of its own"));
        }
        match event {
            ProcessEvent::Came => {
                self.daemon_left("was replaced");
                self.seat.came();
                self.daemon_counters.started += 1;
                self.start_daemon(now);
            }
            ProcessEvent::Gone => {
                self.daemon_left("died");
                self.seat.gone();
                self.presence = Presence::Gone;
            }
            ProcessEvent::Said(message) => self.daemon_said(message, now),
        }
        Ok(())
    }

    /// Tells a daemon to start. Listeners and users are the host half's, and no daemon needs to know them.
    pub(super) fn start_daemon(&mut self, now: Instant) {
        let params = self.config.interface;
        let lives = self.life as u8;
        self.life = self.life.wrapping_add(1);
        self.presence = Presence::Starts;
        self.seat.begin_anew();
        let version = self.version;
        let start = Start {
            life: self.life,
            uni: uni::Params {
                version,
                ..params.uni
            },
            sscop: sscop::Params {
                mode: self.sscop_mode(),
                // An odd stride that differs from that of a node's lives.
                initial_sq: (params.sscop.initial_sq).wrapping_add(lives.wrapping_mul(91)),
                ..params.sscop
            },
            restart_wait: params.restart_wait,
            reestablish: params.reestablish,
        };
        self.tell(ToSigd::Start(Box::new(start)), now);
        if self.line {
            self.seat.tell_atm(AtmEvent::Up, now);
        }
    }

    /// The SSCOP mode of the interface.
    pub(crate) fn sscop_mode(&self) -> sscop::Mode {
        let params = &self.config.interface;
        match self.version == params.uni.version {
            true => params.sscop.mode,
            false => interface::mode_of(self.version),
        }
    }

    /// There is no daemon any more: does what a kernel does when the sockets of signalling close.
    fn daemon_left(&mut self, how: &str) {
        if matches!(self.presence, Presence::Awaited | Presence::Gone) {
            return;
        }
        self.daemon_counters.ended += 1;
        let ended = self.presence == Presence::Ending;
        self.presence = Presence::Gone;
        self.link = LinkInfo::default();
        let lost = self.close_switched();
        if !ended {
            let text = format!(
                "the signalling daemon {how}: {} closed, permanent ones go on",
                counted(lost, "connection is", "connections are")
            );
            self.trace(Trace::milestone("signalling.gone", text).with("lost", lost));
        }
    }

    fn link_is(&mut self, up: bool) {
        if core::mem::replace(&mut self.up, up) != up {
            let event = if up { AtmEvent::Up } else { AtmEvent::Down };
            self.broadcast(&event);
        }
    }

    /// The daemon says whether the link is up: calls that waited for it are made.
    fn link_told(&mut self, up: bool, now: Instant) {
        self.link_is(up);
        if up {
            for (_, call) in core::mem::take(&mut self.waiting) {
                self.set_up(call, now);
            }
        }
    }

    /// Every switched connection ends. The number of those that had a user.
    fn close_switched(&mut self) -> usize {
        self.link_is(false);
        self.waiting.clear();
        let switched = self.conns.iter().filter(|(_, conn)| !conn.permanent);
        let switched: Vec<CallId> = switched.map(|(call, _)| *call).collect();
        let owned = |call: &&CallId| self.conns.get(call).is_some_and(|c| c.owner.is_some());
        let lost = switched.iter().filter(owned).count();
        for call in switched {
            self.gone(call, NO_DAEMON);
        }
        self.daemon_counters.lost_calls += lost as u64;
        lost
    }

    /// An SDU of VPI 0 VCI 5 for the daemon.
    pub(super) fn signalled(&mut self, sdu: &[u8], now: Instant) {
        match self.presence {
            Presence::Starts | Presence::Serves | Presence::Ending => {
                let conn = SIGNALLING;
                self.seat.tell_atm(AtmEvent::Received { conn, sdu }, now);
            }
            Presence::Awaited | Presence::Gone => self.daemon_counters.unread += 1,
        }
    }

    /// Handles what the daemon says, in this process or in its own.
    pub(super) fn daemon_said(&mut self, message: FromDaemon<FromSigd>, now: Instant) {
        match message {
            FromDaemon::Atm(request) => self.daemon_sends(request),
            FromDaemon::Trace(trace) => self.trace(trace),
            FromDaemon::Message(FromSigd::Begun { life }) => {
                if life == self.life && self.presence == Presence::Starts {
                    self.presence = Presence::Serves;
                    self.set_up_local(now);
                }
            }
            FromDaemon::Message(message) if self.presence == Presence::Serves => {
                self.message(message, now);
            }
            // What a regular end brings: the calls are over for their users already.
            FromDaemon::Message(
                FromSigd::Released { .. }
                | FromSigd::PartyGone { .. }
                | FromSigd::Status(_)
                | FromSigd::Link { .. },
            ) if self.presence == Presence::Ending => {}
            FromDaemon::Message(_) => self.seat.stale(),
            // The end of its process is reported, too.
            FromDaemon::Ended(_) => {}
        }
    }

    /// The only request of the daemon to the ATM service: an SDU for VPI 0 VCI 5.
    fn daemon_sends(&mut self, request: AtmRequest) {
        match request {
            AtmRequest::Send {
                conn: SIGNALLING,
                sdu,
            } if !sdu.is_empty() && sdu.len() <= SDU_MAX => match self.presence {
                Presence::Serves | Presence::Ending => {
                    let vc = Vc::SIGNALLING;
                    self.outputs.push_back(Output::Send { vc, sdu });
                }
                Presence::Awaited | Presence::Starts | Presence::Gone => {
                    self.seat.stale();
                }
            },
            _ => self.seat.refuse(),
        }
    }

    /// A message of a daemon that serves.
    fn message(&mut self, message: FromSigd, now: Instant) {
        match message {
            // Handled by the caller.
            FromSigd::Begun { .. } => {}
            FromSigd::Link { up } => self.link_told(up, now),
            FromSigd::Offered(offer) => self.offered(*offer, now),
            FromSigd::Join { call } => self.join(call),
            FromSigd::Connected {
                call,
                vc,
                qos,
                data,
            } => {
                if self.concerns(call) {
                    self.connected(call, (vc, data), &qos, now);
                }
            }
            FromSigd::Clearing { call, cause, data } => {
                if self.concerns(call) {
                    self.clearing(call, End { cause, data });
                }
            }
            FromSigd::Released { call, cause, data } => match self.conns.get(&call) {
                Some(conn) if conn.permanent => self.seat.refuse(),
                Some(_) => self.confirmed(call, End { cause, data }, now),
                None => self.seat.stale(),
            },
            FromSigd::PartyAdded { call, party, data } => {
                if self.concerns(call) {
                    self.party_added(call, party, data);
                }
            }
            FromSigd::PartyGone {
                call,
                party,
                cause,
                data,
            } => {
                if self.concerns(call) {
                    self.party_gone(call, party, End { cause, data });
                }
            }
            FromSigd::Status(link) => self.link = link,
            FromSigd::Ending => {
                self.presence = Presence::Ending;
                let lost = self.close_switched();
                let closed = counted(lost, "connection is closed", "connections are closed");
                let text = format!("the signalling daemon ends: {closed}");
                self.trace(Trace::milestone("signalling.gone", text).with("lost", lost));
            }
            FromSigd::Again => {
                self.daemon_left("begins anew");
                self.daemon_counters.started += 1;
                self.start_daemon(now);
            }
        }
    }

    /// True if a message concerns a call of a user.
    fn concerns(&mut self, call: CallId) -> bool {
        match self.conns.get(&call) {
            Some(conn) if conn.permanent || conn.local.is_some() => self.seat.refuse(),
            Some(conn) if conn.owner.is_some() => return true,
            // The user has released the call meanwhile, or the call was refused.
            Some(_) | None => self.seat.stale(),
        }
        false
    }

    /// A call is offered: finds its listener, or refuses the call.
    fn offered(&mut self, offer: Offer, now: Instant) {
        let Offer {
            call,
            calling,
            called,
            bllis,
            bhli,
            qos,
            multipoint,
            aal,
            vc,
            data,
        } = offer;
        if call.0 < CallId::INCOMING || self.conns.contains_key(&call) {
            self.seat.refuse();
            return;
        }
        let first = bllis.first().copied();
        let choice = bllis.len() > 1;
        let longest = qos.tx.max_sdu.max(qos.rx.max_sdu);
        let taken = match self.listeners.find(called, bllis, bhli, longest) {
            None => {
                self.counters.incompatible += 1;
                Err(Cause::INCOMPATIBLE)
            }
            Some((user, _)) if !self.has_room(user) => {
                self.counters.refused += 1;
                Err(Cause::RESOURCES)
            }
            Some((user, _)) if aal == AalType::Aal0 && self.sockets != Some(user) => {
                self.counters.refused += 1;
                Err(AAL_UNSUPPORTED)
            }
            Some(taken) => Ok(taken),
        };
        let (user, sap) = match taken {
            Ok(taken) => taken,
            Err(cause) => {
                let text = format!("call to {called} refused: {cause}");
                self.trace(Trace::detail("signalling.refused", text));
                return self.tell(ToSigd::Refuse { call, cause }, now);
            }
        };
        let conn = self.new_conn_id(user);
        self.counters.incoming += 1;
        let own = Sap {
            // The B-LLI that was chosen, if there was a choice.
            blli: sap.blli.or(first),
            bhli,
        };
        let made = Conn {
            calling,
            multipoint,
            outgoing: false,
            choice,
            aal,
            vc,
            ..Conn::new((user, conn), Phase::Offered, called, (own, qos))
        };
        self.insert(call, made);
        let heard = self.heard(call, data);
        let event = AtmEvent::Incoming {
            conn,
            calling,
            called,
            sap,
            qos,
            multipoint,
        };
        self.tell_user(user, event, heard);
    }

    fn connected(&mut self, call: CallId, (vc, data): (Vc, UserData), given: &Qos, now: Instant) {
        let Some(conn) = self.conns.get(&call) else {
            return;
        };
        let waits = matches!(conn.phase, Phase::Calling | Phase::Accepted);
        let label = match conn.open {
            true => conn.vc == Some(vc),
            false => self.is_free(vc),
        };
        match agreed(&conn.qos, given).filter(|_| waits && label) {
            Some(qos) => {
                if let Some(conn) = self.conns.get_mut(&call) {
                    conn.qos = qos;
                }
                self.usable(call, vc, data);
            }
            None => {
                self.seat.refuse();
                if waits {
                    self.unusable(call, now);
                }
            }
        }
    }

    /// A call cannot be used with its label or traffic: it ends.
    pub(super) fn unusable(&mut self, call: CallId, now: Instant) {
        let cause = Cause::VC_UNAVAILABLE;
        self.clearing(call, cause);
        let data = UserData::default();
        self.tell(ToSigd::Release { call, cause, data }, now);
    }

    fn party_added(&mut self, call: CallId, party: PartyId, data: UserData) {
        let Some(known) = self.conns.get_mut(&call) else {
            return;
        };
        match (known.parties.get_mut(&party), known.owner) {
            (Some(state @ Party::Adding), Some((user, conn))) => {
                *state = Party::Active;
                let heard = self.heard(call, data);
                self.tell_user(user, AtmEvent::PartyAdded { conn, party }, heard);
            }
            (Some(Party::Active), _) => self.seat.refuse(),
            // The user has dropped the leaf meanwhile, or the leaf is unknown.
            _ => self.seat.stale(),
        }
    }
}

/// The requested or offered traffic with the values that the network granted; `None` if the values do not match.
fn agreed(asked: &Qos, given: &Qos) -> Option<Qos> {
    let tx = given_of(&asked.tx, &given.tx)?;
    let rx = given_of(&asked.rx, &given.rx)?;
    Some(Qos { tx, rx })
}

fn given_of(asked: &TrafficParams, given: &TrafficParams) -> Option<TrafficParams> {
    if asked.category != given.category {
        return None;
    }
    let mut out = *asked;
    if let (Some(asked), Some(given)) = (asked.max_pcr, given.max_pcr) {
        out.max_pcr = Some(asked.min(given));
    }
    if given.max_sdu != 0 && (out.max_sdu == 0 || given.max_sdu < out.max_sdu) {
        out.max_sdu = given.max_sdu;
    }
    Some(out)
}
