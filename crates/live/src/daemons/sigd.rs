//! The signalling manager: [`Sigd`] at every host, router and LANE server.

use super::{Does, Glue, Said, Signal, Work};
use aerostat_lab::model::{Node, NodeKind};
use aerostat_node::host::HostInput;
use aerostat_node::signalling::{Seat, Sigd, SigdInput, SigdOutput};
use aerostat_proto::sigd::{FromSigd, ToSigd};
use aerostat_proto::split::Role;
use aerostat_proto::split::codec::{DecodeError, Message as _};
use aerostat_proto::{Instant, Machine as _};

pub(super) const SIGD: Glue = Glue {
    role: Role::Sigd,
    // No service of the lab file is this process: only the whole node crashes.
    service: None,
    has_seat,
    came: || HostInput::Sigd(Seat::Came),
    said,
    gone: || HostInput::Sigd(Seat::Gone),
    work: || Box::<Sigd>::default(),
};

fn has_seat(node: &Node) -> bool {
    match &node.kind {
        NodeKind::Host(_) | NodeKind::Router(_) | NodeKind::LaneServer(_) => true,
        NodeKind::Switch(_) | NodeKind::Outside(_) => false,
    }
}

fn said(frame: &[u8]) -> Result<Said, DecodeError> {
    let message = FromSigd::decode(frame)?;
    Ok(Said {
        farewell: matches!(message, FromSigd::Ending),
        input: HostInput::Sigd(Seat::Said(message)),
    })
}

impl Work for Sigd {
    fn hear(&mut self, frame: &[u8], now: Instant) -> Result<(), DecodeError> {
        let message = ToSigd::decode(frame)?;
        // Messages and signals are never refused.
        let _ = self.handle_input(SigdInput::Message(message), now);
        Ok(())
    }
    fn signal(&mut self, signal: Signal, now: Instant) {
        let input = match signal {
            Signal::Terminate => SigdInput::Terminate,
            Signal::Reload => SigdInput::Reload,
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
            SigdOutput::Message(message) => Does::Say(message.encode()),
            SigdOutput::Exit => Does::Exit,
        })
    }
}
