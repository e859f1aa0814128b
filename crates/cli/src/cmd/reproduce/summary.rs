//! The summary of scores: by tier, by paper, and how the runs were made. All outputs and the report take it from here.

use super::catalogue::{Kind, Parameters, Tier};
use super::{Score, median};
use crate::output::Rows;
use crate::version;
use aerostat_lab::results::rounded;
use aerostat_node::rows;
use aerostat_wire::counted;

/// Tiers with their names, and what they claim.
pub(super) const TIERS: [(Tier, &str, &str); 5] = [
    (Tier::A, "A", "physics"),
    (Tier::B, "B", "a calibrated host"),
    (Tier::C, "C", "about 15 %"),
    (Tier::D, "D", "shape, order, a factor of 2"),
    (Tier::E, "E", "not reproducible, never scored"),
];

/// Name of the tiers together for which goals were set.
const CLAIMED: &str = "A to C";

/// How the runs were made.
#[derive(Clone, Debug, Default)]
pub(super) struct Made {
    /// Runs of labs.
    pub(super) runs: usize,
    /// Runs at the same time.
    pub(super) jobs: usize,
    /// Time of the whole, seconds.
    pub(super) seconds: f64,
    /// The seeds of entries with a random part, as they were given; `None`: from 1 on, as many as the entry says.
    pub(super) seeds: Option<String>,
    /// Files instead of those of the catalogue, as words of the command; empty: those of the catalogue.
    pub(super) files: String,
}

impl Made {
    /// The seeds in words.
    pub(super) fn seeds(&self) -> &str {
        self.seeds.as_deref().unwrap_or("from 1 on")
    }
}

/// How near predictions are to the printed numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Near {
    /// Predictions within 5 per cent.
    pub(super) within_5: usize,
    /// Predictions within 20 per cent.
    pub(super) within_20: usize,
    /// Predictions within a factor of 2.
    pub(super) factor_2: usize,
}

impl Near {
    /// Counts a value beside the printed number; none is far away.
    fn add(&mut self, value: Option<f64>, paper: f64) {
        let share = value.unwrap_or(f64::NAN) / paper;
        self.within_5 += usize::from((share - 1.0).abs() <= 0.05);
        self.within_20 += usize::from((share - 1.0).abs() <= 0.2);
        self.factor_2 += usize::from((0.5..=2.0).contains(&share));
    }
    /// The three numbers.
    pub(super) const fn all(&self) -> [usize; 3] {
        [self.within_5, self.within_20, self.factor_2]
    }
}

/// Numbers of rows, of a tier, of a kind or of a paper.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Group {
    /// `A`, `A to C`, `all`, or a paper as `sara`.
    pub(super) name: String,
    /// Claim of a tier.
    pub(super) what: &'static str,
    pub(super) rows: usize,
    pub(super) ok: usize,
    pub(super) miss: usize,
    /// Rows of each kind, in the order of [`Kind::ALL`].
    pub(super) kinds: [usize; Kind::ALL.len()],
    /// Predictions of a number other than 0 that are not of tier E.
    pub(super) predictions: usize,
    /// How near the model is to their printed numbers.
    pub(super) model: Near,
    /// How near the printed number of the row above is.
    pub(super) above: Near,
    /// How near the rate of the wire is.
    pub(super) wire: Near,
    /// Parameters that were fitted from rows of the paper, or chosen for them; `None` for a tier.
    pub(super) parameters: Option<usize>,
}

impl Group {
    pub(super) fn of<'a>(
        name: &str,
        what: &'static str,
        scores: impl Iterator<Item = &'a Score<'a>>,
    ) -> Self {
        let mut group = Self {
            name: name.to_owned(),
            what,
            ..Self::default()
        };
        for score in scores {
            group.add(score);
        }
        group
    }

    fn add(&mut self, score: &Score<'_>) {
        self.rows += 1;
        self.ok += usize::from(score.result == "ok");
        self.miss += usize::from(score.result == "miss");
        let kinds = self.kinds.iter_mut().zip(Kind::ALL);
        for (count, known) in kinds {
            *count += usize::from(score.kind == known.0);
        }
        if score.row.tier != Tier::E && score.kind == Kind::Prediction {
            self.predict(score);
        }
    }

    /// Counts a row as a prediction, if it has a number other than 0.
    fn predict(&mut self, score: &Score<'_>) {
        if let Some(paper) = score.paper.filter(|_| score.error.is_some()) {
            self.predictions += 1;
            self.model.add(Some(median(&score.values)), paper);
            self.above.add(score.above, paper);
            self.wire.add(score.wire, paper);
        }
    }

    /// Rows with a rule.
    pub(super) const fn scored(&self) -> usize {
        self.ok + self.miss
    }

    fn rounded_share(&self, count: usize) -> Option<f64> {
        self.share(count).map(|share| rounded(share, 1))
    }

    /// `count` as a share of the predictions, per cent.
    pub(super) fn share(&self, count: usize) -> Option<f64> {
        (self.predictions > 0).then(|| count as f64 / self.predictions as f64 * 100.0)
    }
}

