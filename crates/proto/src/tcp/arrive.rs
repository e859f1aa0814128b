//! Segments that arrive, by the steps of RFC 9293 §3.10.7.

use super::recovery::Ack;
use super::send::SendTimer;
use super::{Event, Failure, State, Tcp, Timer};
use crate::{Duration, Instant};
use aerostat_wire::tcp::{Flags, MAX_BLOCKS, Segment, TIMESTAMPS_LEN};

/// Challenge ACKs within [`CHALLENGE_TIME`]. Source: RFC 5961 §7.
const MOST_CHALLENGES: u32 = 10;
const CHALLENGE_TIME: Duration = Duration::from_secs(5);
/// Segment size of a peer that offers none. Source: RFC 9293 §3.7.1.
const DEFAULT_MSS: u16 = 536;
/// Least segment size of a peer. Source: Linux `tcp_min_snd_mss`.
const LEAST_MSS: u16 = 48;
/// Age of a time stamp that is compared no more. Source: RFC 7323 §5.5.
const OLD_STAMP: Duration = Duration::from_secs(24 * 86_400);

/// Answers to segments outside the window, so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Challenges {
    since: Instant,
    count: u32,
}

impl Challenges {
    fn may_answer(&mut self, now: Instant) -> bool {
        if now.since(self.since) >= CHALLENGE_TIME {
            *self = Self {
                since: now,
                count: 0,
            };
        }
        self.count += 1;
        self.count <= MOST_CHALLENGES
    }
}

/// The reset that answers a segment of no connection, with `data` octets of data; `None` for a reset. Source: RFC 9293
/// §3.10.7.1.
#[must_use]
pub fn reset_for(segment: &Segment, data: usize) -> Option<Segment> {
    if segment.flags.has(Flags::RST) {
        return None;
    }
    let mut reset = Segment {
        source: segment.destination,
        destination: segment.source,
        flags: Flags::RST,
        ..Segment::default()
    };
    if segment.flags.has(Flags::ACK) {
        reset.seq = segment.ack;
    } else {
        reset.flags = Flags::RST.with(Flags::ACK);
        reset.ack = segment.seq.wrapping_add(segment.sequence_len(data));
    }
    Some(reset)
}

/// True if `left` lies before `right` on the circle of numbers.
const fn is_before(left: u32, right: u32) -> bool {
    (left.wrapping_sub(right) as i32) < 0
}

impl Tcp {
    pub(super) fn arrive(&mut self, segment: &Segment, data: &[u8], marked: bool) {
        self.counters.segments_received += 1;
        match self.state {
            State::Closed => self.answer_reset(segment, data),
            State::Listen => self.arrive_listen(segment, data),
            State::SynSent => self.arrive_syn_sent(segment, data),
            State::SynReceived
            | State::Established
            | State::FinWait1
            | State::FinWait2
            | State::CloseWait
            | State::Closing
            | State::LastAck
            | State::TimeWait => self.arrive_synchronized(segment, data, marked),
        }
    }

    fn answer_reset(&mut self, segment: &Segment, data: &[u8]) {
        if let Some(reset) = reset_for(segment, data.len())
            && self.replies.len() < 64
        {
            self.counters.resets_sent += 1;
            self.replies.push_back(reset);
        }
    }

    /// RFC 9293 §3.10.7.2.
    fn arrive_listen(&mut self, segment: &Segment, data: &[u8]) {
        if segment.flags.has(Flags::RST) {
            return;
        }
        if segment.flags.has(Flags::ACK) {
            return self.answer_reset(segment, data);
        }
        if !segment.flags.has(Flags::SYN) {
            return;
        }
        self.config.remote = segment.source;
        self.open(State::SynReceived, self.now);
        self.negotiate(segment);
        self.text(1, segment, data);
    }

    /// RFC 9293 §3.10.7.3.
    fn arrive_syn_sent(&mut self, segment: &Segment, data: &[u8]) {
        let acks = segment.flags.has(Flags::ACK);
        let acked = self.tx.offset(segment.ack);
        if acks && acked != Some(1) {
            self.counters.bad_acks += 1;
            return self.answer_reset(segment, data);
        }
        if segment.flags.has(Flags::RST) {
            if acks {
                self.fail(Failure::Refused);
            }
            return;
        }
        if !segment.flags.has(Flags::SYN) {
            return;
        }
        self.negotiate(segment);
        if acks {
            self.establish(segment);
            self.rx.ack.update();
        } else {
            self.state = State::SynReceived;
            self.syn_due = true;
        }
        self.text(1, segment, data);
    }

