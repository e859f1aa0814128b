//! ARP of one interface: who is where, who is being asked, and what waits for the answer (RFC 826).
//!
//! States of a neighbour: *asked* (requests by broadcast until an answer or
//! [`ArpParams::attempts`]) and *known* (until [`ArpParams::ageing`] after it was last heard; if it
//! was used in that time it is asked again, by unicast, and stays in use meanwhile). Neighbours of IPv6 (`six`) live by
//! the same table.

use super::engine::Job;
use super::packet::{Class, address, class};
use aerostat_proto::{Duration, Instant};
use smoltcp::wire::{ArpOperation, ArpPacket, ArpRepr, EthernetAddress, EthernetProtocol};
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;

const ETHERNET_HEADER: usize = 14;

/// Timers and limits of ARP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArpParams {
    /// Time between requests (RFC 1122 §2.3.2.1: at most one per second); not 0.
    pub retry: Duration,
    /// Requests before a neighbour counts as unreachable, at least 1.
    pub attempts: u32,
    /// How long a neighbour is known after it was last heard; not 0.
    pub ageing: Duration,
    /// Packets that may wait for one neighbour; beyond that the oldest is dropped.
    pub pending: usize,
    /// Neighbours of one interface, known or asked.
    pub neighbours: usize,
    /// Questions of the MPOA server that may wait for one neighbour.
    pub questions: usize,
}

impl Default for ArpParams {
    /// One second, 3 requests, 5 minutes; 16 packets, 1024 neighbours, 64 questions.
    fn default() -> Self {
        Self {
            retry: Duration::from_secs(1),
            attempts: 3,
            ageing: Duration::from_secs(300),
            pending: 16,
            neighbours: 1024,
            questions: 64,
        }
    }
}

/// What the table wants done.
#[derive(Debug)]
pub(super) enum ArpEvent<A = Ipv4Addr> {
    /// Send a request: by broadcast, or to the address known so far.
    Ask { address: A, known: Option<[u8; 6]> },
    /// Tell of a change.
    Changed { address: A, mac: Option<[u8; 6]> },
    /// Send a packet that has waited, or drop it.
    Release {
        address: A,
        job: Job,
        mac: Option<[u8; 6]>,
    },
    /// Drop a packet: too many wait.
    Overflow(Job),
    /// Answer a question.
    Answer {
        token: u64,
        address: A,
        mac: Option<[u8; 6]>,
    },
}

#[derive(Debug)]
struct Neighbour {
    mac: Option<[u8; 6]>,
    /// A known neighbour that is not asked: when it ages. Otherwise: when to ask again or give up.
    due: Instant,
    /// Requests sent without an answer.
    asked: u32,
    /// Since it was last heard.
    used: bool,
    pending: VecDeque<Job>,
    questions: Vec<u64>,
}

/// The neighbours of one interface.
#[derive(Debug)]
pub(super) struct Neighbours<A = Ipv4Addr> {
    params: ArpParams,
    table: BTreeMap<A, Neighbour>,
    events: VecDeque<ArpEvent<A>>,
    /// Not later than the earliest due time; saves walking the table.
    next: Option<Instant>,
}

impl<A: Copy + Ord> Neighbours<A> {
    pub(super) fn new(mut params: ArpParams) -> Self {
        // Zero would ask without end at one instant.
        params.retry = params.retry.max(Duration::from_millis(1));
        params.ageing = params.ageing.max(Duration::from_millis(1));
        Self {
            params,
            table: BTreeMap::new(),
            events: VecDeque::new(),
            next: None,
        }
    }

    pub(super) fn known(&self) -> impl Iterator<Item = (A, [u8; 6])> {
        self.table
            .iter()
            .filter_map(|(address, n)| n.mac.map(|mac| (*address, mac)))
    }

    /// The hardware address, if known; the entry then counts as used.
    pub(super) fn lookup(&mut self, address: A) -> Option<[u8; 6]> {
        let neighbour = self.table.get_mut(&address)?;
        neighbour.used = true;
        neighbour.mac
    }

