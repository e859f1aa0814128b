"""The sections of a lab file as types, for labs that are built in code: `lab: Sections = {...}`.

Editors and checkers of types (mypy, pyright) then know keys, values and units. crates/python/sections writes this file
from docs/lab.schema.json.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, TypedDict


class Adapter(TypedDict, total=False):
    """An adapter that takes time for received PDUs of all connections, or that shapes paths or in rate queues."""
    buffer: int | None
    """PDUs that it can hold, with the one that it works on, 1 to 1000000; a PDU that finds no room is lost; needs
    receive."""
    paths: dict[str, Tunnel] | None
    """Shaped paths by VPI: the cells of all permanent connections with this VPI here leave at the peak rate at
    most."""
    rate_queues: dict[str, Tunnel] | None
    """Rate queues by name: the cells of all connections and calls with this rate_queue leave at the peak rate at
    most."""
    receive: str | None
    """How fast it puts PDUs together and passes them to the host: PDUs or cells per second; needs buffer."""


class ArpTimers(TypedDict, total=False):
    """ARP of embedded hosts and routers; kernel hosts do as Linux does."""
    ageing: str | float | None
    """How long a neighbour stays known after the last packet from it, 1s to 24h; default 300s."""
    attempts: int | None
    """Requests before a neighbour counts as unreachable, 1 to 20; default 3."""
    pending: int | None
    """Limit of packets that wait for one neighbour; beyond it the oldest is dropped, 1 to 10000; default 101."""
    questions: int | None
    """Limit of questions of the MPOA server that wait for one neighbour, 1 to 10000; default 64."""
    retry: str | float | None
    """Time between requests, 100ms to 60s; default 1s."""


_AtmTcp = TypedDict(
    "_AtmTcp",
    {
        "from": 'str | None',
    },
    total=False,
)


class AtmTcp(_AtmTcp, total=False):
    """Side that makes the TCP connection: one of `listen` and `connect`."""
    connect: str | float | bool | None
    """Call the peer there (HOST:PORT), again and again."""
    listen: str | None
    """Wait for the peer here (ADDRESS:PORT)."""


class Atp(TypedDict, total=False):
    """ATP of a program with an ATM socket."""
    ack_every: int | None
    """Adaptive profile: packets after which the receiver acknowledges at once, 1 to 64; default 2."""
    bytes: str | int | None
    """Octets that it sends in all, in messages; default 0."""
    initial_window: int | None
    """Packets that may be unacknowledged at the start, 1 to 4096; default 10."""
    max_message: str | int | None
    """Octets of the longest message, 1KiB to 2048MiB; default 128MiB."""
    max_window: int | None
    """Packets that may be unacknowledged at most, 1 to 4096; default 256."""
    message: str | int | None
    """Octets of each message; the last one may be shorter; default: all octets in one message, or 1MiB if they are
    more."""
    mtu: int | None
    """Octets of the longest SDU, header included, 5 to 65535; default the largest SDU of the contract, at most
    9180."""
    profile: Literal["report", "adaptive"] | None
    """report (an ACK for each packet, a fixed timer, a window by CARD) or adaptive (cumulative ACKs, a timer from
    measured round trips); the same at both ends; default report."""
    receive_limit: str | int | None
    """Octets of messages that the user has not read, and of packets behind a gap, beyond which the receiver takes
    no new message and no packet behind a gap. A message that has begun is taken to its end, 64KiB to 1024MiB;
    default 16MiB."""
    retransmissions: int | None
    """Expired timers of one packet before the connection fails; also NAKs for one packet, 1 to 1000; default 10."""
    send_limit: str | int | None
    """Octets that may wait for their first transmission; each message counts 64 octets more, 64KiB to 2048MiB;
    default 256MiB."""
    series: bool | None
    """Keep every change of its window, at most 10000, for the table atp_window; default false."""
    timer: str | float | None
    """Time after which an unacknowledged packet is sent again. The adaptive profile begins with it, 1ms to 60s;
    default 500ms."""


class Cable(TypedDict, total=False):
    """The cable of an embedded Ethernet segment."""
    ports: dict[str, Port] | None
    """Ports of the bridge, each with a cable of its own; rate and tag above are then their defaults. Default: one
    cable that all share."""
    rate: str | None
    """Rate, 10Mbps, 100Mbps or 1Gbps; default 10Mbps."""
    tag: bool | None
    """Each frame on the cable has a VLAN tag of 4 octets; default false."""


_Check = TypedDict(
    "_Check",
    {
        "in": 'str | float | bool | None',
        "is": 'str | float | bool | None',
        "pass": 'str | float | bool | None',
    },
    total=False,
)


class Check(_Check, total=False):
    """A check: one of the first twelve keys says what is looked at, and the others what it must be."""
    answer: str | float | bool | None
    """Name of an answer under 'answers:'."""
    column: str | float | bool | None
    """With table: `is` is for this column of each of these rows."""
    count: Literal["switches", "hosts", "routers", "links", "elans", "pvcs", "traffic", "faults"] | None
    """Parts of the lab that are counted: switches, hosts, routers, links, elans, pvcs, traffic or faults."""
    delay_us: dict[str, str | float | bool] | None
    """With flow: one-way delay: min, mean, p50, p99, p99_9 or max."""
    delivered: str | float | bool | None
    """With flow: packets delivered."""
    elan: str | float | bool | None
    """With host or router: an ELAN, Classical IP subnet or line that it is on."""
    exit: int | None
    """With run: exit code, 0 to 255; default 0."""
    fail: str | float | bool | None
    """Words for the report if it fails, in place of what was found and wanted."""
    flow: str | float | bool | None
    """Name of a flow."""
    host: str | float | bool | None
    """Name of a host that the lab has."""
    level: Literal["required", "warning"] | None
    """required, or warning: its failure is told, and fails nothing; default required."""
    link: str | float | bool | None
    """Two nodes (`s1 -> s2`) with a link between them."""
    lost: str | float | bool | None
    """With flow: packets lost."""
    message: str | float | bool | None
    """Words of messages of protocols (`Resolution Request from urku to s1 before 7s`), as 'run --trace' shows them:
    the messages are counted."""
    on: str | float | bool | None
    """With host or router: its switch."""
    phase: Literal["direct", "routed", "shortcut"] | None
    """With flow: only packets that took this way: direct, routed or shortcut; default: all."""
    points: int | None
    """Points if it passes, 0 to 1000; default 1, or 0 with level warning."""
    prints: str | float | bool | None
    """With run: words that the command prints."""
    reach: str | float | bool | None
    """Two hosts (`urku -> sello within 10s`): an echo request of the first is answered in time."""
    router: str | float | bool | None
    """Name of a router that the lab has."""
    run: str | float | bool | None
    """A command for a shell in a host of a running lab."""
    setting: str | float | bool | None
    """A value of the settings in the results, by its path (`nodes.urku.switch`)."""
    shortcut: str | float | bool | None
    """Two end systems (`urku -> sello by 7s`): a shortcut from the first to the second is open, at the end or by
    then."""
    stage: str | float | bool | None
    """Name of a stage. Where a check of a stage fails, later stages are not judged."""
    table: str | float | bool | None
    """Name of a table of results, such as flows or lec.client: its rows are counted."""
    throughput_mbps: str | float | bool | None
    """With flow: payload received per time."""
    title: str | float | bool | None
    """Name in the report; default: what is checked."""
    tolerance: str | float | None
    """In a running lab: how far numbers may be off. Without it, delay and throughput there are warnings."""
    where: dict[str, str | float | bool] | None
    """With table: columns and what they must be in a row that counts."""


class Clock(TypedDict, total=False):
    """The clock of an embedded host, by which its programs and its TCP go."""
    phase: str | float | None
    """How late it is, 0s to 10s; its programs send as much later; default 0s."""
    ppm: str | float | None
    """How much faster it runs, in millionths, between -1000 and 1000; negative: slower; default 0."""


class Competing(TypedDict, total=False):
    """Programs that compete with a manager for the CPU, as shell pipelines do, under the scheduler of 4.3BSD."""
    kernel: str | float | None
    """Mean time of a program in the kernel, where it is not interrupted, 0s to 1s; default 20ms."""
    life: str | float | None
    """CPU time after which a process of a program ends and a new one begins, 1ms to 1h; default 100ms."""
    nice: int | None
    """Nice value of the manager, -20 (most urgent) to 19; that of the programs is 0; default 0."""
    programs: int | None
    """How many programs, 0 to 20; default 1."""
    user: str | float | None
    """Mean time of a program in user mode between two times in the kernel, 0s to 1s; default 20ms."""


class ConnectionQueue(TypedDict, total=False):
    """The queues of one connection at the switches on its way."""
    buffer: int | None
    """Cells that wait, 0 to 1000000; default as the port says."""
    clp: int | None
    """Cells from which cells with CLP 1 are discarded, 0 to 1000000; default as the port says, or half of
    `buffer`."""
    efci: int | None
    """Cells from which user cells are marked (EFCI), 0 to 1000000; default as the port says; 0: never."""
    epd: int | None
    """Cells from which new frames are discarded, 0 to 1000000; default as the port says, or three quarters of
    `buffer`."""
    shape: bool | None
    """Switches delay its cells to the rates of its contract; default false."""
    weight: int | None
    """Its share of what the scheduler by weight has left, 1 to 1000; default 1."""


class Costs(TypedDict, total=False):
    """Costs of packets of one encapsulation, where they differ."""
    ack: str | int | None
    """Cost of a TCP segment without payload, sent or received."""
    receive: str | int | None
    """Cost of a packet that the host receives."""
    send: str | int | None
    """Cost of a packet that the host sends."""


class Cpu(TypedDict, total=False):
    """The CPU of an embedded host: one server for all packets that the host sends and receives. In virtual time,
    and in real time as exactly as the machine wakes up."""
    ack: str | int | None
    """Cost of a TCP segment without payload, sent or received; default: as other packets of its direction."""
    atp: Costs | None
    """Where packets of ATP of programs cost something else than other PDUs of programs; its ack is for ACKs and
    NAKs."""
    clip: Costs | None
    """Where packets over Classical IP cost something else."""
    interruptions: Interruptions | None
    """Other work of the host that takes its CPU now and then; default: none."""
    jitter: str | float | None
    """Each cost is multiplied by a random number of 1 - jitter to 1 + jitter; default 0."""
    lane: Costs | None
    """Where packets over LAN emulation cost something else."""
    line: Costs | None
    """Where packets over an ATM line cost something else."""
    mpoa: Costs | None
    """Where packets over MPOA shortcuts cost something else."""
    native: Costs | None
    """Where PDUs of programs cost something else."""
    queue: int | None
    """Packets that may wait, for each direction, 1 to 1000000; default 300."""
    read: str | int | None
    """Cost of a read of a program from a TCP connection; the window opens afterwards. Default: nothing."""
    receive: str | int | None
    """Cost of a packet that the host receives; default 0s."""
    send: str | int | None
    """Cost of a packet that the host sends; default 0s."""
    service: Literal["interrupt-first", "fair"] | None
    """interrupt-first: received packets go before those to be sent; fair: in the order of arrival; default
    interrupt-first."""
    write: str | int | None
    """Cost of a write of a program to a TCP connection; its segments are made afterwards. Default: nothing."""


class Elan(TypedDict, total=False):
    """An emulated LAN."""
    ip6: str | None
    """Its IPv6 prefix, for Linux kernel hosts and routers: the last 32 bits of each address are the IPv4
    address."""
    lecs: str | None
    """Servers outside the lab: ATM address of the LECS, or well-known."""
    les: str | None
    """Servers outside the lab: ATM address of the LES; alone, no LECS is asked; with `lecs`, it is the last
    resort."""
    macs: list[str] | None
    """MAC addresses of clients that belong here."""
    members: list[str] | None
    """Leading octets of the ATM addresses of clients that belong here; others may not join by name."""
    mtu: Literal[1516, 1580, 4544, 9234, 18190] | None
    """Largest frame; default 1516. With servers outside: what clients ask for; default: what the servers say."""
    multicast_send: MulticastSend | None
    """Rates of its clients' connections to the BUS (C24 to C26), which the LECS tells them; default: best
    effort."""
    name: str | float | bool | None
    """With servers outside: its name there, at most 32 octets; empty lets the LECS choose; default: the key."""
    qos: str | None
    """Traffic of the data direct connections of its clients, the same in both directions, in the words of
    linux-atm's qos(7); default: best effort."""
    subnet: str
    """Its IP subnet."""
    version: Literal[1, 2, "1", "2"] | None
    """Version of LAN emulation of its LES, 1 or 2; default 2."""


