//! Trials after RFC 2544: throughput, latency, frame loss rate, back-to-back frames.
//!
//! **Purpose.** What does the path between two hosts carry, by the size of frames? Each trial is a run of its own of
//! the same lab in virtual time, so a trial knows nothing of those before it, and a repetition gives the same numbers.
//!
//! **Objects.** A [`Bench`] is a lab with one flow of `kind: load`, at equal intervals. A *trial* sends frames of one
//! size for some time at a share of the link, and waits two seconds for the last ones (RFC 2544 §23: at least two).
//! Before it, echo requests let hosts find each other (§23: learning frames). Flows of other kinds go on as they are;
//! other loads are left out.
//!
//! **Tests.**
//! - *Throughput* (§26.1): the highest load without a lost or refused frame, by a search that halves the interval.
//! - *Latency* (§26.2): the one-way delay at that load, from the stack of the sender to that of the receiver.
//! - *Frame loss rate* (§26.3): loads of 100 %, 90 % and so on, until two in a row lose nothing.
//! - *Back-to-back* (§26.4): the longest burst at 100 % without a loss, by a search between a frame and those of a
//!   trial.
//!
//! **Standards.** RFC 2544 §9.1 (frame sizes), §23 (trials), §26.1 to §26.4.
//!
//! **Not implemented.** §26.5 and §26.6 (system recovery, reset); bidirectional trials (§14), several ports (§16),
//! several protocols (§17) and bursts (§21); broadcast, management and routing frames and filters (§11.1 to §11.4);
//! many addresses (§12); the average of 20 or 50 repetitions, which are equal here. Numbers of sections are from
//! memory.
//!
//! **Deviations.** Trials are shorter than 60 s (§24) unless the caller asks for more. The tester is at the ends of the
//! lab, so the adapters of its hosts are part of what is measured. Latency has no subtraction of the time of a frame
//! (RFC 1242 §3.8).

use crate::run::{self, Watcher};
use aerostat_lab::Lab;
use aerostat_lab::event::Event;
use aerostat_lab::model::{Arrivals, Flow, FlowKind, GivenRate, Load, NodeKind, SendRate, Share};
use aerostat_node::distribution::Summary;
use aerostat_node::ip::clock::Clock;
use aerostat_node::ip::flow_stats::FlowReport;
use aerostat_node::rate::PacketRate;
use aerostat_proto::{Duration, Instant};
use std::collections::BTreeMap;

/// Time after the last frame in which frames may still arrive.
const REST: Duration = Duration::from_secs(2);
/// How long hosts look for each other.
const LEARNING: Duration = Duration::from_secs(1);
/// Steps of the test of the frame loss rate.
const STEPS: u64 = 10;

/// A lab, and the load that its trials send.
#[derive(Clone, Copy, Debug)]
pub struct Bench<'a> {
    /// The lab.
    pub lab: &'a Lab,
    /// Index of the flow in [`Lab::traffic`]; see [`sizes_of`].
    pub flow: usize,
    /// Length of a trial, not zero.
    pub duration: Duration,
    /// The search for the throughput tells `1 / steps` of the link apart; not zero.
    pub steps: u64,
}

/// Why there is no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The caller ended the run.
    Interrupted,
    /// The load cannot be tested; a sentence.
    Unfit(String),
    /// No echo request was answered before this trial.
    Unreachable,
    /// The sender made another number of frames than the trial has, for example because a fault stopped it.
    Short {
        /// Frames that the sender made.
        sent: u64,
        /// Frames of the trial.
        planned: u64,
    },
}

/// Result of a trial.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// Octets of a frame.
    pub frame: usize,
    /// Share of the link.
    pub share: Share,
    /// Frames that the sender made.
    pub offered: u64,
    /// Of these, frames that reached the receiver.
    pub delivered: u64,
    /// Frames that did not, by place or by the reason for which the sender's stack refused them.
    pub lost_by: BTreeMap<String, u64>,
    /// One-way delay, over all ways of the frames the one with most of them.
    pub delay: Summary,
}

/// The longest burst without a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Burst {
    /// Frames.
    pub frames: u64,
    /// True if a trial has no more frames: a longer burst was not tried.
    pub at_limit: bool,
}

