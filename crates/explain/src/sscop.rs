//! Rules of SSCOP. Source: Q.2110.
//!
//! A side is known from the BGN on that the file has. Of a connection that began earlier, the first SD counts as the
//! expected one. Without directions nothing can be said.

use crate::book::{At, Book, Open};
use crate::requests::{Asked, Seconds};
use crate::rules::Rule;
use aerostat_wire::{Seq8, Seq24, SscopPdu};

/// Timer_CC times MaxCC. Source: Q.2130 §11, UNI 3.1 §5.6.
const BEGIN: Seconds = 5;
/// Timer_NO-RESPONSE. Source: Q.2130 §11.
const NO_RESPONSE: Seconds = 7;

/// PDUs that one end of a link has sent.
#[derive(Clone, Debug, Default)]
struct Side {
    /// N(SQ) of the last BGN, RS or ER: a repetition has the same one.
    sq: Option<Seq8>,
    /// N(S) of the next new SD.
    next: Option<Seq24>,
    /// First N(S) that the other end does not allow.
    credit: Option<Seq24>,
    /// Credit of a BGN, RS or ER, which holds from the answer on.
    offered: Option<Seq24>,
    /// N(PS) of the last POLL.
    poll: Option<Seq24>,
    /// First POLL without a STAT.
    polled: Option<Asked>,
    /// BGN without an answer.
    begin: Option<Asked>,
    /// True while PDUs of an earlier connection may come: the other end has begun, and this one has not answered.
    late: bool,
    /// True from END, ENDAK or BGREJ of this end until it begins again.
    closed: bool,
}

/// Both ends of a link.
#[derive(Clone, Debug, Default)]
struct Pair {
    sides: [Side; 2],
    /// True once a BGN was seen.
    whole: bool,
}

/// SSCOP of all links.
#[derive(Debug, Default)]
pub(crate) struct Sscop {
    links: Open<usize, Pair>,
}

/// True if `a` is `b` or follows it within half of the number space.
fn reaches(a: Seq24, b: Seq24) -> bool {
    a.since(b) < Seq24::MODULUS / 2
}

impl Pair {
    fn side(&mut self, way: bool) -> &mut Side {
        &mut self.sides[usize::from(way)]
    }
    /// The connection is there: of two BGNs that cross, each is the answer to the other. Source: Q.2110 §7.3.
    fn begun(&mut self) {
        for side in &mut self.sides {
            side.begin = None;
        }
    }
    /// BGN, RS or ER: this end counts from 0 again, and the other one does so from its answer on.
    fn restart(&mut self, at: &At, way: bool, sq: Seq8, mr: Seq24, book: &mut Book) {
        if self.side(way).sq == Some(sq) {
            return;
        }
        for side in &mut self.sides {
            side.end_poll(at.time_ns, book);
        }
        let begin = self.side(way).begin.take();
        *self.side(way) = Side {
            sq: Some(sq),
            next: Some(Seq24::ZERO),
            begin,
            ..Side::default()
        };
        let other = self.side(!way);
        *other = Side {
            sq: other.sq,
            offered: Some(mr),
            late: true,
            begin: other.begin.take(),
            closed: other.closed,
            ..Side::default()
        };
    }
    /// BGAK, RSAK or ERAK.
    fn restarted(&mut self, way: bool, mr: Seq24) {
        let side = self.side(way);
        if side.late {
            (side.next, side.credit) = (Some(Seq24::ZERO), side.offered);
        }
        (side.late, side.closed) = (false, false);
        self.side(!way).credit = Some(mr);
    }
    /// END, ENDAK or BGREJ: this end has no connection any more, and no timer runs.
    fn close(&mut self, at: &At, way: bool, book: &mut Book) {
        for side in &mut self.sides {
            side.end(at.time_ns, book);
            (side.begin, side.polled, side.sq) = (None, None, None);
        }
        let side = self.side(way);
        (side.closed, side.late) = (true, false);
    }
}

impl Side {
    fn end(&self, now_ns: i128, book: &mut Book) {
        if let Some(begin) = &self.begin {
            begin.end(Rule::SscopBegin, BEGIN, now_ns, book);
        }
        self.end_poll(now_ns, book);
    }
    fn end_poll(&self, now_ns: i128, book: &mut Book) {
        if let Some(poll) = &self.polled {
            poll.end(Rule::SscopPoll, NO_RESPONSE, now_ns, book);
        }
    }
    fn polls(&mut self, at: &At, ps: Seq24) {
        self.poll = Some(ps);
        match &mut self.polled {
            Some(polled) => polled.again(),
            None => self.polled = Some(Asked::new(at, format!("POLL {}", ps.get()))),
        }
    }
}