class Ethernet(TypedDict, total=False):
    """The two ends of the link, and how cells are put into frames."""
    cells: int | None
    """At most so many cells in a frame, 1 to 172; default 28. 28 fit an MTU of 1500."""
    interface: str | float | bool
    """Name of the interface, in the network namespace of the command."""
    peer: str
    """MAC address of the peer, the only one that is heard."""
    wait: str | float | None
    """How long a cell waits for others, 0s to 10ms; default 100us."""
    word: bool | None
    """Begin each frame with the control word of RFC 4717; default false."""


class Fault(TypedDict, total=False):
    """Something that breaks, is mended or changes: a time, and one of the first six of the others."""
    at: str | float
    """When (`8s`)."""
    bit_errors: str | float | dict[str, str | float] | None
    """New probability that a bit is inverted."""
    block: str | float | dict[str, str | float] | None
    """New length of a block, 1ms to 1s."""
    block_errors: str | float | dict[str, str | float] | None
    """New probability that a block is lost."""
    change: str | float | bool | None
    """A link that behaves differently from now on, as the keys of a link that stand beside say. Each of these may
    have one value, or `up:`, `down:` or both."""
    crash: str | float | bool | None
    """A node that stops, or node/service (mpc, mps, lecs, les, bus)."""
    delay: str | float | dict[str, str | float] | None
    """New delay of the link, 0s to 10s."""
    duration: str | float | None
    """With retrain: how long the link is down, 1ms to 1h."""
    link_down: str | float | bool | None
    """A link that loses everything."""
    link_up: str | float | bool | None
    """A link that works again."""
    loss: str | float | dict[str, str | float] | None
    """New probability that a cell is lost."""
    rate: str | float | dict[str, str | float] | None
    """New rate of the link."""
    restart: str | float | bool | None
    """A node or node/service that starts again."""
    retrain: str | float | bool | None
    """A link that retrains: it is down for `duration`, and then has the values that stand beside."""


class Frames(TypedDict, total=False):
    """An Ethernet, full duplex, whose frames carry cells."""
    cells: int | None
    """At most so many cells in a frame, 1 to 172; default 28. 28 fit an MTU of 1500."""
    rate: str | None
    """Rate, 10Mbps, 100Mbps or 1Gbps; default 10Mbps."""


class Host(TypedDict, total=False):
    """An IP host."""
    adapter: Adapter | None
    """Its adapter; default: as fast as its link."""
    address: str | None
    """Its ATM address, on a link out of the lab, without ILMI; default: by the address plan."""
    bridge: dict[str, str] | None
    """Hosts (name: address) on an Ethernet segment that it bridges to its ELAN: embedded ones, or stations of their
    own behind a kernel host."""
    clip: dict[str, Member] | None
    """Its members of Classical IP subnets (name of the subnet: what differs there)."""
    clock: Clock | None
    """Its clock; default: that of the lab. It has no effect on a Linux kernel host."""
    cpu: Cpu | None
    """Costs of packets at its CPU; default: nothing. It has no effect on a Linux kernel host."""
    elan: str | float | bool
    """The ELAN, or Classical IP subnet, that it joins."""
    elans: dict[str, str] | None
    """Further ELANs and Classical IP subnets (name: its address there), each with an interface of its own."""
    ethernet: Cable | None
    """The cable of that segment."""
    gateway: str | None
    """Its default router; default: the first router on the ELAN, or else on one of the further ones. May be one
    outside if the LANE services are."""
    ilmi: bool | None
    """It knows only its ESI: it gets its addresses and that of the LECS from the switch by ILMI; default false."""
    ip: str
    """Its address."""
    kernel: bool | None
    """True: a Linux kernel host; false: an embedded one; default: as the command says."""
    lec: Lec | None
    """Its LANE client."""
    lines: list[str | float | bool] | None
    """Bridged lines that are further ports of its bridge, each a part (`elan` of the line) of its network or of
    that of one of its VLANs. It is embedded then."""
    link: LinkOptions | None
    """Its link to the switch."""
    mac: str | None
    """MAC address of its interface, and its ESI; default: by the address plan."""
    manager: Manager | None
    """Costs of messages of signalling at its CPU; default: nothing. It has no effect on a Linux kernel host."""
    mpoa: Mpoa | None
    """Its MPOA client; default: as the lab's."""
    neighbours: dict[str, str] | None
    """Neighbours (address: MAC address) on its subnet that it never asks for by ARP."""
    nhrp: Nhrp | None
    """Its NHRP client, where it differs from the lab's."""
    on: str | float | bool | None
    """The switch it is attached to; without it, 'links:' joins the node to another one directly."""
    routes: dict[str, str] | None
    """Routes (network: next hop) besides the default one."""
    shape: bool | None
    """False: its adapter does not shape, and sends every connection at the rate of its link; default true."""
    sockets: list[Socket] | None
    """Programs that use the ATM service directly."""
    tcp: Tcp | None
    """Its TCP."""
    uni: Literal["3.0", "3.1", "4.0"] | float | None
    """Version of the UNI between it and its switch; default 3.1. Links between switches speak the highest of the
    lab."""
    vlans: dict[str, str] | None
    """VLANs (VID 1 to 4094: ELAN) that it bridges, its own among them; without them it reads no tags. It is
    embedded then."""


