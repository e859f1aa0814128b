//! Cables and the bridge between them, without a network around.

use super::*;
use crate::host::interfaces::filtering::AGEING;
use crate::host::{Host, HostEvent, HostOutput};
use crate::host::{HostInput, Ip};
use crate::ip::meter::Path;
use crate::signalling::{Config, Signalling};
use aerostat_proto::Duration;
use aerostat_proto::lane::{Lec, LecConfig};
use aerostat_proto::uni::Version;
use aerostat_wire::AtmAddress;
use aerostat_wire::lane::ElanName;

/// The frame rates of RFC 2544 Appendix B and RFC 5180, for frames with check sequence.
#[test]
fn a_cable_carries_the_frames_a_second_that_the_standards_name() {
    for (rate, tagged, octets, frames) in [
        (10_000_000, false, 64, 14_880),
        (10_000_000, false, 1518, 812),
        (100_000_000, false, 64, 148_809),
        (100_000_000, false, 128, 84_459),
        (100_000_000, false, 1518, 8127),
        (1_000_000_000, false, 64, 1_488_095),
        (1_000_000_000, false, 1518, 81_274),
        // A tag makes 1522 octets of 1518: 0.26 % fewer frames.
        (100_000_000, true, 1518, 8106),
        (100_000_000, true, 64, 142_045),
    ] {
        let time = Cable { rate, tagged }.time_of(octets - 4);
        assert_eq!(1_000_000_000 / time.as_nanos(), frames, "{rate} {octets}");
    }
    // Padding: a shorter frame takes the time of the shortest.
    assert_eq!(Cable::TEN.time_of(14), Cable::TEN.time_of(60));
}

const NOW: Instant = Instant::ZERO;

fn mac(number: u8) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, number])
}

/// A bridging host with ports, and clients that are no members of their ELANs: what would go there is counted. With
/// VLANs, each has a client.
fn bridge_of(ports: &[(&str, PortVlans)], vids: &[u16]) -> Host {
    let signalling = Signalling::new(Config::new(Version::Uni31));
    let mut host = Host::new("edge", signalling, Ip::Kernel);
    for number in 0..vids.len().max(1) as u8 {
        add_client(&mut host, number);
    }
    let ports = ports.iter().map(|(name, vlans)| EthernetPort {
        name: (*name).into(),
        vlans: vlans.clone(),
        ..EthernetPort::shared(Cable::TEN, 0)
    });
    let segment = Segment::new(ports.collect(), Vec::new());
    host.bridge_to(segment.with_vlans(vids));
    host.handle_input(HostInput::Start, NOW);
    host
}

fn add_client(host: &mut Host, number: u8) {
    let elan = ElanName::new("e").expect("short");
    let own = mac(0xee - number);
    let config = LecConfig::new(elan, AtmAddress::LECS, own);
    host.add_lec(own, move |_| Lec::new(config.clone()));
}

fn bridge() -> Host {
    bridge_of(
        &["e1", "e2", "e3"].map(|name| (name, PortVlans::default())),
        &[],
    )
}

fn frame(to: MacAddr, from: MacAddr) -> Vec<u8> {
    [&to.0[..], &from.0, &[0x88, 0xb5], &[0; 46]].concat()
}

/// Where a frame went: to which ports, and how often to the ELAN.
fn heard(host: &mut Host, act: impl FnOnce(&mut Host)) -> (Vec<usize>, u64) {
    let count = |host: &Host| {
        let segment = host.segment.as_ref().expect("a bridge");
        let out: Vec<u64> = (segment.ports.iter())
            .map(|port| port.counters.frames_out)
            .collect();
        let down = host.interfaces.iter().map(|itf| itf.counters.down);
        (out, down.sum::<u64>())
    };
    let before = count(host);
    act(host);
    let after = count(host);
    let mut ports = Vec::new();
    for (port, (now, then)) in after.0.iter().zip(before.0).enumerate() {
        ports.extend((0..now - then).map(|_| port));
    }
    (ports, after.1 - before.1)
}

