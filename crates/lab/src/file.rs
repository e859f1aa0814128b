//! The sections of a lab file: the allowed keys, and the JSON Schema. This module resolves nothing.

mod checks;
mod clip;
mod ethernet;
mod faults;
mod hops;
pub(crate) mod keys;
mod leaves;
mod limits;
mod line;
mod links;
mod load;
mod mpoa;
mod nhrp;
mod pseudowire;
mod queues;
mod timers;
mod timing;

pub(crate) use checks::{CheckFile, ColumnName, DelayText, PartText, PhaseText};
pub(crate) use clip::{LEAST_MTU, LisFile, MemberFile, NextHopFile, PvcFile};
pub(crate) use ethernet::{CableFile, FramesFile, PortFile, Vid};
pub(crate) use faults::{BLOCK, DELAY, FaultFile, TRAINING};
pub(crate) use hops::NextHopsFile;
pub(crate) use leaves::*;
pub(crate) use limits::LimitsFile;
pub(crate) use line::LineFile;
pub(crate) use load::*;
pub(crate) use mpoa::{MpoaFile, MpoaParams};
pub(crate) use nhrp::{NhrpFile, NhrpKeyFile};
pub(crate) use pseudowire::{L2tpFile, LabelList, MplsFile, MplsLabel, SublayerText};
pub(crate) use queues::{ConnectionQueueFile, PathId, QueuesFile, TunnelFile};
pub(crate) use timers::{LecTimersFile, SscopTimersFile, TimersFile, UniTimersFile};
pub(crate) use timing::{
    AdapterFile, ClockFile, CostsFile, CpuFile, InterruptionsFile, ManagerFile,
};

use crate::diag::Diagnostics;
use crate::field::{At, FromTree, Table, inline_schema, one_or_more, section};
use crate::model::{Packing, TcpParams};
use crate::parameter::range;
use crate::plan;
use crate::tree::Tree;
pub(crate) use links::{LinkFile, LinkOptions, OutsideFile, TrunkFile};

