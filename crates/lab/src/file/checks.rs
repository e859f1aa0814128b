//! Checks of a lab file.

use super::leaves::Probability;
use crate::checks::wanted::Wanted;
use crate::checks::{Delay, Level, Part, Phase};
use crate::field::{At, FromText, Table, inline_schema, section, words};

section! {
    /// A check: one of the first twelve keys says what is looked at, and the others what it must be.
    CheckFile {
        /// Two hosts (`urku -> sello within 10s`): an echo request of the first is answered in time.
        reach: Option<At<String>>;
        /// Two end systems (`urku -> sello by 7s`): a shortcut from the first to the second is open, at the end or by
        /// then.
        shortcut: Option<At<String>>;
        /// Name of a flow.
        flow: Option<At<String>>;
        /// Name of a table of results, such as flows or lec.client: its rows are counted.
        table: Option<At<String>>;
        /// Words of messages of protocols (`Resolution Request from urku to s1 before 7s`), as 'run --trace' shows
        /// them: the messages are counted.
        message: Option<At<String>>;
        /// A command for a shell in a host of a running lab.
        run: Option<At<String>>;
        /// Name of a host that the lab has.
        host: Option<At<String>>;
        /// Name of a router that the lab has.
        router: Option<At<String>>;
        /// Two nodes (`s1 -> s2`) with a link between them.
        link: Option<At<String>>;
        /// Parts of the lab that are counted: switches, hosts, routers, links, elans, pvcs, traffic or faults.
        count: Option<At<PartText>>;
        /// A value of the settings in the results, by its path (`nodes.urku.switch`).
        setting: Option<At<String>>;
        /// Name of an answer under 'answers:'.
        answer: Option<At<String>>;
        /// The number or the words: `3`, `<100`, `>=2`, `10..20`, `35.3 +- 2%`; with reach, shortcut, message and table
        /// how many, by default one or more.
        is: Option<At<Wanted>>;
        /// With table: columns and what they must be in a row that counts.
        r#where: Option<Table<ColumnName, At<Wanted>>>;
        /// With table: `is` is for this column of each of these rows.
        column: Option<At<String>>;
        /// With flow: packets lost.
        lost: Option<At<Wanted>>;
        /// With flow: packets delivered.
        delivered: Option<At<Wanted>>;
        /// With flow: one-way delay: min, mean, p50, p99, p99_9 or max.
        delay_us: Option<Table<DelayText, At<Wanted>>>;
        /// With flow: payload received per time.
        throughput_mbps: Option<At<Wanted>>;
        /// With flow: only packets that took this way: direct, routed or shortcut; default: all.
        phase: Option<At<PhaseText>>;
        /// With host or router: an ELAN, Classical IP subnet or line that it is on.
        elan: Option<At<String>>;
        /// With host or router: its switch.
        on: Option<At<String>>;
        /// With run: the host.
        r#in: Option<At<String>>;
        /// With run: exit code; default 0.
        exit: u64, 0..=255;
        /// With run: words that the command prints.
        prints: Option<At<String>>;
        /// In a running lab: how far numbers may be off. Without it, delay and throughput there are warnings.
        tolerance: Option<At<Probability>>;
        /// Name in the report; default: what is checked.
        title: Option<At<String>>;
        /// Name of a stage. Where a check of a stage fails, later stages are not judged.
        stage: Option<At<String>>;
        /// Points if it passes; default 1, or 0 with level warning.
        points: u64, 0..=1000;
        /// required, or warning: its failure is told, and fails nothing.
        level: LevelText = "required";
        /// Words for the report if it passes.
        pass: Option<At<String>>;
        /// Words for the report if it fails, in place of what was found and wanted.
        fail: Option<At<String>>;
    }
}

words!(
    /// Parts of a lab that can be counted.
    PartText(Part) {
        "switches" = Part::Switches, "hosts" = Part::Hosts, "routers" = Part::Routers, "links" = Part::Links,
        "elans" = Part::Elans, "pvcs" = Part::Pvcs, "traffic" = Part::Traffic, "faults" = Part::Faults
    }
);
words!(
    /// A value of a distribution of delays.
    DelayText(Delay) {
        "min" = Delay::Min, "mean" = Delay::Mean, "p50" = Delay::P50, "p99" = Delay::P99, "p99_9" = Delay::P999,
        "max" = Delay::Max
    }
);
words!(
    /// The way of packets.
    PhaseText(Phase) { "direct" = Phase::Direct, "routed" = Phase::Routed, "shortcut" = Phase::Shortcut }
);
words!(
    /// The weight of a check.
    LevelText(Level) { "required" = Level::Required, "warning" = Level::Warning }
);

/// Name of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ColumnName(pub(crate) String);

impl FromText for ColumnName {
    fn from_text(text: &str) -> Result<Self, String> {
        String::from_text(text).map(Self)
    }
}

inline_schema!(ColumnName, { "type": "string" });

impl FromText for Wanted {
    fn from_text(text: &str) -> Result<Self, String> {
        let text = String::from_text(text)?;
        text.parse()
    }
}

inline_schema!(Wanted, {
    "type": ["string", "number", "boolean"],
    "description": "a number, a comparison, a range or words",
    "examples": [3, "<100", ">=2", "10..20", "35.3 +- 2%", "open"]
});
