//! Data transfer in state 10: sending, acknowledgement, retransmission, credit.
//!
//! Source: Q.2110 §7.4, §7.8 and §8.2.

use super::{Buffers, Indication, Retrieval, Sscop, Timer};
use crate::Instant;
use aerostat_wire::{Seq24, SscopPdu as Pdu};
use std::collections::VecDeque;

/// One place of the transmission buffer.
#[derive(Debug)]
struct Sent {
    /// The message; with BR = yes `None` once a STAT has listed it as received behind a gap.
    message: Option<Vec<u8>>,
    /// VT(PS) when it was last sent.
    poll_stamp: Seq24,
    /// True while its number is in the retransmission queue.
    queued: bool,
}

/// Variables and buffers of the sending side.
#[derive(Debug, Default)]
pub(super) struct Sender {
    /// VT(S): number of the next new SD.
    pub(super) vt_s: Seq24,
    /// VT(PS): number of the last POLL.
    pub(super) vt_ps: Seq24,
    /// VT(A): oldest SD not acknowledged.
    pub(super) vt_a: Seq24,
    /// VT(PA): N(PS) of the last STAT accepted.
    pub(super) vt_pa: Seq24,
    /// VT(MS): first SD that the peer does not allow.
    pub(super) vt_ms: Seq24,
    /// VT(PD): SDs sent since the last POLL.
    pub(super) vt_pd: u32,
    /// False after MAA-ERROR W, until X.
    pub(super) credit: bool,
    /// Transmission queue: messages without a number.
    pub(super) queue: VecDeque<Vec<u8>>,
    /// Transmission buffer: place `i` is SD VT(A) + i; it ends at VT(S).
    buffer: VecDeque<Sent>,
    /// Retransmission queue.
    again: VecDeque<Seq24>,
}

impl Sender {
    /// Number of waiting or unacknowledged messages.
    pub(super) fn len(&self) -> usize {
        self.queue.len() + self.buffer.len()
    }
    /// Removes all messages.
    pub(super) fn clear(&mut self) {
        self.queue.clear();
        self.buffer.clear();
        self.again.clear();
    }
    /// The connection, or its numbering, ends: no message is sent again, and with BR = yes all messages are removed.
    /// VT(A) and VT(S) stay, because retrieval counts from them.
    pub(super) fn stop(&mut self, buffers: Buffers) {
        self.again.clear();
        match buffers {
            Buffers::Release => self.clear(),
            Buffers::Keep => self.buffer.iter_mut().for_each(|sent| sent.queued = false),
        }
    }
    /// Removes and returns the messages selected by `from`: first those of the transmission buffer, then those of the
    /// queue.
    pub(super) fn retrieve(&mut self, from: Retrieval) -> Vec<Vec<u8>> {
        let first = match from {
            Retrieval::Unsent => None,
            Retrieval::Total => Some(0),
            Retrieval::After(sn) => Some(sn.next())
                .filter(|first| first.in_window(self.vt_a, self.vt_s))
                .map(|first| first.since(self.vt_a) as usize),
        };
        let first = first.unwrap_or(usize::MAX).min(self.buffer.len());
        let sent = self.buffer.drain(first..).filter_map(|sent| sent.message);
        sent.chain(self.queue.drain(..)).collect()
    }
    /// Initialises the variables for a new connection; VT(MS) and the queue stay.
    pub(super) fn init(&mut self) {
        self.vt_s = Seq24::ZERO;
        self.vt_ps = Seq24::ZERO;
        self.vt_a = Seq24::ZERO;
        self.vt_pa = Seq24::new(1);
        self.vt_pd = 0;
        self.credit = true;
        self.buffer.clear();
        self.again.clear();
    }
    /// True if the peer allows another new SD: VT(S) < VT(MS), both counted from VT(A).
    pub(super) fn may_send(&self) -> bool {
        self.vt_s.in_window(self.vt_a, self.vt_ms)
    }
    fn place(&mut self, sn: Seq24) -> Option<&mut Sent> {
        self.buffer.get_mut(sn.since(self.vt_a) as usize)
    }
    /// Releases all SDs below `r`, which lies in VT(A)..=VT(S).
    fn acknowledge(&mut self, r: Seq24) {
        let count = r.since(self.vt_a) as usize;
        self.buffer.drain(..count.min(self.buffer.len()));
        let (base, end) = (r, self.vt_s);
        self.again.retain(|sn| sn.in_window(base, end));
        self.vt_a = r;
    }
    /// Queues `from..to` for retransmission; `None` if one of them is no longer there. With `polled`, only SDs sent
    /// before that POLL are queued, because later ones may still be on their way.
    fn queue_again(&mut self, from: Seq24, to: Seq24, polled: Option<Seq24>) -> Option<u32> {
        let mut count = 0;
        let mut sn = from;
        while sn != to {
            let sent = self.place(sn).filter(|sent| sent.message.is_some())?;
            let due = polled.is_none_or(|ps| before(sent.poll_stamp, ps));
            if due && !sent.queued {
                sent.queued = true;
                self.again.push_back(sn);
                count += 1;
            }
            sn = sn.next();
        }
        Some(count)
    }
    /// Releases `from..to`, which the peer has received behind a gap.
    fn release(&mut self, from: Seq24, to: Seq24) {
        let mut sn = from;
        while sn != to {
            if let Some(sent) = self.place(sn) {
                sent.message = None;
            }
            sn = sn.next();
        }
    }
    /// Processes the list of a STAT. Returns the number of SDs queued for retransmission, or `None` for error S.
    fn walk(&mut self, list: &[Seq24], ps: Seq24, buffers: Buffers) -> Option<u32> {
        let (a0, end) = (self.vt_a, self.vt_s.since(self.vt_a));
        let mut count = 0;
        // A single element carries no information: it is VR(H), or the end of a list that was split.
        for (i, pair) in list.windows(2).enumerate() {
            let [from, to] = *pair else { return None };
            if from.since(a0) >= to.since(a0) || to.since(a0) > end {
                return None;
            }
            if i % 2 == 0 {
                count += self.queue_again(from, to, Some(ps))?;
            } else if buffers == Buffers::Release {
                self.release(from, to);
            }
        }
        Some(count)
    }
}

