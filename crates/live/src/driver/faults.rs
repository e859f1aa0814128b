//! The faults in the loop.

use super::Driver;
use crate::run::Notice;
use aerostat_lab::event;
use aerostat_lab::model::FaultKind;
use aerostat_proto::Instant;

impl Driver<'_> {
    /// Causes and ends the faults that are due.
    pub(super) fn faults(&mut self, now: Instant, tell: &mut dyn FnMut(Notice<'_>)) {
        while let Some(what) = self.faults.pop_due(now) {
            let (node, trace) = event::of_fault(self.lab, what);
            self.event(node, trace, now, tell);
            if !self.daemon_fault(what, now, tell) {
                self.world.fault(self.builder, what, now);
            }
            // A restarted router has the routes of the lab file, but its kernel kept its own.
            if let FaultKind::Restart(node, None) = what {
                let watched = self.routes.iter_mut().filter(|(of, _)| *of == node);
                watched.for_each(|(_, routes)| routes.forget(now));
            }
        }
    }

    /// Causes or ends a fault at the next step.
    pub(crate) fn break_or_mend(&mut self, what: FaultKind, now: Instant) {
        self.faults.add_first(what, now);
    }

    /// Applies a fault to a daemon that is a process of its own; true if the fault has no other effect.
    fn daemon_fault(
        &mut self,
        what: FaultKind,
        now: Instant,
        tell: &mut dyn FnMut(Notice<'_>),
    ) -> bool {
        let Some(daemons) = &mut self.daemons else {
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
            FaultKind::LinkDown(_) | FaultKind::LinkUp(_) => false,
        };
        self.daemon_events(told, now, tell);
        alone
    }
}
