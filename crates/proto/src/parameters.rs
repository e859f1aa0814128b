//! Parameters of protocols: the name, the range and the default of each parameter in one place.
//!
//! **Purpose.** A parameter is read from a lab file, from a TLV of a peer, or from a user's command, and each reader
//! must accept the same range. [`parameters!`](crate::parameters!) therefore makes a structure of parameters together
//! with their ranges: a parameter with a range has a [`Range`] of the same name in the structure's `RANGES`. Readers,
//! documents and errors take the range and the default from there.
//!
//! **Keys.** A parameter with a range is a key of lab files. [`Parameters`] lists these parameters, and gives them
//! other values by name. Lab files, their schema, their page and the `settings` of results know them from this list
//! alone. The first paragraph of a parameter's documentation is therefore written for users: it stands in the schema
//! and on the page.
//!
//! **Objects and owners.** Each protocol owns its structure in its `params.rs`, such as
//! [`MpcParams`](crate::mpoa::params::MpcParams).

use crate::Duration;
use core::fmt;
use core::ops::RangeInclusive;

/// Frames per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PerSecond(pub u32);

/// A number of octets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Octets(pub usize);

/// The value of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub enum Value {
    /// A time.
    Time(Duration),
    /// A number.
    Count(u64),
    /// Frames per second.
    Rate(PerSecond),
    /// A number of octets.
    Octets(Octets),
    /// True or false.
    Flag(bool),
}

/// A type of parameters that can have a range.
pub trait Kind: Copy + Ord + Into<Value> {
    /// The value as this type; `None` if it is of another kind, or too large for the type.
    fn of(value: Value) -> Option<Self>;
}

macro_rules! kinds {
    ($($kind:ty = $variant:ident;)+) => {$(
        impl From<$kind> for Value {
            fn from(value: $kind) -> Self {
                Self::$variant(value)
            }
        }
        impl Kind for $kind {
            fn of(value: Value) -> Option<Self> {
                match value {
                    Value::$variant(value) => Some(value),
                    _ => None,
                }
            }
        }
    )+};
}
kinds! {
    Duration = Time;
    PerSecond = Rate;
    Octets = Octets;
    bool = Flag;
}

macro_rules! counts {
    ($($kind:ident)+) => {$(
        impl From<$kind> for Value {
            fn from(count: $kind) -> Self {
                Self::Count(count as u64)
            }
        }
        impl Kind for $kind {
            fn of(value: Value) -> Option<Self> {
                match value {
                    Value::Count(count) => count.try_into().ok(),
                    _ => None,
                }
            }
        }
    )+};
}
counts! { u8 u16 u32 usize }

impl From<Option<u32>> for Value {
    /// A count that is not given is 0, which has the same effect where nothing else is given.
    fn from(count: Option<u32>) -> Self {
        count.unwrap_or_default().into()
    }
}
impl Kind for Option<u32> {
    fn of(value: Value) -> Option<Self> {
        u32::of(value).map(Some)
    }
}

impl fmt::Display for Value {
    /// As lab files have it: `10`, `250ms`, `300s`, `20min`, `24h`, `1000pps`, `64KiB`. Times under ten minutes are in
    /// seconds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const HOUR: u64 = 3600;
        let time = match self {
            Self::Count(count) => return write!(f, "{count}"),
            Self::Flag(flag) => return write!(f, "{flag}"),
            Self::Rate(PerSecond(rate)) => return write!(f, "{rate}pps"),
            Self::Octets(Octets(octets)) => {
                return match octets {
                    0 => write!(f, "0"),
                    n if n.is_multiple_of(1 << 20) => write!(f, "{}MiB", n >> 20),
                    n if n.is_multiple_of(1 << 10) => write!(f, "{}KiB", n >> 10),
                    n => write!(f, "{n}"),
                };
            }
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
    /// Its documentation, line by line.
    pub lines: &'static [&'static str],
}

impl Parameter {
    /// The parameter with this range, and its value.
    #[must_use]
    pub fn new<T: Kind>(
        name: &'static str,
        value: T,
        range: Range<T>,
        lines: &'static [&'static str],
    ) -> Self {
        let Range { min, default, max } = range;
        Self {
            name,
            value: value.into(),
            range: Range {
                min: min.into(),
                default: default.into(),
                max: max.into(),
            },
            lines,
        }
    }
    /// Meaning of the parameter: the first paragraph of its documentation, without the full stop.
    #[must_use]
    pub fn meaning(&self) -> String {
        let lines = self.lines.iter().map(|line| line.trim());
        let paragraph: Vec<_> = lines.take_while(|line| !line.is_empty()).collect();
        paragraph.join(" ").trim_end_matches('.').to_owned()
    }
}