class Interruptions(TypedDict, total=False):
    """Other work of a host: interrupts of other devices, and programs that wake up. Packets wait for its end."""
    every: str | float | None
    """Mean time from the end of one to the beginning of the next, exponential, 1ms to 1h; default 5s."""
    length: str | float | None
    """Mean time of one, exponential; at most every, 0s to 10s; default 10ms."""


class L2tp(TypedDict, total=False):
    """An L2TPv3 session that both ends have configured (RFC 3931), with cells (RFC 4454)."""
    cells: int | None
    """At most so many cells in a packet, 1 to 172; default 27. 27 fit an MTU of 1500."""
    cookie: str | int | None
    """Cookie in packets from the peer, 8 or 16 hex digits; default: no cookie."""
    local: str
    """This end: ADDRESS for L2TPv3 over IP, ADDRESS:PORT for L2TPv3 over UDP."""
    peer: str
    """The peer, the only one that is heard, in the same form."""
    peer_cookie: str | int | None
    """Cookie in packets to the peer, 8 or 16 hex digits; default: no cookie."""
    peer_session: int
    """Session ID in packets to the peer, 1 to 4294967295."""
    sequence: bool | None
    """Number packets, and keep the order of the peer's by their numbers; default false."""
    session: int
    """Session ID in packets from the peer, 1 to 4294967295."""
    sublayer: Literal["none", "default", "atm"] | None
    """Sublayer of both directions: none, default or atm; default none."""
    vc: str | None
    """The session carries this VC only, VPI.VCI (VCC mode); default: the whole link (port mode)."""
    vp: int | None
    """The session carries this VPI only (VPC mode), 0 to 255; default: the whole link (port mode)."""
    wait: str | float | None
    """How long a cell waits for others, 0s to 10ms; default 100us."""


class Lane(TypedDict, total=False):
    """The LAN emulation service: LECS, LES and BUS on a host of their own, or outside the lab."""
    default: str | float | bool | None
    """ELAN of clients that name none and are listed nowhere; default: the first."""
    elans: dict[str, Elan] | None
    """The emulated LANs."""
    ilmi: bool | None
    """That host registers its address by ILMI; default false. If not, the switch knows it."""
    link: LinkOptions | None
    """Its link to the switch."""
    name: str | int | None
    """Name of that host; default lane."""
    on: str | float | bool | None
    """The switch that host is attached to; or the name of a trunk's far end: another lab has these services. Not
    needed if every ELAN has servers outside."""
    policies: list[list[Literal["name", "address", "mac", "type", "size"]]] | None
    """How the LECS assigns clients: levels in order; all criteria of a level must point to the ELAN. Default:
    [[name], [address]]."""
    quota: Quota | None
    """Frames that one end system may have sent to all members of an ELAN."""
    standby: list[Standby] | None
    """Further hosts, each with a LES and a BUS for every ELAN, which take over when those before them are lost."""
    uni: Literal["3.0", "3.1", "4.0"] | float | None
    """Version of the UNI between that host and its switch; default 3.1."""


class Lec(TypedDict, total=False):
    """A LANE client."""
    bridge: str | float | bool | None
    """Bridge of the machine that gets the interface as a port, if the machine is the host; needs proxy."""
    groups: list[str] | None
    """Groups of which it wants frames, besides broadcast (selective multicast); default: all."""
    llc: bool | None
    """LLC-multiplexed data direct connections with clients that take them, too; default false."""
    named: bool | None
    """It names its ELAN to the LECS; default true. If not, the LECS assigns one by its policies."""
    ports: list[str | float | bool] | None
    """Interfaces of the machine that become ports of the bridge br0 of a host of a live lab; needs proxy."""
    proxy: bool | None
    """It stands for stations behind a bridge of the kernel that has its interface as a port: it learns their
    addresses, and answers LE_ARP for them; default false. For kernel hosts, and this machine as a host."""
    qos: str | None
    """Traffic of the data direct connections that it calls, the same in both directions, in the words of
    linux-atm's qos(7); default: as the ELAN says."""
    version: Literal[1, 2, "1", "2"] | None
    """Version of LAN emulation that it speaks, 1 or 2; default 2, or 1 where the server does."""


class LecTimers(TypedDict, total=False):
    """Variables of LANE clients."""
    aging_time: str | float | None
    """C17: how long an entry of the LE_ARP cache holds, 10s to 300s; default 300s."""
    call_retry: str | float | None
    """Longest wait before a refused data direct call is tried again, 100ms to 300s; default 5s."""
    connection_completion: str | float | None
    """C28: wait for READY_IND, 1s to 10s; default 4s."""
    control_backoff: int | None
    """C7x: factor from one repetition of such a request to the next, 2 to 5; default 2."""
    control_timeout: str | float | None
    """C7: total time for a request to the servers, 10s to 300s; default 30s, with LANE version 1 120s."""
    expected_arp_time: str | float | None
    """C20: expected time to the answer of LE_ARP, 1s to 30s; default 1s."""
    flush_timeout: str | float | None
    """C21: wait for the answer to a flush, 1s to 4s; default 4s."""
    forward_delay: str | float | None
    """C18: the same for remote entries during a topology change, 4s to 30s; default 15s."""
    forward_disconnect: str | float | None
    """C33: wait for the BUS to come back, 10s to 300s; default 60s."""
    initial_control_timeout: str | float | None
    """C7i: time to the first repetition of such a request, 1s to 10s; default 5s."""
    max_bus_retries: int | None
    """C39: repetitions of a connection to the BUS that fails, 0 to 2; default 1."""
    max_reconfigure_delay: str | float | None
    """C38: greatest such wait (not less than C37), 1ms to 10s; default 5s."""
    max_retry_count: int | None
    """C13: repetitions of LE_ARP, 0 to 2; default 1."""
    max_unknown_count: int | None
    """C10: frames to an unknown destination within C11, 1 to 20; default 10, with LANE version 1 1."""
    max_unknown_time: str | float | None
    """C11: see C10, 1s to 60s; default 1s."""
    min_reconfigure_delay: str | float | None
    """C37: least wait before a client that has lost its servers joins again, 1ms to 10s; default 1ms."""
    path_switching_delay: str | float | None
    """C22: wait before another path is used without a flush, 1s to 8s; default 6s."""
    vcc_timeout: str | float | None
    """C12: idle time after which a data direct connection is released (0s: never), 0s to 24h; default 20min."""


class LesTimers(TypedDict, total=False):
    """Variables of LAN emulation servers."""
    control_timeout: str | float | None
    """S4: how long a connection may be there without a client that has joined, 10s to 300s; default 120s."""
    leaf_retry: str | float | None
    """Longest wait before a refused leaf of a point-to-multipoint connection is tried again, 20ms to 60s; default
    500ms."""
    leaf_tries: int | None
    """Tries of a leaf at that distance, before its client is called point-to-point, 1 to 100; default 3."""


class Limits(TypedDict, total=False):
    """Limits, on all nodes of the lab. What exceeds a limit is refused or dropped, and counted."""
    mps: MpsLimits | None
    """MPOA servers."""
    nhrp: NhrpLimits | None
    """NHRP clients."""
    port: PortLimits | None
    """Ports of switches. A limit that is not given grows with the lab."""


