//! The routes of a router's kernel, for the MPOA server beside it.
//!
//! A kernel router forwards by its own table, which other programs may change: `ip route` in the namespace, a routing
//! daemon. Its MPOA server must not offer shortcuts along outdated routes. So the table is read by rtnetlink when the
//! lab starts, and again whenever the kernel reports a change of routes, addresses or links (the kernel does not report
//! the routes that disappear with an interface that goes down). The result replaces the static routes of the router
//! that answers the server's questions, and shortcuts along changed routes are purged.
//!
//! **Not read**: tables other than main, rules, routes by type of service. Of several next hops the first is used. A
//! network that is not reached over the emulated LANs gets no shortcuts.

use crate::namespace::NetNs;
use crate::source::{Said, Slot, Source, Turn};
use aerostat_lab::model::NodeId;
use aerostat_node::host::HostCommand;
use aerostat_node::ip::router::StaticRoute;
use aerostat_proto::{Duration, Instant, Trace};
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use netlink_packet_core::{
    NLM_F_DUMP, NLM_F_DUMP_INTR, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteType,
};
use netlink_packet_route::{AddressFamily as Family, RouteNetlinkMessage};
use rustix::fd::{AsRawFd as _, OwnedFd};
use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, bind, netdevice, recv, send,
    socket_with,
};
use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;

/// Groups of notifications: links, IPv4 addresses, IPv4 routes.
const GROUPS: u32 = 0x1 | 0x10 | 0x40;
/// Changes come in groups, so the table is read this long after the first one.
const PAUSE: Duration = Duration::from_millis(20);
/// Limit of datagrams taken in one turn.
const TURN: usize = 64;
/// Limit of routes that are read; a longer table is cut.
const ROUTES_MAX: usize = 4096;
/// Buffer for a datagram, octets; the kernel's have at most 32 KiB.
const DATAGRAM: usize = 65_536;

/// An interface on an emulated LAN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lan {
    /// Its name inside the namespace.
    pub(crate) name: String,
    /// The router's own address there.
    pub(crate) ip: Ipv4Addr,
    /// Prefix length of its subnet.
    pub(crate) prefix: u8,
}

impl Lan {
    fn subnet(&self) -> Prefix {
        (masked(self.ip, self.prefix), self.prefix)
    }
}

/// Network and prefix length.
type Prefix = (Ipv4Addr, u8);

/// Destination of a kernel route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// To a neighbour on an emulated LAN.
    Via(Ipv4Addr),
    /// To an emulated LAN itself, by its index among the interfaces.
    Connected(usize),
    /// Any other destination, or unreachable.
    Else,
}

/// A route of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Route {
    to: Prefix,
    metric: u32,
    way: Way,
}

/// Watches the routes of one kernel router.
#[derive(Debug)]
pub(crate) struct KernelRoutes {
    socket: OwnedFd,
    lans: Vec<Lan>,
    /// The kernel's numbers of these interfaces.
    numbers: Vec<u32>,
    /// True if the poller has reported the socket.
    ready: bool,
    /// When the table must be read.
    read_at: Option<Instant>,
    /// Sequence number of the outstanding request.
    asked: Option<u32>,
    questions: u32,
    gathered: Vec<Route>,
    known: Option<Vec<StaticRoute>>,
    buffer: Vec<u8>,
}

/// The routes of all kernel routers, by node.
#[derive(Debug, Default)]
pub(crate) struct Routes(BTreeMap<usize, KernelRoutes>);

impl Routes {
    /// Adds those of a router, and registers their socket.
    pub(crate) fn add(
        &mut self,
        node: NodeId,
        routes: KernelRoutes,
        registry: &Registry,
    ) -> io::Result<()> {
        let token = Token(Slot::Routes.token().0 + node.0);
        let fd = routes.socket.as_raw_fd();
        registry.register(&mut SourceFd(&fd), token, Interest::READABLE)?;
        self.0.insert(node.0, routes);
        Ok(())
    }

