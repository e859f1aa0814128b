//! Section about ATM lines.

use super::clip::LEAST_MTU;
use super::{EncapsulationText, Net, QosText};
use crate::field::{At, section};

section! {
    /// An ATM line, as an IP subnet. Its one or two stations join it like an ELAN, by its name.
    LineFile {
        /// The IP subnet.
        subnet: At<Net>;
        /// Encapsulation of frames (bridged) or packets; PPP is static, without LCP and without discovery.
        encapsulation: EncapsulationText = "bridged-llcsnap";
        /// Largest IP packet; default: 1500, with PPPoE 1492.
        mtu: u64, LEAST_MTU..=9180;
        /// The station that calls the other one; default: a permanent connection has the line.
        calls: Option<At<String>>;
        /// With calls: traffic in the words of linux-atm's qos(7), tx from the caller; default: best effort.
        qos: Option<At<QosText>>;
    }
}
