//! Roots of point-to-multipoint calls, and their leaves.

use super::requests::{Result, failure};
use super::resolve::{Destination, Unresolved, Waiter};
use super::{Asked, Errno, LEAVES, Session, SocketLayer, SocketRef, State, ToPrograms, ended};
use crate::signalling::Heard;
use aerostat_proto::socket::{ADDRESSES, Answer, Failure, Left, Party, UserData};
use aerostat_proto::split::codec::Message as _;
use aerostat_proto::{AtmRequest, Cause, ConnId, Instant, PartyId};
use aerostat_wire::AtmAddress;
use std::collections::BTreeMap;

/// The leaf that the call was made to.
const FIRST: PartyId = PartyId(0);

/// A leaf.
#[derive(Debug)]
struct Leaf {
    called: Destination,
    /// User data for the leaf when it is called.
    said: UserData,
    /// The request that waits for its answer.
    asked: Option<Asked>,
    active: bool,
}

/// The state of the root of a point-to-multipoint call.
#[derive(Debug)]
pub(super) struct Root {
    /// The program wants to be told at its descriptor of leaves that leave.
    reports: bool,
    leaves: BTreeMap<PartyId, Leaf>,
    /// The number that the next leaf gets if it is free.
    next: u16,
}

impl Root {
    /// The root of a call to this first leaf.
    pub(super) fn new(called: Destination, reports: bool) -> Self {
        let leaf = Leaf {
            called,
            said: UserData::default(),
            asked: None,
            active: false,
        };
        Self {
            reports,
            leaves: BTreeMap::from([(FIRST, leaf)]),
            next: 1,
        }
    }
    /// The call can be used: its first leaf has answered.
    pub(super) fn begin(&mut self) {
        if let Some(leaf) = self.leaves.get_mut(&FIRST) {
            leaf.active = true;
        }
    }
    /// Leaves that get what the root sends.
    pub(super) fn active(&self) -> u16 {
        self.leaves.values().filter(|leaf| leaf.active).count() as u16
    }
    /// The call has ended: the requests that wait for leaves.
    pub(super) fn end(&mut self) -> Vec<Asked> {
        let leaves = core::mem::take(&mut self.leaves).into_values();
        leaves.filter_map(|leaf| leaf.asked).collect()
    }
    /// The answers to this session's requests have no reader any more.
    pub(super) fn forget_session(&mut self, session: Session) {
        for leaf in self.leaves.values_mut() {
            leaf.asked.take_if(|asked| asked.session == session);
        }
    }
    /// A number for a new leaf.
    fn number(&mut self) -> PartyId {
        loop {
            let party = PartyId(self.next);
            // Numbers of 15 bits; 0 belongs to the first leaf. Fewer leaves than numbers can exist.
            self.next = if self.next < 0x7fff { self.next + 1 } else { 1 };
            if !self.leaves.contains_key(&party) {
                return party;
            }
        }
    }
}

impl SocketLayer {
    /// The connection and the state of a root whose call can be used.
    fn root(
        &mut self,
        asked: Asked,
        at: SocketRef,
    ) -> core::result::Result<(ConnId, &mut Root), Failure> {
        let socket = self.own(asked, at)?;
        let state = socket.state;
        let conn = socket.conn.filter(|_| state == State::Connected);
        let Some(root) = socket.root.as_mut() else {
            let text = "the socket is not the root of a point-to-multipoint call";
            return Err(failure(Errno::Invalid, "socket", text));
        };
        let found = conn.map(|conn| (conn, root));
        found.ok_or_else(|| {
            let text = format!("the socket is {}: it has no leaves", state.name());
            failure(Errno::NotConnected, "socket", text)
        })
    }

    pub(super) fn add_party(
        &mut self,
        asked: Asked,
        at: SocketRef,
        (called, said): (&str, UserData),
        now: Instant,
    ) -> Result {
        let called = self.destination(called)?;
        self.root(asked, at)?;
        self.may_wait_for(called)?;
        let (conn, root) = self.root(asked, at)?;
        if root.leaves.len() >= LEAVES {
            let text = format!("the call has {LEAVES} leaves, which is the limit");
            return Err(failure(Errno::NoMemory, "socket", text));
        }
        let party = root.number();
        let leaf = Leaf {
            called,
            said,
            asked: Some(asked),
            active: false,
        };
        root.leaves.insert(party, leaf);
        match called {
            Destination::Atm(called) => self.call_leaf(conn, party, called),
            Destination::Ip(ip, _) => self.wait_for(ip, Waiter::Leaf(at, party), now),
        }
        Ok(None)
    }

