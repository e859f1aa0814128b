//! Numbered datagrams at a given rate, and a sink that counts them.
//!
//! The payload begins with a [`Stamp`]; the rest is filler:
//!
//! ```text
//!  0      4      8              16             24
//! +------+------+--------------+--------------+---------
//! | AERO | flow | sequence     | sent (ns)    | zeros …      all big-endian
//! +------+------+--------------+--------------+---------
//! ```

use super::{AppResult, Net, Offer, Program};
use crate::ip::books::Refusal;
use crate::ip::meter::PacketKey;
use crate::ip::random;
use crate::ip::stats::{Distribution, Summary};
use crate::rate::PacketRate;
use aerostat_proto::{Duration, Instant, Refused};
use rand_pcg::Pcg32;
use smoltcp::iface::SocketHandle;
use smoltcp::socket::udp;
use smoltcp::wire::{IpAddress, IpEndpoint};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Octets of a [`Stamp`].
pub const MIN_PAYLOAD: usize = 24;
const MAGIC: [u8; 4] = *b"AERO";
/// Limit of datagrams made at one instant. Only a driver that wakes late makes more than one.
const MAX_BURST: usize = 64;
/// Limit of datagrams that wait in a source's socket, for instance for ARP.
const SOCKET_PACKETS: usize = 64;
/// Limit of octets and datagrams that wait in a sink's socket; the socket is emptied after every frame.
const SINK_OCTETS: usize = 64 * 1024;
/// Limit of sources that a sink distinguishes; datagrams of further sources are only counted.
const MAX_SOURCES: usize = 64;

/// The contents of the first octets of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The source program's number.
    pub flow: u32,
    /// Sequence number, counted from 0.
    pub sequence: u64,
    /// When the program made the datagram.
    pub sent: Instant,
}

impl Stamp {
    /// The stamp of a payload, if the payload has one.
    #[must_use]
    pub fn decode(payload: &[u8]) -> Option<Self> {
        let (magic, rest) = payload.split_first_chunk::<4>()?;
        let (flow, rest) = rest.split_first_chunk::<4>()?;
        let (sequence, rest) = rest.split_first_chunk::<8>()?;
        let (sent, _) = rest.split_first_chunk::<8>()?;
        (*magic == MAGIC).then(|| Self {
            flow: u32::from_be_bytes(*flow),
            sequence: u64::from_be_bytes(*sequence),
            sent: Instant::from_nanos(u64::from_be_bytes(*sent)),
        })
    }

    /// The octets of the stamp.
    #[must_use]
    pub fn encode(&self) -> [u8; MIN_PAYLOAD] {
        let mut octets = [0; MIN_PAYLOAD];
        octets[..4].copy_from_slice(&MAGIC);
        octets[4..8].copy_from_slice(&self.flow.to_be_bytes());
        octets[8..16].copy_from_slice(&self.sequence.to_be_bytes());
        octets[16..].copy_from_slice(&self.sent.as_nanos().to_be_bytes());
        octets
    }
}

/// The distribution of datagrams over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pattern {
    /// At equal intervals.
    #[default]
    Constant,
    /// At exponentially distributed intervals.
    Poisson,
    /// Like a program on a system with a coarse timer: all datagrams that have become due are sent at the next tick,
    /// one right after the other. The thesis' mgen 3.0 on Linux 2.2 had a tick of 10 ms and sent datagrams 76 µs apart.
    Ticked {
        /// Time between ticks.
        tick: Duration,
        /// Time between datagrams within a tick.
        spacing: Duration,
    },
}

/// The times at which a source sends.
pub(super) struct Pace {
    rate: PacketRate,
    pattern: Pattern,
    rng: Pcg32,
    start: Instant,
    /// When the next datagram is due.
    next: Instant,
    /// Fraction of a nanosecond by which the next datagram of a Poisson process is due after `next`.
    rest: f64,
    /// Datagrams timed so far.
    index: u64,
    /// Tick of the last datagram, and the number of the datagram within that tick.
    tick: u64,
    place: u32,
}

