//! The network of a lab under a driver in virtual time: the same code as in real time, without waiting.

mod books;
mod captures;
mod cells;
mod clocks;
mod converge;
mod costs;
mod lags;
mod occupancy;
mod policing;
mod programs;
mod staircase;
mod trains;

use aerostat_lab::Lab;
use aerostat_lab::build::{Builder, Flavour};
use aerostat_lab::model::{FaultKind, LinkId, NodeId};
use aerostat_live::capture::Form;
use aerostat_live::world::{Output, World};
use aerostat_node::host::{HostCommand, ServiceKind};
use aerostat_proto::{Duration, Instant};
use std::path::Path;

/// The network, its driver, and the collected outputs.
struct Run<'a> {
    lab: &'a Lab,
    builder: &'a Builder<'a>,
    world: World,
    now: Instant,
    /// The driver wakes up only at multiples of this.
    late: Duration,
    story: Vec<String>,
}

fn lab() -> Lab {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../labs/two-subnets.atm.yml");
    match aerostat_lab::read(&path, &[]) {
        Ok(checked) => checked.lab,
        Err(_) => panic!("{} is not good", path.display()),
    }
}

impl<'a> Run<'a> {
    fn start(lab: &'a Lab, builder: &'a Builder<'a>, late: Duration) -> Self {
        let mut run = Self::off(lab, builder, late);
        run.world.start(builder, Instant::ZERO);
        run
    }
    /// A network whose nodes are off.
    fn off(lab: &'a Lab, builder: &'a Builder<'a>, late: Duration) -> Self {
        Self {
            lab,
            builder,
            world: World::new(builder, Instant::ZERO),
            now: Instant::ZERO,
            late,
            story: Vec::new(),
        }
    }
    fn until(&mut self, end: Instant) {
        loop {
            self.drain();
            let late = self.late.as_nanos().max(1) as u64;
            let next = self.world.poll_timeout().unwrap_or(end);
            let next = Instant::from_nanos(next.as_nanos().next_multiple_of(late)).max(self.now);
            if next > end {
                self.now = end;
                return;
            }
            self.now = next;
            while !self.world.step(self.now, 64) {}
        }
    }
    fn drain(&mut self) {
        while let Some(output) = self.world.poll_output() {
            match output {
                Output::Trace(node, at, trace) => {
                    let name = &self.lab.node(node).name;
                    self.story
                        .push(format!("{} {name} {}", at.as_nanos(), trace.name));
                }
                Output::Finished(..) => {}
                // There is no peer outside.
                Output::Outside(..) => {}
                Output::Host(..) => panic!("nobody here is a kernel, or has daemons or programs"),
            }
        }
    }
    fn fault(&mut self, what: FaultKind) {
        self.world.fault(self.builder, what, self.now);
    }
    fn dropped(&self) -> u64 {
        let nodes = self.world.nodes();
        let switches = nodes.filter_map(|(.., node)| node?.as_switch());
        let ports =
            switches.flat_map(|switch| (0..switch.fabric().ports()).map(move |n| (switch, n)));
        ports
            .filter_map(|(switch, n)| Some(switch.fabric().output(n)?.totals().dropped.total()))
            .sum()
    }
    fn nodes(&self) -> Vec<NodeId> {
        self.lab.nodes().map(|(id, _)| id).collect()
    }
}

fn seconds(s: u64) -> Instant {
    Instant::from_secs(s)
}

#[test]
fn a_late_driver_sees_the_same_network() {
    let lab = lab();
    let builder = Builder::new(&lab, 7, Flavour::Embedded);
    let mut exact = Run::start(&lab, &builder, Duration::ZERO);
    assert!(!exact.world.waits_for().is_empty());
    exact.until(seconds(1));
    assert_eq!(exact.world.waits_for(), Vec::<String>::new());
    exact.until(Instant::from_millis(4500));
    let mut late = Run::start(&lab, &builder, Duration::from_millis(5));
    late.until(Instant::from_millis(4500));
    assert!(
        exact
            .story
            .iter()
            .any(|line| line.contains("mpc.shortcut.first")),
        "{:#?}",
        exact.story
    );
    assert_eq!(exact.story, late.story);
    // The last few milliseconds of the late run are still to come.
    let received = |run: &Run<'_>| {
        let flows = run.world.stats().report(run.now);
        flows
            .iter()
            .flat_map(|flow| &flow.paths)
            .map(|path| path.received_packets)
            .sum::<u64>()
    };
    let (all, most) = (received(&exact), received(&late));
    assert!(
        all > 1000 && most <= all && most * 100 > all * 97,
        "{most} of {all}"
    );
    assert_eq!(late.dropped(), exact.dropped());
}

#[test]
fn a_driver_that_slept_does_not_replay_it_all() {
    let lab = lab();
    let builder = Builder::new(&lab, 7, Flavour::Embedded);
    let mut run = Run::start(&lab, &builder, Duration::ZERO);
    run.until(seconds(3));
    run.story.clear();
    run.now = seconds(60);
    while !run.world.step(run.now, 64) {}
    run.drain();
    let times = run
        .story
        .iter()
        .filter_map(|line| line.split(' ').next()?.parse::<u64>().ok());
    let oldest = times.min().expect("keep-alives and timers were due");
    assert!(oldest >= 59_950_000_000, "{oldest}");
}

