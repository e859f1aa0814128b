//! Calls of single cells, and addresses that programs add to the interface of a host.

use super::*;
use aerostat_proto::socket::{ADDED, Change};

fn calls(
    net: &mut Net<'_>,
    node: NodeId,
    number: u16,
    called: &str,
    (sap, qos): (&str, &str),
) -> SocketRef {
    let socket = net.open(node, number + 1000);
    let mut request = connect(socket, called, qos, silent());
    if let Request::Connect {
        sap: access_point, ..
    } = &mut request
    {
        *access_point = sap.into();
    }
    net.ask(node, number, request);
    socket
}

fn cell(number: u8) -> UserCell {
    let (pti, clp) = (Pti::new(number & 1), number & 2 != 0);
    let payload = [number; 48];
    UserCell { pti, clp, payload }
}

/// A call with AAL0: the called side must ask for single cells, too. Each SDU is a cell, through the network and inside
/// a host.
#[test]
fn a_call_carries_single_cells_if_both_ends_say_so() {
    let lab = lab();
    let builder = Builder::new(&lab, 1, Flavour::Embedded).with_programs();
    for far in ["y", "x"] {
        let mut net = Net::new(&builder);
        let (x, y) = (net.node("x"), net.node(far));
        let (listener, address) = net.listener(y);
        let caller = calls(&mut net, x, 1, &address, ("", "aal0,ubr:pcr=20000"));
        net.until(net.now + Duration::from_millis(100));
        let qos = net.told.iter().find_map(|(_, at, what)| match what {
            ToPrograms::Offer { offer, .. } if *at == y => Some(offer.qos.clone()),
            _ => None,
        });
        assert!(qos.is_some_and(|qos| qos.starts_with("ubr,aal0:max_pcr=20000,sdu=52")));
        let offer = net.offer(y).unwrap();
        for (number, wrong) in [(2, ""), (3, "ubr"), (4, "aal0,ubr:sdu=48")] {
            let answer = net.done(y, number, accept(listener, offer, wrong, silent()));
            assert!(
                matches!(&answer, Answer::Failed(f) if f.errno == 22 && f.field == "qos"),
                "{answer:?}"
            );
        }
        net.ask(y, 5, accept(listener, offer, "aal0,ubr", silent()));
        net.until(net.now + Duration::from_millis(100));
        let Some(Answer::Connected { qos, label, .. }) = net.answer(x, 1).cloned() else {
            panic!("{:?}", net.failure(x, 1));
        };
        assert_eq!(qos, "ubr,aal0:max_pcr=20000,sdu=52");
        assert_eq!(label == "local", far == "x");
        for number in 0..10 {
            assert!(net.world.asks_to_write(x, caller));
            net.write(x, caller, cell(number).encode(Vc::new(0, 0)).to_vec());
            net.until(net.now + Duration::from_millis(1));
        }
        let got = net.told.iter().filter_map(|(_, at, what)| match what {
            ToPrograms::Deliver { sdus, .. } if *at == y => {
                Some(UserCell::decode(sdus.first()).unwrap())
            }
            _ => None,
        });
        assert!(got.eq((0..10).map(cell)), "to {far}");
        // What is no cell is a breach of the contract.
        net.write(x, caller, vec![0; 53]);
        net.until(net.now + Duration::from_millis(100));
        let status = net.status(x, 6, caller);
        assert_eq!((&*status.state, status.cause), ("ended", 111));
    }
    // A listener of the lab file takes AAL5 only: AAL parameters cannot be supported.
    let mut net = Net::new(&builder);
    let x = net.node("x");
    let ttcp = aerostat_wire::Sap {
        bhli: Some(aerostat_wire::Bhli::TTCP),
        ..Default::default()
    };
    calls(&mut net, x, 2, "y", (&ttcp.to_string(), "aal0,ubr"));
    net.until(net.now + Duration::from_millis(100));
    let (failure, _) = net.failure(x, 2).expect("refused");
    assert_eq!(failure.cause, 78, "{failure:?}");
}

fn change(net: &mut Net<'_>, node: NodeId, number: u16, change: Change, address: &str) -> u16 {
    let address = address.to_owned();
    match net.done(node, number, Request::Addresses { change, address }) {
        Answer::Done => 0,
        Answer::Failed(failure) => failure.errno,
        other => panic!("{other:?}"),
    }
}

