//! The state of a host for readers that follow it while it changes: calls, shortcuts, membership.
//!
//! The rows are those of `inspect`. A host with thousands of calls changes a few of them at a time, so it tells which
//! rows may have changed ([`Host::take_changes`]).

use crate::host::service::{Service, ServiceKind};
use crate::host::{Client, Host, Station};
use crate::inspect::words::Direction;
use crate::inspect::{Name, host, mpoa, named, nhrp};
use aerostat_proto::clip::Clip;
use aerostat_proto::lane::Lec;
use aerostat_proto::lane::lec::LecState;
use aerostat_proto::line::Line;
use aerostat_proto::mpoa::messages::FlowName;
use aerostat_proto::uni::CallId;
use aerostat_proto::{Changes, Instant};
use aerostat_wire::{Qos, Vc};
use std::net::Ipv4Addr;

/// Rows of a host that may have changed.
#[derive(Clone, Debug, Default)]
pub struct HostChanges {
    /// Calls.
    pub calls: Changes<CallId>,
    /// Entries of the ingress cache of its MPOA client.
    pub flows: Changes<FlowName>,
}

/// A part of a host that is a member of a network, or tries to become one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// Number of the interface.
    pub interface: usize,
    /// Kind of the part: a LANE client, a member of a Classical IP subnet, or an NHRP client.
    pub kind: ServiceKind,
    /// True for a member.
    pub joined: bool,
    /// State of joining in the words of the LEC MIB; `registered` or `registering` for Classical IP and NHRP.
    pub state: Name,
    /// Number that the LES has given to a LANE client; 0 without one.
    pub lecid: u16,
}

/// A call with what its rows in `inspect` do not show.
#[derive(Clone, Debug, PartialEq)]
pub struct PresentCall {
    /// Its row.
    pub row: host::Call,
    /// Traffic seen from this host.
    pub qos: Qos,
    /// True for point-to-multipoint.
    pub multipoint: bool,
    /// True for a permanent connection.
    pub permanent: bool,
}

impl Host {
    /// The rows that may have changed since the last call of this method; all of them at the first call.
    pub fn take_changes(&mut self) -> HostChanges {
        let calls = self.signalling.take_changes();
        let mut flows = Changes::These(Vec::new());
        for slot in &mut self.slots {
            match (slot.kind, &mut slot.service) {
                (ServiceKind::Mpc, Some(Service::Mpc(mpc))) => flows = mpc.take_changes(),
                // A client that has crashed has no entries.
                (ServiceKind::Mpc, _) => flows.note_all(),
                _ => {}
            }
        }
        HostChanges { calls, flows }
    }

    /// Ids of all calls.
    pub fn call_ids(&self) -> impl Iterator<Item = CallId> + '_ {
        self.signalling.call_ids()
    }

    /// A call; `None` if there is no such call.
    #[must_use]
    pub fn call(&self, id: CallId) -> Option<PresentCall> {
        let call = self.signalling.call(id)?;
        let (qos, multipoint, permanent) = (call.qos, call.multipoint, call.permanent);
        let row = self.call_row(&call);
        Some(PresentCall {
            row,
            qos,
            multipoint,
            permanent,
        })
    }

    /// Names of the entries of the ingress cache.
    pub fn flows(&self) -> impl Iterator<Item = FlowName> + '_ {
        self.services().flat_map(|service| match service {
            Service::Mpc(mpc) => mpc.flows().collect(),
            _ => Vec::new(),
        })
    }

    /// An entry of the ingress cache; `None` if there is no such entry.
    #[must_use]
    pub fn flow(&self, name: &FlowName, now: Instant) -> Option<mpoa::MpcIngress> {
        self.services().find_map(|service| match service {
            Service::Mpc(mpc) => Some(mpoa::MpcIngress::of(&mpc.flow(name, now)?)),
            _ => None,
        })
    }

    /// The destinations that its NHRP client knows.
    pub fn ways(&self, now: Instant) -> impl Iterator<Item = (Ipv4Addr, nhrp::Way)> + '_ {
        self.services().flat_map(move |service| match service {
            Service::Nhc(nhc) => nhrp::ways(&nhc.snapshot(), now),
            _ => Vec::new(),
        })
    }

    /// True if it has an NHRP client of its own.
    #[must_use]
    pub const fn nhrp(&self) -> bool {
        self.nhc.is_some()
    }

    /// Its LANE clients, members of Classical IP subnets and its NHRP client, if they run.
    pub fn memberships(&self) -> impl Iterator<Item = Membership> + '_ {
        let interfaces = self.interfaces.iter().enumerate();
        let members = interfaces.filter_map(|(interface, itf)| match itf.client {
            Client::Lec(lec) => self.machine(lec).map(|lec| of_lane(interface, lec)),
            Client::Clip(clip) => self.machine(clip).map(|clip| of_clip(interface, clip)),
            Client::Line(line) => self.machine(line).map(|line| of_line(interface, line)),
        });
        let nhc = self.nhc.and_then(|nhc| self.machine(nhc));
        members.chain(nhc.map(|nhc| Membership {
            interface: 0,
            kind: ServiceKind::Nhc,
            joined: nhc.is_registered(),
            state: registered(nhc.is_registered()).into(),
            lecid: 0,
        }))
    }

    /// Kinds of its services that have crashed, each once for each service.
    pub fn crashed(&self) -> impl Iterator<Item = ServiceKind> + '_ {
        let off = self.slots.iter().filter(|slot| slot.service.is_none());
        off.map(|slot| slot.kind)
    }

    fn services(&self) -> impl Iterator<Item = &Service> {
        self.slots.iter().filter_map(|slot| slot.service.as_ref())
    }
}

impl Station {
    /// Cells that its adapter has sent on a label; `None` without such a label.
    #[must_use]
    pub fn cells_sent(&self, vc: Vc) -> Option<u64> {
        let output = self.nic().output();
        let queue = output.queue_of(vc)?;
        output.counters(queue).map(|counters| counters.cells_out)
    }
}

fn of_lane(interface: usize, lec: &Lec) -> Membership {
    let state = lec.state();
    Membership {
        interface,
        kind: ServiceKind::Lec,
        joined: state == LecState::Operational,
        state: named(state),
        lecid: lec.lecid(),
    }
}

fn of_clip(interface: usize, clip: &Clip) -> Membership {
    Membership {
        interface,
        kind: ServiceKind::Clip,
        joined: clip.can_send(),
        state: registered(clip.can_send()).into(),
        lecid: 0,
    }
}

fn of_line(interface: usize, line: &Line) -> Membership {
    let open = line.vc().is_some();
    Membership {
        interface,
        kind: ServiceKind::Line,
        joined: open,
        state: if open { "open" } else { "closed" }.into(),
        lecid: 0,
    }
}

const fn registered(is: bool) -> &'static str {
    match is {
        true => "registered",
        false => "registering",
    }
}

impl PresentCall {
    /// True if this host is the caller, and the call is no permanent connection.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.row.direction == Direction::Out && !self.permanent
    }
    /// The state in one word, as in `inspect call`.
    #[must_use]
    pub fn phase(&self) -> &'static str {
        self.row.phase.name()
    }
}
