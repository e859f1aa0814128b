//! Tests of the MPOA server in virtual time: the worked sequence of the facts book byte for byte, two and
//! three servers with clients on a network that loses packets, and hostile peers.

mod failures;
mod hostile;
mod sequence;
mod world;
