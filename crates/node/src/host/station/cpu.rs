//! A host's CPU: one server for all packets that the host sends and receives.
//!
//! **Purpose.** Hosts of the 1990s were slower than their links: a packet cost tens of microseconds, and each octet
//! some nanoseconds (copies, checksums), at the sender and at the receiver. With this server a host costs that time.
//! Without one a host is as fast as its link.
//!
//! **Where it stands.** Between the users of the ATM service and the adapter, so that the path of a packet is known:
//!
//! ```text
//!  IP stack, programs ─► LANE, MPOA, Classical IP ─► [send]    ┐        ┌─► queue of the connection ─► link
//!                                                              ├─ CPU ──┤
//!  link ─► reassembly ─► receive path of the adapter ─► [receive] ┘     └─► signalling, LANE, MPOA ... ─► IP stack
//! ```
//!
//! **Objects.** A packet is an SDU of a LANE client, an MPOA client, a member of a Classical IP subnet or a program
//! (*native*, or *atp* for packets of ATP), with its own cost for each encapsulation, to send, to receive, or as an
//! *acknowledgement* (a TCP segment without payload, an ACK or NAK of ATP, in either direction). The octets that count
//! are those of the IP packet, or those of the SDU if it carries something else. Messages of signalling and ILMI cost
//! nothing, unless the host has a signalling manager that takes time ([`crate::manager`]). Those that arrive wait their
//! turn among received packets, so that a RELEASE does not overtake data; those that the host sends do not wait, except
//! those of signalling at a host with such a manager.
//!
//! Writes and reads of the programs of an embedded host on connections of TCP are *calls* ([`CallCosts`]): they wait
//! among the packets to be sent, as processes run after interrupts, and take effect when they are through. A datagram
//! of a program is one write and one packet, so the cost of the packet has both.
//!
//! **Order.** [`Order::Class`] is *interrupt-first*: what was received goes before what is to be sent, as on a host
//! that handles the adapter's interrupts first. [`Order::Arrival`] is *fair*. A packet in service is not interrupted.
//! All SDUs of one direction leave in the order in which they came.
//!
//! **Bounds.** For each direction a number of packets may wait; a further one is lost, counted, and reported
//! ([`Cause::Cpu`](crate::ip::books::Cause::Cpu)). As many messages of signalling and ILMI may wait beside them, or the
//! number that the manager has; when the link goes down, those of a manager are dropped. A
//! program waits for the CPU before it writes its next PDU, so none of its PDUs is lost here. SDUs of a connection that
//! is closed are withdrawn.
//!
//! **Not implemented.** Costs of timers, of packets inside the host, and of what programs do besides their calls; a
//! preemptive CPU; several CPUs.

use crate::atm::{DataUnit, Mark, Received, Sdus};
use crate::encapsulation::Encapsulation;
use crate::host::station::interruptions::{Interrupted, Interruptions};
use crate::inspect::Table;
use crate::inspect::host::{CpuLoad, CpuWork};
use crate::ip::books::packets_in;
use crate::ip::stack::{Call, CallKind, ConnectionId};
use crate::manager::{Counts, ManagerConfig, Scheduler, Seat, Work};
use crate::random;
use crate::server::{Cost, Order, Owned, Queues, Server, Waits};
use crate::signalling::Errand;
use aerostat_proto::{Instant, Sdu};
use aerostat_wire::{Vc, atp};
use rand_pcg::Pcg32;
use rand_pcg::rand_core::Rng;

/// A factor of 1, in millionths.
const WHOLE: u128 = 1_000_000;

/// Label of work that has none: for calls inside the host, and for calls of programs.
const NO_LABEL: Vc = Vc { vpi: 0, vci: 0 };

/// Classes of the queues: the lower one goes first.
const RECEIVED: usize = 0;
const SENT: usize = 1;

/// Costs of packets of one encapsulation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// A packet that the host sends.
    pub send: Cost,
    /// A packet that the host receives.
    pub receive: Cost,
    /// A TCP segment without payload, or an ACK or NAK of ATP, sent or received; `None`: as any packet of its
    /// direction.
    pub ack: Option<Cost>,
}

