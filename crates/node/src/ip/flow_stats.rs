//! Figures from samples: for each flow and path the accounts, throughput, order, delay and delay variation.
//!
//! **Definitions.** A packet belongs to the path by which its sender sent it; a packet that never left its host belongs
//! to [`Path::Lane`]. The time of a flow is divided where the sender changes path. Then, for each path:
//!
//! - *offered*: packets that the sending program made; for TCP, segments with payload that the sender's stack made;
//! - *refused*: offered packets that the sender's stack did not accept, by reason; `offered = sent + refused`;
//! - *sent*: packets that the sender's stack accepted, including those that wait there for ARP or are dropped there;
//!   `sent = delivered + lost + under way`;
//! - *delivered*: packets that reached the receiver's IP stack; datagrams only if a program listens there, as far as is
//!   known;
//! - *lost*: by the place where the first cell, or the whole packet, was discarded. A packet is not lost if another
//!   copy of it arrives. A packet is *unexplained* if it has disappeared without a report of its loss: in virtual time
//!   their number is always 0;
//! - *under way*: packets still in a queue, on a link or in a host's memory;
//! - *duration*: from the start of the [`Schedule`], or the change to this path, to the change to another path, or the
//!   end of the schedule; the sum of all such periods. So N packets at a rate have the time of N intervals. A flow
//!   without a schedule has the time from the first to the last offered packet;
//! - *throughput*: octets of payload received over the duration, to which each period adds the time after it to the
//!   last packet of the path that was received before the next period. So a throughput exceeds the rate of a line by a
//!   packet a period at most. A single packet without a schedule has a duration of zero, and therefore no throughput.
//!   For TCP only octets count that the receiver did not have before (goodput);
//! - *out of sequence*: packets received after a packet of the same flow that was sent later;
//! - *delay*: time from leaving one stack to reaching the other;
//! - *delay variation*: the absolute difference of the delays of two packets of the path that were received one after
//!   the other. Chapter 5.4 of the thesis compares the same: the time between two adjacent packets at transmission and
//!   at receipt; its Table 5.7 gives mean, variance, standard deviation and maximum;
//! - *round trip*: time from leaving the stack to the return of the answer, for ICMP echo; it belongs to the path of
//!   the request;
//! - *unanswered*: delivered ICMP echo requests whose answers have neither returned nor are under way;
//! - *quality* of telephone calls, by [`super::emodel`];
//! - *retransmitted*: TCP segments sent with octets that had been sent before.
//!
//! **Bounds.** A flow remembers each packet that is under way, however many there are: their number has the bounds of
//! the queues and lines that hold them. A lost packet is remembered while a copy of it can still arrive. The owner
//! calls [`FlowStats::sweep`] when [`FlowStats::wants_sweep`] says so; then the lost packets of which nothing is left
//! in the network become numbers. So memory follows the packets under way, and [`MAX_LOOSE`] lost ones. A series has
//! the first [`MAX_SERIES`] packets that arrived, and the number of the others.

mod connections;
mod flow;
mod series;
mod stream;

use super::books::{FlowIndex, Place, Refusal, SocketEvent};
use super::emodel::Quality;
use super::meter::{FlowId, FlowSpec, PacketKey, Path, Sample, Side};
use crate::atm::{DataUnit, Mark, SocketId};
use crate::distribution::Summary;
use aerostat_proto::{Duration, Instant};
pub use connections::ConnectionReport;
use connections::Connections;
use flow::Flow;
pub use series::{Arrival, Delta, MAX_SERIES, Series};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// Lost packets and echo requests that are remembered before a [`FlowStats::sweep`]; or as many as the sweep before has
/// left, if these are more.
pub const MAX_LOOSE: usize = 1 << 14;
/// Without a [`Census`]: how long after its sending a packet without a receipt counts as under way.
pub const IN_FLIGHT: Duration = Duration::from_secs(1);

/// When a flow may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Its start.
    pub from: Instant,
    /// Its end, or the end of the run if that is earlier; not before `from`.
    pub to: Instant,
}

