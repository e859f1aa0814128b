//! A LES of an ELAN that has several: it reports to the LECS, and learns from the answer which LES serves.

use super::Les;
use crate::lane::lecs::REPORT;
use crate::retry::Backoff;
use crate::{AtmEvent, AtmRequest, Cause, ConnId, Duration, Instant, Trace};
use aerostat_wire::lane::{CONTROL_SDU, Control, ControlFrame, OpCode, Status};
use aerostat_wire::{AtmAddress, Qos, Sap};

/// The connection with the LECS; the only other calls of a LES are those of its tree, which count from 0.
const CONN: ConnId = ConnId(ConnId::INCOMING - 1);
/// Longest time from a failed call to the next.
const RETRY: Duration = Duration::from_secs(5);

/// The report to the LECS.
#[derive(Debug)]
pub(super) struct Standby {
    lecs: AtmAddress,
    link: Link,
    backoff: Backoff,
    /// The next call or report.
    pub(super) due: Option<Instant>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    Down,
    Calling,
    Up,
}

impl Standby {
    /// `own` is the address of the LES.
    pub(super) fn new(lecs: AtmAddress, own: AtmAddress) -> Self {
        Self {
            lecs,
            link: Link::Down,
            backoff: Backoff::of(&own),
            due: None,
        }
    }
}

impl Les {
    /// Begins to report, or goes on.
    pub(super) fn report(&mut self, now: Instant) {
        let address = self.config.address;
        let Some(standby) = &mut self.standby else {
            return;
        };
        match standby.link {
            Link::Calling => {}
            Link::Down => {
                standby.link = Link::Calling;
                standby.due = None;
                let called = standby.lecs;
                self.request(AtmRequest::Connect {
                    conn: CONN,
                    calling: address,
                    called,
                    sap: Sap::LANE_CONTROL,
                    qos: Qos::ubr(CONTROL_SDU),
                    multipoint: false,
                });
            }
            Link::Up => {
                standby.due = Some(now + REPORT);
                let mut frame = ControlFrame::new(OpCode::CONFIGURE);
                frame.source_atm = address;
                frame.elan = self.config.elan;
                let sdu = frame.encode();
                self.request(AtmRequest::Send { conn: CONN, sdu });
            }
        }
    }

    pub(super) fn stop_reporting(&mut self) {
        if let Some(standby) = &mut self.standby {
            standby.due = None;
            if core::mem::replace(&mut standby.link, Link::Down) != Link::Down {
                let cause = Cause::NORMAL;
                self.request(AtmRequest::Release { conn: CONN, cause });
            }
        }
    }

    /// An event of the connection with the LECS; false if the event is about another connection.
    pub(super) fn standby_event(&mut self, event: &AtmEvent<&[u8]>, now: Instant) -> bool {
        let Some(standby) = &mut self.standby else {
            return false;
        };
        match *event {
            AtmEvent::Connected { conn: CONN, .. } => {
                standby.link = Link::Up;
                standby.backoff.reset();
                self.report(now);
            }
            AtmEvent::Released { conn: CONN, cause } => {
                standby.link = Link::Down;
                let wait = standby.backoff.wait(Some(cause), Duration::ZERO, RETRY);
                standby.due = self.running.then_some(now + wait);
            }
            AtmEvent::Received { conn: CONN, sdu } => match Control::decode(sdu) {
                Ok(Control::Frame(frame)) if frame.op == OpCode::CONFIGURE.response() => {
                    self.role(&frame, now);
                }
                Ok(_) | Err(_) => self.counters.bad += 1,
            },
            _ => return false,
        }
        true
    }

    /// The LECS says which LES serves. If another LES serves, this LES releases its clients, which then ask the LECS
    /// again.
    fn role(&mut self, frame: &ControlFrame, now: Instant) {
        let own = frame.target_atm == self.config.address;
        if frame.status != Status::SUCCESS || own || self.clients.is_empty() {
            return;
        }
        let text = format!("{} serves ELAN {} now", frame.target_atm, self.config.elan);
        let trace = Trace::milestone("les.stands-by", text).with("elan", self.config.elan);
        self.out.push_back(super::Output::Trace(trace));
        for conn in self.clients.keys().copied().collect::<Vec<_>>() {
            self.drop_client(conn, true, now);
        }
    }
}
