//! Loopback requests of a station, for those who test a connection: when each was sent, and when it came back.
//!
//! Standards: I.610 §10.2 (F5 loopback). A request is forgotten when 256 later ones were sent.

use super::Station;
use crate::atm::DropReason;
use aerostat_proto::{Duration, Instant, Refused};
use aerostat_wire::Vc;
use std::collections::VecDeque;

/// Requests that a station remembers; the oldest gives its place to a new one.
const MOST: usize = 256;

/// One request.
#[derive(Clone, Copy, Debug)]
struct Loopback {
    tag: u32,
    vc: Vc,
    sent: Instant,
    returned: Option<Instant>,
}

/// Requests, the newest last.
#[derive(Debug, Default)]
pub(super) struct Loopbacks {
    tags: u32,
    requests: VecDeque<Loopback>,
}

impl Loopbacks {
    /// An answer has come back. Answers to no request, and further answers to one, change nothing.
    pub(super) fn returned(&mut self, vc: Vc, tag: u32, now: Instant) {
        let mut requests = self.requests.iter_mut();
        let found = requests.find(|request| request.tag == tag && request.vc == vc);
        if let Some(request) = found {
            request.returned.get_or_insert(now);
        }
    }
}

impl Station {
    /// Sends a loopback request on a connection; returns its tag. With `segment` the other end of the link answers,
    /// otherwise the other end of the connection.
    ///
    /// # Errors
    /// The label is not open for sending, the link is down, or the queue has no room.
    pub fn loopback(&mut self, vc: Vc, segment: bool, now: Instant) -> Result<u32, Refused> {
        self.catch_up(now);
        let tag = self.loopbacks.tags.wrapping_add(1);
        let admission = self.nic.ping(vc, segment, tag, now);
        let admission = admission.ok_or(Refused("no connection is open with this label"))?;
        if admission.accepted == 0 {
            return Err(Refused(match admission.reason {
                Some(DropReason::LinkDown) => "the link is down",
                _ => "the queue of the connection has no room",
            }));
        }
        self.loopbacks.tags = tag;
        if self.loopbacks.requests.len() >= MOST {
            self.loopbacks.requests.pop_front();
        }
        self.loopbacks.requests.push_back(Loopback {
            tag,
            vc,
            sent: now,
            returned: None,
        });
        Ok(tag)
    }

    /// Round-trip time of the request with this tag, `Some(None)` while it has no answer; `None` if there is no such
    /// request, or it was forgotten.
    #[must_use]
    pub fn loopback_time(&self, tag: u32) -> Option<Option<Duration>> {
        let mut requests = self.loopbacks.requests.iter();
        let request = requests.find(|request| request.tag == tag)?;
        Some(request.returned.map(|at| at.since(request.sent)))
    }
}
