//! User data in calls: what a user says with a request goes into the message of the network, and what the other end
//! says comes before the event that its message leads to.
//!
//! Only an interface of UNI 4.0 carries user data, and so does a call inside the host.

use super::{Output, Signalling, UserId};
use aerostat_proto::sigd::ToSigd;
use aerostat_proto::uni::{self, CallId};
use aerostat_proto::{AtmEvent, Cause, ConnId, Instant, Refused};
use aerostat_wire::AalType;
use aerostat_wire::q2931::UserData;

/// Facility rejected: the link carries no user data. Source: Q.850 §2.2.5.
pub const FACILITY_REJECTED: Cause = Cause(29);

/// AAL parameters cannot be supported. Source: Q.2610; the number of UNI 3.1 and later.
pub(super) const AAL_UNSUPPORTED: Cause = Cause(78);

/// What goes along with a request to the ATM service, beyond what every user has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Beside {
    /// What the user says to the other end.
    pub data: UserData,
    /// With [`aerostat_proto::AtmRequest::Connect`]: the AAL.
    pub aal: AalType,
}

impl Signalling {
    /// What goes along with this user's next request about this connection.
    pub(super) fn says(&mut self, user: UserId, conn: ConnId, beside: Beside) {
        self.said = Some((user, conn, beside));
    }

    /// What goes along with this request.
    pub(super) fn take_said(&mut self, user: UserId, conn: ConnId) -> Beside {
        match self.said.take() {
            Some((from, at, beside)) if (from, at) == (user, conn) => beside,
            _ => Beside::default(),
        }
    }

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

    /// Tells the daemon what the next message about a call says.
    pub(super) fn tell_data(&mut self, call: CallId, data: UserData, now: Instant) {
        if !data.is_empty() {
            self.tell(ToSigd::UserData { call, data }, now);
        }
    }

    /// The other end of a call says this in the message that comes next.
    pub(super) fn hears(&mut self, call: CallId, data: UserData) {
        self.heard = Some((call, data));
    }

    /// What the other end of this call has said.
    pub(super) fn take_heard(&mut self, call: CallId) -> UserData {
        match self.heard.take() {
            Some((from, data)) if from == call => data,
            _ => UserData::default(),
        }
    }

    /// Tells the user of a call what the event that comes next says, and whether it can say something itself. Users
    /// that do not ask for calls inside the host have no user data.
    pub(super) fn show(&mut self, call: CallId, data: UserData) {
        let Some(known) = self.conns.get(&call) else {
            return;
        };
        if let Some((user, conn)) = known.owner.filter(|(user, _)| self.local.contains(user)) {
            let carried = self.carries(known.local.is_some()).then_some(data);
            let aal = known.aal;
            self.outputs.push_back(Output::Beside {
                user,
                conn,
                carried,
                aal,
            });
        }
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
