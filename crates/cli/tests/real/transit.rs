//! Two labs joined through the switch of a third one, by datagrams of 53 octets: LANE, MPOA and Classical IP cross it,
//! alone and while cells of other connections interleave with theirs.
//!
//! Without /dev/net/tun or the privilege for namespaces these tests are skipped with a message.

use crate::live::{Runtime, can_run, wait_for};
use aerostat_wire::Vc;
use aerostat_wire::cell::{Cell, CellHeader, HeaderForm, Pti};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

const WEST: &str = "
name: transit-west
mpoa: true
switches: { w: {} }
links:
  - [w, { name: far, trunk: network, routes: [47.0091.81.000000.02a7.10], udp: { local: 'A0', peer: 'A1' } }]
lane: { on: w, elans: { a: { subnet: 10.1.0.0/24 }, b: { subnet: 10.2.0.0/24 } } }
clip: { wan: { subnet: 10.5.0.0/24, server: hub } }
routers: { hub: { on: w, elans: { a: 10.1.0.1, b: 10.2.0.1, wan: 10.5.0.1 } } }
hosts: { here: { on: w, elan: b, ip: 10.2.0.10 } }
";

/// The switch of the third lab. It has no LANE; calls of the well-known LECS address go to the west, too.
const MIDDLE: &str = "
name: transit-middle
site: 2
switches: { m: {} }
links:
  - [m, { name: west, trunk: user, routes: [47.0091.81.000000.02a7.00, 47.0079], udp: { local: 'A1', peer: 'A0' } }]
  - [m, { name: east, trunk: network, routes: [47.0091.81.000000.02a7.10], udp: { local: 'A2', peer: 'A3' } }]
  - [m, { name: generator, udp: { local: 'A4', peer: 'A5' } }]
pvcs:
  - { from: generator, vc: 0.500, to: east, to_vc: 9.500 }
  - { from: generator, vc: 0.501, to: east, to_vc: 9.501 }
";

const EAST: &str = "
name: transit-east
site: 1
mpoa: true
switches: { e: {} }
links:
  - [e, { name: far, trunk: user, routes: [47.0091.81.000000.02a7.00], udp: { local: 'A3', peer: 'A2' } }]
  - [e, { name: back, udp: { local: 'A6', peer: 'A7' } }]
lane: { on: far, elans: { a: { subnet: 10.1.0.0/24 }, b: { subnet: 10.2.0.0/24 } } }
clip: { wan: { subnet: 10.5.0.0/24, servers: 'SERVER' } }
hosts:
  there: { on: e, elan: a, ip: 10.1.0.10, gateway: 10.1.0.1 }
  classic: { on: e, elan: wan, ip: 10.5.0.10 }
pvcs:
  - { from: far, vc: 9.500, to: back, to_vc: 0.600 }
  - { from: far, vc: 9.501, to: back, to_vc: 0.601 }
";

/// The ends of the generator's cells: what it sends, and what comes back at the far end.
struct Generator {
    stop: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    threads: [JoinHandle<u64>; 2],
}

/// Cell `n`: of two connections in turn, of AAL0 with both payload types.
fn cell(n: u64, first_vci: u16) -> Cell {
    let mut payload = [n as u8; 48];
    payload[..8].copy_from_slice(&n.to_be_bytes());
    let header = CellHeader {
        gfc: 0,
        vc: Vc::new(0, first_vci + (n % 2) as u16),
        pti: Pti::user(n.is_multiple_of(7)),
        clp: n.is_multiple_of(3),
    };
    Cell { header, payload }
}

