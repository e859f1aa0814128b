//! Rules of calls. Source: Q.2931, Q.2971, UNI 3.1, UNI 4.0.
//!
//! A call of a link is known by its reference and by the side that chose it, which the flag and the direction tell. Of
//! calls that began before the file, nothing is missed.

mod elements;

use crate::book::{At, Book, Open};
use crate::requests::{Asked, Requests, Seconds};
use crate::rules::Rule;
use aerostat_proto::atm::Cause;
use aerostat_wire::q2931::{CallRef, Decoded, Ie, Message, MessageType, id};
use aerostat_wire::{AtmAddress, Vc};

/// T303, which runs twice. Source: Q.2931 §5.1.1 and table 7-1: 4 s.
const SETUP: Seconds = 8;
/// T310 of a user. Source: Q.2931 table 7-1: 30 to 120 s.
const CONNECT: Seconds = 30;
/// T313. Source: Q.2931 table 7-1: 4 s.
const ACKNOWLEDGE: Seconds = 4;
/// T308, which runs twice. Source: Q.2931 table 7-1: 30 s.
const RELEASE: Seconds = 60;
/// T316. Source: Q.2931 table 7-1: 120 s.
const RESTART: Seconds = 120;

/// A link, the side that chose the reference if it is known, and the reference.
type Key = (usize, Option<bool>, u32);

/// Where a call is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Setup,
    Proceeding,
    Connected,
    Releasing,
}

/// A call.
#[derive(Clone, Debug)]
struct Call {
    state: State,
    setup: Asked,
    called: String,
    vc: Option<Vc>,
    connect: Option<Asked>,
    release: Option<Asked>,
}

/// Calls of all links.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    calls: Open<Key, Call>,
    /// Calls that have ended: late messages of theirs are usual.
    ended: Open<Key, ()>,
    /// Channels of calls: the call that has it.
    channels: Open<(usize, Vc), Key>,
    restarts: Requests<(usize, Option<bool>)>,
    parties: Requests<(Key, u16)>,
    /// Links whose first message was the SETUP of a call, or a RESTART.
    whole: Open<usize, bool>,
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
    /// Takes the message of an SD or UD.
    pub(crate) fn message(&mut self, at: &At, octets: &[u8], book: &mut Book) {
        let decoded = match Message::decode(octets) {
            Ok(decoded) => decoded,
            Err(error) => return book.name(Rule::CallFormat, at, error.to_string()),
        };
        elements::check(at, &decoded, book);
        let CallRef { flag, value } = decoded.message.call;
        let kind = decoded.message.kind;
        if !self.whole.has(&at.link) {
            let first = matches!(kind, MessageType::SETUP | MessageType::RESTART);
            self.whole.put(at.link, first, book);
        }
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
                let known = self.whole.get(&at.link) == Some(&true) && !self.ended.has(&key);
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
                self.calls.retain(|(link, _, _), _| *link != at.link);
                self.channels.retain(|(link, _), _| *link != at.link);
            }
            MessageType::RESTART_ACK => {
                self.restarts.answer(&(at.link, at.way.map(|way| !way)));
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
            book.names.learn(caller, at);
        }
        if let Some(call) = self.calls.get(&key) {
            // An unanswered SETUP is repeated once.
            if call.state == State::Setup && call.called == called {
                return;
            }
            let text = format!(
                "SETUP with reference {value}, which a call to {} has",
                call.called
            );
            book.name(Rule::CallReference, at, text);
        }
        let what = format!("SETUP {value} to {called}");
        let call = Call {
            state: State::Setup,
            setup: Asked::new(at, what),
            called,
            vc: None,
            connect: None,
            release: None,
        };
        self.ended.take(&key);
        self.calls.put(key, call, book);
        self.channel(at, key, decoded, book);
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
        if let Some((_, _, other)) = self.channels.get(&(at.link, vc)) {
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
            MessageType::CALL_PROCEEDING | MessageType::ALERTING | MessageType::PROGRESS => {
                match call.state {
                    State::Connected => {
                        let text = format!("{} of call {value} after CONNECT", kind.name());
                        book.name(Rule::CallOrder, at, text);
                    }
                    State::Releasing => {}
                    _ => call.state = State::Proceeding,
                }
            }
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
                let refused = (call.state, call.called.clone());
                call.state = State::Releasing;
                call.connect = None;
                call.release = Some(Asked::new(at, format!("RELEASE of call {value}")));
                ended(at, refused, cause(decoded), book);
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
            MessageType::ADD_PARTY_ACK => {
                self.parties.answer(&(key, party(decoded)));
            }
            MessageType::ADD_PARTY_REJECT => {
                self.parties.answer(&(key, party(decoded)));
                let text = format!("a party of call {value}: {}", words(cause(decoded)));
                book.tell(at, format!("{} refuses {text}", at.from));
                book.name(Rule::CallParty, at, text);
            }
            _ => return false,
        }
        true
    }

    fn complete(&mut self, at: &At, key: Key, decoded: &Decoded, book: &mut Book) {
        let (link, _, value) = key;
        let why = cause(decoded);
        self.ended.put(key, (), book);
        let Some(call) = self.calls.take(&key) else {
            if why == Some(81) {
                let text = format!("{} knows no call {value}: {}", at.from, words(why));
                book.name(Rule::CallStray, at, text);
            }
            return;
        };
        if let Some(vc) = call.vc {
            self.channels.take(&(link, vc));
        }
        if call.state == State::Releasing {
            return;
        }
        if why.is_none() {
            let text = format!("RELEASE COMPLETE ends call {value} without a cause");
            book.name(Rule::CallCause, at, text);
        }
        ended(at, (call.state, call.called), why, book);
    }

    pub(crate) fn end(&self, now_ns: i128, book: &mut Book) {
        for (_, call) in self.calls.iter() {
            match call.state {
                State::Setup => call.setup.end(Rule::CallSetup, SETUP, now_ns, book),
                State::Proceeding => call.setup.end(Rule::CallConnect, CONNECT, now_ns, book),
                State::Connected | State::Releasing => {}
            }
            if let Some(connect) = &call.connect {
                connect.end(Rule::CallAcknowledge, ACKNOWLEDGE, now_ns, book);
            }
            if let Some(release) = &call.release {
                release.end(Rule::CallRelease, RELEASE, now_ns, book);
            }
        }
        self.restarts.end(Rule::CallRestart, RESTART, now_ns, book);
        self.parties.end(Rule::CallParty, SETUP, now_ns, book);
    }
}

/// The first message that clears a call: a refusal, or the end of a connection.
fn ended(at: &At, (state, called): (State, String), why: Option<u8>, book: &mut Book) {
    match state {
        State::Releasing => {}
        State::Connected => {
            book.tell(
                at,
                format!("{} ends the call to {called}: {}", at.from, words(why)),
            );
            if !is_normal(why) {
                let text = format!("the call to {called} ended: {}", words(why));
                book.name(Rule::CallCleared, at, text);
            }
        }
        State::Setup | State::Proceeding => {
            book.tell(
                at,
                format!("{} refuses the call to {called}: {}", at.from, words(why)),
            );
            if !is_normal(why) {
                let text = format!("the call to {called}: {}", words(why));
                book.name(Rule::CallRefused, at, text);
            }
        }
    }
}

/// STATUS answers STATUS ENQUIRY (cause 30), or reports an error.
fn status(at: &At, decoded: &Decoded, book: &mut Book) {
    let why = cause(decoded);
    if why != Some(30) {
        let text = format!("STATUS: {}", words(why));
        book.name(Rule::CallStatus, at, text);
    }
}
