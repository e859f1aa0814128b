//! An untrusted host in the lab: it floods, forges, replays and claims the addresses of others.
//!
//! The host is a member of an ELAN with calls of its own, and puts any data on its connections. The others' packets
//! must continue, over their shortcuts or the routers; violations are counted; tables keep their bounds; and when
//! everything has stopped nothing is left.

use crate::bench::{Bench, lab_of};
use crate::check;
use crate::faults::{SMALL, all, far, passes, shortcuts, shut_down};
use aerostat_node::host::ServiceKind;
use aerostat_node::inspect::{Table, Value};
use aerostat_node::ip::meter::Path;
use aerostat_proto::{Duration, Instant};
use aerostat_wire::lane::{ControlFrame, DataFrame, LanDestination, OpCode};
use aerostat_wire::mpoa::{self, DeviceType, EgressPurge, Imposition};
use aerostat_wire::nhrp::{Body, Cie, Common, Packet, op};
use aerostat_wire::{AtmAddress, MacAddr, Vc};
use std::net::{IpAddr, Ipv4Addr};

/// Calls of the hostile host: to an MPOA server, and to a client's control and data addresses. Their SDUs are not
/// configured.
const FOE: &str = "hosts.x={ on: edge1, elan: a, ip: 10.1.0.66, sockets: [
    { name: mps, call: r1/52, sap: llc, qos: 'ubr,aal5:sdu=1500', pdus: 0, hold: 1h, start: 7s },
    { name: egress, call: r2/52, sap: llc, qos: 'ubr,aal5:sdu=1500', pdus: 0, hold: 1h, start: 7s },
    { name: control, call: h1/50, sap: llc, qos: 'ubr,aal5:sdu=1500', pdus: 0, hold: 1h, start: 7s },
    { name: far, call: h2/50, sap: llc, qos: 'ubr,aal5:sdu=1500', pdus: 0, hold: 1h, start: 7s },
    { name: data, call: h2/51, sap: llc, qos: 'ubr,aal5:sdu=1500', pdus: 0, hold: 1h, start: 7s },
    { name: router, call: r1/53, sap: llc, qos: 'ubr,aal5:sdu=1500', pdus: 0, hold: 1h, start: 7s } ] }";

const FOE_IP: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 66);
const H1: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 1, 0, 10));
const H2: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 2, 0, 10));
const R2: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 2, 0, 1));

/// The hostile host, as seen from inside.
struct Foe {
    node: aerostat_sim::NodeId,
    /// Its LANE client.
    address: AtmAddress,
    mac: MacAddr,
    lecid: u16,
}

impl Foe {
    fn new(bench: &Bench) -> Self {
        let node = bench.node("x");
        let client = &rows(bench, "x", "lec", "client")[0];
        let address: AtmAddress = client["address"].parse().expect("an address");
        Self {
            node,
            address,
            mac: client["mac"].parse().expect("a MAC address"),
            lecid: client["lecid"].parse().expect("a LECID"),
        }
    }
    /// The label of its connection with an address that it called.
    fn vc(&self, bench: &Bench, which: impl Fn(&AtmAddress) -> bool) -> Vc {
        let station = bench.station(self.node).expect("on");
        let mut calls = station.host().signalling().calls();
        let call = calls.find(|call| call.outgoing && !call.multipoint && which(&call.called));
        let found = call.and_then(|call| call.vc);
        found.unwrap_or_else(|| panic!("no connection: {:?}", tables(bench, "x", "sockets")))
    }
    /// The label of the connection with its LES (80+n) or BUS (c0+n).
    fn lane(&self, bench: &Bench, first: u8) -> Vc {
        self.vc(bench, |called| called.selector() & 0xc0 == first)
    }
    fn with(&self, bench: &Bench, node: &str, selector: u8) -> Vc {
        let to = address_of(bench, node, selector);
        self.vc(bench, |called| *called == to)
    }
    fn frame(&self, op: OpCode) -> ControlFrame {
        let mut frame = ControlFrame::new(op);
        (frame.lecid, frame.source_atm) = (self.lecid, self.address);
        frame.source = LanDestination::mac(self.mac);
        frame
    }
}

/// An address of a node, by its selector.
fn address_of(bench: &Bench, node: &str, selector: u8) -> AtmAddress {
    let station = bench.station(bench.node(node)).expect("on");
    let mut listeners = station.host().signalling().listeners();
    let found = listeners.find(|one| one.address.selector() == selector);
    found.expect("it listens there").address
}