    /// Lets a packet wait for a neighbour that is not known; `Err` if the table is full.
    pub(super) fn wait(&mut self, address: A, job: Job, now: Instant) -> Result<(), Job> {
        let limit = self.params.pending;
        if !self.begin(address, now) {
            return Err(job);
        }
        if let Some(neighbour) = self.table.get_mut(&address) {
            neighbour.pending.push_back(job);
            if neighbour.pending.len() > limit
                && let Some(oldest) = neighbour.pending.pop_front()
            {
                self.events.push_back(ArpEvent::Overflow(oldest));
            }
        }
        Ok(())
    }

    /// A question of the MPOA server.
    pub(super) fn ask(&mut self, token: u64, address: A, now: Instant) {
        if let Some(mac) = self.lookup(address) {
            return self.events.push_back(ArpEvent::Answer {
                token,
                address,
                mac: Some(mac),
            });
        }
        let limit = self.params.questions;
        if self.begin(address, now)
            && let Some(neighbour) = self.table.get_mut(&address)
            && neighbour.questions.len() < limit
        {
            neighbour.questions.push(token);
        } else {
            self.events.push_back(ArpEvent::Answer {
                token,
                address,
                mac: None,
            });
        }
    }

    /// Makes sure that a neighbour is being asked; false if there is no room for it.
    fn begin(&mut self, address: A, now: Instant) -> bool {
        if self.table.contains_key(&address) {
            return true;
        }
        if self.table.len() >= self.params.neighbours {
            return false;
        }
        let neighbour = Neighbour {
            mac: None,
            due: now + self.params.retry,
            asked: 1,
            used: true,
            pending: VecDeque::new(),
            questions: Vec::new(),
        };
        self.note(neighbour.due);
        self.table.insert(address, neighbour);
        self.events.push_back(ArpEvent::Ask {
            address,
            known: None,
        });
        true
    }

    /// Somebody says where `address` is; `create`: an entry may be made for it.
    pub(super) fn learn(&mut self, address: A, mac: [u8; 6], create: bool, now: Instant) {
        if !self.table.contains_key(&address) && (!create || !self.make_room()) {
            return;
        }
        let due = now + self.params.ageing;
        let neighbour = self.table.entry(address).or_insert_with(|| Neighbour {
            mac: None,
            due,
            asked: 0,
            used: false,
            pending: VecDeque::new(),
            questions: Vec::new(),
        });
        let changed = neighbour.mac.replace(mac) != Some(mac);
        (neighbour.due, neighbour.asked) = (due, 0);
        let pending = core::mem::take(&mut neighbour.pending);
        let questions = core::mem::take(&mut neighbour.questions);
        neighbour.used = !pending.is_empty() || !questions.is_empty();
        self.note(due);
        if changed {
            self.events.push_back(ArpEvent::Changed {
                address,
                mac: Some(mac),
            });
        }
        self.release(address, pending, questions, Some(mac));
    }

    /// Whether there is room for one more; a neighbour that nobody used makes way.
    fn make_room(&mut self) -> bool {
        if self.table.len() < self.params.neighbours {
            return true;
        }
        let idle = self.table.iter().find(|(_, n)| n.mac.is_some() && !n.used);
        match idle.map(|(address, _)| *address) {
            Some(address) => {
                self.table.remove(&address);
                self.events
                    .push_back(ArpEvent::Changed { address, mac: None });
                true
            }
            None => false,
        }
    }

    fn release(
        &mut self,
        address: A,
        pending: VecDeque<Job>,
        questions: Vec<u64>,
        mac: Option<[u8; 6]>,
    ) {
        let packets = pending
            .into_iter()
            .map(|job| ArpEvent::Release { address, job, mac });
        self.events.extend(packets);
        let answers = questions.into_iter().map(|token| ArpEvent::Answer {
            token,
            address,
            mac,
        });
        self.events.extend(answers);
    }

