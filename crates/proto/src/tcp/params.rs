//! Parameters of a TCP: each is a point in which hosts differed. [`super::profiles`] has the values of real hosts.

use crate::Duration;

/// How octets in a buffer are charged against its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accounting {
    /// Each octet of data counts one. BSD's limit without its limit of mbufs.
    Octets,
    /// Mbufs and clusters of BSD: a piece of data takes a small buffer if it fits, or else whole clusters, each with an
    /// mbuf as its header; twice the size of the socket buffer is the limit of what is taken.
    Mbufs {
        /// Octets of an mbuf.
        mbuf: u32,
        /// Octets of data that fit in an mbuf.
        data: u32,
        /// Octets of a cluster.
        cluster: u32,
    },
    /// True size of Linux: the structure of a packet, and its data with headers rounded up to a power of two.
    TrueSize {
        /// Octets of the structure.
        structure: u32,
        /// Octets of headers in front of the data.
        headers: u32,
    },
}

impl Accounting {
    /// Charge for a piece of `data` octets, octets.
    #[must_use]
    pub const fn charge(self, data: usize) -> usize {
        match self {
            Self::Octets => data,
            Self::Mbufs {
                mbuf,
                data: small,
                cluster,
            } => {
                if data <= small as usize {
                    mbuf as usize
                } else {
                    data.div_ceil(cluster as usize) * (cluster as usize + mbuf as usize)
                }
            }
            Self::TrueSize { structure, headers } => {
                structure as usize + (headers as usize + data).next_power_of_two()
            }
        }
    }
    /// Limit of all charges for a buffer of `size` octets.
    #[must_use]
    pub const fn limit(self, size: usize) -> usize {
        match self {
            Self::Octets | Self::TrueSize { .. } => size,
            Self::Mbufs { .. } => size * 2,
        }
    }
}

/// The form of the offered window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowForm {
    /// The free space, octet by octet; nothing below a segment and a quarter of the buffer. Source: 4.4BSD
    /// `tcp_output`.
    Free,
    /// Whole segments of the free space. Source: Linux `__tcp_select_window` without a scale.
    Segments,
}

/// When the program's reading makes the machine send a segment that only tells of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowUpdate {
    /// The edge moves by two segments, or by half of the buffer. Source: 4.3BSD `tcp_output`, RFC 9293 §3.8.6.2.2.
    TwoSegmentsOrHalf,
    /// The window is twice of what the peer knows. Source: Linux `tcp_cleanup_rbuf`.
    Doubled,
}

/// When data is acknowledged that the count of segments has not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckDelay {
    /// At once.
    Never,
    /// So long after the first such segment.
    After(Duration),
    /// At the next tick of a clock of the whole host. Source: 4.3BSD `tcp_fasttimo`, 200 ms.
    Tick(Duration),
    /// A time that follows the gaps between segments. Source: Linux `tcp_event_data_recv`, 40 to 200 ms.
    Adaptive {
        /// Least time.
        least: Duration,
        /// Largest time.
        most: Duration,
        /// Tick of the host's timers; 0: they are exact. Source: as [`TimerParams::jiffy`].
        jiffy: Duration,
    },
}

/// Effect of PSH at the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckPush {
    /// Nothing.
    Never,
    /// The segment is acknowledged once the program has read all that has arrived. A segment that is not full counts as
    /// one with PSH. Source: Linux `tcp_measure_rcv_mss`, `tcp_cleanup_rbuf`.
    WhenRead,
}

