//! Options of TCP beside closed forms: window over round trip, acknowledgements that are delayed, sizes of writes.

use super::wire::{World, config, perfect};
use crate::ip::apps::{AppKind, AppResult};
use crate::ip::source_ports::SourcePorts;
use crate::ip::tcp::{AckDelay, Growth, Params, Profile, TcpOptions};
use aerostat_proto::{Duration, Instant};
use etherparse::SlicedPacket;
use std::net::Ipv4Addr;

const B: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 2);
/// One way, so that a round trip takes 10 ms.
const DELAY: Duration = Duration::from_millis(5);
const ROUND_TRIP: f64 = 0.010;

/// A TCP without congestion control and with large buffers, changed as a test wants it.
fn plain(change: impl FnOnce(&mut Params)) -> TcpOptions {
    let mut tcp = TcpOptions::of(Profile::NewReno)
        .with_receive_buffer(256 << 10)
        .with_send_buffer(256 << 10);
    let params = &mut tcp.params;
    params.congestion.growth = Growth::Off;
    params.window_scaling = true;
    params.receive.ack_delay = AckDelay::After(Duration::from_millis(10));
    change(params);
    tcp
}

/// A TCP flow between two hosts with these options and this MTU, for `seconds`, or until so many octets are sent.
fn run(
    tcp: [TcpOptions; 2],
    mtu: usize,
    seconds: u64,
    octets: Option<u64>,
    write: Option<usize>,
) -> World {
    let mut configs = vec![config("a", 1, 9), config("b", 2, 9)];
    for (config, tcp) in configs.iter_mut().zip(tcp) {
        (config.tcp, config.mtu) = (tcp, mtu);
    }
    let mut world = World::new(configs, &[], perfect(DELAY));
    world.record = true;
    world.start(1, 1, AppKind::TcpSink { port: 5001 }, 0);
    let source = AppKind::TcpSource {
        to: B,
        port: 5001,
        local_ports: Some(SourcePorts::every(40_000, 1)),
        octets,
        write,
    };
    world.start(0, 2, source, seconds * 1000);
    world.run_until(Instant::from_secs(seconds + 10));
    let stalls: u64 = world.hosts.iter().map(|host| host.counters().stalls).sum();
    assert_eq!(stalls, 0);
    world
}

fn mbps(world: &World) -> f64 {
    let AppResult::TcpSource(source) = world.report(0, 2) else {
        panic!("not a source")
    };
    let AppResult::TcpSink(sink) = world.report(1, 1) else {
        panic!("not a sink")
    };
    assert_eq!((source.failed, sink.wrong), (false, 0), "{source:?}");
    source.throughput_mbps
}

/// Asserts that a rate is that of `octets` each `seconds`, within a part of it.
#[track_caller]
fn near(world: &World, octets: f64, seconds: f64, part: f64) {
    let (got, form) = (mbps(world), octets * 8.0 / seconds / 1e6);
    assert!(
        (got / form - 1.0).abs() < part,
        "{got} Mb/s, and {form} in theory"
    );
}

/// Payloads of the segments with data from A to B, and the lengths of their TCP headers.
fn segments(world: &World) -> Vec<(usize, usize)> {
    let all = world.frames.iter().filter_map(|frame| {
        let sliced = SlicedPacket::from_ethernet(frame).ok()?;
        let Some(etherparse::TransportSlice::Tcp(tcp)) = sliced.transport else {
            return None;
        };
        let data = tcp.payload().len();
        let of_source = tcp.destination_port() == 5001;
        (of_source && data > 1).then(|| (data, tcp.slice().len() - data))
    });
    all.collect()
}

/// Both hosts with these options.
fn both(tcp: TcpOptions) -> [TcpOptions; 2] {
    [tcp; 2]
}

#[test]
fn either_buffer_is_a_window_for_each_round_trip() {
    const MSS: usize = 1460;
    for segments in [1, 2, 3, 4, 16] {
        let at_once = plain(|params| params.receive.ack_delay = AckDelay::Never);
        let window = segments * MSS;
        // A window of k segments carries k.
        for tcp in [
            at_once.with_receive_buffer(window),
            at_once.with_send_buffer(window),
        ] {
            let world = run(both(tcp), 1500, 5, None, None);
            near(&world, window as f64, ROUND_TRIP, 0.01);
        }
    }
}

