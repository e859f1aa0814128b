//! Progress on a terminal.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal as _;

/// The progress of `len` things with this name, with the time left; nothing if standard error is no terminal, or if the
/// user wants no progress.
pub(crate) fn bar(quiet: bool, len: usize, what: &str) -> ProgressBar {
    if quiet || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(len as u64);
    let form = format!("{{bar:30}} {{pos}} of {{len}} {what}, {{eta}} left");
    if let Ok(style) = ProgressStyle::with_template(&form) {
        bar.set_style(style);
    }
    bar.tick();
    bar
}