/// The receiving half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiveParams {
    /// Buffer, octets, 1 to 2³⁰.
    pub buffer: usize,
    /// Size to which the buffer grows with what the program reads in a round trip; the same as `buffer`: it does not
    /// grow. Source: Linux `tcp_rcv_space_adjust`.
    pub most: usize,
    /// How data in the buffer is counted.
    pub accounting: Accounting,
    /// The part of the free buffer that is offered, 1/this: 2 in Linux 2.2 and later, else 1.
    pub share: u32,
    /// Form of the window.
    pub form: WindowForm,
    /// Segments of the first window; each segment that arrives adds two, up to the buffer, and is acknowledged at once
    /// then. 0: the buffer from the start. Source: Linux `tcp_grow_window`.
    pub first_segments: u32,
    /// A segment is acknowledged when more than this less one full segments are not; 0: never by count.
    pub ack_every: u8,
    /// The acknowledgement by count waits until the program has read, if the window would shrink. Source: Linux
    /// `__tcp_ack_snd_check`.
    pub ack_after_read: bool,
    /// Delay of what is not acknowledged by count.
    pub ack_delay: AckDelay,
    /// Segments at the start, and after a pause of more than the sender's timer, that are acknowledged at once. Source:
    /// Linux `TCP_MAX_QUICKACKS`, 16.
    pub quick_acks: u16,
    /// Acknowledgement of a segment with PSH.
    pub ack_push: AckPush,
    /// Window updates.
    pub update: WindowUpdate,
}

/// Nagle's algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nagle {
    /// Every write is sent.
    Off,
    /// A segment that is not full waits until all is acknowledged. Source: RFC 896, RFC 9293 §3.7.4.
    Rfc896,
    /// A segment that is not full waits while another such segment is not acknowledged. Source: Linux
    /// `tcp_nagle_check`.
    Minshall,
}

/// The probe of a window that is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probe {
    /// The next octet. Source: BSD, RFC 9293 §3.8.6.1.
    Octet,
    /// No octet, and a number that the peer has acknowledged. Source: Linux `tcp_xmit_probe_skb`.
    Empty,
}

/// Segments that have PSH.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Push {
    /// A segment that empties the send buffer. Source: BSD `tcp_output`.
    Emptied,
    /// The end of each write, and each half of the largest window in it. Source: Linux `tcp_push`, `forced_push`.
    Written,
}

/// The initial congestion window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitialWindow {
    /// So many segments.
    Segments(u32),
    /// Two to four segments by their size. Source: RFC 3390.
    Rfc3390,
}

/// The sending half.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendParams {
    /// Buffer, octets, 1 to 2³⁰.
    pub buffer: usize,
    /// Size to which the buffer grows with the congestion window; the same as `buffer`: it does not grow. Source: Linux
    /// `tcp_sndbuf_expand`.
    pub most: usize,
    /// How data in the buffer is counted.
    pub accounting: Accounting,
    /// Nagle's algorithm.
    pub nagle: Nagle,
    /// Probes of a zero window.
    pub probe: Probe,
    /// A segment has at most half of the largest window that the peer has offered, if that is more than 536 octets.
    /// Source: Linux `tcp_bound_to_half_wnd`.
    pub half_window: bool,
    /// Segments with PSH.
    pub push: Push,
    /// A program that has filled the buffer goes on when a third of it is free, and fills whole segments; else it goes
    /// on when an octet is free. Source: Linux `sk_stream_write_space`, `tcp_sendmsg_locked`.
    pub wake_at_third: bool,
}

/// How a loss is found and repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// Slow start from one segment after three duplicate ACKs; all that is outstanding is sent again. Source: K. Fall
    /// and S. Floyd, *Simulation-based Comparisons of Tahoe, Reno, and SACK TCP*, 1996, §2.
    Tahoe,
    /// Fast recovery that ends with the first new ACK. Source: RFC 5681 §3.2.
    Reno,
    /// Fast recovery that ends when all is acknowledged that was outstanding. Source: RFC 6582.
    NewReno,
    /// Repair of all holes by selective acknowledgements; without them as `NewReno`. Source: RFC 6675.
    Sack,
    /// Losses by time, and a probe of the tail; without selective acknowledgements as `NewReno`. Source: RFC 8985.
    Rack,
}

impl Recovery {
    /// True if the sender uses the blocks of selective acknowledgements. Other senders ignore them: what a block names
    /// would count twice for them, by the block and by its duplicate ACK.
    #[must_use]
    pub const fn uses_blocks(self) -> bool {
        matches!(self, Self::Sack | Self::Rack)
    }
}

