//! The receiving half of a connection: packets become messages, gaps are asked for.

use super::sender::{BASE, Out, SPAN, number, wire};
use super::{Failure, Params, Profile};
use crate::{Duration, Instant};
use aerostat_wire::atp::{Pdu, Seq30};
use std::collections::{BTreeMap, VecDeque};

/// NAKs for one packet that comes: a packet far ahead may open a gap of thousands, and the next packets tell the rest.
const MOST_NAKS: usize = 64;

/// Adaptive profile: time between two such bursts of NAKs.
const NAK_PAUSE: Duration = Duration::from_micros(100);
/// What a message or a packet takes besides its octets. Without it, empty messages would take no room.
const OVERHEAD: usize = 64;

/// The receiving half.
#[derive(Debug)]
pub(super) struct Receiver {
    /// The number of the next packet in order.
    expected: u64,
    /// The number behind the highest one seen.
    end: u64,
    /// Packets behind a gap.
    ahead: BTreeMap<u64, (bool, Vec<u8>)>,
    ahead_octets: usize,
    /// Numbers that are missing, with the time of the last NAK and the number of NAKs.
    missing: BTreeMap<u64, Option<(Instant, u32)>>,
    /// The message that is not complete.
    assembly: Vec<u8>,
    /// False between the last packet of a message and the first of the next one.
    begun: bool,
    /// Complete messages that the user has not read.
    ready: VecDeque<Vec<u8>>,
    unread: usize,
    /// Adaptive profile: packets that were not acknowledged, and when they must be.
    held: u32,
    ack_at: Option<Instant>,
    /// Adaptive profile: the time from a NAK to its packet.
    repair: Duration,
    /// When the next NAK is due; the report's profile sends it with the next packet that comes.
    nak_at: Option<Instant>,
    adaptive: bool,
}

