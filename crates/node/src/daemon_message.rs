//! Messages from daemons in processes of their own, to a host or a switch.

use aerostat_proto::ilmi::split::FromIlmid;
use aerostat_proto::lane::lec::split::FromLecd;
use aerostat_proto::lane::server::FromServer;
use aerostat_proto::mpoa::mps::split::FromMpsd;
use aerostat_proto::mpoa::split::FromMpcd;
use aerostat_proto::sigd::FromSigd;
use aerostat_proto::split::codec::{DecodeError, Message as _};
use aerostat_proto::split::{Ended, FromDaemon, Numbered, ProcessEvent, Role};

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
    pub(crate) const fn number(&self) -> u16 {
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

/// The process has started, or is gone, for one of its seats.
pub(crate) const fn is<M>(there: bool) -> ProcessEvent<M> {
    match there {
        true => ProcessEvent::Came,
        false => ProcessEvent::Gone,
    }
}
