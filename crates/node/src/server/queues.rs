//! Jobs that wait for a server, in classes, and the order in which the server takes them.

use super::Server;
use aerostat_proto::{Duration, Instant};
use core::fmt::Debug;
use std::collections::{BTreeMap, VecDeque};

/// A job that is for something which may go away before the job is done: the label of a connection, or a port.
pub trait Owned {
    /// Owner of a job: a label or a port.
    type Owner: Copy + Ord + Debug;
    /// Owner of this job.
    fn owner(&self) -> Self::Owner;
}

/// Order in which a server takes the waiting jobs. A job that has begun is not interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// In the order of arrival, whatever the class.
    Arrival,
    /// A job of the lowest class; within a class in the order of arrival.
    Class,
}

#[derive(Debug)]
struct Waiting<J> {
    /// Arrivals before this one.
    turn: u64,
    since: Instant,
    work: u128,
    job: J,
}

/// The work of a job that begins at this instant, from its work when it was offered.
pub(crate) type Pace<'a, J> = &'a mut dyn FnMut(Instant, &J, u128) -> u128;

/// How long the jobs of a class have waited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// Jobs that have begun.
    pub jobs: u64,
    /// The sum of their waits before they began.
    pub sum: Duration,
    /// The longest of them.
    pub longest: Duration,
}

/// A server with a queue for each of `CLASSES` classes of jobs. The owner bounds the queues: it asks for
/// [`Self::waiting`] before it offers a job.
#[derive(Debug)]
pub struct Queues<J: Owned, const CLASSES: usize> {
    server: Server,
    order: Order,
    /// The job in service; `Some(None)` if it was withdrawn meanwhile, which does not end its time.
    present: Option<Option<J>>,
    waiting: [VecDeque<Waiting<J>>; CLASSES],
    waits: [Waits; CLASSES],
    /// Jobs by owner, of the owners that have any: not more entries than jobs.
    held: BTreeMap<J::Owner, usize>,
    arrivals: u64,
    /// Time in service of all jobs that have begun.
    busy: Duration,
}

impl<J: Owned, const CLASSES: usize> Queues<J, CLASSES> {
    /// An idle server without waiting jobs.
    #[must_use]
    pub fn new(server: Server, order: Order) -> Self {
        Self {
            server,
            order,
            present: None,
            waiting: core::array::from_fn(|_| VecDeque::new()),
            waits: [Waits::default(); CLASSES],
            held: BTreeMap::new(),
            arrivals: 0,
            busy: Duration::ZERO,
        }
    }

    /// Takes a job of this class, which begins at once if the server is idle. `work` is in the units of the server; a
    /// job without work that finds the server idle is through at `now`. A late driver calls [`Self::take`] before.
    ///
    /// # Panics
    /// If there is no such class.
    pub fn offer(&mut self, class: usize, work: u128, job: J, now: Instant) {
        self.offer_paced(class, work, job, now, &mut |_, _, work| work);
    }

    /// As [`Self::offer`]; `pace` says how much work the job really is, when it begins.
    pub(crate) fn offer_paced(
        &mut self,
        class: usize,
        work: u128,
        job: J,
        now: Instant,
        pace: Pace<'_, J>,
    ) {
        *self.held.entry(job.owner()).or_default() += 1;
        if self.present.is_none() {
            let work = pace(now, &job, work);
            self.busy += self.server.begin(now, work) - now;
            self.present = Some(Some(job));
            self.waits[class].jobs += 1;
            return;
        }
        self.waiting[class].push_back(Waiting {
            turn: self.arrivals,
            since: now,
            work,
            job,
        });
        self.arrivals += 1;
    }

    /// The next job that is through by `now`. The job behind it begins at the moment when this one was through.
    pub fn take(&mut self, now: Instant) -> Option<J> {
        self.take_paced(now, &mut |_, _, work| work)
    }

