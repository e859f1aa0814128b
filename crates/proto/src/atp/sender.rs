//! The sending half of a connection: messages become packets, packets wait for their acknowledgement.
//!
//! The octets of a message are kept once, until its last packet is acknowledged. A packet is a range of them.

use super::params::OVERHEAD;
use super::window::Window;
use super::{Counters, Failure, Params, Profile, Refusal};
use crate::{Deadlines, Duration, Instant};
use aerostat_wire::atp::{Pdu, Seq30};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// Numbers between the oldest unacknowledged packet and the next new one. A receiver keeps no packet that is farther
/// ahead.
pub(super) const SPAN: u64 = super::MAX_WINDOW as u64;
/// Numbers inside begin here, so that none is below zero; the lower 30 bits are those on the wire.
pub(super) const BASE: u64 = 1 << 32;

/// The number on the wire.
pub(super) const fn wire(number: u64) -> Seq30 {
    Seq30::new(number as u32)
}

/// The number nearest to `near` that is `seq` on the wire.
pub(super) fn number(seq: Seq30, near: u64) -> u64 {
    near.saturating_add_signed(seq.distance(wire(near)).into())
}

/// A message whose octets are not all sent.
#[derive(Debug)]
struct Message {
    octets: Arc<Vec<u8>>,
    sent: usize,
}

/// A packet that was sent.
#[derive(Debug)]
struct Packet {
    octets: Arc<Vec<u8>>,
    part: Range<usize>,
    /// When it was sent last.
    sent: Instant,
    /// It was sent more than once.
    repeated: bool,
    /// Expired timers.
    expiries: u32,
    acknowledged: bool,
}

/// The sending half.
#[derive(Debug)]
pub(super) struct Sender {
    messages: VecDeque<Message>,
    /// Octets of messages that were not sent yet; each message counts [`OVERHEAD`] more until its last packet is sent.
    waiting: usize,
    /// Packets from [`Self::oldest`] on.
    packets: VecDeque<Packet>,
    oldest: u64,
    /// Packets that were sent and are not acknowledged.
    outstanding: u32,
    /// Adaptive profile: packets of these that have arrived behind a gap. The receiver repeats its ACK for each of
    /// them.
    arrived: u32,
    timers: Deadlines<u64>,
    pub(super) window: Window,
    round_trip: RoundTrip,
    /// After a timer of the adaptive profile: packets below this number that were sent before this time may be lost as
    /// well.
    recover: (u64, Instant),
}

impl Sender {
    pub(super) fn new(params: &Params) -> Self {
        let first = BASE + u64::from(wire(params.first.into()).get());
        Self {
            messages: VecDeque::new(),
            waiting: 0,
            packets: VecDeque::new(),
            oldest: first,
            outstanding: 0,
            arrived: 0,
            timers: Deadlines::default(),
            window: Window::new(params, first),
            round_trip: RoundTrip::new(params),
            recover: (first, Instant::ZERO),
        }
    }

