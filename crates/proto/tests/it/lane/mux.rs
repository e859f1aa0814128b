//! LLC-multiplexed data direct connections.

use super::*;
use aerostat_proto::Cause;
use aerostat_wire::Sap;

/// Three joined clients; the first two take LLC-multiplexed calls, and the third does if `all`.
fn world_with_mux(elan_id: u32, all: bool) -> World<Node> {
    let config = |n: u8| LecConfig {
        llc_mux: all || n < 2,
        ..lec_config(n)
    };
    let mut w = world((0..3).map(config).collect());
    let les = LesConfig {
        elan_id,
        ..les_config()
    };
    w.replace(LES, Node::Les(Box::new(Les::new(les))));
    start(&mut w, LES);
    for who in LEC0..LEC0 + 3 {
        start(&mut w, who);
    }
    w.run_for(Duration::from_secs(20));
    for who in LEC0..LEC0 + 3 {
        assert_eq!(lec_of(&w, who).state(), lec::LecState::Operational);
    }
    w.take_notes();
    w
}

/// Frames in both directions between the first client and client `to`; all arrive, in order.
fn talk(w: &mut World<Node>, to: usize) {
    let mut sent = Vec::new();
    for number in 0..40 {
        unicast(w, LEC0, to, number);
        sent.push(number);
        w.run_for(Duration::from_millis(200));
    }
    assert_eq!(delivered(w, to), sent);
    for number in &sent {
        unicast(w, to, LEC0, *number);
        w.run_for(Duration::from_millis(200));
    }
    assert_eq!(delivered(w, LEC0), sent);
    assert!(lec_of(w, LEC0).snapshot().data.sent_direct >= 10);
    assert_eq!(lec_of(w, LEC0).snapshot().data.bad_mux, 0);
}
fn calls(w: &World<Node>) -> (usize, usize) {
    let [mux, plain] = [Sap::LLC, Sap::LANE_DATA_ETHERNET].map(|sap| w.net.roots(sap).len());
    (mux, plain)
}

#[test]
fn two_that_multiplex_do_and_others_do_not() {
    let mut w = world_with_mux(7, false);
    talk(&mut w, LEC0 + 1);
    assert_eq!(calls(&w), (1, 0));
    let rows = lec_of(&w, LEC0).snapshot().connections;
    assert!(rows.iter().any(|row| row.role == "data direct, LLC"));
    talk(&mut w, LEC0 + 2);
    assert_eq!(calls(&w), (1, 1));
    finish(w);
}

#[test]
fn an_elan_without_a_number_has_no_multiplexed_calls() {
    let mut w = world_with_mux(0, true);
    talk(&mut w, LEC0 + 1);
    assert_eq!(calls(&w), (0, 1));
    finish(w);
}

#[test]
fn who_refuses_is_called_the_plain_way() {
    let mut w = world_with_mux(7, true);
    w.net
        .refuse(address(2), Some(Sap::LLC), Cause::INCOMPATIBLE, 1);
    talk(&mut w, LEC0 + 1);
    assert_eq!(calls(&w), (0, 1));
    finish(w);
}

#[test]
fn crossing_multiplexed_calls_leave_one_connection() {
    let mut w = world_with_mux(7, true);
    for number in 0..60 {
        unicast(&mut w, LEC0, LEC0 + 1, number);
        unicast(&mut w, LEC0 + 1, LEC0, 1000 + number);
        w.run_for(Duration::from_micros(500));
    }
    w.run_for(Duration::from_millis(500));
    // No frame waits for a time-out of the flush.
    let notes = w.take_notes();
    for who in [LEC0, LEC0 + 1] {
        let frames = notes.iter().filter(|(_, from, note)| {
            *from == who && matches!(note, Note::Lec(lec::Output::Deliver(_)))
        });
        assert_eq!(frames.count(), 60);
    }
    for number in 0..120 {
        unicast(&mut w, LEC0, LEC0 + 1, 100 + number);
        unicast(&mut w, LEC0 + 1, LEC0, 1100 + number);
        w.run_for(Duration::from_millis(100));
    }
    assert_eq!(w.net.roots(Sap::LLC), [LEC0]);
    w.take_notes();
    talk(&mut w, LEC0 + 1);
    finish(w);
}
