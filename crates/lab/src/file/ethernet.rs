//! The Ethernet behind a host that bridges: `ethernet:` and `vlans:` of a host.

use super::{Duplex, EthernetRate, Name};
use crate::field::{At, Table, scalar, section};
use aerostat_node::host::WAITING;
use aerostat_wire::cell_frame;
use aerostat_wire::vlan::{MAX_VID, MIN_VID};

scalar!(
    /// The identifier of a VLAN (VID).
    Vid(u16), |text: &str| text
        .parse()
        .ok()
        .filter(|vid| (MIN_VID..=MAX_VID).contains(vid))
        .ok_or_else(|| "a VLAN has a number of 1 to 4094".to_owned()),
    { "type": ["string", "integer"], "description": "VID, 1 to 4094" }
);
section! {
    /// The cable of an embedded Ethernet segment.
    CableFile {
        /// Rate, 10Mbps, 100Mbps or 1Gbps.
        rate: EthernetRate = "10Mbps";
        /// Each frame on the cable has a VLAN tag of 4 octets.
        tag: bool = false;
        /// Ports of the bridge, each with a cable of its own; rate and tag above are then their defaults. Default: one
        /// cable that all share.
        ports: Option<Table<Name, PortFile>>;
    }
}
section! {
    /// An Ethernet, full duplex, whose frames carry cells.
    FramesFile {
        /// Rate, 10Mbps, 100Mbps or 1Gbps.
        rate: EthernetRate = "10Mbps";
        /// At most so many cells in a frame. 28 fit an MTU of 1500.
        cells: u64 = 28, 1..=cell_frame::MAX_CELLS;
    }
}
section! {
    /// An Ethernet port of a host that bridges.
    PortFile {
        /// The hosts of `bridge:` on its cable.
        stations: Vec<At<String>>;
        /// Rate, 10Mbps, 100Mbps or 1Gbps.
        rate: Option<At<EthernetRate>>;
        /// Each frame on the cable has a VLAN tag of 4 octets.
        tag: Option<At<bool>>;
        /// full: the two directions do not wait for each other; half; default: full with one station, half with more.
        duplex: Option<At<Duplex>>;
        /// Frames that wait for the cable at most, in each direction.
        queue: u64 = WAITING, 1..=65_536;
        /// VLAN of frames without a tag: that of an access port, or the native one of a trunk.
        vlan: Option<At<Vid>>;
        /// VLANs whose frames have a tag on this cable.
        trunk: Option<Vec<At<Vid>>>;
    }
}
