//! Rules of LAN emulation. Source: LUNI 2.0 (af-lane-0084).
//!
//! A LES passes LE_ARP requests on to all clients, which answer only for themselves. So a request is missed only on the
//! link on which its sender has joined, where an answer would have come back. An answer counts wherever it is seen.

use crate::book::{At, Book, Open};
use crate::requests::{Asked, Requests, Seconds};
use crate::rules::Rule;
use aerostat_wire::lane::{Control, ControlFrame, MIN_DATA_SDU, OpCode, Status};
use aerostat_wire::{AtmAddress, counted};

/// Time that LECS and LES may take. Source: LUNI 2.0 §5.1 (C7: 10 to 300 s).
const CONTROL: Seconds = 10;
/// Time that an answer to LE_ARP or LE_FLUSH may take. Source: LUNI 2.0 §5.1 (C20: 1 to 30 s, C21: 1 to 4 s).
const ARP: Seconds = 4;

/// Largest LECID. Source: LUNI 2.0 §3.4.
const MAX_LECID: u16 = 0xfeff;

/// A request: its op-code, transaction, LECID and, before there is a LECID, address.
type Key = (OpCode, u32, u16, AtmAddress);

/// A client: LECID and address of its LES, as far as it is known.
#[derive(Clone, Debug)]
struct Client {
    address: AtmAddress,
    /// Direction of what the client sends on this link.
    way: Option<bool>,
}

/// LANE of all links.
#[derive(Debug, Default)]
pub(crate) struct Lane {
    configure: Requests<Key>,
    join: Requests<Key>,
    register: Requests<Key>,
    arp: Requests<Key>,
    flush: Requests<Key>,
    clients: Open<(usize, String, u16), Client>,
    /// LECIDs whose clients are on a link, with the direction in which they send.
    lecids: Open<(usize, u16), Option<bool>>,
}

impl Lane {
    pub(crate) fn control(&mut self, at: &At, sdu: &[u8], book: &mut Book) {
        let frame = match Control::decode(sdu) {
            Ok(Control::Frame(frame)) => frame,
            Ok(_) => return,
            Err(error) => return book.name(Rule::LaneFormat, at, error.to_string()),
        };
        if frame.version != 1 {
            let text = format!("version {}", frame.version);
            book.name(Rule::LaneVersion, at, text);
        }
        if frame.op.name() == "unknown op-code" {
            let text = format!("op-code {:04x}", frame.op.0);
            return book.name(Rule::LaneOpCode, at, text);
        }
        match frame.op.is_response() {
            true => self.response(at, &frame, book),
            false => self.request(at, &frame, book),
        }
    }

    fn request(&mut self, at: &At, frame: &ControlFrame, book: &mut Book) {
        if frame.status != Status::SUCCESS {
            let text = format!("{} with {}", frame.op.name(), frame.status);
            book.name(Rule::LaneStatus, at, text);
        }
        // A LES passes a request on; only the client's own is one that waits.
        let own = match frame.op {
            OpCode::CONFIGURE | OpCode::JOIN => true,
            // A request without a target tells where its sender is, and has no answer. Source: LUNI 2.0 §7.1.31.
            OpCode::ARP if frame.target.tag == 0 => false,
            _ => {
                let known = self.lecids.get(&(at.link, frame.lecid));
                known.is_some_and(|way| *way == at.way)
            }
        };
        let key = key_of(frame);
        let what = what_of(frame);
        if let (true, Some(requests)) = (own, self.requests(frame.op)) {
            requests.ask(key, at, what, book);
        }
    }

    fn response(&mut self, at: &At, frame: &ControlFrame, book: &mut Book) {
        let op = OpCode(frame.op.0 & !0x0100);
        let key = key_of(&ControlFrame {
            op,
            ..frame.clone()
        });
        let answered = self
            .requests(op)
            .map(|requests| requests.answer(&key).is_some());
        if answered == Some(false) {
            self.stray(at, frame, (op, key), book);
        }
        let status = frame.status;
        let refused = status != Status::SUCCESS;
        match op {
            OpCode::CONFIGURE => {
                let text = format!("LE_CONFIGURE of {}: {status}", at.to);
                self.verdict(at, Rule::LaneConfigure, (refused, text), book);
            }
            OpCode::JOIN if refused => {
                let text = format!("LE_JOIN of {}: {status}", at.to);
                self.verdict(at, Rule::LaneJoin, (true, text), book);
            }
            OpCode::JOIN => self.joined(at, frame, book),
            OpCode::REGISTER => {
                let text = format!("LE_REGISTER of {}: {status}", at.to);
                self.verdict(at, Rule::LaneRegister, (refused, text), book);
            }
            OpCode::ARP if !refused && frame.target_atm.is_zero() => {
                let text = format!("the answer about {:?} has no ATM address", frame.target);
                book.name(Rule::LaneArpAddress, at, text);
            }
            OpCode::ARP if refused => {
                let text = format!("LE_ARP about {:?}: {status}", frame.target);
                self.verdict(at, Rule::LaneArp, (true, text), book);
            }
            _ => {}
        }
    }