/// The packets of flows, and the PDUs of programs, that are still in the network.
#[derive(Clone, Debug, Default)]
pub struct Census {
    packets: BTreeSet<(FlowId, PacketKey)>,
    pdus: BTreeSet<Mark>,
}

/// The figures of one flow over one path.
#[derive(Clone, Debug, PartialEq)]
pub struct PathReport {
    /// The path.
    pub path: Path,
    /// Packets that the sending program made.
    pub offered: u64,
    /// Offered packets that the stack of the sending host refused, by reason.
    pub refused: BTreeMap<Refusal, u64>,
    /// Packets sent.
    pub sent_packets: u64,
    /// Octets of payload sent.
    pub sent_octets: u64,
    /// Packets received.
    pub received_packets: u64,
    /// Octets of payload received that the receiver did not have yet.
    pub received_octets: u64,
    /// Time of the schedule, or from the first to the last packet offered, while the flow used this path; the sum of
    /// all periods.
    pub duration: Duration,
    /// As `duration`, but each period to the last packet of the path received before the next one, if that is later.
    pub busy: Duration,
    /// `received_octets` over `busy`, 10⁶ bit/s; 0 if `duration` is zero.
    pub throughput_mbps: f64,
    /// Packets lost, including those of `unexplained`.
    pub lost: u64,
    /// Lost packets by place.
    pub lost_by: BTreeMap<Place, u64>,
    /// Packets that have disappeared without a report of their loss.
    pub unexplained: u64,
    /// Packets still under way.
    pub in_flight: u64,
    /// Packets received out of sequence.
    pub out_of_sequence: u64,
    /// Retransmitted TCP segments.
    pub retransmitted: u64,
    /// Packets sent on this path that arrived by the other one.
    pub changed_path: u64,
    /// Octets of the IP packets sent and received.
    pub ip_octets: [u64; 2],
    /// One-way delay.
    pub delay: Summary,
    /// Its distribution function: values in µs, each with the share of packets up to it (`Distribution::shares`).
    pub delay_shares: Vec<(f64, f64)>,
    /// Delay variation between adjacent packets.
    pub variation: Summary,
    /// Round trip of ICMP echo; empty for other flows.
    pub round_trip: Summary,
    /// Delivered echo requests whose answers have neither returned nor are under way.
    pub unanswered: u64,
    /// Lost answers, by place.
    pub answers_lost: BTreeMap<Place, u64>,
    /// Quality of a telephone call, in this direction.
    pub quality: Option<Quality>,
}

impl PathReport {
    /// Packets that the sender's stack refused.
    #[must_use]
    pub fn refused_packets(&self) -> u64 {
        self.refused.values().sum()
    }
    /// True if the accounts balance, as they must.
    #[must_use]
    pub fn balances(&self) -> bool {
        let places: u64 = self.lost_by.values().sum();
        self.offered == self.sent_packets + self.refused_packets()
            && self.sent_packets == self.received_packets + self.lost + self.in_flight
            && self.lost == places + self.unexplained
    }
}

/// The figures of one flow.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowReport {
    /// The flow.
    pub flow: FlowId,
    /// Its name.
    pub name: String,
    /// First packet offered.
    pub first: Option<Instant>,
    /// Last packet offered or received.
    pub last: Option<Instant>,
    /// Last packet offered.
    pub last_offered: Option<Instant>,
    /// Last packet received.
    pub last_received: Option<Instant>,
    /// When the sender and the receiver were last switched off, and the place of what they lost. Before something was
    /// offered, or received, again, the earliest time counts.
    pub off: [Option<(Instant, Place)>; 2],
    /// Time from the end of the last duration to the last packet received. With the durations of all paths it is the
    /// time of the flow, of which the busy times of two paths may have the same part: packets of one path arrive while
    /// the sender uses the other.
    pub tail: Duration,
    /// Received packets that are not known to have been sent, or that were received before.
    pub unmatched: u64,
    /// Each path that was used, `routed` first; if the flow never sent, one path with zeros.
    pub paths: Vec<PathReport>,
    /// Its packets one by one, if the lab wants them.
    pub series: Option<Series>,
}

