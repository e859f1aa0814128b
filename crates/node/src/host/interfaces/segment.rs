//! An Ethernet segment, with embedded hosts, behind a host that bridges between the segment and its ELAN.
//!
//! The segment is one cable, or one cable for each *port* of the bridge. A frame occupies the cable for its
//! transmission time while other frames wait; all stations on the cable receive the frame. There are no collisions, and
//! the number of waiting frames is limited. A cable with one station may be full duplex: its two directions do not wait
//! for each other. The bridge learns addresses from the frames of the segment and of the ELAN (`filtering.rs`). It
//! forwards a frame to the port of its destination, or to all others if the destination is a group or unknown; the ELAN
//! is such a port, too. The bridge tells the addresses of the segment to its LANE client, which answers for them as a
//! proxy (LE_ARP for unregistered destinations, LE_NARP for a station that has moved). From the ELAN, and from
//! shortcuts, the bridge forwards frames that are for the segment or whose destination is unknown. A station that sends
//! from the ELAN, or that another proxy claims, is no longer on the segment.
//!
//! Behind a Linux kernel host the segment is the kernel's ([`Segment::kernel`]): the kernel's bridge has the interface
//! `lecN` as one of its ports and does the switching. This module then only learns the addresses, from the frames that
//! the kernel sends out of that port.
//!
//! A bridge can have VLANs (`segment/vlans.rs`), each with the LANE client and the ELAN of an interface of its own. The
//! host itself is in the VLAN of its first interface.
//!
//! **Standards.** IEEE 802.3 frame times; 802.1D learning and ageing; 802.1Q VLANs; LANE v2 §2.1.3 (proxy). **Not
//! implemented** for embedded segments: spanning tree. A kernel's bridge has no VLANs. BPDUs of a kernel's bridge cross
//! the ELAN as frames for a group; `segment/topology.rs` reads those that it sends.

mod port;
mod topology;
mod vlans;

pub use port::{Cable, EthernetPort, WAITING};
pub use vlans::PortVlans;

use crate::host::interfaces::filtering::{FilteringDatabase, Heard, NEAR, Way};
use crate::host::interfaces::ip::cause_of;
use crate::host::{Host, HostEvent, HostOutput, Part, Sample};
use crate::inspect::host::{
    BridgeVlan, EthernetPort as PortRow, HeardFromElan, Learned, SegmentHost as SegmentHostRow,
    interface,
};
use crate::inspect::{Table, counters};
use crate::ip::apps::{AppCommand, AppId, AppResult, Offer};
use crate::ip::books::{Cause, VlanRefusal};
use crate::ip::meter::{Meter, Path};
use crate::ip::stack::{ConnectionId, Stack, StackInput, StackOutput};
use aerostat_proto::lane::lec;
use aerostat_proto::mpoa::mpc;
use aerostat_proto::{Instant, Machine, Refused, Trace};
use aerostat_wire::MacAddr;
use aerostat_wire::vlan::{self, Tag};
use port::{From, Port};
use topology::Topology;
use vlans::Vlans;

/// The interface with the IP side of the host, in the first VLAN.
const OWN: usize = 0;

/// An embedded host on the segment.
pub struct SegmentHost {
    /// Its name.
    pub name: String,
    /// Its stack, which also has its addresses.
    pub stack: Box<Stack>,
    /// The measurements on this host.
    pub meter: Meter,
    /// The VID of its interface, if that is on a VLAN of a trunk: the host sends and takes frames with this tag only.
    pub vid: Option<u16>,
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
        /// Frames with the tag of a VLAN that is not one of the port.
        vlan_not_allowed: u64,
        /// Frames with the tag of a VLAN at an access port.
        vlan_tag_at_access: u64,
        /// Frames without a tag at a trunk that has no native VLAN.
        vlan_no_tag: u64,
        /// Frames with a cut tag or a reserved VID.
        vlan_bad_tag: u64,
    }
}