section! {
    /// A lab: nodes, links, traffic.
    LabFile {
        /// Version of the format of this file; default: that which is read.
        #[allow(dead_code, reason = "it is checked when it is read")]
        schema: Option<At<FormatVersion>>;
        /// Name of the lab; default: the name of the file.
        name: Option<At<LabName>>;
        /// Purpose of the lab, in words.
        description: Option<At<String>>;
        /// Seed of all random streams.
        seed: u64 = 1;
        /// When a run in virtual time ends; default: two seconds after the last traffic.
        until: Option<At<Time>>;
        /// MPOA on all hosts and routers: true, false, or parameters; default false.
        mpoa: Option<MpoaFile>;
        /// NHRP: keys and registrations, for all servers and clients.
        nhrp: Option<NhrpFile>;
        /// Timers of LANE, ARP and signalling, on all nodes; default: those of the standards.
        timers: Option<TimersFile>;
        /// Limits of ports, servers and clients, on all nodes.
        limits: Option<LimitsFile>;
        /// Number of this lab among labs joined by trunks, 0 to 15, so that all addresses differ.
        site: u64 = 0, 0..=plan::MAX_SITE;
        /// ATM switches.
        switches: Table<Name, SwitchFile>;
        /// Links between switches: [a, b, { options }], the first named plays the network side; in the same form, links
        /// between two hosts or routers without a switch; and links out of the lab: [switch or end system, { atmtcp:
        /// ... }].
        links: Option<Vec<LinkFile>>;
        /// The LAN emulation service and its emulated LANs.
        lane: Option<LaneFile>;
        /// Classical IP subnets.
        clip: Option<Table<Name, LisFile>>;
        /// ATM lines: IP subnets of two stations each, with an encapsulation of RFC 2684, RFC 2364 or RFC 2516.
        lines: Option<Table<Name, LineFile>>;
        /// Permanent connections.
        pvcs: Option<Vec<PvcFile>>;
        /// IP routers.
        routers: Option<Table<Name, RouterFile>>;
        /// IP hosts.
        hosts: Table<Name, HostFile>;
        /// Traffic between hosts.
        traffic: Option<Vec<TrafficFile>>;
        /// Faults, and when they happen.
        faults: Option<Vec<FaultFile>>;
        /// Names of links to record.
        capture: Option<Vec<At<String>>>;
        /// Levels of the buffers of switches over time, in the results.
        occupancy: Option<OccupancyFile>;
        /// Names for ATM addresses of systems outside the lab: texts show them, and programs call by them.
        names: Option<Table<Name, At<Atm>>>;
        /// Other users that may use the ATM service of the hosts while the lab runs.
        sockets: Option<SocketServiceFile>;
        /// Checks for 'aerostat check', which tell whether the lab does what it should.
        checks: Option<Vec<CheckFile>>;
        /// Answers to questions, for checks of them.
        answers: Option<Table<Name, At<String>>>;
    }
}
section! {
    /// The socket service: programs of the machine use the ATM service of the hosts.
    SocketServiceFile {
        /// Name of a group of the system: its members may connect, too; default: only the user of the lab.
        group: Option<At<String>>;
    }
}
section! {
    /// Samples of the buffers of switches.
    OccupancyFile {
        /// Time between two samples, 1us or more.
        every: At<Time>;
        /// The first sample.
        from: Time = "0s";
        /// Names of links: the ports of switches in front of them.
        links: Vec<At<String>>;
    }
}
section! {
    /// An ATM switch.
    SwitchFile {
        /// Network prefix of its addresses; default: 47.0091.8100.0000 and the switch's MAC address.
        prefix: Option<At<Prefix>>;
        /// It holds cells from end systems to their contracts: true, of CBR and VBR; all, also to the peak rate of best
        /// effort; default false. Links and permanent connections may differ.
        police: Option<At<PoliceText>>;
        /// Queues of its ports; default: one for each connection, served round robin.
        queues: Option<QueuesFile>;
        /// Costs of messages of signalling; default: nothing.
        manager: Option<ManagerFile>;
        /// Calls and parties that wait for signalling of a link; default: 8192, and more where the lab needs more.
        held: u64, 1..=1_000_000;
    }
}
section! {
    /// A link out of the lab.
    OutsideOptions {
        /// ATM over TCP: whole AAL5 SDUs, as linux-atm's `atmtcp` sends them.
        atmtcp: Option<AtmTcpFile>;
        /// Cells over UDP: one in each datagram, as GNS3 and Dynamips send them, or many.
        udp: Option<UdpFile>;
        /// Cells in Ethernet frames.
        ethernet: Option<EthernetFile>;
        /// Pseudowires over MPLS on an Ethernet interface.
        mpls: Option<MplsFile>;
        /// A pseudowire over IP: a static session of L2TPv3.
        l2tp: Option<L2tpFile>;
        /// Unique name of what is at the other end; default outside1, outside2 and so on.
        name: Option<At<Name>>;
        /// Another switch is at the other end: what this one plays towards it, network or user (IISP); auto: both find
        /// out by ILMI.
        trunk: Option<At<TrunkSide>>;
        /// With trunk: leading octets of the ATM addresses to be called there.
        routes: Option<Vec<At<CallPrefix>>>;
        /// ATM addresses of the peer, one or a list; default: the peer registers its own by ILMI.
        address: Option<AddressList>;
        /// Offer ILMI: the peer gets the switch's prefix and registers its addresses; default: unless `address` is
        /// given.
        ilmi: Option<At<bool>>;
        /// Rate towards the peer.
        rate: LinkRate = "oc3";
        /// The switch holds cells that come in here to their contracts: true, all or false; default: as the switch says
        /// for end systems, and false for a trunk.
        police: Option<At<PoliceText>>;
        /// Tolerance of policers for contracts without one of their own; default 250ms.
        cdvt: Option<At<Time>>;
        /// Queues in front of it; default: as the switch says.
        queues: Option<QueuesFile>;
        /// Shaped paths by VPI, for permanent connections.
        tunnels: Option<Table<PathId, TunnelFile>>;
        /// Version of the UNI, whose network side the switch plays; default 3.1, or with ILMI what both ends speak.
        uni: Option<At<UniVersion>>;
    }
}
section! {
    /// Side that makes the TCP connection: one of `listen` and `connect`.
    AtmTcpFile {
        /// Wait for the peer here (ADDRESS:PORT).
        listen: Option<At<Socket>>;
        /// Call the peer there (HOST:PORT), again and again.
        connect: Option<At<String>>;
        /// With listen: take connections from this address only; default: from this machine only.
        from: Option<At<AnyIp>>;
    }
}
section! {
    /// The two ends of the link, and how cells are put into datagrams.
    UdpFile {
        /// Take datagrams here (ADDRESS:PORT).
        local: At<Socket>;
        /// Send them there, and take them from there only (ADDRESS:PORT).
        peer: At<Socket>;
        /// At most so many cells in a datagram, 1 to 172, each of 52 octets as in RFC 4717 (N to one); 28 fill an
        /// Ethernet frame. Default: one of 53 octets.
        cells: u64, 1..=Packing::MAX_CELLS;
        /// With cells: how long a cell waits for others.
        wait: Time = "100us", "0s"..="10ms";
        /// With cells: begin each datagram with the control word of RFC 4717.
        word: bool = false;
    }
}
section! {
    /// The two ends of the link, and how cells are put into frames.
    EthernetFile {
        /// Name of the interface, in the network namespace of the command.
        interface: At<String>;
        /// MAC address of the peer, the only one that is heard.
        peer: At<Mac>;
        /// At most so many cells in a frame. 28 fit an MTU of 1500.
        cells: u64 = 28, 1..=Packing::MAX_CELLS;
        /// How long a cell waits for others.
        wait: Time = "100us", "0s"..="10ms";
        /// Begin each frame with the control word of RFC 4717.
        word: bool = false;
    }
}
section! {
    /// The LAN emulation service: LECS, LES and BUS on a host of their own, or outside the lab.
    LaneFile {
        /// The switch that host is attached to; or the name of a trunk's far end: another lab has these services. Not
        /// needed if every ELAN has servers outside.
        on: Option<At<String>>;
        /// Name of that host; default lane.
        name: Option<At<Name>>;
        /// That host registers its address by ILMI. If not, the switch knows it.
        ilmi: bool = false;
        /// Version of the UNI between that host and its switch.
        uni: UniVersion = plan::UNI;
        /// Its link to the switch.
        #[schemars(with = "Option<LinkOptions>")]
        link: LinkOptions;
        /// Further hosts, each with a LES and a BUS for every ELAN, which take over when those before them are lost.
        standby: Option<Vec<StandbyFile>>;
        /// How the LECS assigns clients: levels in order; all criteria of a level must point to the ELAN. Default:
        /// [[name], [address]].
        policies: Option<Vec<Vec<At<CriterionText>>>>;
        /// ELAN of clients that name none and are listed nowhere; default: the first.
        default: Option<At<String>>;
        /// Frames that one end system may have sent to all members of an ELAN.
        quota: Option<QuotaFile>;
        /// The emulated LANs.
        elans: Table<Name, ElanFile>;
    }
}
section! {
    /// Frames a second that a BUS, or a LES, takes of one end system; a second's worth at once. The rest is dropped and
    /// counted.
    QuotaFile (keys::quota()) {}
}
section! {
    /// A host with LESs and BUSs that stand by.
    StandbyFile {
        /// The switch it is attached to.
        on: At<String>;
        /// Its name; default lane2, lane3 and so on.
        name: Option<At<Name>>;
        /// Its link to the switch.
        #[schemars(with = "Option<LinkOptions>")]
        link: LinkOptions;
    }
}
section! {
    /// A LANE client.
    LecFile {
        /// Version of LAN emulation that it speaks, 1 or 2; default 2, or 1 where the server does.
        version: Option<At<LaneVersion>>;
        /// LLC-multiplexed data direct connections with clients that take them, too.
        llc: bool = false;
        /// Groups of which it wants frames, besides broadcast (selective multicast); default: all.
        groups: Option<Vec<At<Group>>>;
        /// It names its ELAN to the LECS. If not, the LECS assigns one by its policies.
        named: bool = true;
        /// Traffic of the data direct connections that it calls, the same in both directions, in the words of
        /// linux-atm's qos(7); default: as the ELAN says.
        qos: Option<At<QosText>>;
        /// It stands for stations behind a bridge of the kernel that has its interface as a port: it learns their
        /// addresses, and answers LE_ARP for them. For kernel hosts, and this machine as a host.
        proxy: bool = false;
        /// Interfaces of the machine that become ports of the bridge br0 of a host of a live lab; needs proxy.
        ports: Option<Vec<At<String>>>;
        /// Bridge of the machine that gets the interface as a port, if the machine is the host; needs proxy.
        bridge: Option<At<String>>;
    }
}
section! {
    /// An emulated LAN.
    ElanFile {
        /// Its IP subnet.
        subnet: At<Net>;
        /// Its IPv6 prefix, for Linux kernel hosts and routers: the last 32 bits of each address are the IPv4 address.
        ip6: Option<At<Net6>>;
        /// Largest frame; default 1516. With servers outside: what clients ask for; default: what the servers say.
        mtu: Option<At<Mtu>>;
        /// Version of LAN emulation of its LES, 1 or 2.
        version: LaneVersion = 2;
        /// Leading octets of the ATM addresses of clients that belong here; others may not join by name.
        members: Option<Vec<At<CallPrefix>>>;
        /// MAC addresses of clients that belong here.
        macs: Option<Vec<At<Mac>>>;
        /// Traffic of the data direct connections of its clients, the same in both directions, in the words of
        /// linux-atm's qos(7); default: best effort.
        qos: Option<At<QosText>>;
        /// Rates of its clients' connections to the BUS (C24 to C26), which the LECS tells them; default: best effort.
        multicast_send: Option<MulticastSendFile>;
        /// Servers outside the lab: ATM address of the LECS, or well-known.
        lecs: Option<At<LecsAddress>>;
        /// Servers outside the lab: ATM address of the LES; alone, no LECS is asked; with `lecs`, it is the last
        /// resort.
        les: Option<At<Atm>>;
        /// With servers outside: its name there, at most 32 octets; empty lets the LECS choose; default: the key.
        name: Option<At<String>>;
    }
}
section! {
    /// Rates of a connection to the BUS, the same in both directions.
    MulticastSendFile {
        /// C26: peak rate.
        peak: At<CellsPerSecond>;
        /// C25: average rate; default: the peak rate, which makes it a connection of constant rate.
        average: Option<At<CellsPerSecond>>;
    }
}
section! {
    /// An IP router with one LANE client per ELAN.
    RouterFile {
        /// The switch it is attached to; without it, 'links:' joins the node to another one directly.
        on: Option<At<String>>;
        /// Its address on each of its ELANs and Classical IP subnets.
        elans: Table<String, At<Ip>>;
        /// MAC address of its first interface, and its ESI; default: by the address plan.
        mac: Option<At<Mac>>;
        /// Its ATM address, on a link out of the lab, without ILMI; default: by the address plan.
        address: Option<At<Atm>>;
        /// Its members of Classical IP subnets (name of the subnet: what differs there).
        clip: Option<Table<String, MemberFile>>;
        /// Speed of forwarding.
        forwarding: ForwardingRate = "wire";
        /// Limit of what waits for forwarding: frames, cells or octets.
        queue: QueueSize = 100;
        /// Routes (network: next hop) besides the computed ones.
        routes: Option<Table<Net, At<Ip>>>;
        /// Its MPOA server; default: as the lab's.
        mpoa: Option<MpoaFile>;
        /// Its LANE clients.
        #[schemars(with = "Option<LecFile>")]
        lec: LecFile;
        /// Its NHRP server, where it differs from the lab's.
        nhrp: Option<NhrpFile>;
        /// Its LANE and Classical IP clients get their addresses, and that of the LECS, from the switch by ILMI.
        ilmi: bool = false;
        /// Version of the UNI between it and its switch.
        uni: UniVersion = plan::UNI;
        /// True: a Linux kernel router; false: an embedded one; default: as the command says.
        kernel: Option<At<bool>>;
        /// False: its adapter does not shape, and sends every connection at the rate of its link.
        shape: bool = true;
        /// Its link to the switch.
        #[schemars(with = "Option<LinkOptions>")]
        link: LinkOptions;
    }
}
section! {
    /// An IP host.
    HostFile {
        /// The switch it is attached to; without it, 'links:' joins the node to another one directly.
        on: Option<At<String>>;
        /// The ELAN, or Classical IP subnet, that it joins.
        elan: At<String>;
        /// Its address.
        ip: At<Ip>;
        /// MAC address of its interface, and its ESI; default: by the address plan.
        mac: Option<At<Mac>>;
        /// Its ATM address, on a link out of the lab, without ILMI; default: by the address plan.
        address: Option<At<Atm>>;
        /// Further ELANs and Classical IP subnets (name: its address there), each with an interface of its own.
        elans: Option<Table<String, At<Ip>>>;
        /// Its members of Classical IP subnets (name of the subnet: what differs there).
        clip: Option<Table<String, MemberFile>>;
        /// Its default router; default: the first router on the ELAN, or else on one of the further ones. May be one
        /// outside if the LANE services are.
        gateway: Option<At<Ip>>;
        /// Routes (network: next hop) besides the default one.
        routes: Option<Table<Net, At<Ip>>>;
        /// Neighbours (address: MAC address) on its subnet that it never asks for by ARP.
        neighbours: Option<Table<Ip, At<Mac>>>;
        /// Its MPOA client; default: as the lab's.
        mpoa: Option<MpoaFile>;
        /// Its NHRP client, where it differs from the lab's.
        nhrp: Option<NhrpFile>;
        /// Its LANE client.
        #[schemars(with = "Option<LecFile>")]
        lec: LecFile;
        /// Its link to the switch.
        #[schemars(with = "Option<LinkOptions>")]
        link: LinkOptions;
        /// Its TCP.
        tcp: Option<TcpFile>;
        /// Costs of packets at its CPU; default: nothing. It has no effect on a Linux kernel host.
        #[schemars(with = "Option<CpuFile>")]
        cpu: CpuFile;
        /// Costs of messages of signalling at its CPU; default: nothing. It has no effect on a Linux kernel host.
        manager: Option<ManagerFile>;
        /// Its adapter; default: as fast as its link.
        adapter: Option<AdapterFile>;
        /// Its clock; default: that of the lab. It has no effect on a Linux kernel host.
        clock: Option<ClockFile>;
        /// It knows only its ESI: it gets its addresses and that of the LECS from the switch by ILMI.
        ilmi: bool = false;
        /// Version of the UNI between it and its switch. Links between switches speak the highest of the lab.
        uni: UniVersion = plan::UNI;
        /// True: a Linux kernel host; false: an embedded one; default: as the command says.
        kernel: Option<At<bool>>;
        /// False: its adapter does not shape, and sends every connection at the rate of its link.
        shape: bool = true;
        /// Programs that use the ATM service directly.
        sockets: Option<Vec<SocketFile>>;
        /// Hosts (name: address) on an Ethernet segment that it bridges to its ELAN: embedded ones, or stations of
        /// their own behind a kernel host.
        bridge: Option<Table<Name, At<Ip>>>;
        /// The cable of that segment.
        ethernet: Option<CableFile>;
        /// VLANs (VID 1 to 4094: ELAN) that it bridges, its own among them; without them it reads no tags. It is
        /// embedded then.
        vlans: Option<Table<Vid, At<String>>>;
        /// Bridged lines that are further ports of its bridge, each a part (`elan` of the line) of its network or of
        /// that of one of its VLANs. It is embedded then.
        lines: Option<Vec<At<String>>>;
    }
}
section! {
    /// A program with an ATM socket: it listens, calls, or uses a permanent connection.
    SocketFile {
        /// Unique name on its host; default socket1, socket2 and so on.
        name: Option<At<Name>>;
        /// Wait for calls: sink counts PDUs, echo sends them back, read tells their text. With vc: what it does with
        /// PDUs.
        listen: Option<At<Listen>>;
        /// Call a node (NODE or NODE/SELECTOR), or an ATM address.
        call: Option<At<String>>;
        /// Use the permanent connection that has this label here (see `pvcs`).
        vc: Option<At<Label>>;
        /// Selector of its own address, e0 to ff.
        selector: Selector = "e0";
        /// Purpose of the call, and what a listener asks for.
        sap: SapText = "any";
        /// Largest SDU that a listener takes.
        max_sdu: Octets = 9180, 1..=65_535;
        /// Calls that a listener has at a time.
        calls: u64 = 64, 1..=1000;
        /// Traffic of a call, in the words of linux-atm's qos(7).
        qos: QosText = "ubr,aal5:sdu=9180";
        /// False: the adapter of its host does not shape its calls to their contracts, also those that it takes; true:
        /// it does. Default: as the host says.
        shape: Option<At<bool>>;
        /// The rate queue of the adapter that shapes its calls with others, also those that it takes.
        rate_queue: Option<At<String>>;
        /// When the call is made, or the first PDU is sent on a permanent connection.
        start: Time = "1s";
        /// PDUs that it sends; default 1, and none with both vc and listen.
        pdus: Option<At<u64>>;
        /// Octets of each.
        size: Octets = 1000, 1..=65_535;
        /// How fast; line: the next PDU as soon as the adapter has taken the one before.
        rate: ProgramRate = "100pps";
        /// How long the caller waits after its last PDU before it releases the call.
        hold: Time = "1s";
        /// Time from the end of a call to the next call; default: one call, which is repeated while it fails with a
        /// temporary cause.
        every: Option<At<Time>>;
        /// ATP on its connections, at both ends: messages instead of single PDUs, with retransmission and a window.
        atp: Option<AtpFile>;
        /// A tester of cells (after ITU-T O.191) on a permanent connection, at both ends: it sends test cells instead
        /// of PDUs, none by default, and measures those that arrive.
        tester: bool = false;
        /// The failure that this program is expected to show: loss (of PDUs that it writes; also refused or late PDUs)
        /// or nothing (no PDU arrives); the failure is then no warning.
        expect: Option<At<ExpectText>>;
    }
}
section! {
    /// ATP of a program with an ATM socket.
    AtpFile (keys::atp()) {
        /// report (an ACK for each packet, a fixed timer, a window by CARD) or adaptive (cumulative ACKs, a timer from
        /// measured round trips); the same at both ends.
        profile: AtpProfile = "report";
        /// Octets that it sends in all, in messages.
        bytes: Octets = 0;
        /// Octets of each message; the last one may be shorter; default: all octets in one message, or 1MiB if they are
        /// more.
        message: Option<At<Octets>>;
        /// Keep every change of its window, at most 10000, for the table atp_window.
        series: bool = false;
    }
}
section! {
    /// TCP of a host: of an embedded one, or of a Linux kernel.
    TcpFile (keys::tcp()) {
        /// The host whose TCP it is, default linux; further keys change single values. A kernel has its own.
        profile: Option<At<TcpProfile>>;
        /// Congestion control; default: that of the profile, and at kernel hosts what the kernel has. Further names are
        /// for kernels.
        congestion: Option<At<TcpCongestion>>;
        /// Send and receive buffer of a connection; default: those of the profile, and at kernel hosts what the kernel
        /// has.
        buffer: Octets, range(TcpParams::RANGES.send_buffer);
    }
}
section! {
    /// A flow between two hosts.
    TrafficFile {
        /// Unique name; default: from-to.
        name: Option<At<Name>>;
        /// The host that sends.
        from: At<String>;
        /// The host that receives.
        to: At<String>;
        /// The ELAN or subnet whose interface receives, for a host on several; the sender uses its own there, if it has
        /// one. Default: the first of the host.
        over: Option<At<String>>;
        /// tcp (as fast as it can), udp, ping, rr (requests and responses), voice (G.711, 50 packets per second of 172
        /// octets), or load (UDP in per cent of a link).
        kind: At<TrafficKind>;
        /// How fast (udp, ping); default for ping: 1pps.
        rate: Option<At<FlowRate>>;
        /// Exponential gaps instead of equal ones (udp).
        poisson: bool = false;
        /// Port of the receiver (udp, voice, tcp, rr), 1 to 65535; default: 5001 and the number of the flow in this
        /// list, from 0.
        port: u64, 1..=65_535;
        /// Share of the link that a load fills in the mean.
        load: Option<At<LoadShare>>;
        /// The link of which the load is a share; default: that of the sender. With layer ethernet: a rate (10Mbps,
        /// 100Mbps, 1Gbps); default: the segment of the sender.
        link: Option<At<String>>;
        /// Units of the load: cells, or octets of an Ethernet with preamble and gap; default: cells, behind a bridge
        /// ethernet.
        layer: Option<At<LayerText>>;
        /// Octets of the frames of a load, of an Ethernet with its check sequence: one size, or a ladder of them, of
        /// which each makes a flow; default: 64, 128, 256, 512, 1024, 1280, 1518.
        frames: Option<FrameSizes>;
        /// When frames of a load are sent: periodic, ticks, poisson, onoff or trace.
        arrivals: ArrivalsText = "periodic";
        /// With onoff: mean length of a period with frames.
        on: Option<At<Time>>;
        /// With onoff: mean length of silence.
        off: Option<At<Time>>;
        /// With trace: a file beside the lab file with times and sizes.
        trace: Option<At<TraceName>>;
        /// The results tell how fairly flows of a group share (Jain's index); default: no group.
        group: Option<At<Name>>;
        /// The sender's timer ticks so coarsely (udp, load with ticks): what has become due is sent at the next tick;
        /// default: it is exact, with ticks 10ms.
        tick: Option<At<Time>>;
        /// With tick: time between datagrams of one tick.
        spacing: Time = "0s";
        /// Keep its packets one by one, at most 100000, for the table flow_deltas (udp, voice).
        series: bool = false;
        /// Octets of payload: of a datagram (24 to 65507, and not above the MTU less 28) or an echo (0 to 65507, as
        /// well), or of a request (1 to 1048576); default: udp 1000, ping 56, rr 1. It has no effect on tcp, which
        /// warns.
        size: Option<At<Octets>>;
        /// Octets that the sender sends, over one connection (tcp), as ttcp does; default: it sends until its duration
        /// is over.
        bytes: Octets, "1"..="1024GiB";
        /// Octets of each write of the sending program (tcp), 1 to 1048576; default: it keeps the send buffer full.
        write: Octets, 1..=1 << 20;
        /// When it starts; default: as soon as its hosts and the routers between them can be reached.
        start: Option<At<Time>>;
        /// How long it sends, counted from its start, also if its host starts anew meanwhile; default: to the end.
        duration: Option<At<Time>>;
        /// The failure that this flow is expected to show: loss or nothing (no packet arrives); the failure is then no
        /// warning.
        expect: Option<At<ExpectText>>;
    }
}
/// One address or a list of them.
#[derive(Clone, Debug)]
pub(crate) struct AddressList(pub(crate) Vec<At<Atm>>);

impl FromTree for AddressList {
    fn from_tree(tree: &Tree, d: &mut Diagnostics) -> Option<Self> {
        one_or_more(tree, d).map(Self)
    }
}

inline_schema!(AddressList [one: Atm], { "anyOf": [one, { "type": "array", "items": one, "minItems": 1 }] });
