//! Rows in real time: the lab of a row with Linux kernels as its hosts, and streams between them.
//!
//! The model of a row stays that of virtual time. What is measured here stands beside it, in columns of its own.

mod network;
mod session;

use super::Score;
use super::catalogue::{self, Entry, Files, Parameters, Row};
use super::model::{Ran, Values, Work};
use crate::exit::{Exit, Failure};
use crate::output::Rows;
use aerostat_lab::{Checked, Override};
use aerostat_live::namespace;
use aerostat_live::streams::{Counters, first_in_line};
use aerostat_node::rows;
use indicatif::ProgressBar;
use network::Network;
use serde::Deserialize;
use session::{OneRun, PAUSE, Session, longest, streams_of};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Time for the start of a lab, about: for the time left.
const START: Duration = Duration::from_secs(4);
/// Mean time, µs, that the process of the lab may wait for a processor whenever it wants one. A packet and its
/// acknowledgement need it a few times in a round trip of some milliseconds.
const MOST_WAIT: f64 = 30.0;
/// Rows of an entry that run between Linux kernels.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Live {
    /// Names of the rows.
    pub(super) rows: Vec<String>,
    /// Keys of the lab beside those of the row.
    #[serde(default)]
    pub(super) set: BTreeMap<String, String>,
    /// Further settings `net.ipv4.NAME` of all hosts.
    #[serde(default)]
    settings: BTreeMap<String, String>,
    /// Properties of the paper's hosts that kernels do not have.
    remark: String,
}

/// Measurements of the streams of a row.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    /// Its value in each run.
    pub(super) values: Values,
    /// Counters of the kernels in all runs.
    pub(super) counters: Counters,
    /// Events of the network that were more than 20 ms late, in all runs.
    pub(super) late: u64,
    /// Mean time that the process of the lab waited for a processor, µs: the largest of all runs.
    pub(super) wait: Option<f64>,
}

impl Found {
    /// True if the machine was too busy for the lab: then the values tell of the machine.
    pub(super) fn lagged(&self) -> bool {
        self.late > 0 || self.wait.is_some_and(|wait| wait > MOST_WAIT)
    }
    /// Expirations of retransmission timers in all runs.
    pub(super) const fn timeouts(&self) -> u64 {
        self.counters.timeouts
    }
    fn add(&mut self, value: f64, run: &OneRun) {
        self.values.push(value);
        self.counters.retransmitted += run.counters.retransmitted;
        self.counters.timeouts += run.counters.timeouts;
        self.late += run.late;
        let waits = [self.wait, run.wait].into_iter().flatten();
        self.wait = waits.reduce(f64::max);
    }
}

/// All that was measured.
#[derive(Debug, Default)]
pub(super) struct Measured {
    /// Measurements of the rows, in their order; `None` for rows that do not run between kernels.
    pub(super) rows: Vec<Option<Found>>,
    /// Hosts by entry, setting and its value.
    settings: BTreeMap<[String; 3], BTreeSet<String>>,
    /// True if lab and streams had processors before other programs.
    first: bool,
}

/// How the streams run.
pub(super) struct Times<'a> {
    /// How often each row runs.
    pub(super) runs: u16,
    /// Seconds of a stream, instead of those of the lab.
    pub(super) seconds: Option<u16>,
    /// The progress in milliseconds.
    pub(super) bar: &'a ProgressBar,
}

/// A lab with all changes of rows, and the rows, by their place.
type Plan<'a> = ((&'a str, Vec<(String, String)>), Vec<usize>);

/// Refuses to start if no row runs between kernels, or this user may not make namespaces. Call it before any thread is
/// started.
///
/// # Errors
/// Wrong usage, or no privilege.
pub(super) fn check(all: &[Entry], chosen: &[&Entry]) -> Result<(), Failure> {
    let runs = |entry: &Entry| entry.rows.iter().any(|row| entry.live(row).is_some());
    if !chosen.iter().any(|entry| runs(entry)) {
        let names: Vec<&str> = all
            .iter()
            .filter(|entry| runs(entry))
            .map(|entry| &*entry.name)
            .collect();
        let text = "no row of these entries runs between Linux kernels";
        let hint = format!("entries with such rows: {}", names.join(", "));
        return Err(Failure::usage(text).hint(hint));
    }
    namespace::acquire_privilege().map_err(|error| {
        let text = format!("no privilege for kernel hosts: {error}");
        Failure::new(Exit::Privilege, text).hint("without --live, rows need no privilege")
    })
}