/// True if poll number `a` came before `b`; they are less than half the number space apart.
fn before(a: Seq24, b: Seq24) -> bool {
    let ahead = b.since(a);
    ahead != 0 && ahead < Seq24::MODULUS / 2
}

/// Variables and buffer of the receiving side.
#[derive(Debug, Default)]
pub(super) struct Receiver {
    /// VR(R): next SD expected in sequence.
    pub(super) vr_r: Seq24,
    /// VR(H): one more than the highest SD seen or announced.
    pub(super) vr_h: Seq24,
    /// VR(MR): first SD that the peer may not send.
    pub(super) vr_mr: Seq24,
    /// True while the user holds back credit.
    pub(super) busy: bool,
    /// Receiver buffer: place `i` is SD VR(R) + i. It is shorter than the window.
    buffer: VecDeque<Option<Vec<u8>>>,
}

impl Receiver {
    /// Removes all messages.
    pub(super) fn clear(&mut self) {
        self.buffer.clear();
    }
    /// Initialises the variables for a new connection; VR(MR) stays.
    pub(super) fn init(&mut self) {
        self.vr_r = Seq24::ZERO;
        self.vr_h = Seq24::ZERO;
        self.buffer.clear();
    }
    /// Raises VR(MR) to VR(R) + `window`; never lowers it.
    pub(super) fn grant(&mut self, window: u32) {
        let to = self.vr_r.plus(window);
        if !self.busy && self.vr_mr.in_window(self.vr_r, to) {
            self.vr_mr = to;
        }
    }
    fn holds(&self, sn: Seq24) -> bool {
        matches!(self.buffer.get(sn.since(self.vr_r) as usize), Some(Some(_)))
    }
    /// Number of messages that wait behind a gap.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.buffer.iter().flatten().count()
    }
    fn store(&mut self, sn: Seq24, message: Vec<u8>) {
        let i = sn.since(self.vr_r) as usize;
        if self.buffer.len() <= i {
            self.buffer.resize_with(i + 1, || None);
        }
        self.buffer[i] = Some(message);
    }
    /// Advances VR(R) by one and returns the message stored there.
    fn advance(&mut self) -> Option<Vec<u8>> {
        self.vr_r = self.vr_r.next();
        self.buffer.pop_front().flatten()
    }
    /// Removes and returns the messages behind a gap, with their numbers.
    pub(super) fn take_rest(&mut self) -> Vec<(Seq24, Vec<u8>)> {
        let base = self.vr_r;
        let places = (0..).zip(self.buffer.drain(..));
        places
            .filter_map(|(i, place)| Some((base.plus(i), place?)))
            .collect()
    }
    /// Starts of missing and received runs from VR(R) to VR(H); empty if nothing is missing.
    fn gaps(&self) -> Vec<Seq24> {
        let mut list = Vec::new();
        let mut missing = true;
        let mut sn = self.vr_r;
        if sn == self.vr_h {
            return list;
        }
        list.push(sn);
        while sn != self.vr_h {
            if self.holds(sn) == missing {
                missing = !missing;
                list.push(sn);
            }
            sn = sn.next();
        }
        list.push(self.vr_h);
        list
    }
}