impl FlowReport {
    /// The sum of a figure over all paths.
    pub fn sum(&self, of: impl Fn(&PathReport) -> u64) -> u64 {
        self.paths.iter().map(of).sum()
    }
}

/// The counters of one flow over all paths at one time: see [`PathReport`], which has the same by path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Packets sent.
    pub sent_packets: u64,
    /// Packets received.
    pub received_packets: u64,
    /// Packets lost.
    pub lost: u64,
    /// Octets of payload sent.
    pub sent_octets: u64,
    /// Octets of payload received that the receiver did not have yet.
    pub received_octets: u64,
    /// Sum of the delays of the received packets, ns.
    pub delay_ns: u64,
}

/// Collects the samples and the losses of a run.
#[derive(Clone, Debug, Default)]
pub struct FlowStats {
    index: FlowIndex,
    flows: Vec<Flow>,
    connections: Connections,
    /// Losses and echo requests since the last sweep, and those that it has left.
    loose: [usize; 2],
}

impl FlowStats {
    /// A collector for the lab's list of flows.
    #[must_use]
    pub fn new(flows: &[FlowSpec]) -> Self {
        Self {
            index: FlowIndex::new(flows, |_| true),
            flows: flows.iter().map(Flow::new).collect(),
            connections: Connections::default(),
            loose: [0; 2],
        }
    }

    /// The flows are these from now on: those that are new begin with nothing, the others keep their figures.
    pub fn set_flows(&mut self, flows: &[FlowSpec]) {
        self.index = FlowIndex::new(flows, |_| true);
        for (known, spec) in self.flows.iter_mut().zip(flows) {
            known.adopt(spec);
        }
        let new = flows.iter().skip(self.flows.len()).map(Flow::new);
        self.flows.extend(new.collect::<Vec<_>>());
    }

    /// Takes one sample. The samples of a packet come in the order of time. Returns the number of the packet in the
    /// order of sending, from 0; `None` for a packet that was refused or is not known.
    pub fn record(&mut self, sample: &Sample) -> Option<u64> {
        if let (Side::Sent, PacketKey::Echo { .. }) = (sample.side, sample.key) {
            self.loose[0] += 1;
        }
        let flow = self.flows.get_mut(sample.flow.0)?;
        match sample.side {
            Side::Offered => Some(flow.offered(sample)),
            Side::Refused(refusal) => {
                flow.refused(sample, refusal);
                None
            }
            Side::Sent => Some(flow.sent(sample)),
            Side::Received => flow.received(sample),
            Side::Answered => flow.answered(sample),
        }
    }

    /// Takes an event of a program with an ATM socket, at the node with this number.
    pub fn socket(&mut self, node: usize, event: SocketEvent, at: Instant) {
        self.connections.handle(node, event, at);
    }

    /// Forgets the accounts of a program's connection.
    pub fn forget(&mut self, socket: SocketId) {
        self.connections.forget(socket);
    }

    /// The figures of a program's connection as of `now`; `None` if the program has sent nothing on it. See
    /// [`Self::report_with`].
    #[must_use]
    pub fn connection(
        &self,
        socket: SocketId,
        now: Instant,
        census: Option<&Census>,
    ) -> Option<ConnectionReport> {
        self.connections.report(socket, now, census)
    }