    /// Forgets a router whose kernel is there no longer.
    pub(crate) fn remove(&mut self, node: NodeId, registry: &Registry) {
        if let Some(routes) = self.0.remove(&node.0) {
            // Its descriptor may be open elsewhere, so the poller would go on with it.
            let _ = registry.deregister(&mut SourceFd(&routes.socket.as_raw_fd()));
        }
    }

    /// A restarted router has the routes of the lab file, but its kernel kept its own: they are read again.
    pub(crate) fn forget(&mut self, node: NodeId, now: Instant) {
        if let Some(routes) = self.0.get_mut(&node.0) {
            routes.forget(now);
        }
    }
}

impl Source for Routes {
    fn ready(&mut self, distance: usize) {
        if let Some(routes) = self.0.get_mut(&distance) {
            routes.ready();
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let all = self.0.values();
        all.filter_map(KernelRoutes::poll_timeout).min()
    }

    /// Passes changes in the kernels of routers to their MPOA servers.
    fn turn(&mut self, turn: &mut Turn<'_>) -> bool {
        for (node, watched) in &mut self.0 {
            if let Some(routes) = watched.turn(turn.now) {
                let text = format!("{} routes read from the kernel", routes.len());
                let trace = Trace::detail("kernel.routes", text);
                let command = HostCommand::Routes(routes);
                turn.said.push(Said::Trace(NodeId(*node), trace));
                turn.said.push(Said::Command(NodeId(*node), command));
            }
        }
        false
    }
}

impl KernelRoutes {
    /// Watches the routes in `namespace`, whose interfaces exist.
    ///
    /// # Errors
    /// The error of the kernel.
    pub(crate) fn new(namespace: &NetNs, lans: Vec<Lan>) -> io::Result<Self> {
        let (socket, numbers) = namespace.run(|| {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let family = AddressFamily::NETLINK;
            // The first protocol of this family is NETLINK_ROUTE.
            let socket = socket_with(family, SocketType::RAW, flags, None)?;
            bind(&socket, &SocketAddrNetlink::new(0, GROUPS))?;
            let mut numbers = Vec::new();
            for lan in &lans {
                // Any socket of the namespace can be used for this query, except this one.
                let any = socket_with(
                    AddressFamily::INET,
                    SocketType::DGRAM,
                    SocketFlags::CLOEXEC,
                    None,
                )?;
                numbers.push(netdevice::name_to_index(&any, &lan.name)?);
            }
            Ok((socket, numbers))
        })?;
        Ok(Self::of(socket, lans, numbers))
    }

    /// Watches the routes that `socket` reports; the kernel's interfaces have these numbers.
    pub(crate) fn of(socket: OwnedFd, lans: Vec<Lan>, numbers: Vec<u32>) -> Self {
        Self {
            socket,
            lans,
            numbers,
            ready: true,
            read_at: Some(Instant::ZERO),
            asked: None,
            questions: 0,
            gathered: Vec::new(),
            known: None,
            buffer: vec![0; DATAGRAM],
        }
    }

    /// The socket, and the numbers of the interfaces, as [`Self::of`] takes them.
    pub(crate) fn into_parts(self) -> (OwnedFd, Vec<u32>) {
        (self.socket, self.numbers)
    }

    /// The poller has reported the socket.
    pub(crate) fn ready(&mut self) {
        self.ready = true;
    }
    /// When [`Self::turn`] is next needed if nothing is ready.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        // The poller does not report again what a turn has left unread.
        let unread = self.ready.then_some(Instant::ZERO);
        unread.or(self.read_at.filter(|_| self.asked.is_none()))
    }
    /// The router has restarted and lost the routes that were read.
    pub(crate) fn forget(&mut self, now: Instant) {
        self.known = None;
        self.read_at = Some(now);
    }

