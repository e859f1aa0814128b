//! The kind of link that two ends form, and which end is the network side.

use super::{Config, Peer, Side};

/// Kind of a link, which follows from the device types of both ends. Source: af-ilmi-0065.000 clause 8.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// A host and a switch. The value is this end's side of the UNI.
    Uni(Side),
    /// Two switches of which at least one does not support PNNI. The value is this end's side in signalling.
    Iisp(Side),
    /// Two switches that support PNNI.
    Pnni,
    /// Two hosts: neither is the network side.
    Hosts,
}

/// Signalling of a switch towards another switch. Source: `atmfAtmLayerNniSigVersion`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NniSignalling {
    /// No signalling.
    None,
    /// IISP.
    Iisp,
    /// PNNI 1.0.
    Pnni,
}

impl NniSignalling {
    /// The number of the object.
    pub(super) const fn number(self) -> i32 {
        match self {
            Self::None => 1,
            Self::Iisp => 2,
            Self::Pnni => 3,
        }
    }
}

impl Link {
    /// The link between an end with `config` and `peer`. A peer without a device type counts as the missing
    /// counterpart, because ends from before ILMI 4.0 have no such object. Of two switches, the one with the greater
    /// identifier of system and port has the network side; both ends come to this result independently.
    pub(super) fn between(config: &Config, peer: &Peer) -> Self {
        let node = config.side == Side::Network;
        match (node, peer.device) {
            (false, Some(1)) => Self::Hosts,
            (true, Some(2)) => {
                let pnni = NniSignalling::Pnni;
                if config.nni == pnni && peer.nni == Some(pnni.number()) {
                    return Self::Pnni;
                }
                let own = (config.system.0.as_slice(), config.number);
                let other = peer.system.as_deref().unwrap_or_default();
                let other = (other, peer.number.unwrap_or(0));
                Self::Iisp(if own > other {
                    Side::Network
                } else {
                    Side::User
                })
            }
            _ => Self::Uni(config.side),
        }
    }
}
