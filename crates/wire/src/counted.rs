//! Counts with their nouns, and lists, in messages.

use core::fmt;

/// A count that stands in front of a noun.
pub trait Count: Copy {
    /// The count as a number.
    fn number(self) -> u64;
}

macro_rules! counts {
    ($($number:ty),*) => {$(
        impl Count for $number {
            fn number(self) -> u64 {
                self as u64
            }
        }
    )*};
}
counts!(u8, u16, u32, u64, usize);

/// A count and its noun, for display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    count: u64,
    noun: &'static str,
}

/// A count and its noun: `1 call`, `2 calls`, `0 calls`. The words may go on with what agrees with the count.
///
/// ```
/// use aerostat_wire::counted;
/// assert_eq!(counted(1_usize, "call", "calls").to_string(), "1 call");
/// assert_eq!(counted(0_u64, "call is left", "calls are left").to_string(), "0 calls are left");
/// ```
#[must_use]
pub fn counted(count: impl Count, one: &'static str, others: &'static str) -> Counted {
    let count = count.number();
    let noun = if count == 1 { one } else { others };
    Counted { count, noun }
}

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.count, self.noun)
    }
}

/// A list that fits on a line: `a, b, c, d and 4 more`.
#[must_use]
pub fn some_of(all: &[impl AsRef<str>]) -> String {
    first_of(all, 4)
}

/// A list for a hint: names that there are, as many as a reader looks through.
#[must_use]
pub fn names_of(all: &[impl AsRef<str>]) -> String {
    first_of(all, 24)
}

fn first_of(all: &[impl AsRef<str>], most: usize) -> String {
    let shown: Vec<&str> = all.iter().take(most).map(AsRef::as_ref).collect();
    let shown = shown.join(", ");
    match all.len().saturating_sub(most) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