    /// Calls a leaf whose address is known.
    fn call_leaf(&mut self, conn: ConnId, party: PartyId, called: AtmAddress) {
        let root = self.root_of(conn).map(|(_, root)| root);
        let Some(leaf) = root.and_then(|root| root.leaves.get_mut(&party)) else {
            return;
        };
        leaf.called = Destination::Atm(called);
        let said = core::mem::take(&mut leaf.said);
        let add = AtmRequest::AddParty {
            conn,
            party,
            called,
        };
        self.request_saying(add, said);
    }

    /// The ATM address of a leaf has been found, or cannot be found.
    pub(super) fn resolved_leaf(
        &mut self,
        (at, party): (SocketRef, PartyId),
        answer: core::result::Result<AtmAddress, &Unresolved>,
    ) {
        let Some(socket) = self.get_mut(at) else {
            return;
        };
        let (conn, root) = (socket.conn, socket.root.as_mut());
        let leaf = root.and_then(|root| Some((root.leaves.get(&party)?.called, root)));
        let (Some(conn), Some((Destination::Ip(_, selector), root))) = (conn, leaf) else {
            return;
        };
        match answer {
            Ok(found) => {
                let called = self.place(found, selector);
                self.call_leaf(conn, party, called);
            }
            Err(why) => {
                let asked = root.leaves.remove(&party).and_then(|leaf| leaf.asked);
                let failure = Failure {
                    text: why.text.clone(),
                    ..ended(why.cause)
                };
                if let Some(asked) = asked {
                    self.answer(asked, Answer::Failed(failure));
                }
            }
        }
    }

    pub(super) fn drop_party(&mut self, asked: Asked, at: SocketRef, party: u16) -> Result {
        let (conn, root) = self.root(asked, at)?;
        let party = PartyId(party);
        let Some(leaf) = root.leaves.remove(&party) else {
            let text = format!("the call has no leaf {}", party.0);
            return Err(failure(Errno::Invalid, "party", text));
        };
        match leaf.called {
            Destination::Atm(_) => self.request(AtmRequest::DropParty { conn, party }),
            // Signalling does not know it yet.
            Destination::Ip(..) => self.stop_waiting_for_leaf(at, party),
        }
        if let Some(waits) = leaf.asked {
            // Its answer can come no more.
            self.answer(waits, Answer::Failed(ended(Cause::NORMAL)));
        }
        Ok(Some(Answer::Done))
    }

    pub(super) fn parties(&mut self, asked: Asked, at: SocketRef, from: u16) -> Result {
        let (_, root) = self.root(asked, at)?;
        let all = root.leaves.range(PartyId(from)..);
        let parties = all.clone().take(ADDRESSES).map(|(party, leaf)| Party {
            party: party.0,
            called: leaf.called.to_string(),
            active: leaf.active,
        });
        Ok(Some(Answer::Parties {
            parties: parties.collect(),
            more: all.count().saturating_sub(ADDRESSES) as u32,
        }))
    }

    /// The root of this connection.
    fn root_of(&mut self, conn: ConnId) -> Option<(SocketRef, &mut Root)> {
        let at = self.conns.get(&conn).copied()?;
        Some((at, self.get_mut(at)?.root.as_mut()?))
    }

    /// A leaf was added.
    pub(super) fn party_added(&mut self, conn: ConnId, party: PartyId, heard: Heard) {
        let user_data = self.heard_of_leaf(conn, heard);
        let leaf = self
            .root_of(conn)
            .and_then(|(_, root)| root.leaves.get_mut(&party));
        let Some(leaf) = leaf else {
            return;
        };
        leaf.active = true;
        if let Some(asked) = leaf.asked.take() {
            let party = party.0;
            self.answer(asked, Answer::PartyAdded { party, user_data });
        }
    }

    /// User data of a leaf, which the socket of the root keeps.
    fn heard_of_leaf(&mut self, conn: ConnId, heard: Heard) -> UserData {
        let heard = heard.carried.unwrap_or_default();
        let at = self.conns.get(&conn).copied();
        if let Some(root) = at.and_then(|at| self.get_mut(at))
            && !heard.is_empty()
        {
            root.heard = heard.clone();
        }
        heard
    }

    /// A leaf could not be added, or has left.
    pub(super) fn party_gone(&mut self, conn: ConnId, party: PartyId, cause: Cause, heard: Heard) {
        let user_data = self.heard_of_leaf(conn, heard);
        let Some((at, root)) = self.root_of(conn) else {
            return;
        };
        let reports = root.reports;
        let Some(leaf) = root.leaves.remove(&party) else {
            return;
        };
        if let Some(asked) = leaf.asked {
            let failure = Failure {
                user_data,
                ..ended(cause)
            };
            self.answer(asked, Answer::Failed(failure));
        } else if leaf.active && reports {
            let left = Left {
                party: party.0,
                cause: cause.0,
            };
            let sdus = left.encode().into();
            self.tell(ToPrograms::Deliver {
                socket: at,
                sdus,
                local: false,
            });
        }
    }
}
