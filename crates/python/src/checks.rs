//! Checks of a lab, judged by a run in virtual time.

use crate::lab::Lab;
use crate::mistake::Mistake;
use crate::run::{Asker, Bounds, Ended};
use crate::written::Written;
use aerostat_lab::checks::Level;
use aerostat_lab::{ChecksText, Override};
use aerostat_sim::run::Watcher as _;

/// Name of checks from Python in messages.
const CHECKS: &str = "checks";

/// A check with its verdict.
pub(crate) struct Judged {
    pub(crate) title: String,
    pub(crate) stage: Option<String>,
    pub(crate) required: bool,
    pub(crate) verdict: &'static str,
    pub(crate) points: u64,
    pub(crate) of: u64,
    pub(crate) text: String,
    pub(crate) details: String,
}

/// Judges a lab by these checks, or by its own; the caller has not the lock of the interpreter.
pub(crate) fn judge(
    lab: &Lab,
    set: &[Override],
    checks: Option<&Written>,
    bounds: Bounds,
) -> Result<Vec<Judged>, Ended> {
    let read = match checks {
        None => aerostat_lab::parse(&lab.file, &lab.text, set),
        Some(checks) => {
            let (name, text) = (CHECKS, &*checks.text);
            let text = ChecksText { name, text };
            aerostat_lab::parse_with_checks(&lab.file, &lab.text, set, text)
        }
    };
    let keys = checks.map_or(&[][..], |checks| &checks.keys);
    let wrong = |all| Ended::Wrong(Mistake::first(&lab.file, &all).with_key(CHECKS, keys));
    let checked = read.and_then(aerostat_lab::Checked::without_files);
    let checked = checked.map_err(wrong)?;
    if let Some(message) = checked.lab.outside_of_time() {
        return Err(Ended::Wrong(Mistake::of_lab(&lab.file, message)));
    }
    let asker = Asker::new(bounds);
    let verdicts = aerostat_sim::check::check(&checked, &|| asker.interrupted());
    let judged = verdicts.judged.iter().map(|one| Judged {
        title: one.check.title.clone(),
        stage: one.check.stage.clone(),
        required: one.check.level == Level::Required,
        verdict: one.verdict.name(),
        points: one.points,
        of: one.check.points,
        text: one.text.clone(),
        details: one.details.clone(),
    });
    let judged = judged.collect();
    asker.why(None).map_or(Ok(judged), Err)
}
