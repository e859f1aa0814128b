//! Routes and neighbours change: entries that lead elsewhere now are void.

use super::Mps;
use super::resolve::exit_key;
use super::state::{EgressState, Ingress, Purpose, Reach, Subject};
use crate::Instant;

impl Mps {
    /// Looks again at everything whose way `hit` selects.
    pub(super) fn recheck_all(&mut self, hit: impl Fn(&Reach) -> bool, now: Instant) {
        let ingress = self.ingress.iter().filter_map(|(key, entry)| {
            let reach = entry.reach.as_ref().filter(|reach| hit(reach))?;
            let watched = entry.resolved.is_some() && !matches!(reach, Reach::Nothing);
            watched.then_some((key.1, Subject::Ingress(*key)))
        });
        let egress = self.egress.iter().filter_map(|(cache_id, entry)| {
            let watched = entry.state != EgressState::Clearing && hit(&entry.reach);
            watched.then_some((entry.destination, Subject::Egress(*cache_id)))
        });
        let exits = self
            .exits
            .iter()
            .filter_map(|(target, reach)| hit(reach).then_some((*target, Subject::Exit(*target))));
        let subjects: Vec<_> = egress.chain(ingress).chain(exits).collect();
        for (target, subject) in subjects {
            self.find(target, Purpose::Recheck(subject), now);
        }
    }

    /// The answer to a check: an entry that leads elsewhere now is void.
    pub(super) fn recheck(&mut self, subject: Subject, reach: &Reach, now: Instant) {
        match subject {
            Subject::Egress(cache_id) => {
                if self
                    .egress
                    .get(&cache_id)
                    .is_some_and(|e| e.reach != *reach)
                {
                    self.remove_egress(cache_id, true, "the way to it changed", now);
                }
            }
            Subject::Ingress(key) => {
                let Some(entry) = self.ingress.get(&key) else {
                    return;
                };
                let changed = entry.reach.as_ref().is_some_and(|known| known != reach);
                let data = entry.mpc_data;
                if changed && entry.resolved.is_some() {
                    let prefix_len = entry.prefix_len;
                    let one = |e: &Ingress| e.mpc_data == data;
                    self.purge_clients(key.1, prefix_len, one, None, now);
                }
            }
            Subject::Exit(target) => {
                if self.exits.get(&target).is_some_and(|known| known != reach) {
                    self.exits.remove(&target);
                    let key = exit_key(target);
                    if let Some(binding) = self.cache.remove(&key) {
                        self.purge_requesters(&key, binding, None, now);
                    }
                }
            }
        }
    }
}
