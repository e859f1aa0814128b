//! Contracts of data direct connections, and of connections to the BUS (C24 to C26).

use super::*;
use aerostat_proto::Cause;
use aerostat_proto::lane::lec::contracts::{BEST_EFFORT, CONSTANT, VARIABLE, multicast_send};
use aerostat_wire::lane::{Tlv, TlvType};
use aerostat_wire::{Sap, TrafficParams};
use proptest::prelude::*;

/// No rate of this kind is available (Q.2610).
const NO_RATE: Cause = Cause::RATE_UNAVAILABLE;

/// Two clients, which ask for a contract if it is given, in an ELAN whose LECS sends these TLVs.
fn world_with(data: Option<TrafficParams>, tlvs: Vec<Tlv>) -> World<Node> {
    let config = |n: u8| LecConfig {
        data_traffic: data,
        ..lec_config(n)
    };
    let mut w = world((0..2).map(config).collect());
    let lecs = LecsConfig {
        address: address(0xa0),
        well_known: true,
        elans: vec![Elan {
            tlvs,
            ..Elan::new(elan(), address(0xa1))
        }],
        ..LecsConfig::default()
    };
    w.replace(LECS, Node::Lecs(Box::new(Lecs::new(lecs))));
    start(&mut w, LECS);
    w
}

fn join(w: &mut World<Node>) {
    for who in [LEC0, LEC0 + 1] {
        start(w, who);
    }
    w.run_for(Duration::from_secs(2));
    for who in [LEC0, LEC0 + 1] {
        assert_eq!(lec_of(w, who).state(), lec::LecState::Operational);
    }
}

/// The traffic of a client's connections with this role.
fn traffic(w: &World<Node>, who: usize, role: &str) -> Vec<Option<TrafficParams>> {
    let rows = lec_of(w, who).snapshot().connections;
    let rows = rows.iter().filter(|row| row.role == role);
    rows.map(|row| row.traffic).collect()
}

/// Frames from the first client to the second until they go directly.
fn talk(w: &mut World<Node>) {
    for number in 0..20 {
        unicast(w, LEC0, LEC0 + 1, number);
        w.run_for(Duration::from_millis(100));
    }
    assert_eq!(delivered(w, LEC0 + 1), (0..20).collect::<Vec<_>>());
}

fn refuse(w: &mut World<Node>, called: AtmAddress, sap: Sap, cause: Cause, times: u32) {
    w.net.refuse(called, Some(sap), cause, times);
}

fn cbr(sdu: u16) -> TrafficParams {
    TrafficParams::cbr(2000, sdu)
}

#[test]
fn both_ends_of_a_data_direct_connection_have_its_contract() {
    let mut w = world_with(Some(cbr(0)), Vec::new());
    join(&mut w);
    talk(&mut w);
    for who in [LEC0, LEC0 + 1] {
        assert_eq!(traffic(&w, who, "data direct"), [Some(cbr(1516))]);
        assert_eq!(traffic(&w, who, "multicast send"), [None]);
    }
    finish(w);
}

#[test]
fn a_refused_contract_is_followed_by_best_effort_at_once_and_tried_again_later() {
    let mut w = world_with(Some(cbr(0)), Vec::new());
    join(&mut w);
    refuse(&mut w, address(2), Sap::LANE_DATA_ETHERNET, NO_RATE, 1);
    talk(&mut w);
    assert_eq!(traffic(&w, LEC0, "data direct"), [None]);
    let counters = lec_of(&w, LEC0).snapshot().control;
    assert_eq!(counters.contracts_refused, 1);
    // The connection was not held up by a wait: all except the first frames went directly.
    assert!(lec_of(&w, LEC0).snapshot().data.sent_direct >= 15);
    // When it is gone, and the wait is over, the contract is asked for again.
    w.net
        .break_calls(LEC0, Sap::LANE_DATA_ETHERNET, Instant::from_secs(4));
    w.run_for(Duration::from_secs(10));
    talk(&mut w);
    assert_eq!(traffic(&w, LEC0, "data direct"), [Some(cbr(1516))]);
    finish(w);
}

/// Other causes are about the call: they do not make the client ask for less.
#[test]
fn a_peer_that_refuses_for_another_reason_is_called_with_the_contract_again() {
    let mut w = world_with(Some(cbr(0)), Vec::new());
    join(&mut w);
    refuse(&mut w, address(2), Sap::LANE_DATA_ETHERNET, Cause::BUSY, 1);
    for number in 0..200 {
        unicast(&mut w, LEC0, LEC0 + 1, number);
        w.run_for(Duration::from_millis(100));
    }
    assert_eq!(traffic(&w, LEC0, "data direct"), [Some(cbr(1516))]);
    assert_eq!(lec_of(&w, LEC0).snapshot().control.contracts_refused, 0);
    w.take_notes();
    finish(w);
}

/// A network that never gives a contract costs one more call for each try, and no backoff.
#[test]
fn best_effort_can_be_refused_too() {
    let mut w = world_with(Some(cbr(0)), Vec::new());
    join(&mut w);
    refuse(&mut w, address(2), Sap::LANE_DATA_ETHERNET, NO_RATE, 2);
    for number in 0..200 {
        unicast(&mut w, LEC0, LEC0 + 1, number);
        w.run_for(Duration::from_millis(100));
    }
    let counters = lec_of(&w, LEC0).snapshot().control;
    assert_eq!(counters.contracts_refused, 1);
    assert_eq!(traffic(&w, LEC0, "data direct").len(), 1);
    assert!(lec_of(&w, LEC0).snapshot().data.sent_direct > 100);
    w.take_notes();
    finish(w);
}

