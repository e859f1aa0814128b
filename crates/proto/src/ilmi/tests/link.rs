//! Permanent connections in tables and traps, and the choice of the network side.

use super::super::*;
use super::{PREFIX, Pair, ask, network, user};
use crate::machine::settle;
use aerostat_wire::ilmi::{Binding, ErrorStatus, Kind, mib};
use aerostat_wire::{ServiceCategory, TrafficParams, Vc};

const CHANNEL: Vc = Vc::new(0, 100);
const PATH: Vc = Vc::new(7, 0);

fn cbr(pcr: u32) -> TrafficParams {
    TrafficParams {
        category: Some(ServiceCategory::Cbr),
        max_pcr: Some(pcr),
        max_cdv: Duration::from_micros(250),
        ..TrafficParams::ubr(0)
    }
}
fn vbr() -> TrafficParams {
    TrafficParams {
        category: Some(ServiceCategory::NrtVbr),
        scr: 500,
        mbs: 32,
        ..cbr(2000)
    }
}
fn pvcs() -> Vec<Pvc> {
    vec![
        Pvc {
            vc: CHANNEL,
            path: false,
            tx: cbr(1000),
            rx: vbr(),
            status: PvcStatus::LocalUp,
        },
        Pvc {
            vc: PATH,
            path: true,
            tx: TrafficParams::ubr(0),
            rx: TrafficParams {
                category: None,
                ..TrafficParams::ubr(0)
            },
            status: PvcStatus::EndToEndDown,
        },
    ]
}
fn number(end: &mut Ime, name: Oid) -> i32 {
    let answer = ask(end, Kind::Get, vec![Binding::new(name, Value::Null)]);
    assert_eq!(answer.status, ErrorStatus::NO_ERROR);
    answer.bindings[0].value.integer().unwrap()
}
/// Type and five parameters that begin at a column.
fn descriptor(end: &mut Ime, name: impl Fn(u32) -> Oid, column: u32) -> (Oid, Vec<i32>) {
    let answer = ask(
        end,
        Kind::Get,
        vec![Binding::new(name(column), Value::Null)],
    );
    let Value::Oid(kind) = answer.bindings[0].value.clone() else {
        panic!("{answer:?}");
    };
    let params = (1..=5).map(|n| number(end, name(column + n)));
    (kind, params.collect())
}

/// Types and parameters of VBR contracts. Source: af-ilmi-0065.000, `atmfTrafficDescrTypes` 6 (VBR.1), 7 (VBR.2) and 8
/// (VBR.3): peak rate, sustainable rate, burst, tolerance in tenths of a microsecond.
#[test]
fn contracts_with_rates_of_cells_with_clp_0_have_their_types() {
    let contract = |clp0, tagging| TrafficParams {
        clp0,
        tagging,
        ..vbr()
    };
    for path in [false, true] {
        let vc = if path { PATH } else { CHANNEL };
        for (tx, rx, kinds) in [
            (contract(false, false), contract(true, false), [6, 7]),
            (contract(true, true), contract(false, false), [8, 6]),
        ] {
            let pvc = Pvc {
                vc,
                path,
                tx,
                rx,
                status: PvcStatus::LocalUp,
            };
            let mut end = started(vec![pvc]);
            let name = |column| match path {
                true => mib::vpc(column, vc.vpi),
                false => mib::vcc(column, vc),
            };
            let columns = match path {
                true => [mib::VPC_TX, mib::VPC_RX],
                false => [mib::VCC_TX, mib::VCC_RX],
            };
            for (column, kind) in columns.into_iter().zip(kinds) {
                let told = descriptor(&mut end, name, column);
                let params = vec![2000, 500, 32, 2500, 0];
                assert_eq!(told, (mib::traffic_descriptor(kind), params));
            }
        }
    }
}

/// The network's end of a link with these connections, which has started.
fn started(pvcs: Vec<Pvc>) -> Ime {
    let mut end = Ime::new(Config { pvcs, ..network() });
    end.handle_input(Input::Start, Instant::ZERO).unwrap();
    settle(&mut end, Instant::ZERO);
    end
}