rows! {
    /// One row for each tier and paper, and for all rows together.
    struct GroupLine: "summary" for (name: String, group: &Group) {
        /// The tier or paper.
        of: String = name,
        /// All of its rows.
        rows: usize = group.rows,
        /// Rows with a rule.
        scored: usize = group.scored(),
        /// Rows whose rule holds.
        ok: usize = group.ok,
        /// Rows whose rule does not hold.
        miss: usize = group.miss,
        /// Rows to which a parameter was fitted, or for which one was chosen.
        fitted: usize = group.kinds[0],
        /// Rows that the lab or another row sets.
        circular: usize = group.kinds[1],
        /// Rows for which the paper has words.
        words: usize = group.kinds[3],
        /// Rows for which the paper has nothing.
        own: usize = group.kinds[4],
        /// Predictions beside a printed number.
        predictions: usize = group.predictions,
        /// Predictions within 5 % of it.
        within_5: usize = group.model.within_5,
        /// These as a share of the predictions.
        share_5 ("within_5_%"): Option<f64> = group.rounded_share(group.model.within_5),
        /// Predictions within 20 % of it.
        within_20: usize = group.model.within_20,
        /// These as a share of the predictions.
        share_20 ("within_20_%"): Option<f64> = group.rounded_share(group.model.within_20),
        /// Predictions within a factor of 2 of it.
        factor_2: usize = group.model.factor_2,
        /// Printed numbers to which that of the row above is within 5 %.
        above_5: usize = group.above.within_5,
        /// The same within 20 %.
        above_20: usize = group.above.within_20,
        /// Printed numbers to which the rate of the wire is within 5 %.
        wire_5: usize = group.wire.within_5,
        /// The same within 20 %.
        wire_20: usize = group.wire.within_20,
        /// Parameters fitted from rows of the paper.
        parameters: Option<usize> = group.parameters,
    }

    /// One row about the runs.
    struct MadeLine: "made" for (made: &Made) {
        /// Version of the program.
        version: String = version::VERSION.to_owned(),
        /// Commit of its source; empty if it is not known.
        commit: String = version::COMMIT.to_owned(),
        /// Time of that commit.
        committed: String = version::COMMITTED.to_owned(),
        /// Its compiler.
        rustc: String = version::RUSTC.to_owned(),
        /// Seeds in words.
        seeds: String = made.seeds().to_owned(),
        /// Runs of labs.
        runs: usize = made.runs,
        /// Runs at the same time.
        jobs: usize = made.jobs,
        /// Time of the whole.
        took_s: f64 = rounded(made.seconds, 1),
    }
}

/// The whole summary.
#[derive(Clone, Debug)]
pub(super) struct Summary {
    /// A group for each tier that has rows, then tiers A to C together, these counted in two other ways, then what only
    /// says how repeated runs differ, which no other group has, then all rows.
    pub(super) tiers: Vec<Group>,
    /// A group for each kind that has rows.
    pub(super) kinds: Vec<Group>,
    /// A group for each paper, in the order of the rows.
    pub(super) papers: Vec<Group>,
}

