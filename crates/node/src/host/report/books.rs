//! A host's accounts of packets: those that are lost in the host, and those that are still in it.

use crate::atm::{DataUnit, Mark};
use crate::host::sockets::SocketLayer;
use crate::host::{Host, HostEvent, HostOutput, Ip};
use crate::ip::apps::{AppId, Offer};
use crate::ip::books::{Cause, SocketEvent};
use crate::ip::meter::{Path, Sample, Side};
use crate::ip::stack::Stack;
use crate::signalling::UserId;
use aerostat_proto::discard::{Discard, HEAD};
use aerostat_proto::lane::LaneServer;
use aerostat_proto::{ConnId, Instant};
use aerostat_wire::AtmAddress;
use std::collections::VecDeque;

impl Host {
    /// Starts the accounts: the host reports the packets that it drops.
    pub fn keep_books(&mut self) {
        self.books = true;
    }

    /// Calls `see` with every packet, frame or SDU that waits in this host. Those that wait in its adapter are not
    /// included.
    pub fn held(&self, see_unit: &mut dyn FnMut(DataUnit<'_>)) {
        self.signalling.early().for_each(|sdu| see_unit(sdu.view()));
        let see = &mut |octets: &[u8]| see_unit(octets.into());
        for service in self.slots.iter().filter_map(|slot| slot.service.as_ref()) {
            service.held(&mut *see);
        }
        match &self.ip {
            Ip::Router(router) => router.held().for_each(&mut *see),
            Ip::Stack(_) | Ip::None | Ip::Kernel | Ip::KernelRouter(_) => {}
        }
        if let Some(segment) = &self.segment {
            segment.held().for_each(&mut *see);
        }
    }

    /// Reports the loss of a packet, frame or SDU, of which `octets` may be the head.
    pub(in crate::host) fn lost<'a>(&mut self, cause: Cause, unit: impl Into<DataUnit<'a>>) {
        if self.books {
            let head = unit.into().first(HEAD);
            self.report(HostEvent::Lost(cause, head));
        }
    }

    /// Reports that a marked PDU has reached the user of its connection.
    pub(in crate::host) fn heard(&mut self, unit: DataUnit<'_>, user: UserId, conn: ConnId) {
        let Some(mark) = unit.mark.filter(|_| self.books) else {
            return;
        };
        let octets = unit.octets.len() as u32;
        let slot = usize::from(user.0);
        let runs = self
            .slots
            .get(slot)
            .is_some_and(|slot| slot.service.is_some());
        let event = match self.running::<SocketLayer>(slot) {
            Some(sockets) => match sockets.reader(conn) {
                Some(Some(program)) => SocketEvent::Received {
                    mark,
                    program,
                    octets,
                },
                Some(None) => SocketEvent::Left(mark),
                // The call has ended here.
                None => return self.lose_marked(mark, Discard::Closed),
            },
            None if runs => SocketEvent::Left(mark),
            None => return self.lose_marked(mark, Discard::Stopped),
        };
        self.report(HostEvent::Socket(event));
    }

    fn lose_marked(&mut self, mark: Mark, why: Discard) {
        let unit = DataUnit {
            octets: &[],
            mark: Some(mark),
        };
        self.lost(Cause::Service(why), unit);
    }

    /// Reports that a packet left by `path`, before the output at index `before`. The path is known only after the
    /// packet left, but the books must have a packet before anything reports its loss.
    pub(in crate::host) fn tell_sent(&mut self, before: usize, sample: Option<Sample>, path: Path) {
        if let Some(sample) = sample {
            let sample = HostOutput::Event(HostEvent::Sample(Sample { path, ..sample }));
            self.out.insert(before.min(self.out.len()), sample);
        }
    }

    pub(in crate::host) fn lost_by_service<'a>(
        &mut self,
        why: Discard,
        unit: impl Into<DataUnit<'a>>,
    ) {
        self.lost(Cause::Service(why), unit);
    }

    /// Reports what a service has dropped.
    pub(in crate::host) fn collect_discards(&mut self, slot: usize) {
        while let Some(service) = &mut self.slots[slot].service
            && let Some((why, head)) = service.take_discard()
        {
            self.lost_by_service(why, &head[..]);
        }
    }

    /// Reports what the router has dropped.
    pub(in crate::host) fn collect_from_router(&mut self) {
        while let Ip::Router(router) | Ip::KernelRouter(router) = &mut self.ip
            && let Some((reason, head)) = router.take_discard()
        {
            self.lost(Cause::Router(reason), &head[..]);
        }
    }

    /// Reports what waits in a service that crashes.
    pub(in crate::host) fn lose_held(&mut self, slot: usize) {
        let mut heads = Vec::new();
        let mut see = |octets: &[u8]| heads.push(octets.get(..HEAD).unwrap_or(octets).to_vec());
        if let Some(service) = self.slots[slot].service.as_ref().filter(|_| self.books) {
            service.held(&mut see);
        }
        for head in heads {
            self.lost_by_service(Discard::Stopped, &head[..]);
        }
    }

    /// Records that a program of the host's own stack wanted to send a packet.
    pub(in crate::host) fn note_offer(&mut self, app: AppId, offer: &Offer, now: Instant) {
        if let Some(sample) = self.meter.offered(app, offer, now) {
            self.report(HostEvent::Sample(sample));
        }
    }

    /// Reports that a packet of a flow has arrived at an IP stack. The packet counts as delivered unless the stack is
    /// an embedded one in which no program listens for it.
    pub(in crate::host) fn arrived(
        out: &mut VecDeque<HostOutput>,
        sample: Sample,
        frame: &[u8],
        stack: Option<&Stack>,
    ) {
        let heard = stack.is_none_or(|stack| stack.hears(frame));
        out.push_back(if heard || sample.side != Side::Received {
            HostOutput::Event(HostEvent::Sample(sample))
        } else {
            let head = frame.get(..HEAD).unwrap_or(frame);
            HostOutput::Event(HostEvent::Lost(Cause::Receiver, head.to_vec().into()))
        });
    }

    /// Reports the interfaces that have joined, and those that are no longer members.
    pub(in crate::host) fn tell_joined(&mut self) {
        for (itf, interface) in self.interfaces.iter_mut().enumerate() {
            let joined = interface.up;
            if joined != interface.told {
                interface.told = joined;
                self.out
                    .push_back(HostOutput::Event(HostEvent::Joined { itf, joined }));
            }
        }
    }

    /// Reports that a BUS that crashes no longer reaches its clients.
    pub(in crate::host) fn lose_reached(&mut self, slot: usize) {
        let server = self.running::<LaneServer>(slot);
        let gone = server.into_iter().flat_map(LaneServer::reached);
        for address in gone.collect::<Vec<AtmAddress>>() {
            let reached = false;
            self.report(HostEvent::Reaches { address, reached });
        }
    }
}
