//! Rules of SSCOP. Source: Q.2110.
//!
//! A side is known from the BGN on that the file has. Of a connection that began earlier, the first SD counts as the
//! one that was expected. Without directions nothing can be said.

use crate::book::{At, Book, Open};
use crate::requests::{Asked, Requests, Seconds};
use crate::rules::Rule;
use aerostat_wire::{Seq24, SscopPdu};

/// Timer_CC times MaxCC. Source: Q.2130 §11, UNI 3.1 §5.6.
const BEGIN: Seconds = 5;
/// Timer_NO-RESPONSE. Source: Q.2130 §11.
const NO_RESPONSE: Seconds = 7;

/// PDUs that one end of a link has sent.
#[derive(Clone, Debug, Default)]
struct Side {
    /// N(S) of the next new SD.
    next: Option<Seq24>,
    /// First N(S) that the other end does not allow.
    credit: Option<Seq24>,
    /// N(PS) of the last POLL.
    poll: Option<Seq24>,
    /// BGN without an answer.
    begin: Option<Asked>,
}

/// Both ends of a link.
#[derive(Clone, Debug, Default)]
struct Pair {
    sides: [Side; 2],
    /// True once a BGN was seen.
    whole: bool,
    /// True after END, BGREJ or ENDAK, until the next BGN.
    closed: bool,
}

/// SSCOP of all links.
#[derive(Debug, Default)]
pub(crate) struct Sscop {
    links: Open<usize, Pair>,
    polls: Requests<(usize, bool, u32)>,
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
    /// Both ends count from 0 again; credits come with BGN and BGAK, RS and RSAK, or ER and ERAK.
    fn restart(&mut self) {
        for side in &mut self.sides {
            (side.next, side.poll) = (Some(Seq24::ZERO), None);
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
            SscopPdu::Begin { mr, .. } => pair.begin(at, way, *mr),
            SscopPdu::BeginAck { mr, .. } => {
                pair.begun();
                pair.side(!way).credit = Some(*mr);
            }
            SscopPdu::BeginReject { .. } => {
                pair.side(!way).begin = None;
                pair.closed = true;
                book.name(
                    Rule::SscopRejected,
                    at,
                    "BGREJ: the other end refuses a connection",
                );
            }
            SscopPdu::End { by_sscop, .. } => {
                pair.closed = true;
                if *by_sscop {
                    let text = "END with S = 1: a timer expired, or a PDU was wrong";
                    book.name(Rule::SscopEnded, at, text);
                }
            }
            SscopPdu::EndAck => pair.closed = true,
            SscopPdu::Resync { mr, .. } | SscopPdu::Recover { mr, .. } => {
                pair.restart();
                pair.side(!way).credit = Some(*mr);
            }
            SscopPdu::ResyncAck { mr } | SscopPdu::RecoverAck { mr } => {
                pair.side(!way).credit = Some(*mr);
            }
            SscopPdu::Data { s, .. } => pair.data(at, way, *s, book),
            SscopPdu::Poll { ps, .. } => {
                pair.begun();
                pair.side(way).poll = Some(*ps);
                let what = format!("POLL {}", ps.get());
                self.polls.ask((at.link, way, ps.get()), at, what, book);
            }
            SscopPdu::Stat { ps, .. } => {
                pair.stat(at, way, pdu, book);
                let (link, ps) = (at.link, *ps);
                self.polls.retain(|(of, side, number)| {
                    *of != link || *side == way || !reaches(ps, Seq24::new(*number))
                });
            }
            SscopPdu::Ustat { .. } => pair.ustat(at, way, pdu, book),
            SscopPdu::UnitData { .. } | SscopPdu::ManagementData { .. } => {}
        }
    }

    pub(crate) fn end(&self, now_ns: i128, book: &mut Book) {
        for (_, pair) in self.links.iter() {
            for begin in pair.sides.iter().filter_map(|side| side.begin.as_ref()) {
                begin.end(Rule::SscopBegin, BEGIN, now_ns, book);
            }
        }
        self.polls.end(Rule::SscopPoll, NO_RESPONSE, now_ns, book);
    }
}

impl Pair {
    fn data(&mut self, at: &At, way: bool, s: Seq24, book: &mut Book) {
        if self.closed {
            let text = format!("SD {} after the connection has ended", s.get());
            book.name(Rule::SscopClosed, at, text);
        }
        let side = self.side(way);
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
        let polled = self.side(!way).poll;
        if self.whole && !polled.is_some_and(|last| reaches(last, *ps)) {
            let text = format!("STAT {} without its POLL", ps.get());
            book.name(Rule::SscopStat, at, text);
        }
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
        let text = format!("USTAT: {} to {} are missing", from.get(), to.get());
        book.name(Rule::SscopMissing, at, text);
        self.acknowledged(at, way, *r, book);
        self.side(!way).credit = Some(*mr);
    }

    fn begin(&mut self, at: &At, way: bool, mr: Seq24) {
        if self.side(way).begin.is_none() {
            self.side(way).begin = Some(Asked::new(at, "BGN"));
        }
        self.restart();
        (self.whole, self.closed) = (true, false);
        self.side(!way).credit = Some(mr);
        self.side(way).credit = None;
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
