//! Texts of `qos(7)` beside libatm: `vectors/text2qos.txt` has what `text2qos` of libatm 2.5.1 (Debian's package
//! `libatm1`) says to each, written by `interop/text2qos`.

use aerostat_wire::{Qos, ServiceCategory, TrafficParams};

/// One direction in the words of the file: class, max_pcr, pcr, min_pcr, max_sdu. This program has one peak rate, which
/// libatm keeps as two.
fn direction(t: &TrafficParams) -> String {
    let class = match t.category {
        None => 0,
        Some(ServiceCategory::Ubr) => 1,
        Some(ServiceCategory::Cbr) => 2,
        Some(ServiceCategory::Abr) => 4,
        Some(other) => panic!("{other}: libatm has no such class"),
    };
    let peak = t.max_pcr.map_or(-1, i64::from);
    format!("{class} {peak} {} {}", t.min_pcr, t.max_sdu)
}

/// The same of libatm.
fn theirs(text: &str) -> String {
    let numbers: Vec<i64> = text.split(' ').map(|n| n.parse().unwrap()).collect();
    let [class, max_pcr, pcr, min_pcr, sdu] = numbers[..] else {
        panic!("{text}");
    };
    let peak = match (max_pcr, pcr) {
        (0, pcr) => pcr,
        (max_pcr, _) => max_pcr,
    };
    // No rate and `max` are the same here, and 0 cells/s are no rate in libatm.
    let peak = if peak == 0 { -1 } else { peak };
    format!("{class} {peak} {min_pcr} {sdu}")
}

/// Texts that libatm takes, this program takes for the same contract. Texts that libatm refuses are refused. Exceptions
/// are listed here and in the documents.
#[test]
fn texts_mean_what_they_mean_to_libatm() {
    // An extension, and a contract for nothing.
    let (more, fewer) = (["none"], ["ubr:tx:none,rx:none"]);
    let (mut taken, mut refused) = (0, 0);
    for line in include_str!("vectors/text2qos.txt").lines() {
        let (text, answer) = line.split_once('\t').unwrap();
        let own = text.parse::<Qos>();
        if answer == "error" {
            refused += 1;
            assert!(own.is_err() || more.contains(&text), "{text}: {own:?}");
            continue;
        }
        if fewer.contains(&text) {
            assert!(own.is_err(), "{text}: {own:?}");
            continue;
        }
        taken += 1;
        let own = own.unwrap_or_else(|error| panic!("{text}: {error}"));
        let (tx, rx) = answer.split_once(" | ").unwrap();
        for (ours, libatm) in [(&own.tx, tx), (&own.rx, rx)] {
            let ours =
                direction(ours).replacen(" 0 ", " -1 ", usize::from(ours.max_pcr == Some(0)));
            assert_eq!(ours, theirs(libatm), "{text}");
        }
    }
    assert!(taken > 100 && refused > 100, "{taken} {refused}");
}

/// The error of a unit says what is wrong with it.
#[test]
fn octets_are_no_bits() {
    for (text, says) in [
        ("cbr:max_pcr=1MBps", "'MBps' is no unit (B would be octets)"),
        (
            "cbr:tx:max_pcr=9kBps,rx:none",
            "'kBps' is no unit (B would be octets)",
        ),
        ("ubr:max_pcr=1kCPS", "'kCPS' is no unit: use cps"),
        ("ubr:max_pcr=1M", "'1M' has a multiplier without a unit"),
    ] {
        let wrong = text.parse::<Qos>().expect_err(text).to_string();
        assert!(wrong.starts_with(says), "{wrong}");
    }
}
