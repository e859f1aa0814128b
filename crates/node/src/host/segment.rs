//! An Ethernet segment, with embedded hosts, behind a host that bridges between the segment and its ELAN.
//!
//! The segment is one cable, or one cable for each *port* of the bridge. A frame occupies the cable for its transmission
//! time while other frames wait; all stations on the cable receive the frame. There are no collisions, and the number of
//! waiting frames is limited. A cable with one station may be full duplex: its two directions do not wait for each
//! other. The bridge learns addresses from the frames of the segment and of the ELAN (`filtering.rs`). It forwards a
//! frame to the port of its destination, or to all others if the destination is a group or unknown; the ELAN is such a
//! port, too. The bridge tells the addresses of the segment to its LANE client, which answers for them as a proxy
//! (LE_ARP for unregistered destinations, LE_NARP for a station that has moved). From the ELAN, and from shortcuts, the
//! bridge forwards frames that are for the segment or whose destination is unknown. A station that sends from the ELAN,
//! or that another proxy claims, is no longer on the segment.
//!
//! Behind a Linux kernel host the segment is the kernel's ([`Segment::kernel`]): the kernel's bridge has the interface
//! `lecN` as one of its ports and does the switching. This module then only learns the addresses, from the frames that
//! the kernel sends out of that port.
//!
//! **Standards.** IEEE 802.3 frame times; 802.1D learning and ageing; LANE v2 §2.1.3 (proxy). **Not implemented** for
//! embedded segments: spanning tree, VLANs (a port has tags on its cable, and the bridge forwards between all ports).

use super::filtering::{FilteringDatabase, Heard, Way};
use super::ip::cause_of;
use super::{Host, HostOutput, Part, Sample};
use crate::inspect::host::{
    EthernetPort as PortRow, HeardFromElan, Learned, SegmentHost as SegmentHostRow,
};
use crate::inspect::{Table, counters};
use crate::ip::apps::{AppCommand, AppId, AppResult, Offer};
use crate::ip::books::Cause;
use crate::ip::meter::{Meter, Path};
use crate::ip::stack::{Stack, StackInput, StackOutput};
use aerostat_proto::lane::lec;
use aerostat_proto::mpoa::mpc;
use aerostat_proto::{Duration, Instant, Machine, Refused, Trace};
use aerostat_wire::MacAddr;
use std::collections::VecDeque;

/// Limit of frames that wait for a cable, if nothing else is said.
pub const WAITING: usize = 512;
/// Octets of preamble, check sequence and gap together; of a tag of IEEE 802.1Q; and of the shortest frame without
/// check sequence.
const AROUND: u64 = 8 + 4 + 12;
const TAG: u64 = 4;
const SHORTEST: usize = 60;

/// An embedded host on the segment.
pub struct SegmentHost {
    /// Its name.
    pub name: String,
    /// Its stack, which also has its addresses.
    pub stack: Box<Stack>,
    /// The measurements on this host.
    pub meter: Meter,
}

/// Where the bridge has a frame from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Came {
    /// An Ethernet port.
    Port(usize),
    /// The ELAN, or a shortcut.
    Elan,
    /// The bridging host itself.
    Own,
}

/// The sender of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    Bridge(Path),
    /// A host, and the meter's sample of the packet.
    Host(usize, Option<Sample>),
}

aerostat_proto::counters! {
    /// Counters of a segment.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    struct SegmentCounters {
        /// Frames on the cable.
        frames: u64,
        /// Octets of these, without preamble and gap.
        octets: u64,
        /// Frames that found no room in the queue of the cable.
        dropped: u64,
        /// Times that an address of the segment was not learned because 1024 were known.
        not_learned: u64,
        /// Times that an address of the ELAN was not learned because 8192 were known.
        elan_not_learned: u64,
        /// Frames for one station that went to all ports because its address was unknown.
        flooded: u64,
        /// Frames from the ELAN for a station that the bridge knows to be there: the bridge forwards them to no port.
        filtered: u64,
    }
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
        let tag = if self.tagged { TAG } else { 0 };
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
        }
    }
}

/// Frames that wait for a cable, or for one direction of it.
#[derive(Debug, Default)]
struct Lane {
    free_at: Instant,
    /// Frames with the time of their end, in order.
    frames: VecDeque<(Instant, From, Vec<u8>)>,
}