impl Summary {
    /// The summary of these scores. Of `parameters` those count that were fitted from a row of a paper.
    pub(super) fn new<'a>(scores: &[&'a Score<'a>], parameters: &Parameters) -> Self {
        let (apart, scores): (Vec<_>, Vec<_>) = scores
            .iter()
            .partition(|score| score.entry.spread.is_some());
        let scores = &scores[..];
        let mut tiers = by_tier(scores);
        if !apart.is_empty() {
            let group = Group::of("±", "how repeated runs differ", apart.into_iter());
            tiers.insert(tiers.len() - 1, group);
        }
        let kinds = Kind::ALL.iter().map(|(kind, name, what)| {
            let mine = scores.iter().copied();
            Group::of(name, what, mine.filter(|score| score.kind == *kind))
        });
        Self {
            tiers,
            kinds: kinds.filter(|group| group.rows > 0).collect(),
            papers: by_paper(scores, parameters),
        }
    }

    /// All rows together.
    fn all(&self) -> Option<&Group> {
        self.tiers.last()
    }

    /// Tiers A to C together.
    pub(super) fn predicted(&self) -> Option<&Group> {
        self.tiers.iter().find(|group| group.name == CLAIMED)
    }

    /// Rows for tables: tiers, kinds, papers, all.
    pub(super) fn rows(&self) -> Rows {
        let tiers = self.tiers.iter().filter(|group| group.name != "all");
        let tiers = tiers.map(|group| (format!("tier {}", group.name), group));
        let kinds = self.kinds.iter();
        let kinds = kinds.map(|group| (format!("kind {}", group.name), group));
        let papers = self.papers.iter().map(|group| (group.name.clone(), group));
        let all = self.all().map(|group| ("all".to_owned(), group));
        let groups = tiers.chain(kinds).chain(papers).chain(all);
        Rows::of(groups.map(|(name, group)| GroupLine::of(name, group)))
    }

    /// The summary in a few words.
    pub(super) fn words(&self) -> String {
        let Some(all) = self.all() else {
            return String::new();
        };
        let fitted: usize = self
            .papers
            .iter()
            .filter_map(|group| group.parameters)
            .sum();
        let mut text = format!(
            "{} of {}; {}, {} circular; {} fitted or chosen",
            all.ok,
            counted(
                all.scored(),
                "row with a rule is ok",
                "rows with a rule are ok"
            ),
            counted(all.kinds[0], "row is fitted", "rows are fitted"),
            all.kinds[1],
            counted(fitted, "parameter", "parameters"),
        );
        if let Some(group) = self.predicted().filter(|group| group.predictions > 0) {
            text += &format!(
                "; of {} of tiers A to C {} are within 5 %, {} within 20 %",
                counted(group.predictions, "prediction", "predictions"),
                group.model.within_5,
                group.model.within_20
            );
        }
        text
    }
}

/// A group for each tier that has rows, and those of several tiers.
fn by_tier<'a>(scores: &[&'a Score<'a>]) -> Vec<Group> {
    let of = |tiers: &'static [Tier]| {
        let scores = scores.iter().copied();
        scores.filter(move |score| tiers.contains(&score.row.tier))
    };
    let mut tiers: Vec<Group> = TIERS
        .iter()
        .map(|(tier, name, what)| Group::of(name, what, of(std::slice::from_ref(tier))))
        .filter(|group| group.rows > 0)
        .collect();
    let claimed = || of(&[Tier::A, Tier::B, Tier::C]);
    let goal = "goal: 70 % within 5 %, 90 % within 20 %";
    tiers.push(Group::of(CLAIMED, goal, claimed()));
    let also = |name: &str, what, more: Vec<&Score<'_>>| {
        let mut group = Group::of(name, what, claimed());
        for score in more {
            group.predict(score);
        }
        group
    };
    let lenient =
        claimed().filter(|score| score.kind != Kind::Prediction && score.row.calibrates.is_none());
    tiers.push(also(
        "A to C, circular",
        "the same, if circular rows and those for which a value was chosen were predictions",
        lenient.collect(),
    ));
    let shown = of(&[Tier::E]).filter(|score| score.kind == Kind::Prediction);
    tiers.push(also(
        "A to C, E",
        "the same, if rows of tier E were predictions",
        shown.collect(),
    ));
    tiers.push(Group::of("all", "", scores.iter().copied()));
    tiers
}

/// A group for each paper, in the order of the rows.
fn by_paper<'a>(scores: &[&'a Score<'a>], parameters: &Parameters) -> Vec<Group> {
    let mut papers: Vec<Group> = Vec::new();
    for score in scores {
        let paper = paper(&score.entry.name);
        let at = papers.iter().position(|group| group.name == paper);
        let at = at.unwrap_or_else(|| {
            let fitted = parameters
                .values()
                .filter(|parameter| parameter.is_fitted() && self::paper(&parameter.from) == paper);
            papers.push(Group {
                name: paper.to_owned(),
                parameters: Some(fitted.count()),
                ..Group::default()
            });
            papers.len() - 1
        });
        papers[at].add(score);
    }
    papers
}