/// The indications of frame discard of a channel, as the contract says, or else for best effort; a path has no such
/// objects. The response to a GetNext over column 20 is compared octet by octet. Source: af-ilmi-0065.000, columns 21
/// and 22 of `atmfVccTable`, `TruthValue` of RFC 1443 (true 1, false 2); the octets by hand after RFC 1157 and BER.
#[test]
fn indications_of_frame_discard_are_told() {
    let says = |traffic: TrafficParams, frame_discard| TrafficParams {
        frame_discard,
        ..traffic
    };
    let ubr = TrafficParams::ubr(0);
    let [yes, no] = [mib::TRUE, mib::FALSE];
    for (tx, rx, told) in [
        (ubr, cbr(1000), [yes, no]),
        (says(ubr, Some(false)), says(cbr(9), Some(true)), [no, yes]),
        (vbr(), says(vbr(), Some(true)), [no, yes]),
        (TrafficParams::none(), ubr, [no, yes]),
    ] {
        let pvc = |vc, path| Pvc {
            vc,
            path,
            tx,
            rx,
            status: PvcStatus::LocalUp,
        };
        let mut end = started(vec![pvc(CHANNEL, false), pvc(PATH, true)]);
        let columns = [mib::VCC_TX_FRAMES, mib::VCC_RX_FRAMES];
        let read = columns.map(|column| number(&mut end, mib::vcc(column, CHANNEL)));
        assert_eq!(read, told, "{tx} {rx}");
        let before = mib::vcc(mib::VCC_BEST_EFFORT, CHANNEL);
        let next = ask(
            &mut end,
            Kind::GetNext,
            vec![Binding::new(before, Value::Null)],
        );
        let answer = Message(Pdu::Request(next)).encode();
        // enterprises.353.2.5.1.1.21.0.0.100, INTEGER.
        let name = [
            0x06, 0x0f, 0x2b, 6, 1, 4, 1, 0x82, 0x61, 2, 5, 1, 1, 21, 0, 0, 100,
        ];
        let value = [0x02, 0x01, told[0] as u8];
        assert!(
            answer.ends_with(&[&name[..], &value[..]].concat()),
            "{answer:02x?}"
        );
    }
}

#[test]
fn permanent_connections_can_be_read() {
    let mut end = Ime::new(Config {
        pvcs: pvcs(),
        line_rate: 1234,
        ..network()
    });
    end.handle_input(Input::Start, Instant::ZERO).unwrap();
    settle(&mut end, Instant::ZERO);
    let kind = mib::traffic_descriptor;
    let vcc = |column| mib::vcc(column, CHANNEL);
    let tx = descriptor(&mut end, vcc, mib::VCC_TX);
    assert_eq!(tx, (kind(mib::NO_CLP_NO_SCR), vec![1000, 2500, 0, 0, 0]));
    let rx = descriptor(&mut end, vcc, mib::VCC_RX);
    assert_eq!(rx, (kind(mib::NO_CLP_SCR), vec![2000, 500, 32, 2500, 0]));
    assert_eq!(number(&mut end, vcc(mib::VCC_STATUS)), 4);
    assert_eq!(number(&mut end, vcc(mib::VCC_BEST_EFFORT)), mib::FALSE);
    assert_eq!(number(&mut end, vcc(mib::VCC_CATEGORY)), 2);
    let vpc = |column| mib::vpc(column, PATH.vpi);
    let tx = descriptor(&mut end, vpc, mib::VPC_TX);
    assert_eq!(tx, (kind(mib::NO_CLP_NO_SCR), vec![1234, 0, 0, 0, 0]));
    let rx = descriptor(&mut end, vpc, mib::VPC_RX);
    assert_eq!(rx, (kind(mib::NO_DESCRIPTOR), vec![0; 5]));
    assert_eq!(number(&mut end, vpc(mib::VPC_STATUS)), 3);
    assert_eq!(number(&mut end, vpc(mib::VPC_BEST_EFFORT)), mib::TRUE);
    assert_eq!(number(&mut end, vpc(mib::VPC_CATEGORY)), 6);
    for column in [mib::CONFIGURED_VPCS, mib::CONFIGURED_VCCS] {
        assert_eq!(number(&mut end, mib::atm_layer(column)), 1);
    }
    // The order of a walk: other groups, then paths, then channels, then the rest.
    let mut seen = Vec::new();
    let mut name = Oid::new(&[1, 3]);
    loop {
        let next = vec![Binding::new(name.clone(), Value::Null)];
        let answer = ask(&mut end, Kind::GetNext, next);
        if answer.status == ErrorStatus::NO_SUCH_NAME {
            break;
        }
        assert!(answer.bindings[0].name > name);
        name = answer.bindings[0].name.clone();
        seen.push(name.clone());
    }
    let below = |group: u32| {
        let group = mib::uni(&[group]);
        seen.iter()
            .filter(|n| n.strip_prefix(&group).is_some())
            .count()
    };
    assert_eq!((below(4), below(5)), (17, 20));
    assert!(
        seen.contains(&mib::of_lecs(1)),
        "the walk goes on behind them"
    );
    // The objects are read-only.
    let set = vec![Binding::new(vcc(mib::VCC_STATUS), Value::Integer(5))];
    assert_eq!(ask(&mut end, Kind::Set, set).status, ErrorStatus::READ_ONLY);
    let none = vec![Binding::new(mib::vpc(3, 8), Value::Null)];
    assert_eq!(
        ask(&mut end, Kind::Get, none).status,
        ErrorStatus::NO_SUCH_NAME
    );
}

