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
//!
//! A payload of 18 to 23 octets, which the shortest Ethernet frame has room for, begins with a short form: `ae`, the
//! low 16 bits of the flow, the low 48 bits of the sequence, and the time. The data of an echo request begin with a
//! stamp, too, if there is room.

use super::pace::Pace;
use super::{AppId, AppResult, Net, Offer, Program};
use crate::distribution::{Distribution, Summary};
use crate::ip::meter::PacketKey;
use aerostat_proto::Instant;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Octets of a [`Stamp`].
pub const MIN_PAYLOAD: usize = 24;
/// Octets of a [`Stamp`] in its short form: the payload of an Ethernet frame of 64 octets.
pub const SHORT_STAMP: usize = 18;
const MAGIC: [u8; 4] = *b"AERO";
const SHORT_MAGIC: [u8; 2] = *b"ae";
/// Limit of datagrams made at one instant. Only a driver that wakes late makes more than one.
const MAX_BURST: usize = 64;
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
        if payload.len() < MIN_PAYLOAD {
            return Self::decode_short(payload.first_chunk()?);
        }
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

    fn decode_short(octets: &[u8; SHORT_STAMP]) -> Option<Self> {
        let [m, n, f, g, a, b, c, d, e, h, sent @ ..] = *octets;
        ([m, n] == SHORT_MAGIC).then(|| Self {
            flow: u16::from_be_bytes([f, g]).into(),
            sequence: u64::from_be_bytes([0, 0, a, b, c, d, e, h]),
            sent: Instant::from_nanos(u64::from_be_bytes(sent)),
        })
    }

    /// Writes the stamp at the beginning of a payload of at least [`SHORT_STAMP`] octets; does nothing to a shorter
    /// one.
    pub(super) fn write(&self, payload: &mut [u8]) {
        if let Some(place) = payload.first_chunk_mut() {
            *place = self.encode();
        } else if let Some(place) = payload.first_chunk_mut::<SHORT_STAMP>() {
            place[..2].copy_from_slice(&SHORT_MAGIC);
            place[2..4].copy_from_slice(&self.flow.to_be_bytes()[2..]);
            place[4..10].copy_from_slice(&self.sequence.to_be_bytes()[2..]);
            place[10..].copy_from_slice(&self.sent.as_nanos().to_be_bytes());
        }
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

/// Results of a datagram source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UdpSourceResult {
    /// Datagrams made.
    pub sent: u64,
    /// Octets of payload of these.
    pub octets: u64,
    /// When the first datagram was made.
    pub first: Option<Instant>,
    /// When the last datagram was made.
    pub last: Option<Instant>,
}

pub(super) struct Source {
    remote: (Ipv4Addr, u16),
    local_port: u16,
    flow: u32,
    pace: Pace,
    /// Octets of a datagram, if the pace has no sizes of its own.
    size: usize,
    open: bool,
    /// The original start time, if the host has restarted since.
    resumed: Option<Instant>,
    /// True when the duration is over.
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
            remote,
            local_port,
            flow,
            pace,
            size,
            open: false,
            resumed: None,
            ended: false,
            done: false,
            result: UdpSourceResult::default(),
        }
    }

    fn send(&mut self, net: &mut Net<'_>, now: Instant) -> Offer {
        let stamp = Stamp {
            flow: self.flow,
            sequence: self.result.sent,
            sent: now,
        };
        let mut payload = vec![0; self.pace.size().unwrap_or(self.size)];
        stamp.write(&mut payload);
        self.result.sent += 1;
        self.result.octets += payload.len() as u64;
        self.result.first.get_or_insert(now);
        self.result.last = Some(now);
        net.send_datagram(self.local_port, self.remote, &payload);
        Offer {
            key: PacketKey::Stamped {
                sequence: stamp.sequence,
            },
            payload: payload.len() as u32,
            refused: None,
        }
    }
}

impl Program for Source {
    fn open(&mut self, net: &mut Net<'_>, now: Instant) {
        net.udp.open(self.local_port, AppId(self.flow));
        self.open = true;
        self.pace.begin(self.resumed.unwrap_or(now), now);
    }

    fn run(&mut self, net: &mut Net<'_>, now: Instant, end: Option<Instant>) -> bool {
        if !self.open {
            return false;
        }
        let mut moved = false;
        let mut left = MAX_BURST;
        while left > 0
            && let Some(due) = self.pace.next()
            && due <= now
            && end.is_none_or(|end| due < end)
        {
            let offer = self.send(net, now);
            net.offers.push(offer);
            self.pace.advance();
            left -= 1;
            moved = true;
        }
        self.ended = end.is_some_and(|end| now >= end);
        if self.ended && !moved {
            self.close(net, now);
        }
        self.ended && moved
    }

    fn deadline(&self) -> Option<Instant> {
        (self.open && !self.ended).then(|| self.pace.next())?
    }

    fn is_done(&self) -> bool {
        self.done
    }

    fn close(&mut self, net: &mut Net<'_>, _: Instant) {
        if std::mem::take(&mut self.open) {
            net.udp.close(self.local_port, AppId(self.flow));
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
    id: AppId,
    port: u16,
    open: bool,
    sources: BTreeMap<((Ipv4Addr, u16), u32), Heard>,
    delay: Distribution,
    result: UdpSinkResult,
    done: bool,
}

impl Sink {
    pub(super) fn new(id: AppId, port: u16) -> Self {
        Self {
            id,
            port,
            open: false,
            sources: BTreeMap::new(),
            delay: Distribution::default(),
            result: UdpSinkResult::default(),
            done: false,
        }
    }

    fn receive(&mut self, payload: &[u8], from: (Ipv4Addr, u16), now: Instant) {
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
        net.udp.open(self.port, self.id);
        self.open = true;
    }

    fn run(&mut self, _: &mut Net<'_>, _: Instant, _: Option<Instant>) -> bool {
        false
    }

    fn hear(&mut self, payload: &[u8], from: (Ipv4Addr, u16), now: Instant) {
        self.receive(payload, from, now);
    }

    fn is_done(&self) -> bool {
        self.done
    }

    fn close(&mut self, net: &mut Net<'_>, _: Instant) {
        if std::mem::take(&mut self.open) {
            net.udp.close(self.port, self.id);
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
        // The least Ethernet frame has room for 48 bits of the sequence.
        for size in [18, 23, 24, 1472] {
            let stamp = Stamp {
                sequence: 0x1234_5678_9abc,
                ..stamp
            };
            let mut payload = vec![0; size];
            stamp.write(&mut payload);
            assert_eq!(Stamp::decode(&payload), Some(stamp), "{size}");
        }
        assert_eq!(Stamp::decode(&[b'a'; 17]), None);
    }
}
