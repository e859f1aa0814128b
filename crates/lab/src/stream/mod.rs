//! The stream of events of a lab: what a picture of it needs, in time and exact to the nanosecond.
//!
//! **Lines.** [`Line`] has them all; `docs/events.md` describes them for readers. The first ones say what the lab
//! consists of. Lines of *state* (connections, members, shortcuts, faults) say what comes, changes and goes: a reader
//! that applies all of them up to a time knows the state after everything of this time. *Messages*, steps of the
//! *story* and *traffic* happen. *Samples* have counters and levels at multiples of an interval.
//!
//! **Exactness.** All state changes in a node's control plane, and the plant notes which nodes had an input, a deadline
//! or power in an instant ([`Plant::take_changed`](crate::plant::Plant::take_changed)). At the end of the instant
//! [`Present`] reads what these nodes say may have changed, and tells the differences. Nothing depends on somebody
//! having thought of an event. Each sample nevertheless compares everything, and counts what was found
//! ([`End::untold`]).
//!
//! **Cost.** A data packet costs a look at its host's memberships. A change of a call costs a look at this call and its
//! way, whatever their number.
//!
//! **Bounds.** `keep` has them; what was left out is counted in [`End`].

mod head;
mod keep;
mod lines;
mod present;
mod recorder;
mod samples;
mod scope;
mod told;
mod ways;

pub(crate) use lines::PVC;

pub use head::{About, parts};
pub use keep::{Bounds, line_text};
pub use lines::*;
pub use present::Present;
pub use recorder::{Options, Recorder, SAMPLE, Stream};
pub use samples::Levels;
