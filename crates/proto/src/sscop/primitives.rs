//! The primitives between an SSCOP entity and its user and layer management. Source: Q.2110 §6.

use aerostat_wire::Seq24;

/// BR, buffer release: what becomes of messages that the peer has not acknowledged when the connection ends, is
/// resynchronised by the peer, or is recovered. Source: Q.2110 §6.1; "Clear-buffers" of its SDL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Buffers {
    /// BR = yes, Clear-buffers = yes: they are forgotten. SSCF-UNI asks for this.
    #[default]
    Release,
    /// BR = no, Clear-buffers = no: they stay until the next connection, or the user's answer, and the user may
    /// [`Request::Retrieve`] them; messages that have no number yet survive a recovery and are sent after it. A
    /// message that a STAT lists behind a gap stays too, until everything before it is acknowledged.
    Keep,
}

/// RN, retrieval number: which messages AA-RETRIEVE gives back. Source: Q.2110 §6.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retrieval {
    /// "Unknown": those that were never sent.
    Unsent,
    /// "Total": all that the peer has not acknowledged, and those that were never sent.
    Total,
    /// Those sent with an N(S) after this one, which is how far the peer's user got ([`Indication::Data`]), and those
    /// never sent. A number outside VT(A) - 1 to VT(S) - 1 brings only the latter.
    After(Seq24),
}

/// What the user asks for: the AA- request and response primitives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// AA-ESTABLISH.request, with SSCOP-UU and BR.
    Establish(Vec<u8>, Buffers),
    /// AA-ESTABLISH.response, with SSCOP-UU and BR.
    EstablishResponse(Vec<u8>, Buffers),
    /// AA-RELEASE.request, with SSCOP-UU.
    Release(Vec<u8>),
    /// AA-DATA.request.
    Data(Vec<u8>),
    /// AA-RESYNC.request, with SSCOP-UU.
    Resync(Vec<u8>),
    /// AA-RESYNC.response.
    ResyncResponse,
    /// AA-RECOVER.response.
    RecoverResponse,
    /// AA-RETRIEVE.request, with RN: no connection, or one that waits for this user's answer.
    Retrieve(Retrieval),
    /// AA-UNITDATA.request.
    UnitData(Vec<u8>),
    /// MAA-UNITDATA.request.
    ManagementData(Vec<u8>),
    /// True: grant the peer no more credit than it has. False: grant it as messages are delivered.
    Busy(bool),
}

/// Who ended a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The peer's user.
    User,
    /// An SSCOP entity, ours or the peer's.
    Sscop,
}

/// What the user is told: the AA- indication and confirm primitives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Indication {
    /// AA-ESTABLISH.indication: answer with `EstablishResponse` or `Release`.
    Establish(Vec<u8>),
    /// AA-ESTABLISH.confirm.
    Established(Vec<u8>),
    /// AA-RELEASE.indication.
    Released(Vec<u8>, Source),
    /// AA-RELEASE.confirm.
    ReleaseConfirmed,
    /// AA-DATA.indication, with SN, the N(S) of the message. With [`Buffers::Keep`] a recovery delivers what lay
    /// behind a gap: then SN jumps.
    Data(Vec<u8>, Seq24),
    /// AA-RESYNC.indication: answer with `ResyncResponse`.
    Resync(Vec<u8>),
    /// AA-RESYNC.confirm.
    Resynced,
    /// AA-RECOVER.indication: answer with `RecoverResponse`.
    Recover,
    /// AA-RETRIEVE.indication: a message of this user, in the order in which they were handed in.
    Retrieved(Vec<u8>),
    /// AA-RETRIEVE COMPLETE.indication.
    RetrieveComplete,
    /// AA-UNITDATA.indication.
    UnitData(Vec<u8>),
    /// MAA-UNITDATA.indication.
    ManagementData(Vec<u8>),
}

/// MAA-ERROR.indication. Source: Q.2110 Annex A.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MaaError {
    /// `A`..`M` unexpected PDU, `O` too many retries, `P` no response, `Q`..`T` sequence errors,
    /// `U` length violation, `V` retransmission, `W` and `X` credit lost and regained.
    pub code: char,
    /// With `V`: SDs to be sent again; otherwise 0.
    pub count: u32,
}
