//! Rules of ATMARP and InATMARP. Source: RFC 2225, RFC 2390.

use crate::book::{At, Book, Open};
use crate::requests::{Requests, Seconds};
use crate::rules::Rule;
use aerostat_wire::AtmAddress;
use aerostat_wire::atmarp::{AtmArp, Operation};
use std::net::Ipv4Addr;

/// Time that an answer may take. Source: RFC 2320, the default of its time-out.
const ANSWER: Seconds = 10;

/// The asking station, and the station in question.
type Question = (Option<Ipv4Addr>, Option<Ipv4Addr>);

/// ATMARP of all links.
#[derive(Debug, Default)]
pub(crate) struct AtmArps {
    requests: Requests<Question, (usize, Option<Ipv4Addr>)>,
    inverse: Requests<(usize, Option<aerostat_wire::Vc>, Option<bool>)>,
    bindings: Open<(usize, Ipv4Addr), Binding>,
}

/// ATM address of a station. Stations move, but the earlier one does not come back while the later one is there.
#[derive(Clone, Copy, Debug)]
struct Binding {
    now: AtmAddress,
    before: Option<AtmAddress>,
}

/// `ar$hrd` of Ethernet, whose ARP a bridged or LANE frame has.
const ETHERNET: [u8; 2] = [0, 1];

impl AtmArps {
    pub(crate) fn packet(&mut self, at: &At, octets: &[u8], book: &mut Book) {
        if octets.starts_with(&ETHERNET) {
            return;
        }
        let packet = match AtmArp::decode(octets) {
            Ok(packet) => packet,
            Err(error) => return book.name(Rule::AtmArpFormat, at, error.to_string()),
        };
        let (source, target) = (packet.source.known_ip(), packet.target.known_ip());
        match packet.operation {
            Operation::REQUEST => {
                let what = format!("ATMARP request of {} for {}", shown(source), shown(target));
                let key = (source, target);
                self.requests.ask(key, at, what, book);
                self.requests.lead((at.link, source), key, book);
                self.bind(at, source, packet.source.number.address(), book);
            }
            Operation::REPLY => self.reply(at, &packet, book),
            Operation::NAK => {
                self.requests.answer(&(source, target), at, book);
                let text = format!("the server does not know {}", shown(target));
                book.tell(
                    at,
                    format!("{} asked for {}: {text}", shown(source), shown(target)),
                );
                book.name(Rule::AtmArpNak, at, text);
            }
            Operation::INVERSE_REQUEST => {
                let what = format!("InATMARP request of {}", shown(source));
                self.inverse.ask((at.link, at.vc, at.way), at, what, book);
            }
            Operation::INVERSE_REPLY => {
                let key = (at.link, at.vc, at.way.map(|way| !way));
                self.inverse.answer(&key, at, book);
                self.bind(at, source, packet.source.number.address(), book);
            }
            Operation(other) => {
                let text = format!("operation {other}");
                book.name(Rule::AtmArpOperation, at, text);
            }
        }
    }

    fn reply(&mut self, at: &At, packet: &AtmArp, book: &mut Book) {
        let (source, target) = (packet.source.known_ip(), packet.target.known_ip());
        if !self.requests.answer(&(target, source), at, book) {
            self.requests.stray(&(at.link, target), at, |_, asked| {
                let about = shown(source);
                let text = format!("a reply about {about}, while {} waits", asked.what);
                Some((Rule::AtmArpOther, text))
            });
        }
        if packet.source.number.octets.is_empty() {
            let text = format!("the reply about {} has no ATM number", shown(source));
            return book.name(Rule::AtmArpAddress, at, text);
        }
        let (address, asker) = (
            packet.source.number.address(),
            packet.target.number.address(),
        );
        // A server answers the registration of an address that another station has with that station.
        if source == target
            && let (Some(address), Some(asker)) = (address, asker)
            && address != asker
        {
            let text = format!("{asker} asks for {}, which {address} has", shown(source));
            book.name(Rule::AtmArpTwice, at, text);
        }
        if let Some(address) = address {
            let text = format!(
                "{} learns that {} is at {address}",
                shown(target),
                shown(source)
            );
            book.tell(at, text);
        }
        self.bind(at, source, address, book);
    }

    fn bind(
        &mut self,
        at: &At,
        ip: Option<Ipv4Addr>,
        address: Option<AtmAddress>,
        book: &mut Book,
    ) {
        let (Some(ip), Some(address)) = (ip, address) else {
            return;
        };
        let key = (at.link, ip);
        let mut binding = Binding {
            now: address,
            before: None,
        };
        if let Some(known) = self.bindings.get(&key) {
            if known.now == address {
                return;
            }
            let other = known.now;
            binding.before = Some(other);
            if known.before == Some(address) {
                let text = format!("{ip} is at {address}, and at {other}");
                book.name(Rule::AtmArpTwice, at, text);
            }
        }
        self.bindings.put(key, binding, book);
    }

    pub(crate) fn end(&self, now_ns: i128, book: &mut Book) {
        let (answer, inverse) = (Some(Rule::AtmArpAnswer), Some(Rule::InAtmArpAnswer));
        self.requests.end(answer, ANSWER, now_ns, book);
        self.inverse.end(inverse, ANSWER, now_ns, book);
    }
}

fn shown(ip: Option<Ipv4Addr>) -> String {
    ip.map_or_else(|| "?".to_owned(), |ip| ip.to_string())
}