/// The rows of a table as texts by column.
fn rows(
    bench: &Bench,
    node: &str,
    what: &str,
    title: &str,
) -> Vec<std::collections::BTreeMap<&'static str, String>> {
    let tables = tables(bench, node, what);
    let table = tables.into_iter().find(|table| table.title == title);
    let table = table.expect("a table of this title");
    let columns = table.columns;
    let rows = table.rows.iter();
    rows.map(|row| {
        let texts = row.iter().map(ToString::to_string);
        columns.iter().copied().zip(texts).collect()
    })
    .collect()
}

fn tables(bench: &Bench, node: &str, what: &str) -> Vec<Table> {
    let station = bench.station(bench.node(node)).expect("on");
    station
        .inspect(what.parse().expect("a kind of state"), bench.now())
        .expect("such tables")
}

/// The sum of all counters with this name at a node.
fn count(bench: &Bench, node: &str, what: &str, name: &str) -> u64 {
    let tables = tables(bench, node, what);
    let rows = tables.iter().flat_map(|table| &table.rows);
    let named = rows.filter(|row| row[0] == Value::Text(name.to_owned()));
    let counts = named.map(|row| match row[1] {
        Value::Number(count) => count,
        _ => 0,
    });
    counts.sum()
}

/// Share of a flow's packets that arrived in the last `seconds`.
fn share(bench: &Bench, flow: usize, seconds: u64, rate: u64) -> f64 {
    let [lane, shortcut] = bench.received(flow, bench.back(seconds * 1000));
    (lane + shortcut) as f64 / (seconds * rate) as f64
}

fn settled(seed: u64, set: &[&str]) -> (Bench, Foe) {
    let set = [&[FOE], set].concat();
    let mut bench = Bench::new(lab_of("small", SMALL, &set), seed).watch_routers();
    bench.log.recording = true;
    shortcuts(&mut bench, "at first", 50.0);
    // The hostile host calls at 7 s.
    bench.run(Instant::from_secs(8).since(bench.now()));
    let foe = Foe::new(&bench);
    (bench, foe)
}

/// Nothing leaks: calls agree, and cells, too. When everything has stopped, nothing is left.
fn finish(mut bench: Bench, foe: &Foe) {
    bench.until("agreement of calls", 20.0, check::agreement);
    bench.crash(foe.node, ServiceKind::Sockets);
    bench.run(Duration::from_secs(1));
    shut_down(&mut bench);
}

/// A thousand LE_ARPs a second for ten seconds: requests for unused addresses and for those of others, claims of the
/// addresses of the router and of another host, registrations, LE_NARP, frames with another sender's address at the
/// BUS.
#[test]
fn a_thousand_le_arps_a_second() {
    let (mut bench, foe) = settled(61, &[]);
    let (les, bus) = (foe.lane(&bench, 0x80), foe.lane(&bench, 0xc0));
    let router: MacAddr = rows(&bench, "r1", "lec", "client")[0]["mac"]
        .parse()
        .expect("a MAC");
    let host: MacAddr = rows(&bench, "h1", "lec", "client")[0]["mac"]
        .parse()
        .expect("a MAC");
    let server = DeviceType::Mps {
        control: foe.address.with_selector(0x52),
        macs: vec![router],
    };
    for n in 0..10_000_u32 {
        let mut strange = MacAddr([2, 0x66, 0, 0, 0, 0]);
        strange.0[2..].copy_from_slice(&n.to_be_bytes());
        let mut frame = foe.frame(OpCode::ARP);
        frame.transaction = n;
        match n % 8 {
            0 => frame.target = LanDestination::mac(strange),
            1 => frame.target = LanDestination::mac(host),
            2 => frame.source = LanDestination::mac(router),
            3 => frame.tlvs = vec![server.to_tlv()].into(),
            4 => {
                frame.op = OpCode::REGISTER;
                frame.source = LanDestination::mac([strange, host][n as usize / 8 % 2]);
            }
            5 => {
                frame.op = OpCode::NARP;
                frame.source = LanDestination::mac(host);
                frame.target = frame.source;
            }
            6 => {
                frame.op = OpCode::ARP.response();
                (frame.lecid, frame.target_atm) = (1 + (n % 5) as u16, foe.address);
                frame.target = LanDestination::mac(router);
            }
            _ => {
                let to_all = [&[0xff; 6], &host.0[..], &[8, 0], &[0; 46]].concat();
                bench.send_raw(foe.node, bus, DataFrame::encode(foe.lecid ^ 1, &to_all));
                frame.lecid ^= 3;
            }
        }
        bench.send_raw(foe.node, les, frame.encode());
        bench.run(Duration::from_millis(1));
    }
    for name in ["there", "back", "third", "near"] {
        let share = share(&bench, bench.flow(name), 10, 25);
        assert!(share > 0.98, "{name}: {share}");
    }
    let far = far(&bench);
    bench
        .all_by(&far, Path::Shortcut)
        .unwrap_or_else(|why| bench.fail(&why));
    // The LANE server of the lab is the node with that name; ELAN a is its first.
    let lane = bench
        .lab
        .nodes
        .iter()
        .find(|node| node.name.contains("lane"));
    let lane = lane.map_or("lane", |node| node.name.as_str()).to_owned();
    for (what, name, least) in [
        ("les", "forged", 4 * 1250),
        ("les", "registrations_refused", 900),
        ("les", "arp_requests", 3 * 1250),
        ("bus", "forged", 1250),
    ] {
        let counted = count(&bench, &lane, what, name);
        assert!(counted >= least, "{what} {name}: {counted}");
    }
    assert!(
        count(&bench, "h1", "mpc", "mps_limit") > 0,
        "the claim to the router's address"
    );
    for who in ["h1", "h3", "r1"] {
        let learned = rows(&bench, who, "lec", "le_arp").len();
        assert!(learned < 10, "{who}: {learned}");
    }
    finish(bench, &foe);
}

