//! The receive path of an adapter: what it does with a PDU that has arrived before the host has it.
//!
//! Adapters of the first generation put cells together slower than a link carries them, in software or by a slow bus,
//! and had memory for few PDUs. Here one server does this work for the PDUs of all connections, in the order of their
//! last cells. A PDU occupies a buffer from its last cell until its work is done. A PDU for which there is no free
//! buffer is lost, counted, and reported ([`Cause::Intake`](crate::ip::books::Cause::Intake)); its cells were received.
//! Messages of signalling and ILMI are PDUs like others.
//!
//! **Not implemented.** Buffers for cells of incomplete PDUs; memory that PDUs to be sent share.

use crate::atm::{Pdu, Received};
use crate::inspect::host::ReceivePath;
use crate::server::{Order, Owned, Queues, Server};
use aerostat_proto::Instant;
use aerostat_wire::Vc;

/// How fast a receive path works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntakeRate {
    /// PDUs per second, not 0.
    Pdus(u64),
    /// Cells per second, not 0.
    Cells(u64),
}

/// Configuration of a receive path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IntakeConfig {
    /// Its speed.
    pub rate: IntakeRate,
    /// PDUs that it can hold, with the one that it works on; not 0.
    pub buffer: usize,
}

impl Owned for (Vc, Received) {
    type Owner = Vc;
    fn owner(&self) -> Vc {
        self.0
    }
}

/// The receive path. See the documentation of this module.
#[derive(Debug)]
pub(in crate::host) struct Intake {
    config: IntakeConfig,
    queues: Queues<(Vc, Received), 1>,
    pdus: u64,
    lost: u64,
    /// Most PDUs that it has held.
    most: usize,
    /// When the host was switched on.
    since: Instant,
}

impl Intake {
    pub(in crate::host) fn new(config: IntakeConfig, now: Instant) -> Self {
        let (IntakeRate::Pdus(rate) | IntakeRate::Cells(rate)) = config.rate;
        Self {
            queues: Queues::new(Server::new(rate), Order::Arrival),
            config,
            pdus: 0,
            lost: 0,
            most: 0,
            since: now,
        }
    }

    /// Takes a PDU; false if there is no free buffer.
    pub(in crate::host) fn offer(&mut self, vc: Vc, sdu: &Received, now: Instant) -> bool {
        let held = self.held();
        if held >= self.config.buffer {
            self.lost += 1;
            return false;
        }
        self.pdus += 1;
        self.most = self.most.max(held + 1);
        let work = match self.config.rate {
            IntakeRate::Pdus(_) => 1,
            IntakeRate::Cells(_) => sdu.pdu.cells().into(),
        };
        self.queues.offer(0, work, (vc, sdu.clone()), now);
        true
    }

    /// Buffers in use.
    fn held(&self) -> usize {
        self.queues.waiting(0) + usize::from(self.queues.deadline().is_some())
    }

    /// The next PDU that is ready by `now`.
    pub(in crate::host) fn take(&mut self, now: Instant) -> Option<(Vc, Received)> {
        self.queues.take(now)
    }

    /// Removes the PDUs of a label that was closed.
    pub(in crate::host) fn withdraw(&mut self, vc: Vc) -> Vec<(Vc, Received)> {
        self.queues.withdraw(vc)
    }

    pub(in crate::host) fn deadline(&self) -> Option<Instant> {
        self.queues.deadline()
    }

    /// The PDUs here.
    pub(in crate::host) fn pdus(&self) -> impl Iterator<Item = &Pdu> {
        self.queues.jobs().map(|(_, sdu)| &sdu.pdu)
    }

    pub(in crate::host) fn row(&self, now: Instant) -> ReceivePath {
        let since = now.since(self.since).as_nanos();
        let busy = self.queues.busy(now);
        ReceivePath {
            pdus: self.pdus,
            pdus_lost: self.lost,
            held_pdus: self.held(),
            most_held_pdus: self.most,
            utilisation_ppm: (busy.as_nanos() * 1_000_000 / since.max(1)) as u64,
        }
    }
}