    fn next(&self) -> u64 {
        self.oldest + self.packets.len() as u64
    }
    /// True if every octet is acknowledged.
    pub(super) fn is_idle(&self) -> bool {
        self.messages.is_empty() && self.packets.is_empty()
    }
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.timers.next()
    }
    pub(super) fn outstanding(&self) -> u32 {
        self.outstanding
    }
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }
    pub(super) fn smoothed(&self) -> Duration {
        self.round_trip.smoothed
    }

    /// `Ok` if a message of this length is taken now.
    pub(super) fn fits(&self, octets: usize, params: &Params) -> Result<(), Refusal> {
        let limit = params.longest();
        if octets > limit {
            return Err(Refusal::TooLong { octets, limit });
        }
        if self.waiting.saturating_add(octets + OVERHEAD) > params.send_limit.0 {
            let (waiting, limit) = (self.waiting, params.send_limit.0);
            return Err(Refusal::Full { waiting, limit });
        }
        Ok(())
    }

    /// Takes a message.
    pub(super) fn accept(&mut self, message: Vec<u8>, params: &Params) -> Result<(), Refusal> {
        self.fits(message.len(), params)?;
        self.waiting += message.len() + OVERHEAD;
        self.messages.push_back(Message {
            octets: Arc::new(message),
            sent: 0,
        });
        Ok(())
    }

    /// Sends what the window allows. What waits behind a gap at the receiver does not load the network, so the window
    /// does not count it; [`Params::max_window`] does.
    pub(super) fn send(&mut self, params: &Params, now: Instant, out: &mut Out) {
        while let Some(message) = self.messages.front_mut() {
            let full = self.outstanding - self.arrived >= self.window.packets()
                || self.outstanding >= params.max_window;
            if full || self.packets.len() as u64 >= SPAN {
                self.window.limited = true;
                return;
            }
            let start = message.sent;
            let end = message.octets.len().min(start + params.data());
            message.sent = end;
            let packet = Packet {
                octets: message.octets.clone(),
                part: start..end,
                sent: now,
                repeated: false,
                expiries: 0,
                acknowledged: false,
            };
            if end == packet.octets.len() {
                self.messages.pop_front();
                self.waiting -= OVERHEAD;
            }
            self.waiting -= end - start;
            let number = self.next();
            out.emit(number, &packet);
            out.counters.packets_sent += 1;
            self.packets.push_back(packet);
            self.outstanding += 1;
            if params.profile == Profile::Report || self.packets.len() == 1 {
                let timer = self.round_trip.timer;
                self.timers.set(number, Some(now + timer));
            }
        }
    }

    /// An ACK has come. True if it is for a packet that was not acknowledged before.
    pub(super) fn acknowledged(
        &mut self,
        seq: Seq30,
        params: &Params,
        now: Instant,
        out: &mut Out,
    ) -> bool {
        let number = number(seq, self.oldest);
        if number < self.oldest || number >= self.next() {
            out.counters.acks_ignored += 1;
            // The same ACK again: a packet has come behind a gap. A packet is missing, so one at least is under way.
            if params.profile == Profile::Adaptive && number + 1 == self.oldest {
                self.arrived = (self.arrived + 1).min(self.outstanding.saturating_sub(1));
            }
            return false;
        }
        let index = (number - self.oldest) as usize;
        let first = match params.profile {
            Profile::Report => index,
            Profile::Adaptive => 0,
        };
        // Karn's rule: the answer to a packet that was sent twice tells nothing about the round trip.
        let mut once = true;
        let mut new = false;
        for packet in self.packets.range_mut(first..=index) {
            out.counters.steps += 1;
            new |= !packet.acknowledged;
            once &= !packet.repeated;
            if !packet.acknowledged {
                packet.acknowledged = true;
                self.outstanding -= 1;
            }
        }
        if !new {
            out.counters.acks_ignored += 1;
            return false;
        }
        let sent = self.packets.get(index).map(|packet| packet.sent);
        let sample = sent.filter(|_| once).map(|sent| now.since(sent));
        if let Some(sample) = sample {
            self.round_trip.sample(sample, params);
        }
        self.timers.set(number, None);
        let before = self.oldest;
        while self.packets.front().is_some_and(|first| first.acknowledged) {
            self.packets.pop_front();
            self.oldest += 1;
            out.counters.steps += 1;
        }
        // The ACK is for the packet that was missing, and for those behind it that have arrived before.
        let behind = u32::try_from((self.oldest - before).saturating_sub(1)).unwrap_or(u32::MAX);
        let most = self.outstanding.saturating_sub(1);
        self.arrived = self.arrived.saturating_sub(behind).min(most);
        let next = self.next();
        self.window.acknowledged(number, sample, next);
        if params.profile == Profile::Adaptive {
            self.timers.clear();
            // Karn's rule again: a doubled timer stays until a round trip was measured with it.
            if sample.is_some() {
                self.round_trip.relax();
            }
            if before < self.oldest && !self.packets.is_empty() {
                let timer = self.round_trip.timer;
                self.timers.set(self.oldest, Some(now + timer));
            }
            // As many as the receiver acknowledges at once.
            let (end, since) = self.recover;
            for number in self.oldest..end.min(self.oldest + u64::from(params.ack_every)) {
                let index = (number - self.oldest) as usize;
                if (self.packets.get(index)).is_some_and(|packet| packet.sent < since) {
                    self.repeat(number, params, now, out);
                }
            }
        }
        true
    }

    /// A NAK has come. The first NAK of a packet is answered at once. A packet that was sent again less than half a
    /// round trip ago is not sent once more: its answer cannot have come yet.
    pub(super) fn asked_again(&mut self, seq: Seq30, params: &Params, now: Instant, out: &mut Out) {
        let number = number(seq, self.oldest);
        let index = number.checked_sub(self.oldest).map(|index| index as usize);
        let packet = index.and_then(|index| self.packets.get(index));
        let fresh = |packet: &&Packet| {
            !packet.repeated || now.since(packet.sent) >= self.round_trip.smoothed / 2
        };
        match packet.filter(|packet| !packet.acknowledged).filter(fresh) {
            Some(_) => {
                self.window.asked_again(self.next());
                self.repeat(number, params, now, out);
            }
            None => out.counters.naks_ignored += 1,
        }
    }

    /// Sends packets again whose timers have expired.
    pub(super) fn expire(&mut self, params: &Params, now: Instant, out: &mut Out) {
        for number in self.timers.due(now) {
            out.counters.timeouts += 1;
            self.window
                .expired(now, self.round_trip.smoothed, self.next());
            if params.profile == Profile::Adaptive {
                self.recover = (self.next(), now);
                self.arrived = 0;
                self.round_trip.back_off();
            }
            // NAKs do not count: a peer that asks is there.
            let index = number.saturating_sub(self.oldest) as usize;
            if let Some(packet) = self.packets.get_mut(index) {
                packet.expiries += 1;
                if packet.expiries > params.retransmissions {
                    self.timers.clear();
                    out.failed = Some(Failure::Retransmissions(params.retransmissions));
                    return;
                }
            }
            self.repeat(number, params, now, out);
        }
    }

    fn repeat(&mut self, number: u64, params: &Params, now: Instant, out: &mut Out) {
        let index = (number - self.oldest) as usize;
        let Some(packet) = self.packets.get_mut(index) else {
            return self.timers.set(number, None);
        };
        (packet.repeated, packet.sent) = (true, now);
        out.counters.steps += 1;
        out.emit(number, packet);
        out.counters.packets_repeated += 1;
        if params.profile == Profile::Report || number == self.oldest {
            self.timers.set(number, Some(now + self.round_trip.timer));
        }
    }
}

