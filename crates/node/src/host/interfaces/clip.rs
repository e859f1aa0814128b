//! An interface on a Classical IP subnet, for IP stacks that use Ethernet frames.
//!
//! Classical IP knows next hops by IP address, but an IP stack hands over frames. So each next hop gets a hardware
//! address that contains its IP address: `02:00` and the four octets. ARP requests of the stack are answered here at
//! once, and a frame to such an address tells which next hop the stack has chosen, even for a destination behind a
//! router. ATMARP happens below. The routing of the kernel, or of the embedded stack, is used unchanged.
//!
//! With an NHRP client on the host, packets for its router go to that client first: it sends them directly, or returns
//! them.

use crate::host::{Host, Path, Typed, Waits};
use crate::signalling;
use aerostat_proto::clip::{self, Clip, NextHops};
use aerostat_proto::discard::Discard;
use aerostat_proto::line;
use aerostat_proto::nhrp::client::{self, Nhc};
use aerostat_proto::{Instant, Machine};
use aerostat_wire::AtmAddress;
use aerostat_wire::ipv4::Ipv4View;
use std::net::Ipv4Addr;

/// First octets of the hardware address of a next hop.
const NEXT_HOP: [u8; 2] = [0x02, 0x00];
/// Source address of received frames; the stack does not look at it.
const ARRIVED: [u8; 6] = [0x02, 0x00, 0, 0, 0, 1];
pub(super) const ETHERNET: usize = 14;
pub(super) const ARP: [u8; 2] = [0x08, 0x06];
pub(super) const IPV4: [u8; 2] = [0x08, 0x00];

/// The next hop that the hardware address of an IPv4 frame contains; `None` for other frames.
pub(in crate::host) fn next_hop(frame: &[u8]) -> Option<Ipv4Addr> {
    let header: &[u8; ETHERNET] = frame.first_chunk()?;
    let is_packet = header[12..] == IPV4 && header[..2] == NEXT_HOP;
    is_packet.then(|| Ipv4Addr::new(header[2], header[3], header[4], header[5]))
}

impl Host {
    /// Next hops that the member of a Classical IP subnet on interface `itf` knows beforehand; `None` if none runs
    /// there.
    #[must_use]
    pub fn known_hops(&self, itf: usize) -> Option<&NextHops> {
        Some(&self.clip_of(itf)?.config().hops)
    }

    /// Gives an input to the member of a Classical IP subnet on interface `itf`, if one runs there.
    pub(in crate::host) fn tell_clip(&mut self, itf: usize, input: clip::Input<'_>, now: Instant) {
        if let Some(clip) = self.interfaces.get(itf).and_then(|itf| itf.client.clip()) {
            self.tell(clip, input, now);
        }
    }

    /// Services ask again at once what had no answer.
    pub(in crate::host) fn ask_again(&mut self, now: Instant) {
        self.tell_signalling(signalling::Input::CallAgain, now);
        for itf in 0..self.interfaces.len() {
            self.tell_clip(itf, clip::Input::AskAgain, now);
            self.tell_line(itf, line::Input::AskAgain, now);
        }
    }

    /// Sends a frame of the IP side to a next hop of a Classical IP subnet.
    pub(in crate::host) fn send_on_clip(
        &mut self,
        itf: usize,
        clip: Typed<Clip>,
        frame: &[u8],
        now: Instant,
    ) {
        let Some(([first, second, a, b, c, d], packet)) = self.packet_below(itf, frame, now) else {
            return;
        };
        // The subnet has no broadcast.
        if [first, second] != NEXT_HOP {
            return self.lost_by_service(Discard::Unreachable, frame);
        }
        if self.machine(clip).is_none() {
            return self.lost_by_service(Discard::Stopped, frame);
        }
        let (next_hop, packet) = (Ipv4Addr::new(a, b, c, d), packet.to_vec());
        self.tell(clip, clip::Input::Send { next_hop, packet }, now);
    }

