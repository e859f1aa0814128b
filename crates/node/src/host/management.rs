//! The addresses of a host, router or LANE server that knows only its end system identifier.
//!
//! The services wait until the switch has assigned a prefix, has accepted the address, and has named the LECS; then
//! they start with that address. If ILMI is lost and later gives the same address again, the services go on
//! undisturbed. With another address they restart, because what others know about them is no longer valid. LES, BUS,
//! LECS and MPS wait, too, but keep their configured addresses: others must know those in advance.

use super::{Host, HostOutput, ServiceKind, Waits};
use crate::inspect::{self, Table};
use crate::signalling;
use aerostat_proto::ilmi::{
    Channel, ChannelInput, ChannelOutput, DaemonEvent, Event, Prefix, Snapshot,
};
use aerostat_proto::split::Role;
use aerostat_proto::{Instant, Machine};
use aerostat_wire::{AtmAddress, MacAddr, Vc};

/// The place of a host in the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The prefix of all its addresses.
    pub(super) prefix: Prefix,
    /// The LECS to ask first.
    pub(super) lecs: Option<AtmAddress>,
}

/// The management channel with the information received over it, and the place that follows.
pub(super) struct Management {
    channel: Channel,
    pub(super) deadline: Option<Instant>,
    /// The place in which the services run, or ran last.
    place: Option<Place>,
    /// End system identifiers of the host itself.
    own: Vec<MacAddr>,
}

impl Management {
    fn new(channel: Channel) -> Self {
        Self {
            own: channel.esis().to_vec(),
            channel,
            deadline: None,
            place: None,
        }
    }

    /// The place in which the services should run; `None` while that is unknown.
    fn wanted(&self) -> Option<Place> {
        let lecs = self.channel.services()?.first().copied();
        let held = self.place.map(|place| place.prefix);
        let usable = self.channel.addresses();
        let under = |prefix: &Prefix| usable.iter().any(|a| a.prefix() == *prefix);
        let first = || usable.first().map(AtmAddress::prefix);
        let prefix = held.filter(under).or_else(first)?;
        Some(Place { prefix, lecs })
    }
}

impl Host {
    /// Makes the services wait for an address from the switch. Call this before
    /// [`HostInput::Start`](super::HostInput::Start).
    pub fn register_by_ilmi(&mut self, channel: Channel) {
        self.management = Some(Management::new(channel));
    }

    /// Programs have added these addresses: their end system identifiers are registered beside those of the host.
    pub(super) fn register_added(&mut self, added: &[AtmAddress], now: Instant) {
        let Some(management) = &self.management else {
            return;
        };
        let mut all = management.own.clone();
        for esi in added.iter().map(AtmAddress::esi) {
            if !all.contains(&esi) {
                all.push(esi);
            }
        }
        if management.channel.esis() != all {
            self.tell_channel(ChannelInput::SetEsis(all), now);
        }
    }

    /// The link came up or went down.
    pub(super) fn manage_link(&mut self, up: bool, now: Instant) {
        self.tell_channel(ChannelInput::Line(up), now);
    }

    /// Handles a message from the switch; `false` if this host has no management channel.
    pub(super) fn manage(&mut self, sdu: &[u8], now: Instant) -> bool {
        self.tell_channel(ChannelInput::Sdu(sdu), now);
        self.management.is_some()
    }

    /// A message from the daemon in a process of its own, or an event of this process.
    pub(super) fn tell_ilmid(&mut self, event: DaemonEvent, now: Instant) {
        self.tell_channel(ChannelInput::Daemon(event), now);
    }

    fn tell_channel(&mut self, input: ChannelInput<'_>, now: Instant) {
        if let Some(management) = &mut self.management {
            let refused = management.channel.handle_input(input, now).err();
            if let Some(refused) = refused {
                self.refused("ILMI", refused);
            }
            self.drain_management(now);
        }
    }

    pub(super) fn manage_timeout(&mut self, now: Instant) {
        if let Some(management) = &mut self.management {
            management.channel.handle_timeout(now);
            self.drain_management(now);
        }
    }

    fn drain_management(&mut self, now: Instant) {
        while let Some(management) = &mut self.management {
            let Some(output) = management.channel.poll_output() else {
                management.deadline = management.channel.poll_timeout();
                break;
            };
            match output {
                ChannelOutput::Send(sdu) => {
                    let (vc, sdu) = (Vc::ILMI, sdu.into());
                    self.out.push_back(HostOutput::Send { vc, sdu });
                }
                ChannelOutput::Trace(trace) => {
                    self.note_attempt(Waits::Ilmi, &trace);
                    self.trace(trace);
                }
                ChannelOutput::Daemon(message) => self.tell_process(Role::Ilmid, 0, message),
                ChannelOutput::Event(Event::Up { version }) => {
                    self.tell_signalling(signalling::Input::Version(version), now);
                }
                // The channel has these results; the rest is for a network side.
                ChannelOutput::Event(
                    Event::Address(..)
                    | Event::Services(_)
                    | Event::Down
                    | Event::Registered(..)
                    | Event::Link(_),
                )
                | ChannelOutput::Claim { .. } => {}
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

    /// Addresses that the host has by ILMI; `None` if its addresses are configured.
    pub(super) fn ilmi_addresses(&self) -> Option<&[AtmAddress]> {
        let management = self.management.as_ref()?;
        Some(management.channel.addresses())
    }

    /// LECSs that ILMI has found.
    pub(super) fn ilmi_services(&self) -> &[AtmAddress] {
        let channel = self.management.as_ref().map(|it| &it.channel);
        channel.and_then(Channel::services).unwrap_or_default()
    }

    /// The state of ILMI, at a host that has it.
    pub(super) fn management_snapshot(&self) -> Option<Snapshot> {
        let management = self.management.as_ref()?;
        Some(management.channel.snapshot())
    }

    /// Messages of the ILMI daemon that its seat has refused.
    pub(super) fn ilmi_refused(&self) -> u64 {
        let management = self.management.as_ref();
        management.map_or(0, |management| management.channel.daemon_counters().refused)
    }

    /// The tables of `inspect ilmi`.
    pub(super) fn ilmi_tables(&self) -> Vec<Table> {
        let Some(management) = &self.management else {
            return Vec::new();
        };
        let seen = management.channel.snapshot();
        let lecs = seen.services.iter();
        let lecs = Table::of(lecs.map(|address| inspect::ilmi::Lecs { address: *address }));
        let (port, name) = (0, self.name.as_str());
        let end = inspect::ilmi::End { port, name, seen };
        let mut tables = inspect::ilmi::tables(core::iter::once(end));
        tables.push(lecs);
        tables.extend(inspect::ilmi::daemons(core::iter::once(
            &management.channel,
        )));
        tables
    }
}

#[cfg(test)]
mod tests;
