//! RFC 2684: one SDU with LLC.

use super::{Case, later, sdu};
use crate::captures::Sdu;
use aerostat_explain::Rule;
use aerostat_wire::Vc;
use aerostat_wire::line::Encapsulation;
use aerostat_wire::nhrp::internet_checksum;

fn of(octets: &[u8]) -> Vec<Sdu> {
    vec![sdu(0.0, "A>B", Vc::new(0, 400), octets.to_vec()), later()]
}

/// A header with OUI and PID.
fn header(oui: [u8; 3], pid: u16) -> Vec<u8> {
    [&[0xaa, 0xaa, 3][..], &oui, &pid.to_be_bytes()].concat()
}

const ETHERTYPES: [u8; 3] = [0, 0, 0];
const BRIDGED: [u8; 3] = [0, 0x80, 0xc2];
const IANA: [u8; 3] = [0, 0, 0x5e];

/// An IPv4 packet of 28 octets that says it had `total`.
fn routed(total: u8) -> Vec<Sdu> {
    let mut packet = vec![0x45, 0, 0, total, 0, 0, 0, 0, 64, 99, 0, 0];
    packet.extend([10, 0, 0, 1, 10, 0, 0, 2]);
    let sum = internet_checksum(&packet).to_be_bytes();
    packet[10..12].copy_from_slice(&sum);
    packet.extend([7; 8]);
    of(&[header(ETHERTYPES, 0x0800), packet].concat())
}

pub(super) fn cases() -> Vec<Case> {
    let with = |oui, pid| of(&[header(oui, pid), vec![0; 20]].concat());
    let bridged = |padding| of(&[header(BRIDGED, 7), vec![padding, 0], vec![0x45; 40]].concat());
    let framed = Encapsulation::BridgedLlcFcs.sdu(&[0x45; 40]);
    vec![
        Case::sdus(Rule::LlcPid, &with(BRIDGED, 0x000e), &with(BRIDGED, 0x000f)),
        Case::sdus(Rule::LlcPid, &with(IANA, 8), &with(IANA, 0x55)),
        Case::sdus(
            Rule::LlcPid,
            &with(ETHERTYPES, 0x0600),
            &with(ETHERTYPES, 0x05ff),
        ),
        Case::change(Rule::LlcHeader, &with(ETHERTYPES, 0x0600), |sdus| {
            sdus[0].octets.truncate(7);
        }),
        Case::sdus(Rule::BridgedPadding, &bridged(0), &bridged(1)),
        Case::change(Rule::BridgedFcs, &of(&framed), |sdus| {
            sdus[0].octets[20] ^= 1
        }),
        Case::sdus(Rule::RoutedLength, &routed(28), &routed(29)),
    ]
}
