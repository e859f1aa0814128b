//! A lab built in code: a switch, a host with the servers of an emulated LAN, and two hosts that ping each other.
//!
//! Everything except the text is as in a lab: signalling (Q.2931 over SSCOP), LAN emulation, ARP and IP, cells on OC-3
//! links. `aerostat_lab::parse` makes such a lab from a file, `aerostat_sim::run` runs it.
//!
//! `cargo run -p aerostat-sim --example by_hand`

use aerostat_node::atm::CellRate;
use aerostat_node::host::HostEvent;
use aerostat_node::host::{Host, HostCommand, Ip, Station};
use aerostat_node::inspect::StateKind;
use aerostat_node::ip::apps::{AppCommand, AppId, AppKind, AppResult, AppSpec};
use aerostat_node::ip::stack::{Stack, StackConfig, TcpOptions};
use aerostat_node::rate::PacketRate;
use aerostat_node::signalling::{self, Signalling};
use aerostat_node::switch::{PortConfig, PortKind, StaticRoutes, Switch};
use aerostat_proto::interface;

use aerostat_proto::lane::{BusConfig, LaneServer, Lec, LecConfig, LesConfig, ServerConfig};
use aerostat_proto::uni::Side;
use aerostat_proto::{Duration, Instant, Refused, Trace};
use aerostat_sim::{LabEvent, LabNode, LinkConfig, LinkEnd, NodeId, Observer, World};
use aerostat_wire::lane::ElanName;
use aerostat_wire::q2931::Version;
use aerostat_wire::{AtmAddress, MacAddr};
use std::net::Ipv4Addr;

/// Nodes by number.
const NODES: [&str; 4] = ["switch", "servers", "anna", "bert"];
/// Hosts by the number of their port. The first has the LES and the BUS.
const HOSTS: [&str; 3] = [NODES[1], NODES[2], NODES[3]];
const PREFIX: [u8; 13] = [0x47, 0, 5, 0x80, 0xff, 0xe1, 0, 0, 0, 0xf2, 0x1a, 1, 2];
const VERSION: Version = Version::Uni40;
const SEED: u64 = 1;

fn mac(host: usize) -> MacAddr {
    MacAddr([2, 0, 0, 0, 0, host as u8])
}
fn address(host: usize, selector: u8) -> AtmAddress {
    AtmAddress::from_parts(PREFIX, mac(host), selector)
}
fn ip(host: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 1, 0, host as u8)
}

/// Three ports; calls to an address go out at the port where it is registered.
fn switch() -> LabNode {
    let mut switch = Switch::new([0; 16], StaticRoutes::new());
    for (number, name) in HOSTS.into_iter().enumerate() {
        let interface = interface::Params::new(Side::Network, VERSION);
        let config = PortConfig::new(name, PortKind::Host, interface, CellRate::OC3);
        let port = switch.add_port(config);
        switch.register(port, address(number, 0));
    }
    LabNode::switch(switch)
}

fn signalling() -> Signalling {
    Signalling::new(signalling::Config::new(VERSION))
}

fn servers(elan: ElanName) -> LabNode {
    let (les, bus) = (address(0, 1), address(0, 2));
    let mut host = Host::new(HOSTS[0], signalling(), Ip::None);
    // A service is given as a function that makes it, so that it can crash and start again.
    host.add_elan(
        les,
        server(ServerConfig::Les(LesConfig::new(elan, les, bus))),
        server(ServerConfig::Bus(BusConfig::new(elan, bus))),
    );
    LabNode::station(Station::new(host, CellRate::OC3))
}

fn server(config: ServerConfig) -> impl Fn(u32) -> LaneServer + Send {
    move |_| LaneServer::new(config.clone())
}

fn end_host(number: usize, elan: ElanName) -> Result<LabNode, Refused> {
    let stack = StackConfig {
        name: HOSTS[number].to_owned(),
        mac: mac(number).0,
        address: ip(number),
        prefix: 24,
        routes: Vec::new(),
        neighbours: Vec::new(),
        mtu: 1500,
        further: Vec::new(),
        tcp: TcpOptions::default(),
        life: 0,
        seed: SEED,
    };
    let stack = Stack::new(stack)?;
    let mut host = Host::new(HOSTS[number], signalling(), Ip::Stack(Box::new(stack)));
    let client = LecConfig {
        les: Some(address(0, 1)), // No LECS is asked.
        ..LecConfig::new(elan, address(number, 0), mac(number))
    };
    host.add_lec(mac(number), move |_| Lec::new(client.clone()));
    Ok(LabNode::station(Station::new(host, CellRate::OC3)))
}

/// Prints the main steps of the run, and the results of programs.
struct Story;

impl Observer<LabEvent> for Story {
    fn trace(&mut self, node: NodeId, trace: Trace, now: Instant) {
        if trace.milestone {
            println!("{now} {}: {}", NODES[node.0], trace.text);
        }
    }
    fn event(&mut self, node: NodeId, event: LabEvent, now: Instant) {
        if let LabEvent::Host(HostEvent::Finished(_, AppResult::Ping(ping))) = event {
            let (sent, received, best) = (ping.sent, ping.received, ping.rtt.min_us);
            let name = NODES[node.0];
            println!("{now} {name}: {received} of {sent} answered, the fastest in {best:.1} µs");
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let elan = ElanName::new("garden").ok_or("at most 32 octets")?;
    let mut world = World::new(SEED);
    let hub = world.add_switch(NODES[0], HOSTS.len() as u16);
    let mut machines = vec![(hub, switch())];
    for (number, name) in HOSTS.into_iter().enumerate() {
        let node = world.add_host(name);
        let port = number as u16;
        let ends = [LinkEnd { node, port: 0 }, LinkEnd { node: hub, port }];
        world.connect(name, ends, LinkConfig::new(Duration::from_micros(5)));
        let machine = match number {
            0 => servers(elan),
            _ => end_host(number, elan)?,
        };
        machines.push((node, machine));
    }
    let anna = machines[2].0;
    world.power_on_all(machines, &mut Story);

    let kind = AppKind::Ping {
        to: ip(2),
        count: Some(5),
        rate: PacketRate::every(Duration::from_millis(100)).ok_or("not zero")?,
        size: 56,
        ttl: None,
    };
    let ping = AppSpec {
        id: AppId(1),
        start: Instant::from_secs(1),
        duration: None,
        kind,
    };
    world.with_node(anna, &mut Story, |node, now| {
        node.command(HostCommand::app(None, AppCommand::Start(ping)), now);
    });
    world.run_until(Instant::from_secs(3), &mut Story);

    // The state of a node, as `aerostat inspect anna lec` shows it.
    let client = world.node(anna);
    let tables = client.and_then(|node| node.inspect(StateKind::Lec, Instant::from_secs(3)));
    for table in tables.unwrap_or_default() {
        if table.title == "le_arp" {
            println!("{}", table.columns.join(" | "));
            for row in table.rows {
                let row: Vec<String> = row.iter().map(ToString::to_string).collect();
                println!("{}", row.join(" | "));
            }
        }
    }
    Ok(())
}
