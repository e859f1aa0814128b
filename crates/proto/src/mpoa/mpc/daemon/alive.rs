//! Timers of the daemon: MPSs without Keep-Alives, purges without an answer, and the end of the daemon.

use super::super::api::Bus;
use super::{Daemon, EgressKey, Ending, KeepAlive, Mps};
use crate::mpoa::messages::ToKernel;
use crate::mpoa::params::INITIAL_KEEP_ALIVE_LIFETIME;
use crate::{Instant, Trace};
use aerostat_wire::AtmAddress;

impl Daemon {
    /// Information from `mps` is in a cache from now on: watch this MPS.
    pub(in crate::mpoa::mpc) fn watch(&mut self, mps: AtmAddress, now: Instant) {
        if let Some(known) = self.mps.get_mut(&mps) {
            let deadline = now + INITIAL_KEEP_ALIVE_LIFETIME;
            known.keep_alive.get_or_insert(KeepAlive {
                deadline,
                sequence: None,
            });
        }
    }

    /// The MPS is silent or has restarted: all information from this MPS is void.
    pub(in crate::mpoa::mpc) fn dead(&mut self, mps: AtmAddress, why: &str, bus: &mut Bus) {
        if let Some(known) = self.mps.get_mut(&mps) {
            known.keep_alive = None;
        }
        self.pending.retain(|key, _| key.0 != mps);
        bus.counters.mps_deaths += 1;
        let text = format!("MPS {mps}: {why}");
        bus.trace(Trace::milestone("mpc.keepalive.dead", text).with("mps", mps));
        bus.kernel(ToKernel::MpsDeath { mps });
    }

    pub(in crate::mpoa::mpc) fn next_timeout(&self) -> Option<Instant> {
        let alive = self
            .mps
            .values()
            .filter_map(|mps| mps.keep_alive.map(|k| k.deadline));
        let calls = self.conns.next();
        let purges = self.purges.values().map(|purge| purge.retry.at());
        let end = match self.ending {
            Ending::Wait { until, .. } => Some(until),
            Ending::No | Ending::Done { .. } => None,
        };
        alive.chain(calls).chain(purges).chain(end).min()
    }

    pub(in crate::mpoa::mpc) fn handle_timeout(&mut self, now: Instant, bus: &mut Bus) {
        let silent = |mps: &Mps| mps.keep_alive.is_some_and(|k| k.deadline <= now);
        let dead: Vec<AtmAddress> = self
            .mps
            .iter()
            .filter(|(_, mps)| silent(mps))
            .map(|(address, _)| *address)
            .collect();
        for mps in dead {
            self.dead(mps, "no keep-alive within its lifetime", bus);
            self.close_control(mps, bus);
        }
        self.call_again(now, bus);
        let due: Vec<EgressKey> = self
            .purges
            .iter()
            .filter(|(_, p)| p.retry.at() <= now)
            .map(|(key, _)| *key)
            .collect();
        for key in due {
            let Some(purge) = self.purges.get_mut(&key) else {
                continue;
            };
            if purge.retry.step(now) {
                let packet = purge.packet.clone();
                bus.counters.egress_purges_sent += 1;
                self.send(key.0, &packet, now, bus);
            } else {
                self.purges.remove(&key);
                bus.kernel(ToKernel::EgressPurged {
                    mps: key.0,
                    cache_id: key.1,
                });
            }
        }
        if let Ending::Wait { until, reload } = self.ending
            && until <= now
        {
            self.ending = Ending::Done { reload };
        }
    }
}
