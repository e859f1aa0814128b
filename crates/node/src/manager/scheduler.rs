//! The scheduler of a time-sharing system of the 1990s, as far as it delays a manager.
//!
//! **Purpose.** A manager in user space shares its CPU with other programs. Black and Crosby (1993, Figure 2) measured
//! calls while shell pipelines competed with the manager: with the usual priority a call took longer the more there
//! were, and with a better one hardly so. This model is that of 4.3BSD (Leffler and others, 1989, §4.4), on which
//! their Ultrix is based.
//!
//! **Model.** All times are of the host's CPU.
//! - A clock ticks every 10 ms. The process that runs then has one more tick in its *usage*, at most 255.
//! - The *priority* of a process in user mode is 50 + usage / 4 + 2 × nice; less is better. It is computed at every
//!   fourth tick of the process that runs, and once in a second for all of them, when their usage decays: usage × 2
//!   load / (2 load + 1) + nice. The load is the number of competing programs.
//! - There are queues for four priorities each. After 100 ms the process that runs goes to the end of its queue, and
//!   the first process of the best queue runs.
//! - A process in the kernel is not interrupted: a switch waits until it comes back to user mode.
//! - A process that has slept runs as soon as the one that runs is in user mode. It keeps the CPU, by its priority of
//!   the kernel, until the next switch.
//! - A *competing* program is a shell pipeline: it always has work, in turns in the kernel and in user mode, each for a
//!   random time from 0 to twice the mean. Its processes end after [`Sharing::life`]; the next one begins with no
//!   usage, at the end of its queue.
//!
//! A message is work of two processes: the manager's, and that of the user for one of the two hand-overs that a message
//! of a user has. The user has nice 0.
//!
//! **Not implemented.** Paging, other input and output of the competing programs, processes that sleep long before they
//! wake at their own time.

use crate::random;
use aerostat_proto::{Duration, Instant};
use rand_pcg::Pcg32;
use rand_pcg::rand_core::Rng;
use std::collections::VecDeque;

/// A tick of the clock, in nanoseconds.
const TICK: u64 = 10_000_000;
/// Ticks of a slice, after which the next process of the queue runs.
const SLICE: u64 = 10;
/// Ticks of a second, after which usages decay.
const SECOND: u64 = 100;
/// Best priority in user mode of a process with nice 0 and no usage.
const USER: i32 = 50;
/// Largest usage, ticks.
const MOST_USAGE: i32 = 255;
/// A history longer than this makes no difference, since usages have decayed: nanoseconds.
const HISTORY: u64 = 20_000_000_000;

/// Programs that share the CPU with a manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sharing {
    /// Nice value of the manager: −20 (most urgent) to 19.
    pub nice: i8,
    /// Competing programs with nice 0.
    pub competing: u8,
    /// Mean time of a competing program in the kernel before it comes back to user mode.
    pub kernel: Duration,
    /// Mean time in user mode before it enters the kernel.
    pub user: Duration,
    /// CPU time after which a process of a competing program ends, and another one begins.
    pub life: Duration,
}

/// The manager, and the user of the call; competing programs follow.
const MANAGER: usize = 0;
const CALLER: usize = 1;

#[derive(Clone, Copy, Debug, Default)]
struct Process {
    nice: i32,
    usage: i32,
    priority: i32,
    /// Of a competing program: true in the kernel, and how long it stays there or in user mode.
    kernel: bool,
    stays: u64,
    /// Of a competing program: CPU time until its process ends.
    lives: u64,
}

impl Process {
    fn set_priority(&mut self) {
        self.priority = (USER + self.usage / 4 + 2 * self.nice).clamp(0, 127);
    }
    fn queue(&self) -> i32 {
        self.priority >> 2
    }
}

/// The scheduler of a host. See the documentation of this module.
#[derive(Debug)]
pub(crate) struct Scheduler {
    sharing: Sharing,
    random: Pcg32,
    /// Time of the host until which everything is decided, and ticks since then.
    now: u64,
    ticks: u64,
    processes: Vec<Process>,
    /// Processes that wait, in the order in which they came.
    ready: VecDeque<usize>,
    running: usize,
    /// True if another process may run as soon as the running one is in user mode.
    due: bool,
}