fn bind(net: &mut Net<'_>, node: NodeId, number: u16, address: &str) -> Result<SocketRef, u16> {
    let socket = net.open(node, number);
    match net.done(node, number + 1, requests::bind(socket, address, "")) {
        Answer::Failed(failure) => return Err(failure.errno),
        answer => assert!(matches!(answer, Answer::Bound { .. }), "{answer:?}"),
    }
    assert_eq!(net.done(node, number + 2, listen(socket, 1)), Answer::Done);
    Ok(socket)
}

fn shown(net: &mut Net<'_>, node: NodeId, number: u16) -> Vec<String> {
    let request = Request::Interface {
        zero_pdus: false,
        zero_cells: false,
    };
    match net.done(node, number, request) {
        Answer::Interface(interface) => interface.addresses,
        other => panic!("{other:?}"),
    }
}

/// With ILMI an address that a program adds is registered with the switch, and others call it there; once it is removed
/// it is withdrawn. Without ILMI it is known inside the host alone.
#[test]
fn programs_add_addresses_and_remove_them() {
    let text = LAB.replace(
        "  x: {",
        "  z: { on: s, elan: a, ip: 10.1.0.30, ilmi: true }\n  x: {",
    );
    let mut net = Net::of(aerostat_lab::parse("p.atm.yml", &text, &[]).unwrap().lab);
    let (x, z) = (net.node("x"), net.node("z"));
    let own = net.builder.lab().node(z).attachment().unwrap().address;
    let own = format!("{:x}", own.with_selector(0));
    // The prefix of the host, another end system identifier, selector 5.
    let added = format!("{}02000000007705", &own[..26]);
    let zero = format!("{}00", &added[..38]);
    assert_eq!(bind(&mut net, z, 10, &added), Err(99), "not yet");
    assert_eq!(change(&mut net, z, 20, Change::Add, &added), 0);
    for (number, kind, address, errno) in [
        (21, Change::Add, &*added, 17),
        (22, Change::Add, &*own, 17),
        (23, Change::Remove, &*own, 2),
        (24, Change::Add, "xyz", 22),
        (25, Change::Add, &"0".repeat(40), 22),
    ] {
        assert_eq!(
            change(&mut net, z, number, kind, address),
            errno,
            "{kind:?} {address}"
        );
    }
    net.until(net.now + Duration::from_secs(1));
    assert_eq!(shown(&mut net, z, 30), [own.clone(), zero]);
    bind(&mut net, z, 40, &added).unwrap();
    calls(&mut net, x, 50, &added, ("", "ubr"));
    net.until(net.now + Duration::from_millis(500));
    let called = net.told.iter().find_map(|(_, at, what)| match what {
        ToPrograms::Offer { offer, .. } if *at == z => Some(offer.called.clone()),
        _ => None,
    });
    assert_eq!(called.as_ref(), Some(&added));
    // The bound is an error with its number; then all go, and the switch has no route any more.
    for number in 1..ADDED as u16 {
        let address = format!("{}0200000001{number:02x}00", &own[..26]);
        assert_eq!(
            change(&mut net, z, 100 + number, Change::Add, &address),
            0,
            "{number}"
        );
    }
    let address = format!("{}02000000ffff00", &own[..26]);
    assert_eq!(change(&mut net, z, 200, Change::Add, &address), 12);
    net.until(net.now + Duration::from_secs(5));
    assert_eq!(shown(&mut net, z, 201).len(), ADDED + 1);
    assert_eq!(change(&mut net, z, 202, Change::Reset, ""), 0);
    net.until(net.now + Duration::from_secs(5));
    calls(&mut net, x, 60, &address, ("", "ubr"));
    calls(&mut net, x, 61, &added, ("", "ubr"));
    net.until(net.now + Duration::from_secs(1));
    assert!(net.failure(x, 60).is_some() && net.failure(x, 61).is_some());
    // Without ILMI: inside the host.
    assert_eq!(change(&mut net, x, 70, Change::Add, &added), 0);
    bind(&mut net, x, 80, &added).unwrap();
    calls(&mut net, x, 90, &added, ("", "ubr"));
    assert!(net.offer(x).is_some(), "an offer at once");
}
