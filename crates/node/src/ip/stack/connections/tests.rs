//! Peers that crowd a host: what they can take is bounded, counted, and free again.

use super::*;

const PORT: u16 = 5001;
const APP: AppId = AppId(1);
const HOST: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
const PEER: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 2);

fn connections(tcp: TcpOptions) -> Connections {
    let mut all = Connections::new(&StackConfig {
        name: "host".into(),
        mac: [2, 0, 0, 0, 0, 1],
        address: HOST,
        prefix: 24,
        routes: Vec::new(),
        neighbours: Vec::new(),
        mtu: 1500,
        further: Vec::new(),
        tcp,
        life: 0,
        seed: 1,
    });
    all.listen(PORT, APP, false);
    all
}

/// A segment of the peer arrives; the answers to its port.
fn arrives(all: &mut Connections, segment: &Segment, data: &[u8], now: Instant) -> Vec<Segment> {
    let mut packet = packet_of(segment, data, PEER, HOST);
    packet::number(&mut packet[packet::ETHERNET_HEADER..], 1);
    let view = packet::view(&packet).unwrap();
    let refused = all.arrive(&view, 1500, now);
    let mut out: VecDeque<Vec<u8>> = refused.into_iter().collect();
    all.segments(&mut out, now);
    let whole = |packet: &Vec<u8>| {
        let octets = &packet[packet::ETHERNET_HEADER + 20..];
        Segment::decode(octets).unwrap().0
    };
    let answers = out.iter().map(whole);
    answers
        .filter(|of| of.destination == segment.source)
        .collect()
}

fn of_peer(port: u16, flags: Flags, seq: u32, ack: u32) -> Segment {
    Segment {
        source: port,
        destination: PORT,
        seq,
        ack,
        flags,
        window: 65_535,
        ..Segment::default()
    }
}

/// The whole handshake of a peer; the answer to its SYN, and whether the connection came up.
fn connect(all: &mut Connections, port: u16, now: Instant) -> Option<Segment> {
    let syn = of_peer(port, Flags::SYN, 99, 0);
    let answer = *arrives(all, &syn, &[], now).first()?;
    if answer.flags.has(Flags::RST) {
        return None;
    }
    let ack = of_peer(port, Flags::ACK, 100, answer.seq.wrapping_add(1));
    arrives(all, &ack, &[], now);
    Some(answer)
}

#[test]
fn handshakes_without_an_end_do_not_close_a_port() {
    let mut all = connections(TcpOptions::default());
    let now = Instant::ZERO;
    for port in 1000..11_000 {
        let answers = arrives(&mut all, &of_peer(port, Flags::SYN, 1, 0), &[], now);
        assert!(answers[0].flags.has(Flags::ACK), "{port}");
    }
    assert_eq!(all.all.len(), MAX_CONNECTIONS);
    let dropped = 10_000 - MAX_CONNECTIONS as u64;
    assert_eq!(all.counters.handshakes_dropped, dropped);
    // A whole handshake becomes a connection; connections that are up do not give way.
    for port in 1..=MAX_CONNECTIONS as u16 {
        assert!(connect(&mut all, port, now).is_some(), "{port}");
    }
    assert!(connect(&mut all, 999, now).is_none());
    let counters = all.counters;
    assert_eq!(counters.strangers, 1, "{counters:?}");
    assert_eq!(
        counters.handshakes_dropped,
        dropped + MAX_CONNECTIONS as u64
    );
}

#[test]
fn connections_without_a_program_keep_a_bounded_amount_of_data() {
    const ROOM: usize = 4 << 20;
    let mut all = connections(TcpOptions::default().with_send_buffer(ROOM));
    let now = Instant::ZERO;
    let most = MAX_ORPHAN_OCTETS / ROOM;
    for port in 1..=100 {
        assert!(connect(&mut all, port, now).is_some(), "{port}");
        let id = all.accept(PORT, APP).unwrap();
        let written = all.socket(id, now).unwrap().write(&vec![0; ROOM]);
        assert_eq!(written, ROOM);
        // The peer acknowledges nothing.
        all.leave(id, now);
        assert!(all.orphan_octets <= MAX_ORPHAN_OCTETS);
    }
    assert_eq!((all.all.len(), all.orphans.len()), (most, most));
    assert_eq!(all.counters.orphans_dropped, 100 - most as u64);
    for id in all.all.keys().copied().collect::<Vec<_>>() {
        all.remove(id, now);
    }
    assert_eq!((all.orphan_octets, all.ended.len()), (0, 100));
}

#[test]
fn ended_connections_are_kept_with_their_figures_up_to_a_limit() {
    let mut all = connections(TcpOptions::default());
    for number in 0..MAX_ENDED as u64 + 10 {
        let now = Instant::from_millis(number);
        let port = 1000 + number as u16;
        let answer = connect(&mut all, port, now).unwrap();
        let reset = of_peer(port, Flags::RST, 100, answer.seq.wrapping_add(1));
        arrives(&mut all, &reset, &[], now);
        let id = all.accept(PORT, APP).unwrap();
        all.abort(id, now);
        all.segments(&mut VecDeque::new(), now);
    }
    let views: Vec<_> = all.views().collect();
    assert_eq!((views.len(), all.counters.forgotten), (MAX_ENDED, 10));
    let first = views[0];
    assert_eq!(first.failure, Some(Failure::Reset));
    assert_eq!(first.ended, Some(Instant::from_millis(10)));
    assert_eq!(first.remote, (1010, PEER));
    // What is forgotten counts in the sums.
    let (mut sum, mut host) = (Counters::default(), TcpCounters::default());
    all.add_counters(&mut sum, &mut host);
    assert_eq!(sum.segments_sent, MAX_ENDED as u64 + 10);
    assert_eq!(host.forgotten, 10);
}
