//! Packets that links out of the lab read in one turn: in batches, and with a limit for each link.
//!
//! **Batches.** One call of the operating system brings up to [`SLOTS`] buffers. A buffer of a UDP socket can hold many
//! datagrams of one sender, all of one length except the last one (GRO: generic receive offload). All links of a loop
//! read into the same buffers, one link after another, so 10 000 links need no more memory for them than one.
//!
//! **Fairness.** In one turn a link takes at most [`READS`] buffers, or the octets of about [`CELLS`] cells. If that
//! took longer than [`SLICE`], with all that the cells cause in the network at once, the next turns of the link take
//! fewer buffers, but at least a buffer. Then the other links, the TAPs and the network have their turns. So a flood
//! cannot stop the others, and delays them little. Turns that ended at the limit with data waiting are counted.
//!
//! **Times.** The kernel stamps each packet when it arrives, so a loop that comes late does not make a burst of cells
//! that came evenly: the rate of the link and policers in the network see their times (`bucket.rs`).

use crate::clock::Clock;
use aerostat_proto::{Duration, Instant};
use aerostat_wire::cell::CELL_LEN;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, MultiHeaders, recvmmsg};
use nix::sys::time::TimeSpec;
use quinn_udp::{BATCH_SIZE, RecvMeta, UdpSockRef, UdpSocketState};
use rustix::fd::{AsFd, AsRawFd as _};
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::time::SystemTime;

/// Number of buffers.
pub(super) const SLOTS: usize = BATCH_SIZE;
/// Octets of a buffer: any packet fits. The odd remainder keeps the buffers from sharing the same lines of a cache.
const SLOT: usize = 65_536 + 320;
/// Limit of buffers that a link takes in one turn.
const READS: usize = 64;
/// About how many cells a link takes in one turn.
const CELLS: usize = 2048;

/// How long the links out of a lab may work in one turn, about.
pub(crate) const SLICE: Duration = Duration::from_micros(50);

/// Longest time that a datagram counts as having waited. The clock of the kernel's time stamps can be set.
const LATEST: Duration = Duration::from_secs(1);

/// The datagrams in a buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Come<'a> {
    /// Their sender.
    pub(super) from: SocketAddr,
    /// Their octets.
    pub(super) octets: &'a [u8],
    /// Octets of each, at least 1. The last one may be shorter; a single one may be empty.
    pub(super) length: usize,
}

impl<'a> Come<'a> {
    /// How many they are.
    pub(super) fn count(self) -> u64 {
        self.octets.len().div_ceil(self.length).max(1) as u64
    }
    /// One after another.
    pub(super) fn each(self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let empty = self.octets.is_empty().then_some(self.octets);
        empty.into_iter().chain(self.octets.chunks(self.length))
    }
}

/// Buffers for received packets.
pub(crate) struct Inbox {
    octets: Vec<u8>,
    meta: [RecvMeta; SLOTS],
    headers: MultiHeaders<()>,
    clock: Clock,
    /// True if a socket has been read since [`Self::was_used`].
    used: bool,
    /// The time of the last reading: on the clock of the loop, and of the kernel's time stamps since 1970.
    read: (Instant, Duration),
}

impl Inbox {
    /// Buffers of a loop with this clock.
    pub(crate) fn new(clock: Clock) -> Self {
        Self {
            octets: vec![0; SLOTS * SLOT],
            meta: [RecvMeta::default(); SLOTS],
            // The only control message has a fixed length, and comes with each packet of a socket that has asked for
            // it.
            headers: MultiHeaders::preallocate(SLOTS, Some(nix::cmsg_space!(TimeSpec))),
            clock,
            used: false,
            read: (Instant::ZERO, Duration::ZERO),
        }
    }

    /// True if a socket has been read since the last call.
    pub(crate) fn was_used(&mut self) -> bool {
        std::mem::take(&mut self.used)
    }