/// Costs of calls of programs on connections of TCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallCosts {
    /// A write to the send buffer.
    pub write: Cost,
    /// A read from the receive buffer.
    pub read: Cost,
}

/// Configuration of a CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuConfig {
    /// Costs by encapsulation, in the order of [`Encapsulation::ALL`].
    pub costs: [Costs; Encapsulation::ALL.len()],
    /// Costs of calls of programs; `None`: calls do not pass the CPU.
    pub calls: Option<CallCosts>,
    /// Interrupt-first or fair.
    pub order: Order,
    /// Each cost is multiplied by a random number of 1 − jitter to 1 + jitter, all equally likely. Millionths, at most
    /// 1 000 000.
    pub jitter: u32,
    /// Limit of packets that wait, for each direction.
    pub queue: usize,
    /// Costs of messages of signalling; `None`: nothing.
    pub manager: Option<ManagerConfig>,
    /// Other work of the host; `None`: there is no such work.
    pub interruptions: Option<Interruptions>,
    /// Seed of the jitter and of the interruptions.
    pub seed: u64,
}

/// A packet in the CPU.
#[derive(Debug)]
pub(in crate::host) enum Job {
    /// An SDU of a service goes to the adapter.
    Send(Vc, Sdu),
    /// A program writes an SDU.
    Write(Vc, Sdus, Option<Mark>),
    /// A PDU has arrived.
    Receive(Vc, Received),
    /// The manager has a step of a call inside the host.
    Manage(Errand),
    /// A program writes to a connection of TCP, or reads from it.
    Call(ConnectionId, Call),
}

impl Owned for Job {
    type Owner = Vc;
    fn owner(&self) -> Vc {
        self.vc()
    }
}

impl Job {
    pub(in crate::host) const fn vc(&self) -> Vc {
        match self {
            Self::Send(vc, _) | Self::Write(vc, ..) | Self::Receive(vc, _) => *vc,
            Self::Manage(_) | Self::Call(..) => NO_LABEL,
        }
    }

    /// The packet for the accounts; `None` if a program still holds it.
    pub(in crate::host) fn unit(&self) -> Option<DataUnit<'_>> {
        match self {
            Self::Send(_, sdu) => Some(DataUnit::from(&sdu[..])),
            Self::Receive(_, sdu) => Some((&sdu.pdu).into()),
            Self::Write(..) | Self::Manage(_) | Self::Call(..) => None,
        }
    }

    fn octets(&self) -> &[u8] {
        match self {
            Self::Send(_, sdu) => sdu,
            Self::Write(_, sdus, _) => sdus.first(),
            Self::Receive(_, sdu) => sdu.pdu.sdu(),
            Self::Manage(_) | Self::Call(..) => &[],
        }
    }

    fn is_control(&self) -> bool {
        self.is_signalling() || self.vc() == Vc::ILMI
    }

    fn is_signalling(&self) -> bool {
        matches!(self, Self::Manage(_)) || self.vc() == Vc::SIGNALLING
    }

    const fn class(&self) -> usize {
        match self {
            Self::Send(..) | Self::Write(..) | Self::Manage(_) | Self::Call(..) => SENT,
            Self::Receive(..) => RECEIVED,
        }
    }
}

aerostat_wire::named! {
    /// Kinds of work, for the counts.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Kind {
        Send = "send",
        Receive = "receive",
        Acknowledgement = "acknowledgement",
        /// Of programs; these are not of any encapsulation.
        Write = "write",
        Read = "read",
    }
}

impl Kind {
    const OF_PACKETS: [Self; 3] = [Self::Send, Self::Receive, Self::Acknowledgement];
    const OF_CALLS: [Self; 2] = [Self::Write, Self::Read];
}

#[derive(Clone, Copy, Debug, Default)]
struct Done {
    packets: u64,
    octets: u64,
    picos: u128,
}

impl Done {
    fn add(&mut self, octets: usize, picos: u128) {
        self.packets += 1;
        self.octets += octets as u64;
        self.picos += picos;
    }
}

