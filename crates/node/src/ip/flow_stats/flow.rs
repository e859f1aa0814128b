//! One flow: its undelivered packets, and its accounts by path.

use super::series::{Arrival, Series};
use super::stream::Streams;
use super::{FlowReport, IN_FLIGHT, MAX_OUTSTANDING, PathReport};
use crate::ip::books::{Cause, Place, Refusal};
use crate::ip::emodel::Quality;
use crate::ip::meter::{FlowId, FlowSpec, PacketKey, Path, Sample};
use crate::ip::stats::Distribution;
use aerostat_proto::discard::Discard;
use aerostat_proto::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;

#[derive(Clone, Debug, Default)]
pub(super) struct Flow {
    name: String,
    pub(super) voice: bool,
    /// Sender and receiver.
    ends: Vec<Ipv4Addr>,
    /// When each of them was last switched off, and the place of its losses.
    off: [Option<(Instant, Place)>; 2],
    /// Number of accepted packets.
    sent_count: u64,
    /// Packets that have not been received, by order of sending.
    pub(super) outstanding: BTreeMap<u64, Sent>,
    pub(super) by_key: BTreeMap<PacketKey, u64>,
    /// Earlier packets with the key of a packet in `by_key`, oldest first: a sender that has restarted begins its
    /// numbers again while packets of its former life are under way.
    former: BTreeMap<PacketKey, VecDeque<u64>>,
    /// Echo requests without an answer.
    asked: BTreeMap<PacketKey, Asked>,
    /// Of the received packets, the one that was sent last.
    newest_received: Option<u64>,
    first: Option<Instant>,
    /// Time of the last offered packet.
    last_offered: Option<Instant>,
    last: Option<Instant>,
    last_received: Option<Instant>,
    phase: Option<(Path, Instant)>,
    sent_streams: Streams,
    received_streams: Streams,
    unmatched: u64,
    series: Option<Series>,
    pub(super) paths: BTreeMap<Path, Figures>,
}

/// A packet that the sender's stack accepted and that has not been received.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    key: PacketKey,
    /// `None` until the packet leaves its host.
    path: Option<Path>,
    at: Instant,
    payload: u32,
    lost: Option<(Place, Instant)>,
}

/// An echo request whose answer has not returned.
#[derive(Clone, Copy, Debug)]
struct Asked {
    path: Path,
    at: Instant,
    /// Where the answer was lost.
    lost: Option<Place>,
}

