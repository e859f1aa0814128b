//! From samples to figures: throughput, loss, order, delay and delay variation of each flow, by
//! path.
//!
//! **Definitions.** A packet belongs to the path by which its sender sent it. The time of a flow is
//! cut where the sender changes path; the duration of a path is the sum of its pieces, the last of
//! which ends with the last packet sent or received. Then, for each path:
//!
//! - *throughput*: octets of payload received over the duration. For TCP only octets that the
//!   receiver did not have yet count (goodput);
//! - *lost*: sent and not received. Packets sent less than [`IN_FLIGHT`] before the report and not
//!   yet received are *in flight* and not lost;
//! - *out of sequence*: received after a packet of the same flow that was sent later;
//! - *delay*: from leaving one stack to reaching the other;
//! - *delay variation*: the absolute difference of the delays of two packets of the path that were
//!   received one after the other. This is what chapter 5.4 of the thesis compares: the time
//!   between two adjacent packets at transmission and at receipt; its Table 5.7 gives mean,
//!   variance, standard deviation and maximum;
//! - *round trip*: from leaving the stack to the answer's return, for ICMP echo; it belongs to the path of the request;
//! - *quality*: of telephone calls, by [`super::emodel`];
//! - *retransmitted*: TCP segments sent with octets that have been sent before.
//!
//! **Bounds.** A flow keeps the last [`MAX_OUTSTANDING`] packets not yet received; older ones are
//! lost for good.

use super::emodel::Quality;
use super::meter::{FlowId, FlowSpec, PacketKey, Path, Sample, Side};
use super::stats::{Distribution, Summary};
use aerostat_proto::{Duration, Instant};
use std::collections::BTreeMap;

/// Packets of one flow that may be without a receipt.
pub const MAX_OUTSTANDING: usize = 65_536;
/// For how long before a report a packet without a receipt is not yet called lost.
pub const IN_FLIGHT: Duration = Duration::from_secs(1);
/// Holes in a received TCP stream that are remembered.
const MAX_HOLES: usize = 256;
/// A jump in TCP sequence numbers beyond this is another connection.
const NEW_CONNECTION: u32 = 1 << 28;

/// The figures of one flow over one path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathReport {
    /// The path.
    pub path: Path,
    /// Packets sent.
    pub sent_packets: u64,
    /// Octets of payload sent.
    pub sent_octets: u64,
    /// Packets received.
    pub received_packets: u64,
    /// Octets of payload received that the receiver did not have yet.
    pub received_octets: u64,
    /// How long the flow used this path.
    pub duration: Duration,
    /// `received_octets` over `duration`, 10⁶ bit/s.
    pub throughput_mbps: f64,
    /// Packets lost.
    pub lost: u64,
    /// Packets sent too recently to be lost.
    pub in_flight: u64,
    /// Packets received out of sequence.
    pub out_of_sequence: u64,
    /// TCP segments sent again.
    pub retransmitted: u64,
    /// Packets sent on this path that came by the other.
    pub changed_path: u64,
    /// One-way delay.
    pub delay: Summary,
    /// Delay variation between adjacent packets.
    pub variation: Summary,
    /// Round trip of ICMP echo; of nothing else.
    pub round_trip: Summary,
    /// Of a telephone call, in this direction.
    pub quality: Option<Quality>,
}

/// The figures of one flow.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowReport {
    /// Which flow.
    pub flow: FlowId,
    /// Its name.
    pub name: String,
    /// First packet sent.
    pub first: Option<Instant>,
    /// Last packet sent or received.
    pub last: Option<Instant>,
    /// Packets received that are not known to have been sent, or were received before.
    pub unmatched: u64,
    /// Each path that was used, `routed` first.
    pub paths: Vec<PathReport>,
}

/// Collects the samples of a run.
#[derive(Clone, Debug, Default)]
pub struct FlowStats {
    flows: Vec<Flow>,
}

