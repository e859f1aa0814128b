//! Sets of what has news since they were last taken: connections that were touched, and programs that have to run.

/// A set that is filled and then taken as a whole. Most segments touch one connection and wake one program, for which a
/// tree would cost more than the rest of the step.
#[derive(Debug)]
pub(super) struct News<K> {
    all: Vec<K>,
}

impl<K> Default for News<K> {
    fn default() -> Self {
        Self { all: Vec::new() }
    }
}

impl<K: Copy + Ord> News<K> {
    /// Adds a member. One that is added again and again is kept once; others may be kept twice until they are taken.
    pub(super) fn insert(&mut self, key: K) {
        if self.all.last() != Some(&key) {
            self.all.push(key);
        }
    }

    pub(super) fn extend(&mut self, keys: impl IntoIterator<Item = K>) {
        keys.into_iter().for_each(|key| self.insert(key));
    }

    /// The members in order, each once.
    pub(super) fn take(&mut self) -> Vec<K> {
        self.all.sort_unstable();
        self.all.dedup();
        std::mem::take(&mut self.all)
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}
