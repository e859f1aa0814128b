//! One signalling interface as a whole: call states over SSCF over SSCOP, and when it may be used.
//!
//! **Purpose.** Joins [`Saal`] and [`Uni`] and keeps the link between them up. Both a host's signalling
//! manager and every port of a switch own one.
//!
//! **Objects and owners.** An [`Interface`] owns its Saal and its Uni. The owner feeds it the SDUs of
//! VPI 0 VCI 5 and carries [`Output::Lower`] back there.
//!
//! **States.** Down; restarting (the link is up, RESTART is sent and not yet answered); ready. A link that
//! comes up while there are no calls here is restarted first, as Q.2931 §5.5.1 foresees for start-up, so
//! that the peer forgets the calls of an earlier life of this end. As both ends do so and the link keeps
//! the order, an end that has its answer also has the peer's RESTART behind it: calls made from then on
//! are not cleared by it. [`Indication::Up`] is passed on only then.
//!
//! **Timers.** [`Params::restart_wait`] ends the wait for an answer to RESTART (a peer may not know it);
//! [`Params::reestablish`] is the pause before a lost or refused link is asked for again, for ever.
//!
//! **Standards.** The joint between ITU-T Q.2130 and Q.2931 §5.
//!
//! **Not implemented.** Unassured data (AAL-UNITDATA) is dropped: UNI signalling has no use for it.

use std::collections::{BTreeSet, VecDeque};

use aerostat_proto::saal::{self, Saal};
use aerostat_proto::sscop;
use aerostat_proto::uni::{self, CallId, Indication, Restart, Uni};
use aerostat_proto::{Duration, Instant, Machine, Refused, TimerTable, Trace};

/// Parameters of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// Call control: side, version, timers, limits.
    pub uni: uni::Params,
    /// The link.
    pub sscop: sscop::Params,
    /// Longest wait for the answer to RESTART before the interface is used all the same.
    pub restart_wait: Duration,
    /// Pause before a lost link is asked for again.
    pub reestablish: Duration,
}

impl Params {
    /// Standard parameters for one side of an interface of `version`.
    #[must_use]
    pub fn new(side: uni::Side, version: uni::Version) -> Self {
        let mode = match version {
            uni::Version::Uni30 => sscop::Mode::Qsaal1,
            _ => sscop::Mode::Q2110,
        };
        Self {
            uni: uni::Params::new(side, version),
            sscop: sscop::Params {
                mode,
                // After a loss each active call is asked for at once, and may be released at once.
                max_queue: 8192,
                ..sscop::Params::UNI
            },
            restart_wait: Duration::from_secs(3),
            reestablish: Duration::from_secs(1),
        }
    }
    /// The same for the `n`th life of a node: a peer that survived tells its BGN from the earlier ones.
    #[must_use]
    pub fn incarnation(mut self, n: u8) -> Self {
        // An odd stride visits all 256 values before it repeats one.
        self.sscop.initial_sq = n.wrapping_mul(37);
        self
    }
}

/// Whether the interface can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// No link.
    Down,
    /// Link up, RESTART not answered yet.
    Restarting,
    /// In use.
    Ready,
}

/// What goes into [`Interface`].
#[derive(Clone, Debug)]
pub enum Input<'a> {
    /// Bring the link up and keep it up.
    Start,
    /// The line is dead (no signal): do not wait for timers.
    LinkDown,
    /// One SDU of VPI 0 VCI 5.
    Lower(&'a [u8]),
    /// A primitive for call control.
    Request(uni::Request),
}

/// What comes out of [`Interface`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// One SDU for VPI 0 VCI 5.
    Lower(Vec<u8>),
    /// From call control; `Up` and `Down` as the essay says.
    Indication(Indication),
    /// For the story.
    Trace(Trace),
}

#[derive(Clone, Copy)]
enum Timer {
    Restart,
    Reestablish,
}

/// One signalling interface.
#[derive(Debug)]
pub struct Interface {
    params: Params,
    saal: Saal,
    uni: Uni,
    phase: Phase,
    started: bool,
    calls: BTreeSet<CallId>,
    timers: TimerTable<2>,
    outputs: VecDeque<Output>,
    lost: u64,
}

