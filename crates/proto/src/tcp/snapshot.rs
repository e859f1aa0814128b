//! Plain data for display.

use super::{Phase, State, Tcp};
use crate::Duration;

crate::counters! {
    /// Counters of a connection.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Counters {
        /// Segments sent, without resets.
        pub segments_sent: u64,
        /// Octets of data sent, repetitions included.
        pub octets_sent: u64,
        /// Segments received.
        pub segments_received: u64,
        /// Octets of data that became readable.
        pub octets_received: u64,
        /// Segments without data that only acknowledge.
        pub acks_sent: u64,
        /// Segments sent again.
        pub retransmissions: u64,
        /// Expired timers of retransmission and handshake.
        pub timeouts: u64,
        /// Losses that acknowledgements have told of.
        pub fast_recoveries: u64,
        /// Acknowledgements of a part, in a recovery without blocks.
        pub partial_acks: u64,
        /// Reductions that were taken back.
        pub undone: u64,
        /// Times that new data was sent to find out whether a timer was spurious.
        pub frto_steps: u64,
        /// Probes of the tail.
        pub tail_probes: u64,
        /// Probes of a zero window.
        pub window_probes: u64,
        /// Times that the congestion window held new data back.
        pub window_limited: u64,
        /// Reductions for congestion marks.
        pub mark_reductions: u64,
        /// Duplicate ACKs received.
        pub duplicate_acks: u64,
        /// Blocks that reported a duplicate.
        pub duplicate_blocks: u64,
        /// Blocks of what was not sent, or is acknowledged.
        pub blocks_ignored: u64,
        /// Segments received that were there already.
        pub duplicates: u64,
        /// Segments received beyond a hole.
        pub out_of_order: u64,
        /// Pieces beyond holes that came in order.
        pub holes_filled: u64,
        /// Segments dropped: too many holes.
        pub ranges_full: u64,
        /// Segments that were cut at the end of the window.
        pub beyond_window: u64,
        /// Segments dropped: their numbers are not in the window.
        pub unacceptable: u64,
        /// Segments dropped: they acknowledge what was not sent, or what is long gone.
        pub bad_acks: u64,
        /// Segments dropped: their time stamp is old, or missing.
        pub stale_stamps: u64,
        /// Challenge ACKs.
        pub challenges: u64,
        /// Answers that the limit of challenges held back.
        pub challenges_held: u64,
        /// Segments with an urgent pointer.
        pub urgent: u64,
        /// Resets sent.
        pub resets_sent: u64,
    }
}

/// State of a connection, for people and series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// State.
    pub state: State,
    /// State of loss recovery.
    pub phase: Phase,
    /// Congestion window, octets.
    pub window: u64,
    /// Slow-start threshold, octets; `None` before the first loss.
    pub threshold: Option<u64>,
    /// Octets under way.
    pub flight: u64,
    /// Window that the peer offers, octets.
    pub peer_window: u64,
    /// Octets of data in a full segment.
    pub mss: u64,
    /// Smoothed round trip.
    pub round_trip: Option<Duration>,
    /// Retransmission timer.
    pub timer: Duration,
    /// Octets in the send buffer, and its size.
    pub send_buffer: (usize, usize),
    /// Octets in the receive buffer, beyond holes included, and its size.
    pub receive_buffer: (usize, usize),
    /// Pieces beyond holes.
    pub ranges: usize,
    /// Segments of the scoreboard that acknowledgements have looked at one by one.
    pub steps: u64,
    /// Time stamps are in use.
    pub timestamps: bool,
    /// Selective acknowledgements are in use.
    pub sack: bool,
    /// Windows are scaled.
    pub scaled: bool,
    /// Congestion marks are in use.
    pub ecn: bool,
    /// Shift of the windows that are sent, and of those that arrive.
    pub scales: (u8, u8),
}

impl Tcp {
    /// State of the connection.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let threshold = self.tx.cwnd.threshold;
        Snapshot {
            state: self.state,
            phase: self.tx.repair.phase,
            window: self.tx.cwnd.octets,
            threshold: (threshold < u64::MAX).then_some(threshold),
            flight: self.tx.board.pipe(),
            peer_window: self.tx.window,
            mss: self.tx.mss,
            round_trip: self.tx.estimator.smoothed(),
            timer: self.tx.estimator.timer(),
            send_buffer: (self.tx.queued(), self.tx.size()),
            receive_buffer: (self.rx.kept(), self.rx.size()),
            ranges: self.rx.ranges(),
            steps: self.tx.board.steps(),
            timestamps: self.stamps.agreed,
            sack: self.sack,
            scaled: self.scaled,
            ecn: self.ecn.agreed,
            scales: (self.rx.scale, self.tx.scale),
        }
    }
}
