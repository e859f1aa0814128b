//! The encoding of the messages: see [`crate::split::codec`]. Names, sizes and TLVs are in `lec/split`.

use super::{FromServer, ServerConfig, ServerSnapshot, ToServer};
use crate::lane::lecs::Criterion;
use crate::split_choice;

split_choice!(Criterion { 1 Name; 2 Address; 3 Mac; 4 LanType; 5 FrameSize; });
split_choice!(ServerConfig { 1 Lecs(config); 2 Les(config); 3 Bus(config); });
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
