//! Versions of the UNI and what differs between them on the wire.

/// Version of an interface. There is no negotiation: both ends are told. Facts book "UNI signalling" §12.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// ATM Forum UNI 3.0 (draft SSCOP, AAL mode field, own causes).
    Uni30,
    /// ATM Forum UNI 3.1.
    Uni31,
    /// ATM Forum UNI Signalling 4.0.
    Uni40,
}
