//! Mistakes in a capture: who asked whom for what, who refused and why, and which rule of which standard is broken.
//!
//! **Purpose.** A file of another network becomes a [`Report`]: a ladder of messages, a story, and places where rules
//! are broken, each with its clause. Files are pcap or pcapng of ATM (SUNATM, RFC 1483, Classical IP, ERF, raw cells
//! under a wrong link type), of ATM in pseudowires (MPLS, L2TPv3), and of NHRP over GRE.
//!
//! # Way of a packet
//!
//! | station | module | what happens |
//! |---|---|---|
//! | file | `capture` | blocks of pcap and pcapng become packets |
//! | interface | `raw` | raw cells under a wrong link type are found |
//! | headers | `layers` | link types, IP, GRE, MPLS and L2TPv3 are taken off |
//! | cells | `cells` | cells become PDUs again |
//! | protocols | `sscop`, `calls`, `ilmi`, `lane`, `atmarp`, `nhrp`, `gre_keys`, `llc` | rules of one protocol each |
//! | report | `book` | messages, story, findings, with their bounds |
//!
//! Decoders are those of [`aerostat_wire`]. A rule is declared once, in the table of [`Rule`].
//!
//! # What a capture cannot tell
//!
//! A capture begins and ends somewhere. So an answer is missed only if the capture goes on for as long as the standard
//! gives the answer, and an answer without its request is wrong only if another request of the same kind waits.
//! Without directions (a capture of GNS3), the rules that compare both ends of a link are left out.
//!
//! # Bounds
//!
//! [`Limits`] bound all tables. Each limit that is met is in [`Report::met`], with a number.
//!
//! # Example
//!
//! ```
//! use aerostat_explain::{Limits, explain};
//!
//! let nothing: &[u8] = b"";
//! let error = explain(nothing, Limits::default(), None).unwrap_err();
//! assert_eq!(error.to_string(), "an empty file at offset 0");
//! ```

mod atmarp;
mod book;
mod calls;
mod capture;
mod cells;
mod gre_keys;
mod ilmi;
mod lane;
mod layers;
mod limits;
mod llc;
mod nhrp;
mod raw;
mod requests;
mod rules;
mod sscop;

pub use book::{Finding, Message, Sentence};
pub use capture::{Interface, Unreadable};
pub use limits::{Limit, Limits, Met};
pub use rules::Rule;

use aerostat_wire::cell::{Cell, CellHeader, PAYLOAD_LEN};
use aerostat_wire::{SscopPdu, Vc, summary};
use book::{At, Book};
use cells::Cells;
use layers::Link;
use raw::Kind;
use std::collections::BTreeMap;
use std::io::Read;

/// Something of raw cells under a wrong link type, for a file with the right one.
#[derive(Debug)]
pub enum Repair<'a> {
    /// An SDU of AAL5.
    Sdu {
        /// Nanoseconds since the first packet.
        time_ns: u64,
        /// Connection.
        vc: Vc,
        /// CLP of the last cell.
        clp: bool,
        /// User-to-user octet.
        uu: u8,
        /// The SDU.
        sdu: &'a [u8],
    },
    /// A cell that belongs to no PDU: OAM, or resource management.
    Cell {
        /// Nanoseconds since the first packet.
        time_ns: u64,
        /// The cell.
        cell: Cell,
    },
}

/// Receiver of repaired SDUs and cells.
pub type Repairs<'a> = Option<&'a mut dyn FnMut(Repair<'_>)>;

/// Numbers of raw cells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repaired {
    /// Raw cells under a wrong link type.
    pub cells: u64,
    /// SDUs that they made.
    pub sdus: u64,
}

