//! A listening TCP port. Each socket of smoltcp has one connection, so there is always one additional socket that
//! listens.

use super::Net;
use smoltcp::iface::SocketHandle;
use smoltcp::socket::tcp::{Socket, State};

/// Limit of connections that one port serves at a time, including handshakes; each takes the memory of its buffers.
const MAX_CONNECTIONS: usize = 32;
/// Longest duration of a handshake.
const HANDSHAKE: smoltcp::time::Duration = smoltcp::time::Duration::from_secs(20);

/// A port and the connections that it has accepted, each with the program's data about it.
pub(super) struct Listener<T> {
    port: u16,
    listening: Option<SocketHandle>,
    connections: Vec<Connection<T>>,
    /// Connections that have been established so far.
    pub(super) accepted: u64,
}

struct Connection<T> {
    handle: SocketHandle,
    established: bool,
    state: T,
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

    /// Moves a connection whose handshake has begun to the served ones, and listens for the next one; true if anything
    /// was done. The move happens at the first segment of the handshake, because a second client at the same moment
    /// must find a listening socket.
    pub(super) fn accept(&mut self, net: &mut Net<'_>) -> bool {
        let mut moved = false;
        if let Some(handle) = self.listening
            && net.tcp_at(handle).state() != State::Listen
        {
            self.listening = None;
            let connection = Connection {
                handle,
                established: false,
                state: T::default(),
            };
            self.connections.push(connection);
            moved = true;
        }
        if self.listening.is_none() && self.connections.len() < MAX_CONNECTIONS {
            let handle = net.tcp();
            let nagle = net.options.nagle(false);
            let socket = net.tcp_at(handle);
            socket.set_nagle_enabled(nagle);
            socket.set_timeout(Some(HANDSHAKE));
            // The socket is new and the port is not 0, so listening cannot fail.
            let listens = socket.listen(self.port);
            debug_assert!(listens.is_ok());
            self.listening = Some(handle);
            moved = true;
        }
        moved
    }

    /// Serves every connection: `serve` returns true if it did anything. Connections that the peer has finished are
    /// closed and removed.
    pub(super) fn serve(
        &mut self,
        net: &mut Net<'_>,
        mut serve: impl FnMut(&mut Socket<'static>, &mut T) -> bool,
    ) -> bool {
        let mut moved = false;
        let accepted = &mut self.accepted;
        self.connections.retain_mut(|connection| {
            let socket = net.tcp_at(connection.handle);
            // A reset during the handshake puts the socket back into state LISTEN.
            let failed = matches!(socket.state(), State::Listen | State::Closed);
            if socket.state() == State::SynReceived {
                return true;
            }
            if !failed && !core::mem::replace(&mut connection.established, true) {
                *accepted += 1;
                socket.set_timeout(Some(super::TCP_TIMEOUT));
            }
            moved |= serve(socket, &mut connection.state);
            let open = socket.may_recv() || socket.can_recv();
            if !open {
                net.retire(connection.handle);
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
        for connection in self.connections.drain(..) {
            net.retire(connection.handle);
        }
    }
}
