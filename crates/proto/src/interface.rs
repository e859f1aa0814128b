//! One signalling interface: call states over SSCF over SSCOP, and whether the interface can be used.
//!
//! **Purpose.** Joins [`Saal`] and [`Uni`] and keeps the link between them up. A host's signalling daemon owns one
//! interface; a switch has one per port.
//!
//! **Objects and owners.** An [`Interface`] owns its Saal and its Uni. The owner passes it the SDUs of VPI 0 VCI 5 and
//! sends the SDUs of [`Output::Lower`] there.
//!
//! **States.** Down; restarting (the link is up, RESTART has been sent but not answered); ready. When the link comes up
//! and there are no calls here, RESTART is sent first, as Q.2931 §5.5.1 foresees for start-up: the peer then forgets
//! calls from before a restart of this end. Both ends do so, and the link preserves order. So an end that has its
//! answer has also handled the peer's RESTART, which cannot clear calls that are made later. Only then is
//! [`Indication::Up`] passed on.
//!
//! **A dead line** ends all calls at once, with cause 27 (destination out of order), because management reports it.
//! T309 is for a signalling link that is lost while the line is up: data still pass, and active calls wait for the link
//! for 10 s. Source: Q.2931 §5.6.10, which starts T309 at the loss of the signalling link and leaves the failure of the
//! line to management.
//!
//! **Timers.** [`Params::restart_wait`] limits the wait for an answer to RESTART (a peer may not support RESTART).
//! [`Params::reestablish`] is the pause before a lost or refused link is requested again, without a limit on attempts.
//!
//! **Standards.** The boundary between ITU-T Q.2130 and Q.2931 §5.
//!
//! **Not implemented.** Unassured data (AAL-UNITDATA) are dropped, because UNI signalling does not use them.

use std::collections::{BTreeSet, VecDeque};

use crate::saal::{self, Saal};
use crate::sscop;
use crate::uni::{self, CallId, Indication, Restart, Uni};
use crate::{Duration, Instant, Machine, Refused, TimerTable, Trace};

/// Parameters of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// Call control: side, version, timers, limits.
    pub uni: uni::Params,
    /// Parameters of the SSCOP link.
    pub sscop: sscop::Params,
    /// Longest wait for the answer to RESTART; after that the interface is used without an answer.
    pub restart_wait: Duration,
    /// Pause before a lost link is requested again.
    pub reestablish: Duration,
}

impl Params {
    /// Standard parameters for one side of an interface of `version`.
    #[must_use]
    pub fn new(side: uni::Side, version: uni::Version) -> Self {
        Self {
            uni: uni::Params::new(side, version),
            sscop: sscop::Params {
                mode: mode_of(version),
                // For the default limit of calls; see `hold_calls`.
                max_queue: 8192,
                ..sscop::Params::UNI
            },
            restart_wait: Duration::from_secs(3),
            reestablish: Duration::from_secs(1),
        }
    }
    /// Makes room for this number of calls, if there is less.
    pub fn hold_calls(&mut self, calls: usize) {
        let limits = &mut self.uni.limits;
        limits.calls = limits.calls.max(calls);
        // After a loss every call causes a STATUS ENQUIRY at once, and may be released at once.
        self.sscop.max_queue = self.sscop.max_queue.max(2 * limits.calls);
    }
    /// The same parameters for the `n`th start of a node, so that a peer that kept running can tell the new BGN from
    /// earlier ones.
    #[must_use]
    pub fn incarnation(mut self, n: u8) -> Self {
        // The stride is odd, so all 256 values occur before one is repeated.
        self.sscop.initial_sq = n.wrapping_mul(37);
        self
    }
}

/// The SSCOP mode of a version of the UNI.
#[must_use]
pub const fn mode_of(version: uni::Version) -> sscop::Mode {
    match version {
        uni::Version::Uni30 => sscop::Mode::Qsaal1,
        _ => sscop::Mode::Q2110,
    }
}

aerostat_wire::named! {
    /// State of the interface.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Phase {
        /// No link.
        Down = "Down",
        /// Link up, RESTART not answered yet.
        Restarting = "Restarting",
        /// The interface can be used.
        Ready = "Ready",
    }
}

/// Inputs of [`Interface`].
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "lives on the stack for one move")]
pub enum Input<'a> {
    /// Establish the link and keep it up.
    Start,
    /// The line is dead (no signal): do not wait for timers.
    LinkDown,
    /// One SDU of VPI 0 VCI 5.
    Lower(&'a [u8]),
    /// A primitive for call control.
    Request(uni::Request),
    /// Sets the version. If it differs from the current one, all calls end and the link is established again.
    Version(uni::Version),
    /// Sets the side of the interface, with the same consequences, and the location of its causes
    /// ([`uni::Params::location`]).
    Side(uni::Side, u8),
}

/// Outputs of [`Interface`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// One SDU for VPI 0 VCI 5.
    Lower(Vec<u8>),
    /// An indication of call control. `Up` and `Down` are passed on as described under States.
    Indication(Indication),
    /// A trace event.
    Trace(Trace),
}

