//! Queues and schedulers of ports as a lab sets them: buffers, thresholds, disciplines, shaped paths, and what a
//! connection may have for itself.

use super::PortNo;
use super::permanent::PermanentError;
use super::port::{Port, PortConfig, Reservation};
use crate::atm::{Limits, Tuning};
use aerostat_wire::Vc;

aerostat_proto::parameters! {
    /// Buffers of a port and their thresholds, in cells. A value of 0 is not given.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct QueueParams, QueueRanges {
        /// Cells of best effort that wait at a port.
        buffer: u32 = 0, 0..=1_000_000;
        /// Cells in this buffer from which new frames are discarded.
        epd: u32 = 0, 0..=1_000_000;
        /// Cells in this buffer from which cells with CLP 1 are discarded.
        clp: u32 = 0, 0..=1_000_000;
        /// Cells in this buffer from which user cells are marked (EFCI).
        efci: u32 = 0, 0..=1_000_000;
        /// Cells of one best effort connection that wait at a port.
        vc_buffer: u32 = 0, 0..=1_000_000;
        /// Cells of one best effort connection from which its new frames are discarded.
        vc_epd: u32 = 0, 0..=1_000_000;
        /// Cells of one best effort connection from which its cells with CLP 1 are discarded.
        vc_clp: u32 = 0, 0..=1_000_000;
        /// Cells of one best effort connection from which its user cells are marked.
        vc_efci: u32 = 0, 0..=1_000_000;
        /// Cells of CBR and VBR that wait at a port.
        guaranteed_buffer: u32 = 0, 0..=1_000_000;
        /// Cells in this buffer from which cells with CLP 1 are discarded.
        guaranteed_clp: u32 = 0, 0..=1_000_000;
        /// Cells of one CBR or VBR connection that wait at a port.
        guaranteed_vc_buffer: u32 = 0, 0..=1_000_000;
        /// Cells of one CBR or VBR connection from which its cells with CLP 1 are discarded.
        guaranteed_vc_clp: u32 = 0, 0..=1_000_000;
    }
}

impl QueueParams {
    /// These, and where a value is not given, that of `others`.
    #[must_use]
    pub const fn or(self, others: Self) -> Self {
        const fn or(own: u32, other: u32) -> u32 {
            if own > 0 { own } else { other }
        }
        Self {
            buffer: or(self.buffer, others.buffer),
            epd: or(self.epd, others.epd),
            clp: or(self.clp, others.clp),
            efci: or(self.efci, others.efci),
            vc_buffer: or(self.vc_buffer, others.vc_buffer),
            vc_epd: or(self.vc_epd, others.vc_epd),
            vc_clp: or(self.vc_clp, others.vc_clp),
            vc_efci: or(self.vc_efci, others.vc_efci),
            guaranteed_buffer: or(self.guaranteed_buffer, others.guaranteed_buffer),
            guaranteed_clp: or(self.guaranteed_clp, others.guaranteed_clp),
            guaranteed_vc_buffer: or(self.guaranteed_vc_buffer, others.guaranteed_vc_buffer),
            guaranteed_vc_clp: or(self.guaranteed_vc_clp, others.guaranteed_vc_clp),
        }
    }
}

aerostat_proto::parameters! {
    /// The queues of one connection at all switches on its way. A value of 0 is not given.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ConnectionQueue, ConnectionRanges {
        /// Its share of what the scheduler by weight has left.
        weight: u16 = 1, 1..=crate::atm::MAX_WEIGHT;
        /// Cells that wait.
        buffer: u32 = 0, 0..=1_000_000;
        /// Cells from which new frames are discarded.
        epd: u32 = 0, 0..=1_000_000;
        /// Cells from which cells with CLP 1 are discarded.
        clp: u32 = 0, 0..=1_000_000;
        /// Cells from which user cells are marked (EFCI).
        efci: u32 = 0, 0..=1_000_000;
        /// Switches delay its cells to the rates of its contract.
        shape: bool = false, false..=true;
    }
}

impl ConnectionQueue {
    /// What it changes at a queue.
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

impl PortConfig {
    /// Sets what is given of buffers and thresholds.
    pub fn set_queues(&mut self, params: &QueueParams) {
        let tune =
            |limits: &mut Limits, guaranteed: bool, [max, early, low_priority, mark]: [u32; 4]| {
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
            [p.guaranteed_buffer, 0, p.guaranteed_clp, 0],
        );
        tune(
            &mut buffers.guaranteed_vc,
            true,
            [p.guaranteed_vc_buffer, 0, p.guaranteed_vc_clp, 0],
        );
    }
}

impl Port {
    /// The part of a reservation that the link has to carry: that of a connection in a shaped path is part of what the
    /// path has. Fails if the path has not that much left.
    pub(super) fn reserve_inside(
        &mut self,
        number: PortNo,
        vc: Vc,
        wanted: Reservation,
    ) -> Result<Reservation, PermanentError> {
        let Some((pcr, held)) = self.tunnels.get_mut(&vc.vpi) else {
            return Ok(wanted);
        };
        let sum = held.plus(wanted);
        if sum.tx.max(sum.rx) > u64::from(*pcr) && wanted.tx.max(wanted.rx) > 0 {
            return Err(PermanentError::Rate(number));
        }
        *held = sum;
        Ok(Reservation::default())
    }

    /// Gives back what [`Self::reserve_inside`] took; returns what the link had to carry.
    pub(super) fn unreserve_inside(&mut self, vc: Vc, held: Reservation) -> Reservation {
        let Some((_, sum)) = self.tunnels.get_mut(&vc.vpi) else {
            return held;
        };
        sum.tx = sum.tx.saturating_sub(held.tx);
        sum.rx = sum.rx.saturating_sub(held.rx);
        Reservation::default()
    }
}
