//! Scores of rows: the model's value, that of the paper, whether the rule holds, and the same in real time.

use super::catalogue::{AllPrinted, Entry, Kind, Printed, Row};
use super::model::Values;
use super::summary::TIERS;
use super::{live, rules};
use crate::exit::Failure;
use aerostat_lab::results::rounded;
use aerostat_node::inspect::{Name, Rare};
use aerostat_node::rows;

/// A value with four decimals. Small numbers, such as Mb/s of tiny packets, have four digits, too.
fn number(value: f64) -> f64 {
    rounded(value, if value.abs() < 0.1 { 7 } else { 4 })
}

fn four(value: f64) -> f64 {
    rounded(value, 4)
}

fn two(value: f64) -> f64 {
    rounded(value, 2)
}

rows! {
    /// One row for each row of an entry. The columns that begin with `live` are those of real time.
    pub(crate) struct ScoreLine: "rows" for (score: &Score<'_>, live: Option<&Live<'_>>, tcp: Option<String>) {
        /// Name of the entry.
        entry: String = score.entry.name.clone(),
        /// Name of the row.
        row: String = score.row.row.clone(),
        /// Median of the model.
        model: f64 = number(median(&score.values)),
        /// Unit of the values.
        unit: String as Detail(15) = score.unit().to_owned(),
        /// Printed value.
        printed: Option<f64> = score.printed.map(number),
        /// The value to compare with, where that is not the printed one.
        corrected: Rare<f64> = Rare(score.corrected.map(number)),
        /// Distance from the printed value, per cent.
        error ("error_%"): Option<f64> as Detail(17) = score.error.map(two),
        /// Weight of the row as evidence.
        kind: Name as Detail(18) = score.kind.name().into(),
        /// Tier of the row.
        tier: Name as Detail(14) = score.tier().into(),
        /// Rule of the row.
        rule: String as Detail(8) = score.rule.clone(),
        /// Result of the rule.
        result: Name = score.result.into(),
        /// Smallest value of all seeds.
        low: Option<f64> as Detail(9) = score.values.first().copied().map(number),
        /// Largest value of all seeds.
        high: Option<f64> as Detail(10) = score.values.last().copied().map(number),
        /// Number of seeds.
        seeds: usize as Detail(6) = score.values.len(),
        /// Words of the paper.
        says: Option<String> as Detail(5) = score.says.clone(),
        /// Place in the paper.
        place ("where"): String as Detail(4) = score.place.clone(),
        /// Reason of a correction, or of a circular row.
        because: Rare<String> = Rare(score.because.clone()),
        /// Printed number of the row above, as a baseline.
        above: Option<f64> as Detail(1) = score.above.map(number),
        /// Rate of the wire, as a baseline.
        wire: Option<f64> as Detail(0) = score.wire.map(number),
        /// Printed numbers of the rows that the row names as its baseline, added up.
        baseline: Rare<f64> as Detail(0) = Rare(score.baseline.map(number)),
        /// The ± of the printed number.
        plus_minus: Rare<f64> as Detail(2) = Rare(score.plus_minus.map(number)),
        /// Distance from the printed value in units of its ±.
        error_in_plus_minus: Rare<f64> as Detail(2) = Rare(score.in_plus_minus().map(two)),
        /// Smallest distance from a row that it must exceed or stay below, per cent of that row.
        effect ("effect_%"): Rare<f64> as Detail(3) = Rare(score.effect.map(|effect| four(effect.model))),
        /// The same distance between the printed numbers.
        printed_effect ("printed_effect_%"): Rare<f64> as Detail(3) = Rare(score.effect.and_then(|effect| effect.printed).map(two)),
        /// TCP of the lab, and that of the paper.
        tcp: Rare<String> as Detail(3) = Rare(tcp),
        /// Median of the runs.
        live: Rare<f64> = Rare(live.map(|live| four(median(&live.values)))),
        /// Smallest value of the runs.
        live_low: Rare<f64> as Detail(12) = Rare(live.and_then(|live| live.values.first().copied().map(four))),
        /// Largest value of the runs.
        live_high: Rare<f64> as Detail(13) = Rare(live.and_then(|live| live.values.last().copied().map(four))),
        /// Number of runs.
        live_runs: Rare<usize> as Detail(7) = Rare(live.map(|live| live.values.len())),
        /// Distance from the printed value, per cent.
        live_error ("live_error_%"): Rare<f64> as Detail(16) = Rare(live.and_then(|live| live.error).map(two)),
        /// Result of the rule in real time.
        live_result: Rare<Name> = Rare(live.map(|live| live.result.into())),
        /// Segments sent again.
        live_retransmitted: Rare<u64> as Detail(2) = Rare(live.map(|live| live.found.counters.retransmitted)),
        /// Expirations of retransmission timers.
        live_timeouts: Rare<u64> as Detail(11) = Rare(live.map(|live| live.found.counters.timeouts)),
        /// Events of the network that were late.
        live_late: Rare<u64> as Detail(0) = Rare(live.map(|live| live.found.late)),
        /// Longest mean time of waiting for a processor.
        live_wait_us: Rare<f64> as Detail(1) = Rare(live.and_then(|live| live.found.wait).map(|wait| rounded(wait, 1))),
    }
}