#[test]
fn a_buffer_of_one_segment_waits_for_each_delayed_acknowledgement() {
    const MSS: u16 = 9136;
    let timer = Duration::from_millis(200);
    let octets = f64::from(MSS);
    let run = |ack_delay, receive| {
        let small = plain(|params| {
            params.mss = MSS;
            params.receive.ack_delay = ack_delay;
        });
        let small = small
            .with_send_buffer(MSS.into())
            .with_receive_buffer(receive * usize::from(MSS));
        run(both(small), 9180, 30, None, None)
    };
    let after = AckDelay::After(timer);
    // 0.348 Mb/s: Overweel (SARA, 1995) calls it "poor".
    near(&run(after, 4), octets, 0.200 + ROUND_TRIP, 0.01);
    // A clock of the host: what arrives a round trip after a tick waits for the next one.
    near(&run(AckDelay::Tick(timer), 4), octets, 0.200, 0.01);
    near(&run(AckDelay::Never, 4), octets, ROUND_TRIP, 0.01);
    // Half of the buffer has moved with each reading: that is told at once, and acknowledges, too.
    near(&run(after, 1), octets, ROUND_TRIP, 0.01);
}

#[test]
fn a_write_is_a_segment_where_nagle_and_the_window_allow_it() {
    let octets = 51_200;
    let nagle = |nagle| {
        both(TcpOptions {
            nagle: Some(nagle),
            ..plain(|_| ())
        })
    };
    let off = segments(&run(nagle(false), 1500, 20, Some(octets), Some(512)));
    assert_eq!(off, vec![(512, 20); 100]);
    // The first write goes at once, the others wait for whole segments or the end.
    let on = segments(&run(nagle(true), 1500, 20, Some(octets), Some(512)));
    let whole = (octets as usize - 512) / 1460;
    let rest = (octets as usize - 512) % 1460;
    let mut expected = vec![(512, 20)];
    expected.extend(vec![(1460, 20); whole]);
    expected.push((rest, 20));
    assert_eq!(on, expected);
    // A buffer of one write: nothing follows a write before its acknowledgement, which is delayed.
    let delay = AckDelay::After(Duration::from_millis(200));
    let one = plain(|params| params.receive.ack_delay = delay).with_send_buffer(8192);
    let world = run(both(one), 9180, 30, None, Some(8192));
    near(&world, 8192.0, 0.200 + ROUND_TRIP, 0.01);
    assert!(
        segments(&world)
            .iter()
            .all(|segment| *segment == (8192, 20))
    );
}

#[test]
fn the_maximum_segment_size_of_either_host_counts() {
    let small = plain(|params| params.mss = 512);
    let large = plain(|_| ());
    for tcp in [[small, large], [large, small], both(small)] {
        let sizes = segments(&run(tcp, 1500, 20, Some(51_200), None));
        assert_eq!(sizes, vec![(512, 20); 100]);
    }
}

#[test]
fn time_stamps_cost_12_octets_of_each_segment_if_both_hosts_want_them() {
    let stamped = plain(|params| params.timestamps = true);
    let octets = Some(1448 * 40);
    let sizes = segments(&run(both(stamped), 1500, 20, octets, None));
    assert_eq!(sizes, vec![(1448, 32); 40]);
    let sizes = segments(&run(
        [stamped, plain(|_| ())],
        1500,
        20,
        Some(1460 * 40),
        None,
    ));
    assert_eq!(sizes, vec![(1460, 20); 40]);
}

#[test]
fn time_stamps_are_the_hosts_milliseconds() {
    let stamped = plain(|params| params.timestamps = true);
    let world = run(both(stamped), 1500, 2, Some(1448 * 2), None);
    let stamps: Vec<(u32, u32)> = world
        .frames
        .iter()
        .filter_map(|frame| {
            let sliced = SlicedPacket::from_ethernet(frame).ok()?;
            let Some(etherparse::TransportSlice::Tcp(tcp)) = sliced.transport else {
                return None;
            };
            tcp.options_iterator().find_map(|option| match option {
                Ok(etherparse::TcpOptionElement::Timestamp(value, echo)) => Some((value, echo)),
                _ => None,
            })
        })
        .collect();
    // Each connection begins at a time of its own. ARP takes the first 10 ms: the SYN waits for it, and was made at 0.
    let (a, b) = (stamps[0].0, stamps[1].0);
    let later = a.wrapping_add(20);
    assert_eq!(stamps[..4], [(a, 0), (b, a), (later, b), (later, b)]);
}

#[test]
fn without_window_scaling_a_window_has_at_most_65535_octets() {
    for (first, second, octets) in [
        (true, true, 128 << 10),
        (false, true, 65_535),
        (true, false, 65_535),
    ] {
        let tcp = |window_scaling| {
            let at_once = AckDelay::Never;
            let change = |params: &mut Params| {
                params.window_scaling = window_scaling;
                params.receive.ack_delay = at_once;
            };
            plain(change)
                .with_receive_buffer(1 << 20)
                .with_send_buffer(128 << 10)
        };
        let world = run([tcp(first), tcp(second)], 1500, 3, None, None);
        // Nagle's algorithm fills the window with whole segments.
        near(&world, f64::from(octets / 1460 * 1460), ROUND_TRIP, 0.01);
    }
}
