//! One line per SDU: the worked examples and recordings that the decoders are tested with, and properties.

use aerostat_testing::recording::{ALL, sdus, unhex};
use aerostat_wire::lane::{Control, ControlFrame, DataFrame, ElanName, OpCode, Status};
use aerostat_wire::nhrp::LLC;
use aerostat_wire::sscop::Seq24;
use aerostat_wire::summary::{is_control, summary};
use aerostat_wire::{SscopPdu, Vc};
use proptest::prelude::*;

const DATA: Vc = Vc::new(0, 33);

fn line(vc: Vc, sdu: &[u8]) -> (&'static str, String) {
    let summary = summary(vc, sdu);
    assert_eq!(summary.control, is_control(vc, sdu), "{}", summary.text);
    (summary.protocol, summary.text)
}

fn q2931(hex: &str) -> String {
    let info = unhex(hex);
    let s = Seq24::new(3);
    let (protocol, text) = line(Vc::SIGNALLING, &SscopPdu::Data { s, info }.encode());
    assert_eq!(protocol, "q2931");
    text
}

#[test]
fn signalling() {
    let setup = "09 03 00 00 01 05 80 00 5f
        58 80 00 09 05 8c 23 e4 81 23 e4 84 00
        59 80 00 09 84 05 63 b7 85 05 63 b7 be
        5e 80 00 03 10 80 80
        5f 80 00 01 cc
        70 80 00 15 82 47 00 05 80 ff e1 00 00 00 f2 1a 01 02 00 20 48 0d 3e 4f 00
        6c 80 00 16 02 80 47 00 05 80 ff e1 00 00 00 f2 1a 01 02 00 20 48 0a 1b 2c 00
        5c 80 00 02 00 00";
    assert_eq!(
        q2931(setup),
        "SETUP cr 1 called 47.0005.80.ffe100.0000.f21a.0102.0020480d3e4f.00 \
         calling 47.0005.80.ffe100.0000.f21a.0102.0020480a1b2c.00 blli llc"
    );
    for (hex, text) in [
        (
            "09 03 80 00 01 07 80 00 09 5a 80 00 05 88 00 00 00 23",
            "CONNECT cr 1 0.35",
        ),
        (
            "09 03 00 00 01 4d 80 00 06 08 80 00 02 80 90",
            "RELEASE cr 1 cause 16",
        ),
        (
            "09 03 80 00 01 7d 80 00 0b 14 80 00 01 0a 08 80 00 02 80 9e",
            "STATUS cr 1 state 10 cause 30",
        ),
        (
            "09 03 80 00 01 81 80 00 07 54 80 00 03 00 00 01",
            "ADD PARTY ACKNOWLEDGE cr 1 party 1",
        ),
        ("09 03 00 00 01 ee 80 00 00", "message 0xee cr 1"),
        (
            "08 03 00 00 01 07 80 00 00",
            "bad: protocol discriminator at offset 0: bad value 0x8",
        ),
    ] {
        assert_eq!(q2931(hex), text);
    }
    let (ps, s) = (Seq24::new(3), Seq24::new(4));
    let poll = SscopPdu::Poll { ps, s }.encode();
    assert_eq!(
        line(Vc::SIGNALLING, &poll),
        ("sscop", "POLL ps 3 s 4".into())
    );
    assert_eq!(
        line(Vc::SIGNALLING, &[0; 3]).1,
        "bad: PDU length at offset 0: bad value 0x3"
    );
}

