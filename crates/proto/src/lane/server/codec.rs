//! The encoding of the messages: see [`crate::split::codec`]. Names, sizes and TLVs are in `lec/split`.

use super::{FromServer, ServerConfig, ServerSnapshot, ToServer};
use crate::lane::bus::{BusRow, BusSnapshot};
use crate::lane::lecs::{AddressPattern, Criterion, Elan};
use crate::lane::les::{LesRow, LesSnapshot};
use crate::lane::{BusConfig, LecsConfig, LesConfig, Member};
use crate::{split_choice, split_record};

split_record!(AddressPattern { value, mask });
split_record!(Member {
    lecid,
    groups,
    macs,
});
split_record!(Elan {
    name,
    les,
    standby,
    lan_type,
    max_frame,
    tlvs,
    members,
    macs,
});
split_choice!(Criterion { 1 Name; 2 Address; 3 Mac; 4 LanType; 5 FrameSize; });
split_record!(LecsConfig {
    address,
    well_known,
    elans,
    policies,
    default,
    params,
});
split_record!(LesConfig {
    elan,
    address,
    bus,
    lan_type,
    max_frame,
    v2,
    elan_id,
    lecs,
    params,
});
split_record!(BusConfig {
    elan,
    address,
    max_frame,
    params,
});
split_choice!(ServerConfig { 1 Lecs(config); 2 Les(config); 3 Bus(config); });
split_record!(LesRow {
    lecid,
    address,
    state,
    proxy,
    v2,
    copy,
    macs,
    groups,
    vc,
});
split_record!(LesSnapshot {
    elan,
    address,
    bus,
    clients,
    counters,
});
split_record!(BusRow {
    lecid,
    address,
    vc,
    forward,
    copy,
    dropped,
});
split_record!(BusSnapshot {
    elan,
    address,
    members,
    clients,
    groups,
    counters,
});
split_choice!(ServerSnapshot { 1 Les(les); 2 Bus(bus); });
split_choice!(ToServer {
    1 Start(config);
    2 Stop;
    3 Member { address, member };
    4 Elan(elan);
});
split_choice!(FromServer {
    1 Member { address, member };
    2 Shown(seen);
    3 Reaches { address, reached };
});
