//! SAAL: the assured link as seen by Q.2931. SSCF-UNI over an [`Sscop`].
//!
//! **Purpose.** Maps the user's four primitives (establish, release, data, unit data) to SSCOP's and hides
//! resynchronisation and error recovery: after either of these the user gets `Established` once more and checks its
//! calls with STATUS ENQUIRY, because messages may have been lost.
//!
//! **Objects and owners.** One [`Saal`] per signalling channel (VPI 0 VCI 5) owns its SSCOP entity. The owner of the
//! Saal passes [`Output::Lower`] to AAL5 and requests the link again with `Establish` after `Released`.
//!
//! **States.** [`State`]; the second number of each is the state of SSCOP as the user knows it.
//!
//! **Timers.** No timers of its own.
//!
//! **Standards.** ITU-T Q.2130 (07/94).
//!
//! **Not implemented.** Parameter data (SSCOP-UU): sent empty, ignored when received.
//!
//! **Deviations.** Errors for layer management are reported as traces and counters.

use crate::sscop::{self, Buffers, Params, Sscop};
use crate::{Instant, Machine, Refused, Trace};
use std::collections::VecDeque;

aerostat_wire::named! {
    /// State of SSCF-UNI. Source: Q.2130 §9.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum State {
        /// 1/1: no link.
        Released = "Released",
        /// 2/2: the user has requested the link.
        AwaitingEstablish = "AwaitingEstablish",
        /// 3/4: the user has requested the release of the link.
        AwaitingRelease = "AwaitingRelease",
        /// 2/5: the user has requested the link again while it was up.
        AwaitingResync = "AwaitingResync",
        /// 4/10: data may be sent.
        Established = "Established",
    }
}

/// Requests of the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// AAL-ESTABLISH.request. While the link is up: resynchronise it.
    Establish,
    /// AAL-RELEASE.request.
    Release,
    /// AAL-DATA.request: deliver in order, exactly once.
    Data(Vec<u8>),
    /// AAL-UNITDATA.request: send once, without assurance.
    UnitData(Vec<u8>),
}

/// Indications for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Indication {
    /// AAL-ESTABLISH.indication or .confirm. Also while the link is up: messages may have been lost.
    Established,
    /// AAL-RELEASE.indication or .confirm: no link.
    Released,
    /// AAL-DATA.indication.
    Data(Vec<u8>),
    /// AAL-UNITDATA.indication.
    UnitData(Vec<u8>),
}

/// Inputs of [`Saal`].
#[derive(Clone, Debug)]
pub enum Input<'a> {
    /// One AAL5 SDU from VPI 0 VCI 5.
    Lower(&'a [u8]),
    /// A primitive from the user.
    Upper(Request),
}

/// Outputs of [`Saal`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// One AAL5 SDU for VPI 0 VCI 5.
    Lower(Vec<u8>),
    /// A primitive for the user.
    Upper(Indication),
    /// A trace event: `saal.up`, `saal.down`, `sscop.error`.
    Trace(Trace),
}

/// Counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// How often the link came up.
    pub established: u64,
    /// How often the link was lost or released.
    pub released: u64,
    /// Retransmitted SDs.
    pub retransmitted: u64,
    /// Errors reported to layer management (all codes except V, W and X).
    pub errors: u64,
    /// PDUs discarded for their length or type (code U; also counted in `errors`).
    pub malformed: u64,
    /// Reports to layer management by code, A to X; see [`Counters::by_code`].
    codes: [u64; 24],
}

impl Counters {
    /// Number of reports by code, for codes that occurred, in alphabetical order. Source: Q.2110 Annex A.
    pub fn by_code(&self) -> impl Iterator<Item = (char, u64)> {
        ('A'..='X').zip(self.codes).filter(|(_, count)| *count > 0)
    }
    fn count(&mut self, code: char) {
        let index = (code as usize).wrapping_sub('A' as usize);
        if let Some(count) = self.codes.get_mut(index) {
            *count += 1;
        }
    }
}

/// Meaning of an error code. Source: Q.2110 Annex A.
#[must_use]
pub const fn code_meaning(code: char) -> &'static str {
    match code {
        'A' => "unexpected SD",
        'B' => "unexpected BGN",
        'C' => "unexpected BGAK",
        'D' => "unexpected BGREJ",
        'E' => "unexpected END",
        'F' => "unexpected ENDAK",
        'G' => "unexpected POLL",
        'H' => "unexpected STAT",
        'I' => "unexpected USTAT",
        'J' => "unexpected RS",
        'K' => "unexpected RSAK",
        'L' => "unexpected ER",
        'M' => "unexpected ERAK",
        'O' => "no answer to BGN, END, RS or ER",
        'P' => "no STAT in time",
        'Q' => "wrong N(S) of SD or POLL",
        'R' => "wrong N(PS) of STAT",
        'S' => "wrong N(R) or list of STAT",
        'T' => "wrong N(R) or list of USTAT",
        'U' => "wrong length or type of a PDU",
        'V' => "messages sent again",
        'W' => "credit used up",
        'X' => "credit again",
        _ => "no such code",
    }
}

/// One end of an assured signalling link.
#[derive(Debug)]
pub struct Saal {
    sscop: Sscop,
    state: State,
    outputs: VecDeque<Output>,
    counters: Counters,
}

