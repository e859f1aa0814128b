//! A run that is ended before its time.

use crate::bench::repository_lab;
use aerostat_lab::event::Event;
use aerostat_proto::Instant;
use aerostat_sim::run::{self, Recording, Watcher};
use std::cell::Cell;

/// Ends the run as soon as it is asked after this time.
struct Impatient {
    after: f64,
    now: f64,
    asked: Cell<u32>,
    slices: Vec<f64>,
}

impl Watcher for Impatient {
    fn event(&mut self, event: &Event) {
        self.now = event.time;
    }
    fn progress(&mut self, now: Instant, _end: Instant) {
        self.slices.push(now.as_secs_f64());
    }
    fn interrupted(&self) -> bool {
        self.asked.set(self.asked.get() + 1);
        self.now > self.after
    }
}

#[test]
fn a_run_ends_soon_after_it_is_told_and_not_at_the_end_of_its_slice_of_time() {
    let lab = repository_lab("campus", &[]);
    let mut watcher = Impatient {
        // The traffic begins.
        after: 2.0,
        now: 0.0,
        asked: Cell::new(0),
        slices: Vec::new(),
    };
    let ran = run::run_and_record(&lab, Recording::default(), &mut watcher);
    let (report, captured) = ran.expect("no captures");
    captured.expect("no captures");
    let end = report.end.as_secs_f64();
    // Slices are a tenth of a second; in a large lab each takes many real ones.
    assert!((2.0..2.05).contains(&end), "{end}");
    assert_eq!(watcher.slices.last(), Some(&end), "told how far it came");
    assert!(watcher.asked.get() > 1);
}
