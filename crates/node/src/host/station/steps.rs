//! Steps of a data unit inside a station, for an observer that follows packets from end to end.
//!
//! Cells on links are seen there. Between the reassembly of a PDU and the queue of the adapter nothing passes a link,
//! so the station reports where a unit is: with these steps the time that it spends in a station has names.

use crate::atm::{DataUnitBuf, Pdu};
use aerostat_wire::Vc;

/// A step of a data unit. Its time is that of the event that reports it.
#[derive(Clone, Debug)]
pub enum Step {
    /// The receive path of the adapter has passed a PDU on, to the CPU if the station has one, or else to the host.
    TakenIn {
        /// Its label.
        vc: Vc,
        /// The PDU.
        pdu: Pdu,
    },
    /// The host gets a received PDU.
    Delivered {
        /// Its label.
        vc: Vc,
        /// The PDU.
        pdu: Pdu,
    },
    /// The host gives an SDU to the CPU, to be sent; this is its head.
    ToCpu(DataUnitBuf),
    /// The adapter has put a PDU into the queue of its label.
    Queued {
        /// Its label.
        vc: Vc,
        /// The PDU.
        pdu: Pdu,
    },
}