class Line(TypedDict, total=False):
    """An ATM line: an IP subnet, or a part of a network. Its one or two stations join it like an ELAN, by its
    name."""
    calls: str | float | bool | None
    """The station that calls the other one; default: a permanent connection has the line."""
    elan: str | float | bool | None
    """The network of which it is a part: an ELAN, or a bridged line with a subnet. A host bridges between them
    (`lines` of a host)."""
    encapsulation: (
        Literal["ipoa-vcmux", "ipoa-llcsnap", "pppoa-vcmux", "pppoa-llc", "bridged-vcmux", "bridged-vcmux-fcs",
        "bridged-llcsnap", "bridged-llcsnap-fcs", "pppoe-vcmux", "pppoe-vcmux-fcs", "pppoe-llcsnap",
        "pppoe-llcsnap-fcs"] | None
    )
    """Encapsulation of frames (bridged) or packets; PPP is static, without LCP and without discovery; default
    bridged-llcsnap."""
    mtu: int | None
    """Largest IP packet, 576 to 9180; default: 1500, with PPPoE 1492, and with `elan` that of the network."""
    qos: str | None
    """With calls: traffic in the words of linux-atm's qos(7), tx from the caller; default: best effort."""
    subnet: str | None
    """The IP subnet; with `elan` it is that of the network."""


Link: TypeAlias = 'list[str | LinkOptions | OutsideOptions]'


class LinkOptions(TypedDict, total=False):
    """How a link behaves. The first six keys take one value for both directions, or { up: ..., down: ... }: up is
    from an end system to its switch; between two switches, or two end systems, to the one that is named first."""
    bit_errors: str | float | dict[str, str | float] | None
    """Probability that a bit is inverted; default 0."""
    block: str | float | dict[str, str | float] | None
    """Length of a block, 1ms to 1s; default 16ms."""
    block_errors: str | float | dict[str, str | float] | None
    """Probability that a block is lost, with all cells that begin in it, as where a burst of noise hits an
    interleaved DSL line; default 0."""
    cdvt: str | float | None
    """Tolerance of policers for contracts without one of their own; default 250us."""
    delay: str | float | dict[str, str | float] | None
    """Propagation delay, with that of an interleaver, 0s to 10s; default 5us. A kilometre of fibre takes 5us."""
    ethernet: Frames | None
    """It is an Ethernet whose frames carry cells, instead of `rate`."""
    loss: str | float | dict[str, str | float] | None
    """Probability that a cell is lost; default 0."""
    name: str | int | None
    """Unique name; default: the two nodes joined by '-'. Only between switches."""
    police: Literal[True, False, "all"] | None
    """Its switches hold cells that come in here to their contracts: true, all or false; default: as the switch says
    for end systems, and false between switches."""
    queues: Queues | None
    """Queues of its switches in front of it; default: as these say."""
    rate: str | float | dict[str, str | float] | None
    """Rate; default oc3."""
    tunnels: dict[str, Tunnel] | None
    """Shaped paths by VPI, for permanent connections."""


class Lis(TypedDict, total=False):
    """A Classical IP subnet. Hosts and routers join it like an ELAN, by its name."""
    client_life: str | float | None
    """Life of an entry at a client, 1s to 15min; default 15min."""
    close: str | float | None
    """How long the connection of a session stays after the end of its TCP connection, 100ms to 300s; default 2s."""
    idle: str | float | None
    """Idle time after which a connection is released (0s: never), 0s to 8760h; default 20min."""
    mtu: int | None
    """Largest IP packet, 576 to 65521; default 9180."""
    mux: bool | None
    """Members call each other with VC multiplexing, packets without LLC/SNAP, where the called one knows it;
    default false."""
    negative: str | float | None
    """How long an address is not requested again after it had no owner or could not be called, 100ms to 300s;
    default 5s."""
    next_hops: NextHops | None
    """Next hops of which something is known beforehand, for all members of the lab: by IP address, or 'file
    PATH'."""
    nhrp: bool | None
    """Its routers are NHRP servers, and its hosts their clients: packets for other such subnets go directly;
    default false."""
    per: Literal["destination", "session"] | None
    """Unit that has a connection of its own: destination (each next hop), or session (each TCP connection and UDP
    session as well); default destination."""
    ports: dict[str, str] | None
    """With per session: traffic of sessions by their ports (`tcp 80`, `udp 5000-5010`, `7`); default: as 'qos'."""
    qos: str | None
    """Traffic of the connections that its members open, in the words of linux-atm's qos(7), tx from the member;
    default: best effort."""
    queue: int | None
    """Packets that wait for one next hop; further ones are dropped, 1 to 10000; default 16."""
    refresh: str | float | None
    """Time from one registration to the next, 1s to 15min; default 10min."""
    reply: str | float | None
    """First wait for an answer of ATMARP, which doubles with each repetition, 100ms to 60s; default 1s."""
    server: str | float | bool | None
    """The host or router on it that is its ATMARP server."""
    server_life: str | float | None
    """Life of an entry at the server, 1s to 24h; default 20min."""
    server_retry: str | float | None
    """Longest wait before a server is called again, 100ms to 300s; default 2s."""
    servers: str | list[str] | None
    """ATM addresses of servers outside the lab, one or a list."""
    sessions: int | None
    """With per session: sessions at a time that a member opens, and that it takes of one caller, 1 to 512; default
    64. Beyond, packets use the connection of the next hop."""
    subnet: str
    """The IP subnet."""
    tries: int | None
    """Requests before an address is given up, 1 to 20; default 4."""


class Manager(TypedDict, total=False):
    """The signalling manager of an embedded host or a switch: a process that takes time for each message of call
    control."""
    competing: Competing | None
    """Programs that compete with the manager of a host for its CPU; default: no such programs."""
    hand_over: str | int | None
    """Cost of passing a message from one process to another: from the kernel to the manager or back, and at a host
    also from a user to the manager or back; default 0s."""
    message: str | int | None
    """Cost of a message where it is read and where it is written; default 0s."""
    queue: int | None
    """PDUs of a signalling channel that may wait, at a host and for each port of a switch, 1 to 1000000; default
    300."""
    release: str | float | None
    """RELEASE and RELEASE COMPLETE and their hand-overs cost this share of what other messages cost; default 1."""


class Member(TypedDict, total=False):
    """A member of a Classical IP subnet, where it differs from the others."""
    mtu: int | None
    """Largest IP packet of its interface, at most that of the subnet; default: that of the subnet."""
    next_hops: NextHops | None
    """Next hops that it knows besides those of the subnet, and before these: by IP address, or 'file PATH'."""
    per: Literal["destination", "session"] | None
    """Unit that has a connection of its own: destination or session; default: as the subnet says."""
    ports: dict[str, str] | None
    """Traffic of sessions by their ports; default: as the subnet says."""
    qos: str | None
    """Traffic of the connections that it opens, in the words of linux-atm's qos(7); default: as the subnet says."""
    sessions: int | None
    """Sessions at a time, 1 to 512; default: as the subnet says."""


class Mpls(TypedDict, total=False):
    """Pseudowires over MPLS on an Ethernet interface (RFC 4717)."""
    cells: int | None
    """At most so many cells in a packet, 1 to 172; default 28. 28 fit an MTU of 1500."""
    incoming: int | str | None
    """With outgoing: its label in packets from the peer."""
    interface: str | float | bool
    """Name of the interface, in the network namespace of the command."""
    outgoing: int | str | list[int | str] | None
    """Pseudowire of cells (N-to-one mode): its label in packets to the peer, or a list of labels, the outermost
    first. Default: no such pseudowire, only those of entries of pvcs."""
    peer: str
    """MAC address of the next hop, the only one that is heard."""
    sequence: bool | None
    """Number packets, and keep the order of the peer's by their numbers; default false."""
    vc: str | None
    """It carries this VC only, VPI.VCI (VCC mode); default: the whole link (port mode)."""
    vp: int | None
    """It carries this VPI only (VPC mode), 0 to 255; default: the whole link (port mode)."""
    wait: str | float | None
    """How long a cell waits for others, 0s to 10ms; default 100us."""
    word: bool | None
    """Begin each packet with the control word; default true."""


Mpoa: TypeAlias = 'bool | MpoaParams'


