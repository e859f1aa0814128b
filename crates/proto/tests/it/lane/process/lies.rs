//! Daemons that send false messages.

use super::*;
use aerostat_proto::ConnId;
use aerostat_proto::lane::lec::split::ToData;
use aerostat_testing::messages::{self, Random};

#[test]
fn a_daemon_gets_nothing_that_is_not_its_own() {
    let mut w = split_world(2, Duration::ZERO);
    transmit(&mut w, LEC0, LEC0 + 1, 0);
    w.run_for(Duration::from_secs(1));
    let data = w.net.roots(Sap::LANE_DATA_ETHERNET);
    assert_eq!(data, [LEC0]);
    let sap = Sap::LANE_DATA_ETHERNET;
    let shown = client(&w, LEC0).lec.snapshot();
    let (zero, control) = (Duration::ZERO, ConnId(2));
    assert_eq!(shown.connections[0].role, "control direct");
    let second = Duration::from_secs(1);
    let own = lec_config(0).address;
    let connect = |conn, calling, called| {
        FromDaemon::Atm(AtmRequest::Connect {
            conn,
            calling,
            called: address(called),
            sap,
            qos: Qos::ubr(1500),
            multipoint: false,
        })
    };
    let lies = [
        FromDaemon::Atm(AtmRequest::listen(address(9), sap, 1500)),
        FromDaemon::Atm(AtmRequest::Unlisten {
            address: address(9),
            sap,
        }),
        connect(control, own, 2),
        connect(ConnId(ConnId::INCOMING + 500), own, 2),
        connect(ConnId(500), address(9), 2),
        FromDaemon::Atm(AtmRequest::DropParty {
            conn: control,
            party: aerostat_proto::PartyId(1),
        }),
        FromDaemon::Atm(AtmRequest::Accept {
            conn: control,
            terms: None,
        }),
        FromDaemon::Atm(AtmRequest::Send {
            conn: control,
            sdu: Vec::new(),
        }),
        FromDaemon::Message(FromLecd::Data(ToData::Bus(Some(control)))),
        FromDaemon::Message(FromLecd::Data(ToData::Open {
            conn: control,
            idle: None,
            mux: None,
        })),
        FromDaemon::Message(FromLecd::Data(ToData::Open {
            conn: ConnId(3),
            idle: Some(zero),
            mux: None,
        })),
        FromDaemon::Message(FromLecd::Data(ToData::Switch {
            mac: mac(2),
            to: control,
            fresh: second,
        })),
        FromDaemon::Message(FromLecd::Data(ToData::Quota {
            count: 0,
            time: second,
        })),
        FromDaemon::Message(FromLecd::Data(ToData::Quota {
            count: 1,
            time: zero,
        })),
        FromDaemon::Message(FromLecd::Data(ToData::Joined {
            lecid: 0xff00,
            max_sdu: 1516,
        })),
        FromDaemon::Message(FromLecd::News(lec::News::Dissociate { mac: mac(0x77) })),
    ];
    for (n, lie) in lies.into_iter().enumerate() {
        with(&mut w, LEC0, |m, now| {
            m.input(event(ProcessEvent::Said(lie.clone())), now);
            let refused = m.lec.snapshot().seat.refused;
            assert_eq!(refused, n as u64 + 1, "{lie:?}");
        });
    }
    // The daemon has as many calls as the limits allow, and reports as many MAC addresses.
    let limits = lec_config(0).limits;
    let (mut calls, mut macs) = (0, 0);
    for batch in 0..(limits.cache as u32 / 1000) + 1 {
        with(&mut w, LEC0, |m, now| {
            for n in batch * 1000..(batch + 1) * 1000 {
                let octets = n.to_be_bytes();
                let mac = MacAddr([2, 9, octets[0], octets[1], octets[2], octets[3]]);
                let (atm, tlvs) = (address(9), Vec::new());
                let told = FromLecd::News(lec::News::Associate { mac, atm, tlvs });
                m.input(said(told), now);
            }
            macs = m.associated.len();
        });
    }
    for batch in 0..(limits.vccs as u32 / 1000) + 1 {
        with(&mut w, LEC0, |m, now| {
            for n in batch * 1000..(batch + 1) * 1000 {
                let conn = ConnId(10_000 + n);
                let request = connect(conn, own, 0x70);
                let before = m.out.len();
                m.input(event(ProcessEvent::Said(request)), now);
                calls += m.out.len() - before;
            }
        });
    }
    assert_eq!(macs, limits.cache);
    assert!(calls < limits.vccs + 16, "{calls}");
    with(&mut w, LEC0, Split::kill);
    // What was under way when the daemon ended is late, and not a lie.
    with(&mut w, LEC0, |m, now| {
        let before = m.lec.snapshot().seat.refused;
        let outputs = m.out.len();
        m.input(said(FromLecd::News(lec::News::Left)), now);
        assert_eq!(m.lec.snapshot().seat.refused, before);
        assert_eq!(m.out.len(), outputs);
    });
    with(&mut w, LEC0, Split::come);
    w.run_for(Duration::from_secs(10));
    assert_eq!(members(&w), 2);
    end(w);
}