fn told(kind: u16, average: u32, peak: u32) -> Vec<Tlv> {
    vec![
        Tlv::u16(TlvType::MULTICAST_SEND_TYPE, kind),
        Tlv::u32(TlvType::MULTICAST_SEND_AVERAGE, average),
        Tlv::u32(TlvType::MULTICAST_SEND_PEAK, peak),
    ]
}

#[test]
fn the_lecs_tells_the_rates_of_the_connection_to_the_bus() {
    for (kind, average, peak, mbs) in [(CONSTANT, 500, 500, 0), (VARIABLE, 100, 900, 32)] {
        let mut w = world_with(None, told(kind, average, peak));
        join(&mut w);
        let [Some(found)] = traffic(&w, LEC0, "multicast send")[..] else {
            panic!("one connection with a contract");
        };
        assert_eq!(
            (found.max_pcr, found.max_sdu, found.mbs),
            (Some(peak), 1516, mbs)
        );
        assert_eq!(found.scr, if mbs > 0 { average } else { 0 });
        finish(w);
    }
    let mut w = world_with(None, told(BEST_EFFORT, 1, 1));
    join(&mut w);
    assert_eq!(traffic(&w, LEC0, "multicast send"), [None]);
    finish(w);
}

#[test]
fn a_bus_that_cannot_be_reached_at_this_rate_is_called_once_more() {
    let mut w = world_with(None, told(CONSTANT, 500, 500));
    refuse(
        &mut w,
        address(0xa2),
        Sap::LANE_MULTICAST_ETHERNET,
        NO_RATE,
        1,
    );
    join(&mut w);
    let mut found: Vec<_> = [LEC0, LEC0 + 1]
        .map(|who| traffic(&w, who, "multicast send")[0])
        .into();
    found.sort_by_key(Option::is_some);
    assert!(found[0].is_none() && found[1].is_some(), "{found:?}");
    let counters = [LEC0, LEC0 + 1].map(|who| lec_of(&w, who).snapshot().control);
    assert_eq!(
        counters
            .map(|all| all.contracts_refused)
            .iter()
            .sum::<u64>(),
        1
    );
    // Neither lost its membership for it (C39).
    assert_eq!(counters.map(|all| (all.joins, all.losses)), [(1, 0); 2]);
    talk(&mut w);
    finish(w);
}

#[test]
fn rates_that_contradict_each_other_mean_best_effort_and_are_counted() {
    let mut w = world_with(None, told(CONSTANT, 400, 500));
    join(&mut w);
    assert_eq!(traffic(&w, LEC0, "multicast send"), [None]);
    assert_eq!(lec_of(&w, LEC0).snapshot().control.bad_contracts, 1);
    finish(w);
}

#[test]
fn mistakes_name_the_tlv_and_its_place() {
    let id = Tlv::u32(TlvType::ELAN_ID, 7);
    let after = |tlvs: Vec<Tlv>| [vec![id.clone()], tlvs].concat();
    for (tlvs, says) in [
        (
            told(3, 1, 1),
            "multicast-send-vcc-type at octet 9 is 3, which is no type",
        ),
        (
            told(CONSTANT, 400, 500),
            "multicast-send-peak-rate at octet 25 is 500, and the average rate 400 of a constant",
        ),
        (
            told(VARIABLE, 600, 500),
            "multicast-send-peak-rate at octet 25 is 500, and the average rate 600",
        ),
        (told(VARIABLE, 0, 500), "and the average rate 0"),
        (
            told(VARIABLE, 1, 1)[..2].to_vec(),
            "multicast-send-vcc-type at octet 9 is 1, and a rate is missing",
        ),
        (
            told(VARIABLE, 1, 1)[1..].to_vec(),
            "a rate of multicast send at octet 9 without its type",
        ),
        (
            vec![Tlv::u32(TlvType::MULTICAST_SEND_TYPE, 1)],
            "multicast-send-vcc-type at octet 9 has 4 octets",
        ),
        (
            vec![Tlv::u16(TlvType::MULTICAST_SEND_PEAK, 1)],
            "multicast-send-peak-rate at octet 9 has 2 octets",
        ),
    ] {
        let said = multicast_send(&after(tlvs), 1516).expect_err(says);
        assert!(said.contains(says), "{said}");
    }
    assert_eq!(multicast_send(&after(Vec::new()), 1516), Ok(None));
}

proptest! {
    /// Whatever a LECS sends, a switch can police the contract that comes of it.
    #[test]
    fn any_tlvs_are_a_contract_or_a_mistake(
        list in proptest::collection::vec((0x0b_u32..0x10, proptest::collection::vec(0_u8..4, 0..6)), 0..6),
        sdu in 1_u16..,
    ) {
        let tlvs: Vec<Tlv> = list
            .into_iter()
            .map(|(kind, value)| Tlv::new(TlvType(0x00a0_3e00 | kind), value))
            .collect();
        if let Ok(Some(found)) = multicast_send(&tlvs, sdu) {
            let peak = found.max_pcr.expect("a peak rate");
            prop_assert!(peak > 0 && found.scr <= peak);
            prop_assert!((found.scr == 0) == (found.mbs == 0));
            prop_assert!(found.conformance().is_some());
        }
    }
}
