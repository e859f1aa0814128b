//! Rows of an end system: `inspect vc`, `call`, `port`, `arp`, `route`, `bridge`. `host/report/tables.rs` makes them.

use super::Name;
use super::words::{Direction, Line, Reach};
use super::{microseconds, nanoseconds};
use crate::atm::PathView;
use crate::atm::nic::NicVcView;
use crate::ip::neighbours::NeighbourView;
use crate::ip::stack::ConnectionView;
use crate::ip::tcp::Snapshot;
use crate::signalling::{CallInfo, Phase};
use aerostat_proto::Instant;
use aerostat_wire::{AtmAddress, MacAddr, Qos, Vc};
use std::net::Ipv4Addr;

/// The options of TCP that both ends have agreed upon.
fn options(seen: &Snapshot) -> String {
    let all = [
        ("scaling", seen.scaled),
        ("timestamps", seen.timestamps),
        ("sack", seen.sack),
        ("ecn", seen.ecn),
    ];
    let agreed: Vec<_> = all
        .iter()
        .filter_map(|(name, on)| on.then_some(*name))
        .collect();
    agreed.join(" ")
}

fn seconds(at: Instant) -> f64 {
    at.as_nanos() as f64 / 1e9
}

crate::rows! {
    /// Tables about end systems.
    pub const TABLES;

    /// One row for each ATM port of the node.
    pub struct Port: "port.ports" {
        /// Number of the port; 0 on an end system.
        pub port: u16,
        /// `up` or `down` (end systems).
        pub link: Line,
        /// Cells that came from the link.
        pub cells_in: u64,
        /// Cells sent to the link.
        pub cells_out: u64,
        /// Cells dropped, both ways.
        pub cells_dropped: u64,
        /// Cells that wait in the queues of the port.
        pub queued_cells: u64,
    }

    /// One row for each IP interface on an emulated LAN or a Classical IP subnet.
    pub struct Interface: "port.interfaces" {
        /// Its name.
        pub interface: String,
        /// Its MAC address.
        pub mac: Option<MacAddr> as Detail(1),
        /// `yes` if its client has joined.
        pub up: bool as Detail(2),
        /// Largest IP packet.
        pub mtu_octets: u16 as Detail(0),
        /// Frames sent by the LAN or the subnet.
        pub lane_out_frames: u64,
        /// Frames sent by shortcuts.
        pub shortcut_out_frames: u64,
        /// Frames received by the LAN or the subnet.
        pub lane_in_frames: u64,
        /// Frames received by shortcuts.
        pub shortcut_in_frames: u64,
        /// Packets routed to other interfaces (routers).
        pub forwarded_packets: Option<u64>,
        /// Packets that the router dropped (routers).
        pub forward_drops: Option<u64>,
    }

    /// One row for each VC of the adapter.
    pub struct Connection: "vc.connections" for (view: &NicVcView, user: Option<String>, call: Option<&CallInfo>) {
        /// VPI.VCI.
        pub vc: Vc = view.vc,
        /// User of the VC.
        pub user: Option<String> = user,
        /// Number of called parties that the call may have; empty for signalling and ILMI.
        pub role: Option<Reach> = call.map(|call| Reach::of(call.multipoint)),
        /// ATM address at the other end.
        pub peer: Option<AtmAddress> = call.and_then(CallInfo::peer),
        /// Purpose of the call: B-LLI.
        pub blli: Option<String> = call.and_then(|call| Some(format!("{:?}", call.blli?))),
        /// The contract, as in qos(7).
        pub qos: Option<Qos> = call.map(|call| call.qos),
        /// Cells that wait in the adapter.
        pub queued_cells: u64 = view.queued.into(),
        /// Cells that the adapter has sent.
        pub cells_sent: u64 = view.sent.cells_out,
        /// Sending time that the shaper lost because the lab's process was late, in ns; empty without a shaper.
        pub shaper_lost_ns: Option<u64> = view.lost_time.map(nanoseconds),
        /// PDUs received.
        pub pdus_received: u64 = view.received.sdus,
        /// PDUs that came with cells missing or damaged.
        pub pdus_lost: u64 = view.received.errors() + view.received.aborted,
        /// PDUs received that had the CRC of Dynamips in the place of that of AAL5.
        pub pdus_of_dynamips: u64 as Detail(0) = view.received.reflected,
        /// User cells received with the mark of congestion on their way (EFCI).
        pub cells_marked: u64 = view.cells_marked,
    }

    /// One row for each rate queue of an adapter.
    pub struct RateQueue: "queue.rate_queues" for (name: &str, view: &PathView) {
        /// Its name.
        pub rate_queue: String = name.to_owned(),
        /// Peak rate of all its connections together, cells per second.
        pub pcr_cps: u32 = view.pcr,
        /// Tolerance, µs.
        pub cdvt_us: u64 = microseconds(view.cdvt),
        /// Open connections in it.
        pub connections: u32 = view.queues,
        /// Cells that wait in them.
        pub waiting: u32 = view.waiting,
        /// Cells that have left.
        pub cells_out: u64 = view.cells_out,
    }

    /// One row for each call of a switch or of an end system.
    pub struct Call: "call.calls" for (call: &CallInfo, user: Option<String>) {
        /// User of the call (end systems).
        pub user: Option<String> = user,
        /// State of the call (end systems).
        pub phase: Phase = call.phase,
        /// VPI.VCI (end systems).
        pub vc: Option<Vc> = call.vc,
        /// `in` or `out` (end systems).
        pub direction: Direction = Direction::of(call.outgoing),
        /// ATM address of the caller.
        pub calling: Option<AtmAddress> = call.calling,
        /// ATM address of the called party.
        pub called: Option<AtmAddress> = (!call.permanent).then_some(call.called),
        /// Purpose of the call: B-LLI.
        pub blli: Option<String> = call.blli.map(|blli| format!("{blli:?}")),
        /// Purpose of the call: B-HLI.
        pub bhli: Option<String> = call.bhli.map(|bhli| format!("{bhli:?}")),
        /// Parties added to a point-to-multipoint call (end systems).
        pub parties: usize = call.parties,
    }

    /// One row for each neighbour of an embedded host or router.
    pub struct Neighbour: "arp.neighbours" for (interface: &str, seen: &NeighbourView, now: Instant) {
        /// Interface of the node, or the name of a host on its segment.
        pub interface: String = interface.to_owned(),
        /// IP address.
        pub address: Ipv4Addr = seen.address,
        /// MAC address.
        pub mac: Option<MacAddr> = seen.mac.map(MacAddr),
        /// State of the entry.
        pub state: Name = seen.state.name().into(),
        /// Packets that wait for the answer.
        pub queued: usize = seen.queued,
        /// Packets for it that were dropped.
        pub dropped: u64 = seen.dropped,
        /// Seconds since a packet from it confirmed the entry.
        pub heard_s: Option<u64> = seen.heard.map(|heard| now.since(heard).as_secs()),
    }

    /// One row for each TCP connection of an embedded host. The last 1024 that have ended are kept, and stand first.
    pub struct TcpConnection: "tcp.connections" for (seen: &ConnectionView) {
        /// Own address and port.
        pub local: String = format!("{}:{}", seen.local.1, seen.local.0),
        /// Address and port of the peer.
        pub peer: String = format!("{}:{}", seen.remote.1, seen.remote.0),
        /// State, as the standard names it.
        pub state: String = seen.snapshot.state.to_string(),
        /// State of loss recovery: `open`, `recovery` after a loss that acknowledgements told of, `loss` after a timer.
        pub recovery: Name = seen.snapshot.phase.name().into(),
        /// When it began, seconds.
        pub since_s: f64 as Detail(16) = seconds(seen.since),
        /// When it ended, seconds; empty if it has not.
        pub ended_s: Option<f64> as Detail(15) = seen.ended.map(seconds),
        /// Why it failed: `refused` and `reset` by the peer, `timeout` without an answer; empty if it has not.
        pub failure: Option<Name> as Detail(14) = seen.failure.map(|failure| failure.name().into()),
        /// Options that both ends have agreed upon: `scaling`, `timestamps`, `sack`, `ecn`.
        pub options: String as Detail(13) = options(&seen.snapshot),
        /// Congestion window, octets.
        pub window_octets: u64 = seen.snapshot.window,
        /// Slow-start threshold, octets; empty before the first loss.
        pub threshold_octets: Option<u64> = seen.snapshot.threshold,
        /// Octets under way.
        pub flight_octets: u64 = seen.snapshot.flight,
        /// Octets that the program has written and that are not acknowledged.
        pub send_queue_octets: usize as Detail(12) = seen.snapshot.send_buffer.0,
        /// Window that the peer offers, octets.
        pub peer_window_octets: u64 = seen.snapshot.peer_window,
        /// Octets of data in a full segment.
        pub mss_octets: u64 = seen.snapshot.mss,
        /// Smoothed round trip, µs.
        pub round_trip_us: Option<u64> = seen.snapshot.round_trip.map(microseconds),
        /// Retransmission timer, µs.
        pub timer_us: u64 = microseconds(seen.snapshot.timer),
        /// Segments sent.
        pub segments_sent: u64 = seen.counters.segments_sent,
        /// Segments sent again.
        pub retransmissions: u64 = seen.counters.retransmissions,
        /// Expired timers.
        pub timeouts: u64 = seen.counters.timeouts,
        /// Losses that acknowledgements have told of.
        pub fast_recoveries: u64 as Detail(9) = seen.counters.fast_recoveries,
        /// Reductions of the window for congestion marks.
        pub mark_reductions: u64 as Detail(3) = seen.counters.mark_reductions,
        /// Probes of a window of the peer that was zero.
        pub window_probes: u64 as Detail(4) = seen.counters.window_probes,
        /// Times that the congestion window held new data back.
        pub window_limited: u64 as Detail(10) = seen.counters.window_limited,
        /// Octets of data that were received in order.
        pub octets_received: u64 as Detail(11) = seen.counters.octets_received,
        /// Segments received behind a hole.
        pub out_of_order: u64 as Detail(6) = seen.counters.out_of_order,
    }

    /// One row for each neighbour that a router has resolved.
    pub struct NextHop: "route.neighbours" {
        /// Interface of the router.
        pub interface: String,
        /// IP address.
        pub address: String,
        /// MAC address.
        pub mac: MacAddr,
    }

    /// One row for each host on the Ethernet segment behind a bridging host: each station of an embedded bridge, and
    /// each station whose cable is plugged into a kernel bridge now.
    pub struct SegmentHost: "bridge.hosts" {
        /// Its name.
        pub name: String,
        /// MAC address.
        pub mac: MacAddr,
        /// IP address.
        pub ip: Ipv4Addr,
    }

    /// One row for each host whose adapter takes time for received PDUs (`adapter:` in the lab file).
    pub struct ReceivePath: "port.receive path" {
        /// PDUs that found a free buffer.
        pub pdus: u64,
        /// PDUs that were lost because there was no free buffer.
        pub pdus_lost: u64,
        /// Buffers in use.
        pub held_pdus: usize,
        /// Most buffers that were in use.
        pub most_held_pdus: usize,
        /// Time at work since the host was switched on, in millionths of that time.
        pub utilisation_ppm: u64,
    }

    /// One row for each host with a CPU that costs time (`cpu:` or `manager:` in the lab file), and for each switch
    /// whose manager costs time (`manager:`): there the packets are those of the signalling channels.
    pub struct CpuLoad: "cpu.load" {
        /// `interrupt-first` or `fair`: which packets the CPU takes first.
        pub service: Name,
        /// Time in service since the host was switched on, in millionths of that time.
        pub utilisation_ppm: u64,
        /// Time in service since the host was switched on.
        pub busy_us: u64,
        /// Packets that wait to be sent.
        pub send_waiting: usize,
        /// Packets, and messages of signalling and ILMI, that wait to be received.
        pub receive_waiting: usize,
        /// Packets that were not sent because too many waited.
        pub send_lost: u64,
        /// Packets that were not received because too many waited.
        pub receive_lost: u64,
        /// Messages of signalling and ILMI that were lost because too many waited.
        pub control_lost: u64,
        /// Mean wait of a packet before the CPU began to send it.
        pub send_wait_ns: u64,
        /// Mean wait of a packet before the CPU began to receive it.
        pub receive_wait_ns: u64,
        /// Longest wait of a packet before the CPU began to send it.
        pub send_longest_wait_us: u64,
        /// Longest wait of a packet before the CPU began to receive it.
        pub receive_longest_wait_us: u64,
    }

    /// One row for each program that receives datagrams on a host with a clock of its own (`clock:` in the lab file):
    /// the one-way delay by that clock and the sender's stamps. A negative delay counts as 0.
    pub struct Measured: "cpu.measured" {
        /// Number of its flow in the lab file, from 0.
        pub flow: usize,
        /// Datagrams with stamps.
        pub datagrams: u64,
        /// Smallest delay.
        pub min_ns: u64,
        /// Mean delay.
        pub mean_ns: u64,
        /// Largest delay.
        pub max_ns: u64,
    }

    /// One row for each kind of work of such a CPU and each encapsulation that had packets, also those that still wait.
    pub struct CpuWork: "cpu.work" {
        /// `send`, `receive` or `acknowledgement` (a TCP segment without payload, either way); of a manager `send`,
        /// `receive` or `hand-over` (a message passes from one process to another); of programs on TCP `write` or
        /// `read`.
        pub work: Name,
        /// `lane`, `mpoa`, `clip` (Classical IP), `native` (programs), `atp`, `signalling` (messages of a manager) or
        /// `tcp` (calls of programs).
        pub encapsulation: Name,
        /// Packets; messages, or hand-overs of them; calls.
        pub packets: u64,
        /// Octets of their IP packets; of their SDUs if they carry something else; of messages; that calls move.
        pub octets: u64,
        /// Time that they cost.
        pub cost_us: u64,
    }

    /// One row for each Ethernet port of a bridging host with `ports:`.
    pub struct EthernetPort: "bridge.ports" {
        /// Its name.
        pub port: String,
        /// Rate of its cable, bit/s.
        pub rate_bps: u64,
        /// True if frames on the cable have VLAN tags.
        pub tag: bool,
        /// True if the two directions of the cable do not wait for each other.
        pub full_duplex: bool,
        /// Stations on it.
        pub stations: u64,
        /// MAC addresses that the bridge has learned there.
        pub addresses: u64,
        /// Frames that wait for the cable, or are on it.
        pub waiting: u64,
        /// Frames from its stations.
        pub frames_in: u64,
        /// Frames to its stations.
        pub frames_out: u64,
        /// Octets of these frames, without tag, preamble, check sequence and gap.
        pub octets_in: u64,
        /// Octets of these frames, as well.
        pub octets_out: u64,
        /// Frames of stations that found the queue of the cable full.
        pub dropped_in: u64,
        /// Frames to stations that found it full.
        pub dropped_out: u64,
    }

    /// One row for each MAC address that the bridge has heard on the segment.
    pub struct Learned: "bridge.learned" {
        /// MAC address.
        pub mac: MacAddr,
        /// Seconds since it was heard.
        pub heard_s: u64,
        /// Its Ethernet port; empty if the bridge has no `ports:`.
        pub port: String,
        /// VID of its VLAN; `None` without `vlans:`.
        pub vlan: Option<u16>,
    }

    /// One row for each MAC address that the bridge has heard from its ELAN in the last 300 s. A bridge of a kernel
    /// host has no rows.
    pub struct HeardFromElan: "bridge.elan" {
        /// MAC address.
        pub mac: MacAddr,
        /// Seconds since it was heard.
        pub heard_s: u64,
        /// VID of the VLAN of this ELAN; `None` without `vlans:`.
        pub vlan: Option<u16>,
    }

    /// One row for each VLAN of a bridging host with `vlans:`.
    pub struct BridgeVlan: "bridge.vlans" {
        /// VID, 1 to 4094.
        pub vlan: u16,
        /// The interface whose LANE client is in the ELAN of this VLAN.
        pub interface: String,
        /// Names of the ports where its frames have no tag.
        pub untagged: String,
        /// Names of the ports where its frames have a tag.
        pub tagged: String,
        /// MAC addresses that the bridge has learned on these ports.
        pub addresses: u64,
        /// MAC addresses that it has heard from the ELAN in the last 300 s.
        pub elan_addresses: u64,
    }
}

/// The name of a LANE interface.
#[must_use]
pub fn interface(number: usize) -> String {
    format!("lec{number}")
}
