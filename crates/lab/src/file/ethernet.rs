//! The Ethernet behind a host that bridges: `ethernet:` and `vlans:` of a host.

use super::{Duplex, EthernetRate, Name};
use crate::field::{At, Table, scalar, section};
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
        /// Rate, 10Mbps, 100Mbps or 1Gbps; default 10Mbps.
        rate: Option<At<EthernetRate>>,
        /// Each frame on the cable has a VLAN tag of 4 octets; default false.
        tag: Option<At<bool>>,
        /// Ports of the bridge, each with a cable of its own; rate and tag above are then their defaults. Default: one
        /// cable that all share.
        ports: Option<Table<Name, PortFile>>,
    }
}
section! {
    /// An Ethernet, full duplex, whose frames carry cells.
    FramesFile {
        /// Rate, 10Mbps, 100Mbps or 1Gbps; default 10Mbps.
        rate: Option<At<EthernetRate>>,
        /// At most so many cells in a frame, 1 to 172; default 28, which fit an MTU of 1500.
        cells: Option<At<u64>>,
    }
}
section! {
    /// An Ethernet port of a host that bridges.
    PortFile {
        /// The hosts of `bridge:` on its cable.
        stations: Vec<At<String>>,
        /// Rate, 10Mbps, 100Mbps or 1Gbps.
        rate: Option<At<EthernetRate>>,
        /// Each frame on the cable has a VLAN tag of 4 octets.
        tag: Option<At<bool>>,
        /// full: the two directions do not wait for each other; half; default: full with one station, half with more.
        duplex: Option<At<Duplex>>,
        /// Frames that wait for the cable at most, in each direction, 1 to 65536; default 512.
        queue: Option<At<u64>>,
        /// VLAN of frames without a tag: that of an access port, or the native one of a trunk.
        vlan: Option<At<Vid>>,
        /// VLANs whose frames have a tag on this cable.
        trunk: Option<Vec<At<Vid>>>,
    }
}
