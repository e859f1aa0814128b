//! Rules of calls. Source: Q.2931, Q.2971, UNI 3.1, UNI 4.0.
//!
//! A call of a link is known by its reference and by the side that chose it, which the flag and the direction tell.
//! Without directions, two calls may have one reference; so their messages are not compared then.
//!
//! Calls that began before the file are unknown. A message of an unknown call is named only on a link whose first PDU
//! was BGN. Calls that are up survive a new BGN of the link, and a station that has started again forgets them; so
//! nothing is named about a call that is older than the last BGN.

mod elements;

use crate::book::{At, Book, Open, Recent};
use crate::requests::{Asked, Requests, Seconds};
use crate::rules::Rule;
use aerostat_proto::atm::Cause;
use aerostat_wire::q2931::{CallRef, Decoded, Ie, Message, MessageType, id};
use aerostat_wire::{AtmAddress, Vc};

/// T303, which runs twice. Source: Q.2931 §5.1.1 and table 7-1: 4 s.
const SETUP: Seconds = 8;
/// T310 of a user at its longest, behind T303. Source: Q.2931 table 7-1: 30 to 120 s.
const CONNECT: Seconds = SETUP + 120;
/// T301, which ALERTING starts, behind both. Source: Q.2931 table 7-1: 180 s or longer.
const ANSWER: Seconds = CONNECT + 180;
/// T313. Source: Q.2931 table 7-1: 4 s.
const ACKNOWLEDGE: Seconds = 4;
/// T308, which runs twice. Source: Q.2931 table 7-1: 30 s.
const RELEASE: Seconds = 60;
/// T316. Source: Q.2931 table 7-1: 120 s.
const RESTART: Seconds = 120;

/// T399 of a user at its longest. Source: Q.2971 §9.4: 34 to 124 s.
const PARTY: Seconds = 124;
/// Protocol discriminator of PNNI. Source: PNNI 1.0 §6.4.5.
const PNNI: u8 = 0xf0;

/// A link, the side that chose the reference if it is known, and the reference.
type Key = (usize, Option<bool>, u32);

/// Where a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Setup,
    Proceeding,
    Alerting,
    Connected,
    Releasing,
}

/// A call.
#[derive(Clone, Debug)]
struct Call {
    state: State,
    /// [`Line::epoch`] of the SETUP.
    epoch: u64,
    setup: Asked,
    called: String,
    vc: Option<Vc>,
    connect: Option<Asked>,
    release: Option<Asked>,
}

/// SSCOP of a link, as far as calls depend on it.
#[derive(Clone, Copy, Debug, Default)]
struct Line {
    /// True if the first PDU of the link was BGN.
    whole: bool,
    /// BGNs behind messages of calls: two BGNs may cross.
    epoch: u64,
    /// True if there was a message since the last BGN.
    used: bool,
}

/// Calls of all links.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    calls: Open<Key, Call>,
    /// Calls that have ended: late messages of theirs are usual.
    ended: Recent<Key, ()>,
    /// Channels of calls: the call that has it.
    channels: Open<(usize, Vc), Key>,
    restarts: Requests<(usize, Option<bool>)>,
    parties: Requests<(Key, u16)>,
    lines: Open<usize, Line>,
}

fn cause(decoded: &Decoded) -> Option<u8> {
    match decoded.ie(id::CAUSE) {
        Some(Ie::Cause(cause)) => Some(cause.value),
        _ => None,
    }
}

fn party(decoded: &Decoded) -> u16 {
    match decoded.ie(id::ENDPOINT_REFERENCE) {
        Some(Ie::EndpointReference { value, .. }) => value,
        _ => 0,
    }
}

/// `cause 3 (no route to destination)`.
fn words(cause: Option<u8>) -> String {
    cause.map_or_else(|| "no cause".to_owned(), |cause| Cause(cause).to_string())
}

fn is_normal(cause: Option<u8>) -> bool {
    cause.is_some_and(|cause| Cause(cause).is_normal())
}

fn called_of(decoded: &Decoded) -> String {
    let address: Option<AtmAddress> = match decoded.ie(id::CALLED_NUMBER) {
        Some(Ie::CalledNumber(number)) => number.address(),
        _ => None,
    };
    address.map_or_else(|| "?".to_owned(), |address| address.to_string())
}