fn garbage(n: u32) -> Vec<u8> {
    let word = n.wrapping_mul(0x9e37_79b9).to_be_bytes();
    let packet: Vec<u8> = word
        .iter()
        .cycle()
        .take(60 + n as usize % 40)
        .copied()
        .collect();
    [&aerostat_wire::nhrp::LLC[..], &packet].concat()
}

/// Packets with the addresses of all others, number `n` of a series.
fn forgery(bench: &Bench, foe: &Foe, n: u32) -> Vec<u8> {
    let own = foe.address.with_selector(0x51);
    let victim = address_of(bench, "h1", 0x51);
    let server = address_of(bench, "r1", 0x52);
    let holding = [0, 600, u16::MAX][n as usize % 3];
    let mut request = mpoa::resolution_request(n, victim, H1, H2);
    let imposition = Imposition {
        id: n,
        ingress_data: own,
        mps: R2,
        target: H2,
        prefix: 32,
        holding_s: holding,
        dll: mpoa::DllHeader {
            cache_id: n % 64,
            elan_id: n % 4,
            header: mpoa::DllHeader::ethernet_ipv4(foe.mac, foe.mac),
        },
        want_tag: true,
    };
    let reply = |packet: &Packet| {
        let entry = mpoa::reply_entry(32, 1500, holding, own);
        packet
            .reply(vec![entry])
            .map(|reply| mpoa::with_tag(reply, n))
    };
    let packet = match n % 12 {
        0 => request,
        1 => reply(&request).expect("a reply"),
        2 => imposition.packet(),
        3 => reply(&imposition.packet()).expect("a reply"),
        4 => EgressPurge {
            id: n,
            mpc_control: address_of(bench, "h2", 0x50),
            mpc_data: address_of(bench, "h2", 0x51),
            mpc: H2,
            mps: R2,
            target: H2,
            prefix: 32,
            cache_id: n % 64,
            elan_id: 2,
        }
        .packet(),
        5 => mpoa::keep_alive(0, server, 1),
        6 => mpoa::trigger(server, R2, H2),
        7 => mpoa::purge_request(n, server, R2, H1, H2, (n % 33) as u8),
        8 => mpoa::data_plane_purge(victim, Some(H1), H2, 32),
        9 => {
            request.op = op::RESOLUTION_REQUEST;
            request
        }
        10 => {
            request.op = op::RESOLUTION_REPLY;
            if let Body::Common(common) = &mut request.body {
                common.cies = vec![mpoa::reply_entry(32, 1500, holding, own)];
            }
            request
        }
        _ => registration(n, own, H2, R2),
    };
    packet.to_sdu()
}

