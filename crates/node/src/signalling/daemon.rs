//! The manager as a daemon.

use super::{Config, Input, Limits, Output, Signalling, UserId};
use aerostat_proto::sigd::{FromSigd, LinkInfo, Start, ToSigd, UserNo};
use aerostat_proto::split::{Daemon, Ended, FromDaemon, Signal};
use aerostat_proto::{AtmEvent, AtmRequest, Cause, Duration, Instant, Machine};
use aerostat_wire::{Qos, Vc};
use std::collections::{BTreeSet, VecDeque};

/// Pause between two reports of the link.
const REPORT: Duration = Duration::from_secs(1);
/// How long a regular end waits for the network's answers.
const FAREWELL: Duration = Duration::from_secs(1);

/// The signalling manager of a host, for a process of its own. It does nothing until it is told to.
#[derive(Debug, Default)]
pub struct Sigd {
    manager: Option<Signalling>,
    users: BTreeSet<UserId>,
    /// The link information that was sent last, and when the next may be sent.
    told: LinkInfo,
    up: bool,
    report_at: Option<Instant>,
    last_report: Option<Instant>,
    /// The daemon was told to end: it waits for answers until this time.
    exit_at: Option<Instant>,
    exited: bool,
    out: VecDeque<FromDaemon<FromSigd>>,
}

impl Sigd {
    /// The manager, once the daemon was told to start.
    #[must_use]
    pub const fn manager(&self) -> Option<&Signalling> {
        self.manager.as_ref()
    }

    fn say(&mut self, message: FromSigd) {
        self.out.push_back(FromDaemon::Message(message));
    }

    fn start(&mut self, start: &Start) {
        let mut config = Config::new(start.version);
        config.interface.sscop.initial_sq = start.initial_sq;
        config.wait = start.wait;
        config.limits = Limits {
            users: start.users,
            calls_per_user: start.calls_per_user,
            listeners_per_user: start.listeners_per_user,
            parties_per_call: start.parties_per_call,
        };
        // A new life, whatever the state was before.
        *self = Self {
            manager: Some(Signalling::new(config).numbered_from(start.first_incoming)),
            exit_at: self.exit_at,
            exited: self.exited,
            out: core::mem::take(&mut self.out),
            ..Self::default()
        };
        self.say(FromSigd::Begun { life: start.life });
    }

    fn told(&mut self, message: ToSigd, now: Instant) {
        let input = match &message {
            ToSigd::Start(start) => return self.start(start),
            ToSigd::Line { up: true } => Input::Start,
            ToSigd::Line { up: false } => Input::LinkDown,
            ToSigd::Version(version) => Input::Version(*version),
            ToSigd::Signalling(sdu) => Input::Signalling(sdu),
            ToSigd::AddUser(user) => {
                self.users.insert(UserId(user.0));
                Input::AddUser(UserId(user.0))
            }
            ToSigd::DropUser(user) => {
                self.users.remove(&UserId(user.0));
                Input::DropUser(UserId(user.0))
            }
            ToSigd::Request { user, request } => {
                return self.request(*user, request.clone(), now);
            }
        };
        if let Some(manager) = &mut self.manager {
            // An input is refused if it crossed another message; the manager counts it.
            let _ = manager.handle_input(input, now);
        }
    }

    /// Some requests have an answer that the user waits for: a refusal must be reported, too.
    fn request(&mut self, user: UserNo, request: AtmRequest, now: Instant) {
        let Some(manager) = &mut self.manager else {
            return;
        };
        let cause = Cause::TEMPORARY;
        let answer = match request {
            // Data and permanent connections are handled by the host.
            AtmRequest::Send { .. } | AtmRequest::OpenPermanent { .. } => return,
            AtmRequest::Connect { conn, .. } => Some(AtmEvent::Released { conn, cause }),
            AtmRequest::AddParty { conn, party, .. } => {
                Some(AtmEvent::PartyGone { conn, party, cause })
            }
            AtmRequest::Listen { .. }
            | AtmRequest::Unlisten { .. }
            | AtmRequest::DropParty { .. }
            | AtmRequest::Accept { .. }
            | AtmRequest::Release { .. } => None,
        };
        let input = Input::Request(UserId(user.0), request);
        let refused = manager.handle_input(input, now).is_err();
        if let (true, Some(event)) = (refused, answer) {
            // The manager may have reported the release already; a second report does no harm, as the number is dead
            // then.
            self.pass_on();
            self.say(FromSigd::Event { user, event });
        }
    }