impl Generator {
    /// Sends interleaved cells of two connections, at most 128 under way, until it is stopped.
    fn start(from: UdpSocket, to: SocketAddr, back: UdpSocket) -> Self {
        let (stop, sent, come) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicU64::new(0)),
            Arc::new(AtomicU64::new(0)),
        );
        back.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let sender = {
            let (stop, sent, come) = (Arc::clone(&stop), Arc::clone(&sent), Arc::clone(&come));
            std::thread::spawn(move || {
                let mut n = 0;
                while !stop.load(Ordering::Relaxed) {
                    while n < come.load(Ordering::Relaxed) + 128 {
                        let octets = cell(n, 500).encode(HeaderForm::Nni);
                        from.send_to(&octets, to).unwrap();
                        n += 1;
                        sent.store(n, Ordering::Relaxed);
                    }
                    std::thread::sleep(Duration::from_millis(2));
                }
                n
            })
        };
        let receiver = {
            let (stop, sent) = (Arc::clone(&stop), Arc::clone(&sent));
            std::thread::spawn(move || {
                let (mut n, mut octets) = (0, [0; 100]);
                // The next cell of each connection. A switch keeps the order of cells within a connection only.
                let mut next = [0, 1];
                while !stop.load(Ordering::Relaxed) || n < sent.load(Ordering::Relaxed) {
                    let length = back.recv(&mut octets).expect("a cell in time");
                    let octets = octets[..length].try_into().expect("53 octets");
                    let got = Cell::decode(octets, HeaderForm::Nni).expect("a good HEC");
                    // The switch has messages of its own for the peer: signalling and ILMI.
                    if got.header.vc.vci > 31 {
                        let own = &mut next[usize::from(got.header.vc.vci & 1)];
                        assert_eq!(got, cell(*own, 600), "cell {own}");
                        *own += 2;
                        n += 1;
                        come.store(n, Ordering::Relaxed);
                    }
                }
                n
            })
        };
        Self {
            stop,
            sent,
            threads: [sender, receiver],
        }
    }

    /// Numbers of cells sent and come back, in order and with all octets.
    fn end(self) -> [u64; 2] {
        self.stop.store(true, Ordering::Relaxed);
        self.threads.map(|thread| thread.join().unwrap())
    }
}

/// LANE, a shortcut of MPOA, and Classical IP from the east to the west, without a loss.
fn all_networks_cross(lab: &Runtime) {
    let ping = |host: &str, to: &str| {
        let words = ["-q", "-c", "40", "-i", "0.02", "-W", "10", to];
        lab.pings(&["--lab", "transit-east", host], &words);
    };
    ping("there", "10.1.0.1");
    ping("there", "10.2.0.10");
    wait_for("a shortcut", || {
        let rows = lab.inspect(&["--lab", "transit-east", "there", "mpc"]);
        rows.iter().any(|row| {
            (&row["table"], &row["destination"], &row["state"])
                == (&"ingress".into(), &"10.2.0.10".into(), &"resolved".into())
        })
    });
    ping("there", "10.2.0.10");
    ping("classic", "10.5.0.1");
}

#[test]
fn lane_mpoa_and_classical_ip_cross_a_third_labs_switch_also_among_cells_of_others() {
    if !can_run() {
        return;
    }
    let lab = Runtime::new("transit");
    // Eight free ports; those of the generator stay open.
    let sockets = [(); 8].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
    let addresses = sockets
        .each_ref()
        .map(|socket| socket.local_addr().unwrap());
    let [a, b, c, d, e, generator, f, back] = sockets;
    drop([a, b, c, d, e, f]);
    let file = |name: &str, text: &str| {
        let places = addresses.iter().enumerate();
        let text = places.fold(text.to_owned(), |text, (n, address)| {
            text.replace(&format!("'A{n}'"), &format!("'{address}'"))
        });
        let path = lab.directory.join(format!("{name}.atm.yml"));
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    lab.ok(&["up", "-d", "-q", &file("west", WEST)]);
    lab.ok(&["up", "-d", "-q", &file("middle", MIDDLE)]);
    let table = lab.inspect(&["--lab", "transit-west", "hub", "clip"]);
    let server = table[0]["address"].as_str().unwrap();
    lab.ok(&[
        "up",
        "-d",
        "-q",
        &file("east", &EAST.replace("SERVER", server)),
    ]);
    all_networks_cross(&lab);
    let generator = Generator::start(generator, addresses[4], back);
    wait_for("cells of others", || {
        generator.sent.load(Ordering::Relaxed) > 500
    });
    let before = generator.sent.load(Ordering::Relaxed);
    all_networks_cross(&lab);
    let after = generator.sent.load(Ordering::Relaxed);
    let [sent, come] = generator.end();
    assert_eq!(sent, come);
    assert!(after > before + 500, "{before} to {after} cells");
    // The trunks carried cells of the others between those of the labs.
    let row = &lab.inspect(&["--lab", "transit-middle", "east", "port"])[0];
    assert!(row["cells_out"].as_u64().unwrap() > sent, "{row}");
    for name in [
        "bad_length",
        "policed",
        "strangers",
        "overflowed",
        "dropped_out",
        "errors_out",
    ] {
        assert_eq!(row[name], 0, "{name}: {row}");
    }
    lab.ok(&["down", "--all"]);
    lab.nothing_is_left();
}
