//! Names of the rows of a table that may have changed since a reader looked last.
//!
//! A reader of a large table, such as the stream of events of a run, must not compare all rows for each change of one.

/// Limit of names; beyond it all rows count as changed.
pub const MOST: usize = 4096;

/// Rows that may have changed.
///
/// Reading is optional: without a reader it names all rows, and needs no memory. To note a row costs no more than to
/// write it down, because calls come and go much more often than somebody looks: names that were noted several times
/// are found when there are twice as many as the limit, and when they are taken.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Changes<K> {
    /// Any row.
    #[default]
    All,
    /// These rows; a row may also be unchanged, or gone. After [`Self::take`] each is there once, in its order.
    These(Vec<K>),
}

impl<K: Ord> Changes<K> {
    /// Records that a row may have changed, or is gone.
    pub fn note(&mut self, row: K) {
        let Self::These(rows) = self else {
            return;
        };
        if rows.last() != Some(&row) {
            rows.push(row);
        }
        if rows.len() > 2 * MOST {
            self.tidy();
        }
    }

    /// Names each row once, or all rows if these are too many.
    fn tidy(&mut self) {
        if let Self::These(rows) = self {
            rows.sort_unstable();
            rows.dedup();
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
        self.tidy();
        std::mem::replace(self, Self::These(Vec::new()))
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
        assert_eq!(changes.take(), Changes::These(vec![0, 1, 2]));
        assert_eq!(changes.take(), Changes::These(vec![]));
        (0..=MOST).for_each(|row| changes.note(row));
        assert_eq!(changes.take(), Changes::All);
        (0..=2 * MOST).for_each(|row| changes.note(row));
        assert_eq!(changes, Changes::All);
        let _ = changes.take();
        // The same rows again and again are no more than they are.
        (0..10 * MOST).for_each(|number| changes.note(number % MOST));
        let Changes::These(rows) = changes.take() else {
            panic!("{MOST} rows are within the limit");
        };
        assert!(rows.into_iter().eq(0..MOST));
    }
}