impl Interface {
    /// An interface that is down until [`Input::Start`].
    #[must_use]
    pub fn new(params: Params) -> Self {
        Self {
            saal: Saal::new(params.sscop),
            uni: Uni::new(params.uni),
            params,
            phase: Phase::Down,
            started: false,
            calls: BTreeSet::new(),
            timers: TimerTable::default(),
            outputs: VecDeque::new(),
            lost: 0,
        }
    }
    /// Whether it can be used.
    #[must_use]
    pub const fn phase(&self) -> Phase {
        self.phase
    }
    /// Calls that exist, in any state.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.calls.len()
    }
    /// The link, for counters and display.
    #[must_use]
    pub const fn saal(&self) -> &Saal {
        &self.saal
    }
    /// Call control, for display.
    #[must_use]
    pub const fn uni(&self) -> &Uni {
        &self.uni
    }
    /// Messages that call control sent while the link could not take them.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    fn establish(&mut self, now: Instant) {
        // Refused in no state of SSCF.
        let _ = self
            .saal
            .handle_input(saal::Input::Upper(saal::Request::Establish), now);
    }

    /// Feeds call control; peers' messages and link events are never refused.
    fn tell_uni(&mut self, input: uni::Input<'_>, now: Instant) {
        let done = self.uni.handle_input(input, now);
        debug_assert!(done.is_ok(), "only requests are refused");
    }

    fn request(&mut self, request: uni::Request, now: Instant) -> Result<(), Refused> {
        let started = match &request {
            uni::Request::Setup { call, .. } => Some(*call),
            _ => None,
        };
        self.uni.handle_input(uni::Input::Request(request), now)?;
        self.calls.extend(started);
        Ok(())
    }

    /// Moves output between the two machines until both are quiet.
    fn drain(&mut self, now: Instant) {
        loop {
            if let Some(output) = self.saal.poll_output() {
                self.saal_output(output, now);
            } else if let Some(output) = self.uni.poll_output() {
                self.uni_output(output, now);
            } else {
                return;
            }
        }
    }

    fn saal_output(&mut self, output: saal::Output, now: Instant) {
        match output {
            saal::Output::Lower(pdu) => self.outputs.push_back(Output::Lower(pdu)),
            saal::Output::Trace(trace) => self.outputs.push_back(Output::Trace(trace)),
            saal::Output::Upper(saal::Indication::Data(message)) => {
                self.tell_uni(uni::Input::SaalData(&message), now);
            }
            saal::Output::Upper(saal::Indication::Established) => {
                self.timers.stop(Timer::Reestablish as usize);
                self.tell_uni(uni::Input::SaalUp, now);
            }
            saal::Output::Upper(saal::Indication::Released) => {
                self.reestablish_later(now);
                self.tell_uni(uni::Input::SaalDown, now);
            }
            saal::Output::Upper(saal::Indication::UnitData(_)) => self.lost += 1,
        }
    }

    fn reestablish_later(&mut self, now: Instant) {
        if self.started {
            let after = self.params.reestablish;
            self.timers.start(Timer::Reestablish as usize, now, after);
        }
    }

    fn uni_output(&mut self, output: uni::Output, now: Instant) {
        match output {
            uni::Output::SaalData(message) => {
                let request = saal::Request::Data(message);
                if self
                    .saal
                    .handle_input(saal::Input::Upper(request), now)
                    .is_err()
                {
                    self.lost += 1;
                }
            }
            // The pause of a refused link is kept, so that two ends cannot ask and refuse in a tight loop.
            uni::Output::SaalEstablish => {
                if self.started
                    && self.saal.state() == saal::State::Released
                    && !self.timers.runs(Timer::Reestablish as usize)
                {
                    self.establish(now);
                }
            }
            uni::Output::Indication(indication) => self.indication(indication, now),
            uni::Output::Trace(trace) => self.outputs.push_back(Output::Trace(trace)),
        }
    }

    fn indication(&mut self, indication: Indication, now: Instant) {
        match &indication {
            Indication::Up => {
                if self.phase != Phase::Down {
                    return;
                }
                if self.calls.is_empty() && self.restart(now) {
                    return;
                }
                self.phase = Phase::Ready;
            }
            Indication::Down => {
                let was = core::mem::replace(&mut self.phase, Phase::Down);
                self.timers.stop(Timer::Restart as usize);
                if was != Phase::Ready {
                    return;
                }
            }
            Indication::RestartDone { .. } => {
                self.ready();
                return;
            }
            Indication::Setup { call, .. } => {
                self.calls.insert(*call);
            }
            Indication::Released { call, .. } => {
                self.calls.remove(call);
            }
            _ => {}
        }
        self.outputs.push_back(Output::Indication(indication));
    }

    /// Sends RESTART; false if call control refuses.
    fn restart(&mut self, now: Instant) -> bool {
        let request = uni::Request::Restart { what: Restart::All };
        if self.request(request, now).is_err() {
            return false;
        }
        self.phase = Phase::Restarting;
        let wait = self.params.restart_wait;
        self.timers.start(Timer::Restart as usize, now, wait);
        true
    }

    fn ready(&mut self) {
        self.timers.stop(Timer::Restart as usize);
        if self.phase == Phase::Restarting {
            self.phase = Phase::Ready;
            self.outputs.push_back(Output::Indication(Indication::Up));
        }
    }

    fn link_down(&mut self, now: Instant) {
        self.started = false;
        self.timers.stop_all();
        self.saal = Saal::new(self.params.sscop);
        self.tell_uni(uni::Input::SaalDown, now);
    }
}

impl Machine for Interface {
    type Input<'a> = Input<'a>;
    type Output = Output;

    fn handle_input(&mut self, input: Input<'_>, now: Instant) -> Result<(), Refused> {
        let done = match input {
            Input::Start => {
                if !self.started {
                    self.started = true;
                    self.establish(now);
                }
                Ok(())
            }
            Input::LinkDown => {
                self.link_down(now);
                Ok(())
            }
            // Not started, or the line is dead: there is nobody here.
            Input::Lower(_) if !self.started => Ok(()),
            Input::Lower(sdu) => self.saal.handle_input(saal::Input::Lower(sdu), now),
            Input::Request(request) => self.request(request, now),
        };
        self.drain(now);
        done
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(timer) = self.timers.expire(now) {
            if timer == Timer::Restart as usize {
                self.ready();
            } else {
                self.establish(now);
            }
        }
        self.saal.handle_timeout(now);
        self.uni.handle_timeout(now);
        self.drain(now);
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        [
            self.timers.next(),
            self.saal.poll_timeout(),
            self.uni.poll_timeout(),
        ]
        .into_iter()
        .flatten()
        .min()
    }
}
