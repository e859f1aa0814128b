//! Parameters of protocols: the name, the range and the default of each parameter in one place.
//!
//! **Purpose.** A parameter is read from a lab file, from a TLV of a peer, or from a user's command, and each reader
//! must accept the same range. [`parameters!`](crate::parameters!) therefore makes a structure of parameters together
//! with their ranges: a parameter with a range has a [`Range`] of the same name in the structure's `RANGES`. Readers,
//! documents and errors take the range and the default from there.
//!
//! **Objects and owners.** Each protocol owns its structure in its `params.rs`, such as
//! [`MpcParams`](crate::mpoa::params::MpcParams). The `settings` of results list the names, values and ranges from the
//! structure's `with_ranges`.

use crate::Duration;
use core::fmt;
use core::ops::RangeInclusive;

/// The value of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// A time.
    Time(Duration),
    /// A number.
    Count(u32),
}

impl From<Duration> for Value {
    fn from(time: Duration) -> Self {
        Self::Time(time)
    }
}

impl From<u16> for Value {
    fn from(count: u16) -> Self {
        Self::Count(count.into())
    }
}

impl From<u32> for Value {
    fn from(count: u32) -> Self {
        Self::Count(count)
    }
}

impl fmt::Display for Value {
    /// As lab files have it: `10`, `250ms`, `300s`, `20min`, `24h`. Times under ten minutes are in seconds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const HOUR: u64 = 3600;
        let time = match self {
            Self::Count(count) => return write!(f, "{count}"),
            Self::Time(time) => time,
        };
        match (time.as_secs(), time.subsec_nanos()) {
            (s, 0) if s >= HOUR && s.is_multiple_of(HOUR) => write!(f, "{}h", s / HOUR),
            (s, 0) if s >= 600 && s.is_multiple_of(60) => write!(f, "{}min", s / 60),
            (s, 0) => write!(f, "{s}s"),
            (_, ns) if ns.is_multiple_of(1_000_000) => write!(f, "{}ms", time.as_millis()),
            _ => write!(f, "{}s", time.as_secs_f64()),
        }
    }
}

/// Smallest, default and largest value of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range<T> {
    /// Smallest value.
    pub min: T,
    /// Default value.
    pub default: T,
    /// Largest value.
    pub max: T,
}

impl<T: Copy + PartialOrd> Range<T> {
    /// A range with the default.
    #[must_use]
    pub const fn new(default: T, range: RangeInclusive<T>) -> Self {
        Self {
            min: *range.start(),
            default,
            max: *range.end(),
        }
    }
    /// True if `value` lies in the range.
    #[must_use]
    pub fn contains(&self, value: T) -> bool {
        self.min <= value && value <= self.max
    }
}

impl<T: Copy + Ord> Range<T> {
    /// The value of the range that is nearest to `value`.
    #[must_use]
    pub fn nearest(&self, value: T) -> T {
        value.clamp(self.min, self.max)
    }
}

impl<T: Copy + Into<Value>> fmt::Display for Range<T> {
    /// `1s to 300s`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.min.into(), self.max.into())
    }
}

/// A parameter that has a range, with its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name: the field of its structure.
    pub name: &'static str,
    /// Its value.
    pub value: Value,
    /// Its range and default.
    pub range: Range<Value>,
}

impl Parameter {
    /// The parameter with this range, and its value.
    #[must_use]
    pub fn new<T: Copy + Into<Value>>(name: &'static str, value: T, range: Range<T>) -> Self {
        let Range { min, default, max } = range;
        Self {
            name,
            value: value.into(),
            range: Range {
                min: min.into(),
                default: default.into(),
                max: max.into(),
            },
        }
    }
}

/// Makes a structure of parameters: `field: type = default, smallest..=largest;`, and without a range what no user may
/// set, or what is on or off. The structure gets `DEFAULT`, `RANGES`, `in_range` and `with_ranges`.
#[macro_export]
macro_rules! parameters {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident, $ranges:ident {
            $( $(#[$doc:meta])* $field:ident: $type:ty = $default:expr $(, $range:expr)?; )*
        }
    ) => {
        $(#[$meta])*
        $vis struct $name {
            $(
                $(#[$doc])*
                #[doc = concat!("\n\nDefault: `", stringify!($default), "`" $(, "; range: `", stringify!($range), "`")?, ".")]
                $vis $field: $type,
            )*
        }

        #[doc = concat!("Ranges of the parameters of [`", stringify!($name), "`].")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis struct $ranges {
            $( $(
                #[doc = concat!("Range of `", stringify!($name), "::", stringify!($field), "`: `", stringify!($range), "`.")]
                $vis $field: $crate::parameters::Range<$type>,
            )? )*
        }

        impl $name {
            /// All defaults.
            $vis const DEFAULT: Self = Self { $( $field: $default, )* };
            /// The ranges, with the defaults.
            $vis const RANGES: $ranges = $ranges {
                $( $( $field: $crate::parameters::Range::new($default, $range), )? )*
            };
            /// The same parameters, each moved into its range.
            #[must_use]
            $vis fn in_range(mut self) -> Self {
                $( $( self.$field = $crate::parameters::Range::new($default, $range).nearest(self.$field); )? )*
                self
            }
            /// The parameters that have a range, with their values.
            $vis fn with_ranges(&self) -> impl Iterator<Item = $crate::parameters::Parameter> + use<> {
                [
                    $( $( $crate::parameters::Parameter::new(
                        stringify!($field),
                        self.$field,
                        $crate::parameters::Range::<$type>::new($default, $range),
                    ), )? )*
                ]
                .into_iter()
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::DEFAULT
            }
        }
    };
}
#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    parameters! {
        /// An example.
        #[derive(Clone, Copy, Debug, PartialEq)]
        struct Example, ExampleRanges {
            /// A number.
            tries: u16 = 3, 1..=20;
            /// A time.
            wait: Duration = s(5), s(1)..=s(86_400);
            /// No range.
            on: bool = true;
        }
    }

    #[test]
    fn a_structure_has_the_defaults_and_the_ranges_that_it_names() {
        let range = Example::RANGES.wait;
        assert_eq!(
            (range.min, range.default, range.max),
            (s(1), s(5), s(86_400))
        );
        assert!(range.contains(s(1)) && range.contains(s(86_400)));
        assert!(!range.contains(s(0)) && !range.contains(s(86_401)));
        let wild = Example {
            tries: 0,
            wait: s(90_000),
            on: false,
        };
        let tame = Example {
            tries: 1,
            wait: s(86_400),
            on: false,
        };
        assert_eq!(wild.in_range(), tame);
        assert_eq!(Example::default().in_range(), Example::DEFAULT);
        let all: Vec<_> = wild
            .with_ranges()
            .map(|one| (one.name, one.value))
            .collect();
        let expected = [("tries", Value::Count(0)), ("wait", Value::Time(s(90_000)))];
        assert_eq!(all, expected);
    }

    #[test]
    fn values_are_written_as_a_lab_file_has_them() {
        let all = [
            (Duration::ZERO, "0s"),
            (Duration::from_micros(1500), "0.0015s"),
            (Duration::from_millis(750), "750ms"),
            (s(300), "300s"),
            (s(600), "10min"),
            (s(65_535), "65535s"),
            (s(7200), "2h"),
        ];
        for (time, text) in all {
            assert_eq!(Value::from(time).to_string(), text);
        }
        assert_eq!(Example::RANGES.tries.to_string(), "1 to 20");
        assert_eq!(Example::RANGES.wait.to_string(), "1s to 24h");
    }
}