impl Sent {
    fn path(&self) -> Path {
        self.path.unwrap_or(Path::Lane)
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Figures {
    refused: BTreeMap<Refusal, u64>,
    sent_packets: u64,
    sent_octets: u64,
    received_packets: u64,
    received_octets: u64,
    ip_octets: [u64; 2],
    active: Duration,
    pub(super) lost_by: BTreeMap<Place, u64>,
    pub(super) unexplained: u64,
    out_of_sequence: u64,
    retransmitted: u64,
    changed_path: u64,
    /// Echo requests delivered.
    echoes: u64,
    /// Lost answers, by place.
    answers_lost: BTreeMap<Place, u64>,
    last_delay: Option<Duration>,
    delay: Distribution,
    variation: Distribution,
    round_trip: Distribution,
}

impl Flow {
    pub(super) fn new(spec: &FlowSpec) -> Self {
        Self {
            name: spec.name.clone(),
            voice: spec.voice,
            ends: vec![spec.source, spec.destination],
            series: spec.series.then(Series::default),
            ..Self::default()
        }
    }

    fn note_offer(&mut self, at: Instant) {
        self.first.get_or_insert(at);
        self.last_offered = self.last_offered.max(Some(at));
        self.last = self.last.max(Some(at));
    }

    pub(super) fn refused(&mut self, sample: &Sample, refusal: Refusal) {
        self.note_offer(sample.at);
        let path = self.phase.map_or(Path::Lane, |(path, _)| path);
        let figures = self.paths.entry(path).or_default();
        *figures.refused.entry(refusal).or_default() += 1;
    }

    /// The stack accepted a packet; its path is not known yet.
    pub(super) fn offered(&mut self, sample: &Sample) {
        self.note_offer(sample.at);
        self.remember(sample, None);
    }

    /// A packet leaves its host.
    pub(super) fn sent(&mut self, sample: &Sample) {
        match self.phase {
            Some((path, _)) if path == sample.path => {}
            Some((path, since)) => {
                self.paths.entry(path).or_default().active += sample.at - since;
                self.phase = Some((sample.path, sample.at));
            }
            None => self.phase = Some((sample.path, self.first.unwrap_or(sample.at))),
        }
        let again = match sample.key {
            PacketKey::Segment {
                port,
                sequence,
                length,
                ..
            } => self.sent_streams.of(port).take(sequence, length) < u64::from(length),
            _ => false,
        };
        let figures = self.paths.entry(sample.path).or_default();
        figures.retransmitted += u64::from(again);
        figures.ip_octets[0] += u64::from(sample.ip_octets);
        if let PacketKey::Echo { .. } = sample.key {
            let asked = Asked {
                path: sample.path,
                at: sample.at,
                lost: None,
            };
            if let Some(older) = self.asked.insert(sample.key, asked) {
                self.paths
                    .entry(older.path)
                    .or_default()
                    .note_answer_lost(&older);
            }
            if self.asked.len() > MAX_OUTSTANDING {
                self.asked.pop_first();
            }
        }
        let known = self.by_key.get(&sample.key);
        let known = known.and_then(|index| self.outstanding.get_mut(index));
        if let Some(waiting) = known.filter(|sent| sent.path.is_none()) {
            (waiting.path, waiting.at) = (Some(sample.path), sample.at);
            return;
        }
        // For TCP, and for programs on a kernel, this is the first sample of a packet.
        self.note_offer(sample.at);
        self.remember(sample, Some(sample.path));
    }

    fn remember(&mut self, sample: &Sample, path: Option<Path>) {
        let index = self.sent_count;
        self.sent_count += 1;
        let sent = Sent {
            key: sample.key,
            path,
            at: sample.at,
            payload: sample.payload,
            lost: None,
        };
        self.outstanding.insert(index, sent);
        if let Some(older) = self.by_key.insert(sample.key, index) {
            self.repeated(sample.key, older);
        }
        if self.outstanding.len() > MAX_OUTSTANDING
            && let Some((&oldest, sent)) = self.outstanding.first_key_value()
        {
            let key = sent.key;
            if self.by_key.get(&key) == Some(&oldest) {
                self.by_key.remove(&key);
            }
            self.take_former(key);
            self.forget(oldest);
        }
    }

    /// A packet has the key of `older`. A segment of TCP replaces the one before, because TCP repeats what is lost.
    fn repeated(&mut self, key: PacketKey, older: u64) {
        let lost = (self.outstanding.get(&older)).is_none_or(|sent| sent.lost.is_some());
        if lost || matches!(key, PacketKey::Segment { .. }) {
            self.forget(older);
        } else {
            self.former.entry(key).or_default().push_back(older);
        }
    }

    /// Takes the oldest of the earlier packets with this key.
    fn take_former(&mut self, key: PacketKey) -> Option<u64> {
        let former = self.former.get_mut(&key)?;
        let oldest = former.pop_front();
        if former.is_empty() {
            self.former.remove(&key);
        }
        oldest
    }

    /// Counts a packet as lost.
    fn forget(&mut self, index: u64) {
        if let Some(sent) = self.outstanding.remove(&index) {
            let figures = self.paths.entry(sent.path()).or_default();
            figures.note_sent(&sent);
            figures.note_lost(&sent);
        }
    }

    /// A packet, or a cell of a packet, was discarded.
    pub(super) fn lost(&mut self, key: PacketKey, place: Place, at: Instant) {
        // What is lost first was sent first.
        for index in self.former.get(&key).into_iter().flatten() {
            if let Some(sent) = self.outstanding.get_mut(index)
                && sent.lost.is_none()
            {
                sent.lost = Some((place, at));
                return;
            }
        }
        let known = self.by_key.get(&key);
        // A member of an ELAN that ignores a flooded frame counts as the place of a loss only if there is no other
        // place.
        let rank = |place: Place, at| (place.cause == Cause::Service(Discard::NotForUs), at);
        if let Some(sent) = known.and_then(|index| self.outstanding.get_mut(index))
            && sent
                .lost
                .is_none_or(|(before, first)| rank(place, at) < rank(before, first))
        {
            sent.lost = Some((place, at));
        }
    }

    /// The answer to an echo request, or a cell of the answer, was discarded. The first place counts.
    pub(super) fn answer_lost(&mut self, key: PacketKey, place: Place) {
        if let Some(asked) = self.asked.get_mut(&key) {
            asked.lost.get_or_insert(place);
        }
    }

    /// The host with this address was switched off.
    pub(super) fn host_off(&mut self, address: Ipv4Addr, place: Place, at: Instant) {
        let Some(end) = self.ends.iter().position(|end| *end == address) else {
            return;
        };
        // A host that is already off is switched off again when it restarts.
        let active = [self.last_offered, self.last_received][end];
        if self.off[end].is_none_or(|(before, _)| active > Some(before)) {
            self.off[end] = Some((at, place));
        }
        // What its programs have sent and what has not left the host is lost.
        let waiting = self.outstanding.values_mut().filter(|_| end == 0);
        for sent in waiting.filter(|sent| sent.path.is_none()) {
            sent.lost.get_or_insert((place, at));
        }
    }

    /// Packets without a receipt, and echo requests without an answer, that were sent less than `age` ago.
    pub(super) fn sent_since(
        &self,
        now: Instant,
        age: Duration,
    ) -> impl Iterator<Item = PacketKey> {
        let waiting = self.outstanding.values();
        let recent = waiting.filter(move |sent| now.since(sent.at) < age);
        let asked = self.asked.iter();
        let asked = asked.filter(move |(_, asked)| now.since(asked.at) < age);
        recent
            .map(|sent| sent.key)
            .chain(asked.map(|(key, _)| *key))
    }

    pub(super) fn received(&mut self, sample: &Sample) {
        self.last = self.last.max(Some(sample.at));
        self.last_received = self.last_received.max(Some(sample.at));
        let new_octets = match sample.key {
            PacketKey::Segment {
                port,
                sequence,
                length,
                ..
            } => self.received_streams.of(port).take(sequence, length),
            _ => u64::from(sample.payload),
        };
        let known = self.take_former(sample.key);
        let Some(index) = known.or_else(|| self.by_key.remove(&sample.key)) else {
            self.unmatched += 1;
            return;
        };
        // Both tables have the same packets.
        let Some(sent) = self.outstanding.remove(&index) else {
            return;
        };
        let late = self.newest_received.is_some_and(|newest| index < newest);
        self.newest_received = self.newest_received.max(Some(index));
        let figures = self.paths.entry(sent.path()).or_default();
        figures.note_sent(&sent);
        figures.received_packets += 1;
        figures.echoes += u64::from(matches!(sample.key, PacketKey::Echo { .. }));
        figures.received_octets += new_octets;
        figures.ip_octets[1] += u64::from(sample.ip_octets);
        figures.out_of_sequence += u64::from(late);
        figures.changed_path += u64::from(sent.path() != sample.path);
        if let Some(series) = &mut self.series {
            series.take(Arrival {
                path: sent.path(),
                number: index,
                sent: sent.at,
                received: sample.at,
            });
        }
        let delay = sample.at - sent.at;
        figures.delay.record(delay);
        if let Some(before) = figures.last_delay.replace(delay) {
            figures.variation.record(delay.abs_diff(before));
        }
    }

    pub(super) fn answered(&mut self, sample: &Sample) {
        if let Some(asked) = self.asked.remove(&sample.key) {
            let figures = self.paths.entry(asked.path).or_default();
            figures.round_trip.record(sample.at - asked.at);
        }
    }

    /// The figures as of `now`. `held` tells whether a packet is still in the network, if that is known.
    pub(super) fn report(
        &self,
        flow: FlowId,
        now: Instant,
        held: Option<impl Fn(PacketKey) -> bool>,
    ) -> FlowReport {
        let mut paths = self.paths.clone();
        let mut in_flight: BTreeMap<Path, u64> = BTreeMap::new();
        for (index, sent) in &self.outstanding {
            let figures = paths.entry(sent.path()).or_default();
            figures.note_sent(sent);
            let under_way = match &held {
                // A packet that has not left its host still waits there, because no loss was reported.
                Some(_) if sent.path.is_none() => true,
                Some(held) => {
                    let newest = self.by_key.get(&sent.key) == Some(index);
                    (newest || self.former.contains_key(&sent.key)) && held(sent.key)
                }
                None => now - sent.at < IN_FLIGHT || sent.path.is_none(),
            };
            if under_way && sent.lost.is_none() {
                *in_flight.entry(sent.path()).or_default() += 1;
            } else {
                figures.note_lost(sent);
            }
        }
        let mut answers: BTreeMap<Path, u64> = BTreeMap::new();
        for (key, asked) in &self.asked {
            // A request that has not arrived has no answer yet.
            if self.by_key.contains_key(key) {
                continue;
            }
            let under_way = match &held {
                Some(held) => held(*key),
                None => now - asked.at < IN_FLIGHT,
            };
            if under_way && asked.lost.is_none() {
                *answers.entry(asked.path).or_default() += 1;
            } else {
                paths.entry(asked.path).or_default().note_answer_lost(asked);
            }
        }
        if paths.is_empty() {
            paths.insert(Path::Lane, Figures::default());
        }
        let paths = paths.into_iter().map(|(path, figures)| {
            let under_way = [&in_flight, &answers].map(|of| of.get(&path).copied().unwrap_or(0));
            self.path(path, figures, under_way)
        });
        FlowReport {
            flow,
            name: self.name.clone(),
            first: self.first,
            last: self.last,
            last_offered: self.last_offered,
            last_received: self.last_received,
            off: self.off,
            unmatched: self.unmatched,
            paths: paths.collect(),
            series: self.series.clone(),
        }
    }

    /// The figures of a path. The arrays hold the number of packets and of answers that are under way.
    fn path(&self, path: Path, figures: Figures, [in_flight, answers]: [u64; 2]) -> PathReport {
        let (mut duration, mut busy) = (figures.active, figures.active);
        let unsent = self.first.map(|first| (Path::Lane, first));
        if let Some((current, since)) = self.phase.or(unsent)
            && current == path
        {
            let until = |at: Option<Instant>| at.map_or(Duration::ZERO, |at| at.max(since) - since);
            duration += until(self.last_offered);
            busy += until(self.last);
        }
        let lost = figures.lost_by.values().sum::<u64>() + figures.unexplained;
        let seconds = busy.as_secs_f64();
        let throughput_mbps = if seconds > 0.0 && !duration.is_zero() {
            figures.received_octets as f64 * 8.0 / seconds / 1e6
        } else {
            0.0
        };
        let round_trip = figures.round_trip.summary();
        PathReport {
            path,
            unanswered: figures.echoes.saturating_sub(round_trip.count + answers),
            answers_lost: figures.answers_lost,
            offered: figures.sent_packets + figures.refused.values().sum::<u64>(),
            refused: figures.refused,
            sent_packets: figures.sent_packets,
            sent_octets: figures.sent_octets,
            received_packets: figures.received_packets,
            received_octets: figures.received_octets,
            duration,
            busy,
            throughput_mbps,
            lost,
            lost_by: figures.lost_by,
            unexplained: figures.unexplained,
            in_flight,
            out_of_sequence: figures.out_of_sequence,
            retransmitted: figures.retransmitted,
            changed_path: figures.changed_path,
            ip_octets: figures.ip_octets,
            delay: figures.delay.summary(),
            delay_shares: figures.delay.shares(),
            variation: figures.variation.summary(),
            round_trip,
            quality: Quality::of(&figures.delay, lost).filter(|_| self.voice),
        }
    }
}

impl Figures {
    /// Counts the packet for this path.
    fn note_sent(&mut self, sent: &Sent) {
        self.sent_packets += 1;
        self.sent_octets += u64::from(sent.payload);
    }

    fn note_answer_lost(&mut self, asked: &Asked) {
        if let Some(place) = asked.lost {
            *self.answers_lost.entry(place).or_default() += 1;
        }
    }

    fn note_lost(&mut self, sent: &Sent) {
        match sent.lost {
            Some((place, _)) => *self.lost_by.entry(place).or_default() += 1,
            None => self.unexplained += 1,
        }
    }
}
