//! Places where packets are lost, and their names in the accounts, with a lab for each.

mod programs;

use crate::bench::lab_of;
use aerostat_lab::dialogues::Dialogue;
use aerostat_lab::model::Lab;
use aerostat_lab::report::RunReport;
use aerostat_node::host::HostCommand;
use aerostat_node::ip::apps::{AppCommand, AppId};
use aerostat_proto::Instant;
use aerostat_sim::run::LabRun;
use std::collections::BTreeMap;

/// Runs a lab as in `aerostat run`.
pub(crate) fn run(text: &str) -> (Lab, RunReport) {
    run_after(text, |_| {})
}

/// Like [`run`], after `before`.
fn run_after(text: &str, before: impl FnOnce(&mut LabRun<'_>)) -> (Lab, RunReport) {
    let lab = lab_of("losses", text, &[]);
    let mut watcher = ();
    let mut running = LabRun::new(&lab, &mut watcher);
    running.start();
    before(&mut running);
    running.run_to_end();
    let report = running.finish().expect("no captures");
    for flow in &report.flows {
        for path in &flow.paths {
            assert!(path.balances(), "{}: {path:#?}", flow.name);
            assert_eq!(path.unexplained, 0, "{}: {path:#?}", flow.name);
            let answers: u64 = path.answers_lost.values().sum();
            assert_eq!(path.unanswered, answers, "{}: {path:#?}", flow.name);
        }
    }
    (lab, report)
}

/// Packets of a flow: offered, refused, sent, delivered, and where they were lost.
pub(crate) struct Books {
    pub(crate) offered: u64,
    pub(crate) refused: u64,
    pub(crate) sent: u64,
    pub(crate) delivered: u64,
    pub(crate) under_way: u64,
    pub(crate) lost: BTreeMap<String, u64>,
    pub(crate) complaint: Option<String>,
}

pub(crate) fn books(text: &str, flow: usize) -> Books {
    let (lab, report) = run(text);
    books_of(&lab, &report, flow)
}

fn books_of(lab: &Lab, report: &RunReport, flow: usize) -> Books {
    let began = report.began[flow];
    let flow = &report.flows[flow];
    let mut lost = BTreeMap::new();
    for (place, packets) in flow.paths.iter().flat_map(|path| lab.lost_by(path)) {
        *lost.entry(place).or_default() += packets;
    }
    Books {
        offered: flow.sum(|path| path.offered),
        refused: flow.sum(|path| path.refused_packets()),
        sent: flow.sum(|path| path.sent_packets),
        delivered: flow.sum(|path| path.received_packets),
        under_way: flow.sum(|path| path.in_flight),
        lost,
        complaint: lab.complaint(flow, began, report.end),
    }
}

/// A flow that opens the connection from a to b before the others start.
const WARM: &str =
    "{ name: warm, from: a, to: b, kind: ping, rate: 10pps, start: 500ms, duration: 1s }";

/// Two hosts of an ELAN at a switch, with these links and this traffic.
fn pair(links: [&str; 2], rest: &str) -> String {
    format!(
        "switches: {{ s: {{}} }}\n\
         lane: {{ on: s, elans: {{ a: {{ subnet: 10.1.0.0/24 }} }} }}\n\
         hosts:\n  a: {{ on: s, elan: a, ip: 10.1.0.1, link: {{ {} }} }}\n  \
         b: {{ on: s, elan: a, ip: 10.1.0.2, link: {{ {} }} }}\n{rest}",
        links[0], links[1]
    )
}

/// Checks that every lost packet was lost at this place; returns their number.
#[track_caller]
pub(crate) fn only_at(books: &Books, place: &str) -> u64 {
    let lost: u64 = books.lost.values().sum();
    assert_eq!(books.lost.get(place), Some(&lost), "{:?}", books.lost);
    assert_eq!(books.sent, books.delivered + lost + books.under_way);
    assert_eq!(books.offered, books.sent + books.refused);
    lost
}

#[test]
fn more_than_the_link_carries_is_lost_in_the_queue_of_the_senders_adapter() {
    let rest = format!(
        "traffic: [{WARM}, {{ from: a, to: b, kind: udp, rate: 2000pps, size: 1000, start: 2s, duration: 1s }}]\n"
    );
    let books = books(&pair(["rate: 2Mbps", "rate: oc3"], &rest), 1);
    let lost = only_at(&books, "a adapter: early packet discard");
    // 22 cells a packet; 2 Mbit/s are 4717 cells/s: 214 packets in that second, plus those in the buffer.
    assert!((1000..1786).contains(&lost), "{lost}");
}

#[test]
fn more_than_the_next_link_carries_is_lost_at_the_port_of_the_switch() {
    let rest = format!(
        "traffic: [{WARM}, {{ from: a, to: b, kind: udp, rate: 2000pps, size: 1000, start: 2s, duration: 1s }}]\n"
    );
    let books = books(&pair(["rate: oc3", "rate: 2Mbps"], &rest), 1);
    let lost = only_at(&books, "s port 2 to b: early packet discard");
    assert!((1000..1786).contains(&lost), "{lost}");
}

#[test]
fn a_link_that_loses_cells_is_the_place_of_those_packets() {
    let rest = "traffic: [{ from: a, to: b, kind: udp, rate: 1000pps, size: 24, duration: 2s }]\n";
    let books = books(&pair(["rate: oc3", "rate: oc3, loss: 0.01"], rest), 0);
    // Two cells a packet, so that one in 50 is lost; the loss of a packet's last cell damages the next packet, too.
    let link = books.lost["link b-s: cell lost"];
    assert!((22..60).contains(&link), "{link}");
    let merged = books.lost.get("b: reassembly").copied().unwrap_or(0);
    assert!(
        (5..40).contains(&merged),
        "{merged} were put together with the packet before"
    );
    assert_eq!(books.sent, books.delivered + link + merged);
    assert_eq!(books.complaint, None, "one in ten may be lost");
}

#[test]
fn a_link_with_bit_errors_is_the_place_of_those_packets() {
    let rest =
        "traffic: [{ from: a, to: b, kind: udp, rate: 1000pps, size: 1000, duration: 2s }]\n";
    let books = books(&pair(["rate: oc3", "rate: oc3, bit_errors: 1e-6"], rest), 0);
    let lost = only_at(&books, "link b-s: bit errors");
    // 22 cells are 8448 bits of payload: one packet in 118.
    assert!((5..40).contains(&lost), "{lost}");
}

#[test]
fn a_neighbour_that_is_gone_is_lost_at_arp() {
    let rest = "faults: [{ at: 900ms, crash: b }]\n\
                traffic: [{ from: a, to: b, kind: ping, rate: 10pps, start: 1s, duration: 2s }]\nuntil: 10s\n";
    let books = books(&pair(["rate: oc3", "rate: oc3"], rest), 0);
    assert_eq!((books.offered, books.delivered), (20, 0));
    assert_eq!(only_at(&books, "a: ARP"), 20);
    let words = "traffic a-b delivered nothing of 20 packets (a: ARP: 20)";
    assert_eq!(books.complaint.as_deref(), Some(words));
}

#[test]
fn packets_on_their_way_to_a_host_that_is_switched_off_are_lost_there() {
    let rest = format!(
        "faults: [{{ at: 3s, crash: b }}]\n\
         traffic: [{WARM}, {{ from: a, to: b, kind: udp, rate: 1000pps, size: 100, start: 2s, duration: 1s }}]\nuntil: 5s\n"
    );
    let books = books(&pair(["rate: oc3", "rate: oc3, delay: 20ms"], &rest), 1);
    // The packets on its link.
    let lost = only_at(&books, "b: switched off");
    assert!((19..=21).contains(&lost), "{lost}");
}

#[test]
fn a_cut_link_is_the_place_of_what_was_on_it() {
    let rest = format!(
        "faults: [{{ at: 3s, link_down: b-s }}]\n\
         traffic: [{WARM}, {{ from: a, to: b, kind: udp, rate: 1000pps, size: 100, start: 2s, duration: 1s }}]\nuntil: 5s\n"
    );
    let books = books(&pair(["rate: oc3", "rate: oc3, delay: 20ms"], &rest), 1);
    let lost = only_at(&books, "link b-s: cut");
    assert!((19..=21).contains(&lost), "{lost}");
}

#[test]
fn a_host_that_shapes_loses_nothing_at_a_policer_also_beside_other_traffic() {
    // Cells wait behind those of another connection, 212 us each at 2 Mbit/s. The adapter spaces the next ones from
    // there, so that even a tolerance of 1 us is kept. Violations of a contract are made by hand: `policing` in
    // aerostat-node.
    let text = "\
switches: { s: {} }
clip: { c: { subnet: 10.1.0.0/24, server: a } }
hosts:
  a: { on: s, elan: c, ip: 10.1.0.1, link: { rate: 2Mbps } }
  b: { on: s, elan: c, ip: 10.1.0.2 }
  c: { on: s, elan: c, ip: 10.1.0.3 }
pvcs: [{ from: a, vc: 0.100, to: b, qos: \"cbr:tx:max_pcr=1000,max_cdv=1,rx:max_pcr=1000\", police: true }]
traffic:
  - { from: a, to: b, kind: udp, rate: 100pps, size: 300, start: 1s, duration: 2s }
  - { from: a, to: c, kind: udp, rate: 100pps, size: 777, start: 1s, duration: 2s, poisson: true }
";
    let books = books(text, 0);
    assert_eq!(
        (books.offered, books.delivered),
        (200, 200),
        "{:?}",
        books.lost
    );
}

/// Two subnets behind a router.
fn routed(router: &str, rest: &str) -> String {
    format!(
        "switches: {{ s: {{}} }}\n\
         lane: {{ on: s, elans: {{ a: {{ subnet: 10.1.0.0/24 }}, b: {{ subnet: 10.2.0.0/24, mtu: 1516 }} }} }}\n\
         clip: {{ c: {{ subnet: 10.3.0.0/24, server: r }} }}\n\
         routers: {{ r: {{ on: s, elans: {{ a: 10.1.0.1, b: 10.2.0.1, c: 10.3.0.1 }}{router} }} }}\n\
         hosts:\n  a: {{ on: s, elan: a, ip: 10.1.0.10 }}\n  b: {{ on: s, elan: b, ip: 10.2.0.10 }}\n  \
         c: {{ on: s, elan: c, ip: 10.3.0.10 }}\n{rest}"
    )
}

#[test]
fn a_slow_router_loses_in_its_queue() {
    let rest =
        "traffic: [{ from: a, to: b, kind: udp, rate: 1000pps, size: 1000, duration: 1s }]\n";
    let books = books(&routed(", forwarding: 2Mbps, queue: 10", rest), 0);
    let lost = only_at(&books, "r: router queue full");
    // 1028 octets of IP each: 243 packets in that second, and ten that wait.
    assert!((740..760).contains(&lost), "{lost}");
}

#[test]
fn the_first_packet_above_the_next_mtu_is_lost_at_the_router() {
    // Between two subnets of Classical IP there is an ELAN with a smaller MTU, which validate does not check.
    let text = "\
switches: { s: {} }
lane: { on: s, elans: { middle: { subnet: 10.2.0.0/24 } } }
clip: { c: { subnet: 10.1.0.0/24, server: r1 }, d: { subnet: 10.3.0.0/24, server: r2 } }
routers:
  r1: { on: s, elans: { c: 10.1.0.1, middle: 10.2.0.1 } }
  r2: { on: s, elans: { d: 10.3.0.1, middle: 10.2.0.2 } }
hosts:
  a: { on: s, elan: c, ip: 10.1.0.10 }
  b: { on: s, elan: d, ip: 10.3.0.10 }
traffic: [{ from: a, to: b, kind: udp, rate: 100pps, size: 5000, duration: 500ms }]
";
    let books = books(text, 0);
    // The router tells the MTU of the path, and what the host sends from then on comes as fragments.
    assert_eq!(only_at(&books, "r1: larger than the MTU"), 1);
    assert_eq!((books.offered, books.delivered), (50, 49));
    assert_eq!(books.complaint, None);
}

#[test]
fn a_neighbour_of_the_router_that_is_gone_is_lost_at_the_routers_arp() {
    let rest = "faults: [{ at: 900ms, crash: b }]\n\
                traffic: [{ from: a, to: b, kind: ping, rate: 10pps, start: 1s, duration: 1s }]\nuntil: 8s\n";
    let books = books(&routed("", rest), 0);
    assert_eq!(only_at(&books, "r: ARP"), 10);
}

#[test]
fn two_pings_between_the_same_hosts_have_books_of_their_own() {
    let rest = "traffic:\n  - { name: slow, from: a, to: b, kind: ping, rate: 10pps, duration: 1s }\n  \
                - { name: fast, from: a, to: b, kind: ping, rate: 50pps, duration: 1s }\n";
    let (lab, report) = run(&pair(["rate: oc3", "rate: oc3"], rest));
    for (flow, packets) in [(0, 10), (1, 50)] {
        let books = books_of(&lab, &report, flow);
        assert_eq!((books.offered, books.delivered), (packets, packets));
        let answers: u64 = report.flows[flow]
            .paths
            .iter()
            .map(|path| path.round_trip.count)
            .sum();
        assert_eq!(answers, packets);
    }
}

#[test]
fn a_frame_that_the_bus_floods_to_its_sender_alone_has_its_place() {
    // The router has crashed, its address is still in the host's ARP table, and the ELAN has no other member.
    let rest = "faults: [{ at: 1500ms, crash: r }]\n\
                traffic: [{ from: a, to: b, kind: udp, rate: 20pps, size: 100, start: 1s, duration: 2s }]\nuntil: 4s\n";
    let books = books(&routed("", rest), 0);
    assert!(books.delivered >= 9, "{}", books.delivered);
    let flooded = books.lost["a: flooded, and for nobody here"];
    assert!(flooded > 10, "{:?}", books.lost);
}

#[test]
fn packets_that_wait_for_a_call_that_fails_for_a_while_are_lost_in_words() {
    // The switch of the ATMARP server has crashed: cause 27, after which the call is repeated later.
    let text = "\
switches: { s0: {}, s1: {} }
links: [[s0, s1]]
clip: { c: { subnet: 10.1.0.0/24, server: r }, d: { subnet: 10.2.0.0/24, server: r } }
routers: { r: { on: s0, elans: { c: 10.1.0.1, d: 10.2.0.1 } } }
hosts:
  a: { on: s1, elan: c, ip: 10.1.0.10 }
  b: { on: s1, elan: d, ip: 10.2.0.10 }
traffic: [{ from: a, to: b, kind: udp, rate: 20pps, size: 100, start: 1s, duration: 2s }]
faults: [{ at: 1500ms, crash: s0 }]
until: 5s
";
    let books = books(text, 0);
    assert_eq!(books.offered, 40);
    assert!(
        books.lost["a: destination unreachable"] > 20,
        "{:?}",
        books.lost
    );
}

#[test]
fn a_datagram_that_nobody_listens_for_is_lost_at_the_receiver() {
    let rest = "traffic: [{ from: a, to: b, kind: udp, rate: 100pps, size: 100, start: 1s, duration: 1s }]\n";
    let text = pair(["rate: oc3", "rate: oc3"], rest);
    let b = lab_of("losses", &text, &[]).find("b").expect("a node");
    let (lab, report) = run_after(&text, |running| {
        running.run_until(Instant::from_millis(1500));
        let receiver = AppCommand::Stop(AppId(1));
        running.command(b, HostCommand::app(None, receiver));
    });
    let books = books_of(&lab, &report, 0);
    assert_eq!(books.offered, 100);
    let lost = only_at(&books, "b: nobody listens");
    assert!((49..=51).contains(&lost), "{lost}");
    let words = format!("traffic a-b lost {lost} of 100 packets (b: nobody listens: {lost})");
    assert_eq!(books.complaint, Some(words));
}

/// The warning of `run` about the flow `words` between two hosts.
fn complaint(words: &str, rest: &str) -> Option<String> {
    let traffic = format!("traffic: [{{ name: f, from: a, to: b, {words} }}]\n{rest}");
    books(&pair(["rate: oc3", "rate: oc3"], &traffic), 0).complaint
}

/// The receiver has crashed before the flow starts.
const GONE: &str = "faults: [{ at: 900ms, crash: b }]\nuntil: 8s\n";

#[test]
fn a_flow_that_shows_a_failure_is_no_warning_and_a_failure_that_does_not_come_is_one() {
    let udp = "kind: udp, rate: 100pps, size: 100, start: 1s, duration: 1s";
    assert_eq!(complaint(udp, ""), None);
    let nothing = "traffic f delivered nothing of 100 packets (a: ARP: 100)";
    assert_eq!(complaint(udp, GONE).as_deref(), Some(nothing));
    for expect in ["loss", "nothing"] {
        let udp = format!("{udp}, expect: {expect}");
        assert_eq!(complaint(&udp, GONE), None, "{expect}");
    }
    let loss = complaint(&format!("{udp}, expect: loss"), "");
    assert_eq!(
        loss.as_deref(),
        Some("traffic f: 'expect: loss', but nothing was lost")
    );
    let nothing = complaint(&format!("{udp}, expect: nothing"), "");
    let words = "traffic f: 'expect: nothing', but 100 of 100 packets arrived";
    assert_eq!(nothing.as_deref(), Some(words));
}

#[test]
fn a_ping_whose_answers_are_lost_is_a_warning_with_their_place() {
    // Requests have a line of their own. Answers share a slow line with a stream that overflows the queues.
    let traffic = "traffic:\n  \
        - { name: f, from: a, to: b, kind: ping, rate: 20pps, size: 1000, start: 1s, duration: 5s }\n  \
        - { name: load, from: b, to: a, kind: udp, rate: 300pps, size: 1472, start: 500ms, duration: 6s }\n";
    let (lab, report) = run(&pair(["rate: oc3", "rate: 3Mbps"], traffic));
    let path = &report.flows[0].paths[0];
    let complaint = books_of(&lab, &report, 0).complaint;
    assert_eq!((path.lost, path.received_packets), (0, 100));
    assert!(path.unanswered > 10, "{path:?}");
    assert_eq!(path.unanswered, 100 - path.round_trip.count);
    assert_eq!(path.answers_lost.values().sum::<u64>(), path.unanswered);
    let (lost, place) = (path.unanswered, "b adapter: early packet discard");
    let words =
        format!("traffic f got no answer to {lost} of 100 requests that arrived ({place}: {lost})");
    assert_eq!(complaint, Some(words));
}

#[test]
fn answers_that_are_under_way_at_the_end_are_not_missed() {
    let far = "rate: oc3, delay: 300ms";
    let traffic = "traffic: [{ name: f, from: a, to: b, kind: ping, rate: 10pps, start: 6s, duration: 6500ms }]\nuntil: 12s\n";
    let (lab, report) = run(&pair(["rate: oc3", far], traffic));
    let path = &report.flows[0].paths[0];
    let open = path.received_packets - path.round_trip.count;
    assert!((2..=4).contains(&open), "{path:?}");
    assert_eq!(path.unanswered, 0);
    assert_eq!(books_of(&lab, &report, 0).complaint, None);
}

#[test]
fn a_flow_whose_hosts_never_join_never_starts_and_one_without_a_connection_never_sends() {
    let without = "faults: [{ at: 0s, crash: lane }]\nuntil: 3s\n";
    let words = "traffic f never started: its hosts have not joined";
    let waiting = "kind: udp, rate: 100pps, duration: 1s";
    assert_eq!(complaint(waiting, without).as_deref(), Some(words));
    // One that expects losses has shown none.
    let expecting = complaint(&format!("{waiting}, expect: loss"), without);
    let words = "traffic f: 'expect: loss', but it never started: its hosts have not joined";
    assert_eq!(expecting.as_deref(), Some(words));
    let tcp = complaint("kind: tcp, start: 1s, duration: 1s, expect: loss", GONE);
    let words = "traffic f: 'expect: loss', but it never sent anything";
    assert_eq!(tcp.as_deref(), Some(words));
    let tcp = complaint("kind: tcp, start: 1s, duration: 1s", GONE);
    assert_eq!(
        tcp.as_deref(),
        Some("traffic f never sent anything: no connection")
    );
}

#[test]
fn a_ping_whose_answers_are_lost_got_no_answer() {
    // Nothing comes back on this path: the echo has no route to the requesting host.
    let text = "\
switches: { s: {} }
lane: { on: s, elans: { a: { subnet: 10.1.0.0/24 } } }
hosts:
  a: { on: s, elan: a, ip: 10.1.0.1 }
  b: { on: s, elan: a, ip: 10.1.0.2, neighbours: { 10.1.0.1: '02:a7:00:00:00:99' } }
traffic: [{ name: f, from: a, to: b, kind: ping, rate: 10pps, start: 1s, duration: 1s }]
until: 4s
";
    let books = books(text, 0);
    assert_eq!((books.offered, books.delivered), (10, 10));
    let place = "a: flooded, and for nobody here: 10";
    let words = format!("traffic f got no answer to 10 requests ({place})");
    assert_eq!(books.complaint, Some(words));
}

#[test]
fn a_ping_without_answers_whose_requests_are_lost_tells_the_losses_too() {
    let rest = format!(
        "traffic: [{WARM}, {{ name: f, from: a, to: b, kind: ping, rate: 10pps, start: 2s, duration: 1s }}]\n\
         faults: [{{ at: 2060ms, link_down: b-s }}]\nuntil: 5s\n"
    );
    let text = pair(["rate: oc3", "rate: oc3, delay: 40ms"], &rest);
    let books = books(&text, 1);
    let lost: u64 = books.lost.values().sum();
    let words = books.complaint.expect("a warning");
    assert!((1..10).contains(&lost), "{lost} {words}");
    let losses = format!(", and lost {lost} of them (");
    assert!(
        words.starts_with("traffic f got no answer to 10 requests"),
        "{words}"
    );
    assert!(words.contains(&losses), "{words}");
}

#[test]
fn one_lost_packet_in_ten_is_congestion_and_more_is_a_warning() {
    let flow = |rate: u32| {
        let rest = format!(
            "traffic: [{WARM}, {{ name: f, from: a, to: b, kind: udp, rate: {rate}pps, size: 1000, start: 2s, duration: 9s }}]\n"
        );
        books(&pair(["rate: oc3", "rate: 2Mbps"], &rest), 1)
    };
    // 214 packets a second pass.
    let (few, many) = (flow(235), flow(300));
    assert!(few.lost.values().sum::<u64>() > 0, "{:?}", few.lost);
    assert_eq!(few.complaint, None);
    let lost: u64 = many.lost.values().sum();
    let place = "s port 2 to b: early packet discard";
    let words = format!("traffic f lost {lost} of 2700 packets ({place}: {lost})");
    assert_eq!(many.complaint, Some(words));
}

/// A flow without `start:` whose hosts join late, behind a long line, and the time at which it starts to send.
#[test]
fn traffic_without_a_start_begins_when_the_later_of_its_hosts_has_joined() {
    let rest =
        "traffic: [{ name: f, from: a, to: b, kind: udp, rate: 10pps, size: 100, duration: 1s }]\n";
    let mut starts = Vec::new();
    for delay in ["5us", "100ms"] {
        let far = format!("rate: oc3, delay: {delay}");
        let (lab, report) = run(&pair(["rate: oc3", &far], rest));
        let books = books_of(&lab, &report, 0);
        assert_eq!((books.offered, books.delivered), (10, 10), "{delay}");
        let first = report.flows[0].first.expect("it has sent");
        starts.push(first.as_nanos() / 1_000_000);
        // The end is counted from there, so that nothing is under way.
        assert!(
            report.end.since(first).as_secs_f64() >= 3.0 - 1e-9,
            "{delay}"
        );
    }
    assert!(starts[0] < 100, "{starts:?}");
    // Joining takes several round trips of 200 ms.
    assert!(starts[1] > 600, "{starts:?}");
}

#[test]
fn a_flow_that_stays_on_a_segment_counts_once() {
    let text = "
switches: { s1: {} }
lane: { on: s1, elans: { a: { subnet: 10.1.0.0/24 } } }
hosts:
  pc: { on: s1, elan: a, ip: 10.1.0.10, bridge: { phone: 10.1.0.50, phone2: 10.1.0.51 } }
traffic:
  - { name: up, from: phone, to: pc, kind: udp, rate: 450pps, size: 24, start: 2s, duration: 2s }
  - { name: down, from: pc, to: phone, kind: udp, rate: 450pps, size: 24, start: 2s, duration: 2s }
  - { name: along, from: phone2, to: phone, kind: udp, rate: 450pps, size: 24, start: 2s, duration: 2s }
  - { name: echo, from: phone2, to: pc, kind: ping, rate: 10pps, size: 24, start: 2s, duration: 2s }
";
    for (flow, packets) in [(0, 900), (1, 900), (2, 900), (3, 20)] {
        let books = books(text, flow);
        assert_eq!(books.offered, packets, "{flow}");
        assert_eq!(books.delivered, packets, "{flow}");
    }
}

#[test]
fn a_packet_that_came_by_a_shortcut_is_under_way_while_a_router_forwards_it() {
    // The router is so slow that a packet is inside it most of the time.
    let text = "
switches: { s1: {} }
lane: { on: s1, elans: { b: { subnet: 10.2.0.0/24 } } }
mpoa: false
clip: { c: { subnet: 10.3.0.0/24, server: r1, nhrp: true } }
routers: { r1: { on: s1, elans: { b: 10.2.0.1, c: 10.3.0.1 }, forwarding: 5Mbps } }
hosts:
  h1: { on: s1, elan: b, ip: 10.2.0.11 }
  h2: { on: s1, elan: c, ip: 10.3.0.12 }
traffic: [{ from: h2, to: h1, kind: udp, rate: 450pps, size: 1000, start: 3s, duration: 2s }]
";
    let mut waiting = 0;
    for until in ["4000ms", "4003ms", "4005ms", "4007ms"] {
        let books = books(&format!("{text}until: {until}\n"), 0);
        waiting += books.under_way;
    }
    assert!(waiting > 0, "the router was empty each time");
}

/// The warnings about programs of two hosts that were never connected; the listener's line is slow.
fn failed(caller: &str, listener: &str) -> Vec<String> {
    let text = format!(
        "switches: {{ s: {{}} }}\nclip: {{ c: {{ subnet: 10.1.0.0/24, server: a }} }}\nhosts:\n  \
         a: {{ on: s, elan: c, ip: 10.1.0.1, sockets: [{caller}] }}\n  \
         b: {{ on: s, elan: c, ip: 10.1.0.2, link: {{ rate: 3Mbps }}, sockets: [{listener}] }}\nuntil: 5s\n"
    );
    run(&text).1.failed_programs
}

#[test]
fn a_program_whose_calls_all_fail_is_a_warning_with_the_cause_unless_that_is_expected() {
    let dear =
        "name: w, call: b, pdus: 5, rate: 10pps, qos: 'cbr:tx:max_pcr=100000,rx:max_pcr=100000'";
    let sink = "{ name: r, listen: sink }";
    // Too late for another call; after 20 ms, and then less and less often; after a second.
    let [once, soon, again] = [", start: 4995ms", "", ", every: 1s"]
        .map(|rest| failed(&format!("{{ {dear}{rest} }}"), sink));
    let cause = "cause 37 (user cell rate not available)";
    assert_eq!(once, [format!("program a/w: its call failed: {cause}")]);
    for again in [soon, again] {
        let [again] = &again[..] else {
            panic!("{again:?}")
        };
        assert!(
            again.contains(" times, the last time: ") && again.ends_with(cause),
            "{again}"
        );
    }
    for expect in ["nothing", "loss"] {
        let expected = failed(&format!("{{ {dear}, expect: {expect} }}"), sink);
        assert!(expected.is_empty(), "{expected:?}");
    }
    let fine = failed("{ name: w, call: b, pdus: 5, rate: 10pps }", sink);
    assert!(fine.is_empty(), "{fine:?}");
}

/// A packet of one cell is on the line at the instant at which its sender makes it: its loss is reported after the
/// packet.
#[test]
fn a_packet_of_one_cell_that_the_first_link_loses_or_that_is_cut_has_its_place() {
    let pvc = |link: &str, rest: &str| {
        format!(
            "switches: {{ s: {{}} }}\nclip: {{ c: {{ subnet: 10.1.0.0/24 }} }}\n\
             hosts:\n  a: {{ on: s, elan: c, ip: 10.1.0.1, link: {{ {link} }} }}\n  b: {{ on: s, elan: c, ip: 10.1.0.2 }}\n\
             pvcs: [{{ from: a, vc: 0.100, to: b }}]\n\
             traffic: [{{ name: f, from: a, to: b, kind: ping, rate: 100pps, size: 0, start: 1s, duration: 5s }}]\n{rest}"
        )
    };
    let lossy = books(&pvc("loss: 0.2", ""), 0);
    let lost = only_at(&lossy, "link a-s: cell lost");
    assert!((60..140).contains(&lost), "{lost} of 500");
    // The adapter of a host whose link is cut goes on sending, and the books have this place.
    let cut = books(
        &pvc("rate: oc3", "faults: [{ at: 2995ms, link_down: a-s }]\n"),
        0,
    );
    let lost: u64 = cut.lost.values().sum();
    assert_eq!(
        (cut.sent, cut.delivered, lost),
        (500, 200, 300),
        "{:?}",
        cut.lost
    );
}