    /// Takes the peer's SYN: its number and options.
    fn negotiate(&mut self, segment: &Segment) {
        let params = self.config.params;
        let options = &segment.options;
        self.rx.synchronize(segment.seq, self.now);
        self.stamps.agreed = params.timestamps && options.timestamps.is_some();
        if let (true, Some(stamps)) = (self.stamps.agreed, options.timestamps) {
            self.stamps.recent = stamps.value;
            self.stamps.taken = self.now;
        }
        self.tx.stamped = self.stamps.agreed;
        self.sack = params.sack && options.sack_permitted;
        self.tx.sack = self.sack && params.congestion.recovery.uses_blocks();
        if let (true, Some(shift)) = (params.window_scaling, options.window_scale) {
            self.scaled = true;
            self.rx.scale = params.scale();
            self.tx.scale = shift.min(14);
        }
        let asks = Flags::ECE.with(Flags::CWR);
        self.ecn.agreed = params.ecn
            && match segment.flags.has(Flags::ACK) {
                true => segment.flags.has(Flags::ECE) && !segment.flags.has(Flags::CWR),
                false => segment.flags.has(asks),
            };
        let theirs = options.mss.unwrap_or(DEFAULT_MSS).max(LEAST_MSS);
        let stamps = if self.stamps.agreed {
            TIMESTAMPS_LEN
        } else {
            0
        };
        let mss = u64::from(theirs.min(params.mss)) - stamps as u64;
        // A SYN that was lost speaks of congestion. Source: RFC 5681 §3.1.
        let first = match self.syn_sent > 1 {
            true => mss,
            false => params.initial_window(mss),
        };
        self.tx.set_mss(mss, first);
        self.tx.repair.initial_window = params.initial_window(mss);
        self.tx.window = u64::from(segment.window);
        self.tx.most_window = self.tx.window;
    }

    /// The peer has acknowledged SYN.
    fn establish(&mut self, segment: &Segment) {
        self.tx.una = 1;
        self.state = State::Established;
        self.timers.stop(Timer::Handshake);
        self.syn_due = false;
        if self.syn_sent == 1 {
            let progress = self.tx.progress();
            self.tx.estimator.measure(self.syn_at, self.now, progress);
        }
        let scale = if segment.flags.has(Flags::SYN) {
            0
        } else {
            self.tx.scale
        };
        self.tx.window = u64::from(segment.window) << scale;
        self.tx.most_window = self.tx.window;
        self.tx.window_seq = self.rx.offset(segment.seq).unwrap_or_default();
        self.tx.window_ack = 1;
        if self.tx.closing {
            self.state = State::FinWait1;
        }
        self.tell(Event::Connected);
        if self.rx.unread() > 0 {
            self.tell(Event::Readable);
        }
        self.restart_keep_alive();
        if self.rx.is_finished() {
            self.peer_closed();
        }
    }

    /// RFC 9293 §3.10.7.4.
    fn arrive_synchronized(&mut self, segment: &Segment, data: &[u8], marked: bool) {
        let Some((start, data)) = self.check_number(segment, data) else {
            return;
        };
        if segment.flags.has(Flags::RST) {
            return self.arrive_reset(start);
        }
        if segment.flags.has(Flags::SYN) {
            return self.challenge();
        }
        if !segment.flags.has(Flags::ACK) {
            self.counters.bad_acks += 1;
            return;
        }
        self.note_stamp(segment, start);
        if self.ecn.agreed {
            self.ecn.echo &= !segment.flags.has(Flags::CWR);
            self.ecn.echo |= marked;
        }
        if !self.arrive_ack(segment, start, data) {
            return;
        }
        self.restart_keep_alive();
        self.counters.urgent += u64::from(segment.flags.has(Flags::URG));
        self.text(start, segment, data);
    }