fn from_port(host: &mut Host, port: usize, frame: Vec<u8>, now: Instant) -> (Vec<usize>, u64) {
    // No station of this test is an embedded host.
    heard(host, |host| {
        host.hear(port, From::Host(usize::MAX, None), frame, now)
    })
}

fn from_elan(host: &mut Host, frame: Vec<u8>, path: Path, now: Instant) -> Vec<usize> {
    from_vlan(host, 0, frame, path, now)
}

fn from_vlan(host: &mut Host, itf: usize, frame: Vec<u8>, path: Path, now: Instant) -> Vec<usize> {
    heard(host, |host| host.deliver(itf, frame, path, now)).0
}

fn counter(host: &Host, name: &str) -> u64 {
    let rows = host.segment.as_ref().expect("a bridge").counters.rows();
    let mut rows = rows.into_iter();
    rows.find(|(of, _)| *of == name).expect("a counter").1
}

#[test]
fn a_frame_for_a_station_behind_atm_goes_to_no_other_port_after_one_frame_from_there() {
    let (mut host, near, far) = (bridge(), mac(1), mac(2));
    // No port knows the station.
    assert_eq!(
        from_port(&mut host, 0, frame(far, near), NOW),
        (vec![1, 2], 1)
    );
    assert_eq!(counter(&host, "flooded"), 1);
    // The answer goes where the question came from, and teaches.
    assert_eq!(from_elan(&mut host, frame(near, far), Path::Lane, NOW), [0]);
    assert_eq!(from_port(&mut host, 0, frame(far, near), NOW), (vec![], 1));
    assert_eq!(
        from_port(&mut host, 2, frame(far, mac(3)), NOW),
        (vec![], 1)
    );
    assert_eq!(counter(&host, "flooded"), 1);
    // A group is for everybody, and so are frames of the host itself for unknown stations.
    assert_eq!(
        from_port(&mut host, 1, frame(MacAddr::BROADCAST, mac(4)), NOW),
        (vec![0, 2], 1)
    );
    let own = heard(&mut host, |host| {
        host.send_own(0, frame(mac(9), mac(0xee)), NOW)
    });
    assert_eq!(own, (vec![0, 1, 2], 1));
    let own = heard(&mut host, |host| {
        host.send_own(0, frame(far, mac(0xee)), NOW)
    });
    assert_eq!(own, (vec![], 1));
    // What comes from the ELAN for a station of the ELAN stays there.
    assert_eq!(
        from_elan(&mut host, frame(far, mac(5)), Path::Lane, NOW),
        []
    );
    assert_eq!(counter(&host, "filtered"), 1);
    assert_eq!(
        from_elan(&mut host, frame(mac(9), mac(5)), Path::Lane, NOW),
        [0, 1, 2]
    );
}

#[test]
fn a_station_is_where_it_was_heard_last() {
    let (mut host, station, other) = (bridge(), mac(1), mac(2));
    let to = |from| frame(station, from);
    let hello = || frame(other, station);
    from_port(&mut host, 1, frame(station, other), NOW);
    // From port to port.
    for port in [0, 2] {
        from_port(&mut host, port, hello(), NOW);
        assert_eq!(from_port(&mut host, 1, to(other), NOW), (vec![port], 0));
    }
    // To another bridge of the ELAN, and back.
    from_elan(&mut host, hello(), Path::Lane, NOW);
    assert_eq!(from_port(&mut host, 1, to(other), NOW), (vec![], 1));
    from_port(&mut host, 0, hello(), NOW);
    assert_eq!(from_port(&mut host, 1, to(other), NOW), (vec![0], 0));
    // The header of a frame from a shortcut is no sign of life of its source.
    from_elan(&mut host, hello(), Path::Shortcut, NOW);
    assert_eq!(from_port(&mut host, 1, to(other), NOW), (vec![0], 0));
    // Another proxy claims the station, which has not sent yet: it may be anywhere.
    host.station_left(0, Some(station), NOW);
    assert_eq!(from_port(&mut host, 1, to(other), NOW), (vec![0, 2], 1));
}

