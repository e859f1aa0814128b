//! A network that lags behind: what comes from outside does not wait for the work that is due.

use super::trains::{Net, lab, mac};
use aerostat_lab::build::{Builder, Flavour};
use aerostat_lab::model::FaultKind;
use aerostat_proto::Duration;
use std::fmt::Write as _;

/// Two hosts of one switch, and many of another.
fn text() -> String {
    let mut text = String::from(
        "
switches: { s1: {}, s2: {} }
links: [[s1, s2, { rate: oc12 }]]
lane: { on: s1, elans: { q: { subnet: 10.1.0.0/24 }, m: { subnet: 10.2.0.0/24 } } }
hosts:
  a: { on: s1, elan: q, ip: 10.1.0.10 }
  b: { on: s1, elan: q, ip: 10.1.0.20 }
",
    );
    for host in 1..=100 {
        writeln!(text, "  h{host}: {{ on: s2, elan: m, ip: 10.2.0.{host} }}").unwrap();
    }
    text
}

#[test]
fn a_frame_of_a_kernel_does_not_wait_for_the_connections_of_hosts_of_another_switch() {
    let lab = lab(&text());
    let builder = Builder::new(&lab, 7, Flavour::Kernel);
    let mut net = Net::start(&lab, &builder);
    let (b, to) = (lab.find("b").unwrap(), (mac(&lab, "b"), [10, 1, 0, 20]));
    for _ in 0..40 {
        net.send(to, (100, 1460), false);
        net.run(Duration::from_millis(50));
    }
    let s2 = lab.find("s2").unwrap();
    net.world
        .fault(&builder, FaultKind::Restart(s2, None), net.now);
    // The driver slept while the hosts set up their connections.
    net.now += Duration::from_millis(45);
    let (begin, mut sent, mut most) = (net.world.events(), 0, 0);
    'lags: while !net.world.step(net.now, 100) {
        net.drain();
        net.got.clear();
        let before = net.world.events();
        net.send(to, (100, 1460), false);
        while net.got.iter().all(|(node, _)| *node != b.0) {
            if net.world.step(net.now, 1) {
                break 'lags;
            }
            net.drain();
        }
        sent += 1;
        most = most.max(net.world.events() - before);
    }
    assert!(sent >= 10, "{sent} frames while the network lagged");
    // Some hundred events happen in the few microseconds that the frame is under way.
    let due = net.world.events() - begin;
    assert!(
        due >= 5000 && most <= 1024,
        "a frame waited for {most} events of {due}"
    );
}