/// How the window grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// A segment for each round trip. Source: RFC 5681 §3.1.
    Reno,
    /// CUBIC. Source: RFC 9438.
    Cubic {
        /// Slow start ends when the delay grows, or a train of ACKs is as long as a round trip. Source: S. Ha and I.
        /// Rhee, *Hybrid Slow Start*, 2008, and Linux `tcp_cubic.c`.
        hystart: bool,
        /// As RFC 9438 has it: the window grows by parts of a segment, and by a whole segment in a round trip where
        /// Reno's is the larger one and above the window before the last reduction (§4.3). Else as Linux has it: by
        /// whole segments, by counts that hold for a while, and anew after a timer (`tcp_cubic.c`).
        standard: bool,
    },
    /// No congestion control: only the peer's window limits.
    Off,
}

impl Growth {
    /// CUBIC of Linux.
    pub const CUBIC_OF_LINUX: Self = Self::Cubic {
        hystart: true,
        standard: false,
    };
}

/// Growth of the window by one ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counting {
    /// One step, whatever it acknowledges. Source: BSD, RFC 5681 equation 2 and 3 with one segment.
    Acks,
    /// The octets that the ACK acknowledges. Source: RFC 3465, Linux.
    Octets,
}

/// Congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CongestionParams {
    /// Loss recovery.
    pub recovery: Recovery,
    /// Growth.
    pub growth: Growth,
    /// Counting of acknowledgements.
    pub counting: Counting,
    /// The window grows only while it limits the sender. Source: RFC 9293 §3.8.2, Linux `tcp_is_cwnd_limited`.
    pub grows_when_limited: bool,
    /// Initial window.
    pub initial_window: InitialWindow,
    /// A sender that was idle for a timer begins again with the initial window. Source: RFC 5681 §4.1.
    pub restart_after_idle: bool,
    /// The first two duplicate ACKs let one new segment out each. Source: RFC 3042.
    pub limited_transmit: bool,
    /// Proportional rate reduction. Source: RFC 6937.
    pub prr: bool,
    /// Detection of spurious timers by what is acknowledged. Source: RFC 5682.
    pub frto: bool,
    /// A reduction is taken back if time stamps or duplicate blocks show that nothing was lost. Source: RFC 3522, 4015,
    /// 3708.
    pub undo: bool,
}

/// The least value of the retransmission timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Floor {
    /// The timer is at least this. Source: RFC 6298 §2.4, BSD.
    Timer(Duration),
    /// The part that follows from the variance is at least this. Source: Linux 2.2 `tcp_rtt_estimator`.
    Variance(Duration),
    /// The part that follows from the largest deviation in a round trip is at least this. It falls by a quarter of the
    /// difference once in a round trip, and samples that are shorter than the mean count little. Source: Linux 2.4 and
    /// later, `tcp_rtt_estimator`.
    Largest(Duration),
}

impl Floor {
    /// The same form with another time.
    #[must_use]
    pub const fn with(self, least: Duration) -> Self {
        match self {
            Self::Timer(_) => Self::Timer(least),
            Self::Variance(_) => Self::Variance(least),
            Self::Largest(_) => Self::Largest(least),
        }
    }
}

/// Timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimerParams {
    /// Timer before the first round trip is measured.
    pub initial: Duration,
    /// Least timer.
    pub floor: Floor,
    /// Largest timer, also after back-off.
    pub most: Duration,
    /// Round trips are measured in units of this.
    pub granularity: Duration,
    /// Timers expire at the ticks of a clock of the whole host, and round trips are counted in its ticks. Source: BSD
    /// `tcp_slowtimo`, 500 ms.
    pub slow_tick: Option<Duration>,
    /// Timers expire at ticks of this length, with coarser steps for longer timers, and never early; 0: they are exact.
    /// Source: Linux `calc_wheel_index`.
    pub jiffy: Duration,
    /// One segment at a time is measured, as BSD did; else each ACK of a segment that was sent once.
    pub one_measurement: bool,
    /// Timers without an answer before the connection fails.
    pub retries: u32,
    /// The same for SYN, once its timer doubles.
    pub syn_retries: u32,
    /// Further repetitions of SYN before its timer begins to double. Source: Linux 6.5 `tcp_syn_linear_timeouts`.
    pub syn_linear: u32,
    /// Least and largest time between probes of a zero window; `None`: as the retransmission timer.
    pub persist: Option<(Duration, Duration)>,
    /// Unit of the clock of time stamps, 1 ms to 1 s.
    pub stamp_unit: Duration,
    /// Twice the segment lifetime: the time in TIME-WAIT.
    pub time_wait: Duration,
    /// Time in FIN-WAIT-2 after which the connection is dropped, if the program has gone; `None`: for ever.
    pub fin_wait: Option<Duration>,
    /// Probes of an idle connection: time until the first one, time between two, and their number before the connection
    /// fails.
    pub keep_alive: Option<(Duration, Duration, u32)>,
}

impl TimerParams {
    /// Repetitions of SYN before the connection fails. Source: Linux 6.5 `tcp_write_timeout`, which adds both.
    #[must_use]
    pub const fn syn_most(&self) -> u32 {
        self.syn_retries.saturating_add(self.syn_linear)
    }
}

/// A TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// Largest segment that is offered and sent, octets of data without options: the MTU less 40; at least 48.
    pub mss: u16,
    /// Time stamps are offered and accepted.
    pub timestamps: bool,
    /// Window scaling is offered and accepted.
    pub window_scaling: bool,
    /// Selective acknowledgements are offered and accepted.
    pub sack: bool,
    /// Explicit congestion notification is offered and accepted. Source: RFC 3168.
    pub ecn: bool,
    /// The receiving half.
    pub receive: ReceiveParams,
    /// The sending half.
    pub send: SendParams,
    /// Congestion control.
    pub congestion: CongestionParams,
    /// Timers.
    pub timers: TimerParams,
}

/// Limits of buffers, octets.
const BUFFER: core::ops::RangeInclusive<usize> = 1..=1 << 30;

impl Params {
    /// The parameters with each value in its range.
    #[must_use]
    pub fn in_range(mut self) -> Self {
        let clamp = |size: usize| size.clamp(*BUFFER.start(), *BUFFER.end());
        self.mss = self.mss.max(48);
        self.receive.share = self.receive.share.clamp(1, 16);
        self.receive.buffer = clamp(self.receive.buffer);
        // A window of nothing would never open.
        self.receive.buffer = self.receive.buffer.max(self.receive.share as usize);
        self.receive.most = clamp(self.receive.most).max(self.receive.buffer);
        self.send.buffer = clamp(self.send.buffer);
        self.send.most = clamp(self.send.most).max(self.send.buffer);
        let tick = Duration::from_micros(1);
        let timers = &mut self.timers;
        timers.granularity = timers.granularity.max(tick);
        timers.stamp_unit = timers
            .stamp_unit
            .clamp(Duration::from_millis(1), Duration::from_secs(1));
        timers.slow_tick = timers.slow_tick.map(|length| length.max(tick));
        timers.most = timers.most.max(Duration::from_millis(1));
        if let AckDelay::Tick(length) = &mut self.receive.ack_delay {
            *length = (*length).max(tick);
        }
        self
    }
    /// The shift of windows that the receive buffer needs.
    #[must_use]
    pub fn scale(&self) -> u8 {
        let size = self.receive.most.max(self.receive.buffer) / self.receive.share as usize;
        (0..14).find(|shift| size >> shift <= 65_535).unwrap_or(14)
    }
    /// Octets of the initial congestion window for segments of `mss` octets.
    #[must_use]
    pub fn initial_window(&self, mss: u64) -> u64 {
        match self.congestion.initial_window {
            InitialWindow::Segments(segments) => u64::from(segments.max(1)) * mss,
            InitialWindow::Rfc3390 => (4 * mss).min((2 * mss).max(4380)),
        }
    }
}