/// Score of a row.
pub(crate) struct Score<'a> {
    pub(super) entry: &'a Entry,
    pub(super) row: &'a Row,
    /// The values of all seeds, in order of size.
    pub(super) values: Values,
    pub(super) kind: Kind,
    pub(super) printed: Option<f64>,
    pub(super) corrected: Option<f64>,
    pub(super) because: Option<String>,
    /// The number to compare with: the corrected one, or the printed one.
    pub(super) paper: Option<f64>,
    /// Baselines: the printed number of the row above, the rate of the wire, and the rows that the row names.
    pub(super) above: Option<f64>,
    pub(super) wire: Option<f64>,
    pub(super) baseline: Option<f64>,
    /// The ± of the printed number.
    pub(super) plus_minus: Option<f64>,
    /// The smallest effect of which an order rule is made.
    pub(super) effect: Option<rules::Effect>,
    pub(super) says: Option<String>,
    pub(super) place: String,
    /// Distance from the printed value, per cent.
    pub(super) error: Option<f64>,
    pub(super) rule: String,
    /// The rules that do not hold.
    pub(super) missed: String,
    pub(super) result: &'static str,
    /// Its score between Linux kernels in real time.
    pub(super) live: Option<Live<'a>>,
}

/// A row between Linux kernels in real time.
pub(crate) struct Live<'a> {
    pub(super) found: &'a live::Found,
    /// The values of all runs, in order of size.
    pub(super) values: Values,
    /// Distance from the printed value, per cent.
    pub(super) error: Option<f64>,
    /// Result of the row's rule; `lagged`: the machine was too busy.
    pub(super) result: &'static str,
}

/// Scores of the rows of the chosen entries: rows that are only compared with get a score, too.
///
/// # Errors
/// A value with which a rule compares is missing.
pub(super) fn scores<'a>(
    rows: &[(&'a Entry, &'a Row)],
    values: &[Values],
    printed: &AllPrinted,
    measured: Option<&'a live::Measured>,
) -> Result<Vec<Score<'a>>, Failure> {
    let all = All {
        rows,
        values,
        measured,
    };
    let scores = rows.iter().zip(values).enumerate();
    let scores = scores.map(|(at, ((entry, row), values))| {
        let above = entry.above(row, printed);
        let baseline = entry.baseline(row, printed)?;
        let plus_minus = entry.plus_minus(row, printed);
        let number = |reference: &str| entry.number(row, reference, printed);
        let printed = printed.of(&entry.name, &row.row);
        let paper = printed.and_then(Printed::number);
        let found = median(values);
        let facts = rules::Facts {
            found,
            values,
            paper,
            other: |reference: &str| all.model(entry, row, reference),
        };
        let judged = rules::rule(row, &facts)?;
        let effect = rules::effect(row, found, facts.other, paper, number);
        Ok(Score {
            entry,
            row,
            values: sorted(values),
            kind: row.kind(printed),
            printed: printed.and_then(|printed| printed.printed),
            corrected: printed.and_then(|printed| printed.corrected),
            because: printed
                .and_then(|printed| printed.because.clone())
                .or_else(|| row.circular.clone()),
            paper,
            above,
            wire: entry.wire(row),
            baseline,
            plus_minus,
            effect,
            says: printed.and_then(|printed| printed.says.clone()),
            place: printed
                .map(|printed| printed.place.clone())
                .unwrap_or_default(),
            error: far(found, paper),
            result: result(row, judged.holds),
            rule: judged.words,
            missed: judged.missed,
            live: all.live(at, paper),
        })
    });
    scores.collect()
}

