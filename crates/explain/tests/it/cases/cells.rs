//! Cells under a wrong link type, cells and SDUs of pseudowires, and GRE.

use super::{Case, Clean};
use crate::dmvpn;
use crate::links::{atmarps, cells, cells_with_word, labelled, legacy};
use aerostat_explain::Rule;
use aerostat_wire::cell::{Cell, CellHeader, HeaderForm, Pti};
use aerostat_wire::oam::Oam;
use aerostat_wire::pseudowire::put_cell;
use aerostat_wire::{Vc, aal5};

const CHANNEL: Vc = Vc { vpi: 1, vci: 100 };

/// As many good cells as settle what the interface has, and then these.
fn behind_good(more: &[[u8; 53]]) -> Vec<u8> {
    let good = cells(CHANNEL, &[9; 100]).into_iter().cycle().take(60);
    file(&good.chain(more.iter().copied()).collect::<Vec<_>>())
}

fn file(cells: &[[u8; 53]]) -> Vec<u8> {
    let packets: Vec<_> = cells.iter().map(|cell| cell.to_vec()).collect();
    legacy(100, &packets)
}

/// One cell with a PDU whose trailer has these octets from a place on, and the CRC that fits.
fn sealed(at: usize, octets: &[u8]) -> Vec<u8> {
    let mut cell = cells(CHANNEL, &[5; 30])[0];
    cell[at..at + octets.len()].copy_from_slice(octets);
    let crc = aal5::crc32(&cell[5..49]).to_be_bytes();
    cell[49..].copy_from_slice(&crc);
    behind_good(&[cell])
}

fn oam(damage: u8) -> Vec<u8> {
    let header = CellHeader {
        pti: Pti::OAM_SEGMENT,
        ..CellHeader::user(CHANNEL, false)
    };
    let payload = Oam::CONTINUITY_CHECK.encode();
    let mut cell = Cell { header, payload };
    cell.payload[47] ^= damage;
    behind_good(&[cell.encode(HeaderForm::Nni)])
}

/// Cells without an end, and then a whole PDU.
fn endless(count: usize) -> Vec<u8> {
    let mut all = vec![cells(CHANNEL, &[5; 90])[0]; count];
    all.extend(cells(CHANNEL, &[5; 30]));
    behind_good(&all)
}

fn damaged(at: usize) -> Vec<u8> {
    let mut cell = cells(CHANNEL, &[5; 30])[0];
    cell[at] ^= 1;
    behind_good(&[cell])
}

/// Octets of CPI and length in a cell with one PDU.
const CPI: usize = 46;
const LENGTH: usize = 47;

fn pseudowire(change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut frames: Vec<_> = (1..)
        .zip(&atmarps()[..3])
        .map(|(n, sdu)| cells_with_word(sdu, n))
        .collect();
    change(&mut frames[2]);
    legacy(1, &frames)
}

/// Octets in front of the control word: Ethernet and a label.
const WORD: usize = 18;

pub(super) fn cases() -> Vec<Case> {
    let good = behind_good(&cells(CHANNEL, &[5; 30]));
    let files = |rule, fault| Case::files(rule, good.clone(), fault);
    // The longest PDU has 1366 cells.
    let longest = aal5::cells_for(aal5::MAX_SDU);
    let whole = behind_good(&cells(CHANNEL, &vec![5; aal5::MAX_SDU]));
    let numbers = |numbers: [u16; 3]| {
        let list = numbers.into_iter().zip(atmarps());
        let frames = list.map(|(number, sdu)| cells_with_word(&sdu, number));
        legacy(1, &frames.collect::<Vec<_>>())
    };
    let checked = |damage: u8| {
        dmvpn::pcap_with(&dmvpn::clean(), |packet| {
            let gre = aerostat_wire::gre::Gre {
                protocol: aerostat_wire::gre::NHRP,
                checksum: true,
                ..Default::default()
            };
            let mut wrapped = gre.wrap(packet);
            wrapped[4] ^= damage;
            wrapped
        })
    };
    vec![
        files(Rule::CellHec, damaged(4)),
        Case::files(Rule::OamCrc, oam(0), oam(1)),
        files(Rule::Aal5Crc, damaged(20)),
        files(Rule::Aal5Cpi, sealed(CPI, &[1])),
        files(Rule::Aal5Aborted, sealed(LENGTH, &[0, 0])),
        files(Rule::Aal5Length, sealed(LENGTH, &[1, 0])),
        Case::files(Rule::Aal5TooLong, whole, endless(longest)),
        Case::files(
            Rule::PseudowireWord,
            pseudowire(|_| {}),
            pseudowire(|frame| frame[WORD] = 0x20),
        ),
        // 1 is also the first number of a sender that starts again.
        Case::files(
            Rule::PseudowireSequence,
            numbers([1, 2, 1]),
            numbers([1, 2, 4]),
        ),
        Case::files(Rule::GreHeader, checked(0), checked(1)),
    ]
}

pub(super) fn clean() -> Vec<Clean> {
    let long = cells(CHANNEL, &[5; 200]);
    let short = cells(CHANNEL, &[6; 30]);
    // Cells of N-to-one mode without a control word, from the middle of a PDU on.
    let wire = |cells: &[[u8; 53]]| {
        let mut payload = Vec::new();
        for cell in cells {
            put_cell(&mut payload, cell);
        }
        labelled(&payload)
    };
    let whole = short.iter().cycle().take(40);
    let first: Vec<_> = long[2..].iter().chain(whole).copied().collect();
    vec![
        ("raw cells from the middle of a PDU on", file(&first)),
        (
            "a pseudowire from the middle of a PDU on",
            legacy(1, &[wire(&long[3..]), wire(&short)]),
        ),
    ]
}
