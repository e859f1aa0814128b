//! The event queue: earliest first, and in order of insertion among those of one instant.

use aerostat_proto::Instant;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

#[derive(Clone, Copy, Debug)]
struct Entry<T> {
    at: Instant,
    number: u64,
    event: T,
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl<T> Eq for Entry<T> {}
impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<T> Ord for Entry<T> {
    /// Reversed: the heap's greatest is the earliest.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

/// Events of type `T` in virtual time.
#[derive(Clone, Debug)]
pub struct EventQueue<T> {
    heap: BinaryHeap<Entry<T>>,
    inserted: u64,
}

impl<T> Default for EventQueue<T> {
    fn default() -> Self {
        Self {
            heap: BinaryHeap::new(),
            inserted: 0,
        }
    }
}

impl<T> EventQueue<T> {
    /// Adds an event.
    pub fn push(&mut self, at: Instant, event: T) {
        self.inserted += 1;
        self.heap.push(Entry {
            at,
            number: self.inserted,
            event,
        });
    }
    /// Time of the next event.
    #[must_use]
    pub fn next_at(&self) -> Option<Instant> {
        self.heap.peek().map(|entry| entry.at)
    }
    /// Takes the next event, if it is due at `until`.
    pub fn pop_due(&mut self, until: Instant) -> Option<(Instant, T)> {
        if self.next_at()? > until {
            return None;
        }
        self.heap.pop().map(|entry| (entry.at, entry.event))
    }
    /// Events that wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.heap.len()
    }
    /// True if none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
    /// Events added so far.
    #[must_use]
    pub const fn inserted(&self) -> u64 {
        self.inserted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_then_insertion() {
        let mut queue = EventQueue::default();
        for (at, event) in [(5, 'c'), (3, 'a'), (5, 'd'), (3, 'b'), (9, 'e')] {
            queue.push(Instant::from_nanos(at), event);
        }
        let due = Instant::from_nanos(5);
        let got: String = std::iter::from_fn(|| queue.pop_due(due))
            .map(|e| e.1)
            .collect();
        assert_eq!(got, "abcd");
        assert_eq!(
            (queue.len(), queue.next_at()),
            (1, Some(Instant::from_nanos(9)))
        );
    }
}