    /// Records that an SDU, a frame or a packet, or its head, was discarded. The earliest place of a packet counts.
    pub fn lost<'a>(&mut self, unit: impl Into<DataUnit<'a>>, place: Place, at: Instant) {
        let DataUnit { octets, mark } = unit.into();
        let new = if let Some(mark) = mark {
            self.connections.lost(mark, place, at)
        } else if let Some(found) = self.index.recognise(octets)
            && let Some(flow) = self.flows.get_mut(found.flow.0)
        {
            if found.answer {
                flow.answer_lost(found.key, place);
                false
            } else {
                flow.lost(found.key, place, at)
            }
        } else {
            false
        };
        self.loose[0] += usize::from(new);
    }

    /// True if so many lost packets are remembered that [`Self::sweep`] is worth a census.
    #[must_use]
    pub fn wants_sweep(&self) -> bool {
        let [new, left] = self.loose;
        new > MAX_LOOSE.max(left)
    }

    /// Turns lost packets into numbers of which the census has no copy: no copy of them can arrive any more. With
    /// `unseen` this holds for all packets that are not in the census, because packets can leave the lab without a
    /// report; then the census has those of [`Self::note_recent`].
    pub fn sweep(&mut self, now: Instant, census: &Census, unseen: bool) {
        let flows = self.flows.iter_mut().enumerate();
        let left = flows.map(|(index, flow)| {
            let held = |key| census.packets.contains(&(FlowId(index), key));
            flow.sweep(now, held, unseen)
        });
        let left = left.sum::<usize>() + self.connections.sweep(now, census);
        self.loose = [0, left];
    }

    /// Packets and PDUs that are remembered one by one.
    #[must_use]
    pub fn remembered(&self) -> usize {
        let flows = self.flows.iter().map(Flow::remembered);
        flows.sum::<usize>() + self.connections.remembered()
    }

    /// Records that the host with this IP address was switched off: packets of its programs that had not left it are
    /// lost.
    pub fn host_off(&mut self, address: Ipv4Addr, place: Place, at: Instant) {
        for flow in &mut self.flows {
            flow.host_off(address, place, at);
        }
    }

    /// Adds a packet that is still in the network to a census: an SDU, a frame or a packet.
    pub fn note_held<'a>(&self, unit: impl Into<DataUnit<'a>>, census: &mut Census) {
        let DataUnit { octets, mark } = unit.into();
        census.pdus.extend(mark);
        if mark.is_some() {
            return;
        }
        // The answer is on its way only after its request has arrived, so the two are never in the network together.
        let found = self.index.recognise(octets);
        let found = found.map(|found| (found.flow, found.key));
        census.packets.extend(found);
    }

    /// Adds packets that were sent less than [`IN_FLIGHT`] ago to a census: they may be in places that cannot be
    /// inspected.
    pub fn note_recent(&self, now: Instant, census: &mut Census) {
        for (flow, index) in self.flows.iter().zip(0..) {
            let recent = flow.sent_since(now, IN_FLIGHT);
            let recent = recent.map(|key| (FlowId(index), key));
            census.packets.extend(recent);
        }
    }

    /// The figures as of `now`. With a census, a packet that is neither in it nor reported as lost is unexplained.
    /// Without one, a packet sent less than [`IN_FLIGHT`] ago counts as under way. `schedule` tells when a flow may
    /// send, if that is known.
    #[must_use]
    pub fn report_with(
        &self,
        now: Instant,
        census: Option<&Census>,
        schedule: impl Fn(FlowId) -> Option<Schedule>,
    ) -> Vec<FlowReport> {
        let reports = self.flows.iter().enumerate();
        reports
            .map(|(index, flow)| {
                let id = FlowId(index);
                let held = census.map(|census| |key| census.packets.contains(&(id, key)));
                flow.report((id, schedule(id)), now, held)
            })
            .collect()
    }

    /// The counters of all flows, with a census of the network.
    #[must_use]
    pub fn totals(&self, census: &Census) -> Vec<Totals> {
        let flows = self.flows.iter().enumerate();
        let totals = flows
            .map(|(index, flow)| flow.totals(|key| census.packets.contains(&(FlowId(index), key))));
        totals.collect()
    }

    /// The figures as of `now`, without a census and without schedules.
    #[must_use]
    pub fn report(&self, now: Instant) -> Vec<FlowReport> {
        self.report_with(now, None, |_| None)
    }
}

#[cfg(test)]
mod tests;
