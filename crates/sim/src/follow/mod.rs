//! The way of a packet through a network: where it was at each nanosecond, and what it waited for.
//!
//! **How.** A run is a function of its lab, so a second run is the same run. [`packet`] runs a lab until the packet is
//! made, to learn when that is, and then once more. From that moment on, the second run shows every cell at both ends
//! of each link, and the steps of data units inside end systems ([`Step`](aerostat_node::host::Step)). Nothing is put
//! into the packet and no node is asked anything: it is found as the accounts of flows find it, by its own octets
//! ([`FlowIndex`](aerostat_node::ip::books::FlowIndex)). So its number, its delay and the place of its loss are those
//! of the results. Tests compare the results of a run that is followed with those of one that is not.
//!
//! **What is followed.** A PDU arrives with its last cell, so the stages are those of the last cell of each PDU that
//! carried the packet: behind the other cells of its own PDU and those of other connections at the first port, and then
//! from queue to queue. The stages from the [`Followed::sent`] on have no gap and do not overlap: their sum is the
//! delay that the meter of the receiver measures.
//!
//! **Bounds.** A port remembers the last [`MAX_KEPT`] cells that left it while a packet is followed; a packet that has
//! waited for more of them has its whole waiting time, and [`Wait::complete`] says that its parts are not all known.
//!
//! **Not implemented.** A packet that IP cuts into fragments is followed as far as it is whole; what follows is one
//! stage ([`What::Unseen`]). The answer to an echo request is not followed. Programs with ATM sockets are not followed.

mod departures;
pub mod document;
mod recorder;
pub(crate) mod way;

use crate::run::{LabRun, Watcher};
use aerostat_lab::Lab;
use aerostat_lab::plant::{LineId, NodeId};
use aerostat_node::ip::books::Place;
use aerostat_node::ip::meter::{FlowId, Path};
use aerostat_proto::{Duration, Instant};
use aerostat_wire::Vc;
pub(crate) use recorder::{Look, Recorder};
use std::collections::BTreeSet;

/// Limit of cells that are remembered for a port.
pub const MAX_KEPT: usize = departures::MAX_KEPT;

/// A packet of a flow: its number in the order of sending, from 0.
pub type PacketId = (FlowId, u64);

/// The way of a packet.
#[derive(Clone, Debug, PartialEq)]
pub struct Followed {
    /// The packet.
    pub packet: PacketId,
    /// Time at which its program made it; `None` if it is first seen when it leaves the stack, as for TCP.
    pub offered: Option<Instant>,
    /// Time at which it left the stack of its host, and its node; `None` if it did not.
    pub sent: Option<(Instant, NodeId)>,
    /// The path by which it left.
    pub path: Option<Path>,
    /// Fate of the packet.
    pub fate: Fate,
    /// Stages of its way, in the order of time.
    pub stages: Vec<Stage>,
    /// True if another packet with the same octets in its headers was under way at the same time, as after a restart of
    /// its sender: the stages may be those of the other one.
    pub ambiguous: bool,
}

impl Followed {
    /// The delay that the receiver measures; `None` for a packet that did not arrive.
    #[must_use]
    pub fn delay(&self) -> Option<Duration> {
        match (self.fate, self.sent) {
            (Fate::Delivered { at, .. }, Some((sent, _))) => Some(at.since(sent)),
            _ => None,
        }
    }

    /// True if the time of a stage is a part of the delay: if it is behind the departure from the stack.
    #[must_use]
    pub fn is_counted(&self, stage: &Stage) -> bool {
        let sent = self.sent.map(|sent| sent.0);
        sent.is_some_and(|sent| stage.from >= sent) && stage.what != What::Stack
    }

    /// The sum of the stages that the delay has.
    #[must_use]
    pub fn sum(&self) -> Duration {
        let counted = self.stages.iter().filter(|stage| self.is_counted(stage));
        counted.map(Stage::time).sum()
    }
}

/// Fates of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It reached the stack of its receiver.
    Delivered {
        /// Time of its arrival.
        at: Instant,
        /// The node.
        node: NodeId,
    },
    /// It was lost.
    Lost {
        /// The place that the books have.
        place: Place,
        /// Time at which its first cell, or the packet, was lost.
        at: Instant,
    },
    /// It was still under way when the run ended.
    UnderWay,
}

/// A part of the way.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// The node; for a line, the one that sends.
    pub node: NodeId,
    /// Its beginning.
    pub from: Instant,
    /// Its end.
    pub to: Instant,
    /// Kind of the stage.
    pub what: What,
}

impl Stage {
    /// Its time.
    #[must_use]
    pub fn time(&self) -> Duration {
        self.to.since(self.from)
    }
}

