//! The management channel of ports: the host behind a port, its addresses and its version.
//!
//! If it is not configured whether a host or a switch is at the other end, signalling waits until ILMI has found out.
//! ILMI also finds out the side of this end.

use aerostat_proto::ilmi::{
    Channel, ChannelInput, ChannelOutput, DaemonEvent, Event, Link, Pvc, PvcStatus, Side,
};
use aerostat_proto::split::codec::Message as _;
use aerostat_proto::split::{Numbered, ProcessEvent, Role};
use aerostat_proto::{Instant, Machine, Trace, uni};
use aerostat_wire::{AtmAddress, ServiceCategory, TrafficParams, Vc, ilmi};

use super::{Output, Port, PortKind, PortNo, RouteSelect, Switch};
use crate::daemon_message::{DaemonMessage, is};
use crate::inspect::{self, Table};
use aerostat_proto::interface;

/// Largest SDU of a management channel.
pub(super) const SDU: u16 = ilmi::MAX_MESSAGE as u16;
/// The contract of a management channel inside the switch: like signalling, it is served before best effort.
pub(super) const CHANNEL: TrafficParams = TrafficParams {
    category: Some(ServiceCategory::NrtVbr),
    ..TrafficParams::ubr(SDU)
};

impl<R: RouteSelect> Switch<R> {
    /// The line of a port came up or went down.
    pub(super) fn manage_link(&mut self, port: PortNo, up: bool, now: Instant) {
        self.tell_channel(port, ChannelInput::Line(up), now);
    }

    /// Handles a message from the host at a port.
    pub(super) fn manage(&mut self, port: PortNo, sdu: &[u8], now: Instant) {
        self.tell_channel(port, ChannelInput::Sdu(sdu), now);
    }

    /// A message from a process of daemons, or an event of it: for all ports with ILMI, or for the port of the message.
    pub(super) fn manage_daemon(
        &mut self,
        role: Role,
        event: ProcessEvent<DaemonMessage>,
        now: Instant,
    ) {
        let there = match event {
            ProcessEvent::Came => true,
            ProcessEvent::Gone => false,
            ProcessEvent::Said(DaemonMessage::Ilmid(Numbered { number, message })) => {
                let port = PortNo(number);
                if self.port(port).is_some_and(|port| port.ilmi.is_some()) {
                    let said = ChannelInput::Daemon(ProcessEvent::Said(message));
                    return self.tell_channel(port, said, now);
                }
                let text = format!("this switch has no {role} of number {number}");
                return self.trace(Trace::detail("switch.refused", text));
            }
            ProcessEvent::Said(_) => {
                let text = format!("this switch has no {role}");
                return self.trace(Trace::detail("switch.refused", text));
            }
        };
        for number in (0..self.ports.len() as u16).map(PortNo) {
            let event: DaemonEvent = is(there);
            self.tell_channel(number, ChannelInput::Daemon(event), now);
        }
    }

    fn tell_channel(&mut self, port: PortNo, input: ChannelInput<'_>, now: Instant) {
        self.manage_permanent(now);
        self.changed.insert(port, ());
        self.give(port, input, now);
    }

    fn channel_mut(&mut self, port: PortNo) -> Option<&mut Channel> {
        self.port_mut(port).and_then(|port| port.ilmi.as_mut())
    }

    /// Gives an input to the channel of a port, if the port has one, and handles its outputs.
    fn give(&mut self, port: PortNo, input: ChannelInput<'_>, now: Instant) {
        let Some(channel) = self.channel_mut(port) else {
            return;
        };
        if let Err(refused) = channel.handle_input(input, now) {
            let text = format!("ILMI: {refused}");
            self.trace(Trace::detail("switch.refused", text).with("port", port));
        }
        self.drain_channel(port, now);
    }

    pub(super) fn manage_timeouts(&mut self, due: &[PortNo], now: Instant) {
        self.manage_permanent(now);
        for number in due {
            let channel = self.channel_mut(*number);
            let due = channel.filter(|channel| channel.poll_timeout().is_some_and(|at| at <= now));
            if let Some(channel) = due {
                channel.handle_timeout(now);
                self.drain_channel(*number, now);
            }
        }
    }

