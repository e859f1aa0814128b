//! Two hosts and the ports of their switch under sequences of events that octets choose: calls, data, loss, dead lines,
//! restarts, and forged SDUs on VPI 0 VCI 5 in both directions: SSCOP PDUs with messages of Q.2931 in them.
//!
//! Whatever the sequence: no panic, the laws of machines hold, no label is opened twice or leaked, tables and queues
//! stay within their bounds. Once both hosts have restarted, nothing of that is left, and a call succeeds. The fuzz
//! target `sequences` runs the same sequences.

use aerostat_proto::{AtmRequest, Cause, ConnId, Machine};
use aerostat_wire::{Qos, Seq8, Seq24, SscopPdu};

use super::net::Net;
use aerostat_node::signalling;
use aerostat_proto::interface::Phase;

/// The octets as a source of choices; zeros follow once they are used up.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn octet(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else {
            return 0;
        };
        self.0 = rest;
        *first
    }
    fn below(&mut self, n: u8) -> u8 {
        self.octet() % n
    }
    fn octets(&mut self, most: u8) -> Vec<u8> {
        let count = self.below(most + 1);
        (0..count).map(|_| self.octet()).collect()
    }
    /// A number near those in use: mostly a small one.
    fn number(&mut self) -> Seq24 {
        let low = u32::from(self.below(40));
        match self.below(16) {
            0 => Seq24::ZERO.plus(Seq24::MODULUS - low),
            1 => Seq24::new(low << 12),
            _ => Seq24::new(low),
        }
    }
}

/// A message of Q.2931, valid or not: header, then elements with contents from the octets.
fn message(c: &mut Choices<'_>) -> Vec<u8> {
    const TYPES: [u8; 14] = [
        0x05, 0x02, 0x07, 0x0f, 0x4d, 0x5a, 0x46, 0x4e, 0x75, 0x7d, 0x80, 0x81, 0x82, 0x83,
    ];
    const ELEMENTS: [u8; 12] = [
        0x08, 0x14, 0x54, 0x55, 0x58, 0x59, 0x5a, 0x5c, 0x5e, 0x70, 0x79, 0x6c,
    ];
    let kind = TYPES[usize::from(c.below(14))];
    let mut elements = Vec::new();
    for _ in 0..c.below(5) {
        let contents = match c.below(3) {
            0 => vec![0x80, 0x80 | c.below(128)],
            1 => vec![c.below(16)],
            _ => c.octets(24),
        };
        elements.extend([ELEMENTS[usize::from(c.below(12))], 0x80, 0]);
        elements.push(contents.len() as u8);
        elements.extend(contents);
    }
    let flag = c.below(2) << 7;
    let mut octets = vec![0x09, 3, flag, 0, c.below(6), kind, 0x80, 0];
    octets.push(elements.len() as u8);
    octets.extend(elements);
    octets
}

/// A forged SDU.
fn forged(c: &mut Choices<'_>) -> Vec<u8> {
    let uu = Vec::new();
    let mut octets = match c.below(20) {
        0 => SscopPdu::Begin {
            sq: Seq8(c.octet()),
            mr: c.number(),
            uu,
        },
        1 => SscopPdu::BeginAck { mr: c.number(), uu },
        2 => SscopPdu::BeginReject { uu },
        3 => SscopPdu::End {
            by_sscop: c.below(2) == 1,
            uu,
        },
        4 => SscopPdu::EndAck,
        5 => SscopPdu::Resync {
            sq: Seq8(c.octet()),
            mr: c.number(),
            uu,
        },
        6 => SscopPdu::ResyncAck { mr: c.number() },
        7 => SscopPdu::Recover {
            sq: Seq8(c.octet()),
            mr: c.number(),
        },
        8 => SscopPdu::RecoverAck { mr: c.number() },
        9 => SscopPdu::Poll {
            ps: c.number(),
            s: c.number(),
        },
        10 | 11 => SscopPdu::Stat {
            ps: c.number(),
            mr: c.number(),
            r: c.number(),
            list: (0..c.below(6)).map(|_| c.number()).collect(),
        },
        12 => SscopPdu::Ustat {
            mr: c.number(),
            r: c.number(),
            from: c.number(),
            to: c.number(),
        },
        13 => SscopPdu::UnitData { info: c.octets(20) },
        14 => {
            let mut octets = c.octets(40);
            octets.push(c.octet());
            return octets;
        }
        // Most of the first few numbers after a start or a recovery are in sequence at once.
        _ => SscopPdu::Data {
            s: Seq24::new(u32::from(c.below(8))),
            info: message(c),
        },
    }
    .encode();
    if c.below(8) == 0 {
        let at = usize::from(c.octet()) % octets.len();
        octets[at] ^= c.octet();
    }
    octets
}