class MpoaParams(TypedDict, total=False):
    """Parameters of MPOA."""
    flow_detect: str | None
    """Client: number of frames to one destination (1 to 65535) within a time (1s to 60s) that makes a flow (p1,
    p2); default 10 frames per 1s."""
    give_up: str | float | None
    """Server: time after which a resolution without an answer is given up (p6), 5s to 300s; default 40s."""
    hold_down: str | float | None
    """Client: pause after giving up (p6), 30s to 20min; default 4 times retry_max."""
    holding: str | float | None
    """Server: holding time of bindings (p7), 1s to 65535s; default 20min."""
    initial_retry: str | float | None
    """Client and server: wait before the first retry of a request (p4), 1s to 300s; default 5s."""
    keepalive_lifetime: str | float | None
    """Server: lifetime that a keep-alive announces (p2; at least 3 times keepalive_time), 3s to 1000s; default
    35s."""
    keepalive_time: str | float | None
    """Server: time between keep-alives (p1), 1s to 300s; default 10s."""
    protocols: list[Literal["ipv4", "ipv6"]] | None
    """Client: protocols of which flows are detected (p3); default [ipv4, ipv6]."""
    qos: list[str] | None
    """Client: packets that get shortcuts of their own with guaranteed traffic; see "QoS" in docs/lab-file.md."""
    retry_max: str | float | None
    """Client and server: how long retries go on (p5), 10s to 300s; default 40s."""
    start: str | float | None
    """When it starts; default 0s."""
    static_mps: list[StaticMps] | None
    """Client: MPOA servers that do not announce themselves."""
    tag: bool | None
    """Client: ask for tags on incoming shortcuts; default false."""
    trigger: bool | None
    """Server: ask a client for a resolution with the first packet of its flow that is routed; default false."""


class MpsLimits(TypedDict, total=False):
    """Limits of MPOA servers, which are NHRP servers, too."""
    connections: int | None
    """Connections, of both directions, 1 to 1000000; default 16384."""
    connections_per_peer: int | None
    """Connections with one peer, 1 to 1000000; default 8."""
    devices: int | None
    """Devices learned from TLVs, flows remembered for triggers, and requesters for which another server spoke, 1 to
    1000000; default 16384."""
    egress: int | None
    """Egress entries, 1 to 1000000; default 32768."""
    ingress: int | None
    """Ingress entries in all, 1 to 1000000; default 32768."""
    ingress_per_mpc: int | None
    """Ingress entries of one client, 1 to 1000000; default 8192."""
    kept: int | None
    """Bindings kept from replies that passed through (0: the server keeps no binding), 0 to 1000000; default
    512."""
    queries: int | None
    """Questions to the router that wait for an answer, 1 to 1000000; default 65536."""
    queue: int | None
    """Packets that wait for one connection, 1 to 1000000; default 8192."""
    registrations: int | None
    """Addresses that stations have registered, 1 to 1000000; default 256."""
    requesters: int | None
    """Stations to purge, for each binding, 1 to 1000000; default 256."""
    requests: int | None
    """Requests that wait for a reply, 1 to 1000000; default 65536."""
    router_bindings: int | None
    """Bindings where the router itself is the exit, 1 to 1000000; default 1024."""
    waiting: int | None
    """Resolution Requests of one client for one destination that wait while an earlier one is answered, 1 to
    1000000; default 64."""


class MulticastSend(TypedDict, total=False):
    """Rates of a connection to the BUS, the same in both directions."""
    average: str | int | None
    """C25: average rate; default: the peak rate, which makes it a connection of constant rate."""
    peak: str | int
    """C26: peak rate."""


class NextHop(TypedDict, total=False):
    """Facts about a next hop: an address, a contract, or both."""
    address: str | float | bool | None
    """Its ATM address, or the name of the host or router in this lab that has it; default: ATMARP asks."""
    qos: str | None
    """Traffic of connections to it, in the words of linux-atm's qos(7), tx to the next hop; default: best
    effort."""


NextHops: TypeAlias = 'str | dict[str, NextHop] | None'


class Nhrp(TypedDict, total=False):
    """Parameters of NHRP servers and clients, and the keys of MPOA."""
    authoritative: bool | None
    """Client: accept authoritative answers only, not cached ones; default true."""
    hold_down: str | float | None
    """Client: pause before a refused destination is requested again, 1s to 20min; default 10s."""
    holding: str | float | None
    """Client: holding time of its registration, 1s to 65535s; default 15min."""
    key: NhrpKey | None
    """A key that a server shares with all its neighbours, servers and clients of NHRP and MPOA, and a client with
    its servers and other clients: what they say to each other is signed."""
    keys: dict[str, NhrpKey] | None
    """Keys for single neighbours by name, instead of `key`."""
    prefix: int | None
    """Client: the widest network that an answer may cover, as prefix length (32: single addresses), 8 to 32;
    default 32."""
    register: bool | None
    """Server: stations may register their addresses on its networks; default: if it is on a subnet with NHRP."""
    unsigned: bool | None
    """Obey neighbours to which the lab gives no key, too; default: only if there is no key."""


class NhrpKey(TypedDict, total=False):
    """A key that two neighbours share."""
    clear_text: bool | None
    """Send the secret itself, as Cisco's `ip nhrp authentication` does: spi is 1, and the secret has 1 to 8
    characters. This is no security."""
    secret: str | float | bool
    """The secret."""
    spi: int
    """Number of the key (security parameter index), 0 to 65535."""


class NhrpLimits(TypedDict, total=False):
    """Limits of NHRP clients on Classical IP subnets."""
    conns: int | None
    """Connections, 1 to 65536; default 256."""
    entries: int | None
    """Destinations, 1 to 65536; default 256."""
    queue: int | None
    """NHRP packets that wait for the connection with the server, 1 to 65536; default 16."""


_Occupancy = TypedDict(
    "_Occupancy",
    {
        "from": 'str | float | None',
    },
    total=False,
)


class Occupancy(_Occupancy, total=False):
    """Samples of the buffers of switches."""
    every: str | float
    """Time between two samples, 1us or more."""
    links: list[str | float | bool]
    """Names of links: the ports of switches in front of them."""


class OutsideOptions(TypedDict, total=False):
    """A link out of the lab."""
    address: str | list[str] | None
    """ATM addresses of the peer, one or a list; default: the peer registers its own by ILMI."""
    atmtcp: AtmTcp | None
    """ATM over TCP: whole AAL5 SDUs, as linux-atm's `atmtcp` sends them."""
    cdvt: str | float | None
    """Tolerance of policers for contracts without one of their own; default 250ms."""
    ethernet: Ethernet | None
    """Cells in Ethernet frames."""
    ilmi: bool | None
    """Offer ILMI: the peer gets the switch's prefix and registers its addresses; default: unless `address` is
    given."""
    l2tp: L2tp | None
    """A pseudowire over IP: a static session of L2TPv3."""
    mpls: Mpls | None
    """Pseudowires over MPLS on an Ethernet interface."""
    name: str | int | None
    """Unique name of what is at the other end; default outside1, outside2 and so on."""
    police: Literal[True, False, "all"] | None
    """The switch holds cells that come in here to their contracts: true, all or false; default: as the switch says
    for end systems, and false for a trunk."""
    queues: Queues | None
    """Queues in front of it; default: as the switch says."""
    rate: str | float | None
    """Rate towards the peer; default oc3."""
    routes: list[str] | None
    """With trunk: leading octets of the ATM addresses to be called there."""
    trunk: Literal["network", "user", "auto"] | None
    """Another switch is at the other end: what this one plays towards it, network or user (IISP); auto: both find
    out by ILMI."""
    tunnels: dict[str, Tunnel] | None
    """Shaped paths by VPI, for permanent connections."""
    udp: Udp | None
    """Cells over UDP: one in each datagram, as GNS3 and Dynamips send them, or many."""
    uni: Literal["3.0", "3.1", "4.0"] | float | None
    """Version of the UNI, whose network side the switch plays; default 3.1, or with ILMI what both ends speak."""


