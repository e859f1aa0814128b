//! States 1 to 5: no connection, or a connection that is being set up, released or resynchronised.
//!
//! Each arm is a transition of the SDL diagrams of Q.2110 §8.2; `table.rs` has all of them as a table.

use super::{Event, Indication, NOT_NOW, Request, Source, Sscop, State, Timer};
use crate::{Instant, Refused};
use aerostat_wire::SscopPdu as Pdu;

impl Sscop {
    /// State 1, Idle.
    pub(super) fn idle(&mut self, event: Event, now: Instant) -> Result<(), Refused> {
        match event {
            Event::Request(Request::Establish(uu, buffers)) => self.establish(uu, buffers, now),
            Event::Request(Request::Retrieve(from)) => self.retrieve(from),
            Event::Request(_) => return Err(NOT_NOW),
            Event::CcExpiry => {}
            Event::Pdu(pdu) => match pdu {
                Pdu::Begin { sq, mr, uu } => {
                    if self.is_new(sq) {
                        self.answer_uu.clear();
                        self.tx.vt_ms = mr;
                        self.tell(Indication::Establish(uu));
                        self.state = State::IncomingConnectionPending;
                    } else {
                        let uu = self.answer_uu.clone();
                        self.send(&Pdu::BeginReject { uu });
                    }
                }
                Pdu::End { .. } => self.send(&Pdu::EndAck),
                Pdu::EndAck => {}
                Pdu::BeginReject { .. } => self.unexpected(&pdu),
                Pdu::BeginAck { .. }
                | Pdu::Resync { .. }
                | Pdu::ResyncAck { .. }
                | Pdu::Recover { .. }
                | Pdu::RecoverAck { .. }
                | Pdu::Data { .. }
                | Pdu::Poll { .. }
                | Pdu::Stat { .. }
                | Pdu::Ustat { .. } => {
                    self.unexpected(&pdu);
                    self.send_end(true, Vec::new());
                }
                Pdu::UnitData { .. } | Pdu::ManagementData { .. } => {}
            },
        }
        Ok(())
    }

    /// State 2, Outgoing Connection Pending.
    pub(super) fn outgoing_connection(
        &mut self,
        event: Event,
        now: Instant,
    ) -> Result<(), Refused> {
        match event {
            Event::Request(Request::Release(uu)) => self.release(uu, now),
            Event::Request(_) => return Err(NOT_NOW),
            Event::CcExpiry => {
                if self.try_again(now) {
                    self.send_begin();
                } else {
                    self.give_up();
                }
            }
            Event::Pdu(pdu) => match pdu {
                // Two crossing BGNs: each side answers and is connected.
                Pdu::Begin { sq, mr, uu } => {
                    if self.is_new(sq) {
                        self.tx.vt_ms = mr;
                        self.init_mr();
                        self.send_begin_ack(Vec::new());
                        self.tell(Indication::Established(uu));
                        self.enter_ready(now);
                    }
                }
                Pdu::BeginAck { mr, uu } => {
                    self.tx.vt_ms = mr;
                    self.tell(Indication::Established(uu));
                    self.enter_ready(now);
                }
                Pdu::BeginReject { uu } => self.enter_idle(uu, Source::User),
                Pdu::End { .. }
                | Pdu::EndAck
                | Pdu::Resync { .. }
                | Pdu::ResyncAck { .. }
                | Pdu::Recover { .. }
                | Pdu::RecoverAck { .. }
                | Pdu::Data { .. }
                | Pdu::Poll { .. }
                | Pdu::Stat { .. }
                | Pdu::Ustat { .. }
                | Pdu::UnitData { .. }
                | Pdu::ManagementData { .. } => {}
            },
        }
        Ok(())
    }

    /// State 3, Incoming Connection Pending.
    pub(super) fn incoming_connection(
        &mut self,
        event: Event,
        now: Instant,
    ) -> Result<(), Refused> {
        match event {
            Event::Request(Request::EstablishResponse(uu, buffers)) => {
                self.clear_buffers();
                self.buffers = buffers;
                self.init_mr();
                self.answer_uu = uu;
                self.send_begin_ack(self.answer_uu.clone());
                self.enter_ready(now);
            }
            Event::Request(Request::Release(uu)) => {
                self.answer_uu.clone_from(&uu);
                self.send(&Pdu::BeginReject { uu });
                self.state = State::Idle;
            }
            Event::Request(Request::Retrieve(from)) => self.retrieve(from),
            Event::Request(_) => return Err(NOT_NOW),
            Event::CcExpiry => {}
            Event::Pdu(pdu) => match pdu {
                Pdu::Begin { sq, mr, uu } => {
                    if self.is_new(sq) {
                        self.replaced_by(mr, uu);
                    }
                }
                Pdu::BeginReject { .. } | Pdu::EndAck => self.unexpected_end(&pdu),
                Pdu::End { by_sscop, uu } => self.ended(by_sscop, uu),
                Pdu::BeginAck { .. }
                | Pdu::Resync { .. }
                | Pdu::ResyncAck { .. }
                | Pdu::Recover { .. }
                | Pdu::RecoverAck { .. } => self.unexpected(&pdu),
                Pdu::Data { .. } | Pdu::Poll { .. } | Pdu::Stat { .. } | Pdu::Ustat { .. } => {
                    self.unexpected(&pdu);
                    self.give_up();
                }
                Pdu::UnitData { .. } | Pdu::ManagementData { .. } => {}
            },
        }
        Ok(())
    }

