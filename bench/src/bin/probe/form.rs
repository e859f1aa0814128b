//! Cells in datagrams: 53 octets with HEC, as Dynamips sends them, or 52 octets without (RFC 4717, N-to-one).

use aerostat_wire::cell::hec;
use clap::ValueEnum;
use std::io;
use std::net::{SocketAddr, UdpSocket};

/// Most cells in one datagram.
pub(crate) const MOST: usize = 28;
/// Room for one datagram.
pub(crate) const ROOM: usize = MOST * 53;
/// Datagrams in one call of `sendmmsg` or `recvmmsg`, and segments of one super-datagram (the kernel's limit of GSO).
pub(crate) const BATCH: usize = 64;

/// Form of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// 53 octets, with HEC
    #[value(name = "53")]
    WithHec,
    /// 52 octets, without HEC
    #[value(name = "52")]
    WithoutHec,
}

impl Form {
    /// Octets of a cell.
    pub(crate) const fn len(self) -> usize {
        match self {
            Self::WithHec => 53,
            Self::WithoutHec => 52,
        }
    }
    /// Octets in front of the payload.
    pub(crate) const fn header(self) -> usize {
        self.len() - 48
    }
    /// Writes the header: the word, and the HEC where the form has one.
    pub(crate) fn write(self, cell: &mut [u8], word: u32) {
        let octets = word.to_be_bytes();
        cell[..4].copy_from_slice(&octets);
        if self == Self::WithHec {
            cell[4] = hec(octets);
        }
    }
    /// The word of the header; `None` if the HEC is wrong.
    pub(crate) fn read(self, cell: &[u8]) -> Option<u32> {
        let octets = [cell[0], cell[1], cell[2], cell[3]];
        (self == Self::WithoutHec || cell[4] == hec(octets)).then(|| u32::from_be_bytes(octets))
    }
}

/// The word of a header with this label, all other fields 0. VPIs above 255 do not occur here.
pub(crate) const fn word(vpi: u32, vci: u32) -> u32 {
    vpi << 20 | vci << 4
}

/// The bit of a header's word that marks the last cell of a PDU.
pub(crate) const END: u32 = 1 << 1;

/// Most connections.
pub(crate) const VCS: u16 = 1024;
/// The first label on the way in and on the way out; the other connections have the next VCIs.
pub(crate) const IN: u32 = word(1, 100);
pub(crate) const OUT: u32 = word(2, 200);

/// The bits of a header's word that are the VPI and VCI.
pub(crate) const LABEL: u32 = 0x0fff_fff0;

/// A socket at `local` that sends to `peer` and takes datagrams of it only.
pub(crate) fn socket(local: SocketAddr, peer: SocketAddr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(local)?;
    socket.connect(peer)?;
    Ok(socket)
}
