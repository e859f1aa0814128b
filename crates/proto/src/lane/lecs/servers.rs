//! Choice of the LES that serves an ELAN with several LESs.

use super::Elan;
use crate::ConnId;
use aerostat_wire::AtmAddress;
use std::collections::BTreeMap;

/// State of the LESs of all ELANs, by number of the ELAN.
///
/// Bounded: only LESs of the table of ELANs get in.
#[derive(Debug, Default)]
pub(super) struct Servers {
    /// LESs that report, and on which connection.
    reporting: BTreeMap<(usize, AtmAddress), ConnId>,
    /// The LES that clients were sent to.
    chosen: BTreeMap<usize, AtmAddress>,
}

impl Servers {
    /// A LES reports.
    pub(super) fn reported(&mut self, elan: usize, les: AtmAddress, conn: ConnId) {
        self.reporting.insert((elan, les), conn);
    }

    /// The LES for clients now: the LES chosen before while it reports, else the first that reports, else the first of
    /// the table.
    pub(super) fn serving(&self, number: usize, elan: &Elan) -> AtmAddress {
        let reports = |les: &AtmAddress| self.reporting.contains_key(&(number, *les));
        let chosen = self.chosen.get(&number).copied().filter(reports);
        chosen
            .or_else(|| elan.servers().find(reports))
            .unwrap_or(elan.les)
    }

    /// The same, for a client that is sent to this LES: the choice is kept from now on.
    pub(super) fn assign(&mut self, number: usize, elan: &Elan) -> AtmAddress {
        let les = self.serving(number, elan);
        if !elan.standby.is_empty() {
            self.chosen.insert(number, les);
        }
        les
    }

    /// A connection is gone; returns the LES that takes over because of that.
    pub(super) fn lost(&mut self, number: usize, elan: &Elan, conn: ConnId) -> Option<AtmAddress> {
        let gone = |known: &ConnId| *known == conn;
        let les = elan
            .servers()
            .find(|les| self.reporting.get(&(number, *les)).is_some_and(gone))?;
        self.reporting.remove(&(number, les));
        if self.chosen.get(&number) != Some(&les) {
            return None;
        }
        let next = self.serving(number, elan);
        self.chosen.insert(number, next);
        (next != les).then_some(next)
    }
}
