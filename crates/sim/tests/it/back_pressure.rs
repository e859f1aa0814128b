//! Programs on ATM wait for their adapter: everything that is offered arrives, or is counted where it was lost.

use crate::bench::{Bench, lab_of};
use crate::sockets::calls;
use aerostat_proto::{Duration, Instant};
use std::collections::BTreeMap;

/// Cells of a PDU of 4096 octets: ceil((4096 + 8) / 48).
const CELLS: u64 = 86;

/// A permanent connection over a link of 25.6 Mb/s at the sender, with this contract and these programs.
fn lab(contract: &str, sender: &str, receiver: &str, until: &str) -> Bench {
    let text = format!(
        "switches: {{ s1: {{}} }}
clip: {{ net: {{ subnet: 10.1.0.0/24 }} }}
hosts:
  x:
    on: s1
    elan: net
    ip: 10.1.0.1
    link: {{ rate: 25.6, delay: 0us }}
    sockets: [{{ name: bulk, {sender} }}]
  y:
    on: s1
    elan: net
    ip: 10.1.0.2
    sockets: [{{ name: sink, {receiver} }}]
pvcs: [{{ from: x, vc: 0.100, to: y, to_vc: 0.200{contract} }}]
until: {until}
"
    );
    Bench::new(lab_of("back_pressure", &text, &[]), 1)
}

fn number(row: &BTreeMap<&'static str, String>, column: &str) -> u64 {
    let text = &row[column];
    text.parse()
        .unwrap_or_else(|_| panic!("{column} is {text}: {row:?}"))
}

/// The accounts of the only call of a program: offered = sent + refused + waiting.
fn books(bench: &Bench, host: &str, program: &str) -> BTreeMap<&'static str, String> {
    let row = calls(bench, host)[program][0].clone();
    let sum: u64 = ["sent_pdus", "refused_pdus", "waiting_pdus"]
        .iter()
        .map(|column| number(&row, column))
        .sum();
    assert_eq!(number(&row, "offered_pdus"), sum, "{row:?}");
    row
}

/// When the receiver has this many PDUs, to 10 microseconds.
fn arrival(bench: &mut Bench, pdus: u64, after: Duration) -> Duration {
    let start = Instant::ZERO + after;
    let (mut early, mut late) = (Duration::ZERO, Duration::ZERO);
    while number(&calls(bench, "y")["sink"][0], "received_pdus") < pdus {
        early = late;
        bench.run(Duration::from_micros(10));
        late = bench.now().since(start);
        assert!(late < Duration::from_secs(60), "{pdus} do not come");
    }
    assert!(late > early);
    late
}

fn near(measured: Duration, expected: f64, tolerance: f64) {
    let measured = measured.as_secs_f64();
    assert!(
        (measured - expected).abs() <= tolerance,
        "{measured} s, not {expected} s"
    );
}

#[test]
fn five_thousand_pdus_at_once_all_arrive_in_the_time_of_their_cells() {
    let sender = "vc: 0.100, size: 4096, pdus: 5000, rate: 1Gbps, start: 1s";
    let mut bench = lab("", sender, "vc: 0.200, listen: sink", "20s");
    let expected = 5000.0 * CELLS as f64 / 59_111.0;
    bench.run(Duration::from_secs_f64(1.0 + expected - 0.01));
    let time = arrival(&mut bench, 5000, Duration::from_secs(1));
    // The last cell crosses a second, faster link, and the clock of this test has steps of 10 us.
    near(time, expected, 3.0 / 59_111.0);
    let (sent, received) = (books(&bench, "x", "bulk"), books(&bench, "y", "sink"));
    assert_eq!(number(&sent, "sent_pdus"), 5000);
    assert_eq!(sent["sent_crc32"], received["received_crc32"]);
    assert_eq!(
        (number(&sent, "unsent_pdus"), number(&sent, "refused_pdus")),
        (0, 0)
    );
    // PDUs that need 1455 us are due every 33 us: the program cannot keep its pace, and reports that.
    assert!(number(&sent, "late_pdus") > 4900, "{sent:?}");
}

#[test]
fn a_contract_gives_a_blocking_program_its_rate() {
    let sender = "vc: 0.100, size: 4096, pdus: 300, rate: 1Gbps, start: 1s";
    let mut bench = lab(", pcr: 10000", sender, "vc: 0.200, listen: sink", "5s");
    // The first cell leaves at once, the last one after all others.
    let expected = (300 * CELLS - 1) as f64 / 10_000.0;
    bench.run(Duration::from_secs_f64(1.0 + expected - 0.01));
    let time = arrival(&mut bench, 300, Duration::from_secs(1));
    near(time, expected, 3.0 / 10_000.0);
    let sent = books(&bench, "x", "bulk");
    assert_eq!(
        (number(&sent, "sent_pdus"), number(&sent, "unsent_pdus")),
        (300, 0)
    );
}

