//! States 6 to 9: resynchronisation requested by the peer, and recovery from protocol errors.
//!
//! Each arm is a transition of the SDL diagrams of Q.2110 §8.2; `table.rs` has all of them as a table.

use super::{Event, Indication, NOT_NOW, Request, Sscop, State};
use crate::{Instant, Refused};
use aerostat_wire::SscopPdu as Pdu;

impl Sscop {
    /// State 6, Incoming Resync Pending.
    pub(super) fn incoming_resync(&mut self, event: Event, now: Instant) -> Result<(), Refused> {
        match event {
            Event::Request(Request::ResyncResponse) => {
                let mr = self.init_mr();
                self.send(&Pdu::ResyncAck { mr });
                self.clear_buffers();
                self.enter_ready(now);
            }
            Event::Request(Request::Release(uu)) => self.release(uu, now),
            Event::Request(Request::Retrieve(from)) => self.retrieve(from),
            Event::Request(_) => return Err(NOT_NOW),
            Event::CcExpiry => {}
            Event::Pdu(pdu) => match pdu {
                Pdu::Resync { sq, .. } => {
                    if self.is_new(sq) {
                        self.unexpected(&pdu);
                    }
                }
                Pdu::Begin { .. }
                | Pdu::BeginReject { .. }
                | Pdu::End { .. }
                | Pdu::EndAck
                | Pdu::BeginAck { .. } => self.connection_pdu(pdu),
                Pdu::ResyncAck { .. } | Pdu::Recover { .. } | Pdu::RecoverAck { .. } => {
                    self.unexpected(&pdu);
                }
                Pdu::Data { .. } | Pdu::Poll { .. } | Pdu::Stat { .. } | Pdu::Ustat { .. } => {
                    self.unexpected(&pdu);
                    self.give_up();
                }
                Pdu::UnitData { .. } | Pdu::ManagementData { .. } => {}
            },
        }
        Ok(())
    }

    /// State 7, Outgoing Recovery Pending.
    pub(super) fn outgoing_recovery(&mut self, event: Event, now: Instant) -> Result<(), Refused> {
        match event {
            Event::Request(Request::Resync(uu)) => self.resync(uu, now),
            Event::Request(Request::Release(uu)) => self.release(uu, now),
            // Sent after the recovery, behind messages that were waiting already (BR = no).
            Event::Request(Request::Data(message)) => return self.enqueue(message),
            Event::Request(_) => return Err(NOT_NOW),
            Event::CcExpiry => {
                if self.try_again(now) {
                    let (sq, mr) = (self.vt_sq, self.rx.vr_mr);
                    self.send(&Pdu::Recover { sq, mr });
                } else {
                    self.give_up();
                }
            }
            Event::Pdu(pdu) => match pdu {
                Pdu::Begin { .. }
                | Pdu::BeginReject { .. }
                | Pdu::End { .. }
                | Pdu::EndAck
                | Pdu::BeginAck { .. } => self.connection_pdu(pdu),
                Pdu::Resync { .. } => self.peer_resyncs(pdu),
                Pdu::ResyncAck { .. } => self.unexpected(&pdu),
                // Both ends found an error at the same time: each answers and has recovered.
                Pdu::Recover { sq, mr } => {
                    if self.is_new(sq) {
                        self.tx.vt_ms = mr;
                        let mr = self.init_mr();
                        self.send(&Pdu::RecoverAck { mr });
                        self.recovered();
                    } else {
                        self.unexpected(&pdu);
                    }
                }
                Pdu::RecoverAck { mr } => {
                    self.tx.vt_ms = mr;
                    self.recovered();
                }
                // The peer has sent these before it saw the ER.
                Pdu::Data { .. }
                | Pdu::Poll { .. }
                | Pdu::Stat { .. }
                | Pdu::Ustat { .. }
                | Pdu::UnitData { .. }
                | Pdu::ManagementData { .. } => {}
            },
        }
        Ok(())
    }