/// Packets that found no room.
#[derive(Clone, Copy, Debug, Default)]
struct Lost {
    sent: u64,
    received: u64,
    control: u64,
}

/// The CPU. See the documentation of this module.
#[derive(Debug)]
pub(in crate::host) struct Cpu {
    config: CpuConfig,
    queues: Queues<Job, 2>,
    jitter: Pcg32,
    /// Counts by encapsulation and kind of work.
    done: [[Done; 3]; Encapsulation::ALL.len()],
    /// Counts of calls of programs by kind.
    called: [Done; 2],
    lost: Lost,
    /// Messages of signalling and ILMI here, by class.
    control: [usize; 2],
    messages: Counts,
    /// Scheduler of the CPU that a manager shares with programs; `None` if it has the CPU alone.
    scheduler: Option<Box<Scheduler>>,
    /// Other work; `None` without it.
    interrupted: Option<Box<Interrupted>>,
    /// When the host was switched on.
    since: Instant,
}

impl Cpu {
    pub(in crate::host) fn new(config: CpuConfig, now: Instant) -> Self {
        Self {
            queues: Queues::new(Server::of_time(), config.order),
            jitter: random::stream(config.seed, "cpu", "jitter"),
            done: [[Done::default(); 3]; Encapsulation::ALL.len()],
            called: [Done::default(); 2],
            lost: Lost::default(),
            control: [0; 2],
            messages: Counts::default(),
            scheduler: config
                .manager
                .and_then(|manager| manager.sharing)
                .and_then(|sharing| Scheduler::new(sharing, config.seed, now)),
            interrupted: config
                .interruptions
                .map(|means| Box::new(Interrupted::new(means, config.seed, now))),
            since: now,
            config,
        }
    }

    /// Takes a packet; returns it if too many wait.
    pub(in crate::host) fn offer(
        &mut self,
        job: Job,
        over: Option<Encapsulation>,
        now: Instant,
    ) -> Result<(), Job> {
        if let Some(full) = self.full(&job) {
            *full += 1;
            return Err(job);
        }
        self.control[job.class()] += usize::from(job.is_control());
        let work = match &job {
            Job::Call(_, call) => self.call(*call),
            _ if job.is_control() => self.message(&job),
            _ => self.work(&job, over.unwrap_or(Encapsulation::Lane)),
        };
        let Self {
            queues,
            scheduler,
            interrupted,
            config,
            ..
        } = self;
        let mut pace = paced((scheduler, interrupted), config.manager);
        queues.offer_paced(job.class(), work, job, now, &mut pace);
        Ok(())
    }

    /// True if messages of signalling that the host sends pass the CPU.
    pub(in crate::host) const fn has_manager(&self) -> bool {
        self.config.manager.is_some()
    }

    /// Cost of a message of signalling or ILMI, in picoseconds. Counts it.
    fn message(&mut self, job: &Job) -> u128 {
        let manager = self.config.manager.filter(|_| job.is_signalling());
        let Some(work) = manager.and_then(|manager| work_of(manager, job)) else {
            return 0;
        };
        let factor = self.factor();
        let jittered = |picos| picos * factor / WHOLE;
        // The manager of a call inside the host writes the message and reads it.
        let read = match job {
            Job::Manage(_) => self.messages.add(work, false, jittered),
            _ => 0,
        };
        let written = job.class() == SENT;
        read + self.messages.add(work, written, jittered)
    }

    /// The random factor of a cost, in millionths.
    fn factor(&mut self) -> u128 {
        if self.config.jitter == 0 {
            return WHOLE;
        }
        let span = 2 * u64::from(self.config.jitter) + 1;
        let draw = (u64::from(self.jitter.next_u32()) * span) >> 32;
        WHOLE + u128::from(draw) - u128::from(self.config.jitter)
    }

