//! An ELAN of servers and three clients: frames, forged control frames, events out of season, failures, time.
//!
//! The first octet of an input says whether the clients have joined before its steps begin, and whether events
//! of the ATM service may be forged. In the end all stop: then no connection and no timer is left.

use crate::feed::Feed;
use aerostat_proto::lane::lecs::Elan;
use aerostat_proto::lane::{
    Bus, BusConfig, Lec, LecConfig, Lecs, LecsConfig, Les, LesConfig, bus, lec, lecs, les,
};
use aerostat_proto::{AtmEvent, AtmUser as _, Cause, ConnId, Duration, Machine, PartyId};
use aerostat_testing::World;
use aerostat_testing::lane::{Node, relay};
use aerostat_wire::lane::{
    ControlFrame, DataFrame, ElanName, Flags, LanDestination, OpCode, Status,
};
use aerostat_wire::{AtmAddress, MacAddr, Sap, Vc};

const LECS: usize = 0;
const LES: usize = 1;
const BUS: usize = 2;
const LEC0: usize = 3;
const CLIENTS: usize = 3;
const USERS: usize = LEC0 + CLIENTS;

fn mac(n: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, n])
}
fn address(n: u8) -> AtmAddress {
    let mut prefix = [0; 13];
    prefix[0] = 0x47;
    AtmAddress::from_parts(prefix, mac(n), 0)
}

/// User `who`, not started; a client begins with other numbers each time.
fn node(who: usize, life: u64) -> Node {
    let elan = ElanName::new("elan1").unwrap_or_default();
    match who {
        LECS => Node::Lecs(Box::new(Lecs::new(LecsConfig {
            address: address(0xa0),
            well_known: true,
            elans: vec![Elan::new(elan, address(0xa1))],
            ..LecsConfig::default()
        }))),
        LES => Node::Les(Box::new(Les::new(LesConfig::new(
            elan,
            address(0xa1),
            address(0xa2),
        )))),
        BUS => Node::Bus(Box::new(Bus::new(BusConfig::new(elan, address(0xa2))))),
        _ => {
            let n = (who - LEC0 + 1) as u8;
            Node::Lec(Box::new(Lec::new(LecConfig {
                seed: life * 7 + who as u64,
                v2: n != 3,
                selective: n == 2,
                groups: vec![MacAddr([1, 0, 0x5e, 0, 0, 1])],
                ..LecConfig::new(elan, address(n), mac(n))
            })))
        }
    }
}

fn start(w: &mut World<Node>, who: usize, on: bool) {
    w.with(who, |node, now| {
        let Ok(()) = match (node, on) {
            (Node::Lec(m), _) => {
                let input = if on {
                    lec::Input::Start
                } else {
                    lec::Input::Stop
                };
                let taken = m.handle_input(input, now);
                return taken.expect("a start or stop is never refused");
            }
            (Node::Les(m), true) => m.handle_input(les::Input::Start, now),
            (Node::Bus(m), true) => m.handle_input(bus::Input::Start, now),
            (Node::Lecs(m), true) => m.handle_input(lecs::Input::Start, now),
            (Node::Les(m), false) => m.handle_input(les::Input::Stop, now),
            (Node::Bus(m), false) => m.handle_input(bus::Input::Stop, now),
            (Node::Lecs(m), false) => m.handle_input(lecs::Input::Stop, now),
        };
    });
}

const OPS: [OpCode; 11] = [
    OpCode::CONFIGURE,
    OpCode::JOIN,
    OpCode::READY_QUERY,
    OpCode::READY_IND,
    OpCode::REGISTER,
    OpCode::UNREGISTER,
    OpCode::ARP,
    OpCode::FLUSH,
    OpCode::NARP,
    OpCode::TOPOLOGY,
    OpCode::VERIFY,
];

/// A control frame, a data frame, or noise.
fn sdu(feed: &mut Feed<'_>) -> Vec<u8> {
    let form = feed.below(8);
    if form == 0 {
        return feed.octets(200).to_vec();
    }
    if form == 1 {
        return DataFrame::encode(feed.below(5) as u16, &frame(feed));
    }
    let op = feed.pick(&OPS);
    let mut f = ControlFrame::new(if feed.coin() { op.response() } else { op });
    f.status = Status(feed.below(4) as u16);
    f.transaction = feed.u8().into();
    f.lecid = feed.below(5) as u16;
    f.flags = Flags(feed.u16() & 0x3ff);
    let place = |n: u8| match n {
        0 => LanDestination::ABSENT,
        n => LanDestination::mac(mac(n)),
    };
    (f.source, f.target) = (place(feed.u8() % 5), place(feed.u8() % 5));
    let host = |n: u8| {
        if n & 0x80 == 0 {
            address(n % 5)
        } else {
            address(n)
        }
    };
    (f.source_atm, f.target_atm) = (host(feed.u8()), host(feed.u8()));
    f.tlvs.missing = feed.u8() & 1;
    f.tlvs.trailing = feed.octets(48).to_vec();
    let mut octets = f.encode();
    feed.damage(&mut octets);
    octets
}