    /// State 8, Recovery Response Pending.
    pub(super) fn recovery_response(&mut self, event: Event, now: Instant) -> Result<(), Refused> {
        match event {
            Event::Request(Request::RecoverResponse) => self.enter_ready(now),
            Event::Request(Request::Resync(uu)) => self.resync(uu, now),
            Event::Request(Request::Release(uu)) => self.release(uu, now),
            Event::Request(Request::Data(message)) => return self.enqueue(message),
            Event::Request(Request::Retrieve(from)) => self.retrieve(from),
            Event::Request(_) => return Err(NOT_NOW),
            Event::CcExpiry => {}
            Event::Pdu(pdu) => match pdu {
                Pdu::Begin { .. }
                | Pdu::BeginReject { .. }
                | Pdu::End { .. }
                | Pdu::EndAck
                | Pdu::BeginAck { .. } => self.connection_pdu(pdu),
                Pdu::Resync { .. } => self.peer_resyncs(pdu),
                Pdu::ResyncAck { .. } => self.unexpected(&pdu),
                Pdu::Recover { sq, .. } => {
                    if self.is_new(sq) {
                        self.unexpected(&pdu);
                    } else {
                        let mr = self.rx.vr_mr;
                        self.send(&Pdu::RecoverAck { mr });
                    }
                }
                Pdu::Stat { .. } | Pdu::Ustat { .. } => {
                    self.unexpected(&pdu);
                    self.give_up();
                }
                Pdu::RecoverAck { .. }
                | Pdu::Data { .. }
                | Pdu::Poll { .. }
                | Pdu::UnitData { .. }
                | Pdu::ManagementData { .. } => {}
            },
        }
        Ok(())
    }

    /// State 9, Incoming Recovery Pending.
    pub(super) fn incoming_recovery(&mut self, event: Event, now: Instant) -> Result<(), Refused> {
        match event {
            Event::Request(Request::RecoverResponse) => {
                let mr = self.init_mr();
                self.send(&Pdu::RecoverAck { mr });
                self.enter_ready(now);
            }
            Event::Request(Request::Resync(uu)) => self.resync(uu, now),
            Event::Request(Request::Release(uu)) => self.release(uu, now),
            Event::Request(Request::Data(message)) => return self.enqueue(message),
            Event::Request(Request::Retrieve(from)) => self.retrieve(from),
            Event::Request(_) => return Err(NOT_NOW),
            Event::CcExpiry => {}
            Event::Pdu(pdu) => match pdu {
                Pdu::Begin { .. }
                | Pdu::BeginReject { .. }
                | Pdu::End { .. }
                | Pdu::EndAck
                | Pdu::BeginAck { .. } => self.connection_pdu(pdu),
                Pdu::Resync { .. } => self.peer_resyncs(pdu),
                Pdu::ResyncAck { .. } | Pdu::RecoverAck { .. } => self.unexpected(&pdu),
                Pdu::Recover { sq, .. } => {
                    if self.is_new(sq) {
                        self.unexpected(&pdu);
                    }
                }
                Pdu::Data { .. } | Pdu::Poll { .. } | Pdu::Stat { .. } | Pdu::Ustat { .. } => {
                    self.unexpected(&pdu);
                    self.give_up();
                }
                Pdu::UnitData { .. } | Pdu::ManagementData { .. } => {}
            },
        }
        Ok(())
    }

    /// BGN, BGAK, BGREJ, END and ENDAK, which states 6 to 9 treat alike.
    fn connection_pdu(&mut self, pdu: Pdu) {
        match pdu {
            Pdu::Begin { sq, mr, ref uu } => {
                if self.is_new(sq) {
                    self.replaced_by(mr, uu.clone());
                } else {
                    self.unexpected(&pdu);
                }
            }
            Pdu::End { by_sscop, uu } => self.ended(by_sscop, uu),
            Pdu::BeginReject { .. } | Pdu::EndAck => self.unexpected_end(&pdu),
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
            | Pdu::ManagementData { .. } => self.unexpected(&pdu),
        }
    }

    /// RS in states 7 to 9.
    fn peer_resyncs(&mut self, pdu: Pdu) {
        let Pdu::Resync { sq, mr, ref uu } = pdu else {
            return;
        };
        if self.is_new(sq) {
            self.resync_offered(mr, uu.clone());
        } else {
            self.unexpected(&pdu);
        }
    }
    /// A new RS: state 6.
    pub(super) fn resync_offered(&mut self, mr: aerostat_wire::Seq24, uu: Vec<u8>) {
        self.prepare_retrieval();
        self.tx.vt_ms = mr;
        self.tell(Indication::Resync(uu));
        self.state = State::IncomingResyncPending;
    }
    /// Our ER is answered, or crossed the peer's: state 8.
    fn recovered(&mut self) {
        self.timers.stop_all();
        self.deliver_rest();
        self.tell(Indication::Recover);
        self.state = State::RecoveryResponsePending;
    }
}
