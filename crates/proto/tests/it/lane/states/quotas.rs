//! Limits of the frames that one member may make a LES send to others.

use super::servers::{client, les, of_les, request};
use super::*;
use aerostat_proto::lane::ServerParams;

/// A member that answers for stations behind it.
fn proxy(b: &mut Bench, who: u8) -> ConnId {
    let conn = b.caller(address(who), Sap::LANE_CONTROL);
    let mut join = request(OpCode::JOIN, who, 0);
    join.flags = Flags::PROXY;
    b.receive(conn, &join);
    for (conn, party, _) in b.parties() {
        b.event(AtmEvent::PartyAdded { conn, party });
    }
    conn
}

/// A second's quota passes at once, then frames pass at the rate; the others are counted and traced once. Other members
/// have their own quota.
#[test]
fn les_joined_announcements_have_a_quota_for_each_member() {
    let mut b = les();
    let (foe, other) = (client(&mut b, 1, "joined"), client(&mut b, 2, "joined"));
    b.frames();
    let rate = ServerParams::default().quota.announcements.0 as usize;
    let announcement = |n: usize| {
        let ops = [OpCode::NARP, OpCode::TOPOLOGY, OpCode::ARP];
        request(ops[n % ops.len()], 1, 1)
    };
    for n in 0..3 * rate {
        b.receive(foe, &announcement(n));
    }
    assert_eq!(b.frames().len(), rate);
    assert_eq!(of_les(&b).counters.over_quota, 2 * rate as u64);
    b.receive(other, &request(OpCode::TOPOLOGY, 2, 2));
    assert_eq!(b.frames().len(), 1);
    // LE_ARP with a target is no announcement.
    let mut question = request(OpCode::ARP, 1, 1);
    question.target = LanDestination::mac(mac(2));
    b.receive(foe, &question);
    assert_eq!(b.frame().0, foe);
    b.now += Duration::from_millis(100);
    for n in 0..rate {
        b.receive(foe, &announcement(n));
    }
    assert_eq!(b.frames().len(), rate / 10);
    let told = b.notes.iter().filter(
        |note| matches!(note, Note::Trace(trace) if trace.name == "les.over-quota" && trace.milestone),
    );
    assert_eq!(told.count(), 1);
}

/// Each such request is copied to every proxy, so one member costs all of them. A request that the LES answers itself
/// costs no other member anything.
#[test]
fn les_joined_questions_for_unregistered_addresses_have_a_quota_for_each_member() {
    let mut b = les();
    let (foe, other) = (client(&mut b, 1, "joined"), client(&mut b, 2, "joined"));
    let proxies = [proxy(&mut b, 3), proxy(&mut b, 4)];
    b.frames();
    let rate = ServerParams::default().quota.unregistered.0 as usize;
    let question = |from: u8, about: u8| {
        let mut question = request(OpCode::ARP, from, from.into());
        question.target = LanDestination::mac(mac(about));
        question
    };
    for _ in 0..2 * rate {
        b.receive(foe, &question(1, 99));
    }
    let frames = b.frames();
    assert_eq!(frames.len(), rate * proxies.len());
    assert!(frames.iter().all(|(to, _)| proxies.contains(to)));
    assert_eq!(of_les(&b).counters.arp_over_quota, rate as u64);
    b.receive(other, &question(2, 99));
    assert_eq!(b.frames().len(), proxies.len());
    b.receive(foe, &question(1, 2));
    assert_eq!(b.frame().0, foe, "a registered address");
    b.receive(foe, &request(OpCode::TOPOLOGY, 1, 1));
    assert_eq!(b.frame().0, b.distribute, "a quota of its own");
    b.now += Duration::from_millis(100);
    for _ in 0..rate {
        b.receive(foe, &question(1, 99));
    }
    assert_eq!(b.frames().len(), rate / 10 * proxies.len());
    let told = b.notes.iter().filter(
        |note| matches!(note, Note::Trace(trace) if trace.name == "les.over-quota" && trace.milestone),
    );
    assert_eq!(told.count(), 1);
}

/// After each registration and each end of one, the BUS gets all addresses of the member.
#[test]
fn les_joined_registrations_have_a_quota_for_each_member() {
    let mut b = les();
    let (foe, other) = (client(&mut b, 1, "joined"), client(&mut b, 2, "joined"));
    b.frames();
    let told = |b: &Bench| {
        let members = b.notes.iter();
        members
            .filter(|note| matches!(note, Note::Member(..)))
            .count()
    };
    let params = ServerParams::default();
    let (rate, before) = (params.quota.registrations.0 as usize, told(&b));
    assert!(rate >= params.registrations, "all of a client at once");
    let step = |n: usize, who: u8| {
        let op = [OpCode::REGISTER, OpCode::UNREGISTER][n % 2];
        let mut frame = request(op, who, who.into());
        frame.source = LanDestination::mac(mac(99));
        frame
    };
    for n in 0..3 * rate {
        b.receive(foe, &step(n, 1));
    }
    assert_eq!(told(&b), before + rate);
    assert_eq!(b.frames().len(), rate, "one answer for each");
    let counters = of_les(&b).counters;
    assert_eq!(counters.registrations_over_quota, 2 * rate as u64);
    b.receive(other, &step(0, 2));
    assert_eq!((b.frame().0, told(&b)), (other, before + rate + 1));
    b.now += Duration::from_secs(1);
    for n in 0..2 * rate {
        b.receive(other, &step(n + 1, 2));
    }
    assert_eq!(told(&b), before + 2 * rate + 1);
    let traces = b.notes.iter().filter(
        |note| matches!(note, Note::Trace(trace) if trace.name == "les.over-quota" && trace.milestone),
    );
    assert_eq!(traces.count(), 2, "one for each end system");
}