impl Sscop {
    pub(crate) fn pdu(&mut self, at: &At, pdu: &SscopPdu, book: &mut Book) {
        let Some(way) = at.way else {
            return book.note("a file without directions: SSCOP is not compared end by end");
        };
        if !self.links.has(&at.link) {
            self.links.put(at.link, Pair::default(), book);
        }
        let Some(pair) = self.links.get_mut(&at.link) else {
            return;
        };
        match pdu {
            SscopPdu::Begin { sq, mr, .. } => {
                pair.begin(at, way);
                pair.restart(at, way, *sq, *mr, book);
            }
            SscopPdu::BeginAck { mr, .. } => {
                pair.begun();
                pair.restarted(way, *mr);
            }
            SscopPdu::BeginReject { .. } => {
                pair.begun();
                pair.close(at, way, book);
                let text = "BGREJ: the other end refuses a connection";
                book.name(Rule::SscopRejected, at, text);
            }
            SscopPdu::End { by_sscop, .. } => {
                pair.close(at, way, book);
                if *by_sscop {
                    let text = "END with S = 1: a timer expired, or a PDU was wrong";
                    book.name(Rule::SscopEnded, at, text);
                }
            }
            SscopPdu::EndAck => pair.close(at, way, book),
            SscopPdu::Resync { sq, mr, .. } | SscopPdu::Recover { sq, mr } => {
                pair.restart(at, way, *sq, *mr, book);
            }
            SscopPdu::ResyncAck { mr } | SscopPdu::RecoverAck { mr } => pair.restarted(way, *mr),
            SscopPdu::Data { s, .. } => pair.data(at, way, *s, book),
            SscopPdu::Poll { ps, .. } => {
                pair.begun();
                pair.side(way).polls(at, *ps);
            }
            SscopPdu::Stat { .. } => pair.stat(at, way, pdu, book),
            SscopPdu::Ustat { .. } => pair.ustat(at, way, pdu, book),
            SscopPdu::UnitData { .. } | SscopPdu::ManagementData { .. } => {}
        }
    }

    pub(crate) fn end(&self, now_ns: i128, book: &mut Book) {
        for (_, pair) in self.links.iter() {
            for side in &pair.sides {
                side.end(now_ns, book);
            }
        }
    }
}

impl Pair {
    fn data(&mut self, at: &At, way: bool, s: Seq24, book: &mut Book) {
        let side = self.side(way);
        if side.late {
            return;
        }
        if side.closed {
            let text = format!("SD {} after the connection has ended", s.get());
            book.name(Rule::SscopClosed, at, text);
        }
        if let Some(credit) = side.credit.filter(|credit| reaches(s, *credit)) {
            let text = format!("SD {}, where the credit ends at {}", s.get(), credit.get());
            book.name(Rule::SscopWindow, at, text);
        }
        let expected = side.next.unwrap_or(s);
        if s != expected && reaches(s, expected) {
            let text = format!("SD {}, where {} follows", s.get(), expected.get());
            book.name(Rule::SscopGap, at, text);
        }
        // An earlier number is a repetition.
        if reaches(s, expected) {
            side.next = Some(s.next());
        }
    }

    fn stat(&mut self, at: &At, way: bool, pdu: &SscopPdu, book: &mut Book) {
        let SscopPdu::Stat { ps, mr, r, list } = pdu else {
            return;
        };
        if self.side(way).late {
            return;
        }
        let last = self.side(!way).poll;
        if self.whole && !last.is_some_and(|last| reaches(last, *ps)) {
            let text = format!("STAT {} without its POLL", ps.get());
            book.name(Rule::SscopStat, at, text);
        }
        // A later POLL may wait since now: Timer_NO-RESPONSE begins again with each STAT.
        let waits = last.filter(|last| last != ps && reaches(*last, *ps));
        self.side(!way).polled = waits.map(|last| Asked::new(at, format!("POLL {}", last.get())));
        if !list.is_empty() {
            let text = format!("STAT {} lists {} as missing", ps.get(), r.get());
            book.name(Rule::SscopMissing, at, text);
        }
        self.acknowledged(at, way, *r, book);
        self.side(!way).credit = Some(*mr);
    }

    fn ustat(&mut self, at: &At, way: bool, pdu: &SscopPdu, book: &mut Book) {
        let SscopPdu::Ustat { mr, r, from, to } = pdu else {
            return;
        };
        if self.side(way).late {
            return;
        }
        let text = format!("USTAT: {} to {} are missing", from.get(), to.get());
        book.name(Rule::SscopMissing, at, text);
        self.acknowledged(at, way, *r, book);
        self.side(!way).credit = Some(*mr);
    }

    fn begin(&mut self, at: &At, way: bool) {
        self.whole = true;
        let side = self.side(way);
        side.closed = false;
        match &mut side.begin {
            Some(begin) => begin.again(),
            None => side.begin = Some(Asked::new(at, "BGN")),
        }
    }

    /// N(R) of the end at `way`, about what the other end has sent.
    fn acknowledged(&mut self, at: &At, way: bool, r: Seq24, book: &mut Book) {
        let sent = self.side(!way).next;
        if let Some(next) = sent.filter(|next| r != *next && reaches(r, *next)) {
            let text = format!("N(R) is {}, and {} comes next", r.get(), next.get());
            book.name(Rule::SscopAcknowledged, at, text);
        }
    }
}
