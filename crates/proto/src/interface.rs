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
mod tests {
    use super::*;
    use crate::Cause;
    use crate::machine::settle;
    use crate::uni::{Side, Version};
    use aerostat_wire::{AtmAddress, Blli, Qos, SscopPdu, Vc};

    /// Two interfaces and a link with a delay of 1 ms.
    struct Pair {
        ends: [Interface; 2],
        wire: VecDeque<(Instant, usize, Vec<u8>)>,
        told: [Vec<Indication>; 2],
        now: Instant,
        cut: bool,
        sent: usize,
        /// Every n-th SDU is lost; 0 means that no SDU is lost.
        lose_every: usize,
    }

    impl Pair {
        fn new() -> Self {
            Self::of(Version::Uni31)
        }
        fn of(version: Version) -> Self {
            let end = |side| Interface::new(Params::new(side, version));
            Self {
                ends: [end(Side::User), end(Side::Network)],
                wire: VecDeque::new(),
                told: Default::default(),
                now: Instant::ZERO,
                cut: false,
                sent: 0,
                lose_every: 0,
            }
        }
        fn feed(&mut self, end: usize, input: Input<'_>) {
            self.ends[end].handle_input(input, self.now).unwrap();
            self.drain(end);
        }
        fn drain(&mut self, end: usize) {
            let mut cleared_now = Vec::new();
            for output in settle(&mut self.ends[end], self.now) {
                match output {
                    Output::Lower(sdu) => {
                        self.sent += 1;
                        let lost = self.lose_every > 0 && self.sent.is_multiple_of(self.lose_every);
                        if !self.cut && !lost {
                            let at = self.now + Duration::from_millis(1);
                            self.wire.push_back((at, 1 - end, sdu));
                        }
                    }
                    Output::Indication(indication) => {
                        if let Indication::Restarted { what } = indication {
                            let cleared = uni::Request::RestartCleared { what };
                            cleared_now.push(Input::Request(cleared));
                        }
                        self.told[end].push(indication);
                    }
                    Output::Trace(_) => {}
                }
            }
            for cleared in cleared_now {
                self.feed(end, cleared);
            }
        }
        fn run(&mut self, seconds: u64) {
            let until = self.now + Duration::from_secs(seconds);
            loop {
                let arrival = self.wire.front().map(|(at, ..)| *at);
                let timers = self.ends.iter().filter_map(Machine::poll_timeout);
                let Some(next) = timers.chain(arrival).min().filter(|at| *at <= until) else {
                    break;
                };
                self.now = next;
                if arrival == Some(next)
                    && let Some((_, end, sdu)) = self.wire.pop_front()
                {
                    self.feed(end, Input::Lower(&sdu));
                }
                self.drain(0);
                self.drain(1);
            }
            self.now = until;
        }
    }

    fn ups(told: &[Indication]) -> usize {
        told.iter().filter(|i| **i == Indication::Up).count()
    }

    #[test]
    fn another_version_ends_calls_and_starts_over() {
        let mut pair = Pair::of(Version::Uni40);
        pair.feed(0, Input::Start);
        pair.feed(1, Input::Start);
        pair.run(5);
        let call = CallId(1);
        let qos = Qos::ubr(100);
        let info = uni::SetupInfo::new(AtmAddress::LECS, None, aerostat_wire::Sap::LLC, qos);
        let setup = uni::Request::Setup {
            call,
            info,
            vc: None,
            party: None,
        };
        pair.feed(0, Input::Request(setup));
        pair.run(1);
        assert_eq!(pair.ends[1].calls(), 1);
        for end in [1, 0] {
            pair.feed(end, Input::Version(Version::Uni30));
            pair.feed(end, Input::Version(Version::Uni30));
        }
        assert_eq!((pair.ends[0].calls(), pair.ends[1].calls()), (0, 0));
        pair.run(5);
        for end in 0..2 {
            assert_eq!(pair.ends[end].version(), Version::Uni30);
            assert_eq!(pair.ends[end].phase(), Phase::Ready);
            assert_eq!(ups(&pair.told[end]), 2);
            let released = |i: &Indication| matches!(i, Indication::Released { .. });
            assert!(pair.told[end].iter().any(released));
        }
    }

    #[test]
    fn both_ends_are_restarted_and_then_ready() {
        let mut pair = Pair::new();
        pair.feed(0, Input::Start);
        pair.run(5);
        assert_eq!(pair.ends[1].phase(), Phase::Down, "not started: deaf");
        pair.feed(1, Input::Start);
        pair.run(2);
        for end in 0..2 {
            assert_eq!(pair.ends[end].phase(), Phase::Ready);
            assert_eq!(ups(&pair.told[end]), 1);
            let restarted = Indication::Restarted { what: Restart::All };
            let at = |wanted: &Indication| pair.told[end].iter().position(|i| i == wanted);
            assert!(at(&restarted) < at(&Indication::Up), "{:?}", pair.told[end]);
        }
    }