/// Kinds of stages.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// It waits in the stack of the sender, for ARP or for its turn. This is before the delay begins.
    Stack,
    /// It leaves the stack by a path, for this reason.
    Leaves {
        /// The path.
        path: Path,
        /// State of the destination at the sender, in words.
        why: Option<String>,
    },
    /// The sender waits for an address or a connection, or its bridge has it.
    Sender,
    /// A router has it.
    Router,
    /// A LANE server (its BUS), or another end system on the way, has it.
    Relay,
    /// The receiver has it, for example its bridge and its Ethernet.
    Receiver,
    /// The CPU of an end system handles it.
    Cpu {
        /// True if it is being sent.
        sends: bool,
    },
    /// The receive path of an adapter handles it.
    Intake,
    /// Its last cell waits at a port.
    Queue {
        /// The line behind the port.
        line: LineId,
        /// Its label on this line.
        vc: Vc,
        /// The cells of its PDU.
        cells: u16,
        /// User of the connection, in words, at the first port of a connection.
        user: Option<String>,
        /// Cells that it waited for.
        wait: Wait,
    },
    /// Its last cell is being sent.
    Transmission {
        /// The line.
        line: LineId,
        /// Its label there.
        vc: Vc,
    },
    /// Its last cell travels.
    Propagation {
        /// The line.
        line: LineId,
    },
    /// A switch gives its last cell another label. It takes no time.
    Switch {
        /// Port and label at which it came in.
        came: (u16, Vc),
        /// Port and label at which it goes out.
        goes: (u16, Vc),
        /// The verdict of the policer; `None` if the switch polices nothing here.
        policed: Option<Verdict>,
    },
    /// The adapter has all cells of the PDU. It takes no time.
    Reassembly {
        /// Cells of the PDU.
        cells: u16,
        /// Its label.
        vc: Vc,
    },
    /// Nothing is known of it in between, because it was cut into fragments.
    Unseen,
    /// It is lost.
    Lost {
        /// The place.
        place: Place,
    },
}

/// Verdicts of a policer on the last cell of a PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It conforms to the contract.
    Conforms,
    /// It was given CLP 1.
    Tagged,
}

/// Cells that a cell waited for at a port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wait {
    /// Cells of the same PDU, which leave before it.
    pub own: Behind,
    /// Cells of other PDUs by their label, those that took longest first. The PDU's own label is among them if an
    /// earlier PDU of the connection was there.
    pub others: Vec<Behind>,
    /// Time in which the line carried nothing: a shaper, the pace of a reserved rate, or an empty slot.
    pub idle: Duration,
    /// False if there were more cells than a port remembers; the rest of the time is in `idle` then.
    pub complete: bool,
}

/// Cells that left before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Behind {
    /// Their label; `None` for those of the same PDU.
    pub vc: Option<Vc>,
    /// Their number; one that was on the line already counts.
    pub cells: u64,
    /// Time that they took.
    pub time: Duration,
}

/// The result of looking for one packet.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// Its way.
    Way(Box<Followed>),
    /// The flow has only so many packets by the end of the run.
    TooFew(u64),
    /// The watcher ended the run.
    Interrupted,
}

/// Follows one packet of a lab, in two runs that end when its fate is known.
pub fn packet(lab: &Lab, packet: PacketId, watcher: &mut dyn Watcher) -> Found {
    let mut first = LabRun::new(lab, watcher);
    first.seek(packet);
    first.start();
    first.run_to_end();
    let (sought, interrupted) = (first.sought(), first.is_interrupted());
    let Some(at) = sought.at else {
        return match interrupted {
            true => Found::Interrupted,
            false => Found::TooFew(sought.packets),
        };
    };
    let mut second = LabRun::new(lab, watcher);
    second.start();
    second.run_until(Instant::from_nanos(at.as_nanos().saturating_sub(1)));
    second.follow(BTreeSet::from([packet]), true);
    second.run_to_end();
    match second.followed().pop() {
        Some(way) if !second.is_interrupted() => Found::Way(Box::new(way)),
        _ => Found::Interrupted,
    }
}

/// Follows many packets of a lab in one run, to its end; in the order of their ends.
pub fn packets(
    lab: &Lab,
    packets: BTreeSet<PacketId>,
    watcher: &mut dyn Watcher,
) -> (Vec<Followed>, aerostat_lab::report::RunReport) {
    let mut run = LabRun::new(lab, watcher);
    run.follow(packets, false);
    run.start();
    run.run_to_end();
    let followed = run.followed();
    (followed, run.finish_both().0)
}

/// Knowledge of a packet that is sought.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sought {
    /// Time at which it was made, or left its stack.
    pub(crate) at: Option<Instant>,
    /// Packets of its flow so far.
    pub(crate) packets: u64,
}