#[test]
fn a_program_that_can_keep_its_pace_is_never_late() {
    let sender = "vc: 0.100, size: 4096, pdus: 500, rate: 600pps, start: 1s";
    let mut bench = lab("", sender, "vc: 0.200, listen: sink", "5s");
    bench.run(Duration::from_secs(3));
    let sent = books(&bench, "x", "bulk");
    assert_eq!(
        (number(&sent, "sent_pdus"), number(&sent, "late_pdus")),
        (500, 0)
    );
    let received = books(&bench, "y", "sink");
    assert_eq!(number(&received, "received_pdus"), 500);
}

#[test]
fn an_echo_sends_everything_back_when_its_own_link_is_as_fast() {
    let sender = "vc: 0.100, size: 4096, pdus: 1000, rate: 1Gbps, start: 1s";
    let mut bench = lab("", sender, "vc: 0.200, listen: echo", "5s");
    bench.run(Duration::from_secs(4));
    let (sent, echo) = (books(&bench, "x", "bulk"), books(&bench, "y", "sink"));
    assert_eq!(
        (number(&echo, "offered_pdus"), number(&echo, "refused_pdus")),
        (1000, 0)
    );
    assert_eq!(number(&sent, "received_pdus"), 1000);
    assert_eq!(sent["sent_crc32"], sent["received_crc32"]);
}

#[test]
fn a_receiver_that_vanishes_costs_what_was_sent_to_it_and_the_sender_goes_on() {
    let sender = "vc: 0.100, size: 4096, pdus: 2000, rate: 1Gbps, start: 1s";
    let mut bench = lab("", sender, "vc: 0.200, listen: sink", "9s");
    bench.run(Duration::from_millis(2000));
    let before = number(&books(&bench, "y", "sink"), "received_pdus");
    let expected = 59_111 / CELLS;
    assert!(before.abs_diff(expected) <= 1, "{before}, not {expected}");
    let y = bench.node("y");
    bench.power_off(y);
    bench.run(Duration::from_secs(5));
    // The sender of a permanent connection is not told; it has sent everything, at the rate of its link.
    let sent = books(&bench, "x", "bulk");
    assert_eq!(
        (number(&sent, "sent_pdus"), number(&sent, "unsent_pdus")),
        (2000, 0)
    );
}

#[test]
fn a_link_that_is_down_makes_the_program_wait_and_costs_what_was_in_the_adapter() {
    let sender = "vc: 0.100, size: 4096, pdus: 2000, rate: 1Gbps, start: 1s";
    let mut bench = lab("", sender, "vc: 0.200, listen: sink", "9s");
    bench.run(Duration::from_millis(1500));
    let link = bench.link("x-s1");
    bench.cut(link, true);
    bench.run(Duration::from_secs(1));
    let sent = books(&bench, "x", "bulk");
    assert_eq!(number(&sent, "waiting_pdus"), 1);
    let (taken, lost) = (number(&sent, "sent_pdus"), number(&sent, "unsent_pdus"));
    assert!((20..=48).contains(&lost), "{sent:?}");
    bench.cut(link, false);
    bench.run(Duration::from_secs(5));
    let (sent, received) = (books(&bench, "x", "bulk"), books(&bench, "y", "sink"));
    assert_eq!(
        (number(&sent, "sent_pdus"), number(&sent, "unsent_pdus")),
        (2000, lost)
    );
    // At most one PDU was on the line when it was cut.
    let missing = 2000 - lost - number(&received, "received_pdus");
    assert!(missing <= 1, "{missing} of {taken}: {received:?}");
}

#[test]
fn a_release_in_the_middle_names_every_pdu_that_did_not_arrive() {
    let text = "switches: { s1: {} }
links: []
lane: { on: s1, elans: { a: { subnet: 10.1.0.0/24 } } }
hosts:
  x:
    on: s1
    elan: a
    ip: 10.1.0.10
    link: { rate: 25.6 }
    sockets: [{ name: bulk, call: y, qos: \"ubr,aal5:sdu=4096\", size: 4096, pdus: 3000, rate: 1Gbps, start: 1s }]
  y: { on: s1, elan: a, ip: 10.1.0.20, sockets: [{ name: sink, listen: sink }] }
until: 9s
";
    let mut bench = Bench::new(lab_of("release", text, &[]), 1);
    bench.run(Duration::from_secs(2));
    let y = bench.node("y");
    bench.crash(y, aerostat_node::host::ServiceKind::Sockets);
    // The data it had received are read before the crash, and nothing comes after it.
    bench.run(Duration::from_secs(1));
    let sent = books(&bench, "x", "bulk");
    assert_eq!((&*sent["state"], &*sent["released_by"]), ("ended", "peer"));
    let (taken, unsent) = (number(&sent, "sent_pdus"), number(&sent, "unsent_pdus"));
    // The program wrote one PDU that found no room; the PDU was abandoned with the call.
    assert_eq!(number(&sent, "refused_pdus"), 1, "{sent:?}");
    assert!((20..=48).contains(&unsent), "{sent:?}");
    let left = taken - unsent;
    // One second at 59111 cells/s, minus the time of the set-up and of the release.
    assert!(
        left.abs_diff(59_111 / CELLS) <= 5,
        "{left} PDUs left the adapter: {sent:?}"
    );
}