/// Outputs of a half for its connection.
#[derive(Debug, Default)]
pub(super) struct Out {
    pub(super) sdus: VecDeque<Vec<u8>>,
    pub(super) counters: Counters,
    pub(super) failed: Option<Failure>,
}

impl Out {
    fn emit(&mut self, number: u64, packet: &Packet) {
        let pdu = Pdu::Data {
            seq: wire(number),
            last: packet.part.end == packet.octets.len(),
            octets: packet.octets.get(packet.part.clone()).unwrap_or_default(),
        };
        self.sdus.push_back(pdu.encode());
    }
}

/// Round trips and the retransmission timer.
///
/// Source of the adaptive timer: V. Jacobson, *Congestion Avoidance and Control*, 1988; RFC 6298 §2.
#[derive(Debug)]
struct RoundTrip {
    smoothed: Duration,
    deviation: Duration,
    measured: bool,
    timer: Duration,
    /// The timer without the doubling after expiries.
    base: Duration,
}

impl RoundTrip {
    fn new(params: &Params) -> Self {
        Self {
            smoothed: params.initial_round_trip,
            deviation: Duration::ZERO,
            measured: false,
            timer: params.timer,
            base: params.timer,
        }
    }
    fn sample(&mut self, sample: Duration, params: &Params) {
        if self.measured {
            let off = self.smoothed.abs_diff(sample);
            self.deviation = (self.deviation * 3 + off) / 4;
            self.smoothed = (self.smoothed * 7 + sample) / 8;
        } else {
            (self.smoothed, self.deviation, self.measured) = (sample, sample / 2, true);
        }
        if params.profile == Profile::Adaptive {
            // The receiver may hold an answer back.
            let timer = self.smoothed + self.deviation * 4 + params.ack_delay;
            self.base = timer.clamp(params.min_timer, Params::RANGES.timer.max);
        }
    }
    fn relax(&mut self) {
        self.timer = self.base;
    }
    fn back_off(&mut self) {
        self.timer = (self.timer * 2).min(Params::RANGES.timer.max);
    }
}