/// The segment.
pub struct Segment {
    hosts: Vec<SegmentHost>,
    /// Its cables: at least one.
    ports: Vec<Port>,
    /// True if the cables and the bridge are the kernel's: then no frame passes here.
    kernel: bool,
    vlans: Vlans,
    /// The topology of the kernel's bridge changes; without a further BPDU the change is over at this time.
    changing: Option<Instant>,
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
            vlans: Vlans::default(),
            changing: None,
            counters: SegmentCounters::default(),
        }
    }

    /// Gives the bridge VLANs: entry N is that of interface N. Without any, the bridge reads no tags.
    #[must_use]
    pub fn with_vlans(self, vids: &[u16]) -> Self {
        Self {
            vlans: Vlans::new(vids),
            ..self
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
    pub(in crate::host) const fn is_kernel(&self) -> bool {
        self.kernel
    }

    pub(in crate::host) fn hosts(&self) -> &[SegmentHost] {
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

    /// The VLAN of a frame that a port has received. The frame loses its tag, of which the priority is returned.
    fn enter(&mut self, port: usize, frame: &mut Vec<u8>) -> Result<(usize, Tag), VlanRefusal> {
        let entered = self.vlans.of_frame(&self.ports[port].config.vlans, frame);
        let counters = &mut self.counters;
        if let Err(refusal) = entered {
            *match refusal {
                VlanRefusal::NotAllowed => &mut counters.vlan_not_allowed,
                VlanRefusal::TagAtAccess => &mut counters.vlan_tag_at_access,
                VlanRefusal::NoTag => &mut counters.vlan_no_tag,
                VlanRefusal::BadTag => &mut counters.vlan_bad_tag,
            } += 1;
        }
        entered
    }

    /// The Ethernet ports to which the bridge forwards a frame of a VLAN: that of its destination, or all of the VLAN
    /// except the one where it `came` from.
    fn ways(&mut self, vlan: usize, frame: &[u8], came: Came, now: Instant) -> Vec<usize> {
        let Some(own) = self.vlans.get(vlan) else {
            return Vec::new();
        };
        let to = address(frame, 0);
        let way = to.map_or(Way::All, |to| own.learned.way(to, now));
        let single = to.is_some_and(|to| !to.is_group());
        self.counters.flooded += u64::from(way == Way::All && single);
        self.counters.filtered += u64::from(way == Way::Elan && came == Came::Elan);
        let ports = self.ports.iter().enumerate();
        let carries = |port: &Port| own.vid.is_none_or(|vid| port.config.vlans.carries(vid));
        let ports = ports.filter(|(n, port)| Came::Port(*n) != came && carries(port));
        ports
            .map(|(n, _)| n)
            .filter(|port| way == Way::All || way == Way::Port(*port))
            .collect()
    }

    /// The frame as it leaves a port.
    fn dressed(&self, port: usize, (vlan, tag): (usize, Tag), frame: &[u8]) -> Vec<u8> {
        let mut frame = frame.to_vec();
        if let Some(vid) = self.vlans.get(vlan).and_then(|vlan| vlan.vid) {
            self.ports[port].config.vlans.dress(vid, tag, &mut frame);
        }
        frame
    }

    /// True if a station of a VLAN was heard on a port.
    fn is_near(&self, vlan: usize, mac: MacAddr) -> bool {
        (self.vlans.get(vlan)).is_some_and(|vlan| vlan.learned.is_near(mac))
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
    pub(in crate::host) fn held(&self) -> impl Iterator<Item = &[u8]> {
        let lanes = self.ports.iter().flat_map(|port| &port.lanes);
        lanes.flat_map(|lane| lane.frames.iter().map(|(_, _, frame)| frame.as_slice()))
    }

    /// Learns the source address of a frame that came from a port.
    fn learn(&mut self, vlan: usize, port: usize, frame: &[u8], now: Instant) -> Heard {
        let source = address(frame, 6).filter(|mac| !mac.is_group());
        let Some((source, vlan)) = source.zip(self.vlans.get_mut(vlan)) else {
            return Heard::Known;
        };
        let heard = vlan.learned.hear_port(source, port, now);
        self.counters.not_learned += u64::from(heard == Heard::Full);
        heard
    }

    /// Learns the source address of a frame that came from the ELAN.
    fn learn_from_elan(&mut self, vlan: usize, frame: &[u8], now: Instant) {
        let source = address(frame, 6).filter(|mac| !mac.is_group());
        if let Some((source, vlan)) = source.zip(self.vlans.get_mut(vlan)) {
            let heard = vlan.learned.hear_elan(source, now);
            self.counters.elan_not_learned += u64::from(heard == Heard::Full);
        }
    }

    /// Forgets what the bridge has learned from the ELAN of a VLAN, which the LANE client has left.
    pub(in crate::host) fn forget_elan(&mut self, vlan: usize) {
        if let Some(vlan) = self.vlans.get_mut(vlan) {
            vlan.learned.forget_elan();
        }
    }

    /// True if the destination of a frame on the segment is the bridging host (`own`) or another station here.
    fn stays(&self, vlan: usize, frame: &[u8], own: MacAddr) -> bool {
        address(frame, 0).is_some_and(|to| {
            let mut here = self.hosts.iter();
            to == own
                || self.is_near(vlan, to)
                || here.any(|host| MacAddr(host.stack.config().mac) == to)
        })
    }

    /// Forgets an address; true if the address was on this side until now.
    fn forget(&mut self, vlan: usize, mac: Option<MacAddr>) -> bool {
        let vlan = self.vlans.get_mut(vlan);
        mac.zip(vlan)
            .is_some_and(|(mac, vlan)| vlan.learned.forget(mac))
    }

    fn next(&self) -> Option<Instant> {
        let frame = self.due().map(|(end, ..)| end);
        let vlans = self.vlans.iter();
        let aged = vlans.filter_map(|(_, vlan)| vlan.learned.deadline()).min();
        let hosts = self.hosts.iter();
        let hosts = hosts.filter_map(|host| host.stack.poll_timeout()).min();
        let parts = [frame, aged, hosts, self.changing];
        parts.into_iter().flatten().min()
    }

    /// The tables of `inspect`.
    pub(in crate::host) fn tables(&self, now: Instant) -> Vec<Table> {
        let hosts = self.hosts.iter().map(|host| {
            let config = host.stack.config();
            SegmentHostRow {
                name: host.name.clone(),
                mac: MacAddr(config.mac),
                ip: config.address,
            }
        });
        let learned = self.vlans.iter().flat_map(|(_, vlan)| {
            let near = vlan.learned.near();
            near.map(|(mac, heard, port)| Learned {
                mac,
                heard_s: now.since(heard).as_secs(),
                port: self.ports[port].config.name.clone(),
                vlan: vlan.vid,
            })
        });
        let far = self.vlans.iter().flat_map(|(_, vlan)| {
            let far = vlan.learned.far(now);
            far.map(|(mac, heard)| HeardFromElan {
                mac,
                heard_s: now.since(heard).as_secs(),
                vlan: vlan.vid,
            })
        });
        let ports = self.ports.iter().enumerate();
        let ports = ports.filter(|(_, port)| !port.config.name.is_empty());
        let ports: Vec<PortRow> = ports
            .map(|(n, port)| {
                let near = self.vlans.iter().flat_map(|(_, vlan)| vlan.learned.near());
                port.row(near.filter(|(.., at)| *at == n).count())
            })
            .collect();
        let vlans: Vec<BridgeVlan> = self
            .vlans
            .iter()
            .filter_map(|(n, vlan)| self.vlan_row(n, vlan, now))
            .collect();
        let mut tables = vec![Table::of(hosts), Table::of(learned), Table::of(far)];
        if !ports.is_empty() {
            tables.push(Table::of(ports));
        }
        if !vlans.is_empty() {
            tables.push(Table::of(vlans));
        }
        tables.push(Table::counters(&counters::SEGMENT, self.counters.rows()));
        tables
    }

    fn vlan_row(&self, number: usize, vlan: &vlans::Vlan, now: Instant) -> Option<BridgeVlan> {
        let vid = vlan.vid?;
        let ports = |wanted: &dyn Fn(&PortVlans) -> bool| {
            let ports = self.ports.iter().map(|port| &port.config);
            let ports = ports.filter(|port| wanted(&port.vlans));
            let names: Vec<&str> = ports.map(|port| port.name.as_str()).collect();
            names.join(" ")
        };
        Some(BridgeVlan {
            vlan: vid,
            interface: interface(number),
            untagged: ports(&|vlans| vlans.untagged == Some(vid)),
            tagged: ports(&|vlans| vlans.tagged.contains(&vid)),
            addresses: vlan.learned.near().count() as u64,
            elan_addresses: vlan.learned.far(now).count() as u64,
        })
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
    Call(ConnectionId),
    Trace(Trace),
}

impl Host {
    /// Attaches an Ethernet segment to the first interface, or to one interface for each of its VLANs. Their LANE
    /// clients must be proxies.
    pub fn bridge_to(&mut self, segment: Segment) {
        self.segment = Some(segment);
    }

    pub(in crate::host) fn segment_deadline(&self) -> Option<Instant> {
        self.segment.as_ref().and_then(Segment::next)
    }

    /// Passes a command to a program of a host on the segment.
    pub(in crate::host) fn segment_app(
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
    pub(in crate::host) fn segment_timeout(&mut self, now: Instant) {
        let Some(segment) = &mut self.segment else {
            return;
        };
        for host in &mut segment.hosts {
            if host.stack.poll_timeout().is_some_and(|at| at <= now) {
                host.stack.handle_timeout(now);
            }
        }
        let vlans = segment.vlans.iter_mut();
        let aged = vlans.filter_map(|(n, vlan)| vlan.learned.age(now).then_some(n));
        let aged: Vec<usize> = aged.collect();
        let over = segment.changing.is_some_and(|until| until <= now);
        if over {
            self.set_topology(None, now);
        }
        for itf in aged {
            self.tell_proxy(itf, now);
        }
        self.touch(Part::Segment);
    }

    /// Handles outputs of the segment until there are no more.
    pub(in crate::host) fn drain_segment(&mut self, now: Instant) {
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
                    StackOutput::Frame { bytes, .. } => (n, Moved::Frame(bytes)),
                    StackOutput::Offered(app, offer) => (n, Moved::Offered(app, offer)),
                    StackOutput::Finished(app, result) => (n, Moved::Finished(app, result)),
                    StackOutput::Discarded { place, frame } => {
                        (n, Moved::Discarded(cause_of(place), frame))
                    }
                    StackOutput::Call(on, _) => (n, Moved::Call(on)),
                    StackOutput::Trace(trace) => (n, Moved::Trace(trace)),
                })
            });
            match moved {
                Some((n, Moved::Frame(frame))) => {
                    let sample = segment.hosts[n].meter.sent(&frame, Path::Lane, now);
                    let port = segment.port_of(n);
                    let mut frame = frame;
                    if let Some(vid) = segment.hosts[n].vid {
                        let tag = Tag::default();
                        Tag { vid, ..tag }.insert(&mut frame);
                    }
                    let full = segment.send(port, From::Host(n, sample), frame, now);
                    // The packet leaves its host, and is lost on the way.
                    let sample = sample.filter(|_| full.is_some());
                    self.out.extend(sample.map(HostOutput::sampled));
                    self.no_room(full);
                }
                Some((n, Moved::Offered(app, offer))) => {
                    let sample = segment.hosts[n].meter.offered(app, &offer, now);
                    self.out.extend(sample.map(HostOutput::sampled));
                }
                Some((_, Moved::Finished(app, result))) => {
                    self.report(HostEvent::Finished(app, result));
                }
                Some((n, Moved::Discarded(cause, frame))) => {
                    // The stack offered this packet and then dropped it, so the sample ends as a loss.
                    let sample = segment.hosts[n].meter.sent(&frame, Path::Lane, now);
                    self.out.extend(sample.map(HostOutput::sampled));
                    self.lost(cause, &frame[..]);
                }
                Some((n, Moved::Call(on))) => {
                    // A station has no CPU that costs time.
                    let stack = &mut segment.hosts[n].stack;
                    let _ = stack.handle_input(StackInput::Called(on), now);
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

    /// A frame has passed the cable of a port: all stations there except the sender receive it, and the bridge does if
    /// the frame came from a station.
    fn hear(&mut self, port: usize, from: From, frame: Vec<u8>, now: Instant) {
        let Some(segment) = &mut self.segment else {
            return;
        };
        let From::Host(sender, sample) = from else {
            return self.hear_at_stations(port, from, &frame, now);
        };
        let mut bare = frame.clone();
        let entered = segment.enter(port, &mut bare);
        let own = entered.ok().and_then(|(vlan, _)| self.interfaces.get(vlan));
        let stays = match (&entered, own) {
            (Ok((vlan, _)), Some(own)) => segment.stays(*vlan, &bare, own.mac),
            _ => false,
        };
        // The path of a frame that stays on the segment, or that is lost here, is known. The sample of its sender must
        // come before that of the receiver.
        let known = sample.filter(|_| stays || entered.is_err());
        self.out.extend(known.map(|sample| {
            let path = Path::Lane;
            HostOutput::Event(HostEvent::Sample(Sample { path, ..sample }))
        }));
        let sample = sample.filter(|_| known.is_none());
        self.hear_at_stations(port, From::Host(sender, None), &frame, now);
        match entered {
            Ok(vlan) => self.hear_at_bridge((port, vlan), sample, bare, now),
            // On a cable that several share, the frame may have reached its station, and then the books do not count
            // the packet as lost.
            Err(refusal) => self.lost(Cause::Vlan(refusal), &frame[..]),
        }
    }

    /// The stations on the cable of a port receive a frame.
    fn hear_at_stations(&mut self, port: usize, from: From, frame: &[u8], now: Instant) {
        let Some(segment) = &mut self.segment else {
            return;
        };
        let tags = segment.vlans.iter().any(|(_, vlan)| vlan.vid.is_some());
        let stations = &segment.ports[port].config.stations;
        for (n, host) in segment.hosts.iter_mut().enumerate() {
            if matches!(from, From::Host(sender, _) if sender == n) || !stations.contains(&n) {
                continue;
            }
            let mut frame = frame.to_vec();
            // A station without VLANs takes frames without a tag, and those with a priority tag.
            if tags && vlan::remove(&mut frame).is_ok_and(|tag| tag.and_then(Tag::vlan) != host.vid)
            {
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
            if let Err(refused) = host.stack.handle_input(StackInput::of_first(&frame), now) {
                let trace = Trace::detail("host.refused", format!("segment: {refused}"));
                self.out
                    .push_back(HostOutput::Event(HostEvent::Trace(trace)));
            }
        }
    }

    /// The bridge receives a frame, without its tag, from a port: the frame teaches, and is forwarded within its VLAN.
    fn hear_at_bridge(
        &mut self,
        (port, (vlan, tag)): (usize, (usize, Tag)),
        sample: Option<Sample>,
        frame: Vec<u8>,
        now: Instant,
    ) {
        let segment = self.segment.as_mut();
        if let Some(heard) = segment.map(|segment| segment.learn(vlan, port, &frame, now)) {
            self.heard_station(vlan, heard, &frame, now);
        }
        let own = self.interfaces.get(vlan).map(|interface| interface.mac);
        if address(&frame, 0) != own {
            self.forward_to_ports((vlan, tag), Came::Port(port), Path::Lane, &frame, now);
        }
        self.bridge_out(vlan, frame, sample, now);
    }

    /// Forwards a frame of a VLAN to the ports where its destination may be, but not back to where it `came` from. A
    /// frame for which a port has no room is lost there.
    fn forward_to_ports(
        &mut self,
        vlan: (usize, Tag),
        came: Came,
        path: Path,
        frame: &[u8],
        now: Instant,
    ) {
        let Some(segment) = &mut self.segment else {
            return;
        };
        let mut full = 0;
        for port in segment.ways(vlan.0, frame, came, now) {
            let dressed = segment.dressed(port, vlan, frame);
            let lost = segment.send(port, From::Bridge(path), dressed, now);
            full += usize::from(lost.is_some());
        }
        let place = segment.place();
        // If a copy passes another port, the books do not count the packet as lost.
        for _ in 0..full {
            self.lost(place, frame);
        }
        self.touch(Part::Segment);
    }

    /// Handles a frame from the segment at the bridge: for the host itself, for the ELAN, or for neither.
    fn bridge_out(&mut self, itf: usize, frame: Vec<u8>, sample: Option<Sample>, now: Instant) {
        let own = self.interfaces.get(itf).map(|interface| interface.mac);
        let Some((to, own)) = address(&frame, 0).zip(own) else {
            return;
        };
        let near = (self.segment.as_ref()).is_some_and(|segment| segment.is_near(itf, to));
        if itf == OWN && (to == own || to.is_group()) {
            let copy = frame.clone();
            if let Some(sample) = self.meter.received(&copy, Path::Lane, now) {
                Self::arrived(&mut self.out, sample, &copy, self.ip.stack());
            }
            self.pass_up(OWN, copy, now);
            self.touch(Part::Ip);
        }
        let before = self.out.len();
        let path = if to == own || near {
            Path::Lane
        } else {
            self.transmit(itf, frame, now)
        };
        self.tell_sent(before, sample, path);
    }

    /// Sends a frame of a host that bridges on its first interface: to the segment, to the ELAN, or to both.
    pub(in crate::host) fn send_at_bridge(&mut self, frame: Vec<u8>, now: Instant) {
        let to = address(&frame, 0);
        if self.segment.as_ref().is_some_and(|s| s.kernel) {
            return self.send_bridged(frame, now);
        }
        if let (Some(segment), Some(to)) = (&mut self.segment, to) {
            let near = segment.is_near(OWN, to);
            // A packet is sent before a port has no room for it: the accounts know no loss of a packet that was not
            // sent.
            let sample = near.then(|| self.meter.sent(&frame, Path::Lane, now));
            self.out.extend(sample.flatten().map(HostOutput::sampled));
            let vlan = (OWN, Tag::default());
            self.forward_to_ports(vlan, Came::Own, Path::Lane, &frame, now);
            if near {
                return;
            }
        }
        self.transmit(OWN, frame, now);
    }

    /// Handles a frame from the port that a kernel's bridge has on the ELAN: of the kernel itself, or of a station.
    fn send_bridged(&mut self, frame: Vec<u8>, now: Instant) {
        if let Some(topology) = Topology::of(&frame) {
            self.set_topology(Some(topology).filter(|topology| topology.changes), now);
        }
        self.learn_bridged(&frame, (1, frame.len()), now);
        self.transmit(OWN, frame, now);
    }

    /// Learns from frames that the kernel's bridge sends to the ELAN; they have the addresses of `frame`.
    pub(in crate::host) fn learn_bridged(
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
            let heard = segment.learn(OWN, 0, frame, now);
            self.heard_station(OWN, heard, frame, now);
        }
        // The kernel's bridge would not send the frame here if it still knew the destination on another port.
        self.station_left(OWN, to, now);
    }

    /// The source of a frame from the ELAN is not on the segment any more. The bridge learns where it is; a kernel's
    /// bridge does so itself.
    pub(in crate::host) fn source_left(&mut self, itf: usize, frame: &[u8], now: Instant) {
        self.station_left(itf, address(frame, 6), now);
        if let Some(segment) = self.segment.as_mut().filter(|segment| !segment.kernel) {
            segment.learn_from_elan(itf, frame, now);
        }
    }

    /// A station on the segment was heard.
    fn heard_station(&mut self, itf: usize, heard: Heard, frame: &[u8], now: Instant) {
        let refused = self.segment.as_ref().map(|of| of.counters.not_learned);
        match (heard, address(frame, 6)) {
            (Heard::New, Some(mac)) => {
                let text = format!("{mac} is on the segment");
                self.trace(Trace::detail("bridge.learned", text).with("mac", mac));
                self.tell_proxy(itf, now);
            }
            (Heard::Full, Some(mac)) if refused == Some(1) => {
                let text = format!(
                    "{NEAR} stations are known here: the LANE client stands for no more, and {mac} is the first"
                );
                self.trace(Trace::milestone("bridge.full", text).with("mac", mac));
            }
            _ => {}
        }
    }

    /// Records that an address is not on the segment any more, if it was before.
    pub(in crate::host) fn station_left(&mut self, itf: usize, mac: Option<MacAddr>, now: Instant) {
        let left = self.segment.as_mut().is_some_and(|s| s.forget(itf, mac));
        if let Some(mac) = mac.filter(|_| left) {
            let text = format!("{mac} is not on the segment any more");
            self.trace(Trace::detail("bridge.left", text).with("mac", mac));
            self.tell_mpc(mpc::Input::StationLeft { itf, mac }, now);
            self.tell_proxy(itf, now);
        }
    }

    /// Handles a frame from the ELAN or from a shortcut. False if the frame is not for the host itself.
    pub(in crate::host) fn bridge_in(
        &mut self,
        itf: usize,
        frame: &[u8],
        path: Path,
        now: Instant,
    ) -> bool {
        let own = self.interfaces.get(itf).map(|interface| interface.mac);
        let to = address(frame, 0);
        let Some(segment) = self.segment.as_ref() else {
            return true;
        };
        let kernel = segment.kernel;
        if segment.vlans.get(itf).is_none() {
            return true;
        }
        if path == Path::Lane {
            self.source_left(itf, frame, now);
        }
        if kernel || to == own {
            return itf == OWN;
        }
        let vlan = (itf, Tag::default());
        self.forward_to_ports(vlan, Came::Elan, path, frame, now);
        itf == OWN && to.is_some_and(|to| to.is_group())
    }

    /// Tells the LANE client of an interface the addresses of the segment, for which it is a proxy.
    pub(in crate::host) fn tell_proxy(&mut self, itf: usize, now: Instant) {
        let vlan = self
            .segment
            .as_ref()
            .and_then(|segment| segment.vlans.get(itf));
        if let (Some(vlan), Some(lec)) = (vlan, self.lec_of(itf)) {
            let all: Vec<MacAddr> = vlan.learned.near().map(|(mac, ..)| mac).collect();
            self.tell(lec, lec::Input::SetRemote(all), now);
        }
    }
}

#[cfg(test)]
mod tests;
