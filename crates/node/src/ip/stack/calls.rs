//! Calls of programs that take time of the host's CPU: writes to a connection, and reads from it.
//!
//! A program that writes or reads has its octets copied, which cost hosts of the 1990s as much as a packet. On a host
//! whose calls take time, a call is handed to the CPU (the stack's output), and takes effect once the CPU is through
//! (its input): octets enter the send buffer, or leave the receive buffer, only then. So a segment waits for the write
//! that made it, and the window opens after the read.
//!
//! **Bounds.** A connection has at most one call: its program waits for it, as a process of its own would. Calls of
//! other connections of a program do not wait for it.

use super::connections::ConnectionId;

/// Kinds of calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallKind {
    /// Octets go from the program to the send buffer.
    Write,
    /// Octets go from the receive buffer to the program.
    Read,
}

/// A call of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Its kind.
    pub kind: CallKind,
    /// Octets that it moves, at least 1.
    pub octets: usize,
}

/// The call of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Turn {
    /// None.
    #[default]
    Free,
    /// The CPU has it.
    Working(Call),
    /// The CPU is through; the program does it when it runs.
    Through(Call),
}

impl Turn {
    /// True if the program can make a call of this kind, or finish one.
    pub(super) fn allows(self, kind: CallKind) -> bool {
        match self {
            Self::Free => true,
            Self::Working(_) => false,
            Self::Through(call) => call.kind == kind,
        }
    }
}

/// Calls for the CPU, in order.
#[derive(Default)]
pub(super) struct Calls {
    asked: Vec<(ConnectionId, Call)>,
}

impl Calls {
    /// Octets that a call on this connection moves now: all of them once the CPU is through with it, otherwise none.
    pub(super) fn moves(&mut self, on: ConnectionId, turn: &mut Turn, call: Call) -> usize {
        match *turn {
            Turn::Through(done) if done.kind == call.kind => {
                *turn = Turn::Free;
                done.octets.min(call.octets)
            }
            Turn::Free if call.octets > 0 => {
                *turn = Turn::Working(call);
                self.asked.push((on, call));
                0
            }
            _ => 0,
        }
    }

    /// The calls that programs have made.
    pub(super) fn take(&mut self) -> Vec<(ConnectionId, Call)> {
        std::mem::take(&mut self.asked)
    }
}
