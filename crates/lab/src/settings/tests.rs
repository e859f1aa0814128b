//! No key of a lab file is forgotten: each one is changed, and the settings change.

mod documentation;

use super::settings;
use crate::Override;
use crate::diag::Severity;
use crate::file::keys::tests::{SECTIONS, Section};
use aerostat_proto::parameters::{Octets, Parameter, PerSecond, Value as Param};
use aerostat_proto::{Duration, Instant};
use serde_json::Value;
use std::collections::BTreeSet;

/// A lab with all sections.
const ALL: &str = "
switches: { s1: {}, s2: {} }
links:
  - [s1, s2, {}]
  - [s1, { name: tcp, atmtcp: { listen: 127.0.0.1:2812 }, address: 47.0005.80FFE1000000F21A26D8.0020EA0000B0.00 }]
  - [s1, { name: away, udp: { local: 127.0.0.1:7001, peer: 127.0.0.1:7002, cells: 28 } }]
  - [s2, { name: card, ethernet: { interface: eth7, peer: 02:00:00:00:00:01 } }]
  - [s2, { name: trunk, trunk: network, routes: [47.0091.81.000000.02a7.10], udp: { local: 127.0.0.1:7003, peer: 127.0.0.1:7004 } }]
  - [s1, s2, { name: other }]
  - [s2, { name: pe, mpls: { interface: eth6, peer: 02:00:00:00:00:01, outgoing: 1000, incoming: 2000 } }]
  - [s2, { name: tunnel, l2tp: { local: 10.0.0.1, peer: 10.0.0.2, session: 1, peer_session: 2, sublayer: atm } }]
  - [s1, s2, { name: c, queues: {} }]
  - [solo, { name: sky, udp: { local: 127.0.0.1:7101, peer: 127.0.0.1:7102 } }]
  - [sole, { name: sun, udp: { local: 127.0.0.1:7103, peer: 127.0.0.1:7104 } }]
lane:
  on: s1
  link: {}
  quota: {}
  policies: [[name], [address]]
  standby: [{ on: s2, link: {} }]
  elans:
    a: { subnet: 10.1.0.0/24 }
    b: { subnet: 10.2.0.0/24 }
    f: { subnet: 10.6.0.0/24, lecs: 47.0005.80FFE1000000F21A26D8.0020EA0000D7.00 }
clip:
  c: { subnet: 10.3.0.0/24, server: p, nhrp: true, next_hops: { 10.3.0.77: { address: 47.0005.80FFE1000000F21A26D8.0020EA0000C0.00 } } }
  d: { subnet: 10.4.0.0/24, server: q }
lines: { ln: { subnet: 10.17.0.0/24 }, g: { subnet: 10.8.0.0/24, calls: v } }
pvcs:
  - { from: x, vc: 0.100, to: y, queue: {} }
  - { from: p, vc: 0.101, to: tcp }
  - { from: y, vc: 0.102, to: pe, pseudowire: { outgoing: 1001, incoming: 2001 } }
  - { from: v, vc: 0.103, to: tcp, line: ln }
mpoa: { start: 0s }
nhrp: { register: true }
timers: {}
limits: {}
routers:
  r: { on: s2, elans: { a: 10.1.0.1, b: 10.2.0.1 }, link: {}, lec: {} }
  k: { on: s2, elans: { a: 10.1.0.3 } }
  sole: { elans: { f: 10.6.0.1 } }
  h: { on: s2, elans: { c: 10.3.0.1 }, nhrp: { key: { spi: 1, secret: k }, keys: { p: { spi: 4, secret: k } } } }
hosts:
  x:
    on: s1
    elan: a
    ip: 10.1.0.10
    link: {}
    lec: {}
    tcp: {}
    cpu: {}
    adapter: { receive: 400pdus/s, buffer: 2 }
    clock: {}
    mpoa: { static_mps: [{ mac: 02:00:00:00:00:09, address: 47.0005.80FFE1000000F21A26D8.0020EA0000C0.00 }] }
    sockets: [{ vc: 0.100, listen: sink }, { name: ear, listen: sink, selector: e1 }]
  y:
    on: s2
    elan: b
    ip: 10.2.0.10
    sockets: [{ name: mouth, call: x/e1 }, { name: near, call: linux/e2, atp: { bytes: 3KiB } }]
  w: { on: s2, elan: b, ip: 10.2.0.12, bridge: { wt: 10.2.0.21 }, ethernet: { ports: { e1: { stations: [wt] } } } }
  z: { on: s2, elan: f, ip: 10.6.0.10 }
  solo: { elan: f, ip: 10.6.0.11 }
  linux: { on: s1, elan: a, ip: 10.1.0.77, kernel: true, tcp: {}, sockets: [{ name: far, listen: sink, selector: e2, max_sdu: 9999, atp: {} }] }
  p: { on: s1, elan: c, ip: 10.3.0.10, nhrp: { key: { spi: 4, secret: k } } }
  q: { on: s1, elan: d, ip: 10.4.0.10 }
  v: { on: s1, elan: ln, ip: 10.17.0.10, elans: { g: 10.8.0.10 } }
  t: { on: s2, elan: g, ip: 10.8.0.11 }
traffic:
  - { name: u, from: x, to: y, kind: udp, rate: 10pps }
faults:
  - { at: 5s, crash: x }
  - { at: 5s, link_down: s1-s2 }
";

