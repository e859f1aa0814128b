//! Signals that ask a lab to stop.

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::io::{self, Read as _};
use std::os::fd::{AsRawFd as _, RawFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Signals that come together are one request: `timeout` of the coreutils passes a signal to its child and to its
/// process group, so the child gets it twice. No person types that fast.
const TOGETHER: Duration = Duration::from_millis(200);

/// Received signals. They are caught before the lab leaves anything on disk, so that even an early one ends the lab in
/// order.
#[derive(Debug)]
pub(crate) struct Signals {
    octets: UnixStream,
    /// True if octets may be waiting: a call of the system in each turn of the loop would cost more than the flag.
    readable: bool,
    /// Requests to stop.
    come: usize,
    /// When the last one came.
    last: Option<Instant>,
}

impl Signals {
    /// Catches SIGINT, SIGTERM, SIGQUIT, and SIGHUP unless it is ignored, as requests to stop.
    ///
    /// # Errors
    /// If the operating system refuses this.
    pub(crate) fn catch() -> io::Result<Self> {
        let octets = pipe([SIGINT, SIGTERM, SIGQUIT].into_iter().chain(hangup()))?;
        Ok(Self {
            octets,
            readable: true,
            come: 0,
            last: None,
        })
    }

    /// Number of requests to stop; signals within [`TOGETHER`] are one request. The second one ends the lab without
    /// waiting.
    pub(crate) fn come(&mut self) -> usize {
        if !std::mem::take(&mut self.readable) {
            return self.come;
        }
        let mut octets = [0; 16];
        let mut any = false;
        while let Ok(1..) = self.octets.read(&mut octets) {
            any = true;
        }
        if any {
            self.heard(Instant::now());
        }
        self.come
    }

    /// A signal has come at this time, or several have.
    fn heard(&mut self, at: Instant) {
        let again = self
            .last
            .is_none_or(|last| at.saturating_duration_since(last) >= TOGETHER);
        if again {
            (self.come, self.last) = (self.come + 1, Some(at));
        }
    }

    /// The poller has reported the descriptor.
    pub(crate) const fn ready(&mut self) {
        self.readable = true;
    }

    /// A descriptor that becomes readable when a signal has come.
    pub(crate) fn raw_fd(&self) -> RawFd {
        self.octets.as_raw_fd()
    }
}

/// A socket that gets an octet for each of these signals. Its reader does not block. No thread is started.
///
/// # Errors
/// If the operating system refuses this.
pub(crate) fn pipe(which: impl IntoIterator<Item = i32>) -> io::Result<UnixStream> {
    let (read, write) = UnixStream::pair()?;
    read.set_nonblocking(true)?;
    for signal in which {
        signal_hook::low_level::pipe::register(signal, write.try_clone()?)?;
    }
    Ok(read)
}

/// SIGHUP, unless the parent process made this program ignore it, as `nohup` does.
#[must_use]
pub fn hangup() -> Option<i32> {
    (!is_ignored(SIGHUP)).then_some(SIGHUP)
}

/// True if this process ignores the signal: its parent made it so, as shells do with Ctrl-C for what they start with
/// `&`.
pub(crate) fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_that_come_together_are_one_request() {
        let mut signals = Signals {
            octets: pipe([]).unwrap(),
            readable: false,
            come: 0,
            last: None,
        };
        let first = Instant::now();
        for (at, come) in [(0, 1), (1, 1), (199, 1), (200, 2), (399, 2), (5000, 3)] {
            signals.heard(first + Duration::from_millis(at));
            assert_eq!(signals.come(), come, "after {at} ms");
        }
    }
}
