//! Ctrl-C that ends a measurement with what it has found so far.

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Notices SIGINT and SIGTERM. The second one ends the command at once, with 128 and the number of the signal.
#[derive(Clone, Debug)]
pub(crate) struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// From now on.
    pub(crate) fn catch() -> io::Result<Self> {
        let come = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&come))?;
            flag::register(signal, Arc::clone(&come))?;
        }
        Ok(Self(come))
    }

    /// The first one has come.
    pub(crate) fn has_come(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
