//! LAN Emulation over ATM, version 1 and the parts of version 2 that MPOA needs.
//!
//! An emulated LAN (ELAN) makes an ATM network look like an Ethernet. Each station has a client, [`Lec`]; each ELAN has
//! a server, [`Les`], which knows which MAC address belongs to which ATM address, and a broadcast and unknown server,
//! [`Bus`], which copies group frames to all members and sends unicast frames to the owner of their destination.
//! [`Lecs`] tells clients which ELAN they belong to.
//!
//! ```text
//! LEC -- configure direct --> LECS          LEC -- multicast send ------> BUS
//! LEC -- control direct ----> LES           LEC <- multicast forward ---- BUS   (point-to-multipoint)
//! LEC <- control distribute - LES  (p2mp)   LEC -- data direct ---------- LEC
//! ```
//!
//! Each entity is a [`crate::Machine`] that uses the ATM service ([`crate::AtmRequest`], [`crate::AtmEvent`]). The
//! servers can be in processes of their own ([`server`]).
//!
//! **Standards**: ATM Forum af-lane-0021.000 (LUNI 1.0), af-lane-0084.000 (LUNI 2.0).
//!
//! **Not implemented**: token ring, sharing of LLC-multiplexed data direct connections, selective multicast servers
//! apart from the BUS, several servers per ELAN (LNNI), the LECS connection on VPI 0 VCI 17, discovery of the LECS
//! through ILMI (the address may be handed in).

pub mod bus;
pub mod lec;
pub mod lecs;
pub mod les;
mod member;
pub mod params;
mod quota;
pub mod server;
mod tree;

pub use bus::{Bus, BusConfig};
pub use lec::{Lec, LecConfig};
pub use lecs::{Lecs, LecsConfig};
pub use les::{Les, LesConfig};
pub use member::Member;
pub use params::{
    LecLimits, LecParams, LecRanges, QuotaRanges, Quotas, ServerParams, ServerRanges,
};
pub use server::{LaneServer, ServerConfig};
