//! Frame discard is a matter of the contract: cells of AAL1 and AAL2 do not end frames.

use super::*;
use aerostat_wire::cell::Pti;

/// Offers cells without an end of a frame until some are lost, lets all others leave, and offers one more. True if
/// that cell is accepted.
fn passes_after_a_loss(frame_discard: Option<bool>, traffic: TrafficParams) -> bool {
    let limits = PortLimits {
        best_effort_vc: Limits::of(8),
        guaranteed_vc: Limits::plain(8),
        ..PortLimits::SWITCH
    };
    let traffic = TrafficParams {
        frame_discard,
        ..traffic
    };
    let mut port = OutputPort::new(CellRate::OC3, limits);
    let queue = port.open(vc(1), QueueConfig::switch(traffic)).unwrap();
    let offer = |port: &mut OutputPort| {
        let cell = CellRun::raw(vc(1), Pti::USER, [0x47; 48]);
        port.enqueue(queue, cell, Instant::ZERO).accepted == 1
    };
    let accepted = (0..12).filter(|_| offer(&mut port)).count();
    assert!((6..=8).contains(&accepted), "{accepted}");
    drain(&mut port, FOREVER);
    offer(&mut port)
}

#[test]
fn without_frames_a_loss_costs_single_cells() {
    let (ubr, cbr) = (TrafficParams::ubr(0), TrafficParams::cbr(1000, 0));
    assert!(passes_after_a_loss(Some(false), ubr));
    assert!(passes_after_a_loss(None, cbr) && passes_after_a_loss(Some(false), cbr));
}

#[test]
fn with_frames_a_loss_costs_the_rest_of_the_frame() {
    let (ubr, cbr) = (TrafficParams::ubr(0), TrafficParams::cbr(1000, 0));
    assert!(!passes_after_a_loss(None, ubr) && !passes_after_a_loss(Some(true), ubr));
    assert!(!passes_after_a_loss(Some(true), cbr));
}
