//! The signalling daemon: it owns the interface and reads the network's messages (`calls.rs` has its calls). This file
//! has its starts and ends, the link, and the signals of its process.

mod calls;

pub use calls::FIRST_CALL_VCI;
pub(super) use calls::FIRST_PARTY;

use aerostat_proto::interface::{self, Interface, Phase};
use aerostat_proto::sigd::{FromSigd, LinkInfo, SIGNALLING, Start, ToSigd};
use aerostat_proto::split::{Daemon, Ended, FromDaemon, Signal};
use aerostat_proto::uni::{CallId, Request, Side, Version};
use aerostat_proto::{AtmEvent, AtmRequest, Cause, Duration, Instant, Machine, Refused};
use aerostat_wire::q2931::UserData;
use calls::Call;
use std::collections::{BTreeMap, VecDeque};

/// Pause between two reports of the link.
const REPORT: Duration = Duration::from_secs(1);
/// How long a regular end waits for the network's answers.
const FAREWELL: Duration = Duration::from_secs(1);

/// The daemon half of a host's signalling: it reads the network's messages. It is idle until it is told to start.
#[derive(Debug)]
pub struct Sigd {
    interface: Interface,
    started: bool,
    /// Calls that have not ended, without those that were refused.
    calls: BTreeMap<CallId, Box<Call>>,
    /// On the network side: the VCI from which the next call looks for a free label.
    next_vci: u16,
    /// The link information that was reported last.
    reported: LinkInfo,
    /// The daemon was told to end: it waits for answers until this time.
    exit_at: Option<Instant>,
    exited: bool,
    out: VecDeque<FromDaemon<FromSigd>>,
}

impl Default for Sigd {
    fn default() -> Self {
        Self {
            interface: Interface::new(interface::Params::new(Side::User, Version::Uni31)),
            started: false,
            calls: BTreeMap::new(),
            next_vci: FIRST_CALL_VCI,
            reported: LinkInfo::default(),
            exit_at: None,
            exited: false,
            out: VecDeque::new(),
        }
    }
}

impl Sigd {
    /// The interface, once the daemon has started.
    #[must_use]
    pub const fn interface(&self) -> Option<&Interface> {
        match self.started {
            true => Some(&self.interface),
            false => None,
        }
    }

    fn say(&mut self, message: FromSigd) {
        self.out.push_back(FromDaemon::Message(message));
    }

    /// Begins anew, whatever the state was before.
    fn start(&mut self, start: &Start) {
        let params = interface::Params {
            uni: start.uni,
            sscop: start.sscop,
            restart_wait: start.restart_wait,
            reestablish: start.reestablish,
        };
        self.interface = Interface::new(params);
        self.started = true;
        self.calls.clear();
        self.reported = LinkInfo::default();
        self.say(FromSigd::Begun { life: start.life });
    }

    /// An input that the interface refuses in no state.
    fn feed(&mut self, input: interface::Input<'_>, now: Instant) {
        let done = self.interface.handle_input(input, now);
        debug_assert!(done.is_ok(), "only requests are refused");
    }

    /// A request to the interface; the answer comes as an indication.
    fn request(&mut self, request: Request, now: Instant) -> Result<(), Refused> {
        let input = interface::Input::Request(request);
        self.interface.handle_input(input, now)
    }

    /// True once the daemon was told to end.
    const fn ends(&self) -> bool {
        self.exit_at.is_some()
    }

    /// Releases all calls, and waits shortly for the network's answers.
    fn terminate(&mut self, now: Instant) {
        if self.ends() {
            return;
        }
        self.exit_at = Some(now + FAREWELL);
        self.say(FromSigd::Ending);
        for call in self.calls.keys().copied().collect::<Vec<_>>() {
            self.release(call, Cause::NORMAL, &UserData::default(), now);
        }
    }

    /// Passes on the outputs of the interface; then ends if it is time.
    fn drain(&mut self, now: Instant) {
        while let Some(output) = self.interface.poll_output() {
            match output {
                interface::Output::Lower(sdu) => {
                    let conn = SIGNALLING;
                    let send = AtmRequest::Send { conn, sdu };
                    self.out.push_back(FromDaemon::Atm(send));
                }
                interface::Output::Indication(indication) => self.indication(indication, now),
                interface::Output::Trace(trace) => self.out.push_back(FromDaemon::Trace(trace)),
            }
        }
        let Some(at) = self.exit_at.filter(|_| !self.exited) else {
            return;
        };
        let idle = self.calls.is_empty() || self.interface.phase() != Phase::Ready;
        if idle || at <= now {
            self.exited = true;
            self.out.push_back(FromDaemon::Ended(Ended::Exits));
        }
    }
}

impl Daemon for Sigd {
    type To = ToSigd;
    type From = FromSigd;
    const REPORT: Option<Duration> = Some(REPORT);

    fn message(&mut self, message: ToSigd, now: Instant) {
        match message {
            // A daemon that ends serves no more: its successor gets a start of its own.
            ToSigd::Start(_) if self.ends() => {}
            ToSigd::Start(start) => self.start(&start),
            _ if !self.started => {}
            ToSigd::Version(version) => self.feed(interface::Input::Version(version), now),
            ToSigd::Setup(setup) => self.set_up(setup, now),
            ToSigd::Join { call } => self.join(call),
            ToSigd::Accept {
                call,
                blli,
                terms,
                data,
            } => self.accept(call, blli, (terms, &data), now),
            ToSigd::Refuse { call, cause } => self.refuse(call, cause, now),
            ToSigd::Release { call, cause, data } => self.release(call, cause, &data, now),
            ToSigd::AddParty {
                call,
                party,
                called,
                data,
            } => self.add_party(call, party, (called, &data), now),
            ToSigd::DropParty { call, party } => self.drop_party(call, party, now),
        }
        self.drain(now);
    }

    /// The line, and the SDUs of VPI 0 VCI 5.
    fn atm(&mut self, event: AtmEvent<&[u8]>, now: Instant) {
        if self.started {
            match event {
                AtmEvent::Up => self.feed(interface::Input::Start, now),
                AtmEvent::Down => self.feed(interface::Input::LinkDown, now),
                AtmEvent::Received { sdu, .. } => self.feed(interface::Input::Lower(sdu), now),
                // The daemon's connection is permanent, and it has no other.
                AtmEvent::Incoming { .. }
                | AtmEvent::Connected { .. }
                | AtmEvent::Released { .. }
                | AtmEvent::PartyAdded { .. }
                | AtmEvent::PartyGone { .. } => {}
            }
        }
        self.drain(now);
    }

    /// SIGTERM: releases all calls, waits shortly for the network's answers. SIGHUP: forgets everything and begins
    /// anew; the network is told so by RESTART.
    fn signal(&mut self, signal: Signal, now: Instant) {
        match signal {
            Signal::Terminate => self.terminate(now),
            Signal::Reload => {
                if !self.ends() && self.started {
                    *self = Self {
                        out: core::mem::take(&mut self.out),
                        ..Self::default()
                    };
                    self.say(FromSigd::Again);
                }
            }
        }
        self.drain(now);
    }

    fn report(&mut self, _now: Instant) {
        let link = LinkInfo::of(self.interface.saal());
        if self.started && link != self.reported {
            self.reported = link.clone();
            self.say(FromSigd::Status(link));
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.interface.handle_timeout(now);
        self.drain(now);
    }

    fn poll_output(&mut self) -> Option<FromDaemon<FromSigd>> {
        self.out.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let exit = self.exit_at.filter(|_| !self.exited);
        let interface = self.interface.poll_timeout();
        interface.into_iter().chain(exit).min()
    }
}