/// What passed a port.
#[derive(Clone, Copy, Debug, Default)]
struct PortCounters {
    frames_in: u64,
    frames_out: u64,
    octets_in: u64,
    octets_out: u64,
    dropped_in: u64,
    dropped_out: u64,
}

/// A port and what is on its cable.
#[derive(Debug)]
struct Port {
    config: EthernetPort,
    /// From the bridge, or both directions; to the bridge.
    lanes: [Lane; 2],
    counters: PortCounters,
}

impl Port {
    fn new(config: EthernetPort) -> Self {
        Self {
            config,
            lanes: [Lane::default(), Lane::default()],
            counters: PortCounters::default(),
        }
    }

    /// Puts a frame on the cable; returns the frame if too many frames wait.
    fn send(&mut self, from: From, frame: Vec<u8>, now: Instant) -> Option<Vec<u8>> {
        let inward = matches!(from, From::Host(..));
        let octets = frame.len() as u64;
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
        let end = lane.free_at.max(now) + self.config.cable.time_of(frame.len());
        lane.free_at = end;
        lane.frames.push_back((end, from, frame));
        None
    }

    /// The direction of the frame that ends next, and the end.
    fn next(&self) -> Option<(Instant, usize)> {
        let ends = self.lanes.iter().enumerate();
        let ends = ends.filter_map(|(n, lane)| lane.frames.front().map(|(end, ..)| (*end, n)));
        ends.min()
    }

