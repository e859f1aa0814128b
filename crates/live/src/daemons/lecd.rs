//! The control parts of LANE clients: [`Lecd`] at every host and router with interfaces. Where all of them are on Classical
//! IP subnets, it has nothing to do.

use super::{Does, Glue, Said, Signal, Work};
use aerostat_lab::model::Node;
use aerostat_node::host::HostInput;
use aerostat_proto::lane::lec::split::{ForLec, FromLecd, News, ToLecd};
use aerostat_proto::lane::lec::{Lecd, LecdInput, LecdOutput};
use aerostat_proto::split::Role;
use aerostat_proto::split::codec::{DecodeError, Message as _};
use aerostat_proto::{Instant, Machine as _};

pub(super) const LECD: Glue = Glue {
    role: Role::Lecd,
    // No service of the lab file is this process: only the whole node crashes.
    service: None,
    has_seat,
    came: || HostInput::Lecd(News::Came),
    said,
    gone: || HostInput::Lecd(News::Gone),
    work: || Box::<Lecd>::default(),
};

fn has_seat(node: &Node) -> bool {
    !node.lecs().is_empty()
}

fn said(frame: &[u8]) -> Result<Said, DecodeError> {
    let said = ForLec::<FromLecd>::decode(frame)?;
    Ok(Said {
        farewell: matches!(said.message, FromLecd::Ended { exits: true }),
        input: HostInput::Lecd(News::Said(said)),
    })
}

impl Work for Lecd {
    fn hear(&mut self, frame: &[u8], now: Instant) -> Result<(), DecodeError> {
        let message = ForLec::<ToLecd>::decode(frame)?;
        // Messages and signals are never refused.
        let _ = self.handle_input(LecdInput::Message(message), now);
        Ok(())
    }
    fn signal(&mut self, signal: Signal, now: Instant) {
        let input = match signal {
            Signal::Terminate => LecdInput::Terminate,
            Signal::Reload => LecdInput::Reload,
        };
        let _ = self.handle_input(input, now);
    }
    fn handle_timeout(&mut self, now: Instant) {
        aerostat_proto::Machine::handle_timeout(self, now);
    }
    fn poll_timeout(&self) -> Option<Instant> {
        aerostat_proto::Machine::poll_timeout(self)
    }
    fn poll(&mut self, _: Instant) -> Option<Does> {
        Some(match self.poll_output()? {
            LecdOutput::Message(message) => Does::Say(message.encode()),
            LecdOutput::Exit => Does::Exit,
        })
    }
}
