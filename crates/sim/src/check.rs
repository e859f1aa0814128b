//! Checks of a lab in virtual time.
//!
//! A first run gives the results, messages and shortcuts of the lab as it is. A second one has echo requests for the
//! checks of reach, one a second from the start, so that these change nothing of what the first one shows. Either is
//! left out if no check needs it.

use crate::run::{LabRun, Watcher};
use aerostat_lab::checks::{Check, Evidence, Judged, Seen, Watch, What, judge};
use aerostat_lab::event::Names;
use aerostat_lab::ladder::Message;
use aerostat_lab::model::{Flow, FlowKind, GivenRate, NodeId, SendRate};
use aerostat_lab::report::RunReport;
use aerostat_lab::results::{self, Document, Time};
use aerostat_lab::{Checked, Event, Lab, settings, stream};
use aerostat_node::rate::PacketRate;
use aerostat_proto::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};

/// Octets of an echo request, as those of a ping of a lab file.
const SIZE: usize = 56;

/// The verdicts about a lab.
#[derive(Debug)]
pub struct Verdicts<'a> {
    /// All checks of the lab, in their order.
    pub judged: Vec<Judged<'a>>,
    /// True if the run was ended early: the verdicts are about what had happened by then.
    pub interrupted: bool,
}

/// Runs a lab and judges it by its checks; `interrupted` is asked time and again whether to end the run.
#[must_use]
pub fn check<'a>(checked: &'a Checked, interrupted: &dyn Fn() -> bool) -> Verdicts<'a> {
    let (lab, checks) = (&checked.lab, checked.checks.as_slice());
    let mut watching = Watching {
        watch: Watch::new(checks),
        names: Names::new(lab),
        interrupted,
    };
    let report = checks
        .iter()
        .any(needs_run)
        .then(|| run(lab, &mut watching));
    let mut seen = watching.watch.seen();
    seen.extend(reached(lab, checks, interrupted));
    let document = report.map(|report| Document::new(checked, &[], Time::Virtual, &report));
    let settings = match &document {
        Some(document) => document.head().get("settings").cloned().unwrap_or_default(),
        None => settings::settings(lab, Instant::ZERO + lab.end()),
    };
    let rows = |info| {
        let document = document.as_ref().ok_or("the lab has not run")?;
        Ok(results::rows_of(document, info))
    };
    let evidence = Evidence {
        lab,
        answers: &checked.answers,
        real: false,
        rows: &rows,
        settings: &settings,
        seen: &seen,
    };
    Verdicts {
        judged: judge(checks, &evidence),
        interrupted: interrupted(),
    }
}

/// True if a check is about what happens in a run without further echo requests.
const fn needs_run(check: &Check) -> bool {
    match check.what {
        What::Flow { .. } | What::Table { .. } | What::Message { .. } | What::Shortcut { .. } => {
            true
        }
        What::Reach { .. }
        | What::Run { .. }
        | What::Station { .. }
        | What::Link(_)
        | What::Count(..)
        | What::Setting(..)
        | What::Answer(..) => false,
    }
}

/// Runs the lab to its end.
fn run(lab: &Lab, watching: &mut Watching<'_, '_>) -> RunReport {
    let shortcuts = watching.watch.wants_shortcuts();
    let mut running = LabRun::new(lab, watching);
    if shortcuts {
        let mut options = stream::Options::default();
        options.bounds.messages = 0;
        running.record_events(options);
    }
    running.start();
    running.run_to_end();
    // Nothing is written, so nothing of it can fail.
    let (mut report, _) = running.finish_both();
    if let Some(events) = report.events.take() {
        events.lines().for_each(|line| watching.watch.line(line));
    }
    report
}

