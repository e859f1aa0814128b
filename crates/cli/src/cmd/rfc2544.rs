//! `aerostat rfc2544`: what the path of a load carries, by the size of frames.

use crate::args::{Rfc2544Args, Rfc2544Test};
use crate::cmd::run::{refuse_outside, rounded};
use crate::exit::{self, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::labs;
use crate::output::{self, Format, Rows};
use aerostat_lab::model::Share;
use aerostat_lab::{Lab, Override};
use aerostat_live::threads::crew;
use aerostat_sim::benchmark::{self, Bench, Burst, Trial};
use aerostat_wire::counted;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Name and version of the document.
const SCHEMA: &str = "aerostat.rfc2544.v1";
/// When trials send their first frame: hosts have joined their subnets by then.
const START: &str = "5s";
const TESTS: [Rfc2544Test; 3] = [
    Rfc2544Test::Throughput,
    Rfc2544Test::Loss,
    Rfc2544Test::Burst,
];

/// What a test of one size has found.
enum Found {
    Throughput(Option<Trial>),
    Loss(Vec<Trial>),
    Burst(Burst),
}

/// Which tables there are: one of throughput and bursts, and one of losses.
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
    let jobs = args.jobs.map_or_else(
        || thread::available_parallelism().map_or(1, usize::from),
        usize::from,
    );
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
    let (next, trials) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let done: Mutex<Vec<Done>> = Mutex::new(tasks.iter().map(|_| None).collect());
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
    let work = || {
        while !interrupt.has_come()
            && let number = next.fetch_add(1, Ordering::Relaxed)
            && let Some((flow, test)) = tasks.get(number)
        {
            let bench = Bench {
                lab,
                flow: *flow,
                duration: args.duration,
                steps: args.resolution,
            };
            let result = match test {
                Rfc2544Test::Throughput => bench.throughput(&watch).map(Found::Throughput),
                Rfc2544Test::Loss => bench.loss_rates(&watch).map(Found::Loss),
                Rfc2544Test::Burst => bench.back_to_back(&watch).map(Found::Burst),
            };
            let mut all = done
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            all[number] = Some(result);
        }
    };
    if let Some(error) = thread::scope(|scope| crew(scope, jobs.min(tasks.len()), &work)) {
        exit::say(format_args!("note: {error}"));
    }
    done.into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The results as tables: a row for each size, and a row for each step of the frame loss rate.
fn tables(
    args: &Rfc2544Args,
    lab: &Lab,
    flows: &[usize],
    found: &[(usize, Found)],
) -> Result<Vec<Rows>, Failure> {
    let mut sizes = Rows::new(&[
        "frame_octets",
        "units_per_frame",
        "line_fps",
        "throughput_percent",
        "throughput_fps",
        "throughput_mbps",
        "latency_min_us",
        "latency_mean_us",
        "latency_p99_us",
        "latency_max_us",
        "burst_frames",
        "burst_at_limit",
    ]);
    sizes.title = "rfc2544".into();
    let mut losses = Rows::new(&[
        "frame_octets",
        "load_percent",
        "offered",
        "delivered",
        "lost",
        "loss_percent",
        "delay_mean_us",
        "lost_by",
    ]);
    losses.title = "rfc2544_loss".into();
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
        let mut row = vec![Value::Null; sizes.columns.len()];
        row[0] = load.frame.into();
        row[1] = load.of.units(load.frame).into();
        row[2] = rounded(fps(Share::ALL)?, 3);
        for (_, found) in found.iter().filter(|(of, _)| of == flow) {
            match found {
                Found::Throughput(None) => row[3] = 0.into(),
                Found::Throughput(Some(trial)) => {
                    let rate = fps(trial.share)?;
                    row[3] = rounded(trial.share.per_cent(), 4);
                    row[4] = rounded(rate, 3);
                    row[5] = rounded(rate * load.frame as f64 * 8.0 / 1e6, 3);
                    let delay = &trial.delay;
                    let times = [delay.min_us, delay.mean_us, delay.p99_us, delay.max_us];
                    for (place, us) in (6..).zip(times) {
                        row[place] = rounded(us, 3);
                    }
                }
                Found::Burst(burst) => {
                    row[10] = burst.frames.into();
                    row[11] = burst.at_limit.into();
                }
                Found::Loss(trials) => losses.rows.extend(trials.iter().map(loss_row)),
            }
        }
        sizes.push(row);
    }
    let tables = [sizes, losses].into_iter().zip(kinds(args));
    Ok(tables
        .filter_map(|(table, wanted)| wanted.then_some(table))
        .collect())
}

fn loss_row(trial: &Trial) -> Vec<Value> {
    let places: &BTreeMap<String, u64> = &trial.lost_by;
    let places: Vec<String> = places
        .iter()
        .map(|(place, count)| format!("{place} {count}"))
        .collect();
    vec![
        trial.frame.into(),
        rounded(trial.share.per_cent(), 4),
        trial.offered.into(),
        trial.delivered.into(),
        trial.lost().into(),
        rounded(trial.loss_per_cent(), 4),
        if trial.delivered > 0 {
            rounded(trial.delay.mean_us, 3)
        } else {
            Value::Null
        },
        if places.is_empty() {
            Value::Null
        } else {
            json!(places.join(", "))
        },
    ]
}
