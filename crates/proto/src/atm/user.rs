//! Users of the ATM service: what every machine has in common that asks for connections.

use super::{AtmEvent, AtmRequest};
use crate::discard::Discard;
use crate::{Instant, Machine};

/// An output of a user of the ATM service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UserOutput<O> {
    /// For the ATM service.
    Atm(AtmRequest),
    /// For another part of the host.
    Other(O),
}

/// A machine that uses the ATM service: a client, a server, a set of programs, or several machines wired together.
///
/// The service feeds it [`AtmEvent`]s and serves the [`AtmRequest`]s among its outputs.
pub trait AtmUser: Machine {
    /// Outputs that are not for the ATM service.
    type Other;

    /// Handles an event of the service. No state refuses an event: most events come from peers.
    fn event(&mut self, event: AtmEvent<&[u8]>, now: Instant);

    /// Tells a request to the service from other outputs.
    fn sort(output: Self::Output) -> UserOutput<Self::Other>;

    /// Calls `see` with every packet or frame that waits in this machine for a connection.
    fn held(&self, _see: &mut dyn FnMut(&[u8])) {}

    /// The next packet or frame that this machine gave up, with the reason and its head.
    fn take_discard(&mut self) -> Option<(Discard, Vec<u8>)> {
        None
    }
}

/// Implements [`AtmUser`] for a machine whose `Input` and `Output` have a variant `Atm` each. Methods in braces replace
/// the default methods.
#[macro_export]
macro_rules! atm_user {
    ($machine:ty { $($methods:item)* }) => {
        impl $crate::AtmUser for $machine {
            type Other = <Self as $crate::Machine>::Output;

            fn event(&mut self, event: $crate::AtmEvent<&[u8]>, now: $crate::Instant) {
                let done = $crate::Machine::handle_input(self, Input::Atm(event), now);
                debug_assert!(done.is_ok(), "events are never refused");
            }
            fn sort(output: Output) -> $crate::atm::UserOutput<Output> {
                match output {
                    Output::Atm(request) => $crate::atm::UserOutput::Atm(request),
                    other => $crate::atm::UserOutput::Other(other),
                }
            }
            $($methods)*
        }
    };
}