    /// The hardware address that a frame of the IP side is for, and its IPv4 packet, on an interface whose lower layer
    /// carries no Ethernet. ARP requests are answered here, and other protocols end here.
    pub(super) fn packet_below<'a>(
        &mut self,
        itf: usize,
        frame: &'a [u8],
        now: Instant,
    ) -> Option<([u8; 6], &'a [u8])> {
        let (header, payload) = frame.split_first_chunk::<ETHERNET>()?;
        match [header[12], header[13]] {
            ARP => {
                if let Some(answer) = answer(payload) {
                    self.deliver(itf, answer, Path::Lane, now);
                }
            }
            IPV4 => return Some((*header.first_chunk()?, payload)),
            _ => self.lost_by_service(Discard::Unreachable, frame),
        }
        None
    }

    pub(in crate::host) fn clip_output(&mut self, slot: usize, output: clip::Output, now: Instant) {
        let Some(itf) = self.interface_of(slot) else {
            return;
        };
        match output {
            clip::Output::Atm(request) => self.request(slot, request, now),
            clip::Output::Trace(trace) => {
                self.note_attempt(Waits::Clip(itf), &trace);
                self.trace(trace);
            }
            clip::Output::Ready(ready) => {
                self.interfaces[itf].up = ready;
                if ready {
                    self.interfaces[itf].since = Some(now);
                }
                // A client without its server still reaches the members that it knows, so only a crash takes the link
                // down.
                if ready {
                    self.tell_link(itf, true, now);
                }
            }
            clip::Output::Resolved { token, answer } => {
                self.member_resolved(slot, token, answer, now);
            }
            clip::Output::Deliver { packet, from } => {
                let path = self.path_of(from, &packet, itf);
                self.deliver_packet(itf, &packet, path, now);
            }
        }
    }

    /// The Ethernet header of packets that arrived on interface `itf`, with room for one such packet.
    fn header_with_room(&self, itf: usize, packet: usize) -> Vec<u8> {
        let mut frame = Vec::with_capacity(ETHERNET + packet);
        frame.extend(self.interfaces[itf].mac.0);
        frame.extend(ARRIVED);
        frame.extend(IPV4);
        frame
    }
    /// The Ethernet header of packets that arrived on interface `itf`.
    pub(in crate::host) fn arrived_header(&self, itf: usize) -> Vec<u8> {
        self.header_with_room(itf, 0)
    }

    pub(super) fn deliver_packet(&mut self, itf: usize, packet: &[u8], path: Path, now: Instant) {
        let mut frame = self.header_with_room(itf, packet.len());
        frame.extend(packet);
        self.deliver(itf, frame, path, now);
    }

    /// The path of a received packet. A packet from another subnet that did not come from the router came over a
    /// shortcut.
    pub(in crate::host) fn path_of(
        &self,
        from: Option<AtmAddress>,
        packet: &[u8],
        itf: usize,
    ) -> Path {
        let client = self.nhc.and_then(|nhc| self.machine(nhc));
        let (Some(client), Some(clip)) = (client, self.clip_of(itf)) else {
            return Path::Lane;
        };
        let (server, config) = (client.config().server.1, clip.config());
        let mask = aerostat_proto::nhrp::cache::mask(config.prefix_len);
        let outside = Ipv4View::new(packet)
            .is_some_and(|ip| (u32::from(ip.source()) ^ u32::from(config.ip)) & mask != 0);
        match from {
            Some(from) if outside && !from.same_end_system(&server) => Path::Shortcut,
            _ => Path::Lane,
        }
    }

    /// The NHRP client for a frame: the frame must be for the client's router, on the client's interface.
    pub(in crate::host) fn client_for(&self, itf: usize, frame: &[u8]) -> Option<Typed<Nhc>> {
        let nhc = self.nhc?;
        let (client, clip) = (self.machine(nhc)?, self.clip_of(itf)?);
        let router = client.config().server.0.octets();
        let header = frame.first_chunk::<ETHERNET>()?;
        let for_router = header[..2] == NEXT_HOP && header[2..6] == router;
        let here = clip.config().ip == client.config().ip;
        (for_router && here && header[12..] == IPV4).then_some(nhc)
    }

    /// The member of a Classical IP subnet below an interface, if it runs.
    pub(in crate::host) fn clip_of(&self, itf: usize) -> Option<&Clip> {
        self.machine(self.interfaces.get(itf)?.client.clip()?)
    }

    /// Hands a frame for the router to the NHRP client; the packet leaves directly if there is a shortcut.
    pub(in crate::host) fn transmit_by_nhrp(
        &mut self,
        itf: usize,
        nhc: Typed<Nhc>,
        frame: &[u8],
        now: Instant,
    ) -> Path {
        let packet = frame.get(ETHERNET..).unwrap_or_default().to_vec();
        let Some(destination) = Ipv4View::new(&packet).map(|ip| ip.destination()) else {
            return Path::Lane;
        };
        // The client decides about the path, so the sample is taken before.
        let sample = self.meter.sent(frame, Path::Lane, now);
        self.drain_slot(nhc.slot(), now);
        let before = self.out.len();
        let send = client::Input::Send {
            destination,
            packet,
        };
        self.tell(nhc, send, now);
        let mut path = Path::Shortcut;
        while let Some(output) = self.machine_mut(nhc).and_then(Machine::poll_output) {
            if matches!(output, client::Output::Routed(_)) {
                path = Path::Lane;
            }
            self.nhc_output(nhc.slot(), output, now);
        }
        self.count_sent(itf, path, 1);
        self.tell_sent(before, sample, path);
        path
    }

    pub(in crate::host) fn nhc_output(
        &mut self,
        slot: usize,
        output: client::Output,
        now: Instant,
    ) {
        let Some(client) = self.running::<Nhc>(slot) else {
            return;
        };
        let (own, next_hop) = (client.config().ip, client.config().server.0);
        let mut all = 0..self.interfaces.len();
        let itf = all.find(|itf| {
            self.clip_of(*itf)
                .is_some_and(|clip| clip.config().ip == own)
        });
        match output {
            client::Output::Atm(request) => self.request(slot, request, now),
            client::Output::Trace(trace) => {
                self.note_attempt(Waits::Nhrp, &trace);
                self.trace(trace);
            }
            client::Output::Resolved { token, answer } => self.client_resolved(token, answer, now),
            client::Output::Routed(packet) => {
                if let Some(clip) = itf.and_then(|itf| self.interfaces[itf].client.clip()) {
                    self.tell(clip, clip::Input::Send { next_hop, packet }, now);
                }
            }
            client::Output::Deliver(packet) => {
                if let Some(itf) = itf {
                    self.deliver_packet(itf, &packet, Path::Shortcut, now);
                }
            }
        }
    }
}

/// The answer to an ARP request for a next hop. Other packets, and probes for the host's own address, get no answer.
pub(super) fn answer(request: &[u8]) -> Option<Vec<u8>> {
    let request: &[u8; 28] = request.first_chunk()?;
    let (asker, own) = (&request[8..14], &request[14..18]);
    let wanted = &request[24..28];
    let is_request = request[..8] == [0, 1, 8, 0, 6, 4, 0, 1];
    if !is_request || own == wanted || own == [0; 4] {
        return None;
    }
    let hardware = [&NEXT_HOP[..], wanted].concat();
    let parts: [&[u8]; 8] = [
        asker,
        &hardware,
        &ARP,
        &[0, 1, 8, 0, 6, 4, 0, 2],
        &hardware,
        wanted,
        asker,
        own,
    ];
    Some(parts.concat())
}
