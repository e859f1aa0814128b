//! Frames of the recorded Linux client and servers against our servers and client.
//!
//! Source: `crates/wire/tests/vectors/linux-atm/g-mpoa.jsonl` (Debian linux-atm 2.5.1, kernel 5.10), LANE v2.

use super::*;
use aerostat_proto::lane::lec::LecState;
use aerostat_proto::{AtmRequest, ConnId};
use aerostat_wire::lane::{Control, ControlFrame, Flags, OpCode, Status};
use aerostat_wire::{Qos, Sap, Vc};

/// First control frame of the recording with this op-code, from the client of user A or to it.
fn recorded(op: OpCode, with_tlvs: bool) -> ControlFrame {
    let text = include_str!("../../../../wire/tests/vectors/linux-atm/g-mpoa.jsonl");
    let frames = text.lines().filter_map(|line| {
        let (_, rest) = line.split_once("\"hex\": \"")?;
        let digits = rest.split('"').next()?.as_bytes();
        let digit = |d: u8| char::from(d).to_digit(16).unwrap() as u8;
        let octets: Vec<u8> = (digits.chunks(2))
            .map(|pair| digit(pair[0]) << 4 | digit(pair[1]))
            .collect();
        match Control::decode(&octets) {
            Ok(Control::Frame(frame)) => Some(*frame),
            _ => None,
        }
    });
    let mut hits = frames.filter(|f| f.op == op && (f.tlvs.count() > 0) == with_tlvs);
    hits.next().expect("in the recording")
}

/// Opens a control direct connection as the Linux client does, and replays its frames.
#[test]
fn linux_client_at_our_servers() {
    let configure = recorded(OpCode::CONFIGURE, false);
    let join = recorded(OpCode::JOIN, false);
    let client = join.source_atm;
    let mut les = Les::new(les_config());
    let mut lecs_config = LecsConfig {
        address: AtmAddress::LECS_ANYCAST,
        elans: vec![Elan::new(elan(), address(0xa1))],
        default: Some(elan()),
        ..LecsConfig::default()
    };
    lecs_config.well_known = false;
    let mut lecs = Lecs::new(lecs_config);
    let now = Instant::ZERO;
    let conn = ConnId(ConnId::INCOMING);
    let incoming = AtmEvent::Incoming {
        conn,
        calling: Some(client),
        called: address(0xa1),
        sap: Sap::LANE_CONTROL,
        qos: Qos::ubr(1516),
        multipoint: false,
    };
    // LECS: the answer differs from the answer of the Linux LECS only in the address of the LES.
    lecs.handle_input(lecs::Input::Start, now).unwrap();
    lecs.handle_input(lecs::Input::Atm(incoming), now).unwrap();
    let sdu = configure.encode();
    let event = AtmEvent::Received {
        conn,
        sdu: &sdu[..],
    };
    lecs.handle_input(lecs::Input::Atm(event), now).unwrap();
    let answers = aerostat_proto::machine::settle(&mut lecs, now);
    let sent = answers.into_iter().find_map(|output| match output {
        lecs::Output::Atm(AtmRequest::Send { sdu, .. }) => Some(sdu),
        _ => None,
    });
    let mut want = recorded(OpCode::CONFIGURE.response(), false);
    want.target_atm = address(0xa1);
    assert_eq!(sent, Some(want.encode()));

    // LES: join, then LE_ARP for the BUS and the registration of the device type.
    les.handle_input(les::Input::Start, now).unwrap();
    les.handle_input(les::Input::Atm(incoming), now).unwrap();
    let mut play = |frame: &ControlFrame| {
        let sdu = frame.encode();
        let event = AtmEvent::Received {
            conn,
            sdu: &sdu[..],
        };
        les.handle_input(les::Input::Atm(event), now).unwrap();
        let mut sent = Vec::new();
        for output in aerostat_proto::machine::settle(&mut les, now) {
            match output {
                // Control distribute, called after the join request and before the answer.
                les::Output::Atm(AtmRequest::Connect { conn, called, .. }) => {
                    assert_eq!(called, client);
                    let vc = Vc::new(0, 40);
                    let event = AtmEvent::Connected {
                        conn,
                        vc,
                        qos: Qos::ubr(0),
                    };
                    les.handle_input(les::Input::Atm(event), now).unwrap();
                }
                les::Output::Atm(AtmRequest::Send { sdu, .. }) => sent.push(sdu),
                _ => {}
            }
        }
        for output in aerostat_proto::machine::settle(&mut les, now) {
            if let les::Output::Atm(AtmRequest::Send { sdu, .. }) = output {
                sent.push(sdu);
            }
        }
        assert_eq!(sent.len(), 1, "{frame:?}");
        match Control::decode(&sent[0]) {
            Ok(Control::Frame(frame)) => *frame,
            other => panic!("{other:?}"),
        }
    };
    let got = play(&join);
    let mut want = recorded(OpCode::JOIN.response(), false);
    // The Linux LES assigns byte-swapped LECIDs and knows no ELAN-ID.
    want.lecid = 1;
    want.tlvs = got.tlvs.clone();
    assert_eq!(got, want);
    assert!(got.flags.contains(Flags::V2_REQUIRED));
    let mut arp = recorded(OpCode::ARP, false);
    arp.lecid = 1;
    let mut want = arp.response(Status::SUCCESS);
    want.target_atm = address(0xa2);
    assert_eq!(play(&arp), want);
    let mut register = recorded(OpCode::REGISTER, true);
    register.lecid = 1;
    assert_eq!(play(&register).status, Status::SUCCESS);
    assert!(les.snapshot().clients[0].macs.contains(&client.esi()));
}