#[test]
fn what_the_bridge_heard_from_its_elan_ends_with_age_and_membership() {
    let (mut host, near, far) = (bridge(), mac(1), mac(2));
    from_elan(&mut host, frame(near, far), Path::Lane, NOW);
    let before = NOW + AGEING.saturating_sub(Duration::from_nanos(1));
    assert_eq!(
        from_port(&mut host, 0, frame(far, near), before),
        (vec![], 1)
    );
    assert_eq!(
        from_port(&mut host, 0, frame(far, near), NOW + AGEING),
        (vec![1, 2], 1)
    );
    let later = NOW + AGEING;
    from_elan(&mut host, frame(near, far), Path::Lane, later);
    assert_eq!(
        from_port(&mut host, 0, frame(far, near), later),
        (vec![], 1)
    );
    host.interface_down(0, later);
    assert_eq!(
        from_port(&mut host, 0, frame(far, near), later),
        (vec![1, 2], 1)
    );
}

const ACCESS: fn(u16) -> PortVlans = |vid| PortVlans {
    untagged: Some(vid),
    tagged: vec![],
};

/// Two access ports, a trunk, a trunk with a native VLAN, and another port of the first VLAN.
fn bridge_with_vlans() -> Host {
    let trunk = PortVlans {
        untagged: None,
        tagged: vec![10, 20],
    };
    let native = PortVlans {
        untagged: Some(10),
        tagged: vec![20],
    };
    let ports = [
        ("a10", ACCESS(10)),
        ("a20", ACCESS(20)),
        ("trunk", trunk),
        ("native", native),
        ("b10", ACCESS(10)),
    ];
    bridge_of(&ports, &[10, 20])
}

fn tagged(vid: u16, frame: Vec<u8>) -> Vec<u8> {
    let mut frame = frame;
    let (pcp, dei) = (3, false);
    Tag { pcp, dei, vid }.insert(&mut frame);
    frame
}

/// The newest frame on the cable of a port.
fn newest(host: &Host, port: usize) -> &[u8] {
    let port = &host.segment.as_ref().expect("a bridge").ports[port];
    let (.., frame) = port.lanes[0].frames.back().expect("a frame");
    frame
}

#[test]
fn a_frame_stays_in_its_vlan_and_has_the_tag_of_each_port() {
    let (mut host, a, b) = (bridge_with_vlans(), mac(1), mac(2));
    let all = || frame(MacAddr::BROADCAST, a);
    // From an access port of VLAN 10: the trunk gets a tag, the native VLAN and the other access port none.
    assert_eq!(from_port(&mut host, 0, all(), NOW), (vec![2, 3, 4], 1));
    let vlan = |vid, frame: Vec<u8>| {
        let mut frame = frame;
        let (pcp, dei) = (0, false);
        Tag { pcp, dei, vid }.insert(&mut frame);
        frame
    };
    assert_eq!(newest(&host, 2), vlan(10, all()));
    assert_eq!(
        (newest(&host, 3), newest(&host, 4)),
        (&all()[..], &all()[..])
    );
    // From the trunk into VLAN 20, with a priority that lasts to the other ports.
    let from_trunk = tagged(20, frame(MacAddr::BROADCAST, b));
    assert_eq!(
        from_port(&mut host, 2, from_trunk.clone(), NOW),
        (vec![1, 3], 1)
    );
    assert_eq!(newest(&host, 1), frame(MacAddr::BROADCAST, b));
    assert_eq!(newest(&host, 3), from_trunk);
    // From the ELANs, whose frames have no tag.
    let far = mac(9);
    assert_eq!(from_vlan(&mut host, 0, frame(a, far), Path::Lane, NOW), [0]);
    assert_eq!(from_vlan(&mut host, 1, frame(b, far), Path::Lane, NOW), [2]);
    assert_eq!(newest(&host, 2), vlan(20, frame(b, far)));
    let group = frame(MacAddr::BROADCAST, far);
    assert_eq!(
        from_vlan(&mut host, 1, group.clone(), Path::Lane, NOW),
        [1, 2, 3]
    );
    // A frame for the MAC address of a client that has no IP side goes nowhere.
    assert_eq!(
        from_vlan(&mut host, 1, frame(mac(0xed), far), Path::Lane, NOW),
        []
    );
    // The host itself is in the first VLAN.
    let own = heard(&mut host, |host| host.send_own(0, all(), NOW));
    assert_eq!(own, (vec![0, 2, 3, 4], 1));
    assert_eq!(host.out.iter().filter(to_kernel).count(), 1);
}

