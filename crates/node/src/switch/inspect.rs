//! Snapshots for display: plain data.

use std::collections::BTreeMap;

use aerostat_proto::{Cause, PartyId, uni};
use aerostat_wire::{AtmAddress, Bhli, Blli, Qos, Vc};

use super::crankback::Failed;
use super::port::Reservation;
use super::{LegKey, PortKind, PortNo, RouteSelect, Switch, SwitchCallId};
use aerostat_proto::interface::Phase;

/// One end of a call at a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LegInfo {
    /// The port.
    pub port: PortNo,
    /// Its label there, once known.
    pub vc: Option<Vc>,
    /// True once the far side of this leg has accepted; always true for the root.
    pub connected: bool,
    /// Parties behind this leg, by the root's ids; empty if the call is not point-to-multipoint.
    pub parties: Vec<PartyId>,
}

/// One call through the switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallInfo {
    /// Its number.
    pub id: SwitchCallId,
    /// The leg where it came in.
    pub root: LegInfo,
    /// The legs where it went out.
    pub branches: Vec<LegInfo>,
    /// The caller.
    pub calling: Option<AtmAddress>,
    /// The called party; of the first leaf.
    pub called: AtmAddress,
    /// Low layer information.
    pub blli: Option<Blli>,
    /// High layer information.
    pub bhli: Option<Bhli>,
    /// Traffic seen from the caller.
    pub qos: Qos,
    /// True for a point-to-multipoint call.
    pub multipoint: bool,
    /// True if the caller has been answered.
    pub accepted: bool,
    /// Ways that the call was tried by in vain, in order.
    pub failed: Vec<Failed>,
}

/// One port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortInfo {
    /// Its number.
    pub port: PortNo,
    /// Its name.
    pub name: String,
    /// The kind of system at the other end.
    pub kind: PortKind,
    /// The version of the UNI.
    pub version: uni::Version,
    /// State of its signalling.
    pub phase: Phase,
    /// Half-calls, including those being released.
    pub calls: usize,
    /// Calls that came in here and have not been answered yet.
    pub pending: usize,
    /// Labels in use.
    pub labels: usize,
    /// Reserved towards the other end and from there, cells/s.
    pub reserved: (u64, u64),
    /// Limit of reservations in each direction, cells/s.
    pub admit: u32,
    /// Shaped paths by VPI: the peak rate, which is part of what is reserved, and what connections inside reserve
    /// towards the other end and from there, cells/s.
    pub tunnels: BTreeMap<u16, (u32, (u64, u64))>,
    /// Registered addresses.
    pub addresses: Vec<AtmAddress>,
    /// Number of calls that ended here, by cause.
    pub causes: BTreeMap<Cause, u64>,
    /// Counters of its call control.
    pub signalling: uni::Counters,
}

impl<R: RouteSelect> Switch<R> {
    /// All calls, oldest first.
    pub fn calls(&self) -> impl Iterator<Item = CallInfo> + '_ {
        let vc = |key: &LegKey| self.legs.get(key).and_then(|leg| leg.vc);
        self.calls.iter().map(move |(id, call)| CallInfo {
            id: *id,
            root: LegInfo {
                port: call.root.port,
                vc: vc(&call.root),
                connected: true,
                parties: call.parties.keys().copied().collect(),
            },
            branches: call
                .branches
                .iter()
                .map(|(key, branch)| LegInfo {
                    port: key.port,
                    vc: vc(key),
                    connected: branch.connected,
                    parties: branch.parties.values().copied().collect(),
                })
                .collect(),
            calling: call.info.calling,
            called: call.info.called,
            blli: call.info.blli,
            bhli: call.info.bhli,
            qos: call.info.qos,
            multipoint: call.info.multipoint,
            accepted: call.accepted,
            failed: match &call.tries {
                Some(tries) => tries.failed.clone(),
                None => Vec::new(),
            },
        })
    }
    /// All ports. Connections of the data plane are at [`crate::atm::fabric::Fabric::connections`].
    pub fn port_infos(&self) -> impl Iterator<Item = PortInfo> + '_ {
        self.occupied().map(|(number, port)| {
            let number = PortNo(number as u16);
            let inside = |(vpi, (pcr, held)): (&u16, &(u32, Reservation))| {
                (*vpi, (*pcr, (held.tx, held.rx)))
            };
            PortInfo {
                port: number,
                name: port.config.name.clone(),
                kind: port.config.kind,
                version: port.interface.version(),
                phase: port.interface.phase(),
                calls: port.held,
                pending: port.pending,
                labels: port.labels(),
                reserved: (port.reserved.tx, port.reserved.rx),
                admit: port.config.admit,
                tunnels: port.tunnels.iter().map(inside).collect(),
                addresses: port.addresses.clone(),
                causes: port.causes.clone(),
                signalling: port.interface.uni().counters(),
            }
        })
    }
}
