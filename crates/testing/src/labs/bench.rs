//! A test bench for a lab: power, faults, conditions with deadlines in virtual time.

use aerostat_lab::Override;
use aerostat_lab::build::{Builder, Flavour, programs};
use aerostat_lab::model::{Lab, LineChange};
use aerostat_node::host::{HostCommand, HostEvent, ServiceKind, Station};
use aerostat_node::inspect::StateKind;
use aerostat_node::ip::apps::{AppCommand, AppId, AppResult};
use aerostat_node::ip::meter::{Path, Sample, Side};
use aerostat_node::switch::Switch;
use aerostat_proto::{Duration, Instant, Trace};
use aerostat_sim::{LabEvent, LabNode, LinkId, NodeId, Observer, Packet, World, lab_world};
use aerostat_wire::Vc;
use aerostat_wire::pcapng::Direction;
use std::collections::BTreeMap;

/// Events so far.
#[derive(Default)]
pub struct Log {
    names: Vec<String>,
    /// Traces with their times, as text.
    pub story: Vec<String>,
    /// Packets of flows at their ends.
    pub samples: Vec<Sample>,
    /// Results of `ping` and the like, by node and program.
    pub results: BTreeMap<(usize, AppId), AppResult>,
    /// How often a numbered datagram came to a node, by node, flow, number.
    pub visits: BTreeMap<(usize, u32, u64), u32>,
    /// Nodes whose arrivals are counted.
    routers: Vec<usize>,
    /// True to keep the packets that routers send to MPOA and NHRP clients.
    pub recording: bool,
    /// The kept control packets: sender, SDU.
    pub control: Vec<(NodeId, Vec<u8>)>,
}

impl Observer<LabEvent> for Log {
    fn trace(&mut self, node: NodeId, trace: Trace, now: Instant) {
        let name = &self.names[node.0];
        let fields: Vec<_> = trace
            .fields
            .iter()
            .map(|(k, v)| format!(" {k}={v}"))
            .collect();
        let fields = fields.concat();
        self.story.push(format!(
            "{now} {name} {}: {}{fields}",
            trace.name, trace.text
        ));
    }
    fn event(&mut self, node: NodeId, event: LabEvent, _now: Instant) {
        match event {
            // An offered packet is not on its way yet.
            LabEvent::Host(HostEvent::Sample(sample))
                if matches!(sample.side, Side::Offered | Side::Refused(_)) => {}
            LabEvent::Host(HostEvent::Sample(sample)) => self.samples.push(sample),
            LabEvent::Host(HostEvent::Finished(app, result)) => {
                self.results.insert((node.0, app), result);
            }
            LabEvent::Host(_) | LabEvent::Outside(_) => {}
        }
    }
    fn packet(&mut self, packet: &Packet<'_>) {
        let here = packet.end.node.0;
        if self.recording
            && packet.direction == Direction::Sent
            && self.routers.contains(&here)
            && packet.pdu.sdu().starts_with(&aerostat_wire::nhrp::LLC)
        {
            let sdu = packet.pdu.sdu().to_vec();
            self.control.push((packet.end.node, sdu));
        }
        if packet.direction == Direction::Received
            && packet.dropped.is_none()
            && self.routers.contains(&here)
            && let Some((flow, number)) = mark(packet.pdu.sdu())
        {
            *self.visits.entry((here, flow, number)).or_default() += 1;
        }
    }
}

/// Program and number of a UDP source's datagram, wherever they are in the SDU.
fn mark(sdu: &[u8]) -> Option<(u32, u64)> {
    let at = sdu.windows(4).position(|octets| octets == b"AERO")?;
    // An ICMP error that quotes the datagram is another packet: IPv4, ICMP, then the datagram's IPv4 and UDP headers.
    let quoting = at
        .checked_sub(20 + 8 + 20 + 8)
        .and_then(|outer| sdu.get(outer..at));
    if quoting.is_some_and(|octets| (octets[0], octets[9], octets[28]) == (0x45, 1, 0x45)) {
        return None;
    }
    let flow = sdu.get(at + 4..at + 8)?.try_into().ok()?;
    let number = sdu.get(at + 8..at + 16)?.try_into().ok()?;
    Some((u32::from_be_bytes(flow), u64::from_be_bytes(number)))
}