/// Traps caused by one input, as specific number and numbers of the bindings.
fn traps(outputs: Vec<Output>) -> Vec<(i32, Vec<(Oid, i32)>)> {
    let trap = |output| match output {
        Output::Send(sdu) => match Message::decode(&sdu) {
            Ok(Message(Pdu::Trap(trap))) => Some(trap),
            _ => None,
        },
        _ => None,
    };
    let objects = |trap: &Trap| {
        let object = |b: &Binding| (b.name.clone(), b.value.integer().unwrap());
        trap.bindings.iter().map(object).collect()
    };
    let traps = outputs.into_iter().filter_map(trap);
    traps
        .inspect(|trap| assert_eq!(trap.generic, Trap::ENTERPRISE))
        .map(|trap| (trap.specific, objects(&trap)))
        .collect()
}

#[test]
fn what_changes_is_told() {
    let mut pair = Pair::up();
    let change = |pair: &mut Pair, pvcs| {
        let now = pair.now;
        pair.ends[0]
            .handle_input(Input::SetPvcs(pvcs), now)
            .unwrap();
        traps(settle(&mut pair.ends[0], now))
    };
    let channel = |status| {
        let vcc = |column| mib::vcc(column, CHANNEL);
        let label = [(vcc(1), 0), (vcc(3), 100), (vcc(2), 0)];
        (Trap::VCC_CHANGE, [&label[..], &[(vcc(4), status)]].concat())
    };
    let path = |status| {
        let vpc = |column| mib::vpc(column, 7);
        (
            Trap::VPC_CHANGE,
            vec![(vpc(1), 0), (vpc(2), 7), (vpc(3), status)],
        )
    };
    assert_eq!(change(&mut pair, pvcs()), [channel(4), path(3)]);
    assert_eq!(change(&mut pair, pvcs()), []);
    let mut fewer = pvcs();
    fewer.pop();
    fewer[0].status = PvcStatus::EndToEndDown;
    assert_eq!(change(&mut pair, fewer), [path(5), channel(3)]);
    assert_eq!(change(&mut pair, Vec::new()), [channel(5)]);
    // The peer, once told, continues.
    pair.tell(0, Input::SetPvcs(pvcs()));
    pair.take(1);
    pair.run(Duration::from_secs(60));
    assert!(pair.take(1).is_empty());
    assert_eq!(pair.ends[1].state(), State::Verifying);
    // A peer without traps learns of them by reading.
    let mut alone = Ime::new(network());
    alone.handle_input(Input::Start, Instant::ZERO).unwrap();
    settle(&mut alone, Instant::ZERO);
    alone
        .handle_input(Input::SetPvcs(pvcs()), Instant::ZERO)
        .unwrap();
    assert_eq!(settle(&mut alone, Instant::ZERO), []);
}