/// A registration of `address` for `nbma` at the server of `to`.
fn registration(id: u32, nbma: AtmAddress, address: IpAddr, to: IpAddr) -> Packet {
    let cie = Cie {
        prefix: 32,
        mtu: 1500,
        holding_s: 600,
        nbma: nbma.into(),
        protocol: address.into(),
        ..Cie::default()
    };
    Packet::new(
        op::REGISTRATION_REQUEST,
        Common {
            flags: 0x8000,
            request_id: id,
            source_nbma: nbma.into(),
            source: address.into(),
            destination: to.into(),
            cies: vec![cie],
            ..Common::default()
        },
    )
}

/// Two hundred forged MPOA and NHRP packets a second to servers and clients, and packets with guessed tags to a
/// client's data address. A purge may send packets by the routers for a while; nothing else changes.
#[test]
fn forged_mpoa_and_nhrp() {
    let (mut bench, foe) = settled(62, &[]);
    let to: Vec<Vc> = [
        ("r1", 0x52),
        ("r2", 0x52),
        ("h1", 0x50),
        ("h2", 0x50),
        ("h2", 0x51),
    ]
    .map(|(node, selector)| foe.with(&bench, node, selector))
    .into();
    for n in 0..2000 {
        let forged = match n % 7 {
            6 => garbage(n),
            _ => forgery(&bench, &foe, n),
        };
        bench.send_raw(foe.node, to[n as usize % 5], forged);
        let packet = [
            &[0x45, 0, 0, 40, 0, 1, 0, 0, 9, 17, 0, 0][..],
            &FOE_IP.octets(),
            &[10, 2, 0, 10],
        ];
        let packet = [&packet.concat()[..], &[0; 20]].concat();
        let tagged = mpoa::shortcut_sdu(Some(n.wrapping_mul(0x0101_0101)), &packet);
        bench.send_raw(foe.node, to[4], tagged);
        bench.run(Duration::from_millis(5));
    }
    for name in ["there", "back", "third", "near"] {
        let share = share(&bench, bench.flow(name), 10, 25);
        assert!(share > 0.98, "{name}: {share}");
    }
    let near = bench.flow("near");
    bench
        .all_by(&[near], Path::Lane)
        .unwrap_or_else(|why| bench.fail(&why));
    for (node, what, name) in [
        ("h1", "mpc", "unknown_sender"),
        ("h1", "mpc", "malformed"),
        ("h2", "mpc", "unknown_sender"),
        ("h2", "mpc", "egress_misses"),
        ("r1", "mps", "malformed"),
        ("r2", "mps", "malformed"),
        ("r2", "mps", "unexpected"),
    ] {
        assert!(count(&bench, node, what, name) > 0, "{node} {name}");
    }
    // No client was told to send to the hostile host, and that host has made no entry at h2.
    for who in ["h1", "h2"] {
        for row in rows(&bench, who, "mpc", "ingress") {
            assert_ne!(row["egress"], foe.address.with_selector(0x51).to_string());
        }
    }
    shortcuts(&mut bench, "after the forgeries", 60.0);
    finish(bench, &foe);
}

/// All control packets from the routers to their clients are sent once more: soon, after a purge, and after restarts of
/// the server and the client.
#[test]
fn replays() {
    let (mut bench, foe) = settled(63, &[]);
    let old = core::mem::take(&mut bench.log.control);
    bench.log.recording = false;
    assert!(old.len() > 10, "{}", old.len());
    let replay = |bench: &mut Bench| {
        for (node, sdu) in &old {
            let station = bench.station(*node).expect("on");
            let calls = station.host().signalling().calls();
            let control = calls.filter(|call| {
                let ends = [Some(call.called), call.calling];
                let client = ends.into_iter().flatten().any(|end| end.selector() == 0x50);
                client && !call.multipoint
            });
            for vc in control.filter_map(|call| call.vc).collect::<Vec<_>>() {
                bench.send_raw(*node, vc, sdu.clone());
            }
            bench.run(Duration::from_millis(20));
        }
    };
    replay(&mut bench);
    passes(&mut bench, "after a replay at once", 1.0);
    // The resolved bindings are purged, and the old answers come again.
    bench.mpoa(false);
    bench.run(Duration::from_secs(3));
    replay(&mut bench);
    let far = far(&bench);
    bench
        .all_by(&far, Path::Lane)
        .unwrap_or_else(|why| bench.fail(&why));
    bench.mpoa(true);
    bench.run(Duration::from_secs(1));
    replay(&mut bench);
    passes(&mut bench, "after a replay in another life", 1.0);
    shortcuts(&mut bench, "after the replays", 60.0);
    finish(bench, &foe);
}

