//! Bytes to values and back, for every protocol that Aerostat speaks.
//!
//! One module per protocol. Decoding never panics on any input; every error names the field and the
//! offset ([`DecodeError`]). Encoding a valid value cannot fail. Nothing here knows time or state.

pub mod aal5;
pub mod addr;
pub mod atmarp;
pub mod blli;
pub mod cell;
pub mod error;
pub mod ilmi;
pub mod ipv4;
pub mod ipv6;
pub mod lane;
pub mod llc;
pub mod mpoa;
pub mod nhrp;
pub mod oam;
pub mod pcapng;
pub mod prefix;
pub mod q2931;
pub mod qos;
pub mod qos_text;
pub mod read;
pub mod sap;
pub mod sap_text;
pub mod sscop;
pub mod summary;
pub mod vc;

pub use addr::{AtmAddress, MacAddr};
pub use blli::Blli;
pub use error::{DecodeError, ErrorKind};
pub use qos::{Qos, ServiceCategory, TrafficParams};
pub use read::Reader;
pub use sap::{Bhli, Sap};
pub use sscop::{Seq8, Seq24, SscopPdu};
pub use vc::Vc;
