//! Link types: the same messages in each of them, raw cells of GNS3, pseudowires.

use crate::captures::{explained, recorded, rules, said};
use aerostat_explain::{Limits, Repair, Report, explain};
use aerostat_wire::Vc;
use aerostat_wire::aal5::Segmenter;
use aerostat_wire::cell::{Cell, CellHeader, HeaderForm, Pti};
use aerostat_wire::mpls::{Entry, Stack};
use aerostat_wire::oam::Oam;
use aerostat_wire::pcapng::{CapturedSdu, Direction, LinkType, PcapNg};
use aerostat_wire::pseudowire::{Aal5Packet, AtmFlags, ControlWord, put_cell};

/// A pcap of this link type, a packet each second.
pub(crate) fn legacy(link_type: u32, packets: &[Vec<u8>]) -> Vec<u8> {
    let mut file = 0xa1b2_c3d4_u32.to_le_bytes().to_vec();
    file.extend([2, 0, 4, 0]);
    file.extend(
        [0, 0, 65535, link_type]
            .iter()
            .flat_map(|word| word.to_le_bytes()),
    );
    for (second, packet) in (1_u32..).zip(packets) {
        let length = packet.len() as u32;
        file.extend(
            [second, 0, length, length]
                .iter()
                .flat_map(|word| word.to_le_bytes()),
        );
        file.extend_from_slice(packet);
    }
    file
}

/// Requests and replies of ATMARP in a recording of Linux, each with LLC.
pub(crate) fn atmarps() -> Vec<Vec<u8>> {
    let sdus = recorded("d-clip-svc").into_iter();
    let arps: Vec<_> = sdus
        .map(|sdu| sdu.octets)
        .filter(|octets| octets.starts_with(&[0xaa, 0xaa, 3, 0, 0, 0, 8, 6]))
        .collect();
    assert!(arps.len() > 2, "{} packets", arps.len());
    arps
}

/// The cells of an SDU, 53 octets each.
pub(crate) fn cells(vc: Vc, sdu: &[u8]) -> Vec<[u8; 53]> {
    let cell = |(payload, pti)| {
        let header = CellHeader {
            pti,
            ..CellHeader::user(vc, false)
        };
        Cell { header, payload }.encode(HeaderForm::Nni)
    };
    Segmenter::new(sdu, 0).map(cell).collect()
}

fn texts(report: &Report) -> Vec<&str> {
    report
        .messages
        .iter()
        .map(|one| one.text.as_str())
        .collect()
}

/// The same packets in SUNATM, ERF, RFC 1483 and Classical IP give the same ladder.
#[test]
fn link_types_of_atm_have_one_ladder() {
    let arps = atmarps();
    let wanted = explained(&legacy(100, &arps));
    assert!(rules(&wanted).is_empty(), "{}", said(&wanted));
    assert_eq!(wanted.messages.len(), arps.len());
    let with_header = |sdu: &Vec<u8>| [&[2, 0, 0, 33][..], sdu].concat();
    let sunatm: Vec<_> = arps.iter().map(with_header).collect();
    let files = [legacy(19, &arps), legacy(11, &arps), legacy(123, &sunatm)];
    for file in files {
        assert_eq!(texts(&explained(&file)), texts(&wanted));
    }
    let mut erf = PcapNg::new(Vec::new(), "").expect("memory");
    let interface = erf
        .interface(LinkType::ErfAal5, "a:a-b", "")
        .expect("memory");
    for sdu in &arps {
        let packet = CapturedSdu {
            interface,
            time_ns: 5,
            direction: Direction::Sent,
            vc: Vc::new(0, 33),
            clp: false,
            uu: 0,
            sdu,
            dropped: None,
        };
        erf.sdu(&packet).expect("an SDU");
    }
    let report = explained(&erf.into_inner());
    assert_eq!(texts(&report), texts(&wanted));
    let first = &report.messages[0];
    assert_eq!(
        (first.from.as_str(), first.to.as_str(), first.vc.as_str()),
        ("a", "b", "0.33")
    );
}

fn repaired(file: &[u8]) -> (Report, Vec<(Vc, Vec<u8>)>, usize) {
    let (mut sdus, mut others) = (Vec::new(), 0);
    let report = explain(
        file,
        Limits::default(),
        Some(&mut |repair| match repair {
            Repair::Sdu { vc, sdu, .. } => sdus.push((vc, sdu.to_vec())),
            Repair::Cell { .. } => others += 1,
        }),
    );
    (report.expect("a capture"), sdus, others)
}