/// Runs the rows that are marked for it.
///
/// # Errors
/// Of labs, namespaces and sockets; [`Exit::Warnings`] after an interrupt.
pub(super) fn measure(
    work: &Work<'_>,
    rows: &[(&Entry, &Row)],
    times: &Times<'_>,
) -> Result<Measured, Failure> {
    let plans = plans(work.parameters, rows)?;
    let mut measured = Measured {
        rows: rows.iter().map(|_| None).collect(),
        settings: BTreeMap::new(),
        first: first_in_line(true),
    };
    let labs = plans
        .iter()
        .map(|((lab, changes), _)| read(work.files, lab, changes));
    let labs: Vec<(Checked, Vec<Override>)> = labs.collect::<Result<_, _>>()?;
    let mut left = Duration::ZERO;
    for (checked, _) in &labs {
        let run = longest(&streams_of(&checked.lab, times)?) + PAUSE;
        left += START + run * u32::from(times.runs);
    }
    times.bar.set_length(left.as_millis() as u64);
    for (((lab, _), members), (checked, changes)) in plans.iter().zip(&labs) {
        let Some((entry, row)) = members.first().and_then(|at| rows.get(*at)) else {
            continue;
        };
        let Some(live) = entry.live(row) else {
            continue;
        };
        let begin = times.bar.position();
        let network = Network::start(work.files.lab(lab)?, changes, work.interrupt)?;
        let mut session = Session::new(network, &checked.lab, live, times)?;
        for [host, what, value] in session.settings() {
            let key = [entry.name.clone(), what, value];
            measured.settings.entry(key).or_default().insert(host);
        }
        times.bar.set_position(begin + START.as_millis() as u64);
        for _ in 0..times.runs {
            let run = session.run(&mut || !work.interrupt.has_come())?;
            for at in members {
                let (entry, row) = rows[*at];
                let value = entry.take(row)?.of(Some(&run.results))?;
                measured.rows[*at].get_or_insert_default().add(value, &run);
            }
        }
        session.network.stop();
    }
    first_in_line(false);
    Ok(measured)
}

/// The labs that run, each of them once, with the rows that take values from it.
fn plans<'a>(
    parameters: &Parameters,
    rows: &[(&'a Entry, &'a Row)],
) -> Result<Vec<Plan<'a>>, Failure> {
    let mut plans: Vec<Plan<'a>> = Vec::new();
    for (at, (entry, row)) in rows.iter().enumerate() {
        let Some(live) = entry.live(row) else {
            continue;
        };
        // Keys of the row come last.
        let lab = entry.lab(row);
        let mut given = entry.common(lab);
        given.extend(live.set.clone());
        given.extend(row.set.clone());
        let run = (lab, catalogue::all_filled(given, parameters)?);
        match plans.iter_mut().find(|(known, _)| *known == run) {
            Some((_, members)) => members.push(at),
            None => plans.push((run, vec![at])),
        }
    }
    Ok(plans)
}

/// Checks a lab with its changes, which has a name of its own.
fn read(
    files: &Files,
    lab: &str,
    changes: &[(String, String)],
) -> Result<(Checked, Vec<Override>), Failure> {
    let name = format!("name=reproduce-{}", std::process::id());
    let changes = changes
        .iter()
        .map(|(path, value)| format!("{path}={value}"));
    let changes: Vec<Override> = changes.chain([name]).map(Override::from).collect();
    let checked = aerostat_lab::parse(lab, files.lab(lab)?, &changes);
    let checked = checked.map_err(|findings| Failure::failed(format!("{lab}: {findings}")))?;
    Ok((checked, changes))
}

