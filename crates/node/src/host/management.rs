//! The addresses of a host, router or LANE server that knows only its end system identifier.
//!
//! The services wait until the switch has assigned a prefix, has accepted the address, and has named the LECS; then
//! they start with that address. If ILMI is lost and later gives the same address again, the services go on
//! undisturbed. With another address they restart, because what others know about them is no longer valid. LES, BUS,
//! LECS and MPS wait, too, but keep their configured addresses: others must know those in advance.

use super::{Host, HostOutput, ServiceKind};
use crate::inspect::{self, Table};
use crate::signalling;
use aerostat_proto::ilmi::{Config, Event, Ime, Input, Output, Prefix};
use aerostat_proto::{Instant, Machine};
use aerostat_wire::{AtmAddress, Vc};
use std::collections::BTreeSet;

/// The place of a host in the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The prefix of all its addresses.
    pub(super) prefix: Prefix,
    /// The LECS to ask first.
    pub(super) lecs: Option<AtmAddress>,
}

/// The management channel, and the information received over it.
pub(super) struct Management {
    ime: Ime,
    pub(super) deadline: Option<Instant>,
    /// Addresses that the switch has accepted, in the order of acceptance.
    usable: Vec<AtmAddress>,
    /// LECSs that the switch names; `None` until they have been requested.
    lecs: Option<Vec<AtmAddress>>,
    /// The place in which the services run, or ran last.
    place: Option<Place>,
}

impl Management {
    fn new(config: Config) -> Self {
        Self {
            ime: Ime::new(config),
            deadline: None,
            usable: Vec::new(),
            lecs: None,
            place: None,
        }
    }

    /// The place in which the services should run; `None` while that is unknown.
    fn wanted(&self) -> Option<Place> {
        let lecs = self.lecs.as_ref()?.first().copied();
        let held = self.place.map(|place| place.prefix);
        let under = |prefix: &Prefix| self.usable.iter().any(|a| a.prefix() == *prefix);
        let first = || self.usable.first().map(AtmAddress::prefix);
        let prefix = held.filter(under).or_else(first)?;
        Some(Place { prefix, lecs })
    }
}

impl Host {
    /// Makes the services wait for an address from the switch. Call this before
    /// [`HostInput::Start`](super::HostInput::Start).
    pub fn register_by_ilmi(&mut self, config: Config) {
        self.management = Some(Management::new(config));
    }

    /// The link came up or went down.
    pub(super) fn manage_link(&mut self, up: bool, now: Instant) {
        let input = if up { Input::Start } else { Input::Stop };
        self.tell_ime(input, now);
    }

    /// Handles a message from the switch; `false` if this host has no management channel.
    pub(super) fn manage(&mut self, sdu: &[u8], now: Instant) -> bool {
        let taken = &BTreeSet::new();
        self.tell_ime(Input::Message { sdu, taken }, now);
        self.management.is_some()
    }

    fn tell_ime(&mut self, input: Input<'_>, now: Instant) {
        if let Some(management) = &mut self.management {
            let Ok(()) = management.ime.handle_input(input, now);
            self.drain_management(now);
        }
    }

    pub(super) fn manage_timeout(&mut self, now: Instant) {
        if let Some(management) = &mut self.management {
            management.ime.handle_timeout(now);
            self.drain_management(now);
        }
    }

    fn drain_management(&mut self, now: Instant) {
        while let Some(management) = &mut self.management {
            let Some(output) = management.ime.poll_output() else {
                management.deadline = management.ime.poll_timeout();
                break;
            };
            match output {
                Output::Send(sdu) => self.out.push_back(HostOutput::Send { vc: Vc::ILMI, sdu }),
                Output::Trace(trace) => self.trace(trace),
                Output::Event(Event::Address(address, true)) => management.usable.push(address),
                Output::Event(Event::Address(address, false)) => {
                    management.usable.retain(|known| *known != address);
                }
                Output::Event(Event::Services(lecs)) => management.lecs = Some(lecs),
                Output::Event(Event::Down) => management.lecs = None,
                Output::Event(Event::Up { version }) => {
                    self.ask(signalling::Input::Version(version), now);
                }
                Output::Event(Event::Registered(..) | Event::Link(_)) => {}
            }
        }
        self.take_place(now);
    }

    /// Starts the services once their place is known, and restarts them when it changes.
    fn take_place(&mut self, now: Instant) {
        let Some(management) = &mut self.management else {
            return;
        };
        let Some(place) = management.wanted() else {
            return;
        };
        let before = management.place.replace(place);
        if before.is_some_and(|before| before.prefix == place.prefix) {
            for service in self.slots.iter_mut().filter_map(|s| s.service.as_mut()) {
                service.set_network(place.prefix, place.lecs);
            }
            return;
        }
        for slot in 0..self.slots.len() {
            if self.slots[slot].service.is_none() {
                continue; // The service has crashed.
            }
            if before.is_some() {
                self.make_anew(slot, now);
            }
            let mpoa = matches!(self.slots[slot].kind, ServiceKind::Mpc | ServiceKind::Mps);
            if !mpoa || self.mpoa {
                self.start_slot(slot, now);
            }
        }
    }

    /// Gives the service in `slot` its place. False if the place is not known yet; then the service must wait.
    pub(super) fn place_slot(&mut self, slot: usize) -> bool {
        let Some(management) = &self.management else {
            return true;
        };
        let (Some(place), Some(service)) = (management.place, &mut self.slots[slot].service) else {
            return false;
        };
        service.set_network(place.prefix, place.lecs);
        true
    }

    /// The tables of `inspect ilmi`.
    pub(super) fn ilmi_tables(&self) -> Vec<Table> {
        let Some(management) = &self.management else {
            return Vec::new();
        };
        let seen = management.ime.snapshot();
        let lecs = seen.services.iter();
        let lecs = Table::of(lecs.map(|address| inspect::ilmi::Lecs { address: *address }));
        let end = (0, self.name.as_str(), seen);
        let mut tables = inspect::ilmi::tables(core::iter::once(end));
        tables.push(lecs);
        tables
    }
}

#[cfg(test)]
mod tests;
