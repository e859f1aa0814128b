//! Keys of GRE. A station with another key than its hub is not heard, and gets no answer: the kernel of the hub has no
//! interface for its packets. Source: RFC 2890 §2.1.

use crate::book::{Book, Recent};
use std::collections::BTreeMap;

/// Keys of tunnels with NHRP, by sender and receiver.
#[derive(Debug, Default)]
pub(crate) struct GreKeys {
    sent: Recent<(String, String, Option<u32>), ()>,
}

fn shown(key: Option<u32>) -> String {
    key.map_or_else(|| "no GRE key".to_owned(), |key| format!("GRE key {key}"))
}

impl GreKeys {
    /// Takes a packet with NHRP.
    pub(crate) fn sent(&mut self, from: &str, to: &str, key: Option<u32>, book: &Book) {
        let way = (from.to_owned(), to.to_owned(), key);
        self.sent.put(way, (), book);
    }

    /// Notes stations that send to one that answers no station with their key, and others with another key.
    pub(crate) fn end(&self, book: &mut Book) {
        let back = |from: &String, to: &String, key: Option<u32>| {
            self.sent.has(&(to.clone(), from.clone(), key))
        };
        let mut answered: BTreeMap<&String, Option<u32>> = BTreeMap::new();
        for ((from, to, key), ()) in self.sent.iter() {
            if back(from, to, *key) {
                answered.entry(to).or_insert(*key);
            }
        }
        for ((from, to, key), ()) in self.sent.iter() {
            let other = answered.get(to).filter(|other| *other != key);
            let Some(other) = other.filter(|_| !back(from, to, *key)) else {
                continue;
            };
            book.note(format!(
                "{from} sends with {} to {to}, which does not answer, and answers others with {}",
                shown(*key),
                shown(*other)
            ));
        }
    }
}