/// Each key with what is set before (several by blanks), and then. A key stands under the section that the schema has
/// for it.
const CHANGES: &str = "
lab.seed || seed=7
lab.until || until=9s
lab.mpoa || mpoa=false
lab.nhrp || nhrp={register: false}
lab.timers || timers={arp: {retry: 2s}}
lab.site || site=3
lab.switches || switches.s2.police=true
lab.links || links.s1-s2.delay=9ms
lab.lane || lane.uni=3.0
lab.clip || clip.d.mtu=1500
lab.lines || lines.ln.mtu=1300
lab.pvcs || pvcs.0.pcr=99
lab.routers || routers.r.queue=7
lab.hosts || hosts.q.ip=10.4.0.11
lab.traffic || traffic=[]
lab.faults || faults=[]
lab.capture || capture=[s1-s2]
lab.occupancy || occupancy={ every: 1ms, links: [s1-s2] }
lab.sockets || sockets={ group: users }
lab.names || names={ far: 4700918100000002A70000010002A703200001E0 }
SocketServiceFile.group || sockets={ group: users }
OccupancyFile.every || occupancy={ every: 1s, links: [s1-s2] }
OccupancyFile.from || occupancy={ every: 1s, links: [s1-s2], from: 1s }
OccupancyFile.links || occupancy={ every: 1s, links: [x-s1] }
SwitchFile.prefix || switches.s1.prefix=47.0091.8100.0000.0000.0000.0077
SwitchFile.police || switches.s1.police=true
SwitchFile.queues || switches.s1.queues={buffer: 99}
LinkOptions.name || links.other.name=middle
LinkOptions.rate || hosts.x.link.rate=ds3
LinkOptions.up | hosts.x.link.rate={up: ds3, down: e3} | hosts.x.link.rate={up: e3, down: e3}
LinkOptions.down | hosts.x.link.rate={up: ds3, down: e3} | hosts.x.link.rate={up: ds3, down: ds3}
LinkOptions.ethernet || hosts.x.link.ethernet={}
FramesFile.rate | hosts.x.link.ethernet={} | hosts.x.link.ethernet={rate: 100Mbps}
FramesFile.cells | hosts.x.link.ethernet={} | hosts.x.link.ethernet={cells: 8}
LinkOptions.delay || lane.link.delay=7ms
LinkOptions.loss || routers.r.link.loss=0.5
LinkOptions.bit_errors || links.s1-s2.bit_errors=1e-6
LinkOptions.block_errors || links.s1-s2.block_errors=0.01
LinkOptions.block | links.s1-s2.block_errors=0.01 | links.s1-s2.block_errors=0.01 links.s1-s2.block=2ms
LinkOptions.police || hosts.x.link.police=all
LinkOptions.cdvt || hosts.x.link.cdvt=1ms
LinkOptions.queues || hosts.x.link.queues={efci: 99}
LinkOptions.tunnels || links.s1-s2.tunnels={5: {pcr: 1000}}
QueuesFile.scheduler || links.c.queues.scheduler=weighted
QueuesFile.calls || links.c.queues.calls={ubr: {weight: 3}}
TunnelFile.pcr | links.s1-s2.tunnels={5: {pcr: 1000}} | links.s1-s2.tunnels={5: {pcr: 1001}}
TunnelFile.cdvt | links.s1-s2.tunnels={5: {pcr: 1000}} | links.s1-s2.tunnels={5: {pcr: 1000, cdvt: 1us}}
TunnelFile.calls | links.s1-s2.tunnels={5: {pcr: 1000}} | links.s1-s2.tunnels={5: {pcr: 1000, calls: true}}
OutsideOptions.atmtcp || links.1.atmtcp={connect: 10.0.0.1:2812}
OutsideOptions.udp || links.2.udp={local: 127.0.0.1:7009, peer: 127.0.0.1:7002}
OutsideOptions.ethernet || links.3.ethernet={interface: eth8, peer: 02:00:00:00:00:01}
OutsideOptions.name || links.2.name=afar
OutsideOptions.trunk || links.4.trunk=user
OutsideOptions.routes || links.4.routes=[47.0091.81.000000.02a7.20]
OutsideOptions.address || links.2.address=47.0005.80FFE1000000F21A26D8.0020EA0000D0.00
OutsideOptions.ilmi || links.1.ilmi=true
OutsideOptions.rate || links.2.rate=25.6
OutsideOptions.uni || links.1.uni=3.0
OutsideOptions.police || links.1.police=true
OutsideOptions.cdvt || links.1.cdvt=2ms
OutsideOptions.queues || links.1.queues={efci: 99}
OutsideOptions.tunnels || links.1.tunnels={5: {pcr: 1000}}
AtmTcpFile.listen || links.1.atmtcp.listen=127.0.0.1:2813
AtmTcpFile.connect | links.1.atmtcp={connect: a:1} | links.1.atmtcp={connect: b:1}
AtmTcpFile.from || links.1.atmtcp.from=10.0.0.7
UdpFile.local || links.2.udp.local=127.0.0.1:7009
UdpFile.peer || links.2.udp.peer=127.0.0.1:7009
UdpFile.cells || links.2.udp.cells=5
UdpFile.wait || links.2.udp.wait=1ms
UdpFile.word || links.2.udp.word=true
OutsideOptions.mpls || links.6.mpls={interface: eth8, peer: 02:00:00:00:00:01, outgoing: 1000, incoming: 2000}
OutsideOptions.l2tp || links.7.l2tp={local: 10.0.0.1, peer: 10.0.0.2, session: 7, peer_session: 2}
MplsFile.interface || links.6.mpls.interface=eth9
MplsFile.peer || links.6.mpls.peer=02:00:00:00:00:02
MplsFile.outgoing || links.6.mpls.outgoing=[17, 1000]
MplsFile.incoming || links.6.mpls.incoming=2002
MplsFile.vc || links.6.mpls.vc=0.100
MplsFile.vp || links.6.mpls.vp=5
MplsFile.cells || links.6.mpls.cells=5
MplsFile.wait || links.6.mpls.wait=1ms
MplsFile.word || links.6.mpls.word=false
MplsFile.sequence || links.6.mpls.sequence=true
SduWireFile.outgoing || pvcs.2.pseudowire.outgoing=[17, 1001]
SduWireFile.incoming || pvcs.2.pseudowire.incoming=2002
SduWireFile.sequence || pvcs.2.pseudowire.sequence=true
L2tpFile.local || links.7.l2tp.local=10.0.0.3
L2tpFile.peer || links.7.l2tp.peer=10.0.0.3
L2tpFile.session || links.7.l2tp.session=3
L2tpFile.peer_session || links.7.l2tp.peer_session=3
L2tpFile.cookie || links.7.l2tp.cookie=01234567
L2tpFile.peer_cookie || links.7.l2tp.peer_cookie=0123456789abcdef
L2tpFile.sublayer || links.7.l2tp.sublayer=none
L2tpFile.sequence || links.7.l2tp.sequence=true
L2tpFile.vc || links.7.l2tp.vc=0.100
L2tpFile.vp || links.7.l2tp.vp=5
L2tpFile.cells || links.7.l2tp.cells=5
L2tpFile.wait || links.7.l2tp.wait=1ms
EthernetFile.interface || links.3.ethernet.interface=eth9
EthernetFile.peer || links.3.ethernet.peer=02:00:00:00:00:02
EthernetFile.cells || links.3.ethernet.cells=5
EthernetFile.wait || links.3.ethernet.wait=1ms
EthernetFile.word || links.3.ethernet.word=true
LaneFile.on || lane.on=s2
LaneFile.name || lane.name=services
LaneFile.ilmi || lane.ilmi=true
LaneFile.uni || lane.uni=3.0
LaneFile.link || lane.link.rate=ds3
LaneFile.standby || lane.standby=[]
LaneFile.policies || lane.policies=[[address], [name]]
LaneFile.default || lane.default=b
LaneFile.quota || lane.quota={broadcast: 7pps}
LaneFile.elans || lane.elans.e={subnet: 10.7.0.0/24}
StandbyFile.on || lane.standby.0.on=s1
StandbyFile.name || lane.standby.0.name=second
StandbyFile.link || lane.standby.0.link.rate=ds3
LecFile.version || hosts.x.lec.version=1
LecFile.llc || hosts.x.lec.llc=true
LecFile.groups || hosts.x.lec.groups=[239.1.1.1]
LecFile.named || routers.r.lec.named=false
LecFile.qos || hosts.x.lec.qos=cbr:pcr=9
LecFile.proxy || hosts.x.lec.proxy=true
LecFile.ports | hosts.x.lec={proxy: true} | hosts.x.lec={proxy: true, ports: [eth1]}
LecFile.bridge | hosts.x.lec={proxy: true} | hosts.x.lec={proxy: true, bridge: br7}
ElanFile.qos || lane.elans.a.qos=cbr:pcr=9
ElanFile.multicast_send || lane.elans.a.multicast_send={ peak: 9cells/s }
MulticastSendFile.peak || lane.elans.b.multicast_send={ peak: 9cells/s }
MulticastSendFile.average || lane.elans.b.multicast_send={ peak: 9cells/s, average: 8cells/s }
ElanFile.subnet || lane.elans.f.subnet=10.6.0.0/25
ElanFile.ip6 || lane.elans.a.ip6=2001:db8:1::/64
ElanFile.mtu || lane.elans.a.mtu=4544
ElanFile.version || lane.elans.b.version=1
ElanFile.members || lane.elans.b.members=[47]
ElanFile.macs || lane.elans.b.macs=[02:00:00:00:00:05]
ElanFile.lecs || lane.elans.f.lecs=47.0005.80FFE1000000F21A26D8.0020EA0000E0.00
ElanFile.les || lane.elans.f.les=47.0005.80FFE1000000F21A26D8.0020EA0000E0.00
ElanFile.name || lane.elans.f.name=elsewhere
RouterFile.on || routers.r.on=s1
RouterFile.elans || routers.r.elans.a=10.1.0.2
RouterFile.mac || routers.r.mac=02:00:00:00:00:78
RouterFile.address || routers.sole.address=47.0005.80FFE1000000F21A26D8.0020EA0000D9.00
RouterFile.forwarding || routers.r.forwarding=35Mbps
RouterFile.queue || routers.r.queue=7
RouterFile.routes || routers.r.routes={10.9.0.0/16: 10.1.0.3}
RouterFile.mpoa || routers.r.mpoa={give_up: 9s}
RouterFile.lec || routers.r.lec.version=1
RouterFile.nhrp || routers.r.nhrp={register: false}
RouterFile.ilmi || routers.r.ilmi=true
RouterFile.uni || routers.r.uni=3.0
RouterFile.kernel || routers.r.kernel=false
RouterFile.shape || routers.r.shape=false
RouterFile.link || routers.r.link.rate=ds3
HostFile.on || hosts.z.on=s1
HostFile.elan || hosts.z={on: s2, elan: b, ip: 10.2.0.33}
HostFile.ip || hosts.x.ip=10.1.0.11
HostFile.mac || hosts.x.mac=02:00:00:00:00:77
HostFile.address || hosts.solo.address=47.0005.80FFE1000000F21A26D8.0020EA0000D9.00
HostFile.elans || hosts.q.elans={c: 10.3.0.66, a: 10.1.0.66}
HostFile.gateway || hosts.x.gateway=10.1.0.3
HostFile.routes || hosts.x.routes={10.9.0.0/16: 10.1.0.1}
HostFile.neighbours || hosts.x.neighbours={10.1.0.1: 02:00:00:00:00:07}
HostFile.mpoa || hosts.y.mpoa=false
HostFile.nhrp || hosts.p.nhrp={prefix: 24}
HostFile.lec || hosts.x.lec.version=1
HostFile.link || hosts.x.link.rate=ds3
HostFile.tcp || hosts.x.tcp.congestion=reno
HostFile.cpu || hosts.x.cpu={send: 80us}
HostFile.manager || hosts.y.manager={message: 1ms}
SwitchFile.held || switches.s1.held=7
SwitchFile.manager || switches.s1.manager={message: 1ms}
ManagerFile.message || switches.s1.manager={message: 2ms}
ManagerFile.hand_over || hosts.y.manager={hand_over: 1ms}
ManagerFile.release | hosts.y.manager={hand_over: 1ms} | hosts.y.manager.release=0.5
ManagerFile.competing | hosts.y.manager={hand_over: 1ms} | hosts.y.manager.competing={programs: 2}
CompetingFile.programs | hosts.y.manager={hand_over: 1ms, competing: {nice: -1}} | hosts.y.manager.competing.programs=3
CompetingFile.nice | hosts.y.manager={hand_over: 1ms, competing: {programs: 2}} | hosts.y.manager.competing.nice=-6
CompetingFile.kernel | hosts.y.manager={hand_over: 1ms, competing: {programs: 2}} | hosts.y.manager.competing.kernel=7ms
CompetingFile.user | hosts.y.manager={hand_over: 1ms, competing: {programs: 2}} | hosts.y.manager.competing.user=7ms
CompetingFile.life | hosts.y.manager={hand_over: 1ms, competing: {programs: 2}} | hosts.y.manager.competing.life=7ms
ManagerFile.queue | hosts.y.manager={hand_over: 1ms} | hosts.y.manager.queue=7
CpuFile.send || hosts.x.cpu={send: 81us + 78.5ns/octet}
CpuFile.receive || hosts.x.cpu={receive: 81us}
CpuFile.ack || hosts.x.cpu={ack: 20us}
CpuFile.write || hosts.x.cpu={write: 90us + 8ns/octet}
CpuFile.read || hosts.x.cpu={read: 90us}
CpuFile.lane || hosts.x.cpu={lane: {send: 1us}}
CpuFile.mpoa || hosts.x.cpu={mpoa: {send: 1us}}
CpuFile.line || hosts.x.cpu={line: {send: 1us}}
CpuFile.clip || hosts.x.cpu={clip: {send: 1us}}
CpuFile.native || hosts.x.cpu={native: {send: 1us}}
CpuFile.atp || hosts.x.cpu={atp: {send: 1us}}
CpuFile.service | hosts.x.cpu={send: 1us} | hosts.x.cpu={send: 1us, service: fair}
CpuFile.jitter | hosts.x.cpu={send: 1us} | hosts.x.cpu={send: 1us, jitter: 5%}
CpuFile.queue || hosts.x.cpu.queue=7
CpuFile.interruptions | hosts.x.cpu={send: 1us} | hosts.x.cpu={send: 1us, interruptions: {every: 2s}}
InterruptionsFile.every | hosts.x.cpu={send: 1us, interruptions: {every: 2s}} | hosts.x.cpu.interruptions.every=7s
InterruptionsFile.length | hosts.x.cpu={send: 1us, interruptions: {every: 2s}} | hosts.x.cpu.interruptions.length=7ms
HostFile.adapter || hosts.y.adapter={receive: 400pdus/s, buffer: 3}
AdapterFile.receive || hosts.x.adapter.receive=25000cells/s
AdapterFile.buffer || hosts.x.adapter.buffer=3
AdapterFile.paths || hosts.y.adapter={paths: {5: {pcr: 1000}}}
AdapterFile.rate_queues || hosts.y.adapter={rate_queues: {fast: {pcr: 1000}}}
HostFile.clock || hosts.y.clock={ppm: 3}
ClockFile.phase || hosts.x.clock.phase=3ms
ClockFile.ppm || hosts.x.clock.ppm=-12.5
CostsFile.send || hosts.x.cpu={lane: {send: 1us}}
CostsFile.receive || hosts.x.cpu={lane: {receive: 1us}}
CostsFile.ack || hosts.x.cpu={lane: {ack: 1us}}
HostFile.ilmi || hosts.x.ilmi=true
HostFile.uni || hosts.x.uni=4.0
HostFile.kernel || hosts.x.kernel=false
HostFile.shape || hosts.x.shape=false
HostFile.sockets || hosts.y.sockets=[]
HostFile.bridge || hosts.y.bridge={st: 10.2.0.20}
HostFile.ethernet || hosts.w.ethernet={rate: 1Gbps}
CableFile.rate || hosts.w.ethernet.rate=100Mbps
CableFile.tag || hosts.w.ethernet.tag=true
CableFile.ports || hosts.w.ethernet.ports={e2: {stations: [wt]}}
PortFile.stations || hosts.w.bridge={wt: 10.2.0.21, wu: 10.2.0.22} hosts.w.ethernet.ports.e1.stations=[wt, wu]
PortFile.rate || hosts.w.ethernet.ports.e1.rate=100Mbps
PortFile.tag || hosts.w.ethernet.ports.e1.tag=true
PortFile.duplex || hosts.w.ethernet.ports.e1.duplex=half
PortFile.queue || hosts.w.ethernet.ports.e1.queue=9
HostFile.vlans | hosts.w.vlans={7: b} hosts.w.ethernet.ports.e1.vlan=7 | hosts.w.vlans={7: b, 8: a} hosts.w.ethernet.ports.e1.vlan=7
PortFile.vlan | hosts.w.vlans={7: b} hosts.w.ethernet.ports.e1.trunk=[7] | hosts.w.vlans={7: b} hosts.w.ethernet.ports.e1.vlan=7
PortFile.trunk | hosts.w.vlans={7: b, 8: a} hosts.w.ethernet.ports.e1.trunk=[7] | hosts.w.vlans={7: b, 8: a} hosts.w.ethernet.ports.e1.trunk=[7, 8]
SocketFile.name || hosts.y.sockets.0.name=lips
SocketFile.listen || hosts.x.sockets.1.listen=echo
SocketFile.call || hosts.y.sockets.0.call=x/e2
SocketFile.vc | pvcs.0.vc=0.105 hosts.x.sockets.0.vc=0.105 | pvcs.0.vc=0.106 hosts.x.sockets.0.vc=0.106
SocketFile.selector || hosts.x.sockets.1.selector=e3
SocketFile.sap || hosts.x.sockets.1.sap=ttcp
SocketFile.max_sdu || hosts.x.sockets.1.max_sdu=500
SocketFile.calls || hosts.x.sockets.1.calls=3
SocketFile.qos || hosts.y.sockets.0.qos=ubr,aal5:sdu=5000
SocketFile.shape || hosts.y.sockets.0.shape=false
SocketFile.rate_queue | hosts.y.adapter={rate_queues: {fast: {pcr: 200000}}} | hosts.y.adapter={rate_queues: {fast: {pcr: 200000}}} hosts.y.sockets.0.rate_queue=fast
SocketFile.start || hosts.y.sockets.0.start=3s
SocketFile.pdus || hosts.y.sockets.0.pdus=9
SocketFile.size || hosts.y.sockets.0.size=99
SocketFile.rate || hosts.y.sockets.0.rate=9pps
SocketFile.hold || hosts.y.sockets.0.hold=9s
SocketFile.every || hosts.y.sockets.0.every=9s
SocketFile.tester | hosts.x.sockets.0={vc: 0.100} hosts.y.sockets.0={vc: 0.100} | hosts.x.sockets.0={vc: 0.100, tester: true} hosts.y.sockets.0={vc: 0.100, tester: true}
AtpFile.series || hosts.linux.sockets.0.atp.series=true
SocketFile.atp || hosts.x.sockets.1.atp={} hosts.y.sockets.0.atp={bytes: 1KiB}
AtpFile.profile || hosts.linux.sockets.0.atp.profile=adaptive hosts.y.sockets.1.atp.profile=adaptive
AtpFile.bytes || hosts.y.sockets.1.atp.bytes=5KiB
AtpFile.message || hosts.y.sockets.1.atp.message=1KiB
SocketFile.expect || hosts.y.sockets.0.expect=loss
TcpFile.profile || hosts.x.tcp.profile=reno
TcpFile.congestion || hosts.x.tcp.congestion=reno
TcpFile.buffer || hosts.x.tcp.buffer=32KiB
TrafficFile.name || traffic.u.name=v
TrafficFile.from || traffic.u.from=z
TrafficFile.to || traffic.u.to=z
TrafficFile.over | hosts.y.elans={a: 10.1.0.44} | hosts.y.elans={a: 10.1.0.44} traffic.u.over=a
TrafficFile.kind || traffic.u.kind=ping
TrafficFile.rate || traffic.u.rate=11pps
TrafficFile.poisson || traffic.u.poisson=true
TrafficFile.port || traffic.u.port=99
TrafficFile.tick || traffic.u.tick=10ms
TrafficFile.spacing | traffic.u.tick=200ms | traffic.u.tick=200ms traffic.u.spacing=1ms
TrafficFile.series || traffic.u.series=true
TrafficFile.bytes | traffic=[{name: u, from: x, to: y, kind: tcp}] | traffic=[{name: u, from: x, to: y, kind: tcp, bytes: 1MiB}]
TrafficFile.write | traffic=[{name: u, from: x, to: y, kind: tcp}] | traffic=[{name: u, from: x, to: y, kind: tcp, write: 8192}]
TrafficFile.size || traffic.u.size=99
TrafficFile.start || traffic.u.start=0s
TrafficFile.duration || traffic.u.duration=9s
TrafficFile.expect || traffic.u.expect=loss
TrafficFile.group || traffic.u.group=g
TrafficFile.load | traffic.0={name: u, from: x, to: y, kind: load, load: 5%, frames: 100} | traffic.0={name: u, from: x, to: y, kind: load, load: 5%, frames: 100} traffic.0.load=6%
TrafficFile.link | traffic.0={name: u, from: x, to: y, kind: load, load: 5%, frames: 100} | traffic.0={name: u, from: x, to: y, kind: load, load: 5%, frames: 100} traffic.0.link=y-s2
TrafficFile.layer | traffic.0={name: u, from: x, to: y, kind: load, load: 5%, frames: 100} | traffic.0={name: u, from: x, to: y, kind: load, load: 5%, frames: 100} traffic.0.layer=ethernet traffic.0.link=10Mbps
TrafficFile.frames | traffic.0={name: u, from: x, to: y, kind: load, load: 5%, frames: 100} | traffic.0={name: u, from: x, to: y, kind: load, load: 5%, frames: 100} traffic.0.frames=101
TrafficFile.arrivals | traffic.0={name: u, from: x, to: y, kind: load, load: 5%, frames: 100} | traffic.0={name: u, from: x, to: y, kind: load, load: 5%, frames: 100} traffic.0.arrivals=poisson
TrafficFile.on | traffic.0={name: u, from: x, to: y, kind: load, load: 5%, frames: 100, arrivals: onoff, on: 5ms, off: 5ms} | traffic.0={name: u, from: x, to: y, kind: load, load: 5%, frames: 100, arrivals: onoff, on: 6ms, off: 5ms}
TrafficFile.off | traffic.0={name: u, from: x, to: y, kind: load, load: 5%, frames: 100, arrivals: onoff, on: 5ms, off: 5ms} | traffic.0={name: u, from: x, to: y, kind: load, load: 5%, frames: 100, arrivals: onoff, on: 5ms, off: 6ms}
TrafficFile.trace || traffic.0={name: u, from: x, to: y, kind: load, arrivals: trace, trace: tests/trace.txt}
FaultFile.at || faults.0.at=6s
FaultFile.crash || faults.0.crash=x/mpc
FaultFile.restart | faults=[{at: 5s, crash: x},{at: 6s, restart: x}] | faults=[{at: 5s, crash: x/mpc},{at: 6s, restart: x/mpc}]
FaultFile.link_down || faults.1.link_down=x-s1
FaultFile.rate | faults=[{at: 5s, change: s1-s2, rate: ds3}] | faults=[{at: 5s, change: s1-s2, rate: {up: ds3}}]
FaultFile.delay | faults=[{at: 5s, change: s1-s2, delay: 1ms}] | faults=[{at: 5s, change: s1-s2, delay: 2ms}]
FaultFile.loss | faults=[{at: 5s, change: s1-s2, loss: 0.1}] | faults=[{at: 5s, change: s1-s2, loss: {down: 0.1}}]
FaultFile.bit_errors | faults=[{at: 5s, change: s1-s2, bit_errors: 1e-6}] | faults=[{at: 5s, change: s1-s2, bit_errors: 1e-5}]
FaultFile.block_errors | faults=[{at: 5s, change: s1-s2, block_errors: 0.1}] | faults=[{at: 5s, change: s1-s2, block_errors: 0.2}]
FaultFile.block | faults=[{at: 5s, change: s1-s2, block: 1ms}] | faults=[{at: 5s, change: s1-s2, block: 2ms}]
FaultFile.up | faults=[{at: 5s, change: s1-s2, rate: {down: ds3}}] | faults=[{at: 5s, change: s1-s2, rate: {up: ds3, down: ds3}}]
FaultFile.down | faults=[{at: 5s, change: s1-s2, rate: {up: ds3}}] | faults=[{at: 5s, change: s1-s2, rate: {up: ds3, down: ds3}}]
FaultFile.change | faults=[{at: 5s, change: s1-s2, loss: 0.1}] | faults=[{at: 5s, change: x-s1, loss: 0.1}]
FaultFile.retrain | faults=[{at: 5s, retrain: s1-s2, duration: 1s}] | faults=[{at: 5s, retrain: x-s1, duration: 1s}]
FaultFile.duration | faults=[{at: 5s, retrain: s1-s2, duration: 1s}] | faults=[{at: 5s, retrain: s1-s2, duration: 2s}]
FaultFile.link_up | faults=[{at: 5s, link_down: x-s1},{at: 6s, link_up: x-s1}] | faults=[{at: 5s, link_down: y-s2},{at: 6s, link_up: y-s2}]
LisFile.subnet || clip.d.subnet=10.4.0.0/25
LisFile.mtu || clip.d.mtu=1500
LisFile.server || clip.c.server=h
LisFile.servers || clip.d.servers=47.0005.80FFE1000000F21A26D8.0020EA0000E0.00
LisFile.mux || clip.c.mux=true
LisFile.nhrp || clip.d.nhrp=true
LisFile.next_hops || clip.c.next_hops={}
LisFile.per || clip.c.per=session
LisFile.qos || clip.c.qos=cbr,aal5:pcr=1000
LisFile.ports || clip.c.ports={tcp 80: 'cbr,aal5:pcr=1000'}
LisFile.sessions | clip.c.per=session | clip.c.per=session clip.c.sessions=7
HostFile.clip || hosts.p.clip={c: {mtu: 1500}}
RouterFile.clip || routers.h.clip={c: {mtu: 1500}}
MemberFile.mtu || hosts.p.clip={c: {mtu: 1501}}
MemberFile.per || hosts.p.clip={c: {per: session}}
MemberFile.qos || hosts.p.clip={c: {qos: 'cbr,aal5:pcr=1000'}}
MemberFile.ports || hosts.p.clip={c: {ports: {7: 'cbr,aal5:pcr=1000'}}}
MemberFile.sessions || hosts.p.clip={c: {sessions: 7}}
MemberFile.next_hops || hosts.p.clip={c: {next_hops: {10.3.0.1: {address: h}}}}
NextHopFile.address || clip.c.next_hops={10.3.0.1: {address: h}}
NextHopFile.qos || clip.c.next_hops={10.3.0.1: {address: h, qos: 'cbr,aal5:pcr=1000'}}
LineFile.subnet || lines.ln.subnet=10.17.0.0/25
LineFile.elan | lines.n={subnet: 10.18.0.0/24} | lines.n={elan: b, calls: m} hosts.m={on: s1, elan: n, ip: 10.2.0.55} hosts.w.lines=[n]
HostFile.lines | lines.n={elan: b, calls: m} hosts.m={on: s1, elan: n, ip: 10.2.0.55} hosts.y.lines=[n] | lines.n={elan: b, calls: m} hosts.m={on: s1, elan: n, ip: 10.2.0.55} hosts.w.lines=[n]
LineFile.encapsulation || lines.ln.encapsulation=pppoa-vcmux
LineFile.mtu || lines.ln.mtu=1400
LineFile.calls || lines.g.calls=t
LineFile.qos || lines.g.qos=cbr,aal5:pcr=1000
PvcFile.line | lines.m={subnet: 10.17.1.0/30} | lines.m={subnet: 10.17.1.0/30} hosts.v.elan=m hosts.v.ip=10.17.1.1 pvcs.3.line=m
PvcFile.from || pvcs.1.from=q
PvcFile.vc || pvcs.1.vc=0.111
PvcFile.to || pvcs.1.to=card
PvcFile.to_vc || pvcs.1.to_vc=0.112
PvcFile.pcr || pvcs.1.pcr=99
PvcFile.qos || pvcs.1.qos=cbr,aal5:pcr=99
PvcFile.police || pvcs.1.police=true
PvcFile.shape || pvcs.0.shape=false
PvcFile.rate_queue | hosts.x.adapter={rate_queues: {fast: {pcr: 200000}}} | hosts.x.adapter={rate_queues: {fast: {pcr: 200000}}} pvcs.0.rate_queue=fast
PvcFile.queue || pvcs.1.queue={weight: 3}
PvcFile.tunnel | links.s1-s2.tunnels={5: {pcr: 1000}} | links.s1-s2.tunnels={5: {pcr: 1000}} pvcs.0.tunnel=5
PvcFile.frame_discard || pvcs.1.frame_discard=false
PvcFile.vp | pvcs.1={from: tcp, vc: 5.0, to: card, to_vc: 5.0, vp: true} | pvcs.1={from: tcp, vc: 6.0, to: card, to_vc: 6.0, vp: true}
PvcFile.mux || pvcs.1.mux=true
PvcFile.peer || pvcs.1.peer=10.3.0.88
PvcFile.pseudowire || pvcs.2.pseudowire={outgoing: 1009, incoming: 2009}
MpoaParams.start || mpoa.start=1s
MpoaParams.flow_detect || hosts.x.mpoa.flow_detect=9 frames per 1s
MpoaParams.qos || mpoa.qos=['10.2.0.10 tx=80000,1600 rx=tx']
MpoaParams.protocols || mpoa.protocols=[ipv4]
MpoaParams.static_mps || hosts.x.mpoa.static_mps=[]
MpoaParams.tag || mpoa.tag=true
MpoaParams.trigger || mpoa.trigger=true
StaticMpsFile.mac || hosts.x.mpoa.static_mps.0.mac=02:00:00:00:00:08
StaticMpsFile.address || hosts.x.mpoa.static_mps.0.address=47.0005.80FFE1000000F21A26D8.0020EA0000E0.00
NhrpFile.key || hosts.p.nhrp={}
NhrpFile.keys || routers.h.nhrp={key: {spi: 1, secret: k}}
NhrpFile.unsigned || nhrp.unsigned=false
NhrpFile.register || nhrp.register=false
NhrpKeyFile.spi || hosts.p.nhrp.key.spi=5
NhrpKeyFile.clear_text || hosts.p.nhrp.key={spi: 1, secret: k, clear_text: true}
lab.limits || limits={port: {calls: 9}}
LimitsFile.port || limits.port={calls: 9}
LimitsFile.mps || limits.mps={egress: 9}
LimitsFile.nhrp || limits.nhrp={queue: 9}
TimersFile.lec || timers.lec={aging_time: 11s}
TimersFile.les || timers.les={control_timeout: 11s}
TimersFile.arp || timers.arp={retry: 9s}
TimersFile.sscop || timers.sscop={max_cc: 9}
TimersFile.uni || timers.uni={t309: 9s}
";

