//! Daemons of a host in processes of their own: the types of their frames, and the seats that the frames concern.

use super::{Host, ServiceKind};
use crate::signalling;
use aerostat_proto::ilmi::split::FromIlmid;
use aerostat_proto::lane::lec::split::FromLecd;
use aerostat_proto::lane::server::FromServer;
use aerostat_proto::lane::{LaneServer, lec, server};
use aerostat_proto::mpoa::mps::split::FromMpsd;
use aerostat_proto::mpoa::split::FromMpcd;
use aerostat_proto::mpoa::{mpc, mps};
use aerostat_proto::sigd::FromSigd;
use aerostat_proto::split::codec::{DecodeError, Message as _};
use aerostat_proto::split::{Ended, FromDaemon, Numbered, ProcessEvent, Role};
use aerostat_proto::{Instant, Trace};

/// A message from a daemon in a process of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DaemonMessage {
    /// The daemon of the MPOA client; its number is 0.
    Mpcd(Numbered<FromDaemon<FromMpcd>>),
    /// The daemon of a LANE client; its number is that of the interface.
    Lecd(Numbered<FromDaemon<FromLecd>>),
    /// A LANE server; its number is its slot.
    LaneServer(Numbered<FromDaemon<FromServer>>),
    /// The signalling daemon; its number is 0.
    Sigd(Numbered<FromDaemon<FromSigd>>),
    /// An ILMI daemon; its number is 0 at a host, and that of the port at a switch.
    Ilmid(Numbered<FromDaemon<FromIlmid>>),
    /// The daemon of the MPOA server; its number is 0.
    Mpsd(Numbered<FromDaemon<FromMpsd>>),
}

impl DaemonMessage {
    /// The message of a frame from a daemon of this role.
    ///
    /// # Errors
    /// If the frame is not exactly one message.
    pub fn decode(role: Role, frame: &[u8]) -> Result<Self, DecodeError> {
        Ok(match role {
            Role::Mpcd => Self::Mpcd(Numbered::decode(frame)?),
            Role::Lecd => Self::Lecd(Numbered::decode(frame)?),
            Role::Lecs | Role::Les | Role::Bus => Self::LaneServer(Numbered::decode(frame)?),
            Role::Sigd => Self::Sigd(Numbered::decode(frame)?),
            Role::Ilmid => Self::Ilmid(Numbered::decode(frame)?),
            Role::Mpsd => Self::Mpsd(Numbered::decode(frame)?),
        })
    }
    /// The number of the daemon.
    const fn number(&self) -> u16 {
        match self {
            Self::Mpcd(frame) => frame.number,
            Self::Lecd(frame) => frame.number,
            Self::LaneServer(frame) => frame.number,
            Self::Sigd(frame) => frame.number,
            Self::Ilmid(frame) => frame.number,
            Self::Mpsd(frame) => frame.number,
        }
    }
    /// True if the daemon says that its process ends regularly.
    #[must_use]
    pub const fn exits(&self) -> bool {
        match self {
            Self::Mpcd(frame) => exits(&frame.message),
            Self::Lecd(frame) => exits(&frame.message),
            Self::LaneServer(frame) => exits(&frame.message),
            Self::Sigd(frame) => exits(&frame.message),
            Self::Ilmid(frame) => exits(&frame.message),
            Self::Mpsd(frame) => exits(&frame.message),
        }
    }
}

const fn exits<M>(message: &FromDaemon<M>) -> bool {
    matches!(message, FromDaemon::Ended(Ended::Exits))
}

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

/// The process has started, or is gone, for one of its seats.
pub(crate) const fn is<M>(there: bool) -> ProcessEvent<M> {
    match there {
        true => ProcessEvent::Came,
        false => ProcessEvent::Gone,
    }
}
