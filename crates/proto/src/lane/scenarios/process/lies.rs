//! Daemons that say what is not so.

use super::*;
use crate::ConnId;
use crate::lane::lec::split::ToData;
use crate::split::codec::Field as _;

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
        FromLecd::Atm(AtmRequest::Connect {
            conn,
            calling,
            called: address(called),
            sap,
            qos: Qos::ubr(1500),
            multipoint: false,
        })
    };
    let lies = [
        FromLecd::Atm(AtmRequest::Listen {
            address: address(9),
            sap,
            max_sdu: 1500,
        }),
        FromLecd::Atm(AtmRequest::Unlisten {
            address: address(9),
            sap,
        }),
        connect(control, own, 2),
        connect(ConnId(ConnId::INCOMING + 500), own, 2),
        connect(ConnId(500), address(9), 2),
        FromLecd::Atm(AtmRequest::DropParty {
            conn: control,
            party: crate::PartyId(1),
        }),
        FromLecd::Atm(AtmRequest::Accept { conn: control }),
        FromLecd::Atm(AtmRequest::Send {
            conn: control,
            sdu: Vec::new(),
        }),
        FromLecd::Data(ToData::Bus(Some(control))),
        FromLecd::Data(ToData::Open {
            conn: control,
            idle: None,
            mux: None,
        }),
        FromLecd::Data(ToData::Open {
            conn: ConnId(3),
            idle: Some(zero),
            mux: None,
        }),
        FromLecd::Data(ToData::Switch {
            mac: mac(2),
            to: control,
            fresh: second,
        }),
        FromLecd::Data(ToData::Quota {
            count: 0,
            time: second,
        }),
        FromLecd::Data(ToData::Quota {
            count: 1,
            time: zero,
        }),
        FromLecd::Data(ToData::Joined {
            lecid: 0xff00,
            max_sdu: 1516,
        }),
        FromLecd::Dissociate { mac: mac(0x77) },
    ];
    for (n, lie) in lies.into_iter().enumerate() {
        with(&mut w, LEC0, |m, now| {
            m.input(lec::Input::Lecd(lie.clone()), now);
            let refused = m.lec.snapshot().control.daemon_refused;
            assert_eq!(refused, n as u64 + 1, "{lie:?}");
        });
    }
    // It has as many calls as the limits allow, and tells of as many MAC addresses.
    let limits = lec_config(0).limits;
    let (mut calls, mut macs) = (0, 0);
    for batch in 0..(limits.cache as u32 / 1000) + 1 {
        with(&mut w, LEC0, |m, now| {
            for n in batch * 1000..(batch + 1) * 1000 {
                let octets = n.to_be_bytes();
                let mac = MacAddr([2, 9, octets[0], octets[1], octets[2], octets[3]]);
                let (atm, tlvs) = (address(9), Vec::new());
                let told = FromLecd::Associate { mac, atm, tlvs };
                m.input(lec::Input::Lecd(told), now);
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
                m.input(lec::Input::Lecd(request), now);
                calls += m.out.len() - before;
            }
        });
    }
    assert_eq!(macs, limits.cache);
    assert!(calls < limits.vccs + 16, "{calls}");
    with(&mut w, LEC0, Split::kill);
    with(&mut w, LEC0, |m, now| {
        let before = m.lec.snapshot().control.daemon_refused;
        m.input(lec::Input::Lecd(FromLecd::Left), now);
        assert_eq!(m.lec.snapshot().control.daemon_refused, before + 1);
    });
    with(&mut w, LEC0, Split::come);
    w.run_for(Duration::from_secs(10));
    assert_eq!(members(&w), 2);
    end(w);
}

/// A daemon that says anything at all: the lab's side stays within its laws, and the next daemon is a member.
#[test]
fn a_daemon_that_lies_harms_its_own_client_alone() {
    for seed in 0..40 {
        let mut w = split_world(2, Duration::ZERO);
        let mut random = Random::new(seed);
        for round in 0..80 {
            let mut lie = FromLecd::sample(&mut random);
            // Ids that exist are the interesting ones.
            let known = match random.below(8) {
                n @ 0..=4 => ConnId(n as u32),
                n => ConnId(ConnId::INCOMING + n as u32 - 5),
            };
            match &mut lie {
                FromLecd::Data(ToData::Open { conn, .. } | ToData::Bus(Some(conn)))
                | FromLecd::Data(ToData::Close(conn) | ToData::Switch { to: conn, .. })
                | FromLecd::Atm(AtmRequest::Release { conn, .. })
                | FromLecd::Atm(AtmRequest::Send { conn, .. })
                | FromLecd::Atm(AtmRequest::Accept { conn })
                | FromLecd::ConnGone(conn) => *conn = known,
                FromLecd::Conn(row) => row.conn = known,
                FromLecd::Ended { exits } => *exits = false,
                _ => {}
            }
            with(&mut w, LEC0, |m, now| m.input(lec::Input::Lecd(lie), now));
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
        // A liar may have sent on what it had released just then.
        w.net.misuse = 0;
        end(w);
    }
}

#[test]
fn only_a_split_client_has_a_process() {
    let mut lec = Lec::new(lec_config(0));
    let now = Instant::ZERO;
    assert!(lec.handle_input(lec::Input::LecdCame, now).is_err());
    let left = lec::Input::Lecd(FromLecd::Left);
    assert!(lec.handle_input(left, now).is_err());
    assert!(lec.handle_input(lec::Input::LecdGone, now).is_err());
}
