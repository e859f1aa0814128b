//! Rules of LAN emulation. Source: LUNI 2.0 (af-lane-0084).
//!
//! A LES passes LE_ARP requests on to all clients, which answer only for themselves. So a request is missed only on the
//! link on which its sender has joined, where an answer would have come back. An answer counts wherever it is seen.

use crate::book::{At, Book, Open};
use crate::requests::{Requests, Seconds};
use crate::rules::Rule;
use aerostat_wire::lane::{Control, ControlFrame, LanType, MIN_DATA_SDU, OpCode, Status};
use aerostat_wire::{AtmAddress, Vc, counted};

/// Time that LECS and LES may take. Source: LUNI 2.0 §5.1 (C7: 10 to 300 s).
const CONTROL: Seconds = 10;
/// Time that an answer to LE_ARP or LE_FLUSH may take. Source: LUNI 2.0 §5.1 (C20: 1 to 30 s, C21: 1 to 4 s).
const ARP: Seconds = 4;

/// Largest LECID. Source: LUNI 2.0 §3.4.
const MAX_LECID: u16 = 0xfeff;

/// A request: its op-code, transaction, LECID and, before there is a LECID, address.
type Key = (OpCode, u32, u16, AtmAddress);

/// Op-code, link, VC and direction of requests: the last request of a group waits for the next answer.
type Group = (OpCode, usize, Option<Vc>, Option<bool>);

/// A client of an ELAN.
#[derive(Clone, Debug)]
struct Client {
    address: AtmAddress,
    /// Direction of what the client sends on this link.
    way: Option<bool>,
    /// The client that had the LECID before, and where it was lost: if it still sends, two have it.
    before: Option<Box<(AtmAddress, At)>>,
}

/// Op-codes between servers: triggers, synchronisation, Keep-Alive. Source: LNNI 2.0 (af-lane-0112) §4.
const fn is_of_servers(op: OpCode) -> bool {
    matches!(op.0, 0x000b..=0x000e | 0x010d | 0x010e)
}

/// A LECID in use.
#[derive(Clone, Debug)]
struct Joined {
    /// Direction in which the client sends.
    way: Option<bool>,
    lan_type: LanType,
    elan: String,
}

/// LANE of all links.
#[derive(Debug, Default)]
pub(crate) struct Lane {
    configure: Requests<Key, Group>,
    join: Requests<Key, Group>,
    register: Requests<Key, Group>,
    arp: Requests<Key, Group>,
    flush: Requests<Key, Group>,
    clients: Open<(usize, String, u16), Client>,
    /// LECIDs whose clients are on a link, and how each of them has joined.
    lecids: Open<(usize, u16), Joined>,
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
        if is_of_servers(frame.op) {
            return;
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
        self.still_sends(at, frame, book);
        // A LES passes requests on to all clients. A request waits only where its own client has sent it.
        let own = match frame.op {
            OpCode::CONFIGURE | OpCode::JOIN => true,
            // A request without a target tells where its sender is, and has no answer. Source: LUNI 2.0 §7.1.31.
            OpCode::ARP if frame.target.tag == 0 => false,
            _ => {
                let known = self.lecids.get(&(at.link, frame.lecid));
                known.is_some_and(|joined| joined.way == at.way)
            }
        };
        let key = key_of(frame);
        let what = what_of(frame);
        if let (true, Some(requests)) = (own, self.requests(frame.op)) {
            requests.ask(key, at, what, book);
            let group = (frame.op, at.link, at.vc, at.way);
            requests.lead(group, key, book);
        }
    }

    /// Names a LECID that two clients have: the earlier one sends a request after the later one has joined.
    fn still_sends(&mut self, at: &At, frame: &ControlFrame, book: &mut Book) {
        let (lecid, address) = (frame.lecid, frame.source_atm);
        if matches!(frame.op, OpCode::CONFIGURE | OpCode::JOIN) {
            return;
        }
        let Some(joined) = self.lecids.get(&(at.link, lecid)) else {
            return;
        };
        let elan = &joined.elan;
        let client = self.clients.get_mut(&(at.link, elan.clone(), lecid));
        let Some(client) = client.filter(|client| client.way == at.way) else {
            return;
        };
        let (now, before) = (client.address, client.before.take());
        if let Some((_, joined)) = before.as_deref().filter(|(before, _)| *before == address) {
            let text = format!("LECID {lecid} of ELAN {elan} is that of {address}, and of {now}");
            book.name(Rule::LaneLecidTwice, joined, text);
        } else {
            client.before = before;
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
            .map(|requests| requests.answer(&key, at, book));
        if answered == Some(false) {
            self.stray(at, frame, (op, key));
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

    /// A response without its request. Control Distribute also has answers to others, so only answers of the same VC
    /// count.
    fn stray(&mut self, at: &At, frame: &ControlFrame, (op, key): (OpCode, Key)) {
        let (_, transaction, lecid, address) = key;
        let group = (op, at.link, at.vc, at.way.map(|way| !way));
        let Some(requests) = self.requests(op) else {
            return;
        };
        let name = frame.op.name();
        requests.stray(&group, at, |(_, number, of, from), asked| {
            if *number == transaction && *of != lecid {
                let text = format!("LECID {lecid} in the answer to {}", asked.what);
                return Some((Rule::LaneLecid, text));
            }
            let other = *number != transaction && *of == lecid && *from == address;
            let text = || format!("{name} {transaction}, while {} waits", asked.what);
            other.then(|| (Rule::LaneTransaction, text()))
        });
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
        // A client that has left gives its LECID free; the answer may also be a repetition.
        let before = match self.clients.take(&key) {
            Some(other) if other.way == way && other.address != address => {
                Some(Box::new((other.address, at.clone())))
            }
            Some(same) => same.before,
            None => None,
        };
        let client = Client {
            address,
            way,
            before,
        };
        self.clients.put(key, client, book);
        let joined = Joined {
            way,
            lan_type: frame.lan_type,
            elan,
        };
        self.lecids.put((at.link, lecid), joined, book);
    }

    /// Takes an SDU that may be a data frame: only LECIDs that have joined on the link tell.
    pub(crate) fn data(&mut self, at: &At, sdu: &[u8], book: &mut Book) {
        let Some(&[high, low]) = sdu.first_chunk::<2>() else {
            return;
        };
        let lecid = u16::from_be_bytes([high, low]);
        let known = self.lecids.get(&(at.link, lecid));
        let is_ethernet = known.is_some_and(|joined| joined.lan_type == LanType::ETHERNET);
        if is_ethernet && sdu.len() < MIN_DATA_SDU && lecid != 0 {
            let length = counted(sdu.len(), "octet", "octets");
            let text = format!("a data frame of {length} of LECID {lecid}");
            book.name(Rule::LaneShort, at, text);
        }
    }

    fn requests(&mut self, op: OpCode) -> Option<&mut Requests<Key, Group>> {
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
        let tables = [
            (&self.configure, Rule::LaneConfigure, CONTROL),
            (&self.join, Rule::LaneJoin, CONTROL),
            (&self.register, Rule::LaneRegister, CONTROL),
            (&self.arp, Rule::LaneArp, ARP),
            (&self.flush, Rule::LaneFlush, ARP),
        ];
        for (requests, rule, wait) in tables {
            requests.end(Some(rule), wait, now_ns, book);
        }
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
