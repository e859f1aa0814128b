//! Cells in Ethernet frames: what a saturated Ethernet carries, and how long a PDU takes through a gateway.

use super::{PROPAGATION, Probe, Section, cells};

/// Octets of a cell in a frame: four of header, without HEC, and the payload.
const CELL: f64 = 52.0;
/// Octets around the cells of a frame: preamble and delimiter 8, header 14, check sequence 4, gap 12.
const AROUND: f64 = 8.0 + 14.0 + 4.0 + 12.0;
/// Seconds of a cell on TAXI: 54 octets of 80 ns.
const TAXI_CELL: f64 = 432.0 / 100e6;

fn lab(ethernet: &str, traffic: &str) -> String {
    format!(
        "switches: {{ gateway: {{}} }}\n\
         clip: {{ net: {{ subnet: 10.1.0.0/24 }} }}\n\
         pvcs: [{{ from: station, vc: 0.100, to: server, mux: true }}]\n\
         hosts:\n\
         \x20 station: {{ on: gateway, elan: net, ip: 10.1.0.1, link: {{ ethernet: {{ {ethernet} }} }} }}\n\
         \x20 server: {{ on: gateway, elan: net, ip: 10.1.0.2, link: {{ rate: taxi }} }}\n\
         traffic: [{{ from: station, to: server, {traffic} }}]\n"
    )
}

/// More is offered than the Ethernet carries, so all frames are full.
#[test]
fn a_saturated_ethernet_carries_full_frames_of_cells() {
    let mut section = Section::new("fat-cells");
    for (rate, cells_of_frame) in [(10, 1), (10, 8), (10, 28), (10, 172), (100, 28)] {
        let octets = AROUND + CELL * f64::from(cells_of_frame);
        let per_second = f64::from(cells_of_frame) * f64::from(rate) * 1e6 / (octets * 8.0);
        // TAXI, the other line of the gateway, is faster.
        assert!(per_second < 1.0 / TAXI_CELL || rate == 100);
        let size = 1472;
        let cells_of_pdu = cells(size + 28) as f64;
        let limit = per_second.min(1.0 / TAXI_CELL) / cells_of_pdu;
        let offered = (1.1 * limit).ceil();
        let ethernet = format!("rate: {rate}Mbps, cells: {cells_of_frame}");
        let traffic =
            format!("kind: udp, size: {size}, rate: {offered}pps, start: 100ms, duration: 1s");
        let probe = Probe::new("fat-cells", &lab(&ethernet, &traffic)).all();
        let arrivals: Vec<f64> = probe.heard.arrived[0]
            .iter()
            .map(|(sent, delay)| sent.as_secs_f64() + delay)
            .filter(|at| *at > 0.2 && *at < 1.1)
            .collect();
        let gaps = (arrivals.len() - 1) as f64;
        let measured = gaps / (arrivals[arrivals.len() - 1] - arrivals[0]);
        section.exact(
            format!("{rate} Mbit/s, {cells_of_frame} cells in a frame"),
            "cells",
            "1/s",
            [limit, measured].map(|pdus| pdus * cells_of_pdu),
        );
    }
    section.check();
}

/// The time from the station to the server of a PDU with so many cells, in seconds: frames one behind the other on the
/// Ethernet, each of which arrives as a whole, then cell by cell on TAXI.
fn one_way(count: usize, cells_of_frame: usize, octet: f64) -> f64 {
    let (mut free, mut there) = (0.0_f64, Vec::new());
    let mut left = count;
    while left > 0 {
        let now = left.min(cells_of_frame);
        left -= now;
        let end = free + (8.0 + 14.0 + CELL * now as f64 + 4.0) * octet;
        there.extend(std::iter::repeat_n(end + PROPAGATION, now));
        free = end + 12.0 * octet;
    }
    let mut done = 0.0_f64;
    for at in there {
        done = at.max(done) + TAXI_CELL;
    }
    done + PROPAGATION
}

#[test]
fn a_pdu_through_a_gateway_takes_its_frames_and_then_its_cells() {
    let mut section = Section::new("gateway-delay");
    for (rate, cells_of_frame, size) in [
        (10, 28, 64),
        (10, 28, 1472),
        (10, 28, 8000),
        (100, 28, 8000),
        (100, 8, 8000),
    ] {
        let ethernet = format!("rate: {rate}Mbps, cells: {cells_of_frame}");
        let traffic = format!("kind: udp, size: {size}, rate: 10pps, start: 533ms, duration: 1s");
        let probe = Probe::new("gateway-delay", &lab(&ethernet, &traffic)).all();
        let delays = probe.delays(0);
        assert!(delays.len() >= 9, "{} datagrams", delays.len());
        let count = cells(size + 28);
        let theory = one_way(count, cells_of_frame, 8.0 / (f64::from(rate) * 1e6));
        for delay in &delays {
            assert!(
                (delay - theory).abs() < 500e-9,
                "{size} octets: {delay}, not {theory}"
            );
        }
        let mean = delays.iter().sum::<f64>() / delays.len() as f64;
        section.exact(
            format!("{rate} Mbit/s, {cells_of_frame} cells in a frame, {count} cells"),
            "delay",
            "µs",
            [theory * 1e6, mean * 1e6],
        );
    }
    section.check();
}
