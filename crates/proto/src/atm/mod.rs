//! The ATM service as its users see it: LANE, MPOA and NHRP entities request connections here.
//!
//! A user ([`AtmUser`]) emits [`AtmRequest`]s and is fed [`AtmEvent`]s. The host's signalling is on the other side and
//! translates requests into UNI calls. A [`ConnId`] is an opaque id of one connection, private to one user: the user
//! chooses it (below [`ConnId::INCOMING`]) for calls it makes, signalling (from [`ConnId::INCOMING`] upwards) for calls
//! it receives. After `Released` an id is dead and may be reused. Every use of an unknown id is refused and counted,
//! never trusted.

mod sdu;
mod terms;
mod user;

pub use sdu::Sdu;
pub use terms::{answered, within};
pub use user::{AtmUser, UserOutput};

use aerostat_wire::{AtmAddress, Qos, Sap, Vc};
use core::fmt;

/// Count of SDUs, frames or packets that move together: the segments of one super frame of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Several {
    /// Their number, at least 1.
    pub count: u16,
    /// Octets of the longest one.
    pub longest: usize,
    /// Octets of all.
    pub octets: usize,
}

/// The header that SDUs which move together ([`Several`]) share, and the connection that takes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedHeader {
    /// The connection.
    pub conn: ConnId,
    /// Octets in front of each SDU.
    pub header: Vec<u8>,
    /// Octets at the start of the super frame that the header replaces.
    pub replaces: usize,
    /// Octets to which shorter SDUs are padded; 0 if none is.
    pub least: usize,
}

/// Opaque id of a connection, private to one user of the ATM service.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnId(pub u32);

impl ConnId {
    /// First id of calls received; ids that users choose lie below.
    pub const INCOMING: u32 = 0x8000_0000;
}

/// Id of one party (leaf) of a point-to-multipoint connection; the root's user chooses it.
///
/// On the wire it is the endpoint reference value (15 bits). The first party has 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartyId(pub u16);

/// Cause of a clearing, as in the cause information element. Source: Q.2931 §4.5.15, Q.850.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cause(pub u8);

impl Cause {
    /// No system has this number.
    pub const UNALLOCATED: Self = Self(1);
    /// No route to destination.
    pub const NO_ROUTE: Self = Self(3);
    /// Normal call clearing (UNI 3.1 and later; 3.0 sends 31).
    pub const NORMAL: Self = Self(16);
    /// User busy.
    pub const BUSY: Self = Self(17);
    /// No user responding.
    pub const NO_RESPONSE: Self = Self(18);
    /// Call rejected.
    pub const REJECTED: Self = Self(21);
    /// Destination out of order.
    pub const OUT_OF_ORDER: Self = Self(27);
    /// Requested VPCI/VCI unavailable, or no VPCI/VCI free.
    pub const VC_UNAVAILABLE: Self = Self(35);
    /// User cell rate not available.
    pub const RATE_UNAVAILABLE: Self = Self(37);
    /// Network out of order.
    pub const NETWORK_OUT_OF_ORDER: Self = Self(38);
    /// Temporary failure.
    pub const TEMPORARY: Self = Self(41);
    /// Resources unavailable, unspecified.
    pub const RESOURCES: Self = Self(47);
    /// Incompatible destination: there is no listener for this address and description.
    pub const INCOMPATIBLE: Self = Self(88);
    /// AAL parameters cannot be supported.
    pub const AAL_PARAMETERS: Self = Self(93);
    /// Recovery on timer expiry.
    pub const TIMER: Self = Self(102);

    /// True if the same call may succeed soon without a change of configuration: the path, the other end or a resource
    /// was not available. An address without a route (1, 3) and an end without a listener (88) count as temporary,
    /// since either may just be starting: a host's address has a route only once it is registered. Source: Q.850
    /// §2.2.7.
    #[must_use]
    pub const fn is_temporary(self) -> bool {
        matches!(
            self.0,
            1 | 3 | 17 | 18 | 19 | 27 | 31 | 32 | 34..=47 | 51 | 88 | 102
        )
    }

    /// True for the end of a connection that is no longer needed: 16, and 31 (UNI 3.0). A user that loses its host or
    /// its link has other causes.
    #[must_use]
    pub const fn is_normal(self) -> bool {
        matches!(self.0, 16 | 31)
    }
}

