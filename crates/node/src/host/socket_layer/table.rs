//! The table of a host's sockets: places are used again, with another generation, and ended sockets are remembered.

use super::socket::Socket;
use super::{Entry, SOCKETS, Session, SocketLayer, SocketRef, Timed};
use std::collections::BTreeMap;

impl SocketLayer {
    /// Puts a socket into the table; `None` if the table is full.
    pub(super) fn add(&mut self, socket: Socket) -> Option<SocketRef> {
        let index = match self.free.pop() {
            Some(index) => index,
            None if self.entries.len() < SOCKETS => {
                self.entries.push(Entry::default());
                (self.entries.len() - 1) as u32
            }
            None => {
                let oldest = self.most_forgettable()?;
                self.forget(oldest);
                self.free.pop()?
            }
        };
        let entry = &mut self.entries[index as usize];
        entry.generation += 1;
        entry.socket = Some(Box::new(socket));
        Some(SocketRef::of(index, entry.generation))
    }
    /// Takes the end that is to be forgotten off the list: the oldest one of the session that has most of them, so that
    /// a program with many failing calls does not cost others the causes of theirs.
    pub(super) fn most_forgettable(&mut self) -> Option<SocketRef> {
        let owner = |at: &SocketRef| {
            self.get(*at)
                .and_then(|socket| socket.sessions.first().copied())
        };
        let mut counts: BTreeMap<Option<Session>, (usize, usize)> = BTreeMap::new();
        for (place, at) in self.ended.iter().enumerate() {
            counts.entry(owner(at)).or_insert((0, place)).0 += 1;
        }
        // Of sessions with the same number, that with the oldest end.
        let most = counts
            .values()
            .max_by_key(|(count, first)| (*count, core::cmp::Reverse(*first)));
        let place = most.map(|(_, first)| *first)?;
        self.ended.remove(place)
    }
    /// Removes a socket that has neither a call nor a listener.
    pub(super) fn forget(&mut self, at: SocketRef) {
        let entry = self.entries.get_mut(at.index());
        if let Some(entry) = entry.filter(|entry| entry.generation == at.generation())
            && entry.socket.take().is_some()
        {
            self.deadlines.set(Timed::Socket(at), None);
            self.labels.retain(|_, socket| *socket != at);
            self.free.push(at.index() as u32);
        }
    }
}
