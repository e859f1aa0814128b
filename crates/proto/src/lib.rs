//! The protocols of an ATM network as machines without input, output or clock: input and time go in, effects and the
//! next deadline come out.
//!
//! | layer | modules |
//! |---|---|
//! | an assured link for signalling | [`sscop`] (Q.2110), [`saal`] (Q.2130) |
//! | calls at the user-network interface | [`uni`] (Q.2931, Q.2971), [`interface`] (it and its link), [`ilmi`] for addresses |
//! | the ATM service | [`atm`]: what users of connections ask for and are told |
//! | users of the ATM service | [`lane`] (LEC, LES, BUS, LECS), [`clip`], [`line`](mod@line), [`nhrp`], [`mpoa`] (client and server) |
//! | transport protocols | [`atp`] on such connections, [`tcp`] over IP |
//! | parts of them in processes of their own | [`split`], [`sigd`] |
//! | programs of the machine | [`socket`]: the messages of the socket service |
//! | tools of all machines | [`machine`], [`parameters`](mod@parameters), [`time`], [`timers`], [`deadlines`], [`trace`], [`discard`] |
//!
//! # The loop
//!
//! Every machine has four methods, those of [`Machine`], and obeys its laws. A driver
//!
//! 1. gives the machine an input and the time ([`Machine::handle_input`]),
//! 2. takes all its outputs ([`Machine::poll_output`]) and moves each to where it belongs,
//! 3. calls [`Machine::handle_timeout`] when the time of [`Machine::poll_timeout`] has come, and goes on with 2.
//!
//! The octets of a peer never lead to a panic or an error. They lead to a counter, and to the answer that the
//! standard asks for. An error, [`Refused`], says that the machine's own user asked for something that makes no
//! sense. A machine that takes every input says so by its type [`Machine::Refusal`], and its driver writes
//! `let Ok(()) = machine.handle_input(input, now);`. Nothing here reads a clock, starts a thread or keeps a global: the
//! same inputs at the same times give the same outputs.
//!
//! # Example
//!
//! Two ends of a signalling link. The output of one end is given to the other at once; no SDU is lost, so only the
//! timers that poll a quiet link remain.
//!
//! ```
//! use aerostat_proto::saal::{Indication, Input, Output, Request, Saal};
//! use aerostat_proto::sscop::Params;
//! use aerostat_proto::{Instant, Machine};
//!
//! let mut ends = [Saal::new(Params::default()), Saal::new(Params::default())];
//! let now = Instant::ZERO;
//! let mut heard = Vec::new();
//!
//! for request in [Request::Establish, Request::Data(b"SETUP".to_vec())] {
//!     ends[0].handle_input(Input::Upper(request), now)?;
//!     // Until both are quiet: take what an end gives out, and give SDUs to the other end.
//!     let mut quiet = 0;
//!     let mut end = 0;
//!     while quiet < 2 {
//!         quiet += 1;
//!         while let Some(output) = ends[end].poll_output() {
//!             match output {
//!                 Output::Lower(sdu) => {
//!                     ends[1 - end].handle_input(Input::Lower(&sdu), now)?;
//!                     quiet = 0;
//!                 }
//!                 Output::Upper(indication) => heard.push((end, indication)),
//!                 Output::Trace(_) => {}
//!             }
//!         }
//!         end = 1 - end;
//!     }
//! }
//! assert_eq!(heard.len(), 3); // Both are told that the link is up.
//! assert_eq!(heard[2], (1, Indication::Data(b"SETUP".to_vec())));
//! assert!(ends[0].poll_timeout().is_some_and(|at| at > now));
//! # Ok::<(), aerostat_proto::Refused>(())
//! ```
//!
//! `examples/elan.rs` drives two LANE clients, a LES and a BUS in the same way, with timers.
//!
//! # What to read first
//!
//! [`machine`] for the laws, [`atm`] for the service that most machines use, then [`sscop`] as an example of a
//! machine: its front page has the parts that all have (purpose, owners, states, timers, standards, what is not
//! implemented, deviations).

pub mod atm;
pub mod atp;
pub mod changes;
pub mod clip;
pub mod counters;
pub mod deadlines;
pub mod discard;
pub mod ilmi;
pub mod interface;
pub mod lane;
pub mod line;
pub mod machine;
pub mod mix;
pub mod mpoa;
pub mod nhrp;
pub mod parameters;
pub mod requests;
mod retry;
pub mod saal;
pub mod sigd;
pub mod socket;
pub mod split;
pub mod sscop;
pub mod tcp;
pub mod time;
pub mod timers;
pub mod trace;
pub mod uni;
mod vcc;

pub use atm::{
    AtmEvent, AtmRequest, AtmUser, Cause, ConnId, PartyId, Sdu, Several, SharedHeader, UserOutput,
};
pub use changes::Changes;
pub use deadlines::Deadlines;
pub use machine::{Machine, Refused};
pub use retry::Backoff;
pub use time::{Duration, Instant};
pub use timers::{TimerKind, TimerTable};
pub use trace::{Trace, Value, Words};
