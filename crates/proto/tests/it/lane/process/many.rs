//! A client with thousands of LE_ARP entries, whose daemon dies.

use super::*;
use aerostat_proto::lane::LecLimits;
use aerostat_proto::lane::lec::ArpStatus;
use aerostat_proto::lane::lec::split::KnownEntry;

const ENTRIES: u32 = 10_000;

fn entry(n: u32) -> KnownEntry {
    let [a, b, c, d] = n.to_be_bytes();
    KnownEntry {
        mac: MacAddr([2, 0xee, a, b, c, d]),
        atm: Some(AtmAddress([0x47; 20]).with_selector(d)),
        status: ArpStatus::Unknown,
        remote: false,
        from_data: false,
        associated: false,
        tlvs: Vec::new(),
        age: Duration::ZERO,
    }
}

/// All that the next daemon gets leaves in one step, before the daemon can read any of it: the octets are bounded.
#[test]
fn ten_thousand_entries_go_to_the_next_daemon_and_are_reported_once() {
    let mut w = split_world_with(2, Duration::ZERO, |_, config| LecConfig {
        limits: LecLimits {
            cache: 2 * ENTRIES as usize,
            ..config.limits
        },
        ..config
    });
    with(&mut w, LEC0, |m, now| {
        for n in 0..ENTRIES {
            let input = said(FromLecd::Entry(entry(n)));
            m.lec.handle_input(input, now).unwrap();
        }
        m.kill(now);
        (m.lecd, m.said) = (Some(Lecd::default()), 0);
        let came = event(ProcessEvent::Came);
        m.lec.handle_input(came, now).unwrap();
        while let Some(output) = m.lec.poll_output() {
            m.sort(output, now);
        }
        let frames = m.to_lecd.len();
        let octets: usize = m.to_lecd.iter().map(|(_, frame)| frame.len()).sum();
        assert!(frames > ENTRIES as usize, "{frames}");
        assert!(octets < 1 << 20, "{octets} octets in {frames} frames");
        m.exchange(now);
        assert!(m.said >= ENTRIES as usize, "each entry is reported");
    });
    w.run_for(Duration::from_secs(1));
    let before = client(&w, LEC0).said;
    // A step reports what has changed, and not all that is known.
    with(&mut w, LEC0, |m, now| {
        m.input(lec::Input::SetTlvs(vec![tlv(77)]), now);
    });
    transmit(&mut w, LEC0, LEC0 + 1, 0);
    w.run_for(Duration::from_secs(1));
    assert_eq!(arrived(&w.take_notes(), LEC0 + 1), [0]);
    let told = client(&w, LEC0).said - before;
    assert!((1..50).contains(&told), "{told}");
    let shown = client(&w, LEC0).lec.snapshot();
    assert_eq!(shown.state, LecState::Operational);
    assert!(shown.cache.len() >= ENTRIES as usize);
    assert_eq!((shown.seat.refused, shown.seat.dropped), (0, 0));
    end(w);
}

/// Only some messages wait while there is no daemon. The others are counted.
#[test]
fn what_waits_for_the_next_daemon_is_bounded_and_the_rest_is_counted() {
    let mut w = split_world(2, Duration::ZERO);
    with(&mut w, LEC0, Split::kill);
    with(&mut w, LEC0, |m, now| {
        for n in 0..100 {
            m.input(lec::Input::TopologyChange(n % 2 == 0), now);
        }
    });
    assert_eq!(client(&w, LEC0).lec.snapshot().seat.dropped, 100 - 64);
    with(&mut w, LEC0, Split::come);
    w.run_for(Duration::from_secs(1));
    assert_eq!(client(&w, LEC0).lec.snapshot().state, LecState::Operational);
    end(w);
}