    /// When the kernel received the (first) packet in a buffer, at most [`LATEST`] ago.
    pub(super) fn arrived(&self, slot: usize) -> Instant {
        let (now, since_epoch) = self.read;
        let stamp = self.meta.get(slot).and_then(|meta| meta.timestamp);
        let waited = stamp.map_or(Duration::ZERO, |stamp| since_epoch.saturating_sub(stamp));
        Instant::ZERO + now.since(Instant::ZERO + waited.min(LATEST))
    }

    /// Reads at most `most` packets of a socket that is not UDP; returns how many have come.
    pub(super) fn packets(&mut self, from: impl AsFd, most: usize) -> io::Result<usize> {
        self.used = true;
        let mut slots = self.octets.chunks_exact_mut(SLOT);
        let mut slots: [[IoSliceMut<'_>; 1]; SLOTS] =
            std::array::from_fn(|_| [IoSliceMut::new(slots.next().unwrap_or_default())]);
        let come = recvmmsg(
            from.as_fd().as_raw_fd(),
            &mut self.headers,
            slots.iter_mut().take(most),
            MsgFlags::MSG_DONTWAIT,
            None,
        )?;
        let mut count = 0;
        for (meta, packet) in self.meta.iter_mut().zip(come) {
            meta.len = packet.bytes;
            let mut messages = packet.cmsgs().into_iter().flatten();
            meta.timestamp = messages.find_map(|message| match message {
                ControlMessageOwned::ScmTimestampns(stamp) => Some(stamp.into()),
                _ => None,
            });
            count += 1;
        }
        self.note_time();
        Ok(count)
    }

    /// Notes when packets were read.
    fn note_time(&mut self) {
        let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        self.read = (self.clock.now(), since_epoch.unwrap_or_default());
    }

    /// Reads at most `most` buffers of a UDP socket; returns how many have come.
    pub(super) fn datagrams(
        &mut self,
        state: &UdpSocketState,
        from: UdpSockRef<'_>,
        most: usize,
    ) -> io::Result<usize> {
        self.used = true;
        let mut slots = self.octets.chunks_exact_mut(SLOT);
        let mut slots: [IoSliceMut<'_>; SLOTS] =
            std::array::from_fn(|_| IoSliceMut::new(slots.next().unwrap_or_default()));
        let slots = slots.get_mut(..most).unwrap_or_default();
        let come = state.recv(from, slots, &mut self.meta)?;
        self.note_time();
        Ok(come)
    }

    /// The octets that were read into a buffer.
    pub(super) fn packet(&self, slot: usize) -> &[u8] {
        let length = self.meta.get(slot).map_or(0, |meta| meta.len);
        let from = slot * SLOT;
        self.octets.get(from..from + length).unwrap_or_default()
    }

    /// The datagrams in a buffer.
    pub(super) fn datagrams_in(&self, slot: usize) -> Option<Come<'_>> {
        let meta = self.meta.get(slot)?;
        Some(Come {
            from: meta.addr,
            octets: self.packet(slot),
            length: meta.stride.max(1),
        })
    }

    /// Octets in the first buffers.
    pub(super) fn octets(&self, slots: usize) -> usize {
        self.meta.iter().take(slots).map(|meta| meta.len).sum()
    }
}

/// Packets that a link may still take in its turn.
#[derive(Debug)]
pub(super) struct Turns {
    /// How many buffers a turn may take.
    slice: usize,
    reads: usize,
    octets: usize,
    /// Octets of a buffer in the last batch, on average.
    typical: usize,
    /// Turns that ended at the limit and more data may have waited.
    pub(super) cut: u64,
}

impl Default for Turns {
    fn default() -> Self {
        Self {
            slice: READS,
            reads: 0,
            octets: 0,
            typical: 0,
            cut: 0,
        }
    }
}

impl Turns {
    /// Begins a turn.
    pub(super) const fn begin(&mut self) {
        self.reads = self.slice;
        self.octets = CELLS * CELL_LEN;
    }
    /// How many buffers may be read next; 0 at the limit.
    pub(super) fn most(&self) -> usize {
        let fit = self.octets.div_ceil(self.typical.max(1));
        self.reads.min(SLOTS).min(fit)
    }
    /// Counts a batch; a call without a packet counts, too.
    pub(super) fn took(&mut self, buffers: usize, octets: usize) {
        self.typical = octets.checked_div(buffers).unwrap_or(self.typical);
        self.reads = self.reads.saturating_sub(buffers.max(1));
        self.octets = self.octets.saturating_sub(octets);
    }
    /// Sets how much the next turn may take, by the time that the buffers of this one have cost. One turn in which the
    /// system gave the processor to others must not count for long, so a small slice can double in each turn.
    pub(super) fn spent(&mut self, time: Duration) {
        if time <= SLICE && self.reads > 0 {
            return;
        }
        let taken = self.slice.saturating_sub(self.reads).max(1);
        let fit = taken as u128 * SLICE.as_nanos() / time.as_nanos().max(1);
        let most = READS.min(self.slice * 2);
        self.slice = usize::try_from(fit).unwrap_or(most).clamp(1, most);
    }
    /// Ends the turn; true if the link may have more data.
    pub(super) fn end(&mut self, readable: bool) -> bool {
        self.cut += u64::from(readable);
        readable
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A turn that costs more than its slice makes the next ones shorter, until their cost fits; cheap buffers lengthen
    /// them again.
    #[test]
    fn a_turn_has_a_limit_in_time() {
        let mut turns = Turns::default();
        let mut turn = |cost: Duration, waiting: usize| {
            turns.begin();
            let (mut left, mut taken) = (waiting, 0);
            while turns.most() > 0 && left > 0 {
                let count = turns.most().min(left);
                turns.took(count, count * CELL_LEN);
                (left, taken) = (left - count, taken + count);
            }
            turns.spent(cost * taken as u32);
            taken
        };
        let micros = Duration::from_micros;
        assert_eq!(turn(micros(5), 1000), READS);
        assert_eq!(turn(micros(5), 1000), 10);
        assert_eq!(turn(micros(5), 1000), 10);
        // Turns below the limit say little about the cost of many buffers.
        assert_eq!(turn(micros(40), 1), 1);
        assert_eq!(turn(Duration::from_millis(20), 1000), 10);
        let grown = [1, 2, 4, 8, 10, 10].map(|_| turn(micros(5), 1000));
        assert_eq!(grown, [1, 2, 4, 8, 10, 10]);
        let grown = [10, 20, 40, READS].map(|_| turn(Duration::from_nanos(300), 1000));
        assert_eq!(grown, [10, 20, 40, READS]);
    }

    /// Datagrams with many cells are taken in smaller batches, so that a turn stays short.
    #[test]
    fn a_turn_has_a_limit_in_packets_and_in_octets() {
        let mut turns = Turns::default();
        turns.begin();
        for _ in 0..2 {
            assert_eq!(turns.most(), SLOTS);
            turns.took(SLOTS, SLOTS * CELL_LEN);
        }
        assert_eq!(turns.most(), 0);
        assert!(turns.end(true) && turns.cut == 1);
        // After the first batch of large buffers, less is asked for.
        let large = 64 * 64 * CELL_LEN;
        let mut turns = Turns::default();
        turns.begin();
        turns.took(SLOTS, SLOTS * large);
        assert_eq!(turns.most(), 0);
        turns.begin();
        assert_eq!(turns.most(), 1);
        turns.took(1, large);
        assert_eq!(turns.most(), 0);
        // A socket with errors alone ends its turn, too.
        turns.begin();
        let calls = (0..).take_while(|_| {
            let more = turns.most() > 0;
            turns.took(0, 0);
            more
        });
        assert_eq!(calls.count(), READS);
        assert!(!turns.end(false) && turns.cut == 0);
    }
}
