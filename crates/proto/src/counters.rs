//! Counters: their names, values and sums from one list of each set.
//!
//! [`counters!`](crate::counters!) makes a structure of counters. The structure can be shown (`rows()` of the whole
//! set), added to another of its kind, and sent between processes (see [`split`](crate::split)), so a new counter is
//! one line at one place.

use core::fmt;
use std::collections::BTreeMap;

/// The name of a counter and its value. Counters by code have the code in brackets: `errors[3]`.
pub type CounterRow = (String, u64);

/// A counter, or counters by code.
pub trait Count {
    /// Adds `other`; a sum above `u64::MAX` stays there.
    fn add(&mut self, other: &Self);
    /// The rows of a single counter named `name`; counters by code have no such row.
    fn single(&self, name: &'static str) -> Option<CounterRow>;
    /// The rows of counters by code; a single counter has no such rows.
    fn by_code(&self, name: &'static str) -> Vec<CounterRow>;
}

impl Count for u64 {
    fn add(&mut self, other: &Self) {
        *self = self.saturating_add(*other);
    }
    fn single(&self, name: &'static str) -> Option<CounterRow> {
        Some((name.to_owned(), *self))
    }
    fn by_code(&self, _: &'static str) -> Vec<CounterRow> {
        Vec::new()
    }
}

impl<C: Copy + Ord + fmt::Display> Count for BTreeMap<C, u64> {
    fn add(&mut self, other: &Self) {
        for (code, count) in other {
            self.entry(*code).or_default().add(count);
        }
    }
    fn single(&self, _: &'static str) -> Option<CounterRow> {
        None
    }
    fn by_code(&self, name: &'static str) -> Vec<CounterRow> {
        let row = |(code, count): (&C, &u64)| (format!("{name}[{code}]"), *count);
        self.iter().map(row).collect()
    }
}

/// Makes a structure of counters: `u64`, or `BTreeMap` from codes to `u64`.
///
/// Besides the fields the structure has `rows()`, the names and values of all counters (first the single ones, then
/// those by code, both in the order of the fields), and `add()`.
///
/// ```
/// aerostat_proto::counters! {
///     /// Frames of an interface.
///     #[derive(Clone, Debug, Default, PartialEq, Eq)]
///     pub struct Frames {
///         /// Frames sent.
///         pub sent: u64,
///         /// Frames received.
///         pub received: u64,
///     }
/// }
/// let mut frames = Frames { sent: 3, received: 0 };
/// frames.add(&Frames { sent: 1, received: 2 });
/// assert_eq!(frames.rows(), [("sent".to_owned(), 4), ("received".to_owned(), 2)]);
/// ```
#[macro_export]
macro_rules! counters {
    (
        $(#[$about:meta])*
        $vis:vis struct $set:ident {
            $($(#[$doc:meta])* $seen:vis $counter:ident: $kind:ty,)+
        }
    ) => {
        $(#[$about])*
        $vis struct $set {
            $($(#[$doc])* $seen $counter: $kind,)+
        }
        impl $set {
            /// Names and values: first single counters, then counters by code.
            #[must_use]
            $vis fn rows(&self) -> Vec<$crate::counters::CounterRow> {
                let mut rows = Vec::new();
                $(rows.extend($crate::counters::Count::single(&self.$counter, stringify!($counter)));)+
                $(rows.extend($crate::counters::Count::by_code(&self.$counter, stringify!($counter)));)+
                rows
            }
            /// Adds the counters of another part.
            $vis fn add(&mut self, other: &Self) {
                $($crate::counters::Count::add(&mut self.$counter, &other.$counter);)+
            }
        }
        $crate::split_record!($set { $($counter),+ });
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    crate::counters! {
        /// A set of both kinds.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        struct Both {
            /// Replies by code.
            replies: BTreeMap<u16, u64>,
            /// Requests.
            requests: u64,
        }
    }

    #[test]
    fn single_counters_come_before_those_by_code() {
        let both = Both {
            replies: BTreeMap::from([(3, 1), (0, 7)]),
            requests: 8,
        };
        let rows = both.rows();
        let rows: Vec<_> = rows.iter().map(|(name, n)| (name.as_str(), *n)).collect();
        assert_eq!(
            rows,
            [("requests", 8), ("replies[0]", 7), ("replies[3]", 1)]
        );
    }

    #[test]
    fn sums_are_by_code_and_stay_at_the_largest_number() {
        let mut sum = Both {
            replies: BTreeMap::from([(3, 1)]),
            requests: u64::MAX,
        };
        sum.add(&Both {
            replies: BTreeMap::from([(3, 2), (4, 5)]),
            requests: 1,
        });
        assert_eq!(sum.requests, u64::MAX);
        assert_eq!(sum.replies, BTreeMap::from([(3, 3), (4, 5)]));
    }
}
