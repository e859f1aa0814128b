//! Primitives between a UNI interface and its owner, and their contents.

use aerostat_wire::q2931::{Element, RestartClass};
use aerostat_wire::{AtmAddress, Bhli, Blli, Qos, Sap, Vc};

use crate::{Cause, PartyId, Trace};

/// Opaque id of one call on one interface, for the owner of the interface.
///
/// The owner chooses it (below [`CallId::INCOMING`]) for calls that it starts, [`super::Uni`] (from there upwards) for
/// calls that it offers. The id is free again after [`Indication::Released`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u32);

impl CallId {
    /// First id of received calls; ids that owners choose are below.
    pub const INCOMING: u32 = 0x8000_0000;
}

/// Contents of a SETUP or an ADD PARTY.
///
/// `elements` have precedence: an information element in this list is sent unchanged (adapted to the version of the
/// interface). If it lacks called or calling number, B-LLI, B-HLI, AAL parameters, traffic descriptor, bearer
/// capability or QoS, that element is made from the other fields. So a host fills the fields and leaves `elements`
/// empty, and a switch forwards a received `SetupInfo` unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetupInfo {
    /// Called party.
    pub called: AtmAddress,
    /// Calling party.
    pub calling: Option<AtmAddress>,
    /// Low layer information: the first (preferred) B-LLI.
    pub blli: Option<Blli>,
    /// High layer information.
    pub bhli: Option<Bhli>,
    /// Traffic seen from the calling side: `tx` is forward.
    pub qos: Qos,
    /// True for a point-to-multipoint call.
    pub multipoint: bool,
    /// All elements of a received message except connection identifier and endpoint reference, in order. A received ADD
    /// PARTY also has those elements of the call's SETUP that it lacks (traffic, bearer, QoS).
    pub elements: Vec<Element>,
}

impl SetupInfo {
    /// A call that starts here.
    #[must_use]
    pub fn new(
        called: AtmAddress,
        calling: Option<AtmAddress>,
        sap: impl Into<Sap>,
        qos: Qos,
    ) -> Self {
        let Sap { blli, bhli } = sap.into();
        Self {
            called,
            calling,
            blli,
            bhli,
            qos,
            multipoint: false,
            elements: Vec::new(),
        }
    }
}

/// Contents of a CONNECT or an ADD PARTY ACK. The default is an empty message: accepted as offered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectInfo {
    /// The called side's choice among several B-LLI.
    pub blli: Option<Blli>,
    /// Largest AAL5 SDU (forward, backward) that the called side accepts; not larger than offered.
    pub max_sdu: Option<(u16, u16)>,
    /// All elements of a received message except connection identifier and endpoint reference, in order. They have
    /// precedence over the fields above, as in [`SetupInfo`].
    pub elements: Vec<Element>,
}

/// Locations of causes: where the obstacle is, as the receiver sees it. Source: Q.850 §2.2.3.
pub mod location {
    /// The user.
    pub const USER: u8 = 0;
    /// Private network that serves the local user.
    pub const LOCAL: u8 = 1;
    /// Transit network.
    pub const TRANSIT: u8 = 3;
    /// Private network that serves the remote user.
    pub const REMOTE: u8 = 5;
}

/// Why a call or a party ends: the cause, and the elements that came with it. A switch forwards it from one interface
/// to the other, so that both ends of a call get the same reason. Source: Q.2931 §4.5.15.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// The number of UNI 3.1 and later, 1..=127.
    pub cause: Cause,
    /// One of [`location`], or another of Q.850. `None` for this interface.
    pub location: Option<u8>,
    /// True if the cause is coded by the ATM Forum instead of the ITU.
    pub forum: bool,
    /// Diagnostics as received; at most [`Reason::DIAGNOSTICS`] octets are sent.
    pub diagnostics: Vec<u8>,
    /// The other elements of the message that ends the call or party (user-user, notification, ...).
    pub elements: Vec<Element>,
}

impl Reason {
    /// Largest diagnostics of a cause element (34 octets with header, location and value).
    pub const DIAGNOSTICS: usize = 28;

    /// Normal call clearing, at this interface.
    pub const NORMAL: Self = Self {
        cause: Cause::NORMAL,
        location: None,
        forum: false,
        diagnostics: Vec::new(),
        elements: Vec::new(),
    };

    /// The reason with a location, if it has none yet.
    #[must_use]
    pub fn located(mut self, location: u8) -> Self {
        self.location.get_or_insert(location);
        self
    }
    /// The contents of an acknowledgement: the same cause, from this interface, and nothing else.
    #[must_use]
    pub fn echo(&self) -> Self {
        Self {
            cause: self.cause,
            forum: self.forum,
            ..Self::NORMAL
        }
    }
    /// The reason with diagnostics.
    #[must_use]
    pub fn with(mut self, diagnostics: &[u8]) -> Self {
        self.diagnostics = diagnostics.to_vec();
        self
    }
}

