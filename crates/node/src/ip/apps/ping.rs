//! ICMP echo: reachability of a host, and its round-trip time.

use super::{AppResult, Net, Offer, Program, SHORT_STAMP, Stamp};
use crate::distribution::{Distribution, Summary};
use crate::ip::books::Refusal;
use crate::ip::icmp::Echo;
use crate::ip::meter::PacketKey;
use crate::rate::PacketRate;
use aerostat_proto::{Duration, Instant};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// How long to wait for a reply after the last request.
const LAST_WAIT: Duration = Duration::from_secs(1);
/// Limit of requests without a reply that are remembered; beyond it the oldest one is abandoned and counted. It is far
/// above what a network of the largest delays and rates holds, since requests whose replies are lost stay here.
const MAX_OUTSTANDING: usize = 1 << 20;
/// Time to live of requests (RFC 1700).
const TIME_TO_LIVE: u8 = 64;

/// Results of a ping.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PingResult {
    /// Requests made.
    pub sent: u64,
    /// Requests that the host refused. They are counted in `sent`.
    pub not_sent: u64,
    /// Replies to requests, each counted once.
    pub received: u64,
    /// Replies to requests that were already answered or abandoned.
    pub duplicates: u64,
    /// Requests without a reply that were abandoned, because too many of them were remembered.
    pub abandoned: u64,
    /// Round-trip times from the making of the request, including any wait for ARP.
    pub rtt: Summary,
}

pub(super) struct Ping {
    to: Ipv4Addr,
    ident: u16,
    count: Option<u32>,
    rate: PacketRate,
    size: usize,
    ttl: Option<u8>,
    open: bool,
    /// The original start time, if the host has restarted since.
    resumed: Option<Instant>,
    /// The time from which requests are due at the rate.
    start: Instant,
    /// Number of the next of these requests, counted from 0, and its time.
    index: u64,
    next: Instant,
    outstanding: BTreeMap<u64, Instant>,
    give_up: Option<Instant>,
    done: bool,
    rtt: Distribution,
    result: PingResult,
}

impl Ping {
    pub(super) fn new(
        to: Ipv4Addr,
        ident: u16,
        count: Option<u32>,
        rate: PacketRate,
        size: usize,
        ttl: Option<u8>,
    ) -> Self {
        Self {
            to,
            ident,
            count,
            rate,
            size,
            ttl,
            open: false,
            resumed: None,
            start: Instant::ZERO,
            index: 0,
            next: Instant::ZERO,
            outstanding: BTreeMap::new(),
            give_up: None,
            done: false,
            rtt: Distribution::default(),
            result: PingResult::default(),
        }
    }

    /// True if all requests have been made.
    fn all_sent(&self, now: Instant, end: Option<Instant>) -> bool {
        self.count
            .is_some_and(|count| self.result.sent >= u64::from(count))
            || end.is_some_and(|end| now >= end)
    }

    fn request(&mut self, net: &mut Net<'_>, now: Instant) -> Offer {
        let sequence = self.result.sent;
        self.result.sent += 1;
        let mut data = vec![0x5a; self.size];
        let stamp = Stamp {
            flow: self.ident.into(),
            sequence,
            sent: now,
        };
        stamp.write(&mut data);
        let offer = Offer {
            key: PacketKey::Echo {
                ident: self.ident,
                sequence: match self.size {
                    ..SHORT_STAMP => u64::from(sequence as u16),
                    _ => sequence,
                },
            },
            payload: self.size as u32,
            refused: None,
        };
        let from = net.link.address_towards(self.to);
        let Some(from) = from.filter(|_| !self.to.is_unspecified()) else {
            self.result.not_sent += 1;
            let refused = Some(Refusal::Address);
            return Offer { refused, ..offer };
        };
        let request = Echo {
            is_request: true,
            ident: self.ident,
            sequence: sequence as u16,
            data: &data,
        };
        let time_to_live = self.ttl.unwrap_or(TIME_TO_LIVE);
        net.sent
            .push_back(request.packet(from, self.to, time_to_live));
        if self.outstanding.len() >= MAX_OUTSTANDING {
            self.outstanding.pop_first();
            self.result.abandoned += 1;
        }
        self.outstanding.insert(sequence, now);
        offer
    }
}

impl Program for Ping {
    fn open(&mut self, net: &mut Net<'_>, now: Instant) {
        net.pings.insert(self.ident, net.app);
        self.open = true;
        self.start = self.resumed.unwrap_or(now);
        self.index = self.rate.first_at(now - self.start);
        self.next = self.start + self.rate.after(self.index);
    }

    fn run(&mut self, net: &mut Net<'_>, now: Instant, end: Option<Instant>) -> bool {
        if !self.open {
            return false;
        }
        while now >= self.next && !self.all_sent(now, end) {
            let offer = self.request(net, now);
            net.offers.push(offer);
            self.index += 1;
            self.next = self.start + self.rate.after(self.index);
            if self.next <= now {
                // The request is late by more than an interval (a live host was stopped): do not send a burst.
                (self.start, self.index) = (now, 1);
                self.next = now + self.rate.after(1);
            }
        }
        if self.all_sent(now, end) {
            let give_up = *self.give_up.get_or_insert(now + LAST_WAIT);
            if self.outstanding.is_empty() || now >= give_up {
                self.close(net, now);
            }
        }
        false
    }

    fn hear_echo(&mut self, echo: &Echo<'_>, from: Ipv4Addr, now: Instant) {
        if from != self.to {
            return;
        }
        // Without a stamp, the 16 bits of the packet stand for the newest request with these low bits.
        let newest = self.result.sent.saturating_sub(1);
        let back = (newest as u16).wrapping_sub(echo.sequence);
        let stamp = Stamp::decode(echo.data).filter(|stamp| stamp.sequence as u16 == echo.sequence);
        let sequence = match stamp {
            Some(stamp) => Some(stamp.sequence),
            None => newest.checked_sub(u64::from(back)),
        };
        let sent = sequence.and_then(|sequence| self.outstanding.remove(&sequence));
        match sent {
            Some(sent) => {
                self.result.received += 1;
                self.rtt.record(now - sent);
            }
            None => self.result.duplicates += 1,
        }
    }

    fn deadline(&self) -> Option<Instant> {
        self.open.then_some(())?;
        Some(self.give_up.unwrap_or(self.next))
    }

    fn is_done(&self) -> bool {
        self.done
    }

    fn close(&mut self, net: &mut Net<'_>, _: Instant) {
        if std::mem::take(&mut self.open) {
            net.pings.remove(&self.ident);
        }
        self.done = true;
    }

    fn result(&self) -> AppResult {
        AppResult::Ping(PingResult {
            rtt: self.rtt.summary(),
            ..self.result
        })
    }

    fn closes_at_end(&self) -> bool {
        false
    }

    fn resume(&mut self, start: Instant) {
        self.resumed = Some(start);
    }
}
