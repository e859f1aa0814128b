//! The time of a run, and an alarm with a resolution of nanoseconds.

use aerostat_proto::{Duration, Instant};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use std::io;

/// `CLOCK_MONOTONIC`, counted from the start of the run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: std::time::Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self {
            start: std::time::Instant::now(),
        }
    }
    pub(crate) fn now(self) -> Instant {
        Instant::ZERO + self.start.elapsed()
    }
}

/// A timer that a poller can wait for.
///
/// `epoll_wait` counts in milliseconds, but a busy OC-3 port has a departure every 90 µs.
#[derive(Debug)]
pub(crate) struct Alarm {
    fd: OwnedFd,
    armed: Option<Instant>,
}

impl Alarm {
    pub(crate) fn new() -> io::Result<Self> {
        // Otherwise the kernel may be up to 50 µs late in order to combine wake-ups.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        Ok(Self {
            fd: timerfd_create(TimerfdClockId::Monotonic, flags)?,
            armed: None,
        })
    }
    /// The descriptor for a poller. A new setting always makes it unreadable first, whether the poller is
    /// level-triggered or not.
    pub(crate) fn raw_fd(&self) -> i32 {
        self.fd.as_raw_fd()
    }
    /// Sets the alarm to `at` or earlier; with `None` it need not fire. Most deadlines of a lab are put off long before
    /// they are due, and to set a timer later costs more than to wake up once in vain. So an alarm stays that fires
    /// before `at`: the loop sets it again when it wakes up.
    pub(crate) fn set(&mut self, at: Option<Instant>, now: Instant) -> io::Result<()> {
        let stays = |armed: Instant| armed > now && at.is_none_or(|at| armed <= at);
        if self.armed.map_or(at.is_none(), stays) {
            return Ok(());
        }
        self.armed = at;
        let wait = match at {
            // A time of zero would disarm the timer.
            Some(at) => at.since(now).max(Duration::from_nanos(1)),
            None => Duration::ZERO,
        };
        let value = Timespec {
            tv_sec: wait.as_secs().min(1 << 30) as i64,
            tv_nsec: wait.subsec_nanos().into(),
        };
        let interval = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let setting = Itimerspec {
            it_interval: interval,
            it_value: value,
        };
        timerfd_settime(&self.fd, TimerfdTimerFlags::empty(), &setting)?;
        Ok(())
    }
}
