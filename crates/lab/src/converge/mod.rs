//! From a running lab to a changed file: the difference, and its needs.
//!
//! **Purpose.** `aerostat up` on a lab that runs compares the lab with the file ([`plan`]) and carries the plan out.
//! Nothing here touches a running machine: a plan is data, made of two resolved labs.
//!
//! **Names and places.** A thing of the file is the same as one of the lab if it has the same kind and name; of a link,
//! its ends count, too. [`beside`] gives the resolved file the indices of the running lab. What is new stands at the
//! end of the lists, and what was removed keeps its place there ([`Retired`](crate::model::Retired)). So nothing that
//! stays changes its index, and no port of a switch its number.
//!
//! **Addresses** follow from numbers that stay, too ([`crate::numbers`]).
//!
//! **Parts.** [`places`](self) has the indices, [`plan`] the comparison, `needs` decides what a running machine takes.

mod needs;
mod places;
mod plan;
#[cfg(test)]
mod tests;

pub use needs::{Interfaces, Means};
pub use places::{MOST_RETIRED, Obstacle, beside};
pub use plan::{Act, Change, Detail, Kind, Needs, Plan, plan};
