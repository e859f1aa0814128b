//! Cells of other adaptation layers than AAL5 cross a lab's switches, cell by cell, between two peers outside. The
//! peers are sockets of this test that send and receive cells in the form of Dynamips (one cell in a datagram, with
//! HEC).

use crate::live::Runtime;
use aerostat_wire::Vc;
use aerostat_wire::cell::{Cell, CellHeader, HeaderForm, Pti};
use std::collections::{BTreeMap, VecDeque};
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

const LAB: &str = "
switches: { s1: {}, s2: {} }
links:
  - [s1, s2, { rate: oc12 }]
  - [s1, { name: west, rate: oc3, udp: { local: 'LAB_W', peer: 'PEER_W' } }]
  - [s2, { name: east, rate: oc3, udp: { local: 'LAB_E', peer: 'PEER_E' MANY } }]
pvcs:
  - { from: west, vc: 0.101, to: east, to_vc: 0.201, pcr: 20000 }
  - { from: west, vc: 0.102, to: east, to_vc: 0.202 }
  - { from: west, vc: 0.103, to: east, to_vc: 3.203 }
";

struct Peers {
    west: UdpSocket,
    east: UdpSocket,
    to_west: SocketAddr,
    runtime: Runtime,
}

impl Peers {
    fn new(name: &str, many: &str) -> Self {
        let socket = || UdpSocket::bind("127.0.0.1:0").unwrap();
        let (west, east, at_west, at_east) = (socket(), socket(), socket(), socket());
        let address = |socket: &UdpSocket| socket.local_addr().unwrap().to_string();
        let to_west = at_west.local_addr().unwrap();
        let text = LAB.replace("MANY", many);
        let text = text
            .replace("LAB_W", &address(&at_west))
            .replace("LAB_E", &address(&at_east));
        let text = text
            .replace("PEER_W", &address(&west))
            .replace("PEER_E", &address(&east));
        drop((at_west, at_east));
        let runtime = Runtime::embedded(name, &text);
        east.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        Self {
            west,
            east,
            to_west,
            runtime,
        }
    }

    /// Sends the cells from the west, a few at a time, and returns what arrives in the east.
    fn cross(&self, cells: &[Cell], in_datagram: impl Fn(&[u8]) -> Vec<Cell>) -> Vec<Cell> {
        let (mut got, mut octets) = (Vec::<Cell>::new(), vec![0; 10_000]);
        let mut sent = 0;
        while got.len() < cells.len() {
            // At most 64 cells are under way, so that no socket overflows.
            while sent < cells.len() && sent < got.len() + 64 {
                let cell = cells[sent].encode(HeaderForm::Nni);
                self.west.send_to(&cell, self.to_west).unwrap();
                sent += 1;
            }
            let length = self.east.recv(&mut octets).expect("a cell in time");
            // The switch has messages of its own for the peer: signalling and ILMI.
            let data = |cell: &Cell| cell.header.vc.vci > 31;
            got.extend(in_datagram(&octets[..length]).into_iter().filter(data));
        }
        got
    }
}

/// `count` cells of each of three VCs, interleaved: AAL1 (sequence number and its protection in the first octet, PTI
/// 0), AAL2 (start field, PTI 0), and AAL0 with every payload type of user data. Source: I.363.1 §2.4, I.363.2 §9.
fn cells(count: u32) -> Vec<Cell> {
    let mut all = Vec::new();
    for n in 0..count {
        for (vci, first, pti) in [
            (101, ((n % 8) << 4) as u8, Pti::USER),
            (102, (n % 48) as u8, Pti::USER),
            (103, 0x5a, Pti::new((n % 4) as u8)),
        ] {
            let mut payload = [n as u8; 48];
            payload[0] = first;
            payload[1..5].copy_from_slice(&n.to_be_bytes());
            let header = CellHeader {
                gfc: 0,
                vc: Vc::new(0, vci),
                pti,
                clp: vci == 103 && n % 3 == 0,
            };
            all.push(Cell { header, payload });
        }
    }
    all
}

/// Each VC has its cells in order, with all octets and bits, under the labels of the east.
fn assert_same(sent: &[Cell], got: &[Cell]) {
    let mut expected = BTreeMap::<Vc, VecDeque<Cell>>::new();
    for cell in sent {
        let mut cell = *cell;
        let vci = cell.header.vc.vci;
        cell.header.vc = Vc::new(if vci == 103 { 3 } else { 0 }, vci + 100);
        expected.entry(cell.header.vc).or_default().push_back(cell);
    }
    for (n, cell) in got.iter().enumerate() {
        let next = expected
            .get_mut(&cell.header.vc)
            .and_then(VecDeque::pop_front);
        assert_eq!(Some(*cell), next, "cell {n}");
    }
    assert!(expected.values().all(VecDeque::is_empty));
}

#[test]
fn cells_of_any_aal_cross_switches_interleaved_and_in_order() {
    let peers = Peers::new("any-aal", "");
    let sent = cells(2000);
    let got = peers.cross(&sent, |octets| {
        let cell = <&[u8; 53]>::try_from(octets).expect("one cell in a datagram");
        vec![Cell::decode(cell, HeaderForm::Nni).expect("a good HEC")]
    });
    assert_same(&sent, &got);
    // They leave as they came, not sorted by connection.
    let changes = got
        .windows(2)
        .filter(|pair| pair[0].header.vc != pair[1].header.vc);
    assert!(changes.count() > sent.len() / 2);
    peers.runtime.down_with_warnings();
}

#[test]
fn cells_of_any_aal_leave_in_datagrams_of_many() {
    let peers = Peers::new("any-aal-many", ", cells: 28");
    let sent = cells(500);
    let got = peers.cross(&sent, |octets| {
        assert!(octets.len().is_multiple_of(52) && octets.len() <= 28 * 52);
        let cells = octets.chunks_exact(52).map(|cell| {
            let word = u32::from_be_bytes(cell[..4].try_into().unwrap());
            let header = CellHeader::from_word(word, HeaderForm::Nni);
            let payload = cell[4..].try_into().unwrap();
            Cell { header, payload }
        });
        cells.collect()
    });
    assert_same(&sent, &got);
    peers.runtime.down_with_warnings();
}
