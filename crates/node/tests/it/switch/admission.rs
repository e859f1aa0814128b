//! Calls that offer a choice of traffic descriptors, over links that are full or nearly full.

use aerostat_proto::ConnId;
use aerostat_proto::uni::{CallId, ConnectInfo, Indication, Request, SetupInfo, Version};
use aerostat_wire::q2931::{Fields, Ie, MessageType, id, ie};
use aerostat_wire::{Qos, TrafficParams};
use proptest::prelude::*;

use aerostat_testing::switch::Net;
use aerostat_testing::switch::bare::Bare;

const V4: Version = Version::Uni40;
const A: CallId = CallId(1);
const B: CallId = CallId(2);

fn rates(forward: u32, backward: u32) -> Fields {
    Fields::new().with(0x84, forward).with(0x85, backward)
}
fn with(mut info: SetupInfo, ie: Ie) -> SetupInfo {
    info.elements.push(ie.encode());
    info
}
fn alternative(info: SetupInfo, forward: u32, backward: u32) -> SetupInfo {
    with(info, Ie::AlternativeTraffic(rates(forward, backward)))
}
fn minimum(info: SetupInfo, forward: u32, backward: u32) -> SetupInfo {
    with(info, Ie::MinimumTraffic(rates(forward, backward)))
}
fn fields(message: Option<&aerostat_wire::q2931::Message>, wanted: u8) -> Option<(u32, u32)> {
    match ie::decode(message?.find(wanted)?).unwrap() {
        Ie::Traffic(f) | Ie::AlternativeTraffic(f) | Ie::MinimumTraffic(f) => {
            Some((f.get(0x84)?, f.get(0x85)?))
        }
        other => panic!("{other:?}"),
    }
}
/// Peak rates that the fabric of a switch polices, by direction of the call.
fn contracts(net: &Bare, k: usize) -> Vec<Option<u32>> {
    let connections = net.switches[k].fabric().connections();
    let mut rates: Vec<_> = connections
        .filter(|c| !c.local)
        .map(|c| c.traffic.max_pcr)
        .collect();
    rates.sort_unstable();
    rates
}
fn reserved(net: &Bare, k: usize, port: usize) -> (u64, u64) {
    net.switches[k].port_infos().nth(port).unwrap().reserved
}
/// Two switches; hosts 0 and 1 at the first, 2 at the second. The trunk has `left` cells/s left; host 1 has reserved
/// the rest.
fn nearly_full(left: u32, callee: Version) -> Bare {
    let mut net = Bare::new(2, V4, &[(0, V4), (0, V4), (1, callee)]);
    let admit = net.switches[0].port_infos().nth(1).unwrap().admit;
    net.set_up(1, 2, net.info(1, 2, Qos::cbr(admit - left, 1536)));
    net.run_ms(20);
    net.accept(2);
    net.run_ms(20);
    assert_eq!(
        net.hosts[1]
            .last(MessageType::CONNECT)
            .unwrap()
            .elements
            .len(),
        0
    );
    net.forget();
    net
}
fn finish(net: &mut Bare, calls: &[(usize, CallId)]) {
    for (host, call) in calls {
        net.release(*host, *call);
    }
    net.run_ms(100);
    net.assert_clean();
}

#[test]
fn the_first_offer_is_taken_where_it_fits() {
    let mut net = Bare::new(2, V4, &[(0, V4), (1, V4)]);
    let info = alternative(net.info(0, 1, Qos::cbr(1000, 1536)), 100, 100);
    net.set_up(0, 1, info);
    net.run_ms(20);
    let setup = net.hosts[1].last(MessageType::SETUP);
    assert_eq!(fields(setup, id::TRAFFIC_DESCRIPTOR), Some((1000, 1000)));
    assert_eq!(fields(setup, id::ALTERNATIVE_TRAFFIC), Some((100, 100)));
    net.accept(1);
    net.run_ms(20);
    let connect = net.hosts[0].last(MessageType::CONNECT);
    assert_eq!(
        fields(connect, id::TRAFFIC_DESCRIPTOR),
        Some((1000, 1000)),
        "who leaves a choice is told"
    );
    assert_eq!(contracts(&net, 0), [Some(1000); 2]);
    finish(&mut net, &[(0, A)]);
}

