//! Runs of cells of which a policer lets only a part pass.

use super::connection::Connection;
use crate::atm::counters::UpcCounters;
use crate::atm::pdu::CellRun;
use crate::atm::police::Verdict;

/// The cells of a run that pass the policer: runs of consecutive cells, in order.
pub(super) struct Policed {
    pub(super) front: Vec<CellRun>,
    pub(super) last: Option<CellRun>,
    /// Number of the cells that do not pass.
    pub(super) dropped: u64,
}

/// Polices each cell of a run that has times. See `admit` in the module above.
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
