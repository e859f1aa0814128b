//! Addresses that programs add to the interface of the host (`atmaddr -a`).
//!
//! Programs may listen at an added address with every selector, and call from there. With ILMI the host registers it
//! with its switch, under the prefixes that the switch has assigned, and can be called there by others then; without
//! ILMI the network does not know it, and only programs of the same host can call it. The addresses of the lab file
//! stay.

use super::requests::{Result, failure};
use super::{Errno, Failure, Output, SocketLayer};
use aerostat_proto::socket::{ADDED, Answer, Change};
use aerostat_wire::AtmAddress;

impl SocketLayer {
    /// A program changes the addresses of the host.
    pub(super) fn change_addresses(&mut self, change: Change, text: &str) -> Result {
        match change {
            Change::Add => self.add_address(text)?,
            Change::Remove => {
                let address = parsed(text)?;
                if !self.added.remove(&address) {
                    let text = "no program has added this address";
                    return Err(failure(Errno::NoEntry, "address", text));
                }
            }
            Change::Reset => self.added.clear(),
        }
        let all = self.added.iter().copied().collect();
        self.out.push_back(Output::Addresses(all));
        Ok(Some(Answer::Done))
    }

    fn add_address(&mut self, text: &str) -> core::result::Result<(), Failure> {
        let address = parsed(text)?;
        if address == self.config.address || self.added.contains(&address) {
            let text = "the host has this address already";
            return Err(failure(Errno::Exists, "address", text));
        }
        if address.esi().is_group() || address.esi().0 == [0; 6] {
            let text = "the end system identifier (octets 14 to 19) is a group's, or 0";
            return Err(failure(Errno::Invalid, "address", text));
        }
        if self.added.len() >= ADDED {
            let text = format!("programs have added {ADDED} addresses, which is the limit");
            return Err(failure(Errno::NoMemory, "", text));
        }
        self.added.insert(address);
        Ok(())
    }

    /// True if a program has added this address; its selector does not count.
    pub(super) fn is_added(&self, address: AtmAddress) -> bool {
        self.added.contains(&address.with_selector(0))
    }

    /// The addresses that programs have added, with selector 0.
    pub(in crate::host) fn added(&self) -> impl Iterator<Item = AtmAddress> + '_ {
        self.added.iter().copied()
    }
}

/// An address with selector 0.
fn parsed(text: &str) -> core::result::Result<AtmAddress, Failure> {
    let parsed = text.parse::<AtmAddress>();
    let address = parsed.map_err(|e| failure(Errno::Invalid, "address", e.to_string()))?;
    Ok(address.with_selector(0))
}
