//! Data units as the accounts of a run see them: octets, and the mark of a PDU that a program wrote.
//!
//! The PDUs of programs with ATM sockets are all alike, so their octets do not tell which PDU was lost. The adapter of
//! the sender therefore puts a [`Mark`] on each of them. The mark stays outside of the network: no cell carries it, no
//! protocol reads it, and it ends where a PDU leaves the lab.

use super::pdu::Pdu;

/// A connection of a program with an ATM socket, in one life of its host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SocketId {
    /// Number of the node in the lab.
    pub node: u32,
    /// Number of times that the node was switched on before.
    pub life: u32,
    /// Number of the connection in this life, from 0.
    pub number: u64,
}

/// One PDU that a program has written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark {
    /// Connection on which it was written.
    pub socket: SocketId,
    /// Number of the attempt to write it; no two PDUs of a connection have the same number.
    pub pdu: u64,
}

/// An SDU, a frame or a packet, or its head.
#[derive(Clone, Copy, Debug)]
pub struct DataUnit<'a> {
    /// Its octets.
    pub octets: &'a [u8],
    /// Its mark, if a program wrote it.
    pub mark: Option<Mark>,
}

impl<'a> From<&'a [u8]> for DataUnit<'a> {
    fn from(octets: &'a [u8]) -> Self {
        Self { octets, mark: None }
    }
}

impl<'a> From<&'a Pdu> for DataUnit<'a> {
    fn from(pdu: &'a Pdu) -> Self {
        Self {
            octets: pdu.sdu(),
            mark: pdu.mark(),
        }
    }
}

impl DataUnit<'_> {
    /// A copy of the first `most` octets, with the mark.
    #[must_use]
    pub fn first(self, most: usize) -> DataUnitBuf {
        DataUnitBuf {
            octets: self.octets.get(..most).unwrap_or(self.octets).to_vec(),
            mark: self.mark,
        }
    }
}

/// A [`DataUnit`] that owns its octets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataUnitBuf {
    /// Its octets.
    pub octets: Vec<u8>,
    /// Its mark, if a program wrote it.
    pub mark: Option<Mark>,
}

impl DataUnitBuf {
    /// The same data, borrowed.
    #[must_use]
    pub fn view(&self) -> DataUnit<'_> {
        DataUnit {
            octets: &self.octets,
            mark: self.mark,
        }
    }
}

impl From<Vec<u8>> for DataUnitBuf {
    fn from(octets: Vec<u8>) -> Self {
        Self { octets, mark: None }
    }
}
