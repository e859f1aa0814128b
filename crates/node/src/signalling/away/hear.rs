//! Starts, ends and messages of the daemon.

use super::{
    AtmEvent, AtmRequest, Away, BTreeSet, Cause, Conn, ConnId, FromDaemon, FromSigd, Instant,
    NOBODY, Output, Phase, Presence, ProcessEvent, SigdEvent, Start, ToSigd, Trace, UserId, UserNo,
    Vc, VecDeque,
};
use aerostat_proto::sigd::{LinkInfo, SDU_MAX};
use aerostat_wire::{AtmAddress, Qos, Sap, TrafficParams};

impl Away {
    /// A message from the daemon, or an event of its process.
    pub fn hear(&mut self, event: SigdEvent, _: Instant) {
        match event {
            ProcessEvent::Came => self.came(),
            ProcessEvent::Gone => {
                self.left("died");
                self.presence = Presence::Gone;
            }
            ProcessEvent::Said(FromDaemon::Message(message)) => self.said(message),
            ProcessEvent::Said(FromDaemon::Trace(trace)) => self.trace(trace),
            // The end of its process is reported, too.
            ProcessEvent::Said(FromDaemon::Ended(_)) => {}
            // The daemon is the ATM service itself, so it has no service to ask.
            ProcessEvent::Said(FromDaemon::Atm(_)) => self.own.refused += 1,
        }
    }

    fn came(&mut self) {
        self.left("was replaced");
        self.presence = Presence::Here;
        let lives = self.own.came;
        self.own.came += 1;
        self.life = self.life.wrapping_add(1);
        self.begun = false;
        let (limits, sscop) = (self.config.limits, self.config.interface.sscop);
        self.say(ToSigd::Start(Start {
            life: self.life,
            version: self.version,
            // An odd increment that differs from that of a node's lives.
            initial_sq: sscop
                .initial_sq
                .wrapping_add((lives as u8).wrapping_mul(91)),
            wait: self.config.wait,
            first_incoming: self.next_incoming,
            users: limits.users,
            calls_per_user: limits.calls_per_user,
            listeners_per_user: limits.listeners_per_user,
            parties_per_call: limits.parties_per_call,
        }));
        for number in self.numbers.keys().copied().collect::<Vec<_>>() {
            self.say(ToSigd::AddUser(number));
        }
        for (address, sap, user, max_sdu) in self.listeners.iter().collect::<Vec<_>>() {
            let request = AtmRequest::Listen {
                address,
                sap,
                max_sdu,
            };
            self.demand(user, request);
        }
        if self.line {
            self.say(ToSigd::Line { up: true });
        }
        for (_, number) in core::mem::take(&mut self.waiting) {
            self.call(number);
        }
    }

