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
//! A bridge can have VLANs (`segment/vlans.rs`), each with the ELAN or the bridged line of an interface of its own. The
//! host itself is in the VLAN of its first interface. A line is to the bridge what an ELAN is, and needs no proxy.
//! Further bridged lines are ports ([`LinePort`]): the bridge learns their stations as those of a cable, and the LANE
//! client of the VLAN is their proxy.
//!
//! **Standards.** IEEE 802.3 frame times; 802.1D learning and ageing; 802.1Q VLANs; LANE v2 §2.1.3 (proxy). **Not
//! implemented** for embedded segments: spanning tree. A kernel's bridge has no VLANs. BPDUs of a kernel's bridge cross
//! the ELAN as frames for a group; `segment/topology.rs` reads those that it sends.

mod bridging;
mod port;
mod topology;
mod vlans;

pub use port::{Cable, EthernetPort, WAITING};
pub use vlans::PortVlans;

use crate::host::interfaces::filtering::{FilteringDatabase, Heard, Way};
use crate::inspect::host::{
    BridgeVlan, EthernetPort as PortRow, HeardFromElan, Learned, SegmentHost as SegmentHostRow,
    interface,
};
use crate::inspect::{Table, counters};
use crate::ip::books::{Cause, VlanRefusal};
use crate::ip::meter::Meter;
use crate::ip::stack::Stack;
use aerostat_proto::{Instant, Machine};
use aerostat_wire::MacAddr;
use aerostat_wire::vlan::Tag;
use port::{From, Port};
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

/// A bridged ATM line as a port of the bridge; its frames have no tags.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinePort {
    /// Name of the line.
    pub name: String,
    /// Number of the interface on the line.
    pub interface: usize,
    /// Number of its VLAN: that of the interface of the VLAN's LANE client; 0 without VLANs.
    pub vlan: usize,
}

/// Where the bridge has a frame from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Came {
    /// An Ethernet port or a line.
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
    /// Further ports, numbered behind the cables.
    lines: Vec<LinePort>,
    /// True if the cables and the bridge are the kernel's: then no frame passes here.
    kernel: bool,
    vlans: Vlans,
    /// The topology of the kernel's bridge changes; without a further BPDU the change is over at this time.
    changing: Option<Instant>,
    /// When a change began or ended last.
    changed: Option<Instant>,
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
            lines: Vec::new(),
            kernel: false,
            vlans: Vlans::default(),
            changing: None,
            changed: None,
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

    /// Gives the bridge ATM lines as further ports.
    #[must_use]
    pub fn with_lines(self, lines: Vec<LinePort>) -> Self {
        Self { lines, ..self }
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

    /// The line of a port behind the cables.
    fn line(&self, port: usize) -> Option<&LinePort> {
        self.lines.get(port.checked_sub(self.ports.len())?)
    }

    /// The port of an interface on a line.
    fn port_of_line(&self, interface: usize) -> Option<usize> {
        let mut lines = self.lines.iter();
        let number = lines.position(|line| line.interface == interface)?;
        Some(self.ports.len() + number)
    }

    /// The name of a port; empty for the only cable of a segment.
    fn name_of(&self, port: usize) -> &str {
        match self.line(port) {
            Some(line) => &line.name,
            None => &self.ports[port].config.name,
        }
    }

    /// The ports to which the bridge forwards a frame of a VLAN: that of its destination, or all of the VLAN except the
    /// one where it `came` from.
    fn ways(&mut self, vlan: usize, frame: &[u8], came: Came, now: Instant) -> Vec<usize> {
        let Some(own) = self.vlans.get(vlan) else {
            return Vec::new();
        };
        let to = address(frame, 0);
        let way = to.map_or(Way::All, |to| own.learned.way(to, now));
        let single = to.is_some_and(|to| !to.is_group());
        self.counters.flooded += u64::from(way == Way::All && single);
        self.counters.filtered += u64::from(way == Way::Elan && came == Came::Elan);
        let carries = |port: &Port| own.vid.is_none_or(|vid| port.config.vlans.carries(vid));
        let cables = self.ports.iter().map(carries);
        let lines = self.lines.iter().map(|line| line.vlan == vlan);
        let ports = cables.chain(lines).enumerate();
        let ports = ports.filter_map(|(port, carries)| carries.then_some(port));
        ports
            .filter(|port| Came::Port(*port) != came)
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
            near.map(|one| Learned {
                mac: one.mac,
                heard_s: now.since(one.heard).as_secs(),
                port: self.name_of(one.port).to_owned(),
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
                port.row(near.filter(|one| one.port == n).count())
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
            ports.map(|port| port.name.as_str()).collect::<Vec<_>>()
        };
        let lines = self.lines.iter().filter(|line| line.vlan == number);
        let lines = lines.map(|line| line.name.as_str());
        let untagged = ports(&|vlans| vlans.untagged == Some(vid)).into_iter();
        Some(BridgeVlan {
            vlan: vid,
            interface: interface(number),
            untagged: untagged.chain(lines).collect::<Vec<_>>().join(" "),
            tagged: ports(&|vlans| vlans.tagged.contains(&vid)).join(" "),
            addresses: vlan.learned.near().count() as u64,
            elan_addresses: vlan.learned.far(now).count() as u64,
        })
    }
}

fn address(frame: &[u8], at: usize) -> Option<MacAddr> {
    let octets = frame.get(at..at + 6)?;
    octets.try_into().ok().map(MacAddr)
}

#[cfg(test)]
mod tests;
