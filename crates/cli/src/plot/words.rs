//! Names and units for people, from names of columns and values of keys.

/// Units at the end of the names of columns.
const UNITS: [(&str, &str); 9] = [
    ("us", "µs"),
    ("ms", "ms"),
    ("s", "s"),
    ("mbps", "Mbit/s"),
    ("cps", "cells/s"),
    ("octets", "octets"),
    ("us2", "µs²"),
    ("percent", "%"),
    ("pps", "packets/s"),
];

/// A column as an axis says it: `delay_us_p99` is "delay p99 (µs)".
pub(crate) fn of_column(name: &str) -> String {
    let parts: Vec<&str> = name.split('_').collect();
    let unit_of = |part: &str| UNITS.iter().find(|unit| unit.0 == part).map(|unit| unit.1);
    // A word alone is no unit, even if it could be one.
    let at = parts
        .iter()
        .skip(1)
        .rposition(|part| unit_of(part).is_some());
    let Some(at) = at.map(|at| at + 1) else {
        return parts.join(" ");
    };
    let unit = unit_of(parts[at]).unwrap_or_default();
    let words: Vec<&str> = parts
        .iter()
        .enumerate()
        .filter(|(n, _)| *n != at)
        .map(|(_, p)| *p)
        .collect();
    format!("{} ({unit})", words.join(" "))
}

/// Units of values of keys: how they are written, what they measure, and how much that is.
const OF_KEYS: [(&str, &str, f64); 22] = [
    ("ns", "s", 1e-9),
    ("us", "s", 1e-6),
    ("ms", "s", 1e-3),
    ("s", "s", 1.0),
    ("bps", "bit/s", 1.0),
    ("kbps", "bit/s", 1e3),
    ("Mbps", "bit/s", 1e6),
    ("Gbps", "bit/s", 1e9),
    ("bit/s", "bit/s", 1.0),
    ("kbit/s", "bit/s", 1e3),
    ("Mbit/s", "bit/s", 1e6),
    ("Gbit/s", "bit/s", 1e9),
    ("pps", "packets/s", 1.0),
    ("cps", "cells/s", 1.0),
    ("B", "octets", 1.0),
    ("kB", "octets", 1e3),
    ("MB", "octets", 1e6),
    ("KiB", "octets", 1024.0),
    ("MiB", "octets", 1_048_576.0),
    ("GiB", "octets", 1_073_741_824.0),
    ("%", "%", 1.0),
    ("", "", 1.0),
];

/// Units for people, by what they measure, from the smallest.
const SHOWN: [(&str, &str, f64); 8] = [
    ("s", "ns", 1e-9),
    ("s", "µs", 1e-6),
    ("s", "ms", 1e-3),
    ("s", "s", 1.0),
    ("bit/s", "bit/s", 1.0),
    ("bit/s", "kbit/s", 1e3),
    ("bit/s", "Mbit/s", 1e6),
    ("bit/s", "Gbit/s", 1e9),
];

/// Values of one key as numbers of one unit; `None` if they are no such numbers. Values without a unit, such as 0, have
/// the unit of the others.
pub(crate) fn numbers(values: &[&str]) -> Option<(Vec<f64>, &'static str)> {
    let read: Vec<(f64, &str)> = values
        .iter()
        .map(|text| quantity(text))
        .collect::<Option<_>>()?;
    let with_unit = read.iter().find(|value| !value.1.is_empty());
    let measure = with_unit.map_or("", |value| value.1);
    if read
        .iter()
        .any(|value| value.1 != measure && (!value.1.is_empty() || value.0 != 0.0))
    {
        return None;
    }
    let largest = read.iter().map(|value| value.0.abs()).fold(0.0, f64::max);
    let units = || {
        SHOWN.iter().filter(|unit| {
            OF_KEYS
                .iter()
                .any(|key| key.1 == measure && unit.0 == measure)
        })
    };
    let fits = units().rfind(|unit| unit.2 <= largest * 1.000_001);
    let (name, size) = match fits.or_else(|| units().next()) {
        Some(unit) => (unit.1, unit.2),
        None => {
            let key = OF_KEYS.iter().find(|key| key.1 == measure);
            (key.map_or("", |key| key.1), 1.0)
        }
    };
    Some((read.iter().map(|value| value.0 / size).collect(), name))
}

/// A number with its unit, in the unit of what it measures.
fn quantity(text: &str) -> Option<(f64, &'static str)> {
    let text = text.trim();
    let all = OF_KEYS.iter().filter_map(|(unit, measure, size)| {
        let number = text.strip_suffix(unit)?.trim_end();
        let value: f64 = number
            .parse()
            .ok()
            .filter(|value: &f64| value.is_finite())?;
        Some((value * size, *measure))
    });
    { all }.next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_their_units_in_brackets() {
        for (column, words) in [
            ("throughput_mbps", "throughput (Mbit/s)"),
            ("delay_us_p99_9", "delay p99 9 (µs)"),
            ("lost", "lost"),
            ("end_s", "end (s)"),
            ("delivered_octets", "delivered (octets)"),
            ("s", "s"),
        ] {
            assert_eq!(of_column(column), words);
        }
    }

    #[test]
    fn values_of_a_key_get_one_unit() {
        let (values, unit) = numbers(&["5us", "1ms", "5ms", "0"]).unwrap();
        assert_eq!(unit, "ms");
        assert!(
            values
                .iter()
                .zip([0.005, 1.0, 5.0, 0.0])
                .all(|(a, b)| (a - b).abs() < 1e-12)
        );
        assert_eq!(
            numbers(&["1Gbps", "500Mbps"]).unwrap(),
            (vec![1.0, 0.5], "Gbit/s")
        );
        assert_eq!(numbers(&["1e-5", "0.5"]).unwrap(), (vec![1e-5, 0.5], ""));
        assert_eq!(numbers(&["2KiB"]).unwrap(), (vec![2048.0], "octets"));
        assert!(numbers(&["true", "false"]).is_none());
        assert!(numbers(&["5us", "3Mbps"]).is_none() && numbers(&["5us", "3"]).is_none());
    }
}
