//! What a user of a UNI interface says and hears: primitives and their contents.

use aerostat_wire::q2931::{Element, RestartClass};
use aerostat_wire::{AtmAddress, Bhli, Blli, Qos, Sap, Vc};

use crate::{Cause, PartyId, Trace};

/// Opaque id of one call on one interface, for the owner of the interface.
///
/// The owner chooses it (below [`CallId::INCOMING`]) for calls that it starts, [`super::Uni`] (from there
/// upwards) for calls that it is offered. It is free again after [`Indication::Released`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u32);

impl CallId {
    /// First id of calls received; ids that owners choose lie below.
    pub const INCOMING: u32 = 0x8000_0000;
}

/// What a SETUP or an ADD PARTY says.
///
/// `elements` win: an information element that is there goes out as it is (adapted to the version of the
/// interface). What is missing among called and calling number, B-LLI, B-HLI, AAL parameters, traffic descriptor,
/// bearer capability and QoS is made from the other fields. So a host fills the fields and leaves
/// `elements` empty, and a switch hands a received `SetupInfo` on unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetupInfo {
    /// Called party.
    pub called: AtmAddress,
    /// Calling party.
    pub calling: Option<AtmAddress>,
    /// What the call carries: the first (preferred) B-LLI.
    pub blli: Option<Blli>,
    /// What the call is for.
    pub bhli: Option<Bhli>,
    /// Traffic seen from the calling side: `tx` is forward.
    pub qos: Qos,
    /// True for a point-to-multipoint call.
    pub multipoint: bool,
    /// All elements of a received message but connection identifier and endpoint reference, in order.
    /// A received ADD PARTY has those of the call's SETUP that it lacks (traffic, bearer, QoS) added.
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

/// What a CONNECT or an ADD PARTY ACK says. The default is an empty message: accepted as offered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectInfo {
    /// The called side's choice among several B-LLI.
    pub blli: Option<Blli>,
    /// Largest AAL5 SDU (forward, backward) that the called side takes; not above what was offered.
    pub max_sdu: Option<(u16, u16)>,
    /// All elements of a received message but connection identifier and endpoint reference, in order.
    /// They win over the fields above, as in [`SetupInfo`].
    pub elements: Vec<Element>,
}

/// Why a call or a party ends: the cause, and what came with it. A switch hands it on from one interface to
/// the other, so that both ends of a call hear the same. Source: Q.2931 §4.5.15.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// The number of UNI 3.1 and later, 1..=127.
    pub cause: Cause,
    /// Where it arose: 0 user, 1 private network serving the local user, … `None`: at this interface.
    pub location: Option<u8>,
    /// True if the number is the ATM Forum's, not the ITU's.
    pub forum: bool,
    /// Diagnostics as they came, at most [`Reason::DIAGNOSTICS`] octets go out.
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

    /// The reason with a place, if it has none.
    #[must_use]
    pub fn located(mut self, location: u8) -> Self {
        self.location.get_or_insert(location);
        self
    }
    /// What an acknowledgement says: the same cause, from this interface, and nothing else.
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
    /// The cause; then where it arose and the diagnostics in hexadecimal, if known.
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