impl Pace {
    pub(super) fn new(rate: PacketRate, pattern: Pattern, rng: Pcg32) -> Result<Self, Refused> {
        if let Pattern::Ticked { tick, spacing } = pattern {
            let per_tick = tick.as_secs_f64() * 1e9 / rate.mean_gap() + 1.0;
            if tick.is_zero() || spacing.as_secs_f64() * per_tick > tick.as_secs_f64() {
                return Err(Refused("the datagrams of a tick must fit before the next"));
            }
        }
        let (start, next) = (Instant::ZERO, Instant::ZERO);
        Ok(Self {
            rate,
            pattern,
            rng,
            start,
            next,
            rest: 0.0,
            index: 0,
            tick: u64::MAX,
            place: 0,
        })
    }

    /// Begins at `now` for a source whose start time is `start`: the first datagram is the first one that is not due
    /// before `now`.
    fn begin(&mut self, start: Instant, now: Instant) {
        (self.start, self.next) = (start, now);
        self.index = self.rate.first_at(now - start);
        self.plan();
    }

    /// The time of `index` intervals after the start, in nanoseconds; exact at every rate.
    fn even(&self) -> u64 {
        u64::try_from(self.rate.after(self.index).as_nanos()).unwrap_or(u64::MAX)
    }

    fn advance(&mut self) {
        self.index += 1;
        self.plan();
    }

    fn plan(&mut self) {
        match self.pattern {
            Pattern::Constant => self.next = self.start + Duration::from_nanos(self.even()),
            Pattern::Poisson => self.draw(),
            Pattern::Ticked { tick, spacing } => {
                let tick_ns = u64::try_from(tick.as_nanos()).unwrap_or(u64::MAX);
                let number = self.even().div_ceil(tick_ns);
                self.place = if number == self.tick {
                    self.place + 1
                } else {
                    0
                };
                self.tick = number;
                self.next = self.start
                    + Duration::from_nanos(number.saturating_mul(tick_ns))
                    + spacing * self.place;
            }
        }
    }

    fn draw(&mut self) {
        let ns = self.rest + random::exponential(&mut self.rng) * self.rate.mean_gap();
        self.rest = ns.fract();
        self.next += Duration::from_nanos(ns as u64);
    }
}

/// Results of a datagram source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UdpSourceResult {
    /// Datagrams made.
    pub sent: u64,
    /// Octets of payload of these.
    pub octets: u64,
    /// Datagrams that the socket refused. They are counted in `sent`, and lost.
    pub overrun: u64,
    /// When the first datagram was made.
    pub first: Option<Instant>,
    /// When the last datagram was made.
    pub last: Option<Instant>,
}

pub(super) struct Source {
    remote: IpEndpoint,
    local_port: u16,
    flow: u32,
    pace: Pace,
    payload: Vec<u8>,
    handle: Option<SocketHandle>,
    /// The original start time, if the host has restarted since.
    resumed: Option<Instant>,
    /// True when the duration is over; datagrams may still wait in the socket.
    ended: bool,
    done: bool,
    result: UdpSourceResult,
}

impl Source {
    pub(super) fn new(
        remote: (Ipv4Addr, u16),
        local_port: u16,
        flow: u32,
        pace: Pace,
        size: usize,
    ) -> Self {
        Self {
            remote: IpEndpoint::new(IpAddress::Ipv4(remote.0), remote.1),
            local_port,
            flow,
            pace,
            payload: vec![0; size],
            handle: None,
            resumed: None,
            ended: false,
            done: false,
            result: UdpSourceResult::default(),
        }
    }

    fn send(&mut self, socket: &mut udp::Socket<'static>, now: Instant) -> Offer {
        let stamp = Stamp {
            flow: self.flow,
            sequence: self.result.sent,
            sent: now,
        };
        // The payload size is at least that of the stamp.
        self.payload[..MIN_PAYLOAD].copy_from_slice(&stamp.encode());
        self.result.sent += 1;
        self.result.octets += self.payload.len() as u64;
        self.result.first.get_or_insert(now);
        self.result.last = Some(now);
        let refused = match socket.send_slice(&self.payload, self.remote) {
            Ok(()) => None,
            Err(udp::SendError::BufferFull) => Some(Refusal::SocketFull),
            Err(udp::SendError::Unaddressable) => Some(Refusal::Address),
        };
        self.result.overrun += u64::from(refused.is_some());
        Offer {
            key: PacketKey::Stamped {
                sequence: stamp.sequence,
            },
            payload: self.payload.len() as u32,
            refused,
        }
    }
}