impl Sscop {
    /// Sends whatever credit and queues allow. Source: Q.2110 §8.2, state 10, what takes a message from a queue.
    pub(super) fn send_loop(&mut self, now: Instant) {
        loop {
            if let Some(sn) = self.tx.again.pop_front() {
                self.send_again(sn);
            } else if self.tx.may_send()
                && let Some(message) = self.tx.queue.pop_front()
            {
                self.send_new(message);
            } else if !self.tx.queue.is_empty() && self.runs(Timer::Idle) {
                // Without credit: request credit by a POLL.
                self.stop(Timer::Idle);
                self.start(Timer::NoResponse, now);
                self.send_poll(now);
                continue;
            } else {
                return;
            }
            self.tx.vt_pd += 1;
            if !self.runs(Timer::Poll) {
                if self.runs(Timer::Idle) {
                    self.stop(Timer::Idle);
                    self.start(Timer::NoResponse, now);
                } else {
                    self.stop(Timer::KeepAlive);
                }
                self.start(Timer::Poll, now);
            }
            if self.tx.vt_pd >= self.params.max_pd {
                self.send_poll(now);
            }
        }
    }

    fn send_new(&mut self, info: Vec<u8>) {
        let (s, poll_stamp) = (self.tx.vt_s, self.tx.vt_ps);
        let pdu = Pdu::Data { s, info };
        self.send(&pdu);
        let Pdu::Data { info, .. } = pdu else { return };
        self.tx.buffer.push_back(Sent {
            message: Some(info),
            poll_stamp,
            queued: false,
        });
        self.tx.vt_s = s.next();
    }

    fn send_again(&mut self, s: Seq24) {
        let poll_stamp = self.tx.vt_ps;
        let Some(sent) = self.tx.place(s) else { return };
        sent.queued = false;
        sent.poll_stamp = poll_stamp;
        if let Some(info) = sent.message.clone() {
            self.send(&Pdu::Data { s, info });
        }
    }

    /// Sends a POLL and (re)starts Timer_POLL.
    fn send_poll(&mut self, now: Instant) {
        self.poll();
        self.start(Timer::Poll, now);
    }
    fn poll(&mut self) {
        self.tx.vt_ps = self.tx.vt_ps.next();
        self.tx.vt_pd = 0;
        let (ps, s) = (self.tx.vt_ps, self.tx.vt_s);
        self.send(&Pdu::Poll { ps, s });
    }

    /// Timer_POLL, KEEP-ALIVE or IDLE expired: active phase if data are outstanding, else transient.
    pub(super) fn poll_expiry(&mut self, now: Instant) {
        self.poll();
        if !self.tx.queue.is_empty() || self.tx.vt_s != self.tx.vt_a {
            self.start(Timer::Poll, now);
        } else {
            self.start(Timer::KeepAlive, now);
        }
    }

    /// SD in state 10.
    pub(super) fn data_received(&mut self, s: Seq24, info: Vec<u8>, now: Instant) {
        let rx = &mut self.rx;
        if !s.in_window(rx.vr_r, rx.vr_mr) {
            // The SD is beyond the credit. All missing SDs up to the credit are reported.
            if rx.vr_h.in_window(rx.vr_r, rx.vr_mr) {
                let (from, to) = (rx.vr_h, rx.vr_mr);
                rx.vr_h = to;
                self.send_ustat(from, to);
            }
            return;
        }
        if s == rx.vr_r {
            self.deliver(info);
        } else if s == rx.vr_h {
            rx.store(s, info);
            rx.vr_h = s.next();
        } else if !s.in_window(rx.vr_r, rx.vr_h) {
            let from = rx.vr_h;
            rx.store(s, info);
            rx.vr_h = s.next();
            self.send_ustat(from, s);
        } else if rx.holds(s) {
            self.recover('Q', now);
        } else {
            rx.store(s, info);
        }
    }

