//! Names of the rows of a table that may have changed since a reader looked last.
//!
//! A reader of a large table, such as the stream of events of a run, must not compare all rows for each change of one.

use std::collections::BTreeSet;

/// Limit of names; beyond it all rows count as changed.
pub const MOST: usize = 4096;

/// Rows that may have changed.
///
/// Reading is optional: without a reader it names all rows, and needs no memory.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Changes<K> {
    /// Any row.
    #[default]
    All,
    /// These rows; a row may also be unchanged, or gone.
    These(BTreeSet<K>),
}

impl<K: Ord> Changes<K> {
    /// Records that a row may have changed, or is gone.
    pub fn note(&mut self, row: K) {
        if let Self::These(rows) = self {
            rows.insert(row);
            if rows.len() > MOST {
                *self = Self::All;
            }
        }
    }

    /// Records that any row may have changed.
    pub fn note_all(&mut self) {
        *self = Self::All;
    }

    /// True if no row has changed since the last [`Self::take`].
    #[must_use]
    pub fn is_empty(&self) -> bool {
        matches!(self, Self::These(rows) if rows.is_empty())
    }

    /// The changes since the last call; [`Self::All`] at the first call.
    #[must_use]
    pub fn take(&mut self) -> Self {
        std::mem::replace(self, Self::These(BTreeSet::new()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_gets_each_row_once_and_too_many_rows_are_all() {
        let mut changes = Changes::default();
        changes.note(1);
        assert_eq!(changes.take(), Changes::All);
        assert!(changes.is_empty());
        (0..3).chain(0..3).for_each(|row| changes.note(row));
        assert_eq!(changes.take(), Changes::These([0, 1, 2].into()));
        assert_eq!(changes.take(), Changes::These([].into()));
        (0..=MOST).for_each(|row| changes.note(row));
        assert_eq!(changes, Changes::All);
    }
}