fn open(net: &mut Net<'_>, port: u16, packets: usize, octets: usize) -> SocketHandle {
    let buffer =
        || udp::PacketBuffer::new(vec![udp::PacketMetadata::EMPTY; packets], vec![0; octets]);
    let mut socket = udp::Socket::new(buffer(), buffer());
    // The socket is new and the port is not 0, so binding cannot fail.
    let bound = socket.bind(port);
    debug_assert!(bound.is_ok());
    net.sockets.add(socket)
}

impl Program for Source {
    fn open(&mut self, net: &mut Net<'_>, now: Instant) {
        let octets = SOCKET_PACKETS * self.payload.len();
        self.handle = Some(open(net, self.local_port, SOCKET_PACKETS, octets));
        self.pace.begin(self.resumed.unwrap_or(now), now);
    }

    fn run(&mut self, net: &mut Net<'_>, now: Instant, end: Option<Instant>) -> bool {
        let Some(handle) = self.handle else {
            return false;
        };
        let socket = net.sockets.get_mut::<udp::Socket<'static>>(handle);
        let mut moved = false;
        let mut left = MAX_BURST;
        while self.pace.next <= now && end.is_none_or(|end| self.pace.next < end) && left > 0 {
            net.offers.push(self.send(socket, now));
            self.pace.advance();
            left -= 1;
            moved = true;
        }
        self.ended = end.is_some_and(|end| now >= end);
        if self.ended && !moved {
            // Datagrams that still wait for an ARP reply at this time are dropped.
            self.close(net, now);
        }
        moved
    }

    fn deadline(&self) -> Option<Instant> {
        self.handle.filter(|_| !self.ended).map(|_| self.pace.next)
    }

    fn is_done(&self) -> bool {
        self.done
    }

    fn close(&mut self, net: &mut Net<'_>, _: Instant) {
        if let Some(handle) = self.handle.take() {
            net.sockets.remove(handle);
        }
        self.done = true;
    }

    fn result(&self) -> AppResult {
        AppResult::UdpSource(self.result)
    }

    fn closes_at_end(&self) -> bool {
        false
    }

    fn resume(&mut self, start: Instant) {
        self.resumed = Some(start);
    }
}

/// Results of a datagram sink, over all sources.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct UdpSinkResult {
    /// Stamped datagrams.
    pub received: u64,
    /// Octets of payload of these.
    pub octets: u64,
    /// Datagrams without a stamp, or of sources beyond the limit.
    pub unmarked: u64,
    /// Missing numbers below the highest received number of each source (duplicates hide losses).
    pub lost: u64,
    /// Datagrams with a lower number than an earlier datagram of the same source.
    pub out_of_sequence: u64,
    /// When the first datagram arrived.
    pub first: Option<Instant>,
    /// When the last datagram arrived.
    pub last: Option<Instant>,
    /// Time from the stamp to the program: one-way delay, including host and ARP.
    pub delay: Summary,
}

#[derive(Default)]
struct Heard {
    received: u64,
    /// The highest received number plus one.
    expected: u64,
}

pub(super) struct Sink {
    port: u16,
    handle: Option<SocketHandle>,
    sources: BTreeMap<(IpEndpoint, u32), Heard>,
    delay: Distribution,
    result: UdpSinkResult,
    done: bool,
}

impl Sink {
    pub(super) fn new(port: u16) -> Self {
        Self {
            port,
            handle: None,
            sources: BTreeMap::new(),
            delay: Distribution::default(),
            result: UdpSinkResult::default(),
            done: false,
        }
    }

    fn receive(&mut self, payload: &[u8], from: IpEndpoint, now: Instant) {
        let Some(stamp) = Stamp::decode(payload) else {
            self.result.unmarked += 1;
            return;
        };
        let key = (from, stamp.flow);
        if !self.sources.contains_key(&key) && self.sources.len() >= MAX_SOURCES {
            self.result.unmarked += 1;
            return;
        }
        let heard = self.sources.entry(key).or_default();
        heard.received += 1;
        if stamp.sequence < heard.expected {
            self.result.out_of_sequence += 1;
        } else {
            heard.expected = stamp.sequence.saturating_add(1);
        }
        self.result.received += 1;
        self.result.octets += payload.len() as u64;
        self.result.first.get_or_insert(now);
        self.result.last = Some(now);
        self.delay.record(now - stamp.sent);
    }
}

