//! The data of each client that a LES sends to its BUS.

use aerostat_wire::MacAddr;

crate::split_record! {
    /// A client that has joined.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Member {
        /// Its LECID.
        pub lecid: u16,
        /// The group addresses whose frames the client wants, besides broadcast; `None`: all groups.
        pub groups: Option<Vec<MacAddr>>,
        /// The unicast addresses that the client registered at the ATM address with which it joined, if it must
        /// register all its addresses. `None`: the client may have other addresses, too, because it is a proxy or
        /// joined without an address.
        pub macs: Option<Vec<MacAddr>>,
    }
}

impl Member {
    /// Length of the longer list, for the comparison with the bound on registrations.
    #[must_use]
    pub fn most(&self) -> usize {
        let lists = [&self.groups, &self.macs];
        let lengths = lists.map(|list| list.as_ref().map_or(0, Vec::len));
        lengths.into_iter().max().unwrap_or_default()
    }
}
