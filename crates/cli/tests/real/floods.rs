//! Floods on one link out of a lab, and peers that take nothing: the hosts of the lab keep their packets and their
//! round trips, counters tell what became of the flood, and memory stays bounded.
//!
//! Without /dev/net/tun or the privilege for namespaces these tests are skipped with a message.

use crate::live::{Runtime, can_run, wait_for};
use aerostat_wire::Vc;
use aerostat_wire::aal5::Segmenter;
use aerostat_wire::cell::{CELL_LEN, Cell, CellHeader, HeaderForm, Pti};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const LAB: &str = "
name: floods
switches: { s1: {}, s2: {} }
links:
  - [s1, s2, { rate: oc12 }]
  - [s1, { name: foe, rate: oc3, udp: { local: 'A0', peer: 'A1' } }]
  - [s2, { name: deaf, rate: oc3, udp: { local: 'A2', peer: 'A3' } }]
  - [s2, { name: slow, rate: oc3, atmtcp: { listen: 'A4' } }]
lane: { on: s2, elans: { a: { subnet: 10.1.0.0/24 } } }
hosts:
  one: { on: s1, elan: a, ip: 10.1.0.1 }
  two: { on: s2, elan: a, ip: 10.1.0.2 }
pvcs:
  - { from: foe, vc: 0.100, to: deaf, to_vc: 0.100 }
  - { from: foe, vc: 0.101, to: slow, to_vc: 0.101 }
";
/// Cells in a millisecond at the rate of an OC-3.
const LINE_RATE: usize = 353;
/// How much memory the lab may gain by all floods together, kilobytes: its pools, and what may wait for slow peers.
const MEMORY: u64 = 48 * 1024;

/// Kind of the flood on the link.
#[derive(Clone, Copy, Debug)]
enum Flood {
    /// Cells of connections that do not exist.
    UnknownVcs,
    /// Cells of one connection, to a peer that takes nothing.
    OneVc,
    /// Cells of a connection to a link that carries SDUs, none of which ends.
    NoEnd,
    /// The same with whole PDUs, to a peer that does not read.
    Pdus,
    /// Cells whose header error control is wrong in many bits.
    BadHec,
    /// Datagrams of random octets and lengths.
    Noise,
}

const ALL: [Flood; 6] = [
    Flood::UnknownVcs,
    Flood::OneVc,
    Flood::NoEnd,
    Flood::Pdus,
    Flood::BadHec,
    Flood::Noise,
];

fn cell(vci: u16, pti: Pti, payload: [u8; 48]) -> [u8; CELL_LEN] {
    let header = CellHeader {
        gfc: 0,
        vc: Vc::new(0, vci),
        pti,
        clp: false,
    };
    Cell { header, payload }.encode(HeaderForm::Nni)
}

impl Flood {
    /// The datagrams of a millisecond; `n` counts them. The numbers look random and are the same in each run.
    fn datagrams(self, n: u64) -> Vec<Vec<u8>> {
        let mut state = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut random = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
        let one = |vci| cell(vci, Pti::USER, [0x6a; 48]).to_vec();
        match self {
            Self::UnknownVcs => (0..LINE_RATE)
                .map(|_| one(1000 + (random() % 60_000) as u16))
                .collect(),
            Self::OneVc => vec![one(100); LINE_RATE],
            Self::NoEnd => vec![one(101); LINE_RATE],
            Self::Pdus => {
                let sdu = [7; 1500];
                let pdu = Segmenter::new(&sdu, 0);
                let cells = pdu.map(|(payload, pti)| cell(101, pti, payload).to_vec());
                cells.cycle_to(LINE_RATE)
            }
            Self::BadHec => {
                let mut bad = one(100);
                bad[4] ^= 0x5a;
                vec![bad; LINE_RATE]
            }
            Self::Noise => (0..LINE_RATE)
                .map(|_| {
                    let length = match random() % 4 {
                        0 => random() as usize % 200,
                        _ => CELL_LEN,
                    };
                    (0..length).map(|_| random() as u8).collect()
                })
                .collect(),
        }
    }
}

/// An iterator repeated up to a length.
trait CycleTo: Iterator + Sized {
    fn cycle_to(self, length: usize) -> Vec<Self::Item>
    where
        Self::Item: Clone,
    {
        let all: Vec<_> = self.collect();
        all.iter().cycle().take(length).cloned().collect()
    }
}
impl<I: Iterator> CycleTo for I {}

/// Floods the link at its line rate until told to stop; returns the number of datagrams.
fn start(
    flood: Flood,
    from: &UdpSocket,
    to: SocketAddr,
    stop: &Arc<AtomicBool>,
) -> JoinHandle<u64> {
    let (from, stop) = (from.try_clone().unwrap(), Arc::clone(stop));
    let batches: Vec<_> = (0..16).map(|n| flood.datagrams(n)).collect();
    std::thread::spawn(move || {
        let (begin, mut sent) = (Instant::now(), 0);
        for (n, batch) in batches.iter().cycle().enumerate() {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            for datagram in batch {
                // A socket that is full for a moment costs the flood a datagram.
                sent += u64::from(from.send_to(datagram, to).is_ok());
            }
            let due = begin + Duration::from_millis(n as u64 + 1);
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
        }
        sent
    })
}

struct Flooded {
    lab: Runtime,
    foe: UdpSocket,
    to_foe: SocketAddr,
    /// A peer that is there and never reads.
    _deaf: UdpSocket,
    _slow: TcpStream,
}

