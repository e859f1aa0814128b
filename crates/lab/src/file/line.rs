//! Section about ATM lines.

use super::clip::LEAST_MTU;
use super::{EncapsulationText, Net, QosText};
use crate::field::{At, section};

section! {
    /// An ATM line: an IP subnet, or a part of a network. Its one or two stations join it like an ELAN, by its name.
    LineFile {
        /// The IP subnet; with `elan` it is that of the network.
        subnet: Option<At<Net>>;
        /// The network of which it is a part: an ELAN, or a bridged line with a subnet. A host bridges between them
        /// (`lines` of a host).
        elan: Option<At<String>>;
        /// Encapsulation of frames (bridged) or packets; PPP is static, without LCP and without discovery.
        encapsulation: EncapsulationText = "bridged-llcsnap";
        /// Largest IP packet; default: 1500, with PPPoE 1492, and with `elan` that of the network.
        mtu: u64, LEAST_MTU..=9180;
        /// The station that calls the other one; default: a permanent connection has the line.
        calls: Option<At<String>>;
        /// With calls: traffic in the words of linux-atm's qos(7), tx from the caller; default: best effort.
        qos: Option<At<QosText>>;
    }
}
