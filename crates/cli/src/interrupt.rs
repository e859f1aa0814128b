//! Ctrl-C, or closing the terminal, ends a measurement with the results so far.

use aerostat_live::signals::hangup;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Catches SIGINT, SIGTERM, and SIGHUP unless it is ignored, as with `nohup`. A second signal ends the command at once,
/// with exit code 128 plus the number of the signal.
#[derive(Clone, Debug)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Starts to catch signals.
    pub(crate) fn catch() -> io::Result<Self> {
        let come = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM].into_iter().chain(hangup()) {
            flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&come))?;
            flag::register(signal, Arc::clone(&come))?;
        }
        Ok(Self(come))
    }

    /// True once the first signal has come.
    pub(crate) fn has_come(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