    fn terminate(&mut self, now: Instant) {
        if self.exit_at.is_some() {
            return;
        }
        self.exit_at = Some(now + FAREWELL);
        self.say(FromSigd::Ending);
        if let Some(manager) = &mut self.manager {
            for user in core::mem::take(&mut self.users) {
                // The user is known already, and so are its calls.
                let _ = manager.handle_input(Input::DropUser(user), now);
            }
        }
    }

    /// Sends all pending messages; then ends if it is time.
    fn flush(&mut self, now: Instant) {
        self.pass_on();
        self.report(now);
        let Some(at) = self.exit_at.filter(|_| !self.exited) else {
            return;
        };
        let idle = (self.manager.as_ref()).is_none_or(|m| m.calls().next().is_none() || !m.is_up());
        if idle || at <= now {
            self.exited = true;
            self.out.push_back(FromDaemon::Ended(Ended::Exits));
        }
    }

    fn pass_on(&mut self) {
        let Some(manager) = &mut self.manager else {
            return;
        };
        let mut said = Vec::new();
        while let Some(output) = manager.poll_output() {
            match output {
                Output::Send { vc, sdu } if vc == Vc::SIGNALLING => {
                    said.push(FromDaemon::Message(FromSigd::Signalling(sdu)));
                }
                // The owner is that of the moment at which the VC was opened: the call may be over by now, and its end
                // is told below.
                Output::OpenVc { owner, vc, tx, rx } => {
                    let qos = Qos { tx, rx };
                    let open = |(_, conn)| FromDaemon::Message(FromSigd::OpenVc { conn, vc, qos });
                    said.extend(owner.map(open));
                }
                // The state of the link is sent in a message of its own.
                Output::Event(_, AtmEvent::Up | AtmEvent::Down) => {}
                Output::Event(user, event) => {
                    let (user, event) = (UserNo(user.0), event.into_owned());
                    said.push(FromDaemon::Message(FromSigd::Event { user, event }));
                }
                Output::Trace(trace) => said.push(FromDaemon::Trace(trace)),
                // Data and permanent connections are the lab's process'; it closes VCs with what uses them.
                Output::Send { .. }
                | Output::CloseVc { .. }
                | Output::Received { .. }
                | Output::Sigd(_) => {}
            }
        }
        // Up is sent before the events that it makes possible, down before the events that it ends.
        let up = manager.is_up();
        if core::mem::replace(&mut self.up, up) != up {
            self.report_at = None;
            self.last_report = None;
            self.say(FromSigd::Link { up });
        }
        self.out.extend(said);
    }

    fn report(&mut self, now: Instant) {
        let Some(manager) = &self.manager else {
            return;
        };
        let info = LinkInfo::of(manager.interface().saal());
        if info == self.told {
            self.report_at = None;
            return;
        }
        let at = self.last_report.map_or(now, |last| last + REPORT);
        if at > now {
            self.report_at = Some(at);
            return;
        }
        (self.report_at, self.last_report) = (None, Some(now));
        self.told = info.clone();
        self.say(FromSigd::Status(info));
    }
}

impl Daemon for Sigd {
    type To = ToSigd;
    type From = FromSigd;

    fn message(&mut self, message: ToSigd, now: Instant) {
        self.told(message, now);
        self.flush(now);
    }

    /// The daemon is the ATM service itself, and uses no other.
    fn atm(&mut self, _: AtmEvent<&[u8]>, _: Instant) {}

    /// SIGTERM: releases all calls, waits shortly for the network's answers. SIGHUP: forgets everything and begins
    /// anew; the network is told so by RESTART.
    fn signal(&mut self, signal: Signal, now: Instant) {
        match signal {
            Signal::Terminate => self.terminate(now),
            Signal::Reload => {
                if self.exit_at.is_none() && self.manager.is_some() {
                    *self = Self {
                        out: core::mem::take(&mut self.out),
                        ..Self::default()
                    };
                    self.say(FromSigd::Again);
                }
            }
        }
        self.flush(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        if let Some(manager) = &mut self.manager {
            manager.handle_timeout(now);
        }
        self.flush(now);
    }

    fn poll_output(&mut self) -> Option<FromDaemon<FromSigd>> {
        self.out.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let manager = self.manager.as_ref().and_then(Machine::poll_timeout);
        let exit = self.exit_at.filter(|_| !self.exited);
        [manager, self.report_at, exit].into_iter().flatten().min()
    }
}
