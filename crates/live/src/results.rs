//! The results of a running lab so far, in the form of a run in virtual time.

use crate::world::World;
use aerostat_lab::build::Builder;
use aerostat_lab::report::RunReport;
use aerostat_proto::Instant;

/// All results as of `now`. Call this after [`World::settle_books`]. `elsewhere` is true if packets may be in other
/// processes, or outside the lab.
#[must_use]
pub fn report(
    world: &mut World,
    builder: &Builder<'_>,
    now: Instant,
    elsewhere: bool,
) -> RunReport {
    let mut report = world.report(now, elsewhere);
    report.not_due = not_due(builder, now);
    report
}

/// Flows that have not started. Between kernel hosts no program makes them; for other flows the time may not have come.
fn not_due(builder: &Builder<'_>, now: Instant) -> Vec<usize> {
    let flows = builder.lab().traffic.iter().enumerate();
    let not = flows.filter(|(_, flow)| {
        let mut ends = [flow.from, flow.to].into_iter();
        let kernel = ends.any(|id| builder.is_kernel(id));
        kernel || (!flow.waits && Instant::ZERO + flow.start >= now)
    });
    not.map(|(number, _)| number).collect()
}
