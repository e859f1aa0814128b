//! The tests of ATP's report beside closed forms.

use aerostat_proto::atp::Profile;
use aerostat_sim::atptest::{Failure, Transfer};

const CELL: f64 = 424.0 / 149.76;

fn transfer(profile: Profile, octets: u64) -> Transfer {
    Transfer {
        profile,
        mtu: 9180,
        octets,
        message: None,
        echo: false,
        loss: 0.0,
        seed: 1,
    }
}

/// A message of one packet of n cells goes over two lines, is acknowledged by one cell, and comes back: each cell waits
/// for one cell time at the switch, and each line takes 1 µs. Acknowledgements may stand in front of the echo.
#[test]
fn the_latency_of_a_packet_is_that_of_its_cells() {
    for profile in [Profile::Report, Profile::Adaptive] {
        for octets in (1000..=9000).step_by(1000) {
            let test = Transfer {
                echo: true,
                ..transfer(profile, octets)
            };
            let found = test.run(&|| false).unwrap();
            assert!(found.correct);
            // 4 octets of header, and 8 of AAL5.
            let cells = ((octets + 12).div_ceil(48)) as f64;
            let least = (2.0 * cells + 2.0) * CELL + 4.0;
            let micros = found.latency().as_secs_f64() * 1e6;
            assert!(
                (least..least + 2.5 * CELL).contains(&micros),
                "{octets}: {micros} {least}"
            );
        }
    }
}

/// The rate of full packets: 9176 octets in 192 cells.
#[test]
fn the_throughput_is_that_of_the_line() {
    for profile in [Profile::Report, Profile::Adaptive] {
        let found = transfer(profile, 4 << 20).run(&|| false).unwrap();
        let limit = 9176.0 * 8.0 / (192.0 * CELL);
        let mbps = found.throughput_mbps().unwrap();
        assert!(
            found.correct && (mbps / limit - 1.0).abs() < 0.0005,
            "{mbps} {limit}"
        );
    }
}

/// Small packets, and losses both ways: every octet arrives, and the sender repeats.
#[test]
fn every_octet_arrives_with_losses() {
    for (profile, mtu, octets, loss) in [
        (Profile::Report, 10, 60_000, 0.0),
        (Profile::Adaptive, 10, 60_000, 0.001),
        (Profile::Report, 9180, 2 << 20, 0.0005),
        (Profile::Adaptive, 9180, 2 << 20, 0.001),
    ] {
        let test = Transfer {
            mtu,
            loss,
            ..transfer(profile, octets)
        };
        let found = test.run(&|| false).unwrap();
        assert!(found.correct, "{test:?}");
        let sent = found.ends[0].counters;
        assert_eq!(
            sent.packets_sent,
            octets.div_ceil(mtu as u64 - 4) + extra(&test)
        );
        assert_eq!(sent.packets_repeated > 0, loss > 0.0, "{test:?}");
        assert_eq!(test.run(&|| false).unwrap(), found, "a run repeats");
    }
}

/// Packets at the ends of messages of 1 MiB that are not full.
fn extra(test: &Transfer) -> u64 {
    let data = test.mtu as u64 - 4;
    let messages = test.octets.div_ceil(1 << 20);
    let of_message = test.octets.min(1 << 20).div_ceil(data);
    messages * of_message - test.octets.div_ceil(data)
}

#[test]
fn a_transfer_that_cannot_be_or_is_stopped() {
    let unfit = Transfer {
        mtu: 4,
        ..transfer(Profile::Report, 10)
    };
    assert!(
        matches!(unfit.run(&|| false), Err(Failure::Unfit(why)) if why.contains("ATP needs SDUs of at least 5 octets"))
    );
    let test = transfer(Profile::Report, 1 << 20);
    assert_eq!(test.run(&|| true), Err(Failure::Interrupted));
}
