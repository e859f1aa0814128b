//! Protocol machines: input and time go in, effects and the next deadline come out.
//!
//! Nothing here does I/O, reads a clock, starts a thread or keeps a global. Every machine obeys
//! [`Machine`] and its laws, which [`machine::settle`] checks in tests.

pub mod atm;
pub mod clip;
pub mod deadlines;
pub mod discard;
pub mod ilmi;
pub mod lane;
pub mod machine;
mod mix;
pub mod mpoa;
pub mod nhrp;
mod retry;
pub mod saal;
pub mod sigd;
pub mod split;
pub mod sscop;
#[cfg(test)]
mod testing;
pub mod time;
pub mod timers;
pub mod trace;
pub mod uni;

pub use atm::{AtmEvent, AtmRequest, Cause, ConnId, PartyId};
pub use deadlines::Deadlines;
pub use machine::{Machine, Refused};
pub use retry::Backoff;
pub use time::{Duration, Instant};
pub use timers::TimerTable;
pub use trace::Trace;