class Port(TypedDict, total=False):
    """An Ethernet port of a host that bridges."""
    duplex: Literal["full", "half"] | None
    """full: the two directions do not wait for each other; half; default: full with one station, half with more."""
    queue: int | None
    """Frames that wait for the cable at most, in each direction, 1 to 65536; default 512."""
    rate: str | None
    """Rate, 10Mbps, 100Mbps or 1Gbps."""
    stations: list[str | float | bool]
    """The hosts of `bridge:` on its cable."""
    tag: bool | None
    """Each frame on the cable has a VLAN tag of 4 octets."""
    trunk: list[str | int] | None
    """VLANs whose frames have a tag on this cable."""
    vlan: str | int | None
    """VLAN of frames without a tag: that of an access port, or the native one of a trunk."""


class PortLimits(TypedDict, total=False):
    """Limits of the ports of switches."""
    buffer: int | None
    """Cells of best effort (UBR, ABR, GFR) that wait at the port, 16 to 1000000; default 8192."""
    calls: int | None
    """Calls, in both directions together, 1 to 60000; default 2048."""
    guaranteed_buffer: int | None
    """Cells of CBR and VBR that wait at the port, 16 to 1000000; default 1024."""
    guaranteed_vc_buffer: int | None
    """Cells of one CBR or VBR connection that wait at the port, 16 to 1000000; default 512."""
    vc_buffer: int | None
    """Cells of one best effort connection that wait at the port, 16 to 1000000; default 4096."""


_Pvc = TypedDict(
    "_Pvc",
    {
        "from": 'str | float | bool',
    },
    total=False,
)


class Pvc(_Pvc, total=False):
    """A permanent connection between two end systems. Classical IP uses those of its hosts."""
    frame_discard: bool | None
    """Full queues discard whole AAL5 frames; default: best effort yes, CBR and VBR no. False for other AALs."""
    line: str | float | bool | None
    """The line of 'lines:' that it carries: each of its ends in the lab is a station on this line."""
    mux: bool | None
    """Classical IP: packets without LLC/SNAP; default false."""
    pcr: str | int | None
    """Peak cell rate, cells per second both ways (CBR); default: best effort."""
    peer: str | None
    """Classical IP: IP address of the station at the outside end; default: InATMARP asks."""
    police: Literal[True, False, "all"] | None
    """The switches where cells come in hold them to the contract: true, of CBR and VBR; all, also to the peak rate
    of best effort; false, not. Default: as the links of its ends say."""
    pseudowire: SduWire | None
    """Behind a link over MPLS: a pseudowire of its own, with the SDUs of this connection."""
    qos: str | None
    """Instead of pcr: traffic in the words of linux-atm's qos(7), tx from the first end to the second."""
    queue: ConnectionQueue | None
    """Its queues at the switches on its way: weight, bounds, thresholds."""
    rate_queue: str | float | bool | None
    """The rate queue of the adapters at its ends that shapes it with others; an end without a rate queue of this
    name does as without the key."""
    shape: bool | None
    """False: the adapters at its ends do not shape it, and send it at the rate of their links; true: they do.
    Default: as these hosts and routers say."""
    to: str | float | bool
    """The other end."""
    to_vc: str | None
    """Its label there; default: the same."""
    tunnel: str | int | None
    """On links between switches that have a tunnel with this VPI, it is inside."""
    vc: str
    """Its label there."""
    vp: bool | None
    """Switch whole paths between two links out of the lab: the labels are VPI.0; default false."""


class Queues(TypedDict, total=False):
    """Queues of the ports of a switch, or of those at a link. What a link says counts before what its switch says;
    a 0 there is the default."""
    buffer: int | None
    """Cells of best effort that wait at a port, 0 to 1000000; default as `limits: port:` says."""
    calls: dict[str, ConnectionQueue] | None
    """Settings of calls by their class (cbr, rt-vbr, nrt-vbr, abr, ubr): the keys of `queue:` of a permanent
    connection. For a class that a link lists, the settings of its switch do not apply."""
    clp: int | None
    """Cells in this buffer from which cells with CLP 1 are discarded, 0 to 1000000; default half of `buffer`."""
    efci: int | None
    """Cells in this buffer from which user cells are marked (EFCI), 0 to 1000000; default never."""
    epd: int | None
    """Cells in this buffer from which new frames are discarded, 0 to 1000000; default three quarters of
    `buffer`."""
    guaranteed_buffer: int | None
    """Cells of CBR and VBR that wait at a port, 0 to 1000000; default as `limits: port:` says."""
    guaranteed_clp: int | None
    """Cells in this buffer from which cells with CLP 1 are discarded, 0 to 1000000; default all of
    `guaranteed_buffer`."""
    guaranteed_vc_buffer: int | None
    """Cells of one CBR or VBR connection that wait at a port, 0 to 1000000; default as `limits: port:` says."""
    guaranteed_vc_clp: int | None
    """Cells of one CBR or VBR connection from which its cells with CLP 1 are discarded, 0 to 1000000; default all
    of `guaranteed_vc_buffer`."""
    scheduler: Literal["round-robin", "weighted", "per-class"] | None
    """Order of service within a class: round-robin (default), weighted, or per-class."""
    vc_buffer: int | None
    """Cells of one best effort connection that wait at a port, 0 to 1000000; default as `limits: port:` says."""
    vc_clp: int | None
    """Cells of one best effort connection from which its cells with CLP 1 are discarded, 0 to 1000000; default half
    of `vc_buffer`."""
    vc_efci: int | None
    """Cells of one best effort connection from which its user cells are marked, 0 to 1000000; default never."""
    vc_epd: int | None
    """Cells of one best effort connection from which its new frames are discarded, 0 to 1000000; default three
    quarters of `vc_buffer`."""


class Quota(TypedDict, total=False):
    """Frames a second that a BUS, or a LES, takes of one end system; a second's worth at once. The rest is dropped
    and counted."""
    announcements: str | None
    """Frames that a LES copies to all members: LE_NARP, LE_TOPOLOGY and LE_ARP without a target, 1pps to
    1000000pps; default 500pps."""
    broadcast: str | None
    """Broadcast frames, 1pps to 1000000pps; default 1000pps."""
    multicast: str | None
    """Multicast frames, 1pps to 1000000pps; default 12500pps."""
    registrations: str | None
    """LE_REGISTER and LE_UNREGISTER requests, after which a LES sends all addresses of the client to the BUS, 1pps
    to 1000000pps; default 512pps."""
    unknown: str | None
    """Frames for unknown destinations, and flush requests, 1pps to 1000000pps; default 2000pps."""
    unregistered: str | None
    """LE_ARP requests for addresses that no client has registered, which a LES copies to all proxies, 1pps to
    1000000pps; default 1000pps."""


class Router(TypedDict, total=False):
    """An IP router with one LANE client per ELAN."""
    address: str | None
    """Its ATM address, on a link out of the lab, without ILMI; default: by the address plan."""
    clip: dict[str, Member] | None
    """Its members of Classical IP subnets (name of the subnet: what differs there)."""
    elans: dict[str, str] | None
    """Its address on each of its ELANs and Classical IP subnets."""
    forwarding: str | None
    """Speed of forwarding; default wire."""
    ilmi: bool | None
    """Its LANE and Classical IP clients get their addresses, and that of the LECS, from the switch by ILMI; default
    false."""
    kernel: bool | None
    """True: a Linux kernel router; false: an embedded one; default: as the command says."""
    lec: Lec | None
    """Its LANE clients."""
    link: LinkOptions | None
    """Its link to the switch."""
    mac: str | None
    """MAC address of its first interface, and its ESI; default: by the address plan."""
    mpoa: Mpoa | None
    """Its MPOA server; default: as the lab's."""
    nhrp: Nhrp | None
    """Its NHRP server, where it differs from the lab's."""
    on: str | float | bool | None
    """The switch it is attached to; without it, 'links:' joins the node to another one directly."""
    queue: str | int | None
    """Limit of what waits for forwarding: frames, cells or octets; default 100."""
    routes: dict[str, str] | None
    """Routes (network: next hop) besides the computed ones."""
    shape: bool | None
    """False: its adapter does not shape, and sends every connection at the rate of its link; default true."""
    uni: Literal["3.0", "3.1", "4.0"] | float | None
    """Version of the UNI between it and its switch; default 3.1."""


class SduWire(TypedDict, total=False):
    """A pseudowire in AAL5-SDU mode (RFC 4717): the label stands for the connection."""
    incoming: int | str
    """Label in packets from the peer."""
    outgoing: int | str | list[int | str]
    """Label in packets to the peer, or a list of labels, the outermost first."""
    sequence: bool | None
    """Number packets, and keep the order of the peer's by their numbers; default false."""


