//! Servers in processes: their messages survive encoding, their seats enforce their bounds, and an ELAN recovers from
//! their deaths.

use super::*;
use crate::lane::{BusConfig, LesConfig, ServerParams};
use crate::split::codec::Message as _;
use crate::split::tests::sample;
use crate::split::{
    Ended, FRAME_MAX, FromDaemon, Numbered, Process, ProcessEvent, ProcessInput, ProcessOutput,
    Signal, ToDaemon,
};
use crate::{AtmEvent, AtmRequest, Cause, ConnId, Instant, Machine as _, PartyId};
use aerostat_testing::messages::Random;
use aerostat_wire::lane::{CONTROL_SDU, ElanName};
use aerostat_wire::{MacAddr, Qos, Sap, Vc};

const NOW: Instant = Instant::ZERO;

type To = Numbered<ToDaemon<ToServer>>;
type From = Numbered<FromDaemon<FromServer>>;

aerostat_testing::message_properties!(To, From);

#[test]
fn data_is_told_apart_by_its_first_octets() {
    for seed in 0..2000 {
        let frame: To = sample(&mut Random::new(seed));
        let data = matches!(frame.message, ToDaemon::Atm(AtmEvent::Received { .. }));
        assert_eq!(ToDaemon::<ToServer>::is_data(&frame.encode()), data);
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
        let (count, strangers) = aerostat_testing::messages::strangers(sources, prefix);
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
    seat: LaneServer,
    process: Option<Process<ServerDaemon>>,
}

impl Rig {
    fn new(config: ServerConfig) -> Self {
        let mut rig = Self {
            seat: LaneServer::split(config),
            process: None,
        };
        assert!(rig.tell(Input::Start).is_empty(), "nobody is there");
        rig
    }
    fn came(&mut self) -> Vec<Output> {
        self.process = Some(Process::default());
        self.tell(Input::Process(ProcessEvent::Came))
    }
    fn killed(&mut self) -> Vec<Output> {
        self.process = None;
        self.tell(Input::Process(ProcessEvent::Gone))
    }
    fn event(&mut self, event: AtmEvent<&[u8]>) -> Vec<Output> {
        self.tell(Input::Atm(event))
    }
    fn said(&mut self, message: FromDaemon<FromServer>) -> Vec<Output> {
        self.tell(Input::Process(ProcessEvent::Said(message)))
    }
    fn signal(&mut self, signal: Signal) -> Vec<Output> {
        let process = self.process.as_mut().unwrap();
        let input = ProcessInput::Signal(signal);
        process.handle_input(input, NOW).unwrap();
        self.carry()
    }
    /// The number of refused messages of the daemon.
    fn not_its_own(&self) -> u64 {
        let counters = self.seat.seat_counters();
        counters.refused + counters.stale
    }
    fn lie(&mut self, request: AtmRequest) {
        let before = self.not_its_own();
        assert!(self.said(FromDaemon::Atm(request)).is_empty());
        assert_eq!(self.not_its_own(), before + 1);
    }
    fn tell(&mut self, input: Input<'_>) -> Vec<Output> {
        self.seat.handle_input(input, NOW).unwrap();
        self.carry()
    }
    /// Passes messages on between the halves; returns the outputs that are not for the other half.
    fn carry(&mut self) -> Vec<Output> {
        let mut out = Vec::new();
        loop {
            while let Some(output) = self.seat.poll_output() {
                match (output, &mut self.process) {
                    (Output::Process(message), Some(process)) => {
                        let frame = Numbered { number: 7, message }.encode();
                        let input = ProcessInput::Frame(To::decode(&frame).unwrap());
                        process.handle_input(input, NOW).unwrap();
                    }
                    (Output::Process(_), None) => {}
                    (output, _) => out.push(output),
                }
            }
            match self.process.as_mut().and_then(Process::poll_output) {
                Some(ProcessOutput::Frame(frame)) => {
                    let frame = frame.encode();
                    assert!(frame.len() <= FRAME_MAX);
                    let frame = From::decode(&frame).unwrap();
                    assert_eq!(frame.number, 7);
                    let said = Input::Process(ProcessEvent::Said(frame.message));
                    self.seat.handle_input(said, NOW).unwrap();
                }
                Some(ProcessOutput::Exit) => self.process = None,
                None => return out,
            }
        }
    }
    fn offer(&mut self, conn: ConnId) -> Vec<Output> {
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

fn requests(out: &[Output]) -> Vec<&AtmRequest> {
    let requests = out.iter().filter_map(|output| match output {
        Output::Atm(request) => Some(request),
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
        assert_eq!(
            requests(&out),
            [&AtmRequest::Accept {
                conn: CONN,
                terms: None
            }]
        );
        let vc = Vc::new(0, 40);
        rig.event(AtmEvent::Connected {
            conn: CONN,
            vc,
            qos: Qos::ubr(0),
        });
        let process = rig.process.as_mut().unwrap();
        process.handle_timeout(NOW + SHOW);
        rig.tell(Input::Atm(AtmEvent::Up));
        let Some(ServerSnapshot::Les(seen)) = rig.seat.snapshot() else {
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
        assert!(rig.seat.snapshot().is_none());
        // There is no listener; a call that was on its way to a listener is refused.
        let cause = Cause::INCOMPATIBLE;
        let out = rig.offer(CONN);
        assert_eq!(requests(&out), [&AtmRequest::Release { conn: CONN, cause }]);
        let request = AtmRequest::Accept {
            conn: CONN,
            terms: None,
        };
        let late = rig.said(FromDaemon::Atm(request));
        assert!(late.is_empty(), "{late:?}");
    }
}

#[test]
fn signals_stop_and_start_in_good_order() {
    let mut rig = Rig::new(les());
    rig.came();
    rig.offer(CONN);
    let out = rig.signal(Signal::Reload);
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
    let out = rig.signal(Signal::Terminate);
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
        AtmRequest::listen(address(2), sap, max_sdu),
        connect(conn, address(2)),
        connect(CONN, address(1)),
        AtmRequest::OpenPermanent { conn, vc, qos },
        AtmRequest::Accept { conn, terms: None },
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
    assert_eq!(rig.said(FromDaemon::Atm(request)).len(), 1);
    rig.lie(connect(conn, address(1)));
    let before = rig.not_its_own();
    // Only a LES names members, and each member leaves once.
    let said = |member| {
        let address = address(9);
        FromDaemon::Message(FromServer::Member { address, member })
    };
    assert!(rig.said(said(None)).is_empty());
    assert_eq!(rig.said(said(Some(Member::default()))).len(), 1);
    assert_eq!(rig.not_its_own(), before + 1);
    // Nor may a client have more addresses, or groups, than it may register.
    let most = ServerParams::default().registrations;
    let some = |count: usize| Some(vec![MacAddr::default(); count]);
    for (groups, macs, passes) in [
        (None, some(most), 1),
        (some(most), some(most), 1),
        (None, some(most + 1), 0),
        (some(most + 1), None, 0),
    ] {
        let member = Member {
            lecid: 1,
            groups,
            macs,
        };
        assert_eq!(rig.said(said(Some(member))).len(), passes);
    }
    assert_eq!(rig.not_its_own(), before + 3);
    let out = rig.killed();
    let left = |output: &&Output| matches!(output, Output::Member { member: None, .. });
    assert_eq!(out.iter().filter(left).count(), 1, "{out:?}");
}

/// The same seat with the server beside it: the outputs are the same, and in the same order.
#[test]
fn one_process_and_two_do_the_same() {
    let mut apart = Rig::new(les());
    let mut here = LaneServer::new(les());
    let mut tell = |input: Input<'static>| {
        here.handle_input(input, NOW).unwrap();
        core::iter::from_fn(|| here.poll_output()).collect::<Vec<_>>()
    };
    assert_eq!(tell(Input::Start), apart.came());
    let vc = Vc::new(0, 40);
    let incoming = AtmEvent::Incoming {
        conn: CONN,
        calling: Some(address(9)),
        called: address(1),
        sap: Sap::LANE_CONTROL,
        qos: Qos::ubr(CONTROL_SDU),
        multipoint: false,
    };
    let cause = Cause::NORMAL;
    for event in [
        AtmEvent::Up,
        incoming,
        AtmEvent::Connected {
            conn: CONN,
            vc,
            qos: Qos::ubr(0),
        },
        AtmEvent::Received {
            conn: CONN,
            sdu: &[0xff, 0, 1, 1][..],
        },
        AtmEvent::Released { conn: CONN, cause },
        incoming,
    ] {
        assert_eq!(tell(Input::Atm(event)), apart.event(event), "{event:?}");
    }
    assert_eq!(tell(Input::Stop), apart.tell(Input::Stop));
    assert_eq!(tell(Input::Start), apart.tell(Input::Start));
}

/// A server in this process has no process that could come, go or speak: it serves on.
#[test]
fn only_a_split_server_has_a_process() {
    let mut here = LaneServer::new(les());
    here.handle_input(Input::Start, NOW).unwrap();
    let outputs = |here: &mut LaneServer| core::iter::from_fn(|| here.poll_output()).count();
    assert_eq!(outputs(&mut here), 2, "a listener, and a trace");
    let said = ProcessEvent::Said(FromDaemon::Ended(Ended::Stops));
    for event in [ProcessEvent::Came, ProcessEvent::Gone, said] {
        assert!(here.handle_input(Input::Process(event), NOW).is_err());
        assert_eq!(outputs(&mut here), 0);
        assert!(here.snapshot().is_some());
    }
}

/// The state is reported in one frame, whatever of it is long: here 7000 groups of one client.
#[test]
fn the_state_of_a_bus_with_many_groups_fits_a_frame() {
    let groups = 7000;
    let config = BusConfig::new(ElanName::new("elan1").unwrap(), address(1));
    let mut rig = Rig::new(ServerConfig::Bus(BusConfig {
        params: ServerParams {
            registrations: groups,
            ..config.params.clone()
        },
        ..config
    }));
    rig.came();
    let wanted = |n: u16| {
        let [high, low] = n.to_be_bytes();
        MacAddr([1, 0, 0x5e, 0, high, low])
    };
    let member = Member {
        lecid: 1,
        groups: Some((0..groups as u16).map(wanted).collect()),
        macs: None,
    };
    rig.tell(Input::Member {
        address: address(9),
        member: Some(member),
    });
    rig.event(AtmEvent::Incoming {
        conn: CONN,
        calling: Some(address(9)),
        called: address(1),
        sap: Sap::LANE_MULTICAST_ETHERNET,
        qos: Qos::ubr(1516),
        multipoint: false,
    });
    let vc = Vc::new(0, 40);
    rig.event(AtmEvent::Connected {
        conn: CONN,
        vc,
        qos: Qos::ubr(0),
    });
    rig.process.as_mut().unwrap().handle_timeout(NOW + SHOW);
    rig.carry();
    let Some(ServerSnapshot::Bus(seen)) = rig.seat.snapshot() else {
        panic!("nothing shown")
    };
    assert_eq!(seen.clients.len(), 1);
    assert!((3000..groups).contains(&seen.groups.len()));
    // What is left out is counted.
    let shown = seen.groups.len() as u64;
    assert_eq!(shown + seen.counters.not_shown, groups as u64);
}