    #[test]
    fn lost_links_come_back() {
        let mut pair = Pair::new();
        pair.feed(0, Input::Start);
        pair.feed(1, Input::Start);
        pair.run(2);
        pair.cut = true;
        pair.run(60);
        for end in 0..2 {
            assert_eq!(pair.ends[end].phase(), Phase::Down);
            assert_eq!(pair.told[end].last(), Some(&Indication::Down));
        }
        pair.cut = false;
        pair.run(10);
        for end in 0..2 {
            assert_eq!(pair.ends[end].phase(), Phase::Ready);
            assert_eq!(ups(&pair.told[end]), 2);
        }
        pair.feed(0, Input::LinkDown);
        assert_eq!(pair.ends[0].phase(), Phase::Down);
        let before = pair.sent;
        pair.run(30);
        assert_eq!(pair.ends[1].phase(), Phase::Down, "the other end is alone");
        assert!(pair.sent - before < 100);
    }

    /// The line of one end fails and recovers before the other end misses it. The other end is told nevertheless,
    /// because no call of the old connection exists any more.
    #[test]
    fn a_short_failure_at_one_end_is_noticed_by_the_other() {
        let mut pair = Pair::new();
        pair.feed(0, Input::Start);
        pair.feed(1, Input::Start);
        pair.run(2);
        pair.told = Default::default();
        pair.feed(0, Input::LinkDown);
        pair.feed(0, Input::Start);
        pair.run(3);
        for end in 0..2 {
            assert_eq!(pair.ends[end].phase(), Phase::Ready);
            assert_eq!(pair.told[end].first(), Some(&Indication::Down));
            assert_eq!(pair.told[end].last(), Some(&Indication::Up));
        }
    }

    #[test]
    fn calls_over_a_lossy_link() {
        for version in [Version::Uni30, Version::Uni31, Version::Uni40] {
            let mut pair = Pair::of(version);
            pair.lose_every = 5;
            pair.feed(0, Input::Start);
            pair.feed(1, Input::Start);
            pair.run(10);
            let (call, vc) = (CallId(1), Some(Vc::new(0, 40)));
            let called = AtmAddress::LECS;
            let info = uni::SetupInfo::new(called, Some(called), Blli::LLC, Qos::ubr(1516));
            let party = None;
            let setup = uni::Request::Setup {
                call,
                info,
                vc: None,
                party,
            };
            pair.feed(0, Input::Request(setup));
            pair.run(3);
            let offered = pair.told[1].iter().find_map(|told| match told {
                Indication::Setup { call, .. } => Some(*call),
                _ => None,
            });
            let accept = uni::Request::Accept {
                call: offered.expect("the call came through"),
                info: uni::ConnectInfo::default(),
                vc,
            };
            pair.feed(1, Input::Request(accept));
            pair.run(3);
            let connected = |told: &Indication| matches!(told, Indication::Connected { vc, .. } if *vc == Vc::new(0, 40));
            assert!(pair.told[0].iter().any(connected), "{version:?}");
            let cause = Cause::NORMAL;
            pair.feed(
                0,
                Input::Request(uni::Request::Release {
                    call,
                    cause: cause.into(),
                }),
            );
            pair.run(5);
            for end in &pair.ends {
                assert_eq!((end.calls(), end.uni().calls().count()), (0, 0));
                assert_eq!(end.saal().counters().released, 0, "the link held");
            }
        }
    }

    /// A peer that connects but never answers RESTART.
    #[test]
    fn an_unanswered_restart_does_not_block() {
        let mut end = Interface::new(Params::new(Side::User, Version::Uni31));
        let now = Instant::ZERO;
        end.handle_input(Input::Start, now).unwrap();
        settle(&mut end, now);
        let ack = [0, 0, 0, 0, 2, 0, 0, 30];
        end.handle_input(Input::Lower(&ack), now).unwrap();
        let sent = settle(&mut end, now);
        assert!(sent.iter().any(|o| matches!(o, Output::Lower(_))));
        assert_eq!(end.phase(), Phase::Restarting);
        let mut now = now;
        while end.phase() != Phase::Ready {
            now = end.poll_timeout().unwrap();
            settle(&mut end, now);
        }
        assert_eq!(now, Instant::from_secs(3));
    }

    /// A peer that refuses every connection is asked about once a second.
    #[test]
    fn refusals_do_not_spin() {
        let mut end = Interface::new(Params::new(Side::User, Version::Uni31));
        let mut now = Instant::ZERO;
        end.handle_input(Input::Start, now).unwrap();
        let refusal = SscopPdu::BeginReject { uu: Vec::new() }.encode();
        let mut begins = 0;
        while now < Instant::from_secs(60) {
            for output in settle(&mut end, now) {
                if matches!(output, Output::Lower(_)) {
                    begins += 1;
                    end.handle_input(Input::Lower(&refusal), now).unwrap();
                }
            }
            now = end.poll_timeout().unwrap();
        }
        assert_eq!(begins, 60);
    }
}
