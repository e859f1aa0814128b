//! Queues and schedulers of ports as a lab sets them: buffers, thresholds, disciplines, shaped paths, and what a
//! connection may have for itself.

use super::port::{Port, PortConfig, Reservation};
use crate::atm::{Limits, Tuning};
use aerostat_proto::Cause;
use aerostat_wire::{ServiceCategory, TrafficParams};

/// Largest buffer or threshold, cells.
const MOST: Option<u32> = Some(1_000_000);

aerostat_proto::parameters! {
    /// Buffers of a port and their thresholds, in cells. 0 is the default, where `None` is what others say.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct QueueParams, QueueRanges {
        /// Cells of best effort that wait at a port.
        buffer: Option<u32> = None, None..=MOST;
        /// Cells in this buffer from which new frames are discarded.
        epd: Option<u32> = None, None..=MOST;
        /// Cells in this buffer from which cells with CLP 1 are discarded.
        clp: Option<u32> = None, None..=MOST;
        /// Cells in this buffer from which user cells are marked (EFCI).
        efci: Option<u32> = None, None..=MOST;
        /// Cells of one best effort connection that wait at a port.
        vc_buffer: Option<u32> = None, None..=MOST;
        /// Cells of one best effort connection from which its new frames are discarded.
        vc_epd: Option<u32> = None, None..=MOST;
        /// Cells of one best effort connection from which its cells with CLP 1 are discarded.
        vc_clp: Option<u32> = None, None..=MOST;
        /// Cells of one best effort connection from which its user cells are marked.
        vc_efci: Option<u32> = None, None..=MOST;
        /// Cells of CBR and VBR that wait at a port.
        guaranteed_buffer: Option<u32> = None, None..=MOST;
        /// Cells in this buffer from which cells with CLP 1 are discarded.
        guaranteed_clp: Option<u32> = None, None..=MOST;
        /// Cells of one CBR or VBR connection that wait at a port.
        guaranteed_vc_buffer: Option<u32> = None, None..=MOST;
        /// Cells of one CBR or VBR connection from which its cells with CLP 1 are discarded.
        guaranteed_vc_clp: Option<u32> = None, None..=MOST;
    }
}

impl QueueParams {
    /// These values. A value that is not given is taken from `others`.
    #[must_use]
    pub fn or(mut self, others: Self) -> Self {
        for (own, other) in [
            (&mut self.buffer, others.buffer),
            (&mut self.epd, others.epd),
            (&mut self.clp, others.clp),
            (&mut self.efci, others.efci),
            (&mut self.vc_buffer, others.vc_buffer),
            (&mut self.vc_epd, others.vc_epd),
            (&mut self.vc_clp, others.vc_clp),
            (&mut self.vc_efci, others.vc_efci),
            (&mut self.guaranteed_buffer, others.guaranteed_buffer),
            (&mut self.guaranteed_clp, others.guaranteed_clp),
            (&mut self.guaranteed_vc_buffer, others.guaranteed_vc_buffer),
            (&mut self.guaranteed_vc_clp, others.guaranteed_vc_clp),
        ] {
            *own = own.or(other);
        }
        self
    }
}

aerostat_proto::parameters! {
    /// The queues of one connection at all switches on its way. `None` is what the port says, and a threshold of 0 the
    /// default.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ConnectionQueue, ConnectionRanges {
        /// Its share of what the scheduler by weight has left.
        weight: u16 = 1, 1..=crate::atm::MAX_WEIGHT;
        /// Cells that wait.
        buffer: Option<u32> = None, None..=MOST;
        /// Cells from which new frames are discarded.
        epd: Option<u32> = None, None..=MOST;
        /// Cells from which cells with CLP 1 are discarded.
        clp: Option<u32> = None, None..=MOST;
        /// Cells from which user cells are marked (EFCI).
        efci: Option<u32> = None, None..=MOST;
        /// Switches delay its cells to the rates of its contract.
        shape: bool = false, false..=true;
    }
}

impl ConnectionQueue {
    /// Changes at a queue.
    #[must_use]
    pub const fn tuning(&self) -> Tuning {
        Tuning {
            weight: self.weight,
            shaped: self.shape,
            max: self.buffer,
            early: self.epd,
            low_priority: self.clp,
            mark: self.efci,
        }
    }
}

/// Settings of the queues of calls at a port, by service category.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallQueues([Option<ConnectionQueue>; 6]);

