//! The states of a call and of a party, and the data of each.

use std::collections::BTreeMap;

use aerostat_wire::q2931::{CallRef, Element};
use aerostat_wire::{AtmAddress, Blli, Vc};

use crate::PartyId;

use super::{CallId, Reason, Side};

/// Key of a call: the side that chose the reference, and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct CallKey {
    /// True if this end chose the value: its own messages carry flag 0.
    pub(super) ours: bool,
    pub(super) value: u32,
}

impl CallKey {
    /// The call that a received reference names.
    pub(super) const fn received(call: CallRef) -> Self {
        Self {
            ours: call.flag,
            value: call.value,
        }
    }
    /// The reference in messages of this end.
    pub(super) const fn reference(self) -> CallRef {
        CallRef {
            flag: !self.ours,
            value: self.value,
        }
    }
}

/// State of a call, common to both sides; [`CallState::number`] gives the standard's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CallState {
    /// SETUP sent, no answer (U1 call initiated, N6 call present).
    SetupSent,
    /// CALL PROCEEDING received (U3 outgoing call proceeding, N9 incoming call proceeding).
    ProceedingReceived,
    /// ALERTING received (U4 call delivered, N7 call received).
    AlertingReceived,
    /// SETUP received, no answer (U6 call present, N1 call initiated).
    SetupReceived,
    /// CALL PROCEEDING sent (U9 incoming call proceeding, N3 outgoing call proceeding).
    ProceedingSent,
    /// ALERTING sent (U7 call received, N4 call delivered).
    AlertingSent,
    /// CONNECT sent by a user (U8 connect request).
    ConnectSent,
    /// U10, N10 active.
    Active,
    /// RELEASE sent (U11 release request, N12 release indication).
    Releasing,
}

impl CallState {
    /// The number in the call state element. Source: Q.2931 §2.1, §4.5.10.
    #[must_use]
    pub const fn number(self, side: Side) -> u8 {
        let (user, network) = match self {
            Self::SetupSent => (1, 6),
            Self::ProceedingReceived => (3, 9),
            Self::AlertingReceived => (4, 7),
            Self::SetupReceived => (6, 1),
            Self::ProceedingSent => (9, 3),
            Self::AlertingSent => (7, 4),
            Self::ConnectSent => (8, 10),
            Self::Active => (10, 10),
            Self::Releasing => (11, 12),
        };
        match side {
            Side::User => user,
            Side::Network => network,
        }
    }
    /// The name in use: `U10`, `N6`.
    #[must_use]
    pub const fn name(self, side: Side) -> &'static str {
        const USER: [&str; 12] = [
            "U0", "U1", "U2", "U3", "U4", "U5", "U6", "U7", "U8", "U9", "U10", "U11",
        ];
        const NETWORK: [&str; 13] = [
            "N0", "N1", "N2", "N3", "N4", "N5", "N6", "N7", "N8", "N9", "N10", "N11", "N12",
        ];
        let number = self.number(side) as usize;
        match side {
            Side::User => USER[number],
            Side::Network => NETWORK[number],
        }
    }
    /// True while this end waits for the called side.
    pub(super) const fn is_offering(self) -> bool {
        matches!(
            self,
            Self::SetupSent | Self::ProceedingReceived | Self::AlertingReceived
        )
    }
    /// True while the peer waits for this end.
    pub(super) const fn is_offered(self) -> bool {
        matches!(
            self,
            Self::SetupReceived | Self::ProceedingSent | Self::AlertingSent
        )
    }

    /// True if the peer can be in the state that it reports, given messages on their way.
    ///
    /// Source: Q.2931 §5.6.12 gives the principle; the pairs follow from the message flows.
    pub(super) const fn agrees_with(self, side: Side, reported: u8) -> bool {
        // The numbers of "one side waits for the other" are the same on both sides of an interface.
        let own_waits = self.number(side);
        let user_calls = matches!(own_waits, 1 | 3 | 4);
        match self {
            // Our CONNECT or CONNECT ACKNOWLEDGE may be on its way.
            Self::Active => match side {
                Side::User => matches!(reported, 8 | 10..=12),
                Side::Network => matches!(reported, 1 | 3 | 4 | 8 | 10..=12),
            },
            Self::ConnectSent => matches!(reported, 6..=12),
            Self::Releasing => true,
            // The network's CONNECT may be on its way to us; a called user is never active before us.
            _ if user_calls => match side {
                Side::User => matches!(reported, 1 | 3 | 4 | 10..=12),
                Side::Network => matches!(reported, 1 | 3 | 4 | 11 | 12),
            },
            _ => matches!(reported, 6..=9 | 11 | 12),
        }
    }
}

/// State of a party. Source: Q.2971 §6; the numbers are those of the endpoint state element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PartyState {
    /// ADD PARTY (or the SETUP) sent.
    AddInitiated = 1,
    /// PARTY ALERTING received.
    AlertingDelivered = 4,
    /// ADD PARTY (or the SETUP) received.
    AddReceived = 6,
    /// PARTY ALERTING sent.
    AlertingReceived = 7,
    /// Active.
    Active = 10,
    /// DROP PARTY sent.
    DropInitiated = 11,
}