    /// As [`Self::take`], for queues with jobs of [`Self::offer_paced`].
    pub(crate) fn take_paced(&mut self, now: Instant, pace: Pace<'_, J>) -> Option<J> {
        while self.deadline()? <= now {
            let through = self.present.take().flatten();
            self.begin_next(&mut *pace);
            if let Some(job) = through {
                self.let_go(job.owner(), 1);
                return Some(job);
            }
        }
        None
    }

    fn begin_next(&mut self, pace: Pace<'_, J>) {
        let fronts = self.waiting.iter().enumerate();
        let fronts = fronts.filter_map(|(class, jobs)| Some((class, jobs.front()?.turn)));
        let next = match self.order {
            Order::Class => fronts.min(),
            Order::Arrival => fronts.min_by_key(|(_, turn)| *turn),
        };
        let Some((class, _)) = next else {
            return;
        };
        if let Some(Waiting {
            since, work, job, ..
        }) = self.waiting[class].pop_front()
        {
            let begins = self.server.through();
            let waits = &mut self.waits[class];
            let wait = begins.since(since);
            waits.jobs += 1;
            waits.sum += wait;
            waits.longest = waits.longest.max(wait);
            let work = pace(begins, &job, work);
            self.busy += self.server.follow(work) - begins;
            self.present = Some(Some(job));
        }
    }

    /// Jobs of an owner here, with the one in service.
    #[must_use]
    pub fn held(&self, owner: J::Owner) -> usize {
        self.held.get(&owner).copied().unwrap_or_default()
    }

    fn let_go(&mut self, owner: J::Owner, jobs: usize) {
        if let Some(held) = self.held.get_mut(&owner) {
            *held -= jobs;
            if *held == 0 {
                self.held.remove(&owner);
            }
        }
    }

    /// Removes the jobs of an owner: first the one in service, if it is among them, and then the others in the order of
    /// arrival. The one in service keeps the server busy until its time is over. An owner without jobs costs a search
    /// by its name only: a host or a switch that fails closes all its labels and ports, one by one.
    pub fn withdraw(&mut self, owner: J::Owner) -> Vec<J> {
        let held = self.held(owner);
        if held == 0 {
            return Vec::new();
        }
        self.let_go(owner, held);
        let mut gone = Vec::with_capacity(held);
        let of = |job: &J| job.owner() == owner;
        if let Some(job) = &mut self.present
            && job.as_ref().is_some_and(of)
        {
            gone.extend(job.take());
        }
        let mut late = Vec::new();
        for jobs in &mut self.waiting {
            for _ in 0..jobs.len() {
                match jobs.pop_front() {
                    Some(entry) if of(&entry.job) => late.push(entry),
                    entry => jobs.extend(entry),
                }
            }
        }
        late.sort_by_key(|entry| entry.turn);
        gone.extend(late.into_iter().map(|entry| entry.job));
        gone
    }

