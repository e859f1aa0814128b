//! Programs of hosts that use the ATM service: those of the lab file, and the service for those of the machine.

use super::Builder;
use crate::model::{Host as HostModel, NodeId, NodeKind};
use crate::plan;
use aerostat_node::host::Host;
use aerostat_node::host::sockets::{Config, LISTENERS, SOCKETS, SocketLayer};
use std::sync::Arc;

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
        if model.sockets.is_empty() && self.names.is_none() {
            return;
        }
        let config = Config {
            host: host.name().to_owned(),
            address: model.attachment.address.with_selector(0),
            first_selector: plan::SELECTOR_SOCKET,
            programs: model.sockets.clone(),
            clock: model.clock.unwrap_or_default(),
            life: (id.0 as u32, life),
            calls: SOCKETS,
            listeners: LISTENERS,
            names: self.names.clone().unwrap_or_default(),
        };
        host.add_sockets(move |_| SocketLayer::new(config.clone()));
    }
}