impl From<Cause> for Reason {
    /// A cause of this interface without diagnostics.
    fn from(cause: Cause) -> Self {
        Self {
            cause,
            ..Self::NORMAL
        }
    }
}

impl core::fmt::Display for Reason {
    /// The cause, and its location and diagnostics (in hexadecimal), if known.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}", self.cause)?;
        if let Some(location) = self.location {
            write!(f, " at location {location}")?;
        }
        if !self.diagnostics.is_empty() {
            f.write_str(", diagnostics ")?;
            let mut octets = self.diagnostics.iter();
            octets.try_for_each(|octet| write!(f, "{octet:02x}"))?;
        }
        Ok(())
    }
}

/// Requests of the owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Start a call. The answer is `Connected` or `Released`; `Proceeding` and `Alerting` may come before. While the
    /// link is down the call waits for it, at most two T303.
    Setup {
        /// Chosen by the owner: below [`CallId::INCOMING`] and not in use.
        call: CallId,
        /// The offer.
        info: SetupInfo,
        /// The network side's choice of label; a user gives no label.
        vc: Option<Vc>,
        /// Endpoint reference of the first party of a point-to-multipoint call (0 by convention).
        party: Option<PartyId>,
    },
    /// Tell the caller that its offer is being processed. The network side must give the label in its first answer,
    /// which may be this one.
    Proceeding {
        /// From `Indication::Setup`.
        call: CallId,
        /// The network side's choice of label.
        vc: Option<Vc>,
    },
    /// Tell the caller that the called user is being alerted (UNI 4.0; silently dropped on 3.x).
    Alerting {
        /// From `Indication::Setup`.
        call: CallId,
        /// As in `Proceeding`, if this is the first answer.
        vc: Option<Vc>,
        /// Elements of the called side.
        elements: Vec<Element>,
    },
    /// Accept an offered call. `Active` or `Released` follows.
    Accept {
        /// From `Indication::Setup`.
        call: CallId,
        /// The called side's answer.
        info: ConnectInfo,
        /// As in `Proceeding`, if this is the first answer.
        vc: Option<Vc>,
    },
    /// Release a call or refuse an offered one. `Released` follows when its label is free again.
    Release {
        /// The call.
        call: CallId,
        /// Why.
        cause: Reason,
    },
    /// Root side: add a leaf. The answer is `PartyAdded` or `PartyRejected`.
    AddParty {
        /// The call.
        call: CallId,
        /// Unused so far on this call, 0..=32767.
        party: PartyId,
        /// The offer to the leaf.
        info: SetupInfo,
    },
    /// Leaf side: tell the root that the leaf is being alerted (UNI 4.0; silently dropped on 3.x).
    AlertParty {
        /// The call.
        call: CallId,
        /// From `Indication::AddParty`.
        party: PartyId,
        /// Elements of the leaf.
        elements: Vec<Element>,
    },
    /// Leaf side: the leaf is active.
    AcceptParty {
        /// The call.
        call: CallId,
        /// From `Indication::AddParty`.
        party: PartyId,
        /// The leaf's answer.
        info: ConnectInfo,
    },
    /// Leaf side: the leaf cannot be added. No indication follows.
    RejectParty {
        /// The call.
        call: CallId,
        /// From `Indication::AddParty`.
        party: PartyId,
        /// Why.
        cause: Reason,
    },
    /// Drop a leaf, from either side. `PartyDropped` follows, or `Released` if it was the last party.
    DropParty {
        /// The call.
        call: CallId,
        /// The party.
        party: PartyId,
        /// Why.
        cause: Reason,
    },
    /// Clear calls on both sides without individual messages. The answer is `RestartDone`.
    Restart {
        /// The calls.
        what: Restart,
    },
    /// The channels that the peer restarted are idle here as well: the peer gets RESTART ACKNOWLEDGE.
    RestartCleared {
        /// From `Indication::Restarted`.
        what: Restart,
    },
    /// Ask the peer for its state of a call; if the states disagree, the call is cleared.
    StatusEnquiry {
        /// The call.
        call: CallId,
    },
    /// Tell the peer with STATUS that a part of its last message could not be used.
    Report {
        /// The call.
        call: CallId,
        /// The cause with its diagnostics.
        cause: Reason,
    },
    /// Send a NOTIFY about a call that has been answered (UNI 4.0; silently dropped, and counted, on 3.x).
    Notify {
        /// The call.
        call: CallId,
        /// The party concerned, for a party of a point-to-multipoint call.
        party: Option<PartyId>,
        /// The notification indicators, at least one, and further elements.
        elements: Vec<Element>,
    },
}

