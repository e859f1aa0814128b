//! Calls to IP addresses: the host resolves the ATM address first.
//!
//! **Objects and owners.** A *question* is an IP address whose ATM address the host has been asked for
//! ([`Output::Resolve`]). All calls and leaves with this IP address wait for the same question. The host asks the
//! member of the Classical IP subnet that has the address, or its NHRP client (`host/resolve.rs`).
//!
//! **Timers.** A question waits for at most [`RESOLVE`], and a call for the `timeout` of its program.
//!
//! **Bounds.** [`QUESTIONS`] and [`WAITING`].

use super::requests::{failure, selector_at};
use super::{Errno, Failure, Output, SocketLayer, SocketRef, State, Timed, hex};
use aerostat_proto::socket::UserData;
use aerostat_proto::{Cause, Duration, Instant, PartyId, Trace};
use aerostat_wire::AtmAddress;
use core::fmt;
use std::net::Ipv4Addr;

/// Limit of IP addresses whose ATM addresses are being resolved for the programs of a host.
pub const QUESTIONS: usize = 256;
/// Limit of calls and leaves that wait for these.
pub const WAITING: usize = 1024;
/// How long the resolution of an IP address may take. By default ATMARP gives up after 15 s, and NHRP after 10 s.
pub const RESOLVE: Duration = Duration::from_secs(30);

/// Why an IP address has no ATM address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unresolved {
    /// As the cause of the end of a call.
    pub cause: Cause,
    /// In words, with a hint.
    pub text: String,
}

/// Where a call goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Destination {
    /// To an ATM address.
    Atm(AtmAddress),
    /// To the host with this IP address, and to this selector there. Without a selector the one that stands for the
    /// name of a node of the lab counts; else that of the resolved address.
    Ip(Ipv4Addr, Option<u8>),
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Atm(address) => write!(f, "{address:x}"),
            Self::Ip(ip, None) => write!(f, "{ip}"),
            Self::Ip(ip, Some(selector)) => write!(f, "{ip}/{selector:02x}"),
        }
    }
}

/// A call that is made once its destination is known.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) to: Destination,
    /// Of the root of a point-to-multipoint call: true if it wants to be told of leaves that leave.
    pub(super) root: Option<bool>,
    pub(super) user_data: UserData,
}

/// Request that waits for an ATM address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiter {
    /// The call of a socket.
    Call(SocketRef),
    /// A leaf that is to be added to the call of a socket.
    Leaf(SocketRef, PartyId),
}

impl Waiter {
    const fn socket(self) -> SocketRef {
        match self {
            Self::Call(socket) | Self::Leaf(socket, _) => socket,
        }
    }
}

impl SocketLayer {
    /// The destination in the field `called` of a request: an address in hex digits, or a name or an IP address with an
    /// optional selector.
    pub(super) fn destination(&self, text: &str) -> Result<Destination, Failure> {
        let ip = text.split_once('/').map_or(text, |(ip, _)| ip);
        let wrong = |text: String| Err(failure(Errno::Invalid, "called", text));
        if ip.contains(':') && ip.parse::<std::net::Ipv6Addr>().is_ok() {
            return wrong("ATMARP and NHRP resolve IPv4 addresses only".into());
        }
        let Ok(ip) = ip.parse::<Ipv4Addr>() else {
            return self.address_of("called", text).map(Destination::Atm);
        };
        if !aerostat_proto::clip::is_host(ip) {
            return wrong(format!("{ip} is not the address of a host"));
        }
        let selector = text.split_once('/');
        let selector = selector.map(|(ip, text)| selector_at("called", ip.len() + 1, text));
        Ok(Destination::Ip(ip, selector.transpose()?))
    }

    /// An error if no more calls may wait for the ATM address of this destination.
    pub(super) fn may_wait_for(&mut self, to: Destination) -> Result<(), Failure> {
        let Destination::Ip(ip, _) = to else {
            return Ok(());
        };
        let (addresses, waiting) = (self.questions.len(), self.waiting());
        let known = self.questions.contains_key(&ip);
        if waiting < WAITING && (known || addresses < QUESTIONS) {
            return Ok(());
        }
        self.counters.resolutions_refused += 1;
        let text = format!(
            "{waiting} calls wait for the ATM addresses of {addresses} IP addresses; the limits of a host are {WAITING} \
             and {QUESTIONS}"
        );
        Err(failure(Errno::NoMemory, "called", text))
    }

    /// Calls and leaves that wait for ATM addresses.
    fn waiting(&self) -> usize {
        self.questions.values().map(Vec::len).sum()
    }