impl Scheduler {
    /// The scheduler of a host that was switched on at `now`; `None` if nothing competes.
    pub(crate) fn new(sharing: Sharing, seed: u64, now: Instant) -> Option<Box<Self>> {
        if sharing.competing == 0 {
            return None;
        }
        let first = CALLER + 1;
        let all = first + usize::from(sharing.competing);
        let mut scheduler = Self {
            sharing,
            random: random::stream(seed, "manager", "scheduler"),
            now: now.as_nanos(),
            ticks: 0,
            processes: vec![Process::default(); all],
            ready: (first + 1..all).collect(),
            running: first,
            due: false,
        };
        scheduler.processes[MANAGER].nice = i32::from(sharing.nice);
        for index in 0..all {
            scheduler.processes[index].set_priority();
            if index >= first {
                scheduler.begin_life(index);
            }
        }
        Some(Box::new(scheduler))
    }

    /// How long work takes that begins at `begins`: first that of the caller and then that of the manager, or the other
    /// way round. In picoseconds, like the work.
    pub(crate) fn takes(
        &mut self,
        begins: Instant,
        caller: u128,
        manager: u128,
        first: bool,
    ) -> u128 {
        let begins = begins.as_nanos();
        // A history that is left out does not move the ticks.
        let late = begins.saturating_sub(self.now).saturating_sub(HISTORY) / (TICK * SECOND);
        self.now += late * TICK * SECOND;
        self.ticks += late * SECOND;
        while self.now < begins {
            self.step(begins - self.now);
        }
        let mut parts = [(CALLER, caller), (MANAGER, manager)];
        if !first {
            parts.reverse();
        }
        let mut rest = 0;
        for (process, picos) in parts {
            rest += picos % 1000;
            if picos >= 1000 {
                self.serve(process, u64::try_from(picos / 1000).unwrap_or(u64::MAX));
            }
        }
        u128::from(self.now - begins) * 1000 + rest
    }

    /// A process wakes up and runs until it has had this many nanoseconds. Then the next one runs.
    fn serve(&mut self, process: usize, nanos: u64) {
        while self.processes[self.running].kernel {
            let stays = self.processes[self.running].stays;
            self.step(stays);
        }
        self.ready.push_back(self.running);
        self.running = process;
        self.processes[process].stays = nanos;
        loop {
            let mine = self.running == process;
            let stays = self.processes[self.running].stays;
            self.step(stays);
            if mine && self.processes[process].stays == 0 {
                break;
            }
        }
        if self.running == process {
            self.running = self.take_next().unwrap_or(process);
        } else {
            // It was put back at the tick at which its work ended.
            self.ready.retain(|waiting| *waiting != process);
        }
    }

    /// The running process goes on for at most `nanos`, but not beyond the next event.
    fn step(&mut self, nanos: u64) {
        let tick = TICK - self.now % TICK;
        let running = self.running;
        let passes = nanos.min(tick).min(self.processes[running].stays);
        self.now += passes;
        self.processes[running].stays -= passes;
        if running > CALLER {
            self.live(running, passes);
        }
        if self.now.is_multiple_of(TICK) && passes > 0 {
            self.tick();
        }
        if self.due && !self.processes[self.running].kernel {
            self.due = false;
            self.ready.push_back(self.running);
            self.running = self.take_next().unwrap_or(self.running);
        }
    }

    /// A competing program has had CPU time: it may change its mode, and its process may end.
    fn live(&mut self, index: usize, passes: u64) {
        let process = &mut self.processes[index];
        process.lives = process.lives.saturating_sub(passes);
        if process.stays > 0 {
            return;
        }
        if process.kernel && process.lives == 0 {
            // The end of a process is a switch.
            self.begin_life(index);
            self.due = true;
            return;
        }
        let kernel = !process.kernel;
        self.change_mode(index, kernel);
    }

    fn begin_life(&mut self, index: usize) {
        let process = &mut self.processes[index];
        process.usage = 0;
        process.lives = self.sharing.life.as_nanos() as u64;
        process.set_priority();
        self.change_mode(index, false);
    }

    fn change_mode(&mut self, index: usize, kernel: bool) {
        let mean = match kernel {
            true => self.sharing.kernel,
            false => self.sharing.user,
        };
        let most = 2 * mean.as_nanos();
        let draw = (u128::from(self.random.next_u32()) * most) >> 32;
        let process = &mut self.processes[index];
        process.kernel = kernel;
        process.stays = (draw as u64).max(1);
    }