    /// The first step: number and time stamp. The result is the offset of the segment, and what of its data counts.
    fn check_number<'a>(&mut self, segment: &Segment, data: &'a [u8]) -> Option<(u64, &'a [u8])> {
        let length = u64::from(segment.sequence_len(data.len()));
        let Some(start) = self.rx.offset(segment.seq) else {
            self.unacceptable(segment, length, 0);
            return None;
        };
        let is_reset = segment.flags.has(Flags::RST);
        if self.stamps.agreed && !is_reset && !segment.flags.has(Flags::SYN) {
            let idle = self.now.since(self.stamps.taken) > OLD_STAMP;
            let stale = match segment.options.timestamps {
                None => true,
                Some(stamps) => is_before(stamps.value, self.stamps.recent) && !idle,
            };
            if stale {
                self.counters.stale_stamps += 1;
                if segment.options.timestamps.is_some() {
                    self.answer(length, start);
                }
                return None;
            }
        }
        if self.rx.accepts(start, length) {
            return Some((start, data));
        }
        // A window of zero takes no data, but what comes with it counts.
        if start == self.rx.next() && self.rx.edge() <= start && !segment.flags.has(Flags::SYN) {
            self.rx.ack.update();
            self.counters.beyond_window += 1;
            return Some((start, &[]));
        }
        self.unacceptable(segment, length, start);
        None
    }

    fn unacceptable(&mut self, segment: &Segment, length: u64, start: u64) {
        self.counters.unacceptable += 1;
        if segment.flags.has(Flags::RST) {
            return;
        }
        if self.state == State::SynReceived && segment.flags.has(Flags::SYN) && start == 0 {
            // The answer was lost; an answer to our own SYN counts as an acknowledgement.
            if segment.flags.has(Flags::ACK) && self.tx.offset(segment.ack) == Some(1) {
                self.establish(segment);
                self.rx.ack.update();
            } else if self.passive {
                self.syn_due = true;
            }
            return;
        }
        if self.state == State::TimeWait && segment.flags.has(Flags::FIN) {
            self.wait();
        }
        if length > 0 && start + length <= self.rx.next() {
            self.counters.duplicates += 1;
            self.rx.note_duplicate(start, start + length);
        }
        self.answer(length, start);
    }

    /// Tells a peer whose segment is not taken what is expected. Data, and probes with the last number, are always
    /// answered; others might come from a loop of answers.
    fn answer(&mut self, length: u64, start: u64) {
        if self.state == State::SynReceived {
            return;
        }
        if length > 0 || start + 1 == self.rx.next() {
            self.rx.ack.at_once();
        } else {
            self.challenge();
        }
    }

    fn challenge(&mut self) {
        if self.challenges.may_answer(self.now) {
            self.counters.challenges += 1;
            self.rx.ack.at_once();
        } else {
            self.counters.challenges_held += 1;
        }
    }

    /// The second step. Source: RFC 9293 §3.10.7.4, RFC 5961 §3.2.
    fn arrive_reset(&mut self, start: u64) {
        if start != self.rx.next() {
            return self.challenge();
        }
        match self.state {
            State::SynReceived if self.passive => {
                let config = self.config;
                let counters = self.counters;
                *self = Self::new(config);
                self.counters = counters;
                self.open(State::Listen, self.now);
            }
            State::SynReceived => self.fail(Failure::Refused),
            State::TimeWait => self.end(None),
            State::Closing | State::LastAck if self.tx.queued() == 0 => {
                self.end(Some(Event::Closed));
            }
            _ => self.fail(Failure::Reset),
        }
    }

    fn note_stamp(&mut self, segment: &Segment, start: u64) {
        if let (true, Some(stamps)) = (self.stamps.agreed, segment.options.timestamps)
            && !is_before(stamps.value, self.stamps.recent)
            && start <= self.rx.told()
        {
            self.stamps.recent = stamps.value;
            self.stamps.taken = self.now;
        }
    }

    /// The fifth step; `false` if the segment ends here.
    fn arrive_ack(&mut self, segment: &Segment, start: u64, data: &[u8]) -> bool {
        let una = self.tx.offset(segment.ack);
        let Some(una) = una.filter(|una| *una <= self.tx.next) else {
            self.counters.bad_acks += 1;
            match self.state {
                State::SynReceived => self.answer_reset(segment, data),
                _ => self.challenge(),
            }
            return false;
        };
        if self.state == State::SynReceived {
            if una != 1 {
                self.counters.bad_acks += 1;
                self.answer_reset(segment, data);
                return false;
            }
            self.establish(segment);
        }
        // Source: RFC 5961 §5.2.
        if una + self.tx.most_window.max(1) < self.tx.una {
            self.counters.bad_acks += 1;
            self.challenge();
            return false;
        }
        let window = u64::from(segment.window) << self.tx.scale;
        let bare = data.is_empty() && !segment.flags.has(Flags::FIN) && window == self.tx.window;
        if una >= self.tx.una {
            self.update_window(window, start, una);
            self.acknowledged(segment, una, bare);
        }
        if self.state == State::TimeWait {
            // Only a FIN that is repeated is of interest.
            if segment.flags.has(Flags::FIN) {
                self.wait();
            }
            return false;
        }
        self.state != State::Closed
    }

    fn update_window(&mut self, window: u64, start: u64, una: u64) {
        let tx = &mut self.tx;
        let newer = tx.window_seq < start || (tx.window_seq == start && tx.window_ack <= una);
        if !newer && window <= tx.window {
            return;
        }
        if newer {
            tx.window_seq = start;
            tx.window_ack = una;
        }
        // An older segment may still open the window, if it acknowledges no less.
        if newer || una >= tx.window_ack {
            let opened = window > tx.window;
            tx.window = window;
            tx.most_window = tx.most_window.max(window);
            if window == 0 {
                // The peer lives, also if it has taken a window back. Source: RFC 9293 §3.8.6.1.
                tx.expired = 0;
            }
            if tx.timers.runs(SendTimer::Persist) {
                tx.expired = 0;
                if opened {
                    tx.timers.stop(SendTimer::Persist);
                    tx.estimator.reset_back_off();
                }
            }
        }
    }

    fn acknowledged(&mut self, segment: &Segment, una: u64, bare: bool) {
        let mut blocks = [(0, 0); MAX_BLOCKS];
        let mut count = 0;
        if self.tx.sack {
            for (left, right) in segment.options.sack.as_slice() {
                if let (Some(left), Some(right)) = (self.tx.offset(*left), self.tx.offset(*right))
                    && let Some(place) = blocks.get_mut(count)
                {
                    *place = (left, right);
                    count += 1;
                }
            }
        }
        let ack = Ack {
            una,
            blocks: blocks.get(..count).unwrap_or_default(),
            echo: segment.options.timestamps.map(|stamps| stamps.echo),
            bare,
            marked: self.ecn.agreed && segment.flags.has(Flags::ECE),
        };
        if self.tx.acknowledge(&ack, self.now, &mut self.counters) {
            self.tell(Event::Writable);
        }
        if !self.tx.fin_acked() {
            return;
        }
        match self.state {
            State::FinWait1 => {
                self.state = State::FinWait2;
                self.wait_for_fin();
            }
            State::Closing => self.wait(),
            State::LastAck => self.end(Some(Event::Closed)),
            _ => {}
        }
    }

    /// Both ends have closed: late segments die.
    fn wait(&mut self) {
        if self.state != State::TimeWait {
            self.state = State::TimeWait;
            self.timers.stop_all();
            self.tx.timers.stop_all();
            self.tell(Event::Closed);
        }
        let time = self.config.params.timers.time_wait;
        self.timers.start(Timer::End, self.now, time);
    }

    /// The seventh and the eighth step: data and FIN. Data after the peer's FIN is outside the window.
    fn text(&mut self, start: u64, segment: &Segment, data: &[u8]) {
        let fin = segment.flags.has(Flags::FIN);
        if (data.is_empty() && !fin) || self.rx.is_finished() {
            return;
        }
        if self.left && !data.is_empty() {
            return self.abort();
        }
        let push = segment.flags.has(Flags::PSH);
        let arrival = self
            .rx
            .take((start, data), fin, push, self.now, &mut self.counters);
        self.counters.octets_received += arrival.readable;
        if arrival.readable > 0 {
            self.measure_window(segment);
        }
        if self.state < State::Established {
            return;
        }
        if arrival.readable > 0 {
            self.tell(Event::Readable);
        }
        if arrival.fin {
            self.peer_closed();
        }
    }

    /// The round trip of the program's window, for a buffer that grows.
    fn measure_window(&mut self, segment: &Segment) {
        let by_stamp = segment
            .options
            .timestamps
            .filter(|stamps| self.stamps.agreed && stamps.echo != 0)
            .and_then(|stamps| self.clock.since(stamps.echo, self.now));
        if let Some(sample) = by_stamp {
            self.rx.round_trip(sample);
        }
        self.rx.measure_turn(self.now);
    }

    fn peer_closed(&mut self) {
        self.tell(Event::PeerClosed);
        match self.state {
            State::Established => self.state = State::CloseWait,
            State::FinWait1 if self.tx.fin_acked() => self.wait(),
            State::FinWait1 => self.state = State::Closing,
            State::FinWait2 => self.wait(),
            _ => {}
        }
    }
}
