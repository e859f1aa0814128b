//! The messages as octets, in the form of [`codec`](crate::split::codec).

use super::{FromSigd, LinkInfo, Start, ToSigd, UserNo};
use crate::split::Random;
use crate::split::codec::{DecodeError, Field, Reader};
use crate::{saal, uni::Version};
use crate::{split_choice, split_record};

impl Field for UserNo {
    fn put(&self, to: &mut Vec<u8>) {
        self.0.put(to);
    }
    fn take(from: &mut Reader<'_>, name: &'static str) -> Result<Self, DecodeError> {
        Field::take(from, name).map(Self)
    }
    fn sample(random: &mut Random) -> Self {
        Self(Field::sample(random))
    }
}

split_record!(Start {
    life,
    version,
    initial_sq,
    wait,
    first_incoming,
    users,
    calls_per_user,
    listeners_per_user,
    parties_per_call
});
split_record!(LinkInfo {
    state,
    outstanding,
    established,
    released,
    retransmitted,
    errors,
    codes
});

split_choice!(Version { 1 Uni30; 2 Uni31; 3 Uni40; });

use saal::State;
split_choice!(State { 1 Released; 2 AwaitingEstablish; 3 AwaitingRelease; 4 AwaitingResync; 5 Established; });

split_choice!(ToSigd {
    1 Start(start);
    2 Line { up };
    3 Version(version);
    4 Signalling(sdu);
    5 AddUser(user);
    6 DropUser(user);
    7 Request { user, request };
});

split_choice!(FromSigd {
    1 Signalling(sdu);
    2 Link { up };
    3 Event { user, event };
    4 Status(link);
    6 Ending;
    7 Again;
    8 Begun { life };
    10 OpenVc { conn, vc, qos };
});
