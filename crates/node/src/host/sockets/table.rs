//! The table of a host's sockets: places are used again, with another generation, and ended sockets are remembered.

use super::socket::Socket;
use super::{ENDED, Entry, SOCKETS, SocketLayer, SocketRef, Timed};
use std::collections::VecDeque;

impl SocketLayer {
    /// Puts a socket into the table; `None` if the table is full.
    pub(super) fn add(&mut self, socket: Socket) -> Option<SocketRef> {
        let index = match self.free.pop() {
            Some(index) => index,
            None if self.table.entries.len() < SOCKETS => {
                self.table.entries.push(Entry::default());
                (self.table.entries.len() - 1) as u32
            }
            None => {
                self.forget_an_end()?;
                self.free.pop()?
            }
        };
        let entry = &mut self.table.entries[index as usize];
        entry.generation += 1;
        entry.socket = Some(Box::new(socket));
        entry.behaviour = None;
        Some(SocketRef::of(index, entry.generation))
    }
    /// Keeps the cause and the counts of a socket that has ended.
    pub(super) fn remember(&mut self, at: SocketRef) {
        let owner = self
            .get(at)
            .and_then(|socket| socket.sessions.first().copied());
        self.ended.entry(owner).or_default().push_back(at);
        if self.ended.values().map(VecDeque::len).sum::<usize>() > ENDED {
            self.forget_an_end();
        }
    }
    /// Forgets the oldest end of the session that has most of them, so that a program with many failing calls does not
    /// cost others the causes of theirs; `None` if there is no end.
    fn forget_an_end(&mut self) -> Option<()> {
        let most = self.ended.iter().max_by_key(|(_, ends)| ends.len());
        let owner = most.map(|(owner, _)| *owner)?;
        let ends = self.ended.get_mut(&owner)?;
        let oldest = ends.pop_front()?;
        if ends.is_empty() {
            self.ended.remove(&owner);
        }
        self.forget(oldest);
        Some(())
    }
    /// Removes a socket that has neither a call nor a listener.
    pub(super) fn forget(&mut self, at: SocketRef) {
        if let Some(entry) = self.table.get_mut(at)
            && entry.socket.take().is_some()
        {
            self.deadlines.set(Timed::Socket(at), None);
            self.labels.retain(|_, socket| *socket != at);
            self.free.push(at.index() as u32);
        }
    }
}
