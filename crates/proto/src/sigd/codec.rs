//! The messages as octets, in the form of [`codec`](crate::split::codec).

use super::{FromSigd, LinkInfo, Offer, Setup, Start, ToSigd};
use crate::sscop::Mode;
use crate::uni::{CallId, Limits, Params as UniParams, Side, Version};
use crate::{saal, split_choice, split_record, split_wrapped};
use aerostat_wire::AalType;

split_wrapped!(CallId);
split_record!(Start {
    life,
    uni,
    sscop,
    restart_wait,
    reestablish
});
split_record!(UniParams {
    side,
    version,
    timers,
    limits,
    passes_along,
    location
});
split_record!(Limits {
    calls,
    parties,
    restarts,
    max_vpi
});
split_record!(Setup {
    call,
    calling,
    called,
    sap,
    qos,
    multipoint,
    aal,
    data
});
split_record!(Offer {
    call,
    calling,
    called,
    bllis,
    bhli,
    qos,
    multipoint,
    aal,
    vc,
    data
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

split_choice!(AalType { 1 Aal5; 2 Aal0; });
split_choice!(Version { 1 Uni30; 2 Uni31; 3 Uni40; });
split_choice!(Side { 1 User; 2 Network; });
split_choice!(Mode { 1 Q2110; 2 Qsaal1; 3 Auto; });

use saal::State;
split_choice!(State { 1 Released; 2 AwaitingEstablish; 3 AwaitingRelease; 4 AwaitingResync; 5 Established; });

split_choice!(ToSigd {
    1 Start(start);
    2 Version(version);
    3 Setup(setup);
    4 Accept { call, blli, terms, data };
    5 Refuse { call, cause };
    6 Release { call, cause, data };
    7 AddParty { call, party, called, data };
    8 DropParty { call, party };
    9 Join { call };
});

split_choice!(FromSigd {
    1 Begun { life };
    2 Link { up };
    3 Offered(offer);
    4 Connected { call, vc, qos, data };
    5 Clearing { call, cause, data };
    6 Released { call, cause, data };
    7 PartyAdded { call, party, data };
    8 PartyGone { call, party, cause, data };
    9 Status(link);
    10 Ending;
    11 Again;
    12 Join { call };
});