impl PartyState {
    /// True if the peer can report this state, given messages on their way. `root` tells whether this end added the
    /// party.
    pub(super) const fn agrees_with(self, root: bool, reported: u8) -> bool {
        match self {
            Self::AddInitiated => matches!(reported, 6 | 7 | 10..=12),
            Self::AlertingDelivered => matches!(reported, 7 | 10..=12),
            Self::AddReceived => matches!(reported, 1 | 11 | 12),
            Self::AlertingReceived => matches!(reported, 1 | 4 | 11 | 12),
            Self::Active if root => matches!(reported, 10..=12),
            // Our ADD PARTY ACKNOWLEDGE may be on its way.
            Self::Active => matches!(reported, 1 | 4 | 10..=12),
            // Only a peer that has no such party ends the wait for the answer.
            Self::DropInitiated => reported != 0,
        }
    }
}

/// One party of a point-to-multipoint call.
#[derive(Clone, Debug)]
pub(super) struct Party {
    pub(super) state: PartyState,
    pub(super) called: AtmAddress,
    /// True if the owner has had its last indication about this party.
    pub(super) told: bool,
    /// Why DROP PARTY was sent; `None` before that.
    pub(super) cause: Option<Box<Reason>>,
}

impl Party {
    pub(super) const fn new(state: PartyState, called: AtmAddress) -> Self {
        Self {
            state,
            called,
            told: false,
            cause: None,
        }
    }
}

/// One call.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) id: CallId,
    pub(super) state: CallState,
    pub(super) vc: Option<Vc>,
    pub(super) called: AtmAddress,
    pub(super) calling: Option<AtmAddress>,
    pub(super) blli: Option<Blli>,
    pub(super) multipoint: bool,
    /// Traffic descriptor, bearer, QoS of a received SETUP: an ADD PARTY refers to them.
    pub(super) inherited: Vec<Element>,
    /// Octets of the SETUP, until the first answer; not sent yet if the link is down.
    pub(super) setup: Option<Vec<u8>>,
    /// True if the SETUP waits for the link.
    pub(super) waiting: bool,
    /// True if T303 or T308 has expired once.
    pub(super) resent: bool,
    /// True if T322 has expired once.
    pub(super) asked_again: bool,
    /// Cause of our RELEASE.
    pub(super) cause: Reason,
    /// The party of the SETUP.
    pub(super) first: Option<u16>,
    pub(super) parties: BTreeMap<u16, Party>,
}

impl Call {
    /// True if all parties except `but` are being dropped.
    pub(super) fn last_party(&self, but: u16) -> bool {
        let mut others = self.parties.iter().filter(|(id, _)| **id != but);
        others.all(|(_, party)| party.state == PartyState::DropInitiated)
    }
}

/// Snapshot of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallSnapshot {
    /// The owner's id.
    pub call: CallId,
    /// Value of the call reference.
    pub reference: u32,
    /// True if this end chose the reference, which means that it started the call.
    pub ours: bool,
    /// State.
    pub state: CallState,
    /// Called party.
    pub called: AtmAddress,
    /// Calling party.
    pub calling: Option<AtmAddress>,
    /// Low layer information.
    pub blli: Option<Blli>,
    /// Label, once known.
    pub vc: Option<Vc>,
    /// True for a point-to-multipoint call.
    pub multipoint: bool,
    /// Parties with their state and address; empty for a point-to-point call.
    pub parties: Vec<(PartyId, PartyState, AtmAddress)>,
}

crate::counters! {
    /// Counters of an interface.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct Counters {
        /// Messages received.
        pub received: u64,
        /// Messages sent.
        pub sent: u64,
        /// Octets that are not a message of this protocol, or messages that are not allowed here: ignored.
        pub ignored: u64,
        /// Elements with bad contents, too long, or cut short.
        pub bad_elements: u64,
        /// Elements that are not defined, or not allowed in their message.
        pub unknown_elements: u64,
        /// Messages with a mandatory element missing.
        pub missing_elements: u64,
        /// Messages that did not fit the state of their call (cause 101).
        pub unexpected: u64,
        /// Messages of unknown type (cause 97).
        pub unknown_messages: u64,
        /// Messages for a call that does not exist.
        pub unknown_references: u64,
        /// SETUPs refused by call control itself, for any cause; the owner never saw these calls.
        pub offers_refused: u64,
        /// Of these, SETUPs refused for lack of room.
        pub calls_refused: u64,
        /// Leaves that requested to join a call (refused: cause 63).
        pub leaf_requests: u64,
        /// Parties refused because the call was full.
        pub parties_refused: u64,
        /// Timers that expired.
        pub timeouts: u64,
        /// Messages not sent because the link was down.
        pub unsent: u64,
        /// Calls cleared because the link was lost.
        pub lost_with_link: u64,
        /// Restarts of the peer that the owner did not finish in time (T317), and that were not answered.
        pub restarts_unfinished: u64,
        /// NOTIFY messages passed to the owner.
        pub notifications: u64,
        /// NOTIFY messages of the owner that the version of the interface does not support, and that were not sent.
        pub notifications_unsent: u64,
        /// Undefined elements that were forwarded.
        pub passed_along: u64,
        /// Requests of the owner that were refused.
        pub refused_requests: u64,
    }
}
