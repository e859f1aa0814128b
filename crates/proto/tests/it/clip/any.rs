//! One member and an ATM service that does anything allowed: calls, answers, clearings, packets, silence, in any order.
//!
//! A model of the service knows the existing connections. It checks every request of the member, and the member's state
//! after each step.

use super::*;
use aerostat_proto::Cause;
use aerostat_proto::machine::settle;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Configuration of the member.
#[derive(Clone, Debug)]
struct Kind {
    serve: bool,
    servers: usize,
    mux: bool,
    fixed: bool,
    contract: bool,
    permanent: bool,
    session: bool,
}

/// An event. Small numbers select among existing objects.
#[derive(Clone, Debug)]
enum Step {
    Send {
        to: u8,
        len: u16,
    },
    Connected(u8),
    Released(u8, u8),
    Incoming {
        from: Option<u8>,
        mux: bool,
        multipoint: bool,
    },
    Arp {
        conn: u8,
        operation: u16,
        source: (u8, u8),
        target: (u8, u8),
    },
    Octets(u8, Vec<u8>),
    Stray(u32),
    Up(bool),
    Wait(u16),
    Run(bool),
}

fn step() -> impl Strategy<Value = Step> {
    let party = (0_u8..6, 0_u8..6);
    prop_oneof![
        6 => (0_u8..6, 0_u16..110).prop_map(|(to, len)| Step::Send { to, len }),
        6 => any::<u8>().prop_map(Step::Connected),
        2 => (any::<u8>(), prop::sample::select(vec![3_u8, 16, 21, 47, 88]))
            .prop_map(|(conn, cause)| Step::Released(conn, cause)),
        3 => (prop::option::weighted(0.9, 0_u8..6), any::<bool>(), prop::bool::weighted(0.1))
            .prop_map(|(from, mux, multipoint)| Step::Incoming { from, mux, multipoint }),
        8 => (any::<u8>(), prop::sample::select(vec![1_u16, 2, 8, 9, 10, 3]), party.clone(), party)
            .prop_map(|(conn, operation, source, target)| {
                Step::Arp { conn, operation, source, target }
            }),
        2 => (any::<u8>(), prop::collection::vec(any::<u8>(), 0..40))
            .prop_map(|(conn, octets)| Step::Octets(conn, octets)),
        1 => any::<u32>().prop_map(Step::Stray),
        1 => any::<bool>().prop_map(Step::Up),
        4 => prop_oneof![1_u16..10, 1_u16..1500].prop_map(Step::Wait),
        1 => prop::bool::weighted(0.7).prop_map(Step::Run),
    ]
}

fn kind() -> impl Strategy<Value = Kind> {
    (any::<[bool; 6]>(), 0_usize..3).prop_map(
        |([serve, mux, fixed, contract, permanent, session], servers)| Kind {
            serve,
            servers: if serve { 0 } else { servers },
            mux,
            fixed,
            contract,
            permanent,
            session,
        },
    )
}

/// A packet of so many octets: what is no packet of IP, or a TCP segment or UDP datagram of one of some sessions.
fn packet(to: u8, len: u16) -> Vec<u8> {
    if len < 40 {
        return vec![0x45; len.into()];
    }
    let [high, low] = len.to_be_bytes();
    let protocol = [6, 17][usize::from(len % 2)];
    let df = [0, 0x40][usize::from(len / 2 % 2)];
    let mut octets = vec![0x45, 0, high, low, 0, 0, df, 0, 64, protocol, 0, 0];
    octets.extend(ip(OWN).octets());
    octets.extend(ip(to.into()).octets());
    octets.extend([0, 7, 0, (len % 3) as u8, 0, 0, 0, 0, 0, 0, 0, 0, 0x50]);
    // SYN, FIN, RST and others.
    octets.push((len % 7) as u8);
    octets.resize(len.into(), 0);
    octets
}

const LIMITS: Limits = Limits {
    entries: 5,
    conns: 5,
    entries_each: 2,
    conns_each: 2,
    sessions: 2,
};
/// Packets that wait for one next hop.
const QUEUE: usize = 3;
/// Index of the member among addresses; servers have 4 and 5.
const OWN: usize = 1;
const MTU: u16 = 100;

