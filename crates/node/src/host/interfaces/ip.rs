//! The IP side of a host: the stack or router above its interfaces.

use crate::host::{Host, HostEvent, HostOutput, Part};
use crate::ip::apps::AppCommand;
use crate::ip::books::Cause;
use crate::ip::router::{RouteResult, Router, RouterInput, RouterOutput, is_advertisement};
use crate::ip::stack::{self, ConnectionId, Stack, StackInput, StackOutput};
use aerostat_proto::mpoa::mps::{self, Absent};
use aerostat_proto::split::Role;
use aerostat_proto::{Instant, Machine, Refused};
use aerostat_wire::MacAddr;
use aerostat_wire::ipv4::Ipv4View;
use std::net::IpAddr;

/// The IP side above the interfaces.
pub enum Ip {
    /// No IP side: a LANE server.
    None,
    /// An embedded host, on all interfaces.
    Stack(Box<Stack>),
    /// An embedded router.
    Router(Box<Router>),
    /// A Linux kernel host; frames come and go through the driver.
    Kernel,
    /// A Linux kernel router. The kernel forwards; the embedded router beside it only answers the MPOA server's
    /// questions about routes and neighbours, and receives ARP replies and Neighbour Advertisements for that purpose.
    KernelRouter(Box<Router>),
}

impl Ip {
    /// Receives a frame on interface `itf`. Returns the frame if it is for the kernel.
    pub(in crate::host) fn receive(
        &mut self,
        itf: usize,
        frame: Vec<u8>,
        now: Instant,
    ) -> Result<Option<Vec<u8>>, Refused> {
        Ok(match self {
            Self::None => None,
            Self::Stack(stack) => {
                let input = StackInput::Frame {
                    interface: itf,
                    bytes: &frame,
                };
                stack.handle_input(input, now)?;
                None
            }
            Self::Router(router) => {
                let input = RouterInput::Frame {
                    interface: itf,
                    bytes: &frame,
                };
                router.handle_input(input, now)?;
                None
            }
            Self::Kernel => Some(frame),
            Self::KernelRouter(router) => {
                if is_arp_reply(&frame) || is_advertisement(&frame) {
                    let input = RouterInput::Frame {
                        interface: itf,
                        bytes: &frame,
                    };
                    router.handle_input(input, now)?;
                }
                Some(frame)
            }
        })
    }

    /// A frame with a whole datagram: an embedded host puts fragments together before anything looks at them, and gives
    /// `None` while some are missing. A kernel does that itself, and a router forwards fragments.
    pub(in crate::host) fn whole(&mut self, frame: Vec<u8>, now: Instant) -> Option<Vec<u8>> {
        match self {
            Self::Stack(stack) => stack.whole(frame, now),
            Self::None | Self::Router(_) | Self::Kernel | Self::KernelRouter(_) => Some(frame),
        }
    }

    pub(in crate::host) fn app(
        &mut self,
        command: AppCommand,
        now: Instant,
    ) -> Result<(), Refused> {
        match self {
            Self::Stack(stack) => stack.handle_input(StackInput::App(command), now),
            _ => Err(Refused("only embedded hosts run programs of the lab")),
        }
    }

    /// The CPU is through with the call of a program.
    pub(in crate::host) fn called(&mut self, on: ConnectionId, now: Instant) {
        if let Self::Stack(stack) = self {
            // A stack takes this at any time.
            let _ = stack.handle_input(StackInput::Called(on), now);
        }
    }

    pub(in crate::host) fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::Stack(stack) => stack.handle_timeout(now),
            Self::Router(router) | Self::KernelRouter(router) => router.handle_timeout(now),
            Self::None | Self::Kernel => {}
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Stack(stack) => stack.poll_timeout(),
            Self::Router(router) | Self::KernelRouter(router) => router.poll_timeout(),
            Self::None | Self::Kernel => None,
        }
    }

    /// The stack of an embedded host.
    #[must_use]
    pub fn stack(&self) -> Option<&Stack> {
        match self {
            Self::Stack(stack) => Some(stack),
            Self::None | Self::Router(_) | Self::Kernel | Self::KernelRouter(_) => None,
        }
    }

    pub(in crate::host) fn stack_mut(&mut self) -> Option<&mut Stack> {
        match self {
            Self::Stack(stack) => Some(stack),
            Self::None | Self::Router(_) | Self::Kernel | Self::KernelRouter(_) => None,
        }
    }

    /// The embedded router, even if it only answers questions.
    #[must_use]
    pub fn router(&self) -> Option<&Router> {
        match self {
            Self::Router(router) | Self::KernelRouter(router) => Some(router),
            Self::None | Self::Stack(_) | Self::Kernel => None,
        }
    }

    fn router_mut(&mut self) -> Option<&mut Router> {
        match self {
            Self::Router(router) | Self::KernelRouter(router) => Some(router),
            Self::None | Self::Stack(_) | Self::Kernel => None,
        }
    }
}