    /// Asks again, ages, and gives up.
    pub(super) fn timeout(&mut self, now: Instant) {
        if self.next.is_none_or(|next| next > now) {
            return;
        }
        let due = self.table.iter().filter(|(_, n)| n.due <= now);
        let due: Vec<A> = due.map(|(address, _)| *address).collect();
        for address in due {
            self.overdue(address, now);
        }
        self.next = self.table.values().map(|n| n.due).min();
    }

    fn overdue(&mut self, address: A, now: Instant) {
        let params = self.params;
        let Some(neighbour) = self.table.get_mut(&address) else {
            return;
        };
        let idle = neighbour.mac.is_some() && !neighbour.used && neighbour.asked == 0;
        if !idle && neighbour.asked < params.attempts {
            neighbour.asked += 1;
            neighbour.due = now + params.retry;
            let known = neighbour.mac;
            self.events.push_back(ArpEvent::Ask { address, known });
        } else if let Some(gone) = self.table.remove(&address) {
            if gone.mac.is_some() {
                self.events
                    .push_back(ArpEvent::Changed { address, mac: None });
            }
            self.release(address, gone.pending, gone.questions, None);
        }
    }

    fn note(&mut self, due: Instant) {
        self.next = Some(self.next.map_or(due, |next| next.min(due)));
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.next
    }

    pub(super) fn poll_event(&mut self) -> Option<ArpEvent<A>> {
        self.events.pop_front()
    }
}

/// What an ARP packet says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arp {
    pub(super) is_request: bool,
    pub(super) sender: Ipv4Addr,
    pub(super) sender_mac: [u8; 6],
    pub(super) target: Ipv4Addr,
}

/// A request or reply from a possible sender.
pub(super) fn parse(payload: &[u8]) -> Option<Arp> {
    let packet = ArpPacket::new_checked(payload).ok()?;
    let ArpRepr::EthernetIpv4 {
        operation,
        source_hardware_addr,
        source_protocol_addr,
        target_protocol_addr,
        ..
    } = ArpRepr::parse(&packet).ok()?
    else {
        return None;
    };
    let is_request = match operation {
        ArpOperation::Request => true,
        ArpOperation::Reply => false,
        ArpOperation::Unknown(_) => return None,
    };
    let possible =
        class(source_protocol_addr) == Class::Unicast && source_hardware_addr.is_unicast();
    possible.then_some(Arp {
        is_request,
        sender: source_protocol_addr,
        sender_mac: source_hardware_addr.0,
        target: target_protocol_addr,
    })
}

/// The frame of a request, to everybody or to the address known so far.
pub(super) fn request(
    mac: [u8; 6],
    own: Ipv4Addr,
    known: Option<[u8; 6]>,
    target: Ipv4Addr,
) -> Vec<u8> {
    frame(
        ArpOperation::Request,
        (mac, own),
        (known.unwrap_or([0; 6]), target),
        known,
    )
}

/// The frame of a reply.
pub(super) fn reply(mac: [u8; 6], own: Ipv4Addr, to: [u8; 6], asker: Ipv4Addr) -> Vec<u8> {
    frame(ArpOperation::Reply, (mac, own), (to, asker), Some(to))
}

fn frame(
    operation: ArpOperation,
    source: ([u8; 6], Ipv4Addr),
    target: ([u8; 6], Ipv4Addr),
    to: Option<[u8; 6]>,
) -> Vec<u8> {
    let repr = ArpRepr::EthernetIpv4 {
        operation,
        source_hardware_addr: EthernetAddress(source.0),
        source_protocol_addr: source.1,
        target_hardware_addr: EthernetAddress(target.0),
        target_protocol_addr: target.1,
    };
    let mut frame = vec![0; ETHERNET_HEADER + repr.buffer_len()];
    address(
        &mut frame,
        to.unwrap_or([0xff; 6]),
        source.0,
        EthernetProtocol::Arp,
    );
    repr.emit(&mut ArpPacket::new_unchecked(&mut frame[ETHERNET_HEADER..]));
    frame
}
