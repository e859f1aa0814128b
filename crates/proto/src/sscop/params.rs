//! Parameters of an SSCOP entity, with the defaults of SSCF-UNI.

use crate::Duration;

/// Edition of the protocol. The PDUs are the same in all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Q.2110, as UNI 3.1 and later require.
    #[default]
    Q2110,
    /// The Q.SAAL drafts of UNI 3.0: N(SQ) is always 0, and every BGN, RS and ER counts as new.
    Qsaal1,
    /// Q.2110, but a first BGN with N(SQ) = 0, which no Q.2110 entity sends, switches to `Qsaal1`.
    Auto,
}

/// Parameters of an SSCOP entity. Source: Q.2110 §7.6 and §7.7, values of Q.2130 §11.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// Time between transmissions of BGN, END, RS or ER.
    pub timer_cc: Duration,
    /// Time between POLLs while data are outstanding.
    pub timer_poll: Duration,
    /// Time between POLLs while nothing is outstanding and a STAT is awaited.
    pub timer_keep_alive: Duration,
    /// Longest time without a STAT before the link counts as lost.
    pub timer_no_response: Duration,
    /// Time without POLLs once nothing is outstanding.
    pub timer_idle: Duration,
    /// Transmissions of BGN, END, RS or ER before giving up (MaxCC).
    pub max_cc: u32,
    /// Number of SDs after which a POLL is sent at once (MaxPD).
    pub max_pd: u32,
    /// Elements in the list of one STAT (MaxSTAT); odd, at least 3.
    pub max_stat: usize,
    /// SDs granted to the peer beyond the next one expected, 1..=4096. A local choice.
    pub window: u32,
    /// Messages that may wait for transmission or acknowledgement. A local choice.
    pub max_queue: usize,
    /// Initial VT(SQ). With the standard's 0, a peer that did not notice a restart takes the first BGN after it for a
    /// retransmission. An owner that restarts should use another value each time.
    pub initial_sq: u8,
    /// Edition of the protocol.
    pub mode: Mode,
}

impl Params {
    /// Defaults of SSCF-UNI.
    pub const UNI: Self = Self {
        timer_cc: Duration::from_secs(1),
        timer_poll: Duration::from_millis(750),
        timer_keep_alive: Duration::from_secs(2),
        timer_no_response: Duration::from_secs(7),
        timer_idle: Duration::from_secs(15),
        max_cc: 4,
        max_pd: 25,
        max_stat: 67,
        window: 128,
        max_queue: 1024,
        initial_sq: 0,
        mode: Mode::Q2110,
    };

    /// The same parameters with every local choice limited to its range.
    pub(super) fn bounded(mut self) -> Self {
        self.window = self.window.clamp(1, 4096);
        self.max_pd = self.max_pd.max(1);
        self.max_stat = self.max_stat.max(3) | 1;
        self
    }
}

impl Default for Params {
    fn default() -> Self {
        Self::UNI
    }
}