impl Trial {
    /// Frames that did not arrive within the trial and its rest.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.offered.saturating_sub(self.delivered)
    }
    /// The frame loss rate in per cent (RFC 2544 §26.3).
    #[must_use]
    pub fn loss_per_cent(&self) -> f64 {
        self.lost() as f64 * 100.0 / self.offered.max(1) as f64
    }
}

/// The flows of a load with this name in the lab file: one for each size of its ladder.
///
/// # Errors
/// No flow of the lab belongs to such a load, or its frames do not come at equal intervals.
pub fn sizes_of(lab: &Lab, name: &str) -> Result<Vec<usize>, Failure> {
    let own = |load: &Load| load.name == name;
    let of_load = lab.traffic.iter().enumerate();
    let flows: Vec<usize> = of_load
        .filter(|(_, flow)| flow.load.as_ref().is_some_and(own))
        .map(|(index, _)| index)
        .collect();
    let Some(load) = flows
        .first()
        .and_then(|first| lab.traffic[*first].load.as_ref())
    else {
        return Err(Failure::Unfit(format!(
            "the lab has no traffic of kind load called '{name}'"
        )));
    };
    match load.arrivals {
        Arrivals::Periodic => Ok(flows),
        _ => Err(Failure::Unfit(format!(
            "trials send at equal intervals, and the arrivals of '{name}' are '{}'",
            load.arrivals.name()
        ))),
    }
}

/// Called after each trial; true ends the test.
pub type Watch<'a> = dyn Fn(Option<&Trial>) -> bool + 'a;

impl Bench<'_> {
    fn template(&self) -> Result<(&Flow, &Load), Failure> {
        let flow = self.lab.traffic.get(self.flow);
        let found = flow.and_then(|flow| Some((flow, flow.load.as_ref()?)));
        found.ok_or_else(|| Failure::Unfit("this flow is no load".to_owned()))
    }

    /// Frames per second at this share, exactly.
    ///
    /// # Errors
    /// The flow is no load, or the rate is outside the range of rates.
    pub fn rate(&self, share: Share) -> Result<PacketRate, Failure> {
        let (_, load) = self.template()?;
        let rate = load.of.frames(load.frame, share);
        rate.ok_or_else(|| Failure::Unfit("such frames would be too few, or too many".to_owned()))
    }

    /// One trial at a share of the link for some time.
    ///
    /// # Errors
    /// See [`Failure`].
    pub fn trial(
        &self,
        share: Share,
        duration: Duration,
        watch: &Watch<'_>,
    ) -> Result<Trial, Failure> {
        let (template, load) = self.template()?;
        let packets = self.rate(share)?;
        let mut lab = self.lab.clone();
        let mut flow = template.clone();
        if let FlowKind::Udp { rate, .. } = &mut flow.kind {
            rate.packets = packets;
        }
        flow.duration = Some(duration);
        (flow.waits, flow.expect) = (false, None);
        flow.start = flow.start.max(LEARNING * 2);
        lab.until = Some(end(&lab, &flow) - Instant::ZERO + REST);
        let learning = learning(&flow).ok_or(Failure::Unreachable)?;
        let planned = packets.first_at(duration);
        // Other loads, also other sizes of the ladder, are for trials of their own.
        lab.traffic.retain(|other| other.load.is_none());
        let index = lab.traffic.len();
        lab.traffic.extend([flow, learning]);
        let mut watcher = Stop(watch);
        // Without captures nothing is written that could fail.
        let report = run::run(&lab, None, &mut watcher).map_err(|_| Failure::Interrupted)?;
        if watch(None) {
            return Err(Failure::Interrupted);
        }
        let (flow, learned) = (&report.flows[index], &report.flows[index + 1]);
        if learned.sum(|path| path.round_trip.count) == 0 {
            return Err(Failure::Unreachable);
        }
        let most = flow.paths.iter().max_by_key(|path| path.received_packets);
        let trial = Trial {
            frame: load.frame,
            share,
            offered: flow.sum(|path| path.offered),
            delivered: flow.sum(|path| path.received_packets),
            lost_by: lost_by(&lab, flow),
            delay: most.map(|path| path.delay).unwrap_or_default(),
        };
        if trial.offered != planned {
            return Err(Failure::Short {
                sent: trial.offered,
                planned,
            });
        }
        match watch(Some(&trial)) {
            true => Err(Failure::Interrupted),
            false => Ok(trial),
        }
    }

    /// The trial with the highest load that lost nothing; `None` if each load that was tried lost something.
    ///
    /// # Errors
    /// See [`Failure`].
    pub fn throughput(&self, watch: &Watch<'_>) -> Result<Option<Trial>, Failure> {
        let at = |step| {
            let share = Share {
                numerator: step,
                denominator: self.steps,
            };
            self.trial(share, self.duration, watch)
        };
        let full = at(self.steps)?;
        if full.lost() == 0 {
            return Ok(Some(full));
        }
        let mut best = None;
        let (mut low, mut high) = (0, self.steps);
        while high - low > 1 {
            let middle = u64::midpoint(low, high);
            let trial = at(middle)?;
            match trial.lost() {
                0 => (low, best) = (middle, Some(trial)),
                _ => high = middle,
            }
        }
        Ok(best)
    }

    /// Trials at 100 %, 90 % and so on, until two in a row lose nothing.
    ///
    /// # Errors
    /// See [`Failure`].
    pub fn loss_rates(&self, watch: &Watch<'_>) -> Result<Vec<Trial>, Failure> {
        let mut trials: Vec<Trial> = Vec::new();
        for step in (1..=STEPS).rev() {
            let share = Share {
                numerator: step,
                denominator: STEPS,
            };
            trials.push(self.trial(share, self.duration, watch)?);
            let last: Vec<u64> = trials.iter().rev().take(2).map(Trial::lost).collect();
            if last == [0, 0] {
                break;
            }
        }
        Ok(trials)
    }

    /// The longest burst at 100 % that loses nothing.
    ///
    /// # Errors
    /// See [`Failure`].
    pub fn back_to_back(&self, watch: &Watch<'_>) -> Result<Burst, Failure> {
        let rate = self.rate(Share::ALL)?;
        let whole = |frames: u64| -> Result<bool, Failure> {
            // The last frame is due before the end, and the next one is not: times are rounded down to a nanosecond.
            let time = rate.after(frames - 1) + Duration::from_nanos(1);
            Ok(self.trial(Share::ALL, time, watch)?.lost() == 0)
        };
        let limit = rate.first_at(self.duration).max(1);
        if whole(limit)? {
            return Ok(Burst {
                frames: limit,
                at_limit: true,
            });
        }
        let (mut low, mut high) = (0, limit);
        while high - low > 1 {
            let middle = u64::midpoint(low, high);
            match whole(middle)? {
                true => low = middle,
                false => high = middle,
            }
        }
        Ok(Burst {
            frames: low,
            at_limit: false,
        })
    }
}

