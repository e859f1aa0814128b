//! The state of a client, with the data that exist only in this state.
//!
//! Knowledge from before the join stands in `Configuring` and `Joining`; the values that its LES and its BUS have told
//! a member stand in `Member`. So a client that is no member has no LECID, and a member always has its control direct
//! connection.

use super::LecState;
use crate::{Cause, ConnId};
use aerostat_wire::lane::Tlv;
use aerostat_wire::{AtmAddress, MacAddr};
use std::collections::VecDeque;

/// State of a client.
pub(super) enum State {
    Stopped,
    /// The client starts over when its time is over.
    Initial,
    /// The client looks for its LES.
    Configuring(Configuring),
    /// The client calls its LES, or waits for its answer.
    Joining(Joining),
    /// The LES has admitted the client.
    Member(Box<Member>),
}

/// Data of a client that looks for its LES.
pub(super) struct Configuring {
    /// Index of the LECS address that is being tried.
    pub(super) lecs: usize,
    pub(super) config_direct: ConnId,
    /// LE_CONFIGURE_REQUEST is out.
    pub(super) asked: bool,
    /// Cause of the last released or refused call to a LECS in this attempt to join.
    pub(super) refused: Option<Cause>,
}

/// Data of a client that calls its LES, or waits for its answer.
pub(super) struct Joining {
    pub(super) les: AtmAddress,
    pub(super) control_direct: ConnId,
    /// The TLVs from the LECS.
    pub(super) lecs_tlvs: Vec<Tlv>,
    /// The TLVs that the LES has of this client.
    pub(super) told: Vec<Tlv>,
}

/// Phase of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// It registers its addresses.
    InitialRegistration,
    /// It looks for the BUS, or calls it.
    BusConnect,
    /// It sends and receives frames.
    Operational,
}

/// Data of a client that the LES has admitted.
pub(super) struct Member {
    pub(super) phase: Phase,
    /// The client has been operational, and its user knows.
    pub(super) joined: bool,
    pub(super) les: AtmAddress,
    pub(super) control_direct: ConnId,
    pub(super) lecid: u16,
    pub(super) v2: bool,
    pub(super) elan_id: u32,
    /// The TLVs from the LECS.
    pub(super) lecs_tlvs: Vec<Tlv>,
    /// The TLVs that the LES has of this client.
    pub(super) told: Vec<Tlv>,
    /// The LES does not keep TLVs: its answers contain their number, but not the TLVs.
    pub(super) les_forgets: bool,
    /// Local MAC addresses that are to be registered, after the pending request.
    pub(super) to_register: VecDeque<MacAddr>,
    /// How often the client's TLVs have been announced again since they changed, or since the client joined.
    pub(super) announced: u32,
    /// The BUS; zero before it is known.
    pub(super) bus: AtmAddress,
    pub(super) multicast_send: Option<ConnId>,
    /// Attempts to reach the BUS since the client was operational.
    pub(super) bus_tries: u32,
    /// Cause of the last released or refused call to the BUS.
    pub(super) refused: Option<Cause>,
}

impl Member {
    /// A member that has just been admitted, with the LECID that the LES gave.
    pub(super) fn admitted(joining: Joining, lecid: u16, v2: bool, elan_id: u32) -> Self {
        Self {
            phase: Phase::InitialRegistration,
            joined: false,
            les: joining.les,
            control_direct: joining.control_direct,
            lecid,
            v2,
            elan_id,
            lecs_tlvs: joining.lecs_tlvs,
            told: joining.told,
            les_forgets: false,
            to_register: VecDeque::new(),
            announced: 0,
            bus: AtmAddress::ZERO,
            multicast_send: None,
            bus_tries: 0,
            refused: None,
        }
    }
}

impl State {
    /// The state in the words of the LEC MIB.
    pub(super) const fn name(&self) -> LecState {
        match self {
            Self::Stopped => LecState::Stopped,
            Self::Initial => LecState::Initial,
            Self::Configuring(configuring) if configuring.asked => LecState::Configure,
            Self::Configuring(_) => LecState::LecsConnect,
            Self::Joining(_) => LecState::Join,
            Self::Member(member) => match member.phase {
                Phase::InitialRegistration => LecState::InitialRegistration,
                Phase::BusConnect => LecState::BusConnect,
                Phase::Operational => LecState::Operational,
            },
        }
    }
    pub(super) fn is_operational(&self) -> bool {
        self.name() == LecState::Operational
    }
    /// True once the client has looked for the BUS.
    pub(super) fn has_bus(&self) -> bool {
        self.name() >= LecState::BusConnect
    }
    pub(super) fn member(&self) -> Option<&Member> {
        match self {
            Self::Member(member) => Some(member),
            Self::Stopped | Self::Initial | Self::Configuring(_) | Self::Joining(_) => None,
        }
    }
    pub(super) fn member_mut(&mut self) -> Option<&mut Member> {
        match self {
            Self::Member(member) => Some(member),
            Self::Stopped | Self::Initial | Self::Configuring(_) | Self::Joining(_) => None,
        }
    }

    /// The connection with the LES, open or not.
    pub(super) fn control_direct(&self) -> Option<ConnId> {
        match self {
            Self::Joining(joining) => Some(joining.control_direct),
            Self::Member(member) => Some(member.control_direct),
            Self::Stopped | Self::Initial | Self::Configuring(_) => None,
        }
    }
    /// The LES; zero before it is known.
    pub(super) fn les(&self) -> AtmAddress {
        match self {
            Self::Joining(joining) => joining.les,
            Self::Member(member) => member.les,
            Self::Stopped | Self::Initial | Self::Configuring(_) => AtmAddress::ZERO,
        }
    }
    /// The TLVs from the LECS.
    pub(super) fn lecs_tlvs(&self) -> &[Tlv] {
        match self {
            Self::Joining(joining) => &joining.lecs_tlvs,
            Self::Member(member) => &member.lecs_tlvs,
            Self::Stopped | Self::Initial | Self::Configuring(_) => &[],
        }
    }
    /// The BUS; zero before it is known.
    pub(super) fn bus(&self) -> AtmAddress {
        self.member().map_or(AtmAddress::ZERO, |member| member.bus)
    }
    /// LECID; 0 before the LES has admitted the client.
    pub(super) fn lecid(&self) -> u16 {
        self.member().map_or(0, |member| member.lecid)
    }
    /// True if LANE v2 is in force.
    pub(super) fn v2(&self) -> bool {
        self.member().is_some_and(|member| member.v2)
    }
    /// ELAN-ID; 0 before the LES has admitted the client, and with a v1 LES.
    pub(super) fn elan_id(&self) -> u32 {
        self.member().map_or(0, |member| member.elan_id)
    }
}
