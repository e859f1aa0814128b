//! Packets that a router does not forward.

use super::*;

#[test]
fn what_is_not_forwarded_is_counted_and_explained() {
    let mut bench = Bench::new();
    bench.frame(0, &arp(true, HOST_A, GATE[0]));
    let mut say = |frame: &[u8]| {
        bench
            .frame(0, frame)
            .iter()
            .filter_map(icmp)
            .collect::<Vec<_>>()
    };
    let nowhere = Ipv4Addr::new(192, 0, 2, 1);
    assert_eq!(say(&udp(nowhere, 64, 10)), [(3, 0, nowhere)]);
    assert_eq!(say(&udp(B, 1, 10)), [(11, 0, B)]);
    assert_eq!(say(&udp(GATE[1], 64, 10)), [(3, 3, GATE[1])], "no UDP here");
    assert_eq!(say(&udp(B, 64, 1480)), [(3, 4, B)], "etherparse sets DF");
    for silent in [
        Ipv4Addr::new(224, 0, 0, 5),
        Ipv4Addr::BROADCAST,
        Ipv4Addr::new(10, 2, 0, 255),
    ] {
        assert_eq!(say(&udp(silent, 64, 10)), []);
    }
    assert_eq!(say(&udp(Ipv4Addr::LOCALHOST, 64, 10)), []);
    let mut bad_sum = udp(B, 64, 10);
    bad_sum[24] ^= 1;
    assert_eq!(say(&bad_sum), []);
    let mut flooded = udp(B, 64, 10);
    flooded[..6].fill(0xff);
    assert_eq!(say(&flooded), []);
    for (why, count) in [
        (DropReason::NoRoute, 1),
        (DropReason::TimeToLive, 1),
        (DropReason::TooBig, 1),
        (DropReason::Multicast, 4),
        (DropReason::Malformed, 2),
    ] {
        assert_eq!(bench.dropped(0, why), count, "{why:?}");
    }
    // The books have each of these packets: its header tells its flow.
    let mut told: BTreeMap<DropReason, Vec<Ipv4Addr>> = BTreeMap::new();
    while let Some((why, head)) = bench.router.take_discard() {
        let destination: [u8; 4] = head[16..20].try_into().expect("an IP header");
        told.entry(why).or_default().push(destination.into());
    }
    let groups = [
        Ipv4Addr::new(224, 0, 0, 5),
        Ipv4Addr::BROADCAST,
        Ipv4Addr::new(10, 2, 0, 255),
    ];
    assert_eq!(told[&DropReason::Multicast], [&groups[..], &[B]].concat());
    assert_eq!(told[&DropReason::Malformed], [Ipv4Addr::LOCALHOST, B]);
    assert_eq!(told.values().map(Vec::len).sum::<usize>(), 9);
    // A frame for another station does not count.
    let before = bench
        .router
        .interfaces()
        .next()
        .expect("interface")
        .1
        .in_frames;
    let mut other = udp(B, 64, 10);
    other[5] ^= 0xff;
    assert_eq!(bench.frame(0, &other), []);
    assert_eq!(
        bench
            .router
            .interfaces()
            .next()
            .expect("interface")
            .1
            .in_frames,
        before
    );
}

#[test]
fn errors_are_limited_and_never_answer_errors() {
    let mut bench = Bench::new();
    bench.frame(0, &arp(true, HOST_A, GATE[0]));
    let nowhere = Ipv4Addr::new(192, 0, 2, 1);
    let mut errors = Vec::new();
    for _ in 0..250 {
        errors.extend(bench.frame(0, &udp(nowhere, 64, 10)));
    }
    assert_eq!(errors.len(), 100);
    bench.at(1000);
    let out = bench.frame(0, &udp(nowhere, 64, 10));
    assert_eq!(out.iter().filter_map(icmp).count(), 1, "the next second");
    // The error itself goes to an address without a host.
    let RouterOutput::Frame { bytes, .. } = &out[0] else {
        panic!("{out:?}")
    };
    let mut frame = bytes.clone();
    frame[..6].copy_from_slice(&GATE_MAC[0]);
    frame[30..34].copy_from_slice(&nowhere.octets());
    crate::ip::packet::seal(&mut frame[14..]);
    assert_eq!(bench.frame(0, &frame), []);
    assert_eq!(bench.dropped(0, DropReason::NoRoute), 252);
}