/// Numbers of the interfaces, all down, to which a frame from an interface or from a cable is forwarded.
fn lines_heard(host: &mut Host, act: impl FnOnce(&mut Host)) -> Vec<usize> {
    let down = |host: &Host| -> Vec<u64> {
        let all = host.interfaces.iter();
        all.map(|itf| itf.counters.down).collect()
    };
    let before = down(host);
    act(host);
    let after = down(host).into_iter().zip(before).enumerate();
    after
        .filter_map(|(itf, (now, then))| (now > then).then_some(itf))
        .collect()
}

/// Lines are ports of their VLAN: frames leave on all of them until a station is known, and then on its own.
#[test]
fn a_line_is_a_port_of_its_vlan() {
    let mut host = bridge_of(&[("a10", ACCESS(10)), ("a20", ACCESS(20))], &[10, 20]);
    host.keep_books();
    let lines = [("north", 0), ("south", 0), ("west", 1)];
    for number in 2..5 {
        add_client(&mut host, number);
    }
    let segment = host.segment.as_mut().expect("a bridge");
    segment.lines = (2..)
        .zip(lines)
        .map(|(interface, (name, vlan))| LinePort {
            name: name.into(),
            interface,
            vlan,
        })
        .collect();
    let (a, b, group) = (mac(1), mac(2), MacAddr::BROADCAST);
    // Interfaces 0 and 1 are those of the ELANs.
    let heard = |host: &mut Host, itf, frame: Vec<u8>| {
        lines_heard(host, |host| host.deliver(itf, frame, Path::Lane, NOW))
    };
    assert_eq!(heard(&mut host, 2, frame(group, a)), [0, 3]);
    assert_eq!(heard(&mut host, 4, frame(group, b)), [1]);
    assert_eq!(heard(&mut host, 0, frame(group, mac(9))), [2, 3]);
    assert_eq!(heard(&mut host, 0, frame(a, mac(9))), [2]);
    assert_eq!(heard(&mut host, 3, frame(a, mac(3))), [2]);
    assert_eq!(heard(&mut host, 3, frame(mac(9), mac(3))), [0]);
    // A frame for a station on the line where it came from goes nowhere.
    assert_eq!(heard(&mut host, 2, frame(a, mac(4))), []);
    // From a cable, and from the host itself.
    let cable = frame(mac(3), mac(5));
    let out = lines_heard(&mut host, |host| {
        host.hear(0, From::Host(usize::MAX, None), cable, NOW);
    });
    assert_eq!(out, [3]);
    let out = lines_heard(&mut host, |host| host.send_own(0, frame(a, mac(0xee)), NOW));
    assert_eq!(out, [2]);
    // The lines of another VLAN have tables of their own, and the LANE client answers for stations on lines.
    assert_eq!(heard(&mut host, 1, frame(a, mac(9))), [4]);
    let segment = host.segment.as_ref().expect("a bridge");
    assert!(segment.is_near(0, a) && segment.is_near(1, b) && !segment.is_near(1, a));
    assert_eq!(segment.name_of(2), "north");
    // A frame for a known station on a line that is down is a loss, and a copy of a flood is not.
    let lost = |host: &Host| {
        let lost = |output: &&HostOutput| matches!(output, HostOutput::Event(HostEvent::Lost(..)));
        host.out.iter().filter(lost).count()
    };
    let before = lost(&host);
    heard(&mut host, 0, frame(mac(7), mac(9)));
    assert_eq!(lost(&host), before);
    heard(&mut host, 0, frame(a, mac(9)));
    assert_eq!(lost(&host), before + 1);
}

/// A frame for the kernel's own interface: the first broadcast is the only frame for the host in the first VLAN.
fn to_kernel(output: &&HostOutput) -> bool {
    matches!(output, HostOutput::Event(HostEvent::Frame { .. }))
}