impl Flooded {
    fn new(name: &str) -> Self {
        let lab = Runtime::new(name);
        let sockets = [(); 5].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        let addresses = sockets
            .each_ref()
            .map(|socket| socket.local_addr().unwrap());
        let [a, foe, b, deaf, c] = sockets;
        drop([a, b, c]);
        let places = addresses.iter().enumerate();
        let text = places.fold(LAB.to_owned(), |text, (n, address)| {
            text.replace(&format!("'A{n}'"), &format!("'{address}'"))
        });
        let path = lab.directory.join("floods.atm.yml");
        std::fs::write(&path, text).unwrap();
        lab.ok(&["up", "-d", "-q", path.to_str().unwrap()]);
        let slow = TcpStream::connect(addresses[4]).unwrap();
        Self {
            lab,
            foe,
            to_foe: addresses[0],
            _deaf: deaf,
            _slow: slow,
        }
    }

    /// Round trips between two hosts of the lab, in milliseconds, sorted; every packet must return.
    fn round_trips(&self, count: usize) -> Vec<f64> {
        let count = count.to_string();
        let words = ["-c", &count, "-i", "0.01", "-W", "10", "10.1.0.2"];
        let out = self.lab.pings(&["one"], &words);
        let time = |line: &str| line.split_once("time=")?.1.split(' ').next()?.parse().ok();
        let mut times: Vec<f64> = out.lines().filter_map(time).collect();
        times.sort_by(f64::total_cmp);
        times
    }

    fn flood(&self, flood: Flood, pings: usize) -> (u64, Vec<f64>) {
        let stop = Arc::new(AtomicBool::new(false));
        let thread = start(flood, &self.foe, self.to_foe, &stop);
        std::thread::sleep(Duration::from_millis(100));
        let times = self.round_trips(pings);
        stop.store(true, Ordering::Relaxed);
        (thread.join().unwrap(), times)
    }

    /// The sum of a column over all rows of a kind of state.
    fn sum(&self, node: &str, kind: &str, column: &str) -> u64 {
        let rows = self.lab.inspect(&[node, kind]).into_iter();
        rows.filter_map(|row| row[column].as_u64()).sum()
    }

    /// Resident memory of the lab's process, kilobytes.
    fn memory(&self) -> u64 {
        let status = format!("/proc/{}/status", self.lab.process());
        let status = std::fs::read_to_string(status).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:"));
        let number = line.unwrap().split_whitespace().nth(1);
        number.unwrap().parse().unwrap()
    }
}

#[test]
fn floods_at_line_rate_cost_other_hosts_no_packet_and_are_counted() {
    if !can_run() {
        return;
    }
    let lab = Flooded::new("floods");
    lab.round_trips(10);
    let before = lab.memory();
    for flood in ALL {
        let (node, kind, column, share) = match flood {
            Flood::UnknownVcs => ("foe", "port", "user_cells", 2),
            Flood::OneVc => ("deaf", "port", "datagrams_out", 2),
            Flood::NoEnd => ("slow", "port", "cells_dropped_out", 2),
            // A PDU has 32 cells, and the first ones fit into buffers.
            Flood::Pdus => ("slow", "port", "dropped_out", 1000),
            Flood::BadHec => ("foe", "port", "discarded_headers", 2),
            Flood::Noise => ("foe", "port", "bad_length", 10),
        };
        let was = lab.sum(node, kind, column);
        let (sent, _) = lab.flood(flood, if matches!(flood, Flood::Pdus) { 80 } else { 30 });
        assert!(sent > 1000, "{flood:?}: {sent}");
        // What found no room in the socket is counted there.
        let counted = || lab.sum(node, kind, column) - was + lab.sum("foe", "port", "overflowed");
        wait_for("the flood to be counted", || counted() >= sent / share);
    }
    let dropped = lab.sum("s1", "port", "cells_dropped");
    assert!(dropped > 1000, "cells of unknown connections: {dropped}");
    assert!(lab.sum("slow", "port", "unsent_octets") <= 1 << 20);
    let grown = lab.memory().saturating_sub(before);
    assert!(grown < MEMORY, "{grown} kB more");
    lab.round_trips(10);
    lab.lab.ok(&["down"]);
    lab.lab.nothing_is_left();
}

/// Compares medians of rounds with and without a flood that take turns; the machine must have a processor to spare.
#[test]
#[ignore = "compares times: cargo test --release -p aerostat-cli --test real floods -- --ignored --nocapture"]
fn round_trips_of_other_hosts_stay_within_twice_those_without_a_flood() {
    if !can_run() {
        return;
    }
    let lab = Flooded::new("floods-rtt");
    lab.round_trips(50);
    for flood in ALL {
        let (mut quiet, mut flooded) = (Vec::new(), Vec::new());
        for _ in 0..5 {
            quiet.extend(lab.round_trips(40));
            flooded.extend(lab.flood(flood, 40).1);
        }
        let [quiet, flooded] = [quiet, flooded].map(|mut times| {
            times.sort_by(f64::total_cmp);
            times[times.len() / 2]
        });
        println!("{flood:?}: {quiet:.3} ms without, {flooded:.3} ms with the flood");
        assert!(flooded <= 2.0 * quiet, "{flood:?}: {quiet} to {flooded}");
    }
    lab.lab.ok(&["down"]);
    lab.lab.nothing_is_left();
}