#[test]
fn lan_emulation() {
    let text = include_str!("../vectors/lane/control.hex");
    let mut shown = Vec::new();
    for part in text.split("\n[").skip(1) {
        let (_, hex) = part.split_once(']').unwrap();
        let digits: String = hex.chars().filter(char::is_ascii_hexdigit).collect();
        shown.push(line(DATA, &unhex(&digits)).1);
    }
    assert_eq!(
        shown,
        [
            "LE_CONFIGURE_REQUEST elan elan1 from 47.0005.80.ffde00.0000.0000.0101.020000000031.00",
            "LE_CONFIGURE_RESPONSE elan elan1 les 47.0005.80.ffde00.0000.0000.0101.020000000041.01",
            "LE_JOIN_REQUEST elan elan1 from 47.0005.80.ffde00.0000.0000.0101.020000000031.00",
            "LE_ARP_REQUEST 02:00:00:00:00:22",
            "READY_IND",
        ]
    );
    let evil = ControlFrame {
        elan: ElanName::new("a\u{1b}[2J\n").unwrap(),
        status: Status::DENIED,
        lecid: 7,
        ..ControlFrame::new(OpCode::JOIN.response())
    };
    assert_eq!(
        line(DATA, &evil.encode()).1,
        "LE_JOIN_RESPONSE elan a\\u{1b}[2J\\n lecid 7, status 7 (access denied)"
    );
    assert_eq!(
        line(DATA, &Control::ReadyIndication.encode()).1,
        "READY_IND"
    );
    assert_eq!(
        line(DATA, &evil.encode()[..20]),
        (
            "lane",
            "bad: source LAN destination at offset 18: too short".into()
        )
    );
    let arp = "ffffffffffff 020000000031 0806 0001 0800 06 04 0001
        020000000031 0a01000a 000000000000 0a010014";
    assert_eq!(
        line(DATA, &DataFrame::encode(3, &unhex(arp))),
        (
            "lane data",
            "Ethernet 02:00:00:00:00:31 → ff:ff:ff:ff:ff:ff ARP who has 10.1.0.20, tell 10.1.0.10 \
             (LECID 3)"
                .into()
        )
    );
    let tagged = arp.replacen("0806", "8100 a014 0806", 1);
    assert_eq!(
        line(DATA, &DataFrame::encode(3, &unhex(&tagged))).1,
        "Ethernet 02:00:00:00:00:31 → ff:ff:ff:ff:ff:ff VLAN 20 priority 5 \
         ARP who has 10.1.0.20, tell 10.1.0.10 (LECID 3)"
    );
    let reserved = arp.replacen("0806", "8100 0fff 0806", 1);
    assert_eq!(
        line(DATA, &DataFrame::encode(3, &unhex(&reserved))).1,
        "bad: VID at offset 14: bad value 0xfff (LECID 3)"
    );
}

/// A resolution and what follows. All packets of the file except the last are without LLC header.
#[test]
fn resolution() {
    let text = include_str!("../vectors/mpoa/worked-sequence.hex");
    let packets: Vec<Vec<u8>> = text
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(unhex)
        .collect();
    let shown: Vec<_> = packets[..6]
        .iter()
        .map(|packet| line(DATA, &[&LLC[..], packet].concat()))
        .collect();
    let egress = "47.0005.80.ffde00.0000.0000.0101.020000000012.51";
    assert_eq!(
        shown,
        [
            (
                "mpoa",
                "MPOA Resolution Request id 17 10.1.0.11 → 10.2.0.20".to_owned()
            ),
            (
                "nhrp",
                "NHRP Resolution Request id 8193 10.1.0.1 → 10.2.0.20".to_owned()
            ),
            (
                "mpoa",
                "MPOA Cache Imposition Request id 12289 10.2.0.1 → 10.2.0.20".to_owned()
            ),
            (
                "mpoa",
                format!(
                    "MPOA Cache Imposition Reply id 12289 10.2.0.1 → 10.2.0.20 code 0 at {egress} tag 0x80000001"
                )
            ),
            (
                "nhrp",
                format!(
                    "NHRP Resolution Reply id 8193 10.1.0.1 → 10.2.0.20 via 10.2.0.1 code 0 at {egress} tag 0x80000001"
                )
            ),
            (
                "mpoa",
                format!(
                    "MPOA Resolution Reply id 17 10.1.0.11 → 10.2.0.20 code 0 at {egress} tag 0x80000001"
                )
            ),
        ]
    );
    let (protocol, tagged) = line(DATA, &packets[16]);
    assert_eq!(protocol, "ipv4");
    assert_eq!(
        tagged,
        "IPv4 10.1.0.10 → 10.2.0.20 udp 32 octets (tagged 0x80000001)"
    );
    let cut = [&LLC[..], &packets[0][..10]].concat();
    let (protocol, text) = line(DATA, &cut);
    assert_eq!(protocol, "nhrp");
    assert!(
        text.starts_with("bad: ") && text.contains(" at offset 1"),
        "{text}"
    );
}