impl Receiver {
    pub(super) fn new(params: &Params) -> Self {
        let first = BASE + u64::from(wire(params.first.into()).get());
        Self {
            expected: first,
            end: first,
            ahead: BTreeMap::new(),
            ahead_octets: 0,
            missing: BTreeMap::new(),
            assembly: Vec::new(),
            begun: false,
            ready: VecDeque::new(),
            unread: 0,
            held: 0,
            ack_at: None,
            repair: params.initial_round_trip,
            nak_at: None,
            adaptive: params.profile == Profile::Adaptive,
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        let nak_at = self.nak_at.filter(|_| self.adaptive);
        self.ack_at.into_iter().chain(nak_at).min()
    }
    pub(super) fn take(&mut self) -> Option<Vec<u8>> {
        let message = self.ready.pop_front()?;
        self.unread -= message.len() + OVERHEAD;
        Some(message)
    }
    pub(super) fn unread(&self) -> (usize, usize) {
        (self.ready.len(), self.unread)
    }
    /// Octets of the message that is not complete, and of packets behind gaps.
    pub(super) fn incomplete(&self) -> usize {
        self.assembly.len() + self.ahead_octets
    }
    /// Forgets what can no longer become a message.
    pub(super) fn abandon(&mut self) {
        self.ahead.clear();
        self.missing.clear();
        self.assembly = Vec::new();
        (self.ahead_octets, self.ack_at, self.nak_at) = (0, None, None);
    }

    /// A data packet has come.
    pub(super) fn data(
        &mut self,
        (seq, last, octets): (Seq30, bool, &[u8]),
        params: &Params,
        now: Instant,
        out: &mut Out,
    ) {
        let number = number(seq, self.expected);
        if number < self.expected || self.ahead.contains_key(&number) {
            out.counters.duplicates += 1;
            return self.acknowledge(number, true, params, now, out);
        }
        if number - self.expected >= SPAN {
            out.counters.out_of_window += 1;
            return;
        }
        // A message that has begun goes on: only its end makes room.
        let goes_on = number == self.expected && self.begun;
        let kept = self.unread + self.ahead_octets + octets.len() + OVERHEAD;
        if !goes_on && kept > params.receive_limit.0 {
            out.counters.no_room += 1;
            return;
        }
        if let Some(Some((asked, 1))) = self.missing.remove(&number) {
            self.repair = (self.repair * 7 + now.since(asked)) / 8;
        }
        if self.end < number {
            self.missing
                .extend((self.end..number).map(|gap| (gap, None)));
            self.nak_at = Some(now);
        }
        self.end = self.end.max(number + 1);
        out.counters.packets_received += 1;
        let mut filled = false;
        if number == self.expected {
            self.append(last, octets, params, out);
            while let Some((last, octets)) = self.ahead.remove(&self.expected) {
                filled = true;
                self.ahead_octets -= octets.len() + OVERHEAD;
                self.append(last, &octets, params, out);
            }
        } else {
            self.ahead_octets += octets.len() + OVERHEAD;
            self.ahead.insert(number, (last, octets.to_vec()));
        }
        if out.failed.is_some() {
            return;
        }
        let at_once = last || filled || !self.missing.is_empty();
        self.acknowledge(number, at_once, params, now, out);
        if self.missing.is_empty() {
            self.nak_at = None;
        }
        if self.nak_at.is_some_and(|at| at <= now) {
            self.ask(params, now, out);
        }
    }

    /// Timers of the adaptive profile.
    pub(super) fn expire(&mut self, params: &Params, now: Instant, out: &mut Out) {
        if self.ack_at.is_some_and(|at| at <= now) {
            self.acknowledge(self.expected, true, params, now, out);
        }
        if self.adaptive && self.nak_at.is_some_and(|at| at <= now) {
            self.ask(params, now, out);
        }
    }

    /// The next packet in order.
    fn append(&mut self, last: bool, octets: &[u8], params: &Params, out: &mut Out) {
        self.expected += 1;
        self.begun = !last;
        if self.assembly.len() + octets.len() > params.max_message.0 {
            out.failed = Some(Failure::TooLong(params.max_message.0));
            return;
        }
        self.assembly.extend(octets);
        if last {
            let message = std::mem::take(&mut self.assembly);
            self.unread += message.len() + OVERHEAD;
            self.ready.push_back(message);
            out.counters.messages_received += 1;
        }
    }

    fn acknowledge(
        &mut self,
        number: u64,
        at_once: bool,
        params: &Params,
        now: Instant,
        out: &mut Out,
    ) {
        let number = match params.profile {
            Profile::Report => number,
            Profile::Adaptive => {
                self.held += 1;
                if !at_once && self.held < params.ack_every {
                    self.ack_at.get_or_insert(now + params.ack_delay);
                    return;
                }
                (self.held, self.ack_at) = (0, None);
                self.expected - 1
            }
        };
        out.sdus.push_back(Pdu::Ack(wire(number)).encode());
        out.counters.acks_sent += 1;
    }

    /// Asks for what is missing and was not asked for a while ago.
    fn ask(&mut self, params: &Params, now: Instant, out: &mut Out) {
        let wait = match params.profile {
            Profile::Report => params.timer,
            Profile::Adaptive => (self.repair * 2).max(params.min_timer),
        };
        let due = |asked: &Option<(Instant, u32)>| asked.is_none_or(|(at, _)| at + wait <= now);
        let due = self.missing.iter_mut().filter(|(_, asked)| due(asked));
        for (number, asked) in due.take(MOST_NAKS) {
            out.sdus.push_back(Pdu::Nak(wire(*number)).encode());
            out.counters.naks_sent += 1;
            *asked = Some((now, asked.map_or(1, |(_, times)| times + 1)));
        }
        let soon = now + NAK_PAUSE;
        let next = self.missing.values().map(|asked| match asked {
            Some((at, _)) => soon.max(*at + wait),
            None => soon,
        });
        self.nak_at = next.min();
    }
}
