//! Which kind of link the two ends make, and which of them plays the network.

use super::{Config, Peer, Side};

/// What the device types of both ends make of a link. Source: af-ilmi-0065.000 clause 8.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// A host and a switch; this end is that side of the UNI.
    Uni(Side),
    /// Two switches of which at least one does not speak PNNI; in signalling this end plays that side.
    Iisp(Side),
    /// Two switches that speak PNNI.
    Pnni,
    /// Two hosts: nobody is the network.
    Hosts,
}

/// What a switch speaks towards another one. Source: `atmfAtmLayerNniSigVersion`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NniSignalling {
    /// Nothing.
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
    /// What an end of `config` and `peer` make. A peer that does not say what it is counts as what is missing: ends from
    /// before ILMI 4.0 have no other way. Of two switches the one with the greater identifier of system and port plays the
    /// network side; both ends come to that by themselves.
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
