//! Rules of NHRP and MPOA, on ATM and over GRE. Source: RFC 2332, MPOA 1.1, and for DMVPN draft-detienne-dmvpn-01.
//!
//! A request that several servers pass on is one request: its source, its kind and its id make its key. So an answer
//! counts wherever the file has it. Where a request is seen on its way in and on its way out, its answer may go
//! directly to the asking station, as in phase 3 of DMVPN; so no answer is missed there.

mod auth;

use crate::book::{At, Book, Recent};
use crate::requests::{Requests, Seconds};
use crate::rules::Rule;
use aerostat_wire::mpoa::{self, DllHeader, Tag};
use aerostat_wire::nhrp::{
    Body, Common, ErrorIndication, NbmaAddress, Packet, ProtocolAddress, code, error, ext, flag, op,
};
use aerostat_wire::{ErrorKind, Vc, counted};
use auth::Auths;
use std::net::IpAddr;

/// Time that an answer may take. Source: RFC 2677, the default of its time-out; MPOA repeats after 5 s (MPC-p4).
const ANSWER: Seconds = 10;
/// Address families. Source: IANA, address family numbers.
const AFN_IPV4: u16 = 1;
const AFN_NSAP: u16 = 3;

/// Type of the request, source, id.
type Key = (u8, ProtocolAddress, u32);

/// One way of a link, and on ATM of a VC.
type Way = (usize, Option<bool>, Option<Vc>);

/// Link, direction, type and source of requests: the last request of a group waits for the next answer.
type Group = (usize, Option<bool>, u8, ProtocolAddress);

/// A request, as far as its reply has to have it.
#[derive(Clone, Debug)]
struct Told {
    source_nbma: NbmaAddress,
    destination: ProtocolAddress,
    /// Way and code of its first reply.
    reply: Option<(Way, u8)>,
}

/// NHRP and MPOA of all links.
#[derive(Debug, Default)]
pub(crate) struct Nhrp {
    registrations: Requests<Key, Group>,
    resolutions: Requests<Key, Group>,
    purges: Requests<Key, Group>,
    mpoa: Requests<Key, Group>,
    told: Recent<Key, Told>,
    /// The first way of each request.
    first: Recent<Key, Way>,
    /// Hop counts of requests, by the way that they went.
    hops: Recent<(Key, Way), u8>,
    /// Last sequence numbers of Keep-Alives, by server.
    keep_alives: Recent<(Way, NbmaAddress), u32>,
    auths: Auths,
}

/// The type of the request that a reply answers.
const fn request_of(kind: u8) -> Option<u8> {
    match kind {
        op::RESOLUTION_REPLY | op::REGISTRATION_REPLY | op::PURGE_REPLY => Some(kind - 1),
        mpoa::op::IMPOSITION_REPLY | mpoa::op::EGRESS_PURGE_REPLY | mpoa::op::RESOLUTION_REPLY => {
            Some(kind - 1)
        }
        _ => None,
    }
}

const fn is_request(kind: u8) -> bool {
    request_of(kind + 1).is_some()
}

fn shown(address: &ProtocolAddress) -> String {
    address
        .ip()
        .map_or_else(|| "?".to_owned(), |ip| ip.to_string())
}

fn shown_nbma(address: &NbmaAddress) -> String {
    match (address.atm(), address.ip()) {
        (Some(atm), _) => atm.to_string(),
        (_, Some(ip)) => ip.to_string(),
        _ => "?".to_owned(),
    }
}

/// The rule that octets break which are no packet.
fn rule_of(failure: &aerostat_wire::DecodeError) -> Rule {
    match (failure.field, failure.kind) {
        ("ar$pktsz", _) => Rule::NhrpLength,
        ("ar$chksum", ErrorKind::Checksum) => Rule::NhrpChecksum,
        ("ar$op.version", _) => Rule::NhrpVersion,
        ("ar$op.type", _) => Rule::NhrpType,
        ("ar$extoff", _) => Rule::NhrpExtensions,
        (field, _) if field.contains("xtension") => Rule::NhrpExtensions,
        _ => Rule::NhrpFormat,
    }
}

impl Nhrp {
    /// Takes a packet without LLC.
    pub(crate) fn packet(&mut self, at: &At, octets: &[u8], book: &mut Book) {
        let packet = match Packet::decode(octets) {
            Ok(packet) => packet,
            Err(failure) => return book.name(rule_of(&failure), at, failure.to_string()),
        };
        self.extensions(at, &packet, book);
        match &packet.body {
            Body::Error(indication) if packet.op == op::ERROR_INDICATION => {
                self.error(at, indication, book);
            }
            Body::Error(indication) => book.tell(at, redirect(at, indication)),
            Body::Common(common) => self.common(at, &packet, common, book),
        }
    }

