//! The Ethernet ports of a bridge, and the frames on their cables.

use super::vlans::PortVlans;
use crate::host::Sample;
use crate::inspect::host::EthernetPort as PortRow;
use crate::ip::meter::Path;
use aerostat_proto::{Duration, Instant};
use aerostat_wire::vlan::{TAG_LEN, Tag};
use std::collections::VecDeque;

/// Limit of frames that wait for a cable, if nothing else is said.
pub const WAITING: usize = 512;
/// Octets of preamble, check sequence and gap together; and of the shortest frame without check sequence.
const AROUND: u64 = 8 + 4 + 12;
const SHORTEST: usize = 60;

/// The sender of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::host) enum From {
    /// The bridge, which has the frame by this path.
    Bridge(Path),
    /// A host, and the meter's sample of the packet.
    Host(usize, Option<Sample>),
}

/// How long frames occupy a cable. Source: IEEE 802.3 §4.4.2 (preamble, gap, shortest frame), 802.1Q (tag).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cable {
    /// Bit/s, not 0.
    pub rate: u64,
    /// True if each frame on the cable has a VLAN tag of 4 octets.
    pub tagged: bool,
}

impl Cable {
    /// Ethernet of 10 Mb/s without tags.
    pub const TEN: Self = Self {
        rate: 10_000_000,
        tagged: false,
    };

    /// Time from the first bit of the preamble of a frame to the end of the gap behind it, rounded down to a
    /// nanosecond. `octets` are those of the frame without tag, padding and check sequence.
    #[must_use]
    pub fn time_of(self, octets: usize) -> Duration {
        let tag = if self.tagged { TAG_LEN as u64 } else { 0 };
        let octets = octets.max(SHORTEST) as u64 + tag + AROUND;
        Duration::from_nanos(octets * 8 * 1_000_000_000 / self.rate.max(1))
    }
}

/// One port of the bridge, with its cable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EthernetPort {
    /// Its name; empty for the only cable of a bridge without ports.
    pub name: String,
    /// Rate and tags.
    pub cable: Cable,
    /// True if the two directions of the cable do not share it; only with one station.
    pub full_duplex: bool,
    /// Limit of frames that wait for the cable, in each direction if these do not share it.
    pub queue: usize,
    /// The stations on it, as indices into the segment's hosts.
    pub stations: Vec<usize>,
    /// Its VLANs; they do not count at a bridge without VLANs.
    pub vlans: PortVlans,
}

impl EthernetPort {
    /// The only cable of a bridge without ports: `stations` stations share it.
    #[must_use]
    pub fn shared(cable: Cable, stations: usize) -> Self {
        Self {
            name: String::new(),
            cable,
            full_duplex: false,
            queue: WAITING,
            stations: (0..stations).collect(),
            vlans: PortVlans::default(),
        }
    }
}

/// Frames that wait for a cable, or for one direction of it.
#[derive(Debug, Default)]
pub(super) struct Lane {
    free_at: Instant,
    /// Frames with the time of their end, in order.
    pub(super) frames: VecDeque<(Instant, From, Vec<u8>)>,
}

/// Frames that passed a port.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PortCounters {
    frames_in: u64,
    pub(super) frames_out: u64,
    octets_in: u64,
    octets_out: u64,
    dropped_in: u64,
    dropped_out: u64,
}

/// A port and what is on its cable.
#[derive(Debug)]
pub(super) struct Port {
    pub(super) config: EthernetPort,
    /// From the bridge, or both directions; to the bridge.
    pub(super) lanes: [Lane; 2],
    pub(super) counters: PortCounters,
}

impl Port {
    pub(super) fn new(config: EthernetPort) -> Self {
        Self {
            config,
            lanes: [Lane::default(), Lane::default()],
            counters: PortCounters::default(),
        }
    }

    /// Puts a frame on the cable; returns the frame if too many frames wait.
    pub(super) fn send(&mut self, from: From, frame: Vec<u8>, now: Instant) -> Option<Vec<u8>> {
        let inward = matches!(from, From::Host(..));
        let cable = self.config.cable;
        let (cable, length) = match Tag::decode(&frame) {
            Ok(Some(_)) => (
                Cable {
                    tagged: true,
                    ..cable
                },
                frame.len() - TAG_LEN,
            ),
            _ => (cable, frame.len()),
        };
        let octets = length as u64;
        let lane = &mut self.lanes[usize::from(inward && self.config.full_duplex)];
        let counters = &mut self.counters;
        let full = lane.frames.len() >= self.config.queue;
        let (frames, all, dropped) = match inward {
            true => (
                &mut counters.frames_in,
                &mut counters.octets_in,
                &mut counters.dropped_in,
            ),
            false => (
                &mut counters.frames_out,
                &mut counters.octets_out,
                &mut counters.dropped_out,
            ),
        };
        if full {
            *dropped += 1;
            return Some(frame);
        }
        *frames += 1;
        *all += octets;
        let end = lane.free_at.max(now) + cable.time_of(length);
        lane.free_at = end;
        lane.frames.push_back((end, from, frame));
        None
    }

    /// The direction of the frame that ends next, and the end.
    pub(super) fn next(&self) -> Option<(Instant, usize)> {
        let ends = self.lanes.iter().enumerate();
        let ends = ends.filter_map(|(n, lane)| lane.frames.front().map(|(end, ..)| (*end, n)));
        ends.min()
    }

    pub(super) fn row(&self, addresses: usize) -> PortRow {
        let EthernetPort {
            name,
            cable,
            full_duplex,
            stations,
            vlans,
            ..
        } = &self.config;
        let counters = self.counters;
        PortRow {
            port: name.clone(),
            rate_bps: cable.rate,
            tag: cable.tagged || !vlans.tagged.is_empty(),
            full_duplex: *full_duplex,
            stations: stations.len() as u64,
            addresses: addresses as u64,
            waiting: self.lanes.iter().map(|lane| lane.frames.len() as u64).sum(),
            frames_in: counters.frames_in,
            frames_out: counters.frames_out,
            octets_in: counters.octets_in,
            octets_out: counters.octets_out,
            dropped_in: counters.dropped_in,
            dropped_out: counters.dropped_out,
        }
    }
}
