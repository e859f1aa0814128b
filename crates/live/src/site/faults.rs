//! The faults in the loop.

use super::Site;
use crate::daemons;
use crate::source::Slot;
use aerostat_lab::event;
use aerostat_lab::model::FaultKind;
use aerostat_proto::Instant;

impl Site<'_> {
    /// Causes and ends the faults that are due.
    pub(crate) fn faults(&mut self, now: Instant) {
        while let Some(what) = self.faults.pop_due(now) {
            let (node, trace) = event::of_fault(self.lab, what);
            self.event(node, trace, now);
            if !self.daemon_fault(what, now) {
                self.world.fault(self.builder, what, now);
            }
            if let FaultKind::Restart(node, None) = what {
                self.sources.routes.forget(node, now);
            }
        }
    }

    /// Causes or ends a fault at the next step.
    pub(crate) fn break_or_mend(&mut self, what: FaultKind, now: Instant) {
        self.faults.add_first(what, now);
    }

    /// Applies a fault to a daemon that is a process of its own; true if the fault has no other effect.
    pub(crate) fn daemon_fault(&mut self, what: FaultKind, now: Instant) -> bool {
        let Some(daemons) = &mut self.sources.daemons else {
            return false;
        };
        let mut told = Vec::new();
        let alone = match what {
            FaultKind::Crash(node, service) => {
                daemons.crash(node, service, now, &mut told) && service.is_some()
            }
            FaultKind::Restart(node, service) => {
                let any = daemons.crash(node, service, now, &mut told);
                daemons.resume(node, service, now);
                any && service.is_some()
            }
            FaultKind::LinkDown(_)
            | FaultKind::LinkUp(_)
            | FaultKind::Change(..)
            | FaultKind::Reset(_)
            | FaultKind::Retrain(..)
            | FaultKind::Trained(..) => false,
        };
        self.visit(Slot::Daemons, (true, now), |_, turn| {
            daemons::pass_on(told, turn);
        });
        alone
    }
}