    /// Does the pending work. Returns the routes if they have changed.
    pub(crate) fn turn(&mut self, now: Instant) -> Option<Vec<StaticRoute>> {
        let mut read = None;
        if core::mem::take(&mut self.ready) {
            let mut buffer = core::mem::take(&mut self.buffer);
            for left in (0..TURN).rev() {
                match recv(&self.socket, &mut buffer[..], RecvFlags::TRUNC) {
                    Ok((length, _)) => self.datagram(&buffer[..length], now, &mut read),
                    Err(Errno::AGAIN) => break,
                    Err(Errno::INTR) => {}
                    // Notifications were lost (ENOBUFS): read the whole table.
                    Err(_) => self.again(now),
                }
                self.ready = left == 0;
            }
            self.buffer = buffer;
        }
        let due = self.read_at.filter(|_| self.asked.is_none());
        if due.is_some_and(|at| at <= now) {
            self.ask();
        }
        let routes = read?;
        if self.known.as_ref() == Some(&routes) {
            return None;
        }
        self.known = Some(routes.clone());
        Some(routes)
    }

    fn again(&mut self, now: Instant) {
        self.asked = None;
        self.gathered.clear();
        self.read_at.get_or_insert(now + PAUSE);
    }

    /// Requests the whole table.
    fn ask(&mut self) {
        self.read_at = None;
        self.questions = self.questions.wrapping_add(1).max(1);
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | NLM_F_DUMP;
        header.sequence_number = self.questions;
        let mut route = RouteMessage::default();
        route.header.address_family = Family::Inet;
        let payload = NetlinkPayload::from(RouteNetlinkMessage::GetRoute(route));
        let mut question = NetlinkMessage::new(header, payload);
        question.finalize();
        let mut octets = vec![0; question.buffer_len()];
        question.serialize(&mut octets);
        if send(&self.socket, &octets, SendFlags::empty()).is_ok() {
            self.asked = Some(self.questions);
            self.gathered.clear();
        }
    }

    /// Handles messages of the kernel: answers to the last request, or notifications.
    fn datagram(&mut self, mut octets: &[u8], now: Instant, read: &mut Option<Vec<StaticRoute>>) {
        while let Ok(message) = NetlinkMessage::<RouteNetlinkMessage>::deserialize(octets) {
            let (header, payload) = message.into_parts();
            let length = (header.length as usize).next_multiple_of(4);
            let answer = self.asked == Some(header.sequence_number);
            match payload {
                _ if answer && header.flags & NLM_F_DUMP_INTR != 0 => self.again(now),
                NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewRoute(route)) if answer => {
                    let room = self.gathered.len() < ROUTES_MAX;
                    let route = self.route(&route).filter(|_| room);
                    self.gathered.extend(route);
                }
                NetlinkPayload::Done(_) if answer => {
                    self.asked = None;
                    let gathered = core::mem::take(&mut self.gathered);
                    *read = Some(table(&gathered, &self.lans));
                }
                NetlinkPayload::Error(_) if answer => self.again(now),
                // After notifications during an answer, the table is read again.
                NetlinkPayload::InnerMessage(_) => {
                    self.read_at.get_or_insert(now + PAUSE);
                }
                _ => {}
            }
            match octets.get(length..) {
                Some(rest) if length > 0 => octets = rest,
                _ => break,
            }
        }
    }

    /// A route of the main table, for any type of service.
    fn route(&self, message: &RouteMessage) -> Option<Route> {
        let header = &message.header;
        let (mut table, mut metric) = (u32::from(header.table), 0);
        let mut to = Ipv4Addr::UNSPECIFIED;
        for attribute in &message.attributes {
            match attribute {
                RouteAttribute::Destination(RouteAddress::Inet(address)) => to = *address,
                RouteAttribute::Table(number) => table = *number,
                RouteAttribute::Priority(number) => metric = *number,
                _ => {}
            }
        }
        let usable = table == u32::from(RouteHeader::RT_TABLE_MAIN)
            && header.address_family == Family::Inet
            && header.tos == 0
            && !header
                .flags
                .intersects(RouteFlags::Dead | RouteFlags::Linkdown);
        let way = match header.kind {
            RouteType::Unicast => self.way(&message.attributes),
            RouteType::BlackHole | RouteType::Unreachable | RouteType::Prohibit => Way::Else,
            // Either the next rule decides, which is not read, or there is no route at all.
            _ => return None,
        };
        let to = (to, header.destination_prefix_length.min(32));
        usable.then_some(Route { to, metric, way })
    }

    fn way(&self, attributes: &[RouteAttribute]) -> Way {
        let (mut gateway, mut place) = (None, None);
        let place_of = |number| self.numbers.iter().position(|own| *own == number);
        for attribute in attributes {
            match attribute {
                RouteAttribute::Gateway(RouteAddress::Inet(address)) => gateway = Some(*address),
                RouteAttribute::Oif(number) => place = place_of(*number),
                RouteAttribute::MultiPath(hops) => {
                    let Some(first) = hops.first() else {
                        return Way::Else;
                    };
                    place = place_of(first.interface_index);
                    for attribute in &first.attributes {
                        if let RouteAttribute::Gateway(RouteAddress::Inet(address)) = attribute {
                            gateway = Some(*address);
                        }
                    }
                }
                // An address of another family, or of another kind.
                RouteAttribute::Via(_) => return Way::Else,
                _ => {}
            }
        }
        match (place, gateway) {
            (Some(_), Some(gateway)) => Way::Via(gateway),
            (Some(place), None) => Way::Connected(place),
            (None, _) => Way::Else,
        }
    }
}

