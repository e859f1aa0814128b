//! The trait of all protocol entities, and the laws that they obey.

use crate::Instant;
use core::convert::Infallible;
use core::fmt;

/// A local request that is not allowed in this state. Bytes from a peer never cause it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused(
    /// The reason, in one sentence.
    pub &'static str,
);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}
impl std::error::Error for Refused {}
impl From<Infallible> for Refused {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

/// A protocol entity: no I/O, no clock, no threads, no globals.
///
/// Laws: the same inputs give the same outputs; after a drain no deadline lies in the past; output per input is
/// bounded; inputs without a drain between them lose nothing; peer bytes never panic or `Err`. Work that arises inside
/// a transition is queued; there is no recursion. A parent owns its children by value and passes their outputs on in
/// the same call.
pub trait Machine {
    /// Inputs: from the lower layer, the upper layer, or management.
    type Input<'a>;
    /// Outputs, in order.
    type Output;
    /// Why an input is refused: [`Infallible`] if the machine takes every input in every state. The caller of such a
    /// machine writes `let Ok(()) = machine.handle_input(input, now);`.
    type Refusal: core::error::Error + Into<Refused>;
    /// Applies one input.
    ///
    /// # Errors
    /// [`Self::Refusal`] for a local request that this state does not allow; never for a peer's bytes.
    fn handle_input(&mut self, input: Self::Input<'_>, now: Instant) -> Result<(), Self::Refusal>;
    /// Handles every timer that is due at `now`. Early or repeated calls do nothing.
    fn handle_timeout(&mut self, now: Instant);
    /// The next output, in order; `None` when no output is left.
    #[must_use]
    fn poll_output(&mut self) -> Option<Self::Output>;
    /// When [`Self::handle_timeout`] must be called next: strictly later than the last `now`, or never.
    #[must_use]
    fn poll_timeout(&self) -> Option<Instant>;
}

/// Takes all outputs of `machine` at `now` and checks the laws. The tests of every machine use this.
///
/// # Panics
/// If a law is broken.
pub fn settle<M: Machine>(machine: &mut M, now: Instant) -> Vec<M::Output> {
    machine.handle_timeout(now);
    let mut out = Vec::new();
    while let Some(output) = machine.poll_output() {
        out.push(output);
        assert!(out.len() < 10_000, "unbounded output");
    }
    assert!(
        machine.poll_timeout().is_none_or(|at| at > now),
        "deadline not in the future: the driver would spin"
    );
    machine.handle_timeout(now);
    assert!(
        machine.poll_output().is_none(),
        "a spurious timeout must be a no-op"
    );
    out
}