/// Echo requests that were answered in time, by the number of the check. Ends that the lab does not have get no
/// requests.
fn reached(lab: &Lab, checks: &[Check], interrupted: &dyn Fn() -> bool) -> BTreeMap<usize, Seen> {
    let mut probed = lab.clone();
    let mut wanted: Vec<(usize, Option<usize>, Duration)> = Vec::new();
    let mut seen = BTreeMap::new();
    for (number, check) in checks.iter().enumerate() {
        let What::Reach { ends, within, .. } = &check.what else {
            continue;
        };
        // A name that the lab does not have is told by the judge.
        let silent = ends.iter().find(|name| is_silent(lab, name));
        if let Some(name) = silent {
            let why = format!("{name} is no host with an IP address");
            seen.insert(number, Seen::Unknown(why));
            continue;
        }
        let flow = probe(lab, number, ends);
        let place = flow.is_some().then_some(probed.traffic.len());
        probed.traffic.extend(flow);
        wanted.push((number, place, *within));
    }
    let times: BTreeSet<Duration> = wanted.iter().map(|(_, _, within)| *within).collect();
    if times.is_empty() {
        return seen;
    }
    let mut quiet = Quiet(interrupted);
    let mut running = LabRun::new(&probed, &mut quiet);
    running.start();
    for time in times {
        running.run_until(Instant::ZERO + time);
        let answered = running.answered();
        for (number, place, within) in &wanted {
            if *within == time {
                let count = place.and_then(|place| answered.get(place).copied());
                seen.insert(*number, Seen::Count(count.unwrap_or_default()));
            }
        }
    }
    seen
}

/// Echo requests from one host to another, one a second; `None` if the lab does not have them.
fn probe(lab: &Lab, number: usize, ends: &[String; 2]) -> Option<Flow> {
    let [from, to] = ends.each_ref().map(|name| find(lab, name));
    let (from, to) = (from?, to?);
    let rate = GivenRate::Packets(1.0);
    let packets: PacketRate = rate.packets(SIZE)?;
    Some(Flow {
        // No flow of a lab file has a blank in its name.
        name: format!("check {number}"),
        from: from.0,
        to: to.0,
        segment: [from.1, to.1],
        over: None,
        destination: lab.ip_of(to)?,
        kind: FlowKind::Ping {
            size: SIZE,
            rate: SendRate {
                given: rate,
                packets,
            },
        },
        port: None,
        write: None,
        octets: None,
        ticks: None,
        load: None,
        group: None,
        voice: false,
        series: false,
        start: Duration::ZERO,
        waits: false,
        duration: None,
        expect: None,
    })
}

/// A host, or a station behind a bridge.
fn find(lab: &Lab, name: &str) -> Option<(NodeId, Option<usize>)> {
    lab.hosts().find_map(|(id, node, host)| {
        if node.name == name {
            return Some((id, None));
        }
        let mut stations = host.bridge.iter();
        let place = stations.position(|station| station.name == name)?;
        Some((id, Some(place)))
    })
}

/// True for a node of the lab that cannot send or answer an echo request here.
fn is_silent(lab: &Lab, name: &str) -> bool {
    let place = find(lab, name);
    let silent = place.is_none_or(|place| lab.ip_of(place).is_none());
    silent && lab.find(name).is_some()
}

/// Counts messages and shortcuts.
struct Watching<'a, 'b> {
    watch: Watch<'a>,
    names: Names,
    interrupted: &'b dyn Fn() -> bool,
}

impl Watcher for Watching<'_, '_> {
    fn event(&mut self, event: &Event) {
        self.watch.step(&self.names, event);
    }
    fn interrupted(&self) -> bool {
        (self.interrupted)()
    }
    fn wants_messages(&self) -> bool {
        self.watch.wants_messages()
    }
    fn message(&mut self, message: &Message) {
        self.watch.message(message);
    }
}

/// Hears nothing.
struct Quiet<'a>(&'a dyn Fn() -> bool);

impl Watcher for Quiet<'_> {
    fn event(&mut self, _event: &Event) {}
    fn interrupted(&self) -> bool {
        (self.0)()
    }
}