/// Ethernet type 0806, operation 2.
fn is_arp_reply(frame: &[u8]) -> bool {
    frame.get(12..14) == Some(&[8, 6]) && frame.get(20..22) == Some(&[0, 2])
}

/// One output of the IP side.
enum Moved {
    Stack(StackOutput),
    Router(RouterOutput),
}

impl Host {
    /// Passes a frame that arrived on interface `itf` to the IP side: the embedded one, or the kernel's.
    pub(in crate::host) fn pass_up(&mut self, itf: usize, frame: Vec<u8>, now: Instant) {
        match self.ip.receive(itf, frame, now) {
            Ok(Some(frame)) => self.report(HostEvent::Frame { itf, frame }),
            Ok(None) => {}
            Err(refused) => self.refused("ip", refused),
        }
    }

    /// Handles outputs of the IP side until there are no more.
    pub(in crate::host) fn drain_ip(&mut self, now: Instant) {
        loop {
            let moved = match &mut self.ip {
                Ip::Stack(stack) => stack.poll_output().map(Moved::Stack),
                Ip::Router(router) | Ip::KernelRouter(router) => {
                    router.poll_output().map(Moved::Router)
                }
                Ip::None | Ip::Kernel => None,
            };
            match moved {
                Some(Moved::Stack(StackOutput::Frame { interface, bytes })) => {
                    self.send_own(interface, bytes, now);
                }
                Some(Moved::Stack(StackOutput::Offered(app, offer))) => {
                    self.note_offer(app, &offer, now);
                }
                Some(Moved::Stack(StackOutput::Finished(app, result))) => {
                    self.report(HostEvent::Finished(app, result));
                }
                Some(Moved::Stack(StackOutput::Discarded { place, frame })) => {
                    // The stack offered this packet and then dropped it, so the sample ends as a loss.
                    self.measure_lost(&frame, cause_of(place), now);
                }
                Some(Moved::Stack(StackOutput::Call(on, call))) => {
                    self.out.push_back(HostOutput::Call(on, call));
                }
                Some(Moved::Stack(StackOutput::Trace(trace))) => self.trace(trace),
                Some(Moved::Router(output)) => self.router_output(output, now),
                None => break,
            }
        }
        self.collect_from_router();
        self.ip_deadline = self.ip.poll_timeout();
    }

    fn router_output(&mut self, output: RouterOutput, now: Instant) {
        match output {
            RouterOutput::Frame { interface, bytes } => {
                self.transmit(interface, bytes, now);
            }
            RouterOutput::Trace(trace) => self.trace(trace),
            RouterOutput::RoutesChanged => {
                self.tell_mps(mps::Input::Router(mps::FromRouter::RoutesChanged), now)
            }
            RouterOutput::Resolved {
                token,
                interface,
                mac,
                lately,
                ..
            } => {
                let query = token as u32;
                match mac {
                    Some(mac) => self.find_owner(query, interface, MacAddr(mac), now),
                    None if lately || self.is_young(interface, now) => {
                        self.answer_l2(query, Err(Absent::ForNow), now);
                    }
                    None => self.answer_l2(query, Err(Absent::Unheard), now),
                }
            }
            RouterOutput::NeighbourChanged {
                interface, address, ..
            } => {
                self.tell_mps(
                    mps::Input::Router(mps::FromRouter::NeighbourChanged {
                        itf: interface as u32,
                        ip: address,
                    }),
                    now,
                );
            }
        }
    }

    pub(in crate::host) fn mps_output(&mut self, slot: usize, output: mps::Output, now: Instant) {
        match output {
            mps::Output::Atm(request) => self.request(slot, request, now),
            mps::Output::Trace(trace) => self.trace(trace),
            mps::Output::Router(mps::ToRouter::SetTlvs { itf, tlvs }) => {
                self.set_tlvs(itf as usize, tlvs, now);
            }
            mps::Output::Router(mps::ToRouter::LookupRoute { query, dst }) => {
                let found = self.ip.router().map(|router| match dst {
                    IpAddr::V4(dst) if router.is_cut_off(dst) => {
                        (Some(mps::RouteResult::Down), u8::MAX)
                    }
                    IpAddr::V4(dst) => (route_result(router.lookup(dst)), router.covers(dst)),
                    // At most a host route.
                    IpAddr::V6(dst) => (router.lookup_ipv6(dst), u8::MAX),
                });
                let (result, covers) = found.unwrap_or((None, u8::MAX));
                let answer = mps::Input::Router(mps::FromRouter::Route {
                    query,
                    result,
                    covers,
                });
                self.tell_mps(answer, now);
            }
            mps::Output::Router(mps::ToRouter::ResolveL2 { query, itf, ip }) => {
                let resolve = RouterInput::Resolve {
                    token: query.into(),
                    interface: itf as usize,
                    address: ip,
                };
                let asked = self
                    .ip
                    .router_mut()
                    .map(|router| router.handle_input(resolve, now));
                match asked {
                    Some(Ok(())) => self.touch(Part::Ip),
                    _ => self.answer_l2(query, Err(Absent::ForNow), now),
                }
            }
            mps::Output::ForwardIp(packet) => self.forward(&packet, now),
            mps::Output::Process(message) => self.tell_process(Role::Mpsd, 0, message),
        }
    }

