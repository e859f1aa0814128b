//! MPOA: a client A, and a server behind B.

use super::{Case, Clean, later, sdu};
use crate::captures::{Sdu, file};
use aerostat_explain::Rule;
use aerostat_wire::mpoa::{
    DllHeader, Imposition, ext, keep_alive, refusal_entry, reply_entry, resolution_request,
    with_tag,
};
use aerostat_wire::nhrp::{Extension, Packet};
use aerostat_wire::{AtmAddress, MacAddr, Vc};
use std::net::{IpAddr, Ipv4Addr};

const OUT: &str = "A>B";
const BACK: &str = "B>A";

const fn address(last: u8) -> AtmAddress {
    AtmAddress([last; 20])
}

fn ip(last: u8) -> IpAddr {
    Ipv4Addr::new(10, 0, 0, last).into()
}

fn packet(time: f64, way: &str, packet: &Packet) -> Sdu {
    sdu(time, way, Vc::new(0, 500), packet.to_sdu())
}

fn request() -> Packet {
    resolution_request(1, address(1), ip(1), ip(2))
}

/// The packets of both ends by turns.
fn talk(packets: &[Packet]) -> Vec<Sdu> {
    let ways = [OUT, BACK].into_iter().cycle();
    let times = (0..).map(|n| f64::from(n) * 0.1);
    let list = packets.iter().zip(ways).zip(times);
    let mut all: Vec<_> = list
        .map(|((one, way), time)| packet(time, way, one))
        .collect();
    all.push(later());
    all
}

fn answer(code: u8) -> Packet {
    let entry = match code {
        0 => reply_entry(32, 9180, 600, address(2)),
        code => refusal_entry(32, code),
    };
    with_tag(request().reply(vec![entry]).expect("a request"), 5)
}

fn imposition() -> [Packet; 2] {
    let header = DllHeader::ethernet_ipv4(MacAddr([2; 6]), MacAddr([4; 6]));
    let imposition = Imposition {
        id: 3,
        ingress_data: address(3),
        mps: ip(9),
        target: ip(2),
        prefix: 32,
        holding_s: 600,
        dll: DllHeader {
            cache_id: 1,
            elan_id: 7,
            header,
        },
        want_tag: true,
    };
    let asked = imposition.packet();
    let answer = asked.reply(vec![reply_entry(32, 9180, 0, address(2))]);
    [asked, answer.expect("a request")]
}

fn without(kind: u16, [mut asked, answer]: [Packet; 2]) -> [Packet; 2] {
    let extensions = asked.extensions.as_mut().expect("extensions");
    extensions.retain(|extension| extension.kind() != kind);
    [asked, answer]
}

fn alive(numbers: [u32; 3]) -> Vec<Sdu> {
    let number = |number| packet(f64::from(number), BACK, &keep_alive(number, address(9), 35));
    let mut all = numbers.map(number).to_vec();
    let times = [1.0, 2.0, 3.0];
    for (sdu, time) in all.iter_mut().zip(times) {
        sdu.time = time;
    }
    all.push(later());
    all
}

pub(super) fn cases() -> Vec<Case> {
    let near = talk(&[request(), answer(0)]);
    let tagged = |tag: &[u8]| {
        let mut asked = request();
        let tag = Extension::new(ext::TAG, tag.to_vec());
        asked.extensions = Some(vec![tag]);
        talk(&[asked, answer(0)])
    };
    let imposed = talk(&imposition());
    vec![
        Case::sdus(Rule::MpoaAnswer, &near, &talk(&[request()])),
        Case::sdus(Rule::MpoaRefused, &near, &talk(&[request(), answer(0x81)])),
        Case::sdus(
            Rule::MpoaHeader,
            &imposed,
            &talk(&without(ext::DLL_HEADER, imposition())),
        ),
        Case::sdus(
            Rule::MpoaExtension,
            &tagged(&[0, 0, 0, 1]),
            &tagged(&[0, 1]),
        ),
        Case::sdus(Rule::MpoaKeepAlive, &alive([7, 7, 8]), &alive([7, 8, 3])),
    ]
}

pub(super) fn clean() -> Vec<Clean> {
    let mut two = alive([7, 8, 9]);
    // Two servers behind one line count by themselves.
    two[1] = packet(2.0, BACK, &keep_alive(1, address(8), 35));
    vec![("Keep-Alives of two servers", file(&two))]
}
