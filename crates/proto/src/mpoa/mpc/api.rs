//! The interface of a client: configuration, inputs, outputs, counters.

use crate::discard::Discards;
use crate::mix::mix;
use crate::mpoa::messages::{self, ToKernel};
use crate::mpoa::params::MpcParams;
use crate::mpoa::split::{FromMpcd, ToMpcd};
use crate::nhrp::{Fault, auth};
use crate::split::{FromDaemon, ProcessEvent, ToDaemon};
use crate::{AtmEvent, AtmRequest, ConnId, Duration, Sdu, Trace};
use aerostat_wire::lane::Tlv;
use aerostat_wire::mpoa::{FlowFilter, QosEntry};
use aerostat_wire::nhrp::{Packet, ProtocolAddress};
use aerostat_wire::{AtmAddress, MacAddr, Qos};
use std::collections::{BTreeMap, VecDeque};

crate::split_record! {
    /// Bounds of a client's tables. The client counts how often a bound is reached.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct MpcLimits {
        /// Ingress cache entries.
        pub ingress: usize,
        /// Egress cache entries; further impositions are refused with 0x81.
        pub egress: usize,
        /// Shortcut connections, opened and accepted; beyond this bound, impositions for new ingress MPCs are refused
        /// with 0x82.
        pub shortcuts: usize,
        /// Control connections.
        pub control: usize,
        /// Known MPSs, and MAC addresses of MPSs on one interface.
        pub mps: usize,
        /// Packets that wait for a control connection to one MPS.
        pub queue: usize,
        /// QoS entries; further calls of [`Input::SetQos`] are refused.
        pub qos: usize,
    }
}

impl Default for MpcLimits {
    fn default() -> Self {
        Self {
            ingress: 8192,
            egress: 8192,
            shortcuts: 8192,
            control: 32,
            mps: 32,
            // As many requests as there can be flows: a packet that is dropped here is sent again only 5 s later.
            queue: 8192,
            qos: 1000,
        }
    }
}

crate::split_record! {
    /// An MPS that does not announce itself.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct StaticMps {
        /// The interface on which it is.
        pub itf: usize,
        /// Its MAC address there.
        pub mac: MacAddr,
        /// Its control address.
        pub control: AtmAddress,
    }
}

crate::split_record! {
    /// Configuration of a client.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct MpcConfig {
        /// Control address.
        pub control: AtmAddress,
        /// Data address: where shortcuts start and end.
        pub data: AtmAddress,
        /// MPC-p1 to p6.
        pub params: MpcParams,
        /// As egress, answer every request for a tag with a tag. If false, use a tag only where packets could not be
        /// distinguished without it.
        pub tag: bool,
        /// True if the client runs from [`Input::Start`] on; see [`Input::Enable`].
        pub enabled: bool,
        /// LANE interfaces that get the Device Type TLV at the start, before they are up. Others get it at `LecUp`.
        pub itfs: Vec<usize>,
        /// MPSs that do not announce themselves.
        pub static_mps: Vec<StaticMps>,
        /// QoS entries from the start, at most as many as the limit allows; see [`Input::SetQos`].
        pub qos: Vec<QosEntry>,
        /// Keys shared with MPSs, and with the clients at the other ends of shortcuts. Messages to them are signed; a
        /// message without a valid signature gets error 11 and has no effect. Error Indications cannot be signed.
        pub keys: auth::Keys,
        /// Bounds.
        pub limits: MpcLimits,
        /// SDU of control connections and smallest SDU of shortcuts, octets. A shortcut between ELANs with larger
        /// frames is opened with the SDU that their packets need.
        pub max_sdu: u16,
        /// Seed of the first request id and tag.
        pub seed: u64,
    }
}

impl MpcConfig {
    /// A client with defaults for the rest.
    #[must_use]
    pub fn new(control: AtmAddress, data: AtmAddress) -> Self {
        Self {
            control,
            data,
            params: MpcParams::default(),
            tag: true,
            enabled: true,
            itfs: Vec::new(),
            static_mps: Vec::new(),
            qos: Vec::new(),
            keys: auth::Keys::default(),
            limits: MpcLimits::default(),
            max_sdu: 1536,
            seed: 0,
        }
    }
}