impl Calls {
    /// Takes any PDU of a link; `begins` is true for BGN.
    pub(crate) fn pdu(&mut self, at: &At, begins: bool, book: &mut Book) {
        match self.lines.get_mut(&at.link) {
            Some(line) if begins && line.used => (line.epoch, line.used) = (line.epoch + 1, false),
            Some(_) => {}
            None => {
                let line = Line {
                    whole: begins,
                    ..Line::default()
                };
                self.lines.put(at.link, line, book);
            }
        }
    }

    fn line(&self, link: usize) -> Line {
        self.lines.get(&link).copied().unwrap_or_default()
    }

    /// Takes the message of an SD or UD.
    pub(crate) fn message(&mut self, at: &At, octets: &[u8], book: &mut Book) {
        if octets.first() == Some(&PNNI) {
            return book.note("signalling of PNNI is not read");
        }
        let decoded = match Message::decode(octets) {
            Ok(decoded) => decoded,
            Err(error) => return book.name(Rule::CallFormat, at, error.to_string()),
        };
        elements::check(at, &decoded, book);
        if let Some(line) = self.lines.get_mut(&at.link) {
            line.used = true;
        }
        let CallRef { flag, value } = decoded.message.call;
        let kind = decoded.message.kind;
        if value == CallRef::GLOBAL {
            return self.global(at, kind, &decoded, book);
        }
        if value == CallRef::DUMMY {
            return;
        }
        let key = (at.link, at.way.map(|way| way != flag), value);
        match kind {
            MessageType::SETUP => self.setup(at, key, &decoded, book),
            MessageType::RELEASE_COMPLETE => self.complete(at, key, &decoded, book),
            MessageType::STATUS => status(at, &decoded, book),
            MessageType::STATUS_ENQUIRY => {}
            _ if self.calls.has(&key) => self.of_call(at, key, &decoded, book),
            _ => {
                let line = self.line(at.link);
                let known = line.whole && line.epoch == 0 && !self.ended.has(&key);
                if known && at.way.is_some() {
                    let text = format!("{} of call {value}, which does not exist", kind.name());
                    book.name(Rule::CallStray, at, text);
                }
            }
        }
    }

    fn global(&mut self, at: &At, kind: MessageType, decoded: &Decoded, book: &mut Book) {
        match kind {
            MessageType::RESTART => {
                self.restarts.ask((at.link, at.way), at, "RESTART", book);
                let calls = (at.link, None, 0)..=(at.link, Some(true), u32::MAX);
                self.calls.take_range(calls);
                let (first, last) = (Vc::new(0, 0), Vc::new(u16::MAX, u16::MAX));
                self.channels.take_range((at.link, first)..=(at.link, last));
            }
            MessageType::RESTART_ACK => {
                let key = (at.link, at.way.map(|way| !way));
                self.restarts.answer(&key, at, book);
            }
            MessageType::STATUS => status(at, decoded, book),
            _ => {}
        }
    }

    fn setup(&mut self, at: &At, key: Key, decoded: &Decoded, book: &mut Book) {
        let called = called_of(decoded);
        let (_, _, value) = key;
        // The network chooses the channel, so a SETUP without one comes from a user.
        if decoded.message.find(id::CONNECTION_ID).is_none()
            && let Some(Ie::CallingNumber(number)) = decoded.ie(id::CALLING_NUMBER)
            && let Some(caller) = number.address()
        {
            book.learn(caller, at);
        }
        let epoch = self.line(at.link).epoch;
        if let Some(call) = self.calls.get_mut(&key).filter(|call| call.epoch == epoch) {
            // An unanswered SETUP is repeated once, and may cross its answer.
            let is_early = !matches!(call.state, State::Connected | State::Releasing);
            if is_early && call.called == called {
                return call.setup.again();
            }
            if at.way.is_some() {
                let text = format!(
                    "SETUP with reference {value}, which a call to {} has",
                    call.called
                );
                book.name(Rule::CallReference, at, text);
            }
        }
        let what = format!("SETUP {value} to {called}");
        let call = Call {
            state: State::Setup,
            epoch,
            setup: Asked::new(at, what),
            called,
            vc: None,
            connect: None,
            release: None,
        };
        self.ended.take(&key);
        self.forget(key);
        self.calls.put(key, call, book);
        self.channel(at, key, decoded, book);
    }