    fn drain_channel(&mut self, number: PortNo, now: Instant) {
        loop {
            let Some(output) = self.channel_mut(number).and_then(Machine::poll_output) else {
                return;
            };
            match output {
                ChannelOutput::Send(sdu) => self.transmit(number, Vc::ILMI, sdu, now),
                ChannelOutput::Trace(trace) => self.trace(trace.with("port", number)),
                ChannelOutput::Claim { claim, addresses } => {
                    let refused = self.first_taken(number, &addresses);
                    let answer = ChannelInput::Claimed { claim, refused };
                    // An answer to a claim of this channel is not refused.
                    let channel = self.channel_mut(number);
                    let answered = channel.map(|channel| channel.handle_input(answer, now));
                    debug_assert_eq!(answered, Some(Ok(())));
                }
                ChannelOutput::Daemon(message) => {
                    let number = number.0;
                    let frame = Numbered { number, message }.encode();
                    self.outputs.push_back(Output::Daemon(Role::Ilmid, frame));
                }
                ChannelOutput::Event(Event::Registered(address, true)) => {
                    self.register(number, address);
                }
                ChannelOutput::Event(Event::Registered(address, false)) => {
                    self.unregister(number, address);
                }
                ChannelOutput::Event(Event::Up { version }) => {
                    self.tell(number, interface::Input::Version(version), now);
                    // Signalling may have restarted.
                    self.await_signalling(number, now);
                }
                ChannelOutput::Event(Event::Link(link)) => self.linked(number, link, now),
                // Calls stay: if the host has restarted, its signalling reports that.
                ChannelOutput::Event(Event::Down | Event::Address(..) | Event::Services(_)) => {}
            }
        }
    }

    /// The index of the first of these addresses (selector 0) that another port has.
    fn first_taken(&self, number: PortNo, addresses: &[AtmAddress]) -> Option<u16> {
        let others = || {
            let all = self.ports.iter().enumerate();
            all.filter(|(other, _)| *other != usize::from(number.0))
        };
        let has = |port: &Port, address: &AtmAddress| {
            let known = port.addresses.iter();
            known
                .map(|known| known.with_selector(0))
                .any(|known| known == *address)
        };
        let taken = |address: &AtmAddress| others().any(|(_, port)| has(port, address));
        addresses.iter().position(taken).map(|index| index as u16)
    }

    /// ILMI has found out the kind of system at the other end of a port, so signalling can start.
    fn linked(&mut self, number: PortNo, link: Link, now: Instant) {
        let (kind, side) = match link {
            Link::Uni(Side::Network) => (PortKind::Host, uni::Side::Network),
            Link::Iisp(Side::Network) => (PortKind::Trunk, uni::Side::Network),
            Link::Iisp(Side::User) => (PortKind::Trunk, uni::Side::User),
            // These results occur at hosts, and between switches that speak PNNI.
            Link::Uni(Side::User) | Link::Hosts | Link::Pnni => return,
        };
        if let Some(port) = self.port_mut(number) {
            port.config.kind = kind;
            port.config.interface.uni.side = side;
        }
        self.await_signalling(number, now);
        let side = interface::Input::Side(side, kind.location());
        for input in [side, interface::Input::Start] {
            self.tell(number, input, now);
        }
    }

    /// Updates the permanent connections that ILMI reports at each port, if they have changed.
    fn manage_permanent(&mut self, now: Instant) {
        if !core::mem::take(&mut self.unmanaged) {
            return;
        }
        for number in (0..self.ports.len() as u16).map(PortNo) {
            if self.port(number).is_some_and(|port| port.ilmi.is_some()) {
                let pvcs = self.permanent_at(number);
                self.changed.insert(number, ());
                self.give(number, ChannelInput::SetPvcs(pvcs), now);
            }
        }
    }

    /// The permanent connections of a port as its other end sees them; `tx` is towards that end.
    fn permanent_at(&self, number: PortNo) -> Vec<Pvc> {
        let ends = self.permanent.iter().flat_map(|one| {
            let [a, b] = one.ends;
            let backwards = one.qos.reversed();
            [(a, b, backwards, one.path), (b, a, one.qos, one.path)]
        });
        let here = ends.filter(|((port, _), ..)| *port == number);
        here.map(|((_, vc), (far, _), qos, path)| Pvc {
            vc,
            path,
            tx: qos.tx,
            rx: qos.rx,
            status: if self.fabric.link_is_up(far.0) {
                PvcStatus::LocalUp
            } else {
                PvcStatus::EndToEndDown
            },
        })
        .collect()
    }

    /// The tables of `inspect ilmi`: the hosts behind the ports, and their addresses.
    pub(super) fn ilmi_tables(&self) -> Vec<Table> {
        let ports = self.occupied();
        let mut tables = inspect::ilmi::tables(ports.filter_map(|(number, port)| {
            Some(inspect::ilmi::End {
                port: number,
                name: &port.config.name,
                seen: port.ilmi.as_ref()?.snapshot(),
            })
        }));
        let channels = self.ports.iter().filter_map(|port| port.ilmi.as_ref());
        tables.extend(inspect::ilmi::daemons(channels));
        tables
    }
}