    fn common(&mut self, at: &At, packet: &Packet, common: &Common, book: &mut Book) {
        let name = mpoa::op_name(packet.op);
        self.auths.sent(at, packet, name, book);
        lengths(at, packet, common, book);
        match request_of(packet.op) {
            Some(request) => self.reply(at, packet, (request, common), book),
            None if is_request(packet.op) => self.request(at, packet, common, book),
            None if packet.op == mpoa::op::KEEP_ALIVE => self.keep_alive(at, common, book),
            None => {}
        }
    }

    fn request(&mut self, at: &At, packet: &Packet, common: &Common, book: &mut Book) {
        let key = (packet.op, common.source.clone(), common.request_id);
        let name = mpoa::op_name(packet.op);
        self.hop_count(at, &key, packet, book);
        let what = format!(
            "{name} {} of {} for {}",
            common.request_id,
            shown(&common.source),
            shown(&common.destination)
        );
        if packet.op == op::REGISTRATION_REQUEST {
            if common.cies.iter().any(|cie| cie.holding_s == 0) {
                let text = format!("{name} {} with holding time 0", common.request_id);
                book.name(Rule::NhrpHolding, at, text);
            }
            behind_nat(at, common, book);
        }
        if packet.op != op::PURGE_REQUEST || common.flags & flag::NO_REPLY == 0 {
            let way = (at.link, at.way, at.vc);
            let passed_on = self.first.get(&key).is_some_and(|first| *first != way);
            if !passed_on {
                self.first.put(key.clone(), way, book);
            }
            let group = (at.link, at.way, packet.op, common.source.clone());
            let requests = self.requests(packet.op);
            requests.ask(key.clone(), at, what, book);
            requests.lead(group, key.clone(), book);
            if passed_on {
                requests.relay(&key);
            }
        }
        let imposes = packet.op == mpoa::op::IMPOSITION_REQUEST;
        if imposes && packet.extension(mpoa::ext::DLL_HEADER).is_none() {
            let text = format!("{name} {} has no DLL Header", common.request_id);
            book.name(Rule::MpoaHeader, at, text);
        }
        let told = Told {
            source_nbma: common.source_nbma.clone(),
            destination: common.destination.clone(),
            reply: None,
        };
        self.told.put(key, told, book);
    }

    /// A request with fewer hops than before went round; its source gives it at least one.
    fn hop_count(&mut self, at: &At, key: &Key, packet: &Packet, book: &mut Book) {
        let (name, (_, _, id)) = (mpoa::op_name(packet.op), key);
        let way = (key.clone(), (at.link, at.way, at.vc));
        let before = self.hops.get(&way).copied();
        if let Some(before) = before.filter(|before| *before > packet.hop_count) {
            let hops = packet.hop_count;
            let text = format!("{name} {id} came with hop count {before}, and again with {hops}");
            book.name(Rule::NhrpLoop, at, text);
        }
        self.hops.put(way, packet.hop_count, book);
        let source = packet.common().and_then(|common| common.source_nbma.ip());
        let from: Option<IpAddr> = at.from.parse().ok();
        let by_source = source.is_some_and(|source| from == Some(source.into()));
        if by_source && packet.hop_count == 0 {
            let text = format!("{name} {id} of {} with hop count 0", at.from);
            book.name(Rule::NhrpHops, at, text);
        }
    }

    const fn requests(&mut self, request: u8) -> &mut Requests<Key, Group> {
        match request {
            op::REGISTRATION_REQUEST => &mut self.registrations,
            op::RESOLUTION_REQUEST => &mut self.resolutions,
            op::PURGE_REQUEST => &mut self.purges,
            _ => &mut self.mpoa,
        }
    }

    fn reply(
        &mut self,
        at: &At,
        packet: &Packet,
        (request, common): (u8, &Common),
        book: &mut Book,
    ) {
        let key = (request, common.source.clone(), common.request_id);
        let name = mpoa::op_name(packet.op);
        let requests = self.requests(request);
        if !requests.answer(&key, at, book) {
            let back = at.way.map(|way| !way);
            let group = (at.link, back, request, common.source.clone());
            requests.stray(&group, at, |_, asked| {
                let text = format!("{name} {}, while {} waits", common.request_id, asked.what);
                Some((Rule::NhrpId, text))
            });
        }
        let told = self.told.take(&key);
        let differs = |told: &Told| {
            // A station that registers and does not know its server names itself, and the server itself (§5.2.3).
            let to_itself =
                request == op::REGISTRATION_REQUEST && told.destination == common.source;
            let destination = to_itself || told.destination == common.destination;
            !destination || told.source_nbma != common.source_nbma
        };
        if told.as_ref().is_some_and(differs) {
            let id = common.request_id;
            let text = format!("{name} {id} has other addresses than its request");
            book.name(Rule::NhrpReply, at, text);
        }
        let (way, code) = ((at.link, at.way, at.vc), worst(common));
        let before = told.as_ref().and_then(|told| told.reply);
        let passed_on = before.is_some_and(|(first, same)| first != way && same == code);
        if let Some(told) = told {
            let reply = Some(before.unwrap_or((way, code)));
            self.told.put(key, Told { reply, ..told }, book);
        }
        if !passed_on {
            self.verdict(at, packet, (request, common), book);
        }
    }

