//! The duties of a host when its services stop, crash and restart. There is no link; the tests look at the inside only.

use super::*;
use crate::ip::router::{ArpParams, Forwarding, QueueLimit, Router, RouterConfig, RouterInterface};
use crate::signalling::Signalling;
use aerostat_proto::lane::LecConfig;
use aerostat_proto::mpoa::{MpcConfig, MpsConfig};
use aerostat_proto::uni::Version;
use aerostat_wire::lane::{ElanName, TlvType};
use std::net::Ipv4Addr;

const NOW: Instant = Instant::ZERO;
const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const OTHER: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);

fn address(selector: u8) -> AtmAddress {
    AtmAddress::LECS.with_selector(selector)
}

fn host(ip: Ip) -> Host {
    let signalling = Signalling::new(signalling::Config::new(Version::Uni31));
    let mut host = Host::new("h", signalling, ip);
    let elan = ElanName::new("e").expect("short");
    let config = LecConfig::new(elan, address(0), MAC);
    host.add_lec(MAC, move |_| Lec::new(config.clone()));
    host
}

fn client() -> Host {
    let mut host = host(Ip::Kernel);
    let config = MpcConfig {
        itfs: vec![0],
        ..MpcConfig::new(address(0x50), address(0x51))
    };
    host.add_mpc(move |_| Mpc::new(config.clone()));
    host.start_mpoa_at(NOW);
    host.handle_input(HostInput::Start, NOW);
    host
}

fn router() -> Host {
    let config = RouterConfig {
        interfaces: vec![RouterInterface {
            name: "lec0".into(),
            mac: MAC.0,
            address: [10, 0, 0, 1].into(),
            prefix: 24,
            mtu: 1500,
        }],
        routes: Vec::new(),
        forwarding: Forwarding::Wire,
        queue: QueueLimit::Packets(1),
        arp: ArpParams::default(),
    };
    let mut host = host(Ip::Router(Box::new(Router::new(config).expect("good"))));
    host.add_mps(|_| {
        let config = MpsConfig::new(address(0x52), address(0x53), Vec::new(), 1);
        Mps::new(config)
    });
    host.start_mpoa_at(NOW);
    host.handle_input(HostInput::Start, NOW);
    host
}

fn lec(host: &Host) -> &Lec {
    match &host.slots[0].service {
        Some(Service::Lec(lec)) => lec,
        _ => panic!("slot 0 is the LANE client"),
    }
}

fn refusals(host: &mut Host) -> usize {
    let mut count = 0;
    while let Some(output) = host.poll_output() {
        count += usize::from(
            matches!(output, HostOutput::Event(HostEvent::Trace(t)) if t.name == "host.refused"),
        );
    }
    count
}

#[test]
fn a_lane_client_that_starts_again_announces_mpoa_again() {
    let mut host = client();
    let announced = lec(&host).snapshot().tlvs;
    assert_eq!(announced[0].kind, TlvType::DEVICE_TYPE);
    host.handle_input(
        HostInput::Command(HostCommand::Restart(ServiceKind::Lec)),
        NOW,
    );
    assert_eq!(lec(&host).snapshot().tlvs, announced);
}

#[test]
fn an_mpoa_client_that_starts_again_has_the_parameters_of_the_lecs() {
    let mut host = client();
    host.interfaces[0].up = true;
    host.interfaces[0].config = vec![Tlv::u16(TlvType::MPC_P1, 3)];
    host.handle_input(
        HostInput::Command(HostCommand::Restart(ServiceKind::Mpc)),
        NOW,
    );
    let Some(Service::Mpc(mpc)) = &host.slots[1].service else {
        panic!("slot 1 is the MPOA client");
    };
    assert_eq!(mpc.params().flow_frames, 3);
    assert_eq!(mpc.snapshot(NOW).itfs, [0]);
}

#[test]
fn clients_say_why_and_servers_that_did_nothing_are_silent() {
    let target = Ipv4Addr::new(10, 2, 0, 20).into();
    let host = client();
    let table = host.why(target, NOW).expect("it has a client");
    let row: Vec<String> = table.rows[0].iter().map(ToString::to_string).collect();
    assert_eq!(row[..3], ["10.2.0.20", "client", "no-interface"]);
    assert_eq!(router().why(target, NOW), None);
}

#[test]
fn mpoa_off_and_on_again_refuses_nothing() {
    let mut host = client();
    for on in [false, true] {
        host.handle_input(HostInput::Command(HostCommand::Mpoa(on)), NOW);
    }
    assert_eq!(refusals(&mut host), 0);
    // A service that has never run is not a user of signalling, either.
    host.handle_input(
        HostInput::Command(HostCommand::Crash(ServiceKind::Mpc)),
        NOW,
    );
    host.handle_input(
        HostInput::Command(HostCommand::Crash(ServiceKind::Mpc)),
        NOW,
    );
    assert_eq!(refusals(&mut host), 0);
}

#[test]
fn questions_to_a_crashed_lane_client_are_answered() {
    let mut host = router();
    host.find_owner(1, 0, OTHER, NOW);
    host.settle(NOW);
    assert!(host.owner_queries.is_empty(), "not a member: nobody");
    // One question before the crash, and one after it.
    host.owner_queries.insert((0, OTHER), vec![2]);
    host.handle_input(
        HostInput::Command(HostCommand::Crash(ServiceKind::Lec)),
        NOW,
    );
    host.find_owner(3, 0, OTHER, NOW);
    host.settle(NOW);
    assert!(host.owner_queries.is_empty());
}

