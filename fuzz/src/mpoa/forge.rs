//! Forged packets of NHRP and MPOA.

use super::{BETWEEN, address, ip, mac, router_mac};
use crate::feed::Feed;
use aerostat_wire::AtmAddress;
use aerostat_wire::mpoa::{self as packets, DllHeader, EgressPurge, Imposition};
use aerostat_wire::nhrp::{Body, Cie, Extension, Packet, internet_checksum};
use std::net::{IpAddr, Ipv4Addr};

pub(super) fn ip_packet(source: Ipv4Addr, destination: Ipv4Addr, ttl: u8, len: u16) -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend((20 + len).to_be_bytes());
    packet.extend([0, 1, 0, 0, ttl, 17, 0, 0]);
    packet.extend(source.octets());
    packet.extend(destination.octets());
    let sum = internet_checksum(&packet);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet.resize(20 + usize::from(len), 0x55);
    packet
}

pub(super) fn some_ip(feed: &mut Feed<'_>) -> Ipv4Addr {
    match feed.below(8) {
        0 => Ipv4Addr::from(feed.u32()),
        1 => ip(BETWEEN, feed.u8() % 4),
        n => ip(n as u8 % 2 + 1, feed.u8() % 16),
    }
}

pub(super) fn some_address(feed: &mut Feed<'_>) -> IpAddr {
    let four = some_ip(feed);
    match feed.below(16) {
        0 => four.to_ipv6_mapped().into(),
        _ => four.into(),
    }
}

pub(super) fn some_atm(feed: &mut Feed<'_>) -> AtmAddress {
    let id = feed.pick(&[0x11, 0x12, 0x21, 0x22, 0x33]);
    address(id, feed.pick(&[0, 0x50, 0x51, 0x52, 0x53]))
}

/// A packet whose numbers are near those in use.
fn packet(feed: &mut Feed<'_>) -> Packet {
    let id = u32::from(feed.u8() & 15);
    let (a, b) = (some_address(feed), some_address(feed));
    let (x, y) = (some_atm(feed), some_atm(feed));
    let n = feed.u8();
    let mut packet = match feed.below(8) {
        0 => packets::keep_alive(id, x, n.into()),
        1 => packets::trigger(x, a, b),
        2 => packets::purge_request(id, x, a, a, b, n),
        3 => packets::data_plane_purge(x, None, b, n),
        4 => Imposition {
            id,
            ingress_data: x,
            mps: a,
            target: b,
            prefix: n & 63,
            holding_s: u16::from(n) * 9,
            dll: DllHeader {
                cache_id: id,
                elan_id: u32::from(n % 3),
                header: DllHeader::ethernet_ipv4(mac(1), router_mac(1)),
            },
            want_tag: n & 1 == 1,
        }
        .packet(),
        5 => EgressPurge {
            id,
            mpc_control: x,
            mpc_data: y,
            mpc: a,
            mps: a,
            target: b,
            prefix: 32,
            cache_id: id,
            elan_id: u32::from(n % 3),
        }
        .packet(),
        _ => packets::resolution_request(id, x, a, b),
    };
    alter(feed, &mut packet);
    packet
}

fn alter(feed: &mut Feed<'_>, packet: &mut Packet) {
    let what = feed.u8();
    if what & 1 == 1 {
        packet.op = feed.pick(&[1, 2, 3, 4, 5, 6, 128, 129, 130, 131, 132, 133, 134, 135]);
    }
    if what & 2 == 2 {
        packet.hop_count = feed.u8();
    }
    if let (Body::Common(common), true) = (&mut packet.body, what & 4 == 4) {
        common.flags = feed.u16();
    }
    if let (Body::Common(common), true) = (&mut packet.body, what & 8 == 8) {
        common.cies = (0..feed.below(4)).map(|_| entry(feed)).collect();
    }
    if what & 16 == 16 {
        for _ in 0..feed.below(3) {
            let kind = feed.pick(&[
                3, 4, 5, 7, 8, 0x1000, 0x1001, 0x1002, 0x1003, 0x1004, 0x1005, 0x3800,
            ]);
            let compulsory = if feed.coin() {
                Extension::COMPULSORY
            } else {
                0
            };
            let mut extension = Extension::new(kind, feed.octets(24).to_vec());
            extension.type_field |= compulsory;
            packet.extensions.get_or_insert_default().push(extension);
        }
    }
}

fn entry(feed: &mut Feed<'_>) -> Cie {
    let n = feed.u8();
    match n & 3 {
        0 => packets::refusal_entry(n, feed.u8()),
        1 => Cie::brief(n, feed.u16()),
        _ => {
            let mut entry = packets::reply_entry(n, feed.u16(), feed.u16(), some_atm(feed));
            entry.protocol = some_ip(feed).into();
            entry
        }
    }
}

/// Control packets with a right checksum, and what shortcuts carry.
pub(crate) fn sdu(feed: &mut Feed<'_>) -> Vec<u8> {
    match feed.below(8) {
        0 => feed.octets(120).to_vec(),
        1 => {
            let packet = ip_packet(
                some_ip(feed),
                some_ip(feed),
                feed.u8() & 3,
                feed.u8().into(),
            );
            let tag = feed.coin().then(|| feed.u8().into());
            packets::shortcut_sdu(tag, &packet)
        }
        2 => {
            let packet = packet(feed);
            crate::nhrp::damaged(feed, &packet)
        }
        _ => packet(feed).to_sdu(),
    }
}
