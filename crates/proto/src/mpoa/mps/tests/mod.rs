//! Tests of the MPOA server in virtual time: the worked sequence byte for byte, the
//! recorded packets of Linux clients, two and three servers on a network that loses packets, hostile peers.

mod auth;
mod failures;
mod hostile;
mod linux;
mod register;
mod sequence;
mod split;
mod untold;
mod waiting;
mod world;
