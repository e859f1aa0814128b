//! What a host still waits for before it can send to all others.

use super::Host;

/// A condition that a host still waits for before it can send to everybody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// Interface `lecN` is not a member of its ELAN.
    Elan(usize),
    /// Interface `lecN` is not registered with its ATMARP server.
    Clip(usize),
    /// The NHRP client is not registered with its server.
    Nhrp,
}

impl Host {
    /// The conditions that its interfaces and its NHRP client wait for.
    #[must_use]
    pub fn waits(&self) -> Vec<Waits> {
        let all = self.interfaces.iter().enumerate();
        let interfaces = all.filter_map(|(n, itf)| {
            match itf.client.clip().and_then(|clip| self.machine(clip)) {
                Some(clip) => (!clip.is_ready()).then_some(Waits::Clip(n)),
                None => (!itf.up).then_some(Waits::Elan(n)),
            }
        });
        let client = self.nhc.and_then(|nhc| self.machine(nhc));
        let client = client.filter(|client| !client.is_registered());
        interfaces.chain(client.map(|_| Waits::Nhrp)).collect()
    }
}