/// A running network with its events.
pub struct Bench {
    /// The lab.
    pub lab: Lab,
    /// The seed of the run.
    pub seed: u64,
    /// Its nodes and links in virtual time.
    pub world: World<LabNode>,
    /// Log of the observer.
    pub log: Log,
    lives: Vec<u32>,
}

/// Length of a step when waiting for a condition.
const STEP: Duration = Duration::from_millis(50);

/// A lab of `text` with the settings `set`, in the order of `--set`.
///
/// # Panics
/// If the text is no lab.
pub fn lab_of(name: &str, text: &str, set: &[&str]) -> Lab {
    let set: Vec<Override> = set.iter().map(|&change| change.into()).collect();
    match aerostat_lab::parse(name, text, &set) {
        Ok(checked) => checked.lab,
        Err(mistakes) => panic!("{mistakes}"),
    }
}

/// A lab of the repository.
pub fn repository_lab(name: &str, set: &[&str]) -> Lab {
    let path = format!("{}/../../labs/{name}.atm.yml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).expect("a lab of the repository");
    lab_of(name, &text, set)
}

impl Bench {
    /// Switches a lab on.
    pub fn new(lab: Lab, seed: u64) -> Self {
        let mut world = lab_world::build(&lab, seed);
        let mut log = Log {
            names: lab.nodes.iter().map(|node| node.name.clone()).collect(),
            ..Log::default()
        };
        let builder = Builder::new(&lab, seed, Flavour::Embedded);
        lab_world::start(&mut world, &builder, &mut log);
        let lives = vec![0; lab.nodes.len()];
        Self {
            lab,
            seed,
            world,
            log,
            lives,
        }
    }

    /// Starts to count how often each numbered datagram comes to each router.
    pub fn watch_routers(mut self) -> Self {
        for (id, node, _) in self.lab.routers() {
            self.log.routers.push(id.0);
            let link = node.attachment().expect("a router has a link").link;
            self.world.tap(LinkId(link.0));
        }
        self
    }

    /// Virtual time.
    pub fn now(&self) -> Instant {
        self.world.now()
    }

    /// Runs for `time`.
    pub fn run(&mut self, time: Duration) {
        self.world.run_until(self.world.now() + time, &mut self.log);
    }

    /// Runs until the condition holds; returns how long that took.
    #[track_caller]
    pub fn until(
        &mut self,
        what: &str,
        limit_s: f64,
        mut holds: impl FnMut(&Self) -> Result<(), String>,
    ) -> Duration {
        let begin = self.now();
        let limit = begin + Duration::from_secs_f64(limit_s);
        loop {
            match holds(self) {
                Ok(()) => return self.now().since(begin),
                Err(why) if self.now() >= limit => self.fail(&format!(
                    "{what}: not within {limit_s} s from {begin}: {why}"
                )),
                Err(_) => self.run(STEP),
            }
        }
    }

    /// Panics with everything that helps to find the reason.
    #[track_caller]
    pub fn fail(&self, what: &str) -> ! {
        let last = self.log.story.len().saturating_sub(120);
        let story = self.log.story[last..].join("\n");
        let seed = self.seed;
        if let Some(file) = std::env::var_os("AEROSTAT_STORY") {
            let _ = std::fs::write(file, self.log.story.join("\n"));
        }
        panic!(
            "{story}\n{}\nseed {seed}, {}: {what}",
            self.tables(),
            self.now()
        );
    }

    fn tables(&self) -> String {
        let mut text = String::new();
        for (id, node) in self.lab.nodes() {
            let Some(station) = self.station(NodeId(id.0)) else {
                continue;
            };
            for what in [
                StateKind::Mpc,
                StateKind::Mps,
                StateKind::Lec,
                StateKind::Call,
            ] {
                for table in station.inspect(what, self.now()).into_iter().flatten() {
                    if table.rows.is_empty() {
                        continue;
                    }
                    text += &format!("{} {}: {:?}\n", node.name, table.title, table.columns);
                    for row in &table.rows {
                        let row: Vec<_> = row.iter().map(ToString::to_string).collect();
                        text += &format!("    {}\n", row.join(" "));
                    }
                }
            }
        }
        text
    }

    /// The node of this name; panics if there is no such node.
    pub fn node(&self, name: &str) -> NodeId {
        NodeId(self.lab.find(name).expect("a node of the lab").0)
    }
    /// The link of this name; panics if there is no such link.
    pub fn link(&self, name: &str) -> LinkId {
        let found = self.lab.links.iter().position(|link| link.name == name);
        LinkId(found.unwrap_or_else(|| panic!("no link {name}")))
    }
    /// The host or router `id`, if it has power.
    pub fn station(&self, id: NodeId) -> Option<&Station> {
        self.world.node(id)?.as_station()
    }
    /// The switch `id`, if it has power.
    pub fn switch(&self, id: NodeId) -> Option<&Switch> {
        self.world.node(id)?.as_switch()
    }
    /// All hosts and routers with power.
    pub fn stations(&self) -> impl Iterator<Item = (NodeId, &Station)> {
        let ids = (0..self.lab.nodes.len()).map(NodeId);
        ids.filter_map(|id| Some((id, self.station(id)?)))
    }
    /// All switches with power.
    pub fn switches(&self) -> impl Iterator<Item = (NodeId, &Switch)> {
        let ids = (0..self.lab.nodes.len()).map(NodeId);
        ids.filter_map(|id| Some((id, self.switch(id)?)))
    }

    /// Gives a command to a host or router.
    pub fn command(&mut self, node: NodeId, command: HostCommand) {
        self.world
            .with_node(node, &mut self.log, |node, now| node.command(command, now));
    }
    /// A program on this node puts an SDU on one of its connections, bypassing all protocols.
    pub fn send_raw(&mut self, node: NodeId, vc: Vc, sdu: Vec<u8>) {
        self.world.with_node(node, &mut self.log, |node, now| {
            node.send_raw(vc, sdu, now);
        });
    }
    /// The node sends this frame on its first interface.
    pub fn frame(&mut self, node: NodeId, frame: Vec<u8>) {
        self.world
            .with_node(node, &mut self.log, |node, now| node.frame(0, frame, now));
    }
    /// Ends a service without an announcement.
    pub fn crash(&mut self, node: NodeId, kind: ServiceKind) {
        self.command(node, HostCommand::Crash(kind));
    }
    /// Starts a service again.
    pub fn restart(&mut self, node: NodeId, kind: ServiceKind) {
        self.command(node, HostCommand::Restart(kind));
    }
    /// Turns the MPOA clients of all hosts and routers on or off.
    pub fn mpoa(&mut self, on: bool) {
        for id in (0..self.lab.nodes.len()).map(NodeId) {
            self.command(id, HostCommand::Mpoa(on));
        }
    }
    /// Cuts a link, or mends it.
    pub fn cut(&mut self, link: LinkId, cut: bool) {
        self.world.set_cut(link, cut, &mut self.log);
    }
    /// Cells are lost at random, and as many get a wrong bit.
    pub fn set_errors(&mut self, link: LinkId, loss: f64) {
        let bit_errors = loss / 424.0;
        let change = LineChange {
            loss: Some(loss),
            bits: Some(bit_errors),
            ..LineChange::default()
        };
        self.change_link(link, &[change; 2]);
    }
    /// Gives the directions of a link new values, by the end at which they start.
    pub fn change_link(&mut self, link: LinkId, changes: &[LineChange; 2]) {
        self.world.change_link(link, changes, &mut self.log);
    }
    /// Makes a link train, or ends this.
    pub fn train(&mut self, link: LinkId, training: bool) {
        self.world.set_training(link, training, &mut self.log);
    }
    /// Takes the power of a node.
    pub fn power_off(&mut self, node: NodeId) {
        self.world.power_off(node, &mut self.log);
    }
    /// Switches a node on again, with its programs.
    pub fn power_on(&mut self, node: NodeId) {
        self.lives[node.0] += 1;
        let builder = Builder::new(&self.lab, self.seed, Flavour::Embedded);
        let life = self.lives[node.0];
        let now = self.world.now();
        let machine = lab_world::machine(&builder, node, life, now);
        let machine = machine.expect("a node of the lab");
        self.world.power_on(node, machine, &mut self.log);
        for placed in programs(&self.lab) {
            if placed.node == node {
                self.command(node, placed.start());
            }
        }
    }
    /// The largest number of restarts of a node; after each its programs number their datagrams from 0.
    pub fn restarts(&self) -> u32 {
        self.lives.iter().copied().max().unwrap_or(0)
    }
    /// Stops all programs.
    pub fn stop_programs(&mut self) {
        for placed in programs(&self.lab) {
            let stop = AppCommand::Stop(placed.program.id);
            self.command(placed.node, HostCommand::app(placed.behind, stop));
        }
    }

    /// The index of the flow of this name.
    pub fn flow(&self, name: &str) -> usize {
        let found = self.lab.traffic.iter().position(|flow| flow.name == name);
        found.unwrap_or_else(|| panic!("no flow {name}"))
    }
    /// Packets of a flow received since `since`, by path.
    pub fn received(&self, flow: usize, since: Instant) -> [u64; 2] {
        let mut counts = [0; 2];
        for sample in self.log.samples.iter().rev() {
            if sample.at < since {
                break;
            }
            if sample.flow.0 == flow && sample.side == Side::Received {
                counts[usize::from(sample.path == Path::Shortcut)] += 1;
            }
        }
        counts
    }

    /// `Ok` if all clients are members of their ELANs and subnets; an error names one that is not.
    pub fn all_joined(&self) -> Result<(), String> {
        match self
            .stations()
            .find(|(_, station)| !station.host().joined())
        {
            Some((id, _)) => Err(format!("{} is not joined", self.lab.nodes[id.0].name)),
            None => Ok(()),
        }
    }
    /// Checks that packets of every flow have arrived in the last half second by this path, and by no other.
    pub fn all_by(&self, flows: &[usize], path: Path) -> Result<(), String> {
        let since = self.back(500);
        for &flow in flows {
            let [lane, shortcut] = self.received(flow, since);
            let (good, bad) = match path {
                Path::Lane => (lane, shortcut),
                Path::Shortcut => (shortcut, lane),
            };
            if good == 0 || bad > 0 {
                let name = &self.lab.traffic[flow].name;
                let wanted = path.name();
                return Err(format!(
                    "{name}: {lane} routed, {shortcut} by shortcut; wanted {wanted}"
                ));
            }
        }
        Ok(())
    }
    /// Checks that packets of every flow have arrived in the last half second.
    pub fn all_pass(&self, flows: &[usize]) -> Result<(), String> {
        let since = self.back(500);
        match flows
            .iter()
            .find(|flow| self.received(**flow, since) == [0, 0])
        {
            Some(flow) => Err(format!("{}: nothing arrives", self.lab.traffic[*flow].name)),
            None => Ok(()),
        }
    }
    /// The time `ms` milliseconds ago.
    pub fn back(&self, ms: u64) -> Instant {
        let nanos = self.now().as_nanos().saturating_sub(ms * 1_000_000);
        Instant::from_nanos(nanos)
    }
}