#[test]
fn the_end_releases_every_call() {
    let lab = lab();
    let builder = Builder::new(&lab, 7, Flavour::Embedded);
    let mut run = Run::start(&lab, &builder, Duration::ZERO);
    run.until(seconds(3));
    assert!(run.world.calls() > 20);
    let now = run.now;
    for node in run.nodes() {
        run.world.command(node, HostCommand::Mpoa(false), now);
    }
    use ServiceKind::{Bus, Lec, Lecs, Les, Mpc, Mps};
    for kind in [Mpc, Mps, Lec, Les, Bus, Lecs] {
        for node in run.nodes() {
            run.world.command(node, HostCommand::Crash(kind), now);
        }
    }
    run.until(seconds(4));
    assert_eq!(run.world.calls(), 0);
}

#[test]
fn a_cut_link_heals() {
    let lab = lab();
    let builder = Builder::new(&lab, 7, Flavour::Embedded);
    let mut run = Run::start(&lab, &builder, Duration::ZERO);
    run.until(seconds(2));
    run.fault(FaultKind::LinkDown(LinkId(0)));
    run.until(seconds(4));
    assert!(
        run.world
            .waits_for()
            .contains(&"signalling between s1 and s2".to_owned())
    );
    run.fault(FaultKind::LinkUp(LinkId(0)));
    run.until(seconds(60));
    assert_eq!(run.world.waits_for(), Vec::<String>::new());
}

#[test]
fn a_capture_tells_what_passed_and_why_something_was_dropped() {
    let lab = lab();
    let builder = Builder::new(&lab, 7, Flavour::Embedded);
    let mut run = Run::start(&lab, &builder, Duration::ZERO);
    run.until(seconds(3));
    let links: Vec<LinkId> = (0..lab.links.len()).map(LinkId).collect();
    // Cells: a PDU whose end the host does not send any more is in no capture of PDUs.
    let both = Form {
        both_ends: true,
        cells: true,
    };
    let chunks = run.world.captures.start(&lab, &links, both, 0).unwrap();
    run.until(Instant::from_millis(4300));
    assert!(
        run.world.captures.dropped() > 0,
        "more than the queue holds"
    );
    let mut file: Vec<u8> = chunks.try_iter().flatten().collect();
    // There is room again, so the stream reports the number of missing packets. This is in the middle of a TCP
    // connection over a shortcut:
    run.fault(FaultKind::LinkDown(LinkId(0)));
    run.until(Instant::from_millis(4600));
    file.extend(chunks.try_iter().flatten());
    let kinds = blocks(&file);
    let [_, interfaces, _, _, _, statistics, packets] = kinds;
    assert_eq!(interfaces, 2 * lab.links.len());
    assert!(packets > 100 && statistics > 0, "{kinds:?}");
    let text = |text: &str| {
        file.windows(text.len())
            .any(|window| window == text.as_bytes())
    };
    assert!(text("urku-s1:urku") && text("s1-s2:s2"));
    // The switch released the calls of the dead link at once, so cells that the host still sends have no connection.
    assert!(text("dropped: unknown VC"));
    drop(chunks);
    run.until(Instant::from_millis(6_000));
    assert!(
        run.world.captures.is_empty(),
        "a client that left costs nothing"
    );
}

/// Blocks of a pcapng file by kind.
fn blocks(file: &[u8]) -> [usize; 7] {
    let (mut kinds, mut rest) = ([0; 7], file);
    while let Some((head, _)) = rest.split_first_chunk::<8>() {
        let [kind, length] =
            [0, 4].map(|at| u32::from_le_bytes(head[at..at + 4].try_into().unwrap()));
        if let Some(count) = kinds.get_mut(kind as usize) {
            *count += 1;
        }
        rest = &rest[length as usize..];
    }
    kinds
}

#[test]
fn one_tap_sees_each_packet_once_and_as_many_as_both_ends_sent() {
    let lab = lab();
    let builder = Builder::new(&lab, 7, Flavour::Embedded);
    let mut run = Run::off(&lab, &builder, Duration::ZERO);
    let links: Vec<LinkId> = (0..lab.links.len()).map(LinkId).collect();
    let mut start = |both_ends, cells| {
        let form = Form { both_ends, cells };
        run.world.captures.start(&lab, &links, form, 0).unwrap()
    };
    let [once, twice, cells] = [(false, false), (true, false), (false, true)]
        .map(|(both_ends, cells)| start(both_ends, cells));
    run.world.start(&builder, Instant::ZERO);
    // During joining alone nothing is lost, and the streams have room for everything.
    run.until(Instant::from_millis(900));
    assert_eq!(run.world.captures.dropped(), 0);
    let [once, twice, cells] =
        [once, twice, cells].map(|chunks| chunks.try_iter().flatten().collect::<Vec<u8>>());
    let packets = |file: &[u8]| blocks(file)[6];
    assert_eq!(blocks(&once)[1], lab.links.len());
    assert_eq!(blocks(&twice)[1], 2 * lab.links.len());
    assert!(packets(&once) > 100, "{}", packets(&once));
    // All sent packets have arrived, except for the few that are still under way.
    let arrived = packets(&twice) - packets(&once);
    assert!(
        arrived <= packets(&once) && arrived + 20 >= packets(&once),
        "{arrived} of {}",
        packets(&once)
    );
    assert!(packets(&cells) > packets(&once));
}
