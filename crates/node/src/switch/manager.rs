//! A switch's manager, where its messages cost time: one server for the signalling channels of all ports.
//!
//! Messages of a port's signalling channel wait here before its interface reads them, and messages of the interface
//! wait before they leave, all in the order in which they came. [`crate::manager`] says what costs. Messages that wait
//! for a port are dropped when its line goes down.

use super::{PortNo, RouteSelect, Switch};
use crate::inspect::Table;
use crate::inspect::host::CpuLoad;
use crate::manager::{Counts, ManagerConfig, Seat};
use crate::server::{Order, Owned, Queues, Server};
use aerostat_proto::Instant;
use aerostat_proto::interface;
use aerostat_wire::Vc;

/// Classes of the queues. The order is that of arrival.
const READ: usize = 0;
const WRITTEN: usize = 1;

/// A PDU of a signalling channel.
#[derive(Debug)]
struct Job {
    port: PortNo,
    written: bool,
    pdu: Vec<u8>,
}

impl Owned for Job {
    type Owner = PortNo;
    fn owner(&self) -> PortNo {
        self.port
    }
}

/// See the documentation of this module.
#[derive(Debug)]
pub(super) struct Manager {
    config: ManagerConfig,
    queues: Queues<Job, 2>,
    counts: Counts,
    lost: u64,
    since: Instant,
}

impl Manager {
    pub(super) fn new(config: ManagerConfig, now: Instant) -> Self {
        Self {
            config,
            queues: Queues::new(Server::of_time(), Order::Arrival),
            counts: Counts::default(),
            lost: 0,
            since: now,
        }
    }

    fn offer(&mut self, job: Job, now: Instant) {
        if self.queues.held(job.port) >= self.config.queue {
            self.lost += 1;
            return;
        }
        let class = if job.written { WRITTEN } else { READ };
        let work = self.config.work(&job.pdu, Seat::Switch);
        let picos = work.map_or(0, |work| self.counts.add(work, job.written, |picos| picos));
        self.queues.offer(class, picos, job, now);
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.queues.deadline()
    }

    fn tables(&self, now: Instant) -> Vec<Table> {
        let since = now.since(self.since).as_nanos();
        let load = CpuLoad::of(&self.queues, READ, WRITTEN, Order::Arrival, since, now);
        let load = CpuLoad {
            control_lost: self.lost,
            ..load
        };
        vec![Table::of([load]), Table::of(self.counts.rows())]
    }
}

impl<R: RouteSelect> Switch<R> {
    /// The same switch with a manager whose messages cost time, switched on at `now`.
    #[must_use]
    pub fn with_manager(mut self, config: ManagerConfig, now: Instant) -> Self {
        self.manager = Some(Box::new(Manager::new(config, now)));
        self
    }

    /// A PDU has come on the signalling channel of a port.
    pub(super) fn signalled(&mut self, port: PortNo, pdu: &[u8], now: Instant) {
        match &mut self.manager {
            None => self.tell(port, interface::Input::Lower(pdu), now),
            Some(manager) => {
                let pdu = pdu.to_vec();
                let written = false;
                manager.offer(Job { port, written, pdu }, now);
            }
        }
    }

    /// The interface of a port has written a PDU.
    pub(super) fn signal(&mut self, port: PortNo, pdu: Vec<u8>, now: Instant) {
        match &mut self.manager {
            None => self.transmit(port, Vc::SIGNALLING, pdu, now),
            Some(manager) => {
                let written = true;
                manager.offer(Job { port, written, pdu }, now);
            }
        }
    }

    /// The line of a port is down.
    pub(super) fn forget_messages(&mut self, port: PortNo) {
        if let Some(manager) = &mut self.manager {
            // What waits for the port is dropped.
            manager.queues.withdraw(port);
        }
    }

    /// Does one thing for which the manager has had time. False if there is nothing to do.
    pub(super) fn finish_one(&mut self, now: Instant) -> bool {
        let job = self
            .manager
            .as_mut()
            .and_then(|manager| manager.queues.take(now));
        let Some(Job { port, written, pdu }) = job else {
            return false;
        };
        match written {
            true => self.transmit(port, Vc::SIGNALLING, pdu, now),
            false => self.tell(port, interface::Input::Lower(&pdu), now),
        }
        true
    }

    /// When the manager is through with a PDU.
    pub(super) fn next_through(&self) -> Option<Instant> {
        self.manager.as_ref().and_then(|manager| manager.deadline())
    }

    /// The tables of `inspect SWITCH cpu`; `None` if messages cost no time.
    pub(super) fn manager_tables(&self, now: Instant) -> Option<Vec<Table>> {
        Some(self.manager.as_ref()?.tables(now))
    }
}
