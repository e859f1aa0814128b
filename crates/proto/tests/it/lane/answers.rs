//! A LES alone: its answers to single requests.

use super::*;
use aerostat_proto::{AtmRequest, ConnId};
use aerostat_wire::lane::{Control, ControlFrame, LanDestination, OpCode, Status};
use aerostat_wire::{Qos, Sap, Vc};

const CLIENT: ConnId = ConnId(ConnId::INCOMING);

/// Gives the LES an event; connects its calls, and gives its frames to the client.
fn tell_les(les: &mut Les, event: AtmEvent<&[u8]>) -> Vec<ControlFrame> {
    les.handle_input(les::Input::Atm(event), Instant::ZERO)
        .unwrap();
    let mut frames = Vec::new();
    while let Some(output) = les.poll_output() {
        match output {
            les::Output::Atm(AtmRequest::Connect { conn, .. }) => {
                let vc = Vc::new(0, 99);
                let up = AtmEvent::Connected {
                    conn,
                    vc,
                    qos: Qos::ubr(0),
                };
                les.handle_input(les::Input::Atm(up), Instant::ZERO)
                    .unwrap();
            }
            les::Output::Atm(AtmRequest::Send { conn: CLIENT, sdu }) => {
                let Ok(Control::Frame(frame)) = Control::decode(&sdu) else {
                    panic!("no control frame");
                };
                frames.push(*frame);
            }
            _ => {}
        }
    }
    frames
}

/// A LES with a caller who has not joined.
fn les_with_caller() -> Les {
    let mut les = Les::new(les_config());
    les.handle_input(les::Input::Start, Instant::ZERO).unwrap();
    let incoming = AtmEvent::Incoming {
        conn: CLIENT,
        called: les_config().address,
        calling: Some(address(1)),
        sap: Sap::LANE_CONTROL,
        qos: Qos::ubr(1516),
        multipoint: false,
    };
    tell_les(&mut les, incoming);
    let vc = Vc::new(0, 40);
    tell_les(
        &mut les,
        AtmEvent::Connected {
            conn: CLIENT,
            vc,
            qos: Qos::ubr(0),
        },
    );
    les
}

fn ask(les: &mut Les, frame: &ControlFrame) -> ControlFrame {
    let sdu = frame.encode();
    let mut frames = tell_les(
        les,
        AtmEvent::Received {
            conn: CLIENT,
            sdu: &sdu,
        },
    );
    assert_eq!(frames.len(), 1, "one answer to {:?}", frame.op);
    frames.remove(0)
}

fn request(op: OpCode) -> ControlFrame {
    let mut frame = ControlFrame::new(op);
    frame.source = LanDestination::mac(mac(1));
    frame.source_atm = address(1);
    frame
}

#[test]
fn another_version_of_the_protocol_is_refused() {
    let mut les = les_with_caller();
    let mut join = request(OpCode::JOIN);
    join.version = 2;
    assert_eq!(ask(&mut les, &join).status, Status::VERSION);
    join.version = 1;
    let answer = ask(&mut les, &join);
    assert_eq!((answer.status, answer.lecid), (Status::SUCCESS, 1));
    let mut arp = request(OpCode::ARP);
    (arp.lecid, arp.version) = (1, 3);
    assert_eq!(ask(&mut les, &arp).status, Status::VERSION);
}

#[test]
fn the_les_vouches_for_its_bus_alone() {
    let mut les = les_with_caller();
    let lecid = ask(&mut les, &request(OpCode::JOIN)).lecid;
    let mut verify = request(OpCode::VERIFY);
    verify.lecid = lecid;
    for (caller, status) in [
        (les_config().bus, Status::SUCCESS),
        (address(0xb2), Status::ATM_ADDRESS),
    ] {
        verify.target_atm = caller;
        let answer = ask(&mut les, &verify);
        assert_eq!(answer.op, OpCode::VERIFY.response());
        assert_eq!((answer.status, answer.target_atm), (status, caller));
    }
}

#[test]
fn only_its_own_registrations_can_a_client_take_back() {
    let mut les = les_with_caller();
    let lecid = ask(&mut les, &request(OpCode::JOIN)).lecid;
    let mut register = request(OpCode::REGISTER);
    register.lecid = lecid;
    register.source = LanDestination::mac(mac(9));
    assert_eq!(ask(&mut les, &register).status, Status::SUCCESS);
    assert_eq!(les.snapshot().clients[0].macs.len(), 2);
    register.op = OpCode::UNREGISTER;
    assert_eq!(ask(&mut les, &register).status, Status::SUCCESS);
    assert_eq!(les.snapshot().clients[0].macs, [mac(1)]);
    // To unregister an address that the client never registered is no error.
    assert_eq!(ask(&mut les, &register).status, Status::SUCCESS);
    assert_eq!(les.snapshot().clients[0].macs, [mac(1)]);
}