/// Input of a client.
#[derive(Clone, Debug)]
pub enum Input<'a> {
    /// The host is up: run, if enabled.
    Start,
    /// SIGTERM: purge the entries that MPSs imposed, wait for their replies for a short time, end.
    Stop,
    /// SIGHUP: as `Stop`, then start again after five seconds.
    Reload,
    /// The daemon is back ([`ProcessEvent::Came`]); it dies on the spot ([`ProcessEvent::Gone`]): LANE goes on, and the
    /// caches wait for the next daemon; or, from one in a process of its own, it says something.
    Mpcd(ProcessEvent<FromDaemon<FromMpcd>>),
    /// Turns the client on, or off as `Stop` does.
    Enable(bool),
    /// From the ATM service.
    Atm(AtmEvent<&'a [u8]>),
    /// From the LEC: LE_ARP found the owner of `mac`.
    Associate {
        /// The LEC's interface.
        itf: usize,
        /// The MAC address.
        mac: MacAddr,
        /// LANE data address of its owner.
        atm: AtmAddress,
        /// The owner's TLVs.
        tlvs: Vec<Tlv>,
    },
    /// From the LEC: the information about `mac` has aged out.
    Dissociate {
        /// The LEC's interface.
        itf: usize,
        /// The MAC address.
        mac: MacAddr,
    },
    /// From a bridge: the station with this MAC address is not behind it any more.
    StationLeft {
        /// The interface of the bridge's LEC.
        itf: usize,
        /// The MAC address.
        mac: MacAddr,
    },
    /// The LEC has joined its ELAN.
    LecUp {
        /// Its interface.
        itf: usize,
        /// Number of the ELAN; 0 if it has none.
        elan_id: u32,
        /// Largest IP packet, octets.
        mtu: u16,
    },
    /// The LEC has left its ELAN.
    LecDown {
        /// Its interface.
        itf: usize,
    },
    /// A QoS entry: the packets that fit it become a flow of its own for each destination, with a resolution and a
    /// shortcut of this traffic. A change, or the removal with `None`, ends its flows; their packets then belong to
    /// other flows. Beyond the limit the input is refused.
    SetQos {
        /// The packets.
        filter: FlowFilter,
        /// The traffic.
        qos: Option<Qos>,
    },
    /// TLVs of an LE_CONFIGURE response: MPC-p1 to p6 may be among them.
    ConfigTlvs(Vec<Tlv>),
}

/// The path of a frame from the IP stack ([`Mpc::outbound`](super::Mpc::outbound)).
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Outbound {
    /// Over a shortcut.
    Shortcut {
        /// The shortcut.
        conn: ConnId,
        /// The SDU that is to be sent on it.
        sdu: Sdu,
    },
    /// Over the ELAN: this is the unchanged frame.
    Lane(Vec<u8>),
}

/// Output of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// For the ATM service.
    Atm(AtmRequest),
    /// A packet from a shortcut, as the frame that would have arrived from the ELAN.
    Deliver {
        /// The interface of that ELAN.
        itf: usize,
        /// The frame.
        frame: Vec<u8>,
    },
    /// TLVs that the LEC announces from now on; empty if the host is no MPC any more.
    SetTlvs {
        /// The LEC's interface.
        itf: usize,
        /// The TLVs.
        tlvs: Vec<Tlv>,
    },
    /// Ask the LEC for the owner of a MAC address. If the owner is an MPS, [`Input::Associate`] follows.
    Discover {
        /// The LEC's interface.
        itf: usize,
        /// The MAC address.
        mac: MacAddr,
    },
    /// For the daemon in a process of its own.
    Mpcd(ToDaemon<ToMpcd>),
    /// An observation.
    Trace(Trace),
}

/// Counts by code of a client information entry or of an Error Indication.
pub type ByCode = BTreeMap<u16, u64>;