/// Result of a row whose rules hold or not.
const fn result(row: &Row, holds: Option<bool>) -> &'static str {
    match holds {
        Some(false) => "miss",
        // A fit is no prediction, but it can miss.
        _ if row.calibrates.is_some() => "calibration",
        None => "shown",
        Some(true) => "ok",
    }
}

/// All rows, and their values.
struct All<'a, 'b> {
    rows: &'b [(&'a Entry, &'a Row)],
    values: &'b [Values],
    measured: Option<&'a live::Measured>,
}

impl<'a> All<'a, '_> {
    /// The place of the row that `reference` names in `row`.
    fn at(&self, entry: &Entry, row: &Row, reference: &str) -> Option<usize> {
        let wanted = row.referred(&entry.name, reference);
        let mut all = self.rows.iter();
        all.position(|(entry, row)| (&*entry.name, &*row.row) == wanted)
    }

    /// The model of the row that `reference` names.
    fn model(&self, entry: &Entry, row: &Row, reference: &str) -> Option<f64> {
        let at = self.at(entry, row, reference)?;
        Some(median(self.values.get(at)?))
    }

    fn measured(&self, at: usize) -> Option<&'a live::Found> {
        self.measured?.rows.get(at)?.as_ref()
    }

    /// Score of the row in real time. It is compared with other rows in real time only.
    fn live(&self, at: usize, paper: Option<f64>) -> Option<Live<'a>> {
        let measured = self.measured(at)?;
        let (entry, row) = self.rows.get(at)?;
        let found = median(&measured.values);
        let facts = rules::Facts {
            found,
            values: &measured.values,
            paper,
            other: |reference: &str| {
                let other = self.measured(self.at(entry, row, reference)?)?;
                Some(median(&other.values))
            },
        };
        // There may be no rule, or a row to compare with does not run in real time.
        let judged = rules::rule(row, &facts).ok();
        let result = match judged.and_then(|judged| judged.holds) {
            _ if measured.lagged() => "lagged",
            Some(true) => "ok",
            Some(false) => "miss",
            None => "shown",
        };
        Some(Live {
            found: measured,
            values: sorted(&measured.values),
            error: far(found, paper),
            result,
        })
    }
}

/// Distance from the printed value, per cent; `None` if there is nothing to compare.
fn far(found: f64, paper: Option<f64>) -> Option<f64> {
    let far = (found - paper?) / paper? * 100.0;
    far.is_finite().then_some(far)
}

fn sorted(values: &[f64]) -> Values {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values
}

/// The median; NaN without values.
pub(super) fn median(values: &[f64]) -> f64 {
    let values = sorted(values);
    let middle = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    }
}

impl Score<'_> {
    /// The name of its tier.
    fn tier(&self) -> &'static str {
        let mut tiers = TIERS.iter();
        let tier = tiers.find(|(tier, ..)| *tier == self.row.tier);
        tier.map_or("", |(_, name, _)| name)
    }
    /// Distance of the model from the number to compare with, in units of the printed ±.
    pub(super) fn in_plus_minus(&self) -> Option<f64> {
        let far = (median(&self.values) - self.paper?).abs() / self.plus_minus?;
        far.is_finite().then_some(far)
    }
    pub(super) fn unit(&self) -> &str {
        self.row.unit.as_ref().unwrap_or(&self.entry.unit)
    }
}