/// The report about a capture.
#[derive(Clone, Debug)]
pub struct Report {
    /// Interfaces of the file.
    pub interfaces: Vec<Interface>,
    /// Packets by link type.
    pub link_types: BTreeMap<u32, u64>,
    /// Packets.
    pub packets: u64,
    /// Octets of the file that were read.
    pub octets: u64,
    /// True if the file ends inside a block.
    pub cut: bool,
    /// Nanoseconds from the first packet to the last.
    pub span_ns: i128,
    /// Link type under which raw cells were found.
    pub mislabelled: Option<u32>,
    /// Raw cells.
    pub repaired: Repaired,
    /// The ladder.
    pub messages: Vec<Message>,
    /// The story.
    pub story: Vec<Sentence>,
    /// Places where rules are broken, by packet.
    pub findings: Vec<Finding>,
    /// How often each rule is broken, also at places that are not listed.
    pub broken: BTreeMap<Rule, u64>,
    /// Facts that break no rule and are worth knowing, with their counts.
    pub notes: BTreeMap<String, u64>,
    /// Limits that were met.
    pub met: Met,
}

/// Reads a capture and explains it. `repairs` gets what raw cells under a wrong link type are.
///
/// # Errors
/// If the octets are no capture, or a block of it is wrong or beyond the limits.
pub fn explain(
    input: impl Read + Send,
    limits: Limits,
    repairs: Repairs<'_>,
) -> Result<Report, Unreadable> {
    let mut explainer = Explainer::new(limits, repairs);
    let mut met = Met::default();
    let file = capture::read(input, &limits, &mut met, &mut |known, packet| {
        explainer.packet(known, &packet);
    })?;
    explainer.settle_all(&file.interfaces);
    explainer.end();
    let mut book = explainer.book;
    book.met.add(&met);
    book.close();
    Ok(Report {
        interfaces: file.interfaces,
        link_types: explainer.link_types,
        packets: explainer.packets,
        octets: file.read,
        cut: file.cut,
        span_ns: explainer.last_ns,
        mislabelled: explainer.mislabelled,
        repaired: explainer.repaired,
        messages: book.messages,
        story: book.story,
        findings: book.findings,
        broken: book.broken,
        notes: book.notes,
        met: book.met,
    })
}

/// The state of all protocols of a file.
struct Explainer<'a> {
    book: Book,
    kinds: Vec<Kind>,
    /// Packets that are held, because the kind of their interface is not known yet.
    held: usize,
    links: BTreeMap<Link, usize>,
    /// Directions that the file has of each link.
    ways: Vec<[bool; 2]>,
    link_types: BTreeMap<u32, u64>,
    packets: u64,
    first_ns: Option<i128>,
    /// Nanoseconds since the first packet.
    last_ns: i128,
    mislabelled: Option<u32>,
    repaired: Repaired,
    repairs: Repairs<'a>,
    cells: Cells,
    /// Last sequence number of each way of a pseudowire.
    sequences: BTreeMap<(usize, Option<bool>), u32>,
    sscop: sscop::Sscop,
    calls: calls::Calls,
    ilmi: ilmi::Ilmi,
    lane: lane::Lane,
    atmarp: atmarp::AtmArps,
    nhrp: nhrp::Nhrp,
    gre_keys: gre_keys::GreKeys,
}

impl<'a> Explainer<'a> {
    fn new(limits: Limits, repairs: Repairs<'a>) -> Self {
        Self {
            book: Book::new(limits),
            kinds: Vec::new(),
            held: 0,
            links: BTreeMap::new(),
            ways: Vec::new(),
            link_types: BTreeMap::new(),
            packets: 0,
            first_ns: None,
            last_ns: 0,
            mislabelled: None,
            repaired: Repaired::default(),
            repairs,
            cells: Cells::default(),
            sequences: BTreeMap::new(),
            sscop: sscop::Sscop::default(),
            calls: calls::Calls::default(),
            ilmi: ilmi::Ilmi::default(),
            lane: lane::Lane::default(),
            atmarp: atmarp::AtmArps::default(),
            nhrp: nhrp::Nhrp::default(),
            gre_keys: gre_keys::GreKeys::default(),
        }
    }

