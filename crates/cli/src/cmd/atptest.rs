//! `aerostat atptest`: the tests of ATP's report, beside its printed values; in virtual time, and in real time
//! (`live.rs`).

mod live;

use crate::args::{AtptestArgs, AtptestProfile, AtptestTest};
use crate::exit::{self, Exit, Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::output::{self, Rows};
use aerostat_lab::results::rounded;
use aerostat_node::inspect::{Flag, Name};
use aerostat_node::rows;
use aerostat_proto::Duration;
use aerostat_proto::atp::{Amount, Counters, Profile};
use aerostat_sim::atptest::{self, Measured, Transfer};
use aerostat_wire::counted;

/// Name and version of the document.
const SCHEMA: &str = "aerostat.atptest.v1";
/// Octets of a packet: those of Classical IP, and those of the test of correctness.
const MTU: u16 = 9180;
const SMALL_MTU: u16 = 10;

/// Printed values of the report for a transfer: the octets, and the lowest and the highest value.
type Printed = (u64, f64, f64);

/// Table 1: Mbit/s.
const TABLE_1: [Printed; 7] = [
    (912_345, 0.055942, 0.055942),
    (1_234_567, 0.068627, 0.068627),
    (1_567_892, 0.055779, 0.055779),
    (1_876_543, 0.056277, 0.056277),
    (2_000_001, 0.069401, 0.069401),
    (2_299_999, 0.055843, 0.055843),
    (2_456_789, 0.055742, 0.055742),
];
/// Table 2: Mbit/s of ATP.
const TABLE_2: [Printed; 8] = [
    (1 << 20, 73.05, 76.103),
    (2 << 20, 101.19, 106.89),
    (4 << 20, 105.60, 109.19),
    (8 << 20, 103.48, 105.77),
    (16 << 20, 103.82, 107.58),
    (32 << 20, 105.96, 107.52),
    (64 << 20, 94.57, 96.56),
    (80 << 20, 81.31, 87.51),
];
/// Table 3: microseconds.
const TABLE_3: [Printed; 9] = [
    (1000, 1540.0, 1840.0),
    (2000, 1750.0, 1830.0),
    (3000, 1810.0, 1830.0),
    (4000, 1540.0, 1630.0),
    (5000, 2000.0, 2110.0),
    (6000, 1950.0, 2100.0),
    (7000, 1670.0, 1700.0),
    (8000, 2170.0, 2220.0),
    (9000, 2270.0, 2350.0),
];

impl AtptestTest {
    const fn printed(self) -> &'static [Printed] {
        match self {
            Self::Throughput => &TABLE_2,
            Self::Latency => &TABLE_3,
            Self::Correctness => &TABLE_1,
        }
    }
    const fn mtu(self) -> u16 {
        match self {
            Self::Throughput | Self::Latency => MTU,
            Self::Correctness => SMALL_MTU,
        }
    }
}

impl AtptestProfile {
    const fn rules(self) -> Profile {
        match self {
            Self::Report => Profile::Report,
            Self::Adaptive => Profile::Adaptive,
        }
    }
}

/// A transfer of a test.
struct Task {
    test: AtptestTest,
    profile: AtptestProfile,
    transfer: Transfer,
}

/// Result of a transfer, on whatever clock.
struct Found {
    /// Counters of the sender and of the receiver.
    near: Counters,
    far: Counters,
    /// Octets that the receiver has received, on its clock.
    received: Amount,
    /// On the sender's clock: from the first message given to ATP to the last one that came back.
    turn: Duration,
    correct: bool,
}

impl From<Measured> for Found {
    fn from(measured: Measured) -> Self {
        let [near, far] = &measured.ends;
        Self {
            near: near.counters,
            far: far.counters,
            received: far.received,
            turn: measured.latency(),
            correct: measured.correct,
        }
    }
}

/// How transfers are done; `None`: interrupted.
type Way = dyn Fn(&Task, &Interrupt) -> Result<Option<Found>, Failure>;

/// Runs all transfers, one after the other.
pub(crate) fn run(args: &AtptestArgs) -> Outcome {
    if let Some(address) = &args.serve {
        return live::serve(address);
    }
    match live::sender(args)? {
        Some(sender) => run_by(args, &move |task, interrupt| sender.run(task, interrupt)),
        None => run_by(args, &in_virtual_time),
    }
}

fn in_virtual_time(task: &Task, interrupt: &Interrupt) -> Result<Option<Found>, Failure> {
    match task.transfer.run(&|| interrupt.has_come()) {
        Ok(found) => Ok(Some(found.into())),
        Err(atptest::Failure::Interrupted) => Ok(None),
        Err(why) => Err(told(&why)),
    }
}

