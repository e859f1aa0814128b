//! The time of a run, and an alarm with nanoseconds.

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
/// `epoll_wait` counts in milliseconds; a full port at OC-3 has a departure every 90 µs.
#[derive(Debug)]
pub(crate) struct Alarm {
    fd: OwnedFd,
    armed: Option<Instant>,
}

impl Alarm {
    pub(crate) fn new() -> io::Result<Self> {
        // The kernel may be 50 µs late otherwise, to bundle wake-ups.
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        Ok(Self {
            fd: timerfd_create(TimerfdClockId::Monotonic, flags)?,
            armed: None,
        })
    }
    /// For a poller; level-triggered or not, every new setting makes it unreadable first.
    pub(crate) fn raw_fd(&self) -> i32 {
        self.fd.as_raw_fd()
    }
    /// Rings at `at`; never if `None`.
    pub(crate) fn set(&mut self, at: Option<Instant>, now: Instant) -> io::Result<()> {
        if self.armed == at && at.is_none_or(|at| at > now) {
            return Ok(());
        }
        self.armed = at;
        let wait = match at {
            // All zeroes would disarm.
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