    /// Takes an SDU of AAL5. A dropped SDU is shown, and changes nothing.
    fn sdu(&mut self, at: &At, sdu: &[u8], dropped: Option<&str>) {
        // Without a label, an SDU is one of LLC or of LANE.
        let vc = at.vc.unwrap_or_default();
        let brief = summary::summary(vc, sdu);
        if brief.control || brief.protocol == "arp" {
            self.message(at, brief, dropped);
        }
        if dropped.is_some() {
            return;
        }
        match at.vc {
            Some(Vc::SIGNALLING) => self.signalling(at, sdu),
            Some(Vc::ILMI) => self.ilmi.message(at, sdu, &mut self.book),
            _ if aerostat_wire::lane::is_control(sdu) => self.lane.control(at, sdu, &mut self.book),
            _ if sdu.starts_with(&[0xaa, 0xaa]) => self.llc(at, sdu),
            _ => self.lane.data(at, sdu, &mut self.book),
        }
    }

    fn signalling(&mut self, at: &At, sdu: &[u8]) {
        match SscopPdu::decode(sdu) {
            Ok(pdu) => {
                self.sscop.pdu(at, &pdu, &mut self.book);
                let begins = matches!(pdu, SscopPdu::Begin { .. });
                self.calls.pdu(at, begins, &mut self.book);
                if let SscopPdu::Data { info, .. } | SscopPdu::UnitData { info } = &pdu {
                    self.calls.message(at, info, &mut self.book);
                }
            }
            Err(error) => self.book.name(Rule::SscopFormat, at, error.to_string()),
        }
    }

    /// Takes an NHRP or MPOA packet without LLC.
    fn nhrp(&mut self, at: &At, packet: &[u8], dropped: Option<&str>) {
        if at.vc.is_none() {
            self.message(at, summary::nhrp(packet), dropped);
        }
        if dropped.is_none() {
            self.nhrp.packet(at, packet, &mut self.book);
        }
    }

    fn message(&mut self, at: &At, brief: summary::Summary, dropped: Option<&str>) {
        if self.book.messages.len() >= self.book.limits.messages {
            return self.book.met.note(Limit::Messages);
        }
        self.book.messages.push(Message {
            packet: at.number,
            time_ns: at.time_ns,
            from: at.from.to_string(),
            to: at.to.to_string(),
            vc: at.vc.map_or_else(|| "-".to_owned(), |vc| vc.to_string()),
            protocol: brief.protocol,
            text: brief.text,
            dropped: dropped.map(str::to_owned),
        });
    }

    fn repair_sdu(&mut self, at: &At, header: &CellHeader, sdu: &[u8], uu: u8) {
        self.repaired.sdus += 1;
        if let Some(repairs) = &mut self.repairs {
            repairs(Repair::Sdu {
                time_ns: u64::try_from(at.time_ns).unwrap_or_default(),
                vc: header.vc,
                clp: header.clp,
                uu,
                sdu,
            });
        }
    }

    fn repair_cell(&mut self, at: &At, header: &CellHeader, payload: &[u8; PAYLOAD_LEN]) {
        if let Some(repairs) = &mut self.repairs {
            repairs(Repair::Cell {
                time_ns: u64::try_from(at.time_ns).unwrap_or_default(),
                cell: Cell {
                    header: *header,
                    payload: *payload,
                },
            });
        }
    }

    fn end(&mut self) {
        let (now, book) = (self.last_ns, &mut self.book);
        self.cells.end(book);
        self.sscop.end(now, book);
        self.calls.end(now, book);
        self.ilmi.end(now, book);
        self.lane.end(now, book);
        self.atmarp.end(now, book);
        self.nhrp.end(now, book);
        self.gre_keys.end(book);
        let one_way =
            |link: &usize| matches!(self.ways.get(*link), Some([true, false] | [false, true]));
        let silent = book.unanswered.iter().filter(|link| one_way(link)).count();
        for _ in 0..silent {
            book.note("a link on which nothing comes back: its other end is silent, or the file has one direction only");
        }
    }
}
