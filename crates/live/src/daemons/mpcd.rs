//! The MPOA client's daemon: [`Mpcd`] at every host with an MPOA client.

use super::{Does, Glue, Said, Signal, Work};
use aerostat_lab::model::{Node, NodeKind, Service};
use aerostat_node::host::HostInput;
use aerostat_proto::mpoa::mpc::{Input, Mpcd, MpcdInput, MpcdOutput};
use aerostat_proto::mpoa::split::{FromMpcd, ToMpcd};
use aerostat_proto::split::Role;
use aerostat_proto::split::codec::{DecodeError, Message as _};
use aerostat_proto::{Instant, Machine as _};

pub(super) const MPCD: Glue = Glue {
    role: Role::Mpcd,
    service: Some(Service::Mpc),
    has_seat,
    came: || HostInput::Mpc(Input::StartDaemon),
    said,
    gone: || HostInput::Mpc(Input::KillDaemon),
    work: || Box::<Mpcd>::default(),
};

fn has_seat(node: &Node) -> bool {
    match &node.kind {
        NodeKind::Host(host) => host.mpoa.is_some(),
        _ => false,
    }
}

fn said(frame: &[u8]) -> Result<Said, DecodeError> {
    let message = FromMpcd::decode(frame)?;
    Ok(Said {
        farewell: matches!(message, FromMpcd::Ended { exits: true, .. }),
        input: HostInput::Mpc(Input::Mpcd(message)),
    })
}

impl Work for Mpcd {
    fn hear(&mut self, frame: &[u8], now: Instant) -> Result<(), DecodeError> {
        let message = ToMpcd::decode(frame)?;
        // Messages and signals are never refused.
        let _ = self.handle_input(MpcdInput::Message(message), now);
        Ok(())
    }
    fn signal(&mut self, signal: Signal, now: Instant) {
        let input = match signal {
            Signal::Terminate => MpcdInput::Terminate,
            Signal::Reload => MpcdInput::Reload,
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
            MpcdOutput::Message(message) => Does::Say(message.encode()),
            MpcdOutput::Exit => Does::Exit,
        })
    }
}