/// Extreme holding times: entries of a second come and go, those with the longest time stay; the packets continue.
#[test]
fn holding_times_at_their_ends() {
    for (seed, holding) in [(64, "mpoa.holding=1s"), (65, "mpoa.holding=120min")] {
        let mut bench = Bench::new(lab_of("small", SMALL, &[holding]), seed).watch_routers();
        let all = all(&bench);
        bench.until("traffic", 30.0, |bench| bench.all_pass(&all));
        bench.run(Duration::from_secs(5));
        for _ in 0..60 {
            bench.run(Duration::from_secs(1));
            bench.all_pass(&all).unwrap_or_else(|why| bench.fail(&why));
        }
        shut_down(&mut bench);
    }
    for wrong in ["mpoa.holding=0s", "mpoa.holding=168h"] {
        let set = [wrong.into()];
        let refused = aerostat_lab::parse("small", SMALL, &set);
        assert!(refused.is_err(), "{wrong}");
    }
}

/// A station of a Classical IP subnet that registers and purges the addresses of others, and answers for them.
#[test]
fn nhrp_of_a_station_that_lies() {
    let foe = "hosts.z={ on: west, elan: a, ip: 10.5.0.66, sockets: [
        { name: server, call: r1/52, sap: llc, qos: 'ubr,aal5:sdu=1500', pdus: 0, hold: 1h, start: 3s },
        { name: second, call: r2/52, sap: llc, qos: 'ubr,aal5:sdu=1500', pdus: 0, hold: 1h, start: 3s },
        { name: station, call: x/54, sap: llc, qos: 'ubr,aal5:sdu=1500', pdus: 0, hold: 1h, start: 3s } ] }";
    let lab = lab_of("plain", crate::nhrp::PLAIN, &[foe, "nhrp={ holding: 20s }"]);
    let mut bench = Bench::new(lab, 66).watch_routers();
    let flows = ["there", "back"].map(|name| bench.flow(name));
    bench.until("direct", 30.0, |bench| bench.all_by(&flows, Path::Shortcut));
    let z = bench.node("z");
    let station = bench.station(z).expect("on");
    let calls: Vec<_> = station.host().signalling().calls().collect();
    let servers = calls
        .iter()
        .filter(|call| call.outgoing && call.called.selector() == 0x52);
    let servers: Vec<(AtmAddress, Vc)> = servers
        .filter_map(|call| Some((call.called, call.vc?)))
        .collect();
    assert!(servers.len() >= 2, "{:?}", tables(&bench, "z", "sockets"));
    assert!(
        !calls.iter().any(|call| call.called.selector() == 0x54),
        "the station hears its server alone"
    );
    let own = calls
        .iter()
        .find_map(|call| call.calling.filter(|_| call.outgoing))
        .expect("its address");
    let (x, y) = (ipv4(10, 5, 0, 10), ipv4(10, 6, 0, 10));
    let begin = bench.now();
    for n in 0..1000_u32 {
        for (server, vc) in &servers {
            let mut packet = match n % 5 {
                0 => registration(n, own, [x, y][n as usize / 5 % 2], ipv4(10, 5, 0, 1)),
                1 => mpoa::purge_request(n, own, x, ipv4(10, 6, 0, 1), y, (n % 33) as u8),
                2 => mpoa::purge_request(n, *server, ipv4(10, 6, 0, 1), x, y, 32),
                3 => registration(
                    n,
                    own,
                    ipv4(10, 5, (n >> 8) as u8, n as u8),
                    ipv4(10, 5, 0, 1),
                ),
                _ => mpoa::resolution_request(n, own, x, y),
            };
            if n % 5 == 4 {
                packet.op = [op::RESOLUTION_REPLY, op::RESOLUTION_REQUEST][n as usize / 5 % 2];
                if let Body::Common(common) = &mut packet.body {
                    common.cies = vec![mpoa::reply_entry(32, 1500, 600, own)];
                }
            }
            bench.send_raw(z, *vc, packet.to_sdu());
        }
        bench.run(Duration::from_millis(5));
        assert!(bench.now() > begin);
    }
    for flow in flows {
        let share = share(&bench, flow, 5, 25);
        assert!(share > 0.98, "{}: {share}", bench.lab.traffic[flow].name);
    }
    for (node, owner) in [("x", "10.6.0.10"), ("y", "10.5.0.10")] {
        for row in rows(&bench, node, "nhrp", "ways") {
            assert!(
                row.values().all(|text| *text != own.to_string()),
                "{node} {owner}: {row:?}"
            );
        }
    }
    for router in ["r1", "r2"] {
        let registered = rows(&bench, router, "nhrp", "cache");
        assert!(registered.len() < 300);
        let stolen = registered
            .iter()
            .filter(|row| row.values().any(|text| *text == own.to_string()));
        for row in stolen {
            assert!(
                row.values()
                    .all(|text| !text.starts_with("10.6.0.10") && !text.starts_with("10.5.0.10/"))
            );
        }
    }
    bench.until("direct again", 60.0, |bench| {
        bench.all_by(&flows, Path::Shortcut)
    });
    bench.until("agreement of calls", 20.0, check::agreement);
}

