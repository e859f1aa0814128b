//! The schedule of faults.

use crate::Lab;
use crate::model::{Fault, FaultKind};
use aerostat_proto::Instant;
use std::collections::VecDeque;

/// Faults that have not happened yet, in the order of time.
#[derive(Clone, Debug, Default)]
pub struct Faults(VecDeque<Fault>);

impl Faults {
    /// The faults of a lab file.
    #[must_use]
    pub fn of(lab: &Lab) -> Self {
        Self(lab.faults.iter().cloned().collect())
    }
    /// Adds a fault that happens at once, before all others.
    pub fn add_first(&mut self, what: FaultKind, now: Instant) {
        let at = now.since(Instant::ZERO);
        self.0.push_front(Fault { at, what });
    }
    /// Adds a fault behind those that come before it, or at the same time.
    pub fn add(&mut self, fault: Fault) {
        let place = self.0.partition_point(|other| other.at <= fault.at);
        self.0.insert(place, fault);
    }
    /// Time of the next fault.
    #[must_use]
    pub fn next_at(&self) -> Option<Instant> {
        self.0.front().map(|fault| Instant::ZERO + fault.at)
    }
    /// The next fault, if its time has come.
    pub fn pop_due(&mut self, now: Instant) -> Option<FaultKind> {
        let due = |fault: &mut Fault| Instant::ZERO + fault.at <= now;
        self.0.pop_front_if(due).map(|fault| fault.what)
    }
    /// Forgets all faults.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}
