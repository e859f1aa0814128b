//! Values that a check wants: a number, a comparison, a range, or words.

use serde_json::Value;
use std::fmt;
use std::str::FromStr;

/// A condition for one value, and how it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    text: String,
    test: Test,
}

#[derive(Clone, Debug, PartialEq)]
enum Test {
    /// From here to there; the flags say whether the ends belong to it.
    Within([(f64, bool); 2]),
    Not(f64),
    Words(String),
    NotWords(String),
}

impl Wanted {
    /// At least this number.
    #[must_use]
    pub fn at_least(number: u32) -> Self {
        Self {
            text: format!(">={number}"),
            test: Test::Within([(number.into(), true), (f64::INFINITY, true)]),
        }
    }

    /// The count from which each larger one fits, too; `None` if no count is like that.
    #[must_use]
    pub fn enough(&self) -> Option<u64> {
        match self.test {
            Test::Within([(least, also), (f64::INFINITY, _)]) => {
                let first = if also {
                    least.ceil()
                } else {
                    least.floor() + 1.0
                };
                Some(first.max(0.0) as u64)
            }
            _ => None,
        }
    }

    /// True if it is for numbers alone.
    #[must_use]
    pub const fn is_number(&self) -> bool {
        matches!(self.test, Test::Within(_) | Test::Not(_))
    }

    /// True if it is for whole numbers from 0 on, and some of them fit.
    #[must_use]
    pub fn fits_counts(&self) -> bool {
        match self.test {
            Test::Within([least, most]) => {
                let first = if least.1 {
                    least.0.ceil()
                } else {
                    (least.0 + 1.0).floor()
                };
                let first = first.max(0.0);
                first < most.0 || first <= most.0 && most.1
            }
            Test::Not(_) => true,
            Test::Words(_) | Test::NotWords(_) => false,
        }
    }

    /// True if a number fits; it may be off by `tolerance` of what is wanted.
    #[must_use]
    pub fn fits(&self, number: f64, tolerance: f64) -> bool {
        match &self.test {
            Test::Within([least, most]) => {
                // Infinity times 0 is no number.
                let slack = |end: f64| match end.is_finite() {
                    true => end.abs() * tolerance,
                    false => 0.0,
                };
                let (low, high) = (least.0 - slack(least.0), most.0 + slack(most.0));
                (number > low || number >= low && least.1)
                    && (number < high || number <= high && most.1)
            }
            Test::Not(other) => number != *other,
            Test::Words(words) => number.to_string() == *words,
            Test::NotWords(words) => number.to_string() != *words,
        }
    }