    /// Takes a call and what belongs to it out of the tables.
    fn forget(&mut self, key: Key) -> Option<Call> {
        self.parties.forget((key, 0)..=(key, u16::MAX));
        let call = self.calls.take(&key)?;
        let (link, ..) = key;
        if let Some(vc) = call.vc
            && self.channels.get(&(link, vc)) == Some(&key)
        {
            self.channels.take(&(link, vc));
        }
        Some(call)
    }

    /// The first message with a connection identifier gives the call its channel.
    fn channel(&mut self, at: &At, key: Key, decoded: &Decoded, book: &mut Book) {
        let Some(Ie::ConnectionId(connection)) = decoded.ie(id::CONNECTION_ID) else {
            return;
        };
        let (Some(vc), Some(call)) = (connection.vc(), self.calls.get_mut(&key)) else {
            return;
        };
        if call.vc == Some(vc) {
            return;
        }
        if let Some(before) = call.vc.replace(vc) {
            self.channels.take(&(at.link, before));
        }
        let epoch = self.line(at.link).epoch;
        let other = self.channels.get(&(at.link, vc)).copied();
        let other = other.filter(|other| {
            let call = self.calls.get(other);
            at.way.is_some() && *other != key && call.is_some_and(|call| call.epoch == epoch)
        });
        if let Some((_, _, other)) = other {
            let (_, _, own) = key;
            let text = format!("call {own} gets VC {vc}, which call {other} has");
            book.name(Rule::CallChannel, at, text);
        }
        self.channels.put((at.link, vc), key, book);
    }

    fn of_call(&mut self, at: &At, key: Key, decoded: &Decoded, book: &mut Book) {
        let kind = decoded.message.kind;
        self.channel(at, key, decoded, book);
        let (_, _, value) = key;
        if self.party(at, key, decoded, book) {
            return;
        }
        let Some(call) = self.calls.get_mut(&key) else {
            return;
        };
        match kind {
            MessageType::CALL_PROCEEDING | MessageType::ALERTING => match call.state {
                State::Connected if at.way.is_some() => {
                    let text = format!("{} of call {value} after CONNECT", kind.name());
                    book.name(Rule::CallOrder, at, text);
                }
                State::Setup | State::Proceeding if kind == MessageType::ALERTING => {
                    call.state = State::Alerting;
                }
                State::Setup => call.state = State::Proceeding,
                _ => {}
            },
            MessageType::CONNECT => {
                if call.state != State::Connected {
                    let on = call.vc.map_or_else(String::new, |vc| format!(" on {vc}"));
                    let text = format!("the call of {} to {} is connected{on}", at.to, call.called);
                    book.tell(at, text);
                }
                call.state = State::Connected;
                call.connect = Some(Asked::new(at, format!("CONNECT of call {value}")));
            }
            MessageType::CONNECT_ACK => call.connect = None,
            MessageType::RELEASE => {
                // Of two RELEASEs that cross, each is the answer to the other. Source: Q.2931 §5.4.5.
                if let Some(release) = &mut call.release {
                    if release.at.way != at.way {
                        self.forget(key);
                        self.ended.put(key, (), book);
                    } else {
                        release.again();
                    }
                    return;
                }
                call.connect = None;
                call.release = Some(Asked::new(at, format!("RELEASE of call {value}")));
                let before = call.clone();
                call.state = State::Releasing;
                ended(at, &before, cause(decoded), book);
            }
            _ => {}
        }
    }

    /// Takes a message about a party; false for others.
    fn party(&mut self, at: &At, key: Key, decoded: &Decoded, book: &mut Book) -> bool {
        let (_, _, value) = key;
        match decoded.message.kind {
            MessageType::ADD_PARTY => {
                let what = format!("ADD PARTY of call {value} for {}", called_of(decoded));
                self.parties.ask((key, party(decoded)), at, what, book);
            }
            MessageType::ADD_PARTY_ACK | MessageType::PARTY_ALERTING => {
                self.parties.answer(&(key, party(decoded)), at, book);
            }
            MessageType::ADD_PARTY_REJECT => {
                self.parties.answer(&(key, party(decoded)), at, book);
                let text = format!("a party of call {value}: {}", words(cause(decoded)));
                book.tell(at, format!("{} refuses {text}", at.from));
                book.name(Rule::CallParty, at, text);
            }
            _ => return false,
        }
        true
    }

