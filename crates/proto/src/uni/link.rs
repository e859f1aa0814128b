//! A UNI interface with its signalling link: what drivers hold, one per port.

use std::collections::VecDeque;

use crate::saal::{self, Saal};
use crate::sscop;
use crate::{Instant, Machine, Refused, Trace};

use super::{Indication, Input, Output, Params, Request, Uni, Version};

/// What goes into [`UniLink`].
#[derive(Clone, Debug)]
pub enum LinkInput<'a> {
    /// One AAL5 SDU from VPI 0 VCI 5.
    Lower(&'a [u8]),
    /// The owner wants something.
    Request(Request),
}

/// What comes out of [`UniLink`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkOutput {
    /// One AAL5 SDU for VPI 0 VCI 5.
    Lower(Vec<u8>),
    /// For the owner.
    Indication(Indication),
    /// For the story.
    Trace(Trace),
}

/// [`Uni`] over [`Saal`]. It establishes the link with its first input or timeout and keeps at it.
#[derive(Debug)]
pub struct UniLink {
    uni: Uni,
    saal: Saal,
    outputs: VecDeque<LinkOutput>,
    started: bool,
}

impl UniLink {
    /// An interface without a link yet. UNI 3.0 runs over the draft of SSCOP (Q.SAAL1), the others over
    /// Q.2110.
    #[must_use]
    pub fn new(params: Params) -> Self {
        let mode = match params.version {
            Version::Uni30 => sscop::Mode::Qsaal1,
            Version::Uni31 | Version::Uni40 => sscop::Mode::Q2110,
        };
        let sscop = sscop::Params {
            mode,
            // After a loss each active call is asked for at once.
            max_queue: params.limits.calls.saturating_mul(2).max(1024),
            ..sscop::Params::UNI
        };
        Self::with_sscop(params, sscop)
    }
    /// The same with other parameters of the link.
    #[must_use]
    pub fn with_sscop(params: Params, sscop: sscop::Params) -> Self {
        Self {
            uni: Uni::new(params),
            saal: Saal::new(sscop),
            outputs: VecDeque::new(),
            started: false,
        }
    }
    /// The interface, to look at.
    #[must_use]
    pub const fn uni(&self) -> &Uni {
        &self.uni
    }
    /// The link, to look at.
    #[must_use]
    pub const fn saal(&self) -> &Saal {
        &self.saal
    }

    /// Moves outputs between the two until both are drained.
    fn pump(&mut self, now: Instant) {
        loop {
            if let Some(output) = self.uni.poll_output() {
                self.take_from_uni(output, now);
            } else if let Some(output) = self.saal.poll_output() {
                self.take_from_saal(output, now);
            } else {
                return;
            }
        }
    }
    fn take_from_uni(&mut self, output: Output, now: Instant) {
        let request = match output {
            // Asked for while the link is up, it would resynchronise: the peer was faster.
            Output::SaalEstablish if self.saal.state() == saal::State::Established => return,
            Output::SaalEstablish => saal::Request::Establish,
            Output::SaalData(message) => saal::Request::Data(message),
            Output::Indication(indication) => {
                self.outputs.push_back(LinkOutput::Indication(indication));
                return;
            }
            Output::Trace(trace) => {
                self.outputs.push_back(LinkOutput::Trace(trace));
                return;
            }
        };
        // Refused when the link went down in the same moment or its queue is full: the message is lost as
        // on a bad link, and the timers of the call make up for it.
        if let Err(Refused(why)) = self.saal.handle_input(saal::Input::Upper(request), now) {
            let trace = Trace::detail("uni.unsent", "Message not taken by the link");
            self.outputs
                .push_back(LinkOutput::Trace(trace.with("why", why)));
        }
    }
    fn take_from_saal(&mut self, output: saal::Output, now: Instant) {
        let done = match output {
            saal::Output::Lower(pdu) => {
                self.outputs.push_back(LinkOutput::Lower(pdu));
                return;
            }
            saal::Output::Trace(trace) => {
                self.outputs.push_back(LinkOutput::Trace(trace));
                return;
            }
            saal::Output::Upper(saal::Indication::Established) => {
                self.uni.handle_input(Input::SaalUp, now)
            }
            saal::Output::Upper(saal::Indication::Released) => {
                self.uni.handle_input(Input::SaalDown, now)
            }
            saal::Output::Upper(
                saal::Indication::Data(message) | saal::Indication::UnitData(message),
            ) => self.uni.handle_input(Input::SaalData(&message), now),
        };
        debug_assert!(done.is_ok(), "only requests can be refused");
    }
    fn start(&mut self, now: Instant) {
        if !core::mem::replace(&mut self.started, true) {
            self.pump(now);
        }
    }
}

impl Machine for UniLink {
    type Input<'a> = LinkInput<'a>;
    type Output = LinkOutput;

    fn handle_input(&mut self, input: LinkInput<'_>, now: Instant) -> Result<(), Refused> {
        self.start(now);
        let done = match input {
            LinkInput::Lower(sdu) => self.saal.handle_input(saal::Input::Lower(sdu), now),
            LinkInput::Request(request) => self.uni.handle_input(Input::Request(request), now),
        };
        self.pump(now);
        done
    }
    fn handle_timeout(&mut self, now: Instant) {
        self.start(now);
        self.saal.handle_timeout(now);
        self.pump(now);
        self.uni.handle_timeout(now);
        self.pump(now);
    }
    fn poll_output(&mut self) -> Option<LinkOutput> {
        self.outputs.pop_front()
    }
    fn poll_timeout(&self) -> Option<Instant> {
        let deadlines = [self.saal.poll_timeout(), self.uni.poll_timeout()];
        deadlines.into_iter().flatten().min()
    }
}
