//! The connections for which a pseudowire of cells stands, at both ends of it.
//!
//! In VCC and VPC mode the receiver gives each cell its own label: what the peer calls the connection does not matter.
//! Source: RFC 4717 §8.1, RFC 4454 §5.2.

use aerostat_lab::model::Scope;
use aerostat_wire::Vc;
use aerostat_wire::cell::{CellHeader, HeaderForm};
use aerostat_wire::pseudowire::BARE_HEADER_LEN;

/// True if cells of this VC go into the pseudowire.
pub(super) fn carries(scope: Scope, vc: Vc) -> bool {
    match scope {
        Scope::Port => true,
        Scope::Path(vpi) => vc.vpi == vpi,
        Scope::Channel(own) => vc == own,
    }
}

/// The header of a cell that came out of the pseudowire, with the label on this link.
pub(super) fn relabel(scope: Scope, header: [u8; BARE_HEADER_LEN]) -> [u8; BARE_HEADER_LEN] {
    let mut read = CellHeader::from_word(u32::from_be_bytes(header), HeaderForm::Nni);
    match scope {
        Scope::Port => return header,
        Scope::Path(vpi) => read.vc.vpi = vpi,
        Scope::Channel(vc) => read.vc = vc,
    }
    read.to_word(HeaderForm::Nni).to_be_bytes()
}

/// The VCs in words.
pub(super) fn shown(scope: Scope) -> String {
    match scope {
        Scope::Port => "all".to_owned(),
        Scope::Path(vpi) => format!("{vpi}.*"),
        Scope::Channel(vc) => vc.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_gets_the_label_of_this_end_and_keeps_the_rest_of_its_header() {
        let header = [0x12, 0x34, 0x56, 0x7b];
        let channel = Scope::Channel(Vc::new(5, 100));
        assert_eq!(relabel(Scope::Port, header), header);
        assert_eq!(relabel(Scope::Path(5), header), [0x00, 0x54, 0x56, 0x7b]);
        assert_eq!(relabel(channel, header), [0x00, 0x50, 0x06, 0x4b]);
        for (vc, path, vcc) in [
            (Vc::new(5, 100), true, true),
            (Vc::new(5, 101), true, false),
            (Vc::new(4, 100), false, false),
        ] {
            assert!(carries(Scope::Port, vc));
            assert_eq!(carries(Scope::Path(5), vc), path);
            assert_eq!(carries(channel, vc), vcc);
        }
    }
}