/// With its name. Source: Q.850 table 1, Q.2610; 36, 37, 51, 73, 78, 92 and 93: UNI 3.0 to 4.0, Q.2971.
/// Names of causes, in order. Source: Q.850 §2.2.7, Q.2610.
const CAUSES: &[(u8, &str)] = &[
    (1, "unallocated number"),
    (2, "no route to specified transit network"),
    (3, "no route to destination"),
    (10, "VPCI/VCI unacceptable"),
    (16, "normal call clearing"),
    (17, "user busy"),
    (18, "no user responding"),
    (19, "no answer from user"),
    (20, "subscriber absent"),
    (21, "call rejected"),
    (22, "number changed"),
    (
        23,
        "user rejects calls with calling line identification restriction",
    ),
    (26, "non-selected user clearing"),
    (27, "destination out of order"),
    (28, "invalid number format"),
    (29, "facility rejected"),
    (30, "response to STATUS ENQUIRY"),
    (31, "normal, unspecified"),
    (32, "too many pending add party requests"),
    (34, "no circuit or channel available"),
    (35, "requested VPCI/VCI unavailable"),
    (36, "VPCI/VCI assignment failure"),
    (37, "user cell rate not available"),
    (38, "network out of order"),
    (41, "temporary failure"),
    (42, "switching equipment congestion"),
    (43, "access information discarded"),
    (45, "no VPCI/VCI available"),
    (47, "resources unavailable"),
    (49, "quality of service unavailable"),
    (50, "requested facility not subscribed"),
    (51, "user cell rate not available"),
    (57, "bearer capability not authorized"),
    (58, "bearer capability not presently available"),
    (63, "service or option not available"),
    (65, "bearer capability not implemented"),
    (69, "requested facility not implemented"),
    (73, "unsupported combination of traffic parameters"),
    (78, "AAL parameters cannot be supported"),
    (79, "service or option not implemented"),
    (81, "invalid call reference value"),
    (82, "identified channel does not exist"),
    (87, "user is not a member of the closed user group"),
    (88, "incompatible destination"),
    (89, "invalid endpoint reference"),
    (91, "invalid transit network selection"),
    (92, "too many pending add party requests"),
    (93, "AAL parameters cannot be supported"),
    (95, "invalid message, unspecified"),
    (96, "mandatory information element is missing"),
    (97, "message type non-existent or not implemented"),
    (99, "information element non-existent or not implemented"),
    (100, "invalid information element contents"),
    (101, "message not compatible with call state"),
    (102, "recovery on timer expiry"),
    (103, "parameter non-existent or not implemented, passed on"),
    (104, "incorrect message length"),
    (111, "protocol error, unspecified"),
    (127, "interworking, unspecified"),
];

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = CAUSES.binary_search_by_key(&self.0, |(value, _)| *value);
        let text = known.map_or("see Q.850", |at| CAUSES[at].1);
        write!(f, "cause {} ({text})", self.0)
    }
}

/// Requests of a user to the ATM service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AtmRequest {
    /// Ask for incoming calls for this address and description.
    Listen {
        /// Own address, all 20 octets significant.
        address: AtmAddress,
        /// Protocol that the caller must announce; fields that are left open here may have any value
        /// ([`Sap::accepts`]).
        sap: Sap,
        /// Largest AAL5 SDU accepted from a caller, octets.
        max_sdu: u16,
    },
    /// Stop listening.
    Unlisten {
        /// As in `Listen`.
        address: AtmAddress,
        /// As in `Listen`.
        sap: Sap,
    },
    /// Open a connection. Answered by `Connected` or `Released`.
    Connect {
        /// Chosen by the user, unused so far.
        conn: ConnId,
        /// Address of this end.
        calling: AtmAddress,
        /// Address of the other end; of the first party if `multipoint`.
        called: AtmAddress,
        /// Protocol that the connection carries.
        sap: Sap,
        /// Traffic in both directions; `rx` has no traffic if `multipoint`.
        qos: Qos,
        /// True for the root of a point-to-multipoint connection.
        multipoint: bool,
    },
    /// Use a permanent connection, which management has set up on the whole path. Answered by `Connected`, or by
    /// `Released` if the label is in use. `Release` ends the use.
    OpenPermanent {
        /// Chosen by the user, unused so far.
        conn: ConnId,
        /// Its label on this host's link.
        vc: Vc,
        /// Traffic in both directions.
        qos: Qos,
    },
    /// Add a leaf to a point-to-multipoint connection. Answered by `PartyAdded` or `PartyGone`.
    AddParty {
        /// The connection.
        conn: ConnId,
        /// Chosen by the user, 1..=32767, unused so far on this connection.
        party: PartyId,
        /// Address of the leaf.
        called: AtmAddress,
    },
    /// Drop a leaf. No event follows; the id is dead. Dropping the last leaf releases the connection (`Released`
    /// follows).
    DropParty {
        /// The connection.
        conn: ConnId,
        /// The leaf.
        party: PartyId,
    },
    /// Accept an offered call. `Connected` follows when the call can be used. The request is refused if the caller has
    /// released the call meanwhile: then `Released` is under way.
    Accept {
        /// From `Incoming`.
        conn: ConnId,
        /// The contract of the answer, seen from this end; `None`: as offered. A request with an answer that the offer
        /// does not allow ([`answered`]) is refused, and the call waits on.
        terms: Option<Qos>,
    },
    /// Release a connection or refuse an offered call. No event follows; the id is dead.
    Release {
        /// The connection.
        conn: ConnId,
        /// The cause.
        cause: Cause,
    },
    /// Send one AAL5 SDU.
    Send {
        /// The connection.
        conn: ConnId,
        /// The SDU, 1..=65535 octets.
        sdu: Vec<u8>,
    },
}