/// A structure made by [`parameters!`](crate::parameters!).
pub trait Parameters {
    /// The parameters that have a range, with their values, in the order of the structure.
    fn with_ranges(&self) -> Vec<Parameter>;
    /// Sets a parameter; `false` if the structure has no parameter of this name with a range, or if the value is not in
    /// the range.
    fn set(&mut self, name: &str, value: Value) -> bool;
}

/// Makes a structure of parameters: `field: type = default, smallest..=largest;`, and without a range what no user may
/// set. The structure gets `DEFAULT`, `RANGES`, `in_range`, `adopt` and [`Parameters`](crate::parameters::Parameters).
/// After `split`, it can be part of messages between the halves of a machine, too.
#[macro_export]
macro_rules! parameters {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident, $ranges:ident, split {
            $( $(#[doc = $doc:literal])* $field:ident: $type:ty = $default:expr $(, $range:expr)?; )*
        }
    ) => {
        $crate::parameters! {
            $(#[$meta])*
            $vis struct $name, $ranges {
                $( $(#[doc = $doc])* $field: $type = $default $(, $range)?; )*
            }
        }
        $crate::split_record!($name { $($field),* });
    };
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident, $ranges:ident {
            $( $(#[doc = $doc:literal])* $field:ident: $type:ty = $default:expr $(, $range:expr)?; )*
        }
    ) => {
        $(#[$meta])*
        $vis struct $name {
            $(
                $(#[doc = $doc])*
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
            /// Takes over the parameters that have a range; all others stay as they are.
            $vis fn adopt(&mut self, from: &Self) {
                $( $(
                    let _ = $range;
                    self.$field = from.$field;
                )? )*
                let _ = from;
            }
        }

        impl $crate::parameters::Parameters for $name {
            fn with_ranges(&self) -> Vec<$crate::parameters::Parameter> {
                fn lines(name: &str) -> &'static [&'static str] {
                    $( if name == stringify!($field) {
                        return &[$($doc),*];
                    } )*
                    &[]
                }
                vec![
                    $( $( $crate::parameters::Parameter::new(
                        stringify!($field),
                        self.$field,
                        $crate::parameters::Range::<$type>::new($default, $range),
                        lines(stringify!($field)),
                    ), )? )*
                ]
            }
            fn set(&mut self, name: &str, value: $crate::parameters::Value) -> bool {
                $( $(
                    if name == stringify!($field) {
                        let range = $crate::parameters::Range::<$type>::new($default, $range);
                        let value = <$type as $crate::parameters::Kind>::of(value);
                        return match value.filter(|value| range.contains(*value)) {
                            Some(value) => {
                                self.$field = value;
                                true
                            }
                            None => false,
                        };
                    }
                )? )*
                let _ = (name, value);
                false
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
    use crate::time::s;

    parameters! {
        /// An example.
        #[derive(Clone, Copy, Debug, PartialEq)]
        struct Example, ExampleRanges {
            /// A number.
            tries: u16 = 3, 1..=20;
            /// A time in
            /// two lines.
            ///
            /// Words for those who read the code.
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
        let mut adopting = Example::DEFAULT;
        adopting.adopt(&tame);
        assert_eq!((adopting.tries, adopting.on), (1, true));
        let all = wild.with_ranges();
        let all: Vec<_> = all.iter().map(|one| (one.name, one.value)).collect();
        let expected = [("tries", Value::Count(0)), ("wait", Value::Time(s(90_000)))];
        assert_eq!(all, expected);
        let meaning = wild.with_ranges()[1].meaning();
        assert_eq!(meaning, "A time in two lines");
    }

    #[test]
    fn a_parameter_gets_only_values_of_its_kind_and_in_its_range_by_name() {
        let mut example = Example::DEFAULT;
        assert!(example.set("tries", Value::Count(20)));
        assert!(example.set("wait", s(7).into()));
        let good = example;
        assert_eq!((good.tries, good.wait), (20, s(7)));
        for (name, value) in [
            ("tries", Value::Count(21)),
            ("tries", Value::Count(65_537)),
            ("tries", s(1).into()),
            ("wait", Value::Time(s(0))),
            ("on", false.into()),
            ("other", Value::Count(1)),
        ] {
            assert!(!example.set(name, value), "{name}");
        }
        assert_eq!(example, good);
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
        assert_eq!(Value::from(PerSecond(500)).to_string(), "500pps");
        for (octets, text) in [(2048, "2KiB"), (64 << 20, "64MiB"), (1500, "1500")] {
            assert_eq!(Value::from(Octets(octets)).to_string(), text);
        }
        assert_eq!(Example::RANGES.tries.to_string(), "1 to 20");
        assert_eq!(Example::RANGES.wait.to_string(), "1s to 24h");
    }
}
