//! The control half: the entity of one interface, and the signals of its process.

use super::split::{FromIlmid, MANAGEMENT, Start, ToIlmid};
use super::{Event, Ime, Input, Output, Pvc, Snapshot};
use crate::split::{Daemon, Ended, FromDaemon, Signal};
use crate::{AtmEvent, AtmRequest, Duration, Instant, Machine};
use std::collections::VecDeque;

/// Pause between two reports for display.
const REPORT: Duration = Duration::from_secs(1);
/// How long a regular end waits for the answers of the other side.
const FAREWELL: Duration = Duration::from_secs(1);

/// The control half of ILMI at one interface: it reads the messages of the other side. It is idle until it is told to
/// start.
#[derive(Debug, Default)]
pub struct Ilmid {
    ime: Option<Ime>,
    /// Permanent connections of which a further part follows.
    pvcs: Vec<Pvc>,
    /// The state that was reported last.
    shown: Option<Snapshot>,
    /// The daemon was told to end: it waits for answers until this time.
    exit_at: Option<Instant>,
    exited: bool,
    out: VecDeque<FromDaemon<FromIlmid>>,
}

impl Ilmid {
    /// The entity, once the daemon has started.
    #[must_use]
    pub const fn ime(&self) -> Option<&Ime> {
        self.ime.as_ref()
    }

    fn say(&mut self, message: FromIlmid) {
        self.out.push_back(FromDaemon::Message(message));
    }

    /// Begins anew, whatever the state was before.
    fn start(&mut self, start: Start) {
        let Start {
            life,
            config,
            former,
        } = start;
        self.ime = Some(Ime::successor(config, life.wrapping_sub(1), former));
        self.pvcs.clear();
        self.shown = None;
        self.say(FromIlmid::Begun { life });
    }

    fn feed(&mut self, input: Input<'_>, now: Instant) {
        if let Some(ime) = &mut self.ime {
            let Ok(()) = ime.handle_input(input, now);
        }
    }

    /// Withdraws everything, and waits shortly for the answers.
    fn terminate(&mut self, now: Instant) {
        if self.exit_at.is_none() {
            self.exit_at = Some(now + FAREWELL);
            if let Some(ime) = &mut self.ime {
                ime.withdraw(now);
            }
        }
    }

    /// Passes on the outputs of the entity; then ends if it is time.
    fn drain(&mut self, now: Instant) {
        self.pass_on();
        let Some(at) = self.exit_at.filter(|_| !self.exited) else {
            return;
        };
        if at <= now || !self.ime.as_ref().is_some_and(Ime::withdraws) {
            self.feed(Input::Stop, now);
            self.pass_on();
            self.exited = true;
            self.out.push_back(FromDaemon::Ended(Ended::Exits));
        }
    }

    fn pass_on(&mut self) {
        while let Some(output) = self.ime.as_mut().and_then(Machine::poll_output) {
            let event = match output {
                Output::Send(sdu) => {
                    let conn = MANAGEMENT;
                    let send = AtmRequest::Send { conn, sdu };
                    self.out.push_back(FromDaemon::Atm(send));
                    continue;
                }
                Output::Trace(trace) => {
                    self.out.push_back(FromDaemon::Trace(trace));
                    continue;
                }
                Output::Claim { claim, addresses } => {
                    self.say(FromIlmid::Claim { claim, addresses });
                    continue;
                }
                Output::Event(event) => event,
            };
            self.say(match event {
                // The data half has granted this.
                Event::Registered(_, true) => continue,
                Event::Registered(address, false) => FromIlmid::Withdrawn(address),
                Event::Up { version } => FromIlmid::Up { version },
                Event::Link(link) => FromIlmid::Link(link),
                Event::Down => FromIlmid::Down,
                Event::Address(address, usable) => FromIlmid::Address { address, usable },
                Event::Services(services) => FromIlmid::Services(services),
            });
        }
    }
}

impl Daemon for Ilmid {
    type To = ToIlmid;
    type From = FromIlmid;
    const REPORT: Option<Duration> = Some(REPORT);

    fn message(&mut self, message: ToIlmid, now: Instant) {
        match message {
            // A daemon that ends serves no more: its successor gets a start of its own.
            ToIlmid::Start(_) if self.exit_at.is_some() => {}
            ToIlmid::Start(start) => self.start(*start),
            ToIlmid::Prefixes(prefixes) => {
                if self.exit_at.is_none() {
                    self.feed(Input::SetPrefixes(prefixes), now);
                }
            }
            ToIlmid::Esis(esis) => {
                if self.exit_at.is_none() {
                    self.feed(Input::SetEsis(esis), now);
                }
            }
            ToIlmid::Pvcs { pvcs, more } => {
                self.pvcs.extend(pvcs);
                if !more {
                    let pvcs = core::mem::take(&mut self.pvcs);
                    self.feed(Input::SetPvcs(pvcs), now);
                }
            }
            ToIlmid::Claimed { claim, refused } => {
                self.feed(Input::Claimed { claim, refused }, now);
            }
        }
        self.drain(now);
    }

    /// The line, and the SDUs of VPI 0 VCI 16.
    fn atm(&mut self, event: AtmEvent<&[u8]>, now: Instant) {
        match event {
            AtmEvent::Up => {
                if self.exit_at.is_none() {
                    self.feed(Input::Start, now);
                }
            }
            AtmEvent::Down => self.feed(Input::Stop, now),
            AtmEvent::Received { sdu, .. } => self.feed(Input::Message { sdu }, now),
            // The daemon's connection is permanent, and it has no other.
            AtmEvent::Incoming { .. }
            | AtmEvent::Connected { .. }
            | AtmEvent::Released { .. }
            | AtmEvent::PartyAdded { .. }
            | AtmEvent::PartyGone { .. } => {}
        }
        self.drain(now);
    }

    /// SIGTERM: withdraws what this end has registered or assigned, waits shortly for the answers. SIGHUP: forgets
    /// everything and begins anew; the other side is told so by a cold start trap.
    fn signal(&mut self, signal: Signal, now: Instant) {
        match signal {
            Signal::Terminate => self.terminate(now),
            Signal::Reload => {
                if self.exit_at.is_none() && self.ime.is_some() {
                    *self = Self {
                        out: core::mem::take(&mut self.out),
                        ..Self::default()
                    };
                    self.say(FromIlmid::Again);
                }
            }
        }
        self.drain(now);
    }

    fn report(&mut self, _now: Instant) {
        let seen = self.ime.as_ref().map(Ime::snapshot);
        let Some(mut seen) = seen else {
            return;
        };
        // The data half has them.
        seen.addresses.clear();
        if self.shown.as_ref() != Some(&seen) {
            self.shown = Some(seen.clone());
            self.say(FromIlmid::Shown(Box::new(seen)));
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        if let Some(ime) = &mut self.ime
            && ime.poll_timeout().is_some_and(|at| at <= now)
        {
            ime.handle_timeout(now);
        }
        self.drain(now);
    }

    fn poll_output(&mut self) -> Option<FromDaemon<FromIlmid>> {
        self.out.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let exit = self.exit_at.filter(|_| !self.exited);
        let ime = self.ime.as_ref().and_then(Machine::poll_timeout);
        ime.into_iter().chain(exit).min()
    }
}