fn config(kind: &Kind) -> Config {
    let permanent = |vci, encapsulation, ip| Permanent {
        vc: Vc::new(0, vci),
        qos: Qos::ubr(9188),
        encapsulation,
        ip,
    };
    let mut config = Config {
        mtu: MTU,
        serve: kind.serve,
        mux: kind.mux,
        per: match kind.session {
            true => Per::Session,
            false => Per::Destination,
        },
        servers: [atm(4), atm(5)][..kind.servers].to_vec(),
        limits: LIMITS,
        params: Params {
            queue: QUEUE,
            ..Params::DEFAULT
        },
        ..Config::new(atm(OWN), ip(OWN))
    };
    if kind.fixed {
        config.hops.fixed.push((ip(2), atm(2)));
    }
    if kind.contract {
        config.hops.qos = vec![(ip(2), Qos::cbr(10, 0)), (ip(3), Qos::cbr(20, 0))];
    }
    if kind.permanent {
        config.permanent = vec![
            permanent(40, Encapsulation::Llc, None),
            permanent(41, Encapsulation::VcMux, Some(ip(0))),
        ];
    }
    config
}

/// State of a connection in the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The member has called, accepted or opened it, and waits for the result.
    Waits,
    /// Offered, and not answered yet.
    Offered,
    Open,
}

struct Service {
    clip: Clip,
    now: Instant,
    conns: BTreeMap<ConnId, (Phase, Sap)>,
    listens: BTreeSet<Sap>,
    next: u32,
    sent: u64,
    /// Owners of IP addresses, as told by servers.
    told: BTreeSet<(Ipv4Addr, AtmAddress)>,
    running: bool,
}

impl Service {
    fn new(kind: &Kind) -> Self {
        Self {
            clip: Clip::new(config(kind)),
            now: Instant::from_secs(1),
            conns: BTreeMap::new(),
            listens: BTreeSet::new(),
            next: ConnId::INCOMING,
            sent: 0,
            told: BTreeSet::new(),
            running: false,
        }
    }

    fn feed(&mut self, input: Input<'_>) {
        self.clip.handle_input(input, self.now).unwrap();
        for output in settle(&mut self.clip, self.now) {
            if let Output::Atm(request) = output {
                self.request(request);
            }
        }
        self.check();
    }

    fn event(&mut self, event: AtmEvent<&[u8]>) {
        self.feed(Input::Atm(event));
    }

    /// Checks a request against the rules of `AtmRequest`.
    fn request(&mut self, request: AtmRequest) {
        match request {
            AtmRequest::Listen { sap, max_sdu, .. } => {
                assert_eq!(max_sdu, u16::MAX);
                assert!(self.listens.insert(sap), "listens twice");
            }
            AtmRequest::Unlisten { sap, .. } => assert!(self.listens.remove(&sap)),
            AtmRequest::Connect {
                conn,
                calling,
                called,
                sap,
                qos,
                multipoint,
            } => {
                assert!(conn.0 < ConnId::INCOMING && !multipoint);
                assert_eq!(calling, atm(OWN));
                assert_ne!(called, atm(OWN), "calls itself");
                let llc = if sap.blli == Sap::LLC.blli {
                    LLC_LEN
                } else {
                    0
                };
                assert_eq!((qos.tx.max_sdu, qos.rx.max_sdu), (MTU + llc, MTU + llc));
                let old = self.conns.insert(conn, (Phase::Waits, sap));
                assert!(old.is_none(), "{conn:?} is in use");
            }
            AtmRequest::OpenPermanent { conn, vc, .. } => {
                let sap = if vc.vci == 40 { Sap::LLC } else { Sap::IP };
                let old = self.conns.insert(conn, (Phase::Waits, sap));
                assert!(old.is_none(), "{conn:?} is in use");
            }
            AtmRequest::Accept { conn, .. } => {
                let (phase, _) = self.conns.get_mut(&conn).expect("an offer");
                assert_eq!(*phase, Phase::Offered);
                *phase = Phase::Waits;
            }
            AtmRequest::Release { conn, .. } => {
                assert!(self.conns.remove(&conn).is_some(), "{conn:?} is unknown");
            }
            AtmRequest::Send { conn, sdu } => {
                let (phase, sap) = self.conns[&conn];
                assert_eq!(phase, Phase::Open, "sends before it may");
                let llc = sdu.starts_with(&[0xaa, 0xaa, 3]);
                assert_eq!(llc, sap.blli == Sap::LLC.blli);
                assert!(sdu.len() <= usize::from(MTU) + 8);
            }
            AtmRequest::AddParty { .. } | AtmRequest::DropParty { .. } => panic!("a party"),
        }
    }