    fn complete(&mut self, at: &At, key: Key, decoded: &Decoded, book: &mut Book) {
        let (_, _, value) = key;
        let why = cause(decoded);
        self.ended.put(key, (), book);
        let Some(call) = self.forget(key) else {
            if why == Some(81) {
                let text = format!("{} knows no call {value}: {}", at.from, words(why));
                book.name(Rule::CallStray, at, text);
            }
            return;
        };
        if call.state == State::Releasing {
            return;
        }
        if why.is_none() {
            let text = format!("RELEASE COMPLETE ends call {value} without a cause");
            book.name(Rule::CallCause, at, text);
        }
        ended(at, &call, why, book);
    }

    pub(crate) fn end(&self, now_ns: i128, book: &mut Book) {
        for ((link, side, _), call) in self.calls.iter() {
            if side.is_none() || call.epoch != self.line(*link).epoch {
                continue;
            }
            if let Some((rule, wait)) = call.waits_for() {
                call.setup.end(rule, wait, now_ns, book);
            }
            if let Some(connect) = &call.connect {
                connect.end(Rule::CallAcknowledge, ACKNOWLEDGE, now_ns, book);
            }
            if let Some(release) = &call.release {
                release.end(Rule::CallRelease, RELEASE, now_ns, book);
            }
        }
        self.restarts
            .end(Some(Rule::CallRestart), RESTART, now_ns, book);
        self.parties.end(Some(Rule::CallParty), PARTY, now_ns, book);
    }
}

impl Call {
    /// The rule that a missing answer to SETUP breaks, and the time that it may take.
    const fn waits_for(&self) -> Option<(Rule, Seconds)> {
        match self.state {
            State::Setup => Some((Rule::CallSetup, SETUP)),
            State::Proceeding => Some((Rule::CallConnect, CONNECT)),
            State::Alerting => Some((Rule::CallConnect, ANSWER)),
            State::Connected | State::Releasing => None,
        }
    }
}

/// The first message that clears a call: a refusal, the end of a connection, or a caller that waits no longer.
fn ended(at: &At, call: &Call, why: Option<u8>, book: &mut Book) {
    let (from, called) = (&at.from, &call.called);
    let is_caller = at.way.is_some() && at.way == call.setup.at.way;
    match call.state {
        State::Releasing => {}
        State::Connected => {
            let text = format!("{from} ends the call to {called}: {}", words(why));
            book.tell(at, text);
            if !is_normal(why) {
                let text = format!("the call to {called} ended: {}", words(why));
                book.name(Rule::CallCleared, at, text);
            }
        }
        State::Setup | State::Proceeding | State::Alerting if is_caller => {
            let text = format!("{from} gives up the call to {called}: {}", words(why));
            book.tell(at, text);
            // No user responds (18), no answer (19): the caller's own timer tells that the answer is missed.
            if let Some((rule, _)) = call
                .waits_for()
                .filter(|_| matches!(why, Some(18 | 19 | TIMER)))
            {
                call.setup.end(rule, 0, at.time_ns, book);
            } else if !is_normal(why) {
                let text = format!("the call to {called}: {}", words(why));
                book.name(Rule::CallCleared, at, text);
            }
        }
        State::Setup | State::Proceeding | State::Alerting => {
            let text = format!("{from} refuses the call to {called}: {}", words(why));
            book.tell(at, text);
            if !is_normal(why) {
                let text = format!("the call to {called}: {}", words(why));
                book.name(Rule::CallRefused, at, text);
            }
        }
    }
}

/// Cause "recovery on timer expiry". Source: Q.850.
const TIMER: u8 = 102;

/// STATUS answers STATUS ENQUIRY (cause 30), or reports an error.
fn status(at: &At, decoded: &Decoded, book: &mut Book) {
    let why = cause(decoded);
    if why != Some(30) {
        let text = format!("STATUS: {}", words(why));
        book.name(Rule::CallStatus, at, text);
    }
}
