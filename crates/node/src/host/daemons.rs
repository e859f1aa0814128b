//! Daemons of a host in processes of their own: the seats that their frames concern.

use super::{DaemonMessage, Host, ServiceKind};
use crate::daemon_message::is;
use crate::signalling;
use aerostat_proto::lane::server::FromServer;
use aerostat_proto::lane::{LaneServer, lec, server};
use aerostat_proto::mpoa::{mpc, mps};
use aerostat_proto::split::{FromDaemon, Numbered, ProcessEvent, Role};
use aerostat_proto::{Instant, Trace};

impl Host {
    /// A message from a process, or an event of it: for all seats of its role, or for the seat with the number of the
    /// message.
    pub(super) fn tell_seats(
        &mut self,
        role: Role,
        event: ProcessEvent<DaemonMessage>,
        now: Instant,
    ) {
        let there = match event {
            ProcessEvent::Said(message) => return self.tell_seat(role, message, now),
            ProcessEvent::Came => true,
            ProcessEvent::Gone => false,
        };
        match role {
            Role::Mpcd => self.tell_mpc(mpc::Input::Mpcd(is(there)), now),
            Role::Sigd => {
                self.tell_signalling(signalling::Input::Daemon(is(there)), now);
            }
            Role::Ilmid => self.tell_ilmid(is(there), now),
            Role::Mpsd => self.tell_mps(mps::Input::Process(is(there)), now),
            Role::Lecd => {
                for itf in 0..self.interfaces.len() {
                    self.tell_lec(itf, lec::Input::Lecd(is(there)), now);
                }
            }
            Role::Lecs | Role::Les | Role::Bus => {
                for slot in 0..self.slots.len() {
                    self.tell_server((slot, role), is(there), now);
                }
            }
        }
    }

    /// True if the host has a seat for the daemon with this role and number. The service of the seat may have stopped.
    fn has_seat(&self, role: Role, number: usize) -> bool {
        let kind = |slot: usize| self.slots.get(slot).map(|slot| slot.kind);
        match role {
            Role::Mpcd => number == 0 && self.mpc.is_some(),
            Role::Sigd => number == 0,
            Role::Mpsd => number == 0 && self.mps.is_some(),
            Role::Lecd => self.lec_of(number).is_some(),
            Role::Ilmid => number == 0 && self.management.is_some(),
            Role::Lecs => kind(number) == Some(ServiceKind::Lecs),
            Role::Les => kind(number) == Some(ServiceKind::Les),
            Role::Bus => kind(number) == Some(ServiceKind::Bus),
        }
    }

    fn tell_seat(&mut self, role: Role, message: DaemonMessage, now: Instant) {
        let number = message.number();
        if !self.has_seat(role, number.into()) {
            let text = format!("this host has no {role} of number {number}");
            return self.trace(Trace::detail("host.refused", text));
        }
        match message {
            DaemonMessage::Mpcd(Numbered { message, .. }) => {
                self.tell_mpc(mpc::Input::Mpcd(ProcessEvent::Said(message)), now);
            }
            DaemonMessage::Sigd(Numbered { message, .. }) => {
                let said = ProcessEvent::Said(message);
                self.tell_signalling(signalling::Input::Daemon(said), now);
            }
            DaemonMessage::Ilmid(Numbered { message, .. }) => {
                self.tell_ilmid(ProcessEvent::Said(message), now);
            }
            DaemonMessage::Mpsd(Numbered { message, .. }) => {
                self.tell_mps(mps::Input::Process(ProcessEvent::Said(message)), now);
            }
            DaemonMessage::Lecd(Numbered { number, message }) => {
                let input = lec::Input::Lecd(ProcessEvent::Said(message));
                self.tell_lec(number.into(), input, now);
            }
            DaemonMessage::LaneServer(Numbered { number, message }) => {
                let said = ProcessEvent::Said(message);
                self.tell_server((number.into(), role), said, now);
            }
        }
    }

    fn tell_lec(&mut self, itf: usize, input: lec::Input<'static>, now: Instant) {
        if let Some(lec) = self.lec_of(itf) {
            self.tell(lec, input, now);
        }
    }

    /// For the LANE server in a slot, if the server has this role.
    fn tell_server(
        &mut self,
        (slot, role): (usize, Role),
        event: ProcessEvent<FromDaemon<FromServer>>,
        now: Instant,
    ) {
        let server = self.typed::<LaneServer>(slot);
        let plays = |server: &LaneServer| server.role() == role;
        let Some(server) = server.filter(|server| self.machine(*server).is_some_and(plays)) else {
            return;
        };
        let starts = matches!(
            event,
            ProcessEvent::Came | ProcessEvent::Said(FromDaemon::Ended(_))
        );
        self.tell(server, server::Input::Process(event), now);
        if starts {
            self.recall_members(slot, now);
        }
    }
}
