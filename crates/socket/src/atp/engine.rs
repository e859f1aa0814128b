//! The engine: the thread that waits on behalf of all connections of the process.

use super::connection::Shared;
use super::state::{State, Wants, clock};
use crate::{Error, LARGEST_SDU};
use aerostat_proto::Deadlines;
use rustix::buffer::spare_capacity;
use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{io, thread};

/// The number of the descriptor that wakes the engine; connections have numbers from 1 on.
const WAKE: u64 = 0;
/// Descriptors that are looked at in one turn.
const EVENTS: usize = 64;

/// Mail of other threads to the engine.
#[derive(Debug, Default)]
struct Mail {
    numbers: u64,
    /// Connections that are new.
    new: Vec<(u64, Arc<Shared>)>,
    /// Connections that wait for something else than before.
    changed: Vec<u64>,
}

/// The engine. There is one in a process; it begins with the first connection.
#[derive(Debug)]
pub(super) struct Engine {
    epoll: OwnedFd,
    wake: OwnedFd,
    mail: Mutex<Mail>,
}

static ENGINE: Mutex<Option<&'static Engine>> = Mutex::new(None);

impl Engine {
    /// The engine of this process.
    pub(super) fn get() -> Result<&'static Self, Error> {
        let mut place = ENGINE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(engine) = *place {
            return Ok(engine);
        }
        let engine: &'static Self = Box::leak(Box::new(Self::new()?));
        let thread = thread::Builder::new().name("atp".to_owned());
        thread.spawn(move || Turns::of(engine).run())?;
        *place = Some(engine);
        Ok(engine)
    }

    fn new() -> Result<Self, Error> {
        let made = || -> io::Result<Self> {
            let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
            let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
            let data = epoll::EventData::new_u64(WAKE);
            epoll::add(&epoll, &wake, data, epoll::EventFlags::IN)?;
            Ok(Self {
                epoll,
                wake,
                mail: Mutex::default(),
            })
        };
        Ok(made()?)
    }

    fn mail(&self) -> MutexGuard<'_, Mail> {
        self.mail.lock().unwrap_or_else(PoisonError::into_inner)
    }
    fn wake_up(&self) {
        // A full counter wakes as well.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }

    /// Serves a connection from now on. Returns its number.
    pub(super) fn add(&self, shared: &Arc<Shared>) -> Result<u64, Error> {
        let mut mail = self.mail();
        mail.numbers += 1;
        let number = mail.numbers;
        let data = epoll::EventData::new_u64(number);
        let added = epoll::add(&self.epoll, &shared.socket, data, epoll::EventFlags::IN);
        added.map_err(io::Error::from)?;
        mail.new.push((number, Arc::clone(shared)));
        drop(mail);
        self.wake_up();
        Ok(number)
    }

    /// A connection waits for something else now.
    pub(super) fn look_at(&self, number: u64) {
        self.mail().changed.push(number);
        self.wake_up();
    }
}

/// Data of the engine's thread alone.
struct Turns {
    engine: &'static Engine,
    connections: BTreeMap<u64, Arc<Shared>>,
    deadlines: Deadlines<u64>,
    buffer: Vec<u8>,
}

impl Turns {
    fn of(engine: &'static Engine) -> Self {
        Self {
            engine,
            connections: BTreeMap::new(),
            deadlines: Deadlines::default(),
            buffer: vec![0; LARGEST_SDU],
        }
    }

    fn run(mut self) {
        let mut events = Vec::with_capacity(EVENTS);
        loop {
            let wait = self.deadlines.next().map(|at| {
                let left = at.since(clock());
                Timespec {
                    tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
                    tv_nsec: left.subsec_nanos().into(),
                }
            });
            events.clear();
            match epoll::wait(
                &self.engine.epoll,
                spare_capacity(&mut events),
                wait.as_ref(),
            ) {
                Ok(_) | Err(Errno::INTR) => {}
                // A kernel without the exact wait: a millisecond is exact enough for timers of ATP.
                Err(_) => thread::sleep(std::time::Duration::from_millis(1)),
            }
            self.take_mail();
            for event in &events {
                match event.data.u64() {
                    WAKE => drop(rustix::io::read(&self.engine.wake, &mut [0; 8])),
                    number => self.serve(number, true),
                }
            }
            for number in self.deadlines.due(clock()) {
                self.serve(number, false);
            }
        }
    }

    fn take_mail(&mut self) {
        let (new, changed) = {
            let mut mail = self.engine.mail();
            (
                std::mem::take(&mut mail.new),
                std::mem::take(&mut mail.changed),
            )
        };
        self.connections.extend(new);
        for number in changed {
            if let Some(shared) = self.connections.get(&number).cloned() {
                let wants = shared.lock().armed;
                self.arm(number, &shared, wants);
            }
        }
    }

    /// Reads what has come for a connection, and does what is due.
    fn serve(&mut self, number: u64, read: bool) {
        let Some(shared) = self.connections.get(&number).map(Arc::clone) else {
            return;
        };
        let mut state = shared.lock();
        if read {
            state.read(&shared.socket, &mut self.buffer);
        }
        state.drive(&shared.socket, clock());
        let over = state.is_over();
        let before = self.armed(number, &state);
        state.armed = state.wants();
        let wants = state.armed;
        shared.wake(&state);
        drop(state);
        if over {
            self.connections.remove(&number);
            self.deadlines.set(number, None);
            let _ = epoll::delete(&self.engine.epoll, &shared.socket);
        } else if before != wants {
            self.arm(number, &shared, wants);
        }
    }

    /// Conditions for which the thread has asked the kernel on behalf of a connection.
    fn armed(&self, number: u64, state: &State) -> Wants {
        Wants {
            room: state.armed.room,
            until: self.deadlines.at(&number),
        }
    }

    fn arm(&mut self, number: u64, shared: &Shared, wants: Wants) {
        let mut flags = epoll::EventFlags::IN;
        flags.set(epoll::EventFlags::OUT, wants.room);
        let data = epoll::EventData::new_u64(number);
        let _ = epoll::modify(&self.engine.epoll, &shared.socket, data, flags);
        self.deadlines.set(number, wants.until);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One engine serves all threads of the process.
    #[test]
    fn there_is_one_engine() {
        let threads: Vec<_> = (0..4)
            .map(|_| thread::spawn(|| std::ptr::from_ref(Engine::get().unwrap()) as usize))
            .collect();
        let mut seen: Vec<_> = threads.into_iter().map(|t| t.join().unwrap()).collect();
        seen.dedup();
        assert_eq!(seen.len(), 1);
        assert!(clock() <= clock());
    }
}