    /// The code of a reply, and its holding time.
    fn verdict(&self, at: &At, packet: &Packet, (request, common): (u8, &Common), book: &mut Book) {
        let name = mpoa::op_name(packet.op);
        let (from, to) = (shown(&common.destination), shown(&common.source));
        let refused = common.cies.iter().find(|cie| cie.code != code::OK);
        if let Some(cie) = refused {
            let rule = match request < mpoa::op::IMPOSITION_REQUEST {
                true => Rule::NhrpRefused,
                false => Rule::MpoaRefused,
            };
            let why = mpoa::code_name(cie.code);
            let text = format!("{name} {}: code {} ({why})", common.request_id, cie.code);
            let words = match request {
                op::REGISTRATION_REQUEST => format!("{from} does not register {to}: {why}"),
                _ => format!("{to} gets no answer about {from}: {why}"),
            };
            book.tell(at, words);
            book.name(rule, at, text);
            if request == op::RESOLUTION_REQUEST && cie.holding_s != 0 {
                let text = format!(
                    "{name} {}: holding time {} s",
                    common.request_id, cie.holding_s
                );
                book.name(Rule::NhrpNakHolding, at, text);
            }
            return;
        }
        let wants_time = matches!(request, op::REGISTRATION_REQUEST | op::RESOLUTION_REQUEST);
        if wants_time && common.cies.iter().any(|cie| cie.holding_s == 0) {
            let text = format!("{name} {} with holding time 0", common.request_id);
            book.name(Rule::NhrpHolding, at, text);
        }
        let Some(cie) = common.cies.first() else {
            return;
        };
        match request {
            op::REGISTRATION_REQUEST => {
                let text = format!("{from} registers {to} for {} s", cie.holding_s);
                book.tell(at, text);
            }
            op::RESOLUTION_REQUEST => {
                let at_nbma = shown_nbma(&cie.nbma);
                let text = format!(
                    "{to} learns that {from} is behind {} at {at_nbma}",
                    shown(&cie.protocol)
                );
                book.tell(at, text);
            }
            _ => {}
        }
    }

    fn keep_alive(&mut self, at: &At, common: &Common, book: &mut Book) {
        let way = (at.link, at.way, at.vc);
        let key = (way, common.source_nbma.clone());
        let before = self.keep_alives.get(&key).copied();
        if let Some(before) = before.filter(|before| *before > common.request_id) {
            let text = format!("number {} after {before}", common.request_id);
            book.name(Rule::MpoaKeepAlive, at, text);
        }
        self.keep_alives.put(key, common.request_id, book);
    }

    fn error(&mut self, at: &At, indication: &ErrorIndication, book: &mut Book) {
        let why = error::name(indication.code);
        let to = shown(&indication.destination);
        let from = match indication.source == indication.destination {
            // FRR has the addresses of the packet, and a registration may be addressed to its own source.
            true => at.from.to_string(),
            false => shown(&indication.source),
        };
        let text = format!(
            "code {} ({why}) at offset {}",
            indication.code, indication.offset
        );
        let about = Packet::beginning(&indication.offending);
        if about
            .as_ref()
            .is_some_and(|(kind, _)| *kind == op::ERROR_INDICATION)
        {
            return book.name(Rule::NhrpErrorAboutError, at, text);
        }
        let what = match &about {
            Some((kind, common)) => format!("{} {}", mpoa::op_name(*kind), common.request_id),
            None => "a packet".to_owned(),
        };
        book.tell(at, format!("{from} refuses {what} of {to}: {why}"));
        book.name(Rule::NhrpError, at, text);
        if indication.code == error::AUTHENTICATION {
            self.auths.refused(at, book);
        }
        // The error is the answer.
        if let Some((kind, common)) = about {
            let key = (kind, common.source, common.request_id);
            self.requests(kind).answer(&key, at, book);
        }
    }