fn open(config: Config) -> Config {
    Config {
        detect: true,
        ..config
    }
}
/// The results at both ends, and the number of addresses at the first one.
fn found(a: Config, b: Config) -> ([Option<Link>; 2], usize) {
    let detect = [a.detect, b.detect];
    let mut pair = Pair::new([a, b]);
    pair.tell(0, Input::Start);
    pair.tell(1, Input::Start);
    pair.run(Duration::from_secs(20));
    let links = [0, 1].map(|end| pair.ends[end].snapshot().link);
    for end in [0, 1] {
        assert_eq!(pair.ends[end].state(), State::Verifying);
        let events = pair.take(end);
        let told = events
            .iter()
            .position(|event| matches!(event, Event::Link(_)));
        let up = events
            .iter()
            .position(|event| matches!(event, Event::Up { .. }));
        assert_eq!(told.is_some(), detect[end]);
        assert!(told < up, "{events:?}");
        assert_eq!(
            told.map(|at| events[at].clone()),
            links[end].filter(|_| detect[end]).map(Event::Link)
        );
    }
    (links, pair.ends[0].snapshot().addresses.len())
}

#[test]
fn both_ends_agree_who_is_the_network() {
    let other = |number| Config {
        number,
        system: MacAddr([3; 6]),
        ..network()
    };
    let (net, usr) = (Some(Link::Uni(Side::Network)), Some(Link::Uni(Side::User)));
    // A host, detected or configured.
    assert_eq!(found(open(network()), user()), ([net, usr], 1));
    assert_eq!(found(network(), user()), ([net, usr], 1));
    assert_eq!(found(open(network()), open(user())), ([net, usr], 1));
    // Two switches: the greater identifier has the network side, then the greater port.
    let (higher, lower) = (
        Some(Link::Iisp(Side::Network)),
        Some(Link::Iisp(Side::User)),
    );
    assert_eq!(found(open(network()), open(other(1))), ([lower, higher], 0));
    assert_eq!(found(open(other(1)), open(network())), ([higher, lower], 0));
    let twin = Config {
        number: 2,
        ..network()
    };
    assert_eq!(found(open(network()), open(twin)), ([lower, higher], 0));
    // PNNI is used only if both ends support it.
    let pnni = |config| Config {
        nni: NniSignalling::Pnni,
        ..open(config)
    };
    let both = Some(Link::Pnni);
    assert_eq!(found(pnni(network()), pnni(other(1))), ([both, both], 0));
    assert_eq!(found(pnni(network()), open(other(1))), ([lower, higher], 0));
    // Neither host assigns an address to the other.
    let (hosts, second) = (Some(Link::Hosts), MacAddr([2, 9, 9, 9, 9, 9]));
    let twin = Config {
        system: second,
        esis: vec![second],
        ..user()
    };
    assert_eq!(found(open(user()), open(twin)), ([hosts, hosts], 0));
}

/// Debian's `ilmid` refuses unknown objects (`e-ilmi` of the recordings). A peer without a device type counts as the
/// missing counterpart.
#[test]
fn a_peer_without_a_device_type() {
    let peer = Peer::default();
    for config in [open(network()), open(user())] {
        assert_eq!(Link::between(&config, &peer), Link::Uni(config.side));
    }
}

#[test]
fn another_kind_of_peer_takes_its_place() {
    let mut pair = Pair::new([open(network()), user()]);
    pair.tell(0, Input::Start);
    pair.tell(1, Input::Start);
    pair.run(Duration::from_secs(20));
    pair.take(0);
    pair.ends[1] = Ime::new(open(Config {
        system: MacAddr([1; 6]),
        ..network()
    }));
    pair.tell(1, Input::Start);
    pair.run(Duration::from_secs(20));
    let events = pair.take(0);
    let (gone, found) = (Event::Down, Event::Link(Link::Iisp(Side::Network)));
    let at = |event: &Event| events.iter().position(|one| one == event);
    assert!(at(&gone).is_some() && at(&gone) < at(&found), "{events:?}");
    assert!(pair.ends[0].snapshot().addresses.is_empty());
    assert!(!pair.ends[1].snapshot().prefixes.contains(&PREFIX));
}