/// A change for each key that sets a parameter of a protocol, in the form of [`CHANGES`]: to a value near the default.
fn changes_of_parameters() -> String {
    let mut lines = String::new();
    for Section {
        name: section,
        path,
        keys,
    } in SECTIONS
    {
        for Parameter { name, range, .. } in keys().parameters() {
            let second = Duration::from_secs(1);
            let near = match range.default {
                Param::Time(time) if time < second => [time + time; 2].map(Param::Time),
                Param::Time(time) => [time + second, time.saturating_sub(second)].map(Param::Time),
                Param::Count(count) => [count + 1, count.saturating_sub(1)].map(Param::Count),
                Param::Rate(PerSecond(rate)) => {
                    [rate + 1, rate - 1].map(|rate| PerSecond(rate).into())
                }
                Param::Octets(Octets(n)) => [n + 1, n - 1].map(|n| Octets(n).into()),
                Param::Flag(flag) => [Param::Flag(!flag); 2],
            };
            let near = near.into_iter().find(|near| range.contains(*near)).unwrap();
            let of = if path.starts_with("hosts") {
                "linux"
            } else {
                "c"
            };
            let path = path.replace("NAME", of);
            lines += &format!("{section}.{name} || {path}.{name}={near}\n");
        }
    }
    lines
}

