//! Costs of a signalling manager: the process of a host or switch that handles messages of call control.
//!
//! **Purpose.** In many systems of the 1990s call control was a process, and setting up a call took the time of that
//! process. Cambridge's ATM socket family (Black and Crosby, 1993) needed 20 ms between two workstations, and twice as
//! much over a switch with the same manager. With these costs a message takes time at each node on its way.
//!
//! **What costs.** A message of call control (Q.2931, Q.2971) costs [`ManagerConfig::message`] where it is read and
//! where it is written, and [`ManagerConfig::hand_over`] for each boundary that it passes between processes. Each
//! message passes that between the link, which the kernel has, and the manager. At a host, messages that a user causes
//! or hears of also pass that between manager and user: SETUP, CONNECT, RELEASE, and the messages about leaves. PDUs of
//! SSCOP without a message, and ILMI, cost nothing, but wait their turn; a message that SSCOP sends again costs again.
//!
//! A call inside a host has no message on a link. Its one manager does what two managers do for a call between hosts:
//! the half of one end writes SETUP, CONNECT and RELEASE, and the half of the other end reads them, with both
//! hand-overs on each side. Nothing confirms them: there is no CONNECT ACKNOWLEDGE and no RELEASE COMPLETE. Such a
//! message has no octets.
//!
//! **Where.** At a host the messages are work of its CPU ([`crate::host::CpuConfig`]), in both directions, beside the
//! packets. At a switch a server of its own has the messages of all ports, in the order in which they come
//! ([`crate::switch`]).
//!
//! **Who shares the CPU.** With [`ManagerConfig::sharing`] other programs compete with a host's manager, under the
//! scheduler of a time-sharing system. A message then takes the time until the manager, and the user for one hand-over
//! of a message of a user, have had their work. Packets are handled by interrupts, and compete with nothing.
//!
//! **Bounds.** At most [`ManagerConfig::queue`] PDUs of a signalling channel wait, at a host and for each port of a
//! switch. A further one is lost and counted; SSCOP sends it again.
//!
//! **Not implemented.** A manager that is interrupted by packets: they wait behind a message, also while it waits for
//! the CPU. Other programs at a switch.

mod scheduler;

pub(crate) use scheduler::Scheduler;
pub use scheduler::Sharing;

use crate::server::Cost;
use aerostat_wire::q2931::{Message, MessageType};
use aerostat_wire::sscop::SscopPdu;

/// Default of [`ManagerConfig::queue`].
pub const QUEUE: usize = 300;

/// Costs of a manager. The octets that count are those of the message, without SSCOP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ManagerConfig {
    /// A message, where it is read or written.
    pub message: Cost,
    /// Passing a message from one process to another.
    pub hand_over: Cost,
    /// Messages that end a call (RELEASE, RELEASE COMPLETE) and their hand-overs cost this share, in millionths.
    pub release: u32,
    /// PDUs of a signalling channel that may wait.
    pub queue: usize,
    /// Programs that share the CPU of a host with its manager; `None` at a switch.
    pub sharing: Option<Sharing>,
}

/// The node whose manager it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seat {
    Host,
    Switch,
}

/// The work of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Work {
    /// Octets of the message.
    pub(crate) octets: u64,
    pub(crate) hand_overs: u64,
    /// Costs of the message and of its hand-overs, in picoseconds.
    pub(crate) picos: [u128; 2],
}

/// Messages that a host's user causes or hears of.
const OF_USERS: [MessageType; 7] = [
    MessageType::SETUP,
    MessageType::CONNECT,
    MessageType::RELEASE,
    MessageType::ADD_PARTY,
    MessageType::ADD_PARTY_ACK,
    MessageType::ADD_PARTY_REJECT,
    MessageType::DROP_PARTY,
];

/// Messages that end a call.
const OF_ENDS: [MessageType; 2] = [MessageType::RELEASE, MessageType::RELEASE_COMPLETE];

/// A share of 1, in millionths.
const WHOLE: u128 = 1_000_000;

impl Work {
    /// The part of `picos`, the whole work of this message, that is the user's: one of two hand-overs.
    pub(crate) fn of_user(&self, picos: u128) -> u128 {
        let [message, hand_overs] = self.picos;
        match (self.hand_overs, message + hand_overs) {
            (2, all) if all > 0 => picos * hand_overs / (2 * all),
            _ => 0,
        }
    }
}

impl ManagerConfig {
    /// The work that a PDU of a signalling channel makes; `None` if it has no message.
    pub(crate) fn work(&self, pdu: &[u8], seat: Seat) -> Option<Work> {
        if !SscopPdu::is_data(pdu) {
            return None;
        }
        let Ok(SscopPdu::Data { info, .. }) = SscopPdu::decode(pdu) else {
            return None;
        };
        Some(self.work_of(Message::kind_in(&info), info.len(), seat))
    }

