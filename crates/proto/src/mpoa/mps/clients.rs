//! Clients with state from this server: Keep-Alives, loss of clients, and triggers for their flows.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

use aerostat_wire::AtmAddress;
use aerostat_wire::mpoa;

use super::Server;
use super::state::{Client, EgressState, Ingress, IngressKey, Purpose};
use crate::{Instant, Trace};

impl Server {
    /// A client has state from now on: Keep-Alives start, the first one at once.
    pub(super) fn keep_alive_for(&mut self, mpc: AtmAddress, now: Instant) {
        if self.clients.contains_key(&mpc) {
            return;
        }
        let client = Client {
            reached: now,
            sequence: 0,
        };
        self.clients.insert(mpc, client);
        self.send_keep_alive(mpc, now);
        let every = self.config.params.keepalive_time();
        self.keep_alive_at.get_or_insert(now + every);
    }

    /// Every p1: sends a Keep-Alive to each client with state; ends clients without state and clients out of reach.
    ///
    /// A client that no Keep-Alive could reach for longer than p2 has given this server up and dropped all information
    /// from it, so its entries are void.
    pub(super) fn keep_alive_round(&mut self, now: Instant) {
        if self.keep_alive_at.is_none_or(|at| at > now) {
            return;
        }
        self.keep_alive_at = None;
        let with_state = self.clients_with_state();
        let lifetime = self.config.params.keepalive_lifetime;
        let known: Vec<AtmAddress> = self.clients.keys().copied().collect();
        for mpc in known {
            if !with_state.contains(&mpc) {
                self.clients.remove(&mpc);
                let text = "nothing is left of what the client got: Keep-Alives end";
                self.trace(Trace::milestone("mps.client.idle", text).with("mpc", mpc));
                continue;
            }
            let open = self.conns.is_open(mpc);
            let Some(client) = self.clients.get_mut(&mpc) else {
                continue;
            };
            if open {
                client.reached = now;
            }
            if now.since(client.reached) > lifetime {
                self.lose_client(mpc, now);
            } else {
                self.send_keep_alive(mpc, now);
            }
        }
        if !self.clients.is_empty() {
            self.keep_alive_at = Some(now + self.config.params.keepalive_time());
        }
    }

    fn send_keep_alive(&mut self, mpc: AtmAddress, now: Instant) {
        let sequence = self.sequence;
        self.sequence = sequence.wrapping_add(1);
        if let Some(client) = self.clients.get_mut(&mpc) {
            client.sequence = sequence;
        }
        let lifetime = self.config.params.keepalive_lifetime_s();
        let packet = mpoa::keep_alive(sequence, self.config.control, lifetime);
        self.counters.keep_alives_sent += 1;
        self.send(mpc, &packet, now);
    }

    fn clients_with_state(&self) -> BTreeSet<AtmAddress> {
        let ingress = self.ingress.iter().filter(|(_, e)| e.resolved.is_some());
        let egress = self.egress.values();
        ingress
            .map(|(key, _)| key.0)
            .chain(
                egress
                    .filter(|entry| entry.state != EgressState::Clearing && entry.until.is_some())
                    .map(|entry| entry.mpc),
            )
            .collect()
    }

    fn lose_client(&mut self, mpc: AtmAddress, now: Instant) {
        self.clients.remove(&mpc);
        self.counters.clients_lost += 1;
        let text = "the client cannot be reached: what it got is void";
        self.trace(Trace::milestone("mps.client.lost", text).with("mpc", mpc));
        let keys: Vec<IngressKey> = of_client(&self.ingress, mpc).collect();
        for key in keys {
            let Some(entry) = self.ingress.get_mut(&key) else {
                continue;
            };
            entry.resolved = None;
            let (data, asking) = (entry.mpc_data, entry.asking);
            if !asking {
                self.ingress.remove(&key);
            }
            self.forget_learned(key.1, data);
        }
        let entries: Vec<u32> = self
            .egress
            .iter()
            .filter(|(_, entry)| entry.mpc == mpc)
            .map(|(cache_id, _)| *cache_id)
            .collect();
        for cache_id in entries {
            self.remove_egress(cache_id, false, "its client cannot be reached", now);
        }
    }

    /// The router forwarded a packet of a new flow, which starts on the ELAN of an interface: perhaps a client should
    /// ask for a shortcut. False if a client has asked already. On an interface without LANE there are no clients.
    pub(super) fn routed(
        &mut self,
        itf: u32,
        source: IpAddr,
        target: IpAddr,
        now: Instant,
    ) -> bool {
        let served =
            |(key, entry): (&IngressKey, &Ingress)| key.1 == target && entry.mpc_protocol == source;
        if self.ingress.iter().any(served) {
            return false;
        }
        if !self.has_lane(itf) {
            return true;
        }
        self.find_neighbour(itf, source, Purpose::Trigger { source, target }, now);
        true
    }
}

/// The entries of one client.
pub(super) fn of_client(
    entries: &BTreeMap<IngressKey, Ingress>,
    mpc: AtmAddress,
) -> impl Iterator<Item = IngressKey> {
    let first = (mpc, IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    let all = entries.range(first..).map(|(key, _)| *key);
    all.take_while(move |key| key.0 == mpc)
}
