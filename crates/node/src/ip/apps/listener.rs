//! A listening TCP port: smoltcp's sockets hold one connection each, so there is always one more that listens.

use super::Net;
use smoltcp::iface::SocketHandle;
use smoltcp::socket::tcp;

/// Connections that one port serves at a time; each takes the memory of its buffers.
const MAX_CONNECTIONS: usize = 32;

/// A port and the connections that it has accepted, each with what the program remembers of it.
pub(super) struct Listener<T> {
    port: u16,
    listening: Option<SocketHandle>,
    pub(super) connections: Vec<(SocketHandle, T)>,
    /// Connections accepted so far.
    pub(super) accepted: u64,
}

impl<T: Default> Listener<T> {
    pub(super) fn new(port: u16) -> Self {
        Self {
            port,
            listening: None,
            connections: Vec::new(),
            accepted: 0,
        }
    }

    /// Moves an arrived connection to the served ones and listens for the next; true if either was done.
    pub(super) fn accept(&mut self, net: &mut Net<'_>) -> bool {
        let mut moved = false;
        if let Some(handle) = self.listening
            && net.tcp_at(handle).may_recv()
        {
            self.listening = None;
            self.connections.push((handle, T::default()));
            self.accepted += 1;
            moved = true;
        }
        // A handshake that was reset puts the socket back to listening, or closes it.
        if let Some(handle) = self.listening
            && !net.tcp_at(handle).is_open()
        {
            net.sockets.remove(handle);
            self.listening = None;
        }
        if self.listening.is_none() && self.connections.len() < MAX_CONNECTIONS {
            let handle = net.tcp();
            let socket = net.tcp_at(handle);
            socket.set_nagle_enabled(false);
            // A fresh socket and a port that is not 0: listening cannot fail.
            let listens = socket.listen(self.port);
            debug_assert!(listens.is_ok());
            self.listening = Some(handle);
            moved = true;
        }
        moved
    }

    /// Serves every connection: `serve` says whether it did anything. Connections whose peer is done are
    /// closed and let go of.
    pub(super) fn serve(
        &mut self,
        net: &mut Net<'_>,
        mut serve: impl FnMut(&mut tcp::Socket<'static>, &mut T) -> bool,
    ) -> bool {
        let mut moved = false;
        self.connections.retain_mut(|(handle, state)| {
            let socket = net.tcp_at(*handle);
            moved |= serve(socket, state);
            let open = socket.may_recv() || socket.can_recv();
            if !open {
                net.retire(*handle);
                moved = true;
            }
            open
        });
        moved
    }

    pub(super) fn close(&mut self, net: &mut Net<'_>) {
        if let Some(handle) = self.listening.take() {
            net.abort(handle);
        }
        for (handle, _) in self.connections.drain(..) {
            net.retire(handle);
        }
    }
}
