//! The messages as octets, in the form of [`codec`](crate::split::codec).

use super::split::{FromIlmid, ToIlmid};
use super::{Link, NniSignalling, PvcStatus, Side, State};
use crate::split_choice;

split_choice!(Side { 1 Network; 2 User; });
split_choice!(NniSignalling { 1 None; 2 Iisp; 3 Pnni; });
split_choice!(Link { 1 Uni(side); 2 Iisp(side); 3 Pnni; 4 Hosts; });
split_choice!(State { 1 Stopped; 2 Establishing; 3 Configuring; 4 Registering; 5 Verifying; });
split_choice!(PvcStatus { 1 Unknown; 2 EndToEndUp; 3 EndToEndDown; 4 LocalUp; 5 LocalDown; });

split_choice!(ToIlmid {
    1 Start(start);
    2 Prefixes(prefixes);
    3 Pvcs { pvcs, more };
    4 Claimed { claim, refused };
    5 Esis(esis);
});

split_choice!(FromIlmid {
    1 Begun { life };
    2 Up { version };
    3 Link(link);
    4 Down;
    5 Claim { claim, addresses };
    6 Withdrawn(address);
    7 Address { address, usable };
    8 Services(services);
    9 Shown(snapshot);
    10 Again;
});
