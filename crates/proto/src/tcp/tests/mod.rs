//! Two machines over a link of the tests, scripts, closed forms and hostile peers.

mod closed_forms;
mod hostile;
mod linux;
mod pair;
mod scripts;
mod transfers;