    fn extensions(&self, at: &At, packet: &Packet, book: &mut Book) {
        if let Some(kind) =
            mpoa::unknown_compulsory(packet).filter(|kind| *kind != ext::NAT_ADDRESS)
        {
            let text = format!("extension {kind}");
            book.name(Rule::NhrpCompulsory, at, text);
        }
        let mut kinds: Vec<u16> = packet
            .extensions
            .iter()
            .flatten()
            .map(|one| one.kind())
            .collect();
        kinds.sort_unstable();
        let twice = kinds.windows(2).find(|pair| pair.first() == pair.last());
        // Vendors may have several.
        if let Some(&[kind, _]) = twice.filter(|pair| !pair.contains(&ext::VENDOR)) {
            let text = format!("extension {kind} occurs twice");
            book.name(Rule::NhrpTwice, at, text);
        }
        let wrong = DllHeader::of(packet)
            .map(drop)
            .and_then(|()| Tag::of(packet).map(drop));
        if let Err(failure) = wrong {
            book.name(Rule::MpoaExtension, at, failure.to_string());
        }
    }

    pub(crate) fn end(&self, now_ns: i128, book: &mut Book) {
        let tables = [
            (&self.registrations, Rule::NhrpRegistration),
            (&self.resolutions, Rule::NhrpResolution),
            (&self.purges, Rule::NhrpPurge),
            (&self.mpoa, Rule::MpoaAnswer),
        ];
        for (requests, rule) in tables {
            requests.end(Some(rule), ANSWER, now_ns, book);
        }
        let waiting = self
            .registrations
            .waiting()
            .chain(self.resolutions.waiting());
        let deaf = waiting.map(|asked| (asked.at.link, asked.at.way)).collect();
        self.auths.end(&deaf, book);
    }
}

/// The code that a reply has for its first entry that is refused, or 0.
fn worst(common: &Common) -> u8 {
    let mut codes = common.cies.iter().map(|cie| cie.code);
    codes.find(|code| *code != code::OK).unwrap_or(code::OK)
}

/// A Traffic Indication in words. Its header has the sender and the source of the packet that took the long way, as
/// FRR fills it; the beginning of this packet is inside and tells where it went.
fn redirect(at: &At, indication: &ErrorIndication) -> String {
    let from = shown(&indication.source);
    match ip_ends(&indication.offending) {
        Some([source, to]) => {
            let spoke = &at.to;
            format!(
                "{from} tells {spoke} of a shorter way from {source} to {to} (Traffic Indication)"
            )
        }
        None => {
            let source = shown(&indication.destination);
            format!("{from} tells of a shorter way for {source} (Traffic Indication)")
        }
    }
}

/// Source and destination of an IP packet of which the end may be missing.
fn ip_ends(octets: &[u8]) -> Option<[IpAddr; 2]> {
    let address4 = |at: usize| -> Option<IpAddr> {
        let four: [u8; 4] = octets.get(at..at + 4)?.try_into().ok()?;
        Some(four.into())
    };
    let address6 = |at: usize| -> Option<IpAddr> {
        let sixteen: [u8; 16] = octets.get(at..at + 16)?.try_into().ok()?;
        Some(sixteen.into())
    };
    match octets.first()? >> 4 {
        4 => Some([address4(12)?, address4(16)?]),
        6 => Some([address6(8)?, address6(24)?]),
        _ => None,
    }
}

/// Lengths of addresses, by their families.
fn lengths(at: &At, packet: &Packet, common: &Common, book: &mut Book) {
    let nbma = match packet.afn {
        AFN_IPV4 => 4,
        AFN_NSAP => 20,
        _ => return,
    };
    let cies = common.cies.iter().map(|cie| &cie.nbma);
    let wrong = std::iter::once(&common.source_nbma)
        .chain(cies)
        .find(|address| !matches!(address.octets().len(), 0) && address.octets().len() != nbma);
    // Prefixes of ATM addresses are shorter than 20 octets in no field of an entry.
    if let Some(address) = wrong {
        let octets = counted(address.octets().len(), "octet", "octets");
        let text = format!(
            "an NBMA address of {octets}, where family {} has {nbma}",
            packet.afn
        );
        book.name(Rule::NhrpAddress, at, text);
    }
}

/// A registration with another NBMA address than its packet has: a spoke behind NAT.
fn behind_nat(at: &At, common: &Common, book: &mut Book) {
    let Some(told) = common.source_nbma.ip() else {
        return;
    };
    if at.vc.is_none() && at.from.parse().is_ok_and(|from: IpAddr| from != told) {
        book.note(format!(
            "{} registers {told} from {}: it is behind NAT, or the request was passed on",
            shown(&common.source),
            at.from
        ));
    }
}
