//! Cells of other adaptation layers than AAL5 cross a lab's switches, cell by cell, between two peers outside. The peers
//! are sockets of this test that send and receive cells in the form of Dynamips (one cell in a datagram, with HEC).

use crate::lab_file;
use crate::live::{Runtime, wait_for};
use aerostat_wire::Vc;
use aerostat_wire::cell::{Cell, CellHeader, HeaderForm, Pti};
use std::collections::BTreeMap;
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
        let runtime = Runtime::new(name);
        let file = lab_file(&format!("{name}.atm.yml"), &text);
        runtime.ok(&["up", "-d", "-q", "--embedded", &file]);
        wait_for("the lab's socket", || {
            let rows = runtime.rows(&["west", "port"]);
            !rows.is_empty()
        });
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
        let (mut got, mut octets) = (Vec::new(), vec![0; 10_000]);
        let mut sent = 0;
        while got.len() < cells.len() {
            // At most 64 cells are under way, so that no socket overflows.
            while sent < cells.len() && sent < got.len() + 64 {
                let cell = cells[sent].encode(HeaderForm::Nni);
                self.west.send_to(&cell, self.to_west).unwrap();
                sent += 1;
            }
            let length = self.east.recv(&mut octets).expect("a cell in time");
            got.extend(in_datagram(&octets[..length]));
        }
        got
    }
}

/// `count` cells of each of three VCs, interleaved: AAL1 (sequence number and its protection in the first octet, PTI 0),
/// AAL2 (start field, PTI 0), and AAL0 with every payload type of user data. Source: I.363.1 §2.4, I.363.2 §9.
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

/// The cells by VC, with the labels that they have in the east.
fn by_vc(cells: &[Cell], label: fn(Vc) -> Vc) -> BTreeMap<Vc, Vec<Cell>> {
    let mut all = BTreeMap::<Vc, Vec<Cell>>::new();
    for cell in cells {
        let mut cell = *cell;
        cell.header.vc = label(cell.header.vc);
        all.entry(cell.header.vc).or_default().push(cell);
    }
    all
}

fn east_label(vc: Vc) -> Vc {
    Vc::new(if vc.vci == 103 { 3 } else { 0 }, vc.vci + 100)
}

#[test]
fn cells_of_any_aal_cross_switches_interleaved_and_in_order() {
    let peers = Peers::new("any-aal", "");
    let sent = cells(2000);
    let got = peers.cross(&sent, |octets| {
        let cell = <&[u8; 53]>::try_from(octets).expect("one cell in a datagram");
        vec![Cell::decode(cell, HeaderForm::Nni).expect("a good HEC")]
    });
    assert_eq!(by_vc(&got, |vc| vc), by_vc(&sent, east_label));
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
        assert!(
            octets.len() % 52 == 4 && octets.len() <= 4 + 28 * 52,
            "{}",
            octets.len()
        );
        let cells = octets[4..].chunks_exact(52).map(|cell| {
            let word = u32::from_be_bytes(cell[..4].try_into().unwrap());
            let header = CellHeader::from_word(word, HeaderForm::Nni);
            let payload = cell[4..].try_into().unwrap();
            Cell { header, payload }
        });
        cells.collect()
    });
    assert_eq!(by_vc(&got, |vc| vc), by_vc(&sent, east_label));
    peers.runtime.down_with_warnings();
}