/// The changes to all keys.
fn all_changes() -> String {
    CHANGES.to_owned() + &changes_of_parameters()
}

/// Keys that change no result, or must not be shown.
const NOT_SHOWN: [(&str, &str); 6] = [
    (
        "lab.schema",
        "the version of the format, of which there is one",
    ),
    ("lab.name", "it stands beside the settings"),
    ("lab.description", "words for people"),
    (
        "NhrpKeyFile.secret",
        "a secret; lab_sha256 tells of a change",
    ),
    ("lab.checks", "they look at results"),
    ("lab.answers", "words for checks"),
];

/// The overrides of a text; each begins after a blank with a path and '='.
fn overrides(text: &str) -> Vec<Override> {
    let mut all: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let path = word.split_once('=').map_or("", |(path, _)| path);
        let is_path =
            !path.is_empty() && path.contains('.') && !path.contains(|c: char| "{[:,'".contains(c));
        match all.last_mut() {
            Some(last) if !is_path => last.push_str(&format!(" {word}")),
            _ => all.push(word.to_owned()),
        }
    }
    all.into_iter().map(Override::from).collect()
}

/// The settings of the lab with these changes, or what is wrong with them.
fn of(changes: &str) -> Result<Value, String> {
    let checked = crate::parse("t.atm.yml", ALL, &overrides(changes));
    let checked = checked.map_err(|d| {
        let first = d.iter().find(|found| found.severity == Severity::Error);
        format!("{changes}: {:?}", first.map(|found| &found.message))
    })?;
    let lab = &checked.lab;
    Ok(settings(lab, Instant::ZERO + lab.end()))
}

