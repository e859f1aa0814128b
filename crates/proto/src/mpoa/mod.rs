//! Multi-Protocol over ATM: shortcuts past the routers for flows that begin over LAN Emulation.

pub mod mps;