/// What the owner asks of the interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Start a call. Answered by `Connected` or `Released` (`Proceeding`, `Alerting` may come before).
    /// While the link is down the call waits for it, at most two T303.
    Setup {
        /// Chosen by the owner, below [`CallId::INCOMING`] and not in use.
        call: CallId,
        /// The offer.
        info: SetupInfo,
        /// The network side's choice of label; a user gives none.
        vc: Option<Vc>,
        /// Endpoint reference of the first party of a point-to-multipoint call (0 by convention).
        party: Option<PartyId>,
    },
    /// Tell the caller that its offer is being worked on. The network side must give the label here or in
    /// the first other answer.
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
        /// What the called side says with it.
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
    /// Root side: add a leaf. Answered by `PartyAdded` or `PartyRejected`.
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
        /// What the leaf says with it.
        elements: Vec<Element>,
    },
    /// Leaf side: the leaf is there.
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
    /// Drop a leaf, either side. `PartyDropped` follows; if it was the last party, `Released` instead.
    DropParty {
        /// The call.
        call: CallId,
        /// The party.
        party: PartyId,
        /// Why.
        cause: Reason,
    },
    /// Clear calls on both sides without messages of their own. Answered by `RestartDone`.
    Restart {
        /// Which.
        what: Restart,
    },
    /// What the peer wanted restarted is idle here as well: it gets its RESTART ACKNOWLEDGE.
    RestartCleared {
        /// From `Indication::Restarted`.
        what: Restart,
    },
    /// Ask the peer for its state of a call; a disagreement clears the call.
    StatusEnquiry {
        /// The call.
        call: CallId,
    },
    /// Tell the peer with STATUS that something in its last message could not be used.
    Report {
        /// The call.
        call: CallId,
        /// What: the cause with its diagnostics.
        cause: Reason,
    },
    /// Send a NOTIFY about a call that the peer has answered or was answered (UNI 4.0; silently dropped, and
    /// counted, on 3.x).
    Notify {
        /// The call.
        call: CallId,
        /// The party concerned, if one of a point-to-multipoint call.
        party: Option<PartyId>,
        /// The notification indicators, at least one, and what goes with them.
        elements: Vec<Element>,
    },
}

/// What the interface tells its owner.
///
/// Every call that was ever mentioned ends with exactly one `Released`, whoever released it; its parties end
/// with it, without indications of their own. From that moment the label and the [`CallId`] are free.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Indication {
    /// The signalling link is up.
    Up,
    /// The signalling link is down. Calls that are lost get a `Released` each (active ones after T309).
    Down,
    /// A call is offered. Answer with `Accept` or `Release` (`Proceeding`, `Alerting` before).
    Setup {
        /// Chosen here.
        call: CallId,
        /// The offer.
        info: SetupInfo,
        /// The label, if the peer gave one (the network side does).
        vc: Option<Vc>,
        /// Endpoint reference, if it is a point-to-multipoint call.
        party: Option<PartyId>,
    },
    /// The offer is being worked on.
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
        /// What the called side says with it: all elements but those of the interface itself.
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
    /// The interface itself started to release the call (a timer, a protocol error, a last party): it
    /// carries nothing any more, but its label is not free before `Released`.
    Clearing {
        /// The call.
        call: CallId,
        /// Why.
        cause: Reason,
    },
    /// The call is gone.
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
        /// What the leaf says with it.
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
    /// The party is gone, whoever dropped it.
    PartyDropped {
        /// The call.
        call: CallId,
        /// The party.
        party: PartyId,
        /// Why.
        cause: Reason,
    },
    /// The peer asked for a restart; the calls concerned were released, each with its `Released`. Answer with
    /// `RestartCleared` once all that they held is free, before T317 (90 s).
    Restarted {
        /// What is to be idle.
        what: Restart,
    },
    /// A restart of our own is over.
    RestartDone {
        /// What was restarted.
        what: Restart,
        /// False if the peer never answered (two T316).
        answered: bool,
    },
    /// A NOTIFY came (UNI 4.0).
    Notify {
        /// The call.
        call: CallId,
        /// The party concerned, if one.
        party: Option<PartyId>,
        /// The notification indicators, at least one, and what came with them.
        elements: Vec<Element>,
    },
}

/// What a RESTART concerns.
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
    /// The class on the wire.
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

/// What goes into [`super::Uni`].
#[derive(Clone, Debug)]
pub enum Input<'a> {
    /// The link delivered a message.
    SaalData(&'a [u8]),
    /// The link is established (also after a loss that it mended by itself).
    SaalUp,
    /// The link is lost.
    SaalDown,
    /// The line below the link is dead, which management has seen: no call can live on, so none waits for T309.
    LineDown,
    /// The owner wants something.
    Request(Request),
}

/// What comes out of [`super::Uni`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send a message over the link.
    SaalData(Vec<u8>),
    /// Establish the link.
    SaalEstablish,
    /// For the owner.
    Indication(Indication),
    /// For the story.
    Trace(Trace),
}
