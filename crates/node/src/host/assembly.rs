//! The parts of a host, as its builder adds them.

use super::elans::Elan;
use super::service::{Factory, Serves, Typed};
use super::sockets::SocketLayer;
use super::{Client, Host, Interface, InterfaceCounters, Slot};
use aerostat_proto::clip::Clip;
use aerostat_proto::lane::{LaneServer, Lec};
use aerostat_proto::line::Line;
use aerostat_proto::mpoa::{Mpc, Mps};
use aerostat_proto::nhrp::client::Nhc;
use aerostat_wire::{AtmAddress, MacAddr};

impl Host {
    pub(super) fn add<M: Serves>(&mut self, make: impl Fn(u32) -> M + Send + 'static) -> Typed<M> {
        let factory: Factory = Box::new(move |start| make(start).into());
        let service = factory(0);
        let slot = self.slots.len();
        self.slots.push(Slot {
            kind: service.kind(),
            service: Some(service),
            factory,
            starts: 1,
            user: false,
            deadline: None,
            retired: false,
        });
        Typed::new(slot)
    }

    /// Adds the MPOA client. Like all other services, it is added before [`HostInput::Start`](super::HostInput::Start);
    /// `make` makes it from its configuration, and its argument counts the starts, from 0.
    pub fn add_mpc(&mut self, make: impl Fn(u32) -> Mpc + Send + 'static) {
        self.mpc = Some(self.add(make));
    }

    /// Adds the MPOA server.
    pub fn add_mps(&mut self, make: impl Fn(u32) -> Mps + Send + 'static) {
        self.mps = Some(self.add(make));
    }

    /// Adds the NHRP client.
    pub fn add_nhc(&mut self, make: impl Fn(u32) -> Nhc + Send + 'static) {
        self.nhc = Some(self.add(make));
    }

    /// Its manager takes time for calls inside the host.
    pub const fn set_paced(&mut self) {
        self.signalling.set_paced();
    }

    /// Adds the ATM sockets of programs of the lab file and of the machine.
    pub fn add_sockets(&mut self, make: impl Fn(u32) -> SocketLayer + Send + 'static) {
        self.sockets = Some(self.add(make));
    }

    /// Adds a LANE server that works without the other servers of this host, such as a LECS.
    pub fn add_server(&mut self, make: impl Fn(u32) -> LaneServer + Send + 'static) {
        self.add(make);
    }

    /// Adds the servers of the ELAN whose LES has this address; the LES tells the BUS about its members.
    pub fn add_elan(
        &mut self,
        address: AtmAddress,
        les: impl Fn(u32) -> LaneServer + Send + 'static,
        bus: impl Fn(u32) -> LaneServer + Send + 'static,
    ) {
        let (les, bus) = (self.add(les), self.add(bus));
        self.elans.push(Elan::new(address, les, bus));
    }

    /// Adds a LANE client as the next interface (`lecN`).
    pub fn add_lec(&mut self, mac: MacAddr, make: impl Fn(u32) -> Lec + Send + 'static) {
        let client = Client::Lec(self.add(make));
        self.add_interface(mac, client);
    }

    /// Adds a member of a Classical IP subnet as the next interface (`atmN`).
    pub fn add_clip(&mut self, mac: MacAddr, make: impl Fn(u32) -> Clip + Send + 'static) {
        let client = Client::Clip(self.add(make));
        self.add_interface(mac, client);
    }

    /// Adds one end of an ATM line as the next interface (`nasN`).
    pub fn add_line(&mut self, mac: MacAddr, make: impl Fn(u32) -> Line + Send + 'static) {
        let client = Client::Line(self.add(make));
        self.add_interface(mac, client);
    }

    pub(super) fn add_interface(&mut self, mac: MacAddr, client: Client) {
        self.interfaces.push(Interface {
            client,
            mac,
            up: false,
            since: None,
            told: false,
            elan_id: 0,
            mtu: 1500,
            tlvs: Vec::new(),
            config: Vec::new(),
            counters: InterfaceCounters::default(),
        });
    }
}