/// Everything that real hosts send on their signalling channel is understood.
#[test]
fn recordings() {
    let mut seen = 0;
    for record in ALL.iter().flat_map(|name| sdus(name)) {
        let vc = Vc::new(record.vpi, record.vci);
        let (protocol, text) = line(vc, &record.sdu);
        assert!(!text.is_empty());
        if vc == Vc::SIGNALLING || matches!(protocol, "lane" | "nhrp" | "mpoa") {
            assert!(!text.contains("bad: "), "{}: {text}", record.at);
            seen += 1;
        }
    }
    assert!(seen > 500, "{seen}");
}

proptest! {
    #[test]
    fn nothing_panics_and_all_is_one_line(
        start in prop::sample::select(vec![
            &[][..], &[0xff, 0, 1, 1], &LLC, &[0xaa, 0xaa, 3], &[0xaa, 0xaa, 3, 0, 0, 0, 0x88, 0x4c],
            &[0xaa, 0xaa, 3, 0, 0, 0, 8, 0, 0x45], &[0xaa, 0xaa, 3, 0, 0, 0, 8, 6],
        ]),
        tail in proptest::collection::vec(any::<u8>(), 0..200),
        vci in prop::sample::select(vec![5_u16, 16, 33]),
    ) {
        let sdu = [start, &tail].concat();
        let vc = Vc::new(0, vci);
        let summary = summary(vc, &sdu);
        prop_assert_eq!(summary.control, is_control(vc, &sdu));
        prop_assert!(!summary.text.chars().any(char::is_control), "{}", summary.text);
    }
    /// A message of any octets in a valid SSCOP PDU.
    #[test]
    fn no_message_panics(mut info in proptest::collection::vec(any::<u8>(), 0..200), good in any::<bool>()) {
        if let (true, Some(start)) = (good, info.get_mut(..2)) {
            start.copy_from_slice(&[9, 3]);
        }
        let pdu = SscopPdu::Data { s: Seq24::ZERO, info }.encode();
        prop_assert_eq!(summary(Vc::SIGNALLING, &pdu).protocol, "q2931");
    }
}

/// Messages of ILMI by their names in RFC 1157, with the object that they are about.
#[test]
fn ilmi_messages_have_their_names() {
    use aerostat_wire::ilmi::{
        Binding, ErrorStatus, Kind, Message, Oid, Pdu, Request, Trap, Value, mib,
    };
    let binding = |name: Oid| Binding::new(name, Value::Integer(1));
    let request = |kind, bindings| Request::new(kind, 7, bindings);
    let up_time = binding(mib::system(mib::SYS_UP_TIME));
    let address = binding(mib::address_status());
    let vendor = binding(Oid::new(&[1, 3, 6, 1, 4, 1, 9]));
    let failed = Request {
        status: ErrorStatus::NO_SUCH_NAME,
        ..request(Kind::Response, vec![vendor])
    };
    for (pdu, text) in [
        (
            Pdu::Request(request(Kind::Get, vec![up_time])),
            "GetRequest 7 sysUpTime",
        ),
        (
            Pdu::Request(request(Kind::GetNext, vec![binding(mib::prefix_status())])),
            "GetNextRequest 7 atmfNetPrefixTable",
        ),
        (
            Pdu::Request(request(Kind::Set, vec![address.clone(), address])),
            "SetRequest 7 atmfAddressTable and 1 more",
        ),
        (
            Pdu::Request(failed),
            "GetResponse 7 noSuchName 1.3.6.1.4.1.9",
        ),
        (Pdu::Trap(Trap::cold_start(0)), "Trap coldStart"),
    ] {
        let told = line(Vc::ILMI, &Message(pdu).encode());
        assert_eq!(told, ("ilmi", text.to_owned()));
    }
    assert!(line(Vc::ILMI, &[1, 2, 3]).1.starts_with("bad: "));
}