impl CallQueues {
    /// Sets what calls of a category have.
    pub const fn set(&mut self, category: ServiceCategory, queue: ConnectionQueue) {
        self.0[category as usize] = Some(queue);
    }
    /// Settings for a direction of a call with this contract, if they are given.
    #[must_use]
    pub fn of(&self, traffic: &TrafficParams) -> Option<ConnectionQueue> {
        self.0[traffic.category? as usize]
    }
    /// The categories that have an entry, with their entries.
    pub fn iter(&self) -> impl Iterator<Item = (ServiceCategory, ConnectionQueue)> + '_ {
        let entries = ServiceCategory::ALL.into_iter().zip(self.0);
        entries.filter_map(|(category, queue)| Some((category, queue?)))
    }
    /// These, and for a category that has no entry that of `others`.
    #[must_use]
    pub fn or(self, others: Self) -> Self {
        Self(core::array::from_fn(|n| self.0[n].or(others.0[n])))
    }
}

impl PortConfig {
    /// Sets what is given of buffers and thresholds.
    pub fn set_queues(&mut self, params: &QueueParams) {
        let tune = |limits: &mut Limits,
                    guaranteed: bool,
                    [max, early, low_priority, mark]: [Option<u32>; 4]| {
            let given = Tuning {
                max,
                early,
                low_priority,
                mark,
                ..Tuning::DEFAULT
            };
            *limits = given.limits(*limits, guaranteed);
        };
        let p = params;
        let buffers = &mut self.buffers;
        tune(
            &mut buffers.best_effort,
            false,
            [p.buffer, p.epd, p.clp, p.efci],
        );
        tune(
            &mut buffers.best_effort_vc,
            false,
            [p.vc_buffer, p.vc_epd, p.vc_clp, p.vc_efci],
        );
        tune(
            &mut buffers.guaranteed,
            true,
            [p.guaranteed_buffer, None, p.guaranteed_clp, None],
        );
        tune(
            &mut buffers.guaranteed_vc,
            true,
            [p.guaranteed_vc_buffer, None, p.guaranteed_vc_clp, None],
        );
    }
}

impl Port {
    /// Reservations in the shaped path with this VPI, or of the link if there is no such path.
    fn account(&mut self, vpi: u16) -> &mut Reservation {
        match self.tunnels.get_mut(&vpi) {
            Some((_, held)) => held,
            None => &mut self.reserved,
        }
    }

    /// Bandwidth that connections with this VPI can still reserve, cells/s: that of the link, or that of the shaped
    /// path that they are in, whose peak rate is part of what the link has reserved.
    pub(super) fn free(&self, vpi: u16) -> Reservation {
        let ([tx, rx], held) = match self.tunnels.get(&vpi) {
            Some((pcr, held)) => ([*pcr; 2], *held),
            None => ([self.config.admit, self.config.admit_in], self.reserved),
        };
        Reservation {
            tx: u64::from(tx).saturating_sub(held.tx),
            rx: u64::from(rx).saturating_sub(held.rx),
        }
    }

    /// The same for the calls of this port.
    pub(super) fn free_for_calls(&self) -> Reservation {
        self.free(self.config.call_vpi)
    }

    /// Connection admission control for a connection with this VPI. Source: I.371, connection admission control.
    pub(super) fn reserve(&mut self, vpi: u16, wanted: Reservation) -> Result<(), Cause> {
        if !self.free(vpi).covers(wanted) {
            return Err(Cause::RATE_UNAVAILABLE);
        }
        let held = self.account(vpi);
        *held = held.plus(wanted);
        Ok(())
    }

    /// Gives back what [`Self::reserve`] took.
    pub(super) fn unreserve(&mut self, vpi: u16, given: Reservation) {
        let held = self.account(vpi);
        held.tx = held.tx.saturating_sub(given.tx);
        held.rx = held.rx.saturating_sub(given.rx);
    }

    /// Replaces a reservation by another one. If that is not possible, it stays.
    pub(super) fn reserve_instead(
        &mut self,
        vpi: u16,
        old: Reservation,
        new: Reservation,
    ) -> Result<(), Cause> {
        self.unreserve(vpi, old);
        let done = self.reserve(vpi, new);
        if done.is_err() {
            let held = self.account(vpi);
            *held = held.plus(old);
        }
        done
    }
}
