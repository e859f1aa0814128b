//! A router and its neighbours: ARP.

use super::*;

#[test]
fn arp_asks_waits_forwards_and_answers() {
    let mut bench = Bench::new();
    // A sends a request for the router's address: it is answered, and A is learned.
    let out = bench.frame(0, &arp(true, HOST_A, GATE[0]));
    let RouterOutput::Frame {
        interface: 0,
        bytes,
    } = &out[0]
    else {
        panic!("{out:?}")
    };
    assert_eq!(bytes[..14], [2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 1, 0, 8, 6]);
    let changed = RouterOutput::NeighbourChanged {
        interface: 0,
        address: A.into(),
        mac: Some(HOST_A.1),
    };
    assert_eq!(out[1..], [changed]);
    // A request for another address, from another subnet, or with the router's address as sender has no effect.
    assert_eq!(
        bench.frame(0, &arp(true, HOST_A, Ipv4Addr::new(10, 1, 0, 9))),
        []
    );
    assert_eq!(bench.frame(0, &arp(true, HOST_B, GATE[0])), []);
    assert_eq!(bench.frame(0, &arp(true, (GATE[0], HOST_B.1), GATE[0])), []);
    // A packet for B waits for the answer, together with a question of the MPOA server.
    let out = bench.frame(0, &udp(B, 64, 10));
    assert_eq!(
        out.iter().map(asked).collect::<Vec<_>>(),
        [Some((1, B, true))]
    );
    let question = RouterInput::Resolve {
        token: 77,
        interface: 1,
        address: B.into(),
    };
    assert_eq!(bench.put(question), []);
    let out = bench.frame(1, &arp(false, HOST_B, GATE[1]));
    assert_eq!(out.len(), 3, "{out:?}");
    let RouterOutput::Frame {
        interface: 1,
        bytes,
    } = &out[1]
    else {
        panic!("{out:?}")
    };
    assert_eq!(
        (&bytes[..6], bytes[22]),
        (&HOST_B.1[..], 63),
        "to B, one hop less"
    );
    let ip = SlicedPacket::from_ethernet(bytes)
        .expect("well formed")
        .net
        .expect("IP");
    let NetSlice::Ipv4(ip) = ip else {
        panic!("not IPv4")
    };
    assert_eq!(
        ip.header().header_checksum(),
        ip.header().to_header().calc_header_checksum()
    );
    let mac = Some(HOST_B.1);
    let answer = RouterOutput::Resolved {
        token: 77,
        interface: 1,
        address: B.into(),
        mac,
        lately: false,
    };
    assert_eq!(out[2], answer);
    assert_eq!(bench.put(question), [answer], "now at once");
    // B gets another card. It was confirmed a moment ago, so it is requested at its known address twice; then the claim
    // is accepted.
    assert_eq!(bench.frame(1, &arp(true, (B, [2, 9, 9, 9, 9, 9]), B)), []);
    for ms in [1000, 2000] {
        let asked: Vec<_> = bench.at(ms).iter().filter_map(asked).collect();
        assert_eq!(asked, [(1, B, false)], "by unicast");
    }
    let out = bench.at(3000);
    let moved = Some([2, 9, 9, 9, 9, 9]);
    assert_eq!(
        out,
        [RouterOutput::NeighbourChanged {
            interface: 1,
            address: B.into(),
            mac: moved
        }]
    );
}

#[test]
fn nobody_answers_arp() {
    let mut bench = Bench::new();
    bench.frame(0, &arp(true, HOST_A, GATE[0]));
    for _ in 0..105 {
        bench.frame(0, &udp(B, 64, 10));
    }
    assert_eq!(bench.dropped(0, DropReason::ArpQueueFull), 4, "101 wait");
    let question = RouterInput::Resolve {
        token: 5,
        interface: 1,
        address: B.into(),
    };
    assert_eq!(bench.put(question), []);
    for ms in [1000, 2000] {
        assert_eq!(bench.at(ms - 1), []);
        assert_eq!(
            bench.at(ms).iter().map(asked).collect::<Vec<_>>(),
            [Some((1, B, true))]
        );
    }
    let out = bench.at(3000);
    let unreachable = out
        .iter()
        .filter_map(icmp)
        .filter(|m| *m == (3, 1, B))
        .count();
    assert_eq!(
        (unreachable, bench.dropped(0, DropReason::NoNeighbour)),
        (100, 101),
        "the router complains 100 times at one moment"
    );
    let answer = RouterOutput::Resolved {
        token: 5,
        interface: 1,
        address: B.into(),
        mac: None,
        lately: false,
    };
    assert!(out.contains(&answer));
    assert_eq!(bench.router.neighbours(1).count(), 0);
}

#[test]
fn neighbours_age() {
    let mut bench = Bench::new();
    bench.frame(0, &arp(true, HOST_A, GATE[0]));
    bench.frame(1, &arp(true, HOST_B, GATE[1]));
    // B is used, A is not.
    bench.frame(0, &udp(B, 64, 10));
    let out = bench.at(300_000);
    let gone = RouterOutput::NeighbourChanged {
        interface: 0,
        address: A.into(),
        mac: None,
    };
    assert!(out.contains(&gone), "{out:?}");
    let probes: Vec<_> = out.iter().filter_map(asked).collect();
    assert_eq!(probes, [(1, B, false)], "by unicast");
    bench.frame(1, &arp(false, HOST_B, GATE[1]));
    assert_eq!(bench.router.neighbours(1).collect::<Vec<_>>(), [HOST_B]);
    // The entry was not used since, so it is removed without a request.
    let out = bench.at(600_000);
    assert_eq!(
        out,
        [RouterOutput::NeighbourChanged {
            interface: 1,
            address: B.into(),
            mac: None
        }]
    );
    assert_eq!(bench.router.poll_timeout(), None);
}
