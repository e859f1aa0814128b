//! Signals that ask a lab to stop.

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use std::io::{self, Read as _};
use std::os::fd::{AsRawFd as _, RawFd};
use std::os::unix::net::UnixStream;

/// Received signals. They are caught before the lab leaves anything on disk, so that even an early one ends the lab in
/// order.
#[derive(Debug)]
pub(crate) struct Signals {
    octets: UnixStream,
    /// True if octets may be waiting: a call of the system in each turn of the loop would cost more than the flag.
    readable: bool,
    come: usize,
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
        })
    }

    /// Number of signals received. The second one ends the lab without waiting.
    pub(crate) fn come(&mut self) -> usize {
        if !std::mem::take(&mut self.readable) {
            return self.come;
        }
        let mut octets = [0; 16];
        while let Ok(count @ 1..) = self.octets.read(&mut octets) {
            self.come += count;
        }
        self.come
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
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    let ignored = mask.is_some_and(|mask| mask >> (SIGHUP - 1) & 1 == 1);
    (!ignored).then_some(SIGHUP)
}