rows! {
    /// One row for each setting of kernels, and for each remark about them.
    struct SettingRow: "live" {
        /// Name of the setting.
        what: String,
        /// Its value.
        value: String,
        /// Hosts that have it.
        hosts: String,
        /// Entry whose rows ran there.
        entry: String,
    }
}

impl Measured {
    /// The settings of all kernels, and what they lack, as a table.
    pub(super) fn table(&self, scored: &[Score<'_>]) -> Rows {
        let mut rows = Vec::new();
        let mut push = |cells: [&str; 4]| {
            let [what, value, hosts, entry] = cells.map(str::to_owned);
            rows.push(SettingRow {
                what,
                value,
                hosts,
                entry,
            });
        };
        let priority = match self.first {
            true => "nice -20: lab and streams before other programs",
            false => "usual",
        };
        push(["kernel", &kernel(), "", ""]);
        push(["priority", priority, "", ""]);
        let measured = scored.iter().filter(|score| score.live.is_some());
        let mut entries: Vec<&Entry> = measured.map(|score| score.entry).collect();
        entries.sort_by_key(|entry| &entry.name);
        entries.dedup_by_key(|entry| &entry.name);
        for entry in entries {
            let remark = entry.live.as_ref().map_or("", |live| &live.remark);
            push(["remark", remark, "", &entry.name]);
            let own = self.settings.iter().filter(|(key, _)| key[0] == entry.name);
            for ([_, what, value], hosts) in own {
                let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
                push([what, value, &hosts.join(", "), &entry.name]);
            }
        }
        Rows::of(rows)
    }
}

/// Name and version of the kernel of this machine.
fn kernel() -> String {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/sys/kernel/{name}"));
    let words = ["ostype", "osrelease"].map(|name| read(name).unwrap_or_default());
    words.map(|word| word.trim().to_owned()).join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_in_real_time_are_rows_of_their_entries_and_have_streams() {
        let bar = ProgressBar::hidden();
        let times = Times {
            runs: 1,
            seconds: None,
            bar: &bar,
        };
        let catalogue::Catalogue {
            entries,
            parameters,
            files,
            ..
        } = catalogue::Catalogue::own();
        let mut count = 0;
        for entry in &entries {
            let Some(live) = &entry.live else { continue };
            let rows: Vec<(&Entry, &Row)> = entry.rows.iter().map(|row| (entry, row)).collect();
            for name in &live.rows {
                let row = entry.rows.iter().find(|row| row.row == *name);
                let row = row.unwrap_or_else(|| panic!("{}: no row {name}", entry.name));
                // Their values are those of one run.
                assert!(row.minus.is_none() && row.divided_by.is_none() && row.steps.is_none());
            }
            for ((lab, changes), members) in plans(&parameters, &rows).unwrap() {
                let (checked, _) = read(&files, lab, &changes).unwrap();
                assert!(!streams_of(&checked.lab, &times).unwrap().is_empty());
                count += members.len();
            }
        }
        assert!(count >= 30, "{count}");
    }

    #[test]
    fn a_row_has_lagged_if_the_lab_waited_or_was_late() {
        let mut found = Found::default();
        assert!(!found.lagged());
        let run = |late, wait| OneRun {
            results: Ran::default(),
            counters: Counters {
                retransmitted: 2,
                timeouts: 1,
            },
            late,
            wait,
        };
        found.add(1.0, &run(0, None));
        found.add(3.0, &run(0, Some(4.0)));
        found.add(2.0, &run(0, Some(3.0)));
        assert!(!found.lagged());
        assert_eq!(found.values, [1.0, 3.0, 2.0]);
        let counters = found.counters;
        assert_eq!((counters.retransmitted, counters.timeouts), (6, 3));
        assert_eq!((found.late, found.wait), (0, Some(4.0)));
        found.add(1.0, &run(0, Some(MOST_WAIT + 1.0)));
        assert!(found.lagged());
        let mut late = Found::default();
        late.add(1.0, &run(1, Some(1.0)));
        assert!(late.lagged());
    }
}
