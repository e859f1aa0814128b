//! Routes and neighbours change: entries whose path has changed are void.

use super::Server;
use super::state::{Asked, EgressState, Ingress, IngressKey, Purpose, Reach, RouterExit, Subject};
use crate::Instant;
use aerostat_wire::prefix::width;

impl Server {
    /// Checks again all entries whose path `hit` selects.
    pub(super) fn recheck_all(&mut self, hit: impl Fn(&Reach) -> bool, now: Instant) {
        let ingress = self.ingress.iter().filter_map(|(key, entry)| {
            let watched = entry.asking || entry.resolved.is_some();
            (watched && entry.reach.as_ref().is_some_and(&hit))
                .then_some((key.1, Subject::Ingress(*key)))
        });
        let egress = self.egress.iter().filter_map(|(cache_id, entry)| {
            let watched = entry.state != EgressState::Clearing && hit(&entry.reach);
            watched.then_some((entry.destination, Subject::Egress(*cache_id)))
        });
        let exits = self.exits.iter().filter_map(|(key, exit)| {
            hit(&exit.reach).then_some((exit.target, Subject::Exit(*key)))
        });
        let kept = self.kept.iter().filter_map(|(key, reach)| {
            hit(reach).then_some((key.destination, Subject::Kept(*key)))
        });
        let subjects: Vec<_> = egress.chain(ingress).chain(exits).chain(kept).collect();
        for (target, subject) in subjects {
            self.find(target, Purpose::Recheck(subject), now);
        }
    }

    /// The answer to a check: an entry whose path has changed is void.
    pub(super) fn recheck(
        &mut self,
        subject: Subject,
        (reach, covers): (&Reach, u8),
        now: Instant,
    ) {
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
                if changed && entry.asking {
                    self.ask_again(key, now);
                }
                let Some(entry) = self.ingress.get(&key) else {
                    return;
                };
                if changed && entry.resolved.is_some() {
                    let prefix_len = entry.prefix_len;
                    let one = |e: &Ingress| e.mpc_data == data;
                    self.purge_clients(key.1, prefix_len, one, None, now);
                }
            }
            Subject::Kept(key) => {
                if self.kept.get(&key).is_some_and(|known| known != reach) {
                    self.drop_kept(&key, now);
                }
            }
            // This applies also if a part of the announced prefix takes another path now.
            Subject::Exit(key) => {
                let changed = |known: &RouterExit| {
                    known.reach != *reach || covers.min(width(known.target)) > key.prefix_len
                };
                if self.exits.get(&key).is_some_and(changed) {
                    self.exits.remove(&key);
                    if let Some(binding) = self.cache.remove(&key) {
                        self.purge_requesters(&key, binding, None, now);
                    }
                }
            }
        }
    }

    /// The path changed while the NHRP request was outstanding: an answer to the old request is not valid any more.
    fn ask_again(&mut self, key: IngressKey, now: Instant) {
        let Some(entry) = self.ingress.get_mut(&key) else {
            return;
        };
        self.requests.close(entry.nhrp_id);
        let rule = self.config.params.resolution_rule();
        // The request that was just closed made room.
        let Some(id) = self.requests.open(Asked::Resolution(key), rule, now) else {
            return;
        };
        entry.nhrp_id = id;
        entry.reach = None;
        self.ask_nhrp(key, now);
    }
}
