//! A port on which a program listens, and the connections that have come to it.

use super::Net;
use crate::ip::stack::{ConnectionId, Socket};

/// A port and the connections that it has accepted, each with the program's data about it.
pub(super) struct Listener<T> {
    port: u16,
    connections: Vec<(ConnectionId, T)>,
    /// Connections that have been established so far.
    pub(super) accepted: u64,
}

impl<T: Default> Listener<T> {
    pub(super) const fn new(port: u16) -> Self {
        Self {
            port,
            connections: Vec::new(),
            accepted: 0,
        }
    }

    /// Opens the port. A server answers at once, so it would have no Nagle's algorithm.
    pub(super) fn open(&self, net: &mut Net<'_>) {
        net.tcp.listen(self.port, net.app, false);
    }

    /// Takes new connections and serves all of them. Connections that the peer has finished are closed and removed.
    pub(super) fn serve(
        &mut self,
        net: &mut Net<'_>,
        mut serve: impl FnMut(&mut Socket<'_>, &mut T),
    ) {
        while let Some(id) = net.tcp.accept(self.port, net.app) {
            self.connections.push((id, T::default()));
            self.accepted += 1;
        }
        self.connections.retain_mut(|(id, state)| {
            let Some(mut socket) = net.socket(*id) else {
                return false;
            };
            serve(&mut socket, state);
            let open = socket.is_open();
            if !open {
                net.leave(*id);
            }
            open
        });
    }

    pub(super) fn close(&mut self, net: &mut Net<'_>) {
        net.tcp.close_port(self.port, net.app, net.now);
        for (id, _) in self.connections.drain(..) {
            net.leave(id);
        }
    }
}
