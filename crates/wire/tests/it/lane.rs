//! LAN emulation: control frames built by hand and dissected by Wireshark, frames of recorded Linux clients and
//! servers, and properties.

use aerostat_testing::recording::{sdus, unhex};
use aerostat_wire::lane::{
    Control, ControlFrame, DataFrame, ElanName, Flags, LanDestination, MaxFrameSize, OpCode,
    Status, Tlv, TlvList, TlvType, is_control,
};
use aerostat_wire::mpoa::DeviceType;
use aerostat_wire::{AtmAddress, MacAddr};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn vector(name: &str) -> Vec<u8> {
    let text = include_str!("../vectors/lane/control.hex");
    let mut lines = text.lines().skip_while(|line| *line != format!("[{name}]"));
    assert!(lines.next().is_some(), "no vector {name}");
    let digits: String = lines
        .take_while(|line| !line.starts_with('['))
        .flat_map(str::chars)
        .filter(char::is_ascii_hexdigit)
        .collect();
    unhex(&digits)
}

fn frame(octets: &[u8]) -> ControlFrame {
    match Control::decode(octets).unwrap() {
        Control::Frame(frame) => *frame,
        other => panic!("{other:?}"),
    }
}

fn requester() -> AtmAddress {
    "47.0005.80.ffde00.0000.0000.0101.020000000031.00"
        .parse()
        .unwrap()
}

const MAC: MacAddr = MacAddr([2, 0, 0, 0, 0, 0x31]);

#[test]
fn configure_request() {
    let octets = vector("LE_CONFIGURE_REQUEST");
    let mut want = ControlFrame::new(OpCode::CONFIGURE);
    want.transaction = 1;
    want.flags = Flags::V2_CAPABLE;
    want.source = LanDestination::mac(MAC);
    want.source_atm = requester();
    want.lan_type = aerostat_wire::lane::LanType::ETHERNET;
    want.max_frame = MaxFrameSize::S1516;
    want.elan = ElanName::default();
    let got = frame(&octets);
    want.elan = ElanName::new("elan1").unwrap();
    assert_eq!(got, want);
    assert_eq!(want.encode(), octets);
}

#[test]
fn configure_response() {
    let octets = vector("LE_CONFIGURE_RESPONSE");
    let got = frame(&octets);
    assert_eq!(got.op, OpCode::CONFIGURE.response());
    assert_eq!(got.status, Status::SUCCESS);
    assert_eq!(got.target_atm.esi(), MacAddr([2, 0, 0, 0, 0, 0x41]));
    assert_eq!(got.tlvs.list.len(), 3);
    assert_eq!(got.tlvs.get(TlvType::ELAN_ID).unwrap().number(), Some(2));
    assert_eq!(
        got.tlvs.get(TlvType::VCC_TIMEOUT).unwrap().number(),
        Some(1200)
    );
    assert_eq!(got.encode(), octets);
}

#[test]
fn join_and_arp_requests_carry_the_device_type() {
    for (name, op, flags) in [
        ("LE_JOIN_REQUEST", OpCode::JOIN, 0x0086),
        ("LE_ARP_REQUEST", OpCode::ARP, 0),
    ] {
        let octets = vector(name);
        let got = frame(&octets);
        assert_eq!((got.op, got.flags), (op, Flags(flags)));
        let device = DeviceType::find(&got.tlvs.list).unwrap().unwrap();
        assert_eq!(device.mpc().unwrap().selector(), 0x50);
        assert_eq!(device.to_tlv(), got.tlvs.list[0]);
        assert_eq!(got.encode(), octets);
    }
}

#[test]
fn ready() {
    let octets = vector("READY_IND");
    assert_eq!(Control::decode(&octets), Ok(Control::ReadyIndication));
    assert_eq!(Control::ReadyIndication.encode(), octets);
    let query = Control::ReadyQuery.encode();
    assert_eq!(Control::decode(&query), Ok(Control::ReadyQuery));
}

/// Every LANE control frame of the recordings decodes and encodes to the same octets.
#[test]
fn recorded_control_frames() {
    for (name, at_least) in [("f-lane", 50), ("g-mpoa", 60)] {
        let mut count = BTreeMap::new();
        for sdu in sdus(name) {
            if sdu.vci == 5 || !sdu.sdu.starts_with(&[0xff, 0, 1, 1]) {
                continue;
            }
            assert!(is_control(&sdu.sdu));
            let control = Control::decode(&sdu.sdu).unwrap();
            assert_eq!(control.encode(), sdu.sdu, "{}", sdu.at);
            let op = match control {
                Control::Frame(frame) => frame.op,
                Control::ReadyQuery => OpCode::READY_QUERY,
                Control::ReadyIndication => OpCode::READY_IND,
            };
            assert_ne!(op.name(), "unknown op-code");
            *count.entry(op).or_insert(0) += 1;
        }
        assert!(
            count.values().sum::<usize>() >= at_least,
            "{name}: {count:?}"
        );
        for op in [OpCode::CONFIGURE, OpCode::JOIN, OpCode::ARP, OpCode::FLUSH] {
            assert!(count.contains_key(&op), "{name} has no {op:?}");
            assert!(count.contains_key(&op.response()), "{name}: {op:?}");
        }
    }
}

/// The Linux LES answers LE_REGISTER with the request's TLV count and without the TLV.
#[test]
fn tlv_count_of_the_linux_les() {
    let mut octets = vector("LE_ARP_REQUEST");
    octets.truncate(108);
    let got = frame(&octets);
    assert!(got.tlvs.list.is_empty());
    assert_eq!((got.tlvs.missing, got.tlvs.count()), (1, 1));
    assert_eq!(got.encode(), octets);
}

fn any_frame() -> impl Strategy<Value = ControlFrame> {
    let tlv = (any::<u32>(), prop::collection::vec(any::<u8>(), 0..40))
        .prop_map(|(kind, value)| Tlv::new(TlvType(kind), value));
    let fixed = (
        any::<u16>(),
        any::<u16>(),
        any::<u32>(),
        any::<u16>(),
        any::<u16>(),
    );
    let lan = (
        any::<[u8; 6]>(),
        0..3_u16,
        any::<[u8; 20]>(),
        any::<[u8; 20]>(),
    );
    (fixed, lan, "[a-z]{0,32}", prop::collection::vec(tlv, 0..6)).prop_map(
        |((op, status, tid, lecid, flags), (value, tag, a, b), name, list)| {
            let mut f = ControlFrame::new(OpCode(op));
            f.status = Status(status);
            f.transaction = tid;
            f.lecid = lecid;
            f.flags = Flags(flags);
            f.target = LanDestination { tag, value };
            f.source_atm = AtmAddress(a);
            f.target_atm = AtmAddress(b);
            f.elan = ElanName::new(&name).unwrap();
            f.tlvs = TlvList::from(list);
            f
        },
    )
}

proptest! {
    #[test]
    fn round_trip(f in any_frame()) {
        prop_assume!(f.op != OpCode::READY_IND && f.op != OpCode::READY_QUERY);
        prop_assert_eq!(frame(&f.encode()), f);
    }

    #[test]
    fn decoding_never_panics_and_keeps_octets(
        op in 0..0x0120_u16, tail in prop::collection::vec(any::<u8>(), 0..300)
    ) {
        let mut octets = vec![0xff, 0, 1, 1];
        octets.extend(op.to_be_bytes());
        octets.extend(&tail);
        if let Ok(Control::Frame(f)) = Control::decode(&octets) {
            prop_assert_eq!(f.encode(), octets);
        }
        let _ = Control::decode(&tail);
        let _ = DataFrame::decode(&tail);
    }
}