impl Program for Sink {
    fn open(&mut self, net: &mut Net<'_>, _: Instant) {
        let packets = SINK_OCTETS / MIN_PAYLOAD;
        self.handle = Some(open(net, self.port, packets, SINK_OCTETS));
    }

    fn run(&mut self, net: &mut Net<'_>, now: Instant, _: Option<Instant>) -> bool {
        let Some(handle) = self.handle else {
            return false;
        };
        let socket = net.sockets.get_mut::<udp::Socket<'static>>(handle);
        let mut moved = false;
        while let Ok((payload, meta)) = socket.recv() {
            self.receive(payload, meta.endpoint, now);
            moved = true;
        }
        moved
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }

    fn is_done(&self) -> bool {
        self.done
    }

    fn close(&mut self, net: &mut Net<'_>, _: Instant) {
        if let Some(handle) = self.handle.take() {
            net.sockets.remove(handle);
        }
        self.done = true;
    }

    fn result(&self) -> AppResult {
        let lost = self
            .sources
            .values()
            .map(|s| s.expected.saturating_sub(s.received))
            .sum();
        AppResult::UdpSink(UdpSinkResult {
            lost,
            delay: self.delay.summary(),
            ..self.result
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(packets: u32) -> PacketRate {
        PacketRate::per_second(packets.into()).expect("sane")
    }

    fn times(packets: u32, pattern: Pattern, count: usize) -> Vec<u64> {
        let rate = rate(packets);
        let mut pace = Pace::new(rate, pattern, random::stream(1, "a", "b")).expect("sane");
        pace.begin(Instant::ZERO, Instant::ZERO);
        (0..count)
            .map(|_| {
                let at = pace.next.as_nanos();
                pace.advance();
                at
            })
            .collect()
    }

    #[test]
    fn stamp_round_trip() {
        let stamp = Stamp {
            flow: 7,
            sequence: u64::MAX,
            sent: Instant::from_millis(5),
        };
        assert_eq!(Stamp::decode(&stamp.encode()), Some(stamp));
        assert_eq!(Stamp::decode(&stamp.encode()[..23]), None);
        assert_eq!(Stamp::decode(&[0; 24]), None);
    }

    #[test]
    fn even_pace_does_not_drift() {
        let times = times(450, Pattern::Constant, 4501);
        assert_eq!(times[4500], 10_000_000_000);
        assert_eq!(times[1], 2_222_222);
    }

    #[test]
    fn ticked_pace_is_that_of_the_thesis() {
        // Chapter 5.4.2. At 900 pps every ninth packet comes after more than nine milliseconds, the others 76 µs after
        // the packet before. At 450 pps 2/9 of all packets are delayed longer.
        let pattern = Pattern::Ticked {
            tick: Duration::from_millis(10),
            spacing: Duration::from_micros(76),
        };
        for (rate, long_share) in [(900, 1.0 / 9.0), (450, 2.0 / 9.0)] {
            let times = times(rate, pattern, 9001);
            let gaps: Vec<u64> = times.windows(2).map(|w| w[1] - w[0]).collect();
            let long = gaps.iter().filter(|g| **g > 9_000_000).count();
            assert!(
                (long as f64 / gaps.len() as f64 - long_share).abs() < 0.002,
                "{long}"
            );
            assert!(gaps.iter().all(|g| *g == 76_000 || *g > 9_000_000));
        }
        assert!(
            Pace::new(
                rate(200_000),
                Pattern::Ticked {
                    tick: Duration::from_millis(10),
                    spacing: Duration::from_micros(76)
                },
                random::stream(1, "a", "b")
            )
            .is_err()
        );
    }

    #[test]
    fn poisson_pace_has_the_rate() {
        // With gaps of two nanoseconds, no gap may lose its fraction of a nanosecond.
        for rate in [1000, 700_000, 500_000_000] {
            let times = times(rate, Pattern::Poisson, 20_001);
            let mean = times[20_000] as f64 / 1e9 / 20_000.0 * f64::from(rate);
            // Four standard deviations of the mean of 20000 exponential gaps.
            assert!(
                (mean - 1.0).abs() < 4.0 / 20_000_f64.sqrt(),
                "{rate}: {mean}"
            );
        }
    }
}
