//! One flow: its undelivered packets, and its accounts by path.

use super::series::{Arrival, Series};
use super::stream::Streams;
use super::{FlowReport, IN_FLIGHT, PathReport, Schedule, Totals};
use crate::distribution::Distribution;
use crate::ip::books::{Place, Refusal};
use crate::ip::emodel::Quality;
use crate::ip::meter::{FlowId, FlowSpec, PacketKey, Path, Sample};
use aerostat_proto::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};
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
    /// Packets that have not been received, by order of sending. A lost packet is one of them until it is known that no
    /// copy of it is under way ([`Self::sweep`]).
    pub(super) outstanding: BTreeMap<u64, Sent>,
    /// The same packets by key. Several packets have one key where a sender has restarted and begins its numbers again
    /// while packets of its former life are under way, and where numbers wrap.
    pub(super) by_key: BTreeSet<(PacketKey, u64)>,
    /// Echo requests without an answer, by key and order of sending.
    pub(super) asked: BTreeMap<(PacketKey, u64), Asked>,
    /// Of the received packets, the one that was sent last.
    newest_received: Option<u64>,
    first: Option<Instant>,
    /// Time of the last offered packet.
    last_offered: Option<Instant>,
    last: Option<Instant>,
    last_received: Option<Instant>,
    phase: Option<(Path, Instant)>,
    first_path: Option<Path>,
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
pub(super) struct Asked {
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
    /// Time of the periods of this path that have ended.
    active: Duration,
    /// Time between these periods, each up to the last packet of the path that was received in between.
    late: Duration,
    /// End of the time in `active` and `late`; `None` before the end of the first period.
    counted: Option<Instant>,
    last_received: Option<Instant>,
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

