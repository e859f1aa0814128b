//! Rules of ATMARP and InATMARP. Source: RFC 2225, RFC 2390.

use crate::book::{At, Book, Open};
use crate::requests::{Requests, Seconds};
use crate::rules::Rule;
use aerostat_wire::AtmAddress;
use aerostat_wire::atmarp::{AtmArp, Operation};
use std::net::Ipv4Addr;

/// Time that an answer may take. The standard leaves it to its users; hosts repeat a request after some seconds.
const ANSWER: Seconds = 5;

/// The station that asks, and the one that it asks about.
type Question = (Option<Ipv4Addr>, Option<Ipv4Addr>);

/// ATMARP of all links.
#[derive(Debug, Default)]
pub(crate) struct AtmArps {
    requests: Requests<Question>,
    inverse: Requests<(usize, Option<aerostat_wire::Vc>, Option<bool>)>,
    bindings: Open<Ipv4Addr, AtmAddress>,
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
                self.requests.ask((source, target), at, what, book);
            }
            Operation::REPLY => self.reply(at, &packet, book),
            Operation::NAK => {
                self.requests.answer(&(source, target));
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
                self.inverse
                    .answer(&(at.link, at.vc, at.way.map(|way| !way)));
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
        if self.requests.answer(&(target, source)).is_none() {
            let other = self.requests.waiting(|(asker, _), _| *asker == target);
            if let Some(asked) = other {
                let text = format!(
                    "a reply about {}, while {} waits",
                    shown(source),
                    asked.what
                );
                book.name(Rule::AtmArpOther, at, text);
            }
        }
        if packet.source.number.octets.is_empty() {
            let text = format!("the reply about {} has no ATM number", shown(source));
            return book.name(Rule::AtmArpAddress, at, text);
        }
        let address = packet.source.number.address();
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
        if let Some(before) = self.bindings.get(&ip).filter(|before| **before != address) {
            let text = format!("{ip} was at {before}, and is at {address}");
            book.name(Rule::AtmArpTwice, at, text);
        }
        self.bindings.put(ip, address, book);
    }

    pub(crate) fn end(&self, now_ns: i128, book: &mut Book) {
        self.requests.end(Rule::AtmArpAnswer, ANSWER, now_ns, book);
        self.inverse.end(Rule::InAtmArpAnswer, ANSWER, now_ns, book);
    }
}

fn shown(ip: Option<Ipv4Addr>) -> String {
    ip.map_or_else(|| "?".to_owned(), |ip| ip.to_string())
}
