//! Results that an entity takes over from a former one at the same end of the same link.
//!
//! When a daemon dies, its successor starts ILMI again, and the owner keeps the results meanwhile: no message has said
//! that they are wrong. The successor confirms the addresses that are registered again. It withdraws the others when
//! the other side is lost, is another system or starts anew, when the line goes down, and at the latest after twice the
//! time in which an unanswered request makes the other side count as lost: once to establish contact, once to register.

use super::{Config, Event, Ime, Output};
use crate::Instant;
use aerostat_wire::AtmAddress;
use std::collections::BTreeSet;

/// Numbers of requests between two entities: a late response to the former entity is no response to this one.
const IDS: i32 = 1 << 16;

/// Results of a former entity.
#[derive(Debug)]
pub(super) struct Former {
    /// Addresses that are not confirmed yet.
    addresses: BTreeSet<AtmAddress>,
    /// When they are withdrawn; `None` before this entity starts.
    pub(super) until: Option<Instant>,
}

impl Ime {
    /// The entity that follows `before` others at this end. `addresses` are those that the last of them has left, if it
    /// had found the other side.
    #[must_use]
    pub fn successor(config: Config, before: u32, addresses: Option<Vec<AtmAddress>>) -> Self {
        let former = addresses.map(|addresses| Former {
            addresses: addresses.into_iter().collect(),
            until: None,
        });
        Self {
            next_id: (before as i32).wrapping_mul(IDS) & 0x7fff_ffff,
            former,
            ..Self::new(config)
        }
    }

    /// The entity starts: from now on the time of what a former one has left is limited.
    pub(super) fn succeed(&mut self, now: Instant) {
        if let Some(former) = &mut self.former {
            let params = self.config.params;
            former.until = Some(
                now + params
                    .response
                    .saturating_mul(params.tries.saturating_mul(2)),
            );
        }
    }

    /// An address is registered again.
    pub(super) fn confirmed(&mut self, address: AtmAddress) {
        if let Some(former) = &mut self.former {
            former.addresses.remove(&address);
        }
    }

    /// Withdraws what is not confirmed; true if there was a former entity.
    pub(super) fn give_up_former(&mut self) -> bool {
        let Some(former) = self.former.take() else {
            return false;
        };
        for address in former.addresses {
            self.tell_address(address, false);
        }
        true
    }

    pub(super) fn expire_former(&mut self, now: Instant) {
        let until = self.former.as_ref().and_then(|former| former.until);
        if until.is_some_and(|at| at <= now) {
            self.give_up_former();
            if self.version.is_none() {
                self.out.push_back(Output::Event(Event::Down));
            }
        }
    }
}