/// The kernel's routes as static routes of the router. Subnets of the router's interfaces are left out, unless the
/// kernel does not reach them there.
fn table(routes: &[Route], lans: &[Lan]) -> Vec<StaticRoute> {
    let mut best: BTreeMap<Prefix, &Route> = BTreeMap::new();
    for route in routes {
        let known = best.entry(route.to).or_insert(route);
        if route.metric < known.metric {
            *known = route;
        }
    }
    let neighbour = |gateway: Ipv4Addr| {
        let on = |lan: &Lan| masked(gateway, lan.prefix) == lan.subnet().0 && gateway != lan.ip;
        lans.iter().any(on)
    };
    let own = |to| lans.iter().position(|lan| lan.subnet() == to);
    let mut table = Vec::new();
    let mut add = |(destination, prefix), next_hop| {
        table.push(StaticRoute {
            destination,
            prefix,
            next_hop,
        });
    };
    for lan in lans.iter().filter(|lan| !best.contains_key(&lan.subnet())) {
        add(lan.subnet(), Ipv4Addr::UNSPECIFIED);
    }
    for (to, route) in best {
        match route.way {
            Way::Connected(place) if own(to) == Some(place) => {}
            Way::Via(gateway) if own(to).is_none() && neighbour(gateway) => add(to, gateway),
            Way::Via(_) | Way::Connected(_) | Way::Else => add(to, Ipv4Addr::UNSPECIFIED),
        }
    }
    table
}