impl FlowStats {
    /// A collector for the lab's list of flows.
    #[must_use]
    pub fn new(flows: &[FlowSpec]) -> Self {
        let flows = flows.iter().map(|spec| Flow {
            name: spec.name.clone(),
            voice: spec.voice,
            ..Flow::default()
        });
        Self {
            flows: flows.collect(),
        }
    }

    /// Takes one sample. The two samples of a packet come in the order of time.
    pub fn record(&mut self, sample: &Sample) {
        if let Some(flow) = self.flows.get_mut(sample.flow.0) {
            match sample.side {
                Side::Sent => flow.sent(sample),
                Side::Received => flow.received(sample),
                Side::Answered => flow.answered(sample),
            }
        }
    }

    /// The figures as of `now`.
    #[must_use]
    pub fn report(&self, now: Instant) -> Vec<FlowReport> {
        let reports = self.flows.iter().enumerate();
        reports
            .map(|(index, flow)| flow.report(FlowId(index), now))
            .collect()
    }
}

#[derive(Clone, Debug, Default)]
struct Flow {
    name: String,
    voice: bool,
    /// Packets sent, in order of sending.
    sent_count: u64,
    /// Order of sending → packet, for those not received.
    outstanding: BTreeMap<u64, Sent>,
    by_key: BTreeMap<PacketKey, u64>,
    /// Echo requests without an answer: path and time of sending.
    asked: BTreeMap<PacketKey, (Path, Instant)>,
    /// The packet sent last among those received.
    newest_received: Option<u64>,
    first: Option<Instant>,
    last: Option<Instant>,
    phase: Option<(Path, Instant)>,
    sent_stream: Stream,
    received_stream: Stream,
    unmatched: u64,
    paths: BTreeMap<Path, Figures>,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    key: PacketKey,
    path: Path,
    at: Instant,
}

#[derive(Clone, Debug, Default)]
struct Figures {
    sent_packets: u64,
    sent_octets: u64,
    received_packets: u64,
    received_octets: u64,
    active: Duration,
    lost: u64,
    out_of_sequence: u64,
    retransmitted: u64,
    changed_path: u64,
    last_delay: Option<Duration>,
    delay: Distribution,
    variation: Distribution,
    round_trip: Distribution,
}

impl Flow {
    fn sent(&mut self, sample: &Sample) {
        self.first.get_or_insert(sample.at);
        self.last = Some(sample.at);
        match self.phase {
            Some((path, _)) if path == sample.path => {}
            Some((path, since)) => {
                self.paths.entry(path).or_default().active += sample.at - since;
                self.phase = Some((sample.path, sample.at));
            }
            None => self.phase = Some((sample.path, sample.at)),
        }
        let again = match sample.key {
            PacketKey::Segment {
                sequence, length, ..
            } => self.sent_stream.take(sequence, length) < u64::from(length),
            _ => false,
        };
        let figures = self.paths.entry(sample.path).or_default();
        figures.sent_packets += 1;
        figures.sent_octets += u64::from(sample.payload);
        figures.retransmitted += u64::from(again);
        self.remember(sample);
    }

    fn remember(&mut self, sample: &Sample) {
        let index = self.sent_count;
        self.sent_count += 1;
        let sent = Sent {
            key: sample.key,
            path: sample.path,
            at: sample.at,
        };
        if let PacketKey::Echo { .. } = sent.key {
            self.asked.insert(sent.key, (sent.path, sent.at));
            if self.asked.len() > MAX_OUTSTANDING {
                self.asked.pop_first();
            }
        }
        self.outstanding.insert(index, sent);
        if let Some(older) = self.by_key.insert(sample.key, index) {
            // The same key again: a receipt can only be matched with the newer packet.
            self.forget(older);
        }
        if self.outstanding.len() > MAX_OUTSTANDING
            && let Some((&oldest, sent)) = self.outstanding.first_key_value()
        {
            self.by_key.remove(&sent.key);
            self.forget(oldest);
        }
    }

