//! New octets of a TCP stream.

use std::collections::BTreeMap;

/// Limit of remembered gaps in a received TCP stream.
const MAX_HOLES: usize = 256;
/// A larger jump in TCP sequence numbers means another connection.
const NEW_CONNECTION: u32 = 1 << 28;

/// Limit of connections of a flow that are remembered; segments of an older one count as those of a new connection.
const MAX_CONNECTIONS: usize = 4;

/// The streams of a flow: one for each connection, by source port, the latest connection last.
#[derive(Clone, Debug, Default)]
pub(super) struct Streams(Vec<(u16, Stream)>);

impl Streams {
    /// The stream of the connection from this port.
    pub(super) fn of(&mut self, port: u16) -> &mut Stream {
        let known = self.0.iter().position(|(of, _)| *of == port);
        let at = known.unwrap_or_else(|| {
            if self.0.len() == MAX_CONNECTIONS {
                self.0.remove(0);
            }
            self.0.push((port, Stream::default()));
            self.0.len() - 1
        });
        &mut self.0[at].1
    }
}

/// The octets of a TCP stream that have been seen.
#[derive(Clone, Debug, Default)]
pub(super) struct Stream {
    /// All octets below this number have been seen; the numbers do not wrap. `None` before the first segment.
    next: Option<u64>,
    /// Ranges seen beyond `next`: start → end, with gaps between them.
    beyond: BTreeMap<u64, u64>,
}

impl Stream {
    /// Marks a segment as seen; returns how many of its octets are new.
    pub(super) fn take(&mut self, sequence: u32, length: u32) -> u64 {
        // There is room below the first octet, so that numbers of octets before it stay positive.
        let base = self.next.unwrap_or(u64::from(sequence) + (1 << 33));
        let ahead = sequence.wrapping_sub(base as u32) as i32;
        if ahead.unsigned_abs() > NEW_CONNECTION {
            *self = Self::default();
            return self.take(sequence, length);
        }
        let next = base;
        let start = base.saturating_add_signed(i64::from(ahead));
        let end = start + u64::from(length);
        let mut new = end.saturating_sub(start.max(next));
        let (mut from, mut to) = (start.max(next), end.max(next));
        // Merge ranges that touch or overlap. The ranges have gaps between them, so walk down from the end.
        while let Some((&s, &e)) = self.beyond.range(..=to).next_back() {
            if e < from {
                break;
            }
            new -= e.min(end).saturating_sub(s.max(start.max(next)));
            from = from.min(s);
            to = to.max(e);
            self.beyond.remove(&s);
        }
        if from <= next {
            self.next = Some(to);
        } else {
            self.next = Some(next);
            self.beyond.insert(from, to);
        }
        if self.beyond.len() > MAX_HOLES
            && let Some((_, end)) = self.beyond.pop_first()
        {
            self.next = Some(end);
        }
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_count_new_octets_across_the_wrap() {
        let mut stream = Stream::default();
        let start = u32::MAX - 150;
        assert_eq!(stream.take(start, 100), 100);
        assert_eq!(
            stream.take(start.wrapping_add(200), 100),
            100,
            "after a hole"
        );
        assert_eq!(
            stream.take(start.wrapping_add(400), 100),
            100,
            "after another"
        );
        assert_eq!(stream.take(start, 100), 0, "again");
        assert_eq!(stream.take(start.wrapping_add(50), 400), 200, "both holes");
        assert_eq!(stream.take(start.wrapping_add(500), 10), 10);
        assert_eq!(stream.next, Some(u64::from(start) + (1 << 33) + 510));
        assert!(stream.beyond.is_empty());
        assert_eq!(
            stream.take(start.wrapping_add(1 << 30), 5),
            5,
            "another connection"
        );
    }

    #[test]
    fn connections_of_a_flow_have_streams_of_their_own() {
        let mut streams = Streams::default();
        assert_eq!(streams.of(1).take(1000, 100), 100);
        assert_eq!(streams.of(2).take(1050, 100), 100, "near, but another one");
        assert_eq!(streams.of(1).take(1050, 100), 50, "the first goes on");
        for port in 3..=5 {
            assert_eq!(streams.of(port).take(7, 1), 1);
        }
        assert_eq!(streams.of(2).take(1050, 100), 0, "among the latest four");
        assert_eq!(streams.of(1).take(1000, 100), 100, "forgotten");
    }

    proptest::proptest! {
        #[test]
        fn streams_agree_with_a_set_of_octets(
            segments in proptest::collection::vec((0u32..400, 1u32..60), 1..60),
        ) {
            let mut stream = Stream::default();
            let mut octets = std::collections::BTreeSet::new();
            let first = segments[0].0;
            for (start, length) in segments {
                let new = (start..start + length)
                    .filter(|at| *at >= first)
                    .filter(|at| octets.insert(*at))
                    .count();
                assert_eq!(stream.take(start, length), new as u64);
            }
        }
    }
}
