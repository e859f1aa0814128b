//! What a host has: the manager itself, or the seat of one in a process of its own.

use super::{Away, CallInfo, Input, Output, SigdEvent, Signalling, UserId};
use crate::inspect::Table;
use crate::interface::Interface;
use aerostat_proto::uni::Version;
use aerostat_proto::{ConnId, Instant, Machine, Refused};
use aerostat_wire::{AtmAddress, Sap, Vc};

/// The ATM service of a host.
#[derive(Debug)]
pub enum Manager {
    /// In the host's own process.
    Here(Box<Signalling>),
    /// Elsewhere.
    Away(Box<Away>),
}

impl From<Signalling> for Manager {
    fn from(signalling: Signalling) -> Self {
        Self::Here(Box::new(signalling))
    }
}

impl From<Away> for Manager {
    fn from(away: Away) -> Self {
        Self::Away(Box::new(away))
    }
}

impl Manager {
    /// The user that receives the SDUs on `vc`; `None` before the connection is up.
    #[must_use]
    pub fn receiver(&self, vc: Vc) -> Option<(UserId, ConnId)> {
        match self {
            Self::Here(here) => here.receiver(vc),
            Self::Away(away) => away.receiver(vc),
        }
    }
    /// Holds an SDU on `vc` for a call of which the daemon has not yet said that it is connected; false if there is none.
    pub fn hold(&mut self, vc: Vc, sdu: &[u8]) -> bool {
        match self {
            Self::Here(_) => false,
            Self::Away(away) => away.hold(vc, sdu),
        }
    }
    /// True while calls need not wait for the link.
    #[must_use]
    pub fn is_up(&self) -> bool {
        match self {
            Self::Here(here) => here.is_up(),
            Self::Away(away) => away.is_up(),
        }
    }
    /// The version of the interface.
    #[must_use]
    pub fn version(&self) -> Version {
        match self {
            Self::Here(here) => here.interface().version(),
            Self::Away(away) => away.version(),
        }
    }
    /// All calls, for display. Calls that are being released are known only to the daemon and are not included.
    #[must_use]
    pub fn calls(&self) -> std::vec::IntoIter<CallInfo> {
        let all: Vec<CallInfo> = match self {
            Self::Here(here) => here.calls().collect(),
            Self::Away(away) => away.calls().collect(),
        };
        all.into_iter()
    }
    /// Listeners, for display: address, description, user, largest SDU in octets.
    #[must_use]
    pub fn listeners(&self) -> std::vec::IntoIter<(AtmAddress, Sap, UserId, u16)> {
        let all: Vec<_> = match self {
            Self::Here(here) => here.listeners().collect(),
            Self::Away(away) => away.listeners().collect(),
        };
        all.into_iter()
    }
    /// The manager, if it runs in this process.
    #[must_use]
    pub fn here(&self) -> Option<&Signalling> {
        match self {
            Self::Here(here) => Some(here),
            Self::Away(_) => None,
        }
    }
    /// The seat of the daemon, if the manager runs in another process.
    #[must_use]
    pub fn away(&self) -> Option<&Away> {
        match self {
            Self::Here(_) => None,
            Self::Away(away) => Some(away),
        }
    }
    /// A message from the daemon, or an event of its process.
    ///
    /// # Errors
    /// If the manager runs in this process.
    pub fn hear(&mut self, event: SigdEvent, now: Instant) -> Result<(), Refused> {
        match self {
            Self::Here(_) => Err(Refused("the signalling manager is no process of its own")),
            Self::Away(away) => {
                away.hear(event, now);
                Ok(())
            }
        }
    }
    /// The two tables of `inspect saal`.
    pub(crate) fn saal_tables(&self) -> [Table; 2] {
        let (mut links, mut errors) = Interface::saal_tables();
        match self {
            Self::Here(here) => here.interface().saal_rows("atm0", &mut links, &mut errors),
            Self::Away(away) => away.saal_rows("atm0", &mut links, &mut errors),
        }
        [links, errors]
    }
}

impl Machine for Manager {
    type Input<'a> = Input<'a>;
    type Output = Output;
    type Refusal = Refused;

    fn handle_input(&mut self, input: Input<'_>, now: Instant) -> Result<(), Refused> {
        match self {
            Self::Here(here) => here.handle_input(input, now),
            Self::Away(away) => away.handle_input(input, now),
        }
    }
    fn handle_timeout(&mut self, now: Instant) {
        match self {
            Self::Here(here) => here.handle_timeout(now),
            Self::Away(away) => away.handle_timeout(now),
        }
    }
    fn poll_output(&mut self) -> Option<Output> {
        match self {
            Self::Here(here) => here.poll_output(),
            Self::Away(away) => away.poll_output(),
        }
    }
    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Here(here) => here.poll_timeout(),
            Self::Away(away) => away.poll_timeout(),
        }
    }
}
