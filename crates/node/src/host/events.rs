//! Events of a host for its driver. They pass its station and the plant of a lab as they are.

use super::KernelTrain;
use super::sockets::ToPrograms;
use super::station::steps::Step;
use crate::atm::DataUnitBuf;
use crate::ip::apps::{AppId, AppResult};
use crate::ip::books::{Cause, SocketEvent};
use crate::ip::meter::Sample;
use aerostat_proto::Trace;
use aerostat_proto::split::Role;
use aerostat_wire::AtmAddress;

/// An event of a host.
#[derive(Debug)]
pub enum HostEvent {
    /// A frame for the kernel's interface `lecN`.
    Frame {
        /// N.
        itf: usize,
        /// The frame.
        frame: Vec<u8>,
    },
    /// Many frames for the kernel's interface `lecN`.
    Train {
        /// N.
        itf: usize,
        /// The frames.
        frame: KernelTrain,
    },
    /// A measured packet left or reached the IP stack.
    Sample(Sample),
    /// A program ended.
    Finished(AppId, AppResult),
    /// A frame for a daemon of this host that is a process of its own: an encoded message of its role.
    Daemon(Role, Vec<u8>),
    /// For programs of the machine.
    Program(ToPrograms),
    /// A packet, frame or SDU, or its head, was lost in this host or its adapter.
    Lost(Cause, DataUnitBuf),
    /// A PDU of a program was sent or received, or a call of a program is forgotten.
    Socket(SocketEvent),
    /// An interface has become a member of its network, or is no longer a member.
    Joined {
        /// N of `lecN`.
        itf: usize,
        /// True if the interface is a member.
        joined: bool,
    },
    /// Multicast forward of a BUS of this host reaches a LANE client, or no longer reaches it.
    Reaches {
        /// ATM address of the client.
        address: AtmAddress,
        /// True if the client is reached.
        reached: bool,
    },
    /// A data unit has come one step further.
    Step(Step),
    /// A trace event.
    Trace(Trace),
}