/// Indications for the owner.
///
/// Every call that was ever mentioned ends with exactly one `Released`, whichever side released it. Its parties end
/// with it, without indications of their own. From that moment the label and the [`CallId`] are free.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Indication {
    /// The signalling link is up.
    Up,
    /// The signalling link is down. Each call that is lost gets a `Released` (active ones after T309).
    Down,
    /// A call is offered. Answer with `Accept` or `Release`; `Proceeding` and `Alerting` may come before.
    Setup {
        /// Chosen here.
        call: CallId,
        /// The offer.
        info: SetupInfo,
        /// The label, if the peer gave one (the network side does).
        vc: Option<Vc>,
        /// Endpoint reference, for a point-to-multipoint call.
        party: Option<PartyId>,
    },
    /// The offer is being processed.
    Proceeding {
        /// The call.
        call: CallId,
        /// The label, once known.
        vc: Option<Vc>,
    },
    /// The called user is being alerted.
    Alerting {
        /// The call.
        call: CallId,
        /// The label, once known.
        vc: Option<Vc>,
        /// Elements of the called side, except those of the interface itself.
        elements: Vec<Element>,
    },
    /// A call that this side started was accepted and can be used.
    Connected {
        /// The call.
        call: CallId,
        /// The called side's answer.
        info: ConnectInfo,
        /// The label.
        vc: Vc,
    },
    /// A call that this side accepted can be used.
    Active {
        /// The call.
        call: CallId,
        /// The label.
        vc: Vc,
    },
    /// The interface itself has started to release the call (a timer, a protocol error, the last party). The call
    /// carries no data any more, but its label is not free before `Released`.
    Clearing {
        /// The call.
        call: CallId,
        /// Why.
        cause: Reason,
    },
    /// The call has ended.
    Released {
        /// The call.
        call: CallId,
        /// Why.
        cause: Reason,
    },
    /// Leaf side: a leaf is to be added. Answer with `AcceptParty` or `RejectParty`.
    AddParty {
        /// The call.
        call: CallId,
        /// The new party.
        party: PartyId,
        /// The offer.
        info: SetupInfo,
    },
    /// Root side: the leaf is being alerted.
    PartyAlerting {
        /// The call.
        call: CallId,
        /// The party.
        party: PartyId,
        /// Elements of the leaf.
        elements: Vec<Element>,
    },
    /// Root side: the leaf was added.
    PartyAdded {
        /// The call.
        call: CallId,
        /// The party.
        party: PartyId,
        /// The leaf's answer.
        info: ConnectInfo,
    },
    /// Root side: the leaf could not be added.
    PartyRejected {
        /// The call.
        call: CallId,
        /// The party.
        party: PartyId,
        /// Why.
        cause: Reason,
    },
    /// The party has ended, whichever side dropped it.
    PartyDropped {
        /// The call.
        call: CallId,
        /// The party.
        party: PartyId,
        /// Why.
        cause: Reason,
    },
    /// The peer has requested a restart, and the calls concerned have been released, each with its `Released`. Answer
    /// with `RestartCleared` once all their resources are free, before T317 (90 s).
    Restarted {
        /// The channels that are to be idle.
        what: Restart,
    },
    /// A restart requested by this side has ended.
    RestartDone {
        /// Scope of the restart.
        what: Restart,
        /// False if the peer did not answer (two T316).
        answered: bool,
    },
    /// A NOTIFY came (UNI 4.0).
    Notify {
        /// The call.
        call: CallId,
        /// The party concerned, if the NOTIFY names one.
        party: Option<PartyId>,
        /// The notification indicators, at least one, and further elements.
        elements: Vec<Element>,
    },
}

/// The channels that a RESTART concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restart {
    /// One virtual channel.
    Channel(Vc),
    /// All channels of a virtual path.
    Path {
        /// The path.
        vpi: u16,
    },
    /// All channels of the interface.
    All,
}

impl Restart {
    /// The restart class.
    #[must_use]
    pub const fn class(self) -> RestartClass {
        match self {
            Self::Channel(_) => RestartClass::Channel,
            Self::Path { .. } => RestartClass::Path,
            Self::All => RestartClass::All,
        }
    }
    /// True if it concerns the call with this label.
    #[must_use]
    pub fn covers(self, label: Option<Vc>) -> bool {
        match self {
            Self::Channel(vc) => label == Some(vc),
            Self::Path { vpi } => label.is_some_and(|vc| vc.vpi == vpi),
            Self::All => true,
        }
    }
}

/// Inputs of [`super::Uni`].
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant, reason = "lives on the stack for one move")]
pub enum Input<'a> {
    /// The link delivered a message.
    SaalData(&'a [u8]),
    /// The link is established (also after a loss that it repaired by itself).
    SaalUp,
    /// The link is lost.
    SaalDown,
    /// Management has found that the line below the link is dead: calls cannot survive, so they do not wait for T309.
    LineDown,
    /// A request of the owner.
    Request(Request),
}

/// Outputs of [`super::Uni`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send a message over the link.
    SaalData(Vec<u8>),
    /// Establish the link.
    SaalEstablish,
    /// An indication for the owner.
    Indication(Indication),
    /// A trace event.
    Trace(Trace),
}