/// All keys of the schema, as `Section.key`.
fn keys() -> BTreeSet<String> {
    fn collect(section: &str, value: &Value, keys: &mut BTreeSet<String>) {
        match value {
            Value::Object(map) => {
                for (name, value) in map {
                    match value {
                        Value::Object(properties) if name == "properties" => {
                            keys.extend(properties.keys().map(|key| format!("{section}.{key}")));
                            properties
                                .values()
                                .for_each(|value| collect(section, value, keys));
                        }
                        value if name != "$defs" => collect(section, value, keys),
                        _ => {}
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| collect(section, item, keys)),
            _ => {}
        }
    }
    let schema = crate::schema();
    let mut keys = BTreeSet::new();
    collect("lab", &schema, &mut keys);
    for (section, value) in schema["$defs"].as_object().into_iter().flatten() {
        collect(section, value, &mut keys);
    }
    // Checks look at results, and change none.
    keys.retain(|key| !key.starts_with("CheckFile."));
    keys
}

#[test]
fn every_key_of_a_lab_file_that_can_change_a_result_changes_the_settings() {
    let mut seen: BTreeSet<String> = NOT_SHOWN.iter().map(|(key, _)| (*key).to_owned()).collect();
    let plain = of("").unwrap();
    let mut silent = Vec::new();
    for line in all_changes().lines().filter(|line| !line.is_empty()) {
        let parts: Vec<&str> = line.splitn(3, '|').map(str::trim).collect();
        let [key, before, then] = parts[..] else {
            panic!("{line}");
        };
        seen.insert(key.to_owned());
        let before = match before {
            "" => Ok(plain.clone()),
            changes => of(changes),
        };
        match (before, of(then)) {
            (Ok(before), Ok(then)) if before != then => {}
            (Ok(_), Ok(_)) => silent.push(line.to_owned()),
            (Err(why), _) | (_, Err(why)) => silent.push(why),
        }
    }
    assert!(
        silent.is_empty(),
        "the settings do not tell of these: {}",
        silent.join("\n")
    );
    assert_eq!(
        seen,
        keys(),
        "the keys of the table are those of the schema"
    );
}

#[test]
fn timers_have_the_values_that_are_used() {
    let plain = of("").unwrap();
    assert_eq!(plain["timers"]["lec"]["1"]["control_timeout_s"], 120.0);
    assert_eq!(plain["timers"]["lec"]["2"]["control_timeout_s"], 30.0);
    assert_eq!(plain["timers"]["uni"]["4.0"]["user"]["t310_s"], 30.0);
    assert_eq!(plain["timers"]["uni"]["3.1"]["user"]["t310_s"], 10.0);
    // Versions are written as in the file.
    assert_eq!(plain["nodes"]["x"]["uni"], "3.1");
    let new = of("hosts.x.uni=4.0").unwrap();
    assert_eq!(new["nodes"]["x"]["uni"], "4.0");
    let given = of("timers.lec.control_timeout=11s timers.uni.t310=9s").unwrap();
    for version in ["1", "2"] {
        assert_eq!(given["timers"]["lec"][version]["control_timeout_s"], 11.0);
    }
    assert_eq!(given["timers"]["uni"]["4.0"]["user"]["t310_s"], 9.0);
    assert_eq!(given["timers"]["lec"]["2"]["max_unknown_count"], 10);
}
