//! Clients and servers of an ELAN as users of the network.

use crate::{AtmUser, Polled};
use aerostat_proto::lane::{Bus, Lec, Lecs, Les, Member, bus, lec, lecs, les};
use aerostat_proto::{AtmEvent, Instant, Machine as _, Trace};
use aerostat_wire::AtmAddress;

/// A machine of an ELAN as a user of the network.
pub enum Node {
    /// A client.
    Lec(Box<Lec>),
    /// A LES.
    Les(Box<Les>),
    /// A BUS.
    Bus(Box<Bus>),
    /// A LECS.
    Lecs(Box<Lecs>),
}

/// What a machine reported to the test.
#[derive(Debug)]
pub enum Note {
    /// An output of a client.
    Lec(lec::Output),
    /// A LES has a member, or has it no more.
    Member(AtmAddress, Option<Member>),
    /// The tree of a BUS reaches a member, or not.
    Reaches(AtmAddress, bool),
    /// A trace.
    Trace(Trace),
}

impl AtmUser for Node {
    type Note = Note;
    fn event(&mut self, event: AtmEvent<&[u8]>, now: Instant) {
        let Ok(()) = match self {
            Self::Lec(m) => {
                return m
                    .handle_input(lec::Input::Atm(event), now)
                    .expect("events are taken");
            }
            Self::Les(m) => m.handle_input(les::Input::Atm(event), now),
            Self::Bus(m) => m.handle_input(bus::Input::Atm(event), now),
            Self::Lecs(m) => m.handle_input(lecs::Input::Atm(event), now),
        };
    }
    fn timeout(&mut self, now: Instant) {
        match self {
            Self::Lec(m) => m.handle_timeout(now),
            Self::Les(m) => m.handle_timeout(now),
            Self::Bus(m) => m.handle_timeout(now),
            Self::Lecs(m) => m.handle_timeout(now),
        }
    }
    fn deadline(&self) -> Option<Instant> {
        match self {
            Self::Lec(m) => m.poll_timeout(),
            Self::Les(m) => m.poll_timeout(),
            Self::Bus(m) => m.poll_timeout(),
            Self::Lecs(m) => m.poll_timeout(),
        }
    }
    fn poll(&mut self) -> Option<Polled<Note>> {
        Some(match self {
            Self::Lec(m) => match m.poll_output()? {
                lec::Output::Atm(request) => Polled::Atm(request),
                lec::Output::Trace(trace) => Polled::Note(Note::Trace(trace)),
                other => Polled::Note(Note::Lec(other)),
            },
            Self::Les(m) => match m.poll_output()? {
                les::Output::Atm(request) => Polled::Atm(request),
                les::Output::Trace(trace) => Polled::Note(Note::Trace(trace)),
                les::Output::Member { address, member } => {
                    Polled::Note(Note::Member(address, member))
                }
            },
            Self::Bus(m) => match m.poll_output()? {
                bus::Output::Atm(request) => Polled::Atm(request),
                bus::Output::Trace(trace) => Polled::Note(Note::Trace(trace)),
                bus::Output::Reaches { address, reached } => {
                    Polled::Note(Note::Reaches(address, reached))
                }
            },
            Self::Lecs(m) => match m.poll_output()? {
                lecs::Output::Atm(request) => Polled::Atm(request),
                lecs::Output::Trace(trace) => Polled::Note(Note::Trace(trace)),
            },
        })
    }
}

/// Tells the BUS (the user behind its LES) who is a member; the relay of a [`World`](crate::World).
///
/// # Panics
/// If the user behind a LES is no BUS.
pub fn relay(who: usize, note: &Note, users: &mut [Node], now: Instant) -> Option<usize> {
    let Note::Member(address, ref member) = *note else {
        return None;
    };
    let Node::Bus(bus) = &mut users[who + 1] else {
        panic!("no BUS behind the LES");
    };
    let member = member.clone();
    let input = bus::Input::Member { address, member };
    let Ok(()) = bus.handle_input(input, now);
    Some(who + 1)
}