    /// When the job in service is through; `None` while the server is idle.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.present.is_some().then(|| self.server.through())
    }

    /// Jobs of a class that wait, without the one in service.
    ///
    /// # Panics
    /// If there is no such class.
    #[must_use]
    pub fn waiting(&self, class: usize) -> usize {
        self.waiting[class].len()
    }

    /// All jobs here.
    pub fn jobs(&self) -> impl Iterator<Item = &J> {
        let present = self.present.iter().flatten();
        let waiting = self.waiting.iter().flatten();
        present.chain(waiting.map(|entry| &entry.job))
    }

    /// How long the jobs of a class have waited.
    ///
    /// # Panics
    /// If there is no such class.
    #[must_use]
    pub const fn waits(&self, class: usize) -> Waits {
        self.waits[class]
    }

    /// Time in service until `now`.
    #[must_use]
    pub fn busy(&self, now: Instant) -> Duration {
        let to_come = self.deadline().map(|through| through.since(now));
        self.busy.saturating_sub(to_come.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random;
    use crate::server::Cost;
    use rand_pcg::Pcg32;
    use rand_pcg::rand_core::Rng;

    /// Class and number.
    type Two = Queues<(usize, u64), 2>;

    /// Jobs of seven owners.
    impl Owned for (usize, u64) {
        type Owner = u64;
        fn owner(&self) -> u64 {
            self.1 % 7
        }
    }

    fn at(nanos: u64) -> Instant {
        Instant::from_nanos(nanos)
    }

    /// Takes everything that is through by `now`; returns the jobs and when they were.
    fn run(queues: &mut Two, now: Instant) -> Vec<(usize, u64, u64)> {
        let mut done = Vec::new();
        while let Some(through) = queues.deadline().filter(|through| *through <= now) {
            let job = queues.take(through);
            done.extend(job.map(|(class, number)| (class, number, through.as_nanos())));
        }
        done
    }

    #[test]
    fn a_class_goes_first_without_interrupting_the_present_job() {
        for (order, expected, wait) in [
            (Order::Class, [(1, 0, 10), (0, 2, 15), (1, 1, 25)], 8),
            (Order::Arrival, [(1, 0, 10), (1, 1, 20), (0, 2, 25)], 18),
        ] {
            let mut queues = Two::new(Server::of_time(), order);
            queues.offer(1, 10_000, (1, 0), at(0));
            queues.offer(1, 10_000, (1, 1), at(1));
            queues.offer(0, 5000, (0, 2), at(2));
            assert_eq!((queues.waiting(0), queues.waiting(1)), (1, 1));
            assert_eq!(run(&mut queues, at(100)), expected, "{order:?}");
            assert_eq!(queues.busy(at(100)).as_nanos(), 25);
            assert_eq!(queues.waits(0).longest.as_nanos(), wait);
        }
    }

    #[test]
    fn a_withdrawn_job_still_takes_its_time_but_never_comes_out() {
        let mut queues = Two::new(Server::of_time(), Order::Arrival);
        for number in [0, 1, 7, 8] {
            queues.offer(0, 10_000, (0, number), at(0));
        }
        assert_eq!(queues.withdraw(0), [(0, 0), (0, 7)]);
        assert_eq!(queues.jobs().count(), 2);
        assert_eq!(run(&mut queues, at(100)), [(0, 1, 20), (0, 8, 30)]);
        assert_eq!(queues.deadline(), None);
    }

    #[test]
    fn jobs_are_counted_by_owner_in_any_order_of_offers_takes_and_withdrawals() {
        for seed in 0..300 {
            let order = [Order::Arrival, Order::Class][seed as usize % 2];
            let mut random = random::stream(seed, "property", "owners");
            let mut queues = Two::new(Server::of_time(), order);
            let (mut now, mut offered, mut out, mut closed) = (0, 0, 0, 0);
            for number in 0..200 {
                now += u64::from(random.next_u32() % 200);
                out += run(&mut queues, at(now)).len();
                let class = random.next_u32() as usize % 2;
                queues.offer(class, 150_000, (class, number), at(now));
                offered += 1;
                if random.next_u32().is_multiple_of(8) {
                    let owner = u64::from(random.next_u32() % 7);
                    // The reference: all jobs that are there, one by one. The one in service comes first, and then
                    // the others in the order of their numbers.
                    let present = queues.present.flatten();
                    let jobs = queues.jobs().filter(|job| job.owner() == owner);
                    let mut of_owner: Vec<_> = jobs.copied().collect();
                    of_owner.sort_unstable_by_key(|job| (Some(*job) != present, job.1));
                    let gone = queues.withdraw(owner);
                    assert_eq!(gone, of_owner, "{seed}: {owner}");
                    closed += gone.len();
                }
                for owner in 0..7 {
                    let there = queues.jobs().filter(|job| job.owner() == owner).count();
                    assert_eq!(queues.held(owner), there, "{seed}: {owner}");
                }
                let owners = queues.held.len();
                assert!(owners <= queues.jobs().count(), "{seed}: {owners} entries");
            }
            out += run(&mut queues, at(u64::MAX)).len();
            assert_eq!(offered, out + closed, "{seed}");
            assert!(queues.held.is_empty(), "{seed}: {:?}", queues.held);
        }
    }

    /// Random jobs in two classes: when they arrive, their class, and their work in picoseconds.
    fn arrivals(random: &mut Pcg32) -> Vec<(u64, usize, u128)> {
        let mut now = 0;
        let mut all = Vec::new();
        for _ in 0..300 {
            // Some arrive together, some are without work, and the server is sometimes idle.
            now += u64::from(random.next_u32() % 4) * u64::from(random.next_u32() % 900);
            let work = u128::from(random.next_u32() % 3) * u128::from(random.next_u32() % 700_000);
            all.push((now, random.next_u32() as usize % 2, work));
        }
        all
    }

    #[test]
    fn the_server_is_idle_only_without_work_keeps_order_and_is_busy_for_the_sum_of_the_costs() {
        for seed in 0..200 {
            let order = [Order::Arrival, Order::Class][seed as usize % 2];
            let all = arrivals(&mut random::stream(seed, "property", "jobs"));
            let mut queues = Two::new(Server::of_time(), order);
            let mut done = Vec::new();
            // The reference: unfinished work in picoseconds, which no order of service changes.
            let (mut left, mut last) = (0_u128, 0);
            for (number, (now, class, work)) in all.iter().enumerate() {
                done.extend(run(&mut queues, at(*now)));
                left = left.saturating_sub(u128::from(now - last) * 1000);
                last = *now;
                // Work conservation: idle exactly if no work is left, except for the fraction of a nanosecond.
                if queues.deadline().is_none() {
                    assert!(left < 1000, "{seed}: idle with {left} ps of work");
                    left = 0;
                } else {
                    assert!(left > 0, "{seed}: busy without work");
                }
                left += work;
                queues.offer(*class, *work, (*class, number as u64), at(*now));
            }
            done.extend(run(&mut queues, at(u64::MAX)));
            assert_eq!(done.len(), all.len());
            assert!(done.is_sorted_by_key(|(_, _, through)| *through));
            for wanted in 0..2 {
                let one = done.iter().filter(|(class, ..)| *class == wanted);
                assert!(
                    one.is_sorted_by_key(|(_, number, _)| *number),
                    "{seed}: order within a class"
                );
            }
            if order == Order::Arrival {
                assert!(done.is_sorted_by_key(|(_, number, _)| *number));
            }
            // A job that finds the server idle is rounded down to a nanosecond, a job behind another one is not.
            let sum: u128 = all.iter().map(|(_, _, work)| work).sum();
            let busy = queues.busy(at(u64::MAX)).as_nanos() * 1000;
            assert!(
                busy <= sum && sum - busy < 1000 * all.len() as u128,
                "{seed}: {busy} of {sum}"
            );
        }
    }

    /// Mean wait in front of one server for Poisson arrivals and a fixed service time, in service times (Pollaczek and
    /// Khinchine).
    fn m_d_1(load: f64) -> f64 {
        load / (2.0 * (1.0 - load))
    }

    #[test]
    fn poisson_jobs_wait_as_the_formula_for_m_d_1_says() {
        let cost = Cost {
            packet: 80_700_000,
            octet: 78_000,
        };
        // 80.7 µs + 1500 × 78 ns = 197.7 µs.
        let work = cost.picos(1500);
        for load in [0.3, 0.6, 0.8] {
            let mut queues = Two::new(Server::of_time(), Order::Arrival);
            let mut gaps = random::stream(7, "cpu", "m/d/1");
            let mut now = 0.0;
            for number in 0..300_000 {
                now += random::exponential(&mut gaps) * 197_700.0 / load;
                while queues.take(at(now as u64)).is_some() {}
                queues.offer(0, work, (0, number), at(now as u64));
            }
            let end = at(now as u64);
            let waits = queues.waits(0);
            let mean = waits.sum.as_nanos() as f64 / waits.jobs as f64 / 197_700.0;
            let error = mean / m_d_1(load) - 1.0;
            assert!(error.abs() < 0.05, "{load}: {mean} against {}", m_d_1(load));
            let busy = queues.busy(end).as_secs_f64() / end.as_nanos() as f64 * 1e9;
            assert!((busy - load).abs() < 0.01, "{load}: busy {busy}");
        }
    }
}
