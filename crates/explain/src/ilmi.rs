//! Rules of ILMI. Source: af-ilmi-0065.000, RFC 1157.

use crate::book::{At, Book, Open};
use crate::requests::{Requests, SECOND, Seconds};
use crate::rules::Rule;
use aerostat_wire::counted;
use aerostat_wire::ilmi::{ErrorStatus, Kind, MAX_MESSAGE, Message, Pdu, Request, mib};

/// Requests without an answer after which the other end counts as gone (K). Source: af-ilmi-0065 §8.3.1.
const SILENT: u32 = 4;
/// Time that an answer may take: the polling interval T of the standard.
const ANSWER: Seconds = 5;

/// Requests of one end of a link.
type Way = (usize, Option<bool>);

/// ILMI of all links.
#[derive(Debug, Default)]
pub(crate) struct Ilmi {
    requests: Requests<(Way, i32), Way>,
    /// Sets, for the words about their answers.
    sets: Open<(Way, i32), String>,
    /// Requests in a row without an answer, and the time of the last one.
    silent: Open<Way, Silence>,
}

#[derive(Clone, Copy, Debug)]
struct Silence {
    count: u32,
    last_ns: i128,
    id: i32,
}

impl Ilmi {
    pub(crate) fn message(&mut self, at: &At, sdu: &[u8], book: &mut Book) {
        if sdu.len() > MAX_MESSAGE {
            let text = format!("a message of {}", counted(sdu.len(), "octet", "octets"));
            book.name(Rule::IlmiLength, at, text);
        }
        match Message::decode(sdu) {
            Ok(Message(Pdu::Request(request))) if request.kind == Kind::Response => {
                self.response(at, &request, book);
            }
            Ok(Message(Pdu::Request(request))) => self.request(at, &request, book),
            Ok(Message(Pdu::Trap(_))) => {}
            Err(error) => book.name(Rule::IlmiFormat, at, error.to_string()),
        }
    }

    fn request(&mut self, at: &At, request: &Request, book: &mut Book) {
        let way = (at.link, at.way);
        let what = format!("{} {}", request.kind.name(), request.id);
        let key = (way, request.id);
        self.requests.ask(key, at, what, book);
        self.requests.lead(way, key, book);
        if request.kind == Kind::Set {
            self.sets.put((way, request.id), subject(request), book);
        }
        let before = self.silent.get(&way).copied();
        let mut silence = before.unwrap_or(Silence {
            count: 0,
            last_ns: at.time_ns,
            id: request.id,
        });
        if before.is_some() && at.time_ns - silence.last_ns >= ANSWER * SECOND {
            silence.count += 1;
        }
        (silence.last_ns, silence.id) = (at.time_ns, request.id);
        if silence.count == SILENT {
            let text = format!(
                "{SILENT} requests without an answer, before request {}",
                request.id
            );
            book.name(Rule::IlmiSilent, at, text);
        }
        self.silent.put(way, silence, book);
    }

    fn response(&mut self, at: &At, response: &Request, book: &mut Book) {
        let way = (at.link, at.way.map(|way| !way));
        self.silent.take(&way);
        let key = (way, response.id);
        if !self.requests.answer(&key, at, book) {
            self.requests.stray(&way, at, |_, asked| {
                let text = format!("GetResponse {}, while {} waits", response.id, asked.what);
                Some((Rule::IlmiId, text))
            });
        }
        let set = self.sets.take(&key);
        match (set, response.status) {
            (Some(subject), ErrorStatus::NO_ERROR) => {
                book.tell(at, format!("{} accepts {subject} of {}", at.from, at.to));
            }
            (Some(subject), status) => {
                let text = format!("{subject}: {status}");
                book.tell(
                    at,
                    format!("{} refuses {subject} of {}: {status}", at.from, at.to),
                );
                book.name(Rule::IlmiRefused, at, text);
            }
            (None, _) => {}
        }
    }
}

impl Ilmi {
    pub(crate) fn end(&self, now_ns: i128, book: &mut Book) {
        self.requests.end(None, ANSWER, now_ns, book);
    }
}

/// The variable of a request, in words.
fn subject(request: &Request) -> String {
    let Some(binding) = request.bindings.first() else {
        return "nothing".to_owned();
    };
    if let Some(address) = mib::address_of(&mib::address_status(), &binding.name) {
        return format!("address {address}");
    }
    if let Some(prefix) = mib::prefix_of(&binding.name) {
        return format!("prefix {}", aerostat_wire::AtmAddress::leading(&prefix));
    }
    match mib::name_of(&binding.name) {
        Some(name) => name.to_owned(),
        None => format!("{:?}", binding.name),
    }
}