/// Answers our client as the Linux servers answered theirs: byte-swapped LECID, a TLV count without TLVs, and
/// point-to-point connections instead of point-to-multipoint ones.
#[test]
fn our_client_at_linux_servers() {
    let template = recorded(OpCode::JOIN.response(), false);
    let bus_arp = recorded(OpCode::ARP.response(), false);
    let (les, bus) = (address(0xa1), bus_arp.target_atm);
    let config = LecConfig {
        les: Some(les),
        tlvs: vec![mps(0).to_tlv()],
        ..lec_config(0)
    };
    let own = config.address;
    let mut lec = Lec::new(config);
    let now = Instant::ZERO;
    let mut incoming = ConnId::INCOMING;
    lec.handle_input(lec::Input::Start, now).unwrap();
    for _ in 0..20 {
        for output in aerostat_proto::machine::settle(&mut lec, now) {
            let mut events = Vec::new();
            let mut answer = None;
            match output {
                lec::Output::Atm(AtmRequest::Connect {
                    conn, called, sap, ..
                }) => {
                    let vc = Vc::new(0, 50);
                    events.push(AtmEvent::Connected {
                        conn,
                        vc,
                        qos: Qos::ubr(0),
                    });
                    // The Linux LES and BUS call back at once.
                    incoming += 1;
                    events.push(AtmEvent::Incoming {
                        conn: ConnId(incoming),
                        calling: Some(called),
                        called: own,
                        sap,
                        qos: Qos::ubr(1516),
                        multipoint: false,
                    });
                }
                lec::Output::Atm(AtmRequest::Accept { conn, terms: None }) => {
                    let vc = Vc::new(0, 51);
                    events.push(AtmEvent::Connected {
                        conn,
                        vc,
                        qos: Qos::ubr(0),
                    });
                }
                lec::Output::Atm(AtmRequest::Send { conn, sdu }) => {
                    let Ok(Control::Frame(request)) = Control::decode(&sdu) else {
                        continue;
                    };
                    let mut response = request.response(Status::SUCCESS);
                    response.tlvs.missing = request.tlvs.count();
                    if request.op == OpCode::JOIN {
                        response.lecid = template.lecid;
                        response.flags = template.flags;
                        response.lan_type = template.lan_type;
                        response.max_frame = template.max_frame;
                    } else if request.op == OpCode::ARP {
                        response.target_atm = bus;
                    }
                    answer = Some((conn, response.encode()));
                }
                _ => {}
            }
            for event in events {
                lec.handle_input(lec::Input::Atm(event), now).unwrap();
            }
            if let Some((conn, sdu)) = answer {
                let event = AtmEvent::Received {
                    conn,
                    sdu: &sdu[..],
                };
                lec.handle_input(lec::Input::Atm(event), now).unwrap();
            }
        }
    }
    let snapshot = lec.snapshot();
    assert_eq!(snapshot.state, LecState::Operational);
    assert_eq!(snapshot.lecid, 0x0100);
    assert!(snapshot.v2);
    assert_eq!(snapshot.bus, bus);
}
