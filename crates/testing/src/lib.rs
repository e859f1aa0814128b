//! Parts that the tests of several crates share: a small ATM network in virtual time, without signalling, for machines
//! that use the ATM service; networks of switches (feature `switch`); whole labs (feature `labs`); the command as a
//! child process (feature `command`); random messages of daemons ([`messages`]); scripts for a TCP ([`tcp_script`]);
//! and recordings of Linux ATM ([`recording`]).
//!
//! [`AtmNet`] turns the [`AtmRequest`](aerostat_proto::AtmRequest)s of numbered users into
//! [`AtmEvent`](aerostat_proto::AtmEvent)s of others, after a constant delay, in order. It can lose SDUs, refuse calls,
//! break calls and forget a user. [`World`] drives users of one type ([`AtmUser`]: a machine, or an enum of machines)
//! and checks the rules of [`aerostat_proto::Machine`] that can be checked from outside.

#[cfg(feature = "command")]
pub mod command;
#[cfg(feature = "labs")]
pub mod labs;
pub mod lane;
pub mod messages;
mod net;
pub mod recording;
#[cfg(feature = "command")]
pub mod schema;
#[cfg(feature = "switch")]
pub mod switch;
pub mod tcp_script;
#[cfg(feature = "command")]
pub mod wireshark;

pub use net::{AtmNet, Loss, Refusal};

use aerostat_proto::{AtmUser, Duration, Instant, UserOutput};

/// Users, their network, and the time.
pub struct World<U: AtmUser> {
    /// Virtual time.
    pub now: Instant,
    /// The network.
    pub net: AtmNet,
    /// The users; the index is their number in the network.
    pub users: Vec<U>,
    /// The notes of users, with time and user.
    pub notes: Vec<(Instant, usize, U::Other)>,
    /// Passes a note of one user to another as an input; returns the other's number.
    pub relay: Option<Relay<U>>,
}

/// See [`World::relay`]: the user, its note, all users, and the time.
pub type Relay<U> = fn(usize, &<U as AtmUser>::Other, &mut [U], Instant) -> Option<usize>;

impl<U: AtmUser> World<U> {
    /// An empty world whose network has the constant delay `delay`.
    pub fn new(delay: Duration) -> Self {
        Self {
            now: Instant::ZERO,
            net: AtmNet::new(delay),
            users: Vec::new(),
            notes: Vec::new(),
            relay: None,
        }
    }
    /// Adds a user and returns its number.
    pub fn add(&mut self, user: U) -> usize {
        self.users.push(user);
        self.users.len() - 1
    }
    /// Gives user `who` to `f` (to give it an input), then delivers its outputs.
    pub fn with<R>(&mut self, who: usize, f: impl FnOnce(&mut U, Instant) -> R) -> R {
        let result = f(&mut self.users[who], self.now);
        self.drain(who);
        result
    }
    /// Ends user `who` without an announcement, as a crash does: the network clears its calls. `fresh` takes its place.
    pub fn replace(&mut self, who: usize, fresh: U) {
        self.net.forget(who, self.now);
        self.users[who] = fresh;
    }
    /// Runs until no event is due before `until`; the time is then `until`.
    pub fn run_until(&mut self, until: Instant) {
        let mut spins = 0;
        loop {
            let deadlines = self.users.iter().filter_map(U::poll_timeout);
            let Some(next) = deadlines.chain(self.net.next()).min() else {
                break;
            };
            if next > until {
                break;
            }
            spins = if next > self.now { 0 } else { spins + 1 };
            assert!(spins < 100_000, "the world spins at {}", self.now);
            self.now = self.now.max(next);
            for who in 0..self.users.len() {
                if self.users[who]
                    .poll_timeout()
                    .is_some_and(|at| at <= self.now)
                {
                    self.users[who].handle_timeout(self.now);
                    self.drain(who);
                }
            }
            while let Some((who, event)) = self.net.due(self.now) {
                self.users[who].event(event.borrow(), self.now);
                self.drain(who);
            }
        }
        self.now = until;
    }
    /// Runs for `time`.
    pub fn run_for(&mut self, time: Duration) {
        self.run_until(self.now + time);
    }
    /// The notes since the last call.
    pub fn take_notes(&mut self) -> Vec<(Instant, usize, U::Other)> {
        core::mem::take(&mut self.notes)
    }

    fn drain(&mut self, who: usize) {
        let user = &mut self.users[who];
        user.handle_timeout(self.now);
        let mut told = Vec::new();
        let mut count = 0;
        while let Some(output) = user.poll_output() {
            count += 1;
            assert!(count < 10_000, "user {who}: unbounded output");
            match U::sort(output) {
                UserOutput::Atm(request) => self.net.request(who, request, self.now),
                UserOutput::Other(note) => told.push(note),
            }
        }
        assert!(
            user.poll_timeout().is_none_or(|at| at > self.now),
            "user {who}: deadline not in the future"
        );
        for note in told {
            let relay = self.relay;
            let to = relay.and_then(|relay| relay(who, &note, &mut self.users, self.now));
            self.notes.push((self.now, who, note));
            if let Some(to) = to {
                self.drain(to);
            }
        }
    }
}
