//! Cables and the bridge between them, without a network around.

use super::*;
use crate::host::filtering::AGEING;
use crate::host::{HostInput, Ip};
use crate::signalling::{Config, Signalling};
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

/// A bridging host with three ports, and a client that is not a member of its ELAN: what would go there is counted.
fn bridge() -> Host {
    let signalling = Signalling::new(Config::new(Version::Uni31));
    let mut host = Host::new("edge", signalling, Ip::Kernel);
    let elan = ElanName::new("e").expect("short");
    let config = LecConfig::new(elan, AtmAddress::LECS, mac(0xee));
    host.add_lec(mac(0xee), move |_| Lec::new(config.clone()));
    let ports = ["e1", "e2", "e3"].map(|name| EthernetPort {
        name: name.into(),
        ..EthernetPort::shared(Cable::TEN, 0)
    });
    host.bridge_to(Segment::new(ports.into(), Vec::new()));
    host.handle_input(HostInput::Start, NOW);
    host
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
        (out, host.interfaces[0].counters.down)
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
    heard(host, |host| host.deliver(0, frame, path, now)).0
}

fn counter(host: &Host, name: &str) -> u64 {
    let rows = host.segment.as_ref().expect("a bridge").counters.rows();
    let mut rows = rows.into_iter();
    rows.find(|(of, _)| *of == name).expect("a counter").1
}

#[test]
fn a_frame_for_a_station_behind_atm_goes_to_no_other_port_after_one_frame_from_there() {
    let (mut host, near, far) = (bridge(), mac(1), mac(2));
    // Nobody knows the station.
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
    host.station_left(Some(station), NOW);
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
