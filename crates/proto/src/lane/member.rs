//! What a LES tells its BUS of each client.

use aerostat_wire::MacAddr;

/// A client that has joined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Member {
    /// Its LECID.
    pub lecid: u16,
    /// The group addresses of which it wants frames, besides broadcast; `None`: all.
    pub groups: Option<Vec<MacAddr>>,
    /// The unicast addresses that it registered at the ATM address with which it joined, if it must register all that it
    /// has. `None`: it may have others too, because it is a proxy or joined without an address.
    pub macs: Option<Vec<MacAddr>>,
}

impl Member {
    /// Addresses of the longer list: what a bound on registrations is compared with.
    #[must_use]
    pub fn most(&self) -> usize {
        let lists = [&self.groups, &self.macs];
        let lengths = lists.map(|list| list.as_ref().map_or(0, Vec::len));
        lengths.into_iter().max().unwrap_or_default()
    }
}
