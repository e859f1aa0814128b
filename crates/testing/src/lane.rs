//! Clients and servers of an ELAN as users of the network.

use aerostat_proto::lane::{Bus, Lec, Lecs, Les, Member, bus, lec, lecs, les};
use aerostat_proto::{AtmEvent, AtmUser, Instant, Machine, Trace, UserOutput};
use aerostat_wire::AtmAddress;
use core::convert::Infallible;

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

/// Report of a machine to the test.
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

impl Machine for Node {
    type Input<'a> = AtmEvent<&'a [u8]>;
    type Output = UserOutput<Note>;
    type Refusal = Infallible;

    fn handle_input(&mut self, event: AtmEvent<&[u8]>, now: Instant) -> Result<(), Infallible> {
        self.event(event, now);
        Ok(())
    }
    fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::Lec(m) => m.handle_timeout(now),
            Self::Les(m) => m.handle_timeout(now),
            Self::Bus(m) => m.handle_timeout(now),
            Self::Lecs(m) => m.handle_timeout(now),
        }
    }
    fn poll_output(&mut self) -> Option<UserOutput<Note>> {
        Some(match self {
            Self::Lec(m) => match m.poll_output()? {
                lec::Output::Atm(request) => UserOutput::Atm(request),
                lec::Output::Trace(trace) => UserOutput::Other(Note::Trace(trace)),
                other => UserOutput::Other(Note::Lec(other)),
            },
            Self::Les(m) => match m.poll_output()? {
                les::Output::Atm(request) => UserOutput::Atm(request),
                les::Output::Trace(trace) => UserOutput::Other(Note::Trace(trace)),
                les::Output::Member { address, member } => {
                    UserOutput::Other(Note::Member(address, member))
                }
            },
            Self::Bus(m) => match m.poll_output()? {
                bus::Output::Atm(request) => UserOutput::Atm(request),
                bus::Output::Trace(trace) => UserOutput::Other(Note::Trace(trace)),
                bus::Output::Reaches { address, reached } => {
                    UserOutput::Other(Note::Reaches(address, reached))
                }
            },
            Self::Lecs(m) => match m.poll_output()? {
                lecs::Output::Atm(request) => UserOutput::Atm(request),
                lecs::Output::Trace(trace) => UserOutput::Other(Note::Trace(trace)),
            },
        })
    }
    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Lec(m) => m.poll_timeout(),
            Self::Les(m) => m.poll_timeout(),
            Self::Bus(m) => m.poll_timeout(),
            Self::Lecs(m) => m.poll_timeout(),
        }
    }
}

impl AtmUser for Node {
    type Other = Note;

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
    fn sort(output: UserOutput<Note>) -> UserOutput<Note> {
        output
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