#[test]
fn the_alternative_is_taken_over_a_full_link() {
    for callee in [Version::Uni31, V4] {
        let mut net = nearly_full(500, callee);
        net.set_up(
            0,
            1,
            alternative(net.info(0, 2, Qos::cbr(1000, 1536)), 300, 200),
        );
        net.run_ms(20);
        let setup = net.hosts[2].last(MessageType::SETUP);
        assert_eq!(fields(setup, id::TRAFFIC_DESCRIPTOR), Some((300, 200)));
        assert_eq!(
            fields(setup, id::ALTERNATIVE_TRAFFIC),
            None,
            "nothing left to choose"
        );
        net.accept(2);
        net.run_ms(20);
        let connect = net.hosts[0].last(MessageType::CONNECT);
        assert_eq!(fields(connect, id::TRAFFIC_DESCRIPTOR), Some((300, 200)));
        for k in 0..2 {
            assert!(contracts(&net, k).contains(&Some(300)));
            assert!(contracts(&net, k).contains(&Some(200)));
        }
        // Port 2 of switch 0 is the caller's port: the caller sends 300 and gets 200.
        assert_eq!(reserved(&net, 0, 2), (200, 300));
        finish(&mut net, &[(0, A), (1, B)]);
    }
}

/// The second switch chooses the alternative, and the first one reduces its reservation.
#[test]
fn a_choice_further_on_reaches_the_first_switch() {
    let mut net = Bare::configured(2, V4, &[(0, V4), (1, V4)], |switch, config| {
        if switch == 1 && config.name == "h1" {
            (config.admit, config.admit_in) = (500, 500);
        }
    });
    net.set_up(
        0,
        1,
        alternative(net.info(0, 1, Qos::cbr(1000, 1536)), 300, 200),
    );
    net.run_ms(20);
    assert_eq!(reserved(&net, 0, 2), (1000, 1000), "so far");
    net.accept(1);
    net.run_ms(20);
    let connect = net.hosts[0].last(MessageType::CONNECT);
    assert_eq!(fields(connect, id::TRAFFIC_DESCRIPTOR), Some((300, 200)));
    assert_eq!(reserved(&net, 0, 2), (200, 300));
    assert_eq!(reserved(&net, 0, 1), (300, 200));
    assert_eq!(contracts(&net, 0), [Some(200), Some(300)]);
    finish(&mut net, &[(0, A)]);
}

#[test]
fn the_peak_rate_is_scaled_down_to_the_minimum_at_most() {
    for (left, given) in [
        (1000, Some(1000)),
        (400, Some(400)),
        (100, Some(100)),
        (99, None),
    ] {
        let mut net = nearly_full(left, V4);
        net.set_up(
            0,
            1,
            minimum(net.info(0, 2, Qos::cbr(1000, 1536)), 100, 100),
        );
        net.run_ms(20);
        let Some(given) = given else {
            assert_eq!(net.hosts[0].released(), [37]);
            finish(&mut net, &[(1, B)]);
            continue;
        };
        let setup = net.hosts[2].last(MessageType::SETUP);
        assert_eq!(fields(setup, id::TRAFFIC_DESCRIPTOR), Some((given, given)));
        let choice = (given > 100).then_some((100, 100));
        assert_eq!(fields(setup, id::MINIMUM_TRAFFIC), choice);
        net.accept(2);
        net.run_ms(20);
        let connect = net.hosts[0].last(MessageType::CONNECT);
        assert_eq!(
            fields(connect, id::TRAFFIC_DESCRIPTOR),
            Some((given, given))
        );
        assert!(contracts(&net, 1).contains(&Some(given)));
        finish(&mut net, &[(0, A), (1, B)]);
    }
}

