//! Calls that reach a port whose signalling is not up yet.

use aerostat_proto::{AtmRequest, Cause, ConnId, Duration, Machine, PartyId};
use aerostat_wire::Qos;

use aerostat_node::switch::{Input, PortNo};
use aerostat_testing::switch::Net;

/// Two switches whose trunk carries no signalling for `dead_ms` after the start; a host listens at each.
fn slow_trunk(dead_ms: u64) -> Net {
    let mut net = Net::unstarted(2, &[0, 1]);
    let dead = net.now + Duration::from_millis(dead_ms);
    net.cut_signalling((0, PortNo(1)), dead);
    net.start_host(0);
    net.start_host(1);
    net.listen(0);
    net.listen(1);
    net.run_ms(10);
    net
}

#[test]
fn a_call_waits_for_a_trunk_that_comes_up_and_goes_on_at_once() {
    let mut net = slow_trunk(900);
    net.call(0, 1, 1);
    net.run_ms(500);
    assert_eq!(
        net.switches[0]
            .port_infos()
            .map(|p| p.pending)
            .sum::<usize>(),
        1
    );
    assert_eq!(net.hosts[0].released(ConnId(1)), None);
    // SSCOP tries again after a second; then the call needs a few round trips of 100 us.
    net.run_to(net.now + Duration::from_millis(500));
    assert!(net.hosts[0].connected(ConnId(1)));
    net.release(0, ConnId(1));
    net.run_ms(100);
    net.assert_clean();
}

#[test]
fn a_leaf_waits_for_a_trunk_too() {
    let mut net = Net::unstarted(2, &[0, 0, 1]);
    net.cut_signalling((0, PortNo(1)), net.now + Duration::from_millis(900));
    for host in 0..3 {
        net.start_host(host);
        net.listen(host);
    }
    net.run_ms(10);
    net.call_with(0, 1, 1, Qos::ubr_multipoint(1536), true);
    net.run_ms(100);
    assert!(net.hosts[0].connected(ConnId(1)));
    net.add_party(0, 1, 7, 2);
    net.run_ms(1000);
    let added = aerostat_proto::AtmEvent::PartyAdded {
        conn: ConnId(1),
        party: PartyId(7),
    };
    assert!(
        net.hosts[0].events.contains(&added),
        "{:?}",
        net.hosts[0].events
    );
    net.release(0, ConnId(1));
    net.run_ms(100);
    net.assert_clean();
}

#[test]
fn a_call_does_not_wait_longer_than_the_patience_of_the_port() {
    let mut net = slow_trunk(60_000);
    net.call(0, 1, 1);
    net.run_ms(4_900);
    assert_eq!(net.hosts[0].released(ConnId(1)), None);
    net.run_ms(200);
    let cause = Some(Cause::NETWORK_OUT_OF_ORDER);
    assert_eq!(net.hosts[0].released(ConnId(1)), cause);
    net.call(0, 1, 2);
    net.run_ms(1);
    assert_eq!(
        net.hosts[0].released(ConnId(2)),
        cause,
        "at once from then on"
    );
    net.run_ms(100);
    net.assert_clean();
}

#[test]
fn a_caller_that_gives_up_while_its_call_waits_leaves_nothing_behind() {
    let mut net = slow_trunk(900);
    net.call(0, 1, 1);
    net.call(0, 1, 2);
    net.run_ms(10);
    net.release(0, ConnId(1));
    net.run_ms(10);
    assert_eq!(
        net.switches[0]
            .port_infos()
            .map(|p| p.pending)
            .sum::<usize>(),
        1
    );
    net.run_ms(1000);
    assert!(net.hosts[0].connected(ConnId(2)));
    assert_eq!(net.hosts[1].signalling.calls().count(), 1);
    net.release(0, ConnId(2));
    net.run_ms(100);
    net.assert_clean();
}

#[test]
fn a_switch_that_stops_refuses_what_waits() {
    let mut net = slow_trunk(60_000);
    net.call(0, 1, 1);
    net.run_ms(10);
    let now = net.now;
    net.switches[0].handle_input(Input::Clear, now).unwrap();
    net.run_ms(10);
    let cause = Some(Cause::NETWORK_OUT_OF_ORDER);
    assert_eq!(net.hosts[0].released(ConnId(1)), cause);
    net.assert_clean();
}

#[test]
fn calls_that_wait_count_as_unanswered_and_have_a_bound() {
    let mut net = slow_trunk(60_000);
    for conn in 1..=1100 {
        // Beyond the host's own limit no SETUP is sent.
        let request = AtmRequest::Connect {
            conn: ConnId(conn),
            calling: net.address(0),
            called: net.address(1),
            sap: aerostat_wire::Sap::LLC,
            qos: Qos::ubr(1536),
            multipoint: false,
        };
        let _ = net.ask(0, request);
    }
    net.run_ms(100);
    let waiting = net.switches[0].port_infos().map(|p| p.pending).max();
    assert_eq!(waiting, Some(1024), "half of the calls of a port");
    net.run_ms(5_000);
    net.assert_clean();
}
