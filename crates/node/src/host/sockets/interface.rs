//! The ATM interface of the host, for programs that manage it (`atmaddr`, `atmdiag`, `sonetdiag`).
//!
//! The adapter is beside the host, and not below this layer. So the station adds what the adapter knows to a request
//! ([`Station::with_adapter`]), and this layer answers with that. The counters of the adapter never go back: the layer
//! remembers what they were when a program set them to 0, as a driver of a kernel does for all programs.

use super::{Asked, Input, SocketLayer};
use crate::host::{Host, HostInput, Station};
use aerostat_proto::socket::{ADDRESSES, Answer, Interface, PduCounts, Request};
use aerostat_wire::AtmAddress;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Counts since `before`.
const fn since(counts: PduCounts, before: PduCounts) -> PduCounts {
    PduCounts {
        sent: counts.sent.saturating_sub(before.sent),
        not_sent: counts.not_sent.saturating_sub(before.not_sent),
        received: counts.received.saturating_sub(before.received),
        damaged: counts.damaged.saturating_sub(before.damaged),
    }
}

impl SocketLayer {
    /// Answers a program that asks for the interface.
    pub(super) fn describe(
        &mut self,
        asked: Asked,
        zero_pdus: bool,
        zero_cells: bool,
        mut seen: Interface,
    ) {
        let before = self.zeroed.clone();
        if zero_pdus {
            (self.zeroed.aal0, self.zeroed.aal5) = (seen.aal0, seen.aal5);
        }
        if zero_cells {
            self.zeroed.cells_sent = seen.cells_sent;
            self.zeroed.cells_received = seen.cells_received;
        }
        seen.aal0 = since(seen.aal0, before.aal0);
        seen.aal5 = since(seen.aal5, before.aal5);
        seen.cells_sent = seen.cells_sent.saturating_sub(before.cells_sent);
        seen.cells_received = seen.cells_received.saturating_sub(before.cells_received);
        self.answer(asked, Answer::Interface(seen));
    }

    /// Sets the network prefix of the address of the host, as learnt by ILMI. Call this only before the start.
    pub fn set_prefix(&mut self, prefix: [u8; 13]) {
        let config = &mut self.config;
        let before = config.address;
        if before.prefix() == prefix {
            return;
        }
        config.address = before.with_prefix(prefix);
        self.programs.set_prefix(prefix);
        if let Some(own) = Arc::make_mut(&mut config.names).get_mut(&config.host)
            && own.same_end_system(&before)
        {
            *own = own.with_prefix(prefix);
        }
    }

    /// The address of the host, with selector 00: that of its lab file, or by ILMI.
    const fn address(&self) -> AtmAddress {
        self.config.address
    }
}

/// As many addresses as an answer has room for, in hex digits, and the number of those that are left out.
fn bounded(all: impl ExactSizeIterator<Item = AtmAddress>) -> (Vec<String>, u32) {
    let more = all.len().saturating_sub(ADDRESSES);
    let texts = all.take(ADDRESSES).map(super::hex).collect();
    (texts, u32::try_from(more).unwrap_or(u32::MAX))
}

impl Host {
    /// Addresses of listeners, with selector 00, and those that programs have added.
    pub(in crate::host) fn called_addresses(&self) -> BTreeSet<AtmAddress> {
        let listeners = self.signalling.listeners();
        let listeners = listeners.map(|one| one.address.with_selector(0));
        let mut all: BTreeSet<_> = listeners.collect();
        if let Some(sockets) = self.sockets() {
            all.extend(sockets.added());
        }
        all
    }
    /// Addresses at which this host can be called, with selector 00, its own first: those of listeners, those that
    /// programs have added, and those that ILMI has registered, or the configured one of a host without ILMI.
    fn interface_addresses(&self, own: AtmAddress) -> Vec<AtmAddress> {
        let mut all = self.called_addresses();
        match self.ilmi_addresses() {
            Some(registered) => all.extend(registered.iter().map(|a| a.with_selector(0))),
            None => drop(all.insert(own)),
        }
        let first = all.take(&own);
        first.into_iter().chain(all).collect()
    }
}

impl Station {
    /// Adds what the adapter knows to a request for the interface; other inputs stay as they are.
    pub(in crate::host) fn with_adapter<'a>(&self, input: HostInput<'a>) -> HostInput<'a> {
        let HostInput::Program(Input::Request {
            session,
            number,
            request:
                Request::Interface {
                    zero_pdus,
                    zero_cells,
                },
            ..
        }) = input
        else {
            return input;
        };
        HostInput::Program(Input::Interface {
            session,
            number,
            zero_pdus,
            zero_cells,
            interface: Box::new(self.interface()),
        })
    }

    /// PDUs of AAL0 and of AAL5 since the host was switched on.
    pub(in crate::host) fn pdu_counts(&self) -> [PduCounts; 2] {
        let nic = self.nic();
        let aal0 = PduCounts {
            sent: nic.single.sent,
            received: nic.single.received,
            ..PduCounts::default()
        };
        let aal5 = PduCounts {
            sent: nic.output().totals().pdus_out,
            not_sent: self.late(),
            received: nic.counters.pdus_out,
            damaged: nic.pdus_bad,
        };
        [aal0, aal5]
    }

    /// The interface, with its counts since the host was switched on.
    fn interface(&self) -> Interface {
        let (host, nic) = (self.host(), self.nic());
        let own = host
            .sockets()
            .map_or(AtmAddress::default(), SocketLayer::address);
        let (addresses, left) = bounded(host.interface_addresses(own).into_iter());
        let (lecs, left_lecs) = bounded(host.ilmi_services().iter().copied());
        let output = nic.output();
        let [aal0, aal5] = self.pdu_counts();
        Interface {
            esi: own.esi().0,
            addresses,
            lecs,
            more: left.saturating_add(left_lecs),
            rate: output.rate().cells_per_second(),
            up: host.signalling.is_up(),
            // See `requests::label_of`.
            label_bits: (8, 16),
            aal0,
            aal5,
            cells_sent: output.totals().cells_out,
            cells_received: nic.counters.cells_in,
        }
    }
}