class Socket(TypedDict, total=False):
    """A program with an ATM socket: it listens, calls, or uses a permanent connection."""
    atp: Atp | None
    """ATP on its connections, at both ends: messages instead of single PDUs, with retransmission and a window."""
    call: str | float | bool | None
    """Call a node (NODE or NODE/SELECTOR), or an ATM address."""
    calls: int | None
    """Calls that a listener has at a time, 1 to 1000; default 64."""
    every: str | float | None
    """Time from the end of a call to the next call; default: one call, which is repeated while it fails with a
    temporary cause."""
    expect: Literal["loss", "nothing"] | None
    """The failure that this program is expected to show: loss (of PDUs that it writes; also refused or late PDUs)
    or nothing (no PDU arrives); the failure is then no warning."""
    hold: str | float | None
    """How long the caller waits after its last PDU before it releases the call; default 1s."""
    listen: Literal["sink", "echo", "read"] | None
    """Wait for calls: sink counts PDUs, echo sends them back, read tells their text. With vc: what it does with
    PDUs."""
    max_sdu: str | int | None
    """Largest SDU that a listener takes, 1 to 65535; default 9180."""
    name: str | int | None
    """Unique name on its host; default socket1, socket2 and so on."""
    pdus: int | None
    """PDUs that it sends; default 1, and none with both vc and listen."""
    qos: str | None
    """Traffic of a call, in the words of linux-atm's qos(7); default ubr,aal5:sdu=9180."""
    rate: str | None
    """How fast; line: the next PDU as soon as the adapter has taken the one before; default 100pps."""
    rate_queue: str | float | bool | None
    """The rate queue of the adapter that shapes its calls with others, also those that it takes."""
    sap: str | None
    """Purpose of the call, and what a listener asks for; default any."""
    selector: str | int | None
    """Selector of its own address, e0 to ff; default e0."""
    shape: bool | None
    """False: the adapter of its host does not shape its calls to their contracts, also those that it takes; true:
    it does. Default: as the host says."""
    size: str | int | None
    """Octets of each, 1 to 65535; default 1000."""
    start: str | float | None
    """When the call is made, or the first PDU is sent on a permanent connection; default 1s."""
    tester: bool | None
    """A tester of cells (after ITU-T O.191) on a permanent connection, at both ends: it sends test cells instead of
    PDUs, none by default, and measures those that arrive; default false."""
    vc: str | None
    """Use the permanent connection that has this label here (see `pvcs`)."""


class SocketService(TypedDict, total=False):
    """The socket service: programs of the machine use the ATM service of the hosts."""
    group: str | float | bool | None
    """Name of a group of the system: its members may connect, too; default: only the user of the lab."""


class SscopTimers(TypedDict, total=False):
    """SSCOP (Q.2110), with the defaults of Q.2130."""
    max_cc: int | None
    """Transmissions of BGN, END, RS or ER before giving up (MaxCC), 1 to 100; default 4."""
    max_pd: int | None
    """Messages after which a POLL is sent at once (MaxPD), 1 to 1000; default 25."""
    timer_cc: str | float | None
    """Time between transmissions of BGN, END, RS or ER, 10ms to 60s; default 1s."""
    timer_idle: str | float | None
    """Time without POLLs once nothing is outstanding, 10ms to 10min; default 15s."""
    timer_keep_alive: str | float | None
    """Time between POLLs while nothing is outstanding and a STAT is awaited, 10ms to 60s; default 2s."""
    timer_no_response: str | float | None
    """Longest time without a STAT before the link counts as lost (longer than timer_poll and timer_keep_alive),
    20ms to 10min; default 7s."""
    timer_poll: str | float | None
    """Time between POLLs while data are outstanding, 10ms to 60s; default 750ms."""
    window: int | None
    """Messages granted to the peer beyond the next one expected, 1 to 4096; default 128."""


class Standby(TypedDict, total=False):
    """A host with LESs and BUSs that stand by."""
    link: LinkOptions | None
    """Its link to the switch."""
    name: str | int | None
    """Its name; default lane2, lane3 and so on."""
    on: str | float | bool
    """The switch it is attached to."""


class StaticMps(TypedDict, total=False):
    """An MPOA server that does not announce itself."""
    address: str
    """Its control address."""
    mac: str
    """Its MAC address on the ELAN of the client."""


class Switch(TypedDict, total=False):
    """An ATM switch."""
    held: int | None
    """Calls and parties that wait for signalling of a link, 1 to 1000000; default: 8192, and more where the lab
    needs more."""
    manager: Manager | None
    """Costs of messages of signalling; default: nothing."""
    police: Literal[True, False, "all"] | None
    """It holds cells from end systems to their contracts: true, of CBR and VBR; all, also to the peak rate of best
    effort; default false. Links and permanent connections may differ."""
    prefix: str | None
    """Network prefix of its addresses; default: 47.0091.8100.0000 and the switch's MAC address."""
    queues: Queues | None
    """Queues of its ports; default: one for each connection, served round robin."""


class Tcp(TypedDict, total=False):
    """TCP of a host: of an embedded one, or of a Linux kernel."""
    ack_every: int | None
    """Segments that are acknowledged together: 1, at once; 2, the second one at once and a single one after a
    delay, 1 to 2; default that of the profile."""
    ack_tick: str | float | None
    """Instead: such acknowledgements are sent at ticks of a clock of the whole host, with this interval, 1ms to
    500ms; default that of the profile, or no such clock."""
    buffer: str | int | None
    """Send and receive buffer of a connection, 2KiB to 64MiB; default: those of the profile, and at kernel hosts
    what the kernel has."""
    congestion: (
        Literal["cubic", "reno", "none", "bbr", "bic", "cdg", "dctcp", "highspeed", "htcp", "hybla", "illinois",
        "lp", "nv", "scalable", "vegas", "veno", "westwood", "yeah"] | None
    )
    """Congestion control; default: that of the profile, and at kernel hosts what the kernel has. Further names are
    for kernels."""
    delayed_ack: str | float | None
    """How long the acknowledgement of a single segment is delayed, 1ms to 500ms; default that of the profile."""
    ecn: bool | None
    """Congestion is told by marks instead of losses, if both hosts want it (ECN): cells with EFCI mark their
    packet; default that of the profile."""
    initial_window: int | None
    """Congestion window at the start, segments, 1 to 255; default that of the profile."""
    min_rto: str | float | None
    """Shortest time before an unacknowledged segment is sent again, 1ms to 60s; default that of the profile."""
    mss: int | None
    """Largest segment that the host announces, octets; an embedded host sends no larger ones either, 64 to 65481;
    default what the MTU holds."""
    nagle: bool | None
    """Nagle's algorithm: no small segment while data are unacknowledged; default true for tcp, false for rr."""
    profile: (
        Literal["linux", "linux-2.2", "bsd-4.3", "irix-5", "unicos-8", "solaris-2.6", "windows-nt4", "newreno",
        "reno", "tahoe"] | None
    )
    """The host whose TCP it is, default linux; further keys change single values. A kernel has its own."""
    receive_buffer: str | int | None
    """Receive buffer of a connection, which does not grow then; above 65535 octets the window is scaled, 2KiB to
    64MiB; default that of `buffer`, or of the profile."""
    sack: bool | None
    """Selective acknowledgements, if both hosts want them; default that of the profile."""
    send_buffer: str | int | None
    """Send buffer of a connection, which does not grow then, 2KiB to 64MiB; default that of `buffer`, or of the
    profile."""
    timestamps: bool | None
    """Time stamps, 12 octets of each segment, if both hosts want them; default that of the profile."""
    window_scaling: bool | None
    """Windows above 65535 octets, if both hosts want them; default that of the profile."""


class Timers(TypedDict, total=False):
    """Timers of protocols, on all nodes of the lab; what is left out has the standard's value."""
    arp: ArpTimers | None
    """ARP of embedded hosts and routers."""
    lec: LecTimers | None
    """LANE clients."""
    les: LesTimers | None
    """LAN emulation servers."""
    sscop: SscopTimers | None
    """Signalling links, at both ends."""
    uni: UniTimers | None
    """Call control, at both ends."""


_Traffic = TypedDict(
    "_Traffic",
    {
        "from": 'str | float | bool',
    },
    total=False,
)


