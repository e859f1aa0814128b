//! The encoding of the messages: see [`crate::split::codec`].

use super::{FromLecd, Role, ToLecd};
use super::{ToControl, ToData};
use crate::lane::lec::{ArpStatus, LecState, News};
use crate::split::codec::{DecodeError, Field, Reader};
use crate::{split_choice, split_record, split_wrapped};
use aerostat_wire::lane::{ElanName, LanType, MaxFrameSize, Tlv, TlvType};

/// Its octets, with their number before them.
impl Field for ElanName {
    fn put(&self, to: &mut Vec<u8>) {
        let name = self.as_bytes();
        (name.len() as u8).put(to);
        to.extend(name);
    }
    fn take(from: &mut Reader<'_>, name: &'static str) -> Result<Self, DecodeError> {
        let at = from.offset();
        let length = from.u8(name)?;
        let octets = from.take(name, length.into())?;
        Self::from_octets(octets).ok_or(DecodeError::value(name, at, length.into()))
    }
}

split_wrapped!(LanType, MaxFrameSize, TlvType);

split_choice!(LecState {
    0 Stopped;
    1 Initial;
    2 LecsConnect;
    3 Configure;
    4 Join;
    5 InitialRegistration;
    6 BusConnect;
    7 Operational;
});
split_choice!(ArpStatus { 1 Unknown; 2 ArpPending; 3 VcPending; 4 FlushPending; 5 ForwardDirect; });
split_choice!(Role {
    1 ConfigDirect;
    2 ControlDirect;
    3 Distribute;
    4 MulticastSend;
    5 MulticastForward;
    6 DataDirect;
    7 SelectiveSend;
});

split_record!(Tlv { kind, value });

split_choice!(ToData {
    1 Joined { lecid, max_sdu };
    2 Quota { count, time };
    3 Bus(conn);
    4 Open { conn, idle, mux };
    5 Close(conn);
    6 Switch { mac, to, fresh };
    7 Proceed { mac, to };
    8 Unresolved { mac, asked };
    9 Forget(mac);
    10 AskUse(mac);
    11 Reset;
});
split_choice!(ToControl {
    1 Resolve(mac);
    2 Control { conn, sdu };
    3 Heard { mac, conn };
    4 Idle(conn);
    5 Switched { mac, to };
    6 MustFlush { mac, to, via, ago };
    7 Unwanted(mac);
    8 Use { mac, ago };
});
split_choice!(ToLecd {
    1 Start { config, transaction, conn };
    2 Conn(conn);
    3 Entry(entry);
    4 Go(standing);
    5 Stop;
    6 Data(message);
    8 SetTlvs(tlvs);
    9 SetRemote(macs);
    10 TopologyChange(on);
    11 Resolve(mac);
    12 SetGroups(macs);
});
split_choice!(News {
    1 Associate { mac, atm, tlvs };
    2 Dissociate { mac };
    3 RemoteMoved { mac };
    4 Resolved { mac, owner };
    5 Joined { lecid, elan, max_frame, elan_id, tlvs };
    6 Left;
});
split_choice!(FromLecd {
    1 Data(message);
    2 News(news);
    14 Counted(counters);
    15 Standing(standing);
    16 Conn(conn);
    17 ConnGone(conn);
    18 Entry(entry);
    19 EntryGone(mac);
});