fn frame(feed: &mut Feed<'_>) -> Vec<u8> {
    let (to, from) = (feed.u8(), feed.u8());
    let mut frame = if to & 7 == 7 {
        vec![0xff; 6]
    } else {
        mac(to & 15).0.to_vec()
    };
    frame.extend(mac(from & 3).0);
    frame.extend([8, 0]);
    frame.resize(usize::from(feed.u8()) * 7, to);
    frame
}

fn conn(feed: &mut Feed<'_>, w: &World<Node>, who: usize) -> ConnId {
    let n = feed.u8();
    let base = if n & 0x80 == 0 {
        0
    } else {
        w.net.incoming_base(who)
    };
    ConnId(base + u32::from(n & 31))
}

/// Runs one input.
pub fn run(input: &[u8]) {
    let mut feed = Feed::new(input);
    let mode = feed.u8();
    let (joined, forging) = (mode & 1 == 0, mode & 2 == 2);
    let mut w = World::new(Duration::from_millis(1));
    w.relay = Some(relay);
    for who in 0..USERS {
        w.add(node(who, 0));
        if joined {
            start(&mut w, who, true);
        }
    }
    if joined {
        w.run_for(Duration::from_millis(500));
    }
    let mut life = 0;
    for _ in 0..120 {
        if feed.is_empty() {
            break;
        }
        let op = feed.u8();
        let who = feed.below(USERS);
        match op & 15 {
            0..=4 => {
                let conn = conn(&mut feed, &w, who);
                let sdu = sdu(&mut feed);
                if !sdu.is_empty() {
                    let event = AtmEvent::Received {
                        conn,
                        sdu: &sdu[..],
                    };
                    w.with(who, |node, now| node.event(event, now));
                }
            }
            5..=7 => {
                let frame = frame(&mut feed);
                transmit(&mut w, LEC0 + who % CLIENTS, frame);
            }
            8 => start(&mut w, who, feed.coin()),
            9 => {
                life += 1;
                w.replace(who, node(who, life));
                start(&mut w, who, true);
            }
            10 => {
                let sap = feed.pick(&SAPS);
                let now = w.now;
                w.net.break_calls(who, sap, now);
            }
            11 => {
                let called = feed.pick(&[address(1), address(2), address(0xa1), address(0xa2)]);
                let sap = feed.coin().then(|| feed.pick(&SAPS));
                let cause = Cause::TEMPORARY;
                w.net.refuse(called, sap, cause, 2);
            }
            12 => {
                let (mut state, loss) = (feed.u32(), u32::from(feed.u8() / 2));
                w.net.loss = Some(Box::new(move |_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    state >> 24 < loss
                }));
            }
            13 if forging => {
                let conn = conn(&mut feed, &w, who);
                let event = forged(&mut feed, conn);
                w.with(who, |node, now| node.event(event, now));
            }
            14 => w.run_for(Duration::from_secs(u64::from(feed.u8()))),
            _ => w.run_for(Duration::from_millis(u64::from(feed.u8()) * 4)),
        }
        check(&w);
    }
    w.net.loss = None;
    w.run_for(Duration::from_secs(2));
    for who in (0..USERS).rev() {
        start(&mut w, who, false);
    }
    w.run_for(Duration::from_secs(5));
    for (who, user) in w.users.iter().enumerate() {
        assert_eq!(
            user.poll_timeout(),
            None,
            "user {who} stopped, but has a timer"
        );
    }
    if !forging {
        assert_eq!(w.net.calls(), 0, "connections left over");
    }
}

const SAPS: [Sap; 3] = [
    Sap::LANE_CONTROL,
    Sap::LANE_DATA_ETHERNET,
    Sap::LANE_MULTICAST_ETHERNET,
];

fn transmit(w: &mut World<Node>, who: usize, frame: Vec<u8>) {
    w.with(who, |node, now| {
        if let Node::Lec(m) = node {
            // Refused if it is no Ethernet frame, or the client does not run.
            let _ = m.handle_input(lec::Input::Transmit(frame), now);
        }
    });
}

fn forged(feed: &mut Feed<'_>, conn: ConnId) -> AtmEvent<&'static [u8]> {
    let party = PartyId(feed.below(5) as u16);
    let cause = Cause::TEMPORARY;
    match feed.below(5) {
        0 => AtmEvent::Connected {
            conn,
            vc: Vc::new(0, 99),
            qos: aerostat_wire::Qos::ubr(0),
        },
        1 => AtmEvent::Up,
        2 => AtmEvent::PartyAdded { conn, party },
        3 => AtmEvent::PartyGone { conn, party, cause },
        _ => AtmEvent::Down,
    }
}

fn check(w: &World<Node>) {
    for user in &w.users {
        if let Node::Les(m) = user {
            assert!(m.snapshot().clients.len() <= 64);
        }
    }
}