fn call(net: &mut Net, from: usize, conn: ConnId, qos: Qos, multipoint: bool) {
    let request = AtmRequest::Connect {
        conn,
        calling: net.address(from),
        called: net.address(1 - from),
        sap: aerostat_wire::Sap::LLC,
        qos,
        multipoint,
    };
    let _ = net.ask(from, request);
}

fn check(net: &Net, calls: u32) {
    for host in &net.hosts {
        let interface = host.interface().expect("here");
        assert!(interface.saal().outstanding() <= 8192);
        // Calls of the host, and calls that forged SETUPs began, which have six references.
        assert!(host.signalling.calls().count() <= 2 * calls as usize + 6);
        assert!(interface.uni().calls().count() <= 2 * calls as usize + 12);
    }
}

/// Runs one sequence.
pub fn run(octets: &[u8]) {
    let mut c = Choices(octets);
    let mut net = Net::chain(1, &[0, 0]);
    net.listen(0);
    net.listen(1);
    let mut calls = 0;
    for _ in 0..200 {
        if c.0.is_empty() {
            break;
        }
        let op = c.octet();
        let host = usize::from(op >> 7);
        let conn = ConnId(u32::from(op >> 4 & 7));
        match op & 15 {
            0 | 1 => {
                calls += 1;
                let qos = [Qos::ubr(1536), Qos::cbr(353, 1516)][usize::from(op & 1)];
                call(&mut net, host, conn, qos, false);
            }
            2 => {
                calls += 1;
                call(&mut net, host, conn, Qos::ubr_multipoint(1516), true);
            }
            3 => {
                let cause = Cause::NORMAL;
                let _ = net.ask(host, AtmRequest::Release { conn, cause });
            }
            4 => net.hosts[host].auto = !net.hosts[host].auto,
            5 => {
                let _ = net.send(host, conn, b"data");
            }
            6 => net.run_ms(u64::from(c.octet())),
            7 => net.run_ms(u64::from(c.octet()) * 100),
            8 => {
                let modulus = usize::from(c.below(6));
                net.lose = Box::new(move |n| modulus > 0 && n.is_multiple_of(modulus));
            }
            9 => net.lose = Box::new(|_| false),
            10 if op & 0x70 == 0 => net.restart_host_and_listen(host),
            11 if op & 0x70 == 0 => {
                let _ = net.tell(host, signalling::Input::LinkDown);
                let _ = net.tell(host, signalling::Input::Start);
            }
            _ => {
                let sdu = forged(&mut c);
                net.inject(host, op & 16 == 0, sdu);
            }
        }
        check(&net, calls);
    }
    net.lose = Box::new(|_| false);
    for host in 0..2 {
        net.restart_host_and_listen(host);
        net.hosts[host].auto = true;
    }
    net.run_s(120);
    for host in &net.hosts {
        assert_eq!(host.interface().expect("here").phase(), Phase::Ready);
    }
    net.assert_clean();
    for from in 0..2 {
        let conn = ConnId(40);
        call(&mut net, from, conn, Qos::ubr(1536), false);
        net.run_s(2);
        assert!(net.hosts[from].connected(conn), "a call from host {from}");
        net.release(from, conn);
    }
    net.run_s(5);
    net.assert_clean();
    assert!(net.switches[0].poll_timeout().is_some(), "the links live");
}