    /// The flow has another description.
    pub(super) fn adopt(&mut self, spec: &FlowSpec) {
        self.name.clone_from(&spec.name);
        self.voice = spec.voice;
        self.ends = vec![spec.source, spec.destination];
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
    pub(super) fn offered(&mut self, sample: &Sample) -> u64 {
        self.note_offer(sample.at);
        self.remember(sample, None)
    }

    /// A packet leaves its host.
    pub(super) fn sent(&mut self, sample: &Sample) -> u64 {
        match self.phase {
            Some((path, _)) if path == sample.path => {}
            Some((path, since)) => {
                let figures = self.paths.entry(path).or_default();
                figures.active += sample.at - since;
                figures.counted = figures.counted.max(Some(sample.at));
                self.phase = Some((sample.path, sample.at));
            }
            None => {
                self.first_path = Some(sample.path);
                self.phase = Some((sample.path, self.first.unwrap_or(sample.at)));
            }
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
        let waiting = self.waiting(sample.key);
        let index = match waiting {
            Some(index) => index,
            None => {
                // For TCP, and for programs on a kernel, this is the first sample of a packet.
                self.note_offer(sample.at);
                self.remember(sample, Some(sample.path))
            }
        };
        if let Some(sent) = self.outstanding.get_mut(&index) {
            (sent.path, sent.at) = (Some(sample.path), sample.at);
        }
        if let PacketKey::Echo { .. } = sample.key {
            let asked = Asked {
                path: sample.path,
                at: sample.at,
                lost: None,
            };
            self.asked.insert((sample.key, index), asked);
        }
        index
    }

    /// The packets with this key, oldest first.
    fn of_key(&self, key: PacketKey) -> impl DoubleEndedIterator<Item = u64> + '_ {
        let range = self.by_key.range((key, 0)..=(key, u64::MAX));
        range.map(|(_, index)| *index)
    }

    fn is_lost(&self, index: u64) -> bool {
        let sent = self.outstanding.get(&index);
        sent.is_none_or(|sent| sent.lost.is_some())
    }

    /// The oldest packet with this key that has not left its host. Packets leave in order, so behind the newest packet
    /// that has left no other one waits.
    fn waiting(&self, key: PacketKey) -> Option<u64> {
        let waits = |index: &u64| {
            let sent = self.outstanding.get(index);
            sent.is_some_and(|sent| sent.path.is_none())
        };
        self.of_key(key).rev().take_while(waits).last()
    }

    fn remember(&mut self, sample: &Sample, path: Option<Path>) -> u64 {
        let index = self.sent_count;
        self.sent_count += 1;
        // Later samples with this key belong to the new packet if all the earlier ones are lost.
        if self.of_key(sample.key).all(|other| self.is_lost(other)) {
            let earlier: Vec<u64> = self.of_key(sample.key).collect();
            earlier.into_iter().for_each(|lost| self.forget(lost));
        }
        let sent = Sent {
            key: sample.key,
            path,
            at: sample.at,
            payload: sample.payload,
            lost: None,
        };
        self.outstanding.insert(index, sent);
        self.by_key.insert((sample.key, index));
        index
    }

    /// Counts a packet as lost.
    fn forget(&mut self, index: u64) {
        if let Some(sent) = self.outstanding.remove(&index) {
            self.by_key.remove(&(sent.key, index));
            let figures = self.paths.entry(sent.path()).or_default();
            figures.note_sent(&sent);
            figures.note_lost(&sent);
        }
    }

    /// A packet, or a cell of a packet, was discarded. True if no loss of this packet was known.
    pub(super) fn lost(&mut self, key: PacketKey, place: Place, at: Instant) -> bool {
        // What is lost first was sent first.
        let first = self.of_key(key).find(|index| !self.is_lost(*index));
        let Some(index) = first.or_else(|| self.of_key(key).next_back()) else {
            return false;
        };
        if let Some(sent) = self.outstanding.get_mut(&index)
            && sent
                .lost
                .is_none_or(|(before, first)| place.rank(at) < before.rank(first))
        {
            sent.lost = Some((place, at));
        }
        first.is_some()
    }

    /// The answer to an echo request, or a cell of the answer, was discarded. The first place counts.
    pub(super) fn answer_lost(&mut self, key: PacketKey, place: Place) {
        let mut asked = self.asked.range_mut((key, 0)..=(key, u64::MAX));
        if let Some((_, asked)) = asked.find(|(_, asked)| asked.lost.is_none()) {
            asked.lost = Some(place);
        }
    }

    /// Takes the packet out that has been received. Packets with one key arrive in order. The mark of a loss moves from
    /// a packet that arrives to one that does not: the report of a loss has no more than the key.
    fn arrived(&mut self, key: PacketKey) -> Option<(u64, Sent)> {
        let index = self.of_key(key).next()?;
        self.by_key.remove(&(key, index));
        let sent = self.outstanding.remove(&index)?;
        if sent.lost.is_some() {
            let other = self.of_key(key).find(|other| !self.is_lost(*other));
            if let Some(other) = other.and_then(|other| self.outstanding.get_mut(&other)) {
                other.lost = sent.lost;
            }
        }
        Some((index, sent))
    }

    /// Counts what is final: lost packets of which nothing is `held` in the network any more, and with `unseen` all
    /// packets that have left their host and are not held; echo requests older than [`IN_FLIGHT`] whose answer is not
    /// held. Returns the number of lost packets and echo requests that remain.
    pub(super) fn sweep(
        &mut self,
        now: Instant,
        held: impl Fn(PacketKey) -> bool,
        unseen: bool,
    ) -> usize {
        let is_final = |sent: &Sent| sent.lost.is_some() || (unseen && sent.path.is_some());
        let all = self.outstanding.iter();
        let gone = all.filter(|(_, sent)| is_final(sent) && !held(sent.key));
        let gone: Vec<u64> = gone.map(|(index, _)| *index).collect();
        gone.into_iter().for_each(|index| self.forget(index));
        let (outstanding, paths) = (&self.outstanding, &mut self.paths);
        self.asked.retain(|(key, index), asked| {
            let old = now.since(asked.at) >= IN_FLIGHT;
            let stays = !old || outstanding.contains_key(index) || held(*key);
            if !stays {
                let figures = paths.entry(asked.path).or_default();
                figures.note_answer_lost(asked);
            }
            stays
        });
        let lost = self.outstanding.values();
        lost.filter(|sent| sent.lost.is_some()).count() + self.asked.len()
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
            .chain(asked.map(|((key, _), _)| *key))
    }

    pub(super) fn received(&mut self, sample: &Sample) -> Option<u64> {
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
        let Some((index, sent)) = self.arrived(sample.key) else {
            self.unmatched += 1;
            return None;
        };
        let late = self.newest_received.is_some_and(|newest| index < newest);
        self.newest_received = self.newest_received.max(Some(index));
        let over = self.phase.is_some_and(|(path, _)| path != sent.path());
        let figures = self.paths.entry(sent.path()).or_default();
        figures.note_sent(&sent);
        figures.note_arrival(sample.at, over);
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
        Some(index)
    }

    /// Packets and echo requests that are remembered one by one.
    pub(super) fn remembered(&self) -> usize {
        self.outstanding.len() + self.asked.len()
    }

    pub(super) fn answered(&mut self, sample: &Sample) -> Option<u64> {
        let mut asked = self.asked.range((sample.key, 0)..=(sample.key, u64::MAX));
        let oldest = asked.next().map(|(at, _)| *at);
        if let Some(asked) = oldest.and_then(|at| self.asked.remove(&at)) {
            let next = self
                .asked
                .range_mut((sample.key, 0)..=(sample.key, u64::MAX));
            let other = next.map(|(_, next)| next).find(|next| next.lost.is_none());
            // As for packets: the report of a loss has no more than the key.
            if let Some(other) = other.filter(|_| asked.lost.is_some()) {
                other.lost = asked.lost;
            }
            let figures = self.paths.entry(asked.path).or_default();
            figures.round_trip.record(sample.at - asked.at);
        }
        oldest.map(|(_, index)| index)
    }

    /// The figures as of `now`. `held` tells whether a packet is still in the network, if that is known.
    pub(super) fn report(
        &self,
        (flow, schedule): (FlowId, Option<Schedule>),
        now: Instant,
        held: Option<impl Fn(PacketKey) -> bool>,
    ) -> FlowReport {
        let mut paths = self.paths.clone();
        let mut in_flight: BTreeMap<Path, u64> = BTreeMap::new();
        for sent in self.outstanding.values() {
            let figures = paths.entry(sent.path()).or_default();
            figures.note_sent(sent);
            let under_way = match &held {
                // A packet that has not left its host still waits there, because no loss was reported.
                Some(_) if sent.path.is_none() => true,
                Some(held) => held(sent.key),
                None => now - sent.at < IN_FLIGHT || sent.path.is_none(),
            };
            if under_way && sent.lost.is_none() {
                *in_flight.entry(sent.path()).or_default() += 1;
            } else {
                figures.note_lost(sent);
            }
        }
        let mut answers: BTreeMap<Path, u64> = BTreeMap::new();
        for ((key, index), asked) in &self.asked {
            // A request that has not arrived has no answer yet.
            if self.outstanding.contains_key(index) {
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
            self.path((path, schedule), figures, under_way)
        });
        FlowReport {
            flow,
            name: self.name.clone(),
            tail: self.tail(schedule),
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

    /// The counters over all paths; `held` tells whether a packet is still in the network.
    pub(super) fn totals(&self, held: impl Fn(PacketKey) -> bool) -> Totals {
        let mut totals = Totals::default();
        for figures in self.paths.values() {
            let lost = figures.lost_by.values().sum::<u64>() + figures.unexplained;
            let delays = u64::try_from(figures.delay.sum_ns()).unwrap_or(u64::MAX);
            totals.sent_packets += figures.sent_packets;
            totals.sent_octets += figures.sent_octets;
            totals.received_packets += figures.received_packets;
            totals.received_octets += figures.received_octets;
            totals.lost += lost;
            totals.delay_ns = totals.delay_ns.saturating_add(delays);
        }
        for sent in self.outstanding.values() {
            totals.sent_packets += 1;
            totals.sent_octets += u64::from(sent.payload);
            let waits = sent.path.is_none() || held(sent.key);
            totals.lost += u64::from(sent.lost.is_some() || !waits);
        }
        totals
    }

    /// Time from the end of the schedule, or of the offers, to the last packet received.
    fn tail(&self, schedule: Option<Schedule>) -> Duration {
        let end = self.last_offered.max(schedule.map(|schedule| schedule.to));
        let late = self.last_received.zip(end);
        late.map_or(Duration::ZERO, |(received, end)| received.since(end))
    }

    /// Duration and busy time of a path.
    fn times(
        &self,
        (path, schedule): (Path, Option<Schedule>),
        figures: &Figures,
    ) -> [Duration; 2] {
        // The first period begins with the schedule, before the first packet.
        let first = self.first_path.unwrap_or(Path::Lane) == path;
        let early = schedule.zip(self.first).filter(|_| first);
        let early = early.map_or(Duration::ZERO, |(schedule, at)| at.since(schedule.from));
        let unsent = self.first.map(|first| (Path::Lane, first));
        let last = self.phase.or(unsent).filter(|(last, _)| *last == path);
        let end = schedule.map(|schedule| schedule.to);
        let end = self.last_offered.max(end);
        let [duration, busy] = [end, end.max(figures.last_received)].map(|end| {
            let last = last.zip(end);
            last.map_or(Duration::ZERO, |((_, since), end)| end.since(since))
        });
        let before = figures.active + early;
        [before + duration, before + figures.late + busy]
    }

    /// The figures of a path. The arrays hold the number of packets and of answers that are under way.
    fn path(
        &self,
        (path, schedule): (Path, Option<Schedule>),
        figures: Figures,
        [in_flight, answers]: [u64; 2],
    ) -> PathReport {
        let [duration, busy] = self.times((path, schedule), &figures);
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
    /// A packet of this path was received; the present period is that of another path if this one is `over`.
    fn note_arrival(&mut self, at: Instant, over: bool) {
        self.last_received = self.last_received.max(Some(at));
        if let Some(counted) = self.counted.filter(|counted| over && *counted < at) {
            self.late += at - counted;
            self.counted = Some(at);
        }
    }

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