    /// Checks the invariants.
    fn check(&self) {
        let seen = self.clip.snapshot(self.now);
        let counters = &seen.counters;
        let waiting: usize = seen.entries.iter().map(|row| row.waiting).sum();
        let lost = counters.unreachable + counters.queue_full + counters.too_long;
        let ends = counters.sent + lost + counters.too_big;
        assert_eq!(
            self.sent,
            ends + (waiting + seen.waiting) as u64,
            "a packet is lost or doubled"
        );
        let config = self.clip.config();
        assert!(seen.entries.len() <= LIMITS.entries + config.hops.fixed.len() + 1);
        assert!(seen.conns.len() <= LIMITS.conns.max(config.permanent.len()));
        assert!(seen.sessions.0 <= LIMITS.sessions && seen.waiting <= LIMITS.sessions * QUEUE);
        assert!(seen.entries.iter().all(|row| row.waiting <= QUEUE));
        let known: BTreeSet<ConnId> = seen.conns.iter().map(|row| row.conn).collect();
        let there: BTreeSet<ConnId> = self.conns.keys().copied().collect();
        assert_eq!(known, there, "connections that one side alone knows");
        for row in &seen.conns {
            let (phase, _) = self.conns[&row.conn];
            assert_eq!(row.vc.is_some(), phase == Phase::Open);
        }
        for row in &seen.entries {
            assert!(row.conn.is_none_or(|conn| known.contains(&conn)));
            assert_ne!(row.ip, ip(OWN));
            let fixed = config.hops.fixed.iter().any(|(ip, _)| *ip == row.ip);
            let Some(atm) = row.atm.filter(|_| !fixed) else {
                continue;
            };
            if !config.serve && !config.servers.is_empty() {
                assert!(
                    self.told.contains(&(row.ip, atm)),
                    "no server has said that of {}",
                    row.ip
                );
            }
        }
        for (ip, atm) in config.hops.fixed.iter().filter(|_| self.running) {
            let kept = seen
                .entries
                .iter()
                .any(|row| row.ip == *ip && row.atm == Some(*atm));
            assert!(kept, "what is known for ever was forgotten");
        }
        if !self.running {
            assert_eq!((seen.entries.len(), self.listens.len()), (0, 0));
            assert_eq!(self.clip.poll_timeout(), None);
        }
    }

