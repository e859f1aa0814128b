//! Parameters of an ATP connection.

use crate::Duration;
use crate::parameters::Octets;
use crate::time::ms;
use aerostat_wire::atp::{HEADER_LEN, MIN_MTU};

/// Rules that a connection follows. Both ends need the same profile: nothing on the wire tells it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// The rules of the report: an ACK for each packet, a fixed retransmission timer, a window by CARD.
    #[default]
    Report,
    /// The rules that the report names as future work: cumulative ACKs, a timer from measured round trips, a window
    /// from the contract's rate or from the measured queue.
    Adaptive,
}

crate::parameters! {
    /// Parameters of an ATP connection. Source: the report for 500 ms, 10 packets, 100 ms and 9180 octets; the others
    /// are local choices.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Params, ParamRanges {
        /// Octets of the longest SDU, header included.
        mtu: usize = 9180, MIN_MTU..=65_535;
        /// Packets that may be unacknowledged at the start.
        initial_window: u32 = 10, 1..=MAX_WINDOW;
        /// Packets that may be unacknowledged at most.
        max_window: u32 = 256, 1..=MAX_WINDOW;
        /// Time after which an unacknowledged packet is sent again. The adaptive profile begins with it.
        timer: Duration = ms(500), ms(1)..=ms(60_000);
        /// Expired timers of one packet before the connection fails; also NAKs for one packet.
        retransmissions: u32 = 10, 1..=1000;
        /// Round trip that is assumed before the first one is measured.
        initial_round_trip: Duration = ms(100), Duration::from_micros(1)..=ms(60_000);
        /// Octets of messages that the user has not read, and of packets behind a gap, beyond which the receiver
        /// takes no new message and no packet behind a gap. A message that has begun is taken to its end.
        receive_limit: Octets = Octets(16 << 20), Octets(64 << 10)..=Octets(1 << 30);
        /// Octets that may wait for their first transmission; each message counts 64 octets more.
        send_limit: Octets = Octets(256 << 20), Octets(64 << 10)..=Octets(1 << 31);
        /// Octets of the longest message.
        max_message: Octets = Octets(128 << 20), Octets(1 << 10)..=Octets(1 << 31);
        /// Adaptive profile: packets after which the receiver acknowledges at once.
        ack_every: u32 = 2, 1..=64;
        /// Adaptive profile: longest time for which the receiver holds an acknowledgement back.
        ack_delay: Duration = ms(5), Duration::from_micros(1)..=ms(1000);
        /// Adaptive profile: shortest retransmission timer.
        min_timer: Duration = ms(10), Duration::from_micros(100)..=ms(1000);
        /// Peak cell rate of the contract, cells/s, both priorities; 0 if the contract has no rate.
        cell_rate: u32 = 0;
        /// Round trips that differ by no more than this count as equal: the tick of the clock.
        tick: Duration = Duration::from_micros(1);
        /// Number of the first packet in each direction.
        first: u32 = 0;
        /// The rules.
        profile: Profile = Profile::Report;
    }
}

/// Largest window, packets. Comparisons of numbers, the receiver's memory and the longest burst depend on it: an ACK,
/// or timers that were started at once, may let go of a whole window.
pub const MAX_WINDOW: u32 = 1 << 12;

/// Room that a message or a packet takes besides its octets. Without it, empty messages would take no room.
pub(super) const OVERHEAD: usize = 64;

impl Params {
    /// Octets of the longest message that is taken for transmission: [`Self::max_message`], or what
    /// [`Self::send_limit`] leaves for it.
    #[must_use]
    pub fn longest(&self) -> usize {
        self.max_message.0.min(self.send_limit.0 - OVERHEAD)
    }
    /// Octets of a message in a full packet.
    #[must_use]
    pub const fn data(&self) -> usize {
        self.mtu - HEADER_LEN
    }
    /// Cells of a full packet: the SDU with AAL5's trailer of 8 octets, in payloads of 48.
    pub(super) const fn cells(&self) -> u64 {
        (self.mtu as u64 + 8).div_ceil(48)
    }
    /// Packets that the contract's rate carries within `round_trip`, rounded up; `None` without a rate.
    pub(super) fn packets_within(&self, round_trip: Duration) -> Option<u64> {
        if self.cell_rate == 0 {
            return None;
        }
        let nanos = u128::from(self.cells()) * 1_000_000_000;
        let packets = (round_trip.as_nanos() * u128::from(self.cell_rate)).div_ceil(nanos);
        u64::try_from(packets).ok()
    }
}