#[test]
fn each_vlan_has_a_table_and_a_limit_of_its_own() {
    let (mut host, a) = (bridge_with_vlans(), mac(1));
    // The same address in both VLANs, at two ports.
    from_port(&mut host, 0, frame(mac(8), a), NOW);
    from_port(&mut host, 1, frame(mac(8), a), NOW);
    assert_eq!(from_port(&mut host, 4, frame(a, mac(7)), NOW), (vec![0], 0));
    assert_eq!(
        from_port(&mut host, 2, tagged(20, frame(a, mac(6))), NOW),
        (vec![1], 0)
    );
    // It leaves one of them.
    host.station_left(1, Some(a), NOW);
    assert_eq!(from_port(&mut host, 4, frame(a, mac(7)), NOW), (vec![0], 0));
    assert_eq!(
        from_port(&mut host, 2, tagged(20, frame(a, mac(6))), NOW),
        (vec![1, 3], 1)
    );
    // The client of VLAN 20 leaves its ELAN: what the other has heard stays.
    let far = mac(9);
    for itf in 0..2 {
        from_vlan(&mut host, itf, frame(a, far), Path::Lane, NOW);
    }
    host.interface_down(1, NOW);
    assert_eq!(from_port(&mut host, 0, frame(far, a), NOW), (vec![], 1));
    assert_eq!(from_port(&mut host, 1, frame(far, a), NOW), (vec![2, 3], 1));
    // A flood of addresses in VLAN 20 fills only its table.
    for number in 0..2000_u16 {
        let [high, low] = number.to_be_bytes();
        let source = MacAddr([2, 1, 0, 0, high, low]);
        from_port(&mut host, 1, frame(a, source), NOW);
    }
    assert!(counter(&host, "not_learned") >= 2000 - 1024);
    let before = counter(&host, "not_learned");
    from_port(&mut host, 4, frame(a, mac(5)), NOW);
    assert_eq!(counter(&host, "not_learned"), before);
    assert_eq!(from_port(&mut host, 0, frame(mac(5), a), NOW), (vec![4], 0));
}

#[test]
fn what_a_port_refuses_is_lost_there_and_counted_by_its_reason() {
    let mut host = bridge_with_vlans();
    host.keep_books();
    let good = || frame(MacAddr::BROADCAST, mac(1));
    for (port, octets, name, refusal) in [
        (
            0,
            tagged(10, good()),
            "vlan_tag_at_access",
            VlanRefusal::TagAtAccess,
        ),
        (
            2,
            tagged(30, good()),
            "vlan_not_allowed",
            VlanRefusal::NotAllowed,
        ),
        (2, good(), "vlan_no_tag", VlanRefusal::NoTag),
        (3, tagged(4095, good()), "vlan_bad_tag", VlanRefusal::BadTag),
    ] {
        let before = counter(&host, name);
        host.out.clear();
        assert_eq!(from_port(&mut host, port, octets, NOW), (vec![], 0));
        assert_eq!(counter(&host, name), before + 1);
        let lost = host
            .out
            .iter()
            .any(|out| matches!(out, HostOutput::Event(HostEvent::Lost(Cause::Vlan(why), _)) if *why == refusal));
        assert!(lost, "{name}");
        // It has taught nothing.
        let segment = host.segment.as_ref().expect("a bridge");
        assert!((0..2).all(|vlan| !segment.is_near(vlan, mac(1))));
    }
    // A priority tag is no tag of a VLAN.
    assert_eq!(
        from_port(&mut host, 0, tagged(0, good()), NOW),
        (vec![2, 3, 4], 1)
    );
}

/// A tag takes its time on the cable of each port where the frame has it.
#[test]
fn a_tag_takes_four_octets_of_time() {
    let mut host = bridge_with_vlans();
    from_port(&mut host, 0, frame(MacAddr::BROADCAST, mac(1)), NOW);
    let segment = host.segment.as_ref().expect("a bridge");
    let ends = [2, 3].map(|port: usize| segment.ports[port].next().expect("a frame").0);
    // The shortest frame: 84 octets with preamble, check sequence and gap, at 10 Mb/s.
    let times = ends.map(|end| end.since(NOW).as_nanos());
    assert_eq!(times, [88 * 800, 84 * 800]);
}

