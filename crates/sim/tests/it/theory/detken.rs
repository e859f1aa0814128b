//! Detken 2001: a router that is overloaded, and a trunk with VLAN tags, in the labs `detken-router` and
//! `detken-trunk`.

use super::{Probe, Section};
use crate::bench::repository_lab;

/// Frames per second of a Fast Ethernet: the frame with check sequence, 8 octets of preamble, 12 of gap.
fn line_rate(frame: u32) -> f64 {
    100e6 / f64::from((frame + 20) * 8)
}

/// The packets that the router of `detken-router` loses, of those that it gets.
fn lost(frame: u32, percent: u32, more: &[&str]) -> (u64, u64) {
    let rate = (line_rate(frame) * f64::from(percent) / 100.0).floor();
    // Headers of Ethernet, IP and UDP, and the check sequence. A stamp has 24 octets.
    let size = (frame - 46).max(24);
    let set = [
        format!("traffic.load.rate={rate}pps"),
        format!("traffic.load.size={size}"),
    ];
    let set: Vec<&str> = set
        .iter()
        .map(String::as_str)
        .chain(more.iter().copied())
        .collect();
    let probe = Probe::of(repository_lab("detken-router", &set)).all();
    let sent = probe.heard.sent_in_all[1];
    (sent, sent - probe.heard.arrived[1].len() as u64)
}

/// The packets that a router of 65 000 packets/s with a queue of 100 loses of packets at even distances: those that
/// have arrived and are neither forwarded, nor on the way, nor in the queue when the last one comes.
fn closed_form(sent: u64, rate: f64) -> f64 {
    let forwarded = (65_000.0 * (sent - 1) as f64 / rate).floor();
    (sent as f64 - forwarded - 101.0).max(0.0)
}

#[test]
fn a_router_of_65000_frames_a_second_is_overloaded_where_the_paper_stops() {
    let mut section = Section::new("detken-router");
    for (frame, percent) in [
        (64, 40),
        (64, 50),
        (64, 90),
        (128, 70),
        (128, 80),
        (128, 100),
        (256, 100),
        (512, 100),
        (1024, 100),
        (1280, 100),
        (1518, 100),
    ] {
        let (sent, lost) = lost(frame, percent, &[]);
        let rate = (line_rate(frame) * f64::from(percent) / 100.0).floor();
        section.exact(
            format!("{frame} octets, {percent} %: {rate} frames/s"),
            "frames lost in 50 ms",
            "frames",
            [closed_form(sent, rate), lost as f64],
        );
    }
    // Figure 7: shortcuts pass the router by.
    let (sent, lost) = lost(64, 90, &["mpoa=true"]);
    assert!(sent > 6000);
    section.exact(
        "64 octets, 90 %, with shortcuts",
        "frames lost in 50 ms",
        "frames",
        [0.0, lost as f64],
    );
    section.check();
}

#[test]
fn a_trunk_with_tags_is_a_quarter_of_a_per_cent_too_slow() {
    let mut section = Section::new("detken-trunk");
    for (percent, rate) in [(90, 7314.7_f64), (100, 8127.4)] {
        let set = [
            format!("traffic.load.rate={rate}pps"),
            "traffic.load.duration=500ms".to_owned(),
        ];
        let lab = repository_lab("detken-trunk", &set.each_ref().map(String::as_str));
        let delays = Probe::of(lab).all().delays(1);
        let growth = delays[delays.len() - 1] - delays[0];
        let excess = (1542.0 * 8.0 / 100e6 - 1.0 / rate).max(0.0);
        section.exact(
            format!("1518 octets, {percent} %: {rate} frames/s"),
            "wait of the last frame after 0.5 s",
            "µs",
            [
                excess * (delays.len() - 1) as f64 * 1e6,
                (growth * 1e6 * 1000.0).round() / 1000.0,
            ],
        );
    }
    section.check();
}