    fn verdict(&self, at: &At, rule: Rule, (refused, text): (bool, String), book: &mut Book) {
        if refused {
            book.tell(at, format!("{} refuses: {text}", at.from));
            book.name(rule, at, text);
        }
    }

    /// A response without its request: wrong if another request of its requester waits on this link.
    fn stray(&mut self, at: &At, frame: &ControlFrame, (op, key): (OpCode, Key), book: &mut Book) {
        let (_, transaction, lecid, address) = key;
        let Some(requests) = self.requests(op) else {
            return;
        };
        // Control Distribute also has answers to others.
        let here = |asked: &Asked| {
            let (link, vc, way) = (asked.at.link, asked.at.vc, asked.at.way);
            link == at.link && vc == at.vc && way == at.way.map(|way| !way)
        };
        let same = requests.waiting(|(_, other, of, _), asked| {
            here(asked) && *other == transaction && *of != lecid
        });
        if let Some(asked) = same.filter(|_| op != OpCode::JOIN) {
            let text = format!("LECID {lecid} in the answer to {}", asked.what);
            return book.name(Rule::LaneLecid, at, text);
        }
        let other = requests.waiting(|(_, number, of, from), asked| {
            here(asked) && *number != transaction && *of == lecid && *from == address
        });
        if let Some(asked) = other {
            let text = format!(
                "{} {transaction}, while {} waits",
                frame.op.name(),
                asked.what
            );
            book.name(Rule::LaneTransaction, at, text);
        }
    }

    fn joined(&mut self, at: &At, frame: &ControlFrame, book: &mut Book) {
        let (lecid, address) = (frame.lecid, frame.source_atm);
        if !(1..=MAX_LECID).contains(&lecid) {
            let text = format!("LECID {lecid} for {}", at.to);
            book.name(Rule::LaneLecidRange, at, text);
        }
        let elan = frame.elan.to_string();
        let elan = elan.escape_debug().to_string();
        book.tell(at, format!("{} joins ELAN {elan} as LECID {lecid}", at.to));
        let key = (at.link, elan.clone(), lecid);
        let way = at.way.map(|way| !way);
        let before = self.clients.get(&key);
        let other = before.filter(|other| other.way == way && other.address != address);
        if let Some(other) = other {
            let text = format!("LECID {lecid} of ELAN {elan} was that of {}", other.address);
            book.name(Rule::LaneLecidTwice, at, text);
        }
        self.clients.put(key, Client { address, way }, book);
        self.lecids.put((at.link, lecid), way, book);
    }

    /// Takes an SDU that may be a data frame: only LECIDs that have joined on the link tell.
    pub(crate) fn data(&mut self, at: &At, sdu: &[u8], book: &mut Book) {
        let Some(&[high, low]) = sdu.first_chunk::<2>() else {
            return;
        };
        let lecid = u16::from_be_bytes([high, low]);
        if self.lecids.has(&(at.link, lecid)) && sdu.len() < MIN_DATA_SDU && lecid != 0 {
            let length = counted(sdu.len(), "octet", "octets");
            let text = format!("a data frame of {length} of LECID {lecid}");
            book.name(Rule::LaneShort, at, text);
        }
    }

    fn requests(&mut self, op: OpCode) -> Option<&mut Requests<Key>> {
        match op {
            OpCode::CONFIGURE => Some(&mut self.configure),
            OpCode::JOIN => Some(&mut self.join),
            OpCode::REGISTER | OpCode::UNREGISTER => Some(&mut self.register),
            OpCode::ARP => Some(&mut self.arp),
            OpCode::FLUSH => Some(&mut self.flush),
            _ => None,
        }
    }

    pub(crate) fn end(&self, now_ns: i128, book: &mut Book) {
        self.configure
            .end(Rule::LaneConfigure, CONTROL, now_ns, book);
        self.join.end(Rule::LaneJoin, CONTROL, now_ns, book);
        self.register.end(Rule::LaneRegister, CONTROL, now_ns, book);
        self.arp.end(Rule::LaneArp, ARP, now_ns, book);
        self.flush.end(Rule::LaneFlush, ARP, now_ns, book);
    }
}

fn key_of(frame: &ControlFrame) -> Key {
    // The response to a join has the new LECID.
    let lecid = match OpCode(frame.op.0 & !0x0100) {
        OpCode::JOIN | OpCode::CONFIGURE => 0,
        _ => frame.lecid,
    };
    (frame.op, frame.transaction, lecid, frame.source_atm)
}

fn what_of(frame: &ControlFrame) -> String {
    let name = frame.op.name();
    let transaction = frame.transaction;
    match frame.op {
        OpCode::ARP => format!("{name} {transaction} for {:?}", frame.target),
        OpCode::CONFIGURE | OpCode::JOIN => format!("{name} {transaction} of {}", frame.source_atm),
        _ => format!("{name} {transaction} of LECID {}", frame.lecid),
    }
}
