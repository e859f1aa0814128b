//! LAN Emulation: control frames, their TLVs, and the header of data frames.
//!
//! ```text
//! control  FF00 | protocol 01 | version 01 | op-code | 102 octets of fields | TLVs      (control.rs)
//! ready    FF00 | protocol 01 | version 01 | op-code                                    (control.rs)
//! data     LECID (0001..FEFF, or 0) | Ethernet frame without FCS                        (data.rs)
//! ```
//! Control frames also travel on data connections (READY, FLUSH); the first two octets tell them apart.
//!
//! Standards: ATM Forum af-lane-0021 (LUNI 1.0), af-lane-0084 (LUNI 2.0), af-mpoa-0114 (TLVs of MPOA).
//! The value of the Device Type TLV is [`crate::mpoa::DeviceType`].
//!
//! Not implemented: token ring data frames, LLC-multiplexed data frames, LNNI messages (their op-codes
//! decode as unknown and are kept).

mod control;
mod data;
mod size;
mod tlv;

pub use control::{Control, ControlFrame, ElanName, Flags, LanDestination, OpCode, Status};
pub use data::{DataFrame, MIN_DATA_SDU, is_control};
pub use size::{CONTROL_SDU, LanType, MaxFrameSize};
pub use tlv::{Tlv, TlvList, TlvType};