    /// State 4, Outgoing Disconnection Pending.
    pub(super) fn outgoing_disconnection(
        &mut self,
        event: Event,
        now: Instant,
    ) -> Result<(), Refused> {
        match event {
            Event::Request(Request::Establish(uu, buffers)) => {
                self.stop(Timer::Cc);
                self.establish(uu, buffers, now);
            }
            Event::Request(Request::Retrieve(from)) => self.retrieve(from),
            Event::Request(_) => return Err(NOT_NOW),
            Event::CcExpiry => {
                if self.try_again(now) {
                    self.send_end(false, self.uu.clone());
                } else {
                    self.release_confirmed();
                }
            }
            Event::Pdu(pdu) => match pdu {
                Pdu::Begin { sq, mr, uu } => {
                    if self.is_new(sq) {
                        self.timers.stop_all();
                        self.tx.vt_ms = mr;
                        self.tell(Indication::ReleaseConfirmed);
                        self.tell(Indication::Establish(uu));
                        self.state = State::IncomingConnectionPending;
                    } else {
                        self.send_begin_ack(Vec::new());
                        self.send_end(false, self.uu.clone());
                    }
                }
                Pdu::BeginReject { .. } | Pdu::EndAck => self.release_confirmed(),
                Pdu::End { .. } => {
                    self.send(&Pdu::EndAck);
                    self.release_confirmed();
                }
                Pdu::BeginAck { .. }
                | Pdu::Resync { .. }
                | Pdu::ResyncAck { .. }
                | Pdu::Recover { .. }
                | Pdu::RecoverAck { .. }
                | Pdu::Data { .. }
                | Pdu::Poll { .. }
                | Pdu::Stat { .. }
                | Pdu::Ustat { .. }
                | Pdu::UnitData { .. }
                | Pdu::ManagementData { .. } => {}
            },
        }
        Ok(())
    }

    /// State 5, Outgoing Resync Pending.
    pub(super) fn outgoing_resync(&mut self, event: Event, now: Instant) -> Result<(), Refused> {
        match event {
            Event::Request(Request::Release(uu)) => self.release(uu, now),
            Event::Request(_) => return Err(NOT_NOW),
            Event::CcExpiry => {
                if self.try_again(now) {
                    let (sq, mr, uu) = (self.vt_sq, self.rx.vr_mr, self.uu.clone());
                    self.send(&Pdu::Resync { sq, mr, uu });
                } else {
                    self.give_up();
                }
            }
            Event::Pdu(pdu) => match pdu {
                Pdu::Begin { sq, mr, uu } => {
                    if self.is_new(sq) {
                        self.replaced_by(mr, uu);
                    } else {
                        self.send_begin_ack(self.answer_uu.clone());
                        let (sq, mr, uu) = (self.vt_sq, self.rx.vr_mr, self.uu.clone());
                        self.send(&Pdu::Resync { sq, mr, uu });
                    }
                }
                Pdu::BeginReject { .. } | Pdu::EndAck => self.unexpected_end(&pdu),
                Pdu::End { by_sscop, uu } => self.ended(by_sscop, uu),
                // Crossing RS: each side answers and is resynchronised.
                Pdu::Resync { sq, mr, .. } => {
                    if self.is_new(sq) {
                        self.tx.vt_ms = mr;
                        let mr = self.init_mr();
                        self.send(&Pdu::ResyncAck { mr });
                        self.tell(Indication::Resynced);
                        self.enter_ready(now);
                    }
                }
                Pdu::ResyncAck { mr } => {
                    self.tx.vt_ms = mr;
                    self.tell(Indication::Resynced);
                    self.enter_ready(now);
                }
                Pdu::BeginAck { .. }
                | Pdu::Recover { .. }
                | Pdu::RecoverAck { .. }
                | Pdu::Data { .. }
                | Pdu::Poll { .. }
                | Pdu::Stat { .. }
                | Pdu::Ustat { .. }
                | Pdu::UnitData { .. }
                | Pdu::ManagementData { .. } => {}
            },
        }
        Ok(())
    }

    /// "ENDAK/1": the peer ended the connection.
    pub(super) fn ended(&mut self, by_sscop: bool, uu: Vec<u8>) {
        self.send(&Pdu::EndAck);
        self.enter_idle(
            uu,
            if by_sscop {
                Source::Sscop
            } else {
                Source::User
            },
        );
    }
    /// "MAA/1": a PDU that the peer sends only without a connection.
    pub(super) fn unexpected_end(&mut self, pdu: &Pdu) {
        self.unexpected(pdu);
        self.enter_idle(Vec::new(), Source::Sscop);
    }
    fn release_confirmed(&mut self) {
        self.timers.stop_all();
        self.tell(Indication::ReleaseConfirmed);
        self.state = State::Idle;
    }
}
