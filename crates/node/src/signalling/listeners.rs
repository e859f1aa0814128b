//! The table of listeners.

use super::UserId;
use aerostat_proto::Refused;
use aerostat_wire::{AtmAddress, Bhli, Blli, Sap};
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug)]
struct Listener {
    user: UserId,
    max_sdu: u16,
}

/// A listener, for display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listening {
    /// The address at which it can be called.
    pub address: AtmAddress,
    /// The SAP that a call must have.
    pub sap: Sap,
    /// The user who listens.
    pub user: UserId,
}

/// Listeners by address and SAP; each has exactly one user.
#[derive(Debug, Default)]
pub(super) struct Listeners(BTreeMap<(AtmAddress, Sap), Listener>);

impl Listeners {
    pub(super) fn add(
        &mut self,
        user: UserId,
        at: (AtmAddress, Sap),
        max_sdu: u16,
        limit: usize,
    ) -> Result<(), Refused> {
        if self.0.values().filter(|l| l.user == user).count() >= limit {
            return Err(Refused("too many listeners"));
        }
        if self.0.get(&at).is_some_and(|l| l.user != user) {
            return Err(Refused("another user listens there"));
        }
        self.0.insert(at, Listener { user, max_sdu });
        Ok(())
    }

    pub(super) fn remove(&mut self, user: UserId, at: (AtmAddress, Sap)) -> Result<(), Refused> {
        if !self.is_of(user, at) {
            return Err(Refused("this user does not listen there"));
        }
        self.0.remove(&at);
        Ok(())
    }

    pub(super) fn drop_user(&mut self, user: UserId) {
        self.0.retain(|_, listener| listener.user != user);
    }

    /// True if this user listens at this address with this SAP.
    pub(super) fn is_of(&self, user: UserId, at: (AtmAddress, Sap)) -> bool {
        self.0.get(&at).is_some_and(|l| l.user == user)
    }

    /// True if somebody listens at this address.
    pub(super) fn has(&self, address: AtmAddress) -> bool {
        let mut from = self.0.range((address, Sap::ANY)..);
        from.next().is_some_and(|((at, _), _)| *at == address)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Listening> + '_ {
        self.0.iter().map(|((address, sap), listener)| Listening {
            address: *address,
            sap: *sap,
            user: listener.user,
        })
    }

    /// The listener for a call, and the SAP that matched. Of several matching listeners the most specific one gets the
    /// call.
    pub(super) fn find(
        &self,
        called: AtmAddress,
        bllis: Vec<Blli>,
        offered: Option<Bhli>,
        longest: u16,
    ) -> Option<(UserId, Sap)> {
        for blli in bllis.into_iter().map(Some).chain([None]) {
            for bhli in [offered, None] {
                let sap = Sap { blli, bhli };
                if let Some(listener) = self.0.get(&(called, sap))
                    && longest <= listener.max_sdu
                {
                    return Some((listener.user, sap));
                }
            }
        }
        None
    }
}