fn ipv4(a: u8, b: u8, c: u8, d: u8) -> IpAddr {
    Ipv4Addr::new(a, b, c, d).into()
}

/// An ARP packet in an Ethernet frame to all.
fn arp(reply: bool, mac: MacAddr, sender: Ipv4Addr, target: Ipv4Addr) -> Vec<u8> {
    let kind: &[u8] = &[8, 6, 0, 1, 8, 0, 6, 4, 0, 1 + u8::from(reply)];
    let (from, to) = (sender.octets(), target.octets());
    let packet = [&[0xff; 6], &mac.0[..], kind, &mac.0, &from, &[0; 6], &to];
    let mut frame = packet.concat();
    frame.resize(60, 0);
    frame
}

/// A member claims another member's address, by a request and by an answer, once, and then ten times a second. The
/// router checks the claim; no packet and no shortcut is lost.
#[test]
fn forged_arp_interrupts_nothing() {
    let (mut bench, foe) = settled(63, &[]);
    let bus = foe.lane(&bench, 0xc0);
    let (h1, router) = (Ipv4Addr::new(10, 1, 0, 10), Ipv4Addr::new(10, 1, 0, 1));
    let lost = |bench: &Bench| count(bench, "r1", "mps", "purges_sent");
    let before = lost(&bench);
    let far = far(&bench);
    for round in 0..100 {
        let frame = arp(round % 2 == 0, foe.mac, h1, router);
        bench.send_raw(foe.node, bus, DataFrame::encode(foe.lecid, &frame));
        let pause = if round == 0 { 5000 } else { 100 };
        bench.run(Duration::from_millis(pause));
        bench
            .all_by(&far, Path::Shortcut)
            .unwrap_or_else(|why| bench.fail(&why));
    }
    for name in ["there", "back", "third", "near", "ping"] {
        let rate = if name == "ping" { 5 } else { 25 };
        let share = share(&bench, bench.flow(name), 10, rate);
        assert!(share > 0.98, "{name}: {share}");
    }
    assert_eq!(lost(&bench), before, "no client was told to stop");
    let doubts = count(&bench, "r1", "arp", "doubts");
    assert!(doubts >= 50, "{doubts}");
    finish(bench, &foe);
}

/// Five thousand broadcast ARP requests a second from senders that do not exist: the BUS accepts its quota of them, and
/// the packets of others continue.
#[test]
fn a_flood_of_broadcast_frames_is_held_to_its_quota() {
    let (mut bench, foe) = settled(64, &[]);
    let bus = foe.lane(&bench, 0xc0);
    let router = Ipv4Addr::new(10, 1, 0, 1);
    for n in 0..25_000_u32 {
        let mut strange = MacAddr([2, 0x66, 0, 0, 0, 0]);
        strange.0[2..].copy_from_slice(&n.to_be_bytes());
        let sender = Ipv4Addr::new(10, 1, 0, 70 + (n % 180) as u8);
        let frame = arp(false, strange, sender, router);
        bench.send_raw(foe.node, bus, DataFrame::encode(foe.lecid, &frame));
        bench.run(Duration::from_micros(200));
    }
    for name in ["there", "back", "third", "near", "ping"] {
        let rate = if name == "ping" { 5 } else { 25 };
        let share = share(&bench, bench.flow(name), 5, rate);
        assert!(share > 0.95, "{name}: {share}");
    }
    let dropped = count(&bench, "lane", "bus", "over_broadcast");
    // A second's quota at once, then a thousand a second for five seconds.
    assert!((18_990..=19_010).contains(&dropped), "{dropped}");
    // The router's answers to all those senders are within its own quota.
    assert_eq!(count(&bench, "lane", "bus", "over_unknown"), 0);
    finish(bench, &foe);
}