class Traffic(_Traffic, total=False):
    """A flow between two hosts."""
    arrivals: Literal["periodic", "ticks", "poisson", "onoff", "trace"] | None
    """When frames of a load are sent: periodic, ticks, poisson, onoff or trace; default periodic."""
    bytes: str | int | None
    """Octets that the sender sends, over one connection (tcp), as ttcp does, 1 to 1024GiB; default: it sends until
    its duration is over."""
    duration: str | float | None
    """How long it sends, counted from its start, also if its host starts anew meanwhile; default: to the end."""
    expect: Literal["loss", "nothing"] | None
    """The failure that this flow is expected to show: loss or nothing (no packet arrives); the failure is then no
    warning."""
    frames: int | list[int] | None
    """Octets of the frames of a load, of an Ethernet with its check sequence: one size, or a ladder of them, of
    which each makes a flow; default: 64, 128, 256, 512, 1024, 1280, 1518."""
    group: str | int | None
    """The results tell how fairly flows of a group share (Jain's index); default: no group."""
    kind: Literal["tcp", "udp", "ping", "rr", "voice", "load"]
    """tcp (as fast as it can), udp, ping, rr (requests and responses), voice (G.711, 50 packets per second of 172
    octets), or load (UDP in per cent of a link)."""
    layer: Literal["cells", "ethernet"] | None
    """Units of the load: cells, or octets of an Ethernet with preamble and gap; default: cells, behind a bridge
    ethernet."""
    link: str | float | bool | None
    """The link of which the load is a share; default: that of the sender. With layer ethernet: a rate (10Mbps,
    100Mbps, 1Gbps); default: the segment of the sender."""
    load: str | None
    """Share of the link that a load fills in the mean."""
    name: str | int | None
    """Unique name; default: from-to."""
    off: str | float | None
    """With onoff: mean length of silence."""
    on: str | float | None
    """With onoff: mean length of a period with frames."""
    over: str | float | bool | None
    """The ELAN or subnet whose interface receives, for a host on several; the sender uses its own there, if it has
    one. Default: the first of the host."""
    poisson: bool | None
    """Exponential gaps instead of equal ones (udp); default false."""
    port: int | None
    """Port of the receiver (udp, voice, tcp, rr), 1 to 65535; default: 5001 and the number of the flow in this
    list, from 0."""
    rate: str | None
    """How fast (udp, ping); default for ping: 1pps."""
    series: bool | None
    """Keep its packets one by one, at most 100000, for the table flow_deltas (udp, voice); default false."""
    size: str | int | None
    """Octets of payload: of a datagram (24 to 65507, and not above the MTU less 28) or an echo (0 to 65507, as
    well), or of a request (1 to 1048576); default: udp 1000, ping 56, rr 1. It has no effect on tcp, which
    warns."""
    spacing: str | float | None
    """With tick: time between datagrams of one tick; default 0s."""
    start: str | float | None
    """When it starts; default: as soon as its hosts and the routers between them can be reached."""
    tick: str | float | None
    """The sender's timer ticks so coarsely (udp, load with ticks): what has become due is sent at the next tick;
    default: it is exact, with ticks 10ms."""
    to: str | float | bool
    """The host that receives."""
    trace: str | None
    """With trace: a file beside the lab file with times and sizes."""
    write: str | int | None
    """Octets of each write of the sending program (tcp), 1 to 1048576; default: it keeps the send buffer full."""


class Tunnel(TypedDict, total=False):
    """A shaped path: the switches at the link keep the connections in it together to a peak rate."""
    calls: bool | None
    """True on a link between switches: all calls on this link are in this path; default false."""
    cdvt: str | float | None
    """Tolerance of who polices the path: a cell that was held up may be that much nearer to the one before it, 0s
    to 1s; default 250us. 0us: cells are never nearer than 1/pcr."""
    pcr: str | int
    """Peak rate of all its connections together, cells per second, in each direction."""


class Udp(TypedDict, total=False):
    """The two ends of the link, and how cells are put into datagrams."""
    cells: int | None
    """At most so many cells in a datagram, 1 to 172, each of 52 octets as in RFC 4717 (N to one); 28 fill an
    Ethernet frame. Default: one of 53 octets."""
    local: str
    """Take datagrams here (ADDRESS:PORT)."""
    peer: str
    """Send them there, and take them from there only (ADDRESS:PORT)."""
    wait: str | float | None
    """With cells: how long a cell waits for others, 0s to 10ms; default 100us."""
    word: bool | None
    """With cells: begin each datagram with the control word of RFC 4717; default false."""


class UniTimers(TypedDict, total=False):
    """Timers of UNI signalling (Q.2931, Q.2971)."""
    t301: str | float | None
    """ALERTING until CONNECT, 1s to 10min; default 180s."""
    t303: str | float | None
    """SETUP until any answer, 100ms to 60s; default 4s."""
    t308: str | float | None
    """RELEASE until its answer, 100ms to 10min; default 30s."""
    t309: str | float | None
    """How long calls outlive a lost signalling link, 100ms to 10min; default 10s."""
    t310: str | float | None
    """CALL PROCEEDING until the next answer, 100ms to 10min; default 10s, at a user of UNI 4.0 30s."""
    t313: str | float | None
    """CONNECT until CONNECT ACKNOWLEDGE, 100ms to 60s; default 4s."""
    t316: str | float | None
    """RESTART until its answer, 1s to 10min; default 120s."""
    t317: str | float | None
    """RESTART received until its resources are free (less than the peer's T316), 1s to 10min; default 90s."""
    t322: str | float | None
    """STATUS ENQUIRY until its answer, 100ms to 60s; default 4s."""
    t397: str | float | None
    """PARTY ALERTING until the next answer, 1s to 10min; default 180s."""
    t398: str | float | None
    """DROP PARTY until its answer, 100ms to 60s; default 4s."""
    t399: str | float | None
    """ADD PARTY until any answer, 100ms to 10min; default 14s, at a user 34s."""


class Sections(TypedDict, total=False):
    """A lab: nodes, links, traffic."""
    answers: dict[str, str] | None
    """Answers to questions, for checks of them."""
    capture: list[str | float | bool] | None
    """Names of links to record."""
    checks: list[Check] | None
    """Checks for 'aerostat check', which tell whether the lab does what it should."""
    clip: dict[str, Lis] | None
    """Classical IP subnets."""
    description: str | float | bool | None
    """Purpose of the lab, in words."""
    faults: list[Fault] | None
    """Faults, and when they happen."""
    hosts: dict[str, Host] | None
    """IP hosts."""
    lane: Lane | None
    """The LAN emulation service and its emulated LANs."""
    limits: Limits | None
    """Limits of ports, servers and clients, on all nodes."""
    lines: dict[str, Line] | None
    """ATM lines: IP subnets of two stations each, with an encapsulation of RFC 2684, RFC 2364 or RFC 2516."""
    links: list[Link] | None
    """Links between switches: [a, b, { options }], the first named plays the network side; in the same form, links
    between two hosts or routers without a switch; and links out of the lab: [switch or end system, { atmtcp: ...
    }]."""
    mpoa: Mpoa | None
    """MPOA on all hosts and routers: true, false, or parameters; default false."""
    name: str | int | None
    """Name of the lab; default: the name of the file."""
    names: dict[str, str] | None
    """Names for ATM addresses of systems outside the lab: texts show them, and programs call by them."""
    nhrp: Nhrp | None
    """NHRP: keys and registrations, for all servers and clients."""
    occupancy: Occupancy | None
    """Levels of the buffers of switches over time, in the results."""
    pvcs: list[Pvc] | None
    """Permanent connections."""
    routers: dict[str, Router] | None
    """IP routers."""
    schema: Literal["aerostat.lab.v1"] | None
    """Version of the format of this file; default: that which is read."""
    seed: int | None
    """Seed of all random streams; default 1."""
    site: int | None
    """Number of this lab among labs joined by trunks, 0 to 15, so that all addresses differ; default 0."""
    sockets: SocketService | None
    """Other users that may use the ATM service of the hosts while the lab runs."""
    switches: dict[str, Switch] | None
    """ATM switches."""
    timers: Timers | None
    """Timers of LANE, ARP and signalling, on all nodes; default: those of the standards."""
    traffic: list[Traffic] | None
    """Traffic between hosts."""
    until: str | float | None
    """When a run in virtual time ends; default: two seconds after the last traffic."""
