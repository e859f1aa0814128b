//! Packets of the recording of two Linux hosts; this client replaces one of the Linux hosts.
//!
//! Source: recording `g-mpoa` at 12.499, 12.505, 12.514 and 12.521 s; the LLC header is left out here.

use super::*;
use aerostat_wire::mpoa::Tag;
use aerostat_wire::nhrp::Body;

const REQUEST: &str = "00030800000000000040004c2906004401861400040400000000000147000580ffe1000000f21a26d8\
    0020ea0000b0020a0800020a0700010020000000000000000000001001000080000000";
const IMPOSITION: &str = "0003080000000000004000679a3f004401801400040400000000000147000580ffe1000000f21a26d8\
    0020ea0000b0020a0800020a07000100200000000004b0000000009000001700000065000000010e0020ea0000c0\
    02000000009908001001000080000000";
const IMPOSITION_REPLY: &str = "00030800000000000040007f5489005801811400040400000000000147000580ffe1000000f2\
    1a26d80020ea0000b0020a0800020a0700010020000005dc00001400000047000580ffe1000000f21a26d80020ea0000\
    c00210010004010000009000001700000065000000010e0020ea0000c0020000000099080080000000";
const REPLY: &str = "000308000000000000400068dad0005c01871400040400000000000147000580ffe1000000f21a26d8\
    0020ea0000b0020a0800020a0700010020000005dc04b01400040047000580ffe1000000f21a26d80020ea0000c0020a\
    070001100100040100000080000000";

fn read(hex: &str) -> Packet {
    let digits: Vec<u8> = hex
        .bytes()
        .map(|c| (c as char).to_digit(16).expect("hex") as u8)
        .collect();
    let octets: Vec<u8> = digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect();
    Packet::decode(&octets).expect("a recorded packet")
}

fn atm(last: u8, selector: u8) -> AtmAddress {
    let prefix = [
        0x47, 0, 5, 0x80, 0xff, 0xe1, 0, 0, 0, 0xf2, 0x1a, 0x26, 0xd8,
    ];
    AtmAddress::from_parts(prefix, MacAddr([0, 0x20, 0xea, 0, 0, last]), selector)
}

/// The client at one end of the recording: B asks, and A answers; both know the MPS stub A3.
fn rig(last: u8) -> Rig {
    let mut rig = Rig::new(MpcConfig::new(atm(last, 1), atm(last, 2)));
    rig.input(Input::Start);
    rig.input(Input::LecUp {
        itf: 0,
        elan_id: 1,
        mtu: 1500,
    });
    rig.associate(MPS_MAC, mps_tlv(atm(0xa0, 3)));
    rig
}

#[test]
fn asks_and_understands_as_linux_does() {
    let mut rig = rig(0xb0);
    let (from, to) = (
        IpAddr::V4(Ipv4Addr::new(10, 8, 0, 2)),
        IpAddr::V4(Ipv4Addr::new(10, 7, 0, 1)),
    );
    let frame = ethernet(MPS_MAC, &packet(from, to, 64, 64));
    let out: Sent = (0..10).map(|_| rig.outbound(0, frame.clone())).collect();
    let control = connects(&out)[0].0;
    let sent = control_packets(&rig.connected(control, 50))[0].1.clone();
    let id = sent.common().unwrap().request_id;
    let renumbered = |packet: &Packet, id| {
        let mut packet = packet.clone();
        if let Body::Common(common) = &mut packet.body {
            common.request_id = id;
        }
        packet
    };
    assert_eq!(renumbered(&sent, 1), read(REQUEST));

    let out = rig.control(control, &renumbered(&read(REPLY), id));
    let (data, called) = connects(&out)[0];
    assert_eq!(called, atm(0xc0, 2));
    rig.connected(data, 62);
    let sdu = sdus(&rig.outbound(0, frame))[0].1.clone();
    assert_eq!(
        sdu,
        mpoa::shortcut_sdu(Some(0x0100_0000), &packet(from, to, 63, 64))
    );
}

#[test]
fn accepts_what_linux_accepted() {
    let mut rig = rig(0xc0);
    let control = rig.call_in(0, atm(0xa0, 3), atm(0xc0, 1));
    let ours = control_packets(&rig.control(control, &read(IMPOSITION)))[0]
        .1
        .clone();
    let linux = read(IMPOSITION_REPLY);
    // The two differ in three fields: our own tag; the imposed holding time, where Linux says 0; and the order of the
    // extensions, which here is that of the request.
    let Ok(Some(Tag::Value(tag))) = Tag::of(&ours) else {
        panic!("no tag")
    };
    assert!(tag != 0 && Tag::of(&linux) == Ok(Some(Tag::Value(0x0100_0000))));
    assert_eq!(DllHeader::of(&ours), DllHeader::of(&linux));
    let mut expected = linux.common().unwrap().clone();
    expected.cies[0].holding_s = 1200;
    assert_eq!(ours.common(), Some(&expected));
    assert_eq!(ours.encode().len(), linux.encode().len());
}
