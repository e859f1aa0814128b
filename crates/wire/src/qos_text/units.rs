//! Numbers, times and rates with their units.

use super::{CELL_PAYLOAD_BITS, QosError, Word, error};
use core::time::Duration;

/// The text in small letters, except values: the units of rates depend on case.
pub(super) fn lower(text: &str) -> String {
    let mut value = false;
    let small = |letter: char| {
        value = match letter {
            '=' => true,
            ',' => false,
            _ => value,
        };
        if value {
            letter
        } else {
            letter.to_ascii_lowercase()
        }
    };
    text.chars().map(small).collect()
}

pub(super) fn number(word: Word<'_>, most: u32, what: &str) -> Result<u32, QosError> {
    match word.text.parse::<u32>() {
        Ok(value) if value <= most && word.text.bytes().all(|c| c.is_ascii_digit()) => Ok(value),
        _ => error(
            word.at,
            format!("'{}' is no {what} between 0 and {most}", word.text),
        ),
    }
}

/// A tolerance in microseconds with up to three decimals, so whole nanoseconds.
pub(crate) fn micros(at: usize, word: &str) -> Result<Duration, QosError> {
    let (whole, fraction) = word.split_once('.').unwrap_or((word, "0"));
    let bad = || {
        let text = "microseconds with up to three decimals, such as 250 or 0.5";
        error(at, format!("'{word}' is no time: {text}"))
    };
    let digits = |part: &str, most: usize| {
        (1..=most).contains(&part.len()) && part.bytes().all(|c| c.is_ascii_digit())
    };
    if !digits(fraction, 3) {
        return bad();
    }
    let most = u32::MAX - 1;
    let whole = number(Word { at, text: whole }, most, "number of microseconds")?;
    match format!("{fraction:0<3}").parse() {
        Ok(nanos) => Ok(Duration::from_micros(whole.into()) + Duration::from_nanos(nanos)),
        Err(_) => bad(),
    }
}

/// A rate in cells/s, rounded up or down as `up` says; `None` is `max`.
pub(super) fn rate(word: Word<'_>, up: bool) -> Result<Option<u32>, QosError> {
    let bad = |text: String| error(word.at, text);
    if word.text.eq_ignore_ascii_case("max") {
        return if up {
            bad("max is no minimum rate".into())
        } else {
            Ok(None)
        };
    }
    let digits = word
        .text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(word.text.len());
    let (value, unit) = word.text.split_at(digits);
    let (whole, fraction) = value.split_once('.').unwrap_or((value, ""));
    if whole.len() + fraction.len() == 0
        || whole.len() > 12
        || fraction.len() > 9
        || fraction.contains('.')
    {
        return bad(format!("'{}' is no rate", word.text));
    }
    let nano = format!("0{whole}{fraction:0<9}");
    let Ok(nano) = nano.parse::<u128>() else {
        return bad(format!("'{}' is no rate", word.text));
    };
    let (multiplier, bits) = match (unit.strip_suffix("cps"), unit.strip_suffix("bps")) {
        (Some(multiplier), _) => (multiplier, 1),
        (None, Some(multiplier)) => (multiplier, CELL_PAYLOAD_BITS),
        (None, None) if unit.is_empty() => ("", 1),
        (None, None) => ("?", 1),
    };
    let factor = match multiplier {
        "" => 1,
        "k" | "K" => 1_000,
        "m" | "M" => 1_000_000,
        "g" | "G" => 1_000_000_000,
        _ if matches!(unit, "k" | "K" | "m" | "M" | "g" | "G") => {
            return bad(format!("'{}' has a multiplier without a unit", word.text));
        }
        _ => {
            let octets = unit.ends_with("Bps");
            let why = if octets { " (B would be octets)" } else { "" };
            let text = format!("'{unit}' is no unit{why}: use cps, kcps, bps, kbps, Mbps");
            return bad(text);
        }
    };
    let divisor = 1_000_000_000 * bits;
    // As libatm does: parts of bits and of cells do not count, but a part of a cell that bits make.
    let cells = if up && bits > 1 {
        (nano * factor / 1_000_000_000).div_ceil(bits)
    } else {
        nano * factor / divisor
    };
    match u32::try_from(cells) {
        Ok(cells) if cells < u32::MAX => Ok(Some(cells)),
        _ => bad(format!("'{}' is too fast", word.text)),
    }
}
