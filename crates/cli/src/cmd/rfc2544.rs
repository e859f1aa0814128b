//! `aerostat rfc2544`: what the path of a load carries, by the size of frames.

use crate::args::{Rfc2544Args, Rfc2544Test};
use crate::cmd::pool::Pool;
use crate::cmd::run::many::processors;
use crate::cmd::run::refuse_outside;
use crate::exit::{self, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::labs;
use crate::output::{self, Format, Rows};
use aerostat_lab::model::Share;
use aerostat_lab::results::rounded;
use aerostat_lab::{Lab, Override};
use aerostat_node::inspect::Flag;
use aerostat_node::rows;
use aerostat_sim::benchmark::{self, Bench, Burst, Trial};
use aerostat_wire::counted;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Name and version of the document.
const SCHEMA: &str = "aerostat.rfc2544.v1";
/// When trials send their first frame: hosts have joined their subnets by then.
const START: &str = "5s";
const TESTS: [Rfc2544Test; 3] = [
    Rfc2544Test::Throughput,
    Rfc2544Test::Loss,
    Rfc2544Test::Burst,
];

rows! {
    /// One row for each size of frames: throughput, latency at it, and the longest burst.
    struct SizeRow: "rfc2544" {
        /// Octets of a frame.
        frame_octets: usize,
        /// Cells or octets of the line for each frame.
        units_per_frame: usize,
        /// Frames per second that the line carries.
        line_fps: f64,
        /// Throughput as a share of that; 0 if frames were lost at every load.
        throughput_percent: Option<f64>,
        /// Throughput, frames per second.
        throughput_fps: Option<f64>,
        /// Throughput, Mbit/s.
        throughput_mbps: Option<f64>,
        /// Smallest latency at the throughput.
        latency_min_us: Option<f64>,
        /// Mean latency.
        latency_mean_us: Option<f64>,
        /// 99th percentile of the latency.
        latency_p99_us: Option<f64>,
        /// Largest latency.
        latency_max_us: Option<f64>,
        /// Frames of the longest burst without a loss.
        burst_frames: Option<u64>,
        /// True if longer bursts were not tried.
        burst_at_limit: Option<Flag>,
    }

    /// One row for each load of a test of losses.
    struct LoadRow: "rfc2544_loss" for (trial: &Trial) {
        /// Octets of a frame.
        frame_octets: usize = trial.frame,
        /// Load as a share of the line.
        load_percent: f64 = rounded(trial.share.per_cent(), 4),
        /// Frames sent.
        offered: u64 = trial.offered,
        /// Frames received.
        delivered: u64 = trial.delivered,
        /// Frames lost.
        lost: u64 = trial.lost(),
        /// Frames lost as a share of those sent.
        loss_percent: f64 = rounded(trial.loss_per_cent(), 4),
        /// Mean delay.
        delay_mean_us: Option<f64> = (trial.delivered > 0).then(|| rounded(trial.delay.mean_us, 3)),
        /// Places of losses, in words.
        lost_by: Option<String> = places(trial),
    }
}

/// Finding of a test of one size.
enum Found {
    Throughput(Option<Trial>),
    Loss(Vec<Trial>),
    Burst(Burst),
}

/// True for the table of throughput and bursts, and for that of losses, if it is there.
fn kinds(args: &Rfc2544Args) -> [bool; 2] {
    let wanted = |test: Rfc2544Test| args.test.is_empty() || args.test.contains(&test);
    [
        wanted(Rfc2544Test::Throughput) || wanted(Rfc2544Test::Burst),
        wanted(Rfc2544Test::Loss),
    ]
}

/// Runs all tests of all sizes.
pub(crate) fn run(args: &Rfc2544Args) -> Outcome {
    if args.output.output == Format::Csv && kinds(args) == [true; 2] {
        let text = "CSV is one table, and these are rfc2544, rfc2544_loss";
        return Err(Failure::usage(text).hint("--test throughput,burst or --test loss"));
    }
    let name = name_of(args)?;
    let checked = labs::read_for_run(&args.lab.lab, &overrides(args, &name))?;
    let lab = &checked.lab;
    refuse_outside(lab)?;
    let flows = benchmark::sizes_of(lab, &name).map_err(told)?;
    let tests = TESTS
        .iter()
        .filter(|test| args.test.is_empty() || args.test.contains(test));
    let tasks: Vec<(usize, Rfc2544Test)> = tests
        .flat_map(|test| flows.iter().map(|flow| (*flow, *test)))
        .collect();
    let jobs = args.jobs.map_or_else(processors, usize::from);
    let interrupt = Interrupt::catch()?;
    let done = all(args, lab, &tasks, jobs, &interrupt);
    let (mut found, mut failed) = (Vec::new(), None);
    for ((flow, _), result) in tasks.iter().zip(done) {
        match result {
            Some(Ok(one)) => found.push((*flow, one)),
            None | Some(Err(benchmark::Failure::Interrupted)) => {}
            Some(Err(why)) => failed = failed.or(Some(why)),
        }
    }
    if let Some(why) = failed {
        return Err(told(why));
    }
    output::write(
        args.output.form(),
        SCHEMA,
        &tables(args, lab, &flows, &found)?,
    )?;
    let missing = tasks.len() - found.len();
    if missing > 0 {
        exit::say(format_args!(
            "warning: interrupted; {missing} of {} not done",
            counted(tasks.len(), "test is", "tests are")
        ));
    }
    let nothing = found
        .iter()
        .any(|(_, found)| matches!(found, Found::Throughput(None)));
    if nothing {
        exit::say(
            "warning: some size of frames has lost frames at every load that was tried: look at --resolution, and at the test 'loss'",
        );
    }
    Ok(labs::done(&checked).with_warnings(missing > 0 || nothing))
}

/// The name of the flow.
fn name_of(args: &Rfc2544Args) -> Result<String, Failure> {
    if args.lab.lab.as_os_str() == "-" {
        let missing = || Failure::usage("a lab on standard input needs --traffic NAME");
        return args.traffic.clone().ok_or_else(missing);
    }
    let lab = labs::read(&args.lab)?.lab;
    let mut names: Vec<&str> = lab
        .traffic
        .iter()
        .filter_map(|flow| Some(flow.load.as_ref()?.name.as_str()))
        .collect();
    names.dedup();
    if let Some(name) = &args.traffic
        && !names.contains(&name.as_str())
    {
        return Err(
            Failure::usage(format!("the lab has no traffic '{name}' of kind load"))
                .hint(format!("of kind load: {}", names.join(", "))),
        );
    }
    match (&args.traffic, &names[..]) {
        (Some(name), _) => Ok(name.clone()),
        (None, [only]) => Ok((*only).to_owned()),
        (None, []) => Err(Failure::usage("the lab has no traffic of kind load").hint(
            "for example: { name: test, from: a, to: b, kind: load, load: 100%, frames: 64 }",
        )),
        _ => Err(Failure::usage("the lab has several flows of kind load")
            .hint(format!("--traffic NAME: {}", names.join(", ")))),
    }
}

/// The options as changes of the file, so that they are checked and reported like it.
fn overrides(args: &Rfc2544Args, name: &str) -> Vec<Override> {
    let mut overrides = args.lab.set.clone();
    let mut set = |option, key: &str, value: String| {
        let path = format!("traffic.{name}.{key}");
        overrides.push(Override::of(option, &path, &value));
    };
    let duration = format!("{}ns", args.duration.as_nanos());
    set("--duration", "duration", duration);
    set("--duration", "start", START.to_owned());
    if !args.frames.is_empty() {
        let sizes: Vec<String> = args.frames.iter().map(u64::to_string).collect();
        set("--frames", "frames", format!("[{}]", sizes.join(", ")));
    }
    overrides
}

fn told(why: benchmark::Failure) -> Failure {
    match why {
        benchmark::Failure::Interrupted => Failure::failed("interrupted"),
        benchmark::Failure::Unfit(text) => Failure::usage(text),
        benchmark::Failure::Unreachable => {
            Failure::failed("the hosts of the load did not reach each other before a trial")
                .hint("'aerostat run' of the lab with a ping between them tells why")
        }
        benchmark::Failure::Short { sent, planned } => {
            let sent = counted(sent, "frame", "frames");
            Failure::failed(format!("a trial sent {sent} instead of {planned}"))
                .hint("the sender has to run for the whole trial: no fault of the lab may stop it")
        }
    }
}

type Done = Option<Result<Found, benchmark::Failure>>;

/// The results of all tasks, some of them at the same time; `None` for those that did not begin.
fn all(
    args: &Rfc2544Args,
    lab: &Lab,
    tasks: &[(usize, Rfc2544Test)],
    jobs: usize,
    interrupt: &Interrupt,
) -> Vec<Done> {
    let trials = AtomicUsize::new(0);
    let watch = |trial: Option<&Trial>| {
        if let Some(trial) = trial.filter(|_| !args.quiet) {
            let number = trials.fetch_add(1, Ordering::Relaxed) + 1;
            exit::say(format_args!(
                "trial {number}: {} octets at {:.4} %: {} of {} lost",
                trial.frame,
                trial.share.per_cent(),
                trial.lost(),
                counted(trial.offered, "frame", "frames")
            ));
        }
        interrupt.has_come()
    };
    let pool = Pool::new(tasks.len(), jobs).ordered(false);
    let work = |number: usize| {
        let (flow, test) = &tasks[number];
        let bench = Bench {
            lab,
            flow: *flow,
            duration: args.duration,
            steps: args.resolution,
        };
        match test {
            Rfc2544Test::Throughput => bench.throughput(&watch).map(Found::Throughput),
            Rfc2544Test::Loss => bench.loss_rates(&watch).map(Found::Loss),
            Rfc2544Test::Burst => bench.back_to_back(&watch).map(Found::Burst),
        }
    };
    let look = || {
        if interrupt.has_come() {
            pool.stop();
        }
    };
    let mut done: Vec<Done> = tasks.iter().map(|_| None).collect();
    pool.all(&work, &look, |number, found| done[number] = Some(found));
    done
}

/// The results as tables: a row for each size, and a row for each step of the frame loss rate.
fn tables(
    args: &Rfc2544Args,
    lab: &Lab,
    flows: &[usize],
    found: &[(usize, Found)],
) -> Result<Vec<Rows>, Failure> {
    let (mut sizes, mut losses) = (Vec::new(), Vec::new());
    for flow in flows {
        let Some(load) = lab.traffic.get(*flow).and_then(|flow| flow.load.as_ref()) else {
            continue;
        };
        let bench = Bench {
            lab,
            flow: *flow,
            duration: args.duration,
            steps: args.resolution,
        };
        let fps = |share: Share| -> Result<f64, Failure> {
            Ok(1e9 / bench.rate(share).map_err(told)?.mean_gap())
        };
        let mut row = SizeRow {
            frame_octets: load.frame,
            units_per_frame: load.of.units(load.frame),
            line_fps: rounded(fps(Share::ALL)?, 3),
            throughput_percent: None,
            throughput_fps: None,
            throughput_mbps: None,
            latency_min_us: None,
            latency_mean_us: None,
            latency_p99_us: None,
            latency_max_us: None,
            burst_frames: None,
            burst_at_limit: None,
        };
        for (_, found) in found.iter().filter(|(of, _)| of == flow) {
            match found {
                Found::Throughput(None) => row.throughput_percent = Some(0.0),
                Found::Throughput(Some(trial)) => {
                    let rate = fps(trial.share)?;
                    row.throughput_percent = Some(rounded(trial.share.per_cent(), 4));
                    row.throughput_fps = Some(rounded(rate, 3));
                    row.throughput_mbps = Some(rounded(rate * load.frame as f64 * 8.0 / 1e6, 3));
                    let delay = &trial.delay;
                    row.latency_min_us = Some(rounded(delay.min_us, 3));
                    row.latency_mean_us = Some(rounded(delay.mean_us, 3));
                    row.latency_p99_us = Some(rounded(delay.p99_us, 3));
                    row.latency_max_us = Some(rounded(delay.max_us, 3));
                }
                Found::Burst(burst) => {
                    row.burst_frames = Some(burst.frames);
                    row.burst_at_limit = Some(Flag(burst.at_limit));
                }
                Found::Loss(trials) => losses.extend(trials.iter().map(LoadRow::of)),
            }
        }
        sizes.push(row);
    }
    let tables = [Rows::of(sizes), Rows::of(losses)]
        .into_iter()
        .zip(kinds(args));
    Ok(tables
        .filter_map(|(table, wanted)| wanted.then_some(table))
        .collect())
}

/// Places of losses, in words.
fn places(trial: &Trial) -> Option<String> {
    let places = trial.lost_by.iter();
    let places: Vec<String> = places
        .map(|(place, count)| format!("{place} {count}"))
        .collect();
    (!places.is_empty()).then(|| places.join(", "))
}
