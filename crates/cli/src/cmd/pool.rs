//! Runs of labs, several at a time: those of `--seeds`, `--sweep`, `sweep`, `reproduce` and `rfc2544`.
//!
//! **How.** Threads take one job after the other. What a job is, its caller says: a process of its own, which costs no
//! other run anything if it fails, or a run in this process, where runs are short and many. The thread that asks for
//! the jobs takes their results, in the order of the jobs or as they end. Where no thread can be made, it does the
//! jobs, too.
//!
//! **Bounds.** Results that wait for those of earlier jobs are in memory; [`Pool::ahead`] limits them.

use crate::exit;
use aerostat_live::threads::spawn_in;
use std::collections::BTreeMap;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Time between two looks of the caller at what may end the jobs, such as Ctrl-C.
const LOOK: Duration = Duration::from_millis(100);

/// Jobs with numbers from 0 on.
pub(crate) struct Pool {
    count: usize,
    /// Jobs at the same time.
    jobs: usize,
    /// Jobs that may begin before the oldest one of them has been taken.
    ahead: usize,
    /// False: results are wanted as soon as a job has ended, in any order.
    ordered: bool,
    state: Mutex<State>,
    /// Another result has been taken, or no further job is to begin.
    taken: Condvar,
}

#[derive(Default)]
struct State {
    /// The job that begins next.
    next: usize,
    /// Results that have been taken.
    taken: usize,
    /// No further job is to begin.
    stop: bool,
}

impl Pool {
    /// `count` jobs, at most `jobs` of them at the same time, with results in their order.
    pub(crate) fn new(count: usize, jobs: usize) -> Self {
        Self {
            count,
            jobs,
            ahead: usize::MAX,
            ordered: true,
            state: Mutex::default(),
            taken: Condvar::new(),
        }
    }

    /// At most this many jobs begin before the result of the oldest one of them has been taken.
    pub(crate) fn ahead(self, ahead: usize) -> Self {
        Self { ahead, ..self }
    }

    /// Results in the order of the jobs, or as soon as a job has ended.
    pub(crate) fn ordered(self, ordered: bool) -> Self {
        Self { ordered, ..self }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets no further job begin. False if that was so already.
    pub(crate) fn stop(&self) -> bool {
        let was = std::mem::replace(&mut self.state().stop, true);
        self.taken.notify_all();
        !was
    }

    /// True if no further job begins.
    pub(crate) fn is_stopped(&self) -> bool {
        self.state().stop
    }

    /// Does the jobs: `work` does the one of a number, on any thread; `take` gets its result on this thread. `look` is
    /// called on this thread time and again. Returns how many jobs have begun.
    pub(crate) fn all<T: Send>(
        &self,
        work: &(impl Fn(usize) -> T + Sync),
        look: &dyn Fn(),
        mut take: impl FnMut(usize, T),
    ) -> usize {
        let (sender, ended) = mpsc::channel();
        let mut waiting = BTreeMap::new();
        let mut next = 0;
        let mut hand = |at: usize, found: T| {
            waiting.insert(if self.ordered { at } else { next }, (at, found));
            while let Some((at, found)) = waiting.remove(&next) {
                take(at, found);
                next += 1;
                self.state().taken = next;
                self.taken.notify_all();
            }
        };
        thread::scope(|scope| {
            let jobs = self.jobs.min(self.count);
            for made in 0..jobs {
                let sender = sender.clone();
                let thread = spawn_in(scope, move || self.serve(work, &sender));
                if let Err(error) = thread {
                    if jobs > 1 {
                        let some = made.max(1);
                        exit::say(format_args!(
                            "note: {some} of {jobs} runs at the same time: {error}"
                        ));
                    }
                    while made == 0
                        && let Some(at) = self.start()
                    {
                        hand(at, work(at));
                        look();
                    }
                    break;
                }
            }
            drop(sender);
            loop {
                look();
                match ended.recv_timeout(LOOK) {
                    Ok((at, found)) => hand(at, found),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => break,
                }
            }
        });
        next
    }

    /// Does one job after the other, as long as there are any.
    fn serve<T>(&self, work: &impl Fn(usize) -> T, ended: &Sender<(usize, T)>) {
        while let Some(at) = self.start() {
            if ended.send((at, work(at))).is_err() {
                return;
            }
        }
    }

    /// The next job, as soon as it may begin; `None` if there is no further one.
    fn start(&self) -> Option<usize> {
        let mut state = self.state();
        while !state.stop && state.next >= state.taken.saturating_add(self.ahead) {
            let waited = self.taken.wait(state);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
        let at = state.next;
        (at < self.count && !state.stop).then(|| {
            state.next += 1;
            at
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn results_come_in_the_order_of_jobs_and_no_job_is_too_far_ahead() {
        let pool = Pool::new(40, 4).ahead(5);
        let taken = AtomicUsize::new(0);
        let work = |at: usize| {
            assert!(at < taken.load(Ordering::SeqCst) + 5, "{at}");
            // Some jobs take longer than those after them.
            thread::sleep(Duration::from_millis(if at.is_multiple_of(4) {
                4
            } else {
                1
            }));
            at * at
        };
        let mut all = Vec::new();
        let begun = pool.all(&work, &|| (), |at, found| {
            all.push((at, found));
            taken.fetch_add(1, Ordering::SeqCst);
        });
        let wanted: Vec<_> = (0..40).map(|at| (at, at * at)).collect();
        assert_eq!((begun, all), (40, wanted));
    }

    #[test]
    fn a_pool_that_is_stopped_begins_no_further_job_and_gives_what_began() {
        let pool = Pool::new(1000, 3).ordered(false).ahead(20);
        let began = AtomicUsize::new(0);
        let work = |at: usize| {
            began.fetch_add(1, Ordering::SeqCst);
            at
        };
        let mut taken = 0;
        let begun = pool.all(&work, &|| (), |at, _| {
            taken += 1;
            if at == 10 {
                assert!(pool.stop() && pool.is_stopped());
            }
        });
        assert_eq!((begun, taken), (began.into_inner(), begun));
        assert!((11..=40).contains(&begun), "{begun}");
    }
}
