//! Programs of hosts that use the ATM service: those of the lab file, and the service for those of the machine.

use super::Builder;
use crate::model::{Host as HostModel, NodeId, NodeKind};
use crate::plan;
use aerostat_node::host::Host;
use aerostat_node::host::socket_layer::{self, LISTENERS, SOCKETS, SocketLayer};
use aerostat_node::host::sockets::{Program, Role, Sockets};
use aerostat_wire::{AtmAddress, Sap};
use std::sync::Arc;

/// Address and protocol of a listener of the lab file.
fn listened(program: &Program) -> Option<(AtmAddress, Sap)> {
    matches!(program.role, Role::Listen { .. }).then_some((program.local, program.sap))
}

impl Builder<'_> {
    /// With the socket service at every host, for programs of the machine: in real time.
    #[must_use]
    pub fn with_programs(self) -> Self {
        let named = self.lab.nodes().filter_map(|(_, node)| {
            let address = match &node.kind {
                NodeKind::Outside(outside) => *outside.addresses.first()?,
                _ => node
                    .attachment()?
                    .address
                    .with_selector(plan::SELECTOR_SOCKET),
            };
            Some((node.name.clone(), address))
        });
        let outside = self.lab.names.iter().cloned();
        let names = Some(Arc::new(named.chain(outside).collect()));
        Self { names, ..self }
    }

    pub(super) fn add_programs(&self, host: &mut Host, id: NodeId, model: &HostModel, life: u32) {
        if !model.sockets.is_empty() {
            let programs = model.sockets.clone();
            let clock = model.clock.unwrap_or_default();
            host.add_sockets(move |_| {
                let sockets = Sockets::new(programs.clone()).by(clock);
                sockets.of(id.0 as u32, life)
            });
        }
        if let Some(names) = &self.names {
            let config = socket_layer::Config {
                host: host.name().to_owned(),
                address: model.attachment.address.with_selector(0),
                first_selector: plan::SELECTOR_SOCKET,
                taken: model.sockets.iter().filter_map(listened).collect(),
                calls: SOCKETS,
                listeners: LISTENERS,
                names: Arc::clone(names),
            };
            host.add_socket_layer(move |_| SocketLayer::new(config.clone()));
        }
    }
}