fn masked(address: Ipv4Addr, prefix: u8) -> Ipv4Addr {
    let host_bits = 32_u32.saturating_sub(prefix.into());
    let mask = u32::MAX.checked_shl(host_bits).unwrap_or(0);
    Ipv4Addr::from_bits(address.to_bits() & mask)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ip(a: u8, b: u8, c: u8, d: u8) -> Ipv4Addr {
        Ipv4Addr::new(a, b, c, d)
    }
    const NOWHERE: Ipv4Addr = Ipv4Addr::UNSPECIFIED;

    fn lans() -> Vec<Lan> {
        let lan = |n: u8, third| Lan {
            name: format!("lec{n}"),
            ip: ip(10, third, 0, 1),
            prefix: 24,
        };
        vec![lan(0, 1), lan(1, 9)]
    }
    const fn route(to: Prefix, metric: u32, way: Way) -> Route {
        Route { to, metric, way }
    }
    fn told(routes: &[Route]) -> Vec<(Prefix, Ipv4Addr)> {
        let mut all = vec![
            route((ip(10, 1, 0, 0), 24), 0, Way::Connected(0)),
            route((ip(10, 9, 0, 0), 24), 0, Way::Connected(1)),
        ];
        all.extend(routes);
        let table = table(&all, &lans()).into_iter();
        table
            .map(|r| ((r.destination, r.prefix), r.next_hop))
            .collect()
    }

    #[test]
    fn routes_in_the_words_of_the_router() {
        let (far, via) = ((ip(10, 2, 0, 0), 24), ip(10, 9, 0, 2));
        assert!(told(&[]).is_empty());
        assert_eq!(told(&[route(far, 0, Way::Via(via))]), [(far, via)]);
        // The lower metric is used, whatever the order.
        let pair = [route(far, 100, Way::Else), route(far, 50, Way::Via(via))];
        assert_eq!(told(&pair), [(far, via)]);
        let pair = [route(far, 50, Way::Via(via)), route(far, 10, Way::Else)];
        assert_eq!(told(&pair), [(far, NOWHERE)]);
        // Gateways that are not neighbours, and subnets behind other interfaces.
        for gateway in [ip(192, 168, 0, 1), ip(10, 9, 0, 1)] {
            assert_eq!(told(&[route(far, 0, Way::Via(gateway))]), [(far, NOWHERE)]);
        }
        assert_eq!(told(&[route(far, 0, Way::Connected(1))]), [(far, NOWHERE)]);
        // A subnet that the kernel has lost, or reaches in another way.
        let lost = table(&[], &lans());
        assert_eq!(lost.len(), 2);
        assert!(lost.iter().all(|route| route.next_hop == NOWHERE));
        let own = (ip(10, 1, 0, 0), 24);
        let odd = table(&[route(own, 0, Way::Via(via))], &lans());
        assert!(odd.iter().all(|route| route.next_hop == NOWHERE));
    }

    #[test]
    fn news_of_a_real_kernel() {
        let Ok(namespace) = NetNs::create() else {
            println!("skipped: no privilege for network namespaces");
            return;
        };
        let run = |command: &str| {
            let words: Vec<&str> = command.split(' ').collect();
            namespace.run(|| crate::namespace::ip(&words)).unwrap();
        };
        let dummies = ["lec0 10.1.0.1/24", "lec1 10.9.0.1/24", "eth0 10.8.0.1/24"];
        for (name, address) in dummies.iter().filter_map(|d| d.split_once(' ')) {
            run(&format!("link add {name} type veth peer name {name}p"));
            run(&format!("link set {name}p up"));
            run(&format!("address add {address} dev {name}"));
            run(&format!("link set {name} up"));
        }
        let mut routes = KernelRoutes::new(&namespace, lans()).unwrap();
        let start = std::time::Instant::now();
        // Links come up at any time, so intermediate results do not count.
        let mut expect = |rows: &[&str]| {
            let mut last = Vec::new();
            while last != rows {
                let passed = start.elapsed();
                assert!(passed < Duration::from_secs(30), "{last:?}, not {rows:?}");
                routes.ready();
                if let Some(table) = routes.turn(Instant::ZERO + passed) {
                    let row =
                        |r: StaticRoute| format!("{}/{} {}", r.destination, r.prefix, r.next_hop);
                    last = table.into_iter().map(row).collect();
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        };
        let eth0 = "10.8.0.0/24 0.0.0.0";
        expect(&[eth0]);
        run("route add 10.2.0.0/24 via 10.9.0.2");
        expect(&["10.2.0.0/24 10.9.0.2", eth0]);
        run("route add default via 10.8.0.9");
        expect(&["0.0.0.0/0 0.0.0.0", "10.2.0.0/24 10.9.0.2", eth0]);
        run("route replace unreachable 10.2.0.0/24");
        expect(&["0.0.0.0/0 0.0.0.0", "10.2.0.0/24 0.0.0.0", eth0]);
        run("route replace 10.2.0.0/24 nexthop via 10.9.0.3 nexthop via 10.9.0.4");
        expect(&["0.0.0.0/0 0.0.0.0", "10.2.0.0/24 10.9.0.3", eth0]);
        // The kernel does not report the routes that go with an interface.
        run("link set lec1 down");
        expect(&["10.9.0.0/24 0.0.0.0", "0.0.0.0/0 0.0.0.0", eth0]);
        run("link set lec1 up");
        expect(&["0.0.0.0/0 0.0.0.0", eth0]);
    }
}