    /// There is no daemon any more: does what the kernel does when the sockets of signalling close.
    fn left(&mut self, how: &str) {
        if !matches!(self.presence, Presence::Here | Presence::Ending) {
            return;
        }
        self.own.gone += 1;
        let ended = self.presence == Presence::Ending;
        self.presence = Presence::Gone;
        self.link = LinkInfo::default();
        let lost = self.close_all();
        if !ended {
            let text = format!(
                "the signalling manager {how}: {lost} connections are closed, permanent ones go on"
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

    /// Every switched connection ends.
    fn close_all(&mut self) -> usize {
        self.link_is(false);
        let switched = self.conns.iter().filter(|(_, conn)| !conn.permanent);
        let switched: Vec<ConnId> = switched.map(|(number, _)| *number).collect();
        self.own.lost_calls += switched.len() as u64;
        for number in &switched {
            self.gone(*number, NOBODY);
        }
        switched.len()
    }

    fn said(&mut self, message: FromSigd) {
        let serves = self.presence == Presence::Here && self.begun;
        match message {
            FromSigd::Begun { life } => {
                self.begun |= life == self.life && self.presence == Presence::Here;
            }
            FromSigd::Signalling(sdu) if serves || self.presence == Presence::Ending => {
                if sdu.is_empty() || sdu.len() > SDU_MAX {
                    self.own.refused += 1;
                } else {
                    let vc = Vc::SIGNALLING;
                    self.outputs.push_back(Output::Send { vc, sdu });
                }
            }
            FromSigd::Status(link) if serves => self.link = link,
            FromSigd::Link { up } if serves => self.link_is(up),
            FromSigd::OpenVc { conn, vc, qos } if serves => self.opened(conn, vc, &qos),
            FromSigd::Event { user, event } if serves => self.heard(user, event),
            FromSigd::Ending if serves => {
                self.presence = Presence::Ending;
                let lost = self.close_all();
                let text = format!("the signalling manager ends: {lost} connections are closed");
                self.trace(Trace::milestone("signalling.gone", text).with("lost", lost));
            }
            FromSigd::Again if serves => {
                self.left("begins anew");
                self.came();
            }
            FromSigd::Signalling(_)
            | FromSigd::Status(_)
            | FromSigd::Link { .. }
            | FromSigd::OpenVc { .. }
            | FromSigd::Event { .. } => self.own.stale += 1,
            FromSigd::Ending | FromSigd::Again => self.own.stale += 1,
        }
    }

    fn heard(&mut self, user: UserNo, event: AtmEvent<Vec<u8>>) {
        let Some(user) = self.numbers.get(&user).copied() else {
            self.own.stale += 1;
            return;
        };
        let Some(number) = event.conn() else {
            self.own.refused += 1;
            return;
        };
        if let AtmEvent::Incoming {
            conn,
            calling,
            called,
            sap,
            qos,
            multipoint,
        } = event
        {
            let offered = (calling, called, sap, qos, multipoint);
            return self.offered(user, conn, offered);
        }
        match self.conns.get(&number) {
            None => {
                self.own.stale += 1;
                return;
            }
            Some(conn) if conn.user != user || conn.permanent => {
                self.own.refused += 1;
                return;
            }
            Some(_) => {}
        }
        match event {
            AtmEvent::Connected { vc, .. } => self.connected(number, vc),
            AtmEvent::Released { cause, .. } => self.gone(number, cause),
            AtmEvent::PartyAdded { party, .. } => {
                let known = self.conns.get(&number);
                match known.map(|conn| (conn.id, conn.parties.contains(&party))) {
                    Some((conn, true)) => self.event(user, AtmEvent::PartyAdded { conn, party }),
                    _ => {
                        // The call was dropped meanwhile, or reported as gone by a message about a former call with
                        // this number.
                        self.own.stale += 1;
                        let conn = number;
                        self.demand(user, AtmRequest::DropParty { conn, party });
                    }
                }
            }
            AtmEvent::PartyGone { party, cause, .. } => {
                let known = self.conns.get_mut(&number);
                match known.map(|conn| (conn.id, conn.parties.remove(&party))) {
                    Some((conn, true)) => {
                        self.event(user, AtmEvent::PartyGone { conn, party, cause });
                    }
                    _ => self.own.stale += 1,
                }
            }
            AtmEvent::Incoming { .. }
            | AtmEvent::Up
            | AtmEvent::Down
            | AtmEvent::Received { .. } => self.own.refused += 1,
        }
    }

    fn offered(
        &mut self,
        user: UserId,
        conn: ConnId,
        offered: (Option<AtmAddress>, AtmAddress, Sap, Qos, bool),
    ) {
        let (calling, called, sap, qos, multipoint) = offered;
        if conn.0 < ConnId::INCOMING || self.conns.contains_key(&conn) {
            self.own.refused += 1;
            return;
        }
        let next = conn.0.wrapping_add(1) | ConnId::INCOMING;
        self.next_incoming = next;
        let cause = if !self.listeners.is_of(user, (called, sap)) {
            self.own.stale += 1;
            Some(Cause::INCOMPATIBLE)
        } else if self.calls_of(user) >= self.config.limits.calls_per_user {
            self.own.refused += 1;
            Some(Cause::RESOURCES)
        } else {
            None
        };
        if let Some(cause) = cause {
            return self.demand(user, AtmRequest::Release { conn, cause });
        }
        self.counters.incoming += 1;
        let made = Conn {
            user,
            id: conn,
            phase: Phase::Offered,
            calling,
            called,
            sap,
            qos,
            multipoint,
            outgoing: false,
            permanent: false,
            vc: None,
            parties: BTreeSet::new(),
            early: VecDeque::new(),
        };
        self.insert(conn, made);
        let event = AtmEvent::Incoming {
            conn,
            calling,
            called,
            sap,
            qos,
            multipoint,
        };
        self.event(user, event);
    }

    /// The daemon reports that a call has a VC: from the called side's answer on, the caller may send.
    fn opened(&mut self, number: ConnId, vc: Vc, given: &Qos) {
        let Some(conn) = self.conns.get(&number) else {
            self.own.stale += 1;
            return;
        };
        let waits = matches!(conn.phase, Phase::Calling | Phase::Accepted) && conn.vc.is_none();
        match agreed(&conn.qos, given).filter(|_| waits && self.is_free(vc)) {
            Some(qos) => self.open(number, vc, qos),
            None => self.unusable(number),
        }
    }

    fn connected(&mut self, number: ConnId, vc: Vc) {
        let conn = self.conns.get(&number);
        let waits = conn.is_some_and(|conn| {
            matches!(conn.phase, Phase::Calling | Phase::Accepted) && conn.vc == Some(vc)
        });
        match waits {
            true => self.usable(number, vc),
            false => self.unusable(number),
        }
    }

    /// The daemon sent an impossible message about a call. A call that is waiting ends; a connected call stays
    /// unchanged.
    fn unusable(&mut self, number: ConnId) {
        self.own.refused += 1;
        let waits = |conn: &Conn| matches!(conn.phase, Phase::Calling | Phase::Accepted);
        let Some(user) = (self.conns.get(&number).filter(|conn| waits(conn))).map(|conn| conn.user)
        else {
            return;
        };
        let (conn, cause) = (number, Cause::VC_UNAVAILABLE);
        self.gone(number, cause);
        self.demand(user, AtmRequest::Release { conn, cause });
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