    /// The counter of losses, if there is no room for a packet.
    fn full(&mut self, job: &Job) -> Option<&mut u64> {
        let mut most = self.config.queue;
        let class = job.class();
        let packets = self
            .queues
            .waiting(class)
            .saturating_sub(self.control[class]);
        let (waiting, lost) = match job {
            // Calls have a limit of their own.
            Job::Manage(_) => return None,
            _ if job.is_control() => {
                most = self.config.manager.map_or(most, |manager| manager.queue);
                (self.control[class], &mut self.lost.control)
            }
            Job::Receive(..) => (packets, &mut self.lost.received),
            Job::Send(..) => (packets, &mut self.lost.sent),
            // Each connection of a program has one PDU at most, or one call.
            Job::Write(..) | Job::Call(..) => return None,
        };
        (waiting >= most).then_some(lost)
    }

    /// Cost of a packet, in picoseconds. The packet is counted.
    fn work(&mut self, job: &Job, over: Encapsulation) -> u128 {
        let (octets, acknowledges) = match over {
            Encapsulation::Native => (job.octets().len(), false),
            Encapsulation::Atp => (job.octets().len(), is_answer(job.octets())),
            _ => size_of(job.octets()),
        };
        let costs = &self.config.costs[over as usize];
        let (kind, cost) = match job.class() {
            SENT => (Kind::Send, costs.send),
            _ => (Kind::Receive, costs.receive),
        };
        let (kind, cost) = match acknowledges {
            true => (Kind::Acknowledgement, costs.ack.unwrap_or(cost)),
            false => (kind, cost),
        };
        let picos = cost.picos(octets) * self.factor() / WHOLE;
        self.done[over as usize][kind as usize].add(octets, picos);
        picos
    }

    /// Cost of a call of a program, in picoseconds. Counts it.
    fn call(&mut self, call: Call) -> u128 {
        let costs = self.config.calls.unwrap_or_default();
        let (kind, cost) = match call.kind {
            CallKind::Write => (0, costs.write),
            CallKind::Read => (1, costs.read),
        };
        let picos = cost.picos(call.octets) * self.factor() / WHOLE;
        self.called[kind].add(call.octets, picos);
        picos
    }

    /// The next packet that is through by `now`.
    pub(in crate::host) fn take(&mut self, now: Instant) -> Option<Job> {
        let Self {
            queues,
            scheduler,
            interrupted,
            config,
            ..
        } = self;
        let others = (scheduler, interrupted);
        let job = queues.take_paced(now, &mut paced(others, config.manager))?;
        self.let_go(&job);
        Some(job)
    }

    fn let_go(&mut self, job: &Job) {
        self.control[job.class()] -= usize::from(job.is_control());
    }

    /// Removes the packets of a label that was closed.
    pub(in crate::host) fn withdraw(&mut self, vc: Vc) -> Vec<Job> {
        let gone = self.queues.withdraw(vc);
        gone.iter().for_each(|job| self.let_go(job));
        gone
    }

    pub(in crate::host) fn deadline(&self) -> Option<Instant> {
        self.queues.deadline()
    }

    /// The packets here, except those that a program still holds.
    pub(in crate::host) fn held(&self) -> impl Iterator<Item = DataUnit<'_>> {
        self.queues.jobs().filter_map(Job::unit)
    }

    /// The tables of `inspect`.
    pub(in crate::host) fn tables(&self, now: Instant) -> [Table; 2] {
        let all = Encapsulation::ALL.into_iter().zip(&self.done);
        let work = all.flat_map(|(over, done)| {
            let kinds = Kind::OF_PACKETS.into_iter().zip(done);
            kinds.map(move |(kind, done)| (over.name(), kind, done))
        });
        let calls = Kind::OF_CALLS.into_iter().zip(&self.called);
        let work = work.chain(calls.map(|(kind, done)| ("tcp", kind, done)));
        let work = work.filter(|(_, _, done)| done.packets > 0);
        let work = work.map(|(over, kind, done)| CpuWork {
            work: kind.name().into(),
            encapsulation: over.into(),
            packets: done.packets,
            octets: done.octets,
            cost_us: (done.picos / 1_000_000) as u64,
        });
        let work = work.chain(self.messages.rows());
        [Table::of([self.load(now)]), Table::of(work)]
    }

    fn load(&self, now: Instant) -> CpuLoad {
        let since = now.since(self.since).as_nanos();
        CpuLoad {
            send_lost: self.lost.sent,
            receive_lost: self.lost.received,
            control_lost: self.lost.control,
            ..CpuLoad::of(&self.queues, RECEIVED, SENT, self.config.order, since, now)
        }
    }
}

