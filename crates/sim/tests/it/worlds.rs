//! Closed forms over random labs: rates, contracts, sizes and buffers are drawn, and the model must be within 2 % of
//! the formula. A table of results that somebody wrote down could not do this.
//!
//! `AEROSTAT_DRAWS=20 AEROSTAT_SEED=7 cargo test --release -p aerostat-sim --test it worlds` draws more, and others.
//! The formulas share no arithmetic with the simulator.

use crate::losses::run;
use aerostat_lab::dialogues::Dialogue;
use aerostat_node::random;
use rand_pcg::Pcg32;
use rand_pcg::rand_core::Rng;
use std::str::FromStr;

/// Cells per second of an OC-3c.
const OC3: f64 = 149.76e6 / 424.0;

/// Numbers for one formula.
struct Draws(Pcg32);

impl Draws {
    /// From `least` to `most`, all logarithms equally likely, so that small values come as often as large ones.
    fn number(&mut self, least: f64, most: f64) -> f64 {
        let share = f64::from(self.0.next_u32()) / f64::from(u32::MAX);
        (least * (most / least).powf(share)).round()
    }
}

fn from_env<T: FromStr>(name: &str, usual: T) -> T {
    let given = std::env::var(name).ok();
    given.and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Draws worlds of a formula; `world` returns what it drew, what the formula says, and what the model has.
fn hold(formula: &str, world: impl Fn(&mut Draws) -> (String, f64, f64)) {
    let mut draws = Draws(random::stream(
        from_env("AEROSTAT_SEED", 1),
        "worlds",
        formula,
    ));
    for _ in 0..from_env("AEROSTAT_DRAWS", 3) {
        let (drawn, theory, measured) = world(&mut draws);
        let error = measured / theory - 1.0;
        assert!(
            error.abs() < 0.02,
            "{formula}, {drawn}: {measured}, and the formula has {theory}"
        );
    }
}

/// Cells of an SDU in AAL5: its octets and eight of trailer, in payloads of 48.
fn cells(sdu: f64) -> f64 {
    ((sdu + 8.0) / 48.0).ceil()
}

/// Two hosts at a switch, and a program that sends on a permanent connection with these keys.
fn one_way(switch: &str, sender: &str, receiver: &str, contract: &str, program: &str) -> Dialogue {
    let text = format!(
        "switches: {{ s: {{ {switch} }} }}\n\
         clip: {{ n: {{ subnet: 10.1.0.0/24, server: z }} }}\n\
         pvcs: [{{ from: a, vc: 0.100, to: z, to_vc: 0.101{contract} }}]\n\
         hosts:\n\
         \x20 a: {{ on: s, elan: n, ip: 10.1.0.1{sender}, sockets: [{{ name: w, vc: 0.100, start: 1s, {program} }}] }}\n\
         \x20 z: {{ on: s, elan: n, ip: 10.1.0.9{receiver}, sockets: [{{ name: r, vc: 0.101, listen: sink }}] }}\n\
         until: 60s\n"
    );
    let (_, report) = run(&text);
    let mut all = report.dialogues.into_iter();
    all.find(|dialogue| dialogue.from.1 == "w")
        .expect("a program")
}

/// PDUs of this many cells for half a second at this cell rate, at least twenty.
fn pdus(count: f64, rate: f64) -> f64 {
    (rate / 2.0 / count).ceil().max(20.0)
}

#[test]
fn a_line_carries_its_cells_less_headers_trailer_and_padding() {
    hold("line rate", |draws| {
        let (rate, size) = (draws.number(5e3, 353e3), draws.number(1.0, 9180.0));
        let link = format!(", link: {{ rate: {rate}cells/s }}");
        let count = cells(size);
        let program = format!("size: {size}, rate: line, pdus: {}", pdus(count, rate));
        let seen = one_way("", &link, "", "", &program);
        let theory = size * 8.0 * rate / count / 1e6;
        (
            format!("{rate} cells/s, {size} octets"),
            theory,
            seen.throughput_mbps.unwrap_or_default(),
        )
    });
}

#[test]
fn a_shaper_sends_at_the_peak_rate() {
    hold("peak rate", |draws| {
        let (pcr, size) = (draws.number(1e3, 300e3), draws.number(1.0, 9180.0));
        let count = cells(size);
        let program = format!("size: {size}, rate: line, pdus: {}", pdus(count, pcr));
        let seen = one_way("", "", "", &format!(", pcr: {pcr}"), &program);
        let theory = size * 8.0 * pcr / count / 1e6;
        (
            format!("{pcr} cells/s, {size} octets"),
            theory,
            seen.throughput_mbps.unwrap_or_default(),
        )
    });
}

#[test]
fn a_policer_passes_the_sustained_rate_and_one_burst() {
    hold("sustained rate", |draws| {
        let (scr, mbs) = (draws.number(10e3, 320e3), draws.number(2.0, 500.0));
        let sent = 60_000.0;
        let contract = format!(", qos: \"nrt-vbr,aal5:scr={scr},mbs={mbs}\", shape: false");
        // PDUs of one cell: each cell that is cut is a PDU.
        let program = format!("size: 40, rate: line, pdus: {sent}, expect: loss");
        let seen = one_way("police: true", ", shape: false", "", &contract, &program);
        // The bucket at the start, and then what flows out of it while the cells come.
        let theory = sent / OC3 * scr + 1.0 + (mbs - 1.0) * (1.0 - scr / OC3);
        let passed = seen.delivered.unwrap_or_default() as f64;
        (format!("{scr} cells/s, MBS {mbs}"), theory, passed)
    });
}

#[test]
fn a_buffer_delays_by_its_cells_at_most() {
    hold("buffer", |draws| {
        let (rate, buffer) = (draws.number(5e3, 100e3), draws.number(100.0, 2000.0));
        let queues = format!("queues: {{ buffer: {buffer}, epd: {buffer} }}");
        let link = format!(", link: {{ rate: {rate}cells/s }}");
        let (offered, sent) = (rate * 2.0, buffer * 3.0);
        let program = format!("size: 40, rate: {offered}pps, pdus: {sent}, expect: loss");
        let seen = one_way(&queues, "", &link, "", &program);
        // The buffer in front of it, its own time on both lines, and two cables of 5 us.
        let theory = ((buffer + 1.0) / rate + 1.0 / OC3 + 10e-6) * 1e6;
        (
            format!("{rate} cells/s, {buffer} cells"),
            theory,
            seen.delay.max_us,
        )
    });
}

/// Mbit/s of payload of the flow `load`.
fn throughput(text: &str) -> f64 {
    let (lab, report) = run(text);
    let index = lab.traffic.iter().position(|flow| flow.name == "load");
    let paths = &report.flows[index.expect("a flow")].paths;
    paths.iter().map(|path| path.throughput_mbps).sum()
}

#[test]
fn a_router_forwards_at_its_rate() {
    hold("router", |draws| {
        let (rate, size) = (draws.number(300.0, 9000.0), draws.number(24.0, 1400.0));
        let offered = (rate * 1.2).ceil();
        let text = format!(
            "switches: {{ s: {{}} }}\n\
             lane: {{ on: s, elans: {{ x: {{ subnet: 10.1.0.0/24 }}, y: {{ subnet: 10.2.0.0/24 }} }} }}\n\
             routers: {{ r: {{ on: s, elans: {{ x: 10.1.0.1, y: 10.2.0.1 }}, forwarding: {rate}pps }} }}\n\
             hosts: {{ a: {{ on: s, elan: x, ip: 10.1.0.10 }}, b: {{ on: s, elan: y, ip: 10.2.0.10 }} }}\n\
             traffic:\n  - {{ name: warm, from: a, to: b, kind: ping, rate: 10pps, start: 2s, duration: 1s }}\n\
             \x20 - {{ name: load, from: a, to: b, kind: udp, rate: {offered}pps, size: {size}, start: 4s, duration: 1s, expect: loss }}\n"
        );
        let theory = rate * size * 8.0 / 1e6;
        (
            format!("{rate} packets/s, {size} octets"),
            theory,
            throughput(&text),
        )
    });
}

#[test]
fn tcp_has_the_throughput_of_the_cpu_at_any_mtu() {
    hold("mtu", |draws| {
        let mtu = draws.number(576.0, 9180.0);
        let (packet, octet) = (draws.number(100.0, 500.0), draws.number(60.0, 150.0));
        let cpu = format!("{packet}us + {octet}ns/octet");
        // Buffers of many segments, so that no window is the limit.
        let host = format!(
            "tcp: {{ congestion: reno, buffer: 524288 }}, \
             cpu: {{ send: {cpu}, receive: {cpu}, ack: 0us, queue: 4000 }}"
        );
        let text = format!(
            "switches: {{ s: {{}} }}\n\
             clip: {{ n: {{ subnet: 10.1.0.0/24, server: a, mtu: {mtu} }} }}\n\
             hosts:\n  a: {{ on: s, elan: n, ip: 10.1.0.1, {host} }}\n  b: {{ on: s, elan: n, ip: 10.1.0.2, {host} }}\n\
             traffic: [{{ name: load, from: a, to: b, kind: tcp, start: 2s, duration: 4s }}]\n"
        );
        // Segments of the MTU less the headers of IP and TCP; acknowledgements cost nothing.
        let theory = (mtu - 40.0) * 8.0 / (packet + octet * mtu / 1e3);
        (format!("MTU {mtu}, {cpu}"), theory, throughput(&text))
    });
}