    /// Gives a packet up as lost.
    fn forget(&mut self, index: u64) {
        if let Some(sent) = self.outstanding.remove(&index) {
            self.paths.entry(sent.path).or_default().lost += 1;
        }
    }

    fn received(&mut self, sample: &Sample) {
        self.last = Some(sample.at);
        let new_octets = match sample.key {
            PacketKey::Segment {
                sequence, length, ..
            } => self.received_stream.take(sequence, length),
            _ => u64::from(sample.payload),
        };
        let Some(index) = self.by_key.remove(&sample.key) else {
            self.unmatched += 1;
            return;
        };
        // Both tables have the same packets.
        let Some(sent) = self.outstanding.remove(&index) else {
            return;
        };
        let late = self.newest_received.is_some_and(|newest| index < newest);
        self.newest_received = self.newest_received.max(Some(index));
        let figures = self.paths.entry(sent.path).or_default();
        figures.received_packets += 1;
        figures.received_octets += new_octets;
        figures.out_of_sequence += u64::from(late);
        figures.changed_path += u64::from(sent.path != sample.path);
        let delay = sample.at - sent.at;
        figures.delay.record(delay);
        if let Some(before) = figures.last_delay.replace(delay) {
            figures.variation.record(delay.abs_diff(before));
        }
    }

    fn answered(&mut self, sample: &Sample) {
        if let Some((path, at)) = self.asked.remove(&sample.key) {
            let figures = self.paths.entry(path).or_default();
            figures.round_trip.record(sample.at - at);
        }
    }

    fn report(&self, flow: FlowId, now: Instant) -> FlowReport {
        let paths = self
            .paths
            .iter()
            .map(|(path, figures)| self.path(*path, figures, now));
        FlowReport {
            flow,
            name: self.name.clone(),
            first: self.first,
            last: self.last,
            unmatched: self.unmatched,
            paths: paths.collect(),
        }
    }

    fn path(&self, path: Path, figures: &Figures, now: Instant) -> PathReport {
        let mut duration = figures.active;
        if let (Some((current, since)), Some(last)) = (self.phase, self.last)
            && current == path
        {
            duration += last - since;
        }
        let mut lost = figures.lost;
        let mut in_flight = 0;
        for sent in self.outstanding.values().filter(|sent| sent.path == path) {
            if now - sent.at < IN_FLIGHT {
                in_flight += 1;
            } else {
                lost += 1;
            }
        }
        let seconds = duration.as_secs_f64();
        let throughput_mbps = if seconds > 0.0 {
            figures.received_octets as f64 * 8.0 / seconds / 1e6
        } else {
            0.0
        };
        PathReport {
            path,
            sent_packets: figures.sent_packets,
            sent_octets: figures.sent_octets,
            received_packets: figures.received_packets,
            received_octets: figures.received_octets,
            duration,
            throughput_mbps,
            lost,
            in_flight,
            out_of_sequence: figures.out_of_sequence,
            retransmitted: figures.retransmitted,
            changed_path: figures.changed_path,
            delay: figures.delay.summary(),
            variation: figures.variation.summary(),
            round_trip: figures.round_trip.summary(),
            quality: Quality::of(&figures.delay, lost).filter(|_| self.voice),
        }
    }
}

/// Which octets of a TCP stream have been seen.
#[derive(Clone, Debug, Default)]
struct Stream {
    /// All below have been seen, in numbers that do not wrap. `None`: nothing yet.
    next: Option<u64>,
    /// Seen beyond `next`: start → end, apart from each other.
    beyond: BTreeMap<u64, u64>,
}

