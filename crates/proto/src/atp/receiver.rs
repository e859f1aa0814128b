//! The receiving half of a connection: packets become messages, gaps are asked for.
//!
//! A packet far ahead opens a gap of thousands. Only the lowest missing numbers are asked for ([`MOST_ASKED`]); each
//! that comes makes place for the next one. So a gap costs what was received, not what its numbers promise.

use super::params::OVERHEAD;
use super::sender::{BASE, Out, SPAN, number, wire};
use super::{Failure, Params, Profile};
use crate::{Deadlines, Duration, Instant};
use aerostat_wire::atp::{Pdu, Seq30};
use std::collections::{BTreeMap, VecDeque};

/// Missing packets that are asked for at a time.
pub(super) const MOST_ASKED: usize = 64;

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
    /// The lowest missing numbers, with the time of the last NAK and the number of NAKs.
    asked: BTreeMap<u64, (Instant, u32)>,
    /// Missing numbers from here on are not in [`Self::asked`].
    sought: u64,
    /// When their next NAKs are due. The report's profile sends them with the next packet that comes.
    naks: Deadlines<u64>,
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
    /// Adaptive profile: the time from a NAK to its packet, and whether it was measured.
    repair: Duration,
    measured: bool,
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
            asked: BTreeMap::new(),
            sought: first,
            naks: Deadlines::default(),
            assembly: Vec::new(),
            begun: false,
            ready: VecDeque::new(),
            unread: 0,
            held: 0,
            ack_at: None,
            repair: params.initial_round_trip,
            measured: false,
            adaptive: params.profile == Profile::Adaptive,
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        let nak_at = self.naks.next().filter(|_| self.adaptive);
        self.ack_at.into_iter().chain(nak_at).min()
    }
    pub(super) fn take(&mut self) -> Option<Vec<u8>> {
        let message = self.ready.pop_front()?;
        self.unread -= message.len() + OVERHEAD;
        Some(message)
    }
    pub(super) fn newest(&self, messages: usize) -> impl Iterator<Item = usize> {
        self.ready.iter().rev().take(messages).map(Vec::len)
    }
    pub(super) fn unread(&self) -> (usize, usize) {
        (self.ready.len(), self.unread)
    }
    /// Octets of the message that is not complete, and of packets behind gaps.
    pub(super) fn incomplete(&self) -> usize {
        self.assembly.len() + self.ahead_octets
    }
    /// Missing packets that are asked for now.
    pub(super) fn asked(&self) -> usize {
        self.asked.len()
    }
    /// Forgets what can no longer become a message.
    pub(super) fn abandon(&mut self) {
        self.ahead.clear();
        self.asked.clear();
        self.naks.clear();
        self.assembly = Vec::new();
        (self.ahead_octets, self.ack_at) = (0, None);
    }

    /// The connection has ended, and a data packet has come: the answer, if the packet was received before.
    pub(super) fn answer(&self, seq: Seq30) -> Option<Pdu<'static>> {
        let number = number(seq, self.expected);
        let acknowledged = match self.adaptive {
            true => self.expected - 1,
            false => number,
        };
        (number < self.expected).then_some(Pdu::Ack(wire(acknowledged)))
    }

    /// A data packet has come.
    pub(super) fn data(
        &mut self,
        seq: Seq30,
        last: bool,
        octets: &[u8],
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
        // A message that has begun goes on: only its end makes room. The packet that all others wait for need not
        // find room beside them: what is behind it is read only after it.
        let next = number == self.expected;
        let behind = if next { 0 } else { self.ahead_octets };
        let kept = self.unread + behind + octets.len() + OVERHEAD;
        if !(next && self.begun) && kept > params.receive_limit.0 {
            out.counters.no_room += 1;
            return;
        }
        if let Some((at, times)) = self.asked.remove(&number) {
            self.repaired(number, at, times, params, now);
        }
        self.naks.set(number, None);
        self.end = self.end.max(number + 1);
        out.counters.packets_received += 1;
        let mut filled = false;
        if next {
            self.append(last, octets, params, out);
            while out.failed.is_none()
                && let Some((last, octets)) = self.ahead.remove(&self.expected)
            {
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
        self.seek(now, out);
        let at_once = last || filled || !self.asked.is_empty();
        self.acknowledge(number, at_once, params, now, out);
        self.ask(params, now, out);
    }

    /// A packet has come that was asked for at this time, so often. A connection keeps the order, and a NAK is answered
    /// at once: if the lowest missing packet was asked for before it, it has been lost again, and need not wait for a
    /// timer.
    fn repaired(&mut self, number: u64, at: Instant, times: u32, params: &Params, now: Instant) {
        if times == 1 {
            let time = now.since(at);
            self.repair = match self.measured {
                true => (self.repair * 7 + time) / 8,
                false => time,
            };
            self.measured = true;
        }
        if !self.adaptive {
            return;
        }
        if let Some((lowest, (since, times))) = self.asked.first_key_value()
            && (*since, *lowest) < (at, number)
            && (1..params.retransmissions).contains(times)
        {
            self.naks.set(*lowest, Some(now));
        }
    }

    /// Timers of the adaptive profile.
    pub(super) fn expire(&mut self, params: &Params, now: Instant, out: &mut Out) {
        if self.ack_at.is_some_and(|at| at <= now) {
            self.acknowledge(self.expected, true, params, now, out);
        }
        if self.adaptive {
            self.ask(params, now, out);
        }
    }

    /// The next packet in order.
    fn append(&mut self, last: bool, octets: &[u8], params: &Params, out: &mut Out) {
        out.counters.steps += 1;
        if self.assembly.len() + octets.len() > params.max_message.0 {
            out.failed = Some(Failure::TooLong(params.max_message.0));
            // What was cut is no message, whatever comes behind it.
            self.assembly = Vec::new();
            return;
        }
        self.expected += 1;
        self.begun = !last;
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

    /// Puts the next missing numbers on the list of what is asked for. Each number is looked at once.
    fn seek(&mut self, now: Instant, out: &mut Out) {
        self.sought = self.sought.max(self.expected);
        while self.asked.len() < MOST_ASKED && self.sought < self.end {
            out.counters.steps += 1;
            if !self.ahead.contains_key(&self.sought) {
                self.asked.insert(self.sought, (now, 0));
                self.naks.set(self.sought, Some(now));
            }
            self.sought += 1;
        }
    }

    /// Sends the NAKs that are due. A packet is asked for no more often than a sender's timer repeats it: a sender that
    /// lives has a timer of its own.
    fn ask(&mut self, params: &Params, now: Instant, out: &mut Out) {
        let wait = match params.profile {
            Profile::Report => params.timer,
            Profile::Adaptive => {
                (self.repair * 2).clamp(params.min_timer / 4, Params::RANGES.timer.max)
            }
        };
        for number in self.naks.due(now) {
            out.counters.steps += 1;
            let Some((at, times)) = self.asked.get_mut(&number) else {
                self.naks.set(number, None);
                continue;
            };
            (*at, *times) = (now, times.saturating_add(1));
            let again = *times < params.retransmissions;
            self.naks.set(number, again.then_some(now + wait));
            out.sdus.push_back(Pdu::Nak(wire(number)).encode());
            out.counters.naks_sent += 1;
        }
    }
}