    /// True if a value of a table fits. Words are compared without their case; no words are for a value that is absent.
    #[must_use]
    pub fn fits_value(&self, value: &Value, tolerance: f64) -> bool {
        let is = |text: &str, words: &str| text.to_lowercase() == words.to_lowercase();
        let text = match value {
            Value::Number(number) => {
                return number.as_f64().is_some_and(|n| self.fits(n, tolerance));
            }
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        match &self.test {
            Test::Words(words) => is(&text, words),
            Test::NotWords(words) => !is(&text, words),
            // A name may look like a number.
            Test::Within(_) | Test::Not(_) => {
                text == self.text || text.parse().is_ok_and(|n| self.fits(n, tolerance))
            }
        }
    }
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Wanted {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let test = test(text.trim())?;
        Ok(Self {
            text: text.trim().to_owned(),
            test,
        })
    }
}

fn number(text: &str) -> Option<f64> {
    let number: f64 = text.trim().parse().ok()?;
    number.is_finite().then_some(number)
}

fn test(text: &str) -> Result<Test, String> {
    const LEAST: (f64, bool) = (f64::NEG_INFINITY, true);
    const MOST: (f64, bool) = (f64::INFINITY, true);
    let wrong = || "expected a number behind the comparison, such as <100 or >=2".to_owned();
    if let Some(rest) = text.strip_prefix("!=") {
        let words = || Test::NotWords(rest.trim().to_owned());
        return Ok(number(rest).map_or_else(words, Test::Not));
    }
    let compared = [
        ("<=", false, true),
        (">=", true, true),
        ("<", false, false),
        (">", true, false),
    ];
    for (sign, low, also) in compared {
        if let Some(rest) = text.strip_prefix(sign) {
            let end = (number(rest).ok_or_else(wrong)?, also);
            return Ok(Test::Within(if low { [end, MOST] } else { [LEAST, end] }));
        }
    }
    if let Some((low, high)) = text.split_once("..")
        && let (Some(low), Some(high)) = (number(low), number(high))
    {
        return match low <= high {
            true => Ok(Test::Within([(low, true), (high, true)])),
            false => Err("expected a range from less to more, such as 10..20".to_owned()),
        };
    }
    if let Some((about, by)) = text.split_once("+-").or_else(|| text.split_once('±'))
        && let Some(about) = number(about)
    {
        let share = by.trim().strip_suffix('%').and_then(number);
        let by = share.map_or_else(|| number(by), |share| Some(about.abs() * share / 100.0));
        let by = by.filter(|by| *by >= 0.0);
        let by = by.ok_or("expected how far it may be off, such as 35.3 +- 2% or 35.3 +- 0.5")?;
        return Ok(Test::Within([(about - by, true), (about + by, true)]));
    }
    Ok(match number(text) {
        Some(number) => Test::Within([(number, true); 2]),
        None => Test::Words(text.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn wanted(text: &str) -> Wanted {
        text.parse().unwrap()
    }

    #[test]
    fn comparisons_ranges_and_tolerances_are_about_numbers() {
        for (text, fits, not) in [
            ("3", 3.0, 4.0),
            ("<100", 99.9, 100.0),
            ("<= 100", 100.0, 100.1),
            (">0", 0.1, 0.0),
            (">=2", 2.0, 1.9),
            ("!=0", 1.0, 0.0),
            ("10..20", 20.0, 20.1),
            ("-2..-1", -1.5, 0.0),
            ("35.3 +- 2%", 36.0, 36.1),
            ("35.3 ± 0.5", 34.8, 34.7),
        ] {
            let wanted = wanted(text);
            assert!(wanted.fits(fits, 0.0) && !wanted.fits(not, 0.0), "{text}");
            assert!(wanted.is_number(), "{text}");
        }
        for bad in ["<x", ">=", "20..10", "3 +- x", "3 +- -1"] {
            assert!(bad.parse::<Wanted>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_count_that_is_enough_stays_so() {
        let enough = [
            (">=3", Some(3)),
            (">3", Some(4)),
            (">2.5", Some(3)),
            ("3", None),
            ("<3", None),
            ("1..9", None),
        ];
        for (text, count) in enough {
            assert_eq!(wanted(text).enough(), count, "{text}");
        }
    }

    #[test]
    fn a_tolerance_moves_the_ends_of_what_is_wanted() {
        assert!(wanted("<100").fits(119.0, 0.2) && !wanted("<100").fits(120.0, 0.2));
        assert!(wanted(">30").fits(25.0, 0.2) && !wanted(">30").fits(23.0, 0.2));
        assert!(wanted("0").fits(0.0, 0.2) && !wanted("0").fits(1.0, 0.2));
    }

    #[test]
    fn words_are_compared_without_case_and_absent_values_are_no_words() {
        assert!(wanted("Open").fits_value(&json!("open"), 0.0));
        assert!(!wanted("open").fits_value(&json!("opening"), 0.0));
        assert!(wanted("!=open").fits_value(&json!("held"), 0.0));
        assert!(wanted("true").fits_value(&json!(true), 0.0));
        assert!(wanted("").fits_value(&Value::Null, 0.0));
        assert!(!wanted("0").fits_value(&Value::Null, 0.0));
        assert!(wanted("7").fits_value(&json!("7"), 0.0));
    }

    #[test]
    fn a_count_is_a_whole_number_that_is_not_negative() {
        for (text, fits) in [
            ("0", true),
            ("<0", false),
            ("<1", true),
            ("-1", false),
            ("0.5", false),
            ("open", false),
        ] {
            assert_eq!(wanted(text).fits_counts(), fits, "{text}");
        }
    }
}
