//! The first questions on a link out of the lab: nothing of what nodes send first vanishes, and what had no answer is
//! asked again when the peer comes.

use super::*;
use aerostat_lab::model::NodeId;
use aerostat_node::atm::DropReason;
use aerostat_wire::atmarp::{AtmArp, Operation, Party};
use aerostat_wire::llc::LlcSnap;

/// A host with a permanent connection to the far end of a link, without the link itself.
struct Lab {
    world: World,
    far: NodeId,
    now: Instant,
    /// Cells of the permanent connection that left the lab.
    cells: Vec<CellRun>,
}

/// The label of the permanent connection on the link.
const FAR: Vc = Vc::new(1, 100);

impl Lab {
    /// The lab has started; with `early` the line was up before.
    fn new(early: bool) -> Self {
        let text = "switches: { s1: {} }\n\
             links: [[s1, { name: router, udp: { local: 127.0.0.1:1, peer: 127.0.0.1:2 } }]]\n\
             clip: { wan: { subnet: 10.20.0.0/24 } }\n\
             pvcs: [{ from: h1, vc: 0.100, to: router, to_vc: 1.100 }]\n\
             hosts: { h1: { on: s1, elan: wan, ip: 10.20.0.10 } }\n";
        let lab = aerostat_lab::parse("t.atm.yml", text, &[]).unwrap().lab;
        let builder = Builder::new(&lab, 1, Flavour::Embedded);
        let far = lab.outside().next().unwrap().0;
        let now = Instant::ZERO;
        let mut world = World::new(&builder, now);
        if early {
            world.outside_link(far, true, now);
        }
        world.start(&builder, now);
        Self {
            world,
            far,
            now,
            cells: Vec::new(),
        }
    }
    /// Lets time pass; returns the number of questions by InATMARP that left the lab meanwhile.
    fn pass(&mut self, millis: u64) -> usize {
        let before = self.questions();
        for _ in 0..millis * 10 {
            self.now += Duration::from_micros(100);
            self.world.ask_again(self.now);
            while !self.world.step(self.now, 1000) {}
            while let Some(output) = self.world.poll_output() {
                match output {
                    Output::Outside(_, run) if run.vc == FAR => self.cells.push(run),
                    _ => {}
                }
            }
        }
        self.questions() - before
    }
    fn questions(&self) -> usize {
        let sdus = crate::assembly::sdus(&self.cells);
        let arp = sdus
            .iter()
            .filter_map(|(_, sdu)| match LlcSnap::decode(sdu) {
                Ok((LlcSnap::Arp, packet)) => AtmArp::decode(packet).ok(),
                _ => None,
            });
        arp.filter(|packet| packet.operation == Operation::INVERSE_REQUEST)
            .count()
    }
    /// Cells of the connection that its queue at the link has sent, and has dropped because the link was down.
    fn books(&self) -> (u64, u64) {
        let nodes: Vec<_> = self.world.nodes().collect();
        let switch = nodes
            .iter()
            .find_map(|(.., node)| node.as_ref()?.as_switch())
            .unwrap();
        let mut ports = (0..2).filter_map(|port| switch.fabric().output(port));
        let counters = ports.find_map(|port| port.counters(port.queue_of(FAR)?));
        let counters = counters.unwrap();
        (
            counters.cells_out,
            counters.dropped.of(DropReason::LinkDown),
        )
    }
    fn sent(&self) -> u64 {
        self.cells.iter().map(|run| u64::from(run.count)).sum()
    }
}

/// A line that needs no answer of its peer is up before the nodes are: the first question leaves at once.
#[test]
fn the_first_cells_leave_over_a_line_that_is_up() {
    let mut lab = Lab::new(true);
    assert_eq!(lab.pass(10), 1);
    assert_eq!(lab.books(), (lab.sent(), 0));
    // Four seconds later the host asks again.
    assert_eq!(lab.pass(3900), 0);
    assert_eq!(lab.pass(200), 1);
    assert_eq!(lab.books(), (lab.sent(), 0));
}

/// Cells that are sent while the line is down are counted as lost there. A question without an answer is asked again as
/// soon as the line is up, and when the peer is heard.
#[test]
fn what_had_no_answer_is_asked_again_when_the_peer_comes() {
    let mut lab = Lab::new(false);
    assert_eq!(lab.pass(1000), 0);
    assert_eq!((lab.books(), lab.sent()), ((0, 2), 0));
    lab.world.outside_link(lab.far, true, lab.now);
    assert_eq!(lab.pass(10), 1);
    assert_eq!(lab.pass(1000), 0);
    lab.world.outside_heard();
    assert_eq!(lab.pass(10), 1);
    assert_eq!(lab.books(), (lab.sent(), 2));
    let answer = AtmArp {
        operation: Operation::INVERSE_REPLY,
        source: Party::new(None, Some(Ipv4Addr::new(10, 20, 0, 1))),
        target: Party::new(None, Some(Ipv4Addr::new(10, 20, 0, 10))),
    };
    let pdu = aerostat_node::atm::Pdu::new(answer.to_sdu());
    lab.world
        .outside_cells(lab.far, CellRun::whole(pdu, FAR), lab.now);
    assert_eq!(lab.pass(10), 0);
    lab.world.outside_heard();
    assert_eq!(lab.pass(5000), 0);
    // The line goes down and comes up: the peer is the one that has answered.
    lab.world.outside_link(lab.far, false, lab.now);
    lab.world.outside_link(lab.far, true, lab.now);
    assert_eq!(lab.pass(10), 0);
}

/// The lines of links are up before the lab starts, except those whose peer has to answer, and each says what is wrong.
#[test]
fn links_come_up_before_the_lab_and_say_what_is_wrong() {
    let [own, other, third] = free_addresses();
    let ways = [
        (
            format!("udp: {{ local: '{own}', peer: '{other}' }}"),
            1,
            format!("no cell has come from {other} yet"),
        ),
        (
            format!("l2tp: {{ local: '{own}', peer: '{other}', session: 1, peer_session: 2 }}"),
            1,
            format!("no cell has come from {other} yet"),
        ),
        (
            format!("atmtcp: {{ listen: '{third}' }}"),
            0,
            format!("nobody has connected to {third}"),
        ),
        (
            format!("atmtcp: {{ connect: '{third}' }}"),
            0,
            format!("{third} does not answer"),
        ),
    ];
    for (way, ups, trouble) in ways {
        let text = format!("switches: {{ s: {{}} }}\nlinks: [[s, {{ name: w, {way} }}]]\n");
        let lab = aerostat_lab::parse("t.atm.yml", &text, &[]).unwrap().lab;
        let poll = Poll::new().unwrap();
        let (node, _, model) = lab.outside().next().unwrap();
        let rate = lab.link(model.attachment.link).lines[0].rate;
        let link = Link::new(node, &model.way, rate, poll.registry(), Token(0));
        let mut link = link.unwrap();
        let mut told = Vec::new();
        link.come_up(Instant::ZERO, &mut told);
        link.come_up(Instant::ZERO, &mut told);
        let up = told
            .iter()
            .filter(|event| matches!(event, Event::Up))
            .count();
        assert_eq!((up, link.trouble()), (ups, Some(trouble)), "{way}");
    }
}