    /// Delivers the SD VR(R) and those stored directly behind it.
    fn deliver(&mut self, info: Vec<u8>) {
        if self.rx.vr_r == self.rx.vr_h {
            self.rx.vr_h = self.rx.vr_h.next();
        }
        let mut sn = self.rx.vr_r;
        self.rx.advance();
        self.tell(Indication::Data(info, sn));
        while self.rx.holds(self.rx.vr_r)
            && let Some(info) = self.rx.advance()
        {
            sn = sn.next();
            self.tell(Indication::Data(info, sn));
        }
        self.rx.grant(self.params.window);
    }

    fn send_ustat(&mut self, from: Seq24, to: Seq24) {
        let (mr, r) = (self.rx.vr_mr, self.rx.vr_r);
        self.send(&Pdu::Ustat { mr, r, from, to });
    }

    /// POLL in state 10.
    pub(super) fn poll_received(&mut self, ps: Seq24, s: Seq24, now: Instant) {
        let rx = &mut self.rx;
        let announced = s.since(rx.vr_r);
        // An N(S) behind VR(R) appears as half the number space or more ahead.
        if announced < rx.vr_h.since(rx.vr_r) || announced >= Seq24::MODULUS / 2 {
            self.recover('Q', now);
            return;
        }
        rx.vr_h = if announced > rx.vr_mr.since(rx.vr_r) {
            rx.vr_mr
        } else {
            s
        };
        let (mr, r, max) = (rx.vr_mr, rx.vr_r, self.params.max_stat);
        let mut list = rx.gaps();
        // A longer list is split; the next part starts with the missing SD that ended the previous one.
        while list.len() > max {
            let rest = list.split_off(max - 1);
            list.push(rest[0]);
            self.send(&Pdu::Stat { ps, mr, r, list });
            list = rest;
        }
        self.send(&Pdu::Stat { ps, mr, r, list });
    }

    /// STAT in state 10.
    pub(super) fn stat_received(
        &mut self,
        ps: Seq24,
        mr: Seq24,
        r: Seq24,
        list: &[Seq24],
        now: Instant,
    ) {
        let tx = &mut self.tx;
        let unpolled = tx.vt_ps.next() == tx.vt_pa;
        if unpolled || ps.since(tx.vt_pa) > tx.vt_ps.since(tx.vt_pa) {
            self.recover('R', now);
            return;
        }
        if r.since(tx.vt_a) > tx.vt_s.since(tx.vt_a) {
            self.recover('S', now);
            return;
        }
        tx.acknowledge(r);
        tx.vt_pa = ps;
        tx.vt_ms = mr;
        match tx.walk(list, ps, self.buffers) {
            None => {
                self.recover('S', now);
                return;
            }
            Some(0) => {}
            Some(count) => self.report_count('V', count),
        }
        self.note_credit();
        if self.runs(Timer::Poll) {
            self.start(Timer::NoResponse, now);
        } else if !self.runs(Timer::Idle) {
            self.stop(Timer::KeepAlive);
            self.stop(Timer::NoResponse);
            self.start(Timer::Idle, now);
        }
        self.send_loop(now);
    }

    /// MAA-ERROR W and X.
    fn note_credit(&mut self) {
        let credit = self.tx.may_send();
        if credit != self.tx.credit {
            self.tx.credit = credit;
            self.report(if credit { 'X' } else { 'W' });
        }
    }

    /// USTAT in state 10.
    pub(super) fn ustat_received(
        &mut self,
        mr: Seq24,
        r: Seq24,
        from: Seq24,
        to: Seq24,
        now: Instant,
    ) {
        let tx = &mut self.tx;
        if !r.in_window(tx.vt_a, tx.vt_s) {
            self.recover('T', now);
            return;
        }
        tx.acknowledge(r);
        tx.vt_ms = mr;
        let ordered = from.since(r) < to.since(r) && to.in_window(r, tx.vt_s);
        let count = if ordered {
            tx.queue_again(from, to, None)
        } else {
            None
        };
        let Some(count) = count else {
            self.recover('T', now);
            return;
        };
        self.report_count('V', count);
        self.note_credit();
        self.send_loop(now);
    }
}