crate::counters! {
    /// Counters for operators. Source: MPOA 1.1 annex F (the MIB), groups of the MPC.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct MpcCounters {
        /// Resolution Requests sent, with retries.
        pub resolution_requests_sent: u64,
        /// Resolution Replies received, by code.
        pub resolution_replies: ByCode,
        /// Imposition Requests received.
        pub imposition_requests: u64,
        /// Imposition Replies sent, by code.
        pub imposition_replies: ByCode,
        /// Egress Cache Purge Requests sent, with retries.
        pub egress_purges_sent: u64,
        /// Egress Cache Purge Replies received.
        pub egress_purge_replies: u64,
        /// Keep-Alives received.
        pub keep_alives: u64,
        /// Triggers received.
        pub triggers: u64,
        /// NHRP Purge Requests received on control connections.
        pub purge_requests: u64,
        /// NHRP Purge Replies sent.
        pub purge_replies_sent: u64,
        /// Data-plane purges received.
        pub data_plane_purges: u64,
        /// Data-plane purges sent.
        pub data_plane_purges_sent: u64,
        /// Error Indications received, by code.
        pub errors: ByCode,
        /// Error Indications sent, by code.
        pub errors_sent: ByCode,
        /// Control packets that could not be decoded.
        pub malformed: u64,
        /// Control packets from an unknown MPS, or on the wrong kind of connection.
        pub unknown_sender: u64,
        /// Replies to no outstanding request.
        pub unsolicited: u64,
        /// MPSs that fell silent or restarted.
        pub mps_deaths: u64,
        /// Packets received on shortcuts and delivered.
        pub packets_received: u64,
        /// Octets of these packets.
        pub octets_received: u64,
        /// Packets sent on shortcuts.
        pub packets_sent: u64,
        /// Octets of these packets.
        pub octets_sent: u64,
        /// Outbound frames that took the default path.
        pub frames_to_lane: u64,
        /// Packets on shortcuts with an unknown tag or no entry.
        pub egress_misses: u64,
        /// SDUs on shortcuts that are no IPv4 packets or have an unknown LLC header.
        pub bad_packets: u64,
        /// Flows that were not counted because the ingress cache was full.
        pub ingress_limit: u64,
        /// Impositions refused because a table was full.
        pub egress_limit: u64,
        /// Flows that got best effort in place of the traffic of their QoS entry: the call was refused, or the egress
        /// takes UBR only.
        pub qos_fallbacks: u64,
        /// Packets over guaranteed connections of other clients whose flow is not remembered, for lack of room: what
        /// answers them may take best effort.
        pub way_back_limit: u64,
        /// Calls refused or not made because there are too many connections.
        pub connection_limit: u64,
        /// MPSs or their MAC addresses that were not learned because there are too many, or because the TLV of the MAC
        /// address itself names another MPS.
        pub mps_limit: u64,
        /// Control packets dropped because no connection could be had or the queue was full.
        pub control_dropped: u64,
        /// Events of the ATM service about connections that do not exist.
        pub stray_events: u64,
    }
}

/// Adds 1 to the counter of a code.
pub(super) fn tally(counts: &mut ByCode, code: u16) {
    *counts.entry(code).or_default() += 1;
}

/// Numbers that must not start again with a new daemon: a late answer to the previous daemon must not match.
#[derive(Debug)]
pub(super) struct Numbers {
    next_request: u32,
    next_tag: u32,
}

impl Numbers {
    pub(super) fn new(seed: u64) -> Self {
        let z = mix(seed);
        // Far from the wrap, so that the numbers of a run are increasing.
        Self {
            next_request: (z as u32) >> 8,
            next_tag: ((z >> 32) as u32) >> 8,
        }
    }
    pub(super) fn request(&mut self) -> u32 {
        self.next_request = self.next_request.wrapping_add(1);
        self.next_request
    }
    /// A tag that is neither 0 nor in use.
    pub(super) fn tag(&mut self, used: impl Fn(u32) -> bool) -> u32 {
        loop {
            self.next_tag = self.next_tag.wrapping_add(1);
            if self.next_tag != 0 && !used(self.next_tag) {
                return self.next_tag;
            }
        }
    }
    #[cfg(test)]
    pub(super) fn set_next_tag(&mut self, tag: u32) {
        self.next_tag = tag.wrapping_sub(1);
    }
}

/// Output of both halves of a client: to the outside, and to each other.
#[derive(Debug, Default)]
pub(super) struct Bus {
    pub(super) out: VecDeque<Output>,
    pub(super) to_kernel: VecDeque<ToKernel>,
    pub(super) to_daemon: VecDeque<messages::ToDaemon>,
    pub(super) counters: MpcCounters,
    pub(super) discards: Discards,
}

impl Bus {
    pub(super) fn atm(&mut self, request: AtmRequest) {
        self.out.push_back(Output::Atm(request));
    }
    pub(super) fn trace(&mut self, trace: Trace) {
        self.out.push_back(Output::Trace(trace));
    }
    pub(super) fn kernel(&mut self, message: ToKernel) {
        self.to_kernel.push_back(message);
    }
    pub(super) fn daemon(&mut self, message: messages::ToDaemon) {
        self.to_daemon.push_back(message);
    }
    /// Sends an Error Indication of this observer about a packet, on the connection of the packet. An Error Indication
    /// gets none.
    pub(super) fn refuse(
        &mut self,
        conn: ConnId,
        offending: &[u8],
        Fault { code, offset }: Fault,
        (own, own_ip): (AtmAddress, ProtocolAddress),
    ) {
        let Some(packet) = Packet::error_about(offending, code, offset, own, own_ip) else {
            self.counters.unsolicited += 1;
            return;
        };
        tally(&mut self.counters.errors_sent, code);
        let sdu = packet.to_sdu();
        self.atm(AtmRequest::Send { conn, sdu });
    }
}

/// How long an ending client waits for the replies to its purges.
pub(super) const STOP_WAIT: Duration = Duration::from_secs(2);
/// Pause of a `Reload` before the client starts again.
pub(super) const RELOAD_PAUSE: Duration = Duration::from_secs(5);