impl Saal {
    /// An end without a link; `Request::Establish` starts it.
    #[must_use]
    pub fn new(params: Params) -> Self {
        Self {
            sscop: Sscop::new(params),
            state: State::Released,
            outputs: VecDeque::new(),
            counters: Counters::default(),
        }
    }
    /// A new end that keeps the counters of the one that it replaces.
    #[must_use]
    pub fn in_place_of(former: &Self, params: Params) -> Self {
        let mut new = Self::new(params);
        new.counters = former.counters;
        new
    }
    /// The state.
    #[must_use]
    pub const fn state(&self) -> State {
        self.state
    }
    /// Messages that the peer has not acknowledged.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.sscop.outstanding()
    }
    /// VT(SQ) of the SSCOP entity: the number of its last BGN, RS or ER.
    #[must_use]
    pub const fn connection_sq(&self) -> u8 {
        self.sscop.connection_sq()
    }
    /// The counters.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    fn tell(&mut self, indication: Indication) {
        self.outputs.push_back(Output::Upper(indication));
    }
    fn ask(&mut self, request: sscop::Request, now: Instant) -> Result<(), Refused> {
        self.sscop.handle_input(sscop::Input::Upper(request), now)
    }

    fn request(&mut self, request: Request, now: Instant) -> Result<(), Refused> {
        use sscop::Request as Aa;
        match (request, self.state) {
            (Request::Establish, State::Released | State::AwaitingRelease) => {
                self.ask(Aa::Establish(Vec::new(), Buffers::Release), now)?;
                self.state = State::AwaitingEstablish;
            }
            (Request::Establish, State::Established) => {
                self.ask(Aa::Resync(Vec::new()), now)?;
                self.state = State::AwaitingResync;
            }
            // The request is in progress already.
            (Request::Establish, State::AwaitingEstablish | State::AwaitingResync) => {}
            (Request::Release, State::Released) => self.tell(Indication::Released),
            (Request::Release, State::AwaitingRelease) => {}
            (
                Request::Release,
                State::AwaitingEstablish | State::AwaitingResync | State::Established,
            ) => {
                self.ask(Aa::Release(Vec::new()), now)?;
                self.state = State::AwaitingRelease;
            }
            (Request::Data(message), State::Established) => self.ask(Aa::Data(message), now)?,
            (Request::Data(_), _) => return Err(Refused("SAAL: no link")),
            (Request::UnitData(message), _) => self.ask(Aa::UnitData(message), now)?,
        }
        Ok(())
    }

    /// Handles outputs of SSCOP, and answers for the user where Q.2130 says so.
    fn drain(&mut self, now: Instant) {
        while let Some(output) = self.sscop.poll_output() {
            match output {
                sscop::Output::Lower(pdu) => self.outputs.push_back(Output::Lower(pdu)),
                sscop::Output::Upper(indication) => self.indication(indication, now),
                sscop::Output::Management(error) => self.error(error),
            }
        }
    }

    fn indication(&mut self, indication: sscop::Indication, now: Instant) {
        use sscop::Indication as Aa;
        match indication {
            Aa::Establish(_) => self.answer(
                sscop::Request::EstablishResponse(Vec::new(), Buffers::Release),
                now,
            ),
            Aa::Established(_) | Aa::Resynced => self.up(),
            Aa::Resync(_) => self.answer(sscop::Request::ResyncResponse, now),
            Aa::Recover => self.answer(sscop::Request::RecoverResponse, now),
            Aa::Released(..) | Aa::ReleaseConfirmed => self.down(),
            Aa::Data(message, _) => self.tell(Indication::Data(message)),
            Aa::UnitData(message) => self.tell(Indication::UnitData(message)),
            // Layer management does not use this.
            Aa::ManagementData(_) => {}
            // Answers to requests that this layer never makes.
            Aa::Retrieved(_) | Aa::RetrieveComplete => {}
        }
    }

    /// Gives SSCOP the response that it waits for; the link is up.
    fn answer(&mut self, response: sscop::Request, now: Instant) {
        // SSCOP refuses this only if a later input of the same moment has overtaken the indication. Then a further
        // indication follows and decides.
        if self.ask(response, now).is_ok() {
            self.up();
        }
    }
    fn up(&mut self) {
        if self.state != State::Established {
            self.outputs.push_back(Output::Trace(Trace::detail(
                "saal.up",
                "signalling link up",
            )));
        }
        self.state = State::Established;
        self.counters.established += 1;
        self.tell(Indication::Established);
    }
    fn down(&mut self) {
        self.state = State::Released;
        self.counters.released += 1;
        self.outputs.push_back(Output::Trace(Trace::detail(
            "saal.down",
            "signalling link down",
        )));
        self.tell(Indication::Released);
    }
    fn error(&mut self, error: sscop::MaaError) {
        self.counters.count(error.code);
        match error.code {
            'V' => {
                self.counters.retransmitted += u64::from(error.count);
                return;
            }
            'W' | 'X' => {}
            _ => self.counters.errors += 1,
        }
        self.counters.malformed += u64::from(error.code == 'U');
        let text = format!(
            "SSCOP reports error {}: {}",
            error.code,
            code_meaning(error.code)
        );
        self.outputs.push_back(Output::Trace(
            Trace::detail("sscop.error", text).with("code", error.code),
        ));
    }
}

impl Machine for Saal {
    type Input<'a> = Input<'a>;
    type Output = Output;
    type Refusal = Refused;

    fn handle_input(&mut self, input: Input<'_>, now: Instant) -> Result<(), Refused> {
        let done = match input {
            Input::Lower(octets) => self.sscop.handle_input(sscop::Input::Lower(octets), now),
            Input::Upper(request) => self.request(request, now),
        };
        self.drain(now);
        done
    }
    fn handle_timeout(&mut self, now: Instant) {
        self.sscop.handle_timeout(now);
        self.drain(now);
    }
    fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }
    fn poll_timeout(&self) -> Option<Instant> {
        self.sscop.poll_timeout()
    }
}

#[cfg(test)]
mod tests;
