//! State 10, Data Transfer Ready.

use super::{Event, Indication, NOT_NOW, Request, Sscop, State};
use crate::{Instant, Refused};
use aerostat_wire::SscopPdu as Pdu;

impl Sscop {
    /// State 10. Source: Q.2110 §8.2.
    pub(super) fn ready(&mut self, event: Event, now: Instant) -> Result<(), Refused> {
        match event {
            Event::Request(Request::Data(message)) => {
                self.enqueue(message)?;
                self.send_loop(now);
            }
            Event::Request(Request::Release(uu)) => self.release(uu, now),
            Event::Request(Request::Resync(uu)) => self.resync(uu, now),
            Event::Request(_) => return Err(NOT_NOW),
            Event::CcExpiry => {}
            Event::Pdu(pdu) => self.ready_pdu(pdu, now),
        }
        Ok(())
    }

    fn ready_pdu(&mut self, pdu: Pdu, now: Instant) {
        match pdu {
            Pdu::Begin { sq, mr, uu } => {
                if self.is_new(sq) {
                    self.replaced_by(mr, uu);
                } else {
                    self.restart_no_response(now);
                    self.send_begin_ack(self.answer_uu.clone());
                }
            }
            Pdu::BeginReject { .. } | Pdu::EndAck => self.unexpected_end(&pdu),
            Pdu::End { by_sscop, uu } => self.ended(by_sscop, uu),
            Pdu::Resync { sq, mr, uu } => {
                if self.is_new(sq) {
                    self.resync_offered(mr, uu);
                } else {
                    self.restart_no_response(now);
                    let mr = self.rx.vr_mr;
                    self.send(&Pdu::ResyncAck { mr });
                }
            }
            Pdu::Recover { sq, mr } => {
                if self.is_new(sq) {
                    self.prepare_recovery();
                    self.tx.vt_ms = mr;
                    self.deliver_rest();
                    self.tell(Indication::Recover);
                    self.state = State::IncomingRecoveryPending;
                } else {
                    self.restart_no_response(now);
                    let mr = self.rx.vr_mr;
                    self.send(&Pdu::RecoverAck { mr });
                }
            }
            Pdu::Data { s, info } => self.data_received(s, info, now),
            Pdu::Poll { ps, s } => self.poll_received(ps, s, now),
            Pdu::Stat { ps, mr, r, list } => self.stat_received(ps, mr, r, &list, now),
            Pdu::Ustat { mr, r, from, to } => self.ustat_received(mr, r, from, to, now),
            // Answers that crossed, or answers to retransmissions.
            Pdu::BeginAck { .. } | Pdu::ResyncAck { .. } | Pdu::RecoverAck { .. } => {}
            Pdu::UnitData { .. } | Pdu::ManagementData { .. } => {}
        }
    }
}