/// A daemon that sends any messages: the lab's side keeps to its rules, and the next daemon is a member.
#[test]
fn a_daemon_that_lies_harms_its_own_client_alone() {
    for seed in 0..40 {
        let mut w = split_world(2, Duration::ZERO);
        let mut random = Random::new(seed);
        for round in 0..80 {
            let mut lie = messages::message(&mut random, From::decode)
                .unwrap()
                .message;
            // Existing ids are chosen often.
            let known = match random.below(8) {
                n @ 0..=4 => ConnId(n as u32),
                n => ConnId(ConnId::INCOMING + n as u32 - 5),
            };
            match &mut lie {
                FromDaemon::Message(message) => match message {
                    FromLecd::Data(ToData::Open { conn, .. } | ToData::Bus(Some(conn)))
                    | FromLecd::Data(ToData::Close(conn) | ToData::Switch { to: conn, .. })
                    | FromLecd::ConnGone(conn) => *conn = known,
                    FromLecd::Conn(row) => row.conn = known,
                    _ => {}
                },
                FromDaemon::Atm(
                    AtmRequest::Release { conn, .. }
                    | AtmRequest::Send { conn, .. }
                    | AtmRequest::Accept { conn, terms: None },
                ) => *conn = known,
                FromDaemon::Ended(ended) => *ended = Ended::Stops,
                _ => {}
            }
            with(&mut w, LEC0, |m, now| {
                m.input(event(ProcessEvent::Said(lie)), now);
            });
            transmit(&mut w, LEC0, LEC0 + 1, round);
            w.run_for(Duration::from_millis(5));
        }
        with(&mut w, LEC0, Split::kill);
        w.run_for(GRACE + Duration::from_secs(1));
        with(&mut w, LEC0, Split::come);
        w.run_for(Duration::from_secs(60));
        assert_eq!(members(&w), 2, "seed {seed}");
        w.take_notes();
        transmit(&mut w, LEC0 + 1, LEC0, 5000);
        w.run_for(Duration::from_secs(5));
        let notes = w.take_notes();
        assert_eq!(arrived(&notes, LEC0), [5000], "seed {seed}");
        // A false daemon may have sent on a connection that it had just released.
        w.net.misuse = 0;
        end(w);
    }
}

#[test]
fn only_a_split_client_has_a_process() {
    let mut lec = Lec::new(lec_config(0));
    let now = Instant::ZERO;
    for event_of_process in [ProcessEvent::Came, ProcessEvent::Gone] {
        assert!(lec.handle_input(event(event_of_process), now).is_err());
    }
    assert!(
        lec.handle_input(said(FromLecd::News(lec::News::Left)), now)
            .is_err()
    );
}
