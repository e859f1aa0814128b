//! Multi-Protocol over ATM: shortcuts past the routers for flows that begin over LAN Emulation.
//!
//! [`mpc`] is the client (in hosts and edge devices): it notices a flow to a router, asks the router's MPS where
//! the flow leaves the ATM network, and opens a connection to the MPC there. [`mps`] is the server (in routers).
//! The two halves of a client talk by the messages of [`messages`]; [`params`] has the client's constants;
//! [`split`] carries them between processes.

pub mod messages;
pub mod mpc;
pub mod mps;
pub mod params;
pub mod split;

pub use mpc::{Mpc, MpcConfig};
pub use mps::{Mps, MpsConfig};