/// Files of Dynamips for GNS3: cells with HEC under RFC 1483. Other tools leave out the HEC.
#[test]
fn raw_cells_under_a_wrong_link_type_become_pdus() {
    let arps = atmarps();
    let vc = Vc::new(1, 100);
    let mut packets: Vec<Vec<u8>> = arps
        .iter()
        .flat_map(|sdu| cells(vc, sdu))
        .map(|cell| cell.to_vec())
        .collect();
    let oam = Cell {
        header: CellHeader {
            pti: Pti::OAM_END_TO_END,
            ..CellHeader::user(vc, false)
        },
        payload: Oam::CONTINUITY_CHECK.encode(),
    };
    packets.push(oam.encode(HeaderForm::Nni).to_vec());
    let bare = packets.iter().map(|cell| [&cell[..4], &cell[5..]].concat());
    for (link_type, packets) in [
        (100, packets.clone()),
        (1, packets.clone()),
        (100, bare.collect()),
    ] {
        let (report, sdus, others) = repaired(&legacy(link_type, &packets));
        assert_eq!(report.mislabelled, Some(link_type));
        assert_eq!(report.repaired.cells, packets.len() as u64);
        let wanted: Vec<_> = arps.iter().map(|sdu| (vc, sdu.clone())).collect();
        assert_eq!((sdus, others), (wanted, 1));
        assert_eq!(report.messages.len(), arps.len());
        assert!(rules(&report).is_empty(), "{}", said(&report));
    }
}

/// Both directions of a line stand in one list: a short PDU of one in the middle of a long one of the other.
#[test]
fn cells_of_both_directions_are_told_apart() {
    let vc = Vc::new(1, 100);
    let (long, short) = (vec![7; 400], vec![9; 60]);
    let (mut outer, inner) = (cells(vc, &long), cells(vc, &short));
    let first = cells(vc, &short);
    outer.splice(3..3, inner);
    let packets: Vec<_> = first
        .into_iter()
        .chain(outer)
        .map(|cell| cell.to_vec())
        .collect();
    let (report, sdus, _) = repaired(&legacy(100, &packets));
    assert!(rules(&report).is_empty(), "{}", said(&report));
    assert_eq!(sdus, [(vc, short.clone()), (vc, short), (vc, long)]);
}

/// MPLS in Ethernet, with cells in N-to-one mode and an SDU in AAL5-SDU mode.
pub(crate) fn labelled(payload: &[u8]) -> Vec<u8> {
    let stack = Stack::new(&[Entry {
        label: 100,
        class: 0,
        ttl: 2,
    }]);
    let mut frame = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0x47];
    stack.expect("one entry").encode(&mut frame);
    frame.extend_from_slice(payload);
    frame
}

pub(crate) fn cells_with_word(sdu: &[u8], sequence: u16) -> Vec<u8> {
    let word = ControlWord {
        sequence,
        ..ControlWord::default()
    };
    let mut payload = word.encode().to_vec();
    for cell in cells(Vc::new(0, 50), sdu) {
        put_cell(&mut payload, &cell);
    }
    labelled(&payload)
}

#[test]
fn pseudowires_have_the_same_ladder_and_number_their_packets() {
    let arps = atmarps();
    let wanted = explained(&legacy(100, &arps));
    let wire: Vec<_> = (1..)
        .zip(&arps)
        .map(|(n, sdu)| cells_with_word(sdu, n))
        .collect();
    let report = explained(&legacy(1, &wire));
    assert_eq!(texts(&report), texts(&wanted));
    assert!(rules(&report).is_empty(), "{}", said(&report));
    let sdus = (1..).zip(&arps).map(|(sequence, sdu)| {
        let packet = Aal5Packet {
            flags: AtmFlags::default(),
            sequence,
            payload: sdu,
        };
        let mut payload = Vec::new();
        packet.encode(&mut payload);
        labelled(&payload)
    });
    assert_eq!(
        texts(&explained(&legacy(1, &sdus.collect::<Vec<_>>()))),
        texts(&wanted)
    );
}
