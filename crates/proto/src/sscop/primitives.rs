//! The primitives between an SSCOP entity and its user and layer management. Source: Q.2110 §6.

use aerostat_wire::Seq24;

/// BR, buffer release: the fate of messages that the peer has not acknowledged when the connection ends, is
/// resynchronised by the peer, or is recovered. Source: Q.2110 §6.1; "Clear-buffers" of its SDL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Buffers {
    /// BR = yes, Clear-buffers = yes: they are removed. SSCF-UNI uses this.
    #[default]
    Release,
    /// BR = no, Clear-buffers = no: they stay until the next connection, or the user's answer, and the user may
    /// [`Request::Retrieve`] them. Messages without a number survive a recovery and are sent after it. A message that a
    /// STAT lists behind a gap stays, too, until everything before it is acknowledged.
    Keep,
}

/// RN, retrieval number: selects the messages that AA-RETRIEVE returns. Source: Q.2110 §6.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retrieval {
    /// "Unknown": messages that were never sent.
    Unsent,
    /// "Total": all messages that the peer has not acknowledged, and those that were never sent.
    Total,
    /// Messages sent with an N(S) after this one, which is the last that the peer's user has received
    /// ([`Indication::Data`]), and those never sent. A number outside VT(A) - 1 to VT(S) - 1 returns only the latter.
    After(Seq24),
}

/// Requests of the user: the AA- request and response primitives.
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
    /// AA-RETRIEVE.request, with RN. It needs a state without a connection, or one in which the user's answer is
    /// outstanding.
    Retrieve(Retrieval),
    /// AA-UNITDATA.request.
    UnitData(Vec<u8>),
    /// MAA-UNITDATA.request.
    ManagementData(Vec<u8>),
    /// True: grant the peer no further credit. False: grant credit as messages are delivered.
    Busy(bool),
}

/// Side that ended a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The peer's user.
    User,
    /// An SSCOP entity, ours or the peer's.
    Sscop,
}

/// Indications for the user: the AA- indication and confirm primitives.
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
    /// AA-DATA.indication, with SN, the N(S) of the message. With [`Buffers::Keep`] a recovery delivers the messages
    /// behind a gap; SN jumps then.
    Data(Vec<u8>, Seq24),
    /// AA-RESYNC.indication: answer with `ResyncResponse`.
    Resync(Vec<u8>),
    /// AA-RESYNC.confirm.
    Resynced,
    /// AA-RECOVER.indication: answer with `RecoverResponse`.
    Recover,
    /// AA-RETRIEVE.indication: a message of this user, in the original order.
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
    /// With `V`: number of SDs to be retransmitted; otherwise 0.
    pub count: u32,
}
