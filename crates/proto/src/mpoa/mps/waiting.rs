//! Resolution Requests that wait while the server makes the answer to an earlier request of the same requester for the
//! same destination.
//!
//! An MPOA client has one flow for each of its QoS entries, and each flow asks by itself under an id of its own:
//! several requests for one destination may be under way at once, and each gets an answer. The server asks one question
//! at a time. Its answer is for all requests that ask the same; a request with other extensions of MPOA (another
//! service category) becomes the next question. Source: Tampere thesis (1999) §6.1.3, one Resolution Request for each
//! flow.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

use aerostat_wire::nhrp::{Extension, Packet};
use aerostat_wire::{AtmAddress, mpoa};

use super::Limits;

/// An ATM address that names the requester, and the destination.
pub(super) type WaitKey = (AtmAddress, IpAddr);

/// A request, and the peer that sent it.
#[derive(Clone, Debug)]
pub(super) struct Question {
    pub(super) packet: Packet,
    pub(super) from: AtmAddress,
}

/// Requests that wait, in the order of their arrival.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    queues: BTreeMap<WaitKey, VecDeque<Question>>,
    len: usize,
}

impl Waiting {
    /// Adds a request. Gives it back if there is no room: for this destination, for this requester, or at all.
    pub(super) fn add(
        &mut self,
        key: WaitKey,
        question: Question,
        limits: &Limits,
    ) -> Result<(), Box<Question>> {
        let first = (key.0, IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED));
        let of_requester = self.queues.range(first..).take_while(|(k, _)| k.0 == key.0);
        let of_requester: usize = of_requester.map(|(_, queue)| queue.len()).sum();
        let queued = self.queues.get(&key).map_or(0, VecDeque::len);
        let room = queued < limits.waiting
            && of_requester < limits.ingress_per_mpc
            && self.len < limits.requests;
        if !room {
            return Err(Box::new(question));
        }
        self.queues.entry(key).or_default().push_back(question);
        self.len += 1;
        Ok(())
    }
    /// True if this very request waits already: the requester sent it again.
    pub(super) fn has(&self, key: &WaitKey, request: &Packet) -> bool {
        let queue = self.queues.get(key);
        queue.is_some_and(|queue| queue.iter().any(|other| is_same(&other.packet, request)))
    }
    /// Takes the requests that the answer to `answered` serves, too.
    pub(super) fn take_served(&mut self, key: &WaitKey, answered: &Packet) -> Vec<Packet> {
        let Some(queue) = self.queues.remove(key) else {
            return Vec::new();
        };
        let (served, rest): (VecDeque<_>, VecDeque<_>) =
            (queue.into_iter()).partition(|other| asks_the_same(&other.packet, answered));
        self.len -= served.len();
        if !rest.is_empty() {
            self.queues.insert(*key, rest);
        }
        served.into_iter().map(|question| question.packet).collect()
    }
    /// Takes the request that has waited for longest.
    pub(super) fn next(&mut self, key: &WaitKey) -> Option<Question> {
        let queue = self.queues.get_mut(key)?;
        let next = queue.pop_front();
        if queue.is_empty() {
            self.queues.remove(key);
        }
        self.len -= usize::from(next.is_some());
        next
    }
    /// Takes all requests of a key.
    pub(super) fn end(&mut self, key: &WaitKey) -> VecDeque<Question> {
        let gone = self.queues.remove(key).unwrap_or_default();
        self.len -= gone.len();
        gone
    }
    /// True if no request waits. For tests.
    #[cfg(test)]
    pub(super) const fn is_empty(&self) -> bool {
        self.len == 0
    }
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// True for a request that was sent again: source and id of a request are its name (RFC 2332 §5.2.0.1).
pub(super) fn is_same(one: &Packet, other: &Packet) -> bool {
    let name = |packet: &Packet| {
        let common = packet.common()?;
        let source = (common.source_nbma.clone(), common.source.clone());
        Some((source, common.request_id))
    };
    name(one) == name(other)
}

/// True if one answer serves both requests: they differ only in the id, and in what NHRP servers added on the way.
fn asks_the_same(one: &Packet, other: &Packet) -> bool {
    let (Some(a), Some(b)) = (one.common(), other.common()) else {
        return false;
    };
    let asked = |packet: &Packet| -> Vec<Extension> {
        let all = packet.extensions.iter().flatten();
        let known = all.filter(|extension| mpoa::ext::known(extension.kind()));
        known.cloned().collect()
    };
    a.flags == b.flags
        && a.cies == b.cies
        && (&a.source_nbma, &a.source) == (&b.source_nbma, &b.source)
        && a.destination == b.destination
        && one.protocol == other.protocol
        && asked(one) == asked(other)
}