    fn tick(&mut self) {
        self.ticks += 1;
        let process = &mut self.processes[self.running];
        process.usage = (process.usage + 1).min(MOST_USAGE);
        if process.usage % 4 == 0 {
            process.set_priority();
        }
        if self.ticks.is_multiple_of(SECOND) {
            let load = 2 * i32::from(self.sharing.competing);
            for process in &mut self.processes {
                let decayed = process.usage * load / (load + 1) + process.nice;
                process.usage = decayed.clamp(0, MOST_USAGE);
                process.set_priority();
            }
        }
        self.due |= self.ticks.is_multiple_of(SLICE);
    }

    /// The first process of the best queue.
    fn take_next(&mut self) -> Option<usize> {
        let waiting = self.ready.iter().enumerate();
        let best = waiting.min_by_key(|(at, process)| (self.processes[**process].queue(), *at));
        let at = best.map(|(at, _)| at)?;
        self.ready.remove(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sharing(nice: i8, competing: u8) -> Sharing {
        Sharing {
            nice,
            competing,
            kernel: Duration::from_millis(20),
            user: Duration::from_millis(20),
            life: Duration::from_millis(100),
        }
    }

    fn scheduler(sharing: Sharing, seed: u64) -> Box<Scheduler> {
        Scheduler::new(sharing, seed, Instant::ZERO).expect("programs compete")
    }

    const MILLI: u128 = 1_000_000_000;

    /// Mean time in milliseconds of `work` milliseconds, a thousand times with gaps.
    fn mean(sharing: Sharing, work: u128, seed: u64) -> f64 {
        let mut scheduler = scheduler(sharing, seed);
        let (mut now, mut sum) = (Instant::ZERO, 0.0);
        for n in 0..1000_u64 {
            let gap = Duration::from_micros(300_000 + n * 7919 % 500_000);
            now += gap;
            let takes = scheduler.takes(now, 0, work * MILLI, false);
            assert!(takes >= work * MILLI, "{takes}");
            sum += takes as f64 / 1e9;
            now += Duration::from_nanos((takes / 1000) as u64);
        }
        sum / 1000.0
    }

    #[test]
    fn without_competition_there_is_no_scheduler() {
        assert!(Scheduler::new(sharing(0, 0), 1, Instant::ZERO).is_none());
    }

    #[test]
    fn an_urgent_manager_waits_for_the_kernel_only() {
        // The running program is in the kernel half of the time, for a uniform time of at most 40 ms, of which a third
        // is left in the mean. So a wake-up waits 6.67 ms, however many programs there are.
        for competing in [1, 3] {
            let waits = mean(sharing(-20, competing), 5, 7) - 5.0;
            assert!((waits - 6.67).abs() < 1.0, "{competing}: {waits}");
        }
    }

    #[test]
    fn programs_without_end_share_the_cpu_equally() {
        // The manager never sleeps, and the processes of the programs do not end: with nice 0 each has its share.
        for competing in [1, 3] {
            let mut sharing = sharing(0, competing);
            sharing.life = Duration::from_secs(10_000);
            let takes = scheduler(sharing, 3).takes(Instant::ZERO, 0, 20_000 * MILLI, false);
            let share = 20_000.0 * 1e9 / takes as f64;
            let fair = 1.0 / (1.0 + f64::from(competing));
            assert!((share / fair - 1.0).abs() < 0.15, "{competing}: {share}");
        }
    }

    #[test]
    fn a_better_priority_never_takes_longer_and_more_programs_never_less() {
        for competing in 1..=3 {
            let [usual, better, best] =
                [0, -1, -6].map(|nice| mean(sharing(nice, competing), 20, 5));
            assert!(
                usual > better * 0.95 && better > best * 0.95,
                "{usual} {better} {best}"
            );
        }
        let [one, three] = [1, 3].map(|competing| mean(sharing(0, competing), 20, 5));
        assert!(three > one * 1.3, "{one} {three}");
    }

    #[test]
    fn the_same_seed_takes_the_same_time_and_a_long_idle_time_costs_nothing() {
        let run = |seed| {
            let mut scheduler = scheduler(sharing(0, 2), seed);
            let first = scheduler.takes(Instant::from_nanos(5), 3 * MILLI, 9 * MILLI, true);
            let year = Instant::from_nanos(31_536_000_000_000_000);
            (first, scheduler.takes(year, 3 * MILLI, 9 * MILLI, false))
        };
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
    }
}
