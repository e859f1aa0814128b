//! The management channel of ports: the host behind a port, its addresses and its version.
//!
//! If it is not configured whether a host or a switch is at the other end, signalling waits until ILMI has found out.
//! ILMI also finds out the side of this end.

use std::collections::BTreeSet;

use aerostat_proto::ilmi::{Event, Input, Link, Output, Pvc, PvcStatus, Side};
use aerostat_proto::{Instant, Machine, uni};
use aerostat_wire::{ServiceCategory, TrafficParams, Vc, ilmi};

use super::{PortKind, PortNo, RouteSelect, Switch};
use crate::inspect::{self, Table};
use crate::interface;

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
        let input = if up { Input::Start } else { Input::Stop };
        self.tell_ime(port, input, now);
    }

    /// Handles a message from the host at a port.
    pub(super) fn manage(&mut self, port: PortNo, sdu: &[u8], now: Instant) {
        let others = self.ports.iter().enumerate();
        let others = others.filter(|(number, _)| *number != usize::from(port.0));
        let taken: BTreeSet<_> = others
            .flat_map(|(_, other)| &other.addresses)
            .map(|address| address.with_selector(0))
            .collect();
        let taken = &taken;
        self.tell_ime(port, Input::Message { sdu, taken }, now);
    }

    fn tell_ime(&mut self, port: PortNo, input: Input<'_>, now: Instant) {
        self.manage_permanent(now);
        self.changed.insert(port);
        if let Some(ime) = self.port_mut(port).and_then(|port| port.ime.as_mut()) {
            let Ok(()) = ime.handle_input(input, now);
            self.drain_ime(port, now);
        }
    }

    pub(super) fn manage_timeouts(&mut self, due: &[PortNo], now: Instant) {
        self.manage_permanent(now);
        for number in due {
            let ime = self.port_mut(*number).and_then(|port| port.ime.as_mut());
            if let Some(ime) = ime.filter(|ime| ime.poll_timeout().is_some_and(|at| at <= now)) {
                ime.handle_timeout(now);
                self.drain_ime(*number, now);
            }
        }
    }

    fn drain_ime(&mut self, number: PortNo, now: Instant) {
        loop {
            let ime = self.port_mut(number).and_then(|port| port.ime.as_mut());
            let Some(output) = ime.and_then(Machine::poll_output) else {
                return;
            };
            match output {
                Output::Send(sdu) => self.transmit(number, Vc::ILMI, sdu, now),
                Output::Trace(trace) => self.trace(trace.with("port", number)),
                Output::Event(Event::Registered(address, true)) => self.register(number, address),
                Output::Event(Event::Registered(address, false)) => {
                    self.unregister(number, address);
                }
                Output::Event(Event::Up { version }) => {
                    self.tell(number, interface::Input::Version(version), now);
                    // Signalling may have restarted.
                    self.await_signalling(number, now);
                }
                Output::Event(Event::Link(link)) => self.linked(number, link, now),
                // Calls stay: if the host has restarted, its signalling reports that.
                Output::Event(Event::Down | Event::Address(..) | Event::Services(_)) => {}
            }
        }
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
        for input in [interface::Input::Side(side), interface::Input::Start] {
            self.tell(number, input, now);
        }
    }

    /// Updates the permanent connections that ILMI reports at each port, if they have changed.
    fn manage_permanent(&mut self, now: Instant) {
        if !core::mem::take(&mut self.unmanaged) {
            return;
        }
        for number in (0..self.ports.len() as u16).map(PortNo) {
            let pvcs = self.permanent_at(number);
            if let Some(ime) = self.port_mut(number).and_then(|port| port.ime.as_mut()) {
                let Ok(()) = ime.handle_input(Input::SetPvcs(pvcs), now);
                self.changed.insert(number);
                self.drain_ime(number, now);
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
        let ports = self.ports.iter().enumerate();
        inspect::ilmi::tables(ports.filter_map(|(number, port)| {
            let ime = port.ime.as_ref()?;
            Some((number, port.config.name.as_str(), ime.snapshot()))
        }))
    }
}
