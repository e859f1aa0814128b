//! Servers in processes: their messages survive encoding, their seats enforce their bounds, and an ELAN recovers from
//! their deaths.

use super::*;
use crate::lane::ServerParams;
use crate::split::names;
use crate::split::testing::{canonical, damaged, survives};
use crate::{AtmEvent, Cause, ConnId, Instant, Machine as _, PartyId};
use aerostat_wire::lane::{CONTROL_SDU, ElanName};
use aerostat_wire::{MacAddr, Qos, Sap, Vc};
use proptest::prelude::*;

const NOW: Instant = Instant::ZERO;

proptest! {
    #[test]
    fn messages_survive(seed: u64) {
        survives::<ToServer>(seed);
        survives::<FromServer>(seed);
    }

    #[test]
    fn any_octets_are_a_message_or_an_error(octets in prop::collection::vec(any::<u8>(), 0..200)) {
        canonical::<ToServer>(&octets);
        canonical::<FromServer>(&octets);
    }

    #[test]
    fn a_damaged_message_is_a_message_or_an_error(seed: u64, at: usize, to: u8) {
        damaged::<ToServer>(seed, at, to);
        damaged::<FromServer>(seed, at, to);
    }
}

#[test]
fn data_is_told_apart_by_its_first_octets() {
    use crate::split::codec::Message as _;
    for seed in 0..2000 {
        let message: ToServer =
            crate::split::codec::Field::sample(&mut crate::split::Random::new(seed));
        let data = matches!(
            message,
            ToServer::Atm {
                event: AtmEvent::Received { .. },
                ..
            }
        );
        assert_eq!(ToServer::is_data(&message.encode()), data);
    }
}

#[test]
fn every_name_that_a_server_uses_is_known() {
    for (sources, prefix, least) in [
        (
            &[
                include_str!("../les/mod.rs"),
                include_str!("../les/requests.rs"),
                include_str!("../les/standby.rs"),
            ][..],
            "les.",
            4,
        ),
        (&[include_str!("../bus/mod.rs")][..], "bus.", 1),
        (&[include_str!("../lecs/mod.rs")][..], "lecs.", 3),
    ] {
        let (count, strangers) = names::strangers(sources, prefix);
        assert!(count >= least, "{prefix} {count}");
        assert!(strangers.is_empty(), "{strangers:?}");
    }
}

fn address(n: u8) -> AtmAddress {
    AtmAddress([n; 20])
}
fn les() -> ServerConfig {
    let name = ElanName::new("elan1").unwrap();
    ServerConfig::Les(LesConfig::new(name, address(1), address(2)))
}

/// A seat and its process, which exchange octets.
struct Rig {
    seat: Away,
    process: Option<Servers>,
}

impl Rig {
    fn new(config: ServerConfig) -> Self {
        let mut rig = Self {
            seat: Away::new(7, config),
            process: None,
        };
        assert!(rig.tell(AwayInput::Start).is_empty(), "nobody is there");
        rig
    }
    fn came(&mut self) -> Vec<AwayOutput> {
        self.process = Some(Servers::default());
        self.tell(AwayInput::News(News::Came))
    }
    fn killed(&mut self) -> Vec<AwayOutput> {
        self.process = None;
        self.tell(AwayInput::News(News::Gone))
    }
    fn event(&mut self, event: AtmEvent<&[u8]>) -> Vec<AwayOutput> {
        self.tell(AwayInput::Atm(event))
    }
    fn said(&mut self, message: FromServer) -> Vec<AwayOutput> {
        self.tell(AwayInput::News(News::Said(message)))
    }
    fn lie(&mut self, request: AtmRequest) {
        let (server, before) = (7, self.seat.refused());
        assert!(self.said(FromServer::Atm { server, request }).is_empty());
        assert_eq!(self.seat.refused(), before + 1);
    }
    /// Passes an input on; returns the outputs that are not for the other half.
    fn tell(&mut self, input: AwayInput<'_>) -> Vec<AwayOutput> {
        use crate::split::codec::Message as _;
        self.seat.handle_input(input, NOW).unwrap();
        let mut out = Vec::new();
        loop {
            while let Some(output) = self.seat.poll_output() {
                match (output, &mut self.process) {
                    (AwayOutput::Say(message), Some(process)) => {
                        let message = ToServer::decode(&message.encode()).unwrap();
                        let message = ServersInput::Message(message);
                        process.handle_input(message, NOW).unwrap();
                    }
                    (AwayOutput::Say(_), None) => {}
                    (output, _) => out.push(output),
                }
            }
            match self.process.as_mut().and_then(Servers::poll_output) {
                Some(ServersOutput::Message(message)) => {
                    let message = FromServer::decode(&message.encode()).unwrap();
                    let news = AwayInput::News(News::Said(message));
                    self.seat.handle_input(news, NOW).unwrap();
                }
                Some(ServersOutput::Exit) => self.process = None,
                None => return out,
            }
        }
    }
    fn offer(&mut self, conn: ConnId) -> Vec<AwayOutput> {
        self.event(AtmEvent::Incoming {
            conn,
            calling: Some(address(9)),
            called: address(1),
            sap: Sap::LANE_CONTROL,
            qos: Qos::ubr(CONTROL_SDU),
            multipoint: false,
        })
    }
}

fn requests(out: &[AwayOutput]) -> Vec<&AtmRequest> {
    let requests = out.iter().filter_map(|output| match output {
        AwayOutput::Atm(request) => Some(request),
        _ => None,
    });
    requests.collect()
}

