//! Bytes to values and back, for every protocol that Aerostat speaks: cells, AAL5, SSCOP, Q.2931, ILMI, LAN Emulation,
//! Classical IP, NHRP, MPOA, pseudowires, and captures for Wireshark.
//!
//! There is one module for each protocol, a file or a folder. A module holds types whose values are valid messages, a
//! `decode` that takes octets, and an `encode` that gives them back.
//!
//! | layer | modules |
//! |---|---|
//! | cells | [`cell`], [`oam`], [`vc`] |
//! | AAL5, and what an SDU begins with; single cells | [`aal5`], [`llc`]; [`aal0`] |
//! | signalling | [`sscop`], [`q2931`]; [`qos`], [`sap`], [`blli`] describe calls; [`ilmi`] registers addresses |
//! | traffic contracts | [`qos`], [`contract`] |
//! | LAN Emulation, Classical IP | [`lane`], [`atmarp`] |
//! | Ethernet behind LAN Emulation | [`vlan`] |
//! | a transport protocol for native ATM | [`atp`] |
//! | NHRP and MPOA | [`nhrp`], [`mpoa`] |
//! | IP, as far as shortcuts need it; TCP | [`ipv4`], [`fragments`], [`ipv6`], [`prefix`]; [`tcp`] |
//! | pseudowires, tunnels | [`mpls`], [`pseudowire`], [`l2tp`]; [`gre`] |
//! | for people | [`summary`]: an SDU in one line; [`pcapng`] and [`link_type`]: captures; [`qos_text`], [`sap_text`]: the texts of linux-atm |
//!
//! # Rules
//!
//! - Decoding never panics, whatever the octets. An error names the field and its offset: [`DecodeError`].
//! - Encoding a valid value cannot fail. What decodes encodes to the same octets, except where the module says
//!   otherwise.
//! - Nothing here knows time or state. Protocols in motion are the matter of the crate `aerostat-proto`.
//!
//! # Example
//!
//! A BGN of SSCOP fits one cell. The receiver puts the cells of a VC together and decodes the SDU:
//!
//! ```
//! use aerostat_wire::aal5::{Reassembler, Segmenter};
//! use aerostat_wire::summary::summary;
//! use aerostat_wire::{Seq8, Seq24, SscopPdu, Vc};
//!
//! let begin = SscopPdu::Begin { sq: Seq8(1), mr: Seq24::new(128), uu: Vec::new() };
//! let mut receiver = Reassembler::new(4104);
//! let mut sdu = None;
//! for (payload, pti) in Segmenter::new(&begin.encode(), 0) {
//!     sdu = receiver.push(&payload, pti, false);
//! }
//! let sdu = sdu.ok_or("the last cell is missing")??.sdu;
//! assert_eq!(SscopPdu::decode(&sdu)?, begin);
//! assert_eq!(summary(Vc::SIGNALLING, &sdu).text, "BGN sq 1 mr 128");
//!
//! let error = SscopPdu::decode(&sdu[..6]).unwrap_err();
//! assert_eq!(error.to_string(), "PDU length at offset 0: bad value 0x6");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! `examples/decode.rs` does the same to a whole capture. Read [`aal5`] and [`sscop`] first: they are short and show
//! the style of the others.

pub mod aal0;
pub mod aal5;
pub mod addr;
pub mod atmarp;
pub mod atp;
pub mod blli;
pub mod cell;
pub mod cell_frame;
pub mod contract;
mod counted;
mod crc;
pub mod error;
pub mod fragments;
pub mod gre;
pub mod ilmi;
pub mod ipv4;
pub mod ipv6;
pub mod l2tp;
pub mod lane;
pub mod line;
pub mod link_type;
pub mod llc;
pub mod mpls;
pub mod mpoa;
mod named;
pub mod nhrp;
pub mod oam;
pub mod pcapng;
pub mod prefix;
pub mod pseudowire;
pub mod q2931;
pub mod qos;
pub mod qos_text;
pub mod read;
pub mod sap;
pub mod sap_text;
pub mod sscop;
pub mod summary;
pub mod tcp;
pub mod test_cell;
pub mod vc;
pub mod vlan;

pub use addr::{AtmAddress, MacAddr};
pub use blli::Blli;
pub use contract::Conformance;
pub use counted::{Count, Counted, counted, names_of, some_of};
pub use error::{DecodeError, ErrorKind};
pub use qos::{AalType, ConnectionQos, Qos, ServiceCategory, TrafficParams};
pub use read::Reader;
pub use sap::{Bhli, Sap};
pub use sscop::{Seq8, Seq24, SscopPdu};
pub use vc::Vc;