impl CpuLoad {
    /// The load of a server with queues for what is received and what is sent, without losses; `since` is how long it
    /// is on, in nanoseconds.
    pub(crate) fn of<J: Owned>(
        queues: &Queues<J, 2>,
        received: usize,
        sent: usize,
        order: Order,
        since: u128,
        now: Instant,
    ) -> Self {
        let busy = queues.busy(now);
        let mean = |waits: Waits| (waits.sum.as_nanos() / u128::from(waits.jobs.max(1))) as u64;
        let [receive, send] = [received, sent].map(|class| queues.waits(class));
        Self {
            service: match order {
                Order::Class => "interrupt-first".into(),
                Order::Arrival => "fair".into(),
            },
            utilisation_ppm: (busy.as_nanos() * 1_000_000 / since.max(1)) as u64,
            busy_us: busy.as_micros() as u64,
            send_waiting: queues.waiting(sent),
            receive_waiting: queues.waiting(received),
            send_lost: 0,
            receive_lost: 0,
            control_lost: 0,
            send_wait_ns: mean(send),
            receive_wait_ns: mean(receive),
            send_longest_wait_us: send.longest.as_micros() as u64,
            receive_longest_wait_us: receive.longest.as_micros() as u64,
        }
    }
}

/// The work of a job that begins: a message of signalling takes longer if others share the CPU with the manager, and
/// any job if other work interrupts it.
fn paced<'a>(
    (scheduler, interrupted): (
        &'a mut Option<Box<Scheduler>>,
        &'a mut Option<Box<Interrupted>>,
    ),
    manager: Option<ManagerConfig>,
) -> impl FnMut(Instant, &Job, u128) -> u128 + 'a {
    move |begins, job, work| {
        let shared = scheduler
            .as_mut()
            .filter(|_| work > 0 && job.is_signalling());
        let work = shared.map_or(work, |scheduler| {
            let message = manager.and_then(|manager| work_of(manager, job));
            let of_user = message.map_or(0, |message| message.of_user(work));
            scheduler.takes(begins, of_user, work - of_user, job.class() == SENT)
        });
        let interrupted = interrupted.as_mut();
        interrupted.map_or(work, |interrupted| interrupted.takes(begins, work))
    }
}

/// The work of a message of signalling.
fn work_of(manager: ManagerConfig, job: &Job) -> Option<Work> {
    match job {
        Job::Manage(errand) => Some(manager.half(errand.message())),
        _ => manager.work(job.octets(), Seat::Host),
    }
}

/// True for an ACK or NAK of ATP.
fn is_answer(packet: &[u8]) -> bool {
    matches!(
        atp::Pdu::decode(packet),
        Ok(atp::Pdu::Ack(_) | atp::Pdu::Nak(_))
    )
}

/// Octets of the IPv4 packet that an SDU carries, or of the SDU; true if it is a TCP segment without payload.
fn size_of(sdu: &[u8]) -> (usize, bool) {
    let packets = packets_in(sdu).into_iter().flatten();
    let mut sizes = packets.filter_map(packet_size);
    sizes.next().unwrap_or((sdu.len(), false))
}

/// Octets of an IPv4 packet, and whether it is a TCP segment without payload; `None` for anything else.
fn packet_size(packet: &[u8]) -> Option<(usize, bool)> {
    let header: &[u8; 20] = packet.first_chunk()?;
    let header_len = usize::from(header[0] & 15) * 4;
    let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
    if header[0] >> 4 != 4 || header_len < 20 || total < header_len || total > packet.len() {
        return None;
    }
    let whole = u16::from_be_bytes([header[6], header[7]]) & 0x3fff == 0;
    let segment = packet.get(header_len..total)?;
    let data_offset = segment.get(12).map(|octet| usize::from(octet >> 4) * 4);
    let empty = header[9] == 6 && whole && data_offset == Some(segment.len());
    Some((total, empty))
}

#[cfg(test)]
mod tests;