/// Packets of a flow that did not arrive, by place or by the reason for which the sender's stack refused them.
fn lost_by(lab: &Lab, flow: &FlowReport) -> BTreeMap<String, u64> {
    let mut lost_by: BTreeMap<String, u64> = BTreeMap::new();
    for path in &flow.paths {
        for (place, packets) in &path.lost_by {
            *lost_by.entry(lab.place(place)).or_default() += packets;
        }
        for (why, packets) in &path.refused {
            *lost_by.entry(format!("refused ({why})")).or_default() += packets;
        }
    }
    lost_by
}

/// When a flow ends by the clock of the lab: its sender goes by its own clock.
fn end(lab: &Lab, flow: &Flow) -> Instant {
    let clock = match &lab.node(flow.from).kind {
        NodeKind::Host(host) if flow.segment[0].is_none() => host.clock.unwrap_or_default(),
        _ => Clock::default(),
    };
    let local = clock.start(Instant::ZERO + flow.start);
    clock.of_lab(local + flow.duration.unwrap_or_default())
}

/// Echo requests between the ends of a flow before it starts.
fn learning(flow: &Flow) -> Option<Flow> {
    let mut learning = flow.clone();
    learning.name = format!("{}-learning", flow.name);
    let packets = PacketRate::every(LEARNING / 20)?;
    let given = GivenRate::Packets(20.0);
    learning.kind = FlowKind::Ping {
        size: 56,
        rate: SendRate { given, packets },
    };
    learning.start = flow.start - LEARNING * 2;
    learning.duration = Some(LEARNING);
    (learning.load, learning.ticks, learning.group, learning.port) = (None, None, None, None);
    Some(learning)
}

/// Ends a run when the caller says so.
struct Stop<'a>(&'a Watch<'a>);

impl Watcher for Stop<'_> {
    fn event(&mut self, _event: &Event) {}
    fn interrupted(&self) -> bool {
        (self.0)(None)
    }
}
