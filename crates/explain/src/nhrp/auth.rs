//! Stations that authenticate themselves, to whom and how.
//!
//! The extension has a reserved half word and an SPI. In the RFC the sender's address and a digest of 16 octets follow.
//! Cisco's routers, and FRR, have SPI 1 and then the password as it was typed (at most 8 characters). Everybody on the
//! way reads it, and can send it: it keeps apart what was configured by mistake, and no attacker.
//!
//! Source: RFC 2332 §5.3.4; FRR's `nhrpd` (`nhrp_vty.c`).

use crate::book::{At, Book, Open, Recent};
use crate::rules::Rule;
use aerostat_wire::Vc;
use aerostat_wire::nhrp::{Packet, ext, op};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Octets in front of password or address.
const HEAD: usize = 4;
/// SPI of a password in clear text.
const CLEAR_SPI: u16 = 1;
/// Longest password.
const PASSWORD: usize = 8;

/// The authentication of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Auth {
    None,
    Clear(Vec<u8>),
    /// A digest, by its SPI.
    Digest(u16),
}

impl Auth {
    fn of(packet: &Packet) -> Self {
        let Some(extension) = packet.extension(ext::AUTHENTICATION) else {
            return Self::None;
        };
        let (head, rest) = extension.value.split_at(HEAD.min(extension.value.len()));
        let spi = match head {
            [_, _, high, low] => u16::from_be_bytes([*high, *low]),
            _ => 0,
        };
        match spi == CLEAR_SPI && rest.len() <= PASSWORD {
            true => Self::Clear(rest.to_vec()),
            false => Self::Digest(spi),
        }
    }
}

/// One end: an address, or a side of a VC.
type End = (String, Option<(usize, Option<Vc>, Option<bool>)>);

fn end(name: &str, at: &At, way: Option<bool>) -> End {
    let place = at.vc.map(|vc| (at.link, Some(vc), way));
    (name.to_owned(), place)
}

/// Packets of one end to another.
#[derive(Clone, Debug)]
struct Sent {
    at: At,
    auth: Auth,
    name: &'static str,
}

/// Authentication of all ends.
#[derive(Debug, Default)]
pub(super) struct Auths {
    sent: Open<(End, End), Sent>,
    /// Senders and receivers of Error Indications about authentication.
    refused: Recent<(Rc<str>, Rc<str>), ()>,
}

impl Auths {
    /// Notes the authentication of a packet that is no Error Indication.
    pub(super) fn sent(&mut self, at: &At, packet: &Packet, name: &'static str, book: &mut Book) {
        let auth = Auth::of(packet);
        let back = at.way.map(|way| !way);
        let ends = (end(&at.from, at, at.way), end(&at.to, at, back));
        if let Auth::Clear(password) = &auth {
            let password = String::from_utf8_lossy(password).escape_debug().to_string();
            let text = format!(
                "the password '{password}' in clear text: everybody on the way can read and use it"
            );
            let before = self.sent.get(&ends).map(|sent| &sent.auth);
            if before != Some(&auth) {
                book.name(Rule::NhrpClear, at, text);
            }
        }
        // Purges and indications may be unsigned where the rest is not, so the first request or reply counts.
        if packet.op <= op::REGISTRATION_REPLY || !self.sent.has(&ends) {
            let sent = Sent {
                at: at.clone(),
                auth,
                name,
            };
            self.sent.put(ends, sent, book);
        }
    }

    /// Notes an Error Indication about authentication: its receiver was refused.
    pub(super) fn refused(&mut self, at: &At, book: &Book) {
        self.refused.put((at.from.clone(), at.to.clone()), (), book);
    }

    /// Names ends that differ. `deaf` has the links and directions of requests without an answer.
    pub(super) fn end(&self, deaf: &BTreeSet<(usize, Option<bool>)>, book: &mut Book) {
        let others = self.signed();
        for ((from, to), sent) in self.sent.iter() {
            let (at, auth) = (&sent.at, &sent.auth);
            let answer = self.sent.get(&(to.clone(), from.clone()));
            let refused = self.refused.has(&(at.to.clone(), at.from.clone()));
            let wanted = match answer {
                Some(answer) => Some(&answer.auth),
                // Without an answer, what others send to the same end tells what it wants.
                None if refused || deaf.contains(&(at.link, at.way)) => {
                    let list = others.get(to).map(Vec::as_slice).unwrap_or_default();
                    let other = list.iter().find(|(other, _)| *other != from);
                    other.map(|(_, auth)| *auth)
                }
                None => None,
            };
            match (auth, wanted) {
                (Auth::None, wanted)
                    if refused || wanted.is_some_and(|other| *other != Auth::None) =>
                {
                    let text = format!(
                        "{} has no authentication, and {} needs it",
                        sent.name, at.to
                    );
                    book.tell(at, format!("{} does not authenticate itself", at.from));
                    book.name(Rule::NhrpUnsigned, at, text);
                }
                (own, _) if refused && *own != Auth::None => {
                    let text =
                        format!("{} has a password or key that {} refuses", sent.name, at.to);
                    book.name(Rule::NhrpPassword, at, text);
                }
                (own, Some(other))
                    if own != other && *own != Auth::None && *other != Auth::None =>
                {
                    let text = format!("{} has another password or SPI than {}", sent.name, at.to);
                    book.name(Rule::NhrpPassword, at, text);
                }
                _ => {}
            }
        }
    }

    /// The first two ends that authenticate themselves to each end, and how.
    fn signed(&self) -> BTreeMap<&End, Vec<(&End, &Auth)>> {
        let mut all: BTreeMap<&End, Vec<(&End, &Auth)>> = BTreeMap::new();
        for ((from, to), sent) in self.sent.iter() {
            let list = all.entry(to).or_default();
            if sent.auth != Auth::None && list.len() < 2 {
                list.push((from, &sent.auth));
            }
        }
        all
    }
}