    /// The work of one end with a message of a call inside a host.
    pub(crate) fn half(&self, kind: MessageType) -> Work {
        self.work_of(Some(kind), 0, Seat::Host)
    }

    fn work_of(&self, kind: Option<MessageType>, octets: usize, seat: Seat) -> Work {
        let of_user = kind.is_some_and(|kind| OF_USERS.contains(&kind));
        let share = match kind.is_some_and(|kind| OF_ENDS.contains(&kind)) {
            true => u128::from(self.release),
            false => WHOLE,
        };
        let hand_overs = if seat == Seat::Host && of_user { 2 } else { 1 };
        let hand_over = self.hand_over.picos(octets) * share / WHOLE;
        Work {
            octets: octets as u64,
            hand_overs,
            picos: [
                self.message.picos(octets) * share / WHOLE,
                hand_over * u128::from(hand_overs),
            ],
        }
    }
}

/// Work that a manager has had, for display.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) messages: u64,
    pub(crate) octets: u64,
    pub(crate) picos: u128,
}

/// Counts of a manager: messages written, messages read, hand-overs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts([Done; 3]);

impl Counts {
    /// The words in tables.
    const NAMES: [&'static str; 3] = ["send", "receive", "hand-over"];

    /// Counts the work of a message; returns what it costs in all, in picoseconds. `factor` is the jitter.
    pub(crate) fn add(&mut self, work: Work, written: bool, factor: impl Fn(u128) -> u128) -> u128 {
        let [message, hand_over] = work.picos.map(factor);
        let entries = [
            (usize::from(!written), 1, message),
            (2, work.hand_overs, hand_over),
        ];
        for (entry, number, picos) in entries {
            let done = &mut self.0[entry];
            done.messages += number;
            done.octets += work.octets * number;
            done.picos += picos;
        }
        message + hand_over
    }

    /// Rows for the table of work.
    pub(crate) fn rows(&self) -> impl Iterator<Item = crate::inspect::host::CpuWork> {
        let all = Self::NAMES.into_iter().zip(self.0);
        let some = all.filter(|(_, done)| done.messages > 0);
        some.map(|(work, done)| crate::inspect::host::CpuWork {
            work: work.into(),
            encapsulation: "signalling".into(),
            packets: done.messages,
            octets: done.octets,
            cost_us: (done.picos / 1_000_000) as u64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aerostat_wire::sscop::Seq24;
    use proptest::prelude::*;

    const COSTS: ManagerConfig = ManagerConfig {
        message: Cost {
            packet: 1_000_000,
            octet: 1000,
        },
        hand_over: Cost {
            packet: 10_000,
            octet: 0,
        },
        release: 500_000,
        queue: 10,
        sharing: None,
    };

    fn data(message: &[u8]) -> Vec<u8> {
        let (s, info) = (Seq24::new(7), message.to_vec());
        SscopPdu::Data { s, info }.encode()
    }

    #[test]
    fn a_message_costs_by_its_size_and_by_the_boundaries_that_it_passes() {
        let message = |kind: MessageType| [9, 3, 0, 0, 1, kind.0, 0x80, 0, 0];
        for (kind, at_host) in [
            (MessageType::SETUP, 2),
            (MessageType::CONNECT, 2),
            (MessageType::RELEASE, 2),
            (MessageType::CALL_PROCEEDING, 1),
            (MessageType::CONNECT_ACK, 1),
            (MessageType::RELEASE_COMPLETE, 1),
        ] {
            let pdu = data(&message(kind));
            for (seat, hand_overs) in [(Seat::Host, at_host), (Seat::Switch, 1)] {
                let work = COSTS.work(&pdu, seat).unwrap();
                assert_eq!((work.octets, work.hand_overs), (9, hand_overs), "{kind:?}");
                // Messages that end a call cost half in this configuration.
                let part = 1 + u128::from(OF_ENDS.contains(&kind));
                let costs = [1_009_000 / part, 10_000 * u128::from(hand_overs) / part];
                assert_eq!(work.picos, costs);
                let user = if hand_overs == 2 { 10_000 / part } else { 0 };
                assert_eq!(work.of_user(costs[0] + costs[1]), user);
            }
        }
    }

    #[test]
    fn what_has_no_message_costs_nothing() {
        let poll = SscopPdu::Poll {
            ps: Seq24::new(1),
            s: Seq24::new(2),
        };
        assert_eq!(COSTS.work(&poll.encode(), Seat::Host), None);
        assert_eq!(COSTS.work(&[8, 0, 0], Seat::Host), None);
    }

    proptest! {
        #[test]
        fn any_octets_have_a_bounded_cost(octets in proptest::collection::vec(any::<u8>(), 0..300)) {
            for pdu in [octets.clone(), data(&octets)] {
                if let Some(work) = COSTS.work(&pdu, Seat::Host) {
                    prop_assert!(work.octets <= 300 && (1..=2).contains(&work.hand_overs));
                }
            }
        }
    }
}
