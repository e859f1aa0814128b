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
    /// The lab has changed: of its faults those that are to come count, and trainings that have begun end.
    pub fn adopt(&mut self, lab: &Lab, now: Instant) {
        let come = |fault: &&Fault| Instant::ZERO + fault.at > now;
        let trained =
            |fault: &Fault| matches!(fault.what, FaultKind::Trained(link, _) if lab.has_link(link));
        self.0.retain(trained);
        self.0.extend(lab.faults.iter().filter(come).cloned());
        self.0.make_contiguous().sort_by_key(|fault| fault.at);
    }
    /// Adds a fault that happens at once, before all others.
    pub fn add_first(&mut self, what: FaultKind, now: Instant) {
        let at = now.since(Instant::ZERO);
        self.0.push_front(Fault { at, what });
    }
    /// Time of the next fault.
    #[must_use]
    pub fn next_at(&self) -> Option<Instant> {
        self.0.front().map(|fault| Instant::ZERO + fault.at)
    }
    /// The next fault, if its time has come. A link that trains will have trained, unless it is reset or trains anew
    /// before.
    pub fn pop_due(&mut self, now: Instant) -> Option<FaultKind> {
        let due = |fault: &mut Fault| Instant::ZERO + fault.at <= now;
        let fault = self.0.pop_front_if(due)?;
        if let FaultKind::Retrain(link, ..) | FaultKind::Reset(link) = fault.what {
            let ends =
                |other: &Fault| matches!(other.what, FaultKind::Trained(of, _) if of == link);
            self.0.retain(|other| !ends(other));
        }
        if let FaultKind::Retrain(link, _, changes) = fault.what {
            let (at, what) = (fault.end(), FaultKind::Trained(link, changes));
            // A training ends before the next one begins at the same instant.
            let place = self.0.partition_point(|other| other.at < at);
            self.0.insert(place, Fault { at, what });
        }
        Some(fault.what)
    }
    /// Forgets all faults.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{LineChange, LinkId};
    use aerostat_proto::Duration;

    /// A schedule: milliseconds and faults.
    fn schedule(faults: &[(u64, FaultKind)]) -> Faults {
        let fault = |(at, what): &(u64, FaultKind)| Fault {
            at: Duration::from_millis(*at),
            what: *what,
        };
        Faults(faults.iter().map(fault).collect())
    }

    /// All that happens, with its milliseconds.
    fn story(mut faults: Faults) -> Vec<(u64, FaultKind)> {
        let mut all = Vec::new();
        while let Some(at) = faults.next_at() {
            let what = faults.pop_due(at).expect("a fault that is due");
            all.push((at.as_nanos() / 1_000_000, what));
        }
        all
    }

    /// No new values.
    fn same() -> [LineChange; 2] {
        [LineChange::default(); 2]
    }

    fn training(link: usize, millis: u64) -> FaultKind {
        FaultKind::Retrain(LinkId(link), Duration::from_millis(millis), same())
    }

    #[test]
    fn a_training_ends_unless_the_link_is_reset_or_trains_anew() {
        let reset = |link| FaultKind::Reset(LinkId(link));
        let trained = |link| FaultKind::Trained(LinkId(link), same());
        let [first, again, other] = [training(0, 100), training(0, 300), training(1, 50)];
        let cut = FaultKind::LinkDown(LinkId(0));
        for (given, happens) in [
            (
                vec![(10, first), (20, other), (110, cut)],
                vec![
                    (10, first),
                    (20, other),
                    (70, trained(1)),
                    (110, trained(0)),
                    (110, cut),
                ],
            ),
            (
                vec![(10, first), (20, other), (30, reset(0)), (40, reset(0))],
                vec![
                    (10, first),
                    (20, other),
                    (30, reset(0)),
                    (40, reset(0)),
                    (70, trained(1)),
                ],
            ),
            // A reset ends no training that is still to begin.
            (
                vec![(10, reset(0)), (20, first)],
                vec![(10, reset(0)), (20, first), (120, trained(0))],
            ),
            (
                vec![(10, first), (50, again)],
                vec![(10, first), (50, again), (350, trained(0))],
            ),
            (
                vec![(10, again), (50, first)],
                vec![(10, again), (50, first), (150, trained(0))],
            ),
            (
                vec![(10, first), (110, again)],
                vec![
                    (10, first),
                    (110, trained(0)),
                    (110, again),
                    (410, trained(0)),
                ],
            ),
        ] {
            assert_eq!(story(schedule(&given)), happens, "{given:?}");
        }
    }
}
