//! Runs of cells at a policer, which lets all of their cells pass or only a part.

use super::connection::Connection;
use crate::atm::counters::UpcCounters;
use crate::atm::pdu::CellRun;
use crate::atm::police::{Policer, Verdict};
use crate::atm::rate::CellRate;
use crate::atm::timing::Timing;
use aerostat_proto::Instant;
use std::sync::Arc;

/// The cells of a run that pass the policer: runs of consecutive cells, in order.
pub(super) struct Policed {
    pub(super) front: Vec<CellRun>,
    pub(super) last: Option<CellRun>,
    /// Number of the cells that do not pass.
    pub(super) dropped: u64,
}

/// Polices a run if all its cells have the same verdict for sure: a single cell, or a run whose cells all pass. `None`
/// if the run has to be judged cell by cell; then the policer is unchanged.
///
/// Each cell counts at the time when its source sends it. Cells of a run without such times follow each other at the
/// rate of the line, and the run gets these times.
#[inline]
pub(super) fn admit(
    policer: &mut Policer,
    run: &mut CellRun,
    now: Instant,
    line: CellRate,
) -> Option<Verdict> {
    let first = run.first();
    if run.count == 1 {
        let at = if run.has_times() {
            run.times().map_or(now, |times| times.of(first))
        } else {
            now
        };
        return Some(policer.police(run.clp, at, run.rounding()));
    }
    let times = run.times().unwrap_or_else(|| {
        let times = Timing::even(now, first, line);
        run.timing = Some(Arc::new(times));
        times
    });
    policer.passes_all(run, &times)
}

/// Polices each cell of a run that has times. See [`admit`].
pub(super) fn police(connection: &mut Connection, mut run: CellRun) -> Policed {
    let mut passed = Policed {
        front: Vec::new(),
        last: None,
        dropped: 0,
    };
    let (Some(policer), Some(timing)) = (&mut connection.policer, run.times()) else {
        passed.last = Some(run);
        return passed;
    };
    let (first, count, clp) = (run.first(), run.count, run.clp);
    let rounding = run.rounding();
    let mut upc = UpcCounters::default();
    let mut keep = |mut part: CellRun, verdict: Verdict| {
        let cells = u64::from(part.count);
        match verdict {
            Verdict::Discard(why) => {
                passed.dropped += cells;
                upc.discard(why, cells);
                return;
            }
            Verdict::Tag(why) => {
                part.clp = true;
                upc.tag(why, cells);
            }
            Verdict::Pass => {}
        }
        passed.front.extend(passed.last.replace(part));
    };
    let mut verdicts = timing
        .from(first)
        .take(count.into())
        .map(|at| policer.police(clp, at, rounding));
    let Some(mut verdict) = verdicts.next() else {
        return passed;
    };
    let mut since = 0;
    for (next, index) in verdicts.zip(1..) {
        if next != verdict {
            if let Some(part) = run.split_off_front(index - since) {
                keep(part, verdict);
            }
            (verdict, since) = (next, index);
        }
    }
    keep(run, verdict);
    connection.count(&upc);
    passed
}