const CONN: ConnId = ConnId(ConnId::INCOMING);

#[test]
fn calls_end_with_the_process_and_the_next_one_serves() {
    let mut rig = Rig::new(les());
    for _ in 0..2 {
        let out = rig.came();
        assert!(
            matches!(requests(&out)[..], [AtmRequest::Listen { .. }]),
            "{out:?}"
        );
        let out = rig.offer(CONN);
        assert_eq!(requests(&out), [&AtmRequest::Accept { conn: CONN }]);
        let vc = Vc::new(0, 40);
        rig.event(AtmEvent::Connected { conn: CONN, vc });
        let process = rig.process.as_mut().unwrap();
        process.handle_timeout(NOW + SHOW);
        rig.tell(AwayInput::Atm(AtmEvent::Up));
        let Some(ServerSnapshot::Les(seen)) = rig.seat.seen() else {
            panic!("nothing shown")
        };
        assert_eq!(seen.clients[0].state, "connected");
        // kill -9
        let out = rig.killed();
        assert!(
            matches!(
                requests(&out)[..],
                [
                    AtmRequest::Release { conn: CONN, .. },
                    AtmRequest::Unlisten { .. }
                ]
            ),
            "{out:?}"
        );
        assert!(rig.seat.seen().is_none());
        // There is no listener; a call that was on its way to a listener is refused.
        let cause = Cause::INCOMPATIBLE;
        let out = rig.offer(CONN);
        assert_eq!(requests(&out), [&AtmRequest::Release { conn: CONN, cause }]);
        let request = AtmRequest::Accept { conn: CONN };
        let late = rig.said(FromServer::Atm { server: 7, request });
        assert!(late.is_empty(), "{late:?}");
    }
}

#[test]
fn signals_stop_and_start_in_good_order() {
    let mut rig = Rig::new(les());
    rig.came();
    rig.offer(CONN);
    let process = rig.process.as_mut().unwrap();
    process.handle_input(ServersInput::Reload, NOW).unwrap();
    let out = rig.tell(AwayInput::Atm(AtmEvent::Up));
    assert!(
        matches!(
            requests(&out)[..],
            [
                AtmRequest::Release { conn: CONN, .. },
                AtmRequest::Unlisten { .. },
                AtmRequest::Listen { .. }
            ]
        ),
        "{out:?}"
    );
    let process = rig.process.as_mut().unwrap();
    process.handle_input(ServersInput::Terminate, NOW).unwrap();
    let out = rig.tell(AwayInput::Atm(AtmEvent::Up));
    assert!(matches!(requests(&out)[..], [AtmRequest::Unlisten { .. }]));
    assert!(rig.process.is_none(), "it has ended");
    assert!(rig.killed().is_empty(), "and all is tidy");
}

#[test]
fn a_process_may_not_do_what_is_not_its_servers() {
    let mut rig = Rig::new(les());
    rig.came();
    let (conn, cause, sdu) = (ConnId(5), Cause::NORMAL, vec![1]);
    let (sap, qos, max_sdu) = (Sap::LANE_CONTROL, Qos::ubr(CONTROL_SDU), CONTROL_SDU);
    let connect = |conn, calling| AtmRequest::Connect {
        conn,
        calling,
        called: address(9),
        sap,
        qos,
        multipoint: false,
    };
    let vc = Vc::new(0, 33);
    for request in [
        AtmRequest::Listen {
            address: address(2),
            sap,
            max_sdu,
        },
        connect(conn, address(2)),
        connect(CONN, address(1)),
        AtmRequest::OpenPermanent { conn, vc, qos },
        AtmRequest::Accept { conn },
        AtmRequest::Release { conn, cause },
        AtmRequest::Send { conn, sdu },
        AtmRequest::DropParty {
            conn,
            party: PartyId(1),
        },
    ] {
        rig.lie(request);
    }
    let request = connect(conn, address(1));
    assert_eq!(rig.said(FromServer::Atm { server: 7, request }).len(), 1);
    rig.lie(connect(conn, address(1)));
    let refused = rig.seat.refused();
    let request = connect(ConnId(6), address(1));
    let other = rig.said(FromServer::Atm { server: 8, request });
    assert!(other.is_empty(), "another seat's");
    // Only a LES may name members, and each member may leave only once.
    let member = |joined: bool| FromServer::Member {
        server: 7,
        address: address(9),
        member: joined.then(Member::default),
    };
    assert!(rig.said(member(false)).is_empty());
    assert_eq!(rig.said(member(true)).len(), 1);
    assert_eq!(rig.seat.refused(), refused + 2);
    // Nor may a client have more addresses, or groups, than it may register.
    let most = ServerParams::default().registrations;
    let some = |count: usize| Some(vec![MacAddr::default(); count]);
    for (groups, macs, passes) in [
        (None, some(most), 1),
        (some(most), some(most), 1),
        (None, some(most + 1), 0),
        (some(most + 1), None, 0),
    ] {
        let lecid = 1;
        let member = Some(Member {
            lecid,
            groups,
            macs,
        });
        let (server, address) = (7, address(9));
        let said = rig.said(FromServer::Member {
            server,
            address,
            member,
        });
        assert_eq!(said.len(), passes);
    }
    assert_eq!(rig.seat.refused(), refused + 4);
    let out = rig.killed();
    let left = |output: &&AwayOutput| matches!(output, AwayOutput::Member { member: None, .. });
    assert_eq!(out.iter().filter(left).count(), 1, "{out:?}");
}
