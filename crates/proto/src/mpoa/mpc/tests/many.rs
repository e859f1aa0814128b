//! Thousands of flows at one client.

use super::*;

const MANY: u16 = 2000;

fn target(n: u16) -> IpAddr {
    let [high, low] = n.to_be_bytes();
    IpAddr::V4(Ipv4Addr::new(10, 2, high, low))
}

fn egress(n: u16) -> AtmAddress {
    let mut egress = PEER;
    egress.0[11..13].copy_from_slice(&n.to_be_bytes());
    egress
}

/// Two thousand requests wait for the control connection, and are sent at once when it is up: no request has to wait
/// for its retry. Each flow gets its shortcut, with as many outputs for the last as for the first; when the holding
/// time is over all entries are gone.
#[test]
fn two_thousand_flows_at_once_get_their_shortcuts_without_a_retry() {
    let mut rig = Rig::ready();
    let mut called = Vec::new();
    for n in 0..MANY {
        called.extend(connects(&rig.flow(target(n))));
    }
    assert_eq!(called.len(), 1, "one control connection for all");
    let control = called[0].0;
    let requests = control_packets(&rig.connected(control, 50));
    assert_eq!(requests.len(), usize::from(MANY));
    assert_eq!(rig.mpc.counters().control_dropped, 0);
    let mut costs = Vec::new();
    for (n, (_, request)) in (0..MANY).zip(&requests) {
        let out = rig.control(control, &answer(request, egress(n), 1200, None));
        let (data, called) = connects(&out)[0];
        assert_eq!(called, egress(n));
        costs.push(out.len() + rig.connected(data, 60 + n).len());
    }
    assert!(costs.iter().all(|cost| *cost == costs[0]), "{costs:?}");
    assert_eq!(rig.mpc.data.shortcuts.len(), usize::from(MANY));
    let early: Vec<_> = rig
        .until(700)
        .into_iter()
        .map(|(_, output)| output)
        .collect();
    assert_eq!(control_packets(&early).len(), 0, "no request twice");
    rig.until(4000);
    assert!(rig.mpc.data.shortcuts.is_empty() && rig.mpc.data.ingress.entries.is_empty());
}