    fn row(&self, addresses: usize) -> PortRow {
        let EthernetPort {
            name,
            cable,
            full_duplex,
            stations,
            ..
        } = &self.config;
        let counters = self.counters;
        PortRow {
            port: name.clone(),
            rate_bps: cable.rate,
            tag: cable.tagged,
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

/// The segment.
pub struct Segment {
    hosts: Vec<SegmentHost>,
    /// Its cables: at least one.
    ports: Vec<Port>,
    /// True if the cables and the bridge are the kernel's: then no frame passes here.
    kernel: bool,
    learned: FilteringDatabase,
    counters: SegmentCounters,
}

impl Segment {
    /// A segment with these cables; a station that is on none is on the first.
    #[must_use]
    pub fn new(ports: Vec<EthernetPort>, hosts: Vec<SegmentHost>) -> Self {
        let mut ports: Vec<Port> = ports.into_iter().map(Port::new).collect();
        if ports.is_empty() {
            ports.push(Port::new(EthernetPort::shared(Cable::TEN, hosts.len())));
        }
        Self {
            hosts,
            ports,
            kernel: false,
            learned: FilteringDatabase::default(),
            counters: SegmentCounters::default(),
        }
    }

    /// The segment of a kernel host, on ports of the kernel's own bridge.
    #[must_use]
    pub fn kernel() -> Self {
        Self {
            kernel: true,
            ..Self::new(Vec::new(), Vec::new())
        }
    }

    /// True if the segment is the kernel's.
    pub(super) const fn is_kernel(&self) -> bool {
        self.kernel
    }

    pub(super) fn hosts(&self) -> &[SegmentHost] {
        &self.hosts
    }

    /// Where a frame is lost for which a cable has no room.
    fn place(&self) -> Cause {
        match self.ports.iter().any(|port| port.config.name.is_empty()) {
            true => Cause::Segment,
            false => Cause::EthernetPort,
        }
    }

    /// The port of a station.
    fn port_of(&self, host: usize) -> usize {
        let mut ports = self.ports.iter();
        let found = ports.position(|port| port.config.stations.contains(&host));
        found.unwrap_or(0)
    }

    /// Puts a frame on the cable of a port; returns the frame if too many frames wait.
    fn send(&mut self, port: usize, from: From, frame: Vec<u8>, now: Instant) -> Option<Vec<u8>> {
        let octets = frame.len() as u64;
        let full = self.ports[port].send(from, frame, now);
        match &full {
            Some(_) => self.counters.dropped += 1,
            None => {
                self.counters.frames += 1;
                self.counters.octets += octets;
            }
        }
        full
    }

    /// The Ethernet ports to which the bridge forwards a frame: that of its destination, or all but where it `came` from.
    fn ways(&mut self, frame: &[u8], came: Came, now: Instant) -> Vec<usize> {
        let to = address(frame, 0);
        let way = to.map_or(Way::All, |to| self.learned.way(to, now));
        let single = to.is_some_and(|to| !to.is_group());
        self.counters.flooded += u64::from(way == Way::All && single);
        self.counters.filtered += u64::from(way == Way::Elan && came == Came::Elan);
        let all = 0..self.ports.len();
        all.filter(|port| Came::Port(*port) != came)
            .filter(|port| way == Way::All || way == Way::Port(*port))
            .collect()
    }

    /// The frame that ends next: its port and direction.
    fn due(&self) -> Option<(Instant, usize, usize)> {
        let ports = self.ports.iter().enumerate();
        let ends = ports.filter_map(|(n, port)| {
            let (end, lane) = port.next()?;
            Some((end, n, lane))
        });
        ends.min()
    }

    /// Frames that wait for a cable, or are on a cable.
    pub(super) fn held(&self) -> impl Iterator<Item = &[u8]> {
        let lanes = self.ports.iter().flat_map(|port| &port.lanes);
        lanes.flat_map(|lane| lane.frames.iter().map(|(_, _, frame)| frame.as_slice()))
    }

    /// Learns the source address of a frame that came from a port; true if the address is new on this side.
    fn learn(&mut self, port: usize, frame: &[u8], now: Instant) -> bool {
        let Some(source) = address(frame, 6).filter(|mac| !mac.is_group()) else {
            return false;
        };
        let heard = self.learned.hear_port(source, port, now);
        self.counters.not_learned += u64::from(heard == Heard::Full);
        heard == Heard::New
    }

    /// Learns the source address of a frame that came from the ELAN.
    fn learn_from_elan(&mut self, frame: &[u8], now: Instant) {
        if let Some(source) = address(frame, 6).filter(|mac| !mac.is_group()) {
            let heard = self.learned.hear_elan(source, now);
            self.counters.elan_not_learned += u64::from(heard == Heard::Full);
        }
    }

    /// Forgets what the bridge has learned from the ELAN, which the LANE client has left.
    pub(super) fn forget_elan(&mut self) {
        self.learned.forget_elan();
    }

    /// True if the destination of a frame on the segment is the bridging host (`own`) or another station here.
    fn stays(&self, frame: &[u8], own: MacAddr) -> bool {
        address(frame, 0).is_some_and(|to| {
            let mut here = self.hosts.iter();
            to == own
                || self.learned.is_near(to)
                || here.any(|host| MacAddr(host.stack.config().mac) == to)
        })
    }

    /// Forgets an address; true if the address was on this side until now.
    fn forget(&mut self, mac: Option<MacAddr>) -> bool {
        mac.is_some_and(|mac| self.learned.forget(mac))
    }

    fn next(&self) -> Option<Instant> {
        let frame = self.due().map(|(end, ..)| end);
        let aged = self.learned.deadline();
        let hosts = self.hosts.iter();
        let hosts = hosts.filter_map(|host| host.stack.poll_timeout()).min();
        [frame, aged, hosts].into_iter().flatten().min()
    }

    /// The tables of `inspect`.
    pub(super) fn tables(&self, now: Instant) -> Vec<Table> {
        let hosts = self.hosts.iter().map(|host| {
            let config = host.stack.config();
            SegmentHostRow {
                name: host.name.clone(),
                mac: MacAddr(config.mac),
                ip: config.address,
            }
        });
        let learned = self.learned.near().map(|(mac, heard, port)| Learned {
            mac,
            heard_s: now.since(heard).as_secs(),
            port: self.ports[port].config.name.clone(),
        });
        let far = self.learned.far(now).map(|(mac, heard)| HeardFromElan {
            mac,
            heard_s: now.since(heard).as_secs(),
        });
        let ports = self.ports.iter().enumerate();
        let ports = ports.filter(|(_, port)| !port.config.name.is_empty());
        let ports: Vec<PortRow> = ports
            .map(|(n, port)| {
                let near = self.learned.near().filter(|(.., at)| *at == n);
                port.row(near.count())
            })
            .collect();
        let mut tables = vec![Table::of(hosts), Table::of(learned), Table::of(far)];
        if !ports.is_empty() {
            tables.push(Table::of(ports));
        }
        tables.push(Table::counters(&counters::SEGMENT, self.counters.rows()));
        tables
    }
}

fn address(frame: &[u8], at: usize) -> Option<MacAddr> {
    let octets = frame.get(at..at + 6)?;
    octets.try_into().ok().map(MacAddr)
}

/// An output of a host on the segment.
enum Moved {
    Frame(Vec<u8>),
    Offered(AppId, Offer),
    Finished(AppId, AppResult),
    Discarded(Cause, Vec<u8>),
    Trace(Trace),
}

impl Host {
    /// Attaches an Ethernet segment to the first interface, whose LANE client must be a proxy.
    pub fn bridge_to(&mut self, segment: Segment) {
        self.segment = Some(segment);
    }

    pub(super) fn segment_deadline(&self) -> Option<Instant> {
        self.segment.as_ref().and_then(Segment::next)
    }

    /// Passes a command to a program of a host on the segment.
    pub(super) fn segment_app(
        &mut self,
        host: usize,
        command: AppCommand,
        now: Instant,
    ) -> Result<(), Refused> {
        let segment = self.segment.as_mut();
        let host = segment.and_then(|segment| segment.hosts.get_mut(host));
        let host = host.ok_or(Refused("there is no such host on the segment"))?;
        host.stack.handle_input(StackInput::App(command), now)?;
        self.touch(Part::Segment);
        Ok(())
    }

    /// Handles everything that is due on the segment.
    pub(super) fn segment_timeout(&mut self, now: Instant) {
        let Some(segment) = &mut self.segment else {
            return;
        };
        for host in &mut segment.hosts {
            if host.stack.poll_timeout().is_some_and(|at| at <= now) {
                host.stack.handle_timeout(now);
            }
        }
        if segment.learned.age(now) {
            self.tell_proxy(now);
        }
        self.touch(Part::Segment);
    }

    /// Handles outputs of the segment until there are no more.
    pub(super) fn drain_segment(&mut self, now: Instant) {
        while let Some(segment) = &mut self.segment {
            if let Some((end, port, lane)) = segment.due()
                && end <= now
                && let Some((_, from, frame)) = segment.ports[port].lanes[lane].frames.pop_front()
            {
                self.hear(port, from, frame, now);
                continue;
            }
            let mut hosts = segment.hosts.iter_mut().enumerate();
            let moved = hosts.find_map(|(n, host)| {
                Some(match host.stack.poll_output()? {
                    StackOutput::Frame(frame) => (n, Moved::Frame(frame)),
                    StackOutput::Offered(app, offer) => (n, Moved::Offered(app, offer)),
                    StackOutput::Finished(app, result) => (n, Moved::Finished(app, result)),
                    StackOutput::Discarded { place, frame } => {
                        (n, Moved::Discarded(cause_of(place), frame))
                    }
                    StackOutput::Trace(trace) => (n, Moved::Trace(trace)),
                })
            });
            match moved {
                Some((n, Moved::Frame(frame))) => {
                    let sample = segment.hosts[n].meter.sent(&frame, Path::Lane, now);
                    let port = segment.port_of(n);
                    let full = segment.send(port, From::Host(n, sample), frame, now);
                    // The packet leaves its host, and is lost on the way.
                    let sample = sample.filter(|_| full.is_some());
                    self.out.extend(sample.map(HostOutput::Sample));
                    self.no_room(full);
                }
                Some((n, Moved::Offered(app, offer))) => {
                    let sample = segment.hosts[n].meter.offered(app, &offer, now);
                    self.out.extend(sample.map(HostOutput::Sample));
                }
                Some((_, Moved::Finished(app, result))) => {
                    self.out.push_back(HostOutput::Finished(app, result));
                }
                Some((n, Moved::Discarded(cause, frame))) => {
                    // The stack offered this packet and then dropped it, so the sample ends as a loss.
                    let sample = segment.hosts[n].meter.sent(&frame, Path::Lane, now);
                    self.out.extend(sample.map(HostOutput::Sample));
                    self.lost(cause, &frame[..]);
                }
                Some((_, Moved::Trace(trace))) => self.trace(trace),
                None => break,
            }
        }
    }

    /// Reports the loss of a station's frame for which the cable had no room.
    fn no_room(&mut self, frame: Option<Vec<u8>>) {
        let place = self.segment.as_ref().map(Segment::place);
        if let (Some(frame), Some(place)) = (frame, place) {
            self.lost(place, &frame[..]);
        }
    }

    /// A frame has passed the cable of a port: all stations there but the sender receive it.
    fn hear(&mut self, port: usize, from: From, frame: Vec<u8>, now: Instant) {
        let Some(segment) = &mut self.segment else {
            return;
        };
        let from = match from {
            // The frame stays on the segment, so its path is known. The sample of its sender must come before that of
            // the receiver.
            From::Host(sender, Some(sample))
                if self
                    .interfaces
                    .first()
                    .is_some_and(|itf| segment.stays(&frame, itf.mac)) =>
            {
                let sample = Sample {
                    path: Path::Lane,
                    ..sample
                };
                self.out.push_back(HostOutput::Sample(sample));
                From::Host(sender, None)
            }
            from => from,
        };
        let stations = &segment.ports[port].config.stations;
        for (n, host) in segment.hosts.iter_mut().enumerate() {
            if matches!(from, From::Host(sender, _) if sender == n) || !stations.contains(&n) {
                continue;
            }
            let to = address(&frame, 0);
            let own = MacAddr(host.stack.config().mac);
            if !to.is_some_and(|to| to == own || to.is_group()) {
                continue;
            }
            let path = match from {
                From::Bridge(path) => path,
                From::Host(..) => Path::Lane,
            };
            if let Some(sample) = host.meter.received(&frame, path, now) {
                Self::arrived(&mut self.out, sample, &frame, Some(&host.stack));
            }
            if let Err(refused) = host.stack.handle_input(StackInput::Frame(&frame), now) {
                let trace = Trace::detail("host.refused", format!("segment: {refused}"));
                self.out.push_back(HostOutput::Trace(trace));
            }
        }
        if let From::Host(_, sample) = from {
            let new = segment.learn(port, &frame, now);
            if new {
                self.station_came(&frame, now);
            }
            let own = self.interfaces.first().map(|interface| interface.mac);
            if address(&frame, 0) != own {
                self.forward_to_ports(Came::Port(port), Path::Lane, &frame, now);
            }
            self.bridge_out(frame, sample, now);
        }
    }

    /// Forwards a frame to the ports where its destination may be, but not back to where it `came` from. A
    /// frame for which a port has no room is lost there.
    fn forward_to_ports(&mut self, came: Came, path: Path, frame: &[u8], now: Instant) {
        let Some(segment) = &mut self.segment else {
            return;
        };
        let mut full = Vec::new();
        for port in segment.ways(frame, came, now) {
            let from = From::Bridge(path);
            full.extend(segment.send(port, from, frame.to_vec(), now));
        }
        let place = segment.place();
        // If a copy passes another port, the books do not count the packet as lost.
        for frame in full {
            self.lost(place, &frame[..]);
        }
        self.touch(Part::Segment);
    }

    /// Handles a frame from the segment at the bridge: for the host itself, for the ELAN, or for neither.
    fn bridge_out(&mut self, frame: Vec<u8>, sample: Option<Sample>, now: Instant) {
        let (Some(to), Some(own)) = (address(&frame, 0), self.interfaces.first().map(|i| i.mac))
        else {
            return;
        };
        let near = (self.segment.as_ref()).is_some_and(|segment| segment.learned.is_near(to));
        if to == own || to.is_group() {
            let copy = frame.clone();
            if let Some(sample) = self.meter.received(&copy, Path::Lane, now) {
                Self::arrived(&mut self.out, sample, &copy, self.ip.stack());
            }
            self.pass_up(0, copy, now);
            self.touch(Part::Ip);
        }
        let before = self.out.len();
        let path = if to == own || near {
            Path::Lane
        } else {
            self.transmit(0, frame, now)
        };
        self.tell_sent(before, sample, path);
    }

    /// Sends a frame of a host that bridges on its first interface: to the segment, to the ELAN, or to both.
    pub(super) fn send_at_bridge(&mut self, frame: Vec<u8>, now: Instant) {
        let to = address(&frame, 0);
        if self.segment.as_ref().is_some_and(|s| s.kernel) {
            return self.send_bridged(frame, now);
        }
        if let (Some(segment), Some(to)) = (&mut self.segment, to) {
            let near = segment.learned.is_near(to);
            self.forward_to_ports(Came::Own, Path::Lane, &frame, now);
            if near {
                if let Some(sample) = self.meter.sent(&frame, Path::Lane, now) {
                    self.out.push_back(HostOutput::Sample(sample));
                }
                return;
            }
        }
        self.transmit(0, frame, now);
    }

    /// Handles a frame from the port that a kernel's bridge has on the ELAN: of the kernel itself, or of a station.
    fn send_bridged(&mut self, frame: Vec<u8>, now: Instant) {
        self.learn_bridged(&frame, (1, frame.len()), now);
        self.transmit(0, frame, now);
    }

    /// Learns from frames that the kernel's bridge sends to the ELAN; they have the addresses of `frame`.
    pub(super) fn learn_bridged(
        &mut self,
        frame: &[u8],
        (frames, octets): (u16, usize),
        now: Instant,
    ) {
        let (source, to) = (address(frame, 6), address(frame, 0));
        let own = self.interfaces.first().map(|interface| interface.mac);
        if let Some(segment) = self.segment.as_mut().filter(|_| source != own) {
            segment.counters.frames += u64::from(frames);
            segment.counters.octets += octets as u64;
            if segment.learn(0, frame, now) {
                self.station_came(frame, now);
            }
        }
        // The kernel's bridge would not send the frame here if it still knew the destination on another port.
        self.station_left(to, now);
    }

    /// The source of a frame from the ELAN is not on the segment any more. The bridge learns where it is; a kernel's
    /// bridge does so itself.
    pub(super) fn source_left(&mut self, frame: &[u8], now: Instant) {
        self.station_left(address(frame, 6), now);
        if let Some(segment) = self.segment.as_mut().filter(|segment| !segment.kernel) {
            segment.learn_from_elan(frame, now);
        }
    }

    fn station_came(&mut self, frame: &[u8], now: Instant) {
        if let Some(mac) = address(frame, 6) {
            let text = format!("{mac} is on the segment");
            self.trace(Trace::detail("bridge.learned", text).with("mac", mac));
        }
        self.tell_proxy(now);
    }

    /// Records that an address is not on the segment any more, if it was before.
    pub(super) fn station_left(&mut self, mac: Option<MacAddr>, now: Instant) {
        let left = self.segment.as_mut().is_some_and(|s| s.forget(mac));
        if let Some(mac) = mac.filter(|_| left) {
            let text = format!("{mac} is not on the segment any more");
            self.trace(Trace::detail("bridge.left", text).with("mac", mac));
            self.tell_mpc(mpc::Input::StationLeft { itf: 0, mac }, now);
            self.tell_proxy(now);
        }
    }

    /// Handles a frame from the ELAN or from a shortcut. False if the frame is not for the host itself.
    pub(super) fn bridge_in(&mut self, itf: usize, frame: &[u8], path: Path, now: Instant) -> bool {
        let own = self.interfaces.get(itf).map(|interface| interface.mac);
        let to = address(frame, 0);
        if itf == 0 && path == Path::Lane {
            self.source_left(frame, now);
        }
        let (0, Some(segment)) = (itf, &self.segment) else {
            return true;
        };
        if to == own || segment.kernel {
            return true;
        }
        self.forward_to_ports(Came::Elan, path, frame, now);
        to.is_some_and(|to| to.is_group())
    }

    /// Tells the LANE client the addresses of the segment, for which it is a proxy.
    pub(super) fn tell_proxy(&mut self, now: Instant) {
        if let (Some(segment), Some(lec)) = (&self.segment, self.lec_of(0)) {
            let all: Vec<MacAddr> = segment.learned.near().map(|(mac, ..)| mac).collect();
            self.tell(lec, lec::Input::SetRemote(all), now);
        }
    }
}

#[cfg(test)]
mod tests;