    /// One of the connections in a phase.
    fn pick(&self, wanted: Phase, number: u8) -> Option<ConnId> {
        let found: Vec<ConnId> = self
            .conns
            .iter()
            .filter(|(_, (phase, _))| *phase == wanted)
            .map(|(conn, _)| *conn)
            .collect();
        found.get(usize::from(number) % found.len().max(1)).copied()
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Send { to, len } => {
                let next_hop = ip(to.into());
                self.sent += 1;
                let packet = packet(to, len);
                self.feed(Input::Send { next_hop, packet });
            }
            Step::Connected(number) => {
                if let Some(conn) = self.pick(Phase::Waits, number) {
                    self.conns.get_mut(&conn).unwrap().0 = Phase::Open;
                    let vc = Vc::new(0, 100 + u16::from(number));
                    self.event(AtmEvent::Connected {
                        conn,
                        vc,
                        qos: Qos::ubr(0),
                    });
                }
            }
            Step::Released(number, cause) => {
                let phase = [Phase::Waits, Phase::Open][usize::from(number % 2)];
                if let Some(conn) = self.pick(phase, number / 2) {
                    self.conns.remove(&conn);
                    let cause = Cause(cause);
                    self.event(AtmEvent::Released { conn, cause });
                }
            }
            Step::Incoming {
                from,
                mux,
                multipoint,
            } => self.incoming(from, mux, multipoint),
            Step::Arp {
                conn,
                operation,
                source,
                target,
            } => self.arp(conn, operation, source, target),
            Step::Octets(number, octets) => {
                if let Some(conn) = self.pick(Phase::Open, number) {
                    let sdu = &octets;
                    self.event(AtmEvent::Received { conn, sdu });
                }
            }
            Step::Stray(number) => {
                let conn = ConnId(number);
                if !self.conns.contains_key(&conn) {
                    let sdu = &[0x45];
                    self.event(AtmEvent::Received { conn, sdu });
                    let cause = Cause::NORMAL;
                    self.event(AtmEvent::Released { conn, cause });
                    let vc = Vc::new(0, 99);
                    self.event(AtmEvent::Connected {
                        conn,
                        vc,
                        qos: Qos::ubr(0),
                    });
                }
            }
            Step::Up(true) => self.event(AtmEvent::Up),
            Step::Up(false) => self.event(AtmEvent::Down),
            Step::Wait(seconds) => self.wait(Duration::from_secs(seconds.into())),
            Step::Run(true) => {
                self.running = true;
                self.feed(Input::Start);
            }
            Step::Run(false) => {
                self.running = false;
                self.feed(Input::Stop);
            }
        }
    }

    fn incoming(&mut self, from: Option<u8>, mux: bool, multipoint: bool) {
        let sap = if mux { Sap::IP } else { Sap::LLC };
        let marked = from.is_some_and(|n| n % 3 == 0);
        let bhli = marked.then_some(aerostat_wire::Bhli::IP_SESSION);
        let sap = Sap { bhli, ..sap };
        if !self.listens.contains(&sap) {
            return;
        }
        self.next += 1;
        let conn = ConnId(self.next);
        self.conns.insert(conn, (Phase::Offered, sap));
        self.event(AtmEvent::Incoming {
            conn,
            calling: from.map(|n| atm(n.into())),
            called: atm(OWN),
            sap,
            qos: Qos::ubr(MTU),
            multipoint,
        });
        let (phase, _) = self
            .conns
            .get(&conn)
            .copied()
            .unwrap_or((Phase::Waits, sap));
        assert_ne!(phase, Phase::Offered, "an offer without an answer");
        let nobody = from.is_none() || multipoint;
        assert!(
            !nobody || !self.conns.contains_key(&conn),
            "{conn:?} is accepted"
        );
    }

    fn arp(&mut self, number: u8, operation: u16, source: (u8, u8), target: (u8, u8)) {
        let Some(conn) = self.pick(Phase::Open, number) else {
            return;
        };
        // 5 is an unknown ATM address, or IP address.
        let party = |(a, i): (u8, u8)| {
            let a = Some(atm(a.into())).filter(|_| a < 5);
            Party::new(a, Some(ip(i.into())).filter(|_| i < 5))
        };
        let packet = AtmArp {
            operation: Operation(operation),
            source: party(source),
            target: party(target),
        };
        if to_server(&self.clip, self.now) == Some(conn) && source.0 < 5 && source.1 < 5 {
            self.told
                .insert((ip(source.1.into()), atm(source.0.into())));
        }
        let sdu = &packet.to_sdu();
        self.event(AtmEvent::Received { conn, sdu });
    }

    /// Time passes, with everything that becomes due on the way.
    fn wait(&mut self, time: Duration) {
        let end = self.now + time;
        let mut fired = 0;
        while let Some(at) = self.clip.poll_timeout().filter(|at| *at <= end) {
            fired += 1;
            assert!(fired < 10_000, "timers never end");
            self.now = self.now.max(at);
            for output in settle(&mut self.clip, self.now) {
                if let Output::Atm(request) = output {
                    self.request(request);
                }
            }
            self.check();
        }
        self.now = end;
    }
}

proptest! {
    /// No panic, no request that the service would refuse, no packet lost without being counted, bounded tables; only
    /// servers are believed about others; a stopped member holds nothing.
    #[test]
    fn whatever_happens(kind in kind(), steps in prop::collection::vec(step(), 0..60)) {
        let mut service = Service::new(&kind);
        service.step(Step::Run(true));
        service.event(AtmEvent::Up);
        for step in steps {
            service.step(step);
        }
        service.step(Step::Run(false));
        prop_assert!(service.conns.is_empty());
    }
}