fn run_by(args: &AtptestArgs, way: &Way) -> Outcome {
    let tasks = tasks(args);
    let interrupt = Interrupt::catch()?;
    let mut rows = Vec::new();
    let (mut wrong, mut done) = (0, 0);
    let virtual_time = args.between.is_empty() && args.connect.is_none();
    for task in &tasks {
        let Some(found) = way(task, &interrupt)? else {
            break;
        };
        done += 1;
        wrong += usize::from(!found.correct);
        if !args.quiet {
            let Transfer { octets, loss, .. } = task.transfer;
            let (test, profile, all) = (task.test.name(), task.profile.name(), tasks.len());
            let loss = match virtual_time {
                true => format!(", cell loss {loss}"),
                false => String::new(),
            };
            let end = if found.correct {
                ""
            } else {
                ": NOT all octets arrived as they were sent"
            };
            exit::say(format_args!(
                "{done} of {all}: {test}, {profile}, {}{loss}{end}",
                counted(octets, "octet", "octets")
            ));
        }
        rows.push(task.row(&found, virtual_time));
    }
    output::write(args.output.form(), SCHEMA, &[Rows::of(rows)])?;
    let missing = tasks.len() - done;
    if missing > 0 {
        exit::say(format_args!(
            "warning: interrupted; {missing} of {} not done",
            counted(tasks.len(), "transfer is", "transfers are")
        ));
    }
    if wrong > 0 {
        exit::say(format_args!(
            "warning: {wrong} of {} not correct",
            counted(done, "transfer is", "transfers are")
        ));
    }
    Ok(match missing + wrong {
        0 => Exit::Ok,
        _ => Exit::Warnings,
    })
}

fn tasks(args: &AtptestArgs) -> Vec<Task> {
    let mut tasks = Vec::new();
    for test in &args.test {
        let octets: Vec<u64> = match args.octets.is_empty() {
            true => test.printed().iter().map(|(octets, ..)| *octets).collect(),
            false => args.octets.clone(),
        };
        for profile in &args.profile {
            for loss in &args.loss {
                tasks.extend(octets.iter().map(|octets| Task {
                    test: *test,
                    profile: *profile,
                    transfer: Transfer {
                        profile: profile.rules(),
                        mtu: args.mtu.unwrap_or(test.mtu()).into(),
                        octets: *octets,
                        message: None,
                        echo: *test == AtptestTest::Latency,
                        loss: *loss,
                        seed: args.seed,
                    },
                }));
            }
        }
    }
    tasks
}

fn told(why: &atptest::Failure) -> Failure {
    match why {
        atptest::Failure::Unfit(text) => Failure::usage(text.clone()),
        atptest::Failure::Interrupted => Failure::failed("interrupted"),
        atptest::Failure::Endless => {
            Failure::failed("a transfer did not end within four hours of virtual time")
                .hint("a lower --loss, or fewer --octets")
        }
    }
}

rows! {
    /// One row for each transfer.
    struct TransferRow: "atptest" {
        /// Name of the test.
        test: Name,
        /// Rules of ATP.
        profile: Name,
        /// Octets of the transfer.
        octets: u64,
        /// Cell loss ratio of the link, in virtual time.
        loss: Option<f64>,
        /// Rate of the transfer.
        mbps: Option<f64>,
        /// Time until the octets were back.
        latency_us: Option<f64>,
        /// Lowest value that the report prints for it.
        report_min: Option<f64>,
        /// Highest value that the report prints.
        report_max: Option<f64>,
        /// True if all octets arrived as they were sent.
        correct: Flag,
        /// Packets sent for the first time.
        packets: u64,
        /// Packets sent again.
        repeated: u64,
        /// NAKs sent.
        naks: u64,
        /// Expired retransmission timers.
        timeouts: u64,
        /// Octets of a packet.
        mtu: usize,
    }
}

impl Task {
    fn row(&self, found: &Found, virtual_time: bool) -> TransferRow {
        let Transfer {
            octets, mtu, loss, ..
        } = self.transfer;
        let latency = self.test == AtptestTest::Latency;
        let as_printed = self.profile == AtptestProfile::Report
            && loss == 0.0
            && mtu == usize::from(self.test.mtu());
        let mut printed = self.test.printed().iter().filter(|_| as_printed);
        let printed = printed.find(|(of, ..)| *of == octets);
        let Found { near, far, .. } = found;
        let mbps = found.received.mbps().filter(|_| !latency);
        let micros = found.turn.as_secs_f64() * 1e6;
        let value = |value: Option<f64>| value.map(|value| rounded(value, 3));
        let back = if latency { far.packets_sent } else { 0 };
        TransferRow {
            test: self.test.name().into(),
            profile: self.profile.name().into(),
            octets,
            loss: virtual_time.then_some(loss),
            mbps: value(mbps),
            latency_us: value(latency.then_some(micros)),
            report_min: printed.map(|(_, low, _)| rounded(*low, 6)),
            report_max: printed.map(|(.., high)| rounded(*high, 6)),
            correct: Flag(found.correct),
            packets: near.packets_sent + back,
            repeated: near.packets_repeated + far.packets_repeated,
            naks: near.naks_sent + far.naks_sent,
            timeouts: near.timeouts + far.timeouts,
            mtu,
        }
    }
}
