//! Progress on a terminal.
//!
//! A bar begins empty: what is not known to be done is not done. Without anything to do there is no bar.

use crate::exit;
use aerostat_live::charset;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::fmt::Write;
use std::io::IsTerminal as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The signs of a bar in a locale without others: done, half done, to do.
const ASCII: &str = "##.";

/// The progress of `len` things with this name, with the time left; `None` if their number is not known yet. Nothing if
/// standard error is no terminal, or if the user wants no progress.
pub(crate) fn bar(quiet: bool, len: Option<usize>, what: &str) -> ProgressBar {
    let form = format!("{{bar:30}} {{pos}} of {{len}} {what}{{left}}");
    let bar = shown(quiet, len.map(|len| len as u64), &form);
    if len.is_some() {
        bar.tick();
    }
    bar
}

/// Time between two lines about long work.
const PERIOD: Duration = Duration::from_secs(30);

/// Lines about work that takes long, where there is no bar.
pub(crate) struct Lines {
    what: &'static str,
    begin: Instant,
    /// The number of periods of which a line has told.
    told: AtomicU64,
}

impl Lines {
    /// Begins now; `what` is done, as in "runs".
    pub(crate) fn new(what: &'static str) -> Self {
        Self {
            what,
            begin: Instant::now(),
            told: AtomicU64::new(0),
        }
    }

    /// A line, if the last one was a while ago.
    pub(crate) fn tell(&self, done: usize, of: usize) {
        let took = self.begin.elapsed();
        let periods = took.as_secs() / PERIOD.as_secs();
        if periods > self.told.swap(periods, Ordering::Relaxed) && done < of {
            let seconds = took.as_secs();
            exit::say(format_args!(
                "{done} of {of} {} after {seconds} s",
                self.what
            ));
        }
    }
}

/// Progress of unknown length with a message.
pub(crate) fn with_message(quiet: bool) -> ProgressBar {
    shown(quiet, None, "{bar:30} {msg}")
}

fn shown(quiet: bool, len: Option<u64>, form: &str) -> ProgressBar {
    if quiet || len == Some(0) || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    on(ProgressDrawTarget::stderr(), len, form, charset::is_utf8())
}

fn on(target: ProgressDrawTarget, len: Option<u64>, form: &str, utf8: bool) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(len, target);
    if let Ok(style) = ProgressStyle::with_template(form) {
        let style = style.with_key("left", left);
        bar.set_style(if utf8 {
            style
        } else {
            style.progress_chars(ASCII)
        });
    }
    bar
}

/// The time left, as soon as something is done.
fn left(state: &ProgressState, out: &mut dyn Write) {
    if state.pos() > 0 {
        let seconds = state.eta().as_secs();
        let _ = write!(out, ", {seconds} s left");
    }
}
