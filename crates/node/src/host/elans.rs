//! The LANE servers of a host: the LES of an ELAN tells the BUS of the ELAN who is a member, even after a restart.

use super::{Host, HostEvent, Typed};
use aerostat_proto::Instant;
use aerostat_proto::lane::{LaneServer, Member, server};
use aerostat_wire::AtmAddress;
use std::collections::BTreeMap;

/// The two servers of an ELAN.
#[derive(Debug)]
pub(super) struct Elan {
    /// Address of its LES.
    pub(super) address: AtmAddress,
    les: Typed<LaneServer>,
    bus: Typed<LaneServer>,
    members: BTreeMap<AtmAddress, Member>,
}

impl Elan {
    pub(super) const fn new(
        address: AtmAddress,
        les: Typed<LaneServer>,
        bus: Typed<LaneServer>,
    ) -> Self {
        Self {
            address,
            les,
            bus,
            members: BTreeMap::new(),
        }
    }

    /// The slots of its servers.
    pub(super) const fn slots(&self) -> [usize; 2] {
        [self.les.slot(), self.bus.slot()]
    }
}

impl Host {
    pub(super) fn server_output(&mut self, slot: usize, output: server::Output, now: Instant) {
        match output {
            server::Output::Atm(request) => self.request(slot, request, now),
            server::Output::Trace(trace) => self.trace(trace),
            server::Output::Member { address, member } => {
                self.member(slot, address, member, now);
            }
            server::Output::Reaches { address, reached } => {
                self.report(HostEvent::Reaches { address, reached });
            }
            server::Output::Process(message) => {
                if let Some(server) = self.running::<LaneServer>(slot) {
                    self.tell_process(server.role(), slot, message);
                }
            }
        }
    }

    /// Records that a member of the LES in slot `les` is new, has changed, or has left (`None`), and tells the BUS.
    fn member(&mut self, les: usize, address: AtmAddress, member: Option<Member>, now: Instant) {
        let mut elans = self.elans.iter_mut();
        if let Some(elan) = elans.find(|elan| elan.les.slot() == les) {
            match &member {
                Some(member) => elan.members.insert(address, member.clone()),
                None => elan.members.remove(&address),
            };
            let bus = elan.bus;
            self.tell(bus, server::Input::Member { address, member }, now);
        }
    }

    /// Tells a BUS that has restarted who the members are. Other slots are left alone.
    pub(super) fn recall_members(&mut self, bus: usize, now: Instant) {
        let mut elans = self.elans.iter();
        let Some(elan) = elans.find(|elan| elan.bus.slot() == bus) else {
            return;
        };
        let bus = elan.bus;
        for (address, member) in elan.members.clone() {
            let member = Some(member);
            self.tell(bus, server::Input::Member { address, member }, now);
        }
    }

    /// Removes the members of a LES that has stopped. Other slots are left alone.
    pub(super) fn forget_members(&mut self, les: usize, now: Instant) {
        let mut elans = self.elans.iter();
        let elan = elans.find(|elan| elan.les.slot() == les);
        let gone = elan.into_iter().flat_map(|elan| elan.members.keys());
        for address in gone.copied().collect::<Vec<_>>() {
            self.member(les, address, None, now);
        }
    }
}