    /// Gives an input to the embedded router, if there is a router.
    pub(in crate::host) fn tell_router(
        &mut self,
        input: RouterInput<'_>,
        now: Instant,
    ) -> Option<Refused> {
        let refused = self.ip.router_mut()?.handle_input(input, now).err();
        self.touch(Part::Ip);
        refused
    }

    /// Shows an MPOA server that triggers its clients the packets that this router is about to forward.
    pub(in crate::host) fn show_routed(&mut self, itf: usize, frame: &[u8], now: Instant) {
        let server = self.mps.and_then(|mps| self.machine(mps));
        let Some(mps) = server.filter(|_| self.mpoa) else {
            return;
        };
        let (Some(router), true) = (self.ip.router(), mps.triggers()) else {
            return;
        };
        let Some((header, packet)) = frame.split_first_chunk::<14>() else {
            return;
        };
        let for_router = header.starts_with(&self.interfaces[itf].mac.0);
        let Some(view) = Ipv4View::new(packet).filter(|_| header.ends_with(&[8, 0])) else {
            return;
        };
        let destination = view.destination();
        let leaves = router.lookup(destination).next_hop(destination);
        if for_router && leaves.is_some_and(|(out, _)| out != itf) {
            let itf = itf as u32;
            self.tell_mps(mps::Input::Routed { itf, packet }, now);
        }
    }

    /// Forwards a packet from a shortcut that ends at this router.
    fn forward(&mut self, packet: &[u8], now: Instant) {
        if let Ip::Router(router) = &mut self.ip {
            let refused = router.handle_input(RouterInput::Inject(packet), now).err();
            self.touch(Part::Ip);
            if let Some(refused) = refused {
                self.refused("router", refused);
            }
            return;
        }
        // A kernel router gets the packet as a frame from a neighbour on its first interface.
        if let Some(interface) = self.interfaces.first() {
            let mut frame = interface.mac.0.to_vec();
            // A locally administered source address that no station has: the kernel does not look at it.
            frame.extend_from_slice(&[0x02, 0, 0, 0, 0, 0]);
            let six = packet.first().is_some_and(|octet| octet >> 4 == 6);
            frame.extend_from_slice(if six { &[0x86, 0xdd] } else { &[0x08, 0x00] });
            frame.extend_from_slice(packet);
            self.report(HostEvent::Frame { itf: 0, frame });
        }
    }

    /// True if the interface is not a member of its network, or became one only recently. Others may then still be
    /// about to join.
    fn is_young(&self, itf: usize, now: Instant) -> bool {
        self.interfaces.get(itf).is_none_or(|interface| {
            !interface.up || interface.since.is_none_or(|at| now.since(at) < mps::RETURN)
        })
    }

    /// Asks for the owner of a MAC address. The MAC address is that of a neighbour in the ARP cache, so the neighbour
    /// was present before.
    pub(in crate::host) fn find_owner(
        &mut self,
        query: u32,
        itf: usize,
        mac: MacAddr,
        now: Instant,
    ) {
        // Classical IP subnets and lines have no LANE client to ask, nor owners of MAC addresses.
        let asked = self.lec_of(itf).and_then(|lec| self.machine(lec));
        if asked.is_none() {
            return self.answer_l2(query, Err(Absent::ForNow), now);
        }
        let waiting = self.owner_queries.entry((itf, mac)).or_default();
        waiting.push(query);
        // The client answers every question, so a question that is outstanding is not repeated.
        if waiting.len() == 1 {
            self.discover(itf, mac, now);
        }
    }

    pub(in crate::host) fn answer_l2(
        &mut self,
        query: u32,
        answer: Result<mps::L2Answer, Absent>,
        now: Instant,
    ) {
        self.tell_mps(
            mps::Input::Router(mps::FromRouter::L2 { query, answer }),
            now,
        );
    }

    pub(in crate::host) fn tell_mps(&mut self, input: mps::Input<'_>, now: Instant) {
        if let Some(mps) = self.mps {
            self.tell(mps, input, now);
        }
    }
}

/// Why a host's stack dropped a packet of its own.
pub(in crate::host) const fn cause_of(place: stack::Place) -> Cause {
    match place {
        stack::Place::Arp => Cause::Arp,
        stack::Place::Route => Cause::NoRoute,
    }
}

fn route_result(found: RouteResult) -> Option<mps::RouteResult> {
    match found {
        RouteResult::Local { .. } => Some(mps::RouteResult::Local),
        RouteResult::Connected { interface } => Some(mps::RouteResult::Connected {
            itf: interface as u32,
        }),
        RouteResult::Via {
            interface,
            next_hop,
        } => Some(mps::RouteResult::Via {
            itf: interface as u32,
            next_hop: next_hop.into(),
        }),
        RouteResult::Broadcast | RouteResult::Multicast | RouteResult::NoRoute => None,
    }
}
