//! LANE servers: lecs, les and bus at every host of LANE servers, each the process of all its servers of the kind.
//!
//! LES and BUS are two processes, as in linux-atm, though the LES tells the BUS who is a member: their host keeps that.

use super::{Does, Glue, Said, Signal, Work};
use aerostat_lab::model::{LaneServer, Node, NodeKind, Service};
use aerostat_node::host::HostInput;
use aerostat_proto::lane::split::{
    FromServer, News, Servers, ServersInput, ServersOutput, ToServer,
};
use aerostat_proto::split::Role;
use aerostat_proto::split::codec::{DecodeError, Message as _};
use aerostat_proto::{Instant, Machine};

pub(super) const LECS: Glue = Glue {
    role: Role::Lecs,
    service: Some(Service::Lecs),
    // Hosts of standby servers have none.
    has_seat: |node| server(node).is_some_and(|server| server.rank == 0),
    came: || HostInput::Servers(Role::Lecs, News::Came),
    said: |frame| said(Role::Lecs, frame),
    gone: || HostInput::Servers(Role::Lecs, News::Gone),
    work: || Box::<Servers>::default(),
};
pub(super) const LES: Glue = Glue {
    role: Role::Les,
    service: Some(Service::Les),
    has_seat: |node| server(node).is_some(),
    came: || HostInput::Servers(Role::Les, News::Came),
    said: |frame| said(Role::Les, frame),
    gone: || HostInput::Servers(Role::Les, News::Gone),
    work: || Box::<Servers>::default(),
};
pub(super) const BUS: Glue = Glue {
    role: Role::Bus,
    service: Some(Service::Bus),
    has_seat: |node| server(node).is_some(),
    came: || HostInput::Servers(Role::Bus, News::Came),
    said: |frame| said(Role::Bus, frame),
    gone: || HostInput::Servers(Role::Bus, News::Gone),
    work: || Box::<Servers>::default(),
};

const fn server(node: &Node) -> Option<&LaneServer> {
    match &node.kind {
        NodeKind::LaneServer(server) => Some(server),
        _ => None,
    }
}

fn said(role: Role, frame: &[u8]) -> Result<Said, DecodeError> {
    let message = FromServer::decode(frame)?;
    Ok(Said {
        farewell: matches!(message, FromServer::Ended { exits: true }),
        input: HostInput::Servers(role, News::Said(message)),
    })
}

impl Work for Servers {
    fn hear(&mut self, frame: &[u8], now: Instant) -> Result<(), DecodeError> {
        let message = ToServer::decode(frame)?;
        // Messages and signals are never refused.
        let _ = self.handle_input(ServersInput::Message(message), now);
        Ok(())
    }
    fn signal(&mut self, signal: Signal, now: Instant) {
        let input = match signal {
            Signal::Terminate => ServersInput::Terminate,
            Signal::Reload => ServersInput::Reload,
        };
        let _ = self.handle_input(input, now);
    }
    fn handle_timeout(&mut self, now: Instant) {
        Machine::handle_timeout(self, now);
    }
    fn poll_timeout(&self) -> Option<Instant> {
        Machine::poll_timeout(self)
    }
    fn poll(&mut self, _: Instant) -> Option<Does> {
        Some(match self.poll_output()? {
            ServersOutput::Message(message) => Does::Say(message.encode()),
            ServersOutput::Exit => Does::Exit,
        })
    }
}
