//! Parameters of an SSCOP entity, with the defaults of SSCF-UNI.

use crate::Duration;
use crate::time::{ms, s};

aerostat_wire::named! {
    /// Edition of the protocol. The PDUs are the same in all of them.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum Mode {
        /// Q.2110, as UNI 3.1 and later require.
        #[default]
        Q2110 = "Q2110",
        /// The Q.SAAL drafts of UNI 3.0: N(SQ) is always 0, and every BGN, RS and ER counts as new.
        Qsaal1 = "Qsaal1",
        /// Q.2110, but a first BGN with N(SQ) = 0, which no Q.2110 entity sends, switches to `Qsaal1`.
        Auto = "Auto",
    }
}

crate::parameters! {
    /// Parameters of an SSCOP entity. Source: Q.2110 §7.6 and §7.7, values of Q.2130 §11.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Params, ParamRanges, split {
        /// Time between transmissions of BGN, END, RS or ER.
        timer_cc: Duration = s(1), ms(10)..=s(60);
        /// Time between POLLs while data are outstanding.
        timer_poll: Duration = ms(750), ms(10)..=s(60);
        /// Time between POLLs while nothing is outstanding and a STAT is awaited.
        timer_keep_alive: Duration = s(2), ms(10)..=s(60);
        /// Longest time without a STAT before the link counts as lost (longer than timer_poll and timer_keep_alive).
        timer_no_response: Duration = s(7), ms(20)..=s(600);
        /// Time without POLLs once nothing is outstanding.
        timer_idle: Duration = s(15), ms(10)..=s(600);
        /// Transmissions of BGN, END, RS or ER before giving up (MaxCC).
        max_cc: u32 = 4, 1..=100;
        /// Messages after which a POLL is sent at once (MaxPD).
        max_pd: u32 = 25, 1..=1000;
        /// Elements in the list of one STAT (MaxSTAT); odd, at least 3.
        max_stat: usize = 67;
        /// Messages granted to the peer beyond the next one expected.
        ///
        /// A local choice.
        window: u32 = 128, 1..=4096;
        /// Messages that may wait for transmission or acknowledgement. A local choice.
        max_queue: usize = 1024;
        /// Initial VT(SQ). With the standard's 0, a peer that did not notice a restart takes the first BGN after it for
        /// a retransmission. An owner that restarts should use another value each time.
        initial_sq: u8 = 0;
        /// Edition of the protocol.
        mode: Mode = Mode::Q2110;
    }
}

impl Params {
    /// Defaults of SSCF-UNI.
    pub const UNI: Self = Self::DEFAULT;

    /// The same parameters with every local choice limited to its range.
    pub(super) fn bounded(mut self) -> Self {
        self.window = Self::RANGES.window.nearest(self.window);
        self.max_pd = self.max_pd.max(Self::RANGES.max_pd.min);
        self.max_stat = self.max_stat.max(3) | 1;
        self
    }
}
