//! Ethernet frames filled with cells ("fat cells").
//!
//! Destination and source, EtherType 88B5 (IEEE 802: local experimental use), then 1 to 172 cells of 52 octets in the
//! form of RFC 4717, N to one: a word with VPI (12 bits), VCI (16), PTI (3) and CLP (1), no HEC, and the payload. A
//! control word may stand in front of the cells; links inside a lab have none. The shortest frame, with one cell, needs
//! no padding.
//!
//! The ATM service of Cambridge carried "an Ethernet frame filled with ATM cells" (Black and Crosby 1993); its layout
//! is not published.

use crate::MacAddr;
use crate::cell::{Cell, HeaderForm};
use crate::pseudowire::{self, BARE_CELL_LEN};

/// The EtherType: local experimental EtherType 1.
pub const ETHERTYPE: u16 = 0x88b5;
/// Octets in front of the cells: two addresses and the EtherType.
pub const HEADER: usize = 14;
/// Octets of the frame check sequence.
pub const CHECK: usize = 4;
/// Octets of preamble and start delimiter. Source: IEEE 802.3 §3.1.
pub const PREAMBLE: usize = 8;
/// The shortest gap between two frames, octets. Source: IEEE 802.3 §4.4.2.
pub const GAP: usize = 12;
/// Limit of cells in a frame: 9000 octets hold them and a control word.
pub const MAX_CELLS: u16 = 172;

/// Octets of a frame with so many cells, with its check sequence.
#[must_use]
pub const fn octets(cells: usize) -> usize {
    HEADER + cells * BARE_CELL_LEN + CHECK
}

/// Octets that a frame takes on the line, with preamble and gap.
#[must_use]
pub const fn on_the_line(cells: usize) -> usize {
    PREAMBLE + octets(cells) + GAP
}

/// A frame with these cells, without its check sequence.
#[must_use]
pub fn encode(destination: MacAddr, source: MacAddr, cells: &[Cell]) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER + cells.len() * BARE_CELL_LEN);
    out.extend(destination.0);
    out.extend(source.0);
    out.extend(ETHERTYPE.to_be_bytes());
    for cell in cells {
        pseudowire::put_cell(&mut out, &cell.encode(HeaderForm::Nni));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Vc;
    use crate::cell::{CellHeader, Pti};

    /// Composed by hand from IEEE 802.3 and RFC 4717 §8.1.
    #[test]
    fn a_frame_of_two_cells_has_these_octets() {
        let cell = |vpi: u16, vci: u16, pti, clp, octet| Cell {
            header: CellHeader {
                gfc: 0,
                vc: Vc::new(vpi, vci),
                pti,
                clp,
            },
            payload: [octet; 48],
        };
        let cells = [
            cell(0, 32, Pti::USER, false, 0xaa),
            cell(0x123, 0x4567, Pti::USER_END, true, 0x55),
        ];
        let [to, from] = [1, 2].map(|last| MacAddr([2, 0, 0, 0, 0, last]));
        let frame = encode(to, from, &cells);
        let mut wanted = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5];
        wanted.extend([0x00, 0x00, 0x02, 0x00]);
        wanted.extend([0xaa; 48]);
        // VPI 12 bits, VCI 16, PTI 001, CLP 1.
        wanted.extend([0x12, 0x34, 0x56, 0x73]);
        wanted.extend([0x55; 48]);
        assert_eq!(frame, wanted);
        assert_eq!(frame.len() + CHECK, octets(2));
        // No frame is shorter than Ethernet allows: 64 octets.
        assert_eq!((octets(1), on_the_line(1)), (70, 90));
        assert_eq!((octets(28), on_the_line(28)), (1474, 1494));
    }
}
