//! User data in calls: what a user says with a request goes into the message of the network, and what the other end
//! says comes before the event that its message leads to.
//!
//! Only an interface of UNI 4.0 carries user data, and so does a call inside the host.

use super::{Signalling, UserId};
use aerostat_proto::uni::{self, CallId};
use aerostat_proto::{AtmEvent, Cause, ConnId, Refused};
use aerostat_wire::AalType;
use aerostat_wire::q2931::UserData;

/// Facility rejected: the link carries no user data. Source: Q.850 §2.2.5.
pub const FACILITY_REJECTED: Cause = Cause(29);

/// AAL parameters cannot be supported. Source: Q.2610; the number of UNI 3.1 and later.
pub(crate) const AAL_UNSUPPORTED: Cause = Cause(78);

/// User data and AAL of a request to the ATM service, beyond what every user has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Along {
    /// User data for the other end, with `Connect`, `AddParty`, `Accept` and `Release`.
    pub data: UserData,
    /// With [`aerostat_proto::AtmRequest::Connect`]: the AAL.
    pub aal: AalType,
}

/// User data and AAL of an event. Only users with calls inside the host get other values than the default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// User data of the other end; empty if it says nothing, `None` if messages about this call carry no user data.
    pub carried: Option<UserData>,
    /// The AAL of the connection.
    pub aal: AalType,
}

/// End of a call or leaf, with the user data of the message that brought it.
pub(super) struct End {
    pub(super) cause: Cause,
    pub(super) data: UserData,
}

impl From<Cause> for End {
    fn from(cause: Cause) -> Self {
        let data = UserData::default();
        Self { cause, data }
    }
}

impl Signalling {
    /// True if messages about such a call carry user data.
    pub(super) fn carries(&self, local: bool) -> bool {
        local || self.version == uni::Version::Uni40
    }

    /// True if a call has user data that its link does not carry. Its user is told.
    pub(super) fn cannot_say(&mut self, call: CallId) -> bool {
        let Some(known) = self.conns.get(&call) else {
            return false;
        };
        let refused = !known.said.is_empty() && !self.carries(known.local.is_some());
        if refused {
            self.gone(call, FACILITY_REJECTED);
        }
        refused
    }

    /// Values that come along with an event about a call, in which the other end says `data`.
    pub(super) fn heard(&self, call: CallId, data: UserData) -> Heard {
        let known = self.conns.get(&call);
        let known = known.filter(|known| {
            known
                .owner
                .is_some_and(|(user, _)| self.sockets == Some(user))
        });
        known.map_or_else(Heard::default, |known| Heard {
            carried: self.carries(known.local.is_some()).then_some(data),
            aal: known.aal,
        })
    }

    /// An answer with user data, on a link that carries none: the offer waits on.
    pub(super) fn may_answer(&self, call: CallId, data: &UserData) -> Result<(), Refused> {
        let known = self.conns.get(&call);
        let local = known.is_some_and(|known| known.local.is_some());
        match data.is_empty() || self.carries(local) {
            true => Ok(()),
            false => Err(Refused("the link carries no user data")),
        }
    }

    /// A call is refused before it exists.
    pub(super) fn refuse_saying(&mut self, user: UserId, conn: ConnId) -> Refused {
        let cause = FACILITY_REJECTED;
        self.event(user, AtmEvent::Released { conn, cause });
        Refused("the link carries no user data")
    }
}
