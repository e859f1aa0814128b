//! Numbers of nodes and ELANs in the [address plan](crate::plan).
//!
//! In a file by itself they follow its order. In a file for a lab that runs, what the lab knows keeps its number, so
//! that no address changes because something else was added or removed; what is new has the first numbers that are
//! new to the lab.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Numbers by name, each from 1.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Numbers {
    /// Of switches.
    pub switches: Names,
    /// Of routers.
    pub routers: Names,
    /// Of hosts.
    pub hosts: Names,
    /// Of ELANs: their ELAN-IDs.
    pub elans: Names,
    /// Of the ELANs that the lab itself serves: the selectors of their servers.
    pub served: Names,
}

/// Numbers of one kind by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Names(BTreeMap<String, u16>);

impl Names {
    /// The number of a name; 0 if it has none.
    #[must_use]
    pub fn of(&self, name: &str) -> u16 {
        self.0.get(name).copied().unwrap_or_default()
    }

    /// Gives a number to each name that has none, in this order.
    pub(crate) fn give<'a>(&mut self, names: impl IntoIterator<Item = &'a str>) {
        let mut taken: BTreeSet<u16> = self.0.values().copied().collect();
        let mut next: u16 = 1;
        for name in names {
            if self.0.contains_key(name) {
                continue;
            }
            while taken.contains(&next) && next < u16::MAX {
                next += 1;
            }
            taken.insert(next);
            self.0.insert(name.to_owned(), next);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_numbers_and_new_ones_get_new_numbers() {
        let mut names = Names::default();
        names.give(["a", "b", "c"]);
        assert_eq!(
            ["a", "b", "c", "d"].map(|name| names.of(name)),
            [1, 2, 3, 0]
        );
        names.give(["d", "c"]);
        assert_eq!(
            ["a", "b", "c", "d"].map(|name| names.of(name)),
            [1, 2, 3, 4]
        );
    }
}