/// The paper of an entry.
pub(super) fn paper(entry: &str) -> &str {
    entry.split_once('/').map_or(entry, |(paper, _)| paper)
}

/// How the runs were made, as a table.
pub(super) fn made_rows(made: &Made) -> Rows {
    Rows::of([MadeLine::of(made)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cmd::reproduce::catalogue::Entry;

    const ENTRY: &str = "{ title: t, what: w, unit: u, lab: l, rows: [ { row: a, tier: A }, { row: b, tier: B, \
                         circular: same }, { row: c, tier: C }, { row: d, tier: D }, { row: e, tier: E } ] }";

    fn score<'a>(
        entry: &'a Entry,
        row: usize,
        error: Option<f64>,
        result: &'static str,
    ) -> Score<'a> {
        Score {
            entry,
            row: &entry.rows[row],
            values: vec![1.0 + error.unwrap_or_default() / 100.0],
            kind: match (&entry.rows[row].circular, error) {
                (Some(_), _) => Kind::Circular,
                (None, Some(_)) => Kind::Prediction,
                (None, None) => Kind::Own,
            },
            printed: None,
            corrected: error.map(|_| 1.0),
            because: None,
            paper: error.map(|_| 1.0),
            above: error.map(|_| 1.1),
            wire: error.map(|_| 3.0),
            baseline: None,
            plus_minus: None,
            effect: None,
            says: None,
            place: String::new(),
            error,
            rule: String::new(),
            missed: String::new(),
            result,
            live: None,
        }
    }

    #[test]
    fn predictions_are_rows_with_a_number_that_fit_nothing_and_can_be_reproduced() {
        let mut entry: Entry = serde_saphyr::from_str(ENTRY).unwrap();
        entry.name = "p/1".into();
        let scores = [
            score(&entry, 0, Some(-4.0), "ok"),
            score(&entry, 0, None, "ok"),
            // A circular row can miss its rule, but is no prediction.
            score(&entry, 1, Some(1.0), "miss"),
            score(&entry, 2, Some(19.0), "ok"),
            score(&entry, 2, Some(-21.0), "miss"),
            score(&entry, 3, Some(1.0), "shown"),
            score(&entry, 4, Some(1.0), "shown"),
        ];
        let parameter = |row: &str| format!("{{ value: 1, unit: u, what: w, from: p/1 {row} }}");
        let text = format!(
            "{{ p.x: {}, p.y: {} }}",
            parameter(", row: b"),
            parameter("")
        );
        let parameters: Parameters = serde_saphyr::from_str(&text).unwrap();
        let scores: Vec<&Score<'_>> = scores.iter().collect();
        let summary = Summary::new(&scores, &parameters);
        let group = summary.predicted().unwrap();
        assert_eq!((group.rows, group.scored()), (5, 5));
        assert_eq!((group.predictions, group.model.all()), (3, [1, 2, 3]));
        assert_eq!(group.above.all(), [0, 3, 3]);
        assert_eq!(group.wire.all(), [0, 0, 0]);
        assert_eq!(group.kinds, [0, 1, 3, 0, 1]);
        let all = summary.all().unwrap();
        assert_eq!((all.predictions, all.model.all()), (4, [2, 3, 4]));
        assert_eq!(summary.papers.len(), 1);
        assert_eq!(summary.papers[0].parameters, Some(1));
        let rows = summary.rows();
        assert_eq!(rows.rows.len(), 5 + 3 + 3 + 1 + 1);
        let at = |name: &str| rows.columns.iter().position(|column| column == name);
        let cell = |row: usize, name: &str| rows.rows[row][at(name).unwrap()].clone();
        assert_eq!(rows.rows[5][0], "tier A to C");
        assert_eq!(cell(5, "within_5_%"), 33.3);
        // With the circular row, and with that of tier E, each of which is 1 % away.
        for (row, name) in [(6, "tier A to C, circular"), (7, "tier A to C, E")] {
            assert_eq!(rows.rows[row][0], name);
            assert_eq!(
                (cell(row, "predictions"), cell(row, "within_5")),
                (4.into(), 2.into())
            );
        }
        assert!(
            summary
                .words()
                .contains("of 3 predictions of tiers A to C 1 are within 5 %, 2 within 20 %")
        );
    }
}
