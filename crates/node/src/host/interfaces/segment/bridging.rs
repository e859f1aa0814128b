//! The bridge between an Ethernet segment and an ELAN: frames of the segment, of its stations and of the ELAN.

use super::port::From;
use super::topology::Topology;
use super::{Came, OWN, Segment, address};
use crate::host::interfaces::filtering::{Heard, NEAR};
use crate::host::interfaces::ip::cause_of;
use crate::host::{Host, HostEvent, HostOutput, Part, Sample};
use crate::ip::apps::{AppCommand, AppId, AppResult, Offer};
use crate::ip::books::Cause;
use crate::ip::meter::Path;
use crate::ip::stack::{ConnectionId, StackInput, StackOutput};
use aerostat_proto::Machine as _;
use aerostat_proto::discard::Discard;
use aerostat_proto::lane::lec;
use aerostat_proto::mpoa::mpc;
use aerostat_proto::{Instant, Refused, Trace};
use aerostat_wire::vlan::Tag;
use aerostat_wire::{MacAddr, vlan};

/// An output of a host on the segment.
pub(super) enum Moved {
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
    pub(super) fn hear(&mut self, port: usize, from: From, frame: Vec<u8>, now: Instant) {
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
        // A copy that a flood sends into a line that is down is no loss of a packet.
        let known = address(frame, 0).is_some_and(|to| segment.is_near(vlan.0, to));
        for port in segment.ways(vlan.0, frame, came, now) {
            let Some(segment) = &mut self.segment else {
                return;
            };
            if let Some(interface) = segment.line(port).map(|line| line.interface) {
                self.forward_on_line(interface, frame, known, now);
                continue;
            }
            let dressed = segment.dressed(port, vlan, frame);
            let lost = segment.send(port, From::Bridge(path), dressed, now);
            full += usize::from(lost.is_some());
        }
        let Some(place) = self.segment.as_ref().map(Segment::place) else {
            return;
        };
        // If a copy passes another port, the books do not count the packet as lost.
        for _ in 0..full {
            self.lost(place, frame);
        }
        self.touch(Part::Segment);
    }

    /// Forwards a frame on a line that is a port; `known`: its destination is there.
    fn forward_on_line(&mut self, itf: usize, frame: &[u8], known: bool, now: Instant) {
        let Some(interface) = self.interfaces.get_mut(itf) else {
            return;
        };
        if interface.up {
            self.count_sent(itf, Path::Lane, 1);
            return self.send_on_lane(itf, frame.to_vec(), now);
        }
        interface.counters.down += 1;
        if known {
            self.lost(Cause::Service(Discard::NotJoined), frame);
        }
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
                    "{NEAR} stations are known here, which is the limit: the LANE client does not answer for {mac}"
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

    /// Handles a frame from the ELAN, from a shortcut or from a line that is a port. False if the frame is not for the
    /// host itself.
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
        if let Some(port) = segment.port_of_line(itf)
            && let Some(line) = segment.line(port)
        {
            let entered = (port, (line.vlan, Tag::default()));
            self.hear_at_bridge(entered, None, frame.to_vec(), now);
            return false;
        }
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
            let all: Vec<MacAddr> = vlan.learned.near().map(|one| one.mac).collect();
            self.tell(lec, lec::Input::SetRemote(all), now);
        }
    }
}