/// A host whose kernel bridges; what the kernel sends out of `lec0`.
fn kernel_bridge() -> Host {
    let mut host = bridge_of(&[], &[]);
    host.bridge_to(Segment::kernel());
    host
}

fn kernel_sends(host: &mut Host, frame: Vec<u8>, now: Instant) {
    host.handle_input(HostInput::Frame { itf: 0, frame }, now);
}

fn told(host: &Host, name: &str) -> usize {
    let events = host.out.iter().filter(|output| match output {
        HostOutput::Event(HostEvent::Trace(trace)) => trace.name == name,
        _ => false,
    });
    events.count()
}

fn near(host: &Host) -> usize {
    let segment = host.segment.as_ref().expect("a bridge");
    segment.vlans.get(OWN).expect("one").learned.near().count()
}

#[test]
fn ten_thousand_stations_fill_the_table_and_the_rest_is_counted_and_told_once() {
    let mut host = kernel_bridge();
    let station = |number: u32| {
        let [_, _, a, b] = number.to_be_bytes();
        MacAddr([2, 0, 0, 1, a, b])
    };
    for round in 0..2 {
        for number in 0..10_000 {
            let now = NOW + Duration::from_secs(round);
            kernel_sends(&mut host, frame(mac(1), station(number)), now);
        }
    }
    assert_eq!((near(&host), told(&host, "bridge.full")), (1024, 1));
    assert_eq!(counter(&host, "not_learned"), 2 * (10_000 - 1024));
    // Groups, the host itself, and frames that are cut short teach nothing.
    let mut host = kernel_bridge();
    for from in [
        MacAddr([0xff; 6]),
        MacAddr([1, 0, 0x5e, 0, 0, 1]),
        mac(0xee),
    ] {
        kernel_sends(&mut host, frame(mac(1), from), NOW);
    }
    kernel_sends(&mut host, vec![2; 11], NOW);
    assert_eq!(near(&host), 0);
}

#[test]
fn stations_are_forgotten_by_age_by_a_change_of_the_topology_and_when_they_move() {
    let at = |seconds| NOW + Duration::from_secs(seconds);
    let mut host = kernel_bridge();
    let send = |host: &mut Host, number: u8, seconds| {
        kernel_sends(host, frame(MacAddr([0xff; 6]), mac(number)), at(seconds));
    };
    send(&mut host, 1, 0);
    host.handle_timeout(at(299));
    assert_eq!(near(&host), 1);
    host.handle_timeout(at(300));
    assert_eq!(near(&host), 0);
    // While the topology changes, addresses age by the forward delay of the bridge.
    send(&mut host, 1, 300);
    send(&mut host, 2, 310);
    kernel_sends(&mut host, topology::tests::configuration(1), at(311));
    kernel_sends(&mut host, topology::tests::configuration(1), at(313));
    assert_eq!(told(&host, "bridge.topology"), 1);
    host.handle_timeout(at(315));
    assert_eq!(near(&host), 1);
    kernel_sends(&mut host, topology::tests::configuration(0), at(316));
    assert_eq!(told(&host, "bridge.topology"), 2);
    host.handle_timeout(at(330));
    assert_eq!(near(&host), 1);
    // A change of whose end no BPDU comes is over after three forward delays.
    kernel_sends(&mut host, topology::tests::configuration(1), at(331));
    host.handle_timeout(at(376));
    assert_eq!(told(&host, "bridge.topology"), 4);
    // Forged ones make no more changes than one in a second.
    for number in 0..10_000u64 {
        let now = at(380) + Duration::from_millis(number);
        kernel_sends(
            &mut host,
            topology::tests::configuration((number % 2) as u8),
            now,
        );
    }
    assert!(told(&host, "bridge.topology") <= 4 + 11);
    // It is behind another bridge: it sends from the ELAN.
    send(&mut host, 3, 400);
    from_elan(
        &mut host,
        frame(MacAddr([0xff; 6]), mac(3)),
        Path::Lane,
        at(401),
    );
    assert_eq!(near(&host), 0);
}