crate::timer_kinds! {
    /// The timers of the interface itself. SAAL and UNI have their own.
    enum Timer {
        /// The wait for the answer to RESTART has ended.
        Restart,
        /// Establish the signalling link again.
        Reestablish,
    }
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
    timers: TimerTable<Timer>,
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
    /// State of the interface.
    #[must_use]
    pub const fn phase(&self) -> Phase {
        self.phase
    }
    /// Number of calls in any state.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.calls.len()
    }
    /// The SAAL of the link, for counters and display.
    #[must_use]
    pub const fn saal(&self) -> &Saal {
        &self.saal
    }
    /// Mode of the link.
    #[must_use]
    pub const fn mode(&self) -> sscop::Mode {
        self.params.sscop.mode
    }
    /// The version of the interface.
    #[must_use]
    pub const fn version(&self) -> uni::Version {
        self.params.uni.version
    }
    /// Call control, for display.
    #[must_use]
    pub const fn uni(&self) -> &Uni {
        &self.uni
    }
    /// Messages of call control that were lost because the link was down.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.lost
    }

    fn establish(&mut self, now: Instant) {
        // SSCF accepts this request in every state.
        let request = saal::Input::Upper(saal::Request::Establish);
        if let Err(refused) = self.saal.handle_input(request, now) {
            let trace = Trace::detail("uni.refused", refused.to_string());
            self.outputs.push_back(Output::Trace(trace));
        }
    }

    /// Passes an input to call control. Messages of peers and link events are never refused.
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

    /// Moves outputs between the two machines until neither has more.
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
                self.timers.stop(Timer::Reestablish);
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
            self.timers.start(Timer::Reestablish, now, after);
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
            // The pause after a refusal is kept, so that two ends cannot request and refuse in a tight loop.
            uni::Output::SaalEstablish => {
                if self.started
                    && self.saal.state() == saal::State::Released
                    && !self.timers.runs(Timer::Reestablish)
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
                self.timers.stop(Timer::Restart);
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
        self.timers.start(Timer::Restart, now, wait);
        true
    }

    fn ready(&mut self) {
        self.timers.stop(Timer::Restart);
        if self.phase == Phase::Restarting {
            self.phase = Phase::Ready;
            self.outputs.push_back(Output::Indication(Indication::Up));
        }
    }

    fn link_down(&mut self, now: Instant) {
        self.started = false;
        self.timers.stop_all();
        // A peer that saw no failure must be able to tell the next BGN from the last one.
        self.params.sscop.initial_sq = self.saal.connection_sq();
        self.saal = Saal::in_place_of(&self.saal, self.params.sscop);
        self.tell_uni(uni::Input::SaalDown, now);
    }

    fn set_version(&mut self, version: uni::Version, now: Instant) {
        if version == self.params.uni.version {
            return;
        }
        let text = format!("the other side speaks {version:?}: signalling starts over");
        let trace = Trace::milestone("uni.version", text);
        self.start_over(trace, now, |params| {
            params.uni.version = version;
            params.sscop.mode = mode_of(version);
        });
    }

    fn set_side(&mut self, side: uni::Side, now: Instant) {
        if side == self.params.uni.side {
            return;
        }
        let text = format!("this end plays the {side:?} side from now on: signalling starts over");
        let trace = Trace::milestone("uni.side", text);
        self.start_over(trace, now, |params| params.uni.side = side);
    }

    fn set_location(&mut self, location: u8) {
        self.params.uni.location = location;
        self.uni.set_location(location);
    }

    /// Ends all calls and restarts with other parameters.
    fn start_over(&mut self, why: Trace, now: Instant, change: impl FnOnce(&mut Params)) {
        let started = self.started;
        self.link_down(now);
        self.drain(now);
        // Calls that survive a loss of the link do not survive this restart.
        for call in core::mem::take(&mut self.calls) {
            let cause = crate::Cause::TEMPORARY.into();
            let released = Indication::Released { call, cause };
            self.outputs.push_back(Output::Indication(released));
        }
        change(&mut self.params);
        self.saal = Saal::in_place_of(&self.saal, self.params.sscop);
        self.uni = Uni::new(self.params.uni);
        self.outputs.push_back(Output::Trace(why));
        if started {
            self.started = true;
            self.establish(now);
        }
    }
}

impl Machine for Interface {
    type Input<'a> = Input<'a>;
    type Output = Output;
    type Refusal = Refused;

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
                self.tell_uni(uni::Input::LineDown, now);
                Ok(())
            }
            // The interface was not started, or the line is dead: the SDU is ignored.
            Input::Lower(_) if !self.started => Ok(()),
            Input::Lower(sdu) => self.saal.handle_input(saal::Input::Lower(sdu), now),
            Input::Request(request) => self.request(request, now),
            Input::Version(version) => {
                self.set_version(version, now);
                Ok(())
            }
            Input::Side(side, location) => {
                self.set_side(side, now);
                self.set_location(location);
                Ok(())
            }
        };
        self.drain(now);
        done
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(timer) = self.timers.expire(now) {
            match timer {
                Timer::Restart => self.ready(),
                Timer::Reestablish => self.establish(now),
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

#[cfg(test)]
mod tests;