    /// IP addresses that are being resolved, each with the number of calls and leaves that wait for it.
    pub fn questions(&self) -> impl Iterator<Item = (Ipv4Addr, usize)> {
        self.questions.iter().map(|(ip, all)| (*ip, all.len()))
    }

    /// A call or a leaf waits for the ATM address of its destination.
    pub(super) fn wait_for(&mut self, ip: Ipv4Addr, waiter: Waiter, now: Instant) {
        let waiting = self.questions.entry(ip).or_default();
        waiting.push(waiter);
        if waiting.len() == 1 {
            self.deadlines.set(Timed::Question(ip), Some(now + RESOLVE));
            self.out.push_back(Output::Resolve { ip });
        }
    }

    /// The service that was asked may have crashed and lost the questions, so all are asked again.
    pub(super) fn ask_again(&mut self) {
        let all = self.questions.keys();
        self.out.extend(all.map(|ip| Output::Resolve { ip: *ip }));
    }

    /// Requests of this socket do not wait any more.
    pub(super) fn stop_waiting(&mut self, of: SocketRef) {
        self.forget_waiters(|waiter| waiter.socket() == of);
    }

    /// The same for one of its leaves.
    pub(super) fn stop_waiting_for_leaf(&mut self, at: SocketRef, party: PartyId) {
        self.forget_waiters(|waiter| waiter == Waiter::Leaf(at, party));
    }

    fn forget_waiters(&mut self, gone: impl Fn(Waiter) -> bool) {
        let deadlines = &mut self.deadlines;
        self.questions.retain(|ip, waiting| {
            waiting.retain(|waiter| !gone(*waiter));
            if waiting.is_empty() {
                deadlines.set(Timed::Question(*ip), None);
            }
            !waiting.is_empty()
        });
    }

    /// The answer to a question. It may have no reader any more.
    pub(super) fn resolved(&mut self, ip: Ipv4Addr, answer: Result<AtmAddress, Unresolved>) {
        let Some(waiting) = self.questions.remove(&ip) else {
            return;
        };
        self.deadlines.set(Timed::Question(ip), None);
        let trace = match &answer {
            Ok(address) => {
                self.counters.resolved += 1;
                let trace = Trace::detail("socket.resolved", format!("{ip} has an ATM address"));
                trace.with("atm", address)
            }
            Err(why) => {
                self.counters.unresolved += 1;
                let text = format!("{ip} has no ATM address: {}", why.text);
                Trace::detail("socket.unresolved", text)
            }
        };
        self.out.push_back(Output::Trace(trace.with("ip", ip)));
        for waiter in waiting {
            match waiter {
                Waiter::Call(at) => self.resolved_call(at, &answer),
                Waiter::Leaf(at, party) => {
                    let found = answer.as_ref().map(|address| *address);
                    self.resolved_leaf((at, party), found);
                }
            }
        }
    }

    /// The time of a question is over.
    pub(super) fn not_resolved(&mut self, ip: Ipv4Addr) {
        let why = Unresolved {
            cause: Cause::TIMER,
            text: format!("no answer about {ip} within {} s", RESOLVE.as_secs()),
        };
        self.resolved(ip, Err(why));
    }

    /// The address to call: with the selector of the program, else with that of the node's name.
    pub(super) fn place(&self, found: AtmAddress, selector: Option<u8>) -> AtmAddress {
        if let Some(selector) = selector {
            return found.with_selector(selector);
        }
        if found.same_end_system(&self.config.address) {
            return found.with_selector(self.config.first_selector);
        }
        let mut named = self.config.names.values();
        let node = named.find(|address| address.same_end_system(&found));
        node.copied().unwrap_or(found)
    }

    fn resolved_call(&mut self, at: SocketRef, answer: &Result<AtmAddress, Unresolved>) {
        let room = self.has_room().map_err(|full| Unresolved {
            cause: Cause::RESOURCES,
            text: full.text,
        });
        let Some(socket) = self.get_mut(at) else {
            return;
        };
        let (State::Resolving, Some(wanted)) = (socket.state, socket.wanted.clone()) else {
            return;
        };
        let Destination::Ip(_, selector) = wanted.to else {
            return;
        };
        match room.and_then(|()| answer.clone()) {
            Ok(found) => {
                let called = self.place(found, selector);
                self.call(at, called, *wanted);
            }
            Err(why) => {
                socket.why = Some(why.text);
                self.over(at, why.cause, true);
            }
        }
    }
}

/// The address of a destination that is known, for answers to programs.
pub(super) fn known(address: Option<AtmAddress>, wanted: Option<&Wanted>) -> String {
    let other = || wanted.map_or_else(String::new, |wanted| wanted.to.to_string());
    address.map_or_else(other, hex)
}