impl Stream {
    /// Marks a segment as seen; how many of its octets are new.
    fn take(&mut self, sequence: u32, length: u32) -> u64 {
        // Room below the first octet, so that what was sent before it stays positive.
        let base = self.next.unwrap_or(u64::from(sequence) + (1 << 33));
        let ahead = sequence.wrapping_sub(base as u32) as i32;
        if ahead.unsigned_abs() > NEW_CONNECTION {
            *self = Self::default();
            return self.take(sequence, length);
        }
        let next = base;
        let start = base.saturating_add_signed(i64::from(ahead));
        let end = start + u64::from(length);
        let mut new = end.saturating_sub(start.max(next));
        let (mut from, mut to) = (start.max(next), end.max(next));
        // Take in what touches or overlaps; ranges are apart, so walk down from the end.
        while let Some((&s, &e)) = self.beyond.range(..=to).next_back() {
            if e < from {
                break;
            }
            new -= e.min(end).saturating_sub(s.max(start.max(next)));
            from = from.min(s);
            to = to.max(e);
            self.beyond.remove(&s);
        }
        if from <= next {
            self.next = Some(to);
        } else {
            self.next = Some(next);
            self.beyond.insert(from, to);
        }
        if self.beyond.len() > MAX_HOLES
            && let Some((_, end)) = self.beyond.pop_first()
        {
            self.next = Some(end);
        }
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ip::meter::Protocol;
    use std::net::Ipv4Addr;

    fn collector() -> FlowStats {
        FlowStats::new(&[FlowSpec {
            name: "voice".into(),
            source: Ipv4Addr::new(10, 0, 0, 1),
            destination: Ipv4Addr::new(10, 0, 0, 2),
            protocol: Protocol::Udp,
            source_port: None,
            destination_port: None,
            voice: false,
        }])
    }

    fn sample(side: Side, path: Path, us: u64, sequence: u64) -> Sample {
        Sample {
            flow: FlowId(0),
            side,
            path,
            at: Instant::from_nanos(us * 1000),
            key: PacketKey::Stamped { sequence },
            payload: 1000,
            ip_octets: 1028,
        }
    }

    #[test]
    fn a_call_is_rated_by_path() {
        let mut stats = collector();
        stats.flows[0].voice = true;
        for n in 0..100 {
            stats.record(&sample(Side::Sent, Path::Lane, n * 20_000, n));
            // Every tenth is lost on the way through the routers.
            if n % 10 != 0 {
                stats.record(&sample(Side::Received, Path::Lane, n * 20_000 + 5000, n));
            }
        }
        for n in 100..200 {
            stats.record(&sample(Side::Sent, Path::Shortcut, n * 20_000, n));
            stats.record(&sample(
                Side::Received,
                Path::Shortcut,
                n * 20_000 + 1000,
                n,
            ));
        }
        let report = stats.report(Instant::from_secs(10)).remove(0);
        let [lane, shortcut] = [0, 1].map(|n| report.paths[n].quality.expect("a call"));
        assert!((lane.loss_percent - 10.0).abs() < 1e-9 && shortcut.loss_percent == 0.0);
        assert!(lane.r < 70.0 && shortcut.r > 90.0, "{lane:?} {shortcut:?}");
    }

    #[test]
    fn loss_order_delay_and_variation_of_a_known_sequence() {
        let mut stats = collector();
        // Sent every millisecond; delays 100, 150, lost, 120 µs; number 4 overtakes number 3.
        let path = Path::Lane;
        for n in 0..6 {
            stats.record(&sample(Side::Sent, path, n * 1000, n));
        }
        for (n, at) in [(0, 100), (1, 1150), (4, 4120), (3, 4200), (5, 5100)] {
            stats.record(&sample(Side::Received, path, at, n));
        }
        let report = stats.report(Instant::from_secs(10)).remove(0);
        let routed = report.paths[0];
        assert_eq!((routed.sent_packets, routed.received_packets), (6, 5));
        assert_eq!(
            (routed.lost, routed.in_flight, routed.out_of_sequence),
            (1, 0, 1)
        );
        assert_eq!((routed.delay.min_us, routed.delay.max_us), (100.0, 1200.0));
        // |150−100|, |120−150|, |1200−120|, |100−1200| = 50, 30, 1080, 1100.
        assert_eq!(
            (routed.variation.count, routed.variation.max_us),
            (4, 1100.0)
        );
        assert!((routed.variation.mean_us - 565.0).abs() < 1e-6);
        let squares = [50.0f64, 30.0, 1080.0, 1100.0].map(|v| (v - 565.0).powi(2));
        let variance = squares.iter().sum::<f64>() / 4.0;
        assert!((routed.variation.variance_us2 - variance).abs() < 1e-3);
        assert_eq!(routed.duration, Duration::from_micros(5100));
        assert!((routed.throughput_mbps - 5.0 * 8000.0 / 5100.0).abs() < 1e-9);
    }

    #[test]
    fn a_path_change_cuts_the_time() {
        let mut stats = collector();
        for n in 0..20 {
            let path = if n < 5 { Path::Lane } else { Path::Shortcut };
            stats.record(&sample(Side::Sent, path, n * 1000, n));
            stats.record(&sample(Side::Received, path, n * 1000 + 10, n));
        }
        // A packet that the network moved to the other path, and one never sent.
        stats.record(&sample(Side::Sent, Path::Shortcut, 20_000, 20));
        stats.record(&sample(Side::Received, Path::Lane, 20_010, 20));
        stats.record(&sample(Side::Received, Path::Lane, 20_010, 99));
        stats.record(&sample(Side::Sent, Path::Shortcut, 21_000, 21));
        let report = stats.report(Instant::from_millis(22)).remove(0);
        assert_eq!(report.unmatched, 1);
        assert_eq!(
            report
                .paths
                .iter()
                .map(|p| p.path.as_str())
                .collect::<Vec<_>>(),
            ["routed", "shortcut"]
        );
        assert_eq!(report.paths[0].duration, Duration::from_millis(5));
        assert_eq!(report.paths[1].duration, Duration::from_millis(16));
        assert!((report.paths[0].throughput_mbps - 8.0).abs() < 1e-9);
        assert_eq!((report.paths[1].in_flight, report.paths[1].lost), (1, 0));
        assert_eq!(report.paths[1].changed_path, 1);
    }

    #[test]
    fn memory_is_bounded_and_the_oldest_are_lost() {
        let mut stats = collector();
        for n in 0..MAX_OUTSTANDING as u64 + 10 {
            stats.record(&sample(Side::Sent, Path::Lane, n, n));
        }
        let flow = &stats.flows[0];
        assert_eq!(
            (flow.outstanding.len(), flow.by_key.len()),
            (MAX_OUTSTANDING, MAX_OUTSTANDING)
        );
        assert_eq!(flow.paths[&Path::Lane].lost, 10);
    }

    #[test]
    fn streams_count_new_octets_across_the_wrap() {
        let mut stream = Stream::default();
        let start = u32::MAX - 150;
        assert_eq!(stream.take(start, 100), 100);
        assert_eq!(
            stream.take(start.wrapping_add(200), 100),
            100,
            "after a hole"
        );
        assert_eq!(
            stream.take(start.wrapping_add(400), 100),
            100,
            "after another"
        );
        assert_eq!(stream.take(start, 100), 0, "again");
        assert_eq!(stream.take(start.wrapping_add(50), 400), 200, "both holes");
        assert_eq!(stream.take(start.wrapping_add(500), 10), 10);
        assert_eq!(stream.next, Some(u64::from(start) + (1 << 33) + 510));
        assert!(stream.beyond.is_empty());
        assert_eq!(
            stream.take(start.wrapping_add(1 << 30), 5),
            5,
            "another connection"
        );
    }

    proptest::proptest! {
        #[test]
        fn streams_agree_with_a_set_of_octets(
            segments in proptest::collection::vec((0u32..400, 1u32..60), 1..60),
        ) {
            let mut stream = Stream::default();
            let mut octets = std::collections::BTreeSet::new();
            let first = segments[0].0;
            for (start, length) in segments {
                let new = (start..start + length)
                    .filter(|at| *at >= first)
                    .filter(|at| octets.insert(*at))
                    .count();
                assert_eq!(stream.take(start, length), new as u64);
            }
        }
    }
}