impl AtmRequest {
    /// [`AtmRequest::Listen`] at this address.
    #[must_use]
    pub const fn listen(address: AtmAddress, sap: Sap, max_sdu: u16) -> Self {
        Self::Listen {
            address,
            sap,
            max_sdu,
        }
    }
}

/// Events of the ATM service for a user. `O` is the type of an SDU's octets: borrowed (`&[u8]`) on the way to a
/// machine, owned (`Vec<u8>`) in a message for another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtmEvent<O> {
    /// Signalling is up: requests will be served. The service tells this again when calls that failed may succeed now.
    Up,
    /// Signalling is down: new calls wait some seconds for it, then fail; each lost connection gets its own `Released`.
    Down,
    /// A call is offered. Answer with `Accept` or `Release`.
    Incoming {
        /// Chosen by the service.
        conn: ConnId,
        /// The caller's address, if the caller gave one.
        calling: Option<AtmAddress>,
        /// The address that was called.
        called: AtmAddress,
        /// Protocol that the connection carries, as the accepting listener described it.
        sap: Sap,
        /// Traffic, seen from this end.
        qos: Qos,
        /// True if this end is a leaf of a point-to-multipoint connection (it cannot send).
        multipoint: bool,
    },
    /// The connection can be used.
    Connected {
        /// The connection.
        conn: ConnId,
        /// Its label on this host's link, for display.
        vc: Vc,
        /// The agreed traffic, seen from this end: at most what was asked for.
        qos: Qos,
    },
    /// The connection is gone, or could not be opened. The id is dead.
    Released {
        /// The connection.
        conn: ConnId,
        /// The cause.
        cause: Cause,
    },
    /// A leaf was added.
    PartyAdded {
        /// The connection.
        conn: ConnId,
        /// The leaf.
        party: PartyId,
    },
    /// A leaf could not be added, or has left.
    PartyGone {
        /// The connection.
        conn: ConnId,
        /// The leaf.
        party: PartyId,
        /// The cause.
        cause: Cause,
    },
    /// One AAL5 SDU arrived.
    Received {
        /// The connection.
        conn: ConnId,
        /// The SDU.
        sdu: O,
    },
}

impl<O> AtmEvent<O> {
    /// The connection that the event is about, if it is about one connection.
    #[must_use]
    pub const fn conn(&self) -> Option<ConnId> {
        match *self {
            Self::Up | Self::Down => None,
            Self::Incoming { conn, .. }
            | Self::Connected { conn, .. }
            | Self::Released { conn, .. }
            | Self::PartyAdded { conn, .. }
            | Self::PartyGone { conn, .. }
            | Self::Received { conn, .. } => Some(conn),
        }
    }

    /// The same event with other octets.
    fn map<'a, P>(&'a self, octets: impl FnOnce(&'a O) -> P) -> AtmEvent<P> {
        match *self {
            Self::Up => AtmEvent::Up,
            Self::Down => AtmEvent::Down,
            Self::Incoming {
                conn,
                calling,
                called,
                sap,
                qos,
                multipoint,
            } => AtmEvent::Incoming {
                conn,
                calling,
                called,
                sap,
                qos,
                multipoint,
            },
            Self::Connected { conn, vc, qos } => AtmEvent::Connected { conn, vc, qos },
            Self::Released { conn, cause } => AtmEvent::Released { conn, cause },
            Self::PartyAdded { conn, party } => AtmEvent::PartyAdded { conn, party },
            Self::PartyGone { conn, party, cause } => AtmEvent::PartyGone { conn, party, cause },
            Self::Received { conn, ref sdu } => AtmEvent::Received {
                conn,
                sdu: octets(sdu),
            },
        }
    }
}

impl AtmEvent<&[u8]> {
    /// The same event with octets of its own.
    #[must_use]
    pub fn into_owned(self) -> AtmEvent<Vec<u8>> {
        self.map(|sdu| sdu.to_vec())
    }
}

impl AtmEvent<Vec<u8>> {
    /// The same event, to hand to a machine.
    #[must_use]
    pub fn borrow(&self) -> AtmEvent<&[u8]> {
        self.map(Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::Cause;

    /// A user sees causes in errors: those that the code sends have their names there.
    #[test]
    fn causes_have_names() {
        assert!(super::CAUSES.is_sorted_by_key(|(value, _)| *value));
        let sent = [
            1, 3, 16, 17, 18, 21, 27, 28, 29, 30, 31, 32, 35, 36, 37, 38, 41, 45, 47, 49, 63, 65,
            73, 78, 81, 82, 88, 89, 92, 93, 96, 97, 99, 100, 101, 102, 111,
        ];
        for cause in sent {
            let told = Cause(cause).to_string();
            assert!(!told.contains("Q.850"), "{told}");
        }
        assert_eq!(
            Cause(111).to_string(),
            "cause 111 (protocol error, unspecified)"
        );
        assert_eq!(Cause(29).to_string(), "cause 29 (facility rejected)");
        assert_eq!(Cause(64).to_string(), "cause 64 (see Q.850)");
    }
}