/// A called user answers with a descriptor that it was offered, or with another one.
#[test]
fn the_called_user_chooses() {
    for (answer, good) in [
        ((300, 200), true),
        ((1000, 1000), true),
        ((301, 200), false),
        ((2000, 2000), false),
    ] {
        let mut net = Bare::new(2, V4, &[(0, V4), (1, V4)]);
        net.set_up(
            0,
            1,
            alternative(net.info(0, 1, Qos::cbr(1000, 1536)), 300, 200),
        );
        net.run_ms(20);
        let (call, _) = net.hosts[1].offer().unwrap();
        let mut info = ConnectInfo::default();
        info.set_traffic(Some(&rates(answer.0, answer.1)));
        let vc = None;
        net.ask(1, Request::Accept { call, info, vc }).unwrap();
        net.run_ms(20);
        if good {
            let connect = net.hosts[0].last(MessageType::CONNECT);
            assert_eq!(fields(connect, id::TRAFFIC_DESCRIPTOR), Some(answer));
            let (forward, backward) = (u64::from(answer.0), u64::from(answer.1));
            assert_eq!(reserved(&net, 0, 2), (backward, forward));
            assert_eq!(reserved(&net, 1, 2), (forward, backward));
            finish(&mut net, &[(0, A)]);
        } else {
            assert_eq!(net.hosts[0].released(), [100], "{answer:?}");
            assert_eq!(net.hosts[1].released(), [100]);
            finish(&mut net, &[]);
        }
    }
}

/// For a caller that cannot be told, or that offers an invalid alternative, only the first offer counts.
#[test]
fn choices_that_do_not_count() {
    for (caller, other) in [
        (Version::Uni31, Ie::AlternativeTraffic(rates(100, 100))),
        // Best effort instead of CBR.
        (V4, Ie::AlternativeTraffic(rates(100, 100).with(0xbe, 0))),
        // No backward rate.
        (V4, Ie::AlternativeTraffic(Fields::new().with(0x84, 100))),
        (V4, Ie::MinimumTraffic(rates(100, 2000))),
    ] {
        let mut net = Bare::configured(1, V4, &[(0, caller), (0, V4)], |_, config| {
            (config.admit, config.admit_in) = (500, 500);
        });
        net.set_up(0, 1, with(net.info(0, 1, Qos::cbr(1000, 1536)), other));
        net.run_ms(20);
        assert_eq!(net.hosts[0].released(), [37], "{caller:?}");
        finish(&mut net, &[]);
    }
}

/// A real-time VBR call keeps its sustainable rate below its peak rate.
#[test]
fn the_peak_rate_stays_above_the_sustainable_one() {
    let vbr = TrafficParams {
        category: Some(aerostat_wire::ServiceCategory::RtVbr),
        scr: 300,
        mbs: 10,
        ..TrafficParams::cbr(1000, 1536)
    };
    for (left, given) in [(400, Some((400, 400))), (200, None)] {
        let mut net = nearly_full(left, V4);
        let info = net.info(0, 2, Qos { tx: vbr, rx: vbr });
        net.set_up(0, 1, minimum(info, 100, 100));
        net.run_ms(20);
        let setup = net.hosts[2].last(MessageType::SETUP);
        assert_eq!(fields(setup, id::TRAFFIC_DESCRIPTOR), given);
        let calls: &[_] = if given.is_some() {
            &[(0, A), (1, B)]
        } else {
            &[(1, B)]
        };
        finish(&mut net, calls);
    }
}