/// Lines and Classical IP subnets have no owners of MAC addresses: the question is answered at once. The permanent
/// connection of a line is no call, which a host would release at its end.
#[test]
fn a_line_has_neither_owners_of_addresses_nor_calls() {
    use aerostat_proto::line::{Config, Line};
    use aerostat_wire::line::Encapsulation;
    let mut host = router();
    let line = host.interfaces.len();
    host.add_line(OTHER, |_| {
        Line::new(Config::permanent(
            Vc::new(0, 100),
            Encapsulation::BridgedLlc,
        ))
    });
    host.handle_input(HostInput::Start, NOW);
    for itf in [line, line + 1] {
        host.find_owner(4, itf, OTHER, NOW);
        host.settle(NOW);
        assert!(host.owner_queries.is_empty());
    }
    let (permanent, calls) = host
        .signalling
        .calls()
        .partition::<Vec<_>, _>(|call| call.permanent);
    assert_eq!((permanent.len(), host.open_calls()), (1, calls.len()));
}

/// A daemon of any role that names a number which the host did not assign is refused, visibly.
#[test]
fn messages_with_a_number_of_no_daemon_are_refused_for_every_role() {
    use aerostat_proto::lane::{LaneServer, LesConfig, ServerConfig};
    use aerostat_proto::split::{Ended, FromDaemon, Numbered};
    let mut host = client();
    let les = host.slots.len();
    host.add_server(|_| {
        let elan = ElanName::new("e").expect("short");
        let config = LesConfig::new(elan, address(2), address(3));
        LaneServer::split(ServerConfig::Les(config))
    });
    host.settle(NOW);
    refusals(&mut host);
    let message = |role: Role, number: u16| {
        macro_rules! ended {
            () => {{
                let message = FromDaemon::Ended(Ended::Stops);
                Numbered { number, message }
            }};
        }
        match role {
            Role::Mpcd => DaemonMessage::Mpcd(ended!()),
            Role::Lecd => DaemonMessage::Lecd(ended!()),
            Role::Lecs | Role::Les | Role::Bus => DaemonMessage::LaneServer(ended!()),
            Role::Sigd => DaemonMessage::Sigd(ended!()),
            Role::Ilmid => DaemonMessage::Ilmid(ended!()),
            Role::Mpsd => DaemonMessage::Mpsd(ended!()),
        }
    };
    for role in Role::ALL {
        let said = ProcessEvent::Said(message(role, 77));
        host.handle_input(HostInput::Daemon(role, said), NOW);
        assert_eq!(refusals(&mut host), 1, "{role}");
    }
    // The number of a server of another role is no better.
    for (role, refused) in [(Role::Bus, 1), (Role::Les, 0)] {
        let said = ProcessEvent::Said(message(role, les as u16));
        host.handle_input(HostInput::Daemon(role, said), NOW);
        assert_eq!(refusals(&mut host), refused, "{role}");
    }
}

/// Refused messages of a server's process are counted where the server is inspected.
#[test]
fn the_tables_of_servers_show_what_their_processes_may_not_do() {
    use aerostat_proto::lane::server::{FromServer, ServerDaemon, ToServer};
    use aerostat_proto::lane::{BusConfig, LaneServer, LesConfig, Member, ServerConfig};
    use aerostat_proto::split::{Daemon as _, FromDaemon, Numbered};
    let elan = ElanName::new("e").expect("short");
    let les = ServerConfig::Les(LesConfig::new(elan, address(2), address(3)));
    let bus = ServerConfig::Bus(BusConfig::new(elan, address(3)));
    for (config, role, what) in [(les, Role::Les, "les"), (bus, Role::Bus, "bus")] {
        let mut process = ServerDaemon::default();
        process.message(ToServer::Start(Box::new(config.clone())), NOW);
        let shown = FromServer::Shown(Box::new(process.snapshot().expect("it runs")));
        let mut host = host(Ip::Kernel);
        let slot = host.slots.len();
        host.add_server(move |_| LaneServer::split(config.clone()));
        let say = |host: &mut Host, message: &FromServer| {
            let number = slot as u16;
            let message = FromDaemon::Message(message.clone());
            let message = DaemonMessage::LaneServer(Numbered { number, message });
            let said = ProcessEvent::Said(message);
            host.handle_input(HostInput::Daemon(role, said), NOW);
        };
        host.handle_input(HostInput::Start, NOW);
        // The process that says this has not been told to start.
        say(&mut host, &shown);
        host.handle_input(HostInput::Daemon(role, ProcessEvent::Came), NOW);
        say(&mut host, &shown);
        let too_large = FromServer::Member {
            address: address(9),
            member: Some(Member {
                macs: Some(vec![MAC; 1000]),
                ..Member::default()
            }),
        };
        for _ in 0..2 {
            say(&mut host, &too_large);
        }
        let tables = host
            .inspect(what.parse().expect("a kind"), NOW)
            .expect("it has a server");
        let rows = tables.iter().flat_map(|table| &table.rows).map(|row| {
            let cells: Vec<String> = row.iter().map(ToString::to_string).collect();
            cells.join(" ")
        });
        let rows: Vec<String> = rows.collect();
        for row in ["daemon_refused 2", "daemon_stale 1"] {
            assert!(rows.iter().any(|shown| shown == row), "{rows:?}");
        }
    }
}