/// Hosts with signalling: `min_pcr` becomes the element, the answer becomes the contract of both VCs.
#[test]
fn hosts_get_what_the_network_has_left() {
    let mut net = Net::chain_of(V4, 2, &[0, 0, 1]);
    net.listen(2);
    let admit = net.switches[0].port_infos().nth(1).unwrap().admit;
    net.call_with(1, 2, 1, Qos::cbr(admit - 5000, 1536), false);
    net.run_ms(100);
    assert!(net.hosts[1].connected(ConnId(1)));
    let flexible = TrafficParams {
        min_pcr: 1000,
        ..TrafficParams::cbr(20_000, 1536)
    };
    let qos = Qos {
        tx: flexible,
        rx: flexible,
    };
    net.call_with(0, 2, 1, qos, false);
    net.call_with(0, 2, 2, Qos::cbr(20_000, 1536), false);
    net.run_ms(100);
    assert!(net.hosts[0].connected(ConnId(1)));
    assert_eq!(
        net.hosts[0].released(ConnId(2)),
        Some(aerostat_proto::Cause::RATE_UNAVAILABLE)
    );
    let rate = |host: usize| {
        let calls = net.hosts[host].signalling.calls();
        let mut rates: Vec<_> = calls
            .map(|c| (c.qos.tx.max_pcr, c.qos.rx.max_pcr))
            .collect();
        rates.sort_unstable();
        rates[0]
    };
    assert_eq!(rate(0), (Some(5000), Some(5000)));
    assert_eq!(rate(2), (Some(5000), Some(5000)));
    for k in 0..2 {
        let connections = net.switches[k].fabric().connections();
        let policed = connections.filter(|c| !c.local && c.traffic.max_pcr == Some(5000));
        assert_eq!(policed.count(), 2, "one each way in switch {k}");
    }
    net.release(0, ConnId(1));
    net.release(1, ConnId(1));
    net.run_ms(100);
    net.assert_clean();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever is left on the links and acceptable to the caller: the caller gets its first offer if there is room for
    /// it, otherwise a fallback if there is room for that, otherwise cause 37. All parts reserve what the caller was
    /// told, and no port promises more than it has.
    #[test]
    fn all_parts_agree(
        left in prop::collection::vec(0..1500_u32, 3),
        offer in (1..1200_u32, 1..1200_u32),
        other in (1..1200_u32, 1..1200_u32),
        scale: bool,
    ) {
        let admit = left.clone();
        let mut net = Bare::configured(2, V4, &[(0, V4), (1, V4)], move |switch, config| {
            config.admit = match (switch, config.name.as_str()) {
                (0, "h0") => admit[0],
                (0, "after") => admit[1],
                (1, "h1") => admit[2],
                _ => 2000,
            };
            config.admit_in = config.admit;
        });
        let least = *left.iter().min().unwrap();
        let qos = Qos { rx: TrafficParams::cbr(offer.1, 1536), ..Qos::cbr(offer.0, 1536) };
        let info = net.info(0, 1, qos);
        let scale = scale && other.0 <= offer.0 && other.1 <= offer.1;
        net.set_up(0, 1, if scale {
            minimum(info, other.0, other.1)
        } else {
            alternative(info, other.0, other.1)
        });
        net.run_ms(20);
        let fits = |(f, b): (u32, u32)| f <= least && b <= least;
        let want = if fits(offer) {
            Some(offer)
        } else if scale {
            let scaled = (offer.0.min(least), offer.1.min(least));
            (scaled.0 >= other.0 && scaled.1 >= other.1).then_some(scaled)
        } else {
            Some(other).filter(|other| fits(*other))
        };
        match want {
            None => prop_assert_eq!(net.hosts[0].released(), [37]),
            Some((f, b)) => {
                net.accept(1);
                net.run_ms(20);
                let connect = net.hosts[0].last(MessageType::CONNECT);
                prop_assert_eq!(fields(connect, id::TRAFFIC_DESCRIPTOR), Some((f, b)));
                let (tx, rx) = (u64::from(f), u64::from(b));
                prop_assert_eq!(reserved(&net, 0, 2), (rx, tx));
                prop_assert_eq!(reserved(&net, 0, 1), (tx, rx));
                prop_assert_eq!(reserved(&net, 1, 0), (rx, tx));
                prop_assert_eq!(reserved(&net, 1, 2), (tx, rx));
                let mut both = [Some(f), Some(b)];
                both.sort_unstable();
                prop_assert_eq!(contracts(&net, 0), both);
                prop_assert_eq!(contracts(&net, 1), both);
                let connected = net.hosts[0].heard.iter().any(|heard| {
                    matches!(heard, Indication::Connected { .. })
                });
                prop_assert!(connected);
                net.release(0, A);
            }
        }
        net.run_ms(100);
        net.assert_clean();
    }
}
